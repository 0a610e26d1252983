"""Networks of How to Scale Your Model: its worked numbers that the model covers.

The book often takes (N-1)/N of a collective over N chips for 1, so a number here is between (N-1)/N
of the printed one and all of it. docs/networks.md lists them, and those that differ.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from small_config import matmul

import rooflines

PAGE = Path(__file__).parents[1] / "docs" / "networks.md"

PRINTED_ROUNDING = 0.02
"""The printed numbers have two or three digits."""

ON_TWO = ["nvlink", "infiniband"]


def without_latency(base, *networks, **numbers):
    """Return a variant of a chip whose hops take no time."""
    hops = {f"networks.{name}.hop_latency_s": 0 for name in networks}
    return {"base": base, **hops, **numbers, "source": "How to Scale Your Model"}


PEAK = "units.matrix.bf16.flops_per_s"
CHIPS = {
    "book-v5e": without_latency("tpu-v5e", "ici"),
    "book-v5e-ring": without_latency("tpu-v5e", "ici", **{"networks.ici.ring_multiple": 4}),
    "book-v4": without_latency("tpu-v4", "ici"),
    "book-h100": without_latency("h100-sxm", *ON_TWO, **{PEAK: 9.9e14}),
    "book-h800": without_latency("h800", *ON_TWO, **{PEAK: 9.9e14}),
    "book-b200": without_latency("b200", *ON_TWO),
}


def sweep(chip, sharding, shards, sizes, **more):
    """Return a sweep of one split matmul."""
    grid = dict(zip("BDF", sizes, strict=True))
    split = {"sharding": sharding, "shards": [shards]}
    return matmul(grid=grid, chips=[chip], **split, **{"thresholds": [], **more})


def config_of(described):
    """Return the config of one sweep."""
    chips = {name: CHIPS[name] for name in described["chips"]}
    return rooflines.load_config({"sweeps": {"s": described}, "chips": chips, "charts": []})


def row(described):
    """Return the only row of a sweep."""
    return rooflines.rows(config_of(described), "s").collect().row(0, named=True)


def gathered(chip, shards, batch, width, **more):
    """Return the row of an all-gather of a bf16 [batch, width]."""
    return row(sweep(chip, "column/gather-x", shards, (batch, width, 8192), **more))


def tokens(chip, shards, **more):
    """Return the tokens per chip from which on gathered weights take less time than the math."""
    described = sweep(chip, "batch/gather-w", shards, (1, 8192, 8192), thresholds=["B"])
    described |= more
    return float(rooflines.thresholds(config_of(described))["critical_network"].item() / shards)


def tokens_of_experts(chip, shards, experts, active):
    """Return the same for experts, of which each token uses some."""
    expert = {"operation": "EBD,EDF->EBF", "grid": {"E": experts, "B": 1, "D": 8192, "F": 8192}}
    split = {"split": "B", "first": "all-gather w"}
    return tokens(chip, shards, **expert, network=ON_TWO, sharding=split) * experts / active


def columns_of_a_chip(chip, shards):
    """Return the columns per chip from which on gathered activations take less time."""
    described = sweep(chip, "column/gather-x", shards, (8192, 8192, 1), thresholds=["F"])
    return float(rooflines.thresholds(config_of(described))["critical_network"].item() / shards)


def most_chips(chip, columns):
    """Return the most chips that may split the columns of a matrix."""
    described = sweep(chip, "column/gather-x", 1, (10**6, 10**6, columns), network=ON_TWO)
    frame = rooflines.thresholds(config_of({**described, "thresholds": ["shards"]}))
    return int(frame["critical_network"].item())


def effective(found, payload):
    """Return the bytes/s of a payload."""
    return payload / float(found["t_network_s"])


COVERED: dict[int, tuple[float, int, Callable[[], float]]] = {
    1: (377e-6, 4, lambda: gathered("book-v5e-ring", 4, 2048, 8192)["t_network_s"]),
    2: (560e-6, 1, lambda: gathered("book-v5e", 4, 2048, 8192)["t_network_s"]),
    3: (23e-6, 4, lambda: gathered("book-v4", 4, 1024, 1024)["t_network_s"]),
    4: (46e-6, 16, lambda: gathered("book-v4", "4x4", 1024, 4096)["t_network_s"]),
    5: (
        190e-6,
        4,
        lambda: row(sweep("book-v4", "contracting/all-reduce", 4, (1024, 8192, 4096)))[
            "t_network_s"
        ],
    ),
    6: (65e-6, 1, lambda: gathered("book-h100", 8, 1024, 16384)["t_network_s"]),
    7: (2200, 8, lambda: tokens("book-h100", 8)),
    8: (2475, 128, lambda: tokens("book-h100", 1024, network=ON_TWO)),
    9: (40e6, 2000, lambda: tokens("book-h100", 16000, network=ON_TWO) * 16000),
    10: (79200, 128, lambda: tokens_of_experts("book-h100", 1024, 128, 4)),
    11: (5625, 128, lambda: tokens("book-b200", 1024, network=ON_TWO)),
    12: (2500, 8, lambda: columns_of_a_chip("book-b200", 8)),
    13: (
        413e9,
        1,
        lambda: effective(gathered("book-h100", 256, 1024, 16384, network=ON_TWO), 2**25),
    ),
    14: (514e9, 1, lambda: effective(gathered("book-h100", 8, 1024, 16384), 2**25)),
}
"""By row of the page: the printed number, N (1 if the book has the factor), and the one found."""

DIFFERENT: dict[int, tuple[float, int, Callable[[], float]]] = {
    15: (3300, 256, lambda: tokens("book-h800", 2048, network=ON_TWO)),
    16: (6.7e6, 256, lambda: tokens("book-h800", 2048, network=ON_TWO) * 2048),
    17: (1237, 2, lambda: tokens("book-h100", 16, network=ON_TWO)),
    18: (11, 16, lambda: most_chips("book-h100", 28000)),
}
"""Those that differ by more, for the reason that the page gives."""


@pytest.mark.parametrize("number", [*COVERED, *DIFFERENT])
def test_a_worked_number_of_the_book_comes_out_or_is_listed_as_different(number):
    printed, chips, find = {**COVERED, **DIFFERENT}[number]
    least = (chips - 1) / chips if chips > 1 else 1
    comes_out = least * (1 - PRINTED_ROUNDING) <= find() / printed <= 1 + PRINTED_ROUNDING
    assert comes_out == (number in COVERED)


def test_the_page_has_these_numbers():
    _, worked = PAGE.read_text("utf-8").split("## Worked numbers")
    row = re.compile(r"^\|[^|]+\| ([\d.e+-]+) \| ([\d.e+-]+) \|", re.MULTILINE)
    assert [(float(printed), float(ours)) for printed, ours in row.findall(worked)] == [
        (printed, float(f"{find():.3g}"))
        for printed, _, find in (*COVERED.values(), *DIFFERENT.values())
    ]
