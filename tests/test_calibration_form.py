"""The form of calibrated times in exact numbers, and as expressions; the solver; bands."""

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from rooflines.fits.form import Numbers, bound, common, estimate, pieces, value
from rooflines.fits.judge import FEWEST_IN_BAND, bands
from rooflines.fits.solving import Problem

ALL = Numbers(
    math=Fraction(1, 2),
    memory=Fraction(4, 5),
    overhead_s=Fraction(1, 100),
    activation_passes=Fraction(3),
    mixed_math=Fraction(1),
    mixed_memory=Fraction(1, 2),
    mixed_activations=Fraction(2),
    mixed_depth_s=Fraction(1, 1000),
    sustained=Fraction(1, 4),
)

QUANTITIES = {
    "math": Fraction(2),
    "memory": Fraction(3),
    "x": Fraction(1, 10),
    "out": Fraction(1, 5),
    "depth": Fraction(500),
}
"""Nominal seconds, and contracted elements."""


def test_the_form_by_hand():
    values = [(piece.bound, value(piece, QUANTITIES)) for piece in pieces(ALL)]
    assert values == [
        ("compute", Fraction(4)),
        ("compute", Fraction(4) + Fraction(1, 4) * (2 - Fraction(1, 1000))),
        ("memory", Fraction(15, 4)),
        ("network", Fraction(0)),
        ("mixed", 2 + Fraction(3, 2) + 2 * Fraction(3, 10) + Fraction(1, 2)),
    ]
    assert value(common(ALL), QUANTITIES) == Fraction(1, 100) + Fraction(3, 10)
    assert estimate(ALL, QUANTITIES, max) == Fraction(31, 100) + Fraction(46, 10)


def test_without_its_further_numbers_the_form_is_the_largest_share():
    plain = Numbers(ALL.math, ALL.memory, ALL.overhead_s, network=Fraction(1, 3))
    assert (plain.form, ALL.form) == ("max", "pieces")
    quantities = {**QUANTITIES, "network": Fraction(7)}
    assert estimate(plain, quantities, max) == Fraction(1, 100) + 21
    assert estimate(plain, QUANTITIES, max) == Fraction(1, 100) + 4


def test_expressions_say_the_same_as_exact_numbers():
    points = [
        QUANTITIES,
        {**QUANTITIES, "math": Fraction(100)},
        {**QUANTITIES, "math": Fraction(0), "memory": Fraction(500), "x": Fraction(0)},
        {**QUANTITIES, "depth": Fraction(10**6)},
        {**QUANTITIES, "network": Fraction(999)},
        dict.fromkeys(QUANTITIES, Fraction(1, 10**9)),
    ]
    rows = [{"network": 0.0, **{k: float(v) for k, v in point.items()}} for point in points]
    quantities = {name: pl.col(name) for name in (*QUANTITIES, "network")}
    frame = pl.DataFrame(rows).select(
        t=estimate(ALL.floats, quantities, pl.max_horizontal), bound=bound(ALL.floats, quantities)
    )
    exact = [estimate(ALL, {"network": Fraction(0), **point}, max) for point in points]
    assert frame["t"].to_list() == pytest.approx([float(time) for time in exact], rel=1e-14)
    assert frame["bound"].to_list() == ["mixed", "compute", "memory", "mixed", "network", "mixed"]


def test_the_best_of_several_starts_counts():
    """Of ln(estimate) = ((x^2 - 4) / 4)^2 + (2 - x) / 10 the minimum at x = 2 is the lower one."""

    def estimate_s(numbers):
        x = math.log(numbers["a"])
        return np.exp(np.full(50, ((x * x - 4) / 4) ** 2 + (2 - x) / 10))

    starts = [{"a": math.exp(-2)}, {"a": math.exp(2)}]
    for order in (starts, starts[::-1]):
        problem = Problem(np.ones(50), estimate_s, {"a": Fraction(1)}, order)
        found, _ = problem.solve(["a"])
        assert math.log(found["a"]) == pytest.approx(2, abs=0.1)


def test_a_piece_with_few_timings_has_the_band_of_all():
    few, many = FEWEST_IN_BAND - 1, FEWEST_IN_BAND
    frame = pl.DataFrame(
        {
            "estimate_bound": ["memory"] * few + ["compute"] * many,
            "ratio": [2.0] * few + [1.0] * many,
        }
    )
    assert bands(frame) == {"compute": (1.0, 1.0), "memory": (1.0, 2.0)}
