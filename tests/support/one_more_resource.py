"""A program for a package whose model also has a cache: every table and chart must know it.

Three times the bytes of the memory go through the cache, at its rate; see `test_recipes.py`.
"""

import sys
from pathlib import Path

import polars as pl

import rooflines
from rooflines import charts
from rooflines.charts.kit.themes import SIZES, config

RESOURCES = {
    "compute": "t_math_s",
    "memory": "t_memory_s",
    "network": "t_network_s",
    "cache": "t_cache_s",
}
SAME = 1e-12


def same(one, other):
    return bool(((one - other).abs() <= SAME * other.abs()).all())


def largest(table):
    return table.select(pl.max_horizontal(*RESOURCES.values())).to_series()


TESTS = Path(sys.argv[1]).parent
loaded = rooflines.load_config(TESTS / "cases/configs/one-more-resource.yaml")
results = charts.of_config(loaded)

grid = results.rows("grid").collect()
assert same(grid["t_cache_s"], 3 * grid["t_memory_s"])
assert same(grid["t_lower_s"], largest(grid))
assert set(grid["bound"]) == {"compute", "cache"}
sizes = results.thresholds("grid").collect().select("chip", "dtypes", "D", "F", "critical")
both = grid.join(sizes, on=["chip", "dtypes", "D", "F"])
assert both.height == grid.height
reached = (both["B"] >= both["critical"]).fill_null(value=False)
assert ((both["bound"] == "compute") == reached).all()

kernels, passes = (rooflines.model_layers(loaded, name) for name in ("steps", "training"))
steps, requests, training = (
    rooflines.rows(loaded, name).collect() for name in ("steps", "requests", "training")
)
for table in (steps, kernels.collect(), requests, training, passes.collect()):
    assert same(table["traffic_bytes"], 3 * table["memory_bytes"])
    assert same(table["t_cache_s"], 3 * table["t_memory_s"])
    assert "cache" in set(table["bound"])
    assert (table["t_serial_s"] >= table["t_cache_s"] * (1 - SAME)).all()
    upper = table.select(pl.sum_horizontal(*RESOURCES.values(), "t_activation_s")).to_series()
    assert (table["t_upper_s"] >= upper * (1 - SAME)).all()
for table in (steps, training):
    assert same(table["t_lower_s"], largest(table))
assert (requests["t_lower_s"] >= requests["t_cache_s"] * (1 - SAME)).all()
for name in ("steps", "training"):
    limits = set(rooflines.thresholds(loaded, name)["limit"])
    assert "cache" in limits
    assert "memory" not in limits

tables = {
    ("attained", "grid"): grid,
    ("critical", "grid"): results.thresholds("grid").collect(),
    ("who-binds", "split"): results.rows("split").collect(),
}
joined: list[str] = []
domains = []
for chart in loaded.charts:
    by = {"by": "resource"} if chart.chart == "time" else {}
    view = charts.view(chart.chart, results, chart.sweep, **by)
    known = tables.get((chart.chart, chart.sweep))
    if known is not None:
        shared = [name for name in view.rows.columns if name in known.columns]
        rest = view.rows.join(known, on=shared, how="anti", nulls_equal=True)
        assert rest.is_empty(), chart.id
        joined.append(chart.chart)
    scales = [each.get("encoding", {}).get("color", {}).get("scale", {}) for each in view.layers]
    domains += [scale["domain"] for scale in scales if scale.get("range") == "ordinal"]
assert set(joined) == {"attained", "critical", "who-binds"}
assert domains
assert all(domain == list(RESOURCES) for domain in domains)
colours = config(SIZES["web"], dark=False)["range"]["ordinal"]
assert len(set(colours)) == len(colours) == len(RESOURCES) + 1

answers = (
    rooflines.explain("h100-sxm", "64x8192x8192", "bf16"),
    rooflines.explain_model("h100-sxm", "llama-3.1-8b", B=8, S=2048),
)
for answer in answers:
    assert answer.row["bound"] == "cache"
    assert "cache" in {used.resource for used in answer.resources}
