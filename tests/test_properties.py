"""Random sweeps on random chips against an independent model in exact rational arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import oracle
import polars as pl
import pytest
from cases import made_up
from comparison import (
    EXACT_INTEGER,
    REAL_TOLERANCE,
    differences,
    expected_rows,
    same,
    table_of,
    threshold_differences,
)
from hypothesis import assume, given
from hypothesis import strategies as st
from random_fits import calibrated_configs
from random_sweeps import (
    BITS,
    COMPUTE,
    DTYPES,
    check,
    combinations,
    configs,
    named,
    rates,
    shardings_of,
)

import rooflines


@check(60)
@given(config=configs())
def test_every_row_of_a_random_sweep_is_the_exact_one(config):
    truth = expected_rows(config)
    table = table_of(config)
    assert (
        differences(table.to_dicts(), [row.values() for row in truth if row.setting is not None])
        == []
    )
    skipped = rooflines.skipped(rooflines.load_config(config))
    assert skipped["rows"].sum() == sum(row.setting is None for row in truth)


@check(40)
@given(config=configs())
def test_whole_numbers_below_two_to_the_53_are_whole(config):
    truth = [row for row in expected_rows(config) if row.setting is not None]
    for row, found in zip(truth, table_of(config).iter_rows(named=True), strict=True):
        exact = row.values()
        for column in ("flops", "memory_bytes", "footprint_bytes"):
            if (
                row.keys["shards"] == 1
                and exact[column].denominator == 1
                and exact[column] < EXACT_INTEGER
            ):
                assert found[column] == exact[column], (column, exact)


@check(60)
@given(config=configs())
def test_every_threshold_of_a_random_sweep_is_the_exact_one(config):
    assume(config["sweeps"]["random"]["thresholds"])
    assert threshold_differences(config) == []


@check(60)
@given(config=calibrated_configs())
def test_every_estimate_of_a_random_sweep_is_the_exact_one(config):
    rows = [row.values() for row in expected_rows(config) if row.setting is not None]
    assert differences(table_of(config).to_dicts(), rows) == []
    assert threshold_differences(config) == []


@check(25)
@given(config=configs(), data=st.data())
def test_critical_is_compute_bound_and_the_size_before_is_not(config, data):
    ((name, sweep),) = config["sweeps"].items()
    operation = oracle.operation_of(sweep["operation"])
    axis = data.draw(st.sampled_from(operation.dims))
    requested = {**config, "sweeps": {name: {**sweep, "thresholds": [axis]}}}
    frame = rooflines.thresholds(rooflines.load_config(requested), name)
    frame = frame.filter((pl.col("critical") < EXACT_INTEGER) & (pl.col("share") == 1))
    assume(frame.height)
    for row in frame.head(4).iter_rows(named=True):
        critical = row["critical"]
        around = [critical - 1, critical] if critical > 1 else [critical]
        spec = next(
            s
            for s in oracle.as_list(sweep.get("sharding", "none"))
            if oracle.sharding_of(operation, s).name == row["sharding"]
        )
        single = {
            **{key: value for key, value in sweep.items() if key not in ("shapes", "thresholds")},
            "chips": [row["chip"]],
            "memory": row["memory"],
            "sharding": spec,
            "shards": [row.get("axes") or row["shards"]],
            "network": row["network"].split("+") if row["network"] else None,
            "dtypes": [c for c in sweep["dtypes"] if named(c) == row["dtypes"]],
            "grid": {d: around if d == axis else row[d] for d in operation.dims},
        }
        elements = [around[0] if d == axis else row[d] for d in operation.contracted]
        if oracle.exactly(sweep) and min(elements, default=row["shards"]) < row["shards"]:
            continue  # refused: a chip would have less than one element
        bounds = table_of({**config, "sweeps": {name: single}})["bound"].to_list()
        assert bounds[-1] == "compute", (row, bounds)
        assert "compute" not in bounds[:-1], (row, bounds)


@st.composite
def ties(draw):
    """Draw a config in which two or three times tie at one size, and the bound there."""
    text = draw(st.sampled_from(["matmul", "sequence-matmul", "per-example-matmul", "BD,DF->BF"]))
    operation = oracle.operation_of(text)
    base = {
        d: draw(st.one_of(st.integers(2, 300), st.sampled_from([16, 48, 64, 96, 128, 192, 256])))
        for d in operation.dims
    }
    spec = draw(st.sampled_from(shardings_of(operation)))
    sharding = oracle.sharding_of(operation, spec)
    shards = 1 if spec == "none" else draw(st.sampled_from([2, 3, 4, 6, 8]))
    combination = draw(combinations())
    dtypes = oracle.combination_of(combination, DTYPES["combinations"])[1]
    one = Fraction(1)
    setting = oracle.Setting(
        operation=operation,
        sharding=sharding,
        bits={operand: oracle.stored_bits(BITS, dtypes[operand]) for operand in ("x", "w", "out")},
        peak=one,
        memory_rate=one,
        capacity=None,
        links=(oracle.PLAIN_LINK,),
        efficiency=dict.fromkeys(oracle.RESOURCES, one),
        exact_flops=draw(st.booleans()) and sharding.split not in operation.contracted,
    )
    work = setting.work(base, shards)
    scale = math.lcm(*(amount.denominator for amount in work.values()))
    while scale * work["math"] < 10**10:
        scale *= 10
    tied = draw(
        st.sampled_from(["math memory", "math network", "memory network", "math memory network"])
    ).split()
    if not work["network"]:
        tied = ["math", "memory"]
    rates_of = {
        r: scale * amount * (1 if r in tied else 100) for r, amount in work.items()
    }  # the others are faster
    assume(all(rate.denominator == 1 and rate < EXACT_INTEGER for rate in rates_of.values()))
    per_s = {name: float(rate) for name, rate in rates_of.items()}
    link = {"bytes_per_s": per_s["network"] or 1.0, "links": 1, "topology": "switch"}
    chip = made_up(per_s["math"], per_s["memory"], link, [dtypes["compute"]])
    axis = draw(st.sampled_from(operation.dims))
    grid: dict[str, Any] = {**base, axis: [base[axis] - 1, base[axis], base[axis] + 1]}
    sweep = {
        "operation": text,
        "grid": grid,
        "dtypes": [combination],
        "chips": ["tied"],
        "sharding": spec,
        "shards": [shards],
        "flops": "exact" if setting.exact_flops else "leading",
        "thresholds": [axis] if spec == "none" or "all-to-all" in str(spec) else [axis, "shards"],
    }
    return {"sweeps": {"tie": sweep}, "chips": {"tied": chip}, "charts": []}, oracle.LABEL[tied[0]]


@check(80)
@given(tie=ties())
def test_an_exact_tie_goes_to_compute_and_then_to_memory(tie):
    config, expected = tie
    truth = [row.values() for row in expected_rows(config)]
    assert truth[1]["bound"] == expected
    assert table_of(config)["bound"].to_list() == [row["bound"] for row in truth]


@check(60)
@given(tie=ties())
def test_a_threshold_that_is_a_whole_number_is_that_number(tie):
    config, _ = tie
    sweep = config["sweeps"]["tie"]
    sweep["grid"] = {
        d: spec[1] if isinstance(spec, list) else spec for d, spec in sweep["grid"].items()
    }
    assert threshold_differences(config) == []


@st.composite
def reaches(draw, topology, ring_multiple):
    """Draw a split matmul on a chip whose memory and network end the split at drawn numbers."""
    spec = draw(
        st.sampled_from(
            [
                "contracting/all-reduce",
                "contracting/reduce-scatter",
                "column/gather-x",
                "batch/gather-w",
                "batch",
            ]
        )
    )
    operation = oracle.operation_of("matmul")
    sizes_of_all = {
        d: draw(st.sampled_from([512, 1000, 4096, 14336, 65536])) for d in operation.dims
    }
    link: dict[str, Any] = {"links": 7, "topology": topology, "ring_multiple": ring_multiple}
    link["domain"] = draw(
        st.sampled_from([None, 8, 2] if topology == "mesh" else [None, None, 256, 64, 8, 2, 1])
    )
    if draw(st.integers(0, 3)) == 0:
        link["hop_latency_s"] = draw(st.sampled_from([1e-9, 1e-6, 1e-4]))
    setting = oracle.plain_matmul(spec)
    peak = draw(rates(13, 15))
    by_memory, by_network = (
        draw(st.sampled_from([10**6, 2000, 40, 3, 1])),
        draw(st.integers(2, 500)),
    )
    at_memory, at_network = (
        setting.work(sizes_of_all, by_memory),
        setting.work(sizes_of_all, by_network),
    )
    near = st.sampled_from([Fraction(999, 1000), Fraction(1001, 1000)])  # beyond roundings
    bandwidth = draw(near) * oracle.exact(peak) * at_memory["memory"] / at_memory["math"]
    one_way = (
        draw(near)
        * oracle.exact(peak)
        * at_network["network"]
        / at_network["math"]
        / draw(st.sampled_from([1, 2, 7]))
    )
    link["bytes_per_s"] = float(one_way) or 1e9
    given_link = {key: value for key, value in link.items() if value is not None}
    chip = made_up(peak, float(bandwidth), given_link)
    sweep = {
        "operation": "matmul",
        "grid": sizes_of_all,
        "dtypes": ["bf16"],
        "chips": ["one"],
        "sharding": spec,
        "shards": [1],
        "thresholds": ["shards"],
    }
    return {"sweeps": {"reach": sweep}, "chips": {"one": chip}, "charts": []}


FABRICS = [
    ("switch", None),
    ("mesh", None),
    ("torus", None),
    *(("torus", ring) for ring in (1, 2, 3, 4, 16)),
]


@pytest.mark.parametrize(("topology", "ring_multiple"), FABRICS)
@check(30)
@given(data=st.data())
def test_the_most_chips_of_a_split_are_those_of_a_search(topology, ring_multiple, data):
    assert threshold_differences(data.draw(reaches(topology, ring_multiple))) == []


@pytest.mark.parametrize("sizes_of_all", [(512, 1000, 65536), (65536, 1000, 512)])
def test_a_tie_on_one_chip_is_one_chip(sizes_of_all):
    link = {"bytes_per_s": 2e11, "links": 7, "topology": "switch"}
    chip = made_up(1e14, 296838378906.25, link)
    sweep = {
        "operation": "matmul",
        "grid": dict(zip("BDF", sizes_of_all, strict=True)),
        "dtypes": ["bf16"],
        "chips": ["one"],
        "sharding": "contracting/all-reduce",
        "thresholds": ["shards"],
    }
    config = {"sweeps": {"tie": sweep}, "chips": {"one": chip}, "charts": []}
    assert threshold_differences(config) == []
    assert rooflines.thresholds(rooflines.load_config(config))["critical_exact"].item() == 1


@pytest.mark.parametrize(("topology", "ring_multiple"), FABRICS)
@check(8)
@given(data=st.data())
def test_the_next_number_of_chips_is_not_compute_bound(topology, ring_multiple, data):
    config = data.draw(reaches(topology, ring_multiple))
    frame = rooflines.thresholds(rooflines.load_config(config))
    critical, limit = frame["critical"].item(), frame["limit"].item()
    assume(critical is not None and limit is not None)
    sweep = config["sweeps"]["reach"]
    sweep["shards"] = [critical, critical + 1]
    table = table_of(config)
    tied = table["t_math_s"][1] >= table["t_lower_s"][1] * (1 - 1e-13)
    assert table["bound"].to_list() == ["compute", "compute" if tied else limit]


@check(30)
@given(config=configs(), peak=rates(12, 16), memory=rates(10, 13))
def test_rule_of_thumb_is_the_exact_threshold_of_endless_other_dimensions(config, peak, memory):
    ((name, sweep),) = config["sweeps"].items()
    chip = made_up(peak, memory, dtypes=COMPUTE)
    requested = {
        "operation": "matmul",
        "grid": {"B": 64, "D": 512, "F": 2048},
        "dtypes": sweep["dtypes"],
        "efficiency": sweep.get("efficiency", {}),
        "chips": ["one"],
        "thresholds": ["B", "D", "F"],
    }
    frame = rooflines.thresholds(
        rooflines.load_config({"sweeps": {name: requested}, "chips": {"one": chip}, "charts": []})
    )
    lacks = {"B": "w", "D": "out", "F": "x"}
    efficiency = {r: oracle.exact(requested["efficiency"].get(r, 1)) for r in oracle.RESOURCES}
    ridge = oracle.exact(peak) * efficiency["math"] / (oracle.exact(memory) * efficiency["memory"])
    assert frame.height == 3 * len(sweep["dtypes"])
    for row in frame.iter_rows(named=True):
        combination = next(c for c in sweep["dtypes"] if named(c) == row["dtypes"])
        dtypes = oracle.combination_of(combination, DTYPES["combinations"])[1]
        rule = oracle.stored_bits(BITS, dtypes[lacks[row["axis"]]]) / 16 * ridge
        assert same(row["critical_rule"], rule), (row, float(rule))
        setting = oracle.Setting(
            operation=oracle.operation_of("matmul"),
            sharding=oracle.Sharding("none"),
            bits={
                operand: oracle.stored_bits(BITS, dtypes[operand]) for operand in ("x", "w", "out")
            },
            peak=oracle.exact(peak),
            memory_rate=oracle.exact(memory),
            capacity=None,
            links=(),
            efficiency=efficiency,
        )
        endless = oracle.thresholds_along(setting, row["axis"], dict.fromkeys("BDF", 10**30), 1)
        assert float(rule) == pytest.approx(float(endless["critical_exact"]), rel=REAL_TOLERANCE)


@pytest.mark.parametrize("exponent", [40, 45, 53])
def test_sizes_far_past_an_integer_product_keep_their_bound_and_threshold(exponent):
    chip = made_up(2e15, 1e12)
    size = 2**exponent
    sweep = {
        "operation": "matmul",
        "grid": {"B": [1, 1999, 2000, 2001, size], "D": size, "F": [size - 1, size]},
        "dtypes": ["bf16", {"x": "mxfp4", "w": "nvfp4", "out": "bf16", "compute": "bf16"}],
        "chips": ["one"],
        "thresholds": ["B", "D", "F"],
    }
    config = {"sweeps": {"large": sweep}, "chips": {"one": chip}, "charts": []}
    truth = [row.values() for row in expected_rows(config)]
    assert differences(table_of(config).to_dicts(), truth) == []
    found = rooflines.thresholds(rooflines.load_config(config)).sort(
        "axis", "dtypes", "B", "D", "F"
    )
    exact = pl.DataFrame(
        [
            {k: float(v) if isinstance(v, Fraction) else v for k, v in t.items()}
            for t in oracle.thresholds(sweep, {"one": chip}, DTYPES)
        ],
        infer_schema_length=None,
    ).sort("axis", "dtypes", "B", "D", "F")
    for column in ("critical", "critical_memory", "critical_network"):
        assert found[column].to_list() == exact[column].to_list()
