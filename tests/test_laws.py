"""Rows and thresholds of random sweeps agree, and nulls are those of the column dictionary."""

import oracle
import polars as pl
import predicates
from comparison import KEYS, table_of
from hypothesis import assume, given
from random_sweeps import check, configs

import rooflines
from rooflines.model.resources import RATES


def sweep_of(config):
    """Return the name and the config of the one sweep."""
    ((name, sweep),) = config["sweeps"].items()
    return name, sweep


def thresholds_of(config):
    """Return the thresholds of a config's one sweep."""
    return rooflines.thresholds(rooflines.load_config(config))


def plain(frame):
    """Return a frame whose names are text, so that frames with other categories compare."""
    return frame.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))


def disagreements(table, thresholds, axis, dims):
    """Return the rows of a table whose bound contradicts the thresholds along an axis."""
    axes = [name for name in ("axes",) if name in table.columns]
    fixed = [name for name in (*KEYS, *axes, *dims) if name != axis]
    names = (*fixed, *({axis} - {*RATES}), "bound", "critical", "limit")
    found = plain(table).join(
        plain(thresholds.filter(axis=axis, share=1.0)),
        on=fixed,
        how="inner",
        nulls_equal=True,
        suffix="_solved",
    )
    assert axis == "shards" or found.height == table.height
    compute, critical = pl.col("bound") == "compute", pl.col("critical")
    endless = critical.is_null() & pl.col("limit").is_null()
    if axis == "shards":
        wrong = (
            ((pl.col(axis) > critical) & compute)
            | ((pl.col(axis) == critical) & ~compute)
            | (endless & (pl.col(axis) == 1) & ~compute)
        )
        wrong = wrong | (critical.is_null() & ~endless & compute)
    elif axis in RATES:
        wrong = compute != (pl.col("outcome") == "always")
    else:
        wrong = compute != (pl.col(axis) >= critical).fill_null(value=False)
    return found.filter(wrong).select(names)


@check(40)
@given(config=configs())
def test_thresholds_agree_with_the_rows_of_the_table(config):
    _, sweep = sweep_of(config)
    table, thresholds = table_of(config), thresholds_of(config)
    assume(1 in oracle.as_list(sweep.get("shares", 1)))
    for axis in sweep["thresholds"]:
        wrong = disagreements(table, thresholds, axis, oracle.operation_of(sweep["operation"]).dims)
        assert wrong.is_empty(), wrong.head(1).to_dicts()


@check(40)
@given(config=configs())
def test_a_null_means_what_the_dictionary_says_and_numbers_are_finite(config):
    read = rooflines.load_config(config)
    predicates.check_table(table_of(config), read.sweep("random"))
    predicates.check_thresholds(rooflines.thresholds(read), read.sweep("random"))
    assert (
        not rooflines.skipped(read)
        .select("sweep", "unit", "rows", "reason")
        .null_count()
        .sum_horizontal()
        .item()
    )
