"""Timings beside their modelled row: bound, estimate, and the reason for a time below the bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import polars as pl

from rooflines.basics.errors import Mistakes, RooflinesError, at_path
from rooflines.fits.fit_errors import BIN
from rooflines.fits.time_units import IMPOSSIBLE, check_units, is_possible
from rooflines.fits.timings import COLLECTIVE, MATMUL_TIMINGS, OPTIONAL, ROW
from rooflines.measured.kernel_rows import kernel_rows, missing_row_reason, with_dtypes
from rooflines.measured.served import NO_ROOM, missing_step_reason, served_rows, with_formats
from rooflines.measured.served_estimates import LACKS, with_estimates

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rooflines.fits.timings import TimedKind, Timings
    from rooflines.hardware.entries import Chip
    from rooflines.measured.catalogues import Catalogues

IN_CACHE, PARTLY, BOOST_CLOCK = "in cache", "partly in cache", "boost clock"
"""Possible reasons for a time below the bound: all operands, or as many bytes as are missing, fit
the last-level cache; the peak is at a clock which the chip may exceed."""

REDUCED = "reduced in the switch"
"""All-reduce whose switch adds up the payloads: each chip sends (N + 1) / N times the payload."""

SKEWED = "skewed routing"
"""Experts that tokens did not choose evenly: fewer are read than in the mean of even routing."""

EVEN = "balanced"
"""Value in the column `distribution`: tokens choose evenly."""

UNEXPLAINED = "unexplained"
"""Reason where none of these is possible."""

ALWAYS = ("source", "software", "note")
"""Optional columns that every joined table has."""

Lacks = Literal["row", "estimate"]
"""Row or estimate that a timing can lack."""

WITHOUT_ROW: Lacks = "row"
WITHOUT_ESTIMATE: Lacks = "estimate"

NO_CALIBRATION, NO_SOFTWARE = "no calibration", "no software is named"
"""Reasons why a matmul or a collective has no estimate."""

EXPLAINED_FLOOR_S = "#least"
"""Column with the memory time for bytes beyond the last-level cache [s]."""


@dataclass(frozen=True)
class JoinedTimings:
    """Timings joined with the model.

    Attributes:
        frame: The timings that have a row, in their order, with their columns and the row's.
        skipped: The timings that have no row, and those that have no estimate, counted: chip,
            software, dtypes or collective, lacks (`row` or `estimate`), reason, timings [1].
    """

    frame: pl.DataFrame
    skipped: pl.DataFrame


def join_timings(timings: Timings, catalogues: Catalogues) -> JoinedTimings:
    """Join timings with their row in the model.

    Args:
        timings: Timings on any chips and software in the catalogues.
        catalogues: Chips, dtypes and calibrations behind the rows.

    Returns:
        Each timing with `flops` [FLOP], `memory_bytes` [byte] and `memory_intensity` [FLOP/byte],
        or `network_bytes` [byte], or columns from `served_rows`; `t_lower_s`; of experts and
        collectives `t_strict_s`, under any routing and in the switch; `t_estimate_s`,
        `t_estimate_p10_s` and `t_estimate_p90_s` [s]; `calibration`; `ratio_lower` and
        `ratio_estimate`, measured over these [1]; `bound`; for served models columns from
        `with_estimates`; for matmuls `dtypes`, `region` (the bin for B) and `fits_cache` (true if
        the operands fit the last-level cache); `reason` for a time below the bound, else null. All
        are nominal: efficiencies are not applied.

    Raises:
        RooflinesError: No timing has a row, or the time unit is off.
    """
    absent = [name for name in ALWAYS if name not in timings.frame.columns]
    missing = {name: pl.lit(None, OPTIONAL[name]) for name in absent}
    frame = timings.frame.with_columns(**missing)
    frame = frame if ROW in frame.columns else frame.with_row_index(ROW, offset=1)
    chips = catalogues.chips
    with at_path(file=timings.file):
        if timings.is_served:
            rows, skipped = _served_models(frame, catalogues)
        else:
            rows, skipped = _kernels(frame, timings.kind, catalogues)
        with Mistakes() as mistakes:
            for (chip,), part in rows.group_by("chip", maintain_order=True):
                with mistakes.at():
                    served = f"tpot_s of {chip}, and likely ttft_s,"
                    check_units(part, served if timings.is_served else f"seconds of {chip}")
    too_fast = rows.filter(~is_possible()).with_columns(reason=pl.lit(IMPOSSIBLE))
    skipped = pl.concat([skipped, _count_by_reason(too_fast, WITHOUT_ROW)])
    rows = rows.filter(is_possible())
    without_estimate = _count_by_reason(
        rows.filter(pl.col("t_estimate_s").is_null()), WITHOUT_ESTIMATE
    )
    return JoinedTimings(
        _with_ratios(rows, chips).drop(ROW, EXPLAINED_FLOOR_S),
        pl.concat([skipped, without_estimate]),
    )


def _kernels(
    frame: pl.DataFrame, kind: TimedKind, catalogues: Catalogues
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Matmuls, attention or collectives with their metrics, and those skipped."""
    column, missing_reason = missing_row_reason(kind)
    chips = catalogues.chips
    if kind is MATMUL_TIMINGS:
        frame = with_dtypes(frame, catalogues.dtypes)
    elif kind is not COLLECTIVE:
        frame = frame.with_columns(dtypes=kind.fit_by)
    covered, skipped = _split_by_reason(
        frame, ("chip", column), lambda chip, value: missing_reason(chips[chip], value)
    )
    rows = pl.concat(kernel_rows(covered, kind, catalogues)).sort(ROW)
    if kind is COLLECTIVE:
        nulls = {"fits_cache": pl.lit(None, pl.Boolean), EXPLAINED_FLOOR_S: None}
        return rows.with_columns(**nulls), skipped
    caches = {chip: chips[chip].last_level_cache for chip in rows["chip"].unique()}
    capacities = {chip: cache and cache.capacity_bytes for chip, cache in caches.items()}
    capacity = pl.col("chip").replace_strict(capacities, return_dtype=pl.Float64)
    operands = pl.col("footprint_bytes")
    from_memory = (operands - capacity) / operands * pl.col("t_lower_s")
    region = {"region": BIN} if kind is MATMUL_TIMINGS else {}
    return rows.with_columns(
        fits_cache=operands < capacity, **region, **{EXPLAINED_FLOOR_S: from_memory}
    ), skipped


def _served_models(
    frame: pl.DataFrame, catalogues: Catalogues
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Runs with served models, their bound and estimate, and those skipped."""
    chips, keys = catalogues.chips, ("chip", "dtypes")
    frame = with_formats(frame)
    covered, without_row = _split_by_reason(
        frame, keys, lambda chip, weights: missing_step_reason(chips[chip], weights)
    )
    rows = served_rows(covered, chips)
    rows, oversized = _split_by_reason(rows, ("fits",), lambda fits: None if fits else NO_ROOM)
    rows = with_estimates(rows, catalogues)
    nulls = {"fits_cache": pl.lit(None, pl.Boolean), EXPLAINED_FLOOR_S: None}
    return rows.with_columns(**nulls), pl.concat([without_row, oversized])


def _split_by_reason(
    frame: pl.DataFrame, keys: Sequence[str], missing_reason: Callable[..., str | None]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split timings into those with a row, and the others, counted by reason.

    Raises:
        RooflinesError: No timing has one.
    """
    cases = frame.select(keys).unique(maintain_order=True)
    reasons = pl.Series(
        "reason", [missing_reason(*row) for row in cases.iter_rows()], dtype=pl.String
    )
    with_reasons = frame.join(cases.with_columns(reasons), on=keys, maintain_order="left")
    without_row = with_reasons.filter(pl.col("reason").is_not_null())
    if without_row.height == with_reasons.height:
        chip, reason = without_row.select("chip", "reason").row(0)
        problem = f"has no timing that the model has a row for: {chip} has {reason}"
        raise RooflinesError("", problem, "choose other rows, or add to the chip's entry")
    return with_reasons.filter(pl.col("reason").is_null()).drop("reason"), _count_by_reason(
        without_row, WITHOUT_ROW
    )


def _count_by_reason(timings: pl.DataFrame, lacks: Lacks) -> pl.DataFrame:
    """Count timings that lack a row, for the `reason`, or an estimate."""
    columns = [
        name for name in ("chip", "software", "dtypes", "collective") if name in timings.columns
    ]
    if lacks == WITHOUT_ESTIMATE:
        reasons = [LACKS] if LACKS in timings.columns else []
        unnamed = pl.when(pl.col("software").is_null()).then(pl.lit(NO_SOFTWARE))
        default_reason = unnamed.otherwise(pl.lit(NO_CALIBRATION))
        timings = timings.with_columns(reason=pl.coalesce(*reasons, default_reason))
    return timings.group_by(
        *columns, pl.lit(lacks).alias("lacks"), "reason", maintain_order=True
    ).agg(timings=pl.len())


def _with_ratios(rows: pl.DataFrame, chips: Mapping[str, Chip]) -> pl.DataFrame:
    """Add the ratios, and the reason for a time below the bound."""
    boosted = [chip for chip in rows["chip"].unique() if chips[chip].clock == "boost"]
    seconds, bound = pl.col("seconds"), pl.col("bound")
    strict_s = pl.col("t_strict_s") if "t_strict_s" in rows.columns else pl.lit(None, pl.Float64)
    is_even = pl.col("distribution") == EVEN if "distribution" in rows.columns else pl.lit(None)
    explanation = (
        pl.when((bound == "memory") & (seconds >= strict_s) & ~is_even.fill_null(value=False))
        .then(pl.lit(SKEWED))
        .when((bound == "memory") & pl.col("fits_cache"))
        .then(pl.lit(IN_CACHE))
        .when((bound == "memory") & (seconds >= pl.col(EXPLAINED_FLOOR_S)))
        .then(pl.lit(PARTLY))
        .when((bound == "network") & (seconds >= strict_s))
        .then(pl.lit(REDUCED))
        .when((bound == "compute") & pl.col("chip").is_in(boosted))
        .then(pl.lit(BOOST_CLOCK))
        .otherwise(pl.lit(UNEXPLAINED))
    )
    return rows.with_columns(
        pl.col("bound").cast(pl.String),
        ratio_lower=seconds / pl.col("t_lower_s"),
        ratio_estimate=seconds / pl.col("t_estimate_s"),
        reason=pl.when(seconds < pl.col("t_lower_s")).then(explanation),
    )
