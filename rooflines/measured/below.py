"""Timings below the bound by collection: how many, how far, why, and what others time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from rooflines.fits.timings import timed_kind

if TYPE_CHECKING:
    from rooflines.measured.join import JoinedTimings

COLLECTION = "collection"
"""Column with a timing's source; without one its software."""

PLACE = "#place"
"""Column with a timing's place in its table."""

UNSHARED = ("seconds", "software", "source", "kernel")
"""Columns in which timings for one shape may differ."""


def below_by_collection(joined: JoinedTimings) -> pl.DataFrame:
    """Count timings below the bound, by collection, chip, and dtypes or collective.

    Args:
        joined: Timings joined with the model.

    Returns:
        A row for each that has any, most first: `timings`, `below` [1]; `below_strict`, those below
        `t_strict_s` [1], null without it; `least_ratio`, the smallest
        measured time over the bound [1]; `reason`, the reasons with their counts; `elsewhere`,
        shapes that another collection has timed on the same chip, `above_elsewhere`, those that it
        has timed above the bound [1]; `ratio_elsewhere`, median of its time over this one [1], null
        without any.
    """
    frame = joined.frame.with_row_index(PLACE).with_columns(
        pl.coalesce("source", "software", pl.lit("-")).alias(COLLECTION)
    )
    kinds = [name for name in ("model", "dtypes", "collective") if name in frame.columns]
    part = pl.concat_str(kinds, separator=" ", ignore_nulls=True).alias("part")
    frame = frame.with_columns(part)
    keys = (COLLECTION, "chip", "part")
    below = frame.filter(pl.col("reason").is_not_null())
    strict_s = pl.col("t_strict_s") if "t_strict_s" in frame.columns else pl.lit(None, pl.Float64)
    below_strict = pl.when(strict_s.is_not_null().any()).then((pl.col("seconds") < strict_s).sum())
    sums = below.group_by(keys).agg(
        below=pl.len(),
        below_strict=below_strict,
        least_ratio=pl.col("ratio_lower").min(),
    )
    reasons = (
        below.group_by(*keys, "reason")
        .agg(pl.len())
        .sort("len", "reason", descending=[True, False])
        .group_by(keys, maintain_order=True)
        .agg(reason=pl.format("{} {}", "len", "reason").str.join(", "))
    )
    counts = frame.group_by(keys).agg(timings=pl.len())
    columns = [*keys, "timings", "below", "below_strict", "least_ratio", "reason"]
    columns += ["elsewhere", "above_elsewhere", "ratio_elsewhere"]
    return (
        sums.join(counts, on=keys)
        .join(reasons, on=keys)
        .join(_elsewhere(frame, below, keys), on=keys, how="left")
        .with_columns(pl.col("elsewhere", "above_elsewhere").fill_null(0))
        .sort("below", *keys, descending=[True, False, False, False])
        .select(columns)
    )


def _elsewhere(frame: pl.DataFrame, below: pl.DataFrame, keys: tuple[str, ...]) -> pl.DataFrame:
    """Shapes below the bound that another collection has timed, by `keys`."""
    identity = timed_kind(frame.columns).identity
    shape = ["chip", *(name for name in identity if name not in UNSHARED)]
    shape += ["distribution"] if "distribution" in frame.columns else []
    rivals = frame.group_by(*shape, COLLECTION).agg(rival_s=pl.col("seconds").median())
    rival = pl.col(f"{COLLECTION}_right")
    pairs = below.join(rivals, on=shape, nulls_equal=True, suffix="_right")
    return (
        pairs.filter(rival != pl.col(COLLECTION))
        .group_by(PLACE, *keys)
        .agg(
            ratio=(pl.col("rival_s") / pl.col("seconds")).median(),
            above=(pl.col("rival_s") >= pl.col("t_lower_s")).any(),
        )
        .group_by(keys)
        .agg(
            elsewhere=pl.len(),
            above_elsewhere=pl.col("above").sum(),
            ratio_elsewhere=pl.col("ratio").median(),
        )
    )
