"""The times of kernels on a chip, as sums of products of extents; exact times of a step."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from rooflines.model.costs import evaluate
from rooflines.model.resources import collective_rates, math_rate, memory_rate
from rooflines.model.sharding import Sharding
from rooflines.model.target import MemoryLevel, Target
from rooflines.serving.kernels import scaled, summed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rooflines.models.groups import Terms
    from rooflines.serving.kernels import Collective, Kernel

ALONE = Sharding("none")


@dataclass(frozen=True)
class Machine:
    """The numbers of a chip that the times of a model read.

    Attributes:
        peaks: Nominal dense peaks by compute dtype [FLOP/s].
        level: The memory level that holds weights and caches.
        efficiency: Share of the nominal rate that each resource reaches, by resource name [1].
    """

    peaks: Mapping[str, Fraction]
    level: MemoryLevel
    efficiency: Mapping[str, Fraction]


class Exchange(NamedTuple):
    """A time of collectives: the larger of what grows with their payloads and of their hops.

    Attributes:
        sending: By extents [s].
        latency_s: Of all hops [s].
    """

    sending: Terms
    latency_s: Fraction

    def at(self, extents: Mapping[str, int | Fraction]) -> Fraction:
        """The time at these extents [s]."""
        return max(evaluate(self.sending, extents), self.latency_s)

    @classmethod
    def slowest(cls, networks: Iterable[Exchange]) -> Exchange:
        """The time on networks that work at once."""
        sendings, latencies = zip(*networks, strict=True)
        return cls(max(sendings, key=lambda sending: sum(sending.values())), max(latencies))


@dataclass(frozen=True)
class KernelTimes:
    """The times of a kernel, by extents.

    Attributes:
        math, memory, activation: Of its FLOPs; of weights and cache; of other tensors [s].
        collectives: Of each of its collectives, on every network, inner first.
    """

    math: Terms
    memory: Terms
    activation: Terms
    collectives: tuple[tuple[Exchange, ...], ...]

    @property
    def network(self) -> tuple[Exchange, ...]:
        """Of its collectives, which follow one another."""
        return tuple(map(Exchange.slowest, self.collectives))


class Seconds(NamedTuple):
    """Exact times of a kernel, or of a step [s].

    Attributes:
        math, memory, activation: Of a step: sums over its kernels.
        network: Of a kernel: collectives follow one another. Of a step: they overlap, the slowest
            network counts, on each what is sent and the hops are summed.
    """

    math: Fraction
    memory: Fraction
    activation: Fraction
    network: Fraction

    @property
    def lower(self) -> Fraction:
        """With full overlap, activations left out."""
        return max(self.math, self.memory, self.network)

    @property
    def ops(self) -> Fraction:
        """Of one kernel after another: resources overlap within a kernel."""
        return max(self.math, self.memory + self.activation, self.network)


def rates_of(
    kernel: Kernel, machine: Machine, shares: Mapping[str, Fraction]
) -> tuple[Fraction, Fraction]:
    """The rates of a kernel's math [FLOP/s] and of memory [byte/s].

    Args:
        kernel: The kernel.
        machine: The chip.
        shares: Share of the nominal rate that each resource reaches, by resource name [1].
    """
    target = Target(machine.peaks[kernel.compute], machine.level, None, ALONE, shares)
    return math_rate(target).per_s, memory_rate(target).per_s


def times_of(kernel: Kernel, machine: Machine) -> KernelTimes:
    """The times of a kernel on a chip."""
    math, memory = rates_of(kernel, machine, machine.efficiency)
    works = kernel.works
    return KernelTimes(
        over(works.get("flops", {}), math),
        {
            dims: seconds
            for work in ("weight_bytes", "cache_bytes")
            for dims, seconds in over(works.get(work, {}), memory).items()
        },
        over(works["activation_bytes"], memory),
        tuple(exchange(sent, machine.efficiency["network"]) for sent in kernel.collectives),
    )


def exchange(
    sent: Collective, efficiency: Fraction, *, typical: bool = False
) -> tuple[Exchange, ...]:
    """The time of a collective on every network, inner first; without bytes it has no hops.

    Args:
        sent: The collective.
        efficiency: Share of the nominal rates that is reached, 0..1 [1].
        typical: Whether hops take their usual time instead of the least.
    """
    rates = collective_rates(sent.route, sent.kind, efficiency, typical=typical)
    return tuple(
        Exchange(
            scaled(sent.payload, amount / rate.per_s), rate.latency_s if amount else Fraction(0)
        )
        for amount, rate in zip(sent.sent, rates, strict=True)
    )


def step_exchange(kernels: Iterable[Kernel], times: Iterable[KernelTimes]) -> Exchange:
    """The time of all collectives of a step, which overlap.

    A network sends what all of them send, and takes all their hops; the slowest network counts.
    """
    by_network: dict[int, list[tuple[int, Exchange]]] = {}
    for kernel, each in zip(kernels, times, strict=True):
        for levels in each.collectives:
            for number, level in enumerate(levels):
                by_network.setdefault(number, []).append((kernel.group.count, level))
    if not by_network:
        return Exchange({}, Fraction(0))
    return Exchange.slowest(
        Exchange(
            summed((count, level.sending) for count, level in levels),
            sum((count * level.latency_s for count, level in levels), Fraction(0)),
        )
        for levels in by_network.values()
    )


def seconds_of(times: KernelTimes, extents: Mapping[str, int | Fraction]) -> Seconds:
    """The exact times of one layer of a kernel at these extents [s]."""
    network = sum((each.at(extents) for each in times.network), Fraction(0))
    math, memory, activation = (
        evaluate(terms, extents) for terms in (times.math, times.memory, times.activation)
    )
    return Seconds(math, memory, activation, network)


def step_seconds(
    kernels: Sequence[Kernel],
    times: Sequence[KernelTimes],
    extents_of: Callable[[Kernel], Mapping[str, int | Fraction]],
) -> Seconds:
    """The exact times of a step on one chip, over kernels and layers [s].

    Args:
        kernels: The kernels.
        times: The times of each.
        extents_of: The extents of a kernel.
    """
    total = [Fraction(0)] * len(Seconds._fields)
    for kernel, each in zip(kernels, times, strict=True):
        parts = seconds_of(each, extents_of(kernel))
        total = [sum_ + kernel.group.count * part for sum_, part in zip(total, parts, strict=True)]
    network = step_exchange(kernels, times).at(extents_of(kernels[0]))
    return Seconds(*total)._replace(network=network)


def over(work: Terms, per_s: Fraction) -> Terms:
    """The time of a work at a rate [s]."""
    return {dims: amount / per_s for dims, amount in work.items()}
