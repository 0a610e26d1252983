"""Times of training with kernels one after another: each kernel once, then sums for every plan.

Plans have most of their kernels in common. A kernel's times in a micro-batch are computed once at
every context; what a stage takes is a sum of them, and a line in the micro-batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING, NamedTuple, cast

from rooflines.evaluation.compiler import Sheet
from rooflines.evaluation.step_rows import INNER_AXES, kernel_times
from rooflines.sweep.cases import Block, Case
from rooflines.training.training_kernels import MICRO_BATCH, MICRO_BATCHES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rooflines.sweep.axes import Axis
    from rooflines.sweep.training_sweep import Placed, TrainingSweep
    from rooflines.theory.kernel import Kernel
    from rooflines.training.stage_memory import Stage
    from rooflines.training.training_kernels import KernelRun

IN_TURN = ("t_serial_s", "t_upper_s")
"""The times of a kernel: of its slowest resource, and of all of them, one after another."""


@dataclass(frozen=True, eq=False)
class RunCase(Case):
    """A kernel in one layer and micro-batch, as a case of its own.

    Attributes:
        kernel: The kernel.
        micro_batch: Sequences of a micro-batch [1].
    """

    kernel: Kernel
    micro_batch: int

    @property
    def keys(self) -> Mapping[str, str | int | None]:
        """The sequences, which are an extent."""
        return {MICRO_BATCH: self.micro_batch}

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernel."""
        return (self.kernel,)


class LineSeconds(NamedTuple):
    """A time as a line in the micro-batches of a step, at every context [s].

    Attributes:
        slope, start: What each micro-batch takes, and what is added once.
        once: What is taken once after the last micro-batch.
    """

    slope: list[float]
    start: list[float]
    once: list[float]

    @classmethod
    def total(cls, parts: Sequence[tuple[float, LineSeconds]]) -> LineSeconds:
        """The sum of lines, each a number of times."""

        def summed(*lists: list[float]) -> list[float]:
            return [
                fsum(times * each for (times, _), each in zip(parts, values, strict=True))
                for values in zip(*lists, strict=True)
            ]

        return cls(*(summed(*lists) for lists in zip(*(line for _, line in parts), strict=True)))


def run_seconds(sweep: TrainingSweep, points: Axis) -> RunSeconds:
    """Times of the kernels of a sweep at some contexts, which its plans have in common."""
    key = *points.columns, *points.columns["S"]
    return cast("RunSeconds", sweep.run_times.setdefault(key, RunSeconds(points)))


class RunSeconds:
    """Times of kernels at some contexts; those of earlier plans are kept.

    Args:
        points: The contexts.
    """

    def __init__(self, points: Axis) -> None:
        self._points = points
        self._known: dict[Placed, list[tuple[KernelRun, list[LineSeconds]]]] = {}

    def add(self, placed: Iterable[Placed]) -> None:
        """Compute the times of kernels."""
        new = [key for key in dict.fromkeys(placed) if key not in self._known]
        runs = [RunCase(at, run.kernel, size) for at, of, size in new for run in of.runs]
        if not runs:
            return
        sheet = Sheet([Block((), tuple(runs), (self._points,))], INNER_AXES)
        by = kernel_times(sheet, [each.place.times(each.kernel) for each in runs]).values()
        times = sheet.total(sheet.largest(by)), sheet.total(sheet.sum(by))
        stage, rows = dict(zip(IN_TURN, times, strict=True)), len(runs) * self._points.count
        frame = sheet.frame([stage], 0, rows).select(IN_TURN).collect()
        columns, number = [frame[name].to_list() for name in IN_TURN], self._points.count
        start = 0
        for key in new:
            alike: dict[object, list[tuple[KernelRun, list[LineSeconds]]]] = {}
            for run in key[1].runs:
                own = [_line(run, values[start : start + number]) for values in columns]
                alike.setdefault((run.stage_part, run.share, run.only_stage), []).append((run, own))
                start += number
            self._known[key] = [
                (
                    found[0][0],
                    [
                        LineSeconds.total([(1.0, line) for line in lines])
                        for lines in zip(*(each for _, each in found), strict=True)
                    ],
                )
                for found in alike.values()
            ]

    def on_stage(self, placed: Iterable[Placed], stage: Stage) -> list[LineSeconds]:
        """The times of kernels on a stage, as of `IN_TURN`."""
        parts = [
            (float(times), lines)
            for key in placed
            for run, lines in self._known[key]
            if (times := run.repeats_on(stage))
        ]
        return [
            LineSeconds.total([(times, lines[index]) for times, lines in parts])
            for index in range(len(IN_TURN))
        ]


def _line(run: KernelRun, values: list[float]) -> LineSeconds:
    """The times of a kernel in one layer as lines [s]."""
    none = [0.0] * len(values)
    if run.only_stage is not None:
        return LineSeconds(none, none, values)
    slope, start = (float(run.runs_per_step.terms.get(of, 0)) for of in ((MICRO_BATCHES,), ()))
    return LineSeconds([slope * each for each in values], [start * each for each in values], none)
