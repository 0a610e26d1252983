"""Kernels of steps are operations, the largest sizes are right, and estimates beat no bound."""

from fractions import Fraction
from typing import Any

import polars as pl
import pytest
import serving_oracle
from comparison import same
from plain_files import plain_file
from serving_tables import differences, expected_rows, sweep_of

import rooflines
from rooflines.critical.thresholds import sweep_thresholds
from rooflines.sweep.rows import KernelTable, StepTable

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
    assert not differences(found, exact)
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
    truth = list(serving_oracle.model_rows(sweep, CATALOGUE, {"mine": chip}, formats))
    found = StepTable(sweep_of(config)).frame().collect().to_dicts()
    assert len(found) == len(truth) == 4
    for row, exact in zip(found, truth, strict=True):
        assert exact.values is not None
        assert differences(row, exact.values) == []


def test_shipped_calibrations_beat_no_bound():
    sweep = rooflines.load_config().model_sweep("serving")
    estimated = StepTable(sweep).frame().filter(pl.col("t_estimate_s").is_not_null())
    rows = estimated.select("chip", "t_ops_s", "t_estimate_s").collect()
    assert rows["chip"].unique().sort().to_list() == ["b200", "h100-sxm", "h200-sxm"]
    assert (rows["t_ops_s"] <= rows["t_estimate_s"]).all()


# ---------------------------------------------------------------- kernels are operations

SHAPES = {
    "qkv": ("column", {"D": 8192, "F": (64 + 2 * 8) * 128}),
    "o": ("contracting/all-reduce", {"D": 64 * 128, "F": 8192}),
    "unembed": ("column", {"D": 8192, "F": 128_256}),
}
FITTED = {"math": 0.7, "memory": 0.8, "network": 0.6, "overhead_s": 4e-6}
CHIPS = {
    "hops": {
        "base": "h100-sxm",
        "networks.nvlink.hop_latency_s": 4e-6,
        "networks.nvlink.typical_hop_latency_s": 9e-6,
        "calibration": {"bf16": FITTED},
        "plausible": ["networks.nvlink.hop_latency_s", "networks.nvlink.typical_hop_latency_s"],
    },
    "torus": {"base": "tpu-v5e", "calibration": {"bf16": {"overhead_s": 4e-6}}},
}
PLACES = [("hops", 8, None), ("torus", 4, None), ("h100-sxm", 8, ["trtllm", "nccl"])]
EQUAL = ("flops", "memory_bytes", "network_bytes", "t_math_s", "t_memory_s", "t_network_s")
ESTIMATES = ("t_estimate_s", "t_estimate_p10_s", "t_estimate_p90_s")


@pytest.mark.parametrize("weights", ["bf16", "int8"])
@pytest.mark.parametrize(("chip", "tp", "software"), PLACES)
@pytest.mark.parametrize("group", SHAPES)
def test_kernels_of_matrices_are_matmuls(group, chip, tp, software, weights):
    """Works, times, estimates and bounds of a group are those of a sweep of its matmul."""
    scheme, sizes = SHAPES[group]
    both = {"chips": [chip], **({"calibration": software} if software else {})}
    dtypes = {"weights": weights, "cache": "int8", "activations": "bf16", "compute": "bf16"}
    batches = [1, 48, 129, 5000]
    steps = {**LLAMA, **both, "splits": [{"tp": tp}], "dtypes": [dtypes]}
    matmul: dict[str, Any] = {
        "operation": "matmul",
        **both,
        "sharding": scheme,
        "shards": [tp],
        "dtypes": [{"x": "bf16", "w": weights, "out": "bf16", "compute": "bf16"}],
        "grid": {"B": batches, **sizes},
    }
    config = rooflines.load_config(
        {
            "sweeps": {"one": matmul},
            "model-sweeps": {"steps": {**steps, "grid": {"B": batches, "S": 100}}},
            "chips": CHIPS,
            "charts": [],
        }
    )
    found = (
        KernelTable(config.model_sweep("steps"))
        .frame()
        .filter(pl.col("group") == group)
        .with_columns(
            memory_bytes=pl.col("weight_bytes") + pl.col("activation_bytes"),
            t_memory_s=pl.col("t_memory_s") + pl.col("t_activation_s"),
        )
        .collect()
    )
    expected = rooflines.rows(config, "one").collect()
    assert found["B"].to_list() == expected["B"].to_list() == batches
    for name in (*EQUAL, *ESTIMATES):
        for one, other in zip(found[name], expected[name], strict=True):
            assert same(one, None if other is None else Fraction(other)), name
    assert found["bound"].to_list() == expected["bound"].to_list()
    assert found["estimate_bound"].to_list() == expected["estimate_bound"].to_list()
