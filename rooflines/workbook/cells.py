"""Sheets of the workbook: values with their formats, tables with headers that stay in view.

Text is written as text, also where it begins like a formula; only `Sheet.formula` writes a formula.
"""

from __future__ import annotations

import datetime as dt
import math
from typing import TYPE_CHECKING, NamedTuple, Self

import xlsxwriter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

Value = str | int | float | bool | None

CREATED = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
"""The creation date of every workbook: equal results are equal files."""

LARGEST_EXACT = 10**15
"""Larger integers are written as text: a spreadsheet keeps fifteen digits [1]."""

LONGEST_TEXT = 32_767
"""Characters that a cell can hold [1]."""

NARROWEST, WIDEST = 9, 60
"""Characters of the narrowest and of the widest column [1]."""

PAGE = 220
"""Characters across a printed page, at most; a wider sheet takes several pages [1]."""

A4 = 9
"""The number of this paper in the file format."""

LINE, MOST_LINES = 15, 27
"""Height of a line of text [pt], and lines of the highest row [1]."""

WRAPPED = 0.9
"""Width of a character of a text over that of a digit, in which columns are measured [1]."""

TABLE_ROW = 3
"""The first row of a table: below a note, units and names."""

INPUT = {"bg_color": "#FEF9C3", "border": 1}
"""The look of a cell that the reader may change."""

STYLES: Mapping[str, Mapping[str, object]] = {
    "text": {},
    "title": {"bold": True, "font_size": 14},
    "heading": {"bold": True, "bottom": 1, "valign": "bottom"},
    "number heading": {"bold": True, "bottom": 1, "valign": "bottom", "align": "right"},
    "over numbers": {"align": "right"},
    "wrapped": {"text_wrap": True},
    "block": {"bold": True},
    "unit": {"italic": True, "font_color": "#6B7280"},
    "number unit": {"italic": True, "font_color": "#6B7280", "align": "right"},
    "link": {"font_color": "#1D4ED8", "underline": 1},
    "integer": {"num_format": "#,##0", "align": "right"},
    "number": {"num_format": "[=0]0;[<0.01]0.000E+00;#,##0.00", "align": "right"},
    "scientific": {"num_format": "0.000E+00"},
    "percent": {"num_format": "0.0%"},
    "rate": {"num_format": "0.000E+00", **INPUT},
    "share": {"num_format": "0.0%", **INPUT},
    "bits": {"num_format": "0.###", **INPUT},
    "size": {"num_format": "#,##0", **INPUT},
    "never": {"bg_color": "#FEE2E2", "font_color": "#991B1B"},
}
"""The formats of cells by name."""

DIGITS = {"scientific": 9, "rate": 9, "percent": 6, "share": 6, "bits": 6}
"""Characters of a number in these formats [1]."""

BY_UNIT = {"s": "scientific", "FLOP/s": "scientific", "byte/s": "scientific"}
"""Formats of real numbers by their unit."""

UNSHOWN = ("", "1")
"""Units of text and of plain numbers, which have none above them."""


class Heading(NamedTuple):
    """The header of a column: its name and its unit, above text or above numbers."""

    name: str
    unit: str = ""
    above_numbers: bool = False


class Book:
    """A workbook that is being written; a context manager.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        # Files in memory: nothing is written outside the folder of results.
        self.file = xlsxwriter.Workbook(str(path), {"in_memory": True})
        self.file.set_properties({"created": CREATED})
        self.styles = {
            name: self.file.add_format({"valign": "top", **form}) for name, form in STYLES.items()
        }

    def __enter__(self) -> Self:
        """The book itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Write the file, unless an error ends the context."""
        if error is None:
            self.file.close()

    def sheet(self, name: str) -> Sheet:
        """Add a sheet."""
        return Sheet(self, self.file.add_worksheet(name))


class Sheet:
    """A sheet of a workbook; rows and columns are counted from 0."""

    def __init__(self, book: Book, sheet: xlsxwriter.worksheet.Worksheet) -> None:
        self._styles, self._sheet, self._book = book.styles, sheet, book.file
        self._widths: dict[int, int] = {}
        self._lines: dict[int, int] = {}
        self._frozen = 0
        sheet.set_landscape()
        sheet.set_paper(A4)
        sheet.set_footer("&L&A&R&P of &N")

    def put(self, row: int, column: int, value: Value, style: str = "") -> None:
        """Write a value; nothing for None. Without a style, a number has that of its type."""
        if value is None:
            return
        if isinstance(value, bool):
            value = "yes" if value else "no"
        if isinstance(value, int) and abs(value) > LARGEST_EXACT:
            value = str(value)
        if isinstance(value, str):
            style = style or "text"
            self._widen(column, len(value))
            if style == "wrapped":
                lines = math.ceil(WRAPPED * len(value) / WIDEST)
                self._lines[row] = min(max(self._lines.get(row, 1), lines), MOST_LINES)
            self._sheet.write_string(row, column, value[:LONGEST_TEXT], self._styles[style])
        else:
            style = style or ("integer" if isinstance(value, int) else "number")
            self._widen(column, DIGITS[style] if style in DIGITS else len(f"{value:,.0f}"))
            self._sheet.write_number(row, column, value, self._styles[style])

    def note(self, row: int, text: str, style: str = "text", column: int = 0) -> None:
        """Write text that may be wider than its column, if there is any."""
        if text:
            self._sheet.write_string(row, column, text[:LONGEST_TEXT], self._styles[style])

    def formula(self, row: int, column: int, formula: str, value: Value, style: str) -> None:
        """Write a formula with its value, for programs that do not compute it."""
        if isinstance(value, int | float):
            self._widen(column, DIGITS.get(style, len(f"{value:,.0f}")))
        self._sheet.write_formula(row, column, formula, self._styles[style], value)

    def header(self, row: int, headings: Sequence[Heading]) -> None:
        """Write the units in a row and the names in the next one, which stay in view."""
        for column, heading in enumerate(headings):
            kind = "number " if heading.above_numbers else ""
            if heading.unit not in UNSHOWN:
                self.put(row, column, f"[{heading.unit}]", f"{kind}unit")
            self.put(row + 1, column, heading.name, f"{kind}heading")

    def freeze(self, rows: int, columns: int = 0) -> None:
        """Keep the first rows and columns in view, and on every printed page."""
        self._sheet.freeze_panes(rows, columns)
        self._sheet.repeat_rows(max(rows - 2, 0), rows - 1)
        self._frozen = columns

    def filter(self, row: int, last_row: int, columns: int) -> None:
        """Offer filters in a row of names, for the rows down to the last one."""
        self._sheet.autofilter(row, 0, last_row, columns - 1)

    def colour_never(self, first: tuple[int, int], last: tuple[int, int], text: str) -> None:
        """Colour the cells of a range that are this text."""
        rule = {"type": "cell", "criteria": "==", "value": f'"{text}"'}
        self._sheet.conditional_format(*first, *last, {**rule, "format": self._styles["never"]})

    def colour_shares(self, first: tuple[int, int], last: tuple[int, int]) -> None:
        """Colour the cells of a range by their share, from 0 to 1."""
        scale = {"type": "2_color_scale", "min_type": "num", "max_type": "num"}
        ends = {"min_value": 0, "max_value": 1, "min_color": "#FFFFFF", "max_color": "#93C5FD"}
        self._sheet.conditional_format(*first, *last, {**scale, **ends})

    def bars(self, title: str, at: tuple[int, int], rows: tuple[int, int], column: int) -> None:
        """Draw a column of shares as bars, whose names are in the first two columns.

        Args:
            title: What the bars are.
            at: The cell of the chart's upper left corner.
            rows: The first and the last row.
            column: The column of shares.
        """
        chart = self._book.add_chart({"type": "bar"})
        name = self._sheet.get_name()
        chart.add_series(
            {
                "name": title,
                "categories": [name, rows[0], 0, rows[1], 1],
                "values": [name, rows[0], column, rows[1], column],
                "gap": 40,
            }
        )
        chart.set_title({"name": title})
        chart.set_legend({"none": True})
        chart.set_y_axis({"reverse": True})
        chart.set_x_axis({"min": 0, "max": 1, "num_format": "0%"})
        chart.set_size({"width": 640, "height": 100 + 22 * (rows[1] - rows[0] + 1)})
        self._sheet.insert_chart(*at, chart)

    def fit(self) -> None:
        """Make columns as wide as their text; a sheet that is not too wide fits a printed page."""
        widths = {
            column: min(max(width + 2, NARROWEST), WIDEST) for column, width in self._widths.items()
        }
        for column, width in widths.items():
            self._sheet.set_column(column, column, width)
        for row, lines in self._lines.items():
            self._sheet.set_row(row, LINE * lines)
        if sum(widths.values()) <= PAGE:
            self._sheet.fit_to_pages(1, 0)
        elif self._frozen:
            self._sheet.repeat_columns(0, self._frozen - 1)

    def sheet_link(self, row: int, column: int, name: str) -> None:
        """Write the name of another sheet, which opens it."""
        self._widen(column, len(name))
        self._sheet.write_url(row, column, f"internal:'{name}'!A1", self._styles["link"], name)

    def table(
        self,
        columns: Mapping[str, Sequence[Value]],
        units: Mapping[str, str],
        note: str = "",
        styles: Mapping[str, str] | None = None,
    ) -> None:
        """Fill the sheet with a table that can be filtered.

        Args:
            columns: The values of each column, by its name.
            units: The unit of each column, by its name.
            note: What the reader must know, above the table.
            styles: The format of a column, by its name; that of its unit or type by default.
        """
        self.note(0, note)
        headings = [
            Heading(
                name, units.get(name, ""), any(isinstance(value, int | float) for value in values)
            )
            for name, values in columns.items()
        ]
        self.header(1, headings)
        rows = 0
        for column, (name, values) in enumerate(columns.items()):
            real = BY_UNIT.get(units.get(name, ""), "")
            own = (styles or {}).get(name, "")
            for row, value in enumerate(values, start=TABLE_ROW):
                if value is not None:
                    self.put(row, column, value, own or (real if isinstance(value, float) else ""))
            rows = len(values)
        if columns:
            self.freeze(TABLE_ROW, 1)
            self.filter(TABLE_ROW - 1, TABLE_ROW - 1 + rows, len(columns))
            self.fit()

    def _widen(self, column: int, width: int) -> None:
        self._widths[column] = max(self._widths.get(column, 0), width)
