"""Rows of a product of axes, panel by panel: what the fast axes decide is computed once and repeated for every step of the slow ones.

A panel is all points of the last axes, a step one point of those before. A work is a sum of products of extents, and so it is a sum
of products of a number per step and a number per row of the panel: of all that it costs, a multiplication or two is left for a row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import reduce
from operator import add, mul

import polars as pl

from rooflines.sweep.space import Columns, decode, length

__all__ = ["Factors", "panel_start", "panelled"]

PANEL_ROWS = 2**16
"""Rows of a panel at most, so that one is held in the cache, unless the last axis alone has more [1]."""

Expressions = Mapping[str, pl.Expr]


@dataclass
class Factors:
    """Sums of products, taken apart into what a step and what a row of the panel decides.

    Attributes:
        slow: The columns that a step decides.
        coefficients: A column that is decided where the coefficients of the products are.
        of_step: Further columns that a step decides.
        of_panel: Further columns that a row of the panel decides.
    """

    slow: AbstractSet[str]
    coefficients: str
    of_step: dict[str, pl.Expr] = field(default_factory=dict)
    of_panel: dict[str, pl.Expr] = field(default_factory=dict)

    def total(
        self, name: str, terms: Mapping[tuple[str, ...], str], variables: Mapping[str, pl.Expr]
    ) -> pl.Expr:
        """Takes a sum of products apart, and says how it is put together.

        Args:
            name: A name for its columns.
            terms: The dimensions of every product, and the column of its coefficient.
            variables: The extent of every dimension.

        Returns:
            The sum, as an expression of the further columns.
        """
        slow = self.coefficients in self.slow
        counted, alone = (self.of_step, self.of_panel) if slow else (self.of_panel, self.of_step)
        sums: dict[tuple[str, ...], list[pl.Expr]] = {}
        for dims, coefficient in terms.items():
            apart = tuple(dim for dim in dims if (dim in self.slow) != slow)
            beside = [variables[dim] for dim in dims if dim not in apart]
            sums.setdefault(apart, []).append(reduce(mul, [*beside, pl.col(coefficient)]))
        parts = []
        for apart, products in sums.items():
            column = f"#{name}_per:{','.join(apart)}"
            counted[column] = reduce(add, products)
            if apart:
                of = [variables[dim] for dim in apart]
                extents = f"#extents:{','.join(column for extent in of for column in extent.meta.root_names())}"  # tiles are no sizes
                alone[extents] = reduce(mul, of)
                parts.append(pl.col(extents) * pl.col(column))
            else:
                parts.append(pl.col(column))
        return reduce(add, parts) if parts else pl.lit(0.0)


def panel_start(axes: Sequence[Columns]) -> int:
    """The place in a list of axes, slowest first, from which on they make a panel."""
    place, rows = len(axes), 1
    while place > 0 and (place == len(axes) or rows * length(axes[place - 1]) <= PANEL_ROWS):
        place -= 1
        rows *= length(axes[place])
    return place


def panelled(
    axes: Sequence[Columns], place: int, start: int, stop: int, factors: Factors
) -> pl.LazyFrame:
    """Rows `start` to `stop` of the product of axes, the last axis fastest.

    Args:
        axes: The columns of each axis, slowest first.
        place: Where the panel's axes begin.
        start: The first row [1].
        stop: The row after the last [1].
        factors: Further columns, of what the axes before `place` have and of what those from there on have.

    Returns:
        One column for each of the axes' columns, and the further ones.
    """
    values = {name: of_name for axis in axes for name, of_name in axis.items()}
    fixed = {
        name: pl.lit(of_name[0], dtype=of_name.dtype)
        for name, of_name in values.items()
        if of_name.n_unique() == 1
    }
    steps, panel = (_without(some, fixed) for some in (axes[:place], axes[place:]))
    if not steps or not panel:
        further = {**factors.of_step, **factors.of_panel}
        return _side([*steps, *panel], start, stop, fixed, further).with_columns(**fixed)
    pieces = [
        _side(steps, first, last, fixed, factors.of_step).join(
            _side(panel, low, high, fixed, factors.of_panel),
            how="cross",
            maintain_order="left_right",
        )
        for first, last, low, high in _pieces(start, stop, math.prod(map(length, panel)))
    ]
    return pl.concat(pieces).with_columns(**fixed)


def _without(axes: Sequence[Columns], fixed: Expressions) -> list[Columns]:
    """The columns of axes that have several values; an axis of one point has none."""
    varying = [
        {name: values for name, values in axis.items() if name not in fixed} for axis in axes
    ]
    return [axis for axis in varying if axis]


def _side(
    axes: Sequence[Columns], start: int, stop: int, fixed: Expressions, further: Expressions
) -> pl.LazyFrame:
    """Rows of a product of axes with further columns, computed with those that have one value but without keeping them."""
    return decode(axes, start, stop).with_columns(**fixed).with_columns(**further).drop(fixed)


def _pieces(start: int, stop: int, rows: int) -> Iterator[tuple[int, int, int, int]]:
    """A slice of rows as products of steps (first, last) and rows of the panel (low, high), half open: at most three."""
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
