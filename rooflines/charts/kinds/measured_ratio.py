"""Measured time over the bound and over the estimate, against the bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import alt, pl
from rooflines.basics.text import significant
from rooflines.charts.chart import MeasuredChart
from rooflines.charts.claims import Finding, claim
from rooflines.charts.comparing import at_right_edge
from rooflines.charts.frames import highest, lowest
from rooflines.charts.kit.drawing import (
    assemble,
    chosen,
    data,
    placed_text,
    zoom,
)
from rooflines.charts.kit.ends import at_ends
from rooflines.charts.kit.place import Plane
from rooflines.charts.kit.themes import Margins
from rooflines.charts.measured import (
    CASE,
    case_choices,
    dots_text,
    first_case,
    frame_of_cases,
    medians,
    named,
    sampled,
)
from rooflines.charts.needs import MATMULS
from rooflines.charts.planes import case_planes, plane_axis, ticked

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rooflines.charts.measured_results import MeasuredSelection

__all__ = ["measured_ratio", "measured_ratio_frame"]

MARGINS = Margins(left=4.2, right=7.8)

OVER = {"ratio_lower": "bound", "ratio_estimate": "estimate"}
"""What each ratio divides the measured time by."""

STYLES = {
    "ratio_lower": ("to-bound", "roof", "strong"),
    "ratio_estimate": ("to-estimate", "estimate", "estimate-text"),
}
"""Styles of the dots, the line and the text of each ratio."""

SECONDS_LABEL = "replace(format(datum.value, '~s'), regexp('([mµn]?)$'), ' $1s')"
RATIO_LABEL = "format(datum.value, '~g')"

SCHEMA = {
    **dict.fromkeys((*CASE, "kind"), str),
    **dict.fromkeys(("t_lower_s", *OVER), float),
    "timings": int,
    **dict.fromkeys("BDF", int),
    "seconds": float,
}
"""The columns of `measured_ratio_frame`."""


def measured_ratio_frame(
    of: MeasuredSelection, *, added: Collection[str] = (), added_dtypes: Collection[str] = ()
) -> pl.DataFrame:
    """Measured over predicted times of matmuls: all, by size of the bound, and a sample.

    Args:
        of: The chips and combinations, from `Results.of_measured`.
        added: Chips with a smaller sample: others share the number of timings that a picture has.
        added_dtypes: Dtype combinations with a smaller sample.

    Returns:
        `chip`, `software`, `dtypes`, and rows of three kinds with `ratio_lower` and
        `ratio_estimate`, measured time over the bound and over the estimate (null: no calibration)
        [1]. `all`: medians of all `timings` [1]. `median`: those of the timings in a bin of
        `t_lower_s`, their median bound [s]. `timing`: a timing with its bound, `B`, `D`, `F` [1]
        and `seconds` [s].
    """
    return frame_of_cases(of.cases(), SCHEMA, _rows, added, added_dtypes)


def _rows(_: Mapping[str, str], part: pl.DataFrame, most: int) -> Mapping[str, pl.DataFrame]:
    """The rows of a case by their kind."""
    ratios = {name: pl.col(name) for name in OVER}
    return {
        "all": part.select(*(ratio.median() for ratio in ratios.values()), timings=pl.len()),
        "median": medians(part, "t_lower_s", **ratios),
        "timing": sampled(part, "t_lower_s", "ratio_lower", most).select(
            "t_lower_s", *OVER, "B", "D", "F", "seconds"
        ),
    }


def measured_ratio(
    frame: pl.DataFrame, *, first: Mapping[str, Any] | None = None, title: str | None = None
) -> alt.LayerChart:
    """Measured time over the bound and over the estimate, against the size of the bound.

    Args:
        frame: From `measured_ratio_frame`.
        first: The initial choices by parameter; the first of the frame by default.
        title: Replaces the finding.

    Returns:
        A chart with the parameters `chip`, `software` and `dtypes`.
    """
    labels, findings, planes = [], {}, {}
    for case, part in frame.group_by(CASE, maintain_order=True):
        plane, key = _plane(part), "|".join(map(str, case))
        labels.append(_labels(part, plane))
        findings[key], planes[key] = _finding(part, title), ticked(plane)
    return assemble(
        _layers(frame, pl.concat(labels)),
        findings,
        case_choices(frame, first),
        MARGINS,
        case_planes(planes, CASE),
    )


def _plane(part: pl.DataFrame) -> Plane:
    """The axes of a case."""
    across = lowest(part, "t_lower_s") / 1.5, highest(part, "t_lower_s") * 1.5
    least = min(lowest(part, name) for name in OVER)
    most = max(highest(part, name) for name in OVER)
    return Plane(across, (min(least, 1.0) / 1.25, max(most, 1.0) * 1.25))


def _layers(frame: pl.DataFrame, labels: pl.DataFrame) -> list[alt.Chart]:
    """The line of one, the timings, and the medians with their names."""
    now = chosen(*CASE)
    x = alt.X("t_lower_s:Q", **plane_axis("x", "Bound of the time", SECONDS_LABEL))
    up = plane_axis("y", "Measured over predicted time", RATIO_LABEL)
    floats = ("t_lower_s", *OVER, "seconds")
    dots = frame.filter(kind="timing").select(*CASE, "B", "D", "F", *floats)
    dots = data(dots.with_columns(pl.col(floats).round_sig_figs(4)))
    lines = data(frame.filter(kind="median").select(*CASE, "t_lower_s", *OVER))
    one = alt.Chart(pl.DataFrame({"one": [1.0]})).mark_rule(style="rule")
    layers = [one.encode(y=alt.Y("one:Q", **up))]
    for source, mark in ((dots, 0), (lines, 1)):
        for name, styles in STYLES.items():
            base = alt.Chart(source).transform_filter(f"{now} && datum.{name} != null")
            y = alt.Y(f"{name}:Q", **up)
            layers.append(
                base.mark_line(style=styles[1]).encode(x=x, y=y)
                if mark
                else base.mark_point(style=styles[0], filled=True).encode(
                    x=x, y=y, tooltip=_tooltip()
                )
            )
    layers[1] = layers[1].add_params(zoom("x", "y"))
    for name, (*_, style) in STYLES.items():
        part = labels.filter(over=OVER[name]).drop("over")
        if part.height:
            y = alt.Y("ratio:Q", **up)
            layers += placed_text(part, style, now, halo=False, clip=False, x=at_right_edge(), y=y)
    return layers


def _tooltip() -> list[alt.Tooltip]:
    """The lines of a timing's tooltip."""
    return [
        *(alt.Tooltip(f"{size}:Q", format=",d") for size in "BDF"),
        alt.Tooltip("seconds:Q", title="measured, s", format=".4~s"),
        alt.Tooltip("t_lower_s:Q", title="bound, s", format=".4~s"),
        *(
            alt.Tooltip(f"{name}:Q", title=f"measured over {over}", format=".3~r")
            for name, over in OVER.items()
        ),
    ]


def _labels(part: pl.DataFrame, plane: Plane) -> pl.DataFrame:
    """The names of the medians at their right ends."""
    last = part.filter(kind="median").tail(1).rename(OVER).select(*CASE, *OVER.values())
    ends = last.unpivot(
        list(OVER.values()), index=CASE, variable_name="over", value_name="ratio"
    ).drop_nulls("ratio")
    places = at_ends(MARGINS, plane, ends["ratio"].to_list())
    return ends.with_columns(text=pl.format("over {}", "over")).hstack(places)


def _finding(part: pl.DataFrame, title: str | None) -> Finding:
    """Title and subtitle: the medians of all timings, and how many are drawn."""
    every = part.filter(kind="all").row(0, named=True)
    times = [
        f"{significant(every[name])} × the {over}"
        for name, over in OVER.items()
        if every[name] is not None
    ]
    dots = dots_text(part.filter(kind="timing").height, every["timings"])
    ratios = {over: every[name] for name, over in OVER.items() if every[name] is not None}
    rows = {name: [every[name]] for name in CASE}
    subtitle = f"{named(every)}, {every['software']}. {dots}. Lines: medians of all, by bound."
    found = claim("median", "ratio", rows, ratios)
    return Finding(f"The median timing is {', '.join(times)}", subtitle, found).titled(title)


CHART = MeasuredChart(
    name="measured-ratio",
    family="measured",
    caption=(
        "Measured time of matmuls over the bound, and over the estimate where the chip has a "
        "calibration, against the bound. Lines are medians of the timings in a bin, all of them."
    ),
    order=210,
    needs=(MATMULS,),
    most=8,
    most_chips=9,
    frame=lambda of, spec: measured_ratio_frame(
        of, added=spec.added, added_dtypes=spec.added_dtypes
    ),
    draw=lambda frame, spec: measured_ratio(
        frame, first=first_case(frame, spec.added, spec.added_dtypes), title=spec.title
    ),
)
