"""Files named by users, tables among them: bounded size, exact path.

Polars reads `[1]`, `*` and `?` in a path as a pattern; here they are plain characters.
"""

from __future__ import annotations

import gzip
import io
import zlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from rooflines.basics.errors import RooflinesError, printable
from rooflines.basics.lazy import pl

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


def _config_dir() -> Path:
    """Folder with the catalogues: inside the installed package, or beside it in the repository."""
    package = Path(__file__).parents[1]
    inside = package / "data"
    return inside if inside.is_dir() else package.parent / "config"


CONFIG_DIR = _config_dir()
"""Folder with the catalogues and the default config."""

GZIP = b"\x1f\x8b"
"""First bytes of a gzip file."""

READ_ERRORS = (OSError, EOFError, UnicodeError, zlib.error)
"""Errors on reading a text that is missing, damaged, or none."""

MAX_TABLE_BYTES = 2**28
"""Maximum size of a user's table [byte]; as CSV some millions of rows."""


def named_file(folder: Path, name: str, inside: str = "") -> Path:
    """Path of a file that a config names; a missing file is the config's mistake.

    Args:
        folder: The folder at which relative paths start.
        name: The path in the config.
        inside: The file to take from a path to a folder.

    Raises:
        RooflinesError: The file does not exist, or cannot be read.
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


def bounded_content(path: str | Path, max_bytes: int = MAX_TABLE_BYTES, fix: str = "") -> bytes:
    """Content of a file, or of a pipe or device, which may be endless.

    Args:
        path: The file.
        max_bytes: Maximum size [byte].
        fix: The fix for a larger file.

    Raises:
        RooflinesError: The file is missing, too large, or cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            content = file.read(max_bytes + 1)
    except FileNotFoundError:
        raise RooflinesError("", "does not exist", "give the path of a file that does") from None
    except IsADirectoryError:
        raise RooflinesError("", "is a directory", "give the path of a file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise RooflinesError("", f"cannot be read: {reason}", "make it readable") from None
    if len(content) > max_bytes:
        problem = f"has more than {max_bytes:,} bytes"
        raise RooflinesError("", problem, fix or "split it into several files")
    return content


def encoding_of(head: bytes) -> str:
    """Encoding of a text by its first bytes: PowerShell writes UTF-16."""
    return "utf-16" if head.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8-sig"


def open_text(path: Path) -> IO[str]:
    """Open a text file, plain or gzip, for reading; line ends stay unchanged.

    Raises:
        OSError: The file cannot be opened; reading may raise any of `READ_ERRORS`.
    """
    with path.open("rb") as file:
        is_gzip = file.read(len(GZIP)) == GZIP
    with gzip.open(path) if is_gzip else path.open("rb") as file:
        encoding = encoding_of(file.read(len(BOM_UTF16_LE)))
    if is_gzip:
        return gzip.open(path, "rt", encoding=encoding, newline="")
    return path.open(encoding=encoding, newline="")


def bounded_text(path: str | Path, max_bytes: int, fix: str) -> str:
    """Text of a file in UTF-8; arguments and errors as in `bounded_content`."""
    content = bounded_content(path, max_bytes, fix)
    try:
        return content.decode(encoding_of(content))
    except UnicodeDecodeError:
        raise RooflinesError("", "is not text in UTF-8", "save it in UTF-8") from None


def read_csv(source: str | Path | bytes, **options: Any) -> pl.DataFrame:  # noqa: ANN401, of polars
    """Read a table from a CSV file, or from its content."""
    return pl.read_csv(_source(source), glob=False, **options)


def read_parquet(source: str | Path | bytes, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Read a table from a Parquet file, or from its content."""
    frame = pl.scan_parquet(_source(source), glob=False)
    return (frame if columns is None else frame.select(columns)).collect()


def scan_parquet(paths: str | Path | Iterable[str | Path]) -> pl.LazyFrame:
    """Scan a table from a Parquet file, or from several in order."""
    path_list = [paths] if isinstance(paths, str | Path) else paths
    return pl.scan_parquet([Path(path).absolute() for path in path_list], glob=False)


def parquet_metadata(source: str | Path | bytes) -> Mapping[str, str]:
    """Read the metadata by key from a Parquet file, or from its content."""
    return pl.read_parquet_metadata(_source(source))


def _source(source: str | Path | bytes) -> Path | io.BytesIO:
    """Source for polars: an absolute path is no address and does not start with `~`."""
    return io.BytesIO(source) if isinstance(source, bytes) else Path(source).absolute()
