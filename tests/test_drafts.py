"""Speculative decoding: worked values, modules that draft, and what a draft cannot be beside."""

from fractions import Fraction

import pytest

import rooflines
from rooflines import models
from rooflines.basics.errors import RooflinesError
from rooflines.hardware.entry_forms import validate_entry
from rooflines.models.architecture import PREFILL, Shape
from rooflines.models.groups import Step, groups_of, work
from rooflines.models.model import Model
from rooflines.models.mtp import merge_elements, with_mtp_layer
from rooflines.models.parameter_counts import parameters_of

LLAMA = ("h100-sxm", "llama-3.1-70b")
THREE = {"tokens": 3, "accepted": 1.8}


def step(draft, S=8192, B=64, **options):  # noqa: N803, the letters of the docs
    return rooflines.explain_model(*LLAMA, B=B, S=S, dtypes="bf16", draft=draft, **options)


@pytest.mark.parametrize(
    ("tokens", "length", "critical"),
    [(3, 128, 76), (3, 1024, 88), (3, 4096, 203), (3, 6446, 4_165_395), (3, 6447, None),
     (1, 128, 155), (1, 1024, 223)],
)  # fmt: skip
def test_a_draft_makes_smaller_batches_compute_bound(tokens, length, critical):
    thresholds = step({"tokens": tokens, "accepted": 0}, length, 1).thresholds
    (found,) = (each["critical"] for each in thresholds if each["axis"] == "B")
    assert found == critical


def test_longest_context_with_a_compute_bound_batch():
    longest = {
        tokens: next(
            each["critical"]
            for each in step({"tokens": tokens, "accepted": 0}).thresholds
            if each["axis"] == "S"
        )
        for tokens in (1, 3)
    }
    assert longest == {1: 3038, 3: 6446}


def test_a_step_adds_the_accepted_tokens_and_one():
    plain, drafted = step(None, split="tp=8"), step(THREE, split="tp=8")
    assert round(plain.row["tokens_per_s_per_chip_serial"]) == 682
    assert round(drafted.row["tokens_per_s_per_chip_serial"]) == 1732
    more = drafted.row["tokens_per_s_serial"] / plain.row["tokens_per_s_serial"]
    assert more == pytest.approx(2.540, abs=5e-4)


# ------------------------------------------------------------ modules of their own

CARDS = {"deepseek-v3": 684_489_845_504, "glm-4.5": 358_337_791_296}
"""Parameters of checkpoints, which have the token tables of the module as well."""


@pytest.mark.parametrize("name", CARDS)
def test_a_module_has_the_parameters_that_checkpoints_have_besides(name):
    shape = models.load(name).shape
    grown = parameters_of(with_mtp_layer(shape)).total + merge_elements(shape, Fraction(1))
    assert grown + 2 * shape.table == CARDS[name]


def module(name="deepseek-v3", tokens=1, B=1, **options):  # noqa: N803, the letter of the docs
    draft = {"tokens": tokens, "accepted": 0.85}
    return rooflines.explain_model("b200", name, B=B, S=8192, dtypes="bf16", draft=draft, **options)


def of_drafts(answer, cost):
    own = [each for each in answer.groups if each["group"].startswith("draft-")]
    return sum(each["count"] * each[cost] for each in own)


@pytest.mark.parametrize(("tokens", "entries"), [(1, 8191), (3, 8189 + 8190 + 8191)])
def test_the_module_of_deepseek_v3(tokens, entries):
    # Attention 7168 * 1536 + 1536 * 128 * 192 + 7168 * 576 + 512 * 128 * 256 + 128 * 128 * 7168
    # = 187,105,280; router 7168 * 256 = 1,835,008; a token's 8 experts and the shared one
    # 9 * 3 * 7168 * 2048 = 396,361,728; 2 * 7168^2 = 102,760,448; the head 129,280 * 7168
    # = 926,679,040. An entry has 576 elements; a pair 2 * 128 * (576 + 512) FLOP.
    used, answer = 1_614_741_504, module(tokens=tokens)
    assert of_drafts(answer, "weight_bytes") == tokens * 2 * used
    assert of_drafts(answer, "kv_cache_bytes") == 2 * 576 * entries
    assert of_drafts(answer, "flops") == tokens * 2 * used + 278_528 * entries


@pytest.mark.parametrize(
    ("name", "weights", "whole", "entry"),
    [
        ("deepseek-v3", 11_610_068_224, 119_734_272, 2 * 576),
        ("deepseek-v3.2", 11_624_027_648, 133_693_440, 2 * 576 + 128),
    ],
)
def test_chips_hold_the_module_and_its_cache(name, weights, whole, entry):
    # 187,105,280 + 256 * 44,040,192 + 44,040,192 + 1,835,008 + 102,760,448; norms 1536 + 512 and
    # 5 * 7168, 256 biases of the router. A 62nd layer of 576 elements is cached. An indexer has
    # 1536 * 64 * 128 + 7168 * (128 + 64) + 2 * 128 = 13,959,424 and a key of 128 bytes. Whole on
    # each chip are the router, qkv-down, 7168 * (1536 + 576), the merge, and the indexer.
    plain = rooflines.explain_model("b200", name, B=1, S=8192, dtypes="bf16", split="tp=8,ep=8")
    drafted = module(name, split="tp=8,ep=8")
    held = [f"{part}_footprint_bytes" for part in ("weights", "kv_cache")]
    more = [drafted.row[part] - plain.row[part] for part in held]
    assert more == [2 * (weights / 8 + whole * 7 / 8), entry * 8192]


@pytest.mark.parametrize("name", ["deepseek-v3", "deepseek-v3.2", "glm-4.5", "qwen3.5-27b"])
def test_a_module_takes_time(name):
    answer = module(name, B=64)
    with_module, others = of_drafts(answer, "t_serial_s"), answer.row["t_serial_s"]
    assert 0 < with_module < others
    plain = rooflines.explain_model("b200", name, B=64, S=8192, dtypes="bf16", T=2)
    assert answer.row["t_serial_s"] > plain.row["t_serial_s"]


def test_groups_of_a_draft_are_critical_for_all_tokens_of_a_step():
    # 2 FLOP of a weight of 2 bytes and token, 2 tokens: half the batch of a step of one token.
    critical = {
        each["group"]: each["critical_B"] for each in module(B=64, split="tp=8,ep=8").groups
    }
    assert critical["experts"] == -(-critical["draft-experts"] // 2)


def test_an_engine_takes_its_time_for_every_run_of_the_layer_that_drafts():
    answer = rooflines.explain_model(
        "h200-sxm",
        "deepseek-v3",
        B=8,
        S=8192,
        split="tp=8,ep=8",
        draft={"tokens": 2, "accepted": 1},
        calibration=["trtllm"],
    )
    counts = {each["group"]: each["count"] for each in answer.terms}
    assert counts["engine-layers"] == 61 + 2


@pytest.mark.parametrize(("modules", "teraflops"), [(0, 536), (1, 558)])
def test_training_with_a_module_agrees_with_the_published_rate(modules, teraflops):
    # Megatron-Bridge 25.11: 2,139 tokens/s a B200 at S 4,096 are 557 TFLOP/s; thrice the forward.
    shape, length = models.load("deepseek-v3").shape, 4096
    own = [shape] + [with_mtp_layer(shape, standalone=True)] * modules
    groups = [each for of in own for each in groups_of(of, PREFILL, scores_all=True)]
    forward = work(groups, "flops", Step.prefill(1, length)) / length
    merges = modules * 2 * 2 * shape.D**2
    assert float(3 * (forward + merges) * 2139 / 10**12) == pytest.approx(teraflops, abs=0.6)


@pytest.mark.parametrize(
    "beside", [{"window": {"tokens": 128, "layers": 1}}, {"single": True, "layers": 4}]
)
def test_a_module_whose_layer_is_unknown_is_refused(beside):
    shape = {"layers": 2, "D": 64, "V": 100, "mtp": True, "mlp": {"F": 128, "layers": 2}}
    shape |= {"attention": {"N": 4, "K": 2, "H": 16}} | beside
    with pytest.raises(RooflinesError, match="mtp is true, but which layer it is like"):
        validate_entry(Shape, shape)


def test_a_config_with_windows_has_no_module_that_is_known():
    config = {"model_type": "mimo", "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 100}
    config |= {"num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128}
    config |= {"num_nextn_predict_layers": 1, "sliding_window": 16, "max_window_layers": 1}
    found = [
        models.from_hf({**config, "use_sliding_window": switched}, "bf16").shape
        for switched in (False, True)
    ]
    assert [each.mtp for each in found] == [True, False]
    assert [each.window is None for each in found] == [True, False]


def test_a_context_saturates_a_step_with_drafts_where_its_rate_says_so():
    shape = {"layers": 3, "D": 1024, "V": 512, "attention": {"N": 16, "K": 8, "H": 128}}
    model = Model("own", validate_entry(Shape, {**shape, "mlp": {"F": 2048}, "mtp": True}))

    def answer(context, batch):
        asked = {"B": batch, "S": context, "dtypes": "bf16", "calibration": "trtllm"}
        return rooflines.explain_model("h100-sxm", model, draft=THREE, **asked)

    def rate(context):
        return context / answer(context, 2**50).row["t_estimate_s"]

    (found,) = (
        each["plateau_estimate"] for each in answer(4096, 8).thresholds if each["axis"] == "S"
    )
    plateau = rate(2**40)
    assert rate(found - 1) < 0.9 * plateau <= rate(found) * (1 + 1e-12)
