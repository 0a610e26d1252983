"""Thresholds of sweeps of whole models as a frame, along every axis that their configs ask for."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from rooflines.basics.errors import RooflinesError
from rooflines.basics.numbers import LARGEST_COUNT, exact
from rooflines.catalogue.forms import checked
from rooflines.catalogue.unsupported import not_joined
from rooflines.model.columns import FOUND, NEVER, UNKNOWN
from rooflines.model.network import BETWEEN, most_chips
from rooflines.model.step_columns import (
    CAPACITY_UNKNOWN,
    HEADS,
    OF_SPLIT,
    STEP_KEYS,
    STEP_LIMITS,
    STEP_OUTCOMES,
    step_threshold_columns,
)
from rooflines.models.footprint import max_batch
from rooflines.models.shape import DECODE
from rooflines.models.split import Split
from rooflines.serving.calibrated_lines import CalibratedLines
from rooflines.serving.calibrated_solving import context_ceiling_estimate, critical_batch_estimate
from rooflines.serving.lines import CaseLines
from rooflines.serving.solving import (
    NETWORK,
    Solution,
    context_ceiling,
    critical_batch,
    largest_within,
)
from rooflines.serving.support import old_blocks
from rooflines.sweep.sheet import key_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.model.columns import Column
    from rooflines.serving.case import Case
    from rooflines.sweep.step_sweep import ModelSweep


class Row(NamedTuple):
    """A threshold.

    Attributes:
        case: Whose it is.
        axis: B, S or chips.
        sizes: The sizes that are fixed [1].
        solution: What is found.
        estimate: The same by estimate; None without a calibration of every kernel.
        target_s: A time of a step, as it was written [s].
        fit: Most sequences that fit [1].
        latency: Most sequences whose step keeps the target [1].
    """

    case: Case
    axis: str
    sizes: Mapping[str, int]
    solution: Solution
    estimate: Solution | None = None
    target_s: float | None = None
    fit: int | None = None
    latency: int | None = None


class CaseTimes(NamedTuple):
    """The times of a case along B.

    Attributes:
        nominal: Its nominal times.
        calibrated: The pieces of its estimates; None without a calibration of every kernel.
    """

    nominal: CaseLines
    calibrated: CalibratedLines | None


def step_thresholds(sweep: ModelSweep) -> pl.DataFrame:
    """The thresholds of a sweep of models, along every axis of its config.

    Returns:
        The columns of `step_threshold_columns`, in their order.
    """
    asked, targets = sweep.config.thresholds, sweep.config.targets
    batches: list[Row] = []
    contexts: list[Row] = []
    for case in cases_of(sweep) if {"B", "S"}.intersection(asked) or targets else ():
        times = CaseTimes(CaseLines(case), CalibratedLines.of(case))
        if "B" in asked or targets:
            batches.extend(batches_of(sweep, times))
        if "S" in asked and case.phase == DECODE:
            contexts.extend(contexts_of(sweep, times))
    rows = batches + contexts
    if "chips" in asked:
        rows.extend(chips(sweep))
    time = None if targets is None else targets.time
    return frame_of(sweep.name, rows, time, new_tokens=sweep.new_tokens is not None)


def all_step_thresholds(sweeps: Sequence[ModelSweep]) -> pl.DataFrame:
    """The thresholds of several sweeps of models, concatenated; without sweeps none."""
    columns = all_step_columns(sweeps)
    frames = [step_thresholds(sweep) for sweep in sweeps] or [frame_of("", ())]
    return pl.concat(frames, how="diagonal").select(column.name for column in columns)


def all_step_columns(sweeps: Sequence[ModelSweep]) -> tuple[Column, ...]:
    """The columns of the thresholds of several sweeps of models, in order."""
    return step_threshold_columns(new_tokens=any(sweep.new_tokens is not None for sweep in sweeps))


def batches_of(sweep: ModelSweep, times: CaseTimes) -> Iterator[Row]:
    """The smallest compute-bound batch at every T and S, for every target."""
    targets = sweep.config.targets
    wanted = [None] if targets is None else targets.t_step_s
    time = "" if targets is None else targets.time
    lines, calibrated = times
    case, replicas = lines.case, lines.case.split.dp
    fits = {context: fit(case, case.split, context) for context in sweep.contexts}
    for new, context in product(sweep.new_tokens or (1,), sweep.contexts):
        step, estimate = lines.at(context, new), None
        if calibrated is not None:
            estimate = critical_batch_estimate(calibrated.at(context, new), replicas)
        row = Row(
            case,
            "B",
            {"T": new, "S": context},
            critical_batch(step, replicas),
            estimate,
            fit=fits[context],
        )
        for target_s in wanted:
            latency = None
            if target_s is not None:
                latency = largest_within(step, exact(target_s) * lines.per_s, time, replicas)
            yield row._replace(target_s=target_s, latency=latency)


def contexts_of(sweep: ModelSweep, times: CaseTimes) -> Iterator[Row]:
    """The largest context with a compute-bound batch at every T, of decode: a prompt is a batch."""
    lines, calibrated = times
    for new in sweep.new_tokens or (1,):
        estimate = None if calibrated is None else context_ceiling_estimate(calibrated, new)
        yield Row(lines.case, "S", {"T": new}, context_ceiling(lines, new), estimate)


def chips(sweep: ModelSweep) -> Iterator[Row]:
    """The fewest chips that hold a model and its caches, at every B and S, of all splits."""
    alike: dict[tuple[str | None, ...], Case] = {}
    for case in cases_of(sweep):
        keys = (case.name, case.phase, case.chip, case.memory, case.network, case.dtypes.label)
        alike.setdefault(keys, case)
    for case in alike.values():
        tried, beyond = splits_tried(case)
        fits = {
            context: [(split.shards, fit(case, split, context)) for split in tried]
            for context in sweep.contexts
        }
        for batch, context in product(sweep.batches, sweep.contexts):
            sizes = {"B": batch, "S": context}
            yield fewest(case, sizes, fits[context], beyond)


def fewest(
    case: Case, sizes: Mapping[str, int], fits: list[tuple[int, int | None]], beyond: Solution
) -> Row:
    """The first number of chips on which a batch fits, of those tried."""
    for number, sequences in fits:
        if sequences is None:
            return Row(case, "chips", sizes, Solution(CAPACITY_UNKNOWN))
        if sequences >= sizes["B"]:
            return Row(case, "chips", sizes, Solution(FOUND, whole=number), fit=sequences)
    return Row(case, "chips", sizes, beyond)


def splits_tried(case: Case) -> tuple[list[Split], Solution]:
    """Tensor parallelism over 1, 2, 4, ... chips, and what the solution is if none is enough."""
    names, links = (case.network or "").split(BETWEEN), case.sharing.links
    published = not links or most_chips(links)[1]
    found: list[Split] = []
    while True:
        chips = 2 ** len(found)
        split = checked(Split, {"tp": chips})
        try:
            split.check(case.model.shape, case.sharing.cache_split)
        except RooflinesError:
            return found, Solution(NEVER, limit=HEADS)
        if chips > 1 and (not links or not_joined(names, links, split.axes)):
            return found, Solution(NEVER if published else UNKNOWN, limit=NETWORK)
        found.append(split)


def fit(case: Case, split: Split, context: int) -> int | None:
    """The most sequences whose caches fit beside the weights [1]; None: capacity unknown."""
    capacity, sharing = case.machine.level.capacity_bytes, case.sharing
    if capacity is None:
        return None
    shape = case.model.shape
    cache_split = sharing.cache_split
    return max_batch(shape, capacity, context, sharing.bits, split, cache_split=cache_split)


def cases_of(sweep: ModelSweep) -> Iterator[Case]:
    """The cases that chips support, in order."""
    for block in old_blocks(sweep):
        yield from block.cases


def frame_of(
    sweep: str, rows: Sequence[Row], time: str | None = None, *, new_tokens: bool = False
) -> pl.DataFrame:
    """Thresholds with all their columns.

    Args:
        sweep: The sweep's name.
        rows: The thresholds.
        time: Which time of a step must keep the targets.
        new_tokens: Whether its grid has T.
    """
    solutions = [row.solution for row in rows]
    estimates = [row.estimate for row in rows]
    values: dict[str, list[object]] = {
        "sweep": [sweep] * len(rows),
        "axis": [row.axis for row in rows],
        **{letter: [row.sizes.get(letter) for row in rows] for letter in ("B", "T", "S")},
        "target_s": [row.target_s for row in rows],
        "time": [time if row.target_s is not None else None for row in rows],
        "outcome": [solution.outcome for solution in solutions],
        "critical_exact": [solution.exact for solution in solutions],
        "critical": [solution.whole for solution in solutions],
        "critical_estimate": [each and each.whole for each in estimates],
        "outcome_estimate": [each and each.outcome for each in estimates],
        "limit": [solution.limit for solution in solutions],
        "max_B_fit": [
            None if row.fit is None or row.fit > LARGEST_COUNT else row.fit for row in rows
        ],
        "max_B_latency": [row.latency for row in rows],
    }
    data = {
        name: pl.Series(column, dtype=KINDS.get(name, pl.Int64)) for name, column in values.items()
    }
    keys = key_columns([row.case for row in rows]) or {
        key.name: pl.Series([], dtype=pl.Int64 if key.unit else pl.Categorical) for key in STEP_KEYS
    }
    frame = pl.DataFrame({**keys, **data})
    columns = step_threshold_columns(new_tokens=new_tokens)
    return frame.with_columns(pl.when(pl.col("axis") != "chips").then(pl.col(*OF_SPLIT))).select(
        column.name for column in columns
    )


KINDS: Mapping[str, pl.DataType | type[pl.DataType]] = {
    "sweep": pl.Categorical,
    "axis": pl.Categorical,
    "target_s": pl.Float64,
    "time": pl.Categorical,
    "outcome": pl.Enum(STEP_OUTCOMES),
    "critical_exact": pl.Float64,
    "outcome_estimate": pl.Enum(STEP_OUTCOMES),
    "limit": pl.Enum(STEP_LIMITS),
}
"""Types of columns that are not Int64, besides the keys."""
