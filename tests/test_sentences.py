"""Titles keep the rules for sentences: false or misleading ones are refused."""

import pytest
from case_files import case

from rooflines.answers.claims import Ranking, Sentence, broken, first_true

DEFECTS = case("sentences")


def sentence(ranks=None, **fields):
    return Sentence(**fields, ranks=ranks and Ranking(**ranks))


@pytest.mark.parametrize("name", DEFECTS)
def test_a_wrong_sentence_is_refused_and_its_mended_form_said(name):
    wrong, mended = (sentence(**DEFECTS[name][form]) for form in ("wrong", "mended"))
    assert broken(wrong) is not None
    assert broken(mended) is None
    assert first_true([wrong, mended]) is mended
    with pytest.raises(ValueError, match=r"\w"):
        first_true([wrong])


@pytest.mark.parametrize("spreads", [(1.1, 2.0), (2.0, 1.1)])
def test_a_factor_within_the_wider_spread_of_the_two_is_not_stated(spreads):
    text = "one bound is below another"
    close, clear = (
        sentence({"first": first, "second": 1.0, "spreads": spreads}, text=text)
        for first in (1.5, 2.5)
    )
    assert "within the error of 2" in (broken(close) or "")
    assert broken(clear) is None
