"""The nominal quantities that a calibration weighs, as polynomials of the sizes."""

from __future__ import annotations

from functools import reduce
from operator import add, mul
from typing import TYPE_CHECKING

from rooflines.basics.lazy import pl
from rooflines.model.poly import Poly, total
from rooflines.model.resources import ACTIVATIONS, MATH, MEMORY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.model.kernel import Kernel
    from rooflines.model.target import Machine


def nominal_quantities(kernel: Kernel, machine: Machine, tile: int = 1) -> dict[str, Poly]:
    """The nominal quantities of a kernel by the names of `form.Affine`: seconds, and depth [1].

    Args:
        kernel: The kernel.
        machine: The chip; its efficiencies, a what-if, are not applied.
        tile: Rows whose math is computed together [1].
    """
    peak, rate = machine.peaks[kernel.compute], machine.level.bytes_per_s
    span = tile * kernel.sharers if tile > 1 else 1
    moved = total((kernel.work(MEMORY.work), kernel.work(ACTIVATIONS)))
    return {
        MATH.name: (kernel.work(MATH.work) / peak).in_spans(kernel.rows, span),
        MEMORY.name: moved / rate,
        **{name: held if name == "depth" else held / rate for name, held in kernel.moved.items()},
    }


def expressions(of: Mapping[str, Poly]) -> dict[str, pl.Expr]:
    """Polynomials of sizes as expressions of their columns, Float64."""

    def extent(name: str) -> pl.Expr:
        size, _, span = name.partition("/")
        counted = (pl.col(size) + (int(span) - 1)) // int(span) if span else pl.col(size)
        return counted.cast(pl.Float64)

    def summed(poly: Poly) -> pl.Expr:
        products = [
            reduce(mul, [pl.lit(float(per)), *map(extent, product)])
            for product, per in poly.coefficients.items()
        ]
        return reduce(add, products)

    return {name: summed(poly) for name, poly in of.items()}
