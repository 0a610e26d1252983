"""Sweeps that between them take every turn of the formulas, row by row and threshold by threshold against exact arithmetic.

`test_properties` draws such sweeps at random; these are always the same, small and quick, so that `make mutate` can rely on them.
"""

from __future__ import annotations

import math
import random
import types
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import oracle
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from test_properties import EXACT_INTEGER, METRICS, differences, expected_rows, table_of, threshold_differences

import rooflines
from rooflines import critical_shards, critical_sizes, panels, solving
from rooflines.dictionary import TEXTS
from rooflines.sweep import Scenario
from rooflines.table_rows import sweep_rows, whole_rows
from rooflines.work import WORKS

if TYPE_CHECKING:
    from collections.abc import Callable

    from rooflines.sweep import Sweep

TORUS = {"bytes_per_s": 45e9, "links": 6, "topology": "torus", "ring_multiple": 4, "hop_latency_s": 1e-6}
MESH = {"bytes_per_s": 64e9, "links": 7, "topology": "mesh", "domain": 8}
SWITCH = {"bytes_per_s": 25e9, "links": 18, "topology": "switch", "domain": 72, "hop_latency_s": 5e-7}
LINE = {"bytes_per_s": 1e11, "links": 4, "topology": "torus"}
CHIPS: dict[str, Any] = {
    "ring": {
        "source": "made up",
        "units": {
            "matrix": {"bf16": {"flops_per_s": 1.97e14}, "int8": {"flops_per_s": 3.94e14}},
            "vector": {"bf16": {"flops_per_s": 3e12}, "fp32": {"flops_per_s": 7e12}},
        },
        "memory": {"hbm": {"bytes_per_s": 8.2e11, "capacity_bytes": 4e7}, "l2": {"bytes_per_s": 5e12}},
        "networks": {"fabric": TORUS},
        "calibration": {"bf16": {"math": 0.8, "memory": 0.9, "network": 0.7, "overhead_s": 3e-6}},
    },
    "mesh": {
        "source": "made up",
        "units": {"matrix": {"bf16": {"flops_per_s": 1e15}}, "vector": {"fp32": {"flops_per_s": 5e13}}},
        "memory": {"hbm": {"bytes_per_s": 3.2e12, "capacity_bytes": 8e10}},
        "networks": {"fabric": MESH},
        "efficiency": {"memory": 0.82, "network": 0.5},
    },
    "switch": {
        "source": "made up",
        "units": {"matrix": {"bf16": {"flops_per_s": 5e14}, "int8": {"flops_per_s": 1e15}}, "vector": {"fp32": {"flops_per_s": 6e13}}},
        "memory": {"hbm": {"bytes_per_s": 2e12, "capacity_bytes": 2e8}},
        "networks": {"fabric": SWITCH},
    },
    "line": {
        "source": "made up",
        "units": {"matrix": {"bf16": {"flops_per_s": 4e14}, "int8": {"flops_per_s": 4e14}}, "vector": {"fp32": {"flops_per_s": 2e13}}},
        "memory": {"hbm": {"bytes_per_s": 1e12}},
        "networks": {"fabric": LINE},
    },
    "alone": {
        "source": "made up",
        "units": {"matrix": {"bf16": {"flops_per_s": 3e14}}, "vector": {"fp32": {"flops_per_s": 1e12}}},
        "memory": {"hbm": {"bytes_per_s": 6e11, "capacity_bytes": 24e9}},
    },
}
ALL = list(CHIPS)
JOINED = ALL[:-1]
CHIPS["hardly-bound"] = {
    "source": "a chip whose memory is nearly as fast as its math, so that thresholds are one, two and three",
    "units": {"matrix": {"bf16": {"flops_per_s": 3e12}}},
    "memory": {"hbm": {"bytes_per_s": 2e12}},
    "networks": {"fabric": {"bytes_per_s": 2e12, "topology": "switch"}},
}
CHIPS["even"] = {
    "source": "math and memory take a microsecond at 64, and everything just fits",
    "units": {"matrix": {"bf16": {"flops_per_s": 5.24288e11}}},
    "memory": {"hbm": {"bytes_per_s": 2.4576e10, "capacity_bytes": 24576}},
}
GRID = {"B": [1, 17, 256, 300], "D": [1000, 4096], "F": [1, 8192]}
OWN = {"x": "mxfp4", "w": "nvfp4", "out": "fp32", "compute": "bf16"}

SWEEPS: dict[str, dict[str, Any]] = {
    "on one chip": {"operation": "matmul", "grid": GRID, "dtypes": ["bf16", "int8", OWN], "chips": ALL, "thresholds": ["B", "D", "F"]},
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
    "of an outer product": {
        "operation": "B,F->BF",
        "grid": {"B": [1, 2**20], "F": [1, 1000, 2**31]},
        "dtypes": ["bf16", OWN],
        "chips": ["ring", "mesh", "alone"],
        "thresholds": ["B", "F"],
    },
}


def test_thresholds_are_the_same_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where few are solved at once."""
    monkeypatch.setattr(solving, "ROWS_AT_ONCE", 7)
    for name in ("of a tie", "counted exactly"):
        assert threshold_differences(config_of(SWEEPS[name])) == []


# ---------------------------------------------------------------- ties

SIDE = 3**20
"""A size whose square and cube no Float64 holds, so that equal times are not equal as they are computed."""

AT, AROUND = dict.fromkeys("BDF", SIDE), [SIDE - 1, SIDE, SIDE + 1]
TIED = ("math memory", "math network", "memory network", "math memory network")
TIES: list[tuple[str, int, str, dict[str, int]]] = [
    ("none", 1, "math memory", {"B": 3}),
    ("contracting/all-reduce", 3, "math network", {"D": 27}),
    *(("none", 1, tied, {}) for tied in TIED[:1]),
    *(("contracting/all-reduce", 3, tied, {}) for tied in TIED),
    *(("batch/gather-w", 2, tied, {}) for tied in TIED),
]


def tied_chips(spec: str, shards: int, tied: str, tile: dict[str, int]) -> dict[str, Any]:
    """Return chips on which some times are equal at `AT`, the others a hundredth; and where math is longer or shorter by 1.4e-16."""
    setting = oracle.plain_matmul(spec, tile)
    work = setting.work(AT, shards)
    rates = {name: int(work[name] * shards * 10**6 / SIDE**2) * (1 if name in tied.split() else 100) for name in work}
    chips = {}
    for name, more in ({"tied": 0, "slower": -1, "faster": 1} if "math" in tied else {"tied": 0}).items():
        chips[name] = {
            "source": "made up",
            "units": {"matrix": {"bf16": {"flops_per_s": rates["math"] + more}}},
            "memory": {"hbm": {"bytes_per_s": rates["memory"]}},
            "networks": {"fabric": {"bytes_per_s": rates["network"] or 1, "links": 1, "topology": "switch"}},
        }
    return chips


@pytest.mark.parametrize(("spec", "shards", "tied", "tile"), TIES)
def test_a_tie_and_what_is_almost_one_are_told_apart(spec: str, shards: int, tied: str, tile: dict[str, int]) -> None:
    """Bounds and thresholds are those of exact arithmetic where Float64 cannot tell."""
    chips = tied_chips(spec, shards, tied, tile)
    sweep: dict[str, Any] = {
        "operation": "matmul",
        "grid": {"B": AROUND, "D": AROUND, "F": SIDE},
        "dtypes": ["bf16"],
        "chips": list(chips),
        "sharding": spec,
        "shards": [shards],
        "flops": "leading",
        "tile": tile,
        "thresholds": [],
    }
    check_rows(config_of(sweep, chips))
    solved = {**sweep, "grid": AT, "thresholds": ["B", "D", "F"] if shards == 1 or tile else ["B", "D", "F", "shards"]}
    assert threshold_differences(config_of(solved, chips)) == []


def test_a_latency_that_is_almost_a_tie_is_told_apart() -> None:
    """Math takes exactly as long as a hop, or shorter by 4 * 10^-16 of it."""
    chips = {
        f"more-{more}": {
            "source": "made up",
            "units": {"matrix": {"bf16": {"flops_per_s": 2**51 + more}}},
            "memory": {"hbm": {"bytes_per_s": 1e15}},
            "networks": {"fabric": {"bytes_per_s": 1e15, "topology": "switch", "hop_latency_s": 1}},
        }
        for more in (-1, 0, 1)
    }
    sweep = {
        "operation": "matmul",
        "grid": {"B": [2**17 - 1, 2**17, 2**17 + 1], "D": 2**17, "F": 2**17},
        "dtypes": ["bf16"],
        "chips": list(chips),
        "sharding": "batch/gather-w",
        "shards": [2],
        "thresholds": [],
    }
    check_rows(config_of(sweep, chips))
    solved = {**sweep, "grid": dict.fromkeys("BDF", 2**17), "thresholds": ["B", "D", "shards"]}
    assert threshold_differences(config_of(solved, chips)) == []


def slow_chip(short: int) -> dict[str, Any]:
    """Return a chip whose math gains on its memory, along B, by so many parts of 5 * 10^15."""
    return {
        "source": "made up",
        "units": {"matrix": {"bf16": {"flops_per_s": 2**19 * 10**10 - short}}},
        "memory": {"hbm": {"bytes_per_s": 1e10}},
    }


@pytest.mark.parametrize("tile", [{}, {"B": 3}, {"B": 1024, "D": 2}])
def test_a_threshold_may_be_as_large_as_its_column_holds(tile: dict[str, int]) -> None:
    """From 2^62 on there is none, but for the real one."""
    chips = {f"short-{short}": slow_chip(short) for short in (-1, 0, 1, 2, 10, 300, 596, 597, 1000, 10**5, 3 * 10**5, 10**6, 10**9, 10**15)}
    sweep = {
        "operation": "matmul",
        "grid": {"B": 1, "D": 2**20, "F": 2**20},
        "dtypes": ["bf16"],
        "chips": list(chips),
        "thresholds": ["B"],
        **({"tile": tile, "flops": "leading"} if tile else {}),
    }
    assert threshold_differences(config_of(sweep, chips)) == []


def test_from_two_to_the_62_on_there_is_no_threshold() -> None:
    """Where it is that exactly, and where it is more than any column of whole numbers holds."""
    chips = {
        name: {
            "source": "made up",
            "units": {"matrix": {"bf16": {"flops_per_s": 2**50}}},
            "memory": {"hbm": {"bytes_per_s": 0.25 + more}},
        }
        for name, more in {"just": 2**-12, "far": 2**-24}.items()
    }
    sweep = {"operation": "matmul", "grid": {"B": 1, "D": 2**53, "F": 2**53}, "dtypes": ["bf16"], "chips": [*chips], "thresholds": ["B"]}
    config = config_of(sweep, chips)
    assert threshold_differences(config) == []
    found = rooflines.thresholds(rooflines.load_config(config)).select("critical", "critical_exact").rows()
    assert found == [(None, 2.0**62), (None, pytest.approx(2.0**74))]


def test_a_threshold_in_tiles_may_be_as_large_as_its_column_holds() -> None:
    """The last tile below 2^62 is the last, though it ends there; also where the number of tiles is one that Float64 is sure of."""
    size, tile, rate = 2**52, 2**36, 2
    tiles = {f"from-{whole}": Fraction(2 * whole - 1, 2) for whole in range(2**26 - 2, 2**26 + 3)}
    chips = {
        name: {
            "source": "made up",
            "units": {"matrix": {"bf16": {"flops_per_s": int(size * tile * rate / (2 * tile + size / real))}}},
            "memory": {"hbm": {"bytes_per_s": rate}},
        }
        for name, real in tiles.items()
    }
    sweep = {
        "operation": "matmul",
        "grid": {"B": size, "D": 1, "F": size},
        "dtypes": ["bf16"],
        "chips": list(chips),
        "tile": {"D": tile},
        "flops": "leading",
        "thresholds": ["D"],
    }
    assert threshold_differences(config_of(sweep, chips)) == []
    found = rooflines.thresholds(rooflines.load_config(config_of(sweep, chips)))
    assert found["critical"].to_list() == [2**62 - 3 * tile + 1, 2**62 - 2 * tile + 1, 2**62 - tile + 1, None, None]


RULES: dict[tuple[str, str], dict[str, float | None]] = {
    ("matmul", "bf16"): {"B": 250, "D": 250, "F": 250},
    ("matmul", "w8a16"): {"B": 125, "D": 250, "F": 250},
    ("matmul", "int8"): {"B": 125, "D": 125, "F": 125},
    ("per-example-matmul", "bf16"): {"B": None, "D": None, "F": None},
    ("B,F->BF", "bf16"): {"B": None, "F": None},
}


@pytest.mark.parametrize(("operation", "dtypes"), RULES)
def test_the_rule_of_thumb_is_the_ridge_by_the_bits_of_what_lacks_the_dimension(operation: str, dtypes: str) -> None:
    """At 250 FLOP/byte; none where every byte grows with the dimension, or where memory grows faster than math."""
    rule = RULES[operation, dtypes]
    assert {row["axis"]: row["critical_rule"] for row in rules(operation, dtypes, 2.5e14)} == rule


def test_the_rule_of_thumb_counts_tiles_shares_and_exact_flops() -> None:
    """By hand, where the operands without the dimension are not the only ones."""
    every = {row["axis"]: row["critical_rule"] for row in rules("per-example-matmul", "int8", 1e12)}
    assert every == {"B": None, "D": 1.0, "F": 1.0}  # 2 n >= n + 1
    exact = {row["axis"]: row["critical_rule"] for row in rules("matmul", "int8", 2e12, flops="exact")}
    assert exact == {"B": 1.0, "D": 1.5, "F": 1.0}  # (2 n - 1) / 2 >= 1, with one product of out less
    tile = {"tile": {"B": 16, "D": 32}, "flops": "leading"}
    tiled = {row["axis"]: row["critical_rule"] for row in rules("matmul", "bf16", 1e12, **tile)}
    assert tiled == {"B": None, "D": pytest.approx(32 / 30), "F": pytest.approx(32 / 30)}  # 1024 n >= 64 n + 32 tiles of 32, or + 1024
    split = {
        row["axis"]: row["critical_rule"] for row in rules("matmul", "bf16", 1e12, **tile, sharding="contracting/all-reduce", shards=[2])
    }
    assert split == {"B": None, "D": pytest.approx(64 / 30), "F": pytest.approx(32 / 30)}  # the same tiles, on twice as many chips
    halves = {row["axis"]: row["critical_rule"] for row in rules("matmul", "bf16", 2.5e14, sharding="contracting/all-reduce", shards=[2])}
    assert halves == {"B": 250, "D": 500, "F": 250}  # 250 of D on each of two chips


def rules(operation: str, dtypes: str, peak: float, **more: object) -> list[dict[str, Any]]:
    """Return the thresholds of a chip with 10^12 byte/s."""
    chip = {
        "source": "made up",
        "units": {"matrix": {"bf16": {"flops_per_s": peak}, "int8": {"flops_per_s": peak}}},
        "memory": {"hbm": {"bytes_per_s": 1e12}},
        "networks": {"fabric": {"bytes_per_s": 1e10, "topology": "switch"}},
    }
    dims = oracle.operation_of(operation).dims
    sweep = {
        "operation": operation,
        "grid": dict.fromkeys(dims, 64),
        "dtypes": [dtypes],
        "chips": ["one"],
        "thresholds": list(dims),
        **more,
    }
    return rooflines.thresholds(rooflines.load_config(config_of(sweep, {"one": chip}))).to_dicts()


# ---------------------------------------------------------------- thresholds in the number of chips

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
    **{f"rings of {n}": {"topology": "torus", "links": 4, "ring_multiple": n} for n in (1, 2, 3, 4, 16)},
    **{f"rings of {n} in 13": {"topology": "torus", "links": 4, "ring_multiple": n, "domain": 13} for n in (1, 2, 3)},
    "rings of 4 in 64": {"topology": "torus", "links": 4, "ring_multiple": 4, "domain": 64},
    "slow rings of 4": {"topology": "torus", "links": 4, "ring_multiple": 4, "hop_latency_s": 1e-6},
    "slow rings of 4 in 64": {"topology": "torus", "links": 4, "ring_multiple": 4, "domain": 64, "hop_latency_s": 1e-6},
    "slow switch of 8": {"topology": "switch", "links": 7, "domain": 8, "hop_latency_s": 1e-5},
}
RATES = {"memory": (2e10, 2e11, 1e13), "network": (1e8, 1e10, 1e12)}
"""Such that memory, or the network, or nothing ends the split, on few chips or on many [byte/s]."""


def splitters(link: dict[str, Any]) -> dict[str, Any]:
    """Return chips of one interconnect and several rates."""
    return {
        f"memory-{memory:.0f}-network-{network:.0f}": {
            "source": "made up",
            "units": {"matrix": {"bf16": {"flops_per_s": 1.31072e14}}},
            "memory": {"hbm": {"bytes_per_s": memory}},
            "networks": {"fabric": {"bytes_per_s": network, **link}},
        }
        for memory in RATES["memory"]
        for network in RATES["network"]
    }


def config_of(sweep: dict[str, Any], chips: dict[str, Any] = CHIPS) -> dict[str, Any]:
    """Return a config of one sweep and the chips it names."""
    return {"sweeps": {"case": sweep}, "chips": {name: chips[name] for name in sweep["chips"]}, "charts": []}


def check_rows(config: dict[str, Any]) -> None:
    """Check the rows of a config's sweep as they are scanned, and as they are written to a table; whole work is whole."""
    frame, sweep = table_of(config), rooflines.load_config(config).sweep("case")
    truth = [row.values() for row in expected_rows(config) if row.setting is not None]
    assert len(truth) > 1
    assert differences(frame.to_dicts(), truth) == []
    for name in WORKS:
        whole = [(found, row[name]) for found, row in zip(frame[name], truth, strict=True) if row[name] < EXACT_INTEGER]
        assert [pair for pair in whole if pair[1].denominator == 1 and pair[0] != pair[1]] == []
    assert {frame.schema[name] for name in METRICS} == {pl.Float64}
    assert all(frame.schema[name] == pl.Categorical for name in TEXTS)
    check_written(frame, sweep)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(panels, "PANEL_ROWS", 4)
        assert_frame_equal(sweep_rows(sweep, 0, sweep.rows).collect(), frame, rel_tol=1e-14)
        assert_frame_equal(sweep_rows(sweep, 1).select("fits", "flops").collect(), frame[1:].select("fits", "flops"), rel_tol=1e-14)


def check_written(frame: pl.DataFrame, sweep: Sweep) -> None:
    """Check that what is written to a table is a frame, whatever is asked of it afterwards."""
    rows = whole_rows(sweep, frame.columns, 0, sweep.rows)
    assert {name: rows.collect_schema()[name] for name in TEXTS} == {name: pl.Enum(sorted(set(frame[name].drop_nulls()))) for name in TEXTS}
    rows, first = rows.with_columns(pl.col(TEXTS).cast(pl.Categorical)), pl.col("bound") == frame["bound"][0]
    assert rows.collect().equals(frame)
    assert rows.filter(first).collect().equals(frame.filter(first))
    assert rows.slice(1, 3).select("bound", "utilization").collect().equals(frame[1:4].select("bound", "utilization"))
    columns = ["F" if "F" in frame.columns else "D", "t_lower_s", "memory_bytes"]
    assert whole_rows(sweep, columns, 1, sweep.rows - 1).collect().equals(frame[1:-1].select(columns))


@pytest.mark.parametrize("name", SWEEPS)
def test_every_row_is_the_exact_one(name: str) -> None:
    """Keys, sizes, order, bound and fits are equal, every metric to 1e-12."""
    check_rows(config_of(SWEEPS[name]))


@pytest.mark.parametrize("name", SWEEPS)
def test_every_threshold_is_the_exact_one(name: str) -> None:
    """Equal to the integer, for every axis and resource, with what limits below them."""
    assert threshold_differences(config_of(SWEEPS[name])) == []


def test_thresholds_of_several_sweeps_stand_below_each_other() -> None:
    """A dimension that an operation lacks is null in its rows; a sweep that solves for nothing has no row, but all columns."""
    sweeps = {"a": SWEEPS["of vectors"], "b": {**SWEEPS["on one chip"], "thresholds": []}, "c": SWEEPS["shapes"]}
    config = rooflines.load_config({"sweeps": sweeps, "chips": CHIPS, "charts": []})
    together = rooflines.thresholds(config)
    assert together["sweep"].unique(maintain_order=True).to_list() == ["a", "c"]
    dims = ["D", "B", "F", "S"]
    assert [name for name in together.columns if name in dims] == dims
    for name in sweeps:
        alone, part = rooflines.thresholds(config, name), together.filter(sweep=name)
        assert part.select(alone.columns).equals(alone)
        assert alone.schema == {column: together.schema[column] for column in alone.columns}
        lacking = [column for column in together.columns if column not in alone.columns]
        assert [part[column].null_count() for column in lacking] == [part.height] * len(lacking)


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


@pytest.mark.parametrize("link", LINKS)
def test_every_split_ends_where_trying_ends(link: str) -> None:
    """The critical number of chips is the largest that trying finds, on every interconnect and for every collective."""
    chips = splitters(LINKS[link])
    assert threshold_differences(config_of(split_sweep(chips), chips)) == []


# ---------------------------------------------------------------- how sure is sure

ZERO = Fraction(0)
THIRTY_ROUNDINGS = Fraction(33, 10**16)
"""What a number may be off by after so many roundings, relative to it [1]."""

ANY_DIMENSION: Any = types.SimpleNamespace(tile={})
"""As much of a sweep as thresholds need where the lines of its times are given."""


def rounded(chance: random.Random, value: Fraction) -> float:
    """Return a number as it may come out of thirty roundings."""
    return float(value * (1 + THIRTY_ROUNDINGS * Fraction(chance.choice([-100, 0, 100, chance.randint(-99, 99)]), 100)))


def near(chance: random.Random, value: Fraction) -> Fraction:
    """Return a number or one so near that roundings may or may not hide the difference."""
    return value * (1 + chance.choice([-1, 0, 1]) * Fraction(chance.randint(1, 99), 10 ** chance.randint(11, 19)))


def almost_tied_lines(chance: random.Random) -> dict[str, Fraction]:
    """Draw slopes and constants of three times: slopes are often alike, and so are thresholds, which are often whole numbers."""
    math = Fraction(chance.randint(10**5, 10**7), 10**12)
    lines = {"#a_math": math, "#b_math": -math / 3 * chance.choice([0, 0, 1])}
    again, slope = Fraction(chance.choice([1, 2, 3, 1000, 3**15])), math * Fraction(chance.randint(1, 150), 100)
    for name in ("memory", "network"):
        whole = again if chance.random() < 0.6 else Fraction(chance.randint(1, 10**5))
        own = near(chance, chance.choice([slope, slope, math, math * Fraction(chance.randint(1, 99), 100)]))
        line = near(chance, whole) * (math - own) + lines["#b_math"] if own < math else math * chance.choice([0, 0, 1, 7])
        lines |= {f"#a_{name}": own, f"#b_{name}": max(line, ZERO)}
    return lines | {"#latency_network": near(chance, again) * math if chance.random() < 0.3 else ZERO}


def exact_thresholds(lines: dict[str, Fraction]) -> dict[str, Any]:
    """Return the thresholds of three times from their lines."""
    reals: dict[str, Fraction | None] = {}
    for name in ("memory", "network"):
        found = []
        for slope, constant in [(f"#a_{name}", f"#b_{name}"), *([("", "#latency_network")] if name == "network" else [])]:
            gain, behind = lines["#a_math"] - lines.get(slope, ZERO), lines[constant] - lines["#b_math"]
            found.append(max(behind / gain, ZERO) if gain > 0 else None if gain < 0 or behind > 0 else ZERO)
        reals[name] = None if None in found else max(real for real in found if real is not None)
    never = [name for name, real in reals.items() if real is None]
    last = max(never or reals, key=lambda name: [lines[f"#a_{name}"], lines[f"#b_{name}"]] if never else [reals[name]])
    whole = {name: None if real is None else max(1, math.ceil(real)) for name, real in reals.items()}
    critical = None if never else max(size for size in whole.values() if size is not None)
    return {
        "critical": critical,
        "critical_memory": whole["memory"],
        "critical_network": whole["network"],
        "limit": last if critical != 1 else None,
    }


def test_a_threshold_that_is_called_sure_is_the_exact_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """However thirty roundings fall: what is not left to exact arithmetic is right, also next to a tie."""
    chance = random.Random(7)  # noqa: S311, examples
    truth = [almost_tied_lines(chance) for _ in range(1_500)]
    columns = {name: [rounded(chance, lines[name]) for lines in truth] for name in truth[0]}
    frame = pl.DataFrame({**columns, "#slope_flops": 1.0, "#slope_memory_bytes": 1.0, "#slope_network_bytes": 1.0})
    monkeypatch.setattr(critical_sizes, "affine", lambda *_: {"#zero": pl.lit(0.0)})
    found = critical_sizes.solve(frame.lazy(), ANY_DIMENSION, "B", {}, frame.columns).collect()
    for lines, row in zip(truth, found.iter_rows(named=True), strict=True):
        exact = exact_thresholds(lines)
        assert row["#unsure"] or {name: row[name] for name in exact} == exact, lines


def almost_tied_splits(chance: random.Random) -> dict[str, Fraction]:
    """Draw N times three times as lines in N, on one chip, several and rings, that often meet at a whole N, or next to it."""
    at, half = chance.choice([1, 2, 3, 8, 40, 1000, 10**6]), Fraction(1, 2)
    math0 = Fraction(chance.randint(10**5, 10**7), 10**12)
    math1 = -math0 / (at + 1) * chance.choice([ZERO, ZERO, Fraction(1, 3)])
    memory0 = near(chance, math0 * chance.choice([Fraction(1, 3), Fraction(4, 5), Fraction(1)]))
    memory1 = max(near(chance, (math0 + math1 * at - memory0) / at), ZERO) * chance.choice([0, 1, 1])
    sent = near(chance, (math0 + math1 * at) / max(at - 1, 1)) * chance.choice([ZERO, half, 2 * half, 2 * half])
    if chance.random() < 0.3:  # memory ends the split, and one chip further the network takes as long as it
        after = math0 * Fraction(2 * at + 2, 2 * at + 1)
        math1, memory0, memory1, sent = ZERO, ZERO, after / (at + 1), near(chance, after / at)
    elif chance.random() < 0.2:  # rings end where they tie with math
        memory0, memory1, sent = ZERO, ZERO, near(chance, 2 * (math0 + math1 * (at + 1)) / at)
    lines = {"#latency_network": near(chance, (math0 + math1 * at) / max(at * (at - 1), 1)) * chance.choice([0, 0, 0, 1])}
    grows = chance.random() < 0.8
    for piece, network in {"one": ZERO, "open": sent, "ring": sent * half}.items():
        lines |= {f"#math_{piece}0": math0, f"#math_{piece}1": math1, f"#memory_{piece}0": memory0, f"#memory_{piece}1": memory1}
        lines |= {f"#network_{piece}0": -network if grows else network, f"#network_{piece}1": network if grows else ZERO}
    domain = Fraction(chance.choice([1, 2, 9, 64, at, at, at + 1, at + 1, *[critical_shards.ENDLESS] * 3]))
    return lines | {"#ring": Fraction(chance.choice([0, 0, 0, 1, 1, 2, 3, 4])), "#domain": domain}


def times_of_split(lines: dict[str, Fraction], chips: Fraction) -> list[Fraction]:
    """Return N times the time of math, memory and network, for N chips."""
    ring = lines["#ring"] and chips > 2 and not chips % lines["#ring"]
    piece = "one" if chips == 1 else "ring" if ring else "open"
    times = [lines[f"#{name}_{piece}0"] + lines[f"#{name}_{piece}1"] * chips for name in oracle.RESOURCES]
    return [*times[:2], max(times[2], chips * (chips - 1) * lines["#latency_network"])]


def exact_splits(lines: dict[str, Fraction]) -> dict[str, Any]:
    """Return how far a split goes, against memory, the network and both, and what ends it."""

    def most(*others: int) -> int:
        def good(chips: int) -> bool:
            times = times_of_split(lines, Fraction(chips))
            return chips <= lines["#domain"] and all(times[0] >= times[other] for other in others)

        families = oracle.families(oracle.Link("", ZERO, 1, "torus", None, int(lines["#ring"]) or None, ZERO))
        last = [oracle.last_good(family, good) for family in families]
        return max(int(good(1)), *(critical_shards.ENDLESS if chips is None else chips for chips in last))

    found = {"critical": most(1, 2), "critical_memory": most(1), "critical_network": most(2)}
    limit = None
    if found["critical"] + 1 <= min(int(lines["#domain"]), critical_shards.ENDLESS):
        times = times_of_split(lines, Fraction(found["critical"] + 1))
        limit = ("compute", "memory", "network")[times.index(max(times))]
    return {"limit": limit} | {name: chips if 1 <= chips < critical_shards.ENDLESS else None for name, chips in found.items()}


def test_a_number_of_chips_that_is_called_sure_is_the_exact_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """However thirty roundings fall, and the real one is right to 1e-9."""
    chance = random.Random(7)  # noqa: S311, examples
    truth = [almost_tied_splits(chance) for _ in range(1_500)]
    columns = critical_shards.Columns(len(truth))
    columns.terms = {name: {(name,): name} for name in truth[0]}
    for index, lines in enumerate(truth):
        for name, value in lines.items():
            columns.number(name, index, float(value) if name in ("#ring", "#domain") else rounded(chance, value))
    monkeypatch.setattr(critical_shards, "work", lambda _, __, terms, ___: pl.col(*terms.values()))
    found = critical_shards.solve(pl.LazyFrame(columns.values), ANY_DIMENSION, columns).collect()
    for lines, row in zip(truth, found.iter_rows(named=True), strict=True):
        if row["#unsure"]:
            continue
        exact = exact_splits(lines)
        assert {name: row[name] for name in exact} == exact, lines
        real = row["critical_exact"]
        if real is not None and real > 1 and not lines["#ring"]:
            for off, holds in {-1: True, 1: False}.items():
                at = Fraction(real) * (1 + Fraction(off, 10**9))
                times = times_of_split(lines, at)
                assert (times[0] >= max(times)) is holds, (lines, real)


def test_exact_arithmetic_is_asked_for_nothing_but_ties(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes thousands of times as long."""
    for module in (critical_sizes, critical_shards):
        monkeypatch.setattr(module, "settle", lambda *row: pytest.fail(f"{row[-1]} is no tie"))
    chips = {**{name: CHIPS[name] for name in JOINED}, "slow": {**CHIPS["ring"], "networks": {"fabric": {**TORUS, "hop_latency_s": 1e-4}}}}
    sweep = {
        "operation": "matmul",
        "grid": {"B": [17, 5003], "D": [1009, 8209], "F": [1013, 14327]},
        "dtypes": ["bf16"],
        "chips": list(chips),
        "sharding": ["none", "contracting/all-reduce", "column/gather-x", "batch/gather-w", "batch"],
        "shards": [1, 2, 4, 7],
        "efficiency": {"math": 0.9973},
        "thresholds": ["B", "D", "F", "shards"],
    }
    assert rooflines.thresholds(rooflines.load_config(config_of(sweep, chips))).height > 1000


def unsure(solve: Any) -> Any:  # noqa: ANN401, of either kind of threshold
    """Return what solves with no row sure."""
    return lambda *given: solve(*given).with_columns(pl.lit(value=True).alias(solving.UNSURE))


SOME_LINKS = (
    "switch of 8",
    "slow switch of 8",
    "switch of 1",
    "mesh",
    "mesh of 2",
    "rings of 1 in 13",
    "rings of 2 in 13",
    "rings of 3 in 13",
    "rings of 4 in 64",
    "slow rings of 4 in 64",
)


@pytest.mark.parametrize("name", [*SWEEPS, *SOME_LINKS])
def test_exact_arithmetic_alone_gives_the_same_thresholds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ties aside, it and Float64 are two ways to one table."""
    chips = CHIPS if name in SWEEPS else splitters(LINKS[name])
    config = rooflines.load_config(config_of(SWEEPS[name] if name in SWEEPS else split_sweep(chips), chips))
    frame = rooflines.thresholds(config)
    for module in (critical_sizes, critical_shards):
        monkeypatch.setattr(module, "solve", unsure(module.solve))
    assert_frame_equal(rooflines.thresholds(config), frame, rel_tol=1e-9, abs_tol=0)


TENDS = {"compute": 0.75, "memory": 0.25, "network": 0.5}


def fabric(link: dict[str, Any]) -> tuple[Any, Any]:
    """Return as much of a sweep, and of what serves it, as exact arithmetic needs where the times are given."""
    sweep = types.SimpleNamespace(op=types.SimpleNamespace(dims=()), chips={"one": {"networks": {"fabric": link}}})
    return sweep, (types.SimpleNamespace(chip="one", network="fabric"), Scenario("bf16", "batch", 1))


def settled_split(link: dict[str, Any], times: Callable[[int], list[int]]) -> dict[str, Any]:
    """Return how far exact arithmetic finds a split to go, of which N times the three times are given for N chips."""
    sweep, served = fabric(link)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            critical_shards, "exact_time", lambda _, __, at, resource, ___: times(at.shards)[oracle.RESOURCES.index(resource.name)]
        )
        patch.setattr(critical_shards, "real_chips", lambda _, __, number, ___: float(number))
        return critical_shards.settle(sweep, served, {f"#tends_{bound}": value for bound, value in TENDS.items()})


def drawn_times(chance: random.Random, ring: int | None) -> Callable[[int], list[int]]:
    """Draw N times the times of math, of memory, which grows with N, and of a network on which rings may take longer or shorter."""
    own, grows, opened, closed = (chance.randint(0, most) for most in (12, 3, 20, 6))
    math = 12 + chance.choice([0, 0, opened])

    def times(chips: int) -> list[int]:
        closes = ring is not None and chips > 2 and chips % ring == 0
        return [math, own + grows * chips, (closed if closes else opened) * (chips - 1)]

    return times


def test_exact_arithmetic_goes_as_far_as_trying_every_number() -> None:
    """On lines and rings within a domain, with times that are often equal."""
    chance = random.Random(7)  # noqa: S311, examples
    for _ in range(400):
        ring, domain = chance.choice([None, 1, 2, 3, 4]), chance.choice([1, 2, 3, 4, 5, 9, 13])
        times = drawn_times(chance, ring)
        tried = {chips: times(chips) for chips in range(1, domain + 2)}
        held = {
            others: [chips for chips in range(1, domain + 1) if all(tried[chips][0] >= tried[chips][other] for other in others)]
            for others in ((1, 2), (1,), (2,))
        }
        both, memory, network = (max(chips, default=None) for chips in held.values())
        after = tried[(both or 0) + 1]
        limit = ("compute", "memory", "network")[after.index(max(after))] if (both or 0) < domain else None
        found = settled_split({"topology": "torus", "ring_multiple": ring, "domain": domain}, times)
        assert found == {
            "critical": both,
            "critical_exact": both,
            "critical_memory": memory,
            "critical_network": network,
            "limit": limit,
            "limit_intensity": TENDS[limit] if limit else None,
        }, (ring, domain, tried)


@pytest.mark.parametrize("ring", [None, 1, 4])
@pytest.mark.parametrize("short", [-1, 0, 1, 2, 3, 4])
def test_chips_are_counted_to_two_to_the_53(ring: int | None, short: int) -> None:
    """A split that goes farther has no end, and nothing limits it."""
    last = critical_shards.ENDLESS - short
    found = settled_split({"topology": "torus", "ring_multiple": ring}, lambda chips: [last, chips, 0])
    known = last if short > 0 else None
    assert [found[name] for name in ("critical", "critical_memory", "critical_network")] == [known, known, None]
    assert found["limit"] == ("memory" if known else None)


@pytest.mark.parametrize(("ring", "critical", "real"), [(None, 2, 2.25), (1, 3, 3.5), (2, 2, 2.25), (3, 3, 3.5), (4, 2, 2.25)])
def test_a_pair_is_no_ring(ring: int | None, critical: int, real: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two chips are a line, also where all even numbers close rings, and the real number behind two is that of the line."""
    link = {"bytes_per_s": 1e9, "topology": "torus", **({"ring_multiple": ring} if ring else {})}
    chip = {
        "source": "made up",
        "units": {"matrix": {"bf16": {"flops_per_s": 1e12}}},
        "memory": {"hbm": {"bytes_per_s": 1e15}},
        "networks": {"fabric": link},
    }
    grid = {"B": 64, "D": 2500, "F": 64}  # N times 2 B D F / N FLOPs take as long as 1.25 times 4 B F bytes
    sweep = {"operation": "matmul", "grid": grid, "dtypes": ["bf16"], "chips": ["one"], "sharding": "contracting/all-reduce"}
    config = config_of({**sweep, "shards": [1], "thresholds": ["shards"]}, {"one": chip})
    for solve in (critical_shards.solve, unsure(critical_shards.solve)):
        monkeypatch.setattr(critical_shards, "solve", solve)
        assert threshold_differences(config) == []
        row = rooflines.thresholds(rooflines.load_config(config)).select("critical", "critical_exact", "critical_network", "limit").row(0)
        assert row == (critical, pytest.approx(real), critical, "network")


def test_hops_take_longer_than_fewer_and_fewer_flops(monkeypatch: pytest.MonkeyPatch) -> None:
    """N times the exact FLOPs of a contracted dimension shrink with N, while N times the latency grows with its square."""
    chip = {
        "source": "made up",
        "units": {"matrix": {"bf16": {"flops_per_s": 2**20 * 10**8}}},
        "memory": {"hbm": {"bytes_per_s": 1e18}},
        "networks": {"fabric": {"bytes_per_s": 1e18, "topology": "switch", "hop_latency_s": 1e-8}},
    }
    grid = {"B": 1024, "D": [100, 1000], "F": 1024}
    sweep = {"operation": "matmul", "grid": grid, "dtypes": ["bf16"], "chips": ["one"], "sharding": "contracting/all-reduce"}
    config = config_of({**sweep, "flops": "exact", "shards": [1], "thresholds": ["shards"]}, {"one": chip})
    assert threshold_differences(config) == []
    frame = rooflines.thresholds(rooflines.load_config(config))
    assert frame["critical_exact"].floor().cast(pl.Int64).to_list() == frame["critical"].to_list()
    monkeypatch.setattr(critical_shards, "solve", unsure(critical_shards.solve))
    assert_frame_equal(rooflines.thresholds(rooflines.load_config(config)), frame, rel_tol=1e-9, abs_tol=0)


def test_a_split_beside_tiles_counts_whole_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """A result is written once however many tiles of the contracted dimension it sums, so they matter to where a split ends."""
    chip = {
        "source": "made up",
        "units": {"matrix": {"bf16": {"flops_per_s": 1e14}}},
        "memory": {"hbm": {"bytes_per_s": 1e12}},
        "networks": {"fabric": {"bytes_per_s": 1e18, "topology": "switch"}},
    }
    grid = {"B": 4096, "D": [100, 1000], "F": 4096}
    sweep = {"operation": "matmul", "grid": grid, "dtypes": ["bf16"], "chips": ["one"], "sharding": "batch/gather-w"}
    tiled = {**sweep, "tile": {"D": 128}, "flops": "leading", "shards": [1], "thresholds": ["shards"]}
    config = config_of(tiled, {"one": chip})
    for solve in (critical_shards.solve, unsure(critical_shards.solve)):
        monkeypatch.setattr(critical_shards, "solve", solve)
        assert threshold_differences(config) == []
        found = rooflines.thresholds(rooflines.load_config(config))["critical_exact"].to_list()
        assert found == pytest.approx([4096 / 100 - 1 - 4096 / 128, 4096 / 100 - 1 - 4096 / 1024])


def test_a_tie_for_ever_has_no_end() -> None:
    """Where math takes as long as memory however far it is split, no number of chips is the last, and no real one either."""
    chip = {
        "source": "made up",
        "units": {"matrix": {"bf16": {"flops_per_s": 1e12}}},
        "memory": {"hbm": {"bytes_per_s": 2e12}},
        "networks": {"fabric": {"bytes_per_s": 1e9, "topology": "switch"}},
    }
    grid = {"B": 1, "D": 2, "F": 2}  # 8 FLOPs, 16 bytes
    sweep = {"operation": "per-example-matmul", "grid": grid, "dtypes": ["bf16"], "chips": ["one"], "sharding": {"split": "B"}}
    config = config_of({**sweep, "shards": [1], "thresholds": ["shards"]}, {"one": chip})
    assert threshold_differences(config) == []
    row = rooflines.thresholds(rooflines.load_config(config)).select("critical", "critical_exact", "limit").row(0)
    assert row == (None, None, None)


def test_a_real_threshold_is_right_where_math_hardly_gains() -> None:
    """By a part in 10^10 of what both take, of which Float64 knows six digits."""
    size, tile = 1000, 2**40
    gains = {f"gain-{gain}": Fraction(10**13 * size * tile, 2 * tile + gain * size) for gain in (1, 3, 10, 100)}
    chips = {
        name: {
            "source": "made up",
            "units": {"matrix": {"bf16": {"flops_per_s": int(peak)}}},
            "memory": {"hbm": {"bytes_per_s": 10**13}},
        }
        for name, peak in gains.items()
    }
    sweep: dict[str, Any] = {"operation": "matmul", "dtypes": ["bf16"], "chips": list(chips)}
    tiled = {"grid": {"B": size, "D": 1, "F": size}, "tile": {"D": tile}, "flops": "leading", "thresholds": ["D"]}
    assert threshold_differences(config_of({**sweep, **tiled}, chips)) == []


def test_a_real_number_of_chips_is_right_where_math_is_hardly_longer() -> None:
    """By a part in 10^12 of what both take on one chip."""
    size, rate = 2**40, 10**15
    peaks = {f"{tenths}-tenths": Fraction(size * rate * 10, 20 * size + tenths) for tenths in (13, 23, 59, 173)}
    chips = {
        name: {
            "source": "made up",
            "units": {"matrix": {"bf16": {"flops_per_s": int(peak)}}},
            "memory": {"hbm": {"bytes_per_s": rate}},
            "networks": {"fabric": {"bytes_per_s": rate, "topology": "switch"}},
        }
        for name, peak in peaks.items()
    }
    sweep = {"operation": "matmul", "grid": {"B": 1, "D": size, "F": 1}, "dtypes": ["bf16"], "chips": list(chips)}
    split = {"sharding": "contracting/all-reduce", "shards": [1], "thresholds": ["shards"]}
    assert threshold_differences(config_of({**sweep, **split}, chips)) == []
    assert [
        round(found, 2) for found in rooflines.thresholds(rooflines.load_config(config_of({**sweep, **split}, chips)))["critical_exact"]
    ] == [1.3, 2.3, 5.9, 17.3]
