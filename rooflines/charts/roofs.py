"""Several roofs in one plot, with dots: chips on one roofline, timings and profiled kernels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import pl
from rooflines.basics.text import significant
from rooflines.charts import frames
from rooflines.charts.kit import ends, place
from rooflines.charts.kit import layers as kit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.charts.kit.layers import Layer
    from rooflines.charts.kit.place import Box, Place, Plane, Segment, Spot
    from rooflines.charts.kit.themes import Margins

SIDES = ("br", "tl", "b", "t", "tr", "bl")
"""Sides of a ridge that its number is tried on, best first."""

ALONG, MOST_BENEATH = 0.008, 3
"""Lines closer than this share of the plot's height hide each other; of how many one gets wider."""

LARGEST, SMALLEST = 2.4, 0.14
"""Area of the dot with the largest share, and the least area of a dot [em^2]."""

AWAY = 0.35
"""From a dot to its name [em]."""


def plane_of(roofs: pl.DataFrame, dots: pl.DataFrame | None = None) -> Plane:
    """A plot with some room around ridges and dots.

    Args:
        roofs: With `ridge` [FLOP/byte], `flops_per_s` [FLOP/s] and `bytes_per_s` [byte/s].
        dots: With `intensity` [FLOP/byte] and `flops_per_s` [FLOP/s].
    """
    left, right = frames.lowest(roofs, "ridge") / 12, frames.highest(roofs, "ridge") * 6
    top = frames.highest(roofs, "flops_per_s") * 1.8
    bottom = left * frames.lowest(roofs, "bytes_per_s") * 0.8
    if dots is not None and dots.height:
        left = min(frames.lowest(dots, "intensity") / 2, frames.lowest(roofs, "ridge") / 2)
        right = max(frames.highest(dots, "intensity"), frames.highest(roofs, "ridge")) * 3
        top = max(top, frames.highest(dots, "flops_per_s") * 1.6)
        bottom = frames.lowest(dots, "flops_per_s") / 2
    return place.Plane((left, right), (bottom, top))


def lines(roofs: pl.DataFrame, plane: Plane) -> pl.DataFrame:
    """The corners of roofs, and how many roofs drawn later run along each (`beneath`)."""
    return frames.corners(roofs.with_columns(beneath=_beneath(roofs, plane)), plane)


def _beneath(roofs: pl.DataFrame, plane: Plane) -> pl.Series:
    heights = [
        [plane.at((1, 1), plane.x[0], y)[1] for y in (rate * plane.x[0], peak)]
        for rate, peak in roofs.select("bytes_per_s", "flops_per_s").iter_rows()
    ]
    hidden = [
        sum(
            any(abs(a - b) < ALONG for a, b in zip(one, later, strict=True))
            for later in heights[index + 1 :]
        )
        for index, one in enumerate(heights)
    ]
    return pl.Series([min(count, MOST_BENEATH) for count in hidden], dtype=pl.Int64)


def names(roofs: pl.DataFrame, plane: Plane, margins: Margins) -> pl.DataFrame:
    """The texts of roofs at their right ends, as many as there is room for."""
    return roofs.hstack(ends.at_ends(margins, plane, roofs["flops_per_s"].to_list()))


def ridge_numbers(roofs: pl.DataFrame, plane: Plane, margins: Margins) -> pl.DataFrame:
    """The numbers of the ridges, beside them."""
    rows = roofs.with_columns(
        text=pl.Series([significant(ridge) for ridge in roofs["ridge"]], dtype=pl.String)
    )

    def places(plot: tuple[float, float]) -> list[Place | None]:
        spots: list[Spot] = []
        for ridge, peak, text in rows.select("ridge", "flops_per_s", "text").iter_rows():
            spots.append(place.Spot(*plane.at(plot, ridge, peak), text, bold=True, sides=SIDES))
        return place.Room(plot).place(spots, list(_segments(rows, plane, plot)))

    return rows.hstack(place.placed(margins, places))


def _segments(roofs: pl.DataFrame, plane: Plane, plot: tuple[float, float]) -> Iterator[Segment]:
    """The straight lines of roofs."""
    columns = ("bytes_per_s", "flops_per_s")
    for rate, peak in roofs.select(columns).unique().iter_rows():
        knee = plane.at(plot, peak / rate, peak)
        yield *plane.at(plot, plane.x[0], plane.x[0] * rate), *knee
        yield *knee, *plane.at(plot, plane.x[1], peak)


def areas(dots: pl.DataFrame, share: str) -> pl.DataFrame:
    """Dots with an `area` by a share, not below the least [em^2]."""
    most = frames.highest(dots, share)
    return dots.with_columns(area=(LARGEST / most * pl.col(share)).clip(SMALLEST))


def dot_names(
    dots: pl.DataFrame, roofs: pl.DataFrame, plane: Plane, margins: Margins, most: int
) -> pl.DataFrame:
    """The `text` of the first dots beside them, off all dots.

    Args:
        dots: With `intensity`, `flops_per_s`, `area` [em^2] and `text`.
        roofs: The roofs, better not crossed.
        plane: The plot.
        margins: Room around it.
        most: Dots that are named [1].
    """
    points = dots.select("intensity", "flops_per_s", "area").rows()

    def places(plot: tuple[float, float]) -> list[Place | None]:
        room = place.Room(plot)
        boxes: list[Box] = []
        spots: list[Spot] = []
        for (x, y, area), text in zip(points, dots["text"], strict=True):
            across, down = plane.at(plot, x, y)
            radius = math.sqrt(area / math.pi)
            boxes.append(place.Box(across - radius, down - radius, across + radius, down + radius))
            spots.append(place.Spot(across, down, text, bold=True, distance=radius + AWAY))
        room.taken += boxes
        segments = list(_segments(roofs, plane, plot))
        return [room.take(spot, room.best(spot, segments=segments)) for spot in spots[:most]]

    return dots.head(most).hstack(place.placed(margins, places))


def roof_layers(
    colour: Mapping[str, Layer] | None, across: str, up: str = "Attainable FLOP/s"
) -> tuple[Layer, Layer, list[Layer]]:
    """The axes, and the layers of roofs: `roofs`, their ends `names`.

    Args:
        colour: Channels of lines and of letters, `line` and `text`; None: ink.
        across: The title of the x axis.
        up: The title of the y axis.
    """
    x = kit.number("x", **kit.log_axis("x", across, kit.SHORT_LABEL))
    y = kit.number("y", **kit.log_axis("y", up))
    line = {"color": colour["line"]} if colour else {}
    text = {"fill": colour["text"]} if colour else {}
    tips = [
        kit.tip("roof"),
        kit.tip("flops_per_s", "peak FLOP/s", ".4~s"),
        kit.tip("bytes_per_s", "byte/s", ".4~s"),
        kit.tip("ridge", "ridge, FLOP/byte", ".4~s"),
    ]
    wider: dict[str, Any] = {}
    if colour:
        wider["strokeWidth"] = kit.expr("em * (0.19 + 0.2 * datum.beneath)")
    at_end = {
        "x": {"value": kit.expr("width")},
        "y": kit.number("flops_per_s", **kit.log_axis("y", up)),
        **text,
    }
    drawn = kit.layer(
        "roofs",
        "line",
        "curve" if colour else "roof",
        {"x": x, "y": y, "detail": kit.name("roof"), "order": kit.number("x"), "tooltip": tips}
        | line,
        **wider,
    )
    style = "value" if colour else "strong"
    return x, y, [drawn, *kit.labels("names", style, at_end, halo=False, clip=False)]


def dot_layers(
    x: Layer,
    y: Layer,
    tips: Sequence[Layer],
    *,
    style: str = "timing",
    **mark: Any,  # noqa: ANN401, handed on to Vega-Lite
) -> list[Layer]:
    """Dots, hollow where they are `hollow`."""
    at = {
        "x": {**x, "field": "intensity"},
        "y": {**y, "field": "flops_per_s"},
        "tooltip": list(tips),
    }
    return [
        kit.layer("dots", "point", style, at, where="!datum.hollow", filled=True, **mark),
        kit.layer("dots", "point", style, at, where="datum.hollow", filled=False, **mark),
    ]
