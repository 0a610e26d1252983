"""Choice between calibrations: by a sweep's software, or the chip's own numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rooflines.basics.numbers import exact
from rooflines.fits.calibration_files import (
    RANGED_SIZES,
    REFERENCE_DTYPE,
    attention_name,
    experts_name,
)
from rooflines.fits.fit_keys import Software
from rooflines.fits.time_form import FormNumbers, Numbers
from rooflines.hardware.entries import MAIN_MEMORY, shares_of
from rooflines.theory.operation import MATRIX
from rooflines.theory.times import FitRange

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from rooflines.fits.calibration_files import Calibrations, Fitted, FittedStep
    from rooflines.fits.time_form import CollectiveNumbers
    from rooflines.hardware.entries import Calibration, Chip
    from rooflines.theory.kernel import Kernel
    from rooflines.theory.operation import Unit
    from rooflines.theory.times import Band


WINDOW = "window"
"""Size with the attention window in tokens; 0: full attention, as fits time it [1]."""

AnyNumbers = TypeVar("AnyNumbers", bound=FormNumbers)


@dataclass(frozen=True)
class CalibrationFit(Generic[AnyNumbers]):
    """Fitted numbers for a kernel or collective on a chip.

    Attributes:
        numbers: The numbers, exact.
        bands: By the estimate's bound; a bound without a band is left out.
        reach: Sizes that the fit covers; None: a chip's own calibration.
    """

    numbers: AnyNumbers
    bands: Mapping[str, Band] = field(default_factory=dict)
    reach: FitRange | None = None


def auto_softwares(
    calibrations: Calibrations,
    chip: str,
    entry: Chip,
    computes: Collection[str],
    engine: str | None = None,
) -> tuple[str, ...]:
    """Software that `auto` takes; empty: the chip's own calibration, which may be none.

    Args:
        calibrations: By chip and software.
        chip: The chip's id.
        entry: Its entry, whose own calibration counts where it covers the compute dtypes.
        computes: The compute dtypes of one step or operation.
        engine: Engine to take where it has such fits; None: the first.
    """
    if (entry.calibration or {}).keys() >= {*computes}:
        return ()
    return calibrations.auto_softwares(chip, computes, engine)


@dataclass(frozen=True)
class CalibrationChoice:
    """Calibrations that apply to rows on one chip.

    Kernel fits hold for the matrix unit with the main memory, collective fits for a chip's first
    interconnect.

    Attributes:
        calibrations: By chip and software.
        softwares: Software, the first with a fit counts; empty: the chip's own calibration; None:
            no calibration.
        chip: The chip's id.
        entry: Its entry.
        unit, memory: What the rows run on.
        networks: The interconnects, inner first.
    """

    calibrations: Calibrations
    softwares: Sequence[str] | None
    chip: str
    entry: Chip
    unit: Unit
    memory: str
    networks: tuple[str, ...]

    def fit(self, compute: str) -> CalibrationFit[Numbers] | None:
        """Calibration for operations in a compute dtype; None without."""
        return self.fit_by_name("calibrations", compute)

    def fits(self, computes: Iterable[str]) -> bool:
        """Check for a calibration in all of these compute dtypes."""
        return all(self.fit(compute) is not None for compute in computes)

    def attention(self, kernel: Kernel) -> CalibrationFit[Numbers] | None:
        """Calibration for a kernel with grouped-query attention; None without."""
        name = self._attention_fit(kernel)
        return self.fit_by_name("attention", name) if name else None

    def _attention_fit(self, kernel: Kernel) -> str | None:
        """Fit name that applies to grouped-query attention.

        Without one in the cache's dtype it is the one in bf16, and without one for heads that share
        no KV head it is the one for grouped heads.
        """
        if kernel.attention_phase is None:
            return None
        caches = dict.fromkeys((kernel.cache or REFERENCE_DTYPE, REFERENCE_DTYPE))
        names = (
            attention_name(kernel.attention_phase, kernel.compute, cache, shared=shared)
            for cache in caches
            for shared in dict.fromkeys((kernel.shares_heads, True))
        )
        return next((name for name in names if self.first_fit("attention", name)), None)

    def experts(self, stored: str, compute: str) -> CalibrationFit[Numbers] | None:
        """Calibration for routed experts in a storage and a compute dtype; None without."""
        return self.fit_by_name("experts", experts_name(stored, compute))

    def collective(self, kind: str) -> CalibrationFit[CollectiveNumbers] | None:
        """Calibration for a collective over the interconnects; None without."""
        return self.fit_by_name("collectives", kind)

    def first_fit(self, kind: str, name: str) -> tuple[str, Any] | None:
        """First software with a fit that applies, and the fit.

        Args:
            kind: `calibrations` (matmuls), `attention` or `collectives`.
            name: The fit's name within a software.
        """
        if kind == "collectives":
            applies = bool(self.networks) and self.networks == tuple(self.entry.networks)[:1]
        else:
            applies = (self.unit, self.memory) == (MATRIX, MAIN_MEMORY)
        if not applies or not self.softwares:
            return None
        return self.calibrations.first(kind, self.chip, self.softwares, name)

    def fit_by_name(self, kind: str, name: str) -> CalibrationFit[Any] | None:
        """Calibration that applies, with its fit range; arguments as in `first_fit`."""
        if self.softwares is None:
            return None
        if kind == "calibrations" and not self.softwares:
            calibration = (self.entry.calibration or {}).get(name)
            return CalibrationFit(_numbers(calibration)) if calibration else None
        match = self.first_fit(kind, name)
        if match is None:
            return None
        software, fit = match
        sizes = {size: ends for size, ends in fit.sizes.items() if size in RANGED_SIZES}
        if kind == "attention":  # timings with windows have other kernels
            sizes[WINDOW] = (0, 0)
        foreign = software != self.softwares[0]
        if kind == "collectives":  # engines call those of libraries unless they have their own
            foreign = foreign and fit.elsewhere is not None
        reach = FitRange(sizes, fit.outside, fit.elsewhere, from_other_engine=foreign)
        return CalibrationFit(fit.numbers, bands_of(fit), reach)

    def fallback_numbers(self, numbers: Numbers) -> Numbers:
        """Numbers, form `max`, for kernels without timings, such as latent attention.

        Args:
            numbers: Matmul numbers in the compute dtype, whose share of the peak counts.

        Returns:
            Overhead and memory share come from matmuls in `REFERENCE_DTYPE` where the software has
            them: in a narrow dtype they include scales and quantizing x.
        """
        reference = self.first_fit("calibrations", REFERENCE_DTYPE)
        if reference is None:
            return numbers.plain
        shares = {name: getattr(reference[1].numbers, name) for name in ("memory", "overhead_s")}
        return numbers.plain.with_numbers(shares)

    def step(self) -> FittedStep | None:
        """Engine overhead in decode: from the first software with fits on the chip."""
        match = self._step()
        return match[1] if match else None

    def _step(self) -> tuple[str, FittedStep] | None:
        fitted_softwares = self.calibrations.softwares_of(self.chip)
        engines = (
            (name, Software.parse(name).engine)
            for name in self.softwares or ()
            if name in fitted_softwares
        )
        steps = ((name, self.calibrations.step(self.chip, engine)) for name, engine in engines)
        return next(((name, step) for name, step in steps if step), None)

    def fits_of_kernel(self, kernel: Kernel) -> dict[str, Fitted]:
        """Fits behind a kernel's estimate, by software and the fit's kind or name.

        Args:
            kernel: A kernel in a step.
        """
        matches: dict[str, tuple[str, Fitted] | None] = {}
        if kernel.engine:
            matches["steps"] = self._step()
        elif attention_fit := self._attention(kernel):
            matches["attention"] = attention_fit
        elif experts_fit := self._experts(kernel):
            matches["experts"] = experts_fit
        else:
            dtypes = [kernel.compute] if kernel.is_matmul else [kernel.compute, REFERENCE_DTYPE]
            matches |= {dtype: self.first_fit("calibrations", dtype) for dtype in dtypes}
        matches |= {
            sent.kind: self.first_fit("collectives", sent.kind) for sent in kernel.timed_transfers
        }
        return {f"{match[0]} {fit_name}": match[1] for fit_name, match in matches.items() if match}

    def is_timed(self, kernel: Kernel) -> bool:
        """True if a fit has timings of such kernels, not matmuls alone: see `fallback_numbers`."""
        timed = self._attention(kernel) or self._experts(kernel)
        return kernel.engine or kernel.is_matmul or timed is not None

    def _attention(self, kernel: Kernel) -> tuple[str, Fitted] | None:
        """Fit for a kernel with grouped-query attention."""
        name = self._attention_fit(kernel)
        return self.first_fit("attention", name) if name else None

    def _experts(self, kernel: Kernel) -> tuple[str, Fitted] | None:
        """Fit for a kernel with routed experts."""
        name = kernel.experts and experts_name(kernel.experts, kernel.compute)
        return (name and self.first_fit("experts", name)) or None

    def contents(self, computed: Iterable[str]) -> list[str]:
        """Contents besides the matmul in timings behind the fits in these compute dtypes."""
        fits = (self.first_fit("calibrations", dtype) for dtype in computed)
        return list(dict.fromkeys(fit[1].contents for fit in fits if fit and fit[1].contents))


def bands_of(entry: Fitted) -> dict[str, Band]:
    """Bands by bound, as Float64."""
    return {bound: (float(low), float(high)) for bound, (low, high) in entry.bands.items()}


def _numbers(calibration: Calibration) -> Numbers:
    """Numbers, form `max`, from a chip entry's own calibration."""
    shares = shares_of(calibration)
    math, memory, network = (shares.get(name, 1) for name in ("math", "memory", "network"))
    return Numbers(math, memory, exact(calibration.overhead_s), network)
