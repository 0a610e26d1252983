"""Calibrations as page data: pieces of times, affine in nominal quantities.

Neither this module nor the page has a formula for calibrated times: pieces come from
`fits.time_form`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from rooflines.fits.calibration_choice import CalibrationChoice, auto_softwares
from rooflines.fits.calibration_files import AUTO_CALIBRATION, AUTO_COLLECTIVES
from rooflines.fits.time_form import ring_steps
from rooflines.hardware.entries import MAIN_MEMORY
from rooflines.site.coefficients import Terms, json_number, over_chips
from rooflines.solvers.chip_limit import interpolate
from rooflines.theory.network import PAIR, RING_PASSES, Route
from rooflines.theory.operation import MATRIX

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.basics.yaml_file import JSON
    from rooflines.fits.calibration_files import Calibrations
    from rooflines.fits.time_form import Affine, CollectiveNumbers
    from rooflines.hardware.entries import Chip
    from rooflines.theory.times import FitRange

CHIP_ENTRY = "own"
"""Calibration key in a chip's entry, beside names of software."""

SOFTWARE = {
    "vllm": "vLLM",
    "trtllm": "TensorRT-LLM",
    "sglang": "SGLang",
    "nccl": "NCCL",
    "megatron": "Megatron",
}
"""Display names by software."""

CHIPS = (PAIR, PAIR + 1, PAIR + 2)
"""Chip counts that determine a collective's number of steps [1]."""


def first_fits(
    chips: Mapping[str, Chip], calibrations: Calibrations, run_softwares: Sequence[str] = ()
) -> JSON:
    """Calibration by chip and compute dtype: that of `auto`, else the run's.

    Args:
        chips: Entries by id.
        calibrations: By chip and software.
        run_softwares: Software that the run's sweeps name.

    Returns:
        By chip and compute dtype: the `software`, `calibration`, which asks a command for it, the
        `tile`, what is `common`, the `pieces`, the `bands`, the `range` that was timed with the
        bands beyond, and `collectives` over the first interconnect.
    """
    fits: dict[str, dict[str, JSON]] = {}
    for chip, entry in chips.items():
        for compute in entry.units.get(MATRIX, {}):
            choices = {AUTO_CALIBRATION: auto_softwares(calibrations, chip, entry, [compute])}
            choices |= {name: (name, AUTO_COLLECTIVES) for name in run_softwares}
            for name, softwares in choices.items():
                choice = CalibrationChoice(
                    calibrations,
                    softwares,
                    chip,
                    entry,
                    MATRIX,
                    MAIN_MEMORY,
                    tuple(entry.networks)[:1],
                )
                if choice.fit(compute):
                    calibration = name if name == AUTO_CALIBRATION else ",".join(softwares)
                    software = softwares[0] if softwares else CHIP_ENTRY
                    fit = {
                        "software": software,
                        "calibration": calibration,
                        **_fit(choice, compute),
                    }
                    fits.setdefault(chip, {})[compute] = fit
                    break
    return fits


def _fit(choice: CalibrationChoice, compute: str) -> JSON:
    """Calibration for a compute dtype, which must exist."""
    fit = choice.fit(compute)
    if fit is None:
        raise LookupError(compute)
    numbers = fit.numbers
    return {
        "tile": numbers.tile,
        "common": _affine(numbers.common),
        "pieces": [{"bound": piece.bound, "terms": _affine(piece)} for (piece,) in numbers.pieces],
        "bands": fit.bands,
        "range": fit.reach and _range(fit.reach),
        "collectives": {
            kind: {
                "protocols": [_affine(protocol) for protocol in collective.numbers.pieces[0]],
                "step_seconds": _step_seconds(choice.entry, collective.numbers, kind),
                "bands": {**fit.bands, **collective.bands},
                "range": collective.reach and _range(collective.reach),
            }
            for kind in RING_PASSES
            if (collective := choice.collective(kind))
        },
    }


def _range(fit_range: FitRange) -> JSON:
    """Timed sizes, with bands beyond them and for a fit from other software."""
    other_band = fit_range.other_engine_band if fit_range.from_other_engine else None
    return {
        "sizes": dict(fit_range.sizes),
        "out_of_range_band": fit_range.out_of_range_band,
        "other_engine_band": other_band,
    }


def _affine(affine: Affine) -> Terms:
    """Factors by quantity; the constant has the name "" [s]."""
    factors = {**affine.per, "": affine.constant_s}
    return {name: json_number(Fraction(factor)) for name, factor in factors.items() if factor}


def _step_seconds(entry: Chip, numbers: CollectiveNumbers, kind: str) -> Terms:
    """Time for a collective's steps, as terms in the chip count [s]."""
    link = next(iter(entry.networks.values())).exact
    routes = [Route((link,), (n,)) for n in CHIPS]
    seconds = [Fraction(numbers.hop_s) * ring_steps(route, kind) for route in routes]
    points = [(n, n * wait) for n, wait in zip(CHIPS, seconds, strict=True)]
    return over_chips(interpolate(points))
