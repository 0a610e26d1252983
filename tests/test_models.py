"""Models: published counts to the last parameter, caches, work, and what the field gets wrong."""

# The claims about the catalogue of models, with published figures: long, but one thing.

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

import model_oracle as oracle
import pytest
import random_serving
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_files import plain_file

from rooflines import RooflinesError, models
from rooflines.catalogue.forms import checked
from rooflines.models.cache import entries_moved, pairs, shares_of
from rooflines.models.counts import parameters_of
from rooflines.models.footprint import cache_on_chip, weights_on_chip
from rooflines.models.groups import touched_experts
from rooflines.models.library import CONVENTIONS, model_entries, read
from rooflines.models.shape import Shape
from rooflines.models.split import Split

ENTRIES: dict[str, dict[str, Any]] = plain_file("models.yaml")["models"]
H100_BYTES = 80e9
SUFFIXES = {"T": 10**12, "B": 10**9, "M": 10**6}


def rounds_to(count, printed):
    """Whether a count rounds to a printed one; zeros before its suffix say nothing."""
    digits = printed[:-1] if printed[-1] in SUFFIXES else printed
    scale = Decimal(SUFFIXES.get(printed[-1], 1))
    zeros = 0 if "." in digits else len(digits) - len(digits.rstrip("0"))
    unit = scale * Decimal(10) ** (zeros - len(digits.partition(".")[2]))
    return abs(count - Decimal(digits) * scale) <= unit / 2


def test_printed_digits_are_compared_as_printed():
    assert rounds_to(352_797_829_024, "352.80B")
    assert not rounds_to(352_797_829_024, "352.81B")
    assert rounds_to(400_711_848_960, "400B")
    assert not rounds_to(37_552_297_472, "37B")


# ---------------------------------------------------------------- parameters


@pytest.mark.parametrize("name", ENTRIES)
def test_the_published_counts_follow_from_the_shape(name):
    counts, published = models.load(name).parameters(), model_entries()[name].published
    total = counts.total + published.surplus
    if published.match == "rounded":
        assert rounds_to(total, str(published.total))
    elif published.match == "near":
        assert published.note
        assert not rounds_to(total, str(published.total))
        printed = float(str(published.total)[:-1]) * SUFFIXES[str(published.total)[-1]]
        assert total == pytest.approx(printed, rel=0.01)
    else:
        assert total == published.total
    assert (published.match == "exact") <= (published.surplus == 0)
    assert not published.surplus or published.note
    if published.active is not None:
        fits = {c for c in CONVENTIONS if rounds_to(getattr(counts, c), str(published.active))}
        assert (published.convention in fits) if published.convention else not fits


def test_23_published_counts_are_met_to_the_last_parameter():
    exact = [name for name, entry in model_entries().items() if entry.published.match == "exact"]
    assert len(exact) == 23


def test_every_model_has_the_context_of_its_source():
    contexts = {name: entry.context for name, entry in model_entries().items()}
    assert all(contexts.values())
    known = {
        "llama-2-70b": 4096,
        "gemma-2-27b": 8192,
        "qwen3-8b": 40960,
        "mistral-large-2": 131072,
        "deepseek-v3": 163840,
        "minimax-m2.5": 196608,
    }
    assert {name: contexts[name] for name in known} == known


@pytest.mark.parametrize("name", ENTRIES)
def test_counts_caches_and_work_are_those_of_the_oracle(name):
    entry, model = ENTRIES[name], models.load(name)
    counts = model.parameters()
    assert counts.total == oracle.parameters(entry)
    assert {c: getattr(counts, c) for c in CONVENTIONS} == oracle.active(entry)
    for context in (1, 300, 9000):
        assert model.cache_elements(context) == oracle.cache_elements(entry, context)
    step = models.Step(3, 9000)
    groups = model.groups("decode")
    assert models.work(groups, "flops", step) == oracle.decode_flops(entry, 3, 9000)
    own = [g for g in groups if g.name in ("state", "indexer")]
    moved = models.work([g for g in groups if g not in own], "cache", step)
    assert (moved, models.work(own, "cache", step)) == tuple(
        3 * each for each in oracle.decode_cache(entry, 9000)
    )


@settings(max_examples=150, deadline=None)
@given(shape=random_serving.models(), context=st.integers(1, 20), sequences=st.integers(1, 7))
def test_any_shape_has_the_counts_cache_and_work_of_the_oracle(shape, context, sequences):
    del shape["name"]
    model = models.Model("any", checked(Shape, shape))
    counts = model.parameters()
    assert counts.total == oracle.parameters(shape)
    assert {c: getattr(counts, c) for c in CONVENTIONS} == oracle.active(shape)
    assert sum(counts.by_class.values()) == counts.total
    assert model.cache_elements(context) == oracle.cache_elements(shape, context)
    groups, step = model.groups("decode"), models.Step(sequences, context, routing="all")
    assert models.work(groups, "flops", step) == oracle.decode_flops(shape, sequences, context)
    held = counts.total - counts.norms - counts.biases - counts.embedding - counts.unembedding
    assert models.work(groups, "weights", step) == held + counts.table


@settings(max_examples=200, deadline=None)
@given(context=st.integers(1, 30), new=st.integers(1, 30), window=st.none() | st.integers(1, 40))
def test_pairs_and_entries_are_those_counted_one_by_one(context, new, window):
    new = min(new, context)
    positions = range(context - new + 1, context + 1)
    assert pairs(context, new, window) == sum(oracle.attended(p, window) for p in positions)
    assert entries_moved(context, new, window) == oracle.moved(context, new, window)


def moved(one, context):
    """Bytes of the cache that a decode step moves, at one byte an element [byte]."""
    step = models.Step(1, context)
    groups = (group for group in one.groups("decode") if group.cache)
    return int(sum(g.count * g.of("cache", step) * (g.bits or 8) for g in groups) / 8)


def test_a_sparse_model_reads_what_latent_attention_reads_and_the_indexer():
    mla = {"kind": "mla", "N": 16, "q_rank": 96, "kv_rank": 64, "nope": 16, "rope": 8, "v": 16}
    shape = {"layers": 8, "D": 512, "V": 1000, "mlp": {"F": 1024}, "attention": mla}
    indexer = {"tokens": 512, "heads": 4, "dim": 32, "layers": 8, "own": 2, "bits": 8}
    plain = models.Model("mla", checked(Shape, shape))
    sparse = models.Model("sparse", checked(Shape, {**shape, "sparse": indexer}))
    for context in (1, 511, 512):
        assert moved(sparse, context) == moved(plain, context) + 2 * 32 * context
    assert moved(sparse, 5000) == moved(plain, 512) + 2 * 32 * 5000
    assert sparse.cache_bytes(5000, "fp8") == plain.cache_bytes(5000, "fp8") + 2 * 32 * 5000


# ---------------------------------------------------------------- mistakes of the field


def test_a_head_has_a_size_of_its_own():
    model = models.load("qwen3-235b-a22b")
    shape = model.shape
    wrong = {**ENTRIES["qwen3-235b-a22b"], "attention": {"N": 64, "K": 4, "H": shape.D // 64}}
    assert oracle.cache_elements(wrong, 100) * 2 == model.cache_elements(100)
    by_hand = 94 * (4096 * (64 + 2 * 4) * 128 + 64 * 128 * 4096)
    assert model.parameters().attention == by_hand


def test_layers_with_a_window_keep_only_their_window():
    """gpt-oss 120B at 32k: 37.0 KB a token on average, not the 73.7 KB of a first token."""
    model = models.load("gpt-oss-120b")
    assert f"{model.cache_bytes(32768, 'bf16') / 32768 / 1e3:.1f}" == "37.0"
    assert f"{model.cache_bytes(1, 'bf16') / 1e3:.1f}" == "73.7"
    names = [group.name for group in model.groups("decode") if group.cache]
    assert names == ["attention", "attention-window"]


def test_latent_attention_caches_one_entry_for_all_heads():
    """DeepSeek-V3: 70 kB a token, not the 1.7 to 4.0 MB of keys and values of 128 heads."""
    model = models.load("deepseek-v3")
    assert model.cache_bytes(1, "bf16") == 61 * 576 * 2 == 70_272
    by_head_size = {size: 2 * 61 * 128 * size * 2 for size in (7168 // 128, 128)}
    assert [f"{size / 1e6:.1f}" for size in by_head_size.values()] == ["1.7", "4.0"]


def test_chips_beyond_the_key_value_heads_replicate_the_cache():
    shape = models.load("llama-3.1-70b").shape
    whole = models.load("llama-3.1-70b").cache_bytes(8192, "int8")

    def share(tp, cache_split="heads"):
        bits = {"cache": Fraction(8)}
        return cache_on_chip(shape, 8192, bits, Split.model_validate({"tp": tp}), cache_split)

    assert share(1) == whole == 8 * share(8)
    assert share(16) * 16 == 2 * whole
    assert share(16, "batch") * 16 == whole
    heads = models.load("deepseek-v3").shape.attention.cache_heads
    assert (shares_of(heads, 16), shares_of(heads, 16, "batch")) == (1, 16)


def test_latent_attention_is_absorbed_in_decode_and_expanded_in_prefill():
    sizes = {"N": 2, "q_rank": 3, "kv_rank": 5, "nope": 7, "rope": 11, "v": 13}
    model = models.Model("small", checked(Shape, {**LLAMA, "attention": {"kind": "mla", **sizes}}))
    decode, prefill = model.groups("decode"), model.groups("prefill")
    per_pair = [
        group.flops["B", "pairs"]
        for groups in (decode, prefill)
        for group in groups
        if group.name == "attention"
    ]
    assert per_pair == [2 * (2 * (5 + 11) + 2 * 5), 2 * (2 * (7 + 11) + 2 * 13)]
    step = models.Step.prefill(2, 100)
    assert models.work(decode, "weights", step) == models.work(prefill, "weights", step)


def test_groups_move_the_activations_that_a_kernel_reads_and_writes():
    moe = {"E": 4, "k": 2, "Fe": 6, "shared": 1, "layers": 1}
    model = models.Model("small", checked(Shape, {**LLAMA, "mlp": {"F": 16}, "moe": moe}))
    step = models.Step.prefill(3, 5)
    moved = [
        (group.name, group.count, group.of("reads", step) / 15, group.of("writes", step) / 15)
        for group in model.groups("prefill")
    ]
    assert moved == [
        ("embed", 1, 0, 8),
        ("qkv", 2, 8, 32),
        ("attention", 2, 16, 16),
        ("o", 2, 16, 8),
        ("gate-up", 1, 8, 16),
        ("down", 1, 16, 8),
        ("router", 1, 8, 0),
        ("experts", 1, 16, 16),
        ("shared", 1, 8, 8),
        ("unembed", 1, Fraction(8, 5), Fraction(16, 5)),
    ]


def test_one_sequence_reads_the_experts_of_one_token():
    groups = models.load("deepseek-v3").groups("decode")
    (core,) = (group for group in groups if group.name == "attention")
    assert core.flops == {("B", "pairs"): 278_528}  # of a token of context in one layer
    one = models.work(groups, "weights", models.Step(1, 4096))
    assert f"{float(one):.2g}" == "3.7e+10"
    many = models.work(groups, "weights", models.Step(4096, 4096))
    assert f"{float(many):.3g}" == "6.7e+11"
    assert models.work(groups, "weights", models.Step(4096, 4096, routing="same")) == one


def test_some_layers_of_a_model_with_experts_are_dense():
    for name, dense in (("deepseek-v3", 3), ("llama-4-maverick", 24)):
        counts = {group.name: group.count for group in models.load(name).groups("decode")}
        layers = models.load(name).shape.layers
        assert (counts["gate-up"], counts["experts"]) == (dense, layers - dense)


def test_tied_embeddings_count_once_and_are_multiplied_by():
    model = models.load("llama-3.2-1b")
    counts = model.parameters()
    assert counts.total == 1_235_814_400
    assert counts.total + counts.table == 1_498_482_688
    assert counts.active == counts.active_with_embedding == counts.total
    read = models.work(model.groups("decode"), "weights", models.Step(1, 1))
    assert read == counts.total - counts.norms


def test_touched_experts_are_the_expectation_of_random_choices():
    assert touched_experts(4, 2, 2) == 3
    assert touched_experts(4, 2, 1) == 2
    assert touched_experts(4, 2, 9, "same") == 2
    assert touched_experts(4, 2, 1, "all") == 4


# ---------------------------------------------------------------- worked values


def test_a_decode_step_of_llama_3_1_70b():
    model = models.load("llama-3.1-70b")
    groups, step = model.groups("decode"), models.Step(64, 8192)
    weights = models.work(groups, "weights", step)
    assert weights == 69_501_714_432
    attention = {group.name: group for group in groups}["attention"]
    assert attention.count * attention.flops["B", "pairs"] == 2_621_440
    assert model.cache_elements(1) == 163_840
    flops = models.work(groups, "flops", step)
    assert flops == 64 * (2 * weights + 2_621_440 * 8192)
    assert f"{float(flops):.5e}" == "1.02706e+13"
    assert f"{float(flops) / 2:.4e}" == "5.1353e+12"
    assert 2 * weights == 139_003_428_864
    cache = models.work(groups, "cache", step)
    assert 2 * cache == 171_798_691_840
    assert cache / 2 == 42_949_672_960


def test_a_prefill_of_llama_3_1_70b():
    """8,192 tokens: 1.20948e15 FLOP, the unembedding for one row."""
    groups = models.load("llama-3.1-70b").groups("prefill")
    flops = models.work(groups, "flops", models.Step.prefill(1, 8192))
    assert f"{float(flops):.5e}" == "1.20948e+15"


def test_the_largest_batch_that_fits():
    model = models.load("meta-llama/Llama-3.1-70B")
    assert model.max_batch(H100_BYTES, 8192, "bf16", tp=8) == 185
    assert model.max_batch(16e9, 8192, "int8", tp=16, cache_split="batch") == 138
    assert model.max_batch(16e9, 8192, "int8", tp=16) == 69
    assert model.max_batch(H100_BYTES, 8192, "bf16", tp=8, dp=3) == 3 * 185
    assert model.max_batch(H100_BYTES, 8192, "bf16") == 0
    on_a_chip = Fraction(model.weights_bytes("bf16") + 64 * model.cache_bytes(8192, "bf16")) / 8
    assert f"{float(on_a_chip) / 1e9:.2f}" == "39.11"


def test_experts_are_shared_by_all_chips_of_expert_parallelism():
    shape = models.load("mixtral-8x7b").shape
    total, experts = 46_702_792_704, 32 * 8 * 3 * 4096 * 14336
    bits = dict.fromkeys(("weights", "experts", "head"), Fraction(8))
    for split, size in (
        ({"dp": 2}, total),
        ({"dp": 2, "ep": 2}, total - experts + Fraction(experts, 2)),
        ({"tp": 2, "dp": 2, "ep": 4}, Fraction(total - experts, 2) + Fraction(experts, 4)),
    ):
        assert weights_on_chip(shape, bits, Split.model_validate(split)) == size


def test_a_decode_step_of_deepseek_v3_on_128_chips():
    """Experts shared by 128 chips, the rest on each: 11.857 ms of memory, 13.745 ms of math.

    128 sequences a chip with 4,096 tokens; fp8, products of attention in bf16, rates of an H100.
    """
    groups = models.load("deepseek-v3").groups("decode")
    chip, all_chips = models.Step(128, 4096), models.Step(128 * 128, 4096)
    shared = [group for group in groups if group.name == "experts"]
    rest = [group for group in groups if group.name != "experts"]
    read = models.work(rest, "weights", chip) + models.work(shared, "weights", all_chips) / 128
    memory = read + models.work(groups, "cache", chip)
    assert f"{float(memory) / 3.35e12 * 1e3:.3f}" == "11.857"
    attention = models.work([g for g in groups if g.name == "attention"], "flops", chip)
    linear = models.work(groups, "flops", chip) - attention
    assert f"{(float(attention) / 9.89e14 + float(linear) / 1.979e15) * 1e3:.3f}" == "13.745"


def test_gpt_oss_is_as_large_as_its_download():
    """Experts in MXFP4 with scales, the rest in bf16: 65.2 GB, and 13.8 GB of the small one."""
    assert f"{models.load('gpt-oss-120b').weights_bytes() / 1e9:.1f}" == "65.2"
    assert f"{models.load('gpt-oss-20b').weights_bytes() / 1e9:.1f}" == "13.8"


BOOK: dict[str, tuple[dict[str, Any], Callable[[models.Model], tuple[float | Fraction, float]]]] = {
    "params of 64 layers, D=4096, F=4D, multi-head": (
        {"layers": 64, "D": 4096, "V": 32000, "F": 16384, "N": 32, "K": 32, "H": 128},
        lambda model: (model.parameters().total, 1.74423e10),
    ),
    "its cache per token, int8": (
        {"layers": 64, "D": 4096, "V": 32000, "F": 16384, "N": 32, "K": 32, "H": 128},
        lambda model: (model.cache_bytes(1, "int8"), 524_288),
    ),
    "cache of 8k, L=64, KH=8192": (
        {"layers": 64, "D": 8192, "V": 1, "F": 1, "N": 64, "K": 64, "H": 128},
        lambda model: (model.cache_bytes(8192, "int8"), 8.58993e9),
    ),
    "invented model with tied embeddings": (
        {"layers": 64, "D": 4096, "V": 32128, "F": 16384, "N": 32, "K": 8, "H": 256, "tied": True},
        lambda model: (model.parameters().total, 1.83852e10),
    ),
    "its cache per token": (
        {"layers": 64, "D": 4096, "V": 32128, "F": 16384, "N": 32, "K": 8, "H": 256, "tied": True},
        lambda model: (model.cache_bytes(1, "int8"), 262_144),
    ),
}


@pytest.mark.parametrize("case", BOOK)
def test_models_that_the_book_works_out(case):
    sizes, value = BOOK[case]
    shape = {
        "layers": sizes["layers"],
        "D": sizes["D"],
        "V": sizes["V"],
        "tied": sizes.get("tied", False),
        "attention": {key: sizes[key] for key in "NKH"},
        "mlp": {"F": sizes["F"]},
    }
    found, book = value(models.Model("of the book", checked(Shape, shape)))
    assert float(found) == pytest.approx(book, rel=3.1e-5)


def test_published_models_that_the_book_works_out():
    small, large = models.load("llama-2-13b"), models.load("llama-3.1-70b")
    parts, larger = small.parameters(), large.parameters()
    assert f"{parts.mlp / 1e9:.1f}" == "8.5"
    assert f"{(parts.embedding + parts.unembedding) / 1e9:.1f}" == "0.3"
    assert f"{parts.attention / 1e9:.1f}" == "4.2"
    assert f"{small.cache_bytes(8192, 'bf16') / 1e9:.1f}" == "6.7"
    assert f"{larger.mlp / 1e9:.1f}" == "56.4"
    assert f"{(larger.embedding + larger.unembedding) / 1e9:.1f}" == "2.1"
    assert f"{larger.attention / 1e9:.0f}" == "12"
    assert large.cache_bytes(1, "int8") == 160 * 1024
    assert f"{large.cache_bytes(32768, 'int8') / 1e9:.2f}" == "5.37"
    assert f"{240 * large.cache_bytes(32768, 'int8') / 1e12:.2f}" == "1.29"
    assert f"{2 * models.load('llama-3.1-405b').parameters().total:.5e}" == "8.11707e+11"


# ---------------------------------------------------------------- the interface


def test_a_model_has_the_names_that_it_is_published_under():
    for name in ("llama-3.1-70b", "meta-llama/Llama-3.1-70B", "META-LLAMA/llama-3.1-70b-instruct"):
        assert models.load(name).name == "llama-3.1-70b"
    shown = repr(models.load("llama-3.1-70b"))
    assert shown == (
        "<Model llama-3.1-70b: 70.6G parameters, 80 layers, 163,840 cache elements a token>"
    )


def test_models_are_there_without_polars():
    code = (
        "import sys, rooflines; rooflines.models.load('phi-4').max_batch(8e10, 8192, 'bf16');"
        "print('polars' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_every_source_names_a_document():
    for entry in model_entries().values():
        assert re.search(r"^[\w-]+/[\w-]+(@[0-9a-f]{12})? on GitHub, \S+", entry.source)
        assert "publisher's" in entry.source


# ---------------------------------------------------------------- wrong input

LLAMA = {
    "layers": 2,
    "D": 8,
    "V": 16,
    "attention": {"N": 4, "K": 2, "H": 4},
    "mlp": {"F": 16},
}
ENTRY = {**LLAMA, "name": "Small", "published": {"total": 1, "match": "exact"}, "source": "me"}

WRONG_SHAPES: dict[str, tuple[dict[str, Any], str, str]] = {
    "a key": ({"lyers": 2}, "lyers is no key here", "close to it: layers"),
    "heads": ({"attention": {"N": 4, "K": 3, "H": 4}}, "attention.K is 3", "share evenly"),
    "a size": ({"D": 0}, "D is 0, which is less than 1", "whole number from 1"),
    "no head size": ({"attention": {"N": 4, "K": 2}}, "attention lacks H", "add H:"),
    "a kind": ({"attention": {"kind": "mqa"}}, "attention.kind is 'mqa'", "gqa or mla"),
    "no mlp": ({"mlp": None}, "lacks mlp and moe", "give it one"),
    "layers": (
        {"mlp": {"F": 1, "layers": 1}},
        "mlp.layers and moe.layers do not add up",
        "correct",
    ),
    "no layers": (
        {"moe": {"E": 2, "k": 1, "Fe": 1}},
        "mlp.layers is not stated, nor is moe.layers",
        "state one",
    ),
    "experts": ({"moe": {"E": 2, "k": 3, "Fe": 1, "layers": 1}}, "moe.k is 3", "use 1 to 2"),
    "a window": ({"window": {"tokens": 4, "layers": 3}}, "window.layers is 3", "use 1 to 2"),
    "a count": (
        {"published": {"total": "many", "match": "exact"}},
        "published.total",
        "plain number",
    ),
    "a dtype": ({"dtypes": {"weights": "bf61"}}, "dtypes.weights is 'bf61'", "close to it: bf16"),
}


@pytest.mark.parametrize("case", WRONG_SHAPES)
def test_a_wrong_entry_is_refused_in_one_message(case):
    change, problem, fix = WRONG_SHAPES[case]
    with pytest.raises(RooflinesError) as refused:
        read({"small": {**ENTRY, **change}})
    text = str(refused.value)
    assert f"small{'' if problem.startswith('lacks') else '.'}" in text
    assert problem in text
    assert fix in text
    assert text.count("fix:") == 1


def test_two_models_cannot_share_a_name():
    with pytest.raises(RooflinesError, match=r"two.aliases has 'ONE', a name of one"):
        read({"one": ENTRY, "two": {**ENTRY, "aliases": ["ONE"]}})
    with pytest.raises(RooflinesError, match="'A_b', which is no name of a model"):
        read({"A_b": ENTRY})


WRONG_CALLS: dict[str, tuple[Any, str]] = {
    "an id": (
        lambda _: models.load("lama-3.1-70b"),
        r"'lama-3.1-70b', .*\n  close to it: llama-3.1",
    ),
    "a published name": (lambda _: models.load("google/gemma-27b"), "close to it: .*gemma-3-27b"),
    "no text": (lambda _: models.load(cast("Any", 7)), "model is 7, which is no model"),
    "tp and heads": (lambda m: m.max_batch(1e9, 1, "bf16", tp=3), "tp is 3, which does not divide"),
    "tp and kv heads": (
        lambda _: models.load("phi-4").max_batch(1e12, 1, "bf16", tp=4),
        "tp is 4, which neither divides the 10 key-value heads",
    ),
    "tp": (lambda m: m.max_batch(1e9, 1, "bf16", tp=0.5), "tp is 0.5, which is no whole number"),
    "dp": (lambda m: m.max_batch(1e9, 1, "bf16", dp=0), "dp is 0, which is less than 1"),
    "a split": (lambda m: m.max_batch(1e9, 1, "bf16", cache_split="head"), "close to it: heads"),
    "a capacity": (lambda m: m.max_batch("80GB", 1, "bf16"), "capacity is '80GB', .*no number"),
    "no capacity": (
        lambda m: m.max_batch(-1, 1, "bf16"),
        "capacity is -1, which is not above zero",
    ),
    "a context": (lambda m: m.cache_bytes(0, "bf16"), "S is 0, which is less than 1"),
    "a dtype": (lambda m: m.cache_bytes(1, "fp9"), "dtype is 'fp9', which is no dtype"),
    "dtypes": (lambda m: m.weights_bytes({"weight": "bf16"}), "dtypes.weight is no key here"),
    "their type": (lambda m: m.weights_bytes(16), "dtypes is 16\\.\n  fix: name a format"),
    "no dtype of the cache": (
        lambda m: m.max_batch(1, 1, {"weights": "bf16"}),
        "dtypes lacks cache",
    ),
    "unknown dtypes": (lambda m: m.weights_bytes(), "dtypes are not known for llama-3.1-70b"),
    "a phase": (lambda m: m.groups("decoding"), "phase is 'decoding', .*\n  close to it: decode"),
    "too many new tokens": (lambda _: models.Step(1, 4, 5), "T is 5, more than the 4 tokens"),
    "a routing": (lambda _: models.Step(1, 4, routing="random"), "routing is 'random'"),
    "a cost": (lambda m: models.work(m.groups("decode"), "bytes", models.Step(1, 1)), "cost is"),
}


@pytest.mark.parametrize("case", WRONG_CALLS)
def test_a_wrong_argument_is_refused_in_one_message(case):
    call, message = WRONG_CALLS[case]
    with pytest.raises(RooflinesError, match=message) as refused:
        call(models.load("llama-3.1-70b"))
    assert str(refused.value).count("fix:") == 1


def test_parameters_are_exact_beyond_what_a_float_holds():
    shape = checked(Shape, {**LLAMA, "D": 2**33, "V": 2**33 + 1})
    assert parameters_of(shape).embedding == 2**33 * (2**33 + 1)


def test_weights_of_a_fraction_of_a_byte_are_exact():
    shape = {"layers": 1, "D": 4, "V": 3, "attention": {"N": 1, "K": 1, "H": 3}, "mlp": {"F": 3}}
    model = models.Model("odd", checked(Shape, shape))
    assert model.weights_bytes("nvfp4") == model.parameters().total * Fraction(9, 16)
    assert model.weights_bytes("nvfp4").denominator > 1


def test_a_network_has_to_join_chips_that_share_a_model_and_no_mere_replicas():
    splits = ({"tp": 4}, {"dp": 4}, {"dp": 4, "ep": 4}, {"tp": "2x2", "dp": 2, "ep": 8})
    assert [checked(Split, split).joined for split in splits] == [4, 1, 4, 8]
