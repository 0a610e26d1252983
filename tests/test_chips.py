"""The chip catalogue: names, keys, power, prices, variants, and the values of the book.

The tests read the file without the package, so that a mistake shows here before it reaches a table.
"""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from chip_file import (
    CHIPS,
    DOCUMENT,
    KEYS,
    LEVELS,
    MEASURED,
    NETWORKS,
    NUMBERS,
    OVERRIDES,
    PEAKS,
    POWERS,
    PRICES,
    VARIANTS,
    each,
    items_of,
    label_of,
    main_bandwidth,
    peak,
)


def test_no_chip_or_variant_was_lost():
    assert len(CHIPS) >= 65
    assert len(VARIANTS) >= 38


NOT_ENOUGH = (
    "rubin-ultra",
    "mi440x",
    "mi430x",
    "mi308x",
    "trainium4",
    "crescent",
    "l20",
    "rtx-6000",
)
"""Chips of which too little is published for a roofline."""


@each(["groq", "apple", "cerebras", "sparse", *NOT_ENOUGH])
def test_nothing_without_a_dense_peak_is_listed(name):
    assert [chip for chip in DOCUMENT["chips"] if name in chip] == []


@each(DOCUMENT["chips"])
def test_ids_are_lower_case_letters_digits_and_hyphens(name):
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)


def test_aliases_are_nobodys_id():
    aliases = [alias for chip in CHIPS.values() for alias in chip.get("aliases", [])]
    assert len(aliases) == len(set(aliases))
    assert set(aliases).isdisjoint(DOCUMENT["chips"])


def test_a_family_has_one_usual_chip():
    usual = {name: chip["usual"] for name, chip in CHIPS.items() if "usual" in chip}
    assert len(set(usual.values())) == len(usual) > 3
    assert all(name.startswith(f"{family}-") for name, family in usual.items())
    assert set(usual.values()).isdisjoint(DOCUMENT["chips"])


@each(CHIPS)
def test_a_chip_says_who_made_it_and_when(name):
    chip = CHIPS[name]
    required = {"name", "vendor", "year", "status", "units", "memory"}
    assert required <= set(chip)
    optional = {"aliases", "usual", "clock", "note", "networks", "power", "prices", "measured"}
    assert set(chip) <= required | optional
    assert chip["vendor"] in {
        "Google",
        "NVIDIA",
        "AMD",
        "Intel",
        "AWS",
        "Microsoft",
        "Meta",
        "Huawei",
    }
    assert 2017 <= chip["year"] <= 2026 or "announced" in chip["status"]


@each(KEYS)
def test_no_entry_has_an_unknown_key(section):
    unknown = {
        label_of(item): set(item.entry) - KEYS[section] for item in items_of(list(CHIPS), section)
    }
    assert {label: keys for label, keys in unknown.items() if keys} == {}


@each([*PEAKS, *LEVELS, *NETWORKS, *POWERS, *PRICES, *MEASURED])
def test_numbers_are_numbers(item):
    numbers = {
        key: value
        for key, value in item.entry.items()
        if key in NUMBERS | {"printed_with_sparsity"} and (key, value) != ("domain", "unlimited")
    }
    assert numbers
    for key, value in numbers.items():
        assert type(value) in {int, float}, key
        assert 0 < value < math.inf, key


@each(POWERS)
def test_power_is_in_watts(item):
    """Between 50 and 3000 W: neither kilowatts nor milliwatts."""
    assert 50 <= item.entry["watts"] <= 3000


@each(PRICES)
def test_prices_are_dated_and_per_chip_hour(item):
    assert 0.1 <= item.entry["usd_per_hour"] <= 50
    assert re.fullmatch(r"20\d\d(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?", item.entry["date"])
    assert set(item.entry) == KEYS["prices"]


@each(MEASURED)
def test_a_measured_fraction_is_the_quotient_in_its_note(item):
    fraction = item.entry["fraction_of_peak"]
    assert 0.3 < fraction < (2 if CHIPS[item.chip].get("clock") == "boost" else 1)
    quotient = re.search(r"([\d.]+e\d+) of ([\d.]+e\d+)", item.entry["note"])
    if quotient:
        assert fraction == pytest.approx(float(quotient[1]) / float(quotient[2]), abs=6e-4)
    else:
        assert fraction in {0.95, 0.82, 0.803, 0.8}


@each([("rtx-5090", 1.212), ("h200-nvl", 1.021)])
def test_cards_above_their_boost_clock_are_marked(name, fraction):
    """The measured bf16 rate is above the peak, and `clock` and the note say why."""
    assert CHIPS[name]["clock"] == "boost"
    assert "clock" in CHIPS[name]["note"]
    bf16 = [entry for entry in CHIPS[name]["measured"] if entry["what"].startswith("bf16")]
    assert [entry["fraction_of_peak"] for entry in bf16] == [fraction]


def test_cards_for_desks_and_bridges_are_marked_as_boosted():
    boosted = {name for name, chip in CHIPS.items() if "clock" in chip}
    assert boosted >= {"rtx-4090", "rtx-5090", "rtx-pro-6000-ws", "h200-nvl"}
    assert [name for name in boosted if "clock" not in CHIPS[name]["note"]] == []


@each(VARIANTS)
def test_a_variant_is_its_base_with_some_numbers_replaced(name):
    variant = VARIANTS[name]
    base = variant["base"]
    assert base in CHIPS
    assert name.startswith(f"{base}-")
    assert set(variant) - {"plausible"} == {"base", "source", "note"} | set(OVERRIDES[name])
    assert OVERRIDES[name]
    for path, value in OVERRIDES[name].items():
        entry: Any = CHIPS[base]
        *steps, key = path.split(".")
        for step in steps:
            assert step in entry, path
            entry = entry[step]
        assert key == "domain" or type(entry[key]) in {int, float}, path
        assert type(value) in {int, float}, path


@each(
    [
        (name, path)
        for name, paths in OVERRIDES.items()
        for path in paths
        if not path.endswith(".domain")
    ]
)
def test_an_override_changes_its_number_or_confirms_it(name, path):
    base: Any = CHIPS[VARIANTS[name]["base"]]
    for step in path.split("."):
        base = base[step]
    value = OVERRIDES[name][path]
    assert value != base or "confirms" in VARIANTS[name]["note"]
    assert 0.4 <= value / base <= 1.2 or path in VARIANTS[name]["plausible"]


WORKED: dict[str, tuple[float, float, float]] = {
    "tpu-v5e-book-roofline": (1.97e14, 8.2e11, 240.24),
    "tpu-v5e-book-tables": (1.97e14, 8.1e11, 243.21),
    "tpu-v6e-book-roofline": (9.1e14, 1.6e12, 568.75),
    "h100-sxm": (9.89e14, 3.35e12, 295.2),
    "h100-sxm-book": (9.89e14, 3.35e12, 295.2),
    "h100-sxm-book-round": (1e15, 3.35e12, 298.5),
    "h100-nvl-critical-batch-214": (8.35e14, 3.9e12, 214.1),
    "h100-nvl-product-brief": (8.355e14, 3.938e12, 212.2),
    "b200-launch-8tb": (2.25e15, 8e12, 281.25),
}


@each(WORKED)
def test_critical_intensities_of_the_book_are_reachable(name):
    rate, bandwidth, intensity = WORKED[name]
    assert (peak(name, "bf16"), main_bandwidth(name)) == (rate, bandwidth)
    assert rate / bandwidth == pytest.approx(intensity, abs=0.06)


def test_tpu_v5e_int8_at_the_bandwidth_of_the_books_tables():
    assert peak("tpu-v5e-book-tables", "int8") / main_bandwidth(
        "tpu-v5e-book-tables"
    ) == pytest.approx(486.42, abs=0.005)


def test_tpu_v5p_vector_unit_as_the_book_has_it():
    assert peak("tpu-v5p-book-roofline", "fp32", "vector") == 7e12
    assert (
        peak("tpu-v5p-book-roofline", "fp32", "vector") / main_bandwidth("tpu-v5p-book-roofline")
        == 2.5
    )


def test_fp8_of_the_h100_is_half_of_the_printed_figure():
    """1.979e15 FLOP/s."""
    assert peak("h100-sxm", "fp8") == 1.979e15


def test_two_tpu_v5e_need_a_contraction_of_8756():
    link = CHIPS["tpu-v5e"]["networks"]["ici"]["bytes_per_s"]
    assert 2 * peak("tpu-v5e", "bf16") / link == pytest.approx(8755.56, abs=0.005)


@each([("b100", 0.82), ("tpu-v5p", 0.95)])
def test_the_achievable_fractions_of_the_book_are_kept(name, fraction):
    assert fraction in [entry["fraction_of_peak"] for entry in CHIPS[name]["measured"]]
