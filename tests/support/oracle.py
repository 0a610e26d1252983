"""An independent implementation of the model in exact rational arithmetic: row by row, and slow.

Everything is a :class:`fractions.Fraction`. A number in a config means its decimal value: ``0.1``
is 1/10 and ``8.19e11`` is 819000000000, never the nearest binary number. Thresholds are found
without a closed form: each is the first size at which the difference of two evaluated times is not
negative, found by doubling and bisection. The only assumption is that the difference is affine, so
that its sign changes at most once.

The file is long on purpose: the whole model, independent of the package, to be read in one piece.

Conventions, where the model leaves a choice:

- Dimensions are ordered by first appearance in the einsum. An einsum that is written like a named
  operation is that operation.
- The order of rows, slowest first: chip, memory, the first dimension (where it is a grid axis of
  its own), dtypes, sharding, shards, shape, the other dimensions. A dimension that is tied to
  another, or that the shapes give, is no axis.
- ``none`` is combined with one chip only, which ``shards`` must then contain; every other sharding
  with every entry of ``shards``.
- A range has exact steps up to and including ``to``; its values are rounded half up, without
  duplicates.
- A network is needed from two chips on. On one chip it is null if the chip has none, or none of the
  given name; rows of one chip with a null network occur once, even if several networks are asked.
- In a mesh a chip sends over N-1 links, at most over all it has; without a given domain it joins
  one chip more than a chip has links. Any other domain that is not given is unknown: two chips are
  joined, more are not supported.
- On two levels the domain of an outer switch counts chips, that of an outer mesh or torus counts
  groups. An all-to-all on two levels sends 1/n of a chip's share inside for n groups.
- Tiles: flops and memory count whole tiles of the local sizes, network and footprint count the
  sizes themselves; a dimension without a tile is one tile of its local size. ``critical_exact`` is
  the real number of tiles times the tile, times the number of chips if the dimension is split.
  Along a tiled dimension a size is compute-bound from a threshold on if every size in its tile is:
  the network is taken at the last one.
- Efficiency of a resource: the sweep's, else the chip's own, else 1. It applies to rates, not to
  the latency of a hop.
- A calibration gives estimates and nothing else, from nominal times (efficiency 1). A chip's own
  is the overhead, plus the largest of the times over the fitted shares; a missing share is 1. Hops
  take their typical time, over no share. That of a software has further pieces, and a collective's
  own numbers where it is one collective over the chip's first interconnect.
- A resource without work takes no time: its critical is 1.
- ``limit``: below ``critical``, the resource whose own critical is largest (never counts as
  infinite; among several that are never reached the one that takes longest as the size goes to
  infinity; memory before network); null if ``critical`` is 1. A critical of 2^62 or more is null,
  and only ``critical_exact`` has it.
- Along ``shards`` there are no thresholds for ``none`` and on a chip without a network; if the
  split dimension is tiled, they are refused. ``critical`` is the largest joined number of chips
  that is compute-bound; ``limit`` is the bottleneck on the next number of chips, null if
  ``critical`` is the whole domain. A whole domain of unknown size is ``domain-unknown``.
- A share q of the peak: t_math counts 1/q times.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any, NamedTuple

NAMED = {
    "matmul": "BD,DF->BF",
    "per-example-matmul": "BD,BDF->BF",
    "dot": "D,D->",
    "sequence-matmul": "BSD,DF->BSF",
}
Sizes = int | float | str | list[Any] | Mapping[str, Any]
RESOURCES = ("math", "memory", "network")
LABEL = {"math": "compute", "memory": "memory", "network": "network"}
ABOUT_SHAPE = ("name", "model", "layer")
ENDLESS = 2**53  # the largest size and number of chips
LARGEST = 2**62  # a whole size from here on is null
FAR = 2**400  # a size so large that only the fastest growing term counts


def exact(value: float | str | Fraction) -> Fraction:
    """Return the decimal number that was written, exactly."""
    return (
        Fraction(value)
        if isinstance(value, (int, Fraction))
        else Fraction(str(value).replace("_", ""))
    )


def whole(value: float | str | Fraction) -> int:
    """Return a number that must be whole as an int."""
    number = exact(value)
    assert number.denominator == 1, f"{value} is not whole"
    return int(number)


# ---------------------------------------------------------------- what the config says


@dataclass(frozen=True)
class Operation:
    """Two operands, an output, and the letters of each."""

    name: str
    x: str
    w: str
    out: str

    @property
    def dims(self) -> list[str]:
        """All letters, in the order in which they first appear."""
        return list(dict.fromkeys(self.x + self.w + self.out))

    @property
    def contracted(self) -> list[str]:
        """The letters that the output lacks."""
        return [d for d in self.dims if d not in self.out]

    def letters(self, operand: str) -> str:
        """Return the letters of ``x``, ``w`` or ``out``."""
        return {"x": self.x, "w": self.w, "out": self.out}[operand]


def operation_of(text: str) -> Operation:
    """Return the operation that a name or an einsum stands for."""
    einsum = NAMED.get(text, text).replace(" ", "")
    operands, out = einsum.split("->")
    x, w = operands.split(",")
    name = next((name for name, form in NAMED.items() if form == einsum), einsum)
    return Operation(name, x, w, out)


@dataclass(frozen=True)
class Sharding:
    """What is split, what is gathered before, what is reduced after."""

    name: str
    split: str | None = None
    gather: str | None = None
    reduce: str | None = None
    dispatch: bool = False  # an all-to-all of x before
    combine: bool = False  # an all-to-all of the result after


def sharding_of(operation: Operation, spec: str | Mapping[str, str]) -> Sharding:
    """Return the sharding that one of the seven names, or a long form, means for an operation."""
    x, w, out = set(operation.x), set(operation.w), set(operation.out)
    if isinstance(spec, str):
        if spec == "none":
            return Sharding("none")
        role, _, collective = spec.partition("/")
        candidates = {
            "contracting": (x & w) - out,
            "column": (w & out) - x,
            "batch": ((x & out) - w) or (x & out),
        }[role]
        (split,) = candidates
        gather = collective.removeprefix("gather-") if collective.startswith("gather-") else None
        return Sharding(spec, split, gather, collective if role == "contracting" else None)
    split = spec["split"]
    first, then = spec.get("first") or "", spec.get("then") or ""
    gather = first.removeprefix("all-gather ") if first.startswith("all-gather") else None
    name = "/".join(
        part
        for part in (split, first.replace("all-gather ", "gather-").replace(" ", "-"), then)
        if part
    )
    dispatch, combine = first == "all-to-all x", then == "all-to-all"
    reduction = then if then and not combine else None
    return Sharding(name, split, gather, reduction, dispatch, combine)


def resolve_chips(chips: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return every chip with its base, if it has one, filled in and its overrides applied."""

    def resolve(name: str) -> dict[str, Any]:
        entry = dict(chips[name])
        base = entry.pop("base", None)
        if base is None:
            return copy.deepcopy(entry)
        result = resolve(base)
        for key, value in entry.items():
            *path, last = key.split(".")
            place = result
            for step in path:
                place = place.setdefault(step, {})
            place[last] = copy.deepcopy(value)
        return result

    return {name: resolve(name) for name in chips}


SNAP = Fraction(1, 10**9)


def sizes_of(spec: Sizes) -> list[int]:
    """Return the sizes that one entry of a grid asks for (a tie is not one of them)."""
    if isinstance(spec, list):
        return [whole(value) for value in spec]
    if not isinstance(spec, Mapping):
        return [whole(spec)]
    if "sequences" in spec:
        return [
            whole(
                exact(spec["sequences"])
                * exact(spec["tokens_per_sequence"])
                / exact(spec["replicas"])
            )
        ]
    first, last = exact(spec["from"]), exact(spec["to"])
    if "count" in spec:
        return list(
            dict.fromkeys(
                nearest_mean(first, last, step, int(spec["count"]) - 1)
                for step in range(int(spec["count"]))
            )
        )
    values, value = [], first
    while value <= last:
        values.append(value)
        value = value * exact(spec["factor"]) if "factor" in spec else value + exact(spec["step"])
    if "factor" in spec and value <= last * (1 + SNAP):
        values.append(last)
    elif "factor" in spec and len(values) > 1 and values[-1] >= last * (1 - SNAP):
        values[-1] = last
    return list(dict.fromkeys(math.floor(value + Fraction(1, 2)) for value in values))


def nearest_mean(first: Fraction, last: Fraction, step: int, steps: int) -> int:
    """Return first * (last / first)^(step / steps) rounded half up, by powers of whole numbers."""
    if not steps:
        return math.floor(first + Fraction(1, 2))
    power = first ** (steps - step) * last**step
    size = round(math.exp(math.log(first) + math.log(last / first) * step / steps))
    while (size + Fraction(1, 2)) ** steps <= power:
        size += 1
    while (size - Fraction(1, 2)) ** steps > power:
        size -= 1
    return size


def as_list(value: object) -> list[Any]:
    """Return a list as it is and anything else as a list of one."""
    return list(value) if isinstance(value, list) else [value]


def stored_bits(formats: Mapping[str, Any], name: str) -> Fraction:
    """Return the bits one element takes, its share of a block's scale included."""
    entry = formats[name]
    if "scale_bits" in entry:
        return exact(entry["bits"]) + exact(entry["scale_bits"]) / exact(entry["block"])
    return exact(entry["bits"])


# ------------------------------------------------ one setting: all but sizes and number of chips


@dataclass(frozen=True)
class Link:
    """One interconnect of a chip."""

    name: str
    rate: Fraction
    links: int
    topology: str
    domain: int | None
    ring_multiple: int | None
    hop_s: Fraction
    typical_s: Fraction
    published: bool = True

    def ring(self, chips: int) -> bool:
        """Return whether an axis of N chips is closed."""
        return self.ring_multiple is not None and chips % self.ring_multiple == 0 and chips > 2

    def links_used(self, axes: Sequence[int]) -> int:
        """Return over how many links a chip sends at once."""
        if self.topology == "switch":
            return self.links
        if self.topology == "mesh":
            return min(math.prod(axes) - 1, self.links) or 1
        return sum(2 if self.ring(chips) else 1 for chips in axes)

    def bytes_per_s(self, axes: Sequence[int]) -> Fraction:
        """Return what one chip sends per second in a collective."""
        return self.rate * self.links_used(axes)

    def hops(self, axes: Sequence[int]) -> int:
        """Return how many hops follow one another in one round."""
        if self.topology == "torus":
            return sum(n // 2 if self.ring(n) else n - 1 for n in axes)
        return 1 if math.prod(axes) > 1 else 0

    def scattered(self, axes: Sequence[int]) -> Fraction:
        """Return what a chip sends in an all-to-all, per byte of its own share."""
        chips = math.prod(axes)
        if self.topology != "torus":
            return Fraction(chips - 1, chips)
        if not self.ring(chips):
            return Fraction(chips**2 // 4, chips)
        even = Fraction(chips, 8) if chips % 2 == 0 else Fraction(chips**2 - 1, 8 * chips)
        return 2 * even


Tier = tuple[Link, tuple[int, ...]]  # an interconnect, and how many it joins along each axis


def tiers(links: Sequence[Link], axes: tuple[int, ...]) -> list[Tier]:
    """Return the levels of a network, inner first, with what each of them joins."""
    if len(links) == 1:
        return [(links[0], axes)]
    chips = math.prod(axes)
    inside = chips if links[0].domain is None else min(links[0].domain, chips)
    return [(links[0], (inside,)), (links[1], (chips // inside,))]


def sent_per_byte(links: Sequence[Link], axes: tuple[int, ...], kind: str) -> list[Fraction]:
    """Return what a chip sends on each level per byte of a payload, "gather"ed or "scattered"."""
    levels = tiers(links, axes)
    counts = [math.prod(axes) for _, axes in levels]
    if kind == "scattered":
        amounts = [link.scattered(joined) for link, joined in levels]
        return amounts if len(levels) == 1 else [amounts[0] / counts[1], amounts[1]]
    shares = [Fraction(1), *(Fraction(1, counts[0]) for _ in levels[1:])]
    return [share * Fraction(n - 1, n) for share, n in zip(shares, counts, strict=True)]


def why_not_joined(links: Sequence[Link], axes: tuple[int, ...]) -> str | None:
    """Return why links do not join chips in this form; None if they do."""
    chips = math.prod(axes)
    if chips == 1:
        return None
    if not links:
        return "network"
    inner = links[0]
    if len(links) > 1 and inner.topology == "torus":
        return "inner torus"
    if len(axes) > 1 and (
        len(links) > 1 or inner.topology != "torus" or 2 * len(axes) > inner.links
    ):
        return "axes"
    if len(links) == 1:
        return "domain" if inner.domain is not None and max(axes) > inner.domain else None
    return why_not_grouped(inner, links[1], chips)


def why_not_grouped(inner: Link, outer: Link, chips: int) -> str | None:
    """Return why two levels do not join chips; None if they do."""
    if inner.domain is None or chips <= inner.domain:
        return None
    joined = chips if outer.topology == "switch" else chips // inner.domain
    if not inner.published or (outer.domain is not None and joined > outer.domain):
        return "domain"
    return "groups" if chips % inner.domain else None


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

    def bound(self, sizes: Mapping[str, int], chips: int) -> str:
        """Return what takes longest; a tie goes to compute, then to memory."""
        times = self.times(sizes, chips)
        return LABEL[next(r for r in RESOURCES if times[r] == max(times.values()))]

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
            "t_upper_s": sum(times.values(), start=Fraction(0)),
            **self.estimate(sizes, chips),
            "memory_intensity": work["math"] / work["memory"],
            "network_intensity": work["math"] / work["network"] if work["network"] else None,
            "attained_flops_per_s": work["math"] / lower,
            "utilization": work["math"] / lower / self.peak,
            "bound": self.bound(sizes, chips),
            "fits": None if self.capacity is None else footprint <= self.capacity,
        }


# ---------------------------------------------------------------- a sweep: its rows in order


@dataclass(frozen=True)
class Row:
    """One requested row: its keys, and its setting or the reason why it is not supported."""

    keys: Mapping[str, Any]
    sizes: Mapping[str, int]
    setting: Setting | None
    reason: str | None

    def values(self) -> dict[str, Any]:
        """Return the row of the table."""
        assert self.setting is not None
        return {**self.keys, **self.sizes, **self.setting.row(self.sizes, self.keys["shards"])}


class Case(NamedTuple):
    """What a sweep combines on one chip, without sizes."""

    chip: str
    memory: str
    dtypes: Mapping[str, str]
    formats: Mapping[str, Any]
    sharding: Sharding
    axes: tuple[int, ...]
    route: list[str] | None


def link_of(name: str, entry: Mapping[str, Any]) -> Link:
    """Return an interconnect of the catalogue."""
    domain = most_joined(entry)
    hop = exact(entry.get("hop_latency_s", 0))
    ring = entry.get("ring_multiple")
    return Link(
        name=name,
        rate=exact(entry["bytes_per_s"]),
        links=whole(entry.get("links", 1)),
        topology=entry["topology"],
        domain=2 if domain == "unknown" else None if domain == "unlimited" else whole(domain),
        ring_multiple=None if ring is None else whole(ring),
        hop_s=hop,
        typical_s=exact(entry.get("typical_hop_latency_s", hop)),
        published=domain != "unknown",
    )


def fitted(
    softwares: Sequence[str], sweep: Mapping[str, Any], case: Case, fits: Fits
) -> tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]:
    """Return the fit of the matmul, and of its collective, of the first software that has one."""
    if sweep.get("unit", default_unit(sweep)) != "matrix" or case.memory != "hbm":
        return None, None
    how = case.sharding
    kinds = [
        *(["all-gather"] if how.gather is not None else []),
        *(["all-to-all"] * (bool(how.dispatch) + bool(how.combine))),
        *([how.reduce] if how.reduce else []),
    ]

    def first(kind: str, name: str) -> Mapping[str, Any] | None:
        entries = (fits.get(kind, {}).get(f"{case.chip}/{each}", {}) for each in softwares)
        return next((entry[name] for entry in entries if name in entry), None)

    matmul = first("calibrations", case.dtypes["compute"])
    return matmul, first("collectives", kinds[0]) if len(kinds) == 1 else None


def numbers_of(entry: Mapping[str, Any] | None) -> dict[str, Fraction] | None:
    """Return the numbers of a fit."""
    if entry is None:
        return None
    about = ("bands", "held", "fitted", "held_out", "source", "date")
    return {name: exact(number) for name, number in entry.items() if name not in about}


def bands_of(entry: Mapping[str, Any] | None) -> dict[str, tuple[Fraction, Fraction]]:
    """Return the bands of a fit, by bound."""
    bands = (entry or {}).get("bands", {})
    return {bound: (exact(low), exact(high)) for bound, (low, high) in bands.items()}


def setting_of(
    sweep: Mapping[str, Any], chip: Mapping[str, Any], case: Case, fits: Fits | None = None
) -> tuple[Setting | None, str | None, str | None]:
    """Return the setting, or None and why there is none; and the name of the network."""
    _, memory, dtypes, formats, sharding, axes, route = case
    networks = chip.get("networks") or {}
    names = route or list(networks)[:1]
    peak = chip["units"].get(sweep.get("unit", default_unit(sweep)), {}).get(dtypes["compute"])
    level = chip["memory"].get(memory, {})
    links: tuple[Link, ...] = ()
    if names and set(names) <= set(networks):
        links = tuple(link_of(name, networks[name]) for name in names)
    network = "+".join(names) if links else None
    if peak is None:
        return None, "compute dtype", network
    if "bytes_per_s" not in level:
        return None, "memory", network
    scattered = sharding.dispatch or sharding.combine
    reason = "axes" if scattered and len(axes) > 1 else why_not_joined(links, axes)
    if reason is not None:
        return None, reason, network
    own = (chip.get("calibration") or {}).get(dtypes["compute"])
    calibration = own and {"overhead_s": 0, **dict.fromkeys(RESOURCES, 1), **own}
    collective = None
    if softwares := as_list(sweep.get("calibration") or []):
        calibration, collective = fitted(softwares, sweep, case, fits or {})
        if names != list(networks)[:1]:
            collective = None
    efficiency = (chip.get("efficiency") or {}) | (sweep.get("efficiency") or {})
    setting = Setting(
        operation=operation_of(sweep["operation"]),
        sharding=sharding,
        bits={operand: stored_bits(formats, dtypes[operand]) for operand in ("x", "w", "out")},
        peak=exact(peak["flops_per_s"]),
        memory_rate=exact(level["bytes_per_s"]),
        capacity=exact(level["capacity_bytes"]) if "capacity_bytes" in level else None,
        links=links,
        efficiency={r: exact(efficiency.get(r, 1)) for r in RESOURCES},
        calibration=numbers_of(calibration),
        collective=numbers_of(collective),
        bands={**bands_of(calibration), **bands_of(collective)},
        exact_flops=exactly(sweep),
        tile={d: whole(size) for d, size in (sweep.get("tile") or {}).items()},
        two_levels=any(len(names or []) > 1 for names in routes(sweep)),
        axes=axes if len(axes) > 1 else (),
    )
    return setting, None, network


Fits = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""Files of calibrations: by kind, by chip and software, and by compute dtype or collective."""

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


def most_joined(network: Mapping[str, Any]) -> int | str:
    """Return how many chips a network joins at most: a number, unlimited, or unknown."""
    if network.get("domain") is not None:
        return network["domain"] if network["domain"] == "unlimited" else whole(network["domain"])
    return whole(network.get("links", 1)) + 1 if network["topology"] == "mesh" else "unknown"


def routes(sweep: Mapping[str, Any]) -> list[list[str] | None]:
    """Return the networks of a sweep, each as a list of one, or of inner and outer."""
    asked = sweep.get("network")
    if asked is None:
        return [None]
    if isinstance(asked, list) and any(isinstance(each, list) for each in asked):
        return [as_list(each) for each in asked]
    return [as_list(asked)]


def exactly(sweep: Mapping[str, Any]) -> bool:
    """Say whether a sweep counts FLOPs exactly, which is the default of a dot product."""
    how: str = sweep.get(
        "flops", "exact" if operation_of(sweep["operation"]).name == "dot" else "leading"
    )
    return how == "exact"


def default_unit(sweep: Mapping[str, Any]) -> str:
    """Return the unit a sweep means where it names none."""
    return "vector" if operation_of(sweep["operation"]).name == "dot" else "matrix"


def combination_of(
    spec: str | Mapping[str, str], combinations: Mapping[str, Any]
) -> tuple[str, Mapping[str, str]]:
    """Return the name and the four dtypes of a combination."""
    if isinstance(spec, str):
        return spec, combinations[spec]
    return f"{spec['x']},{spec['w']}->{spec['out']}@{spec['compute']}", spec


def points(sweep: Mapping[str, Any]) -> list[list[tuple[str | None, dict[str, int]]]]:
    """Return the sizes of a sweep in order, a list per size of the first dimension."""
    operation = operation_of(sweep["operation"])
    grid: Mapping[str, Any] = sweep.get("grid") or {}
    shapes: list[Mapping[str, Any] | None] = list(sweep.get("shapes") or []) or [None]
    ties = {d: spec for d, spec in grid.items() if isinstance(spec, str) and spec in operation.dims}
    axes = [d for d in operation.dims if d in grid and d not in ties]
    first = axes[:1] if operation.dims[:1] == axes[:1] else []
    rest = axes[len(first) :]
    found = []
    for lead in product(*(sizes_of(grid[d]) for d in first)):
        others: list[tuple[str | None, dict[str, int]]] = []
        for shape, sizes in product(shapes, product(*(sizes_of(grid[d]) for d in rest))):
            of_dim = dict(zip(first, lead, strict=True)) | dict(zip(rest, sizes, strict=True))
            if shape is not None:
                of_dim |= {d: whole(size) for d, size in shape.items() if d not in ABOUT_SHAPE}
            while len(of_dim) < len(operation.dims):
                of_dim |= {d: of_dim[other] for d, other in ties.items() if other in of_dim}
            others.append(
                (None if shape is None else shape["name"], {d: of_dim[d] for d in operation.dims})
            )
        found.append(others)
    return found


def axes_of(form: int | str) -> tuple[int, ...]:
    """Return the chips along each axis."""
    return tuple(map(int, form.split("x"))) if isinstance(form, str) else (whole(form),)


def splits(sweep: Mapping[str, Any]) -> list[tuple[Sharding, tuple[int, ...]]]:
    """Return every sharding of a sweep with every form of chips that goes with it."""
    operation = operation_of(sweep["operation"])
    return [
        (sharding, axes)
        for sharding in (
            sharding_of(operation, spec) for spec in as_list(sweep.get("sharding", "none"))
        )
        for axes in (
            [(1,)]
            if sharding.split is None
            else [axes_of(form) for form in as_list(sweep.get("shards", [1]))]
        )
    ]


def rows(
    sweep: Mapping[str, Any],
    chips: Mapping[str, Any],
    dtypes: Mapping[str, Any],
    fits: Fits | None = None,
) -> Iterator[Row]:
    """Yield every requested row in order, including unsupported ones."""
    operation = operation_of(sweep["operation"])
    resolved = resolve_chips(chips)
    forms = as_list(sweep.get("shards", [1]))
    several = any(len(axes_of(form)) > 1 for form in forms)
    for chip, memory in product(as_list(sweep["chips"]), as_list(sweep.get("memory", "hbm"))):
        alone = False  # whether rows without a network were there
        for route in routes(sweep):
            networks = resolved[chip].get("networks") or {}
            missing = not networks or not set(route or []) <= set(networks)
            for lead, spec in product(points(sweep), sweep["dtypes"]):
                name, combination = combination_of(spec, dtypes["combinations"])
                for sharding, axes in splits(sweep):
                    if missing and alone and axes == (1,):
                        continue
                    case = Case(chip, memory, combination, dtypes["formats"], sharding, axes, route)
                    setting, reason, network = setting_of(sweep, resolved[chip], case, fits)
                    keys = {
                        "operation": operation.name,
                        "chip": chip,
                        "unit": sweep.get("unit", default_unit(sweep)),
                        "memory": memory,
                        "network": network,
                        "dtypes": name,
                        "sharding": sharding.name,
                        "shards": math.prod(axes),
                        **({"axes": "x".join(map(str, axes))} if several else {}),
                    }
                    for shape, sizes in lead:
                        yield Row({**keys, "shape": shape}, sizes, setting, reason)
            alone = alone or missing


# ---------------------------------------------------------------- thresholds, by evaluation


def first_size(difference: Callable[[int], Fraction], step: int) -> int | None:
    """Return the first whole size from 1 on at which a difference is not negative; None: never.

    The difference is affine in the number of steps; sizes within a step (1, or a tile) cost the
    same.
    """
    if difference(1) >= 0:
        return 1
    if difference(1 + step) <= difference(1):
        return None
    high = 2
    while difference(high) < 0:
        high *= 2
    low = high // 2  # negative here, not negative at `high`
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if difference(middle) >= 0 else (middle, high)
    return high


def real_size(difference: Callable[[int], Fraction], step: int) -> Fraction:
    """Return where the line through two evaluated points is zero, in sizes; 0 if it is constant."""
    one, two = difference(step), difference(2 * step)
    return Fraction(0) if one == two else step * (1 - one / (two - one))


def at_share(setting: Setting, share: Fraction) -> Setting:
    """Return a setting with a share of the attainable peak."""
    return replace(
        setting, efficiency={**setting.efficiency, "math": setting.efficiency["math"] * share}
    )


def thresholds_along(
    setting: Setting, axis: str, sizes: Mapping[str, int], chips: int
) -> dict[str, Any]:
    """Return the thresholds of one setting along one dimension, at the sizes of the others."""
    step = setting.tile.get(axis, 1) * (
        chips if axis == setting.sharding.split and axis in setting.tile else 1
    )

    def terms(resource: str, size: int) -> list[Fraction]:
        last = -(-size // step) * step  # of the tile
        return setting.terms({**sizes, axis: last}, chips)[resource]

    def ahead(resource: str, term: int) -> Callable[[int], Fraction]:
        return lambda size: terms("math", size)[0] - terms(resource, size)[term]

    found: dict[str, int | None] = {}
    real: dict[str, Fraction] = {}
    for resource in RESOURCES[1:]:
        lines = [ahead(resource, term) for term in range(len(terms(resource, 1)))]
        first = [first_size(line, step) for line in lines]
        found[resource] = None if None in first else max(size for size in first if size is not None)
        real[resource] = max(real_size(line, step) for line in lines)
    never = [resource for resource in found if found[resource] is None]
    critical = None if never else max(size for size in found.values() if size is not None)
    if never:
        limit: str | None = max(
            never, key=lambda r: max(terms(r, FAR * step))
        )  # the first of equals: memory
    elif critical == 1:
        limit = None
    else:
        limit = max(found, key=lambda r: (found[r], real[r]))
    tends_to = None
    if limit is not None:
        near, far = (setting.work({**sizes, axis: size * step}, chips) for size in (1, 2))
        growth = far[limit] - near[limit]
        tends_to = (far["math"] - near["math"]) / growth if growth else None
    outcome = "never" if never else "always" if critical == 1 else "found"
    return {
        **first_estimated(setting, axis, sizes, chips),
        "outcome": "beyond-2^62" if not never and stored_size(critical) is None else outcome,
        "critical": stored_size(critical),
        "critical_exact": None if never else max(real.values()),
        "critical_memory": stored_size(found["memory"]),
        "critical_network": stored_size(found["network"]),
        "limit": limit,
        "limit_intensity": tends_to,
    }


NO_ESTIMATE = dict.fromkeys(("critical_estimate", "outcome_estimate"))


def first_estimated(
    setting: Setting, axis: str, sizes: Mapping[str, int], chips: int
) -> dict[str, int | str | None]:
    """Return the first size at which a compute piece is the largest, and what it is.

    The sizes at which it is so begin at 1, or at a crossing of two pieces: those are tried. Within
    steps of whole tiles, pieces are affine in the step.
    """
    if setting.calibration is None or setting.tile:
        return NO_ESTIMATE
    probe = {**sizes, axis: 1}
    step = setting.in_whole_tiles(probe, chips)[axis] if axis == setting.operation.dims[0] else 1

    def times(number: int) -> list[tuple[str, Fraction]]:
        at = {**sizes, axis: (number - 1) * step + 1}
        lines = [piece for piece in setting.pieces(at, chips) if piece[0] != "network"]
        nominal = replace(setting, efficiency=dict.fromkeys(RESOURCES, Fraction(1)))
        terms = nominal.terms(at, chips)["network"]
        if setting.collective is None or len(terms) == 1:
            return [*lines, *(("network", time) for time in setting.network_pieces(at, chips))]
        return [*lines, *(("network", time) for time in setting.protocols(terms[0], chips))]

    def compute_bound(number: int) -> bool:
        at = {**sizes, axis: (number - 1) * step + 1}
        pieces = setting.pieces(at, chips)
        return max(pieces, key=lambda piece: piece[1])[0] == "compute"

    tried = {1}
    for (name, one), (_, two) in zip(times(1), times(2), strict=True):
        for (other, first), (_, second) in zip(times(1), times(2), strict=True):
            if (name == "compute") != (other == "compute") and two - one != second - first:
                crossing = 1 + (first - one) / ((two - one) - (second - first))
                tried |= {max(math.ceil(crossing), 1), max(math.floor(crossing) + 1, 1)}
    found = min((number for number in tried if compute_bound(number)), default=None)
    size = None if found is None else (found - 1) * step + 1
    outcome = "never" if size is None else "always" if size == 1 else "found"
    stored = stored_size(size)
    far = size is not None and stored is None
    return {"critical_estimate": stored, "outcome_estimate": "beyond-2^62" if far else outcome}


def stored_size(size: int | None) -> int | None:
    """Return a whole size as its column has it: null from 2^62 on."""
    return size if size is not None and size < LARGEST else None


def most_chips(setting: Setting, sizes: Mapping[str, int]) -> dict[str, Any]:
    """Return the most chips on which a split operation is compute-bound, and the next bottleneck.

    In a finite domain every number is tried. Otherwise numbers of chips with the same link rate
    (open lines, closed rings, whole groups) are searched by bisection: on these, once an operation
    is split too far, it stays so.
    """

    def compute_bound(chips: int) -> bool:
        return setting.bound(sizes, chips) == "compute"

    most, published = largest_domain(setting.links)
    inner = setting.links[0].domain if len(setting.links) > 1 else None
    joined: Callable[[int], bool] = lambda n: why_not_joined(setting.links, (n,)) is None  # noqa: E731
    if most is not None:
        good = [n for n in range(1, most + 1) if joined(n) and compute_bound(n)]
        best = max(good, default=0)
        following = next((n for n in range(best + 1, most + 1) if joined(n)), None)
    else:
        best = max((n for n in range(1, (inner or 1) + 1) if compute_bound(n)), default=0)
        for family in families(setting.links) if best else ():
            last = last_good(family, compute_bound)
            best = ENDLESS if last is None else max(best, last)
        following = best + 1
        if best >= ENDLESS:
            following = None
        elif inner is not None and best >= inner:
            following = (best // inner + 1) * inner
    outcome = "found" if best else "never"
    if best >= ENDLESS:
        outcome = "without-end"
    elif best and best == most:
        outcome = "always" if published else "domain-unknown"
    limit = None if following is None else setting.bound(sizes, following)
    number = best if outcome in ("found", "always") else None
    real = real_chips(setting, sizes) if outcome != "domain-unknown" else {"critical_exact": None}
    return {
        "outcome": outcome,
        "critical": number,
        **limit_of_split(setting, sizes, limit),
        **real,
    }


def largest_domain(links: Sequence[Link]) -> tuple[int | None, bool]:
    """Return the most chips along one axis, None without a limit, and whether it is published."""
    inner, *others = links
    if not others or inner.domain is None or not inner.published:
        return inner.domain, inner.published
    outer = others[0]
    if outer.domain is None:
        return None, True
    groups = outer.domain // inner.domain if outer.topology == "switch" else outer.domain
    return inner.domain * max(groups, 1), outer.published


def limit_of_split(setting: Setting, sizes: Mapping[str, int], limit: str | None) -> dict[str, Any]:
    """Return what limits a split, and what its intensity tends to: 0 if N times its work grows."""
    if limit is None:
        return {"limit": None, "limit_intensity": None}
    domain = setting.links[0].domain
    group = domain if len(setting.links) > 1 and domain is not None else 1
    two, three = (
        {name: chips * amount for name, amount in setting.work(sizes, chips).items()}
        for chips in (2 * group, 3 * group)
    )
    return {
        "limit": limit,
        "limit_intensity": Fraction(0) if three[limit] > two[limit] else two["math"] / two[limit],
    }


def real_chips(setting: Setting, sizes: Mapping[str, int]) -> dict[str, Fraction | None]:
    """Return the real number of chips up to which compute binds, if links have one rate for any."""
    if len(setting.links) > 1 or setting.links[0].topology != "switch" or setting.links[0].hop_s:
        return {}
    if setting.bound(sizes, 1) != "compute":
        return {"critical_exact": None}
    zeros = []
    for resource in RESOURCES[1:]:
        two, three = (
            chips * (setting.times(sizes, chips)["math"] - setting.times(sizes, chips)[resource])
            for chips in (2, 3)
        )
        if two != three:
            zeros.append(2 + two / (two - three))
    return {"critical_exact": min(zeros, default=None)}


def families(links: Sequence[Link]) -> list[Callable[[int], int]]:
    """Return families of numbers of chips, counted from 1, in which links have one rate.

    Of two levels: whole groups.
    """
    if len(links) > 1 and links[0].domain is not None:
        group = links[0].domain
        return [lambda k: k * group]
    ring = links[0].ring_multiple if links[0].topology == "torus" else None
    if ring is None or ring == 1:
        return [lambda k: k + 1]
    return [lambda k: k * ring, lambda k: k + (k - 1) // (ring - 1)]


def last_good(family: Callable[[int], int], good: Callable[[int], bool]) -> int | None:
    """Return the last good member of a family; 0: none; None: there is no last one."""
    if not good(family(1)):
        return 0
    high = 2
    while good(family(high)):
        high *= 2
        if high > 2 * ENDLESS:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if good(family(middle)) else (low, middle)
    return family(low) if family(low) <= ENDLESS else None


RATES = {"peak": "math", "memory_rate": "memory", "network_rate": "network"}
"""The resource of every rate that can be solved for."""


def factor_on(
    setting: Setting, resource: str, sizes: Mapping[str, int], chips: int
) -> dict[str, Any]:
    """Return the factor on a resource's rate at which a row becomes compute-bound.

    Every term of its work shrinks with the factor, the hops of a network do not.
    """
    terms, waits = setting.terms(sizes, chips), setting.waits(chips)
    math = terms["math"][0]
    fixed = waits if resource == "network" and len(terms["network"]) > 1 else []
    longest = max(("memory", "network"), key=lambda name: max(terms[name]))  # of a tie: memory
    most = max(terms[longest])
    factor: Fraction | None = Fraction(1)
    outcome, limit = "found", LABEL[longest]
    if math >= most:
        return {**NO_SIZE, "outcome": "always", "critical_exact": factor, "limit": None}
    others = {name: max(terms[name]) for name in ("memory", "network") if name != resource}
    if resource == "math":
        factor = math / most
    elif any(wait > math for wait in fixed):
        factor, limit = None, LABEL[resource]
    elif max(others.values()) > math:
        factor, limit = None, LABEL[max(others, key=lambda name: others[name])]
    else:
        factor, limit = max(terms[resource]) / math, LABEL[resource]
    if factor is None:
        outcome = "never"
    return {**NO_SIZE, "outcome": outcome, "critical_exact": factor, "limit": limit}


NO_SIZE = dict.fromkeys(("critical", "critical_memory", "critical_network", "limit_intensity"))
"""What thresholds of rates have none of."""


def thresholds(
    sweep: Mapping[str, Any],
    chips: Mapping[str, Any],
    dtypes: Mapping[str, Any],
    fits: Fits | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield the thresholds of a sweep: for each axis, a row for each supported combination."""
    operation = operation_of(sweep["operation"])
    supported = [row for row in rows(sweep, chips, dtypes, fits) if row.setting is not None]
    for axis, share in product(sweep["thresholds"], as_list(sweep.get("shares", [1]))):
        seen = set()
        for row in supported:
            assert row.setting is not None
            if axis == "shards" and (row.setting.sharding.split is None or not row.setting.links):
                continue
            gone = {} if axis in RATES else {axis: None}
            gone |= {"axes": None} if axis == "shards" and "axes" in row.keys else {}
            keys: dict[str, Any] = {**row.keys, "axis": axis, **row.sizes, **gone}
            if tuple(keys.values()) in seen:
                continue
            seen.add(tuple(keys.values()))
            setting, keys = at_share(row.setting, exact(share)), {**keys, "share": float(share)}
            if axis in RATES:
                yield {**keys, **factor_on(setting, RATES[axis], row.sizes, row.keys["shards"])}
            elif axis == "shards":
                yield {**keys, **most_chips(setting, row.sizes)}
            else:
                solved = thresholds_along(setting, axis, row.sizes, row.keys["shards"])
                yield {**keys, **solved, **(NO_ESTIMATE if share != 1 else {})}
    assert set(sweep["thresholds"]) <= {*operation.dims, "shards", *RATES}
