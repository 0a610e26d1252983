"""What a run says while it works: rows done of rows to do on the screen, and a log for every job.

Snakemake reports each finished job to its logger. A handler of ours listens there, knows how many rows each part of a table
has, and adds them up; Snakemake counts jobs, which says little where one job makes ten rows and the next ten million.
"""

import logging
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path, PurePath
from typing import Any, TextIO

LINES = 100
"""At most about this many lines of progress in a run: one for every hundredth of its rows."""

SECONDS_BETWEEN_LINES = 0.5
"""Small parts that finish together share a line [s]."""

SECONDS_WORTH_TELLING = 2.0
"""A shorter rest of a run is not announced [s]."""


class Progress(logging.Handler):
    """A handler of Snakemake's log that writes the rows done of the rows to do, and nothing else.

    Args:
        workflow: Snakemake's own workflow object; its graph says which parts this run makes.
        rows: Rows of each part, by its name (`square-matmul/part-00000`) [1].
        stream: Where the lines go; standard error by default.
    """

    def __init__(self, workflow: Any, rows: Mapping[str, int], stream: TextIO | None = None) -> None:  # noqa: ANN401
        super().__init__()
        self._workflow = workflow
        self._rows = rows
        self._stream = stream
        self._rows_of_job: dict[int, int] = {}
        self._total = 0
        self._done = 0
        self._told = 0
        self._started_s = 0.0
        self._told_s = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        """Count the rows of a finished job. A record this cannot read is passed over: progress never stops a run."""
        try:
            event = getattr(record, "event", None)
            if event == "run_info":
                self._start()
            elif event == "job_finished":
                self._finish(getattr(record, "job_id", -1))
        except Exception:  # noqa: BLE001, S110 - whatever Snakemake may log one day, a count is not worth a run
            pass

    def _start(self) -> None:
        if self._total or self._workflow.dryrun or self._workflow.touch:
            return
        for job in self._workflow.dag.needrun_jobs():
            rows = sum(self._rows.get(part_name(path), 0) for path in job.output)
            if rows:
                self._rows_of_job[job.jobid] = rows
        self._total = sum(self._rows_of_job.values())
        self._started_s = self._told_s = time.monotonic()
        if self._total:
            self._say(f"{self._total:,} rows to make in {counted(len(self._rows_of_job), 'part')}")

    def _finish(self, job: int) -> None:
        rows = self._rows_of_job.pop(job, 0)
        self._done += rows
        now_s = time.monotonic()
        last = self._done == self._total
        due = (self._done - self._told) * LINES >= self._total and now_s - self._told_s >= SECONDS_BETWEEN_LINES
        if rows and (last or due):
            self._told, self._told_s = self._done, now_s
            self._say(progress_line(self._done, self._total, now_s - self._started_s))

    def _say(self, line: str) -> None:
        print(line, file=self._stream or sys.stderr, flush=True)


class WithoutSteps(logging.Filter):
    """A filter of what Snakemake shows on the screen that leaves out the course of single jobs.

    Errors, the plan of the run and its end stay; so does everything in a dry run, which is read for its jobs. Snakemake's own log
    file has it all.

    Args:
        workflow: Snakemake's own workflow object, which knows whether a run is a dry run.
    """

    EVENTS = frozenset({"job_info", "job_started", "job_finished", "progress", "shellcmd"})
    MESSAGES = frozenset({"Select jobs to execute...", "Conda environments: ignored"})

    def __init__(self, workflow: Any) -> None:  # noqa: ANN401
        super().__init__()
        self._workflow = workflow

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is shown."""
        step = getattr(record, "event", None) in self.EVENTS or record.msg in self.MESSAGES
        return not step or bool(self._workflow.dryrun)


def progress_line(done: int, total: int, elapsed_s: float) -> str:
    """One line of progress.

    Args:
        done: Rows made so far [1].
        total: Rows to make in this run [1].
        elapsed_s: Time since the run began [s].

    Returns:
        For example "12,000,000 of 45,000,000 rows (26 %), 3,900,000 rows/s, about 9 s left".
    """
    rows_per_s = done / max(elapsed_s, 1e-3)
    left_s = (total - done) / rows_per_s
    parts = [f"{done:,} of {total:,} rows ({100 * done // total} %)", f"{float(f'{rows_per_s:.2g}'):,.0f} rows/s"]
    if done == total:
        parts.append(f"{elapsed_s:.1f} s")
    elif left_s >= SECONDS_WORTH_TELLING:
        parts.append(f"about {duration(left_s)} left")
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """A length of time in the unit one would say it in: "42 s", "7 min", "3.5 h"."""
    minute, hour = 60, 3600
    if seconds < 2 * minute:
        return f"{seconds:.0f} s"
    return f"{seconds / minute:.0f} min" if seconds < 2 * hour else f"{seconds / hour:.1f} h"


def counted(number: int, noun: str) -> str:
    """A number with its noun, in the plural where it is not one: "1 part", "12 parts"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def part_name(path: str | PurePath) -> str:
    """The name of the part a table's file holds: results/tables/a/part-00000.parquet is "a/part-00000"."""
    return "/".join(PurePath(path).with_suffix("").parts[-2:])


@contextmanager
def job_log(path: str | Path) -> Iterator[None]:
    """Send what a job prints to its log, with its time and, where it fails, its traceback; the screen gets one line.

    Args:
        path: The log file; written anew.

    Raises:
        SystemExit: Where the job fails, with the error as its message.
    """
    with Path(path).open("w", encoding="utf-8") as log, redirect_stdout(log), redirect_stderr(log):
        started_s = time.monotonic()
        try:
            yield
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the job's end and stands in its log
            traceback.print_exc()
            raise SystemExit(f"{type(error).__name__}: {error}") from None
        print(f"done in {time.monotonic() - started_s:.2f} s")
