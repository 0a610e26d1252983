"""Statements that only a training step's explanation has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflines.basics.text import count, si
from rooflines.dictionary.columns import FOUND

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflines.answers.answer_values import Answer

Fact = tuple[str, str]
"""A label and its text; an empty text is not said."""


def training_facts(answer: Answer) -> Iterator[Fact]:
    """Throughput, MFU, HFU and pipeline bubble in a training step."""
    row = answer.row
    serialized, bound_rate = count(row["tokens_per_s_serial"]), count(row["tokens_per_s"])
    yield "tokens/s", f"{serialized} serialized, at most {bound_rate}"
    shares = f"{row['mfu_serial']:.1%}, {row['mfu_full_serial']:.1%} counting all token pairs"
    yield "MFU", f"{shares}; HFU {row['hfu_serial']:.1%}, including recomputation"
    runs = f"{row['micro_batches']:,} micro-batches"
    yield "pipeline", f"bubble {row['bubble']:.1%} ({runs})" if row["pp"] > 1 else ""


def held_memory(answer: Answer) -> str:
    """Bytes on the fullest chip: model and optimizer states, saved activations."""
    states, saved = (si(answer.row[f"{part}_bytes"], "B") for part in ("state", "saved"))
    return f"{states} of weights, gradients and optimizer states, {saved} of activations"


def limits(answer: Answer) -> Iterator[Fact]:
    """Largest sizes that fit, and days and cost for the whole training."""
    row = answer.row
    if row["max_S"]:
        max_micro_batch = row["max_micro_batch"]
        micro_batch = f"; or micro-batch up to {max_micro_batch:,}" if max_micro_batch else ""
        yield "largest", f"S up to {row['max_S']:,}{micro_batch}"
    if "days" in row:
        usd = "" if row["usd"] is None else f", ${count(row['usd'])}"
        yield "training", f"{row['days']:,.1f} days at this step time{usd}"


def holding(answer: Answer) -> str:
    """Sizes or chips with which a step would fit."""
    (fewest,) = (threshold for threshold in answer.thresholds if threshold["axis"] == "chips")
    changes = [f"up to S = {answer.row['max_S']:,}"] if answer.row["max_S"] else []
    if fewest["outcome"] == FOUND:
        changes.append(f"with more replicas from {fewest['critical']:,} chips")
    return f"fits {' or '.join(changes)}" if changes else "the states alone do not fit"
