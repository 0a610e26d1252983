"""The chip catalogue agrees with vendors' figures and with itself.

Read without the package, which checks keys, types and ranges when it reads the file.
"""

import math
import re
from typing import Any

import pytest
from case_files import case
from chip_file import (
    BASES,
    CHIPS,
    HALF_PRECISION,
    LEVELS,
    MEASURED,
    NETWORKS,
    PEAKS,
    POWERS,
    PRICES,
    SOURCES,
    SPECIALS,
    VARIANTS,
    WRITTEN,
    each,
    half_precision,
    items_of,
    main_bandwidth,
    peak,
)

KNOWN = case("chips")
RATIOS, UNUSUAL = KNOWN["ratios"], KNOWN["unusual"]

STRUCTURE = {"links", "domain", "ring_multiple", "driver_reserved_bytes"}
"""Numbers that follow from the topology or the label, and need no source of their own."""

NUMBERS = {
    *("flops_per_s", "bytes_per_s", "capacity_bytes", "driver_reserved_bytes"),
    *("bus_bits", "pin_bits_per_s", "exp_per_s"),
    *("hop_latency_s", "typical_hop_latency_s"),
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
    source = entry["source"]
    numbers = set(entry) & (NUMBERS - STRUCTURE)
    return source if isinstance(source, dict) else dict.fromkeys(numbers, source)


@each([*PEAKS, *LEVELS, *NETWORKS, *POWERS, *PRICES, *MEASURED, *SPECIALS])
def test_every_number_has_sources_that_are_listed(item):
    numbers = set(item.entry) & NUMBERS
    assert numbers - STRUCTURE <= set(sources_of(item.entry)) <= numbers
    for sources in sources_of(item.entry).values():
        assert sources
        assert len(sources) == len(set(sources))
        assert set(sources) <= set(SOURCES)


def test_every_source_is_used():
    items = [*PEAKS, *LEVELS, *NETWORKS, *POWERS, *PRICES, *MEASURED, *SPECIALS]
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


@each([(item, *of) for part, of in KNOWN["ranges"].items() for item in items_of(CHIPS, part)])
def test_a_number_has_the_size_of_its_unit(item, key, low, high):
    assert low <= item.entry.get(key, low) <= high, f"{item.chip} {item.path}"


@each(PRICES)
def test_prices_are_dated(item):
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


@each(KNOWN["ridges"])
def test_critical_intensities_of_the_book_are_reachable(name):
    dtype, intensity = KNOWN["ridges"][name]
    assert peak(name, dtype) / main_bandwidth(name) == pytest.approx(intensity, abs=0.06)


def test_the_vector_unit_of_the_book_has_its_critical_intensity():
    name = "tpu-v5p-book-roofline"
    assert peak(name, "fp32", "vector") / main_bandwidth(name) == 2.5


@each([tuple(link) for link in KNOWN["links"]])
def test_links_are_one_way(name, network, total, domain):
    """NVLink 4 sends 4.5e11 per GPU, not the 900 GB/s printed for both directions; others alike."""
    entry = CHIPS[name]["networks"][network]
    assert entry["bytes_per_s"] * entry["links"] == pytest.approx(total, rel=1e-12)
    assert entry["domain"] == domain


# ------------------------------------------------ numbers fit each other and their units

GIB = 2**30


@each(HALF_PRECISION)
def test_critical_intensity_is_between_30_and_700(name):
    assert 30 < peak(name, half_precision(name)) / main_bandwidth(name) < 700


@each([name for name in BASES if name not in HALF_PRECISION])
def test_a_chip_without_a_16_bit_peak_says_why(name):
    assert re.search("16|FP4", CHIPS[name]["note"])


@each([item for item in PEAKS if "printed_with_sparsity" in item.entry])
def test_a_sparse_figure_is_never_the_dense_peak(item):
    sparse, dense = item.entry["printed_with_sparsity"], item.entry["flops_per_s"]
    assert 0.45 * sparse <= dense <= 0.76 * sparse
    assert (dense == pytest.approx(sparse / 2, rel=1e-3)) >= ("halved" in item.entry)
    assert (dense != pytest.approx(sparse / 2, rel=1e-6)) >= ("halved" not in item.entry)


@each([name for name in BASES if re.match(r"h[12]00|gh200|g?b[123]00", name)])
def test_where_nvidia_prints_sparse_rates_the_print_is_kept(name):
    peaks = CHIPS[name]["units"]["matrix"]
    for dtype in ("bf16", "fp16", "fp8", "int8"):
        assert "printed_with_sparsity" in peaks[dtype]


@each(
    [
        item
        for item in PEAKS
        if item.path.removeprefix("matrix.") in RATIOS and item.chip in HALF_PRECISION
    ]
)
def test_ratio_to_half_precision_is_a_known_one(item):
    ratio = item.entry["flops_per_s"] / peak(item.chip, half_precision(item.chip))
    usual = RATIOS[item.path.removeprefix("matrix.")]
    close = [math.isclose(ratio, each, rel_tol=0.03) for each in usual]
    close += [math.isclose(ratio, each, rel_tol=3e-3) for each in UNUSUAL.get(item.chip, ())]
    assert any(close), ratio


@each([item for item in PEAKS if item.path in {"matrix.fp32", "matrix.fp64"}])
def test_wide_formats_are_slower(item):
    assert item.entry["flops_per_s"] <= 0.275 * peak(item.chip, half_precision(item.chip))


@each([item for item in PEAKS if item.path in {"matrix.mxfp4", "matrix.mxfp8"}])
def test_block_scaled_formats_run_at_the_rate_of_their_elements(item):
    peaks = CHIPS[item.chip]["units"]["matrix"]
    if item.path == "matrix.mxfp8":
        assert item.entry["flops_per_s"] == peak(item.chip, "fp8")
    elif CHIPS[item.chip]["vendor"] == "NVIDIA":
        assert item.entry["flops_per_s"] == peak(item.chip, "nvfp4")
    else:
        assert "nvfp4" not in peaks, "NVFP4 is NVIDIA's format"


@each([item for item in items_of(CHIPS, "units") if item.path.startswith("vector.")])
def test_the_vector_unit_is_no_faster_than_the_matrix_unit(item):
    peaks = CHIPS[item.chip]["units"]["matrix"]
    widest = min((one["flops_per_s"] for one in peaks.values()), default=math.inf)
    if item.chip in HALF_PRECISION:
        widest = peak(item.chip, half_precision(item.chip))
    same = peaks.get(item.path.removeprefix("vector."), {"flops_per_s": widest})
    assert item.entry["flops_per_s"] <= same["flops_per_s"]


@each([tuple(pair) for pair in KNOWN["same"]])
def test_the_same_silicon_has_the_same_peaks(one, other):
    peaks = [{item.path: item.entry for item in items_of([name], "units")} for name in (one, other)]
    both = peaks[0].keys() & peaks[1].keys()
    assert len(both) >= 6
    for path in both:
        assert peaks[0][path]["flops_per_s"] == peaks[1][path]["flops_per_s"]


PRINTED_IN_GIB = {"trainium1", "inferentia2", "tpu-v5e-gcp-800gib"}


@each([item for item in items_of(CHIPS, "memory") if item.path == "hbm"])
def test_main_memory_is_decimal_and_plausible(item):
    """A multiple of 1e8 byte/s, of 2^30 only if it is printed in GiB/s."""
    rate, size = item.entry["bytes_per_s"], item.entry["capacity_bytes"]
    assert rate >= 1e11
    assert 1e10 <= size <= 1e12
    if item.chip in PRINTED_IN_GIB:
        assert rate % GIB == 0
        assert "GiB" in WRITTEN[item.chip].get("note", "") + item.entry.get("note", "")
    else:
        assert rate % 1e8 == 0
        assert rate % GIB


MAIN = [item for item in LEVELS if item.path == "hbm"]


def label_gib(item):
    """The label of a main memory, its GB read as the GiB that they are."""
    number, _, unit = item.entry["label"].partition(" ")
    assert unit in {"GB", "GiB"}
    return int(number)


@each([item for item in MAIN if "bus_bits" in item.entry])
def test_no_bandwidth_is_below_that_of_its_bus_unless_the_vendor_prints_it(item):
    """A rate rounded down makes a bound that can be beaten."""
    entry = item.entry
    of_bus = entry["bus_bits"] * entry["pin_bits_per_s"] / 8
    printed = re.search(r"AMD prints ([\d.]+) TB/s", entry.get("note", ""))
    if printed:
        assert float(printed[1]) * 1e12 == entry["bytes_per_s"] < of_bus
    else:
        assert of_bus <= entry["bytes_per_s"] < 1.001 * of_bus


def test_rates_that_tables_round_down_are_not_rounded():
    assert [main_bandwidth(name) for name in ("mi250x", "h100-pcie", "t4")] == [
        3.277e12,
        2.04e12,
        3.2e11,
    ]


@each([(name, *of) for name, of in KNOWN["capacities"].items()])
def test_a_capacity_is_what_the_device_reports_to_a_program(name, reported, unit):
    """To the digits that the device prints."""
    size = CHIPS[name]["memory"]["hbm"]["capacity_bytes"]
    if unit == "GiB":
        assert 0 <= reported * GIB - size < 1
    else:
        assert size == reported
    assert "estimate" not in CHIPS[name]["memory"]["hbm"]


@each(MAIN)
def test_a_label_is_the_capacity_and_what_the_driver_keeps(item):
    """Of a capacity that is no label; a v5p of 95 GiB has 96 on its package."""
    entry, label = item.entry, label_gib(item) * GIB
    size, kept = entry["capacity_bytes"], entry.get("driver_reserved_bytes")
    if kept is None:
        assert item.chip == "tpu-v5p" or size in {label, label_gib(item) * 1e9}
    else:
        assert size + kept == label
        assert 0.9 * label < size < label
    printed = re.search(r"printed as (\d+ (?:GiB|GB))\b", entry.get("note", ""))
    assert not printed or printed[1] == entry["label"]


@each([item for item in MAIN if item.chip not in KNOWN["capacities"]])
def test_a_capacity_that_no_device_reports_is_an_estimate_of_its_kind(item):
    entry, label = item.entry, label_gib(item) * GIB
    assert entry["estimate"] == ["capacity_bytes"]
    assert "the capacity is the estimate" in entry["note"]
    if "driver_reserved_bytes" in entry:
        least = {"NVIDIA": label * 984 // 1000, "AMD": label - 2**24}
        assert entry["capacity_bytes"] == least[CHIPS[item.chip]["vendor"]]


@each([name for name in VARIANTS if "-book" in name])
def test_the_chips_of_the_book_keep_the_capacities_of_the_book(name):
    """Source: its tables of TPUs and GPUs."""
    book = {"tpu-v5e": 1.6e10, "tpu-v5p": 9.6e10, "tpu-v6e": 3.2e10}
    assert CHIPS[name]["memory"]["hbm"]["capacity_bytes"] == book.get(WRITTEN[name]["base"], 8e10)


@each([item for item in LEVELS if item.path not in {"hbm", "host"}])
def test_on_chip_levels_are_smaller_and_faster_than_main_memory(item):
    """Below 1 GB, in whole KiB (or the 134e6 of Google's code); bandwidths are estimates."""
    size = item.entry["capacity_bytes"]
    assert 2**18 <= size < 1e9
    assert size % 1024 == 0 or size == 1.34e8
    if "bytes_per_s" in item.entry:
        assert item.entry["bytes_per_s"] > main_bandwidth(item.chip)
        assert item.entry["estimate"]


@each([item for item in LEVELS if item.path == "host"])
def test_host_memory_is_larger_and_slower(item):
    assert item.entry["capacity_bytes"] > CHIPS[item.chip]["memory"]["hbm"]["capacity_bytes"]
    assert item.entry["bytes_per_s"] < main_bandwidth(item.chip)


ROUTED = {"dcn", "infiniband", "rdma", "efa", "ethernet", "roce-scale-out"}
"""Networks through routers or a Clos of switches: as large as their buyer makes them."""


@each(NETWORKS)
def test_a_network_is_slower_than_main_memory(item):
    entry = item.entry
    assert entry["bytes_per_s"] * entry["links"] < main_bandwidth(item.chip)
    if item.path == "pcie":  # one way, generations 3 to 6
        assert entry["bytes_per_s"] in {1.6e10, 3.2e10, 6.4e10, 1.28e11}
        assert entry["links"] == 1


@each(NETWORKS)
def test_topology_and_domain_fit_each_other(item):
    """The note says why nobody knows a size; a domain of one leads to the host."""
    entry, domain = item.entry, item.entry.get("domain")
    assert (domain == "unlimited") == (item.path in ROUTED)
    assert (domain == 1) == ("not to other" in entry.get("note", ""))
    if domain is None:
        assert re.search("not fixed|depends on the system|not recorded", entry["note"])
    if entry["topology"] == "mesh":
        assert 2 <= domain <= entry["links"] + 1
    if entry["topology"] == "torus":
        assert entry["links"] % 2 == 0
    if item.path == "nvlink":
        assert (entry["topology"] == "mesh") == (domain == 2)
    if "ring_multiple" in entry:
        assert entry["ring_multiple"] > 2
        assert domain % entry["ring_multiple"] == 0


@each(NETWORKS)
def test_a_hop_has_a_latency_or_the_note_says_why_not(item):
    entry = item.entry
    if "hop_latency_s" not in entry:
        assert entry.get("domain") == 1 or "latency is not published" in entry["note"]
    least = entry.get("hop_latency_s", 2e-7)
    assert least < entry.get("typical_hop_latency_s", 2 * least) <= 5 * least


@each({item.path.split("-")[0] for item in NETWORKS})
def test_a_kind_of_network_has_one_latency_from_one_document(kind):
    alike = [item.entry for item in NETWORKS if item.path.split("-")[0] == kind]
    known = [entry for entry in alike if "hop_latency_s" in entry]
    assert all(1e-7 < entry["hop_latency_s"] < 1e-4 for entry in known)
    assert len({entry["hop_latency_s"] for entry in known}) <= 1
    assert len({entry["source"]["hop_latency_s"][0] for entry in known}) <= 1


@each([name for name in BASES if "networks" in CHIPS[name]])
def test_the_default_network_is_the_one_between_chips(name):
    first, *rest = CHIPS[name]["networks"]
    assert first not in {"pcie", "nvlink-c2c", *ROUTED} or not rest
