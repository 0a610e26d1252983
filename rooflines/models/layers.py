"""The matrices of a model's layers, each with its width in and out: what a sweep's shapes name.

`groups` has the kernels of a step, as a serving engine fuses them. Here each matrix has a name of
its own, with the fused ones beside their parts, so that one can compare them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflines.models.shape import Gqa

if TYPE_CHECKING:
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
