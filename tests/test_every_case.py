"""Fixed sweeps that reach every branch of the formulas, against exact arithmetic.

`test_properties` draws such sweeps at random.
"""

import random
from itertools import pairwise
from typing import Any

import polars as pl
import pytest
from case_files import case
from cases import CHIPS, LINKS, SWEEPS, config_of, made_up, split_config
from comparison import row_differences, skip_differences, table_of, threshold_differences
from polars.testing import assert_frame_equal

import rooflines
from rooflines.dictionary.columns import text_columns
from rooflines.evaluation import blocked, compiler
from rooflines.evaluation.row_frames import OperationTable


@pytest.mark.parametrize("name", SWEEPS)
def test_every_row_and_threshold_is_the_exact_one(name, monkeypatch):
    config = config_of(SWEEPS[name])
    assert row_differences(config) == []
    assert threshold_differences(config) == []
    assert skip_differences(config) == []
    frame, sweep = table_of(config), rooflines.load_config(config).sweep("case")
    check_written(frame, sweep)
    monkeypatch.setattr(blocked, "BLOCK_ROWS", 4)
    cuts = sorted({0, sweep.rows, *random.choices(range(sweep.rows), k=3)})
    pieces = [OperationTable(sweep).frame(*piece).collect() for piece in pairwise(cuts)]
    assert_frame_equal(pl.concat(pieces), frame, rel_tol=1e-14)


def check_written(frame, sweep):
    rows = OperationTable(sweep).frame(0, sweep.rows, frame.columns, enums=True)
    texts = text_columns(sweep.columns)
    rows = rows.with_columns(pl.col(texts).cast(pl.String).cast(pl.Categorical))
    first = pl.col("bound") == frame["bound"][0]
    assert rows.collect().equals(frame)
    assert rows.filter(first).collect().equals(frame.filter(first))
    columns = ["t_lower_s", "memory_bytes", "bound"]
    assert rows.slice(1, 3).select(columns).collect().equals(frame[1:4].select(columns))


@pytest.mark.parametrize("link", LINKS)
def test_every_split_ends_where_a_search_ends(link):
    assert threshold_differences(split_config(LINKS[link])) == []


def test_thresholds_are_the_same_in_slices(monkeypatch):
    monkeypatch.setattr(compiler, "ROWS_AT_ONCE", 7)
    for name in ("of a tie", "counted exactly"):
        assert threshold_differences(config_of(SWEEPS[name])) == []


@pytest.mark.parametrize(
    ("ring", "critical", "real"),
    [(None, 2, 2.25), (1, 3, 3.5), (2, 2, 2.25), (3, 3, 3.5), (4, 2, 2.25)],
)
def test_a_pair_is_not_a_ring(ring, critical, real):
    """2 B D F FLOPs take as long as 1.25 times 4 B F bytes."""
    link = {"bytes_per_s": 1e9, "topology": "torus", **({"ring_multiple": ring} if ring else {})}
    sweep = {"operation": "matmul", "grid": {"B": 64, "D": 2500, "F": 64}, "dtypes": ["bf16"]}
    sweep |= {"sharding": "contracting/all-reduce", "chips": ["one"], "thresholds": ["shards"]}
    config = config_of(sweep, {"one": made_up(1e12, 1e15, link)})
    (row,) = rooflines.thresholds(rooflines.load_config(config)).to_dicts()
    assert row["critical"] == row["critical_network"] == critical
    assert row["critical_exact"] == pytest.approx(real)
    assert row["limit"] == "network"


@pytest.mark.parametrize(
    ("then", "rate", "limit"),
    [
        ({}, 4e9, "memory"),
        ({"then": "all-to-all"}, 4e9, "network"),
        ({}, 5e9, "network"),
        ({"then": "all-to-all"}, 3e9, "memory"),
    ],
)
def test_of_times_never_reached_the_limit_grows_fastest_or_else_is_largest(then, rate, limit):
    """Of an expert, each D moves B + F elements and sends half of B, a quarter as many.

    So both times grow alike at four times the rate of the network. At every D, memory also has
    the B F elements of the result; half of them are sent, if the result is, which takes longer.
    """
    link = {"bytes_per_s": 1e9, "topology": "switch"}
    sweep: dict[str, Any] = {"operation": "EBD,EDF->EBF", "dtypes": ["bf16"], "chips": ["one"]}
    sweep |= {"grid": {**dict.fromkeys("BDF", 64), "E": 2}, "shards": [2], "thresholds": ["D"]}
    sweep |= {"sharding": {"split": "E", "first": "all-to-all x", **then}}
    config = config_of(sweep, {"one": made_up(1e18, rate, link)})
    (row,) = rooflines.thresholds(rooflines.load_config(config)).to_dicts()
    assert (row["outcome"], row["limit"]) == ("never", limit)


def test_times_that_are_equal_but_for_roundings_tie():
    size, rate = 3**15, 43
    chips = {
        name: made_up(rate * size**2 + more, rate * 3 * size)
        for name, more in {"less": -1, "tied": 0, "close": 1, "more": 10**4}.items()
    }
    sweep = {"operation": "matmul", "grid": dict.fromkeys("BDF", size), "dtypes": ["bf16"]}
    sweep |= {"chips": [*chips], "thresholds": ["peak", "memory_rate"]}
    rows = rooflines.thresholds(rooflines.load_config(config_of(sweep, chips)))
    outcomes = {"less": "always", "tied": "always", "close": "always", "more": "found"}
    assert {chip: outcomes[chip] for chip in rows["chip"]} == outcomes
    assert rows["outcome"].to_list() == [outcomes[chip] for chip in rows["chip"]]


@pytest.mark.parametrize(("operation", "dtypes", "peak", "more", "rule"), case("rules"))
def test_the_rule_of_thumb_is_the_ridge_by_the_bits_of_what_lacks_the_dimension(
    operation, dtypes, peak, more, rule
):
    chip = made_up(peak, 1e12, {"bytes_per_s": 1e10, "topology": "switch"}, dtypes=["bf16", "int8"])
    sweep = {
        "operation": operation,
        "grid": dict.fromkeys(rule, 64),
        "dtypes": [dtypes],
        "chips": ["one"],
        "flops": "leading",
        "thresholds": list(rule),
        **more,
    }
    found = rooflines.thresholds(rooflines.load_config(config_of(sweep, {"one": chip})))
    assert dict(found.select("axis", "rule_of_thumb").iter_rows()) == {
        axis: value if value is None else pytest.approx(value) for axis, value in rule.items()
    }


def test_thresholds_of_several_sweeps_are_concatenated():
    sweeps = {
        "a": SWEEPS["of vectors"],
        "b": {**SWEEPS["on one chip"], "thresholds": []},
        "c": SWEEPS["shapes"],
    }
    config = rooflines.load_config({"sweeps": sweeps, "chips": CHIPS, "charts": []})
    together = rooflines.thresholds(config)
    assert together["sweep"].unique(maintain_order=True).to_list() == ["a", "c"]
    for name in sweeps:
        alone, part = rooflines.thresholds(config, name), together.filter(sweep=name)
        assert part.select(alone.columns).equals(alone)
        lacking = [column for column in together.columns if column not in alone.columns]
        assert [part[column].null_count() for column in lacking] == [part.height] * len(lacking)
