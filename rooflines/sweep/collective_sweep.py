"""Sweeps over a collective between chips, and their cases: chips over a network."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from rooflines.basics.errors import Mistakes, RooflinesError
from rooflines.basics.text import counted
from rooflines.dictionary.columns import AXES
from rooflines.fits.calibration_files import REFERENCE_DTYPE
from rooflines.kinds.collectives import (
    PAYLOAD,
    PlacedCollective,
    find_collective,
)
from rooflines.sweep.calibrated_times import calibrated_collective
from rooflines.sweep.cases import Block, Case, Skipped, skipped_rows
from rooflines.sweep.kernel_sweep import KernelSweep
from rooflines.theory.extents import Size
from rooflines.theory.network import Route, axes_text, parse_axes
from rooflines.theory.operation import MATRIX
from rooflines.theory.poly import Poly
from rooflines.theory.sharding import SHARDS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rooflines.config.axis_sizes import Sizes
    from rooflines.config.kernel_fields import CollectiveSweepConfig
    from rooflines.sweep.cases import Axes
    from rooflines.theory.operation import Unit
    from rooflines.theory.times import Times

UNSPLIT = "none"
"""Sharding: a collective splits no operation."""

PAYLOAD_POLY = Poly({(Size(PAYLOAD),): Fraction(1)})
"""The payload [byte]."""


@dataclass(frozen=True, eq=False)
class CollectiveCase(Case):
    """Case: a collective between chips, over the network at a place.

    Attributes:
        sweep: The sweep.
        axes: Chips by axis [1].
    """

    sweep: CollectiveSweep
    axes: Axes

    @property
    def computes(self) -> tuple[str, ...]:
        """Compute dtype by which calibrations are chosen."""
        return (REFERENCE_DTYPE,)

    @cached_property
    def placed(self) -> PlacedCollective:
        """Collective on its chips."""
        place, machine = self.place, self.machine
        return PlacedCollective(
            self.sweep.kernel_name,
            place.networks,
            Route(place.links, place.resolve_axes(self.axes)),
            place.entry.networks[place.networks[0]].reduces,
            machine.efficiency["network"],
            machine.reached_bytes_per_s,
        )

    @cached_property
    def estimate(self) -> Times | None:
        """Calibrated times; None: no fit applies."""
        placed = self.placed
        return calibrated_collective(placed.kind, PAYLOAD_POLY, placed.route, self.choice)

    @cached_property
    def keys(self) -> Mapping[str, str | int | None]:
        """Values in tables' key columns."""
        keys: dict[str, str | int | None] = {
            "operation": self.sweep.kernel_name,
            "chip": self.chip,
            "unit": None,
            "memory": self.memory,
            "network": self.network,
            "dtypes": None,
            "sharding": UNSPLIT,
            "shape": None,
            "options": None,
            SHARDS: math.prod(self.axes),
        }
        if self.sweep.has_axes:
            keys[AXES] = axes_text(self.axes)
        return keys


@dataclass(frozen=True, repr=False)
class CollectiveSweep(KernelSweep[CollectiveCase]):
    """Kernel sweep over a collective: payloads, chip counts and networks."""

    config: CollectiveSweepConfig

    ALTERNATIVES = "chips, networks or numbers of shards"

    def __repr__(self) -> str:
        """Name, collective and extent, in one line."""
        parts = [counted(len(self.rows_by_chip()), "chip"), counted(self.rows, "row")]
        return f"<KernelSweep {self.name}: {self.kernel_name}, {', '.join(parts)}>"

    @cached_property
    def kernel_name(self) -> str:
        """Name in the column `operation`."""
        return find_collective(self.config.operation) or self.config.operation

    @property
    def letters(self) -> Mapping[str, str]:
        """Meaning by letter: the payload."""
        holder = "of one chip" if self.kernel_name == "all-to-all" else "of the whole tensor"
        return {PAYLOAD: f"payload, the bytes {holder}"}

    @cached_property
    def grid(self) -> Mapping[str, Sizes]:
        """Sizes by letter."""
        grid = self.config.grid
        with Mistakes() as mistakes:
            for letter in grid:
                if letter != PAYLOAD:
                    problem = f"is no letter of {self.kernel_name}, which has {PAYLOAD} alone"
                    mistakes.add(RooflinesError(("grid", letter), problem, "leave it out"))
            if PAYLOAD not in grid:
                fix = "add bytes: {from: 1024, to: 1073741824, factor: 2}"
                mistakes.add(RooflinesError("grid", f"lacks {PAYLOAD}, the payload", fix))
        return grid

    @property
    def options_text(self) -> str | None:
        """No options."""
        return None

    @property
    def needs(self) -> Collection[str]:
        """Column prerequisites: collectives, two networks, several axes."""
        levels = any(len(names) > 1 for names in self.config.network or [])
        return ["collectives", *(["levels"] * levels), *(["axes"] * self.has_axes)]

    @property
    def has_axes(self) -> bool:
        """True if any split is over several axes: the table then has the column `axes`."""
        return any(len(axes) > 1 for axes in self.splits)

    @cached_property
    def splits(self) -> list[Axes]:
        """Chips along each axis, split by split, in the config's order [1]."""
        splits = [*map(parse_axes, self.config.shards)]
        with Mistakes() as mistakes:
            for index, axes in enumerate(splits):
                if math.prod(axes) == 1:
                    problem = f"is 1: {self.kernel_name} needs several chips"
                    mistakes.add(RooflinesError((SHARDS, index), problem, "write such as 8"))
        return splits

    @property
    def unit(self) -> Unit:
        """Compute unit whose rates a place has; a collective uses none."""
        return MATRIX

    @property
    def computes(self) -> dict[str, tuple[str, ...]]:
        """No compute dtype is needed."""
        return {"": ()}

    @property
    def calibrated_computes(self) -> Collection[tuple[str, ...]]:
        """Compute dtype by which calibrations are chosen."""
        return [(REFERENCE_DTYPE,)]

    @property
    def combinations(self) -> dict[str, str]:
        """In place of dtypes: a payload is counted in bytes."""
        return {PAYLOAD: self.kernel_name}

    @property
    def solved(self) -> tuple[str, ...]:
        """Threshold axes: the payload, unless the config asks for nothing."""
        thresholds = self.config.thresholds
        return (PAYLOAD,) if thresholds is None else tuple(thresholds)

    @property
    def solvable(self) -> list[str]:
        """Letters along which thresholds are solved: the payload."""
        return [PAYLOAD]

    def find_cases(self) -> tuple[tuple[Block[CollectiveCase], ...], tuple[Skipped, ...]]:
        """Find supported cases, in a block for each place, and skipped rows."""
        before, after = self.axes
        rows, blocks = Counter[Skipped](), []
        for supported in self.supported_at({axes: (axes,) for axes in self.splits}, _split_keys):
            for skipped, variants in supported.skipped.items():
                rows[skipped] += self.points * variants
            place, splits = supported.place, supported.splits if supported.dtypes else []
            cases = [CollectiveCase(place, self, axes) for axes in splits]
            if cases:
                blocks.append(Block(before, tuple(cases), after))
        return tuple(blocks), skipped_rows(rows)


def _split_keys(axes: Axes) -> dict[str, str | int]:
    """A split's keys in skipped rows."""
    return {SHARDS: math.prod(axes), AXES: axes_text(axes)}
