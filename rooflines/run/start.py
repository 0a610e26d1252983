"""Job starts: on a thread in the run itself, or in a process.

Polars computes tables, lists and thresholds: their jobs run on threads in the run itself and share
polars' threads. What draws or renders runs in a process, and so does a job that plans more memory
than is free, and every job on another machine: if it is killed, only the job fails, and its message
stays.
"""

from __future__ import annotations

import atexit
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from rooflines.basics.errors import INTERRUPTED
from rooflines.basics.text import counted
from rooflines.run.log import MAX_MESSAGE_BYTES, run_logged

if TYPE_CHECKING:
    from collections.abc import Iterator

interrupted = threading.Event()
"""Set when Ctrl-C has ended the run: no job starts any more."""

_processes: set[subprocess.Popen[bytes]] = set()
"""Running job processes."""

_elsewhere = threading.Event()
"""Set in a process that runs jobs for a run in another one."""

_planned_mb: list[float] = []
"""Planned memory by job on a thread in this process [MB]."""

_failures: dict[str, str] = {}
"""The jobs of this run that failed, the first for each message."""

MAX_FAILURES = 3
"""At most this many messages are repeated at the end of a run [1]."""

INTERRUPTED_S = 2.0
"""Time that jobs on threads get to end after Ctrl-C [s]."""

CGROUP = Path("/sys/fs/cgroup")
"""Folder with this container's memory limit, where there is one."""

_lock = threading.Lock()
"""Held while jobs start and end: Snakemake starts jobs from several threads."""


class JobError(Exception):
    """A job failed; the reason has been printed, unless it was killed."""


def prepare_jobs(cores: int | None, *, elsewhere: bool) -> None:
    """Prepare this process for jobs, before polars is imported.

    Args:
        cores: Cores of the run, and threads of polars [1]; None where other machines run the jobs.
        elsewhere: Whether this process runs jobs for a run in another one.
    """
    if elsewhere:
        _elsewhere.set()
    elif cores:
        os.environ.setdefault("POLARS_MAX_THREADS", str(cores))


def run_job(
    function: str, log: str | Path, threads: int, memory_mb: float, *arguments: object
) -> None:
    """Run a job on this thread or in a process, and wait for its end.

    Args:
        function: Its function in this package, such as `run.jobs.write_part`.
        log: The file for the lines that it returns.
        threads: Threads of polars, if it gets a process [1].
        memory_mb: Planned memory [MB]; it gets a process where less is free.
        arguments: The function's arguments, sent to a process as JSON: a path becomes text.

    Raises:
        JobError: It failed, or was killed, or the run is being ended.
    """
    if _elsewhere.is_set() or not _fits(memory_mb):
        run_process(function, log, threads, *arguments)
        return
    _require_running()
    with _planned(memory_mb):
        message = run_logged(function, log, arguments)
    if message:
        print(message, file=sys.stderr)
    _require_success(function, log, 1 if message else 0, message)


def run_process(function: str, log: str | Path, threads: int, *arguments: object) -> None:
    """Run a job in a process, and wait for its end.

    Args and Raises as in `run_job`.
    """
    _require_running()
    request = {"function": function, "log": str(log), "arguments": arguments}
    status, message = _answer(json.dumps(request, default=str).encode(), threads)
    _require_success(function, log, status, message)


def _require_running() -> None:
    if interrupted.is_set():
        raise JobError("the run was interrupted")


def _require_success(function: str, log: str | Path, status: int, message: str) -> None:
    """Note a failure, and raise it.

    Raises:
        JobError: The exit status is not 0.
    """
    if status == 0:
        return
    failure = f"{function.rpartition('.')[2]} {_ending(status)}; its log: {log}"
    if not interrupted.is_set():
        _failures.setdefault(message or failure, failure)
    raise JobError(failure)


def _fits(memory_mb: float) -> bool:
    """Test for enough free memory beside the jobs that already run on threads."""
    with _lock:
        return sum(_planned_mb) + memory_mb <= free_memory_mb()


def free_memory_mb() -> float:
    """Free memory: the machine's, within the limits of the container and of this process [MB]."""
    free: int = psutil.virtual_memory().available
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        free = min(free, limit - psutil.Process().memory_info().vms)
    with suppress(OSError, ValueError):  # no container, or no limit
        limit = int((CGROUP / "memory.max").read_text())
        free = min(free, limit - int((CGROUP / "memory.current").read_text()))
    return free / 1e6


@contextmanager
def _planned(memory_mb: float) -> Iterator[None]:
    """Count a job's planned memory while it runs."""
    with _lock:
        _planned_mb.append(memory_mb)
    try:
        yield
    finally:
        with _lock:
            _planned_mb.remove(memory_mb)


def _answer(request: bytes, threads: int) -> tuple[int, str]:
    """Send a request to a new process.

    Returns:
        Its exit status, negative for a signal; and the message of its failure.
    """
    ours, theirs = socket.socketpair()
    # The mask is inherited: Ctrl-C is for the run, which ends its jobs, while Python starts too.
    usual = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with _lock, theirs:
            process = subprocess.Popen(  # noqa: S603 - arguments of our own
                [sys.executable, "-P", "-m", "rooflines.run.job_process", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env={**os.environ, "POLARS_MAX_THREADS": str(threads)},
            )
            _processes.add(process)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, usual)
    # The socket stays open while the run lives: the process ends when it closes.
    with ours:
        with suppress(OSError):  # it was killed before it read this
            ours.sendall(request + b"\n")
        status = process.wait()
        ours.settimeout(0)  # processes that it started have the other end too
        message = b""
        with suppress(OSError):
            message = ours.recv(MAX_MESSAGE_BYTES)
    with _lock:
        _processes.discard(process)
    return status, message.decode(errors="replace")


def say_failures_at_exit() -> None:
    """Print why jobs failed when this process ends: below all that Snakemake prints."""
    atexit.register(_say_failures)


def _say_failures() -> None:
    """Print why jobs failed, each reason once."""
    for message, failure in list(_failures.items())[:MAX_FAILURES]:
        print(*dict.fromkeys((failure, message)), sep="\n", file=sys.stderr)
    if (more := len(_failures) - MAX_FAILURES) > 0:
        print(f"and {counted(more, 'more failure')}, see above", file=sys.stderr)


def _ending(status: int) -> str:
    """End of a job as a predicate."""
    if status < 0:
        killed = f"was ended by {signal.Signals(-status).name}"
        return f"{killed}, as for lack of memory" if -status == signal.SIGKILL else killed
    return f"failed with exit status {status}"


def end_jobs() -> None:
    """Terminate the jobs of this run; after `interrupted` no others start.

    A thread cannot be terminated: where jobs on threads take longer than `INTERRUPTED_S`, the whole
    process ends as interrupted. The next run makes their outputs again, as after any killed run.
    """
    with _lock:
        for process in _processes:
            process.terminate()
    timer = threading.Timer(INTERRUPTED_S, os._exit, [INTERRUPTED])
    timer.daemon = True
    timer.start()
