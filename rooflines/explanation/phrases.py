"""What an explanation says, piece by piece; the text and the card lay the pieces out."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rooflines.basics import text as units
from rooflines.basics.text import significant
from rooflines.critical.rates import LATENCY
from rooflines.model.columns import ALWAYS, AXES, ENDLESS, FOUND, NEVER
from rooflines.model.resources import RESOURCES
from rooflines.model.sharding import SHARDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.catalogue.parts import NumberRecord
    from rooflines.explanation.values import Answer, Change, Use

__all__ = [
    "NO_BREAK",
    "Line",
    "Origin",
    "asked",
    "changes",
    "facts",
    "finding",
    "origins",
    "seconds",
    "sizes",
    "use",
]

DIGITS = 4
"""Significant digits of intensities, factors and real sizes [1]."""

LONGEST_TIME = 1e6
"""Times from here on have an exponent [s]."""

LARGEST = 1e24
"""Quantities from here on have an exponent; the largest prefix is 1e21."""

SLACK = 1e-12
"""Share by which a number may exceed a rounded one: it has a few roundings itself [1]."""

NO_BREAK = "\xa0"
"""A space that no line is broken at."""

MOST_DTYPES = 3
"""Dtype combinations named [1]."""

UNITS = {"flops": "FLOP", "flops_per_s": "FLOP/s"}
"""Units of columns and rates that are not of bytes."""


@dataclass(frozen=True)
class Line:
    """A labelled statement.

    Attributes:
        label: What it is about.
        value: The short answer; may be empty.
        text: The rest.
    """

    label: str
    value: str
    text: str


@dataclass(frozen=True)
class Origin:
    """Where the numbers of one part of the chip come from.

    Attributes:
        part: The part, such as `bf16 peak` or `hbm`.
        values: Its numbers as text.
        sources: Ids of documents, or free text.
        remarks: Confidence, `estimate`, `halved`.
        note: What else to know; only of estimates.
    """

    part: str
    values: str
    sources: tuple[str, ...]
    remarks: tuple[str, ...]
    note: str


def seconds(value: float) -> str:
    """A time; beyond weeks with an exponent."""
    return units.seconds(value) if value < LONGEST_TIME else f"{value:.3g} s"


def si(value: float, unit: str, digits: int = 3) -> str:
    """A quantity with an SI prefix; beyond the prefixes with an exponent."""
    return units.si(value, unit, digits) if value < LARGEST else f"{value:.{digits}g} {unit}"


def asked(explanation: Answer) -> str:
    """The question: chip, operation, sizes, dtypes, split."""
    row = explanation.row
    each = " ".join(f"{dim}={size}" for dim, size in explanation.sizes.items())
    split = (
        [f"{row['sharding']} over {row.get(AXES) or row['shards']} chips of {row['network']}"]
        if row["sharding"] != "none"
        else []
    )
    return " · ".join([row["chip"], f"{row['operation']} {each}", row["dtypes"], *split])


def finding(explanation: Answer) -> str:
    """The bottleneck, and the share of the peak that is reached."""
    row = explanation.row
    attained = si(row["attained_flops_per_s"], "FLOP/s")
    return f"{row['bound']}-bound: {attained}, {_percent(row['utilization'])} of peak"


def _percent(share: float) -> str:
    """A share in percent; less than all is never 100%."""
    text = significant(100 * share)
    if text == "100":
        text = significant(_rounded(100 * share, DIGITS + 1, up=False), DIGITS + 1)
    return f"{text}%"


def use(used: Use) -> str:
    """The work of one resource and its rate."""
    unit = UNITS.get(used.column, "B")
    return f"{si(used.work, unit)} at {si(used.per_s, f'{unit}/s')}"


def facts(explanation: Answer) -> Iterator[Line]:
    """Times with and without overlap, intensities, and whether it fits."""
    row = explanation.row
    if row["t_lower_s"] < row["t_upper_s"]:
        both = f"{seconds(row['t_lower_s'])} with full overlap, {seconds(row['t_upper_s'])} without"
    else:
        both = seconds(row["t_lower_s"])
    hops = [f"; hops at least {seconds(u.latency_s)}" for u in explanation.uses if u.latency_s]
    yield Line("time", "", "".join([both, *hops]))
    if row["t_estimate_s"] is not None:
        yield Line("estimate", "", f"{seconds(row['t_estimate_s'])}, calibrated to measurements")
    for used in explanation.uses:
        if used.intensity is not None and used.needed_intensity is not None:
            have, need = _apart(used.intensity, used.needed_intensity)
            text = f"{have} FLOP/B of {used.bound} traffic; compute-bound from {need}"
            yield Line("intensity", "", text)
    yield Line("fits", "", _fits(explanation))


def _fits(explanation: Answer) -> str:
    row, capacity = explanation.row, explanation.capacity_bytes
    each = " of each chip" if row["shards"] > 1 else ""
    held = f"{si(row['footprint_bytes'], 'B')} of operands and result{each}"
    if capacity is None:
        return f"not known: {held}, capacity of {row['memory']} not published"
    room = f"{held}, {si(capacity, 'B')} of {row['memory']}"
    return f"{'yes' if row['fits'] else 'no'}: {room}"


def _apart(one: float, other: float) -> tuple[str, str]:
    """Two numbers with as many digits as tell them apart."""
    for digits in range(DIGITS, 17):
        first, second = significant(one, digits), significant(other, digits)
        if first != second or one == other:
            break
    return first, second


def _crossover(size: float) -> str:
    """A real size, with two decimals or as many as tell it from a whole number."""
    for decimals in range(2, 12):
        text = f"{size:,.{decimals}f}"
        if size == round(size) or text.rstrip("0")[-1] != ".":
            break
    return text.rstrip("0").rstrip(".")


def _rounded(value: float, digits: int, *, up: bool) -> float:
    """A number above zero to a few digits, never on the other side of what it bounds."""
    scale = 10.0 ** (digits - 1 - math.floor(math.log10(value)))
    return (math.ceil if up else math.floor)(
        value * scale * (1 + (-SLACK if up else SLACK))
    ) / scale


def sizes(explanation: Answer) -> Iterator[Line]:
    """From which size on it is compute-bound, along every axis, the others as they are."""
    for axis, rows in groupby(explanation.thresholds, key=lambda row: str(row["axis"])):
        whole, *less = rows
        line = _shards(whole) if axis == SHARDS else _size(explanation, whole)
        shares = (_less(explanation, whole, each) for each in less)
        yield replace(line, text="; ".join([line.text, *filter(None, shares)]))


def _size(explanation: Answer, threshold: Mapping[str, Any]) -> Line:
    axis, outcome, exact = (threshold[key] for key in ("axis", "outcome", "critical_exact"))
    if outcome == FOUND:
        text = f"crossover {_crossover(exact)}"
        if threshold["critical_rule"]:
            text += f"; rule of thumb {significant(threshold['critical_rule'], DIGITS)}"
        return Line(axis, f"{threshold['critical']}", text)
    if outcome == ALWAYS:
        return Line(axis, "any", "compute-bound at every size")
    if outcome == NEVER:
        return Line(axis, "never", _never(explanation, threshold))
    return Line(axis, outcome, f"crossover {exact:.4g}, beyond 2^62")


def _shards(threshold: Mapping[str, Any]) -> Line:
    outcome, critical, limit = (threshold[key] for key in ("outcome", "critical", "limit"))
    if outcome == FOUND:
        return Line("shards", f"≤ {critical}", f"then {limit}-bound")
    if outcome == ALWAYS:
        return Line("shards", f"≤ {critical}", "all that the network joins")
    if outcome == ENDLESS:
        return Line("shards", "any", "no upper limit")
    if outcome == NEVER:
        return Line("shards", "never", f"{limit}-bound on one chip already")
    least = "" if critical is None else f"≥ {critical}"
    return Line("shards", least, f"not known: {outcome}")


def _less(explanation: Answer, whole: Mapping[str, Any], less: Mapping[str, Any]) -> str | None:
    """From where on it attains a share of the peak; None: nowhere, or where it is compute-bound."""
    outcome, critical = less["outcome"], less["critical"]
    if (outcome, critical) == (whole["outcome"], whole["critical"]):
        return None
    where = {ENDLESS: "on any number of chips", ALWAYS: "at every size"}.get(outcome)
    if critical is not None and less["axis"] == SHARDS:
        where = f"up to {critical}"
    elif outcome == FOUND:
        where = f"from {critical}"
    return where and f"{_percent(less['share'])} of {_peak(explanation)} {where}"


def _peak(explanation: Answer) -> str:
    """The peak that shares are of: the nominal one unless an efficiency lowers it."""
    lowered = any(number["path"] == "efficiency.math" for number in explanation.numbers)
    return "attainable peak" if lowered else "peak"


def _never(explanation: Answer, threshold: Mapping[str, Any]) -> str:
    """Why no size is large enough: what the intensity tends to, and what is needed."""
    limit, tends = threshold["limit"], threshold["limit_intensity"]
    needed = next((used.needed_intensity for used in explanation.uses if used.bound == limit), None)
    share = explanation.limit_shares.get(threshold["axis"])
    if tends is None or needed is None or share is None:
        return f"{limit}-bound at every size"
    if share == 1:
        return f"{limit} intensity tends to {significant(needed, DIGITS)} FLOP/B, but stays below"
    have, need = _apart(tends, needed)
    reached = f"{_percent(share)} of {_peak(explanation)}"
    return f"{limit} intensity tends to {have} of {need} FLOP/B: {reached}"


def changes(explanation: Answer) -> Iterator[Line]:
    """What else would make it compute-bound: a rate, or other dtypes."""
    if all(change.outcome == ALWAYS for change in explanation.changes):
        return
    for change in explanation.changes:
        unit = "FLOP/s" if change.rate == "peak" else "B/s"
        name = "peak" if change.rate == "peak" else f"{change.resource} bandwidth"
        if change.factor is None or change.needed_per_s is None:
            yield Line(name, "no", _no_rate(explanation, change))
            continue
        up = change.rate != "peak"
        factor = significant(_rounded(change.factor, DIGITS, up=up), DIGITS)
        needed = si(_rounded(change.needed_per_s, DIGITS, up=up), unit, DIGITS)
        yield Line(name, f"× {factor}", f"at {'least' if up else 'most'} {needed}")
    yield _dtypes(explanation.dtypes)


def _no_rate(explanation: Answer, change: Change) -> str:
    if change.outcome == LATENCY:
        (used,) = (used for used in explanation.uses if used.resource == change.resource)
        return f"its hops alone take {seconds(used.latency_s)}, longer than the math"
    return f"the {change.limit} takes longer than the math"


def _dtypes(others: Sequence[Mapping[str, Any]]) -> Line:
    """The quickest dtype combinations that are compute-bound at these sizes."""
    if not others:
        return Line("dtypes", "no", "the unit computes no others")
    bound = [other for other in others if other["bound"] == RESOURCES[0].bound]
    if not bound:
        count = f"none of the {len(others)} others" if len(others) > 1 else "not the other one"
        return Line("dtypes", "no", f"{count} that the unit computes")
    more = f", {len(bound) - MOST_DTYPES}{NO_BREAK}more" if len(bound) > MOST_DTYPES else ""
    shown = (
        f"{other['dtypes']} ({_unbroken(other['t_lower_s'])})" for other in bound[:MOST_DTYPES]
    )
    return Line("dtypes", "", f"{', '.join(shown)}{more}")


def _unbroken(time_s: float) -> str:
    """A time that no line is broken in."""
    return seconds(time_s).replace(" ", NO_BREAK)


def origins(explanation: Answer) -> Iterator[Origin]:
    """Every number that was used, with its source, part by part."""

    def part_of(number: NumberRecord) -> str:
        return number["path"].rpartition(".")[0]

    for path, of_part in groupby(explanation.numbers, key=part_of):
        numbers = list(of_part)
        first = numbers[0]
        head, _, rest = path.partition(".")
        name = rest.rpartition(".")[2]
        part = {"units": f"{name} peak", "memory": name, "networks": name}.get(head, head)
        sources = dict.fromkeys(
            source for number in numbers for source in (number["source"] or "").split(", ")
        )
        remarks = [first["confidence"] or "", "estimate" if first["estimate"] else ""]
        if first["halved"]:
            remarks.append("half of the figure with sparsity")
        if explanation.clock == "boost" and head == "units":
            remarks.append("at boost clock")
        yield Origin(
            part,
            ", ".join(_value(number, head) for number in numbers),
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
        "overhead_s": lambda: f"overhead {seconds(value)}",
        "typical_hop_latency_s": lambda: f"{seconds(value)} typically",
        "hop_latency_s": lambda: f"{seconds(value)} a hop",
    }
    return forms[key]() if key in forms else f"{key} {value:.10g}"
