"""Folders and files of a run's results, and the config that made them."""

from __future__ import annotations

import os
from pathlib import Path

from rooflines.results.atomic import write_bytes
from rooflines.results.records import RECORDS_FOLDER

FOLDERS = TABLES_FOLDER, MODELS_FOLDER, LAYERS_FOLDER = "tables", "models", "layers"
"""Rows of operations, rows of models, and the kernels of model steps."""

THRESHOLDS_FILE, MODEL_THRESHOLDS_FILE = "thresholds.parquet", "model-thresholds.parquet"
"""Threshold outputs for operations and whole models."""

THRESHOLDS_FOLDER = "thresholds"
"""Parts of thresholds, by sweep: `THRESHOLDS_FILE` and `MODEL_THRESHOLDS_FILE` have them all."""

SUMMARY_FILE = "summary.csv"
"""Main numbers of tables and thresholds, for people."""

PARTS_FILE, SKIPPED_FILE, MODEL_SHAPES_FILE = "parts.csv", "skipped.csv", "model-shapes.csv"
"""Parts of all tables, unsupported combinations, and the models in the catalogue."""

SITE = "bundle"
"""Folder to publish."""

WORKBOOK = "rooflines.xlsx"
"""Workbook of the results."""

MEASURED_FOLDER = "measured"
"""Timings joined with the model, one file per set."""

MEASURED_SUMMARIES = ("measured.csv", "measured-skipped.csv")
"""Errors of bound and estimates at the timings, and timings without a row."""

TRACE_TABLES = f"{TABLES_FOLDER}/traces"
"""Calls of each trace, one file per trace."""

TRACES_FOLDER = "traces"
"""Screen and pictures of each trace, one folder per trace."""

TRACE_CHANGES_FILE = "trace-changes.csv"
"""Groups and idle times that changed between two traces."""

SCENARIOS_FOLDER = "scenarios"
"""Numbers that each scenario changes as a table, and a folder with their groups and pictures."""

SCENARIO_INDEX = "index.json"
"""File in a scenario's folder with its sweeps and what the site shows."""

CHARTS = "charts"
"""Charts, one folder per family."""

CONFIG = "config"
"""File with the config's path relative to the results: both may be moved together."""


def record_config(results: Path, config: Path | None) -> None:
    """Record the config file of a run; None: no single file."""
    record = results / RECORDS_FOLDER / CONFIG
    if config is None:
        record.unlink(missing_ok=True)
    else:
        write_bytes(record, f"{os.path.relpath(config.resolve(), results.resolve())}\n")


def config_of_results(results: Path) -> Path | None:
    """Config file that made the results; None: no results, or not recorded."""
    record = results / RECORDS_FOLDER / CONFIG
    if not record.is_file() or not any(results.glob("[!.]*")):
        return None
    relative = record.read_text(encoding="utf-8", errors="replace").removesuffix("\n")
    return Path(os.path.normpath(results.resolve() / relative))
