"""Parameter counts by part, and active parameters in the three published conventions."""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from rooflines.models.compressed_attention import SharedKv, stream_matrices, stream_vectors

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rooflines.models.architecture import Shape
    from rooflines.models.matrix import Matrix


OUTSIDE_TOTAL = ("idle", "table", "matrices")
"""Fields outside the total."""


@dataclass(frozen=True)
class Parameters:
    """Parameter counts [1].

    Attributes:
        embedding: Embedding table and learned positions.
        attention: Projections in attention, indexers and SSM layers, and matrices in their place.
        mlp: MLPs in layers without experts.
        experts: All routed experts.
        shared: Shared experts.
        router: Routers, and projections to the latent width and back.
        streams: Hyper-connections.
        norms: All norms.
        biases: All biases, attention sinks, and the vectors and convolutions of SSM layers.
        unembedding: LM head or score head; 0 where tied.
        crossed: Layers with cross-attention to images.
        idle: Routed experts that a token does not use, with biases; and `crossed`.
        table: LM head or score head, tied or not.
        matrices: Layer matrices, except routed experts and routers.
    """

    embedding: int
    attention: int
    mlp: int
    experts: int
    shared: int
    router: int
    streams: int
    norms: int
    biases: int
    unembedding: int
    crossed: int
    idle: int
    table: int
    matrices: int

    @cached_property
    def groups(self) -> Mapping[str, int]:
        """Nonzero parts; they add up to `total`."""
        names = [field.name for field in fields(self) if field.name not in OUTSIDE_TOTAL]
        return {name: getattr(self, name) for name in names if getattr(self, name)}

    @property
    def total(self) -> int:
        """All parameters; tied tables count once."""
        return sum(self.groups.values())

    @property
    def active_with_embedding(self) -> int:
        """Active parameters, with the embedding table and LM head: total - idle."""
        return self.total - self.idle

    @property
    def active(self) -> int:
        """Active parameters, with the LM head: all that a step multiplies by, and vectors."""
        return self.active_without_tables + self.table

    @property
    def active_without_tables(self) -> int:
        """Active parameters, without embedding table and LM head."""
        return self.active_with_embedding - self.embedding - self.unembedding

    @property
    def by_class(self) -> Mapping[str, int]:
        """Parameters by tensor class, which shares a dtype.

        Norms, biases and routers are `rest`; the embedding is `head`, also where tied.
        """
        experts_and_tables = self.experts + self.embedding + self.unembedding
        return {
            "weights": self.matrices,
            "experts": self.experts,
            "head": self.embedding,
            "lm_head": self.unembedding,
            "rest": self.total - self.matrices - experts_and_tables,
        }


def mixer_matrices(shape: Shape) -> Iterator[tuple[int, Matrix]]:
    """Projections in attention, indexers and SSM layers, each with its number of layers."""
    for layers, attention, _, compression, _ in shape.attentions:
        yield from ((layers, matrix) for matrix in attention.matrices(shape.D))
        if compression is not None and isinstance(attention, SharedKv):
            matrices = compression.matrices(shape.D, attention)
            yield from ((layers, matrix) for matrix in matrices)
    if shape.linear_layers:
        yield shape.linear_layers, shape.linear_matrix
    if shape.sparse is not None:
        matrices = shape.sparse.matrices(shape.D, getattr(shape.attention, "q_rank", None))
        yield from ((shape.sparse.indexers, matrix) for matrix in matrices)
    if shape.state is not None:
        yield from ((shape.state.layers, matrix) for matrix in shape.state.matrices(shape.D))


def routing_matrices(shape: Shape) -> Iterator[Matrix]:
    """Router in a MoE layer, and projections to the latent width and back."""
    if (moe := shape.moe) is not None:
        yield moe.router(shape.D)
        yield from moe.latents(shape.D)


def all_stream_matrices(shape: Shape) -> tuple[tuple[int, Matrix], ...]:
    """Matmuls in hyper-connections, with counts."""
    return stream_matrices(shape.streams, shape.layers, shape.D, is_last=shape.is_last)


def excess_weights(matrix: Matrix, tp: int) -> Fraction:
    """Weights in one matrix per chip beyond an even share [1]."""
    return sum((part.weights * part.excess_share(tp) for part in matrix.copied_parts), Fraction(0))


def _cross_attention(shape: Shape) -> tuple[int, int]:
    """Matrix parameters, and all parameters, in cross-attention layers [1].

    A layer has two norms of width D, one query and one key head norm, and two gates.
    """
    attention, mlp = shape.attention, shape.mlp
    if not shape.crossed or mlp is None or attention.kind != "gqa":
        return 0, 0
    layer_matrices = sum(matrix.weights for matrix in attention.matrices(shape.D)) + mlp.weights(
        shape.D
    )
    vectors = 2 * shape.norm + 2 * attention.H + 2
    return shape.crossed * layer_matrices, shape.crossed * (layer_matrices + vectors)


def parameters_of(shape: Shape) -> Parameters:
    """Count the parameters of a model, exact."""
    width, moe = shape.D, shape.moe
    matrices = sum(count * matrix.weights for count, matrix in mixer_matrices(shape))
    norms = shape.norm_count * shape.norm
    biases = shape.outputs * shape.head_bias
    biases += stream_vectors(shape.streams, shape.layers, is_last=shape.is_last)
    for layers, attention, _, compression, _ in shape.attentions:
        norms += layers * attention.norms()
        biases += layers * attention.biases(width)
        if compression is not None and isinstance(attention, SharedKv):
            compressor_norms, positions = compression.vector_elements(attention)
            norms += layers * compressor_norms
            biases += layers * positions
    if shape.sparse is not None:
        norms += shape.sparse.indexers * 2 * shape.sparse.dim
    if shape.state is not None:
        biases += shape.state.layers * shape.state.vector_elements()
    dense = experts = shared = router = idle = latents = 0
    for mlp in shape.mlps:
        dense += (mlp.layers or 0) * mlp.weights(width)
        biases += (mlp.layers or 0) * mlp.biases(width)
    if moe is not None:
        layers, expert = shape.moe_layers, moe.expert
        routed, vectors = expert.weights(moe.width(width)), expert.biases(width)
        experts = layers * moe.E * routed
        shared = layers * moe.shared * expert.weights(width)
        router = layers * sum(matrix.weights for matrix in routing_matrices(shape))
        latents = layers * sum(matrix.weights for matrix in moe.latents(width))
        norms += layers * (moe.latent or 0) * moe.latent_norm
        biases += layers * moe.E * vectors
        biases += (layers - moe.hash_layers) * moe.choices if moe.router_bias else 0
        idle = round(layers * (moe.E - moe.mean_k) * (routed + vectors))
    cross_matrices, cross_total = _cross_attention(shape)
    return Parameters(
        embedding=shape.table + shape.positions * width,
        attention=matrices,
        mlp=dense,
        experts=experts,
        shared=shared,
        router=router,
        streams=sum(count * matrix.weights for count, matrix in all_stream_matrices(shape)),
        norms=norms,
        biases=biases,
        unembedding=shape.unembedding,
        crossed=cross_total,
        idle=idle + cross_total,
        table=shape.outputs * width,
        matrices=matrices + dense + shared + latents + cross_matrices,
    )
