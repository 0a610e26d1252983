"""Parameters equal published counts to the last one; caches and work are exact."""

# The claims about the catalogue of models, with published figures: long, but one thing.

import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
import random_serving
from case_files import case
from hypothesis import given
from hypothesis import strategies as st
from late_models import READ, assert_as_printed
from lots import of
from oracle import models as oracle
from plain_files import plain_file
from processes import python
from random_sweeps import check

from rooflines import RooflinesError, models
from rooflines.hardware.entry_forms import validate_entry
from rooflines.models.architecture import DECODE, Shape
from rooflines.models.library import CONVENTIONS, NAME, load, model_entries, models_of
from rooflines.models.memory import weights_on_chip
from rooflines.models.split import Split
from rooflines.models.step_kernels import Sharing, StepKernels
from rooflines.theory.attention_window import AttentionWindow
from rooflines.theory.extents import DraftPairs, Entries, Pairs
from rooflines.theory.routing import rank_hit_probability

ENTRIES: dict[str, dict[str, Any]] = plain_file("models.yaml")["models"]
SUFFIXES = {"T": 10**12, "B": 10**9, "M": 10**6}


def rounds_to(count, printed):
    """True if a count rounds to a printed one; zeros before its suffix say nothing."""
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


@pytest.mark.parametrize(
    "row", [row for row in READ.values() if "entry" in row], ids=lambda row: row["entry"]
)
def test_caches_and_reads_of_late_models_are_those_of_their_checkpoints(row):
    assert_as_printed(models.load(row["entry"]), row)


@pytest.mark.parametrize("name", ENTRIES)
def test_counts_are_those_of_the_oracle(name):
    entry, model = ENTRIES[name], models.load(name)
    counts = model.parameters()
    assert counts.total == oracle.parameters(entry)
    assert {c: getattr(counts, c) for c in CONVENTIONS} == oracle.active(entry)


@check(300)
@given(shape=of(random_serving.models()))
def test_any_shape_has_the_counts_of_the_oracle(shape):
    del shape["name"]
    model = models.Model("any", validate_entry(Shape, shape))
    counts = model.parameters()
    assert counts.total == oracle.parameters(shape)
    assert {c: getattr(counts, c) for c in CONVENTIONS} == oracle.active(shape)
    assert sum(counts.by_class.values()) == counts.total
    groups, step = model.groups("decode"), models.Step(1, 1, routing="all")
    held = counts.total - counts.norms - counts.biases - counts.embedding - counts.unembedding
    assert models.work(groups, "weights", step) == held + counts.table


@check(500)
@given(
    context=st.integers(1, 30),
    new=st.integers(1, 30),
    window=st.none() | st.integers(1, 40) | st.builds(oracle.Chunk, st.integers(1, 40)),
)
def test_pairs_and_entries_are_those_counted_one_by_one(context, new, window):
    new = min(new, context)
    positions = range(context - new + 1, context + 1)
    reach = AttentionWindow(window, isinstance(window, oracle.Chunk))
    pairs, entries, drafts = (
        kind(reach).amount(context, new) for kind in (Pairs, Entries, DraftPairs)
    )
    assert pairs == reach.pairs(context, new) == sum(oracle.attended(p, window) for p in positions)
    assert entries == reach.entries(context, new) == oracle.moved(context, new, window)
    assert drafts == sum(oracle.attended(p, window) for p in positions[:-1])
    assert reach.cached_entries(context) == oracle.kept(context, window)
    for at in range(1, min(context, window if reach.chunked else context) + 1):
        (line,) = [
            each
            for each in reach.lines()
            if each.first <= at and (each.last is None or at <= each.last)
        ]
        assert line.constant + line.slope * at == reach.entries(at, 1)


@pytest.mark.parametrize("row", case("model-values"), ids=lambda row: row["model"])
def test_a_model_has_the_values_that_were_worked_out(row):
    found = getattr(models.load(row["model"]), row["call"])(*row["with"], **row.get("options", {}))
    value = row["value"]
    assert found == value if isinstance(value, int) else f"{found / row['per']:.1f}" == value


def test_layers_that_differ_have_caches_of_their_own_heads():
    """Three of 8 layers have 4 heads, two have 2, one of which has no MLP, and three have none.

    A token and head has a key and a value of 16 elements: (3 * 4 + 2 * 2) * 32 = 512 elements. A
    pair of a token and an entry takes 4 FLOPs for each of the 8 * 16 elements of 5 layers.
    """
    shape = {
        "layers": 8,
        "D": 64,
        "V": 100,
        "attention": {"N": 8, "K": 4, "H": 16},
        "mlp": {"F": 96},
        "variants": [
            {"layers": 1, "K": 2},
            {"layers": 1, "K": 2, "mlp": "none"},
            {"layers": 2, "attention": "none", "F": 48},
            {"layers": 1, "attention": "linear"},
        ],
    }
    model = models.Model("own", validate_entry(Shape, shape))
    assert model.kv_cache_bytes(3, "bf16") == 3 * 512 * 2
    groups = model.groups("decode")
    assert models.work(groups, "cache", models.Step(1, 3)) == 3 * 512
    attention = [group for group in groups if group.name.startswith("attention")]
    assert sorted((group.name, group.count) for group in attention) == [
        ("attention", 3),
        ("attention-2", 2),
    ]
    assert models.work(attention, "flops", models.Step(1, 3)) == 3 * 5 * 4 * 8 * 16


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
    assert python("-c", code).stdout == "False\n"


def test_every_source_names_a_document():
    for entry in model_entries().values():
        assert re.search(r"^[\w-]+/[\w-]+(@[0-9a-f]{12})? on GitHub, \S+", entry.source)
        assert "publisher's" in entry.source


def test_names_of_the_catalogue_are_known_and_of_one_model():
    entries = model_entries()
    names = [each.lower() for name, entry in entries.items() for each in (name, *entry.aliases)]
    assert len(set(names)) == len(names)
    for name, entry in entries.items():
        bare = (alias.rpartition("/")[2] for alias in entry.aliases)
        assert all(models.load(alias).name == name for alias in bare)
    assert all(NAME.fullmatch(name) for name in entries)


CALLS = case("wrong-calls")


@pytest.mark.parametrize("row", CALLS, ids=lambda row: row["says"])
def test_a_wrong_argument_is_refused_in_one_message(row):
    of = models if row.get("of") == "models" else models.load(row.get("model", "llama-3.1-70b"))
    with pytest.raises(RooflinesError, match=row["says"]) as refused:
        getattr(of, row["call"])(*row["with"], **row.get("options", {}))
    assert str(refused.value).count("fix:") == 1


def test_weights_of_a_fraction_of_a_byte_are_exact():
    shape = {"layers": 1, "D": 4, "V": 3, "attention": {"N": 1, "K": 1, "H": 3}, "mlp": {"F": 3}}
    model = models.Model("odd", validate_entry(Shape, shape))
    all_narrow = model.weights_bytes({"weights": "nvfp4", "head": "nvfp4"})
    assert all_narrow == model.parameters().total * Fraction(9, 16)
    assert all_narrow.denominator > 1


def test_a_network_has_to_join_chips_that_share_a_model_and_no_mere_replicas():
    splits = ({"tp": 4}, {"dp": 4}, {"dp": 4, "ep": 4}, {"tp": "2x2", "dp": 2, "ep": 8})
    joined = [validate_entry(Split, split).groups for split in splits]
    assert [max(map(math.prod, groups)) for groups in joined] == [4, 1, 4, 8]


@pytest.mark.parametrize(("experts", "parts"), [(8, 4), (12, 6), (12, 4), (30, 5)])
def test_tokens_that_choose_the_same_experts_reach_the_fewest_parts(experts, parts):
    for per_token in range(1, experts + 1):
        needed = {expert * parts // experts for expert in range(per_token)}
        chance = rank_hit_probability(experts, per_token, parts, "same")
        assert chance == Fraction(len(needed) - 1, parts - 1)


def test_a_model_is_listed_once():
    listed = models_of(["llama-3.1-8b", "gpt-oss-20b"])
    assert list(listed) == ["llama-3.1-8b", "gpt-oss-20b"]
    assert all(model.name == name for name, model in listed.items())
    with pytest.raises(RooflinesError, match=r"\[1\] is 'llama-3.1-8b', which is listed twice"):
        models_of(["llama-3.1-8b", "Llama 3.1 8B"])


WEIGHT_BITS = {"weights": 8, "experts": 4, "head": 16, "lm_head": 12, "rest": 32}
OTHER_BITS = dict.fromkeys(("activations", "cache", "combine", "input"), 16)


@pytest.mark.parametrize("split", ["tp1", "tp16", "tp4-dp2", "tp8-ep8", "tp2-dp4-ep8"])
@pytest.mark.parametrize(
    "name", ["llama-3.1-70b", "deepseek-v3", "qwen3.5-35b-a3b", "mixtral-8x7b"]
)
def test_a_step_that_reads_every_expert_reads_the_weights_on_a_chip(name, split):
    shape, chips = load(name).shape, Split.model_validate(split)
    bits = {key: Fraction(size) for key, size in (WEIGHT_BITS | OTHER_BITS).items()}
    sharing = Sharing(chips, bits, ("bf16", "bf16"), "heads", "all")
    read = StepKernels(shape, DECODE, sharing).works["weight_bytes"].at({})
    counts = load(name).parameters()
    unread_bits = counts.embedding * bits["head"] + (counts.norms + counts.biases) * bits["rest"]
    unread = unread_bits / chips.shards / 8
    assert read == weights_on_chip(shape, bits, chips) - unread
