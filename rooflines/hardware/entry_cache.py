"""Catalogue entries from the cache: validated once, then built without validation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import VERSION

from rooflines.basics.cache import TYPE, Codec, cached
from rooflines.hardware.entry_forms import Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

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
    """Function that builds a value from its fields, which were validated."""
    if issubclass(form, Entry):
        return lambda fields: form.model_construct({*fields}, **fields)
    return form


def _mapping_of(value: object) -> dict[str, Any] | None:
    """Mapping with the fields that were set in an entry, or with the items in a dict subclass."""
    if isinstance(value, Entry):
        parts = {name: part for name, part in value if name in value.model_fields_set}
    elif isinstance(value, dict):
        parts = value
    else:
        return None
    return {TYPE: type(value).__name__, **parts}
