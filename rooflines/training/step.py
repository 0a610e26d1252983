"""A step of training: works, times and memory of its stages, exact at given sizes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from rooflines.model.resources import MATH, MEMORY, in_turn, nominal
from rooflines.models.groups import Step, StepExtents
from rooflines.training.kernels import KernelRun, micro_batch_kernels, once_kernels
from rooflines.training.memory import (
    in_flight,
    saved_elements,
    saved_of_one_layer,
    stages_of,
    states_on,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rooflines.model.resources import Machine
    from rooflines.training.kernels import Setting
    from rooflines.training.memory import Stage


class Held(NamedTuple):
    """What a chip of a stage holds at most, working memory apart [byte].

    Attributes:
        states: Weights, gradients and the states of the optimizer.
        saved: Tensors saved for backward passes.
    """

    states: Fraction
    saved: Fraction

    @property
    def total(self) -> Fraction:
        """Both [byte]."""
        return self.states + self.saved


@dataclass(frozen=True)
class TrainingStep:
    """A step of training on a number of chips.

    Attributes:
        setting: The model, its plan, dtypes and networks; checked.
        machine: The chip.
        sequences: B, sequences of the step over all replicas [1].
        tokens: S, tokens of each [1].
    """

    setting: Setting
    machine: Machine
    sequences: int
    tokens: int

    @cached_property
    def micro_batches(self) -> int:
        """Micro-batches of a replica, m [1]."""
        return self.setting.plan.micro_batches(self.sequences)

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The stages of the pipeline."""
        return stages_of(self.setting.shape, self.setting.plan)

    @cached_property
    def extents(self) -> StepExtents:
        """The sizes of a micro-batch."""
        return StepExtents(Step.prefill(self.setting.plan.micro_batch, self.tokens))

    def runs(self, stage: Stage) -> Iterator[KernelRun]:
        """The kernels of a stage, those of all micro-batches before those of the whole step."""
        m = self.micro_batches
        for each in micro_batch_kernels(self.setting, stage):
            if not each.gradients:
                yield replace(each, count=each.count * m)
                continue
            memory = each.kernel.work(MEMORY.work) + each.gradients * -1
            works = {**each.kernel.works, MEMORY.work: memory}
            yield replace(each, kernel=replace(each.kernel, works=works))
            if m > 1:
                yield replace(each, count=each.count * (m - 1))
        for kernel in once_kernels(self.setting, stage):
            yield KernelRun(kernel, once=True)

    @cached_property
    def _stages(self) -> list[tuple[int, list[KernelRun]]]:
        """The kernels of stages with the same layers, and how many such stages there are."""
        alike = Counter(replace(stage, index=0) for stage in self.stages)
        return [(number, list(self.runs(stage))) for stage, number in alike.items()]

    @cached_property
    def _mean(self) -> list[KernelRun]:
        """The kernels of all stages, in their mean."""
        share = Fraction(1, len(self.stages))
        return [
            replace(run, count=run.count * number * share)
            for number, runs in self._stages
            for run in runs
        ]

    def work(self, column: str) -> Fraction:
        """A work of a chip in a step, in the mean of all stages [FLOP or byte]."""
        found = (run.count * run.kernel.work(column).at(self.extents) for run in self._mean)
        return sum(found, Fraction(0))

    def model_flops(self, *, causal: bool = True) -> Fraction:
        """FLOP of a chip without repeated forward passes, in the mean of all stages [FLOP].

        Args:
            causal: Whether only the pairs that a token attends to count in attention; all pairs of
                a sequence otherwise, as some publish it.
        """
        found = Fraction(0)
        for run in self._mean:
            if not run.again:
                work = run.kernel.work(MATH.work)
                every = Fraction(1) if causal else self._every_pair(work.terms)
                found += run.count * work.at(self.extents) * every
        return found

    def _every_pair(self, products: Mapping[tuple[str, ...], Fraction]) -> Fraction:
        """All pairs of tokens of a sequence over those that a kernel computes; else 1 [1]."""
        pairs = [each for product in products for each in product if each.startswith("pairs")]
        return Fraction(self.tokens**2) / self.extents[pairs[0]] if pairs else Fraction(1)

    @cached_property
    def seconds(self) -> Mapping[str, Fraction]:
        """The time of each resource by bound, in the mean of all stages, without a bubble [s]."""
        parts = [(run.count, run.kernel) for run in self._mean]
        return nominal(parts, self.machine).at(self.extents).by

    @property
    def t_lower_s(self) -> Fraction:
        """The least time of a step: layers dealt evenly, everything overlapped, no bubble [s]."""
        return max(self.seconds.values())

    @property
    def bound(self) -> str:
        """The resource that takes longest."""
        return max(self.seconds, key=self.seconds.__getitem__)

    @property
    def t_ops_s(self) -> Fraction:
        """Of one kernel after another on the busiest stage, with the bubble [s]."""
        return self._in_turn[0]

    @property
    def t_upper_s(self) -> Fraction:
        """The same without any overlap [s]."""
        return self._in_turn[1]

    @cached_property
    def _in_turn(self) -> tuple[Fraction, Fraction]:
        plan, m = self.setting.plan, self.micro_batches
        waits = Fraction(m * plan.interleave + plan.pp - 1, m * plan.interleave)
        longest = Fraction(0), Fraction(0)
        for _, runs in self._stages:
            ops = upper = Fraction(0)
            for run in runs:
                seconds = in_turn(run.kernel, self.machine).at(self.extents)
                times = run.count * (1 if run.once else waits)
                ops += times * seconds.ops
                upper += times * sum(seconds.handed_over.values())
            longest = max(longest[0], ops), max(longest[1], upper)
        return longest

    @property
    def bubble(self) -> Fraction:
        """The share of a step in which a stage waits for others [1]."""
        return self.setting.plan.bubble(self.micro_batches)

    def held(self, stage: Stage) -> Held:
        """What a chip of a stage holds at most [byte]."""
        plan, setting = self.setting.plan, self.setting
        size = setting.sizes["activations"]
        layers, head = saved_elements(setting.shape, plan, stage, size)
        elements = layers * in_flight(plan, stage.index, self.micro_batches) + head
        if plan.recompute == "full":
            elements += saved_of_one_layer(setting.shape, plan, stage, size)
        saved = setting.activations(elements).at(self.extents)
        return Held(states_on(setting.shape, plan, stage, setting.sizes), saved)

    @cached_property
    def footprint(self) -> Held:
        """What the fullest chip holds [byte]."""
        return max((self.held(stage) for stage in self.stages), key=lambda each: each.total)

    @property
    def fits(self) -> bool | None:
        """Whether states and saved tensors fit into a chip; None: its capacity is unknown."""
        capacity = self.machine.level.capacity_bytes
        return None if capacity is None else self.footprint.total <= capacity
