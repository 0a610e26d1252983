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
from rooflines.critical.solving import (
    PRECISE,
    ROUNDING,
    UNSURE,
    WHOLE_PEAK,
    solve_in_slices,
)
from rooflines.critical.split_lines import ENDLESS, FAR, NEAR, ONE, LineColumns, line_columns
from rooflines.model.columns import ALWAYS, FOUND, NEVER, UNKNOWN
from rooflines.model.columns import ENDLESS as WITHOUT_END
from rooflines.model.network import PAIR
from rooflines.model.resources import MATH, OTHERS, RESOURCES, Resource
from rooflines.sweep.metrics import quotient, work
from rooflines.sweep.space import VARIANT, ChipVariant, axis_columns, keys_of
from rooflines.sweep.support import Variant

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from fractions import Fraction

    from rooflines.sweep.sweep import Sweep

DEGREE = 2
"""Of the polynomials in N."""

CLOSE = 1e-12
"""Times that differ by a smaller share may be equal: which is larger is left to exact
arithmetic."""


def polynomial(name: str) -> list[pl.Expr]:
    """Constant, slope and square of a constraint at a row's sizes [s]."""
    return [pl.col(f"{name}:{power}") for power in range(DEGREE + 1)]


def most_within(math_name: str, name: str, columns: LineColumns) -> tuple[pl.Expr, pl.Expr]:
    """The real number of chips up to which t_math is at least one constraint, on a piece.

    Returns:
        The number (below zero: none; infinite: every), and the bound on its relative error.
    """
    math0, math1, _ = polynomial(math_name)
    own0, own1, own2 = polynomial(name)
    room, need = math0 - own0, own1 - math1
    size = math0.abs() + own0.abs()
    real = (
        pl.when(need > 0).then(quotient(room, need)).when(room >= 0).then(math.inf).otherwise(-1.0)
    )
    error = ROUNDING * (2.0 + size / room.abs())
    if f"{name}:{DEGREE}" not in columns.terms:
        return real, error
    root = (need * need + 4.0 * own2 * room.clip(0.0)).sqrt()
    quadratic = (
        pl.when(need > 0)
        .then(quotient(2.0 * room, root + need))
        .otherwise(quotient(root - need, 2.0 * own2))
    )
    return pl.when(own2 > 0).then(quadratic).otherwise(real), error + ROUNDING * 4.0


def whole_chips(real: pl.Expr, piece: str) -> pl.Expr:
    """The largest number of chips of a piece that is at most a real one and joined [1]; 0: none."""
    whole = pl.min_horizontal(real.clip(-1.0, float(ENDLESS)).floor(), "#most")
    if piece == ONE:
        return pl.when(whole >= 1).then(1.0).otherwise(0.0)
    if piece == NEAR:  # if rings reach as far as lines, the piece of rings has the number
        whole = pl.min_horizontal(whole, "#near")
        return pl.when(whole >= PAIR).then(whole).otherwise(0.0)
    step = pl.col("#step")
    whole = pl.when(step > 0).then(whole - whole % step).otherwise(0.0)
    return pl.when(whole >= pl.col("#least_far")).then(whole).otherwise(0.0)


def largest(
    resources: Sequence[Resource], columns: LineColumns
) -> tuple[pl.Expr, pl.Expr, pl.Expr]:
    """The largest joined number of chips that is compute-bound against some resources.

    Returns:
        The number (0: not even one, ENDLESS: no largest), the real one behind it, and whether
        rounding leaves it unsure.
    """
    wholes, reals, unsure = {}, {}, [pl.col("#uneven") > 0]
    for piece in (ONE, NEAR, FAR):
        if (MATH.name, piece) not in columns.constraints:
            continue
        (math_name,) = columns.constraints[MATH.name, piece]
        bounds = [
            most_within(math_name, name, columns)
            for resource in resources
            for name in columns.constraints.get((resource.name, piece), [])
        ]
        real = pl.min_horizontal([pl.lit(math.inf), *(number for number, _ in bounds)])
        error = pl.max_horizontal([pl.lit(0.0), *(error for _, error in bounds)])
        beyond = pl.col("#most") + 1.0
        low, high = ((real * (1 + sign * error)).clip(-1.0, beyond).floor() for sign in (-1, 1))
        exists = pl.col("#step") > 0 if piece == FAR else True
        unsure.append(((low != high) | (error > PRECISE)) & exists)
        wholes[piece], reals[piece] = whole_chips(real, piece), real
    number, real = pl.max_horizontal(*wholes.values()), reals[NEAR]
    if FAR in wholes:
        on_far = (wholes[FAR] > 0) & (wholes[FAR] == number)
        real = pl.when(on_far).then(reals[FAR]).otherwise(real)
    real = pl.when(number > 0).then(pl.max_horizontal(real, 1.0))
    return number, real, reduce(or_, unsure)


def time_at(resource: Resource, shards: pl.Expr, columns: LineColumns) -> pl.Expr:
    """N times a resource's time at N [s]."""

    def at(piece: str) -> pl.Expr:
        names = columns.constraints.get((resource.name, piece), [])
        times = [c0 + shards * (c1 + shards * c2) for c0, c1, c2 in map(polynomial, names)]
        return pl.max_horizontal(times) if times else pl.lit(0.0)

    step = pl.col("#step")
    is_far = (step > 0) & (shards >= pl.col("#least_far")) & (shards % step == 0)
    return pl.when(shards <= 1).then(at(ONE)).when(is_far).then(at(FAR)).otherwise(at(NEAR))


def line_values(sweep: Sweep, columns: LineColumns) -> dict[str, pl.Expr]:
    """Every coefficient at a row's sizes; zero for one that no variant has."""
    names = [name for piece in columns.constraints.values() for name in piece]
    names += [f"#{resource.work}_" for resource in RESOURCES]
    return {
        **{f"{name}:{power}": pl.lit(0.0) for name in names for power in range(DEGREE + 1)},
        **{
            name: work(sweep, of_work, terms, ())
            for name, (of_work, terms) in columns.terms.items()
        },
    }


def next_chips() -> pl.Expr:
    """The next number of chips that may be joined, after `#number` [1]."""
    number, group = pl.col("#number"), pl.col("#group")
    in_groups = (group > 0) & (number >= group)
    return pl.when(in_groups).then(number - number % group + group).otherwise(number + 1.0)


def next_limit() -> tuple[pl.Expr, pl.Expr]:
    """The bottleneck on the next number of chips, by `#next_<resource>`; and whether it may tie."""
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
        constant, slope, _ = polynomial(f"#{resource.work}_")
        ratio = quotient(pl.col(f"#{MATH.work}_:0"), constant)
        tends[f"#tends_{resource.bound}"] = pl.when(slope > 0).then(0.0).otherwise(ratio)
    return tends


def stored(number: pl.Expr) -> pl.Expr:
    """A number of chips as the table has it [1]; null: not even one, no largest, or unknown."""
    return pl.when(outcome(number).is_in([FOUND, ALWAYS])).then(number.cast(pl.Int64))


def outcome(number: pl.Expr) -> pl.Expr:
    """What a largest number of chips is: one of `columns.OUTCOMES`."""
    whole_domain = number >= pl.col("#most")
    return (
        pl.when(number < 1)
        .then(pl.lit(NEVER))
        .when(number >= float(ENDLESS))
        .then(pl.lit(WITHOUT_END))
        .when(whole_domain & (pl.col("#unpublished") > 0))
        .then(pl.lit(UNKNOWN))
        .when(whole_domain)
        .then(pl.lit(ALWAYS))
        .otherwise(pl.lit(FOUND))
    )


def solve(frame: pl.LazyFrame, sweep: Sweep, columns: LineColumns) -> pl.LazyFrame:
    """Adds the largest numbers of chips in Float64, and `#unsure` where it cannot decide."""
    number, real, number_unsure = largest(OTHERS, columns)
    against = {resource: largest([resource], columns) for resource in OTHERS}
    has_largest = pl.col("#number") < float(ENDLESS)  # ENDLESS + 1 is ENDLESS in Float64
    limited = has_largest & (pl.col("#next") <= pl.col("#most"))
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
        .with_columns(**{"#next": next_chips()})
        .with_columns(
            **{
                f"#next_{resource.name}": time_at(resource, pl.col("#next"), columns)
                for resource in RESOURCES
            }
        )
        .with_columns(
            outcome=outcome(pl.col("#number")),
            critical=stored(pl.col("#number")),
            limit=pl.when(limited).then(label),
            **{UNSURE: pl.col(UNSURE) | (limited & close), **intensity_limits()},
        )
        .with_columns(
            critical_exact=pl.when(
                pl.col("#real").is_finite() & (pl.col("outcome") != UNKNOWN)
            ).then("#real"),
            limit_intensity=tends,
        )
    )


def split_variants(sweep: Sweep) -> list[ChipVariant]:
    """Every dtype combination and split of a sweep, on every chip that has an interconnect."""
    splits = [name for name, scheme in sweep.shardings.items() if scheme.split]
    return [
        (chip_rows, Variant(dtypes, split, (1,)))
        for chip_rows in sweep.by_chip
        if chip_rows.network
        for dtypes in dict.fromkeys(variant.dtypes for variant in chip_rows.variants)
        for split in splits
    ]


def shard_thresholds(sweep: Sweep, share: Fraction = WHOLE_PEAK) -> Iterator[pl.DataFrame]:
    """Thresholds in the number of chips for a share of the attainable peak, in slices."""
    variants = split_variants(sweep)
    if not variants:
        return
    columns = line_columns(sweep, variants, share)
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
        lambda row: solve_exactly(sweep, variants[row[VARIANT]], row, share),
    )
