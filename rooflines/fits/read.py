"""Tables of timings: read in the tidy form or a public layout, and checked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from polars.exceptions import PanicException, PolarsError

from rooflines.basics.errors import Mistakes, RooflinesError, at_path, close_to, one_of, quote
from rooflines.basics.files import bounded_content, read_csv, read_parquet
from rooflines.basics.numbers import LARGEST_SIZE
from rooflines.basics.text import counted
from rooflines.fits.layouts import layout_of, tidy
from rooflines.fits.nccl_tests import is_nccl_tests, read_nccl_tests
from rooflines.fits.timings import ATTENTION, MATMUL, ROW, Timings, attention_names, timed_kind
from rooflines.model.network import PASSES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Types = Mapping[str, pl.DataType]

SEPARATORS = {";": "semicolons", "\t": "tabs"}
"""Separators of columns other than commas."""

SOURCE = r"^[^/\s]+/[^/\s]+/[^/\s]+$"
"""A source that names a software: `<collection>/<software>/<version>`."""

OTHER_NAMES = {
    "chip": ("gpu", "device"),
    "seconds": ("time", "latency", "duration"),
    "B": ("m", "tokens"),
    "D": ("k",),
    "F": ("n",),
}
"""First words of usual names of columns in other tables."""

LEFT_OUT: Mapping[str, tuple[pl.Expr, str]] = {
    "B": (pl.col("B") == 0, "have B = 0"),
    "batch": (pl.col("batch") > 1, "are batches"),
    "shards": (pl.col("shards") > 1, "are of several chips"),
}
"""Matmuls that are left out, by column: which, and why."""


def read_timings(path: str | Path, where: Mapping[str, str] | None = None) -> Timings:
    """Timings of a table: Parquet, the text of nccl-tests or, else, CSV.

    A table in the tidy form has the columns of a `TimedKind`. Of public layouts, aiconfigurator's
    `gemm_perf.parquet` and runs of InferenceX, vidur's `mlp.csv` and the text of nccl-tests are
    known by their columns. Without a column `software`, that of a timing is its `engine` or else in
    its `source`, if all sources are `<collection>/<software>/<version>`.

    Args:
        path: The file.
        where: The value of a column: its rows are chosen; if the table lacks the column, all its
            rows have the value.

    Returns:
        The timings; rows with B = 0, several matmuls in a batch or several chips are left out.

    Raises:
        RooflinesError: It cannot be read, lacks columns, or has values that are none.
    """
    wanted = dict(where or {})
    with at_path(file=str(path)):
        frame = _read(Path(path)).drop(ROW, strict=False).with_row_index(ROW, offset=1)
        given = frame.columns
        frame, left_out = tidy(frame)
        added = {name: value for name, value in wanted.items() if name not in frame.columns}
        frame = frame.with_columns(**{name: pl.lit(value) for name, value in added.items()})
        frame = _with_software(frame)
        kind = timed_kind(frame.columns)
        schema, optional = kind.columns, kind.optional
        known = {ROW, *schema, *optional}
        unread = () if layout_of(given) else tuple(n for n in frame.columns if n not in known)
        frame = _typed(frame, schema, optional)
        if kind is MATMUL:
            frame, unusable = _usable(frame)
            left_out = {**left_out, **unusable}
        if frame.is_empty():
            raise RooflinesError("", "has no timings", "give a table with a row for each timing")
        if kind is ATTENTION:
            frame = frame.with_columns(attention=attention_names())
    notes = (*_notes(left_out), *([f"columns not read: {', '.join(unread)}"] if unread else []))
    timings = Timings(str(path), frame, notes, left_out, unread)
    for column, value in wanted.items():
        with at_path("where"):
            one_of(column, (*schema, *optional), "no column of timings")
        if column not in added:
            chosen = timings.where(column, value)
            others = timings.frame.height - chosen.frame.height
            note = f"{counted(others, 'timing')} with another {column} left out"
            timings = replace(chosen, notes=chosen.notes + ((note,) if others else ()))
    with at_path(file=str(path)):
        _check_values(timings.frame, schema, optional)
    return replace(timings, frame=timings.frame.select(pl.exclude(f"^{ROW}.+$")))


def _read(path: Path) -> pl.DataFrame:
    parquet = path.suffix == ".parquet"
    try:
        content = bounded_content(path)
        if parquet:
            return read_parquet(content)
        text = content.decode("utf-8")
        if is_nccl_tests(text):
            return read_nccl_tests(text, path.name)
        _check_separator(text)
        frame = read_csv(content, infer_schema_length=None)
        return frame.rename(str.strip).with_columns(pl.col(pl.String).str.strip_chars())
    except RooflinesError:
        raise
    except UnicodeDecodeError as error:
        problem = f"is no text in UTF-8: byte {error.start + 1} is no part of it"
        fix = "write it again, as CSV in UTF-8 or as Parquet with the suffix .parquet"
        raise RooflinesError("", problem, fix) from None
    except (PolarsError, PanicException) as error:
        kind, other = ("Parquet", "CSV") if parquet else ("CSV", "Parquet")
        reason = " ".join(str(error).split())
        if "more fields than" in reason:
            reason = "a row has more values than the first line has names"
        problem = f"is no {kind} file: {reason[:200]}"
        fix = f"write it again; {other} has the suffix .{other.lower()}"
        raise RooflinesError("", problem, fix) from None


def _check_separator(text: str) -> None:
    """Refuse a table whose columns are not separated by commas."""
    head = text.partition("\n")[0]
    for mark, name in SEPARATORS.items():
        if mark in head and "," not in head:
            fix = "separate them with commas, and write decimals with a point"
            raise RooflinesError("", f"has columns that are separated by {name}", fix)


def _with_software(frame: pl.DataFrame) -> pl.DataFrame:
    """A table without a column `software` with its `engine`, or that of its sources.

    All sources have to name one.
    """
    if "engine" in frame.columns and "software" not in frame.columns:
        return frame.rename({"engine": "software"})
    named = frame.schema.get("source") == pl.String and "software" not in frame.columns
    if named and frame["source"].str.contains(SOURCE).fill_null(value=False).all():
        return frame.with_columns(software=pl.col("source").str.split("/").list.get(1))
    return frame


def _typed(frame: pl.DataFrame, schema: Types, optional: Types) -> pl.DataFrame:
    """The known columns with their types; a value of another type is null."""
    missing = [name for name in schema if name not in frame.columns]
    if missing:
        raise RooflinesError(
            "",
            f"lacks the columns {', '.join(missing)}",
            f"add them, or say their one value for all rows; timings have {', '.join(schema)}",
            close=[near for name in missing for near in _close(name, frame.columns)],
        )
    known = {**{n: t for n, t in optional.items() if n in frame.columns}, **schema}
    given = (pl.col(name).alias(f"{ROW}{name}") for name in known)
    casts = (_cast(frame, name, kind) for name, kind in known.items())
    return frame.select(ROW, *casts, *given)


def _close(name: str, columns: Sequence[str]) -> list[str]:
    """The columns of a table that may be meant by a name: alike, or a usual name of the same."""
    usual = OTHER_NAMES.get(name, ())
    alike = (one for one in columns if one.lower().partition("_")[0] in usual)
    return [*close_to(name, columns), *alike]


def _cast(frame: pl.DataFrame, name: str, kind: pl.DataType) -> pl.Expr:
    """A column with its type; a fraction is no whole number, and dates and lists are neither."""
    column, given = pl.col(name), frame.schema[name]
    texts = isinstance(given, pl.String | pl.Categorical | pl.Enum | pl.Null)
    if not (texts or given.is_numeric()):
        return pl.lit(None, kind).alias(name)
    if kind.is_integer() and given.is_float():
        column = pl.when(column == column.floor()).then(column)
    return column.cast(kind, strict=False)


def _usable(frame: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, int]]:
    """The rows of single matmuls on one chip, and how many are left out by reason."""
    left_out = {}
    for column, (unusable, reason) in LEFT_OUT.items():
        if column not in frame.columns:
            continue
        rest = frame.filter(~unusable.fill_null(value=False))
        if less := frame.height - rest.height:
            left_out[reason] = less
        frame = rest
    return frame, left_out


def _notes(left_out: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(
        f"{counted(count, 'row')} of the file left out: they {reason}"
        for reason, count in left_out.items()
    )


def _check_values(frame: pl.DataFrame, schema: Types, optional: Types) -> None:
    """Refuse values that are missing or of another type, and numbers that are too small.

    Those of `schema` are above zero; those of `optional` may be missing or zero.
    """
    with Mistakes() as mistakes:
        for column in (*schema, *(name for name in optional if name in frame.columns)):
            values, given = frame[column], frame[f"{ROW}{column}"]
            right = _present(values)
            if column not in schema:
                missing = given.is_nan() if given.dtype.is_float() else given.is_null()
                right = _present(values, zero=True) | missing.fill_null(value=True)
            wrong = frame.filter(~right)
            with mistakes.at(column):
                if not wrong.is_empty():
                    least = "above zero" if column in schema else "of at least zero"
                    what = f"a number {least}" if values.dtype.is_numeric() else "text"
                    row, value = wrong.select(ROW, given.name).row(0)
                    if values.dtype.is_integer():
                        most = f" and at most {LARGEST_SIZE:,}" if _is_large(value) else ""
                        what = f"a whole number {least}{most}"
                    problem = (
                        f"has {counted(wrong.height, 'value')} that should be {what}, the first in "
                        f"row {row}: {quote(value)}"
                    )
                    raise RooflinesError("", problem, "correct the rows, or take them out")
                if column == "collective":
                    for name in values.unique().sort():
                        one_of(name, PASSES, "no collective")


def _is_large(value: object) -> bool:
    """Whether a number, or the digits of one, is above `LARGEST_SIZE`; digits may be thousands."""
    if isinstance(value, str):
        return value.isdecimal() and len(value) > len(str(LARGEST_SIZE))
    return isinstance(value, int | float) and value > LARGEST_SIZE


def _present(values: pl.Series, *, zero: bool = False) -> pl.Series:
    """Where a column has text, or a number above zero, or else zero; sizes are exact in Float64."""
    right = values.is_not_null()
    if values.dtype.is_numeric():
        right &= values.is_finite() & ((values >= 0) if zero else (values > 0))
    if values.dtype.is_integer():
        right &= values <= LARGEST_SIZE
    return right.fill_null(value=False)
