"""Cases of one operation: a dtype combination and a sharding over chips, at a place."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from rooflines.model.columns import AXES
from rooflines.model.costs import Workload
from rooflines.model.kernel import Kernel, operation_kernel, operation_transfers
from rooflines.model.network import Route, axes_text
from rooflines.model.sharding import SHARDS
from rooflines.model.target import Target
from rooflines.sweep.cases import Block, Case, Skipped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction

    from rooflines.catalogue.dtypes import StoredDtypes
    from rooflines.fits.choice import CalibrationFit
    from rooflines.model.operation import Flops, Operation
    from rooflines.model.sharding import Sharding
    from rooflines.sweep.axes import Axis
    from rooflines.sweep.cases import Axes, Place, Requested


@dataclass(frozen=True)
class Variant:
    """One (dtypes, sharding, chips along each axis) of a sweep: a case without its place."""

    dtypes: str
    sharding: str
    axes: Axes

    @property
    def shards(self) -> int:
        """N, the chips [1]."""
        return math.prod(self.axes)


@dataclass(frozen=True, eq=False)
class Operated:
    """What all cases of a sweep of one operation have in common.

    Attributes:
        op: The operation.
        tile: Elements per tile of the tiled dimensions [1].
        flops: `leading` or `exact`.
        unit: The compute unit.
        combinations, shardings: By name.
        forms: The chips along each axis, of every number of chips that is asked for.
        has_axes: Whether tables have a column with the chips along each axis.
        kernels: Workloads and kernels by variant and what their chips send, shared by chips.
    """

    op: Operation
    tile: Mapping[str, int]
    flops: Flops
    unit: str
    combinations: Mapping[str, StoredDtypes]
    shardings: Mapping[str, Sharding]
    forms: Sequence[Axes]
    has_axes: bool
    kernels: dict[tuple[Variant, tuple[Fraction, ...]], tuple[Workload, Kernel]] = field(
        default_factory=dict
    )

    @property
    def variants(self) -> list[Variant]:
        """Every variant, in the order of tables; a sharding without a split is of one chip."""
        return [
            Variant(dtypes, name, axes)
            for dtypes in self.combinations
            for name, scheme in self.shardings.items()
            for axes in (self.forms if scheme.split else [(1,)])
        ]

    def joined(self, variant: Variant) -> tuple[Axes, ...]:
        """The groups of chips that communicate, as chips along every axis [1]."""
        return (variant.axes,)

    def kernel(self, variant: Variant, sent: tuple[Fraction, ...]) -> tuple[Workload, Kernel]:
        """The workload and kernel of a variant whose chips send so much of what it transfers."""
        key = variant, sent
        if key not in self.kernels:
            combination = self.combinations[variant.dtypes]
            scheme = self.shardings[variant.sharding]
            workload = Workload(
                self.op, combination.bits, scheme, variant.shards, sent, self.tile, self.flops
            )
            self.kernels[key] = workload, operation_kernel(workload, combination.compute)
        return self.kernels[key]


@dataclass(frozen=True, eq=False)
class OperationCase(Case):
    """A variant of an operation at a place.

    Attributes:
        of: What all cases of the sweep have in common.
        variant: Its dtypes, sharding and chips.
    """

    of: Operated
    variant: Variant

    @property
    def dtypes(self) -> str:
        """The dtype combination by name."""
        return self.variant.dtypes

    @property
    def shards(self) -> int:
        """N, the chips [1]."""
        return self.variant.shards

    @property
    def combination(self) -> StoredDtypes:
        """The dtype combination."""
        return self.of.combinations[self.variant.dtypes]

    @property
    def scheme(self) -> Sharding:
        """What is split over the chips."""
        return self.of.shardings[self.variant.sharding]

    @cached_property
    def route(self) -> Route | None:
        """The interconnects between the chips; None for one chip."""
        links = self.place.links
        return Route(links, self.variant.axes) if links and self.shards > 1 else None

    @cached_property
    def _own(self) -> tuple[Workload, Kernel]:
        route, transfers = self.route, self.scheme.transfers
        return self.of.kernel(
            self.variant, route.sent(transfers[0][1]) if route and transfers else ()
        )

    @property
    def workload(self) -> Workload:
        """The operation with its dtypes, split and tiles."""
        return self._own[0]

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        """The one kernel."""
        workload, kernel = self._own
        if self.route is None:
            return (kernel,)
        transfers = operation_transfers(kernel, workload, self.route)
        return (replace(kernel, transfers=transfers) if transfers else kernel,)

    @property
    def fit(self) -> CalibrationFit | None:
        """The calibration of its compute dtype and its one collective; None without."""
        kinds = [kind for _, kind in self.scheme.transfers]
        return self.choice.fit(self.combination.compute, kinds[0] if len(kinds) == 1 else None)

    @property
    def is_calibrated(self) -> bool:
        """Whether there is a calibration of its compute dtype."""
        return self.fit is not None

    @property
    def target(self) -> Target:
        """What it runs on."""
        machine = self.machine
        return Target(
            machine.peaks[self.combination.compute],
            machine.level,
            self.route,
            self.scheme,
            machine.efficiency,
        )

    @property
    def keys(self) -> Mapping[str, str | int | None]:
        """Its values in the key columns of tables."""
        own: dict[str, str | int | None] = {
            "operation": self.of.op.name,
            "chip": self.chip,
            "unit": self.of.unit,
            "memory": self.memory,
            "network": self.network,
            "dtypes": self.dtypes,
            "sharding": self.variant.sharding,
        }
        if self.of.has_axes:
            own[AXES] = axes_text(self.variant.axes)
        return {**own, SHARDS: self.shards}


class OperationBlock(Block[OperationCase]):
    """The rows of one chip, memory level and route: a full product of axes."""

    @property
    def place(self) -> Place:
        """Where they run."""
        return self.cases[0].place

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
    def networks(self) -> tuple[str, ...]:
        """The interconnects, inner first; none where the chip has none."""
        return self.place.networks

    @cached_property
    def variants(self) -> tuple[Variant, ...]:
        """The variants of the cases."""
        return tuple(case.variant for case in self.cases)

    def case(self, variant: Variant) -> OperationCase:
        """A variant at this place, whether it is among the rows or not."""
        return OperationCase(self.place, self.cases[0].of, variant)


@dataclass(frozen=True)
class SkippedOperations(Skipped):
    """Rows of a sweep of one operation that a chip does not support.

    Attributes:
        sharding, shards, axes: Of the split that is not supported; None: all.
    """

    sharding: str | None = None
    shards: int | None = None
    axes: str | None = None

    def asked(self) -> str:
        """The unsupported dtypes, sharding and shards, or the memory level."""
        parts = (self.dtypes, self.sharding, self.axes and f"{self.axes} shards")
        return ", ".join(str(part) for part in parts if part) or str(self.memory)

    @property
    def problem(self) -> str:
        """A predicate of the sweep, for a message."""
        return f"asks {self.chip} for {self.asked()}, but it has {self.reason}"


def operation_blocks(
    asked: Requested, of: Operated, before: tuple[Axis, ...], after: tuple[Axis, ...]
) -> tuple[tuple[OperationBlock, ...], tuple[SkippedOperations, ...]]:
    """The cases that chips support, a block for each place, and the rows that are skipped.

    Args:
        asked: The chips, and what they are asked for.
        of: The operation.
        before: The axes of sizes before the cases.
        after: Those after them.
    """
    points = math.prod(axis.count for axis in (*before, *after))
    blocks, skipped = [], []
    variants = of.variants
    pairs = {(variant.sharding, variant.axes): variant for variant in reversed(variants)}
    pairs = dict(reversed(pairs.items()))
    at_place = _Supported(of, variants, list(pairs.values()))
    for chip in asked.names:
        for memory in asked.memory:
            places = list(asked.places(chip, memory))
            of_dtypes = points * _pairs_asked(places, list(pairs.values()))
            here = SkippedOperations("", chip=chip, memory=memory)
            if reason := places[0].no_level():
                rows = of_dtypes * len(of.combinations)
                skipped.append(replace(here, rows=rows, reason=reason))
                continue
            missing = {name: why for name in of.combinations if (why := places[0].no_peak(name))}
            skipped.extend(
                replace(here, rows=of_dtypes, reason=why, dtypes=name)
                for name, why in missing.items()
            )
            alone = False  # rows of one chip without a network are there once
            for place in places if len(missing) < len(of.combinations) else ():
                rows = points * (len(of.combinations) - len(missing))
                skipped.extend(
                    replace(
                        here,
                        rows=rows,
                        reason=why,
                        network=place.route_name,
                        sharding=variant.sharding,
                        shards=variant.shards,
                        axes=axes_text(variant.axes),
                    )
                    for variant, why in at_place.unjoined(place).items()
                )
                cases = at_place.variants(place, frozenset(missing))
                if cases and not (place.network is None and alone):
                    found = tuple(OperationCase(place, of, variant) for variant in cases)
                    blocks.append(OperationBlock(before, found, after))
                alone = alone or place.network is None
    return tuple(blocks), tuple(skipped)


class _Supported:
    """The variants that places support; those with equal networks share the answer."""

    def __init__(self, of: Operated, variants: Sequence[Variant], pairs: Sequence[Variant]) -> None:
        self._of, self._every, self._pairs = of, variants, pairs
        self._unjoined: dict[object, dict[Variant, str]] = {}
        self._variants: dict[object, list[Variant]] = {}

    def unjoined(self, place: Place) -> Mapping[Variant, str]:
        """The splits that a network does not support, and the reason for each."""
        key = place.network, place.links, place.missing
        if key not in self._unjoined:
            whys = ((each, place.not_joined(self._of.joined(each))) for each in self._pairs)
            self._unjoined[key] = {each: why for each, why in whys if why}
        return self._unjoined[key]

    def variants(self, place: Place, missing: frozenset[str]) -> list[Variant]:
        """The variants that a network supports, without some dtype combinations."""
        key = missing, place.network, place.links, place.missing
        if key not in self._variants:
            unjoined = {(each.sharding, each.axes) for each in self.unjoined(place)}
            self._variants[key] = [
                each
                for each in self._every
                if each.dtypes not in missing and (each.sharding, each.axes) not in unjoined
            ]
        return self._variants[key]


def _pairs_asked(places: Sequence[Place], pairs: Sequence[Variant]) -> int:
    """Pairs of a route and a split that are asked of a chip [1].

    Of the routes that it lacks, only the first one has rows of one chip.
    """
    lacking = sum(not place.links for place in places)
    alone = sum(pair.axes == (1,) for pair in pairs)
    return len(places) * len(pairs) - max(lacking - 1, 0) * alone
