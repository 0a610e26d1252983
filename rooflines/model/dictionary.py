"""The column dictionary as rows: the columns of every file of the results."""

from __future__ import annotations

from rooflines.model import columns
from rooflines.model.measured_columns import KERNELS, MEASURED, MEASURED_SKIPPED, MEASURED_SUMMARY
from rooflines.model.step_columns import (
    REQUEST_COLUMNS,
    layer_columns,
    step_columns,
    step_threshold_columns,
)
from rooflines.model.training_columns import training_columns, training_layer_columns


def column_records() -> list[dict[str, str]]:
    """A row for each column of each file: `file`, `column`, `unit`, `meaning`, `null`."""
    dims = ("B", "D", "F")
    files = {
        "table": columns.table_columns(dims),
        "thresholds": columns.threshold_columns(dims),
        "models": (*step_columns(new_tokens=True), *REQUEST_COLUMNS),
        "layers": layer_columns(new_tokens=True),
        "training": training_columns(),
        "training-layers": training_layer_columns(),
        "model-thresholds": step_threshold_columns(new_tokens=True, training=True),
        "skipped": columns.SKIPPED,
        "summary": columns.SUMMARY,
        "model-shapes": columns.MODEL_SHAPES,
        "measured": MEASURED,
        "measured-summary": MEASURED_SUMMARY,
        "measured-skipped": MEASURED_SKIPPED,
        "kernels": KERNELS,
    }
    return [
        {
            "file": file,
            "column": column.name,
            "unit": column.unit,
            "meaning": column.meaning,
            "null": column.null,
        }
        for file, entries in files.items()
        for column in entries
    ]
