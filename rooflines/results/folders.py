"""The results of a run: names of its folders and files, and the config that they are of."""

from __future__ import annotations

import os
from pathlib import Path

from rooflines.results.atomic import write_bytes
from rooflines.results.records import FOLDER

FOLDERS = TABLES, MODELS, LAYERS = "tables", "models", "layers"
"""Rows of operations, rows of whole models, and the kernels of these."""

THRESHOLDS, MODEL_THRESHOLDS = "thresholds.parquet", "model-thresholds.parquet"
"""Threshold outputs for operations and whole models."""

SUMMARY = "summary.csv"
"""The main numbers of tables and thresholds, for people."""

PARTS, SKIPPED, MODEL_SHAPES = "parts.csv", "skipped.csv", "model-shapes.csv"
"""The parts of all tables, what could not be computed, and the models of the catalogue."""

SITE = "bundle"
"""The folder to publish."""

WORKBOOK = "rooflines.xlsx"
"""The results for a spreadsheet."""

MEASURED = "measured"
"""Sets of timings joined with the model, a file each."""

MEASURED_SUMMARIES = ("measured.csv", "measured-skipped.csv")
"""Errors of the bound and of estimates at the timings, and the timings without a row."""

CHARTS = "charts"
"""Charts, a folder for each family."""

CONFIG = "config"
"""The file with the path of the config, from the results: both may be moved together."""


def record_config(results: Path, config: Path | None) -> None:
    """Record of which config file a run makes results; None: of no single file."""
    record = results / FOLDER / CONFIG
    if config is None:
        record.unlink(missing_ok=True)
    else:
        write_bytes(record, f"{os.path.relpath(config.resolve(), results.resolve())}\n")


def config_of_results(results: Path) -> Path | None:
    """The config file that results are of; None: there are none, or it was not recorded."""
    record = results / FOLDER / CONFIG
    if not record.is_file() or not any(results.glob("[!.]*")):
        return None
    relative = record.read_text(encoding="utf-8", errors="replace").removesuffix("\n")
    return Path(os.path.normpath(results.resolve() / relative))
