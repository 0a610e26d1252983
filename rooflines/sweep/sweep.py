"""A validated sweep: its operation, its axes, and what each chip supports of it.

Everything derives from its config and from catalogue entries, so that a job rebuilds the planned
sweep from these as JSON.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import Mistakes, RooflinesError, placed, quote
from rooflines.basics.numbers import exact, whole
from rooflines.basics.text import counted
from rooflines.catalogue.dtypes import StoredDtypes, combinations_of
from rooflines.catalogue.entries import shares_of
from rooflines.fits.entries import Calibrations
from rooflines.model.columns import METRICS, Column, table_columns
from rooflines.model.network import parse_axes
from rooflines.model.operation import Operation, operation
from rooflines.model.sharding import SHARDS, Sharding, sharding
from rooflines.sweep.axes import Axis, axes_of
from rooflines.sweep.cases import Requested, check_skipped, chosen
from rooflines.sweep.operations import Operated, operation_blocks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction

    from rooflines.catalogue.entries import Chip, DtypeFile
    from rooflines.model.operation import Flops, Unit
    from rooflines.settings.schema import SweepConfig
    from rooflines.sweep.operations import OperationBlock, OperationCase, SkippedOperations


@dataclass(frozen=True, repr=False)
class Sweep:
    """A sweep of one operation over sizes, dtypes, chips and splits.

    Build it with `checks.checked_sweep`. The order of its rows is fixed, slowest first: chip,
    memory, the operation's first dimension, dtypes, sharding, shards, shape, the other dimensions.
    """

    name: str
    config: SweepConfig
    chips: Mapping[str, Chip]
    dtypes: DtypeFile
    calibrations: Calibrations = field(default_factory=Calibrations)

    def __repr__(self) -> str:
        """Its name, operation and extent, in one line."""
        parts = [
            counted(len({block.chip for block in self.blocks}), "chip"),
            counted(len(self.combinations), "dtype combination"),
        ]
        return (
            f"<Sweep {self.name}: {self.op.name}, {', '.join(parts)}, {counted(self.rows, 'row')}>"
        )

    @cached_property
    def op(self) -> Operation:
        """Its operation."""
        with placed("operation"):
            return operation(self.config.operation)

    @cached_property
    def combinations(self) -> dict[str, StoredDtypes]:
        """Its dtype combinations by name."""
        with placed("dtypes"):
            return combinations_of(self.config.dtypes, self.dtypes)

    @cached_property
    def shardings(self) -> dict[str, Sharding]:
        """Its shardings by name."""
        return _shardings(self.config, self.op)

    @cached_property
    def tile(self) -> dict[str, int]:
        """Elements per tile of the tiled dimensions."""
        tile = {}
        with placed("tile"), Mistakes() as mistakes:
            for dim, value in (self.config.tile or {}).items():
                with mistakes.at(dim):
                    tile[dim] = whole(value)
        return tile

    @cached_property
    def efficiency(self) -> dict[str, Fraction]:
        """Share of the nominal rate by resource, where the sweep sets it."""
        return shares_of(self.config.efficiency)

    @cached_property
    def config_json(self) -> dict[str, Any]:
        """Its config as JSON, defaults filled in."""
        return self.config.model_dump()

    @cached_property
    def axes(self) -> tuple[Axis | None, tuple[Axis, ...]]:
        """The axis before the variants, if there is one, and those after them."""
        return axes_of(self.config, self.op)

    @property
    def lead(self) -> Axis | None:
        """The axis before the variants, if there is one."""
        return self.axes[0]

    @property
    def inner(self) -> tuple[Axis, ...]:
        """The axes after the variants."""
        return self.axes[1]

    @cached_property
    def requested(self) -> Requested:
        """What it asks of every chip."""
        config = self.config
        return Requested(
            config.chips,
            config.memory,
            config.network,
            self.unit,
            {name: (each.compute,) for name, each in self.combinations.items()},
            self.chips,
            config.efficiency,
            self.calibrations,
            config.calibration or (),
        )

    @cached_property
    def operated(self) -> Operated:
        """What all its cases have in common."""
        return Operated(
            self.op,
            self.tile,
            self.flops,
            self.unit,
            self.combinations,
            self.shardings,
            list(map(parse_axes, self.config.shards)),
            self.has_axes,
        )

    @cached_property
    def supported(
        self,
    ) -> tuple[tuple[OperationBlock, ...], tuple[SkippedOperations, ...]]:
        """The cases that chips support, a block for each place, and the rows that are skipped."""
        self.requested.check_chips()
        found = operation_blocks(self.requested, self.operated, self.leading, self.inner)
        blocks, skipped = found
        check_skipped(
            skipped,
            len(blocks),
            self.config.on_unsupported,
            "is left with no rows: no chip can do any of it.",
            "choose other chips, dtypes or levels",
        )
        return found

    @property
    def blocks(self) -> tuple[OperationBlock, ...]:
        """The cases that chips support, a block for each chip, memory level and route."""
        return self.supported[0]

    @cached_property
    def cases(self) -> tuple[OperationCase, ...]:
        """The cases of all blocks."""
        return tuple(case for block in self.blocks for case in block.cases)

    @property
    def skipped(self) -> tuple[SkippedOperations, ...]:
        """The rows that a chip does not support."""
        return self.supported[1]

    @property
    def unit(self) -> Unit:
        """The compute unit that runs it."""
        return self.config.unit or self.op.unit

    @property
    def flops(self) -> Flops:
        """How FLOPs are counted."""
        return self.config.flops or self.op.flops

    @property
    def solved(self) -> tuple[str, ...]:
        """The axes that thresholds are solved for: dimensions, shards, and rates."""
        wanted = self.config.thresholds
        return self.op.dims[:1] if wanted is None else tuple(wanted)

    @property
    def shares(self) -> list[Fraction]:
        """The shares of the attainable peak that thresholds are solved for [1]."""
        return list(map(exact, self.config.shares))

    @property
    def first_solved(self) -> str | None:
        """The first dimension that thresholds are solved for; None without one."""
        return next((dim for dim in self.op.dims if dim in self.solved), None)

    @cached_property
    def points(self) -> int:
        """Rows of one variant on one chip [1]."""
        return math.prod(axis.count for axis in (*self.leading, *self.inner))

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """The numbers of chips N that it splits over, each once, in order [1]."""
        return tuple(self.forms)

    @cached_property
    def forms(self) -> dict[int, str]:
        """The first form of every number of chips, such as 4x4 of 16."""
        forms: dict[int, str] = {}
        for form in self.config.shards:
            forms.setdefault(math.prod(parse_axes(form)), str(form))
        return forms

    @cached_property
    def has_axes(self) -> bool:
        """Whether any split is over several axes: the table then has the column `axes`."""
        return any(len(parse_axes(form)) > 1 for form in self.config.shards)

    @cached_property
    def has_levels(self) -> bool:
        """Whether any route has two levels: the table then has the bytes of each."""
        return any(len(names) > 1 for names in self.config.network or [])

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns of its rows, in order."""
        return table_columns(self.op.dims, axes=self.has_axes, levels=self.has_levels)

    @property
    def stored(self) -> list[Column]:
        """The columns of its table: keys always, metrics as its config chooses."""
        return chosen(self.columns, METRICS, self.config.columns)

    @cached_property
    def rows(self) -> int:
        """Rows of the whole table [1]."""
        return sum(block.rows for block in self.blocks)

    def rows_by_chip(self) -> dict[str, int]:
        """Rows of each chip that has any, in order [1]."""
        rows: dict[str, int] = {}
        for block in self.blocks:
            rows[block.chip] = rows.get(block.chip, 0) + block.rows
        return rows

    def solutions(self) -> int:
        """Rows of all its thresholds, at most [1]."""
        splits = sum(scheme.split is not None for scheme in self.shardings.values())
        sizes = (*self.leading, *self.inner)
        count = 0
        for axis in self.solved:
            if axis == SHARDS:
                count += len(self.blocks) * len(self.combinations) * splits * self.points
            else:
                count += len(self.cases) * math.prod(
                    size.count for size in sizes if set(size.columns) != {axis}
                )
        return count * len(self.config.shares)

    @property
    def leading(self) -> tuple[Axis, ...]:
        """The axis before the variants, if there is one."""
        return (self.lead,) if self.lead else ()

    def sizes_without(self, dim: str) -> tuple[Axis, ...]:
        """The axes of sizes without a dimension that is solved for."""
        left = (axis.without(dim) for axis in (*self.leading, *self.inner))
        return tuple(axis for axis in left if axis)

    @cached_property
    def size_columns(self) -> dict[str, Sequence[Any]]:
        """The values of each column of its axes."""
        return {
            name: values
            for axis in (*self.leading, *self.inner)
            for name, values in axis.columns.items()
        }


def _shardings(config: SweepConfig, op: Operation) -> dict[str, Sharding]:
    """The shardings of a sweep by name."""
    by_name: dict[str, Sharding] = {}
    with Mistakes() as mistakes:
        for index, form in enumerate(config.sharding):
            with mistakes.at(f"sharding[{index}]"):
                scheme = sharding(form if isinstance(form, str) else form.model_dump(), op)
                if scheme.name in by_name:
                    raise RooflinesError(
                        "",
                        f"is {quote(scheme.name)}, which is listed twice",
                        "name every sharding once",
                    )
                by_name[scheme.name] = scheme
    several = [n for n in config.shards if n != 1]
    if several and all(scheme.split is None for scheme in by_name.values()):
        raise RooflinesError(
            SHARDS,
            f"asks for {several[0]} chips, but nothing is split",
            "give the sweep a `sharding`, such as batch or column",
        )
    if 1 not in config.shards and any(scheme.split is None for scheme in by_name.values()):
        raise RooflinesError(
            SHARDS,
            "lacks 1, which sharding none needs",
            "add 1 to `shards`, or take none out of `sharding`",
        )
    return by_name
