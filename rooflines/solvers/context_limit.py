"""Context limit: the largest decode context with a compute-bound batch.

For a large batch B only growth with B counts. A margin is the growth of t_math per sequence minus
the growth of another time. Contexts are S = start + k c + u, with c the tokens in an attention
chunk, else 1, and start the context at which all windows are full, with chunks the shortest one. In
k and the place u in a chunk every margin is affine, a plane, on two pieces: up to the u from which
on the new tokens reach one more chunk, and from there. So at each place every margin bounds k, in
whole numbers. Until windows are full, margins are concave.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.numbers import MAX_COUNT, first
from rooflines.dictionary.columns import BEYOND_MAX_COUNT, FOUND, NEVER, WITHOUT_END
from rooflines.models.groups import StepExtents
from rooflines.theory.resources import MATH, NON_MATH, RESOURCES

if TYPE_CHECKING:
    from rooflines.sweep.step_sweep import StepCase

Margin = Callable[[int], Fraction]
"""Growth of t_math per sequence minus the growth of another time, by context [s]."""

Plane = tuple[int, int, int]
"""Margin on a piece, constant + per_chunk * k + per_place * u, as whole numbers: the margin is
positive where this is at least 0."""


class Solution(NamedTuple):
    """Threshold, by the names of its columns.

    Attributes:
        outcome: One of the outcomes of `dictionary.columns`.
        critical_exact: Real size [1]; None without a threshold.
        critical: Whole size [1]; None without a threshold.
        limit: Bottleneck beyond the threshold, or always.
    """

    outcome: str
    critical_exact: float | None = None
    critical: int | None = None
    limit: str | None = None


def context_ceiling(case: StepCase, new: int) -> Solution:
    """Solve for the largest context at which some large batch is compute-bound.

    With chunks there may be smaller contexts without such a batch.

    Args:
        case: The case.
        new: T, new tokens of each sequence: no context is smaller [1].
    """
    windows = case.model.shape.attention_windows
    tokens = sorted({window.tokens or 0 for window in windows})
    chunk = tokens[-1] if any(window.chunked for window in windows) else 1
    windows_full = [new] if chunk > 1 else [new + size for size in tokens if size] or [new]
    strict, weak = _margins(case, new)

    strict_margins = [*strict.values()]

    def find_last(weak_margins: Sequence[Margin]) -> int | str | None:
        last = last_context(strict_margins, weak_margins, windows_full[-1], chunk)
        if last is None:
            return _before_windows_fill(windows_full, strict_margins, weak_margins, new)
        return last

    context = find_last([*weak.values()])
    if context is None:
        without_weak = find_last([])
        bounds, at = (strict, new) if without_weak is None else (weak, without_weak)
        at = at if isinstance(at, int) else new
        return Solution(NEVER, limit=min(bounds, key=lambda bound: bounds[bound](at)))
    if isinstance(context, str):
        return Solution(WITHOUT_END)
    zeros = dict[str, Fraction]()
    for bound, margin in (strict | weak).items():
        now, then = margin(context), margin(context + 1)
        if then < 0 or (then == 0 and bound in strict):
            zeros[bound] = now / (now - then)
    limit = min(zeros, key=zeros.__getitem__)
    ends = chunk > 1 and (context + 1 - new) % chunk == 0
    exact = float(context + (0 if ends else zeros[limit]))
    if context >= MAX_COUNT:
        return Solution(BEYOND_MAX_COUNT, exact, limit=limit)
    return Solution(FOUND, exact, context, limit)


def _margins(case: StepCase, new: int) -> tuple[dict[str, Margin], dict[str, Margin]]:
    """Margins that have to be above zero, and margins that may be zero, by bound.

    A margin may be zero where the growth of its time does not depend on the context.
    """
    slopes = {
        resource.name: [
            poly.affine_in("B").slope
            for polys in case.times.by_bound[resource.bound].pieces
            for poly in polys
        ]
        for resource in RESOURCES
    }

    @cache
    def extents(context: int) -> StepExtents:
        return StepExtents(case.step(1, context, new))

    def margin(name: str) -> Margin:
        def value(context: int) -> Fraction:
            at = extents(context)
            values = (
                max(slope.at(at) for slope in slopes[resource]) for resource in (MATH.name, name)
            )
            return next(values) - next(values)

        return value

    strict, weak = dict[str, Margin](), dict[str, Margin]()
    for resource in NON_MATH:
        by_context = any(slope.affine_in("S").per_attended for slope in slopes[resource.name])
        (strict if by_context else weak)[resource.bound] = margin(resource.name)
    return strict, weak


def last_context(
    strict: Sequence[Margin], weak: Sequence[Margin], start: int, chunk: int
) -> int | str | None:
    """Find the largest context at which all margins are positive.

    Args:
        strict: Margins that have to be above zero, by the context.
        weak: Margins that may be zero.
        start: The shortest context, T tokens where there are chunks [1].
        chunk: c, tokens in a chunk [1].

    Returns:
        The context [1]; `WITHOUT_END` without a largest context; None without any.
    """
    contexts: list[int] = []
    for place, chunks in _chunks_by_place(strict, weak, start, chunk):
        if chunks.last is None:
            return WITHOUT_END
        contexts.append(start + chunks.last * chunk + place)
    return max(contexts, default=None)


class Chunks(NamedTuple):
    """Chunks in which all margins are positive at a place.

    Attributes:
        first: First chunk, from 0 [1].
        last: Last chunk; None: no last chunk [1].
    """

    first: int
    last: int | None


class ContextsInChunks(NamedTuple):
    """Contexts with a compute-bound batch where layers attend in chunks.

    Attributes:
        number: Contexts with a compute-bound batch [1].
        among: All contexts up to the longest of these, or in one chunk where none is longest [1].
    """

    number: int
    among: int


def contexts_in_chunks(case: StepCase, new: int) -> ContextsInChunks | None:
    """Count contexts with a compute-bound batch; None where no layer attends in chunks.

    Args:
        case: The case.
        new: T, new tokens of each sequence [1].
    """
    chunk = next(
        (window.tokens for window in case.model.shape.attention_windows if window.chunked), None
    )
    if chunk is None or chunk == 1:
        return None
    strict, weak = (list(margins.values()) for margins in _margins(case, new))
    places = [*_chunks_by_place(strict, weak, new, chunk)]
    if any(chunks.last is None for _, chunks in places):
        return ContextsInChunks(sum(chunks.last is None for _, chunks in places), chunk)
    last = max(
        (new + (chunks.last or 0) * chunk + place for place, chunks in places), default=new - 1
    )
    number = sum((chunks.last or 0) - chunks.first + 1 for _, chunks in places)
    return ContextsInChunks(number, last - new + 1)


def _chunks_by_place(
    strict: Sequence[Margin], weak: Sequence[Margin], start: int, chunk: int
) -> Iterator[tuple[int, Chunks]]:
    """Yield the places in a chunk at which all margins are positive, with these chunks."""
    turn = chunk - start % chunk
    for begin, end in ((0, min(turn, chunk - 1)), (turn, chunk - 1)):
        planes = [
            _plane(margin, start, chunk, (begin, end), is_strict=is_strict)
            for margins, is_strict in ((strict, True), (weak, False))
            for margin in (margins if begin <= end else ())
        ]
        for place in range(begin, end + 1):
            if (chunks := _positive_chunks(planes, place)) is not None:
                yield place, chunks


def _before_windows_fill(
    windows_full: Sequence[int], strict: Sequence[Margin], weak: Sequence[Margin], new: int
) -> int | None:
    """Find the largest context with positive margins before all windows are full [1].

    The least margin is concave from one context at which a window is full to the next: search its
    peak there, then its zero beyond the peak.
    """
    if not strict:
        return None

    def least_margin(context: int) -> Fraction:
        return min(margin(context) for margin in strict)

    for start, end in reversed([*pairwise(dict.fromkeys([new, *windows_full]))]):
        peak = first(lambda at: least_margin(at + 1) <= least_margin(at), start, end)
        if least_margin(peak) > 0:
            last = first(lambda at: least_margin(at + 1) <= 0, peak, end)
            return last if all(margin(last) >= 0 for margin in weak) else None
    return None


def _plane(
    margin: Margin, start: int, chunk: int, piece: tuple[int, int], *, is_strict: bool
) -> Plane:
    """Plane of a margin on a piece, from three values."""
    begin, end = piece
    value = margin(start + begin)
    per_place = (margin(start + end) - value) / (end - begin) if end > begin else Fraction(0)
    numbers = value - per_place * begin, margin(start + chunk + begin) - value, per_place
    scale = math.lcm(*(number.denominator for number in numbers))
    constant, per_chunk, place_slope = (int(number * scale) for number in numbers)
    return constant - is_strict, per_chunk, place_slope


def _positive_chunks(planes: Sequence[Plane], place: int) -> Chunks | None:
    """Find the chunks in which all margins are positive at a place; None without any."""
    low, high = 0, None
    for constant, per_chunk, per_place in planes:
        value = constant + per_place * place
        if per_chunk < 0:
            last = value // -per_chunk
            high = last if high is None else min(high, last)
        elif value < 0:
            if not per_chunk:
                return None
            low = max(low, -(value // per_chunk))
    return None if high is not None and high < low else Chunks(low, high)
