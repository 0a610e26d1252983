"""Looks: three sizes and two themes that one chart is drawn in.

A chart's specification holds no colour, font or size of its own: it names styles and ranges, and gives offsets in em. A size says how
many pixels the picture and one em have, a theme fills in styles and ranges. `themed` puts the three together; a page does the same by
setting `width`, `height`, `padding` and the parameters `em` and `narrow` to what the specification has under `usermeta.looks`, and by
handing `config(size, dark=...)` to Vega-Embed.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rooflines.model.resources import RESOURCES

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "CHIP_SLOTS",
    "FONT",
    "SIZES",
    "SLOTS_OF",
    "Margins",
    "Size",
    "Theme",
    "config",
    "plot_size",
    "sizes_of",
    "theme",
    "themed",
]

FONT = "Inter, 'Liberation Sans', Arial, sans-serif"
"""Inter comes with the package; the generic family at the end keeps text visible where no named one is found."""

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
        width, height: Of the picture [px].
        em: The size of plain text, and the unit of every offset [px].
        narrow: Whether labels stand as they were placed for the narrow layout.
        titled: Whether title and subtitle are drawn; in a paper they belong into the caption.
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
"""A slide to be seen from the back, a page, and a column of a paper. The first two are alike but for their scale."""

UNTITLED_TOP = 2.6
"""Room above a plot without title: the name of the y axis stands there [em]."""


def plot_size(size: Size, margins: Margins) -> tuple[float, float]:
    """Width and height of the plot inside its margins [em]."""
    top = margins.top if size.titled else UNTITLED_TOP
    return (
        size.width / size.em - margins.left - margins.right,
        size.height / size.em - top - margins.bottom,
    )


def sizes_of(margins: Margins) -> dict[str, dict[str, Any]]:
    """What `usermeta.looks` of a specification holds: for every size the numbers that make the plot fit it."""
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
    """Colours, by what they say."""

    background: str
    ink: str
    muted: str
    grid: str
    axis: str
    context: str
    never: str
    on_heat: str
    on_resource: str
    chips: tuple[str, ...]
    resources: tuple[str, ...]
    region_words: tuple[str, str]
    region_opacity: float
    heat: tuple[str, ...]
    steps: tuple[str, ...]


CHIP_SLOTS = 10
"""Colours for chips; more chips than that share them, so labels name every line."""

SLOTS_OF = {"Google": (0, 1, 2), "NVIDIA": (3, 4, 5), "AMD": (6, 7), "": (8, 9)}
"""The slots that a vendor's chips take first: Google's are blue, NVIDIA's warm, AMD's violet."""

LIGHT = Theme(
    background="#FFFFFF",
    ink="#17202E",
    muted="#5A6577",
    grid="#E6E9EE",
    axis="#AAB3C0",
    context="#8A94A6",
    never="#D5D9DF",
    on_heat="#FFFFFF",
    on_resource="#FFFFFF",
    chips=(
        "#3B82F6",
        "#1E3A8A",
        "#0E8FB0",
        "#E8760A",
        "#A3231C",
        "#A97B00",
        "#C04FA8",
        "#6D4BC3",
        "#0B7A5E",
        "#6B7280",
    ),
    resources=("#2F8F6B", "#D9622B", "#7A5BC0", "#A97B00", "#0E8FB0", "#C04FA8"),
    region_words=("#A8441A", "#1C7445"),
    region_opacity=0.14,
    heat=("#FFF6E0", "#FBD48A", "#F2A048", "#D9622B", "#A32B2B", "#5E1330"),
    steps=("#173F6E", "#1B6F93", "#2A9485", "#6E9E3A", "#A97B00", "#B4531B"),
)

DARK = Theme(
    background="#0F1722",
    ink="#F2F5F9",
    muted="#A9B4C4",
    grid="#222D3C",
    axis="#4A586C",
    context="#74839A",
    never="#3A4453",
    on_heat="#17202E",
    on_resource="#0F1722",
    chips=(
        "#4C8DF6",
        "#C3DAFF",
        "#35BFD8",
        "#E8811F",
        "#FFB3A3",
        "#E3C04A",
        "#D878C4",
        "#A58BF0",
        "#37AE89",
        "#9AA5B4",
    ),
    resources=("#43B58B", "#EE8550", "#A58BF0", "#E3C04A", "#35BFD8", "#D878C4"),
    region_words=("#F7A67E", "#6FDBA2"),
    region_opacity=0.17,
    heat=("#2A1A2E", "#6B1D3F", "#B23A3A", "#E0702E", "#F6B04D", "#FFF0C2"),
    steps=("#A9CBF5", "#62BFE0", "#4FCBB0", "#A5D06A", "#E3C04A", "#F2A06B"),
)


def theme(*, dark: bool) -> Theme:
    """The light or the dark theme."""
    return DARK if dark else LIGHT


def config(size: Size, *, dark: bool) -> dict[str, Any]:
    """The Vega-Lite config of a size in a theme.

    Args:
        size: One of `SIZES`.
        dark: Whether the background is dark.

    Returns:
        A config object: fonts and sizes, styles (`label`, `value`, `note`, `halo`, `curve`, ...) and ranges. `category` has the chips,
        `ordinal` the resources, `heatmap` a magnitude, `ramp` the steps of a size.
    """
    em, look = size.em, theme(dark=dark)
    return {
        "background": look.background,
        "font": FONT,
        "view": {"stroke": None},
        "axis": _axis(em, look),
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
            "color": look.ink,
            "offset": 0.75 * em,
        },
        "legend": {
            "labelColor": look.muted,
            "titleColor": look.ink,
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
            "category": list(look.chips),
            "ordinal": list(look.resources[: len(RESOURCES)]),
            "heatmap": list(look.heat),
            "ramp": list(look.steps),
        },
        "style": _styles(em, look),
    }


def _axis(em: float, look: Theme) -> dict[str, Any]:
    return {
        "labelColor": look.muted,
        "labelFontSize": em,
        "labelPadding": 0.45 * em,
        "labelFlush": False,
        "labelLimit": 0,
        "titleColor": look.ink,
        "titleFontSize": em,
        "titleFontWeight": BOLD,
        "titleLimit": 0,
        "gridColor": look.grid,
        "gridWidth": 0.06 * em,
        "domainColor": look.axis,
        "domainWidth": 0.07 * em,
        "tickColor": look.axis,
        "tickWidth": 0.07 * em,
    }


def _styles(em: float, look: Theme) -> dict[str, Any]:
    """Named styles. They say `color`, never `fill` or `stroke`: those lose to the default colour of a mark."""
    text = {"fontSize": em, "font": FONT, "baseline": "middle"}
    small = {**text, "fontSize": 0.9 * em}
    return {
        "label": {**text, "color": look.ink},
        "strong": {**text, "color": look.ink, "fontWeight": BOLD},
        "note": {**text, "color": look.muted},
        "subtitle": {**text, "baseline": "top", "lineHeight": 1.3 * em, "color": look.muted},
        "small": {**small, "color": look.muted},
        "value": {**text, "fontWeight": BOLD},
        "halo": {
            "stroke": look.background,
            "color": look.background,
            "strokeWidth": 0.34 * em,
            "strokeJoin": "round",
        },
        "cell-low": {**small, "color": theme(dark=False).ink if look is LIGHT else look.ink},
        "cell-high": {**small, "color": look.on_heat},
        "on-resource": {**small, "color": look.on_resource, "fontWeight": BOLD},
        "cell-never": {**small, "color": look.muted},
        "memory": {**text, "fontWeight": BOLD, "color": look.region_words[0]},
        "compute": {**text, "fontWeight": BOLD, "color": look.region_words[1]},
        "region": {"opacity": look.region_opacity},
        "never": {"color": look.never},
        "curve": {"strokeWidth": 0.19 * em, "strokeCap": "round", "strokeJoin": "round"},
        "thin-curve": {"strokeWidth": 0.09 * em},
        "roof": {"strokeWidth": 0.2 * em, "color": look.ink, "strokeJoin": "round"},
        "context": {"strokeWidth": 0.11 * em, "color": look.context},
        "rule": {
            "strokeWidth": 0.08 * em,
            "color": look.context,
            "strokeDash": [0.3 * em, 0.25 * em],
        },
        "stem": {"strokeWidth": 0.08 * em, "strokeDash": [0.3 * em, 0.25 * em]},
        "contour": {"strokeWidth": 0.1 * em, "color": look.ink, "opacity": 0.65},
        "dot": {
            "size": (0.62 * em) ** 2,
            "stroke": look.background,
            "strokeWidth": 0.14 * em,
            "opacity": 1,
        },
        "ink-dot": {
            "size": (0.62 * em) ** 2,
            "color": look.ink,
            "stroke": look.background,
            "strokeWidth": 0.14 * em,
            "opacity": 1,
        },
        "cell": {"stroke": look.background, "strokeWidth": 0.08 * em},
        "bar": {"cornerRadius": 0.12 * em},
    }


def themed(spec: Mapping[str, Any], size: Size, *, dark: bool) -> dict[str, Any]:
    """A chart's specification in one look, ready to be drawn.

    Args:
        spec: The specification without theme, as the charts of this package give it.
        size: One of `SIZES`.
        dark: Whether the background is dark.

    Returns:
        A copy with the sizes of the look and its config.
    """
    drawn = deepcopy(dict(spec))
    name = next(name for name, known in SIZES.items() if known == size)
    look = drawn["usermeta"]["looks"][name]
    drawn |= {key: look[key] for key in ("width", "height", "padding")}
    drawn["params"] = [
        parameter for parameter in drawn["params"] if parameter.get("bind") != "scales"
    ]
    for parameter in drawn["params"]:
        if parameter["name"] in ("em", "narrow"):
            parameter["value"] = look[parameter["name"]]
    if not size.titled:
        drawn.pop("title", None)
    drawn["config"] = config(size, dark=dark)
    return drawn
