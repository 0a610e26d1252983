"""The points of whole models by basis, their Pareto fronts, and the fronts that hide each other."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from rooflines.basics.lazy import pl
from rooflines.charts.basis import BAND, CALIBRATED, NOMINAL
from rooflines.charts.comparing import beneath

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.charts.kit.place import Plane

__all__ = ["CASE", "ESTIMATES", "MS", "RATE", "TIME", "hidden", "views_of", "with_front"]

CASE = ("model", "dtypes", "S")
"""What a reader chooses, besides the chip and the basis."""

TIME, RATE = "t_lower_s", "tokens_per_s_per_chip"
ESTIMATES = {TIME: BAND[0], RATE: f"{RATE}_estimate", "front": "front_estimate"}
"""The calibrated column of each nominal one."""

MS = 1e3
"""Milliseconds of a second."""

DIGITS = 4
"""Significant digits of the points [1]."""

STEPS = 64
"""Times at which fronts are compared, over the plot's width [1]."""

DOT, PART = 0.015, 0.25
"""A front is hidden if another's dots are as close as this, as a share of the plot's height, along
this share of the two [1]."""


def with_front(frame: pl.DataFrame, time: str, rate: str, name: str) -> pl.DataFrame:
    """Adds whether cases are on the front of a time [s] and a throughput [1/s]."""
    fits = pl.col("fits") & pl.col(time).is_not_null()
    faster = pl.when(fits).then(rate).cum_max().forward_fill().shift().over("chip", *CASE)
    front = fits & (faster.is_null() | (pl.col(rate) > faster))
    return (
        frame.with_row_index("order")
        .sort(time, rate, descending=[False, True], nulls_last=True, maintain_order=True)
        .with_columns(front.alias(name))
        .sort("order")
        .drop("order")
    )


def views_of(frame: pl.DataFrame) -> pl.DataFrame:
    """The points by `basis`, with their places; calibrated ones where there are estimates."""
    estimates = frame.filter("calibrated").with_columns(
        pl.col(calibrated).alias(name) for name, calibrated in ESTIMATES.items()
    )
    both = pl.concat(
        [
            frame.with_columns(basis=pl.lit(NOMINAL)),
            estimates.with_columns(basis=pl.lit(CALIBRATED)),
        ]
    )
    return both.with_columns(
        ms=(pl.col(TIME) * MS).round_sig_figs(DIGITS),
        rate=pl.col(RATE).round_sig_figs(DIGITS),
        state=pl.col("fits").cast(pl.Int64) + pl.col("front").cast(pl.Int64),
    )


def hidden(fronts: Mapping[str, Sequence[tuple[float, float]]], plane: Plane) -> dict[str, int]:
    """How many fronts drawn later run along the front of each chip, or 1 for dots on its dots.

    Args:
        fronts: Time [ms] and throughput [1/s] along the front of each chip, in order of drawing.
        plane: The axes.
    """
    heights: dict[str, dict[int, float]] = {}
    for chip, front in fronts.items():
        points = [plane.at((1.0, 1.0), *point) for point in front]
        heights[chip] = {
            step: y + (after[1] - y) * (step / STEPS - x) / (after[0] - x)
            for (x, y), after in pairwise(points)
            for step in range(math.ceil(x * STEPS), math.ceil(after[0] * STEPS))
        }
    lines, dots = beneath(heights, along=PART), beneath(heights, DOT, PART)
    return {chip: max(count, min(dots[chip], 1)) for chip, count in lines.items()}
