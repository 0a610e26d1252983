"""The cache of keys and values: what layers keep of a sequence, its bytes and its shares."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.errors import RooflinesError, at_path, one_of
from rooflines.basics.numbers import whole
from rooflines.models.reach import AttentionReach

if TYPE_CHECKING:
    from rooflines.models.shape import Shape

BY_HEADS, BY_BATCH = CACHE_SPLITS = ("heads", "batch")
"""How the chips of a tensor-parallel group split the cache: by KV heads, the rest replicated; or by
sequences, each on one chip."""


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
    """What a sequence keeps: entries of attention and of indexers, and states.

    Sparse attention keeps every entry, and reads some. Inputs of short convolutions, below two per
    cent of a state, are not counted.
    """
    found = []
    for layers, attention, reach in shape.attentions:
        kept = reach if shape.sparse is None else AttentionReach()
        found.append(Store(layers, attention.cache_elements, kept, attention.cache_heads))
    if (sparse := shape.sparse) is not None:
        found.append(Store(sparse.indexed, sparse.dim, AttentionReach(), 1, sparse.bits))
    if (state := shape.state) is not None:
        found.append(
            Store(
                state.layers, state.elements, AttentionReach(), state.heads, state.bits, state=True
            )
        )
    return tuple(found)


def cache_elements(shape: Shape, context: int, *, near: bool | None = None) -> int:
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


def cache_shards(heads: int, tp: int, cache_split: str = BY_HEADS) -> int:
    """Shards of a tensor with this number of heads over tp chips [1]; the rest is replicated."""
    return tp if cache_split == BY_BATCH else min(tp, heads)


def check_shares(shape: Shape, tp: int, cache_split: str = BY_HEADS) -> None:
    """Refuse a number of chips that does not share the heads of a model evenly.

    Args:
        shape: The model.
        tp: Chips of a tensor-parallel group [1].
        cache_split: `heads`: min(tp, K), and 1 for MLA, whose entries are for all heads; `batch`:
            tp.

    Raises:
        RooflinesError: tp does not divide the heads evenly, or is no number of chips.
    """
    with at_path("cache_split"):
        one_of(cache_split, CACHE_SPLITS, "no split of the cache")
    with at_path("tp"):
        chips = whole(tp)
    states = () if shape.state is None else (("heads of states", shape.state.heads),)
    queries = [("query heads", each.attention.N) for each in shape.attentions]
    for name, heads in (*queries, *states):
        if heads % chips:
            divisors = ", ".join(str(n) for n in range(1, heads + 1) if not heads % n)
            problem = f"is {chips}, which does not divide the {heads} {name}"
            raise RooflinesError("tp", problem, f"use one of {divisors}")
    for _, attention, _ in shape.attentions:
        cached = attention.cache_heads
        if cached % chips and chips % cached:
            raise RooflinesError(
                "tp",
                f"is {chips}, which neither divides the {cached} key-value heads nor is a multiple",
                "use a number of chips that shares or replicates the heads evenly",
            )
