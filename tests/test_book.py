"""How to Scale Your Model: worked numbers of models and networks come out, or have a reason.

They are rows of tests/cases/book-models.yaml and book-networks.yaml. The book often takes (N-1)/N
of a collective over N chips for 1, so a number of networks is between (N-1)/N of the printed one
and all of it. docs/book.md counts them, and lists those that differ.
"""

import re
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from book_models import System, here
from case_files import case
from small_config import matmul

import rooflines

TIE_SHARE = Fraction(2, 100)
"""Largest relative difference from the printed number [1]."""

NUMBERS = case("book-models")


def comes_out(printed, found):
    """True if a number has the printed digits, rounded or cut off, or is within 2 %."""
    text, digits = Decimal(printed), Decimal(float(found))
    last = Decimal(1).scaleb(int(text.as_tuple().exponent))
    same = {digits.quantize(last, how) for how in (ROUND_HALF_UP, ROUND_DOWN)}
    return text in same or abs(found / Fraction(text) - 1) <= TIE_SHARE


def test_numbers_come_out_or_have_a_reason():
    """docs/book.md states how many."""
    printed = [number for number in NUMBERS if number["printed"] is not None]
    different = [each for each in printed if not comes_out(each["printed"], here(each["here"]))]
    assert [each["quantity"] for each in different if "why" not in each] == []
    assert (len(printed), len(different)) == (61, 18)
    assert all(here(each["here"]) > 0 for each in NUMBERS)


def test_the_models_have_the_sizes_that_are_printed():
    model = System("thirty").case.model
    assert model.parameters().total == pytest.approx(30e9, rel=1e-3)
    assert model.kv_cache_elements(1) == 100_000
    fewer, llama = (System(name).case.model for name in ("fewer-heads", "llama-2-13b"))
    assert 5 * fewer.kv_cache_elements(1) == llama.kv_cache_elements(1)


PAGE = Path(__file__).parents[1] / "docs" / "book.md"

PRINTED_ROUNDING = 0.02
"""The printed numbers have two or three digits."""

ON_TWO = ["nvlink", "infiniband"]


NETWORKS = case("book-networks")
ROWS = [*NETWORKS["covered"], *NETWORKS["different"]]


def config_of(chip, split, shards, sizes, **keys):
    grid = dict(zip("BDF", sizes, strict=True))
    about = {"grid": grid, "sharding": split, "shards": [shards], "thresholds": []}
    described = matmul(chips=[chip], **{**about, **keys})
    chips = {chip: {"source": "the book", **NETWORKS["chips"][chip]}}
    return rooflines.load_config({"sweeps": {"s": described}, "chips": chips, "charts": []})


def network_s(*of, **keys):
    row = rooflines.rows(config_of(*of, **keys), "s").collect().row(0, named=True)
    return row["t_network_s"]


def gather_s(chip, shards, batch, width, **keys):
    """The time of an all-gather of a bf16 [batch, width] [s]."""
    return network_s(chip, "column/gather-x", shards, (batch, width, 8192), **keys)


def reduce_s(chip, shards, *sizes):
    return network_s(chip, "contracting/all-reduce", shards, sizes)


def effective(chip, shards, network=None):
    """The bytes/s of a gather of 2^25 bytes."""
    return 2**25 / gather_s(chip, shards, 1024, 16384, network=network and ON_TWO)


def critical(*of, **keys):
    return float(rooflines.thresholds(config_of(*of, **keys))["critical_network"].item())


def tokens(chip, shards, network=None, **keys):
    """The tokens per chip from which on gathered weights take less time than the math."""
    keys = {"thresholds": ["B"], "network": network and ON_TWO, **keys}
    return critical(chip, "batch/gather-w", shards, (1, 8192, 8192), **keys) / shards


def all_tokens(chip, shards):
    """The same of all chips, on two levels."""
    return tokens(chip, shards, "two") * shards


def tokens_of_experts(chip, shards, experts, active):
    """The same for experts, of which each token uses some."""
    grid = {"E": experts, "B": 1, "D": 8192, "F": 8192}
    split = {"split": "B", "first": "all-gather w"}
    expert = {"operation": "EBD,EDF->EBF", "grid": grid, "sharding": split}
    return tokens(chip, shards, "two", **expert) * experts / active


def columns_of_a_chip(chip, shards):
    """The columns per chip from which on gathered activations take less time."""
    return critical(chip, "column/gather-x", shards, (8192, 8192, 1), thresholds=["F"]) / shards


def most_chips(chip, columns):
    """The most chips that may split the columns of a matrix."""
    keys = {"network": ON_TWO, "thresholds": ["shards"]}
    return critical(chip, "column/gather-x", 1, (10**6, 10**6, columns), **keys)


def computed(row):
    *_, name, arguments = row
    return globals()[name](*arguments)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_worked_number_of_the_book_comes_out_or_is_listed_as_different(row):
    _, printed, chips, *_ = row
    least = (chips - 1) / chips if chips > 1 else 1
    comes_out = least * (1 - PRINTED_ROUNDING) <= computed(row) / printed <= 1 + PRINTED_ROUNDING
    assert comes_out == (row in NETWORKS["covered"])


def test_the_page_counts_the_numbers_and_has_those_that_differ():
    _, worked = PAGE.read_text("utf-8").split("## Networks")
    assert f"latency, {len(NETWORKS['covered'])} numbers" in worked
    cells = re.compile(r"^\| ([^|]+) \| ([\d.e+-]+) \| ([\d.e+-]+) \|", re.MULTILINE)
    shown = [(name, float(printed), float(ours)) for name, printed, ours in cells.findall(worked)]
    different = NETWORKS["different"]
    assert shown == [(*row[:2], float(f"{computed(row):.3g}")) for row in different]
