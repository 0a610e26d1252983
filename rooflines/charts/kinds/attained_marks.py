"""The marks of attained FLOP/s: curves, stems, dots at critical sizes, bands, and texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import alt, pl
from rooflines.charts.basis import CALIBRATED, NOMINAL
from rooflines.charts.kit.drawing import binary_axis, chosen, data, placed_text, si_axis, zoom

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["marks_of", "percent_of", "texts_of"]

DASH = 1.2
"""Length of a dash of a curve that others lie on [em]."""


def percent_of(near: pl.DataFrame) -> str:
    """The share of the peak of some rows: `90 %`; "" without rows."""
    return f"{100 * near['flops_per_s'][0] / near['peak'][0]:g} %" if near.height else ""


def _scale(series: Sequence[str]) -> dict[str, Any]:
    """The colours of the curves: steps of a ramp."""
    return {"legend": None, "scale": alt.Scale(domain=list(series), range="ramp")}


def marks_of(
    frame: pl.DataFrame, roofs: pl.DataFrame, size: str, by: Sequence[str]
) -> list[alt.Chart]:
    """The peak, stems from the knees down, curves and knees."""
    case, now = [name for name in by if name != "basis"], chosen(*by)
    sizes = frame.filter(kind="curve")["size"]
    low, high = float(sizes.min()), float(sizes.max())  # type: ignore[arg-type]
    x = alt.X(
        "size:Q",
        **binary_axis(
            low, max(high, low * 2), "Batch size B (tokens)" if size == "B" else f"Size of {size}"
        ),
    )
    y = alt.Y(
        "flops_per_s:Q",
        axis=si_axis("Attained FLOP/s"),
        scale=alt.Scale(domainMin=0, domainMax=alt.expr("top"), nice=False),
    )
    ramp = _scale(frame.sort("order")["series"].unique(maintain_order=True).to_list())
    color = alt.Color("series:N", **ramp)
    exactly = alt.Tooltip("exact:Q", title="exactly", format=",.4f")
    at_knee = [
        "series:N",
        alt.Tooltip("size:Q", title=f"critical {size}", format=",.0f"),
        exactly,
        "limit:N",
    ]
    common = (*by, "series", "size", "flops_per_s")
    knees = alt.Chart(data(frame.filter(kind="knee").select(*common, "exact", "limit")))
    curves = alt.Chart(data(frame.filter(kind="curve", basis=NOMINAL).select(common)))
    encoding = {"x": x, "y": y, "color": color, "tooltip": _about(size)}
    both, near = "basis" in by, frame.filter(kind="share")
    dots = knees.transform_filter(now + (f" && basis == '{NOMINAL}'" if both else ""))
    bands = frame.filter(kind="curve", basis=CALIBRATED).select(*common, "fast", "slow")
    return [
        alt.Chart(data(roofs))
        .transform_filter(chosen("chip", "dtypes"))
        .mark_rule(style="rule")
        .encode(y=alt.Y("peak:Q")),
        knees.transform_filter(now)
        .mark_rule(style="stem")
        .encode(x=x, y=y, y2=alt.datum(0), color=color, detail=alt.Detail("series:N")),
        *(_bands(bands, size, by, encoding) if both else []),
        *([_pale(curves, chosen(*case), encoding)] if both else []),
        curves.transform_filter(now)
        .mark_line(style="curve", **_in_turns(by))
        .encode(**encoding)
        .add_params(zoom("x")),
        *(
            [_hollow(near, size, by, {"y": y, "stroke": alt.Stroke("series:N", **ramp)})]
            if near.height
            else []
        ),
        dots.mark_point(style="dot", filled=True).encode(x=x, y=y, color=color, tooltip=at_knee),
    ]


def _in_turns(by: Sequence[str]) -> dict[str, Any]:
    """Dashes of curves that are one line, each where the others have gaps; the first is solid."""
    key = " + '|' + ".join(f"datum.{name}" for name in (*by, "series"))
    turn = f"(turns[{key}] || [0, 1])"
    return {
        "strokeDash": alt.expr(f"{turn}[0] ? [em * {DASH}, em * {DASH} * ({turn}[1] - 1)] : []"),
        "strokeDashOffset": alt.expr(f"-em * {DASH} * {turn}[0]"),
    }


def _hollow(
    near: pl.DataFrame, size: str, by: Sequence[str], encoding: Mapping[str, Any]
) -> alt.Chart:
    """Hollow dots at the critical sizes for a smaller share of the peak, on the nominal curves."""
    shown = near.select(*by, "series", "size", "exact", "flops_per_s")
    whole = alt.Tooltip("size:Q", title=f"{size} for {percent_of(near)} of the peak", format=",.0f")
    drawn: alt.Chart = (
        alt.Chart(data(shown))
        .transform_filter(chosen(*by))
        .mark_point(style="hollow", filled=True)
        .encode(
            x=alt.X("exact:Q"),
            **encoding,
            tooltip=[alt.Tooltip("series:N"), whole],
        )
    )
    return drawn


def _about(size: str) -> list[Any]:
    """The tooltip of a curve."""
    attains = alt.Tooltip("flops_per_s:Q", title="attained FLOP/s", format=".4~s")
    return ["series:N", alt.Tooltip("size:Q", title=size, format=",.0f"), attains]


def _pale(curves: alt.Chart, now: str, encoding: Mapping[str, Any]) -> alt.Chart:
    """The nominal curves behind the calibrated ones."""
    behind = curves.transform_filter(f"{now} && basis == '{CALIBRATED}'")
    drawn: alt.Chart = behind.mark_line(style="thin-curve", opacity=0.5).encode(**encoding)
    return drawn


def _bands(
    bands: pl.DataFrame, size: str, by: Sequence[str], encoding: Mapping[str, Any]
) -> list[alt.Chart]:
    """Calibrated curves, with their bands from p10 to p90 of the time."""
    base = alt.Chart(data(bands)).transform_filter(chosen(*by))
    ends = [
        alt.Tooltip("slow:Q", title="at p90 of the time", format=".4~s"),
        alt.Tooltip("fast:Q", title="at p10 of the time", format=".4~s"),
    ]
    curve = {**encoding, "tooltip": [*_about(size), *ends]}
    return [
        base.transform_filter("datum.slow != null")
        .mark_area(style="region")
        .encode(x=encoding["x"], y=alt.Y("slow:Q"), y2=alt.Y2("fast:Q"), color=encoding["color"]),
        base.mark_line(style="curve", **_in_turns(by)).encode(**curve),
    ]


def texts_of(labels: pl.DataFrame, series: Sequence[str], by: Sequence[str]) -> list[alt.Chart]:
    """Numbers and names in the colours of their curves, the peak in grey."""
    now = chosen(*by)
    place_of: dict[str, Any] = {"x": alt.X("size:Q"), "y": alt.Y("flops_per_s:Q")}
    layers = placed_text(
        labels.filter(style="value").drop("style"),
        "value",
        now,
        color=alt.Color("series:N", **_scale(series)),
        **place_of,
    )
    return layers + placed_text(labels.filter(style="note").drop("style"), "note", now, **place_of)
