"""Files that users name, tables among them: regular ones of bounded size, by their exact path.

A device or a pipe may be endless; to polars `[1]`, `*` and `?` in a path are a pattern.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from rooflines.basics.errors import RooflinesError, printable
from rooflines.basics.lazy import pl

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

LARGEST_TABLE = 2**28
"""Bytes of a table that a user names [byte]; of CSV these are some millions of rows."""

MOST_ROWS = 10_000_000
"""Rows of a table that a user names [1]; Parquet can store any number of rows in a few bytes."""

LONGEST_LINE = 2**20
"""Bytes of a line of text that a user names [byte]."""


def named_file(folder: Path, name: str, inside: str = "") -> Path:
    """The path of a file that a config names; a missing one is a mistake of the config.

    Args:
        folder: Where relative paths start.
        name: The path as the config has it.
        inside: The file that counts where the path is that of a folder.

    Raises:
        RooflinesError: There is no such file, or it cannot be read.
    """
    path = folder / name
    try:
        if inside and path.is_dir():
            path /= inside
        if path.is_dir():
            problem = "is a directory"
        elif not path.exists():
            problem = "does not exist"
        else:
            if path.is_file():  # a pipe can be opened once only
                path.open("rb").close()
            return path
    except (OSError, ValueError) as error:
        problem = f"cannot be read: {getattr(error, 'strerror', None) or error}"
    fix = f"correct the path; a relative one starts at {folder.absolute()}"
    raise RooflinesError("", f"names {printable(path)}, which {problem}", fix)


@contextmanager
def opened(path: str | Path) -> Iterator[BinaryIO]:
    """A regular file, open for reading; opening it waits for nobody, unlike that of a pipe.

    Raises:
        RooflinesError: It is a pipe or a device.
        OSError: It cannot be opened.
    """
    with open(path, "rb", opener=_at_once) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            fix = "give the path of a file; write the output of a program to a file first"
            raise RooflinesError("", "is no regular file", fix)
        yield file


def _at_once(path: str, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_NONBLOCK)
    except ValueError as error:
        raise OSError(errno.EINVAL, str(error), path) from None


def bounded_text(path: Path, largest: int, fix: str) -> str:
    """The text of a file in UTF-8, or of a pipe or a device, which may be endless.

    Blocks on a pipe that nobody writes to, as `cat` does.

    Args:
        path: The file.
        largest: Its size at most [byte].
        fix: What to do about a larger one.

    Raises:
        RooflinesError: It is missing, too large, cannot be read, or is no text.
    """
    try:
        with path.open("rb") as file:
            content = file.read(largest + 1)
    except FileNotFoundError:
        raise RooflinesError("", "does not exist", "give the path of a file that does") from None
    except IsADirectoryError:
        raise RooflinesError("", "is a directory", "give the path of a file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise RooflinesError("", f"cannot be read: {reason}", "make it readable") from None
    if len(content) > largest:
        raise RooflinesError("", f"has more than {largest:,} bytes", fix)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise RooflinesError("", "is not text in UTF-8", "save it in UTF-8") from None


def bounded_content(path: str | Path) -> bytes:
    """The content of a regular file of at most `LARGEST_TABLE`, its lines at most `LONGEST_LINE`.

    Lines of Parquet have no limit.

    Raises:
        RooflinesError: It is no such file.
        OSError: It cannot be read.
    """
    with opened(path) as file:
        content = file.read(LARGEST_TABLE + 1)
    if len(content) > LARGEST_TABLE:
        problem = f"has more than {LARGEST_TABLE:,} bytes"
        raise RooflinesError("", problem, "split it into several files")
    start = 0
    while Path(path).suffix != ".parquet" and start + LONGEST_LINE < len(content):
        start = content.rfind(b"\n", start, start + LONGEST_LINE + 1) + 1
        if not start:
            raise _long_line()
    return content


def lines_of(path: str | Path) -> Iterator[str]:
    """The lines of a regular file of UTF-8, one by one, of any size of the file.

    Raises:
        RooflinesError: It is no regular file, or has a line of more than `LONGEST_LINE`.
        OSError: It cannot be read.
        UnicodeDecodeError: It is no UTF-8.
    """
    with opened(path) as file:
        while line := file.readline(LONGEST_LINE + 1):
            if len(line) > LONGEST_LINE:
                raise _long_line()
            yield line.decode("utf-8")


def _long_line() -> RooflinesError:
    problem = f"has a line of more than {LONGEST_LINE:,} bytes"
    return RooflinesError("", problem, "give a file of text with a line for each row")


def read_csv(source: str | Path | bytes, **options: Any) -> pl.DataFrame:  # noqa: ANN401, of polars
    """The table of a CSV file, or of its content."""
    return pl.read_csv(_source(source), glob=False, **options)


def read_parquet(source: str | Path | bytes, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """The table of a Parquet file, or of its content, which has at most `MOST_ROWS` then."""
    frame = pl.scan_parquet(_source(source), glob=False)
    if isinstance(source, bytes):
        rows = frame.select(pl.len()).collect().item()
        if rows > MOST_ROWS:
            problem = f"has {rows:,} rows, more than {MOST_ROWS:,}"
            raise RooflinesError("", problem, "split it into several files")
    return (frame if columns is None else frame.select(columns)).collect()


def scan_parquet(paths: str | Path | Iterable[str | Path]) -> pl.LazyFrame:
    """The table of a Parquet file, or of several in order."""
    several = [paths] if isinstance(paths, str | Path) else paths
    return pl.scan_parquet([Path(path).absolute() for path in several], glob=False)


def parquet_metadata(source: str | Path | io.BytesIO) -> Mapping[str, str]:
    """The metadata of a Parquet file by key, or of its content.

    Raises:
        RooflinesError: It is no regular file.
        OSError: It cannot be read.
    """
    if isinstance(source, io.BytesIO):
        return pl.read_parquet_metadata(source)
    with opened(source) as file:
        return pl.read_parquet_metadata(file)


def _source(source: str | Path | bytes) -> Path | io.BytesIO:
    """What polars reads: an absolute path is no address and does not start with `~`."""
    return io.BytesIO(source) if isinstance(source, bytes) else Path(source).absolute()
