"""Bands of estimates with what they rest on, waiting beside TTFT, and fits of a chip's kin."""

import polars as pl
import pytest

import rooflines
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


def test_a_band_names_dtypes_without_timings_and_fitted_runs():
    fits = shipped_calibrations()
    band = estimate_band(fits, "h100-sxm", "vllm", ["fp8", "nvfp4"])
    assert band is not None
    assert band.untimed == ("nvfp4",)
    assert estimate_band(fits, "h100-sxm", "vllm", kind="prefill") is None
    trained = estimate_band(fits, "b200", "megatron", kind="train")
    assert trained is not None
    assert (trained.basis, trained.scope) == ("fitted runs", "chip")


def test_a_step_band_is_no_narrower_than_that_of_all_runs():
    assert wider((0.9, 1.1), (0.8, 1.0)) == (0.8, 1.1)
    steps = shipped_calibrations().steps
    low, high = steps[ALL_ENGINES]["decode"].bands["step"]
    for by_phase in steps.values():
        assert by_phase["decode"].bands["step"][0] <= low
        assert by_phase["decode"].bands["step"][1] >= high


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
