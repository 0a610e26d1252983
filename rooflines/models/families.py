"""The families of config.json that are known: their keys as shapes, in the form of models.yaml."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import RooflinesError, quote
from rooflines.models.keys import RECURRENT, SPARSE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rooflines.models.keys import Keys

Form = dict[str, Any]

BETAS = ("full_attention", "linear_attention", "mlp")
"""Residual scales of MiniMax: constants, not parameters."""

FULL, SLIDING, CHUNKED = "full_attention", "sliding_attention", "chunked_attention"


def _heads(keys: Keys, *, own_size: bool, **more: object) -> Form:
    """Grouped-query attention.

    Args:
        keys: The config.
        own_size: Whether the family's head size must be stated; else D / N is its default.
        more: Further keys of the attention; None is left out.
    """
    heads = keys.size("num_attention_heads")
    size = None if own_size or keys.get("head_dim") else _whole_heads(keys, heads)
    form = {
        "N": heads,
        "K": keys.size("num_key_value_heads", None if own_size else heads),
        "H": keys.size("head_dim", size),
    }
    return form | {key: value for key, value in more.items() if value}


def _whole_heads(keys: Keys, heads: int) -> int:
    width = keys.size("hidden_size")
    if width % heads:
        problem = f"is absent, and {width} / {heads} is no whole number"
        raise RooflinesError("head_dim", problem, "add head_dim, the size of a head")
    return width // heads


def _bias(keys: Keys, kind: str, *, default: bool = False) -> str | None:
    return kind if keys.flag("attention_bias", default=default) else None


def _form(keys: Keys, attention: Form, *, tied: bool = False, **more: object) -> Form:
    """What every family has; None is left out."""
    form = {
        "layers": keys.layers(),
        "D": keys.size("hidden_size"),
        "V": keys.size("vocab_size"),
        "tied": keys.flag("tie_word_embeddings", default=tied),
        "attention": attention,
    }
    more = {"context": keys.maybe("max_position_embeddings"), **more}
    return form | {key: value for key, value in more.items() if value is not None}


def _window(keys: Keys, tokens: int | None, windowed: Sequence[bool]) -> Form | None:
    """The layers with a window: those of `layer_types` where it is given, else by a pattern.

    Args:
        keys: The config.
        tokens: Tokens of the window; None: there is none [1].
        windowed: Whether each layer has it, if `layer_types` does not say.
    """
    layers = keys.layers()
    types = keys.items("layer_types")
    if types:
        _check_layer_types(types, layers)
        windowed = [kind != FULL for kind in types]
    count = sum(windowed)
    if count and tokens is None:
        if types:
            raise RooflinesError(
                "layer_types", "has layers with a window, whose size is absent", "add the size"
            )
        return None
    return {"tokens": tokens, "layers": count} if count else None


def _check_layer_types(types: Sequence[object], layers: int) -> None:
    for index, kind in enumerate(types):
        if kind not in (FULL, SLIDING, CHUNKED):
            raise RooflinesError(
                f"layer_types[{index}]",
                f"is {quote(kind)}: {RECURRENT if 'linear' in str(kind) else SPARSE}",
                f"use a model whose layers are {FULL}, {SLIDING} or {CHUNKED}",
            )
    if len(types) != layers:
        problem = f"has {len(types)} layers, and num_hidden_layers is {layers}"
        raise RooflinesError("layer_types", problem, "correct one of them")


def _everywhere(keys: Keys) -> Form | None:
    """A window in every layer, where `sliding_window` is set."""
    return _window(keys, keys.maybe("sliding_window"), [True] * keys.layers())


def _if_used(keys: Keys) -> Form | None:
    """The window of Qwen: in the layers from `max_window_layers` on, where it is switched on."""
    layers = keys.layers()
    used = keys.flag("use_sliding_window")
    first = keys.size("max_window_layers", layers, least=0)
    tokens = keys.maybe("sliding_window")
    return _window(keys, tokens, [used and index >= first for index in range(layers)])


def _dense(keys: Keys, **more: object) -> Form:
    return {"F": keys.size("intermediate_size"), **more}


def _experts(keys: Keys, count: str, width: str, chosen: int | None = None, **more: object) -> Form:
    """Experts.

    Args:
        keys: The config.
        count: The key of their number.
        width: The key of the width of each.
        chosen: Experts of a token, where `num_experts_per_tok` is absent [1].
        more: Further keys of experts.
    """
    of_a_token = keys.size("num_experts_per_tok", chosen)
    return {"E": keys.size(count), "k": of_a_token, "Fe": keys.size(width), **more}


def llama(keys: Keys) -> Form:
    """Llama 1 to 3, and models with the same layers."""
    attention = _heads(keys, own_size=False, bias=_bias(keys, "qkvo"))
    return _form(keys, attention, mlp=_dense(keys, bias=keys.flag("mlp_bias")))


def mistral(keys: Keys) -> Form:
    """Mistral: Llama's layers, with a window in some versions."""
    return _form(keys, _heads(keys, own_size=False), mlp=_dense(keys), window=_everywhere(keys))


def phi3(keys: Keys) -> Form:
    """Phi-3 and Phi-4, whose projections are fused."""
    for name in ("attention_bias", "mlp_bias", "lm_head_bias"):
        keys.off(name, "biases of phi3 are not known")
    keys.ignore("full_attn_mod", "interpolate_factor")
    return mistral(keys)


def mixtral(keys: Keys) -> Form:
    """Mixtral: an expert is as wide as `intermediate_size`."""
    moe = _experts(keys, "num_local_experts", "intermediate_size")
    return _form(keys, _heads(keys, own_size=False), moe=moe, window=_everywhere(keys))


def qwen2(keys: Keys) -> Form:
    """Qwen2 and Qwen2.5: biases of queries, keys and values, always."""
    attention = _heads(keys, own_size=False, bias="qkv")
    return _form(keys, attention, mlp=_dense(keys), window=_if_used(keys))


def _qwen3_attention(keys: Keys) -> Form:
    return _heads(keys, own_size=True, bias=_bias(keys, "qkvo"), qk_norm="head")


def qwen3(keys: Keys) -> Form:
    """Qwen3, dense."""
    return _form(keys, _qwen3_attention(keys), mlp=_dense(keys), window=_if_used(keys))


def qwen3_moe(keys: Keys) -> Form:
    """Qwen3 with experts: in every `decoder_sparse_step`-th layer but `mlp_only_layers`."""
    layers, step = keys.layers(), keys.size("decoder_sparse_step", 1)
    dense = keys.indices("mlp_only_layers")
    sparse = sum((index + 1) % step == 0 and index not in dense for index in range(layers))
    moe = _experts(keys, "num_experts", "moe_intermediate_size")
    attention, mixed = _qwen3_attention(keys), _mixed(keys, sparse, moe)
    return _form(keys, attention, window=_if_used(keys), **mixed)


def _mixed(keys: Keys, sparse: int, moe: Form, width: str = "intermediate_size") -> Form:
    """The parts of a model of which `sparse` layers have experts and the others an MLP.

    Args:
        keys: The config.
        sparse: Layers with experts [1].
        moe: The experts.
        width: The key of the width of the MLP; ignored where all layers have experts.
    """
    keys.ignore(width)
    layers = keys.layers()
    parts: Form = {"moe": {**moe, "layers": sparse}} if sparse else {}
    if sparse == layers:
        return parts
    return parts | {"mlp": {"F": keys.size(width), "layers": layers - sparse}}


def gemma2(keys: Keys) -> Form:
    """Gemma 2: a window in every other layer, the first one included."""
    layers = keys.layers()
    tokens = keys.maybe("sliding_window") or keys.maybe("sliding_window_size")
    keys.ignore("sliding_window_size")
    window = _window(keys, tokens, [index % 2 == 0 for index in range(layers)])
    attention = _heads(keys, own_size=True, bias=_bias(keys, "qkvo"))
    return _form(keys, attention, tied=True, mlp=_dense(keys), window=window, norms_per_layer=4)


def gemma3(keys: Keys) -> Form:
    """Gemma 3: a window in all but every sixth layer."""
    layers = keys.layers()
    keys.off("use_bidirectional_attention", "it is an encoder")
    every = keys.size("sliding_window_pattern", keys.size("_sliding_window_pattern", 6))
    window = _window(
        keys, keys.maybe("sliding_window"), [(index + 1) % every != 0 for index in range(layers)]
    )
    attention = _heads(keys, own_size=True, bias=_bias(keys, "qkvo"), qk_norm="head")
    return _form(keys, attention, tied=True, mlp=_dense(keys), window=window, norms_per_layer=4)


def llama4(keys: Keys) -> Form:
    """The text part of Llama 4: attention in chunks but in every fourth layer, one shared expert.

    Its norms of queries and keys have no parameters.
    """
    layers = keys.layers()
    every = keys.size("no_rope_layer_interval", 4)
    rotary = keys.items("no_rope_layers") or [(index + 1) % every != 0 for index in range(layers)]
    if len(rotary) != layers or any(kind not in (0, 1) for kind in rotary):
        problem = f"is no list of a 0 or 1 for each of the {layers} layers"
        raise RooflinesError("no_rope_layers", problem, "correct it, or leave it out")
    window = _window(keys, keys.maybe("attention_chunk_size"), [bool(kind) for kind in rotary])
    step = keys.size("interleave_moe_layer_step", 1)
    sparse = len(keys.indices("moe_layers") or range(step - 1, layers, step))
    moe = _experts(keys, "num_local_experts", "intermediate_size", shared=1)
    keys.ignore("use_qk_norm", "attn_scale", "floor_scale", "attn_temperature_tuning")
    attention = _heads(keys, own_size=True, bias=_bias(keys, "qkvo"))
    mixed = _mixed(keys, sparse, moe, "intermediate_size_mlp")
    return _form(keys, attention, window=window, **mixed)


def gpt_oss(keys: Keys) -> Form:
    """gpt-oss: biases everywhere, sinks, a window in every other layer, the first one included."""
    layers = keys.layers()
    window = _window(
        keys, keys.maybe("sliding_window"), [index % 2 == 0 for index in range(layers)]
    )
    most, biases = keys.maybe("experts_per_token"), {"router_bias": True, "expert_bias": True}
    moe = _experts(keys, "num_local_experts", "intermediate_size", most, **biases)
    keys.ignore("initial_context_length")
    attention = _heads(keys, own_size=True, bias=_bias(keys, "qkvo", default=True), sinks=True)
    return _form(keys, attention, moe=moe, window=window)


def _grouped_experts(keys: Keys) -> Form:
    """Experts after the first dense layers, as DeepSeek has them."""
    layers = keys.layers()
    first, every = keys.size("first_k_dense_replace", 0, least=0), keys.size("moe_layer_freq", 1)
    sparse = sum(index >= first and index % every == 0 for index in range(layers))
    keys.ignore("n_group", "topk_group", "num_nextn_predict_layers", "ep_size")
    moe = _experts(keys, "n_routed_experts", "moe_intermediate_size", router_bias=True)
    return _mixed(keys, sparse, {**moe, "shared": keys.size("n_shared_experts", 0, least=0)})


def deepseek_v3(keys: Keys) -> Form:
    """DeepSeek-V3 and R1, Kimi K2: multi-head latent attention."""
    keys.off("attention_bias", "biases of latent attention are not modelled")
    keys.only("topk_method", "noaux_tc", reason="routers without a bias for each expert")
    keys.ignore("num_key_value_heads", "head_dim", "qk_head_dim")
    attention = {
        "kind": "mla",
        "N": keys.size("num_attention_heads"),
        "q_rank": keys.maybe("q_lora_rank"),
        "kv_rank": keys.size("kv_lora_rank"),
        "nope": keys.size("qk_nope_head_dim"),
        "rope": keys.size("qk_rope_head_dim"),
        "v": keys.size("v_head_dim"),
    }
    return _form(keys, attention, **_grouped_experts(keys))


def glm4_moe(keys: Keys) -> Form:
    """GLM-4.5: DeepSeek's experts, grouped-query attention with biases."""
    norm = "head" if keys.flag("use_qk_norm") else None
    attention = _heads(keys, own_size=True, bias=_bias(keys, "qkv"), qk_norm=norm)
    keys.ignore("topk_method")
    return _form(keys, attention, **_grouped_experts(keys))


def minimax_m2(keys: Keys) -> Form:
    """MiniMax-M2: norms over all heads together, experts in every layer."""
    kinds = keys.items("attn_type_list")
    if any(kind != 1 for kind in kinds):
        fix = "use a model whose layers are all of type 1, full attention"
        raise RooflinesError("attn_type_list", f"has other kinds: {RECURRENT}", fix)
    keys.only("qk_norm_type", "per_layer", reason="norms of another size")
    keys.only("shared_intermediate_size", 0, reason="shared experts are not known of minimax_m2")
    keys.only("sliding_window", 0, reason="windows of minimax_m2 are not known")
    keys.ignore("use_mtp", "num_mtp_modules", "mtp_transformer_layers", "mlp_intermediate_size")
    keys.ignore("shared_moe_mode", *(f"layernorm_{kind}_beta" for kind in BETAS))
    norm = "all" if keys.flag("use_qk_norm", default=True) else None
    bias = keys.flag("use_routing_bias", default=True)
    moe = _experts(keys, "num_local_experts", "intermediate_size", router_bias=bias)
    attention = _heads(keys, own_size=True, bias=_bias(keys, "qkvo"), qk_norm=norm)
    return _form(keys, attention, moe=moe)


def olmo2(keys: Keys) -> Form:
    """OLMo 2: norms of queries and keys over all heads together."""
    attention = _heads(keys, own_size=False, bias=_bias(keys, "qkvo"), qk_norm="all")
    return _form(keys, attention, mlp=_dense(keys))


FAMILIES: dict[str, Callable[[Keys], Form]] = {
    "deepseek_v3": deepseek_v3,
    "gemma2": gemma2,
    "gemma3_text": gemma3,
    "glm4_moe": glm4_moe,
    "gpt_oss": gpt_oss,
    "kimi_k2": deepseek_v3,
    "llama": llama,
    "llama4_text": llama4,
    "minimax_m2": minimax_m2,
    "mistral": mistral,
    "mixtral": mixtral,
    "olmo2": olmo2,
    "phi3": phi3,
    "qwen2": qwen2,
    "qwen3": qwen3,
    "qwen3_moe": qwen3_moe,
}
"""The known values of `model_type`."""
