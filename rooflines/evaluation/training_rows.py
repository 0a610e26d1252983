"""The rows of steps of training: stages of a pipeline, memory of the fullest, shares of peak."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import polars as pl

from rooflines.evaluation.compiler import CASE, quotient
from rooflines.evaluation.run_times import IN_TURN, run_seconds
from rooflines.evaluation.step_rows import StepSheet, where_fits
from rooflines.sweep.training_sweep import POINT
from rooflines.theory.resources import MATH
from rooflines.training.training_kernels import ALL_PAIRS, HARDWARE, MICRO_BATCHES, MODEL

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from fractions import Fraction

    from rooflines.evaluation.operation_rows import Stages
    from rooflines.sweep.cases import Block
    from rooflines.sweep.training_sweep import TrainingCase, TrainingSweep

SHARES = {"mfu": MODEL, "mfu_full": ALL_PAIRS, "hfu": HARDWARE}
"""What shares of the peak are of, by column."""

DAY_S = 86_400

ROUNDED = 1.0 + 1e-14
"""What a quotient of bytes is multiplied by, so that a whole number is not rounded past itself."""


class TrainingSheet(StepSheet):
    """The columns of rows of steps of training; all cases have as many kinds of stages."""

    cases: Sequence[TrainingCase]  # type: ignore[assignment]  # those of its blocks

    def __init__(self, block: Block[TrainingCase]) -> None:
        super().__init__(block)
        _, self._points = block.after
        self._batches = self.sheet.shares[MICRO_BATCHES]

    def stages(self) -> Stages:
        """The columns but keys and sizes."""
        found = super().stages()
        if self.config.tokens is not None:
            whole = pl.col("t_serial_s") * quotient(pl.lit(self.config.tokens), pl.col("#tokens"))
            usd = where_fits(whole * pl.col("#usd_per_s"))
            found.append({"days": whole / DAY_S, "usd": usd})
        return found

    def own(self) -> dict[str, pl.Expr]:
        """Times at the peak that shares of it are of, the bubble and micro-batches."""
        sheet = self.sheet
        waits = self._of_plans(lambda case: case.plan.pp - 1)
        runs = self._batches * self._of_plans(lambda case: case.plan.interleave)
        at_peak = {of.name: [case.apart(of)[0][0] for case in self.cases] for of in SHARES.values()}
        return {
            **{f"#{name}_s": sheet.total(sheet.poly(polys)) for name, polys in at_peak.items()},
            "bubble": quotient(waits, runs + waits),
            MICRO_BATCHES: self._batches.cast(pl.Int64),
        }

    def with_memory(self) -> dict[str, pl.Expr]:
        """The estimate: a number of times the time without overlap."""
        stretch = self._of_plans(lambda case: case.fit.times if case.fit else None)
        return {"t_estimate_s": pl.col("t_upper_s") * stretch}

    def _of_plans(self, value: Callable[[TrainingCase], float | Fraction | None]) -> pl.Expr:
        """A column with a number of the plan of each case."""
        return self.sheet.constant(
            [None if (number := value(case)) is None else float(number) for case in self.cases]
        )

    def in_turn(self) -> dict[str, pl.Expr]:
        """The times of the busiest stage, kernels one after another and without overlap [s].

        A micro-batch begins on the last stage when all others have computed their part of one.
        """
        cases, batches = self.cases, self._batches
        known = run_seconds(cast("TrainingSweep", cases[0].place.sweep), self._points)
        known.add(each for case in cases for each in case.placed)
        ahead = self._of_plans(lambda case: (case.plan.pp - 1) / case.plan.interleave)
        stretched = quotient(batches + ahead, batches)
        stages = []
        for kind in range(len(cases[0].held)):
            stages_of = ((case.placed, case.workload.stages[kind][0]) for case in cases)
            of_cases = zip(*(known.on_stage(*each) for each in stages_of), strict=True)
            lines = [map(self._of_points, zip(*each, strict=True)) for each in of_cases]
            stages.append(
                [(slope * batches + start) * stretched + once for slope, start, once in lines]
            )
        return dict(zip(IN_TURN, map(pl.max_horizontal, zip(*stages, strict=True)), strict=True))

    def _of_points(self, of_cases: Sequence[Sequence[float]]) -> pl.Expr:
        """A number of every context of every case."""
        values = pl.Series([each for of_case in of_cases for each in of_case], dtype=pl.Float64)
        index = pl.col(CASE).cast(pl.Int64) * self._points.count + pl.col(POINT)
        return pl.lit(values).gather(index)

    def footprints(self) -> Stages:
        """States and saved tensors of the fullest stage, whether they fit, and what would."""
        batches, length = self._batches, pl.col("S").cast(pl.Float64)
        capacity = self._of_plans(lambda case: case.machine.level.capacity_bytes)
        held: dict[str, pl.Expr] = {}
        room: list[tuple[pl.Expr, pl.Expr]] = []
        kinds = range(len(self.cases[0].held))
        for kind in kinds:
            of = [case.held[kind] for case in self.cases]
            states, run, once, most, runs = (
                self.sheet.constant(list(map(float, values))) for values in zip(*of, strict=True)
            )
            token = run * pl.min_horizontal(most, batches * runs) + once
            held |= {f"#saved{kind}": token * length, f"#state{kind}": states}
            room.append((capacity - states, token))
        micro_batch = self._of_plans(lambda case: case.plan.micro_batch)
        share = self._of_plans(lambda case: case.plan.cp)
        totals = [pl.col(f"#saved{kind}") + pl.col(f"#state{kind}") for kind in kinds]
        fullest = [each >= pl.max_horizontal(*totals) for each in totals]
        return [
            held,
            {
                "footprint_bytes": pl.max_horizontal(*totals),
                **{
                    f"{name}_bytes": pl.coalesce(
                        pl.when(is_it).then(pl.col(f"#{name}{kind}"))
                        for kind, is_it in zip(kinds, fullest, strict=True)
                    )
                    for name in ("state", "saved")
                },
                "max_micro_batch": _most(
                    [free / (token * length) * micro_batch for free, token in room]
                ),
                "max_S": _most([free / token / share for free, token in room]) * share.cast(int),
            },
            {"fits": pl.col("footprint_bytes") <= capacity},
        ]

    def _per_token(self, suffix: str, seconds: str) -> dict[str, pl.Expr]:
        """Metrics per token and shares of peaks at a time of a step."""
        over = pl.col(seconds)
        reached = self._of_plans(lambda case: case.machine.efficiency[MATH.name])
        found = super()._per_token(suffix, seconds)
        shares = {
            f"{name}{suffix}": quotient(pl.col(f"#{of.name}_s") * reached, over)
            for name, of in SHARES.items()
        }
        return {**found, **shares}


def _most(quotients: Sequence[pl.Expr]) -> pl.Expr:
    """The largest whole number that all quotients allow; 0: none."""
    least = pl.min_horizontal(*quotients).clip(lower_bound=0.0)
    return (least * ROUNDED).floor().cast(pl.Int64, strict=False)
