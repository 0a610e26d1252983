"""Lists in a config (chip counts and networks among them), checked and in one form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BeforeValidator
from pydantic_core.core_schema import no_info_before_validator_function

from rooflines.basics.errors import Mistakes, RooflinesError, at_path, quote
from rooflines.hardware.entry_forms import NAME_SCHEMA, check_name
from rooflines.models.split import AXES_SCHEMA, chips_along_axes
from rooflines.theory.network import LEVEL_SEPARATOR

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic_core import CoreSchema

    from rooflines.hardware.entry_forms import Entry

MAX_LIST_ENTRIES = 100_000

LEVELS = 2
"""The most levels of a network [1]."""

COUNT_SCHEMA: Any = {"type": "integer", "minimum": 1}


def one_or_many(item: dict[str, Any]) -> dict[str, Any]:
    """JSON Schema for a value, or a list."""
    return {"anyOf": [item, {"type": "array", "items": item, "minItems": 1, "uniqueItems": True}]}


ROUTE_SCHEMA: Any = {"type": "array", "items": NAME_SCHEMA, "minItems": 1, "maxItems": LEVELS}
NETWORK_SCHEMA: Any = {
    "anyOf": [
        NAME_SCHEMA,
        ROUTE_SCHEMA,
        {"type": "array", "items": {"anyOf": [NAME_SCHEMA, ROUTE_SCHEMA]}, "minItems": 1},
        {"type": "null"},
    ]
}
SHARDS_SCHEMA = one_or_many(AXES_SCHEMA)


@dataclass(frozen=True)
class Listed:
    """Annotates a list that may be written as its only value; see `as_list`.

    The JSON Schema follows from the type of the items. Null stays null where the type has it.

    Attributes:
        may_be_empty: Whether it may be an empty list.
    """

    may_be_empty: bool = False

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """The list is made before its type is checked."""
        inner = handler(source)
        nulls: list[object] = [None] if inner["type"] == "nullable" else []
        if self.may_be_empty:
            nulls.append([])
        return no_info_before_validator_function(
            lambda value: value if value in nulls else as_list(value), inner
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """An item, or a list of items."""
        schema_of_items = handler(schema)
        array, *null = schema_of_items.get("anyOf", [schema_of_items])
        least = {"minItems": 0} if self.may_be_empty else {}
        item, several = one_or_many(array["items"])["anyOf"]
        return {"anyOf": [item, {**several, **least}, *null]}


def as_list(value: object) -> object:
    """A single value as a list; a list must be non-empty and without duplicates."""
    values = value if isinstance(value, list) else [value]
    if not values:
        fix = "name at least one, or leave the key out where it has a default"
        raise RooflinesError("", "is an empty list, which leaves nothing to compute", fix)
    if len(values) > MAX_LIST_ENTRIES:
        raise RooflinesError(
            "", f"has {len(values):,} entries", f"name at most {MAX_LIST_ENTRIES:,}"
        )
    return unique(values)


def unique(values: object, fix: str = "name it once") -> object:
    """A list without duplicates; anything else as it is."""
    if isinstance(values, list):
        seen: set[Any] = set()
        with Mistakes() as mistakes:
            for index, value in enumerate(values):
                is_number = isinstance(value, int | float) and not isinstance(value, bool)
                ordered = sorted(value.items(), key=repr) if isinstance(value, Mapping) else value
                key = value if is_number else repr(ordered)  # 1 and 1.0 are one number
                if key in seen:
                    problem = f"is {quote(value)}, which is listed twice"
                    mistakes.add(RooflinesError(index, problem, fix))
                seen.add(key)
    return values


def text_or(form: type[Entry]) -> BeforeValidator:
    """Annotates a name, or the entry that a mapping describes."""
    keys = [key for key, field in form.model_fields.items() if not field.exclude]

    def named(value: object) -> object:
        if isinstance(value, str):
            return value
        if not isinstance(value, Mapping | form):
            fix = f"write a name, in quotes, or {{{', '.join(f'{key}: ' for key in keys)}}}"
            raise RooflinesError("", f"is {quote(value)}, which is no name", fix, value=value)
        return form.model_validate(value)

    return BeforeValidator(named)


def numbers_of_chips(value: object) -> object:
    """Chip counts as a list; a product of axes is text."""
    counts = []
    with Mistakes() as mistakes:
        for index, count in enumerate(value if isinstance(value, list) else [value]):
            with mistakes.at(*([index] if isinstance(value, list) else [])):
                counts.append(chips_along_axes(count))
    return as_list(counts)


def networks(value: object) -> object:
    """Networks as a list: one route per entry, over one interconnect or two (inner, outer)."""
    if value is None:
        return None
    nested = isinstance(value, list) and any(isinstance(route, list) for route in value)
    routes = value if nested and isinstance(value, list) else [value]
    named = [route if isinstance(route, list) else [route] for route in routes]
    with Mistakes() as mistakes:
        for index, names in enumerate(named):
            with mistakes.at(*([index] if nested else [])):
                _check_route(names)
                for position, name in enumerate(names):
                    with at_path(*([position] if len(names) > 1 else [])):
                        _check_network(name)
    return unique(named)


def _check_network(name: object) -> None:
    if isinstance(name, str) and LEVEL_SEPARATOR in name:
        fix = f"write inner and outer as a list, [{', '.join(name.split(LEVEL_SEPARATOR))}]"
        raise RooflinesError("", f"is {quote(name)}, which is no name", fix, value=name)
    check_name(name)


def _check_route(names: list[object]) -> None:
    if not 1 <= len(names) <= LEVELS:
        problem = f"has {len(names)} networks"
        raise RooflinesError("", problem, "name one, or two: inner, outer")
    if len(names) == LEVELS and names[0] == names[1]:
        problem = f"is {quote(names)}, two levels of one network"
        raise RooflinesError("", problem, "name the inner and the outer one, or one alone")
