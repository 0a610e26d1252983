"""Whole models of How to Scale Your Model: its worked numbers that the model covers."""

import pytest
from book_models import System
from worked import Worked, comes_out
from worked_models import WORKED_NUMBERS


def test_numbers_come_out_or_have_a_reason():
    printed = [
        worked
        for chapter in WORKED_NUMBERS.values()
        for worked in chapter
        if worked.printed is not None
    ]
    different = [worked for worked in printed if comes_out(worked) is None]
    assert all(worked.why for worked in different)
    assert (len(printed), len(different)) == (61, 17)


@pytest.mark.parametrize(
    ("here", "way"),
    [
        (2, "exact"),
        (1.6, "rounded"),
        (2.99, "cut off"),
        (1.49, None),
        (3, None),
    ],
)
def test_a_number_agrees_to_the_printed_digits(here, way):
    assert comes_out(Worked("", "2", lambda: here)) == way


@pytest.mark.parametrize(("here", "way"), [(204, "within 2 %"), (196, "within 2 %"), (205, None)])
def test_or_within_two_percent(here, way):
    assert comes_out(Worked("", "200", lambda: here)) == way


def test_the_model_of_30_billion_parameters_has_the_sizes_that_are_printed():
    model = System("thirty").case.model
    assert model.parameters().total == pytest.approx(30e9, rel=1e-3)
    assert model.cache_elements(1) == 100_000


def test_fewer_heads_are_all_that_differs_from_llama_2():
    fewer, llama = (System(name).case.model for name in ("fewer-heads", "llama-2-13b"))
    assert 5 * fewer.cache_elements(1) == llama.cache_elements(1)
    assert fewer.parameters().mlp == llama.parameters().mlp
