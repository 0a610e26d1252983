"""Attention in chunks: sums over contexts that are far, and a mean over many chunks."""

import time
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from random_sweeps import check
from serving_tables import model_sweep

import rooflines
from rooflines.basics.errors import RooflinesError
from rooflines.evaluation.row_frames import StepTable
from rooflines.evaluation.sawtooth import ContextTime, sum_of_maxima
from rooflines.models.architecture import Shape
from rooflines.models.model import Model

seconds = st.floats(0, 10) | st.sampled_from([0.0, 1.0, 2.0, 50.0])
shares = st.floats(0, 0.05)
TURNING = st.builds(ContextTime, st.floats(0, 60), shares, st.floats(0, 2) | shares)
"""Times whose turns move slowly over the ends of chunks."""
TIMES = st.lists(
    st.builds(ContextTime, seconds, seconds, seconds) | TURNING, min_size=1, max_size=4
)
BEFORE_FIRST, AFTER_LAST = (
    [ContextTime(0.0, 0.017, 0.0), ContextTime(2.0, 0.0, 1.0)],
    [ContextTime(1.0, 0.0176, 0.0), ContextTime(0.0, 0.0, 1.0)],
)
"""The turn of the first leaves the tokens at the beginning of chunks, of the second at the end."""


@check(300)
@example(times=BEFORE_FIRST, chunk=2, first=23, more=229)
@example(times=AFTER_LAST, chunk=4, first=54, more=243)
@given(times=TIMES, chunk=st.integers(1, 40), first=st.integers(1, 300), more=st.integers(0, 900))
def test_a_sum_over_chunks_is_that_of_every_context(times, chunk, first, more):
    each = (
        max(
            Fraction(one.once)
            + Fraction(one.full) * context
            + Fraction(one.chunked) * ((context - 1) % chunk + 1)
            for one in times
        )
        for context in range(first, first + more + 1)
    )
    wanted = sum(each, Fraction(0))
    found = sum_of_maxima(times, first, first + more, chunk)
    assert abs(Fraction(found) - wanted) <= Fraction(1, 10**12) * wanted


def chunked(layers):
    """Four layers, some of which attend in chunks of 8,192."""
    model = {"name": "chunked", "layers": 4, "D": 4096, "V": 32000, "mlp": {"F": 14336}}
    model |= {"attention": {"N": 32, "K": 8, "H": 128}}
    return {**model, "window": {"tokens": 8192, "chunked": True, "layers": layers}}


def means(layers, requests):
    sweep: dict[str, object] = {
        "models": [chunked(layers)],
        "dtypes": ["bf16"],
        "chips": ["h100-sxm"],
    }
    sweep |= {"splits": [{"tp": 1}], "grid": {"B": [300]}, "requests": requests}
    return StepTable(model_sweep(sweep)).frame().collect()["tpot_s"].to_list()


@pytest.mark.parametrize("layers", [3, 4])
def test_requests_of_any_length_are_answered_at_once(layers):
    begun = time.perf_counter()
    means(layers, [{"input": 1024, "output": 1024}, {"input": 2**52, "output": 2**52}])
    assert time.perf_counter() - begun < 5


def test_the_mean_over_whole_chunks_is_that_over_one():
    one, *others = means(4, [{"input": 8192, "output": 8192 * n} for n in (1, 7, 2**39)])
    assert others == pytest.approx([one, one], rel=1e-12)


def test_a_pool_beside_an_invalid_model_leaves_the_word_to_the_model():
    odd = {**chunked(4), "attention": {"N": 8, "K": 16, "H": 8}}
    sweep = {"models": [odd], "dtypes": ["bf16"], "chips": ["h100-sxm"], "splits": [{"tp": 1}]}
    sweep |= {"grid": {"B": [8]}, "requests": [{"input": 64, "output": 4}]}
    sweep |= {"pools": {"prefill": {"chip": "h100-sxm", "split": {"tp": 1}}}}
    with pytest.raises(RooflinesError, match="K is 16, which does not divide the 8 query heads"):
        rooflines.load_config({"model-sweeps": {"one": sweep}})


def test_where_every_layer_attends_in_chunks_only_some_contexts_have_a_compute_bound_batch():
    shape = {key: value for key, value in chunked(4).items() if key != "name"}
    model = Model("chunked", Shape.model_validate(shape))

    def asked_at(context):
        return rooflines.explain_model("h100-sxm", model, B=2**50, S=context, dtypes="bf16")

    answer = rooflines.explain_model("h100-sxm", model, B=8, S=8192, dtypes="bf16")
    bound = {
        context: asked_at(context).row["bound"]
        for end in (8192, 16384, 2**20, 2**30)
        for context in (end, end + 1)
    }
    assert [*bound.values()] == ["memory", "compute"] * 4
    assert answer.in_chunks is not None
    number = answer.in_chunks["number"]
    assert answer.in_chunks["among"] == 8192
    assert 0 < number < 8192
    for context, expected in ((number, "compute"), (number + 1, "memory")):
        for chunk in (0, 1, 2**20):
            far = asked_at(context + 8192 * chunk)
            assert far.row["bound"] == expected
    screen = " ".join(str(answer).split())
    assert "every long context" not in screen
    assert f"at {number:,} of the 8,192 contexts in each chunk" in screen
