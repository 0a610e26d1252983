"""Disagreements of sources: numbers of the catalogue whose note gives another figure."""

from __future__ import annotations

import re

import rooflines

FIGURE = re.compile(r"(?<![\w.])\d+(?:\.\d+)?e\d+")
SAME_KIND = 2.5
"""Figures further apart than this factor describe another quantity."""


def found() -> list[tuple[str, str, float, list[float], str]]:
    """Return chip, path, value, other figures and note of every number with several figures.

    Variants are left out.
    """
    chips = rooflines.chips()
    listed = []
    for row in chips.filter(chips["base"].is_null() & chips["note"].is_not_null()).iter_rows(
        named=True
    ):
        figures = dict.fromkeys(float(figure) for figure in FIGURE.findall(row["note"]))
        others = [
            figure
            for figure in figures
            if figure != row["value"] and 1 / SAME_KIND < figure / row["value"] < SAME_KIND
        ]
        if others:
            listed.append((row["chip"], row["path"], row["value"], others, row["note"]))
    return listed
