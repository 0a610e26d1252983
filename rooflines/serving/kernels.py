"""The kernels of a step on one chip of a split: exact works, and what the chips send.

A kernel is a group of a model on one chip. Its works are sums of products of extents, as in
`rooflines.models.groups`. Shares such as B / dp are real numbers: all chips are equally busy.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from rooflines.model.costs import BITS_PER_BYTE
from rooflines.model.network import ALL_TO_ALL, Route
from rooflines.model.operation import operation
from rooflines.model.sharding import sharding
from rooflines.models.cache import BY_BATCH, cache_shares
from rooflines.models.groups import TOKENS, groups_of, reached, touched_experts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rooflines.model.network import Link
    from rooflines.models.groups import Group, Step, Terms
    from rooflines.models.shape import Layout, Phase, Shape
    from rooflines.models.split import Split

OF_WINDOWS = ("pairs", "entries")
"""Extents that depend on how far a token attends."""

IN_TILES = {"tokens": ("B", "T"), "sequences": ("B",)}
"""The sizes whose product is counted in whole spans, such as `tokens:128`."""

WORKS = ("flops", "weight_bytes", "cache_bytes", "activation_bytes")
"""The works of a kernel, besides what it sends."""


class Placement(NamedTuple):
    """What the chips of a tensor-parallel group have whole of a kernel's input and output.

    Attributes:
        reads: Whether every chip reads the whole input.
        writes: Whether every chip writes the whole output.
        collective: What sums the outputs; None if there is nothing to sum.
    """

    reads: bool
    writes: bool
    collective: str | None = None


def _as_matmul(name: str) -> Placement:
    """The placement of a matmul under a named sharding."""
    matmul = operation("matmul")
    scheme = sharding(name, matmul)
    reads, writes = (scheme.split not in matmul.operand(operand) for operand in ("x", "out"))
    return Placement(reads, writes, dict(scheme.transfers).get("out"))


COLUMN, ROW = _as_matmul("column"), _as_matmul("contracting/all-reduce")

PLACEMENTS: Mapping[Layout, Placement] = {
    "column": COLUMN,
    "row": ROW,
    "heads": Placement(reads=False, writes=False),
    "fused": Placement(COLUMN.reads, ROW.writes, ROW.collective),
    "whole": Placement(reads=True, writes=True),
}


@dataclass(frozen=True)
class Collective:
    """What the chips of a kernel send to each other.

    Attributes:
        kind: A key of `network.PASSES`.
        payload: As each chip holds it whole; in an all-to-all its share, of experts the tokens
            that it sends or gets back, once each [byte].
        route: The interconnects between them.
        choice: E, k and routing of the experts that tokens are sent to; None without.
    """

    kind: str
    payload: Terms
    route: Route
    choice: tuple[int, int, str] | None = None

    @property
    def sent(self) -> tuple[Fraction, ...]:
        """Bytes that a chip sends over every interconnect, per byte of the payload [1]."""
        if self.choice is None:
            return self.route.sent(self.kind)
        experts, per_token, routing = self.choice
        return self.route.sent_once(lambda parts: reached(experts, per_token, parts, routing))

    @property
    def sent_bytes(self) -> Terms:
        """Bytes that a chip sends over all interconnects [byte]."""
        return scaled(self.payload, sum(self.sent, Fraction(0)))


@dataclass(frozen=True)
class Kernel:
    """A group of a model on one chip.

    Attributes:
        group: The group.
        compute: The compute dtype.
        works: `WORKS` of one layer [FLOP or byte].
        reads: What it reads besides weights and cache, a part of `activation_bytes` [byte].
        writes: What it writes besides the cache, the other part [byte].
        depth: Elements that a chip contracts, if it is one matmul with weights [1].
        collectives: What follows, one after another.
        token_share: Share of a step's tokens that choose among the experts that are read here [1].
    """

    group: Group
    compute: str
    works: Mapping[str, Terms]
    reads: Terms
    writes: Terms
    depth: Fraction | None
    collectives: tuple[Collective, ...]
    token_share: Fraction

    @property
    def sent_bytes(self) -> Terms:
        """Bytes that a chip sends over all interconnects, in one layer [byte]."""
        return summed((1, sent.sent_bytes) for sent in self.collectives)

    def extents(self, step: Step) -> dict[str, int | Fraction]:
        """The variables of the works: those of the group, with the experts touched here."""
        values = self.group.extents(step)
        moe = self.group.moe
        if moe is not None:
            tokens = step.B * step.T * self.token_share
            values["touched"] = touched_experts(moe.E, moe.k, tokens, step.routing)
        return values


@dataclass(frozen=True)
class Sharing:
    """How chips share a model and store its tensors.

    Attributes:
        split: The split.
        bits: Bits per element of each class of tensors [bit].
        compute: The compute dtypes of linear kernels and of attention.
        cache_split: `heads` or `batch`.
        links: The interconnects, inner first; none where nothing is sent.
        routing: Which experts tokens choose.
    """

    split: Split
    bits: Mapping[str, Fraction]
    compute: tuple[str, str]
    cache_split: str
    links: tuple[Link, ...]
    routing: str

    def bytes_of(self, tensors: str) -> Fraction:
        """Bytes per element of a class of tensors [byte]."""
        return self.bits[tensors] / BITS_PER_BYTE


def kernels_of(shape: Shape, phase: Phase, sharing: Sharing) -> tuple[Kernel, ...]:
    """The kernels of a step on one chip, in the order in which they run.

    Args:
        shape: The model.
        phase: `decode` or `prefill`.
        sharing: How chips share it; checked by `Split.check`.
    """
    return tuple(_kernel(shape, group, sharing) for group in groups_of(shape, phase))


def _kernel(shape: Shape, group: Group, sharing: Sharing) -> Kernel:
    split = sharing.split
    over_all = group.moe is not None and split.ep > 1
    weights_share = split.share(group.tensors or "weights")
    cache = Fraction(1, split.dp * cache_shares(shape, split.shards, sharing.cache_split))
    reads, writes = _activations(group, sharing)
    works = {
        "flops": scaled(group.flops, Fraction(1, split.chips)),
        "weight_bytes": scaled(
            group.weights, weights_share * sharing.bytes_of(group.tensors or "weights")
        ),
        "cache_bytes": scaled(group.cache, cache * sharing.bytes_of("cache")),
        "activation_bytes": summed([(1, reads), (1, writes)]),
    }
    depth = group.depth
    if depth is not None and not PLACEMENTS[group.layout].reads:
        depth /= split.shards
    return Kernel(
        group,
        sharing.compute[1 if group.cache else 0],
        {name: terms for name, terms in works.items() if terms},
        reads,
        writes,
        depth,
        tuple(_collectives(shape, group, sharing)),
        Fraction(1) if over_all else Fraction(1, split.dp),
    )


def _activations(group: Group, sharing: Sharing) -> tuple[Terms, Terms]:
    """Bytes that a chip reads, and that it writes, besides weights and cache [byte]."""
    split, placement = sharing.split, PLACEMENTS[group.layout]
    whole, shared = Fraction(1, split.dp), Fraction(1, split.chips)
    if group.moe is not None and split.ep > 1:
        whole = shared  # the tokens of the experts that are here
    size = sharing.bytes_of("activations")
    return (
        scaled(group.reads, size * (whole if placement.reads else shared)),
        scaled(group.writes, size * (whole if placement.writes else shared)),
    )


def _collectives(shape: Shape, group: Group, sharing: Sharing) -> Iterator[Collective]:
    """What the chips send after a kernel, or for an attention around it."""
    split = sharing.split
    size = sharing.bytes_of("activations")
    activations: Terms = {TOKENS: shape.D * size / split.dp}
    if group.moe is not None and split.ep > 1:
        everyone = Route(sharing.links, (split.ep,))
        choice = group.moe.E, group.moe.k, sharing.routing
        for sent in (size, sharing.bytes_of("combine")):
            tokens: Terms = {TOKENS: shape.D * sent / split.chips}
            yield Collective(ALL_TO_ALL, tokens, everyone, choice)
    if split.shards == 1:
        return
    route = Route(sharing.links, split.axes)
    if group.cache and sharing.cache_split == BY_BATCH:
        for terms in (group.reads, group.writes):
            yield Collective(ALL_TO_ALL, scaled(terms, size / split.chips), route)
    if group.moe is not None and split.ep > 1:
        yield Collective("all-gather", activations, route)
        return
    summed = PLACEMENTS[group.layout].collective
    with_experts = group.name == "shared" and split.ep == 1  # one sum for both
    if summed is not None and not with_experts:
        yield Collective(summed, activations, route)


def named(kernel: Kernel, terms: Terms) -> Terms:
    """Terms whose extents name the window that they depend on, such as `pairs:128`."""
    window = kernel.group.window or ""
    return {
        tuple(f"{dim}:{window}" if dim in OF_WINDOWS else dim for dim in dims): coefficient
        for dims, coefficient in terms.items()
    }


def scaled(terms: Terms, factor: Fraction) -> Terms:
    """Terms times a factor."""
    return {dims: coefficient * factor for dims, coefficient in terms.items()}


def summed(parts: Iterable[tuple[int, Terms]]) -> Terms:
    """The sum of terms, each a number of times."""
    total: Terms = {}
    for count, terms in parts:
        for dims, coefficient in terms.items():
            total[dims] = total.get(dims, Fraction(0)) + count * coefficient
    return total
