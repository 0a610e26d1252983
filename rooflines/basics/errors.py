"""The package's exception: its message names the place, the problem and the fix.

Place, value and fix are data: whoever shows a mistake renders them, as a key path in a file, or as
a question's word. Independent parts are checked in a `with Mistakes() as mistakes:`
block, each in its own `with mistakes.at(*keys):`; one exception then has all mistakes.
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
"""Exit status after Ctrl-C, as in shells: 128 + SIGINT."""

MAX_QUOTE = 80
"""Maximum length of a wrong value in a message [characters]."""

MAX_PATH = 255
"""Maximum length of a path in a message [characters]."""

MAX_KEY_PATH = 400
"""Maximum length of a key path in a message [characters]."""

MAX_MISTAKES_SHOWN = 20
"""Maximum of mistakes in one message [1]."""

MAX_MISTAKES = 1000
"""Number of mistakes at which checking stops [1]."""


Key = str | int
"""A key in a mapping, or an index in a list."""

KeyPath = tuple[Key, ...]
"""Keys from the outermost to a value, such as `("sweeps", "mlp", "chips", 1)`."""


def key_path(path: KeyPath) -> str:
    """Key path as text, such as `sweeps.mlp.chips[1]`."""
    text = ""
    for key in path:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else key
    return text


class RooflinesError(ValueError):
    """A mistake in the user's input, or several; `str(error)` is the whole message.

    Args:
        place: Keys before the wrong value; one key stands for itself, an empty one for the whole
            file.
        problem: The problem, a predicate: "is 'h100', which is no chip".
        fix: The fix, an imperative without a full stop.
        value: The wrong value; None: a key is missing, or several values disagree.
        close: Valid names similar to the wrong one.
        file: The file with the mistake.
        typed_fix: The fix on a command line, where it differs from a config's; empty: `fix`.
        several: All mistakes, the first with these arguments; empty: one mistake.

    Attributes:
        path: `place` as a tuple; empty for the whole file.
        cause: The cause as a value, for callers that phrase it themselves; None: nothing typed.
        line: The line in that file [1]; None if unknown.
        errors: The mistakes one by one; further attributes are those of the first.
    """

    def __init__(  # noqa: PLR0913, the parts of a message
        self,
        place: Key | KeyPath,
        problem: str,
        fix: str,
        *,
        value: object = None,
        close: Iterable[str] = (),
        file: str = "",
        typed_fix: str = "",
        several: Sequence[Self] = (),
    ) -> None:
        keys = place if isinstance(place, tuple) else (place,)
        self.path: KeyPath = tuple(key for key in keys if key != "")
        self.problem, self.fix, self.value = problem, fix, value
        self.close, self.file, self.typed_fix = tuple(close), file, typed_fix or fix
        self.cause: object = None
        self.line: int | None = None
        self._several = tuple(several)
        super().__init__(self.path, problem, fix)

    @property
    def where(self) -> str:
        """Key path as a config has it, such as `sweeps.mlp.chips[1]`."""
        return key_path(self.path)

    def changed(self, **parts: Any) -> Self:  # noqa: ANN401, arguments of the class
        """Copy with other arguments; cause and line stay."""
        arguments: dict[str, Any] = {
            "place": self.path,
            "problem": self.problem,
            "fix": self.fix,
            "value": self.value,
            "close": self.close,
            "file": self.file,
            "typed_fix": self.typed_fix,
        }
        error = type(self)(**arguments | parts)
        error.cause, error.line = self.cause, self.line
        return error

    @classmethod
    def combine(cls, errors: Iterable[Self]) -> Self:
        """Combine mistakes into one error."""
        mistakes = tuple(errors)
        first = mistakes[0]
        return first if len(mistakes) == 1 else first.changed(several=mistakes)

    @property
    def errors(self) -> tuple[Self, ...]:
        """Mistakes one by one."""
        return self._several or (self,)

    def within(
        self, *keys: Key, file: str = "", line_of: Callable[[KeyPath], int | None] | None = None
    ) -> Self:
        """Copy of this error with a longer key path, and its file.

        An error that names its file stays unchanged: its key path is complete.

        Args:
            *keys: Keys before the path's.
            file: The file with the mistake.
            line_of: Function from a key path to its line in that file.
        """
        if self._several:
            return self.combine(
                error.within(*keys, file=file, line_of=line_of) for error in self._several
            )
        if self.file:
            return self
        outer = self.changed(place=(*keys, *self.path), file=file)
        outer.line = line_of(outer.path) if line_of else None
        return outer

    def __str__(self) -> str:
        """Message: place and problem, close names, fix, a line each; then the number left out.

        Each line can quote a file's names, with any characters.
        """
        if self._several:
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
    """Warning about a probable slip in a config; the value is used unchanged.

    Raised for a number of the user's chip, which its `plausible` silences, or for contexts longer
    than a model is trained for.
    """


class Mistakes:
    """Collector for mistakes in independent parts, raised as one error when its block ends.

    An error raised in the block itself, outside any part, ends the block and joins those collected.
    A part's block passes its mistakes on to the whole; the code after it always runs.
    """

    def __init__(self, whole: Mistakes | None = None, path: KeyPath = ()) -> None:
        self.by_place: dict[tuple[str, KeyPath], RooflinesError] = {}
        self._whole, self._path = whole, path

    def add(self, error: RooflinesError) -> None:
        """Collect the mistakes in an error, the first at each place.

        Further mistakes at one place tend to follow from the first.

        Raises:
            RooflinesError: `MAX_MISTAKES` are collected.
        """
        for single in error.errors:
            self.by_place.setdefault((single.file, single.path), single)
            if len(self.by_place) >= MAX_MISTAKES:
                self.check()

    def at(self, *keys: Key) -> Mistakes:
        """Collector for a part.

        It takes errors raised inside and mistakes added to it; `keys` prefix their key paths.
        """
        return Mistakes(self, keys)

    def check(self) -> None:
        """Raise the mistakes, if any."""
        if self.by_place:
            raise RooflinesError.combine(self.by_place.values())

    def __enter__(self) -> Self:
        """Return the collector itself."""
        return self

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> bool | None:
        """Raise the collected mistakes and the error that ended the block, or pass them on."""
        if error is not None and not isinstance(error, RooflinesError):
            return None
        try:
            if error is not None:
                self.add(error)
            self.check()
        except RooflinesError as mistakes:
            if self._whole is None:
                raise
            self._whole.add(mistakes.within(*self._path))
        return True


def printable(text: object) -> str:
    """Text, or a path, on one line.

    Control characters and undecodable bytes are escaped, so that no terminal interprets them.
    """
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in str(text))


@contextmanager
def at_path(*keys: Key, file: str = "") -> Iterator[None]:
    """Complete errors raised inside: `keys` before their key path, `file` as their file."""
    try:
        yield
    except RooflinesError as error:
        raise error.within(*keys, file=file) from None


def error_notes(error: BaseException) -> list[str]:
    """Lines below a message, such as the corrected command line."""
    return [f"  {printable(note)}" for note in getattr(error, "__notes__", ())]


def close_to(name: object, choices: Iterable[str]) -> list[str]:
    """Valid names that `name` could mean: those that contain it, then similar ones."""
    text, names = str(name).lower(), list(choices)
    contain = [choice for choice in names if len(text) > 1 and text in choice.lower()]
    similar = get_close_matches(text, names, n=3, cutoff=0.6)
    return list(dict.fromkeys([*sorted(contain, key=len), *similar]))[:4]


def cycle(names: Sequence[str], order: Iterable[str]) -> list[str]:
    """Names in a cycle; the name that comes first in the file starts and ends it."""
    first = names.index(min(names, key=list(order).index))
    return [*names[first:], *names[: first + 1]]


def missing_package(command: str, package: str) -> RooflinesError:
    """Error about a package that a command needs and the environment lacks.

    Args:
        command: The command.
        package: The package's name for pip.
    """
    fix = f"type `make setup` in the clone, which installs it; elsewhere `pip install '{package}'`"
    return RooflinesError(command, f"needs {package}, which is not installed", fix)


def quote(value: object) -> str:
    """Quote a value in a message: YAML-like, truncated."""
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
    """Truncate a user's text for a message."""
    return text if len(text) <= length else f"{text[: length - 3]}..."


def check_choice(
    value: object, choices: Collection[Any], refusal: str, fix: str = "", typed_fix: str = ""
) -> None:
    """Refuse a value outside the valid choices.

    Args:
        value: A name or a number; values of other types are refused.
        choices: The valid values.
        refusal: End of the message "is 'h100', which is ...": "no chip of sweep mlp".
        fix: The fix; by default, to use one of the valid values.
        typed_fix: The fix for a command line, as in `RooflinesError`.

    Raises:
        RooflinesError: The value is not valid.
    """
    if isinstance(value, str | int) and value in choices:
        return
    names = [str(name) for name in choices]
    if not fix:
        fix = f"use one of {', '.join(names)}" if names else "leave it out"
    raise RooflinesError(
        "",
        f"is {quote(value)}, which is {refusal}",
        fix,
        value=value,
        close=close_to(value, names),
        typed_fix=typed_fix,
    )


def check_choices(
    values: Sequence[Any] | str | None, choices: Collection[Any], refusal: str, fix: str = ""
) -> None:
    """Refuse a value, or any in a list, outside the valid choices.

    Args:
        values: A name, or a list of names or numbers; None: an empty list.
        choices: The valid values.
        refusal: End of the message, as in `check_choice`.
        fix: The fix, as in `check_choice`.

    Raises:
        RooflinesError: At least one value is not valid; key paths are places in the list.
    """
    if isinstance(values, str):
        check_choice(values, choices, refusal, fix)
        return
    with Mistakes() as mistakes:
        for index, value in enumerate(values or ()):
            with mistakes.at(index):
                check_choice(value, choices, refusal, fix)
