"""The calibrated times of kernels on a chip, as the pieces of a calibration by extents."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from rooflines.calibration.estimate import (
    Estimate,
    Fit,
    collective_pieces,
    one_after_another,
    parts_of,
)
from rooflines.calibration.form import Numbers
from rooflines.model.resources import RESOURCES, collective_rate
from rooflines.serving.kernels import TOKENS, summed
from rooflines.serving.times import over, rates_of

if TYPE_CHECKING:
    from rooflines.calibration.choice import Choice
    from rooflines.calibration.estimate import Pieces
    from rooflines.calibration.quantities import Polynomial
    from rooflines.models.groups import Terms
    from rooflines.serving.kernels import Kernel
    from rooflines.serving.times import Machine

__all__ = ["kernel_estimate"]

NOMINAL = {resource.name: Fraction(1) for resource in RESOURCES}


def kernel_estimate(kernel: Kernel, machine: Machine, choice: Choice) -> Estimate | None:
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
    if kernel.depth is None:
        numbers = fit.numbers
        shares = Numbers(numbers.math, numbers.memory, numbers.overhead_s, numbers.network)
        fit = Fit(shares)
    of, network = _quantities(kernel, machine, fit), _network(kernel, fit, choice)
    common, pieces = parts_of(fit.numbers, of, (), network)
    return Estimate(common, pieces, None, 1, fit.bands)


def _network(kernel: Kernel, fit: Fit, choice: Choice) -> Pieces:
    """The pieces of the collectives of a kernel."""
    share = Fraction(fit.numbers.network)
    found = []
    for sent in kernel.collectives:
        fitted = choice.collective(sent.kind)
        waits = sent.route.latencies_s(sent.kind, typical=True)
        numbers = fitted.numbers if fitted else None
        found.append(collective_pieces(sent.route, sent.kind, max(waits), share, numbers))
    return one_after_another(found)


def _quantities(kernel: Kernel, machine: Machine, fit: Fit) -> dict[str, Polynomial]:
    """The nominal quantities of a kernel, as those of an operation.

    Rows of a fitted tile are the tokens of a replica, in the unembedding its sequences.
    """
    math, memory = rates_of(kernel, machine, NOMINAL)
    works = kernel.works
    moved = (works.get(name, {}) for name in ("weight_bytes", "cache_bytes", "activation_bytes"))
    found: dict[str, Polynomial] = {
        "math": over(_in_tiles(works.get("flops", {}), fit.numbers.tile, kernel), math),
        "memory": over(summed((1, terms) for terms in moved), memory),
        "x": over(kernel.reads, memory),
        "out": over(kernel.writes, memory),
        "depth": {(): kernel.depth or Fraction(0)},
    }
    for number, sent in enumerate(kernel.collectives):
        rate = collective_rate(sent.route, sent.kind, Fraction(1))
        found[f"network:{number}"] = over(sent.sent_bytes, rate.per_s)
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
