"""Labels of a roofline: at the foot, beside the ridge, above ceilings, at points, along slopes."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import groupby, pairwise, product
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import pl
from rooflines.basics.text import count, si, significant
from rooflines.charts.kit.place import Box, Place, Room, Segment, Spot, placed
from rooflines.charts.kit.text import part_name, width_em
from rooflines.charts.roof import REGIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.charts.kit.themes import Margins
    from rooflines.charts.roof import Roof

FOOT = 1.1
"""Height of the words at the foot of the regions [em]."""

CLEAR = 0.8
"""Room left before and after a label [em]."""

OFF_SLOPE = 0.75
"""From a slope to the middle of its name [em]."""

ALONG = (0.42, 0.5, 0.34, 0.58, 0.26, 0.66, 0.18, 0.74, 0.82)
"""Places for its name along a slope, best first."""

SQUARES = 9
"""Boxes that a turned text is approximated by [1]."""

POINT_SIDES = ("tl", "br", "b", "t", "r", "l")

APART = 1.3
"""Room between ceilings from which on a label fits between them [em]."""

ABOVE, HIGHEST = 0.65, 0.4
"""From a ceiling up to the middle of its label, and the least height of that below the top [em]."""

STEPS = 24
"""Places along a ceiling that are tried for a label on it, one em apart [1]."""


def labels_of(roof: Roof, margins: Margins) -> pl.DataFrame:
    """Every label of a roof with its `style`, and its places in both layouts."""
    labels = _Labels(roof)
    texts = labels.texts()
    places = placed(margins, lambda plot: labels.places(plot, texts))
    shown = ("role", "style", "text", "x", "y")
    rows = [{name: text[name] for name in shown} for text in texts]
    return pl.DataFrame(rows).hstack(places)


class _Labels:
    """The labels of one roof: their texts, then their places in each layout."""

    def __init__(self, roof: Roof) -> None:
        self.roof, self.plane = roof, roof.plane

    def texts(self) -> list[dict[str, Any]]:
        """Text and position of every label; earlier ones take their places first."""
        bottom = self.roof.bottom
        cuts = [x for x, _ in self.roof.path(self.roof.main["bytes_per_s"], self.roof.peak)]
        texts: list[dict[str, Any]] = [
            {
                "role": "foot",
                "style": region,
                "text": f"{region}-bound",
                "x": math.sqrt(left * right),
                "y": bottom,
                "span": (left, right),
            }
            for region, (left, right) in zip(REGIONS, pairwise(cuts), strict=True)
        ]
        texts.append(
            {
                "role": "ridge",
                "style": "strong",
                "text": f"ridge · {significant(self.roof.main['intensity'])} FLOP/byte",
                "x": self.roof.main["intensity"],
                "y": bottom,
            }
        )
        for peak, names in self.roof.ceilings.items():
            style = "strong" if peak == self.roof.peak else "note"
            texts.append(
                {
                    "role": "ceiling",
                    "style": style,
                    "text": f"{', '.join(names)} · {si(peak, 'FLOP/s')}",
                    "x": self.roof.high,
                    "y": peak,
                }
            )
        texts += [
            {
                "role": "point",
                "style": "label",
                "text": f"{point['name']} = {count(point['B'])}",
                "x": point["intensity"],
                "y": point["flops_per_s"],
            }
            for point in self.roof.points
        ]
        for slope in self.roof.slopes:
            style = "strong" if slope is self.roof.main else "note"
            text = f"{part_name(slope['name'])} · {si(slope['bytes_per_s'], 'B/s')}"
            corners = self.roof.path(slope["bytes_per_s"], self.roof.peak)
            texts.append(
                {
                    "role": "slope",
                    "style": style,
                    "text": text,
                    "x": corners[0][0],
                    "y": corners[0][1],
                    "end": corners[1],
                }
            )
        return texts

    def places(self, plot: tuple[float, float], texts: list[dict[str, Any]]) -> list[Place | None]:
        """Places of all labels in one layout."""
        groups = {
            role: list(group) for role, group in groupby(texts, key=lambda text: text["role"])
        }
        spots = {role: [self._spot(text, plot) for text in group] for role, group in groups.items()}
        room = Room(plot)
        fixed: dict[str, Sequence[Place | None]] = {
            "foot": self._at_foot(groups["foot"], spots["foot"], plot),
            "ridge": [_beside_ridge(spot, plot) for spot in spots["ridge"]],
        }
        places: list[Place | None] = [
            room.take(spot, place)
            for role, group in fixed.items()
            for spot, place in zip(spots[role], group, strict=True)
        ]
        points = [replace(spot, sides=POINT_SIDES) for spot in spots.get("point", [])]
        places += _at_ceilings(spots["ceiling"], room, [spot.dot for spot in points])
        places += room.place(points, self._lines(plot))
        return places + self._along_slopes(groups["slope"], spots["slope"], room)

    def _lines(self, plot: tuple[float, float]) -> list[Segment]:
        """Slopes, ceilings, and the rule at the ridge."""
        roof = self.roof
        ends = [
            *(roof.path(slope["bytes_per_s"], roof.peak)[:2] for slope in roof.slopes),
            *(roof.path(roof.main["bytes_per_s"], peak)[1:] for peak in roof.ceilings),
            [(roof.main["intensity"], roof.peak), (roof.main["intensity"], roof.bottom)],
        ]
        return [(*self.plane.at(plot, *a), *self.plane.at(plot, *b)) for a, b in ends]

    def _spot(self, text: Mapping[str, Any], plot: tuple[float, float]) -> Spot:
        x, y = self.plane.at(plot, text["x"], text["y"])
        return Spot(x, y, text["text"], bold=text["style"] not in ("label", "note"))

    def _at_foot(
        self, group: Sequence[Mapping[str, Any]], spots: Sequence[Spot], plot: tuple[float, float]
    ) -> list[Place | None]:
        """The names of regions that are wide enough."""
        places: list[Place | None] = []
        for text, spot in zip(group, spots, strict=True):
            left, right = (self.plane.at(plot, x, self.roof.bottom)[0] for x in text["span"])
            places.append(
                Place(0.0, -FOOT, "center")
                if right - left > width_em(spot.text, bold=True) + CLEAR
                else None
            )
        return places

    def _along_slopes(
        self, group: Sequence[Mapping[str, Any]], spots: Sequence[Spot], room: Room
    ) -> list[Place | None]:
        """Bandwidths along their slopes, turned like them, if the turned text overlaps nothing."""
        places: list[Place | None] = []
        for text, spot in zip(group, spots, strict=True):
            end = self.plane.at(room.plot, *text["end"])
            angle = math.atan2(spot.y - end[1], end[0] - spot.x)
            length = math.hypot(end[0] - spot.x, spot.y - end[1])
            half = width_em(spot.text, bold=spot.bold) / 2
            best = None
            for share, off in product(ALONG, (-OFF_SLOPE, OFF_SLOPE)):
                along = length * share
                if along - half < CLEAR or along + half > length - CLEAR:
                    continue
                boxes = _turned(spot, along, off, angle)
                if not any(box.meets(other) for box in boxes for other in room.taken):
                    best = Place(along, off, "center")
                    room.taken += boxes
                    break
            places.append(best)
        return places


def _beside_ridge(spot: Spot, plot: tuple[float, float]) -> Place:
    """The ridge's number beside its line, on the side that has room."""
    right = spot.x + width_em(spot.text, bold=True) + CLEAR < plot[0]
    return Place(0.5, -FOOT - 1.7, "left") if right else Place(-0.5, -FOOT - 1.7, "right")


def _at_ceilings(spots: Sequence[Spot], room: Room, dots: Sequence[Box]) -> list[Place | None]:
    """Names above the right ends of their ceilings, the highest first.

    Where the next one above is too close, a name is on its own line, left of the names above, or
    below it.
    """
    places = []
    above = -math.inf
    for spot in spots:
        place: Place | None = Place(-0.2, max(-ABOVE, HIGHEST - spot.y), "right")
        if spot.y - above < APART:
            along = [
                Place(-0.2 - step, down, "right") for down in (0.0, ABOVE) for step in range(STEPS)
            ]
            place = room.best(spot, along, avoid=dots)
        places.append(room.take(spot, place))
        above = spot.y
    return places


def _turned(spot: Spot, along: float, off: float, angle: float) -> list[Box]:
    """The area of a text along a slope, as a row of squares."""
    wide = width_em(spot.text, bold=spot.bold)
    boxes = []
    for step in range(SQUARES):
        way = along + (step / (SQUARES - 1) - 0.5) * wide
        x, y = (
            spot.x + way * math.cos(angle) + off * math.sin(angle),
            spot.y - way * math.sin(angle) + off * math.cos(angle),
        )
        boxes.append(Box(x - OFF_SLOPE, y - OFF_SLOPE, x + OFF_SLOPE, y + OFF_SLOPE))
    return boxes
