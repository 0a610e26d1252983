"""Random sweeps of whole models against an independent model in exact rational arithmetic."""

import math
from collections import Counter, defaultdict
from itertools import pairwise
from typing import Any

import polars as pl
import pytest
import random_serving
from comparison import wrong_columns
from hypothesis import given
from hypothesis import strategies as st
from oracle import step_table
from polars.testing import assert_frame_equal
from predicates import check_table
from random_sweeps import BITS, check
from serving_tables import expected_rows, kind_of, sweep_of

from rooflines.sweep.rows import KernelTable, StepTable

CONFIGS = random_serving.configs() | random_serving.calibrated(random_serving.configs())
"""With the calibrations of chips, and of software."""


@check(150)
@given(config=CONFIGS)
def test_every_row_of_a_random_sweep_is_the_exact_one(config):
    truth = [row for row in expected_rows(config) if row.values is not None]
    sweep = sweep_of(config)
    table = StepTable(sweep).frame().collect()
    assert table.height == len(truth)
    check_table(table, sweep.columns)
    for found, row in zip(table.iter_rows(named=True), truth, strict=True):
        exact = {**row.keys, **(row.values or {})}
        assert exact.keys() == found.keys()
        assert wrong_columns(found, exact) == [], row.keys


@check(100)
@given(config=CONFIGS)
def test_every_kernel_of_a_random_sweep_is_the_exact_one(config):
    (form,) = config["model-sweeps"].values()
    sweep = sweep_of(config)
    table = KernelTable(sweep).frame().collect()
    check_table(table, sweep.layer_columns)
    keys = table.columns[: table.columns.index("group") + 1]
    truth = {
        tuple(row[key] for key in keys): row
        for row in step_table.layer_rows(form, {}, config["chips"], BITS, config.get("fits"))
    }
    found = {tuple(row[key] for key in keys): row for row in table.iter_rows(named=True)}
    assert len(found) == table.height
    assert found.keys() == truth.keys()
    for key, row in found.items():
        assert (row.pop("calibration") is None) >= (row["t_estimate_s"] is None)
        assert row.keys() == truth[key].keys() - {"t_lower_s"}
        assert wrong_columns(row, truth[key]) == [], key


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
    for table in (StepTable(sweep), KernelTable(sweep)):
        whole = table.frame().collect()
        cuts = data.draw(st.sets(st.integers(0, whole.height), max_size=4))
        pieces = [*pairwise(sorted({0, *cuts, whole.height}))]
        for enums in (False, True):
            parts = [table.frame(*piece, enums=enums) for piece in pieces]
            assert_frame_equal(pl.concat(map(plain, parts)), plain(whole.lazy()), check_exact=True)


def plain(frame):
    """A table with its texts as String."""
    return frame.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String)).collect()


MODEL: dict[str, Any] = {"name": "one", "layers": 1, "D": 4, "V": 8}
KINDS = [
    {"attention": {"N": 2, "K": 2, "H": 2}, "moe": {"E": 4, "k": 2, "Fe": 2, "shared": 1}},
    {
        "attention": {"kind": "mla", "N": 2, "kv_rank": 2, "nope": 1, "rope": 1, "v": 3},
        "mlp": {"F": 5},
    },
]


@pytest.mark.parametrize("batch", [6, 10, 98])
@pytest.mark.parametrize("parts", KINDS, ids=["experts", "latent"])
def test_an_exact_tie_goes_to_compute(parts, batch):
    """Rates in proportion to the work of a step: rounded times differ in the last digit, if at all.

    One sequence of each replica fewer and it is memory-bound, one more and it is compute-bound.
    """
    sweep = {"models": [{**MODEL, **parts}], "chips": ["tiny"], "dtypes": ["fp8"]}
    sweep |= {"routing": "all", "splits": [{"tp": 2, "dp": 2}], "phase": ["decode"]}
    sweep |= {"grid": {"B": [batch - 2, batch, batch + 2], "S": [3]}}
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
