"""The chip catalogue: read from YAML, variants resolved, checked entry by entry."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import (
    Mistakes,
    RooflinesError,
    at_path,
    check_choice,
    close_to,
    cycle,
    quote,
)
from rooflines.basics.files import CONFIG_DIR
from rooflines.basics.numbers import number
from rooflines.basics.yaml_file import in_file, read_yaml
from rooflines.hardware import dtype_catalogue
from rooflines.hardware.chip_parts import NUMBER_KEYS, SPARSE_PEAK, source_in
from rooflines.hardware.entries import ENTRY_TYPES, Chip, Price
from rooflines.hardware.entry_cache import cached_entries
from rooflines.hardware.entry_forms import check_name, is_source, parse_text, validate_entry

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rooflines.basics.yaml_file import JSON


CHIPS_FILE = CONFIG_DIR / "chips.yaml"

DTYPE_PARTS = ("units", "calibration")
"""Parts listed by dtype: the names are checked, so a variant may add dtypes that its base lacks."""

NOT_INHERITED = (
    "short",
    "aliases",
    "usual",
    "note",
    "source",
    "confidence",
    "estimate",
    "measured",
)
"""Keys that a variant does not inherit."""

DEPENDENT_KEYS = {
    "flops_per_s": (SPARSE_PEAK, "halved"),
    "capacity_bytes": ("label", "driver_reserved_bytes"),
}
"""Keys that describe a number, by number: a variant that replaces the number drops them."""

FIXED_PARTS = ("units", "memory", "networks")
"""Parts that a variant cannot replace as a whole: most numbers would be lost."""

SET_SUFFIX = "-set"
"""Suffix in the id for a chip with numbers typed with `--set`."""


@cache
def _catalogue() -> JSON:
    """The catalogue: `chips`, as entries with variants resolved, and `sources`."""
    files = CHIPS_FILE, dtype_catalogue.DTYPES_FILE
    return cached_entries("chips", files, _read_catalogue, ENTRY_TYPES)


def _read_catalogue() -> JSON:
    content = _checked_file()
    with in_file(CHIPS_FILE, "chips"):
        chips = resolve_chips(content["chips"], {})
    return {"sources": content["sources"], "chips": chips}


def _checked_file() -> JSON:
    """File content, with checked documents."""
    content = _mapping(read_yaml(CHIPS_FILE))
    for key in ("sources", "chips"):
        if not isinstance(content.get(key), Mapping):
            problem, fix = f"lacks a mapping `{key}:`", "give it one, by id"
            raise RooflinesError("", problem, fix, file=str(CHIPS_FILE))
    with in_file(CHIPS_FILE, "sources"), Mistakes() as mistakes:
        for name, document in content["sources"].items():
            with mistakes.at(str(name)):
                if not isinstance(document, Mapping):
                    problem = f"is {quote(document)}, which is no document"
                    raise RooflinesError("", problem, "write its title, date, kind and url")
                for text in (name, *document, *document.values()):
                    parse_text(text)
    return content


def chip_sources() -> JSON:
    """Documents that the chip catalogue cites, by id."""
    return dict(_catalogue()["sources"])


def chip_entries() -> dict[str, Chip]:
    """The chip catalogue by id, variants resolved.

    Raises:
        RooflinesError: The file is wrong.
    """
    chips: dict[str, Chip] = _catalogue()["chips"]
    return chips


def base_chips() -> list[str]:
    """Chips in the catalogue that are no variants."""
    return [chip for chip, entry in chip_entries().items() if entry.base is None]


def resolve_chips(entries: Mapping[str, Any], catalogue: Mapping[str, Chip]) -> dict[str, Chip]:
    """Resolve chip entries, variants spelt out.

    Args:
        entries: Entries by id: whole chips, or variants with a `base` and dotted paths to the
            numbers they override.
        catalogue: Resolved entries that a `base` may also name.

    Raises:
        RooflinesError: Entries are wrong; key paths start at the chip's id.
    """
    if not isinstance(entries, Mapping):
        raise RooflinesError(
            "", f"is {quote(entries)}, which is no mapping", "write chips by id", value=entries
        )
    resolved: dict[str, Chip] = {}
    with Mistakes() as mistakes:
        for chip in entries:
            with mistakes.at():
                _resolve(chip, entries, catalogue, resolved, ())
    return {chip: resolved[chip] for chip in entries}


def add_price(chip: Chip, usd_per_hour: object, source: str) -> Chip:
    """Replace a chip's prices by the user's price.

    Args:
        chip: The chip.
        usd_per_hour: Price per chip [USD/h].
        source: The place where the price was written.
    """
    form = {"provider": "your price", "date": "as written", "source": source}
    price = validate_entry(Price, {**form, "usd_per_hour": usd_per_hour})
    return chip.model_copy(update={"prices": [price]})


def _resolve(
    chip: str,
    entries: Mapping[str, Any],
    catalogue: Mapping[str, Chip],
    resolved: dict[str, Chip],
    trail: tuple[str, ...],
) -> Chip:
    if chip in resolved:
        return resolved[chip]
    if chip in trail:
        names = cycle(trail[trail.index(chip) :], entries)
        problem = f"goes in a circle: {' -> '.join(names)}"
        raise RooflinesError((names[0], "base"), problem, "write one of them without `base`")
    entry = entries[chip]
    base_chip = None
    if isinstance(entry, Mapping) and "base" in entry:
        base = entry["base"]
        fix = "name a chip of the catalogue or of `chips:`"
        with at_path(chip, "base"):
            check_choice(base, {**entries, **catalogue}, "no chip", fix)
        base_chip = (
            catalogue[base]
            if base not in entries
            else _resolve(base, entries, catalogue, resolved, (*trail, chip))
        )
    with at_path(str(chip)), Mistakes() as mistakes:
        with mistakes.at():
            check_name(chip)
        spelt_out = entry if base_chip is None else _full_entry(base_chip, entry, mistakes)
        chip_entry = validate_entry(Chip, spelt_out)
    resolved[chip] = chip_entry
    return chip_entry


def _mapping(value: object) -> JSON:
    return value if isinstance(value, Mapping) else {}


def _full_entry(base: Chip, variant: Mapping[str, Any], mistakes: Mistakes) -> dict[str, Any]:
    """Full entry of a variant: its base, with numbers replaced at the variant's dotted paths."""
    entry = copy.deepcopy(base.plain)
    for key in NOT_INHERITED:
        entry.pop(key, None)
    with_source = variant if is_source(variant.get("source")) else {**variant, "source": None}
    for key, value in variant.items():
        if key in Chip.model_fields and key not in FIXED_PARTS:
            entry[key] = value
        else:
            with mistakes.at():
                _set_number(entry, str(key), value, with_source)
    return entry


def _set_number(
    entry: dict[str, Any], path: str, value: object, variant: Mapping[str, Any]
) -> None:
    """Set a number, or a part that the base lacks, at a dotted path."""
    *steps, last = path.split(".")
    part, tree = entry, path.partition(".")[0]
    for index, step in enumerate(steps):
        may_lack = tree in Chip.model_fields if index == 0 else tree in DTYPE_PARTS
        if step not in part and not may_lack:
            raise _number_error(path, step, part, variant)
        part = part.setdefault(step, {})
        if not isinstance(part, dict):
            raise _number_error(path, step, NUMBER_KEYS, variant)
    source = variant.get("source") or "the config"
    if steps and isinstance(value, Mapping) and last not in part:
        part[last] = {"source": source, **value} if tree in FIXED_PARTS else {**value}
        return
    if not steps or last not in {*NUMBER_KEYS, SPARSE_PEAK}:
        raise _number_error(path, last, NUMBER_KEYS if len(steps) > 1 else part, variant)
    with at_path(path):
        part[last] = value if last == "domain" else number(value)
    for dependent in DEPENDENT_KEYS.get(last, ()):
        if ".".join([*steps, dependent]) not in variant:
            part.pop(dependent, None)
    _drop_marks(part, last)
    if last == "hop_latency_s" and part.get("typical_hop_latency_s", part[last]) < part[last]:
        del part["typical_hop_latency_s"]  # the base's
    if tree in (*FIXED_PARTS, "power"):
        other_numbers = [key for key in part if key in {*NUMBER_KEYS, SPARSE_PEAK} - {last}]
        sources = {key: source_in(part.get("source"), key) for key in other_numbers}
        part["source"] = {**{key: text for key, text in sources.items() if text}, last: source}


def _drop_marks(part: dict[str, Any], key: str) -> None:
    """Drop confidence and estimate marks of a number that was replaced."""
    confidence, estimate = part.get("confidence"), part.get("estimate")
    if isinstance(confidence, dict):
        confidence.pop(key, None)
    if isinstance(estimate, list) and key in estimate:
        estimate.remove(key)


def _number_error(
    path: str, step: str, keys: Iterable[str], variant: Mapping[str, Any]
) -> RooflinesError:
    fix = (
        "name a number by its dotted path, such as memory.hbm.bytes_per_s; write a new level "
        "or network whole, memory.l3: {bytes_per_s: }"
    )
    close = [name for name in close_to(step, keys) if name != step]
    return RooflinesError(
        path, f"names no number that a variant of {variant['base']} can have", fix, close=close
    )
