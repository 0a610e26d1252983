"""Exact step times: bound, kernels one after another, and estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rooflines.models.groups import Step
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
    (common + max over pieces)).

    Args:
        case: The case.
        step: Its sizes.
    """
    extents = case.extents(step)
    serial = sum(
        kernel.count * times.at(extents).serial
        for kernel, times in zip(case.kernels, case.kernel_times, strict=True)
    )
    calibrated = [times for times in case.kernel_estimates if times is not None]
    estimate = None
    if len(calibrated) == len(case.kernels):
        estimate = float(
            sum(
                kernel.count * (times.common.at(extents) + times.at(extents).lower)
                for kernel, times in zip(case.kernels, calibrated, strict=True)
            )
        )
    return StepSeconds(float(case.times.at(extents).lower), float(serial), estimate)
