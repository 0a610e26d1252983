"""Titles and subtitles of charts, within the width of a slide."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import alt
from rooflines.charts.kit.text import chip_label, shorten, width_em, wrapped
from rooflines.charts.kit.themes import sizes_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rooflines.charts.claims import Finding, Plain
    from rooflines.charts.kit.themes import Margins

LONGEST_TITLE, LONGEST_SUBTITLE = 34.0, 56.0
"""Widths of the title and of a line of the subtitle, in their own size [em]."""

TITLE_SIZE = 1.6
"""Font size of the title over that of the subtitle [1]."""

RIGHT = 1.5
"""Room kept free at the right of both [em]."""

SHORTEST_NAME = 5.0
"""Width that a name in a title keeps at least [em]."""

NOTHING = "{title: 'No numbers for this choice', subtitle: ['Choose another value in a menu.']}"
"""Title and subtitle of a choice without data, as an expression."""


def titles(
    findings: Mapping[str, Finding], names: Sequence[str], margins: Margins
) -> list[alt.Parameter]:
    """Title and subtitle of every choice, as wide as a slide at most, and the present ones.

    Args:
        findings: What is said, by the chosen values joined by `|`.
        names: The parameters of these values.
        margins: Room around the plot.
    """
    width = _width(sizes_of(margins)["slide"])
    shown = {
        key: {
            "title": _title(finding, key, min(LONGEST_TITLE, width / TITLE_SIZE)),
            "subtitle": wrapped(finding.subtitle, min(LONGEST_SUBTITLE, width)),
            **finding.drawn,
        }
        for key, finding in findings.items()
    }
    key = " + '|' + ".join(names)
    current = f"(findings[{key}] || {NOTHING})" if names else "findings['']"
    return [
        alt.param(name="findings", value=shown),
        alt.param(name="headline", expr=f"{current}.title"),
        alt.param(name="subline", expr=f"{current}.subtitle"),
    ]


def with_note(chart: alt.LayerChart, note: str) -> alt.LayerChart:
    """A chart from `assemble`, with a sentence before each of its subtitles."""
    most = min(LONGEST_SUBTITLE, _width(chart.usermeta["looks"]["slide"]))
    parameters: Any = chart.params
    (findings,) = (each.value for each in parameters if each.name == "findings")
    for shown in findings.values():
        shown["subtitle"] = wrapped(" ".join([note, *shown["subtitle"]]), most)
    if chart.description is not alt.Undefined:
        chart.description = f"{chart.description} {note}"
    return chart


def _width(slide: Mapping[str, Any]) -> float:
    """Room for text above the plot of a slide, one of `usermeta.looks` [em]."""
    across: float = (slide["width"] + slide["padding"]["right"]) / slide["em"]
    return across - RIGHT


def _title(finding: Finding, key: str, most: float) -> str:
    """A title of at most a width [em]; where it is too long, the names in it are shortened."""
    title = finding.title
    if width_em(title, bold=True) <= most:
        return title
    texts = dict.fromkeys([*finding.names, *key.split("|"), *_texts(finding.claim)])
    labels = dict.fromkeys(name for text in texts for name in (chip_label(text), text))
    widths = {name: width_em(name, bold=True) for name in sorted(labels, key=len, reverse=True)}
    rest, named = title, []
    for name, width in widths.items():
        named += [width] * rest.count(name) if width > SHORTEST_NAME else []
        rest = rest.replace(name, "") if width > SHORTEST_NAME else rest
    room = max(_widest(named, most - width_em(rest, bold=True)), SHORTEST_NAME)
    for name, width in widths.items():
        if width > room:
            title = title.replace(name, shorten(name, room, bold=True, tail=True))
    return shorten(title, most, bold=True)


def _widest(widths: Sequence[float], room: float) -> float:
    """The width that names may have, where those of larger widths are cut to it to fit a room."""
    for count, width in zip(range(len(widths), 0, -1), sorted(widths), strict=True):
        if width * count > room:
            return room / count
        room -= width
    return math.inf


def _texts(value: Plain) -> Iterator[str]:
    """Every text in a value of JSON."""
    if isinstance(value, str):
        yield value
    elif value is not None and not isinstance(value, float | int):
        parts: Iterable[Plain] = value.values() if hasattr(value, "values") else value
        for part in parts:
            yield from _texts(part)
