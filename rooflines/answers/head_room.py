"""Memory left beside a step, and the share that engines set aside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.basics.text import percent, si
from rooflines.evaluation.footprints import largest_fitting_batch
from rooflines.models.engine_rules import USUAL_UTILIZATION
from rooflines.models.memory import kv_cache_elements

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rooflines.sweep.step_sweep import StepCase

SET_ASIDE = f"engines set aside {percent(float(1 - USUAL_UTILIZATION))}"
"""Memory share that engines leave by default, in words."""

NOTHING_SET_ASIDE = f"with nothing set aside: {SET_ASIDE} (--engine vllm has its pool)"
"""Clause on what the exact need leaves out."""


def usual_batch(case: StepCase, context: int) -> int | None:
    """Largest batch in the memory that engines use by default [1].

    None: an engine is asked for, whose pool decides, or the capacity is unknown.

    Args:
        case: The case.
        context: Tokens per sequence [1].
    """
    if case.started is not None:
        return None
    shape = case.workload.resident_shape
    full, local = (kv_cache_elements(shape, context, local=is_local) for is_local in (False, True))
    batch = largest_fitting_batch(case, full, local, USUAL_UTILIZATION)
    return None if batch is None else batch * case.split.dp


def head_room(free_bytes: float, share: float, batch: int, per_chip: str) -> str:
    """Memory that a step leaves, and the batch that engines hold.

    Args:
        free_bytes: Memory that is left on a chip [byte].
        share: The same over its capacity [1].
        batch: Batch in the share that engines use, as `usual_batch` [1].
        per_chip: Phrase after an amount per chip.
    """
    holds = f"B up to {batch:,}" if batch else "no batch fits"
    return f"{si(free_bytes, 'B')}{per_chip} ({percent(share)}); {SET_ASIDE}: {holds}"


def largest_text(batch: int | None) -> str:
    """Clause behind the largest batch that fits, which leaves nothing; empty with an engine.

    Args:
        batch: Batch in the share that engines use, as `usual_batch` [1].
    """
    if batch is None:
        return ""
    return f", with nothing set aside; {SET_ASIDE}, which leaves B={batch:,}"


def table_notes(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Note on largest batches in a table, which fill the memory, unless engines decide.

    Args:
        rows: Rows with `max_B`, and `engine` where one is asked for.
    """
    if any(row.get("max_B") and not row.get("engine") for row in rows):
        yield f"Largest B fills the memory, {NOTHING_SET_ASIDE}."
