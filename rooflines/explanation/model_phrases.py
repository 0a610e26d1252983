"""What the explanation of a whole model says."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rooflines.basics.text import count, significant
from rooflines.explanation.sheet import Bar, Line, Section, Sheet
from rooflines.explanation.wording import (
    DIGITS,
    MOST_DTYPES,
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
from rooflines.model.columns import ALWAYS, ENDLESS, FOUND, NEVER, UNKNOWN
from rooflines.model.step_columns import HEADS
from rooflines.models.cache import BY_BATCH
from rooflines.models.shape import DECODE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rooflines.explanation.model_answer import Experts, ModelExplanation

MOST_GROUPS = 4
"""Groups of kernels named [1]."""

ESTIMATES = {
    "B": {FOUND: "from {}", ALWAYS: "from {}"},
    "S": {FOUND: "up to {}", ENDLESS: "at every long context"},
}
"""Where the estimate is compute-bound, by axis and outcome."""

CENTS = 0.1
"""Prices from here on have cents [USD]."""


def sheet(explanation: ModelExplanation) -> Sheet:
    """What is shown of a model."""
    return Sheet(
        asked=_asked(explanation),
        finding=_finding(explanation),
        bound=explanation.row["bound"],
        bars=[Bar(used.bound, used.time_s, work_at_rate(used)) for used in explanation.uses],
        facts=list(_facts(explanation)),
        sections=[
            Section(
                "Time by group, kernel after kernel (softmax, norms and rotary left out):",
                list(_groups(explanation)),
            ),
            Section(_from_where(explanation), list(_sizes(explanation))),
            _changes(explanation),
        ],
        name=explanation.name,
        origins=list(origins(explanation.numbers)),
        documents=explanation.documents,
    )


def _asked(explanation: ModelExplanation) -> str:
    """The question: chip, model, phase, sizes, dtypes, split."""
    row = explanation.row
    each = " ".join(f"{letter}={size}" for letter, size in explanation.sizes.items())
    parts = [row["chip"], f"{row['model']} {row['phase']} {each}", row["dtypes"]]
    if row["chips"] > 1:
        network = f" of {row['network']}" if row["network_bytes"] else ""
        parts.append(f"{row['split']} on {row['chips']} chips{network}")
    if explanation.cache_split == BY_BATCH:
        parts.append("caches split by batch")
    return " · ".join(parts)


def _finding(explanation: ModelExplanation) -> str:
    """That it does not fit, with the smallest split that does; else what binds, and how fast."""
    row, capacity = explanation.row, explanation.capacity_bytes
    if row["fits"] is False and capacity is not None:
        held = si(row["footprint_bytes"], "B")
        room = f"{held} of weights and caches{_where(row)}, {si(capacity, 'B')} of {row['memory']}"
        return f"does not fit: {room}; {_fewest(explanation)}"
    return (
        f"{row['bound']}-bound: {seconds(row['t_lower_s'])} a step, "
        f"{count(row['tokens_per_s_per_chip'])} tokens/s per chip, {percent(row['mfu'])} of peak"
    )


def _where(row: Mapping[str, Any]) -> str:
    return " on each chip" if row["chips"] > 1 else ""


def _facts(explanation: ModelExplanation) -> Iterator[Line]:
    row, context = explanation.row, explanation.context
    if context is not None and explanation.sizes["S"] > context:
        longest = f"S is beyond the {context:,} tokens that the model is made for"
        yield Line("context", "", longest)
    if len(explanation.products) > 1:
        yield Line("peaks", "", _peaks(explanation))
    hops = [f"; hops at least {seconds(u.latency_s)}" for u in explanation.uses if u.latency_s]
    text = (
        f"{seconds(row['t_lower_s'])} with full overlap, {seconds(row['t_ops_s'])} kernel after "
        f"kernel, {seconds(row['t_upper_s'])} without"
    )
    label = "time" if row["phase"] == DECODE else "TTFT"
    yield Line(label, "", "".join([text, *hops]))
    if row["t_estimate_s"] is not None:
        of = ", ".join(explanation.softwares) or "measurements"
        within = "".join(f"; matmuls include {each}" for each in explanation.contents)
        yield Line("estimate", "", f"{seconds(row['t_estimate_s'])}, calibrated to {of}{within}")
    yield Line("tokens/s", "", _tokens(explanation))
    if quicker := list(_quicker(explanation)):
        yield Line("quicker", "", ", ".join(quicker))
    if explanation.experts is not None:
        yield Line("experts", "", _experts(explanation.experts))
    yield Line("fits", "", _fits(explanation))
    if row["fits"] is not False and (costs := list(_costs(explanation))):
        yield Line("costs", "", f"at best {', '.join(costs)}")


def _experts(experts: Experts) -> str:
    """How many experts are read; the rounded number is below E unless all of them are."""
    some = significant(experts.touched, DIGITS)
    if some == f"{experts.E}" and experts.touched < experts.E:
        some = "almost all"
    return f"{experts.routing} routing: {some} of {experts.E} in a layer are read"


def _peaks(explanation: ModelExplanation) -> str:
    """The products of each compute dtype."""
    return ", ".join(
        f"{si(each['flops'], 'FLOP')} in {each['compute']} at {si(each['per_s'], 'FLOP/s')}"
        for each in explanation.products
    )


def _tokens(explanation: ModelExplanation) -> str:
    row = explanation.row
    of = "" if row["phase"] == DECODE else " of the prompts"
    room = ", if it had the memory" if row["fits"] is False else ""
    return (
        f"{count(row['tokens_per_s'])}{of} with full overlap, {count(row['tokens_per_s_ops'])} "
        f"kernel after kernel{room}"
    )


def _fits(explanation: ModelExplanation) -> str:
    row, capacity = explanation.row, explanation.capacity_bytes
    held = (
        f"{si(row['weights_footprint_bytes'], 'B')} of weights, "
        f"{si(row['cache_footprint_bytes'], 'B')} of caches{_where(row)}"
    )
    if capacity is None:
        return f"not known: {held}, capacity of {row['memory']} not published"
    most = f"B up to {row['max_B']:,}" if row["max_B"] else "no sequence"
    room = f"{held}, {si(capacity, 'B')} of {row['memory']}; {most}"
    return f"yes: {room}; {_fewest(explanation)}" if row["fits"] else f"no: {room}"


def _fewest(explanation: ModelExplanation) -> str:
    """The fewest chips that hold weights and caches, in tensor parallelism."""
    (fewest,) = (each for each in explanation.thresholds if each["axis"] == "chips")
    if fewest["outcome"] == FOUND:
        return f"tp={fewest['critical']} is enough"
    if explanation.wider is not None:
        return f"tp={explanation.wider['tp']} over {explanation.wider['network']} is enough"
    if fewest["outcome"] == UNKNOWN:
        return "not known whether any tp is enough"
    return f"no tp is enough that the {fewest['limit']} allow{'s' * (fewest['limit'] != HEADS)}"


def _costs(explanation: ModelExplanation) -> Iterator[str]:
    """Money and energy of tokens at the bound."""
    row = explanation.row
    if row["usd_per_mtok"] is not None:
        price = row["usd_per_mtok"]
        text = f"{price:,.2f}" if price >= CENTS else significant(price)
        yield f"${text} a million tokens ({row['price_provider']}, {row['price_date']})"
    if row["j_per_token"] is not None:
        yield f"{significant(row['j_per_token'])} J a token"


def _quicker(explanation: ModelExplanation) -> Iterator[str]:
    """The formats in which a step is quickest, if one is quicker than those of the question."""
    row = explanation.row
    for other in explanation.dtypes[:MOST_DTYPES]:
        if other["t_lower_s"] < row["t_lower_s"]:
            fits = "; fits" if other["fits"] and not row["fits"] else ""
            yield (
                f"all {other['dtypes']}: {unbroken(other['t_lower_s'])} "
                f"({other['bound']}-bound{fits})"
            )


def _groups(explanation: ModelExplanation) -> Iterator[Line]:
    """The groups that take longest, and the others in one line."""
    times = [(group["count"] * group["t_ops_s"], group) for group in explanation.groups]
    times.sort(key=lambda each: -each[0])
    total = explanation.row["t_ops_s"]
    shown, rest = times[:MOST_GROUPS], times[MOST_GROUPS:]
    if len(rest) == 1:
        shown, rest = times, []
    for time_s, group in shown:
        label = f"{group['group']} × {group['count']}"
        text = f"{seconds(time_s)}, {group['bound']}-bound"
        yield Line(label, percent(time_s / total), text)
    if rest:
        time_s = sum(time_s for time_s, _ in rest)
        yield Line(f"{len(rest)} others", percent(time_s / total), seconds(time_s))


def _from_where(explanation: ModelExplanation) -> str:
    """The title of the thresholds."""
    context = ", and up to this context" if explanation.row["phase"] == DECODE else ""
    return f"Compute-bound from this batch on{context}:"


def _sizes(explanation: ModelExplanation) -> Iterator[Line]:
    """From which batch on it is compute-bound, and up to which context some batch is."""
    for row in explanation.thresholds:
        if row["axis"] in ESTIMATES:
            line = _batch(explanation, row) if row["axis"] == "B" else _context(row)
            estimate = by_estimate(row, ESTIMATES[row["axis"]])
            yield replace(line, text="; ".join(filter(None, [line.text, estimate])))


def _batch(explanation: ModelExplanation, threshold: Mapping[str, Any]) -> Line:
    outcome, exact, fit = (threshold[key] for key in ("outcome", "critical_exact", "max_B_fit"))
    if outcome == FOUND:
        room = ""
        if fit is not None and fit < threshold["critical"]:
            room = f"; {fit or 'none'} fit{'s' * (fit <= 1)}"
        return Line("B", f"{threshold['critical']}", f"crossover {crossover(exact)}{room}")
    if outcome == ALWAYS:
        return Line("B", "any", "compute-bound at every batch")
    if outcome == NEVER:
        adds = explanation.per_sequence_s
        math, other = seconds(adds["compute"]), seconds(adds[threshold["limit"]])
        text = f"each sequence adds {math} of compute, {other} of {threshold['limit']} time"
        return Line("B", "never", text)
    return Line("B", outcome, f"crossover {exact:.4g}, beyond 2^62")


def _context(threshold: Mapping[str, Any]) -> Line:
    outcome, critical, limit = (threshold[key] for key in ("outcome", "critical", "limit"))
    if outcome == FOUND:
        return Line("S", f"≤ {critical}", f"with a large batch; longer contexts are {limit}-bound")
    if outcome == ENDLESS:
        return Line("S", "any", "every long context has a compute-bound batch")
    if outcome == NEVER:
        return Line("S", "never", "no batch is compute-bound at any context")
    return Line("S", outcome, f"crossover {threshold['critical_exact']:.4g}, beyond 2^62")


def _changes(explanation: ModelExplanation) -> Section:
    """The rates that would make it compute-bound."""
    if all(change.outcome == ALWAYS for change in explanation.changes):
        return Section("At these sizes it is compute-bound as it is.")
    lines = list(rates(explanation.changes, explanation.uses))
    return Section("or with this, all else equal:", lines)
