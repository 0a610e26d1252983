"""What an explanation says, of an operation or of a step of a model."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rooflines.basics.text import count, significant
from rooflines.explanation.sentences import LEAST_FACTOR, Ranking, Sentence, broken, first_true
from rooflines.explanation.sheet import Bar, Line, Section, Sheet
from rooflines.explanation.wording import (
    DIGITS,
    MOST_DTYPES,
    NO_BREAK,
    apart,
    crossover,
    origins,
    percent,
    rates,
    saturation,
    seconds,
    si,
    unbroken,
    work_at_rate,
)
from rooflines.model.columns import ALWAYS, AXES, ENDLESS, FOUND, NEVER, UNKNOWN
from rooflines.model.resources import RESOURCES
from rooflines.model.sharding import SHARDS
from rooflines.model.step_columns import HEADS
from rooflines.models.cache import BY_BATCH
from rooflines.models.shape import DECODE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rooflines.explanation.values import Answer

MOST_GROUPS = 4
"""Groups of kernels named [1]."""

CENTS = 0.1
"""Prices from here on have cents [USD]."""


def sheet(explanation: Answer) -> Sheet:
    """What is shown."""
    of_a_model = explanation.of_a_model
    return Sheet(
        asked=asked(explanation.row, explanation.sizes, explanation.cache_split),
        finding=(_step_finding if of_a_model else _finding)(explanation),
        bound=explanation.row["bound"],
        bars=[Bar(used.bound, used.time_s, work_at_rate(used)) for used in explanation.uses],
        facts=list((_step_facts if of_a_model else _facts)(explanation)),
        sections=[
            *((_step_sections if of_a_model else _sections)(explanation)),
            _changes(explanation),
        ],
        name=explanation.name,
        origins=list(origins(explanation.numbers)),
        documents=explanation.documents,
    )


def asked(row: Mapping[str, Any], sizes: Mapping[str, int], cache_split: str | None = None) -> str:
    """The question: chip, operation or model, sizes, dtypes, split."""
    each = " ".join(f"{letter}={size}" for letter, size in sizes.items())
    over = Sentence(f" of {row['network']}", rows=[row], moves="network")
    network = "" if broken(over) else over.text
    if "model" not in row:
        parts = [row["chip"], " ".join(filter(None, [row["operation"], each])), row["dtypes"]]
        if row["sharding"] != "none":
            chips = row.get(AXES) or row["shards"]
            parts.append(f"{row['sharding']} over {chips} chips{network}")
        return " · ".join(parts)
    parts = [row["chip"], " ".join(filter(None, [row["model"], row["phase"], each])), row["dtypes"]]
    if row["chips"] > 1:
        parts.append(f"{row['split']} on {row['chips']} chips{network}")
    if cache_split == BY_BATCH:
        parts.append("caches split by batch")
    return " · ".join(parts)


def _changes(explanation: Answer) -> Section:
    """What else would make it compute-bound: a rate, or other dtypes of an operation."""
    if all(change.outcome == ALWAYS for change in explanation.changes):
        return Section("At these sizes it is compute-bound as it is.")
    lines = list(rates(explanation.changes, explanation.uses))
    if not explanation.of_a_model:
        lines.append(_dtypes(explanation))
    return Section("or with this, all else equal:", lines)


def _held(explanation: Answer, held: str, most: str = "") -> str:
    """Whether something is held by the memory, with what it takes and what there is."""
    row, capacity = explanation.row, explanation.capacity_bytes
    if capacity is None:
        return f"not known: {held}, capacity of {row['memory']} not published"
    room = f"{held}, {si(capacity, 'B')} of {row['memory']}{most}"
    return f"{'yes' if row['fits'] else 'no'}: {room}"


# ---------------------------------------------------------------- operations


def _finding(explanation: Answer) -> str:
    """The bottleneck, the least time, and the largest share of the peak."""
    row = explanation.row
    time, attained = seconds(row["t_lower_s"]), si(row["attained_flops_per_s"], "FLOP/s")
    share = percent(row["utilization"])
    claims: dict[str, Any] = {"rows": [row], "chosen": row["chip"]}
    return first_true(
        [
            Sentence(
                f"{row['bound']}-bound: at least {time}, at most {attained}, {share} of peak",
                **claims,
                blames=row["bound"],
                attains=True,
            ),
            Sentence(f"at least {time}", **claims),
        ]
    ).text


def _measured(explanation: Answer) -> Iterator[Line]:
    """How far timings of the chip in these dtypes are above the bound."""
    timed = explanation.measured
    if timed is not None:
        low, high = (significant(timed[name]) for name in ("p10", "p90"))
        what = "steps served" if explanation.of_a_model else "kernels"
        of = f"{timed['n']:,} {what}, {timed['software']}"
        yield Line("measured", "", f"{low} to {high} times the bound, p10 to p90 ({of})")


def _facts(explanation: Answer) -> Iterator[Line]:
    """Times with and without overlap, intensities, and whether it fits."""
    row = explanation.row
    both = seconds(row["t_lower_s"])
    if row["t_lower_s"] < row["t_upper_s"]:
        both = f"{both} with full overlap, {seconds(row['t_upper_s'])} without"
    yield Line("time", "", "".join([both, *_hops(explanation)]))
    if row["t_estimate_s"] is not None:
        yield Line("estimate", "", _estimate(explanation))
    yield from _measured(explanation)
    for used in explanation.uses:
        if used.intensity is not None and used.needed_intensity is not None:
            have, need = apart(used.intensity, used.needed_intensity)
            text = f"{have} FLOP/B of {used.bound} traffic; compute-bound from {need}"
            yield Line("intensity", "", text)
    each = " of each chip" if row["shards"] > 1 else ""
    held = f"{si(row['footprint_bytes'], 'B')} of operands and result{each}"
    yield Line("fits", "", _held(explanation, held))


def _hops(explanation: Answer) -> list[str]:
    return [f"; hops at least {seconds(u.latency_s)}" for u in explanation.uses if u.latency_s]


def _estimate(explanation: Answer) -> str:
    """The calibrated time, its band, and the software it is calibrated to."""
    row = explanation.row
    band = [row["t_estimate_p10_s"], row["t_estimate_p90_s"]]
    ends = "" if None in band else f", {seconds(band[0])} to {seconds(band[1])}"
    named = ", ".join(explanation.softwares)
    of = f"{named}; {row['estimate_bound']}-bound" if named else "measurements"
    includes = "".join(f"; includes {each}" for each in explanation.contents)
    return f"{seconds(row['t_estimate_s'])}{ends}, calibrated to {of}{includes}"


def _sections(explanation: Answer) -> Iterator[Section]:
    """From which size on it is compute-bound, along every axis, the others as they are."""
    lines = []
    for axis, rows in groupby(explanation.thresholds, key=lambda row: str(row["axis"])):
        whole, *less = rows
        line = _shards(whole) if axis == SHARDS else _size(explanation, whole)
        shares = (_less(explanation, whole, each) for each in less)
        texts = [line.text, *shares, saturation(whole)]
        lines.append(replace(line, text="; ".join(filter(None, texts))))
    yield Section("Compute-bound from this size on, the others as they are:", lines)


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


def _faster(explanation: Answer) -> list[Mapping[str, Any]]:
    """Other dtypes whose bound is shorter by more than a ranking of bounds needs."""
    own = explanation.row["t_lower_s"]
    return [
        other
        for other in explanation.dtypes
        if not broken(Sentence("bound", ranks=Ranking(own, other["t_lower_s"])))
    ]


def _dtypes(explanation: Answer) -> Line:
    """The quickest dtype combinations that are compute-bound at these sizes, and quicker."""
    others = explanation.dtypes
    if not others:
        return Line("dtypes", "no", "the unit computes no others")
    bound = [each for each in _faster(explanation) if each["bound"] == RESOURCES[0].bound]
    if not bound:
        which = f"none of the {len(others)} others" if len(others) > 1 else "the only other one"
        verb = "is" if len(others) > 1 else "is not"
        quicker = f"compute-bound and quicker by a factor of {LEAST_FACTOR}"
        text = f"{which} that the unit computes {verb} {quicker}"
        return Line("dtypes", "no", text)
    more = f", {len(bound) - MOST_DTYPES}{NO_BREAK}more" if len(bound) > MOST_DTYPES else ""
    shown = (
        f"{other['dtypes']} (bound {unbroken(other['t_lower_s'])})" for other in bound[:MOST_DTYPES]
    )
    return Line("dtypes", "", f"{', '.join(shown)}{more}")


# ---------------------------------------------------------------- steps of models


def _step_finding(explanation: Answer) -> str:
    """That it does not fit, with the smallest split that does; else what binds, and how fast."""
    row, capacity = explanation.row, explanation.capacity_bytes
    if row["fits"] is False and capacity is not None:
        held = si(row["footprint_bytes"], "B")
        room = f"{held} of weights and caches{_where(row)}, {si(capacity, 'B')} of {row['memory']}"
        return f"does not fit: {room}; {_fewest(explanation)}"
    text = (
        f"{row['bound']}-bound: {seconds(row['t_ops_s'])} a step, kernel after kernel, "
        f"{count(row['tokens_per_s_per_chip_ops'])} tokens/s per chip, "
        f"{percent(row['mfu_ops'])} of peak; at least {seconds(row['t_lower_s'])}"
    )
    other = f"; published in {explanation.published}" if explanation.published else ""
    claims: dict[str, Any] = {"rows": [row], "chosen": row["chip"]}
    claims |= {"blames": row["bound"], "published": explanation.published}
    return first_true([Sentence(text, **claims), Sentence(f"{text}{other}", **claims)]).text


def _where(row: Mapping[str, Any]) -> str:
    return " on each chip" if row["chips"] > 1 else ""


def _step_facts(explanation: Answer) -> Iterator[Line]:
    row, context = explanation.row, explanation.context
    if context is not None and explanation.sizes["S"] > context:
        longest = f"S is beyond the {context:,} tokens that the model is made for"
        yield Line("context", "", longest)
    if len(explanation.products) > 1:
        peaks = (
            f"{si(each['flops'], 'FLOP')} in {each['compute']} at {si(each['per_s'], 'FLOP/s')}"
            for each in explanation.products
        )
        yield Line("peaks", "", ", ".join(peaks))
    text = (
        f"{seconds(row['t_ops_s'])} kernel after kernel, {seconds(row['t_lower_s'])} with full "
        f"overlap, {seconds(row['t_upper_s'])} without"
    )
    label = "time" if row["phase"] == DECODE else "TTFT"
    yield Line(label, "", "".join([text, *_hops(explanation)]))
    if row["t_estimate_s"] is not None:
        of = ", ".join(explanation.softwares) or "measurements"
        within = "".join(f"; matmuls include {each}" for each in explanation.contents)
        yield Line("estimate", "", f"{seconds(row['t_estimate_s'])}, calibrated to {of}{within}")
    yield from _measured(explanation)
    yield Line("tokens/s", "", _tokens(explanation))
    if quicker := list(_quicker(explanation)):
        yield Line("quicker", "", ", ".join(quicker))
    if explanation.experts is not None:
        yield Line("experts", "", _experts(explanation.experts))
    yield Line("fits", "", _step_fits(explanation))
    if row["fits"] is not False and (costs := list(_costs(explanation))):
        yield Line("costs", "", f"at best {', '.join(costs)}")


def _experts(experts: Mapping[str, Any]) -> str:
    """How many experts are read; the rounded number is below E unless all of them are."""
    some = significant(experts["touched"], DIGITS)
    if some == f"{experts['E']}" and experts["touched"] < experts["E"]:
        some = "almost all"
    return f"{experts['routing']} routing: {some} of {experts['E']} in a layer are read"


def _tokens(explanation: Answer) -> str:
    row = explanation.row
    of = "" if row["phase"] == DECODE else " of the prompts"
    room = ", if it had the memory" if row["fits"] is False else ""
    return (
        f"{count(row['tokens_per_s_ops'])}{of} kernel after kernel, {count(row['tokens_per_s'])} "
        f"with full overlap{room}"
    )


def _step_fits(explanation: Answer) -> str:
    row = explanation.row
    held = (
        f"{si(row['weights_footprint_bytes'], 'B')} of weights, "
        f"{si(row['cache_footprint_bytes'], 'B')} of caches{_where(row)}"
    )
    most = f"; B up to {row['max_B']:,}" if row["max_B"] else "; no sequence"
    fewer = f"; {_fewest(explanation)}" if row["fits"] and row["chips"] > 1 else ""
    return _held(explanation, held, f"{most}{fewer}")


def _fewest(explanation: Answer) -> str:
    """The fewest chips that hold weights and caches, in tensor parallelism."""
    (fewest,) = (each for each in explanation.thresholds if each["axis"] == "chips")
    if fewest["outcome"] == FOUND:
        return f"tp={fewest['critical']} is enough"
    if explanation.wider is not None:
        return f"tp={explanation.wider['tp']} over {explanation.wider['network']} is enough"
    if fewest["outcome"] == UNKNOWN:
        return "not known whether any tp is enough"
    return f"no tp is enough that the {fewest['limit']} allow{'s' * (fewest['limit'] != HEADS)}"


def _costs(explanation: Answer) -> Iterator[str]:
    """Money and energy of tokens at the bound."""
    row = explanation.row
    if row["usd_per_mtok"] is not None:
        price = row["usd_per_mtok"]
        text = f"{price:,.2f}" if price >= CENTS else significant(price)
        yield f"${text} a million tokens ({row['price_provider']}, {row['price_date']})"
    if row["j_per_token"] is not None:
        yield f"{significant(row['j_per_token'])} J a token"


def _quicker(explanation: Answer) -> Iterator[str]:
    """The formats in which a step is quickest, if one is quicker than those of the question."""
    row = explanation.row
    for other in _faster(explanation)[:MOST_DTYPES]:
        fits = "; fits" if other["fits"] and not row["fits"] else ""
        yield (
            f"all {other['dtypes']}: {unbroken(other['t_lower_s'])} ({other['bound']}-bound{fits})"
        )


def _step_sections(explanation: Answer) -> Iterator[Section]:
    decoding = explanation.row["phase"] == DECODE
    title = "Time by group, kernel after kernel (softmax, norms and rotary left out):"
    yield Section(title, list(_groups(explanation)))
    context = ", and up to this context" if decoding else ""
    lines = []
    for row in explanation.thresholds:
        if row["axis"] in ("B", "S"):
            line = _batch(explanation, row) if row["axis"] == "B" else _context(row)
            lines.append(replace(line, text="; ".join(filter(None, [line.text, saturation(row)]))))
    yield Section(f"Compute-bound from this batch on{context}:", lines)


def _groups(explanation: Answer) -> Iterator[Line]:
    """The groups that take longest, each with its own critical batch, and the others in a line."""
    times = [(group["count"] * group["t_ops_s"], group) for group in explanation.groups]
    times.sort(key=lambda each: -each[0])
    total = explanation.row["t_ops_s"]
    shown, rest = times[:MOST_GROUPS], times[MOST_GROUPS:]
    if len(rest) == 1:
        shown, rest = times, []
    for time_s, group in shown:
        label = f"{group['group']} × {group['count']}"
        bound = f"{seconds(time_s)}, {group['bound']}-bound"
        yield Line(label, percent(time_s / total), f"{bound}; {_own_batch(group)}")
    if rest:
        time_s = sum(time_s for time_s, _ in rest)
        yield Line(f"{len(rest)} others", percent(time_s / total), seconds(time_s))


def _own_batch(group: Mapping[str, Any]) -> str:
    """From which batch on a group is compute-bound by itself."""
    if group["outcome"] == NEVER:
        return f"never compute-bound ({group['limit']})"
    return f"compute-bound from B = {group['critical_B']}"


def _batch(explanation: Answer, threshold: Mapping[str, Any]) -> Line:
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
