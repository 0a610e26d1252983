"""The rate at which a row becomes compute-bound, all else equal, in closed form.

Every time is t_r = max(work_r / rate_r, latency_r). A factor on one rate scales the first term of
one time and nothing else, so the condition t_math >= t_r has an exact solution:

    peak          the largest factor <= 1:  t_math / (largest other time)
    memory_rate   the smallest factor >= 1: (memory_bytes / rate) / t_math
    network_rate  the smallest factor >= 1: (network_bytes / rate) / t_math

A factor on the network's rate is one on every level of it. No factor on one rate helps where its
latency alone exceeds t_math, or where yet another resource takes longer than the math. For a share
q of the attainable peak, t_math / q takes the place of t_math.

Tables have the factors in Float64, computed from the times of their rows; times that differ by no
more than roundings are equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import polars as pl

from rooflines.critical.solving import TIED, WHOLE_PEAK, first_largest, solve_in_slices
from rooflines.model.columns import ALWAYS, FOUND, NEVER
from rooflines.model.resources import MATH, OTHERS, RESOURCES, Resource
from rooflines.sweep.metrics import quotient, time, work
from rooflines.sweep.space import ChipVariant, axis_columns, variant_columns
from rooflines.sweep.ties import exact_parts, exact_time

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

    from rooflines.model.target import Target
    from rooflines.sweep.sweep import Sweep

LATENCY, OTHER = "latency", "other"
"""Why no factor on a rate is enough; in tables both are `never`."""


@dataclass(frozen=True)
class RateSolution:
    """The factor on one rate of the chip at which a row becomes compute-bound.

    Attributes:
        factor: Exact [1]; of the peak at most 1, of another rate at least 1; None: no factor.
        outcome: `found`; `always`: compute-bound as it is (factor 1); `latency`: no rate helps,
            since the resource's latency exceeds t_math; `other`: no rate helps, since yet another
            resource takes longer than the math.
        limit: The bottleneck on the other side of the factor or, where there is none, what rules it
            out; None for `always`.
    """

    factor: Fraction | None
    outcome: str
    limit: str | None


def rate_factor(
    sweep: Sweep,
    chip_variant: ChipVariant,
    resource: Resource,
    sizes: Mapping[str, int],
    share: Fraction = WHOLE_PEAK,
) -> RateSolution:
    """The factor on a resource's rate at which one row becomes compute-bound, all else equal.

    Args:
        sweep: The sweep.
        chip_variant: The row's chip and variant.
        resource: Whose rate is multiplied; its latency is not.
        sizes: The sizes of all dimensions [1].
        share: The share of the attainable peak to solve for; 1: compute-bound [1].
    """
    times = {each: exact_time(sweep, *chip_variant, each, sizes) for each in RESOURCES}
    parts = [exact_parts(sweep, *chip_variant, resource, sizes)]
    return factor_of(resource, {**times, MATH: times[MATH] / share}, parts)


def factor_of(
    resource: Resource,
    times: Mapping[Resource, Fraction],
    parts: Sequence[tuple[Fraction, Fraction]],
) -> RateSolution:
    """The factor on a resource's rate at which t_math is at least every other time.

    Args:
        resource: Whose rate is multiplied; its latency is not.
        times: The time of every resource [s].
        parts: What the resource's time is the sum of: max(work / rate, latency), as pairs of both
            [s].
    """
    math_s = times[MATH]
    longest = max(OTHERS, key=times.__getitem__)
    if math_s >= times[longest]:
        return RateSolution(Fraction(1), ALWAYS, None)
    if resource is MATH:
        return RateSolution(math_s / times[longest], FOUND, longest.bound)
    if sum(latency_s for _, latency_s in parts) > math_s:
        return RateSolution(None, LATENCY, resource.bound)
    rest = max((each for each in OTHERS if each is not resource), key=times.__getitem__)
    if times[rest] > math_s:
        return RateSolution(None, OTHER, rest.bound)
    return RateSolution(_slowed(parts, math_s), FOUND, resource.bound)


def _slowed(parts: Sequence[tuple[Fraction, Fraction]], most_s: Fraction) -> Fraction:
    """The smallest factor on a rate at which parts take at most a time, shorter than at factor 1.

    The time is convex and piecewise linear in the inverse of the factor: Newton's method from above
    ends at the solution, after a step for each part at most.
    """
    inverse = Fraction(1)
    while sum(max(work_s * inverse, latency_s) for work_s, latency_s in parts) > most_s:
        working = [work_s for work_s, latency_s in parts if work_s * inverse > latency_s]
        waiting = sum(latency_s for work_s, latency_s in parts if work_s * inverse <= latency_s)
        inverse = (most_s - waiting) / sum(working)
    return 1 / inverse


def needed_intensity(target: Target, resource: Resource) -> Fraction | None:
    """The intensity from which on t_math is at least a resource's time: the ridge [FLOP/byte].

    Returns:
        The rate of math over the resource's rate; None where the target lacks the resource.

    Source: All About Rooflines, "Visualizing rooflines".
    """
    math, rate = MATH.rate(target), resource.rate(target)
    return math.per_s / rate.per_s if math and rate else None


def limit_share(needed: Fraction, limit_intensity: float) -> float:
    """The share of the attainable peak that an operation tends to along a dimension [1].

    Every share of one resource's roofline grows with the size, so the limit is never exceeded.

    Args:
        needed: The critical intensity of the resource that binds, from `needed_intensity`.
        limit_intensity: What the intensity against it tends to [FLOP/byte].
    """
    return min(1.0, float(Fraction(limit_intensity) / needed))


def longest_of(resources: Sequence[Resource]) -> tuple[pl.Expr, pl.Expr]:
    """The largest time of some resources [s], and the bottleneck that the first such one is."""
    times = {resource.bound: pl.col(f"#t_{resource.name}") for resource in resources}
    return pl.max_horizontal(*times.values()), first_largest(times, TIED)


def exceeds(time: pl.Expr, math_s: pl.Expr) -> pl.Expr:
    """Whether a time is above that of the math, and not equal but for roundings."""
    return time * (1.0 - TIED) > math_s


def factors(resource: Resource, columns: Container[str]) -> tuple[pl.Expr, pl.Expr]:
    """The factor on a resource's rate of a row that is not compute-bound, by `#math` and `#t_<r>`.

    Returns:
        The factor [1], null: none; and the bottleneck on its other side, or what rules it out.
    """
    math_s, own = pl.col("#math"), pl.col(f"#t_{resource.name}")
    longest, limit = longest_of(OTHERS)
    if resource is MATH:
        return quotient(math_s, longest), limit
    factor, limit = quotient(own, math_s), pl.lit(resource.bound)
    if rest := [each for each in OTHERS if each is not resource]:
        longest, of_rest = longest_of(rest)
        ruled_out = exceeds(longest, math_s)
        factor = pl.when(~ruled_out).then(factor)
        limit = pl.when(ruled_out).then(of_rest).otherwise(limit)
    if (latency := f"#latency_{resource.name}") in columns:
        waits = exceeds(pl.col(latency), math_s)
        factor = pl.when(~waits).then(factor)
        limit = pl.when(waits).then(pl.lit(resource.bound)).otherwise(limit)
    return factor, limit


def rate_thresholds(
    sweep: Sweep, resource: Resource, share: Fraction = WHOLE_PEAK
) -> Iterator[pl.DataFrame]:
    """The factors on a resource's rate at which rows attain a share of the peak, in slices.

    Args:
        sweep: The sweep.
        resource: The resource whose rate is solved for.
        share: Share of the attainable peak [1].

    Yields:
        The columns of thresholds along the rate.
    """
    variants = sweep.chip_variants
    coefficients, constants = variant_columns(sweep, variants)
    whole: dict[str, pl.Expr] = {
        "critical": pl.lit(None, dtype=pl.Int64),
        **{f"critical_{each.name}": pl.lit(None, dtype=pl.Int64) for each in OTHERS},
        "limit_intensity": pl.lit(None, dtype=pl.Float64),
    }
    factor, limit = factors(resource, constants)
    is_bound = ~exceeds(longest_of(OTHERS)[0], pl.col("#math"))

    def solve(frame: pl.LazyFrame) -> pl.LazyFrame:
        works = {
            each.work: work(sweep, each.work, coefficients[each.work], constants)
            for each in RESOURCES
        }
        times = {f"#t_{each.name}": time(each, constants) for each in RESOURCES}
        return (
            frame.with_columns(**works)
            .with_columns(**times)
            .with_columns(**{"#math": quotient(pl.col(f"#t_{MATH.name}"), pl.lit(float(share)))})
            .with_columns(
                critical_exact=pl.when(is_bound).then(1.0).otherwise(factor),
                limit=pl.when(~is_bound).then(limit),
                **whole,
            )
            .with_columns(
                outcome=pl.when(is_bound)
                .then(pl.lit(ALWAYS))
                .when(pl.col("critical_exact").is_null())
                .then(pl.lit(NEVER))
                .otherwise(pl.lit(FOUND))
            )
        )

    yield from solve_in_slices(
        [constants, *map(axis_columns, (*sweep.leading, *sweep.inner))],
        solve,
    )
