"""Random examples that have every kind of each thing at least once."""

import random

import effort

MANY = 1000
"""Choices that are tried at most [1]."""


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
