"""The texts that a chart draws, and what is wrong with a specification.

Texts come from the scenegraph, each with the rectangle it takes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import altair as alt
import vl_convert as vlc
from jsonschema import ValidationError

from rooflines.charts.kit import VEGA_LITE
from rooflines.charts.kit.render import MOST_BYTES, MOST_ROWS, dumps, register_fonts
from rooflines.charts.kit.text import width_em
from rooflines.charts.kit.themes import SIZES, theme, themed

EVIL = "</script><script>alert(1)</script>"
LONG = (
    "a-very-long-name-of-a-shape-that-somebody-thought-would-say-everything"
    "-there-is-to-say-about-this-one"
)
TALL = 0.95
"""Height of a line of digits and letters, without line spacing [em]."""


@dataclass(frozen=True)
class Text:
    """A line of text as drawn.

    Attributes:
        text: The text.
        corners: Corners of the rectangle it takes, which may be turned [px].
        role: Vega's role of the mark: `axis-label`, `mark`, `title-text`, ...
    """

    text: str
    corners: tuple[tuple[float, float], ...]
    role: str

    def meets(self, other: Text) -> bool:
        """Whether the two rectangles overlap: no line along a side separates them."""
        for corners in (self.corners, other.corners):
            for (x1, y1), (x2, y2) in ((corners[0], corners[1]), (corners[1], corners[2])):
                mine, theirs = (
                    [(y2 - y1) * -x + (x2 - x1) * y for x, y in c]
                    for c in (self.corners, other.corners)
                )
                slack = 0.5 * math.hypot(x2 - x1, y2 - y1)
                if max(mine) <= min(theirs) + slack or max(theirs) <= min(mine) + slack:
                    return False
        return True


def texts(spec: Mapping[str, Any], size: str, *, dark: bool = False) -> list[Text]:
    """Every visible text of a chart in one size and theme, without halos."""
    register_fonts()
    graph = vlc.vegalite_to_scenegraph(
        themed(spec, SIZES[size], dark=dark), vl_version=VEGA_LITE, allowed_base_urls=[]
    )
    return list(dict.fromkeys(_walk(graph["scenegraph"], 0.0, 0.0, "")))


def _walk(node: Mapping[str, Any], x: float, y: float, role: str) -> Iterator[Text]:
    if node.get("marktype") == "text":
        for item in node["items"]:
            yield from _lines(item, x, y, node.get("role", ""))
        return
    for item in node.get("items", []):
        if node.get("marktype") == "group":
            yield from _walk(item, x + item.get("x", 0.0), y + item.get("y", 0.0), role)
        else:
            yield from _walk(item, x, y, role)


def _lines(item: Mapping[str, Any], x: float, y: float, role: str) -> Iterator[Text]:
    lines = item.get("text", "")
    lines = [str(line) for line in lines] if isinstance(lines, list) else [str(lines)]
    if (
        not any(lines)
        or item.get("opacity", 1) == 0
        or item.get("stroke") not in (None, "transparent")
    ):
        return
    size, angle = float(item.get("fontSize", 11)), math.radians(item.get("angle", 0.0))
    bold = str(item.get("fontWeight", "")) in ("600", "bold")
    down = {
        "top": 0.5,
        "middle": 0.0,
        "bottom": -0.5,
        "alphabetic": -0.35,
        "line-top": 0.5,
        "line-bottom": -0.5,
    }
    for number, line in enumerate(lines):
        wide = width_em(line, bold=bold) * size
        left = {"left": 0.0, "center": -wide / 2, "right": -wide, "start": 0.0, "end": -wide}[
            item.get("align", "left")
        ]
        middle = down[item.get("baseline", "alphabetic")] * size + number * item.get(
            "lineHeight", size * 1.3
        )
        left, middle = left + item.get("dx", 0.0), middle + item.get("dy", 0.0)
        half = size * TALL / 2 * 0.8
        box = (
            (left, middle - half),
            (left + wide, middle - half),
            (left + wide, middle + half),
            (left, middle + half),
        )
        turned = tuple(
            (
                px * math.cos(angle) - py * math.sin(angle),
                px * math.sin(angle) + py * math.cos(angle),
            )
            for px, py in box
        )
        yield Text(
            line,
            tuple(
                (round(x + item.get("x", 0.0) + px, 2), round(y + item.get("y", 0.0) + py, 2))
                for px, py in turned
            ),
            role,
        )


def overlaps(spec: Mapping[str, Any], size: str, *, dark: bool = False) -> list[tuple[str, str]]:
    """Pairs of texts of a chart that overlap."""
    return [
        (a.text, b.text) for a, b in combinations(texts(spec, size, dark=dark), 2) if a.meets(b)
    ]


def outside(spec: Mapping[str, Any], size: str) -> list[str]:
    """Texts that extend beyond the picture."""
    padding = spec["usermeta"]["looks"][size]["padding"]
    left, top = padding["left"], padding["top"]
    wide, tall = SIZES[size].width, SIZES[size].height
    return [
        t.text
        for t in texts(spec, size)
        if any(not (-1 <= x + left <= wide + 1 and -1 <= y + top <= tall + 1) for x, y in t.corners)
    ]


def says(spec: Mapping[str, Any], size: str, pattern: str) -> bool:
    """Whether any text of the chart matches a pattern."""
    return any(re.search(pattern, t.text) for t in texts(spec, size))


def misfits(specs: Mapping[str, Mapping[str, Any]], size: str) -> dict[str, Any]:
    """Charts with texts that overlap or extend beyond the picture, and the first such texts."""
    wrong = {
        name: (overlaps(spec, size)[:3], outside(spec, size)[:3]) for name, spec in specs.items()
    }
    return {name: texts for name, texts in wrong.items() if texts != ([], [])}


def fetching_or_themed(specs: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Charts whose specification has an address besides the schema's, a config, or a colour."""
    texts = {
        name: dumps({key: value for key, value in spec.items() if key != "$schema"})
        for name, spec in specs.items()
    }
    ink = theme(dark=False).ink
    return [
        name
        for name, text in texts.items()
        if "http" in text or "config" in specs[name] or ink in text
    ]


def oversized(specs: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Charts with more rows or bytes than a page can draw."""
    return [
        name
        for name, spec in specs.items()
        if sum(len(rows) for rows in spec["datasets"].values()) > MOST_ROWS
        or len(dumps(spec)) > MOST_BYTES
    ]


def invalid(specs: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Charts that Vega-Lite's schema refuses, with the reason."""
    wrong = {}
    for name, spec in specs.items():
        try:
            alt.LayerChart.validate({**spec, "usermeta": {}})
        except ValidationError as error:
            wrong[name] = str(error)
    return wrong
