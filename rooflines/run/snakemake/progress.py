"""Run progress: rows done, total and rate, then the jobs that read them.

Snakemake counts jobs, which says little where one job makes ten rows and the next ten million. A
handler of its log counts the rows of finished parts instead.
"""

from __future__ import annotations

import logging
import sys
import time
from pathlib import PurePath
from typing import TYPE_CHECKING, TextIO

from rooflines.basics.text import counted

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from rooflines.run.snakemake import Workflow

LINES = 10
"""About this many lines are written: one for each tenth of the rows, then of the jobs [1]."""

LINE_INTERVAL_S = 3.0
"""Least time between two lines; rows that are made sooner get no line of their own [s]."""

MAX_LEVELS = 3
"""Outputs are at most this many levels below the results [1]."""


class Progress(logging.Handler):
    """Snakemake log handler that writes rows done over rows to make.

    Args:
        workflow: Snakemake's workflow object; its graph has the parts that this run makes.
        rows: Rows by output path below the results; 0 for all but parts [1].
        stream: Where the lines go; standard error by default.
    """

    def __init__(
        self,
        workflow: Workflow,
        rows: Mapping[str, int],
        stream: TextIO | None = None,
    ) -> None:
        super().__init__()
        self._workflow, self._rows = workflow, rows
        self._stream = stream or sys.stderr
        self._waiting: dict[int, int] = {}  # rows by job
        self._jobs = self._total = self._done = 0
        self._started_s = self._reported_s = self._reported = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        """Count the rows of finished jobs. Unreadable records are ignored: a run goes on."""
        try:
            event = getattr(record, "event", None)
            if event == "run_info":
                self._start()
            elif event == "job_finished":
                self._finish(getattr(record, "job_id", -1))
        except Exception:  # noqa: BLE001, S110 - a later Snakemake may log anything
            pass

    def _start(self) -> None:
        """Note the jobs of the run, and how many rows they make."""
        if self._waiting or self._workflow.dryrun or self._workflow.touch:
            return
        for job in self._workflow.dag.needrun_jobs():
            named = [name for path in job.output if (name := output_at(path, self._rows))]
            if named:
                self._waiting[job.jobid] = self._rows[named[0]]
        self._jobs, self._total = len(self._waiting), sum(self._waiting.values())
        self._started_s = self._reported_s = time.monotonic()
        if self._total:
            parts = counted(sum(rows > 0 for rows in self._waiting.values()), "part")
            self._say(f"{self._total:,} rows to make in {parts}")

    def _finish(self, job: int) -> None:
        """Count a job, and write a line if one is due."""
        rows, now_s = self._waiting.pop(job, 0), time.monotonic()
        self._done += rows
        jobs, making = self._jobs - len(self._waiting), self._done < self._total
        share = self._done / self._total if making else jobs / max(self._jobs, 1)
        last = rows > 0 and not making
        soon = now_s - (self._started_s if last else self._reported_s) < LINE_INTERVAL_S
        if soon or not (last or (share - self._reported) * LINES >= 1):
            return
        if making or last:
            self._say(progress_line(self._done, self._total, now_s - self._started_s))
        elif self._waiting:
            self._say(f"{jobs:,} of {self._jobs:,} jobs")
        self._reported, self._reported_s = share, now_s

    def _say(self, line: str) -> None:
        self._stream.write(f"{line}\n")
        self._stream.flush()


def progress_line(done: int, total: int, elapsed_s: float) -> str:
    """Progress line.

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


def output_at(path: str | PurePath, outputs: Container[str]) -> str | None:
    """The output of a job below the results: "charts/chips" for results/charts/chips; or None."""
    parts = PurePath(path).parts
    names = ("/".join(parts[-count:]) for count in range(min(len(parts), MAX_LEVELS), 0, -1))
    return next((name for name in names if name in outputs), None)
