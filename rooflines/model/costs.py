"""The costs of an operation, derived from its letters: sums of products of extents.

Each cost is a polynomial that is linear in every single dimension. Its variables are *extents*: a
dimension's size or, where it is tiled, its number of tiles. What one extent holds (elements of a
tile, a shard's share) is in the coefficients. These are exact rationals, so that the same terms
serve the tables (as floats) and the thresholds (as integers).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from rooflines.model.operation import OPERANDS, Operation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rooflines.model.sharding import Sharding

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
        sent: Bytes that each chip sends over every network level, inner first, per byte of what
            the sharding transfers [1].
        tile: Elements per tile of the tiled dimensions [1].
        flops: `leading` or `exact`.
    """

    op: Operation
    bits: Mapping[str, Fraction]
    sharding: Sharding
    shards: int
    sent: tuple[Fraction, ...]
    tile: Mapping[str, int]
    flops: str

    @cached_property
    def costs(self) -> Mapping[str, Mapping[tuple[str, ...], Fraction]]:
        """All costs: the coefficient of every product, by its dimensions."""
        sums: dict[str, dict[tuple[str, ...], Fraction]] = {}
        tiled = {USEFUL: useful_flops} if self.tile else {}
        for name, terms in {**COSTS, **tiled}.items():
            by_dims = sums.setdefault(name, {})
            for coefficient, dims in terms(self):
                by_dims[dims] = by_dims.get(dims, Fraction(0)) + coefficient
        return sums

    @cached_property
    def untiled(self) -> Workload:
        """The same without tiles."""
        return replace(self, tile={})

    @cached_property
    def spans(self) -> Mapping[str, int]:
        """Elements of the tiled dimensions that a tile of every chip spans together [1]."""
        return {dim: tile * self.share(dim) for dim, tile in self.tile.items()}

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


def useful_flops(workload: Workload) -> list[Term]:
    """Floating-point operations of one chip without padding [FLOP]: by sizes, not tiles."""
    return flops(workload.untiled)


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


def _sent(workload: Workload, shares: Iterable[Fraction]) -> list[Term]:
    """Bytes that one chip sends: shares of the payload of every transfer, by sizes, not tiles."""
    share = sum(shares, Fraction(0))
    payloads = [
        workload.untiled.bytes_of(operand) for operand, _ in workload.sharding.transfers if share
    ]
    return [(share * held, dims) for held, dims in payloads]


def network_bytes(workload: Workload) -> list[Term]:
    """Bytes that one chip sends over all interconnects [byte].

    Returns:
        Bytes sent per byte of payload, times the payload as each chip holds it whole, or its share
        in an all-to-all; nothing without a collective.

    Source: All About Rooflines, "Network communication rooflines", generalised from two chips to N.
    """
    return _sent(workload, workload.sent)


def network_inner_bytes(workload: Workload) -> list[Term]:
    """Bytes that one chip sends within its group, over the inner of two interconnects [byte]."""
    return _sent(workload, workload.sent[:1])


def network_outer_bytes(workload: Workload) -> list[Term]:
    """Bytes that one chip sends to other groups, over the outer of two interconnects [byte]."""
    return _sent(workload, workload.sent[1:])


def footprint_bytes(workload: Workload) -> list[Term]:
    """Bytes that x, w and out occupy on one chip [byte]: by sizes, not tiles."""
    return [workload.untiled.bytes_of(operand) for operand in OPERANDS]


COSTS: Mapping[str, Callable[[Workload], list[Term]]] = {
    "flops": flops,
    "memory_bytes": memory_bytes,
    "network_bytes": network_bytes,
    "network_inner_bytes": network_inner_bytes,
    "network_outer_bytes": network_outer_bytes,
    "footprint_bytes": footprint_bytes,
}
"""Every cost by its column."""

USEFUL = "useful_flops"
"""The cost, of a tiled operation only, that counts what is attained."""

TILED = ("flops", "memory_bytes")
"""Costs of the kernel, which computes whole tiles; the others count sizes."""
