"""Parsed command-line words of a question: chips, a model or an operation, sizes, dtypes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rooflines.answers import name_search
from rooflines.answers.question_sizes import SIZE, TIMES, check_once
from rooflines.basics.errors import RooflinesError, close_to, quote
from rooflines.basics.file_kinds import check_kind
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.models.library import close_models, is_named, is_path, model_entries
from rooflines.models.tensor_dtypes import StepDtypes
from rooflines.theory.operation import NAMED_OPERATIONS
from rooflines.training.parallel_plan import TrainingPlan

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rooflines.hardware.entries import Chip
    from rooflines.models.model import Model

PRODUCT = re.compile(r"[xX×*._,]*\d[\dxX×*._,kKmM]*")
"""Sizes, even where one is missing."""

WRITTEN_OUT = re.compile(r"([\w-]+),([\w-]+)->([\w-]+)@([\w-]+)")
"""A dtype combination that has no name: x,w->out@compute."""

SIGNS = "xX×*"
"""Separators that can end one sizes word, or begin the next."""

CHIPS = re.compile(r"(\d+) ?[xX×*] ?([A-Za-z].*)|([A-Za-z].*?) ?[xX×*] ?(\d+)")
"""A number of chips, 8xh100 or h100x8, which is no part of a question's words."""

CHIP_NUMBER = re.compile(r"\d{4}")
"""A number that may stand for the only chip whose name has it, such as 4090."""

BY_LETTER = "write sizes by their letters, such as B=64 S=8192; dtypes by name, such as fp8"

FIX = "leave it out, or correct it; write sizes as 128x8192x8192, those of a model as B=64 S=8192"


@dataclass
class Question:
    """Parts named in a question; None or empty: not named.

    Attributes:
        chips: Ids, or what stands in their place.
        operation, model: A name; at most one of the two.
        dtypes: Names of combinations or formats, or those by tensor as a config has them.
        split: How chips share a model, such as `tp8` or `tp=4,dp=2`.
        product: Sizes in order, such as 128x8192x8192; also typed as several words.
        sizes: Sizes by letter.
        notes: What was taken for what.
    """

    chips: list[str] = field(default_factory=list)
    operation: str | None = None
    model: str | Model | None = None
    dtypes: list[Any] = field(default_factory=list)
    split: str | None = None
    product: Any = None
    sizes: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def take(self, kind: str, word: str) -> None:
        """Keep the word of an operation, a model or a split.

        Raises:
            RooflinesError: There is one of this kind already.
        """
        current = getattr(self, kind)
        if current is not None:
            twice = f"is given twice, {quote(current)} and {quote(word)}"
            raise RooflinesError(kind, twice, "ask for one at a time")
        setattr(self, kind, word)

    def add(self, kind: str, word: str) -> None:
        """Keep a word of which there can be several, each once."""
        current: list[str] = getattr(self, kind)
        if word not in current:
            current.append(word)

    def find(self, kind: str, match: name_search.Match) -> None:
        """Keep a name that a word stands for, and say so."""
        self.add(kind, match.name)
        self.notes += [match.note] if match.note else []


def read_words(words: Iterable[str], chips: Mapping[str, Chip]) -> Question:
    """Words in any order: chips, a model or an operation, sizes, dtypes.

    Args:
        words: Such as `h100 128x8192x8192 bf16`, or `h100 llama-3.1-70b B=64 S=8k`; an operation
            is a name or an einsum.
        chips: Catalogue entries by id.

    Raises:
        RooflinesError: A word is nothing known, or something is given twice.
    """
    question = Question()
    parts = [
        part for word in words for text in _words(word, chips) for part in _listed(text, chips)
    ]
    if (
        parts
        and CHIP_NUMBER.fullmatch(parts[0])
        and not any(name_search.find_chip(word, chips) for word in parts)
    ):
        if match := name_search.search_chip(parts[0], chips):
            parts[0], question.notes = match.name, [match.note]
        elif any(re.search(r"\d[xX×*]|=", word) for word in parts[1:]):  # with sizes of their own
            question.chips.append(parts.pop(0))
    unknown = [
        word
        for word in parts
        if not (TIMES.fullmatch(word) or _classify_word(question, word, chips))
    ]
    for word in unknown:
        near = (
            None
            if question.model or question.operation or question.product
            else name_search.search_model(word)
        )
        if near is None:
            _place_misspelt(question, word, chips)
        else:
            question.take("model", near.name)
            question.notes.append(near.note)
    if question.product is not None and question.sizes:
        letter, size = next(iter(question.sizes.items()))
        twice = f"are given twice, {quote(question.product)} and {quote(f'{letter}={size}')}"
        raise RooflinesError(
            "sizes", twice, f"leave one of them out, {quote(question.product)} or all with ="
        )
    return question


def _words(word: str, chips: Mapping[str, Chip]) -> list[str]:
    """Split quoted words; einsums, sizes with spaces around `=`, paths and chips stay whole."""
    whole = (SIZE.fullmatch(word) and word.count("=") == 1) or name_search.find_chip(word, chips)
    return [word] if whole or "->" in word or is_path(word) else word.split()


def _listed(word: str, chips: Mapping[str, Chip]) -> list[str]:
    """Chips or dtypes in a list such as `h100,b200`; else the word itself."""
    parts = word.split(",")
    listed = all(
        name_search.find_dtypes(part)
        or name_search.find_chip(part, chips)
        or name_search.search_chip(part, chips)
        for part in parts
    )
    return parts if len(parts) > 1 and listed else [word]


def _classify_word(question: Question, word: str, chips: Mapping[str, Chip]) -> bool:
    """Take a word as what it is; False: it is nothing known."""
    if match := name_search.find_chip(word, chips):
        question.find("chips", match)
    elif dtypes := word if WRITTEN_OUT.fullmatch(word) else name_search.find_dtypes(word):
        question.add("dtypes", dtypes)
    elif operation := name_search.find_operation(word):
        question.take("operation", operation)
    elif is_path(word):
        question.take("model", word)
    elif regex_match := SIZE.fullmatch(word):
        check_once(regex_match[1], regex_match[2], question.sizes)
        question.sizes[regex_match[1]] = regex_match[2]
    elif "=" in word:
        _place_key(question, word)
    elif TrainingPlan.keys_of(word):
        question.take("split", word)
    elif (regex_match := CHIPS.fullmatch(word)) and name_search.find_chip(
        regex_match[2] or regex_match[3], chips
    ):
        problem = f"is {quote(word)}, but --split sets the number of chips"
        chip, count = regex_match[2] or regex_match[3], regex_match[1] or regex_match[4]
        fix = f"write {chip}, and --split tp={count}"
        raise RooflinesError("chip", problem, fix)
    elif PRODUCT.fullmatch(word) or word[:1] in "+-." or word[:1].isdigit():
        before = "" if question.product is None else f"{question.product.rstrip(SIGNS)}x"
        question.product = f"{before}{word.lstrip(SIGNS) if before else word}"
    elif is_named(word):
        question.take("model", word)
    elif match := name_search.search_chip(word, chips):
        question.find("chips", match)
    else:
        return False
    return True


def _place_key(question: Question, word: str) -> None:
    """Take words such as `tp=8` as the split, and one such as `weights=fp8` as dtypes."""
    key = word.partition("=")[0]
    if key.lower() in TrainingPlan.model_fields:
        if "=" in (question.split or ""):
            question.split = f"{question.split},{word}"
        else:
            question.take("split", word)
    elif key in StepDtypes.model_fields:
        question.add("dtypes", word)
    else:
        problem = f"has {quote(word)}, which is neither a size, dtypes nor a split"
        raise RooflinesError("the question", problem, BY_LETTER)


def _place_misspelt(question: Question, word: str, chips: Mapping[str, Chip]) -> None:
    """Take a word as what is missing, by which names are close; it is refused later."""
    check_kind(word, "model")
    dtypes = (*dtype_entries().combinations, *dtype_entries().formats)
    close_names = {
        "chips": close_to(word, chips),
        "dtypes": close_to(word, dict.fromkeys(dtypes)),
        "model": close_models(word) if not question.operation and not question.product else [],
    }
    missing = [kind for kind in close_names if not getattr(question, kind)]
    close = [kind for kind in missing if close_names[kind]]
    if not close and "chips" in missing:
        close = ["chips"]
    if not close:
        all_names = [*NAMED_OPERATIONS, *chips, *dtypes, *model_entries()]
        problem = "which is no operation, model, size, chip or dtype combination"
        raise RooflinesError(
            "the question", f"has {quote(word)}, {problem}", FIX, close=close_to(word, all_names)
        )
    (question.take if close[0] == "model" else question.add)(close[0], word)
