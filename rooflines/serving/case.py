"""A case: one model in one phase on one chip, with its dtypes and split."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from rooflines.models.groups import Step
from rooflines.models.shape import PREFILL
from rooflines.serving.estimates import kernel_estimate
from rooflines.serving.kernels import kernels_of
from rooflines.serving.times import step_seconds, times_of

if TYPE_CHECKING:
    from rooflines.fits.choice import CalibrationChoice
    from rooflines.fits.estimate import Estimate
    from rooflines.models.dtypes import StepDtypes
    from rooflines.models.model import Model
    from rooflines.models.shape import Phase
    from rooflines.models.split import Split
    from rooflines.serving.kernels import Kernel, Sharing
    from rooflines.serving.times import KernelTimes, Machine, Seconds


@dataclass(frozen=True)
class Case:
    """Everything but the sizes of a step.

    Attributes:
        name: The model's name in tables.
        model: The model.
        phase: `decode` or `prefill`.
        chip, memory, network: As in tables; network is None without one.
        dtypes: The dtypes.
        sharing: How chips share the model and store its tensors.
        machine: The chip's numbers.
        choice: The calibrations that apply.
    """

    name: str
    model: Model
    phase: Phase
    chip: str
    memory: str
    network: str | None
    dtypes: StepDtypes
    sharing: Sharing
    machine: Machine
    choice: CalibrationChoice

    @property
    def keys(self) -> dict[str, str | int | None]:
        """Its values in the key columns of tables."""
        split = self.split
        return {
            "model": self.name,
            "phase": self.phase,
            "chip": self.chip,
            "memory": self.memory,
            "network": self.network,
            "dtypes": self.dtypes.label,
            "split": split.name,
            "chips": split.chips,
            "tp": split.shards,
            "dp": split.dp,
            "ep": split.ep,
        }

    @property
    def split(self) -> Split:
        """How chips share the model."""
        return self.sharing.split

    @property
    def routing(self) -> str:
        """Which experts tokens choose."""
        return self.sharing.routing

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        """What runs in a step, in order."""
        return kernels_of(self.model.shape, self.phase, self.sharing)

    @cached_property
    def times(self) -> tuple[KernelTimes, ...]:
        """The nominal times of the kernels."""
        return tuple(times_of(kernel, self.machine) for kernel in self.kernels)

    @cached_property
    def estimates(self) -> tuple[Estimate | None, ...]:
        """Their calibrated times; None without a calibration of the compute dtype."""
        return tuple(kernel_estimate(kernel, self.machine, self.choice) for kernel in self.kernels)

    def step(self, batch: int, context: int, new: int = 1) -> Step:
        """The sizes of a step.

        Args:
            batch: B, sequences [1].
            context: S, tokens of each after the step; in prefill, of its prompt [1].
            new: T, new tokens of each; in prefill all are new [1].
        """
        return Step(batch, context, context if self.phase == PREFILL else new, self.routing)

    def seconds(self, step: Step) -> Seconds:
        """The exact times of a step on one chip, over kernels and layers [s]."""
        return step_seconds(self.kernels, self.times, lambda kernel: kernel.extents(step))
