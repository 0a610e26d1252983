"""Thresholds of sweeps of whole models as a frame, along every axis that their configs ask for."""

from __future__ import annotations

from itertools import groupby, product
from typing import TYPE_CHECKING

import polars as pl

from rooflines.critical.batches import batch_thresholds
from rooflines.critical.contexts import context_ceiling, saturated_contexts
from rooflines.critical.fewest import fewest_chips, stored
from rooflines.critical.saturation import COLUMN
from rooflines.model.step_columns import (
    OF_SPLIT,
    STEP_LIMITS,
    STEP_OUTCOMES,
    step_threshold_columns,
)
from rooflines.models.shape import DECODE
from rooflines.sweep.sheet import key_columns
from rooflines.sweep.steps import step_axis

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.critical.contexts import Solution
    from rooflines.model.columns import Column
    from rooflines.sweep.cases import Block
    from rooflines.sweep.step_sweep import ModelSweep
    from rooflines.sweep.steps import StepCase

Row = tuple["StepCase", "dict[str, object]"]
"""A case, and the values of a threshold by column."""


def step_thresholds(sweep: ModelSweep) -> pl.DataFrame:
    """The thresholds of a sweep of models, along every axis of its config.

    Returns:
        The columns of `step_threshold_columns`, in their order.
    """
    asked = sweep.config.thresholds
    groups = [
        [case for block in blocks for case in block.cases]
        for _, blocks in groupby(sweep.blocks, key=_of)
    ]
    frames: list[pl.DataFrame] = []
    if "B" in asked or sweep.config.targets:
        for cases in groups:
            shape, phase = cases[0].model.shape, cases[0].phase
            points = step_axis(shape, phase, sweep.contexts, sweep.new_tokens)
            frames += batch_thresholds(cases, points, sweep.config.targets)
    if "S" in asked:
        rows = [row for cases in groups for row in context_rows(sweep, cases)]
        frames.append(frame_of(rows))
    if "chips" in asked:
        rows = []
        cases = [case for group in groups for case in group]
        for case, sizes, (solution, fit) in fewest_chips(cases, sweep.batches, sweep.contexts):
            row = {"axis": "chips", **sizes, **solved_as(solution), "max_B_fit": stored(fit)}
            rows.append((case, row))
        frames.append(frame_of(rows))
    return pl.concat([in_step_form(frame, sweep) for frame in (*frames, pl.DataFrame())])


def all_step_thresholds(sweeps: Sequence[ModelSweep]) -> pl.DataFrame:
    """The thresholds of several sweeps of models, concatenated; without sweeps none."""
    order = [column.name for column in all_step_columns(sweeps)]
    if not sweeps:
        return pl.DataFrame(schema={name: KINDS.get(name, pl.Int64) for name in order})
    frames = [step_thresholds(sweep) for sweep in sweeps]
    return pl.concat(frames, how="diagonal").select(order)


def all_step_columns(sweeps: Sequence[ModelSweep]) -> tuple[Column, ...]:
    """The columns of the thresholds of several sweeps of models, in order."""
    return step_threshold_columns(new_tokens=any(sweep.new_tokens is not None for sweep in sweeps))


def _of(block: Block[StepCase]) -> tuple[str, str]:
    """Model and phase: what cases with the same kernels share."""
    return block.cases[0].name, block.cases[0].phase


def context_rows(sweep: ModelSweep, cases: Sequence[StepCase]) -> Iterator[Row]:
    """The largest context with a compute-bound batch at every T, of decode: a prompt is a batch."""
    if cases[0].phase != DECODE:
        return
    new_tokens = sweep.new_tokens or (1,)
    known = [case for case in cases if None not in case.kernel_estimates]
    sizes = saturated_contexts(known, new_tokens).to_list() if known else []
    saturates = dict(zip(product(known, new_tokens), sizes, strict=True))
    for case, new in product(cases, new_tokens):
        solution = solved_as(context_ceiling(case, new))
        yield case, {"axis": "S", "T": new, **solution, COLUMN: saturates.get((case, new))}


def solved_as(solution: Solution) -> dict[str, object]:
    """A solution by column."""
    return {
        "outcome": solution.outcome,
        "critical_exact": solution.exact,
        "critical": solution.whole,
        "limit": solution.limit,
    }


def frame_of(rows: Sequence[Row]) -> pl.DataFrame:
    """Rows with the keys of their cases."""
    columns = dict.fromkeys(name for _, row in rows for name in row)
    values = {
        name: pl.Series([row.get(name) for _, row in rows], dtype=KINDS.get(name, pl.Int64))
        for name in columns
    }
    return pl.DataFrame({**key_columns([case for case, _ in rows]), **values})


def in_step_form(frame: pl.DataFrame, sweep: ModelSweep) -> pl.DataFrame:
    """All columns of the thresholds, in their order and types; what the frame lacks is null."""
    columns = step_threshold_columns(new_tokens=sweep.new_tokens is not None)
    kinds = {column.name: KINDS.get(column.name, pl.Int64) for column in columns}
    frame = frame.with_columns(sweep=pl.lit(sweep.name, dtype=pl.Categorical))
    present = [
        (pl.col(name) if name in frame.columns else pl.lit(None)).cast(kind).alias(name)
        for name, kind in kinds.items()
    ]
    return frame.select(present).with_columns(
        pl.when(pl.col("axis") != "chips").then(pl.col(*OF_SPLIT))
    )


KINDS: Mapping[str, pl.DataType | type[pl.DataType]] = {
    **dict.fromkeys(
        ("model", "phase", "chip", "memory", "network", "dtypes", "split"), pl.Categorical
    ),
    "sweep": pl.Categorical,
    "axis": pl.Categorical,
    "target_s": pl.Float64,
    "time": pl.Categorical,
    "outcome": pl.Enum(STEP_OUTCOMES),
    "critical_exact": pl.Float64,
    "limit": pl.Enum(STEP_LIMITS),
}
"""Types of columns that are not Int64."""
