"""Several roofs in one plot, with dots: chips on one roofline, timings and profiled kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflines.basics.lazy import pl
from rooflines.charts import frames
from rooflines.charts.kit import layers as kit
from rooflines.charts.kit import place

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rooflines.charts.kit.layers import Layer
    from rooflines.charts.kit.place import Plane, Point
    from rooflines.charts.kit.themes import Margins


def frame_of(roofs: Iterable[tuple[str, float, str]], bytes_per_s: float) -> pl.DataFrame:
    """Roofs with one bandwidth.

    Args:
        roofs: Names, peaks [FLOP/s], and texts at their right ends.
        bytes_per_s: The bandwidth [byte/s].

    Returns:
        `roof`, `flops_per_s`, `text`, `bytes_per_s` and `ridge` [FLOP/byte], the highest first.
    """
    schema = {"roof": pl.String, "flops_per_s": pl.Float64, "text": pl.String}
    return (
        pl.DataFrame(list(roofs), schema=schema, orient="row")
        .with_columns(bytes_per_s=bytes_per_s, ridge=pl.col("flops_per_s") / bytes_per_s)
        .sort("flops_per_s", descending=True)
    )


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


def corners(bytes_per_s: float, peak: float, plane: Plane) -> list[Point]:
    """The corners of the roof of a bandwidth and a peak in a plot [FLOP/byte, FLOP/s]."""
    start = max(plane.x[0], plane.y[0] / bytes_per_s)
    return [(start, start * bytes_per_s), (peak / bytes_per_s, peak), (plane.x[1], peak)]


def paths_of(roofs: pl.DataFrame, plane: Plane) -> list[list[Point]]:
    """The corners of each roof [FLOP/byte, FLOP/s]."""
    rates = roofs.select("bytes_per_s", "flops_per_s").iter_rows()
    return [corners(rate, peak, plane) for rate, peak in rates]


def data_of(roofs: pl.DataFrame, plane: Plane, margins: Margins) -> dict[str, pl.DataFrame]:
    """The rows of `roof_layers`: corners of roofs, and their `text` at their right ends."""
    paths = paths_of(roofs, plane)
    corners = roofs.with_columns(
        x=pl.Series([[x for x, _ in path] for path in paths], dtype=pl.List(pl.Float64)),
        y=pl.Series([[y for _, y in path] for path in paths], dtype=pl.List(pl.Float64)),
        beneath=pl.Series(place.overlaps(paths, plane), dtype=pl.Int64),
    )
    ends = place.at_ends(margins, plane, roofs["flops_per_s"].to_list())
    return {"roofs": corners.explode("x", "y"), "names": roofs.hstack(ends)}


def roof_layers(
    colour: Mapping[str, Layer] | None, across: str, up: str = "Attainable FLOP/s"
) -> tuple[Layer, Layer, list[Layer]]:
    """The axes, and the layers of roofs: `roofs`, their ends `names`.

    Args:
        colour: Channels of lines and of letters, `line` and `text`; None: ink.
        across: The title of the x axis.
        up: The title of the y axis.
    """
    x = kit.quantity("x", **kit.log_axis("x", across, kit.SHORT_LABEL))
    y = kit.quantity("y", **kit.log_axis("y", up))
    tips = kit.tips(
        roof="roof", flops_per_s="peak FLOP/s", bytes_per_s="byte/s", ridge="ridge, FLOP/byte"
    )
    line = {"x": x, "y": y, "detail": kit.name("roof"), "order": kit.quantity("x"), "tooltip": tips}
    at_end = {"x": {"value": kit.expr("width")}, "y": {**y, "field": "flops_per_s"}}
    if colour is None:
        drawn, style = kit.layer("roofs", "line", "roof", line), "strong"
    else:
        drawn = kit.layer("roofs", "line", "curve", {**line, "color": colour["line"]}, **kit.WIDER)
        at_end["fill"], style = colour["text"], "value"
    return x, y, [drawn, *kit.labels("names", style, at_end, halo=False, clip=False)]
