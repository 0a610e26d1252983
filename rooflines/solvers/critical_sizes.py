"""The smallest compute-bound size: along a dimension of an operation, and of a step's batch.

Every work is affine in every single extent, a size or the number of its tiles; so is every time,
but for the latency of a collective, which is a second, constant line. Of a step also the largest
batch within a time.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import polars as pl

from rooflines.evaluation.compiler import quotient
from rooflines.evaluation.footprints import footprint_columns, most_sequences
from rooflines.solvers.crossover import AHEAD, ROUNDING, WHOLE_PEAK, ask_times, solved
from rooflines.solvers.first_integer import AT, first_in_rows
from rooflines.solvers.plateau import MOST, saturated
from rooflines.solvers.size_axis import Along
from rooflines.theory.resources import MATH, MEMORY, OTHERS, RESOURCES
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


class SizeThresholds:
    """The thresholds of cases along a size.

    Args:
        cases: The cases.
        axes: The other sizes, slowest first; cases are slower than all.
        size: The size.
        least: The smallest size of every case [1].
        spans: For every case the elements that are counted as one [1].
        works: Works of which there are lines, too.

    Attributes:
        along: The times along the size.
        names: Their lines.
    """

    def __init__(  # noqa: PLR0913, PLR0917, what thresholds depend on
        self,
        cases: Sequence[Case],
        axes: Sequence[Axis],
        size: str,
        least: Sequence[int],
        spans: Sequence[int],
        works: Sequence[str] = (),
    ) -> None:
        self.along = Along(cases, axes, size, spans)
        self.along.put("#least", pl.Series(least, dtype=pl.Int64))
        self.along.put("#span", pl.Series(spans, dtype=pl.Int64))
        if works:
            self.along.ask({name: [case.work(name) for case in cases] for name in works})
        self.names = ask_times(self.along, cases)
        self._saturates = saturated(cases, axes, size, least)

    def frames(self, share: Fraction = WHOLE_PEAK) -> Iterator[pl.DataFrame]:
        """The thresholds for a share of the attainable peak, in slices."""
        start = 0
        for lines in self.along.frames():
            found = solved(lines, self.names, share).collect()
            yield found.with_columns(self._saturates.slice(start, found.height))
            start += found.height


def dimension_thresholds(sweep: Sweep, axis: str) -> Iterator[tuple[Fraction, pl.DataFrame]]:
    """Thresholds along one dimension, in slices.

    Along a tiled dimension a work that counts sizes is taken at the last size of each tile, its
    largest: from a threshold on, every size has to be compute-bound.

    Args:
        sweep: The sweep.
        axis: The dimension.

    Yields:
        Shares of the attainable peak, and the columns of thresholds along the dimension.
    """
    cases, works = sweep.cases, [each.work for each in RESOURCES]
    spans = [case.workload.spans.get(axis, 1) for case in cases]
    least = [1] * len(cases)
    found = SizeThresholds(cases, sweep.sizes_without(axis), axis, least, spans, works)
    of_limit = pl.coalesce(
        pl.when(pl.col("limit") == each.bound).then(pl.col(f"#slope:{each.work}"))
        for each in OTHERS
    )
    intensity = quotient(pl.col(f"#slope:{MATH.work}"), of_limit)
    for share in sweep.shares:
        rules = rules_of_thumb(found.along, cases, spans, share)
        found.along.put("rule_of_thumb", rules)
        for frame in found.frames(share):
            limit = pl.when(of_limit > 0).then(intensity)
            yield share, frame.with_columns(limit_intensity=limit)


def rules_of_thumb(
    along: Along, cases: Sequence[OperationCase], spans: Sequence[int], share: Fraction
) -> pl.Series:
    """The sizes along an axis against memory, with all other dimensions taken as infinite.

    Of every work only the products of all other dimensions count then. For a matmul this is bits /
    16 of the operand that lacks the dimension, times the critical memory intensity.

    Args:
        along: The times along the axis.
        cases: The cases.
        spans: For every case the elements that are counted as one [1].
        share: Of the attainable peak [1].

    Returns:
        The size of every case [1]; null if every operand has the dimension, or never.

    Source: All About Rooflines, "Matrix multiplication": B > 240 for bf16 on a TPU v5e.
    """
    others, known = len(cases[0].sweep.op.dims) - 1, dict[tuple[int, int], list[Fraction]]()

    def leading(poly: Poly, span: int) -> list[Fraction]:
        """Slope and constant of a time, unscaled, per product of all other dimensions."""
        key = id(poly.terms), span
        if key not in known:
            parts = (part.terms.items() for part in along.line(poly, span)[:2])
            known[key] = [
                sum((each for dims, each in part if len(dims) == others), Fraction(0))
                for part in parts
            ]
        return known[key]

    def rule(case: OperationCase, span: int) -> float | None:
        math, memory = (case.times.by[each.bound].pieces[0][0] for each in (MATH, MEMORY))
        if not along.line(memory, span).constant:
            return None
        of_math = math.scale / memory.scale / share
        (ahead, lead), (behind, need) = leading(math, span), leading(memory, span)
        gain, gap = ahead * of_math - behind, need - lead * of_math
        if gain < 0 or (gain == 0 and gap > 0):
            return None
        return float(max(gap / gain, Fraction(0)) * span) if gain else 0.0

    return pl.Series(map(rule, cases, spans), dtype=pl.Float64)


# ------------------------------------------------------------ batches


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
    found = SizeThresholds(cases, [points], "B", replicas, [1] * len(cases))
    summands = [] if targets is None else ask_target(found, cases, targets)
    for name, values in footprint_columns(cases).items():
        found.along.put(name, values)
    for every in found.frames():
        frame = every.with_columns(axis=pl.lit("B"), max_B_fit=most_sequences())
        if targets is None:
            yield frame
            continue
        each = pl.DataFrame({"target_s": targets.t_step_s}, schema={"target_s": pl.Float64})
        frame = frame.join(each, how="cross", maintain_order="left_right")
        yield frame.with_columns(
            largest_within(frame, found.along, summands), pl.lit(targets.time).alias("time")
        )


def ask_target(found: SizeThresholds, cases: Sequence[StepCase], targets: Targets) -> list[Summand]:
    """Ask for the lines of the time that has to keep a target.

    Returns:
        The pieces of `t_lower_s`, or of `t_serial_s`, which is a sum over kernels.
    """
    if targets.time == "t_lower_s":
        others = [[name] for each in found.names.values() for name in each]
        return [(1, [[AHEAD], *others])]
    summands: list[Summand] = []
    for index, kernel in enumerate(cases[0].kernels):
        longest = [Times(case.kernel_times[index].handed_over).largest for case in cases]
        summands.append((kernel.count, found.along.ask_time(f"{index}", longest)))
    return summands


def largest_within(frame: pl.DataFrame, along: Along, summands: Sequence[Summand]) -> pl.Series:
    """The largest batches whose step takes at most `target_s` [1].

    Returns:
        `max_B_latency`: 0 if no batch is as fast; null if the batch is `LARGEST_COUNT` or more.
    """
    over = along.at(pl.col(AT), summands) - pl.col("target_s") * (1.0 + ROUNDING)
    slow = first_in_rows(
        frame,
        over,
        pl.col("#least"),
        pl.lit(MOST),
        lambda rows: along.with_extents(rows, pl.col(AT)),
    )
    before = pl.when(slow > pl.col("#least")).then(slow - 1.0).otherwise(0.0)
    return frame.select(
        pl.when(slow < MOST).then(before).cast(pl.Int64).alias("max_B_latency")
    ).to_series()
