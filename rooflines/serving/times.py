"""The times of kernels on a chip, as sums of products of extents; exact times of a step."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from rooflines.model.costs import evaluate
from rooflines.model.resources import collective_rate, math_rate, memory_rate
from rooflines.model.sharding import Sharding
from rooflines.model.target import Level, Target

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rooflines.models.groups import Step, Terms
    from rooflines.serving.kernels import Collective, Kernel

__all__ = [
    "Exchange",
    "KernelTimes",
    "Machine",
    "Seconds",
    "over",
    "rates_of",
    "step_seconds",
    "times_of",
]

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
    level: Level
    efficiency: Mapping[str, Fraction]


class Exchange(NamedTuple):
    """The time of a collective: the larger of what grows with the payload and of its hops.

    Attributes:
        sending: By extents [s].
        latency_s: Of all hops [s].
    """

    sending: Terms
    latency_s: Fraction


@dataclass(frozen=True)
class KernelTimes:
    """The times of a kernel, by extents.

    Attributes:
        math, memory, activation: Of its FLOPs; of weights and cache; of other tensors [s].
        network: Of its collectives, one after another.
    """

    math: Terms
    memory: Terms
    activation: Terms
    network: tuple[Exchange, ...]


class Seconds(NamedTuple):
    """Exact times of a kernel, or sums over the kernels of a step [s]."""

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

    @property
    def upper(self) -> Fraction:
        """Without overlap."""
        return sum(self, Fraction(0))


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
        tuple(_exchange(sent, machine.efficiency["network"]) for sent in kernel.collectives),
    )


def _exchange(sent: Collective, efficiency: Fraction) -> Exchange:
    """The time of a collective."""
    rate = collective_rate(sent.route, sent.kind, efficiency)
    return Exchange(over(sent.sent_bytes, rate.per_s), rate.latency_s)


def seconds_of(times: KernelTimes, extents: Mapping[str, int | Fraction]) -> Seconds:
    """The exact times of one layer of a kernel at these extents [s]."""
    network = sum(
        (max(evaluate(each.sending, extents), each.latency_s) for each in times.network),
        Fraction(0),
    )
    math, memory, activation = (
        evaluate(terms, extents) for terms in (times.math, times.memory, times.activation)
    )
    return Seconds(math, memory, activation, network)


def step_seconds(kernels: Iterable[Kernel], times: Iterable[KernelTimes], step: Step) -> Seconds:
    """The exact times of a step on one chip, summed over kernels and layers [s].

    Args:
        kernels: The kernels.
        times: The times of each.
        step: The sizes of the step.
    """
    total = [Fraction(0)] * len(Seconds._fields)
    for kernel, each in zip(kernels, times, strict=True):
        parts = seconds_of(each, kernel.extents(step))
        total = [sum_ + kernel.group.count * part for sum_, part in zip(total, parts, strict=True)]
    return Seconds(*total)


def over(work: Terms, per_s: Fraction) -> Terms:
    """The time of a work at a rate [s]."""
    return {dims: amount / per_s for dims, amount in work.items()}
