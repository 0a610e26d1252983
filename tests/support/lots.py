"""Random examples: like strategies of Hypothesis, but drawn by `random`.

A config takes a millisecond in place of fifty. Examples are not shrunk; their seed repeats them.
"""

import os
import random
from functools import wraps
from typing import Any

from hypothesis import strategies

SEED = os.environ.get("ROOFLINES_SEED", "")


class Rejected(Exception):  # noqa: N818, no error
    """An example that is none."""


class Lot:
    """Source of examples, drawn by a function."""

    def __init__(self, function):
        self.function = function

    def __or__(self, other):
        """One of both."""
        return one_of(self, other)

    def map(self, change):
        """Examples mapped by a function."""
        return Lot(lambda: change(self.function()))

    def flatmap(self, make):
        """The lot that is made of an example of this one."""
        return Lot(lambda: draw(make(self.function())))


def draw(lot):
    """An example."""
    return lot.function()


def assume(holds):
    """Reject an example unless something holds."""
    if not holds:
        raise Rejected


def example(lot):
    """An example that is not rejected."""
    while True:
        try:
            return draw(lot)
        except Rejected:
            continue


def of(lot):
    """The strategy of Hypothesis for a lot: a seed in place of the choices."""

    def drawn(number):
        before = random.getstate()
        random.seed(f"{SEED} {number}")
        try:
            return example(lot)
        finally:
            random.setstate(before)

    return strategies.integers(0, 2**64 - 1).map(drawn)


def composite(function):
    """A lot whose examples a function makes, which gets `draw` first."""

    @wraps(function)
    def make(*args, **kwargs):
        return Lot(lambda: function(draw, *args, **kwargs))

    return make


def booleans():
    """True or false."""
    return sampled_from([True, False])


def sampled_from(values):
    """One of some values."""
    return Lot(lambda: random.choice([*values]))


def one_of(*lots):
    """An example of one of some lots."""
    return Lot(lambda: draw(random.choice(lots)))


def integers(low, high):
    """A whole number of a range, both ends included: an end, or of any order of magnitude."""

    def number():
        how = random.random()
        if how < 1 / 16:
            return random.choice([low, high])
        if how < 1 / 2:
            return random.randint(low, high)
        return min(high, low + int(2 ** random.uniform(0, (high - low + 1).bit_length())) - 1)

    return Lot(number)


def lists(of_each, min_size=0, max_size=None, *, unique=False, unique_by=None):
    """A list of examples."""

    def several():
        found: list[Any] = []
        tries = 0
        size = random.randint(min_size, min_size + 3 if max_size is None else max_size)
        known = unique_by or (lambda value: value)
        while len(found) < size and tries < 100:
            value, tries = draw(of_each), tries + 1
            if not (unique or unique_by) or known(value) not in map(known, found):
                found.append(value)
        assume(len(found) >= min_size)
        return found

    return Lot(several)


def sets(of_each, min_size=0):
    """A set of examples."""
    return lists(of_each, min_size, unique=True).map(set)


def dictionaries(keys, values, min_size=0):
    """A dictionary of examples."""
    return lists(keys, min_size, unique=True).map(
        lambda names: {name: draw(values) for name in names}
    )


def fixed_dictionaries(required, optional=None):
    """A dictionary of an example for every key, and for some of the optional ones."""

    def entries():
        more = {key: lot for key, lot in (optional or {}).items() if draw(booleans())}
        return {key: draw(lot) for key, lot in {**required, **more}.items()}

    return Lot(entries)


def permutations(values):
    """Some values in any order."""
    return Lot(lambda: random.sample([*values], len(values)))
