"""Kernels: what runs on one chip at a time, with its works, its transfers and its operands.

An operation is one kernel. A step of a model is a list of kernels, each with a count of layers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from rooflines.theory.costs import TILED_COSTS
from rooflines.theory.poly import ZERO, Poly, Product, total

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.theory.costs import Workload
    from rooflines.theory.network import Route

IO_OPERANDS = ("x", "out")
"""Operands whose bytes calibrations weigh besides all memory traffic."""

NETWORK_BYTES = "network_bytes"


@dataclass(frozen=True, eq=False)
class Transfer:
    """What the chips of a kernel send to each other at once.

    Attributes:
        kind: The collective, a key of `network.RING_PASSES`.
        payload: As each chip holds it whole; in an all-to-all its share [byte].
        route: The interconnects between them.
        bytes_per_payload_byte: Bytes that a chip sends over every interconnect, inner first, per
            byte of the payload [1].
        choice: E, k and routing of the experts that tokens are sent to; None without.
    """

    kind: str
    payload: Poly
    route: Route
    bytes_per_payload_byte: tuple[Fraction, ...]
    choice: tuple[int, int, str] | None = None

    @property
    def sent_bytes(self) -> Poly:
        """Bytes that a chip sends over all interconnects [byte]."""
        return self.payload * sum(self.bytes_per_payload_byte, Fraction(0))


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel on one chip, in one layer.

    Attributes:
        name: Its name in tables.
        compute: The dtype that it computes in.
        works: Amounts of work by column: `flops` [FLOP], `memory_bytes`, `network_bytes` and others
            [byte]. Of what an `engine` does: layers or sequences, by the number of a fit of steps
            that is the time of one [1].
        transfers: What is sent, one after another.
        fit_terms: `x` and `out`, between memory and unit [byte]; of one matmul with weights also
            `depth` and `columns`, its D and F, of attention the `context` of a sequence [1].
        rows: The sizes whose product is computed in the whole tiles of a calibration; none where
            the kernel has tiles of its own, or is no matmul.
        row_shards: Chips that share these rows [1].
        count: Layers with it [1].
        collectives: The collectives of an operation, also where one chip sends nothing.
        attention_phase: Phase of grouped-query attention, for its calibrations; None otherwise.
        engine: Whether it is what an engine does besides its kernels, which only calibrations time.
    """

    name: str
    compute: str
    works: Mapping[str, Poly]
    transfers: tuple[Transfer, ...] = ()
    fit_terms: Mapping[str, Poly] = field(default_factory=dict)
    rows: Product = ()
    row_shards: int = 1
    count: int = 1
    collectives: tuple[str, ...] = ()
    attention_phase: str | None = None
    engine: bool = False

    @property
    def is_matmul(self) -> bool:
        """Whether it is one matmul with weights, as calibrations time them."""
        return "depth" in self.fit_terms

    def work(self, column: str) -> Poly:
        """A work of one layer [FLOP or byte]; zero where it has none of that name."""
        return self.works.get(column, ZERO)


def operation_kernel(workload: Workload, compute: str) -> Kernel:
    """The kernel of an operation with its sizes left open, before it is sent anywhere.

    Args:
        workload: The operation, its dtypes, split and tiles.
        compute: The compute dtype.
    """
    global_tile = workload.global_tile

    def in_tiles(dim: str) -> str:
        return f"{dim}/{global_tile[dim]}" if dim in global_tile else dim

    works: dict[str, Poly] = {}
    for name, cost in workload.costs.items():
        poly = cost.renamed(in_tiles) if name in TILED_COSTS and global_tile else cost
        equal_works = (work for work in works.values() if work.terms == poly.terms)
        works[name] = next(equal_works, poly)
    untiled, row = workload.untiled, workload.op.dims[0]
    io_bytes = {name: untiled.operand_bytes(name) for name in IO_OPERANDS}
    column_dims = tuple(dim for dim in workload.op.out if dim not in workload.op.x)
    return Kernel(
        workload.op.name,
        compute,
        works,
        (),
        {
            **io_bytes,
            "depth": untiled.elements(workload.op.contracted),
            "columns": untiled.elements(column_dims),
        },
        (row,) if row in workload.op.out and not global_tile else (),
        workload.shards_along(row),
        collectives=tuple(kind for _, kind in workload.sharding.transfers),
    )


def operation_transfers(kernel: Kernel, workload: Workload, route: Route) -> tuple[Transfer, ...]:
    """The collectives of an operation; a single one shares the terms of its kernel's work.

    Args:
        kernel: Its kernel.
        workload: The operation.
        route: The interconnects.
    """
    level_bytes, bytes_sent = (
        workload.bytes_per_payload_byte,
        sum(workload.bytes_per_payload_byte, Fraction(0)),
    )
    if not bytes_sent:
        return ()
    transfers = workload.sharding.transfers
    payloads = [workload.untiled.operand_bytes(operand) for operand, _ in transfers]
    if len(transfers) == 1:
        payloads = [kernel.work(NETWORK_BYTES) / bytes_sent]
    return tuple(
        Transfer(kind, payload, route, level_bytes)
        for (_, kind), payload in zip(transfers, payloads, strict=True)
    )


def sent_bytes(transfers: tuple[Transfer, ...]) -> Poly:
    """Bytes that a chip sends in several collectives, over all interconnects [byte]."""
    return total(transfer.sent_bytes for transfer in transfers)
