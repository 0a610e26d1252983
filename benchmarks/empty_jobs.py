"""A workflow of jobs that only import polars: the overhead of Snakemake."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.measure import RUNTIME, Cost, run

if TYPE_CHECKING:
    from pathlib import Path

SNAKEFILE = """
rule all:
    input: expand("{number}.txt", number=range(JOBS))

rule empty:
    output: "{number}.txt"
    script: "empty.py"
"""

SCRIPT = """
from pathlib import Path
import polars
Path(snakemake.output[0]).touch()
"""


def run_empty_jobs(folder: Path, jobs: int, cores: int) -> Cost:
    """Run this many jobs with the options of the default profile.

    In a folder where they have run before, no job is left to run.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("Snakefile", SNAKEFILE.replace("JOBS", str(jobs))), ("empty.py", SCRIPT)):
        if not (folder / name).exists():
            (folder / name).write_text(text, encoding="utf-8")
    return run(
        [
            "snakemake",
            "--cores",
            str(cores),
            "--max-jobs-per-timespan",
            "10000/1s",
            "--scheduler",
            "greedy",
        ],
        cores,
        folder,
        RUNTIME,
    )
