"""The number of random cases of a test.

`make test` draws a tenth of those that a test names, `make verify` five times as many. Those of
Hypothesis are new in every run.
"""

import os

THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
EFFORT = 5.0 if THOROUGH else 0.1
"""Cases that are drawn of those that a test names [1]."""


def cases(named):
    """The number of cases to draw, at least one [1]."""
    return max(round(named * EFFORT), 1)
