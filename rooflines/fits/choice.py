"""Choice of a calibration: by the software of a sweep, or the chip's own."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from rooflines.basics.numbers import exact
from rooflines.catalogue.entries import MAIN_MEMORY, shares_of
from rooflines.fits.entries import UNSCALED
from rooflines.fits.form import Numbers
from rooflines.model.operation import MATRIX
from rooflines.model.times import FitReach

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rooflines.catalogue.entries import Calibration, Chip
    from rooflines.fits.collective_form import CollectiveNumbers
    from rooflines.fits.entries import (
        Calibrations,
        Fitted,
        FittedCollective,
        FittedMatmul,
        FittedStep,
    )
    from rooflines.model.kernel import Kernel
    from rooflines.model.operation import Unit
    from rooflines.model.times import Band

    Fit = TypeVar("Fit", bound=Fitted)


@dataclass(frozen=True)
class CalibrationFit:
    """The fitted numbers of a workload on a chip.

    Attributes:
        numbers: Of the matmul; `network` counts where there is no `collective`.
        collective: Of the collective, if the workload has one over one interconnect; None: it has
            not, or it is not fitted.
        bands: By bound of the estimate; a bound without a band is left out.
        reach: How far its sizes go, of matmuls.
    """

    numbers: Numbers
    collective: CollectiveNumbers | None = None
    bands: Mapping[str, Band] = field(default_factory=dict)
    reach: FitReach | None = None


@dataclass(frozen=True)
class CalibrationChoice:
    """The calibrations that apply to the rows of a chip.

    Fits are of the matrix unit and the main memory. Those of collectives are of a chip's first
    interconnect.

    Attributes:
        calibrations: By chip and software.
        softwares: Software, the first with a fit counts; none: the chip's own calibration.
        chip: The chip's id.
        entry: Its entry.
        unit, memory: What the rows run on.
        networks: The interconnects, inner first.
    """

    calibrations: Calibrations
    softwares: Sequence[str]
    chip: str
    entry: Chip
    unit: Unit
    memory: str
    networks: tuple[str, ...]

    def fit(self, compute: str, collective: str | None = None) -> CalibrationFit | None:
        """The calibration of operations in a compute dtype; None without.

        Args:
            compute: The compute dtype.
            collective: The collective of the operation, if it has one.
        """
        if not self.softwares:
            own = (self.entry.calibration or {}).get(compute)
            return CalibrationFit(_numbers(own)) if own else None
        matmul = self._matmul(compute)
        if matmul is None or (self.unit, self.memory) != (MATRIX, MAIN_MEMORY):
            return None
        sent = None if collective is None else self.collective(collective)
        bands = bands_of(matmul) | (bands_of(sent) if sent else {})
        foreign = self.calibrations.matmul(self.chip, self.softwares[:1], compute) is None
        reach = FitReach(matmul.sizes, matmul.outside, matmul.elsewhere, foreign=foreign)
        return CalibrationFit(matmul.numbers, sent.numbers if sent else None, bands, reach)

    def _matmul(self, compute: str) -> FittedMatmul | None:
        return self.calibrations.matmul(self.chip, self.softwares, compute)

    def untimed(self, numbers: Numbers) -> Numbers:
        """The numbers of kernels that no timings are of, such as experts; of form `max`.

        Args:
            numbers: Those of matmuls in the compute dtype, whose share of the peak counts.

        Returns:
            With the overhead and the share of the memory rate of matmuls in `UNSCALED`, where the
            software has them: those of a narrow dtype include scales and the quantization of x.
        """
        wide = self._matmul(UNSCALED)
        if wide is None:
            return numbers.plain
        kept = {name: getattr(wide.numbers, name) for name in ("memory", "overhead_s")}
        return numbers.plain.replaced(kept)

    def attention(self, phase: str, compute: str) -> CalibrationFit | None:
        """The calibration of grouped-query attention; None without.

        Args:
            phase: `decode` or `prefill`.
            compute: The compute dtype.
        """
        if (self.unit, self.memory) != (MATRIX, MAIN_MEMORY):
            return None
        found = self.calibrations.attention_of(self.chip, self.softwares, phase, compute)
        return CalibrationFit(found.numbers, None, bands_of(found)) if found else None

    def step(self) -> FittedStep | None:
        """What an engine adds to kernels of decode: the first software with fits of the chip."""
        named = self._first(CalibrationChoice._step)
        return named[1] if named else None

    def _step(self) -> FittedStep | None:
        (software,) = self.softwares
        if software not in self.calibrations.softwares_of(self.chip):
            return None
        return self.calibrations.step(self.chip, software.partition("-")[0])

    def of_kernel(self, kernel: Kernel) -> dict[str, Fitted]:
        """The fits that the estimate of a kernel is by, each with its software and what it is of.

        Args:
            kernel: A kernel of a step.
        """
        found: list[tuple[str, tuple[str, Fitted] | None]] = []
        if kernel.engine:
            found.append(("steps", self._first(CalibrationChoice._step)))
        else:
            of, phase = kernel.compute, kernel.attends
            attention = phase and self._first(
                lambda one: one.calibrations.attention_of(one.chip, one.softwares, phase, of)
            )
            if attention:
                found.append(("attention", attention))
            else:
                dtypes = dict.fromkeys([of] if kernel.is_matmul else [of, UNSCALED])
                matmuls = {
                    each: partial(CalibrationChoice._matmul, compute=each) for each in dtypes
                }
                found += [(each, self._first(find)) for each, find in matmuls.items()]
        kinds = dict.fromkeys(each.kind for each in kernel.transfers)
        found += [
            (kind, self._first(partial(CalibrationChoice.collective, kind=kind))) for kind in kinds
        ]
        return {f"{named[0]} {of}": named[1] for of, named in found if named}

    def is_timed(self, kernel: Kernel) -> bool:
        """Whether a fit is of timings of such kernels, not only of matmuls: see `untimed`."""
        own = kernel.attends and self.attention(kernel.attends, kernel.compute)
        return kernel.engine or kernel.is_matmul or bool(own)

    def _first(self, find: Callable[[CalibrationChoice], Fit | None]) -> tuple[str, Fit] | None:
        """The first software that has a fit, and the fit."""
        alone = ((name, find(replace(self, softwares=[name]))) for name in self.softwares)
        return next(((name, fit) for name, fit in alone if fit), None)

    def collective(self, kind: str) -> FittedCollective | None:
        """The fit of a collective over the interconnects; None without."""
        if not self.networks or self.networks != tuple(self.entry.networks)[:1]:
            return None
        return self.calibrations.collective(self.chip, self.softwares, kind)

    def contents(self, computed: Iterable[str]) -> list[str]:
        """Contents of the timings besides the matmul, of the fits in these compute dtypes."""
        fits = map(self._matmul, computed)
        return list(dict.fromkeys(fit.contents for fit in fits if fit and fit.contents))

    def collective_software(self, kind: str) -> str | None:
        """The software whose fit of a collective counts; None without."""
        named = self._first(partial(CalibrationChoice.collective, kind=kind))
        return named[0] if named else None


def bands_of(entry: Fitted) -> dict[str, Band]:
    """The bands of a fit by bound."""
    return {bound: (float(low), float(high)) for bound, (low, high) in entry.bands.items()}


def _numbers(own: Calibration) -> Numbers:
    """The calibration of a chip's entry, of form `max`."""
    shares = shares_of(own)
    math, memory, network = (shares.get(name, 1) for name in ("math", "memory", "network"))
    return Numbers(math, memory, exact(own.overhead_s), network)
