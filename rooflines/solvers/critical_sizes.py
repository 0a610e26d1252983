"""Critical sizes: the smallest compute-bound size along a dimension, or along a step's batch.

Every work is affine in every single extent, a size or the number of its tiles; so is every time,
but for the latency of a collective, which is a second, constant line. For a step also the largest
batch within a target time.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.expressions import quotient
from rooflines.evaluation.engine_columns import held_sequences, requests_held
from rooflines.evaluation.footprints import footprint_columns, max_sequences
from rooflines.models.architecture import DECODE
from rooflines.solvers.crossover import MATH_LINE, ROUNDING, WHOLE_PEAK, add_times, with_thresholds
from rooflines.solvers.first_integer import TRIAL, first_integers
from rooflines.solvers.plateau import MAX_PLATEAU_SIZE, add_estimate, plateau_sizes
from rooflines.solvers.size_axis import AxisLines
from rooflines.sweep.pipelines import in_batches, is_pipelined, token_time
from rooflines.sweep.step_sweep import BatchedCase
from rooflines.theory.resources import MATH, MEMORY, NON_MATH, RESOURCES
from rooflines.theory.times import Times

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rooflines.config.model_fields import Targets
    from rooflines.solvers.size_axis import Summand
    from rooflines.sweep.axes import Axis
    from rooflines.sweep.cases import Case
    from rooflines.sweep.operation_sweep import OperationCase, Sweep
    from rooflines.sweep.step_sweep import StepCase
    from rooflines.theory.poly import Poly

TIMED = "#timed"
"""Column: the time of a target exists; an estimate does with a calibration alone."""


class SizeThresholds:
    """Thresholds of cases along a size.

    Args:
        cases: The cases.
        axes: The other sizes, slowest first; cases are slower than all.
        size: The size.
        min_sizes: Smallest size, by case [1].
        spans: Elements that count as one, by case [1].
        works: Works whose lines are added, too.

    Attributes:
        axis_lines: The times along the size.
        names: The names of their lines.
    """

    def __init__(  # noqa: PLR0913, PLR0917, what thresholds depend on
        self,
        cases: Sequence[Case],
        axes: Sequence[Axis],
        size: str,
        min_sizes: Sequence[int],
        spans: Sequence[int],
        works: Sequence[str] = (),
    ) -> None:
        self.axis_lines = AxisLines(cases, axes, size, spans)
        self.axis_lines.compiler.put("#min_size", pl.Series(min_sizes, dtype=pl.Int64))
        self.axis_lines.compiler.put("#span", pl.Series(spans, dtype=pl.Int64))
        if works:
            self.axis_lines.add_lines({name: [case.work(name) for case in cases] for name in works})
        self.names = add_times(self.axis_lines, cases)
        self._plateaus = plateau_sizes(cases, axes, size, min_sizes)

    def frames(self, share: Fraction = WHOLE_PEAK) -> Iterator[pl.DataFrame]:
        """Yield the thresholds for a share of the attainable peak, in slices."""
        start = 0
        for frame in self.axis_lines.frames():
            thresholds = with_thresholds(frame, self.names, share).collect()
            yield thresholds.with_columns(self._plateaus.slice(start, thresholds.height))
            start += thresholds.height


def dimension_thresholds(sweep: Sweep, axis: str) -> Iterator[tuple[Fraction, pl.DataFrame]]:
    """Yield thresholds along one dimension, in slices.

    Along a tiled dimension a work that counts sizes is taken at the last, largest size in a tile:
    from a threshold on, every size has to be compute-bound.

    Args:
        sweep: The sweep.
        axis: The dimension.

    Yields:
        A share of the attainable peak, and the columns of thresholds along the dimension.
    """
    cases, works = sweep.cases, [resource.work for resource in RESOURCES]
    spans = [case.workload.global_tile.get(axis, 1) for case in cases]
    min_sizes = [1] * len(cases)
    thresholds = SizeThresholds(cases, sweep.sizes_without(axis), axis, min_sizes, spans, works)
    limit_slope = pl.coalesce(
        pl.when(pl.col("limit") == resource.bound).then(pl.col(f"#slope:{resource.work}"))
        for resource in NON_MATH
    )
    intensity = quotient(pl.col(f"#slope:{MATH.work}"), limit_slope)
    for share in sweep.shares:
        rules = rules_of_thumb(cases, axis, spans, share)
        thresholds.axis_lines.compiler.put("rule_of_thumb", rules)
        for frame in thresholds.frames(share):
            limit = pl.when(limit_slope > 0).then(intensity)
            yield share, frame.with_columns(limit_intensity=limit)


def rules_of_thumb(
    cases: Sequence[OperationCase], axis: str, spans: Sequence[int], share: Fraction
) -> pl.Series:
    """Rule of thumb along an axis: crossover with memory if all other dimensions were infinite.

    In every work only products over all other dimensions count then. For a matmul: bits / 16 of the
    operand without the dimension, times the ridge of memory.

    Args:
        cases: The cases.
        axis: The dimension.
        spans: Elements that count as one, by case [1].
        share: Share of the attainable peak [1].

    Returns:
        The size, by case [1]; null if every operand has the dimension, or never.

    Source: All About Rooflines, "Matrix multiplication": B > 240 for bf16 on a TPU v5e.
    """
    other_dims = len(cases[0].sweep.op.dims) - 1

    def leading(poly: Poly) -> Fraction:
        """Coefficient of the products over all other dimensions."""
        coefficients = (value for dims, value in poly.terms.items() if len(dims) == other_dims)
        return sum(coefficients, Fraction(0))

    def rule(case: OperationCase, span: int) -> float | None:
        math, memory = (
            case.times.by_bound[resource.bound].pieces[0][0].affine_in(axis, span)
            for resource in (MATH, MEMORY)
        )
        if not memory.constant:
            return None
        slope_gap = leading(math.slope) / share - leading(memory.slope)
        gap = leading(memory.constant) - leading(math.constant) / share
        if slope_gap < 0 or (slope_gap == 0 and gap > 0):
            return None
        return float(max(gap / slope_gap, Fraction(0)) * span) if slope_gap else 0.0

    return pl.Series(map(rule, cases, spans), dtype=pl.Float64)


# ------------------------------------------------------------ batches


def batch_thresholds(
    cases: Sequence[StepCase], points: Axis, targets: Targets | None
) -> Iterator[pl.DataFrame]:
    """Yield critical batches at every context and number of new tokens; a row for every target.

    Args:
        cases: The cases of one model and phase; those with pipeline stages of one split.
        points: T and S, with the extents that follow.
        targets: Target times of a step; None: no target.

    Yields:
        The columns of thresholds along B.
    """
    if staged := is_pipelined(cases[0]) and cases[0].phase == DECODE:
        cases = [BatchedCase.from_case(case) for case in cases]
    stages = cases[0].split.stages if staged else 1
    min_sizes = [case.split.dp * stages for case in cases]
    thresholds = SizeThresholds(cases, [points], "B", min_sizes, [1] * len(cases))
    excess = None if targets is None else target_time(thresholds, cases, targets)
    kinds = len(cases[0].pipeline.stages) if cases[0].pipeline else 1
    for name, values in footprint_columns(cases).items():
        thresholds.axis_lines.compiler.put(name, values)
    timed = [
        targets is None or targets.time != "t_estimate_s" or None not in case.kernel_estimates
        for case in cases
    ]
    thresholds.axis_lines.compiler.put(TIMED, pl.Series(timed))
    largest = max_sequences(kinds)
    if cases[0].started is not None:
        contexts = [*dict.fromkeys(points.columns["S"])]
        largest = held_sequences(requests_held(cases, contexts), largest)
    for lines in thresholds.frames():
        frame = lines.with_columns(axis=pl.lit("B"), max_B_fit=largest)
        if staged:  # fewer sequences make micro-batches as small
            least = pl.col("critical") == pl.col("#min_size")
            critical = pl.when(least).then(pl.col("dp")).otherwise(pl.col("critical"))
            exact = pl.when(least).then(pl.col("dp").cast(pl.Float64))
            frame = frame.with_columns(
                critical=critical, critical_exact=exact.otherwise(pl.col("critical_exact"))
            )
        if targets is None or excess is None:
            yield frame
            continue
        limits = pl.DataFrame({"target_s": targets.t_step_s}, schema={"target_s": pl.Float64})
        frame = frame.join(limits, how="cross", maintain_order="left_right")
        yield frame.with_columns(
            max_batch_within(frame, thresholds.axis_lines, excess, stages),
            pl.lit(targets.time).alias("time"),
        )


TimeAt = Callable[[pl.Expr], pl.Expr]
"""Time of a step by its batch [s]."""


def target_time(thresholds: SizeThresholds, cases: Sequence[StepCase], targets: Targets) -> TimeAt:
    """Time that has to meet a target, as a function of the batch [s]."""
    lines, pipelines = thresholds.axis_lines, [case.pipeline for case in cases]
    if not isinstance(cases[0], BatchedCase) or pipelines[0] is None:
        summands = add_target(thresholds, cases, targets)
        return lambda size: lines.at(size, summands)
    pp, counts = cases[0].split.stages, pipelines[0].counts
    by_kind = zip(*(pipeline.stages for pipeline in pipelines if pipeline), strict=True)
    stages = [
        _stage_target(lines, [case for case, _ in kind], targets, f"stage{index}")
        for index, kind in enumerate(by_kind)
    ]
    hops = [in_batches(pipeline.hops_s, pp) for pipeline in pipelines if pipeline]
    lines.add_lines({"hops": hops})

    def token(size: pl.Expr) -> pl.Expr:
        batch = pl.max_horizontal(size.cast(pl.Float64), pl.col("#min_size").cast(pl.Float64))
        times = [lines.at(batch, summands) for summands in stages]
        per_replica = size / pl.col("dp").cast(pl.Float64)
        micro_batches = pl.min_horizontal(float(pp), per_replica)
        hops_s = lines.at(batch, [(1, [["hops"]])])
        time: pl.Expr = token_time(times, counts, hops_s, micro_batches, pl.max_horizontal)
        return time

    return token


def _stage_target(
    lines: AxisLines, cases: Sequence[StepCase], targets: Targets, name: str
) -> list[Summand]:
    """Terms of a stage's time that has to meet a target."""
    if targets.time == "t_estimate_s":
        return add_estimate(lines, cases, name=name)
    if targets.time == "t_lower_s":
        largest = [case.times.largest for case in cases]
        return [(1, lines.add_time(name, largest))]
    return _serial_terms(lines, cases, name)


def _serial_terms(lines: AxisLines, cases: Sequence[StepCase], name: str = "") -> list[Summand]:
    """Terms of kernels one after another."""
    summands: list[Summand] = []
    for index, kernel in enumerate(cases[0].kernels):
        longest = [
            Times(case.kernel_times[index].with_activation_traffic).largest for case in cases
        ]
        summands.append((kernel.count, lines.add_time(f"{name}{index}", longest)))
    return summands


def add_target(
    thresholds: SizeThresholds, cases: Sequence[StepCase], targets: Targets
) -> list[Summand]:
    """Add the lines of the time that has to meet a target.

    Returns:
        The pieces of `t_lower_s`; of `t_serial_s` or `t_estimate_s`, the terms of a sum over
        kernels.
    """
    if targets.time == "t_estimate_s":
        return add_estimate(thresholds.axis_lines, cases)
    if targets.time == "t_lower_s":
        pieces = [[name] for lines in thresholds.names.values() for name in lines]
        return [(1, [[MATH_LINE], *pieces])]
    return _serial_terms(thresholds.axis_lines, cases)


def max_batch_within(
    frame: pl.DataFrame, axis_lines: AxisLines, time: TimeAt, stages: int = 1
) -> pl.Series:
    """Largest batch whose step takes at most `target_s` [1].

    Args:
        frame: The lines, with targets.
        axis_lines: Their names.
        time: The time by batch.
        stages: Pipeline stages: micro-batches are as small below a batch of as many for each
            replica [1].

    Returns:
        `max_B_latency`: 0 if no batch is as fast; null if the batch is `LARGEST_COUNT` or more, or
        if the time is an estimate that there is none of.
    """
    excess = time(pl.col(TRIAL)) - pl.col("target_s") * (1.0 + ROUNDING)
    least = pl.col("#min_size")
    extents_at = pl.col(TRIAL) if stages == 1 else pl.max_horizontal(pl.col(TRIAL), least)
    start = least if stages == 1 else pl.col("dp")
    first_slow = first_integers(
        frame,
        excess,
        start,
        pl.lit(MAX_PLATEAU_SIZE),
        lambda rows: axis_lines.with_extents(rows, extents_at),
    )
    before = pl.when(first_slow > start).then(first_slow - 1.0).otherwise(0.0)
    return frame.select(
        pl.when((first_slow < MAX_PLATEAU_SIZE) & pl.col(TIMED))
        .then(before)
        .cast(pl.Int64)
        .alias("max_B_latency")
    ).to_series()
