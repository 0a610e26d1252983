"""The largest number of chips on which a split operation is compute-bound, in closed form.

On every piece of `split_lines` each resource bounds the number of chips from above, so the largest
number is a minimum over resources. It is computed in Float64 together with a bound on its error;
rows in which the error could matter are solved in exact arithmetic.
"""

from __future__ import annotations

import math
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

import polars as pl

from rooflines.critical.shards_exact import solve_exactly
from rooflines.critical.solving import OTHERS, PRECISE, ROUNDING, UNSURE, solve_in_slices
from rooflines.critical.split_lines import (
    ENDLESS,
    ONE,
    OPEN,
    PAIR,
    RING,
    LineColumns,
    line_columns,
)
from rooflines.model.resources import MATH, RESOURCES, Resource
from rooflines.sweep.metrics import quotient, work
from rooflines.sweep.space import VARIANT, ChipVariant, axis_columns, keys_of
from rooflines.sweep.sweep import Sweep, Variant

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["shard_thresholds"]

CLOSE = 1e-12
"""Times that differ by a smaller share may be equal: which is larger is left to exact
arithmetic."""


def most_chips(resource: Resource, piece: str, columns: LineColumns) -> tuple[pl.Expr, pl.Expr]:
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


def whole_chips(real: pl.Expr, piece: str) -> pl.Expr:
    """The largest number of chips of a piece that is at most a real one and joined [1]; 0: none."""
    whole = pl.min_horizontal(real.clip(-1.0, float(ENDLESS)).floor(), "#domain")
    ring = pl.col("#ring")
    if piece == ONE:
        return pl.when(whole >= 1).then(1.0).otherwise(0.0)
    if piece == OPEN:  # if rings reach as far as lines, the piece of rings has the number
        pairs = pl.min_horizontal(whole, float(PAIR))  # with multiple 1 every N > 2 closes a ring
        whole = pl.when(ring == 1).then(pairs).otherwise(whole)
        return pl.when(whole >= PAIR).then(whole).otherwise(0.0)
    whole = pl.when((ring > 0) & (whole > PAIR)).then(whole - whole % ring).otherwise(0.0)
    return pl.when(whole > PAIR).then(whole).otherwise(0.0)


def largest(
    resources: Sequence[Resource], columns: LineColumns
) -> tuple[pl.Expr, pl.Expr, pl.Expr]:
    """The largest joined number of chips that is compute-bound against some resources.

    Returns:
        The number (0: not even one, ENDLESS: no largest), the real one behind it, and whether
        rounding leaves it unsure.
    """
    wholes, reals, unsure = {}, {}, []
    for piece in (ONE, OPEN, RING) if columns.rings else (ONE, OPEN):
        bounds = [most_chips(resource, piece, columns) for resource in resources]
        real = pl.min_horizontal([number for number, _ in bounds])
        error = pl.max_horizontal([error for _, error in bounds])
        beyond = pl.col("#domain") + 1.0
        low, high = ((real * (1 + sign * error)).clip(-1.0, beyond).floor() for sign in (-1, 1))
        exists = pl.col("#ring") > 0 if piece == RING else True
        unsure.append(((low != high) | (error > PRECISE)) & exists)
        wholes[piece], reals[piece] = whole_chips(real, piece), real
    number, real = pl.max_horizontal(*wholes.values()), reals[OPEN]
    if RING in wholes:
        on_rings = (wholes[RING] > 0) & (wholes[RING] == number)
        real = pl.when(on_rings).then(reals[RING]).otherwise(real)
    real = pl.when(number > 0).then(pl.max_horizontal(real, 1.0))
    return number, real, reduce(or_, unsure)


def time_at(resource: Resource, shards: pl.Expr, columns: LineColumns) -> pl.Expr:
    """N times a resource's time at N [s]."""

    def at(piece: str) -> pl.Expr:
        return pl.col(f"#{resource.name}_{piece}0") + pl.col(f"#{resource.name}_{piece}1") * shards

    ring = pl.col("#ring")
    several = at(OPEN)
    if columns.rings:
        closes = (ring > 0) & (shards > PAIR) & (shards % ring == 0)
        several = pl.when(closes).then(at(RING)).otherwise(several)
    latency = f"#latency_{resource.name}"
    if latency in columns.values:
        several = pl.max_horizontal(several, shards * (shards - 1.0) * pl.col(latency))
    return pl.when(shards > 1).then(several).otherwise(at(ONE))


def line_values(sweep: Sweep, columns: LineColumns) -> dict[str, pl.Expr]:
    """Constant and slope of every line at a row's sizes; zero for a line that no variant has."""
    pieces = [f"#{r.name}_{piece}" for r in RESOURCES for piece in (ONE, OPEN, RING)]
    lines = [*pieces, *(f"#{resource.work}_" for resource in RESOURCES)]
    return {
        **{f"{line}{power}": pl.lit(0.0) for line in lines for power in (0, 1)},
        **{name: work(sweep, "", terms, ()) for name, terms in columns.terms.items()},
    }


def next_limit() -> tuple[pl.Expr, pl.Expr]:
    """The bottleneck on one chip more, by the times `#next_<resource>`; and whether it may tie."""
    times = [pl.col(f"#next_{resource.name}") for resource in RESOURCES]
    worst = pl.max_horizontal(times)
    label: pl.Expr = pl.lit(RESOURCES[-1].bound)
    for resource, time in reversed(list(zip(RESOURCES[:-1], times[:-1], strict=True))):
        label = pl.when(time >= worst).then(pl.lit(resource.bound)).otherwise(label)
    close = pl.sum_horizontal((time >= worst * (1.0 - CLOSE)).cast(pl.UInt8) for time in times)
    return label, close > 1


def intensity_limits() -> dict[str, pl.Expr]:
    """`#tends_<bound>`: what the intensity against a resource tends to as N grows [FLOP/byte].

    A constant work that limits is non-zero; FLOPs always scale as 1/N.
    """
    tends = {}
    for resource in OTHERS:
        constant, slope = pl.col(f"#{resource.work}_0"), pl.col(f"#{resource.work}_1")
        ratio = quotient(pl.col(f"#{MATH.work}_0"), constant)
        tends[f"#tends_{resource.bound}"] = pl.when(slope > 0).then(0.0).otherwise(ratio)
    return tends


def stored(number: pl.Expr) -> pl.Expr:
    """A number of chips as the table has it [1]; null: not even one, or no largest."""
    return pl.when((number >= 1) & (number < float(ENDLESS))).then(number.cast(pl.Int64))


def solve(frame: pl.LazyFrame, sweep: Sweep, columns: LineColumns) -> pl.LazyFrame:
    """Adds the largest numbers of chips in Float64, and `#unsure` where it cannot decide."""
    number, real, number_unsure = largest(OTHERS, columns)
    against = {resource: largest([resource], columns) for resource in OTHERS}
    next_one = pl.col("#number") + 1.0
    limited = next_one <= pl.col("#domain")
    label, close = next_limit()
    tends: pl.Expr = pl.lit(None, dtype=pl.Float64)
    for bound in (resource.bound for resource in OTHERS):
        tends = pl.when(pl.col("limit") == bound).then(f"#tends_{bound}").otherwise(tends)
    return (
        frame.with_columns(**line_values(sweep, columns))
        .with_columns(
            **{
                "#number": number,
                "#real": real,
                UNSURE: number_unsure | reduce(or_, [own[2] for own in against.values()]),
            },
            **{f"critical_{resource.name}": stored(own[0]) for resource, own in against.items()},
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
            **{UNSURE: pl.col(UNSURE) | (limited & close), **intensity_limits()},
        )
        .with_columns(limit_intensity=tends)
    )


def split_variants(sweep: Sweep) -> list[ChipVariant]:
    """Every dtype combination and split of a sweep, on every chip that has an interconnect."""
    splits = [name for name, scheme in sweep.shardings.items() if scheme.split]
    return [
        (chip_rows, Variant(dtypes, split, 1))
        for chip_rows in sweep.by_chip
        if chip_rows.network
        for dtypes in dict.fromkeys(variant.dtypes for variant in chip_rows.variants)
        for split in splits
    ]


def shard_thresholds(sweep: Sweep) -> Iterator[pl.DataFrame]:
    """Thresholds in the number of chips, in slices."""
    variants = split_variants(sweep)
    if not variants:
        return
    columns = line_columns(sweep, variants)
    constants = {
        name: pl.Series(values, dtype=pl.Float64) for name, values in columns.values.items()
    }
    spans = {
        f"#span_{dim}": pl.Series([tile] * len(variants), dtype=pl.Int64)
        for dim, tile in sweep.tile.items()
    }
    yield from solve_in_slices(
        [
            {**keys_of(sweep, variants), **constants, **spans},
            *map(axis_columns, sweep.leading),
            *map(axis_columns, sweep.inner),
        ],
        lambda frame: solve(frame, sweep, columns),
        lambda row: solve_exactly(sweep, variants[row[VARIANT]], row),
    )
