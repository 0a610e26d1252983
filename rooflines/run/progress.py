"""What a run says while it works: rows done of rows to do on the screen, and a log for every job.

Snakemake reports each job that begins or ends to its logger. A handler of ours listens there, knows how many rows each part of a table
has, and adds them up; Snakemake counts jobs, which says little where one job makes ten rows and the next ten million. A terminal
shows one line that is written over, with the parts in the making; a file gets few lines and no more.
"""

from __future__ import annotations

import logging
import re
import sys
import time
import traceback
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TextIO

from rooflines.basics.errors import RooflinesError
from rooflines.results.write_errors import unwritable
from rooflines.basics.text import counted
from rooflines.run.screen import Screen, Ticker, clear_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LINES = 10
"""At most about so many lines of progress in a file: one for every tenth of the rows."""

SECONDS_BETWEEN_LINES = 10.0
"""Lines in a file are at least so far apart [s]."""

SECONDS_BETWEEN_LOOKS = 1.0
"""How often the line on a terminal is written anew [s]."""

SECONDS_WORTH_TELLING = 2.0
"""A shorter rest of a run is not announced [s]."""

MOST_LOOKED_AT = 32
"""Of so many parts in the making the files are looked at; where more are made at once, finished parts alone are counted."""


@dataclass
class Making:
    """A part of a table that this run makes.

    Attributes:
        name: The part's, such as `square-matmul/part-00000`.
        rows: Its rows [1].
        path: Its file.
        began_s: When its job began, by the monotonic clock; None before that [s].
    """

    name: str
    rows: int
    path: Path
    began_s: float | None = None

    def rows_so_far(self, bytes_per_row: float) -> int:
        """The rows that are written, by the size of the half-written file; short of all of them [1]."""
        with suppress(OSError):
            halves = [
                half.stat().st_size for half in self.path.parent.glob(f".{self.path.name}.*.tmp")
            ]
            return min(int(max(halves, default=0) / bytes_per_row), self.rows * 99 // 100)
        return 0


@dataclass
class Tally:
    """The rows of a run: to make, made, and in the making.

    Attributes:
        waiting: The parts that are not finished, by the number of their job.
        total: Rows to make in this run [1].
        done: Rows of finished parts [1].
        started_s: When the run began, by the monotonic clock [s].
    """

    waiting: dict[int, Making] = field(default_factory=dict)
    total: int = 0
    done: int = 0
    started_s: float = 0.0
    _rows_weighed: int = 0
    _bytes_weighed: int = 0

    def begin(self, job: int) -> None:
        """Note that a job has begun, perhaps for the second time."""
        if job in self.waiting:
            self.waiting[job].began_s = time.monotonic()

    def fail(self, job: int) -> None:
        """Note that a job has ended without its part."""
        if job in self.waiting:
            self.waiting[job].began_s = None

    def finish(self, job: int) -> int:
        """Note that a part is finished; its rows, 0 for a job that makes none [1]."""
        part = self.waiting.pop(job, None)
        if part is None:
            return 0
        self.done += part.rows
        with suppress(OSError):
            self._bytes_weighed += part.path.stat().st_size
            self._rows_weighed += part.rows
        return part.rows

    def line(self, now_s: float) -> str:
        """One line: all rows, then the parts in the making, each with what is left of it.

        Args:
            now_s: The time, by the monotonic clock [s].
        """
        making = [part for part in list(self.waiting.values()) if part.began_s is not None]
        done, parts = self.done, []
        if self._bytes_weighed and len(making) <= MOST_LOOKED_AT:
            for part in making:
                rows = part.rows_so_far(self._bytes_weighed / self._rows_weighed)
                done += rows
                parts.append(
                    f"{part.name} {100 * rows // part.rows} %{time_left(rows, part.rows, now_s - (part.began_s or now_s))}"
                )
        else:
            parts = [f"{part.name} {duration(now_s - (part.began_s or now_s))}" for part in making]
        return "; ".join([progress_line(done, self.total, now_s - self.started_s), *parts])


class Progress(logging.Handler):
    """A handler of Snakemake's log that writes the rows done of the rows to do, and nothing else.

    Args:
        workflow: Snakemake's own workflow object; its graph says which parts this run makes.
        rows: Rows of each part, by its name (`square-matmul/part-00000`) [1].
        stream: Where the lines go; standard error by default. Where it is a `Screen`, one line is written over.
    """

    def __init__(
        self,
        workflow: Any,
        rows: Mapping[str, int],
        stream: Screen | TextIO | None = None,  # noqa: ANN401
    ) -> None:
        super().__init__()
        self._workflow = workflow
        self._rows = rows
        self._stream = stream or sys.stderr
        self._tally = Tally()
        self._told = 0
        self._told_s = 0.0
        self._ticker: Ticker | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Count the rows of a finished job. A record this cannot read is passed over: progress never stops a run."""
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
        except Exception:  # noqa: BLE001, S110 - whatever Snakemake may log one day, a count is not worth a run
            pass

    def close(self) -> None:
        """Take the line away that is written over."""
        if self._ticker:
            self._ticker.stop()
            self._ticker = None
        if isinstance(self._stream, Screen):
            self._stream.show("")
        super().close()

    def _start(self) -> None:
        if self._tally.total or self._workflow.dryrun or self._workflow.touch:
            return
        for job in self._workflow.dag.needrun_jobs():
            for path in job.output:
                if rows := self._rows.get(part_name(path), 0):
                    self._tally.waiting[job.jobid] = Making(part_name(path), rows, Path(path))
        self._tally.total = sum(part.rows for part in self._tally.waiting.values())
        self._tally.started_s = self._told_s = time.monotonic()
        if self._tally.total:
            self._say(
                f"{self._tally.total:,} rows to make in {counted(len(self._tally.waiting), 'part')}"
            )
            if isinstance(self._stream, Screen):
                self._ticker = Ticker(self._look, SECONDS_BETWEEN_LOOKS)

    def _finish(self, job: int) -> None:
        rows, tally, now_s = self._tally.finish(job), self._tally, time.monotonic()
        if not rows:
            return
        last = tally.done == tally.total
        if last and self._ticker:
            self._ticker.stop()
            self._ticker = None
        due = (
            tally.done - self._told
        ) * LINES >= tally.total and now_s - self._told_s >= SECONDS_BETWEEN_LINES
        if last or (due and not isinstance(self._stream, Screen)):
            self._told, self._told_s = tally.done, now_s
            self._say(progress_line(tally.done, tally.total, now_s - tally.started_s))

    def _look(self) -> None:
        with suppress(Exception):  # as above
            if isinstance(self._stream, Screen):
                self._stream.show(self._tally.line(time.monotonic()))

    def _say(self, line: str) -> None:
        self._stream.write(f"{line}\n")
        self._stream.flush()


class WithoutSteps(logging.Filter):
    """A filter of what Snakemake shows on the screen that leaves out the course of single jobs.

    Errors, the plan of the run and its end stay; so does everything in a dry run, which is read for its jobs. Snakemake's own log
    file has it all.

    Args:
        workflow: Snakemake's own workflow object, which knows whether a run is a dry run.
    """

    EVENTS = frozenset({"job_info", "job_started", "job_finished", "progress", "shellcmd"})
    MESSAGES = frozenset({"Select jobs to execute...", "Conda environments: ignored"})
    ENGINES = re.compile(
        r"Job \d+ has been submitted|(Storing in|Retrieving from) storage: |Finished (upload|retrieval)\.$|"
        r"(Removing local copy of storage file|Skipped removing non-empty directory)",
    )
    """What an engine says of each job or file, at the start of a message."""

    def __init__(self, workflow: Any) -> None:  # noqa: ANN401
        super().__init__()
        self._workflow = workflow

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is shown."""
        step = (
            getattr(record, "event", None) in self.EVENTS
            or record.msg in self.MESSAGES
            or self.ENGINES.match(str(record.msg))
        )
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
    parts = [f"{done:,} of {total:,} rows ({100 * done // total} %)"]
    if done:
        parts.append(f"{float(f'{rows_per_s:.2g}'):,.0f} rows/s")
    if done == total:
        parts.append(f"{elapsed_s:.1f} s")
    return ", ".join(parts) + time_left(done, total, elapsed_s)


def time_left(done: int, total: int, elapsed_s: float) -> str:
    """The time left, as the end of a line: ", about 9 s left"; nothing where it cannot be told, or is too short to be.

    Args:
        done: Rows made so far [1].
        total: Rows to make [1].
        elapsed_s: Time it took for those that are made [s].
    """
    left_s = (total - done) * elapsed_s / done if done else 0.0
    return f", about {duration(left_s)} left" if left_s >= SECONDS_WORTH_TELLING else ""


def duration(seconds: float) -> str:
    """A length of time in the unit one would say it in: "42 s", "7 min", "3.5 h"."""
    minute, hour = 60, 3600
    if seconds < 2 * minute:
        return f"{seconds:.0f} s"
    return f"{seconds / minute:.0f} min" if seconds < 2 * hour else f"{seconds / hour:.1f} h"


def part_name(path: str | PurePath) -> str:
    """The name of the part a table's file holds: results/tables/a/part-00000.parquet is "a/part-00000"."""
    return "/".join(PurePath(path).with_suffix("").parts[-2:])


@contextmanager
def job_log(path: str | Path, rows: int = 0) -> Iterator[None]:
    """Send what a job prints to its log, with its time and, where it fails, its traceback; the screen gets one line.

    Args:
        path: The log file; written anew.
        rows: Rows that the job makes, where that is what it does [1].

    Raises:
        SystemExit: Where the job fails, with the error as its message.
    """
    try:
        log = Path(path).open("w", encoding="utf-8")  # noqa: SIM115 - a disk that is full must not hide what the job says when it is closed
    except OSError as error:
        raise SystemExit(str(unwritable(path, error) or error)) from None
    try:
        with redirect_stdout(log), redirect_stderr(log):
            started_s = time.monotonic()
            yield
            took_s = time.monotonic() - started_s
            print(f"done in {took_s:.2f} s")
            if rows:
                print(progress_line(rows, rows, took_s))
    except RooflinesError as error:
        clear_line(sys.__stderr__)
        raise SystemExit(str(error)) from None
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the job's end and stands in its log
        with suppress(OSError):
            traceback.print_exc(file=log)
        clear_line(sys.__stderr__)
        raise SystemExit(f"{type(error).__name__}: {error}") from None
    finally:
        with suppress(OSError):
            log.close()
