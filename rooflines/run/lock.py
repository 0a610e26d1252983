"""One run per folder: a lock held while a run is alive, and recovery from a killed run's lock.

Snakemake's own lock outlives a killed run. A file lock does not: the system releases it with the
process. So a Snakemake lock without a file lock beside it is stale, and is removed.
"""

from __future__ import annotations

import fcntl
import os
import socket
import time
import uuid
from functools import cache
from pathlib import Path

from rooflines.basics.errors import RooflinesError
from rooflines.results.records import RUN

STATE = Path(".snakemake") / "rooflines"
"""The folder for the state of runs, below the one that Snakemake works in."""

SNAKEMAKE_LOCKS = Path(".snakemake") / "locks"

RUN_ID = uuid.uuid4().hex
"""The id of this process as a run."""


class RunLock:
    """A file lock held while a run is alive; the system releases it, however the process ends.

    Args:
        folder: The folder of the lock file.

    Attributes:
        exclusive: Whether no other run holds the lock.
        local: Whether the folder was used from this machine only: a lock that another machine
            holds may not show here.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / "alive").open("a+", encoding="utf-8", errors="replace")
        self.exclusive = self._lock(fcntl.LOCK_EX)
        self._file.seek(0)
        hosts = set(self._file.read().split())
        self.local = hosts <= {socket.gethostname()}
        if not self.local or not hosts:
            self._file.write(socket.gethostname() + "\n")
            self._file.flush()

    def _lock(self, kind: int) -> bool:
        """Try to lock the file; some file systems have no locks."""
        try:
            fcntl.flock(self._file, kind | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Release the lock before the process ends."""
        self._file.close()

    def share(self) -> None:
        """Admit other runs, which have a lock of their own."""
        self._lock(fcntl.LOCK_SH)


@cache
def run_lock(folder: Path) -> RunLock:
    """This process's lock in a folder: one, however many workflows the process imports."""
    return RunLock(folder)


def acquire(results: Path, *, shared: bool) -> bool:
    """Acquire the lock of the folder that Snakemake works in, and give jobs the id of this run.

    Jobs of a killed run may still work; they publish nothing once another run has written its id.

    Args:
        results: The folder of results.
        shared: Whether other runs may hold the lock too: this workflow is a module of another one.

    Returns:
        Whether the lock of a killed run was removed.

    Raises:
        RooflinesError: Another run is active, or the files of the lock cannot be used.
    """
    run_file = STATE.absolute() / "run"
    try:
        lock = run_lock(STATE.absolute())
        run_file.open("a").close()
    except OSError as error:
        problem = f"has files that cannot be used ({error})"
        fix = "delete it: it says which runs are active, and holds no results"
        raise RooflinesError("", problem, fix, file=str(STATE)) from None
    stale = lock.exclusive and lock.local and _locks_only(results)
    for file in SNAKEMAKE_LOCKS.iterdir() if stale else ():
        file.unlink(missing_ok=True)
    if shared:
        lock.share()
    elif not lock.exclusive:
        _, _, active = run_file.read_text(encoding="utf-8", errors="replace").partition(" ")
        problem = f"is in use by another run ({active.strip()})"
        fix = "wait for it, or stop that process, or use another folder (--directory)"
        raise RooflinesError("", problem, fix, file=str(Path.cwd()))
    since = time.strftime("%Y-%m-%dT%H:%M:%S")
    line = f"{RUN_ID} process {os.getpid()} on {socket.gethostname()}, since {since}\n"
    run_file.write_text(line, encoding="utf-8")
    os.environ[RUN] = f"{run_file}:{RUN_ID}"
    return stale


def _locks_only(results: Path) -> bool:
    """Whether Snakemake's locks exist and cover only these results: then our run left them."""
    locked = [
        Path(line)
        for lock in SNAKEMAKE_LOCKS.glob("*.output.lock")
        for line in lock.read_text(encoding="utf-8").splitlines()
    ]
    return bool(locked) and all(path.is_relative_to(results) for path in locked)


def snakemake_lock_exists() -> bool:
    """Whether Snakemake's own lock is there, and so Snakemake will refuse to run."""
    return SNAKEMAKE_LOCKS.is_dir() and any(SNAKEMAKE_LOCKS.iterdir())
