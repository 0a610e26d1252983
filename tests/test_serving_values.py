"""Worked values of whole models come out of the tables, and kernels are operations.

The published values leave the latencies of hops out.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import polars as pl
import pytest
from comparison import same
from polars.testing import assert_frame_equal
from serving_tables import differences, sweep_of
from test_serving_worked import DEEPSEEK, FP8, INT8, LLAMA, MXFP4, ON_H100, ON_V5E, OWN
from test_serving_worked import row_of as exact_row_of

import rooflines
from rooflines.critical.thresholds import sweep_thresholds
from rooflines.fits.entries import shipped_calibrations
from rooflines.sweep.rows import KernelTable, StepTable


def rows_of(sweep):
    """The rows of a sweep."""
    config = {"model-sweeps": {"worked": sweep}, "chips": OWN}
    return StepTable(sweep_of(config)).frame().collect().to_dicts()


def row_of(sweep):
    """The only row of a sweep."""
    (row,) = rows_of(sweep)
    return row


def bounds_of(sweep, context, *batches):
    """The bounds of batches of one context."""
    return [row["bound"] for row in rows_of({**sweep, "grid": {"B": batches, "S": context}})]


def ms(row, *names, digits=4):
    """Times of a row in milliseconds."""
    return [f"{row[name] * 1e3:.{digits}f}" for name in names]


RESOURCES = ("t_math_s", "t_memory_s", "t_network_s")


def test_decode_of_llama_on_eight_h100():
    row = row_of(ON_H100)
    assert f"{8 * row['flops']:.5e}" == "1.02706e+13"
    assert 8 * row["weight_bytes"] == 139_003_428_864
    assert 8 * row["cache_bytes"] == 171_798_691_840
    assert f"{row['network_bytes']:.5e}" == "2.93601e+08"
    assert ms(row, *RESOURCES) == ["1.2981", "11.5971", "0.6524"]
    assert ms(row, "t_lower_s", digits=3) == ["11.597"]
    assert row["bound"] == "memory"
    assert f"{row['tokens_per_s_per_chip']:.1f}" == "689.8"
    assert f"{row['footprint_bytes'] / 1e9:.2f}" == "39.11"
    assert (row["fits"], row["max_B"]) == (True, 185)


def test_the_largest_batch_of_llama_within_15_ms():
    rows = rows_of({**ON_H100, "grid": {"B": [97, 98], "S": 8192}})
    assert [row["t_lower_s"] <= 0.015 for row in rows] == [True, False]


def test_the_last_batch_that_fits_is_the_largest_one():
    rows = rows_of({**ON_H100, "grid": {"B": [185, 186], "S": 8192}})
    assert [row["fits"] for row in rows] == [True, False]
    for name in ("usd_per_mtok", "usd_per_mtok_ops"):
        assert [row[name] is not None for row in rows] == [True, False]
    assert all(row["j_per_token"] for row in rows)


def test_decode_of_llama_on_sixteen_v5e():
    row = row_of({**ON_V5E, "splits": [{"tp": 16}], "cache_split": "batch"})
    assert f"{16 * row['flops']:.4e}" == "5.1353e+12"
    assert 16 * row["weight_bytes"] == 69_501_714_432
    assert 16 * row["cache_bytes"] == 42_949_672_960
    assert ms(row, *RESOURCES[:2]) == ["1.6292", "8.5815"]
    assert ms(row, "t_lower_s", digits=3) == ["8.581"]
    assert f"{row['tokens_per_s_per_chip']:.1f}" == "233.1"
    assert f"{row['footprint_bytes'] / 1e9:.2f}" == "7.09"
    assert row["max_B"] == 138
    for axes in (16, "4x4"):
        heads = row_of({**ON_V5E, "splits": [{"tp": axes}]})
        assert f"{heads['network_bytes']:.5e}" == "1.57286e+08"
        assert ms(heads, "t_network_s") == ["1.7476"]
        assert ms(heads, "t_memory_s", digits=2) == ["11.86"]
        assert f"{heads['footprint_bytes'] / 1e9:.2f}" == "9.78"
        assert heads["max_B"] == 69


@pytest.mark.parametrize(
    ("context", "critical"), [(128, 324), (1024, 963), (1400, 5669), (1476, 477_356)]
)
def test_critical_batches_of_llama(context, critical):
    assert bounds_of(ON_H100, context, critical - 1, critical) == ["memory", "compute"]


def test_no_batch_of_long_contexts_is_compute_bound():
    assert bounds_of(ON_H100, 1477, 10**9) == bounds_of(ON_H100, 8192, 10**9) == ["memory"]
    row = row_of({**ON_H100, "grid": {"B": 1, "S": 1}})
    assert f"{row['t_memory_s'] / row['t_math_s']:.1f}" == "295.2"


@pytest.mark.parametrize(("context", "critical"), [(128, 1572), (1024, 7122)])
def test_critical_batches_of_gpt_oss(context, critical):
    sweep = {"models": ["gpt-oss-120b"], "chips": ["h200"], "dtypes": [MXFP4]}
    assert bounds_of(sweep, context, critical - 1, critical) == ["memory", "compute"]
    assert bounds_of(sweep, 8192, 10**9) == ["memory"]


def test_prefill_of_llama():
    """8,192 tokens on eight H100: 152.9 ms of math, 83.5 ms of network, compute-bound."""
    row = row_of({**ON_H100, "phase": "prefill", "grid": {"B": 1, "S": 8192}})
    assert f"{8 * row['flops']:.5e}" == "1.20948e+15"
    assert ms(row, "t_math_s", "t_network_s", digits=1) == ["152.9", "83.5"]
    assert row["bound"] == "compute"


def test_decode_of_deepseek_on_128_chips():
    splits = [{"tp": 1, "dp": 128, "ep": 128}]
    row = row_of({**DEEPSEEK, "splits": splits, "grid": {"B": 128 * 128, "S": 4096}})
    assert ms(row, *RESOURCES, digits=3) == ["13.745", "11.857", "24.996"]
    assert f"{row['network_bytes']:.4e}" == "1.2498e+09"
    assert row["bound"] == "network"
    assert f"{row['tokens_per_s_per_chip']:.0f}" == "5121"


@pytest.mark.parametrize(
    "sweep",
    [
        {"phase": "prefill", "grid": {"B": 1, "S": 2**32}},
        {"phase": "prefill", "grid": {"B": 2**53, "S": 2**53}},
        {"grid": {"B": 1, "S": 2**53}},
        {"grid": {"B": 2**53, "S": 128}, "splits": [{"tp": 8, "dp": 2**30}]},
    ],
)
def test_the_largest_sizes_are_right(sweep):
    whole, large = {**ON_H100, **sweep}, 2**62
    config = {"model-sweeps": {"worked": {**whole, "thresholds": ["B"]}}, "chips": OWN}
    exact = exact_row_of(whole)
    assert not differences(row_of(whole), exact)
    (found,) = sweep_thresholds(sweep_of(config)).to_dicts()
    assert found["max_B_fit"] == (exact["max_B"] if exact["max_B"] <= large else None)


def test_prefill_of_deepseek_on_two_nodes():
    """Tokens go once to each node, and over both networks at once: 169 ms of math bind, not 272."""
    splits = [{"tp": 1, "dp": 16, "ep": 16}]
    sweep = {**DEEPSEEK, "chips": ["h200-sxm"], "dtypes": ["fp8"], "phase": "prefill"}
    sweep |= {"network": [["nvlink", "infiniband"]], "splits": splits}
    row = row_of({**sweep, "grid": {"B": 16, "S": 4096}})
    assert ms(row, "t_math_s", "t_lower_s", digits=1) == ["169.0", "169.0"]
    assert row["bound"] == "compute"
    once = 58 * 4096 * 7168 * 2  # elements there and back, sent to one more node or chip
    to_node = 1 - Fraction(math.comb(128, 8), math.comb(256, 8))
    to_chip = 1 - Fraction(math.comb(240, 8), math.comb(256, 8))
    assert row["network_bytes"] == float(once * (to_node + 14 * to_chip))
    assert abs(row["t_network_s"] * 5e10 / float(once * to_node) - 1) < 1e-12


def test_few_tokens_touch_their_experts_to_the_last_digit():
    moe = {"E": 10**6, "k": 1, "Fe": 1}
    model = {"name": "sparse", "layers": 1, "D": 1, "V": 1, "moe": moe}
    model["attention"] = {"N": 1, "K": 1, "H": 1}
    sweep = {"models": [model], "chips": ["h100"], "dtypes": ["fp8"]}
    config = {"model-sweeps": {"one": {**sweep, "grid": {"B": [1, 2], "S": 1}}}, "chips": OWN}
    experts = KernelTable(sweep_of(config)).frame().filter(pl.col("group") == "experts").collect()
    one, two = experts["weight_bytes"]
    assert abs(Fraction(one) / 3 - 1) < Fraction(1, 10**15)
    assert abs(Fraction(two) / 3 - 2 + Fraction(1, 10**6)) < Fraction(1, 10**15)


def test_kernels_have_estimates_where_their_dtype_has_a_calibration():
    calibration = {"fp8": {"math": 0.7, "memory": 0.8, "network": 0.6}}
    chips = {"fitted": {"base": "h100-sxm", "calibration": calibration}}
    sweep = {**LLAMA, "chips": ["fitted"], "dtypes": [FP8], "grid": {"B": 8, "S": 100}}
    checked = sweep_of({"model-sweeps": {"one": sweep}, "chips": chips})
    kernels = KernelTable(checked).frame().filter(pl.col("t_estimate_s").is_null()).collect()
    assert kernels["group"].to_list() == ["attention"]
    assert StepTable(checked).frame().collect()["t_estimate_s"].to_list() == [None]


def test_a_row_alone_is_that_of_the_whole_to_the_last_bit():
    sizes = {"B": 49, "S": {"from": 100, "to": 2000, "step": 100}}
    sweep = sweep_of({"model-sweeps": {"one": {**ON_H100, "grid": sizes}}, "chips": OWN})
    alone = [StepTable(sweep).frame(row, row + 1).collect() for row in range(sweep.rows)]
    assert_frame_equal(pl.concat(alone), StepTable(sweep).frame().collect(), check_exact=True)


# ---------------------------------------------------------------- kernels are operations

SHARDINGS = {"qkv": "column", "o": "contracting/all-reduce", "unembed": "column"}
SHARDINGS["down"] = SHARDINGS["o"]
SHAPES = {
    "qkv": {"D": 8192, "F": (64 + 2 * 8) * 128},
    "o": {"D": 64 * 128, "F": 8192},
    "down": {"D": 28672, "F": 8192},
    "unembed": {"D": 8192, "F": 128_256},
}
FITTED = {"math": 0.7, "memory": 0.8, "network": 0.6, "overhead_s": 4e-6}
CHIPS = {
    "hops": {
        "base": "h100-sxm",
        "networks.nvlink.hop_latency_s": 4e-6,
        "networks.nvlink.typical_hop_latency_s": 9e-6,
        "calibration": {"bf16": FITTED},
    },
    "torus": {"base": "tpu-v5e", "calibration": {"bf16": {"overhead_s": 4e-6}}},
}
EFFICIENCY = {"math": 0.9, "memory": 0.85, "network": 0.75}
SPLITS = [("hops", 2), ("hops", 8), ("torus", 4), ("torus", 16), ("torus", "4x4")]


@pytest.mark.parametrize(("chip", "dtype"), [("h100-sxm", "fp8"), ("b200", "bf16")])
@pytest.mark.parametrize("tp", [1, 8])
@pytest.mark.parametrize("group", SHAPES)
def test_estimates_of_matrices_are_those_of_matmuls(group, chip, dtype, tp):
    named = {"chips": [chip], "calibration": ["trtllm", "nccl"], "dtypes": [dtype]}
    batches = [1, 48, 100, 129, 5000]
    steps = {**LLAMA, **named, "splits": [{"tp": tp}], "grid": {"B": batches, "S": 100}}
    scheme = SHARDINGS[group] if tp > 1 else "none"
    matmuls: dict[str, Any] = {
        "operation": "matmul",
        **named,
        "dtypes": [dict.fromkeys(("x", "w", "out", "compute"), dtype)],
        "sharding": scheme,
        "shards": [tp],
        "grid": {"B": batches, **SHAPES[group]},
    }
    config = rooflines.load_config(
        {"sweeps": {"one": matmuls}, "model-sweeps": {"steps": steps}, "charts": []}
    )
    found = rooflines.model_layers(config, "steps").filter(pl.col("group") == group).collect()
    expected = rooflines.rows(config, "one").collect()
    assert found["B"].to_list() == expected["B"].to_list() == batches
    assert found["estimate_bound"].to_list() == expected["estimate_bound"].to_list()
    for name in ("t_estimate_s", "t_estimate_p10_s", "t_estimate_p90_s"):
        assert found[name].to_list() == pytest.approx(expected[name].to_list(), rel=1e-12), name


def test_kernels_that_are_no_matmuls_have_the_shares_and_the_overhead_of_the_fit():
    steps = {**LLAMA, "chips": ["h100-sxm"], "calibration": "trtllm", "dtypes": ["bf16"]}
    config = {"model-sweeps": {"one": {**steps, "grid": {"B": 1, "S": 8192}}}, "chips": {}}
    layers = KernelTable(sweep_of(config)).frame().filter(pl.col("group") == "attention")
    row = layers.collect().row(0, named=True)
    fit = shipped_calibrations().calibrations["h100-sxm/trtllm"]["bf16"]
    moved = row["cache_bytes"] + row["activation_bytes"]
    assert row["t_estimate_s"] == pytest.approx(fit.overhead_s + moved / 3.35e12 / fit.memory)
    assert row["estimate_bound"] == "memory"
    assert row["t_estimate_p10_s"] is None


def test_shipped_calibrations_beat_no_bound():
    sweep = rooflines.load_config().model_sweep("serving")
    estimated = StepTable(sweep).frame().filter(pl.col("t_estimate_s").is_not_null())
    rows = estimated.select("chip", "t_ops_s", "t_estimate_s").collect()
    assert rows["chip"].unique().sort().to_list() == ["b200", "h100-sxm", "h200-sxm"]
    assert (rows["t_ops_s"] <= rows["t_estimate_s"]).all()


@pytest.mark.parametrize("weights", ["bf16", "int8"])
@pytest.mark.parametrize(("chip", "tp"), SPLITS)
@pytest.mark.parametrize("group", SHAPES)
def test_kernels_of_matrices_are_matmuls(group, chip, tp, weights):
    batches, same_for_both = [1, 48, 5000], {"chips": [chip], "efficiency": EFFICIENCY}
    steps: dict[str, Any] = {
        **LLAMA,
        **same_for_both,
        "splits": [{"tp": tp}],
        "dtypes": [{**INT8, "weights": weights}],
        "grid": {"B": batches, "S": 100},
    }
    matmuls: dict[str, Any] = {
        "operation": "matmul",
        **same_for_both,
        "sharding": SHARDINGS[group],
        "shards": [tp],
        "dtypes": [{"x": "bf16", "w": weights, "out": "bf16", "compute": "bf16"}],
        "grid": {"B": batches, **SHAPES[group]},
    }
    kernels = KernelTable(sweep_of({"model-sweeps": {"one": steps}, "chips": CHIPS})).frame()
    found = kernels.filter(pl.col("group") == group).collect()
    config = {"sweeps": {"one": matmuls}, "chips": CHIPS, "charts": []}
    expected = rooflines.rows(rooflines.load_config(config), "one").collect()
    assert found["B"].to_list() == expected["B"].to_list() == batches
    found = found.with_columns(
        memory_bytes=pl.col("weight_bytes") + pl.col("activation_bytes"),
        t_memory_s=pl.col("t_memory_s") + pl.col("t_activation_s"),
    )
    for name in ("flops", "memory_bytes", "network_bytes", *RESOURCES, "t_estimate_s"):
        for one, other in zip(found[name], expected[name], strict=True):
            assert same(one, Fraction(other)), name
    assert found["t_ops_s"].to_list() == pytest.approx(expected["t_lower_s"].to_list(), rel=1e-12)
    assert found["bound"].to_list() == expected["bound"].to_list()
