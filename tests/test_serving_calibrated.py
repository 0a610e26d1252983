"""Critical batches and contexts of whole models by estimate, against trying, laws and by hand."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any

import effort
import polars as pl
import pytest
import random_serving
import serving_limits as limits
import serving_oracle
from hypothesis import given
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
from rooflines.serving.support import old_blocks

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


class Drawn:
    """Pieces of a step at random, whose times meet within some hundreds of batches.

    Args:
        seed: Of the random numbers.
    """

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)  # noqa: S311, not for secrets
        span = self.draw.choice([2, 7, 12, 64, 100])
        tokens = self.draw.choice([1, 1, 2, 3, 8, 50])
        self.rows = self.draw.choice([(), (Rows(tokens, span), Rows(1, span))])
        self.scale = self.draw.choice([6, 300, 10**4])

    def line(self, share: float, batch: float, *, tiled: bool) -> Line:
        """A line that grows by a share of the scale, and is as large as the scale at a batch."""
        constant = round((1 - share) * self.scale * batch)
        if not (tiled and self.rows):
            return Line(constant, round(share * self.scale), (0,) * len(self.rows))
        parts = [self.draw.random() for _ in range(3)]
        slope, *counted = (share * self.scale * part / sum(parts) for part in parts)
        each = (kind.each for kind in self.rows)
        return Line(
            constant,
            round(slope),
            tuple(round(per / rows) for per, rows in zip(counted, each, strict=True)),
        )

    def sustained(self, share: float) -> tuple[tuple[Line, ...], ...]:
        """A kernel that takes longer from some batch on."""
        plain = self.line(share, 0, tiled=True)._replace(constant=0)
        more = self.draw.randint(1, self.scale)
        late = plain._replace(
            slope=plain.slope + more, constant=-more * self.draw.choice([3, 40, 400])
        )
        return (plain,), (late,)

    def network(self, share: float) -> tuple[tuple[Line, ...], ...]:
        """A kernel with protocols and hops."""
        return tuple(
            tuple(
                self.line(share * self.draw.choice([0, 0.4, 1, 2]), self.batch(), tiled=False)
                for _ in range(self.draw.choice([1, 2, 3]))
            )
            for _ in range(self.draw.choice([1, 2, 2]))
        )

    def batch(self) -> int:
        """A batch at which lines meet."""
        return self.draw.choice([1, 5, 40, 100, 300])

    def share(self) -> float:
        """How fast another time grows, of compute without sustained clocks."""
        return self.draw.choice([0.2, 0.7, 0.9, 0.97, 0.99, 1, 1.01, 1.1])

    @property
    def step(self) -> CalibratedStep:
        """The step."""
        several, experts = self.draw.choice([0, 0, 1, 3]), None
        bent = tuple(self.sustained(0.5 / several) for _ in range(several))
        plain = self.line(0.5 if bent else 1, 0, tiled=True)._replace(constant=0)
        memory = self.line(self.share(), self.batch(), tiled=False)
        if self.draw.random() < 1 / 4:
            number = self.draw.choice([4, 64])
            experts = Experts(number, 1, Fraction(1, self.draw.choice([1, 2])), "uniform")
            memory = memory._replace(expert=self.scale * self.draw.choice([1, 5, 40]) // number)
        curves = {"compute": Curve(plain, bent), "memory": Curve(memory)}
        if self.draw.random() < 1 / 2:
            curves["mixed"] = Curve(self.line(self.share(), self.batch(), tiled=True))
        if self.draw.random() < 1 / 2:
            kernels = self.draw.choice([0, 1, 2])
            curves["network"] = Curve(
                self.line(self.share() / 2, self.batch(), tiled=False),
                tuple(self.network(self.share() / 2) for _ in range(kernels)),
            )
        return CalibratedStep(self.rows, curves, experts)


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


@pytest.mark.parametrize("replicas", [1, 2, 8])
def test_the_first_batch_is_that_of_a_search(replicas: int) -> None:
    """Every batch below, or up to 600; compute-bound batches need not follow one another."""
    for seed in range(effort.cases(1000)):
        step = Drawn(1000 * seed + replicas).step
        found = critical_batch_estimate(step, replicas)
        first = next((b for b in range(replicas, MOST) if compute_bound(step, b)), None)
        if found.whole is not None and found.whole >= MOST:
            assert first is None, seed
            assert compute_bound(step, found.whole), seed
            assert not any(compute_bound(step, found.whole - less) for less in range(1, 99)), seed
        else:
            assert found.whole == first, seed
        if found.outcome == "never":
            assert not any(compute_bound(step, 2**power + power) for power in range(9, 62)), seed


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
    for case in [
        without_activations(case) for block in old_blocks(checked) for case in block.cases
    ][:4]:
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
    (block,) = old_blocks(model_sweep({**steps, **named}))
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
