"""Sheet Summary: critical sizes for a few shapes and models, a row a chip."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from rooflines.dictionary.columns import AXES, NEVER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from xlsxwriter import Workbook
    from xlsxwriter.worksheet import Worksheet

    from rooflines.basics.yaml_file import JSON

MAX_CASES = 29
"""Columns of the sheet besides the chip [1]."""

NO_SIZE = ("share", "target_s")
"""The first column after the sizes of a threshold, of operations and of whole models."""

HEAD_ROW = 1
"""The row above the chips, below a note."""

WIDTH, LINES = 22, 7
"""Characters across a column, and lines of its head [1]."""


def never_rule(book: Workbook) -> dict[str, object]:
    """Conditional format for cells without a size."""
    style = book.add_format({"bg_color": "#FEE2E2", "font_color": "#991B1B"})
    return {"type": "cell", "criteria": "==", "value": f'"{NEVER}"', "format": style}


def summary_sheet(
    book: Workbook, sheet: Worksheet, solved: Sequence[tuple[JSON, pl.LazyFrame]]
) -> None:
    """Write a few critical sizes from every sweep, for operations and whole models.

    Sweeps with most chips come first, each with the cases that have a size on most of them. A cell
    has the critical size, or the reason why there is none; the head of its column says what it is
    about, and a note what is left out.

    Args:
        book: The workbook.
        sheet: The sheet.
        solved: Every sweep's recipe, with its thresholds.
    """
    heads, notes = list[str](), list[str]()
    rows: dict[str, dict[str, int | str]] = {}
    ordered = sorted(solved, key=lambda recipe_rows: -len(recipe_rows[0]["config"]["chips"]))
    for index, (recipe, frame) in enumerate(ordered):
        room = -((len(heads) - MAX_CASES) // (len(solved) - index))
        sheet_cases = _cases(recipe, frame)
        if isinstance(sheet_cases, str):
            notes.append(sheet_cases)
            continue
        cases = sheet_cases["case"].unique(maintain_order=True).to_list()
        if len(cases) > room:
            notes.append(f"{recipe['sweep']}: {room} of {len(cases):,} cases")
            sizes = sheet_cases.group_by("case").agg(pl.col("critical").count())
            most = dict(sizes.iter_rows())
            shown_cases = sorted(cases, key=most.__getitem__, reverse=True)[:room]
            cases = [case for case in cases if case in shown_cases]
        heads += cases
        shown = sheet_cases.filter(pl.col("case").is_in(cases))
        for case, chip, outcome, critical in shown.iter_rows():
            rows.setdefault(chip, {})[case] = outcome if critical is None else critical
    sheet.write_string(0, 0, "; ".join(notes))
    lines = {"bold": True, "bottom": 1, "text_wrap": True, "valign": "bottom"}
    sheet.set_row_pixels(HEAD_ROW, 20 * LINES)
    sheet.write_row(HEAD_ROW, 0, ["chip", *heads], book.add_format(lines))
    integers = book.add_format({"num_format": "#,##0", "align": "right"})
    for row, (chip, cells) in enumerate(rows.items(), HEAD_ROW + 1):
        sheet.write_string(row, 0, chip)
        sheet.write_row(row, 1, map(cells.get, heads), integers)
    last = HEAD_ROW + len(rows)
    sheet.conditional_format(HEAD_ROW + 1, 1, last + 1, MAX_CASES, never_rule(book))
    sheet.set_column(0, len(heads), WIDTH)
    sheet.freeze_panes(HEAD_ROW + 1, 1)
    sheet.repeat_rows(HEAD_ROW)
    sheet.autofilter(HEAD_ROW, 0, last, len(heads))


def _cases(recipe: JSON, frame: pl.LazyFrame) -> pl.DataFrame | str:
    """A sweep's thresholds along its first size: case, chip, outcome and critical.

    Returns:
        What a case is about is in lines of text; or a sentence: the sweep is solved for no size.
    """
    columns = frame.collect_schema().names()
    solved = frame.select(pl.col("axis").cast(pl.String).unique()).collect()["axis"].to_list()
    after = columns[columns.index("axis") + 1 :]
    sizes = after[: next(index for index, column in enumerate(after) if column in NO_SIZE)]
    axis = next((size for size in sizes if size in solved), None)
    if axis is None:
        return f"{recipe['sweep']} is solved for no size"
    nominal = pl.col("target_s").is_null() if "target_s" in columns else pl.lit(value=True)
    share = pl.col("share") == pl.col("share").max() if "share" in columns else pl.lit(value=True)
    rows = frame.filter(pl.col("axis").cast(pl.String) == axis, nominal, share)
    other_sizes = [size for size in sizes if size != axis]
    lines = [
        pl.lit(recipe["sweep"]),
        *_lines(recipe, columns, other_sizes),
        pl.lit(f"critical {axis}"),
    ]
    case = pl.concat_str(lines, separator="\n", ignore_nulls=True).alias("case")
    texts = pl.col("chip", "outcome").cast(pl.String)
    return rows.select(case, texts, "critical").collect()


def _lines(recipe: JSON, columns: Sequence[str], sizes: Sequence[str]) -> Iterator[pl.Expr]:
    """Threshold's column header, line by line, without sweep, chip and axis."""
    split = pl.lit("one chip")
    if "phase" in columns:
        yield from (pl.col(name).cast(pl.String) for name in ("model", "phase"))
        split = pl.col("split").cast(pl.String)
    else:
        yield pl.col("shape").cast(pl.String)
        if "options" in columns:
            yield pl.concat_str("operation", "options", separator=" ")
        counts = [AXES, "shards"] if AXES in columns else ["shards"]
        chips = pl.coalesce(pl.col(count).cast(pl.String) for count in counts)
        several = pl.format("{} over {}", "sharding", chips)
        split = pl.when(pl.col("shards") > 1).then(several).otherwise(split)
    if sizes:
        texts = [pl.format(f"{size}={{}}", size) for size in sizes]
        yield pl.concat_str(texts, separator=" ", ignore_nulls=True)
    yield pl.col("dtypes").cast(pl.String)
    yield split
    if len(recipe["config"]["network"] or []) > 1:  # rows of one chip differ in their network
        yield pl.col("network").cast(pl.String)
    yield pl.col("memory").cast(pl.String)
