"""The rates at which a row becomes compute-bound."""

from typing import Any

import pytest
from cases import config_of, made_up

import rooflines
from rooflines.critical.rates import LATENCY, OTHER, rates_at
from rooflines.model.columns import ALWAYS, FOUND
from rooflines.model.resources import RESOURCES

CHIPS = {
    "hops": {"base": "h100-sxm", "source": "made up", "networks.nvlink.hop_latency_s": 2e-6},
    "tied": {
        "source": "made up",
        "units": {"matrix": {"bf16": {"flops_per_s": 1e14}}},
        "memory": {"hbm": {"bytes_per_s": 1e14}},
    },
}
SPLITS: list[dict[str, Any]] = [
    {},
    {"sharding": "contracting/all-reduce", "shards": 4},
    {"sharding": "batch/gather-w", "shards": 8},
]


def solved(math, memory, network, latency=0.0):
    """Outcomes, factors and limits by rate, from times and the network's latency [s]."""
    times = dict(zip(RESOURCES, map(float, (math, memory, network)), strict=True))
    latencies = dict(zip(RESOURCES, (0.0, 0.0, float(latency)), strict=True))
    found = rates_at(times, latencies)
    return {
        name: (each["outcome"], each["critical_exact"], each["limit"])
        for name, each in found.items()
    }


@pytest.mark.parametrize(
    ("times", "peak", "memory", "network"),
    [
        ((4, 8, 2), (FOUND, 0.5, "memory"), (FOUND, 2, "memory"), (OTHER, None, "memory")),
        ((4, 2, 8), (FOUND, 0.5, "network"), (OTHER, None, "network"), (FOUND, 2, "network")),
        ((4, 8, 16), (FOUND, 0.25, "network"), (OTHER, None, "network"), (OTHER, None, "memory")),
        (
            (4, 2, 8, 5),
            (FOUND, 0.5, "network"),
            (OTHER, None, "network"),
            (LATENCY, None, "network"),
        ),
        ((4, 4, 4), *[(ALWAYS, 1, None)] * 3),
        ((4, 4 * (1 + 1e-15), 1), *[(ALWAYS, 1, None)] * 3),
    ],
)
def test_factors_worked_by_hand(times, peak, memory, network):
    assert list(solved(*times).values()) == [peak, memory, network]


def test_times_that_are_equal_but_for_roundings_tie():
    size, rate = 3**15, 43
    chips = {
        name: made_up(rate * size**2 + more, rate * 3 * size)
        for name, more in {"less": -1, "tied": 0, "close": 1, "more": 10**4}.items()
    }
    sweep = {
        "operation": "matmul",
        "grid": dict.fromkeys("BDF", size),
        "dtypes": ["bf16"],
        "chips": [*chips],
        "thresholds": ["peak", "memory_rate"],
    }
    rows = rooflines.thresholds(rooflines.load_config(config_of(sweep, chips)))
    outcomes = {"less": "always", "tied": "always", "close": "always", "more": "found"}
    assert {chip: outcomes[chip] for chip in rows["chip"]} == outcomes
    assert rows["outcome"].to_list() == [outcomes[chip] for chip in rows["chip"]]


PATHS = {
    "peak": "units.matrix.bf16.flops_per_s",
    "memory_rate": "memory.hbm.bytes_per_s",
    "network_rate": "networks.nvlink.bytes_per_s",
}


@pytest.mark.parametrize(
    ("rate", "sizes", "split"),
    [
        ("peak", {"B": 128, "D": 8192, "F": 8192}, SPLITS[0]),
        ("memory_rate", {"B": 128, "D": 8192, "F": 8192}, SPLITS[0]),
        ("network_rate", {"B": 4096, "D": 4096, "F": 8192}, SPLITS[1]),
        ("peak", {"B": 4096, "D": 4096, "F": 8192}, SPLITS[1]),
    ],
)
def test_a_chip_with_the_factor_is_compute_bound_in_the_table(rate, sizes, split):
    sweep = {"operation": "matmul", "grid": sizes, "dtypes": "bf16", **split}
    base = rooflines.load_config().chips["h100-sxm"]
    nominal = {
        "peak": base.units["matrix"]["bf16"].flops_per_s,
        "memory_rate": base.memory["hbm"].bytes_per_s,
        "network_rate": base.networks["nvlink"].bytes_per_s,
    }[rate]
    solved = {**sweep, "chips": "h100-sxm", "thresholds": [rate], "shares": [1, 0.9, 0.5]}
    config = rooflines.load_config({"sweeps": {"case": solved}})
    for row in rooflines.thresholds(config).to_dicts():
        assert row["outcome"] == "found"
        factor, hair = row["critical_exact"], 1e-9 if rate == "peak" else -1e-9
        chips = {
            name: {
                "base": "h100-sxm",
                "source": "made up",
                PATHS[rate]: nominal * f,
                "plausible": [PATHS[rate]],
            }
            for name, f in {"enough": factor * (1 - hair), "short": factor * (1 + hair)}.items()
        }
        varied = {"case": {**sweep, "chips": [*chips], "thresholds": []}}
        table = rooflines.rows(
            rooflines.load_config({"sweeps": varied, "chips": chips}), "case"
        ).collect()
        enough, short = table["utilization"]
        assert short < row["share"] <= enough
        assert enough == pytest.approx(row["share"], rel=3e-9)
        if row["share"] == 1:
            assert [bound == "compute" for bound in table["bound"]] == [True, False]
