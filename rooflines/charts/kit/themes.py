"""Themes: light and dark, each in three sizes, for one specification.

A chart's specification has no colours, fonts or sizes of its own: it names styles and ranges, and
its offsets are in em. A size defines the picture and one em in pixels; a theme defines styles and
ranges. `themed` combines the three. A page does the same: it sets `width`, `height`, `padding` and
the parameters `em` and `narrow` from `usermeta.looks` of the specification, and gives
`config(size, dark=...)` to Vega-Embed.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from rooflines.charts.kit.chip_colours import in_letters, shades
from rooflines.model.resources import RESOURCES

if TYPE_CHECKING:
    from collections.abc import Mapping

FONT = "Inter, 'Liberation Sans', Arial, sans-serif"
"""Inter is vendored; the generic family at the end is the fallback."""

BOLD = 600


@dataclass(frozen=True)
class Margins:
    """Room around the plot for axes, titles and labels at the ends of lines [em]."""

    left: float = 5.0
    right: float = 2.0
    top: float = 8.0
    bottom: float = 4.4


@dataclass(frozen=True)
class Size:
    """A size of the whole picture.

    Attributes:
        width, height: Dimensions of the picture [px].
        em: Font size of plain text, and the unit of every offset [px].
        narrow: Whether labels are at their places of the narrow layout.
        titled: Whether title and subtitle are drawn; in a paper the caption has them.
    """

    width: int
    height: int
    em: float
    narrow: bool = False
    titled: bool = True


SIZES = {
    "slide": Size(1280, 720, 20),
    "web": Size(896, 504, 14),
    "paper": Size(460, 300, 10, narrow=True, titled=False),
}
"""A slide, a web page, and a column of a paper; the first two differ in scale only."""

UNTITLED_TOP = 2.6
"""Room above a plot without a title, for the name of the y axis [em]."""


def plot_size(size: Size, margins: Margins) -> tuple[float, float]:
    """Width and height of the plot inside its margins [em]."""
    top = margins.top if size.titled else UNTITLED_TOP
    return (
        size.width / size.em - margins.left - margins.right,
        size.height / size.em - top - margins.bottom,
    )


def plot_sizes(margins: Margins) -> dict[str, dict[str, Any]]:
    """The plot's dimensions in every size, as `usermeta.looks` of a specification has them."""
    sizes = {}
    for name, size in SIZES.items():
        across, down = plot_size(size, margins)
        pad = {**asdict(margins), "top": margins.top if size.titled else UNTITLED_TOP}
        sizes[name] = {
            "width": round(across * size.em, 2),
            "height": round(down * size.em, 2),
            "padding": {side: round(value * size.em, 2) for side, value in pad.items()},
            "em": size.em,
            "narrow": size.narrow,
            "titled": size.titled,
        }
    return sizes


@dataclass(frozen=True)
class Theme:
    """Colours by their meaning."""

    background: str
    ink: str
    muted: str
    grid: str
    axis: str
    context: str
    never: str
    on_heat: tuple[str, str]
    on_resource: str
    measured: str
    estimate: str
    resources: tuple[str, ...]
    region_words: tuple[str, str]
    region_opacity: float
    heat: tuple[str, ...]
    steps: tuple[str, ...]


THEMES = TypeAdapter(dict[str, Theme]).validate_json(
    Path(__file__).with_suffix(".json").read_bytes()
)
"""The themes, from `themes.json`."""


def theme(*, dark: bool) -> Theme:
    """The light or the dark theme."""
    return THEMES["dark" if dark else "light"]


def config(size: Size, *, dark: bool) -> dict[str, Any]:
    """The Vega-Lite config of a size in a theme.

    Args:
        size: One of `SIZES`.
        dark: Whether the background is dark.

    Returns:
        A config object: fonts, sizes, styles (`label`, `value`, `note`, `halo`, `curve`, ...) and
        ranges: `category` for chips in the order of `chip_order`, `diverging` for text in their
        colours, `ordinal` for resources and what is mixed of them, `heatmap` for a magnitude,
        `ramp` for steps of a size.
    """
    em, colours = size.em, theme(dark=dark)
    of_chips = shades(colours.ink, dark=dark)
    return {
        "background": colours.background,
        "font": FONT,
        "view": {"stroke": None},
        "axis": _axis(em, colours),
        "axisX": {"titlePadding": 0.75 * em},
        "axisY": {
            "titleAngle": 0,
            "titleAlign": "left",
            "titleAnchor": "end",
            "titleBaseline": "bottom",
            "titleX": 0,
            "titleY": -0.85 * em,
            "domain": False,
        },
        "axisXQuantitative": {"tickSize": 0.35 * em},
        "axisYQuantitative": {"ticks": False},
        "title": {
            "anchor": "start",
            "frame": "group",
            "fontSize": 1.6 * em,
            "fontWeight": BOLD,
            "color": colours.ink,
            "offset": 0.75 * em,
        },
        "legend": {
            "labelColor": colours.muted,
            "titleColor": colours.ink,
            "labelFontSize": 0.95 * em,
            "titleFontSize": 0.95 * em,
            "titleFontWeight": BOLD,
            "titlePadding": 0.5 * em,
            "titleLimit": 0,
            "labelLimit": 0,
            "symbolSize": (0.8 * em) ** 2,
            "symbolStrokeWidth": 0,
            "gradientThickness": 0.8 * em,
            "offset": 1.2 * em,
            "rowPadding": 0.5 * em,
        },
        "range": {
            "category": of_chips,
            "diverging": in_letters(of_chips),
            "ordinal": list(colours.resources[: len(RESOURCES) + 1]),
            "heatmap": list(colours.heat),
            "ramp": list(colours.steps),
        },
        "style": _styles(em, colours),
    }


def _axis(em: float, colours: Theme) -> dict[str, Any]:
    return {
        "labelColor": colours.muted,
        "labelFontSize": em,
        "labelPadding": 0.45 * em,
        "labelFlush": False,
        "labelLimit": 0,
        "titleColor": colours.ink,
        "titleFontSize": em,
        "titleFontWeight": BOLD,
        "titleLimit": 0,
        "gridColor": colours.grid,
        "gridWidth": 0.06 * em,
        "domainColor": colours.axis,
        "domainWidth": 0.07 * em,
        "tickColor": colours.axis,
        "tickWidth": 0.07 * em,
    }


def _styles(em: float, colours: Theme) -> dict[str, Any]:
    """Named styles. They set `color`: a mark's default colour overrides `fill` and `stroke`."""
    text = {"fontSize": em, "font": FONT, "baseline": "middle"}
    small = {**text, "fontSize": 0.9 * em}
    dot = {"size": (0.62 * em) ** 2, "stroke": colours.background, "strokeWidth": 0.14 * em}
    dot["opacity"] = 1
    return {
        "label": {**text, "color": colours.ink},
        "strong": {**text, "color": colours.ink, "fontWeight": BOLD},
        "note": {**text, "color": colours.muted},
        "subtitle": {**text, "baseline": "top", "lineHeight": 1.3 * em, "color": colours.muted},
        "small": {**small, "color": colours.muted},
        "value": {**text, "fontWeight": BOLD},
        "halo": {
            "stroke": colours.background,
            "color": colours.background,
            "strokeWidth": 0.34 * em,
            "strokeJoin": "round",
        },
        "cell-low": {**small, "color": colours.on_heat[0]},
        "cell-high": {**small, "color": colours.on_heat[1]},
        "on-resource": {**small, "color": colours.on_resource, "fontWeight": BOLD},
        "cell-never": {**small, "color": colours.muted},
        "memory": {**text, "fontWeight": BOLD, "color": colours.region_words[0]},
        "compute": {**text, "fontWeight": BOLD, "color": colours.region_words[1]},
        "region": {"opacity": colours.region_opacity},
        "never": {"color": colours.never},
        "curve": {"strokeWidth": 0.19 * em, "strokeCap": "round", "strokeJoin": "round"},
        "roof": {"strokeWidth": 0.2 * em, "color": colours.ink, "strokeJoin": "round"},
        "context": {"strokeWidth": 0.11 * em, "color": colours.context},
        "rule": {
            "strokeWidth": 0.08 * em,
            "color": colours.context,
            "strokeDash": [0.3 * em, 0.25 * em],
        },
        "band": {"strokeWidth": 0.11 * em, "color": colours.ink, "strokeDash": [1, 0]},
        "stem": {"strokeWidth": 0.08 * em, "strokeDash": [0.3 * em, 0.25 * em]},
        "dot": dot,
        "hollow": {
            "size": (0.5 * em) ** 2,
            "color": colours.background,
            "strokeWidth": 0.11 * em,
            "opacity": 1,
        },
        "ink-dot": {**dot, "color": colours.ink},
        "timing": {"size": (0.42 * em) ** 2, "strokeWidth": 0.09 * em, "color": colours.measured},
        "to-bound": {"size": (0.36 * em) ** 2, "color": colours.context, "opacity": 1},
        "to-estimate": {"size": (0.36 * em) ** 2, "color": colours.estimate, "opacity": 0.8},
        "estimate": {
            "strokeWidth": 0.2 * em,
            "color": colours.estimate,
            "strokeCap": "round",
            "strokeJoin": "round",
        },
        "estimate-text": {**text, "fontWeight": BOLD, "color": colours.estimate},
        "cell": {"stroke": colours.background, "strokeWidth": 0.08 * em},
        "bar": {"cornerRadius": 0.12 * em},
    }


def themed(
    spec: Mapping[str, Any], size: Size, *, dark: bool, whole: bool = False
) -> dict[str, Any]:
    """A chart's specification in one size and theme, ready to draw.

    Args:
        spec: The specification of a chart of this package, without a theme.
        size: One of `SIZES`.
        dark: Whether the background is dark.
        whole: Whether it keeps `usermeta.looks`, so that it can be drawn in another size.

    Returns:
        The specification with dimensions and config, without title where the size has none; what
        is not changed is shared with `spec`.
    """
    (name,) = (name for name, of_name in SIZES.items() if of_name == size)
    dimensions = spec["usermeta"]["looks"][name]
    params = [
        {**parameter, "value": dimensions[parameter["name"]]}
        if parameter["name"] in ("em", "narrow")
        else parameter
        for parameter in spec["params"]
    ]
    drawn = {
        **spec,
        **{key: dimensions[key] for key in ("width", "height", "padding")},
        "params": params,
        "config": config(size, dark=dark),
    }
    if not size.titled:
        drawn.pop("title", None)
    if not whole:
        drawn.pop("usermeta", None)
    return drawn
