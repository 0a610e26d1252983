"""The table of a sweep: the columns it stores, its rows as stored, and what it skips."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from rooflines.model.columns import METRICS, SKIPPED, Column
from rooflines.sweep.recipes import skipped_records
from rooflines.sweep.rows import sweep_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rooflines.basics.yaml_file import JSON
    from rooflines.sweep.sweep import Sweep

__all__ = ["as_stored", "skipped_frame", "skipped_rows", "stored_columns", "table"]


def table(sweep: Sweep) -> pl.LazyFrame:
    """The rows of a sweep's table, not yet computed."""
    return as_stored(
        sweep, sweep_rows(sweep).select(column.name for column in stored_columns(sweep))
    )


def skipped_rows(sweeps: Iterable[Sweep]) -> pl.DataFrame:
    """Rows that sweeps ask for but a chip does not support: one row for each chip and reason."""
    return skipped_frame(skipped_records(sweeps))


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
    chosen = sweep.config.columns
    return [c for c in sweep.columns if c not in METRICS or chosen == "all" or c.name in chosen]


def as_stored(sweep: Sweep, rows: pl.LazyFrame) -> pl.LazyFrame:
    """Rows with their metrics as a sweep's table stores them: rounded in the last step."""
    return (
        rows.with_columns(pl.selectors.float().cast(pl.Float32))
        if sweep.config.floats == "float32"
        else rows
    )
