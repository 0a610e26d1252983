"""What one chip does in a step of a whole model: kernels, their work and collectives, exact.

An oracle: it reads the plain YAML form of a model and imports nothing of the package. Everything is
a :class:`fractions.Fraction`. Only the uniformly touched experts of many tokens, or of a fraction
of a token, are a decimal number: their untouched share has 60 digits.
"""

from __future__ import annotations

import decimal
import functools
import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import model_oracle

if TYPE_CHECKING:
    from collections.abc import Mapping

    import oracle
    from serving_estimates import Fits

STORED = ("weights", "experts", "head", "cache", "activations", "combine")
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
    links: tuple[oracle.Link, ...]
    efficiency: Mapping[str, Fraction]
    fits: Fits
    axes: tuple[int, ...] = (1,)  # of tp
    dp: int = 1
    ep: int = 1
    cache_split: str = "heads"
    routing: str = "uniform"
    price: Mapping[str, Any] | None = None
    watts: Fraction | None = None

    @property
    def tp(self) -> int:
        """Chips of a replica."""
        return math.prod(self.axes)

    @property
    def chips(self) -> int:
        """Chips of all replicas."""
        return self.tp * self.dp

    @property
    def cache_shares(self) -> int:
        """Parts of a cache, each on a chip of its own."""
        if self.cache_split == "batch":
            return self.tp
        return min(self.tp, int(self.entry["attention"].get("K", 1)))


class Collective(NamedTuple):
    """Passes of one kind over chips, and the bytes of what each is about on one chip.

    Of the kind "experts" these are the chip's own tokens, which others need.
    """

    kind: str
    passes: int
    axes: tuple[int, ...]
    payload: Fraction


class Matmul(NamedTuple):
    """A kernel that is one matrix: rows of all replicas; of a chip bytes in and out, and depth."""

    rows: int
    inputs: Fraction
    outputs: Fraction
    depth: Fraction


@dataclass(frozen=True)
class Kernel:
    """What one chip does in one layer of a group."""

    name: str
    count: int
    weight_bytes: Fraction
    flops: Fraction
    cache_bytes: Fraction
    activation_bytes: Fraction
    collectives: list[Collective] = field(default_factory=list)
    unit: str = "compute"
    matmul: Matmul | None = None


# ---------------------------------------------------------------- caches, pairs, experts


def entries_held(context: int, window: int | None) -> int:
    """Entries of one sequence that a layer keeps."""
    return context if window is None else min(context, window)


def entries_moved(context: int, new: int, window: int | None) -> int:
    """Entries of one sequence that a step reads or writes in a layer."""
    earlier = context - new
    return new + (earlier if window is None else min(earlier, window - 1))


def pairs(context: int, new: int, window: int | None) -> int:
    """Pairs of a new token and one that it attends to: the sum of min(position, window)."""
    first = context - new + 1
    within = context if window is None else max(min(context, window), first - 1)
    beyond = (context - within) * (window or 0)
    return (first + within) * (within - first + 1) // 2 + beyond


@functools.lru_cache(maxsize=4096)
def touched(experts: int, chosen: int, tokens: Fraction, routing: str) -> Fraction:
    """Experts of a layer that are read."""
    if routing != "uniform":
        return Fraction(chosen if routing == "same" else experts)
    missed = Fraction(experts - chosen, experts)
    if tokens.denominator == 1 and tokens <= WHOLE_TOKENS:
        return experts * (1 - missed ** int(tokens))
    n, m = (DIGITS.divide(decimal.Decimal(f.numerator), f.denominator) for f in (tokens, missed))
    return experts * (1 - Fraction(DIGITS.power(m, n)))


# ---------------------------------------------------------------- kernels


def projections(entry: Entry, phase: str) -> list[tuple[str, int, int, int, str]]:
    """Matrices of attention: name, weights, elements in and out per token, and what is split."""
    a, width = entry["attention"], entry["D"]
    if a.get("kind") != "mla":
        heads, out = a["N"] * a["H"], (a["N"] + 2 * a["K"]) * a["H"]
        return [("qkv", width * out, width, out, "out"), ("o", heads * width, heads, width, "in")]
    query, cached = a["N"] * (a["nope"] + a["rope"]), a["kv_rank"] + a["rope"]
    rank = a.get("q_rank")
    first = query if rank is None else rank
    found = [
        (
            "qkv" if rank is None else "qkv-down",
            width * (first + cached),
            width,
            first + cached,
            "out",
        )
    ]
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


def attention_of(entry: Entry, phase: str) -> tuple[int, int, int, int]:
    """FLOP of a pair, elements in and out per token, elements of an entry of the cache."""
    a = entry["attention"]
    if a.get("kind") != "mla":
        heads = a["N"] * a["H"]
        return 4 * heads, heads, heads, 2 * a["K"] * a["H"]
    n, rank, rope, nope, v = (a[key] for key in ("N", "kv_rank", "rope", "nope", "v"))
    if phase == "decode":
        return n * (2 * (rank + rope) + 2 * rank), n * (rank + rope), n * rank, rank + rope
    key = nope + rope
    return n * (2 * key + 2 * v), n * key + n * (nope + v), n * v, rank + rope


class OneChip:
    """Kernels of one chip, one method for each kind."""

    def __init__(self, case: Case, step: Step) -> None:
        self.case, self.step, self.bits = case, step, case.bits
        self.tokens = Fraction(step.B * step.T)  # X
        self.own = self.tokens / case.dp  # Y, of a replica
        self.rows = Fraction(step.B, case.dp)  # r

    def bytes_of(self, elements: Fraction | int, tensors: str) -> Fraction:
        """Bytes of elements of a class of tensors."""
        return elements * self.bits[tensors] / 8

    def over_tp(self, kind: str, passes: int, elements: Fraction) -> list[Collective]:
        """A collective of activations over the chips of a replica, if there are several."""
        if self.case.tp == 1:
            return []
        return [Collective(kind, passes, self.case.axes, self.bytes_of(elements, "activations"))]

    def all_reduce(self) -> list[Collective]:
        """The all-reduce of a replica's tokens."""
        return self.over_tp("gather", 2, self.own * self.case.entry["D"])

    def linear(self, count: int, matrix: tuple[str, int, int, int, str]) -> Kernel:
        """A matrix, split along its output, its input, or both by heads."""
        name, weights, inside, outside, split = matrix
        tp = self.case.tp
        depth = Fraction(inside, 1 if split == "out" else tp)
        inputs = self.own * depth
        outputs = self.own * outside / (1 if split == "in" else tp)
        held = [self.bytes_of(elements, "activations") for elements in (inputs, outputs)]
        return Kernel(
            name,
            count,
            self.bytes_of(Fraction(weights, tp), "weights"),
            2 * weights * self.tokens / self.case.chips,
            Fraction(0),
            self.bytes_of(inputs + outputs, "activations"),
            self.all_reduce() if split == "in" else [],
            matmul=None if split == "heads" else Matmul(int(self.tokens), held[0], held[1], depth),
        )

    def attention(self, count: int, window: int | None) -> Kernel:
        """The attention of layers with one window."""
        case, step = self.case, self.step
        flops, inside, outside, entry = attention_of(case.entry, case.phase)
        moved = self.rows * entries_moved(step.S, step.T, window) * entry / case.cache_shares
        shared = [self.own * elements / case.tp for elements in (inside, outside)]
        exchanged = [self.over_tp("scattered", 1, each) for each in shared]
        return Kernel(
            "attention" if window is None else "attention-window",
            count,
            Fraction(0),
            Fraction(flops * step.B * pairs(step.S, step.T, window), case.chips),
            self.bytes_of(moved, "cache"),
            self.bytes_of(sum(shared, Fraction(0)), "activations"),
            list(chain(*exchanged)) if case.cache_split == "batch" else [],
            "attention",
        )

    def experts(self, count: int) -> Kernel:
        """The routed experts."""
        case, moe, width = self.case, self.case.entry["moe"], self.case.entry["D"]
        one = 3 * width * moe["Fe"]
        flops = 2 * self.tokens * moe["k"] * one / case.chips
        if case.ep == 1:
            read = touched(moe["E"], moe["k"], self.own, case.routing) * one / case.tp
            moved = self.own * moe["k"] * width
            collectives = self.all_reduce()
        else:
            read = touched(moe["E"], moe["k"], self.tokens, case.routing) * one / case.ep
            own = self.tokens * width / case.chips
            moved = own * moe["k"]
            collectives = [
                Collective("experts", 1, (case.ep,), self.bytes_of(own, tensors))
                for tensors in ("activations", "combine")
            ] + self.over_tp("gather", 1, self.own * width)
        return Kernel(
            "experts",
            count,
            self.bytes_of(read, "experts"),
            flops,
            Fraction(0),
            self.bytes_of(2 * moved, "activations"),
            collectives,
        )

    def shared_experts(self, count: int) -> Kernel:
        """The experts of every token: split along their width, read and written whole."""
        moe, width = self.case.entry["moe"], self.case.entry["D"]
        weights = moe["shared"] * 3 * width * moe["Fe"]
        kernel = self.linear(count, ("shared", weights, width, width, "out"))
        both = self.bytes_of(2 * self.own * width, "activations")
        collectives = [] if self.case.ep == 1 else self.all_reduce()
        return replace(kernel, activation_bytes=both, collectives=collectives, matmul=None)

    def unembed(self) -> Kernel:
        """The unembedding of one token of each sequence."""
        width, rows, tp = self.case.entry["D"], self.case.entry["V"], self.case.tp
        moved = self.rows * width, self.rows * rows / tp
        inputs, outputs = (self.bytes_of(elements, "activations") for elements in moved)
        return Kernel(
            "unembed",
            1,
            self.bytes_of(Fraction(rows * width, tp), "head"),
            Fraction(2 * self.step.B * rows * width, self.case.chips),
            Fraction(0),
            inputs + outputs,
            matmul=Matmul(self.step.B, inputs, outputs, Fraction(width)),
        )


def kernels(case: Case, step: Step) -> list[Kernel]:
    """What one chip does in a step, group after group."""
    chip, entry, none = OneChip(case, step), case.entry, Fraction(0)
    layers, width = model_oracle.each_layer(entry), entry["D"]
    *before, last = projections(entry, case.phase)
    embedded = chip.bytes_of(chip.own * width, "activations")
    found = [Kernel("embed", 1, none, none, none, embedded)]
    found += [chip.linear(len(layers), matrix) for matrix in before]
    windows = [window for window, _ in layers]
    for window in sorted(set(windows), key=lambda w: (w is not None, w)):
        found.append(chip.attention(windows.count(window), window))
    found.append(chip.linear(len(layers), last))
    sparse = sum(has_experts for _, has_experts in layers)
    if sparse < len(layers):
        hidden = entry["mlp"]["F"]
        up, down = 2 * width * hidden, hidden * width
        found.append(chip.linear(len(layers) - sparse, ("gate-up", up, width, hidden, "out")))
        found.append(chip.linear(len(layers) - sparse, ("down", down, hidden, width, "in")))
    if sparse:
        experts = entry["moe"]["E"]
        found.append(chip.linear(sparse, ("router", width * experts, width, 0, "out")))
        found.append(chip.experts(sparse))
        if entry["moe"].get("shared", 0):
            found.append(chip.shared_experts(sparse))
    return [*found, chip.unembed()]
