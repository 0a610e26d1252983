"""The resources that rows need, as one list: times, bounds and thresholds are computed over it.

A resource has a cost (a column that is also a polynomial of the sizes) and a rate. To model a
fourth one, add an entry to `RESOURCES` and, if its cost is new, one to `costs.COSTS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rooflines.model.network import Route
    from rooflines.model.target import Target


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


def collective_rates(
    route: Route, collective: str, efficiency: Fraction, *, typical: bool = False
) -> list[Rate]:
    """Bytes/s out of one chip on every level of a route, over the links used at once.

    Args:
        route: The interconnects.
        collective: A key of `network.PASSES`.
        efficiency: Share of the nominal rates that is reached, 0..1 [1].
        typical: Whether hops take their usual time instead of the least.

    Returns:
        A rate for each level, inner first, with the latency of its hops.
    """
    latencies = route.latencies_s(collective, typical=typical)
    return [
        Rate(level.bytes_per_s * efficiency, latency)
        for level, latency in zip(route.levels, latencies, strict=True)
    ]


def network_rates(target: Target, *, typical: bool = False) -> list[Rate]:
    """Bytes/s out of one chip on every level of the network, over the links used at once.

    Args:
        target: Its collectives are all of one kind.
        typical: Whether hops take their usual time instead of the least.

    Returns:
        A rate for each level, inner first, with the latency of all hops; none without a collective.
    """
    route, transfers = target.route, target.sharding.transfers
    if route is None or not transfers:
        return []
    rates = collective_rates(route, transfers[0][1], target.efficiency["network"], typical=typical)
    return [Rate(rate.per_s, len(transfers) * rate.latency_s) for rate in rates]


def collective_rate(
    route: Route, collective: str, efficiency: Fraction, *, typical: bool = False
) -> Rate:
    """Bytes/s out of one chip in a collective, over all levels of a route.

    The levels send chunks of the payload at the same time, so the slowest one determines the time.

    Args:
        route: The interconnects.
        collective: A key of `network.PASSES`.
        efficiency: Share of the nominal rates that is reached, 0..1 [1].
        typical: Whether hops take their usual time instead of the least.
    """
    rates = collective_rates(route, collective, efficiency, typical=typical)
    sent = route.sent(collective)
    slowest = max(amount / rate.per_s for amount, rate in zip(sent, rates, strict=True))
    return Rate(sum(sent, Fraction(0)) / slowest, max(rate.latency_s for rate in rates))


def network_rate(target: Target, *, typical: bool = False) -> Rate | None:
    """Bytes/s out of one chip, over all levels of the network; None without a collective."""
    route, transfers = target.route, target.sharding.transfers
    if route is None or not transfers:
        return None
    efficiency = target.efficiency["network"]
    rate = collective_rate(route, transfers[0][1], efficiency, typical=typical)
    return Rate(rate.per_s, len(transfers) * rate.latency_s)


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

MATH, MEMORY, NETWORK = RESOURCES

OTHERS = RESOURCES[1:]
"""The resources that an operation has to outgrow to be compute-bound."""

RATES: Mapping[str, Resource] = {
    "peak" if resource is MATH else f"{resource.name}_rate": resource for resource in RESOURCES
}
"""The rates that can be solved for, by name: peak, memory_rate, network_rate."""


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
