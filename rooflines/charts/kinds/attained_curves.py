"""The curves of attained FLOP/s: their sizes, their points, and the critical sizes on them."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import pl
from rooflines.charts.basis import BAND
from rooflines.charts.frames import TIMES, highest, lowest
from rooflines.model.resources import MATH

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.charts.results import Selection

__all__ = ["KEYS", "densified", "estimates_of", "knees_of", "series_of", "thinned"]

CURVE_POINTS = 41
"""Points of a curve. Times are affine between the sizes of the table, so interpolation is exact."""

KEYS = ["chip", "dtypes", "series", "order"]
"""What a curve is of."""


def estimates_of(table: pl.DataFrame) -> pl.DataFrame:
    """What is attained calibrated, at sizes of the table: estimates are not affine between them."""
    time, fast, slow = (pl.col(MATH.work) / pl.col(name) for name in BAND)
    return thinned(table.drop_nulls(BAND[0])).select(
        *KEYS, "size", "peak", kind=pl.lit("estimate"), flops_per_s=time, fast=fast, slow=slow
    )


def knees_of(of: Selection, sizes: pl.DataFrame, peaks: pl.DataFrame) -> pl.DataFrame:
    """The critical sizes of every series, at the peak."""
    lead, *others = of.dims
    return (
        of.thresholds()
        .filter(pl.col("axis") == lead, of.on_fewest())
        .join(sizes.lazy(), on=["shape", *others], nulls_equal=True)
        .join(peaks.lazy(), on=["chip", "dtypes"])
        .select(
            *KEYS,
            pl.lit("knee").alias("kind"),
            size=pl.col("critical").cast(pl.Float64),
            exact="critical_exact",
            limit="limit",
            critical_estimate=pl.col("critical_estimate").cast(pl.Float64),
            flops_per_s="peak",
            peak="peak",
            shape="shape",
            **{dim: dim for dim in others},
        )
        .unique(KEYS, keep="first", maintain_order=True)
        .collect()
    )


def series_of(
    rows: pl.LazyFrame, dims: Sequence[str], shape: str | None, most: int
) -> pl.DataFrame:
    """The sizes that get a curve each: named shapes, or sizes of the dimensions."""
    shaped = rows.select("shape", *dims).unique().sort(*dims, descending=True).collect()
    if shape is not None:
        shaped = shaped.filter(pl.col("shape").str.starts_with(shape))
    elif shaped.height > most and len(dims) > 1:
        square = shaped.filter(pl.all_horizontal(pl.col(d) == pl.col(dims[0]) for d in dims))
        shaped = square if square.height > 1 else shaped
    picks = sorted(
        {
            round(i * (shaped.height - 1) / max(min(most, shaped.height) - 1, 1))
            for i in range(min(most, shaped.height))
        }
    )
    shaped = shaped[picks]
    return shaped.with_columns(
        series=pl.Series([_series_name(row, dims) for row in shaped.to_dicts()], dtype=pl.String)
    ).with_row_index("order")


def _series_name(row: Mapping[str, Any], dims: Sequence[str]) -> str:
    """The label of a series: its shape, or its sizes."""
    if row.get("shape"):
        return str(row["shape"])
    values = [row[dim] for dim in dims]
    if len(set(values)) == 1:
        return f"{' = '.join(dims)} = {values[0]:,}"
    return ", ".join(f"{dim} = {row[dim]:,}" for dim in dims)


def thinned(table: pl.DataFrame) -> pl.DataFrame:
    """As many sizes as a curve needs, about even on a log axis: times of tiles are not affine."""
    sizes = table["size"].unique().sort().to_list()
    if len(sizes) <= CURVE_POINTS:
        return table
    low, high = sizes[0], sizes[-1]
    wanted = (low * (high / low) ** (i / (CURVE_POINTS - 1)) for i in range(CURVE_POINTS - 1))
    kept = {sizes[bisect_left(sizes, size)] for size in wanted} | {high}
    return table.filter(pl.col("size").is_in(kept))


def densified(table: pl.DataFrame) -> pl.DataFrame:
    """More sizes between those of a table, interpolated: times and costs are affine in one size."""
    low, high = lowest(table, "size", 1), highest(table, "size", 1)
    steps = CURVE_POINTS - 1
    grid = pl.DataFrame({"size": [low * (high / low) ** (i / steps) for i in range(CURVE_POINTS)]})
    cases = table.select(*KEYS, "peak").unique(maintain_order=True)
    wanted = cases.join(grid, how="cross").sort("size")
    before = wanted.join_asof(
        table.sort("size").drop("peak"),
        on="size",
        by=KEYS,
        strategy="backward",
        coalesce=False,
        suffix="_a",
        check_sortedness=False,
    )
    after = wanted.join_asof(
        table.sort("size").drop("peak"),
        on="size",
        by=KEYS,
        strategy="forward",
        coalesce=False,
        suffix="_b",
        check_sortedness=False,
    )
    affine = (MATH.work, *TIMES.values())
    both = before.hstack(
        after.select(pl.col("size_b"), *(pl.col(c).alias(f"{c}_b") for c in affine))
    )
    share = (
        pl.when(pl.col("size_b") > pl.col("size_a"))
        .then((pl.col("size") - pl.col("size_a")) / (pl.col("size_b") - pl.col("size_a")))
        .otherwise(0.0)
    )
    return both.select(
        *KEYS,
        "size",
        "peak",
        *((pl.col(c) + share * (pl.col(f"{c}_b") - pl.col(c))).alias(c) for c in affine),
    ).sort(*KEYS, "size")
