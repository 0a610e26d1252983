"""What a dollar or a watt buys: dense peak over price or power, a bar for each chip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import alt, pl
from rooflines.basics.text import count, si
from rooflines.charts.chart import Chart
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
    shown_of,
)
from rooflines.charts.frames import first_shown, ridge_frame
from rooflines.charts.kinds.per_unit_titles import ANY, UNITS, by_of, findings_of, lacking_text
from rooflines.charts.kit.drawing import (
    SI_LABEL,
    Choice,
    assemble,
    chip_scale,
    chosen,
    lettered,
    starting,
)
from rooflines.charts.kit.text import shorten, width_em
from rooflines.charts.kit.themes import Margins
from rooflines.charts.needs import by_chips, has_bandwidth, two_chips
from rooflines.charts.planes import pictured

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.catalogue.entries import Chip
    from rooflines.charts.chart import Spec
    from rooflines.charts.results import Selection

__all__ = ["per_unit", "price_frame"]

MOST_DETAILED = 8
"""Rows that have room for a second line of text each [1]."""

BEFORE = 0.9
"""Room before the text of a bar [em]."""


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
    findings = findings_of((rows, below), order, unit, shown_of(chips, order) + lacking)
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


def _ranked(priced: pl.DataFrame, unit: str) -> list[str]:
    """The chips by the largest value that they have, the largest first."""
    column = UNITS[unit].column
    largest = priced.group_by("chip", maintain_order=True).agg(pl.col(column).max())
    return largest.sort(column, descending=True)["chip"].to_list()


def _rows(priced: pl.DataFrame, unit: str) -> pl.DataFrame:
    """The bars from the largest down: `value`, `row` and its edges, `about` and `text`."""
    rows = priced.sort(UNITS[unit].column, descending=True, maintain_order=True).with_columns(
        value=UNITS[unit].column,
        row=pl.int_range(pl.len()).over(by_of(priced)).cast(pl.Float64),
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
    x = alt.X(
        "value:Q",
        axis=alt.Axis(title=name, labelExpr=SI_LABEL, tickCount=alt.expr("narrow ? 3 : 5")),
        scale=alt.Scale(domainMin=0, nice=False),
    )
    by = by_of(rows)
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
