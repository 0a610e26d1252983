"""The sheets of the workbook that hold tables: what each shows, and what it leaves out."""

from __future__ import annotations

import json
from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.version import __version__
from rooflines.model.columns import FOUND, NEVER
from rooflines.model.dictionary import column_records
from rooflines.workbook.cells import TABLE_ROW

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.basics.yaml_file import JSON
    from rooflines.workbook.cells import Sheet, Value
    from rooflines.workbook.summary import Summary

MOST_THRESHOLDS = 5_000
"""Rows of the sheet Thresholds [1]."""

LINE_HEADINGS = ("sweep", "shape or model", "sizes", "dtypes", "split", "memory", "chip; axis")
"""The fields of `Line`, a row each above the chips."""

SHEETS = {
    "What-if": "times, bottleneck and critical size of an operation as formulas, and a chart",
    "Summary": "critical sizes of a few shapes and models, a row a chip",
    "Thresholds": "thresholds.parquet and model-thresholds.parquet",
    "Columns": "the meaning of every column of every file",
}
"""What the other sheets show, by name."""


def summary_sheet(sheet: Sheet, summary: Summary) -> None:
    """Write critical sizes, a row a chip; what a column is about stands above it."""
    sheet.note(0, "; ".join(summary.notes))
    last_key = len(LINE_HEADINGS)
    for row, name in enumerate(LINE_HEADINGS, 1):
        sheet.put(row, 0, name, "heading" if row == last_key else "block")
    for column, line in enumerate(summary.critical, 1):
        for row, text in enumerate(line, 1):
            sheet.put(row, column, text, "number heading" if row == last_key else "over numbers")
    first = last_key + 1
    for row, chip in enumerate(summary.chips, first):
        sheet.put(row, 0, chip)
        for column, critical in enumerate(summary.critical.values(), 1):
            sheet.put(row, column, critical.get(chip), "integer")
    last = first + max(len(summary.chips) - 1, 0)
    if summary.critical:
        sheet.colour_never((first, 1), (last, len(summary.critical)), NEVER)
    sheet.freeze(first, 1)
    sheet.filter(first - 1, last, 1 + len(summary.critical))
    sheet.fit()


def thresholds_sheet(
    sheet: Sheet, files: Mapping[str, pl.LazyFrame], units: Mapping[str, str]
) -> None:
    """Write the thresholds of operations and of whole models, as one table.

    Whole sweeps are shown, the smallest first, up to `MOST_THRESHOLDS` rows.

    Args:
        sheet: The sheet.
        files: Thresholds by the name of their file.
        units: The unit of each column.
    """
    sweep = pl.col("sweep").cast(pl.String)
    heights = sorted(
        (height, name, file)
        for file, frame in files.items()
        for name, height in frame.group_by(sweep).len().collect().iter_rows()
    )
    room = bisect_right(list(accumulate(height for height, _, _ in heights)), MOST_THRESHOLDS)
    left_out = [f"{name} ({height:,} rows of {file})" for height, name, file in heights[room:]]
    shown = [
        frame.filter(sweep.is_in([name for _, name, of in heights[:room] if of == file]))
        for file, frame in files.items()
    ]
    texts = pl.col(pl.Categorical, pl.Enum).cast(pl.String)
    frames = [frame for lazy in shown if (frame := lazy.with_columns(texts).collect()).height]
    table = pl.concat(frames, how="diagonal") if frames else pl.DataFrame()
    columns: dict[str, list[Value]] = {
        name: table[name].to_list()
        for name in table.columns
        if name == "critical" or table[name].null_count() < table.height
    }
    if "critical" in columns:
        columns["critical"] = [
            outcome if value is None and outcome != FOUND else value
            for value, outcome in zip(columns["critical"], table["outcome"], strict=True)
        ]
        column, last = list(columns).index("critical"), TABLE_ROW + max(table.height - 1, 0)
        sheet.colour_never((TABLE_ROW, column), (last, column), NEVER)
    note = f"Left out: {', '.join(left_out)}" if left_out else ""
    sheet.table(columns, units, note, styles={"critical": "integer"})


def columns_sheet(sheet: Sheet) -> None:
    """Write the column dictionary."""
    records = column_records()
    columns = {name: [record[name] for record in records] for name in records[0]}
    sheet.table(columns, {}, styles={"meaning": "wrapped", "null": "wrapped"})


def about_sheet(sheet: Sheet, recipes: Sequence[JSON]) -> None:
    """Write the version, what the sheets are, and the configs of all sweeps.

    Args:
        sheet: The sheet.
        recipes: The recipes of all sweeps.
    """
    sheet.note(0, f"rooflines {__version__}", "title")
    for row, (name, meaning) in enumerate(SHEETS.items(), start=2):
        sheet.sheet_link(row, 0, name)
        sheet.note(row, meaning, column=1)
    start = 3 + len(SHEETS)
    for column, name in enumerate(("sweep", "key", "value, defaults filled in")):
        sheet.put(start, column, name, "heading")
    keys = [(recipe["sweep"], *item) for recipe in recipes for item in recipe["config"].items()]
    for row, (sweep, key, value) in enumerate(keys, start=start + 1):
        sheet.put(row, 0, sweep)
        sheet.put(row, 1, key)
        sheet.put(row, 2, value if isinstance(value, str) else json.dumps(value), "wrapped")
    sheet.filter(start, start + len(keys), 3)
    sheet.fit()
