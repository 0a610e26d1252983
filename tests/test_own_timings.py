"""Timings of torch that come with the project: none is below its bound, and fits foresee them."""

from dataclasses import replace
from statistics import median

import polars as pl
import pytest
from catalogues import shipped

from rooflines.basics.files import CONFIG_DIR
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
