"""Sheets of the workbook: values with their formats, tables with headers that stay in view.

Text is written as text, whatever it begins with; only `Sheet.formula` writes a formula.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, NamedTuple, Self

import xlsxwriter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

__all__ = ["TABLE_ROW", "Book", "Heading", "Sheet", "Value"]

Value = str | int | float | bool | None

CREATED = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
"""The creation date of every workbook: equal results are equal files."""

LARGEST_EXACT = 10**15
"""Larger integers are written as text: a spreadsheet keeps fifteen digits [1]."""

LONGEST_TEXT = 32_767
"""Characters that a cell can hold [1]."""

WIDEST = 48
"""Characters of the widest column [1]."""

TABLE_ROW = 3
"""The first row of a table: below a note, units and names."""

INPUT = {"bg_color": "#FEF9C3", "border": 1}
"""The look of a cell that the reader may change."""

STYLES: Mapping[str, Mapping[str, object]] = {
    "text": {},
    "title": {"bold": True, "font_size": 14},
    "heading": {"bold": True, "bottom": 1},
    "chip": {"bold": True, "bottom": 1, "align": "right"},
    "unit": {"italic": True, "font_color": "#6B7280"},
    "link": {"font_color": "#1D4ED8", "underline": 1},
    "integer": {"num_format": "#,##0"},
    "number": {"num_format": "#,##0.####"},
    "scientific": {"num_format": "0.000E+00"},
    "percent": {"num_format": "0.0%"},
    "rate": {"num_format": "0.000E+00", **INPUT},
    "share": {"num_format": "0.0%", **INPUT},
    "bits": {"num_format": "0.###", **INPUT},
    "size": {"num_format": "#,##0", **INPUT},
    "never": {"bg_color": "#FEE2E2", "font_color": "#991B1B"},
}
"""The formats of cells by name."""

BY_UNIT = {"s": "scientific", "FLOP/s": "scientific", "byte/s": "scientific"}
"""Formats of real numbers by their unit."""

UNSHOWN = ("", "1")
"""Units of text and of plain numbers, which have none above them."""


class Heading(NamedTuple):
    """The header of a column: its name and its unit."""

    name: str
    unit: str = ""


class Book:
    """A workbook that is being written; a context manager.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        # Files in memory: nothing is written outside the folder of results.
        self._book = xlsxwriter.Workbook(str(path), {"in_memory": True})
        self._book.set_properties({"created": CREATED})
        self.styles = {name: self._book.add_format(dict(form)) for name, form in STYLES.items()}

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
            self._book.close()

    def sheet(self, name: str) -> Sheet:
        """Add a sheet."""
        return Sheet(self, self._book.add_worksheet(name))


class Sheet:
    """A sheet of a workbook; rows and columns are counted from 0."""

    def __init__(self, book: Book, sheet: xlsxwriter.worksheet.Worksheet) -> None:
        self._styles, self._sheet = book.styles, sheet
        self._widths: dict[int, int] = {}

    def put(self, row: int, column: int, value: Value, style: str = "") -> None:
        """Write a value; nothing for None. Without a style, a number has that of its type."""
        if value is None:
            return
        if isinstance(value, bool):
            value = "yes" if value else "no"
        if isinstance(value, int) and abs(value) > LARGEST_EXACT:
            value = str(value)
        self._widen(column, len(value) if isinstance(value, str) else 0)
        if isinstance(value, str):
            shown = value[:LONGEST_TEXT]
            self._sheet.write_string(row, column, shown, self._styles[style or "text"])
        else:
            plain = "integer" if isinstance(value, int) else "number"
            self._sheet.write_number(row, column, value, self._styles[style or plain])

    def note(self, row: int, text: str, style: str = "text", column: int = 0) -> None:
        """Write text that may be wider than its column, if there is any."""
        if text:
            self._sheet.write_string(row, column, text[:LONGEST_TEXT], self._styles[style])

    def link(self, row: int, column: int, url: str, text: str) -> None:
        """Write text that opens an address of the web; plain text for any other address."""
        if not url.startswith(("https://", "http://")):
            self.put(row, column, text)
            return
        self._widen(column, len(text))
        self._sheet.write_url(row, column, url, self._styles["link"], text)

    def formula(self, row: int, column: int, formula: str, value: Value, style: str) -> None:
        """Write a formula with its value, for programs that do not compute it."""
        self._sheet.write_formula(row, column, formula, self._styles[style], value)

    def header(self, row: int, headings: Sequence[Heading]) -> None:
        """Write the units in a row and the names in the next one, which stay in view."""
        for column, heading in enumerate(headings):
            if heading.unit not in UNSHOWN:
                self.put(row, column, f"[{heading.unit}]", "unit")
            self.put(row + 1, column, heading.name, "heading")

    def freeze(self, rows: int, columns: int = 0) -> None:
        """Keep the first rows and columns in view."""
        self._sheet.freeze_panes(rows, columns)

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

    def fit(self) -> None:
        """Make columns as wide as their text."""
        for column, width in self._widths.items():
            self._sheet.set_column(column, column, min(max(width + 2, 9), WIDEST))

    def table(
        self, columns: Mapping[str, Sequence[Value]], units: Mapping[str, str], note: str = ""
    ) -> None:
        """Fill the sheet with a table that can be filtered.

        Args:
            columns: The values of each column, by its name.
            units: The unit of each column, by its name.
            note: What the reader must know, above the table.
        """
        self.note(0, note)
        self.header(1, [Heading(name, units.get(name, "")) for name in columns])
        rows = 0
        for column, (name, values) in enumerate(columns.items()):
            real = BY_UNIT.get(units.get(name, ""), "")
            for row, value in enumerate(values, start=TABLE_ROW):
                self.put(row, column, value, real if isinstance(value, float) else "")
            rows = len(values)
        if columns:
            self.freeze(TABLE_ROW, 1)
            self.filter(TABLE_ROW - 1, TABLE_ROW - 1 + rows, len(columns))
            self.fit()

    def _widen(self, column: int, width: int) -> None:
        self._widths[column] = max(self._widths.get(column, 0), width)
