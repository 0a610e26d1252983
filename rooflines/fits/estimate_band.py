"""An estimate's band, and what it rests on: for screens that say both beside a time.

A band comes from timings that the fit has not seen where there are some: for decode steps from runs
with each model left out in turn, of models with routed experts apart. It holds for the chips,
engines and sizes that were timed.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, NamedTuple

from rooflines.fits.calibration_files import ALL_ENGINES
from rooflines.fits.fit_keys import FitKey, Software
from rooflines.models.architecture import DECODE, TRAIN

if TYPE_CHECKING:
    from collections.abc import Collection
    from fractions import Fraction

    from rooflines.fits.calibration_files import Calibrations, FittedStep, FittedTraining

IN_FLIGHT = {"up to 8": (0, 8), "9 to 64": (8, 64), "more than 64": (64, math.inf)}
"""Requests in flight a replica, by name: above the first number, up to the second [1]."""

Basis = Literal["models left out", "fitted runs"]
Scope = Literal["chip and engine", "chip's kin and engine", "engine", "all engines", "chip"]


class EstimateBand(NamedTuple):
    """Band for a kind of step.

    Attributes:
        low, high: p10 and p90 for measured / estimated time [1].
        median: Median error |estimate / measured - 1| on the same runs [1].
        runs: Runs behind it [1].
        basis: Whether the fit left out these runs' models, or saw them.
        scope: What the runs share with the estimate: `engine` where the chip has no runs.
        untimed: Compute dtypes in which the engine has no matmul timings on the chip: their
            kernels are estimated by another engine, and the band does not cover that.
        source: Where the runs come from.
        chips: Chips in training steps, where they differ; empty: the same chip.
        models: Models in training steps with routed experts; empty: any.
        release: Newest release of the stack in training steps; None: not known.
    """

    low: float
    high: float
    median: float
    runs: int
    basis: Basis
    scope: Scope
    untimed: tuple[str, ...]
    source: str
    chips: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    release: str | None = None


def estimate_band(  # noqa: PLR0913, what a step is
    fits: Calibrations,
    chip: str,
    engine: str | None,
    dtypes: Collection[str] = (),
    kind: str = DECODE,
    *,
    experts: bool = False,
) -> EstimateBand | None:
    """Find the band for an estimate, and its basis; None where no run judges it.

    A decode step's is that of models without routed experts: those with them have another.

    Args:
        fits: The calibrations.
        chip: The chip's id.
        engine: The engine or, for training, the stack; None: any.
        dtypes: Compute dtypes in the step.
        kind: `decode`, `prefill`, which no run times alone, or `train`.
        experts: Whether the model has routed experts, in training.
    """
    name = Software.parse(engine or "").engine
    untimed = tuple(dtype for dtype in dtypes if fits.matmul(chip, [engine or ""], dtype) is None)
    if kind == TRAIN:
        fit = fits.training_of(chip, [engine or ""], next(iter(dtypes), None), experts=experts)
        if fit is None:
            return None
        timed_chips = () if fit.chips in ([], [chip]) else tuple(fit.chips)
        return _band(fit, "chip", (), left_out=fit.base == "math")._replace(
            chips=timed_chips,
            models=tuple(fit.models) if experts else (),
            release=fit.release,
        )
    if kind != DECODE:
        return None
    timed, *kin = fits.chips_behind(chip)
    keys: tuple[tuple[FitKey, Scope], ...] = (
        (FitKey.named(timed, name), "chip and engine"),
        *((FitKey.named(behind, name), "chip's kin and engine") for behind in kin),
        (FitKey.named(None, name), "engine"),
        (FitKey.named(None, ALL_ENGINES), "all engines"),
    )
    for key, scope in keys:
        step = fits.by_key["steps"].get(key, {}).get(DECODE)
        if step is not None:
            left_out = step.held_out is not None
            return _band(step, scope, untimed, left_out=left_out)
    return None


def waiting_of(
    fits: Calibrations, chip: str, engine: str | None
) -> dict[str, tuple[float, float, float]]:
    """Measured TTFT over the estimated prefill, by requests in flight a replica.

    Returns:
        p10, median and p90 by a range in words, on the chip or else by the engine; empty where no
        run tells. It never enters an estimate: TTFT is at least its bound.
    """
    name = Software.parse(engine or "").engine
    for place in (chip, None):
        step = fits.by_key["steps"].get(FitKey.named(place, name), {}).get(DECODE)
        if step is not None and step.waiting:
            return dict(step.waiting)
    return {}


def in_flight_range(requests: Fraction) -> str:
    """Name in `IN_FLIGHT` for a number of requests in flight a replica."""
    return next(name for name, (above, to) in IN_FLIGHT.items() if above < requests <= to)


def _band(
    fit: FittedStep | FittedTraining, scope: Scope, untimed: tuple[str, ...], *, left_out: bool
) -> EstimateBand:
    """Band in a fit, which has one."""
    ((low, high),) = list(fit.bands.values())[:1]
    errors = (fit.held_out or fit.fitted) if left_out else fit.fitted
    basis: Basis = "models left out" if left_out else "fitted runs"
    return EstimateBand(low, high, errors.median, errors.n, basis, scope, untimed, fit.source)
