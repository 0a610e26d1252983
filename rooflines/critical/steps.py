"""Thresholds of sweeps of whole models as a frame, along every axis that their configs ask for."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.numbers import LARGEST_COUNT, exact
from rooflines.critical.batches import (
    CaseLines,
    critical_batches,
    largest_within,
    row_of,
    step_time,
)
from rooflines.critical.contexts import context_ceiling
from rooflines.critical.fewest import fewest_chips, most_sequences
from rooflines.critical.saturation import COLUMN
from rooflines.critical.step_saturation import CaseEstimates
from rooflines.model.step_columns import (
    OF_SPLIT,
    STEP_LIMITS,
    STEP_OUTCOMES,
    step_threshold_columns,
)
from rooflines.models.shape import DECODE
from rooflines.sweep.sheet import key_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.critical.contexts import Solution
    from rooflines.model.columns import Column
    from rooflines.sweep.step_sweep import ModelSweep
    from rooflines.sweep.steps import StepCase

Row = tuple["StepCase", "dict[str, object]"]
"""A case, and the values of a threshold by column."""


def step_thresholds(sweep: ModelSweep) -> pl.DataFrame:
    """The thresholds of a sweep of models, along every axis of its config.

    Returns:
        The columns of `step_threshold_columns`, in their order.
    """
    asked, targets = sweep.config.thresholds, sweep.config.targets
    cases = [case for block in sweep.blocks for case in block.cases]
    batches: list[Row] = []
    contexts: list[Row] = []
    lines: list[dict[str, float]] = []
    for case in cases if {"B", "S"}.intersection(asked) or targets else ():
        own, estimates = CaseLines(case), CaseEstimates.of(case)
        if "B" in asked or targets:
            for row, line in batch_rows(sweep, own, estimates):
                batches.append((case, row))
                lines.append(line)
        if "S" in asked and case.phase == DECODE:
            contexts.extend((case, row) for row in context_rows(sweep, own, estimates))
    if lines:
        solved = critical_batches(lines).iter_rows(named=True)
        for (_, row), found in zip(batches, solved, strict=True):
            row.update(found)
    rows = batches + contexts
    if "chips" in asked:
        for case, sizes, (solution, fit) in fewest_chips(cases, sweep.batches, sweep.contexts):
            row = {"axis": "chips", **sizes, **solved_as(solution), "max_B_fit": stored(fit)}
            rows.append((case, row))
    return frame_of(sweep, rows)


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


def batch_rows(
    sweep: ModelSweep, lines: CaseLines, estimates: CaseEstimates | None
) -> Iterator[tuple[dict[str, object], dict[str, float]]]:
    """What is known of the smallest compute-bound batch at every T and S, for every target.

    Yields:
        The columns that are no solution, and the lines to solve.
    """
    targets, case = sweep.config.targets, lines.case
    replicas = case.split.dp
    fits = {context: most_sequences(case, case.split, context) for context in sweep.contexts}
    for new, context in product(sweep.new_tokens or (1,), sweep.contexts):
        step = case.step(1, context, new)
        row: dict[str, object] = {
            "axis": "B",
            "T": new,
            "S": context,
            COLUMN: estimates and estimates.at(context, step.T).saturates(replicas),
            "max_B_fit": stored(fits[context]),
        }
        line = row_of(lines, context, step.T)
        if targets is None:
            yield row, line
            continue
        time = step_time(lines, targets.time, context, step.T)
        for target_s in targets.t_step_s:
            most = largest_within(time, exact(target_s), replicas)
            target = {"target_s": target_s, "time": targets.time, "max_B_latency": most}
            yield {**row, **target}, line


def context_rows(
    sweep: ModelSweep, lines: CaseLines, estimates: CaseEstimates | None
) -> Iterator[dict[str, object]]:
    """The largest context with a compute-bound batch at every T, of decode: a prompt is a batch."""
    for new in sweep.new_tokens or (1,):
        saturates = estimates and estimates.saturating_context(new)
        solution = solved_as(context_ceiling(lines, new))
        yield {"axis": "S", "T": new, **solution, COLUMN: saturates}


def solved_as(solution: Solution) -> dict[str, object]:
    """A solution by column."""
    return {
        "outcome": solution.outcome,
        "critical_exact": solution.exact,
        "critical": solution.whole,
        "limit": solution.limit,
    }


def stored(sequences: int | None) -> int | None:
    """A number of sequences as a table has it [1]."""
    return None if sequences is None or sequences > LARGEST_COUNT else sequences


def frame_of(sweep: ModelSweep, rows: Sequence[Row]) -> pl.DataFrame:
    """Thresholds with all their columns."""
    columns = step_threshold_columns(new_tokens=sweep.new_tokens is not None)
    names = [column.name for column in columns]
    if not rows:
        return pl.DataFrame(schema={name: KINDS.get(name, pl.Int64) for name in names})
    keys = key_columns([case for case, _ in rows])
    values = {
        name: pl.Series([row.get(name) for _, row in rows], dtype=KINDS.get(name, pl.Int64))
        for name in ("sweep", *names)
        if name not in keys
    }
    values["sweep"] = pl.Series([sweep.name], dtype=KINDS["sweep"]).new_from_index(0, len(rows))
    frame = pl.DataFrame({**keys, **values})
    return frame.with_columns(pl.when(pl.col("axis") != "chips").then(pl.col(*OF_SPLIT))).select(
        names
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
