"""Cases: kernels on a chip. A sweep requests them; chips support them or not, with a reason."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from rooflines.basics.errors import at_path, check_choices
from rooflines.basics.memo import Memo
from rooflines.config.sweep_fields import ALL_COLUMNS
from rooflines.dictionary.columns import (
    KERNEL_METRICS,
    KERNEL_SWEEP_METRICS,
    STEP_METRICS,
    TRAINING_METRICS,
)
from rooflines.fits.calibration_choice import CalibrationChoice, auto_softwares
from rooflines.fits.calibration_files import AUTO_CALIBRATION
from rooflines.hardware.support import (
    interconnects,
    missing_level_reason,
    missing_peak_reason,
    missing_route_reason,
)
from rooflines.sweep.calibrated_times import calibrated_times
from rooflines.theory.network import LEVEL_SEPARATOR, TORUS, Link, resolve_axes
from rooflines.theory.resources import (
    NETWORK,
    RESOURCES,
    collective_times,
    common_rate,
    data_sheet_times,
    serial_times,
    work_of,
    work_time,
)
from rooflines.theory.times import Time, Times

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from fractions import Fraction

    from rooflines.dictionary.columns import Column
    from rooflines.fits.calibration_files import Calibrations
    from rooflines.hardware.dtype_catalogue import DtypeFile
    from rooflines.hardware.entries import Chip
    from rooflines.sweep.axes import Axis
    from rooflines.theory.kernel import Kernel
    from rooflines.theory.operation import Unit
    from rooflines.theory.poly import Poly
    from rooflines.theory.resources import ChipRates, CollectiveTimes, Resource, RunCount

Axes = tuple[int, ...]
"""Chips along each axis of a network [1]."""


class SharedKernels(Protocol):
    """Kernels that several cases share."""

    def collective_times(self, machine: ChipRates) -> CollectiveTimes:
        """Collective times at a machine's rates."""


@dataclass(frozen=True, eq=False)
class ChipPlace:
    """Place where kernels may run: a chip with a memory level and a route.

    Attributes:
        sweep: The sweep that requests it.
        chip, memory, network: As in tables; network is None without a route.
        links: The interconnects, inner first.
        missing: Reason why there are no interconnects; empty where there are.
        requested_route: Names of interconnects in the config; None: the chip's first.
    """

    sweep: BaseSweep[Any]
    chip: str
    memory: str
    network: str | None
    links: tuple[Link, ...]
    missing: str
    requested_route: Sequence[str] | None

    @property
    def entry(self) -> Chip:
        """The chip's entry in the catalogue."""
        return self.sweep.chips[self.chip]

    @property
    def networks(self) -> tuple[str, ...]:
        """Names of the interconnects, inner first; empty where the chip has none."""
        return tuple(self.network.split(LEVEL_SEPARATOR)) if self.network else ()

    @property
    def route_name(self) -> str | None:
        """Route in tables: the place's, or the requested route that the chip lacks."""
        return self.network or (
            LEVEL_SEPARATOR.join(self.requested_route) if self.requested_route else None
        )

    @cached_property
    def machine(self) -> ChipRates:
        """Rates from which times are computed."""
        shares = self.entry.efficiency, self.sweep.config.efficiency
        return self.entry.chip_rates(self.sweep.unit, self.memory, *shares)

    def choice(self, computes: frozenset[str]) -> CalibrationChoice:
        """Calibrations that apply to a case with these compute dtypes."""
        return self._choices[self.softwares(computes)]

    @cached_property
    def _choices(self) -> Memo[tuple[str, ...] | None, CalibrationChoice]:
        """Calibrations by software."""
        sweep = self.sweep
        where = self.chip, self.entry, sweep.unit, self.memory, self.networks
        return Memo(lambda softwares: CalibrationChoice(sweep.calibrations, softwares, *where))

    def softwares(self, computes: Collection[str]) -> tuple[str, ...] | None:
        """Software that estimates a case; empty: the chip's own calibration; None: no estimate.

        `auto` takes the chip's own calibration where it covers the compute dtypes.
        """
        named: Sequence[str] | None = self.sweep.config.calibration
        if named != [AUTO_CALIBRATION]:
            return None if named is None else tuple(named)
        return auto_softwares(
            self.sweep.calibrations, self.chip, self.entry, computes, self.sweep.preferred_engine
        )

    @cached_property
    def times(self) -> Memo[Kernel, Times]:
        """Nominal times of kernels in one layer, collectives one after another."""
        return Memo(lambda kernel: serial_times(kernel, self.machine))

    def estimate(self, kernel: Kernel, choice: CalibrationChoice) -> Times | None:
        """A kernel's calibrated times in one layer; None without a calibration."""
        softwares = choice.softwares
        return self._estimates[kernel, None if softwares is None else tuple(softwares)]

    @cached_property
    def _estimates(self) -> Memo[tuple[Kernel, tuple[str, ...] | None], Times | None]:
        """Calibrated times by kernel and software."""

        def times(key: tuple[Kernel, tuple[str, ...] | None]) -> Times | None:
            kernel, softwares = key
            return calibrated_times(kernel, self.machine, self._choices[softwares])

        return Memo(times)

    @cached_property
    def collective_times(self) -> Memo[SharedKernels, CollectiveTimes]:
        """Collective times of kernels that training plans share."""
        return Memo(lambda kernels: kernels.collective_times(self.machine))

    def missing_peak(self, dtypes: str) -> str | None:
        """Reason why the unit cannot compute in a dtype combination; None where it can."""
        reasons = (
            missing_peak_reason(self.entry, self.sweep.unit, compute)
            for compute in self.sweep.computes[dtypes]
        )
        return next((reason for reason in reasons if reason is not None), None)

    def resolve_axes(self, axes: Axes, collective: str = "all-gather") -> Axes:
        """Axes that chips take for typed axes; see `BaseSweep.fastest_axes`."""
        return resolve_axes(self.links, axes, collective) if self.sweep.fastest_axes else axes

    def missing_route_reason(self, group_axes: Sequence[Axes]) -> str | None:
        """Reason why the route does not join groups of chips; None where it does.

        Args:
            group_axes: Axes of every group.
        """
        groups = [self.resolve_axes(axes) for axes in group_axes if axes != (1,)]
        if not groups:
            return None
        if self.missing:
            return self.missing
        if self.sweep.maps_axes and self.links[0].topology == TORUS:
            return None  # its plans say why they cannot be placed
        for axes in groups:
            reason = missing_route_reason(self.networks, self.links, axes)
            if reason is not None:
                return reason
        return None


def stored_columns(columns: Iterable[Column], names: Collection[str]) -> list[Column]:
    """Columns that a table stores.

    Args:
        columns: All columns, in order.
        names: The table's metrics, or `ALL_COLUMNS`.
    """
    every = (
        ()
        if names == ALL_COLUMNS
        else (*KERNEL_SWEEP_METRICS, *STEP_METRICS, *KERNEL_METRICS, *TRAINING_METRICS)
    )
    left_out = {metric.name for metric in every}.difference(names)
    return [column for column in columns if column.name not in left_out]


class RatedTime(NamedTuple):
    """Resource time: the larger of work / rate and another time.

    Attributes:
        rate: Rate of all work [FLOP/s or byte/s]; None: several rates, or no work.
        beside: The other time: of hops, or without one rate the whole time [s].
    """

    rate: Fraction | None
    beside: Time


@dataclass(frozen=True, eq=False)
class Case:
    """Kernels at a place: everything but the sizes.

    Attributes:
        place: The chip with a memory level and a route.
    """

    place: ChipPlace

    @property
    def chip(self) -> str:
        """Id of the chip."""
        return self.place.chip

    @property
    def memory(self) -> str:
        """Name of the memory level."""
        return self.place.memory

    @property
    def network(self) -> str | None:
        """Route in tables; None without one."""
        return self.place.network

    @property
    def machine(self) -> ChipRates:
        """Rates from which times are computed."""
        return self.place.machine

    @property
    def computes(self) -> Iterable[str]:
        """Compute dtypes."""
        raise NotImplementedError

    @cached_property
    def choice(self) -> CalibrationChoice:
        """Calibrations that apply."""
        return self.place.choice(frozenset(self.computes))

    @property
    def keys(self) -> Mapping[str, str | int | None]:
        """Values in tables' key columns."""
        raise NotImplementedError

    @cached_property
    def shares(self) -> Mapping[str, tuple[str, int]]:
        """Extents computed as a size divided by a number of the case, such as micro-batches.

        (size, divisor) by name.
        """
        return {}

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """Kernels, in order."""
        raise NotImplementedError

    @property
    def parts(self) -> list[tuple[RunCount, Kernel]]:
        """Kernels, each with its number of layers."""
        return [(kernel.count, kernel) for kernel in self.kernels]

    @cached_property
    def times(self) -> Times:
        """Nominal times over all kernels and layers; collectives overlap."""
        return data_sheet_times(self.work_time, self.collective_times.overlapped)

    def work_time(self, resource: Resource) -> Poly:
        """Nominal resource time, except the network [s]."""
        return work_time(resource, self.parts, self.machine)

    @cached_property
    def collective_times(self) -> CollectiveTimes:
        """Nominal collective times, network by network [s]."""
        return collective_times(self.parts, self.machine)

    def rate(self, resource: Resource) -> Fraction | None:
        """Rate for all work on a resource [FLOP/s or byte/s]; None: several, or no work."""
        return common_rate(resource, self.kernels, self.machine)

    @cached_property
    def rated_times(self) -> Mapping[Resource, RatedTime]:
        """Nominal times by resource, as work / rate where all work has one rate."""
        times = {}
        for resource in RESOURCES:
            rate, beside = self.rate(resource), Time()
            if rate is None:
                beside = self.times.by_bound[resource.bound]
            elif resource is NETWORK:
                beside = Time.max_of(*self.collective_times.hops)
            times[resource] = RatedTime(rate, beside)
        return times

    @cached_property
    def kernel_times(self) -> tuple[Times, ...]:
        """Nominal times in one layer, kernel by kernel, collectives one after another."""
        return tuple(self.place.times[kernel] for kernel in self.kernels)

    @cached_property
    def kernel_estimates(self) -> tuple[Times | None, ...]:
        """Calibrated times in one layer, kernel by kernel; None without a calibration."""
        return tuple(self.place.estimate(kernel, self.choice) for kernel in self.kernels)

    @cached_property
    def estimate(self) -> Times | None:
        """Calibrated times over all kernels and layers; None if a kernel has no calibration."""
        calibrated = [times for times in self.kernel_estimates if times is not None]
        if len(calibrated) < len(self.kernels):
            return None
        if len(calibrated) == 1:
            return calibrated[0]
        counts = (kernel.count for kernel in self.kernels)
        return Times.total(zip(counts, calibrated, strict=True))

    def work(self, column: str) -> Poly:
        """Work over all kernels and layers, by column [FLOP or byte]."""
        return self._works[column]

    def _summed_work(self, column: str) -> Poly:
        """Compute a column's work."""
        return work_of(column, self.parts)

    @cached_property
    def _works(self) -> Memo[str, Poly]:
        return Memo(self._summed_work)


SplitT = TypeVar("SplitT")

CaseT_co = TypeVar("CaseT_co", bound=Case, covariant=True)


@dataclass(frozen=True, eq=False)
class Block(Generic[CaseT_co]):
    """Block: cases with the same columns, and their sizes, a full product of axes.

    Attributes:
        before, after: Size axes before and after the cases, slowest first.
        cases: The cases.
    """

    before: tuple[Axis, ...]
    cases: tuple[CaseT_co, ...]
    after: tuple[Axis, ...]

    @cached_property
    def points(self) -> int:
        """Number of rows per case [1]."""
        return math.prod(axis.count for axis in (*self.before, *self.after))

    @property
    def rows(self) -> int:
        """Number of rows over all cases [1]."""
        return self.points * len(self.cases)

    @property
    def place(self) -> ChipPlace:
        """Place of the first case; in a block of operations, of all cases."""
        return self.cases[0].place


@dataclass(frozen=True)
class Skipped:
    """Skipped rows: unsupported rows of a sweep; None in a field means all values.

    Attributes:
        reason: Reason why they are unsupported.
        rows: Number of rows [1].
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
    def combination(self) -> str:
        """Unsupported combination: model, dtypes, sharding, shards, split; else memory level."""
        shards = self.axes and f"{self.axes} shards"
        parts = (self.model, self.dtypes, self.sharding, shards, self.split)
        return ", ".join(part for part in parts if part) or str(self.memory)

    @property
    def problem(self) -> str:
        """Predicate for a message about the sweep."""
        if self.chip is None:
            return f"asks for {self.combination}: {self.reason}"
        return f"asks {self.chip} for {self.combination}, but it has {self.reason}"


def skipped_rows(rows: Mapping[Skipped, int]) -> tuple[Skipped, ...]:
    """Skipped rows with their counts, where a count is above zero."""
    return tuple(replace(skipped, rows=count) for skipped, count in rows.items() if count)


class SupportedAt(NamedTuple, Generic[SplitT]):
    """Dtypes and splits that a place supports.

    Attributes:
        place: The place.
        dtypes: Supported dtype combinations, by name.
        splits: Supported splits.
        skipped: Unsupported rows, with the number of pairs of dtypes and splits [1].
    """

    place: ChipPlace
    dtypes: list[str]
    splits: list[SplitT]
    skipped: Mapping[Skipped, int]


@dataclass(frozen=True, repr=False)
class BaseSweep(ABC, Generic[CaseT_co]):
    """Sweep over one operation, or over whole models.

    Everything derives from its config and from catalogue entries, so that a job rebuilds the
    planned sweep from their JSON.

    Attributes:
        name: The sweep's name.
        config: The sweep's keys, each checked.
        chips: The catalogue and the config's chips, by id.
        dtypes: The dtype catalogue.
        calibrations: By chip and software.
        fastest_axes: True if a plain chip count takes a torus's fastest axes, as in a question;
            False: one axis, as in a config.
        ALTERNATIVES: Advice where nothing is supported: keys to change.
    """

    name: str
    config: Any
    chips: Mapping[str, Chip]
    dtypes: DtypeFile
    calibrations: Calibrations
    fastest_axes: bool = field(default=False, kw_only=True)

    @property
    def preferred_engine(self) -> str | None:
        """Engine whose fits `auto` takes first; None: the first that has some."""
        return None

    maps_axes: ClassVar[bool] = False
    """True if parallelisms are mapped onto the axes of a torus, by `theory.tori`."""

    ALTERNATIVES: ClassVar[str] = ""

    @property
    @abstractmethod
    def unit(self) -> Unit:
        """Compute unit."""

    @property
    @abstractmethod
    def computes(self) -> Mapping[str, Sequence[str]]:
        """Compute dtypes, by name of the dtype combination."""

    @property
    def calibrated_computes(self) -> Collection[Sequence[str]]:
        """Compute dtypes by case, which choose calibrations."""
        return self.computes.values()

    @abstractmethod
    def find_cases(self) -> tuple[tuple[Block[CaseT_co], ...], tuple[Skipped, ...]]:
        """Find supported cases, in blocks, and skipped rows."""

    @property
    @abstractmethod
    def columns(self) -> tuple[Column, ...]:
        """Columns in order."""

    @abstractmethod
    def max_thresholds(self) -> int:
        """Count threshold rows, at most [1]."""

    @cached_property
    def config_json(self) -> dict[str, Any]:
        """Config as JSON, defaults filled in."""
        dumped: dict[str, Any] = self.config.model_dump()
        return dumped

    def places(self, chip: str, memory: str) -> tuple[ChipPlace, ...]:
        """Places for a chip and memory level, one for every route."""
        return self._places[chip, memory]

    @cached_property
    def _places(self) -> Memo[tuple[str, str], tuple[ChipPlace, ...]]:
        """Places by chip and memory level."""

        def places(key: tuple[str, str]) -> tuple[ChipPlace, ...]:
            chip, memory = key
            routes = self.config.network or (None,)
            return tuple(
                ChipPlace(self, chip, memory, *interconnects(self.chips[chip], route), route)
                for route in routes
            )

        return Memo(places)

    def supported_at(
        self,
        splits: Mapping[SplitT, Sequence[Axes]],
        keys_of: Callable[[SplitT], Mapping[str, Any]],
        placed: Callable[[ChipPlace], ChipPlace] = lambda place: place,
    ) -> Iterator[SupportedAt[SplitT]]:
        """Yield the supported dtypes and splits, place by place.

        A chip without a network has its one-chip rows once.

        Args:
            splits: Every split, with the chips along the axes of each group that it joins.
            keys_of: A split's keys in skipped rows.
            placed: Function from a place to the one that the splits take.
        """
        one_chip_splits = [
            split for split, group_axes in splits.items() if set(group_axes) == {(1,)}
        ]
        for chip, memory in product(self.config.chips, self.config.memory):
            skipped_here = Skipped("", chip=chip, memory=memory)
            one_chip_listed = False
            for place in map(placed, self.places(chip, memory)):
                repeated = one_chip_splits if one_chip_listed and place.network is None else ()
                one_chip_listed = one_chip_listed or place.network is None
                requested = [split for split in splits if split not in repeated]
                skipped: dict[Skipped, int] = {}
                dtypes, joined_splits = list(self.computes), list(requested)
                if reason := missing_level_reason(place.entry, memory):
                    skipped[replace(skipped_here, reason=reason)] = len(dtypes) * len(requested)
                    dtypes = []
                for name, peak_reason in ((name, place.missing_peak(name)) for name in [*dtypes]):
                    if peak_reason is not None:
                        skipped[replace(skipped_here, reason=peak_reason, dtypes=name)] = len(
                            requested
                        )
                        dtypes.remove(name)
                for split in requested if dtypes else ():
                    if unjoined := place.missing_route_reason(splits[split]):
                        keys = {"network": place.route_name, **keys_of(split)}
                        skipped[replace(skipped_here, reason=unjoined, **keys)] = len(dtypes)
                        joined_splits.remove(split)
                yield SupportedAt(place, dtypes, joined_splits, skipped)

    @cached_property
    def supported(self) -> tuple[tuple[Block[CaseT_co], ...], tuple[Skipped, ...]]:
        """Find supported cases, in blocks, and skipped rows."""
        fix = "use one of these, or describe the chip under `chips:` with a source"
        with at_path("chips"):
            check_choices(self.config.chips, self.chips, "no chip in the catalogue", fix)
        return self.find_cases()

    @property
    def blocks(self) -> tuple[Block[CaseT_co], ...]:
        """Cases that chips support; a block has cases with the same kernels and sizes."""
        return self.supported[0]

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """Skipped rows, which chips do not support."""
        return self.supported[1]

    @cached_property
    def cases(self) -> tuple[CaseT_co, ...]:
        """Cases, over all blocks."""
        return tuple(case for block in self.blocks for case in block.cases)

    @cached_property
    def rows(self) -> int:
        """Number of rows in the whole table [1]."""
        return sum(block.rows for block in self.blocks)

    @cached_property
    def stored(self) -> list[Column]:
        """Columns in the table: keys always, metrics as the config chooses."""
        return stored_columns(self.columns, self.config.columns)
