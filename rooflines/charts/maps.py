"""The critical batch over two sizes: a map with numbers, and one with exact contours and published shapes on it."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import altair as alt
import polars as pl

from rooflines.charts.frames import highest, lowest
from rooflines.charts.kit.drawing import (
    BINARY_LABEL,
    LAYOUTS,
    Chart,
    Choice,
    assemble,
    chosen,
    data,
    placed_text,
    places_of,
    starting,
    zoom,
)
from rooflines.charts.kit.labels import (
    Box,
    Place,
    Spot,
    chip_label,
    count,
    on_chips,
    place,
    shorten,
    sizes_text,
    split_text,
    width_em,
)
from rooflines.charts.kit.themes import Margins, plot_size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["critical", "critical_map"]

MARGINS = Margins(left=4.2, right=8.6)
SPREAD = 16.0
"""Above this multiple of the smallest number the colour changes no more."""

DARK_FROM = 0.55
"""Share of the colour scale from which on numbers are written in the other colour."""

NAME_ROOM = 14.0

CELL_HEIGHT = 1.05
"""Height of a cell from which on a number fits in it [em]."""

MAP_MARGINS = Margins(left=4.2, right=6.2)


def _axes(
    span: tuple[float, float, float, float],
    names: tuple[str, str],
    ticks: tuple[Sequence[float], Sequence[float]],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Scales and axes of the two sizes."""
    low_x, high_x, low_y, high_y = span
    found = []
    for low, high, name, values in (
        (low_x, high_x, names[0], ticks[0]),
        (low_y, high_y, names[1], ticks[1]),
    ):
        axis = alt.Axis(
            values=list(values),
            labelExpr=BINARY_LABEL,
            title=name,
            grid=False,
            domain=False,
            ticks=False,
        )
        found.append(
            {"scale": alt.Scale(type="log", base=2, domain=[low, high], nice=False), "axis": axis}
        )
    return found[0], found[1]


def _names(dims: Sequence[str]) -> tuple[str, str]:
    meaning = {"D": "D (contracting dimension)", "F": "F (output dimension)"}
    return meaning.get(dims[0], dims[0]), meaning.get(dims[1], dims[1])


def critical(
    frame: pl.DataFrame,
    *,
    dims: Sequence[str] = ("D", "F"),
    size: str = "B",
    first: Mapping[str, Any] | None = None,
    title: str | None = None,
) -> Chart:
    """The smallest compute-bound batch over two sizes, with numbers; never is an area of its own.

    Args:
        frame: From `frames_sizes.critical_frame`: `critical` [1] for every pair of sizes, null for never.
        dims: What the sizes across and up are called.
        size: What is solved for.
        first: What is shown first, by the names of the parameters; the first of the frame by default.
        title: In place of the finding.

    Returns:
        A chart with the parameters `chip` and `dtypes`.
    """
    chips, combinations = (
        frame[name].unique(maintain_order=True).to_list() for name in ("chip", "dtypes")
    )
    span = (
        lowest(frame, "x_low"),
        highest(frame, "x_high"),
        lowest(frame, "y_low"),
        highest(frame, "y_high"),
    )
    low = pl.col("critical").min().over("chip", "dtypes").cast(pl.Float64)
    share = (pl.col("critical").cast(pl.Float64) / low).log() / math.log(SPREAD)
    cells = frame.with_columns(
        text=pl.Series(
            [count(value) if value is not None else "never" for value in frame["critical"]],
            dtype=pl.String,
        ),
        style=pl.when(pl.col("critical").is_null())
        .then(pl.lit("cell-never"))
        .when(share > DARK_FROM)
        .then(pl.lit("cell-high"))
        .otherwise(pl.lit("cell-low")),
        middle_x=(pl.col("x_low") * pl.col("x_high")).sqrt(),
        middle_y=(pl.col("y_low") * pl.col("y_high")).sqrt(),
    )
    findings = {
        f"{key[0]}|{key[1]}": _finding(case, [str(part) for part in key], dims, size, title)
        for key, case in frame.group_by("chip", "dtypes", maintain_order=True)
    }
    xs, ys = sorted(frame["x"].unique().to_list()), sorted(frame["y"].unique().to_list())
    across, up = _axes(span, _names(dims), (xs, ys))
    x, y = alt.X("x_low:Q", **across), alt.Y("y_low:Q", **up)
    now = chosen("chip", "dtypes")
    steps = ", ".join(f"lowest * {2**i}" for i in range(int(math.log2(SPREAD)) + 1))
    label = f"(datum.value >= lowest * {SPREAD:g} ? '≥ ' : '') + format(datum.value, ',d')"
    legend = alt.Legend(
        title=f"Critical {size}",
        values=alt.expr(f"[{steps}]"),
        labelExpr=label,
        gradientLength=alt.expr("height * 0.72"),
    )
    scale = alt.Scale(
        type="log",
        domainMin=alt.expr("lowest"),
        domainMax=alt.expr(f"lowest * {SPREAD:g}"),
        clamp=True,
        range="heatmap",
        nice=False,
    )
    color = alt.Color("critical:Q", scale=scale, legend=legend)
    lows = {
        f"{c}|{d}": rounded_down(float(v))
        for c, d, v in cells.group_by("chip", "dtypes", maintain_order=True)
        .agg(pl.col("critical").min())
        .iter_rows()
        if v
    }
    tooltip = [
        "chip:N",
        "dtypes:N",
        alt.Tooltip("x:Q", title=dims[0], format=",d"),
        alt.Tooltip("y:Q", title=dims[1], format=",d"),
        alt.Tooltip("text:N", title=f"critical {size}"),
        alt.Tooltip("exact:Q", title="exactly", format=",.2f"),
        alt.Tooltip("rule:Q", title="rule of thumb", format=",.1f"),
    ]
    base = alt.Chart(data(cells.drop("sharding", "shards"))).transform_filter(now)
    layers = [
        base.transform_filter("datum.critical == null")
        .mark_rect(style=["cell", "never"])
        .encode(x=x, x2="x_high:Q", y=y, y2="y_high:Q", tooltip=tooltip),
        base.transform_filter("datum.critical != null")
        .mark_rect(style="cell")
        .encode(x=x, x2="x_high:Q", y=y, y2="y_high:Q", color=color, tooltip=tooltip),
    ]
    widths = {
        layout: _fits(cells, plot_size(look, MARGINS), span) for layout, look in LAYOUTS.items()
    }
    for style in ("cell-low", "cell-high", "cell-never"):
        part = (
            cells.with_columns(places_of(widths))
            .filter(pl.col("style") == style)
            .select("chip", "dtypes", "text", "middle_x", "middle_y", *places_of(widths).columns)
        )
        if part.height:
            layers += placed_text(
                part, style, now, halo=False, x=alt.X("middle_x:Q"), y=alt.Y("middle_y:Q")
            )
    known = [
        alt.param(name="lows", value=lows),
        alt.param(name="lowest", expr="lows[chip + '|' + dtypes] || 1"),
    ]
    return assemble(
        layers,
        findings,
        starting([Choice("chip", chips), Choice("dtypes", combinations)], first),
        MARGINS,
        known,
    )


def rounded_down(value: float) -> float:
    """The next lower number of two digits, where a legend can begin."""
    power = 10.0 ** (math.floor(math.log10(value)) - 1)
    return max(math.floor(value / power) * power, 1.0)


def _fits(
    cells: pl.DataFrame, plot: tuple[float, float], span: tuple[float, float, float, float]
) -> list[Place | None]:
    """A number in the middle of every cell that has room for it."""
    found: list[Place | None] = []
    for row in cells.to_dicts():
        wide = math.log(row["x_high"] / row["x_low"]) / math.log(span[1] / span[0]) * plot[0]
        tall = math.log(row["y_high"] / row["y_low"]) / math.log(span[3] / span[2]) * plot[1]
        found.append(
            Place(0.0, 0.0, "center")
            if width_em(row["text"]) * 0.9 < wide - 0.25 and tall > CELL_HEIGHT
            else None
        )
    return found


def _finding(
    case: pl.DataFrame, names: Sequence[str], dims: Sequence[str], size: str, title: str | None
) -> tuple[str, str]:
    chip, combination = names
    rule = case["rule"].drop_nulls()
    limit = f" Large matrices: {count(math.ceil(rule[0]))}." if len(rule) else ""
    shards = case["shards"].unique().to_list()
    split = split_text(str(case["sharding"][0]), shards, None)
    subtitle = f"Smallest compute-bound {size} for {combination} on {on_chips(chip, shards)}{split}, every byte counted.{limit}"
    name = on_chips(chip, shards)
    never = case.filter(pl.col("critical").is_null())
    if title:
        return title, subtitle
    if never.height == case.height:
        return f"None of these sizes is ever compute-bound on {name}", subtitle
    if not never.height:
        by_size = ", by size" if case["critical"].n_unique() > 1 else ""
        return f"{name} needs {sizes_text(size, case['critical'])}{by_size}", subtitle
    square = never.filter(pl.col("x") == pl.col("y"))
    if square.height:
        return (
            f"{dims[0]} = {dims[1]} = {highest(square, 'x'):,.0f} is never compute-bound on {name}",
            subtitle,
        )
    return f"{never.height:,} of {case.height:,} sizes are never compute-bound on {name}", subtitle


def critical_map(
    frame: pl.DataFrame, *, first: Mapping[str, Any] | None = None, title: str | None = None
) -> Chart:
    """Exact contours of the critical batch over D and F, with named shapes at their true places.

    Args:
        frame: From `frames_sizes.contour_frame`.
        first: What is shown first, by the names of the parameters; the first of the frame by default.
        title: In place of the finding.

    Returns:
        A chart with the parameters `chip` and `dtypes`.
    """
    chips, combinations = (
        frame[name].unique(maintain_order=True).to_list() for name in ("chip", "dtypes")
    )
    lines = frame.filter(pl.col("kind") != "shape")
    span = (
        lowest(frame, "left"),
        highest(frame, "right"),
        lowest(frame, "bottom"),
        highest(frame, "top"),
    )
    ticks = (
        [2**i for i in range(40) if span[0] <= 2**i <= span[1]],
        [2**i for i in range(40) if span[2] <= 2**i <= span[3]],
    )
    across, up = _axes(span, _names(("D", "F")), ticks)
    x, y = alt.X("D:Q", **across), alt.Y("F:Q", **up)
    now = chosen("chip", "dtypes")
    ranked = lines.with_columns(
        rank=pl.col("level").rank("dense", descending=True).over("chip", "dtypes").cast(pl.Int64)
    )
    labels, findings = [], {}
    for (chip_id, combination), case in frame.group_by("chip", "dtypes", maintain_order=True):
        labels.append(
            _map_labels(case, span).with_columns(chip=pl.lit(chip_id), dtypes=pl.lit(combination))
        )
        findings[f"{chip_id}|{combination}"] = _map_finding(
            case, str(chip_id), str(combination), title
        )
    most = int(highest(ranked, "rank"))
    color = alt.Color(
        "rank:Q", legend=None, scale=alt.Scale(domain=[most + 1.2, 1], range="heatmap", nice=False)
    )
    bands = alt.Chart(
        data(ranked.select("chip", "dtypes", "kind", "level", "rank", "D", "F", "top"))
    ).transform_filter(now)
    shapes = alt.Chart(
        data(frame.filter(kind="shape").select("chip", "dtypes", "name", "level", "D", "F"))
    ).transform_filter(now)
    tooltip = [
        "name:N",
        alt.Tooltip("D:Q", format=",d"),
        alt.Tooltip("F:Q", format=",d"),
        alt.Tooltip("level:Q", title="critical B", format=",.1f"),
    ]
    text = pl.concat(labels)
    ground = alt.Chart(
        pl.DataFrame({"D": [span[0]], "F": [span[2]], "right": [span[1]], "top": [span[3]]})
    )
    layers = [
        ground.mark_rect(style="never").encode(x=x, x2="right:Q", y=y, y2="top:Q"),
        *(
            bands.transform_filter(f"datum.rank == {rank}")
            .mark_area()
            .encode(x=x, y=y, y2="top:Q", color=color)
            for rank in range(1, most + 1)
        ),
        bands.transform_filter("datum.kind == 'level'")
        .mark_line(style="contour")
        .encode(
            x=x,
            y=y,
            detail="level:N",
            tooltip=[alt.Tooltip("level:Q", title="critical B", format=",d")],
        )
        .add_params(zoom("x", "y")),
        shapes.mark_point(style="ink-dot", filled=True).encode(x=x, y=y, tooltip=tooltip),
    ]
    for style in ("strong", "note", "label"):
        part = text.filter(style=style)
        if part.height:
            layers += placed_text(
                part.drop("style"),
                style,
                now,
                halo=style != "note",
                clip=style != "strong",
                x=alt.X("D:Q"),
                y=alt.Y("F:Q"),
            )
    return assemble(
        layers,
        findings,
        starting([Choice("chip", chips), Choice("dtypes", combinations)], first),
        MAP_MARGINS,
    )


def _map_labels(case: pl.DataFrame, span: tuple[float, float, float, float]) -> pl.DataFrame:
    """Levels at the right ends of their lines, the never area, and as many shapes as there is room for."""
    texts: list[dict[str, Any]] = []
    levels = (
        case.filter(kind="level")
        .group_by("level", maintain_order=True)
        .last()
        .filter(pl.col("F") < span[3])
        .sort("level")
    )
    for place_in_order, row in enumerate(levels.to_dicts()):
        text = f"B = {count(row['level'])}" if not place_in_order else count(row["level"])
        texts.append(
            {"style": "strong", "text": text, "D": span[1], "F": row["F"], "role": "level"}
        )
    never = case.filter(kind="never").filter(pl.col("F") > span[2])
    if never.height:
        texts += [
            {"style": "note", "text": text, "D": span[0], "F": span[2], "role": "never"}
            for text in ("never compute-bound", "never")
        ]
    texts += [
        {
            "style": "label",
            "text": shorten(chip_label(row["name"]), NAME_ROOM, tail=True),
            "D": row["D"],
            "F": row["F"],
            "role": "shape",
        }
        for row in case.filter(kind="shape").to_dicts()
    ]
    border = case.filter(kind="never").sort("D").select("D", "F").to_dicts()
    places = {
        layout: _map_places(texts, border, plot_size(look, MAP_MARGINS), span)
        for layout, look in LAYOUTS.items()
    }
    return pl.DataFrame(texts).drop("role").hstack(places_of(places))


def _map_places(
    texts: Sequence[Mapping[str, Any]],
    border: Sequence[Mapping[str, float]],
    plot: tuple[float, float],
    span: tuple[float, float, float, float],
) -> list[Place | None]:
    """Places in one layout: levels at the right, never where its area has room for it, then the shapes."""

    def at(row: Mapping[str, Any]) -> tuple[float, float]:
        across, up = (
            math.log(row["D"] / span[0]) / math.log(span[1] / span[0]),
            math.log(row["F"] / span[2]) / math.log(span[3] / span[2]),
        )
        return across * plot[0], (1 - up) * plot[1]

    edge = list(pairwise(at(row) for row in border))
    dots = [at(text) for text in texts if text["role"] == "shape"]
    found: list[Place | None] = []
    taken: list[Box] = []
    for text in texts:
        spot = Spot(
            *at(text),
            text["text"],
            bold=text["style"] == "strong",
            sides=("t", "r", "b", "l", "tr", "br", "tl", "bl"),
        )
        got: Place | None
        if text["role"] == "shape":
            others = [
                Box(x - 0.4, y - 0.4, x + 0.4, y + 0.4)
                for x, y in dots
                if (x, y) != (spot.x, spot.y)
            ]
            got = place([spot], plot, boxes=[*taken, *others])[0]
        else:
            got = Place(0.5, 0.0, "left") if text["role"] == "level" else Place(0.5, -0.9, "left")
            box = got.box(spot)
            crowded = any(box.meets(other) for other in taken)
            got = (
                None
                if crowded
                or (text["role"] == "never" and any(box.crossed((*a, *b)) for a, b in edge))
                else got
            )
        found.append(got)
        if got:
            taken.append(got.box(spot))
    return found


def _map_finding(
    case: pl.DataFrame, chip: str, combination: str, title: str | None
) -> tuple[str, str]:
    shapes = case.filter(kind="shape")
    subtitle = f"Critical B of {combination} matmuls on {chip_label(chip)} over D and F, every byte counted."
    levels = shapes.drop_nulls("level")
    if title or not shapes.height:
        return title or f"Where {chip_label(chip)} turns compute-bound", subtitle
    if levels.height < shapes.height:
        never = shapes.height - levels.height
        return (
            f"{never:,} of the {shapes.height:,} shapes shown are never compute-bound on {chip_label(chip)}",
            subtitle,
        )
    needed = sizes_text("B", [math.ceil(level) for level in levels["level"]])
    shown = (
        f"The {shapes.height:,} shapes shown need"
        if shapes.height > 1
        else f"{chip_label(shapes['name'][0])} needs"
    )
    return f"{shown} about {needed} on {chip_label(chip)}", subtitle
