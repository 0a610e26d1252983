"""Sentences on when levers pay, from their thresholds."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from rooflines.answers.phrases import Line, Section
from rooflines.basics.text import seconds, si, significant
from rooflines.dictionary.columns import ALWAYS, CONTEXT, FROM, NEVER
from rooflines.solvers.offload_levers import INPUTS, SAVED
from rooflines.solvers.payoffs import ESTIMATED_TIME, LOWER_TIME, SERIAL_TIME, UPPER_TIME

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Rows = Sequence[Mapping[str, Any]]

TITLE = "When it pays:"

BY = {
    LOWER_TIME: "by the bound",
    SERIAL_TIME: "kernels one after another",
    UPPER_TIME: "after the decode step",
    ESTIMATED_TIME: "by the estimate",
}
"""Phrases for the time that a threshold is by."""


WITHOUT_OVERLAP = "without overlap"
"""Phrase for the sum of a training step's times."""


def payoff_section(rows: Rows, levers: Mapping[str, Any] | None) -> Section | None:
    """Section on when the levers in threshold rows pay; None without any."""
    lines = [*payoff_lines(rows, levers)]
    return Section(TITLE, lines) if lines else None


def payoff_lines(rows: Rows, levers: Mapping[str, Any] | None) -> Iterator[Line]:
    """Lines on when levers pay, one for each."""
    typed = bool(levers and levers["slowdown"])
    rows = [{**row, "typed": typed} for row in rows]
    for axis, of_axis in groupby(rows, key=lambda row: str(row["axis"])):
        lever_rows = [*of_axis]
        if axis == "S_pull":
            yield _pull(lever_rows, levers)
        elif axis == "B_draft":
            yield _draft(lever_rows)
        elif axis == "accepted_draft":
            yield _accepted(lever_rows)
        elif axis == "B_pools":
            yield _pools(lever_rows)
        elif axis == "chunk":
            yield _chunk(lever_rows)
        elif axis == "X_offload":
            yield _states(lever_rows)
        elif axis in ("S_zero", "batches_zero"):
            for stage, ends in groupby(lever_rows, key=lambda row: str(row["zero_stage"])):
                yield _zero(axis, stage, [*ends])
        elif axis == "micro_batch_recompute":
            yield _recompute(lever_rows)
        else:
            for offload, ends in groupby(lever_rows, key=lambda row: str(row["offload"])):
                yield _offload(offload, [*ends])


def _by_time(rows: Rows) -> list[tuple[str, Rows]]:
    """Rows by time, the estimate first."""
    times = dict.fromkeys(str(row["time"]) for row in rows)
    order = sorted(times, key=lambda time: time != ESTIMATED_TIME)
    return [(time, [row for row in rows if row["time"] == time]) for time in order]


def _ends(rows: Rows) -> str:
    """Ends: `always`, `never`, `up to 197 and from 52,253`."""
    outcome = rows[0]["outcome"]
    if outcome in (ALWAYS, NEVER):
        return str(outcome)
    texts = [
        f"{'from' if row['side'] == FROM else 'up to'} {row['critical']:,}"
        + (", beyond the model's context," if row["limit"] == CONTEXT else "")
        for row in rows
    ]
    return " and ".join(texts).removesuffix(",")


def _basis(time: str, rows: Rows) -> str:
    """Time that ends are by, with its slowdown."""
    slowdown = rows[0].get("slowdown")
    if not slowdown:
        return BY[time]
    sizes = "" if rows[0]["typed"] else ", as at these sizes"
    return f"{BY[time]} ({significant(slowdown)} times the bound{sizes})"


def _compared(rows: Rows) -> tuple[str, list[str]]:
    """Ends by the first time, and what they are by, then those by others."""
    (time, first_rows), *further = _by_time(rows)
    texts = [_basis(time, first_rows)]
    texts += [f"{_ends(end_rows)} {_basis(name, end_rows)}" for name, end_rows in further]
    return _ends(first_rows), texts


def _pull(rows: Rows, levers: Mapping[str, Any] | None) -> Line:
    value, texts = _compared(rows)
    over = ""
    if levers and (link := levers["pull"]):
        rate, latency_s = link["bytes_per_s"], link["latency_s"]
        over = f" over {si(rate, 'B/s')}" + (f" after {seconds(latency_s)}" if latency_s else "")
    texts.append("LM head counted for every token, prefill on an idle server")
    return Line("pull", value, f"tokens of a prefix, its KV cache{over}: {'; '.join(texts)}")


def _draft(rows: Rows) -> Line:
    value, texts = _compared(rows)
    bounds = [row for row in rows if row["time"] == LOWER_TIME]
    always = bounds[0]["always_S"]
    if always is not None and bounds[0]["outcome"] != ALWAYS:
        texts.append(f"at every batch from S = {int(always) + 1:,}, by the bound")
    return Line("draft", value, f"sequences: {'; '.join(texts)}")


def _accepted(rows: Rows) -> Line:
    def ends(row: Mapping[str, Any]) -> str:
        if row["outcome"] == ALWAYS:
            return "always"
        if row["outcome"] == NEVER:
            return f"never, at most {row['T'] - 1}"
        return f"above {significant(row['critical_exact'])}"

    (time, (row, *_)), *further = _by_time(rows)
    texts = [_basis(time, [row])]
    texts += [f"{ends(at[0])} {_basis(name, at)}" for name, at in further]
    return Line("accepted", ends(row), f"of {row['T'] - 1} drafted tokens: {'; '.join(texts)}")


def _pools(rows: Rows) -> Line:
    """Separate prefill servers, by the estimate, else kernels one after another."""
    shown = [row for row in rows if row["time"] != LOWER_TIME]
    (time, (row, *_)), *further = _by_time(shown)
    within = f"within {seconds(row['target_s'])} a token"
    never = "never by the bound: prefill's math hides under decode's memory time"
    if row["outcome"] == NEVER:
        return Line("pools", "never", f"{within}: no batch keeps it; {never}")
    texts = [_pools_text(row, time)]
    texts += [_pools_text(at[0], name) for name, at in further if at[0]["gain"]]
    value = f"{significant(row['gain'])}x"
    left_out = "KV-cache transfer left out"
    text = f"the tokens/s/chip of mixed servers {within}, {'; '.join([*texts, never, left_out])}"
    return Line("pools", value, text)


def _pools_text(row: Mapping[str, Any], time: str) -> str:
    """Batches of mixed and separate servers."""
    mixed, apart, servers = (
        significant(row[name]) for name in ("critical_exact", "apart_B", "servers")
    )
    gain = f"{significant(row['gain'])}x " if time != ESTIMATED_TIME else ""
    return (
        f"{gain}{_basis(time, [row])}: {mixed} sequences a mixed server, {apart} apart with "
        f"{servers} prefill servers each"
    )


def _chunk(rows: Rows) -> Line:
    """Tokens of a prompt that ride in this step."""
    texts, value = [], ""
    for (time, target), of_time in groupby(rows, key=lambda row: (row["time"], row["target_s"])):
        (row,) = of_time
        place = "free" if target is None else f"within {seconds(target)}"
        number = f"{row['critical']:,}" if row["outcome"] != NEVER else "never"
        limited = f" ({row['limit']}-bound)" if row["outcome"] == NEVER and row["limit"] else ""
        value = value or (number if number == "never" else f"≤ {number}")
        texts.append(f"{number}{limited} {place} {_basis(time, [row])}")
    texts.append("LM head counted for every token, the chunk's own KV cache traffic left out")
    return Line("chunk", value, f"tokens of a prompt in this step: {'; '.join(texts)}")


def _offload(offload: str, rows: Rows) -> Line:
    value, texts = _compared(rows)
    subject = {INPUTS: "inputs of layers", SAVED: "all saved tensors"}[offload]
    text = f"tokens a sequence: {subject} off the chip hide under the forward math"
    return Line("offload", value, f"{text}, {'; '.join(texts)}")


def _states(rows: Rows) -> Line:
    value, texts = _compared(rows)
    text = "tokens a chip and step: gradients down and weights up hide"
    return Line("optimizer", value, f"{text}, {'; '.join(texts)}")


def _zero(axis: str, stage: str, rows: Rows) -> Line:
    """ZeRO stage: contexts that hide its collectives, or micro-batches that send no more."""
    value, texts = _compared(rows)
    if axis == "S_zero":
        text = f"tokens a sequence: all collectives with shard={stage} hide under math"
    else:
        text = f"micro-batches a step: shard={stage} takes no longer on the network than none"
    return Line("zero", value, f"{text}, {'; '.join(texts)}")


def _recompute(rows: Rows) -> Line:
    """Full recomputation, for the micro-batch that it lets fit."""
    value, texts = _compared(rows)
    texts = [text.replace(BY[UPPER_TIME], WITHOUT_OVERLAP) for text in texts]
    if rows[0]["gain"] is None:
        fits = rows[0]["max_fit"]
        reason = f"only with it a micro-batch fits, up to {fits:,} sequences"
        return Line("recompute", value, reason if fits else "no micro-batch fits with it, either")
    gains = [significant(at[0]["gain"]) for _, at in _by_time(rows)]
    gain = " and ".join(dict.fromkeys(gains))
    text = (
        "sequences a micro-batch: recomputing all layers gains over the largest that fits without"
    )
    most = f"tokens/s at its largest, {rows[0]['max_fit']:,}, over those without: {gain}"
    return Line("recompute", value, f"{text}, {'; '.join([*texts, most])}")


def payoff_notes(rows: Rows, levers: Mapping[str, Any] | None) -> Iterator[str]:
    """Lines as notes of a table."""
    for line in payoff_lines(rows, levers):
        yield f"{line.label.capitalize()}: {line.value} {line.text}."
