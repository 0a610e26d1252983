"""Frames: from tables, thresholds and the catalogue to the few rows that each chart draws. All numbers of a chart are made here."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

from rooflines.basics.errors import RooflinesError, check_known, placed
from rooflines.basics.text import abridged, counted
from rooflines.charts.needs import MAIN_MEMORY, TIMES, check_asked, has_bandwidth, need, shape_names
from rooflines.critical.thresholds import sweep_thresholds
from rooflines.model.resources import MATH, math_rate, memory_rate, network_rate
from rooflines.results.tables import metadata_of, scan
from rooflines.sweep.recipes import sweep_of
from rooflines.sweep.sweep import Variant
from rooflines.sweep.table import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rooflines.catalogue.entries import Chip
    from rooflines.model.target import Target
    from rooflines.sweep.sweep import ChipRows, Sweep

__all__ = ["Results", "of_config", "on_disk"]

SECONDS_PER_HOUR = 3600
PAIR = 2
"""Chips that a slope of an interconnect stands for: one and its neighbour."""


class Understood(Protocol):
    """What charts read of a config."""

    @property
    def file(self) -> str:
        """What messages call it."""

    @property
    def sweeps(self) -> Mapping[str, Sweep]:
        """Its sweeps by name."""

    def sweep(self, name: str) -> Sweep:
        """One of them."""


@dataclass(frozen=True, repr=False)
class Results:
    """Where charts take their numbers from.

    Attributes:
        rows: The table of a sweep.
        thresholds: The thresholds of a sweep.
        sweep: A sweep itself: its rates, works and axes.
        place: The folder or the config that they come from.
        names: The sweeps.
    """

    rows: Callable[[str], pl.LazyFrame]
    thresholds: Callable[[str], pl.LazyFrame]
    sweep: Callable[[str], Sweep]
    place: str
    names: tuple[str, ...]

    def of(self, sweep: str, chips: Sequence[str], dtypes: Sequence[str]) -> Selection:
        """Some chips and dtype combinations of a sweep, in this order.

        Raises:
            RooflinesError: There is no such sweep, it has no such chip or combination, or none of the chips can do one of them.
        """
        selection = Selection(self, self.sweep(sweep), tuple(chips), tuple(dtypes))
        check_asked(selection.sweep, chips=selection.chips, dtypes=selection.dtypes)
        if not selection.targets():
            problem = f"are {', '.join(dtypes) or 'none'}, of which {', '.join(chips) or 'no chip'} can do none"
            raise RooflinesError(
                "dtypes", problem, "name a dtype combination that one of the chips can do"
            )
        return selection

    def __repr__(self) -> str:
        """Where they come from, and the sweeps, a line each."""
        return abridged(
            f"<Results of {self.place}: {counted(len(self.names), 'sweep')}>", self.names
        )


@dataclass(frozen=True, repr=False)
class Selection:
    """What a chart is of: some chips and dtype combinations of a sweep. Made by `Results.of`."""

    results: Results
    sweep: Sweep
    chips: tuple[str, ...]
    dtypes: tuple[str, ...]

    def __repr__(self) -> str:
        """What it selects."""
        return (
            f"<Selection of {self.sweep.name}: {', '.join(self.chips)}; {', '.join(self.dtypes)}>"
        )

    @property
    def dims(self) -> tuple[str, ...]:
        """The dimensions of the sweep's operation, the first one first."""
        return self.sweep.op.dims

    @cached_property
    def by_chip(self) -> Mapping[str, ChipRows]:
        """The block of each chip: charts show one memory level of a chip, the first of the sweep's levels that it has."""
        by_chip = {chip_rows.chip: chip_rows for chip_rows in reversed(self.sweep.by_chip)}
        return {chip: by_chip[chip] for chip in self.chips if chip in by_chip}

    @cached_property
    def fewest(self) -> tuple[str, int]:
        """The sharding and the number of chips of charts that show one: the fewest chips, split in the first way that has them."""
        order = list(self.sweep.shardings)
        served = {
            s
            for chip_rows in self.by_chip.values()
            for s in chip_rows.variants
            if s.dtypes in self.dtypes
        }
        first = min(served, key=lambda s: (s.shards, order.index(s.sharding)), default=None)
        return (first.sharding, first.shards) if first else (order[0], 1)

    def served(self) -> list[tuple[ChipRows, Variant]]:
        """What serves each chip in each combination, on the fewest chips; without those that no chip can do."""
        wanted = [
            (chip_rows, Variant(name, *self.fewest))
            for chip_rows in self.by_chip.values()
            for name in self.dtypes
        ]
        return [
            (chip_rows, variant) for chip_rows, variant in wanted if variant in chip_rows.variants
        ]

    def targets(self) -> list[tuple[str, str, Target]]:
        """Chip, combination and what serves one chip, for all that the chips can do."""
        found = []
        for chip_rows in self.by_chip.values():
            first = {variant.dtypes: variant for variant in reversed(chip_rows.variants)}
            found += [
                (chip_rows.chip, name, self.sweep.target(chip_rows, first[name]))
                for name in self.dtypes
                if name in first
            ]
        return found

    def rows(self) -> pl.LazyFrame:
        """The rows of the table."""
        return self._kept(self.results.rows(self.sweep.name))

    def thresholds(self) -> pl.LazyFrame:
        """The thresholds."""
        return self._kept(self.results.thresholds(self.sweep.name))

    def on_fewest(self) -> pl.Expr:
        """Whether a row is of the sharding and the number of chips that `fewest` says."""
        sharding, shards = self.fewest
        return (pl.col("sharding") == sharding) & (pl.col("shards") == shards)

    def _kept(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        levels = {chip: chip_rows.memory for chip, chip_rows in self.by_chip.items()}
        level = pl.col("chip").replace_strict(levels, default=None, return_dtype=pl.String)
        return frame.filter(
            pl.col("chip").is_in(self.chips),
            pl.col("dtypes").is_in(self.dtypes),
            pl.col("memory") == level,
        )


def on_disk(results: str | Path) -> Results:
    """The results that a run of the workflow wrote.

    Args:
        results: The folder that holds `tables/` and `thresholds.parquet`.
    """
    path = Path(results) / "thresholds.parquet"
    recipes = {recipe["sweep"]: recipe for recipe in metadata_of(path)["made_from"]}

    @cache
    def sweep_on_disk(sweep: str) -> Sweep:
        with placed(file=str(results)):
            check_known(sweep, recipes, "no sweep of these results")
        return sweep_of(recipes[sweep])

    return Results(
        rows=lambda sweep: plain(scan(results, sweep)),
        thresholds=lambda sweep: plain(pl.scan_parquet(path).filter(pl.col("sweep") == sweep)),
        sweep=sweep_on_disk,
        place=str(results),
        names=tuple(recipes),
    )


def of_config(config: Understood) -> Results:
    """The same, computed when it is asked for: charts of a config without the workflow."""
    return Results(
        rows=lambda sweep: plain(table(config.sweep(sweep))),
        thresholds=lambda sweep: plain(sweep_thresholds(config.sweep(sweep)).lazy()),
        sweep=config.sweep,
        place=config.file,
        names=tuple(config.sweeps),
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
    return frame.with_columns(
        (kinds.categorical() | kinds.enum()).cast(pl.String), kinds.float().cast(pl.Float64)
    )


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


def roofline_frame(
    of: Selection, shape: str | None = None, sizes: Sequence[int] = ()
) -> pl.DataFrame:
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
    need("roofline", of.sweep, shape=shape, sizes=sizes)
    records: list[dict[str, Any]] = []
    for chip, group in groupby(of.targets(), key=lambda found: found[0]):
        served = list(group)
        target = served[0][2]
        entry, unit = of.sweep.chips[chip], of.sweep.unit
        records += [
            {
                "chip": chip,
                "kind": "ceiling",
                "name": compute,
                "flops_per_s": float(math_rate(replace(target, peak=peak.exact)).per_s),
            }
            for compute, peak in entry.units[unit].items()
        ]
        records += [
            {"chip": chip, "dtypes": name, **line}
            for _, name, target in served
            for line in bandwidths(entry, of.by_chip[chip].memory, target)
        ]
    lines = pl.DataFrame(records, schema=ROOFLINE, orient="row").with_columns(
        intensity=pl.col("flops_per_s") / pl.col("bytes_per_s")
    )
    return pl.concat([lines, operating_points(of, shape, sizes)])


def bandwidths(chip: Chip, memory: str, target: Target) -> Iterator[dict[str, Any]]:
    """What feeds a chip's unit: its memory levels, the one read from first, and its interconnects to one neighbour; with rate and peak."""
    peak = float(math_rate(target).per_s)
    for name in sorted(chip.memory, key=lambda level: level != memory):
        if chip.memory[name].bytes_per_s:
            rate = memory_rate(replace(target, level=chip.memory[name].exact))
            yield {
                "kind": "memory",
                "name": name,
                "flops_per_s": peak,
                "bytes_per_s": float(rate.per_s),
            }
    for name, network in chip.networks.items():
        link = network.exact
        between = network_rate(replace(target, link=link, shards=PAIR))
        if between and link.chips_joined != 1:
            yield {
                "kind": "network",
                "name": name,
                "flops_per_s": peak,
                "bytes_per_s": float(between.per_s),
            }


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
    records = []
    for chip, combination, target in of.targets():
        entry = of.sweep.chips[chip]
        prices = sorted(entry.prices or [], key=lambda price: price.date, reverse=True)
        price = min(prices, key=lambda price: price.usd_per_hour, default=None)
        if has_bandwidth(entry):
            records.append(
                {
                    "chip": chip,
                    "vendor": entry.vendor or "",
                    "dtypes": combination,
                    "compute": of.sweep.combinations[combination].compute,
                    "flops_per_s": float(math_rate(target).per_s),
                    "bytes_per_s": float(
                        memory_rate(replace(target, level=entry.memory[MAIN_MEMORY].exact)).per_s
                    ),
                    "watts": entry.power and entry.power.watts,
                    "usd_per_hour": price and price.usd_per_hour,
                    "provider": price and price.provider,
                    "date": price and price.date,
                }
            )
    texts = ("chip", "vendor", "dtypes", "compute", "provider", "date")
    order = (
        "chip",
        "vendor",
        "dtypes",
        "compute",
        "flops_per_s",
        "bytes_per_s",
        "watts",
        "usd_per_hour",
        "provider",
        "date",
    )
    frame = pl.DataFrame(
        records,
        schema={name: pl.String if name in texts else pl.Float64 for name in order},
        orient="row",
    )
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
    begins = shape is not None and any(name.startswith(shape) for name in shape_names(of.sweep))
    need("attained", of.sweep, shape=None if begins else shape)
    lead, *others = of.dims
    rows = of.rows().filter(of.on_fewest())
    sizes = series_of(rows, others, shape, most_series)
    keys = ["chip", "dtypes", "series", "order"]
    rows_of_series = rows.join(
        sizes.lazy(),
        on=[c for c in sizes.columns if c not in ("series", "order")],
        nulls_equal=True,
    )
    size = pl.col(lead).cast(pl.Float64).alias("size")
    table = (
        rows_of_series.select(*keys, size, MATH.work, *TIMES.values()).collect().sort(*keys, "size")
    )
    peaks = pl.DataFrame(
        [(chip, name, float(math_rate(target).per_s)) for chip, name, target in of.targets()],
        schema={"chip": pl.String, "dtypes": pl.String, "peak": pl.Float64},
        orient="row",
    )
    table = table.join(peaks, on=["chip", "dtypes"], maintain_order="left")
    curve = (thinned(table) if of.sweep.tile else densified(table, keys)).with_columns(
        flops_per_s=pl.col(MATH.work) / pl.max_horizontal(*TIMES.values())
    )
    knees = (
        of.thresholds()
        .filter(pl.col("axis") == lead, of.on_fewest())
        .join(
            sizes.lazy(),
            on=[c for c in sizes.columns if c not in ("series", "order")],
            nulls_equal=True,
        )
        .join(peaks.lazy(), on=["chip", "dtypes"])
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
    bends = knees.filter(pl.col("exact") > 0).with_columns(
        kind=pl.lit("curve"), size="exact", exact=None, limit=None
    )
    bends = bends.filter(
        pl.col("size").is_between(lowest(table, "size", 1), highest(table, "size", 1))
    )
    return pl.concat([curve, bends, knees], how="vertical_relaxed").sort(
        "chip", "dtypes", "order", "size", nulls_last=True
    )


def series_of(
    rows: pl.LazyFrame, dims: Sequence[str], shape: str | None, most: int
) -> pl.DataFrame:
    """The sizes that a chart draws one curve for: named shapes, or values of the dimensions, tied ones in one name."""
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
        series=pl.Series([series_name(row, dims) for row in shaped.to_dicts()], dtype=pl.String)
    ).with_row_index("order")


def series_name(row: Mapping[str, Any], dims: Sequence[str]) -> str:
    """A point of the other dimensions as one reads it."""
    if row.get("shape"):
        return str(row["shape"])
    values = [row[dim] for dim in dims]
    if len(set(values)) == 1:
        return f"{' = '.join(dims)} = {values[0]:,}"
    return ", ".join(f"{dim} = {row[dim]:,}" for dim in dims)


def thinned(table: pl.DataFrame) -> pl.DataFrame:
    """Fewer sizes of a table, about even on a logarithmic axis, where it has more than a curve needs; tiles leave no line between them."""
    sizes = table["size"].unique().sort().to_list()
    low, high = sizes[0], sizes[-1]
    wanted = (low * (high / low) ** (i / (CURVE_POINTS - 1)) for i in range(CURVE_POINTS - 1))
    kept = {sizes[bisect_left(sizes, size)] for size in wanted} | {high}
    return table.filter(pl.col("size").is_in(kept)) if len(sizes) > CURVE_POINTS else table


def densified(table: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """More sizes between those of a table: all times and works are affine in one size, so that straight lines between rows are exact."""
    low, high = lowest(table, "size", 1), highest(table, "size", 1)
    steps = CURVE_POINTS - 1
    grid = pl.DataFrame({"size": [low * (high / low) ** (i / steps) for i in range(CURVE_POINTS)]})
    cases = table.select(*keys, "peak").unique(maintain_order=True)
    wanted = cases.join(grid, how="cross").sort("size")
    before = wanted.join_asof(
        table.sort("size").drop("peak"),
        on="size",
        by=list(keys),
        strategy="backward",
        coalesce=False,
        suffix="_a",
        check_sortedness=False,
    )
    after = wanted.join_asof(
        table.sort("size").drop("peak"),
        on="size",
        by=list(keys),
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
        *keys,
        "size",
        "peak",
        *((pl.col(c) + share * (pl.col(f"{c}_b") - pl.col(c))).alias(c) for c in affine),
    ).sort(*keys, "size")
