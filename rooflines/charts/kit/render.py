"""From a chart to files: pictures, the specification, and its data."""

from __future__ import annotations

import io
import json
import math
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import altair as alt
import vl_convert as vlc
from PIL import Image

from rooflines.basics.errors import RooflinesError
from rooflines.charts.kit.text import FONTS
from rooflines.charts.kit.themes import SIZES, UNTITLED_TOP, Margins, config, themed
from rooflines.results.atomic import atomic_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = [
    "MOST_BYTES",
    "MOST_ROWS",
    "dumps",
    "enable_theme",
    "encoded",
    "image",
    "pdf",
    "png",
    "scenegraph",
    "spec_of",
    "svg",
    "thumbnail",
    "write_bytes",
]

MOST_ROWS = 5_000
"""Rows of all data of a chart; a browser draws them in a second."""

MOST_BYTES = 500_000
"""Bytes of a chart's specification, data and all."""

VEGA_LITE = "6.4"
PNG_SCALE = 1.5
CELL = 4
"""Levels of a colour that Pillow does not tell apart when it looks for the nearest of a palette [1]."""

Colour = tuple[int, int, int]

COLOURS, FEW_COLOURS = 256, 64
"""Colours of a picture, and of one in a list [1]."""

TITLE = (Margins().top - UNTITLED_TOP) * SIZES["slide"].em / SIZES["slide"].height
"""The part of a slide's height that its title takes [1]."""

SMALLER = 5
"""By how much a picture in a list is smaller: 1920 pixels become 384, four for each of the 96 that it has there [1]."""


@cache
def register_fonts() -> None:
    """Make the vendored fonts known to the renderer; it would draw nothing at all in a font that it does not know."""
    vlc.register_font_directory(str(FONTS.resolve()))


def enable_theme(size: str = "web", *, dark: bool = False) -> None:
    """Draw all Altair charts from now on in this package's look, in a notebook for example.

    Args:
        size: `slide`, `web` or `paper`; charts have the size of `web` until they are drawn by `png`, `svg` or `pdf`.
        dark: Whether the background is dark.
    """
    found = cast("alt.theme.ThemeConfig", {"config": config(SIZES[size], dark=dark)})
    alt.theme.register("rooflines", enable=True)(lambda: found)


def spec_of(chart: alt.TopLevelMixin, name: str) -> dict[str, Any]:
    """A chart's Vega-Lite specification without a theme.

    Args:
        chart: From one of the chart functions.
        name: What a message calls it.

    Raises:
        RooflinesError: It holds more rows or bytes than a page can draw.
    """
    with alt.theme.enable("none"), alt.data_transformers.enable("default", max_rows=None):
        spec: dict[str, Any] = chart.to_dict(validate=False)
    spec["datasets"] = {
        name: [finite(row) for row in rows] for name, rows in spec.get("datasets", {}).items()
    }
    rows = sum(len(values) for values in spec.get("datasets", {}).values())
    if rows > MOST_ROWS:
        fix = "draw fewer chips, dtypes or sizes: name them under `charts:`"
        raise RooflinesError(
            f"charts: {name}", f"has {rows:,} rows to draw, more than {MOST_ROWS:,}", fix
        )
    size = len(dumps(spec))
    if size > MOST_BYTES:
        fix = "draw fewer chips, dtypes or sizes: name them under `charts:`"
        raise RooflinesError(
            f"charts: {name}", f"takes {size:,} bytes, more than {MOST_BYTES:,}", fix
        )
    return spec


def finite(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with null where it has no finite number: JSON knows no other."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in row.items()
    }


def dumps(spec: Mapping[str, Any] | list[Any]) -> str:
    """A specification as text, the same every time."""
    return json.dumps(
        spec, ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False
    )


def png(
    spec: Mapping[str, Any], size: str = "slide", *, dark: bool = False, scale: float = PNG_SCALE
) -> bytes:
    """A picture, in as few colours as one does not see."""
    return encoded(image(spec, size, dark=dark, scale=scale))


def image(
    spec: Mapping[str, Any], size: str = "slide", *, dark: bool = False, scale: float = PNG_SCALE
) -> Image.Image:
    """A picture as pixels."""
    register_fonts()
    drawn = vlc.vegalite_to_png(
        themed(spec, SIZES[size], dark=dark),
        vl_version=VEGA_LITE,
        scale=scale,
        allowed_base_urls=[],
    )
    return Image.open(io.BytesIO(drawn)).convert("RGB")


def encoded(picture: Image.Image, colours: int = COLOURS) -> bytes:
    """A picture as PNG in few colours: areas keep theirs, the blends at the edges of letters and steps of a scale take one close to it."""
    counted: Any = picture.getcolors(picture.width * picture.height)
    by_cell: dict[
        Colour, Colour
    ] = {}  # of the colours that Pillow cannot tell apart the most frequent
    for _, colour in sorted(counted, key=lambda one: (-one[0], one[1])):
        by_cell.setdefault(_corner(colour), colour)
    found = list(by_cell.values())
    kept, rare = found[: colours // 2], found[colours // 2 :]
    if rare:
        blends = Image.new("RGB", (len(rare), 1))
        blends.putdata(rare)
        levels = blends.quantize(colours - len(kept)).getpalette() or []
        kept += [(levels[i], levels[i + 1], levels[i + 2]) for i in range(0, len(levels), 3)]
    palette = Image.new("P", (1, 1))
    palette.putpalette([level for colour in kept for level in _corner(colour)])
    small = picture.quantize(palette=palette, dither=Image.Dither.NONE)
    small.putpalette([level for colour in kept for level in colour])
    written = io.BytesIO()
    small.save(written, "PNG", compress_level=9)
    return written.getvalue()


def _corner(colour: Colour) -> Colour:
    """The colour that Pillow takes for this one when it looks for the nearest of a palette: the lowest of its cell."""
    red, green, blue = (level // CELL * CELL for level in colour)
    return red, green, blue


def thumbnail(picture: Image.Image) -> bytes:
    """A small copy of a slide, without its title, which stands beside it in a list."""
    small = picture.crop((0, round(picture.height * TITLE), picture.width, picture.height)).reduce(
        SMALLER
    )
    return encoded(small, FEW_COLOURS)


def svg(spec: Mapping[str, Any], size: str = "web", *, dark: bool = False) -> str:
    """A picture as SVG, with live text."""
    register_fonts()
    return str(
        vlc.vegalite_to_svg(
            themed(spec, SIZES[size], dark=dark), vl_version=VEGA_LITE, allowed_base_urls=[]
        )
    )


def pdf(spec: Mapping[str, Any], size: str = "paper", *, dark: bool = False) -> bytes:
    """A picture as PDF, its fonts embedded. Its bytes differ from run to run."""
    register_fonts()
    return bytes(
        vlc.vegalite_to_pdf(
            themed(spec, SIZES[size], dark=dark), vl_version=VEGA_LITE, allowed_base_urls=[]
        )
    )


def scenegraph(spec: Mapping[str, Any], size: str = "web", *, dark: bool = False) -> dict[str, Any]:
    """Every mark where it is drawn, for checks."""
    register_fonts()
    found: dict[str, Any] = vlc.vegalite_to_scenegraph(
        themed(spec, SIZES[size], dark=dark), vl_version=VEGA_LITE, allowed_base_urls=[]
    )
    return found


def write_bytes(path: str | Path, content: bytes | str) -> None:
    """Write a file that appears whole or not at all."""
    with atomic_file(path) as aside:
        aside.write_bytes(content.encode() if isinstance(content, str) else content)
