"""One operation on one chip with one sharding: all but sizes and the number of chips."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any

from oracle.network import (
    Link,
    sent_per_byte,
    tiers,
)
from oracle.operations import Operation, Sharding, operation_of, sharding_of

RESOURCES = ("math", "memory", "network")
LABEL = {"math": "compute", "memory": "memory", "network": "network"}


@dataclass(frozen=True)
class Setting:
    """One operation on one chip with one sharding, without sizes and the number of chips."""

    operation: Operation
    sharding: Sharding
    bits: Mapping[str, Fraction]
    peak: Fraction
    memory_rate: Fraction
    capacity: Fraction | None
    links: tuple[Link, ...]
    efficiency: Mapping[str, Fraction]
    calibration: Mapping[str, Fraction] | None = None
    collective: Mapping[str, Fraction] | None = None
    bands: Mapping[str, tuple[Fraction, Fraction]] = field(default_factory=dict)
    exact_flops: bool = False
    tile: Mapping[str, int] = field(default_factory=dict)
    two_levels: bool = False  # anywhere in the sweep
    axes: tuple[int, ...] = ()  # only of a product; else all chips are along one axis

    def local(self, sizes: Mapping[str, int], chips: int) -> dict[str, Fraction]:
        """Return the size of each dimension on one chip."""
        return {
            d: Fraction(sizes[d], chips if d == self.sharding.split else 1)
            for d in self.operation.dims
        }

    def tiles(self, sizes: Mapping[str, int], chips: int) -> dict[str, tuple[int, Fraction]]:
        """Return for each dimension the number of its tiles on one chip, and the size of a tile."""
        local = self.local(sizes, chips)
        return {
            d: (math.ceil(size / self.tile[d]), Fraction(self.tile[d]))
            if d in self.tile
            else (1, size)
            for d, size in local.items()
        }

    def useful_flops(self, sizes: Mapping[str, int], chips: int) -> Fraction:
        """Return the operations of one chip without padding."""
        return replace(self, tile={}).flops(sizes, chips)

    def flops(self, sizes: Mapping[str, int], chips: int) -> Fraction:
        """Return the operations of one chip, edge tiles computed whole."""
        size = {d: count * tile for d, (count, tile) in self.tiles(sizes, chips).items()}
        if self.exact_flops:
            out = math.prod((size[d] for d in self.operation.out), start=Fraction(1))
            return out * (
                2 * math.prod((size[d] for d in self.operation.contracted), start=Fraction(1)) - 1
            )
        return 2 * math.prod((size[d] for d in self.operation.dims), start=Fraction(1))

    def memory_bytes(self, sizes: Mapping[str, int], chips: int) -> Fraction:
        """Return the bytes one chip moves: x, w once per output and contracted tile, out once."""
        tiles = self.tiles(sizes, chips)
        total = Fraction(0)
        for operand in ("x", "w", "out"):
            times = math.prod(
                count
                for d, (count, _) in tiles.items()
                if operand != "out" or d in self.operation.out
            )
            elements = math.prod(
                (tiles[d][1] for d in self.operation.letters(operand)), start=Fraction(1)
            )
            total += times * elements * self.bits[operand] / 8
        return total

    def footprint_bytes(self, sizes: Mapping[str, int], chips: int) -> Fraction:
        """Return what x, w and out take on one chip."""
        local = self.local(sizes, chips)
        return sum(
            (
                math.prod((local[d] for d in self.operation.letters(operand)), start=Fraction(1))
                * self.bits[operand]
                / 8
                for operand in ("x", "w", "out")
            ),
            start=Fraction(0),
        )

    def payloads(self, sizes: Mapping[str, int], chips: int) -> list[tuple[str, Fraction]]:
        """Return the collectives, with the bytes of what each is about, on one chip."""
        local = self.local(sizes, chips)
        held = partial(self.held, local=local)
        how = self.sharding
        found = [("gather", held(how.gather))] if how.gather is not None else []
        found += [("scattered", held("x"))] if how.dispatch else []
        found += [("scattered", held("out"))] if how.combine else []
        if how.reduce is not None:
            found += [("gather", held("out"))] * (2 if how.reduce == "all-reduce" else 1)
        return found

    def sent(self, sizes: Mapping[str, int], chips: int) -> list[Fraction]:
        """Return what one chip sends on each level, inner first."""
        if chips == 1 or not self.links:
            return [Fraction(0)] * len(self.links)
        axes = self.axes or (chips,)
        total = [Fraction(0)] * len(self.links)
        for kind, payload in self.payloads(sizes, chips):
            parts = sent_per_byte(self.links, axes, kind)
            total = [a + part * payload for a, part in zip(total, parts, strict=True)]
        return total

    def network_bytes(self, sizes: Mapping[str, int], chips: int) -> Fraction:
        """Return what one chip sends."""
        return sum(self.sent(sizes, chips), start=Fraction(0))

    def waits(self, chips: int, *, typical: bool = False) -> list[Fraction]:
        """Return how long the hops of each level take [s]."""
        if not self.links:
            return []
        rounds = len(self.payloads(dict.fromkeys(self.operation.dims, 1), chips))
        return [
            rounds * link.hops(axes) * (link.typical_s if typical else link.hop_s)
            for link, axes in tiers(self.links, self.axes or (chips,))
        ]

    def work(self, sizes: Mapping[str, int], chips: int) -> dict[str, Fraction]:
        """Return the work of each resource."""
        return {
            "math": self.flops(sizes, chips),
            "memory": self.memory_bytes(sizes, chips),
            "network": self.network_bytes(sizes, chips),
        }

    def terms(self, sizes: Mapping[str, int], chips: int) -> dict[str, list[Fraction]]:
        """Return, per resource, the times the largest of which is the resource's time [s]."""
        work = self.work(sizes, chips)
        result = {
            "math": [work["math"] / (self.peak * self.efficiency["math"])],
            "memory": [work["memory"] / (self.memory_rate * self.efficiency["memory"])],
            "network": [Fraction(0)],
        }
        if work["network"]:
            levels = tiers(self.links, self.axes or (chips,))
            rates = [link.bytes_per_s(axes) * self.efficiency["network"] for link, axes in levels]
            sent = self.sent(sizes, chips)
            result["network"] = [
                *(amount / rate for amount, rate in zip(sent, rates, strict=True)),
                *self.waits(chips),
            ]
        return result

    def times(self, sizes: Mapping[str, int], chips: int) -> dict[str, Fraction]:
        """Return the time each resource takes [s]."""
        return {resource: max(terms) for resource, terms in self.terms(sizes, chips).items()}

    @property
    def collectives(self) -> list[Setting]:
        """Return the same with each of its collectives alone; of at most one it is itself."""
        how = self.sharding
        if not (how.dispatch and how.combine):
            return [self]
        ways = replace(how, combine=False), replace(how, dispatch=False)
        return [replace(self, sharding=way) for way in ways]

    def upper(self, sizes: Mapping[str, int], chips: int) -> Fraction:
        """Return the time of the resources, and of the collectives, one after another [s]."""
        first, *others = (each.times(sizes, chips) for each in self.collectives)
        return sum(first.values(), start=sum((each["network"] for each in others), Fraction(0)))

    def bound(self, sizes: Mapping[str, int], chips: int, nearly: Fraction = Fraction(0)) -> str:
        """Return what takes longest, within a share; a tie goes to compute, then to memory."""
        times = self.times(sizes, chips)
        least = max(times.values()) * (1 - nearly)
        return LABEL[next(r for r in RESOURCES if times[r] >= least)]

    def pieces(self, sizes: Mapping[str, int], chips: int) -> list[tuple[str, Fraction]]:
        """Return the bound and the time of every piece of a calibration, in order [s].

        A collective is a piece of its own for each protocol; `network` has the faster one.
        """
        assert self.calibration is not None
        fit = self.calibration
        nominal = replace(self, efficiency=dict.fromkeys(RESOURCES, Fraction(1)))
        math_s = nominal.terms(self.in_whole_tiles(sizes, chips), chips)["math"][0]
        memory_s = nominal.terms(sizes, chips)["memory"][0]
        local = self.local(sizes, chips)
        moved = [self.held(operand, local) / self.memory_rate for operand in ("x", "out")]
        depth = math.prod((local[d] for d in self.operation.contracted), start=Fraction(1))
        compute_s = math_s / fit["math"]
        return [
            ("compute", compute_s),
            ("compute", compute_s + fit.get("sustained", 0) * (math_s - Fraction(1, 1000))),
            ("memory", memory_s / fit["memory"]),
            *(("network", time) for time in self.network_pieces(sizes, chips)),
            (
                "mixed",
                fit.get("mixed_math", 0) * math_s
                + fit.get("mixed_memory", 0) * memory_s
                + fit.get("mixed_activations", 0) * sum(moved)
                + fit.get("mixed_depth_s", 0) * depth,
            ),
        ]

    def in_whole_tiles(self, sizes: Mapping[str, int], chips: int) -> dict[str, int]:
        """Return sizes with the rows of every chip in whole tiles of a calibration."""
        assert self.calibration is not None
        row, tile = self.operation.dims[0], int(self.calibration.get("tile", 1))
        if self.tile or tile == 1 or row not in self.operation.out:
            return dict(sizes)
        split = chips if row == self.sharding.split else 1
        return {**sizes, row: math.ceil(Fraction(sizes[row], split * tile)) * split * tile}

    def network_pieces(self, sizes: Mapping[str, int], chips: int) -> list[Fraction]:
        """Return the calibrated times of the collectives, the largest of which counts [s]."""
        assert self.calibration is not None
        if not self.work(sizes, chips)["network"]:
            return []
        if len(self.collectives) > 1:
            each = (max(one.network_pieces(sizes, chips)) for one in self.collectives)
            return [sum(each, start=Fraction(0))]
        nominal = replace(self, efficiency=dict.fromkeys(RESOURCES, Fraction(1)))
        moved = max(nominal.terms(sizes, chips)["network"][: len(self.links)])
        if self.collective is None:
            share = self.calibration.get("network", 1)
            return [moved / share, *self.waits(chips, typical=True)]
        return [min(self.protocols(moved, chips))]

    def protocols(self, moved: Fraction, chips: int) -> list[Fraction]:
        """Return the times of a fitted collective by both protocols [s]."""
        assert self.collective is not None
        fit = self.collective
        passes = 2 if self.sharding.reduce == "all-reduce" else 1
        fixed = fit["overhead_s"] + fit["hop_s"] * passes * (chips - 1)
        return [
            fixed + moved / fit["low_latency"],
            fixed + fit["bulk_overhead_s"] + moved / fit["bulk"],
        ]

    def held(self, operand: str, local: Mapping[str, Fraction]) -> Fraction:
        """Return the bytes of an operand on one chip."""
        letters = self.operation.letters(operand)
        return math.prod((local[d] for d in letters), start=self.bits[operand] / 8)

    def estimate(self, sizes: Mapping[str, int], chips: int) -> dict[str, Any]:
        """Return the calibrated time, its band and its bound; None without a calibration."""
        if self.calibration is None:
            return dict.fromkeys(ESTIMATES)
        pieces = self.pieces(sizes, chips)
        largest = max(time for _, time in pieces)
        bound = next(name for name, time in pieces if time >= largest * (1 - NEARLY_TIED))
        x_s = self.held("x", self.local(sizes, chips)) / self.memory_rate
        passes = self.calibration.get("activation_passes", 0)
        total = self.calibration["overhead_s"] + passes * x_s + largest
        low, high = self.bands.get(bound, (None, None))
        return {
            "t_estimate_s": total,
            "t_estimate_p10_s": None if low is None else low * total,
            "t_estimate_p90_s": None if high is None else high * total,
            "estimate_bound": bound,
        }

    def of_levels(self, sizes: Mapping[str, int], chips: int) -> dict[str, Fraction]:
        """Return the bytes of both levels, if the sweep has two."""
        if not self.two_levels:
            return {}
        inner, outer = (*self.sent(sizes, chips), Fraction(0), Fraction(0))[:2]
        return {"network_inner_bytes": inner, "network_outer_bytes": outer}

    def row(self, sizes: Mapping[str, int], chips: int) -> dict[str, Any]:
        """Return every computed column of a row."""
        work, times = self.work(sizes, chips), self.times(sizes, chips)
        lower, footprint = max(times.values()), self.footprint_bytes(sizes, chips)
        return {
            "flops": work["math"],
            "memory_bytes": work["memory"],
            "network_bytes": work["network"],
            **self.of_levels(sizes, chips),
            "footprint_bytes": footprint,
            "t_math_s": times["math"],
            "t_memory_s": times["memory"],
            "t_network_s": times["network"],
            "t_lower_s": lower,
            "t_upper_s": self.upper(sizes, chips),
            **self.estimate(sizes, chips),
            "memory_intensity": work["math"] / work["memory"],
            "network_intensity": work["math"] / work["network"] if work["network"] else None,
            "attained_flops_per_s": self.useful_flops(sizes, chips) / lower,
            "utilization": self.useful_flops(sizes, chips) / lower / self.peak,
            "bound": self.bound(sizes, chips, NEARLY_TIED),
            "fits": None if self.capacity is None else footprint <= self.capacity,
        }


ESTIMATES = ("t_estimate_s", "t_estimate_p10_s", "t_estimate_p90_s", "estimate_bound")

NEARLY_TIED = Fraction(1, 10**13)
"""Pieces that differ by a smaller share count as tied."""

PLAIN_LINK = Link("plain", Fraction(1), 1, "switch", None, None, Fraction(0), Fraction(0))


def plain_matmul(sharding: str, tile: Mapping[str, int] | None = None) -> Setting:
    """Return a matmul of 16-bit operands with rates of one, for tests that derive rates."""
    operation, one = operation_of("matmul"), Fraction(1)
    bits, efficiency = dict.fromkeys(("x", "w", "out"), Fraction(16)), dict.fromkeys(RESOURCES, one)
    return Setting(
        operation,
        sharding_of(operation, sharding),
        bits,
        one,
        one,
        None,
        (PLAIN_LINK,),
        efficiency,
        tile=tile or {},
    )


def at_share(setting: Setting, share: Fraction) -> Setting:
    """Return a setting with a share of the attainable peak."""
    return replace(
        setting, efficiency={**setting.efficiency, "math": setting.efficiency["math"] * share}
    )
