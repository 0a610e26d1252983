"""Timing tables: read in the tidy form or a public layout, and checked."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from polars.exceptions import PanicException, PolarsError

from rooflines.basics.errors import Mistakes, RooflinesError, at_path, check_choice, close_to, quote
from rooflines.basics.file_kinds import file_kind, named_kind
from rooflines.basics.files import bounded_content, encoding_of, read_csv, read_parquet
from rooflines.basics.numbers import MAX_SIZE
from rooflines.basics.text import counted
from rooflines.fits.bench_files import read_bench
from rooflines.fits.hipblaslt import read_hipblaslt
from rooflines.fits.kernel_profiles import with_model_of_path
from rooflines.fits.layouts import AICONFIGURATOR_DTYPES, layout_of, tidy
from rooflines.fits.named_devices import device_note
from rooflines.fits.nccl_tests import is_nccl_tests, read_nccl_tests
from rooflines.fits.timings import (
    ATTENTION,
    DTYPES,
    EXPERTS,
    MATMUL_SIZES,
    MATMUL_TIMINGS,
    PARALLEL,
    ROW,
    SERVED,
    Timings,
    attention_names,
    experts_names,
    timed_kind,
)
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.theory.network import RING_PASSES

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from rooflines.basics.file_kinds import FileKind

    Types = Mapping[str, pl.DataType]

BENCHES = ("vllm-serve", "sglang-serve", "served", "trtllm-bench")
"""File kinds with serving benchmark results."""

SPACED = re.compile(r"\s*\w+([ \t]+\w+){3,}[ \t]*\r?\n\s*\d+([ \t]+[\d.eE+-]+){3,}")
"""First rows of a table whose columns are separated by blanks."""

SEPARATORS = {";": "semicolons", "\t": "tabs"}
"""Column separators other than commas."""

SOURCE = r"^[^/\s]+/[^/\s]+/[^/\s]+$"
"""Source that names a software: `<collection>/<software>/<version>`."""

OTHER_NAMES = {
    "chip": ("gpu", "device"),
    "seconds": ("time", "latency", "duration"),
    "B": ("m", "tokens"),
    "D": ("k",),
    "F": ("n",),
}
"""First words in usual column names of other tables."""

LEFT_OUT: Mapping[str, tuple[pl.Expr, str]] = {
    "B": (pl.col("B") == 0, "have B = 0"),
    "batch": (pl.col("batch") > 1, "are batches"),
    "shards": (pl.col("shards") > 1, "are of several chips"),
}
"""Matmuls that are left out, by column: condition and reason."""


def read_timings(
    path: str | Path,
    where: Mapping[str, str] | None = None,
    otherwise: Mapping[str, str] | None = None,
) -> Timings:
    """Read timings from a file: Parquet, benchmark output or, else, CSV.

    A tidy table has the columns in a `TimedKind`. Public layouts are recognized by their columns
    (aiconfigurator's `gemm_perf.parquet`, InferenceX runs, vidur's `mlp.csv`, TraceLens' GEMM.csv,
    aiter's tuned matmuls, LLMServingSim's layers, tables with m, n, k and a time) or by their
    content (output from nccl-tests and hipblaslt-bench, serving benchmark results). Without a
    column `software`, a timing's software is its `engine`, or else in its `source`, if all sources
    are `<collection>/<software>/<version>`.

    Args:
        path: The file.
        where: Value by column: rows with it are chosen; if the table lacks the column, all its rows
            have the value.
        otherwise: Values by column for a matmul table without any dtype.

    Returns:
        The timings; rows with B = 0, several matmuls in a batch or several chips are left out.

    Raises:
        RooflinesError: It cannot be read, lacks columns, or has values that are none.
    """
    selection = dict(where or {})
    with at_path(file=str(path)), named_kind(path, "timings"):
        given_kind = file_kind(path)
        frame, left_out = _read(Path(path), given_kind.id if given_kind else "")
        frame = with_model_of_path(frame, Path(path))
        frame = frame.drop(ROW, strict=False).with_row_index(ROW, offset=1)
        file_columns = frame.columns
        _check_aiconfigurator(file_columns)
        frame, layout_left_out = tidy(frame)
        frame = _with_combinations(frame)
        left_out = {**left_out, **layout_left_out}
        if (
            otherwise
            and {*MATMUL_SIZES} <= {*frame.columns}
            and not {*DTYPES} & {*frame.columns, *selection}
        ):
            frame = frame.with_columns(pl.lit(value).alias(n) for n, value in otherwise.items())
        added = {name: value for name, value in selection.items() if name not in frame.columns}
        frame = frame.with_columns(**{name: pl.lit(value) for name, value in added.items()})
        frame = _with_dtypes(_with_software(frame))
        assumed = _assumptions(frame, given_kind)
        kind = timed_kind(frame.columns)
        if kind is SERVED:
            _check_parallelism(frame)
        schema, optional = kind.columns, kind.optional
        columns = {ROW, *schema, *optional}
        unread = (
            () if layout_of(file_columns) else tuple(n for n in frame.columns if n not in columns)
        )
        frame = _with_types(frame, schema, optional)
        if kind is MATMUL_TIMINGS:
            frame, unusable = _usable(frame)
            left_out = {**left_out, **unusable}
        if frame.is_empty():
            raise RooflinesError("", "has no timings", "give a table with a row for each timing")
        if kind is ATTENTION:
            frame = frame.with_columns(attention=attention_names())
        if kind is EXPERTS:
            frame = frame.with_columns(experts_fit=experts_names())
    notes = (*_notes(left_out), *([f"columns not read: {', '.join(unread)}"] if unread else []))
    notes += tuple(f"assumed: {assumption}" for assumption in assumed)
    device = device_note(Path(path), added["chip"]) if "chip" in added else None
    device_notes = () if device is None else (device,)
    timings = Timings(
        str(path), frame, notes + device_notes, left_out, unread, assumed, device_notes
    )
    for column, value in selection.items():
        with at_path("where"):
            check_choice(column, (*schema, *optional), "no column of timings")
        if column not in added:
            selected = timings.where(column, value)
            excluded = timings.frame.height - selected.frame.height
            note = f"{counted(excluded, 'timing')} with another {column} left out"
            timings = replace(selected, notes=selected.notes + ((note,) if excluded else ()))
    with at_path(file=str(path)):
        _check_values(timings.frame, schema, optional)
    return replace(timings, frame=timings.frame.select(pl.exclude(f"^{ROW}.+$")))


def _read(path: Path, kind: str) -> tuple[pl.DataFrame, dict[str, int]]:
    """Table in a file, by its kind, and counts by reason for timings left out [1]."""
    parquet = path.suffix == ".parquet"
    try:
        content = bounded_content(path)
        if parquet:
            return read_parquet(content), {}
        text = content.decode(encoding_of(content))
        if is_nccl_tests(text):
            return read_nccl_tests(text, path.name), {}
        if kind == "hipblaslt-bench":
            return read_hipblaslt(text)
        if kind in BENCHES:
            return read_bench(text, kind), {}
        if SPACED.match(text):
            content = "\n".join(",".join(line.split()) for line in text.splitlines()).encode()
        else:
            _check_separator(text)
            content = text.encode()
        frame = read_csv(content, infer_schema_length=None)
        return frame.rename(str.strip).with_columns(pl.col(pl.String).str.strip_chars()), {}
    except RooflinesError:
        raise
    except UnicodeDecodeError as error:
        problem = f"is no text in UTF-8: byte {error.start + 1} is no part of it"
        fix = "write it again, as CSV in UTF-8 or as Parquet with the suffix .parquet"
        raise RooflinesError("", problem, fix) from None
    except (PolarsError, PanicException) as error:
        kind, alternative = ("Parquet", "CSV") if parquet else ("CSV", "Parquet")
        reason = " ".join(str(error).split())
        if "more fields than" in reason:
            reason = "a row has more values than the first line has names"
        problem = f"is no {kind} file: {reason[:200]}"
        fix = f"write it again; {alternative} has the suffix .{alternative.lower()}"
        raise RooflinesError("", problem, fix) from None


def _check_aiconfigurator(columns: Collection[str]) -> None:
    """Refuse aiconfigurator's tables with kernels that timings do not cover."""
    if {"framework", "op_name", "latency"} <= {*columns} and layout_of(columns) is None:
        problem = "is a table of aiconfigurator of kernels that are not modelled"
        fix = "give its gemm_perf, nccl_perf, context_attention_perf or generation_attention_perf"
        raise RooflinesError("", problem, fix)


NAMES_OF_DTYPES = ("dtypes", "dtype")
"""Columns with the name of a dtype combination, in place of a column for each operand."""


def _with_combinations(frame: pl.DataFrame) -> pl.DataFrame:
    """Replace the names of dtype combinations by dtypes for operands, result and compute.

    Raises:
        RooflinesError: A name is no combination.
    """
    name = next((name for name in NAMES_OF_DTYPES if name in frame.columns), None)
    if name is None or {*DTYPES} & {*frame.columns} or not {*MATMUL_SIZES} <= {*frame.columns}:
        return frame
    combinations = dtype_entries().combinations
    with at_path(name):
        for typed in frame[name].cast(pl.String).unique().sort().to_list():
            check_choice(typed, combinations, "no dtype combination", "name one such as bf16")
    columns = {
        column: pl.col(name)
        .cast(pl.String)
        .replace_strict({key: entry.dtypes[part] for key, entry in combinations.items()})
        for column, part in zip(DTYPES, ("x", "w", "out", "compute"), strict=True)
    }
    return frame.with_columns(**columns).drop(name)


def _with_dtypes(frame: pl.DataFrame) -> pl.DataFrame:
    """Add dtypes for operands and result to a matmul table that has `compute` alone."""
    if (
        "compute" not in frame.columns
        or {*DTYPES[:3]} & {*frame.columns}
        or "F" not in frame.columns
    ):
        return frame
    stored = {
        stored_dtypes[-1]: stored_dtypes
        for stored_dtypes in AICONFIGURATOR_DTYPES.values()
        if stored_dtypes[0] == stored_dtypes[1]
    }
    columns = {}
    for place, name in enumerate(DTYPES[:3]):
        by_compute = {compute: dtypes[place] for compute, dtypes in stored.items()}
        columns[name] = pl.col("compute").replace(by_compute)
    return frame.with_columns(**columns)


def _assumptions(frame: pl.DataFrame, kind: FileKind | None) -> tuple[str, ...]:
    """Assumptions where a file does not say, a phrase each.

    Raises:
        RooflinesError: A benchmark does not say how many chips served, or which.
    """
    if kind is None or kind.id not in BENCHES:
        return ()
    if missing := [name for name in ("chip", "tp", "model") if name not in frame.columns]:
        words = {"chip": "chip=h100-sxm", "tp": "tp=1", "model": "model=llama-3.1-8b"}
        add = " ".join(f"--where {words[name]}" for name in missing)
        problem = f"is {kind.name}, which does not say its {', '.join(missing)}"
        raise RooflinesError("", problem, f"add them, such as {add}, to `rooflines measured join`")
    if "linear" not in frame.columns:
        return ("weights in bf16; of others add --where linear=fp8",)
    return ()


def _check_parallelism(frame: pl.DataFrame) -> None:
    """Refuse served runs with `chips` but no parallelism: without it a run is on one chip."""
    if "chips" not in frame.columns or {*PARALLEL} & {*frame.columns}:
        return
    numbers = frame["chips"].unique().sort().to_list()
    typed = f"tp={numbers[0]} (chips is {numbers[0]})" if len(numbers) == 1 else "a column tp"
    fix = f"add {typed}; for all rows alike, --where tp= of `rooflines measured join` does"
    raise RooflinesError("", f"has chips, but none of {', '.join(PARALLEL)}", fix)


def _check_separator(text: str) -> None:
    """Refuse JSON, and a table whose columns are not separated by commas."""
    if text.lstrip().startswith(("{", "[")):
        fix = "give a table, or the result of a benchmark of serving, as docs/measure.md has it"
        raise RooflinesError("", "is JSON of no kind that is known", fix)
    head = text.partition("\n")[0]
    for mark, name in SEPARATORS.items():
        if mark in head and "," not in head:
            fix = "separate them with commas, and write decimals with a point"
            raise RooflinesError("", f"has columns that are separated by {name}", fix)


def _with_software(frame: pl.DataFrame) -> pl.DataFrame:
    """Add `software` where a table lacks it: its `engine`, or the name in its sources.

    All sources have to name one.
    """
    if "engine" in frame.columns and "software" not in frame.columns:
        return frame.rename({"engine": "software"})
    has_sources = frame.schema.get("source") == pl.String and "software" not in frame.columns
    if has_sources and frame["source"].str.contains(SOURCE).fill_null(value=False).all():
        return frame.with_columns(software=pl.col("source").str.split("/").list.get(1))
    return frame


def _with_types(frame: pl.DataFrame, schema: Types, optional: Types) -> pl.DataFrame:
    """Known columns with their types; a value in another type is null."""
    missing = [name for name in schema if name not in frame.columns]
    if {*DTYPES} <= {*missing} and {*MATMUL_SIZES, "seconds"} <= {*frame.columns}:
        fix = "add --dtype bf16 to `measured calibrate`, or --where compute=bf16 to `measured join`"
        raise RooflinesError("", "is a table of matmuls that does not say their dtype", fix)
    if missing:
        raise RooflinesError(
            "",
            f"lacks the columns {', '.join(missing)}",
            f"add them, or say their one value for all rows; timings have {', '.join(schema)}",
            close=[near for name in missing for near in _close(name, frame.columns)],
        )
    types = {**{n: t for n, t in optional.items() if n in frame.columns}, **schema}
    originals = (pl.col(name).alias(f"{ROW}{name}") for name in types)
    casts = (_cast(frame, name, kind) for name, kind in types.items())
    return frame.select(ROW, *casts, *originals)


def _close(name: str, columns: Sequence[str]) -> list[str]:
    """Columns in a table that a name may mean: alike, or a usual name for the same."""
    synonyms = OTHER_NAMES.get(name, ())
    matches = (column for column in columns if column.lower().partition("_")[0] in synonyms)
    return [*close_to(name, columns), *matches]


def _cast(frame: pl.DataFrame, name: str, kind: pl.DataType) -> pl.Expr:
    """Column with its type; a fraction is no whole number, and dates and lists are neither."""
    column, dtype = pl.col(name), frame.schema[name]
    is_text = isinstance(dtype, pl.String | pl.Categorical | pl.Enum | pl.Null)
    if not (is_text or dtype.is_numeric()):
        return pl.lit(None, kind).alias(name)
    if kind.is_integer() and dtype.is_float():
        column = pl.when(column == column.floor()).then(column)
    return column.cast(kind, strict=False)


def _usable(frame: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, int]]:
    """Rows with single matmuls on one chip, and counts by reason for those left out."""
    left_out = {}
    for column, (unusable, reason) in LEFT_OUT.items():
        if column not in frame.columns:
            continue
        usable = frame.filter(~unusable.fill_null(value=False))
        if excluded := frame.height - usable.height:
            left_out[reason] = excluded
        frame = usable
    return frame, left_out


def _notes(left_out: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(
        f"{counted(count, 'row')} of the file left out: they {reason}"
        for reason, count in left_out.items()
    )


def _check_values(frame: pl.DataFrame, schema: Types, optional: Types) -> None:
    """Refuse values that are missing or have another type, and numbers that are too small.

    Values in `schema` are above zero; values in `optional` may be missing or zero.
    """
    with Mistakes() as mistakes:
        for column in (*schema, *(name for name in optional if name in frame.columns)):
            values, original = frame[column], frame[f"{ROW}{column}"]
            is_valid = _present(values)
            if column not in schema:
                is_missing = original.is_nan() if original.dtype.is_float() else original.is_null()
                is_valid = _present(values, zero=True) | is_missing.fill_null(value=True)
            invalid = frame.filter(~is_valid)
            with mistakes.at(column):
                if not invalid.is_empty():
                    lower_limit = "above zero" if column in schema else "of at least zero"
                    expected = f"a number {lower_limit}" if values.dtype.is_numeric() else "text"
                    row, value = invalid.select(ROW, original.name).row(0)
                    if values.dtype.is_integer():
                        upper_limit = f" and at most {MAX_SIZE:,}" if _is_large(value) else ""
                        expected = f"a whole number {lower_limit}{upper_limit}"
                    problem = (
                        f"has {counted(invalid.height, 'value')} that should be {expected}, the "
                        f"first in row {row}: {quote(value)}"
                    )
                    raise RooflinesError("", problem, "correct the rows, or take them out")
                if column == "collective":
                    for name in values.unique().sort():
                        check_choice(name, RING_PASSES, "no collective")


def _is_large(value: object) -> bool:
    """True if a number, or its digits, is above `MAX_SIZE`; digits may be thousands."""
    if isinstance(value, str):
        return value.isdecimal() and len(value) > len(str(MAX_SIZE))
    return isinstance(value, int | float) and value > MAX_SIZE


def _present(values: pl.Series, *, zero: bool = False) -> pl.Series:
    """Mask: text, a number above zero, or else zero; sizes are exact in Float64."""
    is_valid = values.is_not_null()
    if values.dtype.is_numeric():
        is_valid &= values.is_finite() & ((values >= 0) if zero else (values > 0))
    if values.dtype.is_integer():
        is_valid &= values <= MAX_SIZE
    return is_valid.fill_null(value=False)
