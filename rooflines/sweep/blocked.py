"""Blocked evaluation of a Cartesian product: inner terms are computed once and broadcast.

The inner axes are the last ones; their product is a block of rows, repeated for every point of the
outer axes. A work is a sum of products of extents, and each product is an outer factor times an
inner one. Factors are computed once per outer point and once per row of the block, so a row costs a
multiplication or two.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import reduce
from operator import add, mul

import polars as pl

from rooflines.sweep.space import AxisColumns, decode, length

BLOCK_ROWS = 2**16
"""Most rows of a block, so that it stays in the processor's cache; a longer last axis is one block
[1]."""

Expressions = Mapping[str, pl.Expr]


@dataclass
class Factors:
    """Columns of a blocked product that are computed before its sides are joined.

    Attributes:
        outer_factors: Columns to compute once per outer point.
        inner_factors: Columns to compute once per row of the block.
    """

    outer_factors: dict[str, pl.Expr] = field(default_factory=dict)
    inner_factors: dict[str, pl.Expr] = field(default_factory=dict)


@dataclass
class FactoredSums:
    """Sums of products, factored into columns of the outer axes and columns of the inner axes.

    Attributes:
        outer: The columns of the outer axes.
        coefficients: A column that varies with the coefficients: shows whether they are outer.
        outer_factors: Columns to compute once per outer point.
        inner_factors: Columns to compute once per row of the block.
    """

    outer: AbstractSet[str]
    coefficients: str
    outer_factors: dict[str, pl.Expr] = field(default_factory=dict)
    inner_factors: dict[str, pl.Expr] = field(default_factory=dict)

    def add(
        self, name: str, terms: Mapping[tuple[str, ...], str], variables: Mapping[str, pl.Expr]
    ) -> pl.Expr:
        """Factors a sum: adds its factors to the columns to compute.

        Products with the same extents on the side without coefficients share one factor there.

        Args:
            name: A name for the sum's columns.
            terms: The dimensions of every product, and the column of its coefficient.
            variables: The extent of every dimension.

        Returns:
            The sum, as an expression of the factors.
        """
        outer = self.coefficients in self.outer
        here, opposite = (
            (self.outer_factors, self.inner_factors)
            if outer
            else (self.inner_factors, self.outer_factors)
        )
        sums: dict[tuple[str, ...], list[pl.Expr]] = {}
        for dims, coefficient in terms.items():
            other_side = tuple(dim for dim in dims if (dim in self.outer) != outer)
            same_side = [variables[dim] for dim in dims if dim not in other_side]
            product = reduce(mul, [*same_side, pl.col(coefficient)])
            sums.setdefault(other_side, []).append(product)
        parts = []
        for other_side, products in sums.items():
            column = f"#{name}_per:{','.join(other_side)}"
            here[column] = reduce(add, products)
            if not other_side:
                parts.append(pl.col(column))
                continue
            factors = [variables[dim] for dim in other_side]
            extents = f"#extents:{'*'.join(map(str, factors))}"
            opposite[extents] = reduce(mul, factors)
            parts.append(pl.col(extents) * pl.col(column))
        return reduce(add, parts) if parts else pl.lit(0.0)


def block_start(axes: Sequence[AxisColumns]) -> int:
    """The index of the first inner axis, in a list of axes with the slowest first."""
    index, rows = len(axes), 1
    while index > 0 and (index == len(axes) or rows * length(axes[index - 1]) <= BLOCK_ROWS):
        index -= 1
        rows *= length(axes[index])
    return index


def blocked_product(
    axes: Sequence[AxisColumns], split: int, start: int, stop: int, sums: Factors | FactoredSums
) -> pl.LazyFrame:
    """Rows `start` to `stop` of the product of axes, the last axis fastest.

    Args:
        axes: The columns of each axis, slowest first.
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
        if column.n_unique() == 1
    }
    outer, inner = (_without(part, fixed) for part in (axes[:split], axes[split:]))
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


def _without(axes: Sequence[AxisColumns], fixed: Expressions) -> list[AxisColumns]:
    """The axes without their columns of one value; an axis of one point has no column left."""
    varying = [
        {name: values for name, values in axis.items() if name not in fixed} for axis in axes
    ]
    return [axis for axis in varying if axis]


def _side(
    axes: Sequence[AxisColumns], start: int, stop: int, fixed: Expressions, factors: Expressions
) -> pl.LazyFrame:
    """Rows of a product of axes with factors; columns of one value serve only these."""
    return decode(axes, start, stop).with_columns(**fixed).with_columns(**factors).drop(fixed)


def _pieces(start: int, stop: int, rows: int) -> Iterator[tuple[int, int, int, int]]:
    """A slice of rows as at most three products of outer points and rows of the block.

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
