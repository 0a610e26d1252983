"""The kinds of charts, from the files in `kinds`, and what names of earlier versions became."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.charts.views import Kind

MODULES = ("roofline", "chips", "attained", "critical", "who_binds", "time", "front", "measured")
"""The files of `kinds`, in the order of `auto`, of the schema and of messages."""

REPLACED = {
    "per-dollar": "chips with view: {by: dollar}",
    "per-watt": "chips with view: {by: watt}",
    "ridges": "chips",
    "critical-map": "critical",
    "critical-estimate": "attained with view: {basis: calibrated}",
    "layers": "critical with view: {by: layer x chip}",
    "shards": "critical with view: {by: layer x chips each}",
    "bounds": "who-binds",
    "pareto": "front",
    "capacity": "front",
    "measured-roofline": "measured with view: {by: roof}",
    "measured-ratio": "measured",
    "measured-errors": "measured",
}
"""Charts of earlier versions, and what shows the same."""


def file_of(kind: str) -> str:
    """The file of a kind, by its path in the package."""
    return f"charts/kinds/{kind.replace('-', '_')}.py"


@cache
def kinds() -> Mapping[str, Kind]:
    """All kinds by name."""
    found = [import_module(f"rooflines.charts.kinds.{name}").KIND for name in MODULES]
    return {kind.name: kind for kind in found}
