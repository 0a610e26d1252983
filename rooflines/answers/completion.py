"""Sizes and a split for a question about a model that has none; notes say which."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rooflines.answers.case_table import Cases
from rooflines.answers.explain import answered
from rooflines.models.architecture import PREFILL

if TYPE_CHECKING:
    from rooflines.answers.question import QuestionCatalogues
    from rooflines.answers.question_words import Question

MODEL_SIZES = {"B": "64", "S": "8k"}
"""Sizes of a model that none are typed for."""

PROMPTS = "1"
"""B of a prefill that none is typed for."""

SPLITS = (1, 2, 4, 8)
"""Tensor parallelism that is tried for a model that none is typed for [1]."""


def complete(question: Question, catalogues: QuestionCatalogues, *, split: bool = True) -> None:
    """Add sizes and a split to a model without any; notes say so.

    Args:
        question: A model and its chips.
        catalogues: What can be named.
        split: False where a split is typed as an option.
    """
    typed = {letter.upper() for letter in question.sizes} | question.request.keys()
    sizes = {letter: size for letter, size in MODEL_SIZES.items() if letter not in typed}
    if question.request:
        sizes.pop("S", None)
    if "B" in sizes and question.options.get("phase") == PREFILL:
        sizes["B"] = PROMPTS
    if "within" in question.options:
        sizes.pop("B", None)
    if sizes:
        question.sizes |= sizes
        text = " ".join(f"{letter}={size}" for letter, size in sizes.items())
        question.notes.append(f"{text}, where none is typed")
    if question.splits or question.count or not split:
        return
    for chips in SPLITS:
        tried = replace(
            question, sizes={"B": "1", **question.sizes}, splits=[{"tp": str(chips)}], notes=[]
        )
        tried.options = {
            key: value
            for key, value in question.options.items()
            if key not in ("within", "measured")
        }
        answer = answered(tried, catalogues)
        rows = answer.rows if isinstance(answer, Cases) else [answer.row]
        if all(row.get("fits") is not False for row in rows):
            question.splits = tried.splits
            where = " on all of them" if len(question.chips) > 1 else ""
            question.notes.append(f"tp{chips} is the smallest split that fits{where}")
            return
