"""Altair and polars, imported when they are first used: reading a config waits for neither."""

from __future__ import annotations

import sys
from importlib.util import LazyLoader, find_spec, module_from_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["alt", "pl"]


def lazy(name: str) -> ModuleType:
    """A module whose code runs when an attribute of it is first used.

    Raises:
        ModuleNotFoundError: It is not installed.
    """
    if name in sys.modules:
        return sys.modules[name]
    spec = find_spec(name)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(name=name)
    spec.loader = LazyLoader(spec.loader)
    sys.modules[name] = module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if TYPE_CHECKING:
    import altair as alt
    import polars as pl
else:
    alt, pl = lazy("altair"), lazy("polars")
