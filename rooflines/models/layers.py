"""The matrices of a model's layers, each with its width in and out: what a sweep's shapes name.

`groups` has the kernels of a step, as a serving engine fuses them. Here each matrix has a name of
its own, with the fused ones beside their parts, so that one can compare them.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from rooflines.models.shape import Gqa

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflines.models.shape import Attention, Shape

Sizes = dict[str, tuple[int, int]]
"""D, the contracted width, and F, the output width, by layer [1]."""

LAYERS = {
    "q": "the queries' projection",
    "k": "that of the keys; the values' has the same size",
    "qkv": "q, k and v in one matmul, as serving engines fuse them",
    "q-a": "latent attention: queries into their rank",
    "q-b": "latent attention: from that rank to the query heads",
    "kv-a": "latent attention: the cached entry, keys and values with the rotary key",
    "kv-b": "latent attention: from the entry to key and value heads",
    "o": "the output projection of attention",
    "up": "the MLP; the gate has the size of up",
    "gate-up": "gate and up in one matmul",
    "down": "from the MLP back to the width",
    "expert-up": "the same of one expert: B counts the tokens that reach it",
    "expert-gate-up": "gate and up of one expert in one matmul",
    "expert-down": "from one expert back to the width",
    "unembed": "the last matmul, to the vocabulary, padded as in the checkpoint",
}
"""The layers that a model can have, in the order of `layers_of`, and what they are."""


def layers_of(shape: Shape) -> Sizes:
    """The matrices that a model has.

    Args:
        shape: The model.

    Returns:
        D and F by layer, exact, in the order of `LAYERS`.
    """
    sizes = _attention(shape.attention, shape.D)
    if shape.mlp is not None:
        sizes |= _mlp("", shape.D, shape.mlp.F)
    if shape.moe is not None:
        sizes |= _mlp("expert-", shape.D, shape.moe.Fe)
    return {**sizes, "unembed": (shape.D, shape.V)}


STATES = {"gated-delta": "linear_attn", "kda": "self_attn", "mamba2": "mixer"}
"""The module of a layer with a state, as transformers calls it."""

EXPERTS = {"gemma4_text": ("experts.0", "mlp")}
"""The modules of routed and shared experts, of families that do not call them as DeepSeek does."""


@cache
def modules_of(shape: Shape, mixer: str, mlp: str) -> tuple[tuple[str, str, int], ...]:
    """The matrices of a layer by module, as files of checkpoints call them.

    Args:
        shape: The model.
        mixer: `full`, `window`, `state` or `none`.
        mlp: `dense`, `moe` or `none`.

    Returns:
        Modules, of all experts the first, each with its class of tensors and its elements, of all
        experts together [1].
    """
    found = [(name, "weights", size) for name, size in _mixer_modules(shape, mixer)]
    names, width = ("gate_proj", "up_proj", "down_proj"), shape.D
    if mlp == "dense" and shape.mlp is not None:
        used = names if shape.mlp.gated else names[1:]
        found += [(f"mlp.{name}", "weights", width * shape.mlp.F) for name in used]
    if mlp == "moe" and shape.moe is not None:
        moe = shape.moe
        used = names if moe.gated else names[1:]
        routed, shared = moe.E * moe.width(width) * moe.Fe, moe.shared * width * moe.Fe
        experts, together = EXPERTS.get(shape.family or "", ("mlp.experts.0", "mlp.shared_experts"))
        found += [(f"{experts}.{name}", "experts", routed) for name in used]
        found += [(f"{together}.{name}", "weights", shared) for name in used if shared]
        found += [(f"mlp.{each.name}", "weights", each.weights) for each in moe.latents(width)]
    return tuple(found)


def _mixer_modules(shape: Shape, mixer: str) -> Iterator[tuple[str, int]]:
    """The modules of attention or of a state, with their elements [1]."""
    if mixer == "state" and shape.state is not None:
        for matrix in shape.state.matrices(shape.D):
            yield f"{STATES[shape.state.kind]}.{matrix.name}", matrix.weights
    if mixer not in ("full", "window"):
        return
    own = shape.window.attention if mixer == "window" and shape.window is not None else None
    attention = own or shape.attention
    matrices = {matrix.name: matrix.weights for matrix in attention.matrices(shape.D)}
    yield "self_attn.o_proj", matrices["o"]
    if isinstance(attention, Gqa):
        queries = attention.N * attention.H + attention.gates
        keys = attention.K * attention.H
        yield "self_attn.q_proj", shape.D * queries
        yield "self_attn.k_proj", shape.D * keys
        yield "self_attn.v_proj", shape.D * (attention.cache_elements - keys)
    else:
        entry = shape.D * attention.cache_elements
        yield "self_attn.kv_a_proj_with_mqa", entry
        yield "self_attn.kv_b_proj", matrices["kv-up"]
        if attention.q_rank is None:
            yield "self_attn.q_proj", matrices["qkv"] - entry
        else:
            yield "self_attn.q_a_proj", matrices["qkv-down"] - entry
            yield "self_attn.q_b_proj", matrices["q-up"]
    if shape.sparse is not None:
        for matrix in shape.sparse.matrices(shape.D, getattr(attention, "q_rank", None)):
            share = shape.sparse.indexed / shape.sparse.layers
            yield f"self_attn.indexer.{matrix.name}", round(matrix.weights * share)


def _attention(attention: Attention, width: int) -> Sizes:
    if isinstance(attention, Gqa):
        queries, keys = attention.N * attention.H, attention.K * attention.H
        return {
            "q": (width, queries),
            "k": (width, keys),
            "qkv": (width, queries + attention.cache_elements + attention.gates),
            "o": (attention.N * attention.value, width),
        }
    queries = attention.N * (attention.nope + attention.rope)
    rank = attention.q_rank
    into = (
        {"q": (width, queries)} if rank is None else {"q-a": (width, rank), "q-b": (rank, queries)}
    )
    return {
        **into,
        "kv-a": (width, attention.kv_rank + attention.rope),
        "kv-b": (attention.kv_rank, attention.N * (attention.nope + attention.v)),
        "o": (attention.N * attention.v, width),
    }


def _mlp(of: str, width: int, hidden: int) -> Sizes:
    return {
        f"{of}up": (width, hidden),
        f"{of}gate-up": (width, 2 * hidden),
        f"{of}down": (hidden, width),
    }
