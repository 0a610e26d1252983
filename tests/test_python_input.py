"""Configs from Python: mappings that no file can hold are refused, others are left unchanged."""

from __future__ import annotations

from typing import Any

import pytest
from test_wrong_input import FULL

import rooflines


def test_a_config_is_left_as_it_was_given():
    given = {**FULL, "sweeps": {"mlp": {**FULL["sweeps"]["mlp"], "shards": ["1", 2.0]}}}
    rooflines.load_config(given)
    assert given["sweeps"]["mlp"]["shards"] == ["1", 2.0]
    assert isinstance(given["sweeps"]["mlp"]["shards"][1], float)


@pytest.mark.parametrize(
    "value", [b"abc", bytearray(b"abc"), memoryview(b"abc"), range(1, 4), {1, 2}, object(), 1 + 2j]
)
def test_sizes_are_no_bytes(value):
    grid = {**FULL["sweeps"]["mlp"]["grid"], "D": value}
    with pytest.raises(rooflines.RooflinesError, match=r"sweeps\.mlp\.grid\.D"):
        rooflines.load_config({**FULL, "sweeps": {"mlp": {**FULL["sweeps"]["mlp"], "grid": grid}}})


def test_nesting_without_end_is_refused_in_python_too():
    deep: Any = 1
    for _ in range(50_000):
        deep = [deep]
    with pytest.raises(rooflines.RooflinesError, match=r"sweeps\.mlp\.grid\.D"):
        rooflines.load_config(
            {**FULL, "sweeps": {"mlp": {**FULL["sweeps"]["mlp"], "grid": {"B": 1, "D": deep}}}}
        )


@pytest.mark.parametrize("value", [{"from": 1}, ["roofline"], {1}, None, 7])
def test_a_chart_that_is_no_name_is_refused(value):
    with pytest.raises(
        rooflines.RooflinesError, match=r"charts\[0\]\.chart is .*, which is no chart"
    ):
        rooflines.load_config({**FULL, "charts": [{"chart": value, "sweep": "mlp"}]})
