"""Files of one chart: pictures, specification, views and data."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import RooflinesError
from rooflines.basics.version import __version__
from rooflines.charts.kit.render import (
    dumps,
    encode_png,
    limited,
    picture,
    rasterize,
    svg,
    thumbnail,
)
from rooflines.charts.kit.themes import SIZES, themed
from rooflines.charts.options import TITLES, choices_of, label
from rooflines.charts.registry import kinds
from rooflines.charts.views import titled
from rooflines.config.chart_fields import FORMATS
from rooflines.results.atomic import write_bytes
from rooflines.results.tables import write_csv, write_parquet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from rooflines.charts.chart_data import Results
    from rooflines.charts.options import Option
    from rooflines.charts.views import Kind, Spec, View

    Chosen = tuple[Mapping[str, Option], View]
    """One option for each menu, and the view with them."""

SPEC, VIEWS = ".vl.json", "-views.json"
"""File endings of a chart's specification and views."""


def draw(results: Results, spec: Spec) -> View:
    """Draw the first view for a config's chart, such as one in `Config.charts`.

    Args:
        results: Source of numbers.
        spec: The chart.
    """
    return next(views_of(results, spec))[1]


def views_of(results: Results, spec: Spec) -> Iterator[Chosen]:
    """Yield a chart's choices with their views; the first is the picture.

    Args:
        results: Source of numbers.
        spec: The chart.

    Raises:
        RooflinesError: There is nothing to show.
    """
    kind = kinds()[spec.chart]
    source = results.source(kind.source, spec.sweep)
    offered = {"chip": spec.chips, "dtypes": spec.dtypes, **dict(spec.given)}
    sweep_results = (
        results.with_rows_in_memory(spec.sweep, spec.chips) if kind.source == "sweeps" else results
    )
    empty, first_error = True, None
    for choice in choices_of(partial(kind.menus, source), offered):
        try:
            view = kind.view(sweep_results, spec.sweep, spec.chips, choice)
        except RooflinesError as error:  # a choice that has no rows is not offered
            first_error = first_error or error
        else:
            empty = False
            yield choice, titled(view, spec.title)
    if empty:
        fix = "choose other chips or dtypes"
        raise first_error or RooflinesError(f"charts: {spec.id}", "has nothing to show", fix)


def write_chart(
    results: Results,
    chart: Spec,
    formats: Sequence[str],
    folder: Path,
) -> dict[str, Any]:
    """Write a chart: its pictures, thumbnails, specification, views and data.

    Args:
        results: Source of numbers.
        chart: The chart.
        formats: Picture formats, from `FORMATS`.
        folder: Destination.

    Returns:
        Its entry in its kind's index. An `auto` chart with nothing to say, or
        with more than a page can draw, is left out: then the reason, as `left_out`.

    Raises:
        RooflinesError: A chart that the config lists would hold more than a page can draw.
    """
    name = chart.id
    try:
        choices = list(views_of(results, chart))
        first = choices[0][1]
        spec = limited(first.spec(), name)
    except RooflinesError as error:
        if not chart.auto:
            raise
        return {"left_out": f"{error.where} {error.problem}"}
    if chart.auto and not first.claim.rows:
        return {"left_out": f"charts: {name} says nothing of {chart.sweep}"}
    _write_first(chart, first, spec, formats, folder)
    write_bytes(folder / f"{name}{VIEWS}", dumps(views_file(choices)))
    return entry_of(kinds()[chart.chart], chart, choices)


def _write_first(
    chart: Spec, view: View, spec: dict[str, Any], formats: Sequence[str], folder: Path
) -> None:
    """Write a chart's first view: specification, pictures and data."""
    name = chart.id
    write_bytes(folder / f"{name}{SPEC}", dumps(themed(spec, SIZES["web"], dark=False, whole=True)))
    _write_pictures(name, spec, formats, folder)
    write_csv(view.rows, folder / f"{name}.csv")
    about = {"version": __version__, "chart": chart.plain()}
    write_parquet(view.rows.lazy(), folder / f"{name}.parquet", about)


def views_file(choices: Sequence[Chosen]) -> dict[str, Any]:
    """Views file: distinct layers once, and each view's differences."""
    layers: dict[str, int] = {}
    views = []
    for choice, view in choices:
        marks = json.dumps(view.marks(), sort_keys=True)
        number = layers.setdefault(marks, len(layers))
        views.append({"values": choice, "layer": number, **view.delta()})
    return {"layers": [json.loads(text) for text in layers], "views": views}


def entry_of(kind: Kind, chart: Spec, choices: Sequence[Chosen]) -> dict[str, Any]:
    """Entry in the index of the chart's kind."""
    params = []
    for name in dict.fromkeys(name for choice, _ in choices for name in choice):
        options = list(dict.fromkeys(choice[name] for choice, _ in choices if name in choice))
        if len(options) > 1:
            params.append(
                {
                    "name": name,
                    "title": TITLES.get(name, name),
                    "options": options,
                    "labels": [label(name, option) for option in options],
                    "value": choices[0][0].get(name),
                }
            )
    first_view = choices[0][1]
    first = first_view.delta()
    return {
        "id": chart.id,
        "chart": chart.chart,
        "heading": kind.heading,
        "sweep": chart.sweep,
        "title": first["title"],
        "finding": first_view.title if first_view.claim.rows else "",
        "subtitle": " ".join(first["subtitle"]),
        "caption": kind.caption,
        "chips": chart.chips,
        "params": params,
    }


def _write_pictures(
    name: str, spec: Mapping[str, Any], formats: Sequence[str], folder: Path
) -> None:
    """Write the pictures; PNG, SVG and thumbnail share one drawing."""
    drawn = svg(spec, FORMATS["svg"])
    pixels = rasterize(drawn)
    write_bytes(folder / f"{name}-small.png", thumbnail(pixels))
    if "png" in formats:
        write_bytes(folder / f"{name}.png", encode_png(pixels))
    if "svg" in formats:
        write_bytes(folder / f"{name}.svg", drawn)
    for form in formats:
        if form not in ("png", "svg"):
            write_bytes(folder / f"{name}.{form}", picture(spec, form, FORMATS[form]))
