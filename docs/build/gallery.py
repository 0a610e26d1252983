"""The pictures of README: of the charts that its snippet makes, and a table that shows them.

`python docs/build/documents.py` draws them.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import re
from typing import TYPE_CHECKING, Any

import rooflines
from rooflines import charts
from rooflines.charts.kit.render import dumps, encoded, image
from rooflines.charts.kit.themes import SIZES, themed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["charts_of", "digests", "draw", "with_gallery"]

START, END = "<!-- gallery -->\n", "\n<!-- end -->"
HERO, HERO_SIZE, SMALL_SIZE = "roofline", "slide", "paper"
DIGESTS = "digests.json"
COLOURS, SCALE = 64, 1.5
ACROSS = 3
ON_DISK, COMPUTED = 'charts.on_disk("results")', "charts.of_config(rooflines.load_config())"


def charts_of(readme: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """The charts that README's snippet makes, of the default config: by name the function that draws each, and its specification.

    Args:
        readme: README's text; the snippet is the one that reads results for charts.
    """
    snippet, drawn = _snippet(readme)
    made: dict[str, Any] = {"rooflines": rooflines}
    exec(snippet.replace(ON_DISK, COMPUTED), made)  # noqa: S102, README's own text, which a test runs too
    return {name: (function, charts.spec_of(made[name], name)) for name, function in drawn.items()}


def _snippet(readme: str) -> tuple[str, dict[str, str]]:
    """README's snippet that makes charts, and by the name of each chart the function that makes it."""
    (snippet,) = [
        code
        for code in re.findall(r"^```python\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE)
        if ON_DISK in code
    ]
    return snippet, dict(
        re.findall(r"^(\w+) = charts\.(\w+)\(charts\.\w+_frame", snippet, re.MULTILINE)
    )


def digests(specs: Mapping[str, tuple[str, dict[str, Any]]]) -> dict[str, str]:
    """A digest of all that decides each picture."""
    return {
        name: hashlib.sha256(
            dumps(
                [themed(spec, SIZES[size], dark=False) for size in (SMALL_SIZE, HERO_SIZE)]
            ).encode()
        ).hexdigest()
        for name, (_, spec) in specs.items()
    }


def draw(readme: str, folder: Path) -> None:
    """Draw the pictures, and write what decided them beside them.

    Args:
        readme: README's text.
        folder: Where they go; pictures of charts that are no longer in the snippet are removed.
    """
    specs = charts_of(readme)
    for old in folder.glob("*.png"):
        old.unlink()
    for name, (_, spec) in specs.items():
        (folder / f"{name}.png").write_bytes(encoded(image(spec, SMALL_SIZE, scale=SCALE), COLOURS))
    for look in ("light", "dark"):
        hero = image(specs[HERO][1], HERO_SIZE, dark=look == "dark", scale=1)
        (folder / f"hero-{look}.png").write_bytes(encoded(hero, COLOURS * 2))
    (folder / DIGESTS).write_text(json.dumps(digests(specs), indent=1) + "\n", encoding="utf-8")


def with_gallery(text: str) -> str:
    """A README with the table of pictures between its markers as the snippet has them now."""
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    cells = [_cell(name, function) for name, function in _snippet(text)[1].items()]
    cells += [""] * (-len(cells) % ACROSS)
    rows = [
        f"| {' | '.join(cells[start : start + ACROSS])} |" for start in range(0, len(cells), ACROSS)
    ]
    return (
        "\n".join([f"{before}{START}", rows[0], "|" + "---|" * ACROSS, *rows[1:]])
        + f"\n{END}{after}"
    )


def _cell(name: str, function: str) -> str:
    """A picture, and what its function says of itself."""
    said = (inspect.getdoc(getattr(charts, function)) or "").splitlines()[0].rstrip(".")
    return f"![{said}](docs/pictures/{name}.png)<br>`{name}`: {said}"
