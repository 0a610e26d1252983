"""Label placement: positions in em at which no label overlaps another, in both layouts.

Positions are found once per layout, so labels keep apart in every size and theme.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.lazy import pl
from rooflines.charts.kit.chart_text import width_em
from rooflines.charts.kit.themes import SIZES, Margins, plot_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

LAYOUTS = {"": SIZES["slide"], "_narrow": SIZES["paper"]}
"""The layouts that labels are placed in, by the ending of their columns; a slide and a page share
one."""

LINE_HEIGHT, PADDING = 1.3, 0.2
"""Height of a line of text, and room kept free before and after a label [em]."""

DOT = 0.35
"""Radius of a point [em]."""

NEAR, FAR = (1.0, 1.7), (2.4, 3.2, 4.2)
"""Distances from a point that are tried, in multiples of the label's own [1]; the far ones where
every near place overlaps something."""

SLIDES = (-0.2, 0.2, -0.4, 0.4)
"""Shares of its width by which a label above or below its point is moved along [1]."""

ALIGN_SHARES = {"left": 0.0, "center": 0.5, "right": 1.0}
"""The part of a label's width before its point, by alignment [1]."""

LINE_SHARES, END_CLEARANCE, LINE_OFFSET = (
    (0.42, 0.5, 0.34, 0.58, 0.26, 0.66, 0.18, 0.74, 0.82),
    0.8,
    0.75,
)
"""Places of a turned text along its line, best first [1]; room left at the line's ends, and from
the line to the middle of the text [em]."""

SQUARES = 9
"""Boxes that a turned text is approximated by [1]."""

END_DISTANCE, END_GAP = 0.6, 1.35
"""From a line's end to its label, and from one such label to the next below it [em]."""

OVERLAP_SHARE, OVERLAP_STEPS, MAX_OVERLAPS = 0.008, 48, 3
"""Share of the height within which lines hide each other, places compared across the plot, and
the most lines that count as covered [1]."""

PARALLEL = 1e-9

Point = tuple[float, float]
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

    x: Point
    y: Point
    linear: bool = False

    def at(self, plot: Point, x: float, y: float) -> Point:
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

    def overlaps(self, box: Box) -> bool:
        """Whether the two overlap."""
        return (
            self.left < box.right
            and box.left < self.right
            and self.top < box.bottom
            and box.top < self.bottom
        )

    def contains(self, box: Box) -> bool:
        """Whether the other lies inside."""
        return (
            self.left <= box.left
            and self.top <= box.top
            and self.right >= box.right
            and self.bottom >= box.bottom
        )

    def crosses(self, segment: Segment) -> bool:
        """Whether a segment, whose bounds this box meets, passes through the interior."""
        x1, y1, x2, y2 = segment
        low, high = 0.0, 1.0
        for start, delta, near, far in (
            (x1, x2 - x1, self.left, self.right),
            (y1, y2 - y1, self.top, self.bottom),
        ):
            if abs(delta) >= PARALLEL:
                a, b = sorted(((near - start) / delta, (far - start) / delta))
                low, high = max(low, a), min(high, b)
        return low < high


class Place(NamedTuple):
    """A label's offset from its point [em], and its alignment: left, center or right."""

    dx: float
    dy: float
    align: str


@dataclass(frozen=True)
class Label:
    """A text, and where it may be.

    Attributes:
        text: The text.
        points: Points of the data that it may be beside, best first.
        style: Its style; all but `label` and `note` are of the heavier weight.
        sides: Sides of a point that are tried, best first: combinations of l, r, t, b.
        places: What is tried in their place, best first.
        distance: From the point to the label [em].
        span: Values of x that the label stays between.
        past: How far it may reach beyond the right edge [em].
        to: The other end of a line that the text runs along.
    """

    text: str
    points: Sequence[Point]
    style: str = "strong"
    sides: Sequence[str] = ("tr", "br", "tl", "bl", "r", "l", "t", "b")
    places: Sequence[Place] = ()
    distance: float = 0.55
    span: Point | None = None
    overhang: float = 0.0
    to: Point | None = None

    @property
    def wide(self) -> float:
        """The width of the text [em]."""
        return width_em(self.text, bold=self.style not in ("label", "note"))

    def candidates(self, factors: Sequence[float] = NEAR) -> Sequence[Place]:
        """Places beside a point, best first: every side near it, then every side farther away.

        The last ones are above and below it, moved along by `SLIDES`.
        """
        away = [self.distance * factor for factor in factors]
        beside = [_beside(side, distance) for distance in away for side in self.sides]
        centred = [
            _beside(side, distance) for distance in away for side in "bt" if side in self.sides
        ]
        slid = [place._replace(dx=share * self.wide) for place in centred for share in SLIDES]
        return self.places or [*beside, *slid]

    def box(self, at: Point, place: Place) -> Box:
        """The rectangle that it takes beside a point of the plot."""
        left = at[0] + place.dx - ALIGN_SHARES[place.align] * self.wide
        middle = at[1] + place.dy
        return Box(
            left - PADDING,
            middle - LINE_HEIGHT / 2,
            left + self.wide + PADDING,
            middle + LINE_HEIGHT / 2,
        )


@cache
def _beside(side: str, distance: float) -> Place:
    """The place on a side of a point: t and b are above and below, l and r before and after."""
    across = distance if "r" in side else -distance if "l" in side else 0.0
    down = -1.0 if "t" in side else 1.0 if "b" in side else 0.0
    align = "left" if "r" in side else "right" if "l" in side else "center"
    is_corner = len(side) > 1
    return Place(
        across * (0.55 if is_corner else 1.0),
        down * (distance + (0.25 if is_corner else LINE_HEIGHT / 2 - 0.1)),
        align,
    )


class LabelPlacer:
    """A plot in one layout while labels are placed in it, the most important first.

    Args:
        plot: Width and height of the plot [em].
        plane: Its coordinates.
        lines: Lines better not crossed, by points of the data.
        dots: Points of the data that are not covered, and their radii [em].
    """

    def __init__(
        self,
        plot: Point,
        plane: Plane,
        lines: Sequence[Sequence[Point]] = (),
        dots: Sequence[tuple[Point, float]] = (),
    ) -> None:
        self.plot, self.plane = plot, plane
        self.taken: list[Box] = []
        self.segments: list[tuple[Segment, Box]] = []
        for line in lines:
            for (x1, y1), (x2, y2) in pairwise([self.at(point) for point in line]):
                bounds = Box(min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2))
                self.segments.append(((x1, y1, x2, y2), bounds))
        self.dots = [
            (point, Box(x - radius, y - radius, x + radius, y + radius))
            for point, radius in dots
            for x, y in [self.at(point)]
        ]

    def at(self, point: Point) -> Point:
        """A point of the data [em]."""
        return self.plane.at(self.plot, *point)

    def place(self, label: Label) -> tuple[Point, Place | None]:
        """The point and the place where a label overlaps nothing and crosses the fewest lines.

        The place is taken; None: every place overlaps something.
        """
        best = self._best(label, NEAR)
        if best is None and label.to is None and not label.places:
            best = self._best(label, FAR)
        if best is None:
            return label.points[0], None
        point, place, boxes = best
        self.taken += boxes
        return point, place

    def _best(
        self, label: Label, factors: Sequence[float]
    ) -> tuple[Point, Place, list[Box]] | None:
        """As `place`, at some distances, with what the label takes there."""
        best, fewest = None, math.inf
        for point, place, boxes in self._candidates(label, factors):
            dots = [box for dot_point, box in self.dots if dot_point != point and not label.to]
            if any(box.overlaps(dot_point) for box in boxes for dot_point in (*self.taken, *dots)):
                continue
            crossings = 0 if label.to else self._crossings(boxes[0], fewest)
            if crossings < fewest:
                best, fewest = (point, place, boxes), crossings
            if not fewest:
                break
        return best

    def _candidates(
        self, label: Label, factors: Sequence[float]
    ) -> Iterator[tuple[Point, Place, list[Box]]]:
        """Points, places, and what a label takes there."""
        if label.to is not None:
            yield from self._along_line(label, label.to)
            return
        left, right = (self.at((x, self.plane.y[1]))[0] for x in label.span or self.plane.x)
        top, bottom = (-math.inf, math.inf) if label.overhang or label.span else (0.0, self.plot[1])
        bounds = Box(left, top, right + label.overhang, bottom)
        for point in label.points:
            at = self.at(point)
            for place in label.candidates(factors):
                box = label.box(at, place)
                if bounds.contains(box):
                    yield point, place, [box]

    def _along_line(self, label: Label, to: Point) -> Iterator[tuple[Point, Place, list[Box]]]:
        """Places along a line, turned like it: offsets are along the line and across it."""
        (x, y), (end, top) = self.at(label.points[0]), self.at(to)
        angle, length = math.atan2(y - top, end - x), math.hypot(end - x, y - top)
        for share in LINE_SHARES:
            along = length * share
            if (
                not END_CLEARANCE + label.wide / 2
                <= along
                <= length - END_CLEARANCE - label.wide / 2
            ):
                continue
            for off in (-LINE_OFFSET, LINE_OFFSET):
                steps = (
                    along + (step / (SQUARES - 1) - 0.5) * label.wide for step in range(SQUARES)
                )
                middles = [
                    (
                        x + way * math.cos(angle) + off * math.sin(angle),
                        y - way * math.sin(angle) + off * math.cos(angle),
                    )
                    for way in steps
                ]
                boxes = [
                    Box(a - LINE_OFFSET, b - LINE_OFFSET, a + LINE_OFFSET, b + LINE_OFFSET)
                    for a, b in middles
                ]
                yield label.points[0], Place(along, off, "center"), boxes

    def _crossings(self, box: Box, limit: float) -> int:
        """How many lines pass through a label; `limit` of them are not counted further."""
        count = 0
        left, top, right, bottom = box
        for segment, (start, above, end, below) in self.segments:
            if left < end and start < right and top < below and above < bottom:  # most do not
                count += box.crosses(segment)
                if count >= limit:
                    break
        return count


def place_labels(
    margins: Margins,
    plane: Plane,
    labels: Sequence[Label],
    lines: Sequence[Sequence[Point]] = (),
    dots: Sequence[tuple[Point, float]] = (),
) -> pl.DataFrame:
    """Labels with their places, the first ones first.

    Args:
        margins: Room around the plot.
        plane: Its coordinates.
        labels: The labels, the most important first.
        lines: Lines better not crossed, by points of the data.
        dots: Points of the data that are not covered, and their radii [em].

    Returns:
        `text`, `style`, the point `x` and `y`, and the columns of `in_layouts`.
    """
    points: list[Point] = []

    def places(plot: Point) -> list[Place | None]:
        room = LabelPlacer(plot, plane, lines, dots)
        candidates: list[Sequence[Point]] = [[point] for point in points] or [
            label.points for label in labels
        ]
        placements = [
            room.place(replace(label, points=at))
            for label, at in zip(labels, candidates, strict=True)
        ]
        points[:] = [point for point, _ in placements]
        return [place for _, place in placements]

    placed = in_layouts(margins, places)
    rows = [(entry.text, entry.style, *point) for entry, point in zip(labels, points, strict=True)]
    schema = {"text": pl.String, "style": pl.String, "x": pl.Float64, "y": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row").hstack(placed)


def in_layouts(margins: Margins, places: Callable[[Point], Sequence[Place | None]]) -> pl.DataFrame:
    """Places of labels in every layout, as columns to stack beside the labels' frame.

    Args:
        margins: Room around the plot.
        places: Gives a place for every label in a plot of a width and height [em].

    Returns:
        `dx`, `dy`, `align`, and `on`: whether the label is shown. The columns of the narrow layout
        end in `_narrow`.
    """
    schema = {"dx": pl.Float64, "dy": pl.Float64, "align": pl.String, "on": pl.Boolean}
    parts = []
    for tail, size in LAYOUTS.items():
        rows = [
            (round(p.dx, 2), round(p.dy, 2), p.align, True) if p else (0.0, 0.0, "left", False)
            for p in places(plot_size(size, margins))
        ]
        names = {f"{name}{tail}": kind for name, kind in schema.items()}
        parts.append(pl.DataFrame(rows, schema=names, orient="row"))
    return pl.concat(parts, how="horizontal")


def at_ends(margins: Margins, plane: Plane, heights: Sequence[float]) -> pl.DataFrame:
    """Places right of the plot for labels at lines that end at these heights, as `in_layouts`."""
    return in_layouts(
        margins,
        lambda plot: end_places([plane.at(plot, plane.x[1], y)[1] for y in heights], plot[1]),
    )


def end_places(ends: Sequence[float], down: float) -> list[Place | None]:
    """Places right of the plot for labels at the ends of lines.

    Args:
        ends: Heights of the ends, from above [em].
        down: Height of the plot [em].

    Returns:
        A place for each; if there is not room for all, for as many as fit, evenly chosen.
    """
    max_count = int(down / END_GAP) + 1
    shown = list(range(len(ends)))
    if len(ends) > max_count:
        shown = sorted({round(i * (len(ends) - 1) / (max_count - 1)) for i in range(max_count)})
    heights = dict(zip(shown, dodge([ends[i] for i in shown], END_GAP, 0.0, down), strict=True))
    return [
        Place(END_DISTANCE, heights[i] - end, "left") if i in heights else None
        for i, end in enumerate(ends)
    ]


def dodge(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions close to the wanted ones, in the same order, at least a gap apart, within bounds.

    Args:
        wanted: Positions along a line, in any order [em].
        gap: The least distance [em].
        low: The lower bound [em].
        high: The upper bound [em]; if there is not room for all, the last ones lie beyond it.

    Returns:
        A position for each, in the order of `wanted` [em].
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    clusters: list[tuple[float, int]] = []  # the centre of neighbours one gap apart, and how many
    for index in order:
        centre, size = wanted[index], 1
        while True:
            half = gap * (size - 1) / 2
            centre = min(max(centre, low + half), max(high - half, low + half))
            if not clusters or centre - clusters[-1][0] >= gap * (size + clusters[-1][1]) / 2:
                break
            neighbour, neighbour_size = clusters.pop()
            centre = (centre * size + neighbour * neighbour_size) / (size + neighbour_size)
            size += neighbour_size
        clusters.append((centre, size))
    positions = (
        centre + gap * (rank - (size - 1) / 2) for centre, size in clusters for rank in range(size)
    )
    by_index = dict(zip(order, positions, strict=True))
    return [by_index[index] for index in range(len(wanted))]


def overlap_counts(paths: Sequence[Sequence[Point]], plane: Plane) -> list[int]:
    """Overlap counts: later lines that cover a quarter of each line, which is then drawn wider.

    Args:
        paths: Points of each line, by rising x.
        plane: The plot.
    """
    heights: list[dict[int, float]] = []
    for path in paths:
        points = [plane.at((1.0, 1.0), *point) for point in path]
        heights.append(
            {
                step: y + (after[1] - y) * (step / OVERLAP_STEPS - x) / (after[0] - x)
                for (x, y), after in pairwise(points)
                for step in range(math.ceil(x * OVERLAP_STEPS), math.ceil(after[0] * OVERLAP_STEPS))
            }
        )
    counts = []
    for index, line in enumerate(heights):
        near = [
            sum(abs(y - later[at]) < OVERLAP_SHARE for at, y in line.items() if at in later)
            for later in heights[index + 1 :]
        ]
        counts.append(min(sum(count > len(line) / 4 for count in near), MAX_OVERLAPS))
    return counts
