"""The rows of a sweep as a lazy frame: keys, sizes, works, times, bounds and what follows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import polars as pl

from rooflines.model.columns import TEXTS
from rooflines.sweep.operation_rows import operation_stages
from rooflines.sweep.sheet import Sheet, key_columns
from rooflines.sweep.space import axis_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rooflines.sweep.cases import Block
    from rooflines.sweep.operations import OperationCase
    from rooflines.sweep.sweep import Sweep

TextTypes = Mapping[str, "pl.DataType"]
"""Types of text columns that are not Categorical."""

GROUP_ROWS = 2**16
"""Most rows of several blocks that are computed at once [1]."""

Group = list["Block[OperationCase]"]
"""Blocks that are computed at once, since a frame for each takes long."""


def block_groups(blocks: Sequence[Block[OperationCase]]) -> list[Group]:
    """Neighbours with the same works and without calibration, of at most `GROUP_ROWS` rows."""
    found: list[Group] = []
    before: object = None
    for block in blocks:
        alike = None
        if not any(case.is_calibrated for case in block.cases):
            alike = [(case.variant, id(case.workload)) for case in block.cases]
        if alike is not None and alike == before and len(found[-1]) < GROUP_ROWS // block.rows:
            found[-1].append(block)
        else:
            found.append([block])
        before = alike
    return found


def slices(sweep: Sweep, start: int, stop: int) -> Iterator[tuple[Group, int, int]]:
    """The pieces of a slice of rows, one per group of blocks: (start, stop) of its rows."""
    offset = 0
    for group in block_groups(sweep.blocks):
        rows = sum(block.rows for block in group)
        low, high = max(start - offset, 0), min(stop - offset, rows)
        if low < high:
            yield group, low, high
        offset += rows


def group_frame(group: Group, start: int, stop: int, texts: TextTypes) -> pl.LazyFrame:
    """Rows `start` to `stop` of a group of blocks.

    Args:
        group: The blocks.
        start: The first of their rows [1].
        stop: The row after the last [1].
        texts: The types of text columns that are not Categorical.
    """
    sheet = Sheet(group, texts)
    cases = [case for block in group for case in block.cases]
    frame = sheet.frame(operation_stages(sheet, cases), start, stop)
    if any("shape" in axis.columns for axis in group[0].after):
        return frame
    return frame.with_columns(shape=pl.lit(None, dtype=texts.get("shape", pl.Categorical)))


def enums(columns: Iterable[Mapping[str, pl.Series]], names: Iterable[str] = ()) -> TextTypes:
    """The Enum of every text column: the values that occur in some columns of that name.

    Args:
        columns: Columns, of which those of text are Categorical.
        names: Further columns, which may have no values.
    """
    values: dict[str, list[pl.Series]] = {name: [] for name in names}
    for each in columns:
        for name, series in each.items():
            if series.dtype == pl.Categorical:
                values.setdefault(name, []).append(series.cast(pl.String))
    return {
        name: pl.Enum(pl.concat(several).drop_nulls().unique().sort() if several else [])
        for name, several in values.items()
    }


def sweep_rows(sweep: Sweep, start: int = 0, stop: int | None = None) -> pl.LazyFrame:
    """Rows `start` to `stop` of a sweep; concatenated in order, slices equal the whole table.

    Args:
        sweep: The sweep.
        start: The first row [1].
        stop: The row after the last; the end by default [1].

    Returns:
        The columns of `columns.table_columns`, in their order. Times, intensities and works are
        Float64, exact to a few roundings.
    """
    names = [column.name for column in sweep.columns]
    return pl.concat(
        group_frame(group, low, high, {}).select(names)
        for group, low, high in slices(sweep, start, sweep.rows if stop is None else stop)
    )


def whole_rows(sweep: Sweep, columns: Sequence[str], start: int, stop: int) -> pl.LazyFrame:
    """The rows to write, of the columns that are stored.

    Args:
        sweep: The sweep.
        columns: The columns, in order.
        start: The first row [1].
        stop: The row after the last [1].

    Returns:
        The columns; text is Enum, which costs a fifth of Categorical to write.
    """
    pieces = list(slices(sweep, start, stop))
    cases = [case for group, *_ in pieces for block in group for case in block.cases]
    sizes = (axis_columns(axis) for axis in (*sweep.leading, *sweep.inner))
    texts = enums([key_columns(cases), *sizes], TEXTS)
    return pl.concat(
        group_frame(group, low, high, texts).select(columns) for group, low, high in pieces
    )
