"""Thresholds over the number of chips that share the work: from where on splitting does not pay."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import alt, pl
from rooflines.basics.text import count
from rooflines.charts.basis import (
    SIZES,
    basis_choice,
    basis_names,
    basis_text,
    by_basis,
    critical_views,
    with_both,
)
from rooflines.charts.chart import Chart, Need
from rooflines.charts.claims import Finding, claim, ends, held, over, solved
from rooflines.charts.comparing import EVERY, at_right_edge, highlight, larger, wider
from rooflines.charts.frames import (
    SHARES,
    SPLIT,
    at_largest,
    first_shown,
    highest,
    hollow_text,
    lowest,
    share_tooltip,
    with_shares,
)
from rooflines.charts.kinds.shards_scale import Scale
from rooflines.charts.kit.drawing import (
    SHORT_LABEL,
    Choice,
    assemble,
    binary_axis,
    chip_scale,
    chosen,
    data,
    lettered,
    placed_text,
    starting,
    ticks_between,
)
from rooflines.charts.kit.place import Place, Plane, end_places, placed
from rooflines.charts.kit.text import (
    chip_label,
    over_text,
    shorten,
    sizes_text,
    split_on,
)
from rooflines.charts.kit.themes import Margins
from rooflines.charts.needs import by_shards, need
from rooflines.charts.offers import SHORT_AXIS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.charts.chart import Spec
    from rooflines.charts.results import Selection

__all__ = ["critical_over_shards", "shards_frame"]

MARGINS = Margins(left=4.6, right=12.5)
NAME_ROOM = 11.6

BY_BASIS = ("critical", "y", "never", "near", "reached", "limit", "beneath")
"""Columns of the points that a calibration changes."""


def shards_frame(of: Selection, axis: str | None = None, shape: str | None = None) -> pl.DataFrame:
    """The critical size over the number of chips that share the work.

    Args:
        of: The chips and combinations, from `Results.of`, of a sweep with several numbers of
            shards.
        axis: The size solved for; the first that the thresholds have.
        shape: Which of its shapes; without shapes the largest sizes.

    Returns:
        `chip`, `vendor`, `dtypes`, `sharding`, `network`, `shards` [1], `critical` [1] (null:
        never), `critical_estimate` [1] (null: never, where `calibrated`), `limit`, and
        `most`: the largest number of chips that is still compute-bound at some size [1], null for
        none; `setting`: what is held fixed; `near`, `reached` and `share`, from `share_values`.
    """
    need(CHART, of.sweep, axis=axis, shape=shape)
    axis = axis or _solved_axis(of)
    fixed = [dim for dim in of.dims if dim != axis]
    rows = of.thresholds().filter(pl.col("axis") == axis)
    frame = at_largest((rows.filter(shape=shape) if shape else rows).collect(), fixed)
    frame = frame.filter(pl.col("shards") > 1) if 1 not in of.sweep.counts else frame
    vendors = {chip: of.sweep.chips[chip].vendor or "" for chip in of.by_chip}
    frame = frame.with_columns(
        vendor=pl.col("chip").replace_strict(vendors, default="", return_dtype=pl.String)
    )
    frame = with_shares(frame, of, axis, ["shape", *fixed])
    frame = frame.with_columns(calibrated=of.calibrated())
    kept = (
        "chip",
        "vendor",
        "dtypes",
        *SPLIT,
        "shape",
        *fixed,
        *SIZES,
        "limit",
        "setting",
        *SHARES,
    )
    frame = frame.select(kept)
    still = (
        frame.filter(pl.col("critical").is_not_null())
        .group_by("chip", "dtypes", "sharding")
        .agg(most=pl.col("shards").max())
    )
    return frame.join(still, on=["chip", "dtypes", "sharding"], how="left").sort(
        "sharding", "dtypes", "chip", "shards"
    )


def _solved_axis(of: Selection) -> str:
    """The first dimension that the sweep has thresholds of."""
    return next(name for name in of.sweep.solved if name in of.dims)


def critical_over_shards(
    frame: pl.DataFrame,
    *,
    size: str = "B",
    first: Mapping[str, Any] | None = None,
    title: str | None = None,
) -> alt.LayerChart:
    """The smallest compute-bound size over the number of chips; never is an area of its own.

    Args:
        frame: From `shards_frame`: `critical` [1] over `shards` [1].
        size: What is solved for.
        first: The initial choices by parameter; the first of the frame by default.
        title: Replaces the finding.

    Returns:
        A chart with the parameters `dtypes`, `sharding`, `chip` for the one to highlight, and
        `basis` where chips are calibrated.
    """
    chips, combinations, shardings = (
        frame[name].unique(maintain_order=True).to_list() for name in ("chip", "dtypes", "sharding")
    )
    span = lowest(frame, "shards") / 1.12, highest(frame, "shards") * 1.12
    lines, ends, bands, edges = [], [], [], {}
    findings: dict[str, Finding] = {}
    for (combination, split), case in frame.group_by("dtypes", "sharding", maintain_order=True):
        views = critical_views(case)
        scales = {basis: Scale(view) for basis, view in views.items()}
        located = {basis: scales[basis].located(view) for basis, view in views.items()}
        lines.append(with_both(located, BY_BASIS))
        for basis, view in located.items():
            scale = scales[basis]
            ends.append(_ends(view, scale).with_columns(basis=pl.lit(basis)))
            choice = {"dtypes": combination, "sharding": split, "basis": basis}
            bands.append({**choice, "left": span[0], "right": span[1], **scale.band()})
            key = "|".join([str(combination), str(split), *([basis] if basis_names(frame) else [])])
            edges[key] = {
                "low": scale.low,
                "high": scale.high,
                "ticks": ticks_between(scale.low, scale.never),
            }
            finding = _finding(view, str(combination), str(split), (size, basis), title)
            findings |= {f"{chip}|{key}": finding for chip in (EVERY, *chips)}
    choices = [
        Choice("chip", [EVERY, *chips]),
        Choice("dtypes", combinations),
        Choice("sharding", shardings, "Split"),
        *basis_choice(frame),
    ]
    key = " + '|' + ".join(choice.name for choice in choices[1:])
    now = f"edges[{key}] || {{low: 1, high: 10, ticks: []}}"
    colors = chip_scale(frame)
    layers = _layers(pl.concat(lines), pl.DataFrame(bands), pl.concat(ends), (span, size), colors)
    parameters = [alt.param(name="edges", value=edges), alt.param(name="span", expr=now)]
    return assemble(layers, findings, starting(choices, first), MARGINS, parameters)


def _layers(
    placed: pl.DataFrame,
    bands: pl.DataFrame,
    ends: pl.DataFrame,
    axes: tuple[tuple[float, float], str],
    colors: alt.Scale,
) -> list[alt.Chart]:
    """The area of never, lines and points, crosses for never, and names at the ends of lines."""
    span, size = axes
    now = chosen("dtypes", "sharding")
    of_basis = chosen("dtypes", "sharding", *basis_names(placed))
    x = alt.X("shards:Q", **binary_axis(*span, "Chips that share the work"))
    axis = alt.Axis(
        values=alt.expr("span.ticks"), labelExpr=SHORT_LABEL, title=f"Smallest compute-bound {size}"
    )
    scale = alt.Scale(
        type="log", domainMin=alt.expr("span.low"), domainMax=alt.expr("span.high"), nice=False
    )
    y = alt.Y("y:Q", scale=scale, axis=axis)
    tooltip, color = _about(placed, size), alt.Color("chip:N", legend=None, scale=colors)
    base = alt.Chart(data(placed.drop("setting", "share"))).transform_filter(now)
    base = by_basis(base, placed, BY_BASIS)
    encoding = {"x": x, "y": y, "color": color, "opacity": highlight(), "tooltip": tooltip}
    ground = alt.Chart(data(bands)).transform_filter(f"{of_basis} && datum.high > datum.never")
    layers: list[alt.Chart] = [
        ground.mark_rect(style="never", opacity=0.55).encode(
            x=alt.X("left:Q"), x2=alt.X2("right:Q"), y=alt.Y("never:Q"), y2=alt.Y2("high:Q")
        ),
        ground.mark_text(
            style="note", align="right", x=0, dx=alt.expr("em * -0.45"), text="never", clip=False
        ).encode(y=alt.Y("middle:Q")),
    ]
    layers += [
        base.transform_filter("!datum.never")
        .mark_line(style="curve", strokeWidth=wider())
        .encode(**encoding, detail=alt.Detail("chip:N")),
        *([_hollow(base, colors, encoding)] if placed["reached"].count() else []),
        base.transform_filter("!datum.never")
        .mark_point(style="dot", filled=True, size=larger())
        .encode(**encoding),
        base.transform_filter("datum.never")
        .mark_point(style="dot", filled=True, shape="cross", size=alt.expr("em * em * 0.62"))
        .encode(**encoding),
        *placed_text(
            ends,
            "value",
            of_basis,
            halo=False,
            clip=False,
            x=at_right_edge(),
            y=alt.Y("y:Q"),
            fill=lettered(colors),
            opacity=highlight(),
        ),
    ]
    return layers


def _hollow(base: alt.Chart, colors: alt.Scale, encoding: Mapping[str, Any]) -> alt.Chart:
    """Hollow dots at the critical sizes for a smaller share of the peak."""
    others = {name: encoding[name] for name in ("x", "opacity", "tooltip")}
    stroke = alt.Stroke("chip:N", legend=None, scale=colors)
    drawn: alt.Chart = (
        base.transform_filter("datum.reached != null")
        .mark_point(style="hollow", filled=True)
        .encode(**others, y=alt.Y("reached:Q"), stroke=stroke)
    )
    return drawn


def _about(points: pl.DataFrame, size: str) -> list[Any]:
    """The tooltip of a point."""
    return [
        "chip:N",
        "link:N",
        alt.Tooltip("shards:Q", title="chips"),
        alt.Tooltip("critical:Q", title=f"critical {size}", format=",d"),
        *share_tooltip(points),
        "limit:N",
    ]


def _ends(case: pl.DataFrame, scale: Scale) -> pl.DataFrame:
    """The chips' names at the ends of their lines."""
    last = (
        case.sort("shards").group_by("chip", maintain_order=True).last().sort("y", descending=True)
    )
    plane = Plane((1, 2), (scale.low, scale.high))  # only heights are needed

    def places(plot: tuple[float, float]) -> list[Place | None]:
        return end_places([plane.at(plot, 2, y)[1] for y in last["y"]], plot[1])

    text = [
        shorten(
            f"{chip_label(row['chip'])}" + (f" · {row['link']}" if row["link"] else ""),
            NAME_ROOM,
            bold=True,
            tail=True,
        )
        for row in last.to_dicts()
    ]
    return last.select(
        "chip", "dtypes", "sharding", "y", text=pl.Series(text, dtype=pl.String)
    ).hstack(placed(MARGINS, places))


def _finding(
    case: pl.DataFrame,
    combination: str,
    split: str,
    axis: tuple[str, str],
    title: str | None,
) -> Finding:
    """Title and subtitle: what most chips need, or the chip that is never compute-bound first."""
    size, basis = axis
    setting = case["setting"][0]
    fixed = f"{over_text(case['network'])}{', ' + setting if setting else ''}"
    subtitle = f"{combination}, split {split}{fixed}. Every byte counted.{hollow_text(case)}"
    subtitle += basis_text(case, basis)
    if title:
        return Finding(title, subtitle)
    shown = over(case, "chip", "dtypes", "sharding", "shards") | solved(size) | held(case)
    about = partial(claim, of="critical", basis=basis)
    if case["never"].all():
        title = f"Split {split}: no {size} is enough on the chips shown"
        return Finding(title, subtitle, about("never", rows=shown, value=None))
    never = (
        case.group_by("chip", "shards", maintain_order=True)
        .agg(pl.col("never").all())
        .filter("never")
    )
    if never.height:
        by_chip = (
            never.group_by("chip", maintain_order=True)
            .agg("shards")
            .sort(pl.col("shards").list.len(), descending=True, maintain_order=True)
        )
        least = by_chip.row(0, named=True)
        title = f"{split_on(split, least['chip'], least['shards'])}: no {size} is enough"
        shown |= {"chip": [least["chip"]]}
        found = about("never", rows=shown, value=sorted(least["shards"]), by="shards")
        return Finding(title, subtitle, found)
    last = case.filter(pl.col("shards") == pl.col("shards").max())
    needed, most = last["critical"], last["shards"][0]
    chips = "1 chip needs" if most == 1 else f"{count(most)} chips need"
    by_type = ", by type" if needed.n_unique() > 1 else ""
    found = about("range", rows=shown | over(last, "chip", "shards"), value=ends(needed))
    at = f" at B = {case['B'][0]:,}" if "B" in case.columns else ""
    return Finding(f"{chips} {sizes_text(size, needed)}{at}{by_type}", subtitle, found)


def _draw(frame: pl.DataFrame, of: Selection, spec: Spec) -> alt.LayerChart:
    """The chart of a spec."""
    return critical_over_shards(
        frame,
        size=_solved_axis(of),
        first=first_shown(frame, spec, "dtypes", "sharding"),
        title=spec.title,
    )


CHART = Chart(
    name="shards",
    family="shards",
    heading="Splitting over chips",
    caption=(
        "The smallest compute-bound size over the number of chips, against memory and network. "
        "Crosses are never compute-bound, hollow dots are for a smaller share of the peak."
    ),
    order=60,
    needs=(
        Need(
            "`thresholds` of a dimension, with 1 among its `shares`",
            lambda s: any(axis in s.op.dims for axis in s.solved) and 1 in s.config.shares,
        ),
        Need("several numbers of chips in `shards`", lambda s: len(s.counts) > 1),
        Need(
            f"{SHORT_AXIS} numbers of chips in `shards`",
            lambda s: len(s.counts) >= SHORT_AXIS,
            auto=True,
        ),
    ),
    preferred=by_shards,
    fills=frozenset({"shape", "sharding"}),
    most=3,
    frame=lambda of, spec: shards_frame(of, _solved_axis(of), spec.shape),
    draw=_draw,
)
