"""Runs that are broken on purpose, and what must hold afterwards."""

import hashlib
import os
import shutil
import signal
import subprocess
import threading
import time
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

import psutil
from case_files import case
from run_folder import RunFolder

CONFIG: dict[str, Any] = case("configs/run")

TABLES = ("parts.csv", "skipped.csv", "summary.csv", "model-shapes.csv", "rooflines.xlsx")
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


def finish_sealed(run, folder):
    """Finish a run without a network, if possible, with home and temporary folder in `folder`."""
    for name in ("home", "tmp"):
        (folder / name).mkdir()
    homes = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
    without = (*(["unshare", "--net"] if may_unshare() else []), "env", "-u", "XDG_CACHE_HOME")
    variables = dict.fromkeys(homes, str(folder / "home"))
    run.finish(before=without, TMPDIR=str(folder / "tmp"), **variables)


def run_undisturbed(folder):
    """Run the config in `folder/run`, sealed; the CPU time is in the file `cpu_s` [CPU s]."""
    before = os.times()
    finish_sealed(RunFolder(folder / "run", CONFIG), folder)
    after = os.times()
    spent = after.children_user + after.children_system
    spent -= before.children_user + before.children_system
    (folder / "cpu_s").write_text(str(spent))


class Watcher:
    """A reader that polls the files of runs, and notes each that differs from a clean run's.

    Args:
        folder: Where they are made.
        clean: The digests that its files must have whenever they exist.
    """

    def __init__(self, folder, clean):
        self._folder, self._clean = folder, clean
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll)
        self._seen: dict[str, tuple[int, int, int]] = {}
        self.polls = 0
        self.faults: list[str] = []

    def _poll(self):
        while not self._stop.wait(0.004):
            self.polls += 1
            for name, path in self._folder.published():
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

    def __enter__(self):
        """Start polling."""
        self._thread.start()
        return self

    def __exit__(self, *_):
        """Stop polling."""
        self._stop.set()
        self._thread.join()


@cache
def may_unshare(*kinds):
    """True if a process may unshare namespaces: the network (default), or mounts."""
    command = ["unshare", *(kinds or ("--net",)), "true"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def stats(folder):
    """Mode, size and time of everything in a folder."""
    lstats = {str(path): path.lstat() for path in folder.rglob("*")}
    return {name: (stat.st_mode, stat.st_size, stat.st_mtime_ns) for name, stat in lstats.items()}


class Work(NamedTuple):
    """CPU time of a run and of its jobs so far; unlike wall time it ignores other load [CPU s]."""

    all_s: float
    jobs_s: float


def jobs_of(pid):
    """The leaves of a process tree: the jobs that work."""
    parents = {process.info["ppid"] for process in psutil.process_iter(["ppid"])}
    below = [process.pid for process in psutil.Process(pid).children(recursive=True)]
    return [process for process in below if process not in parents]


def work_of(pid):
    """CPU time of a process and its descendants, those that have ended among them."""
    run, all_s = psutil.Process(pid), 0.0
    for process in (run, *run.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            all_s += sum(process.cpu_times()[:4])  # user and system, its own and of ended children
    return Work(all_s, all_s - sum(run.cpu_times()[:2]))


def worked(folder):
    """Run the workflow, which must succeed; its CPU time."""
    done = Work(0.0, 0.0)
    with folder.running() as run:
        while run.poll() is None:
            done = work_of(run.pid)
            time.sleep(0.02)
    assert run.returncode == 0, folder.said()
    return done


def killed(folder, kind, moment_s, chance):
    """Start a run and send it a signal; wait for its end, not for jobs that outlive it.

    Args:
        folder: The folder.
        kind: What happens, of `SIGNALS`.
        moment_s: When: CPU time of the run, or of its jobs if one of them is killed [CPU s].
        chance: Which of the jobs.

    Returns:
        Whether there was still something to kill.
    """
    whom, which = SIGNALS[kind]
    with folder.running() as run:
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


def recovers(folder, clean, kind, moment_s, chance):
    """Kill a run, run again, and assert what must hold; whether there was something to kill."""
    shutil.rmtree(folder.results, ignore_errors=True)
    shutil.rmtree(folder.path / ".snakemake", ignore_errors=True)
    with Watcher(folder, clean) as watcher:
        hit = killed(folder, kind, moment_s, chance)
        before = folder.finished()
        folder.finish()
    assert watcher.faults == []
    assert watcher.polls > 10
    after = folder.finished()
    assert {name for name, made in before.items() if after.get(name) != made} == set(), (
        "finished and made again"
    )
    folder.whole(clean)
    return hit
