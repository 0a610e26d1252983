"""What is written in a critical map: levels of contours, the never area, and names of shapes."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.lazy import alt, pl
from rooflines.basics.text import count
from rooflines.charts.kit.drawing import chosen, placed_text
from rooflines.charts.kit.place import ANYWHERE, Box, Place, Plane, Room, Spot, placed
from rooflines.charts.kit.text import chip_label, shorten

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.charts.contour_rows import Case
    from rooflines.charts.kit.themes import Margins

__all__ = ["Span", "labels"]

NAME_ROOM = 14.0

Span = tuple[float, float, float, float]
"""The map's edges: D from and to, F from and to."""


class _Label(NamedTuple):
    """A text at a point of the map; its style says what it is of."""

    style: str
    text: str
    D: float
    F: float


def labels(
    cases: Mapping[tuple[str, ...], Case],
    borders: Sequence[Sequence[tuple[float, float]]],
    names: Sequence[str],
    span: Span,
    margins: Margins,
) -> list[alt.Chart]:
    """Layers of levels outside the plot, the name of the never area, and the names of shapes.

    Args:
        cases: What the map shows, by the reader's choice.
        borders: Points of the border of never in each case, as D and F.
        names: The parameters of the choice.
        span: The map's edges.
        margins: Room around the plot.
    """
    texts = [_labels_of(case, span) for case in cases.values()]
    plane = Plane(span[:2], span[2:])

    def places(plot: tuple[float, float]) -> list[Place | None]:
        of_cases = zip(texts, borders, strict=True)
        return [place for case in of_cases for place in _places(*case, plane, plot)]

    records = [
        {**dict(zip(names, key, strict=True)), **label._asdict()}
        for key, of_case in zip(cases, texts, strict=True)
        for label in of_case
    ]
    frame = pl.DataFrame(records).hstack(placed(margins, places))
    layers: list[alt.Chart] = []
    for style in ("strong", "note", "label"):
        part = frame.filter(style=style)
        if part.height:
            layers += placed_text(
                part.drop("style"),
                style,
                chosen(*names),
                halo=style != "note",
                clip=style != "strong",
                x=alt.X("D:Q"),
                y=alt.Y("F:Q"),
            )
    return layers


def _labels_of(case: Case, span: Span) -> list[_Label]:
    """Levels at the right ends of their lines, the name of the never area, and shapes."""
    ends = {line.level: line.F_end for line in case.lines if line.kind == "level"}
    shown = sorted((level, end) for level, end in ends.items() if end < span[3])
    found = [
        _Label("strong", count(level) if index else f"B = {count(level)}", span[1], end)
        for index, (level, end) in enumerate(shown)
    ]
    if any(line.kind == "never" and span[2] < line.F for line in case.lines):
        texts = ("never compute-bound", "never")
        found += [_Label("note", text, span[0], span[2]) for text in texts]
    return found + [_Label("label", _short(shape.name), shape.D, shape.F) for shape in case.shapes]


@cache
def _short(name: str) -> str:
    return shorten(chip_label(name), NAME_ROOM, tail=True)


def _places(
    labels: Sequence[_Label],
    border: Sequence[tuple[float, float]],
    plane: Plane,
    plot: tuple[float, float],
) -> list[Place | None]:
    """Places in one layout: levels, the name of the never area if there is room, then shapes."""
    points = [plane.at(plot, *point) for point in border]
    edge = [(*start, *end) for start, end in pairwise(points)]
    room, places = Room(plot), []
    corner = None
    for style, text, d, f in labels:
        spot = Spot(*plane.at(plot, d, f), text, bold=style == "strong")
        if style == "strong":
            best = room.best(spot, [Place(0.5, 0.0, "left")], within=ANYWHERE)
        elif style == "note":
            at_corner = Place(0.5, -0.9, "left")
            box = at_corner.box(spot)
            area = Box(0.0, box.top, box.right, plot[1])
            crossed = any(area.crossed(segment) for segment in edge)
            best = None if crossed else room.best(spot, [at_corner], within=ANYWHERE)
            corner = best.box(spot) if best else corner
        else:
            break
        places.append(room.take(spot, best))
    shapes = tuple(label for label in labels if label.style == "label")
    return [*places, *_beside(shapes, corner, plane, plot)]


@cache
def _beside(
    labels: tuple[_Label, ...], corner: Box | None, plane: Plane, plot: tuple[float, float]
) -> list[Place | None]:
    """Places of shapes' names off a corner; those of levels are outside the plot.

    Many cases have the same ones.
    """
    room = Room(plot)
    room.taken += [corner] if corner else []
    sides = ("t", "r", "b", "l", "tr", "br", "tl", "bl")
    spots = [Spot(*plane.at(plot, d, f), text, sides=sides) for _, text, d, f in labels]
    dots = {(spot.x, spot.y): spot.dot for spot in spots}
    places = []
    for spot in spots:
        others = [dot for at, dot in dots.items() if at != (spot.x, spot.y)]
        places.append(room.take(spot, room.best(spot, avoid=others)))
    return places
