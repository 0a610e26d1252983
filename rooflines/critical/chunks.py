"""The largest context at which several margins are positive, with attention in chunks.

What a sequence adds to a time is no monotone function of the context S: chunks of c tokens fill up,
then start again. After k whole chunks and u tokens more come T new ones, S = T + k c + u. In k and
u every time is affine, on two pieces: up to the u from which on the new tokens reach one chunk
more, and from there. On each the largest S is an exact linear program of two whole numbers.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from rooflines.model.columns import ENDLESS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Margin = Callable[[int], Fraction]

FAR = 2**62
"""Chunks beyond which a margin that has no last positive context is tried [1]."""


class MarginPlane(NamedTuple):
    """A margin on a piece: constant + per_chunk * k + per_place * u.

    Attributes:
        constant, per_chunk, per_place: Its coefficients.
        strict: Whether it has to be above zero; else it may be zero.
    """

    constant: Fraction
    per_chunk: Fraction
    per_place: Fraction
    strict: bool = False

    def holds(self, chunks: int, place: int) -> bool:
        """Whether the margin is positive."""
        value = self.constant + self.per_chunk * chunks + self.per_place * place
        return value > 0 if self.strict else value >= 0


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
        if first > last:
            continue
        planes = [
            _plane(margin, new, chunk, (first, last), strict=strict)
            for margins, strict in ((above, True), (least, False))
            for margin in margins
        ]
        bounds = [
            MarginPlane(Fraction(-first), Fraction(0), Fraction(1)),
            MarginPlane(Fraction(last), Fraction(0), Fraction(-1)),
        ]
        if (at := _largest([*bounds, *planes], chunk)) == ENDLESS:
            return ENDLESS
        found += [] if at is None else [new + int(at)]
    return max(found, default=None)


def _plane(
    margin: Margin, new: int, chunk: int, piece: tuple[int, int], *, strict: bool
) -> MarginPlane:
    """A margin on a piece, from three of its values."""
    first, last = piece
    start = margin(new + first)
    per_place = (margin(new + last) - start) / (last - first) if last > first else Fraction(0)
    per_chunk = margin(new + chunk + first) - start
    return MarginPlane(start - per_place * first, per_chunk, per_place, strict)


def _largest(planes: Sequence[MarginPlane], chunk: int) -> int | str | None:
    """The largest k c + u at which all planes hold; `ENDLESS` without one, None if none does."""
    low, high = Fraction(0), None
    for constant, slope in _without_place(planes):
        if slope > 0:
            low = max(low, -constant / slope)
        elif slope < 0:
            high = -constant / slope if high is None else min(high, -constant / slope)
        elif constant < 0:
            return None
    if high is None:
        return None if _place(planes, math.ceil(low) + FAR) is None else ENDLESS
    for chunks in range(math.floor(high), math.ceil(low) - 1, -1):
        if (place := _place(planes, chunks)) is not None:
            return chunks * chunk + place
    return None


def _without_place(planes: Sequence[MarginPlane]) -> Iterator[tuple[Fraction, Fraction]]:
    """What k has to satisfy so that some u does, constant + slope * k >= 0 (Fourier-Motzkin)."""
    for one in planes:
        if not one.per_place:
            yield one.constant, one.per_chunk
        for other in planes if one.per_place > 0 else ():
            if other.per_place < 0:
                up, down = one.per_place, -other.per_place
                yield (
                    up * other.constant + down * one.constant,
                    up * other.per_chunk + down * one.per_chunk,
                )


def _place(planes: Sequence[MarginPlane], chunks: int) -> int | None:
    """The largest u at which all planes hold with this k; None if they hold at none."""
    highest = min(
        math.floor((each.constant + each.per_chunk * chunks) / -each.per_place)
        for each in planes
        if each.per_place < 0
    )
    for place in (highest, highest - 1):  # the first may be the end of a strict margin
        if all(each.holds(chunks, place) for each in planes):
            return place
    return None
