"""Random sweeps of whole models against an independent model in exact rational arithmetic."""

import math
from itertools import pairwise
from typing import Any

import polars as pl
import pytest
import random_serving
from cases import LINKS, made_up
from comparison import wrong_rows, wrong_skips
from failing import check_each
from hypothesis import given
from hypothesis import strategies as st
from lots import of
from oracle import step_table
from polars.testing import assert_frame_equal
from predicates import check_table
from random_serving import EVERY_KIND, kinds_of
from random_sweeps import BITS, check
from serving_tables import KINDS, NAMED, expected_rows, model_sweep, sweep_of
from strata import chosen

from rooflines.evaluation.row_frames import KernelTable, StepTable

CONFIGS = random_serving.configs() | random_serving.calibrated(random_serving.configs())
"""With the calibrations of chips, and of software."""


def check_rows(config):
    """Check rows, kernels, and what is skipped."""
    (form,) = config["model-sweeps"].values()
    rows, sweep = expected_rows(config), sweep_of(config)
    truth = [{**row.keys, **row.values} for row in rows if row.values is not None]
    table = StepTable(sweep).frame().collect()
    keys = table.columns[: table.columns.index("S") + 1]
    assert wrong_rows(table, truth, keys) == []
    assert table.select(keys).rows() == [tuple(row[key] for key in keys) for row in truth]
    check_table(table, sweep.columns)
    skipped = [(row.keys, row.reasons) for row in rows if row.values is None]
    assert wrong_skips(sweep.skipped, skipped, KINDS, NAMED) == []
    parts = config["chips"], BITS, config.get("fits")
    layers = [*step_table.layer_rows(form, {}, *parts)]
    kernels = KernelTable(sweep).frame().collect()
    assert wrong_rows(kernels, layers, [*keys, "group"], beside=("calibration", "t_lower_s")) == []
    check_table(kernels, sweep.layer_columns)
    unfitted = kernels["calibration"].is_null()
    assert (kernels["t_estimate_s"].is_not_null() | unfitted).all()


def test_every_row_and_kernel_of_every_kind_of_step_is_the_exact_one():
    check_each(chosen(CONFIGS, kinds_of, EVERY_KIND), check_rows)


def test_short_convolutions_without_a_state_are_exact():
    state = {"kind": "short-conv", "layers": 5, "heads": 64, "key": 1, "value": 1, "groups": 1}
    model = {"name": "made-up", "layers": 8, "D": 64, "V": 100, "mlp": {"F": 96}}
    model |= {"attention": {"N": 4, "K": 2, "H": 16}, "state": {**state, "conv": 3, "bits": 16}}
    form = {"models": [model], "phase": ["decode", "prefill"], "grid": {"B": [1, 6], "S": [1, 40]}}
    form |= {"dtypes": ["bf16"], "splits": [{"tp": 1}, {"tp": 2}, {"dp": 2}]}
    chip = made_up(1e12, 1e11, {**LINKS["switch"], "bytes_per_s": 1e10})
    config = {"model-sweeps": {"convolutions": {**form, "chips": ["own"]}}, "chips": {"own": chip}}
    table = StepTable(sweep_of(config)).frame().collect()
    rows = expected_rows(config)
    truth = [{**row.keys, **row.values} for row in rows if row.values is not None]
    keys = table.columns[: table.columns.index("S") + 1]
    assert wrong_rows(table, truth, keys) == []
    layers = [*step_table.layer_rows(form | {"chips": ["own"]}, {}, config["chips"], BITS, None)]
    kernels = KernelTable(sweep_of(config)).frame().collect()
    assert wrong_rows(kernels, layers, [*keys, "group"], beside=("calibration", "t_lower_s")) == []
    assert {"state-in", "state", "state-out"} <= set(kernels["group"])


@check(50)
@given(config=of(CONFIGS), data=st.data())
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
PARTS: list[dict[str, Any]] = [
    {"attention": {"N": 2, "K": 2, "H": 2}, "moe": {"E": 4, "k": 2, "Fe": 2, "shared": 1}},
    {
        "attention": {"kind": "mla", "N": 2, "kv_rank": 2, "nope": 1, "rope": 1, "v": 3},
        "mlp": {"F": 5},
    },
]


ALL_FP8 = dict.fromkeys(("weights", "cache", "activations", "compute"), "fp8") | {"name": "all fp8"}


@pytest.mark.parametrize("batch", [6, 10, 98])
@pytest.mark.parametrize("parts", PARTS, ids=["experts", "latent"])
def test_an_exact_tie_goes_to_compute(parts, batch):
    """Rates in proportion to the work of a step: rounded times differ in the last digit, if at all.

    One sequence of each replica fewer and it is memory-bound, one more and it is compute-bound.
    """
    sweep = {"models": [{**MODEL, **parts}], "chips": ["tiny"], "dtypes": [ALL_FP8]}
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


@pytest.mark.parametrize(("batch", "bound"), [(20, "network"), (44, "memory")])
def test_times_of_experts_that_differ_by_untouched_ones_alone_may_tie(batch, bound):
    """Reading all four experts takes as long as the network; 2^-batch of them is not touched."""
    sweep: dict[str, Any] = {"models": [{**MODEL, **PARTS[0]}], "chips": ["tiny"]}
    sweep |= {"dtypes": [ALL_FP8], "splits": [{"tp": 2}], "phase": ["decode"]}
    sweep |= {"grid": {"B": [batch], "S": [3]}}
    link = {"bytes_per_s": 1, "topology": "switch", "links": 1, "domain": 4}
    chip: dict[str, Any] = {"networks": {"a": link}, "memory": {"hbm": {"bytes_per_s": 1}}}
    chip["units"] = {"matrix": {"fp8": {"flops_per_s": 1e30}}}

    def experts(routing):
        asked = {**sweep, "routing": routing}
        rows = step_table.layer_rows(asked, {}, {"tiny": chip}, BITS)
        return next(row for row in rows if row["group"] == "experts")

    all_read = experts("all")
    moved = all_read["memory_bytes"] + all_read["activation_bytes"]
    chip["memory"]["hbm"]["bytes_per_s"] = float(10**9 * moved)
    link["bytes_per_s"] = float(10**9 * all_read["network_bytes"])
    exact = experts("uniform")
    assert exact["t_memory_s"] + exact["t_activation_s"] < exact["t_network_s"]
    asked = {"model-sweeps": {"tie": {**sweep, "routing": "uniform"}}, "chips": {"tiny": chip}}
    table = KernelTable(sweep_of(asked)).frame().collect()
    assert table.filter(group="experts")["bound"].to_list() == [exact["bound"]] == [bound]


@pytest.mark.parametrize(("tp", "allowed"), [(2, True), (3, False), (4, True), (6, True)])
def test_chips_share_key_value_heads_or_have_as_many_copies_of_each(tp, allowed):
    model = {**MODEL, "attention": {"N": 12, "K": 2, "H": 2}, "mlp": {"F": 12}}
    sweep = {"models": [model], "chips": ["h100-sxm"], "dtypes": ["bf16"], "phase": ["decode"]}
    sweep |= {"splits": [{"tp": 1}, {"tp": tp}], "grid": {"B": [1], "S": [3]}}
    found = model_sweep(sweep)
    assert [case.sharing.split.shards for case in found.cases] == [1, *([tp] * allowed)]
    assert sum(each.rows for each in found.skipped) == (not allowed)
