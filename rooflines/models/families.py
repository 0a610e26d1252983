"""The families of config.json that are known, as tables of keys.

Sources: the configuration and modelling classes of transformers under the same `model_type`.
"""

from __future__ import annotations

from dataclasses import replace

from rooflines.models.family import (
    ExpertKeys,
    Family,
    after_dense,
    all_but,
    between,
    by_sparse_step,
    every,
    everywhere,
    if_switched_on,
    interleaved,
    with_rope,
)
from rooflines.models.hybrids import (
    FULL,
    LINEAR,
    chosen_blocks,
    chosen_tokens,
    gate_of_each_head,
    gated_delta,
    kimi_delta,
    layer_pattern,
    mamba_hybrid,
    two_attentions_of_gemma,
    two_attentions_of_mimo,
)


def _defaults(
    heads: int | None = None, size: int | None = None, **more: object
) -> dict[str, object]:
    """Defaults of the key-value heads, of the head size, and of other keys."""
    stated = {"num_key_value_heads": heads, "head_dim": size, **more}
    return {key: value for key, value in stated.items() if value is not None}


GROUPED = ("n_group", "topk_group", "ep_size", "topk_method")
"""How DeepSeek's routers choose among groups of experts."""

DEEPSEEK_EXPERTS = ExpertKeys(
    E="n_routed_experts",
    Fe="moe_intermediate_size",
    shared="n_shared_experts",
    router_bias=True,
    layers=after_dense,
)
QWEN_EXPERTS = ExpertKeys(E="num_experts", Fe="moe_intermediate_size", layers=by_sparse_step)

LLAMA = Family(bias="qkvo", mlp_bias="mlp_bias")
MISTRAL = Family(defaults=_defaults(8), window=everywhere)
QWEN2 = Family(bias="qkv", bias_key=None, window=if_switched_on)
QWEN3 = Family(
    defaults=_defaults(32, 128),
    bias="qkvo",
    qk_norm="head",
    window=if_switched_on,
    only={"use_qk_norm": (True,), "qkv_bias": (False,)},
)
QWEN3_MOE = replace(
    QWEN3,
    experts=QWEN_EXPERTS,
    only={**QWEN3.only, "shared_expert_intermediate_size": (0,)},
    ignore=("intermediate_size",),
)
GEMMA = Family(
    defaults=_defaults(4, 256, tie_word_embeddings=True, sliding_window=4096), bias="qkvo", norms=4
)
DEEPSEEK_V3 = Family(
    latent=True,
    experts=DEEPSEEK_EXPERTS,
    only={"attention_bias": (False,), "topk_method": ("noaux_tc",)},
    ignore=(*GROUPED, "num_key_value_heads", "head_dim", "qk_head_dim", "index_share_for_mtp"),
)
GRANITE = replace(
    LLAMA,
    ignore=(
        "attention_multiplier",
        "embedding_multiplier",
        "logits_scaling",
        "residual_multiplier",
    ),
)
OLMO2 = Family(bias="qkvo", qk_norm="all")

LATENT_SPARSE = replace(
    DEEPSEEK_V3,
    types=(FULL, "deepseek_sparse_attention"),
    only={**DEEPSEEK_V3.only, "mlp_bias": (False,)},
    more=chosen_tokens,
    ignore=(
        *DEEPSEEK_V3.ignore,
        "index_share_for_mtp_iteration",
        "index_skip_topk_offset",
        "indexer_rope_interleave",
    ),
)
QWEN3_NEXT = replace(
    QWEN3,
    defaults=_defaults(2, 256),
    types=(FULL, LINEAR),
    window=None,
    more=gated_delta,
    only={**QWEN3.only, "attn_output_gate": (True,)},
    each={"mlp_only_layers": ()},
    ignore=("full_attention_interval", "mtp_use_dedicated_embeddings", "output_gate_type"),
)
QWEN3_NEXT_MOE = replace(
    QWEN3_NEXT,
    experts=replace(QWEN_EXPERTS, shared_width="shared_expert_intermediate_size", shared_gate=True),
    each={},
    ignore=(*QWEN3_NEXT.ignore, "intermediate_size"),
)

FAMILIES: dict[str, Family] = {
    "cohere2": Family(
        defaults=_defaults(tie_word_embeddings=True, sliding_window=4096),
        bias="qkvo",
        norms=1,
        window=all_but(every(4, key="sliding_window_pattern")),
        only={"use_qk_norm": (False,), "use_embedding_sharing": (True,)},
        ignore=("logit_scale", "layer_norm_eps", "layer_switch", "order_of_interleaved_layers"),
    ),
    "deepseek_v2": replace(
        DEEPSEEK_V3,
        experts=replace(DEEPSEEK_EXPERTS, router_bias=False),
        only={"attention_bias": (False,), "topk_method": ("greedy", "group_limited_greedy")},
    ),
    "deepseek_v3": DEEPSEEK_V3,
    "deepseek_v32": LATENT_SPARSE,
    "dots1": Family(
        bias="qkvo",
        qk_norm="head",
        window=if_switched_on,
        experts=DEEPSEEK_EXPERTS,
        ignore=GROUPED,
    ),
    "ernie4_5": Family(
        defaults=_defaults(2, 128, tie_word_embeddings=True),
        bias="qkvo",
        bias_key="use_bias",
        mlp_bias="use_bias",
    ),
    "ernie4_5_moe": Family(
        defaults=_defaults(4, tie_word_embeddings=True),
        experts=ExpertKeys(
            E="moe_num_experts",
            k=("moe_k",),
            Fe="moe_intermediate_size",
            shared="moe_num_shared_experts",
            router_bias=True,
            layers=between,
        ),
        only={"use_bias": (False,)},
        ignore=(
            "moe_capacity",
            "moe_norm_min",
            "moe_use_aux_free",
            "moe_gate",
            "compression_ratio",
        ),
    ),
    "exaone4": Family(
        defaults=_defaults(sliding_window=4096),
        qk_norm="head",
        window=all_but(every(4)),
        only={"attention_bias": (False,)},
        ignore=("sliding_window_pattern", "layer_norm_epsilon"),
    ),
    "gemma": replace(GEMMA, defaults=_defaults(16, 256, tie_word_embeddings=True), norms=2),
    "gemma2": replace(GEMMA, window=every(2, last=False), ignore=("sliding_window_size",)),
    "gemma3_text": replace(
        GEMMA,
        defaults={**GEMMA.defaults, "num_attention_heads": 8, "vocab_size": 262208},
        qk_norm="head",
        window=all_but(every(6, key="sliding_window_pattern")),
        only={"use_bidirectional_attention": (False,)},
        ignore=("_sliding_window_pattern",),
    ),
    "gemma4_text": Family(
        defaults={**GEMMA.defaults, "num_attention_heads": 8, "sliding_window": 512},
        bias="qkvo",
        qk_norm="head",
        norms=4,
        window=all_but(every(6)),
        more=two_attentions_of_gemma,
        only={
            "num_kv_shared_layers": (0,),
            "hidden_size_per_layer_input": (0,),
            "use_double_wide_mlp": (False,),
            "use_bidirectional_attention": (False, "vision"),
        },
        ignore=("vocab_size_per_layer_input",),
    ),
    "glm": Family(defaults=_defaults(2, 128), bias="qkv"),
    "glm4": Family(defaults=_defaults(2, 128), bias="qkv", norms=4),
    "glm4_moe": Family(
        defaults=_defaults(8, 128),
        bias="qkv",
        qk_norm="head",
        qk_norm_key="use_qk_norm",
        experts=DEEPSEEK_EXPERTS,
        ignore=GROUPED,
    ),
    "glm_moe_dsa": LATENT_SPARSE,
    "gpt_oss": Family(
        defaults=_defaults(8, 64, attention_bias=True, sliding_window=128),
        bias="qkvo",
        sinks=True,
        window=every(2, last=False),
        mlp=None,
        experts=ExpertKeys(
            k=("num_experts_per_tok", "experts_per_token"), router_bias=True, expert_bias=True
        ),
        ignore=("initial_context_length", "experts_per_token"),
    ),
    "granite": GRANITE,
    "granitemoe": replace(GRANITE, mlp=None, mlp_bias=None, experts=ExpertKeys()),
    "granitemoeshared": replace(
        GRANITE,
        mlp=None,
        mlp_bias=None,
        experts=ExpertKeys(shared_width="shared_intermediate_size"),
    ),
    "hunyuan_v1_dense": Family(
        bias="qkvo", qk_norm="head", only={"use_qk_norm": (True,), "use_cla": (False,)}
    ),
    "kimi_k2": DEEPSEEK_V3,
    "kimi_linear": Family(
        latent=True,
        experts=ExpertKeys(
            E="num_experts",
            k=("num_experts_per_token",),
            Fe="moe_intermediate_size",
            shared="num_shared_experts",
            router_bias=True,
            latent="routed_expert_hidden_size",
            latent_norm="latent_moe_use_norm",
            layers=after_dense,
        ),
        more=kimi_delta,
        ignore=(
            "activation_situ_beta",
            "activation_situ_linear_beta",
            "head_dim",
            "mla_use_nope",
            "moe_renormalize",
            "moe_router_activation_func",
            "num_expert_group",
            "num_key_value_heads",
            "topk_group",
            "topk_method",
            "use_grouped_topk",
        ),
    ),
    "llama": LLAMA,
    "llama4_text": Family(
        defaults=_defaults(8, 128, attention_chunk_size=8192),
        bias="qkvo",
        window=with_rope,
        window_key="attention_chunk_size",
        mlp="intermediate_size_mlp",
        experts=ExpertKeys(shared=1, layers=interleaved),
        ignore=(
            "intermediate_size_mlp",
            "use_qk_norm",
            "attn_scale",
            "floor_scale",
            "attn_temperature_tuning",
        ),
    ),
    "mimo": Family(
        defaults={"attention_bias": True}, bias="qkv", window=if_switched_on, ignore=("use_mrope",)
    ),
    "mimo_v2_flash": Family(
        bias="qkv",
        window=lambda keys: [kind == 1 for kind in keys.kinds("hybrid_layer_pattern", (0, 1))],
        more=two_attentions_of_mimo,
        experts=DEEPSEEK_EXPERTS,
        ignore=(
            *GROUPED,
            "attention_chunk_size",
            "attention_value_scale",
            "sliding_window_size",
            "swa_rope_theta",
        ),
    ),
    "minimax_m2": Family(
        defaults=_defaults(8, 128, use_qk_norm=True, use_routing_bias=True),
        bias="qkvo",
        qk_norm="all",
        qk_norm_key="use_qk_norm",
        mlp=None,
        experts=ExpertKeys(router_bias="use_routing_bias"),
        only={
            "qk_norm_type": ("per_layer",),
            "shared_intermediate_size": (0,),
            "sliding_window": (0,),
        },
        each={"attn_type_list": (1,)},
        ignore=(
            "use_mtp",
            "mtp_transformer_layers",
            "mlp_intermediate_size",
            "shared_moe_mode",
            "layernorm_full_attention_beta",
            "layernorm_linear_attention_beta",
            "layernorm_mlp_beta",
        ),
    ),
    "minimax_m3": Family(
        defaults=_defaults(4, 128, use_qk_norm=True, use_routing_bias=True),
        qk_norm="head",
        qk_norm_key="use_qk_norm",
        mlp="dense_intermediate_size",
        experts=ExpertKeys(
            shared_width="shared_intermediate_size",
            router_bias="use_routing_bias",
            layers=after_dense,
        ),
        more=chosen_blocks,
        only={"qk_norm_type": ("per_head",), "attention_output_gate": (False,)},
        ignore=(
            "moe_intermediate_size",
            "n_shared_experts",
            "swiglu_alpha",
            "use_gemma_norm",
        ),
    ),
    "mistral": MISTRAL,
    "mixtral": replace(MISTRAL, mlp=None, experts=ExpertKeys()),
    "nemotron_h": Family(
        mlp=None,
        norms=1,
        experts=ExpertKeys(
            E="n_routed_experts",
            Fe="moe_intermediate_size",
            shared_width="moe_shared_expert_intermediate_size",
            router_bias=True,
            latent="moe_latent_size",
            gated=False,
            layers=lambda keys: [kind == "moe" for kind in layer_pattern(keys)],
        ),
        more=mamba_hybrid,
        only={
            "attention_bias": (False,),
            "mlp_bias": (False,),
            "use_bias": (False,),
            "mamba_proj_bias": (False,),
            "use_conv_bias": (True,),
            "mlp_hidden_act": ("relu2",),
            "sliding_window": (),
        },
        ignore=(
            *GROUPED,
            "chunk_size",
            "expand",
            "intermediate_size",
            "mamba_hidden_act",
            "moe_intermediate_size",
            "moe_shared_expert_overlap",
            "mtp_hybrid_override_pattern",
            "mtp_layers_block_type",
            "n_shared_experts",
            "rescale_prenorm_residual",
            "time_step_floor",
            "time_step_limit",
            "time_step_max",
            "time_step_min",
            "time_step_rank",
            "use_mamba_kernels",
        ),
    ),
    "olmo2": OLMO2,
    "olmo3": replace(OLMO2, defaults={"sliding_window": 4096}, window=all_but(every(4))),
    "phi3": Family(
        window=everywhere,
        only=dict.fromkeys(("attention_bias", "mlp_bias", "lm_head_bias"), (False,)),
        ignore=("full_attn_mod", "interpolate_factor"),
    ),
    "qwen2": QWEN2,
    "qwen2_moe": replace(
        QWEN2,
        experts=replace(
            QWEN_EXPERTS, shared_width="shared_expert_intermediate_size", shared_gate=True
        ),
        only={"qkv_bias": (True,)},
        ignore=("intermediate_size",),
    ),
    "qwen3": QWEN3,
    "qwen3_moe": QWEN3_MOE,
    "qwen3_5_moe_text": QWEN3_NEXT_MOE,
    "qwen3_5_text": QWEN3_NEXT,
    "qwen3_next": QWEN3_NEXT_MOE,
    "qwen3_vl_moe_text": QWEN3_MOE,
    "qwen3_vl_text": QWEN3,
    "seed_oss": Family(
        defaults=_defaults(8, 128, attention_bias=True),
        bias="qkv",
        mlp_bias="mlp_bias",
        only={"attention_out_bias": (False,)},
        ignore=("residual_dropout",),
    ),
    "step3p7": Family(
        bias="qkv",
        qk_norm="head",
        window=all_but(every(4, last=False)),
        experts=ExpertKeys(
            E="num_experts",
            Fe="moe_intermediate_size",
            shared_width="share_expert_dim",
            router_bias="use_moe_router_bias",
            layers=after_dense,
        ),
        more=gate_of_each_head,
        ignore=("moe_router_scaling_factor", "n_shared_experts"),
    ),
    "smollm3": Family(
        defaults=_defaults(4, tie_word_embeddings=True),
        bias="qkvo",
        window=if_switched_on,
        mlp_bias="mlp_bias",
        ignore=("no_rope_layers", "no_rope_layer_interval"),
    ),
}
"""The known values of `model_type`."""
