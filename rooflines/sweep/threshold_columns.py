"""Columns of thresholds, by sweeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflines.config.model_fields import LEVER_AXES
from rooflines.dictionary.columns import columns_of
from rooflines.sweep.collective_sweep import CollectiveSweep
from rooflines.sweep.kernel_sweep import KernelSweep
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
            engine=any(step_sweep.config.engine is not None for step_sweep in steps),
            levers=any({*step_sweep.config.thresholds} & {*LEVER_AXES} for step_sweep in steps),
        )
    operations = [sweep for sweep in sweeps if isinstance(sweep, Sweep)]
    kernels = [sweep for sweep in sweeps if isinstance(sweep, KernelSweep)]
    collectives = [sweep for sweep in sweeps if isinstance(sweep, CollectiveSweep)]
    dims = dict.fromkeys(dim for sweep in operations for dim in sweep.op.dims)
    letters = dict.fromkeys(letter for sweep in kernels for letter in sweep.letters)
    has_axes = any(sweep.has_axes for sweep in operations)
    has_axes = has_axes or any(sweep.has_axes for sweep in collectives)
    return columns_of("thresholds", (*(dims | letters),), axes=has_axes, kernels=bool(kernels))
