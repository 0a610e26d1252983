"""Thresholds of sweeps as a frame, along every axis that their configs list."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, groupby, product
from typing import TYPE_CHECKING, Any

import polars as pl

from rooflines.dictionary.columns import (
    OUTCOMES,
    SPLIT_KEYS,
    STEP_LIMITS,
    STEP_OUTCOMES,
)
from rooflines.evaluation.compiler import key_columns
from rooflines.kinds.placed_kernels import EXPONENTIALS, VECTOR_BOUND
from rooflines.models.architecture import DECODE
from rooflines.solvers.chip_limit import chips_thresholds
from rooflines.solvers.context_limit import context_ceiling
from rooflines.solvers.critical_sizes import batch_thresholds, dimension_thresholds
from rooflines.solvers.fewest_chips import fewest_chips
from rooflines.solvers.kind_thresholds import collective_thresholds, kernel_thresholds
from rooflines.solvers.offload_levers import offload_thresholds
from rooflines.solvers.plateau import PLATEAU_COLUMN, growth_per_sequence, plateau_sizes
from rooflines.solvers.required_rates import rate_thresholds
from rooflines.solvers.serving_levers import lever_thresholds
from rooflines.solvers.training_levers import training_levers
from rooflines.solvers.training_limits import training_thresholds
from rooflines.sweep.axes import Axis
from rooflines.sweep.collective_sweep import CollectiveSweep
from rooflines.sweep.kind_sweep import KindSweep
from rooflines.sweep.operation_sweep import Sweep
from rooflines.sweep.pipelines import is_pipelined
from rooflines.sweep.step_sweep import ModelSweep
from rooflines.sweep.threshold_columns import threshold_columns
from rooflines.sweep.training_sweep import TrainingSweep
from rooflines.theory.resources import NON_MATH, RATES
from rooflines.theory.sharding import SHARDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rooflines.dictionary.columns import Column
    from rooflines.sweep.cases import Block
    from rooflines.sweep.checks import AnySweep
    from rooflines.sweep.step_sweep import StepCase

FLOAT_TYPES: Mapping[str, type[pl.DataType]] = {
    **dict.fromkeys(("target_s", "share", "critical_exact"), pl.Float64),
    **dict.fromkeys(("rule_of_thumb", "limit_intensity"), pl.Float64),
    **dict.fromkeys(("slowdown", "always_S", "apart_B", "servers", "gain"), pl.Float64),
}
"""Types of columns with a unit, where they are not Int64."""

TEXT_TYPES: Mapping[bool, Mapping[str, pl.Enum]] = {
    False: {
        "outcome": pl.Enum(OUTCOMES),
        "limit": pl.Enum([*(resource.bound for resource in NON_MATH), VECTOR_BOUND, EXPONENTIALS]),
    },
    True: {"outcome": pl.Enum(STEP_OUTCOMES), "limit": pl.Enum(STEP_LIMITS)},
}
"""Types of columns without a unit, where they are not Categorical: operations, whole models."""


def column_types(columns: Sequence[Column], *, models: bool) -> dict[str, Any]:
    """Types of threshold columns, by name."""
    return {
        column.name: FLOAT_TYPES.get(column.name, pl.Int64)
        if column.unit
        else TEXT_TYPES[models].get(column.name, pl.Categorical)
        for column in columns
    }


def all_thresholds(sweeps: Sequence[AnySweep], *, models: bool = False) -> pl.DataFrame:
    """Thresholds of several sweeps, concatenated; without sweeps no rows.

    A dimension that an operation lacks is null in its rows. Arguments as in `threshold_columns`.
    """
    types = column_types(threshold_columns(sweeps, models=models), models=models)
    frames = [pl.DataFrame(schema=types), *map(sweep_thresholds, sweeps)]
    return pl.concat(frames, how="diagonal").select(*types)


def sweep_thresholds(sweep: AnySweep) -> pl.DataFrame:
    """Thresholds of a sweep, along every axis in its config.

    Returns:
        The columns of `threshold_columns`, in order, chip by chip in the order of the config; a
        column that an axis lacks is null.
    """
    models = isinstance(sweep, ModelSweep)
    types = column_types(threshold_columns([sweep], models=models), models=models)
    frames = [pl.DataFrame(schema=types)]
    for frame in _frames_of(sweep):
        with_name = frame.with_columns(sweep=pl.lit(sweep.name))
        frames.append(
            with_name.select(
                (pl.col(name) if name in with_name.columns else pl.lit(None)).cast(kind).alias(name)
                for name, kind in types.items()
            )
        )
    rows = pl.concat(frames)
    rank = rows["chip"].cast(pl.Enum(sweep.config.chips)).to_physical()
    return rows if rank.is_sorted() else rows.sort(rank, maintain_order=True)


def _frames_of(sweep: AnySweep) -> Iterator[pl.DataFrame]:
    """Frames with a sweep's thresholds."""
    if isinstance(sweep, Sweep):
        return _operation_thresholds(sweep)
    if isinstance(sweep, CollectiveSweep):
        return chain.from_iterable(collective_thresholds(sweep) for _ in sweep.solved)
    if isinstance(sweep, KindSweep):
        return chain.from_iterable(kernel_thresholds(sweep, axis) for axis in sweep.solved)
    return _model_thresholds(sweep)


def _operation_thresholds(sweep: Sweep) -> Iterator[pl.DataFrame]:
    """Yield the thresholds of an operation along every axis, in slices."""
    for axis in sweep.solved:
        if axis == SHARDS:
            frames = chips_thresholds(sweep)
        elif axis in RATES:
            frames = rate_thresholds(sweep, RATES[axis])
        else:
            frames = dimension_thresholds(sweep, axis)
        for share, frame in frames:
            keys = {"axis": pl.lit(axis), "share": pl.lit(float(share))}
            yield frame.drop(axis, strict=False).with_columns(**keys)


# ------------------------------------------------------------ whole models

Row = tuple["StepCase", "dict[str, object]"]
"""A case, and its threshold's values by column."""


def _model_thresholds(sweep: ModelSweep) -> Iterator[pl.DataFrame]:
    """Yield the thresholds of whole models along every axis.

    Batches and chips are also limited by the pool of an engine, so that each has rows.
    """
    axes = sweep.config.thresholds
    if isinstance(sweep, TrainingSweep):
        rows: list[Row] = [*training_thresholds(sweep), *offload_thresholds(sweep)]
        rows += training_levers(sweep)
        if rows:
            yield _keyed_frame(rows)
        return
    groups = [
        [case for block in blocks for case in block.cases]
        for _, blocks in groupby(sweep.blocks, key=_model_and_phase)
    ]
    if "B" in axes or sweep.config.targets:
        for cases in groups:
            points = sweep.steps_of(cases[0].model, cases[0].phase)
            for of_split in _by_stages(cases):
                yield from batch_thresholds(of_split, points, sweep.config.targets)
    if "S" in axes:
        alike = [[*_once(cases)] for cases in groups]
        yield _keyed_frame([row for cases in alike for row in _context_rows(sweep, cases)])
    if "chips" in axes:
        solutions = fewest_chips(sweep.cases, sweep.batches, sweep.contexts)
        yield _keyed_frame(list(solutions)).drop(SPLIT_KEYS, strict=False)
    if levers := [*lever_thresholds(sweep.without_engines)]:
        yield _keyed_frame(levers)


def _once(cases: Iterable[StepCase]) -> Iterator[StepCase]:
    """Cases without engines, each once."""
    started = None
    for case in cases:
        started = started or case.started
        if started is None:
            yield case
        elif case.started is started:
            yield replace(case, started=None)


def _by_stages(cases: Sequence[StepCase]) -> Iterator[list[StepCase]]:
    """Cases without pipeline stages, then those of each split that has some."""
    by_split: dict[str, list[StepCase]] = {}
    for case in cases:
        split = case.split.name if is_pipelined(case) else ""
        by_split.setdefault(split, []).append(case)
    yield from sorted(by_split.values(), key=lambda alike: is_pipelined(alike[0]))


def _model_and_phase(block: Block[StepCase]) -> tuple[str, str]:
    """Model and phase, which cases with the same kernels share."""
    return block.cases[0].name, block.cases[0].phase


def _context_rows(sweep: ModelSweep, cases: Sequence[StepCase]) -> Iterator[Row]:
    """Yield the largest compute-bound context at every T, in decode: a prompt is a batch."""
    if cases[0].phase != DECODE:
        return
    new_tokens = sweep.new_tokens or (1,)
    sizes = plateau_sizes(
        cases, [Axis({"T": new_tokens})], "S", [1] * len(cases), growth_per_sequence
    )
    for (case, new), size in zip(product(cases, new_tokens), sizes, strict=True):
        solution = context_ceiling(case, new)._asdict()
        yield case, {"axis": "S", "T": new, **solution, PLATEAU_COLUMN: size}


def _keyed_frame(rows: Sequence[Row]) -> pl.DataFrame:
    """Frame of rows with their cases' keys."""
    columns = dict.fromkeys(name for _, row in rows for name in row)
    values = {name: [row.get(name) for _, row in rows] for name in columns}
    return pl.DataFrame({**key_columns([case for case, _ in rows]), **values})
