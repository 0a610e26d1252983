"""Scenarios on the site: what each changes, from the folders that its job writes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rooflines.results.folders import SCENARIO_INDEX, SCENARIOS_FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rooflines.basics.yaml_file import JSON

MAX_GROUPS = 40
"""Maximum groups that the page lists [1]; the Parquet file has every changed number."""


def scenario_views(outputs: Sequence[Path]) -> list[JSON]:
    """Scenarios as the page shows them: title, inputs, counts, groups, pictures.

    Args:
        outputs: Tables and folders from scenario jobs.
    """
    views: list[JSON] = []
    for folder in (path for path in outputs if path.is_dir()):
        view = json.loads((folder / SCENARIO_INDEX).read_text(encoding="utf-8"))
        pictures = {name: f"{SCENARIOS_FOLDER}/{view['name']}-{name}" for name in view["pictures"]}
        shown = view["groups"][:MAX_GROUPS]
        rest = len(view["groups"]) - len(shown)
        views.append({**view, "pictures": pictures, "groups": shown, "rest": rest})
    return views


def scenario_files(outputs: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
    """Downloads: pictures, and tables with changed numbers."""
    for path in outputs:
        if path.is_dir():
            for picture in sorted(path.glob("*.png")):
                yield f"{SCENARIOS_FOLDER}/{path.name}-{picture.name}", picture.read_bytes()
        else:
            yield f"{SCENARIOS_FOLDER}/{path.name}", path.read_bytes()
