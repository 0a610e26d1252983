"""Plan values that decide a training kernel: all that it is built from, so a key for its memo."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from rooflines.models.architecture import ROUTER
from rooflines.training.optimizers import optimizer_of
from rooflines.training.parallel_plan import ALONE, ChipGroup

if TYPE_CHECKING:
    from rooflines.models.architecture import Shape
    from rooflines.training.adapters import Lora
    from rooflines.training.parallel_plan import (
        Base,
        Context,
        Gradients,
        Loss,
        Optimizer,
        Recompute,
        Save,
        Shard,
        TrainingPlan,
    )

ROUTED, SHARED = "experts", "shared"
EXPERT_KERNELS = (ROUTER, ROUTED, SHARED)
"""Kernels in a layer with experts; `ROUTED` is the routed ones'."""

SHARED_IN_MICRO_BATCH = ("gradients", "weights")
"""Values of `shard` with collectives in every micro-batch."""


@dataclass(frozen=True)
class LayerPlan:
    """Plan values that decide a kernel's passes in a micro-batch.

    Attributes:
        tp, cp: Chips that share the kernel, and a sequence [1].
        replicas: Chips with equal weights; one where no collective joins them in a micro-batch.
        expert_shards: For the experts the chips that share them, else 1 [1].
        is_expert_parallel: Whether the kernel is in a layer with expert parallelism.
        is_tied: Whether the LM head shares the embedding's table on one stage.
        shard, save, recompute, context, loss, lora, base: Plan keys.
        offloads_saved: Whether saved tensors are in host memory.
        optimizer: Plan key where it sets the gradients' format, else the default.
    """

    tp: int
    cp: int
    replicas: ChipGroup
    expert_shards: int
    is_expert_parallel: bool
    is_tied: bool
    shard: Shard
    save: Save
    recompute: Recompute
    context: Context
    loss: Loss = "logits"
    lora: Lora | None = None
    base: Base = None
    offloads_saved: bool = False
    optimizer: Optimizer = "adam"

    @classmethod
    def for_kernel(cls, plan: TrainingPlan, shape: Shape, kernel: str) -> LayerPlan:
        """Values for a kernel, by its name."""
        is_routed = kernel == ROUTED
        replicas = plan.expert_group if is_routed else plan.weight_group
        return cls(
            plan.tp,
            plan.cp,
            replicas if plan.shard in SHARED_IN_MICRO_BATCH else ALONE,
            plan.expert_shards if is_routed else 1,
            kernel in EXPERT_KERNELS and plan.is_expert_parallel,
            shape.tied and plan.pp == 1,
            plan.shard,
            plan.save,
            plan.recompute,
            plan.context,
            plan.loss,
            plan.lora,
            plan.base,
            "saved" in plan.offload,
            plan.optimizer if optimizer_of(plan.optimizer).sizes else "adam",
        )

    @property
    def token_share(self) -> Fraction:
        """Share of a micro-batch's tokens or FLOPs per chip: 1 / (tp * cp) [1]."""
        return Fraction(1, self.tp * self.cp)


@dataclass(frozen=True)
class SendPlan:
    """Plan values that decide the transfer between pipeline stages.

    Attributes:
        stages: The stages, as far apart as a stage has chips.
        interleave: Chunks per stage [1].
        token_share: Share of a micro-batch's tokens per chip: 1 / (tp * cp) [1].
    """

    stages: ChipGroup
    interleave: int
    token_share: Fraction

    @classmethod
    def from_plan(cls, plan: TrainingPlan) -> SendPlan:
        """Values in a plan."""
        stages = ChipGroup(plan.pp, plan.pod_stage_chips)
        return cls(stages, plan.interleave, Fraction(1, plan.tp * plan.cp))


@dataclass(frozen=True)
class StatePlan:
    """Plan values that decide a chip's weights, gradients and optimizer states, and their kernels.

    Attributes:
        pp, interleave: Stages, and chunks per stage [1].
        weights, experts: Chips with equal weights, and with equal experts; as many chips as the
            stride share them.
        shard, optimizer, gradients, lora, base: Plan keys.
        offloads_states: Whether optimizer states are in host memory.
        pods: Torus pods with equal replicas [1].
        stage_layers, first, last: Plan keys for layers on a stage [1].
    """

    pp: int
    interleave: int
    weights: ChipGroup
    experts: ChipGroup
    shard: Shard
    optimizer: Optimizer
    gradients: Gradients
    lora: Lora | None
    base: Base
    offloads_states: bool
    pods: int = 1
    stage_layers: tuple[int, ...] | None = None
    first: int | None = None
    last: int | None = None

    @classmethod
    def from_plan(cls, plan: TrainingPlan) -> StatePlan:
        """Values in a plan."""
        return cls(
            plan.pp,
            plan.interleave,
            plan.weight_group,
            plan.expert_group,
            plan.shard,
            plan.optimizer,
            plan.gradients,
            plan.lora,
            plan.base,
            "states" in plan.offload,
            plan.pods,
            plan.stage_layers,
            plan.first,
            plan.last,
        )
