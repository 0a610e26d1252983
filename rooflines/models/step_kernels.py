"""The kernels of a step on one chip of a split: exact works, and what the chips send.

A kernel is a group of a model on one chip. Shares such as B / dp are real numbers: all chips are
equally busy.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from rooflines.models.architecture import DECODE, PREFILL, ROUTER
from rooflines.models.groups import (
    DRAFT,
    MATMULS,
    UNIFORM,
    draft_groups,
    groups_of,
    reached,
    touched_experts,
)
from rooflines.models.memory import cache_shards
from rooflines.models.mtp import drafting
from rooflines.models.split import BY_BATCH
from rooflines.models.tensor_dtypes import LM_HEAD, REST
from rooflines.theory.costs import BITS_PER_BYTE
from rooflines.theory.kernel import NETWORK_BYTES, Kernel, Transfer, sent_bytes
from rooflines.theory.network import ALL_TO_ALL, Route, placed_axes
from rooflines.theory.poly import TOUCHED, ZERO, Poly, constant, total

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from rooflines.models.architecture import Phase, Shape
    from rooflines.models.groups import Group, Terms
    from rooflines.models.matrix import Layout
    from rooflines.models.split import Split
    from rooflines.theory.network import Link


@dataclass(frozen=True)
class Sharing:
    """How chips share a model and store its tensors.

    Attributes:
        split: The split.
        bits: Bits per element of each class of tensors [bit].
        compute: The compute dtypes of linear kernels and of attention.
        cache_split: `heads` or `batch`.
        routing: Which experts tokens choose.
    """

    split: Split
    bits: Mapping[str, Fraction]
    compute: tuple[str, str]
    cache_split: str
    routing: str

    def bytes_of(self, tensors: str, bits: int | None = None) -> Fraction:
        """Bytes per element of a class of tensors [byte].

        Args:
            tensors: The class.
            bits: Bits of tensors that have a dtype of their own; None: that of the class [bit].
        """
        return Fraction(bits or self.bits[tensors]) / BITS_PER_BYTE


class Copies(NamedTuple):
    """What the chips of a tensor-parallel group have in copies.

    Attributes:
        group: The kernel.
        part: The part of it; empty: all.
        shards: Chips that share it; 1: each chip has it whole [1].
        copies: How many there are [1].
    """

    group: str
    part: str
    shards: int
    copies: float


def copies_of(groups: Iterable[Group], sharing: Sharing) -> Iterator[Copies]:
    """What the chips of a tensor-parallel group have in copies, of groups of a model."""
    tp = sharing.split.shards
    for group in groups:
        if group.cache and sharing.cache_split == BY_BATCH:
            continue
        for each in group.copied:
            if each.shards < tp and (each.weights or group.layout == "whole"):
                yield Copies(group.name, each.part, each.shards, tp / each.shards)


def token_share(split: Split) -> Fraction:
    """Share of a step's tokens that choose among the experts that a chip reads [1]."""
    return Fraction(1) if split.parts > 1 else Fraction(1, split.dp)


SHARED = ("shared", f"{DRAFT}shared")
"""The kernels of shared experts, whose outputs are summed with those of routed ones."""

READ_WHOLE: frozenset[Layout] = frozenset(("column", "fused", "whole"))
"""Layouts whose input every chip of a tensor-parallel group reads whole."""

WRITTEN_WHOLE: frozenset[Layout] = frozenset(("row", "fused", "whole"))
"""Those whose output every chip writes whole."""

SUMMED: frozenset[Layout] = frozenset(("row", "fused"))
"""Those of whose output each chip has a sum, which are added up."""


@dataclass(frozen=True, eq=False)
class StepKernels:
    """The kernels of a step, whose works are the same on all chips.

    Attributes:
        shape: The model.
        phase: `decode` or `prefill`.
        sharing: How chips share it; checked by `Split.check`.
        scores_all: Whether the unembedding is of every token, as of drafts; else of the last one.
        engine: Whether to add what an engine does in decode besides these kernels.
        drafted: Tokens of each sequence that the model's own layer drafts before a step [1].
        like: The same in another phase: groups that are equal in both share their kernels.
        fastest_axes: Whether plain numbers of chips take the fastest axes of a torus.
    """

    shape: Shape
    phase: Phase
    sharing: Sharing
    scores_all: bool = False
    engine: bool = False
    drafted: int = 0
    like: StepKernels | None = None
    fastest_axes: bool = field(default=False, kw_only=True)

    @cached_property
    def prefill(self) -> StepKernels:
        """The kernels of a prefill with the same dtypes and split."""
        return replace(self, phase=PREFILL, drafted=0, like=self)

    @property
    def held(self) -> Shape:
        """The layers that chips hold."""
        return drafting(self.shape) if self.drafted else self.shape

    @cached_property
    def alone(self) -> tuple[tuple[Group, Kernel], ...]:
        """The groups, each with its kernel where nothing is sent."""
        groups = groups_of(self.shape, self.phase, scores_all=self.scores_all)
        if self.drafted:
            groups = (*groups, *draft_groups(self.shape, self.drafted))
        known = list(self.like.alone) if self.like else []
        return tuple(
            next((each for each in known if each[0] == group), None)
            or (group, _kernel(group, self.sharing))
            for group in groups
        )

    @cached_property
    def _over(self) -> dict[tuple[Link, ...], tuple[Kernel, ...]]:
        """The kernels of a chip by its interconnects."""
        return {}

    @cached_property
    def works(self) -> Mapping[str, Poly]:
        """The works of all kernels and layers where nothing is sent [FLOP or byte]."""
        kernels = [kernel for _, kernel in self.alone]
        return {
            column: total(kernel.work(column) * kernel.count for kernel in kernels)
            for column in kernels[0].works
        }

    @property
    def copies(self) -> Iterator[Copies]:
        """What the chips of a tensor-parallel group have in copies."""
        return copies_of((group for group, _ in self.alone), self.sharing)

    def over(self, links: tuple[Link, ...]) -> tuple[Kernel, ...]:
        """The kernels of one chip in the order in which they run, with what it sends.

        Args:
            links: The interconnects, inner first; none where nothing is sent.
        """
        if links not in self._over:
            self._over[links] = tuple(self._sending(links))
        return self._over[links]

    def _sending(self, links: tuple[Link, ...]) -> Iterator[Kernel]:
        """The kernels, each with what it sends over interconnects."""
        split, known = self.sharing.split, dict[Kernel, Kernel]()
        if self.like:
            alone = (kernel for _, kernel in self.like.alone)
            known = dict(zip(alone, self.like.over(links), strict=False))
        axes, experts_axes = split.axes, split.experts_axes
        if self.fastest_axes:
            axes = placed_axes(links, axes)
            experts_axes = placed_axes(links, experts_axes, ALL_TO_ALL)
        routes = Route(links, axes), Route(links, experts_axes)
        for group, kernel in self.alone:
            if kernel in known:
                yield known[kernel]
                continue
            sent = tuple(_transfers(self.shape, group, self.sharing, *routes))
            works = {**kernel.works, NETWORK_BYTES: sent_bytes(sent)}
            yield replace(kernel, works=works, transfers=sent) if sent else kernel
        if self.engine and self.phase == DECODE:
            yield from _of_engine(self.shape, self.sharing, self.drafted)


def _kernel(group: Group, sharing: Sharing) -> Kernel:
    """A group on one chip, before anything is sent."""
    split, over_all = sharing.split, _over_all(group, sharing)
    tokens = Fraction(1) if over_all else Fraction(1, split.dp)

    def extent(name: str) -> str:
        """The extent, of experts that the tokens of a replica touch."""
        if not name.startswith(TOUCHED):
            return name
        experts, per_token, _, *sizes = name.split(",")
        return ",".join([experts, per_token, str(tokens), *sizes])

    def amount(terms: Terms, factor: Fraction) -> Poly:
        found = {tuple(map(extent, product)): per * factor for product, per in terms.items()}
        return Poly(found) if found else ZERO

    if group.cache and sharing.cache_split == BY_BATCH:
        group = replace(group, layout="heads", copied=())  # chips have sequences of their own
    share = group.share("weights", split.shards)
    weights = split.share("experts") if over_all else share
    tensors = LM_HEAD if group.tensors == "head" else group.tensors or "weights"
    if group.name.removeprefix(DRAFT) == ROUTER:
        tensors = REST
    weight_bytes = amount(group.weights, weights * sharing.bytes_of(tensors))
    if group.moe is not None and (sharing.routing != UNIFORM or group.moe.k == group.moe.E):
        used = touched_experts(group.moe.E, group.moe.k, 1, sharing.routing)
        weight_bytes = constant(used * next(iter(weight_bytes.terms.values())))
    parts = split.dp * cache_shards(group.heads, split.shards, sharing.cache_split)
    cached = amount(group.cache, sharing.bytes_of("cache", group.bits) / parts)

    def handed(cost: str, terms: Terms, whole: Collection[Layout]) -> Poly:
        """Bytes of activations; what is whole is so on all chips that do not share experts."""
        part = Fraction(1) if group.layout in whole else group.share(cost, split.shards)
        replica = Fraction(1, split.chips if over_all else split.dp)
        return amount(terms, part * replica * sharing.bytes_of("activations"))

    x = handed("reads", group.reads, READ_WHOLE)
    out = handed("writes", group.writes, WRITTEN_WHOLE)
    moved = {"x": x, "out": out}
    if group.depth is not None:
        depth = group.depth if group.layout in READ_WHOLE else group.depth / split.shards
        moved["depth"] = constant(depth)
        moved["columns"] = constant(sum(group.weights.values()) * share / depth)
    if group.attends:
        ((_, entries),) = group.cache
        moved["context"] = Poly({(entries,): Fraction(1)})
    works = {
        "flops": amount(group.flops, share / split.dp),
        "weight_bytes": weight_bytes,
        "kv_cache_bytes": cached,
        "activation_bytes": total((x, out)),
        "memory_bytes": total((weight_bytes, cached)),
        NETWORK_BYTES: ZERO,
    }
    rows = next(iter(group.flops)) if group.weights and group.layout in MATMULS else ()
    return Kernel(
        group.name,
        sharing.compute[1 if group.cache else 0],
        works,
        (),
        moved,
        rows,
        int(1 / tokens),
        group.count,
        attends=group.attends,
    )


def _of_engine(shape: Shape, sharing: Sharing, drafted: int) -> Iterator[Kernel]:
    """What an engine does in a step besides its kernels: for layers, experts and sequences.

    Args:
        shape: The model.
        sharing: How chips share it.
        drafted: Runs of a layer of its own that drafts, which is as the last one [1].
    """
    experts = shape.moe_layers + drafted if shape.moe_layers else 0
    once, sequences = constant(1), Poly({("B",): Fraction(1, sharing.split.dp)})
    terms = (
        ("engine-layers", {"layer_s": once}, shape.layers + drafted),
        ("engine-experts", {"experts_layer_s": once}, experts),
        ("engine-sequences", {"sequence_s": sequences}, 1),
    )
    for name, works, count in terms:
        if count:
            yield Kernel(name, sharing.compute[0], works, count=count, engine=True)


def _over_all(group: Group, sharing: Sharing) -> bool:
    """Whether all chips share the experts of a group."""
    return group.moe is not None and sharing.split.parts > 1


def _transfers(
    shape: Shape, group: Group, sharing: Sharing, route: Route, everyone: Route
) -> Iterator[Transfer]:
    """What the chips send after a kernel, or for an attention around it.

    Args:
        shape: The model.
        group: The kernel.
        sharing: How chips share it.
        route: Between the chips of tensor parallelism.
        everyone: Between all that share the experts.
    """
    split, size = sharing.split, sharing.bytes_of("activations")
    over_all = _over_all(group, sharing)
    if over_all and group.moe is not None:
        choice = group.moe.E, group.moe.k, sharing.routing
        sent = everyone.sent_once(lambda parts: reached(*choice[:2], parts, choice[2]))
        for each in (size, sharing.bytes_of("combine")):
            tokens = Poly({group.tokens: group.moe.width(shape.D) * each / split.chips})
            yield Transfer(ALL_TO_ALL, tokens, everyone, sent, choice=choice)
    if split.shards == 1:
        return

    def transfer(kind: str, payload: Terms) -> Transfer:
        return Transfer(kind, Poly(payload), route, route.sent(kind))

    if group.layout == "heads" and group.cache and sharing.cache_split == BY_BATCH:
        for terms in (group.reads, group.writes):
            own: Terms = {product: per * size / split.chips for product, per in terms.items()}
            yield transfer(ALL_TO_ALL, own)
    outputs: Terms = {group.tokens: shape.D * size / split.dp}
    if over_all:
        yield transfer("all-gather", outputs)
        return
    with_experts = group.name in SHARED and split.parts == 1  # one sum for both
    if group.layout in SUMMED and not with_experts:
        yield transfer("all-reduce", outputs)
