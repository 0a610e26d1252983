"""Kernels, each running alone on a chip: their works, transfers and operands.

An operation is one kernel. A model's step is a list of kernels, each with a count of layers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from rooflines.theory.costs import TILED_COSTS
from rooflines.theory.extents import Tiles
from rooflines.theory.poly import ZERO, Poly, total

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.theory.costs import Workload
    from rooflines.theory.extents import Extent, Product
    from rooflines.theory.network import Route
    from rooflines.theory.tori import TorusLoad, TorusRoute

IO_OPERANDS = ("x", "out")
"""Operands whose bytes enter calibrations beside all memory traffic."""

NETWORK_BYTES = "network_bytes"

OFFLOAD_BYTES = "offload_bytes"
"""Column with bytes copied between chip and host; only training has them."""


class ExpertRouting(NamedTuple):
    """Routing of tokens to experts.

    Attributes:
        experts, per_token: E and k in a layer [1].
        scheme: The distribution over experts: `uniform`, `same` or `all`.
        zero_experts: Further experts without weights [1].
    """

    experts: int
    per_token: int
    scheme: str
    zero_experts: int = 0


@dataclass(frozen=True, eq=False)
class Transfer:
    """A collective between the chips of a kernel.

    Attributes:
        kind: The collective, a key of `network.RING_PASSES`.
        payload: The whole tensor on each chip; in an all-to-all its 1/N [byte].
        route: The interconnects between the chips.
        bytes_per_payload_byte: Bytes that a chip sends over every interconnect, inner first, per
            byte of the payload [1].
        routing: Routing to experts in a dispatch or combine; None for other collectives.
        first_level: Index of the first interconnect among those of the kernel, whose times are
            summed apart: 0, but for copies between chip and host, and beside a torus [1].
        load: Load on the axes of a torus, where parallelisms are mapped onto them.
        group: Chips and stride of its group in the layout, on a torus [1].
    """

    kind: str
    payload: Poly
    route: Route | TorusRoute
    bytes_per_payload_byte: tuple[Fraction, ...]
    routing: ExpertRouting | None = None
    first_level: int = 0
    load: TorusLoad | None = None
    group: tuple[int, int] | None = None

    @property
    def sent_bytes(self) -> Poly:
        """Bytes sent by a chip over all interconnects: payload * bytes per payload byte [byte]."""
        return self.payload * sum(self.bytes_per_payload_byte, Fraction(0))


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel on one chip, in one layer.

    Attributes:
        name: The name in tables.
        compute: The compute dtype.
        works: Amounts of work by column: `flops` [FLOP], `memory_bytes`, `network_bytes` and others
            [byte]. Engine overheads count layers or sequences, by the fitted constant that each
            pays [1].
        transfers: The collectives, one after another.
        fit_terms: Terms that calibrations read: bytes in `x` and `out` [byte]; for a matmul with
            weights also its `depth` D and `columns` F, for attention the `context` per sequence,
            the KV `heads` in all sequences, the size per `head` and the `window` [1]; for routed
            experts the bytes in their `inputs`, each token once [byte], the number `activated`,
            and their `width` D and `expert_width` Fe [1].
        rows: The sizes whose product a calibration rounds up to whole tiles; none for a kernel
            that has tiles already, or is no matmul.
        row_shards: Chips that share these rows [1].
        count: Layers with this kernel [1].
        collectives: Names of an operation's collectives, also on one chip, which sends nothing.
        attention_phase: Phase of grouped-query attention, for its calibrations; None otherwise.
        cache: Storage dtype in the KV cache that attention reads, for the same; None otherwise.
        shares_heads: Whether query heads share a KV head on the chip, for the same.
        experts: Storage dtype for routed experts, for their calibrations; None otherwise.
        engine_transfers: Collectives that engines call instead, where `transfers` send less,
            for estimates; None: the same.
        engine: Whether this is engine overhead beside kernels, which only calibrations time.
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
    cache: str | None = None
    shares_heads: bool = True
    experts: str | None = None
    engine_transfers: tuple[Transfer, ...] | None = None
    engine: bool = False

    @property
    def is_matmul(self) -> bool:
        """Tell whether this is one matmul with weights, as calibrations time them."""
        return "depth" in self.fit_terms

    @property
    def timed_transfers(self) -> tuple[Transfer, ...]:
        """Collectives in estimates: those that engines call."""
        return self.transfers if self.engine_transfers is None else self.engine_transfers

    def work(self, column: str) -> Poly:
        """Work in one layer, by column [FLOP or byte]; zero for an absent column."""
        return self.works.get(column, ZERO)


def operation_kernel(workload: Workload, compute: str) -> Kernel:
    """Kernel of an operation for any sizes, without transfers.

    Args:
        workload: The operation with dtypes, split and tiles.
        compute: The compute dtype.
    """
    global_tile = workload.global_tile

    def in_tiles(dim: Extent) -> Product:
        return (Tiles((dim,), global_tile[dim]) if dim in global_tile else dim,)

    works: dict[str, Poly] = {}
    for name, cost in workload.costs.items():
        works[name] = cost.replaced(in_tiles) if name in TILED_COSTS and global_tile else cost
    untiled, row = workload.untiled, workload.op.sizes[0]
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


def operation_transfers(workload: Workload, route: Route) -> tuple[Transfer, ...]:
    """Collectives of an operation; none where chips send nothing.

    Args:
        workload: The operation.
        route: The interconnects.
    """
    if not any(workload.bytes_per_payload_byte):
        return ()
    return tuple(
        Transfer(
            kind, workload.untiled.operand_bytes(operand), route, workload.bytes_per_payload_byte
        )
        for operand, kind in workload.sharding.transfers
    )


def sent_bytes(transfers: tuple[Transfer, ...]) -> Poly:
    """Bytes sent by a chip in several collectives, over all interconnects [byte]."""
    return total(transfer.sent_bytes for transfer in transfers)
