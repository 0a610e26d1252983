"""Products of sizes do not wrap: up to the largest sizes numbers are those of exact arithmetic."""

import math
from fractions import Fraction
from typing import Any

import polars as pl
import pytest

import rooflines
from rooflines.basics.numbers import MAX_SIZE
from rooflines.evaluation.footprints import Footprint
from rooflines.evaluation.row_frames import StepTable
from rooflines.sweep.one_chip import sweep_on
from rooflines.theory.extents import Size, Tiles
from rooflines.theory.poly import Poly

SIZES = [1, 2, 127, 128, 129, 65_537, 3_100_000_000, 2**32 + 1, MAX_SIZE - 1, MAX_SIZE]


@pytest.mark.parametrize(
    ("factors", "span"), [("TS", 1), ("BTS", 1), ("B", 3), ("BT", 128), ("BT", 49), ("BTS", 7)]
)
def test_tiles_of_products_are_float64(factors, span):
    frame = pl.DataFrame({"B": SIZES}).join(pl.DataFrame({"T": SIZES, "S": SIZES}), how="cross")
    tiles = Tiles(tuple(map(Size, factors)), span)
    found = tiles.expression({size: pl.col(size).cast(pl.Float64) for size in "BTS"})
    for row in frame.with_columns(found=found).iter_rows(named=True):
        product = math.prod(row[size] for size in factors)
        exact = -(-product // span)
        assert tiles.value(row) == exact
        assert row["found"] == (exact if product < MAX_SIZE else pytest.approx(exact, rel=1e-15))


def test_polynomials_are_equal_by_value():
    poly = Poly({(Size("B"),): Fraction(3)})
    assert poly == Poly({(Size("B"),): Fraction(6)}) / 2
    assert hash(poly) == hash(Poly({(Size("B"),): Fraction(6)}) / 2)
    assert poly not in {poly * 2, Poly({(Size("D"),): Fraction(3)})}


@pytest.mark.parametrize("length", [3_100_000_000, 2**40, MAX_SIZE])
def test_all_pairs_of_tokens_of_a_long_context_are_not_negative(length):
    row = rooflines.train("h100-sxm", "llama-3.1-8b", B=1, S=length).row
    pairs = 12 * 32 * 32 * 128 * Fraction(length) ** 2
    others = 6 * Fraction(7_504_658_432) * length  # parameters without embedding and norms
    seconds = Fraction(row["t_lower_s"]) * 989_000_000_000_000
    assert row["mfu_full"] == pytest.approx(float((pairs + others) / seconds), rel=1e-3)


@pytest.mark.parametrize("length", [2**44, 2**57 // 2**10, MAX_SIZE])
def test_footprints_of_caches_with_copies_are_exact(length):
    form = {
        "name": "copies", "layers": 64, "D": 2048, "V": 32_000, "mlp": {"F": 8192},
        "attention": {"N": 16, "K": 1, "H": 128},
        "window": {"tokens": 1024, "layers": 8, "attention": {"N": 16, "K": 16, "H": 128}},
    }  # fmt: skip
    sizes: dict[str, Any] = {
        "grid": {"B": 3, "S": length},
        "splits": [{"tp": 16}],
        "thresholds": [],
    }
    network = ["nvlink", "infiniband"]
    sweep = sweep_on(form, "h100-sxm", "bf16", phase="decode", network=network, **sizes)
    (case,) = sweep.cases
    units = Footprint.from_case(case, case.split).units
    assert units.full > 1
    (row,) = StepTable(sweep).frame().collect().to_dicts()
    (far,), (near,) = (
        [2 * heads * 128 * layers * tokens]
        for heads, layers, tokens in ((1, 56, length), (16, 8, 1024))
    )
    exact = units.sequence_units(far, near) * units.unit * 3
    assert row["kv_cache_footprint_bytes"] == pytest.approx(float(exact), rel=1e-15)
    assert not row["fits"]
