"""Chart kinds, from the modules in `kinds`, and replacements for earlier names.

`kinds.json` lists both, with each kind's texts.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.charts.views import Kind

LISTED: Mapping[str, Any] = json.loads(Path(__file__).with_name("kinds.json").read_bytes())
"""Heading and caption of the `kinds`, in the order of `auto`, of the schema and of messages; and
charts of earlier versions that are `replaced`."""

REPLACED: Mapping[str, str] = LISTED["replaced"]
"""Replacements for charts of earlier versions."""


def _module_of(kind: str) -> str:
    return kind.replace("-", "_")


def file_of(kind: str) -> str:
    """Path of a kind's module in the package."""
    return f"charts/kinds/{_module_of(kind)}.py"


@cache
def kinds() -> Mapping[str, Kind]:
    """All kinds by name."""
    return {
        name: replace(import_module(f"rooflines.charts.kinds.{_module_of(name)}").KIND, **texts)
        for name, texts in LISTED["kinds"].items()
    }
