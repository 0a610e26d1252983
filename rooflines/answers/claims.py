"""Rules for a sentence about rows: a title, a verdict, a line at the end of a run.

A sentence comes with the rows behind it and with what it claims of them. A rule is an assertion on
both. A sentence that breaks one is not said: `first_true` takes the next.

1. It speaks of one chip, or of all that have the datum.
2. A resource that it blames binds, and a network that it names moves bytes.
3. A difference is larger than the model's own error; a ranking of money, or of bounds, says its
   basis.
4. A value is named with its unit of hardware and of counting.
5. The end of a grid is no finding.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MIN_FACTOR = 1.2
"""Quotient of two bounds from which on one chip is ranked before another [1]."""

LOWEST_PRICES = "lowest dated prices"
"""Basis on which chips are compared by price."""

EXPERT = "expert"
"""The word in the names of layers of which each expert has its own."""


@dataclass(frozen=True)
class Ranking:
    """A claim that a number is larger than the next one.

    Attributes:
        first, second: The two numbers.
        spreads: p90 over p10 of the timings of either, in the same dtypes [1]; none: no timings.
        money: Whether the numbers are of prices.
    """

    first: float
    second: float
    spreads: tuple[float, ...] = ()
    money: bool = False


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """A text with the rows behind it.

    Attributes:
        text: What is said.
        rows: The rows that it speaks of, with the columns that its rules read.
        chosen: The chip that was chosen; None: none was.
        every: The chips that have the datum, of a sentence about several.
        blames: The resource that it gives as the reason.
        moves: The resource whose part it names, such as a network.
        ranks: The ranking that it states.
        ridge: Whether it states a ridge.
        writes: Whether the operation writes an output that a fused kernel would not.
        starts: The smallest size of the grid, where it states a smallest size [1].
        published: The format that a model is published in, where the first answer is in another.
    """

    text: str = field(kw_only=False)
    rows: Sequence[Mapping[str, Any]] = ()
    chosen: str | None = None
    every: Sequence[str] = ()
    blames: str | None = None
    moves: str | None = None
    ranks: Ranking | None = None
    ridge: bool = False
    writes: bool = False
    starts: int | None = None
    published: str | None = None


def broken(sentence: Sentence) -> str | None:
    """First rule that a sentence breaks, in words; None: it breaks none."""
    return next((problem for rule in RULES if (problem := rule(sentence)) is not None), None)


def first_true(sentences: Iterable[Sentence]) -> Sentence:
    """First sentence that breaks no rule; the last one only describes.

    Raises:
        ValueError: All of them break one.
    """
    reasons = []
    for sentence in sentences:
        reason = broken(sentence)
        if reason is None:
            return sentence
        reasons.append(f"{sentence.text}: {reason}")
    raise ValueError("; ".join(reasons))


def one_chip_or_all(sentence: Sentence) -> str | None:
    """Rule 1: the chosen chip, or all that have the datum."""
    chips = {row["chip"] for row in sentence.rows if "chip" in row}
    if sentence.chosen is not None and chips - {sentence.chosen}:
        return f"is about {', '.join(sorted(chips))}, while {sentence.chosen} is chosen"
    if sentence.every and len(chips) > 1 and chips != set(sentence.every):
        return f"is about {len(chips)} of {len(set(sentence.every))} chips that have the datum"
    return None


def resource_binds(sentence: Sentence) -> str | None:
    """Rule 2: what is blamed binds all rows, and what is named moves bytes in some."""
    if sentence.blames is not None:
        reasons = {row.get("limit", row.get("bound")) for row in sentence.rows}
        if reasons != {sentence.blames}:
            names = ", ".join(str(reason) for reason in sorted(map(str, reasons)))
            return f"blames {sentence.blames}, but the rows are limited by {names or 'nothing'}"
    if sentence.moves is not None:
        column = f"{sentence.moves}_bytes"
        if not any(row.get(column) for row in sentence.rows):
            return f"names a {sentence.moves} that moves no byte"
    return None


def beyond_error(sentence: Sentence) -> str | None:
    """Rule 3: a difference beyond the model's error, on a basis that the text says."""
    ranking = sentence.ranks
    if ranking is None:
        return None
    if ranking.money and LOWEST_PRICES not in sentence.text:
        return "compares prices without saying which"
    min_factor = max(ranking.spreads, default=MIN_FACTOR)
    if ranking.first <= ranking.second * min_factor:
        factor = ranking.first / ranking.second
        return f"states a factor of {factor:.3g}, within the error of {min_factor:.3g}"
    if not ranking.spreads and not ranking.money and "bound" not in sentence.text.lower():
        return "ranks bounds without saying so"
    return None


def named_unit(sentence: Sentence) -> str | None:
    """Rule 4: hardware unit for a ridge, counted tokens, computed product."""
    text = sentence.text.lower()
    if sentence.ridge:
        units = {row["unit"] for row in sentence.rows}
        if len(units) != 1 or next(iter(units)) not in text:
            return "states a ridge without the unit that computes"
    layers = [str(row.get("layer") or row.get("shape") or "") for row in sentence.rows]
    if any(EXPERT in layer for layer in layers) and EXPERT not in text:
        return "counts tokens of one expert as tokens"
    if sentence.writes and "unfused" not in text:
        return "speaks of a product that writes its output as of a fused one"
    if sentence.published is not None and sentence.published not in text:
        return f"leaves out that the model is published in {sentence.published}"
    return None


def no_artefact(sentence: Sentence) -> str | None:
    """Rule 5: the smallest size of a grid is no finding."""
    if sentence.starts is not None and all(
        row.get("critical") is not None and row["critical"] <= sentence.starts
        for row in sentence.rows
    ):
        return "states the smallest size that there is as a finding"
    return None


RULES = (one_chip_or_all, resource_binds, beyond_error, named_unit, no_artefact)
"""The rules in their order."""
