"""The smallest compute-bound batch of a step, and the largest batch within a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from rooflines.critical.along import Along
from rooflines.critical.saturation import MOST, saturated
from rooflines.critical.search import AT, first_in_rows
from rooflines.critical.solving import AHEAD, ROUNDING, ask_times, solved
from rooflines.model.resources import HANDED
from rooflines.model.times import Time
from rooflines.sweep.footprints import footprint_columns, most_sequences

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rooflines.critical.along import Pieces, Summand
    from rooflines.critical.solving import Names
    from rooflines.settings.model_sweeps import Targets
    from rooflines.sweep.axes import Axis
    from rooflines.sweep.steps import StepCase


def batch_thresholds(
    cases: Sequence[StepCase], points: Axis, targets: Targets | None
) -> Iterator[pl.DataFrame]:
    """Batches at every point of contexts and new tokens; with targets a row for each of these.

    Args:
        cases: Of one model and phase.
        points: T and S, with the extents that follow.
        targets: Times that a step may take.

    Yields:
        The columns of thresholds along B.
    """
    replicas = [case.split.dp for case in cases]
    along = Along(cases, [points], "B")
    along.put("#least", pl.Series(replicas, dtype=pl.Int64))
    along.put("#span", pl.Series([1] * len(cases), dtype=pl.Int64))
    names = ask_times(along, cases)
    summands = [] if targets is None else ask_target(along, cases, targets, names)
    for name, values in footprint_columns(cases).items():
        along.put(name, values)
    saturates = saturated(cases, [points], "B", replicas)
    start = 0
    for lines in along.frames():
        frame = solved(lines, names).with_columns(axis=pl.lit("B")).collect()
        frame = frame.with_columns(saturates.slice(start, frame.height), max_B_fit=most_sequences())
        start += frame.height
        if targets is None:
            yield frame
            continue
        each = pl.DataFrame({"target_s": targets.t_step_s}, schema={"target_s": pl.Float64})
        frame = frame.join(each, how="cross", maintain_order="left_right")
        yield frame.with_columns(
            largest_within(frame, along, summands), pl.lit(targets.time).alias("time")
        )


def ask_target(
    along: Along, cases: Sequence[StepCase], targets: Targets, names: Names
) -> list[Summand]:
    """Ask for the lines of the time that has to keep a target.

    Returns:
        The pieces of `t_lower_s`, or of `t_ops_s`, which is a sum over kernels.
    """
    if targets.time == "t_lower_s":
        return [(1, [[AHEAD], *([name] for each in names.values() for name in each)])]
    summands: list[Summand] = []
    for index, kernel in enumerate(cases[0].kernels):
        found = [case.kernel_times[index] for case in cases]
        pieces: Pieces = []
        for bound in found[0].by:
            times = [each.by[bound] for each in found]
            if bound == HANDED.bound:
                handed = (Time.of(each.activation) for each in found)
                times = [
                    Time.total([(1, time), (1, more)])
                    for time, more in zip(times, handed, strict=True)
                ]
            pieces += along.ask_time(f"{index}:{bound}", times)
        summands.append((kernel.count, pieces))
    return summands


def largest_within(frame: pl.DataFrame, along: Along, summands: Sequence[Summand]) -> pl.Series:
    """The largest batches whose step takes at most `target_s` [1].

    Returns:
        `max_B_latency`: 0 if no batch is as fast; null if the batch is `LARGEST_COUNT` or more.
    """
    over = along.at(pl.col(AT), summands) - pl.col("target_s") * (1.0 + ROUNDING)
    slow = first_in_rows(frame, over, pl.col("#least"), pl.lit(MOST))
    before = pl.when(slow > pl.col("#least")).then(slow - 1.0).otherwise(0.0)
    return frame.select(
        pl.when(slow < MOST).then(before).cast(pl.Int64).alias("max_B_latency")
    ).to_series()
