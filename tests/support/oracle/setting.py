"""One operation on one chip with one sharding: all but sizes and the number of chips."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial

from oracle import kernels
from oracle.fits import NEARLY_TIED, NO_FITS, Fits, estimate
from oracle.kernels import Collective, Kernel, Matmul
from oracle.network import Link
from oracle.operations import Operation, Sharding
from oracle.values import bound_of, totals

RESOURCES = ("math", "memory", "network")
LABEL = {"math": "compute", "memory": "memory", "network": "network"}

OF_KERNELS = (
    *("flops", "memory_bytes", "network_bytes"),
    *("t_math_s", "t_memory_s", "t_network_s", "t_lower_s", "t_upper_s"),
)
"""Columns that rows of operations have in common with those of steps."""


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
    fits: Fits = NO_FITS
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

    def held(self, operand, local):
        """Return the bytes of an operand on one chip."""
        letters = self.operation.letters(operand)
        return math.prod((local[d] for d in letters), start=self.bits[operand] / 8)

    def footprint_bytes(self, sizes, chips):
        """Return what x, w and out take on one chip."""
        local = self.local(sizes, chips)
        return sum((self.held(operand, local) for operand in ("x", "w", "out")), start=Fraction(0))

    def collectives(self, sizes, chips):
        """Return the collectives of one chip."""
        if chips == 1 or not self.links:
            return []
        held = partial(self.held, local=self.local(sizes, chips))
        how, axes = self.sharding, self.axes or (chips,)
        found = [] if how.gather is None else [Collective("all-gather", axes, held(how.gather))]
        found += [Collective("all-to-all", axes, held("x"))] if how.dispatch else []
        found += [Collective("all-to-all", axes, held("out"))] if how.combine else []
        if how.reduce is not None:
            found.append(Collective(how.reduce, axes, held("out")))
        return found

    def sent(self, sizes, chips):
        """Return what one chip sends on each level, inner first."""
        total = [Fraction(0)] * len(self.links)
        for each in self.collectives(sizes, chips):
            amounts = kernels.sent(self.links, each)
            total = [one + other for one, other in zip(total, amounts, strict=True)]
        return total

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
            "network": sum(self.sent(sizes, chips), start=Fraction(0)),
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

    def bound(self, sizes, chips):
        """Return what takes longest; a tie goes to compute, then to memory."""
        return bound_of({f"t_{name}_s": time for name, time in self.times(sizes, chips).items()})

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
            self.memory_bytes(sizes, chips),
            self.flops(sizes, chips),
            none,
            none,
            self.collectives(sizes, chips),
            matmul=Matmul(rows, inputs, outputs, depth, columns),
        )

    def estimate(self, sizes, chips):
        """Return the calibrated time, its band and its bound; None without a calibration."""
        return estimate(self, self.kernel(sizes, chips))

    def of_levels(self, sizes, chips):
        """Return the bytes of both levels, if the sweep has two."""
        if not self.two_levels:
            return {}
        inner, outer = (*self.sent(sizes, chips), Fraction(0), Fraction(0))[:2]
        return {"network_inner_bytes": inner, "network_outer_bytes": outer}

    def row(self, sizes, chips):
        """Return every computed column of a row."""
        row = totals(self, [self.kernel(sizes, chips)])
        footprint, useful = self.footprint_bytes(sizes, chips), self.useful_flops(sizes, chips)
        network_bytes = row["network_bytes"]
        return {
            **{name: row[name] for name in OF_KERNELS},
            **self.of_levels(sizes, chips),
            **self.estimate(sizes, chips),
            "footprint_bytes": footprint,
            "memory_intensity": row["flops"] / row["memory_bytes"],
            "network_intensity": row["flops"] / network_bytes if network_bytes else None,
            "attained_flops_per_s": useful / row["t_lower_s"],
            "utilization": useful / row["t_lower_s"] / self.peak,
            "bound": bound_of(row, NEARLY_TIED),
            "fits": None if self.capacity is None else footprint <= self.capacity,
        }


PLAIN_LINK = Link("plain", Fraction(1), 1, "switch", None, None, Fraction(0), Fraction(0))


def at_share(setting, share):
    """Return a setting with a share of the attainable peak."""
    return replace(
        setting, efficiency={**setting.efficiency, "math": setting.efficiency["math"] * share}
    )
