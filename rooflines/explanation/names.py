"""Names as people type them: any case, families, a part that only one name has."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.errors import RooflinesError, quote
from rooflines.catalogue.chips import dtype_entries
from rooflines.models.library import model_entries

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rooflines.catalogue.entries import Chip

SHORTEST = 3
"""Letters of the shortest part of a name that stands for it [1]."""


class Found(NamedTuple):
    """A name that a word stands for.

    Attributes:
        name: The name.
        note: What was taken for what, where the word is not the name itself in another case.
    """

    name: str
    note: str = ""


def squeezed(text: str) -> str:
    """A name without case, spaces, underscores and hyphens."""
    return re.sub(r"[\s_-]+", "", text.lower())


def folded(text: str) -> str:
    """A name without case; spaces and underscores are hyphens."""
    return re.sub(r"[\s_]+", "-", text.strip().lower())


def chip_named(word: str, chips: Mapping[str, Chip]) -> Found | None:
    """The chip that a word stands for; None: no chip.

    An id or another name in any case, a family name for its usual chip, or a part of one id.

    Args:
        word: As typed.
        chips: Entries by id.

    Raises:
        RooflinesError: Several chips have the word in their ids, and none is the usual one.
    """
    asked = folded(word)
    ids = {folded(name): name for name in chips}
    ids |= {folded(alias): name for name, chip in chips.items() for alias in chip.aliases or ()}
    if asked in ids:
        return Found(ids[asked])
    whole = [name for name, chip in chips.items() if chip.base is None]
    for name in whole:
        if chips[name].usual == asked:
            others = [other for other in whole if other.startswith(f"{asked}-") and other != name]
            rest = f"; others: {', '.join(others)}" if others else ""
            return Found(name, f"{word} is taken as {name}, the usual one{rest}")
    own = [name for name, chip in chips.items() if chip.base and name.startswith(asked)]
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
    names = {folded(name): name for name in (*entries.combinations, *entries.formats)}
    return names.get(folded(word).replace("bfloat", "bf").replace("float", "fp"))


def _part_of(kind: str, word: str, names: Iterable[str]) -> Found | None:
    """The only name that a word is a part of; None: none.

    Raises:
        RooflinesError: Several names have it.
    """
    asked = folded(word)
    if len(asked) < SHORTEST:
        return None
    parts = asked.split("-")
    alike = [name for name in names if squeezed(word) in squeezed(name)] or [
        name for name in names if all(part in name.split("-") for part in parts)
    ]
    if len(alike) > 1:
        problem = f"is {quote(word)}, which {len(alike)} {kind}s have in their names"
        raise RooflinesError(kind, problem, f"type one of them: {', '.join(alike)}")
    return Found(alike[0], f"{word} is taken as {alike[0]}") if alike else None
