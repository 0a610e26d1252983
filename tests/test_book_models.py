"""Whole models of How to Scale Your Model: its worked numbers that the model covers.

They are rows of tests/cases/book-models.yaml.
"""

from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from fractions import Fraction

import pytest
from book_models import System, here
from case_files import case

CLOSE = Fraction(2, 100)
"""How far a number that comes out may be from the printed one [1]."""

NUMBERS = case("book-models")


def comes_out(printed, found):
    """Whether a number has the printed digits, rounded or cut off, or is within 2 %."""
    text, digits = Decimal(printed), Decimal(float(found))
    last = Decimal(1).scaleb(int(text.as_tuple().exponent))
    same = {digits.quantize(last, how) for how in (ROUND_HALF_UP, ROUND_DOWN)}
    return text in same or abs(found / Fraction(text) - 1) <= CLOSE


def test_numbers_come_out_or_have_a_reason():
    """docs/book.md states how many."""
    printed = [number for number in NUMBERS if number["printed"] is not None]
    different = [each for each in printed if not comes_out(each["printed"], here(each["here"]))]
    assert [each["quantity"] for each in different if "why" not in each] == []
    assert (len(printed), len(different)) == (61, 17)
    assert all(here(each["here"]) > 0 for each in NUMBERS)


def test_the_models_have_the_sizes_that_are_printed():
    model = System("thirty").case.model
    assert model.parameters().total == pytest.approx(30e9, rel=1e-3)
    assert model.cache_elements(1) == 100_000
    fewer, llama = (System(name).case.model for name in ("fewer-heads", "llama-2-13b"))
    assert 5 * fewer.cache_elements(1) == llama.cache_elements(1)
