"""Each family of config.json: a small config in its own keys, and the shape that follows."""

from __future__ import annotations

from typing import Any

import pytest
from hf_configs import config_of
from plain_files import plain_file

from rooflines import RooflinesError, models
from rooflines.models.families import families
from rooflines.models.keys import tables

Config = dict[str, Any]

ENTRIES: dict[str, Config] = plain_file("models.yaml")["models"]

SMALL: Config = {
    "hidden_size": 64,
    "num_hidden_layers": 8,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "vocab_size": 100,
    "max_position_embeddings": 4096,
    "torch_dtype": "bfloat16",
}
GQA: Config = {"kind": "gqa", "N": 4, "K": 2, "H": 16}
MLP: Config = {"F": 96, "layers": 8}
DEEPSEEK: Config = {
    "first_k_dense_replace": 1,
    "moe_layer_freq": 1,
    "n_routed_experts": 16,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 24,
    "n_shared_experts": 2,
}
MOE: Config = {"E": 16, "k": 3, "Fe": 24, "shared": 2, "layers": 7}

LATENT: Config = {
    **DEEPSEEK,
    "q_lora_rank": 20,
    "kv_lora_rank": 32,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 12,
    "topk_method": "noaux_tc",
}
OTHER_EXPERTS = ("topk_method", "n_routed_experts", "n_shared_experts", "num_experts_per_tok")
MLA: Config = {"kind": "mla", "N": 4, "q_rank": 20, "kv_rank": 32, "nope": 16, "rope": 8, "v": 12}
NO_KIND: Config = {"N": 4, "K": 2, "H": 16}
QWEN_EXPERTS: Config = {
    "num_experts": 16,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 24,
    "shared_expert_intermediate_size": 48,
}
DELTA: Config = {
    "attn_output_gate": True,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 8,
    "linear_conv_kernel_dim": 4,
    "mamba_ssm_dtype": "float32",
    "mtp_num_hidden_layers": 1,
}
DELTA_STATE: Config = {
    "kind": "gated-delta",
    "layers": 6,
    "heads": 4,
    "groups": 2,
    "key": 16,
    "value": 8,
    "conv": 4,
}

TEXT_PARTS = tables()["text-parts"]

CASES: dict[str, tuple[Config, Config]] = {
    "cohere2": (
        {"logit_scale": 0.25, "sliding_window": 512, "layer_norm_eps": 1e-5},
        {"tied": True, "norms_per_layer": 1, "window": {"tokens": 512, "layers": 6}},
    ),
    "deepseek_v2": (
        {
            **DEEPSEEK,
            "q_lora_rank": None,
            "kv_lora_rank": 32,
            "qk_nope_head_dim": 16,
            "qk_rope_head_dim": 8,
            "v_head_dim": 12,
            "topk_method": "greedy",
        },
        {
            "attention": {"kind": "mla", "N": 4, "kv_rank": 32, "nope": 16, "rope": 8, "v": 12},
            "moe": MOE,
            "mlp": {"F": 96, "layers": 1},
        },
    ),
    "dots1": (
        {**DEEPSEEK, "attention_bias": False},
        {
            "attention": {**GQA, "qk_norm": "head"},
            "moe": {**MOE, "router_bias": True},
            "mlp": {"F": 96, "layers": 1},
        },
    ),
    "ernie4_5": (
        {"use_bias": True},
        {
            "tied": True,
            "attention": {**GQA, "H": 128, "bias": "qkvo"},
            "mlp": {**MLP, "bias": True},
        },
    ),
    "ernie4_5_moe": (
        {
            "moe_num_experts": 16,
            "moe_k": 3,
            "moe_intermediate_size": 24,
            "moe_num_shared_experts": 2,
            "moe_layer_start_index": 1,
            "moe_layer_end_index": 6,
        },
        {
            "tied": True,
            "moe": {**MOE, "layers": 6, "router_bias": True},
            "mlp": {"F": 96, "layers": 2},
        },
    ),
    "exaone4": (
        {"sliding_window": 512, "sliding_window_pattern": "LLLG"},
        {"attention": {**GQA, "qk_norm": "head"}, "window": {"tokens": 512, "layers": 6}},
    ),
    "gemma": ({}, {"tied": True, "attention": {**GQA, "H": 256}}),
    "glm": ({"attention_bias": True}, {"attention": {**GQA, "H": 128, "bias": "qkv"}}),
    "glm4": ({"head_dim": 32}, {"attention": {**GQA, "H": 32}, "norms_per_layer": 4}),
    "granite": (
        {"attention_multiplier": 0.5, "logits_scaling": 16.0, "tie_word_embeddings": True},
        {"tied": True},
    ),
    "granitemoe": (
        {"num_local_experts": 16, "num_experts_per_tok": 3},
        {"moe": {"E": 16, "k": 3, "Fe": 96, "layers": 8}, "mlp": None},
    ),
    "granitemoeshared": (
        {"num_local_experts": 16, "num_experts_per_tok": 3, "shared_intermediate_size": 192},
        {"moe": {"E": 16, "k": 3, "Fe": 96, "shared": 2, "layers": 8}, "mlp": None},
    ),
    "hunyuan_v1_dense": ({"use_qk_norm": True}, {"attention": {**GQA, "qk_norm": "head"}}),
    "mimo": (
        {"use_mrope": False, "num_nextn_predict_layers": 1},
        {"attention": {**GQA, "bias": "qkv"}},
    ),
    "olmo3": (
        {"sliding_window": 512},
        {"attention": {**GQA, "qk_norm": "all"}, "window": {"tokens": 512, "layers": 6}},
    ),
    "qwen2_moe": (
        {
            "num_experts": 16,
            "num_experts_per_tok": 3,
            "moe_intermediate_size": 24,
            "shared_expert_intermediate_size": 48,
        },
        {
            "attention": {**GQA, "bias": "qkv"},
            "moe": {**MOE, "layers": 8, "shared_gate": True},
            "mlp": None,
        },
    ),
    "seed_oss": (
        {"residual_dropout": 0.1, "attention_out_bias": False},
        {"attention": {**GQA, "H": 128, "bias": "qkv"}},
    ),
    "deepseek_v32": (
        {**LATENT, "index_topk": 64, "index_n_heads": 3, "index_head_dim": 8},
        {
            "attention": MLA,
            "moe": {**MOE, "router_bias": True},
            "mlp": {"F": 96, "layers": 1},
            "sparse": {"tokens": 64, "heads": 3, "dim": 8, "layers": 8, "bits": 8},
        },
    ),
    "glm_moe_dsa": (
        {
            **LATENT,
            "index_topk": 64,
            "index_n_heads": 3,
            "index_head_dim": 8,
            "index_topk_freq": 4,
            "indexer_types": ["full", "shared", "shared", "shared"] * 2,
            "mlp_layer_types": ["dense"] + ["sparse"] * 7,
            "layer_types": ["deepseek_sparse_attention"] * 8,
        },
        {
            "attention": MLA,
            "moe": {**MOE, "router_bias": True},
            "mlp": {"F": 96, "layers": 1},
            "sparse": {"tokens": 64, "heads": 3, "dim": 8, "layers": 8, "own": 2, "bits": 8},
        },
    ),
    "gemma4_text": (
        {
            "head_dim": 16,
            "global_head_dim": 32,
            "num_global_key_value_heads": 1,
            "attention_k_eq_v": True,
            "enable_moe_block": True,
            "moe_intermediate_size": 32,
            "num_experts": 16,
            "top_k_experts": 3,
            "sliding_window": 512,
        },
        {
            "tied": True,
            "norms_per_layer": 8,
            "attention": {**GQA, "K": 1, "H": 32, "qk_norm": "head", "one_tensor": True},
            "window": {"tokens": 512, "layers": 7, "attention": {**NO_KIND, "qk_norm": "head"}},
            "moe": {"E": 16, "k": 3, "Fe": 32, "shared": 3, "router_bias": True},
            "mlp": None,
        },
    ),
    "kimi_linear": (
        {
            **{key: value for key, value in LATENT.items() if key not in OTHER_EXPERTS},
            "num_experts": 16,
            "num_experts_per_token": 3,
            "num_shared_experts": 2,
            "routed_expert_hidden_size": 32,
            "latent_moe_use_norm": True,
            "mla_use_output_gate": True,
            "attn_res_block_size": 4,
            "linear_attn_config": {
                "kda_layers": [1, 2, 3, 5, 6, 7],
                "full_attn_layers": [4, 8],
                "num_heads": 4,
                "head_dim": 16,
                "short_conv_kernel_size": 4,
                "use_full_rank_gate": True,
                "gate_lower_bound": -5.0,
            },
        },
        {
            "attention": {**MLA, "gate": True},
            "norms_per_layer": 6,
            "moe": {**MOE, "router_bias": True, "latent": 32, "latent_norm": True},
            "mlp": {"F": 96, "layers": 1},
            "state": {
                "kind": "kda",
                "layers": 6,
                "heads": 4,
                "groups": 4,
                "key": 16,
                "value": 16,
                "conv": 4,
                "bits": 16,
            },
        },
    ),
    "mimo_v2_flash": (
        {
            **DEEPSEEK,
            "n_shared_experts": None,
            "moe_layer_freq": [0, *[1] * 7],
            "first_k_dense_replace": None,
            "head_dim": 24,
            "v_head_dim": 16,
            "swa_num_attention_heads": 4,
            "swa_num_key_value_heads": 4,
            "swa_head_dim": 24,
            "swa_v_head_dim": 16,
            "hybrid_layer_pattern": [0, 1, 1, 1] * 2,
            "sliding_window": 128,
            "add_swa_attention_sink_bias": True,
        },
        {
            "attention": {**GQA, "H": 24, "v": 16},
            "window": {
                "tokens": 128,
                "layers": 6,
                "attention": {"N": 4, "K": 4, "H": 24, "v": 16, "sinks": True},
            },
            "moe": {"E": 16, "k": 3, "Fe": 24, "layers": 7, "router_bias": True},
            "mlp": {"F": 96, "layers": 1},
        },
    ),
    "minimax_m3": (
        {
            "num_local_experts": 16,
            "num_experts_per_tok": 3,
            "intermediate_size": 24,
            "moe_intermediate_size": 24,
            "dense_intermediate_size": 96,
            "shared_intermediate_size": 48,
            "moe_layer_freq": [0, *[1] * 7],
            "qk_norm_type": "per_head",
            "sparse_attention_config": {
                "use_sparse_attention": True,
                "sparse_attention_freq": [0, *[1] * 7],
                "sparse_block_size": 128,
                "sparse_topk_blocks": 16,
                "sparse_num_index_heads": 2,
                "sparse_index_dim": 8,
            },
        },
        {
            "attention": {**GQA, "H": 128, "qk_norm": "head"},
            "sparse": {"tokens": 1921, "heads": 2, "dim": 8, "layers": 7, "weighted": False},
            "moe": {**MOE, "router_bias": True},
            "mlp": {"F": 96, "layers": 1},
        },
    ),
    "nemotron_h": (
        {
            "hybrid_override_pattern": "ME-M*E-M",
            "n_routed_experts": 16,
            "num_experts_per_tok": 3,
            "moe_intermediate_size": 24,
            "moe_shared_expert_intermediate_size": 48,
            "moe_latent_size": 32,
            "mamba_num_heads": 4,
            "mamba_head_dim": 16,
            "ssm_state_size": 8,
            "n_groups": 2,
            "conv_kernel": 4,
            "mamba_ssm_cache_dtype": "float32",
            "mlp_hidden_act": "relu2",
        },
        {
            "single": True,
            "norms_per_layer": 1,
            "moe": {**MOE, "layers": 2, "router_bias": True, "gated": False, "latent": 32},
            "mlp": {"F": 96, "layers": 2, "gated": False},
            "state": {
                "kind": "mamba2",
                "layers": 3,
                "heads": 4,
                "groups": 2,
                "key": 8,
                "value": 16,
                "conv": 4,
            },
        },
    ),
    "qwen3_5_moe_text": (
        {**DELTA, **QWEN_EXPERTS},
        {
            "attention": {**GQA, "H": 256, "qk_norm": "head", "gate": "element"},
            "moe": {**MOE, "layers": 8, "shared_gate": True},
            "mlp": None,
            "state": DELTA_STATE,
        },
    ),
    "qwen3_5_text": (
        {**DELTA, "layer_types": [*["linear_attention"] * 3, "full_attention"] * 2},
        {
            "attention": {**GQA, "H": 256, "qk_norm": "head", "gate": "element"},
            "state": DELTA_STATE,
        },
    ),
    "step3p7": (
        {
            "sliding_window": 512,
            "num_experts": 16,
            "num_experts_per_tok": 3,
            "moe_intermediate_size": 24,
            "share_expert_dim": 48,
            "first_k_dense_replace": 1,
            "use_moe_router_bias": True,
            "use_head_wise_attn_gate": True,
            "attention_other_setting": {"num_attention_heads": 6, "num_attention_groups": 2},
        },
        {
            "attention": {**GQA, "qk_norm": "head", "gate": "head"},
            "window": {
                "tokens": 512,
                "layers": 6,
                "attention": {**NO_KIND, "N": 6, "qk_norm": "head", "gate": "head"},
            },
            "moe": {**MOE, "router_bias": True},
            "mlp": {"F": 96, "layers": 1},
        },
    ),
    "smollm3": ({"no_rope_layers": [1, 1, 1, 0] * 2}, {"tied": True}),
}
"""Keys besides `SMALL`, and the parts of the shape that differ from a plain one; None: no such
part."""


def shape_of(config):
    """The shape of a config, without what is at its default."""
    return models.from_hf(config).shape.model_dump(exclude_defaults=True)


@pytest.mark.parametrize("family", CASES)
def test_a_small_config_gives_the_shape_of_its_family(family):
    keys, parts = CASES[family]
    plain = {"layers": 8, "D": 64, "V": 100, "attention": GQA, "mlp": MLP, "context": 4096}
    expected = {key: value for key, value in {**plain, **parts}.items() if value is not None}
    found = shape_of({**SMALL, "model_type": family, **keys})
    found["attention"].setdefault("kind", "gqa")
    if family == "gemma4_text":
        found["moe"].pop("layers", None)
    assert found == {"family": family, **expected}


def test_every_family_is_tried():
    tried = {config_of(entry)["model_type"] for entry in ENTRIES.values()}
    tried = {TEXT_PARTS.get(family, family) for family in tried} | set(CASES)
    same = {
        "qwen3_next": "qwen3_5_moe_text",
        "qwen3_vl_moe_text": "qwen3_moe",
        "qwen3_vl_text": "qwen3",
    }
    assert tried | set(same) == set(families())
    assert all(families()[one] == families()[other] for one, other in same.items())


@pytest.mark.parametrize("family", TEXT_PARTS)
def test_the_text_part_of_a_model_with_encoders_is_the_model(family):
    known = {"deepseek_v3": LATENT, "qwen3_vl_moe_text": QWEN_EXPERTS}
    experts = {"num_local_experts": 4, "num_experts_per_tok": 1, "intermediate_size_mlp": 8}
    keys = CASES.get(TEXT_PARTS[family], (known.get(TEXT_PARTS[family], {}),))[0]
    text = {**SMALL, **keys, **(experts if family == "llama4" else {})}
    if family == "qwen3_vl_moe":
        del text["shared_expert_intermediate_size"]
    whole = {"model_type": family, "text_config": text, "vision_config": {"hidden_size": 8}}
    model = models.from_hf(whole)
    assert model.shape == models.from_hf({**text, "model_type": TEXT_PARTS[family]}).shape
    assert (model.note or "").startswith("the text part; encoders are not counted")


def test_sizes_that_a_file_leaves_out_are_those_of_its_class_and_said():
    text = {"hidden_size": 2560, "num_hidden_layers": 34, "intermediate_size": 10240}
    model = models.from_hf({"model_type": "gemma3", "text_config": {**text, "dtype": "bfloat16"}})
    assert model.shape.attention.model_dump(include={"N", "K", "H"}) == {"N": 8, "K": 4, "H": 256}
    assert "num_attention_heads 8" in (model.note or "")
    small = {key: value for key, value in SMALL.items() if key != "num_key_value_heads"}
    mistral = models.from_hf({**small, "num_attention_heads": 16, "model_type": "mistral"})
    assert mistral.shape.attention.model_dump()["K"] == 8


def test_shared_experts_of_another_width_are_refused():
    keys, _ = CASES["granitemoeshared"]
    config = {**SMALL, "model_type": "granitemoeshared", **keys, "shared_intermediate_size": 100}
    with pytest.raises(RooflinesError, match="shared_intermediate_size is 100, no multiple of"):
        models.from_hf(config)


HYBRID_REFUSALS: dict[str, tuple[str, Config, str]] = {
    "a letter of no layer": (
        "nemotron_h",
        {"hybrid_override_pattern": "MEX*MEM-"},
        "hybrid_override_pattern is 'MEX",
    ),
    "a pattern of the wrong length": (
        "nemotron_h",
        {"hybrid_override_pattern": "ME-M"},
        "hybrid_override_pattern has 4 layers, and num_hidden_layers is 8",
    ),
    "no pattern": (
        "nemotron_h",
        {"hybrid_override_pattern": None},
        "lacks hybrid_override_pattern and layers_block_type",
    ),
    "a layer that is two": (
        "kimi_linear",
        {
            "linear_attn_config": {
                **CASES["kimi_linear"][0]["linear_attn_config"],
                "full_attn_layers": [3, 4, 8],
            }
        },
        r"linear_attn_config.kda_layers and full_attn_layers are not the layers 1 to 8",
    ),
    "an unknown key within": (
        "kimi_linear",
        {
            "linear_attn_config": {
                **CASES["kimi_linear"][0]["linear_attn_config"],
                "rank": 8,
            }
        },
        r"linear_attn_config.rank is a key",
    ),
    "shared indexers of unknown layers": (
        "glm_moe_dsa",
        {"indexer_types": None},
        "index_topk_freq shares indexers among layers",
    ),
    "a list of indexers too short": (
        "glm_moe_dsa",
        {"indexer_types": ["full"] * 7},
        "indexer_types has 7 layers, and num_hidden_layers is 8",
    ),
    "layers of another kind": (
        "qwen3_5_text",
        {"layer_types": ["mamba"] * 8},
        r"layer_types\[0\] is 'mamba'",
    ),
    "a state of no dtype": (
        "qwen3_5_text",
        {"mamba_ssm_dtype": "float12"},
        "mamba_ssm_dtype is 'float12'",
    ),
    "inputs of each layer": (
        "gemma4_text",
        {"hidden_size_per_layer_input": 256},
        "hidden_size_per_layer_input is 256: counts of gemma4_text are known for 0 alone",
    ),
    "no sparse config": ("minimax_m3", {"sparse_attention_config": 7}, "is 7, which is no object"),
}


@pytest.mark.parametrize("case", HYBRID_REFUSALS)
def test_layers_that_do_not_add_up_are_refused(case):
    family, changes, message = HYBRID_REFUSALS[case]
    config = {**SMALL, "model_type": family, **CASES[family][0], **changes}
    with pytest.raises(RooflinesError, match=message) as refused:
        models.from_hf(config)
    assert str(refused.value).count("fix:") == 1


def test_what_a_file_of_step_leaves_out_is_said():
    keys, _ = CASES["step3p7"]
    dropped = ("use_head_wise_attn_gate", "attention_other_setting")
    config = {key: value for key, value in keys.items() if key not in dropped}
    note = models.from_hf({**SMALL, "model_type": "step3p7", **config}).note
    assert note is not None
    assert "use_head_wise_attn_gate is absent: taken as false" in note
    assert "attention_other_setting is absent" in note


def test_what_is_stated_for_the_whole_model_holds_for_its_text_part():
    whole = {"model_type": "mistral3", "text_config": SMALL, "torch_dtype": "bfloat16"}
    tied = [models.from_hf({**whole, "tie_word_embeddings": tied}) for tied in (True, False)]
    assert [model.shape.tied for model in tied] == [True, False]
