"""Critical batches and contexts of whole models by estimate, against trying, laws and by hand."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
import random_serving
import serving_limits as limits
import serving_oracle
from hypothesis import given
from hypothesis import strategies as st
from plain_files import plain_file
from random_sweeps import BITS, check
from serving_kernels import Step
from serving_sweeps import model_sweep
from serving_tables import sweep_of
from test_serving_thresholds import ON_TINY
from test_serving_worked import ALL_CHIPS as OWN

import rooflines
from rooflines.models.groups import touched_experts
from rooflines.serving.calibrated_lines import CalibratedLines, CalibratedStep, Curve, Line, Rows
from rooflines.serving.calibrated_solving import context_ceiling_estimate, critical_batch_estimate
from rooflines.serving.critical import step_thresholds
from rooflines.serving.lines import CaseLines, Experts
from rooflines.serving.solving import context_ceiling, critical_batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    import serving_kernels

    from rooflines.serving.case import Case

KEYS = ("model", "phase", "chip", "memory", "network", "dtypes", "split")
"""Keys that name a case."""

CALIBRATED = random_serving.calibrated(random_serving.configs()) | random_serving.configs()
"""With the calibrations of software, and of chips."""


# ---------------------------------------------------------------- whole models at random


def oracle_cases(config: dict[str, Any]) -> dict[tuple[Any, ...], serving_kernels.Case]:
    """The supported cases of a config by their keys."""
    sweep = config["model-sweeps"]["random"]
    found = serving_oracle.cases(sweep, {}, config["chips"], BITS, config.get("fits"))
    return {tuple(keys[key] for key in KEYS): case for keys, case, _ in found if case is not None}


@check(120)
@given(config=CALIBRATED)
def test_thresholds_by_estimate_are_those_found_by_trying(config: dict[str, Any]) -> None:
    """Every batch up to 40 and just below the critical one, and batches far beyond, by an oracle.

    Null where a kernel has no calibration.
    """
    sweep = config["model-sweeps"]["random"]
    sweep |= {"thresholds": ["B", "S"], "targets": None}
    sweep["grid"]["B"] = [8]
    cases = oracle_cases(config)
    rows = step_thresholds(sweep_of(config))
    for row in rows.sample(min(4, rows.height), seed=0).to_dicts():
        check_row(cases[tuple(row[key] for key in KEYS)], row)


def test_thresholds_by_estimate_of_the_default_config() -> None:
    """Some of those with estimates, of models with windows and experts, by shipped calibrations."""
    sweep = plain_file("config.yaml")["model-sweeps"]["serving"]
    catalogues = plain_file("models.yaml")["models"], plain_file("chips.yaml")["chips"]
    found = serving_oracle.cases(
        sweep, *catalogues, plain_file("dtypes.yaml")["formats"], plain_file("calibrations.yaml")
    )
    cases = {tuple(keys[key] for key in KEYS): case for keys, case, _ in found}
    rows = step_thresholds(rooflines.load_config().model_sweep("serving"))
    estimated = rows.filter(pl.col("outcome_estimate").is_not_null())
    for row in estimated.sample(16, seed=0).to_dicts():
        case = cases[tuple(row[key] for key in KEYS)]
        assert case is not None
        check_row(case, row)


def check_row(case: serving_kernels.Case, row: dict[str, Any]) -> None:
    """Whether a threshold is that of the oracle."""
    new, outcome, found = row.get("T") or 1, row["outcome_estimate"], row["critical_estimate"]
    if None in case.fits.kernels.values():
        assert (outcome, found) == (None, None)
    elif row["axis"] == "S":
        ceiling = limits.context_ceiling_estimate(case, new)
        assert (limits.ENDLESS if outcome == "without-end" else found) == ceiling
        assert (outcome == "never") == (ceiling is None)
    else:
        new = row["S"] if case.phase == "prefill" else new
        assert (outcome == "always") == (found == case.dp)
        assert (outcome == "never") == (found is None)
        assert found is None or good(case, found, new, row["S"])
        for batch in tried(case.dp, found):
            assert not good(case, batch, new, row["S"]), batch


def good(case: serving_kernels.Case, batch: int, new: int, context: int) -> bool:
    """Whether a batch is compute-bound by estimate."""
    return limits.compute_bound_estimate(case, Step(batch, new, context))


def tried(least: int, found: int | None) -> Iterator[int]:
    """Batches that are not compute-bound: all are below the one that is found."""
    first = least + 40
    if found is None:
        yield from (*range(least, first), *(2**power for power in range(7, 62, 6)))
    else:
        yield from range(least, min(first, found))
        yield from range(max(first, found - 20), found)
        yield from (found * part // 16 for part in range(1, 16) if found * part // 16 >= first)


# ---------------------------------------------------------------- the solver at random


@st.composite
def steps(draw: st.DrawFn) -> CalibratedStep:
    """Draw the pieces of a step: tiles, sustained clocks, experts, protocols and hops."""
    tokens = draw(st.sampled_from([1, 1, 2, 3, 8, 50]))
    span = draw(st.sampled_from([2, 7, 12, 64, 100]))
    rows = draw(st.sampled_from([(), (Rows(tokens, span), Rows(1, span))]))
    scale = draw(st.sampled_from([4, 30, 1000]))
    slope = st.integers(0, scale)
    constant = st.sampled_from([1, 30, 3000]).flatmap(lambda far: st.integers(0, far * scale))
    none = (0,) * len(rows)

    def line(start: int = 0) -> Line:
        return Line(start, draw(slope), tuple(draw(slope) for _ in rows))

    def hot() -> tuple[tuple[Line, ...], ...]:
        plain = line()
        steeper = plain._replace(constant=-draw(constant), slope=plain.slope + draw(slope))
        return (plain,), (steeper,)

    def network() -> tuple[tuple[Line, ...], ...]:
        one = st.builds(Line, constant, slope, st.just(none))
        least = st.lists(one, min_size=1, max_size=3).map(tuple)
        return tuple(draw(st.lists(least, min_size=1, max_size=3)))

    curves = {
        "compute": Curve(line(), tuple(hot() for _ in range(draw(st.integers(0, 3))))),
        "memory": Curve(Line(draw(constant), draw(slope), none)),
    }
    experts = None
    if draw(st.integers(0, 3)) == 0:
        number = draw(st.sampled_from([4, 16]))
        experts = Experts(number, draw(st.integers(1, number - 1)), Fraction(tokens), "uniform")
        curves["memory"] = Curve(curves["memory"].line._replace(expert=draw(constant)))
    if draw(st.booleans()):
        curves["mixed"] = Curve(line(draw(constant)))
    if draw(st.booleans()):
        several = tuple(network() for _ in range(draw(st.integers(0, 3))))
        curves["network"] = Curve(Line(0, draw(slope), none), several)
    return CalibratedStep(rows, curves, experts)


def time_of(step: CalibratedStep, curve: Curve, batch: int) -> int | Fraction:
    """The time of a bound, as the definition has it."""

    def at(line: Line) -> int:
        counted = (
            per * -(-kind.each * batch // kind.span) * kind.span
            for per, kind in zip(line.counted, step.rows, strict=True)
        )
        return line.constant + line.slope * batch + sum(counted)

    bent = (max(min(map(at, least)) for least in pieces) for pieces in curve.bent)
    total = at(curve.line) + sum(bent)
    if not curve.line.expert or step.experts is None:
        return total
    experts, k, tokens, routing = step.experts
    return total + curve.line.expert * touched_experts(experts, k, batch * tokens, routing)


def compute_bound(step: CalibratedStep, batch: int) -> bool:
    """Whether compute takes longest at a batch."""
    others = (curve for bound, curve in step.curves.items() if bound != "compute")
    compute = time_of(step, step.curves["compute"], batch)
    return all(compute >= time_of(step, curve, batch) for curve in others)


MOST = 600
"""Batches that are tried [1]."""


@check(600)
@given(step=steps(), replicas=st.sampled_from([1, 2, 8]))
def test_the_first_batch_is_that_of_a_search(step: CalibratedStep, replicas: int) -> None:
    """Every batch below, or up to 600; compute-bound batches need not follow one another."""
    found = critical_batch_estimate(step, replicas)
    first = next((b for b in range(replicas, MOST) if compute_bound(step, b)), None)
    if found.whole is not None and found.whole >= MOST:
        assert first is None
        assert compute_bound(step, found.whole)
        assert not any(compute_bound(step, found.whole - less) for less in range(1, 130))
    else:
        assert found.whole == first
    if found.outcome == "never":
        assert not any(compute_bound(step, 2**power + power) for power in range(9, 62))


# ---------------------------------------------------------------- laws


def without_activations(case: Case) -> Case:
    """A case whose kernels hand each other nothing through memory."""
    kernels = [
        replace(kernel, works={**kernel.works, "activation_bytes": {}}) for kernel in case.kernels
    ]
    vars(case)["kernels"] = tuple(kernels)
    return case


@check(120)
@given(config=random_serving.configs())
def test_nominal_rates_give_the_nominal_thresholds(config: dict[str, Any]) -> None:
    """Every share 1, no overhead, usual hops the least: without activations, which t_memory is."""
    sweep = config["model-sweeps"]["random"]
    sweep.pop("efficiency", None)
    for chip in config["chips"].values():
        chip.pop("efficiency", None)
        chip["calibration"] = {dtype: {"overhead_s": 0} for dtype in chip["units"]["matrix"]}
        for network in (chip.get("networks") or {}).values():
            network.pop("typical_hop_latency_s", None)
    checked = sweep_of(config)
    for case in [without_activations(case) for block in checked.blocks for case in block.cases][:4]:
        lines, calibrated = CaseLines(case), CalibratedLines.of(case)
        assert calibrated is not None
        for new, context in product(checked.new_tokens or (1,), checked.contexts):
            nominal = critical_batch(lines.at(context, new), case.split.dp)
            estimate = critical_batch_estimate(calibrated.at(context, new), case.split.dp)
            assert (estimate.outcome, estimate.whole) == (nominal.outcome, nominal.whole)
            if case.phase == "decode":
                ceiling = context_ceiling(lines, new)
                found = context_ceiling_estimate(calibrated, new)
                assert (found.outcome, found.whole) == (ceiling.outcome, ceiling.whole)


MATRICES = {
    "qkv": {"D": 8192, "F": (64 + 2 * 8) * 128},
    "o": {"D": 64 * 128, "F": 8192},
    "down": {"D": 28672, "F": 8192},
    "unembed": {"D": 8192, "F": 128_256},
}
"""The sizes of kernels of Llama 3.1 70B that are matmuls."""


@pytest.mark.parametrize(("chip", "dtype"), [("h100-sxm", "fp8"), ("b200", "bf16")])
@pytest.mark.parametrize("group", MATRICES)
def test_a_step_of_one_kernel_has_the_critical_batch_of_the_matmul(
    group: str, chip: str, dtype: str
) -> None:
    """Of all layers, by TensorRT-LLM; that of the B200 in bf16 has tiles of 128 rows."""
    named: dict[str, Any] = {"chips": [chip], "calibration": ["trtllm"], "dtypes": [dtype]}
    steps = {"models": ["llama-3.1-70b"], "splits": [{}], "grid": {"B": 1, "S": 100}}
    (block,) = model_sweep({**steps, **named}).blocks
    (case,) = block.cases
    vars(case)["kernels"] = tuple(each for each in case.kernels if each.group.name == group)
    lines = CalibratedLines.of(case)
    assert lines is not None
    matmul: dict[str, Any] = {
        **named,
        "operation": "matmul",
        "grid": {"B": 1, **MATRICES[group]},
        "dtypes": [dict.fromkeys(("x", "w", "out", "compute"), dtype)],
        "thresholds": ["B"],
    }
    config = rooflines.load_config({"sweeps": {"one": matmul}, "charts": []})
    (expected,) = rooflines.thresholds(config, "one").to_dicts()
    found = critical_batch_estimate(lines.at(100), 1)
    assert found.whole == expected["critical_estimate"]
    assert found.outcome == expected["outcome_estimate"] == "found"


# ---------------------------------------------------------------- by hand


def test_thresholds_by_estimate_worked_out_by_hand() -> None:
    """One layer on a chip of 100 FLOP/s and 10 byte/s, at 25 % of one and 80 % of the other.

    A sequence of one token takes 240 + 16 FLOP, 10.24 s. It moves 8 bytes of cache and 60 of
    activations, 8.5 s, and a step 120 bytes of weights, 15 s: compute-bound from 8.6 on. With S
    tokens compute grows by 9.6 + 0.64 S seconds a sequence, memory by 7.5 + S, the less up to 5.8.
    """
    fitted = {"fp8": {"math": 0.25, "memory": 0.8, "overhead_s": 1000}}
    bare = {key: part for key, part in OWN["tiny"].items() if key != "calibration"}
    chips = {"bare": bare, "fitted": {**bare, "calibration": fitted}}
    sweep = {**ON_TINY, "chips": ["fitted", "bare"], "thresholds": ["B", "S", "chips"]}
    frame = step_thresholds(model_sweep(sweep, chips))
    assert frame.select("chip", "axis", "critical_estimate", "outcome_estimate").rows() == [
        ("fitted", "B", 9, "found"),
        ("bare", "B", None, None),
        ("fitted", "S", 5, "found"),
        ("bare", "S", None, None),
        ("fitted", "chips", None, None),
        ("bare", "chips", None, None),
    ]
    assert frame.filter(chip="fitted")["critical"][0] == 7


def test_whole_tiles_can_make_small_batches_compute_bound_alone() -> None:
    """Eight rows at a time take 80; memory takes 50 + 12 B, so that 1, 2 and 9 are, but not 3.

    In the long run memory grows faster.
    """
    rows = (Rows(1, 8),)
    curves = {"compute": Curve(Line(0, 0, (10,))), "memory": Curve(Line(50, 12, (0,)))}
    step = CalibratedStep(rows, curves, None)
    found = {least: critical_batch_estimate(step, least) for least in (1, 2, 3, 10)}
    assert [found[least].outcome for least in found] == ["always", "always", "found", "never"]
    assert [found[least].whole for least in found] == [1, 2, 9, None]


def test_a_batch_that_is_too_large_for_a_column_is_beyond() -> None:
    """Compute gains 1 on memory with every sequence, and memory begins at 2^70."""
    curves = {"compute": Curve(Line(0, 3, ())), "memory": Curve(Line(2**70, 2, ()))}
    found = critical_batch_estimate(CalibratedStep((), curves, None), 1)
    assert (found.outcome, found.whole) == ("beyond-2^62", None)
    curves["network"] = Curve(Line(0, 4, ()))
    assert critical_batch_estimate(CalibratedStep((), curves, None), 1).outcome == "never"
