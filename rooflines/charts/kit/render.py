"""Rendering of charts to PNG, SVG, PDF and HTML, and their limits."""

from __future__ import annotations

import io
import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any, cast
from xml.sax.saxutils import quoteattr

import vl_convert as vlc
from PIL import Image

from rooflines.basics.errors import RooflinesError
from rooflines.charts.kit import VEGA_LITE
from rooflines.charts.kit.chart_text import FONTS
from rooflines.charts.kit.themes import SIZES, UNTITLED_TOP, Margins, config, themed

if TYPE_CHECKING:
    from collections.abc import Mapping

    import altair as alt

MAX_ROWS = 5_000
"""Maximum rows in a chart's data, drawn by a browser within a second [1]."""

MAX_BYTES = 250_000
"""Maximum size of a specification with its data [byte]."""

PNG_SCALE = 1.5
COLOURS, FEW_COLOURS = 256, 64
"""Palette sizes of a picture and a thumbnail [1]."""

PLACEHOLDER = "rooflines-specification"
"""Name of an empty specification that a chart's replaces."""

COMPRESSION = 6
"""PNG compression level: a seventh more bytes than level 9, in an eighth of the time."""

NUMBERED_PART = re.compile(r"\b(gradient_|clip)\d+\b")
"""Numbered names of SVG parts."""

TITLE_SHARE = (Margins().top - UNTITLED_TOP) * SIZES["slide"].em / SIZES["slide"].height
"""Height of a slide's title / height of the slide [1]."""

THUMBNAIL_SCALE = 5
"""Scale of a thumbnail [1]: 1920 pixels become 384, four for each of the 96 that it is shown at."""


@cache
def register_fonts() -> None:
    """Register the vendored fonts; the renderer draws no text in a font that is not registered."""
    vlc.register_font_directory(str(FONTS.resolve()))


def enable_theme(size: str = "web", *, dark: bool = False) -> None:
    """Make this package's theme Altair's default, for example in a notebook.

    Args:
        size: `slide`, `web` or `paper`, for text and lines; the chart itself has the size of `web`
            unless `png`, `svg` or `pdf` draws it.
        dark: Whether the background is dark.
    """
    import altair as alt  # noqa: PLC0415, pictures need none of it

    settings = cast("alt.theme.ThemeConfig", {"config": config(SIZES[size], dark=dark)})
    alt.theme.register("rooflines", enable=True)(lambda: settings)


def limited(spec: dict[str, Any], name: str) -> dict[str, Any]:
    """Check that a page can draw a specification, and return it.

    Args:
        spec: The specification of a view.
        name: Its name in messages.

    Raises:
        RooflinesError: It has more rows or bytes than a page can draw.
    """
    rows = sum(len(values) for values in spec["datasets"].values())
    size = len(dumps(spec))
    problem = (
        f"has {rows:,} rows to draw, more than {MAX_ROWS:,}"
        if rows > MAX_ROWS
        else f"takes {size:,} bytes, more than {MAX_BYTES:,}"
        if size > MAX_BYTES
        else None
    )
    if problem:
        fix = "draw fewer chips, dtypes or sizes: name them under `charts:`"
        raise RooflinesError(f"charts: {name}", problem, fix)
    return spec


def chart_of(spec: Mapping[str, Any]) -> alt.LayerChart:
    """Wrap a specification as an Altair chart, for a notebook."""
    from altair import LayerChart  # noqa: PLC0415, pictures need none of it

    chart: alt.LayerChart = LayerChart.from_dict(dict(spec), validate=False)
    return chart


def spec_of(chart: alt.TopLevelMixin, name: str = "chart") -> dict[str, Any]:
    """Specification of a chart from this package, without a theme.

    Args:
        chart: A chart from one of the chart functions.
        name: Its name in messages.

    Raises:
        RooflinesError: It has more rows or bytes than a page can draw.
    """
    import altair as alt  # noqa: PLC0415, as above

    with alt.theme.enable("none"), alt.data_transformers.enable("default", max_rows=None):
        spec: dict[str, Any] = chart.to_dict(validate=False)
    return limited(spec, name)


def dumps(spec: Mapping[str, Any] | list[Any]) -> str:
    """Serialize as compact JSON with sorted keys: equal for equal specifications."""
    return json.dumps(
        spec, ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False
    )


def png(
    spec: Mapping[str, Any], size: str = "slide", *, dark: bool = False, scale: float = PNG_SCALE
) -> bytes:
    """Render PNG, with colours reduced to a palette without a visible difference.

    Args:
        spec: A chart's specification.
        size: One of `SIZES`.
        dark: Whether the background is dark.
        scale: Pixels per pixel in the size [1].
    """
    return encode_png(rasterize(svg(spec, size, dark=dark), scale))


def rasterize(drawn: str, scale: float = PNG_SCALE) -> Image.Image:
    """Rasterize a picture from `svg`.

    Args:
        drawn: The picture as SVG.
        scale: Pixels per pixel of the picture [1].
    """
    register_fonts()
    return Image.open(io.BytesIO(vlc.svg_to_png(drawn, scale=scale))).convert("RGB")


def encode_png(picture: Image.Image, colours: int = COLOURS) -> bytes:
    """Encode a picture as PNG with a median-cut palette.

    Args:
        picture: An RGB picture.
        colours: Palette size [1].
    """
    written = io.BytesIO()
    indexed = picture.quantize(colours, dither=Image.Dither.NONE)
    indexed.save(written, "PNG", compress_level=COMPRESSION)
    return written.getvalue()


def thumbnail(picture: Image.Image) -> bytes:
    """Shrink a slide without its title, which pages show as text beside it."""
    top = round(picture.height * TITLE_SHARE)
    plot = picture.crop((0, top, picture.width, picture.height))
    return encode_png(plot.reduce(THUMBNAIL_SCALE), FEW_COLOURS)


def svg(spec: Mapping[str, Any], size: str = "web", *, dark: bool = False) -> str:
    """Render SVG with live text and a name for screen readers; arguments as in `png`."""
    register_fonts()
    themed_spec = themed(spec, SIZES[size], dark=dark)
    drawn = str(vlc.vegalite_to_svg(themed_spec, vl_version=VEGA_LITE, allowed_base_urls=[]))
    renumbered: dict[str, str] = {}  # of gradients and clips: the renderer goes on counting
    drawn = NUMBERED_PART.sub(
        lambda m: renumbered.setdefault(m[0], f"{m[1]}{len(renumbered)}"), drawn
    )
    name = quoteattr(spec.get("description", ""))
    return drawn.replace("<svg ", f'<svg role="img" aria-label={name} ', 1)


def pdf(spec: Mapping[str, Any], size: str = "paper", *, dark: bool = False) -> bytes:
    """Render PDF with embedded fonts; its bytes differ from run to run.

    Args:
        spec: A chart's specification.
        size: One of `SIZES`.
        dark: Whether the background is dark.
    """
    register_fonts()
    themed_spec = themed(spec, SIZES[size], dark=dark)
    return bytes(vlc.vegalite_to_pdf(themed_spec, vl_version=VEGA_LITE, allowed_base_urls=[]))


def picture(
    spec: Mapping[str, Any], form: str, size: str, *, dark: bool = False, scale: float = PNG_SCALE
) -> bytes | str:
    """Render a picture in one of `FORMATS`.

    Args:
        spec: A chart's specification.
        form: The format.
        size: One of `SIZES`.
        dark: Whether the background is dark.
        scale: PNG pixels per pixel of the size [1].
    """
    match form:
        case "png":
            return png(spec, size, dark=dark, scale=scale)
        case "svg":
            return svg(spec, size, dark=dark)
        case "pdf":
            return pdf(spec, size, dark=dark)
        case _:
            return html(spec, size, dark=dark)


def html(spec: Mapping[str, Any], size: str = "web", *, dark: bool = False) -> str:
    """Render a self-contained page with the chart and its tooltips.

    Args:
        spec: A chart's specification.
        size: One of `SIZES`.
        dark: Whether the background is dark.
    """
    page = str(vlc.vegalite_to_html({"name": PLACEHOLDER}, vl_version=VEGA_LITE, bundle=True))
    # In a script no text may end the script.
    text = dumps(themed(spec, SIZES[size], dark=dark)).replace("<", "\\u003c")
    return page.replace(json.dumps({"name": PLACEHOLDER}, separators=(",", ":")), text)
