"""An answer as a screen of text."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from textwrap import wrap
from typing import TYPE_CHECKING

from rooflines.answers import phrases
from rooflines.basics.text import seconds, si

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflines.answers.answer_values import ResourceTime
    from rooflines.answers.phrases import Line, Section
    from rooflines.hardware.chip_parts import NumberRecord

Paint = Callable[[str, str], str]
"""Colours a text by an ANSI code."""

WIDTH = 80
"""Columns of a screen [1]."""

BAR = 26
"""Columns of the longest bar [1]."""

TIME = 8
"""Columns of a time, if none is longer [1]."""

NO_BREAK = "\xa0"

BEFORE_UNIT = re.compile(r"(?<=\d) (?=[kMGTPEµmnp]?(?:s|B|FLOP)\b)")
"""The space between a number and its unit, where no line is broken."""

EIGHTHS = " ▏▎▍▌▋▊▉█"
"""Blocks of no to eight eighths of a column."""

INDENT = "  "

ASCII = str.maketrans(
    {"µ": "u", NO_BREAK: " ", "·": "-", "×": "x", "≤": "<=", "▸": ">", "…": "..."}
)
"""Substitutes for characters that a terminal without UTF-8 lacks."""

COLOURS = {"compute": "32", "memory": "33", "network": "35"}
"""ANSI colours of the bottlenecks: green, yellow, magenta."""

BOLD, DIM = "1", "2"

UNUSED = ("driver_reserved_bytes", "bus_bits", "pin_bits_per_s")
"""Numbers of a memory level that no answer uses: they explain those that are used."""

MAX_NOTE_LINES = 2
"""Lines of the note of an estimate [1]."""

VALUES: Mapping[str, Callable[[float], str]] = {
    "links": lambda value: f"{value:.0f} links" if value != 1 else "1 link",
    "domain": "{:.0f} chips".format,
    "ring_multiple": "rings of {:.0f}".format,
    "watts": "{:,.10g} W".format,
    "usd_per_hour": "${:,.10g}/h".format,
    "overhead_s": lambda value: f"overhead {seconds(value)}",
    "exp_per_s": lambda value: f"{si(value, '')} exponentials/s",
    "typical_hop_latency_s": lambda value: f"{seconds(value)} typical",
    "hop_latency_s": lambda value: f"{seconds(value)}/hop",
}
"""Numbers of a chip as text, by their key, that are not a quantity with its unit alone."""


@dataclass(frozen=True, kw_only=True)
class Screen:
    """Statements of an answer, laid out in lines of at most 80 columns.

    Attributes:
        title: Question in words.
        calibration: Calibration behind the times, or its absence; may be empty.
        verdict: First sentence.
        measured: Statements on a measured number; None: none was asked about.
        bound: Bottleneck.
        resources: Times by resource, a bar each.
        facts: Labelled statements without values.
        sections: Statements under titles.
        chip_name: The chip's full name.
        numbers: Chip numbers behind the answer, with their sources.
    """

    title: str
    calibration: str
    verdict: str
    measured: Section | None
    bound: str
    resources: Sequence[ResourceTime]
    facts: Sequence[Line]
    sections: Sequence[Section]
    chip_name: str
    numbers: Sequence[NumberRecord]

    def text(
        self, *, colour: bool = False, ascii_only: bool = False, is_short: bool = False
    ) -> str:
        """Text without a line break at the end.

        Args:
            colour: Whether to colour it with ANSI codes.
            ascii_only: Whether to use ASCII only.
            is_short: Whether to end it after the measured number.
        """

        def paint(text: str, code: str) -> str:
            return f"\x1b[{code}m{text}\x1b[0m" if colour and text.strip() else text

        head = [*self._head(paint), *self._measured(paint)]
        rest = [
            *self._bars(paint, ascii_only=ascii_only),
            *self._facts(),
            "",
            *(line for section in self.sections for line in section_lines(section, paint)),
            *([""] if self.sections else []),
            *self._origins(paint),
        ]
        text = "\n".join(line.rstrip() for line in (head if is_short else [*head, *rest]))
        return as_ascii(text) if ascii_only else text.replace(NO_BREAK, " ")

    def _head(self, paint: Paint) -> Iterator[str]:
        for line in _labelled("", self.title):
            yield paint(line, BOLD)
        for line in _labelled("", self.calibration) if self.calibration else ():
            yield line
        for line in _labelled("", self.verdict):
            yield paint(line, COLOURS.get(self.bound, BOLD))

    def _bars(self, paint: Paint, *, ascii_only: bool) -> Iterator[str]:
        """Resource times as bars, the bottleneck marked."""
        longest = max(resource.time_s for resource in self.resources)
        width = max(TIME, *(len(seconds(resource.time_s)) for resource in self.resources))
        for resource in self.resources:
            binds = resource.bound == self.bound
            blocks = _blocks(resource.time_s / longest, ascii_only=ascii_only)
            mark, time = "▸" if binds else " ", seconds(resource.time_s)
            label = paint(f"{mark} {resource.bound:<8} {time:>{width}}  ", BOLD if binds else "")
            bar = paint(blocks, COLOURS.get(resource.bound, ""))
            yield f"{label}{bar} {phrases.work_at_rate(resource)}"

    def _facts(self) -> Iterator[str]:
        for line in self.facts:
            yield from _labelled(f"{INDENT}{line.label:<9} ", line.text)

    def _measured(self, paint: Paint) -> Iterator[str]:
        """Statements on a measured number, between two empty lines."""
        if self.measured is not None:
            yield from ("", *section_lines(self.measured, paint), "")

    def _origins(self, paint: Paint) -> Iterator[str]:
        """Numbers used, by chip part, with their sources."""
        yield paint(f"Sources for {self.chip_name}:", BOLD)
        by_part = groupby(self.numbers, key=lambda number: number["path"].rpartition(".")[0])
        parts = [
            (_name(path), [number for number in numbers if not number["path"].endswith(UNUSED)])
            for path, numbers in by_part
        ]
        width = max(len(name) for name, _ in parts)
        for name, numbers in parts:
            stated = (
                source for number in numbers for source in (number["source"] or "").split(", ")
            )
            sources = ", ".join(dict.fromkeys(filter(None, stated))) or "no source"
            uniform = len({(number["confidence"], number["estimate"]) for number in numbers}) == 1
            remarks = ", ".join(filter(None, _remarks(numbers[0], uniform=uniform)))
            head = f"{INDENT}{name:<{width}}  "
            values = ", ".join(_value(number, uniform=uniform) for number in numbers)
            of_part = f"{values}: {sources}{remarks and f' ({remarks})'}"
            note = next((number["note"] for number in numbers if number["estimate"]), None)
            noted = _labelled(" " * len(head), note) if note else []
            if len(noted) > MAX_NOTE_LINES:
                noted = [*noted[: MAX_NOTE_LINES - 1], noted[MAX_NOTE_LINES - 1][: WIDTH - 1] + "…"]
            yield from (paint(line, DIM) for line in (*_labelled(head, of_part), *noted))


def section_lines(section: Section, paint: Paint = lambda text, _: text) -> Iterator[str]:
    """Statements under their title, labels and short answers in columns."""
    lines = section.lines
    for line_of_title in _labelled("", section.title):
        yield paint(line_of_title, BOLD) if lines else line_of_title
    label = max((len(line.label) for line in lines), default=0)
    value = max((len(line.value) for line in lines), default=0)
    for line in lines:
        short = f"{line.value:<{value}}  " if line.value else ""
        yield from _labelled(f"{INDENT}{line.label:<{label}}  {short}", line.text)


def as_ascii(text: str) -> str:
    """A text for a terminal without UTF-8."""
    return text.translate(ASCII).encode("ascii", "backslashreplace").decode()


def _blocks(share: float, *, ascii_only: bool) -> str:
    """Bar for a share in the longest time; at least a sliver, so that every time is visible."""
    if ascii_only:
        return ("#" * max(round(share * BAR), 1)).ljust(BAR)
    eighths = max(round(share * BAR * 8), 1)
    whole, part = divmod(eighths, 8)
    return ("█" * whole + EIGHTHS[part] * math.ceil(part / 8)).ljust(BAR)


def _labelled(head: str, text: str) -> list[str]:
    """Text after a label, wrapped under its beginning."""
    return wrap(
        BEFORE_UNIT.sub(NO_BREAK, text),
        WIDTH,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_on_hyphens=False,
    ) or [head]


def _name(path: str) -> str:
    """A part of the chip by its path, such as `bf16 peak` or `hbm`."""
    head, _, rest = path.partition(".")
    name = rest.rpartition(".")[2]
    names = {"units": f"{name} peak", "memory": name, "networks": name, "prices": "price"}
    return names.get(head, head)


def _remarks(number: NumberRecord, *, uniform: bool) -> Iterator[str | None]:
    """Remarks after a part's sources, where they hold for all its numbers."""
    if uniform:
        yield from _read(number)
    yield "half the sparse figure" if number["halved"] else None
    yield "at boost clock" if number["clock"] == "boost" else None


def _read(number: NumberRecord) -> Iterator[str | None]:
    """Confidence in a number, and "estimate" for an estimate."""
    yield number["confidence"]
    yield "estimate" if number["estimate"] else None


def _value(number: NumberRecord, *, uniform: bool) -> str:
    """A number of the chip as text, with how it was read where those beside it were not alike."""
    key, value, unit = number["path"].rpartition(".")[2], number["value"], number["unit"]
    if key in VALUES:
        return VALUES[key](value)
    if not unit:
        return f"{key} {value:.10g}"
    link = "/link" if number["path"].startswith("networks.") else ""
    label = f"label {number['label']}" if number["label"] else None
    remarks = ", ".join(filter(None, [label, *(() if uniform else _read(number))]))
    return f"{si(value, unit, phrases.DIGITS)}{link}{remarks and f' ({remarks})'}"
