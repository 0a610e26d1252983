"""Memory of training: optimizers, adapters, loss and offload, against public numbers and laws."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rooflines
from rooflines import models
from rooflines.basics.errors import RooflinesError
from rooflines.config.model_fields import ModelSweepConfig
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.hardware.entry_forms import validate_entry
from rooflines.kinds.formulas import compile_formulas
from rooflines.kinds.kind_table import KINDS
from rooflines.models.architecture import Shape
from rooflines.models.model import Model
from rooflines.models.tensor_dtypes import training_dtypes
from rooflines.training.optimizers import OPTIMIZERS
from rooflines.training.parallel_plan import TrainingPlan
from rooflines.training.stage_memory import PlannedModel
from rooflines.training.training_kernels import ModelKernels

GIB, GB = 2**30, 1e9
SMALL, LARGE = "llama-3.1-8b", "llama-3.1-70b"
SHAPES = {
    "llama-1-65b": {
        "layers": 80,
        "D": 8192,
        "V": 32_000,
        "mlp": {"F": 22_016},
        "attention": {"N": 64, "K": 64, "H": 128},
    }
}


def model_of(name):
    return Model(name, validate_entry(Shape, SHAPES[name])) if name in SHAPES else models.load(name)


def planned(name, dtypes="bf16", **plan):
    """A model under a plan."""
    parsed = training_dtypes(dtypes)
    kernels = ModelKernels.with_dtypes(model_of(name).shape, parsed.bits(), parsed.compute_dtypes)
    return PlannedModel(kernels.model, validate_entry(TrainingPlan, plan))


def stage_of(planned_model):
    return planned_model.states.stages[0][0]


def memory_of(*of, **plan):
    held = planned(*of, **plan)
    return held.memory(stage_of(held))


def states_of(*of, **plan):
    return float(memory_of(*of, **plan).states)


def base_of(name, **plan):
    held = planned(name, lora=16, **plan)
    return float(held.states.frozen_bytes_on(stage_of(held)))


def a_layer(name, recompute="none", **plan):
    """Elements of a token that a layer saves."""
    shape = model_of(name).shape
    memory = memory_of(name, recompute=recompute, **plan)
    return memory.saved_per_chunk / (2 * shape.layers)


def inputs_of(name, tokens):
    """Bytes of all layers' inputs."""
    shape = model_of(name).shape
    return shape.layers * shape.D * 2 * tokens


# ---------------------------------------------------------------- worked values


def test_adapters_leave_out_the_gradients_of_frozen_weights():
    sizes: dict[str, Any] = {"B": 2, "S": 2048, "micro_batch": 2}
    full = rooflines.train("h100", SMALL, **sizes)
    lora = rooflines.train("h100", SMALL, lora=16, **sizes)
    assert [f"{answer.row['flops']:.6g}" for answer in (lora, full)] == [
        "1.30587e+14",
        "1.91035e+14",
    ]
    assert f"{lora.row['t_math_s'] * 1e3:.1f}" == "132.0"
    assert f"{lora.memory['model_flops_share']:.3f}" == "0.684"
    weights = model_of(SMALL).parameters().active_without_tables - 65 * 4096 + 128_256 * 4096
    pairs = 2 * 2048 * 2049 // 2
    attention = 3 * 4 * 32 * 128 * 32 * pairs
    assert lora.row["flops"] == 4096 * (4 * weights + 6 * 41_943_040) + attention


@pytest.mark.parametrize(
    ("model", "lora", "number"),
    [
        (SMALL, 16, 41_943_040),
        ("llama-2-70b", {"rank": 16, "on": ["qkv", "o"]}, 44_564_480),
        ("llama-1-65b", 64, 799_539_200),
    ],
)
def test_adapters_have_published_numbers_of_parameters(model, lora, number):
    held = planned(model, lora=lora)
    assert held.model.trained_parameters(held.plan.lora) == number


MOE = "qwen3-30b-a3b"
EXPERT_ADAPTERS = 48 * 16 * 3 * (2048 + 768)
"""Parameters of rank 16 on gate, up and down of one expert in each of 48 layers."""


@pytest.mark.parametrize(
    ("on", "number"),
    [
        ("experts", 128 * EXPERT_ADAPTERS),
        ("experts-down", 128 * EXPERT_ADAPTERS // 3),
        (["attention", "experts"], 128 * EXPERT_ADAPTERS + 13_369_344),
        ("all", 13_369_344),
    ],
)
def test_every_routed_expert_has_an_adapter_of_its_own_where_it_is_named(on, number):
    held = planned(MOE, lora={"rank": 16, "on": on})
    assert held.model.trained_parameters(held.plan.lora) == number


def test_adapters_of_experts_are_computed_for_those_that_a_token_uses_and_split_over_ep():
    sizes: dict[str, Any] = {"B": 8, "S": 2048, "split": "dp8", "shard": "none"}
    plain, added, shared_out = (
        rooflines.train("h100", MOE, lora={"rank": 16, "on": on}, **{**sizes, **more})
        for on, more in (
            ("attention", {}),
            (["attention", "experts"], {}),
            (["attention", "experts"], {"split": "ep8-dp8"}),
        )
    )
    tokens = 8 * 2048
    assert added.row["flops"] - plain.row["flops"] == tokens // 8 * 6 * 8 * EXPERT_ADAPTERS
    states = 18 * 128 * EXPERT_ADAPTERS
    assert added.row["state_bytes"] - plain.row["state_bytes"] == pytest.approx(states)
    trained = [part.memory["trained_state_bytes"] for part in (plain, added, shared_out)]
    assert trained[2] - trained[0] == pytest.approx((trained[1] - trained[0]) / 8)
    assert plain.memory["has_plain_experts"]
    assert not added.memory["has_plain_experts"]


@pytest.mark.parametrize(
    ("on", "elements"),
    [
        ("attention", 0),
        ("experts-gate", 8 * (2048 + 16)),
        ("experts-down", 8 * (768 + 16)),
        ("experts", 8 * (2048 + 768 + 3 * 16)),
    ],
)
def test_experts_save_the_inputs_that_their_adapters_need(on, elements):
    on = on if on == "attention" else ["attention", on]
    plain = a_layer(MOE, lora={"rank": 16, "on": "attention"})
    assert a_layer(MOE, lora={"rank": 16, "on": on}) - plain == elements


def test_shared_experts_have_one_adapter_for_all_of_them():
    """DeepSeek V3: one shared expert of 2,048; its tokens are the router's, saved once."""
    held = planned("deepseek-v3", lora={"rank": 16, "on": "shared"})
    assert held.model.trained_parameters(held.plan.lora) == 58 * 16 * 3 * (7168 + 2048)
    saved = held.saved
    assert (saved["router"].recomputable, saved["shared"].recomputable) == (7168, 2048)
    plain = planned("deepseek-v3", lora={"rank": 16, "on": "attention"}).saved
    assert (plain["router"].recomputable, plain["shared"].recomputable) == (0, 0)


@pytest.mark.parametrize(
    ("base", "gigabytes"),
    [("bf16", "16.0605"), ("fp8", "9.0812"), ("int8", "9.0812"), ("nf4", "5.7023")],
)
def test_a_frozen_base_has_the_bytes_of_its_format(base, gigabytes):
    assert f"{base_of(SMALL, base=base) / GB:.4f}" == gigabytes


def test_qlora_of_65b_is_that_of_its_paper():
    """Dettmers et al. 2023: 48 GB, more than 780 GB for all weights, about 3 GB saved."""
    shape = model_of("llama-1-65b").shape
    base = base_of("llama-1-65b", base="nf4")
    assert f"{base / GB:.2f}" == "34.46"
    dtypes = {"weights": "bf16", "gradients": "bf16"}
    held = states_of("llama-1-65b", dtypes, lora=64, base="nf4", optimizer=8)
    assert f"{held / GB:.2f}" == "44.05"
    assert held < 48 * GB
    full = states_of("llama-1-65b", dtypes, optimizer=8)
    assert f"{full / GB:.1f}" == "783.4"
    saved = base_of("llama-1-65b", base="nf4-single") - base
    assert f"{saved / GB:.2f}" == "3.02"
    linear = shape.layers * (4 * shape.D**2 + 3 * shape.D * 22_016)
    assert base_of("llama-1-65b", base="nf4") - base_of(
        "llama-1-65b", base="bf16"
    ) == pytest.approx(linear * (Fraction("4.126953125") - 16) / 8)


@pytest.mark.parametrize(
    ("model", "plan", "elements"),
    [
        (SMALL, {}, 69_696),
        (SMALL, {"lora": 16}, 69_808),
        (SMALL, {"lora": {"rank": 16, "on": "attention"}}, 51_328),
        (SMALL, {"lora": 16, "recompute": "selective"}, 47_280),
        (LARGE, {"lora": 16}, 137_456),
        (LARGE, {"lora": {"rank": 16, "on": "attention"}}, 100_544),
        (LARGE, {"lora": 16, "recompute": "selective"}, 92_400),
    ],
)
def test_a_layer_saves_inputs_only_where_adapters_need_them(model, plan, elements):
    assert a_layer(model, **plan) == elements


@pytest.mark.parametrize(
    ("model", "weights", "gradients"), [(SMALL, "0.87", "0.44"), (LARGE, "3.42", "1.71")]
)
def test_two_layers_and_one_gradient_are_in_flight(model, weights, gradients):
    plan = {"dp": 8, "shard": "weights"}
    both = float(memory_of(model, optimizer="adam-bf16", **plan).gathered)
    frozen = float(memory_of(model, lora=1, **plan).gathered)
    gathered = both * 2 / 3
    assert (f"{gathered / GB:.2f}", f"{both / 3 / GB:.2f}") == (weights, gradients)
    assert gathered < frozen < gathered * 1.01
    assert memory_of(model, shard="weights").gathered == 0


def test_a_loss_holds_logits_of_all_tokens_or_of_a_chunk():
    """131,072 tokens of Qwen3: 39.83 GB of logits in bf16 alone."""
    logits, chunked, fused = (
        memory_of("qwen3-8b", loss=loss) for loss in ("logits", {"chunks": 8}, "fused")
    )
    tokens, vocabulary = 131_072, 151_936
    saved = float(logits.transient - fused.transient) * tokens
    assert f"{saved / GB:.2f}" == "39.83"
    assert fused.transient == 2 * 2 * 4096
    assert chunked.transient == fused.transient
    assert (logits.loss, chunked.loss, fused.loss) == (8 * vocabulary, vocabulary, 0)


@pytest.mark.parametrize(
    ("optimizer", "sizes"),
    [
        ("adam", (2, 4, 4, 8)),
        ("adam-bf16", (2, 2, 0, 4)),
        ("adam-8bit", (2, 2, 0, 2.03125)),
        ("sgd", (2, 4, 4, 0)),
        ("sgd-momentum", (2, 4, 4, 4)),
    ],
)
def test_an_optimizer_has_its_bytes_per_parameter(optimizer, sizes):
    parameters = model_of(SMALL).parameters().total
    assert states_of(SMALL, optimizer=optimizer) == parameters * sum(sizes)
    answer = rooflines.train("h100", SMALL, B=1, S=512, optimizer=optimizer)
    (step,) = [group for group in answer.groups if group["group"] == "optimizer"]
    weight, gradient, master, states = sizes
    moved = gradient + weight + 2 * (master + states)
    assert step["memory_bytes"] == pytest.approx(parameters * moved)


def test_adafactor_and_muon_have_states_of_matrices():
    sgd = states_of(SMALL, optimizer="sgd")
    norms = 65 * 4096
    adafactor = states_of(SMALL, optimizer="adafactor") - sgd - 4 * norms
    assert f"{adafactor / 1e6:.1f}" == "11.5"
    outside = 2 * 128_256 * 4096 + norms
    matrices = model_of(SMALL).parameters().total - outside
    assert states_of(SMALL, optimizer="muon") - sgd == 4 * matrices + 8 * outside
    half = {"weights": "bf16", "moments": "bf16"}
    assert states_of(SMALL, half, optimizer="muon") - sgd == 2 * matrices + 4 * outside


def test_a_step_of_muon_adds_its_kernels_flops():
    (formula,) = [KINDS["muon"].flops]
    compute = compile_formulas((formula,), {}, ("D", "F"))
    matrices = [(4096, 4096)] * 2 + [(1024, 4096)] * 2 + [(4096, 14_336)] * 3
    expected = 32 * sum(compute(*sizes)[0] for sizes in matrices)
    plain, muon = (
        rooflines.train("h100", SMALL, B=8, S=512, split="dp8", optimizer=name).row
        for name in ("adam", "muon")
    )
    assert muon["flops"] - plain["flops"] == pytest.approx(expected / 8)
    assert muon["mfu"] * muon["t_lower_s"] == pytest.approx(plain["mfu"] * plain["t_lower_s"])


# ---------------------------------------------------------------- public peaks

TOKENS = 2 * 2048


def public_peaks():
    """Name, what is held [byte] by the page's sum, its digits and unit, and the printed peak."""
    pure = {"optimizer": "adam-bf16"}
    freed = {"gradients": "freed", "optimizer": "adam-8bit", "offload": ["states"]}
    freed_states = states_of(SMALL, **freed)
    selective = 2 * TOKENS
    small, large = (a_layer(name, "selective") * selective for name in (SMALL, LARGE))
    inputs = {name: inputs_of(name, TOKENS) for name in (SMALL, LARGE, "llama-3.1-405b")}
    yield "8B, gradients freed", freed_states + inputs[SMALL] + small, "17.3", GIB, 18.9
    base = base_of(SMALL)
    yield (
        "8B LoRA, compiled",
        base + 32 * a_layer(SMALL, "selective") * selective,
        "26.5",
        GIB,
        30.3,
    )
    yield "8B LoRA, inputs offloaded", base + small, "15.3", GIB, 16.2
    yield "8B QLoRA", base_of(SMALL, base="nf4") + inputs[SMALL] + small, "6.67", GIB, 7.4
    for name, plan, layer, digits, printed in (
        (LARGE, {}, large, "25.3", 27.6),
        ("llama-3.1-405b", {"base": "nf4"}, 0, "43.9", 44.8),
    ):
        shared = {"dp": 8, "shard": "weights"}
        held = planned(name, lora=16, **plan, **shared)
        base = float(held.states.frozen_bytes_on(stage_of(held)))
        layers = model_of(name).shape.layers
        linear = base_of(name, **plan) - 2 * 2 * 128_256 * model_of(name).shape.D
        two = 2 * linear / layers
        yield name, base + two + inputs[name] + layer, digits, GIB, printed
    for doubling, (digits, printed) in enumerate(
        zip(("4.6", "5.0", "5.8", "7.4", "10.6", "17.1"), (6, 7, 9, 12, 19, 32), strict=True)
    ):
        tokens = 1024 * 2**doubling
        dtypes = {"weights": "bf16", "gradients": "fp32"}
        held = states_of("llama-2-7b", dtypes, lora=8, base="nf4", optimizer=10)
        tensors = inputs_of("llama-2-7b", tokens) + float(a_layer("llama-2-7b")) * 2 * tokens
        yield f"7B QLoRA at {tokens}", held + tensors, digits, GB, printed
    # Between steps there is no gradient: that of the largest tensor, a table, is taken off.
    phi = states_of("phi-4", optimizer="adam-bf16", gradients="freed", shard="weights", dp=8)
    shape = model_of("phi-4").shape
    yield "Phi-4 between steps", phi - 2 * shape.V * shape.D / 8, "10.24", GIB, 10.33
    for name, digits, printed in (
        ("qwen3-0.6b", "5.7", 27.9),
        ("qwen3-8b", "24.9", 56.2),
        ("qwen3-30b-a3b", "44.3", 46.0),
    ):
        sharing = {"cp": 8, "shard": "weights", "recompute": "full", **pure}
        memory = memory_of(name, loss="fused", offload=["saved"], **sharing)
        head = 2 * 2 * model_of(name).shape.D / 8
        held = float(memory.states) + (float(memory.transient) - head) * 1_048_576
        yield name, held, digits, GB, printed


@pytest.mark.parametrize("peak", [*public_peaks()], ids=lambda peak: peak[0])
def test_what_is_held_is_below_a_public_peak(peak):
    _, held, digits, unit, printed = peak
    places = len(digits.partition(".")[2])
    assert f"{float(held) / unit:.{places}f}" == digits
    assert float(held) / unit < printed


def test_stages_of_a_70b_hold_too_much_for_a_chip():
    """4 sequences of 1,024 on pp 8, dp 4: out of memory at 79.11 GiB."""
    plan = {"pp": 8, "dp": 4, "shard": "weights", "optimizer": "adam-bf16", "micro_batch": 4}
    held = planned(LARGE, **plan)
    stages = [(held.memory(stage), number) for stage, number in held.states.stages]
    mean = sum(float(memory.states) * number for memory, number in stages) / 8
    assert f"{mean / GB:.2f}" == "17.64"
    first = max((memory for memory, _ in stages), key=lambda memory: memory.max_in_flight)
    assert f"{float(first.saved_per_chunk) * 8 * 1024 / GB:.1f}" == "90.0"
    selective = planned(LARGE, recompute="selective", **plan)
    (kept, *_) = [selective.memory(stage) for stage, _ in selective.states.stages]
    assert f"{float(kept.saved_per_chunk) * 8 * 1024 / GB:.1f}" == "60.5"


def test_inputs_of_layers_are_those_of_a_public_table():
    for tokens, gib in ((1_048_576, 288), (131_072, 36)):
        memory = memory_of("qwen3-8b", recompute="full")
        assert float(memory.saved_per_chunk) * tokens / GIB == gib


# ---------------------------------------------------------------- offload


def test_offloaded_tensors_take_the_link_to_the_host_each_way():
    host = chip_entries()["h100-sxm"].networks["pcie"].exact.bytes_per_s
    plain, saved, both = (
        rooflines.train("h100", SMALL, B=1, S=2048, offload=parts).row
        for parts in (None, "saved", "saved,states")
    )
    layers = float(memory_of(SMALL).saved_per_chunk) * 2048
    assert saved["offload_bytes"] == pytest.approx(2 * layers)
    assert saved["t_network_s"] == pytest.approx(layers / float(host))
    assert saved["network_bytes"] == plain["network_bytes"] == plain["offload_bytes"] == 0
    parameters = model_of(SMALL).parameters().total
    down, up = layers + 4 * parameters, layers + 2 * parameters
    assert both["offload_bytes"] == pytest.approx(down + up)
    assert both["t_network_s"] == pytest.approx(down / float(host))


def test_the_host_link_is_a_network_beside_that_of_the_chips():
    apart, offloaded = (
        rooflines.train("h100", SMALL, B=8, S=4096, split="dp8", shard="fsdp", offload=parts).row
        for parts in (None, "saved")
    )
    alone = rooflines.train("h100", SMALL, B=1, S=4096, offload="saved").row
    assert offloaded["t_network_s"] == pytest.approx(
        max(apart["t_network_s"], alone["t_network_s"])
    )
    assert offloaded["network_bytes"] == apart["network_bytes"]


# ---------------------------------------------------------------- laws

LEVERS = st.fixed_dictionaries(
    {
        "optimizer": st.sampled_from([*OPTIMIZERS, 6.0]),
        "gradients": st.sampled_from(["kept", "freed"]),
        "loss": st.sampled_from(["logits", "fused", {"chunks": 3}]),
        "recompute": st.sampled_from(["none", "selective", "full"]),
        "lora": st.sampled_from([None, 4, {"rank": 8, "on": "attention"}]),
        "shard": st.sampled_from(["none", "optimizer", "gradients", "weights"]),
        "dp": st.sampled_from([1, 4]),
        "tp": st.sampled_from([1, 2]),
        "pp": st.sampled_from([1, 2]),
    }
)


def totals(plan):
    """Held and peak bytes of the fullest stage at 512 tokens."""
    held = planned("qwen3-0.6b", **plan)
    stages = [held.memory(stage) for stage, _ in held.states.stages]
    factor = held.plan.working_factor or 1
    kept = [float(memory.states + memory.saved(4) * 512) for memory in stages]
    more = [float(memory.gathered + memory.loss * 512) for memory in stages]
    peak = max(own * factor + extra for own, extra in zip(kept, more, strict=True))
    return max(kept), peak


@given(LEVERS, st.sampled_from([["saved"], ["states"], ["saved", "states"]]))
def test_levers_keep_their_laws(plan, offload):
    held, peak = totals(plan)
    assert held <= peak
    saved = float(totals({**plan, "offload": offload})[0])
    if "saved" not in offload or plan["pp"] == 1:  # a layer's tensors stay, once
        assert saved <= held * (1 + 1e-12)
    assert totals({**plan, "stack": "megatron"})[0] == held
    assert totals({**plan, "gradients": "freed"})[0] <= totals({**plan, "gradients": "kept"})[0]
    assert totals({**plan, "loss": "fused"})[0] <= held
    if plan["lora"] is not None:
        assert held <= totals({**plan, "lora": None, "gradients": "kept"})[0]


def test_levers_that_are_off_give_the_plain_answer():
    off: dict[str, Any] = {
        "optimizer": "adam",
        "gradients": "kept",
        "loss": "logits",
        "lora": None,
        "base": None,
        "offload": (),
        "stack": None,
    }
    plain = rooflines.train("h100", SMALL, B=8, S=2048, split="dp8").row
    assert rooflines.train("h100", SMALL, B=8, S=2048, split="dp8", **off).row == plain


def test_fits_says_what_it_compares():
    plain, named, typed = (
        rooflines.train("h100", SMALL, B=8, S=4096, split="dp8", shard="fsdp", stack=stack).row
        for stack in (None, "megatron", 1.1)
    )
    assert [row["fits_by"] for row in (plain, named, typed)] == ["held", "peak", "peak"]
    assert plain["working_bytes"] is None
    assert named["working_bytes"] == pytest.approx(0.044 * named["held_bytes"])
    assert typed["peak_bytes"] == pytest.approx(
        1.1 * typed["held_bytes"] + typed["in_flight_bytes"]
    )
    assert plain["max_S"] > named["max_S"] > typed["max_S"]
    full = rooflines.train(
        "h100", SMALL, B=8, S=named["max_S"], split="dp8", shard="fsdp", stack="megatron"
    ).row
    assert full["fits"]
    assert full["peak_bytes"] > 0.999 * 85_018_279_936


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"lora": 0}, "lora rank is 0, which is less than 1."),
        ({"base": "nf4"}, "base is nf4, but no weights are frozen."),
        ({"lora": 4, "base": "nf5"}, "base is 'nf5', which is no format of frozen weights."),
        ({"lora": {"rank": 4, "on": "q-b"}}, "has q-b, but the model's projections are q, k, v, o"),
        ({"lora": {"rank": 4, "on": ["qkv", "q"]}}, "has q, and q a second time"),
        ({"lora": {"rank": 4, "on": "experts"}}, "has experts, but the model's projections are q"),
        ({"loss": "chunked=0"}, "loss is '0', which is less than 1."),
        ({"loss": "softmax"}, "loss is 'softmax', which is no loss."),
        ({"offload": "weights"}, "offload is 'weights', which is nothing that is offloaded."),
        ({"optimizer": "lion"}, "optimizer is 'lion', which is no optimizer."),
        ({"optimizer": -1}, "optimizer is -1 bytes per parameter"),
        ({"stack": "deepspeed"}, "stack is 'deepspeed', a training stack without a fitted factor."),
        ({"stack": 0.5}, "stack is 0.5, but a peak is at least what is held."),
        (
            {"optimizer": "adam-bf16", "dtypes": {"weights": "bf16", "gradients": "fp8"}},
            "adam-bf16 does not have gradients in fp8",
        ),
        ({"gradients": "freed", "B": 2}, "B is not 1, dp * micro_batch, and freed gradients"),
    ],
)
def test_a_mistake_gets_one_line(keys, message):
    with pytest.raises(RooflinesError, match="fix: ") as raised:
        rooflines.train("h100", SMALL, **{"B": 1, "S": 512, **keys})
    assert message in str(raised.value).splitlines()[0]


def test_adapters_are_not_of_serving():
    sweep = {"models": [SMALL], "chips": ["h100-sxm"], "grid": {"B": [1], "S": [512]}}
    with pytest.raises(RooflinesError, match="lora is given, but is of training"):
        validate_entry(ModelSweepConfig, {**sweep, "dtypes": ["bf16"], "lora": 4})


@pytest.mark.parametrize(
    "plan",
    [
        {"lora": 16, "base": "nf4-single", "loss": "fused", "dp": 4},
        {"lora": {"rank": 8, "on": ["gate-up", "q"]}, "offload": ["saved", "states"]},
        {"lora": {"rank": 8, True: "q,v"}},  # as YAML reads it
        {"optimizer": "adam-8bit", "gradients": "freed", "loss": {"chunks": 8}, "stack": 1.1},
        {"optimizer": 7.5, "stack": "megatron", "shard": "weights", "recompute": "full"},
    ],
)
def test_a_plan_is_read_from_its_name(plan):
    parsed = validate_entry(TrainingPlan, plan)
    assert validate_entry(TrainingPlan, TrainingPlan.keys_of(parsed.name)) == parsed


# ---------------------------------------------------------------- MLPerf

LORA_RUN = {"rank": 16, "on": ["qkv", "o"]}


def bound_of(chip, form, batch=8, chips=8):
    """Least time of a step of Llama 2 70B LoRA [s], every product at one rate."""
    dtypes = {"weights": form, "compute": form, "attention": form}
    plan = {"dp": batch, "cp": chips // batch} if chips > batch else {"dp": chips}
    return rooflines.train(
        chip, "llama-2-70b", B=batch, S=8192, dtypes=dtypes, split=plan, lora=LORA_RUN, bound=True
    ).row


@pytest.mark.parametrize(
    ("chip", "form", "seconds"),
    [
        ("h200", "fp8", "1.2722"),
        ("b200", "nvfp4", "0.2797"),
        ("mi300x", "fp8", "0.9628"),
        ("gb300", "nvfp4", "0.1678"),
    ],
)
def test_a_lora_step_of_mlperf_has_its_bound(chip, form, seconds):
    row = bound_of(chip, form)
    assert f"{row['flops']:.5e}" == "2.51770e+15"
    assert f"{row['t_math_s']:.4f}" == seconds


@pytest.mark.parametrize(("recompute", "inputs"), [("none", 2 * 4096 + 14_336), ("selective", 0)])
def test_fp8_saves_the_inputs_of_linear_layers_in_a_byte(recompute, inputs):
    """Attention's tensors, norms' inputs and those of the activation stay in two bytes."""
    wide, narrow = (
        memory_of(SMALL, {"weights": "fp8", "compute": "fp8", **saved}, recompute=recompute)
        for saved in ({}, {"saved_inputs": "fp8"})
    )
    assert wide.saved_per_chunk - narrow.saved_per_chunk == 32 * inputs
    assert wide.transient == narrow.transient
