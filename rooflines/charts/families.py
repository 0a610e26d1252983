"""One chart of a run: its frame and specification, and its files."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from altair.utils import schemapi

from rooflines.basics.errors import RooflinesError
from rooflines.basics.version import __version__
from rooflines.charts.comparing import shown_of
from rooflines.charts.every_chip import EVERY_CHIP, in_parts
from rooflines.charts.kit.render import (
    dumps,
    encoded,
    picture,
    rastered,
    spec_of,
    svg,
    thumbnail,
)
from rooflines.charts.kit.titles import with_note
from rooflines.charts.registry import charts
from rooflines.charts.room import left_out_of, offered_text, with_room
from rooflines.results.atomic import write_bytes
from rooflines.results.tables import write_csv, write_parquet
from rooflines.settings.charts import FORMATS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    import altair as alt
    import polars as pl

    from rooflines.charts.chart import Spec
    from rooflines.charts.results import Results


def draw(results: Results, spec: Spec) -> tuple[pl.DataFrame, alt.LayerChart]:
    """A chart and the frame it shows.

    Args:
        results: Where numbers come from.
        spec: Which chart, such as one of `Config.charts`.
    """
    return charts()[spec.chart].of(results, spec)


def fitted(results: Results, spec: Spec) -> tuple[pl.DataFrame, dict[str, Any]]:
    """A chart's frame and its specification.

    A chart that `auto` chose shows half of its chips where a page cannot draw all of them; its
    subtitles then say how many.

    Raises:
        RooflinesError: It holds more than a page can draw.
    """
    frame, fitting, _ = _fitted(results, spec)
    return frame, fitting


def _fitted(results: Results, spec: Spec) -> tuple[pl.DataFrame, dict[str, Any], tuple[str, ...]]:
    """A chart's frame, its specification, and its chips that a page has no room for."""
    most = len(spec.chips)
    while True:
        frame, drawn = draw(results, replace(spec, chips=spec.chips[:most]))
        if note := shown_of(spec.chips[:most], spec.chips):
            drawn = with_note(drawn, note.lstrip())
        try:
            return frame, spec_of(drawn, spec.id), spec.chips[most:]
        except RooflinesError:
            if not spec.auto or most == 1:
                raise
        most //= 2


def unchecked() -> AbstractContextManager[None]:
    """Switch off checks against Vega-Lite's schema: they double the time, and tests do them."""
    return schemapi.debug_mode(arg=False)


def write_chart(
    results: Results, chart: Spec, formats: Sequence[str], folder: Path
) -> dict[str, Any]:
    """Write a chart: its pictures, thumbnails, specification and data.

    Args:
        results: Where numbers come from.
        chart: Which chart.
        formats: The formats of the pictures, some of `FORMATS`.
        folder: Where the files go.

    Returns:
        Its entry in the index of its family, and for the log `chips_left_out` of the picture and
        what is `not_offered` by the site, if there are any. A chart of `auto` that holds more than
        a page can draw is left out: then the reason, as `left_out`.

    Raises:
        RooflinesError: A chart that the config lists would hold more than a page can draw.
    """
    try:
        with unchecked():
            frame, spec, chips_left_out = _fitted(results, chart)
    except RooflinesError as error:
        if not chart.auto:
            raise
        return {"left_out": f"{error.where} {error.problem}"}
    name = chart.id
    write_bytes(folder / f"{name}.json", dumps(spec))
    offered = with_room(results, chart)
    if offered.has_more:
        write_bytes(folder / f"{name}{EVERY_CHIP}", dumps(of_every_chip(results, offered)))
    _write_pictures(name, spec, formats, folder)
    write_csv(frame, folder / f"{name}.csv")
    write_parquet(
        frame.lazy(), folder / f"{name}.parquet", {"version": __version__, "chart": chart.plain()}
    )
    return {
        "id": name,
        "family": chart.family,
        "chart": chart.chart,
        "sweep": chart.sweep,
        "measurements": chart.measurements,
        "caption": charts()[chart.chart].caption + offered_text(offered, chart),
        "rows": frame.height,
        **({"chips_left_out": chips_left_out} if chips_left_out else {}),
        **({"not_offered": rest} if (rest := left_out_of(offered, chart)) else {}),
        **_said(spec),
    }


def of_every_chip(results: Results, chart: Spec) -> dict[str, Any]:
    """The chart of all chips and dtypes of its sweep, in parts, with its menus."""
    every = replace(
        chart,
        chips=chart.all_chips,
        dtypes=chart.all_dtypes,
        added=chart.more_chips,
        added_dtypes=chart.more_dtypes,
        models=chart.all_models,
        sizes=chart.all_sizes,
    )
    with unchecked():
        frame, drawn = draw(results, every)
        parts = in_parts(frame, drawn, chart, charts()[chart.chart].parts_by)
    return {**parts, "params": _menus(parts["spec"])}


def _write_pictures(
    name: str, spec: Mapping[str, Any], formats: Sequence[str], folder: Path
) -> None:
    """The pictures of a chart; one drawing of each theme gives PNG, SVG and thumbnail."""
    for look in ("light", "dark"):
        drawn = svg(spec, FORMATS["svg"], dark=look == "dark")
        pixels = rastered(drawn)
        write_bytes(folder / f"{name}-{look}-small.png", thumbnail(pixels))
        if "png" in formats:
            write_bytes(folder / f"{name}-{look}.png", encoded(pixels))
        if "svg" in formats and look == "light":
            write_bytes(folder / f"{name}.svg", drawn)
    for form in formats:
        if form not in ("png", "svg"):
            write_bytes(folder / f"{name}.{form}", picture(spec, form, FORMATS[form]))


def _said(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Title and subtitle of a chart as first shown, the claims of titles, and its parameters."""
    menus = _menus(spec)
    key = "|".join(str(menu["value"]) for menu in menus)
    finding = _parameters(spec)["findings"]["value"].get(key, {"title": "", "subtitle": []})
    return {
        "title": finding["title"],
        "subtitle": " ".join(finding["subtitle"]),
        "claims": spec["usermeta"]["claims"],
        "params": menus,
    }


def _menus(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What a reader can choose: name, options with their labels, and the first value."""
    values = _parameters(spec)
    return [
        {
            "name": name,
            "options": values[name]["bind"]["options"],
            "labels": labels,
            "value": values[name]["value"],
        }
        for name, labels in spec["usermeta"]["choices"].items()
    ]


def _parameters(spec: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The parameters of a specification by name."""
    return {parameter["name"]: parameter for parameter in spec["params"] if "name" in parameter}
