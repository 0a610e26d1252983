"""A sweep understood: its operation, its axes, and what each chip can and cannot serve of it.

Everything here is read from plain data (the sweep's config, catalogue entries, dtypes), so that a job which is handed that data
rebuilds exactly the sweep that was planned.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from rooflines.basics.errors import Mistakes, RooflinesError, close_to, placed, quote
from rooflines.basics.numbers import LARGEST_COUNT, exact, whole
from rooflines.basics.text import counted
from rooflines.catalogue.dtypes import Combination, combinations_of
from rooflines.model.costs import Workload
from rooflines.model.operation import Operation, operation
from rooflines.model.resources import JSON, RESOURCES, Calibration, Target
from rooflines.model.sharding import SHARDS, Sharding, chips_joined, sharding
from rooflines.sweep.axes import MOST_PARTS, Axis, axes_of, sizes_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from fractions import Fraction

__all__ = ["ChipRows", "Skipped", "Sweep", "Variant"]

LARGEST_PRODUCT = {"float64": 10**100, "float32": 10**24}
"""The largest product of a sweep's sizes, or tiles, and its number of chips [1], by how metrics are stored. With the rates, times and bits
that entries may have, works, times and thresholds of Float64 then keep far from its ends, 2.2e-308 and 1.8e308."""

FLOAT32_RATES = (1, 10**20)
LONGEST_FLOAT32_WAIT = 10**36
"""Rates within these [FLOP/s or byte/s], and hops of at most this multiple of the smallest t_math [1], keep metrics far from the ends of
Float32, 1.2e-38 and 3.4e38."""


@dataclass(frozen=True)
class Variant:
    """One (dtypes, sharding, shards) of a sweep; what its work is, but for the sizes."""

    dtypes: str
    sharding: str
    shards: int


@dataclass(frozen=True)
class ChipRows:
    """The part of a sweep that one chip serves from one memory level: a full product of axes."""

    chip: str
    memory: str
    network: str | None
    variants: tuple[Variant, ...]


@dataclass(frozen=True)
class Skipped:
    """Rows that a sweep asked for and no chip can do; None in a field means: whatever its value."""

    chip: str
    memory: str
    rows: int
    reason: str
    network: str | None = None
    dtypes: str | None = None
    sharding: str | None = None
    shards: int | None = None


@dataclass(frozen=True, repr=False)
class Sweep:
    """A sweep of one operation over sizes, dtypes, chips and splits.

    Build it with `Sweep.of`. Its rows stand in a fixed order, slowest first: chip, memory, the operation's first dimension,
    dtypes, sharding, shards, shape, the other dimensions.
    """

    name: str
    config: JSON
    chips: JSON
    dtypes: JSON

    def __repr__(self) -> str:
        """Its name, operation and extent, in one line."""
        parts = [
            counted(len({chip_rows.chip for chip_rows in self.by_chip}), "chip"),
            counted(len(self.combinations), "dtype combination"),
        ]
        return (
            f"<Sweep {self.name}: {self.op.name}, {', '.join(parts)}, {counted(self.rows, 'row')}>"
        )

    @classmethod
    def of(cls, name: str, config: JSON, chips: JSON, dtypes: JSON) -> Sweep:
        """The sweep that a config describes.

        Args:
            name: Its name.
            config: Its keys, defaults filled in.
            chips: Catalogue entries by id, variants resolved.
            dtypes: `formats` and `combinations` as in the dtype catalogue.

        Raises:
            RooflinesError: What is asked for makes no sense; key paths are relative to the sweep.
        """
        sweep = cls(name, config, chips, dtypes)
        checks = (
            cls._check_chips,
            cls._check_sizes,
            cls._check_tile,
            cls._check_spans,
            cls._check_thresholds,
            cls._check_exact_flops,
        )
        with Mistakes() as mistakes:
            for part in ("op", "combinations", "tile", "shardings", "axes", "served"):
                with mistakes.at():
                    getattr(sweep, part)
            for check in (*checks, cls._check_parts, cls._check_floats):
                with mistakes.at():
                    check(sweep)
        return sweep

    @cached_property
    def op(self) -> Operation:
        """What it computes."""
        with placed("operation"):
            return operation(self.config["operation"])

    @cached_property
    def combinations(self) -> dict[str, Combination]:
        """Its dtype combinations by name."""
        with placed("dtypes"):
            return combinations_of(self.config["dtypes"], self.dtypes)

    @cached_property
    def shardings(self) -> dict[str, Sharding]:
        """Its shardings by name."""
        return _shardings(self.config, self.op)

    @cached_property
    def tile(self) -> dict[str, int]:
        """Elements per tile of the tiled dimensions."""
        tile = {}
        with placed("tile"), Mistakes() as mistakes:
            for dim, value in (self.config["tile"] or {}).items():
                with mistakes.at(dim):
                    tile[dim] = whole(value)
        return tile

    @cached_property
    def efficiency(self) -> dict[str, Fraction]:
        """Share of the nominal rate by resource, where the sweep sets it."""
        return {
            key: exact(value)
            for key, value in (self.config["efficiency"] or {}).items()
            if value is not None
        }

    @cached_property
    def axes(self) -> tuple[Axis | None, tuple[Axis, ...]]:
        """The axis before the scenarios, if there is one, and those after them."""
        return axes_of(self.config, self.op)

    @property
    def lead(self) -> Axis | None:
        """The axis before the scenarios, if there is one."""
        return self.axes[0]

    @property
    def inner(self) -> tuple[Axis, ...]:
        """The axes after the scenarios."""
        return self.axes[1]

    @property
    def by_chip(self) -> tuple[ChipRows, ...]:
        """What each chip can do of the sweep."""
        return self.served[0]

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """What it asks for and no chip can do."""
        return self.served[1]

    @property
    def unit(self) -> str:
        """The compute unit that runs it."""
        return str(self.config["unit"] or self.op.unit)

    @property
    def flops(self) -> str:
        """How FLOPs are counted, `leading` or `exact`."""
        return str(self.config["flops"] or self.op.flops)

    @property
    def solved(self) -> tuple[str, ...]:
        """What thresholds are solved for: dimensions, and shards."""
        wanted = self.config["thresholds"]
        return self.op.dims[:1] if wanted is None else tuple(wanted)

    @cached_property
    def points(self) -> int:
        """Rows of one scenario on one chip [1]."""
        return math.prod(axis.count for axis in (*self.leading, *self.inner))

    def rows_of(self, chip_rows: ChipRows) -> int:
        """Rows of a block [1]."""
        return self.points * len(chip_rows.variants)

    @cached_property
    def rows(self) -> int:
        """Rows of the whole table [1]."""
        return sum(self.rows_of(chip_rows) for chip_rows in self.by_chip)

    def rows_by_chip(self) -> dict[str, int]:
        """Rows of each chip that has any, in order [1]."""
        rows: dict[str, int] = {}
        for chip_rows in self.by_chip:
            rows[chip_rows.chip] = rows.get(chip_rows.chip, 0) + self.rows_of(chip_rows)
        return rows

    def solutions(self) -> int:
        """Rows of all its thresholds, at most [1]."""
        splits = sum(scheme.split is not None for scheme in self.shardings.values())
        sizes = (*self.leading, *self.inner)
        found = 0
        for axis in self.solved:
            if axis == SHARDS:
                found += len(self.by_chip) * len(self.combinations) * splits * self.points
            else:
                variants = sum(len(chip_rows.variants) for chip_rows in self.by_chip)
                found += variants * math.prod(
                    size.count for size in sizes if set(size.columns) != {axis}
                )
        return found

    def case(self, variant: Variant) -> Workload:
        """What decides the work of a scenario's rows; every chip's scenarios share it."""
        if variant not in self._cases:
            bits = self.combinations[variant.dtypes].bits
            scheme = self.shardings[variant.sharding]
            self._cases[variant] = Workload(
                self.op, bits, scheme, variant.shards, self.tile, self.flops
            )
        return self._cases[variant]

    @cached_property
    def _cases(self) -> dict[Variant, Workload]:
        return {}

    def target(self, chip_rows: ChipRows, variant: Variant) -> Target:
        """What serves a scenario's rows on a chip."""
        chip, compute = self.chips[chip_rows.chip], self.combinations[variant.dtypes].compute
        own = chip.get("efficiency") or {}
        efficiency = {
            r.name: self.efficiency.get(r.name, exact(own.get(r.name) or 1)) for r in RESOURCES
        }
        return Target(
            chip,
            self.unit,
            compute,
            chip_rows.memory,
            chip_rows.network,
            self.shardings[variant.sharding],
            variant.shards,
            efficiency,
        )

    def calibration(self, target: Target) -> Calibration | None:
        """The chip's calibration for the compute dtype; None where it has none."""
        fitted = (target.chip.get("calibration") or {}).get(target.compute)
        if fitted is None:
            return None
        return Calibration(
            {r.name: exact(fitted.get(r.name) or 1) for r in RESOURCES},
            exact(fitted.get("overhead_s") or 0),
        )

    @property
    def leading(self) -> tuple[Axis, ...]:
        """The axis before the scenarios, if there is one."""
        return (self.lead,) if self.lead else ()

    def sizes_without(self, dim: str) -> tuple[Axis, ...]:
        """The axes of sizes that are left when one dimension is solved for."""
        left = (axis.without(dim) for axis in (*self.leading, *self.inner))
        return tuple(axis for axis in left if axis)

    def _check_chips(self) -> None:
        fix = "use one of these, or describe the chip under `chips:` with a source"
        with Mistakes() as mistakes:
            for index, chip in enumerate(self.config["chips"]):
                with mistakes.at(f"chips[{index}]"):
                    if chip not in self.chips:
                        problem = f"is {quote(chip)}, which is no chip in the catalogue"
                        raise RooflinesError("", problem, fix, close=close_to(chip, self.chips))

    def _check_sizes(self) -> None:
        """Sizes are checked also where the operation is refused, and its dimensions are not known."""
        grid = self.config["grid"] or {}
        dims = tuple(grid)
        with suppress(RooflinesError):
            dims = self.op.dims
        with placed("grid"):
            sizes_of({dim: grid[dim] for dim in dims if dim in grid})

    def _check_tile(self) -> None:
        op = self.op
        with placed("tile"), Mistakes() as mistakes:
            for dim in self.config["tile"] or {}:
                with mistakes.at(dim):
                    if dim not in op.dims:
                        problem = f"is the tile of a dimension that {op.name} does not have"
                        raise RooflinesError(
                            "",
                            problem,
                            f"use dimensions of {op.name}: {', '.join(op.dims)}",
                            close=close_to(dim, op.dims),
                        )

    def _check_thresholds(self) -> None:
        known = (*self.op.dims, SHARDS)
        with Mistakes() as mistakes:
            for index, axis in enumerate(self.solved):
                where = f"thresholds[{index}]"
                with mistakes.at():
                    if axis == SHARDS:
                        self._check_solved_shards(where)
                    elif axis not in known:
                        fix = f"solve for one of {', '.join(known)}, or for nothing with []"
                        problem = f"is {quote(axis)}, which is no dimension of {self.op.name}"
                        raise RooflinesError(where, problem, fix, close=close_to(axis, known))

    def _check_solved_shards(self, where: str) -> None:
        split = {s.split for s in self.shardings.values()}
        if split == {None}:
            raise RooflinesError(
                where,
                "asks for shards, but nothing is split",
                "give the sweep a `sharding`, or leave shards out",
            )
        if split & set(self.tile):
            fix = f"leave {', '.join(sorted(str(d) for d in split & set(self.tile)))} out of `tile`, or shards out of `thresholds`"
            raise RooflinesError(
                where,
                "asks for shards of a dimension that is also tiled, which has no closed form",
                fix,
            )

    def _check_parts(self) -> None:
        """Refuse what no folder can hold."""
        most, rows = self.config["rows_per_part"], self.rows
        if rows > MOST_PARTS * most:
            problem = f"makes {rows:,} rows, in more than {MOST_PARTS:,} parts of {most:,}"
            raise RooflinesError(
                "rows_per_part", problem, "choose a larger number, or fewer sizes, chips or dtypes"
            )

    def _check_floats(self) -> None:
        """Refuse sizes and rates whose metrics could leave the range of their floats, by far, so that none becomes 0 or infinite."""
        floats = self.config["floats"]
        columns = {
            name: values
            for axis in (*self.leading, *self.inner)
            for name, values in axis.columns.items()
        }
        product = math.prod(
            max(self.tile.get(dim, 1), *columns[dim]) for dim in self.op.dims
        ) * max(self.config[SHARDS])
        reached = f"reach sizes whose product is 1e{math.log10(product):.0f}"
        if product > LARGEST_PRODUCT["float64"]:
            problem = f"must not {reached}: beyond 1e{math.log10(LARGEST_PRODUCT['float64']):.0f} results could leave Float64"
            raise RooflinesError(
                "grid" if self.config["grid"] else "shapes",
                problem,
                "choose smaller sizes, or fewer dimensions",
            )
        if floats == "float64":
            return
        fix = "leave `floats` out, which stores float64"
        if product > LARGEST_PRODUCT[floats]:
            raise RooflinesError("floats", f"is float32, which may not {reached}", fix)
        least, most = FLOAT32_RATES
        for chip_rows, variant in (
            (each, variant) for each in self.by_chip for variant in each.variants
        ):
            target = self.target(chip_rows, variant)
            rates = [rate for resource in RESOURCES if (rate := resource.rate(target))]
            longest = LONGEST_FLOAT32_WAIT / (rates[0].per_s * variant.shards)
            beyond = [
                f"rates of {float(rate.per_s):.1e} per second"
                for rate in rates
                if not least <= rate.per_s <= most
            ]
            beyond += [
                f"hops of {float(rate.latency_s):.1e} seconds"
                for rate in rates
                if rate.latency_s > longest
            ]
            if beyond:
                raise RooflinesError(
                    "floats",
                    f"is float32, which may not reach as far as {beyond[0]} on {chip_rows.chip}",
                    fix,
                )

    def _check_spans(self) -> None:
        """Refuse tiles that span more elements of a split dimension than can be counted."""
        most = max(self.config[SHARDS])
        for dim in sorted(
            {str(scheme.split) for scheme in self.shardings.values()} & set(self.tile)
        ):
            if self.tile[dim] * most > LARGEST_COUNT:
                problem = f"is {self.tile[dim]:,}, which is more than {LARGEST_COUNT:,} elements on {most:,} chips"
                raise RooflinesError(
                    f"tile.{dim}", problem, "choose a smaller tile, or fewer chips"
                )

    def _check_exact_flops(self) -> None:
        """Exact FLOPs of a contraction over less than one element would be negative."""
        if self.flops != "exact":
            return
        columns = {
            name: values
            for axis in (*self.leading, *self.inner)
            for name, values in axis.columns.items()
        }
        most = max(self.config["shards"])
        for scheme in self.shardings.values():
            if (
                scheme.split in self.op.contracted
                and scheme.split not in self.tile
                and min(columns[scheme.split]) < most
            ):
                least = min(columns[scheme.split])
                problem = f"counts exact FLOPs of {scheme.split} = {least} split over {most} chips, less than one element each"
                raise RooflinesError(
                    "flops",
                    problem,
                    "count `leading` FLOPs, or use sizes of at least the number of chips",
                )

    def _pairs(self) -> list[tuple[str, int]]:
        """Every (sharding, shards) asked for; nothing is split on one chip only."""
        return [
            (name, n)
            for name, scheme in self.shardings.items()
            for n in (self.config[SHARDS] if scheme.split else [1])
        ]

    @cached_property
    def served(self) -> tuple[tuple[ChipRows, ...], tuple[Skipped, ...]]:
        """What each chip can do of the sweep, and what it cannot."""
        self._check_chips()
        by_chip, skipped = [], []
        every = tuple(Variant(d, s, n) for d in self.combinations for s, n in self._pairs())
        shared: dict[tuple[frozenset[str], int | None], tuple[Variant, ...]] = {}
        for chip in self.config["chips"]:
            missing = dict(self._missing_dtypes(chip))
            network, most, why = self._network(chip)
            for memory in self.config["memory"]:
                level = self.chips[chip]["memory"].get(memory)
                if level is None or level.get("bytes_per_s") is None:
                    reason = (
                        f"no memory level {memory}"
                        if level is None
                        else f"no published bandwidth of memory level {memory}"
                    )
                    skipped.append(Skipped(chip, memory, self.points * len(every), reason))
                    continue
                for name, reason in missing.items():
                    skipped.append(
                        Skipped(chip, memory, self.points * len(self._pairs()), reason, dtypes=name)
                    )
                served = len(self.combinations) - len(missing)
                if served:
                    skipped.extend(
                        Skipped(
                            chip,
                            memory,
                            self.points * served,
                            why,
                            network or self.config["network"],
                            sharding=s,
                            shards=n,
                        )
                        for s, n in self._pairs()
                        if most is not None and n > most
                    )
                key = (frozenset(missing), most)
                if key not in shared:
                    shared[key] = tuple(
                        s
                        for s in every
                        if s.dtypes not in missing and (most is None or s.shards <= most)
                    )
                if shared[key]:
                    by_chip.append(ChipRows(chip, memory, network, shared[key]))
        if skipped and (self.config["on_unsupported"] == "error" or not by_chip):
            first = skipped[0]
            asked = ", ".join(
                str(part)
                for part in (
                    first.dtypes,
                    first.sharding,
                    first.shards and f"{first.shards} shards",
                )
                if part
            )
            problem = f"asks {first.chip} for {asked or first.memory}, but it has {first.reason}"
            if not by_chip:
                raise RooflinesError(
                    "",
                    f"is left with no rows: no chip can do any of it. It {problem}",
                    "choose other chips, dtypes or levels",
                )
            raise RooflinesError(
                "on_unsupported",
                f"is 'error', and the sweep {problem}",
                "leave it out, or write `on_unsupported: skip`",
            )
        return tuple(by_chip), tuple(skipped)

    def _missing_dtypes(self, chip: str) -> Iterator[tuple[str, str]]:
        peaks = self.chips[chip]["units"].get(self.unit) or {}
        for name, combination in self.combinations.items():
            if combination.compute not in peaks:
                yield name, f"no {combination.compute} peak of its {self.unit} unit"

    def _network(self, chip: str) -> tuple[str | None, int | None, str]:
        """The interconnect a chip would use, the most chips it joins (None: no limit known), and why not more."""
        networks, wanted = self.chips[chip]["networks"], self.config["network"]
        if wanted is not None and wanted not in networks:
            return None, 1, f"no interconnect {wanted}"
        if not networks:
            return None, 1, "no interconnect"
        name = str(wanted or next(iter(networks)))
        link = networks[name]
        most = chips_joined(link["topology"], link.get("links", 1), link.get("domain"))
        return name, most, f"{most} chips at most on one {name}"


def _shardings(config: JSON, op: Operation) -> dict[str, Sharding]:
    """The shardings of a sweep by name."""
    found: dict[str, Sharding] = {}
    with Mistakes() as mistakes:
        for index, given in enumerate(config["sharding"]):
            with mistakes.at(f"sharding[{index}]"):
                scheme = sharding(given, op)
                if scheme.name in found:
                    raise RooflinesError(
                        "",
                        f"is {quote(scheme.name)}, which stands there twice",
                        "name every sharding once",
                    )
                found[scheme.name] = scheme
    several = [n for n in config[SHARDS] if n > 1]
    if several and all(scheme.split is None for scheme in found.values()):
        raise RooflinesError(
            SHARDS,
            f"asks for {several[0]} chips, but nothing is split",
            "give the sweep a `sharding`, such as batch or column",
        )
    if 1 not in config[SHARDS] and any(scheme.split is None for scheme in found.values()):
        raise RooflinesError(
            SHARDS,
            "lacks 1, which sharding none needs",
            "add 1 to `shards`, or take none out of `sharding`",
        )
    return found
