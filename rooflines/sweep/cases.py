"""Cases: what runs where. A sweep asks for them; chips support them or not, with a reason."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

from rooflines.basics.errors import at_path, check_choices
from rooflines.config.sweep_fields import ALL
from rooflines.dictionary.columns import KERNEL_METRICS, METRICS, STEP_METRICS, TRAINING_METRICS
from rooflines.fits.calibration_choice import CalibrationChoice
from rooflines.hardware.support import (
    interconnects,
    missing_level_reason,
    missing_peak_reason,
    missing_route_reason,
)
from rooflines.sweep.calibrated_times import calibrated
from rooflines.theory.network import LEVEL_SEPARATOR, Link, resolve_axes
from rooflines.theory.resources import data_sheet_times, serial_times, time_terms, work_of
from rooflines.theory.times import Times

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from rooflines.dictionary.columns import Column
    from rooflines.fits.calibration_files import Calibrations
    from rooflines.hardware.dtype_catalogue import DtypeFile
    from rooflines.hardware.entries import Chip
    from rooflines.sweep.axes import Axis
    from rooflines.theory.kernel import Kernel
    from rooflines.theory.operation import Unit
    from rooflines.theory.poly import Poly
    from rooflines.theory.resources import ChipRates, Resource, RunCount, TimeTerms

Axes = tuple[int, ...]
"""Chips along each axis of a network [1]."""


@dataclass(frozen=True, eq=False)
class ChipPlace:
    """A chip with a memory level and a route: where something may run.

    Attributes:
        sweep: What asks for it.
        chip, memory, network: As in tables; network is None without one.
        links: The interconnects, inner first.
        missing: Why there are none; empty where there are.
        wanted: The names of the route that is asked for; None: the chip's first.
    """

    sweep: BaseSweep[Any]
    chip: str
    memory: str
    network: str | None
    links: tuple[Link, ...]
    missing: str
    wanted: Sequence[str] | None

    @property
    def entry(self) -> Chip:
        """The chip's entry in the catalogue."""
        return self.sweep.chips[self.chip]

    @property
    def networks(self) -> tuple[str, ...]:
        """The names of the interconnects, inner first; none where the chip has none."""
        return tuple(self.network.split(LEVEL_SEPARATOR)) if self.network else ()

    @property
    def route_name(self) -> str | None:
        """The route in tables: its own, or the one that the chip lacks."""
        return self.network or (LEVEL_SEPARATOR.join(self.wanted) if self.wanted else None)

    @cached_property
    def machine(self) -> ChipRates:
        """The numbers of the chip that times read."""
        shares = self.entry.efficiency, self.sweep.config.efficiency
        return self.entry.chip_rates(self.sweep.unit, self.memory, *shares)

    @cached_property
    def choice(self) -> CalibrationChoice:
        """The calibrations that apply."""
        return CalibrationChoice(
            self.sweep.calibrations,
            self.sweep.config.calibration or (),
            self.chip,
            self.entry,
            self.sweep.unit,
            self.memory,
            self.networks,
        )

    def times(self, kernel: Kernel) -> Times:
        """The nominal times of one layer of a kernel; its collectives follow one another."""
        if kernel not in self._times:
            self._times[kernel] = serial_times(kernel, self.machine)
        return self._times[kernel]

    def estimate(self, kernel: Kernel) -> Times | None:
        """The calibrated times of one layer of a kernel; None without a calibration."""
        if kernel not in self._estimates:
            self._estimates[kernel] = calibrated(kernel, self.machine, self.choice)
        return self._estimates[kernel]

    @cached_property
    def known(self) -> dict[object, TimeTerms]:
        """Times of resources that cases have in common."""
        return {}

    @cached_property
    def _times(self) -> dict[Kernel, Times]:
        return {}

    @cached_property
    def _estimates(self) -> dict[Kernel, Times | None]:
        return {}

    def missing_peak(self, dtypes: str) -> str | None:
        """Why the unit cannot compute in a dtype combination; None where it can."""
        found = (
            missing_peak_reason(self.entry, self.sweep.unit, compute)
            for compute in self.sweep.computes[dtypes]
        )
        return next((reason for reason in found if reason is not None), None)

    def placed(self, axes: Axes, collective: str = "all-gather") -> Axes:
        """The axes that chips take, by those that are typed; see `BaseSweep.fastest_axes`."""
        return resolve_axes(self.links, axes, collective) if self.sweep.fastest_axes else axes

    def not_joined(self, joined: Sequence[Axes]) -> str | None:
        """Why the route does not join groups of chips, by their axes; None where it does."""
        groups = [self.placed(axes) for axes in joined if axes != (1,)]
        if not groups:
            return None
        if self.missing:
            return self.missing
        for axes in groups:
            reason = missing_route_reason(self.networks, self.links, axes)
            if reason is not None:
                return reason
        return None


def stored_columns(columns: Iterable[Column], names: Collection[str]) -> list[Column]:
    """The columns that a table stores.

    Args:
        columns: All columns, in order.
        names: The metrics of the table, or `ALL`.
    """
    every = () if names == ALL else (*METRICS, *STEP_METRICS, *KERNEL_METRICS, *TRAINING_METRICS)
    left_out = {metric.name for metric in every}.difference(names)
    return [column for column in columns if column.name not in left_out]


@dataclass(frozen=True, eq=False)
class Case:
    """What runs at a place: everything but the sizes.

    Attributes:
        place: Where it runs.
    """

    place: ChipPlace

    @property
    def chip(self) -> str:
        """The chip's id."""
        return self.place.chip

    @property
    def memory(self) -> str:
        """The memory level."""
        return self.place.memory

    @property
    def network(self) -> str | None:
        """The route in tables; None without one."""
        return self.place.network

    @property
    def machine(self) -> ChipRates:
        """The numbers of the chip that times read."""
        return self.place.machine

    @property
    def choice(self) -> CalibrationChoice:
        """The calibrations that apply."""
        return self.place.choice

    @property
    def keys(self) -> Mapping[str, str | int | None]:
        """Its values in the key columns of tables."""
        raise NotImplementedError

    @property
    def shares(self) -> Mapping[str, tuple[str, int]]:
        """Extents computed as a size divided by a number of the case, such as micro-batches.

        (size, divisor) by name.
        """
        return {}

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """What runs, in order."""
        raise NotImplementedError

    @property
    def parts(self) -> list[tuple[RunCount, Kernel]]:
        """The kernels, each with its number of layers."""
        return [(kernel.count, kernel) for kernel in self.kernels]

    @cached_property
    def times(self) -> Times:
        """The nominal times of all kernels and layers; their collectives overlap."""
        return data_sheet_times(self.apart)

    def apart(self, resource: Resource) -> TimeTerms:
        """Nominal times of a resource: of its work and of latencies; see `resources.time_terms`."""
        return time_terms(resource, self.parts, self.machine, self.work)

    @cached_property
    def kernel_times(self) -> tuple[Times, ...]:
        """The nominal times of each kernel in one layer; its collectives follow one another."""
        return tuple(map(self.place.times, self.kernels))

    @cached_property
    def kernel_estimates(self) -> tuple[Times | None, ...]:
        """The calibrated times of each kernel in one layer; None without a calibration."""
        return tuple(map(self.place.estimate, self.kernels))

    @cached_property
    def estimate(self) -> Times | None:
        """The calibrated times of all kernels and layers; None where one has no calibration."""
        known = [times for times in self.kernel_estimates if times is not None]
        if len(known) < len(self.kernels):
            return None
        if len(known) == 1:
            return known[0]
        counts = (kernel.count for kernel in self.kernels)
        return Times.total(zip(counts, known, strict=True))

    def work(self, column: str) -> Poly:
        """A work of all kernels and layers, by its column [FLOP or byte]."""
        if column not in self._works:
            self._works[column] = self._summed_work(column)
        return self._works[column]

    def _summed_work(self, column: str) -> Poly:
        """The work of a column."""
        return work_of(column, self.parts)

    @cached_property
    def _works(self) -> dict[str, Poly]:
        return {}


SplitT = TypeVar("SplitT")

CaseT_co = TypeVar("CaseT_co", bound=Case, covariant=True)


@dataclass(frozen=True, eq=False)
class Block(Generic[CaseT_co]):
    """Cases with the same columns, and their sizes: a full product of axes.

    Attributes:
        before, after: The axes of sizes before and after the cases, slowest first.
        cases: The cases.
    """

    before: tuple[Axis, ...]
    cases: tuple[CaseT_co, ...]
    after: tuple[Axis, ...]

    @cached_property
    def points(self) -> int:
        """Rows of each case [1]."""
        return math.prod(axis.count for axis in (*self.before, *self.after))

    @property
    def rows(self) -> int:
        """Rows of all cases [1]."""
        return self.points * len(self.cases)

    @property
    def place(self) -> ChipPlace:
        """Where the first case runs; of an operation, all of them."""
        return self.cases[0].place


@dataclass(frozen=True)
class Skipped:
    """Rows of a sweep that are not supported; None in a field means all values.

    Attributes:
        reason: Why not.
        rows: How many [1].
        chip, memory, network, dtypes, sharding, shards, axes, model, split: As in tables.
    """

    reason: str
    rows: int = 0
    chip: str | None = None
    memory: str | None = None
    network: str | None = None
    dtypes: str | None = None
    sharding: str | None = None
    shards: int | None = None
    axes: str | None = None
    model: str | None = None
    split: str | None = None

    @property
    def problem(self) -> str:
        """A predicate of the sweep, for a message."""
        shards = self.axes and f"{self.axes} shards"
        parts = (self.model, self.dtypes, self.sharding, shards, self.split)
        asked = ", ".join(part for part in parts if part) or self.memory
        if self.chip is None:
            return f"asks for {asked}: {self.reason}"
        return f"asks {self.chip} for {asked}, but it has {self.reason}"


def skipped_rows(rows: Mapping[Skipped, int]) -> tuple[Skipped, ...]:
    """What is skipped, each with its number of rows, if there are any."""
    return tuple(replace(each, rows=count) for each, count in rows.items() if count)


class SupportedAt(NamedTuple, Generic[SplitT]):
    """What a place supports of the dtypes and splits that a sweep asks for.

    Attributes:
        place: The place.
        dtypes: The dtype combinations, by name.
        splits: The splits.
        skipped: What it does not support, with the number of pairs of dtypes and splits [1].
    """

    place: ChipPlace
    dtypes: list[str]
    splits: list[SplitT]
    skipped: Mapping[Skipped, int]


@dataclass(frozen=True, repr=False)
class BaseSweep(ABC, Generic[CaseT_co]):
    """A sweep, of one operation or of whole models: what is asked of every chip.

    Everything derives from its config and from catalogue entries, so that a job rebuilds the
    planned sweep from these as JSON.

    Attributes:
        name: Its name.
        config: Its keys, each checked.
        chips: The catalogue and the chips of the config, by id.
        dtypes: The dtype catalogue.
        calibrations: By chip and software.
        fastest_axes: Whether a plain number of chips takes the fastest axes of a torus, as in a
            question; else one axis, as a config has it.
        ALTERNATIVES: What else can be asked for where nothing is supported.
    """

    name: str
    config: Any
    chips: Mapping[str, Chip]
    dtypes: DtypeFile
    calibrations: Calibrations
    fastest_axes: bool = field(default=False, kw_only=True)

    ALTERNATIVES: ClassVar[str] = ""

    @property
    @abstractmethod
    def unit(self) -> Unit:
        """The compute unit that runs it."""

    @property
    @abstractmethod
    def computes(self) -> Mapping[str, Sequence[str]]:
        """The compute dtypes of every dtype combination, by the name of the latter."""

    @abstractmethod
    def find_cases(self) -> tuple[tuple[Block[CaseT_co], ...], tuple[Skipped, ...]]:
        """The cases that chips support, in blocks, and the rows that are skipped."""

    @property
    @abstractmethod
    def columns(self) -> tuple[Column, ...]:
        """The columns of its rows, in order."""

    @abstractmethod
    def max_thresholds(self) -> int:
        """Rows of all its thresholds, at most [1]."""

    @cached_property
    def config_json(self) -> dict[str, Any]:
        """Its config as JSON, defaults filled in."""
        dumped: dict[str, Any] = self.config.model_dump()
        return dumped

    def places(self, chip: str, memory: str) -> tuple[ChipPlace, ...]:
        """The places of a chip and memory level, one for every route."""
        if (chip, memory) not in self._places:
            routes = (
                (wanted, interconnects(self.chips[chip], wanted))
                for wanted in self.config.network or (None,)
            )
            self._places[chip, memory] = tuple(
                ChipPlace(self, chip, memory, *found, wanted) for wanted, found in routes
            )
        return self._places[chip, memory]

    @cached_property
    def _places(self) -> dict[tuple[str, str], tuple[ChipPlace, ...]]:
        return {}

    def supported_at(
        self,
        splits: Mapping[SplitT, Sequence[Axes]],
        keys_of: Callable[[SplitT], Mapping[str, Any]],
    ) -> Iterator[SupportedAt[SplitT]]:
        """What every place supports; a chip without a network has rows of one chip once.

        Args:
            splits: Every split, with the chips along the axes of each group that it joins.
            keys_of: Its keys in rows that are skipped.
        """
        alone = [split for split, joined in splits.items() if set(joined) == {(1,)}]
        for chip, memory in product(self.config.chips, self.config.memory):
            here, listed = Skipped("", chip=chip, memory=memory), False
            for place in self.places(chip, memory):
                again = alone if listed and place.network is None else ()
                listed = listed or place.network is None
                asked = [split for split in splits if split not in again]
                skipped, dtypes, joined = dict[Skipped, int](), list(self.computes), [*asked]
                if reason := missing_level_reason(place.entry, memory):
                    skipped[replace(here, reason=reason)] = len(dtypes) * len(asked)
                    dtypes = []
                for name, why in ((name, place.missing_peak(name)) for name in [*dtypes]):
                    if why is not None:
                        skipped[replace(here, reason=why, dtypes=name)] = len(asked)
                        dtypes.remove(name)
                for split in asked if dtypes else ():
                    if unjoined := place.not_joined(splits[split]):
                        keys = {"network": place.route_name, **keys_of(split)}
                        skipped[replace(here, reason=unjoined, **keys)] = len(dtypes)
                        joined.remove(split)
                yield SupportedAt(place, dtypes, joined, skipped)

    @cached_property
    def supported(self) -> tuple[tuple[Block[CaseT_co], ...], tuple[Skipped, ...]]:
        """The cases that chips support, in blocks, and the rows that are skipped."""
        fix = "use one of these, or describe the chip under `chips:` with a source"
        with at_path("chips"):
            check_choices(self.config.chips, self.chips, "no chip in the catalogue", fix)
        return self.find_cases()

    @property
    def blocks(self) -> tuple[Block[CaseT_co], ...]:
        """The cases that chips support, a block for those with the same kernels and sizes."""
        return self.supported[0]

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """The rows that are not supported."""
        return self.supported[1]

    @cached_property
    def cases(self) -> tuple[CaseT_co, ...]:
        """The cases of all blocks."""
        return tuple(case for block in self.blocks for case in block.cases)

    @cached_property
    def rows(self) -> int:
        """Rows of the whole table [1]."""
        return sum(block.rows for block in self.blocks)

    @property
    def stored(self) -> list[Column]:
        """The columns of its table: keys always, metrics as its config chooses."""
        return stored_columns(self.columns, self.config.columns)
