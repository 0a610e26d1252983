"""Headline of a table of splits: the best one with its time, rates and memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.answers.basis import BOUND_BASIS, ESTIMATE_BASIS, SERIALIZED_BASIS, Basis
from rooflines.basics.text import count, percent, seconds, si, significant
from rooflines.models.architecture import DECODE, TRAIN
from rooflines.solvers.plan_search import RANK_TIMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

RATE, USER_RATE = "tokens_per_s_per_chip", "tokens_per_s_per_user"
"""Columns with rates of one chip and of one user."""

NOUNS: Mapping[str, str] = {DECODE: " a token (TPOT)", TRAIN: " a step"}
"""Words after a step's time, by phase."""


def split_headline(  # noqa: PLR0913, the parts of a table
    rows: Sequence[Mapping[str, Any]],
    basis: Basis,
    titles: Mapping[str, str],
    *,
    phase: str,
    within_s: float | None = None,
    is_ranked_apart: bool = False,
    is_draft: bool = False,
) -> str:
    """Sentence on the best split of one chip's table.

    Args:
        rows: Rows, one for each split, the best first.
        basis: Time that the table leads with.
        titles: Column titles; that of the bound says whether it is a mean.
        phase: Phase of the step.
        within_s: Limit on the step time, at whose largest batches the splits stand [s]; None: none.
        is_ranked_apart: True for training plans, which another time ranks than that of the basis.
        is_draft: True for steps of several tokens.
    """
    best = rows[0]
    if best["fits"] is False:
        leanest = min(rows, key=lambda row: float(row["footprint_bytes"]))
        needed = si(leanest["footprint_bytes"], "B")
        return f"No split fits; {leanest['split']} needs the least memory, {needed} a chip."
    verb = f"By the {basis.noun} {best['split']} is the quickest"
    if within_s is not None:
        limit = f"within {seconds(within_s)}, at B = {best['B']:,}"
        verb = f"By the {basis.noun} {best['split']} has the most tokens/s {limit}"
    noun = " a step" if is_draft else NOUNS.get(phase, " of prefill")
    time = f"{seconds(best[basis.column])}{noun}"
    if is_ranked_apart:
        verb, time = f"{best['split']} ranks first", f"{time} by the {basis.noun}"
    if basis is BOUND_BASIS:
        time = f"{titles.get(basis.column, basis.title)} {time}"
    times = ", ".join([time, *_beside(best, basis, titles)])
    most = "at most " if basis is BOUND_BASIS else ""
    rates = ", ".join(_rates(best, basis, phase))
    memory = f"; {si(best['footprint_bytes'], 'B')} a chip" if best["footprint_bytes"] else ""
    if best.get("peak_bytes") is not None and best["fits_by"] != "peak":
        memory += f", {si(best['peak_bytes'], 'B')} or more at the peak, which fits does not count"
    return f"{verb}: {times}; {most}{rates}{memory}.{_widest(rows, basis)}"


def rank_time(row: Mapping[str, Any]) -> float:
    """Time that ranks training plans: halfway from serialized to without overlap [s]."""
    serial, upper = float(row[SERIALIZED_BASIS.column]), float(row["t_upper_s"])
    return serial + RANK_TIMES["t_rank_s"] * (upper - serial)


def _beside(row: Mapping[str, Any], basis: Basis, titles: Mapping[str, str]) -> Iterator[str]:
    """Band, and the bound."""
    low, high = row.get("t_estimate_p10_s"), row.get("t_estimate_p90_s")
    if basis is ESTIMATE_BASIS and low is not None and high is not None:
        yield f"80% within {seconds(low)} to {seconds(high)}"
    if basis is not BOUND_BASIS:
        title = titles.get(BOUND_BASIS.column, BOUND_BASIS.title)
        yield f"{title} {seconds(row[BOUND_BASIS.column])}"


def _rates(row: Mapping[str, Any], basis: Basis, phase: str) -> Iterator[str]:
    """Rates on the basis."""
    if phase == DECODE and row.get(USER_RATE) is not None:
        yield f"{significant(row[USER_RATE])} tokens/s/user"
    yield f"{count(_rate(row, basis))} tokens/s/chip"
    utilization = row.get(f"mfu{basis.suffix}")
    if phase == TRAIN and utilization is not None:
        yield f"{percent(utilization)} MFU"


def _rate(row: Mapping[str, Any], basis: Basis) -> float:
    """Tokens/s of one chip on the basis [1/s]."""
    rate = row.get(f"{RATE}{basis.suffix}")
    return float(row[RATE] if rate is None else rate)


def _widest(rows: Sequence[Mapping[str, Any]], basis: Basis) -> str:
    """Sentence on the split with the most tokens per chip, where that is not the best."""
    fitting = [row for row in rows if row["fits"] is not False]
    most = max(fitting, key=lambda row: _rate(row, basis))
    if _rate(most, basis) <= _rate(rows[0], basis) or len({row["chips"] for row in rows}) == 1:
        return ""
    return f" {most['split']} has the most tokens/s/chip, {count(_rate(most, basis))}."


def request_headline(rows: Sequence[Mapping[str, Any]], basis: Basis, *, is_limited: bool) -> str:
    """Sentence on the best split of one chip's table of requests.

    Args:
        rows: Rows, one for each split, the best first.
        basis: Time that the table leads with.
        is_limited: Whether splits stand at their largest batch within a limit.
    """
    best = rows[0]
    if best["fits"] is False:
        leanest = min(rows, key=lambda row: float(row["footprint_bytes"]))
        needed = si(leanest["footprint_bytes"], "B")
        return f"No split fits; {leanest['split']} needs the least memory, {needed} a chip."
    verb = f"has the most tokens/s, at B = {best['B']:,}" if is_limited else "is the quickest"
    rates = [
        f"TPOT {seconds(best['tpot_basis_s'])}",
        f"{significant(best[USER_RATE])} tokens/s/user",
        f"{count(best['output_tokens_per_s'])} tokens/s",
    ]
    cost = best.get("usd_per_output_mtok")
    rates += [f"${significant(cost)}/Mtok"] if cost is not None else []
    return f"By the {basis.noun} {best['split']} {verb}: {', '.join(rates)}."
