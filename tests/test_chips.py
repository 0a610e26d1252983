"""The chip catalogue: what an entry says, sources, variants, and spot values of the vendors.

Read without the package, which checks keys, types and ranges when it reads the file.
"""

import re
from typing import Any

import pytest
from chip_file import (
    BASES,
    CHIPS,
    LEVELS,
    MEASURED,
    NETWORKS,
    PEAKS,
    POWERS,
    PRICES,
    SOURCES,
    VARIANTS,
    WRITTEN,
    each,
    main_bandwidth,
    peak,
)

STRUCTURE = {"links", "domain", "ring_multiple"}
"""Numbers that follow from the topology, and need no source of their own."""

NUMBERS = {
    *("flops_per_s", "bytes_per_s", "capacity_bytes", "hop_latency_s", "typical_hop_latency_s"),
    *("watts", "usd_per_hour", "fraction_of_peak", *STRUCTURE),
}


@each(BASES)
def test_a_chip_says_who_made_it_and_when(name):
    chip = CHIPS[name]
    assert {"name", "vendor", "year", "status", "units", "memory"} <= set(chip)
    assert 2017 <= chip["year"] <= 2026 or "announced" in chip["status"]


def test_aliases_and_usual_chips_are_nobodys_id():
    aliases = [alias for name in BASES for alias in CHIPS[name].get("aliases", [])]
    usual = {name: CHIPS[name]["usual"] for name in BASES if "usual" in CHIPS[name]}
    assert len(aliases) == len(set(aliases))
    assert len(set(usual.values())) == len(usual) > 3
    assert all(name.startswith(f"{family}-") for name, family in usual.items())
    assert set(CHIPS).isdisjoint({*aliases, *usual.values()})


def sources_of(entry):
    """The sources of each number of an entry."""
    source = entry["source"]
    numbers = set(entry) & (NUMBERS - STRUCTURE)
    return source if isinstance(source, dict) else dict.fromkeys(numbers, source)


@each([*PEAKS, *LEVELS, *NETWORKS, *POWERS, *PRICES, *MEASURED])
def test_every_number_has_sources_that_are_listed(item):
    numbers = set(item.entry) & NUMBERS
    assert numbers - STRUCTURE <= set(sources_of(item.entry)) <= numbers
    for sources in sources_of(item.entry).values():
        assert sources
        assert len(sources) == len(set(sources))
        assert set(sources) <= set(SOURCES)


def test_every_source_is_used():
    items = [*PEAKS, *LEVELS, *NETWORKS, *POWERS, *PRICES, *MEASURED]
    used = {each for item in items for some in sources_of(item.entry).values() for each in some}
    of_variants = {source for name in VARIANTS for source in WRITTEN[name]["source"]}
    assert used | of_variants == set(SOURCES)


@each(SOURCES)
def test_a_source_says_what_it_is(name):
    source = SOURCES[name]
    assert {"title", "kind", "date"} <= set(source) <= {"title", "kind", "date", "url"}
    assert re.fullmatch(r"undated|20\d\d(-\d\d(-\d\d)?)?", source["date"])
    if "url" not in source:
        assert re.search(r"not the vendor's sheet|second-hand", source["title"])


@each([*PEAKS, *LEVELS, *NETWORKS, *POWERS])
def test_a_number_says_how_it_was_read(item):
    entry = item.entry
    assert "confidence" in entry
    if entry.get("estimate") or (item in PEAKS and entry["confidence"] == "derived"):
        assert entry["note"]


@each(POWERS)
def test_power_is_in_watts(item):
    """Between 50 and 3000 W: neither kilowatts nor milliwatts."""
    assert 50 <= item.entry["watts"] <= 3000


@each(PRICES)
def test_prices_are_dated_and_per_chip_hour(item):
    assert 0.1 <= item.entry["usd_per_hour"] <= 50
    assert re.fullmatch(r"20\d\d(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?", item.entry["date"])


@each(MEASURED)
def test_a_measured_fraction_is_the_quotient_in_its_note(item):
    fraction, boosted = item.entry["fraction_of_peak"], CHIPS[item.chip].get("clock") == "boost"
    assert 0.3 < fraction < (2 if boosted else 1)
    quotient = re.search(r"([\d.]+e\d+) of ([\d.]+e\d+)", item.entry["note"])
    if quotient:
        assert fraction == pytest.approx(float(quotient[1]) / float(quotient[2]), abs=6e-4)


@each([name for name in BASES if "clock" in CHIPS[name]])
def test_a_boost_clock_is_explained(name):
    assert "clock" in CHIPS[name]["note"]


@each([(name, path) for name in VARIANTS for path in WRITTEN[name] if "." in path])
def test_an_override_changes_its_number_or_confirms_it(name, path):
    """By 0.4 to 1.2 times, unless it says that the number is meant."""
    variant = WRITTEN[name]
    base: Any = CHIPS[variant["base"]]
    for step in path.split("."):
        base = base.get(step)
    if path.endswith(".domain"):
        return
    assert variant[path] != base or "confirms" in variant["note"]
    assert 0.4 <= variant[path] / base <= 1.2 or path in variant["plausible"]


@each(VARIANTS)
def test_a_variant_is_named_after_its_base_and_has_a_source(name):
    assert name.startswith(f"{WRITTEN[name]['base']}-")
    assert {"source", "note"} <= set(WRITTEN[name])


RIDGES: dict[str, tuple[str, float]] = {
    "tpu-v5e-book-roofline": ("bf16", 240.24),
    "tpu-v5e-book-tables": ("int8", 486.42),
    "tpu-v6e-book-roofline": ("bf16", 568.75),
    "h100-sxm": ("bf16", 295.2),
    "h100-sxm-book-round": ("bf16", 298.5),
    "h100-nvl-critical-batch-214": ("bf16", 214.1),
    "h100-nvl-product-brief": ("bf16", 212.2),
    "b200-launch-8tb": ("bf16", 281.25),
}
"""Critical intensities [FLOP/byte]. Source: How to Scale Your Model, All About Rooflines."""


@each(RIDGES)
def test_critical_intensities_of_the_book_are_reachable(name):
    dtype, intensity = RIDGES[name]
    assert peak(name, dtype) / main_bandwidth(name) == pytest.approx(intensity, abs=0.06)


def test_the_vector_unit_of_the_book_has_its_critical_intensity():
    name = "tpu-v5p-book-roofline"
    assert peak(name, "fp32", "vector") / main_bandwidth(name) == 2.5


LINKS: dict[tuple[str, str], tuple[float, int | str]] = {
    ("tpu-v5e", "ici"): (4.5e10 * 4, 16),
    ("tpu-v5p", "ici"): (9e10 * 6, 24),
    ("a100-sxm-80gb", "nvlink"): (3.0e11, 8),
    ("h100-sxm", "nvlink"): (4.5e11, 8),
    ("gb200", "nvlink"): (9.0e11, 72),
    ("h100-sxm", "infiniband"): (5.0e10, "unlimited"),
    ("mi300x", "xgmi"): (4.48e11, 8),
    ("gaudi3", "roce"): (5.25e11, 8),
}
"""One way over all links [byte/s], and chips joined [1]. Source: the vendors' data sheets."""


@each(LINKS)
def test_links_are_one_way(name, network):
    """NVLink 4 sends 4.5e11 per GPU, not the 900 GB/s printed for both directions; others alike."""
    entry = CHIPS[name]["networks"][network]
    total, domain = LINKS[name, network]
    assert entry["bytes_per_s"] * entry["links"] == pytest.approx(total, rel=1e-12)
    assert entry["domain"] == domain


CACHES = {"h100-sxm": 50, "h200-sxm": 60, "b100": 126, "l40": 96, "mi210": 8}
"""MiB of L2 that devices report, not the 50 of the H100 for an H200."""


@each(CACHES)
def test_last_level_caches_are_those_that_devices_report(name):
    assert CHIPS[name]["memory"]["l2"]["capacity_bytes"] == CACHES[name] * 2**20
