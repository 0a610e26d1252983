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
"""What can end one word of sizes, or begin the next."""

CHIPS = re.compile(r"(\d+) ?[xX×*] ?([A-Za-z].*)|([A-Za-z].*?) ?[xX×*] ?(\d+)")
"""A number of chips, 8xh100 or h100x8, which is no part of a question's words."""

CHIP_NUMBER = re.compile(r"\d{4}")
"""A number that may stand for the only chip whose name has it, such as 4090."""

BY_LETTER = "write sizes by their letters, such as B=64 S=8192; dtypes by name, such as fp8"

FIX = "leave it out, or correct it; write sizes as 128x8192x8192, those of a model as B=64 S=8192"


@dataclass
class Question:
    """What a question names; None or empty: nothing of the kind.

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
        there = getattr(self, kind)
        if there is not None:
            twice = f"is given twice, {quote(there)} and {quote(word)}"
            raise RooflinesError(kind, twice, "ask for one at a time")
        setattr(self, kind, word)

    def add(self, kind: str, word: str) -> None:
        """Keep a word of which there can be several, each once."""
        there: list[str] = getattr(self, kind)
        if word not in there:
            there.append(word)

    def find(self, kind: str, found: name_search.Found) -> None:
        """Keep a name that a word stands for, and say so."""
        self.add(kind, found.name)
        self.notes += [found.note] if found.note else []


def read_words(words: Iterable[str], chips: Mapping[str, Chip]) -> Question:
    """Words in any order: chips, a model or an operation, sizes, dtypes.

    Args:
        words: Such as `h100 128x8192x8192 bf16`, or `h100 llama-3.1-70b B=64 S=8k`; an operation
            is a name or an einsum.
        chips: Catalogue entries by id.

    Raises:
        RooflinesError: A word is nothing known, or something is given twice.
    """
    known = Question()
    each = [part for word in words for one in _words(word, chips) for part in _listed(one, chips)]
    if (
        each
        and CHIP_NUMBER.fullmatch(each[0])
        and not any(name_search.chip_named(word, chips) for word in each)
    ):
        if found := name_search.chip_near(each[0], chips):
            each[0], known.notes = found.name, [found.note]
        elif any(re.search(r"\d[xX×*]|=", word) for word in each[1:]):  # with sizes of their own
            known.chips.append(each.pop(0))
    unknown = [word for word in each if not (TIMES.fullmatch(word) or _placed(known, word, chips))]
    for word in unknown:
        near = (
            None
            if known.model or known.operation or known.product
            else name_search.model_near(word)
        )
        if near is None:
            _place_misspelt(known, word, chips)
        else:
            known.take("model", near.name)
            known.notes.append(near.note)
    if known.product is not None and known.sizes:
        letter, size = next(iter(known.sizes.items()))
        twice = f"are given twice, {quote(known.product)} and {quote(f'{letter}={size}')}"
        raise RooflinesError(
            "sizes", twice, f"leave one of them out, {quote(known.product)} or all with ="
        )
    return known


def _words(word: str, chips: Mapping[str, Chip]) -> list[str]:
    """The words in quotes; einsums, sizes with spaces around `=`, paths and chips are one each."""
    whole = (SIZE.fullmatch(word) and word.count("=") == 1) or name_search.chip_named(word, chips)
    return [word] if whole or "->" in word or is_path(word) else word.split()


def _listed(word: str, chips: Mapping[str, Chip]) -> list[str]:
    """The chips or dtypes of a list such as `h100,b200`; else the word itself."""
    parts = word.split(",")
    listed = all(
        name_search.dtypes_named(part)
        or name_search.chip_named(part, chips)
        or name_search.chip_near(part, chips)
        for part in parts
    )
    return parts if len(parts) > 1 and listed else [word]


def _placed(known: Question, word: str, chips: Mapping[str, Chip]) -> bool:
    """Take a word as what it is; False: it is nothing known."""
    if found := name_search.chip_named(word, chips):
        known.find("chips", found)
    elif dtypes := word if WRITTEN_OUT.fullmatch(word) else name_search.dtypes_named(word):
        known.add("dtypes", dtypes)
    elif operation := name_search.operation_named(word):
        known.take("operation", operation)
    elif is_path(word):
        known.take("model", word)
    elif match := SIZE.fullmatch(word):
        check_once(match[1], match[2], known.sizes)
        known.sizes[match[1]] = match[2]
    elif "=" in word:
        _place_key(known, word)
    elif TrainingPlan.keys_of(word):
        known.take("split", word)
    elif (match := CHIPS.fullmatch(word)) and name_search.chip_named(match[2] or match[3], chips):
        problem = f"is {quote(word)}, but --split sets the number of chips"
        fix = f"write {match[2] or match[3]}, and --split tp={match[1] or match[4]}"
        raise RooflinesError("chip", problem, fix)
    elif PRODUCT.fullmatch(word) or word[:1] in "+-." or word[:1].isdigit():
        before = "" if known.product is None else f"{known.product.rstrip(SIGNS)}x"
        known.product = f"{before}{word.lstrip(SIGNS) if before else word}"
    elif is_named(word):
        known.take("model", word)
    elif found := name_search.chip_near(word, chips):
        known.find("chips", found)
    else:
        return False
    return True


def _place_key(known: Question, word: str) -> None:
    """Take words such as `tp=8` as the split, and one such as `weights=fp8` as dtypes."""
    key = word.partition("=")[0]
    if key.lower() in TrainingPlan.model_fields:
        if "=" in (known.split or ""):
            known.split = f"{known.split},{word}"
        else:
            known.take("split", word)
    elif key in StepDtypes.model_fields:
        known.add("dtypes", word)
    else:
        problem = f"has {quote(word)}, which is neither a size, dtypes nor a split"
        raise RooflinesError("the question", problem, BY_LETTER)


def _place_misspelt(known: Question, word: str, chips: Mapping[str, Chip]) -> None:
    """Take a word as what is missing, by which names are close; it is refused later."""
    check_kind(word, "model")
    dtypes = (*dtype_entries().combinations, *dtype_entries().formats)
    alike = {
        "chips": close_to(word, chips),
        "dtypes": close_to(word, dict.fromkeys(dtypes)),
        "model": close_models(word) if not known.operation and not known.product else [],
    }
    missing = [kind for kind in alike if not getattr(known, kind)]
    close = [kind for kind in missing if alike[kind]]
    if not close and "chips" in missing:
        close = ["chips"]
    if not close:
        every = [*NAMED_OPERATIONS, *chips, *dtypes, *model_entries()]
        problem = "which is no operation, model, size, chip or dtype combination"
        raise RooflinesError(
            "the question", f"has {quote(word)}, {problem}", FIX, close=close_to(word, every)
        )
    (known.take if close[0] == "model" else known.add)(close[0], word)
