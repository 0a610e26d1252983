"""The folders of tables in the results, and the files that only sweeps of models have."""

from __future__ import annotations

__all__ = ["FOLDERS", "LAYERS", "MODELS", "MODEL_THRESHOLDS", "TABLES"]

FOLDERS = TABLES, MODELS, LAYERS = "tables", "models", "layers"
"""Rows of operations, rows of whole models, and the kernels of these."""

MODEL_THRESHOLDS = ("model-thresholds.parquet", "model-thresholds.csv")
"""Thresholds of whole models."""
