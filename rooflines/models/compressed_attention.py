"""Compressed attention: a window beside entries that each stand for several tokens.

One cached vector per entry is key and value for all query heads. In every layer a token attends to
a window; in most layers also to compressed entries, all or those that an indexer chooses.

Tokens in an unfinished entry count as their share, less than what a compressor writes for them;
its state is not counted.

Sources: DeepSeek-V4, "Compressed Sparse Attention", "Heavily Compressed Attention" and
"Manifold-Constrained Hyper-Connections"; the transformers classes under `deepseek_v4`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal, Self

from pydantic import Field, model_validator

from rooflines.basics.errors import RooflinesError
from rooflines.hardware.entry_forms import Entry
from rooflines.models.kind_costs import KindLetters, scores_of
from rooflines.models.matrix import (
    HEADS_LAYOUT,
    ROW_LAYOUT,
    Matrix,
    ModelSize,
    Widths,
    fused_matrix,
    replicated_matrix,
)
from rooflines.theory.attention_window import FULL_ATTENTION, AttentionWindow

ROTARY_BITS = 16
"""Least bits per rotary element in the KV cache [bit]."""

STREAMS = ("mix", "mix-out")
"""Hyper-connection groups: in layers, and before the LM head."""


def rotary_bits(cache_bits: Fraction) -> Fraction:
    """Bits per rotary element, given the KV cache's [bit]."""
    return max(cache_bits, Fraction(ROTARY_BITS))


class SharedKv(Entry):
    """Multi-query attention whose only KV head has one vector per entry, key and value.

    Queries have a low rank, outputs one per head group. An entry's `rope` elements have at least
    `ROTARY_BITS` bits in the KV cache.
    """

    kind: Literal["shared-kv"]
    N: ModelSize = Field(description="query heads [1]")
    q_rank: ModelSize = Field(description="query rank [1]")
    H: ModelSize = Field(description="head size, also the cached entry's [1]")
    rope: ModelSize = Field(description="rotary part [1]")
    o_groups: ModelSize = Field(description="head groups, each with a low output rank [1]")
    o_rank: ModelSize = Field(description="output rank per group [1]")
    sinks: bool = Field(default=False, description="whether each query head has a learned sink")

    @model_validator(mode="after")
    def _check_sizes(self) -> Self:
        if self.rope > self.H:
            problem = f"is {self.rope}, more than the {self.H} of a head"
            raise RooflinesError("rope", problem, f"use 1 to {self.H}")
        if self.N % self.o_groups:
            problem = f"is {self.o_groups}, which does not divide the {self.N} query heads"
            raise RooflinesError("o_groups", problem, "give groups with equally many heads")
        return self

    @property
    def kv_cache_elements(self) -> int:
        """KV cache elements per entry: H [1]."""
        return self.H

    @property
    def rotary_share(self) -> Fraction:
        """Rotary share per entry [1]."""
        return Fraction(self.rope, self.H)

    @property
    def cache_heads(self) -> int:
        """Parts that a split by heads makes from a token's KV cache: 1, no split [1]."""
        return 1

    def projections(self, width: int) -> Widths:
        """Projections in one layer, as (input, output) widths [1]; o-a has a group's input."""
        low = self.o_groups * self.o_rank
        return {
            "q-a": (width, self.q_rank),
            "kv": (width, self.H),
            "q-b": (self.q_rank, self.N * self.H),
            "o-a": (self.N * self.H // self.o_groups, low),
            "o-b": (low, width),
        }

    def matrices(self, width: int, phase: str = "decode") -> tuple[Matrix, ...]:
        """Matmuls for width D [1]; down-projections are copied on every chip.

        Source: `ReplicatedLinear` for down-projections in vLLM and SGLang.
        """
        del phase
        sizes = self.projections(width)
        down = {name: sizes[name] for name in ("q-a", "kv")}
        (group_width, low), heads = sizes["o-a"], self.N * self.H
        return (
            fused_matrix("qkv-down", down, shards={"q-a": 1, "kv": 1}),
            fused_matrix("q-up", {"q-b": sizes["q-b"]}),
            Matrix("o-down", group_width * low, heads, low, HEADS_LAYOUT),
            fused_matrix("o", {"o": sizes["o-b"]}, ROW_LAYOUT),
        )

    def kernel(self, phase: str) -> KindLetters:
        """Absorbed MLA whose latent is an entry, its rotary part included."""
        del phase
        return KindLetters("mla", {"N": self.N, "kv": self.H, "rope": 0})

    def biases(self, width: int) -> int:
        """Sink parameters per layer [1]."""
        del width
        return self.N if self.sinks else 0

    def norms(self) -> int:
        """Parameters in norms on compressed queries and entries, per layer [1]."""
        return self.q_rank + self.H


class Compression(Entry):
    """Layers that also attend to compressed entries.

    A compressor makes an entry from several tokens' projections, weighted by gates. An indexer has
    a separate compressor, for one key per entry.
    """

    tokens: ModelSize = Field(description="tokens per compressed entry [1]")
    layers: ModelSize = Field(description="layers with it [1]")
    overlap: bool = Field(
        default=False,
        description="whether entries overlap, so that projections have twice their width",
    )
    entries: ModelSize | None = Field(
        None, description="entries that a token attends to at most, chosen by an indexer; null: all"
    )
    heads: ModelSize | None = Field(None, description="indexer heads [1]")
    dim: ModelSize | None = Field(None, description="indexer head size, also its key's [1]")
    bits: ModelSize | None = Field(
        None, description="bits per element in indexer keys; null: as the KV cache"
    )

    @model_validator(mode="after")
    def _check_indexer(self) -> Self:
        missing = [name for name in ("entries", "heads", "dim") if getattr(self, name) is None]
        if missing and len(missing) < 3:  # noqa: PLR2004, all or none
            problem = "is null: an indexer has entries, heads and dim"
            raise RooflinesError(missing[0], problem, "give all three, or none")
        if self.dim is not None and self.dim % self.tokens:
            problem = f"is {self.dim}, no multiple of the {self.tokens} tokens per entry"
            raise RooflinesError("dim", problem, "use a multiple")
        return self

    @property
    def window(self) -> AttentionWindow:
        """Tokens whose entries a token attends to."""
        if self.entries is None:
            return FULL_ATTENTION
        return AttentionWindow(self.entries * self.tokens)

    @property
    def copies(self) -> int:
        """Width per compressor projection, in entries [1]."""
        return 2 if self.overlap else 1

    def matrices(self, width: int, attention: SharedKv) -> tuple[Matrix, ...]:
        """Matmuls in compressors and indexer, for width D [1]; every chip has them whole.

        Args:
            width: D [1].
            attention: The attention that they serve.
        """
        size = 2 * self.copies * attention.H
        compressor = replicated_matrix(f"compress-{self.tokens}", width * size, width, size)
        if self.heads is None or self.dim is None:
            return (compressor,)
        queries, rank = self.heads * self.dim, attention.q_rank
        key = self.heads + 2 * self.copies * self.dim
        return (
            compressor,
            replicated_matrix("index-q", rank * queries, rank, queries),
            replicated_matrix("index-k", width * key, width, key),
        )

    @property
    def index_kernel(self) -> KindLetters:
        """Scores over one key per entry, for all indexer heads, and the chosen entries."""
        return scores_of(self.heads or 0, self.dim or 0, self.entries or 0)

    def vector_elements(self, attention: SharedKv) -> tuple[int, int]:
        """Parameters per layer in norms, and in the positions that compressors add [1]."""
        size = attention.H + (self.dim or 0)
        return size, self.tokens * self.copies * size


def stream_matrices(
    streams: int | None, layers: int, width: int, *, is_last: bool = True
) -> tuple[tuple[int, Matrix], ...]:
    """Matmuls in hyper-connections, with counts: two per layer, one before the LM head.

    From a token's streams, one in a layer makes weights per stream, into and out of attention or
    MLP, and per stream pair; the last, one weight per stream. Every chip has them whole.

    Args:
        streams: n, residual streams; None: without hyper-connections [1].
        layers: L [1].
        width: D [1].
        is_last: Whether the LM head follows.
    """
    if streams is None:
        return ()
    size = streams * width
    mix, last = STREAMS
    return (
        (2 * layers, replicated_matrix(mix, size * stream_weights(streams), size, size)),
        (int(is_last), replicated_matrix(last, size * streams, size, width)),
    )


def stream_weights(streams: int) -> int:
    """Outputs per hyper-connection: (2 + n) n [1]."""
    return (2 + streams) * streams


def stream_vectors(streams: int | None, layers: int, *, is_last: bool = True) -> int:
    """Biases and scales in all hyper-connections [1]."""
    if streams is None:
        return 0
    return 2 * layers * (stream_weights(streams) + 3) + is_last * (streams + 1)
