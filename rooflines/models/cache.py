"""The cache of keys and values: entries that are kept and moved, and their bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError, one_of, placed
from rooflines.basics.numbers import whole
from rooflines.models.dtypes import bits_of, in_bytes

if TYPE_CHECKING:
    from fractions import Fraction

    from rooflines.models.shape import Shape

BY_HEADS, BY_BATCH = CACHE_SPLITS = ("heads", "batch")
"""How the chips of a tensor-parallel group split the cache: by KV heads, the rest replicated; or by
sequences, each on one chip."""


def entries_held(context: int, window: int | None) -> int:
    """Entries of one sequence that a layer keeps [1].

    Args:
        context: S, tokens of the sequence so far [1].
        window: Tokens that a token attends to; None: all [1].
    """
    return context if window is None else min(context, window)


def entries_moved(context: int, new: int, window: int | None) -> int:
    """Entries of one sequence that a layer reads or writes in a step [1].

    Earlier entries that new tokens attend to are read once, new ones are written once.

    Args:
        context: S, tokens of the sequence after the step [1].
        new: T, new tokens [1].
        window: Tokens that a token attends to; None: all [1].
    """
    earlier = context - new
    return new + (earlier if window is None else min(earlier, window - 1))


def pairs(context: int, new: int, window: int | None) -> int:
    """Pairs of a new token and a token that it attends to, in one sequence and layer [1].

    Args:
        context: S, tokens of the sequence after the step [1].
        new: T, new tokens [1].
        window: Tokens that a token attends to; None: all [1].

    Returns:
        The sum over new tokens of min(position, window), exact.
    """

    def up_to(last: int) -> int:
        short = entries_held(last, window)
        return short * (short + 1) // 2 + (last - short) * (window or 0)

    return up_to(context) - up_to(context - new)


def cache_elements(shape: Shape, context: int) -> int:
    """Cache elements of one sequence in all layers [1].

    Args:
        shape: The model.
        context: S, tokens of the sequence [1].

    Raises:
        RooflinesError: S is no whole number above zero.
    """
    with placed("S"):
        tokens = whole(context)
    entries = sum(layers * entries_held(tokens, window) for layers, window in shape.windows)
    return entries * shape.attention.cache_elements


def cache_bytes(shape: Shape, context: int, dtype: str) -> int | Fraction:
    """Bytes of the cache of one sequence [byte], exact; an int where it is whole.

    Args:
        shape: The model.
        context: S, tokens of the sequence [1].
        dtype: A format of the dtype catalogue; scales of blocks are counted.

    Raises:
        RooflinesError: S or the dtype is invalid.
    """
    with placed("dtype"):
        bits = bits_of(dtype)
    return in_bytes(cache_elements(shape, context), bits)


def cache_shares(shape: Shape, tp: int, cache_split: str = BY_HEADS) -> int:
    """Parts into which tp chips split the cache of their sequences [1]; the rest is replicated.

    Args:
        shape: The model.
        tp: Chips of a tensor-parallel group [1].
        cache_split: `heads`: min(tp, K), and 1 for MLA, whose entries are for all heads; `batch`:
            tp.

    Raises:
        RooflinesError: tp does not divide the heads evenly.
    """
    with placed("cache_split"):
        one_of(cache_split, CACHE_SPLITS, "no split of the cache")
    with placed("tp"):
        chips = whole(tp)
    heads, cached = shape.attention.N, shape.attention.cache_heads
    if heads % chips:
        divisors = ", ".join(str(n) for n in range(1, heads + 1) if not heads % n)
        raise RooflinesError(
            "tp",
            f"is {chips}, which does not divide the {heads} query heads",
            f"use one of {divisors}",
        )
    if cached % chips and chips % cached:
        raise RooflinesError(
            "tp",
            f"is {chips}, which neither divides the {cached} key-value heads nor is a multiple",
            "use a number of chips that shares or replicates the heads evenly",
        )
    return chips if cache_split == BY_BATCH else min(chips, cached)
