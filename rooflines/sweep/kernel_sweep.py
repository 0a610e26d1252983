"""Kernel sweeps: sizes by letter on chips, for a kind, a chain, or a collective."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, TypeVar

from rooflines.basics.errors import RooflinesError, check_choice
from rooflines.dictionary.columns import columns_of
from rooflines.sweep.axes import Axis, check_length
from rooflines.sweep.cases import BaseSweep, Case

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from rooflines.config.axis_sizes import Sizes
    from rooflines.dictionary.columns import Column

CaseT_co = TypeVar("CaseT_co", bound=Case, covariant=True)


@dataclass(frozen=True, repr=False)
class KernelSweep(BaseSweep[CaseT_co]):
    """Kernel sweep: sizes by letter on chips; a kind, a chain, or a collective.

    Check it with `checks.checked_sweep`. The order of rows is fixed, slowest first: chip, memory,
    the first letter, dtypes or chip counts, the other letters.
    """

    config: Any

    @property
    @abstractmethod
    def kernel_name(self) -> str:
        """Name in the column `operation`."""

    @property
    @abstractmethod
    def letters(self) -> Mapping[str, str]:
        """Meaning by letter, in order."""

    @property
    @abstractmethod
    def grid(self) -> Mapping[str, Sizes]:
        """Sizes by letter."""

    @property
    @abstractmethod
    def options_text(self) -> str | None:
        """Options in words; None: there are none."""

    @property
    @abstractmethod
    def needs(self) -> Collection[str]:
        """Column prerequisites that the table meets, see `columns_of`."""

    @property
    @abstractmethod
    def solved(self) -> tuple[str, ...]:
        """Threshold axes: letters."""

    @property
    @abstractmethod
    def solvable(self) -> list[str]:
        """Letters along which thresholds are solved."""

    def _check_same(self, letter: str, grid: Mapping[str, Sizes]) -> None:
        """Check that a letter that repeats another repeats one with sizes."""
        same = grid[letter].same_as
        if same is not None:
            check_choice(same, grid, f"no letter of the grid of {self.kernel_name}")
            if grid[same].same_as is not None:
                problem = f"repeats {same}, which has no sizes of its own"
                raise RooflinesError("", problem, "write sizes, or a letter that has some")

    @cached_property
    def size_axes(self) -> tuple[Axis, ...]:
        """Axes over the sizes that are given, slowest first."""
        grid = self.grid
        free = [letter for letter in self.letters if letter in grid]
        free = [letter for letter in free if grid[letter].same_as is None]
        counts = {letter: grid[letter].count for letter in free}
        check_length(counts, self.config.rows_per_part)
        axes = []
        for letter in free:
            values = grid[letter].values()
            tied = (name for name in grid if grid[name].same_as == letter)
            axes.append(Axis({letter: values, **dict.fromkeys(tied, values)}))
        return tuple(axes)

    @property
    def axes(self) -> tuple[tuple[Axis, ...], tuple[Axis, ...]]:
        """Size axes before the cases, and after them."""
        first = next(iter(self.letters))
        before = [axis for axis in self.size_axes[:1] if first in axis.columns]
        return tuple(before), self.size_axes[len(before) :]

    @cached_property
    def points(self) -> int:
        """Number of rows per case [1]."""
        return math.prod(axis.count for axis in self.size_axes)

    @cached_property
    def first_sizes(self) -> dict[str, int]:
        """Sizes in the first row, where letters are given [1]."""
        return {name: values[0] for axis in self.size_axes for name, values in axis.columns.items()}

    @property
    def first_solved(self) -> str | None:
        """First threshold axis; None without one."""
        return next(iter(self.solved), None)

    def sizes_along(self, axis: str) -> tuple[Axis, ...]:
        """Size axes without a letter that is solved for."""
        columns = (
            {name: values for name, values in size_axis.columns.items() if name != axis}
            for size_axis in self.size_axes
        )
        return tuple(map(Axis, filter(None, columns)))

    def max_thresholds(self) -> int:
        """Count threshold rows, at most [1]."""
        counts = (math.prod(size.count for size in self.sizes_along(axis)) for axis in self.solved)
        return len(self.cases) * sum(counts)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Columns in order, sizes with their letters' meanings."""
        letters = self.letters
        has = {**dict.fromkeys(self.needs, True), "measured": self.config.measured is not None}
        columns = columns_of("kernel-table", tuple(letters), kernels=True, **has)
        return tuple(
            replace(column, meaning=letters[column.name]) if column.name in letters else column
            for column in columns
        )

    def rows_by_chip(self) -> dict[str, int]:
        """Count rows by chip, for chips with rows, in order [1]."""
        rows: dict[str, int] = {}
        for block in self.blocks:
            rows[block.place.chip] = rows.get(block.place.chip, 0) + block.rows
        return rows


def grid_points(axes: Sequence[Axis]) -> Iterator[dict[str, int]]:
    """Sizes at every grid point, the last axis fastest."""
    for indices in product(*(range(axis.count) for axis in axes)):
        yield {
            name: values[index]
            for axis, index in zip(axes, indices, strict=True)
            for name, values in axis.columns.items()
        }
