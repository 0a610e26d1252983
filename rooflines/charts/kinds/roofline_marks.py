"""The layers of a roofline: regions, lines, points, and labels at their places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import alt, pl
from rooflines.charts.basis import CALIBRATED
from rooflines.charts.frames import TIMES
from rooflines.charts.kinds.roofline_roof import REGIONS, SLOPE_ANGLE
from rooflines.charts.kit.drawing import chosen, data, placed_text, zoom

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["marks", "texts"]


def marks(pieces: Mapping[str, list[dict[str, Any]]], x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """Regions, then lines, then points."""
    now = chosen("chip", "dtypes")
    frames = {
        name: data(pl.DataFrame(rows, infer_schema_length=None))
        for name, rows in pieces.items()
        if rows
    }

    def layer(name: str) -> alt.Chart:
        return alt.Chart(frames[name]).transform_filter(now)

    region = alt.Color(
        "region:N", legend=None, scale=alt.Scale(domain=list(TIMES), range="ordinal")
    )
    rate = alt.Tooltip("bytes_per_s:Q", title="byte/s", format=".3~s")
    layers = [
        layer("region")
        .mark_area(style="region")
        .encode(x=x, y=y, y2=alt.Y2("y2:Q"), color=region, detail=alt.Detail("region:N")),
        layer("ceiling")
        .mark_line(style="context")
        .encode(
            x=x,
            y=y,
            detail=alt.Detail("line:N"),
            tooltip=[
                alt.Tooltip("name:N"),
                alt.Tooltip("peak:Q", title="peak FLOP/s", format=".4~s"),
            ],
        ),
        layer("slope")
        .mark_line(style="context")
        .encode(
            x=x,
            y=y,
            detail=alt.Detail("line:N"),
            tooltip=[
                alt.Tooltip("name:N"),
                rate,
                alt.Tooltip("ridge:Q", title="ridge, FLOP/byte", format=".4~s"),
            ],
        ),
        layer("ridge").mark_rule(style="rule").encode(x=x, y=y, y2=alt.Y2("y2:Q")),
        layer("roof").mark_line(style="roof").encode(x=x, y=y).add_params(zoom("x", "y")),
    ]
    if "point" in frames:
        layers += _points(frames["point"], x, y)
    return layers


def _points(points: pl.DataFrame, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """Operating points; if calibrated ones are chosen, these with their bands, the nominal pale."""
    about = [
        alt.Tooltip("shape:N"),
        alt.Tooltip("at:Q", title="size", format=",d"),
        alt.Tooltip("x:Q", title="FLOP/byte", format=".4~s"),
    ]
    nominal = alt.Tooltip("y:Q", title="attained FLOP/s", format=".4~s")
    estimates = [
        alt.Tooltip("estimate:Q", title="calibrated FLOP/s", format=".4~s"),
        alt.Tooltip("slow:Q", title="at p90 of the time", format=".4~s"),
        alt.Tooltip("fast:Q", title="at p10 of the time", format=".4~s"),
    ]
    known = points["estimate"].is_not_null().any()
    base = alt.Chart(points).transform_filter(chosen("chip", "dtypes"))
    pale: dict[str, Any] = {}
    if known:
        pale["opacity"] = alt.expr(f"basis == '{CALIBRATED}' ? 0.35 : 1")
    layers = [
        base.mark_point(style="ink-dot", filled=True, **pale).encode(
            x=x, y=y, tooltip=[*about, nominal]
        )
    ]
    if known:
        fitted = base.transform_filter(f"basis == '{CALIBRATED}' && datum.estimate != null")
        encoding = {"x": x, "tooltip": [*about, nominal, *estimates]}
        layers += [
            fitted.mark_rule(style="band", clip=True).encode(
                y=alt.Y("slow:Q"), y2=alt.Y2("fast:Q"), **encoding
            ),
            fitted.mark_point(style="ink-dot", filled=True, clip=True).encode(
                y=alt.Y("estimate:Q"), **encoding
            ),
        ]
    return layers


def texts(labels: pl.DataFrame, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """Every label; those of slopes are turned by the slopes' angle."""
    layers = []
    now, slopes = chosen("chip", "dtypes"), pl.col("role") == "slope"
    for style in ("strong", "label", "note", *REGIONS):
        of_style = labels.filter(style=style).drop("style")
        for part, angle in (
            (of_style.filter(slopes), SLOPE_ANGLE),
            (of_style.filter(~slopes), "0"),
        ):
            if part.height:
                layers += placed_text(part.drop("role"), style, now, angle=angle, x=x, y=y)
    return layers
