"""The summary of a run for people: tables and thresholds counted by chip, dtypes and sharding."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from rooflines.basics.table_files import scan_parquet
from rooflines.model.columns import NEVER, SUMMARY
from rooflines.model.resources import MATH, RESOURCES
from rooflines.results.records import recorded
from rooflines.results.tables import NO_TEXT, write_csv

if TYPE_CHECKING:
    from collections.abc import Mapping

GROUP = ("chip", "dtypes", "sharding", "shards")
"""What a row of the summary is about, within a sweep."""

COUNTS = ("shards", "rows", "critical_least", "critical_median", "critical_largest")
SHARES = ("compute_bound", "never", "critical_rule")

KINDS = dict.fromkeys(COUNTS, pl.Int64) | dict.fromkeys(SHARES, pl.Float64)
"""Types of columns that are not text."""


@recorded
def write_summary(spec: str, results: str | Path, path: str | Path) -> None:
    """Write the summary of all sweeps as CSV.

    Args:
        spec: What it depends on, from `Plan.summary_spec`.
        results: The folder with the tables and `thresholds.parquet`.
        path: The CSV file to write.
    """
    sweeps = json.loads(spec)["of"]
    thresholds = scan_parquet(Path(results) / "thresholds.parquet")
    counted = pl.collect_all(
        [_rows_of(sweep, Path(results) / "tables") for sweep in sweeps], engine="streaming"
    )
    solved = pl.collect_all(
        [_thresholds_of(sweep, thresholds) for sweep in sweeps], engine="streaming"
    )
    frames = [
        _summary(sweep, rows, sizes)
        for sweep, rows, sizes in zip(sweeps, counted, solved, strict=True)
    ]
    none = pl.DataFrame(schema={c.name: KINDS.get(c.name, pl.String) for c in SUMMARY})
    write_csv(pl.concat([none, *frames]), path, NO_TEXT)


def _grouped(frame: pl.LazyFrame, *values: pl.Expr) -> pl.LazyFrame:
    """Values of each group; the chips of one are the same however the sweep would split more."""
    texts = [name for name in GROUP if name not in KINDS]
    unsplit = pl.when(shards=1).then(pl.lit("none")).otherwise("sharding").alias("sharding")
    return (
        frame.group_by(GROUP)
        .agg(*values)
        .with_columns(pl.col(texts).cast(pl.String), pl.col("shards").cast(pl.Int64))
        .sort(GROUP)
        .with_columns(unsplit)
        .unique(GROUP, keep="first", maintain_order=True)
    )


def _rows_of(sweep: Mapping[str, Any], tables: Path) -> pl.LazyFrame:
    """Rows of a sweep by group, and how many each resource bounds."""
    frame = scan_parquet([tables / f"{part}.parquet" for part in sweep["parts"]])
    has_bound = "bound" in frame.collect_schema()
    bounds = [
        ((pl.col("bound") == resource.bound).sum() if has_bound else pl.lit(None)).alias(
            f"{resource.bound}-bound"
        )
        for resource in RESOURCES
    ]
    return _grouped(frame, pl.len().cast(pl.Int64).alias("rows"), *bounds)


def _thresholds_of(sweep: Mapping[str, Any], thresholds: pl.LazyFrame) -> pl.LazyFrame:
    """Thresholds of a sweep along its axis by group. Integers stay exact: no mean, no Float64."""
    critical = pl.col("critical").drop_nulls().sort()
    middle = pl.max_horizontal(pl.col("critical").count().cast(pl.Int64) - 1, 0) // 2
    return _grouped(
        thresholds.filter(
            pl.col("sweep").cast(pl.String) == sweep["sweep"],
            pl.col("axis").cast(pl.String) == pl.lit(sweep["axis"], pl.String),
            share=sweep["share"],
        ),
        (pl.col("outcome").cast(pl.String) == NEVER).mean().alias("never"),
        critical.first().alias("critical_least"),
        critical.slice(middle, 1).first().alias("critical_median"),
        critical.last().alias("critical_largest"),
        pl.col("critical_rule").min(),
    )


def _summary(sweep: Mapping[str, Any], rows: pl.DataFrame, sizes: pl.DataFrame) -> pl.DataFrame:
    """The rows of a sweep in the summary, in the form of the column dictionary."""
    bounds = [f"{resource.bound}-bound" for resource in RESOURCES]
    most = pl.max_horizontal(bounds)
    bottleneck = pl.coalesce(
        pl.when(pl.col(name) == most).then(pl.lit(resource.bound))
        for name, resource in zip(bounds, RESOURCES, strict=True)
    )
    frame = rows.join(sizes, on=GROUP, how="left", maintain_order="left").with_columns(
        sweep=pl.lit(sweep["sweep"]),
        axis=pl.lit(sweep["axis"], pl.String),
        compute_bound=pl.col(f"{MATH.bound}-bound") / pl.col("rows"),
        bottleneck=bottleneck,
    )
    return frame.select(pl.col(c.name).cast(KINDS.get(c.name, pl.String)) for c in SUMMARY)
