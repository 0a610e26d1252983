"""Random sweeps equal an independent model in exact arithmetic; a null is what its column says."""

import math
from fractions import Fraction
from typing import Any

import lots
import oracle
import predicates
from cases import made_up
from comparison import (
    EXACT_INTEGER,
    expected_rows,
    row_differences,
    skip_differences,
    table_of,
    threshold_differences,
)
from failing import check_each, check_one
from hypothesis import assume, given
from lots import of
from random_fits import calibrated_configs
from random_sweeps import (
    BITS,
    DTYPES,
    EVERY_KIND,
    RARE,
    check,
    combinations,
    configs,
    kinds_of,
    shardings_of,
)
from strata import chosen

import rooflines


def test_every_row_and_threshold_of_every_kind_of_sweep_is_the_exact_one():
    """And a null means what the dictionary says."""

    def check_all(config):
        assert row_differences(config) == []
        loaded = rooflines.load_config(config)
        predicates.check_table(table_of(config), loaded.sweep("random").columns)
        assert skip_differences(config) == []
        check_thresholds(config)

    check_each(chosen(configs(), kinds_of, EVERY_KIND, rare=RARE), check_all)


@check(20, at_length=6_000)
@given(config=of(configs()))
def test_every_threshold_of_a_random_sweep_is_the_exact_one(config):
    assume(config["sweeps"]["random"]["thresholds"])
    check_one(config, check_thresholds)


def check_thresholds(config):
    assert threshold_differences(config) == []
    loaded = rooflines.load_config(config)
    predicates.check_thresholds(rooflines.thresholds(loaded), loaded.sweep("random"))


@check(60, at_length=2_500)
@given(config=of(calibrated_configs()))
def test_every_estimate_of_a_random_sweep_is_the_exact_one(config):
    def check_both(config):
        assert row_differences(config) == []
        assert threshold_differences(config) == []

    check_one(config, check_both)


@lots.composite
def ties(draw):
    """Draw a config in which two or three times tie at one size, and the bound there."""
    text = draw(lots.sampled_from(["matmul", "sequence-matmul", "per-example-matmul", "BD,DF->BF"]))
    operation = oracle.operation_of(text)
    base = {
        d: draw(
            lots.one_of(lots.integers(2, 300), lots.sampled_from([16, 48, 64, 96, 128, 192, 256]))
        )
        for d in operation.dims
    }
    spec = draw(lots.sampled_from(shardings_of(operation)))
    sharding = oracle.sharding_of(operation, spec)
    shards = 1 if spec == "none" else draw(lots.sampled_from([2, 3, 4, 6, 8]))
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
        exact_flops=draw(lots.booleans()) and sharding.split not in operation.contracted,
    )
    work = setting.work(base, shards)
    scale = math.lcm(*(amount.denominator for amount in work.values()))
    while scale * work["math"] < 10**10:
        scale *= 10
    tied = draw(
        lots.sampled_from(["math memory", "math network", "memory network", "math memory network"])
    ).split()
    if not work["network"]:
        tied = ["math", "memory"]
    rates_of = {
        r: scale * amount * (1 if r in tied else 100) for r, amount in work.items()
    }  # the others are faster
    lots.assume(all(rate.denominator == 1 and rate < EXACT_INTEGER for rate in rates_of.values()))
    per_s = {name: float(rate) for name, rate in rates_of.items()}
    link = {"bytes_per_s": per_s["network"] or 1.0, "links": 1, "topology": "switch"}
    chip = made_up(per_s["math"], per_s["memory"], link, [dtypes["compute"]])
    axis = draw(lots.sampled_from(operation.dims))
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
@given(tie=of(ties()))
def test_an_exact_tie_goes_to_compute_and_then_to_memory_and_is_a_whole_threshold(tie):
    config, expected = tie
    truth = [row.values() for row in expected_rows(config)]
    assert truth[1]["bound"] == expected
    assert table_of(config)["bound"].to_list() == [row["bound"] for row in truth]
    grid = config["sweeps"]["tie"]["grid"]
    grid |= {dim: spec[1] for dim, spec in grid.items() if isinstance(spec, list)}
    assert threshold_differences(config) == []
