"""Ranges of sizes have the sizes of exact arithmetic."""

import oracle
import pytest

from rooflines.settings.sizes import Sizes


@pytest.mark.parametrize("end", [1024, 1024 * (1 + 2e-10), 1024 * (1 - 2e-10)])
def test_a_geometric_range_keeps_its_end(end):
    root = {"from": 1, "to": end, "factor": 1.4142135623730951}
    assert Sizes(root).values()[-3:] == (512, 724, 1024)
    assert Sizes({**root, "to": 1023.9}).values()[-2:] == (512, 724)
    assert Sizes({**root, "to": 2**40}).values()[-1] == 2**40


@pytest.mark.parametrize(
    ("lowest", "sizes"), [(1, (1, 2, 4, 8, 16, 32)), (32, (32,)), (1.5, (2, 3, 5, 9, 17, 32))]
)
def test_a_range_by_count_has_both_ends_and_equal_factors_between(lowest, sizes):
    assert Sizes({"from": lowest, "to": 32, "count": 6}).values() == sizes


def test_a_range_by_count_rounds_a_half_up_and_keeps_a_size_once():
    assert Sizes({"from": 1, "to": 12.25, "count": 3}).values() == (1, 4, 12)
    assert Sizes({"from": 1, "to": 3, "count": 100}).values() == (1, 2, 3)
    assert Sizes({"from": 7, "to": 7, "count": 1}).values() == (7,)


@pytest.mark.parametrize("last", [600, 3000])
@pytest.mark.parametrize("factor", [1.01, 1.013, 1.0125])
def test_a_long_range_has_the_sizes_of_exact_arithmetic(factor, last):
    spec = {"from": 1, "to": min(factor**last, 2.0**53), "factor": factor}
    assert list(Sizes(spec).values()) == oracle.sizes_of(spec)


def test_a_stepped_range_has_its_end_if_a_step_meets_it():
    assert Sizes({"from": 1, "to": 10, "step": 3}).values() == (1, 4, 7, 10)
    assert Sizes({"from": 1, "to": 9.9, "step": 3}).values() == (1, 4, 7)
