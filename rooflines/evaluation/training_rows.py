"""Rows of training steps: pipeline stages, memory of the fullest stage, shares of peak."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import polars as pl

from rooflines.basics.expressions import quotient
from rooflines.dictionary.columns import ESTIMATE_SUFFIX
from rooflines.evaluation.compiler import CASE_INDEX
from rooflines.evaluation.run_times import SERIAL_TIMES, RunSeconds
from rooflines.evaluation.step_rows import StepCompiler, where_fits
from rooflines.sweep.training_sweep import POINT_COLUMN
from rooflines.theory.resources import MATH
from rooflines.training.training_kernels import ALL_PAIRS, HARDWARE, MICRO_BATCHES, MODEL

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from fractions import Fraction

    from rooflines.evaluation.operation_rows import Stages
    from rooflines.sweep.cases import Block
    from rooflines.sweep.training_sweep import TrainingCase, TrainingSweep

PEAK_SHARES = {"mfu": MODEL, "mfu_full": ALL_PAIRS, "hfu": HARDWARE}
"""FLOPs whose time at peak is divided by the step time, by column."""

DAY_S = 86_400

ROUNDING_FACTOR = 1.0 + 1e-14
"""Factor on a quotient of bytes, so that a whole number is not rounded past itself [1]."""


class TrainingCompiler(StepCompiler):
    """Compiler for training step rows; all cases have as many kinds of stages."""

    cases: Sequence[TrainingCase]  # type: ignore[assignment]  # those of its blocks

    def __init__(self, block: Block[TrainingCase]) -> None:
        super().__init__(block)
        _, self._points = block.after
        self._batches = self.compiler.columns[MICRO_BATCHES]

    def stages(self) -> Stages:
        """All columns but keys and sizes."""
        stages = super().stages()
        if self.config.tokens is not None:
            steps = quotient(pl.lit(self.config.tokens), pl.col("#tokens"))
            whole = {
                "": pl.col("t_serial_s") * steps,
                ESTIMATE_SUFFIX: pl.col("t_estimate_s") * steps,
            }
            for suffix, run_s in whole.items():
                usd = where_fits(run_s * pl.col("#usd_per_s"))
                stages.append({f"days{suffix}": run_s / DAY_S, f"usd{suffix}": usd})
        return stages

    def phase_columns(self) -> dict[str, pl.Expr]:
        """Times at peak, micro-batches, and the bubble, (pp - 1) / (runs + pp - 1).

        runs = micro-batches * interleave.
        """
        compiler = self.compiler
        waits = self._plan_constant(lambda case: case.plan.pp - 1)
        runs = self._batches * self._plan_constant(lambda case: case.plan.interleave)
        at_peak = {
            flops.name: [case.work_time(flops) for case in self.cases]
            for flops in PEAK_SHARES.values()
        }
        return {
            **{
                f"#{name}_s": compiler.total(compiler.poly(polys))
                for name, polys in at_peak.items()
            },
            "bubble": quotient(waits, runs + waits),
            MICRO_BATCHES: self._batches.cast(pl.Int64),
        }

    def derived_times(self) -> dict[str, pl.Expr]:
        """Estimate: a calibrated factor times t_upper_s, the time without overlap."""
        stretch = self._plan_constant(lambda case: case.fit.times if case.fit else None)
        return {"t_estimate_s": pl.col("t_upper_s") * stretch}

    def _plan_constant(self, value: Callable[[TrainingCase], float | Fraction | None]) -> pl.Expr:
        """Column with a number from each case's plan."""
        return self.compiler.constant(
            [None if (number := value(case)) is None else float(number) for case in self.cases]
        )

    def serial_times(self) -> dict[str, pl.Expr]:
        """Busiest stage's times, serialized and without overlap [s].

        A micro-batch begins on the last stage after (pp - 1) / interleave others, the bubble.
        """
        cases, batches = self.cases, self._batches
        sweep = cast("TrainingSweep", cases[0].place.sweep)
        run_times = sweep.memo(RunSeconds)[self._points.points]
        run_times.add(placed_runs for case in cases for placed_runs in case.placed_runs)
        stages_ahead = self._plan_constant(lambda case: (case.plan.pp - 1) / case.plan.interleave)
        stretched = quotient(batches + stages_ahead, batches)
        stages = []
        for kind in range(len(cases[0].stage_memory)):
            placed_stages = ((case.placed_runs, case.workload.stages[kind][0]) for case in cases)
            case_lines = zip(
                *(run_times.on_stage(*placed_stage) for placed_stage in placed_stages), strict=True
            )
            lines = [map(self._context_column, zip(*values, strict=True)) for values in case_lines]
            stages.append(
                [(slope * batches + start) * stretched + once for slope, start, once in lines]
            )
        return dict(
            zip(SERIAL_TIMES, map(pl.max_horizontal, zip(*stages, strict=True)), strict=True)
        )

    def _context_column(self, case_values: Sequence[Sequence[float]]) -> pl.Expr:
        """Column with a number for every context in every case."""
        values = pl.Series(
            [value for context_values in case_values for value in context_values], dtype=pl.Float64
        )
        index = pl.col(CASE_INDEX).cast(pl.Int64) * self._points.count + pl.col(POINT_COLUMN)
        return pl.lit(values).gather(index)

    def footprints(self) -> Stages:
        """Fullest stage's states and saved tensors, `fits`, and the largest sizes that fit."""
        batches, length = self._batches, pl.col("S").cast(pl.Float64)
        capacity = self._plan_constant(lambda case: case.machine.level.capacity_bytes)
        columns: dict[str, pl.Expr] = {}
        free_by_token: list[tuple[pl.Expr, pl.Expr]] = []
        kinds = range(len(self.cases[0].stage_memory))
        for kind in kinds:
            stage_memory = [case.stage_memory[kind] for case in self.cases]
            states, saved_per_chunk, transient, max_in_flight, runs = (
                self.compiler.constant(list(map(float, values)))
                for values in zip(*stage_memory, strict=True)
            )
            token = saved_per_chunk * pl.min_horizontal(max_in_flight, batches * runs) + transient
            columns |= {f"#saved{kind}": token * length, f"#state{kind}": states}
            free_by_token.append((capacity - states, token))
        micro_batch = self._plan_constant(lambda case: case.plan.micro_batch)
        share = self._plan_constant(lambda case: case.plan.cp)
        totals = [pl.col(f"#saved{kind}") + pl.col(f"#state{kind}") for kind in kinds]
        fullest = [footprint >= pl.max_horizontal(*totals) for footprint in totals]
        return [
            columns,
            {
                "footprint_bytes": pl.max_horizontal(*totals),
                **{
                    f"{name}_bytes": pl.coalesce(
                        pl.when(is_fullest).then(pl.col(f"#{name}{kind}"))
                        for kind, is_fullest in zip(kinds, fullest, strict=True)
                    )
                    for name in ("state", "saved")
                },
                "max_micro_batch": _max_whole(
                    [free / (token * length) * micro_batch for free, token in free_by_token]
                ),
                "max_S": _max_whole([free / token / share for free, token in free_by_token])
                * share.cast(int),
            },
            {"fits": pl.col("footprint_bytes") <= capacity},
        ]

    def _per_token(self, suffix: str, seconds: str) -> dict[str, pl.Expr]:
        """Metrics per token, and shares of peaks, at one step time."""
        time = pl.col(seconds)
        efficiency = self._plan_constant(lambda case: case.machine.efficiency[MATH.name])
        metrics = super()._per_token(suffix, seconds)
        shares = {
            f"{name}{suffix}": quotient(pl.col(f"#{flops.name}_s") * efficiency, time)
            for name, flops in PEAK_SHARES.items()
        }
        return {**metrics, **shares}


def _max_whole(quotients: Sequence[pl.Expr]) -> pl.Expr:
    """Largest whole number within all quotients; 0: none."""
    minimum = pl.min_horizontal(*quotients).clip(lower_bound=0.0)
    return (minimum * ROUNDING_FACTOR).floor().cast(pl.Int64, strict=False)
