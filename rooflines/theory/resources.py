"""The resources that rows need, as one list: times, bounds and thresholds are computed over it.

A resource has a work (a column that is also a polynomial of the sizes) and a rate. To model a
fourth one, add an entry to `RESOURCES`; operations and steps of models then both have it.
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
        capacity_bytes: Capacity [byte]; None where it is not published.
    """

    bytes_per_s: Fraction
    capacity_bytes: Fraction | None = None


@dataclass(frozen=True)
class ChipRates:
    """The numbers of a chip that times read.

    Attributes:
        peaks: Nominal dense peaks of the compute unit by compute dtype [FLOP/s].
        level: The memory level that feeds the unit.
        efficiency: Share of the nominal rate that each resource reaches, 0..1, by resource name.
    """

    peaks: Mapping[str, Fraction]
    level: MemoryLevel
    efficiency: Mapping[str, Fraction]

    def rate(self, resource: Resource, compute: str) -> Rate:
        """The rate of a resource in a compute dtype, of one that is not the network."""
        key = resource.name, compute
        if key not in self._rates and resource.rate is not None:
            self._rates[key] = resource.rate(self, compute)
        return self._rates[key]

    @cached_property
    def _rates(self) -> dict[tuple[str, str], Rate]:
        return {}


RunCount = int | Fraction | Poly
"""How often a kernel runs [1]; in a step of training by the number of its micro-batches."""

TimeTerms = tuple[list[Poly], list[Poly]]
"""Times of work at a rate, and of the least times of any amount of it [s]."""


@dataclass(frozen=True)
class Rate:
    """The rate of a resource on a chip.

    Attributes:
        per_s: Work per second, efficiency included [FLOP/s or byte/s].
        latency_s: The least time of any amount of work [s].
    """

    per_s: Fraction
    latency_s: Fraction = Fraction(0)


def math_rate(machine: ChipRates, compute: str) -> Rate:
    """FLOP/s of the compute unit in a compute dtype."""
    return Rate(machine.peaks[compute] * machine.efficiency["math"])


def memory_rate(machine: ChipRates, compute: str) -> Rate:
    """Bytes/s between the memory level and the unit, whatever it computes in."""
    del compute
    return Rate(machine.level.bytes_per_s * machine.efficiency["memory"])


@cache
def collective_rates(
    route: Route, collective: str, efficiency: Fraction, *, typical: bool = False
) -> list[Rate]:
    """Bytes/s out of one chip on every level of a route, over the links used at once.

    Args:
        route: The interconnects.
        collective: A key of `network.RING_PASSES`.
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


def collective_rate(
    route: Route, collective: str, efficiency: Fraction, *, typical: bool = False
) -> Rate:
    """Bytes/s out of one chip in a collective, over all levels of a route.

    The levels send chunks of the payload at the same time, so the slowest one determines the time.

    Args:
        route: The interconnects.
        collective: A key of `network.RING_PASSES`.
        efficiency: Share of the nominal rates that is reached, 0..1 [1].
        typical: Whether hops take their usual time instead of the least.
    """
    rates = collective_rates(route, collective, efficiency, typical=typical)
    level_bytes = route.bytes_per_payload_byte(collective)
    slowest = max(amount / rate.per_s for amount, rate in zip(level_bytes, rates, strict=True))
    return Rate(sum(level_bytes, Fraction(0)) / slowest, max(rate.latency_s for rate in rates))


@dataclass(frozen=True)
class Resource:
    """A resource of a chip, which can be the bottleneck of a row.

    Attributes:
        name: In column names: `t_<name>_s`, `<name>_intensity`, `critical_<name>`.
        work: The column of its work.
        bound: Its name as a bottleneck, in column `bound`.
        rate: Its rate on a chip in a compute dtype; None: its times are those of collectives.
        amount: Its work in one layer of a kernel; None: the one of the column's name.
    """

    name: str
    work: str
    bound: str
    rate: Callable[[ChipRates, str], Rate] | None
    amount: Callable[[Kernel], Poly] | None = None

    def kernel_work(self, kernel: Kernel) -> Poly:
        """Its work in one layer of a kernel [FLOP or byte]."""
        return kernel.work(self.work) if self.amount is None else self.amount(kernel)


RESOURCES: tuple[Resource, ...] = (
    Resource("math", "flops", "compute", math_rate),
    Resource("memory", "memory_bytes", "memory", memory_rate),
    Resource("network", NETWORK_BYTES, "network", None),
)
"""All resources; the others are compared with the first, and the earlier one wins a tie."""

MATH, MEMORY, NETWORK, *_ = RESOURCES

NON_MATH = RESOURCES[1:]
"""The resources that an operation has to outgrow to be compute-bound."""

RATES: Mapping[str, Resource] = {
    "peak" if resource is MATH else f"{resource.name}_rate": resource for resource in RESOURCES
}
"""The rates that can be solved for, by name: peak, memory_rate, network_rate."""


ACTIVATION_BYTES = "activation_bytes"
"""The work of kernels that hand each other tensors through memory; operations have none."""

ACTIVATION = Resource("activation", ACTIVATION_BYTES, MEMORY.bound, memory_rate)
"""What a fused kernel would not need of the memory: apart from it in times of steps."""


def data_sheet_times(terms_of: Callable[[Resource], TimeTerms]) -> Times:
    """The times of an operation or step at the rates of the data sheet, efficiencies applied.

    Collectives overlap: on every network the larger of all that is sent and of all hops counts, of
    several networks the slowest.

    Args:
        terms_of: The times of a resource in all its kernels, as of `time_terms`.

    Source: All About Rooflines, "Where does the time go?".
    """
    return _times(terms_of, Time.max_of(*chain(*terms_of(NETWORK))))


def serial_times(kernel: Kernel, machine: ChipRates) -> Times:
    """The times of one layer of a kernel whose collectives follow one another."""
    share = machine.efficiency[NETWORK.name]
    network = Time.total(
        (1, Time.max_of(*collective_time(resource, share))) for resource in kernel.transfers
    )
    return _times(
        lambda resource: time_terms(resource, [(1, kernel)], machine, kernel.work), network
    )


def work_of(column: str, parts: Iterable[tuple[RunCount, Kernel]]) -> Poly:
    """A work of kernels, by its column [FLOP or byte].

    Args:
        column: The column.
        parts: The kernels, each with how often it runs.
    """
    resource = next((candidate for candidate in RESOURCES if candidate.work == column), None)
    return total(
        (kernel.work(column) if resource is None else resource.kernel_work(kernel)) * count
        for count, kernel in parts
    )


def time_terms(
    resource: Resource,
    parts: Sequence[tuple[RunCount, Kernel]],
    machine: ChipRates,
    work: Callable[[str], Poly] | None = None,
) -> TimeTerms:
    """The times of a resource, latencies apart: the largest of all counts.

    Args:
        resource: The resource.
        parts: The kernels, each with how often it runs.
        machine: The chip.
        work: The sum of a work over the kernels, by column, where it is known already: a time at
            one rate then shares its terms.

    Returns:
        The time of its work at its rate, and the least time of any amount of it; of collectives a
        time of each for every network, inner first [s].
    """
    if resource.rate is None:
        return _sent(parts, machine)
    amounts = [
        (count, amount, machine.rate(resource, kernel.compute))
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
    """The sums of times that are apart, each a number of times, network by network."""
    scaled = [[[poly * count for poly in polys] for polys in terms] for count, terms in parts]
    work_times, latencies = (
        [total(level_polys) for level_polys in zip_longest(*levels, fillvalue=ZERO)]
        for levels in zip(*scaled, strict=True)
    )
    return work_times, latencies


def _times(terms_of: Callable[[Resource], TimeTerms], network: Time) -> Times:
    """The times of kernels whose collectives take so long."""
    by_bound = {
        resource.bound: network
        if resource.rate is None
        else Time.max_of(*chain(*terms_of(resource)))
        for resource in RESOURCES
    }
    (activation,), _ = terms_of(ACTIVATION)
    return Times(by_bound, activation=activation)


def _sent(parts: Iterable[tuple[RunCount, Kernel]], machine: ChipRates) -> TimeTerms:
    """The times of all that is sent, and of all hops, on networks that work at once [s]."""
    level_sends: dict[int, list[Poly]] = {}
    level_hops: dict[int, list[Poly]] = {}
    for count, kernel in parts:
        for transfer in kernel.transfers:
            for level, (sending, latency_s) in enumerate(
                level_times(transfer, machine.efficiency["network"])
            ):
                level_sends.setdefault(level, []).append(sending * count)
                level_hops.setdefault(level, []).append(constant(latency_s) * count)
    return [total(polys) for polys in level_sends.values()], [
        total(polys) for polys in level_hops.values()
    ]


def level_times(
    transfer: Transfer, efficiency: Fraction, *, typical: bool = False
) -> list[tuple[Poly, Fraction]]:
    """What a collective takes on every network, inner first: of what is sent, and of hops [s].

    Args:
        transfer: The collective; a network over which it sends nothing has no hops.
        efficiency: Share of the nominal rates that is reached, 0..1 [1].
        typical: Whether hops take their usual time instead of the least.
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
    """Time of a collective: of its bytes on the slowest network, and of its hops [s].

    Args:
        transfer: The collective.
        efficiency: Share of the nominal rates that is reached, 0..1 [1].
        typical: Whether hops take their usual time, as in estimates, instead of the least.

    Returns:
        Least hops are the larger of both networks, a lower bound. Usual ones are their sum: a
        payload goes in, across and in again.
    """
    levels = level_times(transfer, efficiency, typical=typical)
    sending = max(
        (send_time for send_time, _ in levels),
        key=lambda send_time: send_time.scale if send_time else 0,
    )
    hops = [latency_s for _, latency_s in levels]
    return sending, constant(sum(hops, Fraction(0)) if typical else max(hops))
