"""Tables on disk: Parquet and CSV, written atomically; Parquet metadata hold the provenance."""

from __future__ import annotations

import json
from collections import defaultdict
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rooflines.basics.errors import RooflinesError, close_to, printable, quote
from rooflines.basics.files import parquet_metadata, scan_parquet
from rooflines.basics.lazy import pl
from rooflines.basics.text import FORMULA
from rooflines.results.atomic import atomic_file
from rooflines.results.folders import LAYERS_FOLDER, MODELS_FOLDER, TABLES_FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

Compression = Literal["zstd", "lz4"]

ROW_GROUP_ROWS = 2**18
PAGE_BYTES = 2**22
"""One page per column of a row group: as fast as smaller pages, and files are 5 % smaller."""

ZSTD_LEVEL = 3
"""Compression level [1]: a tenth fewer bytes than level 1 in small files, in the same time."""

PART_FILES = "part-*.parquet"
"""Glob for the files of a table."""

METADATA_KEY = "rooflines"
"""Metadata key of this package in a Parquet file; its value is JSON."""

ARROW_SCHEMA_KEY = "ARROW:schema"
"""Metadata key for column types, shared by polars, pyarrow and more."""


def write_parquet(  # noqa: PLR0913, all but the first three have a default
    frame: pl.LazyFrame,
    path: str | Path,
    about: Mapping[str, Any],
    texts: Iterable[str] = (),
    compression: Compression = "zstd",
    *,
    wide: bool = False,
) -> None:
    """Write a frame as Parquet, streaming, with `about` in its metadata.

    Args:
        frame: The table.
        path: The file, written atomically.
        about: Provenance: version, config, catalogue entries, columns; stored as JSON.
        texts: Enum columns that are read back as Categorical: files with different Enums cannot be
            read as one table.
        compression: Page compression.
        wide: Whether the table has many number columns that hardly repeat: shorter row groups then
            take less time.
    """
    metadata = {METADATA_KEY: json.dumps(about, ensure_ascii=False)}
    schema = frame.collect_schema()
    if read_as := {name: pl.Categorical for name in texts if name in schema}:
        metadata[ARROW_SCHEMA_KEY] = arrow_schema({**schema, **read_as})
    with atomic_file(path) as temporary:
        frame.sink_parquet(
            temporary,
            compression=compression,
            compression_level=ZSTD_LEVEL if compression == "zstd" else None,
            row_group_size=ROW_GROUP_ROWS // 2 if wide else ROW_GROUP_ROWS,
            # A tenth of the CPU time. Without them a filter of forty files takes hundredths of a
            # second more on a disk; in an object store a second, where no file has the value.
            statistics=False,
            data_page_size=PAGE_BYTES,
            metadata=metadata,
        )


def arrow_schema(schema: Mapping[str, Any]) -> str:
    """Arrow metadata for a schema's column types: Parquet alone stores Enum like Categorical."""
    empty = BytesIO()
    pl.DataFrame(schema=schema).write_parquet(empty)
    return parquet_metadata(empty.getvalue())[ARROW_SCHEMA_KEY]


NO_TEXT = "none"
"""Replacement for null in text columns of a large CSV file.

pandas takes a long run of empty cells for numbers, and warns of mixed types where text follows.
"""


def csv_text(frame: pl.DataFrame, no_text: str = "") -> str:
    """CSV of a frame. Text that a spreadsheet would run as a formula gets an apostrophe.

    Args:
        frame: The table.
        no_text: Replacement for null in text columns; nulls in number columns are empty.
    """
    safe = []
    for name, dtype in frame.schema.items():
        if dtype in (pl.String, pl.Categorical) or isinstance(dtype, pl.Enum):
            text = frame[name].cast(pl.String)
            if text.str.contains(FORMULA).any():
                text = text.str.replace_all(FORMULA, "${1}'${2}")
            safe.append(text.fill_null(no_text) if no_text else text)
    return frame.with_columns(safe).write_csv()


def write_csv(frame: pl.DataFrame, path: str | Path, no_text: str = "") -> None:
    """Write a frame as CSV; see `csv_text`."""
    with atomic_file(path) as temporary:
        temporary.write_text(csv_text(frame, no_text), encoding="utf-8")


def metadata_of(path: str | Path) -> dict[str, Any]:
    """Read the metadata of a table: version, config, catalogue entries, columns.

    Raises:
        RooflinesError: This package did not write the file.
    """
    try:
        text = parquet_metadata(path).get(METADATA_KEY)
        metadata = None if text is None else json.loads(text)
    except (
        OSError,
        ValueError,
        RecursionError,
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
    ) as error:
        problem = f"cannot be read as Parquet: {printable(error)}"
        raise RooflinesError("", problem, "make it again", file=str(path)) from None
    if not isinstance(metadata, dict):
        fix = "give a table of this package"
        raise RooflinesError("", "does not say what made it", fix, file=str(path))
    return metadata


def scan(place: str | Path, sweep: str | None = None, *, layers: bool = False) -> pl.LazyFrame:
    """Scan a table on disk as one lazy frame.

    Args:
        place: The folder that a run writes to; or, without a sweep, a table's folder, or one file.
        sweep: The name of a sweep of operations or models.
        layers: Whether to read the kernels of a model sweep.

    Returns:
        The columns that `metadata_of` lists.

    Raises:
        RooflinesError: The table does not exist.
    """
    return scan_parquet(_parts(Path(place), sweep, layers=layers))


def _parts(place: Path, sweep: str | None, *, layers: bool) -> list[Path]:
    """Files of a table, in order."""
    if sweep is None:
        parts = [place] if place.is_file() else sorted(place.glob(PART_FILES))
        if parts:
            return parts
        problem = "is neither a table nor one of its files"
        fix = "if it is the folder of a run, name one of its sweeps"
        raise RooflinesError("", problem, fix, file=str(place))
    folders = [
        place / name for name in ((LAYERS_FOLDER,) if layers else (TABLES_FOLDER, MODELS_FOLDER))
    ]
    for folder in folders:
        if parts := sorted((folder / sweep).glob(PART_FILES)):
            return parts
    all_parts = (part for folder in folders for part in folder.glob(f"*/{PART_FILES}"))
    names = sorted({part.parent.name for part in all_parts})
    fix, problem = f"use one of {', '.join(names)}", f"has no table {quote(sweep)}"
    if not names:
        fix = "run the workflow first, or give the folder it writes to"
    raise RooflinesError("", problem, fix, close=close_to(sweep, names), file=str(folders[0]))


Key = tuple[str | float | None, ...]
"""Column values shared by consecutive rows."""


def runs_of(frame: pl.DataFrame, names: Sequence[str]) -> Iterator[tuple[Key, int, int]]:
    """Runs of rows with equal values in columns: values, first row, row after the last."""
    changes = (pl.col(name).ne_missing(pl.col(name).shift()) for name in names)
    first = pl.int_range(pl.len()) == 0
    starts = frame.select(pl.any_horizontal(first, *changes).arg_true()).to_series()
    texts = pl.col(pl.Categorical, pl.Enum).cast(pl.String)
    keys = frame.select(names)[starts].with_columns(texts).rows()
    return zip(keys, starts, chain(starts[1:], [frame.height]), strict=False)


def scan_sweeps(path: str | Path) -> defaultdict[str, pl.LazyFrame]:
    """Rows by sweep in a threshold file, where they are consecutive; empty for other sweeps."""
    rows = scan_parquet(path)
    runs = runs_of(rows.select("sweep").collect(), ["sweep"])
    by_sweep = {str(sweep): rows.slice(start, stop - start) for (sweep,), start, stop in runs}
    return defaultdict(rows.clear, by_sweep)
