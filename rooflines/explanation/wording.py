"""Numbers as text, and what explanations of all kinds say of rates and sources."""

from __future__ import annotations

import math
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rooflines.basics import text as units
from rooflines.basics.text import significant
from rooflines.critical.rates import LATENCY
from rooflines.explanation.sentences import Sentence, broken
from rooflines.explanation.sheet import Line, NumberSource
from rooflines.model.resources import MATH

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rooflines.catalogue.parts import NumberRecord
    from rooflines.explanation.values import Change, Use

DIGITS = 4
"""Significant digits of intensities, factors and real sizes [1]."""

LONGEST_TIME = 1e6
"""Times from here on have an exponent [s]."""

LARGEST = 1e24
"""Quantities from here on have an exponent; the largest prefix is 1e21."""

SLACK = 1e-12
"""Share by which a number may exceed a rounded one: it has a few roundings itself [1]."""

MOST_DTYPES = 3
"""Other dtypes that an explanation names [1]."""

NO_BREAK = "\xa0"
"""A space that no line is broken at."""

UNITS = {"flops": "FLOP", "flops_per_s": "FLOP/s"}
"""Units of columns and rates that are not of bytes."""


def seconds(value: float) -> str:
    """A time; beyond weeks with an exponent."""
    return units.seconds(value) if value < LONGEST_TIME else f"{value:.3g} s"


def si(value: float, unit: str, digits: int = 3) -> str:
    """A quantity with an SI prefix; beyond the prefixes with an exponent."""
    return units.si(value, unit, digits) if value < LARGEST else f"{value:.{digits}g} {unit}"


def percent(share: float) -> str:
    """A share in percent; less than all is never 100%."""
    text = significant(100 * share)
    if text == "100":
        text = significant(rounded(100 * share, DIGITS + 1, up=False), DIGITS + 1)
    return f"{text}%"


def apart(one: float, other: float) -> tuple[str, str]:
    """Two numbers with as many digits as tell them apart."""
    for digits in range(DIGITS, 17):
        first, second = significant(one, digits), significant(other, digits)
        if first != second or one == other:
            break
    return first, second


def crossover(size: float) -> str:
    """A real size, with two decimals or as many as tell it from a whole number."""
    for decimals in range(2, 12):
        text = f"{size:,.{decimals}f}"
        if size == round(size) or text.rstrip("0")[-1] != ".":
            break
    return text.rstrip("0").rstrip(".")


def rounded(value: float, digits: int, *, up: bool) -> float:
    """A number above zero to a few digits, never on the other side of what it bounds."""
    scale = 10.0 ** (digits - 1 - math.floor(math.log10(value)))
    return (math.ceil if up else math.floor)(
        value * scale * (1 + (-SLACK if up else SLACK))
    ) / scale


def work_at_rate(used: Use) -> str:
    """The work of one resource and its rate."""
    unit = UNITS.get(used.column, "B")
    return f"{si(used.work, unit)} at {si(used.per_s, f'{unit}/s')}"


def rates(changes: Iterable[Change], uses: Iterable[Use]) -> Iterator[Line]:
    """The rates that would make it compute-bound, each all else equal; a slower chip is none."""
    latencies = {used.resource: used.latency_s for used in uses}
    for change in changes:
        name = f"{change.resource} bandwidth"
        if change.resource == MATH.name or broken(Sentence(name, factor=change.factor)):
            continue
        if change.factor is None or change.needed_per_s is None:
            text = f"the {change.limit} takes longer than the math"
            if change.outcome == LATENCY:
                hops = seconds(latencies[change.resource])
                text = f"its hops alone take {hops}, longer than the math"
            yield Line(name, "no", text)
            continue
        factor = significant(rounded(change.factor, DIGITS, up=True), DIGITS)
        needed = si(rounded(change.needed_per_s, DIGITS, up=True), "B/s", DIGITS)
        yield Line(name, f"× {factor}", f"at least {needed}")


def unbroken(time_s: float) -> str:
    """A time that no line is broken in."""
    return seconds(time_s).replace(" ", NO_BREAK)


def saturation(threshold: Mapping[str, Any]) -> str | None:
    """From where on the estimate attains 90 % of its plateau; None without a calibration."""
    size = threshold["saturates_estimate"]
    return None if size is None else f"by estimate 90% of its plateau from {size}"


def origins(numbers: Iterable[NumberRecord]) -> Iterator[NumberSource]:
    """Numbers of a chip with their sources, part by part.

    Args:
        numbers: As of `catalogue.parts.records`.
    """

    def part_of(number: NumberRecord) -> str:
        return number["path"].rpartition(".")[0]

    for path, group in groupby(numbers, key=part_of):
        of_part = list(group)
        first = of_part[0]
        head, _, rest = path.partition(".")
        name = rest.rpartition(".")[2]
        part = {"units": f"{name} peak", "memory": name, "networks": name, "prices": "price"}.get(
            head, head
        )
        sources = dict.fromkeys(
            source for number in of_part for source in (number["source"] or "").split(", ")
        )
        remarks = [first["confidence"] or "", "estimate" if first["estimate"] else ""]
        if first["halved"]:
            remarks.append("half of the figure with sparsity")
        if first["clock"] == "boost":
            remarks.append("at boost clock")
        yield NumberSource(
            part,
            ", ".join(_value(number, head) for number in of_part),
            tuple(source for source in sources if source),
            tuple(remark for remark in remarks if remark),
            (first["note"] or "") if first["estimate"] else "",
        )


def _value(number: NumberRecord, head: str) -> str:
    """A number of the chip as text."""
    key, value = number["path"].rpartition(".")[2], number["value"]
    if key == "bytes_per_s":
        return si(value, "B/s", DIGITS) + (" a link" if head == "networks" else "")
    forms = {
        "flops_per_s": lambda: si(value, "FLOP/s", DIGITS),
        "capacity_bytes": lambda: si(value, "B", DIGITS),
        "links": lambda: f"{value:.0f} links" if value != 1 else "1 link",
        "domain": lambda: f"{value:.0f} chips",
        "ring_multiple": lambda: f"rings of {value:.0f}",
        "watts": lambda: f"{value:,.10g} W",
        "usd_per_hour": lambda: f"${value:,.10g} an hour",
        "overhead_s": lambda: f"overhead {seconds(value)}",
        "typical_hop_latency_s": lambda: f"{seconds(value)} typically",
        "hop_latency_s": lambda: f"{seconds(value)} a hop",
    }
    return forms[key]() if key in forms else f"{key} {value:.10g}"
