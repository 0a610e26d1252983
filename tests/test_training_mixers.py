"""Training of states, chosen tokens and latent experts: by hand, laws, published FLOPs.

Random models of these families are compared with the oracle in `test_training_properties`.
"""

from fractions import Fraction
from typing import Any

import pytest

import rooflines
from rooflines import models
from rooflines.evaluation.row_frames import KernelTable, StepTable
from rooflines.hardware.entry_forms import validate_entry
from rooflines.models.architecture import Gqa, Shape
from rooflines.sweep.one_chip import sweep_on
from rooflines.training.parallel_plan import TrainingPlan
from rooflines.training.pipeline_stages import (
    LayerMix,
    Stage,
    single_layers,
    stages_of,
)
from rooflines.training.plan_parts import StatePlan
from rooflines.training.stage_memory import TrainedModel, saved_tensors

HYBRIDS = ("qwen3.5-35b-a3b", "qwen3.5-27b", "kimi-k3", "nemotron-3-nano", "nemotron-3-super")
SPARSE = ("deepseek-v3.2", "glm-5", "glm-5.2")

SMALL: dict[str, Any] = {
    "name": "small",
    "layers": 4,
    "D": 64,
    "V": 100,
    "attention": {"N": 8, "K": 2, "H": 16},
    "mlp": {"F": 96},
}
MAMBA = {"kind": "mamba2", "heads": 8, "key": 16, "value": 8, "groups": 2, "conv": 4}
DELTA = {"kind": "gated-delta", "heads": 8, "key": 8, "value": 8, "groups": 4, "conv": 4}
LATENT = {"kind": "mla", "N": 8, "q_rank": 24, "kv_rank": 16, "nope": 8, "rope": 4, "v": 8}
INDEXER = {"tokens": 16, "layers": 4, "heads": 2, "dim": 8}


def shape_of(form):
    """Shape of a model as a config writes it."""
    return validate_entry(Shape, {key: value for key, value in form.items() if key != "name"})


def tables_of(model, B, S, **plan):  # noqa: N803, letters of the docs
    """The row of a step on H100s, and its kernels by name."""
    keys: dict[str, Any] = {"phase": "train", "grid": {"B": B, "S": S}, "splits": [plan]}
    sweep = sweep_on(model, "h100-sxm", "bf16", thresholds=[], **keys)
    (row,) = StepTable(sweep).frame().collect().to_dicts()
    kernels = KernelTable(sweep).frame().collect().to_dicts()
    return row, {kernel["group"]: kernel for kernel in kernels}


# ---------------------------------------------------------------- by hand


def test_a_small_hybrid_has_the_flops_that_were_worked_out():
    """One layer with attention, three with a state, 32 tokens; three times the forward pass.

    qkv 64 x (128 + 2 x 32), o 128 x 64, MLP 3 x 64 x 96; Mamba-2 projects 64 to x and z, 64 each,
    B and C, 32 each, and 8 steps, and 64 back; a state of 8 x 16 x 8 takes 4 FLOP an element.
    """
    row, kernels = tables_of({**SMALL, "state": {**MAMBA, "layers": 3}}, 1, 32)
    linear = 12_288 + 8_192 + 4 * 18_432 + 3 * (64 * 200 + 64 * 64) + 100 * 64
    pairs, states = 4 * 8 * 16 * 33 / 2, 3 * 4 * 8 * 16 * 8
    assert row["flops"] == 3 * 32 * (2 * linear + pairs + states)
    forward, backward = kernels["state-fwd"], kernels["state-bwd"]
    assert (forward["count"], forward["flops"]) == (3, 32 * 4 * 1024)
    assert backward["flops"] == 2 * forward["flops"]


@pytest.mark.parametrize(
    ("state", "into", "inside", "behind"),
    [
        (MAMBA, (0, 64), 64 + 64 + 8 + 64, (64 + 64, 64)),
        (DELTA, (0, 64), 64 + 64 + 16 + 64, (64 + 64, 64)),
        ({**DELTA, "kind": "kda"}, (8, 64), 64 + 64 + 72 + 64, (64 + 64, 64)),
        ({**DELTA, "kind": "kda", "full_gate": False}, (16, 64), 264, (64 + 64, 64)),
    ],
)
def test_a_recurrence_keeps_its_projected_inputs_and_its_output(state, into, inside, behind):
    """Of the projection a norm's output, and low ranks; then q, k, v, steps and the output.

    Behind it the residual of 64 and the gates, and their product, which `selective` drops.
    """
    shape = shape_of({**SMALL, "state": {**state, "layers": 3}})
    saved = saved_tensors(shape, None, Fraction(2))
    first, recurrence, last = (saved[name] for name in ("state-in", "state", "state-out"))
    assert (first.required, first.recomputable) == into
    assert (recurrence.required, recurrence.recomputable) == (inside, 0)
    assert (last.required, last.recomputable) == behind


def test_an_indexer_scores_all_tokens_and_learns_from_those_it_chose():
    """Two heads of 8, 64 tokens: pairs with all, and with 16 at most in the backward pass."""
    model = {**SMALL, "attention": LATENT, "sparse": INDEXER}
    _, kernels = tables_of(model, 1, 64)
    chosen = 16 * 17 // 2 + 48 * 16
    assert kernels["indexer-fwd"]["flops"] == 2 * 2 * 8 * 64 * 65 // 2
    assert kernels["indexer-bwd"]["flops"] == 2 * 2 * 2 * 8 * chosen
    assert kernels["attention-window-fwd"]["flops"] == 2 * 8 * (12 + 8) * chosen
    passes = {name for name in kernels if name.startswith("index-")}
    assert passes == {
        f"index-{part}-{which}" for part in "qk" for which in ("fwd", "wgrad", "wgrad-add")
    }


def test_states_and_scores_are_repeated_in_hardware_flops_alone():
    """2 of Mamba-2's 4 products add to a state, so 1 is repeated; of an indexer the scores are."""
    mamba, sparse = {**MAMBA, "layers": 3}, {**INDEXER, "tokens": 64}
    for key, part, group, repeated in (
        ("state", mamba, "state-bwd", Fraction(1, 4)),
        ("state", {**DELTA, "layers": 3}, "state-bwd", Fraction(1, 3)),
        ("sparse", sparse, "indexer-bwd", Fraction(1, 2)),
    ):
        row, kernels = tables_of({**SMALL, key: part}, 1, 64)
        flops, lasting = row["flops"], row["t_lower_s"] / row["t_math_s"]
        attention = "attention-window-bwd" if key == "sparse" else "attention-bwd"
        again = repeated * kernels[group]["flops"] * kernels[group]["count"]
        again += kernels[attention]["flops"] * kernels[attention]["count"] / 4
        assert row["hfu"] * lasting * flops == pytest.approx(flops + again, rel=1e-12)
        assert row["mfu"] * lasting == pytest.approx(1, rel=1e-12)


# ---------------------------------------------------------------- laws

PLANS: list[dict[str, Any]] = [
    {},
    {"tp": 2, "dp": 2, "shard": "weights"},
    {"pp": 2, "dp": 2, "recompute": "selective"},
    {"tp": 2, "save": "gathered", "shard": "none"},
]
WORKS = ("flops", "memory_bytes", "network_bytes", "activation_bytes", "state_bytes", "saved_bytes")


@pytest.mark.parametrize("plan", PLANS, ids=str)
@pytest.mark.parametrize("state", [MAMBA, DELTA], ids=["mamba2", "gated-delta"])
def test_a_hybrid_without_states_is_the_plain_model(state, plan):
    """Works grow by as much with each layer that has a state in place of attention."""
    size = {"B": 4, "S": 48, **plan}
    plain, _ = tables_of({**SMALL, "name": "plain"}, **size)
    one, two = (
        tables_of({**SMALL, "name": "some", "state": {**state, "layers": layers}}, **size)[0]
        for layers in (1, 2)
    )
    for name in WORKS:
        assert 2 * one[name] - two[name] == pytest.approx(plain[name], rel=1e-12), name


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_a_sparse_model_with_all_tokens_chosen_is_latent_attention_and_its_indexer(plan):
    size = {"B": 4, "S": 48, **plan}
    form = {**SMALL, "attention": LATENT}
    dense, plain = tables_of({**form, "name": "plain"}, **size)
    some, sparse = tables_of({**form, "sparse": {**INDEXER, "tokens": 48}}, **size)
    for suffix in ("fwd", "bwd"):
        window, full = sparse[f"attention-window-{suffix}"], plain[f"attention-{suffix}"]
        assert window["flops"] == full["flops"]
    shared = {name: kernel for name, kernel in sparse.items() if name in plain}
    unlike = ("optimizer", "replicas", "optimizer-2", "replicas-2")
    for name in shared.keys() - {*unlike}:
        assert shared[name]["t_serial_s"] == pytest.approx(plain[name]["t_serial_s"]), name
    index = [kernel for name, kernel in sparse.items() if name.startswith("index")]
    more = sum(kernel["flops"] * kernel["count"] * kernel["runs"] / some["pp"] for kernel in index)
    assert some["flops"] == pytest.approx(dense["flops"] + more, rel=1e-12)
    fewer, _ = tables_of({**form, "sparse": {**INDEXER, "tokens": 12}}, **size)
    assert fewer["flops"] < some["flops"]


@pytest.mark.parametrize("stages", [1, 2, 5, 13])
@pytest.mark.parametrize("name", [*HYBRIDS, *SPARSE])
def test_layers_and_parameters_of_stages_sum_to_the_model(name, stages):
    model = models.load(name)
    trained = TrainedModel(model.shape, {})
    plan = StatePlan.from_plan(TrainingPlan.model_validate({"pp": stages}))
    parts = stages_of(model.shape, plan)
    assert sum(stage.layers for stage in parts) == model.shape.layers
    mixes = zip(*(stage.mix for stage in parts), strict=True)
    assert LayerMix(*map(sum, mixes)) == LayerMix.of_model(model.shape)
    counts = [trained.parameters_on[stage] for stage in parts]
    total = sum(sum(count) for count in counts)
    tied_copy = model.shape.table if model.shape.tied and stages > 1 else 0
    assert total == model.parameters().total + tied_copy


@pytest.mark.parametrize("name", [*HYBRIDS, *SPARSE])
def test_times_of_published_models_are_in_order_under_every_parallelism(name):
    for split in ({"dp": 64}, {"tp": 2, "pp": 4, "dp": 32, "recompute": "full"}):
        keys: dict[str, Any] = {"B": 64, "S": 4096, "split": split, "shard": "weights"}
        row = rooflines.train("gb300", name, **keys).row
        assert 0 < row["t_lower_s"] <= row["t_serial_s"] <= row["t_upper_s"]
        assert 0 < row["mfu"] <= 1


def test_layers_that_must_exist_are_those_that_hold_most():
    """Kimi K3's only MLP is in a layer with a state or with attention: no one knows in which."""
    shape = models.load("kimi-k3").shape
    kinds = [layer.mix for layer in single_layers(shape, Stage.whole(shape))]
    assert kinds == [LayerMix(attention=1, experts=1), LayerMix(states=1, experts=1)]
    single = models.load("nemotron-3-nano").shape
    parts = [layer.mix for layer in single_layers(single, Stage.whole(single))]
    assert parts == [LayerMix(attention=1), LayerMix(states=1), LayerMix(experts=1)]


LATENT_EXPERTS: dict[str, Any] = {
    **{key: value for key, value in SMALL.items() if key != "mlp"},
    "moe": {"E": 8, "k": 2, "Fe": 24, "latent": 32},
}


def test_tokens_go_to_experts_of_other_chips_in_their_latent_width():
    """A chip has one of a token's two experts with the chance 1 - 7/8 * 6/7."""
    _, kernels = tables_of(LATENT_EXPERTS, 8, 16, dp=8, ep=8)
    reached = 1 - 7 / 8 * 6 / 7
    assert kernels["experts-fwd"]["network_bytes"] == pytest.approx(2 * 7 * reached * 16 * 32 * 2)


def test_tokens_are_gathered_over_tp_in_the_latent_width_unless_shared_experts_read_them():
    gathered = 16 / 2 * 2  # half of the tokens, two bytes an element
    for shared, before, behind in ((0, 0, 2 * 32), (1, 64, 64)):
        moe = {**LATENT_EXPERTS["moe"], "shared": shared}
        _, kernels = tables_of({**LATENT_EXPERTS, "moe": moe}, 8, 16, tp=2)
        sent = [kernels[f"{name}-fwd"]["network_bytes"] for name in ("router", "experts")]
        assert sent == [before * gathered, behind * gathered]


# ---------------------------------------------------------------- published


def test_flops_of_nemotron_are_those_that_megatron_bridge_counts():
    """TFLOP/s over tokens/s a GPU, 26.02 to 26.08: 22.1 to 22.6 GFLOP a token, all pairs counted.

    Megatron-LM has 7 FLOP an element of a state, and convolutions.
    """
    row = rooflines.train("gb300", "nemotron-3-nano", B=8, S=8192, split={"dp": 8, "ep": 8}).row
    per_token = row["flops"] * row["mfu_full"] / row["mfu"] / 8192
    for tera, tokens in ((901, 39_936), (905, 40_960), (331, 14_890)):
        assert 1 < tera * 1e12 / tokens / per_token < 1.03


def test_six_flops_per_active_parameter_and_mixing_are_all():
    published = {"nemotron-3-nano": 4, "nemotron-3-ultra": 4, "qwen3.5-397b-a17b": 6}
    for name, per_element in published.items():
        model = models.load(name)
        counts, shape = model.parameters(), model.shape
        multiplied = counts.active - counts.norms - counts.biases
        state, attention = shape.state, shape.attention
        assert state is not None
        assert isinstance(attention, Gqa)
        mixing = 1.0 * state.layers * per_element * state.elements
        mixing += shape.attention_layers * 4 * attention.N * attention.H * 8193 / 2
        row = rooflines.train("gb300", name, B=64, S=8192, split={"dp": 64}).row
        assert row["flops"] / 8192 == pytest.approx(6 * multiplied + 3 * mixing, rel=1e-9)


def test_fits_apply_where_such_models_were_judged():
    def basis(model):
        row = rooflines.train("gb300", model, B=64, S=8192, dtypes="mxfp8", split={"dp": 64}).row
        return row["t_estimate_s"]

    assert basis("nemotron-3-super") > 0
    assert basis("deepseek-v3") > 0
    assert basis("deepseek-v3.2") is None
    assert basis("qwen3.5-27b") is None
