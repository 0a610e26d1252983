"""README's pictures: the charts that its snippet makes, and the table that shows them."""

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


def charts_of(readme: str, results: Path | None = None) -> dict[str, tuple[str, dict[str, Any]]]:
    """Charts that README's snippet makes of the default config: function and specification by name.

    Args:
        readme: README's text.
        results: Results of the default config; computed where there are none.
    """
    snippet, functions = _snippet(readme)
    made: dict[str, Any] = {"rooflines": rooflines}
    source = COMPUTED if results is None else f"charts.on_disk({str(results)!r})"
    exec(snippet.replace(ON_DISK, source), made)  # noqa: S102, README's own code, which a test runs too
    return {
        name: (function, charts.spec_of(made[name], name)) for name, function in functions.items()
    }


def _snippet(readme: str) -> tuple[str, dict[str, str]]:
    """README's snippet that makes charts, and the function of each chart by its name."""
    (snippet,) = [
        code
        for code in re.findall(r"^```python\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE)
        if ON_DISK in code
    ]
    return snippet, dict(
        re.findall(r"^(\w+) = charts\.(\w+)\(charts\.\w+_frame", snippet, re.MULTILINE)
    )


def digests(specs: Mapping[str, tuple[str, dict[str, Any]]]) -> dict[str, str]:
    """A digest of everything that determines each picture."""
    return {
        name: hashlib.sha256(
            dumps(
                [themed(spec, SIZES[size], dark=False) for size in (SMALL_SIZE, HERO_SIZE)]
            ).encode()
        ).hexdigest()
        for name, (_, spec) in specs.items()
    }


def draw(readme: str, folder: Path) -> None:
    """Draw the pictures, and write their digests beside them.

    Args:
        readme: README's text.
        folder: Where they are written; pictures of charts no longer in the snippet are removed.
    """
    specs = charts_of(readme)
    for old in folder.glob("*.png"):
        old.unlink()
    for name, (_, spec) in specs.items():
        (folder / f"{name}.png").write_bytes(encoded(image(spec, SMALL_SIZE, scale=SCALE), COLOURS))
    for theme in ("light", "dark"):
        hero = image(specs[HERO][1], HERO_SIZE, dark=theme == "dark", scale=1)
        (folder / f"hero-{theme}.png").write_bytes(encoded(hero, COLOURS * 2))
    (folder / DIGESTS).write_text(json.dumps(digests(specs), indent=1) + "\n", encoding="utf-8")


def with_gallery(text: str) -> str:
    """A README with the current table of pictures between its markers."""
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
    """A picture with the summary of its function's docstring."""
    summary = (inspect.getdoc(getattr(charts, function)) or "").splitlines()[0].rstrip(".")
    return f"![{summary}](docs/pictures/{name}.png)<br>`{name}`: {summary}"
