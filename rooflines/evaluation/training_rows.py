"""Rows of training steps: pipeline stages, memory of the fullest stage, shares of peak."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import polars as pl

from rooflines.basics.expressions import quotient
from rooflines.dictionary.columns import ESTIMATE_SUFFIX
from rooflines.evaluation.compiler import CASE_INDEX
from rooflines.evaluation.run_times import SERIAL_TIMES, RunSeconds
from rooflines.evaluation.step_rows import BANDS, MAX_TIME, StepParts, times_at_peak, where_fits
from rooflines.sweep.training_sweep import POINT_COLUMN
from rooflines.theory.resources import MATH
from rooflines.training.training_kernels import ALL_PAIRS, HARDWARE, MICRO_BATCHES, MODEL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflines.evaluation.operation_rows import Stages
    from rooflines.evaluation.step_rows import StepBlock
    from rooflines.sweep.axes import Axis
    from rooflines.sweep.training_sweep import TrainingCase, TrainingSweep

PEAK_SHARES = {"mfu": MODEL, "mfu_full": ALL_PAIRS, "hfu": HARDWARE}
"""FLOPs whose time at peak is divided by the step time, by column."""

DAY_S = 86_400

ROUNDING_FACTOR = 1.0 + 1e-14
"""Factor on a quotient of bytes, so that a whole number is not rounded past itself [1]."""


ABOVE_BOUND: dict[str, pl.Expr] = {
    name: pl.when(pl.col(name).is_not_null()).then(pl.max_horizontal(name, "t_lower_s"))
    for name in BANDS
}
"""Ends of an estimate's band, at least the bound [s]."""


def training_parts(steps: StepBlock[TrainingCase], points: Axis) -> StepParts:
    """Parts of rows for training steps; all cases have as many kinds of stages.

    Args:
        steps: The steps.
        points: Their contexts.
    """
    at_peak_s = {
        f"#{flops.name}_s": [case.work_time(flops) for case in steps.cases]
        for flops in PEAK_SHARES.values()
    }
    compiler, efficiency = (
        steps.compiler,
        steps.constant(case.machine.efficiency[MATH.name] for case in steps.cases),
    )
    shares = {name: pl.col(f"#{flops.name}_s") * efficiency for name, flops in PEAK_SHARES.items()}
    return StepParts(
        seconds={
            **_stage_times(steps, points),
            **{name: compiler.total(compiler.poly(polys)) for name, polys in at_peak_s.items()},
            **_micro_batches(steps),
        },
        lower=MAX_TIME,
        derived={"t_estimate_s": _estimate(steps)},
        footprints=_footprints(steps),
        at_peak={**times_at_peak(steps), **shares},
        before=[],
        after=[
            ABOVE_BOUND,
            *([] if steps.config.tokens is None else _whole_training(steps.config.tokens)),
        ],
    )


def _estimate(steps: StepBlock[TrainingCase]) -> pl.Expr:
    """Estimate: times * t_upper_s, or max(t_serial_s, times * t_math_s / (1 - bubble)) [s].

    Args:
        steps: The steps; without a fit a step has none.
    """
    upper, math = (
        steps.constant(
            case.slowdown if case.fit is not None and case.fit.base == base else None
            for case in steps.cases
        )
        for base in ("upper", "math")
    )
    computing = quotient(pl.col("t_math_s") * math, 1.0 - pl.col("bubble"))
    at_least = pl.when(computing.is_not_null()).then(pl.max_horizontal(computing, "t_serial_s"))
    return pl.coalesce(pl.col("t_upper_s") * upper, at_least)


def _whole_training(tokens: float) -> Stages:
    """Days and price of a whole training, at the bound without overlap and at the estimate.

    Args:
        tokens: Tokens of the training [1].
    """
    stages: Stages = []
    count = quotient(pl.lit(tokens), pl.col("#tokens"))
    whole = {"": pl.col("t_serial_s") * count, ESTIMATE_SUFFIX: pl.col("t_estimate_s") * count}
    for suffix, run_s in whole.items():
        usd = where_fits(run_s * pl.col("#usd_per_s"))
        stages.append({f"days{suffix}": run_s / DAY_S, f"usd{suffix}": usd})
    return stages


def _micro_batches(steps: StepBlock[TrainingCase]) -> dict[str, pl.Expr]:
    """Micro-batches, and the bubble, (pp - 1) / (runs + pp - 1).

    runs = micro-batches * interleave.
    """
    batches = steps.compiler.columns[MICRO_BATCHES]
    waits = steps.constant(case.plan.pp - 1 for case in steps.cases)
    runs = batches * steps.constant(case.plan.interleave for case in steps.cases)
    return {"bubble": quotient(waits, runs + waits), MICRO_BATCHES: batches.cast(pl.Int64)}


def _stage_times(steps: StepBlock[TrainingCase], points: Axis) -> dict[str, pl.Expr]:
    """Busiest stage's times, serialized and without overlap [s].

    A micro-batch begins on the last stage after (pp - 1) / interleave others, the bubble.

    Args:
        steps: The steps.
        points: Their contexts.
    """
    cases, batches = steps.cases, steps.compiler.columns[MICRO_BATCHES]
    sweep = cast("TrainingSweep", cases[0].place.sweep)
    run_times = sweep.memo(RunSeconds)[points.points]
    run_times.add(placed_runs for case in cases for placed_runs in case.placed_runs)
    stages_ahead = steps.constant((case.plan.pp - 1) / case.plan.interleave for case in steps.cases)
    stretched = quotient(batches + stages_ahead, batches)
    stages = []
    for kind in range(len(cases[0].stage_memory)):
        placed_stages = ((case.placed_runs, case.workload.stages[kind][0]) for case in cases)
        case_lines = zip(
            *(run_times.on_stage(*placed_stage) for placed_stage in placed_stages), strict=True
        )
        lines = [
            [_context_column(values, points.count) for values in zip(*case_values, strict=True)]
            for case_values in case_lines
        ]
        stages.append(
            [(slope * batches + start) * stretched + once for slope, start, once in lines]
        )
    return dict(zip(SERIAL_TIMES, map(pl.max_horizontal, zip(*stages, strict=True)), strict=True))


def _context_column(case_values: Sequence[Sequence[float]], count: int) -> pl.Expr:
    """Column with a number for every context in every case.

    Args:
        case_values: The numbers, by case.
        count: Number of contexts [1].
    """
    values = pl.Series(
        [value for context_values in case_values for value in context_values], dtype=pl.Float64
    )
    index = pl.col(CASE_INDEX).cast(pl.Int64) * count + pl.col(POINT_COLUMN)
    return pl.lit(values).gather(index)


def _footprints(steps: StepBlock[TrainingCase]) -> Stages:
    """Fullest stage's states and saved tensors, peak, `fits`, and the largest sizes that fit.

    The peak of a stage is (states + saved) * factor + in flight; `fits` reads it where the plan
    names a stack, else states + saved.
    """
    batches, length = steps.compiler.columns[MICRO_BATCHES], pl.col("S").cast(pl.Float64)
    capacity = steps.constant(case.machine.level.capacity_bytes for case in steps.cases)
    held_or_peak = ["held" if case.plan.stack is None else "peak" for case in steps.cases]
    steps.compiler.put("fits_by", pl.Series(held_or_peak))
    working = steps.constant(case.plan.working_factor for case in steps.cases)
    factor, counted = working.fill_null(1.0), working.is_not_null().cast(pl.Float64)
    columns: dict[str, pl.Expr] = {}
    free_by_token: list[tuple[pl.Expr, pl.Expr]] = []
    kinds = range(len(steps.cases[0].stage_memory))
    for kind in kinds:
        stage_memory = [case.stage_memory[kind] for case in steps.cases]
        states, saved_per_chunk, transient, max_in_flight, runs, gathered, loss = (
            steps.compiler.constant(list(map(float, values)))
            for values in zip(*stage_memory, strict=True)
        )
        token = saved_per_chunk * pl.min_horizontal(max_in_flight, batches * runs) + transient
        columns |= {
            f"#saved{kind}": token * length,
            f"#state{kind}": states,
            f"#in_flight{kind}": gathered + loss * length,
        }
        free = capacity - states * factor - gathered * counted
        free_by_token.append((free, token * factor + loss * counted))
    micro_batch = steps.constant(case.plan.micro_batch for case in steps.cases)
    share = steps.constant(case.plan.cp for case in steps.cases)
    totals = [pl.col(f"#saved{kind}") + pl.col(f"#state{kind}") for kind in kinds]
    in_flight = [pl.col(f"#in_flight{kind}") for kind in kinds]
    peaks = [total * factor + more for total, more in zip(totals, in_flight, strict=True)]
    parts = {
        f"{name}_bytes": _of_largest(totals, [pl.col(f"#{name}{kind}") for kind in kinds])
        for name in ("state", "saved")
    }
    trained = steps.constant(case.trained_parameters for case in steps.cases)
    counted_bytes = pl.when(working.is_null()).then(pl.col("footprint_bytes"))
    return [
        columns,
        {
            "footprint_bytes": pl.max_horizontal(*totals),
            "held_bytes": pl.max_horizontal(*totals),
            **parts,
            "in_flight_bytes": _of_largest(peaks, in_flight),
            "working_bytes": _of_largest(peaks, [total * (working - 1.0) for total in totals]),
            "peak_bytes": pl.max_horizontal(*peaks),
            "trained_parameters": trained.cast(pl.Int64),
            "max_micro_batch": _max_whole(
                [free / (token * length) * micro_batch for free, token in free_by_token]
            ),
            "max_S": _max_whole([free / token / share for free, token in free_by_token])
            * share.cast(int),
        },
        {"fits": counted_bytes.otherwise(pl.col("peak_bytes")) <= capacity},
    ]


def _of_largest(sizes: Sequence[pl.Expr], values: Sequence[pl.Expr]) -> pl.Expr:
    """Value of the stage with the largest size, of the first if several have it."""
    largest = pl.max_horizontal(*sizes)
    return pl.coalesce(
        pl.when(size >= largest).then(value) for size, value in zip(sizes, values, strict=True)
    )


def _max_whole(quotients: Sequence[pl.Expr]) -> pl.Expr:
    """Largest whole number within all quotients; 0: none."""
    minimum = pl.min_horizontal(*quotients).clip(lower_bound=0.0)
    return (minimum * ROUNDING_FACTOR).floor().cast(pl.Int64, strict=False)
