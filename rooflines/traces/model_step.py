"""Work in a model's groups in a traced step: the package's groups, at the step's sums.

Sequences in a step have different lengths: their sums take the place of one length for all. Dtypes
are the model's as published, computed in what the package computes them in on the chip.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from rooflines.answers.question import as_published
from rooflines.models.architecture import DECODE, PREFILL, Gqa, Mla
from rooflines.models.split import Split
from rooflines.models.step_kernels import Sharing, StepKernels
from rooflines.models.tensor_dtypes import step_dtypes
from rooflines.theory.extents import ActivatedExperts, Attended, Entries
from rooflines.theory.routing import UNIFORM
from rooflines.traces.engine_attention import attended_pairs
from rooflines.traces.kernel_works import kernel_work
from rooflines.traces.trace_records import OperatorCost

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.hardware.entries import Chip
    from rooflines.models.groups import Group
    from rooflines.models.model import Model
    from rooflines.theory.attention_window import Number
    from rooflines.theory.extents import Extent
    from rooflines.theory.kernel import Kernel
    from rooflines.traces.trace_records import StepTokens


BY_HEAD = "head"
"""Norms of queries and keys head by head, with one weight for all."""

QUERIES, KEYS = "queries", "keys"
"""Tensors under a norm between projection and attention; with MLA their latents."""


class StepSums(NamedTuple):
    """Sums over the sequences of a step [1].

    Attributes:
        sequences: Sequences.
        tokens: New tokens.
        context: Tokens in the caches after the step.
        pairs: Pairs (new token, token at or before it).
        prefills: Whether some sequence has several new tokens.
    """

    sequences: int
    tokens: int
    context: int
    pairs: float
    prefills: bool


def step_sums(tokens: StepTokens | None, context: int | None = None) -> StepSums | None:
    """Step sums; None: its tokens or contexts are not recorded.

    Args:
        tokens: Sums from the step's annotation.
        context: Context tokens per sequence, where the annotation has none [1].
    """
    if tokens is None:
        return None
    parts = (tokens.prompts, tokens.decodes)
    new, sequences = (sum(getattr(part, key) for part in parts) for key in ("queries", "sequences"))
    keys = sum(part.keys for part in parts)
    pairs = sum(map(attended_pairs, parts)) if keys else 0
    if not keys and context is not None:
        keys = context * sequences
        pairs = new * context - new * (new / max(sequences, 1) - 1) / 2
    if not new or not sequences or not keys:
        return None
    return StepSums(sequences, new, keys, pairs, new > sequences)


class SummedExtents(dict[str, "Number"]):
    """Step extents by name, per sequence on average, so that products are the sums.

    Windows bound the sums: no sequence sees more than its window a token.

    Args:
        sums: The sums.
    """

    def __init__(self, sums: StepSums) -> None:
        new = Fraction(sums.tokens, sums.sequences)
        super().__init__(
            {"B": sums.sequences, "T": new, "S": Fraction(sums.context, sums.sequences)}
        )
        self._sums = sums

    def __missing__(self, extent: Extent) -> Number:
        """Compute an extent."""
        if isinstance(extent, ActivatedExperts):
            value: Number = extent.value(self, UNIFORM)
        elif isinstance(extent, Attended):
            value = self._attended(extent) / self._sums.sequences
        else:
            value = Fraction(extent.value(self))
        self[extent] = value
        return value

    def _attended(self, extent: Attended) -> Fraction:
        """Pairs, or cache entries, in all sequences [1]."""
        sums, window = self._sums, extent.window.tokens
        if isinstance(extent, Entries):
            most = sums.sequences * (window or 0) + sums.tokens - sums.sequences
            return Fraction(min(sums.context, most) if window else sums.context)
        return Fraction(min(sums.pairs, sums.tokens * window) if window else sums.pairs)


class ModelStep:
    """Work in each model group in one layer, on one chip.

    Args:
        model: The model.
        sums: The step's sums.
        tp: Chips that share each layer [1].
        chip: The chip, for compute dtypes; None: not known.

    Raises:
        RooflinesError: tp does not divide the heads.
    """

    def __init__(self, model: Model, sums: StepSums, tp: int, chip: Chip | None) -> None:
        self.model, self.sums, self.tp = model, sums, tp
        split = Split(tp=tp, pp=1, dp=1, ep=1)
        split.check(model.shape)
        dtypes = step_dtypes(as_published(model, [] if chip is None else [chip]))
        self.bits = dtypes.bits()
        sharing = Sharing(
            split, self.bits, dtypes.compute_dtypes, "heads", UNIFORM, dtypes.storage_dtypes
        )
        phase = PREFILL if sums.prefills else DECODE
        self.kernels = StepKernels(model.shape, phase, sharing).local_kernels
        self._extents = SummedExtents(sums)

    @property
    def groups(self) -> list[Group]:
        """Groups with kernels of their own, in run order: all but the embedding."""
        return [group for group, _ in self.kernels if group.name != "embed"]

    def group_costs(self) -> dict[str, OperatorCost]:
        """Work in one layer by group."""
        return {
            group.name: self._group_cost(group, kernel)
            for group, kernel in self.kernels
            if group.name != "embed"
        }

    def _group_cost(self, group: Group, kernel: Kernel) -> OperatorCost:
        flops, weights_and_cache, activations = (
            float(kernel.works[column].at(self._extents))
            for column in ("flops", "memory_bytes", "activation_bytes")
        )
        kind = "experts" if group.moe is not None else "attention" if group.context else "matmul"
        is_exact = group.moe is None and not group.window
        memory_bytes = weights_and_cache + activations
        return OperatorCost(kind, flops, kernel.compute, memory_bytes, exact=is_exact)

    def norm_cost(self, *parts: str) -> OperatorCost:
        """Norm work; assumed, as others may be fused into it.

        Args:
            parts: `QUERIES` and `KEYS` that it is over, on one chip; none: whole tokens.
        """
        tokens, attention = self.sums.tokens, self.model.shape.attention
        letters = {"B": tokens, "D": self.model.shape.D}
        if parts and isinstance(attention, Mla):
            widths = {QUERIES: attention.q_rank or 0, KEYS: attention.kv_rank}
            letters["D"] = sum(widths[part] for part in parts) or attention.kv_rank
        elif parts and isinstance(attention, Gqa):
            heads = sum({QUERIES: self.query_heads, KEYS: self.kv_heads}[part] for part in parts)
            by_head = attention.qk_norm == BY_HEAD
            size = attention.H
            letters = (
                {"B": tokens * heads, "D": size} if by_head else {"B": tokens, "D": heads * size}
            )
        return self._cost("norm", "rmsnorm", letters)

    @property
    def query_heads(self) -> int:
        """Query heads on one chip [1]."""
        return self.model.shape.attention.N // self.tp

    @property
    def kv_heads(self) -> int:
        """Heads in the KV cache on one chip [1]."""
        heads = self.model.shape.attention.cache_heads
        return heads // min(self.tp, heads)

    def small_costs(self) -> Mapping[str, OperatorCost]:
        """Work between groups by kernel kind; assumed."""
        tokens, attention = self.sums.tokens, self.model.shape.attention
        entry = attention.kv_cache_elements * self.kv_heads // attention.cache_heads
        costs = {
            "cache write": self._cost("cache write", "scatter-rows", {"B": tokens, "D": entry})
        }
        size = {Mla: "rope", Gqa: "H"}.get(type(attention))
        if size is not None:
            heads = {"B": 1, "T": tokens, "N": self.query_heads, "K": self.kv_heads}
            letters = {**heads, "H": int(getattr(attention, size))}
            costs["rotary"] = self._cost("rotary", "rotary", letters)
        return costs

    def activation_cost(self, group: str) -> OperatorCost | None:
        """Work in an activation; assumed. None: the model has no such MLP.

        Args:
            group: Group of the kernel before it: experts, shared, or another.
        """
        shape, moe = self.model.shape, self.model.shape.moe
        rows: Number = self.sums.tokens
        if moe is not None and group in ("experts", "shared"):
            routed = group == "experts"
            rows, width, gated = rows * (moe.mean_k if routed else 1), moe.Fe, moe.gated
            width *= 1 if routed else moe.shared
        elif shape.mlp is not None:
            width, gated = shape.mlp.F, shape.mlp.gated
        else:
            return None
        size = Fraction(width, self.tp)
        kind, letter = ("swiglu", "F") if gated else ("relu", "D")
        return self._cost("elementwise", kind, {"B": rows, letter: size})

    def _cost(self, name: str, kind: str, letters: Mapping[str, Number]) -> OperatorCost:
        element_bytes = float(self.bits["activations"]) / 8
        work = kernel_work(kind, letters, {}, element_bytes)
        return OperatorCost(name, memory_bytes=work.memory_bytes, exact=False)
