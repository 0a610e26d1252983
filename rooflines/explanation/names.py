"""Names as people type them: any case, families, a part that only one name has."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.errors import RooflinesError, quote
from rooflines.basics.text import squeezed
from rooflines.catalogue.dtypes import dtype_entries
from rooflines.model.operation import NAMED
from rooflines.models.library import model_entries

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rooflines.catalogue.entries import Chip

SHORTEST = 3
"""Letters of the shortest part of a name that stands for it [1]."""

CALLED = {"gemm": "matmul", "mm": "matmul", "linear": "matmul"}
"""What other libraries call operations."""


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
        word: As typed.
        chips: Entries by id.
    """
    if word in chips:
        return Found(word)
    asked = squeezed(word)
    for name, chip in chips.items():
        if asked in map(squeezed, (name, *(chip.aliases or ()))):
            return Found(name)
    for name, chip in chips.items():
        if chip.base is None and squeezed(chip.usual or "") == asked:
            alike = [other for other in chips if other.startswith(f"{chip.usual}-")]
            others = [other for other in alike if chips[other].base is None and other != name]
            rest = f"; others: {', '.join(others)}" if others else ""
            return Found(name, f"{word} is taken as {name}, the usual one{rest}")
    return None


def chip_near(word: str, chips: Mapping[str, Chip]) -> Found | None:
    """The chip whose id alone has a word in it; variants if no other has it; None: no chip.

    Raises:
        RooflinesError: Several chips have it.
    """
    whole = [name for name, chip in chips.items() if chip.base is None]
    own = [name for name in chips if name not in whole and name.startswith(word.lower())]
    return _part_of("chip", word, whole) or _part_of("chip", word, own)


def model_near(word: str) -> Found | None:
    """The model of the catalogue whose id alone has a word in it; None: no model.

    Raises:
        RooflinesError: Several models have it.
    """
    return _part_of("model", word, model_entries())


def dtypes_named(word: str) -> str | None:
    """The dtype combination, or format, of a name in any case, bfloat16 and float16 too."""
    entries = dtype_entries()
    names = {squeezed(name): name for name in (*entries.combinations, *entries.formats)}
    return names.get(squeezed(word).replace("bfloat", "bf").replace("float", "fp"))


def operation_named(word: str) -> str | None:
    """The operation of a name in any case, also of a name in other libraries, or an einsum."""
    name = word.lower()
    return word if "->" in word else CALLED.get(name, name if name in NAMED else None)


def _part_of(kind: str, word: str, names: Iterable[str]) -> Found | None:
    """The only name that a word is a part of; None: none.

    Raises:
        RooflinesError: Several names have it.
    """
    asked, parts = squeezed(word), re.split(r"[\s_-]+", word.lower())
    if len(asked) < SHORTEST:
        return None
    alike = [name for name in names if asked in squeezed(name)] or [
        name for name in names if all(part in name.split("-") for part in parts)
    ]
    if len(alike) > 1:
        problem = f"is {quote(word)}, which {len(alike)} {kind}s have in their names"
        raise RooflinesError(kind, problem, f"type one of them: {', '.join(alike)}")
    return Found(alike[0], f"{word} is taken as {alike[0]}") if alike else None
