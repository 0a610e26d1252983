"""The one solver: the first size from which on t_math is at least every other time.

Along a size n every time is the largest of a few lines, slope * n + constant. So t_math overtakes
each line once, (constant - b_math) / (a_math - slope), or never; one with experts, which are
concave in n, too. All of it is Float64, with a bound on the relative error of every real threshold:
whole ones are `ceil(real * (1 - error))`, so that a threshold that is a whole number is not rounded
past itself; half an element is the most taken off.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import add, or_
from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.numbers import LARGEST_COUNT
from rooflines.dictionary.columns import ALWAYS, BEYOND, FOUND, NEVER
from rooflines.evaluation.compiler import quotient
from rooflines.solvers.size_axis import DECAY, EXPERTS
from rooflines.theory.resources import MATH, OTHERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rooflines.solvers.size_axis import Along
    from rooflines.sweep.cases import Case
    from rooflines.theory.resources import Resource

ROUNDING = 1e-14
"""The relative error of a sum of products of one sign [1]: about thirty roundings of 1.1e-16."""

TIED = 4.0 * ROUNDING
"""Numbers of which the difference is a smaller share of their sum count as equal [1]."""

CLEAR = 1e-9
"""Thresholds that differ by more are never equal, however large the bound on their error is [1]."""

MOST_SLACK = 0.5
"""No more is taken off a real threshold, or added, before it is rounded [1]: where two times are
nearly parallel, the bound on its error is far larger than its error."""

NEWTON_STEPS = 60
"""More steps than Newton's method takes [1]."""

SETTLED = 4e-16
"""Newton's method ends with a step that is no larger share of the size [1]."""

WHOLE_PEAK = Fraction(1)
"""The share of the peak from which a row is compute-bound [1]."""

AHEAD = f"{MATH.name}:0:0"
"""The name of the line of t_math."""

Names = dict["Resource", list[str]]
"""By resource, the lines of which the largest is its time."""


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
        """The columns `#real:<name>` and `#error:<name>`."""
        return {f"#real:{name}": self.real, f"#error:{name}": self.error}

    @classmethod
    def of(cls, name: str) -> Reach:
        """These columns."""
        return cls(pl.col(f"#real:{name}"), pl.col(f"#error:{name}"))

    @classmethod
    def last(cls, names: Iterable[str]) -> Reach:
        """Where the last of several times is reached; never, if one of them never is."""
        reaches = [cls.of(name) for name in names]
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


def ask_times(along: Along, cases: Sequence[Case]) -> Names:
    """Ask for the lines of all nominal times; that of math is `AHEAD`."""
    along.ask_time(MATH.name, [case.times.by[MATH.bound] for case in cases])
    names: Names = {}
    for each in OTHERS:
        pieces = along.ask_time(each.name, [case.times.by[each.bound] for case in cases])
        names[each] = [name for (name,) in pieces]
    return names


def solved(frame: pl.DataFrame, names: Names, share: Fraction = WHOLE_PEAK) -> pl.LazyFrame:
    """Adds the thresholds along a size.

    Args:
        frame: The lines, `#span`, the elements of an extent, and `#least`, the smallest size [1].
        names: Those of the lines.
        share: Of the attainable peak: at least so much is attained where no other time is above
            t_math / share [1].

    Returns:
        Also `outcome`, `critical_exact`, `critical`, `critical_<resource>` and `limit`.
    """
    if share != 1:
        math = (pl.col(f"#{part}:{AHEAD}") for part in ("slope", "constant"))
        frame = frame.with_columns(quotient(each, pl.lit(float(share))) for each in math)
    every = [name for each in names.values() for name in each]
    frame = frame.with_columns(
        **{k: v for each in every for k, v in reach(each).named(each).items()}
    )
    for name in every:
        parts = [part for part in EXPERTS if f"#{part}:{name}" in frame.columns]
        if parts:
            frame = _with_experts(frame, name, parts)
    by_resource: dict[str, pl.Expr] = {}
    for resource, lines in names.items():
        by_resource |= Reach.last(lines).named(resource.name)
    span, least = pl.col("#span"), pl.col("#least")
    named = {"critical": "all", **{f"critical_{each.name}": each.name for each in names}}
    whole = {column: Reach.of(name).whole(span) for column, name in named.items()}
    reached = {
        column: pl.when(pl.col(column).is_not_null()).then(pl.max_horizontal(column, least))
        for column in whole
    }
    outcome = (
        pl.when(pl.col("critical_exact").is_null())
        .then(pl.lit(NEVER))
        .when(pl.col("critical").is_null())
        .then(pl.lit(BEYOND))
        .when(pl.col("critical") <= least)
        .then(pl.lit(ALWAYS))
        .otherwise(pl.lit(FOUND))
    )
    return (
        frame.lazy()
        .with_columns(**by_resource)
        .with_columns(**Reach.last(r.name for r in names).named("all"), limit=limit(names))
        .with_columns(critical_exact=(pl.col("#real:all") * span).abs(), **whole)  # no -0.0
        .with_columns(**reached)
        .with_columns(outcome=outcome)
        .with_columns(limit=pl.when(pl.col("outcome") != ALWAYS).then("limit"))
    )


def reach(behind: str) -> Reach:
    """Where t_math overtakes a line for good."""
    return _crossing(pl.col(f"#slope:{behind}"), pl.col(f"#constant:{behind}"))


def _crossing(slope: pl.Expr, constant: pl.Expr) -> Reach:
    ahead, lead = pl.col(f"#slope:{AHEAD}"), pl.col(f"#constant:{AHEAD}")
    gain, size = ahead - slope, ahead + slope
    parallel = gain.abs() <= TIED * size
    crossing = quotient(constant - lead, gain).clip(0.0)
    return Reach(
        pl.when(parallel).then(pl.when(constant <= lead).then(0.0)).when(gain > 0).then(crossing),
        pl.when(parallel).then(0.0).otherwise(ROUNDING * (2.0 + size / gain.abs())),
    )


def _with_experts(frame: pl.DataFrame, name: str, parts: Sequence[str]) -> pl.DataFrame:
    """Adds where t_math overtakes a line with experts, by Newton's method.

    What t_math lacks is convex in n: from a size with all experts on, every step stays above. Each
    row ends by itself, so that its last digit does not depend on the others.
    """
    slope, constant = (pl.col(f"#{part}:{name}") for part in ("slope", "constant"))
    each = {part: pl.col(f"#{part}:{name}") for part in parts}
    experts = reduce(add, each.values())
    frame = frame.with_columns(**_crossing(slope, constant + experts).named(name))
    ahead, real = pl.col(f"#slope:{AHEAD}"), pl.col(f"#real:{name}")
    gain = ahead - slope
    decays = {part: pl.col(f"{DECAY}:{part}") for part in parts}
    left = {part: all_of * (-decays[part] * real).exp() for part, all_of in each.items()}
    unused = reduce(add, left.values())
    falls = reduce(add, (left[part] * decays[part] for part in parts))
    need = constant - pl.col(f"#constant:{AHEAD}") + experts
    step = (gain * real - need + unused) / (gain - falls)
    frame = frame.with_columns((experts > 0).alias("#moves"))
    for _ in range(NEWTON_STEPS):
        before = frame[f"#real:{name}"]
        closer = pl.when("#moves").then(real - step).otherwise(real)
        frame = frame.with_columns(closer.alias(f"#real:{name}"))
        moved = (before - frame[f"#real:{name}"]).abs() > before.abs() * SETTLED
        frame = frame.with_columns(moved.alias("#moves"))
        if not moved.any():
            break
    growth, size = gain - falls, ahead + slope + experts / real
    error = pl.when(experts > 0).then(ROUNDING * (2.0 + size / growth.abs()))
    return frame.with_columns(error.otherwise(pl.col(f"#error:{name}")).alias(f"#error:{name}"))


def limit(names: Names) -> pl.Expr:
    """The bottleneck below the threshold: the first of equals.

    It is the resource that t_math reaches last or, of those that it never reaches, the one that
    grows fastest; of equally fast ones, the one with the larger constant.
    """
    missed = {each: pl.col(f"#real:{each.name}").is_null() for each in names}

    def unreached(part: str, resource: Resource) -> pl.Expr:
        """The largest slope or constant of its lines that t_math never reaches."""
        return pl.max_horizontal(
            pl.when(pl.col(f"#real:{name}").is_null()).then(pl.col(f"#{part}:{name}"))
            for name in names[resource]
        )

    fastest = pl.max_horizontal(unreached("slope", each) for each in names) * (1.0 - TIED)
    ranks = {
        each.bound: pl.when(unreached("slope", each) >= fastest).then(unreached("constant", each))
        for each in names
    }
    error = pl.max_horizontal(f"#error:{each.name}" for each in names)
    reached = {each.bound: pl.col(f"#real:{each.name}") for each in names}
    return (
        pl.when(reduce(or_, missed.values()))
        .then(first_largest(ranks, TIED))
        .otherwise(first_largest(reached, 2.0 * error.clip(0.0, CLEAR)))
    )


def first_largest(ranks: Mapping[str, pl.Expr], slack: pl.Expr | float) -> pl.Expr:
    """The name of the first of the largest ranks; null ranks are left out.

    Args:
        ranks: Not negative, by name.
        slack: The share by which equal ranks may differ [1].
    """
    near = pl.max_horizontal(*ranks.values()) * (1.0 - slack)
    return pl.coalesce(pl.when(rank >= near).then(pl.lit(name)) for name, rank in ranks.items())
