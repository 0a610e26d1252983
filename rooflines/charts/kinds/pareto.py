"""Latency against throughput of decoding: batches and splits as points, a Pareto front a chip."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import alt, pl
from rooflines.basics.text import seconds, significant
from rooflines.charts.basis import BAND, NOMINAL, basis_choice, basis_names
from rooflines.charts.chart import ModelChart, Need
from rooflines.charts.claims import Finding, claim, over
from rooflines.charts.comparing import (
    EVERY,
    at_right_edge,
    highlight,
    larger,
    names_of,
    wider,
)
from rooflines.charts.frames import first_shown, highest, lowest
from rooflines.charts.kinds.pareto_fronts import (
    CASE,
    ESTIMATES,
    MS,
    RATE,
    TIME,
    hidden,
    views_of,
    with_front,
)
from rooflines.charts.kit.drawing import (
    SHORT_LABEL,
    Choice,
    assemble,
    chip_scale,
    chosen,
    data,
    haloed,
    lettered,
    log_scale,
    placed_text,
    starting,
)
from rooflines.charts.kit.ends import end_places
from rooflines.charts.kit.place import Place, Plane, placed
from rooflines.charts.kit.text import chip_label, with_value
from rooflines.charts.kit.themes import Margins
from rooflines.charts.needs import KNOWN_CAPACITY, NO_REQUESTS, check_needs
from rooflines.charts.planes import ticked
from rooflines.models.shape import DECODE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.charts.results import ModelSelection

__all__ = ["pareto", "pareto_frame"]

MARGINS = Margins(left=4.6, right=12.5)
NAME_ROOM = 11.6

TARGET_S = 0.02
"""The time per token that titles compare chips at: 50 tokens per second for every user [s]."""

ROOM = 1.3
"""The factor by which axes go beyond the values [1]."""

BEYOND = 3.0
"""The factor by which times of what does not fit may exceed those of what fits [1]."""

EQUAL_DIGITS = 12
"""Throughputs that agree to this many digits are a tie."""

KEYS = ("model", "routing", "chip", "vendor", "dtypes", "S", "split", "chips")

READ = (TIME, RATE, "fits", "max_B")

POINT = ("B", "ms", "rate", "state")
"""Columns of a point; the others are those of a chip and split."""

OUTSIDE, INSIDE, FRONT = 0, 1, 2
"""States of a point: it does not fit, it fits, it is on the front."""


def pareto_frame(
    of: ModelSelection, models: Sequence[str] = (), contexts: Sequence[int] = ()
) -> pl.DataFrame:
    """Time per output token and throughput of every batch and split.

    Args:
        of: The chips and dtypes, from `Results.of_models`, of a sweep with decode steps.
        models: Some of the sweep's models; all by default.
        contexts: Some of its contexts S [1]; all by default.

    Returns:
        `model`, `routing` (null for a dense model), `chip`, `vendor`, `dtypes`, `S` [1], `split`,
        `chips` [1], `B` [1], `t_lower_s` [s], `tokens_per_s_per_chip` [1/s], `fits`, `max_B`
        [1], and `front`: whether it fits, and no other case of the chip that fits is at
        least as fast with at least as much throughput; the first of equal ones. Where `calibrated`,
        `t_estimate_s` [s], `tokens_per_s_per_chip_estimate` [1/s] and `front_estimate`.
    """
    check_needs(CHART, of.sweep, "model-sweeps")
    routing = {
        name: None if model.shape.moe is None else of.sweep.config.routing
        for name, model in of.sweep.models.items()
    }
    rows = of.rows(models, contexts).filter(phase=DECODE)
    estimate = BAND[0]
    if estimate not in rows.collect_schema():
        rows = rows.with_columns(pl.lit(None, dtype=pl.Float64).alias(estimate))
    rows = rows.with_columns(
        (pl.col(RATE) * pl.col(TIME) / pl.col(estimate)).alias(ESTIMATES[RATE]),
        calibrated=pl.col(estimate).is_not_null(),
        routing=pl.col("model").replace_strict(routing, return_dtype=pl.String),
    )
    frame = rows.select(*KEYS, "B", *READ, estimate, ESTIMATES[RATE], "calibrated").collect()
    frame = with_front(frame, TIME, RATE, "front")
    return with_front(frame, estimate, ESTIMATES[RATE], ESTIMATES["front"])


def pareto(
    frame: pl.DataFrame,
    *,
    first: Mapping[str, Any] | None = None,
    title: str | None = None,
) -> alt.LayerChart:
    """Throughput per chip over the time per output token, with the Pareto front of every chip.

    Args:
        frame: From `pareto_frame`: times [s] and throughputs [1/s].
        first: The initial choices by parameter; the first of the frame by default.
        title: Replaces the finding.

    Returns:
        A chart with the parameters `model`, `dtypes`, `S`, `chip` for the one to highlight, and
        `basis` where chips are calibrated; then it has only these.
    """
    views = views_of(frame)
    by = (*CASE, *basis_names(frame))
    chips, models, combinations, contexts = (
        frame[name].unique(maintain_order=True).to_list() for name in ("chip", *CASE)
    )
    points, ends, spans = [], [], {}
    findings: dict[str, Finding] = {}
    for key, case in views.group_by(by, maintain_order=True):
        plane = _plane(case)
        under = hidden(case, plane)
        points.append(case.join(under, on="chip", how="left", maintain_order="left"))
        ends.append(_ends(case, plane))
        name = "|".join(map(str, key))
        spans[name] = _span(plane)
        of_case = frame.filter(**dict(zip(CASE, key[: len(CASE)], strict=True)))
        lacking = {*of_case["chip"].unique()} - {*case["chip"].unique()}
        without = [chip for chip in chips if chip in lacking]
        finding = _finding(case, title, without)
        findings |= {f"{chip}|{name}": finding for chip in (EVERY, *chips) if chip not in without}
    now = " + '|' + ".join(by)
    empty = "{x: [1, 10], y: [1, 10], across: [], up: [], target: null, late: false}"
    choices = [
        Choice("chip", [EVERY, *chips]),
        Choice("model", models, "Model"),
        Choice("dtypes", combinations),
        Choice("S", contexts, "Context"),
        *basis_choice(frame),
    ]
    return assemble(
        _layers(pl.concat(points), pl.concat(ends), by, chip_scale(frame)),
        findings,
        starting(choices, first),
        MARGINS,
        [
            alt.param(name="spans", value=spans),
            alt.param(name="span", expr=f"spans[{now}] || {empty}"),
        ],
    )


def _plane(case: pl.DataFrame) -> Plane:
    """The axes of one choice; times go on somewhat beyond those that fit."""
    left, right = lowest(case, "ms"), highest(case, "ms")
    if case["fits"].any():
        right = min(right, highest(case.filter("fits"), "ms") * BEYOND)
    bottom, top = lowest(case, "rate"), highest(case, "rate")
    return Plane((left / ROOM, right * ROOM), (bottom / ROOM, top * ROOM))


def _span(plane: Plane) -> dict[str, Any]:
    """The axes of one choice, and the target where it is on them."""
    left, right = plane.x
    target = TARGET_S * MS
    return {
        **ticked(plane),
        "target": target if left < target < right else None,
        "late": target**2 > left * right,
    }


def _grouped(points: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """A row for each chip and split, with its points as lists: a tenth of the bytes."""
    keys = (*by, "chip", "split", "chips", "max_B", "beneath")
    return points.group_by(keys, maintain_order=True).agg(POINT)


def _layers(
    points: pl.DataFrame, ends: pl.DataFrame, by: Sequence[str], colors: alt.Scale
) -> list[alt.Chart]:
    """Points, fronts, the target, and names at the right edge."""
    now = chosen(*by)
    across = alt.Axis(
        values=alt.expr("span.across"),
        labelExpr="format(datum.value, ',~g')",
        title="Time per output token (ms)",
    )
    up = alt.Axis(
        values=alt.expr("span.up"), labelExpr=SHORT_LABEL, title="Tokens per second and chip"
    )
    x = alt.X("ms:Q", axis=across, scale=log_scale("span.x[0]", "span.x[1]"))
    y = alt.Y("rate:Q", axis=up, scale=log_scale("span.y[0]", "span.y[1]"))
    tooltip = [
        *(alt.Tooltip(f"{name}:N") for name in ("chip", "split")),
        alt.Tooltip("chips:Q", format=",d"),
        alt.Tooltip("B:Q", format=",d"),
        alt.Tooltip("ms:Q", title="ms per token", format=",.5~g"),
        alt.Tooltip("rate:Q", title="tokens/s per chip", format=",.5~g"),
        alt.Tooltip("fits:N"),
        alt.Tooltip("max_B:Q", title="largest B that fits", format=",d"),
    ]
    color = alt.Color("chip:N", legend=None, scale=colors)
    base = (
        alt.Chart(data(_grouped(points, by)))
        .transform_filter(now)
        .transform_flatten(list(POINT))
        .transform_calculate(fits=f"datum.state != {OUTSIDE}")
        .encode(x=x, y=y, tooltip=tooltip)
    )
    target = alt.Chart(pl.DataFrame({"text": [f"{seconds(TARGET_S)} a token"]}))
    target = target.transform_filter("isValid(span.target)").transform_calculate(ms="span.target")
    shown = {"color": color, "opacity": highlight()}
    named = {"fill": lettered(colors), "opacity": highlight()}
    small = alt.expr("em * em * 0.16")
    front = base.transform_filter(f"datum.state == {FRONT}").encode(**shown)
    return [
        target.mark_rule(style="rule").encode(x=x),
        base.transform_filter(f"datum.state == {OUTSIDE}").mark_point(
            style="context", filled=False, size=small, opacity=0.7, clip=True
        ),
        base.transform_filter(f"datum.state == {INSIDE}")
        .mark_point(style="dot", filled=True, size=small, strokeWidth=0)
        .encode(**shown),
        front.mark_line(style="curve", strokeWidth=wider()).encode(order=alt.Order("ms:Q")),
        front.mark_point(style="dot", filled=True, size=larger()),
        *haloed(
            target.encode(x=x, text=alt.Text("text:N")),
            "note",
            align=alt.expr("span.late ? 'right' : 'left'"),
            dx=alt.expr("em * (span.late ? -0.5 : 0.5)"),
            y=alt.expr("height - em"),
        ),
        *placed_text(ends, "value", now, halo=False, clip=False, x=at_right_edge(), y=y, **named),
    ]


def _ends(case: pl.DataFrame, plane: Plane) -> pl.DataFrame:
    """Names of the chips, with the largest throughput of each that fits."""
    best = (
        case.filter("front")
        .group_by("chip", *CASE, "basis", maintain_order=True)
        .agg(pl.col("rate", RATE).max())
        .sort("rate", descending=True, maintain_order=True)
    )

    def places(plot: tuple[float, float]) -> list[Place | None]:
        heights = [plane.at(plot, plane.x[1], rate)[1] for rate in best["rate"]]
        return end_places(heights, plot[1])

    text = [
        with_value(chip_label(chip), f"{significant(rate)}/s", NAME_ROOM)
        for chip, rate in best.select("chip", RATE).iter_rows()
    ]
    return best.with_columns(text=pl.Series(text, dtype=pl.String)).hstack(placed(MARGINS, places))


def _finding(case: pl.DataFrame, title: str | None, without: Sequence[str]) -> Finding:
    """Title and subtitle: the chips with the largest throughput within the target.

    Args:
        case: The points of one choice.
        title: Replaces the finding.
        without: The chips that are not shown, as they have no calibration.
    """
    row = case.row(0, named=True)
    times = "lower bounds (t_lower)" if row["basis"] == NOMINAL else "calibrated"
    experts = f" Experts: {row['routing']} routing." if row["routing"] else ""
    lacking = f" No calibration: {names_of(without)}." if without else ""
    subtitle = (
        f"{chip_label(row['model'])} in {row['dtypes']}, decode at S = {row['S']:,}. Times are"
        f" {times}.{experts} Dots: batches and splits; hollow: too large for the memory.{lacking}"
    )
    return Finding(title, subtitle) if title else _headline(case, subtitle)


def _headline(case: pl.DataFrame, subtitle: str) -> Finding:
    basis = case["basis"][0]
    shown = over(case, "chip", *CASE) | {"phase": [DECODE], "fits": [True]}
    about = partial(claim, of=RATE, basis=basis)
    time = TIME if basis == NOMINAL else ESTIMATES[TIME]
    quickly = partial(about, rows=shown, most={time: TARGET_S})
    within = f"within {seconds(TARGET_S)} a token"
    if not case["fits"].any():
        return Finding(
            "Nothing shown fits the memory", subtitle, about("none", rows=shown, value=None)
        )
    quick = case.filter("front", pl.col(TIME) <= TARGET_S)
    if not quick.height:
        found = quickly("none", value=None)
        return Finding(f"Nothing that fits is {within}", subtitle, found)
    rates = quick[RATE].round_sig_figs(EQUAL_DIGITS)
    best = quick.filter(rates == rates.max())["chip"].unique(maintain_order=True)
    if len(best) > 1:
        found = quickly("tie", value=len(best))
        title = f"{len(best)} chips tie for most tokens per chip {within}"
        return Finding(title, subtitle, found)
    if case["chip"].n_unique() == 1:
        most = highest(quick, RATE)
        title = f"{chip_label(best[0])}: {significant(most)} tokens/s per chip {within}"
        return Finding(title, subtitle, quickly("maximum", value=most))
    title = f"{chip_label(best[0])} gives most tokens per chip {within}"
    return Finding(title, subtitle, quickly("largest", value=best[0]))


CHART = ModelChart(
    name="pareto",
    family="models",
    heading="Whole models",
    caption=(
        "Tokens per second and chip over the time per output token, for every batch and split; "
        "lines join the best of each chip. Nominal times are lower bounds; calibrated ones have no "
        "band, as a step is many kernels."
    ),
    order=130,
    needs=(
        Need("decode among its `phase`", lambda s: DECODE in s.config.phase),
        Need("no T in its grid: one new token a step", lambda s: s.new_tokens is None),
        NO_REQUESTS,
        KNOWN_CAPACITY,
        Need("several batches", lambda s: len(s.batches) > 1, auto=True),
    ),
    reads=READ,
    most_dtypes=2,
    every_dtypes=True,
    frame=lambda of, spec: pareto_frame(of, spec.models, spec.sizes),
    draw=lambda frame, _, spec: pareto(
        frame,
        first=first_shown(frame, spec, "dtypes"),
        title=spec.title,
    ),
)
