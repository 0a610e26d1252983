"""The sheet What-if in LibreOffice: changed cells give the numbers of the tables."""

import csv
import re
import shutil
import subprocess
import zipfile

import pytest
from sheets import read_workbook
from spreadsheet import QUESTIONS, written
from xlsxwriter.utility import xl_rowcol_to_cell

OFFICE = shutil.which("soffice") or shutil.which("libreoffice")

ALWAYS = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
<item oor:path="/org.openoffice.Office.Calc/Formula/Load">
<prop oor:name="OOXMLRecalcMode" oor:op="fuse"><value>0</value></prop></item>
</oor:items>
"""
"""A setting of LibreOffice: compute all formulas when a file is opened."""

ALL_SHEETS = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,false,false,false,false,-1"
"""Every sheet as a CSV file, numbers in full."""

WHAT_IF = "xl/worksheets/sheet1.xml"


def with_changes(path, target, changed):
    """Copy a workbook with other numbers in some cells of What-if."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            text = old.read(name)
            if name == WHAT_IF:
                xml = text.decode()
                for address, number in changed.items():
                    cell = rf'(<c r="{address}"[^>]*><v>)[^<]*'
                    xml, count = re.subn(cell, rf"\g<1>{number!r}", xml)
                    assert count == 1, address
                text = xml.encode()
            new.writestr(name, text)


def computed_by_libreoffice(path, folder):
    """The values of What-if by address, as LibreOffice computes them."""
    assert OFFICE
    settings = folder / "profile" / "user" / "registrymodifications.xcu"
    settings.parent.mkdir(parents=True)
    settings.write_text(ALWAYS, encoding="utf-8")
    profile = f"-env:UserInstallation={(folder / 'profile').as_uri()}"
    words = ("--headless", "--convert-to", ALL_SHEETS, "--outdir", folder, path)
    subprocess.run([OFFICE, profile, *words], check=True, capture_output=True, timeout=300)
    with (folder / f"{path.stem}-What-if.csv").open(newline="", encoding="utf-8") as file:
        return {
            xl_rowcol_to_cell(row, column): number_or_text(value)
            for row, values in enumerate(csv.reader(file))
            for column, value in enumerate(values)
        }


def number_or_text(value):
    """A number, also one shown as a percentage; else the text itself."""
    try:
        return float(value.removesuffix("%")) / (100 if value.endswith("%") else 1)
    except ValueError:
        return value


@pytest.mark.skipif(OFFICE is None, reason="no LibreOffice: apt-get install libreoffice-calc")
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.operation)
def test_libreoffice_computes_the_numbers_of_the_tables(question, tmp_path):
    path = written(tmp_path / "results", question.config())
    cells = read_workbook(path)["What-if"]
    changed = tmp_path / "changed.xlsx"
    with_changes(path, changed, question.changed(cells))
    values = computed_by_libreoffice(changed, tmp_path / "office")
    assert question.differences(cells, values) == []
    unchanged = computed_by_libreoffice(path, tmp_path / "unchanged")
    assert values != unchanged
