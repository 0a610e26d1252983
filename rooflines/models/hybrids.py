"""Families whose layers are not all alike: states, chosen tokens, two attentions.

Each function adds to the shape of a config, in the form of models.yaml, what its family has besides
the table of `families`, and says which layer is what.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.basics.errors import RooflinesError, at_path, quote
from rooflines.models.keys import Keys
from rooflines.models.layer_rules import layer_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator

Form = dict[str, Any]

FULL, LINEAR = "full_attention", "linear_attention"
"""Values of `layer_types`."""

STATE_BITS = {"float32": 32, "float16": 16, "bfloat16": 16}
"""Bits of an element of a state, by the names of torch."""

INDEX_BITS = 8
"""Bits of a cached key of DeepSeek's indexer, which is stored in fp8."""

RESIDUALS = 4
"""Vectors of width D in a layer of Kimi K3 for its residuals over blocks: a norm and a query before
the mixer, and before the MLP [1]."""


class Stack(NamedTuple):
    """What each layer of a model is.

    Attributes:
        mixers: `full`, `window`, `state` or `none`.
        mlps: `dense`, `moe` or `none`.
    """

    mixers: list[str]
    mlps: list[str]


@contextmanager
def _part(keys: Keys, name: str) -> Iterator[Keys]:
    """The keys of an object within a config, which errors raised inside are placed in.

    Raises:
        RooflinesError: It is absent or no object, or has keys that nobody read.
    """
    value = keys.get(name)
    if not isinstance(value, dict):
        fix = f"add {name}: the file may be incomplete"
        raise RooflinesError(name, f"is {quote(value)}, which is no object", fix)
    part = Keys({"num_hidden_layers": keys.layers(), **value}, keys.family)
    part.ignore("num_hidden_layers")
    with at_path(name):
        yield part
        part.check()


def _state_bits(keys: Keys, name: str) -> int:
    """Bits of a state: as stated, else the fp32 that the families' code defaults to."""
    value = keys.get(name, "float32")
    if value not in STATE_BITS:
        raise RooflinesError(name, f"is {quote(value)}", f"use one of {', '.join(STATE_BITS)}")
    return STATE_BITS[value]


def gated_delta(keys: Keys, form: Form, stack: Stack) -> None:
    """Qwen3-Next and Qwen3.5: Gated DeltaNet in all but every fourth layer; gated attention."""
    every = keys.size("full_attention_interval", 4)
    stated = keys.items("layer_types")
    found = stated or [LINEAR if (i + 1) % every else FULL for i in range(keys.layers())]
    stack.mixers[:] = ["state" if kind == LINEAR else "full" for kind in found]
    form["attention"]["gate"] = "element"
    form["state"] = {
        "kind": "gated-delta",
        "layers": found.count(LINEAR),
        "heads": keys.size("linear_num_value_heads"),
        "groups": keys.size("linear_num_key_heads"),
        "key": keys.size("linear_key_head_dim"),
        "value": keys.size("linear_value_head_dim"),
        "conv": keys.size("linear_conv_kernel_dim"),
        "bits": _state_bits(keys, "mamba_ssm_dtype"),
    }


def kimi_delta(keys: Keys, form: Form, stack: Stack) -> None:
    """Kimi Linear and Kimi K3: Kimi Delta Attention, and latent attention with gates in some."""
    with _part(keys, "linear_attn_config") as linear:
        kda, full = (linear.items(name) for name in ("kda_layers", "full_attn_layers"))
        if sorted(kda + full) != list(range(1, keys.layers() + 1)):
            problem = f"and full_attn_layers are not the layers 1 to {keys.layers()}, each once"
            raise RooflinesError("kda_layers", problem, "correct them: they count from 1")
        heads, size = linear.size("num_heads"), linear.size("head_dim")
        state = {
            "kind": "kda",
            "layers": len(kda),
            "heads": heads,
            "groups": heads,
            "key": size,
            "value": size,
            "conv": linear.size("short_conv_kernel_size"),
            "full_gate": linear.flag("use_full_rank_gate"),
            "bits": STATE_BITS.get(keys.get("torch_dtype", keys.get("dtype")), 16),
        }
        linear.ignore("gate_lower_bound")
    stack.mixers[:] = [
        "state" if index in kda else "full" for index in range(1, len(kda + full) + 1)
    ]
    form["attention"]["gate"] = keys.flag("mla_use_output_gate")
    form["context"] = form["context"] or keys.maybe("model_max_length")
    keys.ignore("model_max_length")
    if keys.maybe("attn_res_block_size"):
        form["norms_per_layer"] += RESIDUALS
    form["state"] = state


def mamba_hybrid(keys: Keys, form: Form, stack: Stack) -> None:
    """Nemotron-H and Nemotron 3: each layer is Mamba-2, attention, an MLP or experts."""
    kinds = layer_pattern(keys)
    mixers = {"mamba": "state", "attention": "full"}
    stack.mixers[:] = [mixers.get(kind, "none") for kind in kinds]
    stack.mlps[:] = [{"mlp": "dense", "moe": "moe"}.get(kind, "none") for kind in kinds]
    form["single"] = True
    form["attention"]["H"] = keys.size("attention_head_dim", form["attention"]["H"])
    if dense := kinds.count("mlp"):
        size = keys.size("intermediate_size")
        form["mlp"] = {"F": size, "layers": dense, "gated": False}
    form["state"] = {
        "kind": "mamba2",
        "layers": kinds.count("mamba"),
        "heads": keys.size("mamba_num_heads"),
        "groups": keys.size("n_groups"),
        "key": keys.size("ssm_state_size"),
        "value": keys.size("mamba_head_dim"),
        "conv": keys.size("conv_kernel"),
        "bits": _state_bits(keys, "mamba_ssm_cache_dtype"),
    }


def chosen_tokens(keys: Keys, form: Form, stack: Stack) -> None:
    """DeepSeek-V3.2 and GLM-5: latent attention to the tokens that an indexer chooses."""
    del stack
    types = keys.kinds("indexer_types", ("full", "shared"))
    if not types and keys.get("index_topk_freq", 1) != 1:
        problem = "shares indexers among layers, and indexer_types does not say which"
        raise RooflinesError("index_topk_freq", problem, "add indexer_types")
    keys.only("num_experts", keys.get("n_routed_experts"))
    keys.only("index_topk_pattern")
    keys.ignore("index_topk_freq")
    form["sparse"] = {
        "tokens": keys.size("index_topk"),
        "heads": keys.size("index_n_heads"),
        "dim": keys.size("index_head_dim"),
        "layers": keys.layers(),
        "own": types.count("full") if types else None,
        "bits": INDEX_BITS,
    }


def chosen_blocks(keys: Keys, form: Form, stack: Stack) -> None:
    """MiniMax-M3: attention to the blocks of tokens that an indexer chooses, in most layers.

    The last block may have one token, so that a token attends to at least all but one of the
    blocks, and one token.
    """
    del stack
    with _part(keys, "sparse_attention_config") as sparse:
        used = sum(sparse.kinds("sparse_attention_freq", (0, 1)))
        blocks, size = sparse.size("sparse_topk_blocks"), sparse.size("sparse_block_size")
        found = {
            "tokens": (blocks - 1) * size + 1,
            "heads": sparse.size("sparse_num_index_heads"),
            "dim": sparse.size("sparse_index_dim"),
            "layers": used,
            "weighted": False,
        }
        sparse.ignore("sparse_disable_index_value", "sparse_init_block", "sparse_local_block")
        sparse.ignore("sparse_score_type")
        on = sparse.flag("use_sparse_attention", default=True)
    form["sparse"] = found if on and used else None


def two_attentions_of_gemma(keys: Keys, form: Form, stack: Stack) -> None:
    """Gemma 4: other heads in layers without a window, where keys may be the values.

    Experts run beside an MLP, which is taken as shared experts of the same width together.
    """
    near = form["attention"]
    if form["window"] is not None:
        form["window"]["attention"] = near
    same = keys.flag("attention_k_eq_v")
    heads = keys.size("num_global_key_value_heads", near["K"]) if same else near["K"]
    size = keys.size("global_head_dim", 512)
    form["attention"] = {**near, "K": heads, "H": size, "one_tensor": same}
    keys.ignore("num_global_key_value_heads")
    if not keys.flag("enable_moe_block"):
        keys.ignore("moe_intermediate_size", "num_experts", "top_k_experts")
        return
    width = keys.size("moe_intermediate_size")
    form.pop("mlp")
    form["norms_per_layer"] += 3 + 1  # of the experts, and a scale of the router
    form["moe"] = {
        "E": keys.size("num_experts"),
        "k": keys.size("top_k_experts"),
        "Fe": width,
        "shared": keys.multiple("intermediate_size", width),
        "router_bias": True,  # a scale of each expert
    }
    stack.mlps[:] = ["moe"] * keys.layers()


def two_attentions_of_mimo(keys: Keys, form: Form, stack: Stack) -> None:
    """MiMo-V2: other heads and sinks in layers with a window; values smaller than keys."""
    del stack
    base = form["attention"]
    own = {
        **base,
        "N": keys.size("swa_num_attention_heads", base["N"]),
        "K": keys.size("swa_num_key_value_heads", base["K"]),
        "H": keys.size("swa_head_dim", base["H"]),
        "v": keys.size("swa_v_head_dim", keys.maybe("v_head_dim") or base["H"]),
        "sinks": keys.flag("add_swa_attention_sink_bias"),
    }
    sinks = keys.flag("add_full_attention_sink_bias")
    form["attention"] = {**base, "v": keys.maybe("v_head_dim"), "sinks": sinks}
    if form["window"] is not None:
        form["window"]["attention"] = own


def gate_of_each_head(keys: Keys, form: Form, stack: Stack) -> None:
    """Step 3.7: a gate of each head, and other heads in layers with a window, where stated."""
    del stack
    base = form["attention"]
    if keys.stated("use_head_wise_attn_gate"):
        base["gate"] = "head"
    other = keys.get("attention_other_setting")
    if other is None or form["window"] is None:
        keys.assumed.append("attention_other_setting is absent: all layers have the same heads")
        return
    with _part(keys, "attention_other_setting") as inner:
        own = {
            "N": inner.size("num_attention_heads", base["N"]),
            "K": inner.size("num_attention_groups", base["K"]),
            "H": inner.size("head_dim", base["H"]),
        }
        inner.ignore("attention_type", "true_head_dim")
    form["window"]["attention"] = {**base, **own}
