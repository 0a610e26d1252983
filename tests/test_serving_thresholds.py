"""Thresholds of whole models: worked values, values by hand, and trying every batch and context."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
import random_serving
import serving_limits as limits
import serving_oracle
from hypothesis import given
from hypothesis import strategies as st
from random_sweeps import BITS, check
from serving_kernels import Step
from serving_sweeps import model_sweep
from serving_values import bound_of, times
from test_serving_worked import MXFP4, ON_H100, ON_V5E, OWN

from rooflines.basics.numbers import exact
from rooflines.critical.thresholds import all_thresholds, sweep_thresholds
from rooflines.model.step_columns import step_threshold_columns

Row = dict[str, Any]


def rows_of(sweep, **more):
    """The thresholds of a sweep on chips of the worked values."""
    return sweep_thresholds(model_sweep({**sweep, **more}, OWN)).to_dicts()


def column(rows, name):
    """The values of a column."""
    return [row[name] for row in rows]


# ---------------------------------------------------------------- worked values


def test_critical_batches_of_llama():
    grid = {"B": 1, "S": [128, 1024, 1400, 1476, 1477, 8192]}
    rows = rows_of(ON_H100, grid=grid, thresholds=["B", "S"])
    assert column(rows, "axis") == ["B"] * 6 + ["S"]
    assert column(rows, "critical") == [324, 963, 5669, 477_356, None, None, 1476]
    assert column(rows, "outcome") == ["found"] * 4 + ["never"] * 2 + ["found"]
    assert column(rows, "limit") == ["memory"] * 7
    assert column(rows, "S")[:6] == grid["S"]
    assert column(rows, "B") == [None] * 7
    assert f"{rows[-1]['critical_exact']:.1f}" == "1476.9"
    assert rows[-1]["S"] is None


def test_the_rule_of_thumb_is_a_context_of_no_tokens():
    (row,) = rows_of(ON_H100, grid={"B": 1, "S": 1})
    assert 295.2 < row["critical_exact"] < 295.5
    assert row["critical"] == 296


def test_batches_of_llama_within_a_time_and_a_memory():
    """97 within 15 ms at 8,192 tokens, 185 fit; 1 ms is too short for the weights."""
    targets = {"t_step_s": [0.015, 0.001]}
    rows = rows_of(ON_H100, targets=targets, thresholds=[])
    assert column(rows, "max_B_latency") == [97, 0]
    assert column(rows, "max_B_fit") == [185, 185]
    assert column(rows, "target_s") == [0.015, 0.001]
    assert column(rows, "time") == ["t_lower_s"] * 2
    assert column(rows, "outcome") == ["never"] * 2


def test_caches_of_sixteen_v5e():
    by_batch = rows_of(ON_V5E, splits=[{"tp": 16}], cache_split="batch")
    by_heads = rows_of(ON_V5E, splits=[{"tp": 16}])
    assert column(by_batch + by_heads, "max_B_fit") == [138, 69]


@pytest.mark.parametrize("routing", ["uniform", "all"])
def test_critical_batches_of_gpt_oss(routing):
    grid = {"B": 1, "S": [128, 1024, 8192]}
    splits = [{"tp": 1}, {"tp": 8}]
    sweep = {"models": ["gpt-oss-120b"], "chips": ["h200"], "dtypes": [MXFP4], "routing": routing}
    rows = rows_of({**sweep, "splits": splits, "grid": grid})
    assert column(rows, "critical") == [1572, 7122, None, None, None, None]
    assert column(rows, "limit")[3:5] == ["network"] * 2
    (ceiling,) = rows_of({**sweep, "splits": [{"tp": 1}], "grid": grid}, thresholds=["S"])
    assert ceiling["critical"] == 1277


def test_latent_attention_has_compute_bound_batches_at_any_context():
    """DeepSeek-V3 in fp8 on one H200: 278 FLOP for a byte of cache are more than its ridge."""
    sweep = {"models": ["deepseek-v3"], "chips": ["h200"], "dtypes": ["fp8"]}
    (row,) = rows_of(sweep, grid={"B": 1, "S": 1}, thresholds=["S"])
    assert (row["outcome"], row["critical"], row["limit"]) == ("without-end", None, None)


def test_fewest_chips_of_llama():
    """Two H100 hold 141 GB, four also 64 caches of 8,192 tokens; eight are too few for 186."""
    rows = rows_of(ON_H100, grid={"B": [1, 64, 186], "S": [128, 8192]}, thresholds=["chips"])
    assert column(rows, "critical") == [2, 2, 2, 4, 2, None]
    assert (rows[-1]["outcome"], rows[-1]["limit"]) == ("never", "network")
    assert [rows[3]["max_B_fit"], rows[-1]["max_B_fit"]] == [66, None]
    assert {row[name] for row in rows for name in ("split", "chips", "tp", "dp", "ep")} == {None}


# ---------------------------------------------------------------- by hand


DENSE: dict[str, Any] = {
    "name": "dense",
    "layers": 1,
    "D": 4,
    "V": 8,
    "attention": {"N": 2, "K": 2, "H": 2},
    "mlp": {"F": 2},
}
ON_TINY = {"models": [DENSE], "chips": ["tiny"], "dtypes": ["fp8"], "grid": {"B": 1, "S": 1}}
"""120 weights: 48 of qkv, 16 of o, 24 of the MLP, 32 of the unembedding."""


def test_a_critical_batch_worked_out_by_hand():
    """At S = 1 a sequence takes 2.56 s of math and 0.8 s of cache, the weights 12 s: 6.8."""
    (row,) = rows_of(ON_TINY)
    assert row["critical"] == 7
    assert row["critical_exact"] == pytest.approx(12 / (2.56 - 0.8), rel=1e-15)


def test_math_that_grows_as_fast_as_memory_never_overtakes_it():
    """A chip on which both grow by 1 s with a sequence of 700 tokens: 699 is the last context."""
    sweep = {**ON_H100, "splits": [{"tp": 1}], "chips": ["own"]}
    grown = {"flops": 140_838_436_864, "memory": 229_376_000}
    own = {
        "units": {"matrix": {"bf16": {"flops_per_s": grown["flops"]}}},
        "memory": {"hbm": {"bytes_per_s": grown["memory"], "capacity_bytes": 10**12}},
    }
    grid = {"B": 1, "S": [699, 700]}
    of = model_sweep({**sweep, "grid": grid, "thresholds": ["B", "S"]}, {"own": own})
    rows = sweep_thresholds(of).to_dicts()
    assert column(rows, "outcome") == ["found", "never", "found"]
    assert rows[-1]["critical"] == 699


def test_latencies_and_slopes_of_collectives_worked_out_by_hand():
    """Two chips: o and down each sum 4 B bytes, 0.8 B seconds but 4 at least.

    Math takes 1.28 B, so that it never overtakes 1.6 B; at a tenth of the peak 12.8 B is 8 from
    0.6 on. Memory takes 6 s for half of the weights and 0.4 B for half of the caches.
    """
    slow = {**ON_TINY, "chips": ["slow-tiny"], "splits": [{"tp": 2}]}
    (never,) = rows_of(slow)
    assert (never["outcome"], never["limit"]) == ("never", "network")
    (row,) = rows_of(slow, efficiency={"math": 0.1})
    assert (row["outcome"], row["critical"], row["limit"]) == ("always", 1, None)
    assert row["critical_exact"] == pytest.approx(8 / 12.8, rel=1e-15)
    targets = {"t_step_s": [8.0, 12.7, 12.8, 38.4], "time": "t_lower_s"}
    rows = rows_of(slow, efficiency={"math": 0.1}, targets=targets)
    assert column(rows, "max_B_latency") == [0, 0, 1, 3]


def test_batches_are_at_least_a_sequence_for_every_replica():
    fast = {"splits": [{"dp": 3}], "efficiency": {"math": 0.01}}
    (row,) = rows_of(ON_TINY, **fast, grid={"B": 3, "S": 1})
    assert (row["outcome"], row["critical"]) == ("always", 3)
    assert row["critical_exact"] == pytest.approx(12 / ((256 - 0.8) / 3), rel=1e-15)
    targets = {"t_step_s": [255, 256, 600]}
    rows = rows_of(ON_TINY, **fast, grid={"B": 3, "S": 1}, targets=targets)
    assert column(rows, "max_B_latency") == [0, 3, 7]


def test_reasons_why_no_number_of_chips_is_enough():
    chips = {
        **dict.fromkeys(("tiny",), OWN["tiny"]),
        "roomy": {"base": "tiny", "networks.a.domain": "unlimited"},
        "secret": {**OWN["tiny"], "networks": {"a": {"bytes_per_s": 5, "topology": "switch"}}},
        "unknown": {**OWN["tiny"], "memory": {"hbm": {"bytes_per_s": 10}}},
    }
    sweep = {**ON_TINY, "chips": list(chips), "thresholds": ["chips"], "grid": {"B": 999, "S": 1}}
    many_heads = {**DENSE, "attention": {"N": 8, "K": 8, "H": 2}}
    frame = sweep_thresholds(model_sweep({**sweep, "models": [many_heads]}, chips))
    found = frame.select("outcome", "limit").rows()
    assert found == [
        ("never", "network"),
        ("never", "heads"),
        ("domain-unknown", "network"),
        ("capacity-unknown", None),
    ]


def test_frames_of_sweeps_have_their_columns_in_order():
    plain = model_sweep(ON_TINY, OWN)
    drafts = model_sweep({**ON_TINY, "grid": {"B": 1, "T": [1, 2], "S": 2}}, OWN)
    nothing = model_sweep({**ON_TINY, "thresholds": []}, OWN)
    assert sweep_thresholds(plain).columns == [c.name for c in step_threshold_columns()]
    frame = all_thresholds([plain, nothing, drafts], models=True)
    assert frame.columns == [column.name for column in step_threshold_columns(new_tokens=True)]
    assert frame["T"].to_list() == [None, 1, 2]
    assert sweep_thresholds(nothing).is_empty()
    assert sweep_thresholds(nothing).schema == sweep_thresholds(plain).schema
    for each in step_threshold_columns(new_tokens=True):
        assert each.null or frame[each.name].null_count() == 0, each.name


# ---------------------------------------------------------------- at random


MANY = [8]
"""Sequences enough for the replicas of every split."""


def oracle_cases(config):
    """The supported cases of a config by their keys."""
    sweep = config["model-sweeps"]["random"]
    found = serving_oracle.cases(sweep, {}, config["chips"], BITS)
    return {tuple(keys.values()): case for keys, case, _ in found if case is not None}


KEYS = (
    "model",
    "phase",
    "chip",
    "memory",
    "network",
    "dtypes",
    "split",
    "chips",
    "tp",
    "dp",
    "ep",
)


NEARLY = Fraction(1, 10**13)
"""Share of a time by which another one counts as equal [1]."""


@check(60)
@given(config=random_serving.configs(), target=st.integers(1, 40), share=st.fractions(0, 1))
def test_thresholds_of_random_sweeps(config, target, share):
    sweep = config["model-sweeps"]["random"]
    sweep["thresholds"] = ["B", "S"]
    sweep["grid"]["B"] = MANY
    cases = oracle_cases(config)
    several = list(cases)
    some = cases[several[target % len(several)]]
    context = sweep["grid"]["S"][0]
    new = context if some.phase == "prefill" else sweep["grid"].get("T", [1])[0]
    seconds = times(some, Step(some.dp * target, new, context))["t_ops_s"]
    sweep["targets"] = {
        "t_step_s": float(seconds * (1 + share)),
        "time": ["t_lower_s", "t_ops_s"][target % 2],
    }
    for row in sweep_thresholds(model_sweep(sweep, config["chips"])).to_dicts():
        case = cases[tuple(row[key] for key in KEYS)]
        new = row.get("T") or 1
        if row["axis"] == "S":
            ceiling = limits.context_ceiling(case, new)
            if row["outcome"] == "without-end":
                assert ceiling == limits.ENDLESS
            else:
                assert row["critical"] == ceiling
                assert (row["outcome"] == "never") == (ceiling is None)
            continue
        new = row["S"] if case.phase == "prefill" else new
        critical = limits.critical_batch(case, row["S"], new)
        assert row["critical"] == critical
        assert (row["outcome"] == "never") == (critical is None)
        assert (row["outcome"] == "always") == (critical == case.dp)
        check_real(case, row, new)
        target_s = exact(row["target_s"])
        least, most = (
            limits.largest_batch_within(case, row["S"], target_s * near, row["time"], new) or 0
            for near in (1 - NEARLY, 1 + NEARLY)
        )
        assert least <= row["max_B_latency"] <= most
        assert row["max_B_fit"] == limits.largest_batch_that_fits(case, row["S"])


def check_real(case, row, new):
    """The real batch lies below the whole one; below that is the bottleneck `limit`."""
    if row["critical"] is None:
        return
    assert row["critical_exact"] <= row["critical"] * (1 + 1e-12)
    if row["outcome"] == "found":
        assert row["critical_exact"] >= (row["critical"] - 1) * (1 - 1e-12)
        before = times(case, Step(row["critical"] - 1, new, row["S"]))
        assert row["limit"] == bound_of(before)


@check(60)
@given(config=random_serving.configs())
def test_fewest_chips_of_random_sweeps(config):
    sweep = config["model-sweeps"]["random"]
    sweep["thresholds"] = ["chips"]
    sweep["grid"]["B"] = sorted({*sweep["grid"]["B"], *MANY})
    cases = {keys[:6]: case for keys, case in oracle_cases(config).items()}
    for row in sweep_thresholds(model_sweep(sweep, config["chips"])).to_dicts():
        case = cases[tuple(row[key] for key in KEYS[:6])]
        if case.capacity is None:
            assert row["outcome"] == "capacity-unknown"
        else:
            assert row["critical"] == limits.fewest_chips(case, row["B"], row["S"])
