"""One operation on one chip with one sharding: all but sizes and the number of chips."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any

from oracle import kernels
from oracle.kernels import NEARLY_TIED, Collective, Fit, Kernel, Matmul
from oracle.network import Link
from oracle.operations import Operation, Sharding

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
    reach: Mapping[str, Any] | None = None
    exact_flops: bool = False
    tile: Mapping[str, int] = field(default_factory=dict)
    two_levels: bool = False  # anywhere in the sweep
    axes: tuple[int, ...] = ()  # only of a product; else all chips are along one axis

    def local(self, sizes, chips):
        """Return the size of each dimension on one chip."""
        return {
            d: Fraction(sizes[d], chips if d == self.sharding.split else 1)
            for d in self.operation.dims
        }

    def tiles(self, sizes, chips):
        """Return for each dimension the number of its tiles on one chip, and the size of a tile."""
        local = self.local(sizes, chips)
        return {
            d: (math.ceil(size / self.tile[d]), Fraction(self.tile[d]))
            if d in self.tile
            else (1, size)
            for d, size in local.items()
        }

    def useful_flops(self, sizes, chips):
        """Return the operations of one chip without padding."""
        return replace(self, tile={}).flops(sizes, chips)

    def flops(self, sizes, chips):
        """Return the operations of one chip, edge tiles computed whole."""
        size = {d: count * tile for d, (count, tile) in self.tiles(sizes, chips).items()}
        if self.exact_flops:
            out = math.prod((size[d] for d in self.operation.out), start=Fraction(1))
            return out * (
                2 * math.prod((size[d] for d in self.operation.contracted), start=Fraction(1)) - 1
            )
        return 2 * math.prod((size[d] for d in self.operation.dims), start=Fraction(1))

    def memory_bytes(self, sizes, chips):
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

    def footprint_bytes(self, sizes, chips):
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

    def collectives(self, sizes, chips):
        """Return the collectives of one chip."""
        if chips == 1 or not self.links:
            return []
        held = partial(self.held, local=self.local(sizes, chips))
        how, axes = self.sharding, self.axes or (chips,)
        found = [] if how.gather is None else [Collective("gather", 1, axes, held(how.gather))]
        found += [Collective("scattered", 1, axes, held("x"))] if how.dispatch else []
        found += [Collective("scattered", 1, axes, held("out"))] if how.combine else []
        if how.reduce is not None:
            passes = 2 if how.reduce == "all-reduce" else 1
            found.append(Collective("gather", passes, axes, held("out")))
        return found

    def sent(self, sizes, chips):
        """Return what one chip sends on each level, inner first."""
        total = [Fraction(0)] * len(self.links)
        for each in self.collectives(sizes, chips):
            amounts = kernels.sent(self.links, each)
            total = [one + other for one, other in zip(total, amounts, strict=True)]
        return total

    def network_bytes(self, sizes, chips):
        """Return what one chip sends."""
        return sum(self.sent(sizes, chips), start=Fraction(0))

    def levels(self, sizes, chips):
        """Return the times of what is sent, and of the hops, on each level [s]."""
        each = ((1, collective) for collective in self.collectives(sizes, chips))
        return kernels.together(self.links, each, self.efficiency["network"])

    def waits(self, chips):
        """Return how long the hops of each level take [s]."""
        return [hops for _, hops in self.levels(dict.fromkeys(self.operation.dims, 1), chips)]

    def work(self, sizes, chips):
        """Return the work of each resource."""
        return {
            "math": self.flops(sizes, chips),
            "memory": self.memory_bytes(sizes, chips),
            "network": self.network_bytes(sizes, chips),
        }

    def terms(self, sizes, chips):
        """Return, per resource, the times the largest of which is the resource's time [s]."""
        work, levels = self.work(sizes, chips), self.levels(sizes, chips)
        return {
            "math": [work["math"] / (self.peak * self.efficiency["math"])],
            "memory": [work["memory"] / (self.memory_rate * self.efficiency["memory"])],
            "network": [*(send for send, _ in levels), *(hops for _, hops in levels)]
            if work["network"]
            else [Fraction(0)],
        }

    def times(self, sizes, chips):
        """Return the time each resource takes [s]."""
        return {resource: max(terms) for resource, terms in self.terms(sizes, chips).items()}

    def upper(self, sizes, chips):
        """Return the time of the resources, and of the collectives, one after another [s]."""
        times, share = self.times(sizes, chips), self.efficiency["network"]
        each = self.collectives(sizes, chips)
        network = [kernels.collective_s(self.links, one, share) for one in each]
        return sum(network, start=times["math"] + times["memory"])

    def bound(self, sizes, chips, nearly=Fraction(0)):
        """Return what takes longest, within a share; a tie goes to compute, then to memory."""
        times = self.times(sizes, chips)
        least = max(times.values()) * (1 - nearly)
        return LABEL[next(r for r in RESOURCES if times[r] >= least)]

    @property
    def peaks(self):
        """Return the peak by the unit of the kernel [FLOP/s]."""
        return {"compute": self.peak}

    @property
    def whole_tiles(self):
        """Return whether the first dimension is one of rows, which a calibration has in tiles."""
        return not self.tile and self.operation.dims[0] in self.operation.out

    def kernel(self, sizes, chips):
        """Return the operation as the kernel of one chip."""
        local, none = self.local(sizes, chips), Fraction(0)
        rows = local[self.operation.dims[0]] if self.whole_tiles else None
        inputs, outputs = (self.held(operand, local) for operand in ("x", "out"))
        depth = math.prod((local[d] for d in self.operation.contracted), start=Fraction(1))
        wide = [d for d in self.operation.out if d not in self.operation.letters("x")]
        columns = math.prod((local[d] for d in wide), start=Fraction(1))
        return Kernel(
            self.operation.name,
            1,
            none,
            self.flops(sizes, chips),
            none,
            self.memory_bytes(sizes, chips),
            self.collectives(sizes, chips),
            matmul=Matmul(rows, inputs, outputs, depth, columns),
        )

    def held(self, operand, local):
        """Return the bytes of an operand on one chip."""
        letters = self.operation.letters(operand)
        return math.prod((local[d] for d in letters), start=self.bits[operand] / 8)

    def estimate(self, sizes, chips):
        """Return the calibrated time, its band and its bound; None without a calibration."""
        kernel = self.kernel(sizes, chips)
        fit = None if self.calibration is None else Fit(self.calibration, self.bands, self.reach)
        fitted = {}
        if self.collective is not None:
            fitted = {each.name: Fit(self.collective, {}) for each in kernel.collectives}
        return kernels.estimate(self, kernel, fit, fitted)

    def of_levels(self, sizes, chips):
        """Return the bytes of both levels, if the sweep has two."""
        if not self.two_levels:
            return {}
        inner, outer = (*self.sent(sizes, chips), Fraction(0), Fraction(0))[:2]
        return {"network_inner_bytes": inner, "network_outer_bytes": outer}

    def row(self, sizes, chips):
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


PLAIN_LINK = Link("plain", Fraction(1), 1, "switch", None, None, Fraction(0), Fraction(0))


def at_share(setting, share):
    """Return a setting with a share of the attainable peak."""
    return replace(
        setting, efficiency={**setting.efficiency, "math": setting.efficiency["math"] * share}
    )
