"""All rows and thresholds of the default config, against exact arithmetic and each other."""

import defaults
import polars as pl
import predicates
import pytest
from plain_files import plain_file
from test_laws import disagreements
from whole_thresholds import Critical

import rooflines

CONFIG = rooflines.load_config()


@pytest.mark.parametrize("name", CONFIG.sweeps)
def test_every_row_and_every_threshold_is_the_exact_one(name, record_property):
    whole, sweep = defaults.sweeps()[name], CONFIG.sweep(name)
    table = rooflines.rows(CONFIG, name).collect()
    predicates.check_table(table, sweep)
    start = numbers = 0
    for level in whole.levels():
        rows = len(whole.points) * len(whole.supported(level))
        numbers += whole.check_level(level, table.slice(start, rows)) if rows else 0
        start += rows
    assert start == table.height
    thresholds = rooflines.thresholds(CONFIG, name)
    predicates.check_thresholds(thresholds, sweep)
    critical = Critical(whole)
    for row in thresholds.iter_rows(named=True):
        critical.check(row)
    for axis in sweep.solved:
        wrong = disagreements(table, thresholds, axis, list(sweep.op.dims))
        assert wrong.is_empty(), wrong.head(1).to_dicts()
    record_property(
        "checked", f"{table.height:,} rows, {numbers:,} numbers, {thresholds.height:,} thresholds"
    )


SIDES = 3_000
"""Number of thresholds whose neighbouring rows are computed."""


def test_rows_on_both_sides_of_a_threshold_are_computed():
    checked = 0
    for name, sweep in CONFIG.sweeps.items():
        for axis in sweep.solved:
            found = rooflines.thresholds(CONFIG, name).filter(
                pl.col("axis") == axis,
                pl.col("share") == 1,
                pl.col("critical").is_between(2, 2**53 - 1),
            )
            if axis == "shards" or sweep.flops == "exact" or found.is_empty():
                continue
            for row in found.sample(min(found.height, SIDES // 10), seed=1).iter_rows(named=True):
                check_sides(name, axis, row)
                checked += 1
    assert checked >= SIDES / 3


def check_sides(name, axis, row):
    """Check the rows on both sides of a threshold."""
    sweep = CONFIG.sweep(name)
    at = {dim: row[dim] for dim in sweep.op.dims if dim != axis}
    critical = row["critical"]
    assert isinstance(critical, int)
    kept = {
        key: sweep.config_json[key]
        for key in ("operation", "network", "unit", "flops", "tile", "efficiency")
    }
    single = {
        **{key: value for key, value in kept.items() if value is not None},
        "grid": {**at, axis: [critical - 1, critical]},
        "chips": [row["chip"]],
        "memory": row["memory"],
        "dtypes": [
            spec
            for spec in sweep.config_json["dtypes"]
            if not isinstance(spec, str) or spec == row["dtypes"]
        ],
        "sharding": [
            spec
            for spec in sweep.config_json["sharding"]
            if not isinstance(spec, str) or spec == row["sharding"]
        ],
        "shards": [row["shards"]],
        "thresholds": [],
    }
    own = {
        chip: entry
        for chip, entry in plain_file("config.yaml")["chips"].items()
        if chip == row["chip"]
    }
    table = rooflines.rows(
        rooflines.load_config({"sweeps": {"sides": single}, "chips": own, "charts": []}), "sides"
    ).collect()
    bounds = table.filter(pl.col("dtypes") == row["dtypes"], pl.col("sharding") == row["sharding"])[
        "bound"
    ].to_list()
    assert bounds[-1] == "compute", row
    assert bounds[0] == row["limit"], row
