"""Calibrated kernel times: the pieces of a calibration as polynomials in extents."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, cast

from rooflines.fits.time_form import nominal_quantities, ring_steps
from rooflines.theory.kernel import Transfer
from rooflines.theory.network import RING_PASSES
from rooflines.theory.poly import Poly, constant, total
from rooflines.theory.resources import NETWORK, collective_time
from rooflines.theory.times import SizedRange, Time, Times

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.fits.calibration_choice import CalibrationChoice
    from rooflines.fits.time_form import Affine
    from rooflines.theory.kernel import Kernel
    from rooflines.theory.network import Route
    from rooflines.theory.resources import ChipRates
    from rooflines.theory.times import Band, Pieces

BOUNDS = ("compute", "memory", "network", "mixed", "engine")
"""Bounds of an estimate, in the order that decides ties."""

RANGED_TERMS = {
    "depth": "D",
    "width": "D",
    "columns": "F",
    "expert_width": "Fe",
    "context": "S",
    "head": "H",
    "window": "window",
}
"""Sizes whose range a fit knows, by the kernel's fit term."""

NOMINAL = Fraction(1)
"""Efficiency of nominal rates [1]; assumed efficiencies, a what-if, are not applied."""


def calibrated_times(kernel: Kernel, machine: ChipRates, choice: CalibrationChoice) -> Times | None:
    """Estimate a kernel in one layer; None without a calibration for its compute dtype.

    A matmul with weights has all pieces and bands of its calibration. Grouped-query attention and
    routed experts have their own where they are fitted. Other kernels have shares and an overhead
    only, see `CalibrationChoice.fallback_numbers`. Collectives run one after another, each with its
    own fit. Engine overhead has the times of the step fit; none without.

    Args:
        kernel: The kernel.
        machine: The chip's rates.
        choice: The calibrations that apply.
    """
    fit = choice.fit(kernel.compute)
    if fit is None:
        return None
    if kernel.engine:
        return _engine_times(kernel, choice)
    own_fit = None
    if kernel.attention_phase:
        own_fit = choice.attention(kernel)
    elif kernel.experts:
        own_fit = choice.experts(kernel.experts, kernel.compute)
    numbers = choice.fallback_numbers(fit.numbers)
    bands: dict[str, Band] = {}
    ranges: dict[str, SizedRange] = {}
    if own_fit or kernel.is_matmul:
        kernel_fit = own_fit or fit
        numbers, bands = kernel_fit.numbers, {**kernel_fit.bands}
        if kernel_fit.reach:
            ranges[""] = SizedRange(kernel_fit.reach, _sizes(kernel))
    kinds = kernel.collectives or [transfer.kind for transfer in kernel.timed_transfers]
    collective_fit = choice.collective(kinds[0]) if kernel.is_matmul and len(kinds) == 1 else None
    if collective_fit and collective_fit.reach:
        bands |= collective_fit.bands
        for transfer in kernel.timed_transfers:
            sizes = {"bytes": transfer.payload, "shards": constant(prod(transfer.route.axes))}
            ranges["network"] = SizedRange(collective_fit.reach, sizes)
    quantities = nominal_quantities(kernel, machine, numbers.tile)
    pieces: dict[str, list[tuple[Poly, ...]]] = {}
    network = Time()
    for options in numbers.pieces:
        bound = options[0].bound
        if bound != "network":
            polys = tuple(_affine_time(affine, quantities) for affine in options)
            pieces.setdefault(bound, []).append(polys)
        elif kernel.timed_transfers:
            share = Fraction(numbers.network)
            network = Time.total(
                (1, Time((collective_pieces(transfer, share, choice),)))
                for transfer in kernel.timed_transfers
            )
            pieces[bound] = []
    times = {
        bound: network if bound == "network" else Time((tuple(pieces[bound]),))
        for bound in BOUNDS
        if bound in pieces
    }
    overhead = _affine_time(numbers.common, quantities)
    return Times(times, overhead, bands=bands, ranges=ranges)


def _sizes(kernel: Kernel) -> dict[str, Poly]:
    """Sizes of a kernel whose range its fit knows: depth, columns, context."""
    terms = kernel.fit_terms
    return {name: terms[term] for term, name in RANGED_TERMS.items() if term in terms}


def _engine_times(kernel: Kernel, choice: CalibrationChoice) -> Times:
    """Engine overhead, besides kernels, by the step fit."""
    fit = choice.step()
    numbers = {} if fit is None else fit.numbers
    time = total(
        amount * numbers[name] for name, amount in kernel.works.items() if numbers.get(name)
    )
    return Times({"engine": Time.max_of(time)})


def collective_pieces(transfer: Transfer, share: Fraction, choice: CalibrationChoice) -> Pieces:
    """Pieces for a collective: as fitted, or a share of its rate and the typical hops."""
    sending, hops = collective_time(transfer, NOMINAL, typical=True)
    fitted = choice.collective(transfer.kind)
    if fitted is None:
        return ((sending / share,), (hops,)) if hops else ((sending / share,),)
    hop_s = fitted.numbers.hop_s * ring_steps(cast("Route", transfer.route), transfer.kind)
    (protocols,) = fitted.numbers.pieces
    shifted = (replace(protocol, constant_s=protocol.constant_s + hop_s) for protocol in protocols)
    return (tuple(_affine_time(protocol, {"network": sending}) for protocol in shifted),)


def calibrated_collective(
    kind: str, payload: Poly, route: Route, choice: CalibrationChoice
) -> Times | None:
    """Estimate a collective alone; None without a fit.

    Args:
        kind: The collective.
        payload: The whole tensor, in an all-to-all what one chip holds [byte].
        route: The interconnects between the chips.
        choice: The calibrations that apply.
    """
    fit = choice.collective(kind) if kind in RING_PASSES else None
    if fit is None:
        return None
    transfer = Transfer(kind, payload, route, route.bytes_per_payload_byte(kind))
    sizes = {"bytes": payload, "shards": constant(prod(route.axes))}
    time = Time((collective_pieces(transfer, NOMINAL, choice),))
    ranges = {NETWORK.bound: SizedRange(fit.reach, sizes)} if fit.reach else {}
    return Times({NETWORK.bound: time}, bands={**fit.bands}, ranges=ranges)


def _affine_time(affine: Affine, quantities: Mapping[str, Poly]) -> Poly:
    """Affine piece as a polynomial in extents: constant_s + sum(per * quantity) [s]."""
    parts = [
        quantities[name] * Fraction(per)
        for name, per in affine.per.items()
        if per and name in quantities
    ]
    return total((*parts, constant(Fraction(affine.constant_s))))
