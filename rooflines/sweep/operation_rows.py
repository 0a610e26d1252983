"""The rows of one kernel as stages of expressions: of an operation, and the estimate of any."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import TYPE_CHECKING

import polars as pl

from rooflines.model.costs import USEFUL
from rooflines.model.resources import MATH, NETWORK, RESOURCES
from rooflines.model.times import Time
from rooflines.sweep.calibrated import BOUNDS
from rooflines.sweep.sheet import first_longest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflines.model.times import Times
    from rooflines.sweep.operations import OperationCase
    from rooflines.sweep.sheet import Sheet

Stages = list[dict[str, pl.Expr]]
"""Columns to add to the axes of a table, one stage after another."""

BOUND = pl.Enum([resource.bound for resource in RESOURCES])

ESTIMATE_BOUND = pl.Enum(BOUNDS)

ESTIMATES = ("t_estimate_s", "t_estimate_p10_s", "t_estimate_p90_s")
"""The estimate and its band [s]."""


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
    seconds = {
        f"t_{each.name}_s": sheet.total(sheet.time([case.times.by[each.bound] for case in cases]))
        for each in RESOURCES
    }
    times = {each.bound: pl.col(f"t_{each.name}_s") for each in used}
    upper = {**times}
    if any(len(case.kernels[0].transfers) > 1 for case in cases):
        in_turn = [case.kernel_times[0].by[NETWORK.bound] for case in cases]
        upper[NETWORK.bound] = sheet.total(sheet.time(in_turn))
    lower = pl.max_horizontal(*times.values())
    if any(each.work in sheet.varying for each in used):
        sheet.varying.add("t_lower_s")
    peaks = [float(case.peak) for case in cases]
    reached = [float(case.peak * case.machine.efficiency[MATH.name]) for case in cases]
    peak = sheet.named_constant(peaks)
    useful = USEFUL if cases[0].sweep.tile else MATH.work
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
        return [{**none, "estimate_bound": pl.lit(None, dtype=ESTIMATE_BOUND)}]
    present = [bound for bound in BOUNDS if any(each and bound in each.by for each in found)]
    pieces = {}
    for bound in present:
        absent = [None if each is None else each.by.get(bound, Time()) for each in found]
        pieces[f"#piece_{bound}"] = sheet.total(sheet.time(absent))
    common = sheet.total(sheet.poly([None if each is None else each.common for each in found]))
    largest = pl.col("#largest")
    bands = []
    for side in (0, 1):
        share: pl.Expr = pl.lit(None, dtype=pl.Float64)
        for bound in present:
            known = [None if each is None else each.bands.get(bound) for each in found]
            here = pl.col("estimate_bound") == pl.lit(bound, dtype=ESTIMATE_BOUND)
            column = sheet.constant([None if each is None else each[side] for each in known])
            share = pl.when(here).then(column).otherwise(share)
        bands.append(pl.col("t_estimate_s") * share)
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
        dict(zip(ESTIMATES[1:], bands, strict=True)),
    ]
