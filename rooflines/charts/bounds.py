"""The bound map: which resource binds over two sizes, and how much of the peak is left."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import altair as alt
import polars as pl

from rooflines.charts.kit.drawing import (
    BINARY_LABEL,
    LAYOUTS,
    Chart,
    Choice,
    assemble,
    data,
    starting,
)
from rooflines.charts.kit.labels import (
    chip_label,
    listed,
    on_chips,
    sizes_text,
    split_on,
    split_text,
)
from rooflines.charts.kit.themes import Margins, plot_size
from rooflines.charts.times import BOUNDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["bound_map"]

MARGINS = Margins(left=4.6, right=8.2)
NUMBER_ROOM = 1.9
"""Width of a cell from which on its number is written in it [em]."""


def bound_map(
    frame: pl.DataFrame,
    *,
    size: str = "B",
    up: str = "shards",
    first: Mapping[str, Any] | None = None,
    title: str | None = None,
) -> Chart:
    """Which resource binds, over the first dimension and the number of chips or another dimension.

    Args:
        frame: From `frames_sizes.bound_frame`: `bound` and `utilization` [1] for every pair of sizes, and the `critical` sizes [1].
        size: What the size across is called.
        up: What the size up is called, `shards` or a dimension.
        first: What is shown first, by the names of the parameters; the first of the frame by default.
        title: In place of the finding.

    Returns:
        A chart with the parameters `chip`, `dtypes` and, over shards, `sharding`.
    """
    chips, combinations, shardings = (
        frame[name].unique(maintain_order=True).to_list() for name in ("chip", "dtypes", "sharding")
    )
    names = ["chip", "dtypes", *(["sharding"] if up == "shards" else [])]
    span = [
        float(getattr(frame[f"{axis}_{end}"], "min" if end == "low" else "max")())
        for axis in "xy"
        for end in ("low", "high")
    ]
    xs, ys = sorted(frame["x"].unique().to_list()), sorted(frame["y"].unique().to_list())
    cells = frame.with_columns(
        middle_x=(pl.col("x_low") * pl.col("x_high")).sqrt(),
        middle_y=(pl.col("y_low") * pl.col("y_high")).sqrt(),
    )
    across: dict[str, Any] = {
        "scale": alt.Scale(type="log", base=2, domain=span[:2], nice=False),
        "axis": _axis(xs, "Batch size B (tokens)" if size == "B" else size, 0),
    }
    upward: dict[str, Any] = {
        "scale": alt.Scale(type="log", base=2, domain=span[2:], nice=False),
        "axis": _axis(ys, "Chips that share the work" if up == "shards" else up, 1),
    }
    now = " && ".join(f"datum.{name} == {name}" for name in names)
    legend = alt.Legend(title="Bound by", orient="right")
    color = alt.Color("bound:N", scale=alt.Scale(domain=BOUNDS, range="ordinal"), legend=legend)
    picked = alt.selection_point(name="picked", fields=["bound"], bind="legend")
    tooltip = [
        "chip:N",
        "dtypes:N",
        "sharding:N",
        alt.Tooltip("x:Q", title=size, format=",d"),
        alt.Tooltip("y:Q", title=up, format=",d"),
        "bound:N",
        alt.Tooltip("utilization:Q", title="of the peak", format=".1%"),
    ]
    room = {}
    for layout, look in LAYOUTS.items():
        plot = plot_size(look, MARGINS)
        wide = min(math.log(2) / math.log(span[1] / span[0]) * plot[0], plot[0] / len(xs))
        room[layout] = wide > NUMBER_ROOM
    base = alt.Chart(
        data(
            cells.drop(
                "setting", "network", "solved", "critical", *(["shards"] if up != "shards" else [])
            )
        )
    ).transform_filter(now)
    marks = [
        base.mark_rect(style="cell")
        .encode(
            x=alt.X("x_low:Q", **across),
            x2="x_high:Q",
            y=alt.Y("y_low:Q", **upward),
            y2="y_high:Q",
            color=color,
            tooltip=tooltip,
            opacity=alt.when(picked).then(alt.value(1)).otherwise(alt.value(0.15)),
        )
        .add_params(picked)
    ]
    shown = base.transform_filter(
        f"narrow ? {json.dumps(room['narrow'])} : {json.dumps(room['wide'])}"
    )
    percent = alt.expr(
        "datum.utilization < 0.01 ? '<1' : format(floor(datum.utilization * 100 + 1e-9), '.0f')"
    )
    middle = {"x": alt.X("middle_x:Q", **across), "y": alt.Y("middle_y:Q", **upward)}
    marks.append(shown.mark_text(style="on-resource", text=percent).encode(**middle))
    findings = {
        "|".join(str(part) for part in key): _finding(case, key, size, up, title)
        for key, case in frame.group_by(names, maintain_order=True)
    }
    choices = [Choice("chip", chips), Choice("dtypes", combinations)]
    choices += [Choice("sharding", shardings, "Split")] if up == "shards" else []
    return assemble(marks, findings, starting(choices, first), MARGINS)


def _axis(values: Sequence[int], title: str, axis: int) -> alt.Axis:
    """Sizes as ticks, as many as there is room for in the narrow layout."""
    room = plot_size(LAYOUTS["narrow"], MARGINS)[axis] / (3.4 if axis == 0 else 1.5)
    step = max(1, math.ceil(len(values) / room))
    return alt.Axis(
        values=list(values[::step]),
        labelExpr=BINARY_LABEL,
        title=title,
        grid=False,
        domain=False,
        ticks=False,
    )


def _finding(
    case: pl.DataFrame, key: Sequence[object], size: str, up: str, title: str | None
) -> tuple[str, str]:
    """Title and subtitle: the critical size of the last row, or the rows that never are compute-bound; by the thresholds."""
    chip, combination = str(key[0]), key[1]
    sharding, shards = str(case["sharding"][0]), case["shards"].unique().to_list()
    split = split_text(sharding, shards, case["network"].drop_nulls().first())  # type: ignore[arg-type]
    setting = case["setting"][0]
    on = on_chips(chip, shards) if up != "shards" else chip_label(chip)
    subtitle = (
        f"{combination} on {on}{split}{', ' + setting if setting else ''}. Numbers: % of the peak."
    )
    if title:
        return title, subtitle
    if not case["solved"].all():
        computing = case.filter(bound="compute").height
        return (
            f"{computing:,} of {case.height:,} cases shown on {chip_label(chip)} are compute-bound",
            subtitle,
        )
    never = case.filter(pl.col("critical").is_null())["y"].unique().to_list()
    if never:
        of = (
            split_on(sharding, chip, never)
            if up == "shards"
            else f"{chip_label(chip)} at {up} = {listed(never)}"
        )
        return f"{of}: no {size} is enough", subtitle
    most = case.filter(pl.col("y") == pl.col("y").max())
    last = most["y"][0]
    at = (
        f"At {up} = {last:,}"
        if up != "shards"
        else f"On {last:,} chips"
        if last > 1
        else "On 1 chip"
    )
    return f"{at} compute-bound from {sizes_text(size, most['critical'])} on", subtitle
