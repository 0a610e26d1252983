"""Critical sizes as a table: over two sizes, layers, dtypes, chips, or chip counts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rooflines.answers.claims import Sentence, first_true
from rooflines.basics.lazy import pl
from rooflines.basics.text import count, counted
from rooflines.charts import frames, grid
from rooflines.charts.chart_models import layers_by_model, layers_run
from rooflines.charts.frames import MIN_TABLE_SIZES, TWO, dimension_sizes, has_axis, matrix_dims
from rooflines.charts.kit import layers as kit
from rooflines.charts.kit.chart_text import chip_label, on_chips, sizes_text
from rooflines.charts.kit.themes import Margins
from rooflines.charts.kit.titles import title_fits
from rooflines.charts.options import Menu, chosen_option, shape_menus, split_menus
from rooflines.charts.views import Kind, Need, View

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.charts.chart_data import Results, Selection
    from rooflines.charts.kit.layers import Layer
    from rooflines.charts.options import Option
    from rooflines.sweep.operation_sweep import Sweep

MARGINS, NAME_ROOM = Margins(left=10.4, right=8.6), 9.5
SIZE_MARGINS = Margins(left=4.2, right=8.6)

SPREAD = 16.0
"""Multiple of the smallest number at which the colour scale ends [1]."""

DARK_FROM = 0.6
"""Share of the colour scale beyond which numbers switch colour, for a contrast of 4.5 [1]."""

MAX_ROWS, MAX_COLUMNS, MAX_DTYPES = 14, 14, 9
"""Maximum rows and columns, and maximum columns of dtypes, whose names are long [1]."""

MAX_CHIPS_SAID = 2
"""Maximum chips whose sizes a title says in any case [1]; of more only if it fits."""

CHIPS, DTYPES, SPLITS = "layer x chip", "chip x dtypes", "layer x chips each"


def _has_shapes(sweep: Sweep) -> bool:
    """Check that shapes set all dimensions except the first, which has its own axis."""
    before, after = sweep.axes
    shaped = all("shape" in axis.columns or axis.count == 1 for axis in after)
    return bool(sweep.config.shapes) and bool(before) and shaped


def _solved_dim(sweep: Sweep) -> str:
    """First dimension with thresholds."""
    return next((dim for dim in sweep.op.dims if dim in sweep.solved), sweep.op.dims[0])


def _has_size_grid(sweep: Sweep) -> bool:
    """Check for two further dimensions with several sizes and an axis each, neither solved for."""
    pair = matrix_dims(sweep)
    if len(pair) != TWO or _solved_dim(sweep) in pair:
        return False
    return all(
        has_axis(sweep, dim) and len(dimension_sizes(sweep, dim)) >= MIN_TABLE_SIZES for dim in pair
    )


def _tables_of(sweep: Sweep) -> list[str]:
    """Tables available for a sweep."""
    several = len(frames.chips_with_rows(sweep)) > 1
    tables = [" x ".join(matrix_dims(sweep))] if _has_size_grid(sweep) else []
    tables += [CHIPS] if _has_shapes(sweep) and several else []
    tables += [DTYPES] if several and len(frames.dtypes_of(sweep)) > 1 else []
    return tables + (
        [SPLITS] if _has_shapes(sweep) and len(sweep.counts) >= MIN_TABLE_SIZES else []
    )


def menus(sweep: Sweep, choice: Mapping[str, Option]) -> list[Menu]:
    """Menus: the table, and choices shared by all cells."""
    able = tuple(_tables_of(sweep))
    by = chosen_option(choice, "by", able)
    tables = [Menu("by", able)]
    models = [Menu("model", tuple(layers_by_model(sweep.config.shapes or ())))]
    if by == DTYPES:
        return [*tables, *shape_menus(sweep)]
    if by == CHIPS:
        return [*tables, *models, Menu("dtypes", frames.dtypes_of(sweep))]
    chips = tuple(frames.chips_with_rows(sweep))
    chip = chosen_option(choice, "chip", chips)
    cell_menus = [*tables, Menu("chip", chips), Menu("dtypes", frames.dtypes_of(sweep, [chip]))]
    return [*cell_menus, *models, *split_menus(sweep, chip)] if by == SPLITS else cell_menus


def view(results: Results, sweep: str, chips: Sequence[str], choice: Mapping[str, Any]) -> View:
    """Draw a table of critical sizes; tables over chips show `chips`."""
    by, split = choice["by"], choice.get("split")
    chip, dtypes, model, shape = map(choice.get, ("chip", "dtypes", "model", "shape"))
    operation_sweep = results.sweep(sweep)
    names = [chip] if chip else list(chips) or frames.chips_with_rows(operation_sweep)[:MAX_ROWS]
    usable = frames.dtypes_of(operation_sweep)
    named = (
        [dtypes]
        if dtypes
        else [name for name in usable if frames.able_chips(operation_sweep, names, name)]
    )
    selection = results.select(sweep, names, named[:MAX_DTYPES])
    rows = _rows(selection, (model, shape, split), by)
    across, down, title, up = _table(selection, by, model)
    margins, room = (SIZE_MARGINS, 3.2) if up else (MARGINS, NAME_ROOM)
    columns, row_values = (_values(selection, rows, key) for key in (across, down))
    cells = grid.to_cells(rows, across, down, columns, row_values)
    texts = ["never" if c is None else count(c) for c in cells["critical"]]
    below = [None if size is None else count(size) for size in cells["reached"]]
    cells = grid.with_texts(cells, margins, texts, below)
    names_at = grid.axis_names(across, columns), grid.axis_names(down, row_values)
    axis = _solved_dim(operation_sweep)
    claim = first_true(_sentences(selection, cells, by, axis, model))
    shown = ("x", "y", "critical", "exact", "text")
    tips = (across, down, "limit") if up else (down, across, "limit")
    room_for = ("below", "on", "on_narrow", "two", "two_narrow")
    return View(
        claim,
        _subtitle(selection, cells, axis, split),
        _layers((title, up), axis, tips),
        {"cells": cells.select(*shown, *room_for, *tips)},
        margins,
        rows.drop("reached"),
        {**grid.grid_params(margins, *names_at, room), "lowest": _lowest(cells)},
        (*names, *([model] if model else []), *([shape] if shape else [])),
    )


def _rows(
    selection: Selection, choice: tuple[str | None, str | None, str | None], by: str
) -> pl.DataFrame:
    """Thresholds by cell; `reached` is the size that attains the largest share below 1."""
    model, shape, split = choice
    axis, other_dims = (
        _solved_dim(selection.sweep),
        [dim for dim in selection.dims if dim != _solved_dim(selection.sweep)],
    )
    rows = selection.thresholds().filter(selection.split_filter(split), axis=axis)
    layers = layers_run(selection.sweep, model) if model else {}
    if model:
        rows = rows.filter(pl.col("shape").is_in(list(layers.values())))
    if shape:
        rows = rows.filter(pl.col("shape") == shape)
    shares = frames.shares_below_peak(selection.sweep)[:1]
    keys = ["chip", "dtypes", "memory", "network", "sharding", "shards", "shape", *other_dims]
    thresholds = rows.filter(share=1.0).select(
        *keys,
        "unit",
        "axis",
        "share",
        "critical",
        "limit",
        exact="critical_exact",
        rule="rule_of_thumb",
    )
    near = rows.filter(share=shares[0] if shares else 0.0).select(*keys, reached="critical")
    joined = thresholds.join(near, on=keys, how="left", nulls_equal=True, maintain_order="left")
    frame = joined.collect()
    if by == SPLITS:
        frame = frame.unique([*keys[:4], "shards", "shape"], keep="first", maintain_order=True)
    if by == DTYPES and not shape:
        frame = frames.at_largest(frame, other_dims)
    names = {value: key for key, value in layers.items()}
    if not names:
        return frame.with_columns(layer=pl.col("shape"))
    return frame.with_columns(layer=pl.col("shape").replace_strict(names, default=None))


def _table(selection: Selection, by: str, model: str | None) -> tuple[str, str, str, str | None]:
    """Columns along x and y, and axis titles; None: no title."""
    if by == CHIPS:
        return "layer", "chip", f"Layers of {chip_label(model)}" if model else "Layers", None
    if by == DTYPES:
        return "dtypes", "chip", "Data types", None
    if by == SPLITS:
        return "shards", "layer", "Chips", None
    across, down = matrix_dims(selection.sweep)
    meaning = {"D": "D (contracting dimension)", "F": "F (output dimension)"}
    return across, down, meaning.get(across, across), meaning.get(down, down)


def _values(selection: Selection, rows: pl.DataFrame, key: str) -> list[Any]:
    """Values of a column in table order."""
    values = rows[key].unique(maintain_order=True).to_list()
    if key == "chip":
        means = rows.group_by("chip").agg(pl.col("critical").mean())
        ranked = means.sort("critical", "chip", nulls_last=True)["chip"].to_list()
        return ranked[:MAX_ROWS]
    if key == "dtypes":
        return [name for name in selection.dtypes if name in values]
    if key == "layer":
        places = {
            shape.name: place for place, shape in enumerate(selection.sweep.config.shapes or ())
        }
        shapes = dict(rows.select("layer", "shape").iter_rows())
        return sorted(values, key=lambda layer: places[shapes[layer]])[:MAX_COLUMNS]
    sizes = frames.few_sizes(sorted(values), MAX_COLUMNS)
    return sizes if key == "shards" or key == matrix_dims(selection.sweep)[0] else sizes[::-1]


def _lowest(cells: pl.DataFrame) -> float:
    """Start of the colour scale: the smallest number, rounded down to two digits."""
    least = frames.lowest(cells, "critical")
    power = 10.0 ** (math.floor(math.log10(least)) - 1)
    return max(math.floor(least / power) * power, 1.0)


def _layers(titles: tuple[str, str | None], axis: str, tips: Sequence[str]) -> list[Layer]:
    """Layers: cells, "never" in grey, and their numbers."""
    x, y = grid.grid_axes(*titles)
    about = grid.cell_tips(tips)
    about += kit.tips(text=f"critical {axis}", exact="exactly", below="for less of the peak")
    steps = ", ".join(f"lowest * {2**i}" for i in range(int(math.log2(SPREAD)) + 1))
    many = f"(datum.value >= lowest * {SPREAD:g} ? '≥ ' : '') + format(datum.value, ',d')"
    legend = {
        "title": f"Critical {axis}",
        "values": kit.expr(f"[{steps}]"),
        "labelExpr": many,
        "gradientLength": kit.expr("height * 0.72"),
    }
    scale = {
        "type": "log",
        "domainMin": kit.expr("lowest"),
        "domainMax": kit.expr(f"lowest * {SPREAD:g}"),
        "clamp": True,
        "range": "heatmap",
        "nice": False,
    }
    colour = {"color": kit.quantitative_channel("critical", scale=scale, legend=legend)}
    never, solved = "datum.critical == null", "datum.critical != null"
    high = f"datum.critical > lowest * {SPREAD**DARK_FROM:.12g}"
    styles = {"cell-low": f"{solved} && !({high})", "cell-high": high, "cell-never": never}
    return [
        grid.cell_layer(x, y, about, {}, where=never),
        grid.cell_layer(x, y, about, colour, where=solved),
        *(layer for name, at in styles.items() for layer in grid.text_layers(x, y, name, at)),
        *([] if titles[1] else [kit.heading(f"Smallest compute-bound {axis}")]),
    ]


def _subtitle(selection: Selection, cells: pl.DataFrame, axis: str, split: str | None) -> str:
    """Subtitle: chip, dtypes, split and fixed sizes."""
    chips, dtypes = cells["chip"].unique(), cells["dtypes"].unique()
    on = f" on {on_chips(chips[0], cells['shards'])}" if len(chips) == 1 else ""
    dtype = f" in {dtypes[0]}" if len(dtypes) == 1 else ""
    setting = frames.fixed_text(cells, [dim for dim in selection.dims if dim != axis])
    setting = f", {setting}" if setting and not cells["layer"].n_unique() > 1 else ""
    rule = cells["rule"].drop_nulls().unique()
    limit = f" Large matrices: {count(math.ceil(rule[0]))}." if len(rule) == 1 else ""
    shares = frames.shares_below_peak(selection.sweep)
    near = f" Small: for {100 * shares[0]:g} % of the peak." if shares else ""
    across = f", split {split}" if split else ""
    expert = " Layers of experts: tokens per expert." * bool(frames.per_expert(cells["layer"]))
    return (
        f"Smallest compute-bound {axis}{dtype}{on}{across}{setting}, every byte counted."
        f"{limit}{near}{expert}"
    )


def _sentences(
    selection: Selection, cells: pl.DataFrame, by: str, axis: str, model: str | None
) -> Iterator[Sentence]:
    """Candidate titles, the strongest first."""
    names = ("chip", "layer", "critical", "limit")
    rows = cells.select(names).to_dicts()
    chips = cells["chip"].unique(maintain_order=True).to_list()
    dtypes = cells["dtypes"].unique(maintain_order=True).to_list()
    subject = f"{chip_label(model)}: " if model else ""
    dtype = dtypes[0] if len(dtypes) == 1 else "all dtypes shown"
    per = frames.per_expert(cells["layer"])
    chip = chips[0] if len(chips) == 1 else None
    if chip is not None:
        on, never = chip_label(chip), [row for row in rows if row["critical"] is None]
        solved = [row for row in rows if row["critical"] is not None]
        starts = (
            int(dimension_sizes(selection.sweep, axis)[0])
            if dimension_sizes(selection.sweep, axis)
            else 1
        )
        reasons = {row["limit"] for row in never}
        blames = str(next(iter(reasons))) if len(reasons) == 1 else None
        reason_text = f": {blames} limits" if blames else ""
        cases = "cases" if by == SPLITS else "sizes"
        if not solved:
            yield Sentence(
                text=f"{subject}{on} is never compute-bound in {dtype}{per}{reason_text}",
                rows=rows,
                chosen=chip,
                blames=blames,
            )
        elif never:
            share = f"{len(never):,} of {len(rows):,} {cases} shown"
            of_expert = f", {axis}{per}," if per else ""
            text = f"{share}{of_expert} are never compute-bound on {on}"
            whole = (
                f"{text}{reason_text}" if title_fits(f"{text}{reason_text}", SIZE_MARGINS) else text
            )
            yield Sentence(text=whole, rows=never, chosen=chip, blames=blames)
        else:
            span = sizes_text(axis, [row["critical"] for row in solved])
            yield Sentence(
                text=f"{subject}{on} needs {span}{per} for {dtype}",
                rows=solved,
                chosen=chip,
                starts=starts,
            )
    elif by == CHIPS:
        sweep = selection.sweep
        able = frames.able_chips(sweep, frames.chips_with_rows(sweep), dtype)
        yield from _sentences_by_chip(sweep, rows, axis, f"{subject}{dtype}{per}", able)
    of_model = f" for {chip_label(model)}" if model else ""
    on = counted(len(chips), "chip")
    yield Sentence(text=f"Critical {axis}{per} of {on} in {dtype}{of_model}")


def _sentences_by_chip(
    sweep: Sweep,
    rows: Sequence[Mapping[str, Any]],
    axis: str,
    subject: str,
    able: Sequence[str],
) -> Iterator[Sentence]:
    """Candidate titles of a table of layers by chip: sizes of each chip, or of all.

    Args:
        sweep: The operation sweep.
        rows: The table's cells.
        axis: The dimension that is solved for.
        subject: Model and dtypes, as the title starts.
        able: All chips that have these dtypes.
    """
    chips = [*dict.fromkeys(row["chip"] for row in rows)]
    never = [row for row in rows if row["critical"] is None]
    about: dict[str, Any] = {"rows": rows, "every": able}
    if never:
        text = f"{subject}: {len(never):,} of {len(rows):,} cells are never compute-bound"
        yield Sentence(text=text, **about)
        return
    sizes = dimension_sizes(sweep, axis)
    about["starts"] = int(sizes[0]) if sizes else 1
    spans = {
        chip: sizes_text(axis, [row["critical"] for row in rows if row["chip"] == chip])
        for chip in chips
    }
    by_chip = ", ".join(f"{span} on {chip_label(chip)}" for chip, span in spans.items())
    text = f"{subject}: compute-bound from {by_chip}"
    if len(chips) <= MAX_CHIPS_SAID or title_fits(text, MARGINS):
        yield Sentence(text=text, **about)
    span = sizes_text(axis, [row["critical"] for row in rows])
    text = f"{subject}: compute-bound from {span} on {counted(len(chips), 'chip')}"
    yield Sentence(text=text, **about)


def _preferred(sweep: Sweep) -> tuple[int, ...]:
    return sweep.unit != "matrix", not _has_size_grid(sweep), -len(frames.chips_with_rows(sweep))


KIND = Kind(
    name="critical",
    menus=menus,
    view=view,
    needs=(
        Need(
            "`thresholds` of a dimension, with 1 among its `shares`",
            lambda s: _solved_dim(s) in s.solved and 1 in s.config.shares,
        ),
        Need(
            "two dimensions of several sizes, or several chips and dtypes or layers",
            lambda s: bool(_tables_of(s)),
        ),
    ),
    preferred=_preferred,
    multi_chip=True,
    max_chips=9,
)
