"""The one solver: the first size from which on t_math is at least every other time.

Along a size n every time is the largest of a few lines, slope * n + constant. So t_math overtakes
each line once, (constant - b_math) / (a_math - slope), or never. All of it is Float64, with a bound
on the relative error of every real threshold: whole ones are `ceil(real * (1 - error))`, so that a
threshold that is a whole number is not rounded past itself; half an element is the most taken off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.numbers import LARGEST_COUNT
from rooflines.model.columns import ALWAYS, BEYOND, FOUND, NEVER
from rooflines.model.resources import MATH
from rooflines.sweep.metrics import quotient
from rooflines.sweep.space import decode, length

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rooflines.model.resources import Rate, Resource
    from rooflines.model.target import Target
    from rooflines.sweep.space import AxisColumns

ROUNDING = 1e-14
"""The relative error of a sum of products of one sign [1]: about thirty roundings of 1.1e-16."""

TIED = 4.0 * ROUNDING
"""Numbers of which the difference is a smaller share of their sum count as equal [1]."""

CLEAR = 1e-9
"""Thresholds that differ by more are never equal, however large the bound on their error is [1]."""

MOST_SLACK = 0.5
"""No more is taken off a real threshold, or added, before it is rounded [1]: where two times are
nearly parallel, the bound on its error is far larger than its error."""

ROWS_AT_ONCE = 2**20
"""Thresholds computed together, so that memory does not grow with the sweep."""

WHOLE_PEAK = Fraction(1)
"""The share of the peak from which an operation is compute-bound [1]."""


@dataclass(frozen=True)
class Line:
    """A time along a size.

    Attributes:
        slope, constant: Expressions [s per extent] and [s].
    """

    slope: pl.Expr
    constant: pl.Expr


@dataclass(frozen=True)
class Reach:
    """Where t_math reaches another time.

    Attributes:
        real: In extents [1]; null: never.
        error: The bound on its relative error [1].
    """

    real: pl.Expr
    error: pl.Expr

    def named(self, name: str) -> dict[str, pl.Expr]:
        """The columns `#real_<name>` and `#error_<name>`."""
        return {f"#real_{name}": self.real, f"#error_{name}": self.error}

    @classmethod
    def of(cls, name: str) -> Reach:
        """These columns."""
        return cls(pl.col(f"#real_{name}"), pl.col(f"#error_{name}"))

    @classmethod
    def last(cls, reaches: Sequence[Reach]) -> Reach:
        """Where the last of several times is reached; never, if one of them never is."""
        never = reduce(or_, [each.real.is_null() for each in reaches])
        real = pl.max_horizontal([each.real for each in reaches])
        error = pl.max_horizontal([each.error for each in reaches])
        return cls(pl.when(~never).then(real), error)

    def whole(self, span: pl.Expr) -> pl.Expr:
        """The smallest whole size [1]; null: never, or `LARGEST_COUNT` or more.

        Args:
            span: Elements of an extent [1].
        """
        slack = (self.real * self.error).clip(0.0, MOST_SLACK)
        extents = (self.real - slack).ceil().clip(1.0, float(LARGEST_COUNT))
        before = extents.cast(pl.Int64) - 1
        return pl.when(before <= pl.lit(LARGEST_COUNT - 2) // span).then(before * span + 1)


def reach(ahead: Line, behind: Line) -> Reach:
    """Where one line overtakes another one for good."""
    gain, size = ahead.slope - behind.slope, ahead.slope + behind.slope
    parallel = gain.abs() <= TIED * size
    crossing = quotient(behind.constant - ahead.constant, gain).clip(0.0)
    return Reach(
        pl.when(parallel)
        .then(pl.when(behind.constant <= ahead.constant).then(0.0))
        .when(gain > 0)
        .then(crossing),
        pl.when(parallel).then(0.0).otherwise(ROUNDING * (2.0 + size / gain.abs())),
    )


def first_largest(ranks: Mapping[str, pl.Expr], slack: pl.Expr | float) -> pl.Expr:
    """The name of the first of the largest ranks; null ranks are left out.

    Args:
        ranks: Not negative, by name.
        slack: The share by which equal ranks may differ [1].
    """
    near = pl.max_horizontal(*ranks.values()) * (1.0 - slack)
    return pl.coalesce(pl.when(rank >= near).then(pl.lit(name)) for name, rank in ranks.items())


def limit(lines: Mapping[Resource, Line]) -> pl.Expr:
    """The bottleneck below the threshold: the first of equals.

    It is the resource that t_math reaches last or, of those that it never reaches, the one that
    grows fastest; of equally fast ones, the one with the larger constant.

    Args:
        lines: The time that a resource takes for its work, for `#real_<resource>`.
    """
    reaches = {each: Reach.of(each.name) for each in lines}
    missed = {each: reaches[each].real.is_null() for each in lines}
    fastest = pl.max_horizontal(
        pl.when(missed[each]).then(line.slope) for each, line in lines.items()
    ) * (1.0 - TIED)
    unreached = {
        each.bound: pl.when(missed[each] & (line.slope >= fastest)).then(line.constant)
        for each, line in lines.items()
    }
    error = pl.max_horizontal(each.error for each in reaches.values())
    reached = {each.bound: own.real for each, own in reaches.items()}
    return (
        pl.when(reduce(or_, missed.values()))
        .then(first_largest(unreached, TIED))
        .otherwise(first_largest(reached, 2.0 * error.clip(0.0, CLEAR)))
    )


def outcome(least: pl.Expr | int = 1) -> pl.Expr:
    """What a threshold is, from `critical_exact` and `critical`: one of `columns.OUTCOMES`.

    Args:
        least: The smallest size [1].
    """
    return (
        pl.when(pl.col("critical_exact").is_null())
        .then(pl.lit(NEVER))
        .when(pl.col("critical").is_null())
        .then(pl.lit(BEYOND))
        .when(pl.col("critical") <= least)
        .then(pl.lit(ALWAYS))
        .otherwise(pl.lit(FOUND))
    )


def rate_at(resource: Resource, target: Target, share: Fraction) -> Rate | None:
    """The rate that a threshold compares: for math, a share of the attainable peak.

    At least this share is attained where no other time is above t_math / share.

    Args:
        resource: The resource.
        target: The chip and its split.
        share: Share of the attainable peak [1].
    """
    rate = resource.rate(target)
    return replace(rate, per_s=rate.per_s * share) if rate and resource is MATH else rate


def solve_in_slices(
    axes: Sequence[AxisColumns], solve: Callable[[pl.LazyFrame], pl.LazyFrame]
) -> Iterator[pl.DataFrame]:
    """The thresholds over a product of axes, in slices.

    Args:
        axes: What is held fixed, slowest first.
        solve: Adds the thresholds.
    """
    rows = math.prod(length(axis) for axis in axes)
    for start in range(0, rows, ROWS_AT_ONCE):
        yield solve(decode(axes, start, min(start + ROWS_AT_ONCE, rows))).collect()
