"""Training plans compared: each plan's step from its bound to its kernels one after another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.answers.best_plans import PLAN_TIE
from rooflines.answers.claims import Sentence, first_true
from rooflines.basics.errors import RooflinesError
from rooflines.basics.lazy import pl
from rooflines.basics.text import seconds, si, whole_percent
from rooflines.charts import frames
from rooflines.charts.chart_models import named_model
from rooflines.charts.frames import BAND, dtypes_by_chip
from rooflines.charts.kit import layers as kit
from rooflines.charts.kit.chart_text import chip_label, on_chips
from rooflines.charts.kit.themes import Margins
from rooflines.charts.options import Menu
from rooflines.charts.views import Kind, Need, View
from rooflines.models.architecture import TRAIN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.charts.chart_data import Results
    from rooflines.charts.kit.layers import Layer
    from rooflines.charts.options import Option
    from rooflines.sweep.step_sweep import ModelSweep

MARGINS, NAME_ROOM = Margins(left=12.4, right=7.4), 11.8

MAX_ROWS = 12
"""Maximum plans drawn [1]; the subtitle counts all that fit."""

HALF_BAR = 0.3
"""Half of a bar's height [rows]."""

LOWER, SERIAL, MEMORY_BYTES = "t_lower_s", "t_serial_s", "peak_bytes"


def menus(sweep: ModelSweep, choice: Mapping[str, Option]) -> list[Menu]:
    """Menus: model, chip, dtypes, batch and sequence length."""
    offered = dtypes_by_chip(sweep)
    dtypes = offered.get(str(choice.get("chip", next(iter(offered), ""))), set())
    return [
        Menu("model", tuple(sweep.models)),
        Menu("chip", tuple(offered)),
        Menu("dtypes", tuple(name for name in sweep.combinations if name in dtypes)),
        Menu("B", tuple(sweep.batches)),
        Menu("S", tuple(sweep.contexts)),
    ]


def view(results: Results, sweep: str, _: Sequence[str], choice: Mapping[str, Any]) -> View:
    """Draw the plans that fit, the least time with kernels one after another on top."""
    model, chip, dtypes = (choice[menu] for menu in ("model", "chip", "dtypes"))
    model_sweep = results.model_sweep(sweep)
    plans = _plans(results, sweep, choice)
    fitting = plans.filter("fits").sort(SERIAL, LOWER, "split")
    drawn = fitting.head(MAX_ROWS)
    bars = _bars(drawn)
    top = max(frames.highest(bars, name, otherwise=0.0) for name in ("high", "estimate"))
    named = named_model(model_sweep, model, dtypes)
    return View(
        first_true(_sentences(fitting, chip_label(model), {"chosen": chip}, named)),
        _subtitle(fitting, plans, choice),
        _layers(),
        {"bars": bars, "dots": bars.drop_nulls("estimate")},
        MARGINS,
        plans.sort(~pl.col("fits"), SERIAL, "split"),
        kit.bar_params(bars["name"].to_list(), NAME_ROOM, top * 1.02),
        (chip, model),
    )


def _plans(results: Results, sweep: str, choice: Mapping[str, Any]) -> pl.DataFrame:
    """Rows of a model's plans at one batch and sequence length, each plan once."""
    rows = results.rows(sweep).filter(phase=TRAIN, **choice)
    rows = frames.with_missing(rows, BAND[0])
    keys = ("model", "chip", "dtypes", "split", "chips", "B", "S", "fits")
    frame = rows.select(*keys, LOWER, SERIAL, BAND[0], "mfu_serial", MEMORY_BYTES).collect()
    frame = frame.drop_nulls("fits").with_columns(pl.col("split").cast(pl.String))
    frame = frame.unique("split", keep="first", maintain_order=True)
    common = _common_words(frame["split"].to_list())
    names = [
        "-".join(word for word in split.split("-") if word not in common)
        for split in frame["split"]
    ]
    frame = frame.with_columns(name=pl.Series(names, dtype=pl.String))
    if not frame["fits"].any():
        problem = f"has no plan of {choice['model']} that fits on {choice['chip']}"
        raise RooflinesError("chip", problem, "choose more chips, or recomputation")
    return frame


def _common_words(splits: Sequence[str]) -> list[str]:
    """Words without a number that the names of all plans have, such as `selective`."""
    first, *rest = (split.split("-") for split in splits)
    return [
        word for word in first if rest and word.isalpha() and all(word in words for words in rest)
    ]


def _bars(plans: pl.DataFrame) -> pl.DataFrame:
    """Bars with their texts, from the top row down."""
    row = pl.int_range(pl.len())
    texts = [
        f"{seconds(time)} · {si(peak, 'B')}"
        for time, peak in plans.select(SERIAL, MEMORY_BYTES).iter_rows()
    ]
    return plans.select(
        "split",
        "name",
        zero=pl.lit(0.0),
        low=pl.col(LOWER),
        high=pl.col(SERIAL),
        estimate=pl.col(BAND[0]),
        row=row.cast(pl.Int64),
        top=row - HALF_BAR,
        bottom=row + HALF_BAR,
        text=pl.Series(texts, dtype=pl.String),
        mfu="mfu_serial",
    )


def _layers() -> list[Layer]:
    across, down = kit.bar_axes("Time of a step", kit.TIME_LABEL)
    tips = kit.tips(
        split="plan",
        low="at least, s",
        estimate="estimate, s",
        high="kernels one after another, s",
        mfu="MFU with kernels one after another",
    )
    y = kit.quantitative_channel("row", **down)
    bar = {
        "x": kit.quantitative_channel("low", **across),
        "x2": {"field": "high"},
        "y": kit.quantitative_channel("top", **down),
        "y2": {"field": "bottom"},
        "tooltip": tips,
    }
    least = {**bar, "x": kit.quantitative_channel("zero", **across), "x2": {"field": "low"}}
    text = {
        "x": kit.quantitative_channel("high", **across),
        "y": y,
        "text": kit.nominal_channel("text"),
    }
    dot = {"x": kit.quantitative_channel("estimate", **across), "y": y, "tooltip": tips}
    return [
        kit.layer("bars", "rect", "bar", least, opacity=0.38),
        kit.layer("bars", "rect", "bar", bar),
        kit.layer("dots", "point", "dot", dot, size=kit.expr("em * em * 0.4")),
        kit.layer("bars", "text", "strong", text, **kit.RIGHT_OF_BAR),
    ]


def _subtitle(fitting: pl.DataFrame, plans: pl.DataFrame, choice: Mapping[str, Any]) -> str:
    """Subtitle: chips, dtypes and sizes, what a bar is, and the plans that are not drawn."""
    words = _common_words(plans["split"].to_list())
    setting = [on_chips(choice["chip"], plans["chips"]), choice["dtypes"], *words]
    setting += [f"B = {choice['B']:,}", f"S = {choice['S']:,}"]
    has_estimates = fitting.head(MAX_ROWS)[BAND[0]].is_not_null().any()
    dots = ", dots estimates" if has_estimates else ""
    return (
        f"{', '.join(setting)}; {fitting.height:,} of {plans.height:,} plans fit. Full colour: "
        f"from the bound to kernels one after another, with that time and peak memory{dots}."
    )


def _sentences(
    fitting: pl.DataFrame, model: str, about: Mapping[str, Any], named: str
) -> Iterator[Sentence]:
    """Candidate titles, the strongest first."""
    rows = fitting.to_dicts()
    near = sum(row[SERIAL] <= rows[0][SERIAL] * (1 + PLAN_TIE) for row in rows)
    if len(rows) > 1:
        within = whole_percent(PLAN_TIE)
        leads = "is the fastest" if near == 1 else f"leads, {near - 1} within {within}"
        text = f"{model}: serialized, {rows[0]['name']} {leads}"
        yield Sentence(text=text, rows=rows, **about)
    elif rows:
        yield Sentence(text=f"{model}: {rows[0]['name']} alone fits", rows=rows, **about)
    yield Sentence(text=f"{named}: training plans")


KIND = Kind(
    name="plans",
    source="model_sweeps",
    menus=menus,
    view=view,
    needs=(
        Need("train among its `phase`", lambda s: TRAIN in s.config.phase),
        Need("a chip with a known memory capacity", lambda s: bool(dtypes_by_chip(s))),
        Need("several splits", lambda s: len(s.config.splits) > 1),
    ),
    reads=(LOWER, SERIAL, MEMORY_BYTES, "mfu_serial", "fits"),
)
