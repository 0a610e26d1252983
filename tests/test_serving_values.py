"""The largest sizes are right, steps of every model are exact, and estimates beat no bound."""

from typing import Any

import pytest
from comparison import wrong_columns
from oracle import step_table
from plain_files import plain_file
from serving_tables import expected_rows, sweep_of

import rooflines
from rooflines.critical.thresholds import sweep_thresholds
from rooflines.sweep.rows import StepTable

LLAMA: dict[str, Any] = {"models": ["llama-3.1-70b"], "dtypes": ["bf16"], "splits": [{"tp": 8}]}


@pytest.mark.parametrize(
    "sizes",
    [
        {"phase": ["prefill"], "grid": {"B": [1], "S": [2**32]}},
        {"phase": ["prefill"], "grid": {"B": [2**53], "S": [2**53]}},
        {"phase": ["decode"], "grid": {"B": [1], "S": [2**53]}},
        {
            "phase": ["decode"],
            "grid": {"B": [2**53], "S": [128]},
            "splits": [{"tp": 8, "dp": 2**30}],
        },
    ],
)
def test_the_largest_sizes_are_right(sizes):
    dense = {"name": "dense", "layers": 80, "D": 8192, "V": 128256, "mlp": {"F": 28672}}
    model = {**dense, "attention": {"N": 64, "K": 8, "H": 128}}
    sweep = {**LLAMA, "models": [model], "chips": ["mine"], **sizes, "thresholds": ["B"]}
    chip = {
        "units": {"matrix": {"bf16": {"flops_per_s": 9.89e14}}},
        "memory": {"hbm": {"bytes_per_s": 3.35e12, "capacity_bytes": 8e10}},
        "networks": {"a": {"bytes_per_s": 4.5e11, "topology": "switch", "domain": "unlimited"}},
    }
    config = {"model-sweeps": {"large": sweep}, "chips": {"mine": chip}}
    (exact,) = (row.values for row in expected_rows(config))
    assert exact is not None
    (found,) = StepTable(sweep_of(config)).frame().collect().to_dicts()
    assert not wrong_columns(found, exact)
    (solved,) = sweep_thresholds(sweep_of(config)).to_dicts()
    assert solved["max_B_fit"] == (exact["max_B"] if exact["max_B"] <= 2**62 else None)


CATALOGUE = plain_file("models.yaml")["models"]


@pytest.mark.parametrize("name", CATALOGUE)
def test_steps_of_every_model_of_the_catalogue_are_the_exact_ones(name):
    """Decode and prefill on chips with room for all of it: works, times, footprints."""
    chip = {
        "units": {"matrix": {"bf16": {"flops_per_s": 9.89e14}}},
        "memory": {"hbm": {"bytes_per_s": 3.35e12, "capacity_bytes": 1e13}},
    }
    sweep: dict[str, Any] = {"models": [name], "phase": ["decode", "prefill"], "chips": ["mine"]}
    sweep |= {"dtypes": ["bf16"], "splits": [{"tp": 1}], "grid": {"B": [3], "S": [1, 9000]}}
    config = {"model-sweeps": {"one": sweep}, "chips": {"mine": chip}}
    formats = plain_file("dtypes.yaml")["formats"]
    truth = list(step_table.model_rows(sweep, CATALOGUE, {"mine": chip}, formats))
    found = StepTable(sweep_of(config)).frame().collect().to_dicts()
    assert len(found) == len(truth) == 4
    for row, exact in zip(found, truth, strict=True):
        assert exact.values is not None
        assert wrong_columns(row, exact.values) == []


def test_shipped_calibrations_beat_no_bound(default_results):
    every = rooflines.scan(default_results, "serving")
    rows = every.select("chip", "t_ops_s", "t_estimate_s").drop_nulls("t_estimate_s").collect()
    assert set(rows["chip"]) == {"b200", "h100-sxm", "h200-sxm"}
    assert (rows["t_ops_s"] <= rows["t_estimate_s"]).all()
