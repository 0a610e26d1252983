"""Crossover along a size: the first size from which on t_math is at least every other time.

Along a size n every time is the maximum over a few lines, slope * n + constant. So t_math = a_math
n + b_math overtakes each line once, at n = (constant - b_math) / (a_math - slope), or never; also a
line with experts, which are concave in n. All numbers are Float64, with a bound on the relative
error of every crossover: the critical size is `ceil(real * (1 - error))`, so that a crossover at a
whole number is not rounded past itself; at most half an element is taken off.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import add, or_
from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.expressions import quotient
from rooflines.basics.numbers import MAX_COUNT
from rooflines.dictionary.columns import ALWAYS, BEYOND_MAX_COUNT, FOUND, NEVER
from rooflines.solvers.size_axis import DECAY, EXPERT_TERMS
from rooflines.theory.resources import MATH, NON_MATH

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rooflines.solvers.size_axis import AxisLines
    from rooflines.sweep.cases import Case
    from rooflines.theory.resources import Resource

ROUNDING = 1e-14
"""Relative error of a sum over products of one sign [1]: about thirty roundings, 1.1e-16 each."""

TIE_TOLERANCE = 4.0 * ROUNDING
"""Numbers are equal if their difference is a smaller share of their sum [1]."""

MAX_TIE_TOLERANCE = 1e-9
"""Crossovers that differ by more are never equal, however large the bound on their error is [1]."""

MAX_SLACK = 0.5
"""Largest correction to a real threshold before it is rounded [1]: where two times are nearly
parallel, the bound on the error is far larger than the error."""

MAX_NEWTON_STEPS = 60
"""Limit on Newton steps, more than are ever taken [1]."""

NEWTON_TOLERANCE = 4e-16
"""Newton's method ends with a step of at most this share of the size [1]."""

WHOLE_PEAK = Fraction(1)
"""Share of the attainable peak from which a row is compute-bound [1]."""

MATH_LINE = f"{MATH.name}:0:0"
"""Name of the line with t_math."""

Names = dict["Resource", list[str]]
"""Names of lines by resource; the largest line is the resource's time."""


@dataclass(frozen=True)
class Crossover:
    """Crossover of t_math with another time.

    Attributes:
        real: Real size, in extents [1]; null: never.
        error: Bound on its relative error [1].
    """

    real: pl.Expr
    error: pl.Expr

    def columns(self, name: str) -> dict[str, pl.Expr]:
        """Columns `#real:<name>` and `#error:<name>`."""
        return {f"#real:{name}": self.real, f"#error:{name}": self.error}

    @classmethod
    def read(cls, name: str) -> Crossover:
        """Crossover in the columns `#real:<name>` and `#error:<name>`."""
        return cls(pl.col(f"#real:{name}"), pl.col(f"#error:{name}"))

    @classmethod
    def last(cls, names: Iterable[str]) -> Crossover:
        """Last crossover with several times; never, if t_math never reaches one."""
        crossovers = [cls.read(name) for name in names]
        never = reduce(or_, [crossover.real.is_null() for crossover in crossovers])
        real = pl.max_horizontal([crossover.real for crossover in crossovers])
        error = pl.max_horizontal([crossover.error for crossover in crossovers])
        return cls(pl.when(~never).then(real), error)

    def whole(self, span: pl.Expr) -> pl.Expr:
        """Smallest whole size [1]; null: never, or `MAX_COUNT` or more.

        Args:
            span: Elements in an extent [1].
        """
        slack = (self.real * self.error).clip(0.0, MAX_SLACK)
        extents = (self.real - slack).ceil().clip(1.0, float(MAX_COUNT))
        before = extents.cast(pl.Int64) - 1
        return pl.when(before <= pl.lit(MAX_COUNT - 2) // span).then(before * span + 1)


def add_times(axis_lines: AxisLines, cases: Sequence[Case]) -> Names:
    """Add the lines of all nominal times; t_math is `MATH_LINE`."""
    axis_lines.add_time(MATH.name, [case.times.by_bound[MATH.bound] for case in cases])
    names: Names = {}
    for resource in NON_MATH:
        pieces = axis_lines.add_time(
            resource.name, [case.times.by_bound[resource.bound] for case in cases]
        )
        names[resource] = [name for (name,) in pieces]
    return names


def with_thresholds(
    frame: pl.DataFrame, names: Names, share: Fraction = WHOLE_PEAK
) -> pl.LazyFrame:
    """Add the thresholds along a size.

    Args:
        frame: The lines; `#span`, elements in an extent; and `#min_size`, the smallest size [1].
        names: The names of the lines.
        share: Share of the attainable peak, attained where every other time is at most
            t_math / share [1].

    Returns:
        The frame with `outcome`, `critical_exact`, `critical`, `critical_<resource>` and `limit`.
    """
    if share != 1:
        math = (pl.col(f"#{part}:{MATH_LINE}") for part in ("slope", "constant"))
        frame = frame.with_columns(quotient(column, pl.lit(float(share))) for column in math)
    all_lines = [name for lines in names.values() for name in lines]
    frame = frame.with_columns(
        **{
            column: value
            for line in all_lines
            for column, value in _crossover(pl.col(f"#slope:{line}"), pl.col(f"#constant:{line}"))
            .columns(line)
            .items()
        }
    )
    for name in all_lines:
        parts = [part for part in EXPERT_TERMS if f"#{part}:{name}" in frame.columns]
        if parts:
            frame = _with_experts(frame, name, parts)
    by_resource: dict[str, pl.Expr] = {}
    for resource, lines in names.items():
        by_resource |= Crossover.last(lines).columns(resource.name)
    span, min_size = pl.col("#span"), pl.col("#min_size")
    line_names = {
        "critical": "all",
        **{f"critical_{resource.name}": resource.name for resource in names},
    }
    whole = {column: Crossover.read(name).whole(span) for column, name in line_names.items()}
    clipped = {
        column: pl.when(pl.col(column).is_not_null()).then(pl.max_horizontal(column, min_size))
        for column in whole
    }
    outcome = (
        pl.when(pl.col("critical_exact").is_null())
        .then(pl.lit(NEVER))
        .when(pl.col("critical").is_null())
        .then(pl.lit(BEYOND_MAX_COUNT))
        .when(pl.col("critical") <= min_size)
        .then(pl.lit(ALWAYS))
        .otherwise(pl.lit(FOUND))
    )
    return (
        frame.lazy()
        .with_columns(**by_resource)
        .with_columns(
            **Crossover.last(resource.name for resource in names).columns("all"), limit=limit(names)
        )
        .with_columns(critical_exact=(pl.col("#real:all") * span).abs(), **whole)  # no -0.0
        .with_columns(**clipped)
        .with_columns(outcome=outcome)
        .with_columns(limit=pl.when(pl.col("outcome") != ALWAYS).then("limit"))
    )


def _crossover(slope: pl.Expr, constant: pl.Expr) -> Crossover:
    """Crossover after which t_math stays above a line."""
    math_slope, math_constant = pl.col(f"#slope:{MATH_LINE}"), pl.col(f"#constant:{MATH_LINE}")
    slope_gap, slope_sum = math_slope - slope, math_slope + slope
    is_parallel = slope_gap.abs() <= TIE_TOLERANCE * slope_sum
    crossing = quotient(constant - math_constant, slope_gap).clip(0.0)
    return Crossover(
        pl.when(is_parallel)
        .then(pl.when(constant <= math_constant).then(0.0))
        .when(slope_gap > 0)
        .then(crossing),
        pl.when(is_parallel).then(0.0).otherwise(ROUNDING * (2.0 + slope_sum / slope_gap.abs())),
    )


def _with_experts(frame: pl.DataFrame, name: str, parts: Sequence[str]) -> pl.DataFrame:
    """Add the crossover of t_math with a line that has experts, by Newton's method.

    t_math minus the line is convex in n: from a size that uses all experts, every step stays above
    the crossover. Rows end independently, so that a last digit does not depend on other rows.
    """
    slope, constant = (pl.col(f"#{part}:{name}") for part in ("slope", "constant"))
    expert_times = {part: pl.col(f"#{part}:{name}") for part in parts}
    experts = reduce(add, expert_times.values())
    frame = frame.with_columns(**_crossover(slope, constant + experts).columns(name))
    math_slope, real = pl.col(f"#slope:{MATH_LINE}"), pl.col(f"#real:{name}")
    slope_gap = math_slope - slope
    decays = {part: pl.col(f"{DECAY}:{part}") for part in parts}
    unused_times = {
        part: seconds * (-decays[part] * real).exp() for part, seconds in expert_times.items()
    }
    unused = reduce(add, unused_times.values())
    expert_slope = reduce(add, (unused_times[part] * decays[part] for part in parts))
    constant_gap = constant - pl.col(f"#constant:{MATH_LINE}") + experts
    step = (slope_gap * real - constant_gap + unused) / (slope_gap - expert_slope)
    frame = frame.with_columns((experts > 0).alias("#moves"))
    for _ in range(MAX_NEWTON_STEPS):
        previous = frame[f"#real:{name}"]
        stepped = pl.when("#moves").then(real - step).otherwise(real)
        frame = frame.with_columns(stepped.alias(f"#real:{name}"))
        moved = (previous - frame[f"#real:{name}"]).abs() > previous.abs() * NEWTON_TOLERANCE
        frame = frame.with_columns(moved.alias("#moves"))
        if not moved.any():
            break
    growth, size = slope_gap - expert_slope, math_slope + slope + experts / real
    error = pl.when(experts > 0).then(ROUNDING * (2.0 + size / growth.abs()))
    return frame.with_columns(error.otherwise(pl.col(f"#error:{name}")).alias(f"#error:{name}"))


def limit(names: Names) -> pl.Expr:
    """Bottleneck below the threshold; of equals, the first.

    The resource that t_math reaches last; among resources that it never reaches, the one with the
    largest slope, and among equal slopes with the largest constant.
    """
    unreached = {resource: pl.col(f"#real:{resource.name}").is_null() for resource in names}

    def unreached_value(part: str, resource: Resource) -> pl.Expr:
        """Largest slope or constant among a resource's lines that t_math never reaches."""
        return pl.max_horizontal(
            pl.when(pl.col(f"#real:{name}").is_null()).then(pl.col(f"#{part}:{name}"))
            for name in names[resource]
        )

    fastest = pl.max_horizontal(unreached_value("slope", resource) for resource in names) * (
        1.0 - TIE_TOLERANCE
    )
    ranks = {
        resource.bound: pl.when(unreached_value("slope", resource) >= fastest).then(
            unreached_value("constant", resource)
        )
        for resource in names
    }
    error = pl.max_horizontal(f"#error:{resource.name}" for resource in names)
    crossovers = {resource.bound: pl.col(f"#real:{resource.name}") for resource in names}
    return (
        pl.when(reduce(or_, unreached.values()))
        .then(first_largest(ranks, TIE_TOLERANCE))
        .otherwise(first_largest(crossovers, 2.0 * error.clip(0.0, MAX_TIE_TOLERANCE)))
    )


def first_largest(ranks: Mapping[str, pl.Expr], slack: pl.Expr | float) -> pl.Expr:
    """Name of the first rank that equals the largest; null ranks are left out.

    Args:
        ranks: Not negative, by name.
        slack: Relative difference up to which ranks are equal [1].
    """
    min_rank = pl.max_horizontal(*ranks.values()) * (1.0 - slack)
    return pl.coalesce(pl.when(rank >= min_rank).then(pl.lit(name)) for name, rank in ranks.items())
