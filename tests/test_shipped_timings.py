"""Timings and quantiles of measured times that come with the project: bounds, form, and sources."""

import statistics
from dataclasses import replace
from datetime import date
from statistics import median

import polars as pl
import pytest
from catalogues import shipped

from benchmarks.measured import FEWEST, KEYS, quantiles
from rooflines import load_config, measurements
from rooflines.basics.files import CONFIG_DIR
from rooflines.fits.calibration_files import ALL_ENGINES, shipped_calibrations
from rooflines.fits.timing_tables import read_timings
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.hardware.timing_errors import (
    BOUND,
    ESTIMATE,
    LONG,
    MATMUL,
    SHORT,
    STEP,
    measured_quantiles,
)
from rooflines.measured.join import join_timings
from rooflines.results.tables import metadata_of
from rooflines.site.data_page import measured_views
from rooflines.site.explorer import timed_text

FILES = sorted((CONFIG_DIR / "timings").glob("*.parquet"))

ENGINES = ("trtllm", "vllm", "sglang")


def error_of(file, software):
    """The median error by a fit of a software in bf16, D and F from 1,024 on [1]."""
    timings = read_timings(file)
    within = pl.col("D").ge(1024) & pl.col("F").ge(1024) & pl.col("compute").eq("bf16")
    frame = timings.frame.filter(within).with_columns(software=pl.lit(software))
    ratios = join_timings(replace(timings, frame=frame), shipped()).frame["ratio_estimate"]
    return median(abs(1 / ratio - 1) for ratio in ratios)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_timing_is_below_its_bound(file):
    frame = join_timings(read_timings(file), shipped()).frame
    assert frame.height == pl.read_parquet(file).height
    assert frame["ratio_lower"].gt(1).all()
    assert frame["ratio_estimate"].is_between(0.8, 1.25).sum() > 0.85 * frame.height
    assert metadata_of(file)["timer"] == "graph"


def test_fits_of_engines_foresee_torch(repository):
    """docs/accuracy.md has the range."""
    medians = [error_of(file, engine) for file in FILES for engine in ENGINES]
    said = f"{100 * min(medians):.1f} to {100 * max(medians):.1f} %<!--/--> off in the median"
    page = (repository / "docs" / "accuracy.md").read_text(encoding="utf-8")
    assert said in " ".join(page.split())


def test_rows_name_chips_and_dtypes_of_the_catalogue():
    found = measured_quantiles()
    of = {str(what): rows for (what,), rows in found.group_by("subject")}
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
    assert not found.select("subject", *KEYS, "length", "over").is_duplicated().any()


def test_all_served_runs_have_a_row_of_their_own():
    steps = measured_quantiles().filter(subject=STEP, over=BOUND)
    assert steps["p10"].gt(1).all()
    (whole,) = steps.filter(pl.col("chip").is_null())["n"]
    assert steps["n"].sum() - whole <= whole


def test_errors_of_served_models_are_those_held_out():
    """The spread of all runs lies between the bands of models without and with experts."""
    steps = shipped_calibrations().steps
    rows = measured_quantiles().filter(subject=STEP, over=ESTIMATE)
    (whole,) = rows.filter(pl.col("chip").is_null()).to_dicts()
    bands = [by_phase["decode"].bands for key, by_phase in steps.items() if "/" in key]
    assert min(band["step-experts"][0] for band in bands) <= whole["p10"]
    assert whole["p10"] <= max(band["step"][0] for band in bands)
    assert min(band["step"][1] for band in bands) <= whole["p90"]
    assert whole["p90"] <= max(band["step-experts"][1] for band in bands)
    held_out = steps[ALL_ENGINES]["decode"].held_out
    assert held_out is not None
    assert whole["n"] == held_out.n
    by_chip = {key for key in steps if "/" in key}
    assert set(map("/".join, rows.drop_nulls("chip").select("chip", "software").rows())) == by_chip


def test_pages_say_that_errors_of_served_models_are_held_out():
    for row in measured_quantiles().iter_rows(named=True):
        held_out = (row["subject"], row["over"]) == (STEP, ESTIMATE)
        assert timed_text(row).endswith(" of models left out of the fit") == held_out
    views = {(view[0], view[4]) for view in measured_views() if "served" in view[0]}
    assert views == {
        ("served runs", BOUND),
        ("served runs of models left out of the fit", ESTIMATE),
    }


LARGE, SMALL = (4096, 8192, 8192), (1, 1024, 1024)
"""B, D and F of a compute-bound and of a memory-bound matmul, with a long and a short bound."""

FACTORS = [1 + 0.1 * number for number in range(41)]
"""Measured times over the bound: of 41 the p10 is the fifth, the median the 21st, the p90 the
37th."""


def written(path, software, factors):
    """Timings of both matmuls on an H100 in bf16, by the data sheet's 989 TFLOP/s, 3.35 TB/s."""
    head = "chip,software,dtype_x,dtype_w,dtype_out,compute,B,D,F,seconds"
    lines = [head]
    for B, D, F in (LARGE, SMALL):  # noqa: N806, the letters
        bound = max(2 * B * D * F / 989e12, 2 * (B * D + D * F + B * F) / 3.35e12)
        assert (bound > 20e-6) == ((B, D, F) == LARGE)
        lines += [
            f"h100-sxm,{software},bf16,bf16,bf16,bf16,{B},{D},{F},{factor * bound!r}"
            for factor in factors
        ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_quantiles_of_matmuls_are_those_of_their_times_over_the_bound(tmp_path):
    """By length of the bound; what an earlier table has is not taken from a later one."""
    tables = [
        written(tmp_path / "first.csv", "mine", FACTORS),
        written(tmp_path / "again.csv", "mine", [9.0] * 50),
        written(tmp_path / "few.csv", "theirs", FACTORS[: FEWEST // 2]),
        written(tmp_path / "enough.csv", "others", [2.0] * FEWEST),
    ]
    found = quantiles(tables, date(2026, 1, 2)).drop("source", "date")
    every = ("matmul", "h100-sxm")
    assert found.filter(over=BOUND).rows() == [
        (*every, "mine", "bf16", LONG, BOUND, 41, 1.4, 3.0, 4.6),
        (*every, "mine", "bf16", SHORT, BOUND, 41, 1.4, 3.0, 4.6),
        (*every, "others", "bf16", LONG, BOUND, FEWEST, 2.0, 2.0, 2.0),
        (*every, "others", "bf16", SHORT, BOUND, FEWEST, 2.0, 2.0, 2.0),
    ]


def test_quantiles_of_served_runs_are_by_chip_and_engine_and_of_all(tmp_path):
    head = "model,chip,software,linear,input_tokens,output_tokens,concurrency,ttft_s,tpot_s"
    lines = [
        f"llama-3.1-8b,{chip},{engine},fp8,1024,1024,{1 + number % 8},0.1,{0.004 * factor!r}"
        for chip, engine, times in (("h200-sxm", "vllm", 1), ("b200", "sglang", 2))
        for number, factor in enumerate([times * each for each in FACTORS])
    ]
    path = tmp_path / "served.csv"
    path.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    rows = measurements(load_config({"measurements": {"runs": {"file": str(path)}}}), "runs")
    found = quantiles([path], date(2026, 1, 2)).filter(over=BOUND)
    keys = [(None, None), ("b200", "sglang"), ("h200-sxm", "vllm")]
    assert found.select("subject", "chip", "software").rows() == [(STEP, *key) for key in keys]
    for (chip, _), row in zip(keys, found.iter_rows(named=True), strict=True):
        ratios = sorted(rows.filter(pl.col("chip") == chip if chip else True)["ratio_lower"])
        assert row["n"] == len(ratios) == (41 if chip else 82)
        assert row["p50"] == pytest.approx(median(ratios), rel=5e-3)
        ends = [statistics.quantiles(ratios, n=10, method="inclusive")[place] for place in (0, -1)]
        assert [row["p10"], row["p90"]] == pytest.approx(ends, rel=5e-3)
