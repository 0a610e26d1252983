"""What a dollar or a watt buys: dense peak over price or power, a bar for each chip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.basics.lazy import alt, pl
from rooflines.basics.text import count, counted, si
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
from rooflines.charts.kit.drawing import Choice, assemble, chip_scale, chosen, lettered, starting
from rooflines.charts.kit.text import chip_label, shorten, width_em
from rooflines.charts.kit.themes import Margins
from rooflines.charts.needs import by_chips, has_bandwidth, two_chips
from rooflines.charts.planes import pictured

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rooflines.catalogue.entries import Chip
    from rooflines.charts.chart import Spec
    from rooflines.charts.results import Selection

__all__ = ["per_unit", "price_frame"]

MOST_DETAILED = 8
"""Rows that have room for a second line of text each [1]."""

BEFORE = 0.9
"""Room before the text of a bar [em]."""

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
        right: Room right of the plot, for the text of the longest bar [em].
    """

    word: str
    column: str
    axis: str
    value: str
    about: str
    caveat: str
    right: float


UNITS = {
    "usd": _Unit(
        "dollar",
        "flops_per_usd",
        "FLOP per US dollar",
        "FLOP",
        "price of",
        "listed prices",
        24.5,
    ),
    "watt": _Unit(
        "watt",
        "flops_per_joule",
        "FLOP/s per watt",
        "FLOP/s",
        "power",
        "listed power, not what a kernel draws",
        8.0,
    ),
}


def per_unit(  # noqa: PLR0913, all but the first have a default
    frame: pl.DataFrame,
    *,
    unit: str = "usd",
    first: Mapping[str, Any] | None = None,
    title: str | None = None,
    lacking: str = "",
    added: Sequence[str] = (),
    added_dtypes: Sequence[str] = (),
) -> alt.LayerChart:
    """What a dollar or a joule buys, for the chips with a dated price or a power.

    Args:
        frame: From `ridge_frame`: `flops_per_usd` [FLOP/USD], `flops_per_joule` [FLOP/J]; from
            `price_frame` with `seller`.
        unit: `usd` or `watt`.
        first: The initial choices by parameter; the first of the frame by default.
        title: Replaces the finding.
        lacking: What the subtitle says of chips without a price or a power.
        added: Chips that are shown below the others only where the reader chooses them.
        added_dtypes: Dtype combinations that do not count for the choice of chips.

    Returns:
        A chart with the parameters `dtypes`, `chip` for the one to highlight, and `seller` of
        prices.
    """
    known = frame.drop_nulls(UNITS[unit].column)
    every = by_compute(known, pictured(known, added, added_dtypes))
    priced = every.filter(~pl.col("chip").is_in(added))
    shown = _ranked(pictured(every, added, added_dtypes), unit)
    others = [chip for chip in _ranked(priced, unit) if chip not in shown]
    order, chips = [*shown, *others], [*evenly(shown), *others]
    rows = _rows(priced.filter(pl.col("chip").is_in(chips)), unit)
    least = pictured(rows, added, added_dtypes)["row"].n_unique()
    combinations = priced.filter(pl.col("dtypes").is_in(rows["dtypes"].implode()))["dtypes"]
    below = _rows(every.filter(pl.col("chip").is_in(added)), unit)
    findings = _findings((rows, below), order, unit, shown_of(chips, order) + lacking)
    choices = [
        Choice("chip", [EVERY, *order, *added]),
        Choice("dtypes", combinations.unique(maintain_order=True).to_list()),
    ]
    if "seller" in priced.columns:
        sellers = priced["seller"].unique(maintain_order=True).to_list()
        choices.append(Choice("seller", sellers, "Prices"))
    return assemble(
        _layers((rows, below), least, unit, chip_scale(every)),
        {key: finding.titled(title) for key, finding in findings.items()},
        starting(choices, first),
        Margins(left=CHIP_MARGIN, right=UNITS[unit].right),
        added_parameters(added),
    )


def _findings(
    bars: tuple[pl.DataFrame, pl.DataFrame], order: Sequence[str], unit: str, more: str
) -> dict[str, Finding]:
    """Title and subtitle of every choice.

    Args:
        bars: Those compared, and those that the reader adds below them.
        order: The chips compared.
        unit: `usd` or `watt`.
        more: What all subtitles say.
    """
    rows, below = bars
    findings: dict[str, Finding] = {}
    for key, case in rows.group_by(_by(rows), maintain_order=True):
        none = _without_text(rows.filter(dtypes=key[0]), case)
        beside = below.filter(**dict(zip(_by(rows), key, strict=True)))
        shown = dict.fromkeys((EVERY, *order), case)
        shown |= {one["chip"][0]: pl.concat([case, one]) for one in beside.iter_slices(1)}
        for chip, of_choice in shown.items():
            finding = _finding(of_choice, key, unit).adding(more + none)
            findings["|".join(map(str, (chip, *key)))] = finding
    return findings


def _without_text(able: pl.DataFrame, case: pl.DataFrame) -> str:
    """What a subtitle says of chips that can do dtypes, but that a provider does not sell."""
    names = able["chip"].unique(maintain_order=True)
    without = [chip for chip in names if chip not in set(case["chip"])]
    return f" None there: {names_of(without)}." if without else ""


def _ranked(priced: pl.DataFrame, unit: str) -> list[str]:
    """The chips by the largest value that they have, the largest first."""
    column = UNITS[unit].column
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
        else pl.Series([f"{count(round(watts))} W" for watts in rows["watts"]], dtype=pl.String)
    )
    rows = rows.with_columns(about=about)
    texts = [si(value, UNITS[unit].value) for value in rows["value"]]
    details = [_detail(about, UNITS[unit].right - BEFORE) for about in rows["about"]]
    return rows.with_columns(
        text=pl.Series(texts, dtype=pl.String),
        detail=pl.Series(details, dtype=pl.String),
        low=pl.col("row") - 0.3,
        high=pl.col("row") + 0.3,
    )


def _detail(about: str, room: float) -> str:
    """What fits beside a bar [em]: of a price what is sold is cut, and the date stays."""
    sold, separator, date = about.rpartition(" · ")
    end = separator + date
    return shorten(sold, room - width_em(end)) + end


def _layers(
    bars: tuple[pl.DataFrame, pl.DataFrame], least: int, unit: str, colors: alt.Scale
) -> list[alt.Chart]:
    """Bars with their numbers.

    Args:
        bars: Those compared, and those that the reader adds below them.
        least: Rows for bars compared [1].
        unit: `usd` or `watt`.
        colors: Of the chips.
    """
    rows, below = bars
    name = UNITS[unit].axis
    label = "replace(format(datum.value, '~s'), regexp('([kMGTPE])$'), ' $1')"
    x = alt.X(
        "value:Q",
        axis=alt.Axis(title=name, labelExpr=label, tickCount=alt.expr("narrow ? 3 : 5")),
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
        least=least,
    )
    color = alt.Color("chip:N", legend=None, scale=colors)
    tooltip = [
        "chip:N",
        "dtypes:N",
        alt.Tooltip("value:Q", title=name, format=".4~s"),
        alt.Tooltip("about:N", title=UNITS[unit].about),
        *([alt.Tooltip("usd_per_hour:Q", title="USD per hour")] if unit == "usd" else []),
    ]
    shown = _with_last(rows, below, by, least) if below.height else rows
    base = compared_rows(shown).transform_filter(chosen(*by))
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
        *_texts(base, least, x, down, lettered(colors)),
        heading(f"Dense peak, {name}"),
    ]


def _with_last(
    rows: pl.DataFrame, below: pl.DataFrame, by: Sequence[str], least: int
) -> pl.DataFrame:
    """Bars, and in the last row of each choice those `below`, which are `added`."""
    counts = rows.group_by(by).agg(row=pl.len().cast(pl.Float64))
    last = below.drop("row").join(counts, on=by, how="left", maintain_order="left")
    last = last.with_columns(row=pl.max_horizontal("row", float(least)))
    last = last.with_columns(low=pl.col("row") - 0.3, high=pl.col("row") + 0.3)
    return pl.concat(
        [
            rows.with_columns(added=pl.lit(value=False)),
            last.select(rows.columns).with_columns(added=pl.lit(value=True)),
        ]
    )


def _texts(
    base: alt.Chart, rows: int, x: alt.X, down: Mapping[str, Any], fill: alt.Fill
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
        ).encode(x=x, y=alt.Y("row:Q", **down), text=f"{text}:N", fill=fill, opacity=highlight())
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
            lacking=lacking_text(of, compares, number.removesuffix("s")),
            added=spec.added,
            added_dtypes=spec.added_dtypes,
        )

    return Chart(
        name=name,
        family="compared",
        caption=caption,
        order=order,
        needs=(two_chips(compares, "a dated price" if unit == "usd" else "a design power"),),
        compares=compares,
        preferred=by_chips,
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
