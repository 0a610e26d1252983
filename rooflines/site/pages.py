"""The pages of the site, rendered from templates in which every value is escaped."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypedDict

import polars as pl
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from rooflines.basics.text import counted
from rooflines.basics.version import __version__
from rooflines.catalogue.chips import chip_entries
from rooflines.catalogue.entries import Chip
from rooflines.catalogue.measured import measured_quantiles
from rooflines.site.data_page import measured_views

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rooflines.basics.yaml_file import JSON
    from rooflines.site.downloads import Download
    from rooflines.site.far_page import FarView

TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    finalize=lambda value: "" if value is None else value,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "font-src 'self' data:; base-uri 'none'; form-action 'none'"
)
"""The content security policy of every page: no requests to other hosts, no inline scripts."""

PAGES = ("index.html", "charts.html", "chips.html", "data.html", "method.html")
"""The pages: names of their templates and of their files."""


class ListedChart(TypedDict):
    """A chart in the list of the page `charts.html`; `charts.js` reads the same keys.

    Attributes:
        id: Its name, which is the start of the names of its files.
        family: The folder that it comes from.
        heading: The heading in the list that it is under.
        title: Its finding.
        subtitle: Its setting.
        caption: How to read it.
        params: Its menus.
        spec: The path of its specification and views.
        files: Texts and paths of its downloads.
    """

    id: str
    family: str
    heading: str
    title: str
    subtitle: str
    caption: str
    params: list[JSON]
    spec: str
    files: list[tuple[str, str]]


class ListedTable(TypedDict):
    """A table of the page `method.html`, which is published elsewhere; `Plan.spec` has them.

    Attributes:
        sweep: The sweep that it is of.
        rows: Its rows [1].
        columns: Its columns [1].
        files: Its files below the folder of the tables.
    """

    sweep: str
    rows: int
    columns: int
    files: list[str]


class Published(NamedTuple):
    """What the site says of itself, and what it offers.

    Attributes:
        site: `title`, `author`, `url`, `date` and `tables`, those that are given.
        config: Whether it has the config as a file.
        downloads: Thresholds and tables of whole models.
        tables: The tables at the address `tables`.
        thresholds: Those that the page of data has, from `threshold_data`.
        far: What it says of timings; None without timings.
    """

    site: Mapping[str, str]
    config: bool
    downloads: Sequence[Download]
    tables: Sequence[ListedTable]
    thresholds: JSON
    far: FarView | None = None


NO_CHART = ListedChart(
    id="",
    family="",
    heading="",
    title="No charts",
    subtitle="",
    caption="",
    params=[],
    spec="",
    files=[],
)


@dataclass(frozen=True)
class SweepView:
    """A row of the table of sweeps.

    Attributes:
        name: The sweep's name.
        operation: Its operation, as configured.
        chips: Number of chips [1].
        dtypes: Number of dtype combinations [1].
        shardings: The names of its shardings.
        thresholds: Number of thresholds [1].
    """

    name: str
    operation: str
    chips: int
    dtypes: int
    shardings: str
    thresholds: int


def pages(
    charts: Sequence[ListedChart],
    thresholds: pl.DataFrame,
    about: JSON,
    published: Published,
) -> Iterator[tuple[str, str]]:
    """Render all pages.

    Args:
        charts: The charts to list, in order.
        thresholds: As on disk.
        about: The metadata of the thresholds: the sweeps with their chips, and the columns.
        published: What the site says of itself, and what it offers.

    Yields:
        File name and HTML of each page.
    """
    values = _values(charts, thresholds, about, published)
    shared = {"policy": POLICY, "version": __version__, "site": published.site}
    for page in PAGES:
        yield page, TEMPLATES.get_template(page).render(**shared, **values[page])


def _values(
    charts: Sequence[ListedChart],
    thresholds: pl.DataFrame,
    about: JSON,
    published: Published,
) -> dict[str, dict[str, object]]:
    """What each page shows; arguments as of `pages`."""
    recipes = about["made_from"]
    counts = dict(
        thresholds.group_by("sweep").len().with_columns(pl.col("sweep").cast(pl.String)).iter_rows()
    )
    quantiles = measured_quantiles()
    return {
        "index.html": {},
        "charts.html": {
            "families": [
                (heading, list(group))
                for heading, group in groupby(charts, lambda chart: chart["heading"])
            ],
            "first": charts[0] if charts else NO_CHART,
        },
        "chips.html": {},
        "data.html": {
            **{name: published.thresholds[name] for name in ("sweep", "axis", "counts")},
            "columns": [
                column
                for column in about["columns"]
                if column["name"] in published.thresholds["lists"]
            ],
            "sweeps": counted(len(counts), "sweep"),
            "downloads": published.downloads,
            "measured": measured_views(),
            "source": quantiles["source"][0],
            "date": quantiles["date"][0],
            "far": published.far,
        },
        "method.html": {
            "sweeps": [_sweep(recipe, counts.get(recipe["sweep"], 0)) for recipe in recipes],
            "config": published.config,
            "tables": published.tables,
            "address": published.site.get("tables", "").rstrip("/"),
        },
    }


def used_chips(recipes: Iterable[JSON]) -> dict[str, Chip]:
    """The chips of recipes, those of the catalogue first and in its order."""
    used = {chip: entry for recipe in recipes for chip, entry in recipe["chips"].items()}
    return {
        chip: Chip.model_validate(used[chip]) for chip in (*chip_entries(), *used) if chip in used
    }


def _sweep(recipe: JSON, thresholds: int) -> SweepView:
    config = recipe["config"]
    shardings = config.get("sharding") or ["none"]
    if isinstance(shardings, str):
        shardings = [shardings]
    return SweepView(
        recipe["sweep"],
        config["operation"],
        len(recipe["chips"]),
        len(config["dtypes"]),
        ", ".join(one if isinstance(one, str) else "custom" for one in shardings),
        thresholds,
    )
