"""Numbers as users write them: exact ones, what is none, and ranges of sizes."""

import math
from fractions import Fraction

import oracle
import pytest
from case_files import case

from rooflines.basics.errors import RooflinesError
from rooflines.basics.numbers import exact, number, whole
from rooflines.config.axis_sizes import Sizes

SPELT = (
    *("7", "7.5", "1.97e14", "1.97e+14", "4_096", "-3", "+3", ".5"),
    *("5.", "1e-3", "1E3", "0", "-0.5", "9.99e299", "+1_0"),
)
NO_TEXT = (
    *("", "many", "1 2", "1.5x", "x1", "0x10", "1/3", "nan", "inf"),
    *("e5", "1e", "1e1234", "--1", "1.2.3", ".", "-", "_1", "\u0663"),
)
NO_NUMBER = (True, None, math.nan, -math.inf, 1e300, 10**301, [1], {"a": 1}, b"1", 1j, "9" * 401)


@pytest.mark.parametrize("text", SPELT)
def test_a_number_is_the_one_that_was_meant(text):
    """As text, with spaces around it, and as a number; exactly in decimal digits."""
    meant = Fraction(text)
    assert exact(text) == exact(f" {text} ") == meant
    assert exact(float(text)) == Fraction(repr(float(text)))
    assert number(text) == float(meant)


@pytest.mark.parametrize("written", [*NO_TEXT, *NO_NUMBER], ids=lambda value: str(value)[:20])
def test_what_is_no_number_is_refused(written):
    with pytest.raises(RooflinesError, match=r"is .*, which is no number\.\n  fix: write a plain"):
        number(written)


@pytest.mark.parametrize(
    ("written", "least", "largest", "problem"),
    [
        ("4096", 1, 2**53, None),
        (4.096e3, 1, 2**53, None),
        (2**53, 1, 2**53, None),
        (2**53 + 1, 1, 2**53, "is more than 9,007,199,254,740,992"),
        (0, 1, 2**53, "is less than 1"),
        (1.5, 1, 2**53, "is no whole number"),
        (1, 2, 3000, "is less than 2"),
        (3001, 2, 3000, "is more than 3,000"),
    ],
)
def test_a_whole_number_has_bounds(written, least, largest, problem):
    if problem is None:
        assert whole(written, minimum=least, maximum=largest) == float(written)
        assert type(whole(written)) is int
        return
    fix = f"fix: write a whole number from {least} to {largest:,}."
    with pytest.raises(RooflinesError, match=rf"{problem}\.\n  {fix}"):
        whole(written, minimum=least, maximum=largest)


@pytest.mark.parametrize(("spec", "last"), case("sizes"), ids=str)
def test_a_range_has_an_end_that_it_meets_and_each_size_once(spec, last):
    sizes = Sizes(spec).values()
    assert list(sizes[-len(last) :]) == last
    assert len({*sizes}) == len(sizes)
    assert sizes[0] == math.floor(spec["from"] + 0.5)


@pytest.mark.parametrize("last", [600, 3000])
@pytest.mark.parametrize("factor", [1.01, 1.013, 1.0125])
def test_a_long_range_has_the_sizes_of_exact_arithmetic(factor, last):
    spec = {"from": 1, "to": min(factor**last, 2.0**53), "factor": factor}
    assert list(Sizes(spec).values()) == oracle.sizes_of(spec)
