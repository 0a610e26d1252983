"""The matrices of a model's layers, each with its width in and out: what a sweep's shapes name.

`groups` has the kernels of a step, as a serving engine fuses them. Here each matrix has a name of
its own, with the fused ones beside their parts, so that one can compare them.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from rooflines.models.architecture import Gqa

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflines.models.architecture import Mlp, Shape

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
    matrices = dict(shape.attention.projections(shape.D))
    if isinstance(shape.attention, Gqa):
        *qkv, _ = matrices.values()
        matrices["qkv"] = shape.D, sum(out for _, out in qkv)
    if shape.mlp is not None:
        matrices |= _mlp(shape.mlp, shape.D)
    if shape.moe is not None:
        expert = _mlp(shape.moe.expert, shape.moe.width(shape.D))
        matrices |= {f"expert-{name}": sizes for name, sizes in expert.items()}
    if shape.outputs:
        matrices["unembed"] = shape.D, shape.outputs
    return {name: matrices[name] for name in LAYERS if name in matrices}


def _mlp(mlp: Mlp, width: int) -> Sizes:
    """The matrices of an MLP, for width D [1], and those before its activation in one matmul."""
    matrices = dict(mlp.projections(width))
    return {**matrices, "gate-up": (width, 2 * mlp.F)} if mlp.gated else matrices


STATE_MODULES = {
    "gated-delta": "linear_attn",
    "kda": "self_attn",
    "mamba2": "mixer",
    "short-conv": "conv",
}
"""The module of a layer with a state, as transformers calls it."""

MIXER = "mixer"
"""The module of every layer of models whose layers are one part each."""

LATENT_MODULES = ("fc1_latent_proj", "fc2_latent_proj")
"""The modules of projections into and out of the width of experts."""

ATTENTION_MODULES = {
    **{name: f"{name}_proj" for name in "qkvo"},
    "q-a": "q_a_proj",
    "q-b": "q_b_proj",
    "kv-a": "kv_a_proj_with_mqa",
    "kv-b": "kv_b_proj",
}
"""The modules of the projections of attention."""

CROSS_ATTENTION = "cross_attn"
"""The module of cross-attention to images."""

EXPERT_MODULES = {"gemma4_text": ("experts.0", "mlp")}
"""The modules of routed and shared experts, of families that do not call them as DeepSeek does."""


@cache
def modules_of(shape: Shape, mixer: str, mlp: str) -> tuple[tuple[str, str, int], ...]:
    """The matrices of a layer by module, as files of checkpoints call them.

    Args:
        shape: The model.
        mixer: `full`, `window`, `state`, `cross` or `none`.
        mlp: `dense`, `moe` or `none`.

    Returns:
        Modules, of all experts the first, each with its class of tensors and its elements, of all
        experts together [1].
    """
    modules = [(name, "weights", size) for name, size in _mixer_modules(shape, mixer)]
    modules += _mlp_modules(shape, mlp)
    if shape.single:
        modules = [
            (f"{MIXER}.{name.partition('.')[2]}", kind, size) for name, kind, size in modules
        ]
    return tuple(modules)


def _mlp_modules(shape: Shape, mlp: str) -> list[tuple[str, str, int]]:
    """The modules of an MLP or of experts, with their class and elements [1]."""
    modules: list[tuple[str, str, int]] = []
    if mlp == "dense" and shape.mlp is not None:
        projections = shape.mlp.projections(shape.D)
        modules += [(f"mlp.{name}_proj", "weights", d * f) for name, (d, f) in projections.items()]
    if mlp == "moe" and (moe := shape.moe) is not None:
        expert_module, shared_module = EXPERT_MODULES.get(
            shape.family or "", ("mlp.experts.0", "mlp.shared_experts")
        )
        for module, tensors, count, width in (
            (expert_module, "experts", moe.E, moe.width(shape.D)),
            (shared_module, "weights", moe.shared, shape.D),
        ):
            projections = moe.expert.projections(width) if count else {}
            modules += [
                (f"{module}.{name}_proj", tensors, count * d * f)
                for name, (d, f) in projections.items()
            ]
        latents = zip(LATENT_MODULES, moe.latents(shape.D), strict=False)
        modules += [(f"mlp.{name}", "weights", matrix.weights) for name, matrix in latents]
    return modules


def _mixer_modules(shape: Shape, mixer: str) -> Iterator[tuple[str, int]]:
    """The modules of attention or of a state, with their elements [1]."""
    if mixer == "state" and shape.state is not None:
        for name, size in shape.state.modules(shape.D).items():
            yield f"{STATE_MODULES[shape.state.kind]}.{name}", size
    if mixer not in ("full", "window", "cross"):
        return
    local_attention = (
        shape.window.attention if mixer == "window" and shape.window is not None else None
    )
    attention = local_attention or shape.attention
    projections = attention.projections(shape.D)
    sizes = {name: into * out for name, (into, out) in projections.items()}
    sizes[next(iter(sizes))] += sizes.pop("gates")  # one module with the queries
    for name, size in sizes.items():
        yield (
            f"{CROSS_ATTENTION if mixer == 'cross' else 'self_attn'}.{ATTENTION_MODULES[name]}",
            size,
        )
    if shape.sparse is not None:
        for matrix in shape.sparse.matrices(shape.D, getattr(attention, "q_rank", None)):
            share = shape.sparse.indexed / shape.sparse.layers
            yield f"self_attn.indexer.{matrix.name}", round(matrix.weights * share)
