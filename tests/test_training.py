"""A step of training: worked values, thresholds, laws, and every plan against an oracle."""

import json
from contextlib import suppress
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import pytest
import training_page
from case_files import case
from hypothesis import given
from hypothesis import strategies as st
from oracle import training_table
from oracle.plans import Plan
from plain_files import plain_file
from random_sweeps import check

import rooflines
from rooflines import models
from rooflines.basics.errors import RooflinesError
from rooflines.charts.chart_data import of_config
from rooflines.charts.kinds import time
from rooflines.evaluation.row_frames import KernelTable, StepTable
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.hardware.entry_forms import validate_entry
from rooflines.models.architecture import Gqa
from rooflines.solvers.threshold_frames import sweep_thresholds
from rooflines.sweep.every_split import plans_of
from rooflines.sweep.one_chip import sweep_on
from rooflines.sweep.recipes import recipe_of
from rooflines.sweep.recipes import sweep_of as sweep_from
from rooflines.training.parallel_plan import TrainingPlan
from rooflines.training.stage_memory import saved_tensors

GIB = 2**30


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
    sweep = sweep_of(*of, **plan)
    (case,) = sweep.cases
    (row,) = StepTable(sweep).frame().collect().iter_rows(named=True)
    return case, row


def work_of(case, column, batch, context):
    return case.work(column).at(case.extents(case.step(batch, context)))


TWO = ("nvlink", "infiniband")
SMALL, LARGE = "llama-3.1-8b", "llama-3.1-70b"

WORKED = case("training")
NARROW = WORKED["saved in a wider format"]["dtypes"]


def decimals(number):
    return len(str(number).partition(".")[2])


@pytest.mark.parametrize("name", [name for name in WORKED if "gib" in WORKED[name]])
def test_a_step_takes_what_was_worked_out(name):
    of = WORKED[name]
    sizes = of["model"], of["chip"], of["B"], of["S"]
    dtypes = of.get("dtypes", "bf16")
    case, row = step_of(*sizes, of.get("network"), of.get("layers"), dtypes, **of["plan"])
    works = of.get("works", {})
    assert {column: f"{row[column]:.6g}" for column in works} == works
    exact = {column: f"{float(work_of(case, column, *sizes[2:])):.6g}" for column in works}
    assert exact == works
    times = {"ops": "t_serial_s", "upper": "t_upper_s"}
    for key, value in of.get("ms", {}).items():
        found = row[times.get(key, f"t_{key}_s")] * 1e3
        assert found == pytest.approx(value, abs=0.6 * 10 ** -decimals(value))
    for column, gib in zip(("state_bytes", "saved_bytes"), of["gib"], strict=True):
        assert row[column] / GIB == pytest.approx(gib, abs=0.6 * 10 ** -decimals(gib))


def test_sums_of_a_softmax_have_four_bytes_in_any_dtype():
    shape, plan = models.load(SMALL).shape, validate_entry(TrainingPlan, {})
    two, four = (
        saved_tensors(shape, plan, Fraction(size))["attention"].required for size in (2, 4)
    )
    assert two - four == 32 * 4 / 2 - 32 * 4 / 4


def along(axis, *of, **plan):
    sweep = sweep_of(*of, **plan)
    config = sweep.config.model_copy(update={"thresholds": [axis]})
    entries = sweep.chips, sweep.dtypes, sweep.calibrations, sweep.models
    (row,) = sweep_thresholds(type(sweep)(sweep.name, config, *entries)).to_dicts()
    return row


@pytest.mark.parametrize("name", [name for name in WORKED if "along" in WORKED[name]])
def test_thresholds_of_a_step_are_those_worked_out(name):
    of = WORKED[name]
    question = of["model"], of["chip"], of["B"], of["S"], of.get("network")
    plan = {**of["plan"], "dtypes": of.get("dtypes", "bf16")}
    for axis, known in of["along"].items():
        found = along(axis, *question, **plan)
        assert {key: found[key] for key in known} == known
        if "critical" in known:
            assert abs(found["critical"] - found["critical_exact"]) < 1
    if "micro_batch" in of["along"]:
        _, row = step_of(*question, **plan)
        assert row["max_micro_batch"] == of["along"]["micro_batch"]["max_fit"]


def test_what_fills_a_chip_to_the_last_byte_fits(monkeypatch):
    plain = CHIPS["h100-sxm"]
    for context, micro_batch in product(range(25_270, 25_290, 5), (1, 3)):
        sizes, plan = (3, context), {"cp": 5, "recompute": "full", "micro_batch": micro_batch}
        _, row = step_of("qwen3-0.6b", "h100-sxm", *sizes, **plan)
        level = plain.memory["hbm"].model_copy(update={"capacity_bytes": row["footprint_bytes"]})
        monkeypatch.setitem(CHIPS, "full", plain.model_copy(update={"memory": {"hbm": level}}))
        _, full = step_of("qwen3-0.6b", "full", *sizes, **plan)
        found = full["fits"], full["max_S"], full["max_micro_batch"]
        assert found == (True, context, micro_batch)


@pytest.mark.parametrize(("shard", "chips"), [("weights", 4), ("optimizer", 16), ("none", None)])
def test_replicas_that_share_states_hold_a_model_together(shard, chips):
    plan = {"shard": shard, "recompute": "selective"}
    found = along("chips", SMALL, "h100-sxm", 64, 8192, TWO, dp=8, **plan)
    assert (found["critical"], found["limit"]) == (chips, None if chips else "memory")
    for dp in (chips, chips // 2) if chips else (1024,):
        _, row = step_of(SMALL, "h100-sxm", dp * 4, 8192, TWO, dp=dp, **plan)
        assert row["fits"] == (dp == chips)


def test_the_first_of_four_stages_holds_what_four_micro_batches_save():
    """At S = 16,384 90.3 GB without replicas, 69.9 GB with two; one micro-batch were 57.6 GB."""
    plan = {"pp": 4, "dp": 8, "shard": "weights", "recompute": "selective"}
    assert along("chips", SMALL, "h100-sxm", 64, 16_384, TWO, **plan)["critical"] == 8


EVERY_LAYOUT: dict[str, Any] = {
    "phase": "train",
    "every": True,
    "search": "cp",
    "interleave": 1,
    "micro_batch": 1,
    "shard": "optimizer",
    "recompute": "none",
}
"""Every layout once, with the other keys of a plan at their defaults."""


@pytest.mark.parametrize(
    ("shard", "fitting", "best", "ms"),
    [("weights", 20, "dp8-fsdp", 4925.6), ("optimizer", 19, "cp2-dp4", 4308.7)],
)
def test_auto_finds_the_fastest_split_that_fits(shard, fitting, best, ms):
    asked = {**EVERY_LAYOUT, "shard": shard, "by": "t_upper_s"}
    frame = rooflines.best_splits("h100-sxm", SMALL, B=64, S=8192, chips=8, **asked)
    assert frame["fits"].sum() == fitting
    first = frame.row(0, named=True)
    assert first["split"] == best
    assert first["t_upper_s"] * 1e3 == pytest.approx(ms, abs=0.06)


SHARDS = ["none", "optimizer", "gradients", "weights"]


def kernel_of(name, *of, **plan):
    kernels = KernelTable(sweep_of(*of, **plan)).frame().collect()
    (row,) = kernels.filter(group=name).to_dicts()
    return row


def test_stages_in_a_group_of_the_inner_network_send_over_that():
    """Of four stages on chips 0 to 15, in groups of 8, the second sends to the third outside."""
    send = kernel_of("send", SMALL, "h100-sxm", 4, 1024, TWO, pp=4, dp=4)
    one_way = 1024 * 4096 * 2
    assert send["network_bytes"] == 2 * one_way * 3 / 4
    assert send["t_network_s"] == 2 * one_way / 4 / 5e10


def test_chips_of_tp_compute_the_only_key_value_head_as_often_as_they_have_it():
    sizes = {"name": "one", "layers": 1, "D": 64, "V": 100, "mlp": {"F": 64}}
    one, two = (
        kernel_of(
            "qkv-fwd",
            {**sizes, "attention": {"N": 8, "K": heads, "H": 8}},
            *("h100-sxm", 1, 128),
            tp=2 * heads,
        )["flops"]
        for heads in (1, 2)
    )
    assert one == 2 * 128 * 64 * (4 + 2 * 1) * 8
    assert two == 2 * 128 * 64 * (2 + 2 * 1) * 8


@pytest.mark.parametrize(("heads", "copied"), [(1, 1), (2, 1), (4, 1), (8, 2)])
def test_chips_of_cp_hand_on_every_key_value_head_that_a_chip_of_tp_has(heads, copied):
    """Of 128 tokens a chip has 64, of a head 8 elements of keys and 4 of values, in two bytes."""
    attention = {"N": 8, "K": heads, "H": 8, "v": 4}
    model = {
        "name": "few",
        "layers": 1,
        "D": 64,
        "V": 100,
        "mlp": {"F": 64},
        "attention": attention,
    }
    own, queries = copied * (8 + 4), 8 // 4 * (8 + 4)
    for context, sent in (("ring", 64 * own * 2), ("heads", 64 * (own + queries) * 2 / 2)):
        forward, backward = (
            kernel_of(f"attention-{of}", model, "h100-sxm", 1, 128, tp=4, cp=2, context=context)
            for of in ("fwd", "bwd")
        )
        assert forward["network_bytes"] == sent
        assert backward["network_bytes"] == sent * (2 if context == "ring" else 1)


def test_results_of_experts_are_sent_back_in_a_dtype_of_their_own():
    of = "mixtral-8x7b", "h100-sxm", 8, 1024
    two, four = (
        kernel_of("experts-fwd", *of, dp=8, ep=8, dtypes={"combine": dtype})["network_bytes"]
        for dtype in ("bf16", "fp32")
    )
    assert four == pytest.approx(1.5 * two)


def test_all_pairs_of_tokens_are_those_of_layers_with_windows_too():
    model, length = models.load("gemma-3-27b"), 32_768
    _, row = step_of("gemma-3-27b", "b200", 8, length, dp=8)
    flops = row["flops"] * row["mfu_full"] / row["mfu"] / length  # of a token
    own, heads, width = model.parameters(), 32, 128
    weights = own.attention + own.mlp + own.table
    pairs = 12 * model.shape.layers * heads * width * length
    assert flops == pytest.approx(6 * weights + pairs, rel=1e-9)


ALL_CHOSEN = {
    "name": "all-chosen", "layers": 4, "D": 4096, "V": 32_000,
    "attention": {"N": 32, "K": 8, "H": 128}, "moe": {"E": 8, "k": 8, "Fe": 2048},
}  # fmt: skip


@pytest.mark.parametrize("plan", [{}, {"dp": 8, "ep": 8}, {"tp": 2, "dp": 4, "ep": 4}])
def test_every_expert_is_read_where_every_one_is_chosen(plan):
    sweep = sweep_of(ALL_CHOSEN, "h100-sxm", 64, 1024, **plan)
    (experts,) = KernelTable(sweep).frame().filter(group="experts-fwd").collect().to_dicts()
    assert experts["weight_bytes"] == 2 * 3 * 4096 * 2048 * 8 / plan.get("ep", 1)
    for axis in ("S", "B", "micro_batch"):
        assert along(axis, ALL_CHOSEN, "h100-sxm", 64, 1024, **plan)["critical"]


@pytest.mark.parametrize("save", ["split", "gathered"])
def test_what_is_saved_in_any_format_is_beside_what_kernels_hand_over(save):
    rows = [
        step_of("llama-3.1-70b", "h100-sxm", 64, 128, dtypes=dtypes, tp=8, save=save)[1]
        for dtypes in ("bf16", {"weights": "bf16", "saved": "fp8"})
    ]
    split = step_of("llama-3.1-70b", "h100-sxm", 64, 128, tp=8)[1]
    assert {row["activation_bytes"] for row in rows} == {split["activation_bytes"]}
    assert all(row["t_lower_s"] < row["t_serial_s"] for row in rows)


@pytest.mark.parametrize(("recompute", "repeated"), [("none", 3.5 / 3), ("full", 4.5 / 4)])
def test_hfu_counts_the_scores_that_fused_attention_repeats(recompute, repeated):
    plan = {"dp": 8, "recompute": recompute}
    _, row = step_of(SMALL, "h100-sxm", 8, 8192, **plan)
    attention = 32 * 4 * 32 * 128 * 8192 * 8193 / 2 * (4 if recompute == "full" else 3)
    others = row["flops"] - attention
    computed = row["hfu"] * row["t_lower_s"] / row["t_math_s"] * row["flops"]
    assert computed == pytest.approx(others + repeated * attention, rel=1e-12)


MIXTRAL: dict[str, Any] = {"models": ["mixtral-8x7b"], "phase": "train", "chips": ["h100-sxm"]}


def test_a_config_lists_every_split_and_jobs_read_it_back():
    fixed = {"recompute": "full", "optimizer": 4}
    form = {**MIXTRAL, "grid": {"B": 32, "S": 4096}, "dtypes": ["fp8", {"gradients": "bf16"}]}
    form |= {"splits": "auto", "num_chips": 8, **fixed}
    config = rooflines.load_config({"model-sweeps": {"every": form}})
    sweep = config.model_sweeps["every"]
    plans = plans_of(models.load("mixtral-8x7b").shape, 8, validate_entry(TrainingPlan, fixed))
    assert {split.name for split in sweep.config.splits} == {plan.name for plan in plans}
    frame = StepTable(sweep).frame().collect()
    again = sweep_from(json.loads(json.dumps(recipe_of(sweep))))
    assert type(again) is type(sweep)
    assert StepTable(again).frame().collect().equals(frame)
    assert set(frame["recompute"]) == {"full"}


def test_auto_stands_for_every_plan_that_some_model_allows():
    catalogue = plain_file("models.yaml")["models"]
    names = ["qwen3-0.6b", "mixtral-8x7b", "llama-3.1-405b"]  # 28, 32, 126 layers
    form: dict[str, object] = {"models": names, "phase": "train", "chips": ["b200"]}
    form |= {
        "dtypes": "bf16",
        "splits": "auto",
        "num_chips": 12,
        "grid": {"B": 48, "S": 3072},
        "recompute": "full",
    }
    form |= {"network": "infiniband"}
    sweep = rooflines.load_config({"model-sweeps": {"every": form}}).model_sweeps["every"]
    allowed = {
        name: {
            training_table.plan_name(plan)
            for keys in every_plan(12, experts="moe" in catalogue[name])
            for plan in [Plan(**keys, recompute="full")]
            if not training_table.impossible(catalogue[name], plan)
        }
        for name in names
    }
    assert {split.name for split in sweep.config.splits} == set().union(*allowed.values())
    rows = StepTable(sweep).frame().collect()
    for name in names:
        assert set(rows.filter(model=name)["split"]) == allowed[name]


@pytest.mark.parametrize(
    ("by", "stages"), [("kernel", 1), ("resource", 1), ("kernel", 4), ("resource", 4)]
)
def test_a_chart_shows_where_the_time_of_a_step_goes(by, stages):
    form = {**MIXTRAL, "grid": {"B": [64, 256], "S": 4096}, "dtypes": "bf16", "network": [*TWO]}
    form |= {"splits": {"dp": 64 // stages, "pp": stages}, "shard": "weights"}
    config = rooflines.load_config({"model-sweeps": {"fsdp": form}})
    (chart,) = config.charts
    sweep = config.model_sweeps["fsdp"]
    (split,) = (split.name for split in sweep.config.splits)
    choice = {"by": by, "model": "mixtral-8x7b", "chip": "h100-sxm", "dtypes": "bf16"}
    choice |= {"split": split, "phase": "train", "S": 4096, "B": 64}
    found = time.KIND.view(of_config(config), "fsdp", ["h100-sxm"], choice)
    assert chart.chart == "time"
    assert f"Training in bf16, {split}, S = 4,096" in found.subtitle
    (row,) = StepTable(sweep).frame().filter(B=64).collect().to_dicts()
    kernels = KernelTable(sweep).frame().filter(B=64).collect()
    of_all_stages = (kernels["count"] * kernels["runs"] * kernels["t_serial_s"]).sum()
    if by == "kernel":
        drawn = found.data["parts"].filter(B=64)
        assert drawn["seconds"].sum() == pytest.approx(of_all_stages / stages)
        assert drawn["seconds"].sum() < row["t_serial_s"] * (1 + 1e-9)
        assert "collectives, optimizer" in drawn["family"]
    else:
        math = found.data["bars"].filter(resource="compute")["seconds"].sum()
        assert math == pytest.approx(row["t_math_s"])


def every_plan(chips, experts):
    """All plans over a number of chips, whether possible or not."""
    sizes = [each for each in range(1, chips + 1) if chips % each == 0]
    for tp, pp, dp, cp in product(sizes, repeat=4):
        for ep in sizes if experts else [1]:
            if tp * pp * dp * cp == chips:
                yield {"tp": tp, "pp": pp, "dp": dp, "cp": cp, "ep": ep}


@check(50)
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
    times, held = dict[str, float](), set()
    for plan in every_plan(chips, experts=model == "mixtral-8x7b"):
        with suppress(RooflinesError):
            row = rooflines.train(chip, model, split=plan, **asked).row
            times[row["split"]] = row["t_upper_s"]
            held.add((row["split"], row["fits"], row["footprint_bytes"]))
    try:
        keys = {**EVERY_LAYOUT, "by": "t_upper_s", **asked}
        rows = rooflines.best_splits(chip, model, chips=chips, **keys)
    except RooflinesError:
        assert not times
        return
    found = dict(rows.select("split", "t_upper_s").iter_rows())
    assert found == pytest.approx(times, rel=1e-14)  # rows beside it may change its last digit
    assert set(rows.select("split", "fits", "footprint_bytes").iter_rows()) == held
    misfits = rows["fits"].eq_missing(other=False)
    ranks = misfits, rows["t_upper_s"], rows["footprint_bytes"], rows["split"]
    ranked = [
        (misfit, float(f"{time_s:.11e}"), float(f"{held:.11e}"), split)
        for misfit, time_s, held, split in zip(*ranks, strict=True)
    ]
    assert ranked == sorted(ranked)


def test_a_plan_alone_has_the_last_digit_that_it_has_among_all():
    step: dict[str, Any] = {"B": 84, "S": 510, "shard": "gradients"}
    frame = rooflines.best_splits("mi300x", "mixtral-8x7b", chips=8, **{**EVERY_LAYOUT, **step})
    split = {"tp": 2, "pp": 4, "ep": 2}
    alone = rooflines.train("mi300x", "mixtral-8x7b", **step, split=split).row
    (among,) = (row for row in frame.to_dicts() if row["split"] == alone["split"])
    for name in ("t_upper_s", "t_serial_s", "bubble"):  # a waiting share of 3/87
        assert among[name] == alone[name]


def test_auto_gives_runs_of_layers_to_plans_with_stages():
    step: dict[str, Any] = {**EVERY_LAYOUT, "B": 8, "S": 1024, "chips": 4}
    plain, interleaved = (
        rooflines.best_splits("h100-sxm", SMALL, **{**step, "interleave": runs}) for runs in (1, 2)
    )
    assert all(runs == 1 + (pp > 1) for runs, pp in interleaved.select("interleave", "pp").rows())
    chips = ["tp", "pp", "cp", "dp"]
    assert {*plain.select(chips).rows()} == {*interleaved.select(chips).rows()}


@pytest.mark.parametrize("dtypes", ["bf16", "fp8"])
def test_the_flops_of_a_model_are_the_same_in_any_plan(dtypes):
    """MFU times the time is what they take at the peak: those of fp8 beside attention in bf16."""
    step: dict[str, Any] = {"B": 32, "S": 2048, "dtypes": dtypes, "chips": 4}
    rows = rooflines.best_splits("b200", "llama-3.1-8b", **step, **EVERY_LAYOUT)
    assert {"pp2-dp2", "tp2-dp2", "dp4"} < set(rows["split"])
    for share in ("mfu", "mfu_full"):
        for suffix, column in (("", "t_lower_s"), ("_serial", "t_serial_s")):
            at_peak = (rows[f"{share}{suffix}"] * rows[column]).to_list()
            assert at_peak == pytest.approx([at_peak[0]] * rows.height)


@pytest.mark.parametrize(("change", "message", "fix"), case("wrong-questions")["training"])
def test_what_cannot_be_trained_is_refused_with_a_reason_and_a_fix(change, message, fix):
    asked = {"chip": "h100-sxm", "model": SMALL, "B": 8, "S": 1024, **change}
    every = partial(rooflines.best_splits, phase="train")
    with pytest.raises(RooflinesError) as caught:
        (every if "chips" in change else rooflines.train)(**asked)
    assert message in str(caught.value)
    assert f"\n  fix: {fix}" in str(caught.value)


@pytest.mark.parametrize(("tp", "cp", "allowed"), [(2, 4, True), (2, 8, False), (4, 4, False)])
def test_chips_of_tp_and_cp_together_share_query_heads(tp, cp, allowed):
    attention = Gqa.model_validate({"N": 8, "K": 8, "H": 64})
    shape = models.load("qwen3-0.6b").shape.model_copy(update={"attention": attention})
    plan = TrainingPlan.model_validate({"tp": tp, "cp": cp, "context": "heads"})
    if allowed:
        plan.check(shape)
    else:
        with pytest.raises(RooflinesError, match="with tp does not divide the 8 query heads"):
            plan.check(shape)


def test_a_training_that_does_not_fit_has_no_price_and_no_energy():
    asked = partial(rooflines.train, "h100-sxm", "mixtral-8x7b", B=64, S=4096, tokens=1e12)
    large = asked(split={"tp": 2, "dp": 4, "ep": 8}).row
    small = asked(split={"tp": 2, "dp": 32, "ep": 8}).row
    names = [name for name in large if name.partition("_")[0] in ("usd", "j")]
    priced = [name for name in names if not name.endswith("_estimate")]  # no fit of this chip
    assert (large["fits"], small["fits"]) == (False, True)
    assert len(priced) == 5
    assert {large[name] for name in priced} == {None}
    assert None not in {small[name] for name in priced}
    assert large["days"] > small["days"]
