"""Serving levers: when pulling a cache, drafts, separate servers or a chunk of a prompt pay.

Bounds overlap resources fully: the largest of their times. Every row names its time: `t_lower_s`,
the bound; `t_serial_s`, kernels one after another; `t_upper_s`, a chunk after the decode step;
`t_estimate_s`, a bound times a typed `slowdown`, or times the calibration's estimate over the bound
at the row's sizes. Gains are exact fractions, but for drafts by a calibration.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any

from rooflines.basics.numbers import MAX_SIZE, exact, first
from rooflines.dictionary.columns import ALWAYS, CONTEXT, FOUND, FROM, NEVER, TO
from rooflines.models.architecture import DECODE, PREFILL
from rooflines.models.groups import Step, StepExtents
from rooflines.models.memory import cache_on_chip
from rooflines.models.split import ONE_CHIP_SPLIT
from rooflines.solvers.payoffs import (
    ESTIMATED_TIME,
    LOWER_TIME,
    SERIAL_TIME,
    UPPER_TIME,
    End,
    doubled_ends,
    ends_of,
    server_pools,
)
from rooflines.sweep.exact_times import exact_step_seconds
from rooflines.sweep.pipelines import is_pipelined
from rooflines.sweep.prompt_times import prompts_seconds
from rooflines.sweep.step_sweep import mean_entries
from rooflines.theory.extents import ActivatedExperts, Entries, Pairs
from rooflines.theory.resources import MATH, MEMORY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from rooflines.config.model_fields import PullLink, Request
    from rooflines.sweep.step_sweep import ModelSweep, StepCase
    from rooflines.theory.times import Seconds, Times

DOUBLINGS = 24
"""Doublings of the batch along which an estimate's sign is tried [1]."""

SATURATION = 2.0**-56
"""Share of experts without tokens from which on all count as read [1]."""

Row = tuple["StepCase", "dict[str, Any]"]
"""A case, and its threshold's values by column."""


def lever_thresholds(sweep: ModelSweep) -> Iterator[Row]:
    """Yield the thresholds of every serving lever that a sweep's config lists.

    Of splits with pipeline stages none: a lever changes which stage is the slowest.
    """
    axes = [axis for axis in SOLVERS if axis in sweep.config.thresholds]
    phase = DECODE if DECODE in sweep.config.phase else PREFILL
    for axis, case in product(axes, sweep.cases):
        if case.phase == phase and not is_pipelined(case):
            for row in SOLVERS[axis](sweep, case):
                yield case, {"axis": axis, **row}


def _rows(ends: Iterable[End], **columns: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401, cells
    """Rows of ends, with further columns."""
    for end in ends:
        row = {"outcome": end.outcome, "side": end.side, "critical": end.critical}
        yield {**row, "critical_exact": end.exact, **columns}


def _slowdowns(
    typed: float | None, calibrated: float | None
) -> Iterator[tuple[str, Fraction, dict[str, Any]]]:
    """Times, their factor on the bound, and their columns: the bound, then the estimate."""
    yield LOWER_TIME, Fraction(1), {"time": LOWER_TIME, "slowdown": None}
    factor = calibrated if typed is None else typed
    if factor is not None:
        yield ESTIMATED_TIME, exact(factor), {"time": ESTIMATED_TIME, "slowdown": float(factor)}


def _ratio(case: StepCase, step: Step) -> float | None:
    """Estimate over bound of a step [1]; None without a calibration."""
    seconds = exact_step_seconds(case, step)
    return None if seconds.estimate is None else seconds.estimate / seconds.lower


def scoring_all(case: StepCase) -> StepCase:
    """Case whose LM head scores every token."""
    return replace(case, workload=replace(case.workload, scores_all=True))


# ---------------------------------------------------------------- pull a KV cache


def pull_rows(sweep: ModelSweep, case: StepCase) -> Iterator[dict[str, Any]]:
    """Prefix lengths S from which pulling its KV cache beats computing it on an idle server.

    Pays iff slowdown * t(S) > latency + (c S + s) / link, with t(S) the bound of a prefill, A S^2 /
    (2 C) of it attention, the LM head counted for every token, on one replica.
    """
    levers = sweep.config.levers
    if levers is None or levers.pull is None:
        return
    prefill = case.prefill
    contexts = [context for context in sweep.contexts if _in_context(case, context)]
    context = max(contexts or sweep.contexts)
    typed, limit = levers.slowdown, case.model.shape.context
    calibrated = None if typed else _ratio(prefill, prefill.step(case.split.dp, context))
    computing, pulling = prefix_seconds(scoring_all(prefill)), pull_seconds(case, levers.pull)
    chunk = max((w.tokens or 0 for w in case.model.shape.attention_windows if w.chunked), default=0)
    high = limit or MAX_SIZE if chunk else MAX_SIZE
    bends = {*range(1, _saturation(prefill) + 1)}  # experts are concave, so no piece has two
    bends |= {*(range(chunk, high, chunk) if chunk else ())}
    for _, factor, columns in _slowdowns(typed, calibrated):

        def gain(size: int, factor: Fraction = factor) -> Fraction:
            return factor * computing(size) - pulling(size)

        for row in _rows(ends_of(gain, 1, high, bends), **columns):
            beyond = limit is not None and (row["critical"] or 0) > limit
            yield {**row, "limit": CONTEXT if beyond else None}


def _in_context(case: StepCase, context: int) -> bool:
    """True for a context that the model is made for."""
    return case.model.shape.context is None or context <= case.model.shape.context


def prefix_seconds(prefill: StepCase) -> Callable[[int], Fraction]:
    """Bound of computing a prefix on one replica, by its length [s].

    A token's pair with itself counts half, so that attention is A S^2 / (2 C).
    """
    windows = prefill.model.shape.attention_windows

    @cache
    def seconds(size: int) -> Fraction:
        extents = prefill.extents(prefill.step(prefill.split.dp, size))
        for window in windows:
            extents[Pairs(window)] -= Fraction(size, 2)
        return prefill.times.at(extents).lower

    return seconds


def pull_seconds(case: StepCase, link: PullLink) -> Callable[[int], Fraction]:
    """Time to pull a prefix's cache, states included, by its length [s]."""
    rate, latency = exact(link.bytes_per_s), exact(link.latency_s)

    @cache
    def seconds(size: int) -> Fraction:
        cached = cache_on_chip(case.model.shape, size, case.sharing.bits, ONE_CHIP_SPLIT)
        return latency + cached / rate

    return seconds


# ---------------------------------------------------------------- drafts


def draft_rows(sweep: ModelSweep, case: StepCase) -> Iterator[dict[str, Any]]:
    """Batches B up to which a draft pays: (1 + accepted) t(1) > t(tokens + 1), drafting included.

    Bounds are largest of lines in B, and with experts scanned until all are read.
    """
    draft = sweep.config.draft
    if draft is None:
        return
    added, plain = 1 + exact(draft.accepted), without_draft(case)
    always = _always_from(case, plain, added, draft.tokens + 1)
    for context in sweep.contexts:
        if context <= draft.tokens:
            continue
        sizes = {"S": context, "T": draft.tokens + 1}
        ends = _draft_ends(case, plain, added, context, draft.tokens + 1)
        yield from _rows(ends, **sizes, time=LOWER_TIME, always_S=always)
        typed = sweep.config.levers.slowdown if sweep.config.levers else None
        if typed is not None:
            yield from _rows(
                ends, **sizes, time=ESTIMATED_TIME, slowdown=float(typed), always_S=always
            )
            continue
        estimated = _estimated_draft_ends(case, plain, float(added), context, draft.tokens + 1)
        if estimated is not None:
            yield from _rows(estimated, **sizes, time=ESTIMATED_TIME)


def without_draft(case: StepCase) -> StepCase:
    """Case of plain decode, without the MTP layer's runs."""
    return replace(case, workload=replace(case.workload, mtp_tokens=0))


def _draft_ends(
    case: StepCase, plain: StepCase, added: Fraction, context: int, new: int
) -> list[End]:
    """Ends along B, by the bound."""

    @cache
    def gain(batch: int) -> Fraction:
        """Time that a draft saves for as many tokens [s]."""
        before = plain.times.at(plain.extents(plain.step(batch, context))).lower
        return added * before - case.times.at(case.extents(case.step(batch, context, new))).lower

    least, bends = case.split.dp, set[int]()
    for part, tokens in ((plain, 1), (case, new)):
        bends |= _bends(part.times, part.step(least, context, tokens))
    saturated = max(_saturation(part) for part in (plain, case))
    bends |= {*range(least, least + saturated * case.split.dp)}
    return ends_of(gain, least, MAX_SIZE, bends)


def _bends(times: Times, step: Step) -> set[int]:
    """Whole batches next to where two lines of a bound cross, all experts read."""
    lines = set()
    for time in times.by_bound.values():
        for (poly,) in time.pieces:
            line = poly.affine_in("B")
            extents = StepExtents(replace(step, B=MAX_SIZE))
            constant = line.constant.at(extents) + line.expert.at(extents)
            slope = line.slope.at(extents)
            lines.add((slope, constant))
    bends = set()
    for (slope, constant), (lower_slope, start) in product(lines, lines):
        if slope > lower_slope:
            crossing = (start - constant) / (slope - lower_slope)
            if 0 < crossing < MAX_SIZE:
                bends |= {int(crossing) - 1, int(crossing), int(crossing) + 1}
    return bends


def _saturation(case: StepCase) -> int:
    """Tokens of a replica from which on every expert counts as read [1]; 0 without experts."""
    decays = [
        extent.decay
        for time in case.times.by_bound.values()
        for (poly,) in time.pieces
        for term in poly.terms
        for extent in term
        if isinstance(extent, ActivatedExperts)
    ]
    slowest = min((abs(decay) for decay in decays if decay), default=None)
    return 0 if slowest is None else int(-math.log(SATURATION) / slowest)


def _estimated_draft_ends(
    case: StepCase, plain: StepCase, added: float, context: int, new: int
) -> list[End] | None:
    """Ends along B by the calibration, from signs at doubled batches; None without one."""

    @cache
    def gain(batch: int) -> float | None:
        before = exact_step_seconds(plain, plain.step(batch, context)).estimate
        after = exact_step_seconds(case, case.step(batch, context, new)).estimate
        return None if before is None or after is None else added * before - after

    least = case.split.dp
    if gain(least) is None:
        return None
    return doubled_ends(lambda batch: (gain(batch) or 0.0) > 0, least, DOUBLINGS)


def _always_from(case: StepCase, plain: StepCase, added: Fraction, new: int) -> float | None:
    """Real context from which on a draft pays at large batches, so at every one [1]; None: never.

    There a sequence more adds less to the step with a draft, for as many tokens.
    """

    @cache
    def gain(context: int) -> Fraction:
        growth = [
            max(_slopes(part.times, part.step(MAX_SIZE, context, tokens)))
            for part, tokens in ((plain, 1), (case, new))
        ]
        return added * growth[0] - growth[1]

    ends = doubled_ends(lambda context: gain(context) >= 0, new + 1, DOUBLINGS)
    if ends[-1].side != FROM or ends[-1].critical is None:
        return None
    left, right = gain(ends[-1].critical - 1), gain(ends[-1].critical)
    return float(ends[-1].critical - 1 + left / (left - right))


def _slopes(times: Times, step: Step) -> Iterator[Fraction]:
    """Growth of a bound's lines with the batch, all experts read [s]."""
    extents = StepExtents(step)
    for time in times.by_bound.values():
        for (poly,) in time.pieces:
            yield poly.affine_in("B").slope.at(extents)


def accepted_rows(sweep: ModelSweep, case: StepCase) -> Iterator[dict[str, Any]]:
    """Accepted tokens from which a draft pays at a batch: t(T) / t(1) - 1, drafting included."""
    tokens = [new for new in sweep.new_tokens or () if new > 1]
    typed = sweep.config.levers.slowdown if sweep.config.levers else None
    plain = without_draft(case)
    for new, batch, context in product(tokens, sweep.batches, sweep.contexts):
        if batch < case.split.dp or context < new:
            continue
        sizes = {"B": batch, "S": context, "T": new}
        before = plain.times.at(plain.extents(plain.step(batch, context))).lower
        bound = float(case.times.at(case.extents(case.step(batch, context, new))).lower / before)
        yield {**sizes, **_accepted(bound - 1, new - 1), "time": LOWER_TIME}
        if typed is not None:
            row = {"time": ESTIMATED_TIME, "slowdown": float(typed)}
            yield {**sizes, **_accepted(bound - 1, new - 1), **row}
            continue
        first_s = exact_step_seconds(plain, plain.step(batch, context)).estimate
        last_s = exact_step_seconds(case, case.step(batch, context, new)).estimate
        if first_s is not None and last_s is not None:
            yield {**sizes, **_accepted(last_s / first_s - 1, new - 1), "time": ESTIMATED_TIME}


def _accepted(accepted: float, drafted: int) -> dict[str, Any]:
    """Threshold along accepted tokens: found, always, or never with all of them."""
    if accepted >= drafted:
        return {"outcome": NEVER, "critical_exact": accepted}
    if accepted < 0:
        return {"outcome": ALWAYS, "critical_exact": accepted}
    return {"outcome": FOUND, "side": FROM, "critical_exact": accepted}


# ---------------------------------------------------------------- servers apart


def pools_rows(sweep: ModelSweep, case: StepCase) -> Iterator[dict[str, Any]]:
    """Batches from which only separate prefill servers keep a TPOT, kernels one after another.

    By the bound prefill's math hides under decode's memory time: separate servers never pay.
    """
    requests, targets = sweep.config.requests or (), sweep.config.targets
    typed = sweep.config.levers.slowdown if sweep.config.levers else None
    for request, target in product(requests, targets.t_step_s if targets else ()):
        sizes = {"S": request.input + request.output, "target_s": float(target)}
        sizes |= {"input": request.input, "output": request.output}
        yield {**sizes, "outcome": NEVER, "time": LOWER_TIME}
        serial = request_seconds(case, request, SERIAL_TIME)
        prompts = prompts_seconds(case, request)
        tokens = case.split.dp * request.output
        prompt_s = Fraction(prompts.serial) / tokens
        yield {**sizes, **_pools(serial, prompt_s, exact(target), case), "time": SERIAL_TIME}
        if typed is not None:
            factor = exact(typed)
            row = _pools(serial, prompt_s, exact(target) / factor, case)
            yield {**sizes, **row, "time": ESTIMATED_TIME, "slowdown": float(typed)}
        elif prompts.estimate is not None and all(case.kernel_estimates):
            estimated = request_seconds(case, request, ESTIMATED_TIME)
            estimate_s = Fraction(prompts.estimate) / tokens
            yield {
                **sizes,
                **_pools(estimated, estimate_s, exact(target), case),
                "time": ESTIMATED_TIME,
            }


def _pools(
    step_s: Callable[[int], Fraction], prompt_s: Fraction, tpot_s: Fraction, case: StepCase
) -> dict[str, Any]:
    """Columns of separate servers at a TPOT."""
    pools = server_pools(step_s, prompt_s, tpot_s, case.split.dp)
    if pools is None:
        return {"outcome": NEVER, "limit": MEMORY.bound}
    return {
        "outcome": FOUND,
        "side": FROM,
        "critical": int(pools.mixed) + 1,
        "critical_exact": float(pools.mixed),
        "apart_B": float(pools.apart),
        "servers": float(pools.servers),
        "gain": float(pools.gain),
    }


def request_seconds(case: StepCase, request: Request, time: str) -> Callable[[int], Fraction]:
    """Time of a decode step at a request's mean context, by batch: sum over kernels [s]."""
    means: dict[str, int | Fraction] = {
        extent(window): mean_entries(request, window)
        for window in case.model.shape.attention_windows
        for extent in (Pairs, Entries)
    }
    parts = case.kernel_times if time == SERIAL_TIME else case.kernel_estimates

    @cache
    def seconds(batch: int) -> Fraction:
        extents = StepExtents(Step(batch, request.input + request.output, 1, case.routing))
        extents |= means
        total = Fraction(0)
        for kernel, times in zip(case.kernels, parts, strict=True):
            if times is not None:
                at = times.at(extents)
                longest = at.serial if time == SERIAL_TIME else at.lower + times.common.at(extents)
                total += kernel.count * longest
        return total

    return seconds


# ---------------------------------------------------------------- a chunk of a prompt


def chunk_rows(sweep: ModelSweep, case: StepCase) -> Iterator[dict[str, Any]]:
    """Most tokens of a prompt that ride in a decode step for free, or within a step time.

    Free: math and network of both take no longer than the memory time of decode alone. Within a
    target: those of both, overlapped with memory (`t_lower_s`), or the chunk's after decode's bound
    (`t_upper_s`). The head scores every token; the chunk's own cache traffic is left out.
    """
    levers, targets = sweep.config.levers, sweep.config.targets
    earlier = levers.earlier if levers else 0
    typed = levers.slowdown if levers else None
    limits = [None, *(targets.t_step_s if targets else ())]
    for batch, context in product(sweep.batches, sweep.contexts):
        if batch < case.split.dp:
            continue
        step = case.step(batch, context)
        calibrated = None if typed else _ratio(case, step)
        mixed = MixedStep(case, step, earlier)
        sizes = {"B": batch, "S": context}
        for limit in limits:
            for _, factor, columns in _slowdowns(typed, calibrated):
                target = None if limit is None else Fraction(str(limit)) / factor
                named = {**sizes, "target_s": None if limit is None else float(limit), **columns}
                yield {**mixed.largest(target), **named}
                if limit is not None and columns["time"] == LOWER_TIME:
                    yield {**mixed.largest(target, overlaps=False), **named, "time": UPPER_TIME}


class MixedStep:
    """Decode step with a chunk of a prompt on every replica.

    Args:
        case: The decode case.
        step: The decode step.
        earlier: Tokens of the prompt before the chunk [1].
    """

    def __init__(self, case: StepCase, step: Step, earlier: int = 0) -> None:
        self._case, self._earlier = scoring_all(case), earlier
        self._decode: Seconds = case.times.at(case.extents(step))

    def largest(self, target_s: Fraction | None, *, overlaps: bool = True) -> dict[str, Any]:
        """Largest chunk within a step time, as columns.

        Args:
            target_s: Limit on the step time; None: the bound of decode alone [s].
            overlaps: Whether the chunk overlaps with decode's memory time.
        """
        decode, alone = self._decode, self._decode.lower
        limit = alone if target_s is None else target_s
        if alone > limit or (target_s is None and decode[MEMORY.bound] < alone):
            longest = max(decode.by_bound, key=decode.by_bound.__getitem__)
            return {"outcome": NEVER, "limit": longest}
        added = decode.by_bound if overlaps else {}

        def spare(tokens: int) -> Fraction:
            """Time that is left with a chunk [s]."""
            times = self._chunk_seconds(tokens)
            longest = max(added.get(bound, Fraction(0)) + time_s for bound, time_s in times.items())
            return limit - longest if overlaps else limit - alone - longest

        if spare(1) < 0:
            return {"outcome": NEVER, "limit": MATH.bound}
        last = first(lambda tokens: spare(tokens) < 0, 1, MAX_SIZE // 2) - 1
        left, right = spare(last), spare(last + 1)
        real = float(last + left / (left - right))
        return {"outcome": FOUND, "side": TO, "critical": last, "critical_exact": real}

    def _chunk_seconds(self, tokens: int) -> Mapping[str, Fraction]:
        """Times of a chunk on every replica by bound, without its memory traffic [s]."""
        case = self._case
        step = case.step(case.split.dp, self._earlier + tokens, tokens)
        by_bound = case.times.at(case.extents(step)).by_bound
        return {bound: time_s for bound, time_s in by_bound.items() if bound != MEMORY.bound}


SOLVERS: Mapping[str, Callable[[ModelSweep, StepCase], Iterator[dict[str, Any]]]] = {
    "S_pull": pull_rows,
    "B_draft": draft_rows,
    "accepted_draft": accepted_rows,
    "B_pools": pools_rows,
    "chunk": chunk_rows,
}
"""Rows of a lever's thresholds, by axis."""
