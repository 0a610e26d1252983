"""Each family of config.json: a small config in its own keys, and the shape that follows."""

from __future__ import annotations

from typing import Any

import pytest
from hf_configs import config_of
from plain_files import plain_file

from rooflines import RooflinesError, models
from rooflines.models.families import FAMILIES
from rooflines.models.hf import TEXT_PARTS

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
    "smollm3": ({"no_rope_layers": [1, 1, 1, 0] * 2}, {"tied": True}),
}
"""Keys besides `SMALL`, and the parts of the shape that differ from a plain one; None: no such
part."""


def shape_of(config: Config) -> Config:
    """The shape of a config, without what is at its default."""
    return models.from_hf(config).shape.model_dump(exclude_defaults=True)


@pytest.mark.parametrize("family", CASES)
def test_a_small_config_gives_the_shape_of_its_family(family: str) -> None:
    """Every size under the family's own key."""
    keys, parts = CASES[family]
    plain = {"layers": 8, "D": 64, "V": 100, "attention": GQA, "mlp": MLP, "context": 4096}
    expected = {key: value for key, value in {**plain, **parts}.items() if value is not None}
    found = shape_of({**SMALL, "model_type": family, **keys})
    found["attention"].setdefault("kind", "gqa")
    assert found == {"family": family, **expected}


def test_every_family_is_tried() -> None:
    """Here, or by a model of the catalogue; families of text parts are those of text models."""
    tried = {config_of(entry)["model_type"] for entry in ENTRIES.values()}
    tried = {TEXT_PARTS.get(family, family) for family in tried} | set(CASES)
    same = {"qwen3_vl_text": "qwen3", "qwen3_vl_moe_text": "qwen3_moe"}
    assert tried | set(same) == set(FAMILIES)
    assert all(FAMILIES[one] is FAMILIES[other] for one, other in same.items())


@pytest.mark.parametrize("family", TEXT_PARTS)
def test_the_text_part_of_a_model_with_encoders_is_the_model(family: str) -> None:
    """Also where the text part does not say its family; the note says what is left out."""
    text = {**SMALL, **CASES["deepseek_v2"][0], "topk_method": "noaux_tc"}
    if TEXT_PARTS[family] != "deepseek_v3":
        latent = ("q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim")
        dropped = {*latent, "v_head_dim", *DEEPSEEK, "topk_method"}
        text = {key: value for key, value in text.items() if key not in dropped}
    if family in ("llama4", "qwen3_vl_moe"):
        text |= {"num_local_experts": 4, "num_experts_per_tok": 1, "intermediate_size_mlp": 8}
    if family == "qwen3_vl_moe":
        text |= {"num_experts": 4, "moe_intermediate_size": 24}
        del text["num_local_experts"], text["intermediate_size_mlp"]
    whole = {"model_type": family, "text_config": text, "vision_config": {"hidden_size": 8}}
    model = models.from_hf(whole)
    assert model.shape == models.from_hf({**text, "model_type": TEXT_PARTS[family]}).shape
    assert (model.note or "").startswith("the text part; encoders are not counted")


def test_sizes_that_a_file_leaves_out_are_those_of_its_class_and_said() -> None:
    """The heads of Gemma 3 4B, and the key-value heads of Mistral."""
    text = {"hidden_size": 2560, "num_hidden_layers": 34, "intermediate_size": 10240}
    model = models.from_hf({"model_type": "gemma3", "text_config": {**text, "dtype": "bfloat16"}})
    assert model.shape.attention.model_dump(include={"N", "K", "H"}) == {"N": 8, "K": 4, "H": 256}
    assert "num_attention_heads 8" in (model.note or "")
    small = {key: value for key, value in SMALL.items() if key != "num_key_value_heads"}
    mistral = models.from_hf({**small, "num_attention_heads": 16, "model_type": "mistral"})
    assert mistral.shape.attention.model_dump()["K"] == 8


def test_shared_experts_of_another_width_are_refused() -> None:
    """That are no whole number of routed ones."""
    keys, _ = CASES["granitemoeshared"]
    config = {**SMALL, "model_type": "granitemoeshared", **keys, "shared_intermediate_size": 100}
    with pytest.raises(RooflinesError, match="shared_intermediate_size is 100, no multiple of"):
        models.from_hf(config)
