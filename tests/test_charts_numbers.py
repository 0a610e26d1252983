"""The numbers in charts are those of the tables, thresholds and catalogue, and of the book."""

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl
import pytest
import yaml
from contours import points

import rooflines
from rooflines import charts
from rooflines.basics.text import seconds, si
from rooflines.charts.kinds.attained_curves import between
from rooflines.charts.kit.render import spec_of
from rooflines.charts.kit.text import chip_label
from rooflines.charts.results import Results

MODEL = "llama-3.1-70b-up"


@pytest.fixture(scope="module")
def config() -> rooflines.Config:
    """The default config."""
    return rooflines.load_config()


@pytest.fixture(scope="module")
def results(config: rooflines.Config) -> Results:
    """What it computes, without a run."""
    return charts.of_config(config)


@pytest.fixture(scope="module")
def narrow(repository: Path) -> rooflines.Config:
    """The two largest sweeps of the default config, of a few chips and of bf16 alone."""
    text = (repository / "config" / "config.yaml").read_text(encoding="utf-8")
    sweeps = yaml.safe_load(text)["sweeps"]
    few = {"dtypes": ["bf16"], "chips": ["h100-sxm", "mi300x", "tpu-v5e"]}
    names = ("sharded-models", "model-shapes")
    return rooflines.load_config({"sweeps": {name: {**sweeps[name], **few} for name in names}})


def values(spec: dict[str, Any], *columns: str) -> pl.DataFrame:
    """The rows of a chart's data that have these columns."""
    return pl.concat(
        [
            pl.DataFrame(rows, infer_schema_length=None).select(columns)
            for rows in spec["datasets"].values()
            if set(columns) <= set(rows[0])
        ]
    )


@pytest.mark.parametrize(
    ("sweep", "chip", "dtypes", "ridge"),
    [
        ("book-matmul", "tpu-v5e-book-roofline", "bf16", 240.24),
        ("book-matmul", "tpu-v5e-book-tables", "bf16", 243.21),
        ("book-q1-int8-matmul", "tpu-v5e-book-tables", "int8", 486.42),
        ("book-q5-gpu", "h100-sxm", "bf16", 295.22),
        ("book-q5-gpu", "h100-sxm-book-round", "bf16", 298.51),
        ("book-q5-gpu", "h100-nvl-critical-batch-214", "bf16", 214.1),
    ],
)
def test_the_ridge_is_the_books(
    results: Results, sweep: str, chip: str, dtypes: str, ridge: float
) -> None:
    """In the frame of ridges, in that of the roofline, and written beside the dashed line."""
    of = results.of(sweep, [chip], [dtypes])
    assert charts.ridge_frame(of)["ridge"].item() == pytest.approx(ridge, abs=0.005)
    frame = charts.roofline_frame(of)
    assert frame.filter(kind="memory", name="hbm")["intensity"].item() == pytest.approx(
        ridge, abs=0.005
    )
    spec = spec_of(charts.roofline(frame), "ridge")
    assert f"ridge · {ridge:.0f} FLOP/byte" in values(spec, "text")["text"].to_list()


def test_question_3_has_its_knees_and_question_2_its_never(results: Results) -> None:
    """137 and 227 for int8 weights, 273 and 453 in bf16; at D = F = 128 no B is enough."""
    q3 = charts.attained_frame(
        results.of("book-q3-curve", ["tpu-v5e-book-roofline"], ["w8a16", "bf16"])
    ).filter(kind="knee")
    assert dict(q3.filter(dtypes="w8a16").select("series", "size").iter_rows()) == {
        "D = F = 4,096": 137,
        "D = F = 1,024": 227,
    }
    assert dict(q3.filter(dtypes="bf16").select("series", "size").iter_rows()) == {
        "D = F = 4,096": 273,
        "D = F = 1,024": 453,
    }
    assert q3.filter(dtypes="w8a16", series="D = F = 4,096")["exact"].item() == pytest.approx(
        136.0857, abs=5e-5
    )
    frame = charts.attained_frame(
        results.of("book-q2-int8-weights", ["tpu-v5e-book-roofline"], ["w8a16"])
    )
    assert frame.filter(kind="knee", series="D = F = 128")["size"].to_list() == [None]
    texts = values(spec_of(charts.attained(frame), "q2"), "text")["text"].to_list()
    assert {"D = F = 128 · never", "227", "1,952"} <= set(texts)


def test_a_curve_is_the_table_and_between_its_sizes_the_model(
    config: rooflines.Config, results: Results
) -> None:
    """Curves are rows of the table, and `between` two of them what a finer table would have."""
    curve = charts.attained_frame(
        results.of("book-q2-int8-weights", ["tpu-v5e-book-roofline"], ["w8a16"])
    ).filter(kind="curve")
    rate, bandwidth = 1.97e14, 8.2e11
    for row in curve.to_dicts():
        size = float(row["series"].rpartition(" ")[2].replace(",", ""))
        flops = 2 * row["size"] * size * size
        moved = 2 * row["size"] * size + size * size + 2 * row["size"] * size
        assert row["flops_per_s"] == pytest.approx(min(rate, flops * bandwidth / moved), rel=1e-9)
    table = (
        rooflines.rows(config, "book-q3-curve")
        .filter(pl.col("dtypes") == "w8a16", pl.col("D") == 1024)
        .collect()
    )
    drawn = charts.attained_frame(
        results.of("book-q3-curve", ["tpu-v5e-book-roofline"], ["w8a16"])
    ).filter(series="D = F = 1,024")
    both = drawn.filter(kind="curve").join(
        table.with_columns(size=pl.col("B").cast(pl.Float64)), on="size"
    )
    assert both.height == 9
    assert (both["flops_per_s"] / both["attained_flops_per_s"] - 1).abs().max() < 1e-12  # type: ignore[operator]
    known = dict(table.select("B", "attained_flops_per_s").iter_rows())
    points = drawn.filter(kind="curve").select("size", "flops_per_s").rows()
    for low, high in pairwise(points):
        for size in range(math.ceil(low[0]), math.floor(high[0]) + 1):
            assert between(low, high, size) == pytest.approx(known[size], rel=1e-12)


def test_a_curve_has_every_size_once() -> None:
    """However the numbers that its peak is worked out from are rounded."""
    sizes = {"B": {"from": 1, "to": 4096, "factor": 2}, "D": [1024, 4096], "F": [4096, 16384]}
    chips, dtypes = ["h100-sxm", "tpu-v5e"], ["bf16", "w8a16"]
    sweep = {
        "operation": "matmul",
        "grid": sizes,
        "dtypes": dtypes,
        "chips": chips,
    }
    config = rooflines.load_config({"sweeps": {"one": sweep}})
    frame = charts.attained_frame(charts.of_config(config).of("one", chips, dtypes))
    curve = frame.filter(kind="curve")
    assert curve.select("chip", "dtypes", "series", "size").is_unique().all()
    assert frame.select("chip", "dtypes", "peak").unique().height == 4
    assert dict(frame.select("chip", "peak").iter_rows()) == pytest.approx(
        {"h100-sxm": 9.895e14, "tpu-v5e": 1.97e14}, rel=1e-3
    )


def test_the_map_of_critical_sizes_is_the_thresholds(
    config: rooflines.Config, results: Results
) -> None:
    """Every cell, never included, and the cells' edges leave no gap."""
    frame = charts.critical_frame(results.of("common-sizes", ["tpu-v5e"], ["bf16"]))
    known = rooflines.thresholds(config, "common-sizes").filter(
        pl.col("share") == 1, pl.col("chip") == "tpu-v5e", pl.col("dtypes") == "bf16"
    )
    both = frame.join(known.select(x="D", y="F", known="critical"), on=["x", "y"], how="left")
    assert both.height == 64
    assert both["critical"].to_list() == both["known"].to_list()
    assert both["critical"].null_count() == frame.filter(pl.col("critical").is_null()).height > 0
    row = frame.filter(y=1024).sort("x")
    assert row["x_high"].to_list()[:-1] == pytest.approx(row["x_low"].to_list()[1:])


def test_contours_run_where_the_thresholds_say(config: rooflines.Config, results: Results) -> None:
    """Shapes and contours of the map have the critical batch of the closed form."""
    known = rooflines.thresholds(config, "model-shapes").filter(
        pl.col("share") == 1, pl.col("chip") == "h100-sxm", pl.col("dtypes") == "bf16"
    )
    shapes = (
        known.select(name="shape", D="D", F="F")
        .filter(pl.col("F") < 60_000, pl.col("D") >= 1024)
        .to_dicts()
    )
    frame = charts.contour_frame(results.of("common-sizes", ["h100-sxm"], ["bf16"]), shapes)
    frame = frame.filter(basis="nominal")
    both = frame.filter(kind="shape").join(
        known.select(pl.col("shape").cast(pl.String).alias("name"), "critical_exact"), on="name"
    )
    assert both.height > 50
    assert (both["level"] / both["critical_exact"] - 1).abs().max() < 1e-9  # type: ignore[operator]
    peak, bandwidth = 9.89e14, 3.35e12
    lines = points(frame.filter(kind="level"))
    assert lines.height == 9 * 4
    for row in lines.to_dicts():
        flops = 2 * row["level"] * row["D"] * row["F"]
        moved = 2 * (row["level"] * row["D"] + row["D"] * row["F"] + row["level"] * row["F"])
        assert flops / peak == pytest.approx(moved / bandwidth, rel=1e-8)


def test_times_bounds_and_layers_are_the_tables(narrow: rooflines.Config) -> None:
    """Bars, cells and numbers of a sharded model are rows of its table and thresholds."""
    results = charts.of_config(narrow)
    of = results.of("sharded-models", ["h100-sxm"], ["bf16"])
    times = charts.time_frame(
        of, {"down": "llama-3.1-70b-down"}, [256], [4], "contracting/all-reduce"
    )
    table = rooflines.rows(narrow, "sharded-models").filter(
        pl.col("chip") == "h100-sxm",
        pl.col("dtypes") == "bf16",
        pl.col("shape") == "llama-3.1-70b-down",
        pl.col("sharding") == "contracting/all-reduce",
    )
    row = table.filter(pl.col("B") == 256, pl.col("shards") == 4).collect().row(0, named=True)
    assert dict(times.select("resource", "seconds").iter_rows()) == {
        "compute": row["t_math_s"],
        "memory": row["t_memory_s"],
        "network": row["t_network_s"],
    }
    assert times.filter("bound")["resource"].to_list() == [row["bound"]]
    bounds = charts.bound_frame(of, "shards", "llama-3.1-70b-down").filter(
        sharding="contracting/all-reduce"
    )
    both = bounds.join(
        table.select(x="B", y="shards", known=pl.col("bound").cast(pl.String)).collect(),
        on=["x", "y"],
    )
    assert both.height == bounds.height == 17 * 4
    assert both["bound"].to_list() == both["known"].to_list()
    layers = charts.layer_frame(results.of("model-shapes", ["h100-sxm"], ["bf16"]), {"up": MODEL})
    known = rooflines.thresholds(narrow, "model-shapes").filter(
        pl.col("share") == 1,
        pl.col("chip") == "h100-sxm",
        pl.col("dtypes") == "bf16",
        pl.col("shape") == MODEL,
    )
    assert layers["critical"].to_list() == known["critical"].to_list()


def test_thresholds_over_shards_are_the_thresholds(narrow: rooflines.Config) -> None:
    """Null stays null: never is drawn as such."""
    frame = charts.shards_frame(
        charts.of_config(narrow).of("sharded-models", ["tpu-v5e", "mi300x"], ["bf16"]),
        "B",
        "llama-3.1-70b-down",
    )
    known = rooflines.thresholds(narrow, "sharded-models").filter(
        pl.col("axis") == "B",
        pl.col("shape") == "llama-3.1-70b-down",
        pl.col("share") == 1,
    )
    keys = ["chip", "sharding", "shards"]
    both = frame.join(
        known.select(*(pl.col(k).cast(frame.schema[k]) for k in keys), known="critical"), on=keys
    )
    assert both.height == frame.height > 20
    assert both["critical"].to_list() == both["known"].to_list()
    assert 0 < both["critical"].null_count() < both.height


def test_what_a_dollar_and_a_watt_buy_has_a_date_and_a_source_of_power(results: Results) -> None:
    """The lowest listed price counts; a chip without price or power has no bar."""
    frame = charts.ridge_frame(
        results.of("model-shapes", ["h100-sxm", "tpu-v5e", "mi300x"], ["bf16"])
    )
    row = frame.filter(chip="h100-sxm").row(0, named=True)
    assert (row["usd_per_hour"], row["date"]) == (3.85, "2026-08-20")
    assert row["flops_per_usd"] == pytest.approx(9.89e14 * 3600 / 3.85)
    assert row["flops_per_joule"] == pytest.approx(9.89e14 / 700)
    drawn = values(spec_of(charts.per_unit(frame), "per-dollar"), "chip", "value")
    assert set(drawn["chip"]) == {"h100-sxm", "tpu-v5e"}


def test_prices_are_those_of_each_provider(results: Results) -> None:
    """A chip that a provider does not sell has no bar there, and the subtitle names it."""
    of = results.of("model-shapes", ["h100-sxm", "tpu-v5e"], ["bf16", "w8a16"])
    frame = charts.price_frame(of).filter(dtypes="bf16").drop_nulls("usd_per_hour")
    prices = frame.select("seller", "chip", "usd_per_hour").rows()
    assert ("Nebius", "h100-sxm", 3.85) in prices
    assert ("Google Cloud", "tpu-v5e", 1.2) in prices
    assert not [row for row in prices if row[:2] == ("Nebius", "tpu-v5e")]
    spec = spec_of(charts.per_unit(charts.price_frame(of)), "per-dollar")
    findings = next(p["value"] for p in spec["params"] if p["name"] == "findings")
    assert " None there: TPU v5e." in " ".join(findings["all|bf16|Nebius"]["subtitle"])
    assert not [key for key in findings if "w8a16" in key]  # it computes in bf16
    drawn = values(spec, "seller", "detail")
    assert "AWS · p5.48xlarge / 8 (= p5.4xlar… · 2026-09-25" in drawn["detail"].to_list()


def test_every_chart_is_a_function_from_a_frame_to_an_altair_chart(results: Results) -> None:
    """A notebook can draw it as it is, without a look."""
    chart = charts.chips_on_one_roofline(
        charts.ridge_frame(results.of("model-shapes", ["h100-sxm"], ["bf16"]))
    )
    assert isinstance(chart, alt.LayerChart)
    assert chart.to_dict()["usermeta"]["looks"].keys() == {"slide", "web", "paper"}


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1.97e14, "FLOP/s", "197 TFLOP/s"),
        (2.25e15, "FLOP/s", "2.25 PFLOP/s"),
        (8.19e11, "B/s", "819 GB/s"),
        (999.96, "B/s", "1 kB/s"),
    ],
)
def test_quantities_have_three_digits_and_a_prefix(value: float, unit: str, text: str) -> None:
    """As an engineer writes them."""
    assert si(value, unit) == text


def test_times_and_names_are_written_as_one_reads_them() -> None:
    """Seconds with a prefix; ids of known families as words, others as they are."""
    assert [seconds(v) for v in (4.13e-5, 1.2, 3e-10)] == ["41.3 µs", "1.2 s", "0.3 ns"]
    names = {
        "tpu-v5e": "TPU v5e",
        "h100-sxm": "H100 SXM",
        "mi300x": "MI300X",
        "my-chip": "my-chip",
        "qwen-2-5-7b": "Qwen 2.5 7B",
        "qwen2.5-7b": "Qwen2.5 7B",
        "qwen3-0.6b": "Qwen3 0.6B",
        "qwen3-30b-a3b": "Qwen3 30B A3B",
        "llama-3.1-70b": "Llama 3.1 70B",
        "tpu-v5e-book-roofline": "TPU v5e (book roofline)",
        "h100-nvl-critical-batch-214": "H100 NVL (critical batch 214)",
        "a100-sxm-80gb-book": "A100 SXM 80GB (book)",
        "b300-chip-8tb": "B300 (chip 8tb)",
        "rtx-pro-6000-server": "RTX pro 6000 server",
        "gpt-oss": "GPT oss",
    }
    assert {name: chip_label(name) for name in names} == names
