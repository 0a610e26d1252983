"""A step of training: worked values, laws, and the memory of measured runs."""

import json
import re
from contextlib import suppress
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest
import training_page
from case_files import case
from command_line import refused, said
from hypothesis import assume, given
from hypothesis import strategies as st
from random_sweeps import check
from serving_sweeps import model_sweep
from training_oracle import TrainingOracle

import rooflines
from rooflines import models
from rooflines.basics.errors import RooflinesError
from rooflines.catalogue.chips import chip_entries
from rooflines.catalogue.forms import checked
from rooflines.charts.kinds import time
from rooflines.charts.results import of_config
from rooflines.critical.thresholds import sweep_thresholds
from rooflines.critical.training import solved_along
from rooflines.fits.entries import shipped_calibrations
from rooflines.sweep.every_split import plans_of
from rooflines.sweep.one_chip import sweep_on
from rooflines.sweep.recipes import recipe_of
from rooflines.sweep.recipes import sweep_of as sweep_from
from rooflines.sweep.rows import KernelTable, StepTable
from rooflines.training.memory import saved_tensors
from rooflines.training.plan import TrainingPlan

GIB = 2**30
CASES = Path(__file__).parent / "cases"


def without_hops(chip):
    """The chip, with networks whose hops take no time."""
    networks = {
        name: network.model_copy(update={"hop_latency_s": 0.0})
        for name, network in chip.networks.items()
    }
    return chip.model_copy(update={"networks": networks})


CHIPS = {name: without_hops(chip_entries()[name]) for name in ("h100-sxm", "b200", "gb200")}


def sweep_of(model, chip, B, S, network=None, layers=None, dtypes="bf16", **plan):  # noqa: N803, PLR0913, PLR0917, a question
    """A sweep of one plan, without the time of hops."""
    form = model
    if layers:
        shape = training_page.model_of({"model": model, "layers": layers}).shape
        fields = shape.model_dump(include=set(type(shape).model_fields), exclude_none=True)
        form = {"name": model, **fields}
    keys = {"phase": "train", "grid": {"B": B, "S": S}, "splits": [plan], "thresholds": []}
    keys |= {"network": network and [*network]}
    return sweep_on(form, chip, dtypes, entries=CHIPS, **keys)


def step_of(*of, **plan):
    """The case and the row of a step."""
    sweep = sweep_of(*of, **plan)
    (case,) = sweep.cases
    (row,) = StepTable(sweep).frame().collect().iter_rows(named=True)
    return case, row


def work_of(case, column, batch, context):
    """A work of a case, exact."""
    return case.work(column).at(case.extents(case.step(batch, context)))


TWO = ("nvlink", "infiniband")
SMALL, LARGE, XL = "llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b"
FSDP = {"dp": 8, "shard": "weights"}

WORKED = case("training")


def decimals(number):
    return len(str(number).partition(".")[2])


@pytest.mark.parametrize("name", WORKED)
def test_a_step_takes_what_was_worked_out(name):
    of = WORKED[name]
    sizes = of["model"], of["chip"], of["B"], of["S"]
    case, row = step_of(*sizes, of.get("network"), of.get("layers"), **of["plan"])
    works = of.get("works", {})
    assert {column: f"{row[column]:.6g}" for column in works} == works
    exact = {column: f"{float(work_of(case, column, *sizes[2:])):.6g}" for column in works}
    assert exact == works
    times = {"ops": "t_ops_s", "upper": "t_upper_s"}
    for key, value in of.get("ms", {}).items():
        found = row[times.get(key, f"t_{key}_s")] * 1e3
        assert found == pytest.approx(value, abs=0.6 * 10 ** -decimals(value))
    for column, gib in zip(("state_bytes", "saved_bytes"), of["gib"], strict=True):
        assert row[column] / GIB == pytest.approx(gib, abs=0.6 * 10 ** -decimals(gib))


@pytest.mark.parametrize(
    ("model", "elements"), [(SMALL, 69_696), (LARGE, 137_344), ("mixtral-8x7b", 120_912)]
)
def test_a_layer_saves_so_many_elements_of_a_token(model, elements):
    saved = saved_tensors(models.load(model).shape, checked(TrainingPlan, {}), Fraction(2))
    layer = (each.elements("none") for name, each in saved.items() if "embed" not in name)
    assert sum(layer) == elements


def test_inputs_saved_whole_save_gathers_and_take_memory():
    of = (LARGE, "b200", 8, 4096, None, 12)
    (split, row), (whole, more) = (
        step_of(*of, tp=4, dp=2, save=save) for save in ("split", "gathered")
    )
    width, micro_batches, activation_bytes = 8192, 4, 2
    unit = Fraction(3, 4) * 4096 * width * activation_bytes  # a gather between 4 chips
    less = work_of(split, "network_bytes", 8, 4096) - work_of(whole, "network_bytes", 8, 4096)
    assert less == (2 * 12 + 1) * unit * micro_batches  # of qkv and gate-up in 12 layers, and head
    assert more["saved_bytes"] - row["saved_bytes"] == (2 * 12 + 1) * unit


def test_sums_of_a_softmax_have_four_bytes_in_any_dtype():
    shape, plan = models.load(SMALL).shape, checked(TrainingPlan, {})
    two, four = (saved_tensors(shape, plan, Fraction(size))["attention"].kept for size in (2, 4))
    assert two - four == 32 * 4 / 2 - 32 * 4 / 4


def along(axis, *of, **plan):
    """The threshold of a step along an axis."""
    sweep = sweep_of(*of, **plan)
    config = sweep.config.model_copy(update={"thresholds": [axis]})
    (row,) = sweep_thresholds(type(sweep)(sweep.name, config, *entries_of(sweep))).to_dicts()
    return row


def entries_of(sweep):
    """The catalogues and models of a sweep."""
    return sweep.chips, sweep.dtypes, sweep.calibrations, sweep.models


def test_a_step_is_compute_bound_from_a_sequence_length_on():
    near = along("S", SMALL, "h100-sxm", 8, 8192, **FSDP)
    assert (near["critical"], near["critical_memory"], near["limit"]) == (2583, 623, "network")
    assert 2582 < near["critical_exact"] <= 2583
    assert (
        along("S", SMALL, "h100-sxm", 1024, 8192, TWO, dp=1024, shard="weights")["critical"] == 3258
    )
    short = {"dtypes": {"gradients": "bf16"}, "shard": "weights"}
    assert along("S", SMALL, "h100-sxm", 8, 8192, dp=8, **short)["critical"] == 1947
    assert along("S", SMALL, "h100-sxm", 1024, 8192, TWO, dp=1024, **short)["critical"] == 2462
    assert near["max_fit"] == 13_083
    assert along("S", SMALL, "h100-sxm", 8, 8192, **FSDP, recompute="full")["max_fit"] == 91_828


@pytest.mark.parametrize(("recompute", "most"), [("none", 1), ("selective", 2), ("full", 11)])
def test_recomputation_makes_room_for_larger_micro_batches(recompute, most):
    of = (SMALL, "h100-sxm", 8, 8192)
    assert along("micro_batch", *of, **FSDP, recompute=recompute)["max_fit"] == most
    _, row = step_of(*of, **FSDP, recompute=recompute)
    assert row["max_micro_batch"] == most


@pytest.mark.parametrize(("model", "most"), [(SMALL, 9), (LARGE, 16)])
def test_tensor_parallelism_is_compute_bound_up_to_so_many_chips(model, most):
    found = along("tp", model, "h100-sxm", 8, 8192, tp=8)
    assert (found["critical"], found["limit"]) == (most, "network")
    assert most <= found["critical_exact"] < most + 1


@check(40)
@given(
    st.sampled_from([SMALL, "mixtral-8x7b", "gemma-3-27b", "gpt-oss-20b"]),
    st.sampled_from([{"dp": 8}, {"tp": 4, "dp": 2}, {"pp": 2, "cp": 2, "dp": 2}, {"tp": 8}]),
    st.sampled_from(["none", "optimizer", "gradients", "weights"]),
    st.sampled_from([256, 2048, 8192]),
    st.integers(1, 3),
)
def test_a_step_is_compute_bound_from_its_thresholds_on(model, plan, shard, context, m):
    batch = m * plan.get("dp", 1)
    sweep = sweep_of(model, "b200", batch, context, **plan, shard=shard)
    (case,) = sweep.cases

    def ahead(axis, size):
        sizes = {"B": batch, "S": context, "micro_batch": 1, axis: size}
        at = case.extents(case.step(sizes["B"], sizes["S"]))
        at["micro_batch"] = sizes["micro_batch"]
        math, *others = (time.at(at) for time in case.times.by.values())
        return math - max(others)

    units = {"B": case.plan.together, "S": case.plan.cp, "micro_batch": 1}
    for axis, unit in units.items():
        found = solved_along(case, axis, batch, context)
        if (size := found["critical"]) is None:
            assert ahead(axis, 2**40 * unit) < 0
            continue
        assert ahead(axis, size) >= 0
        assert ahead(axis, 2 * size) >= 0
        if size > unit:
            assert ahead(axis, size - unit) < 0
            assert size - unit <= found["critical_exact"] <= size
        if axis == "S":
            fits = {**sweep.chips["b200"].memory}["hbm"].capacity_bytes
            held = [each.states + each.saved(m) * found["max_fit"] for each in case.held]
            more = [each.states + each.saved(m) * (found["max_fit"] + unit) for each in case.held]
            assert max(held) <= fits or found["max_fit"] == 0
            assert max(more) > fits


@pytest.mark.parametrize(("shard", "chips"), [("weights", 4), ("optimizer", 32), ("none", None)])
def test_replicas_that_share_states_hold_a_model_together(shard, chips):
    plan = {"shard": shard, "recompute": "selective"}
    found = along("chips", SMALL, "h100-sxm", 64, 8192, TWO, dp=8, **plan)
    assert (found["critical"], found["limit"]) == (chips, None if chips else "memory")
    for dp in (chips, chips // 2) if chips else (1024,):
        _, row = step_of(SMALL, "h100-sxm", dp * 4, 8192, TWO, dp=dp, **plan)
        assert row["fits"] == (dp == chips)


@pytest.mark.parametrize(
    ("model", "batch", "m", "shard"),
    [
        (SMALL, 64, 1, "weights"),
        (SMALL, 512, 1, "weights"),
        (SMALL, 64, 4, "gradients"),
        (LARGE, 16, 1, "weights"),
        ("mixtral-8x7b", 128, 2, "optimizer"),
    ],
)
def test_replicas_of_the_best_mix_are_those_of_closed_formulas(model, batch, m, shard):
    """As the book's X_opt, sqrt(B / F * N) on one network, but for whole sizes and all tensors."""
    chips, length = 32, 2048
    of = {"shard": shard, "tp": 2, "dp": chips // 2, "micro_batch": 2 * batch // (chips * m)}
    found = along("dp", model, "gb200", batch, length, **of)
    case, _ = step_of(model, "gb200", batch, length, **of)
    (link,) = case.place.links
    per_s = case.machine.peaks["bf16"], link.bytes_per_s * link.links

    def step(dp, micro_batch):
        keys = {**of, "tp": chips // dp, "dp": dp, "micro_batch": micro_batch}
        plan = checked(TrainingPlan, keys)
        return TrainingOracle(models.load(model).shape, plan, micro_batch * dp * m, length)

    def ahead(dp, micro_batch):
        oracle = step(dp, micro_batch)
        return oracle.flops / per_s[0] - oracle.network_bytes / per_s[1]

    mixes = [2**power for power in range(6)]
    sends = {dp: step(dp, batch // dp // m).network_bytes for dp in mixes if batch % (dp * m) == 0}
    assert found["critical"] == min(sends, key=lambda dp: sends[dp])
    least = [
        next((dp * m * units for units in range(1, 2**10) if ahead(dp, units) >= 0), None)
        for dp in mixes
    ]
    assert found["critical_network"] == min(each for each in least if each)


def test_micro_batches_hide_a_bubble():
    found = along("B", SMALL, "h100-sxm", 16, 8192, TWO, pp=16, dp=2)
    assert found["hides_bubble"] == 135 * 2


@pytest.mark.parametrize(
    ("shard", "fitting", "best", "ms"),
    [("weights", 20, "dp8-fsdp", 4925.6), ("optimizer", 19, "cp2-dp4", 4308.7)],
)
def test_auto_finds_the_fastest_split_that_fits(shard, fitting, best, ms):
    frame = rooflines.train(SMALL, "h100-sxm", B=64, S=8192, split="auto", chips=8, shard=shard)
    assert frame["fits"].sum() == fitting
    first = frame.row(0, named=True)
    assert first["split"] == best
    assert first["t_upper_s"] * 1e3 == pytest.approx(ms, abs=0.06)


def test_measured_steps_are_above_the_bound_and_peaks_above_the_footprint():
    found = list(training_page.measured_steps())
    assert len(found) == 43
    for each in found:
        assert each.measured_s > each.row["t_lower_s"]
        assert 0.91 <= each.peak_share <= 0.98


def test_one_number_estimates_a_model_left_out():
    steps = list(training_page.measured_steps())
    shipped = shipped_calibrations().training["b200/megatron"]["train"]
    assert training_page.training_fit(steps) == shipped
    errors = [training_page.judged_on(steps, *of) for of in ((LARGE, XL), (XL, LARGE))]
    assert errors == pytest.approx([0.023, 0.040], abs=5e-4)
    frame = rooflines.train(LARGE, "b200", B=16, S=4096, split={"tp": 8}, calibration=["megatron"])
    (row,) = frame.to_dicts()
    assert row["t_estimate_s"] == pytest.approx(shipped.times * row["t_upper_s"])
    assert row["t_estimate_p10_s"] < row["t_estimate_s"] < row["t_estimate_p90_s"]


def test_published_flops_are_those_counted():
    for row, own in training_page.published_tflops():
        assert own == pytest.approx(row["tflops"], rel=1.5e-3)


@pytest.mark.parametrize("row", training_page.RUNS["memory"], ids=lambda row: row["name"])
def test_memory_is_that_of_the_paper(row):
    """Layers keep scores, 5/2 N S^2, and two masks of D bytes; a parameter, 18 bytes of states."""
    shape, width, length, tp = training_page.gpt(row).shape, row["D"], 2048, 8
    tensors = saved_tensors(shape, TrainingPlan.model_validate({}), Fraction(2))
    kept = sum(each.elements("none") for name, each in tensors.items() if "embed" not in name)
    shared = 2 * (kept - 2 * row["heads"] + width)  # bytes of a token, with the masks
    whole = 10 * width  # of these not shared without sequence parallelism
    stages, runs = row["stages"], row["runs"]
    ahead = 1 + Fraction(stages - 1, stages * runs) if runs > 1 else Fraction(1)
    tokens = length * row["micro_batch"] * row["layers"] * ahead
    scores = 5 * row["heads"] * length
    states = Fraction(18 * 12 * row["layers"] * width**2, tp * stages)
    saved = tokens * (whole + Fraction(shared - whole + scores, tp))
    selective = tokens * shared / tp
    assert [states / GIB, saved / GIB, selective / GIB] == row["gib"]
    full = 2 * sum(each.elements("full") for name, each in tensors.items() if "embed" not in name)
    shares = [shared + scores, tp * whole + shared - whole, shared, tp * full]
    charted = [float(100 * tokens * each / tp / saved) for each in shares]
    assert charted == pytest.approx(row["percent"], abs=0.15)


@pytest.mark.parametrize(
    ("name", "text", "mfu", "mfu_full"),
    [
        ("22B", "1.42 s", 0.446 / 1.42, 0.323),
        ("22B", "1.1 s", 0.446 / 1.10, 0.417),
        ("175B", "18.13 s", 6.97 / 18.13, 0.390),
        ("175B", "13.75 s", 6.97 / 13.75, 0.514),
        ("530B", "37.83 s", 21.0 / 37.83, 0.560),
        ("1T", "71.49 s", 40.0 / 71.49, 0.563),
        ("530B", "60.1 s", 18.0 / 60.1, 125.7 / 312 * 3 / 4),
        ("llama-3.1-405b", "30.84M hours", 10.63 / 30.84, None),
        ("llama-3.1-8b", "5,762 tokens/s", None, 0.337),
        ("llama-3.1-8b", "6,667 tokens/s", None, 0.390),
    ],
)
def test_published_times_are_the_shares_of_the_peak_that_were_printed(name, text, mfu, mfu_full):
    """Of what was printed for 60.1 s, a quarter is forward passes again: no FLOP of the model."""
    (found,) = (
        each
        for each in training_page.published_runs()
        if (each.row["name"], each.text) == (name, text)
    )
    assert found.mfu < found.mfu_full < 1
    for own, printed in ((found.mfu, mfu), (found.mfu_full, mfu_full)):
        assert printed is None or own == pytest.approx(printed, rel=3e-3)


def test_shared_weights_are_gathered_in_time_from_the_books_batches():
    found = {name: training_page.gathered_from(*case) for name, case in training_page.FSDP.items()}
    assert found == {"16": "38,250", "4096": "3,480,750", "1024": "2,514,600"}


SHARDS = ["none", "optimizer", "gradients", "weights"]

POSSIBLE = st.fixed_dictionaries(
    {
        "tp": st.sampled_from([1, 2, 4]),
        "pp": st.sampled_from([1, 2, 4]),
        "dp": st.sampled_from([1, 2, 8]),
        "cp": st.sampled_from([1, 2]),
        "shard": st.sampled_from(SHARDS),
        "recompute": st.sampled_from(["none", "selective", "full"]),
        "save": st.sampled_from(["split", "gathered"]),
        "context": st.sampled_from(["ring", "heads"]),
    }
)


@check(50)
@given(
    POSSIBLE,
    st.sampled_from([SMALL, "mixtral-8x7b", "deepseek-v3", "gemma-3-27b"]),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([1024, 4096]),
)
def test_lower_is_at_most_in_turn_is_at_most_upper(plan, model, m, length):
    batch = plan["dp"] * m
    splits = [plan, *({**plan, "shard": shard} for shard in SHARDS if shard != plan["shard"])]
    try:
        sweep = sweep_on(
            model, "h100-sxm", "bf16", phase="train", splits=splits, thresholds=[],
            grid={"B": [batch, 2 * batch], "S": length}, network=[*TWO],
        )  # fmt: skip
    except RooflinesError:
        assume(condition=False)
    frame = StepTable(sweep).frame().collect()
    by_shard = {}
    for row in frame.iter_rows(named=True):
        assert row["t_lower_s"] <= row["t_ops_s"] * (1 + 1e-12)
        assert row["t_ops_s"] <= row["t_upper_s"] * (1 + 1e-12)
        assert 0 < row["mfu"] <= row["hfu"] * (1 + 1e-12) <= 1 + 1e-11
        assert row["mfu_ops"] <= row["mfu_full_ops"]
        by_shard[row["shard"], row["B"]] = row
    for shard in SHARDS:
        assert by_shard[shard, 2 * batch]["flops"] == 2 * by_shard[shard, batch]["flops"]
    states = [by_shard[shard, batch]["state_bytes"] for shard in SHARDS]
    assert states == sorted(states, reverse=True)


@check(100)
@given(
    POSSIBLE,
    st.sampled_from([SMALL, "mixtral-8x7b", LARGE]),
    st.sampled_from([1, 2, 8]),
    st.integers(1, 3),
    st.sampled_from([1, 2]),
    st.sampled_from([64, 1024, 4096]),
)
def test_a_step_is_that_of_closed_formulas(plan, model, ep, m, b, length):  # noqa: PLR0913, PLR0917, a question
    plan = {**plan, "ep": ep, "micro_batch": b}
    if plan["save"] == "gathered":
        plan["recompute"] = "selective"
    batch = plan["dp"] * b * m
    try:
        case, row = step_of(model, "gb200", batch, length, ("nvlink",), **plan)
    except RooflinesError:
        assume(condition=False)
    oracle = TrainingOracle(case.model.shape, case.plan, batch, length)
    assert work_of(case, "flops", batch, length) == oracle.flops
    assert work_of(case, "network_bytes", batch, length) == oracle.network_bytes
    machine = case.machine
    (link,) = case.place.links
    rates = {
        "flops": ("t_math_s", machine.peaks["bf16"]),
        "memory_bytes": ("t_memory_s", machine.level.bytes_per_s),
        "network_bytes": ("t_network_s", link.bytes_per_s * link.links),
    }
    for column, (seconds, rate) in rates.items():
        work = float(getattr(oracle, column))
        assert row[column] == pytest.approx(work, rel=1e-12)
        assert row[seconds] == pytest.approx(work / float(rate), rel=1e-12)
    per_s = [rate for _, rate in rates.values()]
    stages = [oracle.in_turn(stage, per_s) for stage in range(case.plan.pp)]
    for seconds, each in zip(("t_ops_s", "t_upper_s"), zip(*stages, strict=True), strict=True):
        assert row[seconds] == pytest.approx(float(max(each)), rel=1e-12)
    held = [oracle.footprint(stage) for stage in range(case.plan.pp)]
    assert row["footprint_bytes"] == pytest.approx(float(max(map(sum, held))), rel=1e-12)
    for (stage, _), memory in zip(case.workload.stages, case.held, strict=True):
        states, saved = held[stage.index]
        assert (memory.states, memory.saved(m) * length) == (states, saved)


def test_a_linear_kernel_is_three_operations():
    """`BD,DF->BF`, `BF,DF->BD` and `BD,BF->DF`, the last one with gradients in fp32."""
    case, _ = step_of(SMALL, "h100-sxm", 1, 1024)
    rows, into, out = 1024, 14_336, 4096  # B, D and F of down
    extents = case.extents(case.step(1, 1024))
    down = [kernel for kernel in case.kernels if kernel.name in DOWN]
    assert len(down) == 3
    moved = sum(
        kernel.work(column).at(extents)
        for kernel in down
        for column in ("memory_bytes", "activation_bytes")
    )
    assert moved == 2 * (3 * rows * (into + out) + 2 * into * out) + 4 * into * out
    assert sum(kernel.work("flops").at(extents) for kernel in down) == 3 * 2 * rows * into * out


DOWN = ("down-fwd", "down-dgrad", "down-wgrad")


@pytest.mark.parametrize(
    "plan", [{"dp": 2, "shard": "weights"}, {"pp": 2, "dp": 2}, {"tp": 2, "recompute": "full"}]
)
def test_a_row_is_the_sum_of_its_kernels(plan):
    sweep = sweep_of("mixtral-8x7b", "h100-sxm", 8, 4096, **plan)
    (row,) = StepTable(sweep).frame().collect().to_dicts()
    kernels = KernelTable(sweep).frame().collect()
    for column in ("flops", "weight_bytes", "memory_bytes", "network_bytes", "t_math_s"):
        whole = (kernels["count"] * kernels["runs"] * kernels[column]).sum() / row["pp"]
        assert whole == pytest.approx(row[column], rel=1e-12)
    if row["pp"] == 1:
        whole = (kernels["count"] * kernels["runs"] * kernels["t_ops_s"]).sum()
        assert whole == pytest.approx(row["t_ops_s"], rel=1e-12)


def test_a_sweep_lists_training_among_its_rows_with_a_reason_for_what_is_left_out():
    found = model_sweep(
        {
            "models": [SMALL],
            "phase": "train",
            "grid": {"B": [8, 12], "S": [1000, 4096]},
            "dtypes": "bf16",
            "chips": ["h100-sxm"],
            "splits": [{"dp": 8}, {"cp": 16}, {"tp": 3}, {"dp": 2, "cp": 3, "recompute": "full"}],
            "tokens": 15e12,
        }
    )
    frame = StepTable(found).frame().collect()
    assert frame.select("split", "B", "S").rows() == [("dp8", 8, 1000), ("dp8", 8, 4096)]
    assert {each.reason for each in found.skipped} == {
        "B is no multiple of 8, dp * micro_batch",
        "8 chips at most on one nvlink",
        "tp is 3, which does not divide the 32 query heads",
        "S is no multiple of 3, cp",
    }
    assert sum(each.rows for each in found.skipped) + found.rows == 4 * 4
    days = frame["days"] * 86_400 * frame["B"] * frame["S"]
    assert days.to_list() == pytest.approx([15e12 * time_s for time_s in frame["t_ops_s"]])


def test_a_config_lists_every_split_and_jobs_read_it_back():
    form = {
        "models": ["mixtral-8x7b"],
        "phase": "train",
        "grid": {"B": 32, "S": 4096},
        "dtypes": ["fp8", {"gradients": "bf16"}],
        "chips": ["h100-sxm"],
        "splits": "auto",
        "chips_each": 8,
        "recompute": "full",
        "optimizer": 4,
    }
    config = rooflines.load_config({"model-sweeps": {"every": form}})
    sweep = config.model_sweeps["every"]
    shape = models.load("mixtral-8x7b").shape
    fixed = checked(TrainingPlan, {"recompute": "full", "optimizer": 4})
    assert {split.name for split in sweep.config.splits} == {
        plan.name for plan in plans_of(shape, 8, fixed)
    }
    frame = StepTable(sweep).frame().collect()
    again = sweep_from(json.loads(json.dumps(recipe_of(sweep))))
    assert type(again) is type(sweep)
    assert StepTable(again).frame().collect().equals(frame)
    assert set(frame["recompute"]) == {"full"}


@pytest.mark.parametrize("by", ["kernel", "resource"])
def test_a_chart_shows_where_the_time_of_a_step_goes(by):
    form = {
        "models": ["mixtral-8x7b"],
        "phase": "train",
        "grid": {"B": [64, 256], "S": 4096},
        "dtypes": "bf16",
        "chips": ["h100-sxm"],
        "network": ["nvlink", "infiniband"],
        "splits": {"dp": 64},
        "shard": "weights",
    }
    config = rooflines.load_config({"model-sweeps": {"fsdp": form}})
    (chart,) = config.charts
    choice = {"by": by, "model": "mixtral-8x7b", "chip": "h100-sxm", "dtypes": "bf16"}
    choice |= {"split": "dp64-fsdp", "phase": "train", "S": 4096, "B": 64}
    found = time.KIND.view(of_config(config), "fsdp", ["h100-sxm"], choice)
    assert chart.chart == "time"
    assert "Training in bf16, dp64-fsdp, S = 4,096" in found.subtitle
    if by == "kernel":
        (row,) = StepTable(config.model_sweeps["fsdp"]).frame().filter(B=64).collect().to_dicts()
        drawn = found.data["parts"].filter(B=64)
        assert drawn["seconds"].sum() == pytest.approx(row["t_ops_s"])
        assert "collectives, optimizer" in drawn["family"]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"phase": ["train", "decode"]}, "lists train beside others"),
        ({"routing": "same"}, "routing is given, but is not of training"),
        ({"phase": "decode", "recompute": "full"}, "recompute is given, but is of training"),
        ({"phase": "decode", "splits": [{"pp": 2}]}, "is of training alone"),
        ({"phase": "decode", "thresholds": ["tp"]}, "lists tp, which is of training"),
        ({"splits": [{"tp": 1, "stages": 2}]}, "is no key here"),
    ],
)
def test_keys_of_another_phase_are_refused(keys, message):
    form = {"models": [SMALL], "phase": "train", "grid": {"B": 8, "S": 4096}, "dtypes": "bf16"}
    with pytest.raises((RooflinesError, ValueError), match=message):
        model_sweep({**form, "chips": ["h100-sxm"], **keys})


def every_plan(chips, experts):
    """All plans over a number of chips, whether possible or not."""
    sizes = [each for each in range(1, chips + 1) if chips % each == 0]
    for tp, pp, dp, cp in product(sizes, repeat=4):
        for ep in sizes if experts else [1]:
            if tp * pp * dp * cp == chips:
                yield {"tp": tp, "pp": pp, "dp": dp, "cp": cp, "ep": ep}


@check(100)
@given(
    place=st.sampled_from(
        [("h100-sxm", ["nvlink", "infiniband"]), ("b200", ["nvlink"]), ("mi300x", None)]
    ),
    model=st.sampled_from([SMALL, "qwen3-0.6b", "mixtral-8x7b"]),
    chips=st.sampled_from([1, 2, 4, 6, 8]),
    sizes=st.fixed_dictionaries(
        {"B": st.integers(1, 96), "S": st.sampled_from([12, 510, 4096, 65_536])}
    ),
    options=st.fixed_dictionaries(
        {
            "shard": st.sampled_from(SHARDS),
            "recompute": st.sampled_from(["none", "selective", "full"]),
            "micro_batch": st.sampled_from([1, 2]),
        }
    ),
)
def test_auto_ranks_plans_as_one_question_for_each(place, model, chips, sizes, options):
    chip, network = place
    asked = {**sizes, **options, "network": network if chips > 1 else None}
    found = []
    for plan in every_plan(chips, experts=model == "mixtral-8x7b"):
        with suppress(RooflinesError):
            (row,) = rooflines.train(model, chip, split=plan, **asked).to_dicts()
            fits = row["fits"] is False
            found.append((fits, row["t_upper_s"], row["footprint_bytes"], row["split"]))
    try:
        rows = rooflines.train(model, chip, split="auto", chips=chips, **asked)
    except RooflinesError:
        assert not found
        return
    misfits = rows["fits"].eq_missing(other=False)
    ranked = zip(misfits, rows["t_upper_s"], rows["footprint_bytes"], rows["split"], strict=True)
    assert [*ranked] == sorted(found)


@pytest.mark.parametrize(("change", "message"), case("wrong-questions")["training"])
def test_what_cannot_be_trained_is_refused_with_a_reason(change, message):
    asked = {"model": SMALL, "chip": "h100-sxm", "B": 8, "S": 1024, **change}
    with pytest.raises(RooflinesError) as caught:
        rooflines.train(asked.pop("model"), asked.pop("chip"), **asked)
    assert message in str(caught.value)
    assert "fix:" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "fix"),
    [
        ({"B": 9, "split": {"dp": 8}}, "ask for a multiple of it"),
        ({"model": "deepseek-v3.2"}, "ask for another model"),
        ({"split": {"tp": 3}}, "ask for another split"),
    ],
)
def test_the_fix_is_of_what_cannot_be_trained(change, fix):
    asked = {"model": SMALL, "chip": "h100-sxm", "B": 8, "S": 1024, **change}
    with pytest.raises(RooflinesError, match=f"fix: {fix}"):
        rooflines.train(asked.pop("model"), asked.pop("chip"), **asked)


ASKED = ["train", "h100-sxm", SMALL, "B=8", "S=8k"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--split", "dp"], "split has 'dp', which is no KEY=VALUE"),
        (["--split", "dp=8,dp=4"], "split gives 'dp' twice"),
        (["--split", "dp=8", "--tokens", "0"], "tokens is '0', which is not above zero"),
        (["--split", "auto"], "--split is auto, which needs one chip"),
        (["T=3"], "T"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_message(words, message, capsys):
    assert message in refused(capsys, *ASKED, *words)


def test_the_answer_names_what_its_times_leave_out(capsys):
    text = said(capsys, *ASKED, "--split", "tp=8")
    assert "839 ms without" in text or "840 ms without" in text
    assert "critical" not in text
    assert "compute-bound" in text


def test_no_line_ends_between_a_time_and_its_unit(capsys):
    text = said(capsys, *ASKED, "--split", "dp=8", "--shard", "weights")
    assert "62.3 ms, by input" in text
    assert not re.search(r"\d\n\s+[mµn]?s\b", text)
