"""Lists for people: a run's parts, and its tables and thresholds counted by chip and split."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from rooflines.basics.files import scan_parquet
from rooflines.config.model_fields import LEVER_AXES
from rooflines.dictionary.columns import NEVER, SPLIT_KEYS, SUMMARY, TO
from rooflines.results.folders import MODEL_THRESHOLDS_FILE, THRESHOLDS_FILE
from rooflines.results.records import recorded
from rooflines.results.tables import NO_TEXT, scan_sweeps, write_csv
from rooflines.theory.resources import MATH, RESOURCES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

COUNTS = ("shards", "rows", "critical_min", "critical_median", "critical_max")
SHARES = ("compute_bound", "never", "rule_of_thumb")

KINDS = dict.fromkeys(COUNTS, pl.Int64) | dict.fromkeys(SHARES, pl.Float64)
"""Column types except text."""


PART_COLUMNS = {"sweep": pl.String, "part": pl.Int64, "rows": pl.Int64, "path": pl.String}


@recorded
def write_parts(spec: str, path: str | Path) -> None:
    """Write the list of the parts of all tables as CSV.

    Args:
        spec: The job's dependencies as JSON, from `Plan.spec`.
        path: The CSV file to write.
    """
    write_csv(pl.DataFrame(json.loads(spec)["parts"], schema=PART_COLUMNS), path)


class SummaryKind(NamedTuple):
    """A kind of sweep.

    Attributes:
        keys: Keys of a summary row within a sweep.
        thresholds: The file with the thresholds.
    """

    keys: tuple[str, ...]
    thresholds: str


LAST_ENDS = (
    pl.col("time").cast(pl.String) == "t_lower_s",
    (pl.col("axis").cast(pl.String) != "S_pull") | pl.col("side").cast(pl.String).ne_missing(TO),
)
"""Thresholds of levers that a summary counts: by the bound; of pulled caches those of long ones."""

OPERATIONS = SummaryKind(("chip", "dtypes", "sharding", "shards"), THRESHOLDS_FILE)
MODELS = SummaryKind(("model", "phase", "chip", "dtypes", "split"), MODEL_THRESHOLDS_FILE)


@recorded
def write_summary(spec: str, path: str | Path) -> None:
    """Write the summary of all sweeps as CSV.

    Args:
        spec: The job's dependencies as JSON, from `Plan.spec`.
        path: The CSV file to write, beside the thresholds and the folders of tables.
    """
    results = Path(path).parent
    sweeps = [
        (sweep, MODELS if sweep["models"] else OPERATIONS) for sweep in json.loads(spec)["of"]
    ]
    row_counts = pl.collect_all(
        [_count_rows(sweep, kind, results) for sweep, kind in sweeps], engine="streaming"
    )
    thresholds = {
        kind: scan_sweeps(results / kind.thresholds) for kind in {kind for _, kind in sweeps}
    }
    threshold_groups = pl.collect_all(
        [_aggregate_thresholds(sweep, kind, thresholds[kind]) for sweep, kind in sweeps],
        engine="streaming",
    )
    frames = [
        _summary_rows(sweep, rows, sizes)
        for (sweep, _), rows, sizes in zip(sweeps, row_counts, threshold_groups, strict=True)
    ]
    empty = pl.DataFrame(schema={c.name: KINDS.get(c.name, pl.String) for c in SUMMARY})
    write_csv(pl.concat([empty, *frames]), path, NO_TEXT)


def _aggregate(frame: pl.LazyFrame, keys: Sequence[str], *values: pl.Expr) -> pl.LazyFrame:
    """Aggregate by keys; rows on one chip count once, under sharding none."""
    groups = frame.group_by(keys).agg(*values)
    typed = groups.with_columns(pl.col(key).cast(KINDS.get(key, pl.String)) for key in keys)
    if "sharding" not in keys:
        return typed.sort(keys)
    unsplit = pl.when(shards=1).then(pl.lit("none")).otherwise("sharding").alias("sharding")
    unsplit_rows = typed.sort(keys).with_columns(unsplit)
    return unsplit_rows.unique(keys, keep="first", maintain_order=True)


def _count_rows(sweep: Mapping[str, Any], kind: SummaryKind, results: Path) -> pl.LazyFrame:
    """Count a sweep's rows by group, and those bound by each resource."""
    frame = scan_parquet([results / part for part in sweep["parts"]])
    has_bound = "bound" in frame.collect_schema()
    bounds = [
        ((pl.col("bound") == resource.bound).sum() if has_bound else pl.lit(None)).alias(
            f"{resource.bound}-bound"
        )
        for resource in RESOURCES
    ]
    return _aggregate(frame, kind.keys, pl.len().cast(pl.Int64).alias("rows"), *bounds)


def _aggregate_thresholds(
    sweep: Mapping[str, Any], kind: SummaryKind, thresholds: Mapping[str, pl.LazyFrame]
) -> pl.LazyFrame:
    """Aggregate a sweep's thresholds along its axis by group; integers stay exact, no Float64.

    A model's minimum number of chips covers all its splits: its groups have no split.
    """
    critical = pl.col("critical").drop_nulls().sort()
    middle = pl.max_horizontal(pl.col("critical").count().cast(pl.Int64) - 1, 0) // 2
    rule = pl.col("rule_of_thumb").min() if kind is OPERATIONS else pl.lit(None, pl.Float64)
    selected = thresholds[sweep["sweep"]].filter(
        pl.col("axis").cast(pl.String) == pl.lit(sweep["axis"], pl.String),
        *([pl.col("share") == sweep["share"]] if kind is OPERATIONS else []),
        *(LAST_ENDS if sweep["axis"] in LEVER_AXES else []),
    )
    return _aggregate(
        selected,
        _threshold_keys(sweep, kind.keys),
        (pl.col("outcome").cast(pl.String) == NEVER).mean().alias("never"),
        critical.first().alias("critical_min"),
        critical.slice(middle, 1).first().alias("critical_median"),
        critical.last().alias("critical_max"),
        rule.alias("rule_of_thumb"),
    )


def _threshold_keys(sweep: Mapping[str, Any], keys: Sequence[str]) -> list[str]:
    return [key for key in keys if sweep["axis"] != "chips" or key not in SPLIT_KEYS]


def _summary_rows(
    sweep: Mapping[str, Any], rows: pl.DataFrame, sizes: pl.DataFrame
) -> pl.DataFrame:
    """Summary rows of a sweep, with columns as in the dictionary."""
    bounds = [f"{resource.bound}-bound" for resource in RESOURCES]
    max_count = pl.max_horizontal(bounds)
    bottleneck = pl.coalesce(
        pl.when(pl.col(name) == max_count).then(pl.lit(resource.bound))
        for name, resource in zip(bounds, RESOURCES, strict=True)
    )
    shared = [name for name in sizes.columns if name in rows.columns]
    frame = rows.join(sizes, on=shared, how="left", maintain_order="left", nulls_equal=True)
    frame = frame.with_columns(
        sweep=pl.lit(sweep["sweep"]),
        axis=pl.lit(sweep["axis"], pl.String),
        compute_bound=pl.col(f"{MATH.bound}-bound") / pl.col("rows"),
        bottleneck=bottleneck,
    )
    absent = [pl.lit(None).alias(c.name) for c in SUMMARY if c.name not in frame.columns]
    return frame.with_columns(absent).select(
        pl.col(c.name).cast(KINDS.get(c.name, pl.String)) for c in SUMMARY
    )
