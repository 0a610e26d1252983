"""One more entry in the list of resources reaches tables, thresholds and every chart.

All of them read this one list.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

SAME = 1e-12
RESOURCES = {
    "compute": "t_math_s",
    "memory": "t_memory_s",
    "network": "t_network_s",
    "cache": "t_cache_s",
}
KEYS = ["chip", "dtypes"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tables, thresholds and frames of a model that also has a cache.

    Three times the memory's bytes go through it.
    """
    folder = tmp_path_factory.mktemp("resource")
    script = Path(__file__).parent / "support" / "one_more_resource.py"
    done = subprocess.run(
        [sys.executable, str(script), str(folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return folder


def same(one: pl.Series, other: pl.Series) -> bool:
    """Whether two columns are equal within rounding."""
    return bool(((one / other - 1).abs() < SAME).all())


def with_cache(table: pl.DataFrame) -> pl.DataFrame:
    """The table with the time of the cache, computed independently."""
    return table.with_columns(t_cache_s=3 * pl.col("t_memory_s"))


def test_tables_and_thresholds_have_the_resource(made: Path) -> None:
    """It is the bottleneck where memory was; from the critical sizes on, compute is."""
    table = with_cache(pl.read_parquet(made / "grid.parquet").drop("t_cache_s"))
    assert same(
        table["t_lower_s"], table.select(pl.max_horizontal(*RESOURCES.values())).to_series()
    )
    assert set(table["bound"]) == {"compute", "cache"}
    known = pl.read_parquet(made / "grid-thresholds.parquet").select(*KEYS, "D", "F", "critical")
    both = table.join(known, on=[*KEYS, "D", "F"])
    assert both.height == table.height
    assert (
        (both["bound"] == "compute") == (both["B"] >= both["critical"]).fill_null(value=False)
    ).all()


def test_curves_attain_what_tables_say_and_bend_at_the_thresholds(made: Path) -> None:
    """Below the critical size a curve is below the peak, from there on it is the peak."""
    frame = pl.read_parquet(made / "attained-grid.parquet")
    table = (
        pl.read_parquet(made / "grid.parquet")
        .filter(pl.col("D") == pl.col("F"))
        .with_columns(size=pl.col("B").cast(pl.Float64))
    )
    series = pl.format(
        "D = F = {}", pl.col("D").map_elements(lambda d: f"{d:,}", return_dtype=pl.String)
    )
    curve = frame.filter(kind="curve").join(
        table.with_columns(series=series), on=[*KEYS, "series", "size"]
    )
    assert curve.height > 10
    assert same(curve["flops_per_s"], curve["attained_flops_per_s"])
    knees = frame.filter(kind="knee").drop_nulls("exact")
    bends = knees.join(
        frame.filter(kind="curve"),
        left_on=[*KEYS, "series", "exact"],
        right_on=[*KEYS, "series", "size"],
    )
    assert bends.height == knees.height > 0
    assert same(bends["flops_per_s_right"], bends["peak"])
    below = frame.filter(kind="curve").join(
        knees.select(*KEYS, "series", knee="exact"), on=[*KEYS, "series"]
    )
    below = below.filter(pl.col("size") < 0.9 * pl.col("knee"))
    assert (below["flops_per_s"] < 0.95 * below["peak"]).all()


def test_points_of_a_roofline_attain_what_tables_say(made: Path) -> None:
    """At the intensity of the table, below the roof of memory alone."""
    points = pl.read_parquet(made / "roofline-split.parquet").filter(kind="point")
    table = pl.read_parquet(made / "split.parquet").filter(shards=1)
    both = points.join(table, on=[*KEYS, "B", "shape"])
    assert both.height == points.height > 0
    assert same(both["flops_per_s"], both["attained_flops_per_s"])
    assert same(both["intensity"], both["memory_intensity"])


def test_contours_and_critical_sizes_are_the_thresholds(made: Path) -> None:
    """Critical sizes of a map take the cache into account."""
    known = pl.read_parquet(made / "grid-thresholds.parquet")
    cells = pl.read_parquet(made / "critical-grid.parquet").join(
        known, left_on=[*KEYS, "x", "y"], right_on=[*KEYS, "D", "F"]
    )
    assert cells["critical"].to_list() == cells["critical_right"].to_list()
    split = pl.read_parquet(made / "split-thresholds.parquet").filter(shards=1)
    shapes = (
        pl.read_parquet(made / "critical-map-grid.parquet")
        .filter(kind="shape")
        .cast({"D": pl.Int64, "F": pl.Int64})
    )
    both = shapes.join(split, on=[*KEYS, "D", "F"])
    assert both.height == shapes.height > 0
    assert same(both["level"], both["critical_exact"])


def test_bars_and_cells_show_the_resource_in_a_colour_of_its_own(made: Path) -> None:
    """Four bars per layer; maps show the table's bound; no two resources share a colour."""
    table = with_cache(pl.read_parquet(made / "split.parquet").drop("t_cache_s"))
    bars = pl.read_parquet(made / "time-split.parquet")
    index = [*KEYS, "B", "shards", "shape", "bound"]
    tall = table.select(*index, **RESOURCES).unpivot(
        list(RESOURCES), index=index, variable_name="resource", value_name="t_s"
    )
    both = bars.join(tall, on=[*KEYS, "B", "shards", "shape", "resource"])
    assert both.height == bars.height > 0
    assert set(bars["resource"]) == set(RESOURCES)
    assert both.filter((pl.col("seconds") - pl.col("t_s")).abs() > SAME * pl.col("t_s")).height == 0
    assert (both["bound"] == (both["bound_right"] == both["resource"])).all()
    cells = pl.read_parquet(made / "bounds-split.parquet")
    known = table.filter(shape="m-down").select(*KEYS, x="B", y="shards", known="bound")
    compared = cells.join(known, on=[*KEYS, "x", "y"])
    assert compared.height == cells.height > 0
    assert compared["bound"].to_list() == compared["known"].to_list()
    drawn: dict[str, Any] = json.loads((made / "resources.json").read_text())
    assert drawn["domains"]["time-split"] == drawn["domains"]["bounds-split"] == list(RESOURCES)
    assert len(set(drawn["colours"])) == len(drawn["colours"]) == len(RESOURCES) + 1
