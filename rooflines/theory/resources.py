"""Resources, work / rate = time: times, bounds and thresholds are computed over one list.

A resource has a work (a column, and a polynomial in the sizes) and a rate. To model a fourth one,
add an entry to `RESOURCES`: operations and model steps then both have it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

from rooflines.theory.kernel import NETWORK_BYTES, Kernel, Transfer
from rooflines.theory.poly import ZERO, Poly, constant, total
from rooflines.theory.times import Time, Times

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

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

    def rate(self, resource: Resource, compute: str) -> Rate:
        """Rate of a resource, except the network, in a compute dtype."""
        key = resource.name, compute
        if key not in self._rates and resource.rate is not None:
            self._rates[key] = resource.rate(self, compute)
        return self._rates[key]

    @cached_property
    def _rates(self) -> dict[tuple[str, str], Rate]:
        return {}


RunCount = int | Fraction | Poly
"""Runs of a kernel per step [1]; in training as a polynomial in the number of micro-batches."""

TimeTerms = tuple[list[Poly], list[Poly]]
"""Terms of a time: work / rate, and latencies, the minimum time for any amount of work [s]."""


@dataclass(frozen=True)
class Rate:
    """The rate of a resource on a chip.

    Attributes:
        per_s: Work per second, efficiency included [FLOP/s or byte/s].
        latency_s: Minimum time for any amount of work [s].
    """

    per_s: Fraction
    latency_s: Fraction = Fraction(0)


def math_rate(chip_rates: ChipRates, compute: str) -> Rate:
    """Peak in a compute dtype, efficiency included [FLOP/s]."""
    return Rate(chip_rates.peaks[compute] * chip_rates.efficiency["math"])


def memory_rate(chip_rates: ChipRates, compute: str) -> Rate:
    """Bandwidth between memory level and compute unit, for any compute dtype [byte/s]."""
    del compute
    return Rate(chip_rates.level.bytes_per_s * chip_rates.efficiency["memory"])


@cache
def collective_rates(
    route: Route, collective: str, efficiency: Fraction, *, typical: bool = False
) -> list[Rate]:
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
        Rate(level.bytes_per_s * efficiency, latency)
        for level, latency in zip(route.levels, latencies, strict=True)
    ]


def collective_rate(
    route: Route, collective: str, efficiency: Fraction, *, typical: bool = False
) -> Rate:
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
    return Rate(sum(level_bytes, Fraction(0)) / slowest, max(rate.latency_s for rate in rates))


@dataclass(frozen=True)
class Resource:
    """A resource of a chip, a possible bottleneck.

    Attributes:
        name: In column names: `t_<name>_s`, `<name>_intensity`, `critical_<name>`.
        work: The column with the work.
        bound: The name as a bottleneck, in column `bound`.
        rate: Function from chip and compute dtype to the rate; None: times are those of
            collectives.
        amount: Function from a kernel to the work in one layer; None: the work in that column.
    """

    name: str
    work: str
    bound: str
    rate: Callable[[ChipRates, str], Rate] | None
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


def data_sheet_times(terms_of: Callable[[Resource], TimeTerms]) -> Times:
    """Times of an operation or step at data-sheet rates, efficiencies applied: t = work / rate [s].

    Collectives overlap: a network's time is the larger of total bytes / bandwidth and total hop
    latency; the slowest network counts.

    Args:
        terms_of: Function from a resource to the time terms over all kernels, see `time_terms`.

    Source: All About Rooflines, "Where does the time go?".
    """
    return _times_with_network(terms_of, Time.max_of(*chain(*terms_of(NETWORK))))


def serial_times(kernel: Kernel, chip_rates: ChipRates) -> Times:
    """Times of one layer of a kernel, its collectives one after another [s]."""
    share = chip_rates.efficiency[NETWORK.name]
    network = Time.total(
        (1, Time.max_of(*collective_time(transfer, share))) for transfer in kernel.transfers
    )
    return _times_with_network(
        lambda resource: time_terms(resource, [(1, kernel)], chip_rates, kernel.work), network
    )


def work_of(column: str, parts: Iterable[tuple[RunCount, Kernel]]) -> Poly:
    """Work of kernels: sum over runs * work per layer, by column [FLOP or byte].

    Args:
        column: The column.
        parts: The kernels, each with its runs per step.
    """
    resource = next((candidate for candidate in RESOURCES if candidate.work == column), None)
    return total(
        (kernel.work(column) if resource is None else resource.kernel_work(kernel)) * count
        for count, kernel in parts
    )


def time_terms(
    resource: Resource,
    parts: Sequence[tuple[RunCount, Kernel]],
    chip_rates: ChipRates,
    work: Callable[[str], Poly] | None = None,
) -> TimeTerms:
    """Terms of a resource's time, whose maximum counts: work / rate, and latencies [s].

    Args:
        resource: The resource.
        parts: The kernels, each with its runs per step.
        chip_rates: The chip.
        work: Function from a column to its sum over the kernels, if computed already: a time at
            one rate then shares its terms.

    Returns:
        Work / rate, and the minimum time for any amount of work; for collectives both on every
        network, inner first [s].
    """
    if resource.rate is None:
        return _collective_terms(parts, chip_rates)
    amounts = [
        (count, amount, chip_rates.rate(resource, kernel.compute))
        for count, kernel in parts
        if (amount := resource.kernel_work(kernel))
    ]
    latencies = [
        total(constant(rate.latency_s) * count for count, _, rate in amounts if rate.latency_s)
    ]
    per_s = {rate.per_s for _, _, rate in amounts}
    if work is not None and resource.amount is None and len(per_s) == 1:
        return [work(resource.work) / per_s.pop()], latencies
    return [total(amount * count / rate.per_s for count, amount, rate in amounts)], latencies


def sum_time_terms(parts: Iterable[tuple[RunCount, TimeTerms]]) -> TimeTerms:
    """Sums of time terms, each multiplied by its runs, network by network [s]."""
    scaled = [[[poly * count for poly in polys] for polys in terms] for count, terms in parts]
    work_times, latencies = (
        [total(level_polys) for level_polys in zip_longest(*levels, fillvalue=ZERO)]
        for levels in zip(*scaled, strict=True)
    )
    return work_times, latencies


def _times_with_network(terms_of: Callable[[Resource], TimeTerms], network: Time) -> Times:
    """Times of kernels, with the time of their collectives given [s]."""
    by_bound = {
        resource.bound: network
        if resource.rate is None
        else Time.max_of(*chain(*terms_of(resource)))
        for resource in RESOURCES
    }
    (activation,), _ = terms_of(ACTIVATION)
    return Times(by_bound, activation=activation)


def _collective_terms(parts: Iterable[tuple[RunCount, Kernel]], chip_rates: ChipRates) -> TimeTerms:
    """Time terms of collectives on every network: bytes / bandwidth, and hop latency [s]."""
    level_sends: dict[int, list[Poly]] = {}
    level_hops: dict[int, list[Poly]] = {}
    for count, kernel in parts:
        for transfer in kernel.transfers:
            for level, (send_time, latency_s) in enumerate(
                level_times(transfer, chip_rates.efficiency["network"])
            ):
                level_sends.setdefault(level, []).append(send_time * count)
                level_hops.setdefault(level, []).append(constant(latency_s) * count)
    return [total(polys) for polys in level_sends.values()], [
        total(polys) for polys in level_hops.values()
    ]


def level_times(
    transfer: Transfer, efficiency: Fraction, *, typical: bool = False
) -> list[tuple[Poly, Fraction]]:
    """Times of a collective on every network, inner first: bytes / bandwidth, and hops [s].

    Args:
        transfer: The collective; a network without its bytes has no hops.
        efficiency: Share of nominal rates reached, 0..1 [1].
        typical: Whether hops take their typical time instead of the minimum.
    """
    rates = collective_rates(transfer.route, transfer.kind, efficiency, typical=typical)
    return [
        (
            transfer.payload * (bytes_sent / rate.per_s),
            rate.latency_s if bytes_sent else Fraction(0),
        )
        for bytes_sent, rate in zip(transfer.bytes_per_payload_byte, rates, strict=True)
    ]


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
        a payload goes in, across and in again.
    """
    levels = level_times(transfer, efficiency, typical=typical)
    slowest = max((time for time, _ in levels), key=lambda time: time.scale if time else 0)
    hops = [latency_s for _, latency_s in levels]
    return slowest, constant(sum(hops, Fraction(0)) if typical else max(hops))
