"""YAML without duplicate keys, with bounded aliases and errors that have line and column."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rooflines.basics.cache import cached
from rooflines.basics.errors import RooflinesError, at_path, key_path
from rooflines.basics.files import bounded_text
from rooflines.basics.json_text import plain_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflines.basics.errors import Key, KeyPath

JSON = Mapping[str, Any]
"""A mapping of YAML or JSON data."""

MAX_YAML_BYTES = 2**20
"""Maximum size of a config or catalogue [byte]."""


def read_yaml(path: str | Path) -> Any:  # noqa: ANN401, any YAML value
    """Read plain data from a YAML file.

    Raises:
        RooflinesError: The file is missing, too large, no YAML, or no plain data.
    """
    with at_path(file=str(path)):
        text = bounded_text(Path(path), MAX_YAML_BYTES, f"keep it to {MAX_YAML_BYTES:,} bytes")
        json_data = plain_json(text)
        if json_data is not None:
            return json_data
        from rooflines.basics.yaml_loader import plain_data  # noqa: PLC0415, PyYAML takes a while

        return plain_data(text)


def read_package_yaml(path: Path) -> Any:  # noqa: ANN401, any YAML value
    """Read plain data from a YAML file in the package, from the cache where it has them.

    Raises:
        RooflinesError: As for `read_yaml`.
    """
    return cached(path.stem, [path], lambda: read_yaml(path))


@contextmanager
def in_file(path: str | Path, *keys: Key) -> Iterator[None]:
    """Add file and line to errors raised inside, and sort them by line.

    Lines are looked up only then, in the text read again: a valid config costs nothing.

    Args:
        path: The file.
        *keys: Keys before those of the paths.
    """
    try:
        yield
    except RooflinesError as error:
        mistakes = error.within(*keys, file=str(path), line_of=Lines(path).line_of).errors
        raise RooflinesError.combine(
            sorted(mistakes, key=lambda mistake: mistake.line or 0)
        ) from None


class Lines:
    """Line numbers in a YAML file by key path; for an alias, those of its anchor."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)

    @cached_property
    def _is_one_line(self) -> bool:
        """True for JSON in one line, as programs write it."""
        with suppress(OSError, ValueError):
            if self._path.is_file():  # a pipe can be read once only
                text = self._path.read_text(encoding="utf-8").strip()
                return text.startswith("{") and "\n" not in text
        return False

    @cached_property
    def _line_by_path(self) -> dict[str, int]:
        from rooflines.basics.yaml_loader import lines_by_path  # noqa: PLC0415, as above

        return lines_by_path(self._path)

    def line_of(self, path: KeyPath) -> int | None:
        """Line of a key path, or of its longest part that exists [1]; None without one."""
        if path and self._is_one_line:
            return 1
        while path and key_path(path) not in self._line_by_path:
            path = path[:-1]
        return self._line_by_path.get(key_path(path))
