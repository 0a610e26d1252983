"""Text that people read: counts with their noun, lists that are not too long."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["abridged", "counted"]

MOST_SHOWN = 10
"""Things of a kind that a `repr` shows [1]."""


def counted(number: int, noun: str) -> str:
    """A number with its noun, in the plural where it is not one: "1 part", "12 parts"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def abridged(head: str, lines: Iterable[str]) -> str:
    """A heading and the first few entries of a list, indented: the `repr` of a collection."""
    every = list(lines)
    more = [f"... and {len(every) - MOST_SHOWN} more"] if len(every) > MOST_SHOWN else []
    return "\n  ".join([head, *every[:MOST_SHOWN], *more])
