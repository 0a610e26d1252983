"""Steady decode steps in an engine's log: median sequences, step time and context."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from statistics import median, quantiles
from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.measured.engine_logs import EngineLog, LogLine

STEADY_SHARE = 0.1
"""Change of the running sequences up to which a load counts as the same [1]."""

MIN_SPREAD_LINES = 10
"""Lines from which on a spread is said [1]."""

MAX_LOADS = 8
"""Loads that a message names [1]."""

IDLE, PROMPTS, CHANGED, OTHER_LOAD = "idle", "with prompts", "load changed", "at another load"
"""Reasons why a line is left out."""


@dataclass(frozen=True, kw_only=True)
class LoggedStep:
    """A decode step by the medians over a log's steady lines.

    Attributes:
        replicas: Replicas that wrote lines [1].
        sequences: Sequences on all replicas [1].
        step_s: Step time [s].
        spread_s: Its tenth and ninetieth percentile over the lines [s]; None: too few lines.
        tokens_per_s: Output tokens per second on all replicas [1/s].
        accepted: Tokens that a step yields per sequence [1]; None: one.
        context: Tokens per sequence in the KV cache [1]; None: not logged.
        context_digit: Half a unit in the share's last digit, in tokens per sequence [1].
        cache_share: KV cache share in use [1]; None: not logged.
        waiting: Sequences in the queue [1]; None: not logged.
        lines: Lines about decode steps [1].
        steady: Lines behind the medians [1].
        left_out: Others by reason [1].
        other_loads: Least and largest number of running sequences at other loads [1].
        with_prompts: True if each steady line also had prompts, whose time is inside the step's.
    """

    replicas: int
    sequences: int
    step_s: float
    spread_s: tuple[float, float] | None
    tokens_per_s: float
    accepted: float | None
    context: float | None
    context_digit: float
    cache_share: float | None
    waiting: float | None
    lines: int
    steady: int
    left_out: Mapping[str, int]
    other_loads: tuple[int, int] | None
    with_prompts: bool


def logged_step(log: EngineLog, running: int | None = None) -> LoggedStep:
    """Decode step by steady lines' medians: sequences alike, the commonest load.

    Lines with prompts count only where no other is steady.

    step_s = running * accepted / tokens_per_s, or the line's time;
    context = tokens in the KV cache / running. Sequences and tokens/s are sums over replicas, the
    rest are medians over all lines.

    Args:
        log: The log.
        running: Sequences on a replica at the load to take [1]; None: the load with the most lines.

    Raises:
        RooflinesError: No line has sequences that decode, or none is at the load.
    """
    left_out: Counter[str] = Counter()
    decoding = [line for line in log.lines if _decodes(line)]
    left_out[IDLE] = len(log.lines) - len(decoding)
    if not decoding:
        problem = f"has no step that decodes: all {len(log.lines)} lines are idle"
        raise RooflinesError("", problem, "give the log of a run under load")
    steady_lines = _unchanged(log.lines, with_prompts=False)
    with_prompts = not steady_lines
    if with_prompts:
        steady_lines = _unchanged(log.lines, with_prompts=True)
    else:
        left_out[PROMPTS] = sum(line.prompts for line in decoding)
    left_out[CHANGED] = len(decoding) - left_out[PROMPTS] - len(steady_lines)
    if not steady_lines:
        problem = "has no steady line: sequences change in each by over 10 %"
        raise RooflinesError("", problem, "give the log of a longer run, at one load")
    load = running or _commonest_load([line.running for line in steady_lines])
    steady = [line for line in steady_lines if _alike(line.running, load)]
    other_counts = [line.running for line in steady_lines if not _alike(line.running, load)]
    if not steady:
        loads = ", ".join(f"{number:,}" for number in sorted(set(other_counts))[:MAX_LOADS])
        problem = f"is {load:,}, which no steady line has"
        raise RooflinesError("--running", problem, f"choose a load such as {loads}")
    left_out[OTHER_LOAD] = len(other_counts)
    return _medians(log, steady, left_out, other_counts, with_prompts=with_prompts)


def _decodes(line: LogLine) -> bool:
    """Check for sequences that decode."""
    return line.running > 0 and (line.tokens_per_s or line.step_s or 0.0) > 0


def _alike(running: int, load: int) -> bool:
    """Check for the same load."""
    return abs(running - load) <= STEADY_SHARE * load


def _unchanged(lines: Sequence[LogLine], *, with_prompts: bool) -> list[LogLine]:
    """Lines with sequences that decode, as many as in the replica's line before.

    Args:
        lines: All lines.
        with_prompts: True to keep lines with prompts.
    """
    steady_lines = []
    before: dict[tuple[str, int], int] = {}
    for line in lines:
        is_alike = _alike(before.get(line.stream, line.running), line.running)
        before[line.stream] = line.running
        if is_alike and _decodes(line) and (with_prompts or not line.prompts):
            steady_lines.append(line)
    return steady_lines


def _commonest_load(loads: Sequence[int]) -> int:
    """Load with the most lines alike, the largest if several have as many."""
    counts = Counter(loads)
    lines_alike = {
        load: sum(number for count_load, number in counts.items() if _alike(count_load, load))
        for load in counts
    }
    return max(counts, key=lambda load: (lines_alike[load], counts[load], load))


def _medians(
    log: EngineLog,
    steady: Sequence[LogLine],
    left_out: Counter[str],
    other_counts: Sequence[int],
    *,
    with_prompts: bool,
) -> LoggedStep:
    """Medians over steady lines."""
    logged = [line.accepted for line in steady if line.accepted is not None] or log.accepted
    accepted = median(logged) if logged else None
    times = [_step_s(line, accepted) for line in steady]
    tenths = quantiles(times, n=10) if len(times) >= MIN_SPREAD_LINES else None
    streams = [
        [*group]
        for _, group in groupby(sorted(steady, key=lambda line: line.stream), lambda x: x.stream)
    ]
    sequences = sum(round(median(line.running for line in lines)) for lines in streams)
    rates = [
        median((accepted or 1.0) * line.running / _step_s(line, accepted) for line in lines)
        for lines in streams
    ]
    contexts = [
        tokens / line.running
        for line in steady
        if (tokens := _cached_tokens(line, log.cache_tokens)) is not None
    ]
    digits = [
        line.cache_digit * log.cache_tokens / line.running
        for line in steady
        if line.cached_tokens is None and log.cache_tokens
    ]
    shares = [line.cache_share for line in steady if line.cache_share is not None]
    waiting = [line.waiting for line in steady if line.waiting is not None]
    return LoggedStep(
        replicas=len(streams),
        sequences=sequences,
        step_s=median(times),
        spread_s=None if tenths is None else (tenths[0], tenths[-1]),
        tokens_per_s=sum(rates),
        accepted=accepted,
        context=median(contexts) if contexts else None,
        context_digit=median(digits) if digits else 0.0,
        cache_share=median(shares) if shares else None,
        waiting=median(waiting) if waiting else None,
        lines=len(log.lines),
        steady=len(steady),
        left_out={reason: number for reason, number in left_out.items() if number},
        other_loads=(min(other_counts), max(other_counts)) if other_counts else None,
        with_prompts=with_prompts,
    )


def _step_s(line: LogLine, accepted: float | None) -> float:
    """Step time [s]: as logged, or sequences * tokens / rate."""
    if line.step_s is not None:
        return line.step_s
    tokens = line.running * (line.accepted or accepted or 1.0)
    return tokens / (line.tokens_per_s or 0.0)


def _cached_tokens(line: LogLine, cache_tokens: int | None) -> float | None:
    """Tokens in the KV cache [1]: as logged, or share * size; None: neither is known, or zero."""
    if line.cached_tokens:
        return float(line.cached_tokens)
    if line.cache_share and cache_tokens:
        return line.cache_share * cache_tokens
    return None
