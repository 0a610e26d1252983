"""Random sweeps of whole models against an independent model in exact rational arithmetic."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from itertools import pairwise
from typing import Any

import polars as pl
import pytest
import random_serving
import serving_oracle
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from random_sweeps import BITS, check
from serving_kernels import Step
from serving_tables import differences, expected_rows, kind_of, sweep_of
from serving_values import times
from test_serving_worked import LATENT, TINY

from rooflines.model.resources import RESOURCES
from rooflines.sweep.rows import KernelTable, StepTable
from rooflines.sweep.sheet import key_columns

ULPS = 1e-12
CONFIGS = random_serving.configs() | random_serving.calibrated(random_serving.configs())
"""With the calibrations of chips, and of software."""

NAMING = ("model", "phase", "chip", "memory", "network", "dtypes", "split")
"""Keys that name a case."""

SUMMED = (
    *("flops", "weight_bytes", "cache_bytes", "activation_bytes", "memory_bytes", "network_bytes"),
    *("t_math_s", "t_memory_s", "t_activation_s", "t_ops_s", "t_estimate_s"),
)
"""Columns that a row has as the sum over its kernels."""


@check(150)
@given(config=CONFIGS)
def test_every_row_of_a_random_sweep_is_the_exact_one(config):
    truth = [row for row in expected_rows(config) if row.values is not None]
    table = StepTable(sweep_of(config)).frame().collect()
    assert table.height == len(truth)
    for found, row in zip(table.iter_rows(named=True), truth, strict=True):
        exact = {**row.keys, **(row.values or {})}
        assert exact.keys() == found.keys()
        assert differences(found, exact) == [], row.keys


@check(100)
@given(config=CONFIGS)
def test_every_kernel_of_a_random_sweep_is_the_exact_one(config):
    (sweep,) = config["model-sweeps"].values()
    table = KernelTable(sweep_of(config)).frame().collect()
    keys = [*keys_of(table), "group"]
    truth = {
        tuple(row[key] for key in keys): row
        for row in serving_oracle.layer_rows(sweep, {}, config["chips"], BITS, config.get("fits"))
    }
    found = {tuple(row[key] for key in keys): row for row in table.iter_rows(named=True)}
    assert len(found) == table.height
    assert found.keys() == truth.keys()
    for key, row in found.items():
        assert row.keys() == truth[key].keys() - {"t_lower_s"}
        assert differences(row, truth[key]) == [], key


def keys_of(kernels):
    """The columns before `group`: what names a row of the sweep."""
    return kernels.columns[: kernels.columns.index("group")]


@check(150)
@given(config=random_serving.configs())
def test_rows_without_a_place_are_skipped_with_a_reason(config):
    truth = [row for row in expected_rows(config) if row.values is None]
    skipped = sweep_of(config).skipped
    assert sum(each.rows for each in skipped) == len(truth)
    holding: defaultdict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
    for row in truth:
        for reason in row.reasons:
            holding[reason][row.keys["model"], row.keys["split"], row.keys["chip"]] += 1
    for each in skipped:
        wanted = (each.model, each.split, each.chip)
        held = sum(
            count
            for keys, count in holding[kind_of(each.reason)].items()
            if all(want in (None, key) for want, key in zip(wanted, keys, strict=True))
        )
        assert 0 < each.rows <= held, each


@check(50)
@given(config=CONFIGS, data=st.data())
def test_slices_in_order_are_the_whole(config, data):
    sweep = sweep_of(config)
    cuts = data.draw(st.lists(st.integers(0, sweep.rows), max_size=4))
    edges = [0, *sorted(cuts), sweep.rows]
    pieces = [(low, high) for low, high in pairwise(edges) if low < high]
    whole, kernels = StepTable(sweep).frame().collect(), KernelTable(sweep).frame().collect()
    names = whole.columns
    assert_same(pl.concat(StepTable(sweep).frame(*piece).collect() for piece in pieces), whole)
    assert_same(
        pl.concat(
            plain(StepTable(sweep).frame(*piece, columns=names, enums=True)) for piece in pieces
        ),
        whole,
    )
    order = [*keys_of(kernels), "group"]
    for enums in (False, True):
        frames = (KernelTable(sweep).frame(*piece, enums=enums) for piece in pieces)
        parts = pl.concat(map(plain, frames))
        assert_same(parts.sort(order), plain(kernels.lazy()).sort(order))


def plain(frame):
    """A table with its texts as String."""
    return frame.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String)).collect()


def assert_same(found, expected):
    """Demand equal rows, to the last bit."""
    assert_frame_equal(plain(found.lazy()), plain(expected.lazy()), check_exact=True)


@check(100)
@given(config=CONFIGS)
def test_laws_of_random_rows(config):
    sweep = sweep_of(config)
    table, kernels = StepTable(sweep).frame().collect(), KernelTable(sweep).frame().collect()
    assert (table["t_lower_s"] <= table["t_ops_s"] * (1 + ULPS)).all()
    assert (table["t_ops_s"] <= table["t_upper_s"] * (1 + ULPS)).all()
    assert (kernels["t_ops_s"] <= kernels["t_upper_s"] * (1 + ULPS)).all()
    for name in ("mfu", "mbu", "mfu_ops", "mbu_ops"):
        assert table[name].is_between(0, 1 + ULPS).all()
    check_values(table, sweep.columns)
    check_values(kernels, sweep.layer_columns)


def check_values(table, columns):
    """Demand the documented columns in order, finite numbers, and documented nulls only."""
    columns = list(columns)
    assert table.columns == [column.name for column in columns]
    for column in columns:
        values = table[column.name]
        assert values.null_count() == 0 or column.null, column.name
        if values.dtype.is_float():
            assert values.drop_nulls().is_finite().all(), column.name


@check(100)
@given(config=CONFIGS)
def test_a_row_is_the_sum_of_its_kernels(config):
    sweep = sweep_of(config)
    table, kernels = plain(StepTable(sweep).frame()), plain(KernelTable(sweep).frame())
    keys = keys_of(kernels)
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in kernels.iter_rows(named=True):
        found[tuple(row[key] for key in keys)].append(row)
    for row in table.iter_rows(named=True):
        parts = found.pop(tuple(row[key] for key in keys))
        for name in SUMMED:
            values = [part["count"] * part[name] for part in parts if part[name] is not None]
            if len(values) < len(parts):
                assert row[name] is None, name
            else:
                assert math.isclose(math.fsum(values), row[name], rel_tol=ULPS), name
        sent = math.fsum(part["count"] * part["t_network_s"] for part in parts)
        assert row["t_network_s"] <= sent * (1 + ULPS)  # collectives of a step overlap
    assert not found


@check(60)
@given(config=random_serving.configs())
def test_exact_times_are_those_of_the_oracle(config):
    (form,) = config["model-sweeps"].values()
    truth = {
        tuple(keys[name] for name in NAMING): case
        for keys, case, _ in serving_oracle.cases(form, {}, config["chips"], BITS)
    }
    sweep = sweep_of(config)
    for block in sweep.blocks:
        for case in block.cases:
            row = key_columns([case])
            exact = truth[tuple(row[name].item() for name in NAMING)]
            assert exact is not None
            step = case.step(
                block.after[0].columns["B"][-1], sweep.contexts[0], (sweep.new_tokens or [1])[-1]
            )
            expected = times(exact, Step(step.B, step.T, step.S))
            found = case.seconds(step)
            by_name = {resource.name: found[resource.bound] for resource in RESOURCES}
            for name, seconds in {**by_name, "activation": found.activation}.items():
                wanted = expected[f"t_{name}_s"]
                assert abs(seconds - wanted) <= wanted / 10**40, name


@pytest.mark.parametrize("batch", [6, 10, 98])
@pytest.mark.parametrize("model", [TINY, LATENT], ids=["experts", "latent"])
def test_an_exact_tie_goes_to_compute(model, batch):
    """Rates in proportion to the work of a step: rounded times differ in the last digit, if at all.

    One sequence of each replica fewer and it is memory-bound, one more and it is compute-bound.
    """
    sweep = {**model, "dtypes": ["fp8"], "routing": "all", "splits": [{"tp": 2, "dp": 2}]}
    sweep |= {"phase": ["decode"], "grid": {"B": [batch - 2, batch, batch + 2], "S": [3]}}
    link = {"bytes_per_s": 1e15, "topology": "switch", "links": 1, "domain": 4}
    chip: dict[str, Any] = {"networks": {"a": link}}
    chip["units"] = {"matrix": {"fp8": {"flops_per_s": 1}}}
    chip["memory"] = {"hbm": {"bytes_per_s": 1}}
    config = {"model-sweeps": {"tie": sweep}, "chips": {"tiny": chip}}
    values = expected_rows(config)[1].values
    assert values is not None
    work = {name: values[name] for name in ("flops", "memory_bytes")}
    scale = math.lcm(*(amount.denominator for amount in work.values())) * 10**9
    chip["units"]["matrix"]["fp8"]["flops_per_s"] = float(scale * work["flops"])
    chip["memory"]["hbm"]["bytes_per_s"] = float(scale * work["memory_bytes"])
    table = StepTable(sweep_of(config)).frame().collect()
    assert table["bound"].to_list() == ["memory", "compute", "compute"]
