"""Who binds: the bottleneck over a size and numbers of chips, another size, or several chips."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from rooflines.answers.claims import Sentence, first_true
from rooflines.basics.lazy import pl
from rooflines.charts import frames, grid
from rooflines.charts.frames import (
    BAND,
    CALIBRATED,
    LONG_AXIS,
    SHORT_AXIS,
    able_chips,
    dimension_sizes,
    has_axis,
    lead_of,
)
from rooflines.charts.kit import layers as kit
from rooflines.charts.kit.chart_text import chip_label, listed, on_chips, over_text
from rooflines.charts.kit.themes import Margins
from rooflines.charts.kit.titles import title_fits
from rooflines.charts.options import Menu, basis_menus, chosen, shape_menus, split_menus
from rooflines.charts.views import Kind, Need, View
from rooflines.fits.calibration_files import Bound
from rooflines.theory.sharding import SHARDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.charts.chart_data import Results, Selection
    from rooflines.charts.kit.layers import Layer
    from rooflines.charts.options import Option
    from rooflines.sweep.operation_sweep import Sweep

MARGINS, OF_CHIPS, NAME_ROOM = Margins(left=4.6, right=8.2), Margins(left=10.4, right=8.2), 9.5

CHIP = "chip"
MOST_ROWS, MOST_COLUMNS = 14, 17
"""Rows and columns of the table [1]."""

BOUNDS = tuple(dict.fromkeys((*frames.TIMES, *get_args(Bound))))
"""The bottlenecks of nominal and of calibrated times; they have colours in this order."""


def _able(sweep: Sweep) -> list[str]:
    """What the rows of the table can be."""
    lead = lead_of(sweep)
    several = [SHARDS] if len(sweep.counts) > 1 else []
    chips = [CHIP] if len(frames.chips_with_rows(sweep)) > 1 else []
    return [
        *several,
        *(
            dim
            for dim in sweep.op.dims
            if dim != lead
            and has_axis(sweep, dim)
            and len(dimension_sizes(sweep, dim)) >= SHORT_AXIS
        ),
        *chips,
    ]


def menus(sweep: Sweep, given: Mapping[str, Option]) -> list[Menu]:
    """What goes up, the chip, the dtypes, the split and the shape, and what numbers are by."""
    able, chips = tuple(_able(sweep)), tuple(frames.chips_with_rows(sweep))
    by, chip = chosen(given, "by", able), chosen(given, "chip", chips)
    dtypes = frames.dtypes_of(sweep, [] if by == CHIP else [chip])
    of_chip = [] if by == CHIP else [Menu("chip", chips)]
    found = [Menu("by", able), *of_chip, Menu("dtypes", dtypes)]
    found += split_menus(sweep, chip) if by == SHARDS else []
    found += shape_menus(sweep)
    return found if by == CHIP else [*found, *basis_menus(sweep, given, dtypes)]


def view(results: Results, sweep: str, chips: Sequence[str], choice: Mapping[str, Any]) -> View:
    """The bottleneck of each cell, and the share of the peak that it attains."""
    by, dtypes = choice["by"], choice["dtypes"]
    chip, shape = choice.get("chip"), choice.get("shape")
    calibrated = choice.get("basis") == CALIBRATED
    own, lead = results.sweep(sweep), lead_of(results.sweep(sweep))
    names = [chip] if chip else able_chips(own, chips or frames.chips_with_rows(own), dtypes)
    of = results.of(sweep, names[:MOST_ROWS], [dtypes])
    rows = _rows(of, by, (choice.get("split"), shape), calibrated=calibrated)
    columns = frames.few_sizes(sorted(rows[lead].unique().to_list()), MOST_COLUMNS)
    ups: list[Any] = list(of.chips)
    if by != CHIP:
        ups = frames.few_sizes(sorted(rows[by].unique().to_list()), MOST_ROWS)[::-1]
    cells = grid.gridded(rows, lead, by, columns, ups)
    margins, room = (OF_CHIPS, NAME_ROOM) if by == CHIP else (MARGINS, 3.4)
    cells = grid.with_texts(cells, margins, [_percent(value) for value in cells["utilization"]])
    known = _thresholds(of, cells, by, lead) if lead in own.solved else None
    says = first_true(_sentences(of, cells, known, by, lead, calibrated=calibrated))
    shown = ("x", "y", "bound", "utilization", "text", "on", "on_narrow")
    return View(
        says,
        _subtitle(of, cells, by, lead, calibrated=calibrated),
        _layers(by, lead, calibrated=calibrated),
        {"cells": cells.select(*shown, lead, by)},
        margins,
        rows,
        grid.grid_params(margins, grid.names_of(lead, columns), grid.names_of(by, ups), room),
        (*of.chips, *([shape] if shape else [])),
    )


def _percent(value: float) -> str:
    """A share of the peak in a cell [%]; cut, so that 100 is reached alone."""
    share = int(value * 100 + 1e-9)
    return "<1" if not share else str(share)


def _rows(
    of: Selection, by: str, chosen: tuple[str | None, str | None], *, calibrated: bool
) -> pl.DataFrame:
    """Rows of the table, at the largest of all sizes that are neither across nor up."""
    split, shape = chosen
    lead = lead_of(of.sweep)
    rows = frames.with_missing(of.rows(), *BAND, "estimate_bound", "t_lower_s", "network_bytes")
    rows = rows.filter(of.over(split))
    if shape:
        rows = rows.filter(pl.col("shape") == shape)
    keys = ("chip", "dtypes", "sharding", "network", "shards", "shape", *of.dims)
    own: dict[str, Any] = {"bound": "bound", "utilization": "utilization"}
    if calibrated:
        attained = pl.col("utilization") * pl.col("t_lower_s") / pl.col(BAND[0])
        own = {"bound": "estimate_bound", "utilization": attained}
    frame = rows.select(*keys, "network_bytes", **own).drop_nulls("utilization").collect()
    frame = frames.at_largest(frame, [dim for dim in of.dims if dim not in (lead, by)])
    return frame.unique(["chip", "shards", *of.dims], keep="first", maintain_order=True)


def _thresholds(of: Selection, cells: pl.DataFrame, by: str, lead: str) -> pl.DataFrame:
    """The thresholds of the table's rows."""
    keys = ["chip", "sharding", "shards", "shape", *(dim for dim in of.dims if dim != lead)]
    shown = cells.select(*keys, "y").unique(maintain_order=True)
    rows = of.thresholds().filter(axis=lead, share=1.0).select(*keys, "critical", "limit").collect()
    rows = rows.unique(keys, keep="first", maintain_order=True)
    found = shown.join(rows, on=keys, nulls_equal=True).sort("y")
    return found.unique("y", keep="first", maintain_order=True).with_columns(up=pl.col(by))


def _layers(by: str, lead: str, *, calibrated: bool) -> list[Layer]:
    """Cells in the colour of the bottleneck, and percentages if there is room."""
    titles = {SHARDS: "Chips that share the work", CHIP: None}
    across = "Batch size B (tokens)" if lead == "B" else lead
    x, y = grid.grid_axes(across, titles.get(by, by))
    about = [*grid.tips_of((lead, by)), *kit.tips(bound="bound", utilization="of the peak")]
    bounds = list(BOUNDS if calibrated else frames.TIMES)
    scale = {"domain": bounds, "range": "ordinal"}
    legend = {"title": "Bound by", "orient": "right"}
    return [
        grid.cell_layer(x, y, about, {"color": kit.name("bound", scale=scale, legend=legend)}),
        *grid.text_layers(x, y, "on-resource", two=False),
        *([kit.heading("Share of the peak, %")] if by == CHIP else []),
    ]


def _subtitle(of: Selection, cells: pl.DataFrame, by: str, lead: str, *, calibrated: bool) -> str:
    """The setting; a network is named where it moves bytes."""
    on = chip_label(of.chips[0]) if by != CHIP else f"{len(of.chips)} chips"
    split = cells.filter(pl.col("shards") > 1)["sharding"].unique()
    moving = cells.filter(pl.col("network_bytes") > 0)
    across = f", split {split[0]}" if len(split) == 1 else ""
    across += over_text(moving["network"]) if moving.height else ""
    across += ", no byte over a network" if len(split) and not moving.height else ""
    setting = frames.fixed_text(cells, [dim for dim in of.dims if dim not in (lead, by)])
    words = f"{of.dtypes[0]} on {on}{across}{', ' * bool(setting)}{setting}."
    return f"{words} Numbers: % of the peak.{' Calibrated.' * calibrated}"


def _sentences(  # noqa: PLR0913, what is said depends on all
    of: Selection,
    cells: pl.DataFrame,
    known: pl.DataFrame | None,
    by: str,
    lead: str,
    *,
    calibrated: bool,
) -> Iterator[Sentence]:
    """What may be said, the strongest first."""
    dtypes = of.dtypes[0]
    per = frames.per_expert(cells["shape"])
    if by != CHIP and known is not None and not calibrated:
        yield from _of_thresholds(of, cells, known, by, lead)
    if by != CHIP:
        computing = cells.filter(bound="compute").height
        text = f"{computing:,} of {cells.height:,} cells on {chip_label(of.chips[0])} are"
        yield Sentence(
            text=f"{text} compute-bound in {dtypes}{per}",
            rows=cells.select("chip", "bound", "shape").to_dicts(),
            chosen=of.chips[0],
        )
    yield Sentence(text=f"What binds {dtypes} on {len(of.chips)} chips, over {lead}")


def _of_thresholds(
    of: Selection, cells: pl.DataFrame, known: pl.DataFrame, by: str, lead: str
) -> Iterator[Sentence]:
    """Rows that no size makes compute-bound, with the reason and the largest share of the peak.

    Else where the first and last row are.
    """
    chip, per = of.chips[0], frames.per_expert(cells["shape"])
    never = known.filter(pl.col("critical").is_null())
    rows = never.select("chip", "shape", "critical", "limit").to_dicts()
    reasons = never["limit"].unique().to_list()
    if never.height and len(reasons) == 1:
        values = never["up"].to_list()
        where = f"{chip_label(chip)} at {by} = {listed(values)}"
        where = on_chips(chip, values) if by == SHARDS else where
        most = frames.highest(cells.filter(pl.col("y").is_in(never["y"].implode())), "utilization")
        share = f"{_percent(most)} % of peak at any {lead}{per}"
        text = f"{where}: {reasons[0]} limits to {share} shown"
        if not title_fits(text, MARGINS):
            text = f"On {where} no {lead}{per} is enough: {reasons[0]} limits"
        yield Sentence(text=text, rows=rows, chosen=chip, blames=str(reasons[0]))
    found = known.drop_nulls("critical").sort("up")
    if found.height > 1 and not never.height:
        first, last = found.row(0, named=True), found.row(-1, named=True)
        unit = "on {:,} chips" if by == SHARDS else f"at {by} = " + "{:,}"
        ends = (f"{row['critical']:,} {unit.format(row['up'])}" for row in (first, last))
        start, end = (text.replace(" 1 chips", " 1 chip") for text in ends)
        yield Sentence(
            text=f"{chip_label(chip)} needs {lead}{per} = {start}, {end}",
            rows=found.select("chip", "shape", "critical", "limit").to_dicts(),
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
            lambda s: bool(_able(s)),
        ),
        Need(
            f"{LONG_AXIS} sizes of a dimension",
            lambda s: len(dimension_sizes(s, lead_of(s))) >= LONG_AXIS,
            auto=True,
        ),
    ),
    reads=("bound", "utilization"),
    preferred=_preferred,
    compares=True,
    most_chips=9,
)
