"""Where the time goes: the time of each resource in each layer of a model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import alt, pl
from rooflines.basics.text import seconds
from rooflines.charts.basis import (
    BAND,
    BASES,
    BOUNDS,
    CALIBRATED,
    NOMINAL,
    basis_choice,
    basis_names,
    with_estimates,
)
from rooflines.charts.chart import Chart
from rooflines.charts.claims import Finding, claim, over
from rooflines.charts.frames import TIMES, first_shown
from rooflines.charts.kinds.time_splits import split_of
from rooflines.charts.kit.drawing import TIME_LABEL, Choice, assemble, chosen, data, starting
from rooflines.charts.kit.text import chip_label, on_chips, over_text, shorten, split_text
from rooflines.charts.kit.themes import Margins
from rooflines.charts.models import layers_run
from rooflines.charts.needs import BY_SHAPE, by_shards, need
from rooflines.charts.offers import TWO

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.charts.chart import Spec
    from rooflines.charts.results import Selection

__all__ = ["time_frame", "where_the_time_goes"]

RESOURCES = list(TIMES)
MARGINS = Margins(left=8.6, right=7.0, bottom=4.4)
NAME_ROOM = 7.8

THICK = 0.78 / len(RESOURCES)
"""Thickness of a bar, as a share of the row's height."""

ESTIMATE_THICK = 0.36
"""Thickness of the bar of a calibrated time."""

UNDRAWN = (
    *("t_lower_s", "sharding", "link", "shape", "fits", "row", "calibrated", "estimate_bound"),
    *BAND,
)
"""Columns of resources' times that no mark and no tooltip reads."""

CROWDED = 5
"""With more rows than this only the bottleneck's bar has its time beside it."""


def time_frame(
    of: Selection,
    shapes: Mapping[str, str],
    sizes: Sequence[int],
    shards: Sequence[int],
    sharding: str | Mapping[str, str] | None = None,
) -> pl.DataFrame:
    """Where the time of a model's layers goes.

    Args:
        of: The chips and combinations, from `Results.of`, of a sweep with shapes.
        shapes: The shapes to show, by the names of their layers.
        sizes: Of the operation's first dimension.
        shards: Numbers of chips.
        sharding: What is split, of all layers or by layer; the sweep's first by default.

    Returns:
        `chip`, `dtypes`, `sharding`, `link` (the interconnect), `B` (the first dimension's size),
        `shards`, `layer`, `resource` (compute, memory or network), `seconds` [s], `bound` (whether
        the resource is the bottleneck), `t_lower_s` [s], `fits` if the sweep stores it;
        `t_estimate_s` with its band and `estimate_bound`, and `calibrated`: whether it has these.
    """
    by_layer = sharding if isinstance(sharding, dict) else dict.fromkeys(shapes, sharding)
    need(
        CHART,
        of.sweep,
        shapes=list(shapes.values()),
        sizes=sizes,
        shards=shards,
        sharding=[name for name in dict.fromkeys(by_layer.values()) if name],
    )
    lead = of.dims[0]
    layers = pl.DataFrame(
        [(shape, layer, by_layer[layer]) for layer, shape in shapes.items()],
        schema={"shape": pl.String, "layer": pl.String, "split": pl.String},
        orient="row",
    ).with_row_index("place")
    rows = with_estimates(of.rows()).with_columns(calibrated=pl.col("t_estimate_s").is_not_null())
    rows = rows.filter(pl.col("shards").is_in(list(shards)), pl.col(lead).is_in(list(sizes)))
    fits = ["fits"] if "fits" in rows.collect_schema() else []
    keys = ("chip", "dtypes", "sharding", "link", "B", "shards", "shape", "layer", "place")
    index = [*keys, "bound", "t_lower_s", *fits, *BAND, "estimate_bound", "calibrated"]
    split = pl.coalesce("split", pl.col("sharding").first())
    rows = rows.join(layers.lazy(), on="shape")
    rows = rows.filter(pl.col("sharding") == split)
    rows = rows.with_columns(pl.col("network").alias("link"), pl.col(lead).alias("B"))
    rows = rows.select(*index, **TIMES)
    tall = rows.unpivot(
        list(TIMES), index=index, variable_name="resource", value_name="seconds"
    ).collect()
    tall = tall.with_columns(bound=pl.col("bound") == pl.col("resource"))
    chip = pl.col("chip").cast(pl.String).cast(pl.Enum(of.chips))
    resource = pl.col("resource").cast(pl.Enum(RESOURCES))
    return tall.sort(chip, "dtypes", "B", "shards", resource, "place").drop("place")


def where_the_time_goes(
    frame: pl.DataFrame,
    *,
    model: str = "",
    size: str = "B",
    first: Mapping[str, Any] | None = None,
    title: str | None = None,
) -> alt.LayerChart:
    """The times of compute, memory and network per layer, the bottleneck in full colour.

    Calibrated, a layer has one time, in the colour of its bottleneck, with a line from p10 to p90.

    Args:
        frame: From `time_frame`: `seconds` [s] by layer and resource.
        model: What the subtitle calls the model.
        size: What the first dimension is called.
        first: The initial choices by parameter; the first of the frame by default.
        title: Replaces the finding.

    Returns:
        A chart with the parameters `chip`, `dtypes`, `size`, `shards`, and `basis` where rows are
        calibrated.
    """
    names = ("chip", "dtypes", "B", "shards", "layer")
    chips, combinations, sizes, splits, layers = (
        frame[name].unique(maintain_order=True).to_list() for name in names
    )
    rows = frame.rename({"B": "size"}).with_columns(
        row=pl.col("layer").replace_strict(
            {layer: float(i) for i, layer in enumerate(layers)}, return_dtype=pl.Float64
        )
    )
    findings = {}
    for key, case in frame.group_by("chip", "dtypes", "B", "shards", maintain_order=True):
        for basis in BASES if case["calibrated"].all() else (NOMINAL,):
            chosen_by = map(str, (*key, *(basis for _ in basis_names(frame))))
            findings["|".join(chosen_by)] = _finding(case, basis, model, size, title)
    marks = _layers(rows, layers)
    choices = [
        Choice("chip", chips),
        Choice("dtypes", combinations),
        Choice("size", sizes, f"{size} "),
        Choice("shards", splits, "Chips"),
        *basis_choice(frame),
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
    """Bars with their times: of every resource, and of the calibrated time where there is one."""
    both = bool(basis_names(rows))
    title = "Time" if both else "Time of each resource, if it were alone"
    x = alt.X(
        "seconds:Q",
        axis=alt.Axis(labelExpr=TIME_LABEL, title=title, tickCount=5),
        scale=alt.Scale(domainMin=0, nice=False),
    )
    down = _layer_axis(layers)
    bounds = BOUNDS if both else RESOURCES
    listed = f"basis == '{CALIBRATED}' ? {json.dumps(bounds)} : {json.dumps(RESOURCES)}"
    legend = alt.Legend(
        title=None,
        orient="none",
        direction="horizontal",
        legendX=0,
        legendY=alt.expr("em * -1.9"),
        columns=len(bounds),
        columnPadding=20,
        values=alt.expr(listed) if both else RESOURCES,
    )
    color = alt.Color("resource:N", scale=alt.Scale(domain=bounds, range="ordinal"), legend=legend)
    picked = alt.selection_point(name="picked", fields=["resource"], bind="legend")
    bars = _of_resources(rows, x, down, color, picked, crowded=len(layers) > CROWDED)
    return [*bars, *(_of_estimates(rows, x, down, color, picked) if both else [])]


def _of_resources(  # noqa: PLR0913, what all bars share
    rows: pl.DataFrame,
    x: alt.X,
    down: Mapping[str, Any],
    color: alt.Color,
    picked: alt.Parameter,
    *,
    crowded: bool,
) -> list[alt.Chart]:
    """A bar for each layer and resource, with its time."""
    step = {name: (i - (len(RESOURCES) - 1) / 2) * THICK for i, name in enumerate(RESOURCES)}
    bars = rows.filter(pl.col("seconds") > 0).with_columns(
        middle=pl.col("row") + pl.col("resource").replace_strict(step, return_dtype=pl.Float64)
    )
    bars = bars.with_columns(
        text=pl.Series([seconds(value) for value in bars["seconds"]], dtype=pl.String),
        low=pl.col("middle") - THICK * 0.42,
        high=pl.col("middle") + THICK * 0.42,
    )
    opacity = (
        alt.when(~picked)
        .then(alt.value(0.1))
        .when("datum.bound")
        .then(alt.value(1))
        .otherwise(alt.value(0.38))
    )
    now = chosen("chip", "dtypes", "size", "shards")
    nominal = f" && basis == '{NOMINAL}'" if basis_names(rows) else ""
    base = alt.Chart(data(bars.drop(UNDRAWN, strict=False))).transform_filter(now + nominal)
    tooltip = [
        "layer:N",
        "resource:N",
        alt.Tooltip("text:N", title="time"),
        alt.Tooltip("bound:N", title="binds"),
    ]
    shown = base.transform_filter("datum.bound") if crowded else base
    texts = {"x": x, "y": alt.Y("middle:Q", **down), "text": alt.Text("text:N")}
    return [
        base.mark_rect(style="bar")
        .encode(
            x=x,
            x2=alt.datum(0),
            y=alt.Y("low:Q", **down),
            y2=alt.Y2("high:Q"),
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


def _of_estimates(
    rows: pl.DataFrame,
    x: alt.X,
    down: Mapping[str, Any],
    color: alt.Color,
    picked: alt.Parameter,
) -> list[alt.Chart]:
    """A bar for each layer with its calibrated time, the band, and a tick at the lower bound."""
    of_layers = rows.filter("bound", "calibrated")
    low, high = (pl.coalesce(name, "t_estimate_s") for name in BAND[1:])
    bars = of_layers.select(
        *("chip", "dtypes", "size", "shards", "layer", "row"),
        resource="estimate_bound",
        seconds="t_estimate_s",
        bottom=pl.col("row") - ESTIMATE_THICK / 2,
        top=pl.col("row") + ESTIMATE_THICK / 2,
        lower="t_lower_s",
        p10=low,
        p90=high,
        text=pl.Series([seconds(value) for value in of_layers["t_estimate_s"]], dtype=pl.String),
    )
    now = chosen("chip", "dtypes", "size", "shards")
    base = alt.Chart(data(bars)).transform_filter(f"{now} && basis == '{CALIBRATED}'")
    edges = {"y": alt.Y("bottom:Q", **down), "y2": alt.Y2("top:Q")}
    tooltip = [
        "layer:N",
        alt.Tooltip("resource:N", title="bound"),
        alt.Tooltip("text:N", title="calibrated time"),
        *(alt.Tooltip(f"{name}:Q", title=f"{name}, s", format=".4~s") for name in ("p10", "p90")),
        alt.Tooltip("lower:Q", title="lower bound, s", format=".4~s"),
    ]
    opacity = alt.when(picked).then(alt.value(1)).otherwise(alt.value(0.1))
    return [
        base.mark_rect(style="bar").encode(
            x=x, x2=alt.datum(0), color=color, opacity=opacity, tooltip=tooltip, **edges
        ),
        base.mark_rule(style="band").encode(
            x=alt.X("p10:Q"), x2=alt.X2("p90:Q"), y=alt.Y("row:Q", **down), tooltip=tooltip
        ),
        base.mark_rule(style="tick").encode(x=alt.X("lower:Q"), **edges),
        base.mark_text(style="strong", align="left", clip=False, dx=alt.expr("em * 0.4")).encode(
            x=alt.X("p90:Q"), y=alt.Y("row:Q", **down), text=alt.Text("text:N")
        ),
    ]


VERBS = {
    "compute": ("is compute-bound", "are compute-bound"),
    "network": ("waits for the network", "wait for the network"),
    "mixed": ("overlaps imperfectly", "overlap imperfectly"),
}
"""What a title says of one matmul with a bottleneck, and of several."""


def _finding(case: pl.DataFrame, basis: str, model: str, size: str, title: str | None) -> Finding:
    """Title and subtitle: the commonest bottleneck, the total time, and layers that do not fit."""
    row = case.row(0, named=True)
    binding = case.filter("bound")
    bound, time = ("resource", "t_lower_s") if basis == NOMINAL else ("estimate_bound", BAND[0])
    counts = (
        binding.group_by(bound, maintain_order=True)
        .len()
        .sort("len", descending=True, maintain_order=True)
    )
    resource, times = counts.row(0)
    verb = VERBS.get(resource, (f"waits for {resource}", f"wait for {resource}"))[times > 1]
    matmuls = f"{binding.height} matmuls" if binding.height > 1 else "matmul"
    what = (
        f"{times} of {matmuls} {verb}"
        if times < binding.height
        else f"{'both' if times == TWO else f'all {times}'} matmuls {verb}"
        if times > 1
        else f"the {matmuls} {verb}"
    )
    total = seconds(float(binding[time].sum()))
    split = split_text(row["sharding"], [row["shards"]], [row["link"]])
    if binding["sharding"].n_unique() > 1 and row["shards"] > 1:
        split = f", tensor parallel{over_text(binding['link'])}"
    each = (
        f"{matmuls[0].upper()}{matmuls[1:]}{f' of {chip_label(model)}' if model else ''}, each once"
    )
    drawn, marks = ("Full colour binds and adds", "")
    if basis != NOMINAL:
        band = "lines: p10 to p90, " if binding[BAND[1]].count() else ""
        drawn, marks = "Calibrated, it adds", f"; {band}ticks: lower bound"
    subtitle = (
        f"{each}, in {row['dtypes']} on {on_chips(row['chip'], [row['shards']])}{split}."
        f" {drawn} up to {total}{marks}."
    )
    unfit = binding.filter(~pl.col("fits"))["layer"].to_list() if "fits" in binding.columns else []
    if unfit:
        subtitle += f" More than the memory of a chip: {', '.join(unfit)}."
    if title:
        return Finding(title, subtitle)
    shown = over(case, "chip", "dtypes", "shards") | {size: [row["B"]]}
    of = {"where": resource, "at": binding.select("sharding", "shape").to_dicts()}
    counted = claim("count", "bound", shown, [times, binding.height], basis, **of)
    return Finding(f"At {size} = {row['B']:,}, {what}", subtitle, counted)


def _frame(of: Selection, spec: Spec) -> pl.DataFrame:
    """The frame of a spec."""
    layers = layers_run(of.sweep, spec.model or "")
    return time_frame(of, layers, spec.sizes, spec.shards, spec.sharding or split_of(of, layers))


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
        "The time each resource takes by itself. The longest, in full colour, is its lower bound. "
        "Calibrated, a layer has one bar: its estimate, with p10 to p90 and the lower bound."
    ),
    order=110,
    needs=(BY_SHAPE,),
    reads=(*TIMES.values(), "t_lower_s", "bound"),
    preferred=by_shards,
    fills=frozenset({"model", "sizes", "shards"}),
    most_dtypes=2,
    frame=_frame,
    draw=_draw,
)
