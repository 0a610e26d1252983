"""model-shapes.csv: parameters and caches of the models of the catalogue."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl

from rooflines.model.columns import MODEL_SHAPES
from rooflines.results.records import recorded
from rooflines.results.tables import write_csv

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

KINDS = {"1": pl.Int64, "byte": pl.Float64, "": pl.String}
SCHEMA = {column.name: KINDS[column.unit] for column in MODEL_SHAPES}


def shapes_frame(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Rows of models as a frame in the form of the column dictionary.

    Args:
        rows: From `rooflines.models.sheet.shape_rows`.
    """
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


@recorded
def write_model_shapes(spec: str, path: str | Path) -> None:
    """Write the models of the catalogue as CSV.

    Args:
        spec: What it depends on, from `Plan.spec`.
        path: The CSV file to write.
    """
    write_csv(shapes_frame(json.loads(spec)["models"]), path)
