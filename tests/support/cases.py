"""Small fixed sweeps that together reach every branch of the formulas; `make mutate` uses them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

TORUS = {
    "bytes_per_s": 45e9,
    "links": 6,
    "topology": "torus",
    "ring_multiple": 4,
    "domain": "unlimited",
    "hop_latency_s": 1e-6,
    "typical_hop_latency_s": 3e-6,
}
MESH = {"bytes_per_s": 64e9, "links": 7, "topology": "mesh", "domain": 8}
SWITCH = {
    "bytes_per_s": 25e9,
    "links": 18,
    "topology": "switch",
    "domain": 72,
    "hop_latency_s": 5e-7,
}
LINE = {"bytes_per_s": 1e11, "links": 4, "topology": "torus", "domain": "unlimited"}
ROUTED = {
    "bytes_per_s": 5e10,
    "topology": "switch",
    "domain": "unlimited",
    "hop_latency_s": 2.7e-6,
}
CHIPS: dict[str, Any] = {
    "ring": {
        "source": "made up",
        "units": {
            "matrix": {"bf16": {"flops_per_s": 1.97e14}, "int8": {"flops_per_s": 3.94e14}},
            "vector": {"bf16": {"flops_per_s": 3e12}, "fp32": {"flops_per_s": 7e12}},
        },
        "memory": {
            "hbm": {"bytes_per_s": 8.2e11, "capacity_bytes": 4e7},
            "l2": {"bytes_per_s": 5e12},
        },
        "networks": {"fabric": TORUS},
        "calibration": {"bf16": {"math": 0.8, "memory": 0.9, "network": 0.7, "overhead_s": 3e-6}},
    },
    "mesh": {
        "source": "made up",
        "units": {
            "matrix": {"bf16": {"flops_per_s": 1e15}},
            "vector": {"fp32": {"flops_per_s": 5e13}},
        },
        "memory": {"hbm": {"bytes_per_s": 3.2e12, "capacity_bytes": 8e10}},
        "networks": {"fabric": MESH},
        "efficiency": {"memory": 0.82, "network": 0.5},
    },
    "switch": {
        "source": "made up",
        "units": {
            "matrix": {"bf16": {"flops_per_s": 5e14}, "int8": {"flops_per_s": 1e15}},
            "vector": {"fp32": {"flops_per_s": 6e13}},
        },
        "memory": {"hbm": {"bytes_per_s": 2e12, "capacity_bytes": 2e8}},
        "networks": {"fabric": SWITCH},
    },
    "line": {
        "source": "made up",
        "units": {
            "matrix": {"bf16": {"flops_per_s": 4e14}, "int8": {"flops_per_s": 4e14}},
            "vector": {"fp32": {"flops_per_s": 2e13}},
        },
        "memory": {"hbm": {"bytes_per_s": 1e12}},
        "networks": {"fabric": LINE},
    },
    "alone": {
        "source": "made up",
        "units": {
            "matrix": {"bf16": {"flops_per_s": 3e14}},
            "vector": {"fp32": {"flops_per_s": 1e12}},
        },
        "memory": {"hbm": {"bytes_per_s": 6e11, "capacity_bytes": 24e9}},
    },
}
ALL = list(CHIPS)
JOINED = ALL[:-1]
CHIPS["hardly-bound"] = {
    "source": "made up: memory nearly as fast as math, so that thresholds are one, two and three",
    "units": {"matrix": {"bf16": {"flops_per_s": 3e12}}},
    "memory": {"hbm": {"bytes_per_s": 2e12}},
    "networks": {"fabric": {"bytes_per_s": 2e12, "topology": "switch", "domain": "unlimited"}},
}
CHIPS["even"] = {
    "source": "math and memory take a microsecond at 64, and everything just fits",
    "units": {"matrix": {"bf16": {"flops_per_s": 5.24288e11}}},
    "memory": {"hbm": {"bytes_per_s": 2.4576e10, "capacity_bytes": 24576}},
}
for chip, networks in {
    "nodes": {"fabric": {**SWITCH, "domain": 8}, "routed": ROUTED},
    "quads": {"fabric": {**MESH, "links": 3, "domain": 4}, "routed": {**SWITCH, "domain": 20}},
    "towers": {"fabric": {**SWITCH, "domain": 2}, "routed": {**MESH, "links": 3, "domain": 4}},
    "rows": {"fabric": {**SWITCH, "domain": 4}, "routed": {**TORUS, "links": 2}},
    "opaque": {"fabric": {**SWITCH, "domain": None}, "routed": ROUTED},
    "cube": {"fabric": TORUS, "routed": ROUTED},
}.items():
    CHIPS[chip] = {**CHIPS["switch"], "networks": networks}
EXPERTS = "EBD,EDF->EBF"
GRID = {"B": [1, 17, 256, 300], "D": [1000, 4096], "F": [1, 8192]}
OWN = {"x": "mxfp4", "w": "nvfp4", "out": "fp32", "compute": "bf16"}

SWEEPS: dict[str, dict[str, Any]] = {
    "on one chip": {
        "operation": "matmul",
        "grid": GRID,
        "dtypes": ["bf16", "int8", OWN],
        "chips": ALL,
        "thresholds": ["B", "D", "F"],
    },
    "on several": {
        "operation": "matmul",
        "grid": {"B": [17, 300], "D": 1000, "F": [1, 8192]},
        "dtypes": ["bf16"],
        "chips": JOINED,
        "sharding": ["column/gather-x", "batch"],
        "shards": [2, 8],
        "thresholds": ["B", "F"],
    },
    "on one and on several": {
        "operation": "matmul",
        "grid": {"B": [64, 2000], "D": [4096], "F": "D"},
        "dtypes": ["bf16"],
        "chips": ALL,
        "sharding": ["none", "contracting/reduce-scatter", {"split": "B", "first": "all-gather w"}],
        "shards": [1, 2, 4, 12],
        "thresholds": ["B", "D", "shards"],
    },
    "in tiles": {
        "operation": "matmul",
        "grid": {"B": [1, 16, 100, 1000], "D": [100, 4096], "F": [300, 8192]},
        "dtypes": ["bf16", OWN],
        "chips": ALL,
        "tile": {"B": 16, "D": 100},
        "flops": "leading",
        "thresholds": ["B", "D", "F"],
    },
    "in tiles on several": {
        "operation": "matmul",
        "grid": {"B": [1, 100, 1000], "D": 4096, "F": [300, 8192]},
        "dtypes": ["bf16"],
        "chips": ["ring", "mesh"],
        "tile": {"B": 16, "F": 128},
        "flops": "leading",
        "sharding": ["batch/gather-w", "contracting/all-reduce", "column"],
        "shards": [2, 3],
        "thresholds": ["B", "D"],
    },
    "in tiles, split beside them": {
        "operation": "matmul",
        "grid": {"B": [100, 3000], "D": 65536, "F": 3000},
        "dtypes": ["bf16"],
        "chips": ["ring", "mesh"],
        "tile": {"B": 1024, "F": 1024},
        "flops": "leading",
        "sharding": "contracting/reduce-scatter",
        "shards": [2],
        "thresholds": ["shards"],
    },
    "in tiles that differ": {
        "operation": "matmul",
        "grid": {"B": [1, 100, 1000], "D": 4096, "F": 300},
        "dtypes": ["bf16"],
        "chips": ["ring"],
        "tile": {"B": 16},
        "flops": "leading",
        "sharding": "batch",
        "shards": [2, 3],
        "thresholds": ["D"],
    },
    "counted exactly": {
        "operation": "matmul",
        "grid": {"B": [1, 640], "D": [8, 1024], "F": [1, 4096]},
        "dtypes": ["bf16"],
        "chips": ["ring", "line"],
        "flops": "exact",
        "sharding": ["none", "contracting/all-reduce"],
        "shards": [1, 8],
        "thresholds": ["B", "D", "shards"],
    },
    "shapes": {
        "operation": "sequence-matmul",
        "grid": {"B": [1, 64], "S": [1, 4096]},
        "shapes": [{"name": "up", "D": 4096, "F": 14336}, {"name": "down", "D": 14336, "F": 4096}],
        "dtypes": ["bf16", "w8a16"],
        "chips": ["ring", "switch"],
        "sharding": ["none", "column/gather-x"],
        "shards": [1, 16],
        "efficiency": {"math": 0.5, "network": 0.95},
        "thresholds": ["B", "D"],
    },
    "of vectors": {
        "operation": "dot",
        "grid": {"D": [1, 2, 3, 1000, 2**40]},
        "dtypes": [{"x": "bf16", "w": "bf16", "out": "bf16", "compute": "fp32"}],
        "chips": ALL,
        "thresholds": ["D"],
    },
    "of a matrix for each": {
        "operation": "per-example-matmul",
        "grid": {"B": [1, 512], "D": [1024, 65536], "F": [3, 4096]},
        "dtypes": ["int8"],
        "chips": ["ring", "switch"],
        "sharding": [{"split": "B"}, {"split": "F", "first": "all-gather x"}],
        "shards": [2, 3],
        "thresholds": ["B", "D", "F", "shards"],
    },
    "of two levels of memory": {
        "operation": "matmul",
        "grid": {"B": [1, 100, 10000], "D": 1024, "F": 1024},
        "dtypes": ["bf16"],
        "chips": ["ring"],
        "memory": ["l2", "hbm"],
        "network": "fabric",
        "thresholds": ["B"],
    },
    "of a tie": {
        "operation": "matmul",
        "grid": {"B": [63, 64, 65], "D": [64, 65], "F": 64},
        "dtypes": ["bf16"],
        "chips": ["even"],
        "thresholds": ["B"],
    },
    "of few": {
        "operation": "matmul",
        "grid": {"B": [1, 3], "D": [3, 4000], "F": [2, 4000]},
        "dtypes": ["bf16"],
        "chips": ["hardly-bound"],
        "sharding": ["none", "batch/gather-w"],
        "shards": [1, 2],
        "thresholds": ["B", "D", "F", "shards"],
    },
    "of half a byte": {
        "operation": "matmul",
        "grid": {"B": 1, "D": [2, 3], "F": 1},
        "dtypes": [{"x": "int4", "w": "int4", "out": "int4", "compute": "bf16"}],
        "chips": ["ring", "switch"],
        "sharding": ["none", "contracting/reduce-scatter"],
        "shards": [1, 2],
        "thresholds": ["B", "D", "shards"],
    },
    "over two networks": {
        "operation": "matmul",
        "grid": {"B": [64, 4096], "D": 32768, "F": 8192},
        "dtypes": ["bf16"],
        "chips": ["nodes", "quads", "towers", "opaque", "cube", "switch"],
        "network": [["fabric", "routed"], "routed"],
        "sharding": ["contracting/all-reduce", "column/gather-x", "batch"],
        "shards": [1, 2, 6, 8, 24],
        "thresholds": ["B", "D", "shards"],
    },
    "over an outer torus": {
        "operation": "matmul",
        "grid": {"B": [64, 4096], "D": 4096, "F": 8192},
        "dtypes": ["bf16"],
        "chips": ["rows"],
        "network": ["fabric", "routed"],
        "sharding": ["contracting/reduce-scatter"],
        "shards": [3, 12, 16],
        "thresholds": ["F"],
    },
    "along several axes": {
        "operation": "matmul",
        "grid": {"B": [64, 4096], "D": [4096, 32768], "F": 8192},
        "dtypes": ["bf16"],
        "chips": ["ring", "line", "switch", "mesh", "alone"],
        "sharding": ["none", "contracting/all-reduce", "column/gather-x"],
        "shards": [1, 16, "4x4", "2x8", "2x2x2", "2x2x2x2"],
        "thresholds": ["B", "D"],
        "shares": [1, 0.9],
    },
    "to experts": {
        "operation": EXPERTS,
        "grid": {"E": [64], "B": [16, 1024], "D": 4096, "F": 8192},
        "dtypes": ["bf16"],
        "chips": ["ring", "mesh", "switch", "line", "nodes"],
        "sharding": [
            {"split": "E", "first": "all-to-all x", "then": "all-to-all"},
            {"split": "F", "then": "all-to-all"},
        ],
        "shards": [1, 2, 3, 4, 7, 8],
        "thresholds": ["B", "F"],
    },
    "to experts on other nodes": {
        "operation": EXPERTS,
        "grid": {"E": [64], "B": [16, 1024], "D": 4096, "F": 8192},
        "dtypes": ["bf16"],
        "chips": ["nodes", "rows"],
        "network": ["fabric", "routed"],
        "sharding": {"split": "E", "first": "all-to-all x", "then": "all-to-all"},
        "shards": [4, 8, 16, 32, 64],
        "thresholds": ["B"],
    },
    "for shares of the peak": {
        "operation": "matmul",
        "grid": {"B": [64, 8192], "D": [512, 4096], "F": 8192},
        "dtypes": ["bf16"],
        "chips": ["ring", "switch", "nodes"],
        "sharding": ["none", "contracting/all-reduce"],
        "shards": [1, 8],
        "thresholds": ["B", "D", "shards"],
        "shares": [1, 0.9, 0.1],
    },
    "of an outer product": {
        "operation": "B,F->BF",
        "grid": {"B": [1, 2**20], "F": [1, 1000, 2**31]},
        "dtypes": ["bf16", OWN],
        "chips": ["ring", "mesh", "alone"],
        "thresholds": ["B", "F"],
    },
}


def config_of(sweep: dict[str, Any], chips: dict[str, Any] = CHIPS) -> dict[str, Any]:
    """Return a config of one sweep and the chips it names."""
    return {
        "sweeps": {"case": sweep},
        "chips": {name: chips[name] for name in sweep["chips"]},
        "charts": [],
    }


def made_up(
    flops_per_s: float | str,
    bytes_per_s: float | str,
    link: dict[str, Any] | None = None,
    dtypes: Iterable[str] = ("bf16",),
) -> dict[str, Any]:
    """Return a chip with one peak for all dtypes, one memory and, if given, an interconnect."""
    if link and link["topology"] != "mesh":
        link = {"domain": "unlimited", **link}
    return {
        "source": "made up",
        "units": {"matrix": {dtype: {"flops_per_s": flops_per_s} for dtype in dtypes}},
        "memory": {"hbm": {"bytes_per_s": bytes_per_s}},
        "networks": {"fabric": link} if link else {},
    }
