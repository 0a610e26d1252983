"""Compare the values of two results folders: `python -m benchmarks.compare_results OLD NEW`.

Compares every table, the thresholds and the skipped combinations: files, columns, dtypes, rows and
values. Floats have to be equal to the last bit. Exit status 0 if all are equal, else 1.

`--names TABLE` gives a file with a line `old new` for every column that was renamed: it is compared
under its new name. An old name that no table of OLD has is reported as a difference; a new name
that a table has beside the old one is an error.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TABLES = ("tables", "models", "layers")
"""Folders with a folder of parts for each table: however a table is cut, its rows are compared."""

PATTERNS = (
    "thresholds.parquet",
    "model-thresholds.parquet",
    "skipped.csv",
    "summary.csv",
    "model-shapes.csv",
)
MOST_SHOWN = 3


def compared(folder: Path) -> dict[Path, Path]:
    """Compared parts of a results folder, by name."""
    tables = [path for name in TABLES for path in (folder / name).glob("*") if path.is_dir()]
    files = [path for pattern in PATTERNS for path in folder.glob(pattern)]
    return {path.relative_to(folder): path for path in (*tables, *files)}


def read(path: Path) -> pl.DataFrame:
    """A table, of all its parts in order; a CSV file as text."""
    if path.suffix == ".csv":
        return pl.read_csv(path, infer_schema=False)
    return pl.read_parquet(sorted(path.glob("*.parquet")) if path.is_dir() else path)


def values(column: pl.Series) -> pl.Series:
    """A column in a form that compares by value: categories as text, floats as bits."""
    if column.dtype in (pl.Categorical, pl.Enum):
        return column.cast(pl.String)
    if column.dtype == pl.Float64:
        return column.reinterpret(dtype=pl.UInt64)
    return column.reinterpret(dtype=pl.UInt32) if column.dtype == pl.Float32 else column


def read_names(path: Path) -> dict[str, str]:
    """New names of columns by their old ones, from a file with a line `old new` for each.

    Raises:
        ValueError: A line has another form, or a name stands there twice.
    """
    names: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            before, after = words
        except ValueError:
            raise ValueError(f"{path}, line {number}: write an old and a new name") from None
        if before in names or after in names.values():
            raise ValueError(f"{path}, line {number}: {before} or {after} is named twice")
        names[before] = after
    return names


def renamed(frame: pl.DataFrame, names: Mapping[str, str]) -> pl.DataFrame:
    """A table under the new names of its columns.

    Raises:
        ValueError: It has a new name already, so that two columns would be one.
    """
    present = {old: new for old, new in names.items() if old in frame.columns}
    if taken := [new for new in present.values() if new in frame.columns]:
        raise ValueError(f"columns {', '.join(taken)} are there under their old names too")
    return frame.rename(present)


def differences(old: pl.DataFrame, new: pl.DataFrame) -> Iterator[str]:
    """The differences of two tables, one line each: columns, dtypes, number of rows, values."""
    for name, frame, other in (("removed", old, new), ("added", new, old)):
        if columns := [column for column in frame.columns if column not in other.columns]:
            yield f"columns {name}: {', '.join(columns)}"
    common = [column for column in old.columns if column in new.columns]
    if common != [column for column in new.columns if column in old.columns]:
        yield "order of columns differs"
    if old.height != new.height:
        yield f"{old.height:,} rows, now {new.height:,}"
        return
    for name in common:
        before, after = old[name], new[name]
        if before.dtype != after.dtype:
            yield f"{name} is {before.dtype}, now {after.dtype}"
            continue
        rows = values(before).ne_missing(values(after)).arg_true()
        if rows.len():
            shown = "; ".join(
                f"row {row}: {before[row]!r}, now {after[row]!r}" for row in rows.head(MOST_SHOWN)
            )
            yield f"{name} differs in {rows.len():,} of {old.height:,} rows: {shown}"


def main(arguments: list[str] | None = None) -> int:
    """Print every difference of two results folders, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.compare_results", description=__doc__
    )
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--names", type=Path, metavar="TABLE", help="lines `old new` of columns")
    options = parser.parse_args(arguments)
    old, new = compared(options.old), compared(options.new)
    if not old:
        parser.error(f"{options.old} has no results")
    lines = [f"{path}: missing" for path in sorted(old.keys() - new.keys())]
    lines += [f"{path}: added" for path in sorted(new.keys() - old.keys())]
    try:
        names = read_names(options.names) if options.names else {}
    except ValueError as error:
        parser.error(str(error))
    unused, cells = {*names}, 0
    for path in sorted(old.keys() & new.keys()):
        frame = read(old[path])
        unused -= {*frame.columns}
        try:
            frame = renamed(frame, names)
        except ValueError as error:
            parser.error(f"{path}: {error}")
        cells += frame.height * frame.width
        lines += [f"{path}: {line}" for line in differences(frame, read(new[path]))]
    lines += [f"{name}: no table of {options.old} has this column" for name in sorted(unused)]
    print("\n".join(lines) or f"{len(old):,} files with {cells:,} values are equal")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
