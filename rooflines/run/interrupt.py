"""Ctrl-C and SIGTERM: a run ends, after Ctrl-C in one line.

A terminal sends SIGINT to the run and to its jobs. The fork server of the jobs ignores it; a job
ends quietly (see `log.job_log`). The run repeats the signal to its jobs, then terminates those that
are left, and hides Snakemake's messages of their failure. After SIGTERM its jobs may end.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

MESSAGE = "Interrupted; the same command resumes the run"

TERMINATING = "Terminating processes on user request"
"""How Snakemake's message after Ctrl-C begins."""

PATIENCE_S = 2.0
"""Time that jobs have to end by themselves [s]."""

NOTICE_S = 5.0
"""Time that a run has to show that it was interrupted, after a job ended for that reason [s]."""

STEP_S = 0.2
"""Time between two signals [s]."""

noticed = threading.Event()
"""Set when the run has shown that it was interrupted."""


def is_interrupt(record: logging.LogRecord) -> bool:
    """Whether a record says that Ctrl-C ends the run, in Snakemake's words or in ours."""
    return str(record.msg).startswith((TERMINATING, MESSAGE))


class Interruption(logging.Filter):
    """A filter of Snakemake's log on the screen: after Ctrl-C, it shows one line, and ends jobs."""

    def __init__(self) -> None:
        super().__init__()
        self._interrupted = False

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is shown; the first after Ctrl-C becomes our line."""
        if self._interrupted:
            return False
        if is_interrupt(record):
            self._interrupted = True
            record.msg, record.args = MESSAGE, ()
            noticed.set()
            threading.Thread(target=_end_jobs, daemon=True).start()
        return True


def _end_jobs() -> None:
    """Interrupt the processes of this run's jobs until the run ends; terminate slow ones.

    A job may start after Ctrl-C: Snakemake has handed it to a thread already.
    """
    import psutil  # noqa: PLC0415 - comes with Snakemake, as all of this

    began_s = time.monotonic()
    with suppress(psutil.Error):
        while True:
            late = time.monotonic() - began_s > PATIENCE_S
            for job in psutil.Process().children(recursive=True):
                with suppress(psutil.Error):
                    job.send_signal(signal.SIGTERM if late else signal.SIGINT)
            time.sleep(STEP_S)


def quiet_interrupts() -> None:
    """Let Ctrl-C end this process without a traceback; the default profile calls this."""
    usual = sys.excepthook

    def hook(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None, /
    ) -> None:
        if issubclass(kind, KeyboardInterrupt):
            os.write(sys.stderr.fileno(), f"{MESSAGE}\n".encode())
        else:
            usual(kind, error, trace)

    sys.excepthook = hook


def handle_sigterm() -> None:
    """Let SIGTERM end a run whatever its scheduler is doing: the handler gets a thread.

    Snakemake's handler acquires a lock that is not reentrant. In the main thread it deadlocks where
    the scheduler holds that lock. A Snakemake without this scheduler keeps its own handler.
    """
    with suppress(AttributeError, ImportError):
        from snakemake.scheduling.job_scheduler import JobScheduler  # noqa: PLC0415

        handle = JobScheduler.exit_gracefully
        if handle.__module__ == __name__:
            return

        def handled(scheduler: JobScheduler, *received: object) -> None:
            threading.Thread(target=handle, args=(scheduler, *received), daemon=True).start()

        JobScheduler.exit_gracefully = handled
