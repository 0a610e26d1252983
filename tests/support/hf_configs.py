"""The config.json of models, written from their shapes with the keys that each family has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Config = dict[str, Any]

USUAL: Config = {
    "architectures": ["ForCausalLM"],
    "attention_dropout": 0.0,
    "bos_token_id": 1,
    "eos_token_id": [2, 3],
    "hidden_act": "silu",
    "initializer_range": 0.02,
    "rms_norm_eps": 1e-05,
    "rope_scaling": {"rope_type": "default", "factor": 8.0},
    "rope_theta": 500000.0,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.56.0",
    "use_cache": True,
}

FP8 = {
    "quant_method": "fp8",
    "fmt": "e4m3",
    "activation_scheme": "dynamic",
    "weight_block_size": [128, 128],
}


def _common(entry: Config) -> Config:
    attention = entry["attention"]
    return {
        **USUAL,
        "model_type": entry["family"],
        "hidden_size": entry["D"],
        "num_hidden_layers": entry["layers"],
        "vocab_size": entry["V"],
        "max_position_embeddings": entry["context"],
        "num_attention_heads": attention["N"],
        "num_key_value_heads": attention.get("K", attention["N"]),
        "tie_word_embeddings": entry.get("tied", False),
    }


def _moe(entry: Config, experts: str, width: str) -> Config:
    moe = entry["moe"]
    return {experts: moe["E"], "num_experts_per_tok": moe["k"], width: moe["Fe"]}


def _dense(entry: Config) -> Config:
    return {"intermediate_size": entry["mlp"]["F"]}


def _own_heads(entry: Config) -> Config:
    return {"head_dim": entry["attention"]["H"], "attention_bias": False}


def _deepseek(entry: Config) -> Config:
    return {
        **_dense(entry),
        **_moe(entry, "n_routed_experts", "moe_intermediate_size"),
        "n_shared_experts": entry["moe"]["shared"],
        "first_k_dense_replace": entry["mlp"]["layers"],
        "n_group": 8,
        "topk_group": 4,
        "norm_topk_prob": True,
        "routed_scaling_factor": 2.5,
        "num_nextn_predict_layers": 1,
    }


def _llama4(entry: Config) -> Config:
    text = {
        **_common(entry),
        **_own_heads(entry),
        **_moe(entry, "num_local_experts", "intermediate_size"),
        "model_type": "llama4_text",
        "attention_chunk_size": entry["window"]["tokens"],
        "interleave_moe_layer_step": entry["layers"] // entry["moe"].get("layers", entry["layers"]),
        "intermediate_size_mlp": entry.get("mlp", {"F": 16384})["F"],
        "use_qk_norm": True,
        "output_router_logits": False,
        "router_aux_loss_coef": 0.001,
    }
    vision = {"hidden_size": 1408, "num_hidden_layers": 34, "model_type": "llama4_vision_model"}
    return {"model_type": "llama4", "text_config": text, "vision_config": vision}


def _gemma3(entry: Config) -> Config:
    text = {
        **_common(entry),
        **_dense(entry),
        **_own_heads(entry),
        "model_type": "gemma3_text",
        "sliding_window": entry["window"]["tokens"],
        "query_pre_attn_scalar": 168,
        "rope_local_base_freq": 10000.0,
        "final_logit_softcapping": None,
    }
    del text["tie_word_embeddings"]  # tied by default
    return {"model_type": "gemma3", "text_config": text, "vision_config": {"hidden_size": 1152}}


def _window_off(entry: Config) -> Config:
    own = {} if entry["family"] == "phi3" else {"head_dim": entry["attention"]["H"]}
    return {**_common(entry), **_dense(entry), **own, "sliding_window": None}


def _mixtral(entry: Config) -> Config:
    moe = _moe(entry, "num_local_experts", "intermediate_size")
    return {**_common(entry), **moe, "sliding_window": None, "router_jitter_noise": 0.0}


def _qwen2(entry: Config) -> Config:
    window = {"sliding_window": 131072, "use_sliding_window": False}
    return {**_common(entry), **_dense(entry), **window, "max_window_layers": entry["layers"]}


def _qwen3(entry: Config) -> Config:
    window = {"sliding_window": None, "use_sliding_window": False}
    return {**_common(entry), **_dense(entry), **_own_heads(entry), **window}


def _qwen3_moe(entry: Config) -> Config:
    moe = _moe(entry, "num_experts", "moe_intermediate_size")
    sparse = {"decoder_sparse_step": 1, "mlp_only_layers": [], "intermediate_size": 6144}
    return {**_common(entry), **moe, **sparse, **_own_heads(entry), "norm_topk_prob": True}


def _gemma2(entry: Config) -> Config:
    window = {"sliding_window": entry["window"]["tokens"], "query_pre_attn_scalar": 144}
    return {**_common(entry), **_dense(entry), **_own_heads(entry), **window}


def _gpt_oss(entry: Config) -> Config:
    left_out = ["model.layers.*.self_attn", "model.layers.*.mlp.router", "lm_head"]
    return {
        **_common(entry),
        **_moe(entry, "num_local_experts", "intermediate_size"),
        "head_dim": entry["attention"]["H"],
        "attention_bias": True,
        "layer_types": ["sliding_attention", "full_attention"] * (entry["layers"] // 2),
        "sliding_window": entry["window"]["tokens"],
        "experts_per_token": entry["moe"]["k"],
        "initial_context_length": 4096,
        "swiglu_limit": 7.0,
        "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": left_out},
    }


def _latent(entry: Config) -> Config:
    attention = entry["attention"]
    return {
        **_common(entry),
        **_deepseek(entry),
        "q_lora_rank": attention["q_rank"],
        "kv_lora_rank": attention["kv_rank"],
        "qk_nope_head_dim": attention["nope"],
        "qk_rope_head_dim": attention["rope"],
        "v_head_dim": attention["v"],
        "attention_bias": False,
        "topk_method": "noaux_tc",
        "scoring_func": "sigmoid",
        "moe_layer_freq": 1,
        "quantization_config": FP8,
    }


def _glm4(entry: Config) -> Config:
    norm = {"use_qk_norm": "qk_norm" in entry["attention"], "partial_rotary_factor": 0.5}
    heads = {**_own_heads(entry), "attention_bias": True}
    return {**_common(entry), **_deepseek(entry), **heads, **norm}


def _minimax(entry: Config) -> Config:
    left_out = ["gate", "e_score_correction_bias", "lm_head"]
    return {
        **_common(entry),
        **_own_heads(entry),
        **_moe(entry, "num_local_experts", "intermediate_size"),
        "attn_type_list": [1] * entry["layers"],
        "use_qk_norm": True,
        "qk_norm_type": "per_layer",
        "use_routing_bias": True,
        "shared_intermediate_size": 0,
        "use_mtp": True,
        "num_mtp_modules": 3,
        "mtp_transformer_layers": 1,
        "rotary_dim": 64,
        "scoring_func": "sigmoid",
        "quantization_config": {**FP8, "modules_to_not_convert": left_out},
    }


def _olmo2(entry: Config) -> Config:
    return {**_common(entry), **_dense(entry), "attention_bias": False}


def _llama(entry: Config) -> Config:
    return {**_common(entry), **_dense(entry), "attention_bias": False, "mlp_bias": False}


def _experts_of(entry: Config, experts: str) -> Config:
    """Routed experts with a shared one; nothing for a dense model."""
    if "moe" not in entry:
        return _dense(entry)
    shared = entry["moe"]["shared"] * entry["moe"]["Fe"]
    moe = _moe(entry, experts, "moe_intermediate_size")
    return {**moe, "shared_expert_intermediate_size": shared}


def _text(entry: Config, config: Config) -> Config:
    """A model with an encoder: its text part."""
    return {"model_type": entry["family"], "text_config": config, "vision_config": {"depth": 27}}


def _qwen3_5(entry: Config) -> Config:
    state = entry["state"]
    config = {
        **_common(entry),
        **_own_heads(entry),
        **_experts_of(entry, "num_experts"),
        "model_type": f"{entry['family']}_text",
        "attn_output_gate": True,
        "full_attention_interval": 4,
        "linear_num_value_heads": state["heads"],
        "linear_num_key_heads": state["groups"],
        "linear_key_head_dim": state["key"],
        "linear_value_head_dim": state["value"],
        "linear_conv_kernel_dim": state["conv"],
        "mamba_ssm_dtype": "float32",
        "mtp_num_hidden_layers": 1,
    }
    return _text(entry, config)


def _latent_sparse(entry: Config) -> Config:
    sparse = entry["sparse"]
    own = sparse.get("own", entry["layers"])
    types = ["full"] * own + ["shared"] * (entry["layers"] - own)
    chosen = {} if own == entry["layers"] else {"indexer_types": types}
    indexer = {"index_topk": sparse["tokens"], "index_n_heads": sparse["heads"]}
    return {**_latent(entry), **indexer, "index_head_dim": sparse["dim"], **chosen}


def _kimi_k25(entry: Config) -> Config:
    config = {**_latent(entry), "model_type": "kimi_k2"}
    weights = {"type": "int", "num_bits": 4, "group_size": 32, "strategy": "group"}
    config["quantization_config"] = {
        "quant_method": "compressed-tensors",
        "config_groups": {"group_0": {"weights": weights, "targets": ["Linear"]}},
        "ignore": [
            "lm_head",
            "re:.*self_attn.*",
            "re:.*shared_experts.*",
            "re:.*mlp.(gate|up|down)",
        ],
    }
    return _text(entry, config)


def _kimi_k3(entry: Config) -> Config:
    moe, state, layers = entry["moe"], entry["state"], range(1, entry["layers"] + 1)
    config = {
        **_latent(entry),
        "model_type": "kimi_linear",
        "num_experts": moe["E"],
        "num_experts_per_token": moe["k"],
        "num_shared_experts": moe["shared"],
        "routed_expert_hidden_size": moe["latent"],
        "latent_moe_use_norm": moe["latent_norm"],
        "attn_res_block_size": 12,
        "mla_use_output_gate": True,
        "linear_attn_config": {
            "kda_layers": list(layers[: state["layers"]]),
            "full_attn_layers": list(layers[state["layers"] :]),
            "num_heads": state["heads"],
            "head_dim": state["key"],
            "short_conv_kernel_size": state["conv"],
            "use_full_rank_gate": True,
        },
    }
    for key in ("n_routed_experts", "num_experts_per_tok", "n_shared_experts", "n_group"):
        del config[key]
    del config["quantization_config"], config["scoring_func"], config["attention_bias"]
    return _text(entry, config)


def _nemotron(entry: Config) -> Config:
    moe, state = entry["moe"], entry["state"]
    full = entry["layers"] - state["layers"] - moe["layers"]
    return {
        **_common(entry),
        **_own_heads(entry),
        **_moe(entry, "n_routed_experts", "moe_intermediate_size"),
        "hybrid_override_pattern": "M" * state["layers"] + "E" * moe["layers"] + "*" * full,
        "moe_shared_expert_intermediate_size": moe["shared"] * moe["Fe"],
        "moe_latent_size": moe.get("latent"),
        "mamba_num_heads": state["heads"],
        "mamba_head_dim": state["value"],
        "n_groups": state["groups"],
        "ssm_state_size": state["key"],
        "conv_kernel": state["conv"],
        "mamba_ssm_cache_dtype": "float32",
        "mlp_hidden_act": "relu2",
        "use_conv_bias": True,
    }


def _minimax_m3(entry: Config) -> Config:
    sparse, dense = entry["sparse"], entry["mlp"]["layers"]
    config = {
        **_minimax(entry),
        "dense_intermediate_size": entry["mlp"]["F"],
        "first_k_dense_replace": dense,
        "shared_intermediate_size": entry["moe"]["shared"] * entry["moe"]["Fe"],
        "qk_norm_type": "per_head",
        "sparse_attention_config": {
            "use_sparse_attention": True,
            "sparse_attention_freq": [0] * dense + [1] * sparse["layers"],
            "sparse_topk_blocks": 1 + sparse["tokens"] // 128,
            "sparse_block_size": 128,
            "sparse_num_index_heads": sparse["heads"],
            "sparse_index_dim": sparse["dim"],
        },
    }
    for key in ("attn_type_list", "use_mtp", "attention_bias", "mtp_transformer_layers"):
        del config[key]
    return config


def _gemma4(entry: Config) -> Config:
    far, near, moe = entry["attention"], entry["window"]["attention"], entry["moe"]
    config = {
        **_common(entry),
        "model_type": "gemma4_text",
        "num_key_value_heads": near["K"],
        "head_dim": near["H"],
        "num_global_key_value_heads": far["K"],
        "global_head_dim": far["H"],
        "attention_k_eq_v": True,
        "sliding_window": entry["window"]["tokens"],
        "enable_moe_block": True,
        "num_experts": moe["E"],
        "top_k_experts": moe["k"],
        "moe_intermediate_size": moe["Fe"],
        "intermediate_size": moe["shared"] * moe["Fe"],
    }
    return _text(entry, config)


FAMILIES: dict[str, Callable[[Config], Config]] = {
    "deepseek_v32": _latent_sparse,
    "gemma4": _gemma4,
    "glm_moe_dsa": _latent_sparse,
    "kimi_k25": _kimi_k25,
    "kimi_k3": _kimi_k3,
    "minimax_m3": _minimax_m3,
    "nemotron_h": _nemotron,
    "qwen3_5": _qwen3_5,
    "qwen3_5_moe": _qwen3_5,
    "deepseek_v3": _latent,
    "gemma2": _gemma2,
    "gemma3": _gemma3,
    "glm4_moe": _glm4,
    "gpt_oss": _gpt_oss,
    "kimi_k2": _latent,
    "llama": _llama,
    "llama4": _llama4,
    "minimax_m2": _minimax,
    "mistral": _window_off,
    "mixtral": _mixtral,
    "olmo2": _olmo2,
    "phi3": _window_off,
    "qwen2": _qwen2,
    "qwen3": _qwen3,
    "qwen3_moe": _qwen3_moe,
}


def config_of(entry: Config) -> Config:
    """The config.json of a model in the form of models.yaml."""
    return FAMILIES[entry["family"]](entry)
