"""Catalogue entries from the cache: validated once, then built without validation."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pydantic import VERSION

from rooflines.basics.cache import TYPE, Codec, cached
from rooflines.hardware.entry_forms import Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from pydantic.fields import FieldInfo

Data = TypeVar("Data")


def cached_entries(
    name: str,
    sources: Sequence[Path],
    read: Callable[[], Data],
    types: Collection[type[Entry | dict[str, Any]]],
) -> Data:
    """Entries from the cache, else read and validated.

    Args:
        name: Name in the cache.
        sources: Files that decide the entries.
        read: Reads and validates the entries; raises for a mistake, so that none is in the cache.
        types: Entry types, and mapping types besides dict.
    """
    builders = {form.__name__: _builder(form) for form in types}
    return cached(name, sources, read, Codec(_mapping_of, builders, VERSION))


def _builder(form: type[Entry | dict[str, Any]]) -> Callable[[dict[str, Any]], Any]:
    """Function that builds a value from its fields, which were validated.

    An entry is what `model_construct` makes of the fields, which looks at the signature of a
    default's factory in every entry.
    """
    if not issubclass(form, Entry):
        return form
    if form.model_config.get("extra") != "forbid" or form.__pydantic_post_init__:
        return lambda fields: form.model_construct({*fields}, **fields)
    optional = {name: field for name, field in form.model_fields.items() if not field.is_required()}
    shared = {name: field.default for name, field in optional.items() if _is_shared(field.default)}
    factories = {name: _maker(field) for name, field in optional.items() if name not in shared}
    empty = {**dict.fromkeys(form.model_fields), **shared}
    set_attribute = object.__setattr__  # an entry is frozen

    def build(fields: dict[str, Any]) -> Entry:
        values = {**empty, **fields}
        for name, make in factories.items():
            if name not in fields:
                values[name] = make()
        entry = form.__new__(form)
        set_attribute(entry, "__dict__", values)
        set_attribute(entry, "__pydantic_fields_set__", {*fields})
        set_attribute(entry, "__pydantic_extra__", None)
        set_attribute(entry, "__pydantic_private__", None)
        return entry

    return build


def _maker(default: FieldInfo) -> Callable[[], Any]:
    """Function that makes a field's default for one entry."""
    if isinstance(factory := default.default_factory, type):
        return cast("type[Any]", factory)
    return partial(default.get_default, call_default_factory=True, validated_data={})


def _is_shared(default: object) -> bool:
    """Tell whether entries share a default value: it is given and cannot change."""
    return default is None or isinstance(default, bool | int | float | str)


def _mapping_of(value: object) -> dict[str, Any] | None:
    """Mapping with the fields that were set in an entry, or with the items in a dict subclass."""
    if isinstance(value, Entry):
        parts = {name: part for name, part in value if name in value.model_fields_set}
    elif isinstance(value, dict):
        parts = value
    else:
        return None
    return {TYPE: type(value).__name__, **parts}
