"""Text generated from the code: the config's JSON Schema and the column tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from markdown_tables import table, with_block

from rooflines.catalogue.entries import Chip
from rooflines.charts.registry import charts
from rooflines.model.columns import (
    MODEL_SHAPES,
    SKIPPED,
    SUMMARY,
    Column,
    table_columns,
    threshold_columns,
)
from rooflines.model.measured_columns import KERNELS, MEASURED, MEASURED_SKIPPED, MEASURED_SUMMARY
from rooflines.model.step_columns import (
    REQUEST_COLUMNS,
    layer_columns,
    step_columns,
    step_threshold_columns,
)
from rooflines.settings.measurements import MeasurementConfig
from rooflines.settings.model_sweeps import ModelSweepConfig
from rooflines.settings.schema import BY_NAME, ConfigFile, SweepConfig

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
COLUMNS = DOCS / "columns.md"
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
        "enum": list(charts()),
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


def column_table(columns: tuple[Column, ...]) -> str:
    """Columns as a Markdown table: name, unit, meaning and what a null means."""
    return table(
        ("column", "unit", "meaning", "null"),
        ((f"`{column.name}`", column.unit, column.meaning, column.null) for column in columns),
    )


def with_tables(text: str) -> str:
    """A page with current tables between `<!-- columns: ... -->` and `<!-- end -->`."""
    tables = {
        "table": table_columns(("B", "D", "F")),
        "thresholds": threshold_columns(("B", "D", "F")),
        "models": step_columns(new_tokens=True),
        "requests": REQUEST_COLUMNS,
        "layers": layer_columns(new_tokens=True),
        "model-thresholds": step_threshold_columns(new_tokens=True),
        "skipped": SKIPPED,
        "summary": SUMMARY,
        "model-shapes": MODEL_SHAPES,
        "measured": MEASURED,
        "measured-summary": MEASURED_SUMMARY,
        "measured-skipped": MEASURED_SKIPPED,
        "kernels": KERNELS,
    }
    for name, columns in tables.items():
        text = with_block(text, f"columns: {name}", column_table(columns))
    return text
