"""Chips compared: ridge, FLOP per dollar, or FLOP/s per watt, one bar per chip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.answers.claims import LOWEST_PRICES, Ranking, Sentence, first_true
from rooflines.basics.errors import RooflinesError
from rooflines.basics.lazy import pl
from rooflines.basics.text import month, si, significant
from rooflines.charts import frames, ridges
from rooflines.charts.kit import layers as kit
from rooflines.charts.kit.chart_text import chip_label
from rooflines.charts.kit.themes import Margins
from rooflines.charts.options import Menu
from rooflines.charts.views import Kind, Need, View
from rooflines.hardware.chip_catalogue import chip_entries

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from rooflines.charts.chart_data import Results
    from rooflines.charts.kit.layers import Layer
    from rooflines.charts.options import Option
    from rooflines.hardware.entries import Chip
    from rooflines.sweep.operation_sweep import Sweep

MARGINS = Margins(left=10.4, right=8.6)
NAME_ROOM = 9.5

MAX_ROWS, MAX_DETAILED = 16, 8
"""Maximum rows, and maximum rows with a second line of text [1]."""

HALF_BAR = 0.31
"""Half of a bar's height [rows]."""

TIE_FACTOR = 1.2
"""Factor within which chips tie with the best [1]; a larger gap ranks them."""


class Quotient(NamedTuple):
    """Quantity by which chips are compared.

    Attributes:
        column: The column in `ridge_frame`.
        axis: The axis name.
        text: A number with its unit.
        detail: Short text of the input behind a row's number.
        caveat: Its description in the subtitle.
        key: Entry key that it needs besides the bandwidth; "" if none.
    """

    column: str
    axis: str
    text: Callable[[float], str]
    detail: Callable[[Mapping[str, Any]], str]
    caveat: str
    key: str


QUOTIENTS = {
    "ridge": Quotient(
        "ridge",
        "Ridge, FLOP per byte of main memory",
        significant,
        lambda row: si(row["bytes_per_s"], "B/s"),
        "over memory bandwidth",
        "",
    ),
    "dollar": Quotient(
        "flops_per_usd",
        "FLOP per US dollar at the lowest dated price",
        lambda value: f"{si(value, 'FLOP')}/$",
        lambda row: f"${row['usd_per_hour']:g}/h",
        "over each chip's lowest dated price",
        "prices",
    ),
    "watt": Quotient(
        "flops_per_joule",
        "FLOP/s per watt of listed power",
        lambda value: f"{si(value, 'FLOP/s')}/W",
        lambda row: f"{row['watts']:,.0f} W",
        "over the listed power, not what a kernel draws",
        "power",
    ),
}


def _has_quotient(entry: Chip, by: str) -> bool:
    key = QUOTIENTS[by].key
    return frames.has_bandwidth(entry) and (not key or bool(getattr(entry, key)))


def _quotients_of(sweep: Sweep) -> list[str]:
    """Keys of `QUOTIENTS` that at least two chips in a sweep have."""
    entries = [sweep.chips[chip] for chip in frames.chips_with_rows(sweep)]
    return [by for by in QUOTIENTS if sum(_has_quotient(entry, by) for entry in entries) > 1]


def menus(sweep: Sweep, choice: Mapping[str, Option]) -> list[Menu]:
    """Menus: quantity, and one dtype combination per compute dtype."""
    computes: dict[str, str] = {}
    for name in frames.dtypes_of(sweep):
        computes.setdefault(sweep.combinations[name].compute, name)
    dtypes = choice.get("dtypes")
    options = [*computes.values()]
    if isinstance(dtypes, str) and dtypes in sweep.combinations and dtypes not in options:
        options.append(dtypes)
    return [Menu("by", tuple(_quotients_of(sweep))), Menu("dtypes", tuple(options))]


def view(results: Results, sweep: str, chips: Sequence[str], choice: Mapping[str, Any]) -> View:
    """Draw a bar per chip, the largest on top; beyond `MAX_ROWS` the rest are lines in one row."""
    by, dtypes = choice["by"], choice["dtypes"]
    quotient = QUOTIENTS[by]
    sweep_chips = frames.chips_with_rows(results.sweep(sweep))
    all_chips = ridges.ridge_frame(results.select(sweep, sweep_chips, [dtypes]))
    all_chips = all_chips.drop_nulls(quotient.column).sort(
        quotient.column, "chip", descending=[True, False]
    )
    compared = all_chips.filter(pl.col("chip").is_in(list(chips)))
    if by == "dollar" and compared.height < frames.TWO:
        problem = f"has no two chips with {dtypes} and a price"
        raise RooflinesError("chips", problem, "choose other chips or dtypes")
    named = _named_chips(compared, chips if list(chips) != sweep_chips else ())
    unnamed = compared.join(named, on="chip", how="anti")
    bars = _rows(named, quotient, pl.int_range(pl.len()))
    top = frames.highest(bars, "value") * 1.02
    catalogued = _catalogue_chips(results.sweep(sweep), dtypes, by)
    claim = first_true(_sentences(compared, {*all_chips["chip"], *catalogued}, dtypes, by))
    about = f"{dtypes}: dense peak of the {results.sweep(sweep).unit} unit {quotient.caveat}"
    lines = f" Lines: {unnamed.height} other chips." if unnamed.height else ""
    return View(
        claim,
        f"{about}.{_sellers(compared) if by == 'dollar' else ''}{lines}",
        _layers(bars, quotient),
        {"bars": bars, "others": _rows(unnamed, quotient, pl.lit(named.height))},
        MARGINS,
        compared,
        {
            **kit.bar_params(_row_names(named, unnamed), NAME_ROOM, top),
            "two": named.height <= MAX_DETAILED,
        },
        tuple(named["chip"]),
    )


def _sellers(compared: pl.DataFrame) -> str:
    """Providers of the compared prices, each with its months."""
    months: dict[str, dict[str, None]] = {}
    for provider, date in compared.sort("provider", "date").select("provider", "date").iter_rows():
        months.setdefault(provider, {})[month(date)] = None
    sellers = (f"{provider}, {' and '.join(dates)}" for provider, dates in months.items())
    return f" Prices: {'; '.join(sellers)}."


def _rows(chips: pl.DataFrame, quotient: Quotient, row: pl.Expr) -> pl.DataFrame:
    """Bars with their texts, from the top row down."""
    return chips.select(
        "chip",
        low=row - HALF_BAR,
        high=row + HALF_BAR,
        row=row.cast(pl.Int64),
        value=quotient.column,
        text=pl.Series([quotient.text(value) for value in chips[quotient.column]], dtype=pl.String),
        detail=pl.Series([quotient.detail(chip) for chip in chips.to_dicts()], dtype=pl.String),
    )


def _row_names(named: pl.DataFrame, unnamed: pl.DataFrame) -> list[str]:
    """Row names from the top down."""
    names = [chip_label(chip) for chip in named["chip"]]
    return [*names, f"{unnamed.height} other chips"] if unnamed.height else names


def _named_chips(compared: pl.DataFrame, chips: Sequence[str]) -> pl.DataFrame:
    """Chips with their own bar: all, or the highest, the lowest, and the first listed.

    Args:
        compared: Their numbers, the highest first.
        chips: Chips by priority; if empty, an even selection is named.
    """
    ordered = compared["chip"].to_list()
    if len(ordered) <= MAX_ROWS:
        return compared
    room = MAX_ROWS - 1  # the last row has the others
    even = [ordered[round(i * (len(ordered) - 1) / (room - 1))] for i in range(room)]
    order = dict.fromkeys(
        [*ordered[:1], *ordered[-1:], *(chip for chip in chips if chip in ordered)]
    )
    return compared.filter(pl.col("chip").is_in(list(order)[:room] if chips else even))


def _layers(rows: pl.DataFrame, quotient: Quotient) -> list[Layer]:
    vendors = dict(rows.select("chip", pl.lit("").alias("vendor")).iter_rows())
    across, down = kit.bar_axes(None, kit.SI_LABEL)
    x, y = kit.quantitative_channel("value", **across), kit.quantitative_channel("row", **down)
    bar = {
        "x": x,
        "x2": {"datum": 0},
        "y": kit.quantitative_channel("low", **down),
        "y2": {"field": "high"},
        "color": kit.chip_colour(vendors),
        "tooltip": kit.tips(chip="chip", value=quotient.axis, detail="computed from"),
    }
    at = {"x": x, "y": y, "fill": kit.chip_colour(vendors, letters=True)}
    text, detail = (
        {**at, "text": kit.nominal_channel("text")},
        {"x": x, "y": y, "text": kit.nominal_channel("detail")},
    )
    up = {"dy": kit.expr("two ? em * -0.55 : 0"), **kit.RIGHT_OF_BAR}
    below = {"dy": kit.expr("em * 0.6"), **kit.RIGHT_OF_BAR}
    line = {name: bar[name] for name in ("x", "y", "y2", "tooltip")}
    return [
        kit.layer("others", "rule", "context", line, strokeDash=[1, 0]),
        kit.layer("bars", "rect", "bar", bar),
        kit.layer("bars", "text", "value", text, **up),
        kit.layer("bars", "text", "note", detail, where="two", **below),
        kit.heading(quotient.axis),
    ]


def _catalogue_chips(sweep: Sweep, dtypes: str, by: str) -> set[str]:
    """Catalogue chips, without variants, that have the compared numbers."""
    compute = sweep.combinations[dtypes].compute
    return {
        chip
        for chip, entry in chip_entries().items()
        if entry.base is None
        and compute in entry.units.get(sweep.unit, {})
        and _has_quotient(entry, by)
    }


def _sentences(
    compared: pl.DataFrame, every: Collection[str], dtypes: str, by: str
) -> Iterator[Sentence]:
    """Candidate titles, the strongest first."""
    quotient, rows, chips = QUOTIENTS[by], compared.to_dicts(), tuple(every)
    about: dict[str, Any] = {"rows": rows, "every": chips}
    whole = f"all {len(chips)} chips" if len(chips) > 1 else "the chip"
    values = compared[quotient.column].to_list()
    if by == "ridge" and rows:
        low, high = significant(min(values)), significant(max(values))
        span = f"{low} to {high}" if low != high else low
        unit = rows[0]["unit"]
        text = f"{dtypes} ridges of {whole}, {unit} unit: {span} FLOP per byte"
        yield Sentence(text=text, ridge=True, **about)
    elif len(values) > 1:
        money = by == "dollar"
        at = f", {LOWEST_PRICES}" if money else ""
        best = chip_label(rows[0]["chip"])
        most = f"most {dtypes} peak per {by}"
        bound = "" if money else ", a bound"
        ranks = Ranking(values[0], values[1], money=money)
        yield Sentence(text=f"{best} has {most} of {whole}{at}{bound}", ranks=ranks, **about)
        near = sum(value * TIE_FACTOR >= values[0] for value in values)
        text = f"{near} of {whole}{at} are within {TIE_FACTOR:g}× of the {most}"
        yield Sentence(text=text, **about)
    yield Sentence(text=f"{dtypes}: {quotient.axis}, {compared.height} chips")


KIND = Kind(
    name="chips",
    menus=menus,
    view=view,
    needs=(
        Need(
            "two chips with a known bandwidth of the main memory", lambda s: bool(_quotients_of(s))
        ),
    ),
    preferred=ridges.preferred,
    multi_chip=True,
    max_chips=1000,
)
