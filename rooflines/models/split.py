"""Split of a model over chips: tensor, pipeline, data and expert parallelism.

A split of serving and a plan of training are both a `Parallelism`.
"""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from rooflines.basics.errors import RooflinesError, at_path, quote
from rooflines.basics.numbers import MAX_SIZE, whole
from rooflines.hardware.entry_forms import Entry, PositiveInt
from rooflines.theory.network import PAIR, axes_text, parse_axes

if TYPE_CHECKING:
    from rooflines.models.architecture import Shape

BY_HEADS, BY_BATCH = CACHE_SPLITS = ("heads", "batch")
"""Split of the KV cache within a tensor-parallel group: by KV heads, with copies beyond them; or by
sequences, each on one chip."""

ONE_CHIP = 1

TRAINING_KEYS = ("cp",)
"""Chip counts that only training plans have."""

KEYS = ("tp", "pp", "dp", "ep", *TRAINING_KEYS)
"""All chip counts in names of splits and plans."""

CHIPS_PATTERN = re.compile(r"([a-z]{2})(\d[\da-dx+]*)")
"""Pattern for one chip count in a split's name: key, then chips, perhaps along axes."""


def chips_along_axes(value: object) -> int | str:
    """Parse a chip count, or chips along torus axes, such as `4x4` [1].

    Raises:
        RooflinesError: It is neither, or too large.
    """
    if not isinstance(value, str) or not any(sign in value for sign in "xX*×"):
        return whole(value)
    try:
        axes = parse_axes(value)
    except ValueError:
        axes = ()
    if min(axes, default=0) < PAIR:
        fix = "write a number such as 8, or the chips along each axis of a torus, such as 4x4"
        raise RooflinesError(
            "", f"is {quote(value)}, which is no product of axes", fix, value=value
        )
    if math.prod(axes) > MAX_SIZE:
        problem = f"is {quote(value)}, which is more than {MAX_SIZE:,} chips"
        raise RooflinesError("", problem, "choose fewer chips")
    return axes_text(axes)


AXES_SCHEMA: Any = {
    "anyOf": [
        {"type": "integer", "minimum": 1},
        {"type": "string", "pattern": "^[1-9][0-9]*(x[1-9][0-9]*)+$"},
    ]
}
AlongAxes = Annotated[int | str, BeforeValidator(chips_along_axes), WithJsonSchema(AXES_SCHEMA)]


def check_shares(shape: Shape, tp: int) -> None:
    """Refuse a tp that does not divide the model's heads evenly.

    Args:
        shape: The model.
        tp: Chips in a tensor-parallel group [1].

    Raises:
        RooflinesError: tp does not divide the heads, or is no chip count.
    """
    with at_path("tp"):
        chips = whole(tp)
    states = () if shape.state is None else (("heads of states", shape.state.heads),)
    queries = [("query heads", part.attention.N) for part in shape.attentions]
    for name, heads in (*queries, *states):
        if heads % chips:
            divisors = ", ".join(str(n) for n in range(1, heads + 1) if not heads % n)
            problem = f"is {chips}, which does not divide the {heads} {name}"
            raise RooflinesError("tp", problem, f"use one of {divisors}")
    for part in shape.attentions:
        kv_heads = part.attention.cache_heads
        if kv_heads % chips and chips % kv_heads:
            raise RooflinesError(
                "tp",
                f"is {chips}, which neither divides the {kv_heads} KV heads nor is a multiple",
                "use a number of chips that shares or replicates the heads evenly",
            )


class Parallelism(Entry):
    """Chips by axis: what a split and a plan of training have in common."""

    tp: AlongAxes = Field(
        1,
        description=(
            "tensor parallelism: chips that share every kernel, or chips along each axis of a "
            "torus, such as 4x4 [1]"
        ),
    )
    dp: PositiveInt = Field(
        1, description="data parallelism: replicas, which share the sequences [1]"
    )
    ep: AlongAxes = Field(
        1,
        description="expert parallelism: 1, experts are split like the rest; tp * dp, also as "
        "a product of axes: E / ep experts per chip; or a divisor, whose groups split the width "
        "of their experts [1]",
    )

    @classmethod
    def key_of(cls, part: str) -> tuple[str, str] | None:
        """Key and value of one part in a split's name, such as `tp2`; None: it is no such part."""
        match = CHIPS_PATTERN.fullmatch(part)
        return (match[1], match[2]) if match and match[1] in KEYS else None

    @classmethod
    def keys_of(cls, name: str) -> dict[str, str] | None:
        """Parse a split's name, such as `tp2-dp4`, into keys; None: it is no such name."""
        keys = [cls.key_of(part) for part in name.lower().split("-")]
        values = {key[0]: key[1] for key in keys if key}
        return values if len(values) == len(keys) else None

    @classmethod
    def keys_from_name(cls, name: str) -> dict[str, str]:
        """Parse a split's name into keys.

        Raises:
            RooflinesError: It is no name of a split.
        """
        keys = cls.keys_of(name)
        if keys is None:
            problem = f"is {quote(name)}, which is no split"
            raise RooflinesError("", problem, "write a name such as tp8-dp2, or its keys")
        return keys

    @model_validator(mode="before")
    @classmethod
    def _parse_name(cls, value: object) -> object:
        return cls.keys_from_name(value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_chips(self) -> Self:
        if self.chips > MAX_SIZE:
            problem = f"is {self.chips:,} chips with tp, more than {MAX_SIZE:,}"
            raise RooflinesError("dp", problem, "use fewer chips")
        return self

    @property
    def axes(self) -> tuple[int, ...]:
        """Tensor-parallel chips along each axis [1]."""
        return parse_axes(self.tp)

    @property
    def experts_axes(self) -> tuple[int, ...]:
        """Expert-parallel chips along each axis [1]."""
        return parse_axes(self.ep)

    @property
    def parts(self) -> int:
        """Parts that the experts are split into: ep [1]."""
        return math.prod(self.experts_axes)

    @property
    def shards(self) -> int:
        """Chips that share every kernel: tp [1]."""
        return math.prod(self.axes)

    @property
    def width_shards(self) -> int:
        """Chips that split the width of an expert: tp, or tp dp / ep under ep [1]."""
        return self.shards if self.parts == ONE_CHIP else self.stage_chips // self.parts

    @property
    def exchange_axes(self) -> tuple[int, ...]:
        """Chips along each axis that exchange tokens of experts: all in a stage, or one [1]."""
        is_whole = self.parts in (ONE_CHIP, self.stage_chips)
        return self.experts_axes if is_whole else (self.stage_chips,)

    def share(self, tensors: str) -> Fraction:
        """Share of a tensor class on one chip: 1 / tp, or 1 / (tp dp) for experts under ep [1].

        Experts are shared by ep, and in a group of tp dp / ep chips each by its width.
        """
        is_expert_parallel = tensors == "experts" and self.parts > 1
        return Fraction(1, self.stage_chips if is_expert_parallel else self.shards)

    def held_share(self, experts: int) -> Fraction:
        """Share of the experts in a chip's memory, in whole slots: ceil(E / ep) of E [1].

        Where ep does not divide E, some chips have an empty slot, or a copy in it.

        Args:
            experts: E [1].
        """
        slots = -(-experts // self.parts)
        return self.share("experts") * Fraction(slots * self.parts, experts)

    @property
    @abstractmethod
    def stages(self) -> int:
        """Pipeline stages: pp [1]."""

    @property
    @abstractmethod
    def stage_chips(self) -> int:
        """Chips in a pipeline stage [1]."""

    def stage_batch(self, batch: int) -> Fraction:
        """Sequences that a stage decodes at once, b = max(B / pp, dp) [1].

        min(pp, B / dp) micro-batches are on the way, with a sequence on every replica at least.

        Args:
            batch: B, sequences in decode [1].
        """
        return max(Fraction(batch, self.stages), Fraction(self.dp))

    @property
    @abstractmethod
    def chips(self) -> int:
        """All chips [1]."""

    @property
    @abstractmethod
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Chip groups that a network has to join, by their axes."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Name in tables, such as `tp2-dp4`."""

    @abstractmethod
    def check(self, shape: Shape) -> None:
        """Refuse chips over which a model cannot be shared.

        Args:
            shape: The model.

        Raises:
            RooflinesError: The model does not allow them.
        """


class Split(Parallelism):
    """Split over tp * pp * dp chips."""

    pp: PositiveInt = Field(
        1,
        description="pipeline parallelism: stages of whole layers, which sequences pass in "
        "micro-batches [1]",
    )

    @model_validator(mode="before")
    @classmethod
    def _refuse_training_keys(cls, value: object) -> object:
        if isinstance(value, dict) and (keys := [key for key in TRAINING_KEYS if key in value]):
            raise RooflinesError(keys[0], "is of training alone", "use tp, pp, dp and ep")
        return value

    @model_validator(mode="after")
    def _check_ep(self) -> Self:
        if self.stage_chips % self.parts:
            divisors = [n for n in range(1, self.stage_chips + 1) if not self.stage_chips % n]
            allowed = ", ".join(map(str, divisors))
            typed = f"tp={self.ep}, ep={self.ep}"
            raise RooflinesError(
                "ep",
                f"is {self.ep}, which does not divide tp * dp, {self.stage_chips}",
                f"use one of {allowed}, or let tp * dp be as many, such as tp: {self.ep}, "
                f"ep: {self.ep}",
                typed_fix=f"use one of {allowed}, or let tp * dp be as many, such as {typed}",
            )
        return self

    @property
    def stages(self) -> int:
        """Pipeline stages: pp [1]."""
        return self.pp

    @property
    def stage_chips(self) -> int:
        """Chips in a pipeline stage: tp * dp [1]."""
        return self.shards * self.dp

    @property
    def chips(self) -> int:
        """All chips: tp * pp * dp [1]."""
        return self.shards * self.dp * self.pp

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Chip groups that a network has to join, by their axes; with stages all chips, too."""
        pipeline = ((self.chips,),) if self.pp > 1 else ()
        return self.axes, self.exchange_axes, *pipeline

    @property
    def name(self) -> str:
        """Name in tables, such as `tp2-dp4`, or `tp8-pp2`."""
        sizes = (("pp", self.pp), ("dp", self.dp), ("ep", self.ep))
        optional = [f"{key}{n}" for key, n in sizes if n != 1]
        return "-".join([f"tp{self.tp}", *optional])

    def check(self, shape: Shape) -> None:
        """Refuse a split that a model does not allow.

        Raises:
            RooflinesError: tp does not divide the heads, there are more stages than layers, or
                more expert groups than experts.
        """
        check_shares(shape, self.shards)
        if self.pp > shape.layers:
            problem = f"is {self.pp} stages, but there are {shape.layers} layers"
            raise RooflinesError("pp", problem, "use fewer stages")
        if self.parts == 1:
            return
        if shape.moe is None or not shape.moe_layers:
            raise RooflinesError("ep", f"is {self.ep}, but the model has no experts", "write ep: 1")
        if self.parts > shape.moe.E:
            raise RooflinesError(
                "ep",
                f"is {self.ep}, more than the {shape.moe.E} experts",
                "use at most as many chips as there are experts",
            )


ONE_CHIP_SPLIT = Split.model_construct()
"""Split over one chip, without copies of the KV cache."""
