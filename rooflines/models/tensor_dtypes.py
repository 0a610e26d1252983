"""The dtypes that the tensors of a model are stored in, by class of tensors."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from rooflines.basics.errors import RooflinesError, at_path, check_choice, quote
from rooflines.basics.numbers import whole
from rooflines.hardware.dtype_catalogue import Dtype, dtype_entries, stored_bits
from rooflines.hardware.entry_forms import Entry, Text, validate_entry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflines.hardware.dtype_catalogue import Format
    from rooflines.models.architecture import TensorClass

CLASSES: tuple[TensorClass, ...] = ("weights", "experts", "head")
"""The classes of tensors with weights."""

LM_HEAD = "lm_head"
"""The class of the unembedding, where it has another format than the embedding."""

REST = "rest"
"""The class of what is no matrix of a layer, and of routers, where it has a format of its own."""

MAX_ELEMENTS = 2**200
"""More elements than a class of tensors has, whatever its sizes [1]."""


def _weight_class(value: object) -> str:
    check_choice(value, CLASSES, "no class of tensors with weights")
    return str(value)


Elements = Annotated[
    int,
    BeforeValidator(lambda value: whole(value, largest=MAX_ELEMENTS)),
    WithJsonSchema({"type": "integer", "minimum": 1}),
]

WeightClass = Annotated[str, BeforeValidator(_weight_class)]


class ModelDtypes(Entry):
    """Storage dtypes of a model: formats of the dtype catalogue."""

    weights: Dtype = Field(description="of all tensors without a class of their own")
    experts: Dtype | None = Field(default=None, description="of routed experts; null: as weights")
    head: Dtype | None = Field(
        default=None, description="of embedding and unembedding; null: as weights"
    )
    lm_head: Dtype | None = Field(
        default=None,
        description="of the unembedding, which a step reads, where the embedding has another; "
        "null: as head",
    )
    rest: Dtype | None = Field(
        default=None,
        description="of norms, biases, routers and vectors of states, which quantizers leave out; "
        "null: as weights",
    )
    cache: Dtype | None = Field(default=None, description="of the cache")
    mixed: dict[WeightClass, Annotated[dict[Dtype, Elements], Field(min_length=1)]] = Field(
        default_factory=dict,
        description="elements of each format, of classes of tensors that have several [1]",
    )

    @classmethod
    def from_elements(
        cls,
        elements: Mapping[str, Mapping[str, int]],
        cache: str | None,
        lm_head: str | None = None,
        rest: str | None = None,
    ) -> ModelDtypes:
        """Dtypes of a checkpoint from the elements of each format.

        Args:
            elements: By class of tensors, then by format [1].
            cache: The format of the cache; None: not stated.
            lm_head: The format of the unembedding; None: there is none, or it is tied.
            rest: That of norms, biases and routers; None: as weights.
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
        """The dtype of a class of tensors."""
        return getattr(self, tensors) or self.weights

    def joined_names(self, tensors: str) -> str:
        """The dtype of a class of tensors, or its dtypes with `+`."""
        return "+".join(self.mixed.get(tensors, [self.storage_dtypes[tensors]]))

    def bits(self, formats: Mapping[str, Format] | None = None) -> dict[str, Fraction]:
        """Bits per element of each class of tensors as stored, block scales included [bit].

        Classes with several formats have their average; `lm_head` and `rest` are always there.

        Args:
            formats: Those of a dtype catalogue; by default of the project's.
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
        """What to say of each class with several formats, and of an LM head with its own."""
        if self.lm_head is not None:
            yield f"the embedding is {self.dtype_of('head')}, the LM head {self.lm_head}"
        for name, sums in self.mixed.items():
            whole = sum(sums.values())
            parts = (f"{100 * count / whole:.0f}% {dtype}" for dtype, count in sums.items())
            yield f"{name} are {' and '.join(parts)}, on average {float(self.bits()[name]):.2f} bit"

    @property
    def storage_dtypes(self) -> dict[str, str]:
        """The dtype of each class of tensors; without the cache where it is not given."""
        optional = {LM_HEAD: self.lm_head, REST: self.rest, "cache": self.cache}
        stated = {name: dtype for name, dtype in optional.items() if dtype is not None}
        return {name: self.dtype_of(name) for name in CLASSES} | stated


TRAINING_CLASSES = ("gradients", "master", "moments", "saved")
"""The classes of tensors that only training has."""

WIDE, WIDE_BITS = "bf16", 16
"""Formats of fewer bits are of linear kernels in training, all else is in this one [bit]."""

STATE_DTYPE = "fp32"
"""Of gradients and of the states of the optimizer, unless dtypes say otherwise."""


class StepDtypes(ModelDtypes):
    """Dtypes of a step: of all tensors that it moves, and of what it computes in."""

    name: Text | None = Field(default=None, description="its name in tables")
    cache: Dtype = Field(description="of the cache")
    activations: Dtype = Field(description="of what kernels read and write besides")
    combine: Dtype | None = Field(
        default=None, description="in which experts send results back; null: as activations"
    )
    compute: Dtype = Field(description="dtype that the matrix unit multiplies in")
    attention: Dtype | None = Field(
        default=None, description="the same for the products of attention; null: as compute"
    )
    saved: Dtype | None = Field(
        default=None, description="in training, of saved tensors; null: as activations"
    )
    gradients: Dtype | None = Field(
        default=None, description="in training, of the gradients of weights; null: fp32"
    )
    master: Dtype | None = Field(
        default=None, description="in training, of the optimizer's own weights; null: fp32"
    )
    moments: Dtype | None = Field(
        default=None, description="in training, of each of Adam's two moments; null: fp32"
    )

    @property
    def label(self) -> str:
        """Its name in tables: as given, or the dtypes."""
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

    @property
    def storage_dtypes(self) -> dict[str, str]:
        """The dtype of each class of tensors, activations among them."""
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
    def compute_dtypes(self) -> tuple[str, str]:
        """The compute dtypes: of linear kernels, and of attention."""
        return self.compute, self.attention or self.compute


def step_dtypes(form: object) -> StepDtypes:
    """Dtypes of a step from a name, or by class of tensors.

    Args:
        form: A format, which then holds for everything; or a combination of the dtype catalogue,
            such as w4a16: its weights, its compute dtype, and its result's format for token tables,
            activations, caches and the products of attention. Or dtypes by class.

    Raises:
        RooflinesError: It is none of these, or a key is missing.
    """
    if isinstance(form, StepDtypes):
        return form
    if isinstance(form, str):
        catalogue = dtype_entries()
        check_choice(form, catalogue.formats | catalogue.combinations, "no dtype")
        if form in catalogue.formats:
            form = dict.fromkeys(("name", "weights", "cache", "activations", "compute"), form)
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
        raise RooflinesError("", f"is {quote(form)}, which is no dtypes of a model", fix)
    return validate_entry(StepDtypes, form)


def training_dtypes(form: object) -> StepDtypes:
    """Dtypes of a step of training, with all classes that it has.

    Args:
        form: A format, which weights are read and multiplied in; embedding, unembedding, attention
            and activations are bf16 where it is narrower. Or dtypes by class.

    Raises:
        RooflinesError: As `step_dtypes`.
    """
    formats = dtype_entries().formats
    wide = WIDE
    if isinstance(form, str):
        check_choice(form, formats, "no dtype")
        wide = wide if formats[form].bits < WIDE_BITS else form
        form = {"name": form, "weights": form, "compute": form}
    if isinstance(form, Mapping):
        defaults = dict.fromkeys(("weights", "activations", "compute", "head", "attention"), wide)
        defaults |= dict.fromkeys(("gradients", "master", "moments"), STATE_DTYPE)
        form = {**defaults, **{key: value for key, value in form.items() if value is not None}}
        form = {"cache": form["activations"], **form}
    return step_dtypes(form)


def bits_of(dtype: str) -> Fraction:
    """Bits per element of a format, its share of a block's scale included [bit].

    Raises:
        RooflinesError: The dtype catalogue has no such format.
    """
    formats = dtype_entries().formats
    check_choice(dtype, formats, "no dtype")
    return stored_bits(formats[dtype])


def model_dtypes(form: object) -> ModelDtypes:
    """Dtypes from a format's name, which then holds for all tensors, or from dtypes by class.

    Raises:
        RooflinesError: It is neither, or names no format of the dtype catalogue.
    """
    if isinstance(form, ModelDtypes):
        return form
    if isinstance(form, str):
        form = {"weights": form, "cache": form}
    elif not isinstance(form, Mapping):
        fix = "name a format such as bf16, or write {weights: , experts: , head: , cache: }"
        raise RooflinesError("dtypes", f"is {quote(form)}", fix)
    with at_path("dtypes"):
        return validate_entry(ModelDtypes, form)
