"""Texts about the longest context where some layers attend in chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.dictionary.columns import FOUND, WITHOUT_END

if TYPE_CHECKING:
    from collections.abc import Mapping

TEXTS = {
    FOUND: (
        "≤ {critical}",
        "with a large batch, at {number:,} of {among:,} contexts; longer ones are {limit}-bound",
    ),
    WITHOUT_END: (
        "some",
        "with a large batch, at {number:,} of the {among:,} contexts in each chunk",
    ),
}
"""The short answer and the text, by outcome."""


def some_contexts(
    threshold: Mapping[str, Any], in_chunks: Mapping[str, int] | None
) -> tuple[str, str] | None:
    """Short answer and text for a context limit below which some contexts have no such batch.

    Args:
        threshold: A row of thresholds.
        in_chunks: The `number` of contexts with a compute-bound batch, `among` how many [1]; None:
            no layer attends in chunks.

    Returns:
        None where all contexts have one, or the threshold is another.
    """
    outcome = threshold["outcome"]
    if in_chunks is None or threshold["axis"] != "S" or outcome not in TEXTS:
        return None
    if in_chunks["number"] == in_chunks["among"]:
        return None
    value, text = TEXTS[outcome]
    return value.format(**threshold), text.format(limit=threshold["limit"], **in_chunks)
