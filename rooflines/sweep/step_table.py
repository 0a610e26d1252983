"""The tables of a sweep of models, of steps and of kernels: what they store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError
from rooflines.model.step_columns import KERNEL_METRICS, STEP_METRICS
from rooflines.sweep.rows import KernelTable, StepTable
from rooflines.sweep.table import chosen

if TYPE_CHECKING:
    import polars as pl

    from rooflines.model.columns import Column
    from rooflines.sweep.step_sweep import ModelSweep


def model_table(sweep: ModelSweep) -> pl.LazyFrame:
    """The rows of a sweep's table, not yet computed."""
    return StepTable(sweep).frame().select(column.name for column in stored_step_columns(sweep))


def layer_table(sweep: ModelSweep) -> pl.LazyFrame:
    """The rows of a sweep's table of kernels, not yet computed.

    Raises:
        RooflinesError: It is a sweep of requests.
    """
    if sweep.config.requests:
        problem = "asks for requests, and a row of these is of many steps"
        raise RooflinesError(
            f"model-sweeps.{sweep.name}", problem, "use a sweep with S in its grid"
        )
    return KernelTable(sweep).frame().select(column.name for column in stored_layer_columns(sweep))


def stored_step_columns(sweep: ModelSweep) -> list[Column]:
    """The columns of a sweep's table: keys always, metrics as its config chooses."""
    return chosen(sweep.columns, STEP_METRICS, sweep.config.columns)


def stored_layer_columns(sweep: ModelSweep) -> list[Column]:
    """Those of its table of kernels."""
    return chosen(sweep.layer_columns, (*STEP_METRICS, *KERNEL_METRICS), sweep.config.columns)
