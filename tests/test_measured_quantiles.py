"""Quantiles of measured times that come with the project: their form, and what they follow from."""

import os

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from benchmarks.measured import FEWEST, KEYS, public_timings, quantiles
from rooflines.catalogue.chips import chip_entries
from rooflines.catalogue.dtypes import dtype_entries
from rooflines.catalogue.measured import BOUND, LONG, MATMUL, SHORT, STEP, measured_quantiles


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


def test_they_follow_from_public_timings():
    if "ROOFLINES_PUBLIC_DATA" not in os.environ:
        pytest.skip("ROOFLINES_PUBLIC_DATA names no folder of public timings")
    stored = measured_quantiles()
    computed = quantiles(public_timings(), stored["date"][0])
    kept = [
        frame.cast({"n": pl.Int64, "date": pl.String}).filter(over=BOUND)
        for frame in (computed, stored)
    ]
    assert_frame_equal(*kept)
