"""The times of kernels on a chip, as sums of products of extents; exact times of a step."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from rooflines.model.costs import evaluate
from rooflines.model.resources import RESOURCES, collective_rate, math_rate, memory_rate
from rooflines.model.sharding import Sharding
from rooflines.model.target import Level, Target

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rooflines.model.resources import Calibration
    from rooflines.models.groups import Step, Terms
    from rooflines.serving.kernels import Collective, Kernel

__all__ = ["Exchange", "KernelTimes", "Machine", "Seconds", "step_seconds", "times_of"]

ALONE = Sharding("none")


@dataclass(frozen=True)
class Machine:
    """The numbers of a chip that the times of a model read.

    Attributes:
        peaks: Nominal dense peaks by compute dtype [FLOP/s].
        level: The memory level that holds weights and caches.
        efficiency: Share of the nominal rate that each resource reaches, by resource name [1].
        calibrations: Fitted numbers by compute dtype; without those of other dtypes.
    """

    peaks: Mapping[str, Fraction]
    level: Level
    efficiency: Mapping[str, Fraction]
    calibrations: Mapping[str, Calibration]


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
        overhead_s: Fixed time of the kernel, of an estimate [s].
    """

    math: Terms
    memory: Terms
    activation: Terms
    network: tuple[Exchange, ...]
    overhead_s: Fraction = Fraction(0)


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


def times_of(kernel: Kernel, machine: Machine, fitted: Calibration | None = None) -> KernelTimes:
    """The times of a kernel on a chip.

    Args:
        kernel: The kernel.
        machine: The chip.
        fitted: Fitted numbers, for an estimate: they replace the efficiencies, and hops take their
            usual time; None: nominal.
    """
    shares = machine.efficiency
    if fitted is not None:
        shares = {r.name: fitted.shares.get(r.name, Fraction(1)) for r in RESOURCES}
    target = Target(machine.peaks[kernel.compute], machine.level, None, ALONE, shares)
    math, memory = math_rate(target).per_s, memory_rate(target).per_s
    works = kernel.works
    return KernelTimes(
        _over(works.get("flops", {}), math),
        {
            dims: seconds
            for work in ("weight_bytes", "cache_bytes")
            for dims, seconds in _over(works.get(work, {}), memory).items()
        },
        _over(works["activation_bytes"], memory),
        tuple(
            _exchange(sent, shares["network"], typical=fitted is not None)
            for sent in kernel.collectives
        ),
        fitted.overhead_s if fitted else Fraction(0),
    )


def _exchange(sent: Collective, efficiency: Fraction, *, typical: bool) -> Exchange:
    """The time of a collective."""
    rate = collective_rate(sent.route, sent.kind, efficiency, typical=typical)
    return Exchange(_over(sent.sent_bytes, rate.per_s), rate.latency_s)


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
    """The exact times of a step on one chip, summed over kernels and layers [s]."""
    total = [Fraction(0)] * len(Seconds._fields)
    for kernel, each in zip(kernels, times, strict=True):
        parts = seconds_of(each, kernel.extents(step))
        total = [sum_ + kernel.group.count * part for sum_, part in zip(total, parts, strict=True)]
    return Seconds(*total)


def _over(work: Terms, per_s: Fraction) -> Terms:
    return {dims: amount / per_s for dims, amount in work.items()}
