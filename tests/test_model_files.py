"""Files of models as tools of the field write them: counts, caches, bits and notes, or the reason.

Each config is the smallest that shows its claim; numbers are counts of the classes of transformers
under the same `model_type`, publishers' counts, or sums by hand.
"""

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from case_files import case
from command_line import refused, said
from hf_configs import config_of, small
from outputs_made import make_outputs
from sheets import read_workbook, table_of
from spreadsheet import written as workbook_of

import rooflines
from rooflines import RooflinesError, models
from rooflines.models.library import models_of
from rooflines.models.memory import cached_tensors

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
"""Llama 3.1 8B."""

PARAMETERS = 8_030_261_248

QWEN_VL: dict[str, Any] = {
    "model_type": "qwen3_vl",
    "text_config": {
        "model_type": "qwen3_vl_text",
        "hidden_size": 2048,
        "intermediate_size": 6144,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "vocab_size": 151936,
        "max_position_embeddings": 262144,
        "dtype": "bfloat16",
    },
    "tie_word_embeddings": True,
    "vision_config": {"depth": 24},
}
"""Qwen3-VL 2B, a fifth of which is the encoder."""

ENCODER = "the text part, without its encoders"


def written(folder, config):
    """The path of a config.json."""
    file = folder / "config.json"
    file.write_text(json.dumps(config), encoding="utf-8")
    return str(file)


def quantized(**stated):
    """Llama 3.1 8B with a quantization."""
    return models.from_hf({**LLAMA, "quantization_config": stated})


# ---------------------------------------------------------------- caches


def test_keys_and_values_of_one_projection_are_both_cached():
    """Gemma 4 26B-A4B: keys are normed and rotated, values normed alone (vllm#43308)."""
    gemma = models.load("gemma-4-26b-a4b")
    full, near = 5 * 2 * 2 * 512, 25 * 2 * 8 * 256
    assert gemma.kv_cache_elements(1) == full + near == 112_640
    assert gemma.kv_cache_bytes(131_072, "bf16") == 2 * (full * 131_072 + near * 1024)
    assert 25.1e9 < gemma.parameters().total < 25.3e9


def test_inputs_of_short_convolutions_are_part_of_the_state():
    """Kimi K3: three tokens of 36,864 channels in bf16 beside 3.15 MB, 232 MB in 69 layers."""
    kimi = models.load("kimi-k3")
    state, inputs = 96 * 128 * 128 * 2, 3 * 3 * 96 * 128 * 2
    assert inputs == 221_184
    assert kimi.state_bytes() == 69 * (state + inputs)
    assert kimi.kv_cache_bytes(1, "fp8") == kimi.state_bytes() + kimi.kv_cache_elements(1)
    (group,) = (each for each in kimi.groups("decode") if each.name == "state")
    moved = group.layer_cost("cache", models.Step(1, 100)) * 2
    assert moved == 2 * state + inputs + inputs / 3


def test_the_list_of_models_has_states_apart_from_what_a_token_adds(capsys):
    rows = {row["model"]: row for row in json.loads(said(capsys, "models", "--json"))}
    row, model = rows["kimi-k3"], models.load("kimi-k3")
    assert row["kv_cache_bytes_per_token_bf16"] == 24 * 576 * 2
    assert row["state_bytes"] == model.state_bytes()
    assert rows["llama-3.1-8b"]["state_bytes"] == 0
    assert "state/sequence" in said(capsys, "models").partition("\n")[0]


# ---------------------------------------------------------------- heads


def test_a_reward_model_has_its_score_head_and_decodes_nothing(tmp_path, capsys):
    reward = {**LLAMA, "architectures": ["LlamaForSequenceClassification"], "id2label": {"0": "x"}}
    model = models.from_hf(reward)
    assert model.parameters().total == PARAMETERS - 128256 * 4096 + 4096 == 7_504_928_768
    assert model.note == "a score head of 1 in place of an LM head"
    (head,) = (each for each in model.groups("prefill") if each.name == "unembed")
    assert head.layer_cost("flops", models.Step.prefill(1, 2048)) == 2 * 4096
    answer = rooflines.explain_model("h100-sxm", model, B=1, S=2048, phase="prefill")
    (scores,) = (each for each in answer.groups if each["group"] == "unembed")
    assert (scores["weight_bytes"], scores["flops"]) == (2 * 4096, 2 * 4096)
    assert answer.row["weights_footprint_bytes"] == 2 * 7_504_928_768
    file = written(tmp_path, reward)
    asked = ("explain", "h100", file, "B=1", "S=2048")
    assert "a score head: it decodes no tokens" in refused(capsys, *asked)
    assert "compute-bound" in said(capsys, *asked, "--phase", "prefill")


def test_an_embedding_model_has_no_head():
    model = models.from_hf({**LLAMA, "architectures": ["LlamaModel"]})
    assert model.parameters().total == PARAMETERS - 128256 * 4096
    assert not [each for each in model.groups("prefill") if each.name == "unembed"]
    assert model.note == "without an LM head"
    heads = {**LLAMA, "architectures": ["LlamaForTokenClassification"]}
    with pytest.raises(RooflinesError, match="ForTokenClassification', whose head is not modelled"):
        models.from_hf(heads)


def test_labels_and_architecture_of_the_whole_model_hold_for_its_text_part():
    whole = {**QWEN_VL, "architectures": ["Qwen3VLForSequenceClassification"], "num_labels": 3}
    assert models.from_hf(whole).shape.scores == 3


# ---------------------------------------------------------------- dtypes


def test_gptq_with_a_quantized_head_has_no_head_in_bf16():
    model = quantized(quant_method="gptq", bits=4, group_size=128, lm_head=True)
    assert model.dtypes is not None
    table, norms = 128256 * 4096, 65 * 4096
    stored = model.dtypes.storage_dtypes
    assert (stored["head"], stored["lm_head"]) == ("bf16", "int4-g128-zp")
    of_matrices = (PARAMETERS - table - norms) * Fraction(415625, 800000)
    assert model.weights_bytes() == of_matrices + 2 * (table + norms)
    answer = rooflines.explain_model("h100-sxm", model, B=1, S=1)
    (head,) = (each for each in answer.groups if each["group"] == "unembed")
    assert head["weight_bytes"] == table * 4.15625 / 8
    assert answer.row["t_lower_s"] == pytest.approx(1.16e-3, abs=5e-6)
    assert "the embedding is bf16, the LM head int4-g128-zp" in " ".join(str(answer).split())


def test_a_typed_lm_head_is_read_held_and_named():
    form = {"weights": "bf16", "cache": "bf16", "activations": "bf16", "compute": "bf16"}
    head = {"lm_head": "int4"}
    rows = []
    for dtypes in (form, form | head):
        answer = rooflines.explain_model("h100-sxm", "llama-3.1-8b", B=1, S=1, dtypes=dtypes)
        (unembed,) = (each for each in answer.groups if each["group"] == "unembed")
        rows.append((answer.row["weights_footprint_bytes"], unembed["weight_bytes"]))
        assert ("lm_head:int4" in answer.row["dtypes"]) == (dtypes != form)
    saved = 128256 * 4096 * Fraction(3, 2)
    assert [before - after for before, after in zip(*rows, strict=True)] == [saved, saved]


def test_a_quantized_head_is_true_or_false():
    with pytest.raises(RooflinesError, match="lm_head is 'yes', which is neither true nor false"):
        quantized(quant_method="gptq", bits=4, group_size=128, lm_head="yes")


def test_norms_biases_and_routers_are_stored_as_the_file_says_and_read_so():
    """Qwen3 30B-A3B: 48 routers of 2048 x 128, a seventieth of what is no expert."""
    config = config_of("qwen3-30b-a3b")
    config["quantization_config"] = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    model = models.from_hf(config)
    assert model.dtypes is not None
    counts, routers = model.parameters(), 48 * 2048 * 128
    assert (counts.router, model.dtypes.storage_dtypes["rest"]) == (routers, "bf16")
    tables = counts.embedding + counts.unembedding
    wide = tables + counts.norms + routers
    assert model.weights_bytes() == counts.total + wide
    answer = rooflines.explain_model("h100-sxm", model, B=1, S=1)
    (router,) = (each for each in answer.groups if each["group"] == "router")
    assert router["weight_bytes"] == 2 * 2048 * 128
    held = answer.row["weights_footprint_bytes"]
    assert held == model.weights_bytes()
    split = rooflines.explain_model("h100-sxm", model, B=1, S=1, split={"tp": 2})
    assert split.row["weights_footprint_bytes"] == held / 2 + routers


def test_a_quantized_file_of_huge_sizes_is_read():
    huge = {**LLAMA, "hidden_size": 8192, "num_attention_heads": 2**28, "head_dim": 128}
    left_out = ["lm_head", "model.layers.0.mlp.up_proj"]
    huge["quantization_config"] = {"quant_algo": "NVFP4", "exclude_modules": left_out}
    dtypes = models.from_hf(huge).dtypes
    assert dtypes is not None
    assert sum(dtypes.mixed["weights"].values()) > 2**53


# ---------------------------------------------------------------- families


def test_keys_of_windows_that_transformers_does_not_write_are_those_of_the_class():
    """MiMo-V2-Flash: 308,778,768,832 parameters of its class, and 256 routing biases a layer."""
    mimo = {
        "model_type": "mimo_v2_flash",
        "hidden_size": 4096,
        "intermediate_size": 16384,
        "moe_intermediate_size": 2048,
        "num_hidden_layers": 48,
        "num_attention_heads": 64,
        "num_key_value_heads": 4,
        "head_dim": 192,
        "v_head_dim": 128,
        "n_routed_experts": 256,
        "num_experts_per_tok": 8,
        "vocab_size": 152576,
        "sliding_window": 129,
        "dtype": "bfloat16",
        "layer_types": [
            "full_attention" if i == 0 or (i + 1) % 6 == 0 else "sliding_attention"
            for i in range(48)
        ],
        "mlp_layer_types": ["dense"] + ["sparse"] * 47,
    }
    model = models.from_hf(mimo)
    assert model.parameters().total == 308_778_768_832 + 47 * 256
    stores = {store.layers: store.elements for store in cached_tensors(model.shape)}
    assert stores == {9: 4 * (192 + 128), 39: 8 * (192 + 128)}
    without = {key: value for key, value in mimo.items() if not key.endswith("layer_types")}
    assert models.from_hf(without).shape == model.shape


def test_layers_of_cross_attention_are_held_and_not_run():
    """Llama 3.2 Vision 11B: its text without images is Llama 3.1 8B, and eight rows of a table."""
    config = case("families")["counted"]["llama-3.2-11b-vision"]["config"]
    model, alone = models.from_hf(config), models.from_hf(LLAMA)
    counts, held = model.parameters(), 8 * (218_112_000 + 2 * 128 + 2)
    assert counts.groups["crossed"] == held
    assert counts.total == PARAMETERS + held + 8 * 4096
    assert counts.active == alone.parameters().active
    assert model.kv_cache_elements(100) == alone.kv_cache_elements(100)
    rows = [
        rooflines.explain_model("h100-sxm", each, B=1, S=100, dtypes="bf16").row
        for each in (model, alone)
    ]
    assert rows[0]["t_lower_s"] == rows[1]["t_lower_s"]
    more = [row["weights_footprint_bytes"] for row in rows]
    assert more[0] - more[1] == 2 * (held + 8 * 4096)
    assert "8 layers of cross-attention are stored, and skipped" in (model.note or "")
    left_out = {"quant_method": "fp8", "modules_to_not_convert": ["model.layers.38.cross_attn"]}
    text = {**config["text_config"], "quantization_config": left_out}
    dtypes = models.from_hf({**config, "text_config": text}).dtypes
    assert dtypes is not None
    assert dtypes.mixed["weights"]["bf16"] == 4096 * (4096 + 2 * 1024) + 4096 * 4096


# ---------------------------------------------------------------- titles and notes


def test_a_title_is_what_was_asked(tmp_path, capsys):
    file = written(tmp_path, {**LLAMA, "_name_or_path": "/scratch/user/checkpoints/step-500"})
    for words in (("explain", "h100", file, "B=1", "S=2048"), ("models", file)):
        shown = said(capsys, *words).replace("\n", "")
        assert "step-500" not in shown
        assert file in shown


def test_notes_on_a_model_are_part_of_every_answer(tmp_path, capsys):
    file = written(tmp_path, QWEN_VL)
    asked = (file, "B=8", "S=2048")
    for command in (
        ("explain", "h100", *asked),
        ("explain", "h100", "b200", *asked),
        ("explain", "h100", *asked, "--phase", "prefill"),
        ("explain", "h100", *asked, "--split", "auto", "--chips", "2"),
        ("train", "h100", *asked),
        ("train", "h100", *asked, "--split", "auto", "--chips", "2"),
        ("models", file),
    ):
        for form in ((), ("--json",), ("--csv",)):
            assert ENCODER in said(capsys, *command, *form).replace("\n", " "), (command, form)
    model = models.from_hf(QWEN_VL)
    answer = rooflines.explain_model("h100", model, B=8, S=2048)
    assert answer.assumptions["model"] == ENCODER == answer.to_dict()["assumptions"]["model"]
    training = rooflines.train("h100", model, B=8, S=2048)
    assert ENCODER in training.table_row()["note"]
    frame = rooflines.best_splits("h100", model, B=8, S=2048, chips=2)
    assert frame["note"].str.contains(ENCODER, literal=True).all()
    assert frame.schema["note"] == pl.String


def test_notes_on_a_model_go_with_its_tables_and_into_the_workbook(tmp_path, capsys):
    own = {"name": "mine", "hf": written(tmp_path, QWEN_VL)}
    sweep = {"models": [own, "llama-3.1-8b"], "grid": {"B": [1, 8], "S": [1024]}}
    sweep |= {"dtypes": ["bf16"], "chips": ["h100-sxm"], "splits": [{"tp": 1}]}
    config = tmp_path / "own.yaml"
    config.write_text(json.dumps({"model-sweeps": {"serve": sweep}, "charts": []}))
    results = tmp_path / "results"
    make_outputs(
        str(config), results, "thresholds.parquet", "model-thresholds.parquet", "summary.csv"
    )
    for name in ("summary.csv", "models/serve/part-00000.parquet"):
        origin = rooflines.origin(results / name)
        assert origin.sweeps["serve"]["models"]["mine"]["note"] == ENCODER
        assert f"notes:\n  mine: {ENCODER}\n" in origin.summary()
    assert f"\nmine: {ENCODER}\n" in said(capsys, "check", str(config))
    rows = table_of(read_workbook(workbook_of(tmp_path / "book", str(config)))["Models"], 1)
    assert {row["model"]: row["note"] for row in rows}["mine"] == ENCODER
    assert {row["model"]: row["source"] for row in rows}["mine"] == own["hf"]


def test_a_layer_that_drafts_is_not_said_to_be_left_out():
    asked: dict[str, Any] = {"B": 8, "S": 2048, "split": {"tp": 8}, "dtypes": "fp8"}
    assumptions = rooflines.explain_model("h200", "glm-4.5", **asked).assumptions
    assert assumptions["model"] == "without the layer for multi-token prediction"
    drafts = {"tokens": 1, "accepted": 0.8}
    drafting = rooflines.explain_model("h200", "glm-4.5", **asked, draft=drafts)
    assert "model" not in drafting.assumptions


LAYOUTS = case("quantizations")


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_of_quantizations_are_read_or_refused_by_name(name):
    row = LAYOUTS[name]
    if "says" in row:
        with pytest.raises(RooflinesError, match=row["says"]):
            quantized(**row["of"])
        return
    model = quantized(**row["of"])
    dtypes = model.dtypes
    assert dtypes is not None
    bits = dtypes.bits()
    assert row.get("note") in (None, *model.notes())
    assert float(bits["weights"]) == pytest.approx(row["weights"], abs=1e-4)
    heads = (float(bits["head"]) + float(bits["lm_head"])) / 2
    assert heads == pytest.approx(row.get("head", 16), abs=1e-4)
    assert bits["rest"] == 16, "norms and routers are left as they are"


# ---------------------------------------------------------------- keys, names, files beside


@pytest.mark.parametrize("value", [None, False, 0, [], {}])
def test_a_key_that_switches_nothing_on_changes_nothing(value):
    model = models.from_hf({**LLAMA, "use_mrope": value, "expert_intermediate_size": value})
    assert model.parameters().total == PARAMETERS
    assert model.note is None


def test_keys_that_nobody_knows_are_said_to_be_ignored():
    keys = {"use_fancy_kernels": True, "router_temperature": 0.5, "kernel_backend": "triton"}
    model = models.from_hf({**LLAMA, **keys})
    assert model.note == "ignored: use_fancy_kernels, router_temperature, kernel_backend"


@pytest.mark.parametrize(
    "key",
    [
        {"num_extra": 2},
        {"lora_rank_ratio": 0.5},
        {"use_bias": True},
        {"extra": {"layers": 3}},
        {"num_experts": 8},
        {"hybrid_override_pattern": "M*"},
        {"attn_output_gate": True},
    ],
)
def test_a_key_that_sizes_something_or_counts_elsewhere_is_refused_unless_forced(key):
    (name,) = key
    with pytest.raises(RooflinesError, match=f"{name} is a key that configs of llama"):
        models.from_hf({**LLAMA, **key})
    forced = models.from_hf({**LLAMA, **key}, family="llama")
    assert forced.parameters().total == PARAMETERS
    assert forced.note == f"read as llama, whatever its model_type; ignored: {name}"


def test_an_unknown_family_is_read_as_another_and_the_title_says_so(tmp_path, capsys):
    file = written(tmp_path, {**LLAMA, "model_type": "my_llama"})
    assert "read it with --as llama" in refused(capsys, "models", file)
    for words in (("models", file), ("explain", "h100", file, "B=1", "S=2048")):
        shown = "".join(said(capsys, *words, "--as", "llama").split())  # a path may be broken
        assert f"{file}asllama" in shown
    assert "lacks num_local_experts" in refused(capsys, "models", file, "--as", "mixtral")
    assert "is no file" in refused(capsys, "models", "llama-3.1-8b", "--as", "llama")
    (model,) = models_of([{"name": "mine", "hf": file, "as": "llama"}]).values()
    assert model.parameters().total == PARAMETERS


def test_a_folder_with_a_params_json_is_read(tmp_path, capsys):
    params: dict[str, Any] = {
        "dim": 5120,
        "n_layers": 40,
        "head_dim": 128,
        "hidden_dim": 32768,
        "n_heads": 32,
    }
    params |= {"n_kv_heads": 8, "vocab_size": 131072, "norm_eps": 1e-05, "rope_theta": 1e9}
    (tmp_path / "params.json").write_text(json.dumps(params), encoding="utf-8")
    for path in (tmp_path, tmp_path / "params.json"):
        assert models.from_hf(path).parameters().total == 23_572_403_200
    assert "23,572,403,200" in said(capsys, "models", str(tmp_path))
    with pytest.raises(RooflinesError, match="vocab_size is -1: the tokenizer has it"):
        models.from_hf({**params, "vocab_size": -1})


@pytest.mark.parametrize(
    ("sizes", "note"),
    [
        ({"model.safetensors": 1.0}, None),
        ({"model.safetensors": 0.5}, "model.safetensors has 8.03 GB, -50.0% of the 16.1 GB"),
        ({"model-00001-of-00002.safetensors": 0.5}, None),  # the other one is not here
        (
            {f"model-0000{n}-of-00002.safetensors": 0.75 for n in (1, 2)},
            "model-*.safetensors has 24.1 GB, +50.0% of the 16.1 GB",
        ),
        ({"adapter_model.safetensors": 0.1}, None),
        ({"consolidated.safetensors": 2.0}, "consolidated.safetensors has 32.1 GB, +100.0%"),
    ],
)
def test_weights_beside_the_config_check_the_bytes(sizes, note, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(config_of("llama-3.1-8b")))
    for name, share in sizes.items():
        with (tmp_path / name).open("wb") as file:
            file.truncate(round(2 * PARAMETERS * share))
    found = models.from_hf(tmp_path).note
    assert found is None if note is None else (found or "").startswith(note)


def test_an_index_beside_the_config_checks_the_bytes(tmp_path):
    file = written(tmp_path, LLAMA)
    index = tmp_path / "model.safetensors.index.json"
    for size, note in (
        (2 * PARAMETERS, None),
        (PARAMETERS, "model.safetensors.index.json has 8.03 GB, -50.0% of the 16.1 GB"),
    ):
        index.write_text(json.dumps({"metadata": {"total_size": size}, "weight_map": {}}))
        found = models.from_hf(file).note
        assert found is None if note is None else (found or "").startswith(note)
    assert models.from_hf(file, "fp8").note is None


def test_formats_of_every_expert_are_read_in_a_file_of_megabytes(tmp_path):
    layers, experts = 57, 256
    config = {**LLAMA, "model_type": "qwen3_moe", "num_hidden_layers": layers, "head_dim": 128}
    config |= {"num_experts": experts, "num_experts_per_tok": 8, "moe_intermediate_size": 1536}
    names = [
        f"model.layers.{layer}.mlp.experts.{expert}.{part}_proj"
        for layer in range(layers)
        for expert in range(experts)
        for part in ("gate", "up", "down")
    ]
    form = {"quant_algo": "NVFP4", "group_size": 16}
    config["quantization_config"] = {
        "quant_method": "modelopt",
        "quant_algo": "MIXED_PRECISION",
        "quantized_layers": dict.fromkeys(names, form),
    }
    dtypes = models.from_hf(written(tmp_path, config)).dtypes
    assert dtypes is not None
    assert (dtypes.experts, dtypes.weights, dtypes.mixed) == ("nvfp4", "bf16", {})
    config["quantization_config"]["quantized_layers"].pop(names[0])
    with pytest.raises(
        RooflinesError, match=r"layers\.0\.mlp\.experts\.gate_proj in several formats"
    ):
        models.from_hf(config)


def test_modules_of_nemotron_are_below_the_mixers_of_its_backbone():
    nemotron = config_of("nemotron-3-nano")
    left_out = [f"backbone.layers.0.mixer.{name}_proj" for name in ("in", "out")]
    quantization = {"quant_method": "modelopt", "quant_algo": "NVFP4", "exclude_modules": left_out}
    dtypes = models.from_hf({**nemotron, "quantization_config": quantization}).dtypes
    assert dtypes is not None
    inner, width = 64 * 64, 2688
    assert dtypes.mixed["weights"]["bf16"] == width * (2 * inner + 2 * 8 * 128 + 64) + inner * width


def test_weights_quantized_alone_are_multiplied_in_16_bit():
    alone = {"quant_algo": "W4A16_NVFP4", "exclude_modules": ["lm_head"]}
    both = {**alone, "quant_algo": "NVFP4"}
    for quantization, compute in ((alone, "bf16"), (both, "nvfp4")):
        model = models.from_hf({**LLAMA, "quantization_config": quantization})
        answer = rooflines.explain_model("b200", model, B=1, S=2048)
        assert answer.row["dtypes"].removeprefix("nvfp4@") == compute


def test_a_layer_of_gemma_4_without_experts_has_four_norms():
    """Gemma 4 31B: 60 layers, 50 of them with a window and other heads."""
    text = {"model_type": "gemma4_text", "hidden_size": 5376, "num_hidden_layers": 60}
    text |= {"num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 256}
    text |= {"num_global_key_value_heads": 4, "global_head_dim": 512, "attention_k_eq_v": True}
    text |= {"intermediate_size": 21504, "vocab_size": 262144, "sliding_window": 1024}
    model = models.from_hf({**text, "tie_word_embeddings": True, "dtype": "bfloat16"})
    assert model.parameters().norms == 60 * 4 * 5376 + 5376 + 50 * 2 * 256 + 10 * 2 * 512
    assert model.parameters().total == 30_697_345_280
    assert model.kv_cache_elements(1) == 10 * 2 * 4 * 512 + 50 * 2 * 16 * 256


def test_what_parallel_blocks_would_spare_is_said():
    config = {**LLAMA, "model_type": "cohere", "use_qk_norm": False}
    assert "two all-reduces of a layer are counted" in (models.from_hf(config).note or "")
    assert models.from_hf(LLAMA).note is None


def test_layers_that_a_search_chose_are_quantized_by_their_own_sizes():
    config = small("nemotron-nas", tie_word_embeddings=False)
    method = {"quant_method": "fp8", "modules_to_not_convert": ["lm_head", "self_attn"]}
    found = models.from_hf({**config, "quantization_config": method})
    counts = found.parameters()
    assert found.dtypes is not None
    heads, width = 64 * 64, 64
    attention = 3 * (2 * heads + 2 * width * 32) + 2 * heads + 2 * width * 16 + 2 * heads
    mlp = 3 * 3 * width * 256 + 3 * width * 512 + 2 * 3 * width * 100 + heads
    assert found.dtypes.mixed["weights"] == {"fp8": mlp, "bf16": attention}
    assert counts.matrices == mlp + attention
    groups = [group for group in found.groups("decode") if group.tensors == "weights"]
    assert models.work(groups, "weights", models.Step(1, 1)) == mlp + attention


def test_every_quantization_that_the_page_says_is_read_is_a_case_that_is_read():
    page = (Path(__file__).parents[1] / "docs" / "write-a-config.md").read_text(encoding="utf-8")
    (claims,) = re.findall(r"These quantizations are read:\n\n(.*?)\n\n", page, re.DOTALL)
    plain = {"as", "write", "it", "and", "weights", "a", "kv", "cache", "alone", "but", "integers"}
    plain |= {"that", "stores", "in", "wider", "ones"}
    read = {name for name, row in case("quantizations").items() if "says" not in row}
    words = {word.removesuffix("-lm") for word in re.findall(r"[a-z0-9-]{2,}", claims.lower())}
    assert {
        word for word in words - plain if not any(word in each.lower() for each in read)
    } == set()
