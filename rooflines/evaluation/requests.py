"""Requests: a prompt, then tokens one by one. Sums over the decode steps are closed forms.

A decode step with context S moves min(S, w) entries of a cache with window w, or as many as its
chunk has so far. Works and times are linear in the entries, so that their means over the steps are
their values at the mean number of entries. The mean of a maximum over several times is a sum of
arithmetic series: one time is the largest up to a context, then another; for chunks see
`evaluation.sawtooth`. With a draft, steps of T tokens start before every token of the answer alike,
and each yields several.
"""

from __future__ import annotations

from functools import cached_property, reduce
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
    stage_resources,
    stage_times,
    steps_footprints,
    through_stages,
    times_at_peak,
)
from rooflines.sweep.prompt_times import prompt_seconds, prompt_works, prompts_seconds
from rooflines.sweep.step_sweep import REQUEST
from rooflines.theory.attention_window import FULL_ATTENTION
from rooflines.theory.extents import DraftPairs, Entries, Pairs
from rooflines.theory.poly import ZERO, total
from rooflines.theory.resources import MATH, MEMORY, NETWORK, RESOURCES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rooflines.config.model_fields import Request
    from rooflines.evaluation.operation_rows import Stages
    from rooflines.evaluation.step_rows import StepBlock
    from rooflines.sweep.step_sweep import StepCase
    from rooflines.theory.attention_window import EntryLine
    from rooflines.theory.kernel import Kernel
    from rooflines.theory.poly import Poly
    from rooflines.theory.times import Time, Times


MIXED_COLUMNS = "tpot_mixed_s", "tpot_mixed_serial_s"
"""Columns with the time per token of servers that read prompts, too [s]."""

PROMPTS_COLUMN = "prompts_estimate_s"
"""Column with the time that prompts add to the estimate of a token [s]."""


class ContextLine(NamedTuple):
    """Time as a line in cache entries: once + full * S + sum over windows of windowed * entries.

    Attributes:
        once: Without the context [s].
        full: Per entry of layers with full attention [s].
        windowed: Per number that attention counts in each window or chunk, as `DecodeMeans` orders
            them [s].
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
    if steps.has_stages:
        return _pipelined_parts(steps, steps.stage_blocks)
    means, prompts = DecodeMeans(steps), _prompts(steps)
    seconds = _mean_times(means)
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
                "tpot_s": quotient(pl.col("t_lower_s"), yielded_tokens(steps)),
                "tpot_serial_s": quotient(pl.col("t_serial_s"), yielded_tokens(steps)),
                **(_mixed(steps) if _has_mixed(steps) else {}),
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
                "tpot_s": quotient(pl.col("t_lower_s"), yielded_tokens(steps)),
                "tpot_serial_s": quotient(pl.col("t_serial_s"), yielded_tokens(steps)),
                **(_pipelined_mixed(steps, stages) if _has_mixed(steps) else {}),
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
            prompt_s = prompts_seconds(stage_case, request).estimate
            prompts = 0.0 if case.engine is None else float(case.engine.prompts)
            share = prompts * _prompts_per_sequence(case, request)
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


def yielded_tokens(steps: StepBlock[StepCase]) -> float:
    """Tokens that a decode step adds to a sequence: 1 + accepted drafts [1]."""
    draft = steps.config.draft
    return 1.0 if draft is None else 1.0 + draft.accepted


def _prompts(steps: StepBlock[StepCase]) -> dict[str, pl.Expr]:
    """Columns with the time to first token, case by request: a prompt on an idle server.

    Also the estimate of a prompt on every replica, and `PROMPTS_COLUMN`, the estimated time that
    prompts between steps add to a step; null where prompts have separate servers.
    """
    rows: list[tuple[float | None, ...]] = []
    for case, request in requests_by_case(steps):
        first, together = prompt_seconds(case, request), prompts_seconds(case, request)
        engine, prefill_s = case.engine, None
        if engine and together.estimate is not None and steps.config.pools is None:
            prefill_s = engine.prompts * together.estimate * _prompts_per_sequence(case, request)
        rows.append((first.lower, first.serial, together.estimate, prefill_s))
    lower, serial, estimates, prefill_times = zip(*rows, strict=True)
    return {
        "ttft_s": request_column(steps, lower),
        "ttft_serial_s": request_column(steps, serial),
        "prefill_estimate_s": request_column(steps, estimates),
        PROMPTS_COLUMN: request_column(steps, prefill_times) * pl.col("B").cast(pl.Float64),
    }


def _prompts_per_sequence(case: StepCase, request: Request) -> float:
    """Prompts on every replica that a step reads for each sequence: yielded / (dp * output) [1]."""
    draft = case.place.sweep.config.draft
    yielded = 1.0 if draft is None else 1.0 + draft.accepted
    return yielded / (case.split.dp * request.output)


def _has_mixed(steps: StepBlock[StepCase]) -> bool:
    """Check for requests on servers that read prompts, too."""
    return any(request.mixed for request in steps.config.requests or ())


class StepWithPrompts(NamedTuple):
    """Step that reads prompts, too.

    Attributes:
        lower: Bound: max over resources of d + phi p [s]; null where a request is not mixed.
        prompts_serial: Time that prompts add, in steps of their own [s].
    """

    lower: pl.Expr
    prompts_serial: pl.Expr


def _mixed(steps: StepBlock[StepCase]) -> dict[str, pl.Expr]:
    """Columns with the time per token of servers that read prompts, too.

    With phi = B yielded / (dp * output) prompts a replica and step, the bound is the largest over
    resources of d + phi p: d is the resource's mean over the decode steps, p its time in prompts;
    serialized times add phi prompts in steps of their own. Sequences in decode are at all contexts
    of their answers, so that every step is a mean one.
    """
    decode_s = {resource.bound: pl.col(f"t_{resource.name}_s") for resource in RESOURCES}
    step = _mixed_step(steps, decode_s, pl.col("B").cast(pl.Float64))
    return _mixed_columns(steps, step.lower, pl.col("t_serial_s") + step.prompts_serial)


def _pipelined_mixed(
    steps: StepBlock[StepCase], stages: Sequence[StepBlock[StepCase]]
) -> dict[str, pl.Expr]:
    """Columns as in `_mixed`, where pipeline stages make up the token time.

    Each stage reads its layers' part of the prompts that come with a micro-batch.
    """
    sequences = pl.col("B").cast(pl.Float64) / micro_batches(steps.cases[0])
    mixed = [_mixed_step(stage, stage_resources(stage), sequences) for stage in stages]
    serial = [
        pl.col(stage_column("t_serial_s", kind)) + step.prompts_serial
        for kind, step in enumerate(mixed)
    ]
    lower = through_stages(steps, [step.lower for step in mixed])
    return _mixed_columns(steps, lower, through_stages(steps, serial))


def _mixed_columns(
    steps: StepBlock[StepCase], lower: pl.Expr, serial: pl.Expr
) -> dict[str, pl.Expr]:
    """Columns with the time per token, from the times of a step that reads prompts, too [s]."""
    yielded = yielded_tokens(steps)
    return dict(
        zip(MIXED_COLUMNS, (quotient(lower, yielded), quotient(serial, yielded)), strict=True)
    )


def _mixed_step(
    steps: StepBlock[StepCase], decode_s: Mapping[str, pl.Expr], sequences: pl.Expr
) -> StepWithPrompts:
    """Step that reads prompts, too, on all stages or on one of a kind.

    Args:
        steps: The steps.
        decode_s: Resource times of a decode step, means over the steps, by bound [s].
        sequences: Sequences in it [1].
    """
    rows: list[tuple[float | None, ...]] = []
    levels = max(len(case.collective_times.sending) for case in steps.cases)
    for case, request in requests_by_case(steps):
        if not request.mixed:
            rows.append((None,) * (3 + levels))
            continue
        works, share = prompt_works(case, request), _prompts_per_sequence(case, request)
        sending = [*works.sending_s, *(0.0,) * (levels - len(works.sending_s))]
        prompts_s = prompts_seconds(case, request).serial
        rows.append(
            tuple(share * part for part in (prompts_s, works.math_s, works.cache_s, *sending))
        )
    serial, math_s, cache_s, *sending_s = (
        request_column(steps, values) * sequences for values in zip(*rows, strict=True)
    )
    resources = [decode_s[MATH.bound] + math_s, decode_s[MEMORY.bound] + cache_s]
    if levels:
        resources.append(decode_s[NETWORK.bound])
    for level, sent_s in enumerate(sending_s):
        polys = [
            case.collective_times.sending[level]
            if level < len(case.collective_times.sending)
            else ZERO
            for case in steps.cases
        ]
        resources.append(steps.compiler.total(steps.compiler.poly(polys)) + sent_s)
    return StepWithPrompts(
        pl.when(math_s.is_not_null()).then(pl.max_horizontal(*resources)), serial
    )


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
        shape = self.cases[0].workload.resident_shape
        windows = shape.attention_windows
        self._windows = [window for window in windows if window.tokens is not None]
        draft = steps.config.draft
        self._new = 1 if draft is None else draft.tokens + 1
        self._extents = (
            [kind(window) for window in windows for kind in (Pairs, Entries, DraftPairs)]
            if self._new > 1
            else []
        )

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
                zeros = (pl.lit(0.0),) * len(self._extents or self._windows)
                lines.append(ContextLine(value, pl.lit(0.0), zeros))
            else:
                lines.append(self._line([poly and poly * count for poly in polys]))
        steps = pl.col("output").cast(pl.Float64)
        first = pl.col("input").cast(pl.Float64) + float(self._new)
        last = pl.col("input").cast(pl.Float64) + steps + (self._new - 1.0)
        if any(window.chunked for window in self._windows):
            return quotient(self._sum_over_chunks(lines), steps)
        sums = []
        for start, end, entry_lines in self._entry_pieces:
            along = [line.along(entry_lines) for line in lines]
            since = pl.max_horizontal(first, float(start))
            until = last if end is None else pl.min_horizontal(last, float(end))
            sums.append(self._sum_of_maxima(along, since, until))
        return quotient(reduce(add, sums), steps)

    @cached_property
    def _entry_pieces(self) -> list[tuple[int, int | None, list[EntryLine]]]:
        """Pieces on which everything that attention counts is a line, those of requests alone."""
        if self._extents:
            lines = [
                [*extent.window.lines_of(extent.amount, self._new)] for extent in self._extents
            ]
        else:
            lines = [[*window.lines()] for window in self._windows]
        requests = self.steps.config.requests or ()
        first = min(request.input for request in requests) + self._new
        last = max(request.input + request.output for request in requests) + self._new - 1
        return [
            (start, end, entry_lines)
            for start, end, entry_lines in pieces_of(lines)
            if start <= last and (end is None or end >= first)
        ]

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
                # A time that another chip's cases have, and these lack, is null.
                triples = (parts[at : at + 3] for at in range(0, len(parts), 3))
                row_times = [ContextTime(*triple) for triple in triples if None not in triple]
                steps = prompt + 1, prompt + answer
                sums.append(sum_of_maxima(row_times, *steps, chunk) if row_times else None)
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

    def _context_parts(self, poly: Poly | None) -> tuple[Poly | None, ...]:
        """Parts of a time, as in `ContextLine`; with several tokens a step, each count is one."""
        if poly is None:
            return (None,) * (2 + len(self._extents or self._windows))
        line = poly.affine_in("S")
        if self._extents:
            counts = (line.per_attended.get(extent, ZERO) for extent in self._extents)
            return line.constant, ZERO, *counts
        parts = (
            total(part for extent, part in line.per_attended.items() if extent.window == window)
            for window in (FULL_ATTENTION, *self._windows)
        )
        return line.constant, *parts

    def _line(self, polys: Sequence[Poly | None]) -> ContextLine:
        """Line for a time, from its polynomials."""
        parts = zip(*(self._context_parts(poly) for poly in polys), strict=True)
        once, full, *windowed = (
            self.compiler.total(self.compiler.poly(part_polys)) for part_polys in parts
        )
        return ContextLine(once, full, tuple(windowed))


def pieces_of(
    lines_by_count: Sequence[Sequence[EntryLine]],
) -> Iterator[tuple[int, int | None, list[EntryLine]]]:
    """Pieces on which all numbers that attention counts are lines.

    Args:
        lines_by_count: Lines of each number, in order of contexts.

    Yields:
        First and last context, None without end, and a line for each number.
    """
    starts = sorted({1, *(line.first for lines in lines_by_count for line in lines)})
    for start, following in zip_longest(starts, starts[1:]):
        pieces = [
            next((line for line in reversed(lines) if line.first <= start), lines[0])
            for lines in lines_by_count
        ]
        yield start, None if following is None else following - 1, pieces


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
