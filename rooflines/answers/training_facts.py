"""What an explanation says of a step of training, and of no other."""

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
    """How quick a step is."""
    row = answer.row
    yield "tokens/s", f"{count(row['tokens_per_s_serial'])}, {count(row['tokens_per_s'])} at most"
    shares = f"{row['mfu_serial']:.1%} mfu, {row['mfu_full_serial']:.1%} with all pairs of tokens"
    yield "peak", f"{shares}, {row['hfu_serial']:.1%} hfu"
    runs = f"{row['micro_batches']:,} micro-batches"
    yield "pipeline", f"waits {row['bubble']:.1%} of a step of {runs}" if row["pp"] > 1 else ""


def held_memory(answer: Answer) -> str:
    """What the fullest chip holds."""
    states, saved = (si(answer.row[f"{part}_bytes"], "B") for part in ("state", "saved"))
    return f"{states} of states, {saved} of saved tensors"


def limits(answer: Answer) -> Iterator[Fact]:
    """The largest sizes that fit, and how long the whole training takes."""
    row = answer.row
    if row["max_S"]:
        most = row["max_micro_batch"]
        micro_batch = f"; or micro-batch up to {most:,}" if most else ""
        yield "largest", f"S up to {row['max_S']:,}{micro_batch}"
    if "days" in row:
        usd = "" if row["usd"] is None else f", ${count(row['usd'])}"
        yield "training", f"{row['days']:,.1f} days of such steps{usd}"


def holding(answer: Answer) -> str:
    """What would fit in place of a step that does not."""
    (fewest,) = (each for each in answer.thresholds if each["axis"] == "chips")
    found = [f"S = {answer.row['max_S']:,}"] if answer.row["max_S"] else []
    if fewest["outcome"] == FOUND:
        found.append(f"{fewest['critical']:,} chips with more replicas")
    return f"{' or '.join(found)} would" if found else "the states alone do not"
