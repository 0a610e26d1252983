"""Rows of sweeps as lazy frames: operations, model steps, and their kernels.

A table is an index space: row i is decoded from i alone, so any slice is computed independently.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import polars as pl

from rooflines.basics.errors import RooflinesError
from rooflines.basics.quantities import measured_value
from rooflines.dictionary.columns import SKIPPED
from rooflines.evaluation.blocked import BLOCK_ROWS
from rooflines.evaluation.compiler import RowCompiler
from rooflines.evaluation.measured_times import measured_inputs, measured_names, with_measured
from rooflines.evaluation.operation_rows import operation_stages
from rooflines.evaluation.step_rows import (
    KernelCase,
    StepBlock,
    kernel_stages,
    step_compiler,
    step_parts,
)
from rooflines.evaluation.training_rows import training_parts
from rooflines.sweep.cases import Block
from rooflines.sweep.collective_sweep import CollectiveSweep
from rooflines.sweep.kind_sweep import KindSweep
from rooflines.sweep.operation_sweep import Sweep
from rooflines.sweep.step_sweep import STEPS_TOGETHER, ModelSweep
from rooflines.sweep.training_sweep import TrainingSweep

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from rooflines.basics.yaml_file import JSON
    from rooflines.dictionary.columns import Column
    from rooflines.evaluation.operation_rows import Stages
    from rooflines.sweep.cases import BaseSweep
    from rooflines.sweep.checks import AnySweep
    from rooflines.sweep.collective_sweep import CollectiveCase
    from rooflines.sweep.kind_sweep import KindCase
    from rooflines.sweep.operation_sweep import OperationCase
    from rooflines.sweep.step_sweep import StepCase


class BlockGroup(NamedTuple):
    """Blocks whose rows are neighbours in a table.

    Attributes:
        blocks: The blocks.
        rows: Rows by block [1].
        positions: Positions of the table's rows in those of the blocks, one block after another;
            None: in order.
    """

    blocks: list[Block[Any]]
    rows: list[int]
    positions: pl.Series | None = None


class Compiled(NamedTuple):
    """Rows that a compiler computes.

    Attributes:
        compiler: The row compiler.
        stages: All columns but keys and sizes.
        rows: Their number [1].
    """

    compiler: RowCompiler
    stages: Stages
    rows: int


Unit = TypeVar("Unit")
SweepT = TypeVar("SweepT", bound="BaseSweep[Any]")


class SweepTable(ABC, Generic[SweepT]):
    """Table of a sweep.

    Attributes:
        sweep: The sweep.
        columns: All columns, in order.
        stored: Columns that the sweep's config chooses.
    """

    def __init__(self, sweep: SweepT) -> None:
        self.sweep, self.columns, self.stored = sweep, sweep.columns, sweep.stored

    @abstractmethod
    def groups(self) -> list[BlockGroup]:
        """Blocks of the sweep, in groups of neighbours."""

    @abstractmethod
    def compile_block(self, block: Block[Any]) -> tuple[RowCompiler, Stages]:
        """Compile a block: a row compiler, and all columns but keys and sizes."""

    def frame(
        self,
        start: int = 0,
        stop: int | None = None,
        columns: Sequence[str] | None = None,
        *,
        enums: bool = False,
    ) -> pl.LazyFrame:
        """Compute rows `start` to `stop`; concatenated in order, slices equal the whole table.

        Args:
            start: The first row [1].
            stop: The row after the last; the end by default [1].
            columns: Their names, in order; all by default.
            enums: Make text Enum, over the values that occur: to write it costs a fifth of
                Categorical.

        Returns:
            The columns. Times, intensities and works are Float64, exact to a few roundings.
        """
        names = [column.name for column in self.columns] if columns is None else columns
        computed = names
        numbers = measured_names(names) if self.sweep.config.measured is not None else []
        if numbers:
            inputs = measured_inputs([column.name for column in self.columns])
            computed = [*dict.fromkeys([*(name for name in names if name not in numbers), *inputs])]
        groups = [(group, sum(group.rows)) for group in self.groups()]
        end = sum(rows for _, rows in groups) if stop is None else stop
        pieces = []
        for group, low, high in slice_units(groups, start, end):
            compiled = [
                Compiled(*self.compile_block(block), rows)
                for block, rows in zip(group.blocks, group.rows, strict=True)
            ]
            pieces.append((compiled, group.positions, low, high))
        compilers = (piece.compiler for compiled, *_ in pieces for piece in compiled)
        texts = enum_types(compiler.texts for compiler in compilers) if enums else {}
        rows = pl.concat(_frame(*piece, computed, texts) for piece in pieces)
        if not numbers:
            return rows
        values = [*map(measured_value, self.sweep.config.measured)][start:end]
        return with_measured(rows, computed, values).select(names)

    def stored_frame(self) -> pl.LazyFrame:
        """Compute all rows, with the stored columns."""
        return self.frame(columns=[column.name for column in self.stored])


def _frame(  # noqa: PLR0913, PLR0917, all that a frame is made of
    compiled: Sequence[Compiled],
    order: pl.Series | None,
    start: int,
    stop: int,
    columns: Sequence[str],
    texts: Mapping[str, pl.DataType],
) -> pl.LazyFrame:
    """Rows `start` to `stop` of a group."""
    units = [(piece, piece.rows) for piece in compiled]
    low, high = (start, stop) if order is None else (0, sum(piece.rows for piece in compiled))
    rows = pl.concat(
        piece.compiler.frame(piece.stages, first, last, texts).select(columns)
        for piece, first, last in slice_units(units, low, high)
    )
    return rows if order is None else rows.select(pl.all().gather(pl.lit(order[start:stop])))


def skipped_frame(records: Sequence[JSON], columns: Sequence[Column] = SKIPPED) -> pl.DataFrame:
    """Frame of skipped rows, names and numbers; by default with the columns of `skipped_records`.

    Args:
        records: Rows; a column that a record lacks is null.
        columns: Columns; a column with a unit has whole numbers.
    """
    kinds = {column.name: pl.Int64 if column.unit else pl.String for column in columns}
    rows = [{**dict.fromkeys(kinds), **record} for record in records]
    return pl.DataFrame(rows, schema=kinds, orient="row")


def slice_units(
    units: Iterable[tuple[Unit, int]], start: int, stop: int
) -> Iterator[tuple[Unit, int, int]]:
    """Cut a slice of rows into pieces, one per unit: (start, stop) among the unit's rows."""
    offset = 0
    for unit, rows in units:
        low, high = max(start - offset, 0), min(stop - offset, rows)
        if low < high:
            yield unit, low, high
        offset += rows


def enum_types(columns: Iterable[Mapping[str, pl.Series]]) -> dict[str, pl.DataType]:
    """Enum type of every text column, over the values that occur under its name."""
    values: dict[str, list[pl.Series]] = {}
    for text_columns in columns:
        for name, series in text_columns.items():
            values.setdefault(name, []).append(series.cast(pl.String))
    return {
        name: pl.Enum(pl.concat(several).drop_nulls().unique().sort())
        for name, several in values.items()
    }


# ------------------------------------------------------------ operations


TableSweep = TypeVar("TableSweep", Sweep, KindSweep, CollectiveSweep)


class OneKernelTable(SweepTable[TableSweep]):
    """Table for a sweep whose rows are one kernel each."""

    def groups(self) -> list[BlockGroup]:
        """Blocks of the sweep, small neighbours as one: a frame of each takes longer than its rows.

        Up to `BLOCK_ROWS` rows, all that a row is computed from is on the cases' side, so that
        cases of other chips in its block do not change its last digit.
        """
        groups, rows, last_columns = list[list[Block[Any]]](), 0, None
        for block in self.sweep.blocks:
            columns = self.stage_key(block)
            rows += block.rows
            if columns != last_columns or rows > BLOCK_ROWS:
                groups.append([])
                rows, last_columns = block.rows, columns
            groups[-1].append(block)
        return [
            BlockGroup([group[0]], [group[0].rows]) if len(group) == 1 else _joined(group)
            for group in groups
        ]

    def stage_key(self, block: Block[Any]) -> object:
        """Key that blocks share which are computed as one."""
        del block
        return ""


class OperationTable(OneKernelTable[Sweep]):
    """Table for a sweep over one operation."""

    def stage_key(self, block: Block[OperationCase]) -> object:
        """True if a case sends several tensors between chips."""
        return any(len(case.kernels[0].transfers) > 1 for case in block.cases)

    def compile_block(self, block: Block[OperationCase]) -> tuple[RowCompiler, Stages]:
        """Compile a block: a row compiler, and all columns but keys and sizes."""
        compiler = RowCompiler(block)
        return compiler, operation_stages(compiler, block.cases)


class KindTable(OneKernelTable[KindSweep]):
    """Table for a sweep over a kind of kernel, or a chain of kinds."""

    def compile_block(self, block: Block[KindCase]) -> tuple[RowCompiler, Stages]:
        """Compile a block: a row compiler, and all columns but keys and sizes."""
        from rooflines.evaluation.kind_rows import kind_stages  # noqa: PLC0415, loaded on use

        compiler = RowCompiler(block)
        return compiler, kind_stages(compiler, block.cases)


class CollectiveTable(OneKernelTable[CollectiveSweep]):
    """Table for a sweep over a collective."""

    def stage_key(self, block: Block[CollectiveCase]) -> object:
        """Number of networks."""
        return len(block.cases[0].placed.route.levels)

    def compile_block(self, block: Block[CollectiveCase]) -> tuple[RowCompiler, Stages]:
        """Compile a block: a row compiler, and all columns but keys and sizes."""
        from rooflines.evaluation.kind_rows import collective_stages  # noqa: PLC0415, loaded on use

        compiler = RowCompiler(block)
        return compiler, collective_stages(compiler, block.cases)


def _joined(blocks: Sequence[Block[Any]]) -> BlockGroup:
    """One block for several with the same sizes, whose rows are put in order, block by block."""
    cases = tuple(case for block in blocks for case in block.cases)
    joined = replace(blocks[0], cases=cases)
    if all(axis.count == 1 for axis in joined.before):
        return BlockGroup([joined], [joined.rows])
    block_of_case = pl.Series([n for n, block in enumerate(blocks) for _ in block.cases])
    sizes_after = math.prod(axis.count for axis in joined.after)
    row = pl.int_range(joined.rows)
    block_of_row = pl.lit(block_of_case).gather(row // sizes_after % len(cases))
    order = row.sort_by(block_of_row, maintain_order=True)
    return BlockGroup([joined], [joined.rows], pl.select(order).to_series())


# ------------------------------------------------------------ models


class StepTable(SweepTable[ModelSweep]):
    """Table for a sweep over models: steps, or requests.

    A block has cases on several chips, whose works are compiled once. The rows of a chip are
    neighbours in the table, so that a group's rows are put in the order of chips.
    """

    KERNELS = False
    """True for a table with kernels as rows."""

    def groups(self) -> list[BlockGroup]:
        """Group blocks by chips: neighbours up to `STEPS_TOGETHER` rows, or one chip."""
        sizes = [*self.sweep.rows_by_chip(kernels=self.KERNELS).items()]
        groups = list[BlockGroup]()
        while sizes:
            chips, rows = {sizes[0][0]}, sizes.pop(0)[1]
            while sizes and rows + sizes[0][1] <= STEPS_TOGETHER:
                rows += sizes[0][1]
                chips.add(sizes.pop(0)[0])
            groups.append(self._group_on(chips))
        return groups

    def _group_on(self, chips: Collection[str]) -> BlockGroup:
        """Blocks on some chips, whose rows are put in order, chip by chip."""
        blocks, block_rows, start = list[Block[Any]](), list[int](), 0
        ranges: dict[str, list[pl.Series]] = {chip: [] for chip in self.sweep.config.chips}
        for whole_block in self.sweep.blocks:
            cases = tuple(case for case in whole_block.cases if case.place.chip in chips)
            if not cases:
                continue
            blocks.append(replace(whole_block, cases=cases))
            block_start = start
            for case in cases:
                stop = start + self.sweep.rows_of(whole_block, case, kernels=self.KERNELS)
                ranges[case.place.chip].append(pl.int_range(start, stop, eager=True))
                start = stop
            block_rows.append(start - block_start)
        positions = pl.concat(chain.from_iterable(ranges.values()))
        return BlockGroup(blocks, block_rows, None if positions.is_sorted() else positions)

    def compile_block(self, block: Block[Any]) -> tuple[RowCompiler, Stages]:
        """Compile a block: a row compiler, and all columns but keys and sizes."""
        steps, config = StepBlock(block), self.sweep.config
        if isinstance(self.sweep, TrainingSweep):
            parts = training_parts(steps, block.after[1])
        elif config.requests and config.pools is None:
            from rooflines.evaluation.requests import request_parts  # noqa: PLC0415, loaded on use

            parts = request_parts(steps)
        elif config.requests:
            from rooflines.evaluation.pools import pool_parts  # noqa: PLC0415, loaded on use

            parts = pool_parts(steps)
        else:
            parts = step_parts(steps)
        return steps.compiler, steps.stages(parts)


class KernelTable(StepTable):
    """Table of kernels in a sweep over models: case by case, one kernel after another.

    Values are for one layer. The value in a row of the sweep is sum(count * value) over kernels.
    """

    KERNELS = True

    def __init__(self, sweep: ModelSweep) -> None:
        sweep = sweep.without_engines
        super().__init__(sweep)
        if sweep.config.requests:
            problem = "asks for requests, and a row of these is of many steps"
            raise RooflinesError(
                ("model-sweeps", sweep.name), problem, "use a sweep with S in its grid"
            )
        self.columns, self.stored = sweep.layer_columns, sweep.stored_layers

    def compile_block(self, block: Block[StepCase]) -> tuple[RowCompiler, Stages]:
        """Compile the kernels of a block: a row compiler, and all columns but keys and sizes."""
        kernels = tuple(
            KernelCase(case.place, case, index)
            for case in block.cases
            for index in case.listed_kernels
        )
        compiler = step_compiler(Block(block.before, kernels, block.after), block.cases[0])
        return compiler, kernel_stages(compiler, kernels)


def table_of(sweep: AnySweep) -> SweepTable[Any]:
    """Table of a sweep's rows."""
    if isinstance(sweep, Sweep):
        return OperationTable(sweep)
    if isinstance(sweep, KindSweep):
        return KindTable(sweep)
    return CollectiveTable(sweep) if isinstance(sweep, CollectiveSweep) else StepTable(sweep)
