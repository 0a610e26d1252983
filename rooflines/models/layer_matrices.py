"""Weight matrices in a model's layers, with widths in and out, for `shapes` in a sweep.

`groups` has a step's kernels, as a serving engine fuses them. Here every matrix is named, with
fused ones beside their parts for comparison.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

from rooflines.models.architecture import Gqa
from rooflines.models.compressed_attention import SharedKv

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflines.models.architecture import Mlp, Shape, Variant

MatrixWidths = dict[str, tuple[int, int]]
"""D (contracted width) and F (output width) by layer [1]."""

LAYERS = {
    "q": "query projection",
    "k": "key projection; the value projection has the same size",
    "qkv": "q, k and v in one matmul, as serving engines fuse them",
    "q-a": "MLA: down to the query rank; `q` if queries have no rank",
    "q-b": "MLA: query rank up to the query heads",
    "kv-a": "MLA: down to the cached entry, the latent and the rotary key",
    "kv-b": "MLA: latent up to key and value heads",
    "o": "output projection of attention",
    "up": "MLP; the gate has the same size",
    "gate-up": "gate and up in one matmul",
    "down": "MLP, back to the model width",
    "expert-up": (
        "one expert; B counts the tokens that reach it: tokens * experts per token / experts, "
        "with even routing"
    ),
    "expert-gate-up": "one expert, gate and up in one matmul",
    "expert-down": "one expert, back to the model width",
    "unembed": "LM head, with the vocabulary padded as in the checkpoint",
}
"""Matrices that a model can have, with descriptions, in the order of `layers_of`."""


def layers_of(shape: Shape) -> MatrixWidths:
    """Matrices in a model.

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


def _mlp(mlp: Mlp, width: int) -> MatrixWidths:
    """MLP matrices for width D, with gate and up also as one matmul [1]."""
    matrices = dict(mlp.projections(width))
    return {**matrices, "gate-up": (width, 2 * mlp.F)} if mlp.gated else matrices


STATE_MODULES = {
    "gated-delta": "linear_attn",
    "kda": "self_attn",
    "lightning": "self_attn",
    "mamba1": "mamba",
    "mamba2": "mamba",
    "short-conv": "conv",
}
"""Module names for SSM layers, as in transformers; those of one part each have `MIXER`."""

BESIDE = "beside"
"""Layer type with attention beside a state."""

MIXER = "mixer"
"""Module name for every layer in models whose layers have one part each."""

LATENT_MODULES = ("fc1_latent_proj", "fc2_latent_proj")
"""Module names for projections to the latent width and back."""

ATTENTION_MODULES = {
    **{name: f"{name}_proj" for name in "qkvo"},
    "q-a": "q_a_proj",
    "q-b": "q_b_proj",
    "kv-a": "kv_a_proj_with_mqa",
    "kv-b": "kv_b_proj",
    "kv": "kv_proj",
    "o-a": "o_a_proj",
    "o-b": "o_b_proj",
}
"""Module names for attention projections."""

VARIANT = "variant-"
"""Prefix of types of layers that differ, before their index in the shape's variants."""

LINEAR_MODULES = ("self_attn.linear_attn", "mlp.linear_mlp")
"""Module names for a matrix D x D in place of attention, and of an MLP."""

CROSS_ATTENTION = "cross_attn"
"""Module name for cross-attention to images."""

EXPERT_MODULES = {"gemma4_text": ("experts.0", "mlp")}
"""Module names for routed and shared experts, where families differ from DeepSeek."""


@cache
def modules_of(shape: Shape, mixer: str, mlp: str) -> tuple[tuple[str, str, int], ...]:
    """Matrices in a layer by module name, as in checkpoint files.

    Args:
        shape: The model.
        mixer: `full`, `window`, `state`, `beside`, `cross`, `none`, or `variant-` and an index.
        mlp: `dense`, `moe`, `none`, or the same.

    Returns:
        (module, tensor class, elements [1]) per matrix; experts are one module, the first
        expert's, with all experts' elements.
    """
    if mixer.startswith(VARIANT):
        return _variant_modules(shape, shape.variants[int(mixer.removeprefix(VARIANT))])
    modules = [(name, "weights", size) for name, size in _mixer_modules(shape, mixer)]
    modules += _mlp_modules(shape, mlp)
    if shape.single:
        modules = [
            (f"{MIXER}.{name.partition('.')[2]}", kind, size) for name, kind, size in modules
        ]
    return tuple(modules)


def _variant_modules(shape: Shape, variant: Variant) -> tuple[tuple[str, str, int], ...]:
    """Modules in a layer that differs, as `modules_of`."""
    attention, mlp = shape.attention, shape.mlp
    if variant.K is not None:
        attention = attention.model_copy(update={"K": variant.K})
    if variant.F is not None and mlp is not None:
        mlp = mlp.model_copy(update={"F": variant.F})
    plain_shape = shape.model_copy(update={"attention": attention, "mlp": mlp})
    types = ("none" if variant.attention else "full"), ("none" if variant.mlp else "dense")
    kinds = zip(LINEAR_MODULES, (variant.attention, variant.mlp), strict=True)
    linears = [name for name, kind in kinds if kind == "linear"]
    return (
        *modules_of(plain_shape, *types),
        *((name, "weights", shape.linear_matrix.weights) for name in linears),
    )


def _mlp_modules(shape: Shape, mlp: str) -> list[tuple[str, str, int]]:
    """Modules in an MLP or MoE, with tensor class and elements [1]."""
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
    """Modules in attention or an SSM layer, with elements [1]."""
    if mixer in ("state", BESIDE) and shape.state is not None:
        for name, size in shape.state.modules(shape.D).items():
            yield f"{STATE_MODULES[shape.state.kind]}.{name}", size
    if mixer not in ("full", "window", "cross", BESIDE):
        return
    local_attention = (
        shape.window.attention if mixer == "window" and shape.window is not None else None
    )
    attention = local_attention or shape.attention
    projections = attention.projections(shape.D)
    sizes = {name: into * out for name, (into, out) in projections.items()}
    sizes[next(iter(sizes))] += sizes.pop("gates", 0)  # one module with the queries
    for name, size in sizes.items():
        yield (
            f"{CROSS_ATTENTION if mixer == 'cross' else 'self_attn'}.{ATTENTION_MODULES[name]}",
            size,
        )
    if isinstance(attention, SharedKv):  # all layers' together, evenly
        for part in shape.compressed:
            for matrix in part.matrices(shape.D, attention):
                elements = Fraction(matrix.weights * part.layers, shape.layers)
                yield f"self_attn.compressor.{matrix.name}", round(elements)
    if shape.sparse is not None:
        for matrix in shape.sparse.matrices(shape.D, getattr(attention, "q_rank", None)):
            share = shape.sparse.indexers / shape.sparse.layers
            yield f"self_attn.indexer.{matrix.name}", round(matrix.weights * share)
