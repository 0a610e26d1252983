"""Vega, Vega-Lite and Vega-Embed as one script, from vl-convert, for the pages of the site."""

from __future__ import annotations

import gzip
from pathlib import Path

import vl_convert as vlc

import rooflines
from rooflines.charts.kit import VEGA_LITE

VEGA = Path(rooflines.__file__).parent / "site" / "vendor" / "vega.js.gz"

EXPORTS = "window.vegaEmbed = vegaEmbed;"


def vega_script() -> bytes:
    """The script, wrapped in a function: its short global names would clash with other scripts."""
    script = vlc.javascript_bundle(EXPORTS, vl_version=VEGA_LITE)
    return gzip.compress(f"(function(){{{script}}})();\n".encode(), mtime=0)
