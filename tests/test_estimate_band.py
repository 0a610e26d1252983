"""Bands of estimates with what they rest on, waiting beside TTFT, and fits of a chip's kin."""

from dataclasses import replace

import polars as pl
import pytest

import rooflines
from rooflines.basics.text import significant
from rooflines.cli import main as cli
from rooflines.fits.calibration_files import ALL_ENGINES, shipped_calibrations
from rooflines.fits.engine_overhead import waiting, wider
from rooflines.fits.estimate_band import estimate_band, waiting_of


@pytest.mark.parametrize(
    ("chip", "engine", "scope", "key"),
    [
        ("h100-sxm", "vllm", "chip and engine", "h100-sxm/vllm"),
        ("h800", "vllm", "chip's kin and engine", "h100-sxm/vllm"),
        ("b300", "vllm", "engine", "vllm"),
        ("b300", "other", "all engines", ALL_ENGINES),
    ],
)
def test_a_band_of_decode_is_that_of_the_nearest_runs_at_models_left_out(chip, engine, scope, key):
    fits = shipped_calibrations()
    band, step = estimate_band(fits, chip, engine, ["bf16"]), fits.steps[key]["decode"]
    assert band is not None
    assert step.held_out is not None
    assert (band.scope, band.basis, band.runs) == (scope, "models left out", step.held_out.n)
    assert (band.low, band.high) == step.bands["step"]
    assert band.low < 1 < band.high


@pytest.mark.parametrize(
    ("model", "name"), [("llama-3.1-70b", "step"), ("minimax-m2.5", "step-experts")]
)
def test_a_screen_has_the_band_of_models_with_or_without_experts(model, name):
    answer = rooflines.explain_model(
        "h200-sxm", model, B=64, S=4096, split="tp8", dtypes="fp8", calibration="vllm"
    )
    assert answer.band is not None
    ends = shipped_calibrations().steps["h200-sxm/vllm"]["decode"].bands[name]
    assert (answer.band["low"], answer.band["high"]) == ends
    found = answer.row["t_estimate_p10_s"] / answer.row["t_estimate_s"]
    assert found == pytest.approx(ends[0])


def test_a_band_names_dtypes_without_timings_and_fitted_runs():
    fits = shipped_calibrations()
    band = estimate_band(fits, "h100-sxm", "vllm", ["fp8", "nvfp4"])
    assert band is not None
    assert band.untimed == ("nvfp4",)
    assert estimate_band(fits, "h100-sxm", "vllm", kind="prefill") is None
    trained = estimate_band(fits, "b200", "megatron", kind="train")
    assert trained is not None
    assert (trained.basis, trained.scope) == ("fitted runs", "chip")


def test_a_step_band_is_no_narrower_than_that_of_all_runs_and_widest_on_chips_without_runs():
    assert wider((0.9, 1.1), (0.8, 1.0)) == (0.8, 1.1)
    steps = {
        key: by_phase["decode"].bands for key, by_phase in shipped_calibrations().steps.items()
    }
    for name in ("step", "step-experts"):
        low = max(bands[name][0] for key, bands in steps.items() if "/" in key)
        high = min(bands[name][1] for key, bands in steps.items() if "/" in key)
        for bands in steps.values():
            assert bands[name][0] <= low
            assert bands[name][1] >= high
        for key in ("vllm", "trtllm", "sglang"):
            assert steps[key][name] == steps[ALL_ENGINES][name]


def test_waiting_is_measured_over_the_prefill_by_requests_in_flight():
    runs = pl.DataFrame(
        {
            "ttft_s": [0.2] * 40 + [3.0] * 40,
            "prefill_estimate_s": [0.1] * 80,
            "concurrency": [16] * 40 + [256] * 40,
            "dp": [2] * 80,
        }
    )
    assert waiting(runs) == {"up to 8": (2, 2, 2), "more than 64": (30, 30, 30)}
    assert waiting(runs.drop("dp")) == {}
    shipped = waiting_of(shipped_calibrations(), "b300", "vllm")
    assert list(shipped) == ["up to 8", "9 to 64", "more than 64"]
    assert all(low <= middle <= high for low, middle, high in shipped.values())


def test_a_chip_without_timings_takes_its_kins_shares_and_says_so():
    fits = shipped_calibrations()
    assert fits.by_kin("h800") == "h100-sxm"
    assert fits.by_kin("h100-sxm") is None
    assert fits.by_kin("mi325x") is None  # no fits of an MI300X
    assert fits.matmul("h800", ["vllm"], "bf16") == fits.matmul("h100-sxm", ["vllm"], "bf16")
    answer = rooflines.explain("h800", (64, 8192, 8192), "bf16", calibration="vllm")
    assert answer.row["t_estimate_s"] is not None
    assert "by timings of h100-sxm" in " ".join(str(answer).split())


def screen(chip, model, **options):
    return " ".join(str(rooflines.explain_model(chip, model, B=64, S=4096, **options)).split())


def test_a_screen_says_what_its_band_rests_on():
    timed = screen("h100-sxm", "llama-3.1-70b", split="tp8", calibration="vllm")
    assert "(80% of held-out runs)" in timed
    assert "may not hold" not in timed
    by_kin = screen("h800", "llama-3.1-70b", split="tp8", calibration="vllm")
    assert "on h800, by timings of h100-sxm, in bf16; no runs on h800" in by_kin
    assert "the band is of runs on h100-sxm" in by_kin
    elsewhere = screen("b300", "llama-3.1-70b", split="tp8", calibration="vllm")
    assert "no runs on b300, the band is of the engine's runs on other chips" in elsewhere
    windows = screen("h100-sxm", "gpt-oss-120b", split="tp2", calibration="vllm")
    assert "beyond the timed sizes, so the band may not hold" in windows


def test_timings_of_an_older_engine_are_called_so(capsys):
    fits = shipped_calibrations()
    older = fits.older_versions("a100-sxm-80gb", ["vllm", "sglang-block", "torch"])
    assert older == {"vllm": ("0.14.0", "0.24.0"), "sglang": ("0.5.9", "0.5.14")}
    assert fits.older_versions("b200", ["vllm", "trtllm", "nccl"]) == {}
    said = "timings of vllm 0.14.0, older than 0.24.0"
    assert f"; {said}; " in screen("a100", "llama-3.1-70b", split="tp8", calibration="vllm")
    assert "older" not in screen("h100-sxm", "llama-3.1-70b", split="tp8", calibration="vllm")
    assert cli.run(["explain", "a100,h800", "llama-3.1-70b", "tp8", "B=64", "S=4096"]) == 0
    table = " ".join(capsys.readouterr().out.split())
    assert f"a100-sxm-80gb: {said}." in table
    assert "h800: by timings of h100-sxm." in table


def test_a_band_of_runs_in_the_fit_is_called_one():
    answer = rooflines.explain_model(
        "h100-sxm", "llama-3.1-70b", B=64, S=4096, split="tp8", calibration="vllm"
    )
    assert answer.band is not None
    seen = {**answer.band, "basis": "fitted runs", "untimed": ("nvfp4",)}
    text = " ".join(str(replace(answer, band=seen)).split())
    assert "(80% of fitted runs)" in text
    assert "no matmuls timed in nvfp4, so the band may not hold" in text


@pytest.mark.parametrize(("batch", "in_flight"), [(16, "up to 8"), (17, "9 to 64")])
def test_the_waiting_measured_stands_beside_an_idle_prompt(batch, in_flight):
    low, _, high = waiting_of(shipped_calibrations(), "b200", "vllm")[in_flight]
    answer = rooflines.explain_model(
        "b200", "llama-3.1-70b", B=batch, S=4096, split="tp4-dp2", calibration="vllm"
    )
    times = f"{significant(low)} to {significant(high)} times that prefill"
    said = f"in runs of vllm {times} ({in_flight} in flight a replica)"
    assert said in " ".join(str(answer).split())
    bounds = rooflines.explain_model(
        "b200", "llama-3.1-70b", B=batch, S=4096, split="tp4-dp2", calibration="vllm", bound=True
    )
    assert "in runs of" not in str(bounds)


@pytest.mark.parametrize(("basis", "says"), [([], True), (["--bound"], False)])
def test_requests_say_the_waiting_measured_and_ttft_of_the_bound_alone(basis, says, capsys):
    words = "explain h100-sxm llama-3.1-70b isl=4096 osl=512 B=16,64 tp=8 --calibration vllm"
    assert cli.run([*words.split(), *basis]) == 0
    text = capsys.readouterr().out
    assert ("prefill, idle (estimate)" in text) == says
    assert ("Waiting: measured TTFT over prefill of vllm on h100-sxm: 1.76 to" in text) == says
    assert "TTFT (estimate)" not in text
