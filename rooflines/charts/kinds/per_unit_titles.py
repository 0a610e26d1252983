"""Titles of what a dollar or a watt buys, and what the peak is divided by."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.lazy import pl
from rooflines.basics.text import counted
from rooflines.charts.claims import Finding, claim, over
from rooflines.charts.comparing import EVERY, names_of
from rooflines.charts.kit.text import chip_label

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rooflines.catalogue.entries import Chip
    from rooflines.charts.results import Selection

__all__ = ["ANY", "UNITS", "by_of", "findings_of", "lacking_text"]

ANY = "lowest of all"
"""The choice of the lowest price of each chip."""

EQUAL_DIGITS = 12
"""Quotients that agree to this many digits are a tie."""


class Unit(NamedTuple):
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
    "usd": Unit(
        "dollar",
        "flops_per_usd",
        "FLOP per US dollar",
        "FLOP",
        "price of",
        "listed prices",
        24.5,
    ),
    "watt": Unit(
        "watt",
        "flops_per_joule",
        "FLOP/s per watt",
        "FLOP/s",
        "power",
        "listed power, not what a kernel draws",
        8.0,
    ),
}


def by_of(frame: pl.DataFrame) -> list[str]:
    """What a reader chooses, beside the chip."""
    return [name for name in ("dtypes", "seller") if name in frame.columns]


def findings_of(
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
    for key, case in rows.group_by(by_of(rows), maintain_order=True):
        none = _without_text(rows.filter(dtypes=key[0]), case)
        beside = below.filter(**dict(zip(by_of(rows), key, strict=True)))
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


def lacking_text(of: Selection, compares: Callable[[Chip], bool], what: str) -> str:
    """What a subtitle says of the chips of a sweep that lack the number compared."""
    without = [chip for chip in of.sweep.rows_by_chip() if not compares(of.sweep.chips[chip])]
    return f" No {what}: {names_of(without)}." if without else ""
