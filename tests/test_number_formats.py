"""Numbers as text: one table of formats, read by Python and by the site's scripts."""

import math
import random
from pathlib import Path

import pytest
from case_files import case

import rooflines.site
from rooflines.basics.text import NUMBER_FORMATS, format_number
from rooflines.site.site import number_formats_script

CASES = case("number-formats")

FORMAT = """([code, cases]) => {
  const format = new Function("cases", `${code}
    return cases.map(({ kind, value, ...options }) =>
      NUMBERS.formatNumber(value, kind, options));`);
  return format(cases);
}"""
"""Texts of numbers by the scripts, which need no page."""


@pytest.fixture(scope="module")
def texts(browser):
    """The texts of cases by the site's scripts."""
    assets = Path(rooflines.site.__file__).parent / "assets"
    scripts = [number_formats_script(), (assets / "numbers.js").read_text(encoding="utf-8")]
    code = "\n".join(script.replace('"use strict";', "") for script in scripts)
    page = browser.new_page()
    yield lambda cases: page.evaluate(FORMAT, [code, cases])
    page.close()


def text_of(number):
    options = {name: value for name, value in number.items() if name not in ("text", "value")}
    return format_number(number["value"], **options)


@pytest.mark.parametrize("number", CASES, ids=lambda number: number["text"])
def test_a_number_has_its_text(number):
    assert text_of(number) == number["text"]


def test_scripts_have_the_same_texts(texts):
    assert texts(CASES) == [number["text"] for number in CASES]
    assert {number["kind"] for number in CASES} == {*NUMBER_FORMATS["formats"]}


def random_number():
    """A number of any size, often near a limit or a tie."""
    size = 10.0 ** random.uniform(-12, 18)
    if random.random() < 0.3:
        size = 10.0 ** random.randint(-9, 18) * (1 - random.choice([0, 1e-3, 5e-4, 5.1e-4, 1e-7]))
    digits = random.choice([2, 3, 4, 17])
    rounded = float(f"{size:.{digits}g}")
    value = math.floor(rounded) + random.choice([0.5, 0.125]) if rounded < 1e6 else rounded
    return random.choice([rounded, value])


def test_scripts_have_the_texts_of_python_for_any_number(texts):
    kinds = [*NUMBER_FORMATS["formats"]] * 500
    cases = [{"kind": kind, "value": random_number()} for kind in kinds]
    differing = [
        (number, shown)
        for number, shown in zip(cases, texts(cases), strict=True)
        if shown != text_of(number)
    ]
    assert differing == []
