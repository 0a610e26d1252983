"""Costs derived from an operation's letters: sums of products of extents.

Each cost is linear in every single dimension. Its variables are *extents*: a dimension's size or,
where it is tiled, its number of tiles. Coefficients hold the elements in one extent: those in a
tile, or a shard's 1/N.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from rooflines.theory.operation import OPERANDS, Operation
from rooflines.theory.poly import Poly, total

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rooflines.theory.sharding import Sharding

BITS_PER_BYTE = 8


@dataclass(frozen=True)
class Workload:
    """Operation, dtypes, sharding and tiles: with the sizes, they determine the costs of a row.

    Attributes:
        op: The operation.
        bits: Bits per element of `x`, `w` and `out` as stored, block scales included [bit].
        sharding: The split dimension, and the collective that follows.
        shards: N, the chips that share the operation [1].
        bytes_per_payload_byte: Bytes that each chip sends over every network level, inner first,
            per byte of the payload [1].
        tile: Elements per tile of the tiled dimensions [1].
        flops: `leading` or `exact`.
    """

    op: Operation
    bits: Mapping[str, Fraction]
    sharding: Sharding
    shards: int
    bytes_per_payload_byte: tuple[Fraction, ...]
    tile: Mapping[str, int]
    flops: str

    @cached_property
    def costs(self) -> Mapping[str, Poly]:
        """Costs by column [FLOP or byte]."""
        tiled = {USEFUL_FLOPS: useful_flops} if self.tile else {}
        return {name: cost(self) for name, cost in {**COSTS, **tiled}.items()}

    @cached_property
    def untiled(self) -> Workload:
        """This workload without tiles."""
        return replace(self, tile={})

    @cached_property
    def global_tile(self) -> Mapping[str, int]:
        """Elements per tile over all shards: tile * shards, by tiled dimension [1]."""
        return {dim: tile * self.shards_along(dim) for dim, tile in self.tile.items()}

    def shards_along(self, dim: str) -> int:
        """Shards along a dimension: N along the split one, otherwise 1 [1]."""
        return self.shards if dim == self.sharding.split else 1

    def elements(self, dims: Iterable[str], extents: Iterable[str] = ()) -> Poly:
        """Elements of a tensor on one chip: product over `dims`, times further `extents` [1].

        An extent has the elements of a tile, or 1/N of those of a size.
        """
        tensor_dims = set(dims)
        tile = math.prod(self.tile[dim] for dim in tensor_dims if dim in self.tile)
        shards = math.prod(self.shards_along(dim) for dim in tensor_dims if dim not in self.tile)
        return Poly({self.op.in_order(tensor_dims.union(extents)): Fraction(tile, shards)})

    def operand_bytes(self, operand: str, extents: Iterable[str] = ()) -> Poly:
        """Bytes of an operand on one chip: elements * bits / 8 [byte]."""
        elements = self.elements(self.op.operand(operand), extents)
        return elements * (self.bits[operand] / BITS_PER_BYTE)


def flops(workload: Workload) -> Poly:
    """FLOPs on one chip [FLOP].

    Returns:
        leading: 2 * product of all dimensions; exact: product(out) * (2 * product(contracted) - 1).
            Edge tiles are computed whole.

    Source: All About Rooflines, "Matrix multiplication", and its footnote on the exact count.
    """
    leading = workload.elements(workload.op.dims) * 2
    if workload.flops != "exact":
        return leading
    return leading + workload.elements(workload.op.out) * -1


def useful_flops(workload: Workload) -> Poly:
    """FLOPs on one chip without padding [FLOP]: by sizes, not tiles."""
    return flops(workload.untiled)


def memory_bytes(workload: Workload) -> Poly:
    """Bytes between memory level and compute unit on one chip [byte].

    Returns:
        x, w and out once each; with tiles, x and w once per output tile and contracted tile, out
        once per output tile.

    Source: All About Rooflines, "Matrix multiplication"; tiles as in its appendix on VMEM-tiled
    kernels.
    """
    operand_reads = (workload.operand_bytes(operand, workload.tile) for operand in ("x", "w"))
    return total((*operand_reads, workload.operand_bytes("out")))


def _sent_bytes(workload: Workload, payload_shares: Iterable[Fraction]) -> Poly:
    """Bytes that one chip sends: shares * payload, summed over transfers; by sizes, not tiles."""
    share, transfers = sum(payload_shares, Fraction(0)), workload.sharding.transfers
    return total(workload.untiled.operand_bytes(operand) * share for operand, _ in transfers)


def network_bytes(workload: Workload) -> Poly:
    """Bytes that one chip sends over all interconnects [byte].

    Returns:
        Bytes per payload byte, times the payload: the whole tensor on each chip, or its 1/N in an
        all-to-all; zero without a collective.

    Source: All About Rooflines, "Network communication rooflines", generalised from two chips to N.
    """
    return _sent_bytes(workload, workload.bytes_per_payload_byte)


def network_inner_bytes(workload: Workload) -> Poly:
    """Bytes that one chip sends within its group, over the inner of two interconnects [byte]."""
    return _sent_bytes(workload, workload.bytes_per_payload_byte[:1])


def network_outer_bytes(workload: Workload) -> Poly:
    """Bytes that one chip sends to other groups, over the outer of two interconnects [byte]."""
    return _sent_bytes(workload, workload.bytes_per_payload_byte[1:])


def footprint_bytes(workload: Workload) -> Poly:
    """Footprint on one chip: bytes(x) + bytes(w) + bytes(out) [byte]; by sizes, not tiles."""
    return total(workload.untiled.operand_bytes(operand) for operand in OPERANDS)


COSTS: Mapping[str, Callable[[Workload], Poly]] = {
    "flops": flops,
    "memory_bytes": memory_bytes,
    "network_bytes": network_bytes,
    "network_inner_bytes": network_inner_bytes,
    "network_outer_bytes": network_outer_bytes,
    "footprint_bytes": footprint_bytes,
}
"""Costs by column."""

USEFUL_FLOPS = "useful_flops"
"""Column with the FLOPs that attained rates count; tiled operations only."""

TILED_COSTS = ("flops", "memory_bytes")
"""Costs that count whole tiles, as the kernel computes them; the rest count sizes."""
