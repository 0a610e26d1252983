"""Index space of a sweep: row i is decoded from i alone, so slices are computed in any order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.numbers import MAX_COUNT
from rooflines.theory.extents import Attended

if TYPE_CHECKING:
    from rooflines.sweep.axes import Axis

SMALL_INDEX = 2**32

AxisColumns = Mapping[str, pl.Series]
"""Columns that change together along one axis, all with the same length."""


MAX_ELEMENTS = 2**126
"""Clip for numbers: more elements than all KV caches ever have [1]."""


def axis_columns(axis: Axis) -> AxisColumns:
    """Axis as columns: sizes are whole numbers, what attention counts is Float64."""
    columns = {}
    for name, values in axis.columns.items():
        if name == "shape":
            columns[name] = pl.Series(values, dtype=pl.Categorical)
        elif isinstance(name, Attended):
            columns[name] = pl.Series([float(value) for value in values], dtype=pl.Float64)
        else:
            columns[name] = whole_numbers(values)
    return columns


def whole_numbers(values: Sequence[int | None]) -> pl.Series:
    """Whole numbers as a column: Int64, or Int128 where a number needs it."""
    clipped = [
        None if value is None else max(min(value, MAX_ELEMENTS), -MAX_ELEMENTS) for value in values
    ]
    max_magnitude = max((abs(value) for value in clipped if value is not None), default=0)
    return pl.Series(clipped, dtype=pl.Int64 if max_magnitude <= MAX_COUNT else pl.Int128)


def length(columns: AxisColumns) -> int:
    """Points on an axis [1]."""
    return len(next(iter(columns.values())))


def has_one_value(values: pl.Series) -> bool:
    """True if all values in a column are equal."""
    first, nulls = values[0], values.null_count()
    if first != values[-1] or 0 < nulls < len(values):
        return False
    return bool(values.min() == values.max())  # a hundredth of the time of `n_unique`


def decode(axes: Sequence[AxisColumns], start: int, stop: int) -> pl.LazyFrame:
    """Decode rows `start` to `stop` in the product of axes, the last axis fastest.

    Args:
        axes: Columns, axis by axis, slowest first.
        start: The first row [1].
        stop: The row after the last [1].

    Returns:
        A column for every column of an axis.
    """
    row = pl.col("#row")
    dtype = pl.UInt32 if stop < SMALL_INDEX else pl.Int64
    columns, stride = {}, math.prod(length(axis) for axis in axes)
    total = stride
    for axis in axes:
        count = length(axis)
        stride //= count
        code = row if stride == 1 else row // stride
        if stride * count != total:
            code = code % count
        for name, values in axis.items():
            columns[name] = (
                pl.lit(values[0], dtype=values.dtype)
                if has_one_value(values)
                else pl.lit(values).gather(code)
            )
    return (
        pl.LazyFrame()
        .select(pl.int_range(start, stop, dtype=dtype).alias("#row"))
        .with_columns(**columns)
        .drop("#row")
    )


def odd_part(number: int) -> int:
    """Divide a number by its largest power of two."""
    return number // (number & -number)
