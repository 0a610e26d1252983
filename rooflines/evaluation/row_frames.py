"""The rows of sweeps as lazy frames: of operations, of steps of models, and of their kernels.

A table is an index space: row i is decoded from i alone, so any slice is computed by itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import polars as pl

from rooflines.basics.errors import RooflinesError
from rooflines.dictionary.columns import SKIPPED
from rooflines.evaluation.compiler import Sheet
from rooflines.evaluation.operation_rows import operation_stages
from rooflines.evaluation.pools import PoolSheet
from rooflines.evaluation.requests import RequestSheet
from rooflines.evaluation.step_rows import INNER_AXES, KernelCase, StepSheet, kernel_stages
from rooflines.evaluation.training_rows import TrainingSheet
from rooflines.sweep.cases import Block
from rooflines.sweep.operation_sweep import Sweep
from rooflines.sweep.step_sweep import ModelSweep
from rooflines.sweep.training_sweep import TrainingSweep

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rooflines.basics.yaml_file import JSON
    from rooflines.dictionary.columns import Column
    from rooflines.evaluation.operation_rows import Stages
    from rooflines.sweep.cases import BaseSweep
    from rooflines.sweep.operation_sweep import OperationCase

Group = list["Block[Any]"]
"""Blocks that are computed at once."""

GROUP_ROWS = 2**16
"""Most rows of several blocks that are computed at once [1]."""

Unit = TypeVar("Unit")
SweepT = TypeVar("SweepT", bound="BaseSweep[Any]")


class SweepTable(ABC, Generic[SweepT]):
    """A table of a sweep.

    Attributes:
        sweep: The sweep.
        columns: Its columns, in order.
        stored: Those that the sweep's config chooses.
    """

    def __init__(self, sweep: SweepT) -> None:
        self.sweep, self.columns, self.stored = sweep, sweep.columns, sweep.stored

    def groups(self) -> Sequence[Group]:
        """The blocks of the sweep, those together that are computed at once."""
        return [[block] for block in self.sweep.blocks]

    def rows_of(self, group: Group) -> int:
        """The rows of a group [1]."""
        return sum(block.rows for block in group)

    @abstractmethod
    def computed(self, group: Group) -> tuple[Sheet, Stages]:
        """The sheet of a group, and its columns but keys and sizes."""

    def frame(
        self,
        start: int = 0,
        stop: int | None = None,
        columns: Sequence[str] | None = None,
        *,
        enums: bool = False,
    ) -> pl.LazyFrame:
        """Rows `start` to `stop`; concatenated in order, slices equal the whole table.

        Args:
            start: The first row [1].
            stop: The row after the last; the end by default [1].
            columns: Their names, in order; all by default.
            enums: Whether text is Enum of the values that occur, which costs a fifth of Categorical
                to write.

        Returns:
            The columns. Times, intensities and works are Float64, exact to a few roundings.
        """
        names = [column.name for column in self.columns] if columns is None else columns
        groups = [(group, self.rows_of(group)) for group in self.groups()]
        end = sum(rows for _, rows in groups) if stop is None else stop
        pieces = [
            (*self.computed(group), low, high) for group, low, high in pieces_of(groups, start, end)
        ]
        texts = enums_of(sheet.texts for sheet, *_ in pieces) if enums else {}
        return pl.concat(
            sheet.frame(stages, low, high, texts).select(names)
            for sheet, stages, low, high in pieces
        )

    def stored_frame(self) -> pl.LazyFrame:
        """All rows of the columns that are stored."""
        return self.frame(columns=[column.name for column in self.stored])


def skipped_frame(records: Sequence[JSON], columns: Sequence[Column] = SKIPPED) -> pl.DataFrame:
    """A frame of what is skipped, by default of `recipes.skipped_records`: names and numbers.

    Args:
        records: A row each; a column that a record lacks is null.
        columns: Its columns; those with a unit are whole numbers.
    """
    kinds = {column.name: pl.Int64 if column.unit else pl.String for column in columns}
    rows = [{**dict.fromkeys(kinds), **record} for record in records]
    return pl.DataFrame(rows, schema=kinds, orient="row")


def pieces_of(
    units: Iterable[tuple[Unit, int]], start: int, stop: int
) -> Iterator[tuple[Unit, int, int]]:
    """The pieces of a slice of rows, one per unit: (start, stop) of its rows."""
    offset = 0
    for unit, rows in units:
        low, high = max(start - offset, 0), min(stop - offset, rows)
        if low < high:
            yield unit, low, high
        offset += rows


def enums_of(columns: Iterable[Mapping[str, pl.Series]]) -> dict[str, pl.DataType]:
    """The Enum of every text column: the values that occur in some columns of that name."""
    values: dict[str, list[pl.Series]] = {}
    for each in columns:
        for name, series in each.items():
            values.setdefault(name, []).append(series.cast(pl.String))
    return {
        name: pl.Enum(pl.concat(several).drop_nulls().unique().sort())
        for name, several in values.items()
    }


# ------------------------------------------------------------ operations


class OperationTable(SweepTable[Sweep]):
    """The rows of a sweep of one operation."""

    def groups(self) -> Sequence[Group]:
        """The groups of blocks: a frame for each block would take long."""
        return block_groups(self.sweep.blocks)

    def computed(self, group: Group) -> tuple[Sheet, Stages]:
        """The sheet of a group, and its columns but keys and sizes."""
        sheet = Sheet(group)
        return sheet, operation_stages(sheet, [case for block in group for case in block.cases])


def block_groups(blocks: Sequence[Block[OperationCase]]) -> list[Group]:
    """Neighbours whose times are multiples of the same works, of at most `GROUP_ROWS` rows."""
    found: list[Group] = []
    before: object = None
    for block in blocks:
        alike = None
        several = any(len(case.kernels[0].transfers) > 1 for case in block.cases)
        if not several and not any(case.estimate for case in block.cases):
            alike = [(case.variant, id(case.workload)) for case in block.cases]
        if alike is not None and alike == before and len(found[-1]) < GROUP_ROWS // block.rows:
            found[-1].append(block)
        else:
            found.append([block])
        before = alike
    return found


# ------------------------------------------------------------ models


class StepTable(SweepTable[ModelSweep]):
    """The rows of a sweep of models: steps, or requests."""

    def computed(self, group: Group) -> tuple[Sheet, Stages]:
        """The sheet of a block, and its columns but keys and sizes."""
        (block,), config = group, self.sweep.config
        kind = StepSheet
        if config.requests:
            kind = RequestSheet if config.pools is None else PoolSheet
        steps = TrainingSheet(block) if isinstance(self.sweep, TrainingSweep) else kind(block)
        return steps.sheet, steps.stages()


class KernelTable(SweepTable[ModelSweep]):
    """The kernels of the rows of a sweep of models: of every case one kernel after another.

    Values are of one layer. A value of the sweep's row is the sum over its kernels of `count` times
    that of the kernel.
    """

    def __init__(self, sweep: ModelSweep) -> None:
        super().__init__(sweep)
        if sweep.config.requests:
            problem = "asks for requests, and a row of these is of many steps"
            raise RooflinesError(
                f"model-sweeps.{sweep.name}", problem, "use a sweep with S in its grid"
            )
        self.columns, self.stored = sweep.layer_columns, sweep.stored_layers

    def rows_of(self, group: Group) -> int:
        """The rows of a block: one for every kernel [1]."""
        (block,) = group
        return block.points * sum(len(case.kernels) for case in block.cases)

    def computed(self, group: Group) -> tuple[Sheet, Stages]:
        """The sheet of the kernels of a block, and their columns but keys and sizes."""
        (block,) = group
        kernels = tuple(
            KernelCase(case.place, case, index)
            for case in block.cases
            for index in range(len(case.kernels))
        )
        sheet = Sheet([Block(block.before, kernels, block.after)], INNER_AXES)
        return sheet, kernel_stages(sheet, kernels)


def table_of(sweep: Sweep | ModelSweep) -> SweepTable[Any]:
    """The table of the rows of a sweep."""
    return OperationTable(sweep) if isinstance(sweep, Sweep) else StepTable(sweep)
