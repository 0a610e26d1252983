"""Titles and subtitles, fitted to a slide's width."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rooflines.charts.kit.chart_text import chip_label, shorten, width_em, wrapped
from rooflines.charts.kit.themes import plot_sizes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflines.charts.kit.themes import Margins

MAX_TITLE_WIDTH, MAX_SUBTITLE_WIDTH = 34.0, 56.0
"""Maximum widths of the title and of a subtitle line, in their own font size [em]."""

TITLE_SIZE = 1.6
"""Title font size / subtitle font size [1]."""

RIGHT_MARGIN = 1.5
"""Margin right of title and subtitle [em]."""

MIN_NAME_WIDTH = 5.0
"""Minimum width of a name in a title [em]."""


def title_room(margins: Margins) -> float:
    """Maximum title width [em]."""
    return min(MAX_TITLE_WIDTH, _width(margins) / TITLE_SIZE)


def title_fits(title: str, margins: Margins) -> bool:
    """Check that a title fits without shortening."""
    return width_em(title, bold=True) <= title_room(margins)


def fitted_subtitle(text: str, margins: Margins) -> list[str]:
    """Subtitle wrapped into lines."""
    return wrapped(text, min(MAX_SUBTITLE_WIDTH, _width(margins)))


def fitted_title(title: str, margins: Margins, names: Sequence[str] = ()) -> str:
    """Fit a title to its width by shortening the names in it."""
    max_width = title_room(margins)
    if width_em(title, bold=True) <= max_width:
        return title
    labels = dict.fromkeys(label for name in names for label in (chip_label(name), name))
    widths = {name: width_em(name, bold=True) for name in sorted(labels, key=len, reverse=True)}
    rest, name_widths = title, []
    for name, width in widths.items():
        if width > MIN_NAME_WIDTH:
            name_widths += [width] * rest.count(name)
            rest = rest.replace(name, "")
    room = max(_widest(name_widths, max_width - width_em(rest, bold=True)), MIN_NAME_WIDTH)
    for name, width in widths.items():
        if width > room:
            title = title.replace(name, shorten(name, room, bold=True, tail=True))
    return shorten(title, max_width, bold=True)


def _width(margins: Margins) -> float:
    """Width for text above a slide's plot [em]."""
    slide = plot_sizes(margins)["slide"]
    across: float = (slide["width"] + slide["padding"]["right"]) / slide["em"]
    return across - RIGHT_MARGIN


def _widest(widths: Sequence[float], room: float) -> float:
    """Width limit for names so that together they fit a room [em]."""
    for count, width in zip(range(len(widths), 0, -1), sorted(widths), strict=True):
        if width * count > room:
            return room / count
        room -= width
    return math.inf
