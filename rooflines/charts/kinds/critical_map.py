"""Contours of the critical batch over D and F, with published shapes at their places."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from rooflines.basics.lazy import alt, pl
from rooflines.charts.basis import CALIBRATED, basis_choice, basis_names, basis_text
from rooflines.charts.cells import size_axes
from rooflines.charts.chart import Chart, Need
from rooflines.charts.claims import Finding, claim, ends, solved
from rooflines.charts.contour_rows import cases_of
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
from rooflines.charts.kinds.critical_labels import Span, labels
from rooflines.charts.kit.drawing import Choice, assemble, chosen, starting, zoom
from rooflines.charts.kit.text import chip_label, on_chips, sizes_text, split_text
from rooflines.charts.kit.themes import Margins
from rooflines.charts.needs import BOTH_FREE, SOLVED_LEAD, need
from rooflines.charts.offers import sizes_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.charts.claims import Plain
    from rooflines.charts.contour_rows import Case, Line
    from rooflines.charts.results import Selection

__all__ = ["contour_frame", "critical_map"]

Number = TypeVar("Number", float, "alt.OperatorMixin")

MARGINS = Margins(left=4.2, right=6.2)

ENDS = ("D_end", "F_end", "D_limit", "F_limit")
"""Columns of arcs alone."""

COLUMNS = (
    *("chip", "dtypes", "basis", *SPLIT),
    *("kind", "level", "D", "F", "name", *SHARES, *ENDS),
)
"""Columns of arcs and shapes."""

DIGITS = 9
"""Significant digits of arcs: a picture shows fewer, at any zoom [1]."""

STEPS = 48
"""Straight pieces that an arc is drawn with: within half a pixel of it, also on a slide [1]."""


def contour_frame(of: Selection, shapes: Sequence[Mapping[str, Any]] = ()) -> pl.DataFrame:
    """Lines of equal critical batch of a matmul over D and F, as arcs, and named shapes.

    A line is where the model's threshold of B equals a batch: an arc of a hyperbola, several where
    one resource takes the place of another. Along an arc (D - D_limit) (F - F_limit) is constant.
    Of a calibrated chip there are lines of both, nominal and calibrated.

    Args:
        of: The chips and combinations, from `Results.of`, of a sweep of a matmul without tiles.
        shapes: Mappings with `name`, `D` and `F`.

    Returns:
        `chip`, `dtypes`, `basis` (`nominal` or `calibrated`), `sharding`, `network` and `shards`,
        `kind` (`level`, `never`, `share` for lines of a smaller share of the peak, or `shape`),
        `level` [1] (the critical batch of the line or the shape; null: never), `D`, `F` [1] (of an
        arc its upper left end), `name`, of lines and shapes the `share` [1], of a shape also `near`
        and `reached`, as `share_values` has them. Of arcs `D_end` and `F_end`, the lower right end,
        and the asymptotes `D_limit` and `F_limit` (null: the arc is straight, horizontal or
        vertical) [1], to nine digits, and `rank`: the place of its level, the highest first [1].
        `calibrated`: whether `basis` is, and the map's edges: `left` and `right` (D), `bottom` and
        `top` (F) [1].
    """
    from rooflines.charts.contours import (  # noqa: PLC0415, it imports polars
        contours_of,
    )
    from rooflines.critical.plane import Window  # noqa: PLC0415, as above

    need(CHART, of.sweep)
    sizes = {dim: sizes_of(of.sweep, dim) for dim in of.dims}
    window = Window(sizes["D"][0], sizes["D"][-1] * 2, sizes["F"][0], sizes["F"][-1] * 4)
    inside = [
        shape
        for shape in shapes
        if window.left <= shape["D"] <= window.right and window.bottom <= shape["F"] <= window.top
    ]
    records: list[dict[str, Any]] = []
    for (chip_rows, variant), contours in contours_of(of):
        key: dict[str, Any] = {
            "chip": chip_rows.chip,
            "dtypes": variant.dtypes,
            "basis": contours.basis,
            "sharding": variant.sharding,
            "network": route_name(chip_rows, variant),
            "shards": variant.shards,
        }
        records += [{**key, **line._asdict()} for line in contours.lines(window)]
        for shape in inside:
            at = shape["D"], shape["F"]
            found = {"kind": "shape", "level": contours.batch(*at)}
            records.append({**key, **shape, **found, **contours.shares(*at)._asdict()})
    edges = {name: pl.lit(float(at)) for name, at in window._asdict().items()}
    return _typed(records).with_columns(calibrated=pl.col("basis") == CALIBRATED, **edges)


def _typed(records: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Arcs and shapes in their columns, arcs in `DIGITS`, and `rank`."""
    texts = ("chip", "dtypes", "basis", "sharding", "network", "kind", "name", "near")
    whole = ("shards", "reached")
    floats = ("level", "D", "F", "share", *ENDS)
    schema = {
        **dict.fromkeys(texts, pl.String),
        **dict.fromkeys(whole, pl.Int64),
        **dict.fromkeys(floats, pl.Float64),
    }
    frame = pl.DataFrame(records, schema={name: schema[name] for name in COLUMNS}, orient="row")
    is_arc = pl.col("kind") != "shape"
    points, level = pl.col("D", "F", *ENDS), pl.when(is_arc).then("level")
    return frame.with_columns(
        pl.when(is_arc).then(points.round_sig_figs(DIGITS)).otherwise(points),
        rank=level.rank("dense", descending=True).over("chip", "dtypes", "basis").cast(pl.Int64),
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
    names = ["chip", "dtypes", *basis_names(frame)]
    cases = cases_of(frame, names)
    findings = {"|".join(key): _finding(case, title) for key, case in cases.items()}
    borders = [
        [point for line in case.lines if line.kind == "never" for point in _points(line)]
        for case in cases.values()
    ]
    choices = [Choice("chip", chips), Choice("dtypes", combinations), *basis_choice(frame)]
    return assemble(
        [*_marks(frame, span, names), *labels(cases, borders, names, span, MARGINS)],
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
    most = int(highest(frame, "rank"))
    color = alt.Color(
        "rank:Q", legend=None, scale=alt.Scale(domain=[most + 1.2, 1], range="heatmap", nice=False)
    )
    # All marks have the frame itself, so that the site has its rows once.
    rows = alt.Chart(frame).transform_filter(now)

    def points(which: str) -> alt.Chart:
        return (
            rows.transform_filter(which)
            .transform_calculate(step=f"sequence({STEPS + 1})")
            .transform_flatten(["step"])
            .transform_calculate(D=_drawn("D"), F=_drawn("F"))
        )

    bands = points("datum.kind == 'level' || datum.kind == 'never'")
    # Arcs on the lower edge close bands; no contour runs there.
    lines, dashed = (
        points(f"datum.kind == '{kind}' && datum.F > datum.bottom") for kind in ("level", "share")
    )
    shapes = rows.transform_filter("datum.kind == 'shape'")
    tooltip = [
        "name:N",
        alt.Tooltip("D:Q", format=",d"),
        alt.Tooltip("F:Q", format=",d"),
        alt.Tooltip("level:Q", title="critical B", format=",.1f"),
        *share_tooltip(frame.filter(kind="shape")),
    ]
    at_level = alt.Tooltip("level:Q", title="critical B", format=",d")
    at_share = alt.Tooltip("share:Q", title="for this share of the peak", format=".4~%")
    near = dashed.mark_line(style=["contour", "near"]).encode(
        x=x, y=y, detail=alt.Detail("level:N"), tooltip=[at_level, at_share]
    )
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
        lines.mark_line(style="contour")
        .encode(x=x, y=y, detail=alt.Detail("level:N"), tooltip=[at_level])
        .add_params(zoom("x", "y")),
        *([near] if "share" in frame["kind"] else []),
        shapes.mark_point(style="ink-dot", filled=True).encode(x=x, y=y, tooltip=tooltip),
    ]


def _along(start: Number, end: Number, limit: Number, share: Number) -> Number:
    """A coordinate of a point of an arc, as a number or as an expression.

    Distances from the limits, whose product is constant, are even on a logarithmic scale: points
    are densest where the arc bends.

    Args:
        start: The coordinate of the arc's first end.
        end: That of the other end.
        limit: The arc's limit.
        share: How far along the arc the point is, from 0 to 1 [1].
    """
    factor: Number = ((end - limit) / (start - limit)) ** share
    return limit + (start - limit) * factor


def _drawn(name: str) -> str:
    """The coordinate D or F of a point of an arc, as an expression of `step`, 0 to `STEPS`."""
    start, end, limit = (alt.datum[f"{name}{part}"] for part in ("", "_end", "_limit"))
    return str(_along(start, end, limit, alt.datum.step / STEPS))


def _points(line: Line, steps: int = 8) -> list[tuple[float, float]]:
    """Points of an arc, as D and F."""
    across = line.D, line.D_end, line.D_limit or 0.0
    up = line.F, line.F_end, line.F_limit or 0.0
    shares = [step / steps for step in range(steps + 1)]
    return [(_along(*across, share), _along(*up, share)) for share in shares]


def _finding(case: Case, title: str | None) -> Finding:
    """Title and subtitle: what the shapes need, or how many of them are never compute-bound."""
    shapes, shards = case.shapes, [case.shards]
    name = on_chips(case.chip, shards)
    split = split_text(case.sharding, shards, [case.network])
    share = next((line.share for line in case.lines if line.kind == "share"), None)
    dashed = f" Dashed: for {100 * share:g} % of the peak." if share else ""
    calibrated = pl.DataFrame({"chip": [case.chip], "calibrated": [case.calibrated]})
    reached = reached_text((shape.level, shape.reached, shape.share) for shape in shapes)
    subtitle = (
        f"Critical B of {case.dtypes} matmuls on {name} over D and F{split}, every byte "
        f"counted.{reached}{dashed}{basis_text(calibrated, case.basis)}"
    )
    if title or not shapes:
        return Finding(title or f"Where {name} turns compute-bound", subtitle)
    shown: dict[str, Sequence[Plain]] = {
        "chip": [case.chip],
        "dtypes": [case.dtypes],
        "sharding": [case.sharding],
        "shards": shards,
        **solved("B"),
    }
    at = [{"D": int(shape.D), "F": int(shape.F)} for shape in shapes]
    about = partial(claim, of="critical", rows=shown, basis=case.basis, at=at)
    needed = [math.ceil(shape.level) for shape in shapes if shape.level is not None]
    if len(needed) < len(shapes):
        never = len(shapes) - len(needed)
        title = f"{never:,} of the {len(shapes):,} shapes are never compute-bound on {name}"
        return Finding(title, subtitle, about("nulls", value=[never, len(shapes)]))
    which = (
        f"The {len(shapes):,} shapes shown need"
        if len(shapes) > 1
        else f"{chip_label(shapes[0].name)} needs"
    )
    found = about("range", value=ends(needed))
    title = f"{which} {sizes_text('B', needed)} on {name}"
    return Finding(title, subtitle, found, names=[shape.name for shape in shapes])


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
