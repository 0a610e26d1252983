"""Runs of the workflow as a user starts them, and folders in which they run."""

import copy
import hashlib
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import yaml

from rooflines.results.provenance import check_results

REPOSITORY = Path(__file__).parents[2]
SNAKEMAKE = (sys.executable, "-m", "snakemake")
SNAKEFILE = ("--snakefile", str(REPOSITORY / "Snakefile"))

APART = {"logs", "bundle", ".made"}
"""Folders of the results whose files are no tables or summaries."""


def snakemake(*arguments, cwd, cores=2, before=(), **environment):
    """Run Snakemake; stdout and stderr are one text.

    Args:
        arguments: Its arguments.
        cwd: Where it is started.
        cores: How many it may use; None: the profile says it.
        before: What goes before the command, such as `unshare --net`.
        environment: Added to the environment.
    """
    options = ("--cores", cores) if cores else ()
    return subprocess.run(
        [*before, *SNAKEMAKE, *map(str, (*options, *arguments))],
        cwd=cwd,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=900,
    )


class RunFolder:
    """A folder with a config and the results made from it.

    Args:
        path: The folder.
        config: The config, which a test may change.
        asked: What is made by default, below the results; everything if that is nothing.
        cores: Of its runs; None: the profile says it.
        options: More options of Snakemake's command line.
        environment: Of its runs, besides that of this process.
    """

    def __init__(self, path, config, *asked, cores=2, options=(), **environment):
        path.mkdir(parents=True, exist_ok=True)
        self.path, self.results, self.config = path, path / "results", copy.deepcopy(config)
        self.asked, self.cores, self.environment = asked, cores, environment
        self.options = options
        self._out = path.with_name(f"{path.name}.{id(self)}.out")

    def targets(self):
        """Default outputs, below the results."""
        return self.asked

    def copied(self, path):
        """A copy of the folder, with its results."""
        shutil.copytree(self.path, path, symlinks=True, dirs_exist_ok=True)
        return type(self)(path, self.config, *self.asked)

    def write(self):
        """Write the config; its file."""
        file = self.path / "my.yaml"
        file.write_text(yaml.safe_dump(self.config, sort_keys=False), encoding="utf-8")
        return file

    def arguments(self, *arguments):
        """The arguments of Snakemake: by default those that make the targets."""
        targets = [f"results/{name}" for name in sorted(self.targets())]
        more = arguments or ("--", *targets)[: 2 * len(targets)]
        return [*SNAKEFILE, *self.options, "--configfile", "my.yaml", *map(str, more)]

    @property
    def command(self):
        """Command that a user types."""
        self.write()
        return [*SNAKEMAKE, "--cores", str(self.cores), *self.arguments()]

    def run(self, *arguments, before=(), **environment):
        """Write the config and run the workflow on it, from the folder, by default its targets."""
        self.write()
        own = {"cores": self.cores, "before": before, **self.environment, **environment}
        return snakemake(*self.arguments(*arguments), cwd=self.path, **own)

    def finish(self, *arguments, **environment):
        """Run the workflow, which must succeed; what it said."""
        done = self.run(*arguments, **environment)
        assert done.returncode == 0, done.stdout
        return done.stdout

    @contextmanager
    def running(self, *arguments):
        """A run in a process group of its own."""
        self.write()
        options = ("--cores", str(self.cores)) if self.cores else ()
        with self._out.open("wb") as out:
            process = subprocess.Popen(
                [*SNAKEMAKE, *options, *self.arguments(*arguments)],
                cwd=self.path,
                env={**os.environ, **self.environment},
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.kill()
                process.wait()

    def said(self):
        """The output of the last run of `running`."""
        return self._out.read_text()

    def times(self):
        """The time of each table and summary [ns], by its path below the results."""
        paths = (path for path in self.results.rglob("*") if path.is_file())
        files = {path.relative_to(self.results): path for path in paths}
        return {
            name.as_posix(): path.stat().st_mtime_ns
            for name, path in files.items()
            if APART.isdisjoint(name.parts)
        }

    def remade(self, *arguments, **environment):
        """Run the workflow, as `run`; the files that are new."""
        before = self.times()
        self.finish(*arguments, **environment)
        return {name for name, made in self.times().items() if before.get(name) != made}

    def published(self):
        """Every published file, by its path below the results."""
        for folder, folders, names in os.walk(self.results):
            below = Path(folder).relative_to(self.results)
            folders[:] = [
                name
                for name in folders
                if not name.startswith(".") and (below.parts or name != "logs")
            ]
            for name in names:
                if not name.startswith(".") and not name.endswith(".pdf"):
                    yield (below / name).as_posix(), Path(folder, name)

    def contents(self):
        """SHA-256 of every published file except PDFs, which differ from run to run."""
        return {
            name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in self.published()
        }

    def finished(self):
        """Inode and time of every existing output of a finished job."""
        journal = self.path / ".snakemake" / "rooflines" / "known"
        lines = journal.read_text().splitlines() if journal.exists() else []
        names = [line.partition(" ")[2] for line in lines]
        stats = {name: (self.path / name).stat() for name in names if (self.path / name).exists()}
        return {name: (stat.st_ino, stat.st_mtime_ns) for name, stat in stats.items()}

    def whole(self, clean):
        """Assert that all files are those of a clean run, and that the records agree."""
        contents = self.contents()
        assert contents.keys() == clean.keys()
        assert [name for name in clean if contents[name] != clean[name]] == []
        assert [(path, fault) for path, fault in check_results(self.results) if fault] == []
