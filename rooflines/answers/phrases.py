"""Statements in an explanation; the screen lays them out."""

from __future__ import annotations

import math
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.answers import training_facts
from rooflines.answers.chunked_attention import some_contexts
from rooflines.answers.claims import MIN_FACTOR
from rooflines.basics.text import count, seconds, si, significant
from rooflines.dictionary.columns import (
    ALWAYS,
    AXES,
    FOUND,
    HEADS,
    NEVER,
    UNKNOWN,
    UNTIMED_PREFIX,
    WITHOUT_END,
)
from rooflines.models.architecture import DECODE, PREFILL
from rooflines.models.groups import DRAFT
from rooflines.models.split import BY_BATCH
from rooflines.solvers.required_rates import LATENCY
from rooflines.solvers.training_limits import DP_TP_MIX
from rooflines.theory.resources import MATH
from rooflines.theory.sharding import SHARDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rooflines.answers.answer_values import Answer, ResourceTime

DIGITS = 4
"""Significant digits of intensities, factors and real sizes [1]."""

SLACK = 1e-12
"""Share by which a number may exceed a rounded one: it has a few roundings itself [1]."""

MAX_GROUPS = 4
"""Groups of kernels named [1]."""

MIN_TERM_SHARE = 0.05
"""Share of an estimate from which on a term is named [1]."""

MAX_DTYPES = 3
"""Other dtypes named [1]."""

CENTS = 0.1
"""Prices from here on have cents [USD]."""

PASSES = {
    "fwd": "forward",
    "again": "recomputed",
    "bwd": "backward",
    "dgrad": "dgrad",
    "wgrad": "wgrad",
}
"""Names for training passes, by kernel name suffix."""

UNITS = {"flops": "FLOP"}
"""Units of works that are not of bytes, by column."""

UPPER_LIMITS = {
    SHARDS: {
        FOUND: ("≤ {critical}", "then {limit}-bound"),
        ALWAYS: ("≤ {critical}", "all chips on the network"),
        WITHOUT_END: ("any", "no upper limit"),
        NEVER: ("never", "{limit}-bound on one chip already"),
    },
    "S": {
        FOUND: ("≤ {critical}", "with a large batch; longer contexts are {limit}-bound"),
        WITHOUT_END: ("any", "long contexts are compute-bound with a large batch"),
        NEVER: ("never", "no batch is compute-bound at any context"),
    },
    "tp": {
        FOUND: ("≤ {critical}", "beyond it, all-gathers take longer than the math"),
        NEVER: ("never", "the chip has no {limit}"),
    },
}
"""Texts about the largest number of chips and the longest context, by outcome."""

BEYOND = {
    "sizes": "beyond the timed sizes",
    "engine": "timed with another engine",
    "engine, sizes": "timed with another engine, at other sizes",
}
"""Texts about an estimate beyond its calibration's timings."""


class Line(NamedTuple):
    """A labelled statement: what it is about, the short answer, which may be empty, the rest."""

    label: str
    value: str
    text: str


class Section(NamedTuple):
    """Statements under a title; without statements, the title is one itself."""

    title: str
    lines: list[Line]


def question_text(
    row: Mapping[str, Any], sizes: Mapping[str, int], cache_split: str | None = None
) -> str:
    """Question in words: chip, operation or model, sizes, dtypes, split."""
    network = f" over {row['network']}" if row["network"] and row["network_bytes"] else ""
    if "model" in row:
        subject, split = f"{row['model']} {row['phase']}", ""
        if row["chips"] > 1:
            split = f"{row['split']} on {row['chips']} chips{network}"
    else:
        subject, split = row["operation"], ""
        if row["sharding"] != "none":
            split = f"{row['sharding']} on {row.get(AXES) or row[SHARDS]} chips{network}"
    size_texts = (f"{letter}={size}" for letter, size in sizes.items())
    caches = "KV cache split by batch" if cache_split == BY_BATCH else ""
    parts = [row["chip"], " ".join([subject, *size_texts]), row["dtypes"], split, caches]
    return " · ".join(filter(None, parts))


def verdict(answer: Answer) -> str:
    """Verdict: the estimate where there is one, the bottleneck and bound; or that it does not fit.

    All rates are on one basis: those of the estimate are those serialized * t_serial_s /
    t_estimate_s.
    """
    row, capacity = answer.row, answer.capacity_bytes
    bound_time, estimate_s = seconds(row["t_lower_s"]), row.get("t_estimate_s")
    if not answer.of_a_model:
        estimate = "" if estimate_s is None else f"estimate {seconds(estimate_s)}; "
        attained = si(row["attained_flops_per_s"], "FLOP/s")
        share = percent(row["utilization"])
        bound = f"{row['bound']}-bound: at least {bound_time}, at most {attained}, {share} of peak"
        return f"{estimate}{bound}"
    if row["fits"] is False and capacity is not None:
        parts = "states and activations" if answer.trains else "weights and KV cache"
        needs = f"{si(row['footprint_bytes'], 'B')} of {parts}{_each_chip(row)}"
        room = f"{si(capacity, 'B')} of {row['memory']}"
        return f"does not fit: {needs}, {room}; {_fewest(answer)}"
    published = f"; published in {answer.published}" if answer.published else ""
    serial_s = row["t_serial_s"]
    if estimate_s is not None:
        rates = _rates_per_chip_and_user(answer, serial_s / estimate_s)
        return (
            f"estimate {seconds(estimate_s)} per step, {rates}; "
            f"{row['bound']}-bound: {seconds(serial_s)} serialized, at least {bound_time}"
            f"{published}"
        )
    return (
        f"{row['bound']}-bound: {seconds(serial_s)} per step, serialized; "
        f"{_rates_per_chip_and_user(answer)}, {percent(row['mfu_serial'])} MFU; "
        f"at least {bound_time}{published}"
    )


def _rates_per_chip_and_user(answer: Answer, speedup: float = 1.0) -> str:
    """Tokens/s/chip and, in decode, tokens/s/user: serialized * speedup; a user is a sequence."""
    row = answer.row
    rates = f"{count(speedup * row['tokens_per_s_per_chip_serial'])} tokens/s/chip"
    if row["phase"] != DECODE:
        return rates
    per_user = speedup * row["tokens_per_s_serial"] / answer.sizes["B"]
    return f"{rates}, {significant(per_user)} tokens/s/user"


def work_at_rate(resource: ResourceTime) -> str:
    """Work at one resource, and its rate."""
    unit = UNITS.get(resource.column, "B")
    return f"{si(resource.work, unit)} at {si(resource.per_s, f'{unit}/s')}"


# ---------------------------------------------------------------- facts


def facts(answer: Answer) -> Iterator[Line]:
    """Labelled statements about the whole, without values."""
    for label, text in _facts(answer):
        if text:
            yield Line(label, "", text)


def _facts(answer: Answer) -> Iterator[tuple[str, str]]:
    row, of_model = answer.row, answer.of_a_model
    yield "route", "; ".join(answer.routes)
    if of_model:
        if answer.context is not None and answer.sizes["S"] > answer.context:
            yield "context", f"S exceeds the model's context of {answer.context:,} tokens"
        yield from answer.assumptions.items()
        if len(answer.products) > 1:
            yield "peaks", ", ".join(map(_product, answer.products))
    yield _time_label(answer), _times(answer)
    yield "estimate", _estimate(answer)
    if timed := answer.measured:
        low, high = (significant(timed[name]) for name in ("p10", "p90"))
        timings = f"{timed['n']:,} {'served steps' if of_model else 'kernels'}, {timed['software']}"
        below = "; below 1 from cache" if timed["p10"] < 1 else ""
        yield "measured", f"{low} to {high} times the bound, p10 to p90 ({timings}){below}"
    if not of_model:
        for resource in answer.resources:
            if resource.intensity is not None and resource.needed_intensity is not None:
                have, need = distinguishable(resource.intensity, resource.needed_intensity)
                text = f"{have} FLOP/B of {resource.bound} traffic; compute-bound from {need}"
                yield "intensity", text
        yield "fits", _fit_text(answer, f"{si(row['footprint_bytes'], 'B')} of operands and result")
        return
    if answer.trains:
        yield from training_facts.training_facts(answer)
        yield "faster", ", ".join(_quicker(answer))
        yield "fits", _fit_text(answer, training_facts.held_memory(answer))
        yield from training_facts.limits(answer)
        return
    yield "tokens/s", _tokens(row) + _drafted(answer)
    yield "faster", ", ".join(_quicker(answer))
    yield "experts", _experts(answer.experts) if answer.experts else ""
    weights, caches = (si(row[f"{part}_footprint_bytes"], "B") for part in ("weights", "kv_cache"))
    largest_batch = f"; B up to {row['max_B']:,}" if row["max_B"] else "; no batch fits"
    fewer = f"; {_fewest(answer)}" if row["fits"] and row["chips"] > 1 else ""
    yield (
        "fits",
        _fit_text(answer, f"{weights} of weights, {caches} of KV cache")
        + ("" if answer.capacity_bytes is None else f"{largest_batch}{fewer}"),
    )
    yield "cost", "; ".join(_costs(row))


def _product(product: Mapping[str, Any]) -> str:
    rate = si(product["per_s"], "FLOP/s")
    return f"{si(product['flops'], 'FLOP')} in {product['compute']} at {rate}"


def _each_chip(row: Mapping[str, Any]) -> str:
    if "model" in row:
        return " per chip" if row["chips"] > 1 else ""
    return " per chip" if row[SHARDS] > 1 else ""


def _fit_text(answer: Answer, needs: str) -> str:
    """Yes, no or unknown: needed bytes against the memory level's capacity."""
    row, capacity = answer.row, answer.capacity_bytes
    needs = f"{needs}{_each_chip(row)}"
    if capacity is None:
        return f"unknown: {needs}, {row['memory']} capacity not published"
    return f"{'yes' if row['fits'] else 'no'}: {needs}, {si(capacity, 'B')} of {row['memory']}"


def _time_label(answer: Answer) -> str:
    """TTFT in prefill, TPOT in decode of one token per sequence, else time."""
    phase = answer.row.get("phase")
    if phase == DECODE and answer.row.get("T") in (None, 1):
        return "TPOT"
    return "TTFT" if phase == PREFILL else "time"


def _times(answer: Answer) -> str:
    """Times with and without overlap, and the least time of hops."""
    row = answer.row
    bound_time, no_overlap = seconds(row["t_lower_s"]), seconds(row["t_upper_s"])
    text = f"{bound_time} with full overlap, {no_overlap} with none"
    if answer.of_a_model:
        text = f"{seconds(row['t_serial_s'])} serialized, {text}"
    elif row["t_lower_s"] == row["t_upper_s"]:
        text = bound_time
    hops = (f"; hops at least {seconds(u.latency_s)}" for u in answer.resources if u.latency_s)
    return "".join([text, *hops])


def _estimate(answer: Answer) -> str:
    """Calibrated time, its band and software; empty without an estimate."""
    row, softwares = answer.row, ", ".join(answer.softwares)
    if row.get("t_estimate_s") is None:
        return ""
    low, high = (row.get(f"t_estimate_{band}_s") for band in ("p10", "p90"))
    ends = ""
    if low is not None and high is not None:
        ends = f" (p10 to p90: {seconds(low)} to {seconds(high)})"
    if softwares and not answer.of_a_model:
        softwares = f"{softwares}; {row['estimate_bound']}-bound"
    includes = "matmuls include" if answer.of_a_model else "includes"
    contents = "".join(f"; {includes} {content}" for content in answer.contents)
    extrapolated = row.get("estimate_extrapolated")
    beyond = f"; {BEYOND[extrapolated]}, so the band is wider" if extrapolated else ""
    time = seconds(row["t_estimate_s"])
    return f"{time}{ends}, calibrated to {softwares or 'measurements'}{contents}{beyond}"


def _tokens(row: Mapping[str, Any]) -> str:
    prompts = "" if row["phase"] == DECODE else " (prompt tokens)"
    room = ", if it fitted" if row["fits"] is False else ""
    rate, estimated = row["tokens_per_s_serial"], ""
    if (estimate := row["t_estimate_s"]) is not None:
        estimated = f", {count(rate * row['t_serial_s'] / estimate)} estimated"
    return (
        f"{count(rate)} serialized, {count(row['tokens_per_s'])} with full overlap"
        f"{estimated}{prompts}{room}"
    )


def _drafted(answer: Answer) -> str:
    """Mean tokens added per step with a draft: accepted + 1; empty without a draft."""
    if answer.draft is None:
        return ""
    added, computed = answer.draft["accepted"] + 1, answer.row["T"]
    draft_groups = [group for group in answer.groups if group["group"].startswith(DRAFT)]
    time = seconds(sum(group["count"] * group["t_serial_s"] for group in draft_groups))
    drafting = f"drafting {time}" if draft_groups else "drafting excluded"
    return f"; {significant(added)} tokens per step, {computed} computed, {drafting}"


def _faster(answer: Answer) -> list[Mapping[str, Any]]:
    """Other dtypes whose bound is shorter by more than a ranking of bounds needs."""
    bound_s = answer.row["t_lower_s"]
    return [
        combination
        for combination in answer.dtypes
        if bound_s > MIN_FACTOR * combination["t_lower_s"]
    ]


def _quicker(answer: Answer) -> Iterator[str]:
    """Formats with the shortest bounds, where these beat the question's dtypes."""
    for combination in _faster(answer)[:MAX_DTYPES]:
        fits = "; fits" if combination["fits"] and not answer.row["fits"] else ""
        time = seconds(combination["t_lower_s"])
        yield f"all {combination['dtypes']} (bound {time}, {combination['bound']}{fits})"


def _experts(experts: Mapping[str, Any]) -> str:
    """Experts read per layer; a rounded number stays below E unless all are read."""
    experts_read = significant(experts["touched"], DIGITS)
    if experts_read == f"{experts['E']}" and experts["touched"] < experts["E"]:
        experts_read = "almost all"
    return f"{experts['routing']} routing: {experts_read} of {experts['E']} experts read per layer"


def _fewest(answer: Answer) -> str:
    """Smallest tp whose chips hold weights and KV cache; in training the S that fits."""
    if answer.trains:
        return training_facts.holding(answer)
    (fewest,) = (threshold for threshold in answer.thresholds if threshold["axis"] == "chips")
    if fewest["outcome"] == FOUND:
        return f"fits from tp={fewest['critical']}"
    if answer.wider is not None:
        return f"fits from tp={answer.wider['tp']} over {answer.wider['network']}"
    if fewest["outcome"] == UNKNOWN:
        return "unknown whether any tp fits"
    return f"no tp fits that the {fewest['limit']} allow{'s' * (fewest['limit'] != HEADS)}"


def _costs(row: Mapping[str, Any]) -> Iterator[str]:
    """Cost and energy per token, each with its time basis.

    USD of a million tokens and J of a token at kernels one after another, `t_serial_s`, as in the
    table of cases; USD also at the estimate, times t_estimate_s / t_serial_s.
    """
    estimated = ""
    if (price := row["usd_per_mtok_serial"]) is not None:
        if (estimate := row["t_estimate_s"]) is not None:
            estimated = f", ${_usd(price * estimate / row['t_serial_s'])} estimated"
        yield (
            f"${_usd(price)}/Mtok serialized{estimated} "
            f"({row['price_provider']}, {row['price_date']})"
        )
    if row["j_per_token_serial"] is not None:
        yield f"{significant(row['j_per_token_serial'])} J/token serialized"


def _usd(price: float) -> str:
    """A price in dollars: with cents, or with significant digits where it is below ten cents."""
    return f"{price:,.2f}" if price >= CENTS else significant(price)


# ---------------------------------------------------------------- sections


def sections(answer: Answer) -> Iterator[Section]:
    """Kernels of a model; from which size on it is compute-bound; what else would make it so."""
    title = "Compute-bound from this size on, other sizes fixed:"
    if answer.of_a_model:
        of_groups = "Time by kernel, serialized (softmax, norms and rotary excluded):"
        parts = _passes(answer) if answer.trains else _groups(answer)
        yield Section(of_groups, list(parts))
        if answer.terms:
            yield Section("Estimate by kernel:", list(_terms(answer)))
        if answer.fits:
            yield Section("Calibrations (median held-out error):", [*_fits(answer)])
        context = ", and up to this context" if answer.row["phase"] == DECODE else ""
        title = f"Compute-bound from this batch on{context}:"
        if answer.trains:
            title = "Compute-bound from this size on, and up to this tp:"
    yield Section(title, list(_thresholds(answer)))
    if all(change.outcome == ALWAYS for change in answer.required_rates):
        yield Section("Already compute-bound at these sizes.", [])
        return
    lines = list(_rates(answer))
    if not answer.of_a_model:
        lines.append(_dtypes(answer))
    yield Section("Alternatives, each alone:", lines)


def _longest(
    parts: Iterable[tuple[str, float, str]], total_s: float, max_parts: int = MAX_GROUPS
) -> Iterator[Line]:
    """Longest parts, each with its share in a time, and the rest in one line.

    Args:
        parts: Name, time [s], and what else is said of it.
        total_s: The whole time [s].
        max_parts: Parts that are named [1].
    """
    ordered = sorted(parts, key=lambda part: -part[1])
    shown = ordered if len(ordered) == max_parts + 1 else ordered[:max_parts]
    for name, time_s, text in shown:
        yield Line(name, percent(time_s / total_s), f"{seconds(time_s)}{text}")
    if rest := ordered[len(shown) :]:
        time_s = sum(part[1] for part in rest)
        yield Line(f"{len(rest)} others", percent(time_s / total_s), seconds(time_s))


def _groups(answer: Answer) -> Iterator[Line]:
    """Longest kernels, each with its own critical batch."""
    parts = []
    for group in answer.groups:
        name, time_s = f"{group['group']} × {group['count']}", group["count"] * group["t_serial_s"]
        parts.append((name, time_s, f", {group['bound']}-bound{_from_batch(group)}"))
    return _longest(parts, answer.row["t_serial_s"])


def _from_batch(group: Mapping[str, Any]) -> str:
    """Batch from which a kernel is compute-bound; its limit, where this is not its bottleneck."""
    outcome, limit = group["outcome"], group["limit"]
    if outcome == ALWAYS:
        return " at every batch"
    if outcome == NEVER:
        return "; never compute-bound" + ("" if limit == group["bound"] else f" ({limit})")
    return f"; compute-bound from B = {group['critical_B']}"


def _terms(answer: Answer) -> Iterator[Line]:
    """Largest terms in an estimate, each with its fits, and the rest in one line."""
    total, parts = answer.row["t_estimate_s"], []
    for term in answer.terms:
        layers = f" × {term['count']}" if term["count"] > 1 else ""
        calibrated = f"; {term['calibration']}" if term["calibration"] else ""
        calibrated += (
            f", {BEYOND[extrapolated]}" if (extrapolated := term["estimate_extrapolated"]) else ""
        )
        name, time_s = f"{term['group']}{layers}", term["count"] * term["t_estimate_s"]
        parts.append((name, time_s, f", {term['estimate_bound']}{calibrated}"))
    yield from _longest(parts, total, sum(part[1] >= MIN_TERM_SHARE * total for part in parts))
    untimed = [term for term in answer.terms if str(term["calibration"]).startswith(UNTIMED_PREFIX)]
    share = sum(term["count"] * term["t_estimate_s"] for term in untimed) / total
    if share >= MIN_TERM_SHARE:
        text = f"{percent(share)} from kernels without timings, assumed at matmul efficiency"
        yield Line(UNTIMED_PREFIX, "", text)
    if sent := sum(term["count"] * term["collectives_estimate_s"] for term in answer.terms):
        text = f"{seconds(sent)}, included in the kernels above"
        yield Line("collectives", "", text)
    if answer.prompt_s is not None:
        size, time = f"{answer.sizes['S']:,}", seconds(answer.prompt_s)
        yield Line("prefill", "+", f"each {size}-token prefill between steps adds {time}")


def _fits(answer: Answer) -> Iterator[Line]:
    """Fits behind an estimate with their held-out errors, grouped by source."""
    by_source: dict[tuple[str, str], list[str]] = {}
    for name, fit in answer.fits.items():
        software, _, fit_name = name.partition(" ")
        error = "" if fit["median"] is None else f" {percent(fit['median'])}"
        by_source.setdefault((software, fit["source"]), []).append(f"{fit_name}{error}")
    for (software, source), names in by_source.items():
        yield Line(software, "", f"{', '.join(names)}: {source}")


def _passes(answer: Answer) -> Iterator[Line]:
    """Longest layer parts in training, each with forward, dgrad and wgrad times."""
    parts: dict[str, dict[str, float]] = {}
    for group in answer.groups:
        name, _, ending = group["group"].removesuffix("-add").rpartition("-")
        name, label = (name, PASSES[ending]) if ending in PASSES else (group["group"], "")
        by_pass = parts.setdefault(name, {})
        by_pass[label] = by_pass.get(label, 0.0) + group["count"] * group["t_serial_s"]
    times = []
    for name, by_pass in parts.items():
        text = ", ".join(f"{label} {seconds(time_s)}" for label, time_s in by_pass.items() if label)
        times.append((name, sum(by_pass.values()), text and f": {text}"))
    return _longest(times, sum(time_s for _, time_s, _ in times))


def _thresholds(answer: Answer) -> Iterator[Line]:
    """Critical size along every axis, other sizes fixed."""
    for axis, rows in groupby(answer.thresholds, key=lambda row: str(row["axis"])):
        whole, *less = rows
        unsaid = axis == DP_TP_MIX and whole["critical"] is None  # of one chip
        if unsaid or (answer.of_a_model and axis == "chips"):
            continue
        largest = ("S",) if answer.of_a_model and not answer.trains else (SHARDS, "tp")
        is_upper = axis in largest
        value, text = _upper(answer, whole) if is_upper else _lower(answer, whole)
        text = f"{answer.along_axis}{text}" if axis == SHARDS else text
        estimate = ""
        if (size := whole["plateau_estimate"]) is not None:
            estimate = f"estimate: 90% of plateau from {size}"
        shares = (_share(answer, whole, share_row) for share_row in less)
        yield Line(axis, value, "; ".join(filter(None, [text, *shares, estimate])))


def _lower(answer: Answer, threshold: Mapping[str, Any]) -> tuple[str, str]:
    """Smallest compute-bound size."""
    outcome, exact = threshold["outcome"], threshold["critical_exact"]
    if threshold["axis"] == DP_TP_MIX:
        return _mixed(answer, threshold)
    if outcome == FOUND:
        text, critical = f"crossover {crossover(exact)}", threshold["critical"]
        if rule := threshold.get("rule_of_thumb"):
            text += f"; rule of thumb {significant(rule, DIGITS)}"
        fit = threshold.get("max_fit" if answer.trains else "max_B_fit")
        if fit is not None and fit < critical:
            text += f"; fits up to {fit:,}" if fit else "; no size fits"
        return f"{critical}", text
    if outcome == ALWAYS:
        size = "batch" if answer.of_a_model and threshold["axis"] == "B" else "size"
        return "any", f"compute-bound at every {size}"
    if outcome == NEVER:
        return "never", _never(answer, threshold)
    return _beyond(threshold)


def _mixed(answer: Answer, threshold: Mapping[str, Any]) -> tuple[str, str]:
    """Data parallelism that minimizes communication time, and its compute-bound batch."""
    dp, batch = threshold["critical"], threshold["critical_network"]
    text = f"minimizes communication (tp={answer.row['tp'] * answer.row['dp'] // dp})"
    if batch:
        text += f"; at this micro-batch count compute-bound from B = {batch}"
    return f"{dp}", text


def _beyond(threshold: Mapping[str, Any]) -> tuple[str, str]:
    return threshold["outcome"], f"crossover {threshold['critical_exact']:.4g}, beyond 2^62"


def _never(answer: Answer, threshold: Mapping[str, Any]) -> str:
    """Reason that no size is compute-bound: time per sequence, or the limit of the intensity."""
    limit = threshold["limit"]
    if adds := answer.per_sequence_s:
        math, limit_time = seconds(adds[MATH.bound]), seconds(adds[limit])
        return f"each sequence adds {math} of compute, {limit_time} of {limit} time"
    needed = next(
        (resource.needed_intensity for resource in answer.resources if resource.bound == limit),
        None,
    )
    share = answer.limit_shares.get(threshold["axis"])
    if needed is None or share is None:
        return f"{limit}-bound at every size"
    if share == 1:
        return f"{limit} intensity tends to {significant(needed, DIGITS)} FLOP/B, but stays below"
    have, need = distinguishable(threshold["limit_intensity"], needed)
    reached = f"{percent(share)} of {_peak(answer)}"
    return f"{limit} intensity tends to {have} of {need} FLOP/B: {reached}"


def _upper(answer: Answer, threshold: Mapping[str, Any]) -> tuple[str, str]:
    """Largest compute-bound number of chips or context."""
    axis, outcome, critical = (threshold[key] for key in ("axis", "outcome", "critical"))
    if (chunked := some_contexts(threshold, answer.in_chunks)) is not None:
        return chunked
    if outcome in UPPER_LIMITS[axis]:
        value, text = UPPER_LIMITS[axis][outcome]
        return value.format(critical=critical), text.format(limit=threshold["limit"])
    if axis == SHARDS:
        return "" if critical is None else f"≥ {critical}", f"unknown: {outcome}"
    return _beyond(threshold)


def _share(answer: Answer, whole: Mapping[str, Any], less: Mapping[str, Any]) -> str | None:
    """Size that attains a share of peak; None: no size, or the critical size."""
    outcome, critical = less["outcome"], less["critical"]
    if (outcome, critical) == (whole["outcome"], whole["critical"]):
        return None
    where = {WITHOUT_END: "on any number of chips", ALWAYS: "at every size"}.get(outcome)
    if critical is not None and less["axis"] == SHARDS:
        where = f"up to {critical}"
    elif outcome == FOUND:
        where = f"from {critical}"
    return where and f"{percent(less['share'])} of {_peak(answer)} {where}"


def _peak(answer: Answer) -> str:
    """Name for the peak in shares: nominal unless an efficiency lowers it."""
    lowered = any(number["path"] == "efficiency.math" for number in answer.numbers)
    return "attainable peak" if lowered else "peak"


def _rates(answer: Answer) -> Iterator[Line]:
    """Bandwidths that make it compute-bound, each alone; a lower peak is no alternative."""
    latencies = {resource.resource: resource.latency_s for resource in answer.resources}
    for change in answer.required_rates:
        label, factor = f"{change.resource} bandwidth", change.factor
        if factor is None or change.needed_per_s is None:
            text = f"the {change.limit} takes longer than the math"
            if change.outcome == LATENCY:
                hops = seconds(latencies[change.resource])
                text = f"hop latency alone, {hops}, exceeds the math"
            if change.resource != MATH.name:
                yield Line(label, "no", text)
        elif factor > 1:
            needed = si(rounded_bound(change.needed_per_s, DIGITS, up=True), "B/s", DIGITS)
            times = significant(rounded_bound(factor, DIGITS, up=True), DIGITS)
            yield Line(label, f"× {times}", f"at least {needed}")


def _dtypes(answer: Answer) -> Line:
    """Fastest dtype combinations that are compute-bound at these sizes and faster."""
    combinations = answer.dtypes
    if not combinations:
        return Line("dtypes", "no", "no other supported dtype")
    bound = [combination for combination in _faster(answer) if combination["bound"] == MATH.bound]
    if not bound:
        faster = f"compute-bound and more than {MIN_FACTOR}× faster"
        return Line("dtypes", "no", f"no other supported dtype is {faster}")
    more = f", {len(bound) - MAX_DTYPES} more" if len(bound) > MAX_DTYPES else ""
    shown = (
        f"{combination['dtypes']} (bound {seconds(combination['t_lower_s'])})"
        for combination in bound[:MAX_DTYPES]
    )
    return Line("dtypes", "", f"{', '.join(shown)}{more}")


# ---------------------------------------------------------------- numbers on their side of a bound


def percent(share: float) -> str:
    """A share in percent; less than all is never 100%."""
    text = significant(100 * share)
    if text == "100":
        text = significant(rounded_bound(100 * share, DIGITS + 1, up=False), DIGITS + 1)
    return f"{text}%"


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
