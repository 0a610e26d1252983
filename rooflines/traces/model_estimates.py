"""Times with a good library in a model's groups: attention, experts and matmuls, by a calibration.

The estimate is that of `explain` for the same step: its sequences at their mean context, or its
prompts where all are alike. Other steps, which mix both, have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflines.answers.case_answer import step_kernels
from rooflines.answers.question import catalogues_in, model_question, question_sweep
from rooflines.basics.errors import RooflinesError
from rooflines.fits.calibration_files import AUTO_CALIBRATION
from rooflines.models.architecture import DECODE, PREFILL
from rooflines.sweep.step_sweep import ModelSweep
from rooflines.traces.trace_timings import LibraryTime

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rooflines.models.model import Model
    from rooflines.traces.model_step import StepSums
    from rooflines.traces.trace_records import Call

MAX_STEPS = 16
"""Steps that are estimated, each a question of its own [1]."""

SAME_PAIRS = 0.01
"""Difference of the pairs up to which prompts count as alike [1]."""

UNTIMED = "untimed"
"""Begin of the calibration of a group that no timings cover."""

NEED_TIMED_SIZES = ("experts", "attention")
"""Groups whose fits hold at the timed sizes alone: beyond, experts can be off by a factor of 3."""

FROM_MODEL = "model"
"""Origin of calls that are a model's groups."""


def group_times(
    calls: Iterable[Call], model: Model, chip: str, tp: int, steps: Mapping[int, StepSums]
) -> dict[int, LibraryTime]:
    """Times with a good library by the call's `id`; calls that no calibration covers have none.

    Args:
        calls: Calls of a trace.
        model: Model whose groups the kernels are.
        chip: The chip's id.
        tp: Chips that share each layer [1].
        steps: Sums by the step's number.
    """
    by_step = {
        index: step_times(model, chip, tp, sums) for index, sums in [*steps.items()][:MAX_STEPS]
    }
    times: dict[int, LibraryTime] = {}
    for call in calls:
        estimate = by_step.get(call.step, {}).get(call.name)
        if call.origin == FROM_MODEL and call.cost is not None and estimate is not None:
            times[id(call)] = estimate
    return times


def step_times(model: Model, chip: str, tp: int, sums: StepSums) -> dict[str, LibraryTime]:
    """Times of one layer by group, without its collectives; empty: no calibration, or mixed steps.

    Experts and attention beyond the timed sizes have none.

    Args:
        model: The model.
        chip: The chip's id.
        tp: Chips that share each layer [1].
        sums: The step's sums.
    """
    length = round(sums.context / sums.sequences)
    pairs = sums.sequences * length * (length + 1) / 2
    if not sums.prefills:
        phase = DECODE
    elif sums.context == sums.tokens and abs(pairs / sums.pairs - 1) < SAME_PAIRS:
        phase = PREFILL
    else:
        return {}
    catalogues = catalogues_in(None)
    sizes = {"B": sums.sequences, "S": length}
    question = model_question(chip, model, sizes, None, catalogues)
    options = {"phase": phase, "split": {"tp": tp}, "calibration": AUTO_CALIBRATION}
    try:
        sweep = question_sweep(question, catalogues, **options)
    except RooflinesError:
        return {}
    rows = step_kernels(sweep) if isinstance(sweep, ModelSweep) else []
    return {
        row["group"]: LibraryTime(
            row["t_estimate_s"] - (row["collectives_estimate_s"] or 0.0),
            None,
            None,
            f"{chip}/{row['calibration'].partition(' ')[0]}",
        )
        for row in rows
        if row["t_estimate_s"] and row["calibration"]
        if not row["calibration"].startswith(UNTIMED)
        if not (row["estimate_extrapolated"] and row["group"].startswith(NEED_TIMED_SIZES))
    }
