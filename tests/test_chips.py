"""The chip catalogue: every number of config/chips.yaml is checked against units and laws.

The tests read the file without the package, so that a mistake shows here before it reaches a table.
"""

# The claims about one catalogue, with the figures they are checked against: long, but one thing.

from __future__ import annotations

import copy
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

CATALOGUE = Path(__file__).parents[1] / "config" / "chips.yaml"
GIB = 2**30


class _Loader(yaml.SafeLoader):
    """YAML with the numbers of YAML 1.2 (9.89e14), and without duplicate keys."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:  # noqa: ANN401, FBT001, FBT002
        """A mapping with unique keys."""
        keys = [key.value for key, _ in node.value]
        twice = sorted({key for key in keys if keys.count(key) > 1})
        if twice:
            message = f"{node.start_mark}: given twice: {twice}"
            raise ValueError(message)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"),
    list("-+0123456789"),
)
DOCUMENT: dict[str, Any] = yaml.load(CATALOGUE.read_text(encoding="utf-8"), _Loader)  # noqa: S506
SOURCES: dict[str, dict[str, Any]] = DOCUMENT["sources"]
CHIPS: dict[str, dict[str, Any]] = {
    name: chip for name, chip in DOCUMENT["chips"].items() if "base" not in chip
}
VARIANTS: dict[str, dict[str, Any]] = {
    name: chip for name, chip in DOCUMENT["chips"].items() if "base" in chip
}
OVERRIDES: dict[str, dict[str, float]] = {
    name: {path: value for path, value in variant.items() if "." in path}
    for name, variant in VARIANTS.items()
}


def resolved(name: str) -> dict[str, Any]:
    """A chip, or the base of a variant with its overrides.

    Mistakes of a variant are ignored here; the tests of variants below find them.
    """
    if name in CHIPS:
        return CHIPS[name]
    chip = copy.deepcopy(CHIPS.get(VARIANTS[name]["base"], {}))
    for path, value in OVERRIDES[name].items():
        *way, key = path.split(".")
        entry = chip
        for step in way:
            entry = entry.get(step, {})
        entry[key] = value
    return chip


class Item(NamedTuple):
    """An entry of a chip: a peak, memory level, network, power, price or measurement."""

    chip: str
    path: str
    entry: dict[str, Any]


def _items(chips: list[str], section: str) -> list[Item]:
    """All entries of a section of these chips, with variants resolved."""
    found = []
    for name in chips:
        part = resolved(name).get(section, {})
        if section == "units":
            found += [
                Item(name, f"{unit}.{dtype}", peak)
                for unit, peaks in part.items()
                for dtype, peak in peaks.items()
            ]
        elif section in {"prices", "measured"}:
            found += [Item(name, str(number), entry) for number, entry in enumerate(part)]
        elif section == "power":
            found += [Item(name, "power", part)] if part else []
        else:
            found += [Item(name, key, entry) for key, entry in part.items()]
    return found


PEAKS = _items(list(CHIPS), "units")
PEAKS_AND_VARIANTS = _items([*CHIPS, *VARIANTS], "units")
LEVELS = _items(list(CHIPS), "memory")
MAIN_MEMORIES = [item for item in _items([*CHIPS, *VARIANTS], "memory") if item.path == "hbm"]
NETWORKS = _items(list(CHIPS), "networks")
POWERS = _items(list(CHIPS), "power")
PRICES = _items(list(CHIPS), "prices")
MEASURED = _items(list(CHIPS), "measured")

FORMATS = {
    "fp64",
    "fp32",
    "tf32",
    "bf16",
    "fp16",
    "fp8",
    "int8",
    "int4",
    "mxfp8",
    "mxfp6",
    "mxfp4",
    "nvfp4",
}
NUMBERS = {
    "flops_per_s",
    "bytes_per_s",
    "capacity_bytes",
    "links",
    "domain",
    "ring_multiple",
    "hop_latency_s",
    "typical_hop_latency_s",
    "watts",
    "usd_per_hour",
    "fraction_of_peak",
}
STRUCTURE = {"links", "domain", "ring_multiple"}
REMARKS = {"source", "confidence", "estimate", "note"}
KEYS = {
    "units": {"flops_per_s", "printed_with_sparsity", "halved"} | REMARKS,
    "memory": {"bytes_per_s", "capacity_bytes", "technology"} | REMARKS,
    "networks": {
        "bytes_per_s",
        "links",
        "topology",
        "domain",
        "ring_multiple",
        "hop_latency_s",
        "typical_hop_latency_s",
    }
    | REMARKS,
    "power": {"watts"} | REMARKS,
    "prices": {"usd_per_hour", "provider", "sku", "date", "source"},
    "measured": {"what", "fraction_of_peak", "source", "note"},
}
CONFIDENCES = {"vendor", "vendor-quoted", "book", "secondary", "derived", "measured"}


def _label(case: object) -> str:
    """Label of a case: chip and entry, or the case itself."""
    return f"{case.chip}:{case.path}" if isinstance(case, Item) else str(case)


def each(cases: Collection[Any]) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """A claim about every case, as one test that lists all offenders."""

    def over_all(claim: Callable[..., None]) -> Callable[[], None]:
        def test() -> None:
            assert cases
            offenders = []
            for case in cases:
                try:
                    claim(*(case if type(case) is tuple else (case,)))
                except (AssertionError, LookupError) as error:
                    offenders.append(f"{_label(case)}: {type(error).__name__} {error}")
            assert not offenders, "\n".join(offenders)

        test.__name__, test.__doc__ = claim.__name__, claim.__doc__
        return test

    return over_all


def peak(name: str, dtype: str, unit: str = "matrix") -> float:
    """A dense peak [FLOP/s] of a chip or variant."""
    return float(resolved(name)["units"][unit][dtype]["flops_per_s"])


def main_bandwidth(name: str) -> float:
    """Bandwidth of a chip's main memory [byte/s]."""
    return float(resolved(name)["memory"]["hbm"]["bytes_per_s"])


def half_precision(name: str) -> str:
    """The 16-bit dtype a chip is rated by: bf16, or fp16 where it has no bf16."""
    return "bf16" if "bf16" in resolved(name)["units"]["matrix"] else "fp16"


def has_half_precision(name: str) -> bool:
    """Whether a chip has a 16-bit matrix peak."""
    return half_precision(name) in resolved(name)["units"]["matrix"]


HALF_PRECISION = [name for name in (*CHIPS, *VARIANTS) if has_half_precision(name)]
"""Chips and variants with a 16-bit matrix peak; of a few only narrower rates are published."""


# What is in the catalogue


def test_no_chip_or_variant_was_lost() -> None:
    """The catalogue has at least 65 chips and 38 variants."""
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
def test_nothing_without_a_dense_peak_is_listed(name: str) -> None:
    """Chips without a published dense peak are not listed."""
    assert [chip for chip in DOCUMENT["chips"] if name in chip] == []


@each(DOCUMENT["chips"])
def test_ids_are_lower_case_letters_digits_and_hyphens(name: str) -> None:
    """An id is valid in a config, a path and a URL."""
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)


def test_aliases_are_nobodys_id() -> None:
    """An alias names one chip."""
    aliases = [alias for chip in CHIPS.values() for alias in chip.get("aliases", [])]
    assert len(aliases) == len(set(aliases))
    assert set(aliases).isdisjoint(DOCUMENT["chips"])


@each(CHIPS)
def test_a_chip_says_who_made_it_and_when(name: str) -> None:
    """Name, vendor, year and status are given; no key is unknown."""
    chip = CHIPS[name]
    required = {"name", "vendor", "year", "status", "units", "memory"}
    assert required <= set(chip)
    optional = {"aliases", "clock", "note", "networks", "power", "prices", "measured"}
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
def test_no_entry_has_an_unknown_key(section: str) -> None:
    """A typo in a key would silently drop a number."""
    unknown = {
        _label(item): set(item.entry) - KEYS[section] for item in _items(list(CHIPS), section)
    }
    assert {label: keys for label, keys in unknown.items() if keys} == {}


@each([*PEAKS, *LEVELS, *NETWORKS, *POWERS, *PRICES, *MEASURED])
def test_numbers_are_numbers(item: Item) -> None:
    """Positive, finite and no text: by the rules of YAML 1.1, 9.89e14 is a string."""
    numbers = {
        key: value
        for key, value in item.entry.items()
        if key in NUMBERS | {"printed_with_sparsity"} and (key, value) != ("domain", "unlimited")
    }
    assert numbers
    for key, value in numbers.items():
        assert type(value) in {int, float}, key
        assert 0 < value < math.inf, key


# Peaks


@each(CHIPS)
def test_units_are_matrix_and_vector(name: str) -> None:
    """A matrix unit with a 16-bit peak, or a note why not; every dtype is a known format."""
    units = CHIPS[name]["units"]
    assert "matrix" in units
    assert set(units) <= {"matrix", "vector"}
    assert {dtype for peaks in units.values() for dtype in peaks} <= FORMATS
    assert has_half_precision(name) or re.search("16|FP4", CHIPS[name]["note"])


@each(HALF_PRECISION)
def test_half_precision_peak_has_the_right_prefix(name: str) -> None:
    """Between 1e12 and 1e16 FLOP/s: a peak in GFLOP/s or EFLOP/s is outside."""
    assert 1e12 <= peak(name, half_precision(name)) <= 1e16


@each(PEAKS_AND_VARIANTS)
def test_every_peak_is_plausible(item: Item) -> None:
    """No unit is below 1 TFLOP/s or above the 4.03e16 of the fastest FP4, as printed."""
    assert 1e12 <= item.entry["flops_per_s"] <= 4.03e16


@each([item for item in PEAKS if "printed_with_sparsity" in item.entry])
def test_a_sparse_figure_is_never_the_dense_peak(item: Item) -> None:
    """Dense is 1/2 of the figure with sparsity, and 3/4 for the FP4 of Blackwell Ultra."""
    assert (
        0.45 * item.entry["printed_with_sparsity"]
        <= item.entry["flops_per_s"]
        <= 0.76 * item.entry["printed_with_sparsity"]
    )


@each([item for item in PEAKS if {"halved", "printed_with_sparsity"} & set(item.entry)])
def test_halved_means_half(item: Item) -> None:
    """With `halved` the printed figure is twice the peak to 0.1 %; no exact half lacks it."""
    half = item.entry["printed_with_sparsity"] / 2
    if "halved" in item.entry:
        assert item.entry["halved"] is True
        assert item.entry["flops_per_s"] == pytest.approx(half, rel=1e-3)
    else:
        assert item.entry["flops_per_s"] != pytest.approx(half, rel=1e-6)


HOPPER_AND_LATER = [name for name in CHIPS if re.match(r"h[12]00|gh200|g?b[123]00", name)]


@each(HOPPER_AND_LATER)
def test_where_nvidia_prints_sparse_rates_the_print_is_kept(name: str) -> None:
    """Each 16- and 8-bit tensor peak since Hopper also has the sparse figure."""
    peaks = CHIPS[name]["units"]["matrix"]
    assert [
        dtype
        for dtype in ("bf16", "fp16", "fp8", "int8")
        if "printed_with_sparsity" not in peaks[dtype]
    ] == []


# Relative to bf16 (or fp16). A sparse figure is off by a factor of two; rounding is within 3 %.
RATIOS: dict[str, set[float]] = {
    "tf32": {0.5},
    "fp16": {1},
    "fp8": {1, 2},
    "int8": {1, 2},
    "mxfp8": {2},
    "mxfp6": {2, 4},
    "mxfp4": {4},
    "nvfp4": {4},
    "int4": {4},
}
UNUSUAL_RATIOS: dict[tuple[str, str], tuple[float, str]] = {
    ("b300", "int8"): (0.0682, "Blackwell Ultra has next to no INT8"),
    ("gb300", "int8"): (0.066, "Blackwell Ultra has next to no INT8"),
    ("b300", "mxfp4"): (6, "Blackwell Ultra has 1.5 times the FP4 of Blackwell"),
    ("b300", "nvfp4"): (6, "Blackwell Ultra has 1.5 times the FP4 of Blackwell"),
    ("gb300", "mxfp4"): (6, "Blackwell Ultra has 1.5 times the FP4 of Blackwell"),
    ("gb300", "nvfp4"): (6, "Blackwell Ultra has 1.5 times the FP4 of Blackwell"),
    ("rtx-4090", "int8"): (4, "GeForce halves bf16 with fp32 accumulation, not INT8"),
    ("rtx-4090", "int4"): (8, "GeForce halves bf16 with fp32 accumulation, not INT4"),
    ("rtx-5090", "int8"): (4, "GeForce halves bf16 with fp32 accumulation, not INT8"),
    ("rtx-5090", "mxfp4"): (8, "GeForce halves bf16 with fp32 accumulation, not FP4"),
    ("rtx-5090", "nvfp4"): (8, "GeForce halves bf16 with fp32 accumulation, not FP4"),
    ("mi250x", "int4"): (1, "CDNA 2 runs INT4 at the rate of INT8"),
    ("trainium1", "tf32"): (1, "NeuronCores run TF32 at the rate of bf16"),
    ("inferentia2", "tf32"): (1, "NeuronCores run TF32 at the rate of bf16"),
    ("trainium2", "tf32"): (1, "NeuronCores run TF32 at the rate of bf16"),
    ("trainium3", "tf32"): (1, "NeuronCores run TF32 at the rate of bf16"),
    ("trainium3", "fp8"): (3.751, "2517 to 671 as printed; nominally 4"),
    ("trainium3", "mxfp8"): (3.751, "2517 to 671 as printed; nominally 4"),
    ("trainium3", "mxfp4"): (3.751, "MXFP4 is turned into MXFP8 first"),
    ("rubin", "fp8"): (4.375, "17.5 to 4 as printed"),
    ("rubin", "mxfp6"): (4.375, "17.5 to 4 as printed"),
    ("rubin", "nvfp4"): (8.75, "35 to 4 as printed"),
    ("mtia-450", "mxfp4"): (6, "21 to 3.5 as printed"),
    ("mtia-500", "mxfp4"): (6, "30 to 5 as printed"),
    ("ascend-950dt", "fp8"): (1.891, "919 to 486 as printed"),
    ("ascend-950dt", "mxfp8"): (1.891, "919 to 486 as printed"),
    ("ascend-950dt", "mxfp4"): (3.669, "1783 to 486 as printed"),
}


@each(
    [
        item
        for item in PEAKS
        if item.path.removeprefix("matrix.") in RATIOS and item.chip in HALF_PRECISION
    ]
)
def test_ratio_to_half_precision_is_a_known_one(item: Item) -> None:
    """Rates of the matrix unit are 1/2, 1, 2 or 4 times the 16-bit rate, with listed exceptions."""
    dtype = item.path.removeprefix("matrix.")
    ratio = item.entry["flops_per_s"] / peak(item.chip, half_precision(item.chip))
    if (item.chip, dtype) in UNUSUAL_RATIOS:
        assert ratio == pytest.approx(UNUSUAL_RATIOS[item.chip, dtype][0], rel=3e-3)
    else:
        assert any(math.isclose(ratio, usual, rel_tol=0.03) for usual in RATIOS[dtype]), ratio


@each(UNUSUAL_RATIOS)
def test_an_unusual_ratio_is_one(name: str, dtype: str) -> None:
    """No exception is within the rule."""
    ratio = peak(name, dtype) / peak(name, half_precision(name))
    assert not any(math.isclose(ratio, usual, rel_tol=0.03) for usual in RATIOS[dtype])


@each([item for item in PEAKS if item.path in {"matrix.fp32", "matrix.fp64"}])
def test_wide_formats_are_slower(item: Item) -> None:
    """Matrix fp32 and fp64 run at most at a quarter of the 16-bit rate, up to rounding."""
    assert item.entry["flops_per_s"] <= 0.275 * peak(item.chip, half_precision(item.chip))


@each([item for item in PEAKS if item.path in {"matrix.mxfp4", "matrix.mxfp8"}])
def test_block_scaled_formats_run_at_the_rate_of_their_elements(item: Item) -> None:
    """mxfp4 equals nvfp4 and mxfp8 equals fp8 on every chip that has both."""
    same_rate = {"mxfp4": "nvfp4", "mxfp8": "fp8"}[item.path.removeprefix("matrix.")]
    vendor = CHIPS[item.chip]["vendor"]
    if same_rate == "fp8" or vendor == "NVIDIA":
        assert item.entry["flops_per_s"] == peak(item.chip, same_rate)
    else:
        assert "nvfp4" not in CHIPS[item.chip]["units"]["matrix"], "NVFP4 is NVIDIA's format"


@each([item for item in PEAKS_AND_VARIANTS if item.path.startswith("vector.")])
def test_the_vector_unit_is_no_faster_than_the_matrix_unit(item: Item) -> None:
    """At most the matrix rate in the same dtype, if there is one, and the 16-bit matrix rate."""
    dtype = item.path.removeprefix("vector.")
    peaks = resolved(item.chip)["units"]["matrix"]
    widest = peaks.get(half_precision(item.chip)) or min(
        peaks.values(), key=lambda one: one["flops_per_s"]
    )
    bound = peaks.get(dtype, widest)["flops_per_s"]
    assert item.entry["flops_per_s"] <= bound


SAME_SILICON = [
    ("h100-sxm", "h200-sxm"),
    ("h100-sxm", "gh200-96gb"),
    ("h100-sxm", "gh200-144gb"),
    ("h100-nvl", "h200-nvl"),
    ("a100-sxm-80gb", "a100-sxm-40gb"),
    ("a100-sxm-80gb", "a100-pcie-80gb"),
    ("a100-sxm-80gb", "a100-pcie-40gb"),
    ("mi300x", "mi325x"),
    ("trainium1", "inferentia2"),
]


@each(SAME_SILICON)
def test_the_same_silicon_has_the_same_peaks(one: str, other: str) -> None:
    """Chips that differ in memory only agree in every rate they both list."""
    pairs = [
        (unit, dtype)
        for unit, peaks in CHIPS[other]["units"].items()
        for dtype in peaks
        if dtype in CHIPS[one]["units"][unit]
    ]
    assert len(pairs) >= 6
    assert [peak(one, dtype, unit) for unit, dtype in pairs] == [
        peak(other, dtype, unit) for unit, dtype in pairs
    ]


# Memory


@each(CHIPS)
def test_every_chip_has_a_main_memory_with_bandwidth_and_capacity(name: str) -> None:
    """`hbm` is the main memory of every chip; a note says where the technology is not stated."""
    main = CHIPS[name]["memory"]["hbm"]
    assert {"bytes_per_s", "capacity_bytes"} <= set(main)
    technology = main.get("technology")
    if technology is None:
        assert "technology is not stated" in main["note"]
    else:
        assert re.fullmatch(r"HBM(2e?|3e?|4)?|GDDR(6X?|7)|LPDDR5X|HiBL 1\.0", technology)


PRINTED_IN_GIB = {"trainium1", "inferentia2", "tpu-v5e-gcp-800gib"}


@each(MAIN_MEMORIES)
def test_main_bandwidth_is_decimal_and_plausible(item: Item) -> None:
    """0.1 to 100 TB/s, a multiple of 1e8 bytes/s; of 2^30 only if it is printed in GiB/s."""
    rate = item.entry["bytes_per_s"]
    assert 1e11 <= rate <= 1e14
    if item.chip in PRINTED_IN_GIB:
        assert rate % GIB == 0
        note = VARIANTS.get(item.chip, item.entry)["note"]
        assert "GiB" in note
    else:
        assert rate % GIB != 0
        assert rate % 1e8 == 0


@each(MAIN_MEMORIES)
def test_main_capacity_is_a_size_that_is_sold(item: Item) -> None:
    """Between 10 GB and 1 TB, a whole number of GiB or of GB, never a rounded binary number."""
    size = item.entry["capacity_bytes"]
    assert 1e10 <= size <= 1e12
    assert size % GIB == 0 or size % 1e9 == 0


@each([item for item in LEVELS if item.path == "hbm"])
def test_a_capacity_is_the_printed_label_to_the_byte(item: Item) -> None:
    """A binary capacity quotes its label; a quoted label equals the bytes."""
    label = re.search(r"printed as (\d+) (GiB|GB)\b", item.entry.get("note", ""))
    if label:
        assert item.entry["capacity_bytes"] == int(label[1]) * {"GiB": GIB, "GB": 10**9}[label[2]]
    else:
        assert item.entry["capacity_bytes"] % GIB != 0


@each([item for item in LEVELS if item.path not in {"hbm", "host"}])
def test_on_chip_levels_are_smaller_and_faster_than_main_memory(item: Item) -> None:
    """Below 1 GB, in whole KiB (or the 134e6 of Google's code), with more bandwidth, if known."""
    size = item.entry["capacity_bytes"]
    assert 2**18 <= size < 1e9
    assert size % 1024 == 0 or size == 1.34e8
    assert item.entry.get("bytes_per_s", math.inf) > main_bandwidth(item.chip)


@each([item for item in LEVELS if item.path == "host"])
def test_host_memory_is_larger_and_slower(item: Item) -> None:
    """The LPDDR of a Grace CPU holds more than the HBM beside it and delivers less."""
    assert item.entry["capacity_bytes"] > CHIPS[item.chip]["memory"]["hbm"]["capacity_bytes"]
    assert item.entry["bytes_per_s"] < main_bandwidth(item.chip)


CACHES: dict[str, tuple[str, int]] = {
    "v100-pcie-32gb": ("l2", 6 * 2**20),
    "t4": ("l2", 4 * 2**20),
    "a10": ("l2", 6 * 2**20),
    "a30": ("l2", 24 * 2**20),
    "l4": ("l2", 48 * 2**20),
    "h100-sxm": ("l2", 50 * 2**20),
    "h100-pcie": ("l2", 50 * 2**20),
    "h200-sxm": ("l2", 60 * 2**20),
    "h200-nvl": ("l2", 60 * 2**20),
    "gh200-96gb": ("l2", 60 * 2**20),
    "gh200-144gb": ("l2", 60 * 2**20),
    "b100": ("l2", 126 * 2**20),
    "gb300": ("l2", 126 * 2**20),
    "l40": ("l2", 96 * 2**20),
    "a40": ("l2", 6 * 2**20),
    "h800": ("l2", 50 * 2**20),
    "gb10": ("l2", 24 * 2**20),
    "mi455x": ("l2", 192_000_000),
    "rtx-5090": ("l2", 96 * 2**20),
    "rtx-pro-6000-ws": ("l2", 128 * 2**20),
    "mi210": ("l2", 8 * 2**20),
    "mi250x": ("l2", 16 * 2**20),
    "mi250x-per-gcd": ("l2", 8 * 2**20),
    "mi300a": ("infinity-cache", 256 * 2**20),
    "mi355x": ("infinity-cache", 256 * 2**20),
}


@each(CACHES)
def test_last_level_caches_are_those_that_devices_report(name: str) -> None:
    """Not the 50 MiB of the H100 for an H200, whose six stacks of HBM enable 60."""
    level, capacity = CACHES[name]
    assert resolved(name)["memory"][level]["capacity_bytes"] == capacity


@each([name for name in CHIPS if re.match("tpu|trainium|inferentia", name)])
def test_a_chip_without_a_hardware_cache_lists_none(name: str) -> None:
    """TPUs and NeuronCores have memories that software manages."""
    assert {"l1", "l2", "infinity-cache"}.isdisjoint(CHIPS[name]["memory"])


def test_memory_levels_have_familiar_names() -> None:
    """All chips use the same names."""
    names = {item.path for item in LEVELS}
    assert names <= {
        "hbm",
        "host",
        "l1",
        "l2",
        "vmem",
        "cmem",
        "registers",
        "tmem",
        "infinity-cache",
        "lds",
        "sram",
        "sbuf",
    }


@each([name for name in CHIPS if name in HALF_PRECISION])
def test_critical_intensity_is_between_30_and_700(name: str) -> None:
    """16-bit peak / main bandwidth: an error by 1000 in either number is far outside."""
    assert 30 < peak(name, half_precision(name)) / main_bandwidth(name) < 700


# Networks

# One link, one way [byte/s]; links; all links of a chip, one way [byte/s].
KNOWN_LINKS: dict[tuple[str, str], tuple[float, int, float]] = {
    ("tpu-v2", "ici"): (6.0e10, 4, 2.4e11),
    ("tpu-v3", "ici"): (1.0e11, 4, 4.0e11),
    ("tpu-v4", "ici"): (4.5e10, 6, 2.7e11),
    ("tpu-v5e", "ici"): (4.5e10, 4, 1.8e11),
    ("tpu-v5e", "dcn"): (3.125e9, 1, 3.125e9),
    ("tpu-v5p", "ici"): (9.0e10, 6, 5.4e11),
    ("tpu-v5p", "dcn"): (6.25e9, 1, 6.25e9),
    ("tpu-v6e", "ici"): (9.0e10, 4, 3.6e11),
    ("tpu-v6e", "dcn"): (1.25e10, 1, 1.25e10),
    ("tpu-7x", "ici"): (9.0e10, 6, 5.4e11),
    ("v100-sxm2-32gb", "nvlink"): (2.5e10, 6, 1.5e11),
    ("a100-sxm-80gb", "nvlink"): (2.5e10, 12, 3.0e11),
    ("a100-sxm-40gb", "nvlink"): (2.5e10, 12, 3.0e11),
    ("a100-pcie-80gb", "nvlink"): (3.0e11, 1, 3.0e11),
    ("h100-sxm", "nvlink"): (2.5e10, 18, 4.5e11),
    ("h100-sxm", "infiniband"): (5.0e10, 1, 5.0e10),
    ("h100-nvl", "nvlink"): (3.0e11, 1, 3.0e11),
    ("h200-sxm", "nvlink"): (2.5e10, 18, 4.5e11),
    ("h200-nvl", "nvlink-4way"): (1.5e11, 3, 4.5e11),
    ("h200-nvl", "nvlink-2way"): (4.5e11, 1, 4.5e11),
    ("h20", "nvlink"): (2.5e10, 18, 4.5e11),
    ("gh200-96gb", "nvlink-c2c"): (4.5e11, 1, 4.5e11),
    ("b100", "nvlink"): (5.0e10, 18, 9.0e11),
    ("b200", "nvlink"): (5.0e10, 18, 9.0e11),
    ("gb200", "nvlink"): (5.0e10, 18, 9.0e11),
    ("b300", "nvlink"): (5.0e10, 18, 9.0e11),
    ("gb300", "nvlink"): (5.0e10, 18, 9.0e11),
    ("mi210", "xgmi"): (5.0e10, 3, 1.5e11),
    ("mi250x", "xgmi"): (8.33e10, 3, 2.499e11),
    ("mi300a", "xgmi"): (1.28e11, 3, 3.84e11),
    ("mi300x", "xgmi"): (6.4e10, 7, 4.48e11),
    ("mi300x", "rdma"): (5.0e10, 1, 5.0e10),
    ("mi325x", "xgmi"): (6.4e10, 7, 4.48e11),
    ("mi350x", "xgmi"): (7.68e10, 7, 5.376e11),
    ("mi355x", "xgmi"): (7.68e10, 7, 5.376e11),
    ("gaudi2", "roce"): (3.75e10, 7, 2.625e11),
    ("gaudi3", "roce"): (7.5e10, 7, 5.25e11),
    ("trainium1", "neuronlink"): (4.8e10, 4, 1.92e11),
    ("trainium1", "efa"): (6.25e9, 1, 6.25e9),
    ("trainium2", "neuronlink"): (1.28e11, 4, 5.12e11),
    ("trainium2", "neuronlink-ultraserver"): (6.4e10, 2, 1.28e11),
    ("trainium2", "efa"): (2.5e10, 1, 2.5e10),
    ("trainium3", "neuronlink-rack"): (6.4e10, 5, 3.2e11),
    ("trainium3", "neuronlink-server"): (6.4e10, 4, 2.56e11),
    ("trainium3", "neuronlink-racks"): (1.28e11, 1, 1.28e11),
    ("trainium3", "efa"): (2.5e10, 1, 2.5e10),
    ("a40", "nvlink"): (5.625e10, 1, 5.625e10),
    ("h800", "nvlink"): (2.5e10, 8, 2.0e11),
    ("rubin", "nvlink"): (5.0e10, 36, 1.8e12),
    ("gb10", "ethernet"): (2.5e10, 2, 5.0e10),
    ("mi455x", "scale-up"): (1.8e12, 1, 1.8e12),
    ("mi455x", "rdma"): (1.0e11, 3, 3.0e11),
    ("maia-200", "scale-up"): (1.4e12, 1, 1.4e12),
    ("ascend-910c", "ub"): (3.92e11, 1, 3.92e11),
    ("ascend-950dt", "ub"): (8.4e11, 1, 8.4e11),
}
PCIE_GENERATIONS = {1.6e10, 3.2e10, 6.4e10, 1.28e11}
DOMAINS: dict[tuple[str, str], int | None] = {
    ("tpu-v3", "ici"): 32,
    ("tpu-v4", "ici"): 24,
    ("tpu-v5e", "ici"): 16,
    ("tpu-v5p", "ici"): 24,
    ("tpu-7x", "ici"): 24,
    ("tpu-v6e", "ici"): 16,
    ("a100-sxm-80gb", "nvlink"): 8,
    ("h100-sxm", "nvlink"): 8,
    ("h100-nvl", "nvlink"): 2,
    ("h200-nvl", "nvlink-4way"): 4,
    ("h200-nvl", "nvlink-2way"): 2,
    ("gh200-96gb", "nvlink"): None,
    ("gh200-96gb-dgx", "nvlink"): 256,
    ("gh200-144gb-nvl2", "nvlink"): 2,
    ("gh200-144gb-nvl32", "nvlink"): 32,
    ("b200", "nvlink"): 8,
    ("gb200", "nvlink"): 72,
    ("gb300", "nvlink"): 72,
    ("mi250x", "xgmi"): 4,
    ("mi300a", "xgmi"): 4,
    ("mi300x", "xgmi"): 8,
    ("gaudi2", "roce"): 8,
    ("trainium1", "neuronlink"): 4,
    ("trainium3", "neuronlink-server"): 4,
    ("trainium3", "neuronlink-rack"): 144,
    ("h800", "nvlink"): 8,
    ("rubin", "nvlink"): 72,
    ("mi455x", "scale-up"): 72,
    ("maia-200", "scale-up"): 6144,
    ("ascend-910c", "ub"): 384,
    ("ascend-950dt", "ub"): 1024,
}
TOPOLOGIES: dict[str, set[str]] = {
    "ici": {"torus"},
    "dcn": {"switch"},
    "pcie": {"switch"},
    "nvlink": {"switch", "mesh"},
    "nvlink-2way": {"mesh"},
    "nvlink-4way": {"mesh"},
    "nvlink-c2c": {"switch"},
    "infiniband": {"switch"},
    "rdma": {"switch"},
    "efa": {"switch"},
    "xgmi": {"mesh"},
    "roce": {"mesh"},
    "roce-scale-out": {"switch"},
    "neuronlink": {"torus"},
    "neuronlink-ultraserver": {"torus"},
    "neuronlink-server": {"switch"},
    "neuronlink-rack": {"switch"},
    "neuronlink-racks": {"mesh"},
}
ROUTED = {"dcn", "infiniband", "rdma", "efa", "ethernet", "roce-scale-out"}
"""Networks through routers or a Clos of switches: as large as their buyer makes them."""

RINGS = {
    "tpu-v3": 32,
    "tpu-v4": 4,
    "tpu-v5e": 16,
    "tpu-v5p": 4,
    "tpu-v6e": 16,
    "tpu-7x": 4,
    "trainium1": 4,
    "trainium2": 4,
}
LATENCIES: dict[str, tuple[float, str]] = {
    "ici": (1.0e-6, "book-sharding"),
    "nvlink": (6.0e-7, "nccl-tuning"),
    "pcie": (1.0e-6, "nccl-tuning"),
    "infiniband": (2.7e-6, "nccl-tuning"),
    "rdma": (2.7e-6, "nccl-tuning"),
    "ethernet": (2.7e-6, "nccl-tuning"),
    "xgmi": (8.0e-7, "rccl-tuning"),
    "neuronlink": (1.0e-6, "neuron-intra"),
    "efa": (1.5e-5, "neuron-coll"),
}
"""Least time of one hop [s] by network, the first word of its name, and the document."""

TYPICAL: dict[tuple[str, str], float] = {
    ("a100-sxm-80gb", "nvlink"): 9.5e-7,
    ("h100-sxm", "nvlink"): 8.0e-7,
    ("h200-sxm", "nvlink"): 8.2e-7,
    ("b200", "nvlink"): 1.3e-6,
    ("gb300", "nvlink"): 1.4e-6,
    ("gb200", "infiniband"): 5.0e-6,
    ("l40s", "pcie"): 1.3e-6,
    ("mi300x", "rdma"): 9.5e-6,
}
"""Measured or usual times of one hop [s]."""


@each(KNOWN_LINKS)
def test_links_are_one_way(name: str, network: str) -> None:
    """NVLink 4 sends 4.5e11 per GPU, not the 900 GB/s printed for both directions; others alike."""
    entry = CHIPS[name]["networks"][network]
    per_link, links, total = KNOWN_LINKS[name, network]
    assert (entry["bytes_per_s"], entry["links"]) == (per_link, links)
    assert entry["bytes_per_s"] * entry["links"] == pytest.approx(total, rel=1e-12)


@each([item for item in NETWORKS if item.path == "pcie"])
def test_pcie_is_one_way(item: Item) -> None:
    """Sixteen lanes of a generation in one direction."""
    assert item.entry["bytes_per_s"] in PCIE_GENERATIONS
    assert item.entry["links"] == 1


@each(NETWORKS)
def test_a_network_is_slower_than_main_memory(item: Item) -> None:
    """All links of a chip together carry less than its memory."""
    assert item.entry["bytes_per_s"] >= 1e9
    assert item.entry["bytes_per_s"] * item.entry["links"] < main_bandwidth(item.chip)


@each(NETWORKS)
def test_topology_and_domain_fit_each_other(item: Item) -> None:
    """A mesh has a link per other chip, only a torus closes into rings, counts are integers."""
    entry = item.entry
    assert entry["topology"] in TOPOLOGIES.get(item.path, {"switch", "mesh", "torus"})
    assert all(
        type(entry[key]) is int or (key, entry[key]) == ("domain", "unlimited")
        for key in STRUCTURE & set(entry)
    )
    if entry["topology"] == "mesh":
        assert 2 <= entry["domain"] <= entry["links"] + 1
    if item.path == "nvlink":
        assert (entry["topology"] == "mesh") == (entry.get("domain") == 2)
    if entry["topology"] == "torus":
        assert entry["links"] % 2 == 0
    if "ring_multiple" in entry:
        assert entry["topology"] == "torus"
        assert entry["ring_multiple"] > 2
        assert entry["domain"] % entry["ring_multiple"] == 0


@each(NETWORKS)
def test_a_domain_of_one_leads_to_the_host(item: Item) -> None:
    """The note says that the links join no chips if and only if the domain is 1."""
    assert (item.entry.get("domain") == 1) == (item.entry.get("note", "").find("not to other") >= 0)


@each(DOMAINS)
def test_domains_are_those_of_the_systems(name: str, network: str) -> None:
    """Eight GPUs of a node, 72 of a rack, the longest axis of a TPU pod."""
    assert resolved(name)["networks"][network].get("domain") == DOMAINS[name, network]


@each(NETWORKS)
def test_a_network_is_unlimited_if_and_only_if_it_is_routed(item: Item) -> None:
    """InfiniBand, RoCE between boxes, EFA and DCN are as large as their buyer makes them."""
    assert (item.entry.get("domain") == "unlimited") == (item.path in ROUTED)


@each([item for item in NETWORKS if "domain" not in item.entry])
def test_an_unpublished_domain_has_a_note(item: Item) -> None:
    """The note says why nobody knows the size."""
    assert re.search("not fixed|depends on the system|not recorded", item.entry["note"])


@each(NETWORKS)
def test_a_hop_has_a_latency_or_the_note_says_why_not(item: Item) -> None:
    """The vendor's constant for one hop; without one, no hops (domain 1), or none published."""
    entry = item.entry
    if "hop_latency_s" in entry:
        latency, document = LATENCIES[item.path.split("-")[0]]
        assert (entry["hop_latency_s"], entry["source"]["hop_latency_s"]) == (latency, [document])
    else:
        note = entry["note"]
        assert entry.get("domain") == 1 or re.search("latency is not published", note)


@each([item for item in NETWORKS if "typical_hop_latency_s" in item.entry])
def test_a_typical_latency_is_above_the_least(item: Item) -> None:
    """So the least one is safe in a lower bound; at most five times as long."""
    least = item.entry.get("hop_latency_s", 2e-7)
    assert least < item.entry["typical_hop_latency_s"] <= 5 * least


@each(TYPICAL)
def test_typical_latencies_are_the_measured_ones(name: str, network: str) -> None:
    """Slope per step of the smallest collectives, and the constants of RCCL and of racks."""
    assert CHIPS[name]["networks"][network]["typical_hop_latency_s"] == TYPICAL[name, network]


@each(["tpu-v4", "tpu-v5p", "tpu-7x"])
def test_rings_of_reconfigurable_pods_say_what_an_axis_of_4_assumes(name: str) -> None:
    """In a slice below a cube of 4 x 4 x 4 no axis closes."""
    assert "whole cubes of 4 x 4 x 4" in CHIPS[name]["networks"]["ici"]["note"]


def test_only_known_tori_close_into_rings() -> None:
    """v5e and v6e close at 16, v4, v5p and 7x at multiples of 4, instances of Trainium at 4."""
    found = {
        item.chip: item.entry["ring_multiple"] for item in NETWORKS if "ring_multiple" in item.entry
    }
    assert found == RINGS


@each([name for name, chip in CHIPS.items() if "networks" in chip])
def test_the_default_network_is_the_one_between_chips(name: str) -> None:
    """The first network is the vendor's fabric; another is first only if it is the only one."""
    first, *rest = CHIPS[name]["networks"]
    assert first not in {"pcie", "nvlink-c2c", *ROUTED} or not rest


# Power, prices, measurements


@each(POWERS)
def test_power_is_in_watts(item: Item) -> None:
    """Between 50 and 3000 W: neither kilowatts nor milliwatts."""
    assert 50 <= item.entry["watts"] <= 3000


@each(PRICES)
def test_prices_are_dated_and_per_chip_hour(item: Item) -> None:
    """0.1 to 50 dollars, with a date: the price of a node or a month is outside."""
    assert 0.1 <= item.entry["usd_per_hour"] <= 50
    assert re.fullmatch(r"20\d\d(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?", item.entry["date"])
    assert set(item.entry) == KEYS["prices"]


@each(MEASURED)
def test_a_measured_fraction_is_the_quotient_in_its_note(item: Item) -> None:
    """Below 1 at the printed clock, and a / b to the printed digit if the note gives `a of b`."""
    fraction = item.entry["fraction_of_peak"]
    assert 0.3 < fraction < (2 if CHIPS[item.chip].get("clock") == "boost" else 1)
    quotient = re.search(r"([\d.]+e\d+) of ([\d.]+e\d+)", item.entry["note"])
    if quotient:
        assert fraction == pytest.approx(float(quotient[1]) / float(quotient[2]), abs=6e-4)
    else:
        assert fraction in {0.95, 0.82, 0.803, 0.8}


@each([("rtx-5090", 1.212), ("h200-nvl", 1.021)])
def test_cards_above_their_boost_clock_are_marked(name: str, fraction: float) -> None:
    """The measured bf16 rate is above the peak, and `clock` and the note say why."""
    assert CHIPS[name]["clock"] == "boost"
    assert "clock" in CHIPS[name]["note"]
    bf16 = [entry for entry in CHIPS[name]["measured"] if entry["what"].startswith("bf16")]
    assert [entry["fraction_of_peak"] for entry in bf16] == [fraction]


def test_cards_for_desks_and_bridges_are_marked_as_boosted() -> None:
    """Consumer, workstation and NVL cards; the note of each says which clock is meant."""
    boosted = {name for name, chip in CHIPS.items() if "clock" in chip}
    assert boosted >= {"rtx-4090", "rtx-5090", "rtx-pro-6000-ws", "h200-nvl"}
    assert [name for name in boosted if "clock" not in CHIPS[name]["note"]] == []


# Sources


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


# Variants


@each(VARIANTS)
def test_a_variant_is_its_base_with_some_numbers_replaced(name: str) -> None:
    """The id begins with the base, a chip; each path names one of its numbers; no other keys."""
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
def test_an_override_changes_its_number_or_confirms_it(name: str, path: str) -> None:
    """It differs, or the note confirms it; a sparse figure only where it is said to be meant."""
    base: Any = CHIPS[VARIANTS[name]["base"]]
    for step in path.split("."):
        base = base[step]
    value = OVERRIDES[name][path]
    assert value != base or "confirms" in VARIANTS[name]["note"]
    assert 0.4 <= value / base <= 1.2 or path in VARIANTS[name]["plausible"]


# The worked values of the model

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
def test_critical_intensities_of_the_book_are_reachable(name: str) -> None:
    """bf16 peak, main bandwidth and their quotient, to the printed digit."""
    rate, bandwidth, intensity = WORKED[name]
    assert (peak(name, "bf16"), main_bandwidth(name)) == (rate, bandwidth)
    assert rate / bandwidth == pytest.approx(intensity, abs=0.06)


def test_tpu_v5e_int8_at_the_bandwidth_of_the_books_tables() -> None:
    """3.94e14 / 8.1e11 = 486.42."""
    assert peak("tpu-v5e-book-tables", "int8") / main_bandwidth(
        "tpu-v5e-book-tables"
    ) == pytest.approx(486.42, abs=0.005)


def test_tpu_v5p_vector_unit_as_the_book_has_it() -> None:
    """7e12 / 2.8e12 = 2.5, which the book calls about 3."""
    assert peak("tpu-v5p-book-roofline", "fp32", "vector") == 7e12
    assert (
        peak("tpu-v5p-book-roofline", "fp32", "vector") / main_bandwidth("tpu-v5p-book-roofline")
        == 2.5
    )


def test_fp8_of_the_h100_is_half_of_the_printed_figure() -> None:
    """1.979e15 FLOP/s."""
    assert peak("h100-sxm", "fp8") == 1.979e15


def test_two_tpu_v5e_need_a_contraction_of_8756() -> None:
    """2 * 1.97e14 / 4.5e10 = 8755.56 with one link between two chips."""
    link = CHIPS["tpu-v5e"]["networks"]["ici"]["bytes_per_s"]
    assert 2 * peak("tpu-v5e", "bf16") / link == pytest.approx(8755.56, abs=0.005)


@each([("b100", 0.82), ("tpu-v5p", 0.95)])
def test_the_achievable_fractions_of_the_book_are_kept(name: str, fraction: float) -> None:
    """About 82 % of a B100's bf16 peak, about 95 % of a TPU v5p's."""
    assert fraction in [entry["fraction_of_peak"] for entry in CHIPS[name]["measured"]]
