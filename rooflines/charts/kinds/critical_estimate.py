"""The critical size by the nominal rates and by a calibration, side by side, chip by chip."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import alt, pl
from rooflines.basics.text import count, significant
from rooflines.charts.chart import Chart, Need
from rooflines.charts.claims import Finding, claim, ends, held, over, solved
from rooflines.charts.comparing import (
    CHIP_MARGIN,
    EVERY,
    added_parameters,
    chip_axis,
    compared_rows,
    evenly,
    heading,
    highlight,
    row_of,
    shown_of,
)
from rooflines.charts.frames import (
    SHARES,
    SPLIT,
    first_shown,
    highest,
    lowest,
    share_tooltip,
    unsharded,
    with_shares,
)
from rooflines.charts.kit.drawing import (
    SI_LABEL,
    Choice,
    assemble,
    chosen,
    log_scale,
    starting,
    ticks_between,
)
from rooflines.charts.kit.text import chip_label, named_sizes, sizes_text, split_text, width_em
from rooflines.charts.kit.themes import Margins
from rooflines.charts.needs import OTHER_DIMS, SOLVED_LEAD, check_shown, need
from rooflines.sweep.fits import fit_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.charts.results import Selection
    from rooflines.sweep.sweep import Sweep

__all__ = ["critical_estimate", "critical_estimate_frame"]

MARGINS = Margins(left=CHIP_MARGIN, right=9.6)

BY = ("dtypes", "sizes")
"""What a reader chooses."""

MOST_SIZES = 32
"""Sizes that a reader can choose from, of a sweep with more [1]."""

NUMBER_GAP = 1.0
"""Room between a point and its number, and between the number and the edge of the plot [em]."""

LEAST_SPAN = 4.0
"""The largest size of an axis over its smallest is at least this, without room for numbers [1]."""

NEVER = {
    (True, True): "never",
    (True, False): "nominal never",
    (False, True): "calibrated never",
}
"""What is said of a chip, by whether the nominal and the calibrated size are never."""


def calibrated(sweep: Sweep) -> set[tuple[str, str]]:
    """The chips of a sweep with the dtypes that they have a calibration for.

    Of several memory levels of a chip, that of the first counts, which charts show.
    """
    by_chip = {chip_rows.chip: chip_rows for chip_rows in reversed(sweep.by_chip)}
    return {
        (chip, variant.dtypes)
        for chip, chip_rows in by_chip.items()
        for variant in chip_rows.variants
        if fit_of(sweep, (chip_rows, variant))
    }


def critical_estimate_frame(of: Selection) -> pl.DataFrame:
    """Critical sizes of an operation's first dimension, nominal and calibrated.

    Args:
        of: The chips and combinations, from `Results.of`, of a sweep with thresholds of its first
            dimension; those without a calibration are left out.

    Returns:
        `chip`, `dtypes`, `sharding`, `network` and `shards`, `sizes` (the shape, or the sizes of
        the other dimensions; equal ones where the sweep has such), `critical` and
        `critical_estimate` [1] (null: never); `near`, `reached` and `share`, from `share_values`.

    Raises:
        RooflinesError: The sweep lacks something, or none of the chips has a calibration in one of
            the dtypes.
    """
    need(CHART, of.sweep)
    check_shown(CHART, of.sweep, of.chips, of.dtypes)
    pairs = sorted(calibrated(of.sweep))
    known = pl.DataFrame(pairs, schema={"chip": pl.String, "dtypes": pl.String}, orient="row")
    others = of.dims[1:]
    frame = unsharded(of).collect().join(known, on=["chip", "dtypes"], maintain_order="left")
    frame = with_shares(frame, of, of.dims[0], ("shape", *others))
    equal = frame.filter(pl.all_horizontal(pl.col(dim) == pl.col(others[0]) for dim in others))
    if frame["shape"].is_null().all() and equal.height:
        frame = equal
    names = [
        row["shape"] or named_sizes({dim: row[dim] for dim in others})
        for row in frame.select("shape", *others).to_dicts()
    ]
    frame = frame.with_columns(sizes=pl.Series(names, dtype=pl.String))
    kept = evenly(frame["sizes"].unique(maintain_order=True).to_list(), MOST_SIZES)
    columns = ("chip", "dtypes", *SPLIT, "shape", *others, "sizes")
    kept_rows = frame.filter(pl.col("sizes").is_in(kept))
    return kept_rows.select(*columns, "critical", "critical_estimate", *SHARES)


def critical_estimate(
    frame: pl.DataFrame,
    *,
    size: str = "B",
    first: Mapping[str, Any] | None = None,
    title: str | None = None,
    added: Sequence[str] = (),
) -> alt.LayerChart:
    """The critical batch at nominal rates and by the calibration, side by side for every chip.

    Args:
        frame: From `critical_estimate_frame`.
        size: What is solved for.
        first: The initial choices by parameter; the first of the frame by default.
        title: Replaces the finding.
        added: Chips that are shown below the others only where the reader chooses them.

    Returns:
        A chart with the parameters `dtypes` and `sizes`, and `chip` for the one to highlight where
        chips can be added.
    """
    is_added = pl.col("chip").is_in(added)
    every = frame.filter(~is_added)["chip"].unique(maintain_order=True).to_list()
    rows, findings, orders = [], {}, {}
    for (dtypes,), part in frame.group_by("dtypes", maintain_order=True):
        chips = (
            part.filter(~is_added)
            .group_by("chip", maintain_order=True)
            .agg(pl.col("critical").min())
            .sort("critical", nulls_last=True, maintain_order=True)["chip"]
            .to_list()
        )
        orders[str(dtypes)] = shown = evenly(chips)
        if shown:
            rows.append(part.filter(pl.col("chip").is_in(shown)).with_columns(row=row_of(shown)))
        for (sizes,), case in part.group_by("sizes", maintain_order=True):
            for chip, together in _together(case, shown, every, added).items():
                key = "|".join([*([chip] if added else []), str(dtypes), str(sizes)])
                findings[key] = _finding(together, size, title).adding(shown_of(shown, chips))
    choices = [Choice(name, frame[name].unique(maintain_order=True).to_list()) for name in BY]
    opened = (first or {}).get("dtypes", choices[0].options[0])
    choices[1].title = "Sizes"
    choices[1].value = _opened(frame.filter(~is_added, dtypes=opened), choices[1].options)
    if added:
        choices.insert(0, Choice("chip", [EVERY, *every, *added]))
        last = float(max(map(len, orders.values())))
        rows.append(frame.filter(is_added).with_columns(row=pl.lit(last)))
        rows = [each.with_columns(added=is_added) for each in rows]
    return assemble(
        [*_layers(pl.concat(rows), orders, size), *_heading(frame)],
        findings,
        starting(choices, first),
        MARGINS,
        [*_spans(frame), *added_parameters(added)],
    )


def _together(
    case: pl.DataFrame, shown: Sequence[str], every: Sequence[str], added: Sequence[str]
) -> dict[str, pl.DataFrame]:
    """The rows of the chips compared, if any, by the choices of these; and with each one added."""
    own = case.filter(pl.col("chip").is_in(shown))
    together = dict.fromkeys((EVERY, *every), own) if own.height else {}
    for one in case.filter(pl.col("chip").is_in(added)).iter_slices(1):
        together[one["chip"][0]] = pl.concat([own, one])
    return together if added else {EVERY: own}


def _opened(frame: pl.DataFrame, options: Sequence[str]) -> str:
    """The first of the sizes at which most chips have both numbers, or else a calibrated one."""
    estimated = pl.col("critical_estimate").is_not_null()
    found = frame.group_by("sizes").agg(
        both=(estimated & pl.col("critical").is_not_null()).sum(), estimated=estimated.sum()
    )
    counts = {sizes: tuple(numbers) for sizes, *numbers in found.iter_rows()}
    return max(options, key=lambda sizes: counts.get(sizes, (0, 0)))


def _spans(frame: pl.DataFrame) -> list[alt.Parameter]:
    """Parameters of the axis: its sizes by dtypes, those of the present, and room for numbers.

    `beyond` is the factor from the outermost sizes to the ends of the axis.
    """
    spans = {
        dtypes: _span(part) for (dtypes,), part in frame.group_by("dtypes", maintain_order=True)
    }
    room = "span.room * em"
    beyond = f"pow(span.high / span.low, {room} / max(width - 2 * {room}, width / 4))"
    return [
        alt.param(name="spans", value=spans),
        alt.param(name="span", expr="spans[dtypes] || {low: 1, high: 10, room: 0, ticks: []}"),
        alt.param(name="beyond", expr=beyond),
    ]


def _span(part: pl.DataFrame) -> dict[str, Any]:
    """The outermost sizes with ticks between, and the room of the widest number [em]."""
    numbers = pl.concat([part["critical"], part["critical_estimate"]]).drop_nulls().unique()
    sizes = pl.DataFrame({"size": pl.concat([numbers, part["reached"].drop_nulls()])})
    low, high = lowest(sizes, "size"), highest(sizes, "size")
    wider = max(math.sqrt(LEAST_SPAN * low / high), 1.0)
    low, high = low / wider, high * wider
    widest = max((width_em(count(number), bold=True) for number in numbers), default=0.0)
    ticks = ticks_between(low, high)
    return {"low": low, "high": high, "room": widest + NUMBER_GAP, "ticks": ticks}


def _base(rows: pl.DataFrame) -> alt.Chart:
    """The rows of one choice, with their texts and the dots that texts on the left stand beside."""
    texts = [
        {
            "nominal": None if nominal is None else count(nominal),
            "calibrated": None if calibrated is None else count(calibrated),
            "never": NEVER.get((nominal is None, calibrated is None)),
        }
        for nominal, calibrated in rows.select("critical", "critical_estimate").iter_rows()
    ]
    of_added = ["added"] if "added" in rows.columns else []
    shown = rows.select(
        "chip", *BY, "row", "critical", "critical_estimate", "reached", "near", *of_added
    ).hstack(
        pl.DataFrame(texts, schema=dict.fromkeys(("nominal", "calibrated", "never"), pl.String))
    )
    base = compared_rows(shown).transform_filter(chosen(*BY))
    if of_added:
        base = base.encode(opacity=highlight())
    with_hollow = "datum.reached == null ? datum.critical : min(datum.critical, datum.reached)"
    drawn: alt.Chart = base.transform_calculate(
        left_of_nominal=with_hollow, left_of_calibrated="datum.critical_estimate"
    )
    return drawn


def _layers(rows: pl.DataFrame, orders: Mapping[str, Sequence[str]], size: str) -> list[alt.Chart]:
    """The two points of every chip with their numbers, and what is never compute-bound."""
    axis = alt.Axis(
        values=alt.expr("span.ticks"),
        labelExpr=SI_LABEL,
        labelOverlap="greedy",
        labelSeparation=6,
        title=f"Smallest compute-bound {size}",
    )
    x: dict[str, Any] = {
        "scale": log_scale("span.low / beyond", "span.high * beyond"),
        "axis": axis,
    }
    y = alt.Y("row:Q", **chip_axis(orders, added="added" in rows.columns))
    base = _base(rows)
    found = "datum.critical != null && datum.critical_estimate != null"
    tooltip = [
        "chip:N",
        alt.Tooltip("critical:Q", title=f"nominal {size}", format=",d"),
        alt.Tooltip("critical_estimate:Q", title=f"calibrated {size}", format=",d"),
        *share_tooltip(rows),
    ]
    ends = {"x": alt.X("critical:Q", **x), "x2": alt.X2("critical_estimate:Q")}
    layers = [base.transform_filter(found).mark_rule(style="rule").encode(**ends, y=y)]
    if rows["reached"].count():
        hollow = base.transform_filter("datum.reached != null")
        hollow = hollow.mark_point(style=["hollow", "hollow-ink"], filled=True)
        layers.append(hollow.encode(x=alt.X("reached:Q", **x), y=y, tooltip=tooltip))
    less = "(datum.critical_estimate < datum.critical)"
    for column, text, dot, style, left in (
        ("critical", "nominal", "ink-dot", "strong", f"!{less}"),
        ("critical_estimate", "calibrated", "estimate-dot", "estimate-text", less),
    ):
        points = base.transform_filter(f"datum.{column} != null")
        at = alt.X(f"{column}:Q", **x)
        layers += [
            points.mark_point(style=dot, filled=True).encode(x=at, y=y, tooltip=tooltip),
            points.transform_calculate(beside=f"{left} ? datum.left_of_{text} : datum.{column}")
            .mark_text(
                style=style,
                align=alt.expr(f"{left} ? 'right' : 'left'"),
                dx=alt.expr(f"em * ({left} ? -0.6 : 0.6)"),
            )
            .encode(x=alt.X("beside:Q", **x), y=y, text=f"{text}:N"),
        ]
    never = base.transform_filter("datum.never != null").mark_text(
        style="note", align="left", clip=False, dx=alt.expr("em * 0.6")
    )
    return [*layers, never.encode(x=alt.value(alt.expr("width")), y=y, text=alt.Text("never:N"))]


def _heading(frame: pl.DataFrame) -> list[alt.Chart]:
    """The names of the kinds of points, where other charts have the title of their y axis."""
    share = frame.drop_nulls("reached")["share"]
    hollow = f"   ○ at {100 * share[0]:g} %" if len(share) else ""
    nominal = f"● nominal{hollow}"
    after = width_em(nominal, bold=True) + 1.0
    return [heading(nominal), heading("● calibrated", "estimate-text", after)]


def _finding(case: pl.DataFrame, size: str, title: str | None) -> Finding:
    """Title and subtitle: how many times the nominal size the calibrated one is."""
    shards = case["shards"].unique().to_list()
    split = split_text(str(case["sharding"][0]), shards, case["network"])
    on = f" on {max(shards):,} chips" if max(shards) > 1 else ""
    subtitle = (
        f"{case['dtypes'][0]} at {case['sizes'][0]}{on}{split}: from nominal rates, and from the "
        "calibration of each chip."
    )
    never = case["critical_estimate"].null_count()
    both = case.drop_nulls(["critical", "critical_estimate"])
    times = both["critical_estimate"] / both["critical"]
    if title:
        return Finding(title, subtitle)
    shown = over(case, "chip", "dtypes", "sharding", "shards") | solved(size) | held(case)
    about = partial(claim, of="critical_estimate", rows=shown)
    if never:
        if never == 1:
            (chip,) = case.filter(pl.col("critical_estimate").is_null())["chip"]
            found = about("never", value=[chip], by="chip")
            title = f"Calibrated, {chip_label(chip)} is never compute-bound"
            return Finding(title, subtitle, found)
        found = about("nulls", value=[never, case.height])
        title = f"Calibrated, {never} of {case.height} chips are never compute-bound"
        return Finding(title, subtitle, found)
    if not both.height:
        title = f"Calibrated {sizes_text(size, case['critical_estimate'])}; nominal never"
        return Finding(title, subtitle, about("range", value=ends(case["critical_estimate"])))
    least, most = ends(times)
    span = dict.fromkeys((significant(least), significant(most)))
    title = f"Calibrated, the critical {size} is {' to '.join(span)} × the nominal one"
    found = about("range", value=[least, most], to="critical")
    return Finding(title, subtitle, found)


CHART = Chart(
    name="critical-estimate",
    family="critical",
    caption=(
        "The smallest compute-bound size of every chip with a calibration: at the nominal rates, "
        "hollow for a smaller share of the peak, and by the calibration, whose times have "
        "overheads and parts that overlap imperfectly."
    ),
    order=45,
    needs=(
        SOLVED_LEAD,
        OTHER_DIMS,
        Need("sizes without tiles", lambda s: not s.tile),
        Need("a chip with a calibration", lambda s: bool(calibrated(s))),
    ),
    only=calibrated,
    most_chips=16,
    frame=lambda of, _: critical_estimate_frame(of),
    draw=lambda frame, of, spec: critical_estimate(
        frame,
        size=of.dims[0],
        first=first_shown(frame, spec, "dtypes"),
        title=spec.title,
        added=spec.added,
    ),
)
