"""Serialized times of training: each kernel once, then sums for every plan.

Plans share most kernels. A kernel's times in a micro-batch are computed once at every context; the
time of a stage is their sum, a line in the micro-batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from rooflines.evaluation.compiler import RowCompiler
from rooflines.evaluation.step_rows import INNER_AXES, kernel_times
from rooflines.sweep.axes import Axis
from rooflines.sweep.cases import Block, Case
from rooflines.training.training_kernels import MICRO_BATCH, MICRO_BATCHES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rooflines.sweep.axes import AxisPoints
    from rooflines.sweep.training_sweep import PlacedRuns
    from rooflines.theory.kernel import Kernel
    from rooflines.training.pipeline_stages import Stage
    from rooflines.training.training_kernels import KernelRun

SERIAL_TIMES = ("t_serial_s", "t_upper_s")
"""Columns with the times of a kernel: max over resources, and sum over resources."""


@dataclass(frozen=True, eq=False)
class RunCase(Case):
    """Case: one kernel in one layer and micro-batch.

    Attributes:
        kernel: The kernel.
        micro_batch: Sequences in a micro-batch [1].
    """

    kernel: Kernel
    micro_batch: int

    @property
    def keys(self) -> Mapping[str, str | int | None]:
        """Sequences in a micro-batch, which are an extent."""
        return {MICRO_BATCH: self.micro_batch}

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """Kernels: only this one."""
        return (self.kernel,)


class LineSeconds(NamedTuple):
    """Time as a line in the micro-batches of a step, at every context [s].

    Attributes:
        slope, start: Time per micro-batch, and time that is added once.
        once: Time that is added once after the last micro-batch.
    """

    slope: list[float]
    start: list[float]
    once: list[float]

    @classmethod
    def total(cls, parts: Sequence[tuple[float, LineSeconds]]) -> LineSeconds:
        """Weighted sum over lines, sum(count * line)."""

        def summed(*lists: list[float]) -> list[float]:
            return [
                fsum(count * value for (count, _), value in zip(parts, values, strict=True))
                for values in zip(*lists, strict=True)
            ]

        return cls(*(summed(*lists) for lists in zip(*(line for _, line in parts), strict=True)))


class RunSeconds:
    """Kernel times at some contexts, with a memo over plans.

    Args:
        points: The contexts: values by column.
    """

    def __init__(self, points: AxisPoints) -> None:
        self._points = Axis(dict(points))
        self._lines: dict[PlacedRuns, list[tuple[KernelRun, list[LineSeconds]]]] = {}

    def add(self, placed_runs: Iterable[PlacedRuns]) -> None:
        """Compute kernel times, unless an earlier plan had them."""
        new = [key for key in dict.fromkeys(placed_runs) if key not in self._lines]
        runs = [
            RunCase(place, run.kernel, size)
            for place, kernel_runs, size in new
            for run in kernel_runs.runs
        ]
        if not runs:
            return
        compiler = RowCompiler(Block((), tuple(runs), (self._points,)), INNER_AXES)
        by_bound = kernel_times(compiler, [run.place.times[run.kernel] for run in runs]).values()
        times = (
            compiler.total(compiler.extreme(pl.max_horizontal, by_bound)),
            compiler.total(compiler.sum(by_bound)),
        )
        stage, rows = dict(zip(SERIAL_TIMES, times, strict=True)), len(runs) * self._points.count
        frame = compiler.frame([stage], 0, rows).select(SERIAL_TIMES).collect()
        columns, number = [frame[name].to_list() for name in SERIAL_TIMES], self._points.count
        start = 0
        for key in new:
            first_runs: dict[object, KernelRun] = {}
            lines_by_part: dict[object, list[list[LineSeconds]]] = {}
            for run in key[1].runs:
                part = run.stage_part, run.share, run.only_stage
                first_runs.setdefault(part, run)
                lines = [_line(run, values[start : start + number]) for values in columns]
                lines_by_part.setdefault(part, []).append(lines)
                start += number
            self._lines[key] = [
                (run, [_line_sum(lines) for lines in zip(*lines_by_part[part], strict=True)])
                for part, run in first_runs.items()
            ]

    def on_stage(self, placed_runs: Iterable[PlacedRuns], stage: Stage) -> list[LineSeconds]:
        """Kernel times on a stage, in the order of `SERIAL_TIMES`."""
        parts = [
            (float(repeats), lines)
            for key in placed_runs
            for run, lines in self._lines[key]
            if (repeats := run.repeats_on(stage))
        ]
        return [
            LineSeconds.total([(repeats, lines[index]) for repeats, lines in parts])
            for index in range(len(SERIAL_TIMES))
        ]


def _line_sum(lines: Sequence[LineSeconds]) -> LineSeconds:
    """Sum over lines."""
    return LineSeconds.total([(1.0, line) for line in lines])


def _line(run: KernelRun, values: list[float]) -> LineSeconds:
    """Kernel times in one layer, as a line in the micro-batches [s]."""
    zeros = [0.0] * len(values)
    if run.only_stage is not None:
        return LineSeconds(zeros, zeros, values)
    slope, start = (
        float(run.runs_per_step.terms.get(extents, 0)) for extents in ((MICRO_BATCHES,), ())
    )
    return LineSeconds(
        [slope * value for value in values], [start * value for value in values], zeros
    )
