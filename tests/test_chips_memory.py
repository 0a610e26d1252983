"""Memory levels of config/chips.yaml: bandwidths, capacities, caches; read without the package."""

from __future__ import annotations

import math
import re

from chip_file import (
    CHIPS,
    GIB,
    HALF_PRECISION,
    LEVELS,
    MAIN_MEMORIES,
    VARIANTS,
    each,
    half_precision,
    main_bandwidth,
    peak,
    resolved,
)


@each(CHIPS)
def test_every_chip_has_a_main_memory_with_bandwidth_and_capacity(name):
    main = CHIPS[name]["memory"]["hbm"]
    assert {"bytes_per_s", "capacity_bytes"} <= set(main)
    technology = main.get("technology")
    if technology is None:
        assert "technology is not stated" in main["note"]
    else:
        assert re.fullmatch(r"HBM(2e?|3e?|4)?|GDDR(6X?|7)|LPDDR5X|HiBL 1\.0", technology)


PRINTED_IN_GIB = {"trainium1", "inferentia2", "tpu-v5e-gcp-800gib"}


@each(MAIN_MEMORIES)
def test_main_bandwidth_is_decimal_and_plausible(item):
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
def test_main_capacity_is_a_size_that_is_sold(item):
    """Between 10 GB and 1 TB, a whole number of GiB or of GB, never a rounded binary number."""
    size = item.entry["capacity_bytes"]
    assert 1e10 <= size <= 1e12
    assert size % GIB == 0 or size % 1e9 == 0


@each([item for item in LEVELS if item.path == "hbm"])
def test_a_capacity_is_the_printed_label_to_the_byte(item):
    label = re.search(r"printed as (\d+) (GiB|GB)\b", item.entry.get("note", ""))
    if label:
        assert item.entry["capacity_bytes"] == int(label[1]) * {"GiB": GIB, "GB": 10**9}[label[2]]
    else:
        assert item.entry["capacity_bytes"] % GIB != 0


@each([item for item in LEVELS if item.path not in {"hbm", "host"}])
def test_on_chip_levels_are_smaller_and_faster_than_main_memory(item):
    """Below 1 GB, in whole KiB (or the 134e6 of Google's code), with more bandwidth, if known."""
    size = item.entry["capacity_bytes"]
    assert 2**18 <= size < 1e9
    assert size % 1024 == 0 or size == 1.34e8
    assert item.entry.get("bytes_per_s", math.inf) > main_bandwidth(item.chip)


@each([item for item in LEVELS if item.path == "host"])
def test_host_memory_is_larger_and_slower(item):
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
def test_last_level_caches_are_those_that_devices_report(name):
    """Not the 50 MiB of the H100 for an H200, whose six stacks of HBM enable 60."""
    level, capacity = CACHES[name]
    assert resolved(name)["memory"][level]["capacity_bytes"] == capacity


@each([name for name in CHIPS if re.match("tpu|trainium|inferentia", name)])
def test_a_chip_without_a_hardware_cache_lists_none(name):
    assert {"l1", "l2", "infinity-cache"}.isdisjoint(CHIPS[name]["memory"])


def test_memory_levels_have_familiar_names():
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
def test_critical_intensity_is_between_30_and_700(name):
    assert 30 < peak(name, half_precision(name)) / main_bandwidth(name) < 700
