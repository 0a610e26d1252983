"""Thresholds that Float64 decides are the exact ones; exact arithmetic alone gives all of them."""

from __future__ import annotations

import math
import random
import types
from fractions import Fraction
from typing import Any

import oracle
import polars as pl
import pytest
from cases import CHIPS, JOINED, SWEEPS, TORUS, config_of
from comparison import never_sure
from links import LINKS, split_sweep, splitters
from polars.testing import assert_frame_equal

import rooflines
from rooflines.critical import shards as critical_shards
from rooflines.critical import sizes as critical_sizes
from rooflines.critical.split_lines import ENDLESS, LineColumns, Numbers

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


def almost_tied_splits(chance: random.Random) -> tuple[dict[str, Fraction], Numbers]:
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
    hop = near(chance, (math0 + math1 * at) / max(at * (at - 1), 1)) * chance.choice([0, 0, 0, 1])
    grows = chance.random() < 0.8
    lines: dict[str, Fraction] = {}
    for piece, network in {"one": ZERO, "near": sent, "far": sent * half}.items():
        lines |= {
            f"#math_{piece}_0:0": math0,
            f"#math_{piece}_0:1": math1,
            f"#memory_{piece}_0:0": memory0,
            f"#memory_{piece}_0:1": memory1,
            f"#network_{piece}_0:0": -network if grows else network,
            f"#network_{piece}_0:1": network if grows else ZERO,
            f"#network_{piece}_1:1": ZERO if piece == "one" else -hop,
            f"#network_{piece}_1:2": ZERO if piece == "one" else hop,
        }
    most = chance.choice([1, 2, 9, 64, at, at, at + 1, at + 1, *[ENDLESS] * 3])
    ring = chance.choice([0, 0, 0, 1, 1, 2, 3, 4])
    numbers = Numbers(most, chance.random() < 0.9, min(most, 2) if ring == 1 else most, ring, 0)
    return lines, numbers


def times_of_split(lines: dict[str, Fraction], numbers: Numbers, chips: Fraction) -> list[Fraction]:
    """Return N times the time of math, memory and network, for N chips."""
    ring = numbers.step and chips > 2 and not chips % numbers.step
    piece = "one" if chips == 1 else "far" if ring else "near"

    def at(name: str) -> Fraction:
        powers = (lines.get(f"#{name}:{power}", ZERO) * chips**power for power in range(3))
        return sum(powers, ZERO)

    network = max(at(f"network_{piece}_{index}") for index in range(2))
    return [at(f"math_{piece}_0"), at(f"memory_{piece}_0"), network]


def exact_splits(lines: dict[str, Fraction], numbers: Numbers) -> dict[str, Any]:
    """Return the most chips of a split, against memory, the network and both, and its limit."""

    def most(*others: int) -> int:
        def good(chips: int) -> bool:
            times = times_of_split(lines, numbers, Fraction(chips))
            return chips <= numbers.most and all(times[0] >= times[other] for other in others)

        link = oracle.Link("", ZERO, 1, "torus", None, numbers.step or None, ZERO, ZERO)
        last = [oracle.last_good(family, good) for family in oracle.families([link])]
        return max(int(good(1)), *(ENDLESS if chips is None else chips for chips in last))

    found = {"critical": most(1, 2), "critical_memory": most(1), "critical_network": most(2)}
    limit = None
    if found["critical"] + 1 <= min(numbers.most, ENDLESS):
        times = times_of_split(lines, numbers, Fraction(found["critical"] + 1))
        limit = ("compute", "memory", "network")[times.index(max(times))]

    def known(chips: int) -> bool:
        return 1 <= chips < ENDLESS and (numbers.published or chips < numbers.most)

    return {"limit": limit} | {
        name: chips if known(chips) else None for name, chips in found.items()
    }


def test_a_number_of_chips_that_float64_decides_is_the_exact_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """For any thirty roundings, and the real number is right to 1e-9."""
    chance = random.Random(7)  # noqa: S311, examples
    truth = [almost_tied_splits(chance) for _ in range(1_500)]
    columns = LineColumns(len(truth))
    columns.terms = {name: ("flops", {(name,): name}) for name in truth[0][0]}
    columns.constraints = {
        (name, piece): [
            f"#{name}_{piece}_{index}" for index in range(2 if name == "network" else 1)
        ]
        for name in oracle.RESOURCES
        for piece in ("one", "near", "far")
    }
    for index, (lines, numbers) in enumerate(truth):
        for name, value in lines.items():
            columns.put(name, index, rounded(chance, value))
        for name in ("most", "near", "step", "least_far", "group"):
            columns.put(f"#{name}", index, float(getattr(numbers, name)))
        columns.put("#unpublished", index, float(not numbers.published))
        columns.put("#uneven", index, 0.0)
    monkeypatch.setattr(critical_shards, "work", lambda _, __, terms, ___: pl.col(*terms.values()))
    found = critical_shards.solve(pl.LazyFrame(columns.values), ANY_DIMENSION, columns).collect()
    for (lines, numbers), row in zip(truth, found.iter_rows(named=True), strict=True):
        if row["#unsure"]:
            continue
        exact = exact_splits(lines, numbers)
        assert {name: row[name] for name in exact} == exact, lines
        real = row["critical_exact"]
        if real is not None and real > 1 and not numbers.step:
            for off, holds in {-1: True, 1: False}.items():
                at = Fraction(real) * (1 + Fraction(off, 10**9))
                times = times_of_split(lines, numbers, at)
                assert (times[0] >= max(times)) is holds, (lines, real)


def test_exact_arithmetic_is_used_only_for_ties(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes thousands of times as long as Float64."""
    for module in (critical_sizes, critical_shards):
        monkeypatch.setattr(
            module, "solve_exactly", lambda *row: pytest.fail(f"{row[-1]} is no tie")
        )
    chips = {
        **{name: CHIPS[name] for name in JOINED},
        "slow": {
            **CHIPS["ring"],
            "networks": {"fabric": {**TORUS, "hop_latency_s": 1e-4, "typical_hop_latency_s": 1e-4}},
        },
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
        monkeypatch.setattr(module, "solve", never_sure(module.solve))
    assert_frame_equal(rooflines.thresholds(config), frame, rel_tol=1e-9, abs_tol=0)
