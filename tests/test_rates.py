"""The rates at which a row becomes compute-bound."""

import pytest
from cases import config_of, made_up

import rooflines
from rooflines.critical.rates import LATENCY, OTHER, rates_at
from rooflines.model.columns import ALWAYS, FOUND
from rooflines.model.resources import RESOURCES


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
