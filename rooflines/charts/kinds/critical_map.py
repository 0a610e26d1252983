"""Contours of the critical batch over D and F, with published shapes at their places."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import alt, pl
from rooflines.basics.numbers import exact
from rooflines.basics.text import count
from rooflines.charts.cells import size_axes
from rooflines.charts.chart import Chart, Need
from rooflines.charts.frames import (
    SHARES,
    SPLIT,
    first_shown,
    highest,
    lowest,
    reached_text,
    route_name,
    share_tooltip,
    share_values,
    shares_below_peak,
)
from rooflines.charts.kit.drawing import Choice, assemble, chosen, data, placed_text, starting, zoom
from rooflines.charts.kit.place import ANYWHERE, Place, Plane, Room, Spot, placed
from rooflines.charts.kit.text import chip_label, on_chips, shorten, sizes_text, split_text
from rooflines.charts.kit.themes import Margins
from rooflines.charts.needs import BOTH_FREE, SOLVED_LEAD, need
from rooflines.charts.offers import sizes_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.charts.results import Selection
    from rooflines.sweep.space import ChipVariant
    from rooflines.sweep.sweep import Sweep

__all__ = ["contour_frame", "critical_map"]

MARGINS = Margins(left=4.2, right=6.2)
NAME_ROOM = 14.0

CONTOUR_POINTS = 32
"""Points of a contour along each of its two axes; it bends once."""

HUGE = 2**200
"""A size at which a larger one changes nothing."""

NICE = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
OVER_RULE = (1.03, 1.2, 1.6, 2.5, 5.0)
"""Levels of contours, as multiples of the rule of thumb, before they are rounded up to `NICE`."""

SCHEMA = ("chip", "dtypes", *SPLIT, "kind", "level", "D", "F", "name", *SHARES)
"""Columns of the points."""

Span = tuple[float, float, float, float]
"""The map's edges: D from and to, F from and to."""


def contour_frame(of: Selection, shapes: Sequence[Mapping[str, Any]] = ()) -> pl.DataFrame:
    """Exact lines of equal critical batch of a matmul over D and F, and named shapes.

    Every point is a threshold of the model, along D or F at the batch of the line.

    Args:
        of: The chips and combinations, from `Results.of`, of a sweep of a matmul without tiles.
        shapes: Mappings with `name`, `D` and `F`.

    Returns:
        `chip`, `dtypes`, `sharding`, `network` and `shards`, `kind` (`level`, `never` or `shape`),
        `level` [1] (the critical batch of the line or the shape; null: never), `D`, `F` [1],
        `name`, of a shape `near`, `reached` and `share` from `share_values`, and the map's edges:
        `left` and `right` (D), `bottom` and `top` (F) [1].
    """
    need(CHART, of.sweep)
    sizes = {dim: sizes_of(of.sweep, dim) for dim in of.dims}
    span = (sizes["D"][0], sizes["D"][-1] * 2, sizes["F"][0], sizes["F"][-1] * 4)
    inside = [
        shape
        for shape in shapes
        if span[0] <= shape["D"] <= span[1] and span[2] <= shape["F"] <= span[3]
    ]
    edge = [(float(span[0]), float(span[3])), (float(span[1]), float(span[3]))]
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
        least = solved(of.sweep, chip_variant, "B", D=HUGE, F=HUGE)
        for level in nice_levels(max(least, 1.0)) if least is not None else []:
            line = contour(of.sweep, chip_variant, Fraction(level), span)
            records += [{**key, "kind": "level", "level": level, "D": d, "F": f} for d, f in line]
        line = contour(of.sweep, chip_variant, HUGE, span) or edge
        records += [{**key, "kind": "never", "level": math.inf, "D": d, "F": f} for d, f in line]
        records += [
            {**key, "kind": "shape", **s, **batch_of_shape(of, chip_variant, s)} for s in inside
        ]
    floats = dict.fromkeys(("level", "D", "F", "share"), pl.Float64)
    numbers = {"shards": pl.Int64, "reached": pl.Int64} | floats
    schema = {name: numbers.get(name, pl.String) for name in SCHEMA}
    frame = pl.DataFrame(records, schema=schema, orient="row")
    edges_of = dict(zip(("left", "right", "bottom", "top"), map(float, span), strict=True))
    return frame.with_columns(**{name: pl.lit(at) for name, at in edges_of.items()})


def contour(
    sweep: Sweep, chip_variant: ChipVariant, level: int | Fraction, span: tuple[int, int, int, int]
) -> list[tuple[float, float]]:
    """The line from which on a batch is compute-bound, as D and F, clamped to the map.

    F is solved for at several D, and D at several F, so that points are dense on flat and on steep
    parts of the line.
    """
    low_d, high_d, low_f, high_f = span
    points: list[tuple[Fraction | float | None, Fraction | float | None]]
    points = [(d, solved(sweep, chip_variant, "F", B=level, D=d)) for d in spaced(low_d, high_d)]
    points += [(solved(sweep, chip_variant, "D", B=level, F=f), f) for f in spaced(low_f, high_f)]
    kept = {
        (float(d), float(max(f, low_f)))
        for d, f in points
        if d is not None and f is not None and low_d <= d <= high_d and f <= high_f
    }
    return sorted(kept, key=lambda point: (point[0], -point[1]))


def spaced(low: int, high: int) -> list[Fraction]:
    """Sizes from `low` to `high`, evenly on a logarithmic axis."""
    between = (
        Fraction(low * (high / low) ** (i / (CONTOUR_POINTS - 1)))
        for i in range(1, CONTOUR_POINTS - 1)
    )
    return [Fraction(low), *between, Fraction(high)]


def batch_of_shape(
    of: Selection, chip_variant: ChipVariant, shape: Mapping[str, Any]
) -> dict[str, str | int | float | None]:
    """The `level` of a shape, and the columns of `share_values`."""
    from rooflines.critical.sizes import solve_exactly  # noqa: PLC0415, it imports polars

    sizes = {dim: shape[dim] for dim in "DF"}
    below = {
        share: solve_exactly(of.sweep, chip_variant, "B", sizes, exact(share)).critical
        for share in shares_below_peak(of)
    }
    return {"level": solved(of.sweep, chip_variant, "B", **sizes), **share_values(below)}


def solved(
    sweep: Sweep, chip_variant: ChipVariant, axis: str, **sizes: int | Fraction
) -> float | None:
    """The exact size along an axis from which on a case is compute-bound [1]; None for never."""
    from rooflines.critical.sizes import solve_exactly  # noqa: PLC0415, it imports polars

    return solve_exactly(sweep, chip_variant, axis, sizes).critical_exact


def nice_levels(rule: float) -> list[float]:
    """Levels above the rule of thumb, rounded up to `NICE` digits."""
    levels = []
    for factor in OVER_RULE:
        power = 10.0 ** math.floor(math.log10(rule * factor))
        levels.append(next(step * power for step in (*NICE, 10.0) if step * power >= rule * factor))
    return sorted(set(levels))


def critical_map(
    frame: pl.DataFrame, *, first: Mapping[str, Any] | None = None, title: str | None = None
) -> alt.LayerChart:
    """Exact contours of the critical batch over D and F, with named shapes at their true places.

    Args:
        frame: From `contour_frame`.
        first: The initial choices by parameter; the first of the frame by default.
        title: Replaces the finding.

    Returns:
        A chart with the parameters `chip` and `dtypes`.
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
    labels, findings = [], {}
    for (chip, dtypes), case in frame.group_by("chip", "dtypes", maintain_order=True):
        labels.append(_labels(case, span).with_columns(chip=pl.lit(chip), dtypes=pl.lit(dtypes)))
        findings[f"{chip}|{dtypes}"] = _finding(case, str(chip), str(dtypes), title)
    return assemble(
        [*_marks(frame, span), *_texts(pl.concat(labels))],
        findings,
        starting([Choice("chip", chips), Choice("dtypes", combinations)], first),
        MARGINS,
    )


def _marks(frame: pl.DataFrame, span: Span) -> list[alt.Chart]:
    """The area of never, bands between contours, contours, and shapes."""
    ticks = [[2**i for i in range(40) if low <= 2**i <= high] for low, high in (span[:2], span[2:])]
    across, up = size_axes(span, ("D", "F"), (ticks[0], ticks[1]))
    x, y = alt.X("D:Q", **across), alt.Y("F:Q", **up)
    now = chosen("chip", "dtypes")
    ranked = frame.filter(pl.col("kind") != "shape").with_columns(
        rank=pl.col("level").rank("dense", descending=True).over("chip", "dtypes").cast(pl.Int64)
    )
    most = int(highest(ranked, "rank"))
    color = alt.Color(
        "rank:Q", legend=None, scale=alt.Scale(domain=[most + 1.2, 1], range="heatmap", nice=False)
    )
    bands = alt.Chart(
        data(ranked.select("chip", "dtypes", "kind", "level", "rank", "D", "F", "top"))
    ).transform_filter(now)
    shapes = alt.Chart(
        data(frame.filter(kind="shape").select("chip", "dtypes", "name", "level", "D", "F", "near"))
    ).transform_filter(now)
    tooltip = [
        "name:N",
        alt.Tooltip("D:Q", format=",d"),
        alt.Tooltip("F:Q", format=",d"),
        alt.Tooltip("level:Q", title="critical B", format=",.1f"),
        *share_tooltip(frame),
    ]
    at_level = alt.Tooltip("level:Q", title="critical B", format=",d")
    ground = alt.Chart(
        pl.DataFrame({"D": [span[0]], "F": [span[2]], "right": [span[1]], "top": [span[3]]})
    )
    return [
        ground.mark_rect(style="never").encode(x=x, x2="right:Q", y=y, y2="top:Q"),
        *(
            bands.transform_filter(f"datum.rank == {rank}")
            .mark_area()
            .encode(x=x, y=y, y2="top:Q", color=color)
            for rank in range(1, most + 1)
        ),
        bands.transform_filter("datum.kind == 'level'")
        .mark_line(style="contour")
        .encode(x=x, y=y, detail="level:N", tooltip=[at_level])
        .add_params(zoom("x", "y")),
        shapes.mark_point(style="ink-dot", filled=True).encode(x=x, y=y, tooltip=tooltip),
    ]


def _texts(labels: pl.DataFrame) -> list[alt.Chart]:
    """Levels outside the plot, the name of the never area, and the shapes' names."""
    layers: list[alt.Chart] = []
    for style in ("strong", "note", "label"):
        part = labels.filter(style=style)
        if part.height:
            layers += placed_text(
                part.drop("style"),
                style,
                chosen("chip", "dtypes"),
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
            best = room.best(spot, at_corner, segments=edge, within=ANYWHERE, uncrossed=True)
        places.append(room.take(spot, best))
    return places


def _finding(case: pl.DataFrame, chip: str, combination: str, title: str | None) -> tuple[str, str]:
    """Title and subtitle: what the shapes need, or how many of them are never compute-bound."""
    shapes = case.filter(kind="shape")
    shards = case["shards"].unique().to_list()
    name = on_chips(chip, shards)
    split = split_text(str(case["sharding"][0]), shards, case["network"])
    subtitle = (
        f"Critical B of {combination} matmuls on {name} over D and F{split}, every byte counted."
        f"{reached_text(shapes.rename({'level': 'critical'}))}"
    )
    levels = shapes.drop_nulls("level")
    if title or not shapes.height:
        return title or f"Where {name} turns compute-bound", subtitle
    if levels.height < shapes.height:
        never = f"{shapes.height - levels.height:,} of the {shapes.height:,} shapes shown"
        return f"{never} are never compute-bound on {name}", subtitle
    needed = sizes_text("B", [math.ceil(level) for level in levels["level"]])
    shown = (
        f"The {shapes.height:,} shapes shown need"
        if shapes.height > 1
        else f"{chip_label(shapes['name'][0])} needs"
    )
    return f"{shown} about {needed} on {name}", subtitle


CHART = Chart(
    name="critical-map",
    family="critical",
    caption=(
        "Lines of equal critical batch, exact; named shapes stand at their true sizes. Grey is "
        "never compute-bound."
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
