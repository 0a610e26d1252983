"""Memory of a training step in parts, and what it would be without its levers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rooflines.hardware.support import host_link
from rooflines.training.optimizers import optimizer_of
from rooflines.training.parallel_plan import UNKNOWN_WORKING
from rooflines.training.plan_parts import ROUTED
from rooflines.training.stage_memory import PlannedModel
from rooflines.training.training_kernels import MICRO_BATCHES, MODEL

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from rooflines.models.groups import Step
    from rooflines.sweep.training_sweep import TrainingCase
    from rooflines.training.parallel_plan import TrainingPlan
    from rooflines.training.pipeline_stages import Stage
    from rooflines.training.stage_memory import StageMemory


def training_memory(case: TrainingCase, step: Step) -> dict[str, Any]:
    """Parts of a step's memory on the fullest chip, by name; bytes are exact, as floats.

    Args:
        case: The step at a place.
        step: Its sizes.

    Returns:
        `optimizer`, `summary` in words; `gradients`, `loss`, `stack`; `working`, the factors of a
        peak on what is held [1]. With adapters `base`, `base_bytes`, `base_16_bit_bytes` and
        `trained_state_bytes` [byte]; `full_state_bytes`, `full_saved_bytes` and `full_fits` of a
        training of all weights; `model_flops_share`, FLOP over those of it, none repeated [1];
        `has_plain_experts`, whether there are routed experts, all without an adapter.
        With offload `offload`, `host_link` and `host_bytes_per_s` [byte/s].
    """
    plan, working = case.plan, case.plan.working_factor
    parts: dict[str, Any] = {
        "optimizer": plan.optimizer,
        "summary": optimizer_of(plan.optimizer).summary,
        "gradients": plan.gradients,
        "loss": plan.loss,
        "stack": plan.stack,
        "working": UNKNOWN_WORKING if working is None else (working, working),
    }
    if plan.lora is not None:
        parts |= _with_adapters(case, step)
    link = host_link(case.place.entry) if plan.offload else None
    if link is not None:
        parts |= {
            "offload": list(plan.offload),
            "host_link": link[0],
            "host_bytes_per_s": float(link[1].bytes_per_s),
        }
    return parts


def _with_adapters(case: TrainingCase, step: Step) -> Mapping[str, Any]:
    """Parts of a step with adapters, and of a training of all weights."""
    plan, capacity = case.plan, case.machine.level.capacity_bytes
    stage, _ = _fullest(case, plan, step)
    states = PlannedModel(case.workload.kernels.model, plan).states
    wide = PlannedModel(
        case.workload.kernels.model, plan.model_copy(update={"base": "bf16"})
    ).states
    full = plan.model_copy(update={"lora": None, "base": None})
    _, full_memory = _fullest(case, full, step)
    full_saved = _saved(case, full_memory, step)
    full_case = replace(
        case, workload=replace(case.workload, sharing=replace(case.sharing, split=full))
    )
    flops = [part.work(MODEL.work).at(part.extents(step)) for part in (case, full_case)]
    frozen = states.frozen_bytes_on(stage)
    return {
        "base": plan.base,
        "base_bytes": float(frozen),
        "base_16_bit_bytes": float(wide.frozen_bytes_on(stage)),
        "trained_state_bytes": float(states.bytes_on(stage) - frozen),
        "full_state_bytes": float(full_memory.states),
        "full_saved_bytes": float(full_saved),
        "full_fits": None if capacity is None else full_memory.states + full_saved <= capacity,
        "model_flops_share": float(flops[0] / flops[1]),
        "has_plain_experts": _has_plain_experts(case),
    }


def _has_plain_experts(case: TrainingCase) -> bool:
    """True if a model has routed experts, and none an adapter."""
    shape, lora = case.model.shape, case.plan.lora
    if shape.moe is None or lora is None:
        return False
    return all(adapter.kernel != ROUTED for adapter in lora.adapters(shape).experts)


def _fullest(case: TrainingCase, plan: TrainingPlan, step: Step) -> tuple[Stage, StageMemory]:
    """Stage with the most states and saved tensors under a plan."""
    planned = PlannedModel(case.workload.kernels.model, plan)
    stages = [(stage, planned.memory(stage)) for stage, _ in planned.states.stages]
    return max(stages, key=lambda pair: pair[1].states + _saved(case, pair[1], step))


def _saved(case: TrainingCase, memory: StageMemory, step: Step) -> Fraction:
    """Saved tensors on a stage [byte]."""
    return memory.saved(int(case.extents(step)[MICRO_BATCHES])) * step.S
