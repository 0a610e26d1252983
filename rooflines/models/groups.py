"""A model as groups: what runs as one kernel, and how often. Costs are exact polynomials.

Tensors that are made and used up inside a group cost no memory traffic. Softmax, norms, rotary
embeddings and biases are not counted as work. A cost is a sum of products of extents, as in
`rooflines.theory.costs`; its variables are those of `StepExtents`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError, at_path, check_choice
from rooflines.basics.numbers import whole
from rooflines.models.architecture import DECODE, Gqa, check_phase
from rooflines.models.attention_window import FULL_ATTENTION, AttentionWindow
from rooflines.models.matrix import CopiedPart, Matrix, replicated_matrix
from rooflines.models.mtp import with_mtp_layer
from rooflines.theory.poly import ACTIVATED, WINDOWED_EXTENTS, Poly, parse_activated_experts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rooflines.models.architecture import (
        Attention,
        AttentionLayers,
        Indexer,
        Moe,
        Phase,
        Shape,
        TensorClass,
    )
    from rooflines.models.matrix import Layout
    from rooflines.models.state_layers import State

UNIFORM, SAME, ALL = ROUTINGS = ("uniform", "same", "all")
"""Which experts the tokens of a step choose: each one equally likely; all the same k; every one."""

MAX_EXACT_TOKENS = 64
"""Tokens up to which the experts that they use are an exact rational; its digits grow with them
[1]."""

DECIMALS = Context(prec=60)
"""For more tokens, or a fraction of one."""

Terms = dict[tuple[str, ...], Fraction]
"""A cost: the coefficient of every product of extents."""

NO_EXTENT: tuple[str, ...] = ()
SEQUENCES = ("B",)
TOKENS = ("B", "T")

DRAFT = "draft-"
"""What the names of kernels begin with that draft tokens."""

MATMUL_LAYOUTS = ("column", "row")
"""The layouts of groups with weights that are one matmul."""

COSTS = ("weights", "flops", "cache", "reads", "writes")
"""The costs of a group, fields of `Group`."""


@dataclass(frozen=True)
class Step:
    """The sizes of a step.

    Attributes:
        B: Sequences [1].
        S: Tokens of each sequence after the step [1].
        T: New tokens of each sequence [1].
        routing: Which experts the tokens choose: `uniform`, `same` or `all`.

    Raises:
        RooflinesError: A size is no whole number above zero, T is more than S, or no such routing.
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
        """A step that reads whole prompts."""
        return cls(sequences, prompt, prompt, routing)


@dataclass(frozen=True)
class Group:
    """One kernel of a model, and how many layers have it.

    Attributes:
        name: Its name: `embed`, `qkv`, `attention`, ...
        count: Layers with it [1].
        tensors: The class of its weights; None without weights.
        weights: Elements of the weights that a step reads [1].
        flops: Floating-point operations, a multiply-add counted as two [FLOP].
        cache: Elements of the cache that are read or written [1].
        reads: Elements of activations read from memory [1].
        writes: Elements of activations written to memory [1].
        moe: The experts, for their number and those per token; None without experts.
        layout: How the chips of a tensor-parallel group share it.
        copied: Its parts that fewer chips can share, of which there are copies.
        heads: Parts that its cache can be split into by heads [1].
        bits: Bits of an element of its cache; None: as the dtype of the cache.
        attends: The phase, of grouped-query attention; else None.
        context: Tokens of a sequence that attention reads; empty for other groups [1].
        tokens: The sizes whose product is its tokens.
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
    layout: Layout = "whole"
    copied_parts: tuple[CopiedPart, ...] = ()
    heads: int = 1
    bits: int | None = None
    attends: Phase | None = None
    context: Terms = field(default_factory=dict)
    tokens: tuple[str, ...] = TOKENS

    @property
    def depth(self) -> Fraction | None:
        """Elements that it contracts, if it is one matmul with weights [1]."""
        if not self.weights or self.layout not in MATMUL_LAYOUTS:
            return None
        (elements,) = self.reads.values()
        return elements

    def share(self, cost: str, tp: int, *, sequences: bool = False) -> Fraction:
        """The share of a cost that one chip of a tensor-parallel group has, copies included [1].

        Args:
            cost: `weights`, `reads` or `writes`; FLOPs are shared as weights are.
            tp: Chips of the group [1].
            sequences: Whether chips share the tokens of what they have whole, as FLOPs of training.
        """
        if self.layout == "whole":
            return Fraction(1)
        even, terms = Fraction(1, tp), getattr(self, cost)
        parts = (
            part for part in self.copied_parts if part.heads or not (sequences and part.shards == 1)
        )
        excess = sum(getattr(part, cost) * part.excess_share(tp) for part in parts)
        return even + excess / sum(terms.values()) if excess else even

    def layer_cost(self, cost: str, step: Step) -> Fraction:
        """A cost of the group in one layer, exact.

        Args:
            cost: One of `COSTS`.
            step: The sizes.
        """
        terms: Terms = getattr(self, cost)
        return Poly(terms).at(StepExtents(step))


class StepExtents(dict[str, int | Fraction]):
    """The extents of a step by name, computed when first asked for."""

    def __init__(self, step: Step) -> None:
        super().__init__({"B": step.B, "T": step.T})
        self._step = step

    def __missing__(self, name: str) -> int | Fraction:
        """An extent that depends on sizes."""
        kind, _, argument = name.partition(":")
        step, value = self._step, Fraction(0)
        if kind == ACTIVATED:
            experts, per_token, share, sizes = parse_activated_experts(argument)
            tokens = math.prod(self[size] for size in sizes.split("*")) * share
            value = activated_experts(experts, per_token, tokens, step.routing)
        elif kind in WINDOWED_EXTENTS:
            value = Fraction(AttentionWindow.from_name(argument).extents(step.S, step.T)[name])
        else:
            sizes, _, span = name.partition("/")
            elements = 1
            for size in sizes.split("*"):
                elements *= getattr(step, size)
            value = Fraction(-(-elements // int(span)))
        self[name] = value
        return value


@lru_cache(maxsize=2**14)
def activated_experts(
    experts: int, per_token: int, tokens: int | Fraction, routing: str = UNIFORM
) -> Fraction:
    """Experts of one layer that the tokens of a step use [1].

    Args:
        experts: E [1].
        per_token: k [1].
        tokens: Tokens of the step, of which a replica may have a fraction [1].
        routing: `uniform`, `same` or `all`.

    Returns:
        uniform: the expectation E (1 - (1 - k/E)^tokens), exact for a whole number of tokens up to
        `MAX_EXACT_TOKENS`, else to `DECIMALS` digits; same: k, which nothing is below; all: E.
    """
    if routing == SAME:
        return Fraction(per_token)
    if routing == ALL or per_token == experts:
        return Fraction(experts)
    miss_probability = 1 - Fraction(per_token, experts)
    if tokens <= MAX_EXACT_TOKENS and Fraction(tokens).denominator == 1:
        return experts * (1 - miss_probability ** int(tokens))
    base = DECIMALS.divide(
        Decimal(miss_probability.numerator), Decimal(miss_probability.denominator)
    )
    exponent = DECIMALS.divide(Decimal(tokens.numerator), Decimal(tokens.denominator))
    return experts * Fraction(DECIMALS.subtract(Decimal(1), DECIMALS.power(base, exponent)))


def rank_hit_probability(
    experts: int, per_token: int, parts: int, routing: str = UNIFORM
) -> Fraction:
    """The chance that a token has an expert on one of equal parts of the experts, on another chip.

    Args:
        experts: E [1].
        per_token: k [1].
        parts: n, which divides E [1].
        routing: `uniform`, `same` or `all`.

    Returns:
        uniform: 1 - C(E - E/n, k) / C(E, k), exact; same: of the fewest parts, ceil(k n / E), one
        is the token's own, the others are among n - 1; all: 1.
    """
    if routing == ALL or parts == 1:
        return Fraction(1)
    if routing == SAME:
        return Fraction(-(-per_token * parts // experts) - 1, parts - 1)
    missing_choices = math.comb(experts - experts // parts, per_token)
    return 1 - Fraction(missing_choices, math.comb(experts, per_token))


def groups_of(shape: Shape, phase: Phase, *, scores_all: bool = False) -> tuple[Group, ...]:
    """The groups of a model in the order in which they run; those of all layers one after another.

    Args:
        shape: The model.
        phase: `decode`, or `prefill` of whole prompts (T = S); they differ for MLA only.
        scores_all: Whether the unembedding is of every token, as in training and where drafts are
            checked; else of the last one of each sequence.

    Raises:
        RooflinesError: There is no such phase.
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
        layout="column",
    )
    return (
        Group("embed", 1, writes={TOKENS: Fraction(width)}),
        *_attention(shape, phase),
        *_mlps(shape),
        *_experts(shape),
        *([unembed] if shape.outputs else []),
    )


def draft_groups(shape: Shape, tokens: int) -> Iterator[Group]:
    """The groups of the layer for multi-token prediction, which drafts tokens one by one.

    Args:
        shape: The model, which has one.
        tokens: Those that it drafts for each sequence [1]: how often it runs in a step.
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
    """A cost of one run for a token of each sequence, in the mean over all runs."""
    mean_terms: Terms = {}
    for product, coefficient in terms.items():
        names = [extent for extent in product if extent != "T"]
        shared = Fraction(1)
        for index, (kind, _, argument) in enumerate(extent.partition(":") for extent in names):
            if kind in WINDOWED_EXTENTS:
                names[index], shared = (
                    AttentionWindow.from_name(argument).draft_extent,
                    Fraction(1, runs),
                )
            elif kind == ACTIVATED:
                names[index] += ",B"
        mean_terms[tuple(names)] = coefficient * shared
    return mean_terms


def work(groups: Iterable[Group], cost: str, step: Step) -> Fraction:
    """A cost of all groups, over all layers, exact.

    Args:
        groups: The groups.
        cost: One of `COSTS`.
        step: The sizes.

    Raises:
        RooflinesError: There is no such cost.
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


def _attention(shape: Shape, phase: Phase) -> Iterator[Group]:
    """Attention by how far it attends, with an indexer before it; then layers with a state."""
    parts_by_attention: dict[Attention, list[AttentionLayers]] = {}
    for part in shape.attentions:
        parts_by_attention.setdefault(part.attention, []).append(part)
    for attention, parts in parts_by_attention.items():
        suffix = "" if attention == shape.attention else "-window"
        count = sum(part.layers for part in parts)
        *input_matrices, output_matrix = attention.matrices(shape.D, phase)
        for matrix in input_matrices:
            yield replace(_linear(matrix, count), name=f"{matrix.name}{suffix}")
        if shape.sparse is not None:
            yield from _indexer(shape.sparse, shape)
        flops, reads, writes = attention.core(phase)
        for part in parts:
            pairs, entries = part.window.extent_names
            yield Group(
                _attention_name(part.window),
                part.layers,
                flops={("B", pairs): Fraction(flops)},
                cache={("B", entries): Fraction(attention.kv_cache_elements)},
                reads={TOKENS: Fraction(reads)},
                writes={TOKENS: Fraction(writes)},
                layout="heads",
                heads=attention.cache_heads,
                attends=phase if isinstance(attention, Gqa) else None,
                context={(entries,): Fraction(1)},
            )
        yield replace(_linear(output_matrix, count), name=f"{output_matrix.name}{suffix}")
    if shape.state is not None:
        yield from _states(shape.state, shape.D, phase)


def _attention_name(window: AttentionWindow) -> str:
    """The name of the group of attention that reaches so far."""
    if window.tokens is None:
        return "attention"
    return "attention-chunk" if window.chunked else "attention-window"


def _indexer(sparse: Indexer, shape: Shape) -> Iterator[Group]:
    """The indexers of sparse attention: their projections, and their attention to all tokens.

    Chips do not share its heads, whose scores are summed: they would send them, of every pair.

    Source: `Indexer` in vLLM and SGLang.
    """
    for matrix in sparse.matrices(shape.D, getattr(shape.attention, "q_rank", None)):
        yield _linear(matrix, sparse.indexed)
    flops, reads, writes = sparse.core()
    pairs, entries = FULL_ATTENTION.extent_names
    yield Group(
        "indexer",
        sparse.indexed,
        flops={("B", pairs): Fraction(flops)},
        cache={("B", entries): Fraction(sparse.dim)},
        reads={TOKENS: Fraction(reads)},
        writes={TOKENS: Fraction(writes)},
        copied_parts=(CopiedPart("", 1),),
        bits=sparse.bits,
    )


def _states(state: State, width: int, phase: Phase) -> Iterator[Group]:
    """Layers with a state, and the inputs of its short convolution, in elements of the state."""
    into, out = state.matrices(width)
    yield _linear(into, state.layers)
    flops, reads, writes = state.core()
    yield Group(
        "state",
        state.layers,
        flops={TOKENS: Fraction(flops)},
        cache={SEQUENCES: state.moved_elements(decode=phase == DECODE)},
        reads={TOKENS: Fraction(reads)},
        writes={TOKENS: Fraction(writes)},
        layout="heads",
        copied_parts=(CopiedPart("", state.groups, reads=state.qk_elements),),
        heads=state.heads,
        bits=state.bits,
    )
    yield _linear(out, state.layers)


def _mlps(shape: Shape) -> Iterator[Group]:
    if shape.mlp is not None and shape.mlp_layers:
        for matrix in shape.mlp.matrices(shape.D):
            yield _linear(matrix, shape.mlp_layers)


def _experts(shape: Shape) -> Iterator[Group]:
    moe, width, layers = shape.moe, shape.D, shape.moe_layers
    if moe is None or not layers:
        return
    expert_width = moe.width(width)
    expert, routed = Fraction(moe.expert.weights(expert_width)), Fraction(moe.k * expert_width)
    yield _linear(moe.router(width), layers)
    into, out = moe.latents(width) or (None, None)
    if into is not None:
        yield _linear(into, layers)
    yield Group(
        "experts",
        layers,
        "experts",
        weights={(f"{ACTIVATED}:{moe.E},{moe.k},1",): expert},
        flops={TOKENS: 2 * moe.k * expert},
        reads={TOKENS: routed},
        writes={TOKENS: routed},
        moe=moe,
        layout="fused",
    )
    if out is not None:
        yield _linear(out, layers)
    if moe.shared:
        shared = Matrix("shared", moe.shared * moe.expert.weights(width), width, width, "fused")
        yield _linear(shared, layers)
