"""Calibrated times of one kernel as stages of expressions: the estimate, its bound and its band."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from rooflines.model.times import Time
from rooflines.sweep.calibrated import BOUNDS
from rooflines.sweep.sheet import first_longest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflines.model.times import Times
    from rooflines.sweep.sheet import Sheet

Stages = list[dict[str, pl.Expr]]
"""Columns to add to the axes of a table, one stage after another."""

ESTIMATE_BOUND = pl.Enum(BOUNDS)

NO_TIME = Time()

ESTIMATES = ("t_estimate_s", "t_estimate_p10_s", "t_estimate_p90_s")
"""The estimate and its band [s]."""


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
        absent = [None if each is None else each.by.get(bound, NO_TIME) for each in found]
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
