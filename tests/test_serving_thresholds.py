"""Thresholds of random steps of whole models, against evaluation and bisection in fractions."""

import copy
import random
from dataclasses import replace
from fractions import Fraction
from itertools import product
from operator import mul
from typing import Any

import pytest
import random_serving
from comparison import wrong_keys
from failing import check_each, check_one
from hypothesis import given
from lots import of
from oracle import step_limits as limits
from oracle import step_table
from oracle.fits import estimate
from oracle.step_values import times
from oracle.steps import Step, kernels
from oracle.values import bound_of
from plain_files import plain_file
from random_serving import EVERY_CASE, parts_of
from random_sweeps import BITS, check
from serving_tables import expected_rows, model_sweep, sweep_of
from strata import parts_of_every

import rooflines
from rooflines.basics.numbers import exact
from rooflines.dictionary.columns import columns_of
from rooflines.solvers.threshold_frames import all_thresholds, sweep_thresholds

KEYS = ("model", "phase", "chip", "memory", "network", "dtypes", "split")
"""Keys that name a case."""

REQUESTS = random_serving.request_configs()
REQUESTS |= random_serving.calibrated(random_serving.request_configs())
CONFIGS = random_serving.calibrated(random_serving.configs()) | random_serving.configs()
"""With the calibrations of software, and of chips."""

NEARLY = Fraction(1, 10**13)
"""Share of a time by which another one counts as equal [1]."""

FAR = 2**80
"""A context so large that only what grows fastest counts [1]."""


def cases_of(config):
    (sweep,) = config["model-sweeps"].values()
    asked = step_table.decoding(sweep)
    found = step_table.cases(asked, {}, config["chips"], BITS, config.get("fits"))
    return {tuple(keys[key] for key in KEYS): case for keys, case, _ in found if case is not None}


def new_tokens(case, row):
    return row["S"] if case.phase == "prefill" else row.get("T") or 1


def check_sizes(config):
    """Check the thresholds along batches, with a target that some batch attains, and contexts."""
    (sweep,) = config["model-sweeps"].values()
    sweep["thresholds"], sweep["grid"]["B"] = ["B", "S"], [8]
    cases, target = cases_of(config), random.randint(1, 40)
    some = random.choice([*cases.values()])
    context = context_of(sweep)
    new = sweep["draft"]["tokens"] + 1 if "draft" in sweep else sweep["grid"].get("T", [1])[0]
    new = context if some.phase == "prefill" else new
    seconds = times(some, Step(some.dp * target, new, context))["t_serial_s"]
    share, time = 1 + Fraction(random.random()), random.choice(["t_lower_s", "t_serial_s"])
    sweep["targets"] = {"t_step_s": float(seconds * share), "time": time}
    rows = sweep_thresholds(sweep_of(config))
    asked = [
        each for key in cases for each in along_sizes(sweep, dict(zip(KEYS, key, strict=True)))
    ]
    named = [*KEYS, "axis", "target_s", *(["T"] if "T" in rows.columns else []), "S"]
    assert wrong_keys(rows, asked, named) == []
    assert rows.height <= sweep_of(config).max_thresholds() <= rows.height * len(cases) * 99
    for row in rows.to_dicts():
        case = cases[tuple(row[key] for key in KEYS)]
        if row["axis"] == "S":
            check_context(case, row)
        else:
            check_batch(case, row)
    for row in random.sample(rows.to_dicts(), min(3, rows.height)):
        check_saturation(cases[tuple(row[key] for key in KEYS)], row)
    return rows


def context_of(sweep):
    """The first context of a sweep, of requests that of their last token [1]."""
    if "requests" in sweep:
        return min(each["input"] + each["output"] for each in sweep["requests"])
    return sweep["grid"]["S"][0]


def check_chips(config):
    """Check the fewest chips of every batch and context, as many as fit and one more among them."""
    (sweep,) = config["model-sweeps"].values()
    sweep["thresholds"] = ["chips"]
    cases = {keys[:6]: case for keys, case in cases_of(config).items()}
    alone = replace(next(iter(cases.values())), axes=(1,), dp=1, ep_axes=(1,))
    full = limits.largest_batch_that_fits(alone, context_of(sweep))
    full = min(full or 8, 2**50)  # not one more
    sweep["grid"]["B"] = sorted({*sweep["grid"]["B"], 8, full, full + 1})
    table = sweep_thresholds(sweep_of(config))
    sizes = [{"B": B, "S": S} for B, S in product(sweep["grid"]["B"], contexts_of(sweep))]
    asked = [{**dict(zip(KEYS, case, strict=False)), **size} for case in cases for size in sizes]
    assert wrong_keys(table, asked, [*KEYS[:6], *"BS"]) == []
    for row in table.to_dicts():
        case = cases[tuple(row[key] for key in KEYS[:6])]
        if case.capacity is None:
            assert row["outcome"] == "capacity-unknown"
        else:
            assert row["critical"] == limits.fewest_chips(case, row["B"], row["S"])
    return table


def contexts_of(sweep):
    """The contexts of a sweep, of requests those of their last tokens [1]."""
    if "requests" in sweep:
        return sorted({each["input"] + each["output"] for each in sweep["requests"]})
    return sweep["grid"]["S"]


def check_all(config):
    """Check the thresholds along every axis."""
    whole = copy.deepcopy(config)
    return [check_sizes(config), check_chips(whole)]


def outcomes_of(tables):
    """The outcomes of thresholds along an axis, and the resources that limit them."""
    for table in tables:
        for row in table.select("axis", "outcome", "limit").unique().iter_rows():
            yield " ".join(each for each in row if each)


OUTCOMES = {
    *("B always", "B found memory", "B found network", "B never memory", "B never network"),
    *("S without-end", "S found memory", "S never memory", "S never network"),
    *("chips found", "chips never heads", "chips never network", "chips capacity-unknown"),
}
"""Outcomes along every axis, with the resource that is the limit."""


def test_thresholds_of_every_kind_of_step_and_outcome_are_the_exact_ones():
    seen: set[str] = set()

    def check(config):
        seen.update(outcomes_of(check_all(config)))

    check_each(parts_of_every(CONFIGS, parts_of, EVERY_CASE), check)

    def more(config):
        """A case of a config, with its outcomes."""
        for make, _ in random.sample(found := [*parts_of(config)], min(1, len(found))):
            one = make()
            (sweep,) = one["model-sweeps"].values()
            sweep |= {"thresholds": ["B", "S", "chips"], "grid": {**sweep["grid"], "B": [8]}}
            yield make, outcomes_of([sweep_thresholds(sweep_of(one))])

    check_each(parts_of_every(CONFIGS, more, OUTCOMES - seen), check)


OF_REQUESTS = {
    *("heads", "latent", "windows", "chunks", "chosen tokens", "mamba2", "experts", "by batch"),
    *("switch", "mesh", "torus", "two networks", "ep", "l2", "fit of software", "own lm_head"),
    *("pool", "pool that decodes", "two chips"),
}
"""Requests whose thresholds are drawn."""


def test_thresholds_of_every_kind_of_request_are_the_exact_ones():
    check_each(parts_of_every(REQUESTS, parts_of, OF_REQUESTS), check_all)


@check(20, at_length=1_000)
@given(config=of(CONFIGS | REQUESTS))
def test_thresholds_of_random_sweeps(config):
    check_one(config, check_all)


@pytest.mark.parametrize("axes", [[], ["S"], ["B"]])
def test_targets_are_solved_for_whatever_thresholds_are_asked_for(axes):
    form = {"models": ["llama-3.1-8b"], "grid": {"B": 1, "S": 128}, "dtypes": ["bf16"]}
    form |= {"chips": ["h100-sxm"], "thresholds": axes, "targets": {"t_step_s": 0.01}}
    found = sweep_thresholds(model_sweep(form)).filter(axis="B")
    assert found["target_s"].to_list() == [0.01]
    assert found["max_B_latency"].item() > 1


def along_sizes(sweep, keys):
    """The keys of the thresholds of a case along batches and contexts: of a decode step these."""
    contexts, news = contexts_of(sweep), sweep["grid"].get("T", [None])
    if "draft" in sweep:
        news = [sweep["draft"]["tokens"] + 1]
    for new in dict.fromkeys(news):
        for context in dict.fromkeys(contexts):
            target = {"T": new, "S": context, "target_s": sweep["targets"]["t_step_s"]}
            yield {**keys, "axis": "B", **target}
        if keys["phase"] == "decode":
            yield {**keys, "axis": "S", "T": new, "S": None, "target_s": None}


def check_context(case, row):
    """The largest context at which large batches are compute-bound."""
    ceiling = limits.context_ceiling(case, row.get("T") or 1)
    if row["outcome"] == "without-end":
        assert ceiling == limits.ENDLESS
    else:
        assert row["critical"] == ceiling
        assert (row["outcome"] == "never") == (ceiling is None)


def check_batch(case, row):
    """The smallest compute-bound batch, and the largest within a time and a memory.

    The real batch lies below the whole one; below that is the bottleneck `limit`.
    """
    new = new_tokens(case, row)
    critical = limits.critical_batch(case, row["S"], new)
    assert row["critical"] == critical
    assert (row["outcome"] == "never") == (critical is None)
    assert (row["outcome"] == "always") == (critical == case.dp)
    if critical is not None:
        assert row["critical_exact"] <= critical * (1 + 1e-12)
    if row["outcome"] == "found":
        assert row["critical_exact"] >= (row["critical"] - 1) * (1 - 1e-12)
        assert row["limit"] == bound_of(times(case, Step(row["critical"] - 1, new, row["S"])))
    target_s = exact(row["target_s"])
    least, most = (
        limits.largest_batch_within(case, row["S"], target_s * near, row["time"], new) or 0
        for near in (1 - NEARLY, 1 + NEARLY)
    )
    assert least <= row["max_B_latency"] <= most
    assert row["max_B_fit"] == limits.largest_batch_that_fits(case, row["S"])


ENGINE = ("layer_s", "sequence_s")
NO_ENGINE = dict.fromkeys(ENGINE, 0)


def engine_of(chip, softwares, fits):
    """Engine overhead in decode, by the first software with a fit of steps."""
    for software in softwares:
        if any(f"{chip}/{software}" in fits[kind] for kind in ("calibrations", "collectives")):
            steps = fits["steps"].get(f"{chip}/{software.partition('-')[0]}")
            if steps is not None:
                return {name: exact(steps["decode"].get(name, 0)) for name in ENGINE}
    return NO_ENGINE


def estimate_of(case, batch, new, context, engine):
    """The estimate of a step [s], exact, with what its engine adds in decode."""
    seconds = sum(
        kernel.count * estimate(case, kernel)["t_estimate_s"]
        for kernel in kernels(case, Step(batch, new, context))
    )
    if case.phase != "decode":
        return seconds
    counts = case.entry["layers"], Fraction(batch) / case.dp
    return seconds + sum(map(mul, counts, engine.values()))


NEARLY = Fraction(1, 10**11)
"""Ten times the relative error of an estimate in Float64 [1]."""


def check_saturation(case, row, engine=NO_ENGINE):
    """The first size whose estimate attains 90 % of the plateau."""
    found, along_contexts = row["plateau_estimate"], row["axis"] == "S"
    if None in case.fits.kernels.values():
        assert found is None
        return
    if along_contexts and (window := case.entry.get("window")):
        case = replace(case, entry={**case.entry, "window": {**window, "chunked": False}})
    new, many = new_tokens(case, row), limits.FAR_TILES

    def growth(context):
        """Time that one more sequence adds to a large batch [s]."""
        return sum(
            sign * estimate_of(case, batches * many, new, context, engine) / many
            for sign, batches in ((1, 2), (-1, 1))
        )

    least = new if along_contexts else case.dp
    slope = (growth(2 * FAR) - growth(FAR)) / FAR if along_contexts else growth(row["S"])

    def attains(size, tie=0):
        seconds = growth(size) if along_contexts else estimate_of(case, size, new, row["S"], engine)
        return 9 * seconds <= (10 + tie) * slope * size

    if along_contexts and (slope == 0 or not attains(2**62 - 1)):
        assert found is None
        return
    assert found is not None
    assert found >= least
    assert attains(found, NEARLY), "the first size, or one before it whose estimate rounds to it"
    tried = {*range(max(found - 20, least), found), *range(least, min(least + 20, found))}
    assert not [size for size in tried if attains(size)]


def test_saturated_batches_of_the_default_config_are_those_found_by_trying():
    sweep = plain_file("config.yaml")["model-sweeps"]["serving"]
    catalogues = plain_file("models.yaml")["models"], plain_file("chips.yaml")["chips"]
    formats, fits = plain_file("dtypes.yaml")["formats"], plain_file("calibrations.yaml")
    found = step_table.cases(sweep, *catalogues, formats, fits)
    cases = {tuple(keys[key] for key in KEYS): case for keys, case, _ in found}
    rows = sweep_thresholds(rooflines.load_config().sweep("serving")).filter(axis="B")
    estimated = rows.drop_nulls("plateau_estimate")
    for row in estimated.sample(12, seed=random.randrange(2**32)).to_dicts():
        engine = engine_of(row["chip"], sweep["calibration"], fits)
        check_saturation(cases[tuple(row[key] for key in KEYS)], row, engine)


DENSE: dict[str, Any] = {"name": "dense", "layers": 1, "D": 4, "V": 8, "mlp": {"F": 2}}
DENSE["attention"] = {"N": 8, "K": 8, "H": 2}
ALL_FP8 = dict.fromkeys(("weights", "cache", "activations", "compute"), "fp8") | {"name": "all fp8"}
SWEEP: dict[str, Any] = {"models": [DENSE], "dtypes": [ALL_FP8], "grid": {"B": 999, "S": 1}}
TINY: dict[str, Any] = {
    "units": {"matrix": {"fp8": {"flops_per_s": 100}}},
    "memory": {"hbm": {"bytes_per_s": 10, "capacity_bytes": 1000}},
    "networks": {"a": {"bytes_per_s": 5, "topology": "switch", "links": 1, "domain": 4}},
}


def test_reasons_why_no_number_of_chips_is_enough():
    chips = {
        "tiny": TINY,
        "roomy": {"base": "tiny", "networks.a.domain": "unlimited"},
        "secret": {**TINY, "networks": {"a": {"bytes_per_s": 5, "topology": "switch"}}},
        "unknown": {**TINY, "memory": {"hbm": {"bytes_per_s": 10}}},
    }
    sweep = {**SWEEP, "chips": list(chips), "thresholds": ["chips"]}
    frame = sweep_thresholds(model_sweep(sweep, chips))
    assert frame.select("outcome", "limit").rows() == [
        ("never", "network"),
        ("never", "heads"),
        ("domain-unknown", "network"),
        ("capacity-unknown", None),
    ]


def test_math_that_grows_as_fast_as_memory_never_overtakes_it():
    """A chip on which both grow by 1 s with a sequence of 700 tokens: 699 is the last context."""
    own = {
        "units": {"matrix": {"bf16": {"flops_per_s": 140_838_436_864}}},
        "memory": {"hbm": {"bytes_per_s": 229_376_000, "capacity_bytes": 10**12}},
    }
    sweep: dict[str, Any] = {"models": ["llama-3.1-70b"], "dtypes": ["bf16"], "chips": ["own"]}
    sweep |= {"grid": {"B": 1, "S": [699, 700]}, "thresholds": ["B", "S"]}
    rows = sweep_thresholds(model_sweep(sweep, {"own": own})).to_dicts()
    assert [row["outcome"] for row in rows] == ["found", "never", "found"]
    assert rows[-1]["critical"] == 699


@pytest.mark.parametrize("grid", [{"B": 8, "S": 2}, {"B": 8, "T": [1, 2], "S": 2}])
def test_frames_of_sweeps_have_their_columns_in_order(grid):
    columns = columns_of("model-thresholds", new_tokens="T" in grid)
    given_sweep = model_sweep({**SWEEP, "chips": ["tiny"], "grid": grid}, {"tiny": TINY})
    nothing = model_sweep({**SWEEP, "chips": ["tiny"], "thresholds": []}, {"tiny": TINY})
    frame = all_thresholds([given_sweep, nothing], models=True)
    assert frame.columns == [column.name for column in columns]
    assert sweep_thresholds(nothing).is_empty()
    for each in columns:
        assert each.null or frame[each.name].null_count() == 0, each.name


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("new", [1, 5])
def test_contexts_under_attention_in_chunks_are_those_of_the_oracle(layers, new):
    model = {**DENSE, "layers": layers, "window": {"tokens": 7, "layers": 1, "chunked": True}}
    rates = [1.07**step for step in range(80)]
    chips = {
        f"chip-{number}": {**TINY, "memory": {"hbm": {"bytes_per_s": rate}}}
        for number, rate in enumerate(rates)
    }
    form = {"models": [model], "phase": ["decode"], "dtypes": [ALL_FP8], "chips": [*chips]}
    form |= {"splits": [{"tp": 1}], "grid": {"B": [1], "T": [new], "S": [9]}, "thresholds": ["S"]}
    config = {"model-sweeps": {"chunks": form}, "chips": chips}
    cases, rows = cases_of(config), sweep_thresholds(sweep_of(config)).to_dicts()
    for row in rows:
        check_context(cases[tuple(row[key] for key in KEYS)], row)
    assert {row["outcome"] for row in rows} == {"never", "without-end", *["found"] * (layers - 1)}


def test_windows_in_which_math_grows_as_fast_as_memory_have_the_ceiling_of_the_oracle():
    """Beyond the window both grow by 1 s with a sequence, whatever the context."""
    model = {**DENSE, "window": {"tokens": 4, "layers": 1}}
    form: dict[str, Any] = {"models": [model], "phase": ["decode"], "dtypes": [ALL_FP8]}
    form |= {"chips": ["own"], "splits": [{"tp": 1}], "grid": {"B": [1, 2], "S": [9]}}
    chip: dict[str, Any] = {**TINY, "networks": {}}
    config = {"model-sweeps": {"tie": form}, "chips": {"own": chip}}
    one, two = (row.values or {} for row in expected_rows(config))
    grown = {name: float(two[name] - one[name]) for name in ("flops", "kv_cache_bytes")}
    chip["units"] = {"matrix": {"fp8": {"flops_per_s": grown["flops"]}}}
    chip["memory"] = {"hbm": {"bytes_per_s": grown["kv_cache_bytes"]}}
    form["thresholds"] = ["S"]
    (row,) = sweep_thresholds(sweep_of(config)).to_dicts()
    (case,) = cases_of(config).values()
    check_context(case, row)
    assert row["outcome"] == "found"
