"""Contours of the critical batch over D and F, with published shapes at their places."""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import alt, pl
from rooflines.basics.text import count
from rooflines.charts.basis import CALIBRATED, NOMINAL, basis_choice, basis_names, basis_text
from rooflines.charts.cells import size_axes
from rooflines.charts.chart import Chart, Need
from rooflines.charts.claims import Finding, claim, ends, over, solved
from rooflines.charts.frames import (
    SHARES,
    SPLIT,
    first_shown,
    highest,
    lowest,
    reached_text,
    route_name,
    share_tooltip,
)
from rooflines.charts.kinds.critical_contours import lines_of, nearly, shares_of_shape, solvers
from rooflines.charts.kit.drawing import Choice, assemble, chosen, data, placed_text, starting, zoom
from rooflines.charts.kit.place import ANYWHERE, Place, Plane, Room, Spot, placed
from rooflines.charts.kit.text import chip_label, on_chips, shorten, sizes_text, split_text
from rooflines.charts.kit.themes import Margins
from rooflines.charts.needs import BOTH_FREE, SOLVED_LEAD, need
from rooflines.charts.offers import sizes_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.charts.results import Selection

__all__ = ["contour_frame", "critical_map"]

MARGINS = Margins(left=4.2, right=6.2)
NAME_ROOM = 14.0

SCHEMA = ("chip", "dtypes", "basis", *SPLIT, "kind", "level", "D", "F", "name", *SHARES)
"""Columns of the points."""

Span = tuple[float, float, float, float]
"""The map's edges: D from and to, F from and to."""


def contour_frame(of: Selection, shapes: Sequence[Mapping[str, Any]] = ()) -> pl.DataFrame:
    """Exact lines of equal critical batch of a matmul over D and F, and named shapes.

    Every point is a threshold of the model, along D or F at the batch of the line; of a calibrated
    chip there are lines of both, nominal and calibrated.

    Args:
        of: The chips and combinations, from `Results.of`, of a sweep of a matmul without tiles.
        shapes: Mappings with `name`, `D` and `F`.

    Returns:
        `chip`, `dtypes`, `basis` (`nominal` or `calibrated`), `sharding`, `network` and `shards`,
        `kind` (`level`, `never`, `share` for lines of a smaller share of the peak, or `shape`),
        `level` [1] (the critical batch of the line or the shape; null: never), `D`, `F` [1],
        `name`, of lines and shapes the `share` [1], of a shape also `near` and `reached`, as
        `share_values` has them, `calibrated`: whether `basis` is, and the map's edges: `left` and
        `right` (D), `bottom` and `top` (F) [1].
    """
    need(CHART, of.sweep)
    sizes = {dim: sizes_of(of.sweep, dim) for dim in of.dims}
    span = (sizes["D"][0], sizes["D"][-1] * 2, sizes["F"][0], sizes["F"][-1] * 4)
    inside = [
        shape
        for shape in shapes
        if span[0] <= shape["D"] <= span[1] and span[2] <= shape["F"] <= span[3]
    ]
    records: list[dict[str, Any]] = []
    for chip_variant in of.served():
        chip_rows, variant = chip_variant
        key: dict[str, Any] = {
            "chip": chip_rows.chip,
            "dtypes": variant.dtypes,
            "sharding": variant.sharding,
            "network": route_name(chip_rows, variant),
            "shards": variant.shards,
        }
        for basis, solve in solvers(of.sweep, chip_variant).items():
            near = nearly(of, chip_variant) if basis == NOMINAL else {}
            lines = lines_of(solve, near, span)
            records += [{**key, "basis": basis, **point} for point in lines]
            for shape in inside:
                level = solve("B", D=shape["D"], F=shape["F"])
                reached = shares_of_shape(of, chip_variant, shape) if basis == NOMINAL else {}
                at = {**key, "basis": basis, "kind": "shape", "level": level}
                records.append({**at, **shape, **reached})
    floats = dict.fromkeys(("level", "D", "F", "share"), pl.Float64)
    numbers = {"shards": pl.Int64, "reached": pl.Int64} | floats
    schema = {name: numbers.get(name, pl.String) for name in SCHEMA}
    frame = pl.DataFrame(records, schema=schema, orient="row")
    edges_of = dict(zip(("left", "right", "bottom", "top"), map(float, span), strict=True))
    return frame.with_columns(
        calibrated=pl.col("basis") == CALIBRATED,
        **{name: pl.lit(at) for name, at in edges_of.items()},
    )


def critical_map(
    frame: pl.DataFrame, *, first: Mapping[str, Any] | None = None, title: str | None = None
) -> alt.LayerChart:
    """Exact contours of the critical batch over D and F, with named shapes at their true places.

    Args:
        frame: From `contour_frame`.
        first: The initial choices by parameter; the first of the frame by default.
        title: Replaces the finding.

    Returns:
        A chart with the parameters `chip`, `dtypes`, and `basis` where chips are calibrated.
    """
    chips, combinations = (
        frame[name].unique(maintain_order=True).to_list() for name in ("chip", "dtypes")
    )
    span = (
        lowest(frame, "left"),
        highest(frame, "right"),
        lowest(frame, "bottom"),
        highest(frame, "top"),
    )
    labels, findings, names = [], {}, ["chip", "dtypes", *basis_names(frame)]
    for key, case in frame.group_by(names, maintain_order=True):
        values = dict(zip(names, map(str, key), strict=True))
        of_case = [pl.lit(value).alias(name) for name, value in values.items()]
        labels.append(_labels(case, span).with_columns(of_case))
        findings["|".join(values.values())] = _finding(case, title)
    choices = [Choice("chip", chips), Choice("dtypes", combinations), *basis_choice(frame)]
    return assemble(
        [*_marks(frame, span, names), *_texts(pl.concat(labels), chosen(*names))],
        findings,
        starting(choices, first),
        MARGINS,
    )


def _marks(frame: pl.DataFrame, span: Span, names: Sequence[str]) -> list[alt.Chart]:
    """The area of never, bands between contours, contours, and shapes."""
    ticks = [[2**i for i in range(40) if low <= 2**i <= high] for low, high in (span[:2], span[2:])]
    across, up = size_axes(span, ("D", "F"), (ticks[0], ticks[1]))
    x, y = alt.X("D:Q", **across), alt.Y("F:Q", **up)
    now = chosen(*names)
    ranked = frame.filter(pl.col("kind") != "shape").with_columns(
        rank=pl.col("level").rank("dense", descending=True).over(names).cast(pl.Int64)
    )
    most = int(highest(ranked, "rank"))
    color = alt.Color(
        "rank:Q", legend=None, scale=alt.Scale(domain=[most + 1.2, 1], range="heatmap", nice=False)
    )
    lines = ranked.group_by(*names, "kind", "level", "share", "rank", maintain_order=True).agg(
        "D", "F"
    )
    points = alt.Chart(data(lines)).transform_filter(now).transform_flatten(["D", "F"])
    bands = points.transform_filter("datum.kind != 'share'")
    shapes = alt.Chart(
        data(frame.filter(kind="shape").select(*names, "name", "level", "D", "F", "near"))
    ).transform_filter(now)
    tooltip = [
        "name:N",
        alt.Tooltip("D:Q", format=",d"),
        alt.Tooltip("F:Q", format=",d"),
        alt.Tooltip("level:Q", title="critical B", format=",.1f"),
        *share_tooltip(frame.filter(kind="shape")),
    ]
    at_level = alt.Tooltip("level:Q", title="critical B", format=",d")
    at_share = alt.Tooltip("share:Q", title="for this share of the peak", format=".4~%")
    dashed = points.transform_filter("datum.kind == 'share'").mark_line(style=["contour", "near"])
    near = [dashed.encode(x=x, y=y, detail=alt.Detail("level:N"), tooltip=[at_level, at_share])]
    ground = alt.Chart(
        pl.DataFrame({"D": [span[0]], "F": [span[2]], "right": [span[1]], "top": [span[3]]})
    )
    return [
        ground.mark_rect(style="never").encode(x=x, x2=alt.X2("right:Q"), y=y, y2=alt.Y2("top:Q")),
        *(
            bands.transform_filter(f"datum.rank == {rank}")
            .mark_area()
            .encode(x=x, y=y, y2=alt.datum(span[3]), color=color)
            for rank in range(1, most + 1)
        ),
        bands.transform_filter("datum.kind == 'level'")
        .mark_line(style="contour")
        .encode(x=x, y=y, detail=alt.Detail("level:N"), tooltip=[at_level])
        .add_params(zoom("x", "y")),
        *(near if "share" in frame["kind"] else []),
        shapes.mark_point(style="ink-dot", filled=True).encode(x=x, y=y, tooltip=tooltip),
    ]


def _texts(labels: pl.DataFrame, now: str) -> list[alt.Chart]:
    """Levels outside the plot, the name of the never area, and the shapes' names."""
    layers: list[alt.Chart] = []
    for style in ("strong", "note", "label"):
        part = labels.filter(style=style)
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
    return layers


def _labels(case: pl.DataFrame, span: Span) -> pl.DataFrame:
    """Levels at the right ends of their lines, the name of the never area, and shapes."""
    texts: list[dict[str, Any]] = []
    levels = (
        case.filter(kind="level")
        .group_by("level", maintain_order=True)
        .last()
        .filter(pl.col("F") < span[3])
        .sort("level")
    )
    for index, row in enumerate(levels.to_dicts()):
        text = f"B = {count(row['level'])}" if not index else count(row["level"])
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
    places = placed(MARGINS, partial(_places, texts, border, Plane(span[:2], span[2:])))
    return pl.DataFrame(texts).drop("role").hstack(places)


def _places(
    texts: Sequence[Mapping[str, Any]],
    border: Sequence[Mapping[str, float]],
    plane: Plane,
    plot: tuple[float, float],
) -> list[Place | None]:
    """Places in one layout: levels, the name of the never area if there is room, then shapes."""
    spots = [
        Spot(
            *plane.at(plot, text["D"], text["F"]),
            text["text"],
            bold=text["style"] == "strong",
            sides=("t", "r", "b", "l", "tr", "br", "tl", "bl"),
        )
        for text in texts
    ]
    edge = [
        (*start, *end)
        for start, end in pairwise(plane.at(plot, point["D"], point["F"]) for point in border)
    ]
    dots = {
        (spot.x, spot.y): spot.dot
        for spot, text in zip(spots, texts, strict=True)
        if text["role"] == "shape"
    }
    room, places = Room(plot), []
    for spot, text in zip(spots, texts, strict=True):
        if text["role"] == "shape":
            others = [dot for at, dot in dots.items() if at != (spot.x, spot.y)]
            best = room.best(spot, avoid=others)
        elif text["role"] == "level":
            best = room.best(spot, [Place(0.5, 0.0, "left")], within=ANYWHERE)
        else:
            at_corner = [Place(0.5, -0.9, "left")]
            best = room.best(spot, at_corner, segments=edge, within=ANYWHERE, fewer_than=1)
        places.append(room.take(spot, best))
    return places


def _finding(case: pl.DataFrame, title: str | None) -> Finding:
    """Title and subtitle: what the shapes need, or how many of them are never compute-bound."""
    chip, combination, basis = case.select("chip", "dtypes", "basis").row(0)
    shapes = case.filter(kind="shape")
    shards = case["shards"].unique().to_list()
    name = on_chips(chip, shards)
    split = split_text(str(case["sharding"][0]), shards, case["network"])
    share = case.filter(kind="share")["share"]
    dashed = f" Dashed: for {100 * share[0]:g} % of the peak." if len(share) else ""
    subtitle = (
        f"Critical B of {combination} matmuls on {name} over D and F{split}, every byte counted."
        f"{reached_text(shapes.rename({'level': 'critical'}))}{dashed}{basis_text(case, basis)}"
    )
    levels = shapes.drop_nulls("level")
    if title or not shapes.height:
        return Finding(title or f"Where {name} turns compute-bound", subtitle)
    shown = over(case, "chip", "dtypes", "sharding", "shards") | solved("B")
    at = shapes.select(pl.col("D", "F").cast(pl.Int64)).to_dicts()
    about = partial(claim, of="critical", rows=shown, basis=basis, at=at)
    if levels.height < shapes.height:
        never = shapes.height - levels.height
        title = f"{never:,} of the {shapes.height:,} shapes shown are never compute-bound on {name}"
        return Finding(title, subtitle, about("nulls", value=[never, shapes.height]))
    needed = [math.ceil(level) for level in levels["level"]]
    which = (
        f"The {shapes.height:,} shapes shown need"
        if shapes.height > 1
        else f"{chip_label(shapes['name'][0])} needs"
    )
    found = about("range", value=ends(needed))
    return Finding(f"{which} {sizes_text('B', needed)} on {name}", subtitle, found)


CHART = Chart(
    name="critical-map",
    family="critical",
    caption=(
        "Lines of equal critical batch, exact; dashed ones have the same batches, for a smaller "
        "share of the peak. Named shapes stand at their true sizes. Grey is never compute-bound."
    ),
    order=50,
    needs=(
        Need("the operation matmul", lambda s: s.op.name == "matmul"),
        Need("sizes without tiles", lambda s: not s.tile),
        SOLVED_LEAD._replace(auto=True),
        BOTH_FREE,
    ),
    fills=frozenset({"shapes"}),
    most_chips=4,
    most_dtypes=2,
    frame=lambda of, spec: contour_frame(
        of, [{"name": name, "D": d, "F": f} for name, d, f in spec.shapes]
    ),
    draw=lambda frame, _, spec: critical_map(
        frame, first=first_shown(frame, spec, "chip", "dtypes"), title=spec.title
    ),
)
