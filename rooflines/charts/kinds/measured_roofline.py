"""The roofline with timings: what they attain, under the bound and around the estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import alt, pl
from rooflines.basics.text import si, significant
from rooflines.charts.chart import MeasuredChart
from rooflines.charts.claims import Finding, claim
from rooflines.charts.comparing import at_right_edge
from rooflines.charts.frames import highest, lowest, roof_corners
from rooflines.charts.kit.drawing import (
    SHORT_LABEL,
    SI_LABEL,
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
    in_bins,
    named,
    sampled,
)
from rooflines.charts.needs import MATMULS
from rooflines.charts.planes import case_planes, plane_axis, ticked
from rooflines.model.resources import math_rate, memory_rate

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from rooflines.charts.measured_results import MeasuredSelection
    from rooflines.model.target import Target

__all__ = ["measured_roofline", "measured_roofline_frame"]

MARGINS = Margins(left=4.2, right=11.2)

SCHEMA = {
    **dict.fromkeys((*CASE, "kind"), str),
    **dict.fromkeys(("intensity", "flops_per_s", "low", "high", "bytes_per_s", "share"), float),
    "timings": int,
    **dict.fromkeys("BDF", int),
    "seconds": float,
    "in_cache": bool,
}
"""The columns of `measured_roofline_frame`."""


def measured_roofline_frame(
    of: MeasuredSelection, *, added: Collection[str] = (), added_dtypes: Collection[str] = ()
) -> pl.DataFrame:
    """The bound, the estimate and a sample of the timings of matmuls, in a roofline.

    Args:
        of: The chips and combinations, from `Results.of_measured`.
        added: Chips with a smaller sample: others share the number of timings that a picture has.
        added_dtypes: Dtype combinations with a smaller sample.

    Returns:
        `chip`, `software`, `dtypes`, and rows of three kinds. `bound`: the peak `flops_per_s`
        [FLOP/s], the memory rate `bytes_per_s` [byte/s] and the ridge between the two, `intensity`
        [FLOP/byte]; the number of `timings` [1], and the `share` of the bound's FLOP/s that their
        median attains [1]. `estimate`: the timings on the upper hull of what the estimates attain,
        `flops_per_s`, on logarithmic axes, with their bands, `low` and `high` [FLOP/s]. `timing`: a
        timing with its `intensity` and what it attains, `B`, `D`, `F` [1], `seconds` [s], and
        `in_cache`, whether its operands fit the last-level cache (null: the capacity is unknown).
    """

    def rows(case: Mapping[str, str], part: pl.DataFrame, most: int) -> Mapping[str, pl.DataFrame]:
        attained = part.with_columns(
            flops_per_s=pl.col("flops") / pl.col("seconds"),
            intensity="memory_intensity",
            in_cache="fits_cache",
        )
        return {
            "bound": _bound(of.target(case["chip"], part["compute"][0]), part),
            "estimate": _estimate(attained),
            "timing": _timings(attained, most),
        }

    return frame_of_cases(of.cases(), SCHEMA, rows, added, added_dtypes)


def _bound(target: Target, part: pl.DataFrame) -> pl.DataFrame:
    """The row of the bound."""
    peak, rate = float(math_rate(target).per_s), float(memory_rate(target).per_s)
    return part.select(
        flops_per_s=pl.lit(peak),
        bytes_per_s=pl.lit(rate),
        intensity=pl.lit(peak / rate),
        timings=pl.len(),
        share=(1 / pl.col("ratio_lower")).median(),
    )


def _estimate(attained: pl.DataFrame) -> pl.DataFrame:
    """The rows of the estimate."""
    flops = pl.col("flops")
    rates = attained.drop_nulls("t_estimate_s").select(
        "intensity",
        flops_per_s=flops / pl.col("t_estimate_s"),
        low=flops / pl.col("t_estimate_p90_s"),
        high=flops / pl.col("t_estimate_p10_s"),
    )
    largest = pl.col("flops_per_s").max().over(in_bins("intensity"))
    found = rates.filter(pl.col("flops_per_s") == largest)
    found = found.unique("intensity", keep="first", maintain_order=True).sort("intensity")
    return found[_hull(found.select(pl.col("intensity", "flops_per_s").log()).rows())]


def _hull(points: Sequence[tuple[float, float]]) -> list[int]:
    """The places of the points on the upper convex hull, from points with increasing x."""
    kept: list[int] = []
    for place, (x, y) in enumerate(points):
        while len(kept) > 1:
            (x1, y1), (x2, y2) = points[kept[-2]], points[kept[-1]]
            if (y2 - y1) * (x - x2) > (y - y2) * (x2 - x1):
                break
            kept.pop()
        kept.append(place)
    return kept


def _timings(attained: pl.DataFrame, most: int) -> pl.DataFrame:
    """The rows of the timings."""
    kept = sampled(attained, "intensity", "flops_per_s", most, apart=["in_cache"])
    return kept.select("intensity", "flops_per_s", "B", "D", "F", "seconds", "in_cache")


def measured_roofline(
    frame: pl.DataFrame, *, first: Mapping[str, Any] | None = None, title: str | None = None
) -> alt.LayerChart:
    """What timings attain over their arithmetic intensity, under the bound and around the estimate.

    Args:
        frame: From `measured_roofline_frame`.
        first: The initial choices by parameter; the first of the frame by default.
        title: Replaces the finding.

    Returns:
        A chart with the parameters `chip`, `software` and `dtypes`.
    """
    roofs, labels, findings, planes = [], [], {}, {}
    for case, part in frame.group_by(CASE, maintain_order=True):
        plane, key = _plane(part), "|".join(map(str, case))
        roofs.append(_roof(part, plane))
        labels.append(_labels(part, plane))
        findings[key], planes[key] = _finding(part, title), ticked(plane)
    return assemble(
        _layers(frame, pl.concat(roofs), pl.concat(labels)),
        findings,
        case_choices(frame, first),
        MARGINS,
        case_planes(planes, CASE),
    )


def _plane(part: pl.DataFrame) -> Plane:
    """The axes of a case."""
    across = lowest(part, "intensity") / 1.5, highest(part, "intensity") * 1.5
    return Plane(across, (lowest(part, "flops_per_s") / 1.6, highest(part, "flops_per_s") * 1.6))


def _roof(part: pl.DataFrame, plane: Plane) -> pl.DataFrame:
    """The corners of the bound of a case."""
    bound = part.filter(kind="bound")
    corners = bound.select(*CASE, peak="flops_per_s", rate="bytes_per_s", **roof_corners(plane))
    return corners.explode("intensity", "flops_per_s")


def _layers(frame: pl.DataFrame, roofs: pl.DataFrame, labels: pl.DataFrame) -> list[alt.Chart]:
    """The band of the estimate, the bound, the timings, the estimate, and the names of the two."""
    across = plane_axis("x", "Arithmetic intensity (FLOP per byte of memory)", SHORT_LABEL)
    up = plane_axis("y", "Attained FLOP/s", SI_LABEL)
    x, y = alt.X("intensity:Q", **across), alt.Y("flops_per_s:Q", **up)
    now = chosen(*CASE)
    estimate = frame.filter(kind="estimate").select(
        *CASE, "intensity", "flops_per_s", "low", "high"
    )
    lines = alt.Chart(data(roofs)).transform_filter(now)
    curve = alt.Chart(data(estimate)).transform_filter(now)
    layers = [
        curve.transform_filter("datum.low != null")
        .mark_area(style="estimate-band")
        .encode(x=x, y=alt.Y("low:Q", **up), y2=alt.Y2("high:Q")),
        lines.mark_line(style="roof")
        .encode(
            x=x,
            y=y,
            tooltip=[
                alt.Tooltip("peak:Q", title="peak FLOP/s", format=".4~s"),
                alt.Tooltip("rate:Q", title="byte/s", format=".4~s"),
            ],
        )
        .add_params(zoom("x", "y")),
        *_dots(frame.filter(kind="timing"), now, x, y),
        curve.mark_line(style="estimate").encode(
            x=x,
            y=y,
            tooltip=[
                alt.Tooltip("intensity:Q", title="FLOP/byte", format=".4~s"),
                alt.Tooltip("flops_per_s:Q", title="estimate, FLOP/s", format=".4~s"),
            ],
        ),
    ]
    for style in ("strong", "estimate-text"):
        part = labels.filter(style=style).drop("style")
        layers += placed_text(part, style, now, halo=False, clip=False, x=at_right_edge(), y=y)
    return layers


def _dots(timings: pl.DataFrame, now: str, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """The timings; hollow where the operands fit the last-level cache."""
    rows = timings.select(
        *CASE, "intensity", "flops_per_s", "B", "D", "F", "seconds", hollow=pl.col("in_cache")
    ).with_columns(
        pl.col("intensity", "flops_per_s", "seconds").round_sig_figs(4),
        pl.col("hollow").fill_null(value=False),
    )
    base = alt.Chart(data(rows)).transform_filter(now)
    tooltip = [
        *(alt.Tooltip(f"{size}:Q", format=",d") for size in "BDF"),
        alt.Tooltip("seconds:Q", title="measured, s", format=".4~s"),
        alt.Tooltip("intensity:Q", title="FLOP/byte", format=".4~s"),
        alt.Tooltip("flops_per_s:Q", title="FLOP/s", format=".4~s"),
    ]
    return [
        base.transform_filter(shown)
        .mark_point(style="timing", filled=filled)
        .encode(x=x, y=y, tooltip=tooltip)
        for shown, filled in (("!datum.hollow", True), ("datum.hollow", False))
    ]


def _labels(part: pl.DataFrame, plane: Plane) -> pl.DataFrame:
    """The names of the bound and of the estimate, right of the plot."""
    bound = part.filter(kind="bound")["flops_per_s"][0]
    ends = [(bound, f"bound {si(bound, 'FLOP/s')}", "strong")]
    estimate = part.filter(kind="estimate")
    if estimate.height:
        ends.append((estimate["flops_per_s"][-1], "estimate", "estimate-text"))
    heights, texts, styles = zip(*ends, strict=True)
    return pl.DataFrame(
        {
            **{name: [part[name][0]] * len(ends) for name in CASE},
            "flops_per_s": heights,
            "text": texts,
            "style": styles,
        }
    ).hstack(at_ends(MARGINS, plane, heights))


def _finding(part: pl.DataFrame, title: str | None) -> Finding:
    """Title and subtitle: what the median timing attains, and how many timings are drawn."""
    bound = part.filter(kind="bound").row(0, named=True)
    drawn = part.filter(kind="timing")
    hollow = (
        ", hollow where the operands fit the last-level cache" if drawn["in_cache"].any() else ""
    )
    line = part.filter(kind="estimate")
    band = ", with their p10 to p90" if line["low"].count() else ""
    estimate = f" Line: envelope of the estimates{band}." if line.height else ""
    dots = dots_text(drawn.height, bound["timings"])
    share = significant(100 * bound["share"])
    stated = f"The median {bound['dtypes']} timing attains {share} % of the bound"
    subtitle = f"{named(bound)}, {bound['software']}. {dots}{hollow}.{estimate}"
    rows = {name: [bound[name]] for name in CASE}
    found = claim("median", "share", rows, bound["share"])
    return Finding(stated, subtitle, found).titled(title)


CHART = MeasuredChart(
    name="measured-roofline",
    family="measured",
    heading="Timings beside the model",
    caption=(
        "What timed matmuls attain over their arithmetic intensity, under the bound of the chip's "
        "nominal rates and around the estimate of its calibration. Hollow dots: the operands fit "
        "the last-level cache."
    ),
    order=200,
    needs=(MATMULS,),
    most=8,
    most_chips=9,
    frame=lambda of, spec: measured_roofline_frame(
        of, added=spec.added, added_dtypes=spec.added_dtypes
    ),
    draw=lambda frame, spec: measured_roofline(
        frame, first=first_case(frame, spec.added, spec.added_dtypes), title=spec.title
    ),
)
