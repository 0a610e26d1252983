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
from rooflines.charts.planes import PICTURE, plane_parameters
from rooflines.model.sharding import SHARDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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


def bound_frame(
    of: Selection, up: str = "shards", shape: str | None = None, added: Sequence[str] = ()
) -> pl.DataFrame:
    """The bottleneck over a dimension and the shards, or another dimension.

    The dimension is that of `lead_of`. Cells have their shares of the peak, so there are no marks
    for the thresholds of smaller shares.

    Args:
        of: The chips and combinations, from `Results.of`, of the sweep.
        up: The vertical axis: `shards` or another dimension.
        shape: Which of its shapes; the largest of the other sizes by default.
        added: Chips with a map of their own sizes; all others have one for the sizes of all.

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
    frame = at_largest(frame, [dim for dim in fixed if dim != up])
    frame = pl.concat(
        _in_cells(frame.filter(pl.col("chip").is_in(chips)), lead, up)
        for chips in _by_sizes(frame, added, (lead, up))
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


def _by_sizes(
    frame: pl.DataFrame, added: Sequence[str], dims: Sequence[str]
) -> Iterator[list[str]]:
    """Chips with a map of the same sizes: those not added, then the added ones by their sizes."""
    sizes = frame.group_by("chip", maintain_order=True).agg(pl.col(dims).unique().sort())
    is_added = pl.col("chip").is_in(added)
    yield sizes.filter(~is_added)["chip"].to_list()
    for _, chips in sizes.filter(is_added).group_by(dims, maintain_order=True):
        yield chips["chip"].to_list()


def _in_cells(frame: pl.DataFrame, across: str, up: str) -> pl.DataFrame:
    """Rows of one map with the edges of their cells, one row for each cell."""
    for dim in (up, across):
        frame = frame.filter(pl.col(dim).is_in(apart(sorted(frame[dim].unique().to_list()))))
    return with_edges(frame, x=across, y=up).unique(
        ["chip", "dtypes", "sharding", "x", "y"], keep="first", maintain_order=True
    )


def bound_map(  # noqa: PLR0913, all but the first have a default
    frame: pl.DataFrame,
    *,
    size: str = "B",
    up: str = "shards",
    first: Mapping[str, Any] | None = None,
    title: str | None = None,
    added: Sequence[str] = (),
) -> alt.LayerChart:
    """The bottleneck over a dimension and the number of chips, or another dimension.

    Args:
        frame: From `bound_frame`: `bound` and `utilization` [1] for every pair of sizes, and the
            `critical` sizes [1].
        size: The name of the size across.
        up: The name of the size up, `shards` or a dimension.
        first: The initial choices by parameter; the first of the frame by default.
        title: Replaces the finding.
        added: The chips that `bound_frame` has maps of their own for.

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
    maps: dict[str, dict[str, Any]] = {}
    places: dict[str, str] = {}
    for of_map in _by_sizes(frame, added, ("x", "y")):
        name = PICTURE if of_map[0] not in added else of_map[0]
        maps[name] = _map_of(frame.filter(pl.col("chip").is_in(of_map)))
        places |= dict.fromkeys(of_map, name)
    parameters = plane_parameters(maps, f"{json.dumps(places)}[chip]")
    return assemble(
        _marks(frame, names, size, up), findings, starting(choices, first), MARGINS, parameters
    )


def _map_of(frame: pl.DataFrame) -> dict[str, Any]:
    """What scales, axes and cells of a map need.

    Returns:
        By axis its edges, its ticks, and by size the edges and the middle of a cell; and whether
        cells have room for numbers, in the wide and in the narrow layout.
    """
    span = span_of(frame)
    cells = data(frame.with_columns(**middles()))
    parts: dict[str, Any] = {}
    for index, axis in enumerate("xy"):
        columns = (axis, f"{axis}_low", f"{axis}_high", f"middle_{axis}")
        rows = cells.select(columns).unique().sort(axis).rows()
        parts[axis] = {
            "edges": span[2 * index : 2 * index + 2],
            "ticks": _ticks([row[0] for row in rows], index),
            "cells": {str(row[0]): row[1:] for row in rows},
        }
    return {**parts, "room": _rooms(span, len(parts["x"]["cells"]))}


def _calibrated(case: pl.DataFrame) -> pl.DataFrame:
    """Cells with their calibrated numbers."""
    return case.with_columns(pl.col(f"{name}_estimate").alias(name) for name in NUMBERS)


def _marks(frame: pl.DataFrame, names: Sequence[str], size: str, up: str) -> list[alt.Chart]:
    """Cells in the colour of the bottleneck, and percentages if there is room."""
    across = _scale_and_axis("x", "Batch size B (tokens)" if size == "B" else size)
    upward = _scale_and_axis("y", "Chips that share the work" if up == SHARDS else up)
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
    base = base.transform_calculate(
        **{
            name: f"plane.{axis}.cells[datum.{axis}][{index}]"
            for axis in "xy"
            for index, name in enumerate((f"{axis}_low", f"{axis}_high", f"middle_{axis}"))
        }
    )
    base = by_basis(base, frame, DRAWN)
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
        base.transform_filter("plane.room[narrow ? 1 : 0]")
        .mark_text(style="on-resource", text=percent)
        .encode(x=alt.X("middle_x:Q", **across), y=alt.Y("middle_y:Q", **upward))
    )
    return [cells.add_params(picked), numbers]


def _scale_and_axis(axis: str, title: str) -> dict[str, Any]:
    """Scale and axis of the sizes of the present map."""
    domain: Any = [alt.expr(f"plane.{axis}.edges[{end}]") for end in (0, 1)]
    return {
        "scale": alt.Scale(type="log", base=2, domain=domain, nice=False),
        "axis": alt.Axis(
            values=alt.expr(f"plane.{axis}.ticks"),
            labelExpr=BINARY_LABEL,
            title=title,
            grid=False,
            domain=False,
            ticks=False,
        ),
    }


def _rooms(span: Span, columns: int) -> list[bool]:
    """Whether a cell has room for its number, by layout."""
    widths = [plot_size(LAYOUTS[layout], MARGINS)[0] for layout in ("wide", "narrow")]
    share = min(math.log(2) / math.log(span[1] / span[0]), 1 / columns)
    return [share * width > NUMBER_ROOM for width in widths]


def _ticks(values: Sequence[int], axis: int) -> list[int]:
    """Sizes with ticks, as many as the narrow layout has room for."""
    room = plot_size(LAYOUTS["narrow"], MARGINS)[axis] / (3.4 if axis == 0 else 1.5)
    step = max(1, math.ceil(len(values) / room))
    return list(values[::step])


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
        added=spec.added,
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
    frame=lambda of, spec: bound_frame(of, spec.up or SHARDS, spec.shape, spec.added),
    draw=_draw,
)
