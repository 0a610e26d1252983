"""Resources, work / rate = time: times, bounds and thresholds are computed over one list.

A resource has a work (a column, and a polynomial in the sizes) and a rate. To model a fourth one,
add an entry to `RESOURCES`: operations and model steps then both have it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple, cast

from rooflines.theory.kernel import NETWORK_BYTES, Kernel, Transfer
from rooflines.theory.poly import ZERO, Poly, constant, total
from rooflines.theory.times import Time, Times

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rooflines.theory.network import Route


@dataclass(frozen=True)
class MemoryLevel:
    """A memory level.

    Attributes:
        bytes_per_s: Bandwidth to the compute units [byte/s].
        capacity_bytes: Capacity [byte]; None: not published.
    """

    bytes_per_s: Fraction
    capacity_bytes: Fraction | None = None


@dataclass(frozen=True)
class ChipRates:
    """Rates of a chip, from which times are computed.

    Attributes:
        peaks: Nominal dense peaks of the compute unit by compute dtype [FLOP/s].
        level: The memory level that feeds the unit.
        efficiency: Share of the nominal rate reached, 0..1, by resource name [1].
    """

    peaks: Mapping[str, Fraction]
    level: MemoryLevel
    efficiency: Mapping[str, Fraction]

    @cached_property
    def reached_peaks(self) -> Mapping[str, Fraction]:
        """Peaks by compute dtype, efficiency included [FLOP/s]."""
        return {compute: peak * self.efficiency["math"] for compute, peak in self.peaks.items()}

    @cached_property
    def reached_bytes_per_s(self) -> Fraction:
        """Bandwidth between memory level and compute unit, efficiency included [byte/s]."""
        return self.level.bytes_per_s * self.efficiency["memory"]


RunCount = int | Fraction | Poly
"""Runs of a kernel per step [1]; in training as a polynomial in the number of micro-batches."""


def math_rate(chip_rates: ChipRates, compute: str) -> Fraction:
    """Peak in a compute dtype, efficiency included [FLOP/s]."""
    return chip_rates.reached_peaks[compute]


def memory_rate(chip_rates: ChipRates, compute: str) -> Fraction:
    """Bandwidth between memory level and compute unit, for any compute dtype [byte/s]."""
    del compute
    return chip_rates.reached_bytes_per_s


@dataclass(frozen=True)
class Resource:
    """A resource of a chip, a possible bottleneck.

    Attributes:
        name: In column names: `t_<name>_s`, `<name>_intensity`, `critical_<name>`.
        work: The column with the work.
        bound: The name as a bottleneck, in column `bound`.
        rate: Function from chip and compute dtype to work per second, efficiency included [FLOP/s
            or byte/s]; None: times are those of collectives.
        amount: Function from a kernel to the work in one layer; None: the work in that column.
    """

    name: str
    work: str
    bound: str
    rate: Callable[[ChipRates, str], Fraction] | None
    amount: Callable[[Kernel], Poly] | None = None

    def kernel_work(self, kernel: Kernel) -> Poly:
        """Work in one layer of a kernel [FLOP or byte]."""
        return kernel.work(self.work) if self.amount is None else self.amount(kernel)


RESOURCES: tuple[Resource, ...] = (
    Resource("math", "flops", "compute", math_rate),
    Resource("memory", "memory_bytes", "memory", memory_rate),
    Resource("network", NETWORK_BYTES, "network", None),
)
"""All resources; the first is compared with the rest, and the earlier one wins a tie."""

MATH, MEMORY, NETWORK, *_ = RESOURCES

NON_MATH = RESOURCES[1:]
"""Memory and network, whose times an operation must exceed to be compute-bound."""

RATES: Mapping[str, Resource] = {
    "peak" if resource is MATH else f"{resource.name}_rate": resource for resource in RESOURCES
}
"""Rates to solve for, by name: peak, memory_rate, network_rate."""


ACTIVATION_BYTES = "activation_bytes"
"""Column with activation traffic: tensors between kernels, through memory; operations have none."""

ACTIVATION = Resource("activation", ACTIVATION_BYTES, MEMORY.bound, memory_rate)
"""Activation traffic that fusion would avoid; a column of its own beside t_memory_s."""

# ------------------------------------------------------------ work over rate


def work_time(
    resource: Resource, parts: Iterable[tuple[RunCount, Kernel]], chip_rates: ChipRates
) -> Poly:
    """Resource time: runs * work / rate, summed over kernels [s].

    Args:
        resource: The resource, except the network.
        parts: The kernels, each with its runs per step.
        chip_rates: The chip.
    """
    assert resource.rate is not None  # noqa: S101, for types
    return total(
        count * work / resource.rate(chip_rates, kernel.compute)
        for count, kernel in parts
        if (work := resource.kernel_work(kernel))
    )


def common_rate(
    resource: Resource, kernels: Iterable[Kernel], chip_rates: ChipRates
) -> Fraction | None:
    """Rate for all kernels' work on a resource, whose time is then work / rate [FLOP/s or byte/s].

    Returns:
        The rate; of collectives, bytes sent over the time on the slowest network, without hops.
        None: there are several rates, or no work.
    """
    if resource.rate is None:
        paces = {
            _seconds_per_sent_byte(transfer, chip_rates.efficiency[resource.name])
            for kernel in kernels
            for transfer in kernel.transfers
            if any(transfer.bytes_per_payload_byte)
        }
        return 1 / max(paces.pop()) if len(paces) == 1 else None
    rates = {
        resource.rate(chip_rates, kernel.compute)
        for kernel in kernels
        if resource.kernel_work(kernel)
    }
    return rates.pop() if len(rates) == 1 else None


def work_of(column: str, parts: Iterable[tuple[RunCount, Kernel]]) -> Poly:
    """Work of kernels: sum over runs * work per layer, by column [FLOP or byte].

    Args:
        column: The column.
        parts: The kernels, each with its runs per step.
    """
    resource = next((candidate for candidate in RESOURCES if candidate.work == column), None)
    return total(
        count * (kernel.work(column) if resource is None else resource.kernel_work(kernel))
        for count, kernel in parts
    )


def data_sheet_times(time_of: Callable[[Resource], Poly], network: Time) -> Times:
    """Kernel times at data-sheet rates, efficiencies applied: t = work / rate [s].

    Args:
        time_of: Function from a resource, except the network, to its time, see `work_time`.
        network: Time of the collectives.

    Source: All About Rooflines, "Where does the time go?".
    """
    by_bound = {
        resource.bound: network if resource.rate is None else Time.max_of(time_of(resource))
        for resource in RESOURCES
    }
    return Times(by_bound, activation=time_of(ACTIVATION))


def serial_times(kernel: Kernel, chip_rates: ChipRates) -> Times:
    """Kernel times in one layer, its collectives one after another [s]."""
    share = chip_rates.efficiency[NETWORK.name]
    network = Time.total(
        (1, Time.max_of(*collective_time(transfer, share))) for transfer in kernel.transfers
    )
    parts = [(1, kernel)]
    return data_sheet_times(lambda resource: work_time(resource, parts, chip_rates), network)


# ------------------------------------------------------------ collectives


@dataclass(frozen=True)
class NetworkRate:
    """Network rate in a collective.

    Attributes:
        per_s: Bytes out of one chip per second, efficiency included [byte/s].
        latency_s: Minimum time for any amount of bytes, that of hops [s].
    """

    per_s: Fraction
    latency_s: Fraction


class CollectiveTimes(NamedTuple):
    """Collective times by network, inner first, whose maximum counts: all overlap.

    Attributes:
        sending: Bytes / bandwidth [s].
        hops: Hop latency, the minimum time for any amount of bytes [s].
    """

    sending: list[Poly]
    hops: list[Poly]

    @property
    def overlapped(self) -> Time:
        """Largest of all: the slowest network counts [s]."""
        return Time.max_of(*self.sending, *self.hops)


@cache
def collective_rates(
    route: Route, collective: str, efficiency: Fraction, *, typical: bool = False
) -> list[NetworkRate]:
    """Bandwidth out of one chip on every level of a route, over the links used at once [byte/s].

    Args:
        route: The interconnects.
        collective: A key of `network.RING_PASSES`.
        efficiency: Share of nominal rates reached, 0..1 [1].
        typical: Whether hops take their typical time instead of the minimum.

    Returns:
        A rate for each level, inner first, with the latency of hops.
    """
    latencies = route.latencies_s(collective, typical=typical)
    return [
        NetworkRate(level.bytes_per_s * efficiency, latency)
        for level, latency in zip(route.levels, latencies, strict=True)
    ]


def collective_rate(
    route: Route, collective: str, efficiency: Fraction, *, typical: bool = False
) -> NetworkRate:
    """Bandwidth out of one chip in a collective, over all levels of a route [byte/s].

    All levels send chunks of the payload at the same time, so the slowest determines the time.

    Args:
        route: The interconnects.
        collective: A key of `network.RING_PASSES`.
        efficiency: Share of nominal rates reached, 0..1 [1].
        typical: Whether hops take their typical time instead of the minimum.
    """
    rates = collective_rates(route, collective, efficiency, typical=typical)
    level_bytes = route.bytes_per_payload_byte(collective)
    slowest = max(amount / rate.per_s for amount, rate in zip(level_bytes, rates, strict=True))
    return NetworkRate(
        sum(level_bytes, Fraction(0)) / slowest, max(rate.latency_s for rate in rates)
    )


def collective_times(
    parts: Iterable[tuple[RunCount, Kernel]], chip_rates: ChipRates
) -> CollectiveTimes:
    """Collective times on every network, over all kernels [s].

    Args:
        parts: The kernels, each with its runs per step.
        chip_rates: The chip.
    """
    level_sends: dict[int, list[Poly]] = {}
    level_hops: dict[int, list[Poly]] = {}
    for count, kernel in parts:
        for transfer in kernel.transfers:
            for level, (seconds_per_byte, latency_s) in enumerate(
                level_times(transfer, chip_rates.efficiency[NETWORK.name]), transfer.first_level
            ):
                sending = count * (transfer.payload * seconds_per_byte)
                level_sends.setdefault(level, []).append(sending)
                level_hops.setdefault(level, []).append(count * constant(latency_s))
    levels = range(max(level_sends, default=-1) + 1)
    return CollectiveTimes(
        [total(level_sends.get(level, ())) for level in levels],
        [total(level_hops.get(level, ())) for level in levels],
    )


def sum_collective_times(parts: Iterable[tuple[RunCount, CollectiveTimes]]) -> CollectiveTimes:
    """Summed collective times, each multiplied by its runs, network by network [s]."""
    scaled = [
        ([count * poly for poly in times.sending], [count * poly for poly in times.hops])
        for count, times in parts
    ]
    sending, hops = (
        [total(level_polys) for level_polys in zip_longest(*levels, fillvalue=ZERO)]
        for levels in zip(*scaled, strict=True)
    )
    return CollectiveTimes(sending, hops)


def level_times(
    transfer: Transfer, efficiency: Fraction, *, typical: bool = False
) -> list[tuple[Fraction, Fraction]]:
    """Collective times on every network, inner first: per payload byte [s/byte], hops [s].

    Args:
        transfer: The collective; a network without its bytes has no hops.
        efficiency: Share of nominal rates reached, 0..1 [1].
        typical: Whether hops take their typical time instead of the minimum.
    """
    if transfer.load is not None:
        return transfer.load.level_times(efficiency)
    route = cast("Route", transfer.route)
    rates = collective_rates(route, transfer.kind, efficiency, typical=typical)
    return [
        (bytes_sent / rate.per_s, rate.latency_s if bytes_sent else Fraction(0))
        for bytes_sent, rate in zip(transfer.bytes_per_payload_byte, rates, strict=True)
    ]


def _seconds_per_sent_byte(transfer: Transfer, efficiency: Fraction) -> tuple[Fraction, ...]:
    """Time on every network per byte that a chip sends over all of them [s/byte]."""
    sent = sum(transfer.bytes_per_payload_byte, Fraction(0))
    return tuple(seconds / sent for seconds, _ in level_times(transfer, efficiency))


def collective_time(
    transfer: Transfer, efficiency: Fraction, *, typical: bool = False
) -> tuple[Poly, Poly]:
    """Time of a collective: bytes / bandwidth on the slowest network, and hop latency [s].

    Args:
        transfer: The collective.
        efficiency: Share of nominal rates reached, 0..1 [1].
        typical: Whether hops take their typical time, as in estimates, instead of the minimum.

    Returns:
        Minimum latency is the larger of both networks, a lower bound; typical latency is the sum:
        a payload goes in, across and in again. On a torus the time of the collective alone.
    """
    if transfer.load is not None:
        per_byte, hops_s = transfer.load.own_time(efficiency)
        return transfer.payload * per_byte, constant(hops_s)
    levels = level_times(transfer, efficiency, typical=typical)
    slowest = max(seconds_per_byte for seconds_per_byte, _ in levels)
    hops = [latency_s for _, latency_s in levels]
    return transfer.payload * slowest, constant(sum(hops, Fraction(0)) if typical else max(hops))
