"""Plans that fit where those of a question do not: each line that is offered fits."""

from command_line import said

import rooflines

QUESTION = ("train", "h100-sxm", "llama-3.1-8b", "B=8", "S=8192", "bf16")


def offered(screen):
    """Splits under "What would fit", by lever."""
    lines = [line for line in screen.splitlines() if "  --split " in line]
    return {
        line.partition("--split")[0].strip(): line.split("--split ")[1].split()[0] for line in lines
    }


def test_each_plan_that_is_offered_in_place_of_one_that_does_not_fit_fits(capsys):
    screen = said(capsys, *QUESTION, "tp1")
    assert "if it fitted" in screen
    assert "No plan of 1 fits as it is; the leanest, dp1-fsdp-full: 150 GB" in screen
    plans = offered(screen)
    assert [*plans] == ["optimizer", "offload", "more chips"]
    for split in plans.values():
        assert rooflines.train("h100-sxm", "llama-3.1-8b", B=8, S=8192, split=split).row["fits"]


def test_less_than_another_optimizer_is_offered_where_it_is_enough(capsys):
    (split,) = offered(said(capsys, *QUESTION, "dp8")).values()
    row = rooflines.train("h100-sxm", "llama-3.1-8b", B=8, S=8192, split=split).row
    assert row["fits"]
    assert row["chips"] == 8
