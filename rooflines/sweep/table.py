"""Tables as stored: their columns, and what is skipped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from rooflines.model.columns import METRICS, SKIPPED, Column
from rooflines.settings.fields import ALL
from rooflines.sweep.rows import OperationTable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from rooflines.basics.yaml_file import JSON
    from rooflines.sweep.sweep import Sweep


def table(sweep: Sweep) -> pl.LazyFrame:
    """The rows of a sweep's table, not yet computed."""
    return OperationTable(sweep).frame().select(column.name for column in stored_columns(sweep))


def skipped_frame(records: Sequence[JSON]) -> pl.DataFrame:
    """A frame of such records, with the columns of `SKIPPED`."""
    whole = {"shards": pl.Int64, "rows": pl.Int64}
    return pl.DataFrame(
        records,
        schema={column.name: whole.get(column.name, pl.String) for column in SKIPPED},
        orient="row",
    )


def stored_columns(sweep: Sweep) -> list[Column]:
    """The columns of a sweep's table: keys always, metrics as its config chooses."""
    return chosen(sweep.columns, METRICS, sweep.config.columns)


def chosen(
    columns: Iterable[Column], metrics: Iterable[Column], names: Collection[str]
) -> list[Column]:
    """The columns that a table stores.

    Args:
        columns: All columns, in order.
        metrics: Those that can be left out.
        names: The metrics of the table, or `ALL`.
    """
    left_out = set() if names == ALL else {metric.name for metric in metrics}.difference(names)
    return [column for column in columns if column.name not in left_out]
