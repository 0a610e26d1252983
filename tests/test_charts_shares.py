"""Critical sizes for a smaller share of the peak beside those for all of it, and lines on lines."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest
from contours import points

import rooflines
from rooflines import charts
from rooflines.charts.families import fitted, unchecked
from rooflines.charts.kinds.attained_curves import turns_of

LONG = {"from": 1, "to": 4096, "factor": 2}
ONE: dict[str, Any] = {"operation": "matmul", "dtypes": ["bf16"], "chips": ["tpu-v5e", "h100-sxm"]}
SIZES = {"B": LONG, "D": [128, 1024, 8192], "F": [128, 1024, 8192]}
SHAPES = [{"name": "m-up", "D": 8192, "F": 28672}, {"name": "m-down", "D": 28672, "F": 8192}]
SPLIT = {"sharding": ["contracting/all-reduce", "batch/gather-w"], "shards": [1, 2, 4, 8]}
BOTH = {"shares": [1, 0.9]}
PEAK, RATE = 1.97e14, 8.19e11
"""Of a TPU v5e in bf16 [FLOP/s, byte/s]."""

Drawn = dict[str, tuple[pl.DataFrame, dict[str, Any]]]


def config(**more: Any) -> rooflines.Config:  # noqa: ANN401, any value of a config
    """A grid of sizes, and two shapes over chips."""
    grid = {**ONE, "grid": SIZES, "calibration": "trtllm", **more}
    split = {**ONE, "grid": {"B": LONG}, "shapes": SHAPES, **SPLIT, **more}
    return rooflines.load_config({"sweeps": {"grid": grid, "split": split}})


def drawn(loaded: rooflines.Config) -> Drawn:
    """Frame and specification of every chart."""
    results = charts.of_config(loaded)
    with unchecked():
        return {spec.id: fitted(results, spec) for spec in loaded.charts}


@pytest.fixture(scope="module")
def every() -> Drawn:
    """With thresholds for 90 %."""
    return drawn(config(**BOTH))


def known(sweep: str) -> pl.DataFrame:
    """The thresholds for 90 % of a sweep."""
    found = rooflines.thresholds(config(**BOTH), sweep).filter(pl.col("share") == 0.9)
    return found.with_columns(pl.col("chip", "sharding", "shape").cast(pl.String))


def data(spec: dict[str, Any], *columns: str) -> pl.DataFrame:
    """All rows of a specification that have these columns."""
    parts = [
        pl.DataFrame(rows, infer_schema_length=None)
        for rows in spec["datasets"].values()
        if rows and set(columns) <= set(rows[0])
    ]
    return pl.concat(part.select(columns) for part in parts)


@pytest.mark.parametrize("chart", ["critical-grid", "layers-split"])
def test_cells_have_the_size_for_a_smaller_share_below(every: Drawn, chart: str) -> None:
    """As the thresholds have it, in every cell that has one; never for both is one word."""
    spec = every[chart][1]
    said = data(spec, "below", "text")["below"].to_list()
    rows = known(chart.rpartition("-")[2])
    rows = rows if chart.startswith("critical") else rows.filter(pl.col("shards") == 1)
    expected = [f"{size:,}" for size in rows["critical"].drop_nulls()]
    nominal = data(spec, "below", "basis") if chart.startswith("critical") else None
    if nominal is not None:
        said = nominal.filter(basis="nominal")["below"].to_list()
    assert sorted(text for text in said if text is not None) == sorted(expected)
    assert "Small: 90 % of the peak." in json.dumps(spec)
    assert "never" in data(spec, "text")["text"].to_list() or chart.startswith("layers")


def test_hollow_dots_over_chips_are_the_thresholds(every: Drawn) -> None:
    """Also where all of the peak is never reached; the vertical scale has room for them."""
    frame, spec = every["shards-split"]
    rows = known("split").filter(pl.col("shape") == "m-down").rename({"critical": "known"})
    both = frame.join(
        rows.select("chip", "sharding", "shards", "known"), on=["chip", "sharding", "shards"]
    )
    assert both.height == frame.height
    assert both["reached"].to_list() == both["known"].to_list()
    assert both.filter(pl.col("critical").is_null())["reached"].count() > 0
    edges = next(p["value"] for p in spec["params"] if p["name"] == "edges")
    for (split,), case in frame.group_by("sharding"):
        assert case["reached"].drop_nulls().max() <= edges[f"all|bf16|{split}"]["high"]
    assert "Hollow: 90 % of the peak." in json.dumps(spec)


def test_hollow_dots_lie_on_their_curves() -> None:
    """At B the bytes 2 (B D + D F + B F) take 1 / 0.9 of the time of the math."""
    loaded = rooflines.load_config(
        {"sweeps": {"s": {**ONE, **BOTH, "grid": {"B": LONG, "D": [512, 8192], "F": "D"}}}}
    )
    frame = charts.attained_frame(charts.of_config(loaded).of("s", ["tpu-v5e"], ["bf16"]))
    dots = frame.filter(kind="share").sort("order")
    assert dots["series"].to_list() == ["D = F = 8,192", "D = F = 512"]
    for size, row in zip((8192, 512), dots.to_dicts(), strict=True):
        ratio = 0.9 * 2 * PEAK / RATE / (2 * size * size)
        assert row["exact"] == pytest.approx(ratio * size**2 / (1 - ratio * 2 * size), rel=1e-12)
        assert row["size"] == -(-row["exact"] // 1)
        assert row["flops_per_s"] == pytest.approx(0.9 * PEAK)
    said = json.dumps(charts.spec_of(charts.attained(frame), "x"))
    assert "hollow for 90 % of the peak" in said


def test_dashed_contours_attain_the_share_at_their_batch(every: Drawn) -> None:
    """Of every point on one, from its FLOP and bytes; the border of never at any batch."""
    frame = every["critical-map-grid"][0].filter(kind="share", chip="tpu-v5e")
    inside = points(frame).filter(pl.col("F") > pl.col("bottom"))
    assert inside["level"].is_infinite().any()
    assert set(inside["share"]) == {0.9}
    for row in inside.to_dicts():
        batch = min(row["level"], 2.0**200)
        flops = 2 * batch * row["D"] * row["F"]
        moved = 2 * (batch * row["D"] + row["D"] * row["F"] + batch * row["F"])
        assert flops / (moved / RATE) / PEAK == pytest.approx(0.9, rel=1e-6)


def test_hollow_dots_stand_beside_nominal_and_calibrated_sizes(every: Drawn) -> None:
    """Of the chip with a calibration, for every size."""
    frame, spec = every["critical-estimate-grid"]
    rows = known("grid").filter(pl.col("chip") == "h100-sxm", pl.col("D") == pl.col("F"))
    assert frame.sort("D")["reached"].to_list() == rows.sort("D")["critical"].to_list()
    assert "○ at 90 %" in json.dumps(spec, ensure_ascii=False)


def test_without_smaller_shares_nothing_is_said_of_them() -> None:
    """No text, no mark."""
    for name, (_, spec) in drawn(config()).items():
        said = json.dumps(spec, ensure_ascii=False)
        for text in ("ollow", "Dashed", "90 %", "○"):
            assert text not in said, (name, text)


def test_curves_that_are_one_line_take_turns() -> None:
    """Two that are equal and one that is not; those that part somewhere are no line."""
    points = {
        "one": [1.0, 50.0, 100.0],
        "same": [1.0, 50.1, 100.0],
        "other": [1.0, 60.0, 100.0],
    }
    curves = {name: [*enumerate(heights)] for name, heights in points.items()}
    assert turns_of(curves, 100.0) == {"one": (0, 2), "same": (1, 2)}


def test_a_sweep_whose_curves_are_one_line_shows_each_of_them() -> None:
    """One example has the intensity of a vector, for all matrices: three dashes in turn."""
    loaded = rooflines.load_config()
    sweep, chip = "book-q4-per-example-matmul", "tpu-v5e-book-roofline"
    of = charts.of_config(loaded).of(sweep, [chip], ["int8"])
    spec = charts.spec_of(charts.attained(charts.attained_frame(of)), "x")
    findings = next(p["value"] for p in spec["params"] if p["name"] == "findings")
    turns = findings[f"{chip}|int8"]["turns"]
    assert sorted(turn for turn, _ in turns.values()) == [0, 1, 2]
    assert {of_how_many for _, of_how_many in turns.values()} == {3}
    assert all(series.startswith("D = F = ") for series in turns)
