"""How far can an operation be split and stay compute-bound? The largest number of chips, in closed form.

N times a time is affine in N: constant for math, alpha + beta N for memory, gamma (N - 1) for a collective over links that do not
change with N. Where the topology changes the rate it is affine piece by piece: a mesh adds a link with every chip, and a torus has
twice the rate where N closes it into a ring. On every piece each resource then bounds N from above, so the largest N is a minimum.
The lines are drawn through two points of the very formulas that fill the tables; only a latency, whose hops grow with N, is quadratic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import or_
from typing import Any

import polars as pl

from rooflines.critical.solving import PRECISE, ROUNDING, solved
from rooflines.model.costs import evaluate, extent
from rooflines.model.resources import MATH, RESOURCES, Resource
from rooflines.model.target import Link
from rooflines.sweep.quotient import quotient
from rooflines.sweep.rows import exact_time, work
from rooflines.sweep.space import VARIANT, Served, axis_columns, keys_of
from rooflines.sweep.sweep import Sweep, Variant

__all__ = ["shard_thresholds"]

OTHERS = [resource for resource in RESOURCES if resource is not MATH]
ENDLESS = 2**53
"""Chips beyond which nobody counts: a split that stays compute-bound up to here has no largest number [1]."""

Line = Mapping[tuple[str, ...], tuple[Fraction, Fraction]]
"""For every product of extents: constant and slope in N."""


@dataclass(frozen=True)
class Piece:
    """Numbers of chips over which every time is smooth.

    Attributes:
        name: For columns.
        samples: Two of them, or one twice where there is no other.
    """

    name: str
    samples: tuple[int, int]


ONE, OPEN, RING = "one", "open", "ring"


def pieces(sweep: Sweep, served: Served) -> list[Piece]:
    """One chip alone, several chips, and where the interconnect is a torus that closes, the rings."""
    found = [Piece(ONE, (1, 1)), Piece(OPEN, (2, 3))]
    multiple = ring_multiple(sweep, served)
    if multiple:
        found[1] = Piece(OPEN, (2, multiple + 1))
        found.append(Piece(RING, (3 * multiple, 4 * multiple)))
    return found


def link_of(sweep: Sweep, served: Served) -> Link:
    """The interconnect of a chip that has one."""
    chip_rows = served[0]
    return sweep.chips[chip_rows.chip].networks[str(chip_rows.network)].exact


def domain_of(sweep: Sweep, served: Served) -> int | None:
    """The most chips that a chip's interconnect joins; None where no limit is known [1]."""
    return link_of(sweep, served).chips_joined


def ring_multiple(sweep: Sweep, served: Served) -> int | None:
    """Where a torus closes into rings; None where it never does [1]."""
    link = link_of(sweep, served)
    return link.ring_multiple if link.topology == "torus" else None


def on(served: Served, shards: int) -> Served:
    """The same scenario on another number of chips."""
    chip_rows, variant = served
    return chip_rows, Variant(variant.dtypes, variant.sharding, shards)


def line(
    values: Callable[[int], Mapping[tuple[str, ...], Fraction]], samples: tuple[int, int]
) -> Line:
    """The line through N times a function's values at two N, for every product of extents."""
    first, second = samples
    low, high = values(first), values(second)
    lines = {}
    for dims in low:  # on one piece the products are the same ones
        at_low, at_high = low[dims] * first, high[dims] * second
        slope = Fraction(at_high - at_low, second - first) if second > first else Fraction(0)
        lines[dims] = (at_low - slope * first, slope)
    return lines


def time_line(sweep: Sweep, served: Served, resource: Resource, piece: Piece) -> Line:
    """N times the time that a resource's work takes, for every product of extents [s per extents]."""

    def values(shards: int) -> Mapping[tuple[str, ...], Fraction]:
        at = on(served, shards)
        rate = resource.rate(sweep.target(*at))
        return (
            {dims: c / rate.per_s for dims, c in sweep.case(at[1]).costs[resource.work].items()}
            if rate
            else {}
        )

    return line(values, piece.samples)


def work_line(sweep: Sweep, served: Served, resource: Resource) -> Line:
    """N times a resource's work, for every product of extents [work per extents]."""
    return line(lambda shards: sweep.case(on(served, shards)[1]).costs[resource.work], (2, 3))


def latency_per_hop(sweep: Sweep, served: Served, resource: Resource) -> Fraction:
    """The latency of a resource on two chips; it grows with N - 1 [s]."""
    rate = resource.rate(sweep.target(*on(served, 2)))
    return rate.latency_s if rate else Fraction(0)


class Columns:
    """Columns of coefficients, one value for each scenario; lines of one name share theirs."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.values: dict[str, list[float]] = {}
        self.terms: dict[str, dict[tuple[str, ...], str]] = {}

    def put(self, name: str, index: int, lines: Line) -> None:
        """Note a line, as the columns `<name>0` (constants) and `<name>1` (slopes)."""
        for dims, coefficients in lines.items():
            for power, coefficient in enumerate(coefficients):
                column = f"{name}{power}:{','.join(dims)}"
                self.terms.setdefault(f"{name}{power}", {})[dims] = column
                self.number(column, index, float(coefficient))

    def number(self, column: str, index: int, value: float) -> None:
        """Note a number."""
        self.values.setdefault(column, [0.0] * self.count)[index] = value


def line_columns(sweep: Sweep, served: Sequence[Served]) -> Columns:
    """The lines of all resources on all pieces: `#<resource>_<piece>`, of their works: `#<work>_`, latencies: `#latency_<resource>`."""
    columns = Columns(len(served))
    for index, each in enumerate(served):
        for resource in RESOURCES:
            for piece in pieces(sweep, each):
                columns.put(
                    f"#{resource.name}_{piece.name}", index, time_line(sweep, each, resource, piece)
                )
            columns.put(f"#{resource.work}_", index, work_line(sweep, each, resource))
            latency = latency_per_hop(sweep, each, resource)
            if latency:
                columns.number(f"#latency_{resource.name}", index, float(latency))
        columns.number("#ring", index, float(ring_multiple(sweep, each) or 0))
        columns.number("#domain", index, float(domain_of(sweep, each) or ENDLESS))
    return columns


def most_chips(resource: Resource, piece: str, columns: Columns) -> tuple[pl.Expr, pl.Expr]:
    """The real number of chips up to which t_math is at least one resource's time, on a piece.

    Returns:
        The number (below zero: none; infinite: every), and the bound on its relative error.
    """
    math0, math1, own0, own1 = (
        pl.col(f"#{name}_{piece}{power}") for name in (MATH.name, resource.name) for power in (0, 1)
    )
    room, need = math0 - own0, own1 - math1
    size = math0.abs() + own0.abs()
    linear = (
        pl.when(need > 0).then(quotient(room, need)).when(room >= 0).then(math.inf).otherwise(-1.0)
    )
    error = ROUNDING * (2.0 + size / room.abs())
    latency = f"#latency_{resource.name}"
    if latency not in columns.values or piece == ONE:
        return linear, error
    hop = pl.col(latency)
    half = hop + math1
    root = (half * half + 4.0 * hop * math0).sqrt()
    quadratic = (
        pl.when(half < 0)
        .then(quotient(2.0 * math0, root - half))
        .otherwise(quotient(half + root, 2.0 * hop))
    )
    quadratic = pl.when(hop > 0).then(quadratic).otherwise(math.inf)
    return pl.min_horizontal(linear, quadratic), error + ROUNDING * 4.0


def largest(resources: Sequence[Resource], columns: Columns) -> tuple[pl.Expr, pl.Expr, pl.Expr]:
    """The largest number of chips, of those the interconnect joins, that is compute-bound against some resources.

    Returns:
        The number (0: not even one, above ENDLESS: no largest), the real one behind it, and whether rounding leaves it unsure.
    """
    found, reals, unsure = [], {}, []
    names = [ONE, OPEN, *([RING] if any(columns.values["#ring"]) else [])]
    for piece in names:
        bounds = [most_chips(resource, piece, columns) for resource in resources]
        real = pl.min_horizontal([number for number, _ in bounds])
        error = pl.max_horizontal([error for _, error in bounds])
        top = pl.col("#domain") + 1.0
        low, high = ((real * (1 + sign * error)).clip(-1.0, top).floor() for sign in (-1, 1))
        whole = pl.min_horizontal(real.clip(-1.0, float(ENDLESS)).floor(), "#domain")
        ring = pl.col("#ring")
        unsure.append(((low != high) | (error > PRECISE)) & ((ring > 0) if piece == RING else True))
        if piece == ONE:
            whole = pl.when(whole >= 1).then(1.0).otherwise(0.0)
        elif piece == OPEN:
            whole = (
                pl.when(ring == 1).then(pl.min_horizontal(whole, 2.0)).otherwise(whole)
            )  # all but a pair are rings
            whole = pl.when(whole >= 2).then(whole).otherwise(0.0)  # noqa: PLR2004, where it closes a ring, rings go as far
        else:
            whole = pl.when((ring > 0) & (whole > 2)).then(whole - whole % ring).otherwise(0.0)  # noqa: PLR2004, two are a pair
            whole = pl.when(whole > 2).then(whole).otherwise(0.0)  # noqa: PLR2004
        found.append(whole)
        reals[piece] = real
    number = pl.max_horizontal(found)
    real = (
        reals[OPEN]
        if RING not in reals
        else pl.when((found[-1] > 0) & (found[-1] == number))
        .then(reals[RING])
        .otherwise(reals[OPEN])
    )
    real = pl.when(number > 0).then(pl.max_horizontal(real, 1.0))
    return number, real, reduce(or_, unsure)


def time_at(resource: Resource, shards: pl.Expr, columns: Columns) -> pl.Expr:
    """N times a resource's time at N [s]."""

    def at(piece: str) -> pl.Expr:
        return pl.col(f"#{resource.name}_{piece}0") + pl.col(f"#{resource.name}_{piece}1") * shards

    ring = pl.col("#ring")
    several = at(OPEN)
    if any(columns.values["#ring"]):
        several = (
            pl.when((ring > 0) & (shards > 2) & (shards % ring == 0))  # noqa: PLR2004
            .then(at(RING))
            .otherwise(several)
        )
    latency = f"#latency_{resource.name}"
    if latency in columns.values:
        several = pl.max_horizontal(several, shards * (shards - 1.0) * pl.col(latency))
    return pl.when(shards > 1).then(several).otherwise(at(ONE))


def solve(frame: pl.LazyFrame, sweep: Sweep, columns: Columns) -> pl.LazyFrame:
    """Adds the thresholds in the number of chips, as far as Float64 can tell, and `#unsure` where it cannot."""
    everyone = largest(OTHERS, columns)
    alone = {resource: largest([resource], columns) for resource in OTHERS}
    lines = {name: work(sweep, "", terms, ()) for name, terms in columns.terms.items()}
    empty = [
        f"#{resource.name}_{piece}{power}"
        for resource in RESOURCES
        for piece in (ONE, OPEN, RING)
        for power in (0, 1)
    ] + [f"#{resource.work}_{power}" for resource in RESOURCES for power in (0, 1)]
    next_one = pl.col("#number") + 1.0
    times = [pl.col(f"#next_{resource.name}") for resource in RESOURCES]
    worst = pl.max_horizontal(times)
    label: pl.Expr = pl.lit(RESOURCES[-1].bound)
    for resource, time in reversed(list(zip(RESOURCES[:-1], times[:-1], strict=True))):
        label = pl.when(time >= worst).then(pl.lit(resource.bound)).otherwise(label)
    close = pl.sum_horizontal((time >= worst * (1.0 - 1e-12)).cast(pl.UInt8) for time in times) > 1
    limited = next_one <= pl.col("#domain")
    tends = {}
    for resource in OTHERS:  # work that does not grow is there where it limits, and no partial sums are: all FLOPs are split
        constant, slope = pl.col(f"#{resource.work}_0"), pl.col(f"#{resource.work}_1")
        still = quotient(pl.col(f"#{MATH.work}_0"), constant)
        tends[f"#tends_{resource.bound}"] = pl.when(slope > 0).then(0.0).otherwise(still)
    tend: pl.Expr = pl.lit(None, dtype=pl.Float64)
    for resource in OTHERS:
        tend = (
            pl.when(pl.col("limit") == resource.bound)
            .then(f"#tends_{resource.bound}")
            .otherwise(tend)
        )

    def stored(number: pl.Expr) -> pl.Expr:
        return pl.when((number >= 1) & (number < float(ENDLESS))).then(number.cast(pl.Int64))

    return (
        frame.with_columns(**{name: lines.get(name, pl.lit(0.0)) for name in empty})
        .with_columns(
            **{
                "#number": everyone[0],
                "#real": everyone[1],
                "#unsure": everyone[2] | reduce(or_, [a[2] for a in alone.values()]),
            },
            **{f"critical_{resource.name}": stored(a[0]) for resource, a in alone.items()},
        )
        .with_columns(
            **{
                f"#next_{resource.name}": time_at(resource, next_one, columns)
                for resource in RESOURCES
            }
        )
        .with_columns(
            critical=stored(pl.col("#number")),
            critical_exact=pl.when(pl.col("#real").is_finite()).then("#real"),
            limit=pl.when(limited & (pl.col("#number") < float(ENDLESS))).then(label),
            **{"#unsure": pl.col("#unsure") | (limited & close), **tends},
        )
        .with_columns(limit_intensity=tend)
    )


def settle(sweep: Sweep, served: Served, row: Mapping[str, Any]) -> dict[str, Any]:
    """The thresholds of one row in exact arithmetic, from the times of the table themselves."""
    sizes = {dim: row[dim] for dim in sweep.op.dims}
    top = domain_of(sweep, served) or ENDLESS
    multiple = ring_multiple(sweep, served)

    def times(shards: int) -> list[Fraction]:
        chip_rows, variant = on(served, shards)
        return [exact_time(sweep, chip_rows, variant, resource, sizes) for resource in RESOURCES]

    def most(resources: Iterable[Resource]) -> int:
        places = [RESOURCES.index(resource) for resource in resources]

        def holds(shards: int) -> bool:
            t = times(shards)
            return all(t[0] >= t[place] for place in places)

        found = [n for n in (1, 2) if n <= top and holds(n)]
        if multiple:
            found.append(last_of(lambda n: n * multiple, holds, top))
        if multiple is None:
            found.append(last_of(lambda n: n + 1, holds, top))
        elif multiple > 1:
            found.append(last_of(lambda n: n + 1 + n // (multiple - 1), holds, top))
        return max(found)

    number = most(OTHERS)
    following = number + 1
    limit = None
    if following <= top:
        t = times(following)
        limit = RESOURCES[t.index(max(t))].bound
    real = real_chips(sweep, served, number, sizes) if number else math.inf
    return {
        "critical_exact": real if math.isfinite(real) else None,
        "critical": number if 1 <= number < ENDLESS else None,
        **{f"critical_{r.name}": n if 1 <= (n := most([r])) < ENDLESS else None for r in OTHERS},
        "limit": limit,
        "limit_intensity": row[f"#tends_{limit}"] if limit else None,
    }


def real_chips(sweep: Sweep, served: Served, number: int, sizes: Mapping[str, int]) -> float:
    """The real number of chips behind a whole one, by exact lines; infinite: there is no end."""
    extents = {dim: extent(sweep.case(served[1]), dim, size) for dim, size in sizes.items()}
    ring = number > 2 and number % (ring_multiple(sweep, served) or number + 1) == 0  # noqa: PLR2004, two chips are a pair
    piece = pieces(sweep, served)[2 if ring else 1]

    def times(resource: Resource) -> tuple[Fraction, Fraction]:
        lines = time_line(sweep, served, resource, piece).items()
        constant, slope = (
            evaluate({dims: terms[power] for dims, terms in lines}, extents) for power in (0, 1)
        )
        return constant, slope

    math0, math1 = times(MATH)
    found = [math.inf]
    for resource in OTHERS:
        own0, own1 = times(resource)
        if own1 > math1:
            found.append(float((math0 - own0) / (own1 - math1)))
        elif own0 > math0:
            found.append(0.0)
        hop = latency_per_hop(sweep, served, resource)
        if hop:
            half = hop + math1
            root = math.sqrt(half * half + 4 * hop * math0)
            found.append(
                float(2 * math0) / (root - float(half))
                if half < 0
                else (float(half) + root) / float(2 * hop)
            )
    return max(1.0, min(found))


def last_of(number: Callable[[int], int], holds: Callable[[int], bool], top: int) -> int:
    """The last of the numbers of chips number(1), number(2), ... up to `top` that holds, two chips left out; 0: none.

    Args:
        number: An increasing sequence.
        holds: A condition that once it fails along the sequence stays failed.
        top: The most chips [1].
    """
    low, high = 0, top
    while low < high:
        middle = (low + high + 1) // 2
        chips = number(middle)
        if chips <= top and (chips <= 2 or holds(chips)):  # noqa: PLR2004, a pair is no ring
            low = middle
        else:
            high = middle - 1
    return number(low) if low and number(low) > 2 else 0  # noqa: PLR2004


def shard_thresholds(sweep: Sweep) -> Iterator[pl.DataFrame]:
    """Thresholds in the number of chips, in slices."""
    splits = [name for name, scheme in sweep.shardings.items() if scheme.split]
    served: list[Served] = []
    for chip_rows in sweep.by_chip:
        dtypes = dict.fromkeys(variant.dtypes for variant in chip_rows.variants)
        served.extend(
            (chip_rows, Variant(name, split, 1))
            for name in dtypes
            for split in splits
            if chip_rows.network
        )
    if not served:
        return
    columns = line_columns(sweep, served)
    constants = {
        name: pl.Series(values, dtype=pl.Float64) for name, values in columns.values.items()
    }
    spans = {
        f"#span_{dim}": pl.Series([tile] * len(served), dtype=pl.Int64)
        for dim, tile in sweep.tile.items()
    }
    axes = [
        {**keys_of(sweep, served), **constants, **spans},
        *map(axis_columns, sweep.leading),
        *map(axis_columns, sweep.inner),
    ]
    yield from solved(
        axes,
        lambda frame: solve(frame, sweep, columns),
        lambda row: settle(sweep, served[row[VARIANT]], row),
    )
