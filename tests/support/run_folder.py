"""Folders in which tests run the workflow."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from conftest import Snakemake

APART = {"logs", "bundle", ".made"}
"""Folders of the results whose files are no tables or summaries."""


class RunFolder:
    """A folder with a config and the results made from it.

    Args:
        path: The folder.
        repository: The checkout whose workflow is run.
        snakemake: The fixture.
        config: The config, which a test may change.
    """

    def __init__(
        self, path: Path, repository: Path, snakemake: Snakemake, config: dict[str, Any]
    ) -> None:
        self.path, self.repository, self.snakemake = path, repository, snakemake
        self.results = path / "results"
        self.config = config

    @property
    def options(self) -> list[str]:
        """The options for the workflow and the config."""
        return ["--snakefile", str(self.repository / "Snakefile"), "--configfile", "my.yaml"]

    def targets(self) -> Iterable[str]:
        """What is made by default, below the results; everything if that is nothing."""
        return ()

    def write(self) -> Path:
        """Write the config."""
        file = self.path / "my.yaml"
        file.write_text(yaml.safe_dump(self.config, sort_keys=False), encoding="utf-8")
        return file

    def run(self, *arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        """Write the config and run the workflow on it, from the folder.

        Args:
            arguments: Of Snakemake; by default the targets.
            environment: Variables of the environment.
        """
        self.write()
        targets = sorted(f"results/{name}" for name in self.targets())
        if targets and not arguments:
            arguments = ("--", *targets)
        return self.snakemake(*self.options, *arguments, cwd=self.path, **environment)

    def times(self) -> dict[str, int]:
        """The time of each table and summary [ns], by its path below the results."""
        paths = (path for path in self.results.rglob("*") if path.is_file())
        files = {path.relative_to(self.results): path for path in paths}
        return {
            name.as_posix(): path.stat().st_mtime_ns
            for name, path in files.items()
            if APART.isdisjoint(name.parts)
        }

    def remade(self, *arguments: str | Path, **environment: str) -> set[str]:
        """Run the workflow, as `run`; the files that are new."""
        before = self.times()
        done = self.run(*arguments, **environment)
        assert done.returncode == 0, done.stdout
        return {name for name, made in self.times().items() if before.get(name) != made}
