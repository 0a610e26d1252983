"""Sweeps over kernel kinds and chains, and their cases: dtypes on one chip."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import Mistakes, RooflinesError, at_path, check_choice, quote
from rooflines.basics.text import counted
from rooflines.config.axis_sizes import Sizes
from rooflines.hardware.support import Reason
from rooflines.kinds.chains import CHAIN_LETTERS, parse_chain
from rooflines.kinds.kernel_forms import check_letters, kernel_form, with_letters
from rooflines.kinds.kind_names import FUSED, SEQUENCE, checked_kind
from rooflines.kinds.placed_kernels import KernelRates, PlacedKernel, kernel_rates
from rooflines.kinds.timed_kernels import TIMED_KINDS, amounts_in, is_chunk, timed_kernel
from rooflines.sweep.cases import Block, Case, Skipped, skipped_rows
from rooflines.sweep.kernel_sweep import KernelSweep, grid_points
from rooflines.theory.operation import MATRIX
from rooflines.theory.sharding import SHARDS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from rooflines.config.kernel_fields import ChainSweepConfig, KernelSweepConfig
    from rooflines.kinds.chains import Chain
    from rooflines.kinds.kernel_forms import KernelForm
    from rooflines.kinds.kinds import KernelKind
    from rooflines.sweep.axes import Axis
    from rooflines.theory.kernel import Kernel
    from rooflines.theory.operation import Unit
    from rooflines.theory.times import Times

UNSPLIT = "none"
"""Sharding on one chip."""

NO_EXP_RATE = Reason("peak", "no sourced rate of exponentials")
"""Reason to skip a chip where exponentials enter the bound."""


@dataclass(frozen=True, eq=False)
class KindCase(Case):
    """Case: a kernel with dtypes, at a place.

    Attributes:
        sweep: The sweep.
        dtypes: Their name.
    """

    sweep: KindSweep
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
        return PlacedKernel(self.form, self.rates, self.sweep.config.counts_exp)

    def estimated(self, *, shared: bool) -> Times | None:
        """Calibrated times; None: no fit times such kernels on the chip.

        Args:
            shared: Whether query heads share KV heads, for attention.
        """
        kernel = self.sweep.timed_kernel(self.dtypes, shared=shared)
        if kernel is None:
            return None
        fit = self.choice.attention(kernel)
        if kernel.experts:
            fit = self.choice.experts(kernel.experts, kernel.compute)
        return None if fit is None else self.place.estimate(kernel, self.choice)

    @property
    def peak(self) -> Fraction | None:
        """Nominal peak in the compute dtype [FLOP/s]; None: not published."""
        return self.machine.peaks.get(self.form.compute)

    @cached_property
    def keys(self) -> Mapping[str, str | int | None]:
        """Values in tables' key columns."""
        return {
            "operation": self.sweep.kernel_name,
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
class KindSweep(KernelSweep[KindCase]):
    """Kernel sweep over one kind: sizes, dtypes and chips."""

    config: KernelSweepConfig

    ALTERNATIVES = "chips, dtypes or levels"

    def __repr__(self) -> str:
        """Name, kernel and extent, in one line."""
        chips, dtypes = len(self.rows_by_chip()), len(self.forms)
        parts = [counted(chips, "chip"), counted(dtypes, "dtype combination")]
        rows = counted(self.rows, "row")
        return f"<KernelSweep {self.name}: {self.kernel_name}, {', '.join(parts)}, {rows}>"

    @cached_property
    def kind(self) -> KernelKind:
        """Kernel kind."""
        return checked_kind(self.config.operation)

    @property
    def kernel_name(self) -> str:
        """Name in the column `operation`."""
        return self.kind.name

    @property
    def letters(self) -> Mapping[str, str]:
        """Meaning by letter, in order."""
        return self.kind.letters

    @property
    def needs(self) -> Collection[str]:
        """Column prerequisites: kinds."""
        return ("kinds",)

    @property
    def sequence_kinds(self) -> Sequence[KernelKind]:
        """Kernels one after another, in the sweep's letters; none for a single one."""
        return ()

    @cached_property
    def shares_heads(self) -> tuple[bool, bool]:
        """True if any row has N = K, a KV head per query head; and if any has N > K."""
        if not {"N", "K"} <= {*self.grid}:
            return True, False
        axes = [axis for axis in self.size_axes if {"N", "K"} & {*axis.columns}]
        pairs = [(point["N"], point["K"]) for point in grid_points(axes)]
        return any(n <= k for n, k in pairs), any(n > k for n, k in pairs)

    def timed_kernel(self, dtypes: str, *, shared: bool) -> Kernel | None:
        """Kernel as calibrations read it; None: no fit times such kernels.

        Args:
            dtypes: Its dtypes' name.
            shared: Whether query heads share KV heads, for attention.
        """
        if (dtypes, shared) not in self._timed:
            form, grid = self.forms[dtypes], self.grid
            roots = {name: grid[name].same_as or name for name in grid}
            kernel = None
            if form.kind.name in TIMED_KINDS and not is_chunk(form, roots):
                kernel = timed_kernel(form, amounts_in(form, [*grid]), shares_heads=shared)
            self._timed[dtypes, shared] = kernel
        return self._timed[dtypes, shared]

    @cached_property
    def _timed(self) -> dict[tuple[str, bool], Kernel | None]:
        return {}

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
            mistakes.check()
            self._check_letters(grid)
        return grid

    def _check_letters(self, grid: Mapping[str, Sizes]) -> None:
        """Refuse letters that the kernel lacks, and a grid that lacks some."""
        letters = self.letters
        with Mistakes() as mistakes:
            for letter in grid:
                with mistakes.at("grid", letter):
                    if letter not in letters:
                        check_letters(self._plain_form, [letter])
                    self._check_same(letter, grid)
            mistakes.check()
            if missing := self._plain_form.missing(grid):
                problem = f"lacks {', '.join(missing)} of {self.kernel_name}"
                example = self.kind.example
                fix = f"add them; an example: {example}" if example else "add them"
                raise RooflinesError("grid", problem, fix)

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
                    form = kernel_form(self.kind, self._dtypes(dtypes), self.options)
                    form = with_letters(form, self.grid)
                    name = form.dtypes_text or form.compute
                    if name in forms:
                        fix = "name it once"
                        raise RooflinesError("", f"is {quote(name)}, which is listed twice", fix)
                    forms[name] = form
        return forms

    def _dtypes(self, dtypes: str | Mapping[str, Any]) -> str | Mapping[str, Any]:
        """Dtypes as a kernel takes them."""
        return dtypes

    @property
    def form(self) -> KernelForm:
        """Kernel with the first dtypes."""
        return next(iter(self.forms.values()))

    @property
    def combinations(self) -> dict[str, KernelForm]:
        """Kernels by their dtypes' name, as other sweeps call them."""
        return self.forms

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
    def solved(self) -> tuple[str, ...]:
        """Threshold axes: letters."""
        thresholds = self.config.thresholds
        return (self._first_axis(),) if thresholds is None else tuple(thresholds)

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
        return super().sizes_along(axis)

    def find_cases(self) -> tuple[tuple[Block[KindCase], ...], tuple[Skipped, ...]]:
        """Find supported cases, in a block for each place, and skipped rows."""
        before, after = self.axes
        rows, blocks = Counter[Skipped](), []
        counts_exp = self.config.counts_exp and self.form.kind.exponentials != "0"
        for supported in self.supported_at({UNSPLIT: ((1,),)}, _no_keys):
            for skipped, variants in supported.skipped.items():
                rows[skipped] += self.points * variants
            place = supported.place
            if counts_exp and place.entry.special is None and supported.dtypes:
                skipped = Skipped(NO_EXP_RATE, chip=place.chip, memory=place.memory)
                rows[skipped] += self.points * len(supported.dtypes)
                continue
            if supported.dtypes and supported.splits:
                cases = (KindCase(supported.place, self, dtypes) for dtypes in supported.dtypes)
                blocks.append(Block(before, tuple(cases), after))
        return tuple(blocks), skipped_rows(rows)


def _no_keys(split: str) -> dict[str, str]:
    """Split keys in skipped rows: a chip alone needs none."""
    del split
    return {}


@dataclass(frozen=True, repr=False)
class ChainSweep(KindSweep):
    """Kernel sweep over a chain: kinds fused into one kernel, or one after another."""

    config: ChainSweepConfig  # type: ignore[assignment]  # in place of one kind

    @cached_property
    def chain(self) -> Chain:
        """Chain at its first sizes, for its formulas."""
        config, sizes = self.config, dict[str, int]()
        key = "operation" if config.fused else "sequence"
        with Mistakes() as mistakes:
            for letter, written in config.grid.items():
                with mistakes.at("grid", letter):
                    check_choice(letter, CHAIN_LETTERS, "no letter of a chain")
                    root = config.grid.get(written.same_as or letter, written)
                    sizes[letter] = root.values()[0]
        text = (f" {FUSED} " if config.fused else f"{SEQUENCE} ").join(config.links)
        try:
            return parse_chain(text, sizes, {}, sign=FUSED if config.fused else SEQUENCE)
        except RooflinesError as error:
            place = {"operation": key, "sizes": "grid"}.get(error.where, key)
            problem = error.problem
            if error.where not in (place, "operation"):
                problem = f"is incomplete: {error.where} {problem}"
            raise RooflinesError(place, problem, error.fix, value=error.value) from None

    @cached_property
    def kind(self) -> KernelKind:
        """Chain as one kernel, without the tensors between its kinds."""
        return self.chain.fused_kind

    @cached_property
    def options(self) -> dict[str, Any]:
        """No options: flags stand beside kinds."""
        return {}

    @cached_property
    def grid(self) -> dict[str, Sizes]:
        """Sizes by letter."""
        grid = dict(self.config.grid)
        self._check_letters(grid)
        typed = [part for part in self.config.links if "->" in part]
        several = [letter for letter in ("D", "F") if letter in grid and grid[letter].count > 1]
        if typed and several:
            problem = f"has widths in {quote(typed[0])}, but several {several[0]} in the grid"
            raise RooflinesError("grid", problem, "write matmul alone, with D and F in the grid")
        return grid

    @property
    def options_text(self) -> str | None:
        """Fused or serialized."""
        return "fused" if self.config.fused else "serialized"

    @property
    def needs(self) -> Collection[str]:
        """Column prerequisites: kinds, and sequences."""
        return ("kinds",) if self.config.fused else ("kinds", "sequences")

    @cached_property
    def sequence_kinds(self) -> Sequence[KernelKind]:
        """Kernels one after another, in the sweep's letters; none where fused."""
        return [] if self.config.fused else [link.form.kind for link in self.chain.links]

    def _dtypes(self, dtypes: str | Mapping[str, Any]) -> str | Mapping[str, Any]:
        """Chain dtypes: x fills roles that are left out."""
        if isinstance(dtypes, str) or "x" not in dtypes:
            return dtypes
        return {"": dtypes["x"], **dtypes}
