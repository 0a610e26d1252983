"""Nominal and calibrated numbers in one chart: what the reader chooses, and what a chart says."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from rooflines.basics.lazy import alt, pl
from rooflines.charts.frames import SHARES, TIMES
from rooflines.charts.kit.drawing import Choice
from rooflines.charts.kit.text import chip_label
from rooflines.fits.entries import Bound

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

NOMINAL, CALIBRATED = BASES = ("nominal", "calibrated")
"""What numbers of a chart are by: the data sheet, or a calibration."""

SIZES = ("critical", "critical_estimate", "calibrated")
"""Columns of the nominal and of the calibrated size."""

STATED = ("exact", "limit", "rule")
"""Columns of thresholds that a calibration does not give."""

BOUNDS = tuple(dict.fromkeys((*TIMES, *get_args(Bound))))
"""The bottlenecks of nominal and of calibrated times: charts give them colours in this order."""

BAND = ("t_estimate_s", "t_estimate_p10_s", "t_estimate_p90_s")
"""The columns of a calibrated time and of its band."""

FULLY_NAMED = 3
"""Calibrated chips that a subtitle names; of more it gives the number [1]."""


def basis_names(frame: pl.DataFrame) -> list[str]:
    """The parameter `basis`, if any row is `calibrated`."""
    return ["basis"] if frame["calibrated"].any() else []


def basis_choice(frame: pl.DataFrame) -> list[Choice]:
    """The menu of nominal and calibrated numbers, if any row is `calibrated`."""
    return [Choice(name, BASES) for name in basis_names(frame)]


def with_both(views: Mapping[str, pl.DataFrame], names: Sequence[str]) -> pl.DataFrame:
    """The nominal rows, the calibrated values of some columns in columns `<name>_estimate`.

    Args:
        views: Equally many rows by basis, in the same order.
        names: The columns.
    """
    nominal, other = views[NOMINAL], views.get(CALIBRATED)
    if other is None:
        other = nominal.with_columns(
            pl.lit(None, nominal.schema[name]).alias(name) for name in names
        )
    return nominal.with_columns(other[name].alias(f"{name}_estimate") for name in names)


def by_basis(base: alt.Chart, frame: pl.DataFrame, names: Sequence[str]) -> alt.Chart:
    """Rows with the values of some columns by the reader's choice of `basis`.

    Args:
        base: The rows, from `with_both`.
        frame: Their frame.
        names: The columns.
    """
    if not basis_names(frame):
        return base
    return base.transform_calculate(
        **{
            name: f"basis == '{CALIBRATED}' ? datum.{name}_estimate : datum.{name}"
            for name in names
        }
    )


def with_estimates(rows: pl.LazyFrame, *others: str) -> pl.LazyFrame:
    """Rows of a table with `BAND` and `estimate_bound`, null where they cannot be shown.

    Args:
        rows: Of a table, which may store some columns only.
        others: Columns that a chart needs beside those of estimates; null if not stored.
    """
    needed = [*BAND, "estimate_bound", *others]
    missing = {*needed} - {*rows.collect_schema()}
    if not missing:
        return rows
    return rows.with_columns(
        *(pl.lit(None, dtype=pl.Float64).alias(name) for name in (*BAND, *others)),
        estimate_bound=pl.lit(None, dtype=pl.String),
    )


def critical_views(frame: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
    """The rows of one choice by basis: with nominal sizes, and with calibrated ones if it has any.

    Chips without a calibration keep their nominal sizes. The columns of `SHARES` and `STATED` are
    of nominal sizes, so calibrated rows have none.

    Args:
        frame: With `critical`, `critical_estimate`, `calibrated` and the columns of `share_values`.
    """
    if not frame["calibrated"].any():
        return {NOMINAL: frame}
    near, *others = SHARES
    calibrated = frame.with_columns(
        pl.lit("").alias(near),
        *(pl.lit(None, dtype=frame.schema[name]).alias(name) for name in others),
        critical=pl.when("calibrated").then("critical_estimate").otherwise("critical"),
    )
    stated = [name for name in STATED if name in frame.columns]
    calibrated = calibrated.with_columns(pl.when(~pl.col("calibrated")).then(pl.col(stated)))
    return {NOMINAL: frame, CALIBRATED: calibrated}


def basis_text(frame: pl.DataFrame, basis: str = NOMINAL) -> str:
    """What a subtitle says of the chips that have a calibration; "" for nominal numbers.

    Args:
        frame: The rows of one choice, with `chip` and `calibrated`.
        basis: One of `BASES`.
    """
    if basis == NOMINAL:
        return ""
    fitted = frame.filter("calibrated")["chip"].unique(maintain_order=True)
    return fitted_text(frame["chip"].unique(maintain_order=True), fitted)


def fitted_text(chips: Collection[str], fitted: Collection[str]) -> str:
    """What a subtitle says of calibrated numbers of some chips.

    Args:
        chips: The chips.
        fitted: Those of them that have a calibration.
    """
    if len(fitted) == len(chips):
        return " Calibrated."
    if not len(fitted):
        return " No calibration: nominal."
    named = (
        ", ".join(map(chip_label, fitted))
        if len(fitted) <= FULLY_NAMED
        else f"{len(fitted)} of {len(chips)} chips"
    )
    return f" Calibrated: {named}; others nominal."
