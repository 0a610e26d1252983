"""`columns: core` is the name of a list of metrics, of operations and of whole models."""

from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from small_config import matmul

import rooflines
from rooflines.charts.chart_choice import absent
from rooflines.charts.registry import kinds
from rooflines.run.jobs import write_part
from rooflines.run.plan import plan

TIMES = ["t_math_s", "t_memory_s", "t_network_s"]
CORE = ["flops", "memory_bytes", "network_bytes", *TIMES, "t_lower_s", "bound", "fits"]
KERNEL_CORE = [
    *("flops", "weight_bytes", "kv_cache_bytes", "activation_bytes", "memory_bytes"),
    *("network_bytes", *TIMES, "t_activation_s", "t_lower_s", "t_serial_s", "bound"),
]

OPERATION = matmul(
    grid={"B": [1, 3, 100], "D": [1000, 4096], "F": [1, 28672]},
    dtypes=["bf16", "w4a16"],
    chips=["h100-sxm", "tpu-v5e"],
    sharding="contracting/all-reduce",
    shards=[1, 8],
    calibration="trtllm",
)
WHOLE = {
    "models": "llama-3.1-70b",
    "grid": {"B": [1, 300], "S": [128, 1000]},
    "dtypes": "bf16",
    "chips": "h100-sxm",
    "splits": {"tp": 8},
}


def config_of(columns, **more):
    content: dict[str, Any] = {
        "sweeps": {"mine": {**OPERATION, "columns": columns, **more}},
        "model-sweeps": {"whole": {**WHOLE, "columns": columns}},
        "charts": [],
    }
    return rooflines.load_config(content)


def test_core_tables_store_keys_sizes_and_the_listed_metrics(tmp_path):
    core, listed, whole = (config_of(columns) for columns in ("core", CORE, "all"))
    for part in plan(core).parts:
        write_part(part.spec, tmp_path / part.path)
    every = rooflines.rows(whole, "mine").collect()
    keys = every.columns[: every.columns.index("flops")]
    read = rooflines.scan(tmp_path, "mine").collect()
    assert read.columns == [*keys, *CORE]
    assert_frame_equal(read, every.select(*keys, *CORE))
    assert_frame_equal(rooflines.rows(listed, "mine").collect(), read)
    steps = rooflines.rows(core, "whole").collect()
    assert steps.columns[-len(KERNEL_CORE) - 1 :] == [*KERNEL_CORE[:6], "fits", *KERNEL_CORE[6:]]
    assert_frame_equal(
        pl.concat([rooflines.scan(tmp_path, "whole").collect()]),
        rooflines.rows(whole, "whole").select(steps.columns).collect(),
        categorical_as_str=True,
    )
    kernels = rooflines.scan(tmp_path, "whole", layers=True).collect_schema().names()
    without_lower = [name for name in KERNEL_CORE if name != "t_lower_s"]
    assert kernels[-len(without_lower) :] == without_lower


def test_a_table_is_read_from_its_folder_or_one_file(tmp_path):
    config = config_of("core", rows_per_part=20)
    paths = [tmp_path / part.path for part in plan(config).parts_in("tables")]
    for part, path in zip(plan(config).parts_in("tables"), paths, strict=True):
        write_part(part.spec, path)
    every = rooflines.scan(tmp_path, "mine").collect()
    assert len(paths) > 1
    assert_frame_equal(rooflines.scan(tmp_path / "tables" / "mine").collect(), every)
    each = [rooflines.scan(path).collect() for path in paths]
    assert_frame_equal(pl.concat(each), every)
    with pytest.raises(rooflines.RooflinesError, match="name one of its sweeps"):
        rooflines.scan(tmp_path)


def test_charts_name_the_columns_that_core_lacks():
    sweep = config_of("core").sweep("mine")
    assert absent(kinds()["roofline"], sweep) == ["memory_intensity", "attained_flops_per_s"]
    assert absent(kinds()["critical"], sweep) == []


@pytest.mark.parametrize("columns", [["mfu"], ["t_serial_s", "fits"]])
def test_a_table_of_training_stores_the_listed_metrics_alone(columns):
    trains = {**WHOLE, "phase": "train", "splits": {"dp": 2}, "grid": {"B": 2, "S": 128}}
    config = rooflines.load_config({"model-sweeps": {"mine": {**trains, "columns": columns}}})
    every = rooflines.load_config({"model-sweeps": {"mine": trains}})
    stored, whole = (rooflines.rows(each, "mine").collect() for each in (config, every))
    keys = whole.columns[: whole.columns.index("S") + 1]
    assert {*stored.columns} == {*keys, *columns}
    assert_frame_equal(stored, whole.select(stored.columns))
