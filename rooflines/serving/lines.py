"""Exact times of a case in whole multiples of a unit of time, as straight lines in B.

With S and T fixed, all times of a kernel grow linearly with B, except for weights, which are read
once, for the latency of collectives, and for the number of experts that the tokens use.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from rooflines.models.groups import ONCE, TOUCHED, touched_experts
from rooflines.serving.times import step_exchange

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rooflines.models.groups import Group, Step, Terms
    from rooflines.serving.case import Case
    from rooflines.serving.kernels import Kernel
    from rooflines.serving.times import KernelTimes

Whole = dict[tuple[str, ...], int]
"""A time by extents, as `Terms`, with whole coefficients [unit]."""


class Lines(NamedTuple):
    """Times of a kernel in all its layers, or sums over the kernels of a step [unit].

    Attributes:
        math, memory, activation: Per sequence.
        weights: Of the weights that every step reads.
        expert: Per expert that the tokens use.
        exchanges: Time per sequence and least time of every collective; of a step one pair, since
            they overlap.
    """

    math: int
    memory: int
    activation: int
    weights: int
    expert: int
    exchanges: tuple[tuple[int, int], ...]

    def memory_at(self, batch: int, touched: Fraction) -> int | Fraction:
        """t_memory."""
        line = self.memory * batch + self.weights
        return line + self.expert * touched if self.expert else line

    def network_at(self, batch: int) -> int:
        """t_network: of a kernel, collectives run one after another."""
        return sum(max(slope * batch, latency) for slope, latency in self.exchanges)

    @classmethod
    def summed(cls, lines: Iterable[Lines], network: tuple[int, int]) -> Lines:
        """Those of a step: the sums over kernels, and the time of all collectives."""
        *numbers, _ = zip(*lines, strict=True)
        math_, memory, activation, weights, expert = map(sum, numbers)
        return cls(math_, memory, activation, weights, expert, (network,))


class Experts(NamedTuple):
    """Experts of which more tokens use more.

    Attributes:
        E, k: Experts of a layer, and of a token [1].
        tokens: Tokens of a sequence that choose among the experts that a chip reads [1].
        routing: Which experts they choose.
    """

    E: int
    k: int
    tokens: Fraction
    routing: str

    def touched(self, batch: int | Fraction) -> Fraction:
        """Experts of a layer that the tokens of a batch use [1]."""
        return touched_experts(self.E, self.k, batch * self.tokens, self.routing)

    @property
    def decay(self) -> float:
        """How fast unused experts get fewer: as exp(-decay B) [1]."""
        return -float(self.tokens) * math.log1p(-self.k / self.E)


@dataclass(frozen=True)
class StepLines:
    """The times of a step with S and T fixed.

    Attributes:
        kernels: The lines of every kernel.
        network: Time per sequence and least time of all collectives, which overlap.
        experts: The experts; None where their number does not depend on the batch.
    """

    kernels: tuple[Lines, ...]
    network: tuple[int, int]
    experts: Experts | None

    @cached_property
    def total(self) -> Lines:
        """The times of the step."""
        return Lines.summed(self.kernels, self.network)

    def touched(self, batch: int) -> Fraction:
        """Experts of a layer that the tokens use, besides those of every batch [1]."""
        return self.experts.touched(batch) if self.experts else Fraction(0)

    def lower(self, batch: int) -> int | Fraction:
        """t_lower [unit]."""
        total = self.total
        memory = total.memory_at(batch, self.touched(batch))
        return max(total.math * batch, memory, total.network_at(batch))

    def ops(self, batch: int) -> int | Fraction:
        """t_ops [unit]."""
        touched = self.touched(batch)
        return sum(
            max(
                each.math * batch,
                each.memory_at(batch, touched) + each.activation * batch,
                each.network_at(batch),
            )
            for each in self.kernels
        )


class WholeTimes(NamedTuple):
    """The times of a kernel in all its layers [unit].

    Attributes:
        group: The kernel's group.
        math, cache, activation: By extents.
        weights, expert: As in `Lines`.
        network: Of every collective, by extents, and its latency.
    """

    group: Group
    math: Whole
    cache: Whole
    activation: Whole
    weights: int
    expert: int
    network: tuple[tuple[Whole, int], ...]

    def at(self, extents: Mapping[str, int | Fraction]) -> Lines:
        """The lines at the extents of one sequence."""
        return Lines(
            _at(self.math, extents),
            _at(self.cache, extents),
            _at(self.activation, extents),
            self.weights,
            self.expert,
            tuple((_at(sending, extents), latency) for sending, latency in self.network),
        )


@dataclass(frozen=True)
class CaseLines:
    """The lines of a case at all its sizes."""

    case: Case

    @cached_property
    def per_s(self) -> int:
        """Units of time in a second: the least number that makes all coefficients whole [1/s]."""
        parts = [part for times in self.case.times for part in _coefficients(times)]
        return math.lcm(*(part.denominator for part in parts))

    @cached_property
    def kernels(self) -> tuple[WholeTimes, ...]:
        """The times of the kernels."""
        return tuple(
            self._whole_times(kernel.group, times)
            for kernel, times in zip(self.case.kernels, self.case.times, strict=True)
        )

    @cached_property
    def network(self) -> tuple[Whole, int]:
        """The time of all collectives of a step, which overlap, by extents, and its latency."""
        total = step_exchange(self.case.kernels, self.case.times)
        return _whole(total.sending, self.per_s), int(total.latency_s * self.per_s)

    def _whole_times(self, group: Group, times: KernelTimes) -> WholeTimes:
        units = self.per_s * group.count
        memory = _whole(times.memory, units)
        weights, expert = memory.pop(ONCE, 0), memory.pop(TOUCHED, 0)
        network = (
            (_whole(sent.sending, units), int(sent.latency_s * units)) for sent in times.network
        )
        return WholeTimes(
            group,
            _whole(times.math, units),
            memory,
            _whole(times.activation, units),
            weights,
            expert,
            tuple(network),
        )

    def at(self, context: int, new: int = 1) -> StepLines:
        """The lines of a step.

        Args:
            context: S, tokens of each sequence after the step; in prefill the prompt [1].
            new: T, new tokens of each; in prefill all are new [1].
        """
        step = self.case.step(1, context, new)
        extents: dict[int | None, Mapping[str, int | Fraction]] = {}
        for times in self.kernels:
            if times.group.moe is None and times.group.window not in extents:
                extents[times.group.window] = times.group.extents(step)
        lines = [times.at(extents[times.group.window]) for times in self.kernels]
        fewest, experts = experts_used(self.case.kernels, step)
        if fewest:
            lines = [
                line._replace(weights=line.weights + line.expert * fewest, expert=0)
                for line in lines
            ]
        sending, latency = self.network
        network = _at(sending, {"B": step.B, "T": step.T}), latency
        return StepLines(tuple(lines), network, experts)


def experts_used(kernels: Iterable[Kernel], step: Step) -> tuple[int, Experts | None]:
    """The experts of a layer that the tokens of a step use.

    Args:
        kernels: The kernels of the step.
        step: A step of one sequence.

    Returns:
        How many every batch uses [1]; and, if that is none, those of which more tokens use more.
    """
    for kernel in kernels:
        moe = kernel.group.moe
        if moe is not None:
            fewest = int(touched_experts(moe.E, moe.k, 0, step.routing))
            more = Experts(moe.E, moe.k, step.T * kernel.token_share, step.routing)
            return fewest, None if fewest else more
    return 0, None


def _coefficients(times: KernelTimes) -> Iterator[Fraction]:
    for terms in (times.math, times.memory, times.activation):
        yield from terms.values()
    for levels in times.collectives:
        for exchange in levels:
            yield from exchange.sending.values()
            yield exchange.latency_s


def _whole(terms: Terms, units: int) -> Whole:
    """Times in whole units, `units` of them per second."""
    return {dims: int(seconds * units) for dims, seconds in terms.items()}


def _at(terms: Whole, extents: Mapping[str, int | Fraction]) -> int:
    return sum(
        unit * math.prod([int(extents[dim]) for dim in dims]) for dims, unit in terms.items()
    )
