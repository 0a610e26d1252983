"""Calibrated times of kernels asked alone: attention, experts, collectives."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.answers.phrases import BEYOND
from rooflines.basics.text import seconds
from rooflines.evaluation.operation_rows import ENGINE_AND_SIZES, OTHER_ENGINE, OTHER_SIZES
from rooflines.fits.calibration_choice import CalibrationChoice, auto_softwares
from rooflines.fits.calibration_files import (
    AUTO_CALIBRATION,
    REFERENCE_DTYPE,
    shipped_calibrations,
)
from rooflines.hardware.entries import MAIN_MEMORY
from rooflines.kinds.formulas import compile_formulas, names_in
from rooflines.kinds.timed_kernels import amounts_at, timed_form, timed_kernel
from rooflines.sweep.calibrated_times import calibrated_collective, calibrated_times
from rooflines.theory.operation import MATRIX
from rooflines.theory.poly import constant
from rooflines.theory.resources import NETWORK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.fits.calibration_files import Calibrations
    from rooflines.hardware.entries import Chip
    from rooflines.kinds.collectives import PlacedCollective
    from rooflines.kinds.kernel_forms import KernelForm
    from rooflines.theory.kernel import Kernel
    from rooflines.theory.times import Band, FitRange

UNTIMED = "no timings of this kernel are fitted: the bound alone"
"""Reason that a kind has no estimate."""

NO_SIZES: Mapping[str, Fraction | int] = {}
"""Extents of constants."""


@dataclass(frozen=True)
class KernelEstimate:
    """Calibrated time of a kernel or a collective.

    Attributes:
        time_s: The estimate [s].
        band: p10 and p90 of its timings over it [1]; None: unknown.
        software: Software whose timings are fitted.
        origin: Calibration in words.
        extrapolated: How the case lies outside the timings; empty: inside.
    """

    time_s: float
    band: Band | None
    software: str
    origin: str
    extrapolated: str

    def text(self) -> str:
        """Estimate with its band in words."""
        if self.band is None:
            return seconds(self.time_s)
        low, high = (seconds(self.time_s * end) for end in self.band)
        return f"{seconds(self.time_s)}, {low} to {high} (80% of the timings)"

    def columns(self) -> dict[str, Any]:
        """Columns of a row."""
        low, high = self.band or (None, None)
        return {
            "t_estimate_s": self.time_s,
            "t_estimate_p10_s": None if low is None else self.time_s * low,
            "t_estimate_p90_s": None if high is None else self.time_s * high,
            "estimate_extrapolated": self.extrapolated or None,
        }


class KernelChip(NamedTuple):
    """Chip that a question asks about, with the calibrations that it may use.

    Attributes:
        name: Its id.
        chip: Its entry.
        memory: The memory level that feeds the units.
        network: Interconnects, inner first; None: the chip's first that joins the chips.
        calibrations: Fits by chip and software; None: those of the package.
        calibration: Software, the first with a fit counts; None: no estimate.
    """

    name: str
    chip: Chip
    memory: str = MAIN_MEMORY
    network: Sequence[str] | None = None
    calibrations: Calibrations | None = None
    calibration: Sequence[str] | None = (AUTO_CALIBRATION,)

    def choice(self, compute: str, networks: Sequence[str] = ()) -> CalibrationChoice:
        """Calibrations that apply: those named, else the first engine with fits."""
        catalogue, softwares = self.calibrations or shipped_calibrations(), self.calibration
        if softwares is not None and [*softwares] == [AUTO_CALIBRATION]:
            softwares = auto_softwares(catalogue, self.name, self.chip, [compute])
        return CalibrationChoice(
            catalogue, softwares, self.name, self.chip, MATRIX, self.memory, (*networks,)
        )


def kernel_estimate(
    form: KernelForm, complete: Mapping[str, int], target: KernelChip
) -> KernelEstimate | None:
    """Calibrated time of attention or experts; None: no fit applies.

    Args:
        form: The kernel.
        complete: Its complete sizes [1].
        target: The chip, with its calibrations.
    """
    if target.calibration is None:
        return None
    kernel = _timed_kernel(form, complete)
    if kernel is None:
        return None
    choice = target.choice(kernel.compute)
    fit = choice.attention(kernel)
    if kernel.experts:
        fit = choice.experts(kernel.experts, kernel.compute)
    rates = target.chip.chip_rates(MATRIX, target.memory, target.chip.efficiency)
    times = calibrated_times(kernel, rates, choice) if fit is not None else None
    if fit is None or times is None:
        return None
    exact_times = times.at(NO_SIZES)
    bound = max(exact_times.by_bound, key=lambda key: exact_times.by_bound[key])
    time = exact_times.lower + times.common.at(NO_SIZES)
    sized = times.ranges.get("")
    sizes = {} if sized is None else {key: poly.at(NO_SIZES) for key, poly in sized.sizes.items()}
    software = next(iter(choice.fits_of_kernel(kernel)), "").partition(" ")[0]
    return _estimate(
        time, times.bands.get(bound), fit.reach, sizes, software, target.name, kernel.compute
    )


def _estimate(  # noqa: PLR0913, PLR0917, the parts of an estimate
    time: Fraction,
    band: Band | None,
    reach: FitRange | None,
    sizes: Mapping[str, Fraction],
    software: str,
    chip: str,
    compute: str,
) -> KernelEstimate:
    """Estimate with the widest band that applies."""
    bands, kinds = [band] if band else [], []
    if reach is not None:
        outside = any(
            not low <= sizes[key] <= high
            for key, (low, high) in reach.sizes.items()
            if key in sizes
        )
        if outside:
            kinds.append(OTHER_SIZES)
            bands += [reach.out_of_range_band] if reach.out_of_range_band else []
        if reach.from_other_engine:
            kinds.append(OTHER_ENGINE)
            bands += [reach.other_engine_band] if reach.other_engine_band else []
    extrapolated = ENGINE_AND_SIZES if len(kinds) > 1 else "".join(kinds)
    widest = (min(low for low, _ in bands), max(high for _, high in bands)) if bands else None
    origin = f"calibrated to {software} on {chip}" + (f" in {compute}" if compute else "")
    if extrapolated:
        origin += f"; {BEYOND[extrapolated]}, so the band is wider"
    return KernelEstimate(float(time), widest, software, origin, extrapolated)


def _timed_kernel(form: KernelForm, complete: Mapping[str, int]) -> Kernel | None:
    """Kernel with constant works as calibrations read it; None: they time no such kernel."""
    timed = timed_form(form)
    if timed is None:
        return None
    names = names_in(timed.condition)
    holds = compile_formulas([timed.condition], {}, names)(*(complete[name] for name in names))[0]
    if not holds:
        return None
    shares_heads = complete.get("N", 0) > complete.get("K", 0)
    return timed_kernel(form, amounts_at(form, complete), shares_heads=shares_heads)


def collective_estimate(
    placed: PlacedCollective, payload: int, target: KernelChip
) -> KernelEstimate | None:
    """Calibrated time of a collective; None: no fit applies.

    Args:
        placed: The collective on its chips.
        payload: The whole tensor, in an all-to-all what one chip holds [byte].
        target: The chip, with its calibrations.
    """
    if target.calibration is None:
        return None
    choice = target.choice(REFERENCE_DTYPE, placed.names)
    match = choice.first_fit("collectives", placed.kind)
    times = calibrated_collective(placed.kind, constant(payload), placed.route, choice)
    if times is None or match is None:
        return None
    time = times.at(NO_SIZES).lower
    reach = times.ranges.get(NETWORK.bound)
    sizes = {"bytes": Fraction(payload), "shards": Fraction(prod(placed.route.axes))}
    band = times.bands.get(NETWORK.bound)
    return _estimate(time, band, reach and reach.fit_range, sizes, match[0], target.name, "")
