"""Traces on the site: screens, pictures and what changed, from the files that their jobs write."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.files import read_csv
from rooflines.basics.text import counted, seconds
from rooflines.site.explorer import MODELS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rooflines.basics.yaml_file import JSON

TRACE_INDEX = "index.json"
"""File in a trace's folder with what the page shows."""

MAX_CHANGES = 15
"""Groups of a comparison that the page lists [1]; the CSV has all."""


def trace_views(outputs: Sequence[Path]) -> list[JSON]:
    """Traces as the page shows them: name, screens, sentences on ranks, pictures, comparison.

    Args:
        outputs: Outputs of the jobs on traces: tables, folders, and comparisons.
    """
    folders = [path for path in outputs if path.is_dir()]
    comparisons = [path for path in outputs if path.suffix == ".csv"]
    changes = read_csv(comparisons[0]) if comparisons else None
    views: list[JSON] = []
    for folder in folders:
        view = json.loads((folder / TRACE_INDEX).read_text(encoding="utf-8"))
        pictures = [
            {**picture, "path": f"traces/{view['name']}-{picture['file']}"}
            for picture in view["pictures"]
        ]
        rows = [] if changes is None else _change_rows(changes, view["name"])
        explorer = view["explorer"] if view["model"] in MODELS else None
        views.append({**view, "pictures": pictures, "changes": rows, "explorer": explorer})
    return views


def trace_files(outputs: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
    """Downloads: pictures, tables of calls, and comparisons."""
    for path in outputs:
        if path.is_dir():
            for picture in sorted(path.glob("*.svg")):
                yield f"traces/{path.name}-{picture.name}", picture.read_bytes()
        else:
            yield f"traces/{path.name}", path.read_bytes()


def _change_rows(changes: pl.DataFrame, name: str) -> list[tuple[str, str, str, str]]:
    """Lines of a comparison: label, both times, change; then the others and the sum."""
    pair = changes.filter(pl.col("after") == name)
    if pair.is_empty():
        return []
    rest = pair.slice(MAX_CHANGES)
    rows = [
        _change_row(
            " ".join(filter(None, (row["op"], row["shape"]))), row["before_s"], row["after_s"]
        )
        for row in pair.head(MAX_CHANGES).iter_rows(named=True)
    ]
    for label, part in ((counted(rest.height, "other"), rest), ("the span: the sum", pair)):
        if part.height:
            rows.append(
                _change_row(label, float(part["before_s"].sum()), float(part["after_s"].sum()))
            )
    return rows


def _change_row(label: str, before_s: float, after_s: float) -> tuple[str, str, str, str]:
    """Line of a comparison."""
    change_s = after_s - before_s
    sign = "-" if change_s < 0 else "+"
    change = f"{sign}{seconds(abs(change_s))}" if change_s else "0 s"
    return label, seconds(before_s), seconds(after_s), change
