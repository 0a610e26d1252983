"""Where the time goes: the time of each resource in each layer of a model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import alt, pl
from rooflines.basics.text import seconds
from rooflines.charts.chart import Chart
from rooflines.charts.frames import TIMES, first_shown
from rooflines.charts.kit.drawing import Choice, assemble, chosen, data, starting
from rooflines.charts.kit.text import chip_label, on_chips, shorten, split_text
from rooflines.charts.kit.themes import Margins
from rooflines.charts.models import models_of
from rooflines.charts.needs import BY_SHAPE, by_shards, need

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.charts.chart import Spec
    from rooflines.charts.results import Selection

__all__ = ["time_frame", "where_the_time_goes"]

BOUNDS = list(TIMES)
MARGINS = Margins(left=8.6, right=7.0, bottom=4.4)
NAME_ROOM = 7.8

THICK = 0.78 / len(BOUNDS)
"""Thickness of a bar, as a share of the row's height."""

CROWDED = 5
"""With more rows than this only the bottleneck's bar has its time beside it."""

TIME_LABEL = (
    "datum.value == 0 ? '0' : datum.value >= 1 ? format(datum.value, '~r') + ' s'"
    " : datum.value >= 1e-3 ? format(datum.value * 1e3, '~r') + ' ms'"
    " : datum.value >= 1e-6 ? format(datum.value * 1e6, '~r') + ' µs'"
    " : format(datum.value * 1e9, '~r') + ' ns'"
)


def time_frame(
    of: Selection,
    shapes: Mapping[str, str],
    sizes: Sequence[int],
    shards: Sequence[int],
    sharding: str | None = None,
) -> pl.DataFrame:
    """Where the time of a model's layers goes.

    Args:
        of: The chips and combinations, from `Results.of`, of a sweep with shapes.
        shapes: The shapes to show, by the names of their layers.
        sizes: Of the operation's first dimension.
        shards: Numbers of chips.
        sharding: What is split; the sweep's first by default.

    Returns:
        `chip`, `dtypes`, `sharding`, `link` (the interconnect), `B` (the first dimension's size),
        `shards`, `layer`, `resource` (compute, memory or network), `seconds` [s], `bound` (whether
        the resource is the bottleneck), `t_lower_s` [s], and `fits` if the sweep stores it.
    """
    need(
        CHART,
        of.sweep,
        shapes=list(shapes.values()),
        sizes=sizes,
        shards=shards,
        sharding=sharding,
    )
    lead = of.dims[0]
    layers = pl.DataFrame(
        {"shape": list(shapes.values()), "layer": list(shapes)},
        schema={"shape": pl.String, "layer": pl.String},
    )
    rows = of.rows()
    rows = rows.filter(pl.col("shards").is_in(list(shards)), pl.col(lead).is_in(list(sizes)))
    rows = rows.filter(
        pl.col("sharding") == (pl.lit(sharding) if sharding else pl.col("sharding").first())
    )
    fits = ["fits"] if "fits" in rows.collect_schema() else []
    keys = ("chip", "dtypes", "sharding", "link", "B", "shards", "layer")
    index = [*keys, "bound", "t_lower_s", *fits]
    rows = rows.join(layers.lazy(), on="shape", maintain_order="right")
    rows = rows.with_columns(pl.col("network").alias("link"), pl.col(lead).alias("B"))
    rows = rows.select(*index, **TIMES)
    tall = rows.unpivot(
        list(TIMES), index=index, variable_name="resource", value_name="seconds"
    ).collect()
    order = {chip: position for position, chip in enumerate(of.chips)}
    tall = tall.with_columns(
        bound=pl.col("bound") == pl.col("resource"), position=pl.col("chip").replace_strict(order)
    )
    return tall.sort("position", "dtypes", "B", "shards", maintain_order=True).drop("position")


def where_the_time_goes(
    frame: pl.DataFrame,
    *,
    model: str = "",
    size: str = "B",
    first: Mapping[str, Any] | None = None,
    title: str | None = None,
) -> alt.LayerChart:
    """The times of compute, memory and network per layer, the bottleneck in full colour.

    Args:
        frame: From `time_frame`: `seconds` [s] by layer and resource.
        model: What the subtitle calls the model.
        size: What the first dimension is called.
        first: The initial choices by parameter; the first of the frame by default.
        title: Replaces the finding.

    Returns:
        A chart with the parameters `chip`, `dtypes`, `size` and `shards`.
    """
    names = ("chip", "dtypes", "B", "shards", "layer")
    chips, combinations, sizes, splits, layers = (
        frame[name].unique(maintain_order=True).to_list() for name in names
    )
    step = {name: (index - (len(BOUNDS) - 1) / 2) * THICK for index, name in enumerate(BOUNDS)}
    rows = frame.filter(pl.col("seconds") > 0).with_columns(
        middle=pl.col("layer").replace_strict(
            {layer: float(i) for i, layer in enumerate(layers)}, return_dtype=pl.Float64
        )
        + pl.col("resource").replace_strict(step, return_dtype=pl.Float64)
    )
    rows = rows.with_columns(
        text=pl.Series([seconds(value) for value in rows["seconds"]], dtype=pl.String),
        low=pl.col("middle") - THICK * 0.42,
        high=pl.col("middle") + THICK * 0.42,
    )
    findings = {
        "|".join(str(part) for part in key): _finding(case, model, size, title)
        for key, case in frame.group_by("chip", "dtypes", "B", "shards", maintain_order=True)
    }
    marks = _layers(rows.rename({"B": "size"}), layers)
    choices = [
        Choice("chip", chips),
        Choice("dtypes", combinations),
        Choice("size", sizes, f"{size} "),
        Choice("shards", splits, "Chips"),
    ]
    return assemble(marks, findings, starting(choices, first), MARGINS)


def _layer_axis(layers: Sequence[str]) -> dict[str, Any]:
    """Scale and axis with a row for each layer."""
    names = [shorten(layer, NAME_ROOM, tail=True) for layer in layers]
    axis = alt.Axis(
        values=list(range(len(names))),
        labelExpr=f"{json.dumps(names)}[datum.value]",
        title=None,
        grid=False,
        ticks=False,
        domain=False,
    )
    scale = alt.Scale(domain=[len(names) - 0.5, -0.5], nice=False, zero=False)
    return {"scale": scale, "axis": axis}


def _layers(rows: pl.DataFrame, layers: Sequence[str]) -> list[alt.Chart]:
    """A bar for each layer and resource, with its time."""
    down = _layer_axis(layers)
    x = alt.X(
        "seconds:Q",
        axis=alt.Axis(
            labelExpr=TIME_LABEL, title="Time of each resource, if it were alone", tickCount=5
        ),
        scale=alt.Scale(domainMin=0, nice=False),
    )
    legend = alt.Legend(
        title=None,
        orient="none",
        direction="horizontal",
        legendX=0,
        legendY=alt.expr("em * -1.9"),
        columns=len(BOUNDS),
        columnPadding=20,
    )
    color = alt.Color("resource:N", scale=alt.Scale(domain=BOUNDS, range="ordinal"), legend=legend)
    picked = alt.selection_point(name="picked", fields=["resource"], bind="legend")
    opacity = (
        alt.when(~picked)
        .then(alt.value(0.1))
        .when("datum.bound")
        .then(alt.value(1))
        .otherwise(alt.value(0.38))
    )
    base = alt.Chart(
        data(rows.drop("t_lower_s", "sharding", "link", "fits", strict=False))
    ).transform_filter(chosen("chip", "dtypes", "size", "shards"))
    tooltip = [
        "layer:N",
        "resource:N",
        alt.Tooltip("text:N", title="time"),
        alt.Tooltip("bound:N", title="binds"),
    ]
    shown = base if len(layers) <= CROWDED else base.transform_filter("datum.bound")
    texts = {"x": x, "y": alt.Y("middle:Q", **down), "text": "text:N"}
    return [
        base.mark_rect(style="bar")
        .encode(
            x=x,
            x2=alt.datum(0),
            y=alt.Y("low:Q", **down),
            y2="high:Q",
            color=color,
            opacity=opacity,
            tooltip=tooltip,
        )
        .add_params(picked),
        shown.transform_filter("datum.bound")
        .mark_text(style="strong", align="left", clip=False, dx=alt.expr("em * 0.4"))
        .encode(**texts),
        shown.transform_filter("!datum.bound")
        .mark_text(style="small", align="left", clip=False, dx=alt.expr("em * 0.4"))
        .encode(**texts),
    ]


def _finding(case: pl.DataFrame, model: str, size: str, title: str | None) -> tuple[str, str]:
    """Title and subtitle: the commonest bottleneck, the total time, and layers that do not fit."""
    row = case.row(0, named=True)
    binding = case.filter("bound")
    counts = (
        binding.group_by("resource", maintain_order=True)
        .len()
        .sort("len", descending=True, maintain_order=True)
    )
    resource, times = counts.row(0)
    verbs = {
        "compute": ("is compute-bound", "are compute-bound"),
        "network": ("waits for the network", "wait for the network"),
    }
    verb = verbs.get(resource, (f"waits for {resource}", f"wait for {resource}"))[times > 1]
    matmuls = f"{binding.height} matmuls" if binding.height > 1 else "matmul"
    what = (
        f"{times} of {matmuls} {verb}"
        if times < binding.height
        else f"all {matmuls} {verb}"
        if times > 1
        else f"the {matmuls} {verb}"
    )
    total = seconds(float(binding["t_lower_s"].sum()))
    split = split_text(row["sharding"], [row["shards"]], [row["link"]])
    each = (
        f"{matmuls[0].upper()}{matmuls[1:]}{f' of {chip_label(model)}' if model else ''}, each once"
    )
    subtitle = (
        f"{each}, in {row['dtypes']} on {on_chips(row['chip'], [row['shards']])}{split}."
        f" Full colour binds and adds up to {total}."
    )
    unfit = binding.filter(~pl.col("fits"))["layer"].to_list() if "fits" in binding.columns else []
    if unfit:
        subtitle += f" More than the memory of a chip: {', '.join(unfit)}."
    return title or f"At {size} = {row['B']:,}, {what}", subtitle


def _frame(of: Selection, spec: Spec) -> pl.DataFrame:
    """The frame of a spec."""
    layers = models_of(of.sweep.config.shapes or ())[spec.model or ""]
    return time_frame(of, layers, spec.sizes, spec.shards, spec.sharding)


def _draw(frame: pl.DataFrame, of: Selection, spec: Spec) -> alt.LayerChart:
    """The chart of a spec, first shown at the middle one of its sizes and numbers of chips."""
    first: dict[str, Any] = {}
    if frame.height:
        first = first_shown(frame, spec, "chip", "dtypes")
        for name, column in (("size", "B"), ("shards", "shards")):
            values = frame[column].unique().sort().to_list()
            first[name] = values[len(values) // 2]
    return where_the_time_goes(
        frame, model=spec.model or "", size=of.dims[0], first=first, title=spec.title
    )


CHART = Chart(
    name="time",
    family="time",
    heading="Where the time goes",
    caption=(
        "The time each resource takes by itself. The longest, in full colour, is its lower bound."
    ),
    order=110,
    needs=(BY_SHAPE,),
    reads=(*TIMES.values(), "t_lower_s", "bound"),
    preferred=by_shards,
    fills=frozenset({"model", "sharding", "sizes", "shards"}),
    most_dtypes=2,
    frame=_frame,
    draw=_draw,
)
