"""Rooflines of whole grids at once.

At which size is an operation compute-bound, on which chip, and what would change it?


    >>> import rooflines
    >>> config = rooflines.load_config()                   # the default, or a path, or a mapping
    >>> rooflines.rows(config, "book-matmul").collect()      # the rows of a sweep
    >>> rooflines.thresholds(config)                       # from which size it is compute-bound

Source of the model: All About Rooflines, a chapter of How to Scale Your Model.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rooflines.basics.version import __version__

if TYPE_CHECKING:
    from rooflines.api import chips, columns, dtypes, rows, skipped, thresholds
    from rooflines.basics.errors import PlausibilityWarning, RooflinesError
    from rooflines.config import Config, load_config
    from rooflines.results.provenance import Origin, origin
    from rooflines.results.tables import scan

__all__ = [
    "Config",
    "Origin",
    "PlausibilityWarning",
    "RooflinesError",
    "__version__",
    "chips",
    "columns",
    "dtypes",
    "load_config",
    "origin",
    "rows",
    "scan",
    "skipped",
    "thresholds",
]

HOMES = {
    "Config": "config",
    "load_config": "config",
    "PlausibilityWarning": "basics.errors",
    "RooflinesError": "basics.errors",
    "Origin": "results.provenance",
    "origin": "results.provenance",
    "scan": "results.tables",
}
"""Where names live that are not in `api`."""


def __getattr__(name: str) -> Any:  # noqa: ANN401, any of the names above
    """Names are loaded when they are first used: planning a workflow does not wait for polars."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{HOMES.get(name, 'api')}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
