"""The rates at which a row becomes compute-bound: exact, and no hair too much."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import pytest
from cases import SWEEPS, config_of, made_up

import rooflines
from rooflines.basics.numbers import exact
from rooflines.critical.rates import RateSolution, needed_intensity, rate_factor
from rooflines.model.network import axes_text
from rooflines.model.resources import MATH, RATES, RESOURCES
from rooflines.sweep.space import ChipVariant
from rooflines.sweep.sweep import Sweep
from rooflines.sweep.ties import exact_parts, exact_time

HAIR = Fraction(1, 10**30)

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


@dataclass(frozen=True, repr=False)
class Scaled(Sweep):
    """A sweep on chips with other rates: the efficiency multiplies a rate and no latency."""

    factors: Mapping[str, Fraction] = field(default_factory=dict)

    def target(self, chip_rows, variant):
        """The target, each rate with its factor."""
        target = super().target(chip_rows, variant)
        shares = target.efficiency
        return replace(
            target,
            efficiency={name: shares[name] * self.factors.get(name, 1) for name in shares},
        )


def sweep_of(chip, sizes, split):
    """A sweep of one row."""
    sweep = {"operation": "matmul", "grid": dict(sizes), "dtypes": "bf16", "chips": chip, **split}
    return rooflines.load_config({"sweeps": {"one": sweep}, "chips": CHIPS}).sweep("one")


def own(sweep: Sweep) -> ChipVariant:
    """The only chip and variant."""
    (chip_rows,) = sweep.by_chip
    return chip_rows, chip_rows.variants[0]


def is_compute_bound(sweep, sizes, resource, factor):
    """Whether the row is compute-bound where one rate is multiplied."""
    parts = sweep.name, sweep.config, sweep.chips, sweep.dtypes, sweep.calibrations
    scaled = Scaled(*parts, {resource: factor})
    times = [exact_time(scaled, *own(scaled), each, sizes) for each in RESOURCES]
    return times[RESOURCES.index(MATH)] == max(times)


def rows():
    """Random sizes on several chips and splits, the same in every run."""
    draw = random.Random(20)  # noqa: S311, no secrets
    return [
        (chip, {dim: 2 ** draw.randint(3, 14) + draw.randint(0, 3) for dim in "BDF"}, split)
        for chip in ("h100-sxm", "tpu-v5e", "hops")
        for split in SPLITS
        for _ in range(12)
    ]


def test_the_factor_makes_a_row_compute_bound_and_a_hair_less_does_not():
    outcomes = []
    for chip, sizes, split in rows():
        sweep = sweep_of(chip, sizes, split)
        for name, resource in RATES.items():
            solution = rate_factor(sweep, own(sweep), resource, sizes)
            factor = solution.factor
            outcomes.append((name, solution.outcome))
            if factor is None:
                least = 10**40  # no factor on this rate alone is enough
                assert not is_compute_bound(sweep, sizes, resource.name, Fraction(least))
                continue
            assert is_compute_bound(sweep, sizes, resource.name, factor)
            if solution.outcome == "always":
                assert factor == 1
                continue
            beyond = factor * (1 + HAIR if name == "peak" else 1 - HAIR)
            assert not is_compute_bound(sweep, sizes, resource.name, beyond)
            assert factor < 1 if name == "peak" else factor > 1
    assert {outcome for name, outcome in outcomes if name == "peak"} == {"found", "always"}
    for name in ("memory_rate", "network_rate"):
        assert {"found", "always", "other"} <= {one for rate, one in outcomes if rate == name}
    assert ("network_rate", "latency") in outcomes


def test_a_tie_is_compute_bound_as_it_is():
    sizes = dict.fromkeys("BDF", 3)
    sweep = sweep_of("tied", sizes, {})
    assert exact_time(sweep, *own(sweep), RATES["peak"], sizes) == Fraction(54, 10**14)
    for resource in RATES.values():
        solution = rate_factor(sweep, own(sweep), resource, sizes)
        assert solution == RateSolution(Fraction(1), "always", None)


@pytest.mark.parametrize(
    ("resource", "outcome", "limit"),
    [("peak", "found", "network"), ("memory_rate", "other", "network")],
)
def test_the_limit_is_what_stands_in_the_way(resource, outcome, limit):
    sizes = {"B": 64, "D": 1024, "F": 8192}
    sweep = sweep_of("h100-sxm", sizes, SPLITS[2])
    solution = rate_factor(sweep, own(sweep), RATES[resource], sizes)
    assert (solution.outcome, solution.limit) == (outcome, limit)


def test_known_factors():
    """B=128, D=F=8192 in bf16 on an H100: 138,412,032 byte / 3.35e12 over 2^34 FLOP / 9.89e14."""
    sizes = {"B": 128, "D": 8192, "F": 8192}
    sweep = sweep_of("h100-sxm", sizes, {})
    ratio = (Fraction(138_412_032) / 3_350_000_000_000) / (Fraction(2**34) / 989_000_000_000_000)
    factors = {name: rate_factor(sweep, own(sweep), r, sizes).factor for name, r in RATES.items()}
    assert factors == {"peak": 1 / ratio, "memory_rate": ratio, "network_rate": None}
    target = sweep.target(*own(sweep))
    assert needed_intensity(target, RATES["memory_rate"]) == Fraction(98900, 335)
    assert needed_intensity(target, RATES["network_rate"]) is None


def test_a_time_is_the_larger_of_work_and_latency():
    """8 chips on a switch with hops of 2 us: an all-reduce takes at least its hops."""
    sizes = {"B": 1, "D": 8, "F": 1}
    sweep = sweep_of("hops", sizes, {"sharding": "contracting/all-reduce", "shards": 8})
    work_s, latency_s = exact_parts(sweep, *own(sweep), RATES["network_rate"], sizes)
    assert 0 < work_s < latency_s == exact_time(sweep, *own(sweep), RATES["network_rate"], sizes)


# ---------------------------------------------------------------- as columns of the thresholds


def asked(sweep, **more):
    """A config of a sweep that solves for every rate."""
    split = sweep.get("sharding", "none") != "none"
    axes = [rate for rate in RATES if split or rate != "network_rate"]
    return config_of({**sweep, "thresholds": axes, **more})


def factors_of(config):
    """Every row of the thresholds, with the exact factor of its row of the table."""
    loaded = rooflines.load_config(config)
    sweep = loaded.sweep("case")
    by_key = {
        (each.chip, each.memory, each.network, v.dtypes, v.sharding, v.shards, axes_text(v.axes)): (
            each,
            v,
        )
        for each in sweep.by_chip
        for v in each.variants
    }
    pairs = []
    for row in rooflines.thresholds(loaded).iter_rows(named=True):
        keys = (row[key] for key in ("chip", "memory", "network", "dtypes", "sharding", "shards"))
        own = by_key[*keys, row.get("axes") or str(row["shards"])]
        sizes = {dim: row[dim] for dim in sweep.op.dims}
        share = exact(row["share"])
        pairs.append((row, rate_factor(sweep, own, RATES[row["axis"]], sizes, share)))
    assert (
        len(pairs) == sweep.solutions() == sweep.rows * len(sweep.solved) * len(sweep.config.shares)
    )
    return pairs


@pytest.mark.filterwarnings("ignore::rooflines.PlausibilityWarning")
@pytest.mark.parametrize("name", SWEEPS)
def test_every_factor_of_the_table_is_the_exact_one(name):
    for row, exact_one in factors_of(asked(SWEEPS[name])):
        factor, found = exact_one.factor, row["critical_exact"]
        assert row["outcome"] == ("never" if factor is None else exact_one.outcome)
        assert row["limit"] == exact_one.limit
        assert found == (None if factor is None else pytest.approx(float(factor), rel=1e-13))
        empty = ("critical", "critical_memory", "critical_network", "critical_rule")
        assert [row[column] for column in (*empty, "limit_intensity")] == [None] * 5


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
