"""Storage and compute dtypes of a model, by tensor class."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from rooflines.basics.errors import RooflinesError, at_path, check_choice, quote
from rooflines.basics.numbers import whole
from rooflines.basics.text import whole_percent
from rooflines.hardware.dtype_catalogue import Dtype, dtype_entries, stored_bits
from rooflines.hardware.entry_forms import Entry, Text, validate_entry

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from rooflines.hardware.dtype_catalogue import Format
    from rooflines.models.architecture import TensorClass

CLASSES: tuple[TensorClass, ...] = ("weights", "experts", "head")
"""Tensor classes with weights."""

LM_HEAD = "lm_head"
"""Tensor class of the LM head, where its format differs from the embedding's."""

INPUT = "input"
"""Input of a matmul as its kernel reads it: in the compute format where that has fewer bits than
activations, quantized before. Estimates count it, as the timings behind them do."""

REST = "rest"
"""Tensor class of norms, biases and routers, where their format differs from the weights'."""

MAX_ELEMENTS = 2**200
"""Upper limit on elements in a tensor class [1]."""


def _weight_class(value: object) -> str:
    check_choice(value, CLASSES, "no class of tensors with weights")
    return str(value)


Elements = Annotated[
    int,
    BeforeValidator(lambda value: whole(value, maximum=MAX_ELEMENTS)),
    WithJsonSchema({"type": "integer", "minimum": 1}),
]

WeightClass = Annotated[str, BeforeValidator(_weight_class)]


class ModelDtypes(Entry):
    """Storage dtypes of a model: formats in the dtype catalogue."""

    weights: Dtype = Field(description="dtype of all tensors without a separate class")
    experts: Dtype | None = Field(default=None, description="routed experts; null: as weights")
    head: Dtype | None = Field(default=None, description="embedding and LM head; null: as weights")
    lm_head: Dtype | None = Field(
        default=None,
        description="LM head, where it differs from the embedding; null: as head",
    )
    rest: Dtype | None = Field(
        default=None,
        description="norms, biases, routers and SSM vectors, which quantizers skip; "
        "null: as weights",
    )
    cache: Dtype | None = Field(default=None, description="KV cache")
    mixed: dict[WeightClass, Annotated[dict[Dtype, Elements], Field(min_length=1)]] = Field(
        default_factory=dict,
        description="elements by format, for tensor classes with several formats [1]",
    )

    @classmethod
    def from_elements(
        cls,
        elements: Mapping[str, Mapping[str, int]],
        cache: str | None,
        lm_head: str | None = None,
        rest: str | None = None,
    ) -> ModelDtypes:
        """Build a checkpoint's dtypes from its elements by format.

        Args:
            elements: Elements by tensor class, then by format [1].
            cache: KV cache format; None: not stated.
            lm_head: LM head format; None: there is none, or it is tied.
            rest: Format of norms, biases and routers; None: as weights.
        """
        main = {tensors: max(sums, key=sums.__getitem__) for tensors, sums in elements.items()}
        mixed = {
            tensors: dict(sorted(sums.items(), key=lambda item: -item[1]))
            for tensors, sums in elements.items()
            if len(sums) > 1
        }
        main.setdefault("weights", main.get("experts", main["head"]))
        separate_head = None if lm_head == main["head"] else lm_head
        is_as_weights = rest == main["weights"] and "weights" not in mixed
        return cls(
            **main,
            lm_head=separate_head,
            rest=None if is_as_weights else rest,
            cache=cache,
            mixed=mixed,
        )

    def dtype_of(self, tensors: TensorClass) -> str:
        """Dtype of a tensor class."""
        return getattr(self, tensors) or self.weights

    def joined_names(self, tensors: str) -> str:
        """Dtype of a tensor class; several are joined by `+`."""
        return "+".join(self.mixed.get(tensors, [self.storage_dtypes[tensors]]))

    def bits(self, formats: Mapping[str, Format] | None = None) -> dict[str, Fraction]:
        """Stored bits per element by tensor class, block scales included [bit].

        Classes with several formats have their average; `lm_head` and `rest` are always there.

        Args:
            formats: Formats in a dtype catalogue; by default the project's.
        """
        catalogue = dtype_entries().formats if formats is None else formats
        average = {}
        for name, sums in self.mixed.items():
            sizes = (stored_bits(catalogue[dtype]) * count for dtype, count in sums.items())
            average[name] = sum(sizes, Fraction(0)) / sum(sums.values())
        bits = {
            name: stored_bits(catalogue[dtype]) for name, dtype in self.storage_dtypes.items()
        } | average
        return {LM_HEAD: bits["head"], REST: bits["weights"], **bits}

    def mixed_notes(self) -> Iterator[str]:
        """Notes for classes with several formats, and for an LM head with a separate one."""
        if self.lm_head is not None:
            yield f"the embedding is {self.dtype_of('head')}, the LM head {self.lm_head}"
        for name, sums in self.mixed.items():
            whole = sum(sums.values())
            parts = (f"{whole_percent(count / whole)} {dtype}" for dtype, count in sums.items())
            yield f"{name} are {' and '.join(parts)}, on average {float(self.bits()[name]):.2f} bit"

    @property
    def storage_dtypes(self) -> dict[str, str]:
        """Dtype by tensor class; without the KV cache where it is not given."""
        optional = {LM_HEAD: self.lm_head, REST: self.rest, "cache": self.cache}
        optional_dtypes = {name: dtype for name, dtype in optional.items() if dtype is not None}
        return {name: self.dtype_of(name) for name in CLASSES} | optional_dtypes


TRAINING_CLASSES = ("gradients", "master", "moments", "saved", "saved_inputs")
"""Tensor classes that only training has."""

WIDE, WIDE_BITS = "bf16", 16
"""Format for all but linear kernels, where those have fewer bits [bit]."""

STORAGE_ONLY = re.compile(r"int[2-7]|nf4|int8-g")
"""Formats that engines store weights in, and multiply in `WIDE`."""

STATE_DTYPE = "fp32"
"""Default dtype for gradients and optimizer states."""


class StepDtypes(ModelDtypes):
    """Dtypes of a step: storage of all tensors that it moves, and compute."""

    name: Text | None = Field(default=None, description="name in tables")
    cache: Dtype = Field(description="KV cache")
    activations: Dtype = Field(description="activations that kernels read and write")
    combine: Dtype | None = Field(
        default=None, description="expert results in the combine all-to-all; null: as activations"
    )
    compute: Dtype = Field(description="compute dtype of the matrix unit")
    attention: Dtype | None = Field(
        default=None, description="compute dtype in attention; null: as compute"
    )
    saved: Dtype | None = Field(
        default=None, description="in training, saved activations; null: as activations"
    )
    saved_inputs: Dtype | None = Field(
        default=None,
        description="in training, saved inputs of linear layers, such as fp8; null: as saved",
    )
    gradients: Dtype | None = Field(
        default=None, description="in training, weight gradients; null: fp32"
    )
    master: Dtype | None = Field(
        default=None, description="in training, the optimizer's master weights; null: fp32"
    )
    moments: Dtype | None = Field(
        default=None, description="in training, each of Adam's two moments; null: fp32"
    )

    @property
    def label(self) -> str:
        """Name in tables: as given, or the joined dtypes."""
        if self.name is not None:
            return self.name
        extra_classes = (
            f"{key}:{'+'.join(self.mixed.get(key, [value]))}"
            for key in ("experts", "head", LM_HEAD, REST, "combine", "attention", *TRAINING_CLASSES)
            if (value := getattr(self, key)) is not None
            and (key not in TRAINING_CLASSES or value != STATE_DTYPE)
        )
        parts = ",".join(
            [self.joined_names("weights"), self.cache, self.activations, *extra_classes]
        )
        return f"{parts}@{self.compute}"

    def bits(self, formats: Mapping[str, Format] | None = None) -> dict[str, Fraction]:
        """Stored bits per element by tensor class, as `ModelDtypes.bits`, and of `INPUT` [bit]."""
        bits = super().bits(formats)
        compute = (dtype_entries().formats if formats is None else formats)[self.compute]
        return {**bits, INPUT: min(bits["activations"], stored_bits(compute))}

    @property
    def storage_dtypes(self) -> dict[str, str]:
        """Dtype by tensor class, activations included."""
        combine = self.combine or self.activations
        training_classes = {
            key: value for key in TRAINING_CLASSES if (value := getattr(self, key)) is not None
        }
        return {
            **super().storage_dtypes,
            "activations": self.activations,
            "combine": combine,
            **training_classes,
        }

    @property
    def is_narrow(self) -> bool:
        """True for weights with fewer bits than `WIDE_BITS`."""
        return dtype_entries().formats[self.weights].bits < WIDE_BITS

    @property
    def compute_dtypes(self) -> tuple[str, str]:
        """Compute dtypes: linear kernels, attention."""
        return self.compute, self.attention or self.compute


def step_dtypes(form: object) -> StepDtypes:
    """Parse dtypes of a step from a name, or by tensor class.

    Args:
        form: A format, as `format_dtypes` reads it; or a combination in the dtype catalogue, such
            as w4a16: its weights, its compute dtype, and its output format for token tables,
            activations, KV cache and attention. Or dtypes by class.

    Raises:
        RooflinesError: It is none of these, or a key is missing.
    """
    if isinstance(form, StepDtypes):
        return form
    if isinstance(form, str):
        catalogue = dtype_entries()
        check_choice(form, catalogue.formats | catalogue.combinations, "no dtype")
        if form in catalogue.formats:
            form = format_dtypes(form)
        else:
            combination = catalogue.combinations[form]
            result_classes = dict.fromkeys(
                ("head", "cache", "activations", "attention"), combination.out
            )
            form = {
                "name": form,
                "weights": combination.w,
                **result_classes,
                "compute": combination.compute,
            }
    elif not isinstance(form, Mapping):
        fix = "name a format such as bf16, or write {weights: , cache: , activations: , compute: }"
        raise RooflinesError(
            "", f"is {quote(form)}, which is no dtypes of a model", fix, value=form
        )
    return validate_entry(StepDtypes, form)


def format_dtypes(form: str, computed: Collection[str] = (WIDE,)) -> dict[str, str]:
    """Dtypes by class for a model in one format, as checkpoints and engines have them.

    A format with 16 bits or more is that of everything. A narrow one is that of linear weights,
    experts and their matmuls. Token tables, KV cache, activations and attention have 16 bits, and
    so have matmuls where the format is for storage only.

    Args:
        form: A format in the dtype catalogue.
        computed: Formats that the chips compute in: `WIDE`, else fp16 for what has 16 bits. Without
            both, attention is computed in the narrow format.
    """
    if dtype_entries().formats[form].bits >= WIDE_BITS:
        return dict.fromkeys(("name", "weights", "cache", "activations", "compute"), form)
    wide = next((name for name in (WIDE, "fp16") if name in computed), None)
    wide_classes = dict.fromkeys(("head", "cache", "activations"), wide or WIDE)
    compute = wide if wide and STORAGE_ONLY.match(form) else form
    return {
        "name": form,
        "weights": form,
        **wide_classes,
        "compute": compute,
        "attention": wide or form,
    }


def training_dtypes(form: object) -> StepDtypes:
    """Parse dtypes of a training step, with all its tensor classes.

    Args:
        form: A format, as `format_dtypes` reads it. Or dtypes by class.

    Raises:
        RooflinesError: As `step_dtypes`.
    """
    if isinstance(form, str):
        check_choice(form, dtype_entries().formats, "no dtype")
        form = format_dtypes(form)
        form = {"head": form["weights"], "attention": form["compute"], **form}
    if isinstance(form, Mapping):
        defaults = dict.fromkeys(("weights", "activations", "compute", "head", "attention"), WIDE)
        defaults |= dict.fromkeys(("gradients", "master", "moments"), STATE_DTYPE)
        form = {**defaults, **{key: value for key, value in form.items() if value is not None}}
        form = {"cache": form["activations"], **form}
    return step_dtypes(form)


def bits_of(dtype: str) -> Fraction:
    """Bits per element in a format, with its share of the block scale [bit].

    Raises:
        RooflinesError: The dtype catalogue has no such format.
    """
    formats = dtype_entries().formats
    check_choice(dtype, formats, "no dtype")
    return stored_bits(formats[dtype])


def model_dtypes(form: object) -> ModelDtypes:
    """Parse dtypes from a format, as `format_dtypes` reads it, or by tensor class.

    Raises:
        RooflinesError: It is neither, or names no format of the dtype catalogue.
    """
    if isinstance(form, ModelDtypes):
        return form
    if isinstance(form, str):
        with at_path("dtypes"):
            check_choice(form, dtype_entries().formats, "no dtype")
        dtypes = format_dtypes(form)
        form = {key: dtypes[key] for key in ("weights", "head", "cache") if key in dtypes}
    elif not isinstance(form, Mapping):
        fix = "name a format such as bf16, or write {weights: , experts: , head: , cache: }"
        raise RooflinesError("dtypes", f"is {quote(form)}", fix, value=form)
    with at_path("dtypes"):
        return validate_entry(ModelDtypes, form)
