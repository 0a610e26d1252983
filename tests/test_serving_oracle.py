"""The exact model of steps agrees with plain counting, where it takes a formula."""

from fractions import Fraction

import model_oracle
from hypothesis import given
from hypothesis import strategies as st
from random_sweeps import check
from serving_kernels import entries_held, entries_moved, pairs, touched

SPANS = st.none() | st.integers(1, 40) | st.integers(1, 40).map(model_oracle.Chunk)


@check(500)
@given(context=st.integers(1, 30), new=st.integers(1, 30), window=SPANS)
def test_pairs_and_entries_are_those_counted_one_by_one(context, new, window):
    new = min(new, context)
    positions = range(context - new + 1, context + 1)
    assert pairs(context, new, window) == sum(model_oracle.attended(p, window) for p in positions)
    assert entries_moved(context, new, window) == model_oracle.moved(context, new, window)
    assert entries_held(context, window) == model_oracle.kept(context, window)


@check(500)
@given(chosen=st.integers(1, 8), tokens=st.fractions(0, 50, max_denominator=16))
def test_touched_experts_of_a_fraction_of_tokens_have_sixty_digits(chosen, tokens):
    untouched = 1 - touched(8, chosen, tokens, "uniform") / 8
    power = Fraction(8 - chosen, 8) ** tokens.numerator
    assert abs(untouched**tokens.denominator - power) <= power / 10**55
