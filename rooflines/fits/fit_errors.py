"""Errors in calibrated times against timings, by region, and bands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from rooflines.fits.least_squares import round_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rooflines.theory.times import FitRange

BAND_QUANTILES = (0.1, 0.9)
"""Quantiles at a band's ends [1]."""

MIN_BAND_TIMINGS = 10
"""Fewest timings for which a piece has a band; with fewer it has the band over all timings [1]."""

BATCHES = (16, 64, 256, 1024)
"""Last B in every bin but the last [1]."""


def _bins() -> dict[str, pl.Expr]:
    """Bins over B by name."""
    bins, first = {}, 1
    for last in BATCHES:
        bins[f"B {first:,} to {last:,}"] = pl.col("B").is_between(first, last)
        first = last + 1
    return {**bins, f"B from {first:,}": pl.col("B") >= first}


BINS: Mapping[str, pl.Expr] = _bins()
"""Bins over B by name."""

BIN = pl.coalesce(pl.when(inside).then(pl.lit(name)) for name, inside in BINS.items())
"""Name of a timing's bin."""

REGIONS: Mapping[str, pl.Expr] = {
    "all": pl.lit(value=True),
    "compute-bound": pl.col("bound") == "compute",
    "memory-bound": pl.col("bound") == "memory",
    **BINS,
}
"""Regions by name: by nominal bound and by B."""


def with_errors(frame: pl.DataFrame) -> pl.DataFrame:
    """Add `ratio` = seconds / t_estimate_s, and |t / seconds - 1|: `bare` (bound) and `error`."""
    return frame.with_columns(
        ratio=pl.col("seconds") / pl.col("t_estimate_s"),
        bare=(pl.col("t_lower_s") / pl.col("seconds") - 1).abs(),
        error=(pl.col("t_estimate_s") / pl.col("seconds") - 1).abs(),
    )


def errors(frame: pl.DataFrame, regions: Iterable[str] = REGIONS) -> pl.DataFrame:
    """Errors by region.

    Args:
        frame: Timings with columns from `with_errors`, and those that the regions read.
        regions: Keys in `REGIONS`.

    Returns:
        region, n, and errors [1]: `bare_median` for the bound; `median`, `mean`, `p90` for the
        estimate. Regions without timings are left out.
    """
    rows = [
        frame.filter(REGIONS[name]).select(
            region=pl.lit(name),
            n=pl.len(),
            bare_median=pl.col("bare").median(),
            median=pl.col("error").median(),
            mean=pl.col("error").mean(),
            p90=pl.col("error").quantile(BAND_QUANTILES[1], "linear"),
        )
        for name in regions
    ]
    return pl.concat(rows).filter(pl.col("n") > 0)


def band(frame: pl.DataFrame, tail: float = BAND_QUANTILES[0]) -> tuple[float, float]:
    """p10 and p90 over `ratio`, or other quantiles, rounded like fitted numbers [1].

    Args:
        frame: Timings with `ratio`.
        tail: Share below the band, and share above it [1].
    """
    low, high = (frame["ratio"].quantile(share, "linear") for share in (tail, 1 - tail))
    return float(round_number(low or 1)), float(round_number(high or 1))


def with_band(
    frame: pl.DataFrame, bands_by_bound: Mapping[str, tuple[float, float]], reach: FitRange | None
) -> pl.DataFrame:
    """Add `t_estimate_p10_s` and `t_estimate_p90_s` to timings with estimates.

    Args:
        frame: Timings with `t_estimate_s` [s], `estimate_bound`, and their sizes.
        bands_by_bound: The bands by bound; without one, the ends are null.
        reach: Sizes that the fit covers: other sizes have a wider band.
    """
    out_of_range = [pl.lit(value=False)]
    sizes = reach.sizes if reach else {}
    for name, (low, high) in sizes.items():
        if name not in frame.columns:  # timings of attention have no window
            continue
        out_of_range.append(~pl.col(name).is_between(low, high))
    wider = reach.out_of_range_band if reach and reach.out_of_range_band else None
    ends = {}
    for side, widest in enumerate((min, max)):
        inner = {bound: band[side] for bound, band in bands_by_bound.items()}
        outer = {bound: widest(end, wider[side]) if wider else end for bound, end in inner.items()}
        within, outside = (
            pl.col("estimate_bound").replace_strict(by_bound, default=None, return_dtype=pl.Float64)
            for by_bound in (inner, outer)
        )
        share = pl.when(pl.any_horizontal(out_of_range)).then(outside).otherwise(within)
        ends[f"t_estimate_p{(10, 90)[side]}_s"] = pl.col("t_estimate_s") * share
    return frame.with_columns(**ends)


def bands(frame: pl.DataFrame) -> dict[str, tuple[float, float]]:
    """p10 and p90 over measured / estimated time, by the largest piece's bound [1]."""
    parts = {str(key[0]): part for key, part in frame.group_by("estimate_bound")}
    return {
        name: band(part if part.height >= MIN_BAND_TIMINGS else frame)
        for name, part in sorted(parts.items())
    }
