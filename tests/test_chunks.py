"""The largest context under attention in chunks, against a search over all contexts."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st
from random_sweeps import check

from rooflines.critical.chunks import last_context
from rooflines.model.columns import ENDLESS

SOME = st.integers(-6, 6)
FALLING = st.integers(-4, 1)
SETTLED = 250
"""Chunks from which on the sign of a margin no longer changes at one place in a chunk [1]."""


@st.composite
def margins(draw, new, chunk):
    """Draw a margin that is affine in whole chunks and, with a bend, in the rest of the context."""
    start, per_chunk = draw(st.integers(-9, 60)), draw(FALLING)
    per_place, bend = draw(SOME), draw(SOME)
    turn = chunk - new % chunk

    def margin(context):
        chunks, place = divmod(context - new, chunk)
        bent = bend * max(0, place - turn)
        return Fraction(start + per_chunk * chunks + per_place * place + bent)

    return margin


@check(2000)
@given(data=st.data())
def test_the_last_context_is_that_of_a_search(data):
    new, chunk = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 7))
    above = data.draw(st.lists(margins(new, chunk), min_size=1, max_size=2))
    least = data.draw(st.lists(margins(new, chunk), max_size=1))
    good = [
        context
        for context in range(new, new + (SETTLED + 1) * chunk)
        if all(one(context) > 0 for one in above) and all(one(context) >= 0 for one in least)
    ]
    last = max(good, default=None)
    endless = last is not None and last >= new + SETTLED * chunk
    assert last_context(above, least, new, chunk) == (ENDLESS if endless else last)
