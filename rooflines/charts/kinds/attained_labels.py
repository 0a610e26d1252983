"""Labels of attained FLOP/s: numbers at the foot of stems, names beside curves, the peak."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import pl
from rooflines.basics.text import count, si
from rooflines.charts.frames import highest
from rooflines.charts.kit.place import Box, Place, Plane, Room, Segment, Spot, placed
from rooflines.charts.kit.text import shorten, width_em
from rooflines.charts.kit.themes import Margins

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["HEADROOM", "MARGINS", "labels_of"]

MARGINS = Margins(left=4.6, right=2.6)
NAME_ROOM = 14.0

PAST_EDGE = 2.0
"""How far a number at the foot of a stem may reach into the right margin [em]."""

HEADROOM = 1.12
"""Height of the plot, as a multiple of the peak."""

REACH = 5.0
"""How far a label can be from its point [em]."""

MIDDLE = 0.45
"""The height of the best place for a curve's name, as a share of the plot's."""

OFF_MIDDLE, CROSSED = 4.0, 10.0
"""Costs of a place at another height, and of one on a line [1]."""

FEET = tuple(
    Place(side * 0.35, -down, "left" if side > 0 else "right")
    for down in (0.9, 2.2, 3.5)
    for side in (-1, 1)
)
"""Places beside the foot of a stem, the lowest first."""


def labels_of(case: pl.DataFrame, size: str, span: tuple[float, float, float]) -> pl.DataFrame:
    """Names on the curves, numbers at the knees, and the peak, with their places.

    Args:
        case: The rows of one chip and combination.
        size: The name of the size.
        span: The plot's edges: sizes from and to, and the FLOP/s at its top.
    """
    curves = {
        str(key[0]): part.sort("size")
        for key, part in case.filter(kind="curve").group_by("series", maintain_order=True)
    }
    texts = _texts(case, size, span)
    anchors: dict[str, tuple[float, float]] = {}
    places = placed(MARGINS, lambda plot: _places(texts, curves, plot, span, anchors))
    for text in texts:
        if text["size"] is None:
            text["size"], text["flops_per_s"] = anchors.get(text["series"], (span[0], 0.0))
    frame = pl.DataFrame(texts, schema_overrides={"size": pl.Float64, "flops_per_s": pl.Float64})
    return frame.drop("role").hstack(places)


def _texts(case: pl.DataFrame, size: str, span: tuple[float, float, float]) -> list[dict[str, Any]]:
    """Text and position of every label; that of a curve's name is still open."""
    low, high, _ = span
    knees = case.filter(kind="knee").sort("order").to_dicts()
    peak = highest(case, "peak")
    style = {"style": "value"}
    texts: list[dict[str, Any]] = [
        {
            "style": "note",
            "series": "",
            "text": f"peak · {si(peak, 'FLOP/s')}",
            "size": low,
            "flops_per_s": peak,
            "role": "peak",
        }
    ]
    inside = [k for k in knees if k["size"] is not None and low <= k["size"] <= high]
    for index, knee in enumerate(inside):
        text = count(knee["size"]) if index else f"{size} = {count(knee['size'])}"
        at = {"size": knee["size"], "flops_per_s": 0.0}
        texts.append({**style, "series": knee["series"], "text": text, **at, "role": "knee"})
    for knee in knees:
        later = ""
        if knee["size"] is None:
            later = " · never"
        elif knee["size"] > high:
            later = f" · from {count(knee['size'])}"
        name = shorten(knee["series"], NAME_ROOM, bold=True) + later
        at = {"size": None, "flops_per_s": None}
        texts.append({**style, "series": knee["series"], "text": name, "role": "name", **at})
    return texts


class _Plot(Room):
    """The plot of one case in one layout: linear upwards, logarithmic across."""

    def __init__(
        self,
        curves: Mapping[str, pl.DataFrame],
        plot: tuple[float, float],
        span: tuple[float, float, float],
    ) -> None:
        super().__init__(plot)
        self.plane = Plane(span[:2], (0.0, span[2]), linear=True)
        self.curves = curves
        paths = [
            [self.at(row["size"], row["flops_per_s"]) for row in part.to_dicts()]
            for part in curves.values()
        ]
        self.lines = [(*a, *b) for path in paths for a, b in pairwise(path)]
        self.stems: list[Segment] = []

    def at(self, size: float, attains: float) -> tuple[float, float]:
        """A point of a curve in the plot, y downwards [em]."""
        return self.plane.at(self.plot, size, attains)

    def near(self, spot: Spot) -> list[Segment]:
        """The lines that a label near a point could cross."""
        reach = width_em(spot.text, bold=spot.bold) + REACH
        left, right, top, bottom = spot.x - reach, spot.x + reach, spot.y - REACH, spot.y + REACH
        lines = (line for line in (*self.lines, *self.stems) if line[2] > left and line[0] < right)
        return [
            line for line in lines if max(line[1], line[3]) > top and min(line[1], line[3]) < bottom
        ]


def _places(
    texts: Sequence[dict[str, Any]],
    curves: Mapping[str, pl.DataFrame],
    plot: tuple[float, float],
    span: tuple[float, float, float],
    anchors: dict[str, tuple[float, float]],
) -> list[Place | None]:
    """Places in one layout: numbers at the foot of their stems, then names beside their curves."""
    room = _Plot(curves, plot, span)
    room.stems = [
        (*room.at(t["size"], 0), *room.at(t["size"], span[2] / HEADROOM))
        for t in texts
        if t["role"] == "knee"
    ]
    places: list[Place | None] = []
    for text in texts:
        label: Place | None
        if text["role"] == "peak":
            spot = Spot(*room.at(text["size"], text["flops_per_s"]), text["text"])
            label = Place(0.3, -0.8, "left")
        elif text["role"] == "knee":
            spot = Spot(*room.at(text["size"], 0.0), text["text"], bold=True)
            label = _at_foot(spot, room)
        else:
            label, spot = _beside_curve(text, room, anchors)
        places.append(room.take(spot, label))
    return places


def _at_foot(spot: Spot, room: _Plot) -> Place | None:
    """A place beside the foot of a stem, the lowest first; on another stem only as a fallback."""
    bounds = Box(0.0, -math.inf, room.plot[0] + PAST_EDGE, math.inf)
    return room.best(spot, FEET, segments=room.near(spot), within=bounds)


def _beside_curve(
    text: Mapping[str, Any], room: _Plot, anchors: dict[str, tuple[float, float]]
) -> tuple[Place | None, Spot]:
    """A place for a curve's name: at the anchor of the other layout, else beside the best point."""
    rows = room.curves[text["series"]].to_dicts()
    fixed = anchors.get(text["series"])
    points = (
        [fixed]
        if fixed
        else [(row["size"], row["flops_per_s"]) for row in rows[len(rows) // 5 : -2 : 3]]
    )
    best: tuple[float, Place, Spot, tuple[float, float]] | None = None
    for off, anchor in sorted(
        (abs(room.at(*point)[1] / room.plot[1] - MIDDLE), point) for point in points
    ):
        if best and OFF_MIDDLE * off >= best[0]:
            break
        spot = Spot(
            *room.at(*anchor),
            text["text"],
            bold=True,
            sides=("br", "r", "tl", "l", "b", "t", "tr", "bl"),
            distance=0.5,
        )
        lines = room.near(spot)
        candidate = room.best(spot, segments=lines)
        if candidate is None:
            continue
        crossings = sum(candidate.box(spot).crossed(line) for line in lines)
        cost = CROSSED * crossings + OFF_MIDDLE * off + abs(candidate.dx) * 0.05
        if best is None or cost < best[0]:
            best = cost, candidate, spot, anchor
    if best is None:
        return None, Spot(0, 0, text["text"])
    anchors.setdefault(text["series"], best[3])
    return best[1], best[2]
