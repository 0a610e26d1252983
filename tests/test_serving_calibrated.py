"""Where the estimate of a step attains 90 % of its plateau: against trying, and by hand."""

from __future__ import annotations

from fractions import Fraction

import polars as pl
import random_serving
import serving_limits as limits
import serving_oracle
from hypothesis import given
from plain_files import plain_file
from random_sweeps import BITS, check
from serving_estimates import estimate
from serving_kernels import Step, kernels
from serving_sweeps import model_sweep
from serving_tables import sweep_of
from test_serving_thresholds import ON_TINY
from test_serving_worked import ALL_CHIPS as OWN

import rooflines
from rooflines.critical.thresholds import sweep_thresholds
from rooflines.sweep.rows import StepTable

KEYS = ("model", "phase", "chip", "memory", "network", "dtypes", "split")
"""Keys that name a case."""

CALIBRATED = random_serving.calibrated(random_serving.configs()) | random_serving.configs()
"""With the calibrations of software, and of chips."""

FAR = 2**80
"""A context so large that only what grows fastest counts [1]."""

MANY = limits.FAR_TILES
"""A batch so large that only what grows with it counts, of whole tiles."""


def time(case, batch, new, context):
    """The estimate of a step [s], exact."""
    step = Step(batch, new, context)
    total: Fraction = sum(
        kernel.count * estimate(case, kernel)["t_estimate_s"] for kernel in kernels(case, step)
    )
    return total


def check_row(case, row):
    """Whether a size is the first that attains 90 % of the plateau."""
    found, along_contexts = row["saturates_estimate"], row["axis"] == "S"
    if None in case.fits.kernels.values():
        assert found is None
        return
    new = row["S"] if case.phase == "prefill" else row.get("T") or 1

    def growth(context):
        """What a sequence adds to a large batch [s]."""
        return (time(case, 2 * MANY, new, context) - time(case, MANY, new, context)) / MANY

    least = new if along_contexts else case.dp
    slope = (growth(2 * FAR) - growth(FAR)) / FAR if along_contexts else growth(row["S"])

    def attains(size):
        seconds = growth(size) if along_contexts else time(case, size, new, row["S"])
        return 9 * seconds <= 10 * slope * size

    if along_contexts and (slope == 0 or not attains(2**62 - 1)):
        assert found is None
        return
    assert found is not None
    assert found >= least
    assert attains(found)
    tried = {*range(max(found - 20, least), found), *range(least, min(least + 20, found))}
    assert not [size for size in tried if attains(size)]


@check(60)
@given(config=CALIBRATED)
def test_batches_are_those_found_by_trying(config):
    """The batches just below the one that is found, and the smallest, by an oracle.

    Null where a kernel has no calibration.
    """
    sweep = config["model-sweeps"]["random"]
    sweep |= {"thresholds": ["B", "S"], "targets": None}
    sweep["grid"]["B"] = [8]
    found = serving_oracle.cases(sweep, {}, config["chips"], BITS, config.get("fits"))
    cases = {tuple(keys[key] for key in KEYS): case for keys, case, _ in found if case is not None}
    rows = sweep_thresholds(sweep_of(config))
    for row in rows.sample(min(3, rows.height), seed=0).to_dicts():
        check_row(cases[tuple(row[key] for key in KEYS)], row)


def test_batches_of_the_default_config_are_those_found_by_trying():
    sweep = plain_file("config.yaml")["model-sweeps"]["serving"]
    catalogues = plain_file("models.yaml")["models"], plain_file("chips.yaml")["chips"]
    found = serving_oracle.cases(
        sweep, *catalogues, plain_file("dtypes.yaml")["formats"], plain_file("calibrations.yaml")
    )
    cases = {tuple(keys[key] for key in KEYS): case for keys, case, _ in found}
    rows = sweep_thresholds(rooflines.load_config().model_sweep("serving"))
    estimated = rows.filter(pl.col("saturates_estimate").is_not_null(), axis="B")
    for row in estimated.sample(12, seed=0).to_dicts():
        case = cases[tuple(row[key] for key in KEYS)]
        assert case is not None
        check_row(case, row)


def test_sizes_are_those_of_the_rows():
    """The first batch of one layer whose time is within 90 % of what large ones take.

    Without a calibration, and along chips, there is none.
    """
    fitted = {"fp8": {"math": 0.25, "memory": 0.8, "overhead_s": 1}}
    bare = {key: part for key, part in OWN["tiny"].items() if key != "calibration"}
    chips = {"bare": bare, "fitted": {**bare, "calibration": fitted}}
    sweep = {**ON_TINY, "chips": ["fitted", "bare"], "thresholds": ["B", "S", "chips"]}
    frame = sweep_thresholds(model_sweep(sweep, chips))
    keys, size = ("chip", "axis"), "saturates_estimate"
    sizes = {(chip, axis): found for chip, axis, found in frame.select(*keys, size).rows()}
    assert sizes.keys() == {(chip, axis) for axis in ("B", "S", "chips") for chip in chips}
    assert [key for key, found in sizes.items() if found is not None] == [
        ("fitted", "B"),
        ("fitted", "S"),
    ]

    def times(grid):
        asked = {**ON_TINY, "chips": ["fitted"], "grid": grid, "thresholds": []}
        return StepTable(model_sweep(asked, chips)).frame().collect()["t_estimate_s"].to_list()

    batches = [*range(1, 400), 10**9, 2 * 10**9]
    *small, one, two = times({"B": batches, "S": [1]})
    slope = (two - one) / 10**9
    first = next(b for b, time in enumerate(small, 1) if 9 * time <= 10 * slope * b)
    assert sizes["fitted", "B"] == first
