"""Latency against throughput of decoding: batches and splits as points, a Pareto front a chip."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import alt, pl
from rooflines.basics.text import seconds, significant
from rooflines.charts.basis import BAND, basis_choice, basis_names
from rooflines.charts.chart import ModelChart, Need
from rooflines.charts.comparing import (
    BESIDE,
    EVERY,
    added_parameters,
    compared_rows,
    highlight,
    larger,
    names_at_ends,
    wider,
)
from rooflines.charts.frames import first_shown
from rooflines.charts.kinds.pareto_cases import TARGET_S, VIEW, finding_of, together
from rooflines.charts.kinds.pareto_fronts import (
    CASE,
    ESTIMATES,
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
    haloed,
    lettered,
    log_scale,
    starting,
)
from rooflines.charts.kit.ends import end_places
from rooflines.charts.kit.place import placed
from rooflines.charts.kit.text import chip_label, with_value
from rooflines.charts.kit.themes import Margins
from rooflines.charts.needs import KNOWN_CAPACITY, NO_REQUESTS, check_needs
from rooflines.charts.planes import NO_PLANE
from rooflines.models.shape import DECODE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.charts.claims import Finding
    from rooflines.charts.kinds.pareto_cases import Together
    from rooflines.charts.kit.place import Place
    from rooflines.charts.results import ModelSelection

__all__ = ["pareto", "pareto_frame"]

MARGINS = Margins(left=4.6, right=12.5)
NAME_ROOM = 11.6

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
    added: Sequence[str] = (),
) -> alt.LayerChart:
    """Throughput per chip over the time per output token, with the Pareto front of every chip.

    Args:
        frame: From `pareto_frame`: times [s] and throughputs [1/s].
        first: The initial choices by parameter; the first of the frame by default.
        title: Replaces the finding.
        added: Chips that are only shown where the reader chooses them.

    Returns:
        A chart with the parameters `model`, `dtypes`, `S`, `chip` for the one to highlight, and
        `basis` where chips are calibrated; then it has only these.
    """
    views = views_of(frame)
    names = basis_names(frame)
    drawn = list(together(views, added))
    chips, models, combinations, contexts = (
        frame[name].unique(maintain_order=True).to_list() for name in ("chip", *CASE)
    )
    compared = [chip for chip in chips if chip not in added]
    findings: dict[str, Finding] = {}
    edges = {}
    for one in drawn:
        of = one.of
        rest = [of.model, of.dtypes, str(of.context), *(of.basis for _ in names)]
        edges["|".join([one.chip, *rest])] = one.span()
        finding = finding_of(one).titled(title)
        of_chips = [EVERY, *compared] if one.chip == EVERY else [one.chip]
        for chip in (each for each in of_chips if each not in of.lacking):
            findings["|".join([chip, *rest])] = finding
    choices = [
        Choice("chip", [EVERY, *compared, *added]),
        Choice("model", models, "Model"),
        Choice("dtypes", combinations),
        Choice("S", contexts, "Context"),
        *basis_choice(frame),
    ]
    key = " + '|' + ".join([BESIDE if added else f"'{EVERY}'", *CASE, *names])
    return assemble(
        _layers(_points(views, drawn, added), _ends(drawn), [*CASE, *names], chip_scale(frame)),
        findings,
        starting(choices, first),
        MARGINS,
        [
            *added_parameters(added),
            alt.param(name="edges", value=edges),
            alt.param(name="span", expr=f"edges[{key}] || {NO_PLANE}"),
        ],
    )


def _points(views: pl.DataFrame, drawn: Sequence[Together], added: Sequence[str]) -> pl.DataFrame:
    """The points with `beneath`, the fronts compared that hide that of their chip, and `added`."""
    beneath = [
        (*one.of.view, chip, count)
        for one in drawn
        if one.chip == EVERY
        for chip, count in hidden(one.fronts, one.plane).items()
    ]
    keys = (*VIEW, "chip")
    schema = [*((name, views.schema[name]) for name in keys), ("beneath", pl.Int64())]
    counts = pl.DataFrame(beneath, schema=schema, orient="row")
    points = views.join(counts, on=keys, how="left", maintain_order="left")
    points = points.with_columns(pl.col("beneath").fill_null(0))
    if not added:
        return points
    is_added = pl.col("chip").is_in(added)
    return points.with_columns(added=is_added).sort("added", maintain_order=True)


def _grouped(points: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """A row for each chip and split, with its points as lists: a tenth of the bytes."""
    keys = [*by, "chip", "split", "chips", "max_B", "beneath"]
    keys += ["added"] if "added" in points.columns else []
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
        compared_rows(_grouped(points, by))
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
        *names_at_ends(ends, points, now, y=y, **named),
    ]


def _ends(drawn: Sequence[Together]) -> pl.DataFrame:
    """Names of the chips, with the largest throughput of each that fits."""
    records = [
        (one.chip, *one.of.view, chip, height, _name(chip, rate))
        for one in drawn
        for chip, height, rate in one.highest
    ]

    def places(plot: tuple[float, float]) -> list[Place | None]:
        return [
            place
            for one in drawn
            for place in end_places(
                [one.plane.at(plot, one.plane.x[1], y)[1] for _, y, _ in one.highest], plot[1]
            )
        ]

    columns = ("chip", *VIEW, "line", "rate", "text")
    schema: dict[str, pl.DataType] = dict.fromkeys(columns, pl.String())
    schema |= {"S": pl.Int64(), "rate": pl.Float64()}
    return pl.DataFrame(records, schema=schema, orient="row").hstack(placed(MARGINS, places))


@cache
def _name(chip: str, rate: float) -> str:
    """What a front is called: the chip, and its largest throughput [1/s]."""
    return with_value(chip_label(chip), f"{significant(rate)}/s", NAME_ROOM)


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
    parts_by=CASE,
    frame=lambda of, spec: pareto_frame(of, spec.models, spec.sizes),
    draw=lambda frame, _, spec: pareto(
        frame,
        first=first_shown(frame, spec, "dtypes"),
        title=spec.title,
        added=spec.added,
    ),
)
