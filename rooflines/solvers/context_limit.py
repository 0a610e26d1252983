"""The largest context of decode with a compute-bound batch.

For a large batch B only what grows with B counts: by its margin t_math grows more by a sequence
than another time does. Contexts are S = start + k c + u, with c the tokens of a chunk of attention,
else 1, and start the context at which all windows are full, with chunks the shortest one. In k and
the place u in a chunk every margin is affine, on two pieces: up to the u from which on the new
tokens reach one chunk more, and from there. So at each place every margin bounds k, in whole
numbers. Until windows are full margins are concave.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.numbers import LARGEST_COUNT, first
from rooflines.dictionary.columns import BEYOND, ENDLESS, FOUND, NEVER
from rooflines.models.groups import StepExtents
from rooflines.theory.resources import MATH, OTHERS, RESOURCES

if TYPE_CHECKING:
    from rooflines.sweep.step_sweep import StepCase

Margin = Callable[[int], Fraction]
"""By how much more t_math grows by a sequence than another time, by the context [s]."""

Plane = tuple[int, int, int]
"""A margin on a piece, constant + per_chunk * k + per_place * u, as whole numbers: it is positive
where that is at least 0."""


class Solution(NamedTuple):
    """A threshold, by the names of its columns.

    Attributes:
        outcome: What it is.
        critical_exact: The real size [1]; None without.
        critical: The whole size [1]; None without.
        limit: What binds beyond it, or always.
    """

    outcome: str
    critical_exact: float | None = None
    critical: int | None = None
    limit: str | None = None


def context_ceiling(case: StepCase, new: int) -> Solution:
    """The largest context at which some large batch is compute-bound.

    With chunks there may be contexts without such a batch before it.

    Args:
        case: The case.
        new: T, new tokens of each sequence: no context is smaller [1].
    """
    reaches = case.model.shape.attention_windows
    tokens = max((reach.tokens or 0 for reach in reaches), default=0)
    chunk = tokens if any(reach.chunked for reach in reaches) else 1
    full = new if chunk > 1 else new + tokens
    above, least = _margins(case, new)

    def last(least: Sequence[Margin]) -> int | str | None:
        found = last_context([*above.values()], least, full, chunk)
        return _before(full, [*above.values()], least, new) if found is None else found

    context = last([*least.values()])
    if context is None:
        alone = last([])
        bounds, at = (above, new) if alone is None else (least, alone)
        at = at if isinstance(at, int) else new
        return Solution(NEVER, limit=min(bounds, key=lambda bound: bounds[bound](at)))
    if isinstance(context, str):
        return Solution(ENDLESS)
    reached = dict[str, Fraction]()
    for bound, margin in (above | least).items():
        now, then = margin(context), margin(context + 1)
        if then < 0 or (then == 0 and bound in above):
            reached[bound] = now / (now - then)
    limit = min(reached, key=reached.__getitem__)
    ends = chunk > 1 and (context + 1 - new) % chunk == 0
    exact = float(context + (0 if ends else reached[limit]))
    if context >= LARGEST_COUNT:
        return Solution(BEYOND, exact, limit=limit)
    return Solution(FOUND, exact, context, limit)


def _margins(case: StepCase, new: int) -> tuple[dict[str, Margin], dict[str, Margin]]:
    """The margins that have to be above zero, and those that may be zero, by bound.

    The latter are of times whose growth does not depend on the context.
    """
    slopes = {
        each.name: [
            poly.along("B").slope for least in case.times.by[each.bound].pieces for poly in least
        ]
        for each in RESOURCES
    }

    @cache
    def extents(context: int) -> StepExtents:
        return StepExtents(case.step(1, context, new))

    def margin(name: str) -> Margin:
        def ahead(context: int) -> Fraction:
            at = extents(context)
            most = (max(slope.at(at) for slope in slopes[each]) for each in (MATH.name, name))
            return next(most) - next(most)

        return ahead

    above, least = dict[str, Margin](), dict[str, Margin]()
    for each in OTHERS:
        by_context = any(slope.along("S").counted for slope in slopes[each.name])
        (above if by_context else least)[each.bound] = margin(each.name)
    return above, least


def last_context(
    above: Sequence[Margin], least: Sequence[Margin], start: int, chunk: int
) -> int | str | None:
    """The largest context at which all margins are positive.

    Args:
        above: Margins that have to be above zero, by the context.
        least: Margins that may be zero.
        start: The shortest context, T tokens where there are chunks [1].
        chunk: c, tokens of a chunk [1].

    Returns:
        The context [1]; `ENDLESS` where there is no largest; None where there is none.
    """
    found: list[int] = []
    for place, chunks in _in_chunks(above, least, start, chunk):
        if chunks.last is None:
            return ENDLESS
        found.append(start + chunks.last * chunk + place)
    return max(found, default=None)


class Chunks(NamedTuple):
    """Chunks in which all margins are positive at a place.

    Attributes:
        first: The first one, from 0 [1].
        last: The last one; None: there is none [1].
    """

    first: int
    last: int | None


class ContextsInChunks(NamedTuple):
    """Contexts with a compute-bound batch where layers attend in chunks.

    Attributes:
        number: How many [1].
        among: Of how many: of those up to the longest, or of a chunk where no one is that [1].
    """

    number: int
    among: int


def contexts_in_chunks(case: StepCase, new: int) -> ContextsInChunks | None:
    """How many contexts have a compute-bound batch; None where no layer attends in chunks.

    Args:
        case: The case.
        new: T, new tokens of each sequence [1].
    """
    chunk = next((each.tokens for each in case.model.shape.attention_windows if each.chunked), None)
    if chunk is None or chunk == 1:
        return None
    above, least = (list(margins.values()) for margins in _margins(case, new))
    found = [*_in_chunks(above, least, new, chunk)]
    if any(chunks.last is None for _, chunks in found):
        return ContextsInChunks(sum(chunks.last is None for _, chunks in found), chunk)
    last = max((new + (each.last or 0) * chunk + place for place, each in found), default=new - 1)
    number = sum((each.last or 0) - each.first + 1 for _, each in found)
    return ContextsInChunks(number, last - new + 1)


def _in_chunks(
    above: Sequence[Margin], least: Sequence[Margin], start: int, chunk: int
) -> Iterator[tuple[int, Chunks]]:
    """The places in a chunk at which all margins are positive, and in which chunks they are."""
    turn = chunk - start % chunk
    for begin, end in ((0, min(turn, chunk - 1)), (turn, chunk - 1)):
        planes = [
            _plane(margin, start, chunk, (begin, end), strict=strict)
            for margins, strict in ((above, True), (least, False))
            for margin in (margins if begin <= end else ())
        ]
        for place in range(begin, end + 1):
            if (chunks := _positive(planes, place)) is not None:
                yield place, chunks


def _before(full: int, above: Sequence[Margin], least: Sequence[Margin], new: int) -> int | None:
    """The largest context before all windows are full at which all margins are positive [1]."""
    if full == new or not above:
        return None

    def worst(context: int) -> Fraction:
        return min(margin(context) for margin in above)

    peak = first(lambda at: worst(at + 1) <= worst(at), new, full)
    if worst(peak) <= 0:
        return None
    found = first(lambda at: worst(at + 1) <= 0, peak, full)
    return found if all(margin(found) >= 0 for margin in least) else None


def _plane(
    margin: Margin, start: int, chunk: int, piece: tuple[int, int], *, strict: bool
) -> Plane:
    """A margin on a piece, from three of its values."""
    begin, end = piece
    value = margin(start + begin)
    per_place = (margin(start + end) - value) / (end - begin) if end > begin else Fraction(0)
    numbers = value - per_place * begin, margin(start + chunk + begin) - value, per_place
    scale = math.lcm(*(each.denominator for each in numbers))
    constant, per_chunk, of_place = (int(each * scale) for each in numbers)
    return constant - strict, per_chunk, of_place


def _positive(planes: Sequence[Plane], place: int) -> Chunks | None:
    """The chunks in which all margins are positive at a place; None where there is none."""
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
    return None if high is not None and high < low else Chunks(low, high)
