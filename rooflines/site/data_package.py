"""The tables of the site as a data package: `datapackage.json`, and a README with ways to read it.

The form is that of Frictionless: https://specs.frictionlessdata.io/data-package.
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

ROWS_OF_GROUP = 65_536
"""Rows of a group of a Parquet file [1]."""

TYPES: dict[type[pl.DataType], str] = {
    pl.Boolean: "boolean",
    pl.Date: "date",
    **dict.fromkeys((pl.Int64, pl.Int32, pl.UInt32), "integer"),
    **dict.fromkeys((pl.Float64, pl.Float32), "number"),
}
"""Types of Frictionless by those of polars; any other is `string`."""

LICENCE = {
    "name": "MIT",
    "path": "https://opensource.org/license/mit",
    "title": "MIT License; data sheets are named with each number, timings with each quantile",
}

SNIPPETS = re.compile(r"^(\w+):\n\n```\w+\n(.*?)```", re.DOTALL | re.MULTILINE)
"""In `README`: the name of a tool, and the lines with which it reads the tables."""

Meanings = Mapping[str, Sequence[str]]
"""Unit and meaning of columns by name."""

OWN: Mapping[str, Meanings] = json.loads(
    Path(__file__).with_name("columns.json").read_text(encoding="utf-8")
)
"""Columns of the tables that the site makes itself."""

README = Path(__file__).with_name("data-readme.md")
"""Ways to read the tables, which the package has beside them."""


class DataResource(NamedTuple):
    """A table of the package.

    Attributes:
        name: Its name, which is that of the file without the suffix.
        title: What it has.
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
    """The files of the package.

    Args:
        chips: Entries by id.
        formulas: Coefficients of operations and rates of chips.
        tables: Files of thresholds by name, which the site has: `thresholds`, perhaps
            `model-thresholds`.
        site: What the site says of itself: title, author, address and date.

    Yields:
        Path and content of each file.
    """
    listed = _chips(chips)
    found = [
        _made("chips", "Every number of every chip", listed, OWN["chips"]),
        _made("models", "Models", shapes_frame(shape_rows()), _columns("model-shapes")),
        _made("layers", "Matrices of these models", _layers(), OWN["layers"]),
        _made("measured", "How far off timings are", measured_quantiles(), OWN["measured"]),
    ]
    stored = [
        DataResource(name, title, path.read_bytes(), _columns(name))
        for name, title in THRESHOLDS.items()
        if (path := tables.get(name))
    ]
    text = json.dumps(formulas, ensure_ascii=False, separators=(",", ":")).encode()
    for resource in found:
        yield f"{FOLDER}/{resource.name}.parquet", resource.content
    yield f"{FOLDER}/chips.csv", csv_text(listed, NO_TEXT).encode()
    yield f"{FOLDER}/formulas.json", text
    yield f"{FOLDER}/README.md", README.read_bytes()
    described = _described([*found, *stored], text, site)
    yield f"{FOLDER}/datapackage.json", (json.dumps(described, indent=1) + "\n").encode()


THRESHOLDS = {
    "thresholds": "From which size on operations are compute-bound",
    "model-thresholds": "From which batch and up to which context steps of models are",
}
"""Tables of thresholds and what they have."""


def _chips(chips: Mapping[str, Chip]) -> pl.DataFrame:
    """A row for every number of every chip."""
    numbers = chip_numbers(chips).rename({"meaning": "quantity"})
    parts = pl.col("path").str.split(".")
    of_unit = parts.list.first() == "units"
    return numbers.with_columns(
        of=pl.when(parts.list.len() > 2).then(parts.list.get(1)),  # noqa: PLR2004, tree, name, key
        dtype=pl.when(of_unit).then(parts.list.get(2, null_on_oob=True)),
    ).select(list(OWN["chips"]))


def _made(name: str, title: str, frame: pl.DataFrame, meanings: Meanings) -> DataResource:
    """A table that the site makes, as Parquet."""
    written = io.BytesIO()
    frame.write_parquet(written, compression="zstd", row_group_size=ROWS_OF_GROUP)
    return DataResource(name, title, written.getvalue(), meanings)


def _layers() -> pl.DataFrame:
    """The matrices of every model of the catalogue."""
    rows = [
        (model, layer, *sizes)
        for model in model_entries()
        for layer, sizes in layers_of(find_model(model).shape).items()
    ]
    return pl.DataFrame(rows, schema=list(OWN["layers"]), orient="row")


def _columns(file: str) -> Meanings:
    """Units and meanings of the columns of a file of results."""
    return {
        one["column"]: (one["unit"], one["meaning"])
        for one in column_records()
        if one["file"] == file
    }


def _described(
    resources: Sequence[DataResource], formulas: bytes, site: Mapping[str, str]
) -> dict[str, Any]:
    """The package as its specification has it."""
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
            *(_resource(each) for each in resources),
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
