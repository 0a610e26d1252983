"""What a model takes of the memory of chips."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.errors import RooflinesError
from rooflines.model.costs import BITS_PER_BYTE
from rooflines.models.cache import BY_HEADS, cache_elements, cache_shards, check_shares, stores_of
from rooflines.models.counts import parameters_of
from rooflines.models.dtypes import in_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.models.shape import Shape
    from rooflines.models.split import Split


def weights_on_chip(shape: Shape, bits: Mapping[str, Fraction], split: Split) -> Fraction:
    """Bytes of the parameters that one chip holds [byte], exact.

    Embedding and unembedding count once where tied. Norms, biases and routers are stored as
    `weights`.

    Args:
        shape: The model.
        bits: Bits per element by class of tensors, as of `ModelDtypes.bits` [bit].
        split: How chips share the model.
    """
    classes = parameters_of(shape).by_class
    shares = (in_bytes(count, bits[name]) * split.share(name) for name, count in classes.items())
    return sum(shares, Fraction(0))


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
    units = cache_units(shape, bits, split, cache_split)
    far, near = (cache_elements(shape, context, near=kind) for kind in (False, True))
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
    """The units of `cache_on_chip`: elements of both kinds, in units, and states add up to it.

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
        each = Fraction(store.bits or bits["cache"]) / BITS_PER_BYTE
        sizes[kind] += elements * each / cache_shards(store.heads, split.shards, cache_split)
        counts[kind] += elements
    counts["state"] = 1
    per = [sizes[kind] / (counts[kind] or 1) for kind in ("far", "near", "state")]
    scale = math.lcm(*(size.denominator for size in per))
    unit = Fraction(math.gcd(*(int(size * scale) for size in per)), scale)
    return CacheUnits(unit, *(int(size / unit) for size in per))
