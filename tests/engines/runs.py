"""A run of the workflow in its own folder, as a user starts it, and its outputs."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from rooflines.results.folders import FOLDERS
from rooflines.results.tables import metadata_of

REPOSITORY = Path(__file__).parents[2]

CONFIG: dict[str, Any] = {
    "sweeps": {
        "catalogue": {
            "operation": "matmul",
            "grid": {
                "B": {"from": 1, "to": 4096, "step": 1},
                "D": [1024, 2048, 4096, 8192],
                "F": [1024, 2048, 4096, 8192],
            },
            "dtypes": ["bf16", "int8"],
            "chips": ["tpu-v5e", "h100-sxm"],
            "rows_per_part": 131_072,
        },
        "own": {
            "operation": "matmul",
            "grid": {"B": {"from": 1, "to": 4096, "factor": 2}, "D": [4096], "F": [4096]},
            "dtypes": ["bf16", "mxfp4"],
            "chips": ["mine"],
        },
    },
    "model-sweeps": {
        "serve": {
            "models": ["llama-3.1-8b"],
            "grid": {"B": [1, 16], "S": [1024, 8192]},
            "dtypes": ["bf16"],
            "chips": ["mine", "h100-sxm"],
            "splits": [{"tp": 1}, {"tp": 8}],
        }
    },
    "charts": [],
    "chips": {"mine": {"base": "tpu-v5e", "memory.hbm.bytes_per_s": 8.1e11, "source": "a guess"}},
}
PARTS = [*(f"catalogue/part-{number:05d}" for number in range(2)), "own/part-00000"]

TABLE_FOLDERS = tuple(f"{folder}/" for folder in FOLDERS)
"""What the paths of tables, below the results, begin with."""

WITHOUT_SITE = tuple(
    f"results/{name}"
    for name in (
        "tables/index.csv",
        "thresholds.parquet",
        "model-thresholds.parquet",
        "skipped.csv",
        "model-shapes.csv",
    )
)
"""Targets of runs that do not need the site."""


class Run:
    """A working directory of the workflow.

    Args:
        folder: The folder.
        environment: Variables that the run gets besides those of this process.
        config: What is asked for.
    """

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str] | None = None,
        config: Mapping[str, Any] = CONFIG,
    ) -> None:
        self.folder = folder
        self.environment = {**os.environ, **(environment or {})}
        self.write(config)

    def write(self, config: Mapping[str, Any]) -> None:
        """Write the config."""
        (self.folder / "my.yaml").write_text(yaml.safe_dump(dict(config), sort_keys=False))

    def command(self, *arguments: str | Path) -> list[str]:
        """The command line."""
        options = ["--snakefile", REPOSITORY / "Snakefile", "--configfile", "my.yaml", *arguments]
        return [sys.executable, "-m", "snakemake", *map(str, options)]

    def __call__(self, *arguments: str | Path) -> "subprocess.CompletedProcess[str]":
        """Run to the end; stdout and stderr are one text."""
        with self.started(*arguments) as process:
            shown, _ = process.communicate(timeout=400)
        return subprocess.CompletedProcess(process.args, process.returncode, shown)

    def started(self, *arguments: str | Path) -> "subprocess.Popen[str]":
        """Start without waiting."""
        return subprocess.Popen(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


def contents(results: Path) -> dict[str, Any]:
    """Outputs of a run by name: tables with their metadata, and text; no logs, no site."""
    parquet = {
        path: (pl.read_parquet(path), metadata_of(path))
        for path in results.rglob("*.parquet")
        if "bundle" not in path.parts
    }
    csv = {path: path.read_text() for path in results.rglob("*.csv") if "bundle" not in path.parts}
    return {
        path.relative_to(results).as_posix(): content for path, content in (parquet | csv).items()
    }


def assert_same(found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Equal files, with equal rows in equal order, to the last bit."""
    assert set(found) == set(expected)
    for name, content in expected.items():
        if isinstance(content, tuple):
            assert found[name][0].equals(content[0]), name
            assert found[name][1] == content[1], name
        else:
            assert found[name] == content, name
