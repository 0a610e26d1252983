"""Paths of documents, and those without a page: JSON Schema of the config, Vega's script."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import vl_convert as vlc

from rooflines.charts.kit import VEGA_LITE
from rooflines.charts.registry import kinds
from rooflines.config.schema import ConfigFile
from rooflines.hardware.entries import Chip

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
RESULTS = DOCS / "results.md"
PICTURES = DOCS / "pictures"
SCHEMA = ROOT / "workflow" / "schemas" / "config.schema.json"
VEGA = ROOT / "rooflines" / "site" / "vendor" / "vega.js.gz"


def config_schema() -> dict[str, Any]:
    """The JSON Schema of a config, for editors and validators."""
    schema = ConfigFile.model_json_schema()
    chip = Chip.model_json_schema()
    forms = schema.pop("$defs") | chip.pop("$defs") | {"Chip": chip}
    forms["ChartConfig"]["properties"]["chart"]["enum"] = list(kinds())
    variant = {
        "type": "object",
        "required": ["base"],
        "description": "a variant: a base, and dotted paths to the numbers that differ",
    }
    schema["properties"]["chips"]["additionalProperties"] = {
        "anyOf": [variant, {"$ref": "#/$defs/Chip"}]
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": forms, **schema}


def vega_script() -> bytes:
    """Vega, Vega-Lite and Vega-Embed as one script, for the pages of the site.

    It is wrapped in a function: its short global names would clash with other scripts.
    """
    script = vlc.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGA_LITE)
    return gzip.compress(f"(function(){{{script}}})();\n".encode(), mtime=0)
