"""Starts jobs, each in a process that a fork server of this run forks (see `fork_server`)."""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

from rooflines.basics.text import counted
from rooflines.run.fork_server import receive
from rooflines.run.interrupt import noticed

if TYPE_CHECKING:
    from pathlib import Path

_servers: dict[int, Server] = {}
"""The fork servers of this run, by the threads of their jobs."""

_failures: dict[str, str] = {}
"""The jobs of this run that failed, the first for each message."""

MAX_FAILURES = 3
"""At most this many messages are repeated at the end of a run [1]."""

_lock = threading.Lock()
"""Held while servers start and end: Snakemake starts jobs from several threads."""


class JobError(Exception):
    """A job failed; its process has printed the reason, unless it was killed."""


def run_job(function: str, log: str | Path, threads: int, *arguments: object) -> None:
    """Run a job in a process of its own, and wait for its end.

    Args:
        function: Its function in this package, such as `run.jobs.write_part`.
        log: The file for what it prints.
        threads: Threads that polars may use [1].
        arguments: The function's arguments, sent as JSON; a path becomes text.

    Raises:
        JobError: It failed, or was killed, or the run is being ended.
    """
    module, _, name = function.rpartition(".")
    request = {
        "module": f"rooflines.{module}",
        "name": name,
        "log": str(log),
        "arguments": arguments,
    }
    status, message = _server(threads).run(json.dumps(request, default=str).encode())
    if status != 0:
        failure = f"{name} {_ending(status)}; its log: {log}"
        if not noticed.is_set():
            _failures.setdefault(message or failure, failure)
        raise JobError(failure)


def say_failures_at_exit() -> None:
    """Print why jobs failed when this process ends: below all that Snakemake prints."""
    atexit.register(_say_failures)


def _say_failures() -> None:
    """Print why jobs failed, each reason once."""
    for message, failure in list(_failures.items())[:MAX_FAILURES]:
        print(*dict.fromkeys((failure, message)), sep="\n", file=sys.stderr)
    if (more := len(_failures) - MAX_FAILURES) > 0:
        print(f"and {counted(more, 'more failure')}, see above", file=sys.stderr)


def _ending(status: int | None) -> str:
    """End of a job as a predicate."""
    if status is None:
        return "was left without the process that started it"
    if status < 0:
        killed = f"was ended by {signal.Signals(-status).name}"
        return f"{killed}, as for lack of memory" if -status == signal.SIGKILL else killed
    return f"failed with exit status {status}"


def _server(threads: int) -> Server:
    """Fork server for jobs with this number of threads; a new one if it was killed."""
    with _lock:
        if noticed.is_set():
            raise JobError("the run was interrupted")
        if threads not in _servers or not _servers[threads].alive:
            _servers[threads] = Server(threads)
        return _servers[threads]


def end_jobs() -> None:
    """Terminate the jobs of this run; after `noticed` no others start."""
    with _lock:
        for server in _servers.values():
            server.close()


class Server:
    """Fork server for this run.

    Polars reads the number of its threads when it is imported, so each number has a server.

    Args:
        threads: Threads that polars may use in a job [1].
    """

    def __init__(self, threads: int) -> None:
        self._control, server_end = socket.socketpair()
        # The mask is inherited: Ctrl-C in the time that Python takes to start has no effect.
        usual = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with server_end:
                self._process = subprocess.Popen(  # noqa: S603 - arguments of our own
                    [
                        sys.executable,
                        "-P",
                        "-m",
                        "rooflines.run.fork_server",
                        str(server_end.fileno()),
                    ],
                    pass_fds=[server_end.fileno()],
                    env={**os.environ, "POLARS_MAX_THREADS": str(threads)},
                )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, usual)
        atexit.register(self.close)

    @property
    def alive(self) -> bool:
        """Test for a running server."""
        return self._process.poll() is None

    def run(self, request: bytes) -> tuple[int | None, str]:
        """Run a job.

        Args:
            request: The job, as JSON; see `run_job`.

        Returns:
            Its exit status, negative for a signal, None if the server was killed; and the message
            of its failure, empty if it has none.
        """
        job_end, server_end = socket.socketpair()
        with job_end:
            try:
                with server_end:
                    socket.send_fds(self._control, [b"+"], [server_end.fileno()])
                job_end.sendall(request)
                job_end.shutdown(socket.SHUT_WR)
                message, _, status = receive(job_end).rpartition(b"\n")
                return int(status), message.decode()
            except (OSError, ValueError):
                return None, ""

    def close(self) -> None:
        """End the server, which terminates its jobs, and wait for it: its CPU time counts then."""
        self._control.close()
        self._process.wait()
