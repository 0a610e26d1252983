"""A step of training: worked values, laws, and the memory of measured runs."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
import training_page
from case_files import case
from command_line import refused, said
from hypothesis import assume, given
from hypothesis import strategies as st
from random_sweeps import check
from training_oracle import TrainingOracle

import rooflines
from rooflines import models
from rooflines.basics.errors import RooflinesError
from rooflines.catalogue.chips import chip_entries
from rooflines.catalogue.forms import checked
from rooflines.training.limits import (
    hiding_micro_batches,
    largest_micro_batch,
    least_tokens,
    longest_context,
)
from rooflines.training.memory import saved_tensors
from rooflines.training.plan import TrainingPlan
from rooflines.training.question import COLUMNS, plans, training_row, training_step

GIB = 2**30
CASES = Path(__file__).parent / "cases"


def step_of(model, chip, B, S, network=None, layers=None, **plan):  # noqa: N803, PLR0913, PLR0917, a question
    """A step without the time of hops."""
    cut = {"model": model, "layers": layers}
    asked = training_page.model_of(cut) if layers else models.load(model)
    step = training_step(asked, chip_entries()[chip], B, S, plan, network=network)
    links = tuple(replace(link, hop_latency_s=Fraction(0)) for link in step.setting.links)
    return replace(step, setting=replace(step.setting, links=links))


TWO = ("nvlink", "infiniband")
SMALL, LARGE = "llama-3.1-8b", "llama-3.1-70b"
FSDP = {"dp": 8, "shard": "weights"}

WORKED = case("training")


def decimals(number):
    return len(str(number).partition(".")[2])


@pytest.mark.parametrize("name", WORKED)
def test_a_step_takes_what_was_worked_out(name):
    case = WORKED[name]
    of = (case["model"], case["chip"], case["B"], case["S"])
    step = step_of(*of, case.get("network"), case.get("layers"), **case["plan"])
    works = case.get("works", {})
    assert {column: f"{float(step.work(column)):.6g}" for column in works} == works
    seconds = {
        **{bound: step.seconds[bound] for bound in ("memory", "network")},
        "math": step.seconds["compute"],
        "ops": step.t_ops_s,
        "upper": step.t_upper_s,
    }
    for key, value in case.get("ms", {}).items():
        assert float(seconds[key]) * 1e3 == pytest.approx(value, abs=0.6 * 10 ** -decimals(value))
    for found, gib in zip(step.footprint, case["gib"], strict=True):
        assert float(found) / GIB == pytest.approx(gib, abs=0.6 * 10 ** -decimals(gib))


@pytest.mark.parametrize(
    ("model", "elements"), [(SMALL, 69_696), (LARGE, 137_344), ("mixtral-8x7b", 120_912)]
)
def test_a_layer_saves_so_many_elements_of_a_token(model, elements):
    saved = saved_tensors(models.load(model).shape, checked(TrainingPlan, {}), Fraction(2))
    layer = (each.elements("none") for name, each in saved.items() if "embed" not in name)
    assert sum(layer) == elements


def test_inputs_saved_whole_save_gathers_and_take_memory():
    split = step_of(LARGE, "b200", 8, 4096, None, 12, tp=4, dp=2)
    whole = step_of(LARGE, "b200", 8, 4096, None, 12, tp=4, dp=2, save="gathered")
    width, micro_batches, activation_bytes = 8192, 4, 2
    unit = Fraction(3, 4) * 4096 * width * activation_bytes  # a gather between 4 chips
    less = split.work("network_bytes") - whole.work("network_bytes")
    assert less == (2 * 12 + 1) * unit * micro_batches  # of qkv and gate-up in 12 layers, and head
    more = whole.footprint.saved - split.footprint.saved
    assert more == (2 * 12 + 1) * unit


def test_sums_of_a_softmax_have_four_bytes_in_any_dtype():
    shape, plan = models.load(SMALL).shape, checked(TrainingPlan, {})
    two, four = (saved_tensors(shape, plan, Fraction(size))["attention"].kept for size in (2, 4))
    assert two - four == 32 * 4 / 2 - 32 * 4 / 4


def test_a_row_has_the_columns_that_are_explained():
    row = training_row(step_of(SMALL, "h100-sxm", 8, 8192, **FSDP))
    own = {"plan", "B", "S", *TrainingPlan.model_fields} - {"save", "context"}
    assert row.keys() - own == COLUMNS.keys()


def test_a_step_is_compute_bound_from_a_sequence_length_on():
    step = step_of(SMALL, "h100-sxm", 8, 8192, **FSDP)
    assert (least_tokens(step, "network"), least_tokens(step, "memory")) == (2583, 623)
    far = step_of(SMALL, "h100-sxm", 1024, 8192, TWO, dp=1024, shard="weights")
    assert least_tokens(far, "network") == 3258
    assert longest_context(step) == 13_083
    assert longest_context(step_of(SMALL, "h100-sxm", 8, 8192, **FSDP, recompute="full")) == 91_828


@pytest.mark.parametrize(("recompute", "most"), [("none", 1), ("selective", 2), ("full", 11)])
def test_recomputation_makes_room_for_larger_micro_batches(recompute, most):
    step = step_of(SMALL, "h100-sxm", 8, 8192, **FSDP, recompute=recompute)
    assert largest_micro_batch(step) == most


def test_micro_batches_hide_a_bubble():
    assert hiding_micro_batches(checked(TrainingPlan, {"pp": 16}), Fraction(1, 10)) == 135


@pytest.mark.parametrize(
    ("shard", "fitting", "best", "ms"),
    [("weights", 20, "dp8", 4925.6), ("optimizer", 19, "cp2-dp4", 4308.7)],
)
def test_auto_finds_the_fastest_split_that_fits(shard, fitting, best, ms):
    frame = rooflines.train(SMALL, "h100-sxm", B=64, S=8192, split="auto", chips=8, shard=shard)
    assert frame["fits"].sum() == fitting
    first = frame.row(0, named=True)
    assert first["plan"] == best
    assert first["t_upper_s"] * 1e3 == pytest.approx(ms, abs=0.06)


def test_measured_steps_are_above_the_bound_and_peaks_above_the_footprint():
    found = list(training_page.measured_steps())
    assert len(found) == 43
    for each in found:
        assert each.measured_s > each.step.t_lower_s
        assert 0.91 <= each.peak_share <= 0.98


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


POSSIBLE = st.fixed_dictionaries(
    {
        "tp": st.sampled_from([1, 2, 4]),
        "pp": st.sampled_from([1, 2, 4]),
        "dp": st.sampled_from([1, 2, 8]),
        "cp": st.sampled_from([1, 2]),
        "shard": st.sampled_from(["none", "optimizer", "gradients", "weights"]),
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
    chip, asked = chip_entries()["h100-sxm"], models.load(model)
    try:
        step = training_step(asked, chip, plan["dp"] * m, length, plan)
    except RooflinesError:
        assume(condition=False)
    assert step.t_lower_s <= step.t_ops_s <= step.t_upper_s
    doubled = training_step(asked, chip, 2 * plan["dp"] * m, length, plan)
    assert doubled.work("flops") == 2 * step.work("flops")
    sizes = [
        training_step(
            asked, chip, plan["dp"] * m, length, {**plan, "shard": shard}
        ).footprint.states
        for shard in ("none", "optimizer", "gradients", "weights")
    ]
    assert sizes == sorted(sizes, reverse=True)
    row = training_row(step)
    assert 0 < row["mfu"] <= row["hfu"] <= 1
    assert row["mfu"] <= row["mfu_full"]


@check(150)
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
    asked = models.load(model)
    try:
        step = training_step(
            asked, chip_entries()["gb200"], plan["dp"] * b * m, length, plan, network=["nvlink"]
        )
    except RooflinesError:
        assume(condition=False)
    oracle = TrainingOracle(asked.shape, step.setting.plan, plan["dp"] * b * m, length)
    assert step.work("flops") == oracle.flops
    assert step.work("network_bytes") == oracle.network_bytes
    assert float(step.work("memory_bytes")) == pytest.approx(float(oracle.memory_bytes), rel=1e-12)
    for stage in step.stages:
        assert step.held(stage) == oracle.footprint(stage.index)


def test_a_linear_kernel_is_three_operations():
    """`BD,DF->BF`, `BF,DF->BD` and `BD,BF->DF`, the last one with gradients in fp32."""
    step = step_of(SMALL, "h100-sxm", 1, 1024)
    (stage,) = step.stages
    rows, into, out = 1024, 14_336, 4096  # B, D and F of down
    down = [run.kernel for run in step.runs(stage) if run.kernel.name == "down"]
    moved = sum(
        kernel.work(column).at(step.extents)
        for kernel in down
        for column in ("memory_bytes", "activation_bytes")
    )
    assert moved == 2 * (3 * rows * (into + out) + 2 * into * out) + 4 * into * out
    assert (
        sum(kernel.work("flops").at(step.extents) for kernel in down) == 3 * 2 * rows * into * out
    )


def test_auto_is_the_best_of_all_plans():
    shape = models.load("mixtral-8x7b").shape
    found = {plan.name for plan in plans(shape, 8, 8, 4096, checked(TrainingPlan, {}))}
    frame = rooflines.train("mixtral-8x7b", "h100-sxm", B=8, S=4096, split="auto", chips=8)
    assert found == set(frame["plan"])
    fitting = frame.filter("fits")
    assert fitting["t_upper_s"].is_sorted()


BAD = [
    ({"B": 9, "split": {"dp": 8}}, "B is 9, no multiple of dp * micro_batch, 8"),
    ({"split": {"pp": 33}}, "pp is 33 runs"),
    ({"split": {"pp": 3, "interleave": 2}}, "interleave is 2"),
    ({"split": {"tp": 3}}, "tp is 3"),
    ({"S": 1023, "split": {"cp": 2}}, "cp is 2, which does not divide S"),
    ({"split": {"ep": 2, "dp": 8}}, "ep is 2, but the model has no experts"),
    ({"split": {"dp": 16}, "network": ("nvlink",), "B": 16}, "split cannot be split over 16 chips"),
    ({"split": {"dp": 2}, "shard": "zero"}, "shard is 'zero'"),
    ({"split": {"dp": 2}, "recompute": "all"}, "recompute is 'all'"),
    ({"split": "auto"}, "chips is not given"),
    ({"split": {"dp": 2}, "dtypes": "fp7"}, "dtypes is 'fp7'"),
    ({"chip": "h100"}, "chip is 'h100'"),
    ({"model": "qwen3-next-80b-a3b"}, "model"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_what_cannot_be_trained_is_refused_with_a_reason(change, message):
    asked = {"model": SMALL, "chip": "h100-sxm", "B": 8, "S": 1024, **change}
    with pytest.raises(RooflinesError) as caught:
        rooflines.train(asked.pop("model"), asked.pop("chip"), **asked)
    assert message in str(caught.value)
    assert "fix:" in str(caught.value)


ASKED = ["train", "h100-sxm", SMALL, "B=8", "S=8k"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--split", "dp"], "--split has 'dp', which is no KEY=VALUE"),
        (["--split", "dp=8,dp=4"], "--split gives 'dp' twice"),
        (["--split", "dp=8", "--tokens", "0"], "--tokens is 0, which is not above zero"),
        (["--split", "auto"], "chips is not given"),
        (["T=3"], "the question has sizes B, S, T"),
        (["b200"], "the question asks for no single chip and model"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_message(words, message, capsys):
    assert message in refused(capsys, *ASKED, *words)


def test_the_answer_names_what_its_times_leave_out(capsys):
    text = said(capsys, *ASKED, "--split", "tp=8")
    assert "at least, 840 ms without overlap" in text
    assert "from S = 35 on, against network" in text
