"""Site pages, rendered from templates that escape every value."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import polars as pl
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from rooflines.basics.text import counted
from rooflines.basics.version import __version__
from rooflines.hardware.timing_errors import measured_quantiles
from rooflines.site.card import card_address
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
"""Content security policy of all pages: no requests to other hosts, no inline scripts."""

TRACES = "traces.html"
"""Page on traces, where the config has some."""

SCENARIOS = "scenarios.html"
"""Page on scenarios, where the config has some."""

PAGES = ("index.html", "charts.html", "chips.html", "data.html", "method.html")
"""Pages: names of templates and files."""

MAX_FINDINGS = 7
"""Maximum findings of a run on its first page [1]."""

NO_CHART = {"heading": "", "title": "No charts", "subtitle": "", "caption": "", "files": []}
"""Placeholder on the chart page if there are no charts."""


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
    opening: Mapping[str, str],
    traces: Sequence[JSON] = (),
    scenarios: Sequence[JSON] = (),
    card: str = "",
) -> Iterator[tuple[str, str]]:
    """Render all pages.

    Args:
        site: `title`, `author`, `url`, `date` and `tables`, all optional.
        charts: The charts to list, in order, as `charts.js` reads them.
        counts: Thresholds by `sweep`.
        about: Metadata: sweeps with their chips, and columns.
        listed: Thresholds on the data page, from `threshold_data`.
        downloads: Threshold tables by name.
        tables: Tables at the site's address `tables`: `sweep`, `rows`, `columns` and `files`.
        config: The site has the config as a file.
        measured: Errors at the run's timings, as in `write_site`.
        traces: Traces, from `trace_views`.
        scenarios: Scenarios, from `scenario_views`.
        card: Title of the chart on the picture that chats show; empty: no picture.
        opening: The explorer's first state, from `opening_state`.

    Yields:
        File name and HTML of each page.
    """
    by_sweep = dict(counts.with_columns(pl.col("sweep").cast(pl.String)).iter_rows())
    quantiles = measured_quantiles()
    shown = {column["name"] for column in listed["columns"]}
    families = groupby(charts, lambda chart: chart["heading"])
    page_values: dict[str, dict[str, object]] = {
        "index.html": {
            "opening": urlencode(opening, safe=",:/"),
            "findings": [chart for chart in charts if chart["finding"]][:MAX_FINDINGS],
        },
        "charts.html": {
            "families": [(heading, list(group)) for heading, group in families],
            "first": charts[0] if charts else NO_CHART,
        },
        "data.html": {
            **{name: listed[name] for name in ("sweep", "axis", "counts", "left_out")},
            "columns": [column for column in about["columns"] if column["name"] in shown],
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
        TRACES: {"traces": traces},
        SCENARIOS: {"scenarios": scenarios},
    }
    shared = {
        "policy": POLICY,
        "version": __version__,
        "site": site,
        "has_traces": bool(traces),
        "has_scenarios": bool(scenarios),
        "card": card_address(site) if card else "",
        "card_text": card,
    }
    listed_pages = [*PAGES, *([SCENARIOS] if scenarios else []), *([TRACES] if traces else [])]
    for page in listed_pages:
        yield (
            page,
            TEMPLATES.get_template(page).render(**shared, file=page, **page_values.get(page, {})),
        )


def _operation_text(config: JSON) -> str:
    """Operation, kind, chain or collective in a sweep's config."""
    operation = config.get("operation")
    if isinstance(operation, str):
        return operation
    return " + ".join(operation) if operation else ", ".join(config["sequence"])


def _sweep(recipe: JSON, thresholds: Mapping[str, int]) -> JSON:
    """Sweep as a table row: operation, and counts: chips, dtypes and thresholds."""
    config = recipe["config"]
    shardings = config.get("sharding") or "none"
    named = [sharding if isinstance(sharding, str) else "custom" for sharding in shardings]
    return {
        "name": recipe["sweep"],
        "operation": _operation_text(config),
        "chips": len(recipe["chips"]),
        "dtypes": len(config.get("dtypes") or "") or "–",
        "shardings": shardings if isinstance(shardings, str) else ", ".join(dict.fromkeys(named)),
        "thresholds": thresholds.get(recipe["sweep"], 0),
    }
