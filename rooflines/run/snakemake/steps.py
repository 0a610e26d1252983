"""Screen filter: Snakemake's steps for single jobs are hidden."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rooflines.run.snakemake import Workflow


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
    """Starts of engine messages about single jobs or files."""

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
