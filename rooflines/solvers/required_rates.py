"""The rate at which a row becomes compute-bound, all else equal, in closed form.

Every time is t_r = max(work_r / rate_r, latency_r). A factor on one rate scales the first term of
one time and nothing else, so the condition t_math >= t_r has a solution:

    peak          the largest factor <= 1:  t_math / (largest other time)
    memory_rate   the smallest factor >= 1: t_memory / t_math
    network_rate  the smallest factor >= 1: t_network / t_math

A factor on the network's rate is one on every level of it. No factor on one rate helps where its
latency alone exceeds t_math, or where yet another resource takes longer than the math. For a share
q of the attainable peak, t_math / q takes the place of t_math. Times that differ by no more than
roundings are equal.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import polars as pl

from rooflines.dictionary.columns import ALWAYS, FOUND, NEVER
from rooflines.evaluation.compiler import Sheet, quotient
from rooflines.solvers.crossover import TIED, first_largest
from rooflines.sweep.cases import Block
from rooflines.theory.resources import MATH, OTHERS, RATES, RESOURCES, Resource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.sweep.operation_sweep import Sweep

LATENCY, OTHER = "latency", "other"
"""Why no factor on a rate is enough: its resource's latency, or another resource."""


def limit_share(needed: Fraction, limit_intensity: float) -> float:
    """The share of the attainable peak that an operation tends to along a dimension [1].

    Every share of one resource's roofline grows with the size, so the limit is never exceeded.

    Args:
        needed: The ridge of the resource that binds, the rate of math over its own [FLOP/byte].
        limit_intensity: What the intensity against it tends to [FLOP/byte].

    Source: All About Rooflines, "Visualizing rooflines".
    """
    return min(1.0, float(Fraction(limit_intensity) / needed))


def longest_of(resources: Sequence[Resource]) -> tuple[pl.Expr, pl.Expr]:
    """The largest time of some resources [s], and the bottleneck that the first such one is."""
    times = {resource.bound: pl.col(f"#t_{resource.name}") for resource in resources}
    return pl.max_horizontal(*times.values()), first_largest(times, TIED)


def exceeds(time: pl.Expr) -> pl.Expr:
    """Whether a time is above that of the math, and not equal but for roundings."""
    return time * (1.0 - TIED) > pl.col(f"#t_{MATH.name}")


def solved_rate(resource: Resource) -> dict[str, pl.Expr]:
    """The factor on a resource's rate, by `#t_<r>` and `#latency_<r>` of every resource.

    Returns:
        `critical_exact`, the factor [1], null: none helps; `outcome`; and `limit`, the bottleneck
        on its other side or, without a factor, what rules it out: the resource itself by its
        latency, or another one.
    """
    math_s, (longest, limit) = pl.col(f"#t_{MATH.name}"), longest_of(OTHERS)
    is_bound = ~exceeds(longest)
    factor = quotient(math_s, longest)
    if resource is not MATH:
        waits = exceeds(pl.col(f"#latency_{resource.name}"))
        rest, of_rest = longest_of([each for each in OTHERS if each is not resource])
        ruled_out = exceeds(rest)
        own = pl.lit(resource.bound)
        factor = pl.when(~waits & ~ruled_out).then(quotient(pl.col(f"#t_{resource.name}"), math_s))
        limit = pl.when(~waits & ruled_out).then(of_rest).otherwise(own)
    return {
        "critical_exact": pl.when(is_bound).then(1.0).otherwise(factor),
        "limit": pl.when(~is_bound).then(limit),
        "outcome": pl.when(is_bound)
        .then(pl.lit(ALWAYS))
        .when(factor.is_null())
        .then(pl.lit(NEVER))
        .otherwise(pl.lit(FOUND)),
    }


def rates_at(
    times: Mapping[Resource, float], latencies: Mapping[Resource, float]
) -> dict[str, dict[str, Any]]:
    """The factors on all rates of one row.

    Args:
        times: The time of every resource [s].
        latencies: The least time of any amount of its work [s].

    Returns:
        By rate: `critical_exact`, `limit`, and `outcome`, where `NEVER` is `LATENCY` or `OTHER`.
    """
    row = pl.DataFrame(
        {
            **{f"#t_{each.name}": [time] for each, time in times.items()},
            **{f"#latency_{each.name}": [time] for each, time in latencies.items()},
        }
    )
    found = {}
    for name, resource in RATES.items():
        solution = row.select(**solved_rate(resource)).row(0, named=True)
        if solution["outcome"] == NEVER:
            own = solution["limit"] == resource.bound
            solution["outcome"] = LATENCY if own else OTHER
        found[name] = solution
    return found


def rate_thresholds(sweep: Sweep, resource: Resource) -> Iterator[tuple[Fraction, pl.DataFrame]]:
    """The factors on a resource's rate at which rows attain a share of the peak, in slices.

    Args:
        sweep: The sweep.
        resource: The resource whose rate is solved for.

    Yields:
        Shares of the attainable peak, and the columns of thresholds along the rate.
    """
    cases = sweep.cases
    block = Block((), cases, sweep.size_axes)
    sheet = Sheet([block], inner=len(block.after))
    works, times = sheet.works([each.work for each in RESOURCES]), dict[str, pl.Expr]()
    for each in RESOURCES:
        of_cases = sheet.time([case.times.by[each.bound] for case in cases])
        times[f"#t_{each.name}"] = sheet.total(of_cases)
        waits = [max((poly.at({}) for poly in case.apart(each)[1]), default=0) for case in cases]
        times[f"#latency_{each.name}"] = sheet.constant(list(map(float, waits)))
    math_s = f"#t_{MATH.name}"
    for share in sweep.shares:
        shared = {math_s: quotient(pl.col(math_s), pl.lit(float(share)))}
        for frame in sheet.slices([works, times, shared, solved_rate(resource)], block.rows):
            yield share, frame
