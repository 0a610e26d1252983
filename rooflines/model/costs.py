"""The costs of an operation, derived from its letters: sums of products of extents.

Each cost is a polynomial that is linear in every single dimension. Its variables are *extents*: a
dimension's size or, where it is tiled, its number of tiles. What one extent holds (elements of a
tile, a shard's share) is in the coefficients. These are exact rationals, so that the same terms
serve the tables (as floats) and the thresholds (as integers).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from rooflines.model.operation import OPERANDS, Operation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rooflines.model.sharding import Sharding

__all__ = ["BITS_PER_BYTE", "COSTS", "Term", "Workload", "evaluate", "extent"]

BITS_PER_BYTE = 8

Term = tuple[Fraction, tuple[str, ...]]
"""A coefficient, and the dimensions whose extents it is multiplied by."""


@dataclass(frozen=True)
class Workload:
    """Everything but the sizes that determines the costs of a row.

    Attributes:
        op: The operation.
        bits: Bits per element of `x`, `w` and `out` as stored, block scales included [bit].
        sharding: The split dimension, and the collective that follows.
        shards: N, the chips that share it [1].
        tile: Elements per tile of the tiled dimensions [1].
        flops: `leading` or `exact`.
    """

    op: Operation
    bits: Mapping[str, Fraction]
    sharding: Sharding
    shards: int
    tile: Mapping[str, int]
    flops: str

    @cached_property
    def costs(self) -> Mapping[str, Mapping[tuple[str, ...], Fraction]]:
        """All costs: the coefficient of every product, by its dimensions."""
        sums: dict[str, dict[tuple[str, ...], Fraction]] = {}
        for name, terms in COSTS.items():
            by_dims = sums.setdefault(name, {})
            for coefficient, dims in terms(self):
                by_dims[dims] = by_dims.get(dims, Fraction(0)) + coefficient
        return sums

    def share(self, dim: str) -> int:
        """Chips that split this dimension [1]."""
        return self.shards if dim == self.sharding.split else 1

    def per_extent(self, dim: str) -> Fraction:
        """Elements in one extent of the dimension on one chip [1]: a tile, or 1/N of an element."""
        return Fraction(self.tile[dim]) if dim in self.tile else Fraction(1, self.share(dim))

    def elements(self, dims: Iterable[str], extents: Iterable[str] | None = None) -> Term:
        """Elements of a tensor over `dims` on one chip, repeated over further `extents`."""
        held = set(dims)
        coefficient = Fraction(1)
        for dim in held:
            coefficient *= self.per_extent(dim)
        return coefficient, self.op.in_order(held | set(extents or ()))

    def bytes_of(self, operand: str, extents: Iterable[str] | None = None) -> Term:
        """Bytes of an operand on one chip [byte]."""
        elements, dims = self.elements(self.op.operand(operand), extents)
        return elements * self.bits[operand] / BITS_PER_BYTE, dims


def flops(workload: Workload) -> list[Term]:
    """Floating-point operations of one chip [FLOP].

    Returns:
        leading: 2 * product of all dimensions; exact: product(out) * (2 * product(contracted) - 1).
            Edge tiles are computed whole.

    Source: All About Rooflines, "Matrix multiplication", and its footnote on the exact count.
    """
    everything, dims = workload.elements(workload.op.dims)
    terms = [(2 * everything, dims)]
    if workload.flops == "exact":
        out, out_dims = workload.elements(workload.op.out)
        terms.append((-out, out_dims))
    return terms


def memory_bytes(workload: Workload) -> list[Term]:
    """Bytes between the memory level and the unit of one chip [byte].

    Returns:
        x, w and out once each; with tiles, x and w once per output tile and contracted tile, out
        once per output tile.

    Source: All About Rooflines, "Matrix multiplication"; tiles as in its appendix on VMEM-tiled
    kernels.
    """
    return [
        workload.bytes_of("x", workload.tile),
        workload.bytes_of("w", workload.tile),
        workload.bytes_of("out"),
    ]


def network_bytes(workload: Workload) -> list[Term]:
    """Bytes that one chip sends over the interconnect [byte].

    Returns:
        Bytes sent per byte of payload, times the payload as each chip holds it whole; nothing
        without a collective.

    Source: All About Rooflines, "Network communication rooflines", generalised from two chips to N.
    """
    payload = workload.sharding.payload()
    if payload is None or workload.shards == 1:
        return []
    held, dims = workload.bytes_of(payload)
    return [(workload.sharding.bytes_per_payload(workload.shards) * held, dims)]


def footprint_bytes(workload: Workload) -> list[Term]:
    """Bytes that x, w and out occupy on one chip [byte]: by sizes, not tiles."""
    untiled = Workload(
        workload.op, workload.bits, workload.sharding, workload.shards, {}, workload.flops
    )
    return [untiled.bytes_of(operand) for operand in OPERANDS]


COSTS: Mapping[str, Callable[[Workload], list[Term]]] = {
    "flops": flops,
    "memory_bytes": memory_bytes,
    "network_bytes": network_bytes,
    "footprint_bytes": footprint_bytes,
}
"""Every cost by its column."""


def evaluate(
    terms: Mapping[tuple[str, ...], Fraction], extents: Mapping[str, int | Fraction]
) -> Fraction:
    """The exact value of a cost, from the coefficients of its products, at these extents."""
    total = Fraction(0)
    for dims, coefficient in terms.items():
        value = coefficient
        for dim in dims:
            value *= extents[dim]
        total += value
    return total


def extent(workload: Workload, dim: str, size: int | Fraction) -> int | Fraction:
    """The extent of a size: the size itself or, where the dimension is tiled, its number of tiles.

    The tiles are the whole ones that a chip's share of the size needs.
    """
    if dim not in workload.tile:
        return size
    return -(-size // (workload.tile[dim] * workload.share(dim)))
