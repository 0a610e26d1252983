"""Properties of every table: finite numbers, no negative zeros, nulls as the dictionary defines."""

import csv
import io
import re
from itertools import pairwise

import polars as pl
from comparison import KEYS

from rooflines.dictionary.columns import columns_of
from rooflines.theory.resources import RATES

ROUNDINGS = 1e-12
"""Relative tolerance of sums that are rounded in another order [1]."""

FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]|[\t\r\n]")  # noqa: RUF001, wide forms are formulas too
NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")


def check_numbers(frame):
    """Check that no number is NaN, infinite or a negative zero."""
    for name, dtype in frame.schema.items():
        if dtype in (pl.Float64, pl.Float32):
            column = frame[name].drop_nulls()
            assert column.is_finite().all(), (
                f"{name} is not finite: "
                f"{frame.filter(~pl.col(name).is_finite()).head(1).to_dicts()}"
            )
            zero = column.filter(column == 0)
            assert ((1.0 / zero) > 0).all(), f"{name} is a negative zero"


def check_table(frame, columns):
    """Check numbers, the order of columns, nulls by the dictionary, and that no bound is beaten."""
    check_numbers(frame)
    known = [column for column in columns if column.name in frame.columns]
    assert [column.name for column in known] == frame.columns
    undefined = [each.name for each in known if not each.null and frame[each.name].null_count()]
    assert undefined == [], "the dictionary defines no null"
    times = [name for name in ("t_lower_s", "t_serial_s", "t_upper_s") if name in frame.columns]
    for low, high in pairwise(times):
        assert frame.filter(pl.col(low) > pl.col(high) * (1 + ROUNDINGS)).is_empty(), (low, high)


def check_thresholds(frame, sweep):
    """Check the thresholds of a sweep against the column dictionary, without solving."""
    known = columns_of("thresholds", sweep.op.dims, axes=sweep.has_axes)
    check_table(frame.select(column.name for column in known), known)
    alone = [pl.col(f"critical_{other}") for other in ("memory", "network")]
    sizes = frame.filter(~pl.col("axis").cast(pl.String).is_in(["shards", *RATES]))
    reached = sizes.filter(pl.col("critical").is_not_null())
    assert reached.filter(pl.col("critical") != pl.max_horizontal(alone)).is_empty()
    assert frame.filter(pl.col("axis") == "shards")["rule_of_thumb"].is_null().all()


def _plain(frame):
    """Return a frame whose names are text, so that frames with other categories compare."""
    return frame.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))


def disagreements(table, thresholds, axis, dims):
    """Return the rows of a table whose bound contradicts the thresholds along an axis."""
    axes = [name for name in ("axes",) if name in table.columns]
    fixed = [name for name in (*KEYS, *axes, *dims) if name != axis]
    names = (*fixed, *({axis} - {*RATES}), "bound", "critical", "limit")
    found = _plain(table).join(
        _plain(thresholds.filter(axis=axis, share=1.0)),
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


def check_csv(text):
    """Check that no cell of a CSV file is a formula, for comma and semicolon separators."""
    for row in csv.reader(io.StringIO(text)):
        for cell in row:
            for part in cell.split(";"):
                assert NUMBER.fullmatch(part) or not FORMULA.match(part), (
                    f"{cell!r} would run as a formula"
                )
