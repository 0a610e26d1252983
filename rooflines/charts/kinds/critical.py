"""Critical sizes as a table of cells: over two sizes, layers, dtypes, chips and how many."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rooflines.answers.claims import Sentence, first_true
from rooflines.basics.lazy import pl
from rooflines.basics.text import count, counted
from rooflines.charts import frames, grid
from rooflines.charts.chart_models import layers_by_model, layers_run
from rooflines.charts.frames import SHORT_AXIS, TWO, dimension_sizes, has_axis, pair_of
from rooflines.charts.kit import layers as kit
from rooflines.charts.kit.chart_text import chip_label, on_chips, sizes_text
from rooflines.charts.kit.themes import Margins
from rooflines.charts.kit.titles import title_fits
from rooflines.charts.options import Menu, chosen, shape_menus, split_menus
from rooflines.charts.views import Kind, Need, View

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.charts.chart_data import Results, Selection
    from rooflines.charts.kit.layers import Layer
    from rooflines.charts.options import Option
    from rooflines.sweep.operation_sweep import Sweep

MARGINS, NAME_ROOM = Margins(left=10.4, right=8.6), 9.5
OF_SIZES = Margins(left=4.2, right=8.6)

SPREAD = 16.0
"""Above this multiple of the smallest number the colour does not change."""

DARK_FROM = 0.6
"""Share of the colour scale from which on numbers have the other colour, for a contrast of 4.5."""

MOST_ROWS, MOST_COLUMNS, MOST_DTYPES = 14, 14, 9
"""Rows and columns of a table, and columns of dtypes, whose names are long [1]."""

CHIPS, DTYPES, SPLITS = "layer x chip", "chip x dtypes", "layer x chips each"


def _shaped(sweep: Sweep) -> bool:
    """Whether shapes set every dimension but the first, which has an axis of its own."""
    before, after = sweep.axes
    shaped = all("shape" in axis.columns or axis.count == 1 for axis in after)
    return bool(sweep.config.shapes) and bool(before) and shaped


def _lead(sweep: Sweep) -> str:
    """The dimension that is solved for."""
    return next((dim for dim in sweep.op.dims if dim in sweep.solved), sweep.op.dims[0])


def _free(sweep: Sweep) -> bool:
    """Whether two other dimensions have several sizes, each an axis of its own."""
    pair = pair_of(sweep)
    return len(pair) == TWO and all(
        has_axis(sweep, dim) and len(dimension_sizes(sweep, dim)) >= SHORT_AXIS for dim in pair
    )


def _able(sweep: Sweep) -> list[str]:
    """The tables that a sweep has."""
    several = len(frames.chips_with_rows(sweep)) > 1
    found = [" x ".join(pair_of(sweep))] if _free(sweep) else []
    found += [CHIPS] if _shaped(sweep) and several else []
    found += [DTYPES] if several and len(frames.dtypes_of(sweep)) > 1 else []
    return found + ([SPLITS] if _shaped(sweep) and len(sweep.counts) >= SHORT_AXIS else [])


def menus(sweep: Sweep, given: Mapping[str, Option]) -> list[Menu]:
    """The table, and what all of its cells share."""
    able = tuple(_able(sweep))
    by = chosen(given, "by", able)
    tables = [Menu("by", able)]
    models = [Menu("model", tuple(layers_by_model(sweep.config.shapes or ())))]
    if by == DTYPES:
        return [*tables, *shape_menus(sweep)]
    if by == CHIPS:
        return [*tables, *models, Menu("dtypes", frames.dtypes_of(sweep))]
    chips = tuple(frames.chips_with_rows(sweep))
    chip = chosen(given, "chip", chips)
    found = [*tables, Menu("chip", chips), Menu("dtypes", frames.dtypes_of(sweep, [chip]))]
    return [*found, *models, *split_menus(sweep, chip)] if by == SPLITS else found


def view(results: Results, sweep: str, chips: Sequence[str], choice: Mapping[str, Any]) -> View:
    """A table of critical sizes. Tables of several chips have those of `chips`."""
    by, split = choice["by"], choice.get("split")
    chip, dtypes, model, shape = map(choice.get, ("chip", "dtypes", "model", "shape"))
    own = results.sweep(sweep)
    names = [chip] if chip else list(chips) or frames.chips_with_rows(own)[:MOST_ROWS]
    able = frames.dtypes_of(own)
    named = [dtypes] if dtypes else [name for name in able if frames.able_chips(own, names, name)]
    of = results.of(sweep, names, named[:MOST_DTYPES])
    rows = _rows(of, (model, shape, split), by)
    across, down, title, up = _table(of, by, model)
    margins, room = (OF_SIZES, 3.2) if up else (MARGINS, NAME_ROOM)
    columns, ups = (_values(of, rows, key) for key in (across, down))
    cells = grid.gridded(rows, across, down, columns, ups)
    texts = ["never" if c is None else count(c) for c in cells["critical"]]
    below = [None if each is None else count(each) for each in cells["reached"]]
    cells = grid.with_texts(cells, margins, texts, below)
    names_at = grid.names_of(across, columns), grid.names_of(down, ups)
    lead = _lead(own)
    says = first_true(_sentences(of, cells, by, lead, model))
    shown = ("x", "y", "critical", "exact", "text")
    tips = (across, down, "limit") if up else (down, across, "limit")
    room_for = ("below", "on", "on_narrow", "two", "two_narrow")
    return View(
        says,
        _subtitle(of, cells, lead, split),
        _layers((title, up), lead, tips),
        {"cells": cells.select(*shown, *room_for, *tips)},
        margins,
        rows.drop("reached"),
        {**grid.grid_params(margins, *names_at, room), "lowest": _lowest(cells)},
        (*names, *([model] if model else []), *([shape] if shape else [])),
    )


def _rows(
    of: Selection, chosen: tuple[str | None, str | None, str | None], by: str
) -> pl.DataFrame:
    """Thresholds of the table's cells, with the size for the next share of the peak, `reached`."""
    model, shape, split = chosen
    lead, others = _lead(of.sweep), [dim for dim in of.dims if dim != _lead(of.sweep)]
    rows = of.thresholds().filter(of.over(split), axis=lead)
    layers = layers_run(of.sweep, model) if model else {}
    if model:
        rows = rows.filter(pl.col("shape").is_in(list(layers.values())))
    if shape:
        rows = rows.filter(pl.col("shape") == shape)
    shares = frames.shares_below_peak(of.sweep)[:1]
    keys = ["chip", "dtypes", "memory", "network", "sharding", "shards", "shape", *others]
    found = rows.filter(share=1.0).select(
        *keys,
        "unit",
        *("axis", "share", "critical", "limit"),
        exact="critical_exact",
        rule="rule_of_thumb",
    )
    near = rows.filter(share=shares[0] if shares else 0.0).select(*keys, reached="critical")
    joined = found.join(near, on=keys, how="left", nulls_equal=True, maintain_order="left")
    frame = joined.collect()
    if by == SPLITS:
        frame = frame.unique([*keys[:4], "shards", "shape"], keep="first", maintain_order=True)
    if by == DTYPES and not shape:
        frame = frames.at_largest(frame, others)
    names = {value: key for key, value in layers.items()}
    if not names:
        return frame.with_columns(layer=pl.col("shape"))
    return frame.with_columns(layer=pl.col("shape").replace_strict(names, default=None))


def _table(of: Selection, by: str, model: str | None) -> tuple[str, str, str, str | None]:
    """What goes across and down, and the titles of both; None: names need no title."""
    if by == CHIPS:
        return "layer", "chip", f"Layers of {chip_label(model)}" if model else "Layers", None
    if by == DTYPES:
        return "dtypes", "chip", "Data types", None
    if by == SPLITS:
        return "shards", "layer", "Chips that share the work", None
    across, down = pair_of(of.sweep)
    meaning = {"D": "D (contracting dimension)", "F": "F (output dimension)"}
    return across, down, meaning.get(across, across), meaning.get(down, down)


def _values(of: Selection, rows: pl.DataFrame, key: str) -> list[Any]:
    """The values of a column in the order of the table."""
    known = rows[key].unique(maintain_order=True).to_list()
    if key == "chip":
        means = rows.group_by("chip").agg(pl.col("critical").mean())
        ranked = means.sort("critical", "chip", nulls_last=True)["chip"].to_list()
        return ranked[:MOST_ROWS]
    if key == "dtypes":
        return [name for name in of.dtypes if name in known]
    if key == "layer":
        places = {shape.name: place for place, shape in enumerate(of.sweep.config.shapes or ())}
        shapes = dict(rows.select("layer", "shape").iter_rows())
        return sorted(known, key=lambda layer: places[shapes[layer]])[:MOST_COLUMNS]
    sizes = frames.few_sizes(sorted(known), MOST_COLUMNS)
    return sizes if key == "shards" or key == pair_of(of.sweep)[0] else sizes[::-1]


def _lowest(cells: pl.DataFrame) -> float:
    """The start of the colour scale: the smallest number, rounded down to two digits."""
    least = frames.lowest(cells, "critical")
    power = 10.0 ** (math.floor(math.log10(least)) - 1)
    return max(math.floor(least / power) * power, 1.0)


def _layers(titles: tuple[str, str | None], lead: str, tips: Sequence[str]) -> list[Layer]:
    """Cells, never in grey, and their numbers."""
    x, y = grid.grid_axes(*titles)
    about = grid.tips_of(tips)
    about += kit.tips(text=f"critical {lead}", exact="exactly", below="for less of the peak")
    steps = ", ".join(f"lowest * {2**i}" for i in range(int(math.log2(SPREAD)) + 1))
    many = f"(datum.value >= lowest * {SPREAD:g} ? '≥ ' : '') + format(datum.value, ',d')"
    legend = {
        "title": f"Critical {lead}",
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
    colour = {"color": kit.quantity("critical", scale=scale, legend=legend)}
    never, known = "datum.critical == null", "datum.critical != null"
    high = f"datum.critical > lowest * {SPREAD**DARK_FROM:.12g}"
    styles = {"cell-low": f"{known} && !({high})", "cell-high": high, "cell-never": never}
    return [
        grid.cell_layer(x, y, about, {}, where=never),
        grid.cell_layer(x, y, about, colour, where=known),
        *(each for name, at in styles.items() for each in grid.text_layers(x, y, name, at)),
        *([] if titles[1] else [kit.heading(f"Smallest compute-bound {lead}")]),
    ]


def _subtitle(of: Selection, cells: pl.DataFrame, lead: str, split: str | None) -> str:
    """The setting."""
    chips, dtypes = cells["chip"].unique(), cells["dtypes"].unique()
    on = f" on {on_chips(chips[0], cells['shards'])}" if len(chips) == 1 else ""
    what = f" in {dtypes[0]}" if len(dtypes) == 1 else ""
    setting = frames.fixed_text(cells, [dim for dim in of.dims if dim != lead])
    setting = f", {setting}" if setting and not cells["layer"].n_unique() > 1 else ""
    rule = cells["rule"].drop_nulls().unique()
    limit = f" Large matrices: {count(math.ceil(rule[0]))}." if len(rule) == 1 else ""
    shares = frames.shares_below_peak(of.sweep)
    near = f" Small: for {100 * shares[0]:g} % of the peak." if shares else ""
    across = f", split {split}" if split else ""
    expert = " Layers of experts: tokens per expert." * bool(frames.per_expert(cells["layer"]))
    return (
        f"Smallest compute-bound {lead}{what}{on}{across}{setting}, every byte counted."
        f"{limit}{near}{expert}"
    )


def _sentences(
    of: Selection, cells: pl.DataFrame, by: str, lead: str, model: str | None
) -> Iterator[Sentence]:
    """What may be said, the strongest first."""
    names = ("chip", "layer", "critical", "limit")
    rows = cells.select(names).to_dicts()
    chips = cells["chip"].unique(maintain_order=True).to_list()
    dtypes = cells["dtypes"].unique(maintain_order=True).to_list()
    subject = f"{chip_label(model)}: " if model else ""
    what = dtypes[0] if len(dtypes) == 1 else "all dtypes shown"
    per = frames.per_expert(cells["layer"])
    chosen = chips[0] if len(chips) == 1 else None
    if chosen is not None:
        on, never = chip_label(chosen), [row for row in rows if row["critical"] is None]
        needed = [row for row in rows if row["critical"] is not None]
        starts = int(dimension_sizes(of.sweep, lead)[0]) if dimension_sizes(of.sweep, lead) else 1
        reason = {row["limit"] for row in never}
        blames = str(next(iter(reason))) if len(reason) == 1 else None
        why = f": {blames} limits" if blames else ""
        cases = "cases" if by == SPLITS else "sizes"
        if not needed:
            yield Sentence(
                text=f"{subject}{on} is never compute-bound in {what}{per}{why}",
                rows=rows,
                chosen=chosen,
                blames=blames,
            )
        elif never:
            some = f"{len(never):,} of {len(rows):,} {cases} shown"
            of_expert = f", {lead}{per}," if per else ""
            text = f"{some}{of_expert} are never compute-bound on {on}"
            whole = f"{text}{why}" if title_fits(f"{text}{why}", OF_SIZES) else text
            yield Sentence(text=whole, rows=never, chosen=chosen, blames=blames)
        else:
            span = sizes_text(lead, [row["critical"] for row in needed])
            yield Sentence(
                text=f"{subject}{on} needs {span}{per} for {what}",
                rows=needed,
                chosen=chosen,
                starts=starts,
            )
    of_model = f" for {chip_label(model)}" if model else ""
    on = counted(len(chips), "chip")
    yield Sentence(text=f"Critical {lead}{per} of {on} in {what}{of_model}")


def _preferred(sweep: Sweep) -> tuple[int, ...]:
    return sweep.unit != "matrix", not _free(sweep), -len(frames.chips_with_rows(sweep))


KIND = Kind(
    name="critical",
    menus=menus,
    view=view,
    needs=(
        Need(
            "`thresholds` of a dimension, with 1 among its `shares`",
            lambda s: _lead(s) in s.solved and 1 in s.config.shares,
        ),
        Need(
            "two dimensions of several sizes, or several chips and dtypes or layers",
            lambda s: bool(_able(s)),
        ),
    ),
    preferred=_preferred,
    compares=True,
    most_chips=9,
)
