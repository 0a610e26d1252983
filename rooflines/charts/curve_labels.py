"""Labels of attained FLOP/s: numbers at the foot of stems, names beside curves, the peak."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from rooflines.basics.lazy import pl
from rooflines.basics.text import count, si
from rooflines.charts.kit.place import LAYOUTS, Box, Place, Plane, Room, Spot, placed
from rooflines.charts.kit.text import shorten
from rooflines.charts.kit.themes import Margins, plot_size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.charts.kit.place import Segment

    Point = tuple[float, float]  # a size, and what it attains [FLOP/s]

MARGINS = Margins(left=4.6, right=2.6)
NAME_ROOM, PAST_EDGE = 14.0, 2.0
"""Width of a curve's name, and how far a number may reach into the right margin [em]."""

MIDDLE, ANCHORED = 0.45, (0.2, 0.95)
"""The best height of a name, and the part of the width that has names, as shares of the plot's."""

SIDES = ("br", "r", "tl", "l", "b", "t", "tr", "bl")
FEET = tuple(
    Place(x * 0.35, -y, "left" if x > 0 else "right") for y in (0.9, 2.2, 3.5) for x in (-1, 1)
)
"""Sides of a point that the name of its curve is tried on, and places beside the foot of a stem."""


def labels_of(  # noqa: PLR0913, PLR0917, the last one has a default
    curves: Mapping[str, Sequence[Point]],
    knees: pl.DataFrame,
    peak: float,
    plane: Plane,
    size: str,
    without: Sequence[str] = (),
) -> pl.DataFrame:
    """The peak, critical sizes at the feet of their stems, and the names of curves, with places.

    Args:
        curves: Points by series.
        knees: `series` and its critical `size`, null for never.
        peak: The peak [FLOP/s].
        plane: The plot.
        size: The name of the size.
        without: Series that nothing was solved for.
    """
    low, high = plane.x
    inside = knees.filter(pl.col("size").is_between(low, high))
    rows = [("note", "", f"peak · {si(peak, 'FLOP/s')}", low, peak)]
    for index, (series, at) in enumerate(inside.select("series", "size").iter_rows()):
        rows.append(("value", series, count(at) if index else f"{size} = {count(at)}", at, 0.0))
    wide = plot_size(LAYOUTS["wide"], MARGINS)
    room = _Plot(wide, plane, curves, inside["size"].to_list())
    room.places(rows)
    for series, at in knees.select("series", "size").iter_rows():
        if series not in curves:
            continue
        later = " · never" if at is None else f" · from {count(at)}" if at > high else ""
        name = shorten(series, NAME_ROOM, bold=True) + later
        rows.append(("value", series, name, *room.anchor(name, curves[series])))
    for series in without:
        name = shorten(series, NAME_ROOM, bold=True)
        rows.append(("value", series, name, *room.anchor(name, curves[series])))
    places = placed(
        MARGINS, lambda plot: _Plot(plot, plane, curves, inside["size"].to_list()).places(rows)
    )
    columns = ["style", "series", "text", "size", "flops_per_s"]
    return pl.DataFrame(rows, schema=columns, orient="row").hstack(places)


class _Plot(Room):
    """The plot while labels are placed in it: curves and stems are better not crossed."""

    def __init__(
        self,
        plot: tuple[float, float],
        plane: Plane,
        curves: Mapping[str, Sequence[Point]],
        stems: Sequence[float],
    ) -> None:
        super().__init__(plot)
        self.plane = plane
        lines = [[self.at(*point) for point in points] for points in curves.values()]
        self.segments: list[Segment] = [(*a, *b) for line in lines for a, b in pairwise(line)]
        self.segments += [(*self.at(x, 0.0), *self.at(x, plane.y[1])) for x in stems]

    def at(self, *point: float) -> tuple[float, float]:
        """A point of the data [em]."""
        return self.plane.at(self.plot, *point)

    def places(self, rows: Sequence[tuple[str, str, str, float, float]]) -> list[Place | None]:
        """Places of labels, the first ones first."""
        found: list[Place | None] = []
        for style, _, text, *point in rows:
            spot = Spot(*self.at(*point), text, bold=True, sides=SIDES, distance=0.5)
            if style == "note":
                best: Place | None = Place(0.3, -0.8, "left")
            elif not point[1]:
                best = self.best(
                    spot, FEET, within=Box(0.0, -math.inf, self.plot[0] + PAST_EDGE, math.inf)
                )
            else:
                best = self.best(spot, segments=self.segments)
            found.append(self.take(spot, best))
        return found

    def anchor(self, text: str, points: Sequence[Point]) -> Point:
        """The point of a curve beside which its name crosses fewest lines, near the middle."""
        low, high = (share * self.plot[0] for share in ANCHORED)
        spots = {p: Spot(*self.at(*p), text, bold=True, sides=SIDES, distance=0.5) for p in points}
        near = sorted(
            spots,
            key=lambda p: (not low <= spots[p].x <= high, abs(spots[p].y / self.plot[1] - MIDDLE)),
        )
        best, fewest = near[0], math.inf
        for point in near:
            place = self.best(spots[point], segments=self.segments, fewer_than=fewest)
            if place is not None:
                best = point
                fewest = self.crossings(place.box(spots[point]), self.segments, math.inf)
            if not fewest:
                break
        self.take(spots[best], self.best(spots[best], segments=self.segments))
        return best
