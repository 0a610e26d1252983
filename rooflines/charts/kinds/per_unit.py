"""What a dollar or a watt buys: dense peak over price or power, a bar for each chip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.basics.lazy import alt, pl
from rooflines.basics.text import counted, si
from rooflines.charts.chart import Chart
from rooflines.charts.claims import Finding, claim, over
from rooflines.charts.comparing import (
    CHIP_MARGIN,
    EVERY,
    added_parameters,
    by_compute,
    chip_axis,
    compared_rows,
    evenly,
    heading,
    highlight,
    names_of,
    shown_of,
)
from rooflines.charts.frames import first_shown, ridge_frame
from rooflines.charts.kit.drawing import Choice, assemble, chosen, palette_of, starting
from rooflines.charts.kit.text import chip_label, shorten, width_em
from rooflines.charts.kit.themes import Margins
from rooflines.charts.needs import by_chips, has_bandwidth, two_chips

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rooflines.catalogue.entries import Chip
    from rooflines.charts.chart import Spec
    from rooflines.charts.results import Selection

__all__ = ["per_unit", "price_frame"]

MARGINS = Margins(left=CHIP_MARGIN, right=24.5)

MOST_DETAILED = 8
"""Rows that have room for a second line of text each [1]."""

TEXT_ROOM = 23.6
"""Width of the text of a bar [em]."""

ANY = "lowest of all"
"""The choice of the lowest price of each chip."""

EQUAL_DIGITS = 12
"""Quotients that agree to this many digits are a tie."""


class _Unit(NamedTuple):
    """What the peak is divided by.

    Attributes:
        word: What the title calls it.
        column: The quotient in the frame.
        axis: What the axis calls the quotient.
        value: Its unit in labels.
        about: What the tooltip calls the provider and date, or the power.
        caveat: What the subtitle says of it.
    """

    word: str
    column: str
    axis: str
    value: str
    about: str
    caveat: str


UNITS = {
    "usd": _Unit(
        "dollar",
        "flops_per_usd",
        "FLOP per US dollar",
        "FLOP",
        "price of",
        "listed prices",
    ),
    "watt": _Unit(
        "watt",
        "flops_per_joule",
        "FLOP/s per watt",
        "FLOP/s",
        "power",
        "listed power, not what a kernel draws",
    ),
}


def per_unit(  # noqa: PLR0913, all but the first have a default
    frame: pl.DataFrame,
    *,
    unit: str = "usd",
    first: Mapping[str, Any] | None = None,
    title: str | None = None,
    palette: Mapping[str, str] | None = None,
    lacking: str = "",
    added: Sequence[str] = (),
) -> alt.LayerChart:
    """What a dollar or a joule buys, for the chips with a dated price or a power.

    Args:
        frame: From `ridge_frame`: `flops_per_usd` [FLOP/USD], `flops_per_joule` [FLOP/J]; from
            `price_frame` with `seller`.
        unit: `usd` or `watt`.
        first: The initial choices by parameter; the first of the frame by default.
        title: Replaces the finding.
        palette: Chips with their vendors, if several charts share colours.
        lacking: What the subtitle says of chips without a price or a power.
        added: Chips that are shown below the others only where the reader chooses them.

    Returns:
        A chart with the parameters `dtypes`, `chip` for the one to highlight, and `seller` of
        prices.
    """
    column = UNITS[unit].column
    every = by_compute(frame.drop_nulls(column))
    priced = every.filter(~pl.col("chip").is_in(added))
    order = _ranked(priced, column)
    chips = evenly(order)
    rows = _rows(priced.filter(pl.col("chip").is_in(chips)), unit)
    kept = set(rows["dtypes"])
    combinations = [name for name in priced["dtypes"].unique(maintain_order=True) if name in kept]
    below = _rows(every.filter(pl.col("chip").is_in(added)), unit)
    more = shown_of(chips, order) + lacking
    findings: dict[str, Finding] = {}
    for key, case in rows.group_by(_by(rows), maintain_order=True):
        able = rows.filter(dtypes=key[0])["chip"].unique(maintain_order=True)
        without = [chip for chip in able if chip not in set(case["chip"])]
        none = f" None there: {names_of(without)}." if without else ""
        beside = below.filter(**dict(zip(_by(rows), key, strict=True)))
        shown = dict.fromkeys((EVERY, *order), case)
        shown |= {one["chip"][0]: pl.concat([case, one]) for one in beside.iter_slices(1)}
        for chip, bars in shown.items():
            finding = _finding(bars, key, unit).adding(more + none).titled(title)
            findings["|".join(map(str, (chip, *key)))] = finding
    choices = [Choice("chip", [EVERY, *order, *added]), Choice("dtypes", combinations)]
    if "seller" in priced.columns:
        sellers = priced["seller"].unique(maintain_order=True).to_list()
        choices.append(Choice("seller", sellers, "Prices"))
    return assemble(
        _layers(rows, below, unit, palette_of(priced, palette, added)),
        findings,
        starting(choices, first),
        MARGINS,
        added_parameters(added),
    )


def _ranked(priced: pl.DataFrame, column: str) -> list[str]:
    """The chips by the largest value that they have, the largest first."""
    largest = priced.group_by("chip", maintain_order=True).agg(pl.col(column).max())
    return largest.sort(column, descending=True)["chip"].to_list()


def _rows(priced: pl.DataFrame, unit: str) -> pl.DataFrame:
    """The bars from the largest down: `value`, `row` and its edges, `about` and `text`."""
    rows = priced.sort(UNITS[unit].column, descending=True, maintain_order=True).with_columns(
        value=UNITS[unit].column,
        row=pl.int_range(pl.len()).over(_by(priced)).cast(pl.Float64),
    )
    about = (
        pl.concat_str("provider", "sku", "date", separator=" · ", ignore_nulls=True)
        if unit == "usd"
        else pl.format("{} W", pl.col("watts").cast(pl.Int64))
    )
    rows = rows.with_columns(about=about)
    texts = [si(value, UNITS[unit].value) for value in rows["value"]]
    details = [_detail(about) for about in rows["about"]]
    return rows.with_columns(
        text=pl.Series(texts, dtype=pl.String),
        detail=pl.Series(details, dtype=pl.String),
        low=pl.col("row") - 0.3,
        high=pl.col("row") + 0.3,
    )


def _detail(about: str) -> str:
    """What fits beside a bar: of a price what is sold is cut, and the date stays."""
    sold, separator, date = about.rpartition(" · ")
    end = separator + date
    return shorten(sold, TEXT_ROOM - width_em(end)) + end


def _layers(
    rows: pl.DataFrame, below: pl.DataFrame, unit: str, colors: alt.Scale
) -> list[alt.Chart]:
    """Bars with their numbers, and those `below` that the reader adds."""
    name = UNITS[unit].axis
    label = "replace(format(datum.value, '~s'), regexp('([kMGTPE])$'), ' $1')"
    x = alt.X(
        "value:Q",
        axis=alt.Axis(title=name, labelExpr=label, tickCount=5),
        scale=alt.Scale(domainMin=0, nice=False),
    )
    by = _by(rows)
    down = chip_axis(
        {
            "|".join(map(str, key)): case["chip"].to_list()
            for key, case in rows.group_by(by, maintain_order=True)
        },
        by,
        added=below.height > 0,
    )
    color = alt.Color("chip:N", legend=None, scale=colors)
    tooltip = [
        "chip:N",
        "dtypes:N",
        alt.Tooltip("value:Q", title=name, format=".4~s"),
        alt.Tooltip("about:N", title=UNITS[unit].about),
        *([alt.Tooltip("usd_per_hour:Q", title="USD per hour")] if unit == "usd" else []),
    ]
    bars = rows["row"].n_unique()
    if below.height:
        last = below.with_columns(row=pl.lit(float(bars)), low=bars - 0.3, high=bars + 0.3)
        shown = pl.concat([each.with_columns(added=pl.col("row") == bars) for each in (rows, last)])
    base = compared_rows(shown if below.height else rows).transform_filter(chosen(*by))
    return [
        base.mark_rect(style="bar").encode(
            x=x,
            x2=alt.datum(0),
            y=alt.Y("low:Q", **down),
            y2=alt.Y2("high:Q"),
            color=color,
            opacity=highlight(),
            tooltip=tooltip,
        ),
        *_texts(base, bars, x, down, color),
        heading(f"Dense peak, {name}"),
    ]


def _texts(
    base: alt.Chart, rows: int, x: alt.X, down: Mapping[str, Any], color: alt.Color
) -> list[alt.Chart]:
    """The number of each bar, and below it what it follows from, if there is room."""
    detailed = rows <= MOST_DETAILED
    lines = [("value", "text", -0.6 if detailed else 0.0)]
    lines += [("note", "detail", 0.6)] if detailed else []
    return [
        base.mark_text(
            style=style,
            align="left",
            clip=False,
            dx=alt.expr("em * 0.4"),
            dy=alt.expr(f"em * {dy}"),
        ).encode(x=x, y=alt.Y("row:Q", **down), text=f"{text}:N", color=color, opacity=highlight())
        for style, text, dy in lines
    ]


def _by(frame: pl.DataFrame) -> list[str]:
    """What a reader chooses, beside the chip."""
    return [name for name in ("dtypes", "seller") if name in frame.columns]


def price_frame(of: Selection) -> pl.DataFrame:
    """What a dollar buys, at the lowest listed price of each chip and at those of each provider.

    Args:
        of: The chips and combinations, from `Results.of`.

    Returns:
        The columns of `ridge_frame`, and `seller`: the provider, or that prices are the lowest.
    """
    entries = [of.sweep.chips[chip] for chip in of.by_chip]
    providers = sorted({price.provider for entry in entries for price in entry.prices or ()})
    return pl.concat(
        ridge_frame(of, provider).with_columns(seller=pl.lit(provider or ANY))
        for provider in (None, *providers)
    )


def lacking_text(of: Selection, compares: Callable[[Chip], bool], what: str) -> str:
    """What a subtitle says of the chips of a sweep that lack the number compared."""
    without = [chip for chip in of.sweep.rows_by_chip() if not compares(of.sweep.chips[chip])]
    return f" No {what}: {names_of(without)}." if without else ""


def _finding(rows: pl.DataFrame, key: Sequence[object], unit: str) -> Finding:
    """Title and subtitle: the chip with the largest quotient, if there is no tie."""
    quotients = rows["value"].round_sig_figs(EQUAL_DIGITS)
    best = rows.filter(quotients == quotients.max())["chip"]
    word = UNITS[unit].word
    combination, *sellers = map(str, key)
    provider = [seller for seller in sellers if seller != ANY]
    at = f" at {provider[0]}, {counted(rows.height, 'chip')}" if provider else ""
    whose = ", the lowest of each chip" if sellers and not provider else at
    subtitle = f"{combination} dense peak over {UNITS[unit].caveat}{whose}."
    if len(best) != 1 or rows.height == 1:
        return Finding(f"Dense {combination} peak per {word}", subtitle)
    among = f"At {provider[0]}" if provider else f"Of {rows.height} chips shown"
    title = f"{among}, {chip_label(best[0])} gives most {combination} per {word}"
    shown = over(rows, "chip", "dtypes") | ({"provider": provider} if provider else {})
    found = claim("largest", UNITS[unit].column, shown, best[0])
    return Finding(title, subtitle, found)


def _chart(name: str, unit: str, number: str, order: int, caption: str) -> Chart:
    """The chart of one unit; `number` is the catalogue's key for what the peak is divided by."""

    def compares(entry: Chip) -> bool:
        return has_bandwidth(entry) and bool(getattr(entry, number))

    def draw(frame: pl.DataFrame, of: Selection, spec: Spec) -> alt.LayerChart:
        return per_unit(
            frame,
            unit=unit,
            first=first_shown(frame.drop_nulls(UNITS[unit].column), spec, "dtypes"),
            title=spec.title,
            palette=dict(spec.palette),
            lacking=lacking_text(of, compares, number.removesuffix("s")),
            added=spec.added,
        )

    return Chart(
        name=name,
        family="compared",
        caption=caption,
        order=order,
        needs=(two_chips(compares, "a dated price" if unit == "usd" else "a design power"),),
        compares=compares,
        preferred=by_chips,
        chip_colours=True,
        every_chip=True,
        frame=lambda of, _: price_frame(of) if unit == "usd" else ridge_frame(of),
        draw=draw,
    )


CHARTS = (
    _chart(
        "per-dollar",
        "usd",
        "prices",
        90,
        "Dense peak FLOP for one US dollar at listed prices, each with its provider, what is sold "
        "and the date.",
    ),
    _chart(
        "per-watt",
        "watt",
        "power",
        100,
        "Dense peak over the power that the catalogue lists: the design power where it is "
        "published.",
    ),
)
