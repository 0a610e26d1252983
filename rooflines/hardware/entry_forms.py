"""Types of config and catalogue entries: known keys, checked values, readable mistakes.

Validators raise `RooflinesError` with the problem and its fix; `from_pydantic` converts the errors
that pydantic collects.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    Self,
    TypeVar,
)

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from rooflines.basics.errors import MAX_MISTAKES, Mistakes, RooflinesError, close_to, quote
from rooflines.basics.numbers import MAX_SIZE, number, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_core import ErrorDetails

    from rooflines.basics.errors import KeyPath

MIN_QUANTITY, MAX_QUANTITY = 1e-30, 1e30
"""Limits on rates, capacities and prices; within them no time overflows or underflows."""

MIN_BITS, MAX_BITS = 0.1, 2**20
"""Limits on bits per tensor element [bit]."""

MIN_SHARE = 1e-6
"""Minimum accepted share of a peak [1]."""

MAX_MEASURED_SHARE = 2
"""Maximum accepted measured share of a peak, for a chip above its printed clock [1]."""

UNLIMITED = "unlimited"
"""Domain of a routed network, which is as large as its buyer makes it."""

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,99}")


class Entry(BaseModel):
    """A mapping with known keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    removed_keys: ClassVar[Mapping[str, str]] = {}
    """Messages about keys that earlier versions had, by key."""

    renamed_keys: ClassVar[Mapping[str, str]] = {}
    """New names by the keys that earlier versions had."""

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy with updated fields; cached values are computed again from them."""
        duplicate = super().model_copy(update=update, deep=deep)
        for name in duplicate.__dict__.keys() - type(self).model_fields.keys():
            del duplicate.__dict__[name]
        return duplicate

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: Any) -> Any:  # noqa: ANN401, any YAML value
        if isinstance(value, cls):
            return value
        fields = [field.alias or name for name, field in cls.model_fields.items()]
        if not isinstance(value, Mapping):
            problem = "is empty" if value is None else f"is {quote(value)}, which is no mapping"
            raise RooflinesError("", problem, f"write it with keys: {', '.join(fields)}")
        unknown = (
            [key for key in value if key not in fields]
            if cls.model_config.get("extra") == "forbid"
            else []
        )
        if not unknown:
            return value
        key_errors = {str(key): cls._key_error(key, fields) for key in unknown[:MAX_MISTAKES]}
        return {**{key: value[key] for key in fields if key in value}, **key_errors}

    @classmethod
    def _key_error(cls, key: Any, fields: Sequence[str]) -> RooflinesError:  # noqa: ANN401, any key
        """Error about a key that the entry lacks."""
        if key in cls.removed_keys:
            return RooflinesError("", cls.removed_keys[key], "remove it")
        if key in cls.renamed_keys:
            name = cls.renamed_keys[key]
            error = RooflinesError("", f"is called {name} now", f"write {name}")
            error.cause = name
            return error
        problem = f"is no key here; known are {', '.join(fields)}"
        return RooflinesError("", problem, "correct or remove it", close=close_to(key, fields))


def parse_domain(value: object) -> int | str:
    """Parse a domain: maximum of chips that an interconnect joins [1], or `unlimited`."""
    if value == UNLIMITED:
        return UNLIMITED
    try:
        return whole(value)
    except RooflinesError as error:
        close = close_to(value, (UNLIMITED,)) if isinstance(value, str) else ()
        hint = f"the most chips it joins, from 1 to {MAX_SIZE:,}"
        fix = f"write {hint}, {UNLIMITED} for a routed network, or null if it is not published"
        raise RooflinesError("", error.problem, fix, close=close) from None


def check_name(value: object) -> str:
    """Check a name, which may become part of a path."""
    if not isinstance(value, str) or not NAME.fullmatch(value):
        fix = "use lower-case letters, digits and hyphens, no hyphen first"
        raise RooflinesError("", f"is {quote(value)}, which is no name", fix, value=value)
    return value


def parse_text(value: object) -> str:
    """Parse a text; a date is written out."""
    if type(value) is date:  # YAML reads 2026-08-20 as one
        return value.isoformat()
    if not isinstance(value, str) or (not value.isprintable() and "\n" not in value):
        raise RooflinesError("", f"is {quote(value)}, which is no text", "write text", value=value)
    return value


Positive = Annotated[float, BeforeValidator(number), Field(ge=MIN_QUANTITY, le=MAX_QUANTITY)]
NonNegative = Annotated[float, BeforeValidator(number), Field(ge=0, le=MAX_QUANTITY)]
Bits = Annotated[float, BeforeValidator(number), Field(ge=MIN_BITS, le=MAX_BITS)]
Share = Annotated[float, BeforeValidator(number), Field(ge=MIN_SHARE, le=1)]
MeasuredShare = Annotated[
    float, BeforeValidator(number), Field(ge=MIN_SHARE, le=MAX_MEASURED_SHARE)
]
PositiveInt = Annotated[
    int, BeforeValidator(whole), WithJsonSchema({"type": "integer", "minimum": 1})
]
Domain = Annotated[
    int | Literal["unlimited"],
    BeforeValidator(parse_domain),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"const": UNLIMITED}]}),
]
NAME_SCHEMA: Any = {"type": "string", "pattern": "^[a-z0-9][a-z0-9-]*$"}
Name = Annotated[
    str,
    BeforeValidator(check_name),
    WithJsonSchema(NAME_SCHEMA),
]
Text = Annotated[str, BeforeValidator(parse_text), WithJsonSchema({"type": "string"})]


def is_source(value: object) -> bool:
    """Tell whether a value is text, a list of texts, or either by key."""
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
        fix = "write text, a list of texts, or either for each number by its key"
        raise RooflinesError("", f"is {quote(value)}, which is no source", fix, value=value)
    return value


Source = Annotated[str | list[str] | dict[str, str | list[str]], BeforeValidator(_source)]


def from_pydantic(error: ValidationError) -> RooflinesError:
    """Convert pydantic's errors to mistakes with a problem and a fix."""
    mistakes = Mistakes()
    errors = error.errors(include_url=False)
    misspelt = _misspelt_keys(errors)
    missing: dict[KeyPath, list[str]] = {}
    for single in errors:
        if single["type"] != "missing":
            mistakes.add(_mistake(single))
        elif single["loc"] not in misspelt:
            missing.setdefault(single["loc"][:-1], []).append(str(single["loc"][-1]))
    for place, keys in missing.items():
        fix, typed_fix = (f"add {', '.join(f'{key}{sign}' for key in keys)}" for sign in ":=")
        problem = f"lacks {', '.join(keys)}"
        mistakes.add(RooflinesError(place, problem, fix, typed_fix=typed_fix))
    return RooflinesError.combine(mistakes.by_place.values())


Form = TypeVar("Form", bound=Entry)


def validate_entry(form: type[Form], value: object) -> Form:
    """Validate a YAML value as an entry.

    Args:
        form: The entry's type.
        value: The YAML value.

    Raises:
        RooflinesError: The value is no valid entry.
    """
    try:
        return form.model_validate(value)
    except ValidationError as error:
        raise from_pydantic(error) from None


def _misspelt_keys(errors: Sequence[ErrorDetails]) -> set[tuple[str | int, ...]]:
    """Locations of missing keys that unknown keys may misspell."""
    return {
        (*single["loc"][:-1], name)
        for single in errors
        if single["type"] == "extra_forbidden"
        for name in (*single["input"].close, single["input"].cause)
    }


EXPECTED_TYPES = {
    "dict_type": "a mapping",
    "list_type": "a list",
    "string_type": "text",
    "bool_type": "true or false",
}
"""Expected types by pydantic's error type."""


def _mistake(error: ErrorDetails) -> RooflinesError:
    *steps, last = error["loc"] or ("",)
    if last == "[key]":
        *steps, last = steps
        last = str(last)  # a number as a key is no place in a list
    place, value = (*steps, last), error["input"]
    error_value = value if error["type"] == "extra_forbidden" else error.get("ctx", {}).get("error")
    if isinstance(error_value, RooflinesError):
        return error_value.within(*place)
    if error["type"] == "literal_error":
        expected = error["ctx"]["expected"]
        close = close_to(value, re.findall(r"'([^']*)'", expected))
        return RooflinesError(
            place, f"is {quote(value)}", f"use {expected}", value=value, close=close
        )
    for key, bound in {"ge": "least", "le": "most"}.items():
        if key in error.get("ctx", {}):
            limit = error["ctx"][key]
            excess = f"{'less' if key == 'ge' else 'more'} than {limit:,g}"
            fix = f"write at {bound} {limit:,g}"
            if limit == MIN_QUANTITY:
                excess, fix = "not above zero", "write a number above 0, in SI units without prefix"
            return RooflinesError(place, f"is {quote(value)}, which is {excess}", fix, value=value)
    if expected_type := EXPECTED_TYPES.get(error["type"]):
        fix = f"write {expected_type}" + ", in quotes if YAML reads it as a number" * (
            expected_type == "text"
        )
        return RooflinesError(
            place, f"is {quote(value)}, which is not {expected_type}", fix, value=value
        )
    return RooflinesError(
        place,
        f"is {quote(value)}: {error['msg']}",
        "correct it as config/README.md describes",
        value=value,
    )
