"""What a model takes of the memory of chips, and the largest batch that fits."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError, placed, quote
from rooflines.basics.numbers import exact, whole
from rooflines.models.cache import BY_HEADS, cache_bytes_per_chip
from rooflines.models.counts import parameters_of
from rooflines.models.dtypes import bits_of, in_bytes

if TYPE_CHECKING:
    from rooflines.models.dtypes import ModelDtypes
    from rooflines.models.shape import Shape

__all__ = ["max_batch", "weights_bytes"]


def weights_bytes(shape: Shape, dtypes: ModelDtypes) -> int | Fraction:
    """Bytes of all parameters [byte], exact; an int where it is whole.

    Embedding and unembedding count once where tied. Norms, biases and routers are stored as
    `weights`.
    """
    classes = parameters_of(shape).by_class
    total = sum(
        (Fraction(in_bytes(count, bits_of(dtypes.of(name)))) for name, count in classes.items()),
        Fraction(0),
    )
    return int(total) if total.denominator == 1 else total


def max_batch(  # noqa: PLR0913, all but the first four have a default
    shape: Shape,
    capacity: float | Fraction,
    context: int,
    dtypes: ModelDtypes,
    *,
    tp: int = 1,
    dp: int = 1,
    cache_split: str = BY_HEADS,
) -> int:
    """The most sequences whose caches fit beside the weights on tp * dp chips [1], exact.

    Args:
        shape: The model.
        capacity: Memory of one chip [byte].
        context: S, tokens of each sequence [1].
        dtypes: Dtypes of the weights and of the cache.
        tp: Chips that share the weights of a replica [1].
        dp: Replicas [1].
        cache_split: `heads` or `batch`, as in `cache_shares`.

    Returns:
        dp * floor((capacity - weights / tp) / cache of one sequence on a chip); 0 if the weights
        alone do not fit. Activations and the runtime's own memory are not counted.

    Raises:
        RooflinesError: An argument is invalid, or the dtypes have none for the cache.
    """
    if dtypes.cache is None:
        raise RooflinesError("dtypes", "lacks cache", "add cache: with the dtype of the cache")
    with placed("capacity"):
        memory = capacity if isinstance(capacity, Fraction) else exact(capacity)
        if memory <= 0:
            raise RooflinesError(
                "", f"is {quote(capacity)}, which is not above zero", "write bytes, such as 80e9"
            )
    with placed("dp"):
        replicas = whole(dp)
    of_one = cache_bytes_per_chip(shape, context, dtypes.cache, tp, cache_split)
    free = memory - Fraction(weights_bytes(shape, dtypes)) / tp
    return replicas * max(int(free // of_one), 0)
