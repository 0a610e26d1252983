"""Files of one chart: pictures, specification, views and data."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

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
from rooflines.charts.options import KEYS, TITLES, choices_of, label
from rooflines.charts.registry import kinds
from rooflines.charts.views import View, titled
from rooflines.config.chart_fields import FORMATS
from rooflines.results.atomic import link_or_copy, write_bytes
from rooflines.results.tables import write_csv, write_parquet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from rooflines.charts.chart_data import Results
    from rooflines.charts.kit.layers import Layer
    from rooflines.charts.options import Option
    from rooflines.charts.views import Kind, Spec

    Chosen = tuple[Mapping[str, Option], "View | StoredView"]
    """One option for each menu, and the view with them."""

SPEC, VIEWS = ".vl.json", "-views.json"
"""File endings of a chart's specification and views."""


class StoredView(NamedTuple):
    """View from an earlier run, as read from its file."""

    layers: Sequence[Layer]
    changes: Mapping[str, Any]

    def marks(self) -> Sequence[Layer]:
        """The marks, as `View.marks`."""
        return self.layers

    def delta(self) -> Mapping[str, Any]:
        """Title, data and parameters, as `View.delta`."""
        return self.changes


class StoredViews:
    """One chart's views from an earlier run, by a digest for what they show.

    Args:
        shown: Digests of the chart's inputs, from `Plan`.
        name: The chart's id.
        folder: The earlier run's folder; None: that run did not draw it.
        keys: The key for each view, in order.
    """

    def __init__(
        self,
        shown: Mapping[str, str],
        name: str = "",
        folder: Path | None = None,
        keys: Sequence[str] = (),
    ) -> None:
        self.folder, self._shown = folder, shown
        text = (folder / f"{name}{VIEWS}").read_text(encoding="utf-8") if folder else "{}"
        file = json.loads(text)
        self._views = {
            key: StoredView(file["layers"][view.pop("layer")], view)
            for key, view in zip(keys, file.get("views", ()), strict=True)
        }

    def key(self, choice: Mapping[str, Option]) -> str:
        """Digest of a view's inputs and choice; if a chip is chosen, only its inputs count."""
        chip = str(choice.get("chip"))
        digests = {name: self._shown[name] for name in ("", chip)} if chip in self._shown else {}
        content = json.dumps([digests or self._shown, choice], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def find(self, choice: Mapping[str, Option]) -> StoredView | None:
        """Find the stored view of a choice; None: no view was stored, or its inputs changed."""
        return self._views.get(self.key(choice))


NOTHING = StoredViews({})


def draw(results: Results, spec: Spec) -> View:
    """Draw the first view for a config's chart, such as one in `Config.charts`.

    Args:
        results: Source of numbers.
        spec: The chart.
    """
    return cast("View", next(views_of(results, spec))[1])  # nothing is stored


def views_of(results: Results, spec: Spec, stored: StoredViews = NOTHING) -> Iterator[Chosen]:
    """Yield a chart's choices with their views; the first is the picture.

    Args:
        results: Source of numbers.
        spec: The chart.
        stored: Views that need not be drawn.

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
            earlier = stored.find(choice)
            drawn = earlier or titled(
                kind.view(sweep_results, spec.sweep, spec.chips, choice), spec.title
            )
        except RooflinesError as error:  # a choice that has no rows is not offered
            first_error = first_error or error
        else:
            empty = False
            yield choice, drawn
    if empty:
        fix = "choose other chips or dtypes"
        raise first_error or RooflinesError(f"charts: {spec.id}", "has nothing to show", fix)


def write_chart(
    results: Results,
    chart: Spec,
    formats: Sequence[str],
    folder: Path,
    stored: StoredViews = NOTHING,
) -> dict[str, Any]:
    """Write a chart: its pictures, thumbnails, specification, views and data.

    Args:
        results: Source of numbers.
        chart: The chart.
        formats: Picture formats, from `FORMATS`.
        folder: Destination.
        stored: Views from an earlier run; if the first is unchanged, its files are linked.

    Returns:
        Its entry in its kind's index, and `KEYS`. An `auto` chart with nothing to say, or
        with more than a page can draw, is left out: then the reason, as `left_out`.

    Raises:
        RooflinesError: A chart that the config lists would hold more than a page can draw.
    """
    name = chart.id
    try:
        choices = list(views_of(results, chart, stored))
        first = choices[0][1]
        spec = limited(first.spec(), name) if isinstance(first, View) else {}
    except RooflinesError as error:
        if not chart.auto:
            raise
        return {"left_out": f"{error.where} {error.problem}"}
    if isinstance(first, View):
        if chart.auto and not first.claim.rows:
            return {"left_out": f"charts: {name} says nothing of {chart.sweep}"}
        _write_first(chart, first, spec, formats, folder)
    elif stored.folder:
        for file in stored.folder.glob(f"{name}[.-]*"):
            link_or_copy(file, folder / file.name)
        (folder / f"{name}{VIEWS}").unlink()
    write_bytes(folder / f"{name}{VIEWS}", dumps(views_file(choices)))
    entry = entry_of(kinds()[chart.chart], chart, choices)
    return entry | {KEYS: [stored.key(case) for case, _ in choices]}


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
    first = choices[0][1].delta()
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
