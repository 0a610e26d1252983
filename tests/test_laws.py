"""Laws between tables: what a change of the config changes in rows and thresholds, and what not."""

# The laws share the random configs and comparisons: long, but one thing.

from __future__ import annotations

import copy
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import oracle
import polars as pl
import predicates
from comparison import KEYS, table_of
from hypothesis import assume, given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from random_sweeps import check, configs

import rooflines
from rooflines.model.resources import RATES

ULPS = 1e-15
"""A few roundings."""


def sweep_of(config):
    """Return the name and the config of the one sweep."""
    ((name, sweep),) = config["sweeps"].items()
    return name, sweep


def with_sweep(config, **changed):
    """Return the config with some keys of its one sweep replaced."""
    name, sweep = sweep_of(config)
    return {**config, "sweeps": {name: {**sweep, **changed}}}


def thresholds_of(config):
    """Return the thresholds of a config's one sweep."""
    return rooflines.thresholds(rooflines.load_config(config))


def plain(frame):
    """Return a frame whose names are text, so that frames with other categories compare."""
    return frame.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))


def assert_same_rows(one, other):
    """Check that two frames have the same rows to the last bit, in any order."""
    assert_frame_equal(plain(one), plain(other), check_row_order=False, check_exact=True)


def assert_same_thresholds(one, other):
    """Check that two frames have the same thresholds in any order, real ones to 1e-12."""
    assert_frame_equal(
        plain(one), plain(other), check_row_order=False, check_exact=False, rel_tol=1e-12, abs_tol=0
    )


def assert_close(one, other):
    """Check that two columns are equal up to a few roundings, with nulls in the same rows."""
    assert one.is_null().equals(other.is_null())
    assert ((one - other).abs() <= other.abs() * ULPS).all()


def cuttable(sweep, *kept):
    """Return the lists of alternatives of a sweep; two networks of one route are none."""
    return {
        key: value
        for key, value in sweep.items()
        if isinstance(value, list)
        and key not in kept
        and (key != "network" or any(isinstance(each, list) for each in value))
    }


def times(value, factor):
    """Return a number of a config times a factor, as its decimal digits."""
    return f"{Decimal(str(value).replace('_', '')) * Decimal(factor):e}"


def rates_times(config, factor):
    """Return a config with all rates of chips times a factor, and all times divided by it."""
    scaled = copy.deepcopy(config)
    inverse = format(1 / Decimal(factor), "f")

    def scale(entry):
        for key, value in entry.items():
            last = key.split(".")[-1]
            if isinstance(value, dict):
                scale(value)
            elif last in ("flops_per_s", "bytes_per_s"):
                entry[key] = times(value, factor)
            elif last in ("hop_latency_s", "typical_hop_latency_s", "overhead_s") and value:
                entry[key] = times(value, inverse)

    scale(scaled["chips"])
    return scaled


@check(25)
@given(config=configs(), data=st.data())
def test_a_doubled_bandwidth_halves_its_time_and_nothing_else(config, data):
    own = {name: chip for name, chip in config["chips"].items() if "base" not in chip}
    chip = data.draw(st.sampled_from(sorted(own)))
    places = [("memory", level) for level in own[chip]["memory"]]
    places += [
        ("networks", name)
        for name, link in own[chip]["networks"].items()
        if "hop_latency_s" not in link
    ]
    part, name = data.draw(st.sampled_from(places))
    doubled = copy.deepcopy(config)
    entry = doubled["chips"][chip][part][name]
    entry["bytes_per_s"] = times(entry["bytes_per_s"], "2")
    overrides = {
        f"{part}.{name}.bytes_per_s": variant
        for variant, other in config["chips"].items()
        if other.get("base") == chip
    }
    variants = [
        variant for path, variant in overrides.items() if path not in config["chips"][variant]
    ]
    before, after = table_of(config), table_of(doubled)
    resource = part.removesuffix("s")
    touched = pl.col("chip").cast(pl.String).is_in([chip, *variants]) & (
        pl.col(resource).cast(pl.String) == name
    )
    touched = touched & pl.col(f"{resource}_bytes").gt(0)
    where = before.select(touched.fill_null(value=False))[:, 0]
    on_two = (
        before["network"].cast(pl.String).str.contains("+", literal=True).fill_null(value=False)
    )
    others = ~where & ~on_two if part == "networks" else ~where
    assert_frame_equal(before.filter(others), after.filter(others), check_exact=True)
    was, now = before.filter(where), after.filter(where)
    assert_close(now[f"t_{resource}_s"] * 2, was[f"t_{resource}_s"])
    follows = {
        f"t_{resource}_s",
        "t_lower_s",
        "t_upper_s",
        "t_estimate_s",
        "estimate_bound",
        "attained_flops_per_s",
        "utilization",
        "bound",
    }
    assert_frame_equal(was.drop(follows), now.drop(follows), check_exact=True)
    assert (now["t_lower_s"] <= was["t_lower_s"]).all()
    assert_close(
        now["t_lower_s"],
        now.select(pl.max_horizontal("t_math_s", "t_memory_s", "t_network_s"))[:, 0],
    )


@check(25)
@given(
    config=configs(),
    shares=st.fixed_dictionaries(
        {r: st.sampled_from([0.31, 0.5, 0.83, 1]) for r in oracle.RESOURCES}
    ),
)
def test_a_calibration_gives_an_estimate_and_nothing_else(config, shares):
    """Times, bounds and thresholds do not change; the estimate ignores efficiency.

    It is at least the nominal lower bound plus the overhead.
    """
    nominal, calibrated = copy.deepcopy(config), copy.deepcopy(config)
    for name, chip in config["chips"].items():
        if "base" not in chip:
            nominal["chips"][name].pop("calibration", None)
            peaks = {compute for unit in chip["units"].values() for compute in unit}
            calibrated["chips"][name]["calibration"] = {
                compute: {**shares, "overhead_s": 2e-6} for compute in peaks
            }
    before, after = table_of(nominal), table_of(calibrated)
    estimates = ["t_estimate_s", "t_estimate_p10_s", "t_estimate_p90_s", "estimate_bound"]
    assert_frame_equal(before.drop(estimates), after.drop(estimates), check_exact=True)
    was, now = (thresholds_of(each).drop("saturates_estimate") for each in (nominal, calibrated))
    assert_frame_equal(was, now, check_exact=True)
    assert before.select(pl.col(estimates).is_null().all()).row(0) == (True,) * len(estimates)
    wasteful = table_of(with_sweep(calibrated, efficiency=dict.fromkeys(oracle.RESOURCES, 0.5)))
    assert wasteful["t_estimate_s"].equals(after["t_estimate_s"])
    bound = table_of(with_sweep(nominal, efficiency=dict.fromkeys(oracle.RESOURCES, 1)))[
        "t_lower_s"
    ]
    assert (after["t_estimate_s"] >= (bound + 2e-6) * (1 - ULPS)).all()


@check(25)
@given(config=configs(), data=st.data())
def test_the_order_of_lists_decides_the_order_of_rows_and_nothing_else(config, data):
    _, sweep = sweep_of(config)
    shuffled = {key: data.draw(st.permutations(value)) for key, value in cuttable(sweep).items()}
    grid = {
        dim: data.draw(st.permutations(sizes)) if isinstance(sizes, list) else sizes
        for dim, sizes in data.draw(st.permutations(list((sweep.get("grid") or {}).items())))
    }
    other = with_sweep(config, **shuffled, grid=grid)
    assert_same_rows(table_of(config), table_of(other))
    assert_same_thresholds(thresholds_of(config), thresholds_of(other))


@check(25)
@given(config=configs(), data=st.data())
def test_the_order_of_the_grid_does_not_matter(config, data):
    _, sweep = sweep_of(config)
    grid = dict(data.draw(st.permutations(list((sweep.get("grid") or {}).items()))))
    turned = dict(
        data.draw(st.permutations(list(with_sweep(config, grid=grid)["sweeps"]["random"].items())))
    )
    assert table_of({**config, "sweeps": {"random": turned}}).equals(table_of(config))


@check(25)
@given(config=configs(), data=st.data())
def test_a_sweep_cut_in_two_has_the_same_rows(config, data):
    _, sweep = sweep_of(config)
    lists: dict[tuple[str, ...], list[Any]] = {
        (key,): value for key, value in cuttable(sweep, "thresholds", "shards", "sharding").items()
    }
    lists |= {
        ("grid", dim): sizes
        for dim, sizes in (sweep.get("grid") or {}).items()
        if isinstance(sizes, list)
    }
    path = data.draw(st.sampled_from(sorted(lists)))
    assume(len(lists[path]) > 1)
    cut = data.draw(st.integers(1, len(lists[path]) - 1))
    rows, solutions = [], []
    for values in (lists[path][:cut], lists[path][cut:]):
        part = with_sweep(
            config,
            **(
                {path[0]: values}
                if len(path) == 1
                else {"grid": {**sweep["grid"], path[1]: values}}
            ),
        )
        try:
            rows.append(table_of(part))
            solutions.append(thresholds_of(part))
        except rooflines.RooflinesError as error:
            assert "is left with no rows" in str(error)  # noqa: PT017, one of them may have none
    columns = set.intersection(*(set(part.columns) for part in rows))  # bytes of levels: not in all
    whole = table_of(config)
    whole = whole.select(name for name in whole.columns if name in columns)
    both = pl.concat(plain(part.select(whole.columns)) for part in rows)
    if path in {("shares",), ("network",)}:  # rows that do not depend on them are in both
        both = both.unique()
    assert_same_rows(both, whole)
    found = pl.concat(map(plain, solutions))
    keys = found.columns[: found.columns.index("critical_exact")]
    assert_same_thresholds(
        found.unique(keys), thresholds_of(config)
    )  # if an axis with thresholds is cut, both have the same ones


@check(25)
@given(config=configs(), factor=st.sampled_from(["1000", "0.001", "1000000"]))
def test_units_scale(config, factor):
    before, after = table_of(config), table_of(rates_times(config, factor))
    for name in before.columns:
        if name.startswith("t_"):
            assert_close(after[name] * float(factor), before[name])
        elif name == "attained_flops_per_s":
            assert_close(after[name] / float(factor), before[name])
        elif name == "utilization":
            assert_close(after[name], before[name])
        else:
            assert after[name].equals(before[name]), name
    was, now = thresholds_of(config), thresholds_of(rates_times(config, factor))
    for name in was.columns:
        if was[name].dtype == pl.Float64:
            assert now[name].is_null().equals(was[name].is_null()), name
            assert ((now[name] - was[name]).abs() <= was[name].abs() * 1e-9).all(), name
        else:
            assert now[name].equals(was[name]), name


@check(25)
@given(config=configs())
def test_more_chips_never_take_longer_to_multiply(config):
    table = plain(table_of(config))
    _, sweep = sweep_of(config)
    fixed = [
        name
        for name in (*KEYS, *oracle.operation_of(sweep["operation"]).dims)
        if name not in ("shards", "network")
    ]
    ordered = table.sort(*fixed, "shards")
    same = pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift(1)) for name in fixed)
    for name in ("t_math_s", "flops", "footprint_bytes", "memory_bytes"):
        grows = ordered.filter(same & (pl.col(name) > pl.col(name).shift(1) * (1 + ULPS)))
        assert grows.is_empty(), (name, grows.head(1).to_dicts())


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


def test_a_wrong_number_is_noticed():
    config = rooflines.load_config(LAWFUL)
    table, thresholds = rooflines.rows(config, "one").collect(), rooflines.thresholds(config)
    predicates.check_table(table, config.sweep("one"))
    predicates.check_thresholds(thresholds, config.sweep("one"))
    wrong: list[Mapping[str, Any]] = [
        *(
            {"t_lower_s": float("nan")},
            {"flops": float("inf")},
            {"network_bytes": -0.0},
            {"flops": None},
            {"network": None},
        ),
        *(
            {"shape": "a"},
            {"t_estimate_s": 1.0},
            {"fits": None},
            {"memory_intensity": None},
            {"network_intensity": 1.0},
        ),
    ]
    for changed in wrong:
        with_error = table.with_columns(
            pl.lit(value).alias(name) for name, value in changed.items()
        )
        assert refused(with_error, config, rows=True), changed
    for changed in (
        {"critical": None},
        {"shards": None},
        {"B": 1},
        {"limit": None},
        {"critical_memory": None},
        {"critical_exact": None},
    ):
        with_error = thresholds.with_columns(
            pl.lit(value, dtype=thresholds[name].dtype).alias(name)
            for name, value in changed.items()
        )
        assert refused(with_error, config, rows=False), changed


def refused(frame, config, *, rows):
    """Say whether the predicates refuse a frame."""
    try:
        (predicates.check_table if rows else predicates.check_thresholds)(
            frame, config.sweep("one")
        )
    except AssertionError:
        return True
    return False


LAWFUL = {
    "sweeps": {
        "one": {
            "operation": "matmul",
            "grid": {"B": [1, 8], "D": 8192, "F": 8192},
            "dtypes": ["bf16"],
            "chips": ["h100-sxm"],
        },
    },
    "charts": [],
}
