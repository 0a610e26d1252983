"""Architecture (shape) of a decoder-only transformer: layers, attention, MLPs, experts, tables.

Sizes have the letters in the glossary: D width, V vocabulary, N query heads, K KV heads, H head
size, F MLP width, E experts, k experts per token, Fe expert width. Each part states its matrices,
norms, biases and KV cache once; parameter counts, memory and kernel groups are sums over these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Annotated, ClassVar, Literal, NamedTuple, Self

from pydantic import BeforeValidator, Field, model_validator

from rooflines.basics.errors import RooflinesError, check_choice, quote
from rooflines.hardware.entry_forms import Entry, Text
from rooflines.models.compressed_attention import Compression, SharedKv
from rooflines.models.kind_costs import LATENT_BESIDE_HEADS, KindLetters, scores_of
from rooflines.models.matrix import (
    HEADS_LAYOUT,
    ROW_LAYOUT,
    Matrix,
    ModelSize,
    NonNegativeSize,
    Widths,
    fused_matrix,
    replicated_matrix,
)
from rooflines.models.state_layers import State
from rooflines.theory.attention_window import AttentionWindow

Phase = Literal["decode", "prefill", "train"]
DECODE: Phase = "decode"
PREFILL: Phase = "prefill"
TRAIN: Phase = "train"
PHASES = (DECODE, PREFILL)
"""Decode adds tokens to the KV cache, prefill reads a prompt; MLA has other kernels for each."""

TensorClass = Literal["weights", "experts", "head"]
"""Tensors that share a dtype: `experts` are routed experts, `head` both token tables."""


ROUTER = "router"
"""Router group."""


class Gqa(Entry):
    """GQA: N / K query heads share each of K KV heads; MHA where K = N, MQA where K = 1."""

    kind: Literal["gqa"] = "gqa"
    N: ModelSize = Field(description="query heads [1]")
    K: ModelSize = Field(description="KV heads [1]")
    H: ModelSize = Field(description="head size, independent of D / N [1]")
    v: ModelSize | None = Field(None, description="value head size; null: H [1]")
    bias: Literal["qkv", "qkvo"] | None = Field(None, description="projections with a bias")
    qk_norm: Literal["head", "all"] | None = Field(
        None, description="norms on queries and keys: per head, or over all heads together"
    )
    sinks: bool = Field(default=False, description="whether each query head has a learned sink")
    gate: Literal["element", "head"] | None = Field(
        None, description="output gates: one for each element, or for each query head"
    )
    one_tensor: bool = Field(
        default=False,
        description="whether one projection makes keys and values; each is cached after its norm",
    )

    @model_validator(mode="after")
    def _check_heads(self) -> Self:
        if self.N % self.K:
            raise RooflinesError(
                "K",
                f"is {self.K}, which does not divide the {self.N} query heads",
                "give the KV heads that the query heads share evenly",
            )
        return self

    @property
    def value(self) -> int:
        """Value head size [1]."""
        return self.v or self.H

    @property
    def kv_cache_elements(self) -> int:
        """KV cache elements per token and layer: K (H + v) [1]."""
        return self.K * (self.H + self.value)

    @property
    def cache_heads(self) -> int:
        """Parts that a split by heads makes from a token's KV cache: K [1]."""
        return self.K

    @property
    def gates(self) -> int:
        """Output gates per token [1]."""
        return {None: 0, "element": self.N * self.value, "head": self.N}[self.gate]

    def projections(self, width: int) -> Widths:
        """Projections in one layer, as (input, output) widths [1]; the gates' may have output 0."""
        return {
            "q": (width, self.N * self.H),
            "k": (width, self.K * self.H),
            "v": (width, 0 if self.one_tensor else self.K * self.value),
            "gates": (width, self.gates),
            "o": (self.N * self.value, width),
        }

    def matrices(self, width: int, phase: Phase = DECODE) -> tuple[Matrix, ...]:
        """Matmuls of the projections, for width D [1]; KV heads have copies where tp > K."""
        del phase
        into = dict(self.projections(width))
        out = {"o": into.pop("o")}
        qkv = fused_matrix("qkv", into, shards={"k": self.K, "v": self.K})
        head_parts = tuple(part._replace(heads=True) for part in qkv.copied_parts)
        return replace(qkv, copied_parts=head_parts), fused_matrix("o", out, ROW_LAYOUT)

    def kernel(self, phase: Phase) -> KindLetters:
        """Fused attention; keys and values count as KV cache traffic, also from registers."""
        del phase
        heads = {"N": self.N, "K": self.K, "H": self.H, "Hv": self.value}
        return KindLetters("attention", heads)

    def biases(self, width: int) -> int:
        """Bias and sink parameters per layer [1]."""
        qkv = sum(self.projections(width)[name][1] for name in "qkv")
        by_kind = {None: 0, "qkv": qkv, "qkvo": qkv + width}
        return by_kind[self.bias] + (self.N if self.sinks else 0)

    def norms(self) -> int:
        """Parameters in query and key norms per layer [1]."""
        return {None: 0, "head": 2 * self.H, "all": (self.N + self.K) * self.H}[self.qk_norm]


class Mla(Entry):
    """MLA, multi-head latent attention: one compressed KV cache entry serves all heads.

    Decode is absorbed: queries and outputs are multiplied by the cache's up-projection, per head.
    Prefill is expanded: compressed entries are multiplied by it.

    Source: DeepSeek-V2, "Multi-Head Latent Attention".
    """

    kind: Literal["mla"]
    N: ModelSize = Field(description="query heads [1]")
    q_rank: ModelSize | None = Field(None, description="query rank; null: not compressed [1]")
    kv_rank: ModelSize = Field(description="rank of keys and values, in the KV cache [1]")
    nope: ModelSize = Field(description="query or key head size without position [1]")
    rope: ModelSize = Field(
        description="size of its rotary part, in the KV cache once for all heads [1]"
    )
    v: ModelSize = Field(description="value head size [1]")
    gate: bool = Field(default=False, description="whether each element of the outputs has a gate")

    @property
    def kv_cache_elements(self) -> int:
        """KV cache elements per token and layer, for all heads: kv_rank + rope [1]."""
        return self.kv_rank + self.rope

    @property
    def cache_heads(self) -> int:
        """Parts that a split by heads makes from a token's KV cache: 1, no split [1]."""
        return 1

    def projections(self, width: int) -> Widths:
        """Projections in one layer, as (input, output) widths [1]; the gates' may have output 0."""
        heads, rank = self.N, self.q_rank
        query, values = heads * (self.nope + self.rope), heads * self.v
        return {
            **({"q": (width, query)} if rank is None else {"q-a": (width, rank)}),
            "kv-a": (width, self.kv_cache_elements),
            "gates": (width, values if self.gate else 0),
            **({} if rank is None else {"q-b": (rank, query)}),
            "kv-b": (self.kv_rank, heads * (self.nope + self.v)),
            "o": (values, width),
        }

    def matrices(self, width: int, phase: Phase = DECODE) -> tuple[Matrix, ...]:
        """Matmuls of the projections, for width D [1]; down-projections are copied on every chip.

        Source: `ReplicatedLinear` for these two projections in vLLM and SGLang.
        """
        down = dict(self.projections(width))
        out, entries = {"o": down.pop("o")}, {"kv-b": down.pop("kv-b")}
        queries = {name: down.pop(name) for name in ("q-b",) if name in down}
        shards = {"q-a": 1, "kv-a": 1}
        kernels = [fused_matrix("qkv" if self.q_rank is None else "qkv-down", down, shards=shards)]
        kernels += [fused_matrix("q-up", queries)] if queries else []
        up = fused_matrix("kv-up", entries)
        if phase == DECODE:
            reads, writes = (self.N * (size + self.kv_rank) for size in (self.nope, self.v))
            up = Matrix("kv-up", up.weights, reads, writes, HEADS_LAYOUT)
        return (*kernels, up, fused_matrix("o", out, ROW_LAYOUT))

    def kernel(self, phase: Phase) -> KindLetters:
        """Attention over latents in decode, over every head's keys and values in prefill."""
        letters = {"N": self.N, "kv": self.kv_rank, "rope": self.rope}
        if phase == DECODE:
            return KindLetters("mla", letters)
        letters |= {"nope": self.nope, "Hv": self.v}
        return KindLetters("mla-expanded", letters, tensors=LATENT_BESIDE_HEADS)

    def biases(self, width: int) -> int:
        """Bias parameters per layer: 0 [1]."""
        del width
        return 0

    def norms(self) -> int:
        """Parameters in norms on compressed queries and entries, per layer [1]."""
        return (self.q_rank or 0) + self.kv_rank


Attention = Gqa | Mla | SharedKv


def _attention(value: object) -> Attention:
    if isinstance(value, Gqa | Mla | SharedKv):
        return value
    kinds: dict[object, type[Attention]] = {"gqa": Gqa, "mla": Mla, "shared-kv": SharedKv}
    kind = value.get("kind", "gqa") if isinstance(value, Mapping) else "gqa"
    if not isinstance(kind, str) or kind not in kinds:
        raise RooflinesError("kind", f"is {quote(kind)}", "use gqa, mla or shared-kv", value=kind)
    return kinds[kind].model_validate(value)


class Indexer(Entry):
    """Sparse attention: a light indexer over all tokens chooses those that a token attends to.

    Its keys, `dim` elements per token for all its heads, are cached beside the KV cache.

    Source: DeepSeek-V3.2-Exp, "DeepSeek Sparse Attention".
    """

    renamed_keys: ClassVar[Mapping[str, str]] = {"own": "indexer_layers"}

    tokens: ModelSize = Field(description="tokens that a token attends to at most [1]")
    heads: ModelSize = Field(description="indexer heads [1]")
    dim: ModelSize = Field(description="indexer head size, also its key's [1]")
    layers: ModelSize = Field(description="layers that attend to chosen tokens [1]")
    indexer_layers: ModelSize | None = Field(
        None, description="layers with an indexer; further layers use its choice; null: all [1]"
    )
    bits: ModelSize | None = Field(
        None, description="bits per cached element; null: as the KV cache"
    )
    weighted: bool = Field(
        default=True, description="whether heads are weighted, by a projection of width D"
    )

    @property
    def indexers(self) -> int:
        """Layers that run an indexer [1]."""
        return self.layers if self.indexer_layers is None else self.indexer_layers

    def projections(self, width: int, rank: int | None) -> Widths:
        """Projections in one layer, as (input, output) widths [1]; arguments as in `matrices`."""
        weights = self.heads if self.weighted else 0
        queries = (rank or width, self.heads * self.dim)
        return {"index-q": queries, "index-k": (width, self.dim), "index-w": (width, weights)}

    def matrices(self, width: int, rank: int | None) -> tuple[Matrix, ...]:
        """Matmuls of the projections: queries, from their rank or from D; key and head weights.

        Scores sum over all heads, so every chip has all heads.

        Args:
            width: D [1].
            rank: Rank of compressed queries; None: not compressed [1].
        """
        queries, input_width = self.heads * self.dim, rank or width
        key = self.dim + (self.heads if self.weighted else 0)
        return (
            replicated_matrix("index-q", input_width * queries, input_width, queries),
            replicated_matrix("index-k", width * key, width, key),
        )

    @property
    def kernel(self) -> KindLetters:
        """Scores over one key per token, for all heads, and the chosen tokens."""
        return scores_of(self.heads, self.dim, self.tokens)


class Window(Entry):
    """Local layers: a token attends to the last tokens only, or to its chunk."""

    renamed_keys: ClassVar[Mapping[str, str]] = {"which": "note"}

    tokens: ModelSize = Field(
        description="tokens that a token attends to, itself included; or the chunk size [1]"
    )
    chunked: bool = Field(
        default=False,
        description="whether a token attends to those since the last multiple of `tokens`",
    )
    stride: ModelSize | None = Field(
        None,
        description="each query head also attends to one block in this many before the window, at "
        "places that follow each other over the heads, and the KV cache keeps all tokens; null: to "
        "none [1]",
    )
    layers: ModelSize = Field(description="layers with the window [1]")
    attention: Gqa | None = Field(None, description="their attention; null: as in global layers")
    note: Text | None = Field(None, description="layers that these are, in words")


class Mlp(Entry):
    """MLP: up and down, and a gate beside up."""

    F: ModelSize = Field(description="width [1]")
    layers: ModelSize | None = Field(
        None, description="layers with it; null: all without experts [1]"
    )
    bias: bool = Field(default=False, description="whether the projections have biases")
    gated: bool = Field(default=True, description="whether there is a gate")
    learned: NonNegativeSize = Field(
        default=0, description="learned parameters in the activation [1]"
    )

    def projections(self, width: int) -> Widths:
        """Projections in one layer, as (input, output) widths [1]."""
        gate = {"gate": (width, self.F)} if self.gated else {}
        return {**gate, "up": (width, self.F), "down": (self.F, width)}

    def matrices(self, width: int) -> tuple[Matrix, ...]:
        """Matmuls for width D: gate and up fused, then down [1]."""
        into = dict(self.projections(width))
        down = {"down": into.pop("down")}
        up = Matrix("gate-up", fused_matrix("gate-up", into).weights, width, self.F)
        return up, fused_matrix("down", down, ROW_LAYOUT)

    def weights(self, width: int) -> int:
        """Matrix parameters per layer: 3 D F gated, else 2 D F [1]."""
        return sum(matrix.weights for matrix in self.matrices(width))

    def biases(self, width: int) -> int:
        """Bias parameters per layer, and the activation's [1]."""
        return self.learned + ((1 + self.gated) * self.F + width if self.bias else 0)


class Moe(Entry):
    """MoE: routed experts, each an MLP, and shared experts that every token uses."""

    renamed_keys: ClassVar[Mapping[str, str]] = {"hashed": "hash_layers"}

    E: ModelSize = Field(description="routed experts [1]")
    k: ModelSize = Field(description="experts per token [1]")
    zero_experts: NonNegativeSize = Field(
        0,
        description="further experts without weights, which return a token as it is; a router "
        "chooses k among all [1]",
    )
    Fe: ModelSize = Field(description="expert width [1]")
    shared: NonNegativeSize = Field(0, description="shared experts with the same width [1]")
    shared_gate: bool = Field(default=False, description="whether a gate weighs shared experts")
    layers: ModelSize | None = Field(
        None, description="layers with experts; null: all without mlp [1]"
    )
    router_bias: bool = Field(default=False, description="whether each expert has a routing bias")
    hash_layers: NonNegativeSize = Field(
        0,
        description="layers that look up experts by token, without a routing bias [1]",
    )
    expert_bias: bool = Field(default=False, description="whether the experts have biases")
    gated: bool = Field(default=True, description="whether experts have a gate")
    latent: ModelSize | None = Field(
        None, description="width that tokens are projected to for routed experts; null: D [1]"
    )
    latent_norm: bool = Field(default=False, description="whether there is a norm with that width")

    @model_validator(mode="after")
    def _check_k(self) -> Self:
        if self.k > self.choices:
            problem = f"is {self.k}, but there are {self.choices} experts"
            raise RooflinesError("k", problem, f"use 1 to {self.choices}")
        return self

    @property
    def choices(self) -> int:
        """Experts that a router chooses among, those without weights included [1]."""
        return self.E + self.zero_experts

    @property
    def mean_k(self) -> Fraction:
        """Mean experts with weights per token: k E / (E + those without) [1]."""
        return Fraction(self.k * self.E, self.choices)

    def width(self, width: int) -> int:
        """Token width in routed experts: latent width, else D [1]."""
        return self.latent or width

    @property
    def expert(self) -> Mlp:
        """One expert as an MLP; its input has `width(D)` if routed, D if shared."""
        return Mlp(F=self.Fe, layers=None, bias=self.expert_bias, gated=self.gated)

    def latents(self, width: int) -> tuple[Matrix, ...]:
        """Projections to the experts' latent width and back; empty without one.

        Every chip has whole tokens, before its experts and after them.
        """
        if self.latent is None:
            return ()
        size = width * self.latent
        return (
            replicated_matrix("latent-in", size, width, self.latent),
            replicated_matrix("latent-out", size, self.latent, width),
        )

    def router(self, width: int) -> Matrix:
        """Router, with the shared experts' gate; its scores stay on the chip, without traffic."""
        scores = self.choices + int(self.shared_gate and self.shared > 0)
        return replicated_matrix(ROUTER, width * scores, width, 0)


class Variant(Entry):
    """Layers that differ from the others, as a search left them: by size, or without a part."""

    layers: ModelSize = Field(description="layers of this kind [1]")
    K: ModelSize | None = Field(None, description="KV heads; null: as in other layers [1]")
    F: ModelSize | None = Field(None, description="MLP width; null: as in other layers [1]")
    attention: Literal["linear", "none"] | None = Field(
        None,
        description="linear: a matrix D x D in place of attention; none: nothing, and no norm; "
        "null: attention",
    )
    mlp: Literal["linear", "none"] | None = Field(
        None, description="linear: a matrix D x D in place of the MLP; none: nothing; null: an MLP"
    )

    @model_validator(mode="after")
    def _check_parts(self) -> Self:
        for part, size in (("attention", "K"), ("mlp", "F")):
            if getattr(self, part) is not None and getattr(self, size) is not None:
                problem = f"is {getattr(self, size)}, but there is no {part}"
                raise RooflinesError(size, problem, "leave one of them out")
        return self


class Shape(Entry):
    """Architecture (shape) of a model."""

    family: Text | None = Field(None, description="the `model_type` of its config.json")
    layers: ModelSize = Field(description="layers [1]")
    D: ModelSize = Field(description="model width: size of a token between layers [1]")
    V: ModelSize = Field(description="rows of the embedding table, padding included [1]")
    tied: bool = Field(default=False, description="whether the LM head is the embedding table")
    scores: NonNegativeSize | None = Field(
        None,
        description="outputs of a score head, as in reward models, in place of the LM head; "
        "0: no head, as in embedding models; null: LM head [1]",
    )
    attention: Annotated[Attention, BeforeValidator(_attention)] = Field(
        description="gqa: {N, K, H}; mla: {kind: mla, N, q_rank, kv_rank, nope, rope, v}; "
        "shared-kv: {kind: shared-kv, N, q_rank, H, rope, o_groups, o_rank}"
    )
    window: Window | None = Field(None, description="layers with a window")
    sparse: Indexer | None = Field(None, description="layers that attend to chosen tokens")
    compressed: tuple[Compression, ...] = Field(
        (), description="layers that also attend to compressed entries, beside a window"
    )
    streams: ModelSize | None = Field(
        None, description="residual streams that hyper-connections mix; null: one, without them [1]"
    )
    state: State | None = Field(
        None, description="SSM layers: a state in place of attention, or beside it"
    )
    single: bool = Field(
        default=False,
        description="whether a layer is one part: attention, a state, an MLP or experts",
    )
    mlp: Mlp | None = Field(None, description="layers with an MLP")
    moe: Moe | None = Field(None, description="layers with experts")
    variants: tuple[Variant, ...] = Field(
        (), description="layers with other KV heads or MLP widths, or without a part"
    )
    crossed: NonNegativeSize = Field(
        0,
        description="further layers with cross-attention to images, with the same attention, head "
        "norms and the same MLP; they are stored, and text steps skip them [1]",
    )
    norms_per_layer: NonNegativeSize = Field(2, description="norms with width D per layer [1]")
    norm_bias: bool = Field(default=False, description="whether norms with width D have biases")
    model_norms: NonNegativeSize = Field(1, description="norms with width D outside layers [1]")
    positions: NonNegativeSize = Field(
        0, description="learned embeddings with width D for positions or images [1]"
    )
    head_bias: bool = Field(default=False, description="whether the LM head has a bias")
    mtp: bool = Field(
        default=False,
        description="whether there is an MTP layer (multi-token prediction), like the last layer "
        "with attention, behind a projection 2 D x D; it shares the token tables",
    )
    context: ModelSize | None = Field(
        None, description="longest context in training; null: unknown [1]"
    )
    encoder: NonNegativeSize = Field(
        0,
        description="parameters of encoders of images or audio and their projectors, which engines "
        "load and text steps skip; in no count of the model [1]",
    )
    rotary_elements: NonNegativeSize | None = Field(
        None,
        description="elements in tables of rotary angles, which engines keep on every chip; null: "
        "context x rotary head size [1]",
    )

    @model_validator(mode="after")
    def _check_layers(self) -> Self:
        if self.mlp is None and self.moe is None:
            raise RooflinesError("", "lacks mlp and moe", "give it one of them, or both")
        mlp_parts = [part for part in (self.mlp, self.moe) if part is not None]
        if len(mlp_parts) > 1 and all(part.layers is None for part in mlp_parts):
            problem = "is not stated, nor is moe.layers: which layers have experts is unknown"
            raise RooflinesError(("mlp", "layers"), problem, "state one of them")
        for name in ("window", "sparse", "state"):
            part = getattr(self, name)
            if part is not None and part.layers > self.mixer_layers:
                raise RooflinesError(
                    (name, "layers"),
                    f"is {part.layers}, but the model has {self.mixer_layers} layers",
                    f"use 1 to {self.mixer_layers}",
                )
        if self.sparse is not None and (self.window or self.sparse.indexers > self.sparse.layers):
            problem = "stands beside a window, or has more indexers than layers"
            raise RooflinesError("sparse", problem, "correct one of them")
        if self.attention_layers < (0 if self.window is None else self.window.layers):
            problem = f"and state.layers are more than the {self.mixer_layers} layers"
            raise RooflinesError(("window", "layers"), problem, "correct one of them")
        if self.crossed and (self.mlp is None or self.attention.kind != "gqa"):
            problem = "is stated beside experts alone, or latent attention"
            raise RooflinesError("crossed", problem, "leave it out")
        self._check_compressed()
        self._check_stride()
        if self.mtp and self.scores is not None:
            raise RooflinesError("mtp", "is true, but there is no LM head", "leave it out")
        if self.mtp and (self.window or self.single):
            problem = "is true, but which layer it is like is unknown beside windows or single"
            raise RooflinesError("mtp", problem, "leave it out")
        if self.moe is not None and self.moe.hash_layers > self.moe_layers:
            problem = (
                f"is {self.moe.hash_layers}, more than the {self.moe_layers} layers with experts"
            )
            raise RooflinesError(("moe", "hash_layers"), problem, "correct one of them")
        self._check_variants()
        mlp_and_moe_layers = self.mlp_layers + self.moe_layers
        mlp_and_moe_layers += sum(part.layers for part in self.variants if part.F or part.mlp)
        if min(self.mlp_layers, self.moe_layers) < 0 or (
            mlp_and_moe_layers >= self.layers if self.single else mlp_and_moe_layers != self.layers
        ):
            problem = f"and moe.layers do not add up to the {self.layers} layers"
            raise RooflinesError(
                ("mlp", "layers"), problem, "correct one of them, or leave one out"
            )
        return self

    def _check_compressed(self) -> None:
        """Refuse compressed attention that contradicts further parts."""
        attention, window = self.attention, self.window
        if not isinstance(attention, SharedKv):
            if self.compressed:
                problem = f"stands beside attention of the kind {attention.kind}"
                raise RooflinesError("compressed", problem, "use attention of the kind shared-kv")
            return
        is_local = window is not None and window.layers == self.layers and not window.chunked
        if not is_local or (window is not None and window.attention) or self.single:
            problem = "is shared-kv, but not all layers have the same window"
            raise RooflinesError(("attention", "kind"), problem, "give every layer the window")
        if sum(part.layers for part in self.compressed) > self.layers:
            problem = f"has more layers than the {self.layers} of the model"
            raise RooflinesError("compressed", problem, "correct one of them")
        sizes = [part.tokens for part in self.compressed]
        if len(set(sizes)) < len(sizes) or sum(bool(part.heads) for part in self.compressed) > 1:
            problem = "has equal tokens, or several indexers"
            raise RooflinesError("compressed", problem, "merge them")
        for index, tokens in enumerate(sizes):
            if attention.H % tokens:
                problem = f"is {tokens}, which does not divide the head size {attention.H}"
                raise RooflinesError(("compressed", index, "tokens"), problem, "use a divisor")

    def _check_variants(self) -> None:
        """Refuse variants beside parts that already say which layers differ."""
        if not self.variants:
            return
        names = ("window", "sparse", "state", "moe", "streams", "crossed", "mtp", "single")
        present = [name for name in names if getattr(self, name)]
        if present or self.attention.kind != "gqa" or self.norms_per_layer % 2:
            problem = (
                f"stands beside {', '.join(present) or 'other attention than gqa, or odd norms'}"
            )
            raise RooflinesError("variants", problem, "leave one of them out")
        if sum(part.layers for part in self.variants) > self.layers:
            problem = f"has more layers than the {self.layers} of the model"
            raise RooflinesError("variants", problem, "correct one of them")
        if not self.attention_layers:
            raise RooflinesError("variants", "leaves no layer with attention", "add one")
        for index, part in enumerate(self.variants):
            if part.K and self.attention.N % part.K:
                problem = f"is {part.K}, which does not divide the {self.attention.N} query heads"
                raise RooflinesError(("variants", index, "K"), problem, "use a divisor")

    def _check_stride(self) -> None:
        """Refuse strides whose blocks are not shared evenly by the query heads."""
        window = self.window
        if window is None or window.stride is None:
            return
        attention, stride = window.attention or self.attention, window.stride
        if not isinstance(attention, Gqa) or window.chunked:
            problem = "is stated beside chunks, or attention that is not gqa"
            raise RooflinesError(("window", "stride"), problem, "leave it out")
        per_kv_head = attention.N // attention.K
        if attention.N % stride or stride < per_kv_head:
            problem = (
                f"is {stride}, but there are {attention.N} query heads, {per_kv_head} for a KV head"
            )
            fix = "use a divisor of the query heads, no fewer than those for a KV head"
            raise RooflinesError(("window", "stride"), problem, fix)

    @property
    def is_first(self) -> bool:
        """True if steps begin here, with the embedding: of a whole model, or its first stage."""
        return True

    @property
    def is_last(self) -> bool:
        """True if steps end here: of a whole model, or its last stage."""
        return True

    @property
    def mixer_layers(self) -> int:
        """Layers with attention or an SSM state [1]."""
        parts = (self.mlp, self.moe) if self.single else ()
        layers = self.layers - sum(part.layers or 0 for part in parts if part is not None)
        return layers - sum(part.layers for part in self.variants if part.attention)

    @property
    def attention_layers(self) -> int:
        """Layers with attention [1]."""
        state = self.state
        return self.mixer_layers - (0 if state is None or state.beside else state.layers)

    @property
    def mlp_layers(self) -> int:
        """Layers with the MLP `mlp` [1]."""
        if self.mlp is None:
            return 0
        if self.mlp.layers is not None:
            return self.mlp.layers
        experts = 0 if self.moe is None or self.moe.layers is None else self.moe.layers
        varied = sum(part.layers for part in self.variants if part.F or part.mlp)
        return self.layers - experts - varied

    @property
    def mlps(self) -> tuple[Mlp, ...]:
        """MLPs by width, each with its layers; `mlp` comes first."""
        if self.mlp is None:
            return ()
        layers_by_width = {self.mlp.F: self.mlp_layers}
        for part in self.variants:
            if part.F is not None:
                layers_by_width[part.F] = layers_by_width.get(part.F, 0) + part.layers
        sizes = ({"F": width, "layers": layers} for width, layers in layers_by_width.items())
        return tuple(self.mlp.model_copy(update=size) for size in sizes if size["layers"])

    @property
    def linear_layers(self) -> int:
        """Matrices D x D in place of attention or an MLP [1]."""
        parts = ((part.layers, (part.attention, part.mlp)) for part in self.variants)
        return sum(layers * kinds.count("linear") for layers, kinds in parts)

    @property
    def linear_matrix(self) -> Matrix:
        """Matrix D x D in place of attention or an MLP."""
        return Matrix("linear", self.D * self.D, self.D, self.D, ROW_LAYOUT)

    @property
    def norm_count(self) -> int:
        """Norms with width D [1]; a part that a layer lacks has none."""
        parts = ((part.layers, (part.attention, part.mlp)) for part in self.variants)
        missing = sum(layers * kinds.count("none") for layers, kinds in parts)
        norms = self.layers * self.norms_per_layer - missing * (self.norms_per_layer // 2)
        return norms + self.model_norms

    @property
    def moe_layers(self) -> int:
        """Layers with experts [1]."""
        if self.moe is None:
            return 0
        return self.layers - self.mlp_layers if self.moe.layers is None else self.moe.layers

    @property
    def table(self) -> int:
        """Embedding table parameters: V D [1]."""
        return self.V * self.D

    @property
    def norm(self) -> int:
        """Parameters per norm: D, twice with biases [1]."""
        return self.D * (2 if self.norm_bias else 1)

    @property
    def outputs(self) -> int:
        """Head outputs [1]: V for an LM head, the scores for a score head, 0 without a head."""
        return self.V if self.scores is None else self.scores

    @property
    def unembedding(self) -> int:
        """Head parameters stored beside the embedding table; 0 where tied [1]."""
        return 0 if self.tied and self.scores is None else self.outputs * self.D

    @property
    def headless_reason(self) -> str | None:
        """Reason why the model generates no tokens; None: it does."""
        if self.scores is None:
            return None
        return "has a score head" if self.scores else "has no LM head"

    @property
    def attentions(self) -> tuple[AttentionLayers, ...]:
        """Attention layers by window; layers that attend to all tokens come first."""
        parts = (self.window, self.sparse)
        limited = sum(part.layers for part in parts if part is not None)
        layers_by_attention = {self.attention: self.attention_layers - limited}
        for variant in self.variants:
            if variant.K is not None:
                attention = self.attention.model_copy(update={"K": variant.K})
                layers_by_attention[self.attention] -= variant.layers
                layers_by_attention.setdefault(attention, 0)
                layers_by_attention[attention] += variant.layers
        groups = [
            AttentionLayers(layers, attention, AttentionWindow())
            for attention, layers in layers_by_attention.items()
        ]
        if self.window is not None:
            attention = self.window.attention or self.attention
            window = AttentionWindow(self.window.tokens, self.window.chunked)
            compressed = sum(part.layers for part in self.compressed)
            local = AttentionLayers(self.window.layers - compressed, attention, window)
            groups.append(local._replace(stride=self.window.stride))
            groups += [
                AttentionLayers(part.layers, attention, window, part) for part in self.compressed
            ]
        if self.sparse is not None:
            groups.append(
                AttentionLayers(
                    self.sparse.layers, self.attention, AttentionWindow(self.sparse.tokens)
                )
            )
        return tuple(group for group in groups if group.layers)

    @property
    def attention_windows(self) -> tuple[AttentionWindow, ...]:
        """Distinct attention windows; indexers and strides add the one over all tokens."""
        is_strided = any(part.stride for part in self.attentions)
        has_full = self.sparse is not None or self.compressed or is_strided
        windows = [AttentionWindow()] if has_full else []
        windows += [part.window for part in self.attentions]
        return tuple(dict.fromkeys([*windows, *(part.window for part in self.compressed)]))


class AttentionLayers(NamedTuple):
    """Layers with the same attention and window.

    Attributes:
        layers: Number of layers [1].
        attention: GQA, MLA or shared KV.
        window: Tokens that a token attends to.
        compression: Compressed entries that a token attends to besides; None: none.
        stride: A head attends to one block in this many before the window; None: to none [1].
    """

    layers: int
    attention: Attention
    window: AttentionWindow
    compression: Compression | None = None
    stride: int | None = None


def check_phase(phase: str) -> None:
    """Refuse an unknown phase.

    Raises:
        RooflinesError: It is neither decode nor prefill.
    """
    check_choice(phase, PHASES, "no phase")


SHAPE_TYPES = (Shape, Gqa, Mla, Indexer, Window, State, Mlp, Moe, Variant)
"""Types for a shape and its parts."""
