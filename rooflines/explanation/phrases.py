"""What the explanation of one operation says."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rooflines.basics.text import significant
from rooflines.explanation.sheet import Bar, Line, Section, Sheet
from rooflines.explanation.wording import (
    DIGITS,
    MOST_DTYPES,
    NO_BREAK,
    apart,
    by_estimate,
    crossover,
    origins,
    percent,
    rates,
    seconds,
    si,
    unbroken,
    work_at_rate,
)
from rooflines.model.columns import ALWAYS, AXES, ENDLESS, FOUND, NEVER
from rooflines.model.resources import RESOURCES
from rooflines.model.sharding import SHARDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rooflines.explanation.values import Answer

ESTIMATES = {ALWAYS: "at every size", FOUND: "from {}"}
"""From which size on the estimate is compute-bound, by outcome."""


def sheet(explanation: Answer) -> Sheet:
    """What is shown of an operation."""
    return Sheet(
        asked=_asked(explanation),
        finding=_finding(explanation),
        bound=explanation.row["bound"],
        bars=[Bar(used.bound, used.time_s, work_at_rate(used)) for used in explanation.uses],
        facts=list(_facts(explanation)),
        sections=[
            Section(
                "Compute-bound from this size on, the others as they are:",
                list(_sizes(explanation)),
            ),
            _changes(explanation),
        ],
        name=explanation.name,
        origins=list(origins(explanation.numbers)),
        documents=explanation.documents,
    )


def _asked(explanation: Answer) -> str:
    """The question: chip, operation, sizes, dtypes, split."""
    row = explanation.row
    each = " ".join(f"{dim}={size}" for dim, size in explanation.sizes.items())
    split = (
        [f"{row['sharding']} over {row.get(AXES) or row['shards']} chips of {row['network']}"]
        if row["sharding"] != "none"
        else []
    )
    return " · ".join([row["chip"], f"{row['operation']} {each}", row["dtypes"], *split])


def _finding(explanation: Answer) -> str:
    """The bottleneck, and the share of the peak that is reached."""
    row = explanation.row
    attained = si(row["attained_flops_per_s"], "FLOP/s")
    return f"{row['bound']}-bound: {attained}, {percent(row['utilization'])} of peak"


def _facts(explanation: Answer) -> Iterator[Line]:
    """Times with and without overlap, intensities, and whether it fits."""
    row = explanation.row
    if row["t_lower_s"] < row["t_upper_s"]:
        both = f"{seconds(row['t_lower_s'])} with full overlap, {seconds(row['t_upper_s'])} without"
    else:
        both = seconds(row["t_lower_s"])
    hops = [f"; hops at least {seconds(u.latency_s)}" for u in explanation.uses if u.latency_s]
    yield Line("time", "", "".join([both, *hops]))
    if row["t_estimate_s"] is not None:
        yield Line("estimate", "", _estimate(explanation))
    for used in explanation.uses:
        if used.intensity is not None and used.needed_intensity is not None:
            have, need = apart(used.intensity, used.needed_intensity)
            text = f"{have} FLOP/B of {used.bound} traffic; compute-bound from {need}"
            yield Line("intensity", "", text)
    yield Line("fits", "", _fits(explanation))


def _estimate(explanation: Answer) -> str:
    """The calibrated time, its band, and the software it is calibrated to."""
    row = explanation.row
    band = [row["t_estimate_p10_s"], row["t_estimate_p90_s"]]
    ends = "" if None in band else f", {seconds(band[0])} to {seconds(band[1])}"
    of = f"{explanation.software}; {row['estimate_bound']}-bound" if explanation.software else ""
    calibrated = f"{seconds(row['t_estimate_s'])}{ends}, calibrated to {of or 'measurements'}"
    return calibrated + (f"; includes {explanation.contents}" if explanation.contents else "")


def _fits(explanation: Answer) -> str:
    row, capacity = explanation.row, explanation.capacity_bytes
    each = " of each chip" if row["shards"] > 1 else ""
    held = f"{si(row['footprint_bytes'], 'B')} of operands and result{each}"
    if capacity is None:
        return f"not known: {held}, capacity of {row['memory']} not published"
    room = f"{held}, {si(capacity, 'B')} of {row['memory']}"
    return f"{'yes' if row['fits'] else 'no'}: {room}"


def _sizes(explanation: Answer) -> Iterator[Line]:
    """From which size on it is compute-bound, along every axis, the others as they are."""
    for axis, rows in groupby(explanation.thresholds, key=lambda row: str(row["axis"])):
        whole, *less = rows
        line = _shards(whole) if axis == SHARDS else _size(explanation, whole)
        shares = (_less(explanation, whole, each) for each in less)
        texts = [line.text, *shares, by_estimate(whole, ESTIMATES)]
        yield replace(line, text="; ".join(filter(None, texts)))


def _size(explanation: Answer, threshold: Mapping[str, Any]) -> Line:
    axis, outcome, exact = (threshold[key] for key in ("axis", "outcome", "critical_exact"))
    if outcome == FOUND:
        text = f"crossover {crossover(exact)}"
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
    return where and f"{percent(less['share'])} of {_peak(explanation)} {where}"


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
    have, need = apart(tends, needed)
    reached = f"{percent(share)} of {_peak(explanation)}"
    return f"{limit} intensity tends to {have} of {need} FLOP/B: {reached}"


def _changes(explanation: Answer) -> Section:
    """What else would make it compute-bound: a rate, or other dtypes."""
    if all(change.outcome == ALWAYS for change in explanation.changes):
        return Section("At these sizes it is compute-bound as it is.")
    lines = [*rates(explanation.changes, explanation.uses), _dtypes(explanation)]
    return Section("or with this, all else equal:", lines)


def _dtypes(explanation: Answer) -> Line:
    """The quickest dtype combinations that are compute-bound at these sizes, and quicker."""
    others = explanation.dtypes
    if not others:
        return Line("dtypes", "no", "the unit computes no others")
    bound = [
        other
        for other in others
        if other["bound"] == RESOURCES[0].bound
        and other["t_lower_s"] < explanation.row["t_lower_s"]
    ]
    if not bound:
        which = f"none of the {len(others)} others" if len(others) > 1 else "the only other one"
        verb = "is" if len(others) > 1 else "is not"
        text = f"{which} that the unit computes {verb} compute-bound and quicker"
        return Line("dtypes", "no", text)
    more = f", {len(bound) - MOST_DTYPES}{NO_BREAK}more" if len(bound) > MOST_DTYPES else ""
    shown = (f"{other['dtypes']} ({unbroken(other['t_lower_s'])})" for other in bound[:MOST_DTYPES])
    return Line("dtypes", "", f"{', '.join(shown)}{more}")
