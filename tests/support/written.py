"""What the workflow writes for the cases whose values are known beforehand: run once, read by whoever asks."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "tests" / "cases" / "worked.yaml"


@functools.cache
def results(base: Path) -> Path:
    """Run the workflow in a new folder below another, once, and return the folder of its results."""
    folder = base / "worked-values"
    folder.mkdir(exist_ok=True)
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "snakemake",
        "--cores",
        "2",
        "--snakefile",
        ROOT / "Snakefile",
    ]
    run = subprocess.run(
        [*command, "--configfile", CONFIG, "--directory", folder],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return folder / "results"


class Written:
    """The files of one run."""

    def __init__(self, folder: Path) -> None:
        """Remember the folder of the results."""
        self.folder = folder

    def table(self, sweep: str) -> pl.DataFrame:
        """Return the table of a sweep, all its parts."""
        return pl.read_parquet(self.folder / "tables" / sweep / "part-*.parquet")

    def row(self, sweep: str, **keys: str | int) -> dict[str, Any]:
        """Return the one row of a table that has these keys."""
        return only(self.table(sweep), keys)

    def thresholds(self) -> pl.DataFrame:
        """Return all thresholds."""
        return pl.read_parquet(self.folder / "thresholds.parquet")

    def threshold(self, sweep: str, **keys: str | int) -> dict[str, Any]:
        """Return the one row of thresholds.parquet with these keys, which thresholds.csv must have alike."""
        found = only(self.thresholds(), {"sweep": sweep, **keys})
        text = only(
            pl.read_csv(self.folder / "thresholds.csv", infer_schema_length=None),
            {"sweep": sweep, **keys},
        )
        assert {column: found[column] for column in text} == text
        return found

    def skipped(self) -> pl.DataFrame:
        """Return what was left out."""
        return pl.read_csv(self.folder / "skipped.csv", infer_schema_length=None)


def only(frame: pl.DataFrame, keys: dict[str, str | int]) -> dict[str, Any]:
    """Return the row that has these keys, of which there is one."""
    rows = frame.filter(**keys)
    assert rows.height == 1, f"{rows.height} rows with {keys}"
    return rows.row(0, named=True)
