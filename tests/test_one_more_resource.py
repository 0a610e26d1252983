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
def made(tmp_path_factory):
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


def same(one, other):
    """Whether two columns are equal within rounding."""
    return bool(((one - other).abs() <= SAME * other.abs()).all())


def with_cache(table):
    """The table with the time of the cache, computed independently."""
    return table.with_columns(t_cache_s=3 * pl.col("t_memory_s"))


def test_tables_and_thresholds_have_the_resource(made):
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


def test_charts_show_what_tables_say(made):
    tables = {
        "attained": "grid",
        "critical": "grid-thresholds",
        "time": "split",
        "who-binds": "split",
    }
    for kind, table in tables.items():
        (path,) = made.glob(f"{kind}-*.parquet")
        rows, known = pl.read_parquet(path), pl.read_parquet(made / f"{table}.parquet")
        shared = [name for name in rows.columns if name in known.columns]
        assert {*KEYS, "B"} & {*shared}
        assert rows.height > 0
        assert rows.join(known, on=shared, how="anti", nulls_equal=True).is_empty(), kind
    times = pl.read_parquet(made / "time-split.parquet")
    assert same(times["t_cache_s"], 3 * times["t_memory_s"])
    assert set(times["bound"].cast(pl.String)) <= set(RESOURCES)


def test_a_resource_has_a_colour_of_its_own(made):
    drawn: dict[str, Any] = json.loads((made / "resources.json").read_text())
    assert drawn["domains"]["time-split"] == drawn["domains"]["who-binds-split"] == list(RESOURCES)
    assert len(set(drawn["colours"])) == len(drawn["colours"]) == len(RESOURCES) + 1


@pytest.mark.parametrize("name", ["steps", "layers", "requests"])
def test_models_have_the_resource(made, name):
    table = pl.read_parquet(made / f"{name}.parquet")
    assert same(table["traffic_bytes"], 3 * table["memory_bytes"])
    assert same(table["t_cache_s"], 3 * table["t_memory_s"])
    assert "cache" in set(table["bound"])
    assert (table["t_ops_s"] >= table["t_cache_s"] * (1 - SAME)).all()
    upper = table.select(pl.sum_horizontal(*RESOURCES.values(), "t_activation_s")).to_series()
    assert (table["t_upper_s"] >= upper * (1 - SAME)).all()
    if name != "layers":
        assert (table["t_lower_s"] >= table["t_cache_s"] * (1 - SAME)).all()
    if name == "steps":
        largest = table.select(pl.max_horizontal(*RESOURCES.values())).to_series()
        assert same(table["t_lower_s"], largest)


def test_thresholds_of_models_have_the_resource(made):
    table = pl.read_parquet(made / "step-thresholds.parquet")
    assert table.height > 0
    assert "cache" in set(table["limit"])
    assert "memory" not in set(table["limit"])
