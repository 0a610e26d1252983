"""Search of training plans: as brute force, whatever is given, and what it says."""

from random import Random
from typing import Any

import polars as pl
import pytest
from plan_questions import LAYOUT, differences, random_question

import rooflines
from rooflines.answers.best_split import split_cases
from rooflines.answers.question import QuestionCatalogues
from rooflines.answers.question_words import read_words
from rooflines.basics.errors import RooflinesError
from rooflines.hardware.chip_catalogue import chip_entries

STEP: dict[str, Any] = {"B": 8, "S": 8192, "chips": 4, "phase": "train"}


def best(model="llama-3.2-1b", chip="h100-sxm", **options: Any) -> pl.DataFrame:
    return rooflines.best_splits(chip, model, **{**STEP, **options})


@pytest.mark.parametrize("seed", range(20))
def test_a_search_finds_what_a_table_of_every_plan_has_first(seed):
    found = differences(random_question(Random(seed), chips=(1, 2), each=(1, 2)))
    assert not found


def test_more_plans_begin_with_those_of_fewer():
    every = best(keep=None)
    for keep in (1, 3, 10):
        assert best(keep=keep)["split"].to_list() == every["split"].to_list()[:keep]
    assert every.height == every.unique(LAYOUT).height


def test_more_memory_never_slows_the_first_plan():
    times = [
        best("llama-3.1-8b", "wide", config=known_chip(capacity), keep=1, B=4)["t_rank_s"][0]
        for capacity in (60e9, 80e9, 1e15)
    ]
    assert times == sorted(times, reverse=True)
    assert times[0] > times[-1]


def known_chip(capacity):
    wide = {
        "memory": {
            "hbm": chip_entries()["h100-sxm"]
            .memory["hbm"]
            .model_copy(update={"capacity_bytes": capacity})
        }
    }
    chips = {**chip_entries(), "wide": chip_entries()["h100-sxm"].model_copy(update=wide)}
    return QuestionCatalogues(chips)


@pytest.mark.parametrize(
    "given",
    [{"shard": "zero3"}, {"recompute": "full"}, {"micro_batch": 2}, {"interleave": 4}],
)
def test_what_is_given_stays(given):
    rows = best("llama-3.1-8b", **given, keep=5, chips=2)
    ((key, value),) = given.items()
    expected = "weights" if value == "zero3" else value
    if key == "interleave":
        rows = rows.filter(pl.col("pp") > 1)
    assert rows.height
    assert set(rows[key]) == {expected}


def cases_of(*words, **options: Any):
    asked = read_words(words, chip_entries())
    known = QuestionCatalogues(chip_entries())
    return split_cases(asked, known, split="auto", phase="train", **options)


def test_plans_within_three_percent_are_called_a_tie():
    found = cases_of("h100-sxm", "llama-3.1-8b", "B=8", "S=8192", "bf16", chips=4)
    first = found.rows[0]["t_rank_s"]
    tied = [row for row in found.rows if row["t_rank_s"] <= first * 1.03]
    assert [row["tie"] for row in found.rows] == [True] * len(tied) + [False] * (
        len(found.rows) - len(tied)
    )
    assert any(f"{len(tied)} plans are within 3% of the first" in note for note in found.notes)


def test_where_none_fits_the_leanest_plan_is_named_and_what_would_fit():
    asked: dict[str, Any] = {"B": 64, "S": 4096, "chips": 8, "phase": "train"}
    found = cases_of("h100-sxm", "llama-3.1-70b", "B=64", "S=4096", "bf16", chips=8)
    (row,) = found.rows
    assert row["fits"] is False
    every = best("llama-3.1-70b", **asked, every=True, micro_batch=1, shard="weights")
    assert row["footprint_bytes"] == every["footprint_bytes"].min()
    says = " ".join(found.notes)
    assert f"the leanest, {row['split']}" in says
    assert "16 chips (" in says
    more = best("llama-3.1-70b", **{**asked, "chips": 16}, network="nvlink,infiniband", keep=1)
    assert more["fits"].to_list() == [True]
    lean = best("llama-3.1-70b", **asked, optimizer="adam-8bit", keep=1)
    assert ("--optimizer adam-8bit" in says) == lean["fits"][0]


def test_context_parallelism_is_searched_on_request_where_sequences_are_short():
    short = best(S=4096, keep=None), best(S=4096, keep=None, search="cp")
    assert [set(rows["cp"]) == {1} for rows in short] == [True, False]
    assert 2 in set(best(S=8192, keep=None)["cp"])


def test_a_fused_loss_is_searched_on_request():
    rows = best(S=32_768, B=4, search="loss", keep=None)
    assert set(rows["loss"] if "loss" in rows.columns else ["fused"]) >= {"fused"}
    assert any(split.endswith("fused") for split in rows["split"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "t_lower_s"}, "no time that ranks plans"),
        ({"search": "zero"}, "nothing that is searched"),
        ({"by": "t_rank_s", "bound": True}, "excludes --bound"),
        ({"every": True}, "more than 10"),
    ],
)
def test_what_cannot_be_searched_is_refused(options, message, monkeypatch):
    monkeypatch.setattr("rooflines.answers.best_plans.MAX_PLANS", 10)
    with pytest.raises(RooflinesError, match=message):
        best(**options)
