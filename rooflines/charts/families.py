"""What a job draws: the charts of one family as pictures, specification and data, and an index."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from altair.utils import schemapi
from pydantic import TypeAdapter

from rooflines.basics.errors import RooflinesError
from rooflines.basics.version import __version__
from rooflines.charts.chart import Spec
from rooflines.charts.kit.render import (
    dumps,
    encoded,
    image,
    pdf,
    spec_of,
    svg,
    thumbnail,
    write_bytes,
)
from rooflines.charts.registry import charts
from rooflines.charts.results import on_disk, recipes_on_disk
from rooflines.results.atomic import atomic_folder
from rooflines.results.records import recorded, recording
from rooflines.results.tables import write_csv, write_parquet

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    import altair as alt
    import polars as pl

    from rooflines.charts.results import Results

__all__ = ["draw", "fitted", "unchecked", "write_family"]

SPECS = TypeAdapter(tuple[Spec, ...])
"""The charts of a family, as the plan hands them to a job."""


def draw(results: Results, spec: Spec) -> tuple[pl.DataFrame, alt.LayerChart]:
    """A chart and the frame it shows.

    Args:
        results: Where numbers come from.
        spec: Which chart, such as one of `Config.charts`.
    """
    return charts()[spec.chart].of(results, spec)


def fitted(results: Results, spec: Spec) -> tuple[pl.DataFrame, dict[str, Any]]:
    """A chart's frame and its specification.

    A chart that `auto` chose shows half of its chips where a page cannot draw all of them.

    Raises:
        RooflinesError: It holds more than a page can draw.
    """
    frame, drawn = draw(results, spec)
    try:
        return frame, spec_of(drawn, spec.id)
    except RooflinesError:
        if not spec.auto or len(spec.chips) == 1:
            raise
    return fitted(results, replace(spec, chips=spec.chips[: len(spec.chips) // 2]))


def unchecked() -> AbstractContextManager[None]:
    """Switch off checks against Vega-Lite's schema: they double the time, and tests do them."""
    return schemapi.debug_mode(arg=False)


@recorded
def write_family(spec: str, results: str | Path, folder: str | Path) -> None:
    """Draw the charts of a family: pictures, specification and data of each, and `index.json`.

    A chart of `auto` that holds more than a page can draw is left out; the job's log says so.

    Args:
        spec: What it depends on, from the plan: JSON with the charts.
        results: The folder that a run writes to.
        folder: Where the files go.

    Raises:
        RooflinesError: A chart that the config lists would hold more than a page can draw.
    """
    numbers, specs = on_disk(results), SPECS.validate_python(json.loads(spec)["charts"])
    with recording(recipes=_recipes(specs, Path(results))), atomic_folder(folder) as aside:
        index = []
        for chart in specs:
            try:
                with unchecked():
                    frame, specification = fitted(numbers, chart)
            except RooflinesError as error:
                if not chart.auto:
                    raise
                print(f"{error.where} {error.problem}: left out")
            else:
                index.append(_write_chart(chart, frame, specification, aside))
        write_bytes(aside / "index.json", json.dumps(index, ensure_ascii=False, indent=1) + "\n")


def _recipes(specs: Sequence[Spec], results: Path) -> list[Any]:
    """The recipes of the sweeps that charts show, with the chips that are shown."""
    shown: dict[str, set[str]] = {}
    for spec in specs:
        for sweep in (spec.sweep, *spec.others):
            shown.setdefault(sweep, set()).update(spec.chips)
    recipes = [recipe for sweep, recipe in recipes_on_disk(results).items() if sweep in shown]
    return [
        {
            **recipe,
            "chips": {
                chip: recipe["chips"][chip]
                for chip in recipe["chips"]
                if chip in shown[recipe["sweep"]]
            },
        }
        for recipe in recipes
    ]


def _write_chart(
    chart: Spec, frame: pl.DataFrame, spec: Mapping[str, Any], folder: Path
) -> dict[str, Any]:
    """All files of one chart, and its entry in the index."""
    name = chart.id
    write_bytes(folder / f"{name}.json", dumps(spec))
    for look in ("light", "dark"):
        picture = image(spec, dark=look == "dark")
        write_bytes(folder / f"{name}-{look}.png", encoded(picture))
        write_bytes(folder / f"{name}-{look}-small.png", thumbnail(picture))
    write_bytes(folder / f"{name}.svg", svg(spec))
    write_bytes(folder / f"{name}.pdf", pdf(spec))
    write_csv(frame, folder / f"{name}.csv")
    write_parquet(
        frame.lazy(), folder / f"{name}.parquet", {"version": __version__, "chart": chart.plain()}
    )
    return {
        "id": name,
        "family": chart.family,
        "chart": chart.chart,
        "caption": charts()[chart.chart].caption,
        "rows": frame.height,
        **_said(spec),
    }


def _said(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Title and subtitle of a chart as first shown, and its parameters."""
    values = {parameter["name"]: parameter for parameter in spec["params"] if "name" in parameter}
    choices = spec["usermeta"]["choices"]
    key = "|".join(str(values[name]["value"]) for name in choices)
    finding = values["findings"]["value"].get(key, {"title": "", "subtitle": []})
    params = [
        {
            "name": name,
            "options": values[name]["bind"]["options"],
            "labels": labels,
            "value": values[name]["value"],
        }
        for name, labels in choices.items()
    ]
    return {"title": finding["title"], "subtitle": " ".join(finding["subtitle"]), "params": params}
