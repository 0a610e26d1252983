"""What a model takes of the memory of chips: parameters, and the caches of sequences."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.errors import RooflinesError, at_path
from rooflines.basics.numbers import whole
from rooflines.models.attention_window import AttentionReach
from rooflines.models.parameter_counts import copied_routers, copied_weights, parameters_of
from rooflines.models.split import BY_BATCH, BY_HEADS, Split, check_shares
from rooflines.models.state_layers import CONVOLVED_BITS
from rooflines.theory.costs import BITS_PER_BYTE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.models.architecture import Shape


class Store(NamedTuple):
    """What some layers keep of a sequence.

    Attributes:
        layers: How many [1].
        elements: Of an entry, or of a state [1].
        reach: How far tokens attend, which says how many entries are kept.
        heads: Parts that it can be split into by heads [1].
        bits: Bits of an element; None: as the dtype of the cache.
        state: Whether it is of one size, whatever the tokens.
    """

    layers: int
    elements: int
    reach: AttentionReach
    heads: int
    bits: int | None = None
    state: bool = False

    def held(self, context: int) -> int:
        """Elements of a sequence of S tokens in all its layers [1]."""
        entries = 1 if self.state else self.reach.kept(context)
        return self.layers * self.elements * entries


def stores_of(shape: Shape) -> tuple[Store, ...]:
    """What a sequence keeps: entries of attention and of indexers, states, inputs of convolutions.

    Sparse attention keeps every entry, and reads some.
    """
    found = []
    for layers, attention, reach in shape.attentions:
        kept = reach if shape.sparse is None else AttentionReach()
        found.append(Store(layers, attention.kv_cache_elements, kept, attention.cache_heads))
    if (sparse := shape.sparse) is not None:
        found.append(Store(sparse.indexed, sparse.dim, AttentionReach(), 1, sparse.bits))
    if (state := shape.state) is not None:
        for elements, bits in ((state.elements, state.bits), (state.inputs, CONVOLVED_BITS)):
            reach = AttentionReach()
            found.append(Store(state.layers, elements, reach, state.heads, bits, state=True))
    return tuple(found)


def kv_cache_elements(shape: Shape, context: int, *, near: bool | None = None) -> int:
    """Cache elements of one sequence in all layers, states apart [1].

    Args:
        shape: The model.
        context: S, tokens of the sequence [1].
        near: Whether of layers with a window or chunks, or of the others; None: of both.

    Raises:
        RooflinesError: S is no whole number above zero.
    """
    with at_path("S"):
        tokens = whole(context)
    return sum(
        store.held(tokens)
        for store in stores_of(shape)
        if not store.state and near in (None, store.reach.tokens is not None)
    )


def state_bytes(shape: Shape) -> Fraction:
    """Bytes of a sequence whatever its tokens [byte]: states, and inputs of convolutions."""
    sizes = (store.held(1) * (store.bits or 0) for store in stores_of(shape) if store.state)
    return Fraction(sum(sizes)) / BITS_PER_BYTE


def cache_shards(heads: int, tp: int, cache_split: str = BY_HEADS) -> int:
    """Shards of a tensor with this number of heads over tp chips [1]; the rest is replicated."""
    return tp if cache_split == BY_BATCH else min(tp, heads)


def weights_on_chip(shape: Shape, bits: Mapping[str, Fraction], split: Split) -> Fraction:
    """Bytes of the parameters that one chip holds [byte], exact, copies included.

    Embedding and unembedding count once where tied.

    Args:
        shape: The model.
        bits: Bits per element by class of tensors, as of `ModelDtypes.bits` [bit].
        split: How chips share the model.
    """
    classes = parameters_of(shape).by_class
    shares = (count * bits[name] * split.share(name) for name, count in classes.items())
    copies = copied_weights(shape, split.shards) * bits["weights"]
    routers = shape.moe_layers * copied_routers(shape, split.shards)
    copies += routers * (bits["rest"] - bits["weights"])
    return sum(shares, copies) / BITS_PER_BYTE


def cache_on_chip(
    shape: Shape,
    context: int,
    bits: Mapping[str, Fraction],
    split: Split,
    cache_split: str = BY_HEADS,
) -> Fraction:
    """Bytes that the cache of one sequence takes on each chip of its replica [byte], exact.

    Args:
        shape: The model.
        context: S, tokens of the sequence [1].
        bits: Bits per element by class of tensors, with those of the cache [bit].
        split: How chips share the model.
        cache_split: `heads` or `batch`; by batch this is the average over the replica.

    Raises:
        RooflinesError: An argument is invalid, or the bits have none for the cache.
    """
    if "cache" not in bits:
        raise RooflinesError("dtypes", "lacks cache", "add cache: with the dtype of the cache")
    check_shares(shape, split.shards, cache_split)
    far, near = (kv_cache_elements(shape, context, near=each) for each in (False, True))
    units = cache_units(shape, bits, split, cache_split)
    return units.unit * units.of_sequence(far, near)


class CacheUnits(NamedTuple):
    """What a sequence takes of a chip in whole units, so that batches are exact.

    Attributes:
        unit: Bytes of a unit [byte].
        far: Units of an element in layers that keep every token [1].
        near: Units of an element in layers with a window or chunks [1].
        state: Units of all states [1].
    """

    unit: Fraction
    far: int
    near: int
    state: int

    def of_sequence(self, far: int, near: int) -> int:
        """The units of a sequence [1].

        Args:
            far: Its cache elements in layers that keep every token [1].
            near: Those in other layers [1].
        """
        return far * self.far + near * self.near + self.state


def cache_units(
    shape: Shape, bits: Mapping[str, Fraction], split: Split, cache_split: str = BY_HEADS
) -> CacheUnits:
    """The units of a sequence on a chip: elements of both kinds, and states.

    Args:
        shape: The model.
        bits: Bits per element by class of tensors, with those of the cache [bit].
        split: How chips share the model; checked.
        cache_split: `heads` or `batch`.
    """
    sizes = {"far": Fraction(0), "near": Fraction(0), "state": Fraction(0)}
    counts = dict.fromkeys(sizes, 0)
    for store in stores_of(shape):
        kind = "state" if store.state else "far" if store.reach.tokens is None else "near"
        elements = store.layers * store.elements
        shards = cache_shards(store.heads, split.shards, cache_split)
        each = Fraction(store.bits or bits["cache"]) / BITS_PER_BYTE
        sizes[kind] += elements * each / shards
        counts[kind] += elements
    counts["state"] = 1
    per = [sizes[kind] / (counts[kind] or 1) for kind in ("far", "near", "state")]
    scale = math.lcm(*(size.denominator for size in per))
    unit = Fraction(math.gcd(*(int(size * scale) for size in per)), scale)
    return CacheUnits(unit, *(int(size / unit) for size in per))
