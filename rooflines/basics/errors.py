"""The one exception of the package: its message says where, what is wrong, and how to fix it.

Independent parts are checked in a `with Mistakes() as mistakes:` block, each in its own
`with mistakes.at(place):`; one exception then has the mistakes of all parts.
"""

from __future__ import annotations

from contextlib import contextmanager
from datetime import date
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from types import TracebackType

INTERRUPTED = 130
"""The exit status after Ctrl-C, as shells have it: 128 + SIGINT."""

MAX_QUOTE = 80
"""Characters of a wrong value that a message repeats."""

MAX_PATH = 255
"""Characters of a path that a message has [1]."""

MAX_KEY_PATH = 400
"""Characters of a key path that a message shows."""

MAX_MISTAKES_SHOWN = 20
"""Mistakes that one message shows [1]."""

MAX_MISTAKES = 1000
"""Mistakes after which checking stops [1]."""


class RooflinesError(ValueError):
    """A mistake in what the user wrote, or several; `str(error)` is the whole message.

    Args:
        where: The key path of the mistake, such as `sweeps.mlp.chips[1]`; empty for the file as a
            whole.
        problem: What is wrong there, a predicate: "is 'h100', which is no chip".
        fix: What to do about it, an imperative without a full stop.
        close: Valid names similar to the wrong one.
        file: The file that has it.

    Attributes:
        cause: What led to it as a value, for a caller with words of its own; None: nothing typed.
        line: The line of that file [1]; None where unknown.
        errors: The mistakes one by one; the other attributes are those of the first.
    """

    def __init__(
        self, where: str, problem: str, fix: str, *, close: Iterable[str] = (), file: str = ""
    ) -> None:
        self.where, self.problem, self.fix = where, problem, fix
        self.close, self.file = tuple(close), file
        self.cause: object = None
        self.line: int | None = None
        self._several: tuple[Self, ...] | None = None
        super().__init__(where, problem, fix)

    @classmethod
    def combine(cls, errors: Iterable[Self]) -> Self:
        """One error with all these mistakes."""
        mistakes = tuple(errors)
        first = mistakes[0]
        if len(mistakes) == 1:
            return first
        combined = cls(first.where, first.problem, first.fix, close=first.close, file=first.file)
        combined.line, combined._several = first.line, mistakes
        return combined

    @property
    def errors(self) -> tuple[Self, ...]:
        """The mistakes one by one."""
        return (self,) if self._several is None else self._several

    def within(
        self, place: str = "", *, file: str = "", line_of: Callable[[str], int | None] | None = None
    ) -> Self:
        """The same error with a longer key path, and its file.

        An error that names its file stays as it is: there its key path is whole.

        Args:
            place: Goes before its key path.
            file: The file that has it.
            line_of: The line of a key path in that file.
        """
        if self._several is not None:
            return self.combine(
                error.within(place, file=file, line_of=line_of) for error in self._several
            )
        if self.file:
            return self
        joint = "." if place and self.where and not self.where.startswith("[") else ""
        outer = type(self)(
            f"{place}{joint}{self.where}", self.problem, self.fix, close=self.close, file=file
        )
        outer.cause = self.cause
        outer.line = line_of(outer.where) if line_of else None
        return outer

    def __str__(self) -> str:
        """Place and problem, close names, fix: a line each; then how many more mistakes exist.

        Each can have names of a file, of any characters.
        """
        if self._several is not None:
            more = len(self._several) - MAX_MISTAKES_SHOWN
            count = f"at least {more}" if len(self._several) >= MAX_MISTAKES else more
            rest = [f"and {count} more mistake{'s' if more > 1 else ''}."] if more > 0 else []
            return "\n".join([*map(str, self._several[:MAX_MISTAKES_SHOWN]), *rest])
        name = truncate(self.file, MAX_PATH)
        file = f"{name}:{self.line}" if self.line else name
        where = printable(truncate(self.where, MAX_KEY_PATH))
        place = ": ".join(part for part in (file, where) if part)
        lines = [f"{place} {self.problem}." if place else f"{self.problem}."]
        if self.close:
            lines.append(f"  close to it: {', '.join(self.close)}")
        lines.append(f"  fix: {self.fix}.")
        return "\n".join(map(printable, lines))


class PlausibilityWarning(UserWarning):
    """A number of a config is probably a slip, and is used as it is.

    Of an own chip, which its `plausible` silences; or contexts longer than a model is trained for.
    """


class Mistakes:
    """Collects the mistakes of independent parts, and raises them as one error when its block ends.

    An error raised in the block itself, outside of its parts, ends it and joins those collected.
    The block of a part passes them on to the whole; the code after it always runs.
    """

    def __init__(self, whole: Mistakes | None = None, place: str = "") -> None:
        self.by_place: dict[tuple[str, str], RooflinesError] = {}
        self._whole, self._place = whole, place

    def add(self, error: RooflinesError) -> None:
        """Collect the mistakes of an error, the first one of each place.

        Others at the same place tend to follow from it.

        Raises:
            RooflinesError: There are more than `MAX_MISTAKES`.
        """
        for single in error.errors:
            self.by_place.setdefault((single.file, single.where), single)
            if len(self.by_place) >= MAX_MISTAKES:
                self.check()

    def at(self, place: str = "") -> Mistakes:
        """A collector for a part.

        It takes errors raised inside and mistakes added to it; `place` goes before their key paths.
        """
        return Mistakes(self, place)

    def check(self) -> None:
        """Raise the mistakes, if there are any."""
        if self.by_place:
            raise RooflinesError.combine(self.by_place.values())

    def __enter__(self) -> Self:
        """The collector itself."""
        return self

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> bool | None:
        """Raise the collected mistakes with the error that ended the block, or pass them on."""
        if error is not None and not isinstance(error, RooflinesError):
            return None
        try:
            if error is not None:
                self.add(error)
            self.check()
        except RooflinesError as mistakes:
            if self._whole is None:
                raise
            self._whole.add(mistakes.within(self._place))
        return True


def printable(text: object) -> str:
    """Text, or a path, on one line.

    Control characters and undecodable bytes are escaped, so that no terminal interprets them.
    """
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in str(text))


@contextmanager
def at_path(place: str = "", *, file: str = "") -> Iterator[None]:
    """Adds to the errors raised inside: `place` before their key path, `file` as their file."""
    try:
        yield
    except RooflinesError as error:
        raise error.within(place, file=file) from None


def close_to(name: object, choices: Iterable[str]) -> list[str]:
    """The valid names that `name` could mean: those that contain it, then similar ones."""
    text, names = str(name).lower(), list(choices)
    contain = [choice for choice in names if len(text) > 1 and text in choice.lower()]
    similar = get_close_matches(text, names, n=3, cutoff=0.6)
    return list(dict.fromkeys([*sorted(contain, key=len), *similar]))[:4]


def cycle(names: Sequence[str], order: Iterable[str]) -> list[str]:
    """The names of a cycle, starting and ending with the one that comes first in the file."""
    first = names.index(min(names, key=list(order).index))
    return [*names[first:], *names[: first + 1]]


def missing_package(command: str, package: str) -> RooflinesError:
    """The error of a command that needs a package which the environment lacks.

    Args:
        command: The command.
        package: The package, as pip has it.
    """
    fix = f"type `make setup` in the clone, which installs it; elsewhere `pip install '{package}'`"
    return RooflinesError(command, f"needs {package}, which is not installed", fix)


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
    return truncate(text)


def truncate(text: str, length: int = MAX_QUOTE) -> str:
    """Text of a user, cut to what a message repeats."""
    return text if len(text) <= length else f"{text[: length - 3]}..."


def check_choice(value: object, choices: Collection[Any], refusal: str, fix: str = "") -> None:
    """Refuse a value that is not one of the valid ones.

    Args:
        value: A name or a number; a value of any other type is refused.
        choices: The valid values.
        refusal: Ends the message "is 'h100', which is ...": "no chip of sweep mlp".
        fix: What to do about it; by default, use one of the valid values.

    Raises:
        RooflinesError: It is not valid.
    """
    if isinstance(value, str | int) and value in choices:
        return
    names = [str(name) for name in choices]
    if not fix:
        fix = f"use one of {', '.join(names)}" if names else "leave it out"
    raise RooflinesError(
        "", f"is {quote(value)}, which is {refusal}", fix, close=close_to(value, names)
    )


def check_choices(
    values: Sequence[Any] | str | None, choices: Collection[Any], refusal: str, fix: str = ""
) -> None:
    """Refuse a value, or those of a list, that is not one of the valid ones.

    Args:
        values: A name, or a list of names or numbers; None is none.
        choices: The valid values.
        refusal: What another value is, as in `check_choice`.
        fix: What to do about it, as in `check_choice`.

    Raises:
        RooflinesError: At least one is not valid; key paths are the places in a list.
    """
    if isinstance(values, str):
        check_choice(values, choices, refusal, fix)
        return
    with Mistakes() as mistakes:
        for index, value in enumerate(values or ()):
            with mistakes.at(f"[{index}]"):
                check_choice(value, choices, refusal, fix)
