"""Kernel groups of a model: one fused kernel each, with layer counts and exact polynomial costs.

Intermediate tensors inside a group cause no memory traffic. Softmax, norms, rotary embeddings and
biases count as no work. A cost is a sum of products of extents, as in `rooflines.theory.costs`,
with the variables in `StepExtents`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError, at_path, check_choice
from rooflines.basics.numbers import whole
from rooflines.models.architecture import DECODE, ROUTER, Gqa, check_phase
from rooflines.models.compressed_attention import STREAMS, SharedKv, stream_matrices
from rooflines.models.kind_costs import (
    OUTPUT_ALONE,
    PER_EXPERT_ROWS,
    GroupCosts,
    KindLetters,
    Terms,
    bound_costs,
    kind_costs,
)
from rooflines.models.matrix import (
    COLUMN_LAYOUT,
    FUSED_LAYOUT,
    HEADS_LAYOUT,
    ROW_LAYOUT,
    WHOLE_LAYOUT,
    CopiedPart,
    Matrix,
    replicated_matrix,
)
from rooflines.models.mtp import with_mtp_layer
from rooflines.models.state_layers import SHORT_CONV
from rooflines.models.tensor_dtypes import LM_HEAD, REST
from rooflines.theory.attention_window import FULL_ATTENTION
from rooflines.theory.costs import BITS_PER_BYTE
from rooflines.theory.extents import (
    SEQUENCES,
    TOKENS,
    ActivatedExperts,
    Attended,
    B,
    DraftPairs,
    Entries,
    Extent,
    Pairs,
    Product,
    Size,
    T,
)
from rooflines.theory.poly import Poly
from rooflines.theory.routing import ROUTINGS, UNIFORM

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rooflines.models.architecture import (
        Attention,
        AttentionLayers,
        Indexer,
        Moe,
        Phase,
        Shape,
        TensorClass,
    )
    from rooflines.models.compressed_attention import Compression
    from rooflines.models.matrix import Layout
    from rooflines.models.split import Parallelism
    from rooflines.models.state_layers import State
    from rooflines.theory.attention_window import AttentionWindow, Number

NO_EXTENT: Product = ()

DRAFT = "draft-"
"""Prefix in names of MTP kernels, which draft tokens."""

MATMUL_LAYOUTS = (COLUMN_LAYOUT, ROW_LAYOUT)
"""Layouts where a group is one matmul with weights."""

UNQUANTIZED = (ROUTER, *STREAMS)
"""Kernels whose weights have the dtype of norms, biases and routers."""

COSTS = ("weights", "flops", "cache", "reads", "writes")
"""Costs: fields of `Group`."""


@dataclass(frozen=True)
class Step:
    """Sizes of a step.

    Attributes:
        B: Sequences [1].
        S: Tokens in each sequence after the step [1].
        T: New tokens in each sequence [1].
        routing: Routing to experts: `uniform`, `same` or `all`.

    Raises:
        RooflinesError: A size is no whole number above zero, T exceeds S, or the routing is
            unknown.
    """

    B: int
    S: int
    T: int = 1
    routing: str = UNIFORM

    def __post_init__(self) -> None:
        """Refuse invalid sizes."""
        for name in ("B", "S", "T"):
            with at_path(name):
                whole(getattr(self, name))
        if self.T > self.S:
            problem = f"is {self.T}, more than the {self.S} tokens after the step"
            raise RooflinesError("T", problem, "give at most S new tokens; S counts them too")
        with at_path("routing"):
            check_choice(self.routing, ROUTINGS, "no routing")

    @classmethod
    def prefill(cls, sequences: int, prompt: int, routing: str = UNIFORM) -> Step:
        """Build a step that reads whole prompts: S = T = prompt."""
        return cls(sequences, prompt, prompt, routing)


@dataclass(frozen=True)
class Group:
    """One kernel of a model, with the number of layers that run it.

    Attributes:
        name: Name, such as `embed`, `qkv` or `attention`.
        count: Layers with it [1].
        tensors: Class of its weights; None without weights.
        weights: Weight elements that a step reads [1].
        flops: Floating-point operations, a multiply-add counted as two [FLOP].
        cache: KV cache or state elements read and written [1].
        reads: Activation elements read from memory [1].
        writes: Activation elements written to memory [1].
        moe: The experts, for E and k; None without experts.
        layout: Layout over the chips of a tensor-parallel group.
        copied_parts: Parts with copies, since fewer chips can share them.
        heads: Parts that a split by heads makes from its KV cache [1].
        by_query: `cache` elements that query heads share, where KV heads have copies [1].
        bits: Bits per cached element; None: the KV cache dtype's.
        rotary_share: Share of cached elements with rotary bits [1].
        attends: The phase, of grouped-query attention; else None.
        context: Tokens per sequence that attention reads; empty for other groups [1].
        tokens: Extents whose product is its token count.
        gqa: Grouped-query attention; None for other groups.
        window: Its window in tokens; 0: full attention [1].
    """

    name: str
    count: int
    tensors: TensorClass | None = None
    weights: Terms = field(default_factory=dict)
    flops: Terms = field(default_factory=dict)
    cache: Terms = field(default_factory=dict)
    reads: Terms = field(default_factory=dict)
    writes: Terms = field(default_factory=dict)
    moe: Moe | None = None
    layout: Layout = WHOLE_LAYOUT
    copied_parts: tuple[CopiedPart, ...] = ()
    heads: int = 1
    by_query: Terms = field(default_factory=dict)
    bits: int | None = None
    rotary_share: Fraction = Fraction(0)
    attends: Phase | None = None
    context: Terms = field(default_factory=dict)
    tokens: Product = TOKENS
    gqa: Gqa | None = None
    window: int = 0

    @property
    def depth(self) -> Fraction | None:
        """Contracted size, if the group is one matmul with weights; else None [1]."""
        if not self.weights or self.layout not in MATMUL_LAYOUTS:
            return None
        (elements,) = self.reads.values()
        return elements

    @property
    def tensor_class(self) -> str:
        """Tensor class whose dtype its weights have."""
        if self.name.removeprefix(DRAFT) in UNQUANTIZED:
            return REST
        return LM_HEAD if self.tensors == "head" else self.tensors or "weights"

    @property
    def resident_weights(self) -> Fraction:
        """Weight elements in memory per layer, all experts included [1]."""
        elements = sum(self.weights.values(), Fraction(0))
        return elements if self.moe is None else elements * self.moe.choices

    def chip_weight_bytes(self, split: Parallelism, bits: Mapping[str, Fraction]) -> Fraction:
        """Bytes on one chip per weight element that steps read, copies included [byte].

        Memory holds as many; more where ep does not divide the experts, see `held_weight_bytes`.

        Args:
            split: Split over chips.
            bits: Bits per element by tensor class [bit].
        """
        is_expert_parallel = self.moe is not None and split.parts > 1
        share = (
            split.share("experts") if is_expert_parallel else self.share("weights", split.shards)
        )
        return share * Fraction(bits[self.tensor_class]) / BITS_PER_BYTE

    def held_weight_bytes(self, split: Parallelism, bits: Mapping[str, Fraction]) -> Fraction:
        """Bytes in one chip's memory per weight element, whole experts in slots [byte].

        Args:
            split: Split over chips.
            bits: Bits per element by tensor class [bit].
        """
        read_bytes = self.chip_weight_bytes(split, bits)
        if self.moe is None or split.parts == 1:
            return read_bytes
        return read_bytes / split.share("experts") * split.held_share(self.moe.E)

    def share(self, cost: str, tp: int, *, sequences: bool = False) -> Fraction:
        """Share of a cost on one chip in a tensor-parallel group, copies included [1].

        Args:
            cost: `weights`, `reads` or `writes`; FLOPs are shared like weights.
            tp: Chips in the group [1].
            sequences: Whether chips split the tokens of fully copied parts, as training FLOPs do.
        """
        if not self.layout.splits_weights:
            return Fraction(1)
        even, terms = Fraction(1, tp), getattr(self, cost)
        parts = (
            part for part in self.copied_parts if part.heads or not (sequences and part.shards == 1)
        )
        excess = sum(getattr(part, cost) * part.excess_share(tp) for part in parts)
        return even + excess / sum(terms.values()) if excess else even

    def layer_cost(self, cost: str, step: Step) -> Fraction:
        """Evaluate a cost in one layer, exact.

        Args:
            cost: One of `COSTS`.
            step: Sizes of the step.
        """
        terms: Terms = getattr(self, cost)
        return Poly(terms).at(StepExtents(step))


class StepExtents(dict[str, "Number"]):
    """Extents of a step by name, computed on first access from its sizes, B, S and T."""

    def __init__(self, step: Step) -> None:
        super().__init__({"B": step.B, "S": step.S, "T": step.T})
        self._routing = step.routing

    def __missing__(self, extent: Extent) -> Number:
        """Compute an extent from the sizes.

        Raises:
            KeyError: It is a size of other steps.
        """
        if isinstance(extent, Size):
            raise KeyError(extent)
        if isinstance(extent, ActivatedExperts):
            value = extent.value(self, self._routing)
        else:
            value = Fraction(extent.value(self))
        self[extent] = value
        return value


def groups_of(shape: Shape, phase: Phase, *, scores_all: bool = False) -> tuple[Group, ...]:
    """Groups of a model in run order; a group's layers come together.

    Args:
        shape: The model.
        phase: `decode`, or `prefill` with whole prompts (T = S); they differ for MLA only.
        scores_all: Whether the LM head scores every token, as in training and where drafts are
            checked; else the last token in each sequence.

    Raises:
        RooflinesError: The phase is unknown.
    """
    with at_path("phase"):
        check_phase(phase)
    width = shape.D
    head, scored_tokens = Fraction(shape.outputs * width), TOKENS if scores_all else SEQUENCES
    unembed = Group(
        "unembed",
        1,
        "head",
        weights={NO_EXTENT: head},
        flops={scored_tokens: 2 * head},
        reads={scored_tokens: Fraction(width)},
        writes={scored_tokens: Fraction(shape.outputs)},
        layout=COLUMN_LAYOUT,
    )
    embedding = KindLetters("embedding", {"D": width}, tensors=OUTPUT_ALONE)
    streams = stream_matrices(shape.streams, shape.layers, shape.D, is_last=shape.is_last)
    return (
        *([Group("embed", 1, **kind_costs(embedding, {"B": TOKENS}))] if shape.is_first else []),
        *_attention(shape, phase),
        *(_linear(matrix, count) for count, matrix in streams if count),
        *_mlps(shape),
        *_experts(shape),
        *([unembed] if shape.outputs else []),
    )


def draft_groups(shape: Shape, tokens: int) -> Iterator[Group]:
    """Groups of the MTP layer, which drafts tokens one by one.

    Args:
        shape: A model with an MTP layer.
        tokens: Drafted tokens per sequence, so runs of the layer per step [1].
    """
    embed, *layer_groups = groups_of(with_mtp_layer(shape, standalone=True), DECODE)
    merge = replicated_matrix("merge", 2 * shape.D * shape.D, 2 * shape.D, shape.D)
    for group in (embed, _linear(merge, 1), *layer_groups):
        yield replace(
            group,
            name=f"{DRAFT}{group.name}",
            count=tokens,
            tokens=SEQUENCES,
            weights=_mean_draft_cost(group.weights, tokens),
            flops=_mean_draft_cost(group.flops, tokens),
            cache=_mean_draft_cost(group.cache, tokens),
            reads=_mean_draft_cost(group.reads, tokens),
            writes=_mean_draft_cost(group.writes, tokens),
            context=_mean_draft_cost(group.context, tokens),
        )


def _mean_draft_cost(terms: Terms, runs: int) -> Terms:
    """Average a cost over runs with one token per sequence each."""
    mean_terms: Terms = {}
    for product, coefficient in terms.items():
        extents, shared = list[Extent](), Fraction(1)
        for extent in product:
            if isinstance(extent, Attended):
                extents.append(DraftPairs(extent.window))
                shared = Fraction(1, runs)
            elif isinstance(extent, ActivatedExperts):
                extents.append(extent.chosen_by(extent.share, SEQUENCES))
            elif extent != T:
                extents.append(extent)
        mean_terms[tuple(extents)] = coefficient * shared
    return mean_terms


def work(groups: Iterable[Group], cost: str, step: Step) -> Fraction:
    """Sum a cost over all groups and layers, exact.

    Args:
        groups: The groups.
        cost: One of `COSTS`.
        step: Sizes of the step.

    Raises:
        RooflinesError: The cost is unknown.
    """
    with at_path("cost"):
        check_choice(cost, COSTS, "no cost of a group")
    return sum((group.count * group.layer_cost(cost, step) for group in groups), Fraction(0))


def _linear(matrix: Matrix, count: int, tensors: TensorClass = "weights") -> Group:
    weights = Fraction(matrix.weights)
    return Group(
        matrix.name,
        count,
        tensors,
        weights={NO_EXTENT: weights},
        flops={TOKENS: 2 * weights},
        reads={TOKENS: Fraction(matrix.reads)},
        writes={TOKENS: Fraction(matrix.writes)} if matrix.writes else {},
        layout=matrix.layout,
        copied_parts=matrix.copied_parts,
    )


def _around_attention(
    attention: Attention, width: int, phase: Phase
) -> tuple[tuple[Matrix, ...], tuple[Matrix, ...]]:
    """Matmuls before and after attention."""
    matrices = attention.matrices(width, phase)
    after = 2 if isinstance(attention, SharedKv) else 1
    return matrices[:-after], matrices[-after:]


def _attention(shape: Shape, phase: Phase) -> Iterator[Group]:
    """Attention groups by window, with indexers before them; then layers with a state."""
    parts_by_attention: dict[Attention, list[AttentionLayers]] = {}
    for part in shape.attentions:
        parts_by_attention.setdefault(part.attention, []).append(part)
    for attention, parts in parts_by_attention.items():
        suffix = "" if attention == shape.attention else "-window"
        if shape.variants and suffix and isinstance(attention, Gqa):
            suffix = f"-{attention.K}"
        count = sum(part.layers for part in parts)
        input_matrices, output_matrices = _around_attention(attention, shape.D, phase)
        for matrix in input_matrices:
            yield replace(_linear(matrix, count), name=f"{matrix.name}{suffix}")
        if shape.sparse is not None:
            yield from _indexer(shape.sparse, shape)
        if isinstance(attention, SharedKv):
            yield from _compressed(attention, parts, shape.D, phase)
        else:
            for part in parts:
                group = _by_window_or_stride(attention, part, phase)
                yield replace(group, name=f"{group.name}{suffix}") if shape.variants else group
        for matrix in output_matrices:
            yield replace(_linear(matrix, count), name=f"{matrix.name}{suffix}")
    if shape.linear_layers:
        yield _linear(shape.linear_matrix, shape.linear_layers)
    if shape.state is not None:
        yield from _states(shape.state, shape.D, phase)


def _by_window(attention: Attention, part: AttentionLayers, phase: Phase) -> Group:
    """Group for attention with one window."""
    entries = Entries(part.window)
    return Group(
        _attention_name(part.window),
        part.layers,
        **_attended_costs(attention.kernel(phase), part.window),
        layout=HEADS_LAYOUT,
        heads=attention.cache_heads,
        attends=phase if isinstance(attention, Gqa) else None,
        context={(entries,): Fraction(1)},
        gqa=attention if isinstance(attention, Gqa) else None,
        window=part.window.tokens or 0,
    )


def _attended_costs(part: KindLetters, window: AttentionWindow) -> GroupCosts:
    """Costs for attention, or an indexer, with one window."""
    pairs, entries = Pairs(window), Entries(window)
    return kind_costs(part, {"B": (B,), "T": (T,), "pairs": (pairs,), "entries": (entries,)})


def _by_window_or_stride(attention: Attention, part: AttentionLayers, phase: Phase) -> Group:
    """Group for attention with one window, and with strided blocks before it.

    For a block before the window, one query head in `stride` makes pairs. A KV head reads what its
    query heads attend to, blocks that differ from one to the next.
    """
    window_group = _by_window(attention, part, phase)
    if part.stride is None or not isinstance(attention, Gqa):
        return window_group
    full_group = _by_window(attention, part._replace(window=FULL_ATTENTION), phase)
    pairs_share = Fraction(1, part.stride)
    entries_share = pairs_share * attention.N / attention.K
    by_query = {
        product: coefficient * sign * entries_share
        for group, sign in ((full_group, 1), (window_group, -1))
        for product, coefficient in group.cache.items()
    }
    return replace(
        window_group,
        name="attention-strided",
        flops=_mixed(window_group.flops, full_group.flops, pairs_share),
        cache=_mixed(window_group.cache, full_group.cache, entries_share),
        context=_mixed(window_group.context, full_group.context, entries_share),
        by_query=by_query,
    )


def _mixed(window_terms: Terms, full_terms: Terms, share: Fraction) -> Terms:
    """Mix terms for a window with a share from those for all tokens."""
    terms = {product: size * (1 - share) for product, size in window_terms.items()}
    terms |= {product: size * share for product, size in full_terms.items()}
    return {product: size for product, size in terms.items() if size}


def _compressed(
    attention: SharedKv, parts: Iterable[AttentionLayers], width: int, phase: Phase
) -> Iterator[Group]:
    """Groups for a window beside compressed entries, with compressors and indexer before them.

    One kernel attends to both; compressors, indexer and entries are whole on every chip.
    """
    for part in parts:
        window_group = _by_window(attention, part, phase)
        compression = part.compression
        if compression is None:
            yield replace(window_group, rotary_share=attention.rotary_share)
            continue
        for matrix in compression.matrices(width, attention):
            yield _linear(matrix, part.layers)
        if compression.dim is not None:
            yield _entry_indexer(compression, part.layers)
        entry_group = _by_window(attention, part._replace(window=compression.window), phase)
        flops, cache, context = (
            _with_share(getattr(window_group, cost), getattr(entry_group, cost), compression.tokens)
            for cost in ("flops", "cache", "context")
        )
        yield replace(
            window_group,
            name=f"attention-compressed-{compression.tokens}",
            flops=flops,
            cache=cache,
            context=context,
            rotary_share=attention.rotary_share,
        )


def _with_share(terms: Terms, added: Terms, divisor: int) -> Terms:
    """Add a share, 1 / divisor, of further terms."""
    summed = dict(terms)
    for product, coefficient in added.items():
        summed[product] = summed.get(product, Fraction(0)) + coefficient / divisor
    return summed


def _entry_indexer(compression: Compression, layers: int) -> Group:
    """Indexer group: scores against all compressed entries; every chip has all heads."""
    costs = _attended_costs(compression.index_kernel, FULL_ATTENTION)
    costs["flops"] = _with_share({}, costs["flops"], compression.tokens)
    costs["cache"] = _with_share({}, costs["cache"], compression.tokens)
    return Group(
        "indexer", layers, **costs, copied_parts=(CopiedPart("", 1),), bits=compression.bits
    )


def _attention_name(window: AttentionWindow) -> str:
    """Group name for attention with this window."""
    if window.tokens is None:
        return "attention"
    return "attention-chunk" if window.chunked else "attention-window"


def _indexer(sparse: Indexer, shape: Shape) -> Iterator[Group]:
    """Indexer groups for sparse attention: projections, and scores against all tokens.

    Every chip has all heads: scores sum over heads, and sharing would send them for every pair.

    Source: `Indexer` in vLLM and SGLang.
    """
    for matrix in sparse.matrices(shape.D, getattr(shape.attention, "q_rank", None)):
        yield _linear(matrix, sparse.indexers)
    yield Group(
        "indexer",
        sparse.indexers,
        **_attended_costs(sparse.kernel, FULL_ATTENTION),
        copied_parts=(CopiedPart("", 1),),
        bits=sparse.bits,
    )


def _states(state: State, width: int, phase: Phase) -> Iterator[Group]:
    """Groups for SSM layers; state and convolution inputs count in elements of `bits` bits."""
    *before, out = state.matrices(width)
    for matrix in before:
        yield _linear(matrix, state.layers)
    yield Group(
        "state",
        state.layers,
        **_state_costs(state, decode=phase == DECODE),
        layout=HEADS_LAYOUT,
        copied_parts=(CopiedPart("", state.groups, reads=state.qk_elements),),
        heads=state.heads,
        bits=state.bits,
    )
    yield _linear(out, state.layers)


def _state_costs(state: State, *, decode: bool) -> GroupCosts:
    """Costs for a recurrence, or for a gated convolution alone, which is no kind."""
    if state.kind != SHORT_CONV:
        return kind_costs(state.kernel(decode=decode), {"B": (B,), "T": (T,)})
    channels = Fraction(state.conv_channels)
    return {
        "flops": {TOKENS: 2 * state.conv * channels},
        "cache": {SEQUENCES: state.moved_conv_elements(decode=decode)},
        "reads": {TOKENS: 3 * channels},
        "writes": {TOKENS: channels},
    }


def _mlps(shape: Shape) -> Iterator[Group]:
    for mlp in shape.mlps:
        suffix = "" if shape.mlp is not None and mlp.F == shape.mlp.F else f"-{mlp.F}"
        for matrix in mlp.matrices(shape.D):
            yield replace(_linear(matrix, mlp.layers or 0), name=f"{matrix.name}{suffix}")


def _experts(shape: Shape) -> Iterator[Group]:
    moe, width, layers = shape.moe, shape.D, shape.moe_layers
    if moe is None or not layers:
        return
    gate = {"gate": "gated" if moe.gated else "ungated"}
    tokens, share = Poly({TOKENS: Fraction(1)}), Fraction(moe.E, moe.choices)
    touched = Poly({(ActivatedExperts(moe.choices, moe.k),): share})
    routed: dict[str, int | Fraction]
    routed = {"D": moe.width(width), "F": moe.Fe, "E": moe.E, "k": moe.mean_k}
    experts = KindLetters("experts", routed, gate, PER_EXPERT_ROWS)
    yield _linear(moe.router(width), layers)
    into, out = moe.latents(width) or (None, None)
    if into is not None:
        yield _linear(into, layers)
    yield Group(
        "experts",
        layers,
        "experts",
        **bound_costs(experts, {"B": tokens, "touched": touched}),
        moe=moe,
        layout=FUSED_LAYOUT,
    )
    if out is not None:
        yield _linear(out, layers)
    if moe.shared:
        letters = {"D": width, "F": moe.Fe, "E": moe.shared, "k": moe.shared}
        shared = KindLetters("experts", letters, {**gate, "routing": "all"})
        costs = kind_costs(shared, {"B": TOKENS})
        yield Group("shared", layers, "weights", **costs, layout=FUSED_LAYOUT)
