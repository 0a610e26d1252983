"""The one exception of the package: a message that says where, what was found, what is known and how to fix it."""

from __future__ import annotations

import errno
import os
import re
from contextlib import contextmanager
from datetime import date
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["RooflinesError", "close_to", "no_folder", "placed", "printable", "quote", "shortened", "unwritable"]

LONGEST_QUOTE = 80
"""Characters of a wrong value that a message repeats; the rest says nothing more."""


LONGEST_PLACE = 400
"""Characters of a key path that a message shows."""


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
        place = ": ".join(part for part in (printable(self.file), plain(self.where)) if part)
        lines = [f"{place} {self.problem}." if place else f"{self.problem}."]
        if self.close:
            lines.append(f"  close to it: {', '.join(self.close)}")
        lines.append(f"  fix: {self.fix}.")
        return "\n".join(lines)


FULL = {errno.ENOSPC: "the disk is full", errno.EDQUOT: "your quota of the disk is used up", errno.EFBIG: "a file may not grow that large"}
"""What the system says when there is no room for a file."""

BARRED = {errno.EROFS: "it is on a file system that is read-only", errno.EACCES: "you may not", errno.EPERM: "you may not"}
"""What it says when a file may not be written."""

NO_FOLDER = (errno.EEXIST, errno.ENOTDIR)
"""What it says when a file is where a folder has to be."""


OS_ERROR = re.compile(r"\(os error (\d+)\)")
"""How a library that is not Python's own says which error of the system it met."""


def unwritable(path: object, error: Exception) -> RooflinesError | None:
    """What to do where a file cannot be written; None for errors of another kind.

    Args:
        path: The file or folder.
        error: What was raised, by Python or by a library that writes for it.
    """
    said = OS_ERROR.search(str(error))
    number = error.errno if isinstance(error, OSError) else int(said[1]) if said else None
    again = "then type the same command again: what is finished stays"
    if number in FULL:
        fix = f"make room (`df -h` shows where there is some), {again}"
        return RooflinesError("", f"cannot be written: {FULL[number]}", fix, file=str(path))
    barrier = next((path for path in (Path(str(path)), *Path(str(path)).parents) if os.path.lexists(path) and not path.is_dir()), None)
    if number in NO_FOLDER and barrier:
        return no_folder(barrier)
    if number in BARRED:
        fix = f"make the folder writable (`ls -ld` and `mount` show why it is not), {again}"
        return RooflinesError("", f"cannot be written: {BARRED[number]}", fix, file=str(path))
    return None


def no_folder(path: object) -> RooflinesError:
    """What to do about a file where a folder is needed."""
    return RooflinesError(
        "", "is not a folder, and a run needs one there", "move it away, then type the same command again", file=str(path)
    )


def plain(place: str) -> str:
    """A key path as a message shows it: on one line, shortened; it has keys that the user wrote, and those may be anything."""
    shown = place if len(place) <= LONGEST_PLACE else f"{place[: LONGEST_PLACE - 3]}..."
    return printable(shown)


def printable(text: object) -> str:
    """Text, or a path, on one line: control characters and bytes that are no text are escaped, so that a terminal obeys none of them."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in str(text))


@contextmanager
def placed(place: str = "", *, file: str = "") -> Iterator[None]:
    """Adds a place to the errors raised inside: `place` goes before their key path, `file` names the file.

    An error that names its file stands in another one, where its key path is whole.
    """
    try:
        yield
    except RooflinesError as error:
        raise (error if error.file else error.within(place, file=file)) from None


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
    except RecursionError:
        text = "a value nested without end"
    return shortened(text)


def shortened(text: str) -> str:
    """Text of a wrong value, as much of it as a message repeats."""
    return text if len(text) <= LONGEST_QUOTE else f"{text[: LONGEST_QUOTE - 3]}..."
