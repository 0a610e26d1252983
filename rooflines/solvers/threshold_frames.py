"""Thresholds of sweeps as a frame, along every axis that their configs ask for."""

from __future__ import annotations

from itertools import groupby, product
from typing import TYPE_CHECKING, Any

import polars as pl

from rooflines.dictionary.columns import (
    OF_SPLIT,
    OUTCOMES,
    STEP_LIMITS,
    STEP_OUTCOMES,
    columns_of,
)
from rooflines.evaluation.compiler import key_columns
from rooflines.models.architecture import DECODE
from rooflines.solvers.chip_limit import chips_thresholds
from rooflines.solvers.context_limit import context_ceiling
from rooflines.solvers.critical_sizes import batch_thresholds, dimension_thresholds
from rooflines.solvers.fewest_chips import fewest_chips
from rooflines.solvers.plateau import COLUMN, per_sequence, saturated
from rooflines.solvers.required_rates import rate_thresholds
from rooflines.solvers.training_limits import training_thresholds
from rooflines.sweep.axes import Axis
from rooflines.sweep.operation_sweep import Sweep
from rooflines.sweep.step_sweep import ModelSweep
from rooflines.sweep.training_sweep import TrainingSweep
from rooflines.theory.resources import OTHERS, RATES
from rooflines.theory.sharding import SHARDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.dictionary.columns import Column
    from rooflines.sweep.cases import Block
    from rooflines.sweep.checks import AnySweep
    from rooflines.sweep.step_sweep import StepCase

NUMBERS: Mapping[str, type[pl.DataType]] = {
    **dict.fromkeys(("target_s", "share", "critical_exact"), pl.Float64),
    **dict.fromkeys(("rule_of_thumb", "limit_intensity"), pl.Float64),
}
"""Types of columns with a unit that are not Int64."""

LABELS: Mapping[bool, Mapping[str, pl.Enum]] = {
    False: {
        "outcome": pl.Enum(OUTCOMES),
        "limit": pl.Enum([resource.bound for resource in OTHERS]),
    },
    True: {"outcome": pl.Enum(STEP_OUTCOMES), "limit": pl.Enum(STEP_LIMITS)},
}
"""Types of columns without a unit that are not Categorical, of operations and of whole models."""


def types_of(columns: Sequence[Column], *, models: bool) -> dict[str, Any]:
    """The types of columns of thresholds, by name."""
    return {
        column.name: NUMBERS.get(column.name, pl.Int64)
        if column.unit
        else LABELS[models].get(column.name, pl.Categorical)
        for column in columns
    }


def all_columns(sweeps: Sequence[AnySweep], *, models: bool = False) -> tuple[Column, ...]:
    """The columns of the thresholds of several sweeps, in order.

    Args:
        sweeps: The sweeps, all of one kind.
        models: Whether they are of whole models.
    """
    steps = [sweep for sweep in sweeps if isinstance(sweep, ModelSweep)]
    if models:
        return columns_of(
            "model-thresholds",
            new_tokens=any(each.new_tokens is not None for each in steps),
            training=any(isinstance(each, TrainingSweep) for each in steps),
        )
    operations = [sweep for sweep in sweeps if isinstance(sweep, Sweep)]
    dims = dict.fromkeys(dim for sweep in operations for dim in sweep.op.dims)
    return columns_of("thresholds", (*dims,), axes=any(sweep.has_axes for sweep in operations))


def all_thresholds(sweeps: Sequence[AnySweep], *, models: bool = False) -> pl.DataFrame:
    """The thresholds of several sweeps, concatenated; without sweeps none.

    A dimension that an operation lacks is null in its rows. Arguments as of `all_columns`.
    """
    types = types_of(all_columns(sweeps, models=models), models=models)
    frames = [pl.DataFrame(schema=types), *map(sweep_thresholds, sweeps)]
    return pl.concat(frames, how="diagonal").select(*types)


def sweep_thresholds(sweep: AnySweep) -> pl.DataFrame:
    """The thresholds of a sweep, along every axis of its config.

    Returns:
        The columns of `all_columns`, in their order; one that an axis lacks is null.
    """
    models = isinstance(sweep, ModelSweep)
    types = types_of(all_columns([sweep], models=models), models=models)
    frames = [pl.DataFrame(schema=types)]
    for frame in _of_operation(sweep) if isinstance(sweep, Sweep) else _of_steps(sweep):
        named = frame.with_columns(sweep=pl.lit(sweep.name))
        frames.append(
            named.select(
                (pl.col(name) if name in named.columns else pl.lit(None)).cast(kind).alias(name)
                for name, kind in types.items()
            )
        )
    return pl.concat(frames)


def _of_operation(sweep: Sweep) -> Iterator[pl.DataFrame]:
    """The thresholds of an operation along every axis, in slices."""
    for axis in sweep.solved:
        if axis == SHARDS:
            found = chips_thresholds(sweep)
        elif axis in RATES:
            found = rate_thresholds(sweep, RATES[axis])
        else:
            found = dimension_thresholds(sweep, axis)
        for share, frame in found:
            about = {"axis": pl.lit(axis), "share": pl.lit(float(share))}
            yield frame.drop(axis, strict=False).with_columns(**about)


# ------------------------------------------------------------ whole models

Row = tuple["StepCase", "dict[str, object]"]
"""A case, and the values of a threshold by column."""


def _of_steps(sweep: ModelSweep) -> Iterator[pl.DataFrame]:
    """The thresholds of whole models along every axis."""
    asked = sweep.config.thresholds
    if isinstance(sweep, TrainingSweep):
        if rows := list(training_thresholds(sweep)):
            yield _frame_of(rows)
        return
    groups = [
        [case for block in blocks for case in block.cases]
        for _, blocks in groupby(sweep.blocks, key=_of)
    ]
    if "B" in asked or sweep.config.targets:
        for cases in groups:
            points = sweep.steps_of(cases[0].model, cases[0].phase)
            yield from batch_thresholds(cases, points, sweep.config.targets)
    if "S" in asked:
        yield _frame_of([row for cases in groups for row in _context_rows(sweep, cases)])
    if "chips" in asked:
        found = fewest_chips(sweep.cases, sweep.batches, sweep.contexts)
        yield _frame_of(list(found)).drop(OF_SPLIT, strict=False)


def _of(block: Block[StepCase]) -> tuple[str, str]:
    """Model and phase: what cases with the same kernels share."""
    return block.cases[0].name, block.cases[0].phase


def _context_rows(sweep: ModelSweep, cases: Sequence[StepCase]) -> Iterator[Row]:
    """The largest context with a compute-bound batch at every T, of decode: a prompt is a batch."""
    if cases[0].phase != DECODE:
        return
    new_tokens = sweep.new_tokens or (1,)
    sizes = saturated(cases, [Axis({"T": new_tokens})], "S", [1] * len(cases), per_sequence)
    for (case, new), size in zip(product(cases, new_tokens), sizes, strict=True):
        solution = context_ceiling(case, new)._asdict()
        yield case, {"axis": "S", "T": new, **solution, COLUMN: size}


def _frame_of(rows: Sequence[Row]) -> pl.DataFrame:
    """Rows with the keys of their cases."""
    columns = dict.fromkeys(name for _, row in rows for name in row)
    values = {name: [row.get(name) for _, row in rows] for name in columns}
    return pl.DataFrame({**key_columns([case for case, _ in rows]), **values})
