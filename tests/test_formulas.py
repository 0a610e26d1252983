"""The formulas without a table: numbers, operations, shardings, works and rates, exactly.

Messages for wrong ones are rows of tests/cases/wrong.yaml.
"""

import math
from fractions import Fraction

import oracle
import pytest
from hypothesis import given
from random_sweeps import check, operations, shardings_of

from rooflines.basics.errors import RooflinesError
from rooflines.basics.numbers import exact, number, whole
from rooflines.model.operation import NAMED, operation
from rooflines.model.sharding import Sharding, sharding

HALF, ZERO = Fraction(1, 2), Fraction(0)


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
        assert whole(written, least=least, largest=largest) == float(written)
        assert type(whole(written)) is int
        return
    fix = f"fix: write a whole number from {least} to {largest:,}."
    with pytest.raises(RooflinesError, match=rf"{problem}\.\n  {fix}"):
        whole(written, least=least, largest=largest)


@pytest.mark.parametrize(
    "text",
    [
        *oracle.NAMED,
        *oracle.NAMED.values(),
        "BD, DF -> BF",
        "AB,BC->CA",
        "A,B->AB",
        "ab,ab->",
        "BDF,BD->BF",
    ],
)
def test_an_operation_has_the_letters_of_its_einsum(text):
    op, truth = operation(text), oracle.operation_of(text)
    assert (op.name, op.x, op.w, op.out) == (truth.name, truth.x, truth.w, truth.out)
    assert op.dims == tuple(truth.dims)
    assert op.contracted == tuple(truth.contracted)
    assert [op.operand(name) for name in ("x", "w", "out")] == [
        tuple(truth.letters(name)) for name in ("x", "w", "out")
    ]
    assert op.in_order(set(op.dims[1:])) == op.dims[1:]
    dot = truth.name == "dot"
    assert (op.unit, op.flops) == (("vector", "exact") if dot else ("matrix", "leading"))
    assert NAMED.get(op.name, op) == op


@check(200)
@given(text=operations())
def test_a_sharding_is_what_its_name_says(text):
    truth = oracle.operation_of(text)
    for form in shardings_of(truth):
        expected = oracle.sharding_of(truth, form)
        sends = [(expected.gather, "all-gather")] if expected.gather else []
        sends += [("x", "all-to-all")] if expected.dispatch else []
        sends += [("out", expected.reduce)] if expected.reduce else []
        sends += [("out", "all-to-all")] if expected.combine else []
        assert sharding(form, operation(text)) == Sharding(
            expected.name, expected.split, tuple(sends)
        )


def test_a_batch_of_every_operand_is_the_last_choice():
    assert sharding("batch", operation("per-example-matmul")).split == "B"
    assert sharding("batch", operation("HBD,HDF->HBF")).split == "B"
    assert (
        sharding({"split": "D", "first": None, "then": "all-reduce"}, operation("matmul")).name
        == "D/all-reduce"
    )
