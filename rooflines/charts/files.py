"""One chart of a run: its pictures, its specification, its views, and its data."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import RooflinesError
from rooflines.basics.version import __version__
from rooflines.charts.kit.render import (
    dumps,
    encoded,
    limited,
    picture,
    rastered,
    svg,
    thumbnail,
)
from rooflines.charts.kit.themes import SIZES, themed
from rooflines.charts.options import TITLES, choices_of, label
from rooflines.charts.registry import kinds
from rooflines.charts.views import titled
from rooflines.results.atomic import write_bytes
from rooflines.results.tables import write_csv, write_parquet
from rooflines.settings.charts import FORMATS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rooflines.charts.options import Option
    from rooflines.charts.results import Results
    from rooflines.charts.views import Kind, Spec, View

SPEC, VIEWS = ".vl.json", "-views.json"
"""Endings of the files with the specification of a chart, and with its views."""


def draw(results: Results, spec: Spec) -> View:
    """The first view of a chart of a config, such as one of `Config.charts`.

    Args:
        results: Where numbers come from.
        spec: The chart.
    """
    return next(iter(views_of(results, spec, most=1)))[1]


def views_of(
    results: Results, spec: Spec, most: int | None = None
) -> list[tuple[dict[str, Option], View]]:
    """The choices of a chart's reader with their views, first that of its picture.

    Args:
        results: Where numbers come from.
        spec: The chart.
        most: The most views; None: all [1].

    Raises:
        RooflinesError: There is nothing to show.
    """
    kind = kinds()[spec.chart]
    source = results.source(kind.source, spec.sweep)
    offered = {"chip": spec.chips, "dtypes": spec.dtypes, **dict(spec.given)}
    held = results.holding(spec.sweep, spec.chips) if kind.source == "sweeps" else results
    made: list[tuple[dict[str, Option], View]] = []
    lacks: RooflinesError | None = None
    for case in choices_of(partial(kind.menus, source), offered):
        if most is not None and len(made) == most:
            break
        try:
            view = kind.view(held, spec.sweep, spec.chips, case)
        except RooflinesError as error:  # a choice that has no rows is not offered
            lacks = lacks or error
        else:
            made.append((case, titled(view, spec.title)))
    if not made:
        fix = "choose other chips or dtypes"
        raise lacks or RooflinesError(f"charts: {spec.id}", "has nothing to show", fix)
    return made


def write_chart(
    results: Results, chart: Spec, formats: Sequence[str], folder: Path
) -> dict[str, Any]:
    """Write a chart: its pictures, thumbnails, specification, views and data.

    Args:
        results: Where numbers come from.
        chart: Which chart.
        formats: The formats of the pictures, some of `FORMATS`.
        folder: Where the files go.

    Returns:
        Its entry in the index of its kind. A chart of `auto` with nothing to say, or with more than
        a page can draw, is left out: then the reason, as `left_out`.

    Raises:
        RooflinesError: A chart that the config lists would hold more than a page can draw.
    """
    try:
        made = views_of(results, chart)
        spec = limited(made[0][1].spec(), chart.id)
    except RooflinesError as error:
        if not chart.auto:
            raise
        return {"left_out": f"{error.where} {error.problem}"}
    if chart.auto and not made[0][1].says.rows:
        return {"left_out": f"charts: {chart.id} says nothing of {chart.sweep}"}
    name, view = chart.id, made[0][1]
    write_bytes(folder / f"{name}{SPEC}", dumps(themed(spec, SIZES["web"], dark=False, whole=True)))
    write_bytes(folder / f"{name}{VIEWS}", dumps(views_file(made)))
    _write_pictures(name, spec, formats, folder)
    write_csv(view.rows, folder / f"{name}.csv")
    about = {"version": __version__, "chart": chart.plain()}
    write_parquet(view.rows.lazy(), folder / f"{name}.parquet", about)
    return entry_of(kinds()[chart.chart], chart, made)


def views_file(made: Sequence[tuple[Mapping[str, Option], View]]) -> dict[str, Any]:
    """The views of a chart: layers once each, and of every view what differs."""
    layers: dict[str, int] = {}
    views = []
    for case, view in made:
        drawn = json.dumps(view.marks(), sort_keys=True)
        number = layers.setdefault(drawn, len(layers))
        views.append({"values": case, "layer": number, **view.part()})
    return {"layers": [json.loads(one) for one in layers], "views": views}


def entry_of(
    kind: Kind, chart: Spec, made: Sequence[tuple[Mapping[str, Option], View]]
) -> dict[str, Any]:
    """The entry of a chart in the index of its kind."""
    params = []
    for name in dict.fromkeys(name for case, _ in made for name in case):
        options = list(dict.fromkeys(case[name] for case, _ in made if name in case))
        if len(options) > 1:
            params.append(
                {
                    "name": name,
                    "title": TITLES.get(name, name),
                    "options": options,
                    "labels": [label(name, option) for option in options],
                    "value": made[0][0].get(name),
                }
            )
    first = made[0][1].part()
    return {
        "id": chart.id,
        "chart": chart.chart,
        "heading": kind.heading,
        "sweep": chart.sweep,
        "title": first["title"],
        "subtitle": " ".join(first["subtitle"]),
        "caption": kind.caption,
        "chips": chart.chips,
        "params": params,
    }


def _write_pictures(
    name: str, spec: Mapping[str, Any], formats: Sequence[str], folder: Path
) -> None:
    """The pictures of a chart; one drawing gives PNG, SVG and thumbnail."""
    drawn = svg(spec, FORMATS["svg"])
    pixels = rastered(drawn)
    write_bytes(folder / f"{name}-small.png", thumbnail(pixels))
    if "png" in formats:
        write_bytes(folder / f"{name}.png", encoded(pixels))
    if "svg" in formats:
        write_bytes(folder / f"{name}.svg", drawn)
    for form in formats:
        if form not in ("png", "svg"):
            write_bytes(folder / f"{name}.{form}", picture(spec, form, FORMATS[form]))
