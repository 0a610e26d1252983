"""Numbers of docs/accuracy.md, train.md and book.md: measured, published and worked-out steps."""

from fractions import Fraction
from typing import Any

import pytest
import training_page
from case_files import case
from command_line import said

import rooflines
from rooflines.fits.calibration_files import shipped_calibrations
from rooflines.training.parallel_plan import TrainingPlan
from rooflines.training.stage_memory import saved_tensors

GIB = 2**30
LARGE, XL = training_page.DENSE


@pytest.fixture(scope="module")
def steps():
    return list(training_page.measured_steps())


@pytest.fixture(scope="module")
def runs():
    return list(training_page.published_runs())


def test_measured_steps_are_above_the_bound_and_peaks_above_the_footprint(steps):
    assert len(steps) == sum(len(run["ms"]) for run in training_page.RUNS["measured"])
    for each in steps:
        assert each.measured_s > each.row["t_lower_s"]
        assert 0.91 <= each.peak_share <= 0.98


def test_one_number_estimates_a_model_left_out(steps):
    shipped = shipped_calibrations().training["b200/megatron"]["train"]
    assert training_page.training_fit(steps) == shipped
    errors = [training_page.judged_on(steps, *of) for of in ((LARGE, XL), (XL, LARGE))]
    assert errors == pytest.approx([0.023, 0.040], abs=5e-4)
    asked: dict[str, Any] = {"split": {"tp": 8}, "calibration": ["megatron"]}
    row = rooflines.train("b200", LARGE, B=16, S=4096, **asked).row
    assert row["t_estimate_s"] == pytest.approx(shipped.times * row["t_upper_s"])
    assert row["t_estimate_p10_s"] < row["t_estimate_s"] < row["t_estimate_p90_s"]


def test_an_estimate_of_training_says_its_error_at_models_left_out(capsys):
    step = ["train", "b200", LARGE, "B=16", "S=4096", "bf16", "--split", "tp=8"]
    shown = " ".join(said(capsys, *step, "--calibration", "megatron").split())
    errors = shipped_calibrations().training["b200/megatron"]["train"].held_out
    assert errors
    assert (
        f"megatron steps of a model left out {errors.median:.2%}: steps of 8 B200 of SimuMax"
        in shown
    )
    assert shown == " ".join(said(capsys, *step, "--calibration", "vllm,megatron").split())
    assert shown == " ".join(said(capsys, *step).split())
    assert "model left out" not in said(capsys, *step, "--calibration", "none")


def test_published_flops_are_those_counted_and_nothing_beats_its_bound(runs):
    printed = [each.off for each in runs if each.off is not None]
    rows = training_page.RUNS["runs"]
    assert len(printed) == sum(len(row.get("tflops") or row.get("percent") or ()) for row in rows)
    assert printed == pytest.approx([1] * len(printed), rel=6e-3)
    assert all(0 < each.mfu < each.mfu_full < 1 for each in runs)


def test_deepseek_v3_on_b200_was_trained_with_its_module():
    (row,) = (each for each in training_page.RUNS["runs"] if each.get("mtp"))
    counted = [training_page.work_of({**row, "mtp": mtp}).flops * 2139 for mtp in (False, True)]
    assert [round(each / 1e12) for each in counted] == [536, 558]


@pytest.mark.parametrize("row", training_page.RUNS["memory"], ids=lambda row: row["name"])
def test_memory_is_that_of_the_paper(row):
    """Layers keep scores, 5/2 N S^2, and two masks of D bytes; a parameter, 18 bytes of states."""
    shape, width, length, tp = training_page.gpt(row).shape, row["D"], 2048, 8
    tensors = saved_tensors(shape, TrainingPlan.model_validate({}), Fraction(2))
    kept = sum(each.elements("none") for name, each in tensors.items() if "embed" not in name)
    shared = 2 * (kept - 2 * row["heads"] + width)  # bytes of a token, with the masks
    whole = 10 * width  # of these not shared without sequence parallelism
    stages, runs = row["stages"], row["runs"]
    ahead = 1 + Fraction(stages - 1, stages * runs) if runs > 1 else Fraction(1)
    tokens = length * row["micro_batch"] * row["layers"] * ahead
    scores = 5 * row["heads"] * length
    states = Fraction(18 * 12 * row["layers"] * width**2, tp * stages)
    saved = tokens * (whole + Fraction(shared - whole + scores, tp))
    selective = tokens * shared / tp
    assert [states / GIB, saved / GIB, selective / GIB] == row["gib"]
    full = 2 * sum(each.elements("full") for name, each in tensors.items() if "embed" not in name)
    shares = [shared + scores, tp * whole + shared - whole, shared, tp * full]
    charted = [float(100 * tokens * each / tp / saved) for each in shares]
    assert charted == pytest.approx(row["percent"], abs=0.15)


@pytest.mark.parametrize(("name", "number", "least", "mfu_full"), case("printed-shares"))
def test_published_times_are_the_shares_of_the_peak_that_were_printed(
    runs, name, number, least, mfu_full
):
    (found,) = (each for each in runs if (each.row["name"], each.number) == (name, number))
    for own, printed in ((found.mfu, least and least / number), (found.mfu_full, mfu_full)):
        assert printed is None or own == pytest.approx(printed, rel=3e-3)


def test_shared_weights_are_gathered_in_time_from_the_books_batches():
    found = {name: training_page.gathered_from(*case) for name, case in training_page.FSDP.items()}
    assert found == {"16": "38,250", "4096": "3,480,750", "1024": "2,514,600"}


def test_a_layer_sends_what_the_book_counts_but_for_saved_inputs_of_tp():
    """Its mix sends 8BD/X backward, but gathers twice and scatters once: 6BD/X."""
    own = {
        name: (book, training_page.sent_of_layer(plan))
        for name, (book, plan) in training_page.LAYERS.items()
    }
    apart = {name: sent for name, (book, sent) in own.items() if book != sent}
    assert apart == {"TP": "4BD + 6BD", "FSDP and TP": "4BD/X + 4DF/Y + 6BD/X + 8DF/Y"}


def test_mixes_of_the_book_are_those_that_its_formulas_give():
    best = {"mix64": "13.7", "mix4096": "1,333", "mix8960": "1,618"}
    least = {"tokens32768": "99.2", "tokens30000": "108", "tokens13824": "235"}
    assert training_page.mixes() == best | least
