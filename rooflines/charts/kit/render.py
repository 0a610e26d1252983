"""Rendering: a chart as specification, PNG, SVG, PDF, HTML and scenegraph."""

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
"""Rows of all data of a chart that a browser draws within a second [1]."""

MAX_BYTES = 250_000
"""Size of a chart's specification with its data [byte]."""

PNG_SCALE = 1.5
COLOURS, FEW_COLOURS = 256, 64
"""Colours of a picture, and of a thumbnail [1]."""

PLACEHOLDER = "rooflines-specification"
"""The name of an empty specification in whose place that of a chart is put."""

COMPRESSION = 6
"""Of PNG: a seventh more bytes than with 9, in an eighth of the time."""

NUMBERED_PART = re.compile(r"\b(gradient_|clip)\d+\b")
"""Names of parts of an SVG."""

TITLE_SHARE = (Margins().top - UNTITLED_TOP) * SIZES["slide"].em / SIZES["slide"].height
"""Share of a slide's height that its title takes [1]."""

THUMBNAIL_SCALE = 5
"""Scale of a thumbnail [1]: 1920 pixels become 384, four for each of the 96 that it is shown at."""


@cache
def register_fonts() -> None:
    """Register the vendored fonts; the renderer draws no text in a font that is not registered."""
    vlc.register_font_directory(str(FONTS.resolve()))


def enable_theme(size: str = "web", *, dark: bool = False) -> None:
    """Make this package's theme the default of Altair, for example in a notebook.

    Args:
        size: `slide`, `web` or `paper`, for text and lines; the chart itself has the size of `web`
            unless `png`, `svg` or `pdf` draws it.
        dark: Whether the background is dark.
    """
    import altair as alt  # noqa: PLC0415, pictures need none of it

    settings = cast("alt.theme.ThemeConfig", {"config": config(SIZES[size], dark=dark)})
    alt.theme.register("rooflines", enable=True)(lambda: settings)


def limited(spec: dict[str, Any], name: str) -> dict[str, Any]:
    """A specification that a page can draw.

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
    """A specification as an Altair chart, for a notebook."""
    from altair import LayerChart  # noqa: PLC0415, pictures need none of it

    chart: alt.LayerChart = LayerChart.from_dict(dict(spec), validate=False)
    return chart


def spec_of(chart: alt.TopLevelMixin, name: str = "chart") -> dict[str, Any]:
    """The specification of a chart of this package, without a theme.

    Args:
        chart: From one of the chart functions.
        name: Its name in messages.

    Raises:
        RooflinesError: It has more rows or bytes than a page can draw.
    """
    import altair as alt  # noqa: PLC0415, as above

    with alt.theme.enable("none"), alt.data_transformers.enable("default", max_rows=None):
        spec: dict[str, Any] = chart.to_dict(validate=False)
    return limited(spec, name)


def dumps(spec: Mapping[str, Any] | list[Any]) -> str:
    """A specification as compact JSON, its keys sorted: equal for equal specifications."""
    return json.dumps(
        spec, ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False
    )


def png(
    spec: Mapping[str, Any], size: str = "slide", *, dark: bool = False, scale: float = PNG_SCALE
) -> bytes:
    """A picture as PNG, its colours reduced to a palette without a visible difference.

    Args:
        spec: The specification of a chart.
        size: One of `SIZES`.
        dark: Whether the background is dark.
        scale: Pixels for each of the size [1].
    """
    return encode_png(rasterize(svg(spec, size, dark=dark), scale))


def rasterize(drawn: str, scale: float = PNG_SCALE) -> Image.Image:
    """The pixels of a picture that `svg` drew.

    Args:
        drawn: The picture.
        scale: Pixels for each of its own [1].
    """
    register_fonts()
    return Image.open(io.BytesIO(vlc.svg_to_png(drawn, scale=scale))).convert("RGB")


def encode_png(picture: Image.Image, colours: int = COLOURS) -> bytes:
    """A picture as PNG with a palette, found by median cut.

    Args:
        picture: In RGB.
        colours: Size of the palette [1].
    """
    written = io.BytesIO()
    indexed = picture.quantize(colours, dither=Image.Dither.NONE)
    indexed.save(written, "PNG", compress_level=COMPRESSION)
    return written.getvalue()


def thumbnail(picture: Image.Image) -> bytes:
    """A small copy of a slide without its title, which the list shows as text beside it."""
    top = round(picture.height * TITLE_SHARE)
    plot = picture.crop((0, top, picture.width, picture.height))
    return encode_png(plot.reduce(THUMBNAIL_SCALE), FEW_COLOURS)


def svg(spec: Mapping[str, Any], size: str = "web", *, dark: bool = False) -> str:
    """A picture as SVG, with live text and a name for screen readers; arguments as of `png`."""
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
    """A picture as PDF with embedded fonts; its bytes differ from run to run.

    Args:
        spec: The specification of a chart.
        size: One of `SIZES`.
        dark: Whether the background is dark.
    """
    register_fonts()
    themed_spec = themed(spec, SIZES[size], dark=dark)
    return bytes(vlc.vegalite_to_pdf(themed_spec, vl_version=VEGA_LITE, allowed_base_urls=[]))


def picture(
    spec: Mapping[str, Any], form: str, size: str, *, dark: bool = False, scale: float = PNG_SCALE
) -> bytes | str:
    """A picture in one of `FORMATS`.

    Args:
        spec: The specification of a chart.
        form: The format.
        size: One of `SIZES`.
        dark: Whether the background is dark.
        scale: Pixels of PNG for each of the size [1].
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
    """A page with the chart, its menus and its tooltips, which needs no other file.

    Args:
        spec: The specification of a chart.
        size: One of `SIZES`.
        dark: Whether the background is dark.
    """
    page = str(vlc.vegalite_to_html({"name": PLACEHOLDER}, vl_version=VEGA_LITE, bundle=True))
    # In a script no text may end the script.
    text = dumps(themed(spec, SIZES[size], dark=dark)).replace("<", "\\u003c")
    return page.replace(json.dumps({"name": PLACEHOLDER}, separators=(",", ":")), text)
