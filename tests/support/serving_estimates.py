"""Calibrated times of the kernels of whole models, exact: which fit a kernel has; an oracle.

- A kernel with a weight matrix and nothing else is a matmul: it has every number of the fit. Others
  have the shares of the resources and the overhead of their compute dtype's fit, those of memory
  and the overhead of that of bf16 if there is one, and no band; grouped-query attention has a fit
  of its own, of decode or of a dtype in prefill. A group without FLOP has the fit of `compute`.
- Software is of the main memory. A chip's own calibration has shares and an overhead.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from oracle import bands_of, exact, kernels, numbers_of, reach_of
from oracle.kernels import Fit

SHARES = ("math", "memory", "network", "overhead_s")


class Fits(NamedTuple):
    """The fits of a case: of kernels by unit, None without, collectives, attention, and bf16."""

    kernels: Mapping[str, Fit | None]
    collectives: Mapping[str, Fit]
    attention: Mapping[str, Fit]
    wide: Fit | None = None


def fits_of(asked, chip, softwares, files):
    """The fits of a case.

    Args:
        asked: The name of the chip, memory, networks and dtypes by unit.
        chip: The chip.
        softwares: Software in order; none: the chip's own calibration.
        files: Fits by kind, chip and software, and name.
    """
    units = {unit: asked["dtypes"][unit] for unit in ("compute", "attention")}
    if not softwares:
        own = chip.get("calibration") or {}
        plain = {"overhead_s": Fraction(0), **dict.fromkeys(SHARES[:3], Fraction(1))}
        return Fits(
            {
                unit: Fit({**plain, **{key: exact(n) for key, n in own[dtype].items()}}, {})
                if dtype in own
                else None
                for unit, dtype in units.items()
            },
            {},
            {},
        )

    def named(kind):
        found: dict[str, Fit] = {}
        for software in softwares:
            for name, entry in files.get(kind, {}).get(f"{asked['chip']}/{software}", {}).items():
                reach = (
                    reach_of(entry, software != softwares[0]) if kind == "calibrations" else None
                )
                found.setdefault(name, Fit(numbers_of(entry) or {}, bands_of(entry), reach))
        return found

    matmuls = named("calibrations") if asked["memory"] == "hbm" else {}
    first = list(chip.get("networks") or {})[:1]
    collectives = named("collectives") if asked["networks"] == first else {}
    attention = named("attention") if asked["memory"] == "hbm" else {}
    by_phase = {"decode": "decode", "prefill": f"prefill-{units['attention']}"}
    return Fits(
        {unit: matmuls.get(dtype) for unit, dtype in units.items()},
        collectives,
        {phase: attention[name] for phase, name in by_phase.items() if name in attention},
        matmuls.get("bf16"),
    )


def attention_fit(case, kernel):
    """The fit of attention of its own, which holds for grouped-query attention."""
    name = kernel.name.removeprefix("draft-")
    own = name != "attention" and (case.entry.get("window") or {}).get("attention")
    latent = not own and case.entry["attention"].get("kind") == "mla"
    if latent or not name.startswith("attention") or case.fits.kernels[kernel.unit] is None:
        return None
    return case.fits.attention.get(case.phase)


def fit_of(case, kernel):
    """The numbers and the bands that hold for a kernel; None without a calibration."""
    fit = attention_fit(case, kernel) or case.fits.kernels[kernel.unit]
    if fit is None or kernel.matmul is not None or attention_fit(case, kernel):
        return fit
    numbers = {name: fit.numbers[name] for name in fit.numbers.keys() & {*SHARES}}
    if wide := case.fits.wide:
        numbers |= {name: wide.numbers[name] for name in ("memory", "overhead_s")}
    return Fit(numbers, {})


def estimate(case, kernel):
    """The calibrated time of a kernel, its band and its bound; None without a calibration."""
    return kernels.estimate(case, kernel, fit_of(case, kernel), case.fits.collectives)


def sent_estimate(case, kernel):
    """The calibrated time of the collectives of a kernel; None without a calibration."""
    fit = fit_of(case, kernel)
    if fit is None:
        return None
    found = kernels.pieces(case, kernel, fit.numbers, case.fits.collectives)
    return max((time for bound, time in found if bound == "network"), default=Fraction(0))
