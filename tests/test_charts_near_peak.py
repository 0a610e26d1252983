"""Charts name the sizes for smaller shares of the peak, those of the thresholds."""

import json
from typing import Any

import polars as pl
import pytest
from test_charts_numbers import values

import rooflines
from rooflines import charts
from rooflines.charts.kit.render import spec_of
from rooflines.charts.results import Selection

SPLIT: dict[str, Any] = {
    "operation": "matmul",
    "grid": {"B": 1, "D": [256, 1024, 4096], "F": [1024, 4096, 32768]},
    "dtypes": ["bf16"],
    "chips": ["tpu-v5e", "h100-sxm"],
    "sharding": ["none", "column/gather-x", "contracting/all-reduce"],
    "shards": [1, 2, 4, 8],
    "thresholds": ["B"],
}


@pytest.fixture(scope="module")
def split() -> rooflines.Config:
    """Splits over chips, solved for the whole peak and for two smaller shares."""
    return rooflines.load_config({"sweeps": {"split": {**SPLIT, "shares": [0.5, 1, 0.9]}}})


def of_split(config: rooflines.Config) -> Selection:
    """Both chips of `SPLIT`."""
    return charts.of_config(config).of("split", ["tpu-v5e", "h100-sxm"], ["bf16"])


def near(config: rooflines.Config, *keys: str) -> pl.DataFrame:
    """The thresholds at 90 % and at 50 % of the peak, as a tooltip has them, by some keys."""

    def at(share: float) -> pl.DataFrame:
        solved = rooflines.thresholds(config, "split").filter(share=share)
        text = pl.col("critical").map_elements("{:,}".format, pl.String).fill_null("never")
        return solved.select(*keys, pl.format("{} at {} %", text, round(100 * share)).alias("near"))

    both = at(0.9).join(at(0.5), on=keys)
    return both.select(
        *(pl.col(key).cast(pl.String) for key in keys),
        known=pl.format("{}, {}", "near", "near_right"),
    )


def compared(frame: pl.DataFrame, known: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Rows of a frame that say at smaller shares of the peak what the thresholds are."""
    both = frame.with_columns(pl.col(keys).cast(pl.String)).join(known, on=keys)
    assert both["near"].to_list() == both["known"].to_list()
    return both


def test_points_over_shards_name_the_sizes_for_less_of_the_peak(split: rooflines.Config) -> None:
    """Of every split and number of chips, the thresholds at the largest sizes; hollow dots."""
    frame = charts.shards_frame(of_split(split))
    keys = ("chip", "sharding", "shards")
    known = near(split, *keys, "D", "F").filter(D="4096", F="32768")
    assert compared(frame, known, *keys).height == frame.height == 18
    case = frame.filter(sharding="contracting/all-reduce")
    never = case.filter(pl.col("critical").is_null())
    some = never.filter(~pl.col("near").str.starts_with("never")).height
    assert 0 < some < never.height
    spec = spec_of(charts.critical_over_shards(frame), "shards")
    assert never["reached"].count() == some
    assert "Hollow: 90 % of the peak." in json.dumps(spec)
    assert values(spec, "near", "shards")["near"].to_list() == frame["near"].to_list()
    assert json.dumps(spec).count("for less of the peak") == 4


def test_shapes_on_the_map_name_the_sizes_for_less_of_the_peak(split: rooflines.Config) -> None:
    """B (1/D + 1/F) + 1 <= B / (0.9 * 240.5) for D = F = 4,096 on a TPU v5e: from 243 on."""
    shapes = [
        {"name": f"{d} x {f}", "D": d, "F": f} for d in SPLIT["grid"]["D"] for f in (1024, 4096)
    ]
    frame = charts.contour_frame(of_split(split), shapes)
    of_shapes = frame.filter(kind="shape").with_columns(pl.col("D", "F").cast(pl.Int64))
    known = near(split, "chip", "sharding", "D", "F").filter(sharding="none")
    assert compared(of_shapes, known, "chip", "D", "F").height == 12
    (at,) = of_shapes.filter(chip="tpu-v5e", D=4096, F=4096)["near"]
    assert at.startswith("243 at 90 %, ")
    assert frame.filter(pl.col("kind") != "shape")["near"].null_count() == frame.height - 12
    spec = spec_of(charts.critical_map(frame), "map")
    shown = values(spec, "near", "name").drop_nulls("name")
    assert shown["near"].to_list() == of_shapes["near"].to_list()
    assert json.dumps(spec).count("for less of the peak") == 1


def test_tooltips_have_no_line_for_shares_that_were_not_solved_for() -> None:
    """At the whole peak alone there is nothing to name."""
    of = of_split(rooflines.load_config({"sweeps": {"split": SPLIT}}))
    shapes = [{"name": "one", "D": 4096, "F": 4096}]
    for chart in (
        charts.critical_over_shards(charts.shards_frame(of)),
        charts.critical_map(charts.contour_frame(of, shapes)),
        charts.critical(charts.critical_frame(of)),
    ):
        spec = json.dumps(spec_of(chart, "one"))
        assert "tooltip" in spec
        assert "of the peak" not in spec
