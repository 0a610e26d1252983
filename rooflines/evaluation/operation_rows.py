"""The rows of one kernel as stages of expressions: of an operation, and the estimate of any."""

from __future__ import annotations

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
    from collections.abc import Sequence

    from rooflines.evaluation.compiler import Sheet
    from rooflines.sweep.cases import Case
    from rooflines.sweep.operation_sweep import OperationCase
    from rooflines.theory.times import Times

Stages = list[dict[str, pl.Expr]]
"""Columns to add to the axes of a table, one stage after another."""

BOUND = pl.Enum([resource.bound for resource in RESOURCES])

ESTIMATE_BOUND = pl.Enum(BOUNDS)

ESTIMATES = ("t_estimate_s", "t_estimate_p10_s", "t_estimate_p90_s")
"""The estimate and its band [s]."""

ENGINE_AND_SIZES, OTHER_ENGINE, OTHER_SIZES = "engine, sizes", "engine", "sizes"
BEYOND = pl.Enum([OTHER_SIZES, OTHER_ENGINE, ENGINE_AND_SIZES])
"""What the timings of a calibration are beyond: the sizes, the engine, or both."""


def resource_times(sheet: Sheet, cases: Sequence[Case]) -> dict[str, pl.Expr]:
    """The nominal times of all resources [s].

    Args:
        sheet: The columns of the cases.
        cases: The cases.
    """
    return {
        f"t_{each.name}_s": sheet.total(
            sheet.time([case.times.by_bound[each.bound] for case in cases])
        )
        for each in RESOURCES
    }


def operation_stages(sheet: Sheet, cases: Sequence[OperationCase]) -> Stages:
    """The columns of rows of operations but their keys and sizes.

    Args:
        sheet: The columns of the cases.
        cases: The cases.

    Returns:
        Works, estimates, times, intensities and shares of the peak. A resource without work in any
        case has times of 0, and no intensity.
    """
    resources = [(each, [case.work(each.work) for case in cases]) for each in RESOURCES]
    used = [each for each, polys in resources if any(polys)]
    works = dict.fromkeys([*cases[0].kernels[0].works, *(each.work for each in RESOURCES)])
    stages: Stages = [sheet.works(works)]
    stages += estimate_stages(sheet, [case.kernel_estimates[0] for case in cases])
    seconds = resource_times(sheet, cases)
    times = {each.bound: pl.col(f"t_{each.name}_s") for each in used}
    upper = {**times}
    if any(len(case.kernels[0].transfers) > 1 for case in cases):
        in_turn = [case.kernel_times[0].by_bound[NETWORK.bound] for case in cases]
        upper[NETWORK.bound] = sheet.total(sheet.time(in_turn))
    lower = pl.max_horizontal(*times.values())
    if any(each.work in sheet.varying for each in used):
        sheet.varying.add("t_lower_s")
    peaks = [float(case.peak) for case in cases]
    reached = [float(case.peak * case.machine.efficiency[MATH.name]) for case in cases]
    peak = sheet.named_constant(peaks)
    useful = USEFUL_FLOPS if cases[0].sweep.tile else MATH.work
    at_peak = sheet.quotient(pl.col(useful), peak)
    if peaks == reached and useful == MATH.work:  # the time at the peak
        at_peak = pl.col(f"t_{MATH.name}_s")
    capacities = [case.machine.level.capacity_bytes for case in cases]
    capacity = sheet.constant([None if each is None else float(each) for each in capacities])
    intensities = {}
    for each, polys in resources:
        if each is MATH:
            continue
        ratio = sheet.quotient(pl.col(MATH.work), each.work)
        if not all(polys):
            ratio = pl.when(pl.col(each.work) > 0).then(ratio)
        none = pl.lit(None, dtype=pl.Float64)
        intensities[f"{each.name}_intensity"] = ratio if each in used else none
    return [
        *stages,
        seconds,
        {"t_lower_s": lower, "t_upper_s": reduce(add, upper.values())},
        {
            **intensities,
            "utilization": sheet.quotient(at_peak, "t_lower_s"),
            "bound": first_longest(times, pl.col("t_lower_s"), BOUND),
            "fits": pl.col("footprint_bytes") <= capacity,
        },
        {"attained_flops_per_s": pl.col("utilization") * pl.col(peak)},
    ]


def estimate_stages(sheet: Sheet, found: Sequence[Times | None]) -> Stages:
    """The estimate of one layer of a kernel, its bound and its band; null without a calibration.

    Args:
        sheet: The columns of the cases.
        found: The estimate in every case.
    """
    if not any(found):
        none = dict.fromkeys(ESTIMATES, pl.lit(None, dtype=pl.Float64))
        texts = {"estimate_bound": ESTIMATE_BOUND, "estimate_extrapolated": BEYOND}
        return [{**none, **{name: pl.lit(None, dtype=kind) for name, kind in texts.items()}}]
    present = [bound for bound in BOUNDS if any(each and bound in each.by_bound for each in found)]
    pieces = {}
    for bound in present:
        absent = [None if each is None else each.by_bound.get(bound, Time()) for each in found]
        pieces[f"#piece_{bound}"] = sheet.total(sheet.time(absent))
    common = sheet.total(sheet.poly([None if each is None else each.common for each in found]))
    largest = pl.col("#largest")
    wider = _wider(sheet, found)
    bands = []
    for side, widest in ((0, pl.min_horizontal), (1, pl.max_horizontal)):
        share: pl.Expr = pl.lit(None, dtype=pl.Float64)
        for bound in present:
            known = [None if each is None else each.bands.get(bound) for each in found]
            here = pl.col("estimate_bound") == pl.lit(bound, dtype=ESTIMATE_BOUND)
            column = sheet.constant([None if each is None else each[side] for each in known])
            share = pl.when(here).then(column).otherwise(share)
        ends = [share, *(pl.when(each.where).then(each.band[side]) for each in wider)]
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
            "estimate_extrapolated": pl.when(estimated).then(_beyond(wider)),
        },
    ]


class Wider(NamedTuple):
    """Where estimates are beyond the timings of a calibration, and the band there.

    Attributes:
        of: `OTHER_SIZES` or `OTHER_ENGINE`.
        where: Whether a row is.
        band: Its ends.
    """

    of: str
    where: pl.Expr
    band: tuple[pl.Expr, pl.Expr]


def _wider(sheet: Sheet, found: Sequence[Times | None]) -> list[Wider]:
    """Where the estimates of cases are beyond the timings of their calibrations."""
    wider = []
    for bound in ("", NETWORK.bound):
        cases = [each.ranges.get(bound) if each else None for each in found]
        if not any(cases):
            continue

        def ends(pairs: Sequence[tuple[float, float] | None]) -> tuple[pl.Expr, pl.Expr]:
            low, high = (
                sheet.constant([pair and float(pair[side]) for pair in pairs]) for side in (0, 1)
            )
            return low, high

        beyond = [pl.lit(value=False)]
        for name in dict.fromkeys(name for each in cases if each for name in each.sizes):
            size = sheet.total(sheet.poly([each and each.sizes.get(name) for each in cases]))
            low, high = ends([each and each.fit_range.sizes.get(name) for each in cases])
            beyond += [size < low, size > high]
        foreign = sheet.constant(
            [float(each.fit_range.from_other_engine) if each else 0.0 for each in cases]
        )
        binds = pl.lit(value=True)
        if bound:
            binds = pl.col("estimate_bound") == pl.lit(bound, dtype=ESTIMATE_BOUND)
        outside, elsewhere = (
            ends([each and getattr(each.fit_range, name) for each in cases])
            for name in ("out_of_range_band", "other_engine_band")
        )
        sizes = pl.any_horizontal(*beyond).fill_null(value=False)
        wider += [
            Wider(OTHER_SIZES, sizes & binds, outside),
            Wider(OTHER_ENGINE, (foreign > 0) & binds, elsewhere),
        ]
    return wider


def _beyond(wider: Sequence[Wider]) -> pl.Expr:
    """What estimates are beyond; null within."""
    if not wider:
        return pl.lit(None, dtype=BEYOND)
    sizes, engine = (
        pl.any_horizontal(each.where for each in wider if each.of == of)
        for of in (OTHER_SIZES, OTHER_ENGINE)
    )
    return (
        pl.when(sizes & engine)
        .then(pl.lit(ENGINE_AND_SIZES))
        .when(engine)
        .then(pl.lit(OTHER_ENGINE))
        .when(sizes)
        .then(pl.lit(OTHER_SIZES))
        .otherwise(None)
        .cast(BEYOND)
    )
