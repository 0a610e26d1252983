"""The default config against exact arithmetic: some rows and thresholds of every sweep.

`make verify` checks every row, column and threshold.
"""

from __future__ import annotations

import random

import defaults
import polars as pl
import predicates
import pytest
from plain_files import plain_file
from whole_thresholds import Critical

import rooflines
from rooflines.sweep.rows import OperationTable

OF_NETWORKS = ("shards", "network_rate")
"""Axes without rows on a chip without a network."""

MOST_VARIANTS, MOST_THRESHOLDS = 2, 60
CONFIG = rooflines.load_config()


@pytest.mark.parametrize("name", CONFIG.sweeps)
def test_rows_of_the_default_config_are_the_exact_ones(name):
    whole, sweep = defaults.sweeps()[name], CONFIG.sweep(name)
    start, slices = 0, []
    for level in whole.levels():
        rows = len(whole.points) * len(whole.supported(level))
        slices += [(level, start, rows)] if rows else []
        start += rows
    assert start == sweep.rows
    level, start, rows = random.choice(slices)  # noqa: S311, a choice of what to check
    frame = OperationTable(sweep).frame(start, start + rows).collect()
    predicates.check_table(frame, sweep)
    assert whole.check_level(level, frame, MOST_VARIANTS) == rows * frame.width


@pytest.mark.parametrize("name", [name for name, sweep in CONFIG.sweeps.items() if sweep.solved])
def test_thresholds_of_the_default_config_are_the_exact_ones(name):
    chip = random.choice([chip_rows.chip for chip_rows in CONFIG.sweep(name).blocks])  # noqa: S311, a choice of what to check
    sweep = {**CONFIG.sweep(name).config_json, "chips": [chip]}
    critical = Critical(defaults.sweeps()[name])
    frame = rooflines.thresholds(
        rooflines.load_config(
            {"sweeps": {name: plain(sweep)}, "chips": own_chips(chip), "charts": []}
        )
    )
    predicates.check_thresholds(frame, CONFIG.sweep(name))
    joined = bool(CONFIG.chips[chip].networks)
    solved = [axis for axis in CONFIG.sweep(name).solved if joined or axis not in OF_NETWORKS]
    assert frame["axis"].unique(maintain_order=True).to_list() == solved
    rows = list(frame.iter_rows(named=True))
    for row in random.sample(rows, min(frame.height, MOST_THRESHOLDS)):
        critical.check(row)


def plain(sweep):
    """Return a sweep's config without keys that are not set."""
    return {key: value for key, value in sweep.items() if value is not None}


def own_chips(chip):
    """Return the config's own chips that a chip needs."""
    return {
        name: entry for name, entry in plain_file("config.yaml")["chips"].items() if name == chip
    }


def test_the_check_of_rows_notices_a_wrong_number():
    whole, sweep = defaults.sweeps()["book-matmul"], CONFIG.sweep("book-matmul")
    level = next(whole.levels())
    frame = OperationTable(sweep).frame(0, len(whole.points)).collect()
    whole.check_level(level, frame)
    one_row = pl.int_range(pl.len()) == 17
    for name in (
        "flops",
        "memory_bytes",
        "t_memory_s",
        "t_lower_s",
        "utilization",
        "memory_intensity",
        "attained_flops_per_s",
    ):
        wrong = frame.with_columns(
            pl.when(one_row).then(pl.col(name) * (1 + 1e-11)).otherwise(name).alias(name)
        )
        with pytest.raises(AssertionError, match=name):
            whole.check_level(level, wrong)
    for name, value in {
        "dtypes": "fp8",
        "shards": 2,
        "B": 3,
        "fits": False,
        "bound": "network",
        "t_math_s": None,
    }.items():
        new = pl.lit(
            value,
            dtype=pl.Enum(["compute", "memory", "network"])
            if name == "bound"
            else frame[name].dtype,
        )
        with pytest.raises(AssertionError):
            whole.check_level(
                level,
                frame.with_columns(pl.when(one_row).then(new).otherwise(name).alias(name)),
            )


@pytest.mark.parametrize("name", ["book-matmul", "across-nodes", "book-q2-int8-weights"])
def test_the_check_of_a_threshold_notices_a_wrong_number(name):
    critical = Critical(defaults.sweeps()[name])
    for row in rooflines.thresholds(CONFIG, name).head(40).iter_rows(named=True):
        critical.check(row)
        for column in ("critical", "critical_memory", "critical_network"):
            for wrong in [None, 7] if row[column] not in (None, 7) else [2]:
                with pytest.raises(AssertionError):
                    critical.check({**row, column: wrong})
            if row[column] is not None:
                for step in (-1, 1):
                    with pytest.raises(AssertionError):
                        critical.check({**row, column: row[column] + step})
        with pytest.raises(AssertionError):
            critical.check({**row, "limit": "memory" if row["limit"] != "memory" else "network"})


def test_the_check_of_a_rate_notices_a_wrong_factor():
    critical = Critical(defaults.sweeps()["across-nodes"])
    solved = rooflines.thresholds(CONFIG, "across-nodes").filter(
        pl.col("axis").cast(pl.String).is_in(["peak", "memory_rate", "network_rate"])
    )
    assert set(solved["outcome"]) == {"found", "always", "never"}
    for row in solved.gather_every(47).iter_rows(named=True):
        critical.check(row)
        wrong: list[dict[str, object]] = [
            {"limit": "memory" if row["limit"] != "memory" else "network"},
            {"outcome": "never" if row["outcome"] != "never" else "always"},
        ]
        if row["critical_exact"] is not None:
            wrong += [{"critical_exact": row["critical_exact"] * (1 + by)} for by in (-1e-9, 1e-9)]
        for change in wrong:
            with pytest.raises(AssertionError):
                critical.check({**row, **change})
