"""Routes between chips: which interconnects a question takes, what it refuses, and its hops."""

import pytest
from small_config import matmul

import rooflines

ON_TWO = ["nvlink", "infiniband"]


def thresholds(**keys):
    """The thresholds of a sweep of matmuls."""
    about = {"sharding": "contracting/all-reduce", "shards": [1], **keys}
    return rooflines.thresholds(
        rooflines.load_config({"sweeps": {"one": matmul(**about)}, "charts": []})
    )


def test_an_estimate_over_two_networks_adds_up_their_hops_and_a_bound_takes_the_larger():
    chip = {
        "base": "h100-sxm",
        "source": "a test",
        "networks.nvlink.typical_hop_latency_s": 3e-6,
        "networks.infiniband.typical_hop_latency_s": 5e-6,
        "calibration.bf16": {"math": 1, "memory": 1, "network": 1, "overhead_s": 0},
    }
    keys = {"shards": [16], "sharding": "contracting/all-reduce", "network": [ON_TWO]}
    sweep = matmul(grid={"B": 1, "D": 16, "F": 1}, chips=["two"], thresholds=[], **keys)
    config = rooflines.load_config({"sweeps": {"one": sweep}, "chips": {"two": chip}, "charts": []})
    row = rooflines.rows(config, "one").collect().row(0, named=True)
    assert row["t_estimate_s"] == pytest.approx(2 * 3e-6 + 2 * 5e-6, rel=1e-12)
    assert row["t_network_s"] == pytest.approx(2 * 2.7e-6, rel=1e-12)


def test_a_torus_inside_another_network_joins_one_chip():
    keys = {"network": [["ici", "dcn"]], "thresholds": ["shards"], "chips": ["tpu-v5p"]}
    large = thresholds(grid={"B": 8192, "D": 8192, "F": 8192}, **keys).row(0, named=True)
    small = thresholds(grid={"B": 1, "D": 8192, "F": 8192}, **keys).row(0, named=True)
    assert (large["outcome"], large["critical"], large["limit"]) == ("always", 1, None)
    assert (small["outcome"], small["critical"]) == ("never", None)
