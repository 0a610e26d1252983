"""What commands print: tables that fit the terminal, CSV and JSON."""

from __future__ import annotations

import json
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rooflines.basics.errors import RooflinesError, one_of, placed, printable
from rooflines.basics.text import count, seconds, si, significant
from rooflines.catalogue.chips import chip_entries
from rooflines.config import load_config
from rooflines.explanation.names import chip_named
from rooflines.explanation.question import Known
from rooflines.fits.entries import shipped_calibrations
from rooflines.results.tables import csv_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import polars as pl

    from rooflines.catalogue.entries import Chip

GAP = "  "
"""Between two columns."""

DIGITS = 4
"""Significant digits of a number [1]."""

UNITS = {"flops_per_s": "FLOP/s", "bytes_per_s": "B/s", "capacity_bytes": "B", "watts": "W"}
"""Units of numbers that are shown with a prefix, by the last word of their path."""

USE_CHIP = "use a chip such as h100-sxm; `rooflines list chips` has all, --config those of a config"

LEAST_WIDTH = 8
"""A column is not cut below this width [1]."""


def width() -> int | None:
    """Columns of the terminal; None for a file or a pipe, where nothing is cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def as_table(names: Sequence[str], rows: Sequence[Sequence[str]], most: int | None) -> str:
    """Aligned columns under their names.

    Args:
        names: The names of the columns.
        rows: The cells.
        most: Columns of the terminal; None: any. The widest column is cut, then the next.
    """
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    while (
        most is not None
        and sum(widths) + len(GAP) * (len(widths) - 1) > most
        and max(widths) > LEAST_WIDTH
    ):
        widths[widths.index(max(widths))] -= 1
    lines = [
        GAP.join(_cell(cell, size) for cell, size in zip(row, widths, strict=True)).rstrip()
        for row in (names, *rows)
    ]
    return "\n".join(line[:most] for line in lines)


def _cell(text: str, size: int) -> str:
    return (text if len(text) <= size else f"{text[: size - 2]}..").ljust(size)


CELLS: Sequence[tuple[tuple[str, ...], Callable[[float], str]]] = (
    (("_share", "_right", "_median", "_p90", "_coverage"), "{:.1%}".format),
    (("_tau",), "{:.2f}".format),
    (("flops", "flops_per_s"), partial(si, unit="")),
    (("bytes", "bytes_per_token_bf16"), partial(si, unit="B")),
    (("seconds", "_s"), seconds),
)
"""The text of a number by the end of its column's name, which says its unit."""


def cells(row: Mapping[str, Any], columns: Iterable[str]) -> list[str]:
    """Values of a row as texts: numbers by the name of their column, `-` for a null."""
    return [_text(column, row[column]) for column in columns]


def _text(column: str, value: str | float | None) -> str:
    if value is None or isinstance(value, str):
        return value or "-"
    other = count if isinstance(value, int) else significant
    return next((form for ends, form in CELLS if column.endswith(ends)), other)(value)


def number(path: str, value: float | None) -> str:
    """A number for a reader, with a prefix where it has a unit.

    Args:
        path: Its path in a chip, or what it is; the last word says the unit.
        value: The number; None: there is none.
    """
    if value is None:
        return "-"
    if path.endswith("_s") and "_per_" not in path:
        return seconds(value)
    unit = UNITS.get(path.rpartition(".")[2])
    return si(value, unit, DIGITS) if unit else significant(value, DIGITS)


def as_csv(frame: pl.DataFrame) -> str:
    """A frame as CSV that is safe in a spreadsheet and on a terminal."""
    return "\n".join(map(printable, csv_text(frame).rstrip("\n").split("\n")))


def as_json(value: object) -> str:
    """A value as JSON; characters that a terminal could obey are escaped as JSON escapes them."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def known_of(config: str | None) -> Known:
    """The chips and calibrations of the catalogue and, if there is one, of a config.

    Args:
        config: Its path; it needs no sweeps.
    """
    if config is None:
        return Known(chip_entries(), shipped_calibrations())
    own = load_config(config, needs_sweeps=False)
    return Known(own.chips, own.calibrations)


def one_chip(place: str, word: str, chips: Mapping[str, Chip] | None = None) -> str:
    """The id of the chip that a word stands for; what was taken for what is said on stderr.

    Args:
        place: Where the word stands, for messages.
        word: As typed.
        chips: By id; None: those of the catalogue.

    Raises:
        RooflinesError: It is no chip, or could be several.
    """
    known = chip_entries() if chips is None else chips
    found = chip_named(word, known)
    if found is None:
        with placed(place):
            one_of(word, known, "no chip", USE_CHIP)
        return word
    if found.note:
        click.echo(found.note, err=True)
    return found.name


config_option = click.option(
    "--config", metavar="FILE", help="A config whose chips, prices and calibrations count too."
)


def frame_options(function: click.decorators.FC) -> click.decorators.FC:
    """The options `--csv` and `--json` of a command."""
    function = click.option("--json", "json_", is_flag=True, help="All columns as JSON.")(function)
    return click.option("--csv", "csv", is_flag=True, help="All columns as CSV.")(function)


def print_frame(frame: pl.DataFrame, text: str, *, csv: bool, json_: bool) -> None:
    """Print a frame as CSV or JSON if an option requests it, else a text."""
    click.echo(as_csv(frame) if csv else as_json(frame.to_dicts()) if json_ else text)


def out_options(text: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """The options `--out` and `--force` of a command.

    Args:
        text: What is written.
    """

    def add(function: click.decorators.FC) -> click.decorators.FC:
        force = click.option("--force", is_flag=True, help="Overwrite the file of --out.")
        return click.option("-o", "--out", metavar="FILE", help=text)(force(function))

    return add


def picture_options(function: click.decorators.FC) -> click.decorators.FC:
    """The options `--size` and `--dark` of a picture."""
    sizes = "slide, web or paper; default slide for png and svg, paper for pdf, web for html."
    dark = click.option("--dark", is_flag=True, help="A dark background.")(function)
    return click.option("--size", metavar="SIZE", help=sizes)(dark)


def check_new(path: str | Path, *, force: bool) -> None:
    """Refuse a file to write that exists already, unless `--force` is given.

    Raises:
        RooflinesError: It exists.
    """
    if Path(path).exists() and not force:
        fix = "choose another name with -o FILE, or overwrite it with --force"
        raise RooflinesError("", "exists already", fix, file=str(path))


def format_of(path: str | Path, formats: Sequence[str]) -> str:
    """The format of a file to write, by its suffix.

    Raises:
        RooflinesError: It is none of these.
    """
    form = Path(path).suffix.removeprefix(".")
    *others, last = (f".{name}" for name in formats)
    known = f"{', '.join(others)} or {last}" if others else last
    with placed("--out"):
        one_of(form, formats, "no format", f"end the name in {known}")
    return form
