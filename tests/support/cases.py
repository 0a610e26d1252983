"""Small fixed sweeps that together reach every branch of the formulas."""

from typing import Any

from case_files import case

WRITTEN = case("sweeps")
CHIPS: dict[str, Any] = {
    name: {"source": "made up", **chip} for name, chip in WRITTEN["chips"].items()
}
SWEEPS: dict[str, dict[str, Any]] = WRITTEN["sweeps"]
LINKS: dict[str, dict[str, Any]] = {
    name: link if link["topology"] == "mesh" else {"domain": "unlimited", **link}
    for name, link in WRITTEN["links"].items()
}
"""Interconnects of every kind."""


def config_of(sweep, chips=CHIPS):
    """Return a config of one sweep and the chips it names."""
    return {
        "sweeps": {"case": sweep},
        "chips": {name: chips[name] for name in sweep["chips"]},
        "charts": [],
    }


def made_up(flops_per_s, bytes_per_s, link=None, dtypes=("bf16",)):
    """Return a chip with one peak for all dtypes, one memory and, if given, an interconnect."""
    if link and link["topology"] != "mesh":
        link = {"domain": "unlimited", **link}
    return {
        "source": "made up",
        "units": {"matrix": {dtype: {"flops_per_s": flops_per_s} for dtype in dtypes}},
        "memory": {"hbm": {"bytes_per_s": bytes_per_s}},
        "networks": {"fabric": link} if link else {},
    }


def split_config(link):
    """Return a config that solves for the number of chips joined, split in every way.

    Memory, or the network, or nothing ends the split, on few chips or on many.
    """
    chips = {
        f"memory-{memory:.0f}-network-{network:.0f}": made_up(
            1.31072e14, memory, {"bytes_per_s": network, **link}
        )
        for memory in (2e10, 2e11, 1e13)
        for network in (1e8, 1e10, 1e12)
    }
    sweep = {
        "operation": "matmul",
        "grid": {"B": [1024, 65536], "D": 4096, "F": 8192},
        "dtypes": ["bf16"],
        "chips": list(chips),
        "sharding": ["contracting/all-reduce", "column/gather-x", "batch/gather-w", "batch"],
        "shards": [1],
        "thresholds": ["shards"],
    }
    return config_of(sweep, chips)
