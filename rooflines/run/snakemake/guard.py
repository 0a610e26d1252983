"""Crash safety: verify outputs against their records, refuse a second run in a folder.

Installed as a Snakemake log handler, like the progress display. When Snakemake is about to check
files, stale outputs are forced; see `stale` and `lock`. Its state is in `.snakemake/rooflines`.
"""

from __future__ import annotations

import logging
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError
from rooflines.results.atomic import write_error
from rooflines.results.folders import record_config
from rooflines.results.records import RECORDS_FOLDER
from rooflines.run.lock import STATE, acquire
from rooflines.run.stale import (
    FileCache,
    StaleOutput,
    fingerprint,
    messages,
    remove_others,
    stale_outputs,
    temporary_outputs,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rooflines.run.outputs import Output
    from rooflines.run.snakemake import Workflow


class Guard(logging.Handler):
    """Snakemake log handler that guards a run's files.

    Args:
        workflow: Snakemake's workflow object.
        results: The results folder.
        planned: The plan's outputs by their path below `results`.
        config: The run's config file; None: not a single one.
    """

    def __init__(
        self, workflow: Workflow, results: Path, planned: Mapping[str, Output], config: Path | None
    ) -> None:
        super().__init__()
        self._workflow, self._results, self._planned = workflow, results, planned
        self._config = config
        require_writable(STATE)
        self._cache: FileCache | None = None
        self._outputs_of_job: dict[int, list[Path]] = {}

    @property
    def _makes_files(self) -> bool:
        """Test for a process that runs jobs: no dry run, no command that only reads."""
        workflow = self._workflow
        return workflow.executor_plugin is not None and not (workflow.dryrun or workflow.touch)

    def emit(self, record: logging.LogRecord) -> None:
        """Act before Snakemake looks at files, before the first job, and after each."""
        event = getattr(record, "event", None)
        if self._cache is None and self._workflow.dag is not None:
            self._cache = FileCache(STATE / "known")
            try:
                self._check(self._cache)
            except RooflinesError as error:
                sys.exit(str(error))
        elif event == "run_info" and self._makes_files and self._planned:
            self._begin()
        elif event == "job_finished" and self._cache and self._planned:
            outputs = self._outputs_of_job.pop(getattr(record, "job_id", -1), [])
            self._cache.add({str(path): fingerprint(self._results, path) for path in outputs})

    def _check(self, cache: FileCache) -> None:
        """Acquire the lock, and have stale outputs remade.

        Raises:
            RooflinesError: The run cannot start.
        """
        if self._workflow.executor_plugin is None or not self._planned:
            return
        if self._makes_files:
            acquire(STATE.absolute())
        stale = stale_outputs(self._results, self._planned, cache)
        would = "is" if self._makes_files else "would be"
        for line in messages(stale, f"it {would} made again"):
            _say(line)
        self._force(stale)
        if self._makes_files and (self._results / RECORDS_FOLDER).is_dir():
            record_config(self._results, self._config)  # also where nothing is to be made

    def _force(self, stale: Iterable[StaleOutput]) -> None:
        """Have stale outputs remade in this run: damaged ones are deleted, the others forced."""
        for output in stale:
            if self._makes_files and not output.other_config:
                _delete(output.path)
            self._workflow.dag.forcefiles.add(str(output.path))

    def _begin(self) -> None:
        """Before the first job: record the config, delete what earlier runs left."""
        # An importing workflow has outputs of its own.
        ours = {str(self._results / name) for name in self._planned}
        jobs = list(self._workflow.dag.needrun_jobs())
        self._outputs_of_job = {
            job.jobid: [Path(path) for path in job.output if str(path) in ours] for job in jobs
        }
        require_writable(self._results / RECORDS_FOLDER)
        record_config(self._results, self._config)
        for path in temporary_outputs(self._results, self._planned):
            _delete(path, missing_ok=True)
        remove_others(self._results, self._planned)


def _delete(path: Path, *, missing_ok: bool = False) -> None:
    """Delete a file, a link or a folder."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=missing_ok)
    else:
        path.unlink(missing_ok=missing_ok)


def require_writable(folder: Path) -> None:
    """End the run where a folder cannot be written: Snakemake would show a traceback.

    Raises:
        SystemExit: It cannot, or the disk is full; the message says what to do.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        sys.exit(str(write_error(folder, error) or error))


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
