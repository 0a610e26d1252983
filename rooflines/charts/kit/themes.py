"""Themes, light and dark, in three sizes.

A chart's specification has no colours, fonts or sizes of its own: it names styles and ranges, and
its offsets are in em. A size defines the picture and one em in pixels; a theme defines styles and
ranges. `themed` combines the three. A page does the same: it sets `width`, `height`, `padding` and
the parameters `em` and `narrow` from `usermeta.looks` of the specification, and gives
`config(size, dark=...)` to Vega-Embed.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from rooflines.charts.kit.chip_colours import in_letters, shades
from rooflines.theory.resources import RESOURCES

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
class PictureSize:
    """Size of a picture.

    Attributes:
        width, height: Dimensions of the picture [px].
        em: Font size of plain text, and unit of offsets [px].
        narrow: Labels take their places in the narrow layout.
        titled: Title and subtitle are drawn; in a paper the caption has them.
    """

    width: int
    height: int
    em: float
    narrow: bool = False
    titled: bool = True


SIZES = {
    "slide": PictureSize(1280, 720, 20),
    "web": PictureSize(896, 504, 14),
    "paper": PictureSize(460, 300, 10, narrow=True, titled=False),
}
"""Slide, web page and paper column; the first two differ in scale only."""

UNTITLED_TOP = 2.6
"""Margin above a plot without a title, for the y axis's name [em]."""


def plot_size(size: PictureSize, margins: Margins) -> tuple[float, float]:
    """Plot width and height inside the margins [em]."""
    top = margins.top if size.titled else UNTITLED_TOP
    return (
        size.width / size.em - margins.left - margins.right,
        size.height / size.em - top - margins.bottom,
    )


def plot_sizes(margins: Margins) -> dict[str, dict[str, Any]]:
    """Plot dimensions in each size [px], for `usermeta.looks` in a specification."""
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
    """Colours by meaning."""

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
    above: str
    idle: tuple[str, str, str]
    resources: tuple[str, ...]
    region_words: tuple[str, str]
    region_opacity: float
    heat: tuple[str, ...]
    steps: tuple[str, ...]


THEMES = TypeAdapter(dict[str, Theme]).validate_json(
    Path(__file__).with_suffix(".json").read_bytes()
)
"""The themes, from `themes.json`."""


INHERITED = "inherited"
STYLES: Mapping[str, Any] = json.loads(Path(__file__).with_name("styles.json").read_bytes())
"""The config of every theme and size: lengths in em, areas by the side of a square, and names of
colours; styles may begin with what is `inherited`. Styles set `color`: a mark's default colour
overrides `fill` and `stroke`."""


def theme(*, dark: bool) -> Theme:
    """The light or the dark theme."""
    return THEMES["dark" if dark else "light"]


def config(size: PictureSize, *, dark: bool) -> dict[str, Any]:
    """Vega-Lite config for a size and theme.

    Args:
        size: One of `SIZES`.
        dark: Whether the background is dark.

    Returns:
        A config object: fonts, sizes, styles (`label`, `value`, `note`, `halo`, `curve`, ...) and
        ranges: `category` for chips in the order of `chip_order`, `diverging` for text in their
        colours, `ordinal` for resources and their mix, `heatmap` for magnitudes, `ramp` for sizes.
    """
    colours = theme(dark=dark)
    chip_colours = shades(colours.ink, dark=dark)
    values = {**asdict(colours), "font": FONT, "bold": BOLD}
    settings: dict[str, Any] = _in_units(
        {key: STYLES[key] for key in STYLES if key != INHERITED}, size.em, values
    )
    settings["range"] |= {
        "category": chip_colours,
        "diverging": in_letters(chip_colours),
        "ordinal": list(colours.resources[: len(RESOURCES) + 1]),
    }
    return settings


def _in_units(value: Any, em: float, values: Mapping[str, Any]) -> Any:  # noqa: ANN401, any JSON
    """Resolve a value in `STYLES`: lengths to pixels, and names to colours and fonts.

    Args:
        value: Such as `em`, `0.5 em^2`, `@ink` or `@on_heat.0`, or mappings and lists of these.
        em: Font size of plain text [px].
        values: Values by name.
    """
    if isinstance(value, dict):
        whole = {**STYLES[INHERITED].get(value.get("inherits"), {}), **value}
        return {
            key: _in_units(item, em, values) for key, item in whole.items() if key != "inherits"
        }
    if isinstance(value, list):
        return [_in_units(item, em, values) for item in value]
    if not isinstance(value, str):
        return value
    if value.startswith("@"):
        name, _, place = value[1:].partition(".")
        named_value = values[name][int(place)] if place else values[name]
        return list(named_value) if isinstance(named_value, tuple) else named_value
    number, _, unit = value.rpartition(" ")
    powers = {"em": 1, "em^2": 2}
    return ((float(number) if number else 1) * em) ** powers[unit] if unit in powers else value


def themed(
    spec: Mapping[str, Any], size: PictureSize, *, dark: bool, whole: bool = False
) -> dict[str, Any]:
    """Combine a specification with size and theme, ready to draw.

    Args:
        spec: A chart's specification, without a theme.
        size: One of `SIZES`.
        dark: Whether the background is dark.
        whole: Keep `usermeta.looks`, so that it can be drawn in another size.

    Returns:
        The specification with dimensions and config, without title if the size has none; unchanged
        parts are shared with `spec`.
    """
    (name,) = (name for name, candidate in SIZES.items() if candidate == size)
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
