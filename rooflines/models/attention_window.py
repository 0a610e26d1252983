"""How far the tokens of a layer attend, and what follows: entries kept and moved, pairs of tokens.

A token attends to all tokens before it, to those of a window that ends with it, or to those of its
chunk: chunks are consecutive, so that the first token of each attends to itself alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK = "chunk-"
"""What the names of chunks begin with."""


class EntryLine(NamedTuple):
    """Contexts S of decode steps over which the entries moved are constant + slope * S.

    Attributes:
        first, last: The contexts, both included; None: without end [1].
        constant, slope: Of the entries [1].
    """

    first: int
    last: int | None
    constant: int
    slope: int


class AttentionWindow(NamedTuple):
    """How far a token attends.

    Attributes:
        tokens: Tokens of the window, or of a chunk; None: all before it [1].
        chunked: Whether they are those since the last multiple of `tokens`, not the last ones.
    """

    tokens: int | None = None
    chunked: bool = False

    @property
    def name(self) -> str:
        """Its name in extents: `4096`, `chunk-8192`; empty for all tokens."""
        return f"{CHUNK if self.chunked else ''}{self.tokens or ''}"

    @property
    def extent_names(self) -> tuple[str, str]:
        """Its extents: pairs of tokens, and entries that are moved."""
        return f"pairs:{self.name}", f"entries:{self.name}"

    @property
    def draft_extent(self) -> str:
        """The extent of a layer that drafts: its pairs, as many as its entries."""
        return f"drafts:{self.name}"

    @classmethod
    def from_name(cls, name: str) -> AttentionWindow:
        """The reach of a name."""
        size = name.removeprefix(CHUNK)
        return cls(int(size) if size else None, name.startswith(CHUNK))

    def cached_entries(self, context: int) -> int:
        """Entries of one sequence that a layer needs room for [1].

        Those of a chunk are dropped at its end: there is room for the longest so far.

        Args:
            context: S, tokens of the sequence so far [1].
        """
        return context if self.tokens is None else min(context, self.tokens)

    def entries(self, context: int, new: int) -> int:
        """Entries of one sequence that a layer reads or writes in a step [1].

        Earlier entries that new tokens attend to are read once, new ones are written once.

        Args:
            context: S, tokens of the sequence after the step [1].
            new: T, new tokens [1].
        """
        earlier = context - new
        if self.tokens is None:
            return context
        return new + (earlier % self.tokens if self.chunked else min(earlier, self.tokens - 1))

    def pairs(self, context: int, new: int) -> int:
        """Pairs of a new token and a token that it attends to, in one sequence and layer [1].

        Args:
            context: S, tokens of the sequence after the step [1].
            new: T, new tokens [1].

        Returns:
            The sum over the new tokens of min(position, window), or of their positions in their
            chunks, exact.
        """
        return self._pairs_up_to(context) - self._pairs_up_to(context - new)

    def _pairs_up_to(self, last: int) -> int:
        """Pairs of the first tokens of a sequence [1]."""
        if self.tokens is None:
            return _triangle(last)
        if self.chunked:
            chunks, rest = divmod(last, self.tokens)
            return chunks * _triangle(self.tokens) + _triangle(rest)
        growing = min(last, self.tokens)
        return _triangle(growing) + (last - growing) * self.tokens

    def extents(self, context: int, new: int) -> dict[str, int]:
        """The extents of a step by name [1].

        Args:
            context: S [1].
            new: T [1].
        """
        values = self.pairs(context, new), self.entries(context, new)
        draft_pairs = self.pairs(context - 1, new - 1)  # one by one, before the last token
        return {**dict(zip(self.extent_names, values, strict=True)), self.draft_extent: draft_pairs}

    def lines(self) -> Iterator[EntryLine]:
        """The entries that decode steps of one token move, as lines in S; of chunks the first."""
        size = self.tokens
        if size is None:
            yield EntryLine(1, None, 0, 1)
            return
        yield EntryLine(1, size, 0, 1)
        if not self.chunked:
            yield EntryLine(size + 1, None, size, 0)


FULL_ATTENTION = AttentionWindow()
"""All tokens before a token."""


def _triangle(count: int) -> int:
    """The sum of 1 to a number."""
    return count * (count + 1) // 2
