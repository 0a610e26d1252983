"""Plausibility of the numbers in a config's chips.

Common slips are a figure with sparsity, GiB for GB, a wrong prefix, all links for one. A variant is
compared with its base, another chip with the catalogue. The number may be intended, so it brings a
warning; a variant's number far from its base's is refused unless it is listed as intended.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

from rooflines.basics.errors import Mistakes, RooflinesError, at_path, check_choices
from rooflines.hardware.chip_parts import number_records
from rooflines.hardware.entries import MAIN_MEMORY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.basics.yaml_file import JSON
    from rooflines.hardware.chip_parts import NumberRecord
    from rooflines.hardware.entries import Chip
    from rooflines.theory.operation import Unit

TOLERANCE = 1e-3
"""Relative tolerance: vendors print 1.979e15 with sparsity beside 9.89e14 without [1]."""

DOUBLED_RATES = {
    "units": "a figure with sparsity",
    "memory": "reads and writes together",
    "networks": "both directions together",
}
"""Likely cause of a doubled rate, by part of a chip."""

BINARY = {2**30 / 1e9: "GiB taken for GB", 2**40 / 1e12: "TiB taken for TB"}
PREFIXES = {
    factor: "a figure with another prefix"
    for size in (1e3, 1e6, 1e9, 1e12)
    for factor in (size, 1 / size)
}

PLAUSIBLE_RANGES = {
    ("units", "flops_per_s"): (1e9, 1e18),
    ("memory", "bytes_per_s"): (1e9, 1e17),
    ("memory", "capacity_bytes"): (1e5, 1e15),
    ("networks", "bytes_per_s"): (1e7, 1e14),
    ("networks", "hop_latency_s"): (0.0, 1e-3),
    ("networks", "typical_hop_latency_s"): (0.0, 1e-3),
    ("power", "watts"): (1.0, 1e5),
    ("special", "exp_per_s"): (1e9, 1e15),
}
"""Range by checked number, in SI units; the catalogue is well within."""


MAX_BASE_RATIO = 100.0
"""Ratio to the base's number, or its inverse, from which a wrong unit is assumed [1]."""

PREFIX_LETTERS = {
    1e3: "k",
    1e6: "M",
    1e9: "G",
    1e12: "T",
    1e-3: "m",
    1e-6: "u",
    1e-9: "n",
    1e-12: "p",
}
"""Decimal prefixes by factor."""


def plausibility_warnings(
    written: JSON, entry: Chip, catalogue: Mapping[str, Chip]
) -> list[RooflinesError]:
    """Warnings about likely slips in one of the config's chips.

    Args:
        written: The chip as the config has it.
        entry: The chip, its base spelt out.
        catalogue: All chips by id.

    Returns:
        A message for each number, its key path relative to the chip.

    Raises:
        RooflinesError: `plausible` names no checked number of the chip, or a variant's number is
            far from its base's.
    """
    numbers = _checked_numbers(entry)
    plausible = written.get("plausible") or []
    fix = "name a number of the chip by its dotted path, such as memory.hbm.bytes_per_s"
    with at_path("plausible"):
        check_choices(plausible, numbers, "no number of this chip that is checked", fix)
    base = written.get("base")
    base_numbers = _checked_numbers(catalogue[base]) if base else {}
    warnings, mistakes = [], Mistakes()
    for path, number in numbers.items():
        if path in plausible or (
            base and not any(f"{path}.".startswith(f"{key}.") for key in written)
        ):
            continue
        base_number = base_numbers.get(path)
        if range_error := _range_error(number, base, base_number):
            if base:
                mistakes.add(range_error)
            else:
                warnings.append(range_error)
            continue
        cause = (
            _variant_slip(number, base, catalogue[base], base_number)
            if base and base_number
            else _catalogue_slip(number, entry, catalogue)
        )
        if cause:
            fix = "correct it"
            warnings.append(_doubt(path, f"is {number['value']:g}, {cause}", fix))
    mistakes.check()
    return warnings


def _checked_numbers(entry: Chip) -> dict[str, NumberRecord]:
    """Checked numbers of a chip by dotted path, zeros left out."""
    return {
        number["path"]: number
        for number in number_records(entry, shares=False)
        if number["value"] and _kind(number["path"]) in PLAUSIBLE_RANGES
    }


def _kind(path: str) -> tuple[str, str]:
    """Part and key of a number's path, such as `memory` and `bytes_per_s`."""
    tree, *_, key = path.split(".")
    return tree, key


def _range_error(
    number: NumberRecord, base: str | None, base_number: NumberRecord | None
) -> RooflinesError | None:
    """Error for a number out of range or far from the base's; None within."""
    path, value, base_value = (
        number["path"],
        number["value"],
        base_number["value"] if base_number else None,
    )
    minimum, maximum = PLAUSIBLE_RANGES[_kind(path)]
    ratio = value / base_value if base_value and minimum else 1.0
    if minimum <= value <= maximum and 1 / MAX_BASE_RATIO < ratio < MAX_BASE_RATIO:
        return None
    problem = f"is {value:g}, {'less' if value < minimum else 'more'} than any chip has"
    typical = base_value or math.sqrt(max(minimum, maximum * 1e-6) * maximum)
    if base_value:
        problem = f"is {value:g}, {value / base_value:.3g} times that of {base}"
    factor = min(PREFIX_LETTERS, key=lambda prefix: abs(math.log(value * prefix / typical)))
    unit = f"{PREFIX_LETTERS[factor]}{number['unit']}"
    return _doubt(path, problem, f"write {value * factor:g} if it is in {unit}")


def _doubt(path: str, problem: str, fix: str) -> RooflinesError:
    """Doubt about a number; in a config, `plausible` beside it silences the doubt."""
    meant = f"{fix}; if it is meant, write `plausible: [{path}]` beside it"
    return RooflinesError(tuple(path.split(".")), problem, meant, typed_fix=fix)


def _links(entry: Chip, path: str) -> int:
    """Links of the network that a number belongs to; 1 for other parts [1]."""
    tree, name, *_ = path.split(".")
    return entry.networks[name].links if tree == "networks" else 1


def _variant_slip(
    number: NumberRecord, name: str, base: Chip, base_number: NumberRecord
) -> str | None:
    """Slip that would explain the ratio of a variant's number to its base's; None without one."""
    path, value = number["path"], number["value"]
    tree, key = _kind(path)
    if math.isclose(value, base_number["printed_with_sparsity"] or 0, rel_tol=TOLERANCE):
        return f"the figure with sparsity that is printed for {name}"
    factors = dict(PREFIXES)
    if key in ("flops_per_s", "bytes_per_s"):
        factors |= {**BINARY, 2: DOUBLED_RATES[tree]}
    links = _links(base, path)
    if (tree, key) == ("networks", "bytes_per_s") and links > 1:
        factors |= {
            links: f"all {links} links together",
            2 * links: f"all {links} links in both directions",
        }
    for factor, cause in factors.items():
        if math.isclose(value, factor * base_number["value"], rel_tol=TOLERANCE):
            return f"{factor:.5g} times that of {name}, as {cause} would be"
    return None


def _catalogue_slip(number: NumberRecord, entry: Chip, catalogue: Mapping[str, Chip]) -> str | None:
    """Slip that would explain a number unlike the catalogue's; None without one."""
    path, value = number["path"], number["value"]
    kind = _kind(path)
    if kind == ("units", "flops_per_s"):
        if value == number["printed_with_sparsity"]:
            return "its own figure with sparsity"
        _, unit, dtype, _ = path.split(".")
        has_many_digits = value != float(f"{value:.2e}")  # three digits are shared by chance
        for chip, catalogue_chip in catalogue.items() if has_many_digits else ():
            peak = catalogue_chip.units.get(cast("Unit", unit), {}).get(dtype)
            if peak and value == peak.printed_with_sparsity:
                return f"the figure with sparsity that is printed for {chip}"
    main, links = entry.memory.get(MAIN_MEMORY), _links(entry, path)
    memory = (main.bytes_per_s if main else None) or math.inf
    slowest, _ = PLAUSIBLE_RANGES["memory", "bytes_per_s"]
    if kind == ("networks", "bytes_per_s") and slowest <= memory < value * links:
        return (
            f"which over {links} links is more than the main memory has, as a figure of all links "
            "or of both directions would be"
        )
    return None
