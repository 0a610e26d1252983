"""Random sweeps on random chips against an independent model in exact rational arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import oracle
import pytest
from cases import made_up
from comparison import (
    EXACT_INTEGER,
    expected_rows,
    row_differences,
    table_of,
    threshold_differences,
)
from hypothesis import assume, given
from hypothesis import strategies as st
from random_fits import calibrated_configs
from random_sweeps import (
    BITS,
    DTYPES,
    check,
    combinations,
    configs,
    rates,
    shardings_of,
)

import rooflines


@check(60)
@given(config=configs())
def test_every_row_of_a_random_sweep_is_the_exact_one(config):
    assert row_differences(config) == []
    skipped = rooflines.skipped(rooflines.load_config(config))
    assert skipped["rows"].sum() == sum(row.setting is None for row in expected_rows(config))


@check(60)
@given(config=configs())
def test_every_threshold_of_a_random_sweep_is_the_exact_one(config):
    assume(config["sweeps"]["random"]["thresholds"])
    assert threshold_differences(config) == []


@check(60)
@given(config=calibrated_configs())
def test_every_estimate_of_a_random_sweep_is_the_exact_one(config):
    assert row_differences(config) == []
    assert threshold_differences(config) == []


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
    assert row_differences(config) == []
    assert threshold_differences(config) == []
