"""Data package: the site's tables, `datapackage.json`, and a README with ways to read them.

Format: Frictionless, https://specs.frictionlessdata.io/data-package.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from rooflines.basics.files import read_parquet
from rooflines.basics.version import __version__
from rooflines.dictionary.columns import column_records
from rooflines.hardware.timing_errors import measured_quantiles
from rooflines.models.layer_matrices import layers_of
from rooflines.models.library import find_model, model_entries
from rooflines.models.model_sheet import shape_rows
from rooflines.results.catalogue_frames import chip_numbers, shapes_frame
from rooflines.results.tables import NO_TEXT, csv_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflines.basics.yaml_file import JSON
    from rooflines.hardware.entries import Chip

FOLDER = "data"

ROW_GROUP_SIZE = 65_536
"""Rows per group in a Parquet file [1]."""

TYPES: dict[type[pl.DataType], str] = {
    pl.Boolean: "boolean",
    pl.Date: "date",
    **dict.fromkeys((pl.Int64, pl.Int32, pl.UInt32), "integer"),
    **dict.fromkeys((pl.Float64, pl.Float32), "number"),
}
"""Frictionless types by polars types; any other is `string`."""

LICENCE = {
    "name": "MIT",
    "path": "https://opensource.org/license/mit",
    "title": "MIT License; data sheets are named with each number, timings with each quantile",
}

SNIPPETS = re.compile(r"^(\w+):\n\n```\w+\n(.*?)```", re.DOTALL | re.MULTILINE)
"""Snippets in `README`: name of a tool, and its code to read the tables."""

Meanings = Mapping[str, Sequence[str]]
"""Unit and meaning of columns by name."""

SITE_COLUMNS: Mapping[str, Meanings] = json.loads(
    Path(__file__).with_name("columns.json").read_text(encoding="utf-8")
)
"""Columns of tables that only the site has."""

README = Path(__file__).with_name("data-readme.md")
"""Ways to read the tables, included in the package."""


class DataResource(NamedTuple):
    """Table in the package.

    Attributes:
        name: The file's name without suffix.
        title: Its contents.
        content: The Parquet file.
        meanings: Units and meanings of its columns.
    """

    name: str
    title: str
    content: bytes
    meanings: Meanings


def package_files(
    chips: Mapping[str, Chip],
    formulas: JSON,
    tables: Mapping[str, Path],
    site: Mapping[str, str],
) -> Iterator[tuple[str, bytes]]:
    """Yield the package's files.

    Args:
        chips: Entries by id.
        formulas: Coefficients for operations, and chip rates.
        tables: The site's threshold files by name: `thresholds`, perhaps
            `model-thresholds`.
        site: The site's title, author, address and date.

    Yields:
        Path and content.
    """
    listed = _chips(chips)
    tables_of_site = [
        _resource_of("chips", "Every number of every chip", listed, SITE_COLUMNS["chips"]),
        _resource_of("models", "Models", shapes_frame(shape_rows()), _columns("model-shapes")),
        _resource_of("layers", "Matrices of these models", _layers(), SITE_COLUMNS["layers"]),
        _resource_of(
            "measured", "How far off timings are", measured_quantiles(), SITE_COLUMNS["measured"]
        ),
    ]
    stored = [
        DataResource(name, title, path.read_bytes(), _columns(name))
        for name, title in THRESHOLDS.items()
        if (path := tables.get(name))
    ]
    text = json.dumps(formulas, ensure_ascii=False, separators=(",", ":")).encode()
    for resource in tables_of_site:
        yield f"{FOLDER}/{resource.name}.parquet", resource.content
    yield f"{FOLDER}/chips.csv", csv_text(listed, NO_TEXT).encode()
    yield f"{FOLDER}/formulas.json", text
    yield f"{FOLDER}/README.md", README.read_bytes()
    package = _package([*tables_of_site, *stored], text, site)
    yield f"{FOLDER}/datapackage.json", (json.dumps(package, indent=1) + "\n").encode()


THRESHOLDS = {
    "thresholds": "From which size on operations are compute-bound",
    "model-thresholds": "From which batch and up to which context steps of models are",
}
"""Tables of thresholds with their titles."""


def _chips(chips: Mapping[str, Chip]) -> pl.DataFrame:
    """One row per chip and number."""
    numbers = chip_numbers(chips).rename({"meaning": "quantity"})
    parts = pl.col("path").str.split(".")
    of_unit = parts.list.first() == "units"
    return numbers.with_columns(
        part=pl.when(parts.list.len() > 2).then(parts.list.get(1)),  # noqa: PLR2004, tree, name, key
        dtype=pl.when(of_unit).then(parts.list.get(2, null_on_oob=True)),
    ).select(list(SITE_COLUMNS["chips"]))


def _resource_of(name: str, title: str, frame: pl.DataFrame, meanings: Meanings) -> DataResource:
    """Resource with a frame as Parquet."""
    written = io.BytesIO()
    frame.write_parquet(written, compression="zstd", row_group_size=ROW_GROUP_SIZE)
    return DataResource(name, title, written.getvalue(), meanings)


def _layers() -> pl.DataFrame:
    """Weight matrices in all catalogue models."""
    rows = [
        (model, layer, *sizes)
        for model in model_entries()
        for layer, sizes in layers_of(find_model(model).shape).items()
    ]
    return pl.DataFrame(rows, schema=list(SITE_COLUMNS["layers"]), orient="row")


def _columns(file: str) -> Meanings:
    """Units and meanings for a results file's columns."""
    return {
        record["column"]: (record["unit"], record["meaning"])
        for record in column_records()
        if record["file"] == file
    }


def _package(
    resources: Sequence[DataResource], formulas: bytes, site: Mapping[str, str]
) -> dict[str, Any]:
    """Package descriptor by the Frictionless specification."""
    return {
        "name": "rooflines",
        "title": site.get("title", "rooflines"),
        "profile": "data-package",
        "version": __version__,
        "homepage": site.get("url", ""),
        "created": str(site.get("date", "")),
        "licenses": [LICENCE],
        "citation": f"rooflines {__version__}, tables of rooflines and thresholds",
        "config": "config.yaml",
        "resources": [
            *(_resource(resource) for resource in resources),
            {
                "name": "formulas",
                "path": "formulas.json",
                "title": "Works, rates and calibrations as coefficients",
                "format": "json",
                **_digest(formulas),
            },
        ],
    }


def _resource(resource: DataResource) -> dict[str, Any]:
    table = read_parquet(resource.content)
    return {
        "name": resource.name,
        "path": f"{resource.name}.parquet",
        "title": resource.title,
        "format": "parquet",
        "rows": table.height,
        **_digest(resource.content),
        "licenses": [LICENCE],
        "schema": {
            "fields": [
                {
                    "name": name,
                    "type": TYPES.get(kind.base_type(), "string"),
                    **({"unit": unit} if unit else {}),
                    "description": meaning,
                }
                for name, kind in table.schema.items()
                for unit, meaning in [resource.meanings.get(name, ("", ""))]
            ]
        },
    }


def _digest(content: bytes) -> dict[str, Any]:
    return {"bytes": len(content), "hash": f"sha256:{hashlib.sha256(content).hexdigest()}"}
