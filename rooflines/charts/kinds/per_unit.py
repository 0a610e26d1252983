"""What a dollar or a watt buys: dense peak over price or power, a bar for each chip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.basics.lazy import alt, pl
from rooflines.basics.text import si
from rooflines.charts.chart import Chart
from rooflines.charts.claims import Finding, claim, over
from rooflines.charts.comparing import (
    CHIP_MARGIN,
    EVERY,
    chip_axis,
    evenly,
    heading,
    highlight,
    shown_of,
)
from rooflines.charts.frames import first_shown, ridge_frame
from rooflines.charts.kit.drawing import Choice, assemble, data, palette_of, starting
from rooflines.charts.kit.text import chip_label
from rooflines.charts.kit.themes import Margins
from rooflines.charts.needs import by_chips, has_bandwidth, two_chips

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.catalogue.entries import Chip
    from rooflines.charts.chart import Spec
    from rooflines.charts.results import Selection

__all__ = ["per_unit"]

MARGINS = Margins(left=CHIP_MARGIN, right=20.0)

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
        "the lowest listed price of each; dates and providers differ",
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


def per_unit(
    frame: pl.DataFrame,
    *,
    unit: str = "usd",
    first: Mapping[str, Any] | None = None,
    title: str | None = None,
    palette: Mapping[str, str] | None = None,
) -> alt.LayerChart:
    """What a dollar or a joule buys, for the chips with a dated price or a power.

    Args:
        frame: From `ridge_frame`: `flops_per_usd` [FLOP/USD], `flops_per_joule` [FLOP/J].
        unit: `usd` or `watt`.
        first: The initial choices by parameter; the first of the frame by default.
        title: Replaces the finding.
        palette: Chips with their vendors, if several charts share colours.

    Returns:
        A chart with the parameters `dtypes`, and `chip` for the one to highlight.
    """
    column = UNITS[unit].column
    priced = frame.drop_nulls(column)
    order = (
        priced.group_by("chip", maintain_order=True)
        .agg(pl.col(column).max())
        .sort(column, descending=True)["chip"]
        .to_list()
    )
    chips = evenly(order)
    rows = _rows(priced.filter(pl.col("chip").is_in(chips)), unit)
    kept = set(rows["dtypes"])
    combinations = [name for name in priced["dtypes"].unique(maintain_order=True) if name in kept]
    findings: dict[str, Finding] = {}
    for combination in combinations:
        finding = _finding(rows.filter(dtypes=combination), combination, unit)
        finding = finding.adding(shown_of(chips, order)).titled(title)
        findings |= {f"{chip}|{combination}": finding for chip in (EVERY, *order)}
    return assemble(
        _layers(rows, combinations, unit, palette_of(frame, palette)),
        findings,
        starting([Choice("chip", [EVERY, *order]), Choice("dtypes", combinations)], first),
        MARGINS,
    )


def _rows(priced: pl.DataFrame, unit: str) -> pl.DataFrame:
    """The bars from the largest down: `value`, `row` and its edges, `about` and `text`."""
    rows = priced.sort(UNITS[unit].column, descending=True, maintain_order=True).with_columns(
        value=UNITS[unit].column, row=pl.int_range(pl.len()).over("dtypes").cast(pl.Float64)
    )
    about = (
        pl.format("{} · {}", "provider", "date")
        if unit == "usd"
        else pl.format("{} W", pl.col("watts").cast(pl.Int64))
    )
    rows = rows.with_columns(about=about)
    texts = [f"{si(row['value'], UNITS[unit].value)} · {row['about']}" for row in rows.to_dicts()]
    return rows.with_columns(
        text=pl.Series(texts, dtype=pl.String), low=pl.col("row") - 0.3, high=pl.col("row") + 0.3
    )


def _layers(
    rows: pl.DataFrame, combinations: Sequence[str], unit: str, colors: alt.Scale
) -> list[alt.Chart]:
    """Bars with their numbers."""
    name = UNITS[unit].axis
    label = "replace(format(datum.value, '~s'), regexp('([kMGTPE])$'), ' $1')"
    x = alt.X(
        "value:Q",
        axis=alt.Axis(title=name, labelExpr=label, tickCount=5),
        scale=alt.Scale(domainMin=0, nice=False),
    )
    down = chip_axis(
        {
            combination: rows.filter(dtypes=combination)["chip"].to_list()
            for combination in combinations
        }
    )
    color = alt.Color("chip:N", legend=None, scale=colors)
    tooltip = [
        "chip:N",
        "dtypes:N",
        alt.Tooltip("value:Q", title=name, format=".4~s"),
        alt.Tooltip("about:N", title=UNITS[unit].about),
        *([alt.Tooltip("usd_per_hour:Q", title="USD per hour")] if unit == "usd" else []),
    ]
    base = alt.Chart(data(rows)).transform_filter("datum.dtypes == dtypes")
    return [
        base.mark_rect(style="bar").encode(
            x=x,
            x2=alt.datum(0),
            y=alt.Y("low:Q", **down),
            y2="high:Q",
            color=color,
            opacity=highlight(),
            tooltip=tooltip,
        ),
        base.mark_text(style="value", align="left", clip=False, dx=alt.expr("em * 0.4")).encode(
            x=x, y=alt.Y("row:Q", **down), text="text:N", color=color, opacity=highlight()
        ),
        heading(f"Dense peak, {name}"),
    ]


def _finding(rows: pl.DataFrame, combination: str, unit: str) -> Finding:
    """Title and subtitle: the chip with the largest quotient, if there is no tie."""
    quotients = rows["value"].round_sig_figs(EQUAL_DIGITS)
    best = rows.filter(quotients == quotients.max())["chip"]
    word = UNITS[unit].word
    subtitle = f"{combination} dense peak over {UNITS[unit].caveat}."
    if len(best) != 1 or rows.height == 1:
        return Finding(f"Dense {combination} peak per {word}", subtitle)
    title = (
        f"Of {rows.height} chips shown, {chip_label(best[0])} gives most {combination} per {word}"
    )
    found = claim("largest", UNITS[unit].column, over(rows, "chip", "dtypes"), best[0])
    return Finding(title, subtitle, found)


def _chart(name: str, unit: str, number: str, order: int, caption: str) -> Chart:
    """The chart of one unit; `number` is the catalogue's key for what the peak is divided by."""

    def compares(entry: Chip) -> bool:
        return has_bandwidth(entry) and bool(getattr(entry, number))

    def draw(frame: pl.DataFrame, _: Selection, spec: Spec) -> alt.LayerChart:
        return per_unit(
            frame,
            unit=unit,
            first=first_shown(frame.drop_nulls(UNITS[unit].column), spec, "dtypes"),
            title=spec.title,
            palette=dict(spec.palette),
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
        frame=lambda of, _: ridge_frame(of),
        draw=draw,
    )


CHARTS = (
    _chart(
        "per-dollar",
        "usd",
        "prices",
        90,
        "Dense peak FLOP for one US dollar at the lowest listed price of each chip; dates and "
        "providers differ.",
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
