"""The workflow's output for the worked cases: one run, read by all tests that need it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
from trials import TABLES

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "tests" / "cases" / "worked.yaml"


def run_cases(folder: Path) -> None:
    """Run the workflow in a folder; all but the site."""
    command: list[str | Path] = [
        *(sys.executable, "-m", "snakemake", "--cores", "2", *TABLES),
        *("--snakefile", ROOT / "Snakefile", "--configfile", CONFIG, "--directory", folder),
    ]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr


class Written:
    """The files of one run."""

    def __init__(self, folder: Path) -> None:
        """Take the results folder."""
        self.folder = folder

    def table(self, sweep: str) -> pl.DataFrame:
        """The table of a sweep, all its parts."""
        return pl.read_parquet(self.folder / "tables" / sweep / "part-*.parquet")

    def row(self, sweep: str, **keys: str | int) -> dict[str, Any]:
        """The only row of a table with these keys."""
        return only(self.table(sweep), keys)

    def thresholds(self) -> pl.DataFrame:
        """All thresholds."""
        return pl.read_parquet(self.folder / "thresholds.parquet")

    def threshold(self, sweep: str, **keys: str | int) -> dict[str, Any]:
        """The only threshold with these keys."""
        return only(self.thresholds(), {"sweep": sweep, **keys})

    def skipped(self) -> pl.DataFrame:
        """The combinations that were skipped."""
        return pl.read_csv(self.folder / "skipped.csv", infer_schema_length=None)


def only(frame: pl.DataFrame, keys: dict[str, str | int]) -> dict[str, Any]:
    """The only row with these keys."""
    rows = frame.filter(**keys)
    assert rows.height == 1, f"{rows.height} rows with {keys}"
    return rows.row(0, named=True)
