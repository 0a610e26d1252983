"""Sweeps over one operation, and their cases: dtypes and a sharding over chips, at a place."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import Mistakes, RooflinesError, at_path, quote
from rooflines.basics.numbers import exact, whole
from rooflines.basics.text import counted
from rooflines.dictionary.columns import AXES, Column, columns_of
from rooflines.hardware.dtype_catalogue import StoredDtypes, resolve_combinations
from rooflines.kinds.kind_table import BY_NAME
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

MAX_KERNELS = 4096
"""Kernels of operations that are remembered: they have the same works on most chips [1]."""


@dataclass(frozen=True, eq=False)
class OperationCase(Case):
    """Case: an operation with dtypes and a sharding, at a place.

    Attributes:
        sweep: The sweep.
        dtypes, sharding: Names of the dtype combination and sharding.
        axes: Chips along each axis [1].
    """

    sweep: Sweep
    dtypes: str
    sharding: str
    axes: Axes

    @property
    def shards(self) -> int:
        """Chips N [1]."""
        return math.prod(self.axes)

    @cached_property
    def combination(self) -> StoredDtypes:
        """Dtype combination."""
        return self.sweep.combinations[self.dtypes]

    @property
    def scheme(self) -> Sharding:
        """Sharding over the chips."""
        return self.sweep.shardings[self.sharding]

    @cached_property
    def route(self) -> Route | None:
        """Route over the interconnects between the chips; None for one chip."""
        links, kinds = self.place.links, dict(self.scheme.transfers).values()
        if not links or self.shards == 1:
            return None
        return Route(links, self.place.resolve_axes(self.axes, next(iter(kinds), "all-gather")))

    @property
    def computes(self) -> tuple[str, ...]:
        """Compute dtype."""
        return (self.combination.compute,)

    @cached_property
    def workload(self) -> Workload:
        """Operation with dtypes, split and tiles."""
        return self._workload_and_kernel[0]

    @cached_property
    def _workload_and_kernel(self) -> tuple[Workload, Kernel]:
        sweep, transfers, stored = self.sweep, self.scheme.transfers, self.combination
        sent = (
            self.route.bytes_per_payload_byte(transfers[0][1]) if self.route and transfers else ()
        )
        bits, tile = tuple(stored.bits.items()), tuple(sweep.tile.items())
        return _workload_and_kernel(
            sweep.op, bits, stored.compute, self.scheme, self.shards, sent, tile, sweep.flops
        )

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        """Kernels: a single one."""
        workload, kernel = self._workload_and_kernel
        if self.route is None:
            return (kernel,)
        return (replace(kernel, transfers=operation_transfers(workload, self.route)),)

    @cached_property
    def peak(self) -> Fraction:
        """Nominal peak in the compute dtype [FLOP/s]."""
        return self.machine.peaks[self.combination.compute]

    @cached_property
    def keys(self) -> Mapping[str, str | int | None]:
        """Values in tables' key columns."""
        keys: dict[str, str | int | None] = {
            "operation": self.sweep.op.name,
            "chip": self.chip,
            "unit": self.sweep.unit,
            "memory": self.memory,
            "network": self.network,
            "dtypes": self.dtypes,
            "sharding": self.sharding,
        }
        if self.sweep.has_axes:
            keys[AXES] = axes_text(self.axes)
        if not self.sweep.config.shapes:
            keys["shape"] = None
        return {**keys, SHARDS: self.shards}


@lru_cache(MAX_KERNELS)
def _workload_and_kernel(  # noqa: PLR0913, PLR0917, all that decides them
    op: Operation,
    bits: tuple[tuple[str, Fraction], ...],
    compute: str,
    sharding: Sharding,
    shards: int,
    sent: tuple[Fraction, ...],
    tile: tuple[tuple[str, int], ...],
    flops: Flops,
) -> tuple[Workload, Kernel]:
    """Workload and kernel without transfers, for all chips and parts that send the same bytes."""
    workload = Workload(op, dict(bits), sharding, shards, sent, dict(tile), flops)
    return workload, operation_kernel(workload, compute)


@dataclass(frozen=True, repr=False)
class Sweep(BaseSweep[OperationCase]):
    """Sweep over one operation: sizes, dtypes, chips and splits.

    Check it with `checks.checked_sweep`. The order of rows is fixed, slowest first: chip,
    memory, the operation's first dimension, dtypes, sharding, shards, shape, the other dimensions.
    """

    config: SweepConfig

    ALTERNATIVES = "chips, dtypes or levels"

    def __repr__(self) -> str:
        """Name, operation and extent, in one line."""
        parts = [
            counted(len(self.rows_by_chip()), "chip"),
            counted(len(self.combinations), "dtype combination"),
        ]
        return (
            f"<Sweep {self.name}: {self.op.name}, {', '.join(parts)}, {counted(self.rows, 'row')}>"
        )

    @cached_property
    def op(self) -> Operation:
        """Operation."""
        with at_path("operation"):
            return parse_operation(self.config.operation, BY_NAME)

    @cached_property
    def combinations(self) -> dict[str, StoredDtypes]:
        """Dtype combinations by name."""
        with at_path("dtypes"):
            return resolve_combinations(self.config.dtypes, self.dtypes)

    @cached_property
    def shardings(self) -> dict[str, Sharding]:
        """Shardings by name."""
        return _shardings(self.config, self.op)

    @cached_property
    def tile(self) -> dict[str, int]:
        """Elements per tile, by tiled dimension [1]."""
        tile = {}
        with at_path("tile"), Mistakes() as mistakes:
            for dim, value in (self.config.tile or {}).items():
                with mistakes.at(dim):
                    tile[dim] = whole(value)
        return tile

    @cached_property
    def axes(self) -> tuple[tuple[Axis, ...], tuple[Axis, ...]]:
        """Size axes before the cases, and after them."""
        return axes_of(self.config, self.op)

    @cached_property
    def size_axes(self) -> tuple[Axis, ...]:
        """All size axes, slowest first."""
        before, after = self.axes
        return (*before, *after)

    @property
    def unit(self) -> Unit:
        """Compute unit."""
        return self.config.unit or self.op.unit

    @property
    def flops(self) -> Flops:
        """Convention for counting FLOPs, `exact` or `leading`."""
        return self.config.flops or self.op.flops

    @cached_property
    def solved(self) -> tuple[str, ...]:
        """Threshold axes: dimensions, shards, and rates."""
        thresholds = self.config.thresholds
        return self.op.dims[:1] if thresholds is None else tuple(thresholds)

    @cached_property
    def shares(self) -> list[Fraction]:
        """Shares of the attainable peak, for thresholds [1]."""
        return list(map(exact, self.config.shares))

    @property
    def first_solved(self) -> str | None:
        """First dimension among the threshold axes; None without one."""
        return next((dim for dim in self.op.dims if dim in self.solved), None)

    @cached_property
    def points(self) -> int:
        """Number of rows per case [1]."""
        return math.prod(axis.count for axis in self.size_axes)

    @cached_property
    def computes(self) -> dict[str, tuple[str, ...]]:
        """Compute dtype, by name of the dtype combination."""
        return {name: (combination.compute,) for name, combination in self.combinations.items()}

    @cached_property
    def splits(self) -> list[Axes]:
        """Chips along each axis, split by split, in the config's order [1]."""
        return list(map(parse_axes, self.config.shards))

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Chip counts N, each once, in order [1]."""
        return tuple(dict.fromkeys(map(math.prod, self.splits)))

    @cached_property
    def has_axes(self) -> bool:
        """True if any split is over several axes: the table then has the column `axes`."""
        return any(len(axes) > 1 for axes in self.splits)

    @cached_property
    def has_levels(self) -> bool:
        """True if any route has two levels: the table then has the bytes of each."""
        return any(len(names) > 1 for names in self.config.network or [])

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Columns in order."""
        has = {"axes": self.has_axes, "levels": self.has_levels}
        return columns_of("table", self.op.dims, **has, measured=self.config.measured is not None)

    def rows_by_chip(self) -> dict[str, int]:
        """Count rows by chip, for chips with rows, in order [1]."""
        rows: dict[str, int] = {}
        for block in self.blocks:
            rows[block.place.chip] = rows.get(block.place.chip, 0) + block.rows
        return rows

    @cached_property
    def dtypes_by_chip(self) -> dict[str, set[str]]:
        """Dtypes in the rows by chip, for chips with rows, in order."""
        dtypes: dict[str, set[str]] = {}
        for case in self.cases:
            dtypes.setdefault(case.chip, set()).add(case.dtypes)
        return dtypes

    def max_thresholds(self) -> int:
        """Count threshold rows, at most [1]."""
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
        """Size axes without a dimension that is solved for."""
        axes = []
        for axis in self.size_axes:
            columns = {name: values for name, values in axis.columns.items() if name != dim}
            if columns:
                axes.append(Axis(columns))
        return tuple(axes)

    @cached_property
    def size_columns(self) -> dict[str, Sequence[Any]]:
        """Values by column, over all axes."""
        return {name: values for axis in self.size_axes for name, values in axis.columns.items()}

    def find_cases(self) -> tuple[tuple[Block[OperationCase], ...], tuple[Skipped, ...]]:
        """Find supported cases, in a block for each place, and skipped rows."""
        before, after = self.axes
        splits = {
            (name, axes): (axes,)
            for name, scheme in self.shardings.items()
            for axes in (self.splits if scheme.split else [(1,)])
        }
        rows, blocks = Counter[Skipped](), []
        for supported in self.supported_at(splits, _split_keys):
            for skipped, variants in supported.skipped.items():
                rows[skipped] += self.points * variants
            cases = [
                OperationCase(supported.place, self, dtypes, *split)
                for dtypes in supported.dtypes
                for split in supported.splits
            ]
            if cases:
                blocks.append(Block(before, tuple(cases), after))
        return tuple(blocks), skipped_rows(rows)


def _shardings(config: SweepConfig, op: Operation) -> dict[str, Sharding]:
    """Shardings by name."""
    by_name: dict[str, Sharding] = {}
    with Mistakes() as mistakes:
        for index, form in enumerate(config.sharding):
            with mistakes.at("sharding", index):
                scheme = parse_sharding(form if isinstance(form, str) else form.model_dump(), op)
                if scheme.name in by_name:
                    raise RooflinesError(
                        "",
                        f"is {quote(scheme.name)}, which is listed twice",
                        "name every sharding once",
                        value=scheme.name,
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


def _split_keys(split: tuple[str, Axes]) -> dict[str, str | int]:
    """A split's keys in skipped rows."""
    sharding, axes = split
    return {"sharding": sharding, "shards": math.prod(axes), AXES: axes_text(axes)}
