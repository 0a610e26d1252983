"""The nominal quantities that a calibration weighs, as polynomials of the sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from operator import add, mul
from typing import TYPE_CHECKING

from rooflines.basics.lazy import pl
from rooflines.model.resources import MATH, RESOURCES, memory_rate

if TYPE_CHECKING:
    from rooflines.model.costs import Term, Workload
    from rooflines.model.target import Target

Polynomial = Mapping[tuple[str, ...], Fraction]
"""The coefficient of every product of sizes."""

MOVED = ("x", "out")
"""Operands whose bytes calibrations weigh besides all memory traffic."""


def polynomials(workload: Workload, target: Target) -> dict[str, Polynomial]:
    """The nominal quantities of a workload on a target, by the names of `form.Affine`.

    Args:
        workload: With tiles, the costs of the kernel are by its extents, all else by sizes.
        target: Its efficiencies, a what-if, are not applied.

    Returns:
        Seconds of every resource that has work, without latencies, and of `x` and `out` between
        memory and the unit; `depth`, the contracted elements of one chip [1].
    """
    nominal = replace(target, efficiency=dict.fromkeys(target.efficiency, Fraction(1)))
    found: dict[str, Polynomial] = {}
    for resource in RESOURCES:
        rate, work = resource.rate(nominal), workload.costs[resource.work]
        if rate is not None and work:
            found[resource.name] = {dims: per / rate.per_s for dims, per in work.items()}
    memory = memory_rate(nominal).per_s
    more = weighed(workload)
    for operand in MOVED:
        found[operand] = {dims: held / memory for dims, held in more[operand].items()}
    return {**found, "depth": more["depth"]}


def weighed(workload: Workload) -> dict[str, Polynomial]:
    """What calibrations weigh besides the costs: bytes of `x` and `out`, and the depth."""
    untiled = workload.untiled
    return {
        **{operand: _polynomial(untiled.bytes_of(operand)) for operand in MOVED},
        "depth": _polynomial(untiled.elements(workload.op.contracted)),
    }


def _polynomial(term: Term) -> Polynomial:
    coefficient, dims = term
    return {dims: coefficient}


def whole_tiles(size: int, tile: int) -> int:
    """A size rounded up to whole tiles [1]."""
    return -(-size // tile) * tile


def whole_rows(size: pl.Expr, tile: int) -> pl.Expr:
    """The same as an expression."""
    return (size + (tile - 1)) // tile * tile


def whole_size(dim: str, tile: int) -> pl.Expr:
    """The same as an expression of the column of a size, Float64."""
    size = pl.col(dim)
    return (whole_rows(size, tile) if tile > 1 else size).cast(pl.Float64)


def expressions(of: Mapping[str, Polynomial], row: str, tile: int = 1) -> dict[str, pl.Expr]:
    """The quantities as expressions of the columns of sizes, Float64 [s]; the depth [1].

    Args:
        of: The polynomials of a workload without a split.
        row: The dimension that the unit computes in whole tiles.
        tile: Its tile [1].
    """

    def size(dim: str, quantity: str) -> pl.Expr:
        return whole_size(dim, tile if (dim, quantity) == (row, MATH.name) else 1)

    def total(quantity: str, terms: Polynomial) -> pl.Expr:
        products = [
            reduce(mul, [pl.lit(float(per)), *(size(dim, quantity) for dim in dims)])
            for dims, per in terms.items()
        ]
        return reduce(add, products)

    return {name: total(name, terms) for name, terms in of.items()}
