"""Thresholds in Float64 with a known error, and the few rows that it leaves unsure in exact arithmetic."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import polars as pl

from rooflines.sweep.space import decode, length

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rooflines.sweep.space import Columns

__all__ = ["PRECISE", "ROUNDING", "UNSURE", "solved"]

PRECISE = 1e-10
"""The relative error that a real threshold may have [1]."""

ROUNDING = 1e-14
"""The relative error of a sum of products of one sign [1]: at most some thirty roundings of 1.1e-16."""

ROWS_AT_ONCE = 2**20
"""Thresholds computed together, so that memory does not grow with the sweep."""

UNSURE = "#unsure"
"""The column that says where Float64 cannot tell."""


def solved(
    axes: Sequence[Columns],
    solve: Callable[[pl.LazyFrame], pl.LazyFrame],
    settle: Callable[[Mapping[str, Any]], Mapping[str, Any]],
) -> Iterator[pl.DataFrame]:
    """The thresholds over a product of axes, in slices.

    Args:
        axes: What is not solved for, slowest first.
        solve: Adds the thresholds, and `UNSURE`.
        settle: The thresholds of one unsure row, exactly.
    """
    rows = math.prod(length(axis) for axis in axes)
    for start in range(0, rows, ROWS_AT_ONCE):
        frame = solve(decode(axes, start, min(start + ROWS_AT_ONCE, rows))).collect()
        yield _with_settled(frame, frame[UNSURE].arg_true(), settle)


def _with_settled(
    frame: pl.DataFrame, places: pl.Series, settle: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> pl.DataFrame:
    """The frame with these rows settled."""
    settled = [settle(row) for row in frame[places].iter_rows(named=True)]
    if not settled:
        return frame
    return frame.with_columns(
        frame[name].scatter(
            places, pl.Series([values[name] for values in settled], dtype=frame[name].dtype)
        )
        for name in settled[0]
    )
