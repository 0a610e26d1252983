"""Requests: means over decode steps and times to the first token, as the oracle adds them up."""

from typing import Any

import polars as pl
import pytest
import random_serving
from comparison import same, wrong_columns, wrong_keys, wrong_skips
from failing import check_each, check_one
from hypothesis import given
from lots import of
from oracle import step_table
from oracle.fits import NEARLY_TIED
from oracle.step_values import times
from oracle.steps import Step
from oracle.values import bound_of
from random_serving import EVERY_REQUEST, parts_of
from random_sweeps import BITS, check
from serving_tables import KINDS, NAMED, model_sweep, sweep_of
from strata import parts_of_every

import rooflines
from rooflines.evaluation.row_frames import StepTable
from rooflines.solvers.threshold_frames import sweep_thresholds

MEANS = (
    *("flops", "weight_bytes", "kv_cache_bytes", "activation_bytes", "network_bytes"),
    *("t_math_s", "t_memory_s", "t_network_s", "t_activation_s", "t_serial_s", "t_upper_s"),
    "t_estimate_s",
)
"""Columns that a request has as the mean over its steps."""

CASE = ("model", "chip", "memory", "network", "dtypes", "split", "chips", "tp", "dp", "ep")
KEYS = (*CASE, "B", "input", "output")
CONFIGS = random_serving.request_configs()
CONFIGS |= random_serving.calibrated(random_serving.request_configs())
"""With the calibrations of chips, and of software."""


def check_rows(config):
    """Check rows, the means of their steps, and what is skipped."""
    (form,) = config["model-sweeps"].values()
    parts = config["chips"], BITS, config.get("fits")
    cases = {
        tuple(keys[name] for name in CASE): case
        for keys, case, _ in step_table.cases(step_table.decoding(form), {}, *parts)
    }
    every = [*step_table.request_rows(form, {}, *parts)]
    skipped = [(row.keys, row.reasons) for row in every if row.values is None]
    wanted = {
        tuple(row.keys[name] for name in KEYS): row.values
        for row in every
        if row.values is not None
    }
    sweep = sweep_of(config)
    table = StepTable(sweep).frame().collect()
    assert wrong_keys(table, [dict(zip(KEYS, keys, strict=True)) for keys in wanted], KEYS) == []
    assert wrong_skips(sweep.skipped, skipped, KINDS, NAMED) == []
    for row in table.to_dicts():
        keys = tuple(row[name] for name in KEYS)
        values = wanted[keys]
        assert values is not None
        assert wrong_columns(row, values) == []
        case = cases[keys[: len(CASE)]]
        assert case is not None
        first, last = row["input"] + 1, row["input"] + row["output"]
        steps = [times(case, Step(row["B"], 1, context)) for context in range(first, last + 1)]
        means = {
            name: None if steps[0][name] is None else sum(step[name] for step in steps) / len(steps)
            for name in MEANS
        }
        assert row["bound"] == bound_of(means, NEARLY_TIED)
        for name, mean in means.items():
            assert same(row[name], mean), name


def test_every_row_of_every_kind_of_requests_is_the_exact_one():
    check_each(parts_of_every(CONFIGS, parts_of, EVERY_REQUEST), check_rows)


@check(10)
@given(config=of(CONFIGS))
def test_random_requests(config):
    (form,) = config["model-sweeps"].values()
    form["grid"]["B"] = sorted({8, *form["grid"]["B"]})
    check_one(config, check_rows)


LLAMA = {"models": ["llama-3.1-70b"], "dtypes": ["bf16"], "chips": ["h100-sxm"]}


def test_the_bound_of_a_request_changes_between_its_steps():
    request = {"input": 1000, "output": 700}
    sweep = {**LLAMA, "splits": [{"tp": 8}], "grid": {"B": 1500}, "requests": request}
    (row,) = StepTable(model_sweep(sweep)).frame().collect().to_dicts()
    assert row["tpot_s"] > max(row["t_math_s"], row["t_memory_s"]) * (1 + 1e-6)


def test_thresholds_of_requests_are_those_of_their_last_token():
    requests = [{"input": 1024, "output": 9}, {"input": 100, "output": 1}]
    frame = sweep_thresholds(model_sweep({**LLAMA, "grid": {"B": 8}, "requests": requests}))
    assert frame["S"].to_list() == [101, 1033]


def test_replicas_answer_as_one_of_them_does():
    sweep: dict[str, Any] = {**LLAMA, "models": ["llama-3.1-8b"], "network": ["nvlink"]}
    sweep |= {"calibration": ["trtllm"]}
    sweep |= {"splits": [{"dp": 1}, {"dp": 3}], "grid": {"B": [4, 12]}}
    rows = StepTable(model_sweep({**sweep, "requests": {"input": 900, "output": 70}})).frame()
    of_each = rows.filter(pl.col("B") == 4 * pl.col("dp")).collect()
    names = (
        "ttft_s",
        "prefill_estimate_s",
        "prompts_estimate_s",
        "tpot_s",
        "t_serial_s",
        "t_estimate_s",
    )
    one, three = of_each.select(names).rows()
    assert one == pytest.approx(three, rel=1e-12)
    assert None not in one


def test_rates_of_a_request_are_those_of_its_time_per_token():
    """On every basis: tokens/s are sequences over TPOT, with the prompts of an estimate in both."""
    asked = {
        "models": "llama-3.1-8b",
        "chips": "h100-sxm",
        "dtypes": "bf16",
        "grid": {"B": [1, 64]},
        "requests": [{"input": 1024, "output": 256}],
        "calibration": "vllm",
    }
    config = rooflines.load_config({"model-sweeps": {"served": asked}, "charts": []})
    rows = rooflines.rows(config, "served").collect().to_dicts()
    assert all(row["prompts_estimate_s"] > 0 for row in rows)
    for row in rows:
        for time, suffix in (
            ("tpot_s", ""),
            ("tpot_serial_s", "_serial"),
            ("t_estimate_s", "_estimate"),
        ):
            assert row[f"tokens_per_s{suffix}"] * row[time] == pytest.approx(row["B"], rel=1e-12)
