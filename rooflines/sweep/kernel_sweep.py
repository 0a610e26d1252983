"""Kernel sweeps, and their cases: dtypes on one chip, at a place."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import Mistakes, RooflinesError, at_path, check_choice, quote
from rooflines.basics.text import counted
from rooflines.config.axis_sizes import Sizes
from rooflines.config.kernel_fields import KernelSweepConfig
from rooflines.dictionary.columns import columns_of
from rooflines.kinds.kernel_forms import check_letters, kernel_form, with_letters
from rooflines.kinds.kind_names import checked_kind
from rooflines.kinds.placed_kernels import KernelRates, PlacedKernel, kernel_rates
from rooflines.sweep.axes import Axis, check_length
from rooflines.sweep.cases import BaseSweep, Block, Case, Skipped, skipped_rows
from rooflines.sweep.operation_sweep import Sweep
from rooflines.theory.operation import MATRIX
from rooflines.theory.sharding import SHARDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.config.schema import SweepConfig
    from rooflines.dictionary.columns import Column
    from rooflines.kinds.kernel_forms import KernelForm
    from rooflines.kinds.kinds import KernelKind
    from rooflines.theory.operation import Unit

UNSPLIT = "none"
"""Sharding of a kernel on one chip."""


@dataclass(frozen=True, eq=False)
class KindCase(Case):
    """Case: a kernel with dtypes, at a place.

    Attributes:
        sweep: The sweep.
        dtypes: Name of the dtypes.
    """

    sweep: KernelSweep
    dtypes: str

    @property
    def form(self) -> KernelForm:
        """Kernel with options and dtypes."""
        return self.sweep.forms[self.dtypes]

    @property
    def computes(self) -> tuple[str, ...]:
        """Compute dtype."""
        return (self.form.compute,)

    @cached_property
    def rates(self) -> KernelRates:
        """Rates for the kernel, efficiencies included."""
        place = self.place
        efficiency = self.sweep.config.efficiency
        return kernel_rates(place.entry, place.chip, self.form, place.memory, efficiency)

    @cached_property
    def placed(self) -> PlacedKernel:
        """Kernel on the chip, for exact times and critical sizes."""
        return PlacedKernel(self.form, self.rates)

    @property
    def peak(self) -> Fraction | None:
        """Nominal peak in the compute dtype [FLOP/s]; None: not published."""
        return self.machine.peaks.get(self.form.compute)

    @cached_property
    def keys(self) -> Mapping[str, str | int | None]:
        """Values in tables' key columns."""
        return {
            "operation": self.sweep.kind.name,
            "chip": self.chip,
            "unit": self.sweep.unit,
            "memory": self.memory,
            "network": self.network,
            "dtypes": self.dtypes,
            "sharding": UNSPLIT,
            "shape": None,
            "options": self.sweep.options_text,
            SHARDS: 1,
        }


@dataclass(frozen=True, repr=False)
class KernelSweep(BaseSweep[KindCase]):
    """Kernel sweep: sizes, dtypes and chips.

    Check it with `checks.checked_sweep`. The order of rows is fixed, slowest first: chip, memory,
    the kind's first letter, dtypes, the other letters.
    """

    config: KernelSweepConfig

    ALTERNATIVES = "chips, dtypes or levels"

    def __repr__(self) -> str:
        """Name, kernel and extent, in one line."""
        chips, dtypes = len(self.rows_by_chip()), len(self.forms)
        parts = [counted(chips, "chip"), counted(dtypes, "dtype combination")]
        rows = counted(self.rows, "row")
        return f"<KernelSweep {self.name}: {self.kind.name}, {', '.join(parts)}, {rows}>"

    @cached_property
    def kind(self) -> KernelKind:
        """Kind of kernel."""
        return checked_kind(self.config.operation)

    @cached_property
    def options(self) -> dict[str, Any]:
        """Options that are set, without letters."""
        options = self.config.options.items()
        return {name: value for name, value in options if name not in self.kind.letters and value}

    @cached_property
    def grid(self) -> dict[str, Sizes]:
        """Sizes by letter, those among options included."""
        grid = dict(self.config.grid)
        with Mistakes() as mistakes:
            for letter, value in self.config.options.items():
                if letter in self.kind.letters and value is not None:
                    with mistakes.at("options", letter):
                        if letter in grid:
                            raise RooflinesError("", "is in the grid, too", "leave out one of them")
                        grid[letter] = Sizes(value)
            for letter in grid:
                with mistakes.at("grid", letter):
                    if letter not in self.kind.letters:
                        check_letters(self._plain_form, [letter])
                    self._check_same(letter, grid)
            mistakes.check()
            if missing := self._plain_form.missing(grid):
                problem = f"lacks {', '.join(missing)} of {self.kind.name}"
                raise RooflinesError("grid", problem, f"add them; an example: {self.kind.example}")
        return grid

    def _check_same(self, letter: str, grid: Mapping[str, Sizes]) -> None:
        """Check that a letter that repeats another repeats one with sizes."""
        same = grid[letter].same_as
        if same is not None:
            check_choice(same, grid, f"no letter of the grid of {self.kind.name}")
            if grid[same].same_as is not None:
                problem = f"repeats {same}, which has no sizes of its own"
                raise RooflinesError("", problem, "write sizes, or a letter that has some")

    @cached_property
    def _plain_form(self) -> KernelForm:
        """Kernel with options, without dtypes and optional letters."""
        with at_path("options"):
            return kernel_form(self.kind, None, self.options)

    @cached_property
    def options_text(self) -> str | None:
        """Options in words; None: the kind has none."""
        return self._plain_form.choice_text or None

    @cached_property
    def forms(self) -> dict[str, KernelForm]:
        """Kernels by their dtypes' name."""
        forms: dict[str, KernelForm] = {}
        with at_path("options"):
            with_letters(self._plain_form, self.grid)
        with Mistakes() as mistakes:
            for index, dtypes in enumerate(self.config.dtypes):
                with mistakes.at("dtypes", index):
                    form = kernel_form(self.kind, dtypes, self.options)
                    form = with_letters(form, self.grid)
                    name = form.dtypes_text or form.compute
                    if name in forms:
                        fix = "name it once"
                        raise RooflinesError("", f"is {quote(name)}, which is listed twice", fix)
                    forms[name] = form
        return forms

    @property
    def form(self) -> KernelForm:
        """Kernel with the first dtypes."""
        return next(iter(self.forms.values()))

    @property
    def combinations(self) -> dict[str, KernelForm]:
        """Kernels by their dtypes' name, as other sweeps call them."""
        return self.forms

    @cached_property
    def size_axes(self) -> tuple[Axis, ...]:
        """Axes over the sizes that are given, slowest first."""
        grid = self.grid
        free = [letter for letter in self.kind.letters if letter in grid]
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
        first = next(iter(self.kind.letters))
        before = [axis for axis in self.size_axes[:1] if first in axis.columns]
        return tuple(before), self.size_axes[len(before) :]

    @property
    def unit(self) -> Unit:
        """Compute unit."""
        return self.form.kind.unit

    @cached_property
    def computes(self) -> dict[str, tuple[str, ...]]:
        """Compute dtype, by dtypes' name; without products none is needed."""
        needed = self.unit == MATRIX
        return {name: (form.compute,) if needed else () for name, form in self.forms.items()}

    @cached_property
    def points(self) -> int:
        """Number of rows per case [1]."""
        return math.prod(axis.count for axis in self.size_axes)

    @cached_property
    def first_sizes(self) -> dict[str, int]:
        """Sizes in the first row, where letters are given [1]."""
        return {name: values[0] for axis in self.size_axes for name, values in axis.columns.items()}

    @cached_property
    def solved(self) -> tuple[str, ...]:
        """Threshold axes: letters."""
        thresholds = self.config.thresholds
        return (self._first_axis(),) if thresholds is None else tuple(thresholds)

    @property
    def first_solved(self) -> str | None:
        """First threshold axis; None without one."""
        return next(iter(self.solved), None)

    def _first_axis(self) -> str:
        """First letter on which the intensity depends, at the first sizes."""
        placed, sizes = self._any_placed, self.first_sizes
        axes = placed.axes(sizes)

        def intensity(axis: str, factor: int) -> Fraction:
            size = self.form.complete(sizes)[axis]
            work = self.form.work(placed.along(axis, sizes, factor * size))
            return Fraction(work.flops or work.vector_flops) / Fraction(work.memory_bytes)

        moving = (axis for axis in axes if intensity(axis, 1) != intensity(axis, 2))
        return next(moving, axes[0])

    @property
    def _any_placed(self) -> PlacedKernel:
        """Kernel without a chip, for questions that need none."""
        return PlacedKernel(self.form, KernelRates(Fraction(1), Fraction(1), Fraction(1), None))

    @property
    def solvable(self) -> list[str]:
        """Letters along which thresholds are solved, those with an option's default included."""
        axes = self._any_placed.axes(self.first_sizes)
        defaults = {*self.form.defaults} - {*self.kind.defaults}
        return [axis for axis in self.kind.axes if axis in axes or axis in defaults]

    def sizes_along(self, axis: str) -> tuple[Axis, ...]:
        """Size axes without a letter that is solved for.

        A letter that another one follows stays: from its sizes tokens before it are counted.
        """
        if axis in self.kind.follows and self.form.options.get("mask") != "full":
            return self.size_axes
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
        letters = self.kind.letters
        measured = self.config.measured is not None
        columns = columns_of("kernel-table", tuple(letters), kernels=True, measured=measured)
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

    def find_cases(self) -> tuple[tuple[Block[KindCase], ...], tuple[Skipped, ...]]:
        """Find supported cases, in a block for each place, and skipped rows."""
        before, after = self.axes
        rows, blocks = Counter[Skipped](), []
        for supported in self.supported_at({UNSPLIT: ((1,),)}, _no_keys):
            for skipped, variants in supported.skipped.items():
                rows[skipped] += self.points * variants
            if supported.dtypes and supported.splits:
                cases = (KindCase(supported.place, self, dtypes) for dtypes in supported.dtypes)
                blocks.append(Block(before, tuple(cases), after))
        return tuple(blocks), skipped_rows(rows)


def _no_keys(split: str) -> dict[str, str]:
    """Split keys in skipped rows: a chip alone needs none."""
    del split
    return {}


def sweep_of_config(
    name: str,
    config: SweepConfig | KernelSweepConfig,
    *entries: Any,  # noqa: ANN401, see below
) -> Sweep | KernelSweep:
    """Kernel or operation sweep, by its config.

    Args:
        name: Its name.
        config: Its keys.
        entries: Chips, dtypes and calibrations.
    """
    if isinstance(config, KernelSweepConfig):
        return KernelSweep(name, config, *entries)
    return Sweep(name, config, *entries)
