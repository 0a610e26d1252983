"""The one exception of the package: a message that says where, what was found, what is known and how to fix it."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import date
from difflib import get_close_matches
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["RooflinesError", "close_to", "placed", "quote"]

LONGEST_QUOTE = 80
"""Characters of a wrong value that a message repeats; the rest says nothing more."""


class RooflinesError(ValueError):
    """A mistake in what the user wrote; `str(error)` is the whole message.

    Args:
        where: The key path of the mistake, such as `sweeps.mlp.chips[1]`; empty for the file as a whole.
        problem: What is wrong there, a predicate: "is 'h100', which is no chip".
        fix: What to do about it, an imperative without a full stop.
        close: Known names that look like the one found.
        file: The file it stands in.
    """

    def __init__(self, where: str, problem: str, fix: str, *, close: Iterable[str] = (), file: str = "") -> None:
        self.where, self.problem, self.fix, self.close, self.file = where, problem, fix, tuple(close), file
        super().__init__(where, problem, fix)

    def within(self, place: str = "", *, file: str = "") -> Self:
        """The same error, seen from further out: `place` goes before its key path, `file` names the file."""
        joint = "." if place and self.where and not self.where.startswith("[") else ""
        return type(self)(f"{place}{joint}{self.where}", self.problem, self.fix, close=self.close, file=file or self.file)

    def __str__(self) -> str:
        """Where and what, what is close to it, how to fix it: a line each."""
        place = ": ".join(part for part in (self.file, self.where) if part)
        lines = [f"{place} {self.problem}." if place else f"{self.problem}."]
        if self.close:
            lines.append(f"  close to it: {', '.join(self.close)}")
        lines.append(f"  fix: {self.fix}.")
        return "\n".join(lines)


@contextmanager
def placed(place: str = "", *, file: str = "") -> Iterator[None]:
    """Adds a place to the errors raised inside: `place` goes before their key path, `file` names the file."""
    try:
        yield
    except RooflinesError as error:
        raise error.within(place, file=error.file or file) from None


def close_to(name: object, known: Iterable[str]) -> list[str]:
    """The known names that a reader could have meant by `name`: those that contain it, then those spelt alike."""
    text, names = str(name).lower(), list(known)
    contain = [known_name for known_name in names if len(text) > 1 and text in known_name.lower()]
    alike = get_close_matches(text, names, n=3, cutoff=0.6)
    return list(dict.fromkeys([*sorted(contain, key=len), *alike]))[:4]


def quote(value: object) -> str:
    """A value as a message shows it: its YAML-like form, shortened."""
    if isinstance(value, date):
        return value.isoformat()
    named = {None: "null", True: "true", False: "false"}
    try:
        text = named[value] if value is None or isinstance(value, bool) else repr(value)
    except ValueError:  # a whole number of thousands of digits has no text
        text = "a number of thousands of digits"
    return text if len(text) <= LONGEST_QUOTE else f"{text[: LONGEST_QUOTE - 3]}..."
