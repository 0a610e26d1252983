"""What is drawn of a chart, read from its scenegraph: every text with the room it takes."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from rooflines.charts.kit.render import scenegraph
from rooflines.charts.kit.text import width_em
from rooflines.charts.kit.themes import SIZES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TALL = 0.95
"""Height of a line of digits and letters, without the room between lines, in its own size."""


@dataclass(frozen=True)
class Text:
    """A line of text as it is drawn.

    Attributes:
        text: What it says.
        corners: The four corners of the room it takes [px].
        role: What Vega calls the mark: `axis-label`, `mark`, `title-text`, ...
    """

    text: str
    corners: tuple[tuple[float, float], ...]
    role: str

    def meets(self, other: Text) -> bool:
        """Whether the two rectangles overlap, turned as they are: no line along one of their sides goes between them."""
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
    """Every visible text of a chart in one look, halos left out."""
    found = scenegraph(spec, size, dark=dark)
    return list(dict.fromkeys(_walk(found["scenegraph"], 0.0, 0.0, "")))


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
    """Pairs of texts of a chart that lie on one another."""
    return [
        (a.text, b.text) for a, b in combinations(texts(spec, size, dark=dark), 2) if a.meets(b)
    ]


def outside(spec: Mapping[str, Any], size: str) -> list[str]:
    """Texts that go beyond the picture's edge."""
    look = spec["usermeta"]["looks"][size]
    left, top = look["padding"]["left"], look["padding"]["top"]
    wide, tall = SIZES[size].width, SIZES[size].height
    return [
        t.text
        for t in texts(spec, size)
        if any(not (-1 <= x + left <= wide + 1 and -1 <= y + top <= tall + 1) for x, y in t.corners)
    ]


def chosen(spec: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The same chart after a reader's choice."""
    params = [
        {**p, "value": values[p["name"]]} if p.get("name") in values else p for p in spec["params"]
    ]
    return {**spec, "params": params}


def says(spec: Mapping[str, Any], size: str, pattern: str) -> bool:
    """Whether any text of the chart matches."""
    return any(re.search(pattern, t.text) for t in texts(spec, size))
