"""Numbers of the chip catalogue fit each other and their units; read without the package."""

import math
import re

import pytest
from chip_file import (
    BASES,
    CHIPS,
    HALF_PRECISION,
    LEVELS,
    NETWORKS,
    PEAKS,
    WRITTEN,
    each,
    half_precision,
    items_of,
    main_bandwidth,
    peak,
)

GIB = 2**30


@each(items_of(CHIPS, "units"))
def test_every_peak_is_plausible(item):
    """None is below 1 TFLOP/s or above the 4.03e16 of the fastest FP4, as printed."""
    assert 1e12 <= item.entry["flops_per_s"] <= 4.03e16


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


RATIOS: dict[str, set[float]] = {
    "tf32": {0.5, 1},
    "fp16": {1},
    "fp8": {1, 2},
    "int8": {1, 2},
    "mxfp8": {2},
    "mxfp6": {2, 4},
    "mxfp4": {4},
    "nvfp4": {4},
    "int4": {4},
}
"""Peaks over that of bf16 (or fp16). A sparse figure is off by two; rounding is within 3 %."""

UNUSUAL: dict[str, set[float]] = {
    "b300": {0.0682, 6},  # Blackwell Ultra: next to no INT8, 1.5 times the FP4 of Blackwell
    "gb300": {0.066, 6},
    "rtx-4090": {4, 8},  # GeForce halves bf16 with fp32 accumulation, neither integers
    "rtx-5090": {4, 8},  # nor FP4
    "mi250x": {1},  # CDNA 2 runs INT4 at the rate of INT8
    "trainium3": {3.751},  # 2517 to 671 as printed; MXFP4 is turned into MXFP8 first
    "rubin": {4.375, 8.75},  # 17.5 and 35 to 4 as printed
    "mtia-450": {6},  # 21 to 3.5 as printed
    "mtia-500": {6},  # 30 to 5 as printed
    "ascend-950dt": {1.891, 3.669},  # 919 and 1783 to 486 as printed
}


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
def test_the_same_silicon_has_the_same_peaks(one, other):
    peaks = [{item.path: item.entry for item in items_of([name], "units")} for name in (one, other)]
    both = peaks[0].keys() & peaks[1].keys()
    assert len(both) >= 6
    for path in both:
        assert peaks[0][path]["flops_per_s"] == peaks[1][path]["flops_per_s"]


PRINTED_IN_GIB = {"trainium1", "inferentia2", "tpu-v5e-gcp-800gib"}


@each([item for item in items_of(CHIPS, "memory") if item.path == "hbm"])
def test_main_memory_is_decimal_and_plausible(item):
    """0.1 to 100 TB/s, a multiple of 1e8 byte/s; of 2^30 only if it is printed in GiB/s.

    The capacity is between 10 GB and 1 TB, whole GiB or GB: the printed label to the byte.
    """
    rate, size = item.entry["bytes_per_s"], item.entry["capacity_bytes"]
    assert 1e11 <= rate <= 1e14
    assert 1e10 <= size <= 1e12
    if item.chip in PRINTED_IN_GIB:
        assert rate % GIB == 0
        assert "GiB" in WRITTEN[item.chip].get("note", "") + item.entry.get("note", "")
    else:
        assert rate % 1e8 == 0
        assert rate % GIB
    label = re.search(r"printed as (\d+) (GiB|GB)\b", item.entry.get("note", ""))
    assert size % GIB == 0 or size % 1e9 == 0
    if label and item.chip in BASES:
        assert size == int(label[1]) * {"GiB": GIB, "GB": 10**9}[label[2]]


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


@each(NETWORKS)
def test_a_network_is_slower_than_main_memory(item):
    entry = item.entry
    assert entry["bytes_per_s"] >= 1e9
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
    if "hop_latency_s" in entry:
        latency, document = LATENCIES[item.path.split("-")[0]]
        assert (entry["hop_latency_s"], entry["source"]["hop_latency_s"]) == (latency, [document])
    else:
        assert entry.get("domain") == 1 or "latency is not published" in entry["note"]
    least = entry.get("hop_latency_s", 2e-7)
    assert least < entry.get("typical_hop_latency_s", 2 * least) <= 5 * least


@each([name for name in BASES if "networks" in CHIPS[name]])
def test_the_default_network_is_the_one_between_chips(name):
    first, *rest = CHIPS[name]["networks"]
    assert first not in {"pcie", "nvlink-c2c", *ROUTED} or not rest
