"""The words of a question by what they are: chips, a model or an operation, sizes, dtypes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from rooflines.basics.errors import Mistakes, RooflinesError, close_to, placed, quote
from rooflines.basics.numbers import LARGEST_SIZE, whole
from rooflines.catalogue.chips import dtype_entries
from rooflines.explanation.names import chip_named, dtypes_named, model_near
from rooflines.model.operation import NAMED
from rooflines.models.library import close_models, is_named, model_entries
from rooflines.models.resolve import is_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rooflines.catalogue.entries import Chip

SIZE = re.compile(r"([A-Za-z])\s*=\s*(.*)")
"""LETTER=SIZE, the size of one dimension, or several."""

TIMES = re.compile(r"[xX×*]")
"""What is between the sizes of 128x8192x8192."""

PRODUCT = re.compile(r"[xX×*._,]*\d[\dxX×*._,kKmM]*")
"""Sizes, even where one is missing."""

WRITTEN_OUT = re.compile(r"([\w-]+),([\w-]+)->([\w-]+)@([\w-]+)")
"""A dtype combination that has no name: x,w->out@compute."""

SUFFIXED = re.compile(r"(\d+(?:\.\d+)?)([kKmM])", re.ASCII)
"""A size in units of 1,024 or of 1,024 times that."""

RANGE = re.compile(r"(.+?)\.\.([^+]+)(?:\+(.+))?")
"""FIRST..LAST, doubling, or FIRST..LAST+STEP."""

UNITS = {"k": 2**10, "m": 2**20}
"""What k and M after a size stand for [1]."""

MOST_SIZES = 200
"""Sizes of one letter [1]."""

FIX = "leave it out, or correct it; write sizes as 128x8192x8192, those of a model as B=64 S=8192"


@dataclass
class Words:
    """The words of a question; None or empty: there is none of the kind.

    Attributes:
        chips: Ids, or what stands in their place.
        operation, model: A name; at most one of the two.
        dtypes: Names of combinations or formats.
        product: Sizes in order, such as 128x8192x8192; also typed as several words.
        sizes: Sizes by letter.
        notes: What was taken for what.
    """

    chips: list[str] = field(default_factory=list)
    operation: str | None = None
    model: str | None = None
    dtypes: list[str] = field(default_factory=list)
    product: str | None = None
    sizes: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def take(self, kind: str, word: str) -> None:
        """Keep a word of which there is one at most.

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

    def take_size(self, letter: str, size: str) -> None:
        """Keep the size of a letter.

        Raises:
            RooflinesError: There is one already.
        """
        if letter in self.sizes:
            twice = f"is given twice, {quote(self.sizes[letter])} and {quote(size)}"
            raise RooflinesError(f"size {letter}", twice, "give each letter one size, or B=64,128")
        self.sizes[letter] = size


def read_words(  # noqa: PLR0912, the kinds of words
    words: Iterable[str], chips: Mapping[str, Chip]
) -> Words:
    """Words in any order: chips, a model or an operation, sizes, dtypes.

    Args:
        words: Such as `h100 128x8192x8192 bf16`, or `h100 llama-3.1-70b B=64 S=8k`; an operation
            is a name or an einsum.
        chips: Catalogue entries by id.

    Raises:
        RooflinesError: A word is nothing known, or something is given twice.
    """
    known, unknown = Words(), []
    for word in words:
        if word in chips:
            known.add("chips", word)
        elif dtypes := dtypes_named(word):
            known.add("dtypes", dtypes)
        elif WRITTEN_OUT.fullmatch(word):
            known.add("dtypes", word)
        elif word.lower() in NAMED or "->" in word:
            known.take("operation", word if "->" in word else word.lower())
        elif is_named(word) or is_path(word):
            known.take("model", word)
        elif match := SIZE.fullmatch(word):
            known.take_size(*match.groups())
        elif "=" in word:
            known.add("dtypes", word)
        elif word[:1] in "+-." or word[:1].isdigit() or PRODUCT.fullmatch(word):
            known.product = word if known.product is None else f"{known.product}x{word}"
        elif found := chip_named(word, chips):
            known.add("chips", found.name)
            known.notes += [found.note] if found.note else []
        else:
            unknown.append(word)
    for word in unknown:
        near = None if known.model or known.operation or known.product else model_near(word)
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


def _place_misspelt(known: Words, word: str, chips: Mapping[str, Chip]) -> None:
    """Take a word as what is missing, by which names are close; it is refused later."""
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
        every = [*NAMED, *chips, *dtypes, *model_entries()]
        problem = "which is no operation, model, size, chip or dtype combination"
        raise RooflinesError(
            "the question", f"has {quote(word)}, {problem}", FIX, close=close_to(word, every)
        )
    (known.take if close[0] == "model" else known.add)(close[0], word)


def by_letter(text: str) -> dict[str, str]:
    """Sizes by letter, of a text such as `B=128 D=8192 F=8192`.

    Raises:
        RooflinesError: A part is no size, or a letter is there twice.
    """
    words = Words()
    for part in text.replace(",", " ").split():
        match = SIZE.fullmatch(part)
        if match is None:
            raise RooflinesError("sizes", f"have {quote(part)}, which is no size", "write B=128")
        words.take_size(*match.groups())
    return words.sizes


def values_of(size: object, letter: str) -> list[int]:
    """The sizes of one letter: a number, a list `64,128`, or a range `1..1024` or `64..256+64`.

    Args:
        size: A number or a text; `8k` is 8,192.
        letter: Its letter, for messages.

    Raises:
        RooflinesError: One is no whole number above zero, or there are too many.
    """
    if isinstance(size, list | tuple):
        return list(dict.fromkeys(value for each in size for value in values_of(each, letter)))
    if not isinstance(size, str):
        with placed(f"size {letter}"):
            return [whole(size)]
    values: dict[int, None] = {}
    with Mistakes() as mistakes:
        for part in size.split(","):
            with mistakes.at(f"size {letter}"):
                values |= dict.fromkeys(_range(part))
    if len(values) > MOST_SIZES:
        problem = f"has {len(values):,} values, more than the {MOST_SIZES} of a table"
        raise RooflinesError(f"size {letter}", problem, "ask for fewer, or run a config of them")
    return list(values)


def _range(text: str) -> Sequence[int]:
    match = RANGE.fullmatch(text)
    if match is None:
        return [_whole(text)]
    first, last = _whole(match[1]), _whole(match[2])
    if first > last:
        problem = f"is {quote(text)}, whose first is above its last"
        raise RooflinesError("", problem, f"write {match[2]}..{match[1]}")
    if match[3] is not None:
        return range(first, last + 1, _whole(match[3]))[: MOST_SIZES + 1]
    values = [first]
    while 2 * values[-1] <= last:
        values.append(2 * values[-1])
    return values if values[-1] == last else [*values, last]


def _whole(text: str) -> int:
    """A whole number; `8k` is 8,192.

    Raises:
        RooflinesError: It is none above zero.
    """
    match = SUFFIXED.fullmatch(text.strip())
    if match is None:
        return whole(text)
    size = Fraction(match[1]) * UNITS[match[2].lower()]
    if size.denominator > 1 or not 1 <= size <= LARGEST_SIZE:
        fix = f"write a whole number from 1 to {LARGEST_SIZE:,}; k is 1,024"
        raise RooflinesError("", f"is {quote(text)}, which is no whole number", fix)
    return int(size)
