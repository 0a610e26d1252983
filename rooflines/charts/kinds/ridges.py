"""Ridge points of chips, a row for each chip."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    log_axis,
    placed_text,
    ticks_between,
)
from rooflines.charts.kit.place import Place, Plane, Room, Spot, placed
from rooflines.charts.kit.themes import Margins
from rooflines.charts.needs import by_chips, has_bandwidth, two_chips

if TYPE_CHECKING:
    from collections.abc import Sequence

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
) -> alt.LayerChart:
    """Ridge points of chips by the dtype they compute in.

    Args:
        frame: From `ridge_frame`: `ridge` [FLOP/byte].
        title: Replaces the finding.
        added: Chips that are shown below the others only where the reader chooses them.

    Returns:
        A chart with the parameter `chip` for the one to highlight.
    """
    compared = frame.filter(~pl.col("chip").is_in(added))
    points = frame.unique(["chip", "compute"], keep="first", maintain_order=True)
    points = points.group_by(
        "chip", "vendor", "ridge", "flops_per_s", "bytes_per_s", maintain_order=True
    ).agg(compute=pl.col("compute").str.join(", "), first=pl.col("compute").first())
    computes = points["first"].unique(maintain_order=True).to_list()
    order = (
        points.filter(~pl.col("chip").is_in(added))
        .group_by("chip", maintain_order=True)
        .agg(pl.col("ridge").min())
        .sort("ridge")["chip"]
        .to_list()
    )
    chips = evenly(order)
    rows = points.filter(pl.col("chip").is_in(chips)).with_columns(row=row_of(chips))
    if added:
        below = points.filter(pl.col("chip").is_in(added)).with_columns(row=float(len(chips)))
        rows = pl.concat([rows, below]).with_columns(added=pl.col("row") == len(chips))
    shown = compared.filter(pl.col("chip").is_in(chips))
    compute = shown["compute"][0]
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
    return assemble(
        _layers(rows, chips, computes, chip_scale(frame)),
        findings,
        [Choice("chip", [EVERY, *order, *added])],
        MARGINS,
        added_parameters(added),
    )


def _layers(
    rows: pl.DataFrame, chips: Sequence[str], computes: Sequence[str], colors: alt.Scale
) -> list[alt.Chart]:
    """A rule from the lowest ridge of a chip to the highest, points, and labels."""
    low, high = lowest(rows, "ridge") / 1.35, highest(rows, "ridge") * 1.35
    x = alt.X(
        "ridge:Q",
        **log_axis(
            low,
            high,
            "Ridge point (FLOP per byte of main memory)",
            SHORT_LABEL,
            values=ticks_between(low, high),
        ),
    )
    added = "added" in rows.columns
    y = alt.Y("row:Q", **chip_axis(chips, added=added))
    color = alt.Color("chip:N", legend=None, scale=colors)
    shapes = [SHAPES[index % len(SHAPES)] for index in range(len(computes))]
    shape = alt.Shape("first:N", legend=None, scale=alt.Scale(domain=list(computes), range=shapes))
    tooltip = [
        "chip:N",
        "compute:N",
        alt.Tooltip("ridge:Q", title="FLOP/byte", format=".4~s"),
        alt.Tooltip("flops_per_s:Q", title="peak FLOP/s", format=".4~s"),
        alt.Tooltip("bytes_per_s:Q", title="byte/s", format=".4~s"),
    ]
    by = ["chip", "row", *(["added"] if added else [])]
    spans = rows.group_by(by, maintain_order=True).agg(
        low=pl.col("ridge").min(), high=pl.col("ridge").max()
    )
    labels = pl.concat(
        _labels(case, (low, high), len(chips) + added, by)
        for case in (rows.partition_by("chip", maintain_order=True) if added else [rows])
    )
    return [
        compared_rows(spans)
        .mark_rule(style="rule")
        .encode(x=alt.X("low:Q"), x2=alt.X2("high:Q"), y=y),
        compared_rows(rows)
        .mark_point(style="dot", filled=True)
        .encode(x=x, y=y, color=color, shape=shape, opacity=highlight(), tooltip=tooltip),
        *placed_text(
            labels,
            "value",
            ADDED if added else "",
            x=x,
            y=y,
            fill=lettered(colors),
            opacity=highlight(),
        ),
        heading("Ridge point by compute dtype"),
    ]


def _labels(
    rows: pl.DataFrame, span: tuple[float, float], height: int, by: Sequence[str]
) -> pl.DataFrame:
    """Dtype and number beside each point."""
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
                distance=0.45,
            )
            for row, text in zip(records, texts, strict=True)
        ]
        return Room(plot).place(spots)

    return rows.select(*by, "ridge", text=pl.Series(texts, dtype=pl.String)).hstack(
        placed(MARGINS, places)
    )


CHART = Chart(
    name="ridges",
    family="compared",
    heading="Chips compared",
    caption="Dense peak over main-memory bandwidth, by the dtype computed in.",
    order=70,
    needs=(two_chips(has_bandwidth, "a known bandwidth of the main memory"),),
    compares=has_bandwidth,
    preferred=by_chips,
    most_dtypes=8,
    every_chip=True,
    frame=lambda of, _: ridge_frame(of),
    draw=lambda frame, _, spec: ridges(frame, title=spec.title, added=spec.added),
)
