"""The rows of sweeps as lazy frames: of operations, of steps of models, and of their kernels.

A table is an index space: row i is decoded from i alone, so any slice is computed by itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

import polars as pl

from rooflines.basics.errors import RooflinesError
from rooflines.model.columns import SKIPPED, TEXTS
from rooflines.sweep.operation_rows import operation_stages
from rooflines.sweep.requests import RequestSheet
from rooflines.sweep.sheet import CASE, Sheet, key_columns
from rooflines.sweep.space import axis_columns
from rooflines.sweep.step_rows import (
    INNER_AXES,
    StepSheet,
    cost_columns,
    kernel_block,
    kernel_stages,
)
from rooflines.sweep.steps import REQUEST

if TYPE_CHECKING:
    from rooflines.basics.yaml_file import JSON
    from rooflines.model.columns import Column
    from rooflines.sweep.cases import Block
    from rooflines.sweep.operations import OperationCase
    from rooflines.sweep.step_sweep import ModelSweep
    from rooflines.sweep.steps import StepCase
    from rooflines.sweep.sweep import Sweep

TextTypes = Mapping[str, "pl.DataType"]
"""Types of text columns that are not Categorical."""

GROUP_ROWS = 2**16
"""Most rows of several blocks that are computed at once [1]."""

Unit = TypeVar("Unit")
"""What is computed at once."""


class Table(ABC, Generic[Unit]):
    """A table of a sweep.

    Attributes:
        columns: Its columns, in order.
        stored: Those that the sweep's config chooses.
        rows: The rows of the sweep [1].
    """

    columns: tuple[Column, ...]
    stored: Sequence[Column]
    rows: int

    @abstractmethod
    def units(self) -> Iterable[tuple[Unit, int]]:
        """What is computed at once, in order, each with its rows of the sweep [1]."""

    @abstractmethod
    def frame_of(self, unit: Unit, start: int, stop: int, texts: TextTypes) -> pl.LazyFrame:
        """Some rows of a unit, of all columns.

        Args:
            unit: The unit.
            start: The first of its rows [1].
            stop: The row after the last [1].
            texts: The types of text columns that are not Categorical.
        """

    @abstractmethod
    def texts_of(self, units: Sequence[Unit]) -> TextTypes:
        """The Enum of every text column: the values that occur in units."""

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
        pieces = list(pieces_of(self.units(), start, self.rows if stop is None else stop))
        texts = self.texts_of([unit for unit, *_ in pieces]) if enums else {}
        return pl.concat(
            self.frame_of(unit, low, high, texts).select(names) for unit, low, high in pieces
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

Group = list["Block[OperationCase]"]
"""Blocks that are computed at once, since a frame for each takes long."""


class OperationTable(Table[Group]):
    """The rows of a sweep of one operation."""

    def __init__(self, sweep: Sweep) -> None:
        self.columns, self.stored = sweep.columns, sweep.stored
        self.rows, self._sweep = sweep.rows, sweep

    def units(self) -> Iterable[tuple[Group, int]]:
        """The groups of blocks."""
        for group in block_groups(self._sweep.blocks):
            yield group, sum(block.rows for block in group)

    def frame_of(self, unit: Group, start: int, stop: int, texts: TextTypes) -> pl.LazyFrame:
        """Some rows of a group."""
        sheet = Sheet(unit, texts)
        cases = [case for block in unit for case in block.cases]
        frame = sheet.frame(operation_stages(sheet, cases), start, stop)
        if any("shape" in axis.columns for axis in unit[0].after):
            return frame
        return frame.with_columns(shape=pl.lit(None, dtype=texts.get("shape", pl.Categorical)))

    def texts_of(self, units: Sequence[Group]) -> TextTypes:
        """The Enum of every text column."""
        cases = [case for group in units for block in group for case in block.cases]
        sizes = (axis_columns(axis) for axis in (*self._sweep.leading, *self._sweep.inner))
        return enums_of([key_columns(cases), *sizes], TEXTS)


def block_groups(blocks: Sequence[Block[OperationCase]]) -> list[Group]:
    """Neighbours with the same works and without calibration, of at most `GROUP_ROWS` rows."""
    found: list[Group] = []
    before: object = None
    for block in blocks:
        alike = None
        if not any(case.is_calibrated for case in block.cases):
            alike = [(case.variant, id(case.workload)) for case in block.cases]
        if alike is not None and alike == before and len(found[-1]) < GROUP_ROWS // block.rows:
            found[-1].append(block)
        else:
            found.append([block])
        before = alike
    return found


# ------------------------------------------------------------ models


class StepTable(Table["Block[StepCase]"]):
    """The rows of a sweep of models: steps, or requests."""

    def __init__(self, sweep: ModelSweep) -> None:
        self.columns, self.stored = sweep.columns, sweep.stored
        self.rows, self._sweep = sweep.rows, sweep

    def units(self) -> Iterable[tuple[Block[StepCase], int]]:
        """The blocks."""
        return ((block, block.rows) for block in self._sweep.blocks)

    def frame_of(
        self, unit: Block[StepCase], start: int, stop: int, texts: TextTypes
    ) -> pl.LazyFrame:
        """Some rows of a block."""
        config = self._sweep.config
        if not config.requests:
            steps = StepSheet(unit, texts, config.prices)
            return steps.sheet.frame(steps.stages(), start, stop)
        requests = RequestSheet(unit, texts, config.prices, config.requests)
        frame = requests.sheet.frame(requests.stages(), start, stop)
        return frame.join(
            requests.first_tokens().lazy(),
            on=[CASE, REQUEST],
            how="left",
            maintain_order="left",
        )

    def texts_of(self, units: Sequence[Block[StepCase]]) -> TextTypes:
        """The Enum of every text column."""
        prices = self._sweep.config.prices
        return enums_of(
            {**key_columns(block.cases), **cost_columns(block.cases, prices)} for block in units
        )


class KernelTable(Table["Block[StepCase]"]):
    """The kernels of the rows of a sweep of models; slices are of rows of the sweep.

    Values are of one layer. A value of the sweep's row is the sum over its kernels of `count` times
    that of the kernel.
    """

    def __init__(self, sweep: ModelSweep) -> None:
        if sweep.config.requests:
            problem = "asks for requests, and a row of these is of many steps"
            raise RooflinesError(
                f"model-sweeps.{sweep.name}", problem, "use a sweep with S in its grid"
            )
        self.columns, self.stored = sweep.layer_columns, sweep.stored_layers
        self.rows, self._sweep = sweep.rows, sweep

    def units(self) -> Iterable[tuple[Block[StepCase], int]]:
        """The blocks."""
        return ((block, block.rows) for block in self._sweep.blocks)

    def frame_of(
        self, unit: Block[StepCase], start: int, stop: int, texts: TextTypes
    ) -> pl.LazyFrame:
        """The kernels of some rows of a block."""
        kernels = kernel_block(unit)
        sheet = Sheet([kernels], texts, INNER_AXES)
        stages = kernel_stages(sheet, kernels.cases)
        return pl.concat(
            sheet.frame(stages, low, high) for low, high in _kernel_pieces(unit, start, stop)
        )

    def texts_of(self, units: Sequence[Block[StepCase]]) -> TextTypes:
        """The Enum of every text column."""
        return enums_of(key_columns(kernel_block(block).cases) for block in units)


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
