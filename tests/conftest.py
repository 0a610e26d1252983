"""Shared fixtures: the repository, Snakemake as a user starts it, a run of the default config."""

import fcntl
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
    """Run `snakemake --cores 2` in a folder; the output has both streams as text."""

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
            timeout=900,
        )

    return run


@pytest.fixture(scope="session")
def default_results(
    tmp_path_factory: pytest.TempPathFactory, repository: Path, snakemake: Snakemake
) -> Path:
    """The results of the default config, read only: one run per session, by the first worker."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "default"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            options = ("--snakefile", repository / "Snakefile", "--directory", folder)
            done = snakemake(*options, cwd=folder)
            assert done.returncode == 0, done.stdout
            (folder / "done").touch()
    return folder / "results"
