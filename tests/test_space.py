"""A table is an index space: slices are computed independently and add up to the whole."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import polars as pl
import pytest
from case_files import case
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from random_sweeps import check

import rooflines
from rooflines.model.columns import TEXTS
from rooflines.sweep import blocked
from rooflines.sweep.rows import OperationTable, block_groups
from rooflines.sweep.space import decode

CONFIG = case("configs/space")
SWEEP = rooflines.load_config(CONFIG).sweep("mixed")


@pytest.fixture(scope="module", name="whole")
def _whole():
    return OperationTable(SWEEP).frame().collect()


@check(50)
@given(cuts=st.lists(st.integers(0, SWEEP.rows), max_size=4))
def test_slices_add_up_to_the_whole(whole, cuts):
    edges = sorted({0, SWEEP.rows, *cuts})
    parts = [OperationTable(SWEEP).frame(start, stop).collect() for start, stop in pairwise(edges)]
    assert_frame_equal(pl.concat(parts), whole)


def test_rows_are_in_the_documented_order(whole):
    order = ["chip", "memory", "B", "dtypes", "sharding", "shards", "shape", "S"]
    lists = {
        "chip": ["tpu-v5e", "a100-sxm-80gb", "h100-sxm"],
        "memory": ["hbm", "l2"],
        "dtypes": ["bf16", "fp8"],
        "sharding": ["none", "column/gather-x"],
        "shape": ["up", "down"],
    }
    keys = whole.select(
        pl.col(name).cast(pl.String).replace_strict(lists[name], list(range(len(lists[name]))))
        if name in lists
        else name
        for name in order
    )
    assert keys.rows() == sorted(keys.rows())
    assert keys.is_unique().all()


def sweep_of(chips, **more):
    """A sweep of chips that differ in their rates and capacities, some with a hop latency."""
    entry: dict[str, Any] = {"vendor": "Nobody", "source": "this test", "efficiency": {"math": 0.7}}
    entry |= {"units": {"matrix": {"bf16": {"flops_per_s": 1e14}, "fp8": {"flops_per_s": 3e14}}}}
    link = {"bytes_per_s": 1e11, "topology": "switch", "domain": 8}
    own: dict[str, Any] = {
        f"c{index}": {
            **entry,
            "memory": {"hbm": {"bytes_per_s": 1e12 + index / 7e-10}},
            "networks": {"a": {**link, "hop_latency_s": 1e-6 * (index % 2)}},
        }
        for index in range(chips)
    }
    for index in range(0, chips, 3):
        own[f"c{index}"]["memory"]["hbm"]["capacity_bytes"] = 1e6 * (index + 1)
    sweep: dict[str, Any] = {"operation": "matmul", "dtypes": ["bf16"], "chips": [*own]}
    sweep["thresholds"] = []
    sweep["grid"] = {"B": [1, 77], "D": 1000, "F": [7, 10**9]}
    return rooflines.load_config({"sweeps": {"s": sweep | more}, "chips": own}).sweep("s")


@pytest.mark.parametrize("tile", [None, {"B": 16, "D": 64}])
def test_chips_computed_at_once_have_the_rows_of_each(tile):
    split = {"sharding": ["none", "contracting/all-reduce"], "shards": [1, 2, 3]}
    sweep = sweep_of(7, dtypes=["bf16", "fp8"], tile=tile, **split)
    assert [len(group) for group in block_groups(sweep.blocks)] == [7]
    each = [
        OperationTable(
            replace(sweep, config=sweep.config.model_copy(update={"chips": [chip]}))
        ).frame()
        for chip in sweep.config.chips
    ]
    whole = OperationTable(sweep).frame().collect()
    assert_frame_equal(whole, pl.concat(each).collect(), check_exact=True)
    cuts = [0, 5, 6, 31, 40, 41, len(whole)]
    pieces = [OperationTable(sweep).frame(*piece).collect() for piece in pairwise(cuts)]
    assert_frame_equal(whole, pl.concat(pieces), check_exact=True)


@pytest.mark.parametrize("start", [0, 2**32 - 10, 2**32 - 5, 2**40 - 10])
def test_an_index_beyond_32_bits_is_decoded(start):
    axes = [
        {name: pl.Series(range(count))} for name, count in (("a", 2**10), ("b", 1000), ("c", 2**21))
    ]
    rows = decode(axes, start, start + 10).collect()
    assert rows.select(i=(pl.col("a") * 1000 + pl.col("b")) * 2**21 + pl.col("c"))[
        "i"
    ].to_list() == list(range(start, start + 10))


def test_blocked_evaluation_does_not_depend_on_the_block(whole, monkeypatch):
    texts = [name for name in TEXTS if name in whole.columns]
    for rows in (1, 4, 10, 10**6):
        monkeypatch.setattr(blocked, "BLOCK_ROWS", rows)
        assert_frame_equal(
            OperationTable(SWEEP).frame(5, SWEEP.rows - 7).collect(), whole[5:-7], rel_tol=1e-14
        )
        other = OperationTable(SWEEP).frame(5, SWEEP.rows - 7, whole.columns, enums=True).collect()
        assert_frame_equal(
            other.with_columns(pl.col(texts).cast(pl.Categorical)), whole[5:-7], rel_tol=1e-14
        )
