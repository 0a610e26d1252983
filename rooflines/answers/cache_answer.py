"""A question about the KV cache of a model, without a chip: bytes per token and per context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.answers.basis import BOUND_BASIS
from rooflines.answers.case_table import Cases
from rooflines.answers.question_sizes import values_of
from rooflines.answers.word_groups import KV_WORDS
from rooflines.basics.errors import check_choice
from rooflines.basics.text import si
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.models.library import find_model
from rooflines.models.model import Model
from rooflines.models.model_sheet import CACHE_DTYPES, CONTEXTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflines.answers.question_words import Question

TITLES = {
    "dtype": "KV cache in",
    "per_token": "a token",
    "B": "B",
    "S": "S",
    "kv_cache": "KV cache",
}
"""Column titles."""


def asks_cache(question: Question) -> bool:
    """Check for a question about a model's KV cache that names no chip and no time."""
    words = {token.lower() for token in question.tokens}
    names_cache = bool(words & {*KV_WORDS}) or "cache" in question.roles
    rest = question.splits or question.options or question.request or question.mistakes
    return names_cache and question.model is not None and not (question.chips or rest)


def cache_cases(question: Question) -> Cases:
    """KV cache by dtype, batch and context: bytes of B sequences of S tokens.

    Args:
        question: A model, perhaps sizes, and formats of the cache; without sizes usual contexts,
            without formats 16 and 8 bit.

    Raises:
        RooflinesError: The model, a size or a format is invalid.
    """
    named = question.model
    model = named if isinstance(named, Model) else find_model(str(named))
    typed = [question.roles["cache"]] if "cache" in question.roles else question.dtypes
    for form in typed:
        check_choice(form, dtype_entries().formats, "no format of a KV cache")
    sizes = {letter.upper(): size for letter, size in question.sizes.items()}
    longest = model.shape.context
    usual = [context for context in CONTEXTS if longest is None or context <= longest]
    contexts = values_of(sizes["S"], "S") if "S" in sizes else usual or [longest or CONTEXTS[0]]
    batches = values_of(sizes.get("B", 1), "B")
    rows = [*_rows(model, typed or [*CACHE_DTYPES], batches, contexts)]
    columns = {key: title for key, title in TITLES.items() if key != "B" or batches != [1]}
    notes = [
        f"Weights, and the chips that hold them: rooflines list models {model.name}.",
        f"The largest batch: rooflines explain h100 {model.name} S={contexts[0]} max batch.",
    ]
    if state := model.state_bytes():
        notes.insert(0, f"States of a sequence, {si(float(state), 'B')}, are in the KV cache.")
    if model.shape.window is not None:
        window = model.shape.window.tokens
        notes.insert(0, f"Layers with a window keep at most {window:,} tokens.")
    return Cases(f"{model.name} · KV cache", rows, columns, "", BOUND_BASIS, notes)


def _rows(
    model: Model, formats: list[str], batches: list[int], contexts: list[int]
) -> Iterator[dict[str, Any]]:
    """Row of each case."""
    state = model.state_bytes()
    for form in formats:
        token = float(model.kv_cache_bytes(1, form) - state)
        for batch in batches:
            for context in contexts:
                total = float(batch * model.kv_cache_bytes(context, form))
                yield {
                    "model": model.name,
                    "dtype": form,
                    "B": batch,
                    "S": context,
                    "kv_cache_bytes_per_token": token,
                    "kv_cache_bytes": total,
                    "per_token": si(token, "B"),
                    "kv_cache": si(total, "B"),
                }
