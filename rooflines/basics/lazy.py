"""Quick processes: modules imported on first use, garbage collected seldom."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["GARBAGE_THRESHOLDS", "alt", "lazy_attributes", "pl"]

GARBAGE_THRESHOLDS = (200_000, 20, 20)
"""Garbage collector thresholds in commands and jobs; Python's defaults are 700, 10 and 10."""


def lazy_attributes(
    package: str, homes: Mapping[str, Sequence[str]], *eager: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make `__getattr__` and `__dir__` of a package that imports public names on first use.

    Args:
        package: The package.
        homes: Public names by module; a module without names is public itself.
        eager: Public names that the package imports at once.
    """
    module_by_name = {name: home for home, names in homes.items() for name in names or (home,)}
    public = sorted([*module_by_name, *eager])

    def get_attribute(name: str) -> Any:  # noqa: ANN401, any of the names
        if name == "__all__":
            return public
        if name not in module_by_name:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"{package}.{module_by_name[name]}")
        attribute = module if name == module_by_name[name] else getattr(module, name)
        setattr(sys.modules[package], name, attribute)
        return attribute

    return get_attribute, lambda: public


class Lazy(ModuleType):
    """Stand-in for a module, imported with its first attribute.

    It is not in `sys.modules`, unlike a module from `importlib.util.LazyLoader`: threads never see
    a half-loaded module.
    """

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401, any name of the module
        """Attribute of the module."""
        return getattr(import_module(self.__name__), name)


if TYPE_CHECKING:
    import altair as alt
    import polars as pl
else:
    alt, pl = Lazy("altair"), Lazy("polars")
