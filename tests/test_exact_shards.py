"""The largest number of chips in exact arithmetic, and where Float64 and it could disagree."""

from __future__ import annotations

import random
import types
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import oracle
import polars as pl
import pytest
from cases import config_of, made_up
from comparison import never_sure, threshold_differences
from polars.testing import assert_frame_equal

import rooflines
from rooflines.critical import shards as critical_shards
from rooflines.critical import shards_exact
from rooflines.critical.split_lines import ENDLESS
from rooflines.model.network import Link
from rooflines.sweep.support import ChipRows, Variant

if TYPE_CHECKING:
    from collections.abc import Callable

TENDS = {"compute": 0.75, "memory": 0.25, "network": 0.5}


def fabric(link: dict[str, Any]) -> tuple[Any, Any]:
    """Return the parts of a sweep and of its variant that exact arithmetic needs besides times."""
    links = (Link(Fraction(1), **link),)
    sweep = types.SimpleNamespace(op=types.SimpleNamespace(dims=()), links=lambda _: links)
    return sweep, (ChipRows("one", "hbm", "fabric", ()), Variant("bf16", "batch", (1,)))


def exact_split(link: dict[str, Any], times: Callable[[int], list[int]]) -> dict[str, Any]:
    """Return the exact thresholds of a split from N times its three times for N chips."""
    sweep, chip_variant = fabric(link)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            shards_exact,
            "exact_time",
            lambda _, __, at, resource, ___: times(at.shards)[
                oracle.RESOURCES.index(resource.name)
            ],
        )
        patch.setattr(shards_exact, "real_chips", lambda _, __, number, *___: float(number))
        solution = shards_exact.solve_exactly(
            sweep, chip_variant, {f"#tends_{bound}": value for bound, value in TENDS.items()}
        )
    return solution.columns()


def drawn_times(chance: random.Random, ring: int | None) -> Callable[[int], list[int]]:
    """Draw N times three times: memory grows with N, rings may be faster or slower."""
    own, grows, opened, closed = (chance.randint(0, most) for most in (12, 3, 20, 6))
    math = 12 + chance.choice([0, 0, opened])

    def times(chips: int) -> list[int]:
        closes = ring is not None and chips > 2 and chips % ring == 0
        return [math, own + grows * chips, (closed if closes else opened) * (chips - 1)]

    return times


def test_exact_arithmetic_gives_the_number_of_a_search() -> None:
    """On lines and rings within a domain, with frequent ties."""
    chance = random.Random(7)  # noqa: S311, examples
    for _ in range(400):
        ring, domain = chance.choice([None, 1, 2, 3, 4]), chance.choice([1, 2, 3, 4, 5, 9, 13])
        times = drawn_times(chance, ring)
        tried = {chips: times(chips) for chips in range(1, domain + 2)}
        held = {
            others: [
                chips
                for chips in range(1, domain + 1)
                if all(tried[chips][0] >= tried[chips][other] for other in others)
            ]
            for others in ((1, 2), (1,), (2,))
        }
        both, memory, network = (max(chips, default=None) for chips in held.values())
        after = tried[(both or 0) + 1]
        limit = (
            ("compute", "memory", "network")[after.index(max(after))]
            if (both or 0) < domain
            else None
        )
        found = exact_split({"topology": "torus", "ring_multiple": ring, "domain": domain}, times)
        outcome = "never" if both is None else "always" if both == domain else "found"
        assert found == {
            "outcome": outcome,
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
    """A split that goes further has no largest number and no limit."""
    last = ENDLESS - short
    found = exact_split(
        {"topology": "torus", "ring_multiple": ring}, lambda chips: [last, chips, 0]
    )
    critical = last if short > 0 else None
    assert found["outcome"] == ("found" if critical else "without-end")
    assert [found[name] for name in ("critical", "critical_memory", "critical_network")] == [
        critical,
        critical,
        None,
    ]
    assert found["limit"] == ("memory" if critical else None)


@pytest.mark.parametrize(
    ("ring", "critical", "real"),
    [(None, 2, 2.25), (1, 3, 3.5), (2, 2, 2.25), (3, 3, 3.5), (4, 2, 2.25)],
)
def test_a_pair_is_not_a_ring(
    ring: int | None, critical: int, real: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two chips are a line, even if all even numbers close rings, with the line's real number."""
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
    for solve in (critical_shards.solve, never_sure(critical_shards.solve)):
        monkeypatch.setattr(critical_shards, "solve", solve)
        assert threshold_differences(config) == []
        row = (
            rooflines.thresholds(rooflines.load_config(config))
            .select("critical", "critical_exact", "critical_network", "limit")
            .row(0)
        )
        assert row == (critical, pytest.approx(real), critical, "network")


def test_hops_outgrow_exact_flops_on_more_chips(monkeypatch: pytest.MonkeyPatch) -> None:
    """N times the exact FLOPs of a contraction shrink with N, N times the latency grows as N^2."""
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
    monkeypatch.setattr(critical_shards, "solve", never_sure(critical_shards.solve))
    assert_frame_equal(
        rooflines.thresholds(rooflines.load_config(config)), frame, rel_tol=1e-9, abs_tol=0
    )


@pytest.mark.parametrize("hop", [1e-12, 1e-18, 1e-30])
def test_a_tiny_latency_moves_no_threshold(hop: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Per chip, N times the FLOPs lose a second, and N times the latency gains next to nothing."""
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
    for solve in (critical_shards.solve, never_sure(critical_shards.solve)):
        monkeypatch.setattr(critical_shards, "solve", solve)
        assert threshold_differences(config) == []
        row = (
            rooflines.thresholds(rooflines.load_config(config))
            .select("critical", "critical_exact", "limit")
            .row(0)
        )
        assert row == (127, pytest.approx((128 * 1000 + 4) / (1000 + 4)), "network")


def test_a_split_beside_tiles_counts_whole_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outputs are written once for any number of contracted tiles, so tiles move the threshold."""
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
    for solve in (critical_shards.solve, never_sure(critical_shards.solve)):
        monkeypatch.setattr(critical_shards, "solve", solve)
        assert threshold_differences(config) == []
        found = rooflines.thresholds(rooflines.load_config(config))["critical_exact"].to_list()
        assert found == pytest.approx([4096 / 100 - 1 - 4096 / 128, 4096 / 100 - 1 - 4096 / 1024])


def test_a_tie_on_every_number_has_no_largest_one() -> None:
    """If math ties with memory on any number of chips, there is no largest, whole or real."""
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


def test_a_real_threshold_is_right_where_math_hardly_gains() -> None:
    """By a part in 10^10 of what both take, of which Float64 knows six digits."""
    size, tile = 1000, 2**40
    gains = {
        f"gain-{gain}": Fraction(10**13 * size * tile, 2 * tile + gain * size)
        for gain in (1, 3, 10, 100)
    }
    chips = {name: made_up(int(peak), 10**13) for name, peak in gains.items()}
    sweep: dict[str, Any] = {"operation": "matmul", "dtypes": ["bf16"], "chips": list(chips)}
    tiled = {
        "grid": {"B": size, "D": 1, "F": size},
        "tile": {"D": tile},
        "flops": "leading",
        "thresholds": ["D"],
    }
    assert threshold_differences(config_of({**sweep, **tiled}, chips)) == []


def test_a_real_number_of_chips_is_right_where_math_is_hardly_longer() -> None:
    """By a part in 10^12 of what both take on one chip."""
    size, rate = 2**40, 10**15
    peaks = {
        f"{tenths}-tenths": Fraction(size * rate * 10, 20 * size + tenths)
        for tenths in (13, 23, 59, 173)
    }
    chips = {
        name: made_up(int(peak), rate, {"bytes_per_s": rate, "topology": "switch"})
        for name, peak in peaks.items()
    }
    sweep = {
        "operation": "matmul",
        "grid": {"B": 1, "D": size, "F": 1},
        "dtypes": ["bf16"],
        "chips": list(chips),
    }
    split = {"sharding": "contracting/all-reduce", "shards": [1], "thresholds": ["shards"]}
    assert threshold_differences(config_of({**sweep, **split}, chips)) == []
    assert [
        round(found, 2)
        for found in rooflines.thresholds(
            rooflines.load_config(config_of({**sweep, **split}, chips))
        )["critical_exact"]
    ] == [1.3, 2.3, 5.9, 17.3]
