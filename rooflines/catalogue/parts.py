"""The parts of a chip that hold numbers: one list for everything that walks over a chip."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypedDict

from rooflines.catalogue.entries import Peak, Source, Sourced

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rooflines.catalogue.entries import Chip
    from rooflines.catalogue.forms import Entry

__all__ = [
    "NumberRecord",
    "Part",
    "numbers",
    "numbers_with_sources",
    "parts",
    "records",
    "source_in",
    "source_of",
]

COUNTS = ("links", "domain", "ring_multiple")
"""Numbers of a network that are listed beside its bandwidth, as a rule in the same document."""


class Part(NamedTuple):
    """A part of a chip.

    Attributes:
        tree: The key of the chip that it is under, such as `units`.
        names: Its names below that, such as matrix and bf16; its index in a list.
        entry: The part itself.
    """

    tree: str
    names: tuple[str, ...]
    entry: Entry

    @property
    def path(self) -> str:
        """Its dotted path, such as `units.matrix.bf16`."""
        return ".".join((self.tree, *self.names))


class NumberRecord(TypedDict):
    """A number of a chip, with what the catalogue states about it.

    Attributes:
        path: Its dotted path, such as `memory.hbm.bytes_per_s`.
        value: The number, in the SI unit of the path's last word.
        source: The names of its sources; None if none is stated.
        confidence: How the number was read; None if not stated.
        estimate: Whether it is an estimate.
        halved: Whether it is half of `printed_with_sparsity`.
        printed_with_sparsity: The with-sparsity figure that is printed [FLOP/s].
        clock: Of a peak: `boost` if it is for the printed boost clock.
        note: What else to know.
    """

    path: str
    value: float
    source: str | None
    confidence: str | None
    estimate: bool
    halved: bool
    printed_with_sparsity: float | None
    clock: str | None
    note: str | None


def parts(chip: Chip) -> Iterator[Part]:
    """The parts of a chip that hold numbers, in the order of the catalogue."""
    for unit, peaks in chip.units.items():
        for dtype, peak in peaks.items():
            yield Part("units", (unit, dtype), peak)
    named: dict[str, Mapping[str, Entry]] = {"memory": chip.memory, "networks": chip.networks}
    for tree, entries in named.items():
        for name, entry in entries.items():
            yield Part(tree, (name,), entry)
    if chip.power is not None:
        yield Part("power", (), chip.power)
    for index, price in enumerate(chip.prices or ()):
        yield Part("prices", (str(index),), price)
    for index, measured in enumerate(chip.measured or ()):
        yield Part("measured", (str(index),), measured)
    if chip.efficiency is not None:
        yield Part("efficiency", (), chip.efficiency)
    for dtype, calibration in (chip.calibration or {}).items():
        yield Part("calibration", (dtype,), calibration)


def numbers(entry: Entry) -> dict[str, float]:
    """The numbers of a part by key, without those at their default [unit of the key]."""
    values = {
        key: getattr(entry, key)
        for key, field in type(entry).model_fields.items()
        if getattr(entry, key) != field.default
    }
    return {
        key: value
        for key, value in values.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def source_of(chip: Chip, entry: Entry, key: str) -> list[str]:
    """The sources of one number of a part: its own, else the chip's; empty if neither is stated."""
    own = source_in(entry.source, key) if isinstance(entry, Sourced) else None
    source = own or source_in(chip.source, key)
    return [source] if isinstance(source, str) else source or []


def source_in(source: Source | None, key: str) -> str | list[str] | None:
    """What a source says of one number; counts without one have that of the bandwidth."""
    if not isinstance(source, dict):
        return source
    return source.get(key) or (source.get("bytes_per_s") if key in COUNTS else None)


def numbers_with_sources(chip: Chip) -> Iterator[NumberRecord]:
    """The numbers of a chip that have a source, one by one."""
    for part in parts(chip):
        if isinstance(part.entry, Sourced) and part.tree != "measured":
            yield from records(chip, part)


def records(chip: Chip, part: Part) -> Iterator[NumberRecord]:
    """The numbers of a part of a chip one by one."""
    entry = part.entry
    sourced = entry if isinstance(entry, Sourced) else None
    peak = entry if isinstance(entry, Peak) else None
    for key, value in numbers(entry).items():
        if key != "printed_with_sparsity":
            yield {
                "path": f"{part.path}.{key}",
                "value": float(value),
                "source": ", ".join(source_of(chip, entry, key)) or None,
                "confidence": sourced.confidence if sourced else None,
                "estimate": sourced is not None and sourced.estimate,
                "halved": peak is not None and peak.halved,
                "printed_with_sparsity": peak.printed_with_sparsity if peak else None,
                "clock": chip.clock if peak else None,
                "note": sourced.note if sourced else None,
            }
