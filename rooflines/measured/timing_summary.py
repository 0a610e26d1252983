"""Sets of timings as tables: joined rows, and errors by chip and region."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from rooflines.dictionary.columns import MEASURED_SUMMARY, measured_columns
from rooflines.fits.fit_errors import BAND_QUANTILES, REGIONS, with_errors
from rooflines.fits.held_out import QUARTER, held_out, with_folds
from rooflines.fits.timings import ATTENTION, MATMUL_TIMINGS, SERVED, timed_kind
from rooflines.measured.join import IN_CACHE, PARTLY

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rooflines.basics.yaml_file import JSON
    from rooflines.fits.calibration_files import Calibrations
    from rooflines.fits.timings import TimedKind
    from rooflines.measured.join import JoinedTimings, Lacks

KEYS = ("model", "chip", "software", "dtypes", "collective", "split")
"""Keys in a set's rows, before the number of chips and the region."""

FIT, SITES, HELD_OUT = "fit", "sites", "held_out"
"""Splits: timings that a fit to the set uses, timings at sites that it holds out, and timings in a
set that is never fitted."""

PERCENT = 100

SPREAD = {"p10": BAND_QUANTILES[0], "median": 0.5, "p90": BAND_QUANTILES[1]}
"""Quantiles of a ratio by the ends of their columns' names [1]."""


def spread(ratio: str) -> dict[str, pl.Expr]:
    """Quantiles of a ratio, by column name."""
    values = pl.col(ratio)
    return {f"{ratio}_{name}": values.quantile(share, "linear") for name, share in SPREAD.items()}


def summary(frame: pl.DataFrame, fits: Calibrations, *, never_fitted: bool = False) -> pl.DataFrame:
    """Errors of bound and estimate at timings, by case and region.

    Args:
        frame: Timings joined with the model.
        fits: The calibrations by which they were joined.
        never_fitted: True if no fit uses the set.

    Returns:
        A row for each case in `KEYS` and each region that has timings; for collectives and served
        models also for each number of chips, `shards`, which is null for all: the `calibration`; n
        and `n_estimate`, the timings, and those with an estimate [1]; `below_percent`, timings
        below the bound, and `below_in_cache_percent`, those at least partly in cache, both over n
        [%]; quantiles of measured time over the bound and over the estimate (`ratio_lower_p10`,
        `_median`, `_p90`, and for `ratio_estimate`) [1]; errors |time / measured - 1| for the bound
        (`bare_median`, `bare_mean`) and the estimate (`estimate_median`, `estimate_mean`,
        `estimate_p90`) [1]; `band_coverage`, the share between the estimate's p10 and p90 [1]. Null
        without an estimate or band.
    """
    kind = timed_kind(frame.columns)
    for name in ("model", "dtypes", "collective"):
        if name not in frame.columns:
            frame = frame.with_columns(pl.lit(None, pl.String).alias(name))
    served = kind is SERVED
    frame = frame if served else with_folds(frame)
    is_unfitted = never_fitted or served
    is_held_out = held_out() if is_unfitted else held_out(_held_out_limit(frame, fits, kind))
    split = pl.when(is_held_out).then(pl.lit(SITES)).otherwise(pl.lit(FIT))
    if is_unfitted:
        split = pl.lit(HELD_OUT)
    if served and not never_fitted:  # by the fit of steps of their engine
        of_steps = pl.col("software").is_in([*fits.steps])
        split = pl.when(of_steps).then(pl.lit(FIT)).otherwise(pl.lit(HELD_OUT))
    frame = with_errors(frame).with_columns(split=split)
    regions = REGIONS if "B" in frame.columns else {"all": REGIONS["all"]}
    all_chips = pl.lit(None, pl.Int64)
    by_chips = [all_chips] if kind in (MATMUL_TIMINGS, ATTENTION) else [all_chips, pl.col("shards")]
    parts = [
        frame.filter(condition)
        .group_by(*KEYS, shards=chips, maintain_order=True)
        .agg(pl.lit(name).first().alias("region"), **error_columns())
        for name, condition in regions.items()
        for chips in by_chips
    ]
    order = {name: place for place, name in enumerate(regions)}
    place = pl.col("region").replace_strict(order, return_dtype=pl.Int64)
    nulls_last = [*[True] * len(KEYS), False, True]
    return pl.concat(parts).sort(*KEYS, "shards", place, nulls_last=nulls_last)


def _held_out_limit(frame: pl.DataFrame, fits: Calibrations, kind: TimedKind) -> pl.Expr:
    """Place below which the fit behind an estimate held sites out [1]."""
    name = "dtypes" if kind is ATTENTION else kind.fit_by
    entries = getattr(fits, kind.fits)
    limit = pl.lit(QUARTER)
    for key, label in frame.select("calibration", name).unique().drop_nulls().iter_rows():
        if (entry := entries.get(key, {}).get(label)) and entry.held_out_below != QUARTER:
            in_case = (pl.col("calibration") == key) & (pl.col(name) == label)
            limit = pl.when(in_case).then(entry.held_out_below).otherwise(limit)
    return limit


def error_columns() -> dict[str, pl.Expr]:
    """Columns of a summary row, over its timings."""
    reason = pl.col("reason")
    bare, error = pl.col("bare"), pl.col("error")
    in_band = pl.col("seconds").is_between("t_estimate_p10_s", "t_estimate_p90_s")
    return {
        "calibration": pl.col("calibration").drop_nulls().first(),
        "n": pl.len().cast(pl.Int64),
        "n_estimate": pl.col("t_estimate_s").count().cast(pl.Int64),
        "below_percent": reason.is_not_null().mean() * PERCENT,
        "below_in_cache_percent": reason.is_in([IN_CACHE, PARTLY]).fill_null(value=False).mean()
        * PERCENT,
        "bare_median": bare.median(),
        "bare_mean": bare.mean(),
        "estimate_median": error.median(),
        "estimate_mean": error.mean(),
        "estimate_p90": error.quantile(BAND_QUANTILES[1], "linear"),
        "band_coverage": in_band.mean(),
        **spread("ratio_lower"),
        **spread("ratio_estimate"),
    }


# ---------------------------------------------------------------- tables


def measured_frame(joined: JoinedTimings) -> pl.DataFrame:
    """Joined timings of a set, with columns in the dictionary's order."""
    return joined.frame.select(column.name for column in measured_columns(joined.frame.columns))


def summaries(sets: Iterable[tuple[str, pl.DataFrame, bool, Calibrations]]) -> pl.DataFrame:
    """Errors of sets, with the columns in `MEASURED_SUMMARY`.

    Args:
        sets: For each set its name, its timings joined with the model, true if no fit uses them,
            and the calibrations by which they were joined.
    """
    frames = [
        summary(frame, fits, never_fitted=never_fitted).with_columns(set=pl.lit(name))
        for name, frame, never_fitted, fits in sets
    ]
    return pl.concat(frames).select(column.name for column in MEASURED_SUMMARY)


def timings_lacking(lacks: Lacks, rows: Iterable[JSON]) -> int:
    """Number of timings without a row, or without an estimate [1].

    Args:
        lacks: A row, or an estimate.
        rows: From `MeasuredSet.skipped`.
    """
    return sum(row["timings"] for row in rows if row["lacks"] == lacks)
