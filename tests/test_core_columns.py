"""Tables of core columns: the others follow from them, to the last bit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import rooflines
from rooflines.charts.kinds import bounds, roofline
from rooflines.charts.needs import absent
from rooflines.results.tables import metadata_of
from rooflines.run.jobs import write_part
from rooflines.run.plan import plan

if TYPE_CHECKING:
    from pathlib import Path

OF_SIZES = {"footprint_bytes", "attained_flops_per_s", "utilization"}
DERIVED = {*OF_SIZES, "t_upper_s", "memory_intensity", "network_intensity"}

SPLIT = {
    "operation": "matmul",
    "grid": {"B": [1, 3, 100, 977], "D": [1000, 4096], "F": [1, 7, 28672]},
    "dtypes": ["bf16", "fp8-out-bf16", "w4a16"],
    "chips": ["h100-sxm", "slow", "h200-sxm"],
    "sharding": ["none", "contracting/all-reduce", "column/gather-x"],
    "shards": [1, 2, 8],
    "calibration": ["trtllm", "nccl"],
    "rows_per_part": 300,
}

SWEEPS: dict[str, dict[str, Any]] = {
    "split": SPLIT,
    "tiled": {**SPLIT, "tile": {"B": 128, "D": 64, "F": 128}, "chips": ["h100-sxm", "slow"]},
    "reached": {**SPLIT, "efficiency": {"math": 0.7, "memory": 0.9}, "rows_per_part": 10_000},
    "one-chip": {
        **SPLIT,
        "grid": {"B": {"from": 1, "to": 100, "step": 1}, "D": [1000, 4096], "F": 28672},
        "dtypes": "bf16",
        "chips": ["slow"],
    },
    "two-networks": {
        **SPLIT,
        "chips": ["h100-sxm"],
        "network": ["nvlink", "infiniband"],
        "shards": [1, 8, 16],
    },
    "dot": {
        "operation": "dot",
        "grid": {"D": {"from": 1, "to": 5000, "step": 7}},
        "dtypes": "bf16-compute-fp32",
        "chips": ["tpu-v5e", "h100-sxm"],
    },
}


def config_of(sweep: dict[str, Any], columns: object, **more: object) -> rooflines.Config:
    """A config with this sweep, and a chip that does not reach its peak."""
    slow = {"base": "h100-sxm", "efficiency": {"math": 0.61}, "source": "a guess"}
    sweeps = {"mine": {**sweep, "columns": columns, **more}}
    return rooflines.load_config({"sweeps": sweeps, "chips": {"slow": slow}, "charts": []})


def written(config: rooflines.Config, results: Path) -> list[Path]:
    """The parts of a config, written."""
    paths = [results / part.path for part in plan(config).parts]
    for part, path in zip(plan(config).parts, paths, strict=True):
        write_part(part.spec, path)
    return paths


@pytest.mark.parametrize("name", SWEEPS)
def test_a_table_of_core_columns_is_the_whole_table(name: str, tmp_path: Path) -> None:
    """Every value is equal to the last bit; the files lack what follows from others."""
    core, whole = (config_of(SWEEPS[name], columns) for columns in ("core", "all"))
    paths = written(core, tmp_path)
    expected = rooflines.rows(whole, "mine").collect()
    assert expected.height > 500
    left_out = DERIVED - (OF_SIZES if "tile" in SWEEPS[name] else set())
    stored = [column for column in expected.columns if column not in left_out]
    assert list(pl.read_parquet_schema(paths[0])) == stored
    assert_frame_equal(rooflines.scan(tmp_path, "mine").collect(), expected, check_exact=True)
    assert_frame_equal(rooflines.rows(core, "mine").collect(), expected, check_exact=True)


@pytest.mark.parametrize("name", SWEEPS)
def test_the_metadata_has_the_formulas_as_sql(name: str, tmp_path: Path) -> None:
    """DuckDB computes from it the values of the whole table, to the last bit."""
    core, whole = (config_of(SWEEPS[name], columns) for columns in ("core", "all"))
    expected = rooflines.rows(whole, "mine").collect()
    start = 0
    for path in written(core, tmp_path):
        columns = metadata_of(path)["columns"]
        derived = {column["name"]: column["sql"] for column in columns if "sql" in column}
        query = ", ".join(f"{sql} AS {name}" for name, sql in derived.items())
        by_duckdb = duckdb.read_parquet(str(path)).project(query).fetchall()
        here = expected.select(*derived).slice(start, len(by_duckdb))
        assert by_duckdb == here.rows()
        start += here.height
    assert start == expected.height


def test_core_columns_in_float32_follow_from_rounded_values(tmp_path: Path) -> None:
    """They are those of the whole table to a few roundings of 2^-24."""
    core, whole = (config_of(SPLIT, columns, floats="float32") for columns in ("core", "all"))
    written(core, tmp_path)
    expected = rooflines.rows(whole, "mine").collect()
    assert_frame_equal(
        rooflines.scan(tmp_path, "mine").collect(), expected, rel_tol=2**-21, abs_tol=0
    )


def test_a_table_is_read_from_its_folder_or_one_file(tmp_path: Path) -> None:
    """The folder has all rows, in order; a file has its own."""
    paths = written(config_of(SPLIT, "core"), tmp_path)
    every = rooflines.scan(tmp_path, "mine").collect()
    assert len(paths) > 1
    assert_frame_equal(rooflines.scan(tmp_path / "tables" / "mine").collect(), every)
    each = [rooflines.scan(path).collect() for path in paths]
    assert_frame_equal(pl.concat(each), every)
    with pytest.raises(rooflines.RooflinesError, match="name one of its sweeps"):
        rooflines.scan(tmp_path)


def test_every_chart_can_be_drawn_from_core_columns() -> None:
    """No chart reads a column that is missing."""
    sweep = config_of(SPLIT, "core").sweep("mine")
    few = config_of(SPLIT, ["bound"]).sweep("mine")
    assert absent(bounds.CHART, few) == ["utilization"]
    assert absent(roofline.CHART, few) == ["memory_intensity", "attained_flops_per_s"]
    assert absent(bounds.CHART, sweep) == absent(roofline.CHART, sweep) == []


def test_a_slip_in_the_name_is_reported() -> None:
    """The message has the nearest choice."""
    with pytest.raises(rooflines.RooflinesError, match="close to it: core"):
        config_of(SPLIT, "cor")
