"""The marks of attained FLOP/s: curves, stems, dots at critical sizes, bands, and texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import alt, pl
from rooflines.charts.basis import CALIBRATED, NOMINAL
from rooflines.charts.kinds.attained_cases import percent_of
from rooflines.charts.kinds.attained_curves import between
from rooflines.charts.kit.drawing import binary_axis, chosen, placed_text, si_axis, zoom

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["marks_of", "texts_of"]

DASH = 1.2
"""Length of a dash of a curve that others lie on [em]."""


STEPS = 8
"""Parts of a curve between two of its points, each drawn straight."""


def _scale(series: Sequence[str]) -> dict[str, Any]:
    """The colours of the curves: steps of a ramp."""
    return {"legend": None, "scale": alt.Scale(domain=list(series), range="ramp")}


def marks_of(
    frame: pl.DataFrame, size: str, by: Sequence[str], span: tuple[float, float]
) -> list[alt.Chart]:
    """The peak, stems from the knees down, curves and knees: all of them rows of the frame itself.

    Args:
        frame: The frame of the chart.
        size: The name of the size.
        by: What a reader chooses.
        span: The plot's edges: sizes from and to.
    """
    both, near = "basis" in by, frame.filter(kind="share")
    x = alt.X(
        "size:Q",
        **binary_axis(*span, "Batch size B (tokens)" if size == "B" else f"Size of {size}"),
    )
    y = alt.Y(
        "flops_per_s:Q",
        axis=si_axis("Attained FLOP/s"),
        scale=alt.Scale(domainMin=0, domainMax=alt.expr("top"), nice=False),
    )
    ramp = _scale(frame.sort("order")["series"].unique(maintain_order=True).to_list())
    color = alt.Color("series:N", **ramp)
    outline = {"y": y, "stroke": alt.Stroke("series:N", **ramp)}
    encoding = {"x": x, "y": y, "color": color, "tooltip": _about(size)}
    case = alt.Chart(frame).transform_filter(chosen(*(name for name in by if name != "basis")))
    nominal = case.transform_filter(f"basis == '{NOMINAL}'") if both else case
    knees = nominal.transform_filter(f"datum.kind == 'knee' && {_inside('size', *span)}")
    stem = {"x": x, "y": y, "y2": alt.datum(0), "color": color, "detail": alt.Detail("series:N")}
    return [
        case.transform_aggregate(peak="max(peak)")
        .mark_rule(style="rule")
        .encode(y=alt.Y("peak:Q")),
        knees.mark_rule(style="stem").encode(**stem),
        *(_calibrated(case, size, span, stem, encoding) if both else []),
        _smooth(nominal.transform_filter("datum.kind == 'curve'"), "flops_per_s")
        .mark_line(style="curve", **_in_turns())
        .encode(**encoding)
        .add_params(zoom("x")),
        *([_hollow(nominal, near, size, span, outline)] if near.height else []),
        knees.mark_point(style="dot", filled=True).encode(
            x=x,
            y=y,
            color=color,
            tooltip=[
                "series:N",
                alt.Tooltip("size:Q", title=f"critical {size}", format=",.0f"),
                alt.Tooltip("exact:Q", title="exactly", format=",.4f"),
                "limit:N",
            ],
        ),
    ]


def _inside(name: str, low: float, high: float) -> str:
    """A filter expression: rows whose size is on the axis."""
    return f"datum.{name} >= {low} && datum.{name} <= {high}"


def _in_turns() -> dict[str, Any]:
    """Dashes of curves that are one line, each where the others have gaps; the first is solid."""
    turn = "(turns[datum.series] || [0, 1])"
    return {
        "strokeDash": alt.expr(f"{turn}[0] ? [em * {DASH}, em * {DASH} * ({turn}[1] - 1)] : []"),
        "strokeDashOffset": alt.expr(f"-em * {DASH} * {turn}[0]"),
    }


def _hollow(
    nominal: alt.Chart,
    near: pl.DataFrame,
    size: str,
    span: tuple[float, float],
    encoding: Mapping[str, Any],
) -> alt.Chart:
    """Hollow dots at the critical sizes for a smaller share of the peak, on the nominal curves."""
    percent = percent_of(near["flops_per_s"][0], near["peak"][0])
    whole = alt.Tooltip("size:Q", title=f"{size} for {percent} of the peak", format=",.0f")
    shown = _inside("exact", *span)
    drawn: alt.Chart = (
        nominal.transform_filter(f"datum.kind == 'share' && {shown}")
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


def _smooth(curves: alt.Chart, *names: str) -> alt.Chart:
    """Curves with further points between two that differ in some columns, by `between`."""
    datum = alt.datum
    differ = " || ".join(f"datum.next_{name} != datum.{name}" for name in names)
    at = datum.size * alt.expr.pow(datum.next_size / datum.size, datum.step / STEPS)
    columns = {
        name: between((datum.size, datum[name]), (datum.next_size, datum[f"next_{name}"]), at)
        for name in names
    }
    columns["size"] = at  # the last one, as others read it
    following: dict[str, Any] = {f"next_{name}": f"lead({name})" for name in columns}
    drawn: alt.Chart = (
        curves.transform_window(groupby=["series"], sort=[alt.SortField("size")], **following)
        .transform_calculate(
            step=f"isValid(datum.next_size) && ({differ}) ? sequence({STEPS}) : [0]"
        )
        .transform_flatten(["step"])
        .transform_calculate(
            **{name: f"datum.step ? {value} : datum.{name}" for name, value in columns.items()}
        )
    )
    return drawn


def _calibrated(
    case: alt.Chart,
    size: str,
    span: tuple[float, float],
    stem: Mapping[str, Any],
    encoding: Mapping[str, Any],
) -> list[alt.Chart]:
    """Stems, bands from p10 to p90 of the time and curves; nominal curves behind them."""
    now = case.transform_filter(f"basis == '{CALIBRATED}' && datum.calibrated")
    knees = now.transform_filter(f"datum.kind == 'knee' && {_inside('critical_estimate', *span)}")
    rows = now.transform_filter("datum.kind == 'estimate'")
    curves = now.transform_filter("datum.kind == 'curve'")
    ends = [
        alt.Tooltip("slow:Q", title="at p90 of the time", format=".4~s"),
        alt.Tooltip("fast:Q", title="at p10 of the time", format=".4~s"),
    ]
    curve = {**encoding, "tooltip": [*_about(size), *ends]}
    return [
        knees.mark_rule(style="stem").encode(**{**stem, "x": alt.X("critical_estimate:Q")}),
        _smooth(rows.transform_filter("datum.slow != null"), "slow", "fast")
        .mark_area(style="region")
        .encode(x=encoding["x"], y=alt.Y("slow:Q"), y2=alt.Y2("fast:Q"), color=encoding["color"]),
        _smooth(rows, "flops_per_s").mark_line(style="curve", **_in_turns()).encode(**curve),
        _smooth(curves, "flops_per_s")
        .mark_line(style="thin-curve", opacity=0.5)
        .encode(**encoding),
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
