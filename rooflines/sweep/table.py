"""Tables as stored: their columns, the type of their metrics, and what is skipped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from rooflines.model.columns import METRICS, SKIPPED, Column
from rooflines.sweep.rows import sweep_rows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from rooflines.basics.yaml_file import JSON
    from rooflines.sweep.sweep import Sweep

__all__ = ["as_stored", "chosen", "skipped_frame", "stored_columns", "table"]


def table(sweep: Sweep) -> pl.LazyFrame:
    """The rows of a sweep's table, not yet computed."""
    names = [column.name for column in stored_columns(sweep)]
    return as_stored(sweep_rows(sweep).select(names), sweep.config.floats)


def skipped_frame(records: Sequence[JSON]) -> pl.DataFrame:
    """A frame of such records, with the columns of `SKIPPED`."""
    whole = {"shards": pl.Int64, "rows": pl.Int64}
    return pl.DataFrame(
        records,
        schema={column.name: whole.get(column.name, pl.String) for column in SKIPPED},
        orient="row",
    )


def stored_columns(sweep: Sweep) -> list[Column]:
    """The columns that a sweep's table stores: keys always, metrics as its config chooses."""
    return chosen(sweep.columns, METRICS, sweep.config.columns)


def chosen(
    columns: Iterable[Column], metrics: Iterable[Column], names: Collection[str]
) -> list[Column]:
    """The columns of a table that are stored.

    Args:
        columns: All of them, in order.
        metrics: Those that can be left out.
        names: The metrics to store, or `all`.
    """
    left_out = set() if names == "all" else {metric.name for metric in metrics}.difference(names)
    return [column for column in columns if column.name not in left_out]


def as_stored(rows: pl.LazyFrame, floats: str) -> pl.LazyFrame:
    """Rows with their metrics as a table stores them: rounded in the last step.

    Args:
        rows: The rows.
        floats: `float64` or `float32`.
    """
    return rows.with_columns(pl.selectors.float().cast(pl.Float32)) if floats == "float32" else rows
