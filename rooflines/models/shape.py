"""The shape of a decoder-only transformer: layers, attention, windows, MLPs, experts, embeddings.

Sizes are the letters of the docs: layers, D width, V vocabulary, N query heads, K key-value heads,
H head size, F MLP width, E experts, k experts per token, Fe expert width. Each part states its
matrices and what else it has, once; counts, caches and groups are sums over these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from rooflines.basics.errors import RooflinesError, one_of, quote
from rooflines.basics.numbers import whole
from rooflines.catalogue.forms import Count, Entry, Text

Phase = Literal["decode", "prefill"]
DECODE: Phase = "decode"
PREFILL: Phase = "prefill"
PHASES = (DECODE, PREFILL)
"""Decode adds tokens to a cache, prefill reads a prompt. MLA computes the two differently."""

TensorClass = Literal["weights", "experts", "head"]
"""Tensors that share a dtype: `experts` are the routed ones, `head` the two token tables."""

LARGEST = 2**40
"""No size of a model is as large [1]."""

MATRICES = 3
"""Of a gated MLP: gate, up and down [1]."""

Layout = Literal["column", "row", "heads", "fused", "whole"]
"""How chips share a kernel in tensor parallelism: column has the input whole and splits the output;
row splits the input and sums the outputs; heads splits both; fused is column, then row; whole has
both whole and sums nothing."""


@dataclass(frozen=True)
class Matrix:
    """A matrix multiplication of a layer, or several in one kernel.

    Attributes:
        name: Its group.
        weights: Elements of the weights [1].
        reads: Elements of the input per token [1].
        writes: Elements of the output per token [1].
        layout: How chips share it.
    """

    name: str
    weights: int
    reads: int
    writes: int
    layout: Layout = "column"


def _size(value: object) -> int:
    return whole(value, largest=LARGEST)


def _maybe_none(value: object) -> int:
    return whole(value, least=0, largest=LARGEST)


Size = Annotated[Count, BeforeValidator(_size)]
Number = Annotated[int, BeforeValidator(_maybe_none)]


class Gqa(Entry):
    """Attention with K key-value heads that N / K query heads share; multi-head where K is N."""

    kind: Literal["gqa"] = "gqa"
    N: Size = Field(description="query heads [1]")
    K: Size = Field(description="key-value heads [1]")
    H: Size = Field(description="size of a head, a number of its own: not D / N [1]")
    bias: Literal["qkv", "qkvo"] | None = Field(None, description="projections with a bias")
    qk_norm: Literal["head", "all"] | None = Field(
        None, description="norms of queries and keys: of one head, or of all heads together"
    )
    sinks: bool = Field(default=False, description="whether each query head has a learned sink")

    @model_validator(mode="after")
    def _heads_divide(self) -> Self:
        if self.N % self.K:
            raise RooflinesError(
                "K",
                f"is {self.K}, which does not divide the {self.N} query heads",
                "give the key-value heads that the query heads share evenly",
            )
        return self

    @property
    def cache_elements(self) -> int:
        """Cache elements of a token in one layer [1]: a key and a value of every KV head."""
        return 2 * self.K * self.H

    @property
    def cache_heads(self) -> int:
        """Parts that the cache of a token can be split into by heads [1]."""
        return self.K

    def matrices(self, width: int, phase: Phase = DECODE) -> tuple[Matrix, ...]:
        """The projections, for width D [1]."""
        del phase
        heads, cached = self.N * self.H, 2 * self.K * self.H
        return (
            Matrix("qkv", width * (heads + cached), width, heads + cached),
            Matrix("o", heads * width, heads, width, "row"),
        )

    def core(self, phase: Phase) -> tuple[int, int, int]:
        """FLOP per pair of tokens [FLOP]; elements read and written per token [1].

        Keys and values come from the cache, or from registers: they are cache traffic.
        """
        del phase
        heads = self.N * self.H
        return 4 * heads, heads, heads

    def biases(self, width: int) -> int:
        """Elements of biases and sinks in one layer [1]."""
        qkv = (self.N + 2 * self.K) * self.H
        by_kind = {None: 0, "qkv": qkv, "qkvo": qkv + width}
        return by_kind[self.bias] + (self.N if self.sinks else 0)

    def norms(self) -> int:
        """Elements of the norms of queries and keys in one layer [1]."""
        return {None: 0, "head": 2 * self.H, "all": (self.N + self.K) * self.H}[self.qk_norm]


class Mla(Entry):
    """Multi-head latent attention: the cache holds one compressed entry for all heads.

    Decode is absorbed: the up-projection of the cache is applied to queries and outputs, head by
    head. Prefill is expanded: it is applied to the compressed entries.

    Source: DeepSeek-V2, "Multi-Head Latent Attention".
    """

    kind: Literal["mla"]
    N: Size = Field(description="query heads [1]")
    q_rank: Size | None = Field(None, description="rank of the queries; null: not compressed [1]")
    kv_rank: Size = Field(description="rank of keys and values, cached [1]")
    nope: Size = Field(description="size of a query or key head without position [1]")
    rope: Size = Field(description="size of its rotary part, cached once for all heads [1]")
    v: Size = Field(description="size of a value head [1]")

    @property
    def cache_elements(self) -> int:
        """Cache elements of a token in one layer [1]: once for all heads."""
        return self.kv_rank + self.rope

    @property
    def cache_heads(self) -> int:
        """Parts that the cache of a token can be split into by heads [1]: none."""
        return 1

    def matrices(self, width: int, phase: Phase = DECODE) -> tuple[Matrix, ...]:
        """The projections, for width D [1]."""
        heads = self.N
        query = heads * (self.nope + self.rope)
        entry = self.kv_rank + self.rope
        down = [Matrix("qkv", width * (query + entry), width, query + entry)]
        if self.q_rank is not None:
            compressed = self.q_rank + entry
            down = [
                Matrix("qkv-down", width * compressed, width, compressed),
                Matrix("q-up", self.q_rank * query, self.q_rank, query),
            ]
        expanded = heads * (self.nope + self.v)
        up = Matrix("kv-up", self.kv_rank * expanded, self.kv_rank, expanded)
        if phase == DECODE:
            reads, writes = heads * (self.nope + self.kv_rank), heads * (self.kv_rank + self.v)
            up = Matrix("kv-up", self.kv_rank * expanded, reads, writes, "heads")
        return (*down, up, Matrix("o", heads * self.v * width, heads * self.v, width, "row"))

    def core(self, phase: Phase) -> tuple[int, int, int]:
        """FLOP per pair of tokens [FLOP]; elements read and written per token [1]."""
        if phase == DECODE:
            entry = self.kv_rank + self.rope
            return 2 * self.N * (entry + self.kv_rank), self.N * entry, self.N * self.kv_rank
        key = self.nope + self.rope
        reads = self.N * (key + self.nope + self.v)
        return 2 * self.N * (key + self.v), reads, self.N * self.v

    def biases(self, width: int) -> int:
        """Elements of biases in one layer [1]: none."""
        del width
        return 0

    def norms(self) -> int:
        """Elements of the norms of the compressed queries and entries in one layer [1]."""
        return (self.q_rank or 0) + self.kv_rank


Attention = Gqa | Mla


def _attention(value: object) -> Attention:
    if isinstance(value, Gqa | Mla):
        return value
    kinds: dict[object, type[Attention]] = {"gqa": Gqa, "mla": Mla}
    kind = value.get("kind", "gqa") if isinstance(value, Mapping) else "gqa"
    if not isinstance(kind, str) or kind not in kinds:
        raise RooflinesError("kind", f"is {quote(kind)}", "use gqa or mla")
    return kinds[kind].model_validate(value)


class Window(Entry):
    """Layers in which a token attends to the last tokens only."""

    tokens: Size = Field(description="tokens that a token attends to, itself included [1]")
    layers: Size = Field(description="layers with the window [1]")
    which: Text | None = Field(None, description="which layers these are")


class Mlp(Entry):
    """A gated MLP: gate, up and down."""

    F: Size = Field(description="width [1]")
    layers: Size | None = Field(None, description="layers with it; null: all without experts [1]")
    bias: bool = Field(default=False, description="whether the three projections have biases")

    def matrices(self, width: int) -> tuple[Matrix, ...]:
        """Gate and up in one kernel, then down, for width D [1]."""
        return (
            Matrix("gate-up", (MATRICES - 1) * width * self.F, width, self.F),
            Matrix("down", self.F * width, self.F, width, "row"),
        )

    def biases(self, width: int) -> int:
        """Elements of the biases in one layer [1]."""
        return (MATRICES - 1) * self.F + width if self.bias else 0


class Moe(Entry):
    """Routed experts, each a gated MLP, and shared experts that every token uses."""

    E: Size = Field(description="routed experts [1]")
    k: Size = Field(description="experts per token [1]")
    Fe: Size = Field(description="width of an expert [1]")
    shared: Number = Field(0, description="shared experts of the same width [1]")
    shared_gate: bool = Field(default=False, description="whether a gate weighs the shared ones")
    layers: Size | None = Field(None, description="layers with experts; null: all without mlp [1]")
    router_bias: bool = Field(default=False, description="whether each expert has a routing bias")
    expert_bias: bool = Field(default=False, description="whether the experts have biases")

    @model_validator(mode="after")
    def _enough_experts(self) -> Self:
        if self.k > self.E:
            raise RooflinesError(
                "k", f"is {self.k}, but there are {self.E} experts", f"use 1 to {self.E}"
            )
        return self

    def expert(self, width: int) -> int:
        """Elements of the matrices of one expert [1]."""
        return gated(width, self.Fe)

    def router(self, width: int) -> int:
        """Elements of the router, and of the gate of the shared experts [1]."""
        return width * (self.E + int(self.shared_gate))

    def expert_biases(self, width: int) -> int:
        """Elements of the biases of one expert [1]."""
        return (MATRICES - 1) * self.Fe + width if self.expert_bias else 0


def gated(width: int, hidden: int) -> int:
    """Elements of a gated MLP's three matrices [1]."""
    return MATRICES * width * hidden


class Shape(Entry):
    """The shape of a model."""

    family: Text | None = Field(None, description="the `model_type` of its config.json")
    layers: Size = Field(description="layers [1]")
    D: Size = Field(description="width, the size of a token between layers [1]")
    V: Size = Field(description="rows of the embedding table, padding included [1]")
    tied: bool = Field(default=False, description="whether the unembedding is the embedding table")
    attention: Annotated[Attention, BeforeValidator(_attention)] = Field(
        description="gqa: {N, K, H}; mla: {kind: mla, N, q_rank, kv_rank, nope, rope, v}"
    )
    window: Window | None = Field(None, description="layers with a window")
    mlp: Mlp | None = Field(None, description="layers with an MLP")
    moe: Moe | None = Field(None, description="layers with experts")
    norms_per_layer: Number = Field(2, description="norms of width D in one layer [1]")
    context: Size | None = Field(
        None, description="tokens of the longest sequence that it is trained for; null: unknown [1]"
    )

    @model_validator(mode="after")
    def _layers_add_up(self) -> Self:
        if self.mlp is None and self.moe is None:
            raise RooflinesError("", "lacks mlp and moe", "give it one of them, or both")
        both = [part for part in (self.mlp, self.moe) if part is not None]
        if len(both) > 1 and all(part.layers is None for part in both):
            problem = "is not stated, nor is moe.layers: which layers have experts is unknown"
            raise RooflinesError("mlp.layers", problem, "state one of them")
        if self.window is not None and self.window.layers > self.layers:
            raise RooflinesError(
                "window.layers",
                f"is {self.window.layers}, but the model has {self.layers} layers",
                f"use 1 to {self.layers}",
            )
        if (
            self.mlp_layers + self.moe_layers != self.layers
            or min(self.mlp_layers, self.moe_layers) < 0
        ):
            problem = f"and moe.layers do not add up to the {self.layers} layers"
            raise RooflinesError("mlp.layers", problem, "correct one of them, or leave one out")
        return self

    @property
    def mlp_layers(self) -> int:
        """Layers with an MLP [1]."""
        if self.mlp is None:
            return 0
        experts = 0 if self.moe is None or self.moe.layers is None else self.moe.layers
        return self.layers - experts if self.mlp.layers is None else self.mlp.layers

    @property
    def moe_layers(self) -> int:
        """Layers with experts [1]."""
        if self.moe is None:
            return 0
        return self.layers - self.mlp_layers if self.moe.layers is None else self.moe.layers

    @property
    def table(self) -> int:
        """Elements of the embedding table, and of the unembedding [1]."""
        return self.V * self.D

    @property
    def windows(self) -> tuple[tuple[int, int | None], ...]:
        """Layers by window: (layers, tokens), None without a window; those without come first."""
        if self.window is None:
            return ((self.layers, None),)
        full = self.layers - self.window.layers
        windowed = (self.window.layers, self.window.tokens)
        return ((full, None), windowed) if full else (windowed,)


def check_phase(phase: str) -> None:
    """Refuse a text that is no phase.

    Raises:
        RooflinesError: It is neither decode nor prefill.
    """
    one_of(phase, PHASES, "no phase")
