"""The number of random cases of a test.

`make test` draws a quarter of those that a test names, the same in every run; `make verify` draws
five times as many, those of Hypothesis new in every run (tests/conftest.py).
"""

import os

EFFORT = 5.0 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 0.25
"""Cases that are drawn of those that a test names [1]."""


def cases(named: int) -> int:
    """The number of cases to draw, at least one [1]."""
    return max(round(named * EFFORT), 1)
