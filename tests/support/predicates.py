"""Properties of every table: finite numbers, no negative zeros, nulls as the dictionary defines."""

import csv
import io
import re

import polars as pl
from comparison import KEYS

from rooflines.model.columns import columns_of
from rooflines.model.resources import RATES

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


def check_columns(frame, columns):
    """Check numbers, the order of columns, and that nulls are where the dictionary defines them."""
    check_numbers(frame)
    assert [column.name for column in columns] == frame.columns
    undefined = [each.name for each in columns if not each.null and frame[each.name].null_count()]
    assert undefined == [], "the dictionary defines no null"


def check_table(frame, sweep):
    """Check the rows of a sweep's table against the column dictionary."""
    check_columns(frame, [each for each in sweep.columns if each.name in frame.columns])
    levels = {chip: sweep.chips[chip].memory for chip in sweep.config.chips}
    for chip, network, shape in frame.select("chip", "network", "shape").unique().iter_rows():
        known = [*sweep.chips[chip].networks]
        asked = [set(names) for names in sweep.config.network or [known[:1]]]
        has = [names for names in asked if names and names <= {*known}]
        assert network is not None or len(has) < len(asked), chip
        assert network is None or set(network.split("+")) in has, (chip, network)
        assert (shape is None) is not bool(sweep.config.shapes), shape
    kept = [name for name in ("t_estimate_s", "fits") if name in frame.columns]
    nulls = frame.group_by("chip", "memory", "dtypes").agg(
        pl.len(), *(pl.col(name).null_count() for name in kept)
    )
    for row in nulls.iter_rows(named=True):
        chip, memory, dtypes = row["chip"], row["memory"], row["dtypes"]
        calibrated = is_calibrated(sweep, chip, memory, sweep.combinations[dtypes].compute)
        there = {
            "t_estimate_s": calibrated,
            "fits": levels[chip][memory].capacity_bytes is not None,
        }
        for name in kept:
            assert row[name] == (0 if there[name] else row["len"]), (name, chip, memory, dtypes)
    for name in ("memory", "network"):
        if {f"{name}_intensity", f"{name}_bytes"} <= set(frame.columns):
            assert frame.filter(
                pl.col(f"{name}_intensity").is_null() != (pl.col(f"{name}_bytes") == 0)
            ).is_empty(), name


def is_calibrated(sweep, chip, memory, compute):
    """Say whether rows have estimates; matrix units take as long for fp16 as for bf16."""
    softwares = sweep.config.calibration
    if softwares is None:
        return compute in (sweep.chips[chip].calibration or {})
    fits = sweep.calibrations.calibrations
    same = {compute, "bf16"} if compute == "fp16" else {compute}
    known = any(same & fits.get(f"{chip}/{software}", {}).keys() for software in softwares)
    return known and memory == "hbm" and sweep.unit == "matrix"


def check_steps(frame, columns):
    """Check rows of whole models, or of their kernels, against the column dictionary."""
    check_columns(frame, columns)
    assert frame.filter(pl.col("t_ops_s") > pl.col("t_upper_s") * (1 + ROUNDINGS)).is_empty()
    if "t_lower_s" in frame.columns:
        assert frame.filter(pl.col("t_lower_s") > pl.col("t_ops_s") * (1 + ROUNDINGS)).is_empty()


def check_thresholds(frame, sweep):
    """Check the thresholds of a sweep against the column dictionary, without solving."""
    check_columns(frame, columns_of("thresholds", sweep.op.dims, axes=sweep.has_axes))
    assert frame.filter(pl.col("shards").is_null() != (pl.col("axis") == "shards")).is_empty()
    for dim in sweep.op.dims:
        assert frame.filter(pl.col(dim).is_null() != (pl.col("axis") == dim)).is_empty(), dim
    axis = pl.col("axis").cast(pl.String)
    of_rates = frame.filter(axis.is_in([*RATES]))
    assert of_rates["critical"].null_count() == of_rates.height
    no_factor = pl.col("critical_exact").is_null()
    assert of_rates.filter(no_factor != (pl.col("outcome") == "never")).is_empty()
    at_most_one = pl.col("critical_exact") <= 1
    assert of_rates.filter((axis == "peak") & ~at_most_one).is_empty()
    assert of_rates.filter((axis != "peak") & (pl.col("critical_exact") < 1)).is_empty()
    frame = frame.filter(~axis.is_in([*RATES]))
    sizes, chips = frame.filter(axis != "shards"), frame.filter(axis == "shards")
    never = pl.col("critical").is_null()
    huge = pl.col("critical_exact") >= 2.0**62 * (1 - 1e-12)
    alone = [pl.col(f"critical_{other}") for other in ("memory", "network")]
    assert sizes.filter(never != (pl.col("critical_exact").is_null() | huge)).is_empty()
    assert sizes.filter(never != (alone[0].is_null() | alone[1].is_null())).is_empty()
    assert sizes.filter(~never & (pl.col("critical") != pl.max_horizontal(alone))).is_empty()
    assert sizes.filter(
        pl.col("limit").is_null() != (pl.col("critical") == 1).fill_null(value=False)
    ).is_empty()
    assert frame.filter(
        pl.col("limit").is_null() & pl.col("limit_intensity").is_not_null()
    ).is_empty()
    assert chips.filter(pl.col("critical_rule").is_not_null()).is_empty()
    endless = pl.col("outcome") == "without-end"
    assert chips.filter(
        never & endless & pl.any_horizontal(a.is_not_null() for a in alone)
    ).is_empty()
    numbers = ("found", "always")
    assert frame.filter(never == pl.col("outcome").is_in(numbers)).is_empty()
    assert chips.filter(~never & (pl.col("critical") > pl.min_horizontal(alone))).is_empty()


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
