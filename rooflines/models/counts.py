"""Parameters of a model by part, and the active ones by the three conventions in print."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.models.shape import Shape, TensorClass


@dataclass(frozen=True)
class Parameters:
    """Numbers of parameters [1].

    Attributes:
        embedding: Of the embedding table.
        attention: Of the projections of all layers.
        mlp: Of the MLPs of layers without experts.
        experts: Of all routed experts.
        shared: Of the shared experts.
        router: Of the routers.
        norms: Of all norms.
        biases: Of all biases, and of attention sinks.
        unembedding: Of the unembedding; 0 where it is the embedding table.
        idle: Of the routed experts that a token does not use, biases included.
        table: Of one token table, tied or not.
    """

    embedding: int
    attention: int
    mlp: int
    experts: int
    shared: int
    router: int
    norms: int
    biases: int
    unembedding: int
    idle: int
    table: int

    @cached_property
    def groups(self) -> Mapping[str, int]:
        """The parts that are not empty; their sum is `total`."""
        names = [field.name for field in fields(self) if field.name not in ("idle", "table")]
        return {name: getattr(self, name) for name in names if getattr(self, name)}

    @property
    def total(self) -> int:
        """All parameters, embeddings once where tied."""
        return sum(self.groups.values())

    @property
    def active_with_embedding(self) -> int:
        """Those that a token uses, with the embedding table and the unembedding."""
        return self.total - self.idle

    @property
    def active(self) -> int:
        """Those that a token uses, with the unembedding: what a step multiplies by, and vectors."""
        return self.active_without_tables + self.table

    @property
    def active_without_tables(self) -> int:
        """Those that a token uses, without embedding and unembedding."""
        return self.active_with_embedding - self.embedding - self.unembedding

    @property
    def by_class(self) -> Mapping[TensorClass, int]:
        """All parameters by the class of tensors that shares a dtype.

        Norms, biases and routers are `weights`.
        """
        head = self.embedding + self.unembedding
        return {
            "weights": self.total - self.experts - head,
            "experts": self.experts,
            "head": head,
        }


def parameters_of(shape: Shape) -> Parameters:
    """The parameters of a shape, exact."""
    width, attention, mlp, moe = shape.D, shape.attention, shape.mlp, shape.moe
    matrices = sum(matrix.weights for matrix in attention.matrices(width))
    norms = shape.layers * (shape.norms_per_layer * width + attention.norms()) + width
    biases = shape.layers * attention.biases(width)
    dense = experts = shared = router = idle = 0
    if mlp is not None:
        dense = shape.mlp_layers * sum(matrix.weights for matrix in mlp.matrices(width))
        biases += shape.mlp_layers * mlp.biases(width)
    if moe is not None:
        layers = shape.moe_layers
        experts = layers * moe.E * moe.expert(width)
        shared = layers * moe.shared * moe.expert(width)
        router = layers * moe.router(width)
        biases += layers * moe.E * (int(moe.router_bias) + moe.expert_biases(width))
        idle = layers * (moe.E - moe.k) * (moe.expert(width) + moe.expert_biases(width))
    return Parameters(
        embedding=shape.table,
        attention=shape.layers * matrices,
        mlp=dense,
        experts=experts,
        shared=shared,
        router=router,
        norms=norms,
        biases=biases,
        unembedding=0 if shape.tied else shape.table,
        idle=idle,
        table=shape.table,
    )
