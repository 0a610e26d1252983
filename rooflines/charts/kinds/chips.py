"""Chips on one roofline: the main roof of each, in one dtype combination."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import alt, pl
from rooflines.basics.text import si, significant
from rooflines.charts.chart import Chart
from rooflines.charts.claims import Finding
from rooflines.charts.comparing import (
    ADDED,
    EVERY,
    added_parameters,
    at_right_edge,
    beneath,
    by_compute,
    compared_rows,
    highlight,
    ridges_compared,
    wider,
)
from rooflines.charts.frames import first_shown, highest, lowest, ridge_frame
from rooflines.charts.kit.drawing import (
    Choice,
    assemble,
    chip_scale,
    lettered,
    placed_text,
    starting,
    zoom,
)
from rooflines.charts.kit.ends import end_places
from rooflines.charts.kit.place import Place, Plane, Room, Segment, Spot, placed
from rooflines.charts.kit.text import chip_label, with_value
from rooflines.charts.kit.themes import Margins
from rooflines.charts.needs import by_chips, has_bandwidth, two_chips
from rooflines.charts.planes import FAR, PICTURE, log_axes, pictured, plane_parameters, sides_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["chips_on_one_roofline"]

MARGINS = Margins(left=4.2, right=15.6)
NAME_ROOM = 14.9

EDGE = 1.5
"""Least quotient of a ridge or peak and the edge of the plot [1]."""


def chips_on_one_roofline(
    frame: pl.DataFrame,
    *,
    first: Mapping[str, Any] | None = None,
    title: str | None = None,
    added: Sequence[str] = (),
    added_dtypes: Sequence[str] = (),
) -> alt.LayerChart:
    """The roofs of several chips in one plot.

    Args:
        frame: From `ridge_frame`: peaks [FLOP/s], bandwidths [byte/s], ridges [FLOP/byte].
        first: The initial choices by parameter; the first of the frame by default.
        title: Replaces the finding.
        added: Chips that are only shown where the reader chooses them.
        added_dtypes: Dtype combinations for which, as for these chips, axes are longer if needed.

    Returns:
        A chart with the parameters `dtypes`, and `chip` for the one to highlight.
    """
    frame = by_compute(frame, pictured(frame, added, added_dtypes))
    own = pictured(frame, added, added_dtypes)
    compared = frame.filter(~pl.col("chip").is_in(added))
    chips = compared["chip"].unique(maintain_order=True).to_list()
    combinations = pl.concat([own, compared])["dtypes"].unique(maintain_order=True).to_list()
    frame = frame.filter(pl.col("dtypes").is_in(combinations))
    planes = _planes_of(own, frame)
    far = _far(planes[PICTURE], frame, added)
    labels, findings = [], {}
    for combination in combinations:
        part = compared.filter(dtypes=combination).sort(
            "flops_per_s", "ridge", descending=[True, False]
        )
        for chip in (EVERY, *chips):
            findings[f"{chip}|{combination}"] = _finding(part, combination, title)
        beside = frame.filter(pl.col("chip").is_in(added), dtypes=combination)
        for one in beside.iter_slices(1):
            shown = pl.concat([part, one])
            findings[f"{one['chip'][0]}|{combination}"] = _finding(shown, combination, title)
        labels += _labels(part, beside, planes, far.get(combination, []))
    beside = frame.filter(pl.col("chip").is_in(added))
    choices = [Choice("chip", [EVERY, *chips, *added]), Choice("dtypes", combinations)]
    return assemble(
        _layers(
            _lines(compared, beside, planes[PICTURE]),
            planes,
            chip_scale(frame),
            pl.concat(labels, how="diagonal"),
        ),
        findings,
        starting(choices, first),
        MARGINS,
        [*added_parameters(added), *_place_parameters(planes, far)],
    )


def _planes_of(own: pl.DataFrame, frame: pl.DataFrame) -> dict[str, Plane]:
    """The plot of the picture; if it does not hold all ridges of the frame, one that does."""
    low, high = lowest(own, "ridge") / 12, highest(own, "ridge") * 6
    bottom, top = low * lowest(own, "bytes_per_s") * 0.8, highest(own, "flops_per_s") * 1.8
    near = Plane((low, high), (bottom, top))
    across, up = (
        (min(side[0], lowest(frame, name) / EDGE), max(side[1], highest(frame, name) * EDGE))
        for name, side in (("ridge", near.x), ("flops_per_s", near.y))
    )
    far = Plane(across, up)
    return {PICTURE: near} if far == near else {PICTURE: near, FAR: far}


def _far(plane: Plane, frame: pl.DataFrame, added: Sequence[str]) -> dict[str, list[str]]:
    """By dtypes the choices of a chip for which the picture's plot is too small."""
    inside = [
        pl.col(name).is_between(low * EDGE, high / EDGE)
        for name, (low, high) in (("ridge", plane.x), ("flops_per_s", plane.y))
    ]
    far: dict[str, list[str]] = {}
    outside = frame.filter(~pl.all_horizontal(inside))
    for chip, dtypes in outside.select("chip", "dtypes").iter_rows():
        far.setdefault(dtypes, []).append(chip if chip in added else EVERY)
    return far


def _place_parameters(
    planes: Mapping[str, Plane], far: Mapping[str, Sequence[str]]
) -> list[alt.Parameter]:
    """Parameters of the present plot and, if there are two, its key `place`."""
    sides = {name: sides_of(plane) for name, plane in planes.items()}
    parameters = plane_parameters(sides, "place")
    if FAR in planes:
        is_far = (f"indexof(far[dtypes] || [], {each}) >= 0" for each in (f"'{EVERY}'", "chip"))
        place = f"{' || '.join(is_far)} ? '{FAR}' : '{PICTURE}'"
        parameters += [alt.param(name="far", value=far), alt.param(name="place", expr=place)]
    return parameters


def _lines(compared: pl.DataFrame, beside: pl.DataFrame, plane: Plane) -> pl.DataFrame:
    """The roofs with `beneath`; if chips can be shown beside them, with these, and `added`."""
    lines = pl.concat(
        part.with_columns(beneath=_beneath(part, plane))
        for part in compared.partition_by("dtypes", maintain_order=True)
    )
    if not beside.height:
        return lines
    alone = beside.with_columns(beneath=pl.lit(0, pl.Int64), added=pl.lit(value=True))
    return pl.concat([lines.with_columns(added=pl.lit(value=False)), alone])


def _layers(
    frame: pl.DataFrame, planes: Mapping[str, Plane], colors: alt.Scale, labels: pl.DataFrame
) -> list[alt.Chart]:
    """Roofs, ridges, names at the ends of the roofs, and the numbers of the ridges."""
    now = "datum.dtypes == dtypes"
    of_added = ["added"] if "added" in frame.columns else []
    lines = frame.select(
        "chip",
        "dtypes",
        "ridge",
        "beneath",
        *of_added,
        peak="flops_per_s",
        rate="bytes_per_s",
        corner=pl.lit([0, 1, 2]),
    ).explode("corner")
    axes = log_axes(
        planes.values(), "Arithmetic intensity (FLOP per byte of main memory)", "Attainable FLOP/s"
    )
    x, y = alt.X("x:Q", **axes[0]), alt.Y("y:Q", **axes[1])
    color = alt.Color("chip:N", legend=None, scale=colors)
    shown = {"color": color, "opacity": highlight()}
    named = {"fill": lettered(colors), "opacity": highlight()}
    tooltip = [
        "chip:N",
        alt.Tooltip("peak:Q", title="peak FLOP/s", format=".4~s"),
        alt.Tooltip("rate:Q", title="byte/s", format=".4~s"),
        alt.Tooltip("ridge:Q", title="ridge, FLOP/byte", format=".4~s"),
    ]
    base = compared_rows(lines).transform_filter(now)
    base = base.transform_calculate(
        x="[max(plane.x[0], plane.y[0] / datum.rate), datum.ridge, plane.x[1]][datum.corner]",
        y="datum.corner ? datum.peak : datum.x * datum.rate",
    )
    of_plane = f"{now} && datum.place == place" if FAR in planes else now
    of_knees = f"{of_plane} && {ADDED}" if of_added else of_plane
    ends, knees = (
        labels.filter(end=end).drop("end", *([] if FAR in planes else ["place"]))
        for end in (True, False)
    )
    return [
        base.mark_line(style="curve", strokeWidth=wider())
        .encode(x=x, y=y, tooltip=tooltip, order=alt.Order("corner:Q"), **shown)
        .add_params(zoom("x", "y")),
        base.transform_filter("datum.corner == 1")
        .mark_point(style="dot", filled=True)
        .encode(x=x, y=y, tooltip=tooltip, **shown),
        *placed_text(
            ends, "value", of_plane, halo=False, clip=False, y=y, x=at_right_edge(), **named
        ),
        *placed_text(knees, "value", of_knees, x=x, y=y, **named),
    ]


def _beneath(part: pl.DataFrame, plane: Plane) -> pl.Series:
    """How many roofs drawn later run along each: in their slope, or at their peak."""
    heights = {
        row["chip"]: dict(
            enumerate(
                plane.at((1, 1), plane.x[0], y)[1]
                for y in (row["bytes_per_s"] * plane.x[0], row["flops_per_s"])
            )
        )
        for row in part.to_dicts()
    }
    return pl.Series(list(beneath(heights).values()), dtype=pl.Int64)


def _labels(
    part: pl.DataFrame, beside: pl.DataFrame, planes: Mapping[str, Plane], far: Sequence[str]
) -> list[pl.DataFrame]:
    """The labels of one dtype combination in every plot that shows it: `place` and `end`.

    Args:
        part: The roofs compared.
        beside: Roofs that are shown one at a time beside them.
        planes: All plots.
        far: The choices of a chip that are shown in the larger one.
    """
    labels = []
    is_far = pl.col("chip").is_in(far) if EVERY not in far else pl.lit(value=True)
    for place, plane in planes.items():
        if far if place == FAR else EVERY not in far:
            others = beside.filter(is_far if place == FAR else ~is_far)
            numbers = [_knees(part, plane)]
            numbers += [_knees_beside(part, others, plane)] if others.height else []
            of_place = [_ends(part, plane).with_columns(end=pl.lit(value=True))]
            of_place += [each.with_columns(end=pl.lit(value=False)) for each in numbers]
            labels += [each.with_columns(place=pl.lit(place)) for each in of_place]
    return labels


def _ends(part: pl.DataFrame, plane: Plane) -> pl.DataFrame:
    """Labels at the ends of the lines, as many as there is room for."""

    def places(plot: tuple[float, float]) -> list[Place | None]:
        ends = [plane.at(plot, plane.x[1], peak)[1] for peak in part["flops_per_s"]]
        return end_places(ends, plot[1])

    text = [
        with_value(chip_label(row["chip"]), si(row["flops_per_s"], "FLOP/s"), NAME_ROOM)
        for row in part.to_dicts()
    ]
    return part.select(
        "chip", "dtypes", y="flops_per_s", text=pl.Series(text, dtype=pl.String)
    ).hstack(placed(MARGINS, places))


def _knees(part: pl.DataFrame, plane: Plane) -> pl.DataFrame:
    """The numbers of the ridge points."""

    def places(plot: tuple[float, float]) -> list[Place | None]:
        return Room(plot).place(_spots(part, plane, plot), _segments(part, plane, plot))

    texts = [significant(ridge) for ridge in part["ridge"]]
    return _at_ridges(part, texts).hstack(placed(MARGINS, places))


def _knees_beside(part: pl.DataFrame, beside: pl.DataFrame, plane: Plane) -> pl.DataFrame:
    """Names and ridges of chips that are shown one at a time beside others."""
    texts = [
        f"{chip_label(chip)} · {significant(ridge)}"
        for chip, ridge in beside.select("chip", "ridge").iter_rows()
    ]

    def places(plot: tuple[float, float]) -> list[Place | None]:
        room, segments = Room(plot), _segments(part, plane, plot)
        room.place(_spots(part, plane, plot), segments)
        dots = [spot.dot for spot in _spots(part, plane, plot)]
        own = _segments(beside, plane, plot)
        return [
            room.best(replace(spot, text=text), avoid=dots, segments=[*segments, *lines])
            for spot, text, *lines in zip(
                _spots(beside, plane, plot), texts, own[::2], own[1::2], strict=True
            )
        ]

    rows = _at_ridges(beside, texts).with_columns(added=pl.lit(value=True))
    return rows.hstack(placed(MARGINS, places))


def _at_ridges(part: pl.DataFrame, texts: Sequence[str]) -> pl.DataFrame:
    """Labels of the ridge points."""
    text = pl.Series(texts, dtype=pl.String)
    return part.select("chip", "dtypes", x="ridge", y="flops_per_s", text=text)


def _spots(part: pl.DataFrame, plane: Plane, plot: tuple[float, float]) -> list[Spot]:
    """The ridge points, with their numbers."""
    sides = ("br", "tl", "b", "t", "tr", "bl")
    return [
        Spot(*plane.at(plot, ridge, peak), significant(ridge), bold=True, sides=sides)
        for ridge, peak in part.select("ridge", "flops_per_s").iter_rows()
    ]


def _segments(part: pl.DataFrame, plane: Plane, plot: tuple[float, float]) -> list[Segment]:
    """The slope and the peak of every roof."""
    segments: list[Segment] = []
    for row in part.to_dicts():
        start, knee, end = (
            plane.at(plot, x, min(x * row["bytes_per_s"], row["flops_per_s"]))
            for x in (plane.x[0], row["ridge"], plane.x[1])
        )
        segments += [(*start, *knee), (*knee, *end)]
    return segments


def _finding(part: pl.DataFrame, combination: str, title: str | None) -> Finding:
    """Title and subtitle."""
    subtitle = (
        f"{combination}: dense peak over main-memory bandwidth. The dot is the ridge, in FLOP per"
        " byte."
    )
    if not part.height:
        return Finding(title or f"No chip here computes in {combination}", subtitle)
    return ridges_compared(part, combination, subtitle).titled(title)


CHART = Chart(
    name="chips",
    family="chips",
    heading="Chips on one roofline",
    caption="The roofs of several chips from main memory; the dot is the ridge.",
    order=20,
    needs=(two_chips(has_bandwidth, "a known bandwidth of the main memory"),),
    compares=has_bandwidth,
    preferred=by_chips,
    frame=lambda of, _: ridge_frame(of),
    draw=lambda frame, _, spec: chips_on_one_roofline(
        frame,
        first=first_shown(frame, spec, "dtypes"),
        title=spec.title,
        added=spec.added,
        added_dtypes=spec.added_dtypes,
    ),
)
