"""Ctrl-C and SIGTERM: a run ends, after Ctrl-C in one line.

A terminal sends SIGINT to the run and to its jobs, which ignore it. The run terminates them, and
hides Snakemake's messages of their failure. After SIGTERM its jobs may end.
"""

from __future__ import annotations

import logging
import threading
from contextlib import suppress

from rooflines.run.start import end_jobs, interrupted

MESSAGE = "Interrupted; the same command resumes the run"

TERMINATING = "Terminating processes on user request"
"""Start of Snakemake's message after Ctrl-C."""


class Interruption(logging.Filter):
    """Screen filter for Snakemake's log: after Ctrl-C it shows one line, and ends jobs."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Test for a record to show; the first after Ctrl-C becomes our line."""
        if interrupted.is_set():
            return False
        if str(record.msg).startswith((TERMINATING, MESSAGE)):
            record.msg, record.args = MESSAGE, ()
            interrupted.set()
            threading.Thread(target=end_jobs, daemon=True).start()
        return True


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
