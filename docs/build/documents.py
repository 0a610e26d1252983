"""The config's JSON Schema, and where documents are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rooflines.catalogue.entries import Chip
from rooflines.charts.registry import kinds
from rooflines.settings.schema import ConfigFile

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
PICTURES = DOCS / "pictures"
SCHEMA = ROOT / "workflow" / "schemas" / "config.schema.json"


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
