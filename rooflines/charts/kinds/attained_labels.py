"""Labels of attained FLOP/s: numbers at the foot of stems, names beside curves, the peak."""

from __future__ import annotations

import math
from bisect import bisect_left
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.basics.lazy import pl
from rooflines.basics.text import count, si
from rooflines.charts.kinds.attained_curves import between
from rooflines.charts.kit.place import (
    WIDEST,
    Box,
    Place,
    Plane,
    Room,
    Segment,
    Spot,
    in_layouts,
    stacked,
)
from rooflines.charts.kit.text import shorten
from rooflines.charts.kit.themes import Margins

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.charts.kinds.attained_cases import Case
    from rooflines.charts.kinds.attained_curves import Point

__all__ = ["HEADROOM", "MARGINS", "labels_of"]

MARGINS = Margins(left=4.6, right=2.6)
NAME_ROOM = 14.0

PAST_EDGE = 2.0
"""How far a number at the foot of a stem may reach into the right margin [em]."""

HEADROOM = 1.12
"""Height of the plot, as a multiple of the peak."""

MIDDLE = 0.45
"""The height of the best place for a curve's name, as a share of the plot's."""

OFF_MIDDLE, APART, CROSSED = 4.0, 1.0, 10.0
"""Costs of a place at another height, of one behind a line, and of one on a line [1]."""

DIGITS = 3
"""Significant digits of heights that places of labels depend on."""

FIGURES = 4
"""Significant digits of the points that labels stand beside."""

STEPS = 4
"""Parts of a curve between two of its points that labels keep off, each straight."""

ANCHORED = (0.2, 0.95)
"""The part of the width, from the left, in which curves have their names."""

SIDES = ("br", "r", "tl", "l", "b", "t", "tr", "bl")
"""Sides of a point that the name of its curve is tried on, best first."""

FEET = tuple(
    Place(side * 0.35, -down, "left" if side > 0 else "right")
    for down in (0.9, 2.2, 3.5)
    for side in (-1, 1)
)
"""Places beside the foot of a stem, the lowest first."""


class _Text(NamedTuple):
    """A label. Its point is at a size and a share of the peak; open for the name of a curve."""

    role: str
    series: str
    text: str
    at: Point | None


class _Picture(NamedTuple):
    """What places of labels depend on: equal pictures have equal places.

    Attributes:
        texts: The labels.
        curves: By series the points of a curve: sizes, and shares of the peak.
    """

    texts: tuple[_Text, ...]
    curves: tuple[tuple[str, tuple[Point, ...]], ...]


class _Placed(NamedTuple):
    """The places of a picture's labels by layout, and where the names of its curves are."""

    places: Mapping[str, Sequence[Place | None]]
    anchors: Mapping[str, Point]


def labels_of(cases: Sequence[Case], size: str, span: tuple[float, float]) -> pl.DataFrame:
    """Names on the curves, numbers at the knees, and the peak, with their places.

    Args:
        cases: What is shown for each choice.
        size: The name of the size.
        span: The plot's edges: sizes from and to.
    """
    known: dict[_Picture, _Placed] = {}
    rows: list[tuple[Any, ...]] = []
    places: dict[str, list[Place | None]] = {}
    for case in cases:
        texts = _texts(case, size, span)
        picture = _picture(case, texts)
        found = known.get(picture)
        if found is None:
            found = known[picture] = _placed(picture, span)
        for text in texts:
            at, share = text.at or found.anchors.get(text.series, (span[0], 0.0))
            style = "note" if text.role == "peak" else "value"
            choice = case.choice.values()
            rows.append((*choice, style, text.series, text.text, at, share * case.peak))
        for layout, of_layout in found.places.items():
            places.setdefault(layout, []).extend(of_layout)
    columns = [*cases[0].choice, "style", "series", "text", "size", "flops_per_s"]
    labels = pl.DataFrame(rows, schema=columns, orient="row").hstack(stacked(places))
    return labels.with_columns(pl.col("size", "flops_per_s").round_sig_figs(FIGURES))


def _texts(case: Case, size: str, span: tuple[float, float]) -> list[_Text]:
    """Every label, the peak first."""
    low, high = span
    texts = [_Text("peak", "", f"peak · {si(case.peak, 'FLOP/s')}", (low, 1.0))]
    inside = [k for k in case.knees if k["size"] is not None and low <= k["size"] <= high]
    for index, knee in enumerate(inside):
        text = count(knee["size"]) if index else f"{size} = {count(knee['size'])}"
        texts.append(_Text("knee", knee["series"], text, (knee["size"], 0.0)))
    for knee in case.knees:
        later = ""
        if knee["size"] is None:
            later = " · never"
        elif knee["size"] > high:
            later = f" · from {count(knee['size'])}"
        name = shorten(knee["series"], NAME_ROOM, bold=True) + later
        texts.append(_Text("name", knee["series"], name, None))
    return texts


def _picture(case: Case, texts: Sequence[_Text]) -> _Picture:
    """What the places of a case's labels depend on; all digits of its peak are the widest one."""
    peak, *others = texts
    curves = (
        (
            series,
            tuple((at, float(f"{attains / case.peak:.{DIGITS}g}")) for at, attains in points),
        )
        for series, points in case.curves.items()
    )
    return _Picture(
        (peak._replace(text=peak.text.translate(WIDEST)), *others),
        tuple(curves),
    )


def _placed(picture: _Picture, span: tuple[float, float]) -> _Placed:
    """Places in both layouts; the name of a curve stays at its point."""
    curves = {series: list(_steps(points)) for series, points in picture.curves}
    anchors: dict[str, Point] = {}
    places = in_layouts(
        MARGINS,
        lambda plot: _places(_Plot(picture.texts, curves, plot, span), picture.texts, anchors),
    )
    return _Placed(places, anchors)


def _steps(points: Sequence[Point]) -> Iterator[Point]:
    """A curve with further points where it rises or falls."""
    for one, other in pairwise(points):
        yield one
        if one[1] != other[1]:
            for step in range(1, STEPS):
                at = one[0] * (other[0] / one[0]) ** (step / STEPS)
                yield at, between(one, other, at)
    yield points[-1]


class _Plot(Room):
    """The plot of one picture in one layout: linear upwards, logarithmic across."""

    def __init__(
        self,
        texts: Sequence[_Text],
        curves: Mapping[str, Sequence[Point]],
        plot: tuple[float, float],
        span: tuple[float, float],
    ) -> None:
        super().__init__(plot)
        self.plane = Plane(span, (0.0, HEADROOM), linear=True)
        self.curves = {
            series: [(self.at(*point), point) for point in points]
            for series, points in curves.items()
        }
        self.lines = [_Line.of([at for at, _ in points]) for points in self.curves.values()]
        self.stems = [self.at(*text.at)[0] for text in texts if text.role == "knee" and text.at]
        self.roof = self.at(span[0], 1.0)[1]

    def at(self, size: float, share: float) -> tuple[float, float]:
        """A point of a curve in the plot, y downwards [em]."""
        return self.plane.at(self.plot, size, share)

    def crossings(self, box: Box, segments: Sequence[Segment], enough: float) -> int:
        """How many curves, stems and segments pass through a label."""
        found = super().crossings(box, segments, enough) if segments else 0
        if box.bottom > self.roof:
            found += sum(box.left < x < box.right for x in self.stems)
        for line in self.lines:
            if found >= enough:
                break
            found += line.crosses(box)
        return found


class _Line(NamedTuple):
    """A curve in a plot, its points from the left, y downwards [em].

    Attributes:
        across, down: The points.
        highest: The height of the highest point from the left up to each.
        lowest: The height of the lowest point from each up to the right.
    """

    across: Sequence[float]
    down: Sequence[float]
    highest: Sequence[float]
    lowest: Sequence[float]

    @classmethod
    def of(cls, points: Sequence[tuple[float, float]]) -> _Line:
        """A curve by its points."""
        across, down = zip(*points, strict=True)
        return cls(across, down, [*accumulate(down, min)], [*accumulate(reversed(down), max)][::-1])

    def crosses(self, box: Box) -> bool:
        """Whether the curve passes through a box."""
        across, down = self.across, self.down
        last = bisect_left(across, box.right)
        if last == 0 or self.highest[min(last, len(down) - 1)] >= box.bottom:
            return False
        first = bisect_left(across, box.left, 0, last)
        if first == len(across) or self.lowest[max(first - 1, 0)] <= box.top:
            return False
        heights = [*down[first:last]]
        for edge, index in ((box.left, first), (box.right, last)):
            if 0 < index < len(across):
                share = (edge - across[index - 1]) / (across[index] - across[index - 1])
                heights.append(down[index - 1] + share * (down[index] - down[index - 1]))
        return max(heights) > box.top and min(heights) < box.bottom


def _places(room: _Plot, texts: Sequence[_Text], anchors: dict[str, Point]) -> list[Place | None]:
    """Places in one layout: numbers at the foot of their stems, then names beside their curves."""
    places: list[Place | None] = []
    for text in texts:
        label: Place | None
        if text.at is None:
            label, spot = _beside_curve(text, room, anchors)
        else:
            spot = Spot(*room.at(*text.at), text.text, bold=text.role == "knee")
            label = _at_foot(spot, room) if spot.bold else Place(0.3, -0.8, "left")
        places.append(room.take(spot, label))
    return places


def _at_foot(spot: Spot, room: _Plot) -> Place | None:
    """A place beside the foot of a stem, the lowest first; on another stem only as a fallback."""
    bounds = Box(0.0, -math.inf, room.plot[0] + PAST_EDGE, math.inf)
    return room.best(spot, FEET, within=bounds)


def _beside_curve(text: _Text, room: _Plot, anchors: dict[str, Point]) -> tuple[Place | None, Spot]:
    """A place for a curve's name: at the anchor of the other layout, else beside the best point."""
    fixed = anchors.get(text.series)
    low, high = (share * room.plot[0] for share in ANCHORED)
    points = [(room.at(*fixed), fixed)] if fixed else room.curves[text.series][::2]
    inside = [each for each in points if low <= each[0][0] <= high]
    near = sorted(
        (abs(y / room.plot[1] - MIDDLE), x, y, point) for (x, y), point in inside or points
    )
    best: tuple[float, Place, Spot, Point] | None = None
    fewest = math.inf
    for off, x, y, point in near:
        if best and OFF_MIDDLE * off >= best[0]:
            break
        spot = Spot(x, y, text.text, bold=True, sides=SIDES, distance=0.5)
        candidate = room.best(spot, fewer_than=fewest + 1)
        if candidate is None:
            continue
        box = candidate.box(spot)
        fewest = room.crossings(box, (), math.inf)
        behind = room.crossings(box.with_point(x, y), (), math.inf) - fewest - 1  # but its own
        cost = CROSSED * fewest + APART * max(behind, 0) + OFF_MIDDLE * off
        if best is None or cost < best[0]:
            best = cost, candidate, spot, point
    if best is None:
        return None, Spot(0, 0, text.text)
    anchors.setdefault(text.series, best[3])
    return best[1], best[2]
