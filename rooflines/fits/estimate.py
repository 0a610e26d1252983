"""The estimate of a workload on a chip: pieces of a calibration as polynomials of the sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING

from rooflines.fits.collective_form import protocols, ring_steps
from rooflines.fits.form import Affine, common, pieces
from rooflines.fits.quantities import polynomials
from rooflines.model.resources import MATH, RESOURCES, network_rate

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from rooflines.fits.choice import CalibrationFit
    from rooflines.fits.collective_form import CollectiveNumbers
    from rooflines.fits.form import Numbers
    from rooflines.fits.quantities import Polynomial
    from rooflines.model.costs import Workload
    from rooflines.model.network import Route
    from rooflines.model.target import Target
    from rooflines.model.times import Band

Pieces = list[tuple[Affine, ...]]
"""A maximum of minima of affine functions."""


@dataclass(frozen=True)
class Sum:
    """A sum of products of sizes [s].

    Attributes:
        plain: By the sizes.
        counted: By what the unit computes: rows in whole spans, or the tiles of a workload.
    """

    plain: Polynomial
    counted: Polynomial


@dataclass(frozen=True)
class Piece:
    """A piece of an estimate: the least of a few sums.

    Attributes:
        bound: What limits the workload where the piece is the largest.
        least: The sums.
    """

    bound: str
    least: tuple[Sum, ...]


@dataclass(frozen=True)
class Estimate:
    """The estimate of a workload: what is common, plus the largest piece.

    Attributes:
        common: What is added to the largest piece.
        pieces: In order: the earlier one wins a tie.
        row: The dimension that is computed in whole spans; None: all count by their size.
        span: Elements of that dimension that are computed together, over all chips [1].
        bands: As `Fit.bands`.
    """

    common: Sum
    pieces: tuple[Piece, ...]
    row: str | None
    span: int
    bands: Mapping[str, Band]


def estimate_of(fit: CalibrationFit, workload: Workload, target: Target) -> Estimate:
    """The estimate of a workload on a target.

    The rows of a fitted tile are the first dimension, if the result has it. The tiles of a
    workload, if there are any, take its place.

    Args:
        fit: Exact numbers.
        workload: The workload.
        target: Its efficiencies, a what-if, are not applied.
    """
    of = polynomials(workload, target)
    row = workload.op.dims[0]
    tiled = fit.numbers.tile > 1 and row in workload.op.out and not workload.tile
    names: Collection[str] = (MATH.name,) if tiled else ()
    if workload.tile:
        names = [resource.name for resource in RESOURCES[:2]]
    common_part, found = parts_of(fit.numbers, of, names, _network(fit, workload, target))
    return Estimate(
        common_part,
        found,
        row if tiled else None,
        fit.numbers.tile * workload.share(row) if tiled else 1,
        fit.bands,
    )


def parts_of(
    numbers: Numbers,
    of: Mapping[str, Polynomial],
    counted: Collection[str],
    network: Pieces,
) -> tuple[Sum, tuple[Piece, ...]]:
    """What is common to the pieces of a calibration, and the pieces, by the sizes.

    Args:
        numbers: Exact numbers.
        of: The nominal quantities.
        counted: Those that are counted in whole spans or tiles.
        network: The pieces of the collectives.
    """
    found: list[Piece] = []
    for piece in pieces(numbers):
        found.extend(
            Piece(piece.bound, tuple(_sum(each, of, counted) for each in least))
            for least in (network if piece.bound == "network" else [(piece,)])
        )
    return _sum(common(numbers), of, counted), tuple(found)


def _network(fit: CalibrationFit, workload: Workload, target: Target) -> Pieces:
    """The pieces of the collectives of a workload."""
    route, transfers = target.route, workload.sharding.transfers
    typical = network_rate(target, typical=True)
    if route is None or typical is None:
        return []
    share = Fraction(fit.numbers.network)
    return collective_pieces(route, transfers[0][1], typical.latency_s, share, fit.collective)


def collective_pieces(
    route: Route,
    collective: str,
    typical_s: Fraction,
    share: Fraction,
    fitted: CollectiveNumbers | None,
) -> Pieces:
    """The pieces of a collective.

    Without fitted numbers it is the nominal time over a share of the rate, and at least the typical
    time of all hops.

    Args:
        route: The interconnects; one if there are fitted numbers.
        collective: Its kind, a key of `network.PASSES`.
        typical_s: The typical time of all hops [s].
        share: The share of the network rate that is reached without fitted numbers [1].
        fitted: The fitted numbers; None: it is not fitted.
    """
    if fitted:
        waits = fitted.hop_s * ring_steps(route, collective)
        return [
            tuple(replace(each, constant_s=each.constant_s + waits) for each in protocols(fitted))
        ]
    found: Pieces = [(Affine("network", {"network": 1 / share}),)]
    if typical_s:
        found.append((Affine("network", {}, typical_s),))
    return found


def one_after_another(collectives: Sequence[Pieces]) -> Pieces:
    """The pieces of the sum of collectives: a sum of maxima of minima is one of these too.

    Args:
        collectives: The pieces of each; its nominal time is renamed, `network:0` and so on.
    """
    if not collectives:
        return []
    return [
        tuple(_added(affines) for affines in product(*leasts)) for leasts in product(*collectives)
    ]


def _added(affines: Sequence[Affine]) -> Affine:
    """The sum of a piece of every collective."""
    per = {
        f"{name}:{number}": factor
        for number, affine in enumerate(affines)
        for name, factor in affine.per.items()
    }
    constants = (Fraction(affine.constant_s) for affine in affines)
    return Affine("network", per, sum(constants, Fraction(0)))


def _sum(affine: Affine, of: Mapping[str, Polynomial], names: Collection[str]) -> Sum:
    """A piece by the sizes; the named quantities are counted."""
    plain: dict[tuple[str, ...], Fraction] = {}
    counted: dict[tuple[str, ...], Fraction] = {}
    for name, factor in affine.per.items():
        terms = counted if name in names else plain
        for dims, coefficient in of.get(name, {}).items() if factor else ():
            terms[dims] = terms.get(dims, Fraction(0)) + Fraction(factor) * coefficient
    if affine.constant_s:
        plain[()] = plain.get((), Fraction(0)) + Fraction(affine.constant_s)
    return Sum(plain, counted)
