"""Calibrations as data of a page: pieces of times, affine in nominal quantities.

No form of a calibrated time is written here, nor in the page: pieces are those of `fits.time_form`.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from rooflines.fits.calibration_choice import CalibrationChoice
from rooflines.fits.time_form import ring_steps
from rooflines.hardware.entries import MAIN_MEMORY
from rooflines.site.coefficients import Terms, json_number, over_chips
from rooflines.solvers.chip_limit import interpolate
from rooflines.theory.network import PAIR, RING_PASSES, Route
from rooflines.theory.operation import MATRIX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.basics.yaml_file import JSON
    from rooflines.fits.calibration_files import Calibrations
    from rooflines.fits.time_form import Affine, CollectiveNumbers
    from rooflines.hardware.entries import Chip
    from rooflines.theory.times import FitRange

OWN = "own"
"""The name of the calibration in a chip's entry, among those of software."""

SOFTWARE = {
    "trtllm": "TensorRT-LLM",
    "sglang": "SGLang",
    "vllm": "vLLM",
    "nccl": "NCCL",
    "megatron": "Megatron",
}
"""Software of estimates, the preferred one first, and its names in sentences."""

CHIPS = (PAIR, PAIR + 1, PAIR + 2)
"""Numbers of chips that determine the steps of a collective [1]."""


def first_fits(chips: Mapping[str, Chip], calibrations: Calibrations) -> JSON:
    """The first calibration of chips in each compute dtype: their own, then that of `SOFTWARE`.

    Software that the package has no name for counts last; its variants of an engine do not.

    Args:
        chips: Entries by id.
        calibrations: By chip and software.

    Returns:
        By chip and compute dtype: the `software`, the `tile`, what is `common`, the `pieces`, the
        `bands`, the `reach`, sizes of its timings and the band beyond, and the collectives `sent`
        over the first interconnect. A collective that the software has no fit of is that of the
        first other software that has.
    """
    order = {name: place for place, name in enumerate(SOFTWARE)}
    named = [
        name
        for name in calibrations.softwares
        if name in SOFTWARE or name.partition("-")[0] not in SOFTWARE
    ]
    named.sort(key=lambda name: order.get(name, len(order)))
    found: dict[str, dict[str, JSON]] = {}
    for chip, entry in chips.items():
        for software in (OWN, *named):
            others = [name for name in calibrations.softwares if name != software]
            choice = CalibrationChoice(
                calibrations,
                [] if software == OWN else [software, *others],
                chip,
                entry,
                MATRIX,
                MAIN_MEMORY,
                tuple(entry.networks)[:1],
            )
            own = choice if software == OWN else replace(choice, softwares=[software])
            for compute in entry.units.get(MATRIX, {}):
                if compute not in found.get(chip, {}) and own.fit(compute):
                    fit = {"software": software, **_fit(choice, compute)}
                    found.setdefault(chip, {})[compute] = fit
    return found


def _fit(choice: CalibrationChoice, compute: str) -> JSON:
    """The calibration of a chip in a compute dtype, which it has."""
    fit = choice.fit(compute)
    if fit is None:
        raise LookupError(compute)
    numbers = fit.numbers
    return {
        "tile": numbers.tile,
        "common": _affine(numbers.common),
        "pieces": [[piece.bound, _affine(piece)] for (piece,) in numbers.pieces],
        "bands": fit.bands,
        "reach": fit.reach and _reach(fit.reach),
        "sent": {
            kind: {
                "protocols": [_affine(each) for each in of.numbers.pieces[0]],
                "waits": _waits(choice.entry, of.numbers, kind),
                "bands": {**fit.bands, **of.bands},
                "reach": of.reach and _reach(of.reach),
            }
            for kind in RING_PASSES
            if (of := choice.collective(kind))
        },
    }


def _reach(reach: FitRange) -> JSON:
    """The sizes of timings, and the bands beyond them, and as the fit of another software."""
    elsewhere = reach.other_engine_band if reach.from_other_engine else None
    return {**reach.sizes, "outside": reach.out_of_range_band, "elsewhere": elsewhere}


def _affine(affine: Affine) -> Terms:
    """The factors of quantities, and the constant without a name [s]."""
    factors = {**affine.per, "": affine.constant_s}
    return {name: json_number(Fraction(factor)) for name, factor in factors.items() if factor}


def _waits(entry: Chip, numbers: CollectiveNumbers, kind: str) -> Terms:
    """The time of the steps of a collective, by the number of chips [s]."""
    link = next(iter(entry.networks.values())).exact
    routes = [Route((link,), (n,)) for n in CHIPS]
    seconds = [Fraction(numbers.hop_s) * ring_steps(route, kind) for route in routes]
    points = [(n, n * each) for n, each in zip(CHIPS, seconds, strict=True)]
    return over_chips(interpolate(points))
