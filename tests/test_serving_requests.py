"""Requests: means over decode steps and times to the first token, as the oracle adds them up."""

from __future__ import annotations

from typing import Any

import pytest
import random_serving
import serving_oracle
from hypothesis import given
from random_sweeps import BITS, check
from serving_kernels import Step
from serving_sweeps import model_sweep
from serving_values import bound_of, times
from test_serving_worked import ALL_CHIPS, FORMATS, MODELS, ON_H100, OWN, TINY

from rooflines import RooflinesError
from rooflines.critical.thresholds import sweep_thresholds
from rooflines.fits.entries import Calibrations
from rooflines.sweep.rows import StepTable

Values = dict[str, Any]

REQUESTS = [{"input": 1024, "output": 9}, {"input": 100, "output": 1}]
LLAMA = {**ON_H100, "grid": {"B": [8, 64]}, "requests": REQUESTS}

MEANS = (
    "flops",
    "weight_bytes",
    "cache_bytes",
    "activation_bytes",
    "network_bytes",
    "t_math_s",
    "t_memory_s",
    "t_network_s",
    "t_activation_s",
    "t_ops_s",
    "t_upper_s",
    "t_estimate_s",
)


def rows_of(sweep, chips, fits=None):
    """The rows of a sweep."""
    given = None if fits is None else Calibrations.model_validate(fits)
    return StepTable(model_sweep(sweep, chips, given)).frame().collect().to_dicts()


def close(value, exact):
    """Whether a stored value is an exact one, but for rounding."""
    return value == pytest.approx(float(exact), rel=1e-12)


def test_a_request_to_llama_on_eight_h100():
    row = rows_of({**LLAMA, "grid": {"B": 64}}, OWN)[0]
    (middle,) = rows_of({**ON_H100, "grid": {"B": 64, "S": 1024 + 5}}, OWN)
    (prefill,) = rows_of({**ON_H100, "phase": "prefill", "grid": {"B": 1, "S": 1024}}, OWN)
    assert row["tpot_s"] == row["t_lower_s"] == pytest.approx(middle["t_lower_s"], rel=1e-15)
    assert row["tpot_ops_s"] == row["t_ops_s"] == pytest.approx(middle["t_ops_s"], rel=1e-15)
    assert row["ttft_s"] == pytest.approx(prefill["t_lower_s"], rel=1e-15)
    assert row["ttft_ops_s"] == pytest.approx(prefill["t_ops_s"], rel=1e-15)
    assert row["tokens_per_s"] == pytest.approx(64 / row["tpot_s"], rel=1e-15)
    assert (row["phase"], row["S"], row["input"], row["output"]) == ("decode", None, 1024, 9)
    assert row["max_B"] == rows_of({**ON_H100, "grid": {"B": 64, "S": 1033}}, OWN)[0]["max_B"]


def test_the_bound_of_a_request_changes_between_its_steps():
    request = {"input": 1000, "output": 700}
    (row,) = rows_of({**ON_H100, "grid": {"B": 1500}, "requests": request}, OWN)
    assert row["tpot_s"] > max(row["t_math_s"], row["t_memory_s"]) * (1 + 1e-6)


def test_slices_of_rows_are_the_whole_table():
    sweep = model_sweep({**LLAMA, "dtypes": ["bf16", "fp8"]}, OWN)
    whole = StepTable(sweep).frame().collect()
    assert sweep.rows == len(whole) == 8
    assert whole.columns == [column.name for column in sweep.columns]
    assert whole["output"].to_list() == [9, 1] * 4
    assert whole["B"].to_list() == [8, 8, 64, 64] * 2
    for start in range(8):
        piece = (
            StepTable(sweep).frame(start, start + 1, columns=whole.columns, enums=True).collect()
        )
        assert piece.rows() == whole[start : start + 1].rows()


def test_thresholds_of_requests_are_those_of_their_last_token():
    frame = sweep_thresholds(model_sweep(LLAMA, OWN))
    assert frame["S"].to_list() == [101, 1033]


def test_an_unknown_capacity_leaves_the_largest_batch_unknown():
    tiny = {**OWN["tiny"], "memory": {"hbm": {"bytes_per_s": 10}}}
    (row,) = rows_of({**TINY, "splits": [{"tp": 1}]}, {"tiny": tiny})
    assert (row["max_B"], row["fits"]) == (None, None)


MISTAKES: dict[str, tuple[Values, str]] = {
    "S": ({"grid": {"B": 1, "S": 1}}, "grid.S is given, but requests set the tokens"),
    "T": ({"grid": {"B": 1, "T": 1}}, "grid.T is given, but requests set the tokens"),
    "B": ({"grid": {}}, "grid lacks B"),
    "phase": ({"phase": ["decode", "prefill"]}, "phase lists prefill, but a request has both"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_requests_set_phases_and_tokens(mistake):
    more, message = MISTAKES[mistake]
    with pytest.raises(RooflinesError, match=message):
        model_sweep({**LLAMA, **more}, OWN)


def check_rows(sweep, models, chips, formats, fits=None):
    """Compare every row with the oracle's."""
    cases = {
        tuple(keys.values()): case
        for keys, case, _ in serving_oracle.cases(sweep, models, chips, formats, fits)
    }
    own = {name: chips[name] for name in sweep["chips"]}
    rows = rows_of(sweep, own if chips is not ALL_CHIPS else OWN, fits)
    wanted = {
        tuple(row.keys[name] for name in KEYS): row.values
        for row in serving_oracle.request_rows(sweep, models, chips, formats)
        if row.values is not None
    }
    assert len(rows) == len(wanted)
    for row in rows:
        keys = tuple(row[name] for name in KEYS)
        values = wanted[keys]
        for name, value in values.items():
            if value is None or isinstance(value, bool | str | int):
                assert row[name] == value, name
            else:
                assert close(row[name], value), name
        case = cases[(row["model"], "decode", *keys[1:10])]
        assert case is not None
        first, last = row["input"] + 1, row["input"] + row["output"]
        steps = [times(case, Step(row["B"], 1, context)) for context in range(first, last + 1)]
        means = {
            name: None if steps[0][name] is None else sum(step[name] for step in steps) / len(steps)
            for name in MEANS
        }
        assert row["bound"] == bound_of(means)
        for name, mean in means.items():
            assert (row[name] is None) if mean is None else close(row[name], mean), name


REQUEST_CONFIGS = random_serving.request_configs()
REQUEST_CONFIGS |= random_serving.calibrated(random_serving.request_configs())
"""With the calibrations of chips, and of software."""

KEYS = (
    *("model", "chip", "memory", "network", "dtypes", "split", "chips", "tp", "dp", "ep"),
    *("B", "input", "output"),
)


@pytest.mark.parametrize("split", [{"tp": 2, "dp": 2, "ep": 4}, {"tp": 2}, {"dp": 3}])
def test_requests_to_a_tiny_model(split):
    model = {**TINY["models"][0], "layers": 3, "window": {"tokens": 5, "layers": 2}}
    requests = [{"input": i, "output": o} for i, o in ((1, 1), (1, 9), (4, 1), (5, 3), (3, 2))]
    sweep = {"models": [model], "dtypes": ["fp8"], "splits": [split], "requests": requests}
    sweep |= {"chips": ["slow-tiny"], "grid": {"B": [3, 7, 40]}}
    check_rows(sweep, MODELS["models"], ALL_CHIPS, FORMATS)


def test_a_request_is_listed_once():
    listed = [{"input": 1, "output": 2}, {"output": 2, "input": 1}]
    with pytest.raises(ValueError, match=r"\[1\] is .*, which is listed twice"):
        rows_of({**LLAMA, "requests": listed}, OWN)


@check(24)
@given(config=REQUEST_CONFIGS)
def test_random_requests(config):
    sweep = config["model-sweeps"]["random"]
    sweep["grid"]["B"] = sorted({8, *sweep["grid"]["B"]})
    check_rows(sweep, {}, config["chips"], BITS, config.get("fits"))
