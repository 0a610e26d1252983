"""Parallelism plan of a training step: chips by axis, micro-batches, ZeRO, recomputation.

Chips are laid out in the order tp, cp, dp, pp, from the inner network out.
"""

from __future__ import annotations

import math
import re
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Literal, Self, get_args

from pydantic import BeforeValidator, Field, model_validator

from rooflines.basics.errors import RooflinesError, check_choice, quote
from rooflines.basics.numbers import number, whole
from rooflines.hardware.entry_forms import Entry, Positive, PositiveInt
from rooflines.hardware.support import Reason
from rooflines.models.architecture import Gqa, Mla
from rooflines.models.split import Parallelism, check_shares
from rooflines.theory.network import TORUS, axes_text
from rooflines.theory.tori import parse_typed, slice_of
from rooflines.training.adapters import Lora
from rooflines.training.layer_chunks import chunk_layers
from rooflines.training.optimizers import OPTIMIZERS
from rooflines.training.torus_plans import torus_mappings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.models.architecture import Shape
    from rooflines.theory.network import Link
    from rooflines.theory.tori import Typed

ZERO_STAGES = {
    "zero0": "none",
    "zero1": "optimizer",
    "zero2": "gradients",
    "zero3": "weights",
    "fsdp": "weights",
}
"""Values of `shard` by ZeRO stage; FSDP is ZeRO-3."""


def sharded_replicas(count: str) -> dict[str, str]:
    """Plan keys for fsdp=64, or fsdp=16x16+2, whose pods share states, too."""
    over_pods = {"share_over_pods": "true"} if "+" in count else {}
    return {"dp": count, "shard": "weights", **over_pods}


def _shard(value: object) -> object:
    return ZERO_STAGES.get(value.lower(), value) if isinstance(value, str) else value


Shard = Annotated[Literal["none", "optimizer", "gradients", "weights"], BeforeValidator(_shard)]
Recompute = Literal["none", "selective", "full"]
Save = Literal["split", "gathered"]
Context = Literal["ring", "heads"]

BASE_FORMATS: Mapping[str, str] = {
    "bf16": "bf16",
    "fp16": "fp16",
    "fp8": "fp8",
    "int8": "int8",
    "nf4": "nf4-double",
    "nf4-single": "nf4",
}
"""Formats for frozen weights, by name, in the dtype catalogue; the scales of nf4 are quantized
again, as in QLoRA, unless it is `nf4-single`."""

AXES_KEYS = ("tp", "cp", "dp", "pp", "ep")
"""Chip counts that may be typed along torus axes."""

TOPOLOGY_PART = r"on(\d+(?:x\d+)+)"
"""Name part for a slice's shape."""

LOGITS, FUSED_LOSS = "logits", "fused"

LOSS_CHUNKS = 8
"""Chunks in a loss where their number is not said, as torchtune has them [1]."""

OFFLOADED = ("saved", "states")

WORKING_FACTORS: Mapping[str, float] = {"megatron": 1.044}
"""Peak memory over states and saved tensors by training stack, fitted to 43 steps that SimuMax
measured on 8 B200 with Megatron-LM, which lie from 1.024 to 1.094 [1]."""

UNKNOWN_WORKING = (1.0, 1.2)
"""The same for a stack that is not named [1]."""


def _optimizer(value: object) -> object:
    if isinstance(value, str) and not value[:1].isdigit():
        check_choice(value, OPTIMIZERS, "no optimizer")
        return value
    bytes_per_parameter = number(value)
    if bytes_per_parameter <= 0:
        problem = f"is {bytes_per_parameter:g} bytes per parameter, which is not above zero"
        raise RooflinesError("", problem, f"use one of {', '.join(OPTIMIZERS)}", value=value)
    return bytes_per_parameter


def _topology(value: object) -> object:
    if value is None:
        return None
    try:
        return axes_text(slice_of(str(value)))
    except ValueError:
        problem = f"is {quote(value)}, which is no product of axes"
        raise RooflinesError("", problem, "write a shape such as 4x4x8", value=value) from None


def _stage_layers(value: object) -> object:
    """Layers per chunk: a list, or as typed: 4,4,3 or 4x15,1."""
    if not isinstance(value, str):
        return value
    layers: list[int] = []
    for part in value.strip("[]").replace("+", ",").split(","):
        count, _, times = part.strip().partition("x")
        if not count.isdigit() or (times and not times.isdigit()):
            problem = f"is {quote(value)}, which is no list with numbers"
            raise RooflinesError(
                "", problem, "write layers per chunk, such as 4,4,4,3", value=value
            )
        layers += [int(count)] * int(times or 1)
    return tuple(layers)


def _base(value: object) -> object:
    if value is not None:
        check_choice(value, BASE_FORMATS, "no format of frozen weights")
    return value


def _loss(value: object) -> object:
    """Loss as logits, fused, or as many chunks: 8, `chunked=8` or {chunks: 8}."""
    if isinstance(value, dict) and value.keys() == {"chunks"}:
        value = value["chunks"]
    if isinstance(value, str) and not value.isdigit():
        name, _, chunks = value.partition("=")
        if name in ("chunked", "chunks"):
            return whole(chunks or LOSS_CHUNKS, maximum=MAX_CHUNKS)
        if value not in (LOGITS, FUSED_LOSS):
            problem = f"is {quote(value)}, which is no loss"
            fix = "write logits, fused or {chunks: 8}"
            raise RooflinesError(
                "", problem, fix, value=value, typed_fix="write chunked=8 or fused"
            )
        return value
    return whole(value, maximum=MAX_CHUNKS)


def _offload(value: object) -> object:
    """Offloaded tensors, from a list, or a text with commas."""
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list | tuple):
        problem = f"is {quote(value)}, which is no list"
        raise RooflinesError("", problem, "write [saved], [states] or both", value=value)
    for part in value:
        check_choice(part, OFFLOADED, "nothing that is offloaded")
    return tuple(part for part in OFFLOADED if part in value)


def _stack(value: object) -> object:
    if value is None or value in WORKING_FACTORS:
        return value
    try:
        factor = number(value)
    except RooflinesError:
        names = ", ".join(WORKING_FACTORS)
        problem = f"is {quote(value)}, a training stack without a fitted factor"
        fix = f"use {names}, or the factor of peak over states and saved tensors, such as 1.1"
        raise RooflinesError("", problem, fix, value=value) from None
    if factor < 1:
        problem = f"is {factor:g}, but a peak is at least what is held"
        raise RooflinesError("", problem, "write a factor such as 1.1", value=value)
    return factor


MAX_CHUNKS = 2**20
"""Most chunks of a loss [1]."""

Optimizer = Annotated[
    Literal["adam", "adam-bf16", "adam-8bit", "adafactor", "muon", "sgd", "sgd-momentum"]
    | Positive,
    BeforeValidator(_optimizer),
]
Base = Annotated[
    Literal["bf16", "fp16", "fp8", "int8", "nf4", "nf4-single"] | None, BeforeValidator(_base)
]
Loss = Annotated[
    Literal["logits", "fused"] | int,
    BeforeValidator(_loss, json_schema_input_type=str | int | dict[Literal["chunks"], int]),
]
Offload = Annotated[
    tuple[Literal["saved", "states"], ...],
    BeforeValidator(_offload, json_schema_input_type=str | list[Literal["saved", "states"]]),
]
StageLayers = Annotated[
    tuple[int, ...] | None,
    BeforeValidator(_stage_layers, json_schema_input_type=str | list[int] | None),
]
Topology = Annotated[str | None, BeforeValidator(_topology)]
Stack = Annotated[
    Literal["megatron"] | float | None,
    BeforeValidator(_stack, json_schema_input_type=Literal["megatron"] | float | None),
]
Gradients = Literal["kept", "freed"]

NUMBER_PARTS: Mapping[str, str] = {
    "interleave": "v{}",
    "micro_batch": "b{}",
    "group": "group{}",
    "first": "first{}",
    "last": "last{}",
    "optimizer": "optimizer{}",
    "loss": "chunked{}",
    "stack": "stack{}",
}
"""Name parts for numbers, by key."""

OVER_PODS = "overpods"
"""Name part for states that pods share, too."""

WHOLE_PARTS: Mapping[str, tuple[str, str]] = {
    **{name: ("shard", shard) for name, shard in ZERO_STAGES.items()},
    OVER_PODS: ("share_over_pods", "true"),
}
"""Keys and values for name parts with one value."""

LORA_PART = r"lora(\d+(?:\+[a-z_]+)*)"
"""Pattern for the name part with adapters."""

PATTERN_PARTS: Mapping[str, str] = {
    "topology": TOPOLOGY_PART,
    "stage_layers": r"layers(\d+(?:\+\d+)*)",
    "lora": LORA_PART,
}
"""Patterns for name parts with their own form, by key."""

PREFIXED_KEYS = ("base", "offload", "stack")
"""Keys that stand before their names in a name part, such as `base+nf4`."""

NAME_PARTS: Mapping[str, str] = {
    "none": "zero0",
    "gradients": "zero2",
    "weights": "fsdp",
}
"""Name parts for values that are not the default; the rest keep theirs, without dashes."""

NUMBER = r"(\d+(?:\.\d+)?)"
"""A number in the name of a plan."""


class TrainingKeys(Entry):
    """Keys for a training step besides chips: in one plan, or in a sweep for all its plans."""

    interleave: PositiveInt = Field(
        1, description="in training, chunks of layers per pipeline stage (virtual stages) [1]"
    )
    micro_batch: PositiveInt = Field(
        1, description="in training, sequences that a replica computes at once [1]"
    )
    shard: Shard = Field(
        "optimizer",
        description=("in training, states that replicas share: ZeRO 0 to 3; weights is FSDP"),
    )
    recompute: Recompute = Field(
        "none",
        description=(
            "in training, recomputation: selective, outputs of norms and activations; "
            "full, all layers"
        ),
    )
    save: Save = Field(
        "split", description="in training, saved inputs: split over tp, or gathered (whole)"
    )
    context: Context = Field(
        "ring",
        description="in training, attention under cp: ring of keys, or exchange of heads",
    )
    optimizer: Optimizer = Field(
        "adam",
        description=(
            f"in training, {', '.join(OPTIMIZERS)}; or bytes per parameter besides weight and "
            "gradient [byte]"
        ),
    )
    gradients: Gradients = Field(
        "kept",
        description=(
            "in training, freed: the optimizer runs in the backward pass, and one tensor's "
            "gradient is held at a time"
        ),
    )
    loss: Loss = Field(
        "logits",
        description=(
            "in training, what the loss holds: logits, saved for the backward pass; fused, none; "
            "{chunks: 8}, those of one chunk of the tokens"
        ),
    )
    lora: Lora | None = Field(
        None,
        description=(
            "in training, low-rank adapters on frozen weights: their rank, or {rank: 16, on: "
            "[q, v]}; null: all weights are trained"
        ),
    )
    base: Base = Field(
        None,
        description=(
            "in training with lora, format of the frozen weights of linear layers: "
            f"{', '.join(BASE_FORMATS)}; null: that of the weights"
        ),
    )
    offload: Offload = Field(
        (),
        description=(
            "in training, tensors in the memory of the host: saved, those of layers saved for "
            "backward passes; states, of the optimizer"
        ),
    )
    topology: Topology = Field(
        None,
        description=(
            "in training, shape of the slice of a torus, such as 4x4x8; null: the first for the "
            "number of chips"
        ),
    )
    group: PositiveInt | None = Field(
        None,
        description=(
            "in training, chips per group on the inner network, a divisor of all; null: the "
            "largest divisor within its domain [1]"
        ),
    )
    stage_layers: StageLayers = Field(
        None,
        description=(
            "in training, layers per chunk, in the order in which a micro-batch passes them, "
            "pp * interleave numbers; null: even, as Megatron deals them [1]"
        ),
    )
    first: PositiveInt | None = Field(
        None, description="in training, layers of the first stage, the rest even [1]"
    )
    last: PositiveInt | None = Field(
        None, description="in training, layers of the last stage, the rest even [1]"
    )
    stack: Stack = Field(
        None,
        description=(
            "in training, stack whose working memory counts for `fits`: megatron, or the factor of "
            "peak over states and saved tensors [1]; null: none counts"
        ),
    )


@dataclass(frozen=True)
class ChipGroup:
    """Chips that a collective joins.

    Attributes:
        chips: Number of chips [1].
        stride: Distance from one to the next in the layout [1].
        pods: Torus pods among which they lie, as many in each [1].
    """

    chips: int
    stride: int = 1
    pods: int = 1


ALONE = ChipGroup(1)
"""One chip, without a collective."""


def _names_in(annotation: object) -> Iterator[str]:
    """Names that an annotation of literals allows."""
    for member in get_args(annotation):
        if isinstance(member, str):
            yield member
        else:
            yield from _names_in(member)


def _name_part(value: str) -> str:
    """Name part for a value."""
    return NAME_PARTS.get(value, value).replace("-", "")


class TrainingPlan(TrainingKeys, Parallelism):
    """Parallelism plan of a training step on tp * cp * dp * pp chips."""

    tp: PositiveInt = Field(1, description="tensor parallelism: chips that share every kernel [1]")
    pp: PositiveInt = Field(1, description="pipeline parallelism: stages [1]")
    cp: PositiveInt = Field(1, description="context parallelism: chips that share a sequence [1]")
    ep: PositiveInt = Field(
        1,
        description="expert parallelism: 1, experts are split like the rest; else their chips [1]",
    )

    pods: PositiveInt = Field(
        1, description="pods of a torus over which dp is split, typed behind +: dp: 16x16+2 [1]"
    )
    share_over_pods: bool = Field(
        default=False,
        description="whether pods, too, share what `shard` names: fsdp=16x16+2, else false",
    )
    along: tuple[tuple[str, str], ...] = Field(
        (), description="chips along the axes of a torus, as typed: dp: 16x16, tp: 4c"
    )

    @model_validator(mode="before")
    @classmethod
    def _parse_axes(cls, value: object) -> object:
        """Numbers for chips typed along axes, which `along` keeps, and pods."""
        if isinstance(value, str):
            value = cls.keys_from_name(value)
        if not isinstance(value, dict):
            return value
        keys, along = dict(value), dict(value.get("along", ()))
        for key in AXES_KEYS:
            text = keys.get(key)
            if not isinstance(text, str) or text.isdigit():
                continue
            with suppress(ValueError):
                typed, pods = parse_typed(text)
                if pods > 1 and key != "dp":
                    problem = f"is {quote(text)}, over {pods} pods, and dcn joins replicas alone"
                    raise RooflinesError(key, problem, "write + behind dp, such as dp=16x16+2")
                keys[key] = math.prod(typed.chips) * pods
                if pods > 1:
                    keys["pods"] = pods
                if len(typed.chips) > 1 or typed.letters:
                    along[key] = text.partition("+")[0].strip().lower()
        return {**keys, "along": tuple(along.items())} if along else keys

    @model_validator(mode="after")
    def _check_pods(self) -> Self:
        if self.dp % self.pods:
            problem = f"is {self.pods}, which does not divide dp, {self.dp}"
            raise RooflinesError("pods", problem, "write dp=16x16+2: 256 replicas in each of 2")
        return self

    @model_validator(mode="after")
    def _check_base(self) -> Self:
        """Refuse a base format where no weights are frozen."""
        if self.base is not None and self.lora is None:
            problem = f"is {self.base}, but no weights are frozen"
            raise RooflinesError("base", problem, "add lora, such as --lora 16, or leave it out")
        return self

    @classmethod
    def key_of(cls, part: str) -> tuple[str, str] | None:
        """Key and value of one part in a plan's name; as `Parallelism.key_of`."""
        if part in WHOLE_PARTS:
            return WHOLE_PARTS[part]
        for pattern_key, pattern in PATTERN_PARTS.items():
            if match := re.fullmatch(pattern, part):
                return pattern_key, match[1]
        key, *names = part.replace("_", "-").split("+")
        if names and key in PREFIXED_KEYS:
            return key, ",".join(names)
        for key, field in TrainingKeys.model_fields.items():
            form = NUMBER_PARTS.get(key)
            if form and (match := re.fullmatch(form.format(NUMBER), part)):
                return key, match[1]
            if key in PREFIXED_KEYS:
                continue
            choices = {name for name in _names_in(field.annotation) if name != field.default}
            if value := next((name for name in sorted(choices) if _name_part(name) == part), None):
                return key, value
        return super().key_of(part)

    @property
    def replicas(self) -> int:
        """Chips with equal weights: dp * cp [1]."""
        return self.dp * self.cp

    @property
    def stages(self) -> int:
        """Pipeline stages: pp [1]."""
        return self.pp

    @property
    def stage_chips(self) -> int:
        """Chips per pipeline stage: tp * cp * dp [1]."""
        return self.tp * self.replicas

    @property
    def chips(self) -> int:
        """All chips: tp * cp * dp * pp [1]."""
        return self.stage_chips * self.pp

    @property
    def pod_chips(self) -> int:
        """Chips in a pod: all, unless dp is split over pods [1]."""
        return self.chips // self.pods

    @property
    def pod_stage_chips(self) -> int:
        """Chips per pipeline stage in a pod [1]."""
        return self.stage_chips // self.pods

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Chip groups that a network has to join: one, with all chips."""
        return ((self.chips,),)

    def placement_problem(self, names: Sequence[str], links: tuple[Link, ...]) -> Reason | None:
        """Reason why the plan's collectives cannot be placed on the networks; None: they can.

        Args:
            names: The interconnects that join its chips, inner first.
            links: Their links.
        """
        if not links or self.chips == 1:
            return None
        inner, *outer = links
        if inner.topology == TORUS:
            mappings = torus_mappings(self, names, links)
            return mappings if isinstance(mappings, Reason) else None
        if self.along or self.topology or self.pods > 1:
            return Reason(
                "axes", f"no axes on {names[0]}: {self.typed_axes} is of a torus, write numbers"
            )
        return self._group_problem(names, has_outer=bool(outer))

    def _group_problem(self, names: Sequence[str], *, has_outer: bool) -> Reason | None:
        """Reason why a typed group does not divide the chips, or nothing joins groups."""
        if self.group is None or self.chips <= self.group:
            return None
        if not has_outer:
            text = f"no network between groups of {self.group} chips on {names[0]}"
            return Reason("groups", f"{text}: name two, such as --network nvlink,infiniband")
        if self.chips % self.group:
            text = f"groups of {self.group} chips on {names[0]}, which do not divide {self.chips:,}"
            return Reason("groups", text)
        return None

    @property
    def typed_axes(self) -> str:
        """Typed axes, slice or pods, such as `dp=16x16+2`."""
        pods = f"+{self.pods}" if self.pods > 1 else ""
        typed = {key: text for key, text in self.along if self._is_typed(key)}
        if pods:
            typed["dp"] = f"{typed.get('dp', self.dp // self.pods)}{pods}"
        texts = [f"{key}={text}" for key, text in typed.items()]
        return ",".join([*texts, *([f"topology={self.topology}"] if self.topology else [])])

    def _is_typed(self, key: str) -> bool:
        """Tell whether a chip count is the one typed along axes."""
        typed, _ = parse_typed(dict(self.along)[key])
        count = getattr(self, key) // (self.pods if key == "dp" else 1)
        return math.prod(typed.chips) == int(count)

    @property
    def typed(self) -> Mapping[str, Typed]:
        """Chips along axes as typed, by key."""
        return {key: parse_typed(text)[0] for key, text in self.along if self._is_typed(key)}

    @property
    def working_factor(self) -> float | None:
        """Peak memory over states and saved tensors [1]; None: no stack is named."""
        return WORKING_FACTORS.get(self.stack, None) if isinstance(self.stack, str) else self.stack

    @property
    def global_micro_batch(self) -> int:
        """Sequences of one micro-batch on all replicas: dp * micro_batch [1]."""
        return self.dp * self.micro_batch

    @property
    def is_expert_parallel(self) -> bool:
        """True if ep is not 1, so that chips share whole experts out."""
        return self.ep > 1

    @property
    def expert_replicas(self) -> int:
        """Chips with equal experts: dp * cp, or tp * cp * dp / ep; in a pod, as `shard` [1]."""
        shared_pods = self.pods if self.share_over_pods else 1
        chips = self.pod_stage_chips // (self.ep if self.is_expert_parallel else self.tp)
        return chips * shared_pods

    @property
    def expert_shards(self) -> int:
        """Chips that share a layer's experts: ep, or tp without expert parallelism [1]."""
        return self.ep if self.is_expert_parallel else self.tp

    @property
    def weight_group(self) -> ChipGroup:
        """Chips that share equal weights' states: in a pod, or in all."""
        pods = self.pods if self.share_over_pods else 1
        return ChipGroup(self.replicas // self.pods * pods, self.tp, pods)

    @property
    def expert_group(self) -> ChipGroup:
        """Chips that share equal experts' states."""
        pods = self.pods if self.share_over_pods else 1
        return ChipGroup(self.expert_replicas, self.expert_shards, pods)

    @property
    def name(self) -> str:
        """Name in tables: chips, then values that are not the default, such as `tp2-dp4-fsdp`."""
        typed = {key: text for key, text in self.along if self._is_typed(key)}
        chips = [
            f"{key}{typed.get(key, size)}"
            for key in ("tp", "pp", "cp", "ep")
            if (size := getattr(self, key)) > 1
        ]
        pods = f"+{self.pods}" if self.pods > 1 else ""
        replicas = f"dp{typed.get('dp', self.dp // self.pods)}{pods}"
        changed_keys = {
            key: value
            for key, field in TrainingKeys.model_fields.items()
            if (value := getattr(self, key)) != field.default
        }
        suffixes = (self._part_of(key, value) for key, value in changed_keys.items())
        over = [OVER_PODS] * self.share_over_pods
        return "-".join([*chips, replicas, *over, *suffixes])

    @staticmethod
    def _part_of(key: str, value: object) -> str:
        """Name part for a value that is not the default."""
        if isinstance(value, Lora):
            return value.name
        if key == "topology":
            return f"on{value}"
        if key == "stage_layers" and isinstance(value, tuple):
            return f"layers{'+'.join(map(str, value))}"
        if key in PREFIXED_KEYS and not isinstance(value, float):
            values = value if isinstance(value, tuple) else (value,)
            return "+".join([key, *map(str, values)]).replace("-", "_")
        return (
            _name_part(value)
            if isinstance(value, str)
            else NUMBER_PARTS[key].format(f"{value:.15g}")
        )

    def bubble(self, micro_batches: int) -> Fraction:
        """Pipeline bubble: (pp - 1) / (interleave * micro_batches + pp - 1) of a step [1]."""
        idle_slots = self.pp - 1
        return Fraction(idle_slots, self.interleave * micro_batches + idle_slots)

    def check(self, shape: Shape) -> None:
        """Refuse a plan that a model does not allow.

        Args:
            shape: The model.

        Raises:
            RooflinesError: Heads, experts or layers cannot be shared evenly, or the model has
                layers whose training is not modelled.
        """
        self._check_family(shape)
        check_shares(shape, self.tp)
        heads = shape.attention.N
        if self.context == "heads" and heads % (self.tp * self.cp):
            problem = f"is {self.cp}, which with tp does not divide the {heads} query heads"
            raise RooflinesError("cp", problem, "use fewer chips, or context: ring")
        if self.interleave > 1 and self.pp == 1:
            raise RooflinesError("interleave", "is given without stages", "use pp, or leave it out")
        chunk_layers(shape.layers, self)
        self._check_experts(shape)
        if self.lora is not None:
            self.lora.adapters(shape)

    def _check_family(self, shape: Shape) -> None:
        window = shape.window
        trained_attention(shape)
        for part, is_present in (
            ("hyper-connections", shape.streams is not None),
            ("layers of different sizes", bool(shape.variants)),
            ("experts without weights", shape.moe is not None and shape.moe.zero_experts),
            ("windows with attention of their own", window is not None and window.attention),
            ("strided blocks before a window", window is not None and window.stride),
        ):
            if is_present:
                raise _untrained(part)
        self._check_parts(shape)

    def _check_parts(self, shape: Shape) -> None:
        """Refuse keys that a model's states, indexers or latent experts do not allow."""
        if self.cp > 1 and (reason := whole_sequence_reason(shape)):
            raise RooflinesError("cp", f"is {self.cp}, but {reason}", "write cp=1")
        parts = {
            "states": shape.state is not None,
            "sparse attention": shape.sparse is not None,
            "experts with a latent width": shape.moe is not None and shape.moe.latent is not None,
        }
        present = next((part for part, is_present in parts.items() if is_present), None)
        if self.lora is not None and present:
            problem = f"is {self.lora.rank}, but adapters beside {present} are not modelled"
            raise RooflinesError("lora", problem, "leave it out, or use another model")

    def _check_experts(self, shape: Shape) -> None:
        if not self.is_expert_parallel:
            return
        if shape.moe is None:
            raise RooflinesError("ep", f"is {self.ep}, but the model has no experts", "write ep=1")
        if math.gcd(shape.moe.E, self.pod_stage_chips) % self.ep:
            problem = (
                f"is {self.ep}, which does not divide the {shape.moe.E} experts and tp * cp * dp, "
                f"{self.pod_stage_chips}"
            )
            raise RooflinesError("ep", problem, "use a divisor of both")


def trained_attention(shape: Shape) -> Gqa | Mla:
    """Attention of a model whose training is modelled.

    Raises:
        RooflinesError: It is compressed attention.
    """
    if isinstance(shape.attention, Gqa | Mla):
        return shape.attention
    raise _untrained("compressed attention")


def whole_sequence_reason(shape: Shape) -> str | None:
    """Reason why cp chips cannot share a sequence; None: they can."""
    if shape.state is not None:
        return "a state passes from token to token"
    if shape.sparse is not None:
        return "which tokens chips fetch for sparse attention is unknown"
    return None


def _untrained(part: str) -> RooflinesError:
    """Error for a part of a model whose training is not modelled."""
    return RooflinesError(
        "model", f"has {part}, whose training is not modelled", "use another model"
    )
