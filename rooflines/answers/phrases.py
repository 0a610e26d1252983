"""Lines and numbers in the statements of an answer; the screen lays them out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.basics.text import percent, seconds, si, significant
from rooflines.dictionary.columns import AXES
from rooflines.theory.sharding import SHARDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rooflines.answers.answer_values import ResourceTime
    from rooflines.hardware.entries import Chip

DIGITS = 4
"""Significant digits of intensities, factors and real sizes [1]."""

SLACK = 1e-12
"""Share by which a number may exceed a rounded one: it has a few roundings itself [1]."""

MAX_GROUPS = 4
"""Groups of kernels named [1]."""

MAX_DTYPES = 3
"""Other dtypes named [1]."""

UNITS = {"flops": "FLOP", "vector_flops": "FLOP", "exponentials": ""}
"""Units of works that are not of bytes, by column."""

ONE_REPLICA = "dp1"
"""Parallelism of a training plan for one chip."""

BEYOND = {
    "sizes": "beyond the timed sizes",
    "engine": "timed with another engine",
    "engine, sizes": "timed with another engine, at other sizes",
}
"""Texts about an estimate beyond its calibration's timings."""


def older_timings(older: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    """Engines that were timed in an older version than elsewhere, as in `older_versions`."""
    for engine, (version, newest) in older.items():
        yield f"timings of {engine} {version}, older than {newest}"


class Line(NamedTuple):
    """A labelled statement: what it is about, the short answer, which may be empty, the rest."""

    label: str
    value: str
    text: str


class Section(NamedTuple):
    """Statements under a title; without statements, the title is one itself."""

    title: str
    lines: list[Line]


class Title(NamedTuple):
    """Question in words, a text for each part; empty: unsaid."""

    chip: str
    subject: str
    dtypes: str
    sharing: str

    def text(self) -> str:
        """All parts that are said."""
        return " · ".join(filter(None, self))


def operation_title(row: Mapping[str, Any], sizes: Mapping[str, int]) -> Title:
    """Question about an operation: chip, operation and sizes, dtypes, sharding."""
    sharding = ""
    if row["sharding"] != "none":
        sharding = f"{row['sharding']} on {row.get(AXES) or row[SHARDS]} chips{_network(row)}"
    return Title(row["chip"], _subject(row["operation"], sizes), row["dtypes"], sharding)


def step_title(
    row: Mapping[str, Any], sizes: Mapping[str, int], *, every_split: bool = False
) -> Title:
    """Question about a step: chip, model, phase and sizes, dtypes, split.

    Args:
        row: Row of the table.
        sizes: Size by letter [1].
        every_split: Whether it asks for every split over the row's chips.
    """
    split = ""
    if row["chips"] > 1:
        shared = "every split of" if every_split else f"{row['split']} on"
        split = f"{shared} {row['chips']} chips{_network(row)}"
    elif row["split"].startswith(f"{ONE_REPLICA}-"):  # a plan of one chip, such as dp1-lora16
        split = row["split"]
    subject = _subject(f"{row['model']} {row['phase']}", sizes)
    return Title(row["chip"], subject, row["dtypes"], split)


def _subject(name: str, sizes: Mapping[str, int]) -> str:
    return " ".join([name, *(f"{letter}={size}" for letter, size in sizes.items())])


def _network(row: Mapping[str, Any]) -> str:
    """Network that chips communicate over; empty without communication."""
    return f" over {row['network']}" if row["network"] and row["network_bytes"] else ""


def work_at_rate(resource: ResourceTime) -> str:
    """Work at one resource, and its rate."""
    unit = UNITS.get(resource.column, "B")
    if not unit:
        return f"{si(resource.work, '')} at {si(resource.per_s, '/s')}"
    return f"{si(resource.work, unit)} at {si(resource.per_s, f'{unit}/s')}"


def price_notes(chips: Mapping[str, Chip]) -> Iterator[str]:
    """Price for each chip in a table, with provider and month, and the chips without one.

    Where providers differ, a note says that costs compare their offers.
    """
    prices = {name: chip.lowest_price() for name, chip in chips.items()}
    if priced := [f"{name} {price}" for name, price in prices.items() if price]:
        yield f"Lowest dated prices: {'; '.join(priced)}."
    if len({price.provider for price in prices.values() if price}) > 1:
        yield "Providers differ: costs compare these offers, not the chips alone."
    if unpriced := [name for name, price in prices.items() if not price]:
        yield f"No dated price: {', '.join(unpriced)}."


class Part(NamedTuple):
    """Part of a time: its name, its time [s], and a text after it."""

    name: str
    time_s: float
    text: str


def longest_parts(
    parts: Iterable[Part], total_s: float, max_parts: int = MAX_GROUPS
) -> Iterator[Line]:
    """Longest parts, each with its share in a time, and the rest in one line.

    Args:
        parts: All parts.
        total_s: The whole time [s].
        max_parts: Parts that are named [1].
    """
    ordered = sorted(parts, key=lambda part: -part.time_s)
    shown = ordered if len(ordered) == max_parts + 1 else ordered[:max_parts]
    for part in shown:
        share = percent(part.time_s / total_s)
        yield Line(part.name, share, f"{seconds(part.time_s)}{part.text}")
    if rest := ordered[len(shown) :]:
        time_s = sum(part.time_s for part in rest)
        yield Line(f"{len(rest)} others", percent(time_s / total_s), seconds(time_s))


def beyond_largest_size(threshold: Mapping[str, Any]) -> tuple[str, str]:
    """Short answer and text for a crossover beyond the largest size."""
    return threshold["outcome"], f"crossover {threshold['critical_exact']:.4g}, beyond 2^62"


# ---------------------------------------------------------------- numbers on their side of a bound


def distinguishable(left: float, right: float) -> tuple[str, str]:
    """Two numbers with as many digits as tell them apart."""
    for digits in range(DIGITS, 17):
        first, second = significant(left, digits), significant(right, digits)
        if first != second or left == right:
            break
    return first, second


def crossover(size: float) -> str:
    """A real size, with two decimals or as many as tell it from a whole number."""
    for decimals in range(2, 12):
        text = f"{size:,.{decimals}f}"
        if size == round(size) or text.rstrip("0")[-1] != ".":
            break
    return text.rstrip("0").rstrip(".")


def rounded_bound(value: float, digits: int, *, up: bool) -> float:
    """A number above zero to a few digits, never on the other side of what it bounds."""
    scale = 10.0 ** (digits - 1 - math.floor(math.log10(value)))
    return (math.ceil if up else math.floor)(
        value * scale * (1 + (-SLACK if up else SLACK))
    ) / scale
