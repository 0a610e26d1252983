"""The marks of thresholds over chips."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import alt, pl
from rooflines.charts.basis import basis_names, by_basis
from rooflines.charts.comparing import (
    compared_rows,
    highlight,
    larger,
    names_at_ends,
    wider,
)
from rooflines.charts.frames import share_tooltip
from rooflines.charts.kit.drawing import (
    COUNT_LABEL,
    SHORT_LABEL,
    chosen,
    lettered,
    log_scale,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["BY_BASIS", "marks_of"]

BY_BASIS = ("critical", "near", "reached", "limit", "beneath")
"""Columns of the points that a calibration changes."""

UNDRAWN = ("vendor", "setting", "share", "most")
"""Columns of the points that no mark and no tooltip reads."""


def marks_of(
    points: pl.DataFrame, ends: pl.DataFrame, size: str, colors: alt.Scale
) -> list[alt.Chart]:
    """The area of never, lines and points, crosses for never, and names at the ends of lines."""
    x_axis = alt.Axis(
        values=alt.expr("span.across"),
        labelExpr=COUNT_LABEL,
        title="Chips that share the work",
        grid=False,
    )
    y_axis = alt.Axis(
        values=alt.expr("span.ticks"), labelExpr=SHORT_LABEL, title=f"Smallest compute-bound {size}"
    )
    x = alt.X("shards:Q", scale=log_scale("span.left", "span.right"), axis=x_axis)
    y = alt.Y("critical:Q", scale=log_scale("span.low", "span.high"), axis=y_axis)
    tooltip, color = _about(points, size), alt.Color("chip:N", legend=None, scale=colors)
    base = compared_rows(points.drop(UNDRAWN)).transform_filter(chosen("dtypes", "sharding"))
    base = by_basis(base, points, BY_BASIS)
    others = {"x": x, "color": color, "opacity": highlight(), "tooltip": tooltip}
    encoding = {**others, "y": y}
    found = base.transform_filter("datum.critical != null")
    never = base.transform_filter("datum.critical == null").transform_calculate(
        cross="span.never * pow(span.high / span.never, (datum.lane + 0.5) / span.lanes)"
    )
    cross = never.mark_point(
        style="dot", filled=True, shape="cross", size=alt.expr("em * em * 0.62")
    )
    return [
        *_ground(),
        found.mark_line(style="curve", strokeWidth=wider()).encode(
            **encoding, detail=alt.Detail("chip:N")
        ),
        *([_hollow(base, colors, encoding)] if points["reached"].count() else []),
        found.mark_point(style="dot", filled=True, size=larger()).encode(**encoding),
        cross.encode(**others, y=alt.Y("cross:Q")),
        *names_at_ends(
            ends,
            points,
            chosen("dtypes", "sharding", *basis_names(points)),
            y=alt.Y("y:Q"),
            fill=lettered(colors),
            opacity=highlight(),
        ),
    ]


def _ground() -> list[alt.Chart]:
    """The area of never, if the choice has one."""
    base = alt.Chart(pl.DataFrame({"text": ["never"]}))
    edges = {name: f"span.{name}" for name in ("left", "right", "never", "high")}
    ground = base.transform_calculate(**edges, middle="sqrt(span.never * span.high)")
    ground = ground.transform_filter("datum.high > datum.never")
    left = alt.expr("em * -0.45")
    return [
        ground.mark_rect(style="never", opacity=0.55).encode(
            x=alt.X("left:Q"), x2=alt.X2("right:Q"), y=alt.Y("never:Q"), y2=alt.Y2("high:Q")
        ),
        ground.mark_text(style="note", align="right", x=0, dx=left, clip=False).encode(
            y=alt.Y("middle:Q"), text=alt.Text("text:N")
        ),
    ]


def _hollow(base: alt.Chart, colors: alt.Scale, encoding: Mapping[str, Any]) -> alt.Chart:
    """Hollow dots at the critical sizes for a smaller share of the peak."""
    others = {name: encoding[name] for name in ("x", "opacity", "tooltip")}
    stroke = alt.Stroke("chip:N", legend=None, scale=colors)
    drawn: alt.Chart = (
        base.transform_filter("datum.reached != null")
        .mark_point(style="hollow", filled=True)
        .encode(**others, y=alt.Y("reached:Q"), stroke=stroke)
    )
    return drawn


def _about(points: pl.DataFrame, size: str) -> list[Any]:
    """The tooltip of a point."""
    return [
        "chip:N",
        "link:N",
        alt.Tooltip("shards:Q", title="chips"),
        alt.Tooltip("critical:Q", title=f"critical {size}", format=",d"),
        *share_tooltip(points),
        "limit:N",
    ]
