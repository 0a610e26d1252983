"""The sheets of the workbook that hold tables: what each shows, and what it leaves out."""

from __future__ import annotations

import json
from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.version import __version__
from rooflines.catalogue.chips import chip_sources
from rooflines.model.columns import FOUND, MODEL_SHAPES, NEVER
from rooflines.model.dictionary import column_records
from rooflines.site.chip_page import chip_views, document_views, used_sources
from rooflines.workbook.cells import TABLE_ROW
from rooflines.workbook.summary import BATCHES, Line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.basics.yaml_file import JSON
    from rooflines.catalogue.entries import Chip
    from rooflines.workbook.cells import Sheet, Value
    from rooflines.workbook.summary import Summary

MOST_THRESHOLDS = 12_000
"""Rows of the sheet Thresholds [1]."""

LINE_HEADINGS = ("sweep", "shape or model", "sizes", "dtypes", "split", "memory", "axis")
"""The fields of `Line` in the sheet."""

SHEETS = {
    "Summary": "critical sizes of the axis by shape or model, chips across; shares of peak",
    "Thresholds": "thresholds.parquet and model-thresholds.parquet",
    "What-if": "the times of an operation as formulas",
    "Models": "the models of the catalogue, as in model-shapes.csv",
    "Chips": "the numbers of the chips, each with its source",
    "Columns": "the meaning of every column of every file",
}
"""What the other sheets show, by name."""


def summary_sheet(sheet: Sheet, summary: Summary) -> None:
    """Write critical sizes by chip, then shares of the peak by chip for each of `BATCHES`."""
    chips, keys = list(summary.chips), len(Line._fields)
    sheet.note(0, "; ".join(summary.notes))
    for column, name in enumerate(LINE_HEADINGS):
        sheet.put(TABLE_ROW - 1, column, name, "heading")
    titles = ["critical size", *(f"share of peak at {size}" for size in BATCHES)]
    starts = [keys + block * len(chips) for block in range(len(titles))]
    for start, title in zip(starts, titles, strict=True):
        sheet.note(TABLE_ROW - 2, title, "block", start)
        sheet.turned(TABLE_ROW - 1, start, chips)
    last = TABLE_ROW
    for row, (line, critical) in enumerate(summary.critical.items(), TABLE_ROW):
        for column, text in enumerate(line):
            sheet.put(row, column, text)
        for column, chip in enumerate(chips, starts[0]):
            sheet.put(row, column, critical.get(chip), "integer")
        for start, size in zip(starts[1:], BATCHES, strict=True):
            shares = summary.shares.get((line, size), {})
            for column, chip in enumerate(chips, start):
                sheet.put(row, column, shares.get(chip), "percent")
        last = row
    if chips:
        sheet.colour_never((TABLE_ROW, starts[0]), (last, starts[1] - 1), NEVER)
        sheet.colour_shares((TABLE_ROW, starts[1]), (last, starts[-1] + len(chips) - 1))
    sheet.freeze(TABLE_ROW, 2)
    sheet.filter(TABLE_ROW - 1, last, keys)
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


def models_sheet(sheet: Sheet, shapes: pl.DataFrame) -> None:
    """Write the models of the catalogue."""
    units = {column.name: column.unit for column in MODEL_SHAPES}
    sheet.table({name: shapes[name].to_list() for name in shapes.columns}, units)


def chips_sheet(sheet: Sheet, chips: Mapping[str, Chip]) -> None:
    """Write every number of every chip, with a link to the first document that it comes from."""
    documents = document_views(used_sources(chips, chip_sources()))
    numbers = [(view, number) for view in chip_views(chips).values() for number in view.numbers]
    columns: dict[str, list[Value]] = {
        "chip": [view.id for view, _ in numbers],
        "name": [view.name for view, _ in numbers],
        "part": [number.part for _, number in numbers],
        "meaning": [number.meaning for _, number in numbers],
        "value": [number.value for _, number in numbers],
        "unit": [number.unit for _, number in numbers],
        "confidence": [number.confidence for _, number in numbers],
        "estimate": [number.estimate for _, number in numbers],
        "note": [number.note for _, number in numbers],
        "source": [", ".join(number.sources) for _, number in numbers],
    }
    note = "A source links to the first document that it names"
    sheet.table(columns, {}, note, styles={"value": "quantity"})
    for row, (_, number) in enumerate(numbers, TABLE_ROW):
        found = (documents[name].url for name in number.sources if name in documents)
        if url := next((url for url in found if url), None):
            sheet.link(row, len(columns) - 1, url, ", ".join(number.sources))


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
