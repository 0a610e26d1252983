"""Pictures of pages: the charts that a page's snippet makes, and the table that shows them."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
from typing import TYPE_CHECKING, Any

from blocks import with_block
from documents import DOCS, RESULTS

import rooflines
from rooflines import charts
from rooflines.charts.kit.render import dumps, encode_png, rasterize, svg
from rooflines.charts.kit.themes import SIZES, themed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PAGES = (RESULTS, DOCS / "book.md", DOCS / "measure.md")
"""Pages with a snippet that makes charts, and a table of their pictures."""

SIZE = "paper"
DIGESTS = "digests.json"
COLOURS, SCALE = 64, 1.5
ACROSS = 3
PROFILE = DOCS.parent / "tests" / "cases" / "nsight" / "h200.csv"
"""The profile that pages call `kernels.csv`."""

DRAWN = re.compile(r"^(\w+) = charts\.(\w+)\((?:results|kernels|solved), ", re.MULTILINE)
"""A line of a snippet that makes a chart: its name and its function."""

ON_DISK, COMPUTED = 'charts.on_disk("results")', "charts.of_config(rooflines.load_config())"


def charts_of_pages(results: Path | None = None) -> dict[str, tuple[str, dict[str, Any]]]:
    """The charts of all pages, as of `charts_of`."""
    return {
        name: chart
        for page in PAGES
        for name, chart in charts_of(page.read_text(encoding="utf-8"), results).items()
    }


def charts_of(page: str, results: Path | None = None) -> dict[str, tuple[str, dict[str, Any]]]:
    """Charts that a page's snippet makes of the default config: function and specification by name.

    Args:
        page: The text of the page.
        results: Results of the default config; computed where there are none.
    """
    snippet, functions = _snippet(page)
    made: dict[str, Any] = {"rooflines": rooflines}
    source = COMPUTED if results is None else f"charts.on_disk({str(results)!r})"
    code = snippet.replace(ON_DISK, source).replace('"kernels.csv"', repr(str(PROFILE)))
    exec(code, made)  # noqa: S102, the page's own code, which a test runs too
    return {
        name: (function, charts.spec_of(made[name], name)) for name, function in functions.items()
    }


def _snippet(page: str) -> tuple[str, dict[str, str]]:
    """The snippet of a page that makes charts, and the function of each chart by its name."""
    (snippet,) = [
        code
        for code in re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
        if DRAWN.search(code)
    ]
    return snippet, dict(DRAWN.findall(snippet))


def digests(specs: Mapping[str, tuple[str, dict[str, Any]]]) -> dict[str, str]:
    """A digest of everything that determines each picture."""
    return {
        name: hashlib.sha256(dumps(themed(spec, SIZES[SIZE], dark=False)).encode()).hexdigest()
        for name, (_, spec) in specs.items()
    }


def draw(folder: Path) -> None:
    """Draw the pictures of all pages, and write their digests beside them.

    Args:
        folder: Where they are written; pictures of charts no longer in a snippet are removed.
    """
    specs = charts_of_pages()
    for old in folder.glob("*.png"):
        old.unlink()
    for name, (_, spec) in specs.items():
        (folder / f"{name}.png").write_bytes(encode_png(rasterize(svg(spec, SIZE), SCALE), COLOURS))
    (folder / DIGESTS).write_text(json.dumps(digests(specs), indent=1) + "\n", encoding="utf-8")


def with_gallery(page: str) -> str:
    """A page with the current table of pictures between its markers."""
    cells = [_cell(name, function) for name, function in _snippet(page)[1].items()]
    across = min(ACROSS, len(cells))
    cells += [""] * (-len(cells) % across)
    rows = [
        f"| {' | '.join(cells[start : start + across])} |" for start in range(0, len(cells), across)
    ]
    return with_block(page, "gallery", "\n".join([rows[0], "|" + "---|" * across, *rows[1:]]))


def _cell(name: str, function: str) -> str:
    """A picture, described by the head of its function's docstring."""
    head = re.split("[:.,]", inspect.getdoc(getattr(charts, function)) or "")[0]
    return f"![{head}](pictures/{name}.png)<br>`{name}`"
