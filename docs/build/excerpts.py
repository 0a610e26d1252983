"""Screens of pages, cut to the lines and columns that the table below each explains."""

from __future__ import annotations

import re
import shlex
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, StringIO, TextIOWrapper
from typing import TYPE_CHECKING

from rooflines.cli.main import run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SCREEN = re.compile(
    r"^```console\n\$ rooflines (?P<command>.+)\n(?:.*\n)*?```\n(?P<table>\n(?:\|.*\n)+)?",
    re.MULTILINE,
)
"""A command with its output, and the table that explains its lines."""

EXPLAINED = re.compile(r"^\| (`[^|]+`) \|", re.MULTILINE)
"""The first cell of a row that explains lines or columns: their labels in backticks."""

LINE = re.compile(r"^.*\n(?: {3,}.*\n)*", re.MULTILINE)
"""A line of a screen, and those that continue it."""

LABELLED = re.compile(r"(?:  |▸ )\S")
"""The beginning of a line with a label."""

GAP = "...\n"
"""In place of lines that are left out."""

MAX_ROWS = 6
"""Rows of a table of several cases that a page shows [1]."""


def with_excerpts(page: str) -> str:
    """A page with the current screen below each command.

    Raises:
        ValueError: A table explains a line or column that the screen does not have.
    """
    return SCREEN.sub(lambda found: _screen(found["command"], found["table"] or ""), page)


def _screen(command: str, table: str) -> str:
    """A command, its screen as a block of code, and the table below it."""
    labels = [label for cell in EXPLAINED.findall(table) for label in re.findall("`(.+?)`", cell)]
    screen = excerpt(_printed(command), labels)
    return f"```console\n$ rooflines {command}\n{screen}```\n{table}"


def _printed(command: str) -> str:
    """Output of a command on a terminal with all letters."""
    with (
        TextIOWrapper(BytesIO(), "utf-8") as screen,
        redirect_stdout(screen),
        redirect_stderr(StringIO()),
    ):
        run(shlex.split(command))
        screen.seek(0)
        return screen.read()


def excerpt(printed: str, labels: Sequence[str]) -> str:
    """Lines of a screen: its title, and those that labels name; without labels its first paragraph.

    Args:
        printed: The screen.
        labels: Beginnings of lines, or columns of a table of several cases.

    Raises:
        ValueError: A label is at no line and no column.
    """
    if not labels:
        first, _, rest = printed.partition("\n\n")
        return f"{first}\n{GAP}" if rest else printed
    lines = LINE.findall(printed)
    for number, line in enumerate(lines):
        if {*labels} <= {*re.split(r" {2,}|\n", line)}:
            end = number + 1 + MAX_ROWS
            return "".join(lines[:end]) + (GAP if lines[end:] else "")
    for label in labels:
        if not any(_has_label(line, label) for line in lines):
            problem = f"no line or column {label!r}, which the table below the screen explains"
            raise ValueError(f"{problem}, in\n{printed}")
    return "".join(_labelled(lines, labels))


def _has_label(line: str, label: str) -> bool:
    """Test for a line with a label, followed by space, a count (`× 80`) or a value."""
    end = rf"{re.escape(label)}(?:  | ×| \d)"
    return bool(LABELLED.match(line) and re.match(end, line[2:]))


def _labelled(lines: Sequence[str], labels: Sequence[str]) -> Iterator[str]:
    """The title, and lines with a label below their heading; gaps where others are left out."""
    waiting: list[str] = []
    in_title = True
    for line in lines:
        in_title = in_title and not LABELLED.match(line)
        if in_title or any(_has_label(line, label) for label in labels):
            yield from waiting
            yield line
            waiting = []
        elif not LABELLED.match(line):
            waiting = [GAP, line] if GAP in waiting else [*waiting, line]
        elif GAP not in waiting[-1:]:
            waiting.append(GAP)
    if waiting:
        yield GAP
