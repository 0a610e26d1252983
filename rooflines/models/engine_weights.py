"""Weights as a serving engine loads them: stored bytes, rotary angles, rounding.

Source: `config/engines.yaml`, vLLM; the allocator is PyTorch's, `CUDACachingAllocator.cpp`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from rooflines.models.architecture import Gqa, Mla
from rooflines.models.engine_rules import MIB
from rooflines.models.parameter_counts import (
    all_stream_matrices,
    excess_weights,
    mixer_matrices,
    parameters_of,
    routing_matrices,
)
from rooflines.theory.costs import BITS_PER_BYTE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rooflines.models.architecture import Shape
    from rooflines.models.matrix import Matrix
    from rooflines.models.split import Parallelism

VOCABULARY_MULTIPLE = 64
"""Rows to which engines pad token tables [1]."""

WIDE_BITS = 16
"""Least bits in norms, biases, routers and encoders, which quantizers skip [bit]."""

LARGE_BYTES, SEGMENT_BYTES, KEPT_BYTES = 10 * MIB, 2 * MIB, MIB
"""Tensors from `LARGE_BYTES` on have separate segments, whole `SEGMENT_BYTES`; a rest
up to `KEPT_BYTES` is lost [byte]."""

PACKED_BITS = Fraction(17, 4)
"""Bits per element in MXFP4 experts, whose sizes engines pad [bit]."""

PACKED_WIDTH, PACKED_EXPERT_WIDTH = 256, 128
"""Multiples that D, and Fe / tp, are padded to in MXFP4 experts: inferred from totals [1]."""


class LoadedWeights(NamedTuple):
    """Weights on the fullest chip [byte].

    Attributes:
        stored: Parameters as stored, copies and an absorbed `kv_b` included.
        rotary: Rotary tables, whole on every chip.
        rounding: Bytes that the allocator adds.
    """

    stored: Fraction
    rotary: Fraction
    rounding: Fraction

    @property
    def total(self) -> Fraction:
        """All three [byte]."""
        return self.stored + self.rotary + self.rounding


class LoadedTensor(NamedTuple):
    """Tensors with one size on a chip.

    Attributes:
        number: How many there are on all stages [1].
        elements: Elements in each on one chip [1].
        bits: Bits per element [bit].
    """

    number: int
    elements: Fraction
    bits: Fraction

    @property
    def bytes(self) -> Fraction:
        """Memory for one [byte]."""
        return self.elements * self.bits / BITS_PER_BYTE

    @property
    def rounding(self) -> Fraction:
        """Bytes that the allocator adds to one [byte]."""
        size = math.ceil(self.bytes)
        rest = -size % SEGMENT_BYTES
        return Fraction(rest if size >= LARGE_BYTES and rest <= KEPT_BYTES else 0)


def loaded_weights(
    shape: Shape, bits: Mapping[str, Fraction], split: Parallelism, stages: int = 1
) -> LoadedWeights:
    """Weights as loaded, on a chip in the last pipeline stage.

    stored = parameters by class / tp (experts / ep), tables with V padded to 64, norms and routers
    in 16 bits or more.

    Args:
        shape: The model, with the layers that are loaded.
        bits: Bits per element by tensor class, with activations [bit].
        split: Parallelism over chips.
        stages: Pipeline stages, which share the layers [1].
    """
    wide = _wide_bits(bits)
    layers = [*layer_tensors(shape, bits, split)]
    share = Fraction(1, stages)
    stored = sum((tensor.number * tensor.bytes for tensor in layers), Fraction(0)) * share
    rounding = sum((tensor.number * tensor.rounding for tensor in layers), Fraction(0)) * share
    for table in _tables(shape, bits, split, stages):
        stored += table.bytes
        rounding += table.rounding
    parameters = parameters_of(shape)
    vectors = parameters.norms + Fraction(parameters.biases, split.shards)
    vectors = vectors * share + Fraction(shape.encoder, split.shards)
    stored += vectors * wide / BITS_PER_BYTE
    stored += Fraction(shape.positions * shape.D) * bits["head"] / BITS_PER_BYTE
    stored += Fraction(parameters.crossed, split.shards) * bits["weights"] / BITS_PER_BYTE
    return LoadedWeights(stored, rotary_bytes(shape, bits), rounding)


def _wide_bits(bits: Mapping[str, Fraction]) -> Fraction:
    """Bits in tensors that quantizers skip [bit]."""
    return max(Fraction(bits["rest"]), Fraction(WIDE_BITS))


def rotary_bytes(shape: Shape, bits: Mapping[str, Fraction]) -> Fraction:
    """Rotary tables on every chip: positions x rotary size x b [byte]."""
    elements = shape.rotary_elements
    if elements is None:
        attention = shape.attention
        size = attention.H if isinstance(attention, Gqa) else attention.rope
        elements = (shape.context or 0) * size if shape.attention_layers else 0
    return elements * bits["activations"] / BITS_PER_BYTE


def layer_tensors(
    shape: Shape, bits: Mapping[str, Fraction], split: Parallelism
) -> Iterator[LoadedTensor]:
    """Matrices in all layers as one chip has them: q, k, v one; gate, up one; all experts one.

    Args:
        shape: The model.
        bits: Bits per element by tensor class [bit].
        split: Parallelism over chips.
    """
    wide, width, tp = _wide_bits(bits), shape.D, split.shards

    def on_chip(matrix: Matrix) -> Fraction:
        return Fraction(matrix.weights, tp) + excess_weights(matrix, tp)

    for count, matrix in mixer_matrices(shape):
        yield LoadedTensor(count, on_chip(matrix), bits["weights"])
    for count, matrix in all_stream_matrices(shape):
        yield LoadedTensor(count, on_chip(matrix), wide)
    if isinstance(attention := shape.attention, Mla):
        absorbed = attention.kv_rank * attention.N * (attention.nope + attention.v)
        yield LoadedTensor(shape.attention_layers, Fraction(absorbed, tp), bits["activations"])
    for mlp in shape.mlps:
        for matrix in mlp.matrices(width):
            yield LoadedTensor(mlp.layers or 0, on_chip(matrix), bits["weights"])
    if (moe := shape.moe) is None:
        return
    layers = shape.moe_layers
    router, *latents = routing_matrices(shape)
    yield LoadedTensor(layers, on_chip(router), wide)
    for matrix in latents:
        yield LoadedTensor(layers, on_chip(matrix), bits["weights"])
    if moe.shared:
        for matrix in moe.expert.matrices(width):
            yield LoadedTensor(layers, moe.shared * on_chip(matrix), bits["weights"])
    expert_width = Fraction(moe.Fe, split.width_shards)
    token_width = moe.width(width)
    if bits["experts"] == PACKED_BITS:
        token_width = math.ceil(Fraction(token_width, PACKED_WIDTH)) * PACKED_WIDTH
        blocks = math.ceil(expert_width / PACKED_EXPERT_WIDTH)
        expert_width = Fraction(blocks * PACKED_EXPERT_WIDTH)
    experts = -(-moe.E // split.parts)
    for matrices in (1 + moe.gated, 1):
        yield LoadedTensor(layers, experts * token_width * expert_width * matrices, bits["experts"])


def _tables(
    shape: Shape, bits: Mapping[str, Fraction], split: Parallelism, stages: int
) -> Iterator[LoadedTensor]:
    """Token tables on the last stage: the head, and on a single stage the embedding too."""

    def rows(count: int) -> Fraction:
        padded = math.ceil(Fraction(count, VOCABULARY_MULTIPLE)) * VOCABULARY_MULTIPLE
        return Fraction(padded * shape.D, split.shards)

    if stages == 1 or shape.tied:
        yield LoadedTensor(1, rows(shape.V), bits["head"])
    if shape.unembedding:
        yield LoadedTensor(1, rows(shape.outputs), bits["lm_head"])
