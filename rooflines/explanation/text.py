"""An explanation as a screen of text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from textwrap import wrap
from typing import TYPE_CHECKING

from rooflines.basics.text import seconds
from rooflines.explanation import phrases
from rooflines.explanation.origins import origins
from rooflines.explanation.wording import NO_BREAK

if TYPE_CHECKING:
    from rooflines.explanation.values import Answer

Paint = Callable[[str, str], str]
"""Colours a text by an ANSI code."""

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


def as_text(answer: Answer, *, colour: bool = False, ascii_only: bool = False) -> str:
    """An explanation in lines of at most 80 columns, without a line break at the end.

    Args:
        answer: What to show.
        colour: Whether to colour it with ANSI codes.
        ascii_only: Whether to use ASCII only.
    """

    def paint(text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if colour and text.strip() else text

    lines = [
        *_head(answer, paint),
        *_bars(answer, paint, ascii_only=ascii_only),
        *_facts(answer),
        "",
        *_sections(answer, paint),
        "",
        *_origins(answer, paint),
    ]
    text = "\n".join(line.rstrip() for line in lines)
    return as_ascii(text) if ascii_only else text.replace(NO_BREAK, " ")


def as_ascii(text: str) -> str:
    """A text for a terminal without UTF-8."""
    return text.translate(ASCII).encode("ascii", "backslashreplace").decode()


def _head(answer: Answer, paint: Paint) -> Iterator[str]:
    question = phrases.asked(answer.row, answer.sizes, answer.cache_split)
    for line in wrap(question, WIDTH, break_on_hyphens=False):
        yield paint(line, BOLD)
    for line in wrap(phrases.finding(answer), WIDTH, break_on_hyphens=False):
        yield paint(line, COLOURS.get(answer.row["bound"], BOLD))


def _bars(answer: Answer, paint: Paint, *, ascii_only: bool) -> Iterator[str]:
    """The time of every resource as a bar, the bottleneck marked."""
    longest = max(used.time_s for used in answer.uses)
    width = max(TIME, *(len(seconds(used.time_s)) for used in answer.uses))
    for used in answer.uses:
        binds = used.bound == answer.row["bound"]
        blocks = _blocks(used.time_s / longest, ascii_only=ascii_only)
        label = f"{'▸' if binds else ' '} {used.bound:<8} {seconds(used.time_s):>{width}}  "
        bar = paint(blocks, COLOURS.get(used.bound, ""))
        yield f"{paint(label, BOLD if binds else '')}{bar} {phrases.work_at_rate(used)}"


def _blocks(share: float, *, ascii_only: bool) -> str:
    """A bar of a share of the longest one; at least a sliver, so that no time is invisible."""
    if ascii_only:
        return ("#" * max(round(share * BAR), 1)).ljust(BAR)
    eighths = max(round(share * BAR * 8), 1)
    whole, part = divmod(eighths, 8)
    return ("█" * whole + EIGHTHS[part] * math.ceil(part / 8)).ljust(BAR)


def _facts(answer: Answer) -> Iterator[str]:
    for line in phrases.facts(answer):
        yield from _labelled(f"{INDENT}{line.label:<9} ", line.text)


def _sections(answer: Answer, paint: Paint) -> Iterator[str]:
    for title, lines in phrases.sections(answer):
        yield paint(title, BOLD) if lines else title
        label = max((len(line.label) for line in lines), default=0)
        value = max((len(line.value) for line in lines), default=0)
        for line in lines:
            short = f"{line.value:<{value}}  " if line.value else ""
            yield from _labelled(f"{INDENT}{line.label:<{label}}  {short}", line.text)


def _labelled(head: str, text: str) -> list[str]:
    """Text after a label, wrapped under its beginning."""
    return wrap(
        text,
        WIDTH,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_on_hyphens=False,
    ) or [head]


def _origins(answer: Answer, paint: Paint) -> Iterator[str]:
    """The numbers used, part by part, with their sources."""
    yield paint(f"Numbers of {answer.name}:", BOLD)
    found = list(origins(answer.numbers))
    part = max(len(origin.part) for origin in found)
    for origin in found:
        head = f"{INDENT}{origin.part:<{part}}  "
        source = ", ".join(origin.sources) or "no source"
        remarks = f" ({', '.join(origin.remarks)})" if origin.remarks else ""
        lines = _labelled(head, f"{origin.values}: {source}{remarks}")
        note = _labelled(" " * len(head), origin.note) if origin.note else []
        if len(note) > MOST_NOTE_LINES:
            note = [*note[: MOST_NOTE_LINES - 1], note[MOST_NOTE_LINES - 1][: WIDTH - 1] + "…"]
        yield from (paint(line, DIM) for line in (*lines, *note))
