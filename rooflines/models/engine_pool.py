"""KV cache pool that a serving engine makes, and the requests that it holds.

An engine keeps memory besides the weights, and deals the rest out in pages, so that it holds fewer
requests than the exact need says. Rules and constants are data, `engine_rules`; nothing here
depends on an engine's name.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.errors import RooflinesError
from rooflines.models.architecture import Mla
from rooflines.models.compressed_attention import SharedKv
from rooflines.models.engine_rules import BLOCKS, BY_CAPACITY, GIB, WINDOWS
from rooflines.models.engine_weights import VOCABULARY_MULTIPLE, LoadedWeights, loaded_weights
from rooflines.models.memory import cache_shards
from rooflines.models.state_layers import CONV_INPUT_BITS
from rooflines.theory.costs import BITS_PER_BYTE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.models.architecture import Shape
    from rooflines.models.engine_rules import EngineRules
    from rooflines.models.split import Parallelism

FULL, WINDOW, CHUNK, STATE_LAYERS = "full", "window", "chunk", "state"
"""Layer kinds, by what a request keeps in them."""

GROUP_RATIO = 1.5
"""Largest over smallest kind, in layers, below which groups are as long as the largest [1]."""

NARROW_CACHE_BITS = 8
"""Bits per cache entry in fp8 [bit]."""

SPARSE_ENTRY_BYTES = 656
"""Bytes per latent entry in fp8 beside an indexer: fp8_ds_mla, with scales [byte]."""

INDEX_SCALE_BYTES, INDEX_SCALE_ELEMENTS = 4, 128
"""Scale, and elements that share it, in an indexer's key in fp8 [byte], [1]."""

UNPACKED_BITS = 8
"""Least bits per expert weight for kernels that copy tokens to experts [bit]."""


class PoolSettings(NamedTuple):
    """Options that an engine is started with.

    Attributes:
        utilization: Share that the engine may take [1].
        max_batched_tokens: Tokens per step [1].
        max_seqs: Sequences per step; None: no limit [1].
        block_tokens: Tokens per block [1].
        reserve: Memory kept besides weights; None: as the rules have it [byte].
        peak: Peak in the trial step, weights included; None: as the rules have it [byte].
        prefix_caching: Whether prefixes are kept, for which a state takes a block more.
        windows: Whether layers with a window keep it alone; False: they keep every token.
        drafts: Drafted tokens in a step, for each of which a state takes a block more [1].
    """

    utilization: float
    max_batched_tokens: int
    max_seqs: int | None
    block_tokens: int
    reserve: int | None = None
    peak: int | None = None
    prefix_caching: bool = False
    windows: bool = True
    drafts: int = 0


class Replica(NamedTuple):
    """Model on the chips that share a replica.

    Attributes:
        shape: The model, with the layers that are loaded.
        bits: Bits per element by tensor class, with the KV cache's and activations' [bit].
        split: Parallelism over chips; each replica has a pool of its own.
        stages: Pipeline stages, which share the layers; the last one, with the head, counts [1].
    """

    shape: Shape
    bits: Mapping[str, Fraction]
    split: Parallelism
    stages: int = 1


class LayerKind(NamedTuple):
    """Layers in which a request keeps the same.

    Attributes:
        kind: `full`, `window`, `chunk` or `state`.
        tokens: Window or chunk size; None: all tokens, or a state [1].
        layers: Layers [1].
        bytes: Memory per token, or state, on a chip in all these layers [byte].
    """

    kind: str
    tokens: int | None
    layers: int
    bytes: Fraction

    @property
    def layer_bytes(self) -> Fraction:
        """Memory per layer and token, or state [byte]."""
        return self.bytes / self.layers

    @property
    def text(self) -> str:
        """Number and kind in words."""
        size = "" if self.tokens is None else f" of {self.tokens:,}"
        return f"{self.layers} {self.kind} layers{size}"


class PoolPart(NamedTuple):
    """Layers that draw blocks from the same store.

    Attributes:
        kind: The layers.
        groups: Groups that they are dealt out in [1].
        block_tokens: Tokens per block; 0: a state [1].
        block_bytes: Memory per block, in its group's layers [byte].
        blocks: Blocks that the store has, shared with further parts in one layout [1].
        request_blocks: Blocks that a request takes, in all groups [1].
    """

    kind: LayerKind
    groups: int
    block_tokens: int
    block_bytes: Fraction
    blocks: int
    request_blocks: int


@dataclass(frozen=True)
class EnginePool:
    """Memory that an engine holds on the fullest chip.

    Attributes:
        capacity: Memory that the device reports [byte].
        settings: Options that the engine is started with.
        weights: Weights as loaded.
        reserved: Memory kept besides, by name [byte].
        pool_bytes: Memory for caches; below 0: none [byte].
        parts: How it is dealt out.
        shared: Whether all parts draw from one store.
        group_layers: Layers per group where parts share a store [1].
        padding: Layers by which the last groups are padded [1].
        context: Tokens in each request [1].
        tokens: Tokens, as the engine prints them [1].
        concurrency: Requests with `context` tokens that the pool holds [1].
    """

    capacity: int
    settings: PoolSettings
    weights: LoadedWeights
    reserved: Mapping[str, Fraction]
    pool_bytes: int
    parts: tuple[PoolPart, ...]
    shared: bool
    group_layers: int
    padding: int
    context: int
    tokens: int
    concurrency: Fraction

    @property
    def reserved_bytes(self) -> int:
        """Memory that is neither weights nor pool [byte]."""
        return self.capacity - math.ceil(self.weights.total) - max(self.pool_bytes, 0)

    @property
    def groups(self) -> int:
        """Layer groups, or stores [1]."""
        return sum(part.groups for part in self.parts)

    @property
    def fullest(self) -> PoolPart:
        """Part that is full first."""
        return max(self.parts, key=lambda part: part.blocks and part.request_blocks / part.blocks)

    @property
    def block_tokens(self) -> int:
        """Tokens in the smallest block [1]."""
        return min((part.block_tokens for part in self.parts if part.block_tokens), default=0)

    @property
    def page_bytes(self) -> Fraction:
        """Memory per block, in its group's layers [byte]."""
        return self.fullest.block_bytes

    @property
    def blocks(self) -> int:
        """Blocks in the pool, or in the store that is full first [1]."""
        return self.fullest.blocks

    @property
    def request_blocks(self) -> int:
        """Blocks that a request takes from that store [1]."""
        if self.shared:
            return sum(part.request_blocks for part in self.parts)
        return self.fullest.request_blocks

    @property
    def held_bytes(self) -> Fraction:
        """Memory in all blocks [byte]."""
        if self.shared:
            return self.blocks * self.page_bytes
        return sum((part.blocks * part.block_bytes for part in self.parts), Fraction(0))

    @property
    def requests(self) -> int:
        """Whole requests that the pool holds [1]."""
        return math.floor(self.concurrency)


# ---------------------------------------------------------------- layers by what a request keeps


def layer_kinds(replica: Replica, *, windows: bool = True) -> tuple[LayerKind, ...]:
    """Layers by what a request keeps, with their memory on one chip.

    A token takes 2 K' H b in a layer, K' = max(1, K / tp); a latent entry is whole on every chip.

    Args:
        replica: The model on its chips.
        windows: False: layers with a window keep every token.

    Raises:
        RooflinesError: No rules are known for its caches.
    """
    shape, bits, split, stages = replica
    tp, cache_bits = split.shards, Fraction(bits["cache"])
    counts: dict[tuple[str, int | None], int] = {}
    sizes: dict[tuple[str, int | None], Fraction] = {}

    def add(kind: str, tokens: int | None, layers: int, per_layer: Fraction) -> None:
        key = kind, tokens
        counts[key] = counts.get(key, 0) + layers
        sizes[key] = sizes.get(key, Fraction(0)) + layers * per_layer

    for layers, attention, window, compression, stride in shape.attentions:
        if compression is not None or isinstance(attention, SharedKv):
            problem = "has compressed caches, of which no engine's rules are known"
            raise RooflinesError("engine", problem, "leave it out")
        shards = cache_shards(attention.cache_heads, tp)
        entry = Fraction(attention.kv_cache_elements, shards) * cache_bits / BITS_PER_BYTE
        if isinstance(attention, Mla) and shape.sparse and cache_bits == NARROW_CACHE_BITS:
            entry = max(entry, Fraction(SPARSE_ENTRY_BYTES))
        keeps_all = not windows or shape.sparse is not None or stride is not None
        if keeps_all or window.tokens is None:
            add(FULL, None, layers, entry)
        else:
            add(CHUNK if window.chunked else WINDOW, window.tokens, layers, entry)
    if (sparse := shape.sparse) is not None:
        key = sparse.dim * Fraction(sparse.bits or cache_bits) / BITS_PER_BYTE
        if key == sparse.dim:
            key += INDEX_SCALE_BYTES * math.ceil(Fraction(sparse.dim, INDEX_SCALE_ELEMENTS))
        sizes[FULL, None] += sparse.indexers * key
    if (state := shape.state) is not None:
        shards = cache_shards(state.heads, tp)
        state_bits = state.elements * state.bits + state.conv_inputs * CONV_INPUT_BITS
        add(STATE_LAYERS, None, state.layers, Fraction(state_bits, shards * BITS_PER_BYTE))
    kinds = []
    for (kind, tokens), layers in counts.items():
        on_stage = math.ceil(layers / stages)
        share = Fraction(on_stage, layers)
        kinds.append(LayerKind(kind, tokens, on_stage, sizes[kind, tokens] * share))
    return tuple(kinds)


def kept_entries(kind: LayerKind, context: int, budget: int) -> int:
    """Tokens that a request keeps while a step reads `budget` new ones [1].

    Full: S. Window: min(S, w - 1 + budget). Chunk: min(S, chunk + budget). State: 1.

    Args:
        kind: The layers.
        context: S, tokens in the request [1].
        budget: Tokens per step [1].
    """
    if kind.kind == STATE_LAYERS:
        return 1
    if kind.tokens is None:
        return context
    return min(context, kind.tokens + budget - (kind.kind == WINDOW))


# ---------------------------------------------------------------- how a pool is dealt out


class Dealt(NamedTuple):
    """Pool in parts, and the requests that it holds.

    Attributes:
        parts, group_layers, padding, tokens, concurrency, shared: As in `EnginePool`.
    """

    parts: tuple[PoolPart, ...]
    group_layers: int
    padding: int
    tokens: int
    concurrency: Fraction
    shared: bool


def dealt_out(
    rules: EngineRules,
    kinds: Sequence[LayerKind],
    pool_bytes: int,
    context: int,
    settings: PoolSettings,
) -> Dealt:
    """Deal a pool out, by an engine's layout.

    Args:
        rules: The engine's rules.
        kinds: Layers by what a request keeps.
        pool_bytes: Memory for caches [byte].
        context: Tokens in a request [1].
        settings: Options that the engine is started with.

    Raises:
        RooflinesError: Pages in its layers do not divide each other, or no rules are known.
    """
    size = max(pool_bytes, 0)
    if rules.layout == BLOCKS:
        return _in_blocks(rules, kinds, size, context, settings)
    if rules.layout == WINDOWS:
        return _by_window(kinds, size, context, settings)
    return _in_stores(rules, kinds, size, context, settings)


def _in_blocks(
    rules: EngineRules,
    kinds: Sequence[LayerKind],
    size: int,
    context: int,
    settings: PoolSettings,
) -> Dealt:
    """Deal out equal pages: n = floor(P / (page g)) blocks, g layers in a group.

    One kind is one group. With more kinds g is the fewest layers in one, or the most where that is
    below 1.5 times it; each makes ceil(layers / g) groups, the last padded. Longer blocks in the
    smaller kind, and in all attention beside states, make pages equal.
    """
    lengths, page = block_sizes(kinds, settings.block_tokens)
    counts = [kind.layers for kind in kinds]
    group = max(counts) if max(counts) < GROUP_RATIO * min(counts) else min(counts)
    block_bytes = page * group
    blocks = int(size // block_bytes)
    parts, padding = [], 0
    for kind in kinds:
        groups = math.ceil(kind.layers / group)
        padding += groups * group - kind.layers
        if kind.kind == STATE_LAYERS:
            taken = 1 + settings.prefix_caching + settings.drafts
        else:
            entries = kept_entries(kind, context, settings.max_batched_tokens)
            taken = math.ceil(entries / lengths[kind]) + (kind.kind == WINDOW)
        tokens = lengths.get(kind, 0)
        parts.append(PoolPart(kind, groups, tokens, block_bytes, blocks, groups * taken))
    concurrency = Fraction(blocks, sum(part.request_blocks for part in parts))
    groups = sum(part.groups for part in parts)
    least = min((part.block_tokens for part in parts if part.block_tokens), default=0)
    printed = blocks // groups * least
    if rules.tokens_printed == "concurrency":
        printed = math.floor(concurrency * context)
    return Dealt(tuple(parts), group, padding, printed, concurrency, shared=True)


def block_sizes(
    kinds: Sequence[LayerKind], block_tokens: int
) -> tuple[dict[LayerKind, int], Fraction]:
    """Tokens per block by attention kind, and the page per layer [1], [byte].

    The kind with the largest entries has `block_tokens`, others as many as fill the same page. With
    states the page is theirs, filled up to a multiple.

    Args:
        kinds: Layers by what a request keeps.
        block_tokens: Tokens per block in the layers with the largest entries [1].

    Raises:
        RooflinesError: A page is no multiple.
    """
    attention = [kind for kind in kinds if kind.kind != STATE_LAYERS]
    states = [kind.layer_bytes for kind in kinds if kind.kind == STATE_LAYERS]
    if not attention:
        return {}, max(states)
    largest = max(attention, key=lambda kind: kind.layer_bytes)
    tokens = {}
    for kind in attention:
        ratio = largest.layer_bytes / kind.layer_bytes
        if ratio.denominator != 1:
            sizes = " and ".join(
                f"{float(part.layer_bytes * block_tokens):,.0f} bytes of {part.text}"
                for part in (largest, kind)
            )
            problem = f"has pages of {sizes}, of which one does not divide the other"
            fix = "ask for another engine, or for --full-windows"
            raise RooflinesError("engine", problem, fix)
        tokens[kind] = block_tokens * int(ratio)
    page = largest.layer_bytes * block_tokens
    if states and max(states) > page:
        times = math.ceil(max(states) / page)
        return {kind: count * times for kind, count in tokens.items()}, page * times
    return tokens, page


def _by_window(
    kinds: Sequence[LayerKind], size: int, context: int, settings: PoolSettings
) -> Dealt:
    """Deal out a store for each window, with a share min(S, w) x bytes per token.

    Source: NVIDIA/TensorRT-LLM on GitHub, `BlockManager::calculateWindowSizeToShare`.
    """
    if any(kind.kind == STATE_LAYERS for kind in kinds):
        problem = "has states, of which this engine's rules are not known"
        raise RooflinesError("engine", problem, "ask for another engine, such as vllm")
    block = settings.block_tokens
    lengths = [min(context, kind.tokens or context) for kind in kinds]
    weights = [length * kind.bytes for length, kind in zip(lengths, kinds, strict=True)]
    parts = []
    for kind, length, weight in zip(kinds, lengths, weights, strict=True):
        block_bytes = block * kind.bytes
        blocks = int(size * weight / sum(weights) // block_bytes)
        parts.append(PoolPart(kind, 1, block, block_bytes, blocks, math.ceil(length / block)))
    return _of_stores(parts)


def _in_stores(
    rules: EngineRules,
    kinds: Sequence[LayerKind],
    size: int,
    context: int,
    settings: PoolSettings,
) -> Dealt:
    """Deal out a store of tokens for full layers, one for windows, one for states.

    States take the share q / (1 + q); in the rest P, full tokens = P / (F + r W), where F and W are
    bytes per token in full and in window layers; window tokens are r times as many.
    """
    states = [kind for kind in kinds if kind.kind == STATE_LAYERS]
    full = [kind for kind in kinds if kind.kind == FULL]
    near = [kind for kind in kinds if kind.kind in (WINDOW, CHUNK)]
    if not full:  # with windows in every layer, one pool keeps every token
        full, near = [kind._replace(kind=FULL, tokens=None) for kind in near], []
    parts, free = [], Fraction(size)
    for kind in states:
        share = Fraction(rules.state_ratio) if full else None
        part_bytes = free if share is None else free * share / (1 + share)
        slots = int(part_bytes // kind.bytes)
        parts.append(PoolPart(kind, 1, 0, kind.bytes, slots, 1))
        free -= part_bytes
    block, ratio = settings.block_tokens, Fraction(rules.swa_ratio)
    weighted = sum((kind.bytes for kind in full), Fraction(0))
    weighted += ratio * sum((kind.bytes for kind in near), Fraction(0))
    for kind, share in [*((kind, Fraction(1)) for kind in full), *((kind, ratio) for kind in near)]:
        tokens = free / weighted * share
        length = min(context, kind.tokens or context)
        blocks = int(tokens // block)
        parts.append(
            PoolPart(kind, 1, block, block * kind.bytes, blocks, math.ceil(length / block))
        )
    return _of_stores(parts)


def _of_stores(parts: Sequence[PoolPart]) -> Dealt:
    """Requests that stores hold: as many as the one that is full first."""
    concurrency = min(Fraction(part.blocks, part.request_blocks) for part in parts)
    counted = [part for part in parts if part.block_tokens]
    full = [part for part in counted if part.kind.tokens is None] or counted
    tokens = min((part.blocks * part.block_tokens for part in full), default=0)
    layers = sum(part.kind.layers for part in parts)
    return Dealt(tuple(parts), layers, 0, tokens, concurrency, shared=False)


# ---------------------------------------------------------------- what is kept besides


def reserved_parts(
    rules: EngineRules, replica: Replica, settings: PoolSettings
) -> dict[str, Fraction]:
    """Memory that an engine keeps besides weights and pool, by name [byte].

    Args:
        rules: The engine's rules.
        replica: The model on its chips.
        settings: Options that the engine is started with.
    """
    if settings.reserve is not None:
        return {"reserve": Fraction(settings.reserve)}
    if rules.activation is None:
        return {}
    reserved = {
        "activation": activation_gib(rules, replica, settings),
        "other": rules.outside_gib(replica.split.shards, replica.stages),
    }
    if (graphs := rules.graphs) is not None and graphs.counted:
        reserved["graphs"] = graphs.gib + graphs.layer_gib * replica.shape.layers
    return {name: Fraction(gib) * GIB for name, gib in reserved.items()}


def activation_gib(rules: EngineRules, replica: Replica, settings: PoolSettings) -> float:
    """Peak in a trial step: max(A, B) + E [GiB]; see `config/engines.yaml`."""
    shape, bits, split, _ = replica
    constants = rules.activation
    if constants is None:
        return 0.0
    element = float(bits["activations"] / BITS_PER_BYTE)
    tokens, width, tp = settings.max_batched_tokens, shape.D, split.shards
    sequences = min(settings.max_seqs or tokens, tokens)
    rows = math.ceil(shape.V / VOCABULARY_MULTIPLE) * VOCABULARY_MULTIPLE
    sampler = sequences * rows * (constants.logits_bytes + element)
    sampler += constants.step_widths * tokens * width * element + constants.constant_gib * GIB
    moe = shape.moe
    inner = max([mlp.F for mlp in shape.mlps] + ([moe.shared * moe.Fe] if moe else []), default=0)
    layer = constants.layer_mlp * inner / tp + constants.layer_widths * width
    peak = max(sampler, tokens * layer * element)
    if moe is not None and bits["experts"] >= UNPACKED_BITS:
        routed = moe.k * (width + 2 * moe.Fe / split.width_shards)
        peak += constants.experts * tokens * routed * element
    return peak / GIB + (constants.encoder_gib if shape.encoder else 0.0)


def engine_pool(
    rules: EngineRules,
    replica: Replica,
    capacity: float | Fraction,
    context: int,
    settings: PoolSettings,
) -> EnginePool:
    """Compute the pool that an engine makes on the fullest chip.

    By capacity: P = u T - weights - reserved. By free memory: P = (T - peak) u, with
    peak = weights + reserved.

    Args:
        rules: The engine's rules.
        replica: The model on its chips.
        capacity: T, memory that the device reports [byte].
        context: Tokens in a request [1].
        settings: Options that the engine is started with.

    Raises:
        RooflinesError: No rules are known for the model's caches.
    """
    kinds = layer_kinds(replica, windows=settings.windows)
    weights = loaded_weights(*replica)
    reserved = reserved_parts(rules, replica, settings)
    utilization = Fraction(settings.utilization)
    if rules.share == BY_CAPACITY:
        free = utilization * Fraction(capacity) - weights.total - sum(reserved.values())
    else:
        peak = weights.total + sum(reserved.values()) if settings.peak is None else settings.peak
        free = (Fraction(capacity) - peak) * utilization
    dealt = dealt_out(rules, kinds, math.floor(free), context, settings)
    return EnginePool(
        capacity=int(capacity),
        settings=settings,
        weights=weights,
        reserved=reserved,
        pool_bytes=math.floor(free),
        context=context,
        **dealt._asdict(),
    )
