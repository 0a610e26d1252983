"""The rate at which a row becomes compute-bound, all else equal, in closed form.

Every time is t_r = max(work_r / rate_r, latency_r). A factor on one rate scales the first term of
one time and nothing else, so the condition t_math >= t_r has an exact solution:

    peak          the largest factor <= 1:  t_math / (largest other time)
    memory_rate   the smallest factor >= 1: (memory_bytes / rate) / t_math
    network_rate  the smallest factor >= 1: (network_bytes / rate) / t_math

A factor on the network's rate is one on every level of it. No factor on one rate helps where its
latency alone exceeds t_math, or where yet another resource takes longer than the math.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from rooflines.critical.solving import OTHERS
from rooflines.model.columns import ALWAYS, FOUND
from rooflines.model.resources import MATH, RESOURCES, Resource
from rooflines.sweep.ties import exact_parts, exact_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.model.target import Target
    from rooflines.sweep.space import ChipVariant
    from rooflines.sweep.sweep import Sweep

__all__ = ["LATENCY", "OTHER", "RATES", "RateSolution", "needed_intensity", "rate_factor"]

RATES: Mapping[str, Resource] = {
    "peak" if resource is MATH else f"{resource.name}_rate": resource for resource in RESOURCES
}
"""The rates that can be solved for, by name: peak, memory_rate, network_rate."""

LATENCY, OTHER = "latency", "other"
"""Outcomes of rates besides those of sizes."""


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
    sweep: Sweep, chip_variant: ChipVariant, resource: Resource, sizes: Mapping[str, int]
) -> RateSolution:
    """The factor on a resource's rate at which one row becomes compute-bound, all else equal.

    Args:
        sweep: The sweep.
        chip_variant: The row's chip and variant.
        resource: Whose rate is multiplied; its latency is not.
        sizes: The sizes of all dimensions [1].
    """
    times = {each: exact_time(sweep, *chip_variant, each, sizes) for each in RESOURCES}
    longest = max(OTHERS, key=times.__getitem__)
    if times[MATH] >= times[longest]:
        return RateSolution(Fraction(1), ALWAYS, None)
    if resource is MATH:
        return RateSolution(times[MATH] / times[longest], FOUND, longest.bound)
    work_s, latency_s = exact_parts(sweep, *chip_variant, resource, sizes)
    if latency_s > times[MATH]:
        return RateSolution(None, LATENCY, resource.bound)
    rest = max((each for each in OTHERS if each is not resource), key=times.__getitem__)
    if times[rest] > times[MATH]:
        return RateSolution(None, OTHER, rest.bound)
    return RateSolution(work_s / times[MATH], FOUND, resource.bound)


def needed_intensity(target: Target, resource: Resource) -> Fraction | None:
    """The intensity from which on t_math is at least a resource's time: the ridge [FLOP/byte].

    Returns:
        The rate of math over the resource's rate; None where the target lacks the resource.

    Source: All About Rooflines, "Visualizing rooflines".
    """
    math, rate = MATH.rate(target), resource.rate(target)
    return math.per_s / rate.per_s if math and rate else None
