"""Command output: tables that fit the terminal, CSV and JSON."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from functools import partial, wraps
from inspect import cleandoc
from pathlib import Path
from textwrap import dedent, indent
from typing import TYPE_CHECKING, Any

import click
from polars import selectors as cs

from rooflines.answers.basis import MIXED_BASIS
from rooflines.answers.name_search import check_chip, find_chip, search_chip, search_model
from rooflines.answers.question import QuestionCatalogues
from rooflines.basics.errors import RooflinesError, at_path, check_choice, printable
from rooflines.basics.text import column_percent, count, percent, seconds, si, significant
from rooflines.dictionary.columns import ESTIMATE_SUFFIX, SERIAL_SUFFIX
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.models.library import is_named, is_path
from rooflines.results.tables import csv_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import polars as pl

    from rooflines.answers.name_search import Match
    from rooflines.hardware.entries import Chip

    Printed = tuple[pl.DataFrame, str, *tuple[object, ...]]
    """A frame, the same as text, and perhaps more than the frame has, for JSON."""

GAP = "  "
"""Between two columns."""

DIGITS = 4
"""Significant digits of a number [1]."""

USE_CHIP = "use a chip such as h100-sxm; `rooflines list chips` has all, --config those of a config"

UNREADABLE = 1
"""Exit status where a file or an option cannot be used."""

MIN_WIDTH = 8
"""A column is not cut below this width [1]."""


class WithExamples(click.Command):
    """A command whose docstring ends in examples, which its help shows below the options.

    Args:
        help: The docstring.
        epilog: What follows the examples.
        **options: Of click.
    """

    def __init__(self, *, help: str, epilog: str = "", **options: Any) -> None:  # noqa: A002, ANN401, of click
        text, _, typed = cleandoc(help).partition("\n\nExamples:\n")
        epilog = f"\b\nExamples:\n{indent(dedent(typed), GAP)}{epilog}"
        super().__init__(help=text, epilog=epilog, **options)


def as_table(
    names: Sequence[str], rows: Sequence[Sequence[str]], columns: int | None = None
) -> str:
    """Aligned columns under their names; on a terminal the widest is cut to fit, then the next.

    Args:
        names: The names of the columns.
        rows: The cells.
        columns: Those of the terminal; None: as it is, any in a file or a pipe.
    """
    max_width = columns or (shutil.get_terminal_size().columns if sys.stdout.isatty() else None)
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    while (
        max_width is not None
        and sum(widths) + len(GAP) * (len(widths) - 1) > max_width
        and max(widths) > MIN_WIDTH
    ):
        widths[widths.index(max(widths))] -= 1
    lines = [
        GAP.join(_cell(cell, size) for cell, size in zip(row, widths, strict=True)).rstrip()
        for row in (names, *rows)
    ]
    return "\n".join(line[:max_width] for line in lines)


def _cell(text: str, size: int) -> str:
    return (text if len(text) <= size else f"{text[: size - 2]}..").ljust(size)


def _on_bases(name: str) -> tuple[str, ...]:
    """Columns with a rate at the bound, at the serialized time, at the estimate, or at either."""
    return tuple(f"{name}{end}" for end in ("", SERIAL_SUFFIX, ESTIMATE_SUFFIX, MIXED_BASIS.suffix))


CELLS: Sequence[tuple[tuple[str, ...], Callable[[float], str]]] = (
    (("_share", "_right", "median", "mean", "p90", "_coverage"), column_percent),
    (("utilization", "share_of_peak", "bubble", *_on_bases("mfu")), percent),
    ((*_on_bases("tokens_per_s_per_chip"), "output_tokens_per_s"), count),
    (("_tau",), "{:.2f}".format),
    (("flops", "flops_per_s"), partial(si, unit="")),
    (("bytes_per_s",), partial(si, unit="B/s")),
    (("bytes", "bytes_per_token_bf16"), partial(si, unit="B")),
    (("seconds", "_s"), seconds),
)
"""The text of a number by the end of its column's name, which says its unit."""


def table(columns: Mapping[str, str] | Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows as a table: numbers as the name of their column says, `-` for a null.

    Args:
        columns: The columns that are shown, with their titles where these are others.
        rows: By column.
    """
    titles = columns.values() if isinstance(columns, Mapping) else columns
    return as_table([*titles], [[_text(column, row[column]) for column in columns] for row in rows])


def _text(column: str, value: str | float | None) -> str:
    if value is None or isinstance(value, str):
        return "-" if value is None else value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if len(column) == 1:
        return f"{value:,}"
    fallback = count if isinstance(value, int) else significant
    return next((form for ends, form in CELLS if column.endswith(ends)), fallback)(value)


def filter_dictionary(
    names: pl.DataFrame, word: str | None, problem: str, fix: str
) -> tuple[pl.DataFrame, str]:
    """Filter a dictionary by place, or else by name; return the rows and their text.

    Args:
        names: The dictionary: places, names in them, and what is said of each.
        word: The place or name; None: all of them.
        problem: What another word is, as in `check_choice`.
        fix: What to do about it.

    Raises:
        RooflinesError: It is neither.
    """
    place, name, *_ = names.columns
    column = place if word in names[place] else name
    rows = names if word is None else names.filter(names[column] == word)
    if rows.is_empty():
        check_choice(
            word, [*names[place].unique(maintain_order=True), *names[name].unique()], problem, fix
        )
    shown = rows.drop(place) if word is not None and column == place else rows
    return rows, table(shown.columns, shown.with_columns(cs.string().fill_null("")).to_dicts())


def chip_number(unit: str, value: float | None) -> str:
    """A number of a chip for a reader, `-` for a null.

    Args:
        unit: Its unit; empty: a count or a share.
        value: The number [unit].
    """
    if value is None:
        return "-"
    if unit == "s":
        return seconds(value)
    return si(value, unit, DIGITS) if unit else significant(value, DIGITS)


def as_csv(frame: pl.DataFrame) -> str:
    """A frame as CSV that is safe in a spreadsheet and on a terminal."""
    return "\n".join(map(printable, csv_text(frame).rstrip("\n").split("\n")))


def as_json(value: object) -> str:
    """A value as JSON; characters that a terminal could obey are escaped as JSON escapes them."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def catalogues_of(config: str | None) -> QuestionCatalogues:
    """Load chips and calibrations from the catalogue and, where given, a config.

    Args:
        config: Its path; it needs no sweeps.
    """
    if config is None:
        return QuestionCatalogues(chip_entries())
    from rooflines.loading import load_config  # noqa: PLC0415 - most questions have no config

    loaded = load_config(config, needs_sweeps=False)
    return QuestionCatalogues(loaded.chips, loaded.calibrations, loaded.engines)


def one_chip(place: str, word: str, chips: Mapping[str, Chip] | None = None) -> str:
    """Id for the chip that a word names; substitutions are reported on stderr.

    Args:
        place: Where the word stands, for messages.
        word: As typed.
        chips: By id; None: those of the catalogue.

    Raises:
        RooflinesError: It is no chip, or could be several.
    """
    entries = chip_entries() if chips is None else chips
    match = find_chip(word, entries) or search_chip(word, entries)
    if match is None:
        with at_path(place):
            check_chip(word, entries, USE_CHIP)
    return _echo_note(match, word)


def one_model(word: str) -> str:
    """Id for the model that a word names; the word itself where it is a name or path.

    Raises:
        RooflinesError: Several models have the word in their ids.
    """
    return _echo_note(None if is_named(word) or is_path(word) else search_model(word), word)


def _echo_note(match: Match | None, word: str) -> str:
    """Matched name for a word; its note goes to stderr."""
    if match is not None and match.note:
        click.echo(match.note, err=True)
    return word if match is None else match.name


def one_line(error: RooflinesError) -> str:
    """Mistake in one line: file or option, problem, close names, fix."""
    place = ": ".join(part for part in (error.file, error.where) if part)
    close = f"; close to it: {', '.join(error.close)}" if error.close else ""
    return " ".join(printable(f"{place} {error.problem}: {error.fix}{close}").split())


def refuses_in_one_line(command: Callable[..., None]) -> Callable[..., int]:
    """A command that says a mistake in one line, and ends with exit status 1."""

    @wraps(command)
    def refusing(**options: Any) -> int:  # noqa: ANN401, options of the command
        try:
            command(**options)
        except RooflinesError as error:
            click.echo("\n".join(map(one_line, error.errors)), err=True)
            return UNREADABLE
        return 0

    return refusing


config_option = click.option(
    "--config", metavar="FILE", help="A config whose chips, prices and calibrations count too."
)


def prints_frame(command: Callable[..., Printed]) -> Callable[..., None]:
    """A command that prints what it returns: the text, or by option the frame as CSV or JSON."""

    @click.option("--csv", "csv", is_flag=True, help="All columns as CSV.")
    @click.option("--json", "json_", is_flag=True, help="All columns as JSON.")
    @wraps(command)
    def printed(*, csv: bool, json_: bool, **options: object) -> None:
        frame, text, *whole = command(**options)
        if csv:
            text = as_csv(frame)
        elif json_:
            text = as_json(whole[0] if whole else frame.to_dicts())
        click.echo(text)

    return printed


def out_options(text: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """Add the options `--out` and `--force`.

    Args:
        text: What is written.
    """

    def add(function: click.decorators.FC) -> click.decorators.FC:
        force = click.option("--force", is_flag=True, help="Overwrite the file of --out.")
        return click.option("-o", "--out", metavar="FILE", help=text)(force(function))

    return add


def picture_options(function: click.decorators.FC) -> click.decorators.FC:
    """Add the picture options `--size` and `--dark`."""
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
    """Output format by file suffix.

    Raises:
        RooflinesError: It is none of these.
    """
    form = Path(path).suffix.removeprefix(".")
    *head, last = (f".{name}" for name in formats)
    suffixes = f"{', '.join(head)} or {last}" if head else last
    with at_path("--out"):
        check_choice(form, formats, "no format", f"end the name in {suffixes}")
    return form
