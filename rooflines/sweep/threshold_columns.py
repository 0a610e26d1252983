"""Columns of thresholds, by sweeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflines.dictionary.columns import columns_of
from rooflines.sweep.operation_sweep import Sweep
from rooflines.sweep.step_sweep import ModelSweep
from rooflines.sweep.training_sweep import TrainingSweep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflines.dictionary.columns import Column
    from rooflines.sweep.checks import AnySweep


def threshold_columns(sweeps: Sequence[AnySweep], *, models: bool = False) -> tuple[Column, ...]:
    """Threshold columns for several sweeps, in order.

    Args:
        sweeps: The sweeps, all of one kind.
        models: True for whole models.
    """
    steps = [sweep for sweep in sweeps if isinstance(sweep, ModelSweep)]
    if models:
        return columns_of(
            "model-thresholds",
            new_tokens=any(step_sweep.new_tokens is not None for step_sweep in steps),
            training=any(isinstance(step_sweep, TrainingSweep) for step_sweep in steps),
        )
    operations = [sweep for sweep in sweeps if isinstance(sweep, Sweep)]
    dims = dict.fromkeys(dim for sweep in operations for dim in sweep.op.dims)
    return columns_of("thresholds", (*dims,), axes=any(sweep.has_axes for sweep in operations))
