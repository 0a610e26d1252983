"""Sweeps of one operation, and their cases: dtypes and a sharding over chips, at a place."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import Mistakes, RooflinesError, at_path, quote
from rooflines.basics.numbers import exact, whole
from rooflines.basics.text import counted
from rooflines.dictionary.columns import AXES, Column, columns_of
from rooflines.hardware.dtype_catalogue import StoredDtypes, resolve_combinations
from rooflines.sweep.axes import Axis, axes_of
from rooflines.sweep.cases import BaseSweep, Block, Case, Skipped, skipped_rows
from rooflines.theory.costs import Workload
from rooflines.theory.kernel import Kernel, operation_kernel, operation_transfers
from rooflines.theory.network import Route, axes_text, parse_axes
from rooflines.theory.operation import Operation, parse_operation
from rooflines.theory.sharding import SHARDS, Sharding, parse_sharding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction

    from rooflines.config.schema import SweepConfig
    from rooflines.sweep.cases import Axes
    from rooflines.theory.operation import Flops, Unit


@dataclass(frozen=True, eq=False)
class OperationCase(Case):
    """An operation with its dtypes and sharding at a place.

    Attributes:
        sweep: Its sweep.
        dtypes, sharding: The dtype combination and the sharding by name.
        axes: The chips along each axis [1].
    """

    sweep: Sweep
    dtypes: str
    sharding: str
    axes: Axes

    @property
    def shards(self) -> int:
        """N, the chips [1]."""
        return math.prod(self.axes)

    @property
    def combination(self) -> StoredDtypes:
        """The dtype combination."""
        return self.sweep.combinations[self.dtypes]

    @property
    def scheme(self) -> Sharding:
        """What is split over the chips."""
        return self.sweep.shardings[self.sharding]

    @cached_property
    def route(self) -> Route | None:
        """The interconnects between the chips; None for one chip."""
        links, kinds = self.place.links, dict(self.scheme.transfers).values()
        if not links or self.shards == 1:
            return None
        return Route(links, self.place.placed(self.axes, next(iter(kinds), "all-gather")))

    @property
    def variant(self) -> tuple[str, str, Axes]:
        """What it is but for its place."""
        return self.dtypes, self.sharding, self.axes

    @cached_property
    def _own(self) -> tuple[Workload, Kernel]:
        """The workload and kernel, which chips share that send as much of what is transferred."""
        transfers = self.scheme.transfers
        sent = (
            self.route.bytes_per_payload_byte(transfers[0][1]) if self.route and transfers else ()
        )
        known, key = self.sweep.kernels, (*self.variant, sent)
        if key not in known:
            sweep, of = self.sweep, self.combination
            workload = Workload(
                sweep.op, of.bits, self.scheme, self.shards, sent, sweep.tile, sweep.flops
            )
            known[key] = workload, operation_kernel(workload, of.compute)
        return known[key]

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
    def peak(self) -> Fraction:
        """The nominal peak in its compute dtype [FLOP/s]."""
        return self.machine.peaks[self.combination.compute]

    @property
    def keys(self) -> Mapping[str, str | int | None]:
        """Its values in the key columns of tables."""
        own: dict[str, str | int | None] = {
            "operation": self.sweep.op.name,
            "chip": self.chip,
            "unit": self.sweep.unit,
            "memory": self.memory,
            "network": self.network,
            "dtypes": self.dtypes,
            "sharding": self.sharding,
        }
        if self.sweep.has_axes:
            own[AXES] = axes_text(self.axes)
        if not self.sweep.config.shapes:
            own["shape"] = None
        return {**own, SHARDS: self.shards}


@dataclass(frozen=True, repr=False)
class Sweep(BaseSweep[OperationCase]):
    """A sweep of one operation over sizes, dtypes, chips and splits.

    Check it with `checks.checked_sweep`. The order of its rows is fixed, slowest first: chip,
    memory, the operation's first dimension, dtypes, sharding, shards, shape, the other dimensions.
    """

    config: SweepConfig

    ALTERNATIVES = "chips, dtypes or levels"

    def __repr__(self) -> str:
        """Its name, operation and extent, in one line."""
        parts = [
            counted(len(self.rows_by_chip()), "chip"),
            counted(len(self.combinations), "dtype combination"),
        ]
        return (
            f"<Sweep {self.name}: {self.op.name}, {', '.join(parts)}, {counted(self.rows, 'row')}>"
        )

    @cached_property
    def op(self) -> Operation:
        """Its operation."""
        with at_path("operation"):
            return parse_operation(self.config.operation)

    @cached_property
    def combinations(self) -> dict[str, StoredDtypes]:
        """Its dtype combinations by name."""
        with at_path("dtypes"):
            return resolve_combinations(self.config.dtypes, self.dtypes)

    @cached_property
    def shardings(self) -> dict[str, Sharding]:
        """Its shardings by name."""
        return _shardings(self.config, self.op)

    @cached_property
    def tile(self) -> dict[str, int]:
        """Elements per tile of the tiled dimensions."""
        tile = {}
        with at_path("tile"), Mistakes() as mistakes:
            for dim, value in (self.config.tile or {}).items():
                with mistakes.at(dim):
                    tile[dim] = whole(value)
        return tile

    @cached_property
    def axes(self) -> tuple[tuple[Axis, ...], tuple[Axis, ...]]:
        """The axes of sizes before the cases, and those after them."""
        return axes_of(self.config, self.op)

    @property
    def size_axes(self) -> tuple[Axis, ...]:
        """All axes of sizes, slowest first."""
        before, after = self.axes
        return (*before, *after)

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
        """Rows of one case [1]."""
        return math.prod(axis.count for axis in self.size_axes)

    @cached_property
    def computes(self) -> dict[str, tuple[str, ...]]:
        """The compute dtype of every dtype combination."""
        return {name: (each.compute,) for name, each in self.combinations.items()}

    @cached_property
    def splits(self) -> list[Axes]:
        """The chips along each axis of every split, in the order of its config [1]."""
        return list(map(parse_axes, self.config.shards))

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """The numbers of chips N that it splits over, each once, in order [1]."""
        return tuple(dict.fromkeys(map(math.prod, self.splits)))

    @cached_property
    def has_axes(self) -> bool:
        """Whether any split is over several axes: the table then has the column `axes`."""
        return any(len(axes) > 1 for axes in self.splits)

    @cached_property
    def has_levels(self) -> bool:
        """Whether any route has two levels: the table then has the bytes of each."""
        return any(len(names) > 1 for names in self.config.network or [])

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns of its rows, in order."""
        return columns_of("table", self.op.dims, axes=self.has_axes, levels=self.has_levels)

    def rows_by_chip(self) -> dict[str, int]:
        """Rows of each chip that has any, in order [1]."""
        rows: dict[str, int] = {}
        for block in self.blocks:
            rows[block.place.chip] = rows.get(block.place.chip, 0) + block.rows
        return rows

    @cached_property
    def dtypes_by_chip(self) -> dict[str, set[str]]:
        """The dtypes of the rows of each chip that has any, in order."""
        found: dict[str, set[str]] = {}
        for case in self.cases:
            found.setdefault(case.chip, set()).add(case.dtypes)
        return found

    def max_thresholds(self) -> int:
        """Rows of all its thresholds, at most [1]."""
        splits = sum(scheme.split is not None for scheme in self.shardings.values())
        count = 0
        for axis in self.solved:
            if axis == SHARDS:
                count += len(self.blocks) * len(self.combinations) * splits * self.points
            else:
                count += len(self.cases) * math.prod(
                    size.count for size in self.size_axes if set(size.columns) != {axis}
                )
        return count * len(self.config.shares)

    def sizes_without(self, dim: str) -> tuple[Axis, ...]:
        """The axes of sizes without a dimension that is solved for."""
        left = (axis.without(dim) for axis in self.size_axes)
        return tuple(axis for axis in left if axis)

    @cached_property
    def size_columns(self) -> dict[str, Sequence[Any]]:
        """The values of each column of its axes."""
        return {name: values for axis in self.size_axes for name, values in axis.columns.items()}

    @cached_property
    def kernels(self) -> dict[object, tuple[Workload, Kernel]]:
        """The workloads and kernels of its cases, by what they depend on."""
        return {}

    def find_cases(self) -> tuple[tuple[Block[OperationCase], ...], tuple[Skipped, ...]]:
        """The cases that chips support, a block for each place, and the rows that are skipped."""
        before, after = self.axes
        asked = {
            (name, axes): (axes,)
            for name, scheme in self.shardings.items()
            for axes in (self.splits if scheme.split else [(1,)])
        }
        rows, blocks = Counter[Skipped](), []
        for at in self.supported_at(asked, _keys):
            for skipped, variants in at.skipped.items():
                rows[skipped] += self.points * variants
            cases = [
                OperationCase(at.place, self, dtypes, *split)
                for dtypes in at.dtypes
                for split in at.splits
            ]
            if cases:
                blocks.append(Block(before, tuple(cases), after))
        return tuple(blocks), skipped_rows(rows)


def _shardings(config: SweepConfig, op: Operation) -> dict[str, Sharding]:
    """The shardings of a sweep by name."""
    by_name: dict[str, Sharding] = {}
    with Mistakes() as mistakes:
        for index, form in enumerate(config.sharding):
            with mistakes.at(f"sharding[{index}]"):
                scheme = parse_sharding(form if isinstance(form, str) else form.model_dump(), op)
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


def _keys(split: tuple[str, Axes]) -> dict[str, str | int]:
    """A split in rows that are skipped."""
    sharding, axes = split
    return {"sharding": sharding, "shards": math.prod(axes), AXES: axes_text(axes)}
