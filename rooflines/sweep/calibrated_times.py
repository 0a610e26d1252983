"""Calibrated times of kernels: the pieces of a calibration as polynomials of extents."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING

from rooflines.fits.time_form import nominal_quantities, ring_steps
from rooflines.theory.poly import Poly, constant, total
from rooflines.theory.resources import collective_time
from rooflines.theory.times import SizedRange, Time, Times

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.fits.calibration_choice import CalibrationChoice
    from rooflines.fits.time_form import Affine
    from rooflines.theory.kernel import Kernel, Transfer
    from rooflines.theory.resources import ChipRates
    from rooflines.theory.times import Band, Pieces

BOUNDS = ("compute", "memory", "network", "mixed", "engine")
"""The bounds of an estimate, in the order that decides ties."""

NOMINAL = Fraction(1)
"""Efficiencies, a what-if, are not applied."""


def calibrated(kernel: Kernel, machine: ChipRates, choice: CalibrationChoice) -> Times | None:
    """The estimate of one layer of a kernel; None without a calibration of its compute dtype.

    A matmul with weights has all pieces and bands of its calibration, grouped-query attention those
    of its own where it is fitted, other kernels shares and an overhead only, as of
    `CalibrationChoice.fallback_numbers`.
    Collectives run one after another, each with its own fit. What an engine does besides takes the
    times of its fit of steps; none without.

    Args:
        kernel: The kernel.
        machine: The chip.
        choice: The calibrations that apply.
    """
    fit = choice.fit(kernel.compute)
    if fit is None:
        return None
    if kernel.engine:
        return _of_engine(kernel, choice)
    own = kernel.attention_phase and choice.attention(kernel.attention_phase, kernel.compute)
    numbers = choice.fallback_numbers(fit.numbers)
    bands: dict[str, Band] = {}
    reaches: dict[str, SizedRange] = {}
    if own or kernel.is_matmul:
        timed = own or fit
        numbers, bands = timed.numbers, {**timed.bands}
        if timed.reach:
            reaches[""] = SizedRange(timed.reach, _sizes(kernel))
    kinds = kernel.collectives or [each.kind for each in kernel.transfers]
    sent = choice.collective(kinds[0]) if kernel.is_matmul and len(kinds) == 1 else None
    if sent and sent.reach:
        bands |= sent.bands
        for each in kernel.transfers:
            sizes = {"bytes": each.payload, "shards": constant(prod(each.route.axes))}
            reaches["network"] = SizedRange(sent.reach, sizes)
    quantities = nominal_quantities(kernel, machine, numbers.tile)
    by: dict[str, list[tuple[Poly, ...]]] = {}
    network = Time()
    for (piece,) in numbers.pieces:
        if piece.bound != "network":
            by.setdefault(piece.bound, []).append((_weighed(piece, quantities),))
        elif kernel.transfers:
            share = Fraction(numbers.network)
            network = Time.total(
                (1, Time((_collective(each, share, choice),))) for each in kernel.transfers
            )
            by[piece.bound] = []
    times = {
        bound: network if bound == "network" else Time((tuple(by[bound]),))
        for bound in BOUNDS
        if bound in by
    }
    overhead = _weighed(numbers.common, quantities)
    return Times(times, overhead, bands=bands, ranges=reaches)


def _sizes(kernel: Kernel) -> dict[str, Poly]:
    """The sizes of a kernel that fits of its kind reach to."""
    names = {"D": "depth", "F": "columns", "S": "context"}
    return {name: kernel.fit_terms[of] for name, of in names.items() if of in kernel.fit_terms}


def _of_engine(kernel: Kernel, choice: CalibrationChoice) -> Times:
    """The time of what an engine does besides its kernels."""
    fit = choice.step()
    numbers = {} if fit is None else fit.numbers
    time = total(
        amount * numbers[name] for name, amount in kernel.works.items() if numbers.get(name)
    )
    return Times({"engine": Time.max_of(time)})


def _collective(transfer: Transfer, share: Fraction, choice: CalibrationChoice) -> Pieces:
    """The pieces of a collective: as fitted, or a share of its rate and the typical hops."""
    sending, hops = collective_time(transfer, NOMINAL, typical=True)
    fitted = choice.collective(transfer.kind)
    if fitted is None:
        return ((sending / share,), (hops,)) if hops else ((sending / share,),)
    waits = fitted.numbers.hop_s * ring_steps(transfer.route, transfer.kind)
    (protocols,) = fitted.numbers.pieces
    found = (replace(each, constant_s=each.constant_s + waits) for each in protocols)
    return (tuple(_weighed(each, {"network": sending}) for each in found),)


def _weighed(affine: Affine, quantities: Mapping[str, Poly]) -> Poly:
    """An affine piece by extents [s]."""
    parts = [
        quantities[name] * Fraction(per)
        for name, per in affine.per.items()
        if per and name in quantities
    ]
    return total((*parts, constant(Fraction(affine.constant_s))))
