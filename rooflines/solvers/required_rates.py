"""Required rates: the rate at which a row becomes compute-bound, all else equal, in closed form.

Every time is t_r = max(work_r / rate_r, latency_r). A factor on one rate scales the first term of
one time and nothing else, so the condition t_math >= t_r has a solution:

    peak          the largest factor <= 1:  t_math / (largest other time)
    memory_rate   the smallest factor >= 1: t_memory / t_math
    network_rate  the smallest factor >= 1: t_network / t_math

A factor on the network's rate scales every level. No factor on one rate helps where its latency
alone exceeds t_math, or where another resource takes longer than the math. For a share q of the
attainable peak, t_math / q takes the place of t_math. Times that differ by no more than roundings
are equal.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import polars as pl

from rooflines.basics.expressions import quotient
from rooflines.dictionary.columns import ALWAYS, FOUND, NEVER
from rooflines.evaluation.compiler import RowCompiler
from rooflines.evaluation.operation_rows import resource_times
from rooflines.solvers.crossover import TIE_TOLERANCE, first_largest
from rooflines.sweep.cases import Block
from rooflines.theory.resources import MATH, NETWORK, NON_MATH, RATES, RESOURCES, Resource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.sweep.operation_sweep import Sweep

LATENCY, OTHER_RESOURCE = "latency", "other"
"""Reasons why no factor on a rate is enough: its resource's latency, or another resource."""


def limit_share(needed: Fraction, limit_intensity: float) -> float:
    """Share of the attainable peak as a dimension grows: min(1, limit_intensity / needed) [1].

    The share below each resource's roofline grows with the size, so the limit is never exceeded.

    Args:
        needed: Ridge of the resource that binds, peak over its rate [FLOP/byte].
        limit_intensity: Limit of the arithmetic intensity against it [FLOP/byte].

    Source: All About Rooflines, "Visualizing rooflines".
    """
    return min(1.0, float(Fraction(limit_intensity) / needed))


def longest_time(resources: Sequence[Resource]) -> tuple[pl.Expr, pl.Expr]:
    """Largest time among resources [s], and the bottleneck: the first resource that has it."""
    times = {resource.bound: pl.col(f"#t_{resource.name}") for resource in resources}
    return pl.max_horizontal(*times.values()), first_largest(times, TIE_TOLERANCE)


def exceeds_math(time: pl.Expr) -> pl.Expr:
    """True if a time exceeds t_math by more than roundings."""
    return time * (1.0 - TIE_TOLERANCE) > pl.col(f"#t_{MATH.name}")


def solve_rate(resource: Resource) -> dict[str, pl.Expr]:
    """Solve for the factor on a resource's rate, from `#t_<r>` and `#latency_<r>` of all resources.

    Returns:
        `critical_exact`, the factor [1], null: no factor helps; `outcome`; and `limit`, the
        bottleneck on the other side or, without a factor, the obstacle: the resource itself by its
        latency, or another resource.
    """
    math_s, (longest, limit) = pl.col(f"#t_{MATH.name}"), longest_time(NON_MATH)
    is_compute_bound = ~exceeds_math(longest)
    factor = quotient(math_s, longest)
    if resource is not MATH:
        is_latency_bound = exceeds_math(pl.col(f"#latency_{resource.name}"))
        rest, rest_limit = longest_time(
            [candidate for candidate in NON_MATH if candidate is not resource]
        )
        is_rest_bound = exceeds_math(rest)
        own_bound = pl.lit(resource.bound)
        factor = pl.when(~is_latency_bound & ~is_rest_bound).then(
            quotient(pl.col(f"#t_{resource.name}"), math_s)
        )
        limit = pl.when(~is_latency_bound & is_rest_bound).then(rest_limit).otherwise(own_bound)
    return {
        "critical_exact": pl.when(is_compute_bound).then(1.0).otherwise(factor),
        "limit": pl.when(~is_compute_bound).then(limit),
        "outcome": pl.when(is_compute_bound)
        .then(pl.lit(ALWAYS))
        .when(factor.is_null())
        .then(pl.lit(NEVER))
        .otherwise(pl.lit(FOUND)),
    }


def rates_at(
    times: Mapping[Resource, float], latencies: Mapping[Resource, float]
) -> dict[str, dict[str, Any]]:
    """Required factors on all rates of one row.

    Args:
        times: Time, by resource [s].
        latencies: Least time for any amount of work, by resource [s].

    Returns:
        By rate: `critical_exact`, `limit`, and `outcome`, with `LATENCY` or `OTHER_RESOURCE` in
        place of `NEVER`.
    """
    row = pl.DataFrame(
        {
            **{f"#t_{resource.name}": [time] for resource, time in times.items()},
            **{f"#latency_{resource.name}": [time] for resource, time in latencies.items()},
        }
    )
    solutions = {}
    for name, resource in RATES.items():
        solution = row.select(**solve_rate(resource)).row(0, named=True)
        if solution["outcome"] == NEVER:
            is_own_latency = solution["limit"] == resource.bound
            solution["outcome"] = LATENCY if is_own_latency else OTHER_RESOURCE
        solutions[name] = solution
    return solutions


def rate_thresholds(sweep: Sweep, target: Resource) -> Iterator[tuple[Fraction, pl.DataFrame]]:
    """Yield the factors on a resource's rate at which rows attain a share of the peak, in slices.

    Args:
        sweep: The sweep.
        target: The resource whose rate is solved for.

    Yields:
        A share of the attainable peak, and the columns of thresholds along the rate.
    """
    cases = sweep.cases
    block = Block((), cases, sweep.size_axes)
    compiler = RowCompiler(block, inner=len(block.after))
    works = compiler.works([resource.work for resource in RESOURCES])
    seconds = resource_times(compiler, cases)
    times = {f"#t_{resource.name}": seconds[f"t_{resource.name}_s"] for resource in RESOURCES}
    times |= {f"#latency_{resource.name}": pl.lit(0.0) for resource in RESOURCES}
    hops = [max((poly.at({}) for poly in case.collective_times.hops), default=0) for case in cases]
    times[f"#latency_{NETWORK.name}"] = compiler.constant(list(map(float, hops)))
    math_s = f"#t_{MATH.name}"
    for share in sweep.shares:
        shared = {math_s: quotient(pl.col(math_s), pl.lit(float(share)))}
        for frame in compiler.slices([works, times, shared, solve_rate(target)]):
            yield share, frame
