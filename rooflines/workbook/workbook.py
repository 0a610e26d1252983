"""rooflines.xlsx: the results from a run as a workbook with bounded size.

Text is written as text, also where it begins like a formula; only the sheet What-if has formulas.
"""

from __future__ import annotations

import datetime as dt
import json
from bisect import bisect_right
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import xlsxwriter
from polars import selectors as cs

from rooflines.basics.files import scan_parquet
from rooflines.basics.version import __version__
from rooflines.dictionary.columns import column_records
from rooflines.results.atomic import atomic_file
from rooflines.results.records import recorded
from rooflines.results.tables import metadata_of, scan_sweeps
from rooflines.workbook.steps_sheet import step_rows
from rooflines.workbook.summary_sheet import summary_sheet
from rooflines.workbook.what_if_sheet import what_if_sheet

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xlsxwriter import Workbook
    from xlsxwriter.worksheet import Worksheet

CREATED = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
"""The creation date of every workbook: equal results are equal files."""

OPTIONS = {
    "in_memory": True,  # nothing is written outside the folder of results
    "strings_to_formulas": False,
    "strings_to_urls": False,
}
"""Of XlsxWriter."""

MAX_THRESHOLDS = 2_000
"""Rows of the sheet Thresholds [1]."""

NUMBER_FORMATS: Any = {
    pl.Float64: "[<0.01]0.000E+00;[<1000000]#,##0.00;0.000E+00",
    pl.Int64: "#,##0",
}

WIDE, NUMBERS = 420, 120
"""Width of a column of sentences, and of one of real numbers [pixel]."""


@recorded
def write_workbook(spec: str, path: str | Path) -> None:
    """Write the workbook. Equal results are equal files.

    Args:
        spec: What it depends on, from `Plan.spec`: the threshold files beside it, whose
            metadata have the sweeps, and the parts of the model tables.
        path: The file to write.
    """
    content, results = json.loads(spec), Path(path).parent
    thresholds = [results / name for name in content["thresholds"]]
    about = [metadata_of(file) for file in thresholds]
    files = {file.name: scan_sweeps(file) for file in thresholds}
    solved = [
        (recipe, frames[recipe["sweep"]])
        for provenance, frames in zip(about, files.values(), strict=True)
        for recipe in provenance["made_from"]
    ]
    with atomic_file(path) as temporary, xlsxwriter.Workbook(str(temporary), OPTIONS) as book:
        book.set_properties({"created": CREATED, "comments": f"rooflines {__version__}"})
        what_if_sheet(book, book.add_worksheet("What-if"), about[0]["made_from"])
        summary_sheet(book, book.add_worksheet("Summary"), solved)
        _steps(
            book,
            {
                sweep: scan_parquet([results / part for part in parts])
                for sweep, parts in content["steps"].items()
            },
        )
        _thresholds(book, files)
        _models(book, [recipe for provenance in about for recipe in provenance["made_from"]])
        _columns(book)
        for sheet in book.worksheets():
            sheet.set_landscape()


def _steps(book: Workbook, sweeps: Mapping[str, pl.LazyFrame]) -> None:
    """Write rows of whole models, if any, and what is chosen or left out."""
    rows, notes = step_rows(sweeps)
    if rows is None and not notes:
        return
    sheet = book.add_worksheet("Steps")
    if rows is not None:
        _table(book, sheet, rows, row=2)
    if notes:  # after the table, whose columns are as wide as what is written so far
        sheet.write_string(0, 0, "; ".join(notes))


def _thresholds(book: Workbook, files: Mapping[str, Mapping[str, pl.LazyFrame]]) -> None:
    """Write all thresholds, for operations and whole models, as one table.

    Whole sweeps are shown, the smallest first, up to `MAX_THRESHOLDS` rows.

    Args:
        book: The workbook.
        files: Thresholds by file name, and by sweep.
    """
    sheet = book.add_worksheet("Thresholds")
    heights = sorted(
        (frame.select(pl.len()).collect().item(), name, file)
        for file, frames in files.items()
        for name, frame in frames.items()
    )
    room = bisect_right(list(accumulate(height for height, _, _ in heights)), MAX_THRESHOLDS)
    left_out = [f"{name} ({height:,} rows of {file})" for height, name, file in heights[room:]]
    names = {(name, file) for _, name, file in heights[:room]}
    shown = [
        frame.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String)).collect()
        for file, frames in files.items()
        for name, frame in frames.items()
        if (name, file) in names
    ]
    if shown:
        table = pl.concat(shown, how="diagonal")
        filled = [column.name for column in table if column.null_count() < table.height]
        _table(book, sheet, table.select(filled), row=2)
    if left_out:  # after the table, whose columns are as wide as what is written so far
        sheet.write_string(0, 0, f"Left out: {', '.join(left_out)}")


def _models(book: Workbook, recipes: Sequence[Mapping[str, Any]]) -> None:
    """Write the models, the documents of their shapes, and what is left out or assumed, if any."""
    models = {name: entry for recipe in recipes for name, entry in recipe.get("models", {}).items()}
    if models:
        rows = [(name, entry["source"], entry.get("note")) for name, entry in models.items()]
        schema = dict.fromkeys(("model", "source", "note"), pl.String)
        frame = pl.DataFrame(rows, schema=schema, orient="row")
        _table(book, book.add_worksheet("Models"), frame, row=0, sentences=("note",))


def _columns(book: Workbook) -> None:
    """Write the column dictionary."""
    sentences = ("meaning", "null")
    frame = pl.DataFrame(column_records(), infer_schema_length=None)
    _table(book, book.add_worksheet("Columns"), frame, row=0, sentences=sentences)


def _table(
    book: Workbook, sheet: Worksheet, frame: pl.DataFrame, row: int, sentences: Sequence[str] = ()
) -> None:
    """Write a frame as a table that can be filtered, whose names stay in view.

    Args:
        book: The workbook.
        sheet: The sheet.
        frame: The table.
        row: The row with names, from 0.
        sentences: Columns whose text is wrapped.
    """
    frame.write_excel(
        book,
        sheet,
        position=(row, 0),
        table_style="Table Style Light 1",
        dtype_formats=NUMBER_FORMATS,
        column_formats={name: {"text_wrap": True, "valign": "top"} for name in sentences},
        column_widths={cs.float(): NUMBERS, **dict.fromkeys(sentences, WIDE)},
        autofit=True,
        freeze_panes=(row + 1, 1),
    )
    sheet.repeat_rows(row)
