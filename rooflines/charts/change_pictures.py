"""Picture of changes between two runs: ratio by group, the largest change at the top."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflines.answers.claims import Sentence
from rooflines.basics.lazy import pl
from rooflines.basics.text import counted
from rooflines.charts.kit import layers as kit
from rooflines.charts.kit.themes import Margins
from rooflines.charts.views import View
from rooflines.results.change_texts import (
    ALL_ROWS,
    factor_text,
    largest_change_text,
    ratio_text,
    where_text,
)
from rooflines.results.table_changes import WORDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflines.results.run_changes import RunChanges
    from rooflines.results.table_changes import ChangeGroup

MAX_BARS = 14
"""Maximum groups drawn [1]."""

MARGINS, NAME_ROOM = Margins(left=23.0, right=11.0), 22.4

HALF_BAR = 0.16
"""Half the height of a bar [rows]."""

MARGIN = 1.04
"""Factor by which the axis extends beyond the ratios [1]."""

MIN_TICK_GAP = 0.05
"""Minimum distance between a tick and the ratio 1 [1]."""

RATIO_LABEL = "'× ' + format(datum.value, '~r')"


def changes_view(changes: RunChanges) -> View | None:
    """Ratio of both runs by group, as a bar from the smallest to the largest.

    Args:
        changes: The changes.

    Returns:
        The view; None if no number changed.
    """
    groups = [group for group in changes.groups if group.least and group.most]
    if not groups:
        return None
    shown = groups[:MAX_BARS]
    bars = pl.DataFrame(
        [
            {
                "row": row,
                "low": row - HALF_BAR,
                "high": row + HALF_BAR,
                "least": group.least,
                "most": group.most,
                "name": _name(group, changes),
                "text": ratio_text(group),
                "change": largest_change_text(group),
                "rows": f"{group.changed:,} of {group.rows:,}",
            }
            for row, group in enumerate(shown)
        ]
    )
    ratios = [1.0, *bars["least"], *bars["most"]]
    edges = [min(ratios) / MARGIN, max(ratios) * MARGIN]
    rest = len(changes.groups) - len(shown)
    setting = f"Ratio {changes.names[1]} / {changes.names[0]}, changed rows of a group."
    more = f" {counted(rest, 'more group')} changed." if rest else ""
    names = [*bars["name"]]
    return View(
        Sentence(text=_title(groups[0]), rows=bars.to_dicts()),
        f"{setting}{more}",
        _layers(),
        {"bars": bars},
        MARGINS,
        bars,
        {
            **kit.bar_params(names, NAME_ROOM, edges[1]),
            "plane": {
                "x": edges,
                "y": [len(shown) - 0.5, -0.5],
                "across": _ticks(*edges),
                "up": list(range(len(shown))),
            },
        },
        [where_text(groups[0])],
    )


def _title(group: ChangeGroup) -> str:
    """Largest change in words."""
    ratio = max((group.least or 1.0, group.most or 1.0), key=lambda value: max(value, 1 / value))
    where = where_text(group)
    text = f"{WORDS[group.quantity]}{'' if where == ALL_ROWS else f' of {where}'}"
    return f"{text[0].upper()}{text[1:]}: × {factor_text(ratio)}"


def _name(group: ChangeGroup, changes: RunChanges) -> str:
    """Name of a bar: quantity and keys, with the sweep if there are several."""
    sweeps = {entry.sweep for entry in changes.groups}
    parts = [WORDS[group.quantity], where_text(group), *([group.sweep] if len(sweeps) > 1 else [])]
    return " · ".join(part for part in parts if part != ALL_ROWS)


def _ticks(low: float, high: float) -> list[float]:
    """Ticks of the ratio, 1 among them."""
    ticks = kit.ticks_between(low, high)
    return sorted({1.0, *(tick for tick in ticks if abs(tick - 1) >= MIN_TICK_GAP)})


def _layers() -> Sequence[kit.Layer]:
    """Bars, their ends, the ratio 1, and texts at the right."""
    bare = {"grid": False, "ticks": False, "domain": False}
    across = kit.log_axis("x", "", RATIO_LABEL)
    names = kit.axis("y", None, "rows[datum.value] || ''", **bare)
    tooltip = kit.tips(name="group", change="largest change", rows="changed rows")
    row = kit.quantitative_channel("row", **names)
    ends = [
        kit.layer(
            "bars",
            "point",
            ["timing", "trace-bound"],
            {"x": kit.quantitative_channel(end, **across), "y": row, "tooltip": tooltip},
            strokeWidth=0,
            opacity=1,
        )
        for end in ("least", "most")
    ]
    unity = kit.layer("bars", "rule", "rule", {"x": {"datum": 1.0, "type": "quantitative"}})
    bars = kit.layer(
        "bars",
        "rect",
        ["bar", "trace-bound"],
        {
            "x": kit.quantitative_channel("least", **across),
            "x2": {"field": "most"},
            "y": kit.quantitative_channel("low", **names),
            "y2": {"field": "high"},
            "tooltip": tooltip,
        },
    )
    texts = kit.layer(
        "bars",
        "text",
        "label",
        {
            "y": row,
            "text": kit.nominal_channel("text"),
        },
        x=kit.expr("width"),
        **kit.RIGHT_OF_BAR,
    )
    return [unity, bars, *ends, texts]
