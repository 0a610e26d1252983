"""Disagreements of sources: numbers of the catalogue whose note gives another figure.

`python tests/support/disagreements.py` writes docs/disagreements.md.
"""

from __future__ import annotations

import re
from pathlib import Path

import rooflines

PAGE = Path(__file__).parents[2] / "docs" / "disagreements.md"
FIGURE = re.compile(r"(?<![\w.])\d+(?:\.\d+)?e\d+")
SAME_KIND = 2.5
"""Figures further apart than this factor describe another quantity."""

HEAD = """\
# Where sources disagree

Numbers of chips for which the sources of the catalogue give several figures: the figure in use,
the others, and the reason if it is known. If the difference matters, the catalogue also has a
variant of the chip (`base:` in config/chips.yaml). A test compares this page with the catalogue.

| chip | number | used | others | note |
|---|---|---|---|---|
"""


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


def page() -> str:
    """Return the text of the page."""
    rows = (
        f"| `{chip}` | `{path}` | {value:.6g} | "
        f"{', '.join(f'{other:.6g}' for other in others)} | {note.strip()} |"
        for chip, path, value, others, note in found()
    )
    return HEAD + "\n".join(" ".join(row.split()) for row in rows) + "\n"


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
