"""Errors of the bound and of the estimate over B and D times F."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import alt, pl
from rooflines.basics.text import counted, significant
from rooflines.charts.cells import DARK_FROM
from rooflines.charts.chart import MeasuredChart
from rooflines.charts.claims import Finding, claim
from rooflines.charts.frames import highest, span_of
from rooflines.charts.kit.drawing import BINARY_LABEL, Choice, assemble, chosen, data
from rooflines.charts.kit.themes import Margins
from rooflines.charts.measured import CASE, case_choices, first_case, named
from rooflines.charts.needs import MATMULS
from rooflines.charts.planes import case_planes, plane_axis

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.charts.measured_results import MeasuredSelection

__all__ = ["measured_errors", "measured_errors_frame"]

MARGINS = Margins(left=4.8, right=8.6)

OF = {"bound": "bare", "estimate": "error"}
"""The column of each error in `fits.judge`."""

STEP = 4.0
"""The factor from one edge of a cell to the next, two doublings [1]."""

COLOURED = (0.02, 0.64)
"""Errors between which the colour changes [1]."""

PRODUCT_LABEL = (
    "datum.value >= 1073741824 ? format(datum.value / 1073741824, ',~f') + 'G' : "
    "datum.value >= 1048576 ? format(datum.value / 1048576, ',~f') + 'M' : "
    f"{BINARY_LABEL}"
)

LEAST = 1e-6
"""The error that smaller ones are drawn as: the scale of colours is logarithmic [1]."""

EDGES = ("x_low", "x_high", "y_low", "y_high")


def measured_errors_frame(of: MeasuredSelection) -> pl.DataFrame:
    """Median errors of the bound and of the estimate, in cells of B and D times F.

    Args:
        of: The chips and combinations, from `Results.of_measured`.

    Returns:
        `chip`, `software`, `dtypes`, `of` (`estimate` or `bound`), and rows of two kinds with the
        median of abs(predicted / measured - 1), `error` [1], of a number of `timings` [1]. `all`:
        of all. `cell`: of those in a cell, from `x_low` to `x_high` (B) and from `y_low` to
        `y_high` (D times F) [1]; the upper edges are not in it.
    """
    from rooflines.fits.judge import with_errors  # noqa: PLC0415, it imports polars

    frames = []
    for case, part in of.cases():
        edges = {**_edges("x", pl.col("B")), **_edges("y", pl.col("D") * pl.col("F"))}
        judged = with_errors(part).with_columns(**edges)
        for name, column in reversed(OF.items()):
            known = judged.drop_nulls(column)
            if known.is_empty():
                continue
            numbers = {"error": pl.col(column).median(), "timings": pl.len()}
            keys = {key: pl.lit(value) for key, value in {**case, "of": name}.items()}
            cells = known.group_by(EDGES).agg(**numbers).sort(EDGES)
            every = known.select(**numbers)
            frames += [
                every.with_columns(**keys, kind=pl.lit("all")),
                cells.with_columns(**keys, kind=pl.lit("cell")),
            ]
    columns = (*CASE, "of", "kind", *EDGES, "error", "timings")
    return pl.concat(frames, how="diagonal").select(*columns)


def _edges(axis: str, size: pl.Expr) -> dict[str, pl.Expr]:
    """The edges of the cell that a size is in."""
    doublings = 63 - size.cast(pl.Int64).bitwise_leading_zeros().cast(pl.Int64)
    low = pl.lit(STEP) ** (doublings // 2)
    return {f"{axis}_low": low, f"{axis}_high": low * STEP}


def measured_errors(
    frame: pl.DataFrame, *, first: Mapping[str, Any] | None = None, title: str | None = None
) -> alt.LayerChart:
    """Errors of the bound and of the estimate at timings, over B and D times F.

    Args:
        frame: From `measured_errors_frame`.
        first: The initial choices by parameter; the first of the frame by default.
        title: Replaces the finding.

    Returns:
        A chart with the parameters `chip`, `software`, `dtypes` and `of`.
    """
    by = (*CASE, "of")
    findings, planes = {}, {}
    for case, part in frame.group_by(by, maintain_order=True):
        key = "|".join(map(str, case))
        findings[key], planes[key] = _finding(part, title), _plane(part)
    of = Choice("of", frame["of"].unique(maintain_order=True).to_list(), "Error of")
    return assemble(
        _layers(frame.filter(kind="cell")),
        findings,
        case_choices(frame, first, of),
        MARGINS,
        case_planes(planes, by),
    )


def _plane(part: pl.DataFrame) -> dict[str, Sequence[float]]:
    """The axes of a case, as `planes.ticked` gives them: ticks are the edges of cells."""
    left, right, bottom, top = span_of(part)
    across, up = _edges_between(left, right), _edges_between(bottom, top)
    return {"x": (left, right), "y": (bottom, top), "across": across, "up": up}


def _edges_between(low: float, high: float) -> list[float]:
    """The edges of all cells from one edge to another."""
    cells = round(math.log(high / low, STEP))
    return [low * STEP**i for i in range(cells + 1)]


def _layers(cells: pl.DataFrame) -> list[alt.Chart]:
    """The cells in colours of their errors, with numbers."""
    axis = partial(plane_axis, bare=True)
    position: dict[str, Any] = {
        "x": alt.X("x_low:Q", **axis("x", "B", BINARY_LABEL)),
        "x2": alt.X2("x_high:Q"),
        "y": alt.Y("y_low:Q", **axis("y", "D × F", PRODUCT_LABEL)),
        "y2": alt.Y2("y_high:Q"),
    }
    numbers = data(
        cells.select(
            *CASE,
            "of",
            *EDGES,
            "timings",
            pl.col("error").clip(LEAST).round_sig_figs(3),
            middle_x=(pl.col("x_low") * pl.col("x_high")).sqrt(),
            middle_y=(pl.col("y_low") * pl.col("y_high")).sqrt(),
        )
    )
    base = alt.Chart(numbers).transform_filter(chosen(*CASE, "of"))
    low, high = COLOURED
    cut = f"{low * (high / low) ** DARK_FROM:.6g}"
    styles = {"cell-low": f"datum.error < {cut}", "cell-high": f"datum.error >= {cut}"}
    tooltip = [
        alt.Tooltip("x_low:Q", title="B from", format=",d"),
        alt.Tooltip("y_low:Q", title="D × F from", format=",d"),
        alt.Tooltip("error:Q", title="median error", format=".3~p"),
        alt.Tooltip("timings:Q", format=",d"),
    ]
    middle = {"x": alt.X("middle_x:Q"), "y": alt.Y("middle_y:Q")}
    text = "datum.error < 0.0995 ? format(datum.error, '.1%') : format(datum.error, '.0%')"
    return [
        base.mark_rect(style="cell").encode(**position, tooltip=tooltip, color=_color()),
        *(
            base.transform_filter(shade)
            .transform_calculate(text=text)
            .mark_text(style=style)
            .encode(**middle, text=alt.Text("text:N"))
            for style, shade in styles.items()
        ),
    ]


def _color() -> alt.Color:
    """The colour of an error: the same in every case."""
    low, high = COLOURED
    values = [low * 2**i for i in range(round(math.log2(high / low)) + 1)]
    label = (
        f"(datum.value <= {low} ? '≤ ' : datum.value >= {high} ? '≥ ' : '') "
        "+ format(datum.value, '.0%')"
    )
    legend = alt.Legend(
        title="Median error",
        values=values,
        labelExpr=label,
        gradientLength=alt.expr("height * 0.72"),
    )
    scale = alt.Scale(type="log", domain=[low, high], clamp=True, range="heatmap", nice=False)
    return alt.Color("error:Q", scale=scale, legend=legend)


def _finding(part: pl.DataFrame, title: str | None) -> Finding:
    """Title and subtitle: the median error of all timings, and the largest of a cell."""
    every = part.filter(kind="all").row(0, named=True)
    largest = highest(part.filter(kind="cell"), "error")
    worst = significant(100 * largest)
    error = significant(100 * every["error"])
    subtitle = (
        f"{named(every)}, {every['software']}: median of |{every['of']} / measured - 1| of "
        f"{counted(every['timings'], 'timing')}, and by cell."
    )
    rows = {name: [every[name]] for name in CASE}
    found = claim("median", "error", rows, [every["error"], largest], where=every["of"])
    stated = f"Median error of the {every['of']}: {error} %, worst cell {worst} %"
    return Finding(stated, subtitle, found).titled(title)


CHART = MeasuredChart(
    name="measured-errors",
    family="measured",
    caption=(
        "How far the bound and the estimate are from timed matmuls, by B and D times F: the median "
        "of abs(predicted / measured - 1) in each cell. Cells without timings are empty."
    ),
    order=220,
    needs=(MATMULS,),
    most=8,
    most_chips=9,
    frame=lambda of, _: measured_errors_frame(of),
    draw=lambda frame, spec: measured_errors(
        frame, first=first_case(frame, spec.added, spec.added_dtypes, "of"), title=spec.title
    ),
)
