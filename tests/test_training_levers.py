"""Levers of a training plan: ZeRO stages, recomputation and adapters, on both sides of an end."""

from typing import Any

import pytest
from command_line import refused, said

import rooflines
from rooflines.solvers.training_levers import STAGES

SMALL = "llama-3.1-8b"
STEP: dict[str, Any] = {"S": 4096, "split": "dp8"}


def solved(chip="h100-sxm", model=SMALL, **keys):
    """Rows of levers in an answer, by axis."""
    rows = rooflines.train(chip, model, **{"B": 64, **STEP, "pays": "zero,recompute", **keys})
    return {
        axis: [row for row in rows.payoffs if row["axis"] == axis]
        for axis in ("S_zero", "batches_zero", "micro_batch_recompute")
    }


@pytest.mark.parametrize("lora", [None, 16])
@pytest.mark.parametrize("slowdown", [None, 2.0])
def test_the_collectives_of_a_stage_hide_from_its_context_on(lora, slowdown):
    rows = solved(lora=lora, slowdown=slowdown)["S_zero"]
    time = "t_lower_s" if slowdown is None else "t_estimate_s"
    for row in rows:
        if row["time"] != time or row["outcome"] != "found":
            continue
        for context, hides in ((row["critical"], True), (row["critical"] - 1, False)):
            keys = {**STEP, "S": context, "shard": row["zero_stage"], "lora": lora}
            step = rooflines.train("h100-sxm", SMALL, B=64, **keys).row
            assert ((slowdown or 1) * step["t_math_s"] >= step["t_network_s"]) == hides
    assert {row["zero_stage"] for row in rows} == {*STAGES}


@pytest.mark.parametrize(("chip", "of_math"), [("h100-sxm", True), ("b200", False)])
def test_a_fit_to_more_than_the_math_is_no_slowdown_of_it(chip, of_math):
    """On B200 the fit in bf16 is to the time without overlap, on H100 to the math."""
    rows = solved(chip)["S_zero"]
    assert any(row["time"] == "t_estimate_s" for row in rows) == of_math
    typed = solved(chip, slowdown=2)["S_zero"]
    assert any(row["time"] == "t_estimate_s" for row in typed)


def test_adapters_alone_are_exchanged_so_their_stages_hide_earlier():
    """W / A times less is sent, and math is 0.68 of it: 1,423 tokens become 12."""
    plain, lora = (
        {
            row["zero_stage"]: row["critical"]
            for row in solved(lora=rank)["S_zero"]
            if row["time"] == "t_lower_s"
        }
        for rank in (None, 16)
    )
    assert (plain["gradients"], lora["gradients"]) == (1423, 12)
    assert (plain["weights"], lora["weights"]) == (2583, 1902)  # the base is gathered as before


def test_a_stage_sends_no_more_than_none_up_to_its_micro_batches():
    """Bytes a parameter: none 2 x 4; optimizer 4 + 2; gradients 4 m + 2; weights (4 + 2 + 2) m."""
    rows = {row["zero_stage"]: row for row in solved()["batches_zero"]}
    assert rows["optimizer"]["outcome"] == "always"
    for stage in ("gradients", "weights"):
        assert (rows[stage]["side"], rows[stage]["critical"]) == ("to", 1)
        for batches, is_no_more in ((1, True), (2, False)):
            none, staged = (
                rooflines.train("h100-sxm", SMALL, B=8 * batches, shard=shard, **STEP).row
                for shard in ("none", stage)
            )
            sends_more = staged["network_bytes"] > none["network_bytes"] * (1 + 1e-12)
            assert sends_more != is_no_more
    assert solved(lora=16)["batches_zero"][-1]["outcome"] == "never"


def test_recomputing_gains_from_the_micro_batch_whose_step_is_quicker():
    keys: dict[str, Any] = {"split": "dp64", "shard": "fsdp", "B": 64 * 48}
    row, *_ = solved(model="qwen3-30b-a3b", **keys)["micro_batch_recompute"]
    assert (row["side"], row["critical"], row["time"]) == ("from", 4, "t_lower_s")
    without = rooflines.train("h100-sxm", "qwen3-30b-a3b", S=4096, micro_batch=3, **keys).row
    assert without["max_micro_batch"] == 3
    for size, gains in ((3, False), (4, True), (16, True)):
        plan = {**keys, "micro_batch": size, "recompute": "full"}
        step = rooflines.train("h100-sxm", "qwen3-30b-a3b", S=4096, **plan).row
        assert (step["t_lower_s"] < without["t_lower_s"]) == gains
    assert row["gain"] > 1


@pytest.mark.parametrize(
    ("model", "keys", "outcome"),
    [
        (SMALL, {"shard": "fsdp"}, "never"),
        ("llama-3.1-70b", {"split": "dp64", "shard": "fsdp", "B": 512}, "always"),
        ("llama-3.1-70b", {}, "never"),
    ],
)
def test_recomputing_never_gains_or_is_all_that_fits(model, keys, outcome):
    assert {row["outcome"] for row in solved(model=model, **keys)["micro_batch_recompute"]} == {
        outcome
    }


def test_stages_of_a_pipeline_have_no_answer_about_recomputing():
    assert solved(split="pp2-dp4")["micro_batch_recompute"] == []


def test_a_table_has_them_and_a_screen_says_them(capsys):
    sweep = {
        "models": [SMALL],
        "chips": ["h100-sxm"],
        "dtypes": "bf16",
        "phase": "train",
        "splits": [{"dp": 8}],
        "grid": {"B": [8, 64], "S": 4096},
        "thresholds": ["S_zero", "batches_zero", "micro_batch_recompute", "S"],
    }
    config = rooflines.load_config({"model-sweeps": {"a": sweep}})
    rows = rooflines.thresholds(config, "a")
    assert rows.height <= config.sweep("a").max_thresholds()
    asked = rows.filter(axis="S_zero", B=64, time="t_lower_s")["critical"].to_list()
    lower = [row for row in solved()["S_zero"] if row["time"] == "t_lower_s"]
    assert asked == [row["critical"] for row in lower]
    words = ["train", "h100-sxm", SMALL, "B=64", "S=4096", "dp8", "--pays"]
    screen = " ".join(said(capsys, *words, "zero,recompute").split())
    assert "from 1,245 tokens a sequence: all collectives with shard=weights hide" in screen
    assert "as at these sizes); from 2,583 by the bound" in screen
    assert "never sequences a micro-batch: recomputing all layers gains" in screen
    assert "--pays is 'offload', which is no lever" in refused(capsys, *words, "offload")
