"""Nominal and calibrated numbers of one chart: the tables', and only where there is a fit."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import Any

import polars as pl
import pytest
from contours import points

import rooflines
from rooflines import charts
from rooflines.charts.families import fitted, unchecked
from rooflines.charts.kinds.attained_curves import between
from rooflines.charts.kit.render import dumps

SHAPES = [{"name": "m-up", "D": 4096, "F": 14336}, {"name": "m-down", "D": 14336, "F": 4096}]
LONG = {"from": 1, "to": 4096, "factor": 2}
GRID = {"B": LONG, "D": [512, 4096, 8192], "F": [512, 8192, 32768]}
SPLIT: dict[str, Any] = {
    "operation": "matmul",
    "dtypes": ["bf16"],
    "chips": ["tpu-v5e", "h100-sxm"],
    "grid": {"B": LONG},
    "shapes": SHAPES,
    "sharding": ["contracting/all-reduce"],
    "shards": [1, 2, 4],
}
KINDS = {
    "roofline",
    "attained",
    "critical",
    "critical-map",
    "shards",
    "layers",
    "time",
    "bounds",
}
"""Charts with a time, a rate or a threshold."""


def config(**changes: Any) -> rooflines.Config:  # noqa: ANN401, values of a config
    """A split of two shapes, and a grid of sizes."""
    grid = {key: SPLIT[key] for key in ("operation", "dtypes", "chips")}
    sweeps = {"split": {**SPLIT, **changes}, "grid": {**grid, "grid": GRID, **changes}}
    return rooflines.load_config({"sweeps": sweeps})


def drawn(loaded: rooflines.Config) -> dict[str, tuple[pl.DataFrame, dict[str, Any]]]:
    """Frame and specification of every chart, by its name and sweep."""
    results = charts.of_config(loaded)
    with unchecked():
        return {spec.id: fitted(results, spec) for spec in loaded.charts}


@pytest.fixture(scope="module")
def calibrated() -> rooflines.Config:
    """With the calibrations of TensorRT-LLM, which the H100 has and the TPU has not."""
    return config(calibration="trtllm")


@pytest.fixture(scope="module")
def every(calibrated: rooflines.Config) -> dict[str, tuple[pl.DataFrame, dict[str, Any]]]:
    """All its charts."""
    return drawn(calibrated)


def menu(spec: dict[str, Any]) -> list[str]:
    """The options of the menu of numbers; none without a menu."""
    return next((p["bind"]["options"] for p in spec["params"] if p["name"] == "basis"), [])


def test_a_menu_has_both_numbers_where_a_chip_is_calibrated(
    every: dict[str, tuple[pl.DataFrame, dict[str, Any]]],
) -> None:
    """Nominal first; a finding for every calibrated chip, and none for the others."""
    kinds = {name.rpartition("-")[0]: spec for name, (_, spec) in every.items()}
    assert {kind for kind, spec in kinds.items() if menu(spec)} == KINDS
    for spec in (spec for spec in kinds.values() if menu(spec)):
        assert menu(spec) == ["nominal", "calibrated"]
        assert next(p for p in spec["params"] if p["name"] == "basis")["value"] == "nominal"
        findings = next(p["value"] for p in spec["params"] if p["name"] == "findings")
        of = {key.split("|")[0] for key in findings if key.endswith("|calibrated")}
        assert of in ({"h100-sxm"}, {"all", "h100-sxm", "tpu-v5e"})


def test_charts_of_chips_without_a_calibration_are_those_of_no_calibration() -> None:
    """To the byte, as first shown and in every choice."""
    with_software = drawn(config(chips=["tpu-v5e"], calibration="trtllm"))
    without = drawn(config(chips=["tpu-v5e"]))
    assert with_software.keys() == without.keys()
    for name, (_, spec) in with_software.items():
        assert menu(spec) == []
        assert dumps(spec) == dumps(without[name][1])


def test_calibrated_sizes_are_the_thresholds(
    calibrated: rooflines.Config, every: dict[str, tuple[pl.DataFrame, dict[str, Any]]]
) -> None:
    """In maps, layers and over chips; null is never where there is a fit, else no fit."""
    for chart, keys in (
        ("critical-grid", {"x": "D", "y": "F"}),
        ("layers-split", {"layer": "shape"}),
        ("shards-split", {"shards": "shards"}),
    ):
        frame = every[chart][0]
        known = rooflines.thresholds(calibrated, chart.rpartition("-")[2]).filter(
            pl.col("axis") == "B", pl.col("share") == 1
        )
        if chart.startswith("shards"):
            known = known.filter(pl.col("shape") == "m-down")
        if chart.startswith("layers"):
            known = known.filter(pl.col("shards") == 1)
        known = known.select(
            pl.col("chip").cast(pl.String),
            *(pl.col(name).cast(frame.schema[key]).alias(key) for key, name in keys.items()),
            known="saturates_estimate",
        )
        both = frame.join(known, on=["chip", *keys])
        assert both.height == frame.height
        assert both["critical_estimate"].to_list() == both["known"].to_list()
        assert set(both.filter("calibrated")["chip"]) == {"h100-sxm"}
        assert both.filter(~pl.col("calibrated"))["known"].null_count() == both.height // 2


def test_calibrated_times_and_rates_are_the_tables(
    calibrated: rooflines.Config, every: dict[str, tuple[pl.DataFrame, dict[str, Any]]]
) -> None:
    """Bars, dots, curves and cells, with their bands."""
    table = rooflines.rows(calibrated, "split").filter(pl.col("shape") == "m-down")
    rows = table.with_columns(pl.col("chip", "bound", "estimate_bound").cast(pl.String)).collect()
    time = every["time-split"][0].filter("bound", "calibrated", layer="m-down")
    both = time.join(rows, on=["chip", "B", "shards"])
    assert both.height == time.height > 0
    for name in ("t_estimate_s", "t_estimate_p10_s", "t_estimate_p90_s", "estimate_bound"):
        assert both[name].to_list() == both[f"{name}_right"].to_list()
    points = every["roofline-split"][0].filter(kind="point", chip="h100-sxm")
    both = points.join(rows.filter(shards=1), on=["chip", "B"])
    assert both.height == points.height > 0
    for name, seconds in (("estimate", ""), ("fast", "_p10"), ("slow", "_p90")):
        assert (both[name] * both[f"t_estimate{seconds}_s"]).to_list() == pytest.approx(
            both["flops"].to_list()
        )
    cells = every["bounds-split"][0].filter(chip="h100-sxm")
    both = cells.join(rows.with_columns(x="B"), on=["chip", "x", "shards"])
    assert both.height == cells.height > 0
    assert both["bound_estimate"].to_list() == both["estimate_bound"].to_list()
    attained = both["flops"] / both["t_estimate_s"] / 9.89e14
    assert both["utilization_estimate"].to_list() == pytest.approx(attained.to_list(), rel=1e-3)


def test_a_calibrated_curve_is_the_estimate() -> None:
    """3 µs, plus the math at 0.8 of 989.4 TFLOP/s, of 2 * 4096 * 8192^2 FLOP: 788 TFLOP/s."""
    own = {
        "base": "h100-sxm",
        "calibration.bf16": {"math": 0.8, "memory": 0.9, "overhead_s": 3.0e-6},
        "units.matrix.bf16.flops_per_s": 1e15,
        "source": "a test",
    }
    sweep = {**SPLIT, "chips": ["mine"], "grid": {"B": LONG, "D": [8192], "F": "D"}}
    sweep = {key: sweep[key] for key in ("operation", "dtypes", "chips", "grid")}
    loaded = rooflines.load_config({"sweeps": {"s": sweep}, "chips": {"mine": own}})
    frame = charts.attained_frame(charts.of_config(loaded).of("s", ["mine"], ["bf16"]))
    last = frame.filter(kind="estimate", size=4096.0).row(0, named=True)
    flops = 2 * 4096 * 8192 * 8192
    assert last["flops_per_s"] == pytest.approx(flops / (3e-6 + flops / 0.8e15), rel=1e-12)
    assert (last["slow"], last["fast"]) == (None, None)
    said = json.dumps(charts.spec_of(charts.attained(frame), "own"))
    assert "p10 to p90" not in said


def test_calibrated_curves_leave_out_what_lies_between_their_points() -> None:
    """Every size of the table is a point of a curve, or `between` two of them gives it."""
    one = {"operation": "matmul", "dtypes": ["bf16"], "chips": ["h100-sxm"]}
    sweep = {**one, "grid": {"B": LONG, "D": [512, 8192], "F": "D"}, "calibration": "trtllm"}
    loaded = rooflines.load_config({"sweeps": {"s": sweep}})
    frame = charts.attained_frame(charts.of_config(loaded).of("s", ["h100-sxm"], ["bf16"]))
    curves = frame.filter(kind="estimate").group_by("series", maintain_order=True)
    left_out = 0
    for (series,), curve in curves:
        size = int(str(series).rpartition(" = ")[2].replace(",", ""))
        table = rooflines.rows(loaded, "s").filter(pl.col("D") == size).collect()
        for column, time in (("flops_per_s", ""), ("fast", "_p10"), ("slow", "_p90")):
            points = curve.select("size", column).rows()
            for row in table.to_dicts():
                attains = row["flops"] / row[f"t_estimate{time}_s"]
                low, high = next(
                    (low, high) for low, high in pairwise(points) if low[0] <= row["B"] <= high[0]
                )
                assert between(low, high, row["B"]) == pytest.approx(attains, rel=1e-8)
                left_out += row["B"] not in (low[0], high[0])
    assert left_out > 0


def test_calibrated_contours_run_where_the_estimate_says(
    every: dict[str, tuple[pl.DataFrame, dict[str, Any]]],
) -> None:
    """Just above a line rows are compute-bound at its batch; just below they are not."""
    lines = every["critical-map-grid"][0].filter(kind="level", basis="calibrated")
    inside = points(lines).filter(pl.col("F").is_between("bottom", "top", closed="none"))
    some = inside.filter(pl.col("level") == pl.col("level").round()).gather_every(4).to_dicts()
    assert len(some) > 5
    assert set(inside["chip"]) == {"h100-sxm"}
    for point in some:
        batch = int(point["level"])
        depth, wide = (math.ceil(point[name] * (1 + 1e-8)) for name in "DF")
        sweep = {key: SPLIT[key] for key in ("operation", "dtypes")}
        sizes = {"B": batch, "D": [depth - 1, depth], "F": [wide - 1, wide]}
        one = {**sweep, "chips": ["h100-sxm"], "grid": sizes, "calibration": "trtllm"}
        loaded = rooflines.load_config({"sweeps": {"s": one}, "charts": []})
        rows = rooflines.rows(loaded, "s").select("D", "F", "estimate_bound").collect()
        bound = {row[:2]: row[2] == "compute" for row in rows.iter_rows()}
        assert bound[depth, wide]
        assert not bound[depth - 1, wide - 1]
