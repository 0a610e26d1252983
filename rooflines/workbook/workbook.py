"""rooflines.xlsx: the results of a run as a workbook, of bounded size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from rooflines.basics.files import scan_parquet
from rooflines.results.atomic import atomic_file
from rooflines.results.records import recording
from rooflines.results.tables import metadata_of
from rooflines.workbook.cells import Book
from rooflines.workbook.sheets import (
    about_sheet,
    columns_sheet,
    summary_sheet,
    thresholds_sheet,
)
from rooflines.workbook.summary import summarize
from rooflines.workbook.what_if import what_if_sheet

if TYPE_CHECKING:
    from collections.abc import Sequence


def write_workbook(
    spec: str,
    thresholds: Sequence[str | Path],
    path: str | Path,
) -> None:
    """Write the workbook. Equal results are equal files.

    Args:
        spec: What it depends on besides its inputs, as JSON, from `Plan.spec`.
        thresholds: Thresholds of operations and, if there are any, of whole models, as Parquet;
            their metadata have the sweeps.
        path: The file to write.
    """
    about = [metadata_of(file) for file in thresholds]
    units = {column["name"]: column["unit"] for each in about for column in each["columns"]}
    files = {Path(file).name: scan_parquet(file) for file in thresholds}
    solved = [
        (recipe, frame)
        for each, frame in zip(about, files.values(), strict=True)
        for recipe in each["made_from"]
    ]
    every = [recipe for recipe, _ in solved]
    made_by = recording(spec=json.loads(spec), recipes=every, inputs=thresholds)
    with made_by, atomic_file(path) as temporary, Book(temporary) as book:
        what_if_sheet(book.sheet("What-if"), about[0]["made_from"])
        summary_sheet(book.sheet("Summary"), summarize(solved))
        thresholds_sheet(book.sheet("Thresholds"), files, units)
        columns_sheet(book.sheet("Columns"))
        about_sheet(book.sheet("About"), every)
