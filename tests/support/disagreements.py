"""Where sources disagree: numbers of the catalogue whose note gives another figure for the same thing.

`python tests/support/disagreements.py` writes docs/disagreements.md.
"""

from __future__ import annotations

import re
from pathlib import Path

import rooflines

PAGE = Path(__file__).parents[2] / "docs" / "disagreements.md"
FIGURE = re.compile(r"(?<![\w.])\d+(?:\.\d+)?e\d+")
SAME_KIND = 2.5
"""Figures further apart than this are of something else."""

HEAD = """\
# Where sources disagree

Numbers of chips for which the catalogue's own sources give more than one figure: the one that is used, the others, and what is known of
them. A chip that some source describes differently in a way that matters is there as a variant too (`base:` in config/chips.yaml).
A test keeps this page in step with the catalogue.

| chip | number | used | others | note |
|---|---|---|---|---|
"""


def found() -> list[tuple[str, str, float, list[float], str]]:
    """Return chip, path, value, other figures and note of every number with other figures in its note; variants are left out."""
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


def page() -> str:
    """Return the text of the page."""
    rows = (
        f"| `{chip}` | `{path}` | {value:.6g} | {', '.join(f'{other:.6g}' for other in others)} | {note.strip()} |"
        for chip, path, value, others, note in found()
    )
    return HEAD + "\n".join(" ".join(row.split()) for row in rows) + "\n"


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
