"""Altair and polars, imported when they are first used: reading a config waits for neither."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["alt", "pl"]


class Lazy(ModuleType):
    """A stand-in for a module, which it imports with its first attribute.

    It is not in `sys.modules`, unlike a module of `importlib.util.LazyLoader`: threads never see a
    module that is only half there.
    """

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401, any name of the module
        """The attribute of the module."""
        return getattr(import_module(self.__name__), name)


if TYPE_CHECKING:
    import altair as alt
    import polars as pl
else:
    alt, pl = Lazy("altair"), Lazy("polars")
