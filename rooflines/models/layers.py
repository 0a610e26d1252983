"""The matrices of a model's layers, each with its width in and out: what a sweep's shapes name.

`groups` has the kernels of a step, as a serving engine fuses them. Here each matrix has a name of
its own, with the fused ones beside their parts, so that one can compare them.
"""

from __future__ import annotations

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


MODULES = {
    "q": ("self_attn.q_proj",),
    "k": ("self_attn.k_proj", "self_attn.v_proj"),
    "q-a": ("self_attn.q_a_proj",),
    "q-b": ("self_attn.q_b_proj",),
    "kv-a": ("self_attn.kv_a_proj_with_mqa",),
    "kv-b": ("self_attn.kv_b_proj",),
    "o": ("self_attn.o_proj",),
    "up": ("mlp.gate_proj", "mlp.up_proj"),
    "down": ("mlp.down_proj",),
    "expert-up": ("mlp.experts.0.gate_proj", "mlp.experts.0.up_proj"),
    "expert-down": ("mlp.experts.0.down_proj",),
}
"""The modules of a checkpoint that a layer of `LAYERS` is, as transformers calls them."""


def modules_of(shape: Shape, *, sparse: bool) -> Iterator[tuple[str, str, int]]:
    """The matrices of a layer by module, as files of checkpoints call them.

    Args:
        shape: The model.
        sparse: Whether the layer has experts.

    Yields:
        The module, of all experts the first; its class of tensors; its elements, of all experts
        together [1].
    """
    for name, (contracted, width) in layers_of(shape).items():
        is_expert = name.startswith("expert-")
        if name.removeprefix("expert-") in ("up", "down") and is_expert != sparse:
            continue
        for module in MODULES.get(name, ()):
            size = contracted * width
            if not is_expert or shape.moe is None:
                yield module, "weights", size
                continue
            yield module, "experts", shape.moe.E * size
            if shape.moe.shared:
                shared = module.replace("experts.0", "shared_experts")
                yield shared, "weights", shape.moe.shared * size


def _attention(attention: Attention, width: int) -> Sizes:
    if isinstance(attention, Gqa):
        queries, keys = attention.N * attention.H, attention.K * attention.H
        return {
            "q": (width, queries),
            "k": (width, keys),
            "qkv": (width, queries + 2 * keys),
            "o": (queries, width),
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
