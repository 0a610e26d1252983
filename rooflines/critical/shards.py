"""The largest number of chips on which a split operation is compute-bound, in closed form.

On every segment of `split_lines` each resource bounds the number of chips from above, so the
largest number is a minimum over resources. It is Float64, rounded down after the bound on its own
error is added.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from rooflines.critical.solving import (
    MOST_SLACK,
    ROUNDING,
    TIED,
    WHOLE_PEAK,
    first_largest,
    solve_in_slices,
)
from rooflines.critical.split_lines import (
    ENDLESS,
    LINE,
    ODD_RING,
    RING,
    SINGLE,
    LineColumns,
    line_columns,
)
from rooflines.model.columns import ALWAYS, FOUND, NEVER, UNKNOWN
from rooflines.model.columns import ENDLESS as WITHOUT_END
from rooflines.model.resources import MATH, OTHERS, RESOURCES, Resource
from rooflines.sweep.metrics import quotient, work
from rooflines.sweep.operations import Variant
from rooflines.sweep.space import ChipVariant, axis_columns, keys_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from fractions import Fraction

    from rooflines.sweep.sweep import Sweep

DEGREE = 2
"""Of the polynomials in N."""


def polynomial(name: str) -> list[pl.Expr]:
    """Constant, slope and square of a constraint at a row's sizes [s]."""
    return [pl.col(f"{name}:{power}") for power in range(DEGREE + 1)]


def most_within(math_name: str, name: str, columns: LineColumns) -> dict[str, pl.Expr]:
    """Up to which number of chips t_math is at least one constraint, on a segment.

    It is the larger root of square N^2 + need N = room, from the form that does not cancel.

    Returns:
        `<name>:real` (below zero: none; infinite: every number), and `<name>:raised`, the same with
        the bound on its error added [1].
    """
    math0, math1, _ = polynomial(math_name)
    own0, own1, square = polynomial(name)
    room, need = math0 - own0, own1 - math1
    size = math0.abs() + own0.abs()
    if f"{name}:{DEGREE}" in columns.terms:
        root = (need * need + 4.0 * square * room.clip(0.0)).sqrt()
        found = (
            pl.when(need > 0)
            .then(quotient(2.0 * room, root + need))
            .when(square > 0)
            .then(quotient(root - need, 2.0 * square))
        )
    else:
        root = need
        found = pl.when(need > 0).then(quotient(room, need)).when(square > 0).then(math.inf)
    real = found.when(room >= -TIED * size).then(math.inf).otherwise(-1.0)
    error = ROUNDING * (8.0 * real.abs() + quotient(size, root))
    raised = pl.when(root > 0).then(real + error.clip(0.0, MOST_SLACK)).otherwise(real)
    return {f"{name}:real": real, f"{name}:raised": raised}


def whole_chips(most: pl.Expr, segment: str) -> pl.Expr:
    """The largest number of chips of a segment that is at most a real one [1]; 0: none."""
    least, step = pl.col(f"#least_{segment}"), pl.col(f"#step_{segment}")
    last = pl.min_horizontal(most.clip(-1.0, float(ENDLESS)), f"#most_{segment}").floor()
    joined = (last >= least) & (last >= 1.0)
    return pl.when(joined).then(last - (last - least) % step).otherwise(0.0)


def is_in(chips: pl.Expr, segment: str) -> pl.Expr:
    """Whether a number of chips is one of a segment."""
    least, step = pl.col(f"#least_{segment}"), pl.col(f"#step_{segment}")
    in_step = (chips - least) % step == 0
    return (chips >= least) & (chips <= pl.col(f"#most_{segment}")) & in_step


def segments_in(columns: LineColumns) -> list[str]:
    """The segments that any variant has; of several that have a number, the last one has it."""
    return [each for each in (SINGLE, LINE, RING, ODD_RING) if f"#most_{each}" in columns.values]


def bounds_of(columns: LineColumns) -> dict[str, pl.Expr]:
    """`most_within` for every constraint of the other resources, on every segment."""
    found: dict[str, pl.Expr] = {}
    for segment in segments_in(columns):
        (math_name,) = columns.constraints[MATH.name, segment]
        for name in names_of(OTHERS, segment, columns):
            found |= most_within(math_name, name, columns)
    return found


def names_of(resources: Iterable[Resource], segment: str, columns: LineColumns) -> list[str]:
    """The names of the constraints of resources on a segment."""
    return [
        name
        for resource in resources
        for name in columns.constraints.get((resource.name, segment), [])
    ]


def largest(resources: Sequence[Resource], columns: LineColumns) -> dict[str, pl.Expr]:
    """By segment: the largest joined number of chips that is compute-bound against resources.

    0: not even one; ENDLESS: no largest [1].
    """
    return {
        segment: whole_chips(
            least_of([f"{name}:raised" for name in names_of(resources, segment, columns)]), segment
        )
        for segment in segments_in(columns)
    }


def least_of(names: Sequence[str]) -> pl.Expr:
    """The least of several columns; infinite without any."""
    return pl.min_horizontal(*names) if names else pl.lit(math.inf)


def real_chips(columns: LineColumns) -> pl.Expr:
    """The real number of chips behind `#number`, by `#whole:<segment>` [1]."""
    reals = {
        segment: least_of([f"{name}:real" for name in names_of(OTHERS, segment, columns)])
        for segment in segments_in(columns)
    }
    number, real = pl.col("#number"), reals.get(LINE, reals[SINGLE])
    for segment in {RING, ODD_RING} & reals.keys():
        here = pl.col(f"#whole:{segment}") == number
        real = pl.when(here).then(reals[segment]).otherwise(real)
    return pl.when(number > 0).then(pl.max_horizontal(real, 1.0))


def time_at(resource: Resource, shards: pl.Expr, columns: LineColumns) -> pl.Expr:
    """N times a resource's time at N [s]."""
    time = pl.lit(0.0)
    for segment in segments_in(columns):
        names = columns.constraints.get((resource.name, segment), [])
        times = [c0 + shards * (c1 + shards * c2) for c0, c1, c2 in map(polynomial, names)]
        here = pl.max_horizontal(times) if times else pl.lit(0.0)
        time = pl.when(is_in(shards, segment)).then(here).otherwise(time)
    return time


def line_values(sweep: Sweep, columns: LineColumns) -> dict[str, pl.Expr]:
    """Every coefficient at a row's sizes; zero for one that no variant has."""
    names = [name for segment in columns.constraints.values() for name in segment]
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


def intensity_limits() -> dict[str, pl.Expr]:
    """By bound: what the intensity against a resource tends to as N grows [FLOP/byte].

    A constant work that limits is non-zero; FLOPs always scale as 1/N.
    """
    tends = {}
    for resource in OTHERS:
        constant, slope, _ = polynomial(f"#{resource.work}_")
        ratio = quotient(pl.col(f"#{MATH.work}_:0"), constant)
        tends[resource.bound] = pl.when(slope > 0).then(0.0).otherwise(ratio)
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
    """Adds the largest numbers of chips."""
    wholes = {f"#whole:{name}": whole for name, whole in largest(OTHERS, columns).items()}
    against = {
        f"#most:{each.name}": pl.max_horizontal(*largest([each], columns).values())
        for each in OTHERS
    }
    has_largest = pl.col("#number") < float(ENDLESS)  # ENDLESS + 1 is ENDLESS in Float64
    limited = has_largest & (pl.col("#next") <= pl.col("#most"))
    times = {each.bound: time_at(each, pl.col("#next"), columns) for each in OTHERS}
    tends = intensity_limits()
    finite = pl.col("#real").is_finite() & (pl.col("outcome") != UNKNOWN)
    return (
        frame.with_columns(**line_values(sweep, columns))
        .with_columns(**bounds_of(columns))
        .with_columns(**wholes, **against)
        .with_columns(**{"#number": pl.max_horizontal(*wholes)})
        .with_columns(**{"#next": next_chips(), "#real": real_chips(columns)})
        .with_columns(
            **{f"critical_{each.name}": stored(pl.col(f"#most:{each.name}")) for each in OTHERS},
            outcome=outcome(pl.col("#number")),
            critical=stored(pl.col("#number")),
            limit=pl.when(limited).then(first_largest(times, TIED)),
        )
        .with_columns(
            critical_exact=pl.when(finite).then("#real"),
            limit_intensity=pl.coalesce(
                pl.when(pl.col("limit") == bound).then(ratio) for bound, ratio in tends.items()
            ),
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
    )
