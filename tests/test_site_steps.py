"""The answers of steps.js against Python: random models, chips, dtypes, splits and sizes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, get_args

import pytest
import random_serving
from hypothesis import given
from random_sweeps import check
from serving_tables import sweep_of
from visits import Visit

from rooflines.basics.numbers import LARGEST_COUNT
from rooflines.config import load_config
from rooflines.fits.entries import Bound
from rooflines.models.shape import DECODE
from rooflines.serving.calibrated_lines import CalibratedLines
from rooflines.serving.calibrated_solving import critical_batch_estimate
from rooflines.serving.lines import CaseLines
from rooflines.serving.recipes import model_recipe
from rooflines.serving.rows import step_rows
from rooflines.serving.solving import critical_batch
from rooflines.site.steps import step_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from rooflines.serving.case import Case
    from rooflines.serving.solving import Solution

CODE = """([index, files, asked]) => asked.map((one) => {
  const { model, phase, split, dtypes, place, T, S, B } = one;
  const [sweep] = index.sweeps;
  const machine = sweep.machines[place];
  const file = files[model];
  const step = file.steps.find((each) =>
    each.phase === phase && each.split === split && each.dtypes === dtypes);
  const { dp } = sweep.splits.find((each) => each.name === split);
  const pieces = file.extents[phase][T ?? "all"];
  const lines = STEPS.lines(STEPS.prepared(file, step, machine), pieces, S);
  const { lower, ops, upper, bound } = STEPS.answer(lines, B, index.bounds);
  const held = STEPS.footprint(step, machine, dp, S, B);
  const beyond = BigInt(index.limits.count);
  const { outcome, size, limit } = STEPS.critical(lines, dp, beyond, index.bounds);
  const fitted = ESTIMATES.prepared(file, step, place, index.estimate_bounds);
  const of = fitted && ESTIMATES.lines(fitted, pieces, S);
  const estimated = of && ESTIMATES.critical(of, dp, beyond);
  const { time, bound: estimate_bound } = of ? ESTIMATES.answer(of, B) : {};
  const text = (one) => [one.outcome, one.size === undefined ? null : String(one.size)];
  return {
    t_lower_s: lower, t_ops_s: ops, t_upper_s: upper, bound, fits: held.fits,
    max_B: held.most === null ? null : Number(held.most),
    weights_footprint_bytes: EXACT.number(held.weights),
    cache_footprint_bytes: EXACT.number(held.caches),
    t_estimate_s: time ?? null,
    estimate_bound: estimate_bound ?? null,
    critical: [...text({ outcome, size }), limit ?? null],
    critical_estimate: estimated && text(estimated),
    large: of && ESTIMATES.large(of),
  };
})"""
"""All answers of steps, from the data of the page."""

CONFIGS = random_serving.configs() | random_serving.calibrated(random_serving.configs())
"""With the calibrations of chips, and of software."""

EXACT = ("bound", "fits", "max_B")
"""Answers that are the same to the last integer, besides the critical batch."""

CLOSE = 1e-11
"""How far numbers in Float64 may be apart, relative to their size."""


@pytest.fixture(scope="module")
def page(browser: Browser, site: Path) -> Iterator[Page]:
    """A page with steps.js."""
    with browser.new_context() as context:
        yield Visit(context, site.as_uri()).open("models.html")


def estimates_of(case: Case, batch: int, context: int, new: int) -> dict[str, Any]:
    """The critical batch and a batch's bound by estimate, and whether large ones are compute-bound.

    All are None without a calibration.
    """
    lines = CalibratedLines.of(case)
    if lines is None:
        return dict.fromkeys(("critical_estimate", "estimate_bound", "large"))
    step = lines.at(context, new)
    solution = critical_batch_estimate(step, case.split.dp)
    times = {bound: step.time(curve, batch) for bound, curve in step.curves.items()}
    ends = {bound: curve.end(step.rows) for bound, curve in step.curves.items()}
    return {
        "critical_estimate": [solution.outcome, text_of(solution)],
        "estimate_bound": max(sorted(times, key=get_args(Bound).index), key=times.__getitem__),
        "large": ends["compute"] == max(ends.values()),
    }


def text_of(solution: Solution) -> str | None:
    """The size of a threshold that the page has."""
    beyond = solution.outcome == "beyond" or solution.whole is None
    return None if beyond else str(solution.whole)


def critical_of(case: Case, context: int, new: int) -> list[str | None]:
    """Outcome, size and limit of the critical batch."""
    solution = critical_batch(CaseLines(case).at(context, new), case.split.dp)
    limit = None if solution.outcome == "always" else solution.limit
    return [solution.outcome, text_of(solution), limit]


@check(40)
@given(config=CONFIGS)
def test_steps_are_those_of_python(page: Page, config: dict[str, Any]) -> None:
    """Every row of a random sweep: times, bound, footprint, estimate and critical batches."""
    sweep = sweep_of(config)
    recipe = model_recipe(sweep, sweep.models, sweep.config.chips)
    (_, index), *files = step_files([recipe], {})
    by_file = dict(files)
    models = {one["name"]: by_file[one["file"]] for one in index["sweeps"][0]["models"]}
    machines = index["sweeps"][0]["machines"]
    places = {(one["chip"], one["memory"], one["network"]): n for n, one in enumerate(machines)}
    cases = {
        (c.name, c.phase, c.split.name, c.chip, c.memory, c.network, c.dtypes.label): c
        for block in sweep.blocks
        for c in block.cases
    }
    rows = step_rows(sweep).collect().to_dicts()[:200]
    asked = [
        {
            **{name: row[name] for name in ("model", "phase", "split", "dtypes", "S", "B")},
            "place": places[row["chip"], row["memory"], row["network"]],
            "T": row.get("T", 1) if row["phase"] == DECODE else None,
        }
        for row in rows
    ]
    answers = page.evaluate(CODE, json.loads(json.dumps([index, models, asked])))  # as in a file
    for row, one, answer in zip(rows, asked, answers, strict=True):
        names = ("model", "phase", "split", "chip", "memory", "network", "dtypes")
        case = cases[tuple(row[name] for name in names)]
        new = one["T"] or 1
        assert answer.pop("critical") == critical_of(case, row["S"], new), one
        estimates = estimates_of(case, row["B"], row["S"], new)
        assert {name: answer.pop(name) for name in estimates} == estimates, one
        exact = {name: answer.pop(name) for name in EXACT}
        assert exact == {name: row[name] for name in EXACT}, one
        assert (answer["t_estimate_s"] is None) == (row["t_estimate_s"] is None), one
        for name, value in answer.items():
            assert value == row[name] or value == pytest.approx(row[name], rel=CLOSE), (one, name)


def test_the_largest_count_is_the_limit_of_the_page(page: Page) -> None:
    """A critical batch from there on is not looked for."""
    code = "async () => (await ROOFLINES.load('data/models', 'data/models.js')).limits.count"
    assert page.evaluate(code) == str(LARGEST_COUNT)


def test_a_step_says_what_its_calibration_includes() -> None:
    """By place: TensorRT-LLM's fp8 on a B200, and not on a chip without a calibration of it."""
    config = {
        "models": ["llama-3.1-8b"],
        "grid": {"B": 1, "S": 1024},
        "dtypes": ["bf16", "fp8"],
        "chips": ["mi300x", "b200"],
        "calibration": ["trtllm"],
    }
    (sweep,) = load_config({"model-sweeps": {"steps": config}}).model_sweeps.values()
    (_, index), (_, model) = step_files([model_recipe(sweep, sweep.models, sweep.config.chips)], {})
    place = [machine["chip"] for machine in index["sweeps"][0]["machines"]].index("b200")
    assert {step["dtypes"]: step["contents"] for step in model["steps"]} == {
        "bf16": {},
        "fp8": {place: ["dynamic scaling of x"]},
    }
