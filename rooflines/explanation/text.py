"""An explanation as a screen of text."""

from __future__ import annotations

import math
from textwrap import wrap
from typing import TYPE_CHECKING

from rooflines.explanation.wording import NO_BREAK, seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rooflines.explanation.sheet import Line, Sheet

WIDTH = 80
"""Columns of a screen [1]."""

BAR = 26
"""Columns of the longest bar [1]."""

TIME = 8
"""Columns of a time, if none is longer [1]."""

EIGHTHS = " ▏▎▍▌▋▊▉█"
"""Blocks of no to eight eighths of a column."""

INDENT = "  "

ASCII = str.maketrans(
    {"µ": "u", NO_BREAK: " ", "·": "-", "×": "x", "≤": "<=", "▸": ">", "…": "..."}
)
"""What stands for characters that a terminal without UTF-8 lacks."""

COLOURS = {"compute": "32", "memory": "33", "network": "35"}
"""ANSI colours of the bottlenecks: green, yellow, magenta."""

BOLD, DIM = "1", "2"

MOST_NOTE_LINES = 2
"""Lines of the note of an estimate [1]."""


def as_text(sheet: Sheet, *, colour: bool = False, ascii_only: bool = False) -> str:
    """An explanation in lines of at most 80 columns, without a line break at the end.

    Args:
        sheet: What to show.
        colour: Whether to colour it with ANSI codes.
        ascii_only: Whether to use ASCII only.
    """

    def paint(text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if colour and text.strip() else text

    lines = [
        *_head(sheet, paint),
        *_bars(sheet, paint, ascii_only=ascii_only),
        *_facts(sheet),
        "",
        *_sections(sheet, paint),
        *_origins(sheet, paint),
    ]
    text = "\n".join(line.rstrip() for line in lines)
    if ascii_only:
        return as_ascii(text)
    return text.replace(NO_BREAK, " ")


def as_ascii(text: str) -> str:
    """A text for a terminal without UTF-8."""
    return text.translate(ASCII).encode("ascii", "backslashreplace").decode()


def _head(sheet: Sheet, paint: Callable[[str, str], str]) -> Iterator[str]:
    for line in wrap(sheet.asked, WIDTH, break_on_hyphens=False):
        yield paint(line, BOLD)
    for line in wrap(sheet.finding, WIDTH, break_on_hyphens=False):
        yield paint(line, COLOURS.get(sheet.bound, BOLD))


def _bars(sheet: Sheet, paint: Callable[[str, str], str], *, ascii_only: bool) -> Iterator[str]:
    """The time of every resource as a bar, the bottleneck marked."""
    longest = max(bar.time_s for bar in sheet.bars)
    width = max(TIME, *(len(seconds(bar.time_s)) for bar in sheet.bars))
    for bar in sheet.bars:
        binds = bar.bound == sheet.bound
        blocks = _blocks(bar.time_s / longest, ascii_only=ascii_only)
        label = f"{'▸' if binds else ' '} {bar.bound:<8} {seconds(bar.time_s):>{width}}  "
        yield paint(label, BOLD if binds else "") + " ".join(
            [paint(blocks, COLOURS.get(bar.bound, "")), bar.text]
        )


def _blocks(share: float, *, ascii_only: bool) -> str:
    """A bar of a share of the longest one; at least a sliver, so that no time is invisible."""
    if ascii_only:
        return ("#" * max(round(share * BAR), 1)).ljust(BAR)
    eighths = max(round(share * BAR * 8), 1)
    whole, part = divmod(eighths, 8)
    return ("█" * whole + EIGHTHS[part] * math.ceil(part / 8)).ljust(BAR)


def _facts(sheet: Sheet) -> Iterator[str]:
    for line in sheet.facts:
        yield from _labelled(f"{INDENT}{line.label:<9} ", line.text)


def _sections(sheet: Sheet, paint: Callable[[str, str], str]) -> Iterator[str]:
    for section in sheet.sections:
        yield paint(section.title, BOLD) if section.lines else section.title
        yield from _table(section.lines)
    yield ""


def _table(lines: Sequence[Line]) -> Iterator[str]:
    label = max((len(line.label) for line in lines), default=0)
    value = max((len(line.value) for line in lines), default=0)
    for line in lines:
        head = f"{INDENT}{line.label:<{label}}  {line.value:<{value}}  "
        yield from _labelled(head if line.value else f"{INDENT}{line.label:<{label}}  ", line.text)


def _labelled(head: str, text: str) -> list[str]:
    """Text after a label, wrapped under its beginning."""
    return wrap(
        text,
        WIDTH,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_on_hyphens=False,
    ) or [head]


def _origins(sheet: Sheet, paint: Callable[[str, str], str]) -> Iterator[str]:
    """The numbers used, part by part, with their sources."""
    yield paint(f"Numbers of {sheet.name}:", BOLD)
    part = max(len(origin.part) for origin in sheet.origins)
    for origin in sheet.origins:
        head = f"{INDENT}{origin.part:<{part}}  "
        source = ", ".join(origin.sources) or "no source"
        remarks = f" ({', '.join(origin.remarks)})" if origin.remarks else ""
        yield from (
            paint(line, DIM) for line in _labelled(head, f"{origin.values}: {source}{remarks}")
        )
        note = _labelled(" " * len(head), origin.note) if origin.note else []
        if len(note) > MOST_NOTE_LINES:
            note = [*note[: MOST_NOTE_LINES - 1], note[MOST_NOTE_LINES - 1][: WIDTH - 1] + "…"]
        yield from (paint(line, DIM) for line in note)
