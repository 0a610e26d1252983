"""The resources that rows need, as one list: times, bounds and thresholds are computed over it.

A resource has a cost (a column that is also a polynomial of the sizes) and a rate. To model a
fourth one, add an entry to `RESOURCES` and, if its cost is new, one to `costs.COSTS`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rooflines.model.target import Target

__all__ = [
    "MATH",
    "RESOURCES",
    "Calibration",
    "Rate",
    "Resource",
    "estimate_rate",
    "math_rate",
    "memory_rate",
    "network_rate",
]


@dataclass(frozen=True)
class Rate:
    """The rate of a resource on a chip.

    Attributes:
        per_s: Work per second, efficiency included [FLOP/s or byte/s].
        latency_s: The least time of any amount of work [s].
    """

    per_s: Fraction
    latency_s: Fraction = Fraction(0)


def math_rate(target: Target) -> Rate:
    """FLOP/s of the compute unit in the compute dtype."""
    return Rate(target.peak * target.efficiency["math"])


def memory_rate(target: Target) -> Rate:
    """Bytes/s between the memory level and the unit."""
    return Rate(target.level.bytes_per_s * target.efficiency["memory"])


def network_rate(target: Target) -> Rate | None:
    """Bytes/s out of one chip over the links that the collective uses at once.

    The latency is that of all its hops.
    """
    link = target.link
    if link is None or target.shards == 1:
        return None
    return Rate(
        link.bytes_per_s * link.links_used(target.shards) * target.efficiency["network"],
        target.sharding.hops(target.shards) * link.hop_latency_s,
    )


@dataclass(frozen=True)
class Resource:
    """A resource of a chip, which can be the bottleneck of a row.

    Attributes:
        name: In column names: `t_<name>_s`, `<name>_intensity`, `critical_<name>`.
        work: The column of its work.
        bound: Its name as a bottleneck, in column `bound`.
        rate: Its rate on a target; None where the target lacks it and no work needs it.
    """

    name: str
    work: str
    bound: str
    rate: Callable[[Target], Rate | None]


RESOURCES: tuple[Resource, ...] = (
    Resource("math", "flops", "compute", math_rate),
    Resource("memory", "memory_bytes", "memory", memory_rate),
    Resource("network", "network_bytes", "network", network_rate),
)
"""All resources; the others are compared with the first, and the earlier one wins a tie."""

MATH = RESOURCES[0]


@dataclass(frozen=True)
class Calibration:
    """Fitted numbers of a chip in one compute dtype.

    They give `t_estimate_s` and nothing else: times, bounds and thresholds stay nominal.

    Attributes:
        shares: Share of the nominal rate that measurements reach, 0..1, by resource name; 1 for a
            resource that is left out.
        overhead_s: Fixed time of every operation [s].
    """

    shares: Mapping[str, Fraction]
    overhead_s: Fraction


def estimate_rate(resource: Resource, target: Target, calibration: Calibration) -> Rate | None:
    """The calibrated rate of a resource.

    Args:
        resource: The resource.
        target: What it is a resource of; its `efficiency`, a what-if, is not applied.
        calibration: The fitted numbers.

    Returns:
        A rate whose times are the nominal ones over the fitted share; None where the target
        lacks the resource.
    """
    nominal = resource.rate(
        replace(target, efficiency=dict.fromkeys(target.efficiency, Fraction(1)))
    )
    share = calibration.shares.get(resource.name, Fraction(1))
    return nominal and Rate(nominal.per_s * share, nominal.latency_s / share)
