"""The search for the first whole number at which a margin is positive, for all rows at once."""

import math
import random
from fractions import Fraction

import polars as pl
import pytest

from rooflines.basics.numbers import MAX_COUNT
from rooflines.solvers.first_integer import HALF_EVERY, TRIAL, first_integers

BITS = 62
"""Halvings after which a bracket up to `MAX_COUNT` is one number [1]."""

AT = pl.col(TRIAL)
MARGINS = {
    "line": AT - pl.col("zero"),
    "bent line": pl.min_horizontal(AT - pl.col("zero"), (AT - pl.col("zero")) * 1e-9),
    "steep behind": pl.max_horizontal(AT - pl.col("zero"), (AT - pl.col("zero")) * 1e9),
    "parabola": (AT - pl.col("zero")) * (AT + pl.col("zero")),
    "step": pl.when(pl.col("zero") < AT).then(1e-300).otherwise(-1e300),
}


def zeros():
    """Zeros of every size, at whole numbers, between them, and where numbers are not dense."""
    ends = [0.5, 1.0, 1.5, 2.0, 4095.0, 4096.0, 4096.5, 2.0**62, 2.0**63]
    powers = [2.0**power * random.uniform(1, 2) for power in range(BITS)]
    dense = [1.5 * 2.0**53, 1.9 * 2.0**53, 2.0**53 + 2.0, 1.99 * 2.0**60]
    return [*ends, *powers, *(math.floor(power) for power in powers), *dense]


@pytest.mark.parametrize("name", MARGINS)
def test_the_first_number_beyond_a_zero_of_any_size_is_found_in_few_trials(name):
    frame = pl.DataFrame({"zero": zeros()}, schema={"zero": pl.Float64})
    trials: list[int] = []

    def extents(rows):
        trials.append(len(trials))
        assert len(trials) <= HALF_EVERY * (BITS + 2), "no end"
        return rows

    found = first_integers(frame, MARGINS[name], pl.lit(1), pl.lit(float(MAX_COUNT)), extents)
    assert name not in {"line", "parabola"} or len(trials) <= BITS
    for zero, number in zip(frame["zero"], found, strict=True):
        exact = min(max(math.floor(Fraction(zero)) + 1, 1), MAX_COUNT)
        near = 4 * math.ulp(number) if number > 2.0**51 else 0
        assert abs(Fraction(number) - exact) <= near, (zero, number)


def test_bounds_that_differ_by_row_are_kept():
    frame = pl.DataFrame({"zero": [10.0, 10.0, 10.0], "low": [1, 12, 4], "high": [99.0, 99.0, 7.0]})
    low, high = pl.col("low"), pl.col("high")
    found = first_integers(frame, MARGINS["line"], low, high, lambda rows: rows)
    assert found.to_list() == [11.0, 12.0, 7.0]
