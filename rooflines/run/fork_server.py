"""A run's fork server: it imports job modules once, and forks a process for each job.

A job starts in milliseconds, with its modules imported, and is still a process: if it is killed or
runs out of memory, only the job fails, and its memory is given back. `start` starts the server with
the first job, and it ends with the run. The server itself computes nothing: polars starts its
threads when it is first used, and threads do not survive a fork.

The run sends one end of a socket for each job. The job's request arrives there. Sent back are the
message of a job that fails, and after a newline the exit status.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
import warnings
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

from rooflines.basics.lazy import GARBAGE_THRESHOLDS
from rooflines.run.log import job_log

if TYPE_CHECKING:
    from collections.abc import Callable

    from rooflines.basics.yaml_file import JSON

CHUNK_BYTES = 1 << 16
"""Bytes of a message that are received at once [byte]."""

SHARED = "rooflines.run."
"""Modules of many jobs, imported once; what draws is imported in the processes that draw."""


@dataclass
class ForkServer:
    """The server's loop.

    Args:
        control: The socket on which the ends of the jobs' sockets arrive; it closes with the run.
    """

    control: socket.socket
    _jobs: dict[int, socket.socket] = field(default_factory=dict)

    def serve(self) -> None:
        """Fork a process for each job until the run ends; terminate jobs that outlive it."""
        # Python 3.12 warns of the threads of polars' allocator, which is safe across forks.
        warnings.filterwarnings("ignore", ".* is multi-threaded", DeprecationWarning)
        gc.disable()  # a collection in a job would copy the memory that it shares with the server
        gc.set_threshold(*GARBAGE_THRESHOLDS)  # of jobs, which then take 15 % less
        signal.signal(signal.SIGCHLD, lambda _number, _frame: self._report())
        while descriptors := socket.recv_fds(self.control, 1, 1)[1]:
            job = socket.socket(fileno=descriptors[0])
            try:
                request = json.loads(receive(job))
            except (OSError, ValueError):  # the run was killed while it sent this
                break
            if request["module"].startswith(SHARED):
                with suppress(Exception):  # the job reports it
                    import_module(request["module"])
            gc.freeze()
            # SIGCHLD waits until `_jobs` has the process.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
            if (process := os.fork()) == 0:
                self._become(request, job)
            self._jobs[process] = job
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        for process in tuple(self._jobs):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)

    def _report(self) -> None:
        """Send the exit status of each job that has ended; negative: the signal that killed it."""
        with suppress(ChildProcessError):  # no process is left
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                with self._jobs.pop(ended[0]) as job, suppress(OSError):
                    job.sendall(f"\n{os.waitstatus_to_exitcode(ended[1])}".encode())
                    job.shutdown(socket.SHUT_RDWR)  # a process that the job started has it too

    def _become(self, request: JSON, job: socket.socket) -> NoReturn:
        """Run a job in this process, and end it."""
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        for connection in (self.control, *self._jobs.values()):
            connection.close()
        gc.enable()
        status = 1
        try:
            status = _status_of(request, job)
        finally:
            with suppress(OSError):
                sys.stderr.flush()
            os._exit(status)


def _status_of(request: JSON, sent: socket.socket) -> int:
    """Run a job, print and send the message of its failure, and return its exit status."""
    try:
        with job_log(request["log"]):
            run: Callable[..., None] = getattr(import_module(request["module"]), request["name"])
            run(*request["arguments"])
    except SystemExit as end:
        with suppress(OSError):
            sent.sendall(str(end.code).encode(errors="backslashreplace"))
            sys.stderr.write(f"{end.code}\n")
        return 1
    return 0


def receive(end: socket.socket) -> bytes:
    """All bytes sent to this end of a socket, until the other end shuts down its side."""
    return b"".join(iter(lambda: end.recv(CHUNK_BYTES), b""))


if __name__ == "__main__":
    # Ctrl-C is for the run, which ends its jobs; it was blocked while Python started.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    ForkServer(socket.socket(fileno=int(sys.argv[1]))).serve()
    os._exit(0)
