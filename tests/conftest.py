"""What several tests need: the repository, and Snakemake started as a user would start it."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent

Snakemake = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def repository() -> Path:
    """The repository's root."""
    return REPOSITORY


@pytest.fixture(scope="session")
def snakemake() -> Snakemake:
    """`snakemake --cores 2` with this environment's Python, in a folder, with more arguments; its output is text, both streams in one."""

    def run(
        *arguments: str | Path, cwd: Path, **environment: str
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "snakemake", "--cores", "2", *map(str, arguments)],
            cwd=cwd,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=300,
        )

    return run
