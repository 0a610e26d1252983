"""Worked values of whole models, published and by hand, come out of the oracle.

The published ones leave the latencies of hops out.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
import serving_limits as limits
import serving_oracle
from plain_files import plain_file
from serving_kernels import Step
from serving_values import times

MODELS, CHIPS, DTYPES = (plain_file(f"{name}.yaml") for name in ("models", "chips", "dtypes"))
FORMATS = DTYPES["formats"]
OWN: dict[str, Any] = {
    "h100": {"base": "h100-sxm", "networks.nvlink.hop_latency_s": 0},
    "h200": {"base": "h200-sxm", "networks.nvlink.hop_latency_s": 0},
    "v5e": {"base": "tpu-v5e", "networks.ici.hop_latency_s": 0},
    "flat": {
        "base": "h100-sxm",
        "networks.flat": {
            "bytes_per_s": 5e10,
            "topology": "switch",
            "links": 1,
            "domain": "unlimited",
        },
    },
    "slow-tiny": {
        "base": "tiny",
        "networks.a.hop_latency_s": 2,
        "networks.a.typical_hop_latency_s": 3,
    },
    "tiny": {
        "units": {"matrix": {"fp8": {"flops_per_s": 100}}},
        "memory": {"hbm": {"bytes_per_s": 10, "capacity_bytes": 1000}},
        "networks": {"a": {"bytes_per_s": 5, "topology": "switch", "links": 1, "domain": 4}},
        "calibration": {"fp8": {"math": 0.5, "memory": 0.8, "network": 0.5, "overhead_s": 0.1}},
        "power": {"watts": 3},
        "prices": [{"usd_per_hour": 36, "provider": "Nobody", "date": "2026-01-01"}],
    },
}
ALL_CHIPS = {**CHIPS["chips"], **OWN}

LLAMA = {"models": ["meta-llama/Llama-3.1-70B"], "dtypes": ["bf16"], "splits": [{"tp": 8}]}
ON_H100 = {**LLAMA, "chips": ["h100"], "grid": {"B": 64, "S": 8192}}
INT8 = {
    "name": "w8-kv8",
    "weights": "int8",
    "cache": "int8",
    "activations": "bf16",
    "compute": "bf16",
}
ON_V5E = {**LLAMA, "chips": ["v5e"], "dtypes": [INT8], "grid": {"B": 32, "S": 8192}}
REQUIRED = ("weights", "cache", "activations", "compute")
MXFP4 = {**dict.fromkeys(REQUIRED, "bf16"), "experts": "mxfp4"}
FP8 = {**dict.fromkeys(REQUIRED, "fp8"), "combine": "bf16", "attention": "bf16"}

DEEPSEEK = {"models": ["deepseek-v3"], "chips": ["flat"], "network": "flat", "dtypes": [FP8]}


def case_of(sweep):
    """The first case of a sweep."""
    _, case, reasons = next(serving_oracle.cases(sweep, MODELS["models"], ALL_CHIPS, FORMATS))
    assert case is not None, reasons
    return case


def row_of(sweep):
    """The values of a sweep's only row."""
    (row,) = serving_oracle.model_rows(sweep, MODELS["models"], ALL_CHIPS, FORMATS)
    assert row.values is not None, row.reasons
    return row.values


def ms(seconds, digits=3):
    """A time in milliseconds."""
    return f"{float(seconds) * 1e3:.{digits}f}"


# ---------------------------------------------------------------- worked values


def test_decode_of_llama_on_eight_h100():
    row = row_of(ON_H100)
    assert f"{float(8 * row['flops']):.5e}" == "1.02706e+13"
    assert 8 * row["weight_bytes"] == 139_003_428_864
    assert 8 * row["cache_bytes"] == 171_798_691_840
    assert f"{float(row['network_bytes']):.5e}" == "2.93601e+08"
    found = [ms(row[name], 4) for name in ("t_math_s", "t_memory_s", "t_network_s")]
    assert found == ["1.2981", "11.5971", "0.6524"]
    assert ms(row["t_lower_s"]) == "11.597"
    assert f"{float(row['tokens_per_s_per_chip']):.1f}" == "689.8"
    assert f"{float(row['footprint_bytes']) / 1e9:.2f}" == "39.11"
    assert row["max_B"] == limits.largest_batch_that_fits(case_of(ON_H100), 8192) == 185
    assert limits.largest_batch_within(case_of(ON_H100), 8192, Fraction(15, 1000)) == 97


def test_decode_of_llama_on_sixteen_v5e():
    split = {**ON_V5E, "splits": [{"tp": 16}], "cache_split": "batch"}
    row, case = row_of(split), case_of(split)
    assert f"{float(16 * row['flops']):.4e}" == "5.1353e+12"
    assert 16 * row["weight_bytes"] == 69_501_714_432
    assert 16 * row["cache_bytes"] == 42_949_672_960
    assert [ms(row["t_math_s"], 4), ms(row["t_memory_s"], 4)] == ["1.6292", "8.5815"]
    assert ms(row["t_lower_s"]) == "8.581"
    assert f"{float(row['tokens_per_s_per_chip']):.1f}" == "233.1"
    assert f"{float(row['footprint_bytes']) / 1e9:.2f}" == "7.09"
    assert row["max_B"] == limits.largest_batch_that_fits(case, 8192) == 138
    for axes in (16, "4x4"):
        heads = row_of({**ON_V5E, "splits": [{"tp": axes}]})
        assert f"{float(heads['network_bytes']):.5e}" == "1.57286e+08"
        assert ms(heads["t_network_s"], 4) == "1.7476"
    exchanged = 80 * 2 * Fraction(16, 4) * 32 * 64 * 128 * 2 / 16  # N / 4 of a share on a ring
    assert row["network_bytes"] - heads["network_bytes"] == exchanged


def test_heads_keep_every_cache_twice_on_sixteen_v5e():
    """Eight key-value heads on 16 chips: 11.86 ms of memory, 9.78 GB, 69 sequences."""
    row = row_of({**ON_V5E, "splits": [{"tp": "4x4"}]})
    assert ms(row["t_memory_s"], 2) == "11.86"
    assert f"{float(row['footprint_bytes']) / 1e9:.2f}" == "9.78"
    assert row["max_B"] == 69


def test_critical_batches_of_llama():
    case = case_of(ON_H100)
    one = times(case, Step(1, 1, 1))
    assert f"{float(one['t_memory_s'] / one['t_math_s']):.1f}" == "295.2"
    contexts = (128, 1024, 1400, 1476, 1477, 8192)
    found = [limits.critical_batch(case, context) for context in contexts]
    assert found == [324, 963, 5669, 477_356, None, None]
    assert limits.context_ceiling(case) == 1476
    exact = 2 * 69_501_714_432 / case.peaks["compute"]
    exact /= 2 * 163_840 / case.memory_rate - 2_621_440 / case.peaks["compute"]
    assert f"{float(exact):.1f}" == "1476.9"


@pytest.mark.parametrize("routing", ["uniform", "all"])
def test_critical_batches_of_gpt_oss(routing):
    """One H200, experts in MXFP4: 1,572 at 128 tokens, 7,122 at 1,024, never at 8,192.

    So many tokens touch all experts; on eight chips the all-reduces never end.
    """
    sweep = {"models": ["gpt-oss-120b"], "chips": ["h200"], "dtypes": [MXFP4], "routing": routing}
    case = case_of({**sweep, "splits": [{"tp": 1}]})
    found = [limits.critical_batch(case, context) for context in (128, 1024, 8192)]
    assert found == [1572, 7122, None]
    split = case_of({**sweep, "splits": [{"tp": 8}]})
    assert limits.critical_batch(split, 128) is None


def test_prefill_of_llama():
    """8,192 tokens on eight H100: 152.9 ms of math, 83.5 ms of network, compute-bound."""
    row = row_of({**ON_H100, "phase": "prefill", "grid": {"B": 1, "S": 8192}})
    assert f"{float(8 * row['flops']):.5e}" == "1.20948e+15"
    assert [ms(row["t_math_s"], 1), ms(row["t_network_s"], 1)] == ["152.9", "83.5"]
    assert row["bound"] == "compute"


def test_decode_of_deepseek_on_128_chips():
    split = [{"tp": 1, "dp": 128, "ep": 128}]
    sweep = {**DEEPSEEK, "splits": split}
    row = row_of({**sweep, "grid": {"B": 128 * 128, "S": 4096}})
    found = [ms(row[name]) for name in ("t_memory_s", "t_math_s", "t_network_s")]
    assert found == ["11.857", "13.745", "24.996"]
    assert f"{float(row['network_bytes']):.4e}" == "1.2498e+09"
    assert row["bound"] == "network"
    assert f"{float(row['tokens_per_s_per_chip']):.0f}" == "5121"
    assert limits.context_ceiling(case_of({**sweep, "splits": [{"tp": 1}]})) == limits.ENDLESS


# ---------------------------------------------------------------- by hand

TINY: dict[str, Any] = {
    "models": [
        {
            "name": "tiny",
            "layers": 1,
            "D": 4,
            "V": 8,
            "attention": {"N": 2, "K": 2, "H": 2},
            "moe": {"E": 4, "k": 2, "Fe": 2, "shared": 1},
        }
    ],
    "chips": ["tiny"],
    "dtypes": ["fp8"],
    "splits": [{"tp": 2, "dp": 2, "ep": 4}],
    "grid": {"B": 4, "S": 3},
}


def groups_of(sweep):
    """FLOP, bytes of weights, cache and activations, and bytes sent, of each group."""
    names = ("flops", "weight_bytes", "cache_bytes", "activation_bytes", "network_bytes")
    rows = serving_oracle.layer_rows(sweep, {}, ALL_CHIPS, FORMATS)
    return {row["group"]: tuple(row[name] for name in names) for row in rows}


def test_a_step_worked_out_by_hand():
    """Two replicas of two chips, four experts on four chips, one byte an element; every group.

    A token of four elements uses two of the four experts: each other chip needs it by 1/2. Of four
    tokens a chip sends one, to 3/2 others, and gets as much back.
    """
    assert groups_of(TINY) == {
        "embed": (0, 0, 0, 8, 0),
        "qkv": (96, 24, 0, 8 + 12, 0),
        "attention": (48, 0, 24, 4 + 4, 0),
        "o": (32, 8, 0, 4 + 8, 8),
        "router": (32, 8, 0, 8, 0),
        "experts": (96, Fraction(15, 4) * 24 / 4, 0, 8 + 8, 6 + 6 + 4),
        "shared": (48, 12, 0, 8 + 8, 8),
        "unembed": (64, 16, 0, 8 + 8, 0),
    }
    row = row_of(TINY)
    assert [float(row[f"t_{name}_s"]) for name in ("math", "memory", "network")] == [
        4.16,
        11.45,
        6.4,
    ]
    assert [float(row[f"t_{name}_s"]) for name in ("lower", "ops", "upper", "estimate")] == [
        11.45,
        21.85,
        4.16 + 11.45 + 6.4 + 10.4,
        30.4,
    ]
    assert (row["weights_footprint_bytes"], row["cache_footprint_bytes"]) == (90 + 24, 24)
    assert (row["fits"], row["max_B"]) == (True, 2 * 73)
    assert row["tokens_per_s_ops"] == 4 / Fraction("21.85")
    assert row["j_per_token"] == 4 * 3 * Fraction("11.45") / 4
    assert row["usd_per_mtok"] == Fraction(4 * 36, 3600) * Fraction("11.45") / 4 * 10**6
    assert (row["mfu"], row["mbu"]) == (Fraction("4.16") / Fraction("11.45"), 1)


LATENT: dict[str, Any] = {
    **TINY,
    "models": [
        {
            "name": "latent",
            "layers": 1,
            "D": 4,
            "V": 8,
            "tied": True,
            "attention": {
                "kind": "mla",
                "N": 2,
                "q_rank": 3,
                "kv_rank": 2,
                "nope": 1,
                "rope": 1,
                "v": 3,
            },
            "mlp": {"F": 5},
        }
    ],
    "dtypes": [{**dict.fromkeys(REQUIRED, "fp8"), "head": "bf16"}],
    "splits": [{"tp": 2}],
}


def test_a_step_of_latent_attention_worked_out_by_hand():
    decode = {**LATENT, "grid": {"B": 2, "S": 3}}
    assert groups_of(decode) == {
        "embed": (0, 0, 0, 8, 0),
        "qkv-down": (48, 12, 0, 8 + 6, 0),
        "q-up": (24, 6, 0, 6 + 4, 0),
        "kv-up": (32, 8, 0, 6 + 10, 0),
        "attention": (60, 0, 18, 6 + 4, 0),
        "o": (48, 12, 0, 6 + 8, 8),
        "gate-up": (80, 20, 0, 8 + 5, 0),
        "down": (40, 10, 0, 5 + 8, 8),
        "unembed": (64, 32, 0, 8 + 8, 0),
    }
    parameters = (24 + 12 + 16 + 24 + 3 + 2) + 3 * 4 * 5 + 3 * 4
    assert row_of(decode)["weights_footprint_bytes"] == Fraction(parameters + 2 * 4 * 8, 2)
    prefill = groups_of({**LATENT, "phase": "prefill", "grid": {"B": 1, "S": 2}})
    assert prefill["kv-up"] == (32, 8, 0, 4 + 8, 0)
    assert prefill["attention"] == (30, 0, 6, 12 + 6, 0)
    assert prefill["unembed"] == (32, 32, 0, 4 + 4, 0)


def test_hops_take_their_least_time_and_in_estimates_their_usual_one():
    """An all-reduce is two hops of 2 s; two of 3 s in an estimate; efficiency is of rates."""
    efficiency = {"math": 0.5, "memory": 0.8, "network": 0.1}
    sweep = {**TINY, "chips": ["slow-tiny"], "efficiency": efficiency}
    rows = {r["group"]: r for r in serving_oracle.layer_rows(sweep, {}, ALL_CHIPS, FORMATS)}
    assert rows["o"]["t_network_s"] == 8 / Fraction("0.5")
    fast = {**TINY, "chips": ["slow-tiny"]}
    rows = {r["group"]: r for r in serving_oracle.layer_rows(fast, {}, ALL_CHIPS, FORMATS)}
    assert rows["o"]["t_network_s"] == 2 * 2
    assert rows["experts"]["t_network_s"] == 2 + 2 + 2
    assert rows["o"]["t_estimate_s"] == Fraction("6.1")
    row = row_of(sweep)
    assert row["mfu"] == row["flops"] / (100 * row["t_lower_s"])
    assert row["mbu"] == row["memory_bytes"] / (10 * row["t_lower_s"])


def test_experts_split_by_tp_have_one_all_reduce_with_the_shared_ones():
    """A replica's two tokens touch 4 (1 - 1/4) = 3 experts; 8 bytes are sent once."""
    sweep = {**TINY, "splits": [{"tp": 2, "dp": 2}]}
    groups = groups_of(sweep)
    assert groups["experts"] == (96, 3 * 24 / 2, 0, 16 + 16, 8)
    assert groups["shared"][-1] == 0


def test_caches_split_by_batch_exchange_the_activations_of_attention():
    assert groups_of({**TINY, "cache_split": "batch"})["attention"][-1] == 2 * Fraction(4, 2)


def test_a_request_is_a_prefill_and_its_steps():
    requests = [{"input": 1024, "output": 9}]
    sweep = {**ON_H100, "grid": {"B": 64}, "requests": requests}
    (row,) = serving_oracle.request_rows(sweep, MODELS["models"], ALL_CHIPS, FORMATS)
    assert row.values is not None
    middle = row_of({**ON_H100, "grid": {"B": 64, "S": 1024 + 5}})
    prefill = row_of({**ON_H100, "phase": "prefill", "grid": {"B": 1, "S": 1024}})
    assert row.values["tpot_s"] == middle["t_lower_s"]
    assert row.values["ttft_s"] == prefill["t_lower_s"]
    assert row.values["ttft_ops_s"] == prefill["t_ops_s"]
    assert row.values["tokens_per_s"] == middle["tokens_per_s"]
    assert row.values["max_B"] == limits.largest_batch_that_fits(case_of(ON_H100), 1033)


def test_fewest_chips_are_tried_in_powers_of_two():
    """Llama 3.1 70B in bf16 is 141 GB: two chips hold it, four a cache of 64 x 8,192 tokens."""
    case = case_of(ON_H100)
    assert limits.fewest_chips(case, 1, 128) == 2
    assert limits.fewest_chips(case, 64, 8192) == 4
    assert limits.fewest_chips(case, 186, 8192) is None


SKIPPED: dict[str, dict[str, Any]] = {
    "compute dtype": {"dtypes": ["bf16"]},
    "memory": {"memory": "l2"},
    "heads": {"splits": [{"tp": 4}]},
    "dense": {"models": ["llama-3.1-8b"], "splits": [{"tp": 2, "ep": 2}]},
    "experts": {"splits": [{"tp": 1, "dp": 3, "ep": 3}]},
    "domain": {"splits": [{"tp": 1, "dp": 8, "ep": 8}]},
    "axes": {"splits": [{"tp": "2x1"}], "cache_split": "batch"},
    "network": {"network": "b"},
    "B": {"splits": [{"tp": 1, "dp": 5}]},
}


@pytest.mark.parametrize("reason", SKIPPED)
def test_what_no_chip_can_do_is_skipped_with_its_reason(reason):
    sweep = {**TINY, **SKIPPED[reason]}
    (row,) = serving_oracle.model_rows(sweep, MODELS["models"], ALL_CHIPS, FORMATS)
    assert row.values is None
    assert reason in row.reasons
