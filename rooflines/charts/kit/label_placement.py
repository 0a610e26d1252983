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
"""Layouts of labels by column suffix; slide and page share one."""

LINE_HEIGHT, PADDING = 1.3, 0.2
"""Line height, and padding before and after a label [em]."""

DOT = 0.35
"""Radius of a point [em]."""

NEAR, FAR = (1.0, 1.7), (2.4, 3.2, 4.2)
"""Distances tried from a point, in multiples of the label's `distance` [1]; far ones only if every
near place overlaps."""

SLIDES = (-0.2, 0.2, -0.4, 0.4)
"""Horizontal shifts tried for a label above or below its point, in label widths [1]."""

ALIGN_SHARES = {"left": 0.0, "center": 0.5, "right": 1.0}
"""Share of a label's width before its point, by alignment [1]."""

LINE_SHARES, END_CLEARANCE, LINE_OFFSET = (
    (0.42, 0.5, 0.34, 0.58, 0.26, 0.66, 0.18, 0.74, 0.82),
    0.8,
    0.75,
)
"""Positions of a rotated text along its line, best first [1]; clearance at the line's ends, and
offset from the line to the text's middle [em]."""

SQUARES = 9
"""Number of boxes that approximate a rotated text [1]."""

END_DISTANCE, END_GAP = 0.6, 1.35
"""Distance from a line's end to its label, and spacing of such labels [em]."""

OVERLAP_SHARE, OVERLAP_STEPS, MAX_OVERLAPS = 0.008, 48, 3
"""Distance at which lines hide each other, as a share of the plot height; positions compared across
the plot; and maximum overlap count [1]."""

PARALLEL = 1e-9

Point = tuple[float, float]
Segment = tuple[float, float, float, float]
"""A straight line from (x1, y1) to (x2, y2), y downwards [em]."""


@dataclass(frozen=True)
class Plane:
    """Plot coordinates: x is logarithmic, y too unless `linear`.

    Attributes:
        x: Values at the left and the right edge.
        y: Values at the lower and the upper edge.
        linear: Whether y is linear.
    """

    x: Point
    y: Point
    linear: bool = False

    def at(self, plot: Point, x: float, y: float) -> Point:
        """Map a data point into a plot (width, height), y downwards [em]."""
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
        """Check that two boxes overlap."""
        return (
            self.left < box.right
            and box.left < self.right
            and self.top < box.bottom
            and box.top < self.bottom
        )

    def contains(self, box: Box) -> bool:
        """Check that a box lies inside."""
        return (
            self.left <= box.left
            and self.top <= box.top
            and self.right >= box.right
            and self.bottom >= box.bottom
        )

    def crosses(self, segment: Segment) -> bool:
        """Check that a segment crosses the interior; its bounds must overlap this box."""
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
    """Text with its candidate places.

    Attributes:
        text: The text.
        points: Data points that it may stand beside, best first.
        style: Its style; bold unless `label` or `note`.
        sides: Sides tried, best first: combinations of l, r, t, b.
        places: Places tried instead of sides, best first.
        distance: Distance from point to label [em].
        span: Range of x that the label stays in.
        overhang: Allowed reach beyond the right edge [em].
        to: End of a line along which the text runs.
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
        """Text width [em]."""
        return width_em(self.text, bold=self.style not in ("label", "note"))

    def candidates(self, factors: Sequence[float] = NEAR) -> Sequence[Place]:
        """Candidate places beside a point, best first: all sides near it, then farther away.

        The last candidates are above and below, shifted by `SLIDES`.
        """
        away = [self.distance * factor for factor in factors]
        beside = [_beside(side, distance) for distance in away for side in self.sides]
        centred = [
            _beside(side, distance) for distance in away for side in "bt" if side in self.sides
        ]
        slid = [place._replace(dx=share * self.wide) for place in centred for share in SLIDES]
        return self.places or [*beside, *slid]

    def box(self, at: Point, place: Place) -> Box:
        """Bounding box of the label at a place beside a plot point."""
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
    """Place at a side of a point: t above, b below, l left, r right."""
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
    """Places labels in one layout of a plot, the most important first.

    Args:
        plot: Plot width and height [em].
        plane: Its coordinates.
        lines: Lines to avoid crossing, as data points.
        dots: Data points that stay uncovered, and their radii [em].
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
        """Map a data point into the plot [em]."""
        return self.plane.at(self.plot, *point)

    def place(self, label: Label) -> tuple[Point, Place | None]:
        """Place a label where it overlaps nothing and crosses the fewest lines.

        Returns point and place, which is then taken; None: every place overlaps something.
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
        """Best point, place and boxes at these distances; None: every place overlaps something."""
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
        """Yield points, places, and the boxes that a label covers there."""
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
        """Yield places along a line, rotated with it: offsets are along and across the line."""
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
        """Number of lines that cross a label; counting stops at `limit`."""
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
    """Place labels in both layouts, the most important first.

    Args:
        margins: Room around the plot.
        plane: Its coordinates.
        labels: The labels, the most important first.
        lines: Lines to avoid crossing, as data points.
        dots: Data points that stay uncovered, and their radii [em].

    Returns:
        `text`, `style`, the point `x`, `y`, and the columns from `in_layouts`.
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
    """Places of labels in each layout, as columns to stack beside the labels' frame.

    Args:
        margins: Room around the plot.
        places: Function from plot size [em] to a place for each label.

    Returns:
        `dx`, `dy`, `align`, and `on`, true if the label is shown. Columns for the narrow layout end
        in `_narrow`.
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
    """Places right of the plot for labels on lines that end at these y values, as `in_layouts`."""
    return in_layouts(
        margins,
        lambda plot: end_places([plane.at(plot, plane.x[1], y)[1] for y in heights], plot[1]),
    )


def end_places(ends: Sequence[float], down: float) -> list[Place | None]:
    """Places right of the plot for labels at line ends.

    Args:
        ends: Heights from the top [em].
        down: Plot height [em].

    Returns:
        A place for each label; if not all fit, for an even selection of as many as fit.
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
    """Number of later lines that cover over a quarter of each line, which is then drawn wider.

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
