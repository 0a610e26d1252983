"""Sums over contexts: max over several times, where some layers attend in chunks.

A context S = k c + u is the u-th token, from 1 to c, of chunk k from 0. A time is affine in S and
in the entries of the chunk so far, u: a plane, affine in k and u. Two times change order in a chunk
at most once, at a real u that is affine in k: a turn. So contexts fall into few ranges of chunks in
which turns have the same order; the sum over a range needs sums over floor(line) and its square,
which take as many steps as Euclid's algorithm. No step is taken for every chunk.
"""

from __future__ import annotations

import math
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class ContextTime(NamedTuple):
    """Time of a step by context, once + full * S + chunked * u.

    Attributes:
        once: Without the context [s].
        full: Per token of the context [s].
        chunked: Per token of the chunk so far [s].
    """

    once: float
    full: float
    chunked: float


def sum_of_maxima(times: Sequence[ContextTime], first: int, last: int, chunk: int) -> float:
    """Sum over contexts: max over several times [s].

    Args:
        times: The times.
        first: First context [1].
        last: Last context [1].
        chunk: c, tokens in a chunk [1].
    """
    planes = [_Plane(time.once, time.full * chunk, time.full + time.chunked) for time in times]
    (before, start), (end, rest) = divmod(first - 1, chunk), divmod(last, chunk)
    if before == end:  # both in one chunk
        return _sum_over(planes, _Tokens(before, 1, start + 1, rest))
    parts = [_Tokens(before + 1, end - before - 1, 1, chunk)]
    parts += [_Tokens(before, 1, start + 1, chunk), _Tokens(end, 1, 1, rest)]
    return math.fsum(_sum_over(planes, part) for part in parts)


class _Plane(NamedTuple):
    """Plane of a time, once + chunk_slope * k + token_slope * u [s]."""

    once: float
    chunk_slope: float
    token_slope: float

    def minus(self, subtrahend: _Plane) -> _Plane:
        """Difference between two planes."""
        return _Plane(
            *(
                value - subtrahend_value
                for value, subtrahend_value in zip(self, subtrahend, strict=True)
            )
        )


class _Tokens(NamedTuple):
    """Tokens `low` to `high` in `chunks` chunks, from `chunk` on [1]."""

    chunk: int
    chunks: int
    low: int
    high: int


class _Moments(NamedTuple):
    """Moments of numbers X(k) over chunks k = 0, 1, ...: sums over X, k X and X^2 [1]."""

    sums: float
    weighted: float
    squares: float


def _sum_over(planes: Sequence[_Plane], tokens: _Tokens) -> float:
    """Sum over tokens of the largest plane."""
    if tokens.chunks < 1 or tokens.high < tokens.low:
        return 0.0
    planes = [
        plane._replace(once=plane.once + plane.chunk_slope * tokens.chunk) for plane in planes
    ]
    cuts = {min(max(math.ceil(cut), 0), tokens.chunks) for cut in _cut_chunks(planes, tokens)}
    ranges = pairwise(sorted({0, *cuts, tokens.chunks}))
    return math.fsum(_sum_in_order(planes, tokens, *chunks) for chunks in ranges)


def _cut_chunks(planes: Sequence[_Plane], tokens: _Tokens) -> Iterator[float]:
    """Yield real chunks at which turns may change order, or enter or leave the tokens."""
    turns = [first.minus(second) for first, second in combinations(planes, 2)]
    for once, chunk_slope, token_slope in turns:
        for edge in (tokens.low - 1, tokens.high + 1):
            yield _root(once + token_slope * edge, chunk_slope)
    for first, second in combinations(turns, 2):
        once, chunk_slope = (
            first_value * second.token_slope - second_value * first.token_slope
            for first_value, second_value in zip(first[:2], second[:2], strict=True)
        )
        yield _root(once, chunk_slope)


def _root(constant: float, slope: float) -> float:
    """Zero of a line, -constant / slope; 0 without one, or beyond all numbers."""
    root = -constant / slope if slope else 0.0
    return root if math.isfinite(root) else 0.0


def _sum_in_order(planes: Sequence[_Plane], tokens: _Tokens, start: int, end: int) -> float:
    """Sum over chunks `start` to `end`, exclusive, in which turns have the same order.

    Between neighbouring turns one plane is the largest throughout: the one with the largest sum.
    """
    count, low, high = end - start, tokens.low, tokens.high
    turns: list[tuple[float, _Moments]] = []
    for first, second in combinations(planes, 2):
        once, chunk_slope, token_slope = first.minus(second)
        if not token_slope:
            continue
        at_start, slope = -(once + chunk_slope * start) / token_slope, -chunk_slope / token_slope
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
                (plane.once + plane.chunk_slope * start) * tokens_each
                + plane.chunk_slope * weighted
                + plane.token_slope * (squares - tokens_each) / 2
                for plane in planes
            )
        )
    return math.fsum(sums)


def floor_moments(constant: float, slope: float, last: int) -> _Moments:
    """Moments of floor(constant + slope * k), for k from 0 to last.

    Where the line is a whole number, it may count as one less, in all three moments alike.

    Source: the sum over k counts points below a line, by columns or by rows; the rows' line has the
    slope 1 / slope (Graham, Knuth, Patashnik, Concrete Mathematics, section 3.5).
    """
    n, count = float(last), last + 1.0
    steps, squares = n * count / 2, n * count * (2 * n + 1) / 6
    base, rise = float(math.floor(constant)), float(math.floor(slope))
    constant, slope = constant - base, slope - rise
    rows, moments = math.floor(constant + slope * n), _Moments(0.0, 0.0, 0.0)
    if rows > 0:
        below = floor_moments((1 - constant) / slope, 1 / slope, rows - 1)
        moments = _Moments(
            n * rows - below.sums,
            (rows * n * count - below.squares - below.sums) / 2,
            n * rows * rows - 2 * below.weighted - below.sums,
        )
    return _Moments(
        moments.sums + rise * steps + base * count,
        moments.weighted + rise * squares + base * steps,
        moments.squares
        + 2 * (rise * moments.weighted + base * moments.sums + rise * base * steps)
        + rise * rise * squares
        + base * base * count,
    )
