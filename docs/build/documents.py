"""The config's JSON Schema, and where documents are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rooflines.catalogue.entries import Chip
from rooflines.charts.registry import kinds
from rooflines.settings.measurements import MeasurementConfig
from rooflines.settings.model_sweeps import ModelSweepConfig
from rooflines.settings.schema import BY_NAME, ConfigFile, SweepConfig

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
PICTURES = DOCS / "pictures"
SCHEMA = ROOT / "workflow" / "schemas" / "config.schema.json"


def config_schema() -> dict[str, Any]:
    """The JSON Schema of a config, for editors and validators."""
    forms: dict[str, Any] = {}
    for form in (SweepConfig, ModelSweepConfig, MeasurementConfig, Chip):
        own = form.model_json_schema()
        forms |= own.pop("$defs", {}) | {form.__name__: own}
    schema = ConfigFile.model_json_schema()
    forms |= schema.pop("$defs")
    chart = schema["properties"]["charts"]["anyOf"][1]["items"]["properties"]["chart"]
    schema["properties"]["charts"]["anyOf"][1]["items"]["properties"]["chart"] = {
        "description": chart["description"],
        "enum": list(kinds()),
        "title": chart["title"],
        "type": "string",
    }
    for key, form in (
        ("sweeps", SweepConfig),
        ("model-sweeps", ModelSweepConfig),
        ("measurements", MeasurementConfig),
    ):
        schema["properties"][key]["patternProperties"] = {
            name: {"$ref": f"#/$defs/{form.__name__}"} for name in BY_NAME["patternProperties"]
        }
    variant = {
        "type": "object",
        "required": ["base"],
        "description": "a variant: a base, and dotted paths to the numbers that differ",
    }
    schema["properties"]["chips"]["additionalProperties"] = {
        "anyOf": [variant, {"$ref": "#/$defs/Chip"}]
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": forms, **schema}
