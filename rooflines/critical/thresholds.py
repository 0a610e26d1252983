"""Thresholds of whole sweeps, along every axis that their configs ask for."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import polars as pl

from rooflines.critical.chips import chips_thresholds
from rooflines.critical.rates import rate_thresholds
from rooflines.critical.sizes import dimension_thresholds
from rooflines.model.columns import OUTCOMES, threshold_columns
from rooflines.model.resources import OTHERS, RATES
from rooflines.model.sharding import SHARDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rooflines.model.columns import Column
    from rooflines.sweep.sweep import Sweep


def sweep_thresholds(sweep: Sweep) -> pl.DataFrame:
    """The thresholds of a sweep, along every axis of its config.

    Returns:
        The columns of `columns.threshold_columns`, in their order.
    """
    frames = [
        in_form(frame, sweep, axis, share)
        for axis in sweep.solved
        for share, frame in slices_along(sweep, axis)
    ]
    return pl.concat(frames) if frames else in_form(pl.DataFrame(), sweep, "", Fraction(1)).clear()


def slices_along(sweep: Sweep, axis: str) -> Iterator[tuple[Fraction, pl.DataFrame]]:
    """The thresholds along one axis for shares of the attainable peak, in slices."""
    if axis == SHARDS:
        return chips_thresholds(sweep)
    if axis in RATES:
        return rate_thresholds(sweep, RATES[axis])
    return dimension_thresholds(sweep, axis)


def in_form(frame: pl.DataFrame, sweep: Sweep, axis: str, share: Fraction) -> pl.DataFrame:
    """The columns of the thresholds, in their order and types; one that the frame lacks is null."""
    frame = frame.with_columns(
        sweep=pl.lit(sweep.name), axis=pl.lit(axis), share=pl.lit(float(share))
    )
    columns = []
    for column in threshold_columns(sweep.op.dims, axes=sweep.has_axes):
        kind = KINDS.get(column.name, pl.Int64 if column.name in sweep.op.dims else pl.Categorical)
        present = column.name in frame.columns and column.name != axis
        columns.append(
            (pl.col(column.name) if present else pl.lit(None)).cast(kind).alias(column.name)
        )
    return frame.select(columns)


KINDS: Mapping[str, pl.DataType | type[pl.DataType]] = {
    "shards": pl.Int64,
    "share": pl.Float64,
    "outcome": pl.Enum(OUTCOMES),
    "critical_exact": pl.Float64,
    "critical": pl.Int64,
    **{f"critical_{resource.name}": pl.Int64 for resource in OTHERS},
    "critical_rule": pl.Float64,
    "saturates_estimate": pl.Int64,
    "limit": pl.Enum([resource.bound for resource in OTHERS]),
    "limit_intensity": pl.Float64,
}
"""Types of columns that are not Categorical."""


def all_dims(sweeps: Iterable[Sweep]) -> tuple[str, ...]:
    """The dimensions of several sweeps, in order of appearance."""
    return tuple(dict.fromkeys(dim for sweep in sweeps for dim in sweep.op.dims))


def all_columns(sweeps: Sequence[Sweep]) -> tuple[Column, ...]:
    """The columns of the thresholds of several sweeps, in order."""
    return threshold_columns(all_dims(sweeps), axes=any(sweep.has_axes for sweep in sweeps))


def all_thresholds(sweeps: Sequence[Sweep]) -> pl.DataFrame:
    """The thresholds of several sweeps, concatenated; without sweeps none.

    A dimension that an operation lacks is null in its rows.
    """
    order = [column.name for column in all_columns(sweeps)]
    if not sweeps:
        return pl.DataFrame(schema={name: KINDS.get(name, pl.Categorical) for name in order})
    frames = [sweep_thresholds(sweep) for sweep in sweeps]
    return pl.concat(frames, how="diagonal").select(order)
