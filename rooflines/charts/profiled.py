"""Profiled kernels as points on the roofline of their chip."""

from __future__ import annotations

import math
from itertools import chain
from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import RooflinesError, printable
from rooflines.basics.lazy import alt, pl
from rooflines.basics.text import counted, si, significant
from rooflines.catalogue.chips import chip_entries
from rooflines.catalogue.entries import MAIN_MEMORY
from rooflines.charts.claims import Finding, claim
from rooflines.charts.comparing import at_right_edge
from rooflines.charts.frames import highest, lowest, roof_corners
from rooflines.charts.kit.drawing import (
    SHORT_LABEL,
    assemble,
    data,
    decades,
    log_axis,
    placed_text,
    zoom,
)
from rooflines.charts.kit.ends import at_ends
from rooflines.charts.kit.place import Box, Place, Plane, Room, Segment, Spot, placed
from rooflines.charts.kit.text import chip_label, part_name, with_value
from rooflines.charts.kit.themes import Margins

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.catalogue.entries import Chip

MARGINS = Margins(left=4.2, right=15.2)
NAME_ROOM = 14.4
"""Width of the name of a roof [em]."""

MOST_DOTS, MOST_NAMES = 500, 12
"""Kernels that are drawn, and of these that are named, those that take most time [1]."""

LONGEST_NAME = 15.0
"""Width of the name of a kernel [em]."""

MOST_CHARACTERS = 200
"""Characters of the name of a kernel in a chart [1]; those of templates may have thousands."""

LARGEST, SMALLEST = 2.4, 0.14
"""Area of the dot of the kernel that takes most time, and the least area of a dot [em^2]."""

MOST_TICKS = 8
"""Powers of ten of an axis that are named [1]."""

AWAY = 0.35
"""From a dot to its name [em]."""

OFF = 0.7
"""From the line of the memory to its name, to the left and up [em]."""

ALONG = (0.0, -0.12, 0.12, -0.24, 0.24, -0.36, 0.36)
"""Places of the memory's name along its line, from the middle, as shares of the line [1]."""

SCHEMA = {
    **dict.fromkeys(("chip", "kind", "kernel", "unit", "compute", "bound"), str),
    "launches": int,
    **dict.fromkeys(("intensity", "flops_per_s", "bytes_per_s"), float),
    **dict.fromkeys(("seconds", "t_lower_s", "time_share", "roof_share"), float),
}
"""The columns of `kernels_frame`."""


def kernels_frame(
    kernels: pl.DataFrame, chip: str, chips: Mapping[str, Chip] | None = None
) -> pl.DataFrame:
    """Kernels of a profile, and the roofs that they are compared with.

    Args:
        kernels: From `rooflines.kernels`.
        chip: The chip that ran them.
        chips: The chips by id, such as `Config.chips`; by default those of the catalogue.

    Returns:
        Rows of three kinds. `all`: the `launches` of all kernels [1], the sums of their `seconds`
        and of their least times, `t_lower_s` [s], and `roof_share`, these over those [1]. `roof`:
        of each `unit` and dtype, `compute`, that kernels are compared with, the peak `flops_per_s`
        [FLOP/s], the rate of the main memory `bytes_per_s` [byte/s], and the ridge, `intensity`
        [FLOP/byte]. `kernel`: a kernel with its intensity, what it attains, its `time_share` of
        all [1], its `bound` and `roof_share` [1]; `intensity` is null without memory traffic.
    """
    entry = (chip_entries() if chips is None else chips)[chip]
    rate = float(entry.memory[MAIN_MEMORY].exact.bytes_per_s)
    seconds = pl.col("seconds")
    every = kernels.select(
        pl.col("launches").sum(),
        pl.col("seconds", "t_lower_s").sum(),
        kind=pl.lit("all"),
        roof_share=pl.col("t_lower_s").sum() / seconds.sum(),
    )
    compared = kernels.drop_nulls("compute").select("unit", "compute").unique(maintain_order=True)
    peaks = [float(entry.units[unit][dtype].exact) for unit, dtype in compared.iter_rows()]
    peak = pl.Series("flops_per_s", peaks, dtype=pl.Float64)
    roofs = compared.with_columns(
        peak, kind=pl.lit("roof"), bytes_per_s=pl.lit(rate), intensity=peak / rate
    )
    own = kernels.with_columns(
        kind=pl.lit("kernel"), intensity="memory_intensity", time_share=seconds / seconds.sum()
    )
    empty = pl.DataFrame(schema=SCHEMA)
    frames = [every, roofs.sort("flops_per_s", descending=True), own]
    return (
        pl.concat([empty, *frames], how="diagonal_relaxed")
        .with_columns(chip=pl.lit(chip))
        .select(*SCHEMA)
    )


def kernels_on_roofline(frame: pl.DataFrame, *, title: str | None = None) -> alt.LayerChart:
    """Profiled kernels under the roofs of their chip, as dots with an area by their time.

    Args:
        frame: From `kernels_frame`.
        title: Replaces the finding.

    Raises:
        RooflinesError: No kernel has both operations and memory traffic.
    """
    shown = frame.filter(pl.col("kind") == "kernel", pl.col("intensity") > 0)
    if shown.is_empty():
        problem = "has no kernel with both operations and memory traffic"
        raise RooflinesError("", problem, "profile kernels that compute, or read the table")
    drawn = shown.head(MOST_DOTS)
    roofs = frame.filter(kind="roof")
    plane = _plane(roofs, drawn)
    findings = {"": _finding(frame, drawn).titled(title)}
    return assemble(_layers(roofs, drawn, plane), findings, [], MARGINS)


def _plane(roofs: pl.DataFrame, drawn: pl.DataFrame) -> Plane:
    """A plot with all dots and ridges."""
    low = min(lowest(drawn, "intensity"), lowest(roofs, "intensity")) / 2
    high = max(highest(drawn, "intensity"), highest(roofs, "intensity")) * 3
    top = max(highest(roofs, "flops_per_s"), highest(drawn, "flops_per_s")) * 1.6
    return Plane((low, high), (lowest(drawn, "flops_per_s") / 2, top))


def _layers(roofs: pl.DataFrame, drawn: pl.DataFrame, plane: Plane) -> list[alt.Chart]:
    """The roofs, a line from every dot to its roof, the dots, and the names."""
    (left, right), (bottom, top) = plane.x, plane.y
    across = "Arithmetic intensity (FLOP per byte of main memory)"
    x = alt.X("intensity:Q", **log_axis(left, right, across, SHORT_LABEL, _ticks(left, right)))
    axis = log_axis(bottom, top, "Attained FLOP/s", values=_ticks(bottom, top))
    y = alt.Y("flops_per_s:Q", **axis)
    lines = roofs.select(
        roof=pl.format("{}, {}", "compute", "unit"),
        peak="flops_per_s",
        rate="bytes_per_s",
        ridge="intensity",
        **roof_corners(plane),
    ).explode("intensity", "flops_per_s")
    dots = drawn.select(
        *("launches", "intensity", "flops_per_s", "seconds", "time_share", "roof_share", "bound"),
        kernel=pl.Series(list(map(_shown, drawn["kernel"])), dtype=pl.String),
        roof=pl.format("{}, {}", "compute", "unit"),
        attainable=pl.col("flops_per_s") / pl.col("roof_share"),
        area=_area(drawn),
    )
    base = alt.Chart(data(dots))
    names, ends = _names(roofs, drawn, plane), _roof_names(roofs, plane)
    return [
        alt.Chart(data(lines))
        .mark_line(style="roof")
        .encode(
            x=x,
            y=y,
            detail=alt.Detail("roof:N"),
            tooltip=[
                alt.Tooltip("roof:N", title="peak of"),
                alt.Tooltip("peak:Q", title="peak FLOP/s", format=".4~s"),
                alt.Tooltip("rate:Q", title="byte/s", format=".4~s"),
                alt.Tooltip("ridge:Q", title="ridge, FLOP/byte", format=".4~s"),
            ],
        )
        .add_params(zoom("x", "y")),
        base.mark_rule(style="rule").encode(x=x, y=y, y2=alt.Y2("attainable:Q")),
        base.mark_point(
            style="timing", filled=True, opacity=0.85, size=alt.expr("em * em * datum.area")
        ).encode(x=x, y=y, tooltip=_tooltip()),
        *chain.from_iterable(
            placed_text(names.filter(style=style).drop("style"), style, x=x, y=y)
            for style in ("label", "strong")
        ),
        *placed_text(ends, "strong", halo=False, clip=False, x=at_right_edge(), y=y),
    ]


def _shown(kernel: str) -> str:
    """The name of a kernel on one line, cut where it is long."""
    name = printable(kernel)
    return name if len(name) <= MOST_CHARACTERS else f"{name[: MOST_CHARACTERS - 1]}…"


def _ticks(low: float, high: float) -> list[float]:
    """Powers of ten in a range; every n-th of them where there are many."""
    ticks = decades(low, high)
    return ticks[:: -(-len(ticks) // MOST_TICKS)] if ticks else []


def _tooltip() -> list[alt.Tooltip]:
    """The lines of a kernel's tooltip."""
    return [
        alt.Tooltip("kernel:N"),
        alt.Tooltip("launches:Q", format=",d"),
        alt.Tooltip("roof_share:Q", title="share of roof", format=".1%"),
        alt.Tooltip("time_share:Q", title="share of time", format=".1%"),
        alt.Tooltip("seconds:Q", title="measured, s", format=".4~s"),
        alt.Tooltip("intensity:Q", title="FLOP/byte", format=".4~s"),
        alt.Tooltip("flops_per_s:Q", title="FLOP/s", format=".4~s"),
        alt.Tooltip("bound:N"),
        alt.Tooltip("roof:N", title="peak of"),
    ]


def _area(drawn: pl.DataFrame) -> pl.Expr:
    """The areas of dots, by time but not below the least [em^2]."""
    return (LARGEST / highest(drawn, "time_share") * pl.col("time_share")).clip(SMALLEST)


def _roof_names(roofs: pl.DataFrame, plane: Plane) -> pl.DataFrame:
    """The names of the roofs right of the plot, with their places."""
    text = [
        with_value(
            f"{roof['compute']}, {roof['unit']}", si(roof["flops_per_s"], "FLOP/s"), NAME_ROOM
        )
        for roof in roofs.to_dicts()
    ]
    places = at_ends(MARGINS, plane, roofs["flops_per_s"].to_list())
    return roofs.select("flops_per_s", text=pl.Series(text, dtype=pl.String)).hstack(places)


def _names(roofs: pl.DataFrame, drawn: pl.DataFrame, plane: Plane) -> pl.DataFrame:
    """The names of kernels and, last, of the memory, with their styles and places."""
    dots = drawn.with_columns(radius=(_area(drawn) / math.pi).sqrt()).to_dicts()
    named = dots[:MOST_NAMES]
    slope = roofs.row(-1, named=True)  # the lowest ridge
    start = max(plane.x[0], plane.y[0] / slope["bytes_per_s"])
    middle = math.sqrt(start * slope["intensity"])
    rows = [
        *(
            {
                "intensity": dot["intensity"],
                "flops_per_s": dot["flops_per_s"],
                "text": with_value(
                    _shown(dot["kernel"]),
                    f"{significant(100 * dot['time_share'])} %",
                    LONGEST_NAME,
                ),
                "style": "strong",
            }
            for dot in named
        ),
        {
            "intensity": middle,
            "flops_per_s": middle * slope["bytes_per_s"],
            "text": f"{part_name(MAIN_MEMORY)} · {si(slope['bytes_per_s'], 'B/s')}",
            "style": "label",
        },
    ]

    def places(plot: tuple[float, float]) -> list[Place | None]:
        room, segments = Room(plot), list(_segments(roofs, dots, plane, plot))
        centres = [(*plane.at(plot, d["intensity"], d["flops_per_s"]), d["radius"]) for d in dots]
        room.taken += [Box(x - r, y - r, x + r, y + r) for x, y, r in centres]
        spots = [
            Spot(x, y, str(row["text"]), bold=True, distance=r + AWAY)
            for row, (x, y, r) in zip(rows[:-1], centres, strict=False)
        ]
        foot, head = (
            plane.at(plot, x, x * slope["bytes_per_s"]) for x in (start, slope["intensity"])
        )
        across, down = head[0] - foot[0], head[1] - foot[1]
        memory = Spot(foot[0] + across / 2, foot[1] + down / 2, str(rows[-1]["text"]))
        along = [Place(share * across - OFF, share * down - OFF, "right") for share in ALONG]
        above = room.take(memory, room.best(memory, along, segments=segments, fewer_than=1))
        return [*(room.take(one, room.best(one, segments=segments)) for one in spots), above]

    return pl.DataFrame(rows).hstack(placed(MARGINS, places))


def _segments(
    roofs: pl.DataFrame,
    dots: Sequence[dict[str, Any]],
    plane: Plane,
    plot: tuple[float, float],
) -> Iterator[Segment]:
    """The lines of the roofs, and those from dots to their roofs."""
    for roof in roofs.to_dicts():
        ridge = plane.at(plot, roof["intensity"], roof["flops_per_s"])
        yield *plane.at(plot, plane.x[0], plane.x[0] * roof["bytes_per_s"]), *ridge
        yield *ridge, *plane.at(plot, plane.x[1], roof["flops_per_s"])
    for dot in dots:
        x, y = plane.at(plot, dot["intensity"], dot["flops_per_s"])
        _, up = plane.at(plot, dot["intensity"], dot["flops_per_s"] / dot["roof_share"])
        yield x, y, x, up


def _finding(frame: pl.DataFrame, drawn: pl.DataFrame) -> Finding:
    """Title and subtitle: the share of the roof of all kernels, and what is not drawn."""
    every = frame.filter(kind="all").row(0, named=True)
    number = frame.filter(kind="kernel").height
    share = every["roof_share"]
    stated = (
        f"{counted(number, 'kernel')} at {significant(100 * share)} % of the roofline of "
        f"{chip_label(every['chip'])}"
    )
    subtitle = (
        "Least over measured time of all. Area and number of a dot: share of the time. Dashed: to "
        "its roof."
    )
    if left_out := number - drawn.height:
        time = 100 * (1 - float(drawn["time_share"].sum()))
        subtitle += f" Not drawn: {counted(left_out, 'kernel')}, {significant(time)} % of the time."
    found = claim("sums", "t_lower_s", {"chip": [every["chip"]]}, share, to="seconds")
    return Finding(stated, subtitle, found)
