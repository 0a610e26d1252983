"""Reports of random examples that fail: as small as simple cuts make them, and as YAML to run."""

import copy
import os
import random
import traceback
from collections.abc import Mapping

import yaml

TRIES = 200
"""Cuts that are tried at most [1]."""

LINES = 12
"""Lines of a message that a report has [1]."""


class Failed(AssertionError):  # noqa: N818, no mistake of the program
    """An example that failed, with its report."""


def check_each(configs, check):
    """Check examples; report the first that fails.

    Args:
        configs: The examples.
        check: Raises where one is wrong.
    """
    for config in configs:
        check_one(config, check)


def check_one(config, check):
    """Check an example; report it if it fails. Arguments as of `check_each`."""
    state = random.getstate()
    error = failure(config, check, state)
    if error is not None:
        small, last = cut(config, check, state, error)
        raise Failed(report(small, last)) from error


def failure(config, check, state):
    """Failure of an example, or None. Random choices of its check are the same each time.

    Args:
        config: The example, which the check may change.
        check: Raises where one is wrong.
        state: Of `random`.
    """
    random.setstate(state)
    try:
        check(copy.deepcopy(config))
    except Exception as error:  # noqa: BLE001, whatever is wrong
        return error
    return None


def cut(config, check, state, error):
    """An example without what it fails without in the same way, and how that fails.

    Args:
        config: An example that fails.
        check: As of `failure`.
        state: As of `failure`.
        error: How it fails.
    """
    tries, places = 0, [*reversed(places_of(config))]
    for place in places:
        smaller = without(config, place)
        tries += smaller is not None
        if smaller is None or tries > TRIES:
            continue
        found = failure(smaller, check, state)
        if found is not None and place_of(found) == place_of(error):
            config, error = smaller, found
    return config, error


def place_of(error):
    """The kind of an error, the line that raised it, and of no assertion its words."""
    *_, (frame, line) = traceback.walk_tb(error.__traceback__)
    words = "" if isinstance(error, AssertionError) else str(error)
    return type(error), frame.f_code.co_filename, line, words


def places_of(value, path=()):
    """The paths of all keys of mappings and of all elements of lists, whole before parts."""
    keys = [*value] if isinstance(value, Mapping) else []
    keys = [*range(len(value))] if isinstance(value, list) else keys
    return [each for key in keys for each in ((*path, key), *places_of(value[key], (*path, key)))]


def without(config, path):
    """A copy without what is at a path; None: it is not there, or alone in its list."""
    smaller = copy.deepcopy(config)
    *parents, last = path
    place = smaller
    try:
        for key in parents:
            place = place[key]
        if isinstance(place, list) and len(place) == 1:
            return None
        del place[last]
    except (KeyError, IndexError, TypeError):
        return None
    return smaller


def report(config, error):
    """The seed, how an example fails, and the example as the files of a run."""
    config = dict(config)
    fits = config.pop("fits", None)
    found = [f"ROOFLINES_SEED={os.environ.get('ROOFLINES_SEED', '')}"]
    lines = str(error).splitlines() or ["no message"]
    found += [f"{type(error).__name__}: {lines[0]}", *lines[1:LINES]]
    if fits is not None:
        config["calibrations"] = ["calibrations.yaml"]
        found += ["# calibrations.yaml", yaml.safe_dump(fits, sort_keys=False)]
    return "\n".join([*found, "# config.yaml", yaml.safe_dump(config, sort_keys=False)])
