"""Rows of chosen cases and batches: compiled once for all cases, then computed many times.

A search asks for a few batches of each case, again and again. To compile a table takes far longer
than its rows, and the rows of all cases at once hardly longer than those of one.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from rooflines.evaluation.blocked import blocked_product
from rooflines.evaluation.row_frames import StepTable
from rooflines.evaluation.space import length, whole_numbers
from rooflines.sweep.axes import Axis
from rooflines.sweep.cases import Block

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from rooflines.evaluation.compiler import RowCompiler
    from rooflines.evaluation.operation_rows import Stages
    from rooflines.sweep.step_sweep import ModelSweep, StepCase

ANY_BATCHES = 1, 2
"""Batches in place of those that are chosen later: they vary [1]."""


class CompiledCases(NamedTuple):
    """Cases whose rows are compiled.

    Attributes:
        cases: The cases.
        compiler: Their compiler.
        stages: All columns but keys and sizes.
    """

    cases: Sequence[StepCase]
    compiler: RowCompiler
    stages: Stages


class ChosenRows:
    """Rows of a sweep at chosen batches, equal to those of its table to the last digit.

    Args:
        sweep: The sweep, for its metrics and sizes other than B.
        cases: The cases, of one model and phase, over any chips and splits.
        columns: Columns that are wanted.
    """

    def __init__(
        self, sweep: ModelSweep, cases: Iterable[StepCase], columns: Sequence[str]
    ) -> None:
        self._columns = columns
        self._table = StepTable(sweep)
        self._compiled: list[CompiledCases] = []
        self.add(cases)

    def add(self, cases: Iterable[StepCase]) -> None:
        """Compile further cases, those with the same kernels together.

        Args:
            cases: As for the class.
        """
        alike: dict[Hashable, list[StepCase]] = {}
        for case in cases:
            alike.setdefault(_compiled_with(case), []).append(case)
        self._compiled += [self._compile(self._table, group) for group in alike.values()]

    @staticmethod
    def _compile(table: StepTable, cases: Sequence[StepCase]) -> CompiledCases:
        first, sweep = cases[0], table.sweep
        sizes = sweep.sizes_of(sweep.models[first.name], first.phase)
        block = Block((), tuple(cases), (Axis({"B": ANY_BATCHES}), sizes))
        return CompiledCases(cases, *table.compile_block(block))

    def at(self, points: Iterable[tuple[StepCase, int]]) -> list[dict[str, Any]]:
        """Rows at cases and batches, a row for every further size.

        Args:
            points: The cases with their batches [1].
        """
        chosen = [*points]
        rows: list[dict[str, Any]] = []
        for cases, compiler, stages in self._compiled:
            indexes = {id(case): index for index, case in enumerate(cases)}
            pairs = [(indexes[id(case)], batch) for case, batch in chosen if id(case) in indexes]
            if not pairs:
                continue
            picked, batches = (list(column) for column in zip(*pairs, strict=True))
            of_cases, _, *inner = compiler.axes
            outer = pl.DataFrame(of_cases)[picked].to_dict()
            axes = [{**outer, "B": whole_numbers(batches)}, *inner]
            count = math.prod(map(length, axes))
            frame = blocked_product(axes, 1, 0, count, compiler.factors)
            for columns in stages:
                frame = frame.with_columns(**columns)
            rows += frame.select(self._columns).collect().to_dicts()
        return rows


def _compiled_with(case: StepCase) -> Hashable:
    """Key of cases that compile together: kernels, and with pipeline stages their numbers."""
    names = tuple(kernel.name for kernel in case.kernels)
    if case.pipeline is None:
        return names
    kinds = tuple(
        (count, tuple(kernel.name for kernel in stage.kernels))
        for stage, count in case.pipeline.stages
    )
    return names, case.split.dp, kinds
