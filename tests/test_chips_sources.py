"""Numbers of config/chips.yaml have a source and a confidence; read without the package."""

from __future__ import annotations

import re
from typing import Any

from chip_file import (
    CONFIDENCES,
    LEVELS,
    MEASURED,
    NETWORKS,
    NUMBERS,
    PEAKS,
    POWERS,
    PRICES,
    SOURCES,
    STRUCTURE,
    VARIANTS,
    Item,
    each,
)


def _source_lists(entry: dict[str, Any]) -> dict[str, list[str]]:
    """The sources of each number of an entry."""
    source = entry["source"]
    numbers = set(entry) & (NUMBERS - STRUCTURE)
    return source if isinstance(source, dict) else dict.fromkeys(numbers, source)


@each([*PEAKS, *LEVELS, *NETWORKS, *POWERS, *PRICES, *MEASURED])
def test_every_number_has_a_source_that_is_listed(item: Item) -> None:
    """Each number of the entry, no other key, and no unknown source."""
    lists = _source_lists(item.entry)
    numbers = set(item.entry) & NUMBERS
    assert numbers - STRUCTURE <= set(lists) <= numbers
    for sources in lists.values():
        assert sources
        assert set(sources) <= set(SOURCES)
        assert len(sources) == len(set(sources))


@each(VARIANTS)
def test_every_variant_has_a_source_that_is_listed(name: str) -> None:
    """The source of a variant is in the list of sources."""
    assert VARIANTS[name]["source"]
    assert set(VARIANTS[name]["source"]) <= set(SOURCES)


def test_every_source_is_used() -> None:
    """No listed source is unused."""
    entries = [item.entry for item in [*PEAKS, *LEVELS, *NETWORKS, *POWERS, *PRICES, *MEASURED]]
    used = {
        source
        for entry in entries
        for sources in _source_lists(entry).values()
        for source in sources
    }
    used |= {source for variant in VARIANTS.values() for source in variant["source"]}
    assert used == set(SOURCES)


@each(SOURCES)
def test_a_source_says_what_it_is(name: str) -> None:
    """Title, kind, date and address; without an address the title says second-hand."""
    source = SOURCES[name]
    assert {"title", "kind", "date"} <= set(source) <= {"title", "kind", "date", "url"}
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
    assert source["date"] == "undated" or re.fullmatch(r"20\d\d(-\d\d(-\d\d)?)?", source["date"])
    if "url" in source:
        assert re.fullmatch(r"https://\S+", source["url"])
    else:
        assert re.search(r"not the vendor's sheet|second-hand", source["title"])


@each([*PEAKS, *LEVELS, *NETWORKS, *POWERS])
def test_confidence_is_stated(item: Item) -> None:
    """One of six words, for every entry."""
    assert item.entry["confidence"] in CONFIDENCES


@each([item for item in [*PEAKS, *LEVELS, *NETWORKS] if "estimate" in item.entry])
def test_an_estimate_says_where_it_comes_from(item: Item) -> None:
    """`estimate` is true or absent, and has a note."""
    assert item.entry["estimate"] is True
    assert item.entry["note"]


@each([item for item in PEAKS if item.entry["confidence"] == "derived"])
def test_a_derived_peak_shows_its_arithmetic(item: Item) -> None:
    """The note of a derived number has its arithmetic."""
    assert item.entry["note"]


@each(
    [
        item
        for item in LEVELS
        if item.path != "hbm" and "bytes_per_s" in item.entry and item.path != "host"
    ]
)
def test_on_chip_bandwidths_are_marked_as_estimates(item: Item) -> None:
    """No source has a vendor's figure."""
    assert item.entry["estimate"] is True
