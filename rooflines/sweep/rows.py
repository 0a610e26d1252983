"""The rows of sweeps as lazy frames: of operations, of steps of models, and of their kernels.

A table is an index space: row i is decoded from i alone, so any slice is computed by itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import polars as pl

from rooflines.basics.errors import RooflinesError
from rooflines.model.columns import SKIPPED, TEXTS
from rooflines.sweep.cases import Block
from rooflines.sweep.operation_rows import operation_stages
from rooflines.sweep.operations import Sweep
from rooflines.sweep.pools import with_pool
from rooflines.sweep.requests import RequestSheet
from rooflines.sweep.sheet import CASE, Sheet, key_columns
from rooflines.sweep.space import axis_columns
from rooflines.sweep.step_rows import (
    INNER_AXES,
    KernelCase,
    StepSheet,
    band_columns,
    cost_columns,
    kernel_stages,
)
from rooflines.sweep.steps import REQUEST, ModelSweep
from rooflines.sweep.training import TrainingSweep
from rooflines.sweep.training_rows import TrainingSheet

if TYPE_CHECKING:
    from rooflines.basics.yaml_file import JSON
    from rooflines.sweep.cases import BaseSweep
    from rooflines.sweep.operations import OperationCase
    from rooflines.sweep.steps import StepCase

TextTypes = Mapping[str, "pl.DataType"]
"""Types of text columns that are not Categorical."""

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

    @abstractmethod
    def frame_of(self, group: Group, start: int, stop: int, texts: TextTypes) -> pl.LazyFrame:
        """Some rows of a group, of all columns.

        Args:
            group: The blocks.
            start: The first of its rows of the sweep [1].
            stop: The row after the last [1].
            texts: The types of text columns that are not Categorical.
        """

    @abstractmethod
    def texts_of(self, blocks: Sequence[Block[Any]]) -> TextTypes:
        """The Enum of every text column: the values that occur in blocks."""

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
        groups = [(group, sum(block.rows for block in group)) for group in self.groups()]
        pieces = list(pieces_of(groups, start, self.sweep.rows if stop is None else stop))
        texts = self.texts_of([block for group, *_ in pieces for block in group]) if enums else {}
        return pl.concat(
            self.frame_of(group, low, high, texts).select(names) for group, low, high in pieces
        )

    def stored_frame(self) -> pl.LazyFrame:
        """All rows of the columns that are stored."""
        return self.frame(columns=[column.name for column in self.stored])


def skipped_frame(records: Sequence[JSON]) -> pl.DataFrame:
    """A frame of `recipes.skipped_records`, with the columns of `SKIPPED`."""
    whole = {"shards": pl.Int64, "rows": pl.Int64}
    kinds = {column.name: whole.get(column.name, pl.String) for column in SKIPPED}
    return pl.DataFrame(records, schema=kinds, orient="row")


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


def enums_of(
    columns: Iterable[Mapping[str, pl.Series]], names: Iterable[str] = ()
) -> dict[str, pl.DataType]:
    """The Enum of every text column: the values that occur in some columns of that name.

    Args:
        columns: Columns, of which those of text are Categorical.
        names: Further columns, which may have no values.
    """
    values: dict[str, list[pl.Series]] = {name: [] for name in names}
    for each in columns:
        for name, series in each.items():
            if series.dtype == pl.Categorical:
                values.setdefault(name, []).append(series.cast(pl.String))
    return {
        name: pl.Enum(pl.concat(several).drop_nulls().unique().sort() if several else [])
        for name, several in values.items()
    }


# ------------------------------------------------------------ operations


class OperationTable(SweepTable[Sweep]):
    """The rows of a sweep of one operation."""

    def groups(self) -> Sequence[Group]:
        """The groups of blocks: a frame for each block would take long."""
        return block_groups(self.sweep.blocks)

    def frame_of(self, group: Group, start: int, stop: int, texts: TextTypes) -> pl.LazyFrame:
        """Some rows of a group."""
        sheet = Sheet(group, texts)
        cases = [case for block in group for case in block.cases]
        frame = sheet.frame(operation_stages(sheet, cases), start, stop)
        if any("shape" in axis.columns for axis in group[0].after):
            return frame
        return frame.with_columns(shape=pl.lit(None, dtype=texts.get("shape", pl.Categorical)))

    def texts_of(self, blocks: Sequence[Block[OperationCase]]) -> TextTypes:
        """The Enum of every text column."""
        cases = [case for block in blocks for case in block.cases]
        sizes = (axis_columns(axis) for axis in self.sweep.size_axes)
        return enums_of([key_columns(cases), *sizes], TEXTS)


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

    def frame_of(self, group: Group, start: int, stop: int, texts: TextTypes) -> pl.LazyFrame:
        """Some rows of a block."""
        (block,), config = group, self.sweep.config
        if isinstance(self.sweep, TrainingSweep):
            training = TrainingSheet(block, texts, config.prices, config.tokens)
            return training.sheet.frame(training.stages(), start, stop)
        if not config.requests:
            yielded = 1.0 if config.draft is None else config.draft.yielded
            steps = StepSheet(block, texts, config.prices, yielded)
            return steps.sheet.frame(steps.stages(), start, stop)
        requests = RequestSheet(block, texts, config.prices, config.requests)
        frame = requests.sheet.frame(requests.stages(), start, stop)
        frame = frame.join(
            requests.first_tokens().lazy(),
            on=[CASE, REQUEST],
            how="left",
            maintain_order="left",
        )
        return with_pool(_with_prompts(frame, apart=config.pools is not None), self.sweep, block)

    def texts_of(self, blocks: Sequence[Block[StepCase]]) -> TextTypes:
        """The Enum of every text column."""
        prices = self.sweep.config.prices
        return enums_of(
            {**key_columns(block.cases), **cost_columns(block.cases, prices)} for block in blocks
        )


def _with_prompts(frame: pl.LazyFrame, *, apart: bool) -> pl.LazyFrame:
    """Rows of requests with the prompts that are read between tokens as part of their estimate.

    Args:
        frame: Rows with the columns of `RequestSheet.first_tokens`.
        apart: Whether prompts have servers of their own.
    """
    added = pl.col("#prompt_s") * pl.col("B").cast(pl.Float64)
    prompts = pl.lit(None, pl.Float64) if apart else added
    frame = frame.with_columns(prompts_estimate_s=prompts)
    prompts = pl.col("prompts_estimate_s").fill_null(0.0)
    return frame.with_columns(pl.col("t_estimate_s") + prompts).with_columns(**band_columns())


class KernelTable(SweepTable[ModelSweep]):
    """The kernels of the rows of a sweep of models; slices are of rows of the sweep.

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
        self._kernels: dict[Block[StepCase], Block[KernelCase]] = {}

    def kernels_of(self, block: Block[StepCase]) -> Block[KernelCase]:
        """The kernels of the cases of a block, as cases of their own."""
        if block not in self._kernels:
            cases = [
                KernelCase(case.place, case, index)
                for case in block.cases
                for index in range(len(case.kernels))
            ]
            self._kernels[block] = Block(block.before, tuple(cases), block.after)
        return self._kernels[block]

    def frame_of(self, group: Group, start: int, stop: int, texts: TextTypes) -> pl.LazyFrame:
        """The kernels of some rows of a block."""
        (block,) = group
        kernels = self.kernels_of(block)
        sheet = Sheet([kernels], texts, INNER_AXES)
        stages = kernel_stages(sheet, kernels.cases)
        return pl.concat(
            sheet.frame(stages, low, high) for low, high in _kernel_pieces(block, start, stop)
        )

    def texts_of(self, blocks: Sequence[Block[StepCase]]) -> TextTypes:
        """The Enum of every text column."""
        return enums_of(key_columns(self.kernels_of(block).cases) for block in blocks)


def table_of(sweep: Sweep | ModelSweep) -> SweepTable[Any]:
    """The table of the rows of a sweep."""
    return OperationTable(sweep) if isinstance(sweep, Sweep) else StepTable(sweep)


def _kernel_pieces(block: Block[StepCase], start: int, stop: int) -> list[tuple[int, int]]:
    """The rows of kernels of some rows of a block: kernels are slower than sizes.

    The kernels of a case that is there as a whole follow one another.
    """
    number, rows = len(block.cases[0].kernels), block.points
    pieces: list[tuple[int, int]] = []
    for case in range(start // rows, -(-stop // rows)):
        first, last = max(start - case * rows, 0), min(stop - case * rows, rows)
        offset = case * number * rows
        if (first, last) == (0, rows) and pieces and pieces[-1][1] == offset:
            pieces[-1] = pieces[-1][0], offset + number * rows
        elif (first, last) == (0, rows):
            pieces.append((offset, offset + number * rows))
        else:
            starts = (offset + kernel * rows for kernel in range(number))
            pieces += [(each + first, each + last) for each in starts]
    return pieces
