"""Sizes and a split for a question about a model that has none; notes say which."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rooflines.answers.case_table import Cases
from rooflines.answers.explain import answered
from rooflines.answers.word_forms import key_name
from rooflines.basics.errors import RooflinesError
from rooflines.basics.quantities import PER_USER, measured_value
from rooflines.basics.text import seconds
from rooflines.models.architecture import PREFILL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.answers.question import QuestionCatalogues
    from rooflines.answers.question_words import Question

MODEL_SIZES = {"B": "64", "S": "8k"}
"""Sizes of a model that none are typed for."""

TRAINED_SEQUENCES = 512
"""B of a step of training that none is typed for, up to a multiple of the chips [1]."""

PROMPTS = "1"
"""B of a prefill that none is typed for."""

SPLITS = (
    *({"tp": str(chips)} for chips in (1, 2, 4, 8)),
    *({"tp": "1", "dp": str(chips), "ep": str(chips)} for chips in (16, 32, 64)),
    *({"tp": str(chips)} for chips in (16, 32, 64)),
)
"""Splits that are tried in turn for a model that none is typed for."""


def missing_sizes(question: Question, keys: Mapping[str, object]) -> dict[str, str]:
    """Sizes in place of those that a question about a model lacks; B is open within a limit.

    Args:
        question: A model and its chips.
        keys: Options, typed as words or as options.
    """
    typed = {letter.upper() for letter in question.sizes}
    sizes = {letter: size for letter, size in MODEL_SIZES.items() if letter not in typed}
    if question.request:
        sizes.pop("S", None)
    if "within" in keys:
        sizes.pop("B", None)
    if "B" in sizes and keys.get("phase") == PREFILL:
        sizes["B"] = PROMPTS
    return sizes


def complete_training(question: Question, options: Mapping[str, object]) -> None:
    """Add missing sizes to a step of training; a note says so.

    Args:
        question: A model and its chips.
        options: Options of the command, besides those typed as words.
    """
    keys = {**question.options, **options}
    chips = question.count or (int(str(keys.get("chips"))) if _is_whole(keys.get("chips")) else 1)
    sizes = {"B": str(-(-TRAINED_SEQUENCES // chips) * chips), "S": MODEL_SIZES["S"]}
    typed = {letter.upper() for letter in question.sizes}
    missing = {letter: size for letter, size in sizes.items() if letter not in typed}
    if missing and not question.product:
        question.sizes |= missing
        text = " ".join(f"{letter}={size}" for letter, size in missing.items())
        question.notes.append(f"{text}, where none is typed")


def _is_whole(value: object) -> bool:
    return str(value).isdigit() and int(str(value)) > 0


def complete(
    question: Question, catalogues: QuestionCatalogues, options: Mapping[str, object] | None = None
) -> None:
    """Add missing sizes to a model, and a split where none is typed; notes say so.

    A rate of one user's tokens without B is a limit on the step time.

    Args:
        question: A model and its chips.
        catalogues: What can be named.
        options: Options of the command, besides those typed as words.
    """
    keys = {**question.options, **(options or {})}
    sizes = missing_sizes(question, keys)
    is_step = not question.request and keys.get("phase") != PREFILL and "within" not in keys
    limit = _limit(question) if is_step else None
    if "B" in sizes and limit:
        typed = question.options.pop("measured")
        question.options["within"] = f"{limit!r}"
        text = f"{typed} without B is a limit: {seconds(limit)} a token"
        question.notes.append(text)
        sizes.pop("B")
    is_searched = "B" in sizes and asks_max_batch(question.tokens)
    if "B" in sizes and {token.lower() for token in question.tokens} & FIT_WORDS:
        sizes["B"] = PROMPTS
    question.sizes |= {**sizes, **({"B": "1"} if is_searched else {})}
    stated = {letter: size for letter, size in sizes.items() if letter != "B" or not is_searched}
    if stated:
        text = " ".join(f"{letter}={size}" for letter, size in stated.items())
        question.notes.append(f"{text}, where none is typed")
    if not (question.splits or question.count or "split" in keys):
        _split(question, catalogues)
    if is_searched:
        _max_batch(question, catalogues)


FIT_WORDS = {"fit", "fits"}
"""Words that ask whether a model fits: with one sequence, where no B is typed."""

MAX_WORDS = {"max", "maximum", "largest", "biggest", "many"}
BATCH_NOUNS = {"batch", "concurrency", "users", "sequences", "seqs", "requests", "sessions"}
"""Words that together ask for the largest batch."""


def asks_max_batch(tokens: Sequence[str]) -> bool:
    """Check for a question about the largest batch that fits."""
    words = {key_name(token) for token in tokens}
    return "max_batch" in words or (bool(words & MAX_WORDS) and bool(words & BATCH_NOUNS))


def _max_batch(question: Question, catalogues: QuestionCatalogues) -> None:
    """Take the largest batch that fits as B, where one does."""
    answer = answered(replace(question, sizes={**question.sizes}, notes=[]), catalogues)
    if not isinstance(answer, Cases) and (largest := answer.row.get("max_B")):
        question.sizes["B"] = str(largest)
        question.notes.append(f"B={largest:,} is the largest batch that fits")


def _split(question: Question, catalogues: QuestionCatalogues) -> None:
    """Add the first of a few splits that fits on all chips, if there is one."""
    for split in SPLITS:
        tried = replace(question, sizes={"B": "1", **question.sizes}, splits=[split], notes=[])
        tried.options = {
            key: value
            for key, value in question.options.items()
            if key not in ("within", "measured")
        }
        try:
            answer = answered(tried, catalogues)
        except RooflinesError:  # it has no experts, or no network joins as many chips
            if split in SPLITS[:1]:
                raise
            continue
        rows = answer.rows if isinstance(answer, Cases) else [answer.row]
        if all(row.get("fits") is not False for row in rows):
            question.splits = tried.splits
            name = "-".join(f"{key}{number}" for key, number in split.items() if number != "1")
            where = " on all of them" if len(question.chips) > 1 else ""
            question.notes.append(f"{name or 'tp1'} is the smallest split that fits{where}")
            return


def _limit(question: Question) -> float | None:
    """Step time of a rate of one user's tokens that is typed as a word [s]; None: none is."""
    try:
        value = measured_value(question.options.get("measured"))
    except RooflinesError:
        return None
    return 1 / value.value if value.kind == PER_USER else None
