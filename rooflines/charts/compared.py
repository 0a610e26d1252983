"""Chips compared: their ridges, the critical batch of a model's layers on each, and what a dollar or a watt buys."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import altair as alt
import polars as pl

from rooflines.charts.chips import EVERY, ridges_compared, told_apart
from rooflines.charts.frames import highest, lowest
from rooflines.charts.kit.drawing import (
    LAYOUTS,
    SHORT_LABEL,
    Chart,
    Choice,
    assemble,
    data,
    log_axis,
    palette_of,
    placed_text,
    places_of,
    starting,
    ticks_between,
)
from rooflines.charts.kit.labels import (
    Place,
    Spot,
    chip_label,
    count,
    place,
    shorten,
    si,
    significant,
    sizes_text,
    split_text,
    width_em,
)
from rooflines.charts.kit.themes import Margins, plot_size
from rooflines.charts.maps import CELL_HEIGHT, DARK_FROM, SPREAD, rounded_down

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["critical_of_layers", "per_unit", "ridges"]

TALL_ROW = 2.1
"""Height of a row from which on a label fits above its point [em]."""

MOST_ROWS = 16
"""Rows that a picture has room for; of more chips every so-manieth is shown, from the first to the last."""

EQUAL_DIGITS = 12
"""Quotients that agree to so many digits are a tie."""

NAME_ROOM = 9.5
MARGINS = Margins(left=10.4, right=3.0)
SHAPES = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down")


def spread(chips: Sequence[str], most: int = MOST_ROWS) -> list[str]:
    """As many chips as there is room for, evenly from a longer list."""
    if len(chips) <= most:
        return list(chips)
    return [chips[round(i * (len(chips) - 1) / (most - 1))] for i in range(most)]


def _down(chips: Sequence[str] | Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """An axis with a row for each chip; in an order for each dtype combination, where it is given by these."""
    orders = {"": chips} if not isinstance(chips, dict) else chips
    names = {
        key: [shorten(chip_label(chip), NAME_ROOM, tail=True) for chip in order]
        for key, order in orders.items()
    }
    chosen = "dtypes" if isinstance(chips, dict) else "''"
    rows = max(len(order) for order in orders.values())
    label = f"({json.dumps(names)}[{chosen}] || [])[datum.value] || ''"
    axis = alt.Axis(
        values=list(range(rows)), labelExpr=label, title=None, grid=False, ticks=False, domain=False
    )
    return {"scale": alt.Scale(domain=[rows - 0.5, -0.5], nice=False, zero=False), "axis": axis}


def _told(shown: Sequence[str], chips: Sequence[str]) -> str:
    """What a subtitle says where not all chips are shown."""
    return "" if len(shown) == len(chips) else f" {len(shown)} of {len(chips)} chips."


def _head(text: str) -> alt.Chart:
    """What the values are, where the other charts have the name of their y axis."""
    head = alt.Chart(pl.DataFrame({"text": [text]}))
    drawn: alt.Chart = head.mark_text(
        style="strong", align="left", clip=False, x=0, y=alt.expr("em * -1.35")
    ).encode(text="text:N")
    return drawn


def ridges(
    frame: pl.DataFrame, *, title: str | None = None, palette: Mapping[str, str] | None = None
) -> Chart:
    """Ridge points of chips by the dtype they compute in.

    Args:
        frame: From `frames.ridge_frame`: `ridge` [FLOP/byte].
        title: In place of the finding.
        palette: Chips with their vendors, where several charts are to share colours.

    Returns:
        A chart with the parameter `chip` for the one to tell from the others.
    """
    found = frame.unique(["chip", "compute"], keep="first", maintain_order=True)
    found = found.group_by(
        "chip", "vendor", "ridge", "flops_per_s", "bytes_per_s", maintain_order=True
    ).agg(compute=pl.col("compute").str.join(", "), first=pl.col("compute").first())
    computes = found["first"].unique(maintain_order=True).to_list()
    order = (
        found.group_by("chip", maintain_order=True)
        .agg(pl.col("ridge").min())
        .sort("ridge")["chip"]
        .to_list()
    )
    chips = spread(order)
    rows = found.filter(pl.col("chip").is_in(chips)).with_columns(
        row=pl.col("chip").replace_strict(
            {c: i for i, c in enumerate(chips)}, return_dtype=pl.Float64
        )
    )
    low, high = lowest(rows, "ridge") / 1.35, highest(rows, "ridge") * 1.35
    texts = [f"{row['compute']} {significant(row['ridge'])}" for row in rows.to_dicts()]
    places = {}
    for layout, look in LAYOUTS.items():
        plot = plot_size(look, MARGINS)
        step = plot[1] / len(chips)
        sides = ("t", "r", "l", "b") if step > TALL_ROW else ("r", "l")
        spots = [
            Spot(
                math.log(row["ridge"] / low) / math.log(high / low) * plot[0],
                (row["row"] + 0.5) * step,
                text,
                bold=True,
                sides=sides,
                distance=0.45,
            )
            for row, text in zip(rows.to_dicts(), texts, strict=True)
        ]
        places[layout] = place(spots, plot)
    labels = rows.select("chip", "row", "ridge", text=pl.Series(texts, dtype=pl.String)).hstack(
        places_of(places)
    )
    ticks = ticks_between(low, high)
    x = alt.X(
        "ridge:Q",
        **log_axis(
            low, high, "Ridge point (FLOP per byte of main memory)", SHORT_LABEL, values=ticks
        ),
    )
    color = alt.Color("chip:N", legend=None, scale=palette_of(frame, palette))
    shape = alt.Shape(
        "first:N",
        legend=None,
        scale=alt.Scale(
            domain=computes, range=[SHAPES[i % len(SHAPES)] for i in range(len(computes))]
        ),
    )
    tooltip = [
        "chip:N",
        "compute:N",
        alt.Tooltip("ridge:Q", title="FLOP/byte", format=".4~s"),
        alt.Tooltip("flops_per_s:Q", title="peak FLOP/s", format=".4~s"),
        alt.Tooltip("bytes_per_s:Q", title="byte/s", format=".4~s"),
    ]
    base = alt.Chart(data(rows))
    down = _down(chips)
    y = alt.Y("row:Q", **down)
    layers = [
        alt.Chart(
            data(
                rows.group_by("chip", "row", maintain_order=True).agg(
                    low=pl.col("ridge").min(), high=pl.col("ridge").max()
                )
            )
        )
        .mark_rule(style="rule")
        .encode(x=alt.X("low:Q"), x2="high:Q", y=y),
        base.mark_point(style="dot", filled=True).encode(
            x=x, y=y, color=color, shape=shape, opacity=told_apart(), tooltip=tooltip
        ),
        *placed_text(labels, "value", halo=True, x=x, y=y, color=color, opacity=told_apart()),
        _head("Ridge point by compute dtype"),
    ]
    shown = frame.filter(pl.col("chip").is_in(chips))
    compute = shown["compute"][0]
    said = title or ridges_compared(shown.filter(compute=compute).unique("chip"), compute)
    finding = (
        said,
        f"Dense peak over main-memory bandwidth: the FLOP per byte from which a chip is compute-bound.{_told(chips, order)}",
    )
    return assemble(
        layers, dict.fromkeys((EVERY, *order), finding), [Choice("chip", [EVERY, *order])], MARGINS
    )


def per_unit(
    frame: pl.DataFrame,
    *,
    unit: str = "usd",
    first: Mapping[str, Any] | None = None,
    title: str | None = None,
    palette: Mapping[str, str] | None = None,
) -> Chart:
    """What a dollar or a joule buys, for the chips with a dated price or a power.

    Args:
        frame: From `frames.ridge_frame`: `flops_per_usd` [FLOP/USD], `flops_per_joule` [FLOP/J].
        unit: `usd` or `watt`.
        first: What is shown first, by the names of the parameters; the first of the frame by default.
        title: In place of the finding.
        palette: Chips with their vendors, where several charts are to share colours.

    Returns:
        A chart with the parameters `dtypes`, and `chip` for the one to tell from the others.
    """
    column, name = {
        "usd": ("flops_per_usd", "FLOP per US dollar"),
        "watt": ("flops_per_joule", "FLOP/s per watt"),
    }[unit]
    found = frame.drop_nulls(column)
    order = (
        found.group_by("chip", maintain_order=True)
        .agg(pl.col(column).max())
        .sort(column, descending=True)["chip"]
        .to_list()
    )
    chips = spread(order)
    rows = found.filter(pl.col("chip").is_in(chips)).sort(
        column, descending=True, maintain_order=True
    )
    combinations = [
        name for name in found["dtypes"].unique(maintain_order=True) if name in set(rows["dtypes"])
    ]
    orders = {
        combination: rows.filter(dtypes=combination)["chip"].to_list()
        for combination in combinations
    }
    rows = rows.with_columns(
        value=column, row=pl.int_range(pl.len()).over("dtypes").cast(pl.Float64)
    )
    detail = (
        pl.format("{} · {}", "provider", "date")
        if unit == "usd"
        else pl.format("{} W", pl.col("watts").cast(pl.Int64))
    )
    rows = rows.with_columns(about=detail)
    text = pl.Series(
        [
            f"{si(row['value'], 'FLOP' if unit == 'usd' else 'FLOP/s')} · {row['about']}"
            for row in rows.to_dicts()
        ],
        dtype=pl.String,
    )
    rows = rows.with_columns(text=text, low=pl.col("row") - 0.3, high=pl.col("row") + 0.3)
    margins = Margins(left=10.4, right=20.0)
    x = alt.X(
        "value:Q",
        axis=alt.Axis(
            title=name,
            labelExpr="replace(format(datum.value, '~s'), regexp('([kMGTPE])$'), ' $1')",
            tickCount=5,
        ),
        scale=alt.Scale(domainMin=0, nice=False),
    )
    down = _down(orders)
    y = alt.Y("row:Q", **down)
    now = "datum.dtypes == dtypes"
    color = alt.Color("chip:N", legend=None, scale=palette_of(frame, palette))
    tooltip = [
        "chip:N",
        "dtypes:N",
        alt.Tooltip("value:Q", title=name, format=".4~s"),
        alt.Tooltip("about:N", title="price of" if unit == "usd" else "power"),
        *([alt.Tooltip("usd_per_hour:Q", title="USD per hour")] if unit == "usd" else []),
    ]
    base = alt.Chart(data(rows)).transform_filter(now)
    layers = [
        base.mark_rect(style="bar").encode(
            x=x,
            x2=alt.datum(0),
            y=alt.Y("low:Q", **down),
            y2="high:Q",
            color=color,
            opacity=told_apart(),
            tooltip=tooltip,
        ),
        base.mark_text(style="value", align="left", clip=False, dx=alt.expr("em * 0.4")).encode(
            x=x, y=y, text="text:N", color=color, opacity=told_apart()
        ),
        _head(f"Dense peak, {name}"),
    ]
    findings: dict[str, tuple[str, str]] = {}
    for combination in combinations:
        case = rows.filter(dtypes=combination)
        values = case["value"].round_sig_figs(EQUAL_DIGITS)
        best = case.filter(values == values.max())["chip"]
        what = "dollar" if unit == "usd" else "watt"
        said = f"Dense {combination} peak per {what}"
        if len(best) == 1 < case.height:
            said = f"Of {case.height} chips shown, {chip_label(best[0])} gives most {combination} per {what}"
        told = (
            "the lowest listed price of each; dates and providers differ"
            if unit == "usd"
            else "listed power, not what a kernel draws"
        )
        for chip in (EVERY, *order):
            findings[f"{chip}|{combination}"] = (
                title or said,
                f"{combination} dense peak over {told}.{_told(chips, order)}",
            )
    return assemble(
        layers,
        findings,
        starting([Choice("chip", [EVERY, *order]), Choice("dtypes", combinations)], first),
        margins,
    )


def critical_of_layers(
    frame: pl.DataFrame,
    *,
    model: str = "",
    size: str = "B",
    first: Mapping[str, Any] | None = None,
    title: str | None = None,
) -> Chart:
    """The critical batch of a model's layers, a row for each chip.

    Args:
        frame: From `frames_sizes.layer_frame`: `critical` [1] by chip and layer, null for never.
        model: What the subtitle calls the model.
        size: What is solved for.
        first: What is shown first, by the names of the parameters; the first of the frame by default.
        title: In place of the finding.

    Returns:
        A chart with the parameters `dtypes`, and `chip` for the one to tell from the others.
    """
    order = frame["chip"].unique(maintain_order=True).to_list()
    layers_named = frame["layer"].unique(maintain_order=True).to_list()
    by_rank = (
        frame.group_by("chip", maintain_order=True)
        .agg(pl.col("critical").mean())
        .sort("critical", nulls_last=True)["chip"]
        .to_list()
    )
    chips = spread(by_rank)
    margins = Margins(left=10.4, right=8.6)
    rows = frame.filter(pl.col("chip").is_in(chips)).with_columns(
        row=pl.col("chip").replace_strict(
            {c: i for i, c in enumerate(chips)}, return_dtype=pl.Float64
        ),
        column=pl.col("layer").replace_strict(
            {c: i for i, c in enumerate(layers_named)}, return_dtype=pl.Float64
        ),
    )
    combinations = rows["dtypes"].unique(maintain_order=True).to_list()
    low = pl.col("critical").min().over("dtypes").cast(pl.Float64)
    share = (pl.col("critical").cast(pl.Float64) / low).log() / math.log(SPREAD)
    cells = rows.with_columns(
        text=pl.Series(
            [count(v) if v is not None else "never" for v in rows["critical"]], dtype=pl.String
        ),
        style=pl.when(pl.col("critical").is_null())
        .then(pl.lit("cell-never"))
        .when(share > DARK_FROM)
        .then(pl.lit("cell-high"))
        .otherwise(pl.lit("cell-low")),
        low=pl.col("row") - 0.5,
        high=pl.col("row") + 0.5,
        left=pl.col("column") - 0.5,
        right=pl.col("column") + 0.5,
    )
    widest = {
        layout: plot_size(look, margins)[0] / len(layers_named) - 0.3
        for layout, look in LAYOUTS.items()
    }
    names = {
        layout: [shorten(name, room, tail=True) for name in layers_named]
        for layout, room in widest.items()
    }
    axis = alt.Axis(
        values=list(range(len(layers_named))),
        labelExpr=f"(narrow ? {json.dumps(names['narrow'])} : {json.dumps(names['wide'])})[datum.value]",
        title=f"Layers of {chip_label(model)}" if model else "Layers",
        grid=False,
        ticks=False,
        domain=False,
    )
    across: dict[str, Any] = {
        "scale": alt.Scale(domain=[-0.5, len(layers_named) - 0.5], nice=False, zero=False),
        "axis": axis,
    }
    down = _down(chips)
    lows = dict(
        rows.group_by("dtypes", maintain_order=True)
        .agg(pl.col("critical").min())
        .drop_nulls()
        .iter_rows()
    )
    steps = ", ".join(f"lowest * {2**i}" for i in range(int(math.log2(SPREAD)) + 1))
    label = f"(datum.value >= lowest * {SPREAD:g} ? '≥ ' : '') + format(datum.value, ',d')"
    legend = alt.Legend(
        title=f"Critical {size}",
        values=alt.expr(f"[{steps}]"),
        labelExpr=label,
        gradientLength=alt.expr("height * 0.72"),
    )
    color = alt.Color(
        "critical:Q",
        legend=legend,
        scale=alt.Scale(
            type="log",
            domainMin=alt.expr("lowest"),
            domainMax=alt.expr(f"lowest * {SPREAD:g}"),
            clamp=True,
            range="heatmap",
            nice=False,
        ),
    )
    now = "datum.dtypes == dtypes"
    tooltip = [
        "chip:N",
        "layer:N",
        "sizes:N",
        alt.Tooltip("text:N", title=f"critical {size}"),
        alt.Tooltip("exact:Q", title="exactly", format=",.2f"),
    ]
    base = alt.Chart(data(cells.drop("sharding", "shards"))).transform_filter(now)
    place_of: dict[str, Any] = {
        "x": alt.X("left:Q", **across),
        "x2": "right:Q",
        "y": alt.Y("low:Q", **down),
        "y2": "high:Q",
    }
    marks = [
        base.transform_filter("datum.critical == null")
        .mark_rect(style=["cell", "never"])
        .encode(**place_of, tooltip=tooltip),
        base.transform_filter("datum.critical != null")
        .mark_rect(style="cell")
        .encode(**place_of, color=color, opacity=told_apart(), tooltip=tooltip),
        _head(f"Smallest compute-bound {size}"),
    ]
    fits: dict[str, list[Place | None]] = {}
    for layout, look in LAYOUTS.items():
        tall = plot_size(look, margins)[1] / len(chips)
        fits[layout] = [
            Place(0, 0, "center")
            if width_em(text) * 0.9 < widest[layout] and tall > CELL_HEIGHT
            else None
            for text in cells["text"]
        ]
    located = cells.select("chip", "dtypes", "row", "column", "text", "style").hstack(
        places_of(fits)
    )
    for style in ("cell-low", "cell-high", "cell-never"):
        part = located.filter(style=style)
        if part.height:
            marks += placed_text(
                part.drop("style"),
                style,
                now,
                halo=False,
                x=alt.X("column:Q", **across),
                y=alt.Y("row:Q", **down),
            )
    findings: dict[str, tuple[str, str]] = {}
    for combination in combinations:
        said, told = _of_layers(cells.filter(dtypes=combination), model, combination, size)
        findings |= {
            f"{chip}|{combination}": (title or said, told + _told(chips, order))
            for chip in (EVERY, *order)
        }
    known = [
        alt.param(name="lows", value={k: rounded_down(float(v)) for k, v in lows.items()}),
        alt.param(name="lowest", expr="lows[dtypes] || 1"),
    ]
    return assemble(
        marks,
        findings,
        starting([Choice("chip", [EVERY, *order]), Choice("dtypes", combinations)], first),
        margins,
        known,
    )


def _of_layers(case: pl.DataFrame, model: str, combination: str, size: str) -> tuple[str, str]:
    """Title and subtitle of the layers of a model on the chips shown."""
    never, needed = case["critical"].null_count(), case["critical"].drop_nulls()
    split = split_text(case["sharding"][0], case["shards"], None)
    subtitle = f"{chip_label(model) or 'Layers'} in {combination}: the smallest {size} at which each matmul is compute-bound{split}."
    if never == case.height:
        return f"No {size} makes these layers compute-bound", subtitle
    if never:
        return (
            f"{never:,} of {case.height:,} pairs of chip and layer are never compute-bound",
            subtitle,
        )
    by_case = ", by layer and chip" if needed.n_unique() > 1 else ""
    need = f"{chip_label(model)} needs" if model else "These layers need"
    return f"{need} {sizes_text(size, needed)}{by_case}", subtitle
