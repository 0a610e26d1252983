"""Polynomials of named extents, and times as sums of maxima of minima of them."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st
from random_sweeps import check

from rooflines.model.poly import ZERO, Poly, constant, sizes_of, total
from rooflines.model.times import Time, Times

AT = {"B": 3, "D": 5, "T": 2}
POLYS = st.dictionaries(
    st.sampled_from([(), ("B",), ("D",), ("B", "D")]),
    st.fractions(0, 9, max_denominator=4),
    max_size=4,
).map(Poly)


@check(250)
@given(one=POLYS, other=POLYS, factor=st.integers(1, 9))
def test_values_of_sums_and_multiples_are_sums_and_multiples(one, other, factor):
    assert (one + other).at(AT) == one.at(AT) + other.at(AT)
    assert (one * factor).at(AT) == factor * one.at(AT)
    assert (one / factor * factor).coefficients == one.coefficients
    assert (one * factor).terms is one.terms
    assert one * 0 is ZERO


@check(250)
@given(poly=POLYS, size=st.integers(1, 99))
def test_a_polynomial_along_a_size_is_a_line(poly, size):
    line = poly.along("B")
    assert line.slope.at(AT) * size + line.constant.at(AT) == poly.at({**AT, "B": size})
    assert not line.expert


def test_spans_count_elements_in_whole_ones():
    work = Poly({("B", "T", "D"): Fraction(7), ("D",): Fraction(2)})
    spans = work.in_spans(("B", "T"), 4)
    assert spans.at({"D": 5, "B*T/4": 2}) == 7 * 5 * 8 + 10
    assert sizes_of("B*T/4") == {"B", "T"}
    assert work.in_spans(("B", "T"), 1) is work
    tiled = Poly({("B",): Fraction(3)}).in_spans(("B",), 4)
    assert tiled.along("B", 4).slope.at({}) == 12
    counted = tiled.along("B", 2).counted["B/4"]
    assert counted.at({}) == 12


def test_a_sum_of_one_shares_its_terms():
    work = Poly({("B",): Fraction(3)})
    assert total((ZERO, work)) is work
    assert not total(())
    assert constant(0) is ZERO


@check(250)
@given(parts=st.lists(st.tuples(st.integers(1, 3), st.lists(POLYS, min_size=1)), max_size=3))
def test_a_sum_of_times_is_the_sum_of_their_values(parts):
    times = [(count, Time.of(*polys)) for count, polys in parts]
    found = Time.total(times)
    wanted = sum(count * max(poly.at(AT) for poly in polys) for count, polys in parts)
    assert found.at(AT) == wanted
    assert max(min(poly.at(AT) for poly in least) for least in found.pieces) == wanted


def test_what_is_never_the_largest_is_left_out():
    more, less = Poly({("B",): Fraction(3)}), Poly({("B",): Fraction(2)})
    for polys in ((more, less), (less, more), (more, ZERO)):
        assert Time.of(*polys).pieces == ((more,),)
    assert len(Time.of(less, constant(1)).pieces) == 2


def test_times_of_several_kernels_are_summed_by_bound():
    one = Times({"compute": Time.of(constant(1))}, constant(5))
    other = Times({"compute": Time.of(constant(2)), "mixed": Time.of(constant(7))})
    found = Times.total([(2, one), (3, other)])
    values = {bound: time.at({}) for bound, time in found.by.items()}
    assert values == {"compute": 8, "mixed": 21}
    assert found.common.at({}) == 10
