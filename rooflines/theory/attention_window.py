"""Attention windows: KV cache entries kept and moved, and token pairs.

A token attends to all tokens before it, to a window that ends with it, or to its chunk. Chunks are
consecutive, so the first token in a chunk attends to itself alone.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Number = int | Fraction
"""Tokens [1]: whole, or between whole numbers, where extents follow the same curves."""


class EntryLine(NamedTuple):
    """KV cache entries moved by a decode step, as constant + slope * S over a range of contexts.

    Attributes:
        first, last: Contexts S, both included; None: without end [1].
        constant, slope: Coefficients [1].
    """

    first: int
    last: int | None
    constant: int
    slope: int

    def sum_over(self, first: int, last: int) -> int:
        """Sum over those contexts from `first` to `last` that are in the range [1]."""
        start = max(first, self.first)
        end = last if self.last is None else min(last, self.last)
        count = end - start + 1
        return 0 if count < 1 else count * (2 * self.constant + self.slope * (start + end)) // 2


class AttentionWindow(NamedTuple):
    """Tokens that a token attends to.

    Attributes:
        tokens: Size of the window, or chunk; None: all tokens before it [1].
        chunked: Whether tokens count since the last multiple of `tokens`, instead of the last ones.
    """

    tokens: int | None = None
    chunked: bool = False

    @property
    def name(self) -> str:
        """Name in extents: `4096`, `chunk-8192`; empty for all tokens."""
        return f"{'chunk-' if self.chunked else ''}{self.tokens or ''}"

    def cached_entries(self, context: int) -> int:
        """KV cache entries that a layer reserves per sequence: min(S, tokens) [1].

        A chunk's entries are dropped at its end, but the room stays for the longest so far.

        Args:
            context: S, tokens in the sequence so far [1].
        """
        return context if self.tokens is None else min(context, self.tokens)

    def entries(self, context: Number, new: Number) -> Number:
        """KV cache entries that a layer reads or writes per sequence and step [1].

        Earlier entries that new tokens attend to are read once, new ones are written once.

        Args:
            context: S, tokens in the sequence after the step [1].
            new: T, new tokens [1].
        """
        earlier = context - new
        if self.tokens is None:
            return context
        return new + (earlier % self.tokens if self.chunked else min(earlier, self.tokens - 1))

    def pairs(self, context: Number, new: Number) -> Number:
        """Attended pairs (new token, earlier or same token) per sequence and layer [1].

        Args:
            context: S, tokens in the sequence after the step [1].
            new: T, new tokens [1].

        Returns:
            Sum over new tokens: min(position, window), or position in the chunk; exact.
        """
        return self._pairs_up_to(context) - self._pairs_up_to(context - new)

    def drafts(self, context: Number, new: Number) -> Number:
        """Attended pairs per sequence in runs of the MTP layer, before the last new token [1].

        Args:
            context: S [1].
            new: T [1].
        """
        return self.pairs(context - 1, new - 1)

    def _pairs_up_to(self, last: Number) -> Number:
        """Pairs among the first `last` tokens of a sequence [1]."""
        if self.tokens is None:
            return _triangle(last)
        if self.chunked:
            chunks, rest = divmod(last, self.tokens)
            return chunks * _triangle(self.tokens) + _triangle(rest)
        growing = min(last, self.tokens)
        return _triangle(growing) + (last - growing) * self.tokens

    def lines(self) -> Iterator[EntryLine]:
        """Entries moved by decode steps with T = 1, as lines in S; for chunks, in the first."""
        size = self.tokens
        if size is None:
            yield EntryLine(1, None, 0, 1)
            return
        yield EntryLine(1, size, 0, 1)
        if not self.chunked:
            yield EntryLine(size + 1, None, size, 0)

    def lines_of(self, amount: Callable[[int, int], Number], new: int) -> Iterator[EntryLine]:
        """Numbers that attention counts in steps with T new tokens, as lines in S; not for chunks.

        Where a window fills up within a step, a context is a line of its own.

        Args:
            amount: Function from S and T: `pairs`, `entries` or `drafts` of a window.
            new: T [1].
        """
        filled = None if self.tokens is None else max(self.tokens, new)
        start = int(amount(new, new))
        slope = int(amount(new + 1, new)) - start if filled is None or filled > new else 0
        yield EntryLine(new, filled, start - slope * new, slope)
        if filled is None:
            return
        full = (self.tokens or 0) + new
        for context in range(filled + 1, full):
            yield EntryLine(context, context, int(amount(context, new)), 0)
        yield EntryLine(max(full, filled + 1), None, int(amount(full, new)), 0)


FULL_ATTENTION = AttentionWindow()
"""Window over all tokens before a token."""


def _triangle(count: Number) -> Number:
    """Triangular number: 1 + 2 + ... + count; between whole numbers on the same parabola."""
    twice = count * (count + 1)
    return twice // 2 if isinstance(twice, int) else twice / 2
