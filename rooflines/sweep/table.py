"""Tables as stored: their columns, the type of their metrics, and what is skipped."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import polars as pl

from rooflines.model.columns import METRICS, SKIPPED, Column
from rooflines.settings.fields import ALL, CORE
from rooflines.sweep.derived import DerivedColumn, derived
from rooflines.sweep.rows import sweep_rows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from rooflines.basics.yaml_file import JSON
    from rooflines.sweep.sweep import Sweep


def table(sweep: Sweep) -> pl.LazyFrame:
    """The rows of a sweep's table, not yet computed."""
    names = [column.name for column in read_columns(sweep)]
    return as_stored(sweep_rows(sweep).select(names), sweep.config.floats)


def skipped_frame(records: Sequence[JSON]) -> pl.DataFrame:
    """A frame of such records, with the columns of `SKIPPED`."""
    whole = {"shards": pl.Int64, "rows": pl.Int64}
    return pl.DataFrame(
        records,
        schema={column.name: whole.get(column.name, pl.String) for column in SKIPPED},
        orient="row",
    )


def read_columns(sweep: Sweep) -> list[Column]:
    """The columns of a sweep's table: keys always, metrics as its config chooses."""
    names = sweep.config.columns
    columns = chosen(sweep.columns, METRICS, names)
    return with_derived(columns, derived(sweep)) if names == CORE else columns


def chosen(
    columns: Iterable[Column], metrics: Iterable[Column], names: Collection[str]
) -> list[Column]:
    """The columns of a table as it is read.

    Args:
        columns: All columns, in order.
        metrics: Those that can be left out.
        names: The metrics of the table, `ALL` or `CORE`.
    """
    every = names in (ALL, CORE)
    left_out = set() if every else {metric.name for metric in metrics}.difference(names)
    return [column for column in columns if column.name not in left_out]


def with_derived(columns: Iterable[Column], sql: Mapping[str, str]) -> list[Column]:
    """The columns of a table whose files leave some of them out.

    Args:
        columns: All columns, in order.
        sql: The columns that follow from others, as SQL by name.
    """
    return [
        DerivedColumn(**asdict(column), sql=sql[column.name]) if column.name in sql else column
        for column in columns
    ]


def stored(columns: Iterable[Column]) -> list[Column]:
    """Those of a table's columns that its files store."""
    return [column for column in columns if not isinstance(column, DerivedColumn)]


def as_stored(rows: pl.LazyFrame, floats: str) -> pl.LazyFrame:
    """Rows with their metrics as a table stores them: rounded in the last step.

    Args:
        rows: The rows.
        floats: `float64` or `float32`.
    """
    return rows.with_columns(pl.selectors.float().cast(pl.Float32)) if floats == "float32" else rows
