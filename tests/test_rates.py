"""The rates at which a row becomes compute-bound."""

from fractions import Fraction
from typing import Any

import pytest
from cases import SWEEPS, config_of, made_up

import rooflines
from rooflines.critical.rates import LATENCY, OTHER, needed_intensity, rates_at
from rooflines.model.columns import ALWAYS, FOUND
from rooflines.model.resources import RATES, RESOURCES

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


def test_known_factors():
    """B=128, D=F=8192 in bf16 on an H100: 138,412,032 byte / 3.35e12 over 2^34 FLOP / 9.89e14."""
    sizes = {"B": 128, "D": 8192, "F": 8192}
    sweep = {"operation": "matmul", "grid": sizes, "dtypes": "bf16", "chips": "h100-sxm"}
    loaded = rooflines.load_config(
        {"sweeps": {"one": {**sweep, "thresholds": ["peak", "memory_rate"]}}}
    )
    ratio = (138_412_032 / 3.35e12) / (2**34 / 9.89e14)
    factors = rooflines.thresholds(loaded)["critical_exact"].to_list()
    assert factors == pytest.approx([1 / ratio, ratio], rel=1e-14)
    (case,) = loaded.sweep("one").blocks[0].cases
    assert needed_intensity(case.target, RATES["memory_rate"]) == Fraction(98900, 335)
    assert needed_intensity(case.target, RATES["network_rate"]) is None


def asked(sweep, **more):
    """A config of a sweep that solves for every rate."""
    split = sweep.get("sharding", "none") != "none"
    axes = [rate for rate in RATES if split or rate != "network_rate"]
    return config_of({**sweep, "thresholds": axes, **more})


@pytest.mark.filterwarnings("ignore::rooflines.PlausibilityWarning")
@pytest.mark.parametrize("name", SWEEPS)
def test_factors_of_all_sweeps_have_a_row_each_and_no_size(name):
    """`verify` compares them with fractions."""
    loaded = rooflines.load_config(asked(SWEEPS[name]))
    sweep, rows = loaded.sweep("case"), rooflines.thresholds(loaded)
    assert rows.height == sweep.solutions()
    assert rows.height == sweep.rows * len(sweep.solved) * len(sweep.config.shares)
    empty = ("critical", "critical_memory", "critical_network", "critical_rule", "limit_intensity")
    assert rows.select(empty).null_count().row(0) == (rows.height,) * len(empty)
    exact = rows.filter(rows["outcome"] == "always")["critical_exact"]
    assert exact.to_list() == [1.0] * len(exact)


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


def test_only_what_is_split_can_be_solved_for_the_networks_rate():
    sweep = {"operation": "matmul", "grid": dict.fromkeys("BDF", 64), "dtypes": "bf16"}
    sweep |= {"chips": "h100-sxm", "thresholds": ["network_rate"]}
    with pytest.raises(rooflines.RooflinesError) as error:
        rooflines.load_config({"sweeps": {"case": sweep}})
    assert "thresholds[0] asks for network_rate, but nothing is split." in str(error.value)
    assert "or leave network_rate out" in str(error.value)
