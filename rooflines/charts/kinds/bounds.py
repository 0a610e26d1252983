"""The bound map: the bottleneck over two sizes, and the share of the peak that is attained."""

from __future__ import annotations

import json
import math
from functools import partial
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import alt, pl
from rooflines.charts.basis import (
    BAND,
    BASES,
    BOUNDS,
    CALIBRATED,
    NOMINAL,
    basis_choice,
    basis_names,
    basis_text,
    by_basis,
    with_estimates,
)
from rooflines.charts.cells import middles
from rooflines.charts.chart import Chart, Need
from rooflines.charts.claims import Finding, claim, ends, held, over, solved
from rooflines.charts.frames import (
    CELL_COLUMNS,
    TIMES,
    apart,
    at_largest,
    first_shown,
    span_of,
    with_edges,
)
from rooflines.charts.kit.drawing import BINARY_LABEL, Choice, assemble, chosen, data, starting
from rooflines.charts.kit.place import LAYOUTS
from rooflines.charts.kit.text import chip_label, listed, on_chips, sizes_text, split_on, split_text
from rooflines.charts.kit.themes import Margins, plot_size
from rooflines.charts.needs import LONG_LEAD, by_shards, need
from rooflines.charts.offers import MAP_AXIS, SHORT_AXIS, lead_of, map_dims, tall
from rooflines.model.sharding import SHARDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.charts.chart import Spec
    from rooflines.charts.results import Selection

__all__ = ["bound_frame", "bound_map"]

MARGINS = Margins(left=4.6, right=8.2)

DRAWN = ("bound", "utilization")
NUMBERS = (*DRAWN, "solved", "critical")
"""Columns that a calibration changes."""

NUMBER_ROOM = 1.9
"""Width of a cell from which on its number is written in it [em]."""

Span = tuple[float, float, float, float]
"""The map's edges: across from and to, up from and to."""


def bound_frame(of: Selection, up: str = "shards", shape: str | None = None) -> pl.DataFrame:
    """The bottleneck over a dimension and the shards, or another dimension.

    The dimension is that of `lead_of`. Cells have their shares of the peak, so there are no marks
    for the thresholds of smaller shares.

    Args:
        of: The chips and combinations, from `Results.of`, of the sweep.
        up: The vertical axis: `shards` or another dimension.
        shape: Which of its shapes; the largest of the other sizes by default.

    Returns:
        `chip`, `dtypes`, `sharding`, `network`, `shards`, the sizes `x` and `y` with the edges of
        their cells, `bound`, `utilization` [1], `setting`: what is held fixed, `solved`: whether
        the sweep has thresholds of the dimension, and from these `critical` [1] (null:
        never). Where `calibrated`, all but the setting again in columns `<name>_estimate`.
    """
    need(CHART, of.sweep, up=up, shape=shape)
    lead = lead_of(of.sweep)
    fixed = [dim for dim in of.dims if dim != lead]
    rows = with_estimates(of.rows(), "t_lower_s")
    rows = rows.filter(shape=shape) if shape else rows
    others = [dim for dim in fixed if dim != up]
    if up != "shards":
        rows = rows.filter(of.on_fewest())
    case = ["chip", "dtypes", "sharding", "network", "shards", "shape", *fixed]
    attained = pl.col("utilization") * pl.col("t_lower_s") / pl.col(BAND[0])
    frame = rows.select(
        *case,
        lead,
        "bound",
        "utilization",
        bound_estimate="estimate_bound",
        utilization_estimate=attained,
        calibrated=attained.is_not_null(),
    ).collect()
    frame = at_largest(frame, others)
    frame = frame.filter(pl.col(up).is_in(apart(sorted(frame[up].unique().to_list()))))
    frame = frame.filter(pl.col(lead).is_in(apart(sorted(frame[lead].unique().to_list()))))
    frame = with_edges(frame, x=lead, y=up).unique(
        ["chip", "dtypes", "sharding", "x", "y"], keep="first", maintain_order=True
    )
    thresholds = (
        of.thresholds()
        .filter(axis=lead)
        .select(
            *case,
            "critical",
            "critical_estimate",
            solved=pl.lit(value=True),
            solved_estimate=of.calibrated(),
        )
        .collect()
    )
    frame = frame.join(
        thresholds, on=case, how="left", nulls_equal=True, maintain_order="left"
    ).with_columns(pl.col("solved", "solved_estimate").fill_null(value=False))
    estimates = [f"{name}_estimate" for name in NUMBERS]
    return frame.select(*case, *CELL_COLUMNS, *NUMBERS, *estimates, "calibrated", "setting")


def bound_map(
    frame: pl.DataFrame,
    *,
    size: str = "B",
    up: str = "shards",
    first: Mapping[str, Any] | None = None,
    title: str | None = None,
) -> alt.LayerChart:
    """The bottleneck over a dimension and the number of chips, or another dimension.

    Args:
        frame: From `bound_frame`: `bound` and `utilization` [1] for every pair of sizes, and the
            `critical` sizes [1].
        size: The name of the size across.
        up: The name of the size up, `shards` or a dimension.
        first: The initial choices by parameter; the first of the frame by default.
        title: Replaces the finding.

    Returns:
        A chart with the parameters `chip`, `dtypes`, over shards `sharding`, and `basis` where
        cells are calibrated.
    """
    chips, combinations, shardings = (
        frame[name].unique(maintain_order=True).to_list() for name in ("chip", "dtypes", "sharding")
    )
    names = ["chip", "dtypes", *(["sharding"] if up == "shards" else [])]
    findings = {}
    for key, case in frame.group_by(names, maintain_order=True):
        for basis in BASES if case["calibrated"].all() else (NOMINAL,):
            view = case if basis == NOMINAL else _calibrated(case)
            chosen_by = map(str, (*key, *(basis for _ in basis_names(frame))))
            findings["|".join(chosen_by)] = _finding(view, (*key, basis), size, up, title)
    choices = [Choice("chip", chips), Choice("dtypes", combinations)]
    choices += [Choice("sharding", shardings, "Split")] if up == "shards" else []
    choices += basis_choice(frame)
    return assemble(_marks(frame, names, size, up), findings, starting(choices, first), MARGINS)


def _calibrated(case: pl.DataFrame) -> pl.DataFrame:
    """Cells with their calibrated numbers."""
    return case.with_columns(pl.col(f"{name}_estimate").alias(name) for name in NUMBERS)


def _marks(frame: pl.DataFrame, names: Sequence[str], size: str, up: str) -> list[alt.Chart]:
    """Cells in the colour of the bottleneck, and percentages if there is room."""
    span = span_of(frame)
    xs, ys = sorted(frame["x"].unique().to_list()), sorted(frame["y"].unique().to_list())
    across: dict[str, Any] = {
        "scale": alt.Scale(type="log", base=2, domain=list(span[:2]), nice=False),
        "axis": _axis(xs, "Batch size B (tokens)" if size == "B" else size, 0),
    }
    upward: dict[str, Any] = {
        "scale": alt.Scale(type="log", base=2, domain=list(span[2:]), nice=False),
        "axis": _axis(ys, "Chips that share the work" if up == SHARDS else up, 1),
    }
    both, resources = bool(basis_names(frame)), list(TIMES)
    listed = f"basis == '{CALIBRATED}' ? {json.dumps(BOUNDS)} : {json.dumps(resources)}"
    values = alt.expr(listed) if both else resources
    legend = alt.Legend(title="Bound by", orient="right", values=values)
    scale = alt.Scale(domain=list(BOUNDS if both else resources), range="ordinal")
    picked = alt.selection_point(name="picked", fields=["bound"], bind="legend")
    tooltip = [
        "chip:N",
        "dtypes:N",
        "sharding:N",
        alt.Tooltip("x:Q", title=size, format=",d"),
        alt.Tooltip("y:Q", title=up, format=",d"),
        "bound:N",
        alt.Tooltip("utilization:Q", title="of the peak", format=".1%"),
    ]
    estimates = [f"{name}_estimate" for name in DRAWN if both]
    drawn = frame.select("chip", "dtypes", "sharding", "x", "y", *DRAWN, *estimates)
    base = alt.Chart(data(drawn)).transform_filter(chosen(*names))
    base = by_basis(_with_places(base, frame), frame, DRAWN)
    cells = base.mark_rect(style="cell").encode(
        x=alt.X("x_low:Q", **across),
        x2=alt.X2("x_high:Q"),
        y=alt.Y("y_low:Q", **upward),
        y2=alt.Y2("y_high:Q"),
        color=alt.Color("bound:N", scale=scale, legend=legend),
        tooltip=tooltip,
        opacity=alt.when(picked).then(alt.value(1)).otherwise(alt.value(0.15)),
    )
    percent = alt.expr(
        "datum.utilization < 0.01 ? '<1' : format(floor(datum.utilization * 100 + 1e-9), '.0f')"
    )
    numbers = (
        base.transform_filter(_has_room(span, len(xs)))
        .mark_text(style="on-resource", text=percent)
        .encode(x=alt.X("middle_x:Q", **across), y=alt.Y("middle_y:Q", **upward))
    )
    return [cells.add_params(picked), numbers]


def _with_places(base: alt.Chart, frame: pl.DataFrame) -> alt.Chart:
    """Cells with their edges and middles: looked up, as many cells share them."""
    frame = frame.with_columns(**middles())
    for axis in "xy":
        places = [f"{axis}_low", f"{axis}_high", f"middle_{axis}"]
        known = data(frame.select(axis, *places).unique().sort(axis))
        base = base.transform_lookup(axis, alt.LookupData(known, axis, places))
    return base


def _has_room(span: Span, columns: int) -> str:
    """An expression: whether a cell of the current layout has room for its number."""
    room = {}
    for layout, look in LAYOUTS.items():
        width = plot_size(look, MARGINS)[0]
        cell = min(math.log(2) / math.log(span[1] / span[0]) * width, width / columns)
        room[layout] = json.dumps(cell > NUMBER_ROOM)
    return f"narrow ? {room['narrow']} : {room['wide']}"


def _axis(values: Sequence[int], title: str, axis: int) -> alt.Axis:
    """An axis with ticks at sizes, as many as the narrow layout has room for."""
    room = plot_size(LAYOUTS["narrow"], MARGINS)[axis] / (3.4 if axis == 0 else 1.5)
    step = max(1, math.ceil(len(values) / room))
    return alt.Axis(
        values=list(values[::step]),
        labelExpr=BINARY_LABEL,
        title=title,
        grid=False,
        domain=False,
        ticks=False,
    )


def _finding(
    case: pl.DataFrame, key: Sequence[object], size: str, up: str, title: str | None
) -> Finding:
    """Title and subtitle: the critical size of the last row, or the rows never compute-bound."""
    chip, combination, basis = str(key[0]), key[1], str(key[-1])
    sharding, shards = str(case["sharding"][0]), case["shards"].unique().to_list()
    split = split_text(sharding, shards, case["network"])
    setting = case["setting"][0]
    on = on_chips(chip, shards) if up != "shards" else chip_label(chip)
    subtitle = (
        f"{combination} on {on}{split}{', ' + setting if setting else ''}. Numbers: % of the peak."
        f"{basis_text(case, basis)}"
    )
    if title:
        return Finding(title, subtitle)
    shown = over(case, "chip", "dtypes", "sharding", "shards") | held(case)
    if not case["solved"].all():
        computing = case.filter(bound="compute").height
        title = (
            f"{computing:,} of {case.height:,} cases shown on {chip_label(chip)} are compute-bound"
        )
        shown |= {size: sorted(case["x"].unique())}
        value = [computing, case.height]
        counted = claim("count", "bound", shown, value, basis=basis, where="compute")
        return Finding(title, subtitle, counted)
    shown |= solved(size)
    about = partial(claim, of="critical", basis=basis)
    never = case.filter(pl.col("critical").is_null())["y"].unique().to_list()
    if never:
        where = (
            split_on(sharding, chip, never)
            if up == "shards"
            else f"{chip_label(chip)} at {up} = {listed(never)}"
        )
        found = about("never", rows=shown, value=sorted(never), by=up)
        return Finding(f"{where}: no {size} is enough", subtitle, found)
    most = case.filter(pl.col("y") == pl.col("y").max())
    last = most["y"][0]
    at = (
        f"At {up} = {last:,}"
        if up != "shards"
        else f"On {last:,} chips"
        if last > 1
        else "On 1 chip"
    )
    found = about("range", rows=shown | {up: [last]}, value=ends(most["critical"]))
    return Finding(
        f"{at} compute-bound from {sizes_text(size, most['critical'])} on", subtitle, found
    )


def _draw(frame: pl.DataFrame, of: Selection, spec: Spec) -> alt.LayerChart:
    """The chart of a spec."""
    names = ["chip", "dtypes", *(["sharding"] if spec.up == SHARDS else [])]
    return bound_map(
        frame,
        size=lead_of(of.sweep),
        up=spec.up or SHARDS,
        first=first_shown(frame, spec, *names),
        title=spec.title,
    )


CHART = Chart(
    name="bounds",
    family="bounds",
    heading="What binds",
    caption=(
        "Which resource takes longest, and the share of the peak that is attained if everything "
        "overlaps. A row is empty where the network does not join that many chips."
    ),
    order=120,
    needs=(
        Need(
            "several numbers of chips in `shards`, or another dimension with an axis of its own",
            lambda s: bool(map_dims(s)),
        ),
        LONG_LEAD,
        Need(
            f"{SHORT_AXIS} numbers of chips in `shards`, or {MAP_AXIS} sizes of another dimension",
            lambda s: any(tall(s, up) for up in map_dims(s)),
            auto=True,
        ),
    ),
    reads=("bound", "utilization"),
    preferred=by_shards,
    fills=frozenset({"shape", "sharding", "up"}),
    most=2,
    most_chips=4,
    most_dtypes=2,
    every_chip=True,
    frame=lambda of, spec: bound_frame(of, spec.up or SHARDS, spec.shape),
    draw=_draw,
)
