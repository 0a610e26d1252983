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

from rooflines.basics.version import __version__ as __version__

if TYPE_CHECKING:
    from rooflines import models as models
    from rooflines.api import chips as chips
    from rooflines.api import columns as columns
    from rooflines.api import dtypes as dtypes
    from rooflines.api import kernels as kernels
    from rooflines.api import measured_summary as measured_summary
    from rooflines.api import measurements as measurements
    from rooflines.api import model_layers as model_layers
    from rooflines.api import model_shapes as model_shapes
    from rooflines.api import rows as rows
    from rooflines.api import skipped as skipped
    from rooflines.api import thresholds as thresholds
    from rooflines.basics.errors import PlausibilityWarning as PlausibilityWarning
    from rooflines.basics.errors import RooflinesError as RooflinesError
    from rooflines.config import Config as Config
    from rooflines.config import load_config as load_config
    from rooflines.explanation.answer import Explanation as Explanation
    from rooflines.explanation.best_split import best_splits as best_splits
    from rooflines.explanation.explain import explain as explain
    from rooflines.explanation.explain import explain_model as explain_model
    from rooflines.explanation.training import train as train
    from rooflines.results.provenance import Origin as Origin
    from rooflines.results.provenance import origin as origin
    from rooflines.results.tables import metadata_of as metadata_of
    from rooflines.results.tables import scan as scan

HOMES = {
    **dict.fromkeys(
        (
            "chips",
            "columns",
            "dtypes",
            "kernels",
            "measured_summary",
            "measurements",
            "model_layers",
            "model_shapes",
            "rows",
            "skipped",
            "thresholds",
        ),
        "api",
    ),
    **dict.fromkeys(("PlausibilityWarning", "RooflinesError"), "basics.errors"),
    **dict.fromkeys(("Config", "load_config"), "config"),
    "Explanation": "explanation.answer",
    "best_splits": "explanation.best_split",
    **dict.fromkeys(("explain", "explain_model"), "explanation.explain"),
    **dict.fromkeys(("Origin", "origin"), "results.provenance"),
    **dict.fromkeys(("metadata_of", "scan"), "results.tables"),
    "train": "explanation.training",
}
"""The module of each public name."""

SUBPACKAGES = ("models",)
"""Sub-packages that are public as they are."""

__all__ = ["__version__", *HOMES, *SUBPACKAGES]  # noqa: PLE0604, all of them are strings


def __getattr__(name: str) -> Any:  # noqa: ANN401, any of the names above
    """Names are loaded when they are first used: planning a workflow does not wait for polars."""
    if name in SUBPACKAGES:
        return import_module(f"{__name__}.{name}")
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
