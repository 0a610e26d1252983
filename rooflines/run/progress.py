"""Progress of a run: rows done of the rows to make.

Snakemake counts jobs, which says little where one job makes ten rows and the next ten million. A
handler of its log counts the rows of finished parts instead. A terminal shows one status line, with
the running parts; a file gets a few lines.
"""

from __future__ import annotations

import logging
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, TextIO

from rooflines.basics.text import counted
from rooflines.run.screen import Screen, Ticker

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.run import Workflow

__all__ = ["Progress", "progress_line"]

LINES = 10
"""About this many lines of progress go to a file: one for every tenth of the rows [1]."""

LINE_INTERVAL_S = 10.0
"""Least time between two lines in a file [s]."""

UPDATE_INTERVAL_S = 1.0
"""Time between two updates of the status line [s]."""

SHORTEST_LEFT_S = 2.0
"""A shorter time left is not shown [s]."""

MOST_MEASURED = 32
"""Up to this many running parts are measured by the size of their files [1]."""


@dataclass
class RunningPart:
    """A part of a table that this run makes.

    Attributes:
        name: Its name, such as `square-matmul/part-00000`.
        rows: Its rows [1].
        path: Its file.
        began_s: When its job began, by the monotonic clock; None before that [s].
    """

    name: str
    rows: int
    path: Path
    began_s: float | None = None

    def rows_written(self, bytes_per_row: float) -> int:
        """Rows written so far, an estimate from the size of the temporary file; never all [1]."""
        with suppress(OSError):
            temporary = self.path.parent.glob(f".{self.path.name}.*.tmp")
            size = max((path.stat().st_size for path in temporary), default=0)
            return min(int(size / bytes_per_row), self.rows * 99 // 100)
        return 0


@dataclass
class Tally:
    """The rows of a run: to make, done, and in progress.

    Attributes:
        waiting: The parts that are not finished, by the number of their job.
        total: Rows to make in this run [1].
        done: Rows of finished parts [1].
        started_s: When the run began, by the monotonic clock [s].
    """

    waiting: dict[int, RunningPart] = field(default_factory=dict)
    total: int = 0
    done: int = 0
    started_s: float = 0.0
    _rows_measured: int = 0
    _bytes_measured: int = 0

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
        self.done += part.rows
        with suppress(OSError):
            self._bytes_measured += part.path.stat().st_size
            self._rows_measured += part.rows
        return part.rows

    def line(self, now_s: float) -> str:
        """The status line: all rows, then each running part with its time left.

        Args:
            now_s: The time, by the monotonic clock [s].
        """
        done, texts = self.done, []
        running = [
            (part, now_s - part.began_s)
            for part in list(self.waiting.values())
            if part.began_s is not None
        ]
        measured = self._bytes_measured and len(running) <= MOST_MEASURED
        for part, elapsed_s in running:
            if measured:
                rows = part.rows_written(self._bytes_measured / self._rows_measured)
                done += rows
                left = time_left(rows, part.rows, elapsed_s)
                texts.append(f"{part.name} {100 * rows // part.rows} %{left}")
            else:
                texts.append(f"{part.name} {duration(elapsed_s)}")
        return "; ".join([progress_line(done, self.total, now_s - self.started_s), *texts])


class Progress(logging.Handler):
    """A handler of Snakemake's log that writes the rows done of the rows to make.

    Args:
        workflow: Snakemake's workflow object; its graph has the parts that this run makes.
        rows: Rows of each part, by its name (`square-matmul/part-00000`) [1].
        stream: Where the lines go; standard error by default. A `Screen` gets a status line.
    """

    def __init__(
        self, workflow: Workflow, rows: Mapping[str, int], stream: Screen | TextIO | None = None
    ) -> None:
        super().__init__()
        self._workflow = workflow
        self._rows = rows
        self._stream = stream or sys.stderr
        self._tally = Tally()
        self._reported = 0
        self._reported_s = 0.0
        self._ticker: Ticker | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Count the rows of finished jobs. Unreadable records are ignored: a run goes on."""
        try:
            event = getattr(record, "event", None)
            if event == "run_info":
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
        if self._tally.total or self._workflow.dryrun or self._workflow.touch:
            return
        for job in self._workflow.dag.needrun_jobs():
            for path in job.output:
                name = part_name(path)
                if rows := self._rows.get(name, 0):
                    self._tally.waiting[job.jobid] = RunningPart(name, rows, Path(path))
        self._tally.total = sum(part.rows for part in self._tally.waiting.values())
        self._tally.started_s = self._reported_s = time.monotonic()
        if self._tally.total:
            parts = counted(len(self._tally.waiting), "part")
            self._say(f"{self._tally.total:,} rows to make in {parts}")
            if isinstance(self._stream, Screen):
                self._ticker = Ticker(self._update, UPDATE_INTERVAL_S)

    def _finish(self, job: int) -> None:
        rows, tally, now_s = self._tally.finish(job), self._tally, time.monotonic()
        if not rows:
            return
        last = tally.done == tally.total
        if last:
            self._stop_ticker()
        due = (
            not isinstance(self._stream, Screen)
            and (tally.done - self._reported) * LINES >= tally.total
            and now_s - self._reported_s >= LINE_INTERVAL_S
        )
        if last or due:
            self._reported, self._reported_s = tally.done, now_s
            self._say(progress_line(tally.done, tally.total, now_s - tally.started_s))

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
        For example "12,000,000 of 45,000,000 rows (26 %), 3,900,000 rows/s, about 9 s left".
    """
    rows_per_s = done / max(elapsed_s, 1e-3)
    texts = [f"{done:,} of {total:,} rows ({100 * done // total} %)"]
    if done:
        texts.append(f"{float(f'{rows_per_s:.2g}'):,.0f} rows/s")
    if done == total:
        texts.append(f"{elapsed_s:.1f} s")
    return ", ".join(texts) + time_left(done, total, elapsed_s)


def time_left(done: int, total: int, elapsed_s: float) -> str:
    """The time left, as the end of a line: ", about 9 s left"; empty if unknown or too short.

    Args:
        done: Rows made so far [1].
        total: Rows to make [1].
        elapsed_s: Time taken for those that are made [s].
    """
    left_s = (total - done) * elapsed_s / done if done else 0.0
    return f", about {duration(left_s)} left" if left_s >= SHORTEST_LEFT_S else ""


def duration(seconds: float) -> str:
    """A duration in seconds, minutes or hours by its length: "42 s", "7 min", "3.5 h"."""
    minute, hour = 60, 3600
    if seconds < 2 * minute:
        return f"{seconds:.0f} s"
    return f"{seconds / minute:.0f} min" if seconds < 2 * hour else f"{seconds / hour:.1f} h"


def part_name(path: str | PurePath) -> str:
    """The part in a file: "a/part-00000" for results/tables/a/part-00000.parquet."""
    return "/".join(PurePath(path).with_suffix("").parts[-2:])
