"""Rows of one kernel as stages of expressions: operations, and estimates of any kernel."""

from __future__ import annotations

import math
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from rooflines.evaluation.compiler import first_longest
from rooflines.sweep.calibrated_times import BOUNDS
from rooflines.theory.costs import USEFUL_FLOPS
from rooflines.theory.resources import MATH, NETWORK, RESOURCES
from rooflines.theory.times import Time

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.evaluation.compiler import RowCompiler
    from rooflines.sweep.cases import Case
    from rooflines.sweep.operation_sweep import OperationCase
    from rooflines.theory.poly import Poly
    from rooflines.theory.resources import Resource
    from rooflines.theory.times import Times

Stages = list[dict[str, pl.Expr]]
"""Columns to add to the axes of a table, one stage after another."""

BOUND_ENUM = pl.Enum([resource.bound for resource in RESOURCES])

ESTIMATE_BOUND = pl.Enum(BOUNDS)

ESTIMATES = ("t_estimate_s", "t_estimate_p10_s", "t_estimate_p90_s")
"""The estimate and its band [s]."""

ENGINE_AND_SIZES, OTHER_ENGINE, OTHER_SIZES = "engine, sizes", "engine", "sizes"
EXTRAPOLATION = pl.Enum([OTHER_SIZES, OTHER_ENGINE, ENGINE_AND_SIZES])
"""Kinds of extrapolation from a calibration's timings: other sizes, another engine, or both."""


def resource_times(compiler: RowCompiler, cases: Sequence[Case]) -> dict[str, pl.Expr]:
    """Nominal time of every resource [s]: its work column / rate, where a case has one rate.

    Args:
        compiler: Row compiler for the cases, with works compiled.
        cases: The cases.
    """
    seconds = {}
    for resource in RESOURCES:
        times = [case.rated_times[resource] for case in cases]
        rates = [math.inf if rate is None else float(rate) for rate, _ in times]
        terms = []
        if any(rate is not None for rate, _ in times):
            terms.append(compiler.quotient(pl.col(resource.work), compiler.constant(rates)))
        beside = compiler.time([beside for _, beside in times])
        if any(part is not None for part in beside) or not terms:
            terms.append(compiler.total(beside))
        seconds[f"t_{resource.name}_s"] = terms[0] if len(terms) == 1 else pl.max_horizontal(terms)
    return seconds


def operation_stages(compiler: RowCompiler, cases: Sequence[OperationCase]) -> Stages:
    """Columns for operation rows, without keys and sizes.

    t_lower_s = max over resources; t_upper_s = sum over resources, collectives one after another;
    utilization = FLOPs / peak / t_lower_s; intensity = FLOPs / bytes.

    Args:
        compiler: Row compiler for the cases.
        cases: The cases.

    Returns:
        Works, estimates, times, intensities, utilization. A resource without work in any
        case has zero times, and no intensity.
    """
    polys_by_resource = {
        resource: [case.work(resource.work) for case in cases] for resource in RESOURCES
    }
    with_work = [resource for resource, polys in polys_by_resource.items() if any(polys)]
    works = dict.fromkeys([*cases[0].kernels[0].works, *(resource.work for resource in RESOURCES)])
    stages: Stages = [compiler.works(works)]
    stages += estimate_stages(compiler, [case.kernel_estimates[0] for case in cases])
    seconds = resource_times(compiler, cases)
    times = {resource.bound: pl.col(f"t_{resource.name}_s") for resource in with_work}
    upper = times | _serial_network(compiler, cases)
    lower = pl.max_horizontal(*times.values())
    if any(resource.work in compiler.varying for resource in with_work):
        compiler.varying.add("t_lower_s")
    peak, at_peak = _peak_and_time(compiler, cases)
    capacities = [case.place.machine.level.capacity_bytes for case in cases]
    capacity = compiler.constant([size if size is None else float(size) for size in capacities])
    intensities = _intensities(compiler, polys_by_resource)
    return [
        *stages,
        seconds,
        {"t_lower_s": lower, "t_upper_s": reduce(add, upper.values())},
        {
            **intensities,
            "utilization": compiler.quotient(at_peak, pl.col("t_lower_s")),
            "bound": first_longest(times, pl.col("t_lower_s"), BOUND_ENUM),
            "fits": pl.col("footprint_bytes") <= capacity,
        },
        {"attained_flops_per_s": pl.col("utilization") * peak},
    ]


def _serial_network(compiler: RowCompiler, cases: Sequence[OperationCase]) -> dict[str, pl.Expr]:
    """Network time with collectives one after another, by bound; empty for at most one [s]."""
    if all(len(case.kernels[0].transfers) <= 1 for case in cases):
        return {}
    collectives = [case.kernel_times[0].by_bound[NETWORK.bound] for case in cases]
    return {NETWORK.bound: compiler.total(compiler.time(collectives))}


def _peak_and_time(
    compiler: RowCompiler, cases: Sequence[OperationCase]
) -> tuple[pl.Expr, pl.Expr]:
    """Column with the nominal peak [FLOP/s], and time at it, FLOPs without padding / peak [s]."""
    peaks = [float(case.peak) for case in cases]
    rates = [case.rated_times[MATH].rate for case in cases]
    attainable_peaks = [rate if rate is None else float(rate) for rate in rates]
    peak = compiler.constant(peaks)
    useful = USEFUL_FLOPS if cases[0].sweep.tile else MATH.work
    at_peak = compiler.quotient(pl.col(useful), peak)
    if peaks == attainable_peaks and useful == MATH.work:
        at_peak = pl.col(f"t_{MATH.name}_s")
    return peak, at_peak


def _intensities(
    compiler: RowCompiler, polys_by_resource: Mapping[Resource, Sequence[Poly]]
) -> dict[str, pl.Expr]:
    """FLOPs over the work of memory and network [FLOP/byte]; null without that work."""
    intensities = {}
    for resource, polys in polys_by_resource.items():
        if resource is MATH:
            continue
        ratio = compiler.quotient(pl.col(MATH.work), pl.col(resource.work))
        if not all(polys):
            ratio = pl.when(pl.col(resource.work) > 0).then(ratio)
        no_ratio = pl.lit(None, dtype=pl.Float64)
        intensities[f"{resource.name}_intensity"] = ratio if any(polys) else no_ratio
    return intensities


def estimate_stages(compiler: RowCompiler, estimates: Sequence[Times | None]) -> Stages:
    """Estimate of a kernel in one layer, its bound and band; null without a calibration.

    t_estimate_s = max over pieces + overhead; its band is the estimate times p10 and p90.

    Args:
        compiler: Row compiler for the cases.
        estimates: The estimate, by case.
    """
    if not any(estimates):
        none = dict.fromkeys(ESTIMATES, pl.lit(None, dtype=pl.Float64))
        texts = {"estimate_bound": ESTIMATE_BOUND, "estimate_extrapolated": EXTRAPOLATION}
        return [{**none, **{name: pl.lit(None, dtype=kind) for name, kind in texts.items()}}]
    present = [
        bound for bound in BOUNDS if any(times and bound in times.by_bound for times in estimates)
    ]
    pieces = {}
    for bound in present:
        bound_times = [
            None if times is None else times.by_bound.get(bound, Time()) for times in estimates
        ]
        pieces[f"#piece_{bound}"] = compiler.total(compiler.time(bound_times))
    common = compiler.total(
        compiler.poly([None if times is None else times.common for times in estimates])
    )
    largest = pl.col("#largest")
    extrapolation = _extrapolation_bands(compiler, estimates)
    bands = []
    for side, widest in ((0, pl.min_horizontal), (1, pl.max_horizontal)):
        share: pl.Expr = pl.lit(None, dtype=pl.Float64)
        for bound in present:
            case_bands = [None if times is None else times.bands.get(bound) for times in estimates]
            is_bound = pl.col("estimate_bound") == pl.lit(bound, dtype=ESTIMATE_BOUND)
            column = compiler.constant(
                [None if band is None else band[side] for band in case_bands]
            )
            share = pl.when(is_bound).then(column).otherwise(share)
        ends = [share, *(pl.when(band.is_outside).then(band.band[side]) for band in extrapolation)]
        bands.append(pl.col("t_estimate_s") * pl.when(share.is_not_null()).then(widest(*ends)))
    label = first_longest(
        {bound: pl.col(f"#piece_{bound}") for bound in present}, largest, ESTIMATE_BOUND
    )
    estimated = largest.is_not_null()
    return [
        {**pieces, "#common": common},
        {"#largest": pl.max_horizontal(*pieces)},
        {
            "t_estimate_s": largest + pl.col("#common"),
            "estimate_bound": pl.when(estimated).then(label),
        },
        {
            **dict(zip(ESTIMATES[1:], bands, strict=True)),
            "estimate_extrapolated": pl.when(estimated).then(_extrapolation(extrapolation)),
        },
    ]


class ExtrapolationBand(NamedTuple):
    """Band of estimates that extrapolate from a calibration's timings.

    Attributes:
        kind: `OTHER_SIZES` or `OTHER_ENGINE`.
        is_outside: True in rows that extrapolate.
        band: Ends of the band.
    """

    kind: str
    is_outside: pl.Expr
    band: tuple[pl.Expr, pl.Expr]


def _extrapolation_bands(
    compiler: RowCompiler, estimates: Sequence[Times | None]
) -> list[ExtrapolationBand]:
    """Bands for estimates that extrapolate from their calibrations' timings."""
    extrapolation = []
    for bound in ("", NETWORK.bound):
        ranges = [times.ranges.get(bound) if times else None for times in estimates]
        if not any(ranges):
            continue

        def ends(pairs: Sequence[tuple[float, float] | None]) -> tuple[pl.Expr, pl.Expr]:
            low, high = (
                compiler.constant([pair and float(pair[side]) for pair in pairs]) for side in (0, 1)
            )
            return low, high

        is_beyond = [pl.lit(value=False)]
        for name in dict.fromkeys(name for sized in ranges if sized for name in sized.sizes):
            size = compiler.total(
                compiler.poly([sized and sized.sizes.get(name) for sized in ranges])
            )
            low, high = ends([sized and sized.fit_range.sizes.get(name) for sized in ranges])
            is_beyond += [size < low, size > high]
        from_other_engine = compiler.constant(
            [float(sized.fit_range.from_other_engine) if sized else 0.0 for sized in ranges]
        )
        binds = pl.lit(value=True)
        if bound:
            binds = pl.col("estimate_bound") == pl.lit(bound, dtype=ESTIMATE_BOUND)
        out_of_range_band, other_engine_band = (
            ends([sized and getattr(sized.fit_range, name) for sized in ranges])
            for name in ("out_of_range_band", "other_engine_band")
        )
        sizes = pl.any_horizontal(*is_beyond).fill_null(value=False)
        extrapolation += [
            ExtrapolationBand(OTHER_SIZES, sizes & binds, out_of_range_band),
            ExtrapolationBand(OTHER_ENGINE, (from_other_engine > 0) & binds, other_engine_band),
        ]
    return extrapolation


def _extrapolation(extrapolation: Sequence[ExtrapolationBand]) -> pl.Expr:
    """Kind of extrapolation; null within the timings."""
    if not extrapolation:
        return pl.lit(None, dtype=EXTRAPOLATION)
    sizes, engine = (
        pl.any_horizontal(band.is_outside for band in extrapolation if band.kind == kind)
        for kind in (OTHER_SIZES, OTHER_ENGINE)
    )
    return (
        pl.when(sizes & engine)
        .then(pl.lit(ENGINE_AND_SIZES))
        .when(engine)
        .then(pl.lit(OTHER_ENGINE))
        .when(sizes)
        .then(pl.lit(OTHER_SIZES))
        .otherwise(None)
        .cast(EXTRAPOLATION)
    )
