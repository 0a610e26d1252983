"""Tables on disk: Parquet files that appear whole or not at all, and that say in their own metadata what made them."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from rooflines.basics.errors import RooflinesError, close_to, printable, quote
from rooflines.basics.spreadsheet import FORMULA
from rooflines.results.records import appearing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "METADATA_KEY",
    "appearing",
    "csv_text",
    "metadata_of",
    "scan",
    "write_csv",
    "write_parquet",
]

Compression = Literal["zstd", "lz4"]

ROW_GROUP_ROWS = 2**18
PAGE_BYTES = 2**22
"""A column of a row group is one page: as fast as smaller ones, and 5 % smaller in all."""

METADATA_KEY = "rooflines"
"""The key in a Parquet file's metadata under which this package says what made the file, as JSON."""

ARROW_SCHEMA_KEY = "ARROW:schema"
"""The key under which polars, pyarrow and others keep the types of the columns."""


def write_parquet(
    frame: pl.LazyFrame,
    path: str | Path,
    about: Mapping[str, Any],
    texts: Iterable[str] = (),
    compression: Compression = "zstd",
) -> None:
    """Write a frame as Parquet, streaming, with `about` in its metadata.

    Args:
        frame: What to write.
        path: Where it appears when it is whole.
        about: What made it, as plain data.
        texts: Enum columns that are read back as Categorical, as files with different Enums cannot be read together.
        compression: How pages are compressed.
    """
    metadata = {METADATA_KEY: json.dumps(about, ensure_ascii=False)}
    if read_as := dict.fromkeys(texts, pl.Categorical):
        metadata[ARROW_SCHEMA_KEY] = arrow_schema({**frame.collect_schema(), **read_as})
    with appearing(path) as aside:
        frame.sink_parquet(
            aside,
            compression=compression,
            compression_level=1 if compression == "zstd" else None,
            row_group_size=ROW_GROUP_ROWS,
            data_page_size=PAGE_BYTES,
            metadata=metadata,
        )


def arrow_schema(schema: Mapping[str, Any]) -> str:
    """What a Parquet file of such columns says of their types, where Parquet's own are too few: it stores Enum and Categorical alike."""
    empty = BytesIO()
    pl.DataFrame(schema=schema).write_parquet(empty)
    empty.seek(0)
    return pl.read_parquet_metadata(empty)[ARROW_SCHEMA_KEY]


def csv_text(frame: pl.DataFrame) -> str:
    """A frame as CSV that no spreadsheet runs: text that begins like a formula has an apostrophe before it. Numbers are as they are."""
    safe = []
    for name, dtype in frame.schema.items():
        if dtype in (pl.String, pl.Categorical) or isinstance(dtype, pl.Enum):
            text = frame[name].cast(pl.String)
            safe += (
                [text.str.replace_all(FORMULA, "${1}'${2}")]
                if text.str.contains(FORMULA).any()
                else []
            )
    return frame.with_columns(safe).write_csv()


def write_csv(frame: pl.DataFrame, path: str | Path) -> None:
    """Write a frame as CSV; see `csv_text`."""
    with appearing(path) as aside:
        aside.write_text(csv_text(frame), encoding="utf-8")


def metadata_of(path: str | Path) -> dict[str, Any]:
    """What a Parquet file of this package says made it: version, config, catalogue entries, columns.

    Raises:
        RooflinesError: The file is none of this package's.
    """
    try:
        with Path(path).open("rb") as file:
            text = pl.read_parquet_metadata(file).get(METADATA_KEY)
        about = None if text is None else json.loads(text)
    except (
        OSError,
        ValueError,
        RecursionError,
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
    ) as error:
        raise RooflinesError(
            "", f"cannot be read as Parquet: {printable(error)}", "make it again", file=str(path)
        ) from None
    if not isinstance(about, dict):
        raise RooflinesError(
            "", "does not say what made it", "give a table of this package", file=str(path)
        )
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
        fix = (
            f"use one of {', '.join(found)}"
            if found
            else "run the workflow first, or give the folder it writes to"
        )
        raise RooflinesError(
            "", f"has no table {quote(sweep)}", fix, close=close_to(sweep, found), file=str(tables)
        )
    return pl.scan_parquet(tables / sweep / "part-*.parquet", glob=True)
