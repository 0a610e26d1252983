"""Ridge points of chips, a row for each chip."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import alt, pl
from rooflines.basics.text import significant
from rooflines.charts.chart import Chart
from rooflines.charts.comparing import (
    ADDED,
    CHIP_MARGIN,
    EVERY,
    added_parameters,
    chip_axis,
    compared_rows,
    evenly,
    heading,
    highlight,
    ridges_compared,
    row_of,
    shown_of,
)
from rooflines.charts.frames import highest, lowest, ridge_frame
from rooflines.charts.kit.drawing import (
    SHORT_LABEL,
    Choice,
    assemble,
    chip_scale,
    lettered,
    placed_text,
    ticks_between,
)
from rooflines.charts.kit.place import Place, Plane, Room, Spot, placed
from rooflines.charts.kit.themes import Margins
from rooflines.charts.needs import by_chips, has_bandwidth, two_chips
from rooflines.charts.planes import FAR, PICTURE, pictured, plane_parameters, plane_scale

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.charts.claims import Finding

__all__ = ["ridges"]

MARGINS = Margins(left=CHIP_MARGIN, right=3.0)
SHAPES = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down")

TALL_ROW = 2.1
"""Height of a row from which on a label fits above its point [em]."""


def ridges(
    frame: pl.DataFrame,
    *,
    title: str | None = None,
    added: Sequence[str] = (),
    added_dtypes: Sequence[str] = (),
) -> alt.LayerChart:
    """Ridge points of chips by the dtype they compute in.

    Args:
        frame: From `ridge_frame`: `ridge` [FLOP/byte].
        title: Replaces the finding.
        added: Chips that are shown below the others only where the reader chooses them.
        added_dtypes: Dtype combinations that only these chips are shown in.

    Returns:
        A chart with the parameter `chip` for the one to highlight.
    """
    compared = pictured(frame, added, added_dtypes)
    points = _points(compared)
    least = points.group_by("chip", maintain_order=True).agg(pl.col("ridge").min())
    order = least.sort("ridge")["chip"].to_list()
    chips = evenly(order)
    rows = points.filter(pl.col("chip").is_in(chips))
    rows = rows.with_columns(row=row_of(chips), added=pl.lit(value=False))
    below = _points(frame.filter(pl.col("chip").is_in(added)))
    below = below.with_columns(row=pl.lit(float(len(chips))), added=pl.lit(value=True))
    compute = compared.filter(pl.col("chip").is_in(chips))["compute"][0]
    subtitle = (
        "Dense peak over main-memory bandwidth: the FLOP per byte from which a chip is"
        f" compute-bound.{shown_of(chips, order)}"
    )

    def finding(*more: str) -> Finding:
        of_chips = frame.filter(pl.col("chip").is_in([*chips, *more]), compute=compute)
        once = of_chips.unique("chip", keep="first", maintain_order=True)
        return ridges_compared(once, compute, subtitle).titled(title)

    findings = dict.fromkeys((EVERY, *order), finding())
    findings |= {chip: finding(chip) for chip in added}
    spans = {PICTURE: _span_of(rows)}
    outside = below.filter(~pl.col("ridge").is_between(*spans[PICTURE]))
    far = outside["chip"].unique(maintain_order=True).to_list()
    if far:
        spans[FAR] = _span_of(pl.concat([rows, below]))
    return assemble(
        _layers(
            pl.concat([rows, below]),
            _labels(rows, below, spans, far),
            chip_axis(chips, added=bool(added)),
            chip_scale(frame),
        ),
        findings,
        [Choice("chip", [EVERY, *order, *added])],
        MARGINS,
        [*added_parameters(added), *_planes(spans, far)],
    )


def _points(frame: pl.DataFrame) -> pl.DataFrame:
    """The ridges of every chip: `compute`, the dtypes of a ridge, and the `first` of these."""
    points = frame.unique(["chip", "compute"], keep="first", maintain_order=True)
    return points.group_by(
        "chip", "vendor", "ridge", "flops_per_s", "bytes_per_s", maintain_order=True
    ).agg(compute=pl.col("compute").str.join(", "), first=pl.col("compute").first())


def _span_of(rows: pl.DataFrame) -> tuple[float, float]:
    """The edges of the plot of some ridges."""
    return lowest(rows, "ridge") / 1.35, highest(rows, "ridge") * 1.35


def _planes(spans: Mapping[str, tuple[float, float]], far: Sequence[str]) -> list[alt.Parameter]:
    """Parameters of the plot: `place`, its key, and its edges and ticks."""
    place = f"indexof({json.dumps(far)}, chip) >= 0 ? '{FAR}' : '{PICTURE}'" if far else "''"
    sides = {key: {"x": span, "ticks": ticks_between(*span)} for key, span in spans.items()}
    return [alt.param(name="place", expr=place), *plane_parameters(sides, "place")]


def _layers(
    rows: pl.DataFrame, labels: pl.DataFrame, down: Mapping[str, Any], colors: alt.Scale
) -> list[alt.Chart]:
    """A rule from the lowest ridge of a chip to the highest, points, and labels."""
    axis = alt.Axis(
        values=alt.expr("plane.ticks"),
        labelExpr=SHORT_LABEL,
        title="Ridge point (FLOP per byte of main memory)",
    )
    x = alt.X("ridge:Q", scale=plane_scale("x"), axis=axis)
    y = alt.Y("row:Q", **down)
    color = alt.Color("chip:N", legend=None, scale=colors)
    computes = rows["first"].unique(maintain_order=True).to_list()
    shapes = [SHAPES[index % len(SHAPES)] for index in range(len(computes))]
    shape = alt.Shape("first:N", legend=None, scale=alt.Scale(domain=computes, range=shapes))
    tooltip = [
        "chip:N",
        "compute:N",
        alt.Tooltip("ridge:Q", title="FLOP/byte", format=".4~s"),
        alt.Tooltip("flops_per_s:Q", title="peak FLOP/s", format=".4~s"),
        alt.Tooltip("bytes_per_s:Q", title="byte/s", format=".4~s"),
    ]
    lines = rows.group_by("chip", "row", "added", maintain_order=True).agg(
        low=pl.col("ridge").min(), high=pl.col("ridge").max()
    )
    return [
        compared_rows(lines)
        .mark_rule(style="rule")
        .encode(x=alt.X("low:Q"), x2=alt.X2("high:Q"), y=y),
        compared_rows(rows)
        .mark_point(style="dot", filled=True)
        .encode(x=x, y=y, color=color, shape=shape, opacity=highlight(), tooltip=tooltip),
        *placed_text(
            labels,
            "value",
            f"datum.place == place && {ADDED}",
            x=x,
            y=y,
            fill=lettered(colors),
            opacity=highlight(),
        ),
        heading("Ridge point by compute dtype"),
    ]


def _labels(
    compared: pl.DataFrame,
    below: pl.DataFrame,
    spans: Mapping[str, tuple[float, float]],
    far: Sequence[str],
) -> pl.DataFrame:
    """Dtype and number beside each point, in every plot that shows it: `place`."""
    rows = compared["row"].n_unique()
    labels = []
    for place, span in spans.items():
        labels.append(_beside(compared, span, rows).with_columns(place=pl.lit(place)))
        in_far = pl.col("chip").is_in(far)
        added = below.filter(in_far if place == FAR else ~in_far)
        labels += [
            _beside(one, span, rows + 1).with_columns(place=pl.lit(place))
            for one in added.partition_by("chip", maintain_order=True)
        ]
    return pl.concat(labels)


def _beside(rows: pl.DataFrame, span: tuple[float, float], height: int) -> pl.DataFrame:
    """Labels beside points that are shown together, in a plot of some rows."""
    plane = Plane(span, (height - 0.5, -0.5), linear=True)
    records = rows.to_dicts()
    texts = [f"{row['compute']} {significant(row['ridge'])}" for row in records]

    def places(plot: tuple[float, float]) -> list[Place | None]:
        sides = ("t", "r", "l", "b") if plot[1] / height > TALL_ROW else ("r", "l")
        spots = [
            Spot(
                *plane.at(plot, row["ridge"], row["row"]),
                text,
                bold=True,
                sides=sides,
                distance=0.4,
            )
            for row, text in zip(records, texts, strict=True)
        ]
        return Room(plot).place(spots)

    shown = rows.select("chip", "row", "added", "ridge")
    texts_of_rows = pl.Series(texts, dtype=pl.String)
    return shown.with_columns(text=texts_of_rows).hstack(placed(MARGINS, places))


CHART = Chart(
    name="ridges",
    family="compared",
    heading="Chips compared",
    caption="Dense peak over main-memory bandwidth, by the dtype computed in.",
    order=70,
    needs=(two_chips(has_bandwidth, "a known bandwidth of the main memory"),),
    compares=has_bandwidth,
    preferred=by_chips,
    most_dtypes=32,
    frame=lambda of, _: ridge_frame(of),
    draw=lambda frame, _, spec: ridges(
        frame, title=spec.title, added=spec.added, added_dtypes=spec.added_dtypes
    ),
)
