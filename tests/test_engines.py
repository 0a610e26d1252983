"""Pools of serving engines: start-up logs, other public logs, and the laws of a pool."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rooflines.basics.errors import RooflinesError
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.models.architecture import Shape
from rooflines.models.engine_pool import (
    EnginePool,
    LayerKind,
    PoolSettings,
    Replica,
    block_sizes,
    dealt_out,
    engine_pool,
    layer_kinds,
)
from rooflines.models.engine_rules import GIB, EngineRules, engine_entries
from rooflines.models.engine_weights import layer_tensors, loaded_weights
from rooflines.models.library import load
from rooflines.models.memory import cache_on_chip, weights_on_chip
from rooflines.models.parameter_counts import parameters_of
from rooflines.models.split import Split
from rooflines.models.tensor_dtypes import format_dtypes, step_dtypes

STARTS = Path(__file__).parent / "cases" / "engine-starts.yaml"
H100 = chip_entries()["h100-sxm"].memory["hbm"].capacity_bytes
SERVER = PoolSettings(0.95, 8192, 1024, 16)


class Start(NamedTuple):
    model: str
    weights: str
    cache: str
    tp: int
    stages: int
    context: int
    weights_gib: float
    activation_gib: float
    other_gib: float
    pool_gib: float
    tokens: int
    requests: float
    blocks: int


@cache
def starts() -> tuple[dict[str, Shape], list[Start]]:
    content = yaml.safe_load(STARTS.read_text())
    shapes = {name: Shape.model_validate(form) for name, form in content["shapes"].items()}
    return shapes, [Start(*row) for row in content["rows"]]


def bits(weights: str = "bf16", kv: str | None = None) -> dict[str, Any]:
    form = format_dtypes(weights)
    return step_dtypes({**form, "name": None, "cache": kv or form["cache"]}).bits()


def split(tp: int = 1, **keys: int) -> Split:
    return Split.model_validate({"tp": tp, **keys})


def replica_of(start: Start) -> Replica:
    shape = starts()[0].get(start.model) or load(start.model).shape
    return Replica(shape, bits(start.weights, start.cache), split(start.tp), start.stages)


def pool_of(start: Start) -> EnginePool:
    rules = engine_entries()["vllm"].rules("0.19")
    assert H100 is not None
    return engine_pool(rules, replica_of(start), H100, start.context, SERVER)


def within(share: float, pairs: Sequence[tuple[float, float]]) -> int:
    return sum(abs(computed / printed - 1) <= share for computed, printed in pairs)


def test_start_up_logs_have_these_tokens_and_requests_from_their_own_pool() -> None:
    _, rows = starts()
    rules, tokens, requests = engine_entries()["vllm"].rules("0.19"), [], []
    for start in rows:
        kinds = layer_kinds(replica_of(start))
        pool_bytes = int(start.pool_gib * GIB)
        if start.stages > 1:  # printed by the first stage, the last one decides
            pool_bytes = pool_of(start).pool_bytes
        dealt = dealt_out(rules, kinds, pool_bytes, start.context, SERVER)
        tokens.append((dealt.tokens, start.tokens))
        requests.append((float(dealt.concurrency), start.requests))
    assert len(rows) == 29
    assert within(0.001, tokens) >= 28
    assert within(0.001, requests) >= 28
    assert within(0.002, tokens) == within(0.002, requests) == 29


def test_start_up_logs_have_these_weights_and_requests_from_shapes_alone() -> None:
    _, rows = starts()
    pools = [pool_of(start) for start in rows]
    weights = [
        (float(pool.weights.total) / GIB, start.weights_gib)
        for pool, start in zip(pools, rows, strict=True)
    ]
    requests = [
        (float(pool.concurrency), start.requests) for pool, start in zip(pools, rows, strict=True)
    ]
    assert within(0.0025, weights) == 29
    assert [within(share, requests) for share in (0.002, 0.005, 0.01)] == [25, 28, 29]


CONTRACT_PARTS = {  # exact and rotary [GiB], rounding [MiB]
    ("codellama-7b", 1): (12.5518, 0.0039, 0),
    ("llama-3.1-70b", 2): (33.8320, 0.0312, 0),
    ("gemma-2-2b", 1): (4.8691, 0.0039, 27),
    ("gemma-3-27b", 1): (51.0830, 0.2812, 62),
    ("granite-8b", 1): (15.2192, 0.0312, None),
    ("llama-3.1-8b", 1): (14.9570, 0.0312, None),
    ("llama-4-scout", 4): (50.5798, 2.5, 25),
    ("phi-2", 1): (5.1758, 0.0001, 16),
    ("qwen2.5-7b", 1): (14.1846, 0.0078, 57),
    ("qwen2.5-72b", 2): (67.7109, 0.0078, 80),
    ("qwen3-30b-a3b", 1): (56.8701, 0.0098, 1),
}


@pytest.mark.parametrize(("name", "tp"), CONTRACT_PARTS)
def test_weights_are_stored_bytes_tables_of_angles_and_rounding(name: str, tp: int) -> None:
    shape = starts()[0].get(name) or load(name).shape
    weights = loaded_weights(shape, bits("fp8" if name == "llama-3.1-70b" else "bf16"), split(tp))
    stored, rotary, rounding = CONTRACT_PARTS[name, tp]
    assert float(weights.stored) / GIB == pytest.approx(stored, rel=5e-4)
    assert float(weights.rotary) / GIB == pytest.approx(rotary, abs=1.1e-4)
    if rounding is not None:
        assert round(float(weights.rounding) / 2**20) == rounding


def test_pools_of_windows_follow_the_budget_of_a_step() -> None:
    rules, shape = engine_entries()["vllm"].rules(), load("gemma-4-26b-a4b").shape
    kinds = layer_kinds(Replica(shape, bits(), split()))
    for budget, request, tokens, requests in ((2048, 4037, 72400, 6.73), (8192, 5957, 79344, 5.0)):
        _, page = block_sizes(kinds, 16)
        blocks = tokens // 16 * 6
        settings = SERVER._replace(max_batched_tokens=budget)
        dealt = dealt_out(rules, kinds, int(blocks * page * 5), 98304, settings)
        assert dealt.group_layers == 5
        assert {part.block_tokens for part in dealt.parts} == {32, 16}
        assert sum(part.request_blocks for part in dealt.parts) == request
        assert dealt.tokens == tokens
        assert float(dealt.concurrency) == pytest.approx(requests, rel=0.002)


def test_blocks_of_attention_fill_the_page_of_a_state() -> None:
    shape, rules = load("qwen3.5-27b").shape, engine_entries()["vllm"].rules("0.21")
    kinds = layer_kinds(Replica(shape, bits(), split()))
    state = next(kind for kind in kinds if kind.kind == "state")
    tokens, page = block_sizes(kinds, 16)
    assert state.layer_bytes == 3207168
    assert [*tokens.values()] == [784]
    assert float(page / state.layer_bytes) == pytest.approx(1.0013, abs=5e-5)
    kinds = layer_kinds(Replica(shape, bits("bf16", "fp8"), split(2)))
    tokens, page = block_sizes(kinds, 16)
    assert [*tokens.values()] == [1568]
    settings = SERVER._replace(prefix_caching=True)
    dealt = dealt_out(rules, kinds, int(208 * page * 16), 131072, settings)
    assert 208 * page * 16 / GIB == pytest.approx(4.98, abs=0.005)
    assert sum(part.request_blocks for part in dealt.parts) == 90
    assert float(dealt.concurrency) == pytest.approx(2.31, abs=0.005)
    assert dealt.tokens == 302921


def test_blocks_of_a_small_state_and_groups_with_a_draft_layer() -> None:
    size = Fraction(16 * 128 * 128 * 4 + 3 * 6144 * 2)
    small = LayerKind("state", None, 18, 18 * size)
    full = LayerKind("full", None, 6, Fraction(6 * 2 * 2 * 256 * 2))
    assert small.layer_bytes == 1085440
    assert block_sizes((small, full), 16)[0][full] == 544
    states, attention = small._replace(layers=48, bytes=Fraction(4800)), full._replace(layers=17)
    dealt = dealt_out(engine_entries()["vllm"].rules(), (states, attention), 10**9, 64, SERVER)
    assert (dealt.group_layers, dealt.padding) == (17, 3)
    assert dealt.padding / states.layers == 0.0625


@pytest.mark.parametrize(
    ("model", "kv", "tokens", "token_bytes"),
    [("kimi-k2.5", "bf16", 2454421, 70272), ("deepseek-v3", "fp8", 524288, 35136)],
)
def test_sglang_holds_these_tokens(model: str, kv: str, tokens: int, token_bytes: int) -> None:
    """Pools of 160.63 and 17.16 GiB in its log."""
    rules, shape = engine_entries()["sglang"].rules(), load(model).shape
    (kind,) = layer_kinds(Replica(shape, bits("fp8", kv), split(8)))
    assert kind.bytes == token_bytes
    pool = {"kimi-k2.5": 160.63, "deepseek-v3": 17.16}[model]
    assert tokens * token_bytes / GIB == pytest.approx(pool, abs=0.005)
    settings = SERVER._replace(block_tokens=1)
    assert dealt_out(rules, (kind,), tokens * token_bytes, 8192, settings).tokens == tokens


def test_sglang_shares_memory_between_states_and_tokens() -> None:
    form = {
        "layers": 32,
        "D": 4096,
        "V": 248320,
        "attention": {"N": 16, "K": 4, "H": 256},
        "state": {"kind": "gated-delta", "layers": 24, "heads": 32, "key": 128, "value": 128}
        | {"groups": 16, "conv": 4},
        "mlp": {"F": 12288},
    }
    kinds = layer_kinds(Replica(Shape.model_validate(form), bits(), split(2)))
    settings = SERVER._replace(block_tokens=1)
    state, full = 187 * 24 * (16 * 128 * 128 * 4 + 3 * 4096 * 2), 327310 * 16384
    rules = engine_entries()["sglang"].rules()
    dealt = dealt_out(rules, kinds, math.ceil(full * 1.9), 8192, settings)
    slots, tokens = sorted(dealt.parts, key=lambda part: part.blocks)
    assert tokens.block_bytes == 16384
    assert dealt.tokens == pytest.approx(327310, abs=1)
    assert slots.blocks == 187
    assert full / GIB == pytest.approx(4.99, abs=0.005)
    assert state / GIB == pytest.approx(4.38 + 0.10, abs=0.01)


def test_sglang_keeps_by_default_what_its_arguments_say() -> None:
    reserve = engine_entries()["sglang"].rules().reserve
    assert reserve is not None
    assert H100 is not None
    assert reserve.share(H100, 8192, 256, 1) == 0.835
    assert reserve.share(H100, 8192, 256, 1, reserve.draft) == 0.81
    assert reserve.share(H100, 8192, 256, 1, reserve.standalone_draft) == 0.76
    assert reserve.share(24 * GIB, 512, 8, 1) == reserve.share(24 * GIB, 2048, 8, 1)
    assert reserve.share(80 * GIB, 2048, 8, 1) == round(1 - 10240 / (80 * 1024 * 1.0059), 3)


def test_trtllm_takes_a_share_of_what_is_free() -> None:
    rules, shape = engine_entries()["trtllm"].rules(), load("deepseek-v3").shape
    settings = PoolSettings(0.85, 8192, 1024, 32, peak=int(91.46 * GIB))
    pool = engine_pool(
        rules, Replica(shape, bits("fp8", "fp8"), split(8)), 139.81 * GIB, 8192, settings
    )
    assert pool.pool_bytes / GIB == pytest.approx(41.10, abs=0.005)
    assert pool.page_bytes == 32 * 35136
    assert pool.tokens == pool.pool_bytes // (32 * 35136) * 32


# ---------------------------------------------------------------- laws

GQA = st.fixed_dictionaries(
    {"K": st.sampled_from((1, 2, 4, 8)), "H": st.sampled_from((64, 80, 128))}
).map(lambda sizes: {"N": 16, **sizes})
MLA = {"kind": "mla", "N": 16, "kv_rank": 512, "nope": 128, "rope": 64, "v": 128}


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    layers = draw(st.integers(2, 40))
    form: dict[str, Any] = {
        "layers": layers,
        "D": draw(st.sampled_from((1024, 2560, 4096))),
        "V": draw(st.integers(1000, 300000)),
        "attention": draw(st.one_of(GQA, st.just(MLA))),
        "mlp": {"F": 8192},
        "context": draw(st.sampled_from((None, 8192, 131072))),
    }
    mix = draw(st.sampled_from(("full", "window", "chunk", "state", "sparse")))
    part = draw(st.integers(1, layers - 1))
    if mix in ("window", "chunk"):
        tokens = draw(st.integers(16, 9000))
        form["window"] = {"tokens": tokens, "layers": part, "chunked": mix == "chunk"}
    elif mix == "state":
        heads = draw(st.sampled_from((16, 32)))
        form["state"] = {"kind": "gated-delta", "layers": part, "heads": heads, "key": 128}
        form["state"] |= {"value": 128, "groups": 16, "conv": 4}
    elif mix == "sparse":
        form["sparse"] = {"tokens": 2048, "heads": 16, "dim": 128, "layers": layers, "bits": 8}
    if draw(st.booleans()):
        form |= {"mlp": None, "moe": {"E": 16, "k": 2, "Fe": 1536, "shared": 1}}
    return Shape.model_validate(form)


WEIGHTS, CACHES = st.sampled_from(("bf16", "fp8", "int4")), st.sampled_from(("bf16", "fp8"))
REPLICAS = st.builds(
    Replica,
    shapes(),
    st.builds(bits, WEIGHTS, CACHES),
    st.sampled_from((1, 2, 4, 16)).map(split),
    st.just(1),
)
RULES = [rules for engine in engine_entries().values() for rules in engine.versions]
SETTINGS = st.builds(
    PoolSettings,
    utilization=st.floats(0.3, 0.99),
    max_batched_tokens=st.integers(256, 16384),
    max_seqs=st.just(256),
    block_tokens=st.just(16),
    reserve=st.sampled_from((None, 3 * GIB)),
    peak=st.none(),
    windows=st.booleans(),
    prefix_caching=st.booleans(),
    drafts=st.integers(0, 3),
)


@given(
    replica=REPLICAS,
    rules=st.sampled_from(RULES),
    settings=SETTINGS,
    gib=st.integers(20, 200),
    context=st.integers(1, 200000),
)
def test_a_pool_holds_the_caches_of_the_requests_it_says(
    replica: Replica, rules: EngineRules, settings: PoolSettings, gib: int, context: int
) -> None:
    settings = settings._replace(block_tokens=rules.block_tokens)
    try:
        pool = engine_pool(rules, replica, gib * GIB, context, settings)
    except RooflinesError:
        assert rules.layout == "windows"
        assert replica.shape.state is not None
        return
    exact = cache_on_chip(replica.shape, context, replica.bits, replica.split)
    assert pool.held_bytes >= pool.requests * exact
    assert pool.held_bytes <= max(pool.pool_bytes, 0)
    weights = weights_on_chip(replica.shape, replica.bits, replica.split)
    assert pool.weights.total >= weights * Fraction(999, 1000)  # norms are in 16 bits
    assert pool.reserved_bytes >= 0 or pool.pool_bytes < 0
    higher = settings._replace(utilization=min(settings.utilization + 0.01, 1))
    more = engine_pool(rules, replica, gib * GIB, context, higher)
    assert more.concurrency >= pool.concurrency


@given(shape=shapes())
def test_tensors_on_one_chip_are_the_parameters_of_the_model(shape: Shape) -> None:
    counted = sum(
        tensor.number * tensor.elements for tensor in layer_tensors(shape, bits(), split())
    )
    parameters = parameters_of(shape)
    absorbed = 0
    if (attention := shape.attention).kind == "mla":
        size = attention.kv_rank * attention.N * (attention.nope + attention.v)
        absorbed = shape.attention_layers * size
    tables = parameters.embedding + parameters.unembedding
    vectors = parameters.norms + parameters.biases
    assert counted - absorbed == parameters.total - tables - vectors
