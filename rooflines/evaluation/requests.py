"""Requests: a prompt, then tokens one by one. Sums over the decode steps are closed forms.

A decode step with context S moves min(S, w) entries of a cache with window w, or as many as its
chunk has so far. Works and times are linear in the entries, so that their means over the steps are
their values at the mean number of entries. The mean of a maximum over several times is a sum of
arithmetic series: one time is the largest up to a context, then another; for chunks see
`evaluation.sawtooth`.
"""

from __future__ import annotations

from functools import reduce
from itertools import combinations, pairwise, product, zip_longest
from operator import add
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from rooflines.basics.expressions import quotient
from rooflines.dictionary.columns import ESTIMATE_SUFFIX
from rooflines.evaluation.compiler import CASE_INDEX, Value
from rooflines.evaluation.sawtooth import ContextTime, sum_of_maxima
from rooflines.evaluation.step_rows import (
    BAND_COLUMNS,
    UPPER,
    StepParts,
    kernel_seconds,
    largest_piece,
    micro_batches,
    per_token,
    pipeline_parts,
    serialized_times,
    stage_column,
    stage_times,
    steps_footprints,
    through_stages,
    times_at_peak,
)
from rooflines.sweep.exact_times import StepSeconds, exact_step_seconds
from rooflines.sweep.step_sweep import REQUEST
from rooflines.theory.attention_window import FULL_ATTENTION
from rooflines.theory.poly import total

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rooflines.config.model_fields import Request
    from rooflines.evaluation.operation_rows import Stages
    from rooflines.evaluation.step_rows import StepBlock
    from rooflines.sweep.step_sweep import StepCase
    from rooflines.theory.attention_window import AttentionWindow, EntryLine
    from rooflines.theory.kernel import Kernel
    from rooflines.theory.poly import Poly
    from rooflines.theory.times import Time, Times


PROMPTS_COLUMN = "prompts_estimate_s"
"""Column with the time that prompts add to the estimate of a token [s]."""


class ContextLine(NamedTuple):
    """Time as a line in cache entries: once + full * S + sum over windows of windowed * entries.

    Attributes:
        once: Without the context [s].
        full: Per entry of layers with full attention [s].
        windowed: Per entry in each window or chunk, as `DecodeMeans` orders them [s].
    """

    once: pl.Expr
    full: pl.Expr
    windowed: tuple[pl.Expr, ...]

    def along(self, entry_lines: Sequence[EntryLine]) -> tuple[pl.Expr, pl.Expr]:
        """Constant and slope in S [s], where each window's entries are a line in S."""
        constant, slope = self.once, self.full
        for part, entries in zip(self.windowed, entry_lines, strict=True):
            constant += part * float(entries.constant)
            slope += part * float(entries.slope)
        return constant, slope


def request_parts(steps: StepBlock[StepCase]) -> StepParts:
    """Parts of rows for requests, means over the decode steps; S is null."""
    if stages := steps.stage_blocks:
        return _pipelined_parts(steps, stages)
    means, prompts = DecodeMeans(steps), _prompts(steps)
    kernels = range(len(steps.cases[0].kernels))
    seconds = serialized_times(steps, map(means.kernel_seconds, kernels), means.kernel_estimate)
    lower, at_peak = means.lower(), times_at_peak(steps)
    return StepParts(
        seconds=seconds,
        lower=lower,
        derived=UPPER,
        footprints=steps_footprints(steps),
        at_peak=at_peak,
        before=means.stages,
        after=[
            {
                **prompts,
                "S": pl.lit(None, dtype=pl.Int64),
                "tpot_s": pl.col("t_lower_s"),
                "tpot_serial_s": pl.col("t_serial_s"),
            },
            {"t_estimate_s": pl.col("t_estimate_s") + prompts[PROMPTS_COLUMN].fill_null(0.0)},
            {**BAND_COLUMNS, **per_token(ESTIMATE_SUFFIX, "t_estimate_s", at_peak)},
        ],
    )


def _pipelined_parts(
    steps: StepBlock[StepCase], stages: Sequence[StepBlock[StepCase]]
) -> StepParts:
    """Row parts for requests where pipeline stages make up the token time.

    Prompts between steps are read stage by stage: b sequences come with b / (dp * output) prompts.
    """
    means = [DecodeMeans(stage, f"#{kind}") for kind, stage in enumerate(stages)]
    times = [stage_times(mean.steps, mean.lower(), _mean_times(mean)) for mean in means]
    parts, prompts = pipeline_parts(steps, times), _prompts(steps)
    before = [
        {name: column for columns in by_mean for name, column in columns.items()}
        for by_mean in zip(*(mean.stages for mean in means), strict=True)
    ]
    per_step = prompts.pop(PROMPTS_COLUMN)
    batches = micro_batches(steps.cases[0])
    with_prompts = [
        pl.col(stage_column("t_estimate_s", kind)) + prompt / batches
        for kind, prompt in enumerate(_stage_prompts(steps, stages))
    ]
    mixed = through_stages(steps, with_prompts)
    added = pl.when(per_step.is_not_null()).then(mixed - pl.col("t_estimate_s"))
    return parts._replace(
        before=before,
        after=[
            {
                **prompts,
                PROMPTS_COLUMN: added,
                "S": pl.lit(None, dtype=pl.Int64),
                "tpot_s": pl.col("t_lower_s"),
                "tpot_serial_s": pl.col("t_serial_s"),
            },
            {"t_estimate_s": pl.col("t_estimate_s") + pl.col(PROMPTS_COLUMN).fill_null(0.0)},
            {**BAND_COLUMNS, **per_token(ESTIMATE_SUFFIX, "t_estimate_s", parts.at_peak)},
        ],
    )


def _mean_times(means: DecodeMeans) -> dict[str, pl.Expr]:
    """Serialized times and estimates, means over the decode steps."""
    kernels = range(len(means.cases[0].kernels))
    return serialized_times(means.steps, map(means.kernel_seconds, kernels), means.kernel_estimate)


def _stage_prompts(
    steps: StepBlock[StepCase], stages: Sequence[StepBlock[StepCase]]
) -> Iterator[pl.Expr]:
    """Estimated time that prompts between steps add to a token, by stage kind [s]."""
    for stage in stages:
        times: list[float | None] = []
        pairs = zip(requests_by_case(steps), requests_by_case(stage), strict=True)
        for (case, request), (stage_case, _) in pairs:
            prompt_s = first_token(stage_case, request).estimate
            prompts = 0.0 if case.engine is None else float(case.engine.prompts)
            share = prompts / (case.split.dp * request.output)
            times.append(None if prompt_s is None else prompt_s * share)
        yield request_column(steps, times) * pl.col("B").cast(pl.Float64)


def request_column(
    steps: StepBlock[StepCase],
    values: Sequence[float | None],
    dtype: type[pl.DataType] = pl.Float64,
) -> pl.Expr:
    """Column with a value for every request in every case, requests faster."""
    requests = steps.config.requests or ()
    index = pl.col(CASE_INDEX).cast(pl.Int64) * len(requests) + pl.col(REQUEST)
    return pl.lit(pl.Series(values, dtype=dtype)).gather(index)


def requests_by_case(steps: StepBlock[StepCase]) -> Iterator[tuple[StepCase, Request]]:
    """Cases with every request, requests faster."""
    yield from product(steps.cases, steps.config.requests or ())


def _prompts(steps: StepBlock[StepCase]) -> dict[str, pl.Expr]:
    """Columns with the time to first token, case by request: a prompt on every replica.

    Also `PROMPTS_COLUMN`, the estimated time that prompts between steps add to a token; null
    where prompts have separate servers.
    """
    pairs = [*requests_by_case(steps)]
    first_tokens = [first_token(case, request) for case, request in pairs]
    prefill_times: list[float | None] = []
    for (case, request), first in zip(pairs, first_tokens, strict=True):
        engine, prefill_s = case.engine, None
        if engine and first.estimate is not None and steps.config.pools is None:
            prefill_s = engine.prompts * first.estimate / (case.split.dp * request.output)
        prefill_times.append(prefill_s)
    lower, serial, estimates = zip(*first_tokens, strict=True)
    return {
        "ttft_s": request_column(steps, lower),
        "ttft_serial_s": request_column(steps, serial),
        "prefill_estimate_s": request_column(steps, estimates),
        PROMPTS_COLUMN: request_column(steps, prefill_times) * pl.col("B").cast(pl.Float64),
    }


class DecodeMeans:
    """Mean times over the decode steps of requests.

    Args:
        steps: The steps.
        prefix: Start of the columns' names, where a row has means of several stages.

    Attributes:
        stages: Columns from which the means are computed.
    """

    def __init__(self, steps: StepBlock[StepCase], prefix: str = "") -> None:
        self._prefix = prefix
        self.steps, self.compiler, self.cases = steps, steps.compiler, steps.cases
        self.stages: Stages = [{}, {}, {}]
        windows = self.cases[0].model.shape.attention_windows
        self._windows = [window for window in windows if window.tokens is not None]

    def lower(self) -> pl.Expr:
        """Mean `t_lower_s`, from the times of resources."""
        return self._mean(zip(*(case.times.by_bound.values() for case in self.cases), strict=True))

    def kernel_seconds(self, index: int) -> tuple[Value, Value]:
        """Mean kernel times, as in `step_rows.kernel_seconds`."""
        longest, sent = kernel_seconds(self.steps, index)
        times = [case.kernel_times[index] for case in self.cases]
        if not any(_depends_on_context(kernel_times) for kernel_times in times):
            return longest, sent
        count = self.cases[0].kernels[index].count
        by = {
            bound: [kernel_times.with_activation_traffic[bound] for kernel_times in times]
            for bound in times[0].by_bound
        }
        return Value(per_row=self._mean(by.values(), count)), sent

    def kernel_estimate(self, estimates: Sequence[Times | None], kernel: Kernel) -> Value:
        """Mean of a kernel's largest piece, as in `step_rows.largest_piece`."""
        if not any(times and _depends_on_context(times) for times in estimates):
            return largest_piece(self.steps, estimates, kernel)
        bounds = dict.fromkeys(bound for times in estimates if times for bound in times.by_bound)
        by = {
            bound: [None if times is None else times.by_bound.get(bound) for times in estimates]
            for bound in bounds
        }
        return Value(per_row=self._mean(by.values(), kernel.count))

    def _mean(self, times_by_bound: Iterable[Sequence[Time | None]], count: int = 1) -> pl.Expr:
        """Mean over the steps: max over several times, by case [s]."""
        lines = []
        for times in times_by_bound:
            polys = _single_polys(times)
            if polys is None:
                value = self.compiler.total(self.compiler.time(times, count))
                zeros = (pl.lit(0.0),) * len(self._windows)
                lines.append(ContextLine(value, pl.lit(0.0), zeros))
            else:
                lines.append(self._line([poly and poly * count for poly in polys]))
        steps = pl.col("output").cast(pl.Float64)
        first = pl.col("input").cast(pl.Float64) + 1.0
        last = pl.col("input").cast(pl.Float64) + steps
        if any(window.chunked for window in self._windows):
            return quotient(self._sum_over_chunks(lines), steps)
        sums = []
        for start, end, entry_lines in entry_pieces(self._windows):
            along = [line.along(entry_lines) for line in lines]
            since = pl.max_horizontal(first, float(start))
            until = last if end is None else pl.min_horizontal(last, float(end))
            sums.append(self._sum_of_maxima(along, since, until))
        return quotient(reduce(add, sums), steps)

    def _sum_over_chunks(self, lines: Sequence[ContextLine]) -> pl.Expr:
        """Sum over the steps: max over several times, where layers attend in chunks."""
        (window,) = self._windows
        sizes, chunk = ("input", "output"), window.tokens or 1
        times = [
            value.cast(pl.Float64).alias(f"{index}:{part}")
            for index, line in enumerate(lines)
            for part, value in zip(
                ContextTime._fields, (line.once, line.full, *line.windowed), strict=True
            )
        ]

        def summed(rows: pl.Series) -> pl.Series:
            """Sums, from rows with the sizes, then the three parts of every time."""
            sums: list[float | None] = []
            for prompt, answer, *parts in rows.struct.unnest().iter_rows():
                if None in parts:
                    sums.append(None)
                    continue
                row_times = [ContextTime(*parts[at : at + 3]) for at in range(0, len(parts), 3)]
                sums.append(sum_of_maxima(row_times, prompt + 1, prompt + answer, chunk))
            return pl.Series(sums, dtype=pl.Float64)

        row_values = pl.struct(*sizes, *times)
        return row_values.map_batches(summed, return_dtype=pl.Float64, is_elementwise=True)

    def _sum_of_maxima(
        self, lines: Sequence[tuple[pl.Expr, pl.Expr]], first: pl.Expr, last: pl.Expr
    ) -> pl.Expr:
        """Sum over whole numbers: max over several lines.

        Turns are the numbers from which on one line overtakes another. Between neighbouring turns
        one line is the largest throughout: the one with the largest sum.

        Args:
            lines: Constants and slopes.
            first: The first number.
            last: The last number; the sum is 0 if it is less than the first.
        """
        line_columns, turn_lists, turn_columns = self.stages
        name = f"{self._prefix}#turns{len(turn_lists)}"
        for index, line in enumerate(lines):
            line_columns |= {
                f"{name}:{part}{index}": value for part, value in zip("cs", line, strict=True)
            }
        columns = [
            (pl.col(f"{name}:c{index}"), pl.col(f"{name}:s{index}")) for index in range(len(lines))
        ]
        stop = pl.max_horizontal(last + 1.0, first)
        turns = []
        for (constant_1, slope), (constant_2, slope_2) in combinations(columns, 2):
            real = ((constant_1 - constant_2) / (slope_2 - slope)).fill_nan(float("-inf"))
            turns.append(pl.min_horizontal(stop, pl.max_horizontal(first, real.ceil())))
        turn_lists[name] = pl.concat_list(first, *turns, stop).list.sort()
        numbers = [f"{name}:{index}" for index in range(len(turns) + 2)]
        turn_columns |= {
            number_name: pl.col(name).list.get(index) for index, number_name in enumerate(numbers)
        }
        return pl.sum_horizontal(
            pl.max_horizontal(
                (end - start) * (constant + slope * (start + end - 1.0) / 2.0)
                for constant, slope in columns
            )
            for start, end in pairwise(map(pl.col, numbers))
        )

    def _line(self, polys: Sequence[Poly | None]) -> ContextLine:
        """Line for a time, from its polynomials."""
        parts = zip(*(_context_parts(poly, self._windows) for poly in polys), strict=True)
        once, full, *windowed = (
            self.compiler.total(self.compiler.poly(part_polys)) for part_polys in parts
        )
        return ContextLine(once, full, tuple(windowed))


def first_token(case: StepCase, request: Request) -> StepSeconds:
    """Compute a request's time to first token, with a prompt on every replica."""
    prefill = case.prefill
    return exact_step_seconds(prefill, prefill.step(case.split.dp, request.input))


def slowest_stage(case: StepCase, request: Request) -> StepSeconds:
    """Compute the slowest stage's time, with a prompt on every replica: a server's period."""
    if case.pipeline is None:
        return first_token(case, request)
    by_stage = [first_token(stage, request) for stage, _ in case.pipeline.stages]
    lower, serial, estimates = zip(*by_stage, strict=True)
    calibrated = [time for time in estimates if time is not None]
    estimate = max(calibrated) if len(calibrated) == len(estimates) else None
    return StepSeconds(max(lower), max(serial), estimate)


def entry_pieces(
    windows: Sequence[AttentionWindow],
) -> Iterator[tuple[int, int | None, list[EntryLine]]]:
    """Pieces on which every window's entries are lines.

    Yields:
        First and last context, None without end, and a line for each window.
    """
    by_window = [[*window.lines()] for window in windows]
    starts = sorted({1, *(line.first for lines in by_window for line in lines)})
    for start, following in zip_longest(starts, starts[1:]):
        pieces = [
            next(line for line in reversed(lines) if line.first <= start) for lines in by_window
        ]
        yield start, None if following is None else following - 1, pieces


def _context_parts(
    poly: Poly | None, windows: Sequence[AttentionWindow]
) -> tuple[Poly | None, ...]:
    """Parts of a time, as in `ContextLine`."""
    if poly is None:
        return (None,) * (2 + len(windows))
    line = poly.affine_in("S")
    parts = (
        total(part for extent, part in line.per_attended.items() if extent.window == window)
        for window in (FULL_ATTENTION, *windows)
    )
    return line.constant, *parts


def _depends_on_context(times: Times) -> bool:
    """True if a time depends on the context."""
    polys = (poly for time in times.by_bound.values() for polys in time.pieces for poly in polys)
    return any(poly.affine_in("S").per_attended for poly in polys)


def _single_polys(times: Sequence[Time | None]) -> list[Poly | None] | None:
    """Polynomials, for times with a single piece; None if a time has several pieces."""
    pieces = [None if time is None else time.pieces for time in times]
    if any(
        time_pieces is not None and (len(time_pieces) > 1 or len(time_pieces[0]) > 1)
        for time_pieces in pieces
    ):
        return None
    return [None if time_pieces is None else time_pieces[0][0] for time_pieces in pieces]
