"""Progress of a run: rows done of the rows to make, then the jobs that read them.

Snakemake counts jobs, which says little where one job makes ten rows and the next ten million. A
handler of its log counts the rows of finished parts instead, and the rate at which they are made. A
terminal shows one status line, with the running jobs; a file gets a few lines.
"""

from __future__ import annotations

import logging
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, TextIO

from rooflines.basics.text import counted
from rooflines.run.interrupt import is_interrupt
from rooflines.run.screen import Screen, Ticker

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from rooflines.run import Workflow

LINES = 10
"""About this many lines go to a file: one for each tenth of the rows, then of the jobs [1]."""

QUICK_S = 3.0
"""Rows that are made sooner get no line of their own [s]."""

LINE_INTERVAL_S = 10.0
"""Least time between two lines in a file [s]."""

UPDATE_INTERVAL_S = 1.0
"""Time between two updates of the status line [s]."""

MOST_LEVELS = 3
"""Outputs are at most this many levels below the results [1]."""


@dataclass
class RunningJob:
    """A job of this run.

    Attributes:
        name: What it makes, such as `tables/square-matmul/part-00000` or `charts/roofline`.
        rows: The rows that it makes; 0 if it makes no part of a table [1].
        began_s: When it began, by the monotonic clock; None before that [s].
    """

    name: str
    rows: int
    began_s: float | None = None


@dataclass
class Tally:
    """The jobs of a run, and their rows: to make, and done.

    Attributes:
        waiting: The jobs that are not finished, by their number.
        total: Rows to make in this run [1].
        done: Rows of finished parts [1].
        started_s: When the run began, by the monotonic clock [s].
        jobs_done: Finished jobs [1].
    """

    waiting: dict[int, RunningJob] = field(default_factory=dict)
    total: int = 0
    done: int = 0
    started_s: float = 0.0
    jobs_done: int = 0

    def begin(self, job: int) -> None:
        """Note that a job has begun, perhaps for the second time."""
        if job in self.waiting:
            self.waiting[job].began_s = time.monotonic()

    def fail(self, job: int) -> None:
        """Note that a job has failed."""
        if job in self.waiting:
            self.waiting[job].began_s = None

    def finish(self, job: int) -> int:
        """Note that a job is finished; the rows it made [1]."""
        part = self.waiting.pop(job, None)
        if part is None:
            return 0
        self.jobs_done += 1
        self.done += part.rows
        return part.rows

    @property
    def share(self) -> float:
        """The share of the rows that are done, then of the jobs [1]."""
        jobs = self.jobs_done + len(self.waiting)
        return self.done / self.total if self.done < self.total else self.jobs_done / max(jobs, 1)

    def summary(self, now_s: float) -> str:
        """How far the run is.

        Args:
            now_s: The time, by the monotonic clock [s].
        """
        if self.done < self.total:
            return progress_line(self.done, self.total, now_s - self.started_s)
        return f"{self.jobs_done:,} of {self.jobs_done + len(self.waiting):,} jobs"

    def line(self, now_s: float) -> str:
        """The status line: rows, or jobs, then each running job with its time.

        Args:
            now_s: The time, by the monotonic clock [s].
        """
        running = (
            f"{job.name} {duration(now_s - job.began_s)}"
            for job in list(self.waiting.values())
            if job.began_s is not None
        )
        return "; ".join([self.summary(now_s), *running])


class Progress(logging.Handler):
    """A handler of Snakemake's log that writes the rows done of the rows to make.

    Args:
        workflow: Snakemake's workflow object; its graph has the parts that this run makes.
        rows: Rows of each output, by its path below the results; 0 of all but parts [1].
        stream: Where the lines go; standard error by default. A `Screen` gets a status line.
    """

    def __init__(
        self,
        workflow: Workflow,
        rows: Mapping[str, int],
        stream: Screen | TextIO | None = None,
    ) -> None:
        super().__init__()
        self._workflow = workflow
        self._rows = rows
        self._stream = stream or sys.stderr
        self._tally = Tally()
        self._reported = 0.0
        self._reported_s = 0.0
        self._ticker: Ticker | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Count the rows of finished jobs. Unreadable records are ignored: a run goes on."""
        try:
            event = getattr(record, "event", None)
            if is_interrupt(record):
                self._stop_ticker()
            elif event == "run_info":
                self._start()
            elif event == "job_started":
                for job in getattr(record, "jobs", ()):
                    self._tally.begin(job)
            elif event == "job_error":
                self._tally.fail(getattr(record, "jobid", -1))
            elif event == "job_finished":
                self._finish(getattr(record, "job_id", -1))
        except Exception:  # noqa: BLE001, S110 - a later Snakemake may log anything
            pass

    def close(self) -> None:
        """Remove the status line."""
        self._stop_ticker()
        if isinstance(self._stream, Screen):
            self._stream.show("")
        super().close()

    def _start(self) -> None:
        if self._tally.waiting or self._workflow.dryrun or self._workflow.touch:
            return
        for job in self._workflow.dag.needrun_jobs():
            for path in job.output:
                if output := output_at(path, self._rows):
                    name = output.removesuffix(".parquet")
                    self._tally.waiting[job.jobid] = RunningJob(name, self._rows[output])
                    break
        jobs = list(self._tally.waiting.values())
        self._tally.total = sum(job.rows for job in jobs)
        self._tally.started_s = self._reported_s = time.monotonic()
        if self._tally.total:
            parts = counted(sum(job.rows > 0 for job in jobs), "part")
            self._say(f"{self._tally.total:,} rows to make in {parts}")
        if jobs and isinstance(self._stream, Screen):
            self._ticker = Ticker(self._update, UPDATE_INTERVAL_S)

    def _finish(self, job: int) -> None:
        rows, tally, now_s = self._tally.finish(job), self._tally, time.monotonic()
        if not tally.waiting:
            self._stop_ticker()
            if isinstance(self._stream, Screen):
                self._stream.show("")
        elapsed_s = now_s - tally.started_s
        due = (
            not isinstance(self._stream, Screen)
            and (tally.share - self._reported) * LINES >= 1
            and now_s - self._reported_s >= LINE_INTERVAL_S
        )
        if rows and tally.done == tally.total and elapsed_s >= QUICK_S:
            self._say(progress_line(tally.done, tally.total, elapsed_s))
        elif due and tally.waiting:
            self._say(tally.summary(now_s))
        else:
            return
        self._reported, self._reported_s = tally.share, now_s

    def _stop_ticker(self) -> None:
        if self._ticker:
            self._ticker.stop()
            self._ticker = None

    def _update(self) -> None:
        with suppress(Exception):  # as in `emit`
            if isinstance(self._stream, Screen):
                self._stream.show(self._tally.line(time.monotonic()))

    def _say(self, line: str) -> None:
        self._stream.write(f"{line}\n")
        self._stream.flush()


def progress_line(done: int, total: int, elapsed_s: float) -> str:
    """One line of progress.

    Args:
        done: Rows made so far [1].
        total: Rows to make in this run [1].
        elapsed_s: Time since the run began [s].

    Returns:
        For example "12,000,000 of 45,000,000 rows (26 %), 3,900,000 rows/s".
    """
    rows_per_s = done / max(elapsed_s, 1e-3)
    texts = [f"{done:,} of {total:,} rows ({100 * done // total} %)"]
    if done:
        texts.append(f"{float(f'{rows_per_s:.2g}'):,.0f} rows/s")
    if done == total:
        texts.append(f"{elapsed_s:.1f} s")
    return ", ".join(texts)


def duration(seconds: float) -> str:
    """A duration in seconds, minutes or hours by its length: "42 s", "7 min", "3.5 h"."""
    minute, hour = 60, 3600
    if seconds < 2 * minute:
        return f"{seconds:.0f} s"
    return f"{seconds / minute:.0f} min" if seconds < 2 * hour else f"{seconds / hour:.1f} h"


def output_at(path: str | PurePath, outputs: Container[str]) -> str | None:
    """The output of a job below the results: "charts/chips" for results/charts/chips; or None."""
    parts = PurePath(path).parts
    names = ("/".join(parts[-count:]) for count in range(min(len(parts), MOST_LEVELS), 0, -1))
    return next((name for name in names if name in outputs), None)
