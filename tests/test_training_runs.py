"""Training steps of a table are judged: errors, bands, order, below the bound, no answer."""

import json
from typing import Any

import polars as pl
import pytest
from command_line import refused, said

import rooflines
from rooflines.fits.calibration_files import shipped_calibrations

PLAN: dict[str, Any] = {"dtypes": "fp8", "split": "dp8", "B": 64, "S": 4096}
HEAD = "model,chip,chips,precision,global_batch,sequence_length,stack,stack_version,seconds"


@pytest.fixture(scope="module")
def step():
    """Row of the step that the table's first rows measure."""
    answer = rooflines.train("h100-sxm", "llama-3.1-8b", **PLAN, calibration="megatron-bridge")
    return answer.row


@pytest.fixture(scope="module")
def path(step, tmp_path_factory):
    file = tmp_path_factory.mktemp("runs") / "steps.csv"
    estimate_s, bound_s = step["t_estimate_s"], step["t_lower_s"]
    shape = "llama-3.1-8b,h100-sxm,8,fp8,64,4096,megatron-bridge,26.08"
    lines = [f"{shape},{seconds}" for seconds in (estimate_s, 1.05 * estimate_s, 0.5 * bound_s)]
    lines.append("llama-3.1-8b,h100-sxm,13,bf16,26,4096,torchtitan,,10")
    file.write_text("\n".join([HEAD, *lines]) + "\n", encoding="utf-8")
    return file


def test_errors_bands_and_order_are_of_the_estimate_by_the_stack(path, step, capsys):
    judged = json.loads(said(capsys, "measured", "judge", str(path), "--json"))
    bridge, titan, whole = judged["errors"]
    assert (bridge["steps"], bridge["estimated"], bridge["below"]) == (3, 3, 1)
    assert bridge["ratio"] == pytest.approx(1)
    assert bridge["coverage"] == pytest.approx(2 / 3)
    assert bridge["pairs"] == 2, "two of three pairs are more than 10 % apart"
    assert (titan["answered"], titan["median"]) == (0, None)
    assert whole["steps"] == 4
    first, *_, last = judged["steps"]
    assert first["t_lower_s"] == step["t_lower_s"]
    assert first["ratio"] == pytest.approx(1)
    assert "groups of up to 8 chips" in last["reason"]


def test_a_screen_names_what_lies_below_its_bound_and_what_has_no_answer(path, capsys):
    lines = said(capsys, "measured", "judge", str(path)).splitlines()
    assert "below its bound: llama-3.1-8b 8 h100-sxm fp8 dp8 26.08" in lines
    assert any(line.startswith("no answer: 1 ") for line in lines)
    only = said(capsys, "measured", "judge", str(path), "--where", "stack=torchtitan")
    assert "megatron-bridge" not in only


def test_a_release_newer_than_the_fit_has_a_wider_band(step, tmp_path, capsys):
    low = step["t_estimate_p10_s"]
    assert low > step["t_lower_s"]
    shape = "llama-3.1-8b,h100-sxm,8,fp8,64,4096,megatron-bridge"
    releases = {"26.08": 0.9, "26.10": 0.9, "27.02.1": 0.8}
    lines = [f"{shape},{release},{share * low}" for release, share in releases.items()]
    file = tmp_path / "steps.csv"
    file.write_text("\n".join([HEAD, *lines]) + "\n", encoding="utf-8")
    judged = json.loads(said(capsys, "measured", "judge", str(file), "--json"))
    assert [row["in_band"] for row in judged["steps"]] == [False, True, False]


def test_steps_of_narrow_experts_are_slower_over_their_math():
    """An exponent of the width, on each chip; racks have a factor of their own."""
    fits = shipped_calibrations()
    fit = fits.training_of("b200", ["megatron-bridge"], "fp8", experts=True)
    rack = fits.training_of("gb200", ["megatron-bridge"], "fp8", experts=True)
    assert fit is not None
    assert rack is not None
    assert fit.width_power < 0
    assert float(rack.times) < float(fit.times)
    assert fit.slowdown(8192) == float(fit.times)
    assert fit.slowdown(2048) == pytest.approx(float(fit.times) * 0.25**fit.width_power)
    plan: dict[str, Any] = {"split": "dp8-ep8", "B": 64, "S": 4096, "dtypes": "fp8"}
    row = rooflines.train("b200", "qwen3-30b-a3b", **plan, calibration="megatron-bridge").row
    math_s = row["t_math_s"] / (1 - row["bubble"])
    assert row["t_estimate_s"] == pytest.approx(fit.slowdown(2048) * math_s)
    answer = rooflines.train("b200", "qwen3-30b-a3b", **plan)
    assert f"releases to {fit.release}" in answer.screen().text()


def test_tpus_are_estimated_by_maxtext():
    plan: dict[str, Any] = {"split": "dp64", "shard": "weights", "micro_batch": 4}
    row = rooflines.train("tpu-7x", "llama-3.1-70b", B=256, S=8192, dtypes="bf16", **plan).row
    assert row["t_estimate_s"] == pytest.approx(12.2, rel=0.02)  # published
    assert row["t_estimate_p10_s"] >= row["t_lower_s"]


def test_lists_of_served_runs_are_refused_for_training_steps(path, capsys):
    assert "training steps" in refused(capsys, "measured", "judge", str(path), "--wrong")


def test_a_stack_without_a_fit_and_a_cut_model_have_no_estimate(path, capsys):
    frame = pl.read_csv(path).head(2)
    frame = frame.with_columns(stack=pl.lit("mine"), shape=pl.Series([None, "12 layers kept"]))
    other = path.with_name("cut.csv")
    frame.write_csv(other)
    judged = json.loads(said(capsys, "measured", "judge", str(other), "--json"))
    bound, cut = judged["steps"]
    assert bound["t_lower_s"] is not None
    assert bound["ratio"] is cut["t_lower_s"] is None
    assert "12 layers kept" in cut["reason"]


def test_columns_have_other_names_too(path, capsys):
    frame = pl.read_csv(path).rename({"global_batch": "B", "sequence_length": "S"})
    other = path.with_name("other.csv")
    frame.write_csv(other)
    screens = [said(capsys, "measured", "judge", str(file)) for file in (path, other)]
    assert screens[0] == screens[1]
