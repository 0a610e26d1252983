"""Calibrations as data of a page: pieces of times, affine in nominal quantities.

No form of a calibrated time is written here, nor in the page: pieces are those of
`fits.form`, collectives those of `fits.collective_form`.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from rooflines.catalogue.entries import MAIN_MEMORY
from rooflines.critical.chips import interpolated
from rooflines.fits.choice import CalibrationChoice
from rooflines.fits.collective_form import protocols, ring_steps
from rooflines.fits.form import common, pieces
from rooflines.model.network import PAIR, PASSES, Route
from rooflines.site.rationals import coefficients, plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.basics.yaml_file import JSON
    from rooflines.catalogue.entries import Chip
    from rooflines.fits.collective_form import CollectiveNumbers
    from rooflines.fits.entries import Calibrations
    from rooflines.fits.form import Affine

OWN = "own"
"""The name of the calibration in a chip's entry, among those of software."""

CHIPS = (PAIR, PAIR + 1, PAIR + 2)
"""Numbers of chips that determine the steps of a collective [1]."""


def fits(chips: Mapping[str, Chip], calibrations: Calibrations) -> JSON:
    """The calibrations of chips.

    Args:
        chips: Entries by id.
        calibrations: By chip and software.

    Returns:
        By chip, software, unit and compute dtype: the `tile`, what is `common`, the `pieces`, the
        `bands`, the `contents` of its timings, and the collectives `sent` over the first
        interconnect. A collective that the software has no fit of is that of the first other
        software that has.
    """
    found: dict[str, JSON] = {}
    for chip, entry in chips.items():
        by_software: dict[str, JSON] = {}
        for software in (OWN, *calibrations.softwares):
            others = [name for name in calibrations.softwares if name != software]
            softwares = [] if software == OWN else [software, *others]
            by_unit: dict[str, JSON] = {}
            for unit, peaks in entry.units.items():
                network = tuple(entry.networks)[:1]
                choice = CalibrationChoice(
                    calibrations, softwares, chip, entry, unit, MAIN_MEMORY, network
                )
                named = choice if software == OWN else replace(choice, softwares=[software])
                of = {compute: _fit(choice, compute) for compute in peaks if named.fit(compute)}
                if of:
                    by_unit[unit] = of
            if by_unit:
                by_software[software] = by_unit
        if by_software:
            found[chip] = by_software
    return found


def _fit(choice: CalibrationChoice, compute: str) -> JSON | None:
    """The calibration of a chip in a compute dtype; None without."""
    fit = choice.fit(compute)
    if fit is None:
        return None
    numbers = fit.numbers
    return {
        "tile": numbers.tile,
        "common": _affine(common(numbers)),
        "pieces": [[piece.bound, _affine(piece)] for piece in pieces(numbers)],
        "bands": fit.bands,
        "contents": choice.contents([compute]),
        "sent": {
            kind: {
                "software": choice.collective_software(kind),
                "protocols": [_affine(each) for each in protocols(of.collective)],
                "waits": _waits(choice.entry, of.collective, kind),
                "bands": of.bands,
            }
            for kind in PASSES
            if (of := choice.fit(compute, kind)) and of.collective
        },
    }


def _affine(affine: Affine) -> dict[str, int | str]:
    """The factors of quantities, and the constant without a name [s]."""
    factors = {**affine.per, "": affine.constant_s}
    return {name: plain(Fraction(factor)) for name, factor in factors.items() if factor}


def _waits(entry: Chip, numbers: CollectiveNumbers, kind: str) -> list[int | str]:
    """N times the time of the steps of a collective, as a polynomial in the number of chips N."""
    link = next(iter(entry.networks.values())).exact
    routes = [Route((link,), (n,)) for n in CHIPS]
    seconds = [Fraction(numbers.hop_s) * ring_steps(route, kind) for route in routes]
    points = [(n, n * each) for n, each in zip(CHIPS, seconds, strict=True)]
    return coefficients(interpolated(points))
