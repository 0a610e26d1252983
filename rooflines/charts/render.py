"""From a chart to files: pictures, the specification, and its data."""

from __future__ import annotations

import io
import json
import math
from functools import cache
from typing import TYPE_CHECKING, Any

import altair as alt
import vl_convert as vlc
from PIL import Image

from rooflines.charts.labels import FONTS
from rooflines.charts.looks import SIZES, themed
from rooflines.errors import RooflinesError
from rooflines.tables import appearing

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["MOST_BYTES", "MOST_ROWS", "dumps", "pdf", "png", "scenegraph", "spec_of", "svg", "write_bytes"]

MOST_ROWS = 5_000
"""Rows of all data of a chart; a browser draws them in a second."""

MOST_BYTES = 500_000
"""Bytes of a chart's specification, data and all."""

VEGA_LITE = "6.4"
PNG_SCALE = 1.5


@cache
def register_fonts() -> None:
    """Make the vendored fonts known to the renderer; it would draw nothing at all in a font that it does not know."""
    vlc.register_font_directory(str(FONTS.resolve()))


def spec_of(chart: alt.TopLevelMixin, name: str) -> dict[str, Any]:
    """A chart's Vega-Lite specification without a theme.

    Args:
        chart: From one of the chart functions.
        name: What a message calls it.

    Raises:
        RooflinesError: It holds more rows or bytes than a page can draw.
    """
    with alt.theme.enable("none"), alt.data_transformers.enable("default", max_rows=None):
        spec: dict[str, Any] = chart.to_dict()
    spec["datasets"] = {name: [finite(row) for row in rows] for name, rows in spec.get("datasets", {}).items()}
    rows = sum(len(values) for values in spec.get("datasets", {}).values())
    if rows > MOST_ROWS:
        fix = "draw fewer chips, dtypes or sizes: name them under `charts:`"
        raise RooflinesError(f"charts: {name}", f"has {rows:,} rows to draw, more than {MOST_ROWS:,}", fix)
    size = len(dumps(spec))
    if size > MOST_BYTES:
        fix = "draw fewer chips, dtypes or sizes: name them under `charts:`"
        raise RooflinesError(f"charts: {name}", f"takes {size:,} bytes, more than {MOST_BYTES:,}", fix)
    return spec


def finite(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with null where it has no finite number: JSON knows no other."""
    return {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in row.items()}


def dumps(spec: Mapping[str, Any]) -> str:
    """A specification as text, the same every time."""
    return json.dumps(spec, ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False)


def png(spec: Mapping[str, Any], size: str = "slide", *, dark: bool = False, scale: float = PNG_SCALE) -> bytes:
    """A picture, recompressed without loss."""
    register_fonts()
    drawn = vlc.vegalite_to_png(themed(spec, SIZES[size], dark=dark), vl_version=VEGA_LITE, scale=scale, allowed_base_urls=[])
    small = io.BytesIO()
    Image.open(io.BytesIO(drawn)).convert("RGB").save(small, "PNG", compress_level=9)
    return small.getvalue()


def svg(spec: Mapping[str, Any], size: str = "web", *, dark: bool = False) -> str:
    """A picture as SVG, with live text."""
    register_fonts()
    return str(vlc.vegalite_to_svg(themed(spec, SIZES[size], dark=dark), vl_version=VEGA_LITE, allowed_base_urls=[]))


def pdf(spec: Mapping[str, Any], size: str = "paper", *, dark: bool = False) -> bytes:
    """A picture as PDF, its fonts embedded. Its bytes differ from run to run."""
    register_fonts()
    return bytes(vlc.vegalite_to_pdf(themed(spec, SIZES[size], dark=dark), vl_version=VEGA_LITE, allowed_base_urls=[]))


def scenegraph(spec: Mapping[str, Any], size: str = "web", *, dark: bool = False) -> dict[str, Any]:
    """Every mark where it is drawn, for checks."""
    register_fonts()
    found: dict[str, Any] = vlc.vegalite_to_scenegraph(themed(spec, SIZES[size], dark=dark), vl_version=VEGA_LITE, allowed_base_urls=[])
    return found


def write_bytes(path: str | Path, content: bytes | str) -> None:
    """Write a file that appears whole or not at all."""
    with appearing(path) as aside:
        aside.write_bytes(content.encode() if isinstance(content, str) else content)
