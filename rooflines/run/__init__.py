"""A run: plan, jobs, crash safety, progress; the only room that knows Snakemake."""

from typing import Any, TypeAlias

Workflow: TypeAlias = Any
"""Snakemake's workflow object; Snakemake ships no types."""
