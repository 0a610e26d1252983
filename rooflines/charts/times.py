"""Where the time goes: what each layer of a model waits for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import altair as alt
import polars as pl

from rooflines.charts.kit.drawing import Chart, Choice, assemble, chosen, data, starting
from rooflines.charts.kit.labels import chip_label, on_chips, seconds, shorten, split_text
from rooflines.charts.kit.themes import Margins
from rooflines.model.resources import RESOURCES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["BOUNDS", "where_the_time_goes"]

BOUNDS = [resource.bound for resource in RESOURCES]
MARGINS = Margins(left=8.6, right=7.0, bottom=4.4)
NAME_ROOM = 7.8
THICK = 0.78 / len(BOUNDS)
"""Of a row's height, for one bar."""

CROWDED = 5
"""Rows from which on only the bar that binds has its time beside it."""

TIME_LABEL = (
    "datum.value == 0 ? '0' : datum.value >= 1 ? format(datum.value, '~r') + ' s'"
    " : datum.value >= 1e-3 ? format(datum.value * 1e3, '~r') + ' ms'"
    " : datum.value >= 1e-6 ? format(datum.value * 1e6, '~r') + ' µs' : format(datum.value * 1e9, '~r') + ' ns'"
)


def where_the_time_goes(
    frame: pl.DataFrame,
    *,
    model: str = "",
    size: str = "B",
    first: Mapping[str, Any] | None = None,
    title: str | None = None,
) -> Chart:
    """The times of compute, memory and network for each layer, the one that binds in full colour.

    Args:
        frame: From `frames_sizes.time_frame`: `seconds` [s] by layer and resource.
        model: What the subtitle calls the model.
        size: What the first dimension is called.
        first: What is shown first, by the names of the parameters; the first of the frame by default.
        title: In place of the finding.

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


def _layers(rows: pl.DataFrame, layers: Sequence[str]) -> list[alt.Chart]:
    names = [shorten(layer, NAME_ROOM, tail=True) for layer in layers]
    axis = alt.Axis(
        values=list(range(len(names))),
        labelExpr=f"{json.dumps(names)}[datum.value]",
        title=None,
        grid=False,
        ticks=False,
        domain=False,
    )
    down: dict[str, Any] = {
        "scale": alt.Scale(domain=[len(names) - 0.5, -0.5], nice=False, zero=False),
        "axis": axis,
    }
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
    """Title and subtitle: what most of the matmuls wait for, what they are, and which of them do not fit."""
    row = case.row(0, named=True)
    binding = case.filter("bound")
    counts = (
        binding.group_by("resource", maintain_order=True)
        .len()
        .sort("len", descending=True, maintain_order=True)
    )
    resource, times = counts.row(0)
    known = {
        "compute": ("is compute-bound", "are compute-bound"),
        "network": ("waits for the network", "wait for the network"),
    }
    verb = known.get(resource, (f"waits for {resource}", f"wait for {resource}"))[times > 1]
    matmuls = f"{binding.height} matmuls" if binding.height > 1 else "matmul"
    what = (
        f"{times} of {matmuls} {verb}"
        if times < binding.height
        else f"all {matmuls} {verb}"
        if times > 1
        else f"the {matmuls} {verb}"
    )
    total = seconds(float(binding["t_lower_s"].sum()))
    split = split_text(row["sharding"], [row["shards"]], row["link"])
    each = (
        f"{matmuls[0].upper()}{matmuls[1:]}{f' of {chip_label(model)}' if model else ''}, each once"
    )
    subtitle = f"{each}, in {row['dtypes']} on {on_chips(row['chip'], [row['shards']])}{split}. Full colour binds and adds up to {total}."
    unfit = binding.filter(~pl.col("fits"))["layer"].to_list() if "fits" in binding.columns else []
    if unfit:
        subtitle += f" More than the memory of a chip: {', '.join(unfit)}."
    return title or f"At {size} = {row['B']:,}, {what}", subtitle
