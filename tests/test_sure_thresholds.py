"""Thresholds that Float64 decides are the exact ones; exact arithmetic alone gives all of them."""

from __future__ import annotations

import math
import random
import types
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import oracle
import polars as pl
import pytest
from cases import CHIPS, JOINED, LINKS, SWEEPS, TORUS, config_of, made_up, split_sweep, splitters
from polars.testing import assert_frame_equal
from test_properties import threshold_differences

import rooflines
from rooflines.critical import shards as critical_shards
from rooflines.critical import shards_exact, solving
from rooflines.critical import sizes as critical_sizes
from rooflines.critical.split_lines import ENDLESS, LineColumns
from rooflines.sweep.sweep import Variant

if TYPE_CHECKING:
    from collections.abc import Callable

ZERO = Fraction(0)
THIRTY_ROUNDINGS = Fraction(33, 10**16)
"""The relative error of a number after thirty roundings [1]."""

ANY_DIMENSION: Any = types.SimpleNamespace(tile={})
"""The part of a sweep that thresholds need if the lines of its times are given."""


def rounded(chance: random.Random, value: Fraction) -> float:
    """Return a number with the error of thirty roundings."""
    return float(
        value
        * (
            1
            + THIRTY_ROUNDINGS
            * Fraction(chance.choice([-100, 0, 100, chance.randint(-99, 99)]), 100)
        )
    )


def near(chance: random.Random, value: Fraction) -> Fraction:
    """Return a number, or one so close that roundings may hide the difference."""
    return value * (
        1
        + chance.choice([-1, 0, 1]) * Fraction(chance.randint(1, 99), 10 ** chance.randint(11, 19))
    )


def almost_tied_lines(chance: random.Random) -> dict[str, Fraction]:
    """Draw slopes and constants of three times; often slopes or whole thresholds nearly tie."""
    math = Fraction(chance.randint(10**5, 10**7), 10**12)
    lines = {"#a_math": math, "#b_math": -math / 3 * chance.choice([0, 0, 1])}
    again, slope = (
        Fraction(chance.choice([1, 2, 3, 1000, 3**15])),
        math * Fraction(chance.randint(1, 150), 100),
    )
    for name in ("memory", "network"):
        whole = again if chance.random() < 0.6 else Fraction(chance.randint(1, 10**5))
        own = near(
            chance, chance.choice([slope, slope, math, math * Fraction(chance.randint(1, 99), 100)])
        )
        line = (
            near(chance, whole) * (math - own) + lines["#b_math"]
            if own < math
            else math * chance.choice([0, 0, 1, 7])
        )
        lines |= {f"#a_{name}": own, f"#b_{name}": max(line, ZERO)}
    return lines | {
        "#latency_network": near(chance, again) * math if chance.random() < 0.3 else ZERO
    }


def exact_thresholds(lines: dict[str, Fraction]) -> dict[str, Any]:
    """Return the thresholds of three times from their lines."""
    reals: dict[str, Fraction | None] = {}
    for name in ("memory", "network"):
        found = []
        for slope, constant in [
            (f"#a_{name}", f"#b_{name}"),
            *([("", "#latency_network")] if name == "network" else []),
        ]:
            gain, behind = (
                lines["#a_math"] - lines.get(slope, ZERO),
                lines[constant] - lines["#b_math"],
            )
            found.append(
                max(behind / gain, ZERO) if gain > 0 else None if gain < 0 or behind > 0 else ZERO
            )
        reals[name] = None if None in found else max(real for real in found if real is not None)
    never = [name for name, real in reals.items() if real is None]
    last = max(
        never or reals,
        key=lambda name: [lines[f"#a_{name}"], lines[f"#b_{name}"]] if never else [reals[name]],
    )
    whole = {
        name: None if real is None else max(1, math.ceil(real)) for name, real in reals.items()
    }
    critical = None if never else max(size for size in whole.values() if size is not None)
    return {
        "critical": critical,
        "critical_memory": whole["memory"],
        "critical_network": whole["network"],
        "limit": last if critical != 1 else None,
    }


def test_a_threshold_that_float64_decides_is_the_exact_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """For any thirty roundings, also next to a tie."""
    chance = random.Random(7)  # noqa: S311, examples
    truth = [almost_tied_lines(chance) for _ in range(1_500)]
    columns = {name: [rounded(chance, lines[name]) for lines in truth] for name in truth[0]}
    frame = pl.DataFrame(
        {**columns, "#slope_flops": 1.0, "#slope_memory_bytes": 1.0, "#slope_network_bytes": 1.0}
    )
    monkeypatch.setattr(critical_sizes, "affine", lambda *_: {"#zero": pl.lit(0.0)})
    found = critical_sizes.solve(frame.lazy(), ANY_DIMENSION, "B", {}, frame.columns).collect()
    for lines, row in zip(truth, found.iter_rows(named=True), strict=True):
        exact = exact_thresholds(lines)
        assert row["#unsure"] or {name: row[name] for name in exact} == exact, lines


def almost_tied_splits(chance: random.Random) -> dict[str, Fraction]:
    """Draw three times N as lines in N, on each piece, that often meet at or near a whole N."""
    at, half = chance.choice([1, 2, 3, 8, 40, 1000, 10**6]), Fraction(1, 2)
    math0 = Fraction(chance.randint(10**5, 10**7), 10**12)
    math1 = -math0 / (at + 1) * chance.choice([ZERO, ZERO, Fraction(1, 3)])
    memory0 = near(chance, math0 * chance.choice([Fraction(1, 3), Fraction(4, 5), Fraction(1)]))
    memory1 = max(near(chance, (math0 + math1 * at - memory0) / at), ZERO) * chance.choice(
        [0, 1, 1]
    )
    sent = near(chance, (math0 + math1 * at) / max(at - 1, 1)) * chance.choice(
        [ZERO, half, 2 * half, 2 * half]
    )
    if chance.random() < 0.3:  # memory ends the split, and ties with the network one chip further
        after = math0 * Fraction(2 * at + 2, 2 * at + 1)
        math1, memory0, memory1, sent = ZERO, ZERO, after / (at + 1), near(chance, after / at)
    elif chance.random() < 0.2:  # rings end where they tie with math
        memory0, memory1, sent = ZERO, ZERO, near(chance, 2 * (math0 + math1 * (at + 1)) / at)
    lines = {
        "#latency_network": near(chance, (math0 + math1 * at) / max(at * (at - 1), 1))
        * chance.choice([0, 0, 0, 1])
    }
    grows = chance.random() < 0.8
    for piece, network in {"one": ZERO, "open": sent, "ring": sent * half}.items():
        lines |= {
            f"#math_{piece}0": math0,
            f"#math_{piece}1": math1,
            f"#memory_{piece}0": memory0,
            f"#memory_{piece}1": memory1,
        }
        lines |= {
            f"#network_{piece}0": -network if grows else network,
            f"#network_{piece}1": network if grows else ZERO,
        }
    domain = Fraction(chance.choice([1, 2, 9, 64, at, at, at + 1, at + 1, *[ENDLESS] * 3]))
    return lines | {"#ring": Fraction(chance.choice([0, 0, 0, 1, 1, 2, 3, 4])), "#domain": domain}


def times_of_split(lines: dict[str, Fraction], chips: Fraction) -> list[Fraction]:
    """Return N times the time of math, memory and network, for N chips."""
    ring = lines["#ring"] and chips > 2 and not chips % lines["#ring"]
    piece = "one" if chips == 1 else "ring" if ring else "open"
    times = [
        lines[f"#{name}_{piece}0"] + lines[f"#{name}_{piece}1"] * chips for name in oracle.RESOURCES
    ]
    return [*times[:2], max(times[2], chips * (chips - 1) * lines["#latency_network"])]


def exact_splits(lines: dict[str, Fraction]) -> dict[str, Any]:
    """Return the most chips of a split, against memory, the network and both, and its limit."""

    def most(*others: int) -> int:
        def good(chips: int) -> bool:
            times = times_of_split(lines, Fraction(chips))
            return chips <= lines["#domain"] and all(times[0] >= times[other] for other in others)

        families = oracle.families(
            oracle.Link("", ZERO, 1, "torus", None, int(lines["#ring"]) or None, ZERO)
        )
        last = [oracle.last_good(family, good) for family in families]
        return max(int(good(1)), *(ENDLESS if chips is None else chips for chips in last))

    found = {"critical": most(1, 2), "critical_memory": most(1), "critical_network": most(2)}
    limit = None
    if found["critical"] + 1 <= min(int(lines["#domain"]), ENDLESS):
        times = times_of_split(lines, Fraction(found["critical"] + 1))
        limit = ("compute", "memory", "network")[times.index(max(times))]
    return {"limit": limit} | {
        name: chips if 1 <= chips < ENDLESS else None for name, chips in found.items()
    }


def test_a_number_of_chips_that_float64_decides_is_the_exact_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """For any thirty roundings, and the real number is right to 1e-9."""
    chance = random.Random(7)  # noqa: S311, examples
    truth = [almost_tied_splits(chance) for _ in range(1_500)]
    columns = LineColumns(len(truth))
    columns.terms = {name: {(name,): name} for name in truth[0]}
    for index, lines in enumerate(truth):
        for name, value in lines.items():
            columns.put(
                name,
                index,
                float(value) if name in ("#ring", "#domain") else rounded(chance, value),
            )
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


def test_exact_arithmetic_is_used_only_for_ties(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes thousands of times as long as Float64."""
    for module in (critical_sizes, critical_shards):
        monkeypatch.setattr(
            module, "solve_exactly", lambda *row: pytest.fail(f"{row[-1]} is no tie")
        )
    chips = {
        **{name: CHIPS[name] for name in JOINED},
        "slow": {**CHIPS["ring"], "networks": {"fabric": {**TORUS, "hop_latency_s": 1e-4}}},
    }
    sweep = {
        "operation": "matmul",
        "grid": {"B": [17, 5003], "D": [1009, 8209], "F": [1013, 14327]},
        "dtypes": ["bf16"],
        "chips": list(chips),
        "sharding": [
            "none",
            "contracting/all-reduce",
            "column/gather-x",
            "batch/gather-w",
            "batch",
        ],
        "shards": [1, 2, 4, 7],
        "efficiency": {"math": 0.9973},
        "thresholds": ["B", "D", "F", "shards"],
    }
    assert rooflines.thresholds(rooflines.load_config(config_of(sweep, chips))).height > 1000


def unsure(solve: Any) -> Any:  # noqa: ANN401, of either kind of threshold
    """Return a solver that leaves all rows to exact arithmetic."""
    return lambda *arguments: solve(*arguments).with_columns(
        pl.lit(value=True).alias(solving.UNSURE)
    )


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
def test_exact_arithmetic_alone_gives_the_same_thresholds(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exact arithmetic and Float64 give the same table."""
    chips = CHIPS if name in SWEEPS else splitters(LINKS[name])
    config = rooflines.load_config(
        config_of(SWEEPS[name] if name in SWEEPS else split_sweep(chips), chips)
    )
    frame = rooflines.thresholds(config)
    for module in (critical_sizes, critical_shards):
        monkeypatch.setattr(module, "solve", unsure(module.solve))
    assert_frame_equal(rooflines.thresholds(config), frame, rel_tol=1e-9, abs_tol=0)


TENDS = {"compute": 0.75, "memory": 0.25, "network": 0.5}


def fabric(link: dict[str, Any]) -> tuple[Any, Any]:
    """Return the parts of a sweep and of its variant that exact arithmetic needs besides times."""
    sweep = types.SimpleNamespace(
        op=types.SimpleNamespace(dims=()), chips={"one": {"networks": {"fabric": link}}}
    )
    return sweep, (types.SimpleNamespace(chip="one", network="fabric"), Variant("bf16", "batch", 1))


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
        patch.setattr(shards_exact, "real_chips", lambda _, __, number, ___: float(number))
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
    """A split that goes further has no largest number and no limit."""
    last = ENDLESS - short
    found = exact_split(
        {"topology": "torus", "ring_multiple": ring}, lambda chips: [last, chips, 0]
    )
    critical = last if short > 0 else None
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
    for solve in (critical_shards.solve, unsure(critical_shards.solve)):
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
        2**20 * 10**8, 1e18, {"bytes_per_s": 1e18, "topology": "switch", "hop_latency_s": 1e-8}
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
    monkeypatch.setattr(critical_shards, "solve", unsure(critical_shards.solve))
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
    for solve in (critical_shards.solve, unsure(critical_shards.solve)):
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
    for solve in (critical_shards.solve, unsure(critical_shards.solve)):
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
