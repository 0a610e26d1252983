"""Every page of the site shows Python's numbers, in random states."""

import effort
import pytest
from faces import FACES, check

STATES = effort.cases(60)
"""Of each page [1]."""

BROWSERS = [(face, browser) for face in FACES for browser in ("chromium", "firefox")]
BROWSERS.remove(("charts", "firefox"))  # it keeps no second download


@pytest.mark.parametrize(("face", "browser"), BROWSERS, indirect=["browser"])
def test_what_a_page_shows_of_a_state_is_that_of_python(face, visit, site):
    one = visit()
    answers = [check(one, site, FACES[face]) for _ in range(STATES)]
    assert any(answers)
