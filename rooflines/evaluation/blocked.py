"""Blocked evaluation of a Cartesian product: inner terms are computed once and broadcast.

The inner axes are the last ones; their product is a block of rows, repeated for every point of the
outer axes. A work is a sum of products of extents, and each product is an outer factor times an
inner one. Factors are computed once per outer point and once per row of the block, so a row costs a
multiplication or two.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from rooflines.evaluation.space import AxisColumns, decode, has_one_value, length

BLOCK_ROWS = 2**16
"""Largest number of rows in a block, so that it stays in the processor's cache; a longer last axis
is one block [1]."""

Expressions = Mapping[str, pl.Expr]


@dataclass
class Factors:
    """Factors of a blocked product, columns that are computed before its sides are joined.

    Attributes:
        outer_factors: Columns to compute once per outer point.
        inner_factors: Columns to compute once per row of the block.
    """

    outer_factors: dict[str, pl.Expr] = field(default_factory=dict)
    inner_factors: dict[str, pl.Expr] = field(default_factory=dict)


def block_start(axes: Sequence[AxisColumns]) -> int:
    """Index of the first inner axis, in a list of axes with the slowest first."""
    index, rows = len(axes), 1
    while index > 0 and (index == len(axes) or rows * length(axes[index - 1]) <= BLOCK_ROWS):
        index -= 1
        rows *= length(axes[index])
    return index


def blocked_product(
    axes: Sequence[AxisColumns], split: int, start: int, stop: int, sums: Factors
) -> pl.LazyFrame:
    """Compute rows `start` to `stop` in the product of axes, the last axis fastest.

    Args:
        axes: Columns, axis by axis, slowest first.
        split: The index of the first inner axis.
        start: The first row [1].
        stop: The row after the last [1].
        sums: The factors to compute.

    Returns:
        The columns of the axes and the factors.
    """
    values = {name: column for axis in axes for name, column in axis.items()}
    fixed = {
        name: pl.lit(column[0], dtype=column.dtype)
        for name, column in values.items()
        if has_one_value(column)
    }
    outer, inner = (  # an axis with one point has no column left
        [
            varying
            for axis in part
            if (varying := {name: axis[name] for name in axis if name not in fixed})
        ]
        for part in (axes[:split], axes[split:])
    )
    if not outer or not inner:
        factors = {**sums.outer_factors, **sums.inner_factors}
        return _side([*outer, *inner], start, stop, fixed, factors).with_columns(**fixed)
    pieces = [
        _side(outer, first, last, fixed, sums.outer_factors).join(
            _side(inner, low, high, fixed, sums.inner_factors),
            how="cross",
            maintain_order="left_right",
        )
        for first, last, low, high in _pieces(start, stop, math.prod(map(length, inner)))
    ]
    return pl.concat(pieces).with_columns(**fixed)


def _side(
    axes: Sequence[AxisColumns], start: int, stop: int, fixed: Expressions, factors: Expressions
) -> pl.LazyFrame:
    """Compute rows in a product of axes, with factors; columns with one value serve only these."""
    return decode(axes, start, stop).with_columns(**fixed).with_columns(**factors).drop(fixed)


def _pieces(start: int, stop: int, rows: int) -> Iterator[tuple[int, int, int, int]]:
    """Cut a slice of rows into at most three products: outer points times block rows.

    Yields:
        The outer points (first, last) and the rows of the block (low, high), half open.
    """
    (first, low), (last, high) = divmod(start, rows), divmod(stop, rows)
    if first == last:
        yield first, first + 1, low, high
        return
    if low:
        yield first, first + 1, low, rows
        first += 1
    if first < last:
        yield first, last, 0, rows
    if high:
        yield last, last + 1, 0, high
