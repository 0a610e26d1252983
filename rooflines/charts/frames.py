"""Frames: from tables, thresholds and the catalogue to the few rows that each chart draws. All numbers of a chart are made here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from rooflines.api import rows as rows_of
from rooflines.api import thresholds as thresholds_of
from rooflines.operation import operation
from rooflines.sharding import links_used
from rooflines.tables import metadata_of, scan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rooflines.config import Config

__all__ = ["Results", "of_config", "on_disk"]

SECONDS_PER_HOUR = 3600
PAIR = 2
"""Chips that a slope of an interconnect stands for: one and its neighbour."""


@dataclass(frozen=True)
class Results:
    """Where charts take their numbers from.

    Attributes:
        rows: The table of a sweep.
        thresholds: The thresholds of a sweep.
        recipes: What made each sweep: its config, catalogue entries of its chips, and dtypes.
    """

    rows: Callable[[str], pl.LazyFrame]
    thresholds: Callable[[str], pl.LazyFrame]
    recipes: Mapping[str, Mapping[str, Any]]

    def of(self, sweep: str, chips: Sequence[str], dtypes: Sequence[str]) -> Selection:
        """Some chips and dtype combinations of a sweep, in this order."""
        return Selection(self, sweep, tuple(chips), tuple(dtypes))


@dataclass(frozen=True)
class Selection:
    """What a chart is of: some chips and dtype combinations of a sweep. Made by `Results.of`."""

    results: Results
    sweep: str
    chips: tuple[str, ...]
    dtypes: tuple[str, ...]

    @property
    def recipe(self) -> Mapping[str, Any]:
        """What made the sweep."""
        return self.results.recipes[self.sweep]

    @property
    def dims(self) -> tuple[str, ...]:
        """The dimensions of the sweep's operation, the first one first."""
        return operation(self.recipe["config"]["operation"]).dims

    def rows(self) -> pl.LazyFrame:
        """The rows of the table, from the first memory level."""
        return self._kept(self.results.rows(self.sweep))

    def thresholds(self) -> pl.LazyFrame:
        """The thresholds, from the first memory level."""
        return self._kept(self.results.thresholds(self.sweep))

    def _kept(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        mine = pl.col("chip").is_in(self.chips) & pl.col("dtypes").is_in(self.dtypes)
        return frame.filter(mine, memory=self.recipe["config"]["memory"][0])

    def compute(self, dtypes: str) -> str:
        """The dtype that a combination computes in."""
        combinations = self.recipe["dtypes"]["combinations"]
        return str(combinations[dtypes]["compute"]) if dtypes in combinations else dtypes.rpartition("@")[2]


def on_disk(results: str | Path) -> Results:
    """The results that a run of the workflow wrote.

    Args:
        results: The folder that holds `tables/` and `thresholds.parquet`.
    """
    path = Path(results) / "thresholds.parquet"
    recipes = {recipe["sweep"]: recipe for recipe in metadata_of(path)["made_from"]}
    return Results(
        rows=lambda sweep: plain(scan(results, sweep)),
        thresholds=lambda sweep: plain(pl.scan_parquet(path).filter(pl.col("sweep") == sweep)),
        recipes=recipes,
    )


def of_config(config: Config) -> Results:
    """The same, computed when it is asked for: charts of a config without the workflow."""
    return Results(
        rows=lambda sweep: plain(rows_of(config, sweep)),
        thresholds=lambda sweep: plain(thresholds_of(config, sweep).lazy()),
        recipes={
            name: {"sweep": name, "config": sweep.config, "chips": sweep.chips, "dtypes": sweep.dtypes}
            for name, sweep in config.sweeps.items()
        },
    )


def lowest(frame: pl.DataFrame, column: str, otherwise: float = 1.0) -> float:
    """The smallest value of a column, or another number where it has none."""
    found = frame.select(pl.col(column).cast(pl.Float64).min()).item()
    return otherwise if found is None else float(found)


def highest(frame: pl.DataFrame, column: str, otherwise: float = 1.0) -> float:
    """The largest value of a column, or another number where it has none."""
    found = frame.select(pl.col(column).cast(pl.Float64).max()).item()
    return otherwise if found is None else float(found)


def plain(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Names as text and numbers of one width, so that frames of several files go together."""
    kinds = pl.selectors
    return frame.with_columns((kinds.categorical() | kinds.enum()).cast(pl.String), kinds.float().cast(pl.Float64))


def rates(recipe: Mapping[str, Any], chip: str, compute: str) -> dict[str, Any]:
    """What a chip serves in one compute dtype, as it counts in the sweep: efficiencies included.

    Returns:
        `peak` [FLOP/s], None where the chip has none, `memory` and `network`: bytes per second by name [byte/s].
    """
    entry, asked = recipe["chips"][chip], recipe["config"]
    unit = asked.get("unit") or operation(asked["operation"]).unit
    own = {**(entry.get("efficiency") or {}), **((entry.get("calibration") or {}).get(compute) or {})}
    given = {key: value for key, value in (asked.get("efficiency") or {}).items() if value is not None}
    share = {key: float(given.get(key, own.get(key) or 1)) for key in ("math", "memory", "network")}
    found = (entry["units"].get(unit) or {}).get(compute)
    return {
        "peak": None if found is None else float(found["flops_per_s"]) * share["math"],
        "memory": {
            name: float(level["bytes_per_s"]) * share["memory"] for name, level in entry["memory"].items() if level.get("bytes_per_s")
        },
        "network": {
            name: float(link["bytes_per_s"])
            * links_used(link["topology"], link.get("links", 1), PAIR, link.get("ring_multiple"))
            * share["network"]
            for name, link in entry["networks"].items()
            if link.get("domain") != 1
        },
    }


ROOFLINE = {
    "chip": pl.String,
    "dtypes": pl.String,
    "kind": pl.String,
    "name": pl.String,
    "flops_per_s": pl.Float64,
    "bytes_per_s": pl.Float64,
    "intensity": pl.Float64,
    "B": pl.Int64,
    "shape": pl.String,
}
"""The columns of `roofline_frame`."""


def roofline_frame(of: Selection, shape: str | None = None, sizes: Sequence[int] = ()) -> pl.DataFrame:
    """Ceilings, slopes and operating points of chips.

    Args:
        of: The chips and combinations, from `Results.of`; the sweep's rows are the operating points.
        shape: Which of its shapes; without shapes the largest sizes of the grid.
        sizes: Sizes of the operation's first dimension to mark; powers of eight by default.

    Returns:
        A row for everything drawn. `kind` is `memory` or `network` (`name` with its `bytes_per_s` [byte/s], the peak `flops_per_s`
        [FLOP/s] and the ridge between the two, `intensity` [FLOP/byte]; the level that the sweep reads from first), `ceiling` (`name` is
        a compute dtype of the chip, with its peak), or `point` (a row of the table: its `intensity` and what it attains, `flops_per_s`).
    """
    recipe = of.recipe
    records: list[dict[str, Any]] = []
    for chip in of.chips:
        entry = recipe["chips"][chip]
        unit = recipe["config"].get("unit") or operation(recipe["config"]["operation"]).unit
        records += [
            {"chip": chip, "kind": "ceiling", "name": compute, "flops_per_s": rates(recipe, chip, compute)["peak"]}
            for compute in entry["units"].get(unit) or {}
        ]
        for combination in of.dtypes:
            served = rates(recipe, chip, of.compute(combination))
            if served["peak"] is not None:
                records += [
                    {"chip": chip, "dtypes": combination, "kind": kind, "name": name, "flops_per_s": served["peak"], "bytes_per_s": rate}
                    for kind in ("memory", "network")
                    for name, rate in sorted(served[kind].items(), key=lambda found: found[0] != recipe["config"]["memory"][0])
                ]
    lines = pl.DataFrame(records, schema=ROOFLINE, orient="row").with_columns(intensity=pl.col("flops_per_s") / pl.col("bytes_per_s"))
    return pl.concat([lines, operating_points(of, shape, sizes)])


def operating_points(of: Selection, shape: str | None, sizes: Sequence[int]) -> pl.DataFrame:
    """Rows of a table as points of a roofline: one chip, from main memory, of one shape, at several sizes of the first dimension."""
    lead, *others = of.dims
    rows = of.rows().filter(shards=1)
    largest = [pl.col(dim) == pl.col(dim).max() for dim in others]
    rows = rows.filter(*([pl.col("shape") == shape] if shape is not None else largest))
    wanted = list(sizes) or [8**power for power in range(14)]
    return (
        rows.filter(pl.col(lead).is_in(wanted))
        .select(
            "chip",
            "dtypes",
            kind=pl.lit("point"),
            name=pl.lit(lead),
            flops_per_s="attained_flops_per_s",
            bytes_per_s=pl.lit(None, dtype=pl.Float64),
            intensity="memory_intensity",
            B=lead,
            shape="shape",
        )
        .unique(["chip", "dtypes", "B"], keep="first", maintain_order=True)
        .collect()
    )


def ridge_frame(of: Selection) -> pl.DataFrame:
    """Ridge points of chips in dtype combinations, from main memory.

    Args:
        of: The chips and combinations, from `Results.of`.

    Returns:
        `chip`, `vendor`, `dtypes`, `compute`, `flops_per_s` [FLOP/s], `bytes_per_s` of main memory [byte/s], `ridge` [FLOP/byte], `watts`
        [W], and the lowest listed price: `usd_per_hour` [USD/h], `provider`, `date`; `flops_per_usd` [FLOP/USD] and `flops_per_joule`
        [FLOP/J]. No row where a chip cannot do the combination; nulls where there is no price or power.
    """
    recipe = of.recipe
    records = []
    for chip in of.chips:
        entry = recipe["chips"][chip]
        prices = sorted(entry.get("prices") or [], key=lambda found: str(found["date"]), reverse=True)
        price: Mapping[str, Any] = min(prices, key=lambda found: float(found["usd_per_hour"]), default={})
        for combination in of.dtypes:
            compute = of.compute(combination)
            served = rates(recipe, chip, compute)
            if served["peak"] is not None and "hbm" in served["memory"]:
                records.append(
                    {
                        "chip": chip,
                        "vendor": entry.get("vendor") or "",
                        "dtypes": combination,
                        "compute": compute,
                        "flops_per_s": served["peak"],
                        "bytes_per_s": served["memory"]["hbm"],
                        "watts": (entry.get("power") or {}).get("watts"),
                        "usd_per_hour": price.get("usd_per_hour"),
                        "provider": price.get("provider"),
                        "date": price.get("date"),
                    }
                )
    texts = ("chip", "vendor", "dtypes", "compute", "provider", "date")
    order = ("chip", "vendor", "dtypes", "compute", "flops_per_s", "bytes_per_s", "watts", "usd_per_hour", "provider", "date")
    frame = pl.DataFrame(records, schema={name: pl.String if name in texts else pl.Float64 for name in order}, orient="row")
    return frame.with_columns(
        ridge=pl.col("flops_per_s") / pl.col("bytes_per_s"),
        flops_per_usd=pl.col("flops_per_s") * SECONDS_PER_HOUR / pl.col("usd_per_hour"),
        flops_per_joule=pl.col("flops_per_s") / pl.col("watts"),
    )


CURVE_POINTS = 81
"""Sizes at which a curve is drawn; between the sizes of the table its times are interpolated, which is exact: they are affine."""


def attained_frame(of: Selection, shape: str | None = None, most_series: int = 6) -> pl.DataFrame:
    """What a matmul attains over its batch, for several sizes of its matrices.

    Args:
        of: The chips and combinations of a sweep, from `Results.of`.
        shape: Not used where the sweep has no shapes; else those that begin with it.
        most_series: Sizes drawn at most, spread evenly.

    Returns:
        `chip`, `dtypes`, `series` (the other sizes, such as `D = F = 4,096`), `order` of the series, `kind` and numbers: for `curve` a size
        and what it attains, `flops_per_s` [FLOP/s]; for `knee` the critical size, whole and `exact`, null for never; `peak` [FLOP/s].
    """
    recipe = of.recipe
    lead, *others = of.dims
    rows = of.rows().filter(pl.col("shards") == pl.col("shards").min())
    rows = rows.filter(pl.col("sharding") == pl.col("sharding").first())
    sizes = series_of(rows, others, shape, most_series)
    keys = ["chip", "dtypes", "series", "order"]
    rows_of_series = rows.join(sizes.lazy(), on=[c for c in sizes.columns if c not in ("series", "order")], nulls_equal=True)
    peak = (pl.col("attained_flops_per_s") / pl.col("utilization")).alias("peak")
    size = pl.col(lead).cast(pl.Float64).alias("size")
    table = rows_of_series.select(*keys, size, *TIMES, peak).collect().sort(*keys, "size")
    table = table.with_columns(pl.col("peak").first().over("chip", "dtypes"))  # one number, however the quotients are rounded
    curve = (table if recipe["config"].get("tile") else densified(table, keys)).with_columns(
        flops_per_s=pl.col("flops") / pl.max_horizontal("t_math_s", "t_memory_s", "t_network_s")
    )
    knees = (
        of.thresholds()
        .filter(axis=lead)
        .join(sizes.lazy(), on=[c for c in sizes.columns if c not in ("series", "order")], nulls_equal=True)
        .join(table.lazy().select("chip", "dtypes", "peak").unique(), on=["chip", "dtypes"])
        .filter(pl.col("shards").is_null() | (pl.col("shards") == pl.col("shards").min()))
        .select(
            *keys,
            pl.lit("knee").alias("kind"),
            size=pl.col("critical").cast(pl.Float64),
            exact="critical_exact",
            limit="limit",
            flops_per_s="peak",
            peak="peak",
        )
        .unique(keys, keep="first", maintain_order=True)
        .collect()
    )
    curve = curve.select(
        *keys,
        pl.lit("curve").alias("kind"),
        "size",
        pl.lit(None, dtype=pl.Float64).alias("exact"),
        pl.lit(None, dtype=pl.String).alias("limit"),
        "flops_per_s",
        "peak",
    )
    bends = knees.filter(pl.col("exact") > 0).with_columns(kind=pl.lit("curve"), size="exact", exact=None, limit=None)
    bends = bends.filter(pl.col("size").is_between(lowest(table, "size", 1), highest(table, "size", 1)))
    return pl.concat([curve, bends, knees], how="vertical_relaxed").sort("chip", "dtypes", "order", "size", nulls_last=True)


TIMES = ("flops", "t_math_s", "t_memory_s", "t_network_s")


def series_of(rows: pl.LazyFrame, dims: Sequence[str], shape: str | None, most: int) -> pl.DataFrame:
    """The sizes that a chart draws one curve for: named shapes, or values of the dimensions, tied ones in one name."""
    shaped = rows.select("shape", *dims).unique().sort(*dims, descending=True).collect()
    if shape is not None:
        shaped = shaped.filter(pl.col("shape").str.starts_with(shape))
    elif shaped.height > most and len(dims) > 1:
        square = shaped.filter(pl.all_horizontal(pl.col(d) == pl.col(dims[0]) for d in dims))
        shaped = square if square.height > 1 else shaped
    picks = sorted({round(i * (shaped.height - 1) / max(min(most, shaped.height) - 1, 1)) for i in range(min(most, shaped.height))})
    shaped = shaped[picks]
    return shaped.with_columns(series=pl.Series([series_name(row, dims) for row in shaped.to_dicts()], dtype=pl.String)).with_row_index(
        "order"
    )


def series_name(row: Mapping[str, Any], dims: Sequence[str]) -> str:
    """A point of the other dimensions as one reads it."""
    if row.get("shape"):
        return str(row["shape"])
    values = [row[dim] for dim in dims]
    if len(set(values)) == 1:
        return f"{' = '.join(dims)} = {values[0]:,}"
    return ", ".join(f"{dim} = {row[dim]:,}" for dim in dims)


def densified(table: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """More sizes between those of a table: all times and works are affine in one size, so that straight lines between rows are exact."""
    low, high = lowest(table, "size", 1), highest(table, "size", 1)
    steps = CURVE_POINTS - 1
    grid = pl.DataFrame({"size": [low * (high / low) ** (i / steps) for i in range(CURVE_POINTS)]})
    cases = table.select(*keys, "peak").unique(maintain_order=True)
    wanted = cases.join(grid, how="cross").sort("size")
    before = wanted.join_asof(
        table.sort("size").drop("peak"), on="size", by=list(keys), strategy="backward", coalesce=False, suffix="_a", check_sortedness=False
    )
    after = wanted.join_asof(
        table.sort("size").drop("peak"), on="size", by=list(keys), strategy="forward", coalesce=False, suffix="_b", check_sortedness=False
    )
    both = before.hstack(after.select(pl.col("size_b"), *(pl.col(c).alias(f"{c}_b") for c in TIMES)))
    share = (
        pl.when(pl.col("size_b") > pl.col("size_a"))
        .then((pl.col("size") - pl.col("size_a")) / (pl.col("size_b") - pl.col("size_a")))
        .otherwise(0.0)
    )
    return both.select(*keys, "size", "peak", *((pl.col(c) + share * (pl.col(f"{c}_b") - pl.col(c))).alias(c) for c in TIMES)).sort(
        *keys, "size"
    )
