"""Logs: one file per job, and what Snakemake shows on the screen."""

from __future__ import annotations

import logging
import re
import time
import traceback
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError
from rooflines.results.atomic import write_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflines.run import Workflow


@contextmanager
def job_log(path: str | Path) -> Iterator[None]:
    """Write a job's output to its log, with its time or its traceback; the screen gets one line.

    Args:
        path: The log file; an existing one is overwritten.

    Raises:
        SystemExit: The job fails; the message is the error's.
    """
    try:
        # Closed below: an error of a full disk in `close` must not hide the job's own.
        log = Path(path).open("w", encoding="utf-8")  # noqa: SIM115
    except OSError as error:
        raise SystemExit(str(write_error(path, error) or error)) from None
    try:
        with redirect_stdout(log), redirect_stderr(log):
            started_s = time.monotonic()
            yield
            print(f"done in {time.monotonic() - started_s:.2f} s")
    except RooflinesError as error:
        raise SystemExit(str(error)) from None
    except Exception as error:  # noqa: BLE001 - every error ends the job and goes to its log
        with suppress(OSError):
            traceback.print_exc(file=log)
        raise SystemExit(f"{type(error).__name__}: {error}") from None
    finally:
        with suppress(OSError):
            log.close()


class WithoutSteps(logging.Filter):
    """A filter that hides the steps of single jobs on the screen.

    Errors, the plan of the run and its end are shown, and everything in a dry run, which is read
    for its jobs. Snakemake's own log file has it all.

    Args:
        workflow: Snakemake's workflow object, for whether the run is a dry run.
    """

    EVENTS = frozenset({"job_info", "job_started", "job_finished", "progress", "shellcmd"})
    SELECTION = "Select jobs to execute..."
    ENGINES = re.compile(
        r"Job \d+ has been submitted|(Storing in|Retrieving from) storage: |"
        r"Finished (upload|retrieval)\.$|"
        r"(Removing local copy of storage file|Skipped removing non-empty directory)",
    )
    """How messages of an engine on single jobs or files begin."""

    def __init__(self, workflow: Workflow) -> None:
        super().__init__()
        self._workflow = workflow

    def filter(self, record: logging.LogRecord) -> bool:
        """Test for a record to show."""
        step = (
            getattr(record, "event", None) in self.EVENTS
            or record.msg == self.SELECTION
            or self.ENGINES.match(str(record.msg))
        )
        return not step or bool(self._workflow.dryrun)
