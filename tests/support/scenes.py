"""The texts that a chart draws, and what is wrong with a specification.

Texts come from the scenegraph, each with the rectangle it takes; points are complex numbers [px].
"""

import cmath
import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, pairwise

import altair as alt
import vl_convert as vlc
from jsonschema import ValidationError

from rooflines.charts.kit import VEGA_LITE
from rooflines.charts.kit.chart_text import width_em
from rooflines.charts.kit.render import dumps, register_fonts
from rooflines.charts.kit.themes import SIZES, theme, themed

TALL = 0.76
"""Height of digits and letters that must stay free, without line spacing [em]."""

LEFT = {"left": 0.0, "center": -0.5, "right": -1.0, "start": 0.0, "end": -1.0}
"""Start of a text, as a share of its width."""

DOWN = {
    "top": 0.5,
    "middle": 0.0,
    "bottom": -0.5,
    "alphabetic": -0.35,
    "line-top": 0.5,
    "line-bottom": -0.5,
}
"""Middle of a text [em]."""


@dataclass(frozen=True)
class Text:
    """A line of text as drawn: the corners of its rectangle, which may be turned, and its role."""

    text: str
    corners: tuple[complex, ...]
    role: str

    def meets(self, other):
        """True if two rectangles overlap: no line along a side separates them."""
        for corners in (self.corners, other.corners):
            for start, end in (corners[:2], corners[1:3]):
                across = ((end - start) * 1j).conjugate()
                mine, theirs = (
                    [(corner * across).real for corner in each.corners] for each in (self, other)
                )
                slack = 0.5 * abs(across)
                if max(mine) <= min(theirs) + slack or max(theirs) <= min(mine) + slack:
                    return False
        return True


def texts(spec, size):
    """Every visible text of a chart in one size, without halos."""
    return _drawn(spec, size)[0]


def struck(spec, size):
    """The texts of a chart that a curve passes through."""
    found, curves = _drawn(spec, size)
    parts = [_thin(*ends) for curve in curves for ends in pairwise(curve) if ends[0] != ends[1]]
    return [text.text for text in found if any(text.meets(part) for part in parts)]


def _thin(start, end):
    """A straight part of a curve as the rectangle of a text, 2 px wide."""
    across = (end - start) / abs(end - start) * 1j
    return Text("", (start - across, end - across, end + across, start + across), "")


def _drawn(spec, size):
    return _scene(dumps(themed(spec, SIZES[size], dark=False)))


@lru_cache(32)
def _scene(spec):
    """Texts and curves of a specification in JSON, which a test asks for several times in a row."""
    register_fonts()
    graph = vlc.vegalite_to_scenegraph(spec, vl_version=VEGA_LITE, allowed_base_urls=[])
    marks = list(_marks(graph["scenegraph"], 0j))
    found = [
        text
        for node, at in marks
        if node["marktype"] == "text"
        for item in node["items"]
        for text in _lines(item, at, node.get("role", ""))
    ]
    curves = [
        [at + complex(item["x"], item["y"]) for item in node["items"]]
        for node, at in marks
        if node["marktype"] == "line"
    ]
    return list(dict.fromkeys(found)), curves


def _marks(node, at):
    """The marks in a node of the scenegraph whose origin is at a point, with their origins."""
    if node.get("marktype", "group") != "group":
        yield node, at
        return
    for item in node.get("items", []):
        moved = node.get("marktype") == "group"
        yield from _marks(item, at + moved * complex(item.get("x", 0.0), item.get("y", 0.0)))


def _lines(item, at, role):
    """The lines of a text; none of an invisible one."""
    lines = item.get("text", "")
    lines = [str(line) for line in lines] if isinstance(lines, list) else [str(lines)]
    halo = item.get("stroke") not in (None, "transparent")
    if not any(lines) or item.get("opacity", 1) == 0 or halo:
        return
    size = float(item.get("fontSize", 11))
    turn = cmath.exp(1j * math.radians(item.get("angle", 0.0)))
    origin = at + complex(item.get("x", 0.0), item.get("y", 0.0))
    bold = str(item.get("fontWeight", "")) in ("600", "bold")
    for number, line in enumerate(lines):
        wide, half = width_em(line, bold=bold) * size, size * TALL / 2
        left = LEFT[item.get("align", "left")] * wide + item.get("dx", 0.0)
        middle = DOWN[item.get("baseline", "alphabetic")] * size + item.get("dy", 0.0)
        middle += number * item.get("lineHeight", size * 1.3)
        top, bottom = (middle - half) * 1j, (middle + half) * 1j
        box = (left + top, left + wide + top, left + wide + bottom, left + bottom)
        yield Text(line, tuple(origin + corner * turn for corner in box), role)


def overlaps(spec, size):
    """Pairs of texts of a chart that overlap."""
    every = combinations(texts(spec, size), 2)
    return [(one.text, other.text) for one, other in every if one.meets(other)]


def outside(spec, size):
    """Texts that extend beyond the picture."""
    padding, whole = spec["usermeta"]["looks"][size]["padding"], SIZES[size]
    inset = complex(padding["left"], padding["top"])
    return [
        text.text
        for text in texts(spec, size)
        for corner in [each + inset for each in text.corners]
        if not (-1 <= corner.real <= whole.width + 1 and -1 <= corner.imag <= whole.height + 1)
    ]


def misfits(specs, size):
    """Charts with texts that overlap or extend beyond the picture, and the first such texts."""
    wrong = {
        name: (overlaps(spec, size)[:3], outside(spec, size)[:3]) for name, spec in specs.items()
    }
    return {name: texts for name, texts in wrong.items() if texts != ([], [])}


def fetching_or_themed(specs):
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


def invalid(specs):
    """Charts that Vega-Lite's schema refuses, with the reason."""
    wrong = {}
    for name, spec in specs.items():
        try:
            alt.LayerChart.validate({**spec, "usermeta": {}})
        except ValidationError as error:
            wrong[name] = str(error)
    return wrong
