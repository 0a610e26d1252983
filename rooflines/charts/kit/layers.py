"""Vega-Lite layers.

A layer names its rows and reads the axes from the parameter `plane`. The view provides both, so
most views of a chart share their layers.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from rooflines.charts.kit.chart_text import shorten
from rooflines.charts.kit.chip_colours import chip_order

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.charts.kit.label_placement import Plane

Layer = dict[str, Any]
"""Vega-Lite layer, or encoding channel."""

MIN_TICKS_EXCEEDED = 2
"""Number of ticks that an axis must exceed [1]."""

SHORT_LABEL = (
    "datum.value > 0 && datum.value < 1 ? format(datum.value, '~g') : format(datum.value, '~s')"
)
SI_LABEL = f"replace({SHORT_LABEL}, regexp('([kMGTPE])$'), ' $1')"
TIME_LABEL = (
    "datum.value == 0 ? '0' : datum.value >= 1 ? format(datum.value, '~r') + ' s'"
    " : datum.value >= 1e-3 ? format(datum.value * 1e3, '~r') + ' ms'"
    " : datum.value >= 1e-6 ? format(datum.value * 1e6, '~r') + ' µs'"
    " : format(datum.value * 1e9, '~r') + ' ns'"
)
COUNT_LABEL = "datum.value >= 1000000 ? format(datum.value, '~s') : format(datum.value, ',d')"


def expr(text: str) -> Layer:
    """Vega expression, evaluated when the chart is drawn."""
    return {"expr": text}


OVERLAP_WIDTH: dict[str, Any] = {"strokeWidth": expr("em * (0.19 + 0.2 * datum.overlap_count)")}
"""Line width, wider by the `overlap_count` of lines drawn over it."""


def quantitative_channel(field: str, **more: Any) -> Layer:  # noqa: ANN401, handed on to Vega-Lite
    """Quantitative encoding channel."""
    return {"field": field, "type": "quantitative", **more}


def nominal_channel(field: str, **more: Any) -> Layer:  # noqa: ANN401, handed on to Vega-Lite
    """Nominal encoding channel."""
    return {"field": field, "type": "nominal", **more}


FORMATS = {
    **dict.fromkeys(("B", "D", "F", "chips", "launches", "max_B", "size"), ",d"),
    **dict.fromkeys(("share", "utilization", "roof_share", "time_share"), ".1%"),
    **dict.fromkeys(("ratio_lower", "ratio_estimate"), ".3~r"),
    **dict.fromkeys(("user", "rate"), ",.5~g"),
    **dict.fromkeys(("flops_per_s", "peak", "estimate", "slow", "fast"), ".4~s"),
    **dict.fromkeys(("bytes_per_s", "ridge", "intensity", "x", "y", "value"), ".4~s"),
    **dict.fromkeys(("seconds", "t_lower_s"), ".4~s"),
    "exact": ",.4f",
}
"""Tooltip formats of numeric columns; all other columns are nominal."""


def tips(**titles: str) -> list[Layer]:
    """Tooltip channels: columns with their titles."""
    return [
        (
            quantitative_channel(field, format=FORMATS[field])
            if field in FORMATS
            else nominal_channel(field)
        )
        | {"title": title}
        for field, title in titles.items()
    ]


def layer(
    data: str,
    mark: str,
    style: str | Sequence[str],
    encoding: Mapping[str, Any],
    *,
    where: str = "",
    **more: Any,  # noqa: ANN401, handed on to Vega-Lite
) -> Layer:
    """Layer with one kind of mark.

    Args:
        data: Its rows by name.
        mark: The mark's kind.
        style: The style, or several.
        encoding: The channels.
        where: Filter expression for rows.
        more: Further mark properties.
    """
    styles = style if isinstance(style, str) else list(style)
    properties = {**more, "filled": True} if mark == "point" and "filled" not in more else more
    spec: Layer = {"data": {"name": data}, "mark": {"type": mark, "style": styles, **properties}}
    if where:
        spec["transform"] = [{"filter": where}]
    return {**spec, "encoding": dict(encoding)}


def labels(
    data: str,
    style: str,
    encoding: Mapping[str, Any],
    *,
    halo: bool = True,
    where: str = "",
    **mark: Any,  # noqa: ANN401, handed on to Vega-Lite
) -> list[Layer]:
    """Layers of labels for rows with `text` and the columns from `label_placement.in_layouts`.

    A halo is a layer beneath, since a stroke drawn over the fill would cover the letters.
    """
    shown = "(narrow ? datum.on_narrow : datum.on)" + (f" && {where}" if where else "")
    placed = {
        "dx": expr("em * (narrow ? datum.dx_narrow : datum.dx)"),
        "dy": expr("em * (narrow ? datum.dy_narrow : datum.dy)"),
        "align": expr("narrow ? datum.align_narrow : datum.align"),
        **mark,
    }
    styles = [[style, "halo"], style] if halo else [style]
    halo_encoding = {k: v for k, v in encoding.items() if k not in ("fill", "color")}
    return [
        layer(
            data,
            "text",
            names,
            {
                **(halo_encoding if isinstance(names, list) else encoding),
                "text": nominal_channel("text"),
            },
            where=shown,
            **placed,
        )
        for names in styles
    ]


def heading(text: str) -> Layer:
    """Name for the plotted quantity, where a y-axis title would be."""
    mark = {"type": "text", "style": "strong", "align": "left", "clip": False, "text": text}
    return {
        "data": {"values": [{}]},
        "mark": {**mark, "x": 0, "y": expr("em * -1.35")},
    }


def axis(
    side: Literal["x", "y"],
    title: str | None,
    label: str = SI_LABEL,
    **more: Any,  # noqa: ANN401
) -> Layer:
    """Scale and axis along x or y; the parameter `plane` has edges and ticks.

    Args:
        side: `x` or `y`.
        title: Its title.
        label: The expression for its labels.
        more: Further axis properties.
    """
    ticks = {"x": "plane.across", "y": "plane.up"}[side]
    ends = [expr(f"plane.{side}[{end}]") for end in (0, 1)]
    return {
        "scale": {"domainMin": ends[0], "domainMax": ends[1], "nice": False, "zero": False},
        "axis": {"values": expr(ticks), "labelExpr": label, "title": title, **more},
    }


def log_axis(side: Literal["x", "y"], title: str, label: str = SI_LABEL, **more: Any) -> Layer:  # noqa: ANN401
    """Logarithmic scale and axis; arguments as in `axis`."""
    linear = axis(side, title, label, **more)
    scale = {k: v for k, v in linear["scale"].items() if k != "zero"}
    return {**linear, "scale": {**scale, "type": "log"}}


def plane_params(
    plane: Plane, across: Sequence[float] | None = None, up: Sequence[float] | None = None
) -> dict[str, Any]:
    """Parameter `plane`: edges and ticks, by default logarithmic ticks."""
    return {
        "plane": {
            "x": list(plane.x),
            "y": list(plane.y),
            "across": list(ticks_between(*plane.x) if across is None else across),
            "up": list(ticks_between(*plane.y) if up is None else up),
        }
    }


RIGHT_OF_BAR: dict[str, Any] = {"align": "left", "clip": False, "dx": expr("em * 0.4")}
"""Properties of a text right of a bar."""


def bar_axes(title: str | None, label: str) -> tuple[Layer, Layer]:
    """Axes of a bar chart: values along x, names down y, from `bar_params`."""
    bare = {"grid": False, "ticks": False, "domain": False}
    return axis("x", title, label), axis("y", None, "rows[datum.value] || ''", **bare)


def bar_params(
    names: Sequence[str], room: float, top: float, across: Sequence[float] | None = None
) -> dict[str, Any]:
    """Bar-chart parameters.

    Args:
        names: Row names from the top.
        room: Width of a name [em].
        top: The value at the right edge.
        across: Ticks; None: even ones.
    """
    return {
        "plane": {
            "x": [0.0, top],
            "y": [len(names) - 0.5, -0.5],
            "across": list(even_ticks(top) if across is None else across),
            "up": list(range(len(names))),
        },
        "rows": [shorten(name, room, tail=True) for name in names],
    }


def ticks_between(low: float, high: float) -> list[float]:
    """Ticks for a logarithmic axis: powers of ten, or more per decade if those are too few."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks: list[float] = []
    for digits in ((1,), (1, 2, 5), range(1, 10), [d / 4 for d in range(4, 40)]):
        candidates = [digit * 10.0**power for power in powers for digit in digits]
        ticks = [
            tick for tick in candidates if low <= tick * (1 + 1e-9) and tick <= high * (1 + 1e-9)
        ]
        if len(ticks) > MIN_TICKS_EXCEEDED:
            break
    return ticks


def even_ticks(top: float, max_count: int = 5) -> list[float]:
    """Ticks for a linear axis from zero: multiples of a round step [1]."""
    step = 10.0 ** math.floor(math.log10(top / max_count))
    step *= next(times for times in (1, 2, 5, 10) if top / (step * times) <= max_count)
    return [float(f"{step * index:.6g}") for index in range(math.floor(top / step + 1e-9) + 1)]


def powers_of_two(low: float, high: float, max_count: int = 12) -> list[int]:
    """Powers of two in a range; every n-th if there are more than `max_count`."""
    first, last = math.ceil(math.log2(low) - 1e-9), math.floor(math.log2(high) + 1e-9)
    step = max(1, -(-(last - first + 1) // max_count))
    powers = range(last, max(first, 0) - 1, -step)
    return [2**power for power in powers][::-1]


def chip_colour(vendors: Mapping[str, str | None], *, letters: bool = False) -> Layer:
    """Chip colour channel, darker for text.

    Args:
        vendors: Vendors by chip of a chart.
        letters: Colours for text.
    """
    scale = {"domain": chip_order(vendors), "range": "diverging" if letters else "category"}
    return nominal_channel("chip", scale=scale, legend=None)


SUBTITLE: Layer = {
    "data": {"values": [{}]},
    "mark": {
        "type": "text",
        "style": "subtitle",
        "text": expr("narrow ? '' : subline"),
        "x": 0,
        "y": expr("em * -4.6"),
        "align": "left",
        "baseline": "top",
        "clip": False,
    },
}
"""The subtitle, from the parameter `subline`; a narrow picture has none."""
