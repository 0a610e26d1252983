"""What a job draws: the charts of one family, each as pictures, specification and data, and an index of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from altair.utils import schemapi

from rooflines.basics.errors import RooflinesError
from rooflines.basics.version import __version__
from rooflines.charts.bounds import bound_map
from rooflines.charts.chips import chips_on_one_roofline
from rooflines.charts.choice import models_of
from rooflines.charts.compared import critical_of_layers, per_unit, ridges
from rooflines.charts.curves import attained
from rooflines.charts.frames import attained_frame, on_disk, ridge_frame, roofline_frame
from rooflines.charts.frames_sizes import (
    bound_frame,
    contour_frame,
    critical_frame,
    layer_frame,
    shards_frame,
    time_frame,
)
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
from rooflines.charts.maps import critical, critical_map
from rooflines.charts.roofs import roofline
from rooflines.charts.shards import critical_over_shards
from rooflines.charts.times import where_the_time_goes
from rooflines.model.sharding import SHARDS
from rooflines.results.records import appearing_folder, recorded, recording
from rooflines.results.tables import metadata_of, write_csv, write_parquet

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    import polars as pl

    from rooflines.charts.frames import Results, Selection
    from rooflines.charts.kit.drawing import Chart

__all__ = ["CAPTIONS", "draw", "write_family"]

CAPTIONS = {
    "roofline": "Attainable FLOP/s over arithmetic intensity. The thick line is the roof from main memory, thin ones are other memory "
    "levels, interconnects (two chips) and compute dtypes. On one chip all left of the ridge is memory-bound, all right of it "
    "compute-bound.",
    "chips": "The roofs of several chips from main memory; the dot is the ridge.",
    "attained": "What the operation attains over its first dimension, every byte counted. A dot is the first compute-bound size; a curve "
    "without one never reaches the roof.",
    "critical": "The smallest compute-bound size for every pair of the other two, exact to the last integer. Grey is never.",
    "critical-map": "Lines of equal critical batch, exact; named shapes stand at their true sizes. Grey is never compute-bound.",
    "shards": "The smallest compute-bound size over the number of chips, against memory and network. Crosses are never compute-bound.",
    "ridges": "Dense peak over main-memory bandwidth, by the dtype computed in.",
    "layers": "The smallest compute-bound size of each layer's matmul on each chip. Grey is never.",
    "per-dollar": "Dense peak FLOP for one US dollar at the lowest listed price of each chip; dates and providers differ.",
    "per-watt": "Dense peak over the power that the catalogue lists: the design power where it is published.",
    "time": "The time each resource takes by itself. The longest, in full colour, is its lower bound.",
    "bounds": "Which resource takes longest, and the share of the peak that is attained if everything overlaps.",
}
"""What every chart shows."""


Drawn = tuple["pl.DataFrame", "Chart"]
"""A frame and the chart of it."""


def _layers(of: Selection, spec: Mapping[str, Any]) -> dict[str, str]:
    """The shapes of the chart's model by layer."""
    found: dict[str, str] = models_of([shape.name for shape in of.sweep.config.shapes or ()])[
        spec["model"] or ""
    ]
    return found


def _first(frame: pl.DataFrame, spec: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """What a chart shows first: of what its frame has, the first that the spec lists, and the sharding it names."""
    first: dict[str, Any] = {}
    for name, listed in (
        ("chip", spec["chips"]),
        ("dtypes", spec["dtypes"]),
        ("sharding", [spec["sharding"]]),
    ):
        if name in names:
            shown = [value for value in listed if value in frame[name]]
            first |= dict.fromkeys([name], shown[0]) if shown else {}
            frame = frame.filter(**first)
    return first


def _roofline(of: Selection, spec: Mapping[str, Any]) -> Drawn:
    frame = roofline_frame(of, spec["shape"], spec["sizes"])
    return frame, roofline(frame, first=_first(frame, spec, "chip", "dtypes"), title=spec["title"])


def _chips(of: Selection, spec: Mapping[str, Any]) -> Drawn:
    frame = ridge_frame(of)
    return frame, chips_on_one_roofline(
        frame,
        first=_first(frame, spec, "dtypes"),
        title=spec["title"],
        palette=dict(spec["palette"]),
    )


def _attained(of: Selection, spec: Mapping[str, Any]) -> Drawn:
    frame = attained_frame(of, spec["shape"])
    return frame, attained(
        frame, size=of.dims[0], first=_first(frame, spec, "chip", "dtypes"), title=spec["title"]
    )


def _critical(of: Selection, spec: Mapping[str, Any]) -> Drawn:
    frame = critical_frame(of)
    return frame, critical(
        frame,
        dims=of.dims[1:],
        size=of.dims[0],
        first=_first(frame, spec, "chip", "dtypes"),
        title=spec["title"],
    )


def _critical_map(of: Selection, spec: Mapping[str, Any]) -> Drawn:
    frame = contour_frame(of, [{"name": name, "D": d, "F": f} for name, d, f in spec["shapes"]])
    return frame, critical_map(
        frame, first=_first(frame, spec, "chip", "dtypes"), title=spec["title"]
    )


def _shards(of: Selection, spec: Mapping[str, Any]) -> Drawn:
    axis = next(name for name in of.sweep.solved if name in of.dims)
    frame = shards_frame(of, axis, spec["shape"])
    first = _first(frame, spec, "dtypes", "sharding")
    return frame, critical_over_shards(
        frame, size=axis, first=first, title=spec["title"], palette=dict(spec["palette"])
    )


def _ridges(of: Selection, spec: Mapping[str, Any]) -> Drawn:
    frame = ridge_frame(of)
    return frame, ridges(frame, title=spec["title"], palette=dict(spec["palette"]))


def _per_dollar(of: Selection, spec: Mapping[str, Any]) -> Drawn:
    frame = ridge_frame(of)
    return frame, per_unit(
        frame,
        unit="usd",
        first=_first(frame.drop_nulls("flops_per_usd"), spec, "dtypes"),
        title=spec["title"],
        palette=dict(spec["palette"]),
    )


def _per_watt(of: Selection, spec: Mapping[str, Any]) -> Drawn:
    frame = ridge_frame(of)
    return frame, per_unit(
        frame,
        unit="watt",
        first=_first(frame.drop_nulls("flops_per_joule"), spec, "dtypes"),
        title=spec["title"],
        palette=dict(spec["palette"]),
    )


def _of_layers(of: Selection, spec: Mapping[str, Any]) -> Drawn:
    frame = layer_frame(of, _layers(of, spec))
    first = _first(frame, spec, "dtypes")
    return frame, critical_of_layers(
        frame, model=spec["model"] or "", size=of.dims[0], first=first, title=spec["title"]
    )


def _time(of: Selection, spec: Mapping[str, Any]) -> Drawn:
    frame = time_frame(of, _layers(of, spec), spec["sizes"], spec["shards"], spec["sharding"])
    sizes, shards = frame["B"].unique().sort().to_list(), frame["shards"].unique().sort().to_list()
    first = (
        {
            **_first(frame, spec, "chip", "dtypes"),
            "size": sizes[len(sizes) // 2],
            "shards": shards[len(shards) // 2],
        }
        if sizes
        else {}
    )
    return frame, where_the_time_goes(
        frame, model=spec["model"] or "", size=of.dims[0], first=first, title=spec["title"]
    )


def _bounds(of: Selection, spec: Mapping[str, Any]) -> Drawn:
    frame = bound_frame(of, spec["up"], spec["shape"])
    first = _first(frame, spec, "chip", "dtypes", *(["sharding"] if spec["up"] == SHARDS else []))
    return frame, bound_map(frame, size=of.dims[0], up=spec["up"], first=first, title=spec["title"])


DRAWN: Mapping[str, Callable[[Selection, Mapping[str, Any]], Drawn]] = {
    "roofline": _roofline,
    "chips": _chips,
    "attained": _attained,
    "critical": _critical,
    "critical-map": _critical_map,
    "shards": _shards,
    "ridges": _ridges,
    "layers": _of_layers,
    "per-dollar": _per_dollar,
    "per-watt": _per_watt,
    "time": _time,
    "bounds": _bounds,
}
"""How each chart is drawn."""


def draw(results: Results, spec: Mapping[str, Any]) -> tuple[pl.DataFrame, Chart]:
    """A chart and the frame it shows.

    Args:
        results: Where numbers come from.
        spec: Which chart, from `choice.Spec`.
    """
    return DRAWN[spec["chart"]](results.of(spec["sweep"], spec["chips"], spec["dtypes"]), spec)


def fitted(results: Results, spec: Mapping[str, Any]) -> tuple[pl.DataFrame, dict[str, Any]]:
    """A chart's frame and its specification; one that nobody asked for in particular shows as many chips as a page can draw.

    Raises:
        RooflinesError: It holds more than a page can draw.
    """
    frame, drawn = draw(results, spec)
    try:
        return frame, spec_of(drawn, spec["id"])
    except RooflinesError:
        if not spec["auto"] or len(spec["chips"]) == 1:
            raise
    return fitted(results, {**spec, "chips": spec["chips"][: len(spec["chips"]) // 2]})


def unchecked() -> AbstractContextManager[None]:
    """Charts are made without a look at the schema for each of their parts: it takes as long as all the rest, and tests do it."""
    return schemapi.debug_mode(arg=False)


@recorded
def write_family(spec: str, results: str | Path, folder: str | Path) -> None:
    """Draw the charts of a family: pictures, specification and data of each, and `index.json`.

    A chart of `auto` that holds more than a page can draw is left out, with a line in the job's log.

    Args:
        spec: What it depends on, from the plan: JSON with the charts.
        results: The folder that holds `tables/` and `thresholds.parquet`.
        folder: Where the files go.

    Raises:
        RooflinesError: A chart that the config lists would hold more than a page can draw.
    """
    known, charts = on_disk(results), json.loads(spec)["charts"]
    with recording(recipes=_recipes(charts, Path(results))), appearing_folder(folder) as aside:
        index = []
        for chart in charts:
            try:
                with unchecked():
                    frame, specification = fitted(known, chart)
            except RooflinesError as error:
                if not chart["auto"]:
                    raise
                print(f"{error.where} {error.problem}: left out")
            else:
                index.append(_write_chart(chart, frame, specification, aside))
        write_bytes(aside / "index.json", json.dumps(index, ensure_ascii=False, indent=1) + "\n")


def _recipes(charts: Sequence[Mapping[str, Any]], results: Path) -> list[Any]:
    """The sweeps that charts show, with config, catalogue entries and their sources; of chips those that are shown."""
    shown: dict[str, set[str]] = {}
    for chart in charts:
        shown.setdefault(chart["sweep"], set()).update(chart["chips"])
    recipes = [
        recipe
        for recipe in metadata_of(results / "thresholds.parquet")["made_from"]
        if recipe["sweep"] in shown
    ]
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
    chart: Mapping[str, Any], frame: pl.DataFrame, spec: Mapping[str, Any], folder: Path
) -> dict[str, Any]:
    """All files of one chart, and its entry in the index."""
    name = chart["id"]
    write_bytes(folder / f"{name}.json", dumps(spec))
    for look in ("light", "dark"):
        picture = image(spec, dark=look == "dark")
        write_bytes(folder / f"{name}-{look}.png", encoded(picture))
        write_bytes(folder / f"{name}-{look}-small.png", thumbnail(picture))
    write_bytes(folder / f"{name}.svg", svg(spec))
    write_bytes(folder / f"{name}.pdf", pdf(spec))
    write_csv(frame, folder / f"{name}.csv")
    write_parquet(
        frame.lazy(), folder / f"{name}.parquet", {"version": __version__, "chart": dict(chart)}
    )
    return {
        "id": name,
        "family": chart["family"],
        "chart": chart["chart"],
        "caption": CAPTIONS[chart["chart"]],
        "rows": frame.height,
        **said(spec),
    }


def said(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Title and subtitle of a chart as it is first shown, and what a reader can choose."""
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
