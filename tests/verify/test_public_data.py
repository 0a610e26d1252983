"""No public served run is below its bound; public config.json files give their models.

`ROOFLINES_PUBLIC_DATA` names a folder of timings, with tables in `measured` and in `models`. In
`models/configs`, there or one folder above, are model_configs/ of ai-dynamo/aiconfigurator at
095f58a5, Apache-2.0.
"""

import os
from pathlib import Path

import polars as pl
import pytest
from case_files import case
from catalogues import shipped
from late_models import READ, assert_as_printed
from polars.testing import assert_frame_equal

from benchmarks import measured as benchmark
from benchmarks.calibration import served_runs
from benchmarks.measured import public_timings, quantiles
from rooflines import RooflinesError, models
from rooflines.fits.calibration_files import STEP_NUMBERS, shipped_calibrations
from rooflines.fits.engine_overhead import step_fits
from rooflines.fits.timing_tables import read_timings
from rooflines.hardware.timing_errors import BOUND, STEP, measured_quantiles
from rooflines.measured.join import join_timings
from rooflines.measured.judged_plans import (
    above_bound,
    choice_errors,
    measured_deployments,
    plan_choices,
)

DATA = os.environ.get("ROOFLINES_PUBLIC_DATA")
CONFIGS = next(
    (
        folder / "models" / "configs"
        for folder in (Path(DATA or ""), Path(DATA or "").parent)
        if DATA and (folder / "models" / "configs").is_dir()
    ),
    None,
)
TAIL = "_config.json"

timings = pytest.mark.skipif(DATA is None, reason="ROOFLINES_PUBLIC_DATA names no folder")
published = pytest.mark.skipif(CONFIGS is None, reason="the folder has no models/configs")

REFUSED = case("published-configs")["refused"]


def config(name):
    assert CONFIGS is not None
    return CONFIGS / f"{name}{TAIL}"


@published
@pytest.mark.parametrize("name", READ)
def test_counts_caches_and_reads_of_late_models(name):
    model = models.from_hf(config(name))
    assert_as_printed(model, READ[name])
    weights = float(model.weights_bytes()) / 1e9
    assert weights == pytest.approx(READ[name]["weights"], abs=0.051)


@published
def test_all_but_the_refused_are_read():
    assert CONFIGS is not None
    files = [file.name for file in CONFIGS.glob(f"*{TAIL}") if "hf_quant" not in file.name]
    names = {file.removesuffix(TAIL) for file in files}
    assert {*REFUSED, *READ} <= names
    for name in sorted(names - set(REFUSED)):
        model = models.from_hf(config(name))
        assert model.dtypes is not None
        counts = model.parameters()
        assert 0 < counts.active <= counts.total


@published
@pytest.mark.parametrize("name", REFUSED)
def test_the_others_are_refused_by_name(name):
    with pytest.raises(RooflinesError, match=REFUSED[name]) as refused:
        models.from_hf(config(name))
    assert str(refused.value).count("fix:") == 1


@timings
def test_public_timings_below_the_bound_are_explained():
    path = f"{DATA}/measured/aic-llm-grid-9-chips.parquet"
    found = join_timings(read_timings(path), shipped())
    left_out = found.skipped.filter(lacks="row")["timings"].sum()
    assert found.frame.height + left_out == pl.read_parquet(path).height
    reasons = found.frame.drop_nulls("reason")
    assert set(reasons["reason"]) == {"in cache", "partly in cache"}
    assert set(reasons["chip"]) == {"l40s", "rtx-pro-6000-server"}


@timings
def test_no_public_run_is_below_the_bound():
    (served,) = (path for path in public_timings() if path.suffix == ".csv")
    assert benchmark.joined(served)["ratio_lower"].gt(1).all()


@timings
def test_shipped_fits_of_steps_follow_from_public_runs():
    """By the present kernels: a change of these asks for a new fit."""
    shipped_fits = shipped_calibrations()
    (served,) = (path for path in public_timings() if path.suffix == ".csv")
    runs = served_runs(served, shipped_fits.model_copy(update={"steps": {}}))
    fitted, _ = step_fits(runs, "", "")
    assert fitted.keys() == shipped_fits.steps.keys()
    for key, by_phase in shipped_fits.steps.items():
        again, step = fitted[key]["decode"], by_phase["decode"]
        for name in STEP_NUMBERS:
            assert getattr(again, name) == pytest.approx(getattr(step, name), rel=1e-4), key
        assert again.bands["step"] == pytest.approx(step.bands["step"], rel=1e-4)
        assert again.held_out is not None
        assert step.held_out is not None
        assert again.held_out.median == pytest.approx(step.held_out.median, rel=1e-4)


@timings
def test_shipped_quantiles_follow_from_public_timings():
    stored = measured_quantiles()
    computed = quantiles(public_timings(), stored["date"][0])
    kept = [
        frame.cast({"n": pl.Int64, "date": pl.String}).filter(
            (pl.col("over") == BOUND) | (pl.col("subject") == STEP)
        )
        for frame in (computed, stored.with_columns(date=stored["date"][0]))
    ]
    assert_frame_equal(*kept)


@timings
def test_choices_among_public_runs_reach_what_accuracy_says():
    """By the estimate with the model left out; no run is above the bound at its requests."""
    limits = {"served.csv": (0.93, 0.9), "served-pools-half.csv": (0.82, 0.8)}
    for name, (reach, kept) in limits.items():
        frame = join_timings(read_timings(f"{DATA}/models/{name}"), shipped()).frame
        runs = measured_deployments(frame, shipped())
        assert above_bound(runs) == 0
        by_basis = {row["by"]: row for row in choice_errors(plan_choices(runs)).to_dicts()}
        assert by_basis["estimate"]["reach"] > reach
        assert by_basis["estimate"]["kept_share"] > kept
        assert by_basis["estimate"]["reach"] > by_basis["bound"]["reach"]
        assert by_basis["estimate"]["reach"] > by_basis["a split at random"]["reach"]
