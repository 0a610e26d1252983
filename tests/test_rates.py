"""The rates at which a row becomes compute-bound: exact, and no hair too much."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

import rooflines
from rooflines.critical.rates import RATES, RateSolution, needed_intensity, rate_factor
from rooflines.model.resources import MATH, RESOURCES
from rooflines.sweep.sweep import Sweep
from rooflines.sweep.ties import exact_parts, exact_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.model.target import Target
    from rooflines.sweep.space import ChipVariant
    from rooflines.sweep.sweep import ChipRows, Variant

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

    def target(self, chip_rows: ChipRows, variant: Variant) -> Target:
        """The target, each rate with its factor."""
        target = super().target(chip_rows, variant)
        shares = target.efficiency
        return replace(
            target,
            efficiency={name: shares[name] * self.factors.get(name, 1) for name in shares},
        )


def sweep_of(chip: str, sizes: Mapping[str, int], split: Mapping[str, Any]) -> Sweep:
    """A sweep of one row."""
    sweep = {"operation": "matmul", "grid": dict(sizes), "dtypes": "bf16", "chips": chip, **split}
    return rooflines.load_config({"sweeps": {"one": sweep}, "chips": CHIPS}).sweep("one")


def own(sweep: Sweep) -> ChipVariant:
    """The only chip and variant."""
    (chip_rows,) = sweep.by_chip
    return chip_rows, chip_rows.variants[0]


def is_compute_bound(
    sweep: Sweep, sizes: Mapping[str, int], resource: str, factor: Fraction
) -> bool:
    """Whether the row is compute-bound where one rate is multiplied."""
    scaled = Scaled(sweep.name, sweep.config, sweep.chips, sweep.dtypes, {resource: factor})
    times = [exact_time(scaled, *own(scaled), each, sizes) for each in RESOURCES]
    return times[RESOURCES.index(MATH)] == max(times)


def rows() -> list[tuple[str, dict[str, int], dict[str, Any]]]:
    """Random sizes on several chips and splits, the same in every run."""
    draw = random.Random(20)  # noqa: S311, no secrets
    return [
        (chip, {dim: 2 ** draw.randint(3, 14) + draw.randint(0, 3) for dim in "BDF"}, split)
        for chip in ("h100-sxm", "tpu-v5e", "hops")
        for split in SPLITS
        for _ in range(12)
    ]


def test_the_factor_makes_a_row_compute_bound_and_a_hair_less_does_not() -> None:
    """A higher peak than the largest, or a lower bandwidth than the smallest, is not enough."""
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


def test_a_tie_is_compute_bound_as_it_is() -> None:
    """B = D = F = 3 at one FLOP per byte of bandwidth is a tie; one FLOP/s more is not."""
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
def test_the_limit_is_what_stands_in_the_way(resource: str, outcome: str, limit: str) -> None:
    """Above the largest peak the network binds; a faster memory leaves the network as it is."""
    sizes = {"B": 64, "D": 1024, "F": 8192}
    sweep = sweep_of("h100-sxm", sizes, SPLITS[2])
    solution = rate_factor(sweep, own(sweep), RATES[resource], sizes)
    assert (solution.outcome, solution.limit) == (outcome, limit)


def test_known_factors() -> None:
    """B=128, D=F=8192 in bf16 on an H100: 138,412,032 byte / 3.35e12 over 2^34 FLOP / 9.89e14."""
    sizes = {"B": 128, "D": 8192, "F": 8192}
    sweep = sweep_of("h100-sxm", sizes, {})
    ratio = (Fraction(138_412_032) / 3_350_000_000_000) / (Fraction(2**34) / 989_000_000_000_000)
    factors = {name: rate_factor(sweep, own(sweep), r, sizes).factor for name, r in RATES.items()}
    assert factors == {"peak": 1 / ratio, "memory_rate": ratio, "network_rate": None}
    target = sweep.target(*own(sweep))
    assert needed_intensity(target, RATES["memory_rate"]) == Fraction(98900, 335)
    assert needed_intensity(target, RATES["network_rate"]) is None


def test_a_time_is_the_larger_of_work_and_latency() -> None:
    """8 chips on a switch with hops of 2 us: an all-reduce takes at least its hops."""
    sizes = {"B": 1, "D": 8, "F": 1}
    sweep = sweep_of("hops", sizes, {"sharding": "contracting/all-reduce", "shards": 8})
    work_s, latency_s = exact_parts(sweep, *own(sweep), RATES["network_rate"], sizes)
    assert 0 < work_s < latency_s == exact_time(sweep, *own(sweep), RATES["network_rate"], sizes)
