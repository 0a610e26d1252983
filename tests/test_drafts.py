"""Speculative decoding: worked values, laws, and what a draft cannot be beside."""

import pytest

import rooflines
from rooflines.basics.errors import RooflinesError

LLAMA = ("h100-sxm", "llama-3.1-70b")
THREE = {"tokens": 3, "accepted": 1.8}


def step(draft, S=8192, B=64, **options):  # noqa: N803, the letters of the docs
    return rooflines.explain_model(*LLAMA, B=B, S=S, dtypes="bf16", draft=draft, **options)


@pytest.mark.parametrize(
    ("tokens", "length", "critical"),
    [(3, 128, 76), (3, 1024, 88), (3, 4096, 203), (3, 6446, 4_165_395), (3, 6447, None),
     (1, 128, 155), (1, 1024, 223)],
)  # fmt: skip
def test_a_draft_makes_smaller_batches_compute_bound(tokens, length, critical):
    thresholds = step({"tokens": tokens, "accepted": 0}, length, 1).thresholds
    (found,) = (each["critical"] for each in thresholds if each["axis"] == "B")
    assert found == critical


def test_longest_context_with_a_compute_bound_batch():
    longest = {
        tokens: next(
            each["critical"]
            for each in step({"tokens": tokens, "accepted": 0}).thresholds
            if each["axis"] == "S"
        )
        for tokens in (1, 3)
    }
    assert longest == {1: 3038, 3: 6446}


def test_a_step_adds_the_accepted_tokens_and_one():
    plain, drafted = step(None, split="tp=8"), step(THREE, split="tp=8")
    assert round(plain.row["tokens_per_s_per_chip_ops"]) == 682
    assert round(drafted.row["tokens_per_s_per_chip_ops"]) == 1732
    more = drafted.row["tokens_per_s_ops"] / plain.row["tokens_per_s_ops"]
    assert more == pytest.approx(2.540, abs=5e-4)
    assert "adds 2.8 of 4 tokens" in " ".join(str(drafted).split())


@pytest.mark.parametrize("accepted", [0, 0.5, 3])
def test_a_draft_is_at_most_as_much_faster_as_tokens_are_added(accepted):
    plain, drafted = step(None), step({"tokens": 3, "accepted": accepted})
    for column in ("tokens_per_s", "tokens_per_s_ops"):
        assert drafted.row[column] <= plain.row[column] * (accepted + 1)


@pytest.mark.parametrize(
    ("draft", "options", "message"),
    [
        ({"tokens": 3, "accepted": 4}, {}, "is 4, more than the 3 tokens proposed"),
        ({"tokens": 0, "accepted": 0}, {}, "draft tokens is 0"),
        ({"tokens": 3}, {}, "draft lacks accepted"),
        ("3", {}, "draft has '3', which is no KEY=VALUE"),
        (THREE, {"phase": "prefill"}, "with prefill it is not modelled"),
        (THREE, {"T": 2}, "the draft sets it"),
        (THREE, {"S": 3}, "draft computes 4 tokens a step, more than S, 3"),
    ],
)
def test_a_draft_that_cannot_be_is_refused(draft, options, message):
    with pytest.raises(RooflinesError, match="fix:") as caught:
        step(draft, **options)
    assert message in str(caught.value)
