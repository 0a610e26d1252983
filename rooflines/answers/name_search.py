"""Names as people type them: any case, families, a part that only one name has."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.errors import RooflinesError, quote
from rooflines.basics.text import normalize_name
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.models.library import model_entries
from rooflines.theory.operation import NAMED_OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.hardware.entries import Chip

SHORTEST = 3
"""Letters of the shortest part of a name that stands for it [1]."""

CALLED = {"gemm": "matmul", "mm": "matmul", "linear": "matmul"}
"""What other libraries call operations."""

DTYPES_CALLED = {
    "half": "fp16",
    **dict.fromkeys(("e4m3", "e5m2", "fp8e4m3", "fp8e4m3fn", "fp8e4m3fnuz", "fp8e5m2"), "fp8"),
}
"""What other libraries call dtypes, without signs between and with fp for float."""


class Found(NamedTuple):
    """A name that a word stands for.

    Attributes:
        name: The name.
        note: What was taken for what, where the word is not the name itself in another case.
    """

    name: str
    note: str = ""


def chip_named(word: str, chips: Mapping[str, Chip]) -> Found | None:
    """The chip of an id, of another name, or of a family for its usual chip; None: no chip.

    Args:
        word: As typed, perhaps with its maker in front.
        chips: Entries by id.
    """
    if word in chips:
        return Found(word)
    for name, chip in chips.items():
        if normalize_name(word) in map(normalize_name, (name, *(chip.aliases or ()))):
            return Found(name)
    for name, chip in chips.items():
        if (
            chip.base is None
            and chip.usual
            and normalize_name(chip.usual) == _without_maker(word, chip)
        ):
            alike = [other for other in chips if other.startswith(f"{chip.usual}-")]
            others = [other for other in alike if chips[other].base is None and other != name]
            rest = f"; others: {', '.join(others)}" if others else ""
            return Found(name, f"{word} is taken as {name}, the usual one{rest}")
    for name, chip in chips.items():
        asked = _without_maker(word, chip)
        if any(asked == _without_maker(each, chip) for each in (name, *(chip.aliases or ()))):
            return Found(name)
    return None


def chip_near(word: str, chips: Mapping[str, Chip]) -> Found | None:
    """The chip whose id alone has a word in it, else a variant, else a full name; None: no chip.

    Raises:
        RooflinesError: Several chips have it.
    """
    whole = {name: name for name, chip in chips.items() if chip.base is None}
    own = {name: name for name in chips if name not in whole and name.startswith(word.lower())}
    full = {name: chips[name].name or "" for name in whole}
    return next(filter(None, (_part_of("chip", word, each) for each in (whole, own, full))), None)


def _without_maker(word: str, chip: Chip) -> str:
    """A name as names are compared, without the maker of a chip in front."""
    return normalize_name(word).removeprefix(normalize_name(chip.vendor or ""))


def model_near(word: str) -> Found | None:
    """The model of the catalogue whose id alone has a word in it; None: no model.

    Raises:
        RooflinesError: Several models have it.
    """
    return _part_of("model", word, {name: name for name in model_entries()})


def dtypes_named(word: str) -> str | None:
    """The dtype combination, or format, of a name in any case, also of a name in libraries."""
    entries = dtype_entries()
    names = {normalize_name(name): name for name in (*entries.combinations, *entries.formats)}
    asked = normalize_name(word).replace("bfloat", "bf").replace("float", "fp")
    return names.get(DTYPES_CALLED.get(asked, asked))


def operation_named(word: str) -> str | None:
    """The operation of a name in any case, also of a name in other libraries, or an einsum."""
    name = word.lower()
    return word if "->" in word else CALLED.get(name, name if name in NAMED_OPERATIONS else None)


def _part_of(kind: str, word: str, texts: Mapping[str, str]) -> Found | None:
    """The only name whose text has a word in it; None: none.

    Raises:
        RooflinesError: Several names have it.
    """
    asked, parts = normalize_name(word), re.split(r"[\s_-]+", word.lower())
    if len(asked) < SHORTEST:
        return None
    alike = [name for name, text in texts.items() if asked in normalize_name(text)] or [
        name for name, text in texts.items() if all(part in text.split("-") for part in parts)
    ]
    if len(alike) > 1:
        problem = f"is {quote(word)}, which matches {len(alike)} {kind}s"
        raise RooflinesError(kind, problem, f"type one of them: {', '.join(alike)}")
    return Found(alike[0], f"{word} is taken as {alike[0]}") if alike else None
