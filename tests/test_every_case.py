"""Fixed sweeps that reach every branch of the formulas, against exact arithmetic.

`test_properties` draws such sweeps at random.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import oracle
import polars as pl
import pytest
from cases import CHIPS, SWEEPS, config_of, made_up
from comparison import (
    EXACT_INTEGER,
    METRICS,
    differences,
    expected_rows,
    table_of,
    threshold_differences,
)
from links import LINKS, split_sweep, splitters
from polars.testing import assert_frame_equal

import rooflines
from rooflines.critical import along, chips, rates
from rooflines.model.columns import OF_LEVELS, TEXTS
from rooflines.model.costs import COSTS
from rooflines.sweep import blocked
from rooflines.sweep.rows import OperationTable


def test_thresholds_are_the_same_in_slices(monkeypatch):
    for module in (along, chips, rates):
        monkeypatch.setattr(module, "ROWS_AT_ONCE", 7)
    for name in ("of a tie", "counted exactly"):
        assert threshold_differences(config_of(SWEEPS[name])) == []


# ---------------------------------------------------------------- ties

SIDE = 3**20
"""A size whose square and cube are not exact in Float64, so equal times are computed unequal."""

AT, AROUND = dict.fromkeys("BDF", SIDE), [SIDE - 1, SIDE, SIDE + 1]
TIED = ("math memory", "math network", "memory network", "math memory network")
TIES: list[tuple[str, int, str, dict[str, int]]] = [
    ("none", 1, "math memory", {"B": 3}),
    ("contracting/all-reduce", 3, "math network", {"D": 27}),
    *(("none", 1, tied, {}) for tied in TIED[:1]),
    *(("contracting/all-reduce", 3, tied, {}) for tied in TIED),
    *(("batch/gather-w", 2, tied, {}) for tied in TIED),
]


def tied_chips(spec, shards, tied, tile):
    """Return chips on which some times tie at `AT`, or nearly: math longer or shorter by 1.4e-16.

    The other times are a hundredth.
    """
    setting = oracle.plain_matmul(spec, tile)
    work = setting.work(AT, shards)
    rates = {
        name: int(work[name] * shards * 10**6 / SIDE**2) * (1 if name in tied.split() else 100)
        for name in work
    }
    chips = {}
    for name, more in (
        {"tied": 0, "slower": -1, "faster": 1} if "math" in tied else {"tied": 0}
    ).items():
        chips[name] = made_up(
            rates["math"] + more,
            rates["memory"],
            {"bytes_per_s": rates["network"] or 1, "links": 1, "topology": "switch"},
        )
    return chips


@pytest.mark.parametrize(("spec", "shards", "tied", "tile"), TIES)
def test_near_ties_go_to_the_first_also_in_thresholds(spec, shards, tied, tile):
    chips = tied_chips(spec, shards, tied, tile)
    sweep: dict[str, Any] = {
        "operation": "matmul",
        "grid": {"B": AROUND, "D": AROUND, "F": SIDE},
        "dtypes": ["bf16"],
        "chips": list(chips),
        "sharding": spec,
        "shards": [shards],
        "flops": "leading",
        "tile": tile,
        "thresholds": [],
    }
    check_rows(config_of(sweep, chips))
    solved = {
        **sweep,
        "grid": AT,
        "thresholds": ["B", "D", "F"] if shards == 1 or tile else ["B", "D", "F", "shards"],
    }
    solved["chips"] = ["tied"]
    if spec != "none" or not tile:  # else t_math and t_memory are parallel to a part in 10^9
        assert threshold_differences(config_of(solved, {"tied": chips["tied"]})) == []


def test_a_latency_that_nearly_ties_is_a_tie():
    chips = {
        f"more-{more}": made_up(
            2**51 + more, 1e15, {"bytes_per_s": 1e15, "topology": "switch", "hop_latency_s": 1}
        )
        for more in (-1, 0, 1)
    }
    sweep = {
        "operation": "matmul",
        "grid": {"B": [2**17 - 1, 2**17, 2**17 + 1], "D": 2**17, "F": 2**17},
        "dtypes": ["bf16"],
        "chips": list(chips),
        "sharding": "batch/gather-w",
        "shards": [2],
        "thresholds": [],
    }
    check_rows(config_of(sweep, chips))


def test_from_two_to_the_62_on_there_is_no_threshold():
    chips = {
        name: made_up(2**50, 0.25 + more) for name, more in {"just": 2**-13, "far": 2**-24}.items()
    }
    sweep = {
        "operation": "matmul",
        "grid": {"B": 1, "D": 2**53, "F": 2**53},
        "dtypes": ["bf16"],
        "chips": [*chips],
        "thresholds": ["B"],
    }
    config = config_of(sweep, chips)
    assert threshold_differences(config) == []
    found = (
        rooflines.thresholds(rooflines.load_config(config))
        .select("critical", "critical_exact")
        .rows()
    )
    assert found == [(None, pytest.approx(2.0**63, rel=1e-9)), (None, pytest.approx(2.0**74))]


def test_a_threshold_in_tiles_may_be_as_large_as_its_column_holds():
    size, tile, rate = 2**52, 2**36, 2
    tiles = {f"from-{whole}": Fraction(2 * whole - 1, 2) for whole in range(2**26 - 2, 2**26 + 3)}
    chips = {
        name: made_up(int(size * tile * rate / (2 * tile + size / real)), rate)
        for name, real in tiles.items()
    }
    sweep = {
        "operation": "matmul",
        "grid": {"B": size, "D": 1, "F": size},
        "dtypes": ["bf16"],
        "chips": list(chips),
        "tile": {"D": tile},
        "flops": "leading",
        "thresholds": ["D"],
    }
    assert threshold_differences(config_of(sweep, chips)) == []
    found = rooflines.thresholds(rooflines.load_config(config_of(sweep, chips)))
    assert found["critical"].to_list() == [
        2**62 - 3 * tile + 1,
        2**62 - 2 * tile + 1,
        2**62 - tile + 1,
        None,
        None,
    ]


RULES: dict[tuple[str, str], dict[str, float | None]] = {
    ("matmul", "bf16"): {"B": 250, "D": 250, "F": 250},
    ("matmul", "w8a16"): {"B": 125, "D": 250, "F": 250},
    ("matmul", "int8"): {"B": 125, "D": 125, "F": 125},
    ("per-example-matmul", "bf16"): {"B": None, "D": None, "F": None},
    ("B,F->BF", "bf16"): {"B": None, "F": None},
}


@pytest.mark.parametrize(("operation", "dtypes"), RULES)
def test_the_rule_of_thumb_is_the_ridge_by_the_bits_of_what_lacks_the_dimension(operation, dtypes):
    """At 250 FLOP/byte; null if all bytes scale with the dimension, or memory outgrows math."""
    rule = RULES[operation, dtypes]
    assert {row["axis"]: row["critical_rule"] for row in rules(operation, dtypes, 2.5e14)} == rule


def test_the_rule_of_thumb_counts_tiles_shares_and_exact_flops():
    every = {row["axis"]: row["critical_rule"] for row in rules("per-example-matmul", "int8", 1e12)}
    assert every == {"B": None, "D": 1.0, "F": 1.0}  # 2 n >= n + 1
    exact = {
        row["axis"]: row["critical_rule"] for row in rules("matmul", "int8", 2e12, flops="exact")
    }
    assert exact == {
        "B": 1.0,
        "D": 1.5,
        "F": 1.0,
    }  # (2 n - 1) / 2 >= 1, with one product of out less
    tile = {"tile": {"B": 16, "D": 32}, "flops": "leading"}
    tiled = {row["axis"]: row["critical_rule"] for row in rules("matmul", "bf16", 1e12, **tile)}
    assert tiled == {
        "B": None,
        "D": pytest.approx(32 / 30),
        "F": pytest.approx(32 / 30),
    }  # 1024 n >= 64 n + 32 tiles of 32, or + 1024
    split = {
        row["axis"]: row["critical_rule"]
        for row in rules(
            "matmul", "bf16", 1e12, **tile, sharding="contracting/all-reduce", shards=[2]
        )
    }
    assert split == {
        "B": None,
        "D": pytest.approx(64 / 30),
        "F": pytest.approx(32 / 30),
    }  # the same tiles, on twice as many chips
    in_two = {
        row["axis"]: row["critical_rule"]
        for row in rules("matmul", "bf16", 2.5e14, sharding="contracting/all-reduce", shards=[2])
    }
    assert in_two == {"B": 250, "D": 500, "F": 250}  # 250 of D on each of two chips


def rules(operation, dtypes, peak, **more):
    """Return the thresholds of a chip with 10^12 byte/s."""
    chip = {
        "source": "made up",
        "units": {"matrix": {"bf16": {"flops_per_s": peak}, "int8": {"flops_per_s": peak}}},
        "memory": {"hbm": {"bytes_per_s": 1e12}},
        "networks": {"fabric": {"bytes_per_s": 1e10, "topology": "switch"}},
    }
    dims = oracle.operation_of(operation).dims
    sweep = {
        "operation": operation,
        "grid": dict.fromkeys(dims, 64),
        "dtypes": [dtypes],
        "chips": ["one"],
        "thresholds": list(dims),
        **more,
    }
    return rooflines.thresholds(rooflines.load_config(config_of(sweep, {"one": chip}))).to_dicts()


# ---------------------------------------------------------------- every row, every threshold


def check_rows(config):
    """Check the rows of a config's sweep, as scanned and as written; whole works are whole."""
    frame, sweep = table_of(config), rooflines.load_config(config).sweep("case")
    truth = [row.values() for row in expected_rows(config) if row.setting is not None]
    assert len(truth) > 1
    assert differences(frame.to_dicts(), truth) == []
    metrics = [name for name in METRICS if name in frame.columns]
    assert set(METRICS) - set(metrics) <= set(OF_LEVELS)
    for name in COSTS.keys() & metrics:
        whole = [
            (found, row[name])
            for found, row in zip(frame[name], truth, strict=True)
            if row[name] < EXACT_INTEGER
        ]
        assert [pair for pair in whole if pair[1].denominator == 1 and pair[0] != pair[1]] == []
    assert {frame.schema[name] for name in metrics} == {pl.Float64}
    assert all(frame.schema[name] == pl.Categorical for name in TEXTS if name in frame.columns)
    check_written(frame, sweep)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocked, "BLOCK_ROWS", 4)
        assert_frame_equal(
            OperationTable(sweep).frame(0, sweep.rows).collect(), frame, rel_tol=1e-14
        )
        assert_frame_equal(
            OperationTable(sweep).frame(1).select("fits", "flops").collect(),
            frame[1:].select("fits", "flops"),
            rel_tol=1e-14,
        )


def check_written(frame, sweep):
    """Check that written rows equal a frame under filters, slices and selections."""
    rows = OperationTable(sweep).frame(0, sweep.rows, frame.columns, enums=True)
    texts = [name for name in TEXTS if name in frame.columns]
    assert {name: rows.collect_schema()[name] for name in texts} == {
        name: pl.Enum(sorted(set(frame[name].drop_nulls()))) for name in texts
    }
    rows, first = (
        rows.with_columns(pl.col(texts).cast(pl.Categorical)),
        pl.col("bound") == frame["bound"][0],
    )
    assert rows.collect().equals(frame)
    assert rows.filter(first).collect().equals(frame.filter(first))
    assert (
        rows.slice(1, 3)
        .select("bound", "utilization")
        .collect()
        .equals(frame[1:4].select("bound", "utilization"))
    )
    columns = ["F" if "F" in frame.columns else "D", "t_lower_s", "memory_bytes"]
    assert (
        OperationTable(sweep)
        .frame(1, sweep.rows - 1, columns, enums=True)
        .collect()
        .equals(frame[1:-1].select(columns))
    )


@pytest.mark.parametrize("name", SWEEPS)
def test_every_row_is_the_exact_one(name):
    check_rows(config_of(SWEEPS[name]))


@pytest.mark.parametrize("name", SWEEPS)
def test_every_threshold_is_the_exact_one(name):
    assert threshold_differences(config_of(SWEEPS[name])) == []


def test_thresholds_of_several_sweeps_are_concatenated():
    sweeps = {
        "a": SWEEPS["of vectors"],
        "b": {**SWEEPS["on one chip"], "thresholds": []},
        "c": SWEEPS["shapes"],
    }
    config = rooflines.load_config({"sweeps": sweeps, "chips": CHIPS, "charts": []})
    together = rooflines.thresholds(config)
    assert together["sweep"].unique(maintain_order=True).to_list() == ["a", "c"]
    dims = ["D", "B", "F", "S"]
    assert [name for name in together.columns if name in dims] == dims
    for name in sweeps:
        alone, part = rooflines.thresholds(config, name), together.filter(sweep=name)
        assert part.select(alone.columns).equals(alone)
        assert alone.schema == {column: together.schema[column] for column in alone.columns}
        lacking = [column for column in together.columns if column not in alone.columns]
        assert [part[column].null_count() for column in lacking] == [part.height] * len(lacking)


@pytest.mark.parametrize("link", LINKS)
def test_every_split_ends_where_a_search_ends(link):
    chips = splitters(LINKS[link])
    assert threshold_differences(config_of(split_sweep(chips), chips)) == []
