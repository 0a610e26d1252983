"""Training levers: where ZeRO's collectives hide or send no more, and where recomputing gains.

Times are exact: those of the same step under a changed plan.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any, cast

from rooflines.basics.numbers import MAX_SIZE, exact
from rooflines.dictionary.columns import ALWAYS, NEVER
from rooflines.solvers.payoffs import ESTIMATED_TIME, LOWER_TIME, UPPER_TIME, End, ends_of
from rooflines.solvers.training_limits import hidden_network, largest_micro_batch
from rooflines.theory.resources import MEMORY, NETWORK
from rooflines.training.training_kernels import MICRO_BATCH, MICRO_BATCHES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rooflines.sweep.training_sweep import TrainingCase, TrainingSweep
    from rooflines.theory.times import Seconds

STAGES = ("optimizer", "gradients", "weights")
"""ZeRO stages, as values of `shard`."""


def training_levers(sweep: TrainingSweep) -> Iterator[tuple[TrainingCase, dict[str, Any]]]:
    """Yield the thresholds of ZeRO stages and recomputation that a sweep's config lists.

    Yields:
        A case, and the values by column.
    """
    axes = [axis for axis in SOLVERS if axis in sweep.config.thresholds]
    for axis, block in product(axes, sweep.blocks):
        sizes, points = block.after
        cases = cast("tuple[TrainingCase, ...]", block.cases)
        for case, batch, context in product(cases, sizes.columns["B"], points.columns["S"]):
            for row in SOLVERS[axis](case, batch, context):
                yield case, {"axis": axis, "B": batch, "S": context, **row}


def with_plan(case: TrainingCase, **keys: object) -> TrainingCase:
    """Case under a plan with other keys."""
    plan = case.plan.model_copy(update=keys)
    sharing = replace(case.sharing, split=plan)
    return replace(case, workload=replace(case.workload, sharing=sharing))


def _row(end: End, time: str, **columns: object) -> dict[str, Any]:
    """Columns of an end."""
    row = {"outcome": end.outcome, "side": end.side, "critical": end.critical, "time": time}
    return {**row, "critical_exact": end.exact, **columns}


def hiding_rows(case: TrainingCase, batch: int, _: int) -> Iterator[dict[str, Any]]:
    """Contexts from which a ZeRO stage's network time hides under math.

    The estimate is math times a typed slowdown, or times the factor of a training fit to the math.
    """
    levers = case.place.sweep.config.levers
    slowdown = (levers.slowdown if levers else None) or case.math_slowdown
    for stage in STAGES:
        staged = with_plan(case, shard=stage)
        for time, factor in ((LOWER_TIME, None), (ESTIMATED_TIME, slowdown)):
            if time == ESTIMATED_TIME and factor is None:
                continue
            times = Fraction(1) if factor is None else exact(factor)
            end = hidden_network(staged, batch // case.plan.global_micro_batch, times)
            yield _row(end, time, zero_stage=stage, S=None, slowdown=factor and float(factor))


def sending_rows(case: TrainingCase, _: int, context: int) -> Iterator[dict[str, Any]]:
    """Micro-batches a step up to which a ZeRO stage's network time is at most that of `none`."""
    plain = with_plan(case, shard="none")
    for stage in STAGES:
        staged = with_plan(case, shard=stage)

        def gain(batches: int, staged: TrainingCase = staged) -> Fraction:
            step = case.step(batches * case.plan.global_micro_batch, context)
            times = [part.times.at(part.extents(step)) for part in (plain, staged)]
            return times[0][NETWORK.bound] - times[1][NETWORK.bound]

        for end in ends_of(gain, 1, MAX_SIZE // case.plan.global_micro_batch, ties=True):
            yield _row(end, LOWER_TIME, zero_stage=stage, B=None)


def recompute_rows(case: TrainingCase, batch: int, context: int) -> Iterator[dict[str, Any]]:
    """Sequences in a micro-batch from which recomputing all layers gains, with as large a step.

    It is compared with the largest micro-batch that fits without; `gain` is that step's time over
    the one with the largest that fits with it. A fit to the time without overlap multiplies both.
    Stages of a pipeline are left out, whose bubble changes, too.
    """
    if case.plan.pp > 1 or case.machine.level.capacity_bytes is None:
        return
    plain, again = (with_plan(case, recompute=mode) for mode in ("none", "full"))
    most = batch // case.plan.dp
    fits = [min(largest_micro_batch(part, context), most) for part in (plain, again)]
    for time, seconds_of in RECOMPUTE_TIMES.items():
        if time == ESTIMATED_TIME and (case.fit is None or case.fit.base != "upper"):
            continue  # fits that follow the math alone do not see what a larger micro-batch saves
        columns: dict[str, Any] = {"max_fit": fits[1]}
        if not all(fits):
            end = End(ALWAYS if fits[1] else NEVER)
            limit = None if fits[1] else MEMORY.bound
            yield _row(end, time, limit=limit, **columns)
            continue
        without = seconds_of(_seconds(plain, batch, context, fits[0]))

        def gain(
            size: int,
            seconds_of: Callable[[Seconds], Fraction] = seconds_of,
            without: Fraction = without,
        ) -> Fraction:
            return without - seconds_of(_seconds(again, batch, context, size))

        columns["gain"] = float(without / (without - gain(fits[1])))
        for end in ends_of(gain, 1, fits[1]):
            yield _row(end, time, **columns)


def _seconds(case: TrainingCase, batch: int, context: int, size: int) -> Seconds:
    """Times of a step in micro-batches of some size, a fraction of them at the end [s]."""
    extents = case.extents(case.step(batch, context))
    extents[MICRO_BATCH] = size
    extents[MICRO_BATCHES] = Fraction(batch, case.plan.dp * size)
    return case.times.at(extents)


def _without_overlap(times: Seconds) -> Fraction:
    """Sum of the resources' times [s]."""
    return sum(times.by_bound.values(), Fraction(0))


RECOMPUTE_TIMES: Mapping[str, Callable[[Any], Fraction]] = {
    LOWER_TIME: lambda times: times.lower,
    UPPER_TIME: _without_overlap,
    ESTIMATED_TIME: _without_overlap,
}
"""Time of a step by column; a training fit multiplies the time without overlap."""

SOLVERS: Mapping[str, Callable[[TrainingCase, int, int], Iterator[dict[str, Any]]]] = {
    "S_zero": hiding_rows,
    "batches_zero": sending_rows,
    "micro_batch_recompute": recompute_rows,
}
"""Rows of a lever's thresholds, by axis."""
