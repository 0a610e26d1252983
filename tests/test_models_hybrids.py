"""Models whose layers are not alike: laws of their caches, and rows and thresholds that agree."""

from __future__ import annotations

from typing import Any

import pytest

import rooflines
from rooflines import models
from rooflines.catalogue.forms import checked
from rooflines.models.shape import Shape

MLA = {"kind": "mla", "N": 16, "q_rank": 96, "kv_rank": 64, "nope": 16, "rope": 8, "v": 16}
GQA = {"N": 8, "K": 2, "H": 64}
PLAIN: dict[str, Any] = {"layers": 8, "D": 512, "V": 1000, "mlp": {"F": 1024}}
STATE = {"heads": 8, "groups": 4, "key": 32, "value": 32, "conv": 4, "layers": 6}
INDEXER = {"tokens": 512, "heads": 4, "dim": 32, "layers": 8, "own": 2, "bits": 8}

SHAPES: dict[str, dict[str, Any]] = {
    "sparse": {**PLAIN, "attention": MLA, "sparse": INDEXER},
    "delta": {**PLAIN, "attention": GQA, "state": {"kind": "gated-delta", **STATE}},
    "kda": {**PLAIN, "attention": MLA, "state": {"kind": "kda", **STATE, "bits": 16}},
    "mamba2": {
        **PLAIN,
        "attention": GQA,
        "single": True,
        "norms_per_layer": 1,
        "mlp": {"F": 1024, "layers": 1, "gated": False},
        "state": {"kind": "mamba2", **STATE},
    },
    "two attentions": {
        **PLAIN,
        "attention": {**GQA, "K": 1, "H": 128, "one_tensor": True},
        "window": {"tokens": 256, "layers": 6, "attention": {**GQA, "K": 8}},
    },
}


def model(name):
    """A model of `SHAPES`."""
    return models.Model(name, checked(Shape, SHAPES[name]))


def read(one, context):
    """Bytes of the cache that a decode step moves, at one byte an element [byte]."""
    step = models.Step(1, context)
    groups = (group for group in one.groups("decode") if group.cache)
    return int(sum(g.count * g.of("cache", step) * (g.bits or 8) for g in groups) / 8)


def test_a_sparse_model_reads_what_latent_attention_reads_and_the_indexer():
    plain = models.Model("mla", checked(Shape, {**PLAIN, "attention": MLA}))
    sparse = model("sparse")
    for context in (1, 511, 512):
        assert read(sparse, context) == read(plain, context) + 2 * 32 * context
    assert read(sparse, 5000) == read(plain, 512) + 2 * 32 * 5000
    assert sparse.cache_bytes(5000, "fp8") == plain.cache_bytes(5000, "fp8") + 2 * 32 * 5000


@pytest.mark.parametrize("name", ["delta", "kda"])
def test_layers_with_a_state_have_no_cache_that_grows(name):
    hybrid = model(name)
    own = {key: value for key, value in SHAPES[name].items() if key != "state"}
    full = models.Model("full", checked(Shape, {**own, "layers": 2}))
    bits = 16 if name == "kda" else 32
    state = 6 * 8 * 32 * 32 * bits // 8
    for context in (1, 7000):
        assert read(hybrid, context) == read(full, context) + 2 * state
        assert hybrid.cache_bytes(context, "fp8") == full.cache_bytes(context, "fp8") + state
    flops = {group.name: group.flops for group in hybrid.groups("decode")}["state"]
    assert flops == {("B", "T"): 6 * 8 * 32 * 32}


def test_parameters_of_a_published_hybrid():
    config = {
        "model_type": "qwen3_next",
        "hidden_size": 2048,
        "num_hidden_layers": 48,
        "num_attention_heads": 16,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "vocab_size": 151936,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 32,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4,
        "num_experts": 512,
        "num_experts_per_tok": 10,
        "moe_intermediate_size": 512,
        "shared_expert_intermediate_size": 512,
    }
    assert models.from_hf(config).parameters().total == 79_674_391_296


def sweep(name, **keys):
    """A config with one sweep of a shape, on two chips."""
    asked = {
        "models": [{"name": "m", **SHAPES[name]}],
        "chips": ["h100-sxm"],
        "dtypes": ["bf16"],
        "splits": [{"tp": 2}],
        **keys,
    }
    return rooflines.load_config({"model-sweeps": {"s": asked}})


@pytest.mark.parametrize("name", SHAPES)
def test_rows_have_the_footprints_and_batches_of_the_model(name):
    rows = rooflines.model_rows(
        sweep(name, grid={"B": [1, 64], "S": [100, 300, 9000]}), "s"
    ).collect()
    for row in rows.to_dicts():
        assert row["max_B"] == model(name).max_batch(80e9, row["S"], "bf16", tp=2)
        assert row["t_lower_s"] <= row["t_ops_s"] <= row["t_upper_s"]


@pytest.mark.parametrize("name", SHAPES)
def test_critical_batches_are_where_rows_change_their_bound(name):
    contexts = [64, 300, 600, 9000]
    config = sweep(name, grid={"B": 1, "S": contexts}, thresholds=["B"], splits=[{}])
    solved = rooflines.model_thresholds(config, "s").to_dicts()
    assert {each["S"] for each in solved} == set(contexts)
    for each in solved:
        batches = [1, 10**6]
        if each["critical"] is not None:
            batches = [max(each["critical"] - 1, 1), each["critical"]]
        grid = {"B": batches, "S": [each["S"]]}
        rows = rooflines.model_rows(sweep(name, grid=grid, splits=[{}]), "s").collect().to_dicts()
        reached = [row["t_math_s"] >= row["t_memory_s"] * (1 - 1e-12) for row in rows]
        if each["critical"] is None:
            assert reached == [False, False] or each["outcome"] == "always"
        elif each["critical"] > 1:
            assert reached == [False, True]
