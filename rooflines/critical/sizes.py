"""The smallest compute-bound size along every dimension, in closed form, exact to the last integer.

Every time is affine in every single extent, t_r(n) = a_r n + b_r. So t_math(n) >= t_r(n) from n =
(b_r - b_math) / (a_math - a_r) on, if a_math > a_r; otherwise always or never. This is computed in
Float64 together with a bound on its error. Rows in which the error could change an integer, a sign
or the tenth digit are solved in exact rational arithmetic: on ordinary grids one row in thousands.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial, reduce
from operator import or_
from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.numbers import LARGEST_COUNT
from rooflines.critical.estimates import CriticalEstimates
from rooflines.critical.solving import (
    PRECISE,
    ROUNDING,
    UNSURE,
    WHOLE_PEAK,
    Solution,
    rate_at,
    solve_in_slices,
)
from rooflines.model.columns import ALWAYS, BEYOND, FOUND, NEVER
from rooflines.model.costs import TILED, evaluate, extents
from rooflines.model.resources import MATH, OTHERS, RESOURCES, Rate, Resource
from rooflines.sweep.metrics import quotient, work
from rooflines.sweep.space import VARIANT, ChipVariant, Coefficients, axis_columns, variant_columns

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from rooflines.model.costs import Workload
    from rooflines.sweep.sweep import Sweep

ExactLine = tuple[Fraction, Fraction]
"""Slope and constant along an axis."""


def constraints(resource: Resource, columns: Container[str]) -> list[tuple[str, str]]:
    """The lines that t_math has to reach for one resource, as (slope, constant) columns.

    One line is the time of its work; a resource with a latency has a second, constant one.
    """
    latency = f"#latency_{resource.name}"
    return [
        (f"#a_{resource.name}", f"#b_{resource.name}"),
        *([("#zero", latency)] if latency in columns else []),
    ]


def affine(
    sweep: Sweep, axis: str, coefficients: Coefficients, columns: Container[str]
) -> dict[str, pl.Expr]:
    """Slope and constant of every work and of every time along an axis.

    Along a tiled axis a work that counts sizes is taken at the last size of each tile, its largest:
    from a threshold on, every size has to be compute-bound.

    Returns:
        `#slope_<work>` [work per extent], `#a_<resource>` [s per extent], `#b_<resource>` [s].
    """
    lines: dict[str, pl.Expr] = {"#zero": pl.lit(0.0)}
    for resource in RESOURCES:
        terms = coefficients[resource.work]
        along = {
            tuple(d for d in dims if d != axis): name
            for dims, name in terms.items()
            if axis in dims
        }
        apart = {dims: name for dims, name in terms.items() if axis not in dims}
        rate = pl.col(f"#rate_{resource.name}")
        slope = work(sweep, resource.work, along, columns)
        if axis in sweep.tile and resource.work not in TILED:
            slope = slope * pl.col(f"#span_{axis}")
        lines[f"#slope_{resource.work}"] = slope
        lines[f"#a_{resource.name}"] = quotient(slope, rate)
        lines[f"#b_{resource.name}"] = quotient(work(sweep, resource.work, apart, columns), rate)
    return lines


def solution(slope: str, constant: str) -> tuple[pl.Expr, pl.Expr, pl.Expr]:
    """Where t_math overtakes one constraint.

    Returns:
        The real extent (null: never), the bound on its relative error, and whether rounding may
        have changed the sign of the difference of slopes.
    """
    a_math, b_math = pl.col(f"#a_{MATH.name}"), pl.col(f"#b_{MATH.name}")
    gain, size = a_math - pl.col(slope), a_math + pl.col(slope)
    real = pl.when(gain > 0).then(quotient(pl.col(constant) - b_math, gain))
    return real, ROUNDING * (2.0 + size / gain.abs()), gain.abs() <= ROUNDING * 4.0 * size


def against(resource: Resource, columns: Container[str]) -> dict[str, pl.Expr]:
    """The threshold against one resource, in extents.

    Returns:
        `#real_<resource>` (null: never) and `#error_<resource>` [1], and `#unsure_<resource>`.
    """
    solutions = [solution(*constraint) for constraint in constraints(resource, columns)]
    never = reduce(or_, [real.is_null() for real, _, _ in solutions])
    real = pl.when(~never).then(pl.max_horizontal([real for real, _, _ in solutions]))
    error = pl.max_horizontal([error for _, error, _ in solutions])
    ambiguous = real.is_not_null() & (
        ((real * (1 - error)).ceil() != (real * (1 + error)).ceil()) | (error > PRECISE)
    )
    unsure = reduce(or_, [unsure for _, _, unsure in solutions])
    return {
        f"#real_{resource.name}": real,
        f"#error_{resource.name}": error,
        f"#unsure_{resource.name}": unsure | ambiguous,
    }


def limits() -> tuple[pl.Expr, pl.Expr]:
    """The bottleneck below the threshold, and whether rounding leaves it unsure.

    It is the resource that t_math reaches last or, of those that it never reaches, the one that
    grows fastest.
    """
    name: pl.Expr = pl.lit(OTHERS[0].bound)
    best = OTHERS[0].name
    never, key, error = pl.col(f"#real_{best}").is_null(), _rank(best), pl.col(f"#error_{best}")
    unsure: pl.Expr = pl.lit(False)  # noqa: FBT003
    for resource in OTHERS[1:]:
        r = resource.name
        r_never, r_key, r_error = pl.col(f"#real_{r}").is_null(), _rank(r), pl.col(f"#error_{r}")
        close = (
            (r_never == never)
            & ((r_key - key).abs() <= (error + r_error) * pl.max_horizontal(key, r_key))
            & (pl.max_horizontal(key, r_key) > 0)
        )
        later = (r_never & ~never) | ((r_never == never) & (r_key > key))
        name = pl.when(later).then(pl.lit(resource.bound)).otherwise(name)
        never, key, error = (
            never | r_never,
            pl.when(later).then(r_key).otherwise(key),
            pl.max_horizontal(error, r_error),
        )
        unsure = unsure | close
    return name, unsure


def _rank(resource: str) -> pl.Expr:
    """What resources are ranked by: the slope if t_math never reaches it, else the threshold."""
    return pl.coalesce(f"#real_{resource}", f"#a_{resource}")


def outcome() -> pl.Expr:
    """What a threshold is, from `critical_exact` and `critical`: one of `columns.OUTCOMES`."""
    return (
        pl.when(pl.col("critical_exact").is_null())
        .then(pl.lit(NEVER))
        .when(pl.col("critical").is_null())
        .then(pl.lit(BEYOND))
        .when(pl.col("critical") == 1)
        .then(pl.lit(ALWAYS))
        .otherwise(pl.lit(FOUND))
    )


def solve(
    frame: pl.LazyFrame,
    sweep: Sweep,
    axis: str,
    coefficients: Coefficients,
    columns: Container[str],
) -> pl.LazyFrame:
    """Adds the thresholds along a dimension in Float64, and `#unsure` where it cannot decide."""
    span = pl.col(f"#span_{axis}") if axis in sweep.tile else pl.lit(1, dtype=pl.Int64)
    limit, unsure_limit = limits()
    reals = [pl.col(f"#real_{resource.name}") for resource in OTHERS]
    never = reduce(or_, [real.is_null() for real in reals])
    unsure = reduce(or_, [pl.col(f"#unsure_{resource.name}") for resource in OTHERS])
    slope = {resource.bound: pl.col(f"#slope_{resource.work}") for resource in OTHERS}
    limit_slope: pl.Expr = pl.lit(0.0)
    for bound, of_bound in slope.items():
        limit_slope = pl.when(pl.col("limit") == bound).then(of_bound).otherwise(limit_slope)

    def size(real: pl.Expr) -> pl.Expr:
        before = real.ceil().clip(1.0, 2.0**53).cast(pl.Int64) - 1  # above 2^53 no row is sure
        return pl.when(before <= pl.lit(LARGEST_COUNT - 2) // span).then(before * span + 1)

    return (
        frame.with_columns(**affine(sweep, axis, coefficients, columns))
        .with_columns(
            **{
                name: expr
                for resource in OTHERS
                for name, expr in against(resource, columns).items()
            }
        )
        .with_columns(
            limit=limit,
            **{
                UNSURE: unsure | unsure_limit,
                "#real": pl.when(~never).then(pl.max_horizontal(reals)),
            },
        )
        .with_columns(
            critical_exact=(pl.col("#real") * span).abs(),  # turns -0.0 into 0.0
            critical=size(pl.col("#real")),
            **{
                f"critical_{resource.name}": size(pl.col(f"#real_{resource.name}"))
                for resource in OTHERS
            },
        )
        .with_columns(
            outcome=outcome(),
            limit=pl.when((pl.col("critical") > 1) | pl.col("critical").is_null()).then("limit"),
        )
        .with_columns(
            limit_intensity=pl.when(limit_slope > 0).then(
                quotient(pl.col(f"#slope_{MATH.work}"), limit_slope)
            )
        )
    )


def line_of(
    terms: Mapping[tuple[str, ...], Fraction], axis: str, others: Mapping[str, int | Fraction]
) -> ExactLine:
    """Slope and constant of a sum of products along an axis, exactly."""
    along = {tuple(d for d in dims if d != axis): c for dims, c in terms.items() if axis in dims}
    apart = {dims: c for dims, c in terms.items() if axis not in dims}
    return evaluate(along, others), evaluate(apart, others)


def exact_line(
    workload: Workload, work: str, axis: str, sizes: Mapping[str, int | Fraction]
) -> ExactLine:
    """Slope [work per extent] and constant of a work along an axis, exactly."""
    slope, constant = line_of(workload.costs[work], axis, extents(workload, work, sizes))
    per_extent = 1 if work in TILED else elements_per_extent(workload, axis)
    return slope * per_extent, constant


def exact_time_lines(work_line: ExactLine, rate: Rate | None) -> list[ExactLine]:
    """The lines whose maximum is the time of a work [s]."""
    if rate is None:
        return [(Fraction(0), Fraction(0))]
    slope, constant = work_line
    lines = [(slope / rate.per_s, constant / rate.per_s)]
    return [*lines, (Fraction(0), rate.latency_s)] if rate.latency_s else lines


def exact_threshold(math_line: ExactLine, lines: list[ExactLine]) -> Fraction | None:
    """The real extent from which on t_math is at least every line; None: never."""
    reals = [overtakes(math_line, line) for line in lines]
    return None if None in reals else max(real for real in reals if real is not None)


def overtakes(math_line: ExactLine, line: ExactLine) -> Fraction | None:
    """The real extent from which on a_math n + b_math >= a n + b; None: never."""
    (a_math, b_math), (a, b) = math_line, line
    if a_math > a:
        return max((b - b_math) / (a_math - a), Fraction(0))
    return Fraction(0) if a_math == a and b <= b_math else None


def elements_per_extent(workload: Workload, axis: str) -> int:
    """Elements of a dimension that one of its extents spans over all chips [1]."""
    return workload.tile[axis] * workload.share(axis) if axis in workload.tile else 1


def whole_size(real: Fraction | None, per_extent: int = 1) -> int | None:
    """The whole size of a real threshold in extents [1]; None: none, or one that is too large."""
    if real is None:
        return None
    whole = (max(math.ceil(real), 1) - 1) * per_extent + 1
    return whole if whole < LARGEST_COUNT else None


def outcome_of(real: Fraction | None, critical: int | None) -> str:
    """What a threshold is, from its real and its whole size."""
    if real is None:
        return NEVER
    return BEYOND if critical is None else ALWAYS if critical == 1 else FOUND


def solve_exactly(
    sweep: Sweep,
    chip_variant: ChipVariant,
    axis: str,
    sizes: Mapping[str, int | Fraction],
    share: Fraction = WHOLE_PEAK,
) -> Solution:
    """The thresholds of one row in exact arithmetic.

    Args:
        sweep: The sweep.
        chip_variant: The row's chip and variant.
        axis: The dimension solved for.
        sizes: The sizes of the other dimensions [1].
        share: The share of the attainable peak to solve for [1].
    """
    workload, target = sweep.case(*chip_variant), sweep.target(*chip_variant)
    works = {r: exact_line(workload, r.work, axis, sizes) for r in RESOURCES}
    times = {r: exact_time_lines(works[r], rate_at(r, target, share)) for r in RESOURCES}
    reals = {r: exact_threshold(times[MATH][0], times[r]) for r in OTHERS}
    per_extent = elements_per_extent(workload, axis)
    size = partial(whole_size, per_extent=per_extent)
    finite = [real for real in reals.values() if real is not None]
    real = max(finite) if len(finite) == len(OTHERS) else None
    ranks = [(reals[r] is None, times[r][0] if reals[r] is None else (reals[r],)) for r in OTHERS]
    limit = OTHERS[ranks.index(max(ranks))] if real is None or math.ceil(real) > 1 else None
    limit_slope = works[limit][0] if limit else Fraction(0)
    return Solution(
        outcome=outcome_of(real, size(real)),
        critical_exact=None if real is None else float(real * per_extent),
        critical=size(real),
        against={resource.name: size(reals[resource]) for resource in OTHERS},
        limit=limit.bound if limit else None,
        limit_intensity=float(works[MATH][0] / limit_slope) if limit_slope > 0 else None,
    )


def rule_of_thumb(
    sweep: Sweep, chip_variant: ChipVariant, axis: str, share: Fraction
) -> float | None:
    """The size along an axis against memory, with all other dimensions taken as infinite.

    Of every work only the products of all other dimensions count then. For a matmul this is bits /
    16 of the operand that lacks the dimension, times the critical memory intensity. None if every
    operand has the dimension, or never.

    Source: All About Rooflines, "Matrix multiplication": B > 240 for bf16 on a TPU v5e.
    """
    memory = OTHERS[0]
    workload, target = sweep.case(*chip_variant), sweep.target(*chip_variant)
    if all(axis in dims for dims in workload.costs[memory.work]):
        return None
    infinite = set(workload.op.dims) - {axis}

    def line(resource: Resource) -> ExactLine:
        terms = workload.costs[resource.work]
        leading = {dims: c for dims, c in terms.items() if set(dims) - {axis} == infinite}
        work_line = line_of(leading, axis, dict.fromkeys(infinite, 1))
        return exact_time_lines(work_line, rate_at(resource, target, share))[0]

    real = overtakes(line(MATH), line(memory))
    return None if real is None else float(real * elements_per_extent(workload, axis))


def dimension_thresholds(
    sweep: Sweep, axis: str, share: Fraction = WHOLE_PEAK
) -> Iterator[pl.DataFrame]:
    """Thresholds along one dimension for a share of the attainable peak, in slices.

    Args:
        sweep: The sweep.
        axis: The dimension.
        share: Share of the attainable peak [1].

    Yields:
        The columns of thresholds along the dimension.
    """
    variants = sweep.chip_variants
    coefficients, constants = variant_columns(sweep, variants)
    constants[f"#rate_{MATH.name}"] *= float(share)
    constants["critical_rule"] = pl.Series(
        [rule_of_thumb(sweep, each, axis, share) for each in variants], dtype=pl.Float64
    )
    others = [dim for dim in sweep.op.dims if dim != axis]
    estimates = CriticalEstimates(sweep, axis) if share == WHOLE_PEAK else None
    frames = solve_in_slices(
        [constants, *map(axis_columns, sweep.sizes_without(axis))],
        lambda frame: solve(frame, sweep, axis, coefficients, constants),
        lambda row: solve_exactly(
            sweep, variants[row[VARIANT]], axis, {dim: row[dim] for dim in others}, share
        ),
    )
    for frame in frames:
        yield estimates.added_to(frame) if estimates else frame
