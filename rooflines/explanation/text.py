"""An explanation as a screen of text."""

from __future__ import annotations

import math
from textwrap import wrap
from typing import TYPE_CHECKING

from rooflines.explanation import phrases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rooflines.explanation.values import Answer

__all__ = ["as_text"]

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
    {"µ": "u", phrases.NO_BREAK: " ", "·": "-", "×": "x", "≤": "<=", "▸": ">", "…": "..."}
)
"""What stands for characters that a terminal without UTF-8 lacks."""

COLOURS = {"compute": "32", "memory": "33", "network": "35"}
"""ANSI colours of the bottlenecks: green, yellow, magenta."""

BOLD, DIM = "1", "2"

MOST_NOTE_LINES = 2
"""Lines of the note of an estimate [1]."""


def as_text(explanation: Answer, *, colour: bool = False, ascii_only: bool = False) -> str:
    """An explanation in lines of at most 80 columns, without a line break at the end.

    Args:
        explanation: What to show.
        colour: Whether to colour it with ANSI codes.
        ascii_only: Whether to use ASCII only.
    """

    def paint(text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if colour and text.strip() else text

    lines = [
        *_head(explanation, paint),
        *_bars(explanation, paint, ascii_only=ascii_only),
        *_facts(explanation),
        "",
        *_thresholds(explanation, paint),
        *_origins(explanation, paint),
    ]
    text = "\n".join(line.rstrip() for line in lines)
    if ascii_only:
        return text.translate(ASCII).encode("ascii", "backslashreplace").decode()
    return text.replace(phrases.NO_BREAK, " ")


def _head(explanation: Answer, paint: Callable[[str, str], str]) -> Iterator[str]:
    for line in wrap(phrases.asked(explanation), WIDTH, break_on_hyphens=False):
        yield paint(line, BOLD)
    bound = str(explanation.row["bound"])
    yield paint(phrases.finding(explanation), COLOURS.get(bound, BOLD))


def _bars(
    explanation: Answer, paint: Callable[[str, str], str], *, ascii_only: bool
) -> Iterator[str]:
    """The time of every resource as a bar, the bottleneck marked."""
    longest = max(used.time_s for used in explanation.uses)
    width = max(TIME, *(len(phrases.seconds(used.time_s)) for used in explanation.uses))
    for used in explanation.uses:
        binds = used.bound == explanation.row["bound"]
        bar = _bar(used.time_s / longest, ascii_only=ascii_only)
        label = f"{'▸' if binds else ' '} {used.bound:<8} {phrases.seconds(used.time_s):>{width}}  "
        yield paint(label, BOLD if binds else "") + " ".join(
            [paint(bar, COLOURS.get(used.bound, "")), phrases.use(used)]
        )


def _bar(share: float, *, ascii_only: bool) -> str:
    """A bar of a share of the longest one; at least a sliver, so that no time is invisible."""
    if ascii_only:
        return ("#" * max(round(share * BAR), 1)).ljust(BAR)
    eighths = max(round(share * BAR * 8), 1)
    whole, part = divmod(eighths, 8)
    return ("█" * whole + EIGHTHS[part] * math.ceil(part / 8)).ljust(BAR)


def _facts(explanation: Answer) -> Iterator[str]:
    for line in phrases.facts(explanation):
        yield from _labelled(f"{INDENT}{line.label:<9} ", line.text)


def _thresholds(explanation: Answer, paint: Callable[[str, str], str]) -> Iterator[str]:
    """The sizes and rates from which on it is compute-bound."""
    yield paint("Compute-bound from this size on, the others as they are:", BOLD)
    yield from _table(list(phrases.sizes(explanation)))
    changes = list(phrases.changes(explanation))
    if changes:
        yield paint("or with this, all else equal:", BOLD)
        yield from _table(changes)
    else:
        yield "At these sizes it is compute-bound as it is."
    yield ""


def _table(lines: Sequence[phrases.Line]) -> Iterator[str]:
    label = max(len(line.label) for line in lines)
    value = max(len(line.value) for line in lines)
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


def _origins(explanation: Answer, paint: Callable[[str, str], str]) -> Iterator[str]:
    """The numbers used, part by part, with their sources."""
    yield paint(f"Numbers of {explanation.name}:", BOLD)
    origins = list(phrases.origins(explanation))
    part = max(len(origin.part) for origin in origins)
    for origin in origins:
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
