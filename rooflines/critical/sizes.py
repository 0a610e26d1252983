"""From which size on is an operation compute-bound? In closed form, along every dimension, against every resource, to the last integer.

Every time is affine in every single extent, t_r(n) = a_r n + b_r, so t_math(n) >= t_r(n) from n = (b_r - b_math) / (a_math - a_r) on, if
a_math > a_r; else always or never. That is computed in Float64 together with a bound on its error; a row in which the error could
change an integer, a sign or the tenth digit is settled in exact rational arithmetic. On ordinary grids that is one row in thousands.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import reduce
from typing import TYPE_CHECKING, Any

import polars as pl

from rooflines.basics.numbers import LARGEST_COUNT
from rooflines.critical.solving import PRECISE, ROUNDING, solved
from rooflines.model.costs import evaluate, extent
from rooflines.model.resources import MATH, RESOURCES, Rate, Resource
from rooflines.sweep.quotient import quotient
from rooflines.sweep.rows import work
from rooflines.sweep.space import VARIANT, Coefficients, Served, axis_columns, scenario_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rooflines.sweep.sweep import Sweep

__all__ = ["dimension_thresholds"]

OTHERS = [resource for resource in RESOURCES if resource is not MATH]


def constraints(resource: Resource, columns: Iterable[str]) -> list[tuple[str, str]]:
    """What t_math has to beat for one resource: (slope, constant) columns of its work's time and, where it has one, of its latency."""
    latency = f"#latency_{resource.name}"
    return [
        (f"#a_{resource.name}", f"#b_{resource.name}"),
        *([("#zero", latency)] if latency in columns else []),
    ]


def affine(
    sweep: Sweep, axis: str, coefficients: Coefficients, columns: Iterable[str]
) -> dict[str, pl.Expr]:
    """Slope and constant of every work and of every time along an axis.

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
        lines[f"#slope_{resource.work}"] = work(sweep, resource.work, along, columns)
        lines[f"#a_{resource.name}"] = quotient(work(sweep, resource.work, along, columns), rate)
        lines[f"#b_{resource.name}"] = quotient(work(sweep, resource.work, apart, columns), rate)
    return lines


def solution(slope: str, constant: str) -> tuple[pl.Expr, pl.Expr, pl.Expr]:
    """Where t_math overtakes one constraint.

    Returns:
        The real extent (null: never), the bound on its relative error, and whether the sign of the difference of slopes is unsure.
    """
    a_math, b_math = pl.col(f"#a_{MATH.name}"), pl.col(f"#b_{MATH.name}")
    gain, size = a_math - pl.col(slope), a_math + pl.col(slope)
    real = pl.when(gain > 0).then(quotient(pl.col(constant) - b_math, gain))
    return real, ROUNDING * (2.0 + size / gain.abs()), gain.abs() <= ROUNDING * 4.0 * size


def against(resource: Resource, columns: Iterable[str]) -> dict[str, pl.Expr]:
    """The threshold against one resource, in extents.

    Returns:
        `#real_<resource>` and `#least_<resource>` (real and whole; null: never), `#error_<resource>` [1], `#unsure_<resource>`.
    """
    solved = [solution(*constraint) for constraint in constraints(resource, columns)]
    never = reduce(lambda a, b: a | b, [real.is_null() for real, _, _ in solved])
    real = pl.when(~never).then(pl.max_horizontal([real for real, _, _ in solved]))
    error = pl.max_horizontal([error for _, error, _ in solved])
    ambiguous = real.is_not_null() & (
        ((real * (1 - error)).ceil() != (real * (1 + error)).ceil()) | (error > PRECISE)
    )
    unsure = reduce(lambda a, b: a | b, [unsure for _, _, unsure in solved])
    return {
        f"#real_{resource.name}": real,
        f"#error_{resource.name}": error,
        f"#unsure_{resource.name}": unsure | ambiguous,
    }


def limits() -> tuple[pl.Expr, pl.Expr]:
    """The resource that is overcome last or, of those that never are, grows fastest; and whether rounding leaves that unsure."""
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
    """What ranks resources: the slope of those that are never overcome, the threshold of the others."""
    return pl.coalesce(f"#real_{resource}", f"#a_{resource}")


def solve(
    frame: pl.LazyFrame, sweep: Sweep, axis: str, coefficients: Coefficients, columns: Iterable[str]
) -> pl.LazyFrame:
    """Adds the thresholds along a dimension, as far as Float64 can tell, and `#unsure` where it cannot."""
    span = pl.col(f"#span_{axis}") if axis in sweep.tile else pl.lit(1, dtype=pl.Int64)
    limit, unsure_limit = limits()
    reals = [pl.col(f"#real_{resource.name}") for resource in OTHERS]
    never = reduce(lambda a, b: a | b, [real.is_null() for real in reals])
    unsure = reduce(lambda a, b: a | b, [pl.col(f"#unsure_{resource.name}") for resource in OTHERS])
    slope = {resource.bound: pl.col(f"#slope_{resource.work}") for resource in OTHERS}
    moved = reduce(
        lambda otherwise, bound: (
            pl.when(pl.col("limit") == bound).then(slope[bound]).otherwise(otherwise)
        ),
        slope,
        pl.lit(0.0),
    )

    def size(real: pl.Expr) -> pl.Expr:
        before = real.ceil().clip(1.0, 2.0**53).cast(pl.Int64) - 1  # beyond that no row is sure
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
                "#unsure": unsure | unsure_limit,
                "#real": pl.when(~never).then(pl.max_horizontal(reals)),
            },
        )
        .with_columns(
            critical_exact=(
                pl.col("#real") * span
            ).abs(),  # at most zero is zero, and no negative one
            critical=size(pl.col("#real")),
            **{
                f"critical_{resource.name}": size(pl.col(f"#real_{resource.name}"))
                for resource in OTHERS
            },
        )
        .with_columns(
            limit=pl.when((pl.col("critical") > 1) | pl.col("critical").is_null()).then("limit")
        )
        .with_columns(
            limit_intensity=pl.when(moved > 0).then(quotient(pl.col(f"#slope_{MATH.work}"), moved))
        )
    )


def along_and_apart(
    terms: Mapping[tuple[str, ...], Fraction], axis: str, spans: Mapping[str, int | Fraction]
) -> tuple[Fraction, Fraction]:
    """Slope and constant of a work along an axis, exactly."""
    along = {tuple(d for d in dims if d != axis): c for dims, c in terms.items() if axis in dims}
    apart = {dims: c for dims, c in terms.items() if axis not in dims}
    return evaluate(along, spans), evaluate(apart, spans)


def settle(
    sweep: Sweep, served: Served, axis: str, sizes: Mapping[str, int | Fraction]
) -> dict[str, Any]:
    """The thresholds of one row in exact arithmetic.

    Args:
        sweep: The sweep.
        served: The row's scenario on the chip that serves it.
        axis: The dimension solved for.
        sizes: The others.
    """
    case, target = sweep.case(served[1]), sweep.target(*served)
    spans = {dim: extent(case, dim, size) for dim, size in sizes.items()}
    slopes, times = {}, {}
    for resource in RESOURCES:
        a, b = along_and_apart(case.costs[resource.work], axis, spans)
        rate = resource.rate(target)
        slopes[resource] = a
        lines = [(a / rate.per_s, b / rate.per_s)] if rate else [(Fraction(0), Fraction(0))]
        if rate and rate.latency_s:
            lines.append((Fraction(0), rate.latency_s))
        times[resource] = lines
    ((a_math, b_math),) = times[MATH]
    reals: dict[Resource, Fraction | None] = {}
    for resource in OTHERS:
        found = [overtakes(a_math, b_math, a, b) for a, b in times[resource]]
        reals[resource] = None if None in found else max(real for real in found if real is not None)
    per_extent = case.tile.get(axis, 1) * (case.share(axis) if axis in case.tile else 1)

    def size(real: Fraction | None) -> int | None:
        whole = None if real is None else (max(math.ceil(real), 1) - 1) * per_extent + 1
        return whole if whole is None or whole < LARGEST_COUNT else None

    finite = [real for real in reals.values() if real is not None]
    real = max(finite) if len(finite) == len(OTHERS) else None
    critical = size(real)
    ranks = [(reals[r] is None, times[r][0] if reals[r] is None else (reals[r],)) for r in OTHERS]
    limit = OTHERS[ranks.index(max(ranks))] if real is None or math.ceil(real) > 1 else None
    return {
        "critical_exact": None if real is None else float(real * per_extent),
        "critical": critical,
        **{f"critical_{resource.name}": size(reals[resource]) for resource in OTHERS},
        "limit": limit.bound if limit else None,
        "limit_intensity": float(slopes[MATH] / slopes[limit])
        if limit and slopes[limit] > 0
        else None,
    }


def overtakes(a_math: Fraction, b_math: Fraction, a: Fraction, b: Fraction) -> Fraction | None:
    """The real extent from which on a_math n + b_math >= a n + b, or None: never."""
    if a_math > a:
        return max((b - b_math) / (a_math - a), Fraction(0))
    return Fraction(0) if a_math == a and b <= b_math else None


def rule_of_thumb(sweep: Sweep, served: Served, axis: str) -> float | None:
    """The size along an axis against memory, with all other dimensions taken as infinite.

    Of every work only the products of all other dimensions count then. For a matmul that is bits / 16 of the operand that lacks the
    dimension, times the critical memory intensity.

    Source: All About Rooflines, "Matrix multiplication": B > 240 for bf16 on a TPU v5e.
    """
    memory = OTHERS[0]
    case, target = sweep.case(served[1]), sweep.target(*served)
    infinite = set(case.op.dims) - {axis}
    lines = {}
    lacking = False
    for resource in (MATH, memory):
        terms = case.costs[resource.work]
        lacking = any(axis not in dims for dims in terms)
        leading = {dims: c for dims, c in terms.items() if set(dims) - {axis} == infinite}
        rate = resource.rate(target) or Rate(Fraction(1))
        a, b = along_and_apart(leading, axis, dict.fromkeys(infinite, 1))
        lines[resource] = a / rate.per_s, b / rate.per_s
    if not lacking:
        return None
    real = overtakes(*lines[MATH], *lines[memory])
    per_extent = case.tile.get(axis, 1) * (case.share(axis) if axis in case.tile else 1)
    return None if real is None else float(real * per_extent)


def dimension_thresholds(sweep: Sweep, axis: str) -> Iterator[pl.DataFrame]:
    """Thresholds along one dimension, in slices."""
    served = [(chip_rows, variant) for chip_rows in sweep.by_chip for variant in chip_rows.variants]
    coefficients, constants = scenario_columns(sweep, served)
    constants["critical_rule"] = pl.Series(
        [rule_of_thumb(sweep, each, axis) for each in served], dtype=pl.Float64
    )
    others = [dim for dim in sweep.op.dims if dim != axis]
    yield from solved(
        [constants, *map(axis_columns, sweep.sizes_without(axis))],
        lambda frame: solve(frame, sweep, axis, coefficients, constants),
        lambda row: settle(sweep, served[row[VARIANT]], axis, {dim: row[dim] for dim in others}),
    )
