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

MIN_LETTERS = 3
"""Letters of the shortest part of a name that stands for it [1]."""

OPERATION_ALIASES = {"gemm": "matmul", "mm": "matmul", "linear": "matmul"}
"""Operations by their names in other libraries."""

DTYPE_ALIASES = {
    "half": "fp16",
    **dict.fromkeys(("e4m3", "e5m2", "fp8e4m3", "fp8e4m3fn", "fp8e4m3fnuz", "fp8e5m2"), "fp8"),
}
"""Dtypes by their names in other libraries, without separators and with fp for float."""


class Match(NamedTuple):
    """A name that a word stands for.

    Attributes:
        name: The name.
        note: What was taken for what, where the word is not the name itself in another case.
    """

    name: str
    note: str = ""


def find_chip(word: str, chips: Mapping[str, Chip]) -> Match | None:
    """Find a chip by id, alias, or family name for its usual chip; None: no chip.

    Args:
        word: As typed, perhaps with its maker in front.
        chips: Entries by id.
    """
    if word in chips:
        return Match(word)
    for name, chip in chips.items():
        if normalize_name(word) in map(normalize_name, (name, *(chip.aliases or ()))):
            return Match(name)
    for name, chip in chips.items():
        if (
            chip.base is None
            and chip.usual
            and normalize_name(chip.usual) == _without_maker(word, chip)
        ):
            family = [member for member in chips if member.startswith(f"{chip.usual}-")]
            siblings = [
                member for member in family if chips[member].base is None and member != name
            ]
            rest = f"; others: {', '.join(siblings)}" if siblings else ""
            return Match(name, f"{word} is taken as {name}, the usual one{rest}")
    for name, chip in chips.items():
        bare_word = _without_maker(word, chip)
        if any(bare_word == _without_maker(alias, chip) for alias in (name, *(chip.aliases or ()))):
            return Match(name)
    return None


def search_chip(word: str, chips: Mapping[str, Chip]) -> Match | None:
    """Search a word in chip ids, then variants, then full names; None: no chip.

    Raises:
        RooflinesError: Several chips have it.
    """
    whole = {name: name for name, chip in chips.items() if chip.base is None}
    variants = {name: name for name in chips if name not in whole and name.startswith(word.lower())}
    full = {name: chips[name].name or "" for name in whole}
    return next(
        filter(None, (_part_of("chip", word, texts) for texts in (whole, variants, full))), None
    )


def _without_maker(word: str, chip: Chip) -> str:
    """A name as names are compared, without the maker of a chip in front."""
    return normalize_name(word).removeprefix(normalize_name(chip.vendor or ""))


def search_model(word: str) -> Match | None:
    """Search a word in catalogue models' ids; None: no model.

    Raises:
        RooflinesError: Several models have it.
    """
    return _part_of("model", word, {name: name for name in model_entries()})


def find_dtypes(word: str) -> str | None:
    """Find a dtype combination or format by name in any case, or by a library's name."""
    entries = dtype_entries()
    names = {normalize_name(name): name for name in (*entries.combinations, *entries.formats)}
    spelling = normalize_name(word).replace("bfloat", "bf").replace("float", "fp")
    return names.get(DTYPE_ALIASES.get(spelling, spelling))


def find_operation(word: str) -> str | None:
    """Find an operation by name in any case, by a library's name, or as an einsum."""
    name = word.lower()
    return (
        word
        if "->" in word
        else OPERATION_ALIASES.get(name, name if name in NAMED_OPERATIONS else None)
    )


def _part_of(kind: str, word: str, texts: Mapping[str, str]) -> Match | None:
    """Only name whose text contains a word; None: no name.

    Raises:
        RooflinesError: Several names have it.
    """
    squeezed_word, parts = normalize_name(word), re.split(r"[\s_-]+", word.lower())
    if len(squeezed_word) < MIN_LETTERS:
        return None
    matches = [name for name, text in texts.items() if squeezed_word in normalize_name(text)] or [
        name for name, text in texts.items() if all(part in text.split("-") for part in parts)
    ]
    if len(matches) > 1:
        problem = f"is {quote(word)}, which matches {len(matches)} {kind}s"
        raise RooflinesError(kind, problem, f"type one of them: {', '.join(matches)}")
    return Match(matches[0], f"{word} is taken as {matches[0]}") if matches else None
