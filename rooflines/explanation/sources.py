"""The numbers of a chip that an explanation depends on, and the documents that they name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflines.catalogue.chips import chip_sources
from rooflines.catalogue.parts import parts, records

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rooflines.catalogue.entries import Chip
    from rooflines.catalogue.parts import NumberRecord


def used_numbers(chip: Chip, paths: Iterable[str]) -> list[NumberRecord]:
    """The numbers of parts of a chip, in the order of the catalogue.

    Args:
        chip: The chip.
        paths: The parts, such as `memory.hbm`; those that the chip lacks are left out.

    Returns:
        Records as of `catalogue.parts.records`.
    """
    used = set(paths)
    return [number for part in parts(chip) if part.path in used for number in records(chip, part)]


def documents_of(numbers: Iterable[NumberRecord]) -> dict[str, dict[str, str]]:
    """Title and address of the documents that numbers name."""
    catalogue = chip_sources()
    named = {name for number in numbers for name in (number["source"] or "").split(", ")}
    return {
        name: {key: str(catalogue[name][key]) for key in ("title", "url") if key in catalogue[name]}
        for name in sorted(named & set(catalogue))
    }
