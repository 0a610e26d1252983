"""Timings and quantiles of measured times that come with the project: bounds, form, and sources."""

import os
from dataclasses import replace
from statistics import median

import polars as pl
import pytest
from catalogues import shipped
from polars.testing import assert_frame_equal

from benchmarks.measured import FEWEST, KEYS, public_timings, quantiles
from rooflines.basics.files import CONFIG_DIR
from rooflines.catalogue.chips import chip_entries
from rooflines.catalogue.dtypes import dtype_entries
from rooflines.catalogue.measured import (
    BOUND,
    ESTIMATE,
    LONG,
    MATMUL,
    SHORT,
    STEP,
    measured_quantiles,
)
from rooflines.fits.entries import ALL_ENGINES, shipped_calibrations
from rooflines.fits.read import read_timings
from rooflines.measured.join import joined
from rooflines.results.tables import metadata_of

FILES = sorted((CONFIG_DIR / "timings").glob("*.parquet"))

ENGINES = ("trtllm", "vllm", "sglang")


def error_of(file, software):
    """The median error by a fit of a software in bf16, D and F from 1,024 on [1]."""
    timings = read_timings(file)
    within = pl.col("D").ge(1024) & pl.col("F").ge(1024) & pl.col("compute").eq("bf16")
    frame = timings.frame.filter(within).with_columns(software=pl.lit(software))
    ratios = joined(replace(timings, frame=frame), shipped()).frame["ratio_estimate"]
    return median(abs(1 / ratio - 1) for ratio in ratios)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_timing_is_below_its_bound(file):
    frame = joined(read_timings(file), shipped()).frame
    assert frame.height == 800
    assert frame["ratio_lower"].gt(1).all()
    assert frame["ratio_estimate"].is_between(0.8, 1.25).sum() > 0.85 * frame.height
    assert metadata_of(file)["timer"] == "graph"


def test_fits_of_engines_foresee_torch(repository):
    """What docs/calibrate.md says of them."""
    medians = [error_of(file, engine) for file in FILES for engine in ENGINES]
    said = f"{100 * min(medians):.1f} to {100 * max(medians):.1f} % off in the median"
    assert said in (repository / "docs" / "calibrate.md").read_text(encoding="utf-8")


def test_rows_name_chips_and_dtypes_of_the_catalogue():
    found = measured_quantiles()
    of = {str(what): rows for (what,), rows in found.group_by("of")}
    assert of.keys() == {MATMUL, STEP}
    assert set(found["chip"].drop_nulls()) <= chip_entries().keys()
    assert set(of[MATMUL]["dtypes"]) <= dtype_entries().combinations.keys()
    assert set(of[MATMUL]["length"]) == {SHORT, LONG}
    assert of[STEP]["length"].null_count() == of[STEP].height


def test_numbers_are_quantiles_with_their_source():
    found = measured_quantiles()
    assert found.select((pl.col("p10") <= pl.col("p50")).all()).item()
    assert found.select((pl.col("p50") <= pl.col("p90")).all()).item()
    assert found.filter(pl.col("n") < FEWEST).is_empty()
    assert found.drop("chip", "software", "dtypes", "length").null_count().sum_horizontal()[0] == 0
    assert not found.select("of", *KEYS, "length", "over").is_duplicated().any()


def test_all_served_runs_have_a_row_of_their_own():
    steps = measured_quantiles().filter(of=STEP, over=BOUND)
    (whole,) = steps.filter(pl.col("chip").is_null())["n"]
    assert steps["n"].sum() - whole <= whole


def test_errors_of_served_models_are_those_held_out():
    """The spread of all runs is the band of models that fits of steps have not seen."""
    steps = shipped_calibrations().steps
    rows = measured_quantiles().filter(of=STEP, over=ESTIMATE)
    (whole,) = rows.filter(pl.col("chip").is_null()).to_dicts()
    (low, high) = steps[ALL_ENGINES]["decode"].bands["step"]
    assert (whole["p10"], whole["p90"]) == pytest.approx((low, high), rel=5e-3)
    assert whole["n"] == steps[ALL_ENGINES]["decode"].held_out.n
    by_chip = {key for key in steps if "/" in key}
    assert set(map("/".join, rows.drop_nulls("chip").select("chip", "software").rows())) == by_chip


def test_they_follow_from_public_timings():
    if "ROOFLINES_PUBLIC_DATA" not in os.environ:
        pytest.skip("ROOFLINES_PUBLIC_DATA names no folder of public timings")
    stored = measured_quantiles()
    computed = quantiles(public_timings(), stored["date"][0])
    kept = [
        frame.cast({"n": pl.Int64, "date": pl.String}).filter(
            (pl.col("over") == BOUND) | (pl.col("of") == STEP)
        )
        for frame in (computed, stored.with_columns(date=stored["date"][0]))
    ]
    assert_frame_equal(*kept)
