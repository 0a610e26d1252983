"""Exact prompt times: on an idle server, on every replica, and what they add to a step."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from itertools import zip_longest
from operator import mul
from typing import TYPE_CHECKING, NamedTuple

from rooflines.models.groups import Step
from rooflines.models.step_kernels import is_expert_parallel
from rooflines.sweep.exact_times import StepSeconds, exact_step_seconds
from rooflines.theory.resources import MATH, MEMORY, NETWORK, work_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.config.model_fields import Draft, Request
    from rooflines.sweep.step_sweep import StepCase
    from rooflines.theory.times import Times


class PromptWorks(NamedTuple):
    """Resource times that prompts, one on every replica, add to steps that read them.

    The steps read the weights and take the hops anyway.

    Attributes:
        math_s: Matrix units [s].
        cache_s: Memory: their KV cache, written or read once [s].
        sending_s: Bytes over bandwidth, network by network, inner first [s].
    """

    math_s: float
    cache_s: float
    sending_s: tuple[float, ...]


def prompt_step(case: StepCase, request: Request) -> Step:
    """Step that reads a prompt on every replica; cached tokens are not computed."""
    return Step(case.split.dp, request.input, request.computed, case.routing)


def prompt_works(case: StepCase, request: Request) -> PromptWorks:
    """Prompt works, a prompt on every replica.

    Args:
        case: Decode or prefill case.
        request: The request.
    """
    return chunk_works(case.prefill, prompt_step(case, request))


def chunk_works(prefill: StepCase, step: Step) -> PromptWorks:
    """Works that prompts, or their chunks, have.

    Args:
        prefill: Prefill case.
        step: Its sizes.
    """
    extents = prefill.extents(step)
    times = prefill.times.at(extents)
    parts = [(kernel.count, kernel) for kernel in prefill.kernels]
    moved = sum(
        (count * kernel.work("memory_bytes").at(extents) for count, kernel in parts), Fraction(0)
    )
    cached = sum(
        (count * kernel.work("kv_cache_bytes").at(extents) for count, kernel in parts), Fraction(0)
    )
    cache_s = times[MEMORY.bound] * cached / moved if moved else Fraction(0)
    sending = tuple(float(poly.at(extents)) for poly in prefill.collective_times.sending)
    return PromptWorks(float(times[MATH.bound]), float(cache_s), sending)


def prompts_seconds(case: StepCase, request: Request) -> StepSeconds:
    """Prompt times on an idle server, a prompt on every replica.

    Args:
        case: Decode or prefill case.
        request: The request.
    """
    return exact_step_seconds(case.prefill, prompt_step(case, request))


def prompts_per_s(case: StepCase, request: Request) -> tuple[float, float, float | None]:
    """Prompts a second that a server reads at most: dp / t, by each time [1/s].

    By the estimate a prompt takes the engine's factor besides, as between decode steps.

    Args:
        case: Decode case.
        request: The request.

    Returns:
        By the bound, kernels one after another, and the estimate; None without one.
    """
    times, engine = slowest_stage(case, request), case.engine
    estimate = None
    if times.estimate is not None and engine is not None:
        estimate = case.split.dp / (engine.prompts * times.estimate)
    return case.split.dp / times.lower, case.split.dp / times.serial, estimate


def slowest_stage(case: StepCase, request: Request) -> StepSeconds:
    """Slowest stage's time, with a prompt on every replica: a server's period.

    Args:
        case: Decode or prefill case.
        request: The request.
    """
    if case.pipeline is None:
        return prompts_seconds(case, request)
    by_stage = [prompts_seconds(stage, request) for stage, _ in case.pipeline.stages]
    lower, serial, estimates = zip(*by_stage, strict=True)
    calibrated = [time for time in estimates if time is not None]
    estimate = max(calibrated) if len(calibrated) == len(estimates) else None
    return StepSeconds(max(lower), max(serial), estimate)


def prompt_seconds(case: StepCase, request: Request) -> StepSeconds:
    """Prompt time on an idle server, alone: time to first token.

    With replicas a single one has the prompt. Its chips take as long as with a prompt on every
    replica, but the experts, which all replicas share, have one prompt's tokens. Through pipeline
    stages: by the bound the slowest one, otherwise all in turn, see `pipelines`.

    Args:
        case: Decode or prefill case.
        request: The request.
    """
    prefill, together = case.prefill, prompt_step(case, request)
    if case.split.dp == 1 or case.split.parts == 1:
        return exact_step_seconds(prefill, together)
    if prefill.pipeline is not None:
        return _prompt_through_stages(prefill, request)
    alone = Step(1, together.S, together.T, together.routing)
    single, every = prefill.extents(alone), prefill.extents(together)
    shared = {
        group.name
        for group, _ in prefill.workload.local_kernels
        if is_expert_parallel(group, prefill.sharing)
    }
    extents = [single if kernel.name in shared else every for kernel in prefill.kernels]
    bounds = [
        sum(
            (
                work_time(resource, [(kernel.count, kernel)], prefill.machine).at(at)
                for kernel, at in zip(prefill.kernels, extents, strict=True)
            ),
            Fraction(0),
        )
        for resource in (MATH, MEMORY)
    ]
    lower = max(*bounds, prefill.times.by_bound[NETWORK.bound].at(every))
    serial, estimate = Fraction(0), Fraction(0)
    is_calibrated = None not in prefill.kernel_estimates
    for kernel, at, times, calibrated in zip(
        prefill.kernels, extents, prefill.kernel_times, prefill.kernel_estimates, strict=True
    ):
        sending = times.by_bound[NETWORK.bound].at(every)
        serial += kernel.count * max(times.at(at).serial, sending)
        if calibrated is not None:
            largest = _larger_with_network(calibrated, at, every)
            estimate += kernel.count * (calibrated.common.at(at) + largest)
    return StepSeconds(float(lower), float(serial), float(estimate) if is_calibrated else None)


def _prompt_through_stages(prefill: StepCase, request: Request) -> StepSeconds:
    """Prompt time through pipeline stages, alone [s]."""
    pipeline = prefill.pipeline
    if pipeline is None:
        return prompt_seconds(prefill, request)
    times = [prompt_seconds(stage, request) for stage, _ in pipeline.stages]
    lower, serial, estimates = zip(*times, strict=True)
    hops_s = float(pipeline.hops_s.at(prefill.extents(prompt_step(prefill, request))))
    in_turn = partial(sum, start=hops_s)
    calibrated = [time for time in estimates if time is not None]
    return StepSeconds(
        max(lower) + float(pipeline.latency_s),
        in_turn(map(mul, pipeline.counts, serial)),
        in_turn(map(mul, pipeline.counts, calibrated)) if len(calibrated) == len(times) else None,
    )


def _larger_with_network(
    times: Times, extents: Mapping[str, Fraction | int], every: Mapping[str, Fraction | int]
) -> Fraction:
    """Largest time by bound; the network's where every replica has a prompt [s]."""
    return max(
        time.at(every if bound == NETWORK.bound else extents)
        for bound, time in times.by_bound.items()
    )


class LongestStep(NamedTuple):
    """Longest step on a mixed server: all its sequences, and a prompt's chunk on every replica.

    Attributes:
        seconds: Its times [s].
        share: Share among steps [1].
    """

    seconds: StepSeconds
    share: float

    def seconds_on(self, basis: str) -> float | None:
        """Its time on a basis: `bound`, `serialized` or `estimate` [s]."""
        times = self.seconds
        return {"bound": times.lower, "serialized": times.serial}.get(basis, times.estimate)


def longest_step(
    case: StepCase, request: Request, batch: int, tokens: int, draft: Draft | None = None
) -> LongestStep | None:
    """Step with a replica's sequences and a prompt's first chunk, as many tokens as fit.

    n = tokens - sequences; by the bound the largest resource over both, weights read once.

    Args:
        case: Decode case.
        request: The request.
        batch: Sequences in decode on all replicas [1].
        tokens: Tokens in a replica's step, at most [1].
        draft: Speculative decoding; None: one token a step.

    Returns:
        None where the sequences leave no room.
    """
    new, yielded = (1, 1.0) if draft is None else (draft.tokens + 1, 1.0 + draft.accepted)
    sequences = -(-batch // case.split.dp)
    room = tokens - sequences * new
    if room < 1:
        return None
    chunk = min(room, request.computed)
    context = request.input - request.computed + chunk
    prefill = case.prefill
    added = Step(case.split.dp, context, chunk, case.routing)
    middle = Step(batch, request.input + (request.output + 1) // 2 + new - 1, new, case.routing)
    step, alone = exact_step_seconds(case, middle), exact_step_seconds(prefill, added)
    works = chunk_works(prefill, added)
    times = case.times.at(case.extents(middle))
    sends = zip_longest(
        (float(poly.at(case.extents(middle))) for poly in case.collective_times.sending),
        works.sending_s,
        fillvalue=0.0,
    )
    lower = max(
        float(times[MATH.bound]) + works.math_s,
        float(times[MEMORY.bound]) + works.cache_s,
        float(times[NETWORK.bound]),
        *(first + second for first, second in sends),
    )
    estimate = None
    if step.estimate is not None and alone.estimate is not None and case.engine is not None:
        estimate = step.estimate + case.engine.prompts * alone.estimate
    chunks = -(-request.computed // chunk)
    share = min(1.0, batch * yielded / (case.split.dp * request.output) * chunks)
    return LongestStep(StepSeconds(lower, step.serial + alone.serial, estimate), share)
