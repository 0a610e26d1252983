"""Exact step times: bound, kernels one after another, and estimate."""

from __future__ import annotations

from fractions import Fraction
from operator import mul
from typing import TYPE_CHECKING, NamedTuple

from rooflines.models.architecture import PREFILL
from rooflines.sweep.pipelines import token_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflines.models.groups import Step, StepExtents
    from rooflines.sweep.step_sweep import StepCase


class StepSeconds(NamedTuple):
    """Step times on one chip.

    Attributes:
        lower: Bound: max over resources [s].
        serial: Kernels one after another: sum over kernels of their bounds [s].
        estimate: Calibrated time [s]; None if a kernel has no calibration.
    """

    lower: float
    serial: float
    estimate: float | None


def exact_step_seconds(case: StepCase, step: Step) -> StepSeconds:
    """Compute a serving step's times in fractions, without a table.

    t_serial = sum over kernels(count * max over resources); t_estimate = sum over kernels(count *
    (common + max over pieces)). With pipeline stages see `pipelines`.

    Args:
        case: The case.
        step: Its sizes.
    """
    extents, pipeline = case.extents(step), case.pipeline
    if pipeline is None:
        return _float_seconds(*_exact_seconds(case, extents))
    stages = [_exact_seconds(stage, extents) for stage, _ in pipeline.stages]
    lowers, serials, estimates = zip(*stages, strict=True)
    hops_s, counts = pipeline.hops_s.at(extents), pipeline.counts

    def once(times: Sequence[Fraction]) -> Fraction:
        time: Fraction = sum(map(mul, times, counts), hops_s)
        return time

    if case.phase == PREFILL:  # by the bound a prompt is in chunks of any size
        lower = max(lowers) + pipeline.latency_s
        return _float_seconds(lower, once(serials), None if None in estimates else once(estimates))
    batches = step.B / case.split.stage_batch(step.B)

    def token(times: Sequence[Fraction]) -> Fraction:
        time: Fraction = token_time(times, counts, hops_s, batches)
        return time

    return _float_seconds(
        token(lowers), token(serials), None if None in estimates else token(estimates)
    )


def _float_seconds(lower: Fraction, serial: Fraction, estimate: Fraction | None) -> StepSeconds:
    return StepSeconds(float(lower), float(serial), None if estimate is None else float(estimate))


def _exact_seconds(
    case: StepCase, extents: StepExtents
) -> tuple[Fraction, Fraction, Fraction | None]:
    """Bound, serialized time and estimate, over a case's kernels [s]."""
    serial = sum(
        (
            kernel.count * times.at(extents).serial
            for kernel, times in zip(case.kernels, case.kernel_times, strict=True)
        ),
        Fraction(0),
    )
    calibrated = [times for times in case.kernel_estimates if times is not None]
    estimate = None
    if len(calibrated) == len(case.kernels):
        estimate = sum(
            (
                kernel.count * (times.common.at(extents) + times.at(extents).lower)
                for kernel, times in zip(case.kernels, calibrated, strict=True)
            ),
            Fraction(0),
        )
    return case.times.at(extents).lower, serial, estimate
