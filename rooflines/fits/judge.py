"""How far calibrated times are from timings: errors by region, and bands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

BAND = (0.1, 0.9)
"""The quantiles of a band [1]."""

FEWEST_IN_BAND = 10
"""Timings of a piece for a band of its own; with fewer it has the band of all [1]."""

BATCHES = (16, 64, 256, 1024)
"""The last B of every bin but the last [1]."""


def _bins() -> dict[str, pl.Expr]:
    """The bins of B by name."""
    found, first = {}, 1
    for last in BATCHES:
        found[f"B {first:,} to {last:,}"] = pl.col("B").is_between(first, last)
        first = last + 1
    return {**found, f"B from {first:,}": pl.col("B") >= first}


BINS: Mapping[str, pl.Expr] = _bins()
"""The bins of B by name."""

BIN = pl.coalesce(pl.when(inside).then(pl.lit(name)) for name, inside in BINS.items())
"""The name of the bin of a timing."""

REGIONS: Mapping[str, pl.Expr] = {
    "all": pl.lit(value=True),
    "compute-bound": pl.col("bound") == "compute",
    "memory-bound": pl.col("bound") == "memory",
    **BINS,
}
"""The regions by name, by nominal bound and by B."""


def with_errors(frame: pl.DataFrame) -> pl.DataFrame:
    """Adds `ratio`, `bare` and `error` to `seconds`, `t_lower_s` and `t_estimate_s`."""
    return frame.with_columns(
        ratio=pl.col("seconds") / pl.col("t_estimate_s"),
        bare=(pl.col("t_lower_s") / pl.col("seconds") - 1).abs(),
        error=(pl.col("t_estimate_s") / pl.col("seconds") - 1).abs(),
    )


def errors(frame: pl.DataFrame, regions: Iterable[str] = REGIONS) -> pl.DataFrame:
    """Errors of judged timings by region.

    Args:
        frame: Timings with the columns of `with_errors`, and those that the regions read.
        regions: Keys of `REGIONS`.

    Returns:
        region, n, and the errors [1]: of the bound, `bare_median`; of the estimate, `median`,
        `mean`, `p90`. Regions without timings are left out.
    """
    rows = [
        frame.filter(REGIONS[name]).select(
            region=pl.lit(name),
            n=pl.len(),
            bare_median=pl.col("bare").median(),
            median=pl.col("error").median(),
            mean=pl.col("error").mean(),
            p90=pl.col("error").quantile(BAND[1], "linear"),
        )
        for name in regions
    ]
    return pl.concat(rows).filter(pl.col("n") > 0)


def band(frame: pl.DataFrame) -> tuple[float, float]:
    """The p10 and p90 of `ratio` [1]."""
    low, high = (frame["ratio"].quantile(share, "linear") for share in BAND)
    return float(low or 1), float(high or 1)


def bands(frame: pl.DataFrame) -> dict[str, tuple[float, float]]:
    """The p10 and p90 of measured over estimated times, by bound of the largest piece [1]."""
    parts = {str(key[0]): part for key, part in frame.group_by("estimate_bound")}
    return {
        name: band(part if part.height >= FEWEST_IN_BAND else frame)
        for name, part in sorted(parts.items())
    }
