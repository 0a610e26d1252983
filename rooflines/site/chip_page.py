"""The page of the chips: every number of every chip with its source, as HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.catalogue.chips import source_of
from rooflines.site.text import escaped, link, quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rooflines.basics.yaml_file import JSON

__all__ = ["chip_sections", "source_list", "summary_rows"]

NUMBERS = {
    "flops_per_s": ("dense peak", "FLOP/s"),
    "bytes_per_s": ("bandwidth", "B/s"),
    "capacity_bytes": ("capacity", "B"),
    "links": ("links", ""),
    "domain": ("most chips joined", ""),
    "ring_multiple": ("closes into a ring at multiples of", ""),
    "hop_latency_s": ("latency of a hop", "s"),
    "watts": ("design power", "W"),
    "usd_per_hour": ("price", "USD/h"),
    "fraction_of_peak": ("share of peak that was reached", ""),
    "math": ("share of the peak that is reached", ""),
    "memory": ("share of the memory's bandwidth that is reached", ""),
    "network": ("share of the network's bandwidth that is reached", ""),
    "overhead_s": ("fixed time of an operation", "s"),
}
"""What an entry's numbers are, and their units."""

SURENESS = {
    "vendor": "vendor",
    "vendor-quoted": "vendor, quoted",
    "book": "book",
    "secondary": "secondary",
    "derived": "derived",
    "measured": "measured",
}

MAIN_MEMORY, MAIN_DTYPE = "hbm", "bf16"

PLAIN_DIGITS = (
    "links",
    "domain",
    "ring_multiple",
    "usd_per_hour",
    "fraction_of_peak",
    "math",
    "memory",
    "network",
    "watts",
)


def summary_rows(chips: Mapping[str, JSON]) -> str:
    """The chips side by side: a row of HTML for each."""
    return "\n".join(_summary_row(chip, entry) for chip, entry in chips.items())


def _summary_row(chip: str, entry: JSON) -> str:
    peak = entry["units"].get("matrix", {}).get(MAIN_DTYPE, {}).get("flops_per_s")
    memory = entry["memory"].get(MAIN_MEMORY, {})
    bandwidth, capacity = memory.get("bytes_per_s"), memory.get("capacity_bytes")
    ridge = peak / bandwidth if peak and bandwidth else None
    first = next(iter(entry.get("networks", {}).items()), None)
    network = first[1]["bytes_per_s"] * first[1].get("links", 1) if first else None
    cells = [
        _number_cell(peak, "FLOP/s"),
        _number_cell(bandwidth, "B/s"),
        _number_cell(capacity, "B"),
        _number_cell(ridge, "FLOP/B"),
        _number_cell(network, "B/s"),
    ]
    name = f'<th scope="row"><a href="#chip={escaped(chip)}">{escaped(entry.get("name") or chip)}</a><small>{escaped(chip)}</small></th>'
    about = f'<td>{escaped(entry.get("vendor"))}</td><td class="number" data-value="{entry.get("year", 0)}">{escaped(entry.get("year"))}</td>'
    return f'<tr data-find="{_find(chip, entry)}">{name}{about}{"".join(cells)}</tr>'


def _number_cell(value: float | None, unit: str) -> str:
    if value is None:
        return '<td class="number none" data-value="">–</td>'
    shown = f"{value:,.0f}" if unit == "FLOP/B" else quantity(value, unit)
    return f'<td class="number" data-value="{value!r}">{escaped(shown)}</td>'


def _find(chip: str, entry: JSON) -> str:
    """What the page's filter looks at."""
    return escaped(
        " ".join(
            [
                chip,
                str(entry.get("name") or ""),
                str(entry.get("vendor") or ""),
                *(entry.get("aliases") or []),
            ]
        ).lower()
    )


def chip_sections(chips: Mapping[str, JSON], sources: Mapping[str, JSON]) -> str:
    """Every number of every chip, with its source.

    Args:
        chips: Entries by id, variants resolved.
        sources: The documents that the entries name by their ids.

    Returns:
        A section of HTML for each chip. Of a variant whose base is among the chips, only the numbers that are its own.
    """
    return "\n".join(_section(chip, entry, chips, sources) for chip, entry in chips.items())


def _section(chip: str, entry: JSON, chips: Mapping[str, JSON], sources: Mapping[str, JSON]) -> str:
    base = chips.get(entry["base"]) if "base" in entry else None
    own = set(_numbers(entry)) - (set(_numbers(base)) if base else set())
    rows = [
        _row(place, key, holder, entry, sources)
        for place, holder in _places(entry)
        for key in _keys(holder)
        if _key(place, key, holder) in own
    ]
    about = " · ".join(
        str(value)
        for value in (entry.get("vendor"), entry.get("year"), entry.get("status"))
        if value
    )
    variant = ""
    if base is not None:
        variant = f'<p>A variant of <a href="#chip={escaped(entry["base"])}">{escaped(entry["base"])}</a>; here are the numbers that differ.</p>'
    elif "base" in entry:
        variant = f"<p>A variant of {escaped(entry['base'])}, spelt out.</p>"
    note = f'<p class="note">{escaped(entry["note"])}</p>' if entry.get("note") else ""
    table = (
        '<div class="scroll" tabindex="0" role="region" aria-label="Numbers of '
        + escaped(entry.get("name") or chip)
        + '"><table>'
        '<thead><tr><th scope="col">Number</th><th scope="col" class="number">Value</th><th scope="col">Source</th>'
        '<th scope="col">Read from</th><th scope="col">Note</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )
    return (
        f'<details class="chip" data-chip="{escaped(chip)}" data-find="{_find(chip, entry)}">'
        f"<summary><h3>{escaped(entry.get('name') or chip)}</h3><code>{escaped(chip)}</code><span>{escaped(about)}</span></summary>"
        f"{variant}{note}{table}</details>"
    )


def _places(entry: JSON) -> Iterator[tuple[str, JSON]]:
    """The parts of a chip that hold numbers, with their names."""
    for unit, peaks in entry["units"].items():
        for dtype, peak in peaks.items():
            yield f"{unit} unit, {dtype}", peak
    for name, level in entry["memory"].items():
        technology = f" ({level['technology']})" if "technology" in level else ""
        yield f"memory {name}{technology}", level
    for name, network in entry.get("networks", {}).items():
        yield f"network {name} ({network['topology']})", network
    if "power" in entry:
        yield "power", entry["power"]
    for price in entry.get("prices") or ():
        yield (
            ", ".join(str(price[key]) for key in ("provider", "sku", "date") if price.get(key)),
            price,
        )
    for measured in entry.get("measured") or ():
        yield measured["what"], measured
    if entry.get("efficiency"):
        yield "efficiency", entry["efficiency"]
    for dtype, calibration in (entry.get("calibration") or {}).items():
        yield f"calibration, {dtype}", calibration


def _keys(holder: JSON) -> list[str]:
    return [key for key in NUMBERS if isinstance(holder.get(key), int | float)]


def _key(place: str, key: str, holder: JSON) -> tuple[str, str, float]:
    return place, key, holder[key]


def _numbers(entry: JSON) -> Iterator[tuple[str, str, float]]:
    """All numbers of a chip, each with its place."""
    return (_key(place, key, holder) for place, holder in _places(entry) for key in _keys(holder))


def _row(place: str, key: str, holder: JSON, entry: JSON, sources: Mapping[str, JSON]) -> str:
    """One number, with all that is known of it."""
    meaning, unit = NUMBERS[key]
    value = holder[key]
    shown = f"{value:,.10g} {unit}".strip() if key in PLAIN_DIGITS else quantity(value, unit)
    given = source_of(holder, key) or entry.get("source")
    if isinstance(given, dict):
        given = None
    ids = [given] if isinstance(given, str) else list(given or [])
    named = ", ".join(
        f'<a href="#source={escaped(source)}" title="{escaped(sources[source]["title"])}">{escaped(source)}</a>'
        if source in sources
        else escaped(source)
        for source in ids
    )
    sure = [SURENESS.get(str(holder.get("confidence")), "")] if holder.get("confidence") else []
    badges = "".join(f'<span class="badge">{escaped(text)}</span>' for text in sure)
    if holder.get("estimate") or entry.get("estimate"):
        badges += '<span class="badge warn">estimate</span>'
    notes = [str(holder["note"])] if holder.get("note") else []
    if key == "flops_per_s" and holder.get("printed_with_sparsity"):
        half = ", of which this is half" if holder.get("halved") else ""
        notes.append(
            f"printed with sparsity: {quantity(holder['printed_with_sparsity'], unit)}{half}"
        )
    return (
        f'<tr><th scope="row">{escaped(place)}: {escaped(meaning)}</th>'
        f'<td class="number" title="{value!r} {escaped(unit)}">{escaped(shown)}</td>'
        f"<td>{named}</td><td>{badges}</td><td>{escaped('; '.join(notes))}</td></tr>"
    )


def source_list(sources: Mapping[str, JSON]) -> str:
    """The documents that the numbers come from, as items of a list in HTML."""
    return "\n".join(_source(name, document) for name, document in sources.items())


def _source(name: str, document: JSON) -> str:
    more = ", ".join(str(document[key]) for key in ("date", "kind") if document.get(key))
    return (
        f'<li data-source="{escaped(name)}" tabindex="-1"><code>{escaped(name)}</code> {link(document.get("url"), str(document["title"]))}'
        f"<small>{escaped(more)}</small></li>"
    )


def used_sources(chips: Mapping[str, JSON], sources: Mapping[str, Any]) -> dict[str, Any]:
    """The documents that some number of some chip names, in the catalogue's order."""
    named: set[str] = set()
    for entry in chips.values():
        for holder in (entry, *(holder for _, holder in _places(entry))):
            given = holder.get("source")
            for one in given.values() if isinstance(given, dict) else [given]:
                named.update([one] if isinstance(one, str) else one or [])
    return {name: document for name, document in sources.items() if name in named}
