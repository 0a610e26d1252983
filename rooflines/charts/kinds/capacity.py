"""What fits: weights and caches on a chip against its memory, a bar for each batch.

All numbers are bytes and counts of sequences. None is a time or depends on a rate, so a calibration
changes none of them.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import alt, pl
from rooflines.basics.text import count
from rooflines.charts.chart import ModelChart, Need
from rooflines.charts.claims import Finding, claim
from rooflines.charts.comparing import at_right_edge
from rooflines.charts.frames import first_shown
from rooflines.charts.kit.drawing import (
    Choice,
    assemble,
    binary_axis,
    chip_scale,
    chosen,
    data,
    haloed,
    starting,
)
from rooflines.charts.kit.text import chip_label, on_chips
from rooflines.charts.kit.themes import Margins
from rooflines.charts.needs import KNOWN_CAPACITY, NO_REQUESTS, check_needs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.charts.chart import Spec
    from rooflines.charts.results import ModelSelection

__all__ = ["capacity", "capacity_frame"]

MARGINS = Margins(left=4.6, right=9.5)

TOP = 1.35
"""The top of the plot, as a multiple of the memory, or of the weights if those are more [1]."""

LOWEST_LABEL = 0.1
"""Least height of the memory's label: below it is that of the weights [1]."""

BAR = 0.7
"""Width of a bar, as a share of the distance to the next [1]."""

LEFT_PART = 0.3
"""Share of the plot's width in which labels lie after their line, not before it [1]."""

GB = 1e9
DIGITS = 4
"""Significant digits of the bars [1]."""

KEYS = ("model", "chip", "vendor", "dtypes", "S", "split", "chips")

CASE = ("chip", "model", "dtypes", "S", "split")
"""What a reader chooses."""

FOOTPRINT = ("weights_footprint_bytes", "cache_footprint_bytes", "footprint_bytes")
READ = (*FOOTPRINT, "fits", "max_B")

BATCH = ("B", "fits", "caches")
"""Columns of a bar; the others are those of a case."""


def capacity_frame(
    of: ModelSelection, models: Sequence[str] = (), contexts: Sequence[int] = ()
) -> pl.DataFrame:
    """What weights and caches take of the memory of a chip.

    Args:
        of: The chips and dtypes, from `Results.of_models`.
        models: Some of the sweep's models; all by default.
        contexts: Some of its contexts S [1]; all by default.

    Returns:
        `model`, `chip`, `vendor`, `dtypes`, `S` [1], `split`, `chips` [1], `B` [1],
        `weights_footprint_bytes`, `cache_footprint_bytes`, `footprint_bytes`, `capacity_bytes`
        [byte], all of one chip, `fits`, and `max_B` [1].
    """
    check_needs(CHART, of.sweep, "model-sweeps")
    levels = [
        (chip, memory, float(level.capacity_bytes))
        for chip in of.chips
        for memory, level in of.sweep.chips[chip].memory.items()
        if level.capacity_bytes is not None
    ]
    schema = {"chip": pl.String, "memory": pl.String, "capacity_bytes": pl.Float64}
    rows = of.rows(models, contexts).unique([*KEYS, "B"], keep="first", maintain_order=True)
    return (
        rows.join(
            pl.LazyFrame(levels, schema=schema, orient="row"),
            on=["chip", "memory"],
            maintain_order="left",
        )
        .select(*KEYS, "B", *FOOTPRINT, "capacity_bytes", "fits", "max_B")
        .collect()
    )


def capacity(
    frame: pl.DataFrame,
    *,
    first: Mapping[str, Any] | None = None,
    title: str | None = None,
) -> alt.LayerChart:
    """Weights and caches on a chip, stacked, over the batch; a line is the memory of the chip.

    Args:
        frame: From `capacity_frame`: bytes of one chip.
        first: The initial choices by parameter; those of the first row by default.
        title: Replaces the finding.

    Returns:
        A chart with the parameters `chip`, `model`, `dtypes`, `S` and `split`.
    """
    titles = {"model": "Model", "S": "Context", "split": "Split"}
    choices = [
        Choice(name, frame[name].unique(maintain_order=True).to_list(), titles.get(name, ""))
        for name in CASE
    ]
    batches = sorted(frame["B"].unique())
    step = min((after / before for before, after in pairwise(batches)), default=2.0)
    span = batches[0] / step**0.5, batches[-1] * step**0.5
    cases = _cases(frame)
    findings = {
        "|".join(str(row[name]) for name in CASE): _finding(row, title) for row in cases.to_dicts()
    }
    highest = (TOP * cases.select(pl.max_horizontal("memory", "weights")).to_series()).to_list()
    tops = dict(zip(findings, highest, strict=True))
    key = " + '|' + ".join(CASE)
    start = dict(zip(CASE, frame.select(CASE).row(0), strict=True))
    share = BAR * math.log(step) / math.log(span[1] / span[0])
    return assemble(
        _layers(cases, span, share, chip_scale(frame)),
        findings,
        starting(choices, {**start, **(first or {})}),
        MARGINS,
        [alt.param(name="tops", value=tops), alt.param(name="top", expr=f"tops[{key}] || 1")],
    )


def _cases(frame: pl.DataFrame) -> pl.DataFrame:
    """A row for each case [GB], with its batches as lists: a tenth of the bytes."""
    return frame.group_by(*CASE, "chips", "max_B", maintain_order=True).agg(
        "B",
        pl.col("fits").cast(pl.Int64),
        caches=(pl.col("cache_footprint_bytes") / GB).round_sig_figs(DIGITS),
        weights=pl.col("weights_footprint_bytes").first() / GB,
        memory=pl.col("capacity_bytes").first() / GB,
    )


def _layers(
    cases: pl.DataFrame, span: tuple[float, float], share: float, colors: alt.Scale
) -> list[alt.Chart]:
    """Stacked bars, the memory of the chip, and the largest batch that fits."""
    x = alt.X("B:Q", **binary_axis(*span, "B (sequences)"))
    axis = alt.Axis(labelExpr="format(datum.value, ',~g')", title="GB on a chip", tickCount=5)
    scale = alt.Scale(domainMin=0, domainMax=alt.expr("top"), nice=False)
    up: dict[str, Any] = {"axis": axis, "scale": scale}
    tooltip = [
        *(alt.Tooltip(f"{name}:N") for name in ("chip", "model", "dtypes", "split")),
        *(alt.Tooltip(f"{name}:Q", format=",d") for name in ("S", "B")),
        *(
            alt.Tooltip(f"{name}:Q", title=f"{name}, GB", format=",.4~g")
            for name in ("weights", "caches", "both", "memory")
        ),
        alt.Tooltip("fits:N"),
        alt.Tooltip("max_B:Q", title="largest B that fits", format=",d"),
    ]
    one = alt.Chart(data(cases)).transform_filter(chosen(*CASE))
    bars = one.transform_flatten(list(BATCH)).transform_calculate(
        both="datum.weights + datum.caches", fits="datum.fits == 1"
    )
    bars = bars.encode(x=x, tooltip=tooltip)
    color = alt.Color("chip:N", legend=None, scale=colors)
    wide: dict[str, Any] = {
        "strokeWidth": alt.expr(f"width * {share:.5f}"),
        "strokeDash": [],
        "clip": True,
    }
    weights = {"y": alt.Y("weights:Q", **up), "y2": alt.datum(0)}
    caches = {"y": alt.Y("both:Q", **up), "y2": alt.Y2("weights:Q")}
    fitting, others = bars.transform_filter("datum.fits"), bars.transform_filter("!datum.fits")
    return [
        others.mark_rule(style="context", **wide).encode(**weights),
        others.mark_rule(style="never", **wide).encode(**caches),
        fitting.mark_rule(**wide).encode(**weights, color=color),
        fitting.mark_rule(opacity=0.45, **wide).encode(**caches, color=color),
        one.mark_rule(style="roof", strokeDash=[]).encode(y=alt.Y("memory:Q", **up)),
        *_labels(one, span, up),
    ]


def _labels(one: alt.Chart, span: tuple[float, float], up: Mapping[str, Any]) -> list[alt.Chart]:
    """The memory and the weights right of the plot, and the largest batch that fits in it."""
    low, high = span
    late = f"datum.max_B > {low * (high / low) ** LEFT_PART}"
    beside: dict[str, Any] = {
        "style": "label",
        "align": "left",
        "clip": False,
        "dx": alt.expr("em * 0.6"),
    }
    named = one.transform_calculate(
        memory_text="'memory ' + format(datum.memory, ',.3~g') + ' GB'",
        weights_text="'weights ' + format(datum.weights, ',.3~g') + ' GB'",
        most_text="'largest B = ' + format(datum.max_B, ',d')",
        label=f"max(datum.memory, top * {LOWEST_LABEL})",
        foot="0",
    )
    most = named.transform_filter(f"datum.max_B >= {low} && datum.max_B <= {high}")
    return [
        named.mark_text(**beside).encode(
            x=at_right_edge(), y=alt.Y("label:Q", **up), text=alt.Text("memory_text:N")
        ),
        named.mark_text(**beside, dy=alt.expr("em * -0.8")).encode(
            x=at_right_edge(), y=alt.Y("foot:Q", **up), text=alt.Text("weights_text:N")
        ),
        most.mark_rule(style="rule").encode(x=alt.X("max_B:Q")),
        *haloed(
            most.encode(x=alt.X("max_B:Q"), text=alt.Text("most_text:N")),
            "strong",
            align=alt.expr(f"{late} ? 'right' : 'left'"),
            dx=alt.expr(f"em * ({late} ? -0.5 : 0.5)"),
            y=alt.expr("em"),
        ),
    ]


def _finding(case: Mapping[str, Any], title: str | None) -> Finding:
    """Title and subtitle: the largest batch that fits."""
    model, context = chip_label(case["model"]), f"S = {case['S']:,}"
    on = on_chips(case["chip"], [case["chips"]])
    subtitle = (
        f"{model} in {case['dtypes']}, {case['split']}: weights and, above them, caches"
        " on a chip; grey: does not fit. Activations are left out."
    )
    if title:
        return Finding(title, subtitle)
    rows = {name: [case[name]] for name in CASE}
    if case["weights"] > case["memory"]:
        found = claim("value", "weights_fit", rows, value=False)
        return Finding(f"The weights do not fit on {on}", subtitle, found)
    found = claim("value", "max_B", rows, case["max_B"])
    if not case["max_B"]:
        return Finding(f"No cache of {context} fits beside the weights on {on}", subtitle, found)
    return Finding(f"Up to B = {count(case['max_B'])} fits on {on} at {context}", subtitle, found)


def _first(frame: pl.DataFrame, spec: Spec) -> dict[str, Any]:
    """The initial choices: the fewest chips that hold the first model and a batch."""
    rows = frame.filter(**first_shown(frame, spec, "chip", "dtypes"))
    rows = rows.filter(model=rows["model"][0], S=rows["S"][0]).sort("chips", maintain_order=True)
    fitting = rows.filter("fits")
    return dict(zip(CASE, (fitting if fitting.height else rows).select(CASE).row(0), strict=True))


CHART = ModelChart(
    name="capacity",
    family="models",
    caption=(
        "Weights and caches on one chip over the number of sequences, against the memory of the "
        "chip. Activations are left out."
    ),
    order=140,
    needs=(
        NO_REQUESTS,
        KNOWN_CAPACITY,
        Need("several batches", lambda s: len(s.batches) > 1, auto=True),
    ),
    reads=READ,
    most_chips=5,
    most_dtypes=2,
    frame=lambda of, spec: capacity_frame(of, spec.models, spec.sizes),
    draw=lambda frame, _, spec: capacity(frame, first=_first(frame, spec), title=spec.title),
)
