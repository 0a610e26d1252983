"""The claims of charts, worked out again from tables, thresholds, timings and the catalogue."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from statistics import median
from typing import TYPE_CHECKING, Any

import polars as pl
from measured_claims import timings_of

import rooflines

if TYPE_CHECKING:
    from collections.abc import Callable

    from titled import Case

SILENT = (
    r"Where .+ turns compute-bound",
    r"Dense \S+ peak per (dollar|watt)",
    r"What .+ attains over [A-Z]",
    r"No chip here computes in \S+",
)
"""Titles that claim nothing."""

SECONDS_PER_HOUR = 3600
CLOSE = 1e-9

TEXTS = (
    "chip",
    "dtypes",
    "sharding",
    "shape",
    "network",
    "memory",
    "bound",
    "estimate_bound",
    "axis",
)
KNOWN: dict[tuple[int, str], pl.DataFrame] = {}


def holds(case: Case) -> bool:
    """Whether what a title claims is so."""
    found, value = recomputed(case), case.claim["value"]
    return _same(found, value)


def unclaimed(case: Case) -> bool:
    """Whether a title claims something, and the chart's metadata lack it."""
    return not case.claim and not any(re.fullmatch(title, case.title) for title in SILENT)


def altered(value: Any) -> Any:  # noqa: ANN401, any value of JSON
    """Another value of the same kind."""
    if isinstance(value, list):
        return [*value[:-1], altered(value[-1])] if value else [1]
    if isinstance(value, dict):
        return {name: altered(each) for name, each in value.items()}
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return f"{value}-other" if value else 1


def _same(found: Any, value: Any) -> bool:  # noqa: ANN401, any value of JSON
    if isinstance(value, list):
        return len(found) == len(value) and all(map(_same, found, value))
    if isinstance(value, dict):
        return found.keys() == value.keys() and all(_same(found[key], value[key]) for key in value)
    if isinstance(value, float) and found is not None:
        return math.isclose(found, value, rel_tol=CLOSE)
    return bool(found == value) and type(found) is type(value)


def recomputed(case: Case) -> Any:  # noqa: ANN401, any value of JSON
    """The value that a claim should have."""
    claim = case.claim
    if claim["says"] == "median":
        return MEDIANS[claim["of"]](case)
    if claim["of"] in CATALOGUE:
        worth = {chip: CATALOGUE[claim["of"]](case, chip) for chip in claim["over"]["chip"]}
        if claim["says"] == "times":
            return ratio(worth, claim["value"])
        return OF_CHIPS[claim["says"]](worth)
    if case.chart.sweep in case.config.model_sweeps:
        return of_models(case)
    rows = thresholds(case) if "axis" in claim["over"] else bounds(case)
    return OF_ROWS[claim["says"]](rows, claim)


def selected(frame: pl.DataFrame, claim: dict[str, Any]) -> pl.DataFrame:
    """The rows that a claim speaks of."""
    for name, values in claim["over"].items():
        frame = frame.filter(pl.col(name).is_in(values))
    if "at" in claim:
        at = pl.DataFrame(claim["at"]).with_columns(pl.selectors.integer().cast(pl.Int64))
        frame = at.join(frame, on=at.columns, how="left", maintain_order="left")
        assert frame["chip"].null_count() == 0
    assert frame.height > 0
    return frame


def of_first(case: Case, rows: pl.LazyFrame, *more: str) -> pl.DataFrame:
    """Rows from the first memory level, network and form of each case, texts as such."""
    levels = case.config.sweeps[case.chart.sweep].config.memory
    names = rows.collect_schema().names()
    texts = [name for name in TEXTS if name in names]
    frame = rows.with_columns(pl.col(texts).cast(pl.String)).collect()
    order = {level: number for number, level in enumerate(levels)}
    frame = frame.sort(
        pl.col("memory").replace_strict(order, return_dtype=pl.Int64), maintain_order=True
    )
    keys = ["chip", "dtypes", "sharding", "shards", "shape", *case.dims, *more]
    return frame.unique(keys, keep="first", maintain_order=True)


def rows_of(case: Case) -> pl.DataFrame:
    """The rows of a case's sweep."""
    key = (id(case.config), f"rows of {case.chart.sweep}")
    if key not in KNOWN:
        names = (*TEXTS[:-1], "shards", *case.dims, "t_estimate_s")
        KNOWN[key] = of_first(case, case.results.rows(case.chart.sweep).select(names))
    return KNOWN[key]


def fitted(case: Case) -> pl.Expr:
    """Whether chip and dtypes of a row have estimates in the table."""
    pairs = rows_of(case).filter(pl.col("t_estimate_s").is_not_null())
    keys = pairs.select(pl.format("{}|{}", "chip", "dtypes")).to_series().unique().to_list()
    return pl.format("{}|{}", "chip", "dtypes").is_in(keys)


def thresholds(case: Case) -> pl.DataFrame:
    """Thresholds that a claim speaks of, with the quantity as `found`."""
    claim, sweep = case.claim, case.config.sweeps[case.chart.sweep]
    key = (id(case.config), sweep.name)
    if key not in KNOWN:
        KNOWN[key] = of_first(case, case.results.thresholds(sweep.name), "axis", "share")
    on_map = case.chart.chart == "critical-map" and "at" in claim
    frame = selected(solved_on_map(case) if on_map else KNOWN[key], claim)
    if claim["basis"] == "calibrated":
        estimate = pl.when(fitted(case)).then("critical_estimate").otherwise("critical")
        return frame.with_columns(found=estimate)
    found = pl.col(claim["of"])
    return frame.with_columns(found=found / pl.col(claim["to"]) if "to" in claim else found)


def solved_on_map(case: Case) -> pl.DataFrame:
    """Thresholds of the shapes on a map, which its sweep need not have."""
    sweep, over = case.config.sweeps[case.chart.sweep], case.claim["over"]
    one = {
        "operation": "matmul",
        "grid": {"B": 1},
        "shapes": [{"name": f"s-{i}", **at} for i, at in enumerate(case.claim["at"])],
        "chips": over["chip"],
        **{name: over[name] for name in ("dtypes", "sharding", "shards")},
        "thresholds": ["B"],
        "calibration": sweep.config.calibration,
        "memory": sweep.config.memory,
        "network": sweep.config.network,
    }
    config = rooflines.load_config({"sweeps": {"s": one}, "charts": []})
    texts = ("chip", "dtypes", "sharding", "shape", "network", "memory", "axis")
    return rooflines.thresholds(config, "s").with_columns(pl.col(texts).cast(pl.String))


def bounds(case: Case) -> pl.DataFrame:
    """Rows that a claim speaks of, with their bottleneck as `found`."""
    frame = selected(rows_of(case), case.claim)
    name = "estimate_bound" if case.claim["basis"] == "calibrated" else "bound"
    return frame.with_columns(found=pl.col(name).cast(pl.String))


def the_range(rows: pl.DataFrame, _: dict[str, Any]) -> Any:  # noqa: ANN401, any value of JSON
    """The ends of values that are all there; None if one is not."""
    found = rows["found"]
    return None if found.null_count() else [found.min(), found.max()]


def never(rows: pl.DataFrame, claim: dict[str, Any]) -> Any:  # noqa: ANN401, any value of JSON
    """None if no row has a value; with `by` the values of that column for which none has."""
    if "by" not in claim:
        return None if rows["found"].null_count() == rows.height else "some are not null"
    by = rows.group_by(claim["by"]).agg(pl.col("found").is_null().all())
    return by.filter("found")[claim["by"]].sort().to_list()


OF_ROWS: dict[str, Callable[[pl.DataFrame, dict[str, Any]], Any]] = {
    "values": lambda rows, _: rows["found"].to_list(),
    "range": the_range,
    "never": never,
    "nulls": lambda rows, _: [rows["found"].null_count(), rows.height],
    "count": lambda rows, claim: [(rows["found"] == claim["where"]).sum(), rows.height],
}


def entry(case: Case, chip: str) -> Any:  # noqa: ANN401, an entry of the catalogue
    """The entry of a chip."""
    return case.config.sweeps[case.chart.sweep].chips[chip]


def row_of(case: Case, chip: str) -> dict[str, Any]:
    """A row of the table with the dtypes of a claim, from the memory level that it names."""
    over, key = case.claim["over"], (id(case.config), f"one of {case.chart.sweep}")
    if key not in KNOWN:
        columns = ("chip", "dtypes", "memory", "flops", "t_math_s", "memory_bytes", "t_memory_s")
        every = case.results.rows(case.chart.sweep).select(columns)
        KNOWN[key] = every.unique(columns[:3], keep="any").collect()
    rows = KNOWN[key].filter(pl.col("dtypes").is_in(over["dtypes"]), chip=chip)
    if "memory" in over:
        rows = rows.filter(pl.col("memory").is_in(over["memory"]))
    row: dict[str, Any] = rows.row(0, named=True)
    return row


def peak(case: Case, chip: str) -> float:
    """The dense peak of a chip, as rows are computed with [FLOP/s]."""
    row = row_of(case, chip)
    return float(row["flops"] / row["t_math_s"])


def ridge(case: Case, chip: str) -> float:
    """The peak over the bandwidth of a memory level, the main one by default [FLOP/byte]."""
    row = row_of(case, chip)
    if row["memory"] == "hbm" or "memory" in case.claim["over"]:
        return peak(case, chip) / float(row["memory_bytes"] / row["t_memory_s"])
    return peak(case, chip) / float(entry(case, chip).memory["hbm"].bytes_per_s)


def per_dollar(case: Case, chip: str) -> float:
    """The peak times an hour over the lowest price [FLOP/USD]."""
    wanted = case.claim["over"].get("provider")
    prices = [
        float(price.usd_per_hour)
        for price in entry(case, chip).prices
        if wanted is None or price.provider in wanted
    ]
    return peak(case, chip) * SECONDS_PER_HOUR / min(prices)


def per_watt(case: Case, chip: str) -> float:
    """The peak over the power [FLOP/J]."""
    return peak(case, chip) / float(entry(case, chip).power.watts)


CATALOGUE: dict[str, Callable[[Case, str], float]] = {
    "ridge": ridge,
    "flops_per_usd": per_dollar,
    "flops_per_joule": per_watt,
}


def ratio(worth: dict[str, float], claimed: list[Any]) -> list[Any]:
    """The largest over the smallest, and of what they are: of equal ones those that are claimed."""
    ends = max(worth, key=worth.__getitem__), min(worth, key=worth.__getitem__)
    names = [
        name if math.isclose(worth.get(name, math.nan), worth[end], rel_tol=1e-11) else end
        for name, end in zip(claimed[1:], ends, strict=True)
    ]
    return [worth[ends[0]] / worth[ends[1]], *names]


def first_of(worth: dict[str, float]) -> str | None:
    """The key with the only largest value."""
    best = max(worth, key=worth.__getitem__)
    equal = [key for key in worth if math.isclose(worth[key], worth[best], rel_tol=1e-11)]
    return best if len(equal) == 1 else None


def shared(worth: dict[str, float]) -> float | None:
    """The value that all have, to three digits."""
    least, most = min(worth.values()), max(worth.values())
    return least if f"{most / least:.2f}" == "1.00" else None


OF_CHIPS: dict[str, Callable[[dict[str, float]], Any]] = {
    "largest": first_of,
    "value": shared,
}


def of_models(case: Case) -> Any:  # noqa: ANN401, any value of JSON
    """What rows of whole models say."""
    claim, key = case.claim, (id(case.config), f"models {case.chart.sweep}")
    if key not in KNOWN:
        KNOWN[key] = case.results.rows(case.chart.sweep).collect()
    found = KNOWN[key].filter(
        *(pl.col(name).is_in(values) for name, values in claim["over"].items()),
        *(pl.col(name) <= most for name, most in claim.get("most", {}).items()),
    )
    if claim["basis"] == "calibrated":
        rate = pl.col("B") / (pl.col("t_estimate_s") * pl.col("chips"))
        found = found.with_columns(tokens_per_s_per_chip=rate).drop_nulls("t_estimate_s")
    if claim["says"] == "none":
        return None if found.height == 0 else "some"
    if claim["of"] == "weights_fit":
        row = found.row(0, named=True)
        chips = case.config.model_sweeps[case.chart.sweep].chips
        capacity = float(chips[row["chip"]].memory[row["memory"]].capacity_bytes or 0)
        return bool(row["weights_footprint_bytes"] <= capacity)
    if claim["says"] == "value":
        (value,) = found[claim["of"]].unique()
        return value
    best: dict[str, float] = {}
    for chip, rate in found.select("chip", claim["of"]).iter_rows():
        best[chip] = max(best.get(chip, 0.0), rate)
    top = max(best.values())
    equal = [chip for chip in best if math.isclose(best[chip], top, rel_tol=1e-11)]
    return {"largest": first_of(best), "maximum": top, "tie": len(equal)}[claim["says"]]


def median_error(case: Case) -> list[float]:
    """The median of all errors, and the largest median of a cell of B and D times F."""
    column = {"bound": "t_lower_s", "estimate": "t_estimate_s"}[case.claim["where"]]
    cells = defaultdict(list)
    for row in timings_of(case):
        cell = ((row["B"].bit_length() - 1) // 2, ((row["D"] * row["F"]).bit_length() - 1) // 2)
        cells[cell].append(abs(row[column] / row["seconds"] - 1))
    every = [error for errors in cells.values() for error in errors]
    return [median(every), max(map(median, cells.values()))]


def median_ratio(case: Case) -> dict[str, float]:
    """The median of the measured time over the bound, and over the estimate if there is one."""
    rows = timings_of(case)
    estimated = [row["seconds"] / row["t_estimate_s"] for row in rows if row["t_estimate_s"]]
    found = {"bound": median(row["seconds"] / row["t_lower_s"] for row in rows)}
    return found | ({"estimate": median(estimated)} if estimated else {})


MEDIANS: dict[str, Callable[[Case], Any]] = {
    "error": median_error,
    "ratio": median_ratio,
    "share": lambda case: median(row["t_lower_s"] / row["seconds"] for row in timings_of(case)),
}
