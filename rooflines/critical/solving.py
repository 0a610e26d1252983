"""Thresholds in Float64 with a bounded error; rows that it cannot decide are solved exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import polars as pl

from rooflines.model.resources import MATH
from rooflines.sweep.space import decode, length

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rooflines.model.resources import Rate, Resource
    from rooflines.model.target import Target
    from rooflines.sweep.space import AxisColumns

PRECISE = 1e-10
"""The relative error that a real threshold may have [1]."""

ROUNDING = 1e-14
"""The relative error of a sum of products of one sign [1]: about thirty roundings of 1.1e-16."""

ROWS_AT_ONCE = 2**20
"""Thresholds computed together, so that memory does not grow with the sweep."""

WHOLE_PEAK = Fraction(1)
"""The share of the peak from which an operation is compute-bound [1]."""

UNSURE = "#unsure"
"""The column that says where Float64 cannot decide."""


@dataclass(frozen=True)
class Solution:
    """The thresholds of one row.

    Attributes:
        outcome: One of `columns.OUTCOMES`.
        critical_exact, critical: The real and the whole threshold [1]; None: none.
        against: The whole threshold against each resource alone, by its name [1].
        limit: The bottleneck on the other side of the threshold.
        limit_intensity: What the intensity against it tends to [FLOP/byte].
    """

    outcome: str
    critical_exact: float | None
    critical: int | None
    against: Mapping[str, int | None]
    limit: str | None
    limit_intensity: float | None

    def columns(self) -> dict[str, int | float | str | None]:
        """The values by column."""
        return {
            "outcome": self.outcome,
            "critical_exact": self.critical_exact,
            "critical": self.critical,
            **{f"critical_{name}": value for name, value in self.against.items()},
            "limit": self.limit,
            "limit_intensity": self.limit_intensity,
        }


def rate_at(resource: Resource, target: Target, share: Fraction) -> Rate | None:
    """The rate that a threshold compares: for math, a share of the attainable peak.

    At least this share is attained where no other time is above t_math / share.

    Args:
        resource: The resource.
        target: The chip and its split.
        share: Share of the attainable peak [1].
    """
    rate = resource.rate(target)
    return replace(rate, per_s=rate.per_s * share) if rate and resource is MATH else rate


def solve_in_slices(
    axes: Sequence[AxisColumns],
    solve: Callable[[pl.LazyFrame], pl.LazyFrame],
    solve_exactly: Callable[[Mapping[str, Any]], Solution],
) -> Iterator[pl.DataFrame]:
    """The thresholds over a product of axes, in slices.

    Args:
        axes: What is held fixed, slowest first.
        solve: Adds the thresholds in Float64, and `UNSURE`.
        solve_exactly: The thresholds of one row in exact arithmetic.
    """
    rows = math.prod(length(axis) for axis in axes)
    for start in range(0, rows, ROWS_AT_ONCE):
        frame = solve(decode(axes, start, min(start + ROWS_AT_ONCE, rows))).collect()
        unsure = frame[UNSURE].arg_true()
        exact = [solve_exactly(row).columns() for row in frame[unsure].iter_rows(named=True)]
        yield _with_values(frame, unsure, exact) if exact else frame


def _with_values(
    frame: pl.DataFrame, rows: pl.Series, values: Sequence[Mapping[str, int | float | str | None]]
) -> pl.DataFrame:
    """The frame with other values in these rows."""
    return frame.with_columns(
        frame[name].scatter(rows, pl.Series([row[name] for row in values], dtype=frame[name].dtype))
        for name in values[0]
    )
