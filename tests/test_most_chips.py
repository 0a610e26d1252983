"""The most chips on which a split operation is compute-bound, at the edges of their segments."""

import polars as pl
import pytest
from cases import config_of, made_up
from comparison import threshold_differences

import rooflines


@pytest.mark.parametrize(
    ("ring", "critical", "real"),
    [(None, 2, 2.25), (1, 3, 3.5), (2, 2, 2.25), (3, 3, 3.5), (4, 2, 2.25)],
)
def test_a_pair_is_not_a_ring(ring, critical, real):
    link = {"bytes_per_s": 1e9, "topology": "torus", **({"ring_multiple": ring} if ring else {})}
    chip = made_up(1e12, 1e15, link)
    grid = {
        "B": 64,
        "D": 2500,
        "F": 64,
    }  # 2 B D F FLOPs take as long as 1.25 times 4 B F bytes
    sweep = {
        "operation": "matmul",
        "grid": grid,
        "dtypes": ["bf16"],
        "chips": ["one"],
        "sharding": "contracting/all-reduce",
    }
    config = config_of({**sweep, "shards": [1], "thresholds": ["shards"]}, {"one": chip})
    assert threshold_differences(config) == []
    row = (
        rooflines.thresholds(rooflines.load_config(config))
        .select("critical", "critical_exact", "critical_network", "limit")
        .row(0)
    )
    assert row == (critical, pytest.approx(real), critical, "network")


def test_hops_outgrow_exact_flops_on_more_chips():
    chip = made_up(
        2**20 * 10**8, 1e18, {"bytes_per_s": 1e18, "topology": "torus", "hop_latency_s": 1e-8}
    )
    grid = {"B": 1024, "D": [100, 1000], "F": 1024}
    sweep = {
        "operation": "matmul",
        "grid": grid,
        "dtypes": ["bf16"],
        "chips": ["one"],
        "sharding": "contracting/all-reduce",
    }
    config = config_of(
        {**sweep, "flops": "exact", "shards": [1], "thresholds": ["shards"]}, {"one": chip}
    )
    assert threshold_differences(config) == []
    frame = rooflines.thresholds(rooflines.load_config(config))
    assert frame["critical_exact"].floor().cast(pl.Int64).to_list() == frame["critical"].to_list()


@pytest.mark.parametrize("hop", [1e-12, 1e-18, 1e-30])
def test_a_tiny_latency_moves_no_threshold(hop):
    chip = made_up(1e12, 1e15, {"bytes_per_s": 1e15, "topology": "switch", "hop_latency_s": hop})
    sweep = {
        "operation": "matmul",
        "grid": {"B": 2**20, "D": 64, "F": 2**20},
        "dtypes": ["bf16"],
        "chips": ["one"],
    }
    split = {
        "sharding": "contracting/all-reduce",
        "flops": "exact",
        "shards": [1],
        "thresholds": ["shards"],
    }
    config = config_of({**sweep, **split}, {"one": chip})
    assert threshold_differences(config) == []
    row = (
        rooflines.thresholds(rooflines.load_config(config))
        .select("critical", "critical_exact", "limit")
        .row(0)
    )
    assert row == (127, pytest.approx((128 * 1000 + 4) / (1000 + 4)), "network")


def test_a_split_beside_tiles_counts_whole_tiles():
    chip = made_up(1e14, 1e12, {"bytes_per_s": 1e18, "topology": "switch"})
    grid = {"B": 4096, "D": [100, 1000], "F": 4096}
    sweep = {
        "operation": "matmul",
        "grid": grid,
        "dtypes": ["bf16"],
        "chips": ["one"],
        "sharding": "batch/gather-w",
    }
    tiled = {
        **sweep,
        "tile": {"D": 128},
        "flops": "leading",
        "shards": [1],
        "thresholds": ["shards"],
    }
    config = config_of(tiled, {"one": chip})
    assert threshold_differences(config) == []
    found = rooflines.thresholds(rooflines.load_config(config))["critical_exact"].to_list()
    assert found == pytest.approx([4096 / 100 - 1 - 4096 / 128, 4096 / 100 - 1 - 4096 / 1024])


def test_a_tie_on_every_number_has_no_largest_one():
    chip = made_up(1e12, 2e12, {"bytes_per_s": 1e9, "topology": "switch"})
    grid = {"B": 1, "D": 2, "F": 2}  # 8 FLOPs, 16 bytes
    sweep = {
        "operation": "per-example-matmul",
        "grid": grid,
        "dtypes": ["bf16"],
        "chips": ["one"],
        "sharding": {"split": "B"},
    }
    config = config_of({**sweep, "shards": [1], "thresholds": ["shards"]}, {"one": chip})
    assert threshold_differences(config) == []
    row = (
        rooflines.thresholds(rooflines.load_config(config))
        .select("critical", "critical_exact", "limit")
        .row(0)
    )
    assert row == (None, None, None)
