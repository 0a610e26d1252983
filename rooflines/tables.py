"""Tables on disk: Parquet files that appear whole or not at all, and that say in their own metadata what made them."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from rooflines.errors import RooflinesError, close_to, quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["METADATA_KEY", "appearing", "metadata_of", "scan", "write_parquet"]

METADATA_KEY = "rooflines"
"""The key in a Parquet file's metadata under which this package says what made the file, as JSON."""


@contextmanager
def appearing(path: str | Path) -> Iterator[Path]:
    """A path to write to, in the same folder, that takes the name `path` once all is written; until then nobody sees the file."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    os.close(handle)
    aside = Path(name)
    try:
        yield aside
        aside.chmod(0o666 & ~_umask())
        with aside.open("rb+") as written:
            os.fsync(written.fileno())
        aside.replace(target)
    finally:
        aside.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_parquet(frame: pl.LazyFrame, path: str | Path, about: Mapping[str, Any]) -> None:
    """Write a frame as Parquet, streaming, with `about` in its metadata.

    Args:
        frame: What to write.
        path: Where it appears when it is whole.
        about: What made it, as plain data.
    """
    with appearing(path) as aside:
        frame.sink_parquet(aside, compression="zstd", compression_level=1, metadata={METADATA_KEY: json.dumps(about, ensure_ascii=False)})


def metadata_of(path: str | Path) -> dict[str, Any]:
    """What a Parquet file of this package says made it: version, config, catalogue entries, columns.

    Raises:
        RooflinesError: The file is none of this package's.
    """
    try:
        text = pl.read_parquet_metadata(path).get(METADATA_KEY)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise RooflinesError("", f"cannot be read as Parquet: {error}", "make it again", file=str(path)) from None
    if text is None:
        raise RooflinesError("", "does not say what made it", "give a table of this package", file=str(path))
    about: dict[str, Any] = json.loads(text)
    return about


def scan(results: str | Path, sweep: str) -> pl.LazyFrame:
    """The table of a sweep on disk, all its parts as one lazy frame.

    Args:
        results: The folder that holds `tables/`.
        sweep: The sweep's name.

    Raises:
        RooflinesError: There is no such table.
    """
    tables = Path(results) / "tables"
    if not any((tables / sweep).glob("part-*.parquet")):
        found = sorted({part.parent.name for part in tables.glob("*/part-*.parquet")})
        fix = f"use one of {', '.join(found)}" if found else "run the workflow first, or give the folder it writes to"
        raise RooflinesError("", f"has no table {quote(sweep)}", fix, close=close_to(sweep, found), file=str(tables))
    return pl.scan_parquet(tables / sweep / "part-*.parquet", glob=True)
