"""The calibrated times of kernels on a chip, as the pieces of a calibration by extents."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from rooflines.fits.estimate import (
    Estimate,
    collective_pieces,
    one_after_another,
    parts_of,
)
from rooflines.model.resources import RESOURCES
from rooflines.models.groups import TOKENS
from rooflines.serving.kernels import summed
from rooflines.serving.times import Exchange, exchange, over, rates_of

if TYPE_CHECKING:
    from rooflines.fits.choice import CalibrationChoice
    from rooflines.fits.estimate import Pieces
    from rooflines.fits.quantities import Polynomial
    from rooflines.models.groups import Terms
    from rooflines.serving.kernels import Collective, Kernel
    from rooflines.serving.times import Machine

NOMINAL = {resource.name: Fraction(1) for resource in RESOURCES}


def kernel_estimate(kernel: Kernel, machine: Machine, choice: CalibrationChoice) -> Estimate | None:
    """The estimate of one layer of a kernel; None without a calibration of its compute dtype.

    A kernel that is one matmul with weights has the pieces and the bands of its calibration. Of
    other kernels there are no timings: they have its shares and its overhead only, and no band.
    Collectives run one after another, each with its own fit.

    Args:
        kernel: The kernel.
        machine: The chip; its efficiencies, a what-if, are not applied.
        choice: The calibrations that apply.
    """
    kinds = [sent.kind for sent in kernel.collectives]
    fit = choice.fit(kernel.compute, kinds[0] if len(kinds) == 1 else None)
    if fit is None:
        return None
    numbers, bands = fit.numbers, fit.bands
    if kernel.depth is None:
        numbers, bands = numbers.plain, {}
    of = _quantities(kernel, machine, numbers.tile)
    network = _network(kernel, Fraction(numbers.network), choice)
    common, pieces = parts_of(numbers, of, (), network)
    return Estimate(common, pieces, None, 1, bands)


def _network(kernel: Kernel, share: Fraction, choice: CalibrationChoice) -> Pieces:
    """The pieces of the collectives of a kernel; those without a fit reach a share of the rate."""
    found = []
    for sent in kernel.collectives:
        fitted = choice.collective(sent.kind)
        numbers = fitted.numbers if fitted else None
        waits = _nominal(sent).latency_s
        found.append(collective_pieces(sent.route, sent.kind, waits, share, numbers))
    return one_after_another(found)


def _nominal(sent: Collective) -> Exchange:
    """The nominal time of a collective; hops take their usual time."""
    return Exchange.slowest(exchange(sent, Fraction(1), typical=True))


def _quantities(kernel: Kernel, machine: Machine, tile: int) -> dict[str, Polynomial]:
    """The nominal quantities of a kernel, as those of an operation.

    Rows of a tile are the tokens of a replica, in the unembedding its sequences.
    """
    math, memory = rates_of(kernel, machine, NOMINAL)
    works = kernel.works
    moved = (works.get(name, {}) for name in ("weight_bytes", "cache_bytes", "activation_bytes"))
    found: dict[str, Polynomial] = {
        "math": over(_in_tiles(works.get("flops", {}), tile, kernel), math),
        "memory": over(summed((1, terms) for terms in moved), memory),
        "x": over(kernel.reads, memory),
        "out": over(kernel.writes, memory),
        "depth": {(): kernel.depth or Fraction(0)},
    }
    for number, sent in enumerate(kernel.collectives):
        found[f"network:{number}"] = _nominal(sent).sending
    return found


def _in_tiles(flops: Terms, tile: int, kernel: Kernel) -> Terms:
    """FLOPs by the rows in whole tiles, over all replicas."""
    if tile == 1:
        return flops
    span = tile / kernel.token_share
    return {
        (f"{'tokens' if dims == TOKENS else 'sequences'}:{span}",): per
        for dims, per in flops.items()
    }
