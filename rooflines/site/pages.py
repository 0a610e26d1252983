"""The pages of the site, rendered from templates in which every value is escaped."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from rooflines.basics.text import counted
from rooflines.basics.version import __version__
from rooflines.hardware.timing_errors import measured_quantiles
from rooflines.site.data_package import README, SNIPPETS, THRESHOLDS
from rooflines.site.data_page import lacking_text, measured_views, run_views

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.basics.yaml_file import JSON

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

NO_CHART = {"heading": "", "title": "No charts", "subtitle": "", "caption": "", "files": []}
"""What the page of charts shows first where there is none."""


def pages(  # noqa: PLR0913, what the pages show
    site: Mapping[str, str],
    *,
    charts: Sequence[JSON],
    counts: pl.DataFrame,
    about: JSON,
    listed: JSON,
    downloads: Sequence[str],
    tables: Sequence[JSON],
    config: bool,
    measured: Sequence[Path],
) -> Iterator[tuple[str, str]]:
    """Render all pages.

    Args:
        site: `title`, `author`, `url`, `date` and `tables`, those that are given.
        charts: The charts to list, in order, as `charts.js` reads them.
        counts: Thresholds by `sweep`.
        about: The metadata of the thresholds: the sweeps with their chips, and the columns.
        listed: The thresholds that the page of data has, from `threshold_data`.
        downloads: Names of tables of thresholds.
        tables: Those at the address `tables` of the site: `sweep`, `rows`, `columns` and `files`.
        config: Whether the site has the config as a file.
        measured: Errors at timings of the run, as `write_site` has them.

    Yields:
        File name and HTML of each page.
    """
    by_sweep = dict(counts.with_columns(pl.col("sweep").cast(pl.String)).iter_rows())
    quantiles = measured_quantiles()
    shown = {column["name"] for column in listed["columns"]}
    families = groupby(charts, lambda chart: chart["heading"])
    own: dict[str, dict[str, object]] = {
        "charts.html": {
            "families": [(heading, list(group)) for heading, group in families],
            "first": charts[0] if charts else NO_CHART,
        },
        "data.html": {
            **{name: listed[name] for name in ("sweep", "axis", "counts")},
            "columns": [one for one in about["columns"] if one["name"] in shown],
            "sweeps": counted(len(by_sweep), "sweep"),
            "downloads": {name: THRESHOLDS[name] for name in downloads},
            "snippets": SNIPPETS.findall(README.read_text(encoding="utf-8")),
            "measured": measured_views(),
            "source": quantiles["source"][0],
            "date": quantiles["date"][0],
            "own": run_views(measured[0]) if measured else [],
            "lacking": lacking_text(measured[1]) if measured else "",
        },
        "method.html": {
            "sweeps": [_sweep(recipe, by_sweep) for recipe in about["made_from"]],
            "config": config,
            "tables": tables,
            "address": site.get("tables", "").rstrip("/"),
        },
    }
    shared = {"policy": POLICY, "version": __version__, "site": site}
    for page in PAGES:
        yield page, TEMPLATES.get_template(page).render(**shared, **own.get(page, {}))


def _sweep(recipe: JSON, thresholds: Mapping[str, int]) -> JSON:
    """A row of the table of sweeps: its operation as configured, and numbers of what it has."""
    config = recipe["config"]
    given = config.get("sharding") or "none"
    named = [one if isinstance(one, str) else "custom" for one in given]
    return {
        "name": recipe["sweep"],
        "operation": config["operation"],
        "chips": len(recipe["chips"]),
        "dtypes": len(config["dtypes"]),
        "shardings": given if isinstance(given, str) else ", ".join(dict.fromkeys(named)),
        "thresholds": thresholds.get(recipe["sweep"], 0),
    }
