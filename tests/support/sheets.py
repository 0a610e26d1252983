"""The cells of a workbook, read from its XML without the library that wrote it."""

import re
import zipfile
from dataclasses import dataclass
from xml.etree import ElementTree as ET

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


@dataclass(frozen=True)
class Cell:
    """A cell: its kind (`s` text, `n` number, `str` text of a formula), value and formula."""

    kind: str
    value: str
    formula: str | None = None

    @property
    def plain(self):
        """The value as text or number."""
        return float(self.value) if self.kind == "n" else self.value


def read_workbook(path):
    """The cells of every sheet by address, such as `B2`, in the order of the workbook."""
    with zipfile.ZipFile(path) as file:
        shared = ET.fromstring(file.read("xl/sharedStrings.xml"))  # noqa: S314, our own file
        texts = ["".join(part.itertext()) for part in shared.iter(f"{MAIN}si")]
        return {name: _cells(sheet, texts) for name, sheet in _sheets(file)}


def column_widths(path):
    """The widths of the columns of every sheet that are not the usual one [characters]."""
    with zipfile.ZipFile(path) as file:
        return {
            name: [float(column.attrib["width"]) for column in sheet.iter(f"{MAIN}col")]
            for name, sheet in _sheets(file)
        }


def _sheets(file):
    """The sheets of a workbook by name, in order."""
    book = ET.fromstring(file.read("xl/workbook.xml"))  # noqa: S314
    names = [sheet.attrib["name"] for sheet in book.iter(f"{MAIN}sheet")]
    for number, name in enumerate(names, start=1):
        yield name, ET.fromstring(file.read(f"xl/worksheets/sheet{number}.xml"))  # noqa: S314


def _cells(sheet, texts):
    cells = {}
    for cell in sheet.iter(f"{MAIN}c"):
        kind, value, formula = cell.get("t", "n"), cell.find(f"{MAIN}v"), cell.find(f"{MAIN}f")
        if value is not None and value.text is not None:
            text = texts[int(value.text)] if kind == "s" else value.text
            written = None if formula is None else formula.text
            cells[cell.attrib["r"]] = Cell(kind, text, written)
    return cells


def table_of(cells, header):
    """The rows below a row of names, counted from 1; None for an empty cell."""
    names: dict[str, str] = {}
    rows: dict[int, dict[str, str | float | None]] = {}
    for address, cell in cells.items():
        column, row = re.fullmatch(r"([A-Z]+)(\d+)", address).groups()  # type: ignore[union-attr]
        if int(row) == header:
            names[column] = cell.value
        elif int(row) > header:
            rows.setdefault(int(row), {})[column] = cell.plain
    return [{name: row.get(column) for column, name in names.items()} for row in rows.values()]
