"""Fits of engines' steps: the numbers come back from steps made with them."""

from fractions import Fraction

import polars as pl
import pytest

from rooflines.fits.calibration_files import ALL_ENGINES, STEP_NUMBERS
from rooflines.fits.engine_overhead import (
    AMOUNTS,
    ELSEWHERE,
    PRIOR,
    StepFits,
    step_bands,
    step_fits,
    step_seconds,
)

TRUE = {"a": (1.2, 5e-5, 2e-5), "b": (2.0, 1e-5, 6e-5)}


def runs(numbers, engine, *, chip="c", models=4, rows=12):
    """Steps of an engine that takes exactly its numbers; amounts are not proportional."""
    records = []
    for model in range(models):
        for row in range(rows):
            amounts = (2e-2 * (1 + row % 3), 500.0 * (1 + row % 4) + model, 40.0 * 2 ** (row % 5))
            kernels_s = 4e-3 * (1 + row)
            added = sum(number * amount for number, amount in zip(numbers, amounts, strict=True))
            keys = {"model": f"m{model}", "engine": engine, "key": f"{chip}/{engine}"}
            keys["routed"] = model % 2 == 1
            values = dict(zip(AMOUNTS, amounts, strict=True))
            records.append(
                {
                    **keys,
                    **values,
                    "t_lower_s": 1e-3,
                    "kernels_s": kernels_s,
                    "seconds": kernels_s + added,
                }
            )
    return pl.DataFrame(records)


def test_a_step_is_its_kernels_and_each_number_times_its_amount():
    frame = pl.DataFrame(
        {"kernels_s": [1.0], **{name: [10.0**place] for place, name in enumerate(AMOUNTS)}}
    )
    numbers = dict(zip(STEP_NUMBERS, (2.0, 3.0, 5.0), strict=True))
    assert frame.select(step_seconds(numbers)).item() == 1 + 2 + 30 + 500


def test_the_prior_is_of_the_three_numbers():
    assert list(PRIOR) == list(STEP_NUMBERS)
    assert [float(value) for value in PRIOR.values()] == [1.5, 3e-5, 4e-5]
    assert all(isinstance(value, Fraction) for value in PRIOR.values())


@pytest.mark.parametrize("engine", TRUE)
def test_one_engine_has_the_numbers_that_its_steps_have(engine):
    numbers = StepFits(runs(TRUE[engine], engine)).all_engines.numbers
    for name, true in zip(STEP_NUMBERS, TRUE[engine], strict=True):
        assert float(numbers[name]) == pytest.approx(true, rel=0.01)


def test_a_fit_lies_between_its_prior_and_the_numbers_of_its_steps():
    fits = StepFits(pl.concat(runs(numbers, name) for name, numbers in TRUE.items()))
    assert {*fits.by_key} == {"a", "b", "c/a", "c/b"}
    for engine, numbers in TRUE.items():
        priors = fits.all_engines, fits.by_key[engine], fits.by_key[f"c/{engine}"]
        for name, true in zip(STEP_NUMBERS, numbers, strict=True):
            off = [abs(float(fit.numbers[name]) - true) for fit in priors]
            assert off == sorted(off, reverse=True), f"{engine}: {name}"
        assert fits.fit_for(f"c/{engine}") == fits.by_key[f"c/{engine}"]
        assert fits.fit_for(f"other/{engine}") == fits.by_key[engine]
    assert fits.fit_for("other/none") == fits.all_engines


def test_few_runs_have_no_fit_of_their_own():
    fits = StepFits(pl.concat([runs(TRUE["a"], "a"), runs(TRUE["b"], "b", models=1, rows=2)]))
    assert {*fits.by_key} == {"a", "c/a"}
    assert fits.fit_for("c/b") == fits.all_engines


def test_entries_have_errors_of_models_left_out():
    exact = pl.concat(runs(numbers, name) for name, numbers in TRUE.items())
    entries, held_out = step_fits(exact, "a test", "2026-01-02")
    assert {*entries} == {ALL_ENGINES, "a", "b", "c/a", "c/b"}
    step = entries["c/a"]["decode"]
    assert step.held_out is not None
    assert step.fitted is not None
    assert (step.held_out.n, step.fitted.n, step.models) == (48, 48, ["m0", "m1", "m2", "m3"])
    worse = entries[ALL_ENGINES]["decode"].held_out
    assert worse is not None
    assert step.held_out.median <= worse.median
    assert (step.source, str(step.date)) == ("a test", "2026-01-02")
    assert held_out.height == exact.height


def judged(key, *, routed, ratios):
    frame = pl.DataFrame({"ratio": [float(ratio) for ratio in ratios]})
    columns = {"key": pl.lit(key), "routed": pl.lit(routed), ELSEWHERE: pl.col("ratio") * 2}
    return frame.with_columns(model=pl.lit(f"{key} {routed}"), **columns)


def test_a_band_is_of_all_runs_and_with_routed_experts_of_those_alone():
    """101 runs from 1 to 2 without experts, as many from 0 to 1 with; a key with few is left out.

    The twelfth below and above of 202 runs, and the seventh of 101.
    """
    parts = [
        judged("c/a", routed=False, ratios=[1 + n / 100 for n in range(101)]),
        judged("c/b", routed=True, ratios=[n / 100 for n in range(101)]),
        judged("d/a", routed=False, ratios=[9] * 3),
    ]
    frame = pl.concat(parts)
    pooled = sorted([n / 100 for n in range(101)] + [1 + n / 100 for n in range(101)])
    low, high = (pl.Series(pooled).quantile(share, "linear") for share in (0.12, 0.88))
    assert step_bands(frame, "c/b")["step"] == pytest.approx((low, high), rel=1e-5)
    assert step_bands(frame, "c/b")["step-experts"] == pytest.approx((0.07, 0.93))
    assert step_bands(frame, "c/a")["step"] == pytest.approx(
        (low, 1.9), rel=1e-5
    )  # p90 of its runs
    for beyond in ("d/a", "a"):  # with the chip left out everything takes twice as long
        found = step_bands(frame, beyond)
        assert found["step"] == pytest.approx((low, 3.6), abs=0.02)
        assert found["step-experts"] == pytest.approx((0.07, 1.8))
