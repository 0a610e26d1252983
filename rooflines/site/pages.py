"""The pages of the bundle: templates filled with what the files say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from rooflines.basics.version import __version__
from rooflines.catalogue.chips import chip_entries, chip_sources
from rooflines.site.chip_page import chip_sections, source_list, summary_rows, used_sources
from rooflines.site.text import escaped, filled, link

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.basics.yaml_file import JSON

__all__ = ["POLICY", "pages"]

TEMPLATES = Path(__file__).parent / "templates"

BOOK = "https://jax-ml.github.io/scaling-book/roofline/"

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self' data:; "
    "base-uri 'none'; form-action 'none'"
)
"""What the pages ask the browser to hold them to: no request to anywhere else, and no script that is not a file of the folder."""

PAGES = {
    "charts": ("index.html", ("vega", "charts")),
    "thresholds": ("thresholds.html", ("thresholds",)),
    "chips": ("chips.html", ("chips",)),
    "model": ("model.html", ()),
}
"""The pages: their files, and the scripts they load beside the one that all share."""


def pages(
    charts: Sequence[JSON], thresholds: pl.DataFrame, about: JSON
) -> Iterator[tuple[str, str]]:
    """The pages: their files' names and their text.

    Args:
        charts: What the page of the charts knows of each.
        thresholds: As on disk.
        about: The metadata of the thresholds: the sweeps with their chips, and the columns.
    """
    for name, body in _bodies(charts, thresholds, about).items():
        yield PAGES[name][0], _page(name, body)


def _bodies(charts: Sequence[JSON], frame: pl.DataFrame, about: JSON) -> dict[str, str]:
    """What stands between the top and the foot of each page, as HTML."""
    used = {chip: entry for recipe in about["made_from"] for chip, entry in recipe["chips"].items()}
    chips = {
        chip: used[chip] for chip in (*chip_entries(), *used) if chip in used
    }  # in the catalogue's order
    sources = chip_sources()
    first: Mapping[str, Any] = (
        charts[0]
        if charts
        else {"heading": "", "title": "No charts", "subtitle": "", "caption": "", "files": []}
    )
    counts = dict(
        frame.group_by("sweep").len().with_columns(pl.col("sweep").cast(pl.String)).iter_rows()
    )
    values = {
        "charts": {
            "list": _chart_list(charts),
            "family": escaped(first["heading"]),
            "title": escaped(first["title"]),
            "setting": escaped(first["subtitle"]),
            "caption": escaped(first["caption"]),
            "files": "".join(
                f'<a href="{escaped(file)}" download>{escaped(text)}</a>'
                for text, file in first["files"]
            ),
        },
        "thresholds": {
            "rows": f"{frame.height:,}",
            "sweeps": f"{len(counts):,}",
            "columns": "\n".join(_column(column) for column in about["columns"]),
        },
        "chips": {
            "summary": summary_rows(chips),
            "sections": chip_sections(chips, sources),
            "sources": source_list(used_sources(chips, sources)),
        },
        "model": {
            "sweeps": "\n".join(
                _sweep(recipe, counts.get(recipe["sweep"], 0)) for recipe in about["made_from"]
            ),
            "book": link(BOOK, "How to Scale Your Model"),
        },
    }
    return {name: filled(_template(name), given) for name, given in values.items()}


def _template(name: str) -> str:
    return (TEMPLATES / f"{name}.html").read_text(encoding="utf-8")


def _chart_list(charts: Sequence[JSON]) -> str:
    """The list of charts: a heading for each family, a link for each chart."""
    parts: list[str] = []
    heading = None
    for chart in charts:
        if chart["heading"] != heading:
            parts += ["</ul>"] if heading is not None else []
            heading = chart["heading"]
            parts.append(f"<h2>{escaped(heading)}</h2><ul>")
        small = f"charts/{chart['id']}"
        parts.append(
            f'<li><a href="#chart={escaped(chart["id"])}" data-chart="{escaped(chart["id"])}" title="{escaped(chart["subtitle"])}">'
            f'<img src="{small}-light-small.png" data-light="{small}-light-small.png" data-dark="{small}-dark-small.png" alt="" '
            f'width="96" height="54"><span>{escaped(chart["title"])}</span></a></li>'
        )
    return "\n".join([*parts, "</ul>"] if parts else [])


def _column(column: JSON) -> str:
    unit = f" [{column['unit']}]" if column["unit"] not in ("", "1") else ""
    null = f" Empty: {column['null']}." if column["null"] else ""
    return f"<dt><code>{escaped(column['name'])}</code></dt><dd>{escaped(column['meaning'] + unit + '.' + null)}</dd>"


def _sweep(recipe: JSON, thresholds: int) -> str:
    asked = recipe["config"]
    sharding = asked.get("sharding") or ["none"]
    names = ", ".join(
        str(one) if isinstance(one, str) else "custom"
        for one in ([sharding] if isinstance(sharding, str) else sharding)
    )
    return (
        f'<tr><th scope="row">{escaped(recipe["sweep"])}</th><td><code>{escaped(asked["operation"])}</code></td>'
        f'<td class="number">{len(recipe["chips"])}</td><td class="number">{len(asked["dtypes"])}</td>'
        f'<td>{escaped(names)}</td><td class="number">{thresholds:,}</td></tr>'
    )


TITLES = {
    "charts": (
        "rooflines: when is it compute-bound?",
        "Rooflines of machine-learning accelerators, with charts to filter and to take away.",
    ),
    "thresholds": (
        "Thresholds – rooflines",
        "From which size on operations are compute-bound, on every chip and in every number format.",
    ),
    "chips": (
        "Chips – rooflines",
        "Peaks, bandwidths and prices of accelerators, each number with its source.",
    ),
    "model": ("The model – rooflines", "What the roofline model computes, and what it ignores."),
}


def _page(name: str, body: str) -> str:
    """A whole page."""
    title, description = TITLES[name]
    here = {f"here_{page}": ' aria-current="page"' if page == name else "" for page in PAGES}
    scripts = "\n".join(
        f'<script src="assets/{script}.js" defer></script>' for script in PAGES[name][1]
    )
    made = f"Made by rooflines {escaped(__version__)}. A model of data sheets, not a measurement."
    values = {
        "title": title,
        "description": description,
        "policy": POLICY,
        "page": name,
        "scripts": scripts,
        "body": body,
        "made": made,
        **here,
    }
    return filled(_template("layout"), values)
