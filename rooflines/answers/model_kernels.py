"""Sizes of a model's kernels, for questions about one of them alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError
from rooflines.models.architecture import Gqa, Mla

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.models.architecture import Shape

MODEL_KINDS = (
    *("attention", "mla", "mla-expanded", "experts", "rmsnorm", "layernorm", "swiglu", "geglu"),
    *("rotary", "embedding", "linear-cross-entropy", "cross-entropy"),
)
"""Kinds whose sizes a model has."""


def model_sizes(kind: str, name: str, shape: Shape) -> Mapping[str, int]:
    """Sizes of a kind in a model's layers, by letter [1].

    Args:
        kind: Name of the kind, one of `MODEL_KINDS`.
        name: The model's id, for messages.
        shape: The model's shape.

    Raises:
        RooflinesError: The model has no such kernel.
    """
    attention = shape.attention
    sizes: dict[str, int | None] = {"D": shape.D, "V": shape.V}
    if kind in ("attention", "rotary") and isinstance(attention, Gqa):
        sizes = {"N": attention.N, "K": attention.K, "H": attention.H, "Hv": attention.v}
    elif kind.startswith("mla") and isinstance(attention, Mla):
        sizes = {"N": attention.N, "kv": attention.kv_rank, "rope": attention.rope}
        sizes |= {"nope": attention.nope, "Hv": attention.v} if kind != "mla" else {}
    elif kind == "experts" and shape.moe is not None:
        moe = shape.moe
        sizes = {"D": moe.latent or shape.D, "F": moe.Fe, "E": moe.E, "k": moe.k}
    elif kind in ("swiglu", "geglu") and shape.mlp is not None:
        sizes = {"F": shape.mlp.F}
    elif kind in ("attention", "rotary", "mla", "mla-expanded", "experts", "swiglu", "geglu"):
        fix = (
            "ask mla, which it has"
            if isinstance(attention, Mla) and kind == "attention"
            else "name another"
        )
        raise RooflinesError(kind, f"is no kernel of {name}", fix)
    return {letter: size for letter, size in sizes.items() if size is not None}
