"""Catalogues as frames: numbers of chips with their sources, and model-shapes.csv."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, get_type_hints

import polars as pl

from rooflines.dictionary.columns import MODEL_SHAPES
from rooflines.hardware.chip_parts import NumberRecord, number_records
from rooflines.results.records import recorded
from rooflines.results.tables import write_csv

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rooflines.hardware.entries import Chip

KINDS: Mapping[Any, Any] = {float: pl.Float64, float | None: pl.Float64, bool: pl.Boolean}
"""Column types except text, by the key's type in a `NumberRecord`."""

SHAPE_KINDS = {"1": pl.Int64, "byte": pl.Float64, "": pl.String}


def chip_numbers(chips: Mapping[str, Chip]) -> pl.DataFrame:
    """One row per chip and number with a source; see `rooflines.chips`.

    Args:
        chips: Entries by id.
    """
    records = [
        {"chip": chip, "name": entry.name, "vendor": entry.vendor, "base": entry.base, **number}
        for chip, entry in chips.items()
        for number in number_records(entry, shares=False)
    ]
    schema = dict.fromkeys(("chip", "name", "vendor", "base"), pl.String) | {
        name: KINDS.get(kind, pl.String) for name, kind in get_type_hints(NumberRecord).items()
    }
    return pl.DataFrame(records, schema=schema, orient="row")


def shapes_frame(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Frame of model rows, with columns as in the dictionary.

    Args:
        rows: From `rooflines.models.table.shape_rows`.
    """
    schema = {column.name: SHAPE_KINDS[column.unit] for column in MODEL_SHAPES}
    return pl.DataFrame(rows, schema=schema, orient="row")


@recorded
def write_model_shapes(spec: str, path: str | Path) -> None:
    """Write the models of the catalogue as CSV.

    Args:
        spec: The job's dependencies as JSON, from `Plan.spec`.
        path: The CSV file to write.
    """
    write_csv(shapes_frame(json.loads(spec)["models"]), path)
