"""The forms of catalogue and config entries: typed, unknown keys refused, every number with a place for its source.

Validators raise `RooflinesError` with what is wrong and how to mend it; `readable` turns what pydantic collects into one of those.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    Self,
    TypeGuard,
    Union,
    get_args,
    get_origin,
)

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    create_model,
    model_validator,
)

from rooflines.basics.errors import (
    MOST_COLLECTED,
    Mistakes,
    Partial,
    RooflinesError,
    close_to,
    quote,
)
from rooflines.basics.numbers import number, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_core import ErrorDetails

__all__ = [
    "Chip",
    "Entry",
    "Format",
    "Name",
    "NamedCombination",
    "Positive",
    "Source",
    "Sourced",
    "checked_name",
    "is_entry",
    "is_source",
    "numbers_of",
    "parts_of",
    "readable",
    "understood",
]

SMALLEST, LARGEST = 1e-30, 1e30
"""Rates, capacities and prices beyond these are slips; within them no time overflows or underflows."""

LEAST_BITS, MOST_BITS = 0.1, 2**20
"""Of one element of a tensor [bit]."""

LEAST_SHARE = 1e-6
"""The least share of a peak that anybody reaches [1]."""

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,99}")


class Entry(BaseModel):
    """A mapping with known keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, given: Any) -> Any:  # noqa: ANN401, whatever stands in the file
        if isinstance(given, cls):
            return given
        fields = [field.alias or name for name, field in cls.model_fields.items()]
        if not isinstance(given, Mapping):
            raise RooflinesError(
                "",
                f"is {quote(given)}, which is no mapping",
                f"write it with keys: {', '.join(fields)}",
            )
        unknown = (
            [key for key in given if key not in fields]
            if cls.model_config.get("extra") == "forbid"
            else []
        )
        if not unknown:
            return given
        problem = f"is no key here; known are {', '.join(fields)}"
        refused = {
            str(key): RooflinesError(
                "", problem, "correct or remove it", close=close_to(key, fields)
            )
            for key in unknown[:MOST_COLLECTED]
        }
        return {**{key: given[key] for key in fields if key in given}, **refused}


def _positive(value: object) -> int | float:
    given = number(value)
    if given <= 0:
        raise RooflinesError(
            "",
            f"is {quote(value)}, which is not above zero",
            "write a number above zero, in SI units without prefix",
        )
    if not SMALLEST <= given <= LARGEST:
        raise RooflinesError(
            "",
            f"is {quote(value)}, which no part of a chip has",
            f"write a number from {SMALLEST:g} to {LARGEST:g}",
        )
    return given


def _not_negative(value: object) -> int | float:
    given = number(value)
    if given and not SMALLEST <= given <= LARGEST:
        raise RooflinesError(
            "",
            f"is {quote(value)}, which no time is",
            f"write 0, or a number from {SMALLEST:g} to {LARGEST:g}",
        )
    return given


def _bits(value: object) -> int | float:
    given = number(value)
    if not LEAST_BITS <= given <= MOST_BITS:
        raise RooflinesError(
            "",
            f"is {quote(value)}, which no element takes",
            f"write a number from {LEAST_BITS:g} to {MOST_BITS:,}",
        )
    return given


def _share(value: object) -> int | float:
    given = number(value)
    if not LEAST_SHARE <= given <= 1:
        raise RooflinesError(
            "",
            f"is {quote(value)}, which is no share of a peak",
            f"write a number from {LEAST_SHARE:f} to 1",
        )
    return given


def _count(value: object) -> int:
    return whole(value)


def checked_name(value: object) -> str:
    """A name, which may become a part of a path."""
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise RooflinesError(
            "",
            f"is {quote(value)}, which is no name",
            "use lower-case letters, digits and hyphens, no hyphen first",
        )
    return value


def _text(value: object) -> str:
    if not isinstance(value, str) or (not value.isprintable() and "\n" not in value):
        raise RooflinesError("", f"is {quote(value)}, which is no text", "write text")
    return value


def is_source(value: object) -> bool:
    """Whether a value is text, a list of texts, or either by key."""
    keys, parts = (
        (list(value), list(value.values())) if isinstance(value, Mapping) else ([], [value])
    )
    texts = [
        *keys,
        *(text for part in parts for text in (part if isinstance(part, list) else [part])),
    ]
    return all(isinstance(text, str) for text in texts)


def _source(value: object) -> object:
    if not is_source(value):
        raise RooflinesError(
            "",
            f"is {quote(value)}, which is no source",
            "write text, a list of texts, or either for each number by its key",
        )
    return value


NUMBER_SCHEMA = {
    "anyOf": [{"type": "number"}, {"type": "string", "pattern": r"^[0-9.]+[eE][+-]?[0-9]+$"}]
}

Positive = Annotated[
    float, BeforeValidator(_positive), WithJsonSchema({**NUMBER_SCHEMA, "exclusiveMinimum": 0})
]
NotNegative = Annotated[
    float, BeforeValidator(_not_negative), WithJsonSchema({**NUMBER_SCHEMA, "minimum": 0})
]
Bits = Annotated[
    float,
    BeforeValidator(_bits),
    WithJsonSchema({**NUMBER_SCHEMA, "minimum": LEAST_BITS, "maximum": MOST_BITS}),
]
Share = Annotated[
    float,
    BeforeValidator(_share),
    WithJsonSchema({**NUMBER_SCHEMA, "exclusiveMinimum": 0, "maximum": 1}),
]
Count = Annotated[int, BeforeValidator(_count), WithJsonSchema({"type": "integer", "minimum": 1})]
Name = Annotated[
    str,
    BeforeValidator(checked_name),
    WithJsonSchema({"type": "string", "pattern": "^[a-z0-9][a-z0-9-]*$"}),
]
Text = Annotated[str, BeforeValidator(_text), WithJsonSchema({"type": "string"})]
Source = Annotated[str | list[str] | dict[str, str | list[str]], BeforeValidator(_source)]
Confidence = Literal["vendor", "vendor-quoted", "book", "secondary", "derived", "measured"]


class Sourced(Entry):
    """An entry that holds numbers: where they come from, and how sure they are."""

    source: Source | None = Field(
        None,
        description="ids of `sources:`, or free text; or a mapping from each number's key to its own",
    )
    confidence: Confidence | None = Field(None, description="how the number was read")
    estimate: bool = Field(default=False, description="whether it is an estimate")
    note: Text | None = Field(None, description="what else to know, such as what other sources say")


class Peak(Sourced):
    """The dense peak of a compute unit in one compute dtype."""

    flops_per_s: Positive = Field(description="dense peak, a multiply-add counted as two [FLOP/s]")
    printed_with_sparsity: Positive | None = Field(
        None, description="the with-sparsity figure that is printed, never used [FLOP/s]"
    )
    halved: bool = Field(
        default=False, description="whether flops_per_s is half of the printed with-sparsity figure"
    )


class Level(Sourced):
    """A memory level."""

    bytes_per_s: Positive | None = Field(
        None, description="bandwidth to the compute units, decimal [byte/s]"
    )
    capacity_bytes: Positive | None = Field(None, description="capacity [byte]")
    technology: Text | None = Field(None, description="what it is made of, such as HBM3e or GDDR7")


class Network(Sourced):
    """An interconnect."""

    bytes_per_s: Positive = Field(description="bandwidth of one link, one way [byte/s]")
    links: Count = Field(1, description="links of one chip [1]")
    topology: Literal["switch", "mesh", "torus"] = Field(
        description="switch: all links usable at once; mesh: one link to every other chip; torus: a line, or a ring where it closes"
    )
    domain: Count | None = Field(
        None,
        description="the most chips one of these joins (torus: along one axis) [1]; null: no limit known",
    )
    ring_multiple: Count | None = Field(
        None, description="torus: the axis closes into a ring where N is a multiple of this [1]"
    )
    hop_latency_s: NotNegative = Field(0, description="time of one hop of a collective [s]")

    @model_validator(mode="after")
    def _fits_topology(self) -> Self:
        if self.topology == "mesh" and self.domain is not None and self.domain > self.links + 1:
            problem = f"is {self.domain}, but a mesh of {self.links} links joins {self.links + 1} chips at most"
            raise RooflinesError(
                "domain",
                problem,
                "give as many links as there are other chips, or a smaller domain",
            )
        if self.topology != "torus" and self.ring_multiple is not None:
            raise RooflinesError(
                "ring_multiple",
                f"is given for a {self.topology}",
                "leave it out: only a torus closes into rings",
            )
        return self


class Power(Sourced):
    """What a chip draws."""

    watts: Positive = Field(description="design power [W]")


class Price(Sourced):
    """What an hour of a chip costs."""

    usd_per_hour: Positive = Field(description="for one chip [USD/h]")
    provider: Text = Field(description="who sells it")
    sku: Text | None = Field(None, description="what is sold")
    date: Text = Field(description="when it was the price")


class Measured(Sourced):
    """What a chip was seen to reach; for information, never applied."""

    what: Text = Field(description="what was measured")
    fraction_of_peak: Share = Field(description="share of the nominal peak or rate [1]")


class Efficiency(Entry):
    """Shares of the nominal rates that are reached."""

    math: Share | None = Field(None, description="of the compute unit's peak [1]")
    memory: Share | None = Field(None, description="of the memory level's bandwidth [1]")
    network: Share | None = Field(None, description="of the interconnect's bandwidth [1]")


class Calibration(Efficiency):
    """What was fitted to measurements of a chip in one compute dtype; it gives `t_estimate_s` and nothing else."""

    overhead_s: NotNegative = Field(
        0, description="fixed time that every operation takes on top [s]"
    )


class Chip(Sourced):
    """A chip: what its parts can do."""

    name: Text | None = Field(None, description="its full name")
    vendor: Text | None = Field(None, description="who makes it")
    year: Count | None = Field(None, description="when it came")
    status: Text | None = Field(None, description="whether it can be had")
    aliases: list[Text] | None = Field(None, description="other names")
    base: Name | None = Field(None, description="the chip it is a variant of")
    plausible: list[Text] | None = Field(
        None,
        exclude=True,
        description="dotted paths of numbers that are meant although they look like a slip; for a config's own chips",
    )
    units: dict[Literal["matrix", "vector"], dict[Name, Peak]] = Field(
        description="dense peaks by compute unit and compute dtype"
    )
    memory: dict[Name, Level] = Field(
        description="memory levels; hbm is the main memory, whatever its technology"
    )
    networks: dict[Name, Network] = Field(
        {}, description="interconnects; the first is the one used unless a sweep says otherwise"
    )
    power: Power | None = Field(None, description="power")
    prices: list[Price] | None = Field(None, description="dated prices")
    measured: list[Measured] | None = Field(
        None, description="achieved shares of peak, for information"
    )
    efficiency: Efficiency | None = Field(
        None, description="shares of the nominal rates that are reached, for every dtype"
    )
    calibration: dict[Name, Calibration] | None = Field(
        None, description="fitted efficiencies and overhead by compute dtype"
    )


class Format(Entry):
    """A number format as it is stored."""

    bits: Bits = Field(description="bits of one element [bit]")
    scale_bits: Count | None = Field(None, description="bits of a block's scale [bit]")
    block: Count | None = Field(None, description="elements that share one scale [1]")
    note: Text | None = None
    source: Source | None = None


class NamedCombination(Entry):
    """What the tensors are stored in, and what the unit computes in."""

    x: Name = Field(description="format of the first operand, the activations")
    w: Name = Field(description="format of the second operand, the weights")
    out: Name = Field(description="format of the result")
    compute: Name = Field(
        description="dtype that the unit multiplies in; the chip needs a peak for it"
    )
    note: Text | None = None


def plain_type(annotation: Any) -> Any:  # noqa: ANN401, Python has no type of types that covers unions
    """The type of a field without None and without what validates it."""
    if get_origin(annotation) is Annotated:
        return plain_type(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        kinds = [plain_type(kind) for kind in get_args(annotation) if kind is not NoneType]
        return kinds[0] if len(kinds) == 1 else annotation
    return annotation


def parts_of(kind: type[Entry]) -> dict[str, Any]:
    """The types of the entries, and of the mappings of entries, that a kind of entry can have, by key."""
    types = {name: plain_type(field.annotation) for name, field in kind.model_fields.items()}
    return {name: of for name, of in types.items() if get_origin(of) is dict or is_entry(of)}


def is_entry(kind: object) -> TypeGuard[type[Entry]]:
    """Whether a type is a kind of entry."""
    return isinstance(kind, type) and issubclass(kind, Entry)


def numbers_of(kind: type[Entry]) -> list[str]:
    """The keys of the numbers that a kind of entry can have."""
    return [
        name
        for name, field in kind.model_fields.items()
        if plain_type(field.annotation) in (int, float)
    ]


def path_of(location: tuple[str | int, ...]) -> str:
    """A key path such as `sweeps.mlp.chips[1]`."""
    path = ""
    for step in location:
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else step
    return path


def readable(error: ValidationError) -> RooflinesError:
    """What pydantic found, as mistakes of ours."""
    mistakes = Mistakes()
    found = error.errors(include_url=False)
    misspelt = _misspelt(found)
    missing: dict[str, list[str]] = {}
    for single in found:
        if single["type"] != "missing":
            mistakes.add(_readable(single))
        elif single["loc"] not in misspelt:
            missing.setdefault(path_of(single["loc"][:-1]), []).append(str(single["loc"][-1]))
    for place, keys in missing.items():
        mistakes.add(
            RooflinesError(
                place, f"lacks {', '.join(keys)}", f"add {', '.join(f'{key}:' for key in keys)}"
            )
        )
    return RooflinesError.of(mistakes.found.values())


def understood(form: type[Entry], given: object, mistakes: Mistakes) -> Partial:
    """An entry as plain data, as far as it is right.

    Args:
        form: What it should be.
        given: What stands there.
        mistakes: Collects what is wrong with it.

    Returns:
        The keys that are right, and defaults for those left out; asking for another key raises an error without mistakes.

    Raises:
        RooflinesError: It is no mapping.
    """
    try:
        return Partial(form.model_validate(given).model_dump(), ())
    except ValidationError as error:
        if not isinstance(given, Mapping):
            raise readable(error) from None
        mistakes.add(readable(error))
        found = error.errors(include_url=False)
    wrong = {str(single["loc"][0]) for single in found}
    refused = wrong | {
        str(location[0])
        for location in _misspelt(found)
        if len(location) == 1 and location[0] not in given
    }
    right: dict[str, Any] = {
        name: (field.annotation, field)
        for name, field in form.model_fields.items()
        if name not in refused
    }
    part = create_model(form.__name__, __base__=Entry, **right)
    return Partial(
        part.model_validate({key: given[key] for key in right if key in given}).model_dump(),
        refused,
    )


def _misspelt(found: Sequence[ErrorDetails]) -> set[tuple[str | int, ...]]:
    """Where the keys would be that unknown keys may have been meant for."""
    return {
        (*single["loc"][:-1], name)
        for single in found
        if single["type"] == "extra_forbidden"
        for name in single["input"].close
    }


def _readable(found: ErrorDetails) -> RooflinesError:
    place = path_of(tuple(step for step in found["loc"] if step != "[key]"))
    ours = (
        found["input"] if found["type"] == "extra_forbidden" else found.get("ctx", {}).get("error")
    )
    if isinstance(ours, RooflinesError):
        return ours.within(place)
    value = found["input"]
    if found["type"] == "literal_error":
        expected = found["ctx"]["expected"]
        return RooflinesError(
            place,
            f"is {quote(value)}",
            f"use {expected}",
            close=close_to(value, re.findall(r"'([^']*)'", expected)),
        )
    kinds = {
        "dict_type": "a mapping",
        "list_type": "a list",
        "string_type": "text",
        "bool_type": "true or false",
    }
    wanted = kinds.get(found["type"])
    if wanted:
        return RooflinesError(place, f"is {quote(value)}, which is not {wanted}", f"write {wanted}")
    return RooflinesError(
        place, f"is {quote(value)}: {found['msg']}", "correct it as config/README.md describes"
    )
