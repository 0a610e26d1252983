"""All that knows Snakemake: the plan of a run, its jobs, crash safety, progress, logs, storage."""

from typing import Any, TypeAlias

Workflow: TypeAlias = Any
"""Snakemake's workflow object; Snakemake ships no types."""
