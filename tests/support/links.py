"""Interconnects of every kind, and sweeps that solve for the number of chips they join."""

from __future__ import annotations

from typing import Any

from cases import made_up

LINKS: dict[str, dict[str, Any]] = {
    "switch": {"topology": "switch", "links": 7},
    "switch of 8": {"topology": "switch", "links": 7, "domain": 8},
    "switch of 1": {"topology": "switch", "links": 7, "domain": 1},
    "mesh": {"topology": "mesh", "links": 7},
    "mesh of 2": {"topology": "mesh", "links": 7, "domain": 2},
    "mesh of one link": {"topology": "mesh"},
    "slow switch": {"topology": "switch", "links": 7, "hop_latency_s": 1e-6},
    "line": {"topology": "torus", "links": 4},
    "slow line": {"topology": "torus", "links": 4, "hop_latency_s": 1e-8},
    **{
        f"rings of {n}": {"topology": "torus", "links": 4, "ring_multiple": n}
        for n in (1, 2, 3, 4, 16)
    },
    **{
        f"rings of {n} in 13": {"topology": "torus", "links": 4, "ring_multiple": n, "domain": 13}
        for n in (1, 2, 3)
    },
    "rings of 4 in 64": {"topology": "torus", "links": 4, "ring_multiple": 4, "domain": 64},
    "slow rings of 4": {"topology": "torus", "links": 4, "ring_multiple": 4, "hop_latency_s": 1e-6},
    "slow rings of 4 in 64": {
        "topology": "torus",
        "links": 4,
        "ring_multiple": 4,
        "domain": 64,
        "hop_latency_s": 1e-6,
    },
    "slow switch of 8": {"topology": "switch", "links": 7, "domain": 8, "hop_latency_s": 1e-5},
}
RATES = {"memory": (2e10, 2e11, 1e13), "network": (1e8, 1e10, 1e12)}
"""Such that memory, or the network, or nothing ends the split, on few chips or on many [byte/s]."""


for link in LINKS.values():
    if link["topology"] != "mesh":
        link.setdefault("domain", "unlimited")
LINKS["unpublished switch"] = {"topology": "switch", "links": 7, "domain": None}
LINKS["unpublished rings"] = {
    "topology": "torus",
    "ring_multiple": 4,
    "domain": None,
    "hop_latency_s": 1e-6,
}
LINKS["slow rings of 3"] = {**LINKS["rings of 3"], "hop_latency_s": 1e-6}


def splitters(link: dict[str, Any]) -> dict[str, Any]:
    """Return chips of one interconnect and several rates."""
    return {
        f"memory-{memory:.0f}-network-{network:.0f}": made_up(
            1.31072e14, memory, {"bytes_per_s": network, **link}
        )
        for memory in RATES["memory"]
        for network in RATES["network"]
    }


def split_sweep(chips: dict[str, Any]) -> dict[str, Any]:
    """Return a sweep that solves for the number of chips, split in every way."""
    return {
        "operation": "matmul",
        "grid": {"B": [1024, 65536], "D": 4096, "F": 8192},
        "dtypes": ["bf16"],
        "chips": list(chips),
        "sharding": ["contracting/all-reduce", "column/gather-x", "batch/gather-w", "batch"],
        "shards": [1],
        "thresholds": ["shards"],
    }
