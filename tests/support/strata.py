"""Random examples that have every kind of each thing at least once."""

import random

import effort
from lots import example

MANY = 5_000
"""Choices that are tried at most; the rarest kind is one of a hundred [1]."""


def covering(kinds, make):
    """Yield random examples until each kind of everything was in one.

    `make verify` draws ten times as many.

    Args:
        kinds: What there is, each with its kinds.
        make: An example of a choice of one kind each, by name; None: there is none.
    """
    for _ in range(10 if effort.THOROUGH else 1):
        yield from _covering(kinds, make)


def _covering(kinds, make):
    """The examples of a run."""
    missing = {name: {*each} for name, each in kinds.items()}
    for _ in range(MANY):
        choice = {
            name: random.choice([kind for kind in each if kind in missing[name]] or each)
            if random.random() < 0.8
            else random.choice(each)
            for name, each in kinds.items()
        }
        example = make(**choice)
        if example is None:
            continue
        for name, kind in choice.items():
            missing[name].discard(kind)
        yield example
        if not any(missing.values()):
            return
    raise AssertionError(f"no example of {missing}")


def chosen(lot, kinds_of, every, more=0, rare=None):
    """Random examples of a lot that have every kind: those that add one, and some more.

    Args:
        lot: What they are drawn from.
        kinds_of: The kinds of an example.
        every: All kinds.
        more: Others besides; `make verify` takes twenty times as many [1].
        rare: Lots by the kind that they are for.
    """
    rare = rare or {}
    found = [example(lot) for _ in range(more * (20 if effort.THOROUGH else 1))]
    missing = {*every}.difference(*map(kinds_of, found))
    for _ in range(MANY):
        if not missing:
            return found
        drawn = example(next((rare[kind] for kind in rare if kind in missing), lot))
        if new := missing & {*kinds_of(drawn)}:
            missing -= new
            found.append(drawn)
    raise AssertionError(f"no example of {missing}")


def parts_of_every(lot, parts_of, every):
    """Yield parts of random examples until they have every kind, each the best of its example.

    `make verify` draws ten times as many.

    Args:
        lot: What examples are drawn from.
        parts_of: The parts of an example, each as a function that makes it, and its kinds.
        every: All kinds.
    """
    for _ in range(10 if effort.THOROUGH else 1):
        yield from _parts_of_every(lot, parts_of, every)


def _parts_of_every(lot, parts_of, every):
    """The parts of a run."""
    missing = {*every}
    for _ in range(MANY):
        parts = [(make, missing & {*kinds}) for make, kinds in parts_of(example(lot))]
        make, new = max(parts, key=lambda part: len(part[1]), default=(None, set()))
        if make and new:
            missing -= new
            yield make()
        if not missing:
            return
    raise AssertionError(f"no example of {missing}")
