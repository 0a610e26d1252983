"""Likely slips in the numbers of the config's own chips.

Common slips are a figure with sparsity, GiB for GB, a wrong prefix, all links for one. A variant is
compared with its base, another chip with the catalogue. The number may be intended, so it brings a
warning; a variant's number that is far from its base's is refused unless it is listed as intended.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rooflines.basics.errors import Mistakes, RooflinesError, check_known, placed
from rooflines.catalogue.entries import MAIN_MEMORY, Network, Peak
from rooflines.catalogue.parts import numbers, parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflines.basics.yaml_file import JSON
    from rooflines.catalogue.entries import Chip

TOLERANCE = 1e-3
"""Vendors round: 1.979e15 with sparsity is printed where 9.89e14 is without [1]."""

TWICE = {
    "units": "a figure with sparsity",
    "memory": "reads and writes together",
    "networks": "both directions together",
}
"""What a doubled rate means, by part of a chip."""

BINARY = {2**30 / 1e9: "GiB taken for GB", 2**40 / 1e12: "TiB taken for TB"}
PREFIXES = {
    factor: "a figure with another prefix"
    for size in (1e3, 1e6, 1e9, 1e12)
    for factor in (size, 1 / size)
}

SPANS = {
    ("units", "flops_per_s"): (1e9, 1e18),
    ("memory", "bytes_per_s"): (1e9, 1e17),
    ("memory", "capacity_bytes"): (1e5, 1e15),
    ("networks", "bytes_per_s"): (1e7, 1e14),
    ("networks", "hop_latency_s"): (0.0, 1e-3),
    ("networks", "typical_hop_latency_s"): (0.0, 1e-3),
    ("power", "watts"): (1.0, 1e5),
}
"""The checked numbers, with a range for each, in SI units; the catalogue is well within."""


FAR = 100.0
"""Times its base's number, or that over it, from which a variant's has another unit [1]."""

LETTERS = {1e3: "k", 1e6: "M", 1e9: "G", 1e12: "T", 1e-3: "m", 1e-6: "u", 1e-9: "n", 1e-12: "p"}
"""Decimal prefixes by factor."""

UNITS = {
    "flops_per_s": "FLOP/s",
    "bytes_per_s": "B/s",
    "capacity_bytes": "B",
    "hop_latency_s": "s",
    "typical_hop_latency_s": "s",
    "watts": "W",
}
"""The units of the checked numbers."""


def doubts(written: JSON, entry: Chip, known: Mapping[str, Chip]) -> list[RooflinesError]:
    """Likely slips in one of the config's own chips.

    Args:
        written: The chip as the config has it.
        entry: The chip, its base spelt out.
        known: All chips by id.

    Returns:
        A message for each number, its key path relative to the chip.

    Raises:
        RooflinesError: `plausible` names what is no number of the chip, or a variant's number is
            far from its base's.
    """
    checked = dict(_numbers(entry))
    plausible = written.get("plausible") or []
    fix = "name a number of the chip by its dotted path, such as memory.hbm.bytes_per_s"
    with placed("plausible"):
        check_known(plausible, checked, "no number of this chip that is checked", fix)
    base = written.get("base")
    before = dict(_numbers(known[base])) if base else {}
    slips, mistakes = [], Mistakes()
    for path, value in checked.items():
        if path in plausible or (
            base and not any(f"{path}.".startswith(f"{key}.") for key in written)
        ):
            continue
        if base and (error := _beyond(path, value, base, before.get(path))):
            mistakes.add(error)
            continue
        cause = (
            _slip(path, value, base, known[base])
            if base and before.get(path)
            else _outlier(path, value, entry, known)
        )
        if cause:
            fix = f"correct it; if it is meant, write `plausible: [{path}]` beside it"
            slips.append(RooflinesError(path, f"is {value:g}, {cause}", fix))
    mistakes.check()
    return slips


def _beyond(path: str, value: float, base: str, before: float | None) -> RooflinesError | None:
    """The mistake if a variant's number is out of range, or far from that of its base."""
    tree, *_, key = path.split(".")
    least, most = SPANS[tree, key]
    ratio = value / before if before and least else 1.0
    if least <= value <= most and 1 / FAR < ratio < FAR:
        return None
    problem = f"is {value:g}, {'less' if value < least else 'more'} than any chip has"
    likely = before or math.sqrt(max(least, most * 1e-6) * most)
    if before:
        problem = f"is {value:g}, {value / before:.3g} times that of {base}"
    factor = min(LETTERS, key=lambda each: abs(math.log(value * each / likely)))
    unit = f"{LETTERS[factor]}{UNITS[key]}"
    fix = (
        f"write {value * factor:g} if it is in {unit}; if it is meant, write `plausible: [{path}]`"
    )
    return RooflinesError(path, problem, f"{fix} beside it")


def _numbers(entry: Chip) -> Iterator[tuple[str, float]]:
    """The numbers of a chip that are checked, by their dotted paths; none that are zero."""
    for part in parts(entry):
        for key, value in numbers(part.entry).items():
            if value and (part.tree, key) in SPANS:
                yield f"{part.path}.{key}", value


def _part(entry: Chip, path: str) -> object:
    """The part of a chip that a number belongs to; None where the chip has no such part."""
    part: object = entry
    for step in path.split(".")[:-1]:
        part = part.get(step) if isinstance(part, Mapping) else getattr(part, step, None)
    return part


def _with_sparsity(part: object) -> float | None:
    return part.printed_with_sparsity if isinstance(part, Peak) else None


def _links(part: object) -> int:
    return part.links if isinstance(part, Network) else 1


def _slip(path: str, value: float, base: str, entry: Chip) -> str | None:
    """The slip that would explain the ratio of a variant's number to its base's."""
    tree, *_, key = path.split(".")
    part = _part(entry, path)
    if math.isclose(value, _with_sparsity(part) or 0, rel_tol=TOLERANCE):
        return f"the figure with sparsity that is printed for {base}"
    factors = dict(PREFIXES)
    if key in ("flops_per_s", "bytes_per_s"):
        factors |= {**BINARY, 2: TWICE[tree]}
    links = _links(part)
    if tree == "networks" and key == "bytes_per_s" and links > 1:
        factors |= {
            links: f"all {links} links together",
            2 * links: f"all {links} links in both directions",
        }
    for factor, cause in factors.items():
        if math.isclose(value, factor * getattr(part, key), rel_tol=TOLERANCE):
            return f"{factor:.5g} times that of {base}, as {cause} would be"
    return None


def _outlier(path: str, value: float, entry: Chip, known: Mapping[str, Chip]) -> str | None:
    """The slip that would explain a number unlike those of the catalogue."""
    tree, *_, key = path.split(".")
    least, most = SPANS[tree, key]
    if not least <= value <= most:
        beyond = "less" if value < least else "more"
        return f"{beyond} than any chip has, as a figure with a prefix would be"
    part = _part(entry, path)
    if key == "flops_per_s":
        if value == _with_sparsity(part):
            return "its own figure with sparsity"
        rounded = value == float(
            f"{value:.2e}"
        )  # figures of up to three digits are shared by chance
        for chip, other in known.items():
            if not rounded and value == _with_sparsity(_part(other, path)):
                return f"the figure with sparsity that is printed for {chip}"
    main, links = entry.memory.get(MAIN_MEMORY), _links(part)
    memory = (main.bytes_per_s if main else None) or math.inf
    slowest, _ = SPANS["memory", "bytes_per_s"]
    if (tree, key) == ("networks", "bytes_per_s") and slowest <= memory < value * links:
        return (
            f"which over {links} links is more than the main memory has, as a figure of all links "
            "or of both directions would be"
        )
    return None
