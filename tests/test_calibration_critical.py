"""Calibrated critical sizes, against a search."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from exact_quantities import exact_quantities

from rooflines.fits.choice import CalibrationFit
from rooflines.fits.critical import critical_estimate
from rooflines.fits.estimate import Estimate, Piece, Sum, estimate_of
from rooflines.fits.form import Numbers, pieces, value
from rooflines.fits.quantities import polynomials
from rooflines.model.costs import Workload
from rooflines.model.operation import NAMED
from rooflines.model.sharding import sharding
from rooflines.model.target import MemoryLevel, Target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.fits.quantities import Polynomial


MATMUL = NAMED["matmul"]

BITS = {"x": Fraction(8), "w": Fraction(8), "out": Fraction(16)}

TARGET = Target(
    Fraction(10**13),
    MemoryLevel(Fraction(10**11)),
    None,
    sharding("none", MATMUL),
    dict.fromkeys(("math", "memory", "network"), Fraction(1)),
)
"""10 TFLOP/s and 100 GB/s."""

MOST = 3000
"""Sizes that are searched [1]."""


def searched(numbers: Numbers, of: Mapping[str, Polynomial], dim: str) -> int:
    """The first size at which a compute piece is the largest, one after another; else `MOST`."""
    for size in range(1, MOST):
        sizes = {"B": 300, "D": 512, "F": 1024, dim: size}
        quantities = exact_quantities(of, sizes, "B", numbers.tile)
        times = [(piece.bound, value(piece, quantities)) for piece in pieces(numbers)]
        if max(time for _, time in times) == max(time for name, time in times if name == "compute"):
            return size
    return MOST


@pytest.mark.parametrize("dim", ["B", "D", "F"])
@pytest.mark.parametrize("tile", [1, 7, 64])
@pytest.mark.parametrize("case", range(6))
def test_critical_sizes_are_those_of_a_search(dim: str, tile: int, case: int) -> None:
    """Closed form against one size after another, along every dimension."""
    share = [Fraction(numerator, 10) for numerator in (9, 5, 2, 7, 4, 1)]
    numbers = Numbers(
        math=share[case],
        memory=share[case - 1],
        overhead_s=Fraction(1, 10**6),
        mixed_math=share[case - 2] * 2,
        mixed_memory=share[case - 3],
        mixed_depth_s=share[case - 4] / 10**9,
        sustained=share[case - 5],
        tile=tile,
    )
    sizes = {"B": 300, "D": 512, "F": 1024}
    workload = Workload(MATMUL, BITS, sharding("none", MATMUL), 1, (), {}, "leading")
    of = polynomials(workload, TARGET)
    others = {name: size for name, size in sizes.items() if name != dim}
    found = critical_estimate(estimate_of(CalibrationFit(numbers), workload, TARGET), others, dim)
    assert min(found.size or MOST, MOST) == searched(numbers, of, dim)
    assert (found.bound is None) == (found.size == 1)


def test_a_size_that_never_is_compute_bound() -> None:
    """A mixed piece that grows faster than the compute pieces: no size, and what stays larger."""

    def line(constant: int, slope: int) -> Sum:
        return Sum({(): Fraction(constant), ("B",): Fraction(slope)}, {})

    compute, memory = Piece("compute", (line(0, 2),)), Piece("memory", (line(2, 1),))
    mixed = Piece("mixed", (line(0, 3),))
    never = Estimate(line(0, 0), (compute, memory, mixed), None, 1, {})
    found = critical_estimate(never, {}, "B")
    assert (found.size, found.bound) == (None, "mixed")
    without = replace(never, pieces=(compute, memory))
    assert critical_estimate(without, {}, "B").size == 2


def test_of_two_protocols_the_faster_counts() -> None:
    """1 + 4 B and 20 + B against 2 B: network-bound below 20, where the second one is met."""

    def line(constant: int, slope: int) -> Sum:
        return Sum({(): Fraction(constant), ("B",): Fraction(slope)}, {})

    network = Piece("network", (line(1, 4), line(20, 1)))
    compute = Piece("compute", (line(0, 2),))
    found = critical_estimate(Estimate(line(0, 0), (compute, network), None, 1, {}), {}, "B")
    assert (found.size, found.bound) == (20, "network")
