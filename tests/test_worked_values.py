"""Worked values: tables, thresholds and kernels have them to the printed digits.

The sweeps are tests/cases/worked.yaml, the values worked-values.yaml, with their sources.
"""

from decimal import Decimal
from functools import cache

import pytest
from case_files import CASES, case

import rooflines
from rooflines.dictionary.columns import METRICS, column_records

CONFIG = rooflines.load_config(CASES / "worked.yaml")
VALUES = case("worked-values")
PARTS = ("flops", "weight_bytes", "kv_cache_bytes", "activation_bytes", "network_bytes")


@cache
def frame_of(sweep, kind):
    if kind == "groups":
        return rooflines.model_layers(CONFIG, sweep).collect()
    if kind == "row":
        return rooflines.rows(CONFIG, sweep).collect()
    return rooflines.thresholds(CONFIG, sweep)


def value_of(row, name):
    """A column of a row, its multiple, or what follows from several."""
    if name == "ridge":
        memory = row["memory_bytes"] / row["t_memory_s"]
        return row["flops"] / row["t_math_s"] / memory
    column, _, times = name.partition("*")
    return row[column] * int(times) if times else row[column]


def agrees(found, known):
    """True if a value is the known one; a text is as printed, to half of its last digit."""
    if isinstance(found, float) and isinstance(known, str):
        printed = Decimal(known)
        last = Decimal(1).scaleb(int(printed.as_tuple().exponent))
        return abs(Decimal(found) - printed) <= last / 2
    if isinstance(found, float) and known is not None:
        return found == pytest.approx(known, rel=1e-14)
    return bool(found == known)


@pytest.mark.parametrize(
    "known",
    [each for each in VALUES if "at" in each],
    ids=lambda one: f"{one['sweep']} {one['at']}",
)
def test_a_worked_value_comes_out(known):
    kind = "row" if "row" in known else "threshold"
    (row,) = frame_of(known["sweep"], kind).filter(**known["at"]).to_dicts()
    found = {name: value_of(row, name) for name in known[kind]}
    assert {
        name: value for name, value in found.items() if not agrees(value, known[kind][name])
    } == {}


@pytest.mark.parametrize(
    "known", [each for each in VALUES if "groups" in each], ids=lambda one: one["sweep"]
)
def test_groups_of_a_step_are_those_worked_out_by_hand(known):
    frame = frame_of(known["sweep"], "groups")
    rows = {row["group"]: row for row in frame.to_dicts()}
    for group, parts in known["groups"].items():
        assert [rows[group][part] for part in PARTS] == pytest.approx(parts, rel=1e-14), group
    for group, times in known.get("times", {}).items():
        for name, seconds in zip(("t_network_s", "t_estimate_s"), times, strict=True):
            assert seconds is None or rows[group][name] == pytest.approx(seconds, rel=1e-14)


def test_every_metric_has_a_worked_value():
    known = {name for each in VALUES for name in each.get("row", ())}
    assert {column.name for column in METRICS} <= known


@pytest.mark.parametrize(
    ("file", "sweep"), [("thresholds", "h100"), ("model-thresholds", "llama-h100")]
)
def test_the_meaning_of_an_outcome_names_every_one(file, sweep):
    outcomes = frame_of(sweep, "threshold").schema["outcome"].categories
    (known,) = (
        each for each in column_records() if (each["file"], each["column"]) == (file, "outcome")
    )
    assert [outcome for outcome in outcomes if outcome not in known["meaning"]] == []
