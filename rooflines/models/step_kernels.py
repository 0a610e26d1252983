"""Kernels of a step on one chip of a split: exact works and collectives.

A kernel is a model's group on one chip. Shares such as B / dp are real numbers: all chips are
equally busy.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.memo import Memo
from rooflines.models.architecture import DECODE, PREFILL
from rooflines.models.compressed_attention import rotary_bits
from rooflines.models.groups import (
    DRAFT,
    MATMUL_LAYOUTS,
    draft_groups,
    groups_of,
)
from rooflines.models.matrix import HEADS_LAYOUT
from rooflines.models.memory import cache_shards
from rooflines.models.mtp import with_mtp_layer
from rooflines.models.split import BY_BATCH
from rooflines.models.stages import StageShape, stage_shapes
from rooflines.models.tensor_dtypes import INPUT
from rooflines.theory.costs import BITS_PER_BYTE
from rooflines.theory.extents import SEQUENCES, ActivatedExperts
from rooflines.theory.kernel import NETWORK_BYTES, ExpertRouting, Kernel, Transfer, sent_bytes
from rooflines.theory.network import ALL_TO_ALL, Route, resolve_axes
from rooflines.theory.poly import ZERO, Poly, constant, total
from rooflines.theory.resources import collective_time
from rooflines.theory.routing import UNIFORM, activated_experts, rank_hit_probability

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rooflines.models.architecture import Phase, Shape
    from rooflines.models.groups import Group
    from rooflines.models.kind_costs import Terms
    from rooflines.models.split import Parallelism
    from rooflines.theory.extents import Extent
    from rooflines.theory.network import Link


@dataclass(frozen=True)
class Sharing:
    """Split over chips, with dtypes and routing.

    Attributes:
        split: The split.
        bits: Bits per element by tensor class [bit].
        compute: Compute dtypes: linear kernels, attention.
        cache_split: `heads` or `batch`.
        routing: Routing to experts.
        formats: Storage dtypes by tensor class, for calibrations by dtype; empty: none applies.
    """

    split: Parallelism
    bits: Mapping[str, Fraction]
    compute: tuple[str, str]
    cache_split: str
    routing: str
    formats: Mapping[str, str] = field(default_factory=dict)

    def bytes_of(self, tensors: str, bits: int | None = None) -> Fraction:
        """Bytes per element in a tensor class: bits / 8 [byte].

        Args:
            tensors: The class.
            bits: Bits per element with a separate dtype; None: the class's [bit].
        """
        return Fraction(bits or self.bits[tensors]) / BITS_PER_BYTE


class Copies(NamedTuple):
    """Weights with copies within a tensor-parallel group.

    Attributes:
        group: The kernel.
        part: Its copied part; empty: the whole kernel.
        shards: Chips that share it; 1: every chip has it whole [1].
        copies: Number of copies: tp / shards [1].
    """

    group: str
    part: str
    shards: int
    copies: float


def copies_of(groups: Iterable[Group], sharing: Sharing) -> Iterator[Copies]:
    """Find weights with copies within a tensor-parallel group."""
    tp = sharing.split.shards
    for group in groups:
        if group.cache and sharing.cache_split == BY_BATCH:
            continue
        for part in group.copied_parts:
            if part.shards < tp and (part.weights or not group.layout.splits_weights):
                yield Copies(group.name, part.part, part.shards, tp / part.shards)


def token_share(split: Parallelism) -> Fraction:
    """Share of a step's tokens routed among a chip's experts: 1 with ep, else 1 / dp [1]."""
    return Fraction(1) if split.parts > 1 else Fraction(1, split.dp)


SHARED_EXPERTS = ("shared", f"{DRAFT}shared")
"""Kernels of shared experts; one all-reduce sums their outputs with routed experts'."""

STATE_OUT = "state-out"
"""Kernel for a state's output; where it runs beside attention, one all-reduce sums both."""


@dataclass(frozen=True, eq=False)
class StepKernels:
    """Kernels of a step, with the same works on all chips.

    Attributes:
        shape: The model.
        phase: `decode` or `prefill`.
        sharing: Split and dtypes; checked by `Split.check`.
        scores_all: Whether the LM head scores every token, as with drafts; else the last one.
        engine: Whether to add engine overheads in decode.
        mtp_tokens: Tokens per sequence that the model's MTP layer drafts before a step [1].
        sibling_phase: Kernels in another phase; groups equal in both share their kernels.
        fastest_axes: Whether plain chip counts take the fastest torus axes.
    """

    shape: Shape
    phase: Phase
    sharing: Sharing
    scores_all: bool = False
    engine: bool = False
    mtp_tokens: int = 0
    sibling_phase: StepKernels | None = None
    fastest_axes: bool = field(default=False, kw_only=True)

    @cached_property
    def prefill(self) -> StepKernels:
        """Kernels of a prefill with the same dtypes and split; it scores the last token alone."""
        return replace(self, phase=PREFILL, mtp_tokens=0, scores_all=False, sibling_phase=self)

    @cached_property
    def stage_kernels(self) -> tuple[tuple[StepKernels, int], ...]:
        """Kernels on a chip of each kind of pipeline stage, with the number of such stages.

        Without stages, those of the whole model; drafts are of the last stage.
        """
        if self.phase == PREFILL and self.sibling_phase is not None:
            return tuple((stage.prefill, n) for stage, n in self.sibling_phase.stage_kernels)
        stages = self.sharing.split.stages
        if stages == 1 or isinstance(self.shape, StageShape):
            return ((self, 1),)
        return tuple(
            (replace(self, shape=shape, mtp_tokens=self.mtp_tokens * shape.is_last), n)
            for shape, n in stage_shapes(self.shape, stages)
        )

    @property
    def resident_shape(self) -> Shape:
        """Architecture resident in memory: with the MTP layer where it drafts."""
        return with_mtp_layer(self.shape) if self.mtp_tokens else self.shape

    @cached_property
    def local_kernels(self) -> tuple[tuple[Group, Kernel], ...]:
        """Groups, each with its kernel without collectives."""
        groups = groups_of(self.shape, self.phase, scores_all=self.scores_all)
        if self.mtp_tokens:
            groups = (*groups, *draft_groups(self.shape, self.mtp_tokens))
        sibling_kernels = list(self.sibling_phase.local_kernels) if self.sibling_phase else []
        return tuple(
            next((pair for pair in sibling_kernels if pair[0] == group), None)
            or (group, _kernel(group, self.sharing))
            for group in groups
        )

    @cached_property
    def engine_kernels(self) -> tuple[Kernel, ...]:
        """Engine overheads of a step, after its other kernels; empty without an engine."""
        if not self.engine or self.phase != DECODE:
            return ()
        return tuple(_engine_kernels(self.shape, self.sharing, self.mtp_tokens))

    @cached_property
    def _kernels_by_links(self) -> Memo[tuple[Link, ...], tuple[Kernel, ...]]:
        """Kernels by links."""
        return Memo(lambda links: tuple(self._kernels_with_transfers(links)))

    @cached_property
    def works(self) -> Mapping[str, Poly]:
        """Works summed over kernels and layers, without collectives [FLOP or byte]."""
        kernels = [kernel for _, kernel in self.local_kernels]
        return {
            column: total(kernel.work(column) * kernel.count for kernel in kernels)
            for column in kernels[0].works
        }

    @property
    def copies(self) -> Iterator[Copies]:
        """Weights with copies within a tensor-parallel group."""
        return copies_of((group for group, _ in self.local_kernels), self.sharing)

    def kernels_on(self, links: tuple[Link, ...]) -> tuple[Kernel, ...]:
        """Kernels on one chip in run order, with their collectives.

        Args:
            links: The interconnects, inner first; empty for one chip.
        """
        return self._kernels_by_links[links]

    def _kernels_with_transfers(self, links: tuple[Link, ...]) -> Iterator[Kernel]:
        """Kernels with their transfers over the links."""
        split, sibling_kernels = self.sharing.split, dict[Kernel, Kernel]()
        if self.sibling_phase:
            local_kernels = (kernel for _, kernel in self.sibling_phase.local_kernels)
            sibling_kernels = dict(
                zip(local_kernels, self.sibling_phase.kernels_on(links), strict=False)
            )
        axes, experts_axes = split.axes, split.exchange_axes
        if self.fastest_axes:
            axes = resolve_axes(links, axes)
            experts_axes = resolve_axes(links, experts_axes, ALL_TO_ALL)
        routes = Routes(
            Route(links, axes),
            Route(links, experts_axes),
            Route(links, axes if split.dp == 1 else experts_axes),
        )
        exchanged, reduced = (self._transfers(routes, reduces=reduces) for reduces in (False, True))
        fewest = min(exchanged, reduced, key=lambda option: _sending_s(self.local_kernels, option))
        for group, kernel in self.local_kernels:
            if kernel in sibling_kernels:
                yield sibling_kernels[kernel]
                continue
            transfers, timed = fewest[group.name], reduced[group.name]
            if not transfers and not timed:
                yield kernel
                continue
            works = {**kernel.works, NETWORK_BYTES: sent_bytes(transfers)}
            engine_transfers = None if fewest is reduced else timed
            yield replace(
                kernel, works=works, transfers=transfers, engine_transfers=engine_transfers
            )
        yield from self.engine_kernels

    def _transfers(self, routes: Routes, *, reduces: bool) -> dict[str, tuple[Transfer, ...]]:
        """Transfers by group; `reduces` as in `_transfers`."""
        return {
            group.name: tuple(_transfers(self.shape, group, self.sharing, routes, reduces=reduces))
            for group, _ in self.local_kernels
        }


def _kernel(group: Group, sharing: Sharing) -> Kernel:
    """Build a group's kernel on one chip, without collectives."""
    split, spreads_experts = sharing.split, is_expert_parallel(group, sharing)
    tokens = Fraction(1) if spreads_experts else Fraction(1, split.dp)

    def on_replica(extent: Extent) -> Extent:
        """Extent, with activated experts counted for one replica's tokens."""
        if isinstance(extent, ActivatedExperts):
            return extent.chosen_by(tokens, extent.tokens)
        return extent

    def amount(terms: Terms, factor: Fraction) -> Poly:
        scaled = {
            tuple(map(on_replica, product)): coefficient * factor
            for product, coefficient in terms.items()
        }
        return Poly(scaled) if scaled else ZERO

    if group.cache and sharing.cache_split == BY_BATCH:
        group = replace(
            group, layout=HEADS_LAYOUT, copied_parts=()
        )  # chips have sequences of their own
    share = group.share("weights", split.shards)
    weight_bytes = amount(group.weights, group.chip_weight_bytes(split, sharing.bits))
    if group.moe is not None and (sharing.routing != UNIFORM or group.moe.k == group.moe.choices):
        activated = activated_experts(group.moe.choices, group.moe.k, 1, sharing.routing)
        weight_bytes = constant(activated * next(iter(weight_bytes.terms.values())))
    parts = split.dp * cache_shards(group.heads, split.shards, sharing.cache_split)
    element_bytes = sharing.bytes_of("cache", group.bits)
    if group.rotary_share:
        rotary_bytes = rotary_bits(sharing.bits["cache"]) / BITS_PER_BYTE
        element_bytes += (rotary_bytes - element_bytes) * group.rotary_share
    cached = amount(group.cache, element_bytes / parts)
    if group.by_query and parts < split.dp * split.shards:
        shared = Fraction(1, split.dp * split.shards) - Fraction(1, parts)
        cached = total((cached, amount(group.by_query, element_bytes * shared)))

    def activation_traffic(cost: str, terms: Terms, *, whole: bool) -> Poly:
        """Activation traffic [byte]; where every chip has it whole, but not under ep."""
        part = Fraction(1) if whole else group.share(cost, split.shards)
        replica = Fraction(1, split.stage_chips if spreads_experts else split.dp)
        return amount(terms, part * replica * sharing.bytes_of("activations"))

    x = activation_traffic("reads", group.reads, whole=group.layout.reads_whole)
    out = activation_traffic("writes", group.writes, whole=group.layout.writes_whole)
    moved = {"x": x, "out": out}
    if group.depth is not None:
        depth = group.depth if group.layout.reads_whole else group.depth / split.shards
        moved |= {
            "x": x * (sharing.bits[INPUT] / sharing.bits["activations"]),
            "depth": constant(depth),
            "columns": constant(sum(group.weights.values()) * share / depth),
        }
    shares_heads = True
    if group.gqa is not None:
        moved["context"] = Poly(group.context)
        moved["head"], moved["window"] = constant(group.gqa.H), constant(group.window)
        moved["heads"] = Poly({SEQUENCES: Fraction(group.heads, parts)})
        tp = 1 if sharing.cache_split == BY_BATCH else split.shards
        shares_heads = group.gqa.N * cache_shards(group.heads, tp) > tp * group.gqa.K
    if group.moe is not None:
        moved |= _experts_terms(group, sharing, amount, tokens)
    works = {
        "flops": amount(group.flops, share / split.dp),
        "weight_bytes": weight_bytes,
        "kv_cache_bytes": cached,
        "activation_bytes": total((x, out)),
        "memory_bytes": total((weight_bytes, cached)),
        NETWORK_BYTES: ZERO,
    }
    rows = next(iter(group.flops)) if group.weights and group.layout in MATMUL_LAYOUTS else ()
    return Kernel(
        group.name,
        sharing.compute[1 if group.cache else 0],
        works,
        (),
        moved,
        rows,
        int(1 / tokens),
        group.count,
        attention_phase=group.attends,
        cache=sharing.formats.get("cache") if group.attends else None,
        shares_heads=shares_heads,
        experts=None if group.moe is None else sharing.formats.get("experts"),
    )


def _experts_terms(
    group: Group,
    sharing: Sharing,
    amount: Callable[[Terms, Fraction], Poly],
    tokens: Fraction,
) -> dict[str, Poly]:
    """Terms that experts' calibrations read, see `Kernel.fit_terms`.

    Args:
        group: The experts.
        sharing: Split and dtypes.
        amount: Function from terms and a factor to their polynomial on one chip.
        tokens: The step's token share that chooses among them [1].
    """
    (extents,) = group.weights
    (routed,) = group.reads.values()
    split = sharing.split
    parts, width_shards = split.parts, split.width_shards if split.parts > 1 else 1
    moe, element_bytes = group.moe, sharing.bytes_of("activations")
    if moe is None:
        return {}
    share = Fraction(moe.E, moe.choices) / parts
    activated = amount({extents: share}, Fraction(1))
    if sharing.routing != UNIFORM or moe.k == moe.choices:
        activated = constant(activated_experts(moe.choices, moe.k, 1, sharing.routing) * share)
    return {
        "inputs": amount({group.tokens: routed / moe.mean_k}, tokens * element_bytes),
        "activated": activated,
        "width": constant(routed / moe.mean_k),
        "expert_width": constant(Fraction(moe.expert.F, width_shards)),
    }


def _engine_kernels(shape: Shape, sharing: Sharing, mtp_tokens: int) -> Iterator[Kernel]:
    """Engine overheads in a step as kernels: per layer and sequence.

    Args:
        shape: The model.
        sharing: Split and dtypes.
        mtp_tokens: Runs of the MTP layer, which counts as the last layer [1].
    """
    once, sequences = constant(1), Poly({SEQUENCES: Fraction(1, sharing.split.dp)})
    terms = [("engine-layers", {"layer_s": once}, shape.layers + mtp_tokens)]
    if shape.is_last:
        terms.append(("engine-sequences", {"sequence_s": sequences}, 1))
    for name, works, count in terms:
        yield Kernel(name, sharing.compute[0], works, count=count, engine=True)


def is_expert_parallel(group: Group, sharing: Sharing) -> bool:
    """Check for a group of routed experts under expert parallelism."""
    return group.moe is not None and sharing.split.parts > 1


class Routes(NamedTuple):
    """Routes between chips.

    Attributes:
        tensors: Between tensor-parallel chips.
        experts: Between expert-parallel chips, for dispatch and combine.
        sums: Between the same, for one all-reduce.
    """

    tensors: Route
    experts: Route
    sums: Route


def _sending_s(
    kernels: Iterable[tuple[Group, Kernel]], transfers: Mapping[str, Sequence[Transfer]]
) -> Fraction:
    """Time per token to send all transfers, by the slowest network [s]."""
    return sum(
        (
            group.count * sum(collective_time(sent, Fraction(1))[0].terms.values(), Fraction(0))
            for group, _ in kernels
            for sent in transfers[group.name]
        ),
        Fraction(0),
    )


def _transfers(
    shape: Shape, group: Group, sharing: Sharing, routes: Routes, *, reduces: bool
) -> Iterator[Transfer]:
    """Transfers after a kernel; for attention with a KV cache split by batch, around it.

    Args:
        shape: The model.
        group: The kernel.
        sharing: Split and dtypes.
        routes: The routes.
        reduces: Whether experts that tensor-parallel chips share by expert end in one all-reduce,
            as engines run them, in place of dispatch, combine and an all-gather.
    """
    split, size = sharing.split, sharing.bytes_of("activations")
    spreads_experts = is_expert_parallel(group, sharing)
    route, expert_route = routes.tensors, routes.experts
    sums = reduces and split.parts > 1 and split.shards > 1
    if spreads_experts and sums:
        yield Transfer(
            "all-reduce",
            Poly({group.tokens: shape.D * size}),
            routes.sums,
            routes.sums.bytes_per_payload_byte("all-reduce"),
        )
        return
    if spreads_experts and group.moe is not None:
        routing = ExpertRouting(group.moe.E, group.moe.k, sharing.routing, group.moe.zero_experts)
        bytes_per_payload_byte = expert_route.dispatch_bytes(
            lambda parts: rank_hit_probability(
                routing.experts,
                routing.per_token,
                min(parts, split.parts),  # chips in a group have the same experts
                routing.scheme,
                routing.zero_experts,
            )
        )
        for element_bytes in (size, sharing.bytes_of("combine")):
            tokens = Poly(
                {group.tokens: group.moe.width(shape.D) * element_bytes / split.stage_chips}
            )
            yield Transfer(
                ALL_TO_ALL, tokens, expert_route, bytes_per_payload_byte, routing=routing
            )
    if split.shards == 1:
        return

    def transfer(kind: str, payload: Terms) -> Transfer:
        return Transfer(kind, Poly(payload), route, route.bytes_per_payload_byte(kind))

    if group.layout == HEADS_LAYOUT and group.cache and sharing.cache_split == BY_BATCH:
        for terms in (group.reads, group.writes):
            sequence_terms: Terms = {
                product: coefficient * size / split.stage_chips
                for product, coefficient in terms.items()
            }
            yield transfer(ALL_TO_ALL, sequence_terms)
    outputs: Terms = {group.tokens: shape.D * size / split.dp}
    if spreads_experts:
        yield transfer("all-gather", outputs)
        return
    with_experts = group.name in SHARED_EXPERTS and (sums or split.parts == 1)  # one sum for both
    beside = shape.state is not None and shape.state.beside and group.name == STATE_OUT  # the same
    if group.layout.sums and not (with_experts or beside):
        yield transfer("all-reduce", outputs)
