"""README's answers have the numbers worked out by hand; values stand in sentences."""

from fractions import Fraction

import pytest
from answers import _said, critical_batches
from blocks import with_values
from documents import README

PEAK, RATE, WIDTH = Fraction(989 * 10**12), Fraction(3350 * 10**9), 8192
"""An H100 SXM: FLOP/s in bf16, bytes/s of memory; the layer's D and F."""


def test_the_critical_batch_is_the_one_by_hand():
    found = critical_batches()
    for dtypes, weight in (
        ("bf16", Fraction(2)),
        ("w8a16", Fraction(1)),
        ("w4a16", Fraction(1, 2)),
    ):
        ridge = PEAK / RATE
        batch = ridge * weight / 2 / (1 - 2 * ridge / WIDTH)
        assert found["h100-sxm", dtypes] == str(-(-batch.numerator // batch.denominator))
    assert ("tpu-v5e", "fp8-out-bf16") not in found
    text = README.read_text(encoding="utf-8")
    assert f"From {found['h100-sxm', 'bf16']} tokens on it is compute-bound." in text


def test_values_of_a_page_are_named_and_begin_no_line():
    assert with_values("a <!--b-->2<!--/--> c", {"b": "3"}) == "a <!--b-->3<!--/--> c"
    with pytest.raises(KeyError, match="b"):
        with_values("a <!--b--><!--/-->", {})
    with pytest.raises(ValueError, match="begins a line"):
        with_values("a\n<!--b--><!--/-->", {"b": "3"})


def test_a_sentence_of_readme_that_breaks_a_rule_is_refused(monkeypatch):
    monkeypatch.setattr("answers.CHIP", "b200")
    with pytest.raises(ValueError, match="while b200 is chosen"):
        _said("memory-bound", {"chip": "h100-sxm", "bound": "memory"})
