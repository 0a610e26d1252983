"""Requests over context: the exact need beside the pools of serving engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.answers.claims import Sentence, first_true
from rooflines.basics.lazy import pl
from rooflines.basics.text import count, significant
from rooflines.charts import frames
from rooflines.charts.chart_models import named_model
from rooflines.charts.frames import dtypes_by_chip
from rooflines.charts.kit import label_placement
from rooflines.charts.kit import layers as kit
from rooflines.charts.kit.chart_text import chip_label, shorten, with_value
from rooflines.charts.kit.label_placement import Plane
from rooflines.charts.kit.themes import Margins
from rooflines.charts.kit.titles import title_fits
from rooflines.charts.options import Menu
from rooflines.charts.views import Kind, Need, View
from rooflines.dictionary.columns import EXACT_BATCH

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.charts.chart_data import Results
    from rooflines.charts.kit.layers import Layer
    from rooflines.charts.options import Option
    from rooflines.sweep.step_sweep import ModelSweep

MARGINS, NAME_ROOM = Margins(left=4.6, right=16.0), 15.2
"""Margins, and the width of a name right of the plot [em]."""

EXACT = "exact need"
"""Series with the requests whose caches fit beside the weights."""

AXIS_ROOM = 1.3
"""Factor by which the axis of requests extends beyond the values [1]."""

MIN_CONTEXTS = 3
"""Contexts from which on a line shows something [1]."""


def menus(sweep: ModelSweep, choice: Mapping[str, Option]) -> list[Menu]:
    """Menus: chip, model, dtypes and split."""
    by_chip = dtypes_by_chip(sweep)
    chip = choice.get("chip", next(iter(by_chip), None))
    offered = by_chip.get(str(chip), set())
    cases = [case for case in sweep.cases if case.chip == chip]
    return [
        Menu("chip", tuple(by_chip)),
        Menu("model", tuple(sweep.models)),
        Menu("dtypes", tuple(name for name in sweep.combinations if name in offered)),
        Menu("split", tuple(dict.fromkeys(case.split.name for case in cases))),
    ]


def view(results: Results, sweep: str, _: Sequence[str], choice: Mapping[str, Any]) -> View:
    """Draw the exact need and every engine's pool of one model on one chip, per replica."""
    model_sweep = results.model_sweep(sweep)
    rows = _rows(results.rows(sweep).filter(**choice))
    lines = _lines(rows)
    low, high = frames.lowest(lines, "S"), frames.highest(lines, "S")
    bottom, top = frames.lowest(lines, "requests"), frames.highest(lines, "requests")
    span = (low, high if high > low else 2 * low)
    plane = Plane(span, (bottom / AXIS_ROOM, top * AXIS_ROOM))
    series = lines["series"].unique(maintain_order=True).to_list()
    chip, model, dtypes = choice["chip"], choice["model"], choice["dtypes"]
    claim = first_true(_sentences(rows, chip, named_model(model_sweep, model, dtypes)))
    split = f", {choice['split']}, a replica" if choice["split"] != "tp1" else ""
    subtitle = (
        f"{chip_label(model)} in {dtypes} on {chip_label(chip)}{split}. Exact need: weights and "
        "caches alone. Numbers: at the longest context."
    )
    return View(
        claim,
        subtitle,
        _layers(series),
        {"lines": lines, "names": _names(lines, plane)},
        MARGINS,
        rows,
        kit.plane_params(plane, kit.powers_of_two(*span)),
        (model, chip, *series),
    )


def _rows(rows: pl.LazyFrame) -> pl.DataFrame:
    """Pools by engine and context; batches and further axes once."""
    keys = ("engine", "engine_version", "S")
    columns = ("chip", "model", "dtypes", "split", "dp", EXACT_BATCH, "pool_bytes", "concurrency")
    chosen = rows.select(*keys, *columns).unique(keys, keep="first", maintain_order=True)
    return chosen.collect().sort("S", maintain_order=True)


def _lines(rows: pl.DataFrame) -> pl.DataFrame:
    """Requests above zero by series and context, the exact need first [1]."""
    exact = rows.unique("S", keep="first", maintain_order=True).select(
        "S", series=pl.lit(EXACT), requests=pl.col(EXACT_BATCH) / pl.col("dp")
    )
    label, version = (pl.col(key).cast(pl.String) for key in ("engine", "engine_version"))
    words = label.str.splitn(" ", 2).struct
    options = pl.concat_str(pl.lit(" "), words.field("field_1"))
    name = pl.format("{} {}{}", words.field("field_0"), version, options.fill_null(""))
    pools = rows.select("S", series=name, requests=pl.col("concurrency"))
    pools = pools.sort("series", "S", maintain_order=True)
    lines = pl.concat([exact, pools], how="vertical_relaxed").drop_nulls("requests")
    return lines.filter(pl.col("requests") > 0)


def _names(lines: pl.DataFrame, plane: Plane) -> pl.DataFrame:
    """Place names right of the plot, with the requests at the longest context."""
    ends = lines.group_by("series", maintain_order=True).last()
    texts = [
        with_value(shorten(name, NAME_ROOM), significant(requests), NAME_ROOM)
        for name, requests in ends.select("series", "requests").iter_rows()
    ]
    table = ends.select("series", "requests").with_columns(text=pl.Series(texts, dtype=pl.String))
    return table.hstack(label_placement.at_ends(MARGINS, plane, table["requests"].to_list()))


def _layers(series: Sequence[str]) -> list[Layer]:
    """Layers: lines with dots, and names at the right edge."""
    across = kit.log_axis("x", "Context S (tokens)", kit.COUNT_LABEL, grid=False)
    across["scale"]["base"] = 2
    x = kit.quantitative_channel("S", **across)
    y = kit.quantitative_channel("requests", **kit.log_axis("y", "Requests", kit.SHORT_LABEL))
    ramp = {"legend": None, "scale": {"domain": list(series), "range": "ramp"}}
    colour = kit.nominal_channel("series", **ramp)
    tips = kit.tips(series="series", S="context S", requests="requests")
    at: Layer = {"x": x, "y": y, "color": colour, "tooltip": tips}
    named: Layer = {"x": {"value": kit.expr("width")}, "y": y, "color": colour}
    return [
        kit.layer("lines", "line", "curve", at),
        kit.layer("lines", "point", "dot", at),
        *kit.labels("names", "value", named, halo=False, clip=False),
    ]


def _sentences(rows: pl.DataFrame, chip: str, model: str) -> Iterator[Sentence]:
    """Candidate titles, the strongest first."""
    about: dict[str, Any] = {"rows": [{"chip": chip}], "chosen": chip}
    fitting = rows.filter(pl.col("concurrency") > 0, pl.col(EXACT_BATCH) > 0)
    if fitting.height:
        share = pl.col("concurrency") * pl.col("dp") / pl.col(EXACT_BATCH)
        least = fitting.with_columns(share=share).sort("share").row(0, named=True)
        exact = least[EXACT_BATCH] / least["dp"]
        if least["share"] < 1:
            pool = f"{least['engine']} holds {significant(least['concurrency'])} requests"
            for text in (
                f"{model}: {pool} of {count(least['S'])} tokens where {count(exact)} would fit",
                f"{pool} of {count(least['S'])} tokens where {count(exact)} would fit",
            ):
                if title_fits(text, MARGINS):
                    yield Sentence(text=text, **about)
    yield Sentence(text=f"{model}: requests by context on {chip_label(chip)}", **about)


KIND = Kind(
    name="requests",
    source="model_sweeps",
    menus=menus,
    view=view,
    needs=(
        Need("`engine`", lambda s: s.config.engine is not None),
        Need("contexts S in its grid, not `requests`", lambda s: not s.config.requests),
        Need("no T in its grid: one new token a step", lambda s: s.new_tokens is None),
        Need("a chip with a known memory capacity", lambda s: bool(dtypes_by_chip(s))),
        Need(f"{MIN_CONTEXTS} contexts", lambda s: len(s.contexts) >= MIN_CONTEXTS, auto=True),
    ),
    reads=(EXACT_BATCH, "pool_bytes", "concurrency"),
)
