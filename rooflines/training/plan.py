"""How chips share a step of training: parallelism, micro-batches, shards of states, recomputation.

The chips are laid out in the order tp, cp, dp, pp, from the inner network out.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from rooflines.basics.errors import RooflinesError
from rooflines.basics.numbers import LARGEST_SIZE
from rooflines.catalogue.dtypes import stored_bits
from rooflines.catalogue.forms import Count, Entry, Name
from rooflines.model.costs import BITS_PER_BYTE
from rooflines.models.cache import check_shares

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.catalogue.entries import Format
    from rooflines.models.shape import Shape

Shard = Literal["none", "optimizer", "gradients", "weights"]
Recompute = Literal["none", "selective", "full"]

MOMENTS = 2
"""Running averages that Adam keeps of each parameter [1]."""


class TrainingDtypes(Entry):
    """The dtypes of a step of training: formats of the dtype catalogue."""

    weights: Name = Field("bf16", description="of the weights that kernels read")
    head: Name = Field("bf16", description="of embedding and unembedding")
    activations: Name = Field("bf16", description="of activations, sent, moved and saved")
    gradients: Name = Field("fp32", description="of the gradients of weights")
    master: Name = Field("fp32", description="of the optimizer's own copy of the weights")
    moments: Name = Field("fp32", description="of each of Adam's two moments")
    compute: Name = Field("bf16", description="dtype that linear kernels multiply in")
    attention: Name = Field("bf16", description="the same for attention and the unembedding")

    def sizes(self, formats: Mapping[str, Format]) -> dict[str, Fraction]:
        """Bytes of an element of each class of tensors, by its field [byte]."""
        return {
            name: Fraction(stored_bits(formats[getattr(self, name)])) / BITS_PER_BYTE
            for name in ("weights", "head", "activations", "gradients", "master", "moments")
        }


class TrainingPlan(Entry):
    """How tp * cp * dp * pp chips share a step of training."""

    tp: Count = Field(1, description="tensor parallelism: chips that share every kernel [1]")
    pp: Count = Field(1, description="pipeline parallelism: stages [1]")
    dp: Count = Field(1, description="data parallelism: replicas, which share the sequences [1]")
    cp: Count = Field(1, description="context parallelism: chips that share a sequence [1]")
    ep: Count = Field(
        1, description="expert parallelism: 1, experts are shared as the rest is; else their chips"
    )
    interleave: Count = Field(1, description="runs of layers that each stage has [1]")
    micro_batch: Count = Field(1, description="sequences that a replica computes at once [1]")
    shard: Shard = Field(
        "optimizer", description="what replicas share of the states: ZeRO 0, 1, 2, or 3 (FSDP)"
    )
    recompute: Recompute = Field(
        "none", description="what is computed again: outputs of norms and activations, or layers"
    )
    save: Literal["split", "gathered"] = Field(
        "split", description="whether saved inputs are split over tp, or kept whole"
    )
    context: Literal["ring", "heads"] = Field(
        "ring", description="how cp shares attention: keys and values go round, or heads change"
    )

    @model_validator(mode="after")
    def _not_too_many(self) -> Self:
        if self.chips > LARGEST_SIZE:
            problem = f"is {self.chips:,} chips with the others, more than {LARGEST_SIZE:,}"
            raise RooflinesError("dp", problem, "use fewer chips")
        return self

    @property
    def replicas(self) -> int:
        """Chips with equal weights: dp * cp [1]."""
        return self.dp * self.cp

    @property
    def stage_chips(self) -> int:
        """Chips of a stage [1]."""
        return self.tp * self.replicas

    @property
    def chips(self) -> int:
        """All chips [1]."""
        return self.stage_chips * self.pp

    @property
    def expert_replicas(self) -> int:
        """Chips with equal experts [1]."""
        return self.replicas if self.ep == 1 else self.stage_chips // self.ep

    @property
    def expert_shards(self) -> int:
        """Chips that share the experts of a layer [1]."""
        return self.tp if self.ep == 1 else self.ep

    def gathers_tokens(self, shape: Shape) -> bool:
        """Whether tp gathers the tokens of layers with experts: for these, or for shared ones."""
        return self.ep == 1 or (shape.moe is not None and shape.moe.shared > 0)

    @property
    def name(self) -> str:
        """Its name in tables, such as `tp2-pp2-dp4`."""
        sizes = {key: getattr(self, key) for key in ("tp", "pp", "cp", "ep")}
        parts = [f"{key}{size}" for key, size in sizes.items() if size > 1]
        return "-".join([*parts, f"dp{self.dp}"])

    def micro_batches(self, sequences: int) -> int:
        """Micro-batches of a replica in a step [1].

        Args:
            sequences: B, those of the step over all replicas [1].

        Raises:
            RooflinesError: B is no multiple of what divides it.
        """
        together = self.dp * self.micro_batch
        if sequences % together:
            problem = f"is {sequences}, no multiple of dp * micro_batch, {together}"
            raise RooflinesError("B", problem, f"use a multiple of {together}")
        return sequences // together

    def bubble(self, micro_batches: int) -> Fraction:
        """The share of a step in which a stage waits for others [1]."""
        waiting = self.pp - 1
        return Fraction(waiting, self.interleave * micro_batches + waiting)

    def check(self, shape: Shape, tokens: int) -> None:
        """Refuse a plan that a model or a sequence does not allow.

        Args:
            shape: The model.
            tokens: S, tokens of a sequence [1].

        Raises:
            RooflinesError: Heads, experts, layers or tokens are not shared evenly, or the model has
                layers whose training is not modelled.
        """
        self._check_family(shape)
        check_shares(shape, self.tp)
        if tokens % self.cp:
            raise RooflinesError(
                "cp", f"is {self.cp}, which does not divide S, {tokens}", "use a divisor"
            )
        heads = shape.attention.N
        if self.context == "heads" and heads % (self.tp * self.cp):
            problem = f"is {self.cp}, which with tp does not divide the {heads} query heads"
            raise RooflinesError("cp", problem, "use fewer chips, or context: ring")
        runs = self.pp * self.interleave
        if runs > shape.layers:
            problem = f"is {runs} runs with interleave, but there are {shape.layers} layers"
            raise RooflinesError("pp", problem, "use fewer stages")
        if self.interleave > 1 and shape.layers % runs:
            problem = f"is {self.interleave}: {runs} runs do not divide the {shape.layers} layers"
            raise RooflinesError("interleave", problem, "use 1, or a divisor")
        if self.interleave > 1 and self.pp == 1:
            raise RooflinesError("interleave", "is given without stages", "use pp, or leave it out")
        self._check_experts(shape)

    def _check_family(self, shape: Shape) -> None:
        window = shape.window
        for part, has in (
            ("states in place of attention", shape.state is not None),
            ("sparse attention", shape.sparse is not None),
            ("layers of one part each", shape.single),
            ("experts of a latent width", shape.moe is not None and shape.moe.latent is not None),
            ("windows with attention of their own", window is not None and window.attention),
        ):
            if has:
                raise RooflinesError(
                    "model", f"has {part}, whose training is not modelled", "use another model"
                )

    def _check_experts(self, shape: Shape) -> None:
        if self.ep == 1:
            return
        if shape.moe is None:
            raise RooflinesError("ep", f"is {self.ep}, but the model has no experts", "write ep=1")
        if math.gcd(shape.moe.E, self.stage_chips) % self.ep:
            problem = (
                f"is {self.ep}, which does not divide the {shape.moe.E} experts and tp * cp * dp, "
                f"{self.stage_chips}"
            )
            raise RooflinesError("ep", problem, "use a divisor of both")
