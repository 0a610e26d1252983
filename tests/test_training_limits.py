"""Margins along a size, of which the least number is exact, and the real size is the zero."""

import math
from fractions import Fraction

import pytest
from oracle import network
from oracle.training_limits import largest_on_torus

from rooflines.basics.numbers import MAX_SIZE
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.solvers.training_limits import Margin, Overtaking, _largest_on_torus
from rooflines.theory.attention_window import AttentionWindow


def along(unit, value, chunk=0):
    """A margin whose value is given by the size."""
    return Margin(unit, lambda units: Fraction(value(units * unit)), chunk)


def chunked(tokens, seconds_per_token, constant=0):
    """Pairs in chunks, over a time of a constant and so much for each token."""
    pairs = AttentionWindow(tokens, chunked=True).pairs
    return lambda size: pairs(size, size) - seconds_per_token * size - constant


def test_in_chunks_the_least_size_is_that_after_the_last_one_too_short():
    """At 10 k + r tokens 5 k + r (r - 9) / 2 is left of 5 s a token: negative last at k = 1, r = 7.

    It is so at 12 again after 9 to 11; zero at r^2 - 9 r + 10 = 0, r = (9 + sqrt(41)) / 2.
    """
    margin = along(1, chunked(10, 5), 10)
    assert [margin.value(size) >= 0 for size in (8, 9, 11, 12, 17, 18)] == [0, 1, 1, 0, 0, 1]
    assert margin.min_units() == 18
    assert margin.real_size(18) == pytest.approx(10 + (9 + math.sqrt(41)) / 2, rel=1e-14)


@pytest.mark.parametrize("unit", [1, 2, 3, 10, 12])
@pytest.mark.parametrize("tokens", [1, 3, 10, 16])
@pytest.mark.parametrize("share", [0.2, 0.6, 0.9, 0.99, 1])
def test_in_chunks_every_larger_size_is_ahead_and_one_less_is_not(unit, tokens, share):
    rate = Fraction(share) * (tokens + 1) / 2
    margin = along(unit, chunked(tokens, rate, constant=7), tokens)
    units, sizes = margin.min_units(), range(1, 1_500)
    if share == 1:  # a chunk makes up for its tokens, never for the constant
        assert units is None
        assert not margin.is_gaining_at_limit()
        return
    last = max((size for size in sizes if margin.value(size) < 0), default=0)
    assert last < 1_400
    assert units == last + 1
    real = margin.real_size(units)
    assert last * unit <= real <= units * unit
    assert real == 0 or abs(margin.value(Fraction(real) / unit)) < 1e-9


@pytest.mark.parametrize(
    ("value", "units", "real"),
    [
        (lambda size: 3 * size - 10, 4, 10 / 3),
        (lambda size: size * size - 2, 2, math.sqrt(2)),
        (lambda size: 2 * size * (size + 1) - 60, 5, 5.0),
        (lambda size: size + 1, 1, 0.0),
        (lambda size: 4 * size - 1, 1, 0.25),
        (lambda size: size - 10**12 - Fraction(1, 2), 10**12 + 1, 10**12 + 0.5),
    ],
)
def test_the_real_size_is_the_zero_before_the_least_number(value, units, real):
    margin = along(1, value)
    assert margin.min_units() == units
    assert margin.real_size(units) == pytest.approx(real, rel=1e-15)
    wide = along(7, lambda size: value(Fraction(size) / 7))
    assert wide.min_units() == units
    assert wide.real_size(units) == pytest.approx(7 * real, rel=1e-15)


def test_the_last_of_several_times_decides_with_its_own_zero():
    """2 s beside 1 s for each: the constant is overtaken at 1.05, the slower growth at 0.5."""
    constant, growing = along(1, lambda n: n - Fraction(21, 20)), along(1, lambda n: 2 * n - 1)
    both = Overtaking([growing, constant])
    assert both.min_units() == 2
    assert both.real_size(2) == pytest.approx(1.05)
    assert both.value(1) == Fraction(-1, 20)
    assert Overtaking([growing]).min_units() == 1
    assert Overtaking([]).min_units() == 1
    assert Overtaking([]).real_size(1) == 0


def test_what_is_never_reached_has_no_real_size_and_what_is_beyond_has():
    never, beyond = along(1, lambda n: -n), along(1, lambda n: n - 4 * MAX_SIZE)
    assert (never.min_units(), beyond.min_units()) == (None, None)
    assert Overtaking([beyond]).real_size(None) == pytest.approx(4 * MAX_SIZE)
    assert Overtaking([never, beyond]).real_size(None) is None
    assert Overtaking([never, beyond]).min_units() is None


@pytest.mark.parametrize("ratio", [Fraction(1, 3), 1, 2, Fraction(7, 2), 6, Fraction(31, 2), 40])
@pytest.mark.parametrize("chip", ["tpu-v5e", "tpu-v5p", "tpu-v6e"])
def test_the_largest_tp_on_a_torus_is_that_of_trying_all_axes(chip, ratio):
    link = chip_entries()[chip].networks["ici"].exact
    numbers = (link.bytes_per_s, link.links, link.topology, link.domain, link.ring_multiple)
    tried = largest_on_torus(network.Link("ici", *numbers, Fraction(0), Fraction(0)), ratio)
    assert _largest_on_torus(link, Fraction(ratio)) == tried[::-1]
