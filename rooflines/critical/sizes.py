"""The smallest compute-bound size along every dimension of an operation, in closed form.

Every work is affine in every single extent, a size or the number of its tiles; so is every time,
but for the latency of a collective, which is a second, constant line.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar

import polars as pl

from rooflines.critical.saturation import Saturation
from rooflines.critical.solving import (
    WHOLE_PEAK,
    Line,
    Reach,
    limit,
    outcome,
    rate_at,
    reach,
    solve_in_slices,
)
from rooflines.model.costs import TILED
from rooflines.model.resources import MATH, OTHERS, RESOURCES, Resource
from rooflines.sweep.metrics import quotient, work
from rooflines.sweep.space import ChipVariant, Coefficients, axis_columns, variant_columns

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from rooflines.model.costs import Workload
    from rooflines.sweep.sweep import Sweep

NOTHING = pl.lit(0.0)

Value = TypeVar("Value")


def slope_of(work_name: str) -> str:
    """The column of the slope of a work [work per extent]."""
    return f"#slope_{work_name}"


def line_of(resource: Resource) -> Line:
    """The time that a resource takes for its work, by columns."""
    return Line(pl.col(f"#a_{resource.name}"), pl.col(f"#b_{resource.name}"))


def lines_of(resource: Resource, columns: Container[str]) -> list[Line]:
    """The lines of which the largest is the time of a resource."""
    latency = f"#latency_{resource.name}"
    waits = [Line(NOTHING, pl.col(latency))] if latency in columns else []
    return [line_of(resource), *waits]


def split_terms(
    terms: Mapping[tuple[str, ...], Value], axis: str
) -> tuple[dict[tuple[str, ...], Value], dict[tuple[str, ...], Value]]:
    """The products with an axis, which is left out of them, and those without."""
    along = {tuple(d for d in dims if d != axis): c for dims, c in terms.items() if axis in dims}
    return along, {dims: c for dims, c in terms.items() if axis not in dims}


def affine(
    sweep: Sweep, axis: str, coefficients: Coefficients, columns: Container[str]
) -> dict[str, pl.Expr]:
    """Slope and constant of every work and of every time along an axis.

    Along a tiled axis a work that counts sizes is taken at the last size of each tile, its largest:
    from a threshold on, every size has to be compute-bound.

    Returns:
        `#slope_<work>` [work per extent], `#a_<resource>` [s per extent], `#b_<resource>` [s].
    """
    lines: dict[str, pl.Expr] = {}
    for resource in RESOURCES:
        along, apart = split_terms(coefficients[resource.work], axis)
        rate = pl.col(f"#rate_{resource.name}")
        slope = work(sweep, resource.work, along, columns)
        if axis in sweep.tile and resource.work not in TILED:
            slope = slope * pl.col(f"#span_{axis}")
        lines[slope_of(resource.work)] = slope
        lines[f"#a_{resource.name}"] = quotient(slope, rate)
        lines[f"#b_{resource.name}"] = quotient(work(sweep, resource.work, apart, columns), rate)
    return lines


def solve(
    frame: pl.LazyFrame,
    sweep: Sweep,
    axis: str,
    coefficients: Coefficients,
    columns: Container[str],
) -> pl.LazyFrame:
    """Adds the thresholds along a dimension."""
    span = pl.col(f"#span_{axis}") if axis in sweep.tile else pl.lit(1, dtype=pl.Int64)
    reaches = {
        each.name: Reach.last([reach(line_of(MATH), line) for line in lines_of(each, columns)])
        for each in OTHERS
    }
    named = {name: column for each in reaches for name, column in reaches[each].named(each).items()}
    last = Reach.last([Reach.of(each.name) for each in OTHERS])
    of_limit = pl.coalesce(
        pl.when(pl.col("limit") == each.bound).then(pl.col(slope_of(each.work))) for each in OTHERS
    )
    return (
        frame.with_columns(**affine(sweep, axis, coefficients, columns))
        .with_columns(**named)
        .with_columns(**last.named("all"), limit=limit({each: line_of(each) for each in OTHERS}))
        .with_columns(
            critical_exact=(pl.col("#real_all") * span).abs(),  # turns -0.0 into 0.0
            critical=Reach.of("all").whole(span),
            **{f"critical_{each.name}": Reach.of(each.name).whole(span) for each in OTHERS},
        )
        .with_columns(outcome=outcome())
        .with_columns(
            limit=pl.when((pl.col("critical") > 1) | pl.col("critical").is_null()).then("limit")
        )
        .with_columns(
            limit_intensity=pl.when(of_limit > 0).then(
                quotient(pl.col(slope_of(MATH.work)), of_limit)
            )
        )
    )


def elements_per_extent(workload: Workload, axis: str) -> int:
    """Elements of a dimension that one of its extents spans over all chips [1]."""
    return workload.tile[axis] * workload.share(axis) if axis in workload.tile else 1


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
    others = len(workload.op.dims) - 1

    def leading(resource: Resource) -> list[Fraction]:
        """Slope and constant of its time, per product of all other dimensions [s]."""
        rate = rate_at(resource, target, share)
        per_s = rate.per_s if rate else Fraction(1)
        parts = split_terms(workload.costs[resource.work], axis)
        return [
            sum((c for dims, c in part.items() if len(dims) == others), start=Fraction(0)) / per_s
            for part in parts
        ]

    (slope_math, constant_math), (slope, constant) = leading(MATH), leading(memory)
    if slope_math < slope or (slope_math == slope and constant_math < constant):
        return None
    if slope_math == slope:
        return 0.0
    real = max((constant - constant_math) / (slope_math - slope), Fraction(0))
    return float(real * elements_per_extent(workload, axis))


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
    saturation = Saturation(sweep, axis) if share == WHOLE_PEAK else None
    frames = solve_in_slices(
        [constants, *map(axis_columns, sweep.sizes_without(axis))],
        lambda frame: solve(frame, sweep, axis, coefficients, constants),
    )
    for frame in frames:
        yield saturation.added_to(frame) if saturation else frame
