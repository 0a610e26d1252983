"""The catalogues: what chips can do, and what dtypes there are; read from YAML, variants resolved, checked entry by entry."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from rooflines.entries import Chip, Entry, Format, Name, NamedCombination, checked_name, is_source, readable
from rooflines.errors import Mistakes, Partial, RooflinesError, circle, close_to, placed, quote
from rooflines.numbers import number
from rooflines.operation import OPERANDS
from rooflines.yaml_file import in_file, read_yaml

if TYPE_CHECKING:
    from rooflines.resources import Plain

__all__ = [
    "CHIPS_FILE",
    "CONFIG_DIR",
    "DTYPES_FILE",
    "base_chips",
    "chip_entries",
    "chip_sources",
    "dtype_entries",
    "resolve_chips",
    "source_of",
]


def _config_dir() -> Path:
    """Where the catalogues are: in the package where it is installed, beside it in the repository."""
    inside = Path(__file__).parent / "config"
    return inside if inside.is_dir() else Path(__file__).parent.parent / "config"


CONFIG_DIR = _config_dir()
CHIPS_FILE = CONFIG_DIR / "chips.yaml"
DTYPES_FILE = CONFIG_DIR / "dtypes.yaml"

TREES = ("units", "memory", "networks", "power", "efficiency", "calibration")
"""What of a chip a variant can override by a dotted path."""

NUMBERS = ("flops_per_s", "bytes_per_s", "capacity_bytes", "links", "domain", "ring_multiple", "hop_latency_s", "watts")
"""The numbers that an entry may hold."""

ABOUT = ("base", "name", "status", "note", "source", "confidence", "estimate", "plausible")
"""What a variant says about itself in one piece."""


class DtypeFile(Entry):
    """The dtype catalogue."""

    formats: dict[Name, Format]
    combinations: dict[Name, NamedCombination]


@cache
def dtype_entries() -> Plain:
    """The dtype catalogue as plain data: `formats` and `combinations`.

    Raises:
        RooflinesError: The file is wrong.
    """
    with in_file(DTYPES_FILE):
        try:
            dtypes = DtypeFile.model_validate(read_yaml(DTYPES_FILE)).model_dump(exclude_none=True)
        except ValidationError as error:
            raise readable(error) from None
        _check_dtype_entries(dtypes)
    return dtypes


def _check_dtype_entries(dtypes: Plain) -> None:
    with Mistakes() as mistakes:
        for name, form in dtypes["formats"].items():
            with mistakes.at(f"formats.{name}"):
                if ("block" in form) != ("scale_bits" in form):
                    raise RooflinesError("", "has one of scale_bits and block without the other", "give both or neither")
        for name, combination in dtypes["combinations"].items():
            for key in (*OPERANDS, "compute"):
                with mistakes.at(f"combinations.{name}.{key}"):
                    if combination[key] not in dtypes["formats"]:
                        problem = f"is {quote(combination[key])}, which is no format in this file"
                        close = close_to(combination[key], dtypes["formats"])
                        raise RooflinesError("", problem, "use one of its formats, or add the format", close=close)


@cache
def _chip_file() -> Mapping[str, Any]:
    content = read_yaml(CHIPS_FILE)
    if not isinstance(content, Mapping) or not {"sources", "chips"} <= set(content):
        raise RooflinesError("", "lacks `sources:` or `chips:`", "give it both", file=str(CHIPS_FILE))
    return content


def chip_sources() -> Plain:
    """The documents that the chip catalogue refers to, by id."""
    return dict(_chip_file()["sources"])


@cache
def chip_entries() -> Plain:
    """The chip catalogue as plain data, variants resolved.

    Raises:
        RooflinesError: The file is wrong.
    """
    given = _chip_file()["chips"]
    with in_file(CHIPS_FILE, "chips"), Mistakes() as mistakes:
        return resolve_chips(given, {}, mistakes)


def base_chips() -> list[str]:
    """The chips of the catalogue that are no variants of another."""
    return [chip for chip, entry in chip_entries().items() if "base" not in entry]


def resolve_chips(given: Mapping[str, Any], known: Plain, mistakes: Mistakes) -> Partial:
    """Chip entries with their variants spelt out.

    Args:
        given: Entries by id: whole chips, or variants with a `base` and dotted paths to what they override.
        known: Resolved entries that a `base` may also name.
        mistakes: Collects what is wrong with entries; key paths start at the chip's id.

    Returns:
        The entries of `given` that are right, as plain data.

    Raises:
        RooflinesError: It is no mapping.
    """
    if not isinstance(given, Mapping):
        raise RooflinesError("", f"is {quote(given)}, which is no mapping", "write chips by id")
    done: dict[str, Any] = {}
    for chip in given:
        with mistakes.at():
            _resolve(chip, given, known, done, ())
    return Partial({chip: done[chip] for chip in given if chip in done}, set(given) - set(done))


def _resolve(chip: str, given: Mapping[str, Any], known: Plain, done: dict[str, Any], trail: tuple[str, ...]) -> Plain:
    if chip in done:
        known_entry: Plain = done[chip]
        return known_entry
    if chip in trail:
        names = circle(trail[trail.index(chip) :], given)
        raise RooflinesError(f"{names[0]}.base", f"goes in a circle: {' -> '.join(names)}", "let one of them stand on its own")
    entry = given[chip]
    over = None
    if isinstance(entry, Mapping) and "base" in entry:
        base = entry["base"]
        if not isinstance(base, str) or (base not in given and base not in known):
            close = close_to(base, [*given, *known])
            fix = "name a chip of the catalogue or of `chips:`"
            raise RooflinesError(f"{chip}.base", f"is {quote(base)}, which is no chip", fix, close=close)
        over = known[base] if base not in given else _resolve(base, given, known, done, (*trail, chip))
    with placed(str(chip)), Mistakes() as mistakes:
        with mistakes.at():
            checked_name(chip)
        spelt_out = entry if over is None else _override(over, entry, mistakes)
        _check_dtypes(spelt_out, mistakes)
        try:
            checked = Chip.model_validate(spelt_out)
        except ValidationError as error:
            raise readable(error) from None
    plain: dict[str, Any] = checked.model_dump(exclude_none=True, exclude_defaults=True)
    plain.setdefault("networks", {})
    done[chip] = plain
    return plain


def _check_dtypes(chip: object, mistakes: Mistakes) -> None:
    """Refuse names that are no dtypes, whatever else is wrong with the chip."""
    formats = dtype_entries()["formats"]
    entry = _mapping(chip)
    tables = {**{f"units.{unit}": peaks for unit, peaks in _mapping(entry.get("units")).items()}, "calibration": entry.get("calibration")}
    for place, table in tables.items():
        for dtype in _mapping(table):
            with mistakes.at():
                if dtype not in formats:
                    fix = f"use one of {', '.join(formats)}"
                    raise RooflinesError(f"{place}.{dtype}", "is no dtype of the catalogue", fix, close=close_to(dtype, formats))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _override(base: Plain, variant: Mapping[str, Any], mistakes: Mistakes) -> dict[str, Any]:
    """A variant's entry spelt out: the base with the numbers replaced that its dotted paths name."""
    entry = copy.deepcopy(dict(base))
    for key in ("aliases", "note", "source", "confidence", "estimate", "measured"):
        entry.pop(key, None)
    sourced = variant if is_source(variant.get("source")) else {**variant, "source": None}
    for key, value in variant.items():
        if key in ABOUT or key in ("efficiency", "calibration"):
            entry[key] = value
        else:
            with mistakes.at():
                _replace(entry, str(key), value, sourced)
    return entry


def _replace(entry: dict[str, Any], path: str, value: object, variant: Mapping[str, Any]) -> None:
    """Put a number in the place that a dotted path names."""
    *steps, last = path.split(".")
    fix = "name a number the base has by a dotted path, such as memory.hbm.bytes_per_s"
    place: Any = entry
    fresh = (steps[:1] == ["units"] and last == "flops_per_s") or path.startswith(("calibration.", "efficiency."))
    for index, step in enumerate(steps):
        known = list(place) if index else list(TREES)
        if step not in place and (fresh and (index == len(steps) - 1 or (not index and step in TREES))):
            place[step] = {}
        if step not in place or not isinstance(place[step], dict):
            raise RooflinesError(path, f"names no number of {variant['base']}", fix, close=close_to(step, known))
        place = place[step]
    if not fresh and (not steps or not isinstance(place.get(last), int | float) or isinstance(place.get(last), bool)):
        numbers = [key for key, known_value in place.items() if isinstance(known_value, int | float)] if steps else TREES
        raise RooflinesError(path, f"names no number of {variant['base']}", fix, close=close_to(last, numbers))
    with placed(path):
        place[last] = number(value)
    if steps[0] in ("calibration", "efficiency"):
        return
    for about_sparsity in ("printed_with_sparsity", "halved"):
        place.pop(about_sparsity, None)
    sources = {key: source_of(place, key) for key in place if key != last and key in NUMBERS}
    place["source"] = {**{key: source for key, source in sources.items() if source}, last: variant.get("source") or "the config"}


def source_of(entry: Plain, key: str) -> str | list[str] | None:
    """Where one number of an entry comes from."""
    source = entry.get("source")
    found: str | list[str] | None = source.get(key) if isinstance(source, Mapping) else source
    return found
