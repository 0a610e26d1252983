"""The rows of operations: works, times and what follows from them, as stages of expressions."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import TYPE_CHECKING

import polars as pl

from rooflines.model.costs import USEFUL
from rooflines.model.resources import MATH, NETWORK, RESOURCES
from rooflines.sweep.estimate_rows import estimate_stages
from rooflines.sweep.sheet import first_longest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflines.sweep.estimate_rows import Stages
    from rooflines.sweep.operations import OperationCase
    from rooflines.sweep.sheet import Sheet

BOUND = pl.Enum([resource.bound for resource in RESOURCES])


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
    peaks = [float(case.target.peak) for case in cases]
    reached = [float(case.target.peak * case.machine.efficiency[MATH.name]) for case in cases]
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
