"""Bottleneck and utilization over a size, by chip count, another size, or chip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from rooflines.answers.claims import Sentence, first_true
from rooflines.basics.lazy import pl
from rooflines.charts import frames, grid
from rooflines.charts.frames import (
    BAND,
    CALIBRATED,
    MIN_CURVE_SIZES,
    MIN_TABLE_SIZES,
    able_chips,
    dimension_sizes,
    has_axis,
    sweep_axis,
)
from rooflines.charts.kit import layers as kit
from rooflines.charts.kit.chart_text import chip_label, listed, on_chips, over_text
from rooflines.charts.kit.themes import Margins
from rooflines.charts.kit.titles import title_fits
from rooflines.charts.options import Menu, basis_menus, chosen_option, shape_menus, split_menus
from rooflines.charts.views import Kind, Need, View
from rooflines.fits.calibration_files import Bound
from rooflines.theory.sharding import SHARDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.charts.chart_data import Results, Selection
    from rooflines.charts.kit.layers import Layer
    from rooflines.charts.options import Option
    from rooflines.sweep.operation_sweep import Sweep

MARGINS, CHIP_MARGINS, NAME_ROOM = Margins(left=4.6, right=8.2), Margins(left=10.4, right=8.2), 9.5

CHIP = "chip"
MAX_ROWS, MAX_COLUMNS = 14, 17
"""Maximum rows and columns of the table [1]."""

BOUNDS = tuple(dict.fromkeys((*frames.TIMES, *get_args(Bound))))
"""Bottlenecks of nominal and calibrated times, in the order of their colours."""


def _row_axes(sweep: Sweep) -> list[str]:
    """Possible row axes: chip counts, dimensions, or chips."""
    axis = sweep_axis(sweep)
    several = [SHARDS] if len(sweep.counts) > 1 else []
    chips = [CHIP] if len(frames.chips_with_rows(sweep)) > 1 else []
    return [
        *several,
        *(
            dim
            for dim in sweep.op.dims
            if dim != axis
            and has_axis(sweep, dim)
            and len(dimension_sizes(sweep, dim)) >= MIN_TABLE_SIZES
        ),
        *chips,
    ]


def menus(sweep: Sweep, choice: Mapping[str, Option]) -> list[Menu]:
    """Menus: row axis, chip, dtypes, split, shape, and the basis of the numbers."""
    axes, chips = tuple(_row_axes(sweep)), tuple(frames.chips_with_rows(sweep))
    by, chip = chosen_option(choice, "by", axes), chosen_option(choice, "chip", chips)
    dtypes = frames.dtypes_of(sweep, [] if by == CHIP else [chip])
    chip_menu = [] if by == CHIP else [Menu("chip", chips)]
    cell_menus = [Menu("by", axes), *chip_menu, Menu("dtypes", dtypes)]
    cell_menus += split_menus(sweep, chip) if by == SHARDS else []
    cell_menus += shape_menus(sweep)
    return cell_menus if by == CHIP else [*cell_menus, *basis_menus(sweep, choice, dtypes)]


def view(results: Results, sweep: str, chips: Sequence[str], choice: Mapping[str, Any]) -> View:
    """Draw the bottleneck and the utilization of each cell."""
    by, dtypes = choice["by"], choice["dtypes"]
    chip, shape = choice.get("chip"), choice.get("shape")
    calibrated = choice.get("basis") == CALIBRATED
    operation_sweep, axis = results.sweep(sweep), sweep_axis(results.sweep(sweep))
    names = (
        [chip]
        if chip
        else able_chips(operation_sweep, chips or frames.chips_with_rows(operation_sweep), dtypes)
    )
    selection = results.select(sweep, names[:MAX_ROWS], [dtypes])
    rows = _rows(selection, by, (choice.get("split"), shape), calibrated=calibrated)
    columns = frames.few_sizes(sorted(rows[axis].unique().to_list()), MAX_COLUMNS)
    row_values: list[Any] = list(selection.chips)
    if by != CHIP:
        row_values = frames.few_sizes(sorted(rows[by].unique().to_list()), MAX_ROWS)[::-1]
    cells = grid.to_cells(rows, axis, by, columns, row_values)
    margins, room = (CHIP_MARGINS, NAME_ROOM) if by == CHIP else (MARGINS, 3.4)
    cells = grid.with_texts(cells, margins, [_percent(value) for value in cells["utilization"]])
    thresholds = _thresholds(selection, cells, by, axis) if axis in operation_sweep.solved else None
    claim = first_true(_sentences(selection, cells, thresholds, by, axis, calibrated=calibrated))
    shown = ("x", "y", "bound", "utilization", "text", "on", "on_narrow")
    return View(
        claim,
        _subtitle(selection, cells, by, axis, calibrated=calibrated),
        _layers(by, axis, calibrated=calibrated),
        {"cells": cells.select(*shown, axis, by)},
        margins,
        rows,
        grid.grid_params(
            margins, grid.axis_names(axis, columns), grid.axis_names(by, row_values), room
        ),
        (*selection.chips, *([shape] if shape else [])),
    )


def _percent(value: float) -> str:
    """Utilization in a cell [%], rounded down, so that 100 means the full peak."""
    share = int(value * 100 + 1e-9)
    return "<1" if not share else str(share)


def _rows(
    selection: Selection, by: str, choice: tuple[str | None, str | None], *, calibrated: bool
) -> pl.DataFrame:
    """Table rows, at the largest size in dimensions that are no axis."""
    split, shape = choice
    axis = sweep_axis(selection.sweep)
    rows = frames.with_missing(
        selection.rows(), *BAND, "estimate_bound", "t_lower_s", "network_bytes"
    )
    rows = rows.filter(selection.split_filter(split))
    if shape:
        rows = rows.filter(pl.col("shape") == shape)
    keys = ("chip", "dtypes", "sharding", "network", "shards", "shape", *selection.dims)
    columns: dict[str, Any] = {"bound": "bound", "utilization": "utilization"}
    if calibrated:
        attained = pl.col("utilization") * pl.col("t_lower_s") / pl.col(BAND[0])
        columns = {"bound": "estimate_bound", "utilization": attained}
    frame = rows.select(*keys, "network_bytes", **columns).drop_nulls("utilization").collect()
    frame = frames.at_largest(frame, [dim for dim in selection.dims if dim not in (axis, by)])
    return frame.unique(["chip", "shards", *selection.dims], keep="first", maintain_order=True)


def _thresholds(selection: Selection, cells: pl.DataFrame, by: str, axis: str) -> pl.DataFrame:
    """Thresholds by table row."""
    keys = ["chip", "sharding", "shards", "shape", *(dim for dim in selection.dims if dim != axis)]
    shown = cells.select(*keys, "y").unique(maintain_order=True)
    rows = (
        selection.thresholds()
        .filter(axis=axis, share=1.0)
        .select(*keys, "critical", "limit")
        .collect()
    )
    rows = rows.unique(keys, keep="first", maintain_order=True)
    cell_thresholds = shown.join(rows, on=keys, nulls_equal=True).sort("y")
    return cell_thresholds.unique("y", keep="first", maintain_order=True).with_columns(
        up=pl.col(by)
    )


def _layers(by: str, axis: str, *, calibrated: bool) -> list[Layer]:
    """Layers: cells in their bottleneck's colour, and percentages that fit."""
    titles = {SHARDS: "Chips", CHIP: None}
    across = "Batch size B (tokens)" if axis == "B" else axis
    x, y = grid.grid_axes(across, titles.get(by, by))
    about = [*grid.cell_tips((axis, by)), *kit.tips(bound="bound", utilization="of the peak")]
    bounds = list(BOUNDS if calibrated else frames.TIMES)
    scale = {"domain": bounds, "range": "ordinal"}
    legend = {"title": "Bound by", "orient": "right"}
    return [
        grid.cell_layer(
            x, y, about, {"color": kit.nominal_channel("bound", scale=scale, legend=legend)}
        ),
        *grid.text_layers(x, y, "on-resource", two=False),
        *([kit.heading("Share of the peak, %")] if by == CHIP else []),
    ]


def _subtitle(
    selection: Selection, cells: pl.DataFrame, by: str, axis: str, *, calibrated: bool
) -> str:
    """Subtitle: chip, dtypes, split and fixed sizes; a network only if it moves bytes."""
    on = chip_label(selection.chips[0]) if by != CHIP else f"{len(selection.chips)} chips"
    split = cells.filter(pl.col("shards") > 1)["sharding"].unique()
    moving = cells.filter(pl.col("network_bytes") > 0)
    across = f", split {split[0]}" if len(split) == 1 else ""
    across += over_text(moving["network"]) if moving.height else ""
    across += ", no network traffic" if len(split) and not moving.height else ""
    setting = frames.fixed_text(cells, [dim for dim in selection.dims if dim not in (axis, by)])
    words = f"{selection.dtypes[0]} on {on}{across}{', ' * bool(setting)}{setting}."
    return f"{words} Numbers: % of the peak.{' Calibrated.' * calibrated}"


def _sentences(  # noqa: PLR0913, what is said depends on all
    selection: Selection,
    cells: pl.DataFrame,
    thresholds: pl.DataFrame | None,
    by: str,
    axis: str,
    *,
    calibrated: bool,
) -> Iterator[Sentence]:
    """Candidate titles, the strongest first."""
    dtypes = selection.dtypes[0]
    per = frames.per_expert(cells["shape"])
    if by != CHIP and thresholds is not None and not calibrated:
        yield from _threshold_sentences(selection, cells, thresholds, by, axis)
    if by != CHIP:
        computing = cells.filter(bound="compute").height
        text = f"{computing:,} of {cells.height:,} cells on {chip_label(selection.chips[0])} are"
        yield Sentence(
            text=f"{text} compute-bound in {dtypes}{per}",
            rows=cells.select("chip", "bound", "shape").to_dicts(),
            chosen=selection.chips[0],
        )
    yield Sentence(text=f"Bottlenecks of {dtypes} on {len(selection.chips)} chips, over {axis}")


def _threshold_sentences(
    selection: Selection, cells: pl.DataFrame, thresholds: pl.DataFrame, by: str, axis: str
) -> Iterator[Sentence]:
    """Titles about rows that are never compute-bound, with limit and best utilization.

    If every row is compute-bound somewhere: the critical sizes of the first and last row.
    """
    chip, per = selection.chips[0], frames.per_expert(cells["shape"])
    never = thresholds.filter(pl.col("critical").is_null())
    rows = never.select("chip", "shape", "critical", "limit").to_dicts()
    reasons = never["limit"].unique().to_list()
    if never.height and len(reasons) == 1:
        values = never["up"].to_list()
        where = f"{chip_label(chip)} at {by} = {listed(values)}"
        where = on_chips(chip, values) if by == SHARDS else where
        most = frames.highest(cells.filter(pl.col("y").is_in(never["y"].implode())), "utilization")
        share = f"{_percent(most)} % of peak at any {axis}{per}"
        text = f"{where}: {reasons[0]} limits to {share} shown"
        if not title_fits(text, MARGINS):
            text = f"{where}: never compute-bound{per}, {reasons[0]} limits"
        yield Sentence(text=text, rows=rows, chosen=chip, blames=str(reasons[0]))
    solved = thresholds.drop_nulls("critical").sort("up")
    if solved.height > 1 and not never.height:
        first, last = solved.row(0, named=True), solved.row(-1, named=True)
        unit = "on {:,} chips" if by == SHARDS else f"at {by} = " + "{:,}"
        ends = (f"{row['critical']:,} {unit.format(row['up'])}" for row in (first, last))
        start, end = (text.replace(" 1 chips", " 1 chip") for text in ends)
        yield Sentence(
            text=f"{chip_label(chip)} needs {axis}{per} = {start}, {end}",
            rows=solved.select("chip", "shape", "critical", "limit").to_dicts(),
            chosen=chip,
        )


def _preferred(sweep: Sweep) -> tuple[int, ...]:
    return -len(sweep.counts), -len(frames.chips_with_rows(sweep)), not sweep.config.shapes


KIND = Kind(
    name="who-binds",
    menus=menus,
    view=view,
    needs=(
        Need(
            "several numbers of chips in `shards`, another dimension of several sizes, or "
            "several chips",
            lambda s: bool(_row_axes(s)),
        ),
        Need(
            f"{MIN_CURVE_SIZES} sizes of a dimension",
            lambda s: len(dimension_sizes(s, sweep_axis(s))) >= MIN_CURVE_SIZES,
            auto=True,
        ),
    ),
    reads=("bound", "utilization"),
    preferred=_preferred,
    multi_chip=True,
    max_chips=9,
)
