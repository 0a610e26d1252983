"""The folders of tables in the results, and the files that not every config has."""

from __future__ import annotations

FOLDERS = TABLES, MODELS, LAYERS = "tables", "models", "layers"
"""Rows of operations, rows of whole models, and the kernels of these."""

THRESHOLDS, MODEL_THRESHOLDS = "thresholds.parquet", "model-thresholds.parquet"
"""Thresholds of operations and of whole models."""

SUMMARY = "summary.csv"
"""The main numbers of tables and thresholds, for people."""

SKIPPED, MODEL_SHAPES = "skipped.csv", "model-shapes.csv"
"""What could not be computed, and the models of the catalogue."""

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

CHARTS_DIGEST = ".made/charts.sha256"
"""A digest of everything that the charts depend on."""

INDEX = "index.csv"
"""The list of the parts in a folder of tables."""
