"""Snakemake's side in a run: all that another version of Snakemake could break."""

from typing import Any, TypeAlias

Workflow: TypeAlias = Any
"""Snakemake's workflow object; Snakemake ships no types."""
