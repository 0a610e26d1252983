"""Networks of config/chips.yaml: links, domains, latencies; read without the package."""

from __future__ import annotations

import re

import pytest
from chip_file import (
    CHIPS,
    NETWORKS,
    STRUCTURE,
    each,
    main_bandwidth,
    resolved,
)

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
def test_links_are_one_way(name, network):
    """NVLink 4 sends 4.5e11 per GPU, not the 900 GB/s printed for both directions; others alike."""
    entry = CHIPS[name]["networks"][network]
    per_link, links, total = KNOWN_LINKS[name, network]
    assert (entry["bytes_per_s"], entry["links"]) == (per_link, links)
    assert entry["bytes_per_s"] * entry["links"] == pytest.approx(total, rel=1e-12)


@each([item for item in NETWORKS if item.path == "pcie"])
def test_pcie_is_one_way(item):
    assert item.entry["bytes_per_s"] in PCIE_GENERATIONS
    assert item.entry["links"] == 1


@each(NETWORKS)
def test_a_network_is_slower_than_main_memory(item):
    assert item.entry["bytes_per_s"] >= 1e9
    assert item.entry["bytes_per_s"] * item.entry["links"] < main_bandwidth(item.chip)


@each(NETWORKS)
def test_topology_and_domain_fit_each_other(item):
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
def test_a_domain_of_one_leads_to_the_host(item):
    assert (item.entry.get("domain") == 1) == (item.entry.get("note", "").find("not to other") >= 0)


@each(DOMAINS)
def test_domains_are_those_of_the_systems(name, network):
    assert resolved(name)["networks"][network].get("domain") == DOMAINS[name, network]


@each(NETWORKS)
def test_a_network_is_unlimited_if_and_only_if_it_is_routed(item):
    assert (item.entry.get("domain") == "unlimited") == (item.path in ROUTED)


@each([item for item in NETWORKS if "domain" not in item.entry])
def test_an_unpublished_domain_has_a_note(item):
    """The note says why nobody knows the size."""
    assert re.search("not fixed|depends on the system|not recorded", item.entry["note"])


@each(NETWORKS)
def test_a_hop_has_a_latency_or_the_note_says_why_not(item):
    entry = item.entry
    if "hop_latency_s" in entry:
        latency, document = LATENCIES[item.path.split("-")[0]]
        assert (entry["hop_latency_s"], entry["source"]["hop_latency_s"]) == (latency, [document])
    else:
        note = entry["note"]
        assert entry.get("domain") == 1 or re.search("latency is not published", note)


@each([item for item in NETWORKS if "typical_hop_latency_s" in item.entry])
def test_a_typical_latency_is_above_the_least(item):
    least = item.entry.get("hop_latency_s", 2e-7)
    assert least < item.entry["typical_hop_latency_s"] <= 5 * least


@each(TYPICAL)
def test_typical_latencies_are_the_measured_ones(name, network):
    assert CHIPS[name]["networks"][network]["typical_hop_latency_s"] == TYPICAL[name, network]


@each(["tpu-v4", "tpu-v5p", "tpu-7x"])
def test_rings_of_reconfigurable_pods_say_what_an_axis_of_4_assumes(name):
    assert "whole cubes of 4 x 4 x 4" in CHIPS[name]["networks"]["ici"]["note"]


def test_only_known_tori_close_into_rings():
    found = {
        item.chip: item.entry["ring_multiple"] for item in NETWORKS if "ring_multiple" in item.entry
    }
    assert found == RINGS


@each([name for name, chip in CHIPS.items() if "networks" in chip])
def test_the_default_network_is_the_one_between_chips(name):
    first, *rest = CHIPS[name]["networks"]
    assert first not in {"pcie", "nvlink-c2c", *ROUTED} or not rest
