"""Label placement: positions in em at which no label overlaps another, in both layouts.

Positions are found once per layout, so labels keep apart in every size and theme.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.basics.lazy import pl
from rooflines.charts.kit.text import width_em
from rooflines.charts.kit.themes import SIZES, Margins, plot_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

LAYOUTS = {"wide": SIZES["slide"], "narrow": SIZES["paper"]}
"""The layouts that labels are placed in; a slide and a page share one."""

LINE = 1.3
"""Height of a line of text [em]."""

PADDING = 0.2
"""Room kept free before and after a label [em]."""

DOT = 0.35
"""Half the width of the square that a point takes [em]."""

REACHES = (1.0, 1.7)
"""Distances from a point that are tried, in multiples of the label's own [1]."""

CELL_TEXT = 0.9
"""Size of text in a cell [em]."""

CELL_HEIGHT = 1.05
"""Least height of a cell that holds a number [em]."""

WIDEST = str.maketrans("0123456789", "4444444444")
"""Every digit as the widest one."""

ALIGNED = {"left": 0.0, "center": 0.5, "right": 1.0}
"""The part of a label's width before its point, by alignment [1]."""

PARALLEL = 1e-9

Segment = tuple[float, float, float, float]
"""A straight line from (x1, y1) to (x2, y2), y downwards [em]."""


@dataclass(frozen=True)
class Plane:
    """Coordinates of a plot: x is logarithmic, y too unless it is `linear`.

    Attributes:
        x: Values at the left and the right edge.
        y: Values at the lower and the upper edge.
        linear: Whether y is linear.
    """

    x: tuple[float, float]
    y: tuple[float, float]
    linear: bool = False

    def at(self, plot: tuple[float, float], x: float, y: float) -> tuple[float, float]:
        """A point of the data in a plot of this width and height, y downwards [em]."""
        low, high = self.y
        across = _log_share(x, *self.x)
        up = (y - low) / (high - low) if self.linear else _log_share(y, low, high)
        return across * plot[0], (1 - up) * plot[1]


def _log_share(value: float, low: float, high: float) -> float:
    return math.log(value / low) / math.log(high / low)


class Box(NamedTuple):
    """A rectangle in the plot, y downwards [em]."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        """Whether the two overlap."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def holds(self, other: Box) -> bool:
        """Whether the other lies inside."""
        return (
            self.left <= other.left
            and self.top <= other.top
            and self.right >= other.right
            and self.bottom >= other.bottom
        )

    def with_point(self, x: float, y: float) -> Box:
        """The smallest rectangle that holds this one and a point."""
        return Box(min(self.left, x), min(self.top, y), max(self.right, x), max(self.bottom, y))

    def crossed(self, segment: Segment) -> bool:
        """Whether a segment passes through the interior."""
        x1, y1, x2, y2 = segment
        if (
            max(x1, x2) <= self.left
            or min(x1, x2) >= self.right
            or max(y1, y2) <= self.top
            or min(y1, y2) >= self.bottom
        ):
            return False
        low, high = 0.0, 1.0
        for start, delta, least, most in (
            (x1, x2 - x1, self.left, self.right),
            (y1, y2 - y1, self.top, self.bottom),
        ):
            if abs(delta) < PARALLEL:
                if not least < start < most:
                    return False
                continue
            a, b = sorted(((least - start) / delta, (most - start) / delta))
            low, high = max(low, a), min(high, b)
        return low < high


ANYWHERE = Box(-math.inf, -math.inf, math.inf, math.inf)
"""No bounds: for labels that may lie beside the plot."""


@dataclass(frozen=True)
class Spot:
    """A point that needs a label.

    Attributes:
        x, y: Its position in the plot, y downwards [em].
        text: The label's text.
        bold: Whether it is set in the heavier weight.
        sides: Sides of the point that are tried, best first: combinations of l, r, t, b.
        distance: From the point to the label [em].
    """

    x: float
    y: float
    text: str
    bold: bool = False
    sides: tuple[str, ...] = ("tr", "br", "tl", "bl", "r", "l", "t", "b")
    distance: float = 0.55

    @property
    def dot(self) -> Box:
        """The square that the point itself takes."""
        return Box(self.x - DOT, self.y - DOT, self.x + DOT, self.y + DOT)

    def candidates(self) -> list[Place]:
        """Places beside the point, best first: every side near it, then every side farther away."""
        return [_beside(side, self.distance * reach) for reach in REACHES for side in self.sides]


class Place(NamedTuple):
    """A label's offset from its point [em], and its alignment: left, center or right."""

    dx: float
    dy: float
    align: str

    def box(self, spot: Spot) -> Box:
        """The rectangle that the label takes."""
        wide = width_em(spot.text, bold=spot.bold)
        left = spot.x + self.dx - ALIGNED[self.align] * wide
        middle = spot.y + self.dy
        return Box(left - PADDING, middle - LINE / 2, left + wide + PADDING, middle + LINE / 2)


@cache
def _beside(side: str, distance: float) -> Place:
    """The place on a side of a point: t and b are above and below, l and r before and after."""
    across = distance if "r" in side else -distance if "l" in side else 0.0
    down = -1.0 if "t" in side else 1.0 if "b" in side else 0.0
    align = "left" if "r" in side else "right" if "l" in side else "center"
    both = len(side) > 1
    return Place(
        across * (0.55 if both else 1.0),
        down * (distance + (0.25 if both else LINE / 2 - 0.1)),
        align,
    )


class Room:
    """A plot in one layout while labels are placed in it, the most important first.

    Args:
        plot: Width and height of the plot [em].

    Attributes:
        taken: Rectangles that no further label may overlap [em].
    """

    def __init__(self, plot: tuple[float, float]) -> None:
        self.plot = plot
        self.taken: list[Box] = []

    def best(  # noqa: PLR0913, all but the first have a default
        self,
        spot: Spot,
        candidates: Iterable[Place] | None = None,
        *,
        avoid: Sequence[Box] = (),
        segments: Sequence[Segment] = (),
        within: Box | None = None,
        fewer_than: float = math.inf,
    ) -> Place | None:
        """The candidate that overlaps nothing and crosses the fewest segments.

        Args:
            spot: What needs a label.
            candidates: Places to choose from, best first; those beside the point by default.
            avoid: Rectangles to keep off, besides those taken.
            segments: Lines better not crossed.
            within: Bounds of the label; the plot by default.
            fewer_than: Labels that cross as many segments, or more, are left out [1].

        Returns:
            The first of the best, or None if every candidate overlaps something. It is not taken.
        """
        within = within or Box(0.0, 0.0, *self.plot)
        obstacles = [*self.taken, *avoid]
        best, fewest = None, fewer_than
        for candidate in spot.candidates() if candidates is None else candidates:
            box = candidate.box(spot)
            if not within.holds(box) or any(box.meets(other) for other in obstacles):
                continue
            crossings = self.crossings(box, segments, fewest)
            if crossings < fewest:
                best, fewest = candidate, crossings
            if not fewest:
                break
        return best

    def crossings(self, box: Box, segments: Sequence[Segment], enough: float) -> int:
        """How many segments pass through a label; `enough` of them are not counted further."""
        found = 0
        for segment in segments:
            found += box.crossed(segment)
            if found >= enough:
                break
        return found

    def take(self, spot: Spot, chosen: Place | None) -> Place | None:
        """Mark the rectangle of a label as taken, and return its place."""
        if chosen:
            self.taken.append(chosen.box(spot))
        return chosen

    def place(self, spots: Sequence[Spot], segments: Sequence[Segment] = ()) -> list[Place | None]:
        """Place labels beside their points, off each other's points; None where there is no room.

        Args:
            spots: What needs a label, the most important first.
            segments: Lines better not crossed.
        """
        dots = [spot.dot for spot in spots]
        return [
            self.take(
                spot,
                self.best(spot, avoid=dots[:index] + dots[index + 1 :], segments=segments),
            )
            for index, spot in enumerate(spots)
        ]


def in_cell(text: str, wide: float, tall: float) -> Place | None:
    """The place of a number in the middle of a cell, if a cell this wide and tall holds it [em]."""
    if tall <= CELL_HEIGHT:
        return None
    # Few texts are left to measure if all digits are one.
    fits = any(width_em(each) * CELL_TEXT < wide for each in (text.translate(WIDEST), text))
    return Place(0.0, 0.0, "center") if fits else None


def placed(
    margins: Margins, places: Callable[[tuple[float, float]], Sequence[Place | None]]
) -> pl.DataFrame:
    """Places of a chart's labels in every layout, as columns to stack beside the labels' frame.

    Args:
        margins: Room around the plot.
        places: Gives a place for every label in a plot of a width and height [em].

    Returns:
        `dx`, `dy`, `align`, and `on`: whether the label is shown. The columns of the narrow layout
        end in `_narrow`.
    """
    return stacked(in_layouts(margins, places))


def in_layouts(
    margins: Margins, places: Callable[[tuple[float, float]], Sequence[Place | None]]
) -> dict[str, Sequence[Place | None]]:
    """Places of a chart's labels by layout, as `placed` takes them."""
    return {layout: places(plot_size(size, margins)) for layout, size in LAYOUTS.items()}


def stacked(by_layout: Mapping[str, Sequence[Place | None]]) -> pl.DataFrame:
    """Places of labels by layout as the columns of `placed`."""
    columns: dict[str, Any] = {}
    for layout, of_layout in by_layout.items():
        tail = "" if layout == "wide" else "_narrow"
        columns[f"dx{tail}"] = [round(p.dx, 2) if p else 0.0 for p in of_layout]
        columns[f"dy{tail}"] = [round(p.dy, 2) if p else 0.0 for p in of_layout]
        columns[f"align{tail}"] = [p.align if p else "left" for p in of_layout]
        columns[f"on{tail}"] = [p is not None for p in of_layout]
    schema = {"dx": pl.Float64, "dy": pl.Float64, "align": pl.String, "on": pl.Boolean}
    return pl.DataFrame(
        columns,
        schema={f"{name}{tail}": kind for tail in ("", "_narrow") for name, kind in schema.items()},
    )
