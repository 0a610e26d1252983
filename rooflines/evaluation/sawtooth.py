"""Sums of the largest of several times over contexts, where some layers attend in chunks.

A context S = k c + u is the u-th token, from 1 to c, of chunk k from 0. A time is affine in S and
in the entries of the chunk so far, u: affine in k and u. Which of two times is the larger changes
in a chunk at most once, at a real u that is affine in k. So contexts are few ranges of chunks, in
which the same times are the largest in the same order; the sums over each are those of the whole
parts of a line, and of their squares, which take as many steps as the algorithm of Euclid. No step
is taken for every chunk.
"""

from __future__ import annotations

import math
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class ContextTime(NamedTuple):
    """A time of a step by its context.

    Attributes:
        once: Independent of the context [s].
        full: Per token of the context [s].
        chunked: Per token of the chunk so far [s].
    """

    once: float
    full: float
    chunked: float


def sum_of_largest(times: Sequence[ContextTime], first: int, last: int, chunk: int) -> float:
    """The sum of the largest of several times over contexts [s].

    Args:
        times: The times.
        first: The first context [1].
        last: The last one [1].
        chunk: c, tokens of a chunk [1].
    """
    planes = [_Plane(each.once, each.full * chunk, each.full + each.chunked) for each in times]
    (before, start), (end, rest) = divmod(first - 1, chunk), divmod(last, chunk)
    if before == end:  # both in one chunk
        return _over(planes, _Tokens(before, 1, start + 1, rest))
    parts = [_Tokens(before + 1, end - before - 1, 1, chunk)]
    parts += [_Tokens(before, 1, start + 1, chunk), _Tokens(end, 1, 1, rest)]
    return math.fsum(_over(planes, part) for part in parts)


class _Plane(NamedTuple):
    """A time, once + of_chunk * k + of_token * u [s]."""

    once: float
    of_chunk: float
    of_token: float

    def less(self, other: _Plane) -> _Plane:
        """The difference to another one."""
        return _Plane(*(one - two for one, two in zip(self, other, strict=True)))


class _Tokens(NamedTuple):
    """Tokens `low` to `high` of so many `chunks` from `chunk` on [1]."""

    chunk: int
    chunks: int
    low: int
    high: int


class _Moments(NamedTuple):
    """Of numbers X of chunks 0, 1, ...: the sums of X, of k X, and of the squares of X [1]."""

    sums: float
    weighted: float
    squares: float


def _over(planes: Sequence[_Plane], tokens: _Tokens) -> float:
    """The sum of the largest plane over tokens."""
    if tokens.chunks < 1 or tokens.high < tokens.low:
        return 0.0
    planes = [each._replace(once=each.once + each.of_chunk * tokens.chunk) for each in planes]
    cuts = {min(max(math.ceil(cut), 0), tokens.chunks) for cut in _cuts(planes, tokens)}
    ranges = pairwise(sorted({0, *cuts, tokens.chunks}))
    return math.fsum(_in_order(planes, tokens, *each) for each in ranges)


def _cuts(planes: Sequence[_Plane], tokens: _Tokens) -> Iterator[float]:
    """Where the order of turns, or which of them are among the tokens, may change: real chunks."""
    turns = [one.less(other) for one, other in combinations(planes, 2)]
    for once, of_chunk, of_token in turns:
        for edge in (tokens.low - 1, tokens.high + 1):
            yield _root(once + of_token * edge, of_chunk)
    for one, other in combinations(turns, 2):
        once, of_chunk = (
            mine * other.of_token - yours * one.of_token
            for mine, yours in zip(one[:2], other[:2], strict=True)
        )
        yield _root(once, of_chunk)


def _root(constant: float, slope: float) -> float:
    """Where a line is zero; 0 where it is nowhere, or beyond all numbers."""
    found = -constant / slope if slope else 0.0
    return found if math.isfinite(found) else 0.0


def _in_order(planes: Sequence[_Plane], tokens: _Tokens, start: int, end: int) -> float:
    """The sum over chunks in which turns have the same order, from `start` on before `end`.

    Between two neighbours of them one plane is the largest throughout: that with the largest sum.
    """
    count, low, high = end - start, tokens.low, tokens.high
    turns: list[tuple[float, _Moments]] = []
    for one, other in combinations(planes, 2):
        once, of_chunk, of_token = one.less(other)
        if not of_token:
            continue
        at_start, slope = -(once + of_chunk * start) / of_token, -of_chunk / of_token
        middle = at_start + slope * (count - 1) / 2
        if not low - 1 <= middle < high + 1:  # before all tokens, or after them
            at_start, slope = float(low - 1 if middle < low else high), 0.0
        turns.append((middle, floor_moments(at_start + 1, slope, count - 1)))
    turns.sort(key=lambda turn: turn[0])
    ends = [floor_moments(edge, 0.0, count - 1) for edge in (low, high + 1)]
    sums = []
    for left, right in pairwise([ends[0], *(moments for _, moments in turns), ends[1]]):
        tokens_each, weighted, squares = (b - a for a, b in zip(left, right, strict=True))
        choose = max if tokens_each >= 0 else min  # less than none where a turn is just outside
        sums.append(
            choose(
                (each.once + each.of_chunk * start) * tokens_each
                + each.of_chunk * weighted
                + each.of_token * (squares - tokens_each) / 2
                for each in planes
            )
        )
    return math.fsum(sums)


def floor_moments(constant: float, slope: float, last: int) -> _Moments:
    """The moments of the whole parts of constant + slope * k, for k from 0 to last.

    Where the line is a whole number it may be counted as one less, in all three alike.

    Source: the sum over k counts the points below a line; by columns or by rows, as the line of
    the rows has the slope 1 / slope (Graham, Knuth, Patashnik, Concrete Mathematics, section 3.5).
    """
    n, count = float(last), last + 1.0
    steps, squares = n * count / 2, n * count * (2 * n + 1) / 6
    base, rise = float(math.floor(constant)), float(math.floor(slope))
    constant, slope = constant - base, slope - rise
    rows, found = math.floor(constant + slope * n), _Moments(0.0, 0.0, 0.0)
    if rows > 0:
        below = floor_moments((1 - constant) / slope, 1 / slope, rows - 1)
        found = _Moments(
            n * rows - below.sums,
            (rows * n * count - below.squares - below.sums) / 2,
            n * rows * rows - 2 * below.weighted - below.sums,
        )
    return _Moments(
        found.sums + rise * steps + base * count,
        found.weighted + rise * squares + base * steps,
        found.squares
        + 2 * (rise * found.weighted + base * found.sums + rise * base * steps)
        + rise * rise * squares
        + base * base * count,
    )
