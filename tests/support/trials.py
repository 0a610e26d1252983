"""Trials: folders in which runs are broken on purpose, and what must hold afterwards."""

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Self

import psutil
import yaml

from rooflines.results.provenance import check_results

REPOSITORY = Path(__file__).parents[2]

CONFIG: dict[str, Any] = {
    "sweeps": {
        "grid": {
            "operation": "matmul",
            "grid": {"B": {"from": 1, "to": 64, "factor": 2}, "D": [1024, 4096], "F": "D"},
            "dtypes": ["bf16", "fp8"],
            "chips": ["tpu-v5e", "h100-sxm", "a100-sxm-80gb"],
            "rows_per_part": 20,
        },
        "shapes": {
            "operation": "matmul",
            "grid": {"B": [128, 256]},
            "shapes": [{"name": "up", "D": 4096, "F": 14336}],
            "dtypes": ["bf16", "mxfp4"],
            "chips": ["tpu-v5e"],
        },
    },
    "charts": [],
}
"""Four parts, thresholds, something skipped, and a bundle: eight jobs or so."""

TABLES = tuple(
    f"results/{name}"
    for name in (
        "tables/index.csv",
        "skipped.csv",
        "summary.csv",
        "model-shapes.csv",
        "rooflines.xlsx",
    )
)
"""Targets of a run that makes all but the site, which takes longest."""

SEED = os.environ["ROOFLINES_SEED"]
"""Seed of the kill times."""

SIGNALS = {
    "snakemake is killed (SIGKILL)": ("run", signal.SIGKILL),
    "snakemake is asked to end (SIGTERM)": ("run", signal.SIGTERM),
    "Ctrl-C": ("all", signal.SIGINT),
    "a job is killed (SIGKILL), as for memory": ("job", signal.SIGKILL),
    "a job is asked to end (SIGTERM)": ("job", signal.SIGTERM),
}
"""Faults of a run: the receiver of the signal, and the signal."""


class Trial:
    """A folder with a config, and runs in it.

    Args:
        path: The folder.
        config: The config.
        targets: What is asked for; everything by default.
    """

    def __init__(self, path: Path, config: Mapping[str, Any] = CONFIG, *targets: str) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self._targets = targets
        self.path, self.results = path, path / "results"
        self._out = path.with_name(f"{path.name}.{id(self)}.out")
        self.write(config)

    def write(self, config: Mapping[str, Any]) -> None:
        """Write the config."""
        self.config = config
        (self.path / "my.yaml").write_text(yaml.safe_dump(dict(config), sort_keys=False))

    def finish(self) -> None:
        """Run the workflow, which must succeed."""
        done = self.run()
        assert done.returncode == 0, done.stdout

    def worked(self) -> "Work":
        """Run the workflow, which must succeed; its CPU time."""
        done = Work(0.0, 0.0)
        with self.running() as run:
            while run.poll() is None:
                done = work_of(run.pid)
                time.sleep(0.02)
        assert run.returncode == 0, self.said()
        return done

    def sealed(self, folder: Path) -> "subprocess.CompletedProcess[str]":
        """Run without a network, if possible, with home and temporary folder in `folder`."""
        for name in ("home", "tmp"):
            (folder / name).mkdir()
        variables = {
            name: str(folder / "home")
            for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
        }
        without = ["env", "-u", "XDG_CACHE_HOME"]
        return self.run(
            *(["unshare", "--net"] if may_unshare() else []),
            *without,
            TMPDIR=str(folder / "tmp"),
            **variables,
        )

    def elsewhere(self, folder: Path) -> list[str]:
        """What a sealed run left in its home and temporary folder."""
        return sorted(
            str(path.relative_to(folder))
            for name in ("home", "tmp")
            for path in (folder / name).rglob("*")
        )

    @property
    def command(self) -> list[str]:
        """What a user types."""
        snakefile = str(REPOSITORY / "Snakefile")
        return [
            sys.executable,
            "-m",
            "snakemake",
            "--cores",
            "4",
            "--snakefile",
            snakefile,
            "--configfile",
            "my.yaml",
            *(["--"] if self._targets else []),
            *self._targets,
        ]

    def run(self, *before: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        """Run the workflow as a user does.

        Args:
            before: What goes before the command, such as `unshare -n`.
            environment: Added to the environment.
        """
        return subprocess.run(
            [*before, *self.command],
            cwd=self.path,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=300,
        )

    @contextmanager
    def running(self) -> "Iterator[subprocess.Popen[bytes]]":
        """A run in a process group of its own."""
        with self._out.open("wb") as out:
            process = subprocess.Popen(
                self.command,
                cwd=self.path,
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

    def said(self) -> str:
        """The output of the last run of `running`."""
        return self._out.read_text()

    def contents(self) -> dict[str, str]:
        """SHA-256 of every published file except PDFs, which differ from run to run."""
        return {
            name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in self.published()
        }

    def published(self) -> Iterator[tuple[str, Path]]:
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

    def finished(self) -> dict[str, tuple[int, int]]:
        """Inode and time of every existing output of a finished job."""
        journal = self.path / ".snakemake" / "rooflines" / "known"
        lines = journal.read_text().splitlines() if journal.exists() else []
        names = [line.partition(" ")[2] for line in lines]
        stats = {name: (self.path / name).stat() for name in names if (self.path / name).exists()}
        return {name: (stat.st_ino, stat.st_mtime_ns) for name, stat in stats.items()}

    def whole(self, clean: Mapping[str, str]) -> None:
        """Assert that all files are those of a clean run, and that the records agree."""
        contents = self.contents()
        assert contents.keys() == clean.keys()
        assert [name for name in clean if contents[name] != clean[name]] == []
        assert [(path, fault) for path, fault in check_results(self.results) if fault] == []


class Watcher:
    """A reader that polls a trial's files, and notes each that differs from a clean run's.

    Args:
        trial: The folder.
        clean: The digests that its files must have whenever they exist.
    """

    def __init__(self, trial: Trial, clean: Mapping[str, str]) -> None:
        self._trial, self._clean = trial, clean
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll)
        self._seen: dict[str, tuple[int, int, int]] = {}
        self.polls = 0
        self.faults: list[str] = []

    def _poll(self) -> None:
        while not self._stop.wait(0.004):
            self.polls += 1
            for name, path in self._trial.published():
                try:
                    stat = path.stat()
                    mark = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
                    if self._seen.get(name) == mark:
                        continue
                    content = hashlib.sha256(path.read_bytes()).hexdigest()
                except FileNotFoundError:
                    continue
                self._seen[name] = mark
                if content != self._clean.get(name):
                    self.faults.append(f"{name} with {stat.st_size} bytes")

    def __enter__(self) -> Self:
        """Start polling."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop polling."""
        self._stop.set()
        self._thread.join()


@cache
def may_unshare(*kinds: str) -> bool:
    """Whether a process may unshare namespaces: the network (default), or mounts."""
    return (
        subprocess.run(
            ["unshare", *(kinds or ("--net",)), "true"],  # noqa: S607
            capture_output=True,
            check=False,
        ).returncode
        == 0
    )


def stats(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Mode, size and time of everything in a folder."""
    lstats = {str(path): path.lstat() for path in folder.rglob("*")}
    return {name: (stat.st_mode, stat.st_size, stat.st_mtime_ns) for name, stat in lstats.items()}


class Work(NamedTuple):
    """CPU time of a run and of its jobs so far; unlike wall time it ignores other load [CPU s]."""

    all_s: float
    jobs_s: float


def jobs_of(pid: int) -> list[int]:
    """The leaves of a process tree: the jobs that work."""
    parents = {process.info["ppid"] for process in psutil.process_iter(["ppid"])}
    below = [process.pid for process in psutil.Process(pid).children(recursive=True)]
    return [process for process in below if process not in parents]


def work_of(pid: int) -> Work:
    """CPU time of a process and its descendants, those that have ended among them."""
    run, all_s = psutil.Process(pid), 0.0
    for process in (run, *run.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            all_s += sum(process.cpu_times()[:4])  # user and system, its own and of ended children
    return Work(all_s, all_s - sum(run.cpu_times()[:2]))


def killed(trial: Trial, kind: str, moment_s: float, chance: random.Random) -> bool:
    """Start a run and send it a signal; wait for its end, not for jobs that outlive it.

    Args:
        trial: The folder.
        kind: What happens, of `SIGNALS`.
        moment_s: When: CPU time of the run, or of its jobs if one of them is killed [CPU s].
        chance: Which of the jobs.

    Returns:
        Whether there was still something to kill.
    """
    whom, which = SIGNALS[kind]
    with trial.running() as run:
        victims: list[int] = []
        while not victims and run.poll() is None:
            done = work_of(run.pid)
            if whom != "job" and done.all_s >= moment_s:
                victims = [run.pid]
            elif whom == "job" and done.jobs_s >= moment_s and (jobs := jobs_of(run.pid)):
                victims = [chance.choice(jobs)]
            else:
                time.sleep(0.02)
        for victim in victims:
            try:
                os.killpg(victim, which) if whom == "all" else os.kill(victim, which)
            except ProcessLookupError:
                return False
        run.wait(120)
    return bool(victims)


def recovers(
    trial: Trial, clean: Mapping[str, str], kind: str, moment_s: float, chance: random.Random
) -> bool:
    """Kill a run, run again, and assert what must hold; whether there was something to kill."""
    shutil.rmtree(trial.results, ignore_errors=True)
    shutil.rmtree(trial.path / ".snakemake", ignore_errors=True)
    with Watcher(trial, clean) as watcher:
        hit = killed(trial, kind, moment_s, chance)
        before = trial.finished()
        done = trial.run()
    assert done.returncode == 0, done.stdout
    assert watcher.faults == []
    assert watcher.polls > 10
    after = trial.finished()
    assert {name for name, made in before.items() if after.get(name) != made} == set(), (
        "finished and made again"
    )
    trial.whole(clean)
    return hit
