"""The most chips on which a split operation is compute-bound, at the edges of their segments."""

import pytest
from cases import config_of, made_up
from comparison import threshold_differences

import rooflines

ALL_REDUCE = {"operation": "matmul", "sharding": "contracting/all-reduce"}


def solved(chip, grid, **keys):
    """Thresholds along the number of chips, which are those of the exact model."""
    sweep = {"grid": grid, "dtypes": ["bf16"], "chips": ["one"], "shards": [1], **keys}
    config = config_of({**sweep, "thresholds": ["shards"]}, {"one": chip})
    assert threshold_differences(config) == []
    return rooflines.thresholds(rooflines.load_config(config)).to_dicts()


@pytest.mark.parametrize(
    ("ring", "critical", "real"),
    [(None, 2, 2.25), (1, 3, 3.5), (2, 2, 2.25), (3, 3, 3.5), (4, 2, 2.25)],
)
def test_a_pair_is_not_a_ring(ring, critical, real):
    """2 B D F FLOPs take as long as 1.25 times 4 B F bytes."""
    link = {"bytes_per_s": 1e9, "topology": "torus", **({"ring_multiple": ring} if ring else {})}
    (row,) = solved(made_up(1e12, 1e15, link), {"B": 64, "D": 2500, "F": 64}, **ALL_REDUCE)
    assert row["critical"] == row["critical_network"] == critical
    assert row["critical_exact"] == pytest.approx(real)
    assert row["limit"] == "network"


def test_hops_outgrow_exact_flops_on_more_chips():
    link = {"bytes_per_s": 1e18, "topology": "torus", "hop_latency_s": 1e-8}
    chip, grid = made_up(2**20 * 10**8, 1e18, link), {"B": 1024, "D": [100, 1000], "F": 1024}
    for row in solved(chip, grid, **ALL_REDUCE, flops="exact"):
        assert int(row["critical_exact"]) == row["critical"]


@pytest.mark.parametrize("hop", [1e-12, 1e-18, 1e-30])
def test_a_tiny_latency_moves_no_threshold(hop):
    chip = made_up(1e12, 1e15, {"bytes_per_s": 1e15, "topology": "switch", "hop_latency_s": hop})
    (row,) = solved(chip, {"B": 2**20, "D": 64, "F": 2**20}, **ALL_REDUCE, flops="exact")
    assert (row["critical"], row["limit"]) == (127, "network")
    assert row["critical_exact"] == pytest.approx((128 * 1000 + 4) / (1000 + 4))


def test_a_split_beside_tiles_counts_whole_tiles():
    chip = made_up(1e14, 1e12, {"bytes_per_s": 1e18, "topology": "switch"})
    tiled = {"operation": "matmul", "sharding": "batch/gather-w", "tile": {"D": 128}}
    rows = solved(chip, {"B": 4096, "D": [100, 1000], "F": 4096}, **tiled, flops="leading")
    expected = [4096 / 100 - 1 - 4096 / 128, 4096 / 100 - 1 - 4096 / 1024]
    assert [row["critical_exact"] for row in rows] == pytest.approx(expected)


def test_a_tie_on_every_number_has_no_largest_one():
    """8 FLOPs and 16 bytes a chip."""
    chip = made_up(1e12, 2e12, {"bytes_per_s": 1e9, "topology": "switch"})
    split = {"operation": "per-example-matmul", "sharding": {"split": "B"}}
    (row,) = solved(chip, {"B": 1, "D": 2, "F": 2}, **split)
    assert (row["critical"], row["critical_exact"], row["limit"]) == (None, None, None)
