"""Step of a model on one chip: kernels, their work and collectives.

Exact but for the uniformly touched experts of many tokens, or of a fraction of a token: their
untouched share is a decimal number of 60 digits.
"""

import decimal
import functools
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from typing import Any, NamedTuple

from oracle import models
from oracle.fits import Fits
from oracle.kernels import Collective, Fused, Kernel, Matmul, levels_s
from oracle.network import Link

STORED = ("weights", "experts", "head", "lm_head", "cache", "activations", "combine")
WHOLE_TOKENS = 4096  # up to here touched experts are exact rationals
DIGITS = decimal.Context(prec=60, Emin=-5000, Emax=5000, traps=[])
Entry = dict[str, Any]


class Step(NamedTuple):
    """Sequences of all replicas, new tokens of each, and their context after the step."""

    B: int
    T: int
    S: int


@dataclass(frozen=True)
class Case:
    """A model on chips, all but the sizes of a step."""

    entry: Entry
    phase: str
    bits: Mapping[str, Fraction]
    peaks: Mapping[str, Fraction]
    memory_rate: Fraction
    capacity: Fraction | None
    links: tuple[Link, ...]
    efficiency: Mapping[str, Fraction]
    fits: Fits
    axes: tuple[int, ...] = (1,)  # of tp
    dp: int = 1
    ep_axes: tuple[int, ...] = (1,)
    cache_split: str = "heads"
    routing: str = "uniform"
    price: Mapping[str, Any] | None = None
    watts: Fraction | None = None
    drafts: int | None = None  # tokens drafted for each sequence; None without a draft
    accepted: Fraction = Fraction(0)

    @property
    def own_drafts(self):
        """Tokens that a layer of the model drafts."""
        return self.drafts if self.drafts and self.entry.get("mtp") else 0

    @property
    def tp(self):
        """Chips of a replica."""
        return math.prod(self.axes)

    @property
    def ep(self):
        """Parts of the experts."""
        return math.prod(self.ep_axes)

    @property
    def chips(self):
        """Chips of all replicas."""
        return self.tp * self.dp

    def cache_shares(self, heads):
        """Shards of a cache with this number of heads."""
        return self.tp if self.cache_split == "batch" else min(self.tp, heads)


def shared_evenly(entry, tp):
    """True if this number of chips divides the heads of all mixers."""
    kinds = {kind for kind, _ in models.each_mixer(entry)} - {"state"}
    parts = [models.attention_in(entry, kind) for kind in kinds]
    cached = [(a["N"], a.get("K", 1)) for a in parts]
    states = (entry.get("state") or {}).get("heads", tp)
    return states % tp == 0 and all(n % tp == 0 and (k % tp == 0 or tp % k == 0) for n, k in cached)


def entries_held(context, window):
    """Entries of one sequence that a layer keeps."""
    return context if window is None else min(context, window)


def entries_moved(context, new, window):
    """Entries of one sequence that a step reads or writes in a layer."""
    earlier = context - new
    if isinstance(window, models.Chunk):
        return new + earlier % window
    return new + (earlier if window is None else min(earlier, window - 1))


def pairs(context, new, window):
    """Pairs of a new token and one that it attends to: the sum of min(position, window)."""
    if isinstance(window, models.Chunk):
        firsts = context % window, (context - new) % window
        whole = context // window - (context - new) // window
        return (
            whole * window * (window + 1) // 2
            + (firsts[0] * (firsts[0] + 1) - firsts[1] * (firsts[1] + 1)) // 2
        )
    first = context - new + 1
    within = context if window is None else max(min(context, window), first - 1)
    beyond = (context - within) * (window or 0)
    return (first + within) * (within - first + 1) // 2 + beyond


def tokens_of(part):
    """Tokens whose compressed entries a token attends to; None: all."""
    return part["entries"] * part["tokens"] if part.get("entries") else None


ATTENTION = {type(None): "attention", int: "attention-window", models.Chunk: "attention-chunk"}
"""The names of attention by how far it attends."""


@functools.lru_cache(maxsize=4096)
def touched(experts, chosen, tokens, routing):
    """Experts of a layer that are read."""
    if routing != "uniform":
        return Fraction(chosen if routing == "same" else experts)
    missed = Fraction(experts - chosen, experts)
    if tokens.denominator == 1 and tokens <= WHOLE_TOKENS:
        return experts * (1 - missed ** int(tokens))
    n, m = (DIGITS.divide(decimal.Decimal(f.numerator), f.denominator) for f in (tokens, missed))
    return experts * (1 - Fraction(DIGITS.power(m, n)))


def needed_by(case, parts):
    """The chance that a token of one of equal parts of the chips needs an expert of another."""
    moe = case.entry["moe"]
    experts, chosen = models.routed_among(moe), moe["k"]
    if case.routing == "all" or parts == 1:
        return Fraction(1)
    if case.routing == "same":  # its own part is full first, then another
        each = Fraction(moe["E"], parts)
        return Fraction(math.ceil(models.mean_chosen(moe) / each) - 1, parts - 1)
    sizes = [moe["E"] // parts + (index < moe["E"] % parts) for index in range(parts)]
    missed = Fraction(0)
    for each in set(sizes):
        none = Fraction(1)
        for drawn in range(chosen):
            none *= max(Fraction(experts - each - drawn, experts - drawn), Fraction(0))
        missed += none * Fraction(sizes.count(each), parts)
    return 1 - missed


EVERY_CHIP = 1
"""Heads of what all chips of a replica have whole [1]."""


def projections(a, width, phase):
    """Matrices of attention: name, weights, elements in and out per token, and what is split.

    Then their parts of few heads, of which every chip has one at least: heads, weights, elements
    out. A chip of more than K has a key and a value head that another one has as well. What is
    compressed has no heads.
    """
    if a.get("kind") == "shared-kv":
        heads, low, down = a["N"] * a["H"], a["o_groups"] * a["o_rank"], a["q_rank"] + a["H"]
        whole = [(EVERY_CHIP, width * down, down)]
        return [
            ("qkv-down", width * down, width, down, "out", whole),
            ("q-up", a["q_rank"] * heads, a["q_rank"], heads, "out"),
            ("o-down", heads * a["o_rank"], heads, low, "heads"),
            ("o", low * width, low, width, "in"),
        ]
    if a.get("kind") != "mla":
        value = a.get("v") or a["H"]
        out, keys = a["N"] * value, a["K"] * a["H"] + (0 if a.get("one_tensor") else a["K"] * value)
        gates = {"element": out, "head": a["N"]}.get(str(a.get("gate")), 0)
        into = a["N"] * a["H"] + keys + gates
        shared = [(a["K"], width * keys, keys)]
        return [
            ("qkv", width * into, width, into, "out", shared),
            ("o", out * width, out, width, "in"),
        ]
    query, cached = a["N"] * (a["nope"] + a["rope"]), a["kv_rank"] + a["rope"]
    rank, gates = a.get("q_rank"), a["N"] * a["v"] if a.get("gate") else 0
    name, first = ("qkv", query) if rank is None else ("qkv-down", rank)
    first += cached + gates
    compressed = (rank or 0) + cached
    whole = [(EVERY_CHIP, width * compressed, compressed)]
    found: list[Any] = [(name, width * first, width, first, "out", whole)]
    if rank is not None:
        found.append(("q-up", rank * query, rank, query, "out"))
    expanded = a["N"] * (a["nope"] + a["v"])
    if phase == "decode":
        inside, outside = a["N"] * (a["nope"] + a["kv_rank"]), a["N"] * (a["kv_rank"] + a["v"])
        found.append(("kv-up", a["kv_rank"] * expanded, inside, outside, "heads"))
    else:
        found.append(("kv-up", a["kv_rank"] * expanded, a["kv_rank"], expanded, "out"))
    values = a["N"] * a["v"]
    return [*found, ("o", values * width, values, width, "in")]


def entry_elements(a):
    """Elements of an entry of the cache."""
    if a.get("kind") == "mla":
        return int(a["kv_rank"] + a["rope"])
    if a.get("kind") == "shared-kv":
        return int(a["H"])
    return int(a["K"] * (a["H"] + (a.get("v") or a["H"])))


LEAST_ROTARY = 16
"""Bits of a rotary element of a compressed entry, at least [bit]."""


def bits_of_entry(a, bits):
    """Mean bits per element in a KV cache entry; rotary elements have at least `LEAST_ROTARY`."""
    if a.get("kind") != "shared-kv":
        return bits
    rotary, size = a["rope"], a["H"]
    return ((size - rotary) * bits + rotary * max(bits, Fraction(LEAST_ROTARY))) / size


def attention_of(a, phase):
    """FLOP of a pair, elements in and out per token."""
    if a.get("kind") == "shared-kv":
        heads = a["N"] * a["H"]
        return 2 * (heads + heads), heads, heads
    if a.get("kind") != "mla":
        keys, values = a["N"] * a["H"], a["N"] * (a.get("v") or a["H"])
        return 2 * keys + 2 * values, keys, values
    n, rank, rope, nope, v = (a[key] for key in ("N", "kv_rank", "rope", "nope", "v"))
    if phase == "decode":
        return n * (2 * (rank + rope) + 2 * rank), n * (rank + rope), n * rank
    key = nope + rope
    return n * (2 * key + 2 * v), n * key + n * (nope + v), n * v


class Inner(NamedTuple):
    """Work of a mixer between its projections.

    FLOP of all sequences; elements of the cache moved for one, with their bits and heads; elements
    in and out per token, with those in of few heads.
    """

    name: str
    flops: int
    moved: int
    bits: Fraction
    heads: int
    inside: int
    outside: int
    context: Fraction | int | None = None
    few_inside: list[tuple[int, int]] = []  # noqa: RUF012, never changed
    head: int | None = None  # of grouped-query attention, with its query heads and its window
    queries: int = 0
    window: int | None = None
    far: int | Fraction = 0  # elements of the cache before the window, which query heads share


def strided(of, a, stride, step, of_pair):
    """Attention to a window, and of each query head to a block in a stride before it."""
    before = pairs(step.S, step.T, None) - pairs(step.S, step.T, of.window)
    flops = of.flops + of_pair * step.B * Fraction(before, stride)
    heads = Fraction(a["N"], stride)  # query heads at a block, each of another KV head
    read = heads * (step.S - entries_moved(step.S, step.T, of.window))
    far = read * (a["H"] + (a.get("v") or a["H"]))
    return of._replace(
        name="attention-strided",
        flops=flops,
        moved=of.moved + far,
        context=of.context + read / a["K"],
        far=far,
    )


class OneChip:
    """Kernels of one chip, one method for each kind."""

    def __init__(self, case, step):
        self.case, self.step, self.bits = case, step, case.bits
        self.tokens = Fraction(step.B * step.T)  # X
        self.own = self.tokens / case.dp  # Y, of a replica
        self.rows = Fraction(step.B, case.dp)  # r

    def bytes_of(self, elements, tensors):
        """Bytes of elements of a class of tensors."""
        return elements * self.bits[tensors] / 8

    def over_tp(self, name, elements):
        """A collective of activations over the chips of a replica, if there are several."""
        if self.case.tp == 1:
            return []
        return [Collective(name, self.case.axes, self.bytes_of(elements, "activations"))]

    def all_reduce(self):
        """The all-reduce of a replica's tokens."""
        return self.over_tp("all-reduce", self.own * self.case.entry["D"])

    def of_one(self, elements, parts):
        """Elements of one chip of a replica: parts of few heads, and its share of the rest."""
        rest = elements - sum(part for _, part in parts)
        return sum(
            (Fraction(part, min(self.case.tp, heads)) for heads, part in parts), Fraction(0)
        ) + (Fraction(rest, self.case.tp))

    def linear(self, count, matrix):
        """A matrix, split along its output, its input, or both by heads; or whole on every chip."""
        name, weights, inside, outside, split, *few = matrix
        parts = few[0] if few else []
        if split == "whole":
            parts = [(EVERY_CHIP, weights, outside)]
        held = self.of_one(weights, [(heads, part) for heads, part, _ in parts])
        depth = Fraction(inside, 1 if split in ("out", "whole") else self.case.tp)
        inputs = self.own * depth
        made = self.of_one(outside, [(heads, part) for heads, _, part in parts])
        outputs = self.own * (outside if split == "in" else made)
        made_bytes = self.bytes_of(outputs, "activations")
        return Kernel(
            name,
            count,
            self.bytes_of(held, "weights"),
            2 * held * self.own,
            Fraction(0),
            self.bytes_of(inputs + outputs, "activations"),
            self.all_reduce() if split == "in" else [],
            matmul=None
            if split == "heads"
            else Matmul(self.own, self.bytes_of(inputs, "input"), made_bytes, depth, held / depth),
        )

    def attention(self, a, window, part=None):
        """The attention of layers with one window, beside compressed entries if there are some."""
        step = self.step
        of_pair, inside, outside = attention_of(a, self.case.phase)
        couples = Fraction(pairs(step.S, step.T, window))
        context = Fraction(entries_moved(step.S, step.T, window))
        name = ATTENTION[type(window)]
        if part is not None:
            name, far = f"attention-compressed-{part['tokens']}", tokens_of(part)
            couples += Fraction(pairs(step.S, step.T, far), part["tokens"])
            context += Fraction(entries_moved(step.S, step.T, far), part["tokens"])
        flops, moved, heads = of_pair * step.B * couples, entry_elements(a) * context, a.get("K", 1)
        bits = bits_of_entry(a, self.bits["cache"])
        of = Inner(name, flops, moved, bits, heads, inside, outside, context)
        if a.get("kind", "gqa") != "gqa":
            return of
        of = of._replace(head=a["H"], queries=a["N"], window=window)
        own = self.case.entry.get("window") or {}
        if window is None or not own.get("stride"):
            return of
        return strided(of, a, own["stride"], step, of_pair)

    def entry_indexer(self, part):
        """The heads of an indexer, to every compressed entry."""
        step, queries = self.step, part["heads"] * part["dim"]
        couples = Fraction(pairs(step.S, step.T, None), part["tokens"])
        moved = part["dim"] * Fraction(entries_moved(step.S, step.T, None), part["tokens"])
        bits = Fraction(part.get("bits") or self.bits["cache"])
        flops = 2 * queries * step.B * couples
        return Inner("indexer", flops, moved, bits, 1, queries, part["entries"])

    def indexer(self):
        """The attention of the heads of an indexer to all tokens; their key is one."""
        sparse, step = self.case.entry["sparse"], self.step
        queries = sparse["heads"] * sparse["dim"]
        flops = 2 * queries * step.B * pairs(step.S, step.T, None)
        moved = sparse["dim"] * entries_moved(step.S, step.T, None)
        bits = Fraction(sparse.get("bits") or self.bits["cache"])
        return Inner("indexer", flops, moved, bits, 1, queries, sparse["tokens"])

    def state(self):
        """The recurrence of a state and its short convolution, read but in prefill, and written."""
        s, step = self.case.entry["state"], self.step
        if s["kind"] == "short-conv":
            return self.convolution(s)
        elements, values = s["heads"] * s["key"] * s["value"], s["heads"] * s["value"]
        products = 3 if s["kind"] in ("gated-delta", "kda") else 2
        keys, decode = 2 * s["groups"] * s["key"], self.case.phase == "decode"
        bits, few = Fraction(s.get("bits", 32)), [(s["groups"], keys)]
        read = convolved(s) * (s["conv"] if decode else s["conv"] - 1) * 16 / bits
        moved = elements * (2 if decode else 1) + read
        flops = 2 * products * elements * step.B * step.T
        inputs = keys + values + (values if s["kind"] == "mamba1" else 0)  # its time steps
        return Inner("state", flops, moved, bits, s["heads"], inputs, values, few_inside=few)

    def convolution(self, s):
        """A short convolution alone, between two gates; decode reads its inputs and adds one."""
        channels, step = s["heads"] * s["value"], self.step
        kept = s["conv"] - 1
        moved = channels * (kept + 1 if self.case.phase == "decode" else kept)
        flops = 2 * s["conv"] * channels * step.B * step.T
        sizes = Fraction(16), s["heads"], 3 * channels, channels
        return Inner("state", flops, moved, *sizes)

    def inner(self, count, of):
        """A mixer between its projections, split by heads or by sequences."""
        case, by_batch = self.case, self.case.cache_split == "batch"
        near = Fraction(of.moved - of.far, case.cache_shares(of.heads))
        moved = self.rows * (near + Fraction(of.far, case.tp))
        shared = [self.own * elements / case.tp for elements in (of.inside, of.outside)]
        exchanged = [*chain(*(self.over_tp("all-to-all", each) for each in shared))]
        collectives = exchanged if by_batch and of.name != "indexer" else []
        flops = Fraction(of.flops, case.chips)
        if not by_batch:
            shared[0] = self.own * self.of_one(of.inside, of.few_inside)
        if of.name == "indexer" and not by_batch:  # scores are sums over its heads
            flops, shared = flops * case.tp, [each * case.tp for each in shared]
        both = self.bytes_of(sum(shared, Fraction(0)), "activations")
        works = Fraction(0), flops, moved * of.bits / 8, both
        fused = None
        if of.head is not None:
            inside, outside = (self.bytes_of(each, "activations") for each in shared)
            tp = 1 if by_batch else case.tp
            sizes = {"S": of.context, "H": of.head, "window": of.window or 0}
            fused = Fused(
                inside,
                outside,
                sizes,
                depth=of.context,
                heads=self.rows * Fraction(of.heads, case.cache_shares(of.heads)),
                shares=of.queries * min(tp, of.heads) > tp * of.heads,
            )
        return Kernel(
            of.name, count, *works, collectives, "attention", context=of.context, fused=fused
        )

    def experts(self, count):
        """The routed experts."""
        case, moe, width = self.case, self.case.entry["moe"], self.case.entry["D"]
        inner = moe.get("latent") or width
        one = (3 if moe.get("gated", True) else 2) * inner * moe["Fe"]
        chosen = models.mean_chosen(moe)
        flops = 2 * self.tokens * chosen * one / case.chips
        reduced, once = None, self.own if case.ep == 1 else self.tokens
        among = models.routed_among(moe)
        activated = touched(among, moe["k"], once, case.routing) * moe["E"] / among / case.ep
        if case.ep == 1:
            read = activated * one / case.tp
            moved = self.own * chosen * inner
            collectives = self.all_reduce()
        else:
            read = activated * one
            own = self.tokens * inner / case.chips
            moved = own * chosen
            parts = [n for n in range(1, case.ep + 1) if case.ep % n == 0]
            needed = {n: needed_by(case, n) for n in parts}
            collectives = [
                Collective("all-to-all", case.ep_axes, self.bytes_of(own, tensors), needed)
                for tensors in ("activations", "combine")
            ] + self.over_tp("all-gather", self.own * width)
            if case.tp > 1:
                axes = case.axes if case.dp == 1 else case.ep_axes
                size = self.bytes_of(self.tokens * width, "activations")
                reduced = [Collective("all-reduce", axes, size)]
                if self.sums_send_less(reduced, collectives):
                    collectives, reduced = reduced, None
        weights, both = self.bytes_of(read, "experts"), self.bytes_of(2 * moved, "activations")
        one_way = self.bytes_of(moved, "activations")
        fused = Fused(
            one_way,
            one_way,
            {"D": inner, "Fe": moe["Fe"]},
            once=self.bytes_of(once * inner, "activations"),
            activated=activated,
        )
        return Kernel(
            "experts",
            count,
            weights,
            flops,
            Fraction(0),
            both,
            collectives,
            fused=fused,
            engine_collectives=reduced,
        )

    def sums_send_less(self, reduced, exchanged):
        """True if one all-reduce of all experts sends for less time than an exchange."""
        links, shared = self.case.links, self.case.entry["moe"].get("shared")
        others = [*exchanged, *(self.all_reduce() if shared else [])]
        sums, parts = (
            sum(max(send for send, _ in levels_s(links, each, 1)) for each in collectives)
            for collectives in (reduced, others)
        )
        return sums < parts

    def shared_experts(self, count):
        """The experts of every token: split along their width, read and written whole."""
        moe, width = self.case.entry["moe"], self.case.entry["D"]
        weights = moe["shared"] * (3 if moe.get("gated", True) else 2) * width * moe["Fe"]
        kernel = self.linear(count, ("shared", weights, width, width, "out"))
        both = self.bytes_of(2 * self.own * width, "activations")
        routed = self.experts(count)
        alone = self.case.ep > 1 and self.case.tp > 1
        summed = alone and [each.name for each in routed.collectives] == ["all-reduce"]
        collectives = self.all_reduce() if alone and not summed else []
        return replace(
            kernel,
            activation_bytes=both,
            collectives=collectives,
            matmul=None,
            engine_collectives=[] if collectives else None,
        )

    def unembed(self):
        """The unembedding of one token of each sequence, or of all that a draft proposed."""
        width, rows, tp = self.case.entry["D"], self.case.entry["V"], self.case.tp
        scored = self.rows if self.case.drafts is None else self.own
        moved = scored * width, scored * rows / tp
        inputs, outputs = (self.bytes_of(elements, "activations") for elements in moved)
        return Kernel(
            "unembed",
            1,
            self.bytes_of(Fraction(rows * width, tp), "lm_head"),
            2 * scored * rows * width / self.case.tp,
            Fraction(0),
            inputs + outputs,
            matmul=Matmul(
                scored,
                self.bytes_of(moved[0], "input"),
                outputs,
                Fraction(width),
                Fraction(rows, tp),
            ),
        )


def kernels(case, step):
    """Work of one chip in a step, group after group."""
    chip, entry, none = OneChip(case, step), case.entry, Fraction(0)
    embedded = chip.bytes_of(chip.own * entry["D"], "activations")
    mixing = compressed_attentions if entry["attention"].get("kind") == "shared-kv" else attentions
    found = [Kernel("embed", 1, none, none, none, embedded), *mixing(chip)]
    if streams := entry.get("streams"):
        inside, out = streams * entry["D"], streams * streams + 2 * streams
        mix = ("mix", inside * out, inside, inside, "whole")
        last = ("mix-out", inside * streams, inside, entry["D"], "whole")
        found += [chip.linear(2 * entry["layers"], mix), chip.linear(1, last)]
    if linears := models.without(entry, "linear"):
        found.append(
            chip.linear(linears, ("linear", entry["D"] ** 2, entry["D"], entry["D"], "in"))
        )
    if state := entry.get("state"):
        *before, out = state_projections(state, entry["D"])
        layers = state["layers"]
        found += [chip.linear(layers, matrix) for matrix in before]
        found.append(chip.inner(layers, chip.state()))
        last = chip.linear(layers, out)  # beside attention one sum has both
        found.append(replace(last, collectives=[]) if state.get("beside") else last)
    return [*found, *mlps(chip), chip.unembed(), *drafting(case, step)]


def drafting(case, step):
    """The layer that drafts: runs of a token of each sequence, whose caches are ever longer.

    The last one attends to all tokens but the one that it proposes.
    """
    runs = case.own_drafts
    if not runs:
        return
    alone = replace(case, entry=models.drafter(case.entry), drafts=None)
    steps = [Step(step.B, 1, step.S - back) for back in range(runs, 0, -1)]
    width = case.entry["D"]
    merge = ("merge", width * 2 * width, 2 * width, width, "whole")
    after_embedding = OneChip(alone, steps[0]).linear(1, merge)
    every = []
    for each in steps:
        embed, *others = kernels(alone, each)
        every.append([embed, after_embedding, *others])
    for run in zip(*every, strict=True):
        means: dict[str, Any] = {
            name: sum((getattr(kernel, name) for kernel in run), Fraction(0)) / runs
            for name in ("flops", "kv_cache_bytes", "context")
            if getattr(run[0], name) is not None
        }
        name, fused = f"draft-{run[0].name}", run[0].fused
        if fused is not None and "context" in means:
            context = means["context"]
            means["fused"] = fused._replace(depth=context, sizes={**fused.sizes, "S": context})
        yield replace(run[0], name=name, count=runs, **means)


def attentions(chip):
    """Attention by its heads, then by how far it attends; an indexer before it."""
    entry, width = chip.case.entry, chip.case.entry["D"]
    spans = [each for each in models.each_mixer(entry) if each[0] != "state"]
    parts: list[tuple[Entry, list[int | None]]] = []
    for kind, tokens in sorted(spans, key=lambda each: (each[1] is not None, each[1])):
        own = models.attention_in(entry, kind)
        for a, windows in parts:
            if a == own:
                windows.append(tokens)
                break
        else:
            parts.append((own, [tokens]))
    for a, windows in parts:
        suffix = "" if a == entry["attention"] else "-window"
        named = f"-{a['K']}" if suffix and entry.get("variants") else ""
        suffix = named or suffix
        *before, last = projections(a, width, chip.case.phase)
        for matrix in before:
            yield chip.linear(len(windows), (matrix[0] + suffix, *matrix[1:]))
        if sparse := entry.get("sparse"):
            indexers = models.indexers(entry)
            rank, queries = a.get("q_rank") or width, sparse["heads"] * sparse["dim"]
            key = sparse["dim"] + (sparse["heads"] if sparse.get("weighted", True) else 0)
            yield chip.linear(indexers, ("index-q", rank * queries, rank, queries, "whole"))
            yield chip.linear(indexers, ("index-k", width * key, width, key, "whole"))
            yield chip.inner(indexers, chip.indexer())
        for window in dict.fromkeys(windows):
            of = chip.attention(a, window)
            yield chip.inner(windows.count(window), of._replace(name=of.name + named))
        yield chip.linear(len(windows), (last[0] + suffix, *last[1:]))


def compressed_attentions(chip):
    """Attention to a window, and to compressed entries: compressors, indexers, then attention."""
    entry, width = chip.case.entry, chip.case.entry["D"]
    a, window, layers = entry["attention"], entry["window"]["tokens"], entry["layers"]
    *before, down, out = projections(a, width, chip.case.phase)
    for matrix in (*before, down, out):
        yield chip.linear(layers, matrix)
    alone = layers
    for part in entry.get("compressed") or []:
        count = part["layers"]
        alone -= count
        wide = 2 if part.get("overlap") else 1
        for name, made in compressor_matrices(part, a, wide):
            inside = a["q_rank"] if name == "index-q" else width
            yield chip.linear(count, (name, inside * made, inside, made, "whole"))
        if part.get("entries"):
            yield chip.inner(count, chip.entry_indexer(part))
        yield chip.inner(count, chip.attention(a, window, part))
    if alone:
        yield chip.inner(alone, chip.attention(a, window))


def compressor_matrices(part, a, wide):
    """Names and outputs of the matrices that make entries, and of those of an indexer."""
    yield f"compress-{part['tokens']}", 2 * wide * a["H"]
    if part.get("entries"):
        yield "index-q", part["heads"] * part["dim"]
        yield "index-k", part["heads"] + 2 * wide * part["dim"]


def convolved(s):
    """Channels of the short convolution of a state [1]."""
    keys = {"lightning": None, "mamba1": 0}.get(s["kind"], 2 * s["groups"] * s["key"])
    return 0 if keys is None else keys + s["heads"] * s["value"]


def state_projections(s, width):
    """The matrices into a state and out of it; low ranks are weights of the first."""
    values, keys = s["heads"] * s["value"], 2 * s["groups"] * s["key"]
    last = ("state-out", values * width, values, width, "in")
    if s["kind"] == "mamba1":
        steps = values * s["rank"] + values * keys + s["rank"] * values
        parts: list[tuple[int, int, int]] = []
        into = ("state-in", 2 * values * width, width, 2 * values, "out", parts)
        return [into, ("state-steps", steps, values, keys + values, "heads", [(1, 0, keys)]), last]
    if s["kind"] == "short-conv":
        parts = []
        return [("state-in", 3 * values * width, width, 3 * values, "out", parts), last]
    out = keys + values + (0 if s["kind"] == "lightning" else s["heads"])
    low = down = 0
    if s["kind"] == "gated-delta":
        out += values + s["heads"]
    elif s["kind"] in ("mamba2", "lightning"):
        out += values
    else:
        down, low = s["value"] * width, s["value"] * s["heads"] * s["key"]
        if s.get("full_gate", True):
            out += values
        else:
            down, low = 2 * down, low + s["value"] * values
    parts = [(s["groups"], width * keys, keys), (EVERY_CHIP, down, 0)]
    return [("state-in", width * out + down + low, width, out, "out", parts), last]


def mlps(chip):
    """Layers with an MLP, then those with experts."""
    entry, width = chip.case.entry, chip.case.entry["D"]
    sparse = models.each_mlp(entry).count("moe")
    for hidden, dense in Counter(models.mlp_widths(entry) if entry.get("mlp") else []).items():
        suffix = "" if hidden == entry["mlp"]["F"] else f"-{hidden}"
        up = (2 if entry["mlp"].get("gated", True) else 1) * width * hidden
        yield chip.linear(dense, (f"gate-up{suffix}", up, width, hidden, "out"))
        yield chip.linear(dense, (f"down{suffix}", hidden * width, hidden, width, "in"))
    if not sparse:
        return
    moe = entry["moe"]
    gate = 1 if moe.get("shared_gate") and moe.get("shared") else 0
    router = width * (models.routed_among(moe) + gate)
    yield chip.linear(sparse, ("router", router, width, 0, "whole"))
    latent = moe.get("latent")
    if latent:
        yield chip.linear(sparse, ("latent-in", width * latent, width, latent, "whole"))
    yield chip.experts(sparse)
    if latent:
        yield chip.linear(sparse, ("latent-out", width * latent, latent, width, "whole"))
    if moe.get("shared", 0):
        yield chip.shared_experts(sparse)
