"""Pools of serving engines for the cases of a sweep over models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflines.models.engine_pool import Replica, engine_pool

if TYPE_CHECKING:
    from rooflines.models.engine_pool import EnginePool
    from rooflines.models.engine_start import Started
    from rooflines.models.split import Parallelism
    from rooflines.sweep.step_sweep import StepCase


def pool_of_case(
    case: StepCase, started: Started, context: int, split: Parallelism | None = None
) -> EnginePool | None:
    """Pool that an engine makes in a case; None where the capacity is unknown.

    Args:
        case: The case.
        started: The engine.
        context: Tokens of a request [1].
        split: Another split; None: the case's.

    Raises:
        RooflinesError: No rules are known for the model's caches.
    """
    capacity = case.machine.level.capacity_bytes
    if capacity is None:
        return None
    draft = case.place.sweep.config.draft
    split = split or case.split
    settings = started.settings(case.chip, capacity, split, draft.tokens if draft else 0)
    replica = Replica(case.workload.resident_shape, case.sharing.bits, split, split.stages)
    return engine_pool(started.rules, replica, capacity, context, settings)
