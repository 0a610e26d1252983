"""How chips share a step of training: parallelism, micro-batches, shards of states, recomputation.

The chips are laid out in the order tp, cp, dp, pp, from the inner network out.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, get_args

from pydantic import BeforeValidator, Field, model_validator

from rooflines.basics.errors import RooflinesError
from rooflines.hardware.entry_forms import Entry, Positive, PositiveInt
from rooflines.hardware.support import Reason
from rooflines.models.split import BY_HEADS, Split, check_shares
from rooflines.theory.network import ALL_TO_ALL, TORUS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.models.architecture import Shape
    from rooflines.theory.network import Link

ZERO = {
    "zero0": "none", "zero1": "optimizer", "zero2": "gradients", "zero3": "weights",
    "fsdp": "weights",
}  # fmt: skip
"""What replicas share, by stage of ZeRO; FSDP is the third."""


def _shard(value: object) -> object:
    return ZERO.get(value.lower(), value) if isinstance(value, str) else value


Shard = Annotated[Literal["none", "optimizer", "gradients", "weights"], BeforeValidator(_shard)]
Recompute = Literal["none", "selective", "full"]

WORDS: Mapping[str, str] = {
    "interleave": "v{}",
    "micro_batch": "b{}",
    "optimizer": "optimizer{}",
    "none": "zero0",
    "gradients": "zero2",
    "weights": "fsdp",
}
"""What names of plans call keys or values that are not the default; others are as they are."""

NUMBER = r"(\d+(?:\.\d+)?)"
"""A number in the name of a plan."""

ALONE = "tp, cp or dp"
"""Parallelisms that a torus has alone, over all of its chips."""

MOMENTS = 2
"""Running averages that Adam keeps of each parameter [1]."""


class TrainingKeys(Entry):
    """How chips compute a step of training: keys of a plan, and of a sweep for all its plans."""

    interleave: PositiveInt = Field(
        1, description="in training, runs of layers that each stage of a pipeline has [1]"
    )
    micro_batch: PositiveInt = Field(
        1, description="in training, sequences that a replica computes at once [1]"
    )
    shard: Shard = Field(
        "optimizer",
        description=(
            "in training, what replicas share of the states: ZeRO 0 to 3; weights is FSDP"
        ),
    )
    recompute: Recompute = Field(
        "none",
        description=(
            "in training, what is computed again: selective, outputs of norms and activations; "
            "full, all layers"
        ),
    )
    save: Literal["split", "gathered"] = Field(
        "split", description="in training, saved inputs: split over tp, or gathered, kept whole"
    )
    context: Literal["ring", "heads"] = Field(
        "ring",
        description="in training, how cp shares attention: keys go round, or heads change chips",
    )
    optimizer: Literal["adam"] | Positive = Field(
        "adam", description="in training, adam, or bytes of states of a parameter [byte]"
    )


class TrainingPlan(TrainingKeys, Split):
    """How tp * cp * dp * pp chips share a step of training."""

    tp: PositiveInt = Field(1, description="tensor parallelism: chips that share every kernel [1]")
    pp: PositiveInt = Field(1, description="pipeline parallelism: stages [1]")
    cp: PositiveInt = Field(1, description="context parallelism: chips that share a sequence [1]")
    ep: PositiveInt = Field(
        1,
        description="expert parallelism: 1, experts are shared as the rest; else their chips [1]",
    )

    @model_validator(mode="before")
    @classmethod
    def _not_of_training(cls, value: Any) -> Any:  # noqa: ANN401, any YAML value
        """All keys are."""
        return value

    @model_validator(mode="after")
    def _experts_over_all(self) -> Self:
        """Experts may be shared by any number of chips; see `check`."""
        return self

    @classmethod
    def key_of(cls, part: str) -> tuple[str, str] | None:
        """The key and the value of a part of a name, as of `Split`."""
        if part in ZERO:
            return "shard", ZERO[part]
        for key, field in TrainingKeys.model_fields.items():
            if key in WORDS:
                if match := re.fullmatch(WORDS[key].format(NUMBER), part):
                    return key, match[1]
            else:
                own = set(get_args(field.annotation)) - {field.default}
                if value := next((each for each in own if WORDS.get(each, each) == part), None):
                    return key, value
        return super().key_of(part)

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
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The group of chips that a network has to join: all of them."""
        return ((self.chips,),)

    def unplaced(self, names: Sequence[str], links: tuple[Link, ...]) -> Reason | None:
        """The reason why collectives of a plan have no place that is modelled; None: they have.

        Args:
            names: The interconnects that join its chips, inner first.
            links: Their links.
        """
        if not links or self.chips == 1:
            return None
        inner, *outer = links
        if inner.topology == TORUS:
            if self.ep > 1:
                return Reason("axes", f"no {ALL_TO_ALL} of experts on a torus, in training")
            if self.chips not in (self.tp, self.cp, self.dp):
                reason = f"a torus, {names[0]}, on which training is modelled for {ALONE} alone"
                return Reason("axes", f"{reason}: several take axes of their own")
        if not outer or inner.domain is None:
            return None
        for name, chips, stride in self._collectives:
            group = inner.domain  # chips of a collective may all be inside, or all in other groups
            cut = stride < group < chips * stride
            if cut and (group % stride or chips % (group // stride)):
                apart = f", {stride} places apart" if stride > 1 else ""
                groups = f"groups of {inner.domain} chips on {names[0]}"
                return Reason(
                    "groups", f"{groups}, which {name}, {chips} chips{apart}, cannot fill"
                )
        return None

    @property
    def _collectives(self) -> Iterator[tuple[str, int, int]]:
        """Chips of collectives, and how far apart they are in the layout [1]."""
        yield "tp", self.tp, 1
        yield "cp", self.cp, self.tp
        yield "dp * cp", self.replicas, self.tp
        if self.ep > 1:
            yield "ep", self.ep, 1
            yield "replicas of experts", self.expert_replicas, self.expert_shards

    @property
    def together(self) -> int:
        """Sequences that all replicas compute at once [1]."""
        return self.dp * self.micro_batch

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
        """Its name in tables: chips, then what is not the default, such as `tp2-dp4-weights`."""
        chips = [
            f"{key}{size}" for key in ("tp", "pp", "cp", "ep") if (size := getattr(self, key)) > 1
        ]
        own = {
            key: value
            for key, field in TrainingKeys.model_fields.items()
            if (value := getattr(self, key)) != field.default
        }
        more = (
            WORDS[key].format(f"{value:.15g}")
            if key in WORDS
            else WORDS.get(str(value), str(value))
            for key, value in own.items()
        )
        return "-".join([*chips, f"dp{self.dp}", *more])

    def bubble(self, micro_batches: int) -> Fraction:
        """The share of a step in which a stage waits for others [1]."""
        waiting = self.pp - 1
        return Fraction(waiting, self.interleave * micro_batches + waiting)

    def check(self, shape: Shape, cache_split: str = BY_HEADS) -> None:
        """Refuse a plan that a model does not allow.

        Args:
            shape: The model.
            cache_split: How caches are shared: there are none.

        Raises:
            RooflinesError: Heads, experts or layers are not shared evenly, or the model has layers
                whose training is not modelled.
        """
        self._check_family(shape)
        check_shares(shape, self.tp, cache_split)
        heads = shape.attention.N
        if self.context == "heads" and heads % (self.tp * self.cp):
            problem = f"is {self.cp}, which with tp does not divide the {heads} query heads"
            raise RooflinesError("cp", problem, "use fewer chips, or context: ring")
        runs = self.pp * self.interleave
        if runs > shape.layers:
            stages = f"{runs} runs with interleave" if self.interleave > 1 else f"{runs} stages"
            problem = f"is {stages}, but there are {shape.layers} layers"
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
