"""Numbers of config/chips.yaml have a source and a confidence; read without the package."""

import re

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
    each,
)


def _source_lists(entry):
    """The sources of each number of an entry."""
    source = entry["source"]
    numbers = set(entry) & (NUMBERS - STRUCTURE)
    return source if isinstance(source, dict) else dict.fromkeys(numbers, source)


@each([*PEAKS, *LEVELS, *NETWORKS, *POWERS, *PRICES, *MEASURED])
def test_every_number_has_a_source_that_is_listed(item):
    lists = _source_lists(item.entry)
    numbers = set(item.entry) & NUMBERS
    assert numbers - STRUCTURE <= set(lists) <= numbers
    for sources in lists.values():
        assert sources
        assert set(sources) <= set(SOURCES)
        assert len(sources) == len(set(sources))


@each(VARIANTS)
def test_every_variant_has_a_source_that_is_listed(name):
    assert VARIANTS[name]["source"]
    assert set(VARIANTS[name]["source"]) <= set(SOURCES)


def test_every_source_is_used():
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
def test_a_source_says_what_it_is(name):
    source = SOURCES[name]
    assert {"title", "kind", "date"} <= set(source) <= {"title", "kind", "date", "url"}
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
    assert source["date"] == "undated" or re.fullmatch(r"20\d\d(-\d\d(-\d\d)?)?", source["date"])
    if "url" in source:
        assert re.fullmatch(r"https://\S+", source["url"])
    else:
        assert re.search(r"not the vendor's sheet|second-hand", source["title"])


@each([*PEAKS, *LEVELS, *NETWORKS, *POWERS])
def test_confidence_is_stated(item):
    assert item.entry["confidence"] in CONFIDENCES


@each([item for item in [*PEAKS, *LEVELS, *NETWORKS] if "estimate" in item.entry])
def test_an_estimate_says_where_it_comes_from(item):
    assert item.entry["estimate"] is True
    assert item.entry["note"]


@each([item for item in PEAKS if item.entry["confidence"] == "derived"])
def test_a_derived_peak_shows_its_arithmetic(item):
    assert item.entry["note"]


@each(
    [
        item
        for item in LEVELS
        if item.path != "hbm" and "bytes_per_s" in item.entry and item.path != "host"
    ]
)
def test_on_chip_bandwidths_are_marked_as_estimates(item):
    assert item.entry["estimate"] is True
