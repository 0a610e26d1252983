"""The largest context at which several margins are positive, with attention in chunks.

What a sequence adds to a time is no monotone function of the context S: chunks of c tokens fill up,
then start again. After k whole chunks and u tokens more come T new ones, S = T + k c + u. In k and
u every time is affine, on two pieces: up to the u from which on the new tokens reach one chunk
more, and from there. So at each place u in a chunk every margin bounds k, in whole numbers.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from rooflines.model.columns import ENDLESS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Margin = Callable[[int], Fraction]

Plane = tuple[int, int, int]
"""A margin on a piece, constant + per_chunk * k + per_place * u, as whole numbers: it is positive
where that is at least 0."""


def last_context(
    above: Sequence[Margin], least: Sequence[Margin], new: int, chunk: int
) -> int | str | None:
    """The largest context at which all margins are positive.

    Args:
        above: Margins that have to be above zero, by the context.
        least: Margins that may be zero.
        new: T, new tokens of each sequence: no context is smaller [1].
        chunk: c, tokens of a chunk [1].

    Returns:
        The context [1]; `ENDLESS` where there is no largest; None where there is none.
    """
    turn = chunk - new % chunk
    found: list[int] = []
    for first, last in ((0, min(turn, chunk - 1)), (turn, chunk - 1)):
        planes = [
            _plane(margin, new, chunk, (first, last), strict=strict)
            for margins, strict in ((above, True), (least, False))
            for margin in (margins if first <= last else ())
        ]
        for place in range(first, last + 1):
            chunks = _most_chunks(planes, place)
            if isinstance(chunks, str):
                return chunks
            found += [] if chunks is None else [new + chunks * chunk + place]
    return max(found, default=None)


def _plane(margin: Margin, new: int, chunk: int, piece: tuple[int, int], *, strict: bool) -> Plane:
    """A margin on a piece, from three of its values."""
    first, last = piece
    start = margin(new + first)
    per_place = (margin(new + last) - start) / (last - first) if last > first else Fraction(0)
    numbers = start - per_place * first, margin(new + chunk + first) - start, per_place
    scale = math.lcm(*(each.denominator for each in numbers))
    constant, per_chunk, of_place = (int(each * scale) for each in numbers)
    return constant - strict, per_chunk, of_place


def _most_chunks(planes: Sequence[Plane], place: int) -> int | str | None:
    """The largest k with which all margins are positive at a place in a chunk [1].

    Returns:
        k; `ENDLESS` where there is no largest; None where there is none.
    """
    low, high = 0, None
    for constant, per_chunk, per_place in planes:
        value = constant + per_place * place
        if per_chunk < 0:
            most = value // -per_chunk
            high = most if high is None else min(high, most)
        elif value < 0:
            if not per_chunk:
                return None
            low = max(low, -(value // per_chunk))
    if high is None:
        return ENDLESS
    return high if high >= low else None
