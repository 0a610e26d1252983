"""Memory per chip for a model: weights, KV cache and SSM states."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.errors import RooflinesError, at_path, check_choice
from rooflines.basics.numbers import whole
from rooflines.models.architecture import DECODE
from rooflines.models.compressed_attention import SharedKv, rotary_bits
from rooflines.models.groups import groups_of
from rooflines.models.parameter_counts import parameters_of
from rooflines.models.split import (
    BY_BATCH,
    BY_HEADS,
    CACHE_SPLITS,
    Parallelism,
    check_shares,
)
from rooflines.models.state_layers import CONV_INPUT_BITS
from rooflines.theory.attention_window import FULL_ATTENTION, AttentionWindow
from rooflines.theory.costs import BITS_PER_BYTE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.models.architecture import Shape


class CachedTensor(NamedTuple):
    """Tensor that some layers keep for every sequence.

    Attributes:
        layers: Number of layers [1].
        elements: Elements per entry, or per state [1].
        window: Attention window, which determines the number of entries.
        heads: Parts that a split by heads makes [1].
        bits: Bits per element; None: the KV cache dtype's.
        state: Whether its size is independent of the context.
        rotary_share: Share of elements with rotary bits [1].
    """

    layers: int
    elements: int
    window: AttentionWindow
    heads: int
    bits: int | None = None
    state: bool = False
    rotary_share: Fraction = Fraction(0)

    def mean_bits(self, cache_bits: Fraction) -> Fraction:
        """Mean bits per element, given the KV cache's [bit]."""
        if not self.rotary_share:
            return Fraction(self.bits or cache_bits)
        wide = rotary_bits(cache_bits)
        return cache_bits + (wide - cache_bits) * self.rotary_share

    def elements_at(self, context: int) -> int:
        """Elements per sequence of S tokens, in all its layers [1]."""
        entries = 1 if self.state else self.window.cached_entries(context)
        return self.layers * self.elements * entries


def cached_tensors(shape: Shape) -> tuple[CachedTensor, ...]:
    """Tensors kept per sequence: KV cache, indexer keys, SSM states and convolution inputs.

    Sparse and strided attention keep every entry, and read some. A compressed entry is shared out
    among its tokens.
    """
    tensors = []
    for layers, attention, window, compression, stride in shape.attentions:
        kept_window = window if shape.sparse is None and stride is None else AttentionWindow()
        entry = CachedTensor(
            layers, attention.kv_cache_elements, kept_window, attention.cache_heads
        )
        if isinstance(attention, SharedKv):
            entry = entry._replace(rotary_share=attention.rotary_share)
        tensors.append(entry)
        if compression is not None:
            elements = entry.elements // compression.tokens
            tensors.append(entry._replace(elements=elements, window=FULL_ATTENTION))
            if compression.dim is not None:
                elements = compression.dim // compression.tokens
                tensors.append(CachedTensor(layers, elements, FULL_ATTENTION, 1, compression.bits))
    if (sparse := shape.sparse) is not None:
        tensors.append(CachedTensor(sparse.indexers, sparse.dim, AttentionWindow(), 1, sparse.bits))
    if (state := shape.state) is not None:
        for elements, bits in ((state.elements, state.bits), (state.conv_inputs, CONV_INPUT_BITS)):
            window = AttentionWindow()
            tensors.append(
                CachedTensor(state.layers, elements, window, state.heads, bits, state=True)
            )
    return tuple(tensors)


def kv_cache_elements(shape: Shape, context: int, *, local: bool | None = None) -> int:
    """KV cache elements per sequence in all layers, without SSM states [1].

    Args:
        shape: The model.
        context: S, tokens in the sequence [1].
        local: True: layers with a window or chunks; False: layers over all tokens; None: all.

    Raises:
        RooflinesError: S is no whole number above zero.
    """
    with at_path("S"):
        tokens = whole(context)
    return sum(
        tensor.elements_at(tokens)
        for tensor in cached_tensors(shape)
        if not tensor.state and local in (None, tensor.window.tokens is not None)
    )


def state_bytes(shape: Shape) -> Fraction:
    """SSM states and convolution inputs per sequence, for any length [byte]."""
    sizes = (
        tensor.elements_at(1) * (tensor.bits or 0)
        for tensor in cached_tensors(shape)
        if tensor.state
    )
    return Fraction(sum(sizes)) / BITS_PER_BYTE


def cache_shards(heads: int, tp: int, cache_split: str = BY_HEADS) -> int:
    """Shards of a tensor over tp chips: min(tp, heads), or tp by batch; the rest are copies [1]."""
    return tp if cache_split == BY_BATCH else min(tp, heads)


def weights_on_chip(shape: Shape, bits: Mapping[str, Fraction], split: Parallelism) -> Fraction:
    """Weights per chip, copies included [byte], exact.

    They are those of the groups, as steps read them, and what no group has: the embedding table,
    norms, biases, layers that steps skip. Tied token tables count once.

    Args:
        shape: The model.
        bits: Bits per element by tensor class, from `ModelDtypes.bits` [bit].
        split: Split over chips.
    """
    further = {name: Fraction(count) for name, count in parameters_of(shape).by_class.items()}
    shares = {name: split.share(name) for name in further}
    if shape.moe is not None and split.parts > 1:
        shares["experts"] = split.held_share(shape.moe.E)
    resident_bytes = Fraction(0)
    for group in groups_of(shape, DECODE):
        if group.tensors is None or (group.tensors == "head" and not shape.unembedding):
            continue  # a tied table counts as the embedding
        elements = group.count * group.resident_weights
        further[group.tensor_class] -= elements
        resident_bytes += elements * group.held_weight_bytes(split, bits)
    sizes = (count * bits[name] * shares[name] for name, count in further.items())
    return resident_bytes + sum(sizes, Fraction(0)) / BITS_PER_BYTE


def cache_on_chip(
    shape: Shape,
    context: int,
    bits: Mapping[str, Fraction],
    split: Parallelism,
    cache_split: str = BY_HEADS,
) -> Fraction:
    """KV cache per sequence and chip, SSM states included [byte], exact.

    Args:
        shape: The model.
        context: S, tokens in the sequence [1].
        bits: Bits per element by tensor class, with the KV cache's [bit].
        split: Split over chips.
        cache_split: `heads` or `batch`; by batch this is the average over the replica.

    Raises:
        RooflinesError: An argument is invalid, or the bits lack the KV cache's.
    """
    if "cache" not in bits:
        raise RooflinesError("dtypes", "lacks cache", "add cache: with the dtype of the cache")
    with at_path("cache_split"):
        check_choice(cache_split, CACHE_SPLITS, "no split of the cache")
    check_shares(shape, split.shards)
    full, local = (kv_cache_elements(shape, context, local=is_local) for is_local in (False, True))
    units = cache_units(shape, bits, split, cache_split)
    return units.unit * units.sequence_units(full, local)


class CacheUnits(NamedTuple):
    """KV cache per chip in whole units, so that the largest batch is exact.

    Attributes:
        unit: Bytes per unit [byte].
        full: Units per element in layers that keep every token [1].
        local: Units per element in layers with a window or chunks [1].
        state: Units for all SSM states [1].
    """

    unit: Fraction
    full: int
    local: int
    state: int

    def sequence_units(self, full: int, local: int) -> int:
        """Units per sequence [1].

        Args:
            full: KV cache elements in layers that keep every token [1].
            local: KV cache elements in layers with a window or chunks [1].
        """
        return full * self.full + local * self.local + self.state


def cache_units(
    shape: Shape,
    bits: Mapping[str, Fraction],
    split: Parallelism,
    cache_split: str = BY_HEADS,
    counted: Shape | None = None,
) -> CacheUnits:
    """Units per element and chip: the greatest common divisor of their bytes.

    Args:
        shape: The model, or the layers of a pipeline stage.
        bits: Bits per element by tensor class, with the KV cache's [bit].
        split: Split over chips; checked.
        cache_split: `heads` or `batch`.
        counted: Model whose elements units are counted for; None: `shape`.
    """
    sizes = {"far": Fraction(0), "near": Fraction(0), "state": Fraction(0)}
    counts = dict.fromkeys(sizes, 0)
    for tensor in cached_tensors(counted or shape):
        counts[_tensor_kind(tensor)] += tensor.layers * tensor.elements
    for tensor in cached_tensors(shape):
        elements = tensor.layers * tensor.elements
        shards = cache_shards(tensor.heads, split.shards, cache_split)
        element_bytes = tensor.mean_bits(Fraction(bits["cache"])) / BITS_PER_BYTE
        sizes[_tensor_kind(tensor)] += elements * element_bytes / shards
    counts["state"] = 1
    bytes_per_element = [sizes[kind] / (counts[kind] or 1) for kind in ("far", "near", "state")]
    scale = math.lcm(*(size.denominator for size in bytes_per_element))
    common = math.gcd(*(int(size * scale) for size in bytes_per_element))
    unit = Fraction(common or 1, scale)  # a stage may have no layer with a cache
    return CacheUnits(unit, *(int(size / unit) for size in bytes_per_element))


def _tensor_kind(tensor: CachedTensor) -> str:
    """Kind of a cached tensor, by what decides its number of entries."""
    if tensor.state:
        return "state"
    return "far" if tensor.window.tokens is None else "near"
