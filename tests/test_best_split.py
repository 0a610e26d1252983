"""The best split of a step of serving, against one question for each split."""

import json
import math
import re
from itertools import product
from typing import Any

import pytest
from command_line import refused, said
from hypothesis import given
from hypothesis import strategies as st
from random_sweeps import check

import rooflines
from rooflines.answers.best_split import best_splits, split_cases
from rooflines.answers.question import QuestionCatalogues
from rooflines.answers.question_words import read_words
from rooflines.basics.errors import RooflinesError
from rooflines.basics.text import percent
from rooflines.fits.calibration_files import shipped_calibrations
from rooflines.fits.estimate_band import estimate_band
from rooflines.hardware.chip_catalogue import chip_entries, resolve_chips
from rooflines.models.library import models_of
from rooflines.models.split import Split
from rooflines.training.parallel_plan import TrainingPlan

LLAMA = "llama-3.1-70b"
EXPERTS = ("mixtral-8x7b", "deepseek-v3")


def test_splits_of_sixteen_chips_are_those_of_the_worked_example():
    rows = rooflines.best_splits("h100-sxm", LLAMA, B=64, S=8192, dtypes="bf16", chips=16)
    assert rows["split"].to_list() == ["tp8-dp2", "tp16", "tp4-dp4", "tp2-dp8", "tp1-dp16"]
    assert rows["fits"].to_list() == [True, True, True, True, False]
    assert [round(1e3 * each, 3) for each in rows["t_serial_s"][:4]] == [
        8.460,
        9.378,
        13.622,
        23.982,
    ]
    assert round(rows["footprint_bytes"][3] / 1e9, 2) == 81.29
    assert rows["bottleneck_vs_best"].to_list() == [None, "memory", "memory", "memory", "capacity"]


@given(
    chips=st.fixed_dictionaries(dict.fromkeys(("tp", "dp"), st.integers(1, 64))),
    training=st.fixed_dictionaries(
        {},
        optional={
            **dict.fromkeys(("pp", "cp", "ep", "interleave", "micro_batch"), st.integers(1, 64)),
            "shard": st.sampled_from(["none", "optimizer", "gradients", "weights"]),
            "recompute": st.sampled_from(["none", "selective", "full"]),
            "save": st.sampled_from(["split", "gathered"]),
            "context": st.sampled_from(["ring", "heads"]),
            "optimizer": st.sampled_from(["adam", 4, 1234567.5]),
        },
    ),
)
def test_a_split_is_read_from_its_name(chips, training):
    plan, split = TrainingPlan(**chips, **training), Split(**chips, ep=chips["tp"] * chips["dp"])
    assert TrainingPlan.model_validate(plan.name).name == plan.name
    assert TrainingPlan.model_validate(plan.name).model_dump() == plan.model_dump()
    assert Split.model_validate(split.name) == split
    assert Split.model_validate("tp4x4-ep4x4").axes == (4, 4)


@pytest.mark.parametrize(
    ("written", "shard"),
    [("zero0", "none"), ("ZeRO1", "optimizer"), ("zero2", "gradients"), ("zero3", "weights")],
)
def test_stages_of_zero_are_what_replicas_share(written, shard):
    assert TrainingPlan.model_validate({"dp": 2, "shard": written}).shard == shard
    assert TrainingPlan.model_validate(f"dp2-{written}").shard == shard


@pytest.mark.parametrize("words", ["tp2-dp4-ep8", "TP=2,dp=4,ep=8", "tp=2 dp=4 ep=8"])
def test_a_split_is_a_word_of_a_question(capsys, words):
    asked = "explain", "h100", "mixtral-8x7b", "B=64", "S=8k"
    assert said(capsys, *asked, *words.split()) == said(capsys, *asked, "--split", "tp2-dp4-ep8")


def test_a_config_names_splits_as_tables_do():
    form = {"models": LLAMA, "grid": {"B": 8, "S": 64}, "dtypes": "bf16", "chips": "h100-sxm"}
    rows = [
        rooflines.rows(
            rooflines.load_config({"model-sweeps": {"one": {**form, **keys, "splits": splits}}}),
            "one",
        )
        for keys, given in (
            ({}, ["tp8", {"tp": 8}]),
            ({"phase": "train", "shard": "weights"}, ["pp2-dp4", {"pp": 2, "dp": 4}]),
        )
        for splits in given
    ]
    assert rows[0].collect().equals(rows[1].collect())
    assert rows[2].collect().equals(rows[3].collect())
    assert set(rows[2].collect()["split"]) == {"pp2-dp4-fsdp"}


def test_a_screen_says_what_each_split_loses_by(capsys):
    words = "explain", "h100-sxm", LLAMA, "B=64", "S=8192", "bf16", "--split", "auto"
    lines = said(capsys, *words, "--chips", "16").splitlines()
    ends = {line.split()[0]: line.split()[-3:] for line in lines if line.startswith("tp")}
    assert ends["tp4-dp4"] == ["memory", "5.19", "ms"]
    assert ends["tp2-dp8"][-2:] == ["15.6", "ms"]
    assert ends["tp1-dp16"][-2:] == ["capacity", "-"]


def test_a_screen_has_the_best_twenty_splits_and_counts_the_others(capsys):
    words = "train", "h100-sxm", "llama-3.1-8b", "B=128", "S=8192", "--split", "auto"
    asked = *words, "--chips", "16", "--all", "--micro-batch", "1"
    screen, rows = said(capsys, *asked), json.loads(said(capsys, *asked, "--json"))["rows"]
    assert [line.split()[0] for line in screen.splitlines()[4:24]] == [
        row["split"] for row in rows[:20]
    ]
    large = sum(not row["fits"] for row in rows[20:])
    rest = f"{len(rows) - 20} more plans, {large} of which do not fit"
    assert f"{rest}: --csv and --json have all." in screen.splitlines()


def test_a_screen_says_that_no_split_fits(capsys):
    words = "explain", "h100-sxm", LLAMA, "S=8192", "bf16", "--split", "auto", "--chips", "2"
    headline = said(capsys, *words, "B=64").splitlines()[1]
    assert headline.startswith("No split fits; tp2 needs the least memory, ")
    assert "No split fits" not in said(capsys, *words, "B=1")


def test_within_a_time_the_largest_batches_are_those_of_the_worked_example():
    asked: dict[str, Any] = {"dtypes": "bf16", "chips": 16, "calibration": "none"}
    rows = rooflines.best_splits("h100-sxm", LLAMA, S=8192, within=0.02, **asked)
    found = rows.select("split", "B", rows["tokens_per_s_per_chip"].round(1)).rows()
    assert found == [("tp8-dp2", 284, 888.7), ("tp4-dp4", 189, 591.6), ("tp16", 164, 512.5)]


def replicas_in(split):
    """Replicas in the name of a split, which share a batch [1]."""
    replicas = re.search(r"dp(\d+)", split)
    return int(replicas[1]) if replicas else 1


@pytest.mark.parametrize(
    ("asked", "column"),
    [({}, "t_estimate_s"), ({"calibration": "none"}, "t_serial_s"), ({"bound": True}, "t_lower_s")],
)
def test_the_largest_batch_within_a_time_meets_it_and_the_next_one_does_not(asked, column):
    step: dict[str, Any] = {"S": 8192, "dtypes": "bf16", **asked}
    within = 0.03
    rows = rooflines.best_splits("h100-sxm", LLAMA, chips=8, within=within, **step)
    assert rows.height
    for split, batch, largest in rows.select("split", "B", "max_B").rows():
        times = [
            rooflines.explain_model("h100-sxm", LLAMA, B=size, split=split, **step).row[column]
            for size in (batch, batch + replicas_in(split))
        ]
        assert times[0] <= within * (1 + 1e-12)
        assert times[1] > within or batch == largest


def divisor_splits(chips, experts):
    for tp in (each for each in range(1, chips + 1) if chips % each == 0):
        for ep in {1, chips} if experts else {1}:
            yield {"tp": tp, "dp": chips // tp, "ep": ep}


def one_by_one(sizes, chip, network, model, chips):
    """Every split that can be explained, with what ranks it."""
    route = network if chips > 1 else None
    found = []
    for split in divisor_splits(chips, experts=model in EXPERTS):
        try:
            row = rooflines.explain_model(
                chip, model, **sizes, split=split, dtypes="bf16", network=route
            ).row
        except RooflinesError:
            continue
        found.append(
            (
                row["fits"] is False,
                row["t_estimate_s"],
                row["t_serial_s"],
                row["footprint_bytes"],
                row["split"],
            )
        )
    decides = 2 if any(each[1] is None for each in found) else 1
    return sorted((each[0], each[decides], *each[3:]) for each in found)


@check(100)
@given(
    place=st.sampled_from(
        [("h100-sxm", ["nvlink", "infiniband"]), ("b200", ["nvlink"]), ("mi300x", None)]
    ),
    model=st.sampled_from([LLAMA, "qwen3-0.6b", *EXPERTS]),
    chips=st.sampled_from([1, 2, 4, 6, 8]),
    sizes=st.fixed_dictionaries(
        {"B": st.integers(8, 2048), "S": st.sampled_from([1, 511, 8192, 65536])}
    ),
)
def test_best_split_is_that_of_one_question_for_each(place, model, chips, sizes):
    chip, network = place
    rows = rooflines.best_splits(chip, model, **sizes, dtypes="bf16", chips=chips, network=network)
    misfits = rows["fits"].eq_missing(other=False)
    ranked = zip(misfits, rows["t_step_s"], rows["footprint_bytes"], rows["split"], strict=True)
    assert list(ranked) == one_by_one(sizes, chip, network, model, chips)


def test_a_torus_has_its_axes():
    splits = rooflines.best_splits("tpu-v5e", LLAMA, B=64, S=8192, dtypes="int8", chips=64)
    assert {"tp4x4-dp4", "tp8x8", "tp16-dp4"} <= {*splits["split"]}
    assert all(math.prod([*map(int, tp.split("x"))]) <= 64 for tp in splits["tp"].cast(str))


def sweep(**keys):
    own = {
        "models": [LLAMA, "mixtral-8x7b"],
        "grid": {"B": 64, "S": 8192},
        "dtypes": "bf16",
        **keys,
    }
    config = rooflines.load_config({"model-sweeps": {"splits": own}})
    return rooflines.rows(config, "splits").collect()


def test_a_sweep_has_the_rows_of_every_split():
    rows = sweep(chips=["h100-sxm", "tpu-v5e"], splits="auto", num_chips=8)
    for (chip, model), found in rows.group_by("chip", "model"):
        alone = rooflines.best_splits(str(chip), str(model), B=64, S=8192, dtypes="bf16", chips=8)
        assert set(found["split"]) == set(alone["split"])


def test_rates_of_every_split_of_training_are_those_of_one_question_for_it():
    step: dict[str, Any] = {"chip": "h100-sxm", "model": "llama-3.1-8b", "B": 64, "S": 4096}
    among = rooflines.best_splits(**step, chips=8, phase="train").row(0, named=True)
    alone = rooflines.train(**step, split=among["split"]).row
    rates = [name for name in alone if name.startswith("tokens_per_s")]
    assert rates
    assert [among[rate] for rate in rates] == [alone[rate] for rate in rates]


def test_splits_without_a_row_are_named_with_the_reason():
    words = ("h100-sxm", "llama-3.1-8b", "B=60", "S=4096", "bf16")
    asked = read_words(words, chip_entries())
    known = QuestionCatalogues(chip_entries())
    found = split_cases(asked, known, split="auto", chips=8, phase="train")
    assert any(" 1 share B or S in no whole numbers" in note for note in found.notes)
    asked = read_words(("h100-sxm", "llama-3.1-70b", "S=8192", "bf16"), chip_entries())
    found = split_cases(asked, known, split="auto", chips=8, within=0.02)
    assert "Left out: tp1-dp8, tp2-dp4: no batch that fits meets the step time." in found.notes


@pytest.mark.parametrize("batch", [24, 56, 64])
def test_the_best_split_loses_by_nothing_and_a_tie_is_no_loss(batch):
    rows = rooflines.best_splits("b200", "mixtral-8x7b", B=batch, S=510, chips=8, phase="train")
    assert rows["bottleneck_vs_best"][0] is None
    assert rows["excess_s"][0] is None
    lost = rows.drop_nulls("excess_s")
    assert (lost["excess_s"] > 1e-9 * lost["t_step_s"]).all()


DENSE = {
    "name": "dense",
    "layers": 2,
    "D": 64,
    "V": 256,
    "mlp": {"F": 256},
    "attention": {"N": 16, "K": 8, "H": 4},
}


def test_of_splits_that_take_as_long_the_one_that_needs_least_memory_is_first():
    """All but math takes no time on this chip."""
    endless = {"memory.hbm.bytes_per_s": 1e30, "networks.nvlink.bytes_per_s": 1e30}
    chips = {"fast": {"base": "h100-sxm", "source": "a test", **endless}}
    chips["fast"] |= {"networks.nvlink.hop_latency_s": 0, "plausible": [*endless]}
    known = QuestionCatalogues(resolve_chips(chips, chip_entries()))
    (model,) = models_of([DENSE]).values()
    rows = best_splits("fast", model, B=64, S=128, dtypes="bf16", chips=8, config=known)
    assert rows["t_serial_s"].n_unique() == 1
    assert rows["split"].to_list() == ["tp8", "tp4-dp2", "tp2-dp4", "tp1-dp8"]
    assert rows["footprint_bytes"].is_sorted()


def test_a_plan_loses_by_what_takes_longer_its_bubble_too():
    rows = rooflines.best_splits(
        "h100-sxm", "llama-3.1-8b", B=64, S=4096, chips=8, phase="train"
    ).to_dicts()
    for row in rows:
        row["t_bubble_s"] = row["bubble"] * row["t_upper_s"]
    best, *others = [row for row in rows if row["fits"]]
    lost = {row["bottleneck_vs_best"] for row in others}
    assert "bubble" in lost
    assert len(lost) > 1
    for row in others:
        longer = {
            name: row[f"t_{name}_s"] - best[f"t_{name}_s"]
            for name in ("math", "memory", "network", "activation", "bubble")
        }
        assert longer[row["bottleneck_vs_best"]] == max(longer.values())
        assert row["excess_s"] == pytest.approx(max(longer.values()))


@pytest.mark.parametrize("within", [None, 0.02])
def test_a_split_loses_by_what_takes_longer_for_as_many_sequences(within):
    sizes: dict[str, Any] = {"S": 8192} if within else {"B": 64, "S": 8192}
    rows = rooflines.best_splits(
        "h100-sxm", "mixtral-8x7b", **sizes, dtypes="bf16", chips=16, within=within
    ).to_dicts()
    best, *others = rows
    assert len({row["B"] for row in rows}) > 1 or within is None
    for row in others:
        longer = {
            name: row[f"t_{name}_s"] - best[f"t_{name}_s"] * row["B"] / best["B"]
            for name in ("math", "memory", "network", "activation")
        }
        most = max(longer.values())
        if not row["fits"]:
            assert (row["bottleneck_vs_best"], row["excess_s"]) == ("capacity", None)
        else:
            assert longer[row["bottleneck_vs_best"]] == most
            assert row["excess_s"] == pytest.approx(most)


@pytest.mark.parametrize("part", ["ring", "split", "adam", "none", "optimizer", "heads2"])
def test_a_part_of_a_name_that_is_no_key_or_a_default_is_refused(part):
    with pytest.raises(RooflinesError, match="which is no split"):
        TrainingPlan.keys_from_name(f"tp2-{part}")


def test_every_layout_without_a_plan_is_counted_with_its_reason():
    asked = read_words(("h100-sxm", "llama-3.1-8b", "B=60", "S=8192", "bf16"), chip_entries())
    found = split_cases(
        asked, QuestionCatalogues(chip_entries()), split="auto", chips=24, phase="train"
    )
    (note,) = (note for note in found.notes if note.startswith("Left out"))
    match = re.match(r"Left out of (\d+) layouts: (.*)\.", note)
    assert match is not None
    counts = [int(part.split()[0]) for part in match[2].split("; ")]
    layouts = sum(
        tp * pp * cp * dp == 24
        for tp, pp, cp, dp in product(range(1, 25), repeat=4)
        if 24 % tp == 24 % pp == 24 % cp == 24 % dp == 0
    )
    assert int(match[1]) == layouts == sum(counts) + len(found.rows)
    assert len(counts) > 1


def test_splits_within_the_held_out_error_are_called_a_tie():
    asked = read_words(("h100-sxm", LLAMA, "B=64", "S=4096", "bf16"), chip_entries())
    known = QuestionCatalogues(chip_entries())
    ranked = split_cases(asked, known, split="auto", chips=16, calibration="vllm")
    band = estimate_band(shipped_calibrations(), "h100-sxm", "vllm")
    assert band is not None
    best = ranked.rows[0]["t_estimate_s"]
    tied = [row["split"] for row in ranked.rows if row["t_estimate_s"] / best - 1 < band.median]
    assert 1 < len(tied) < len(ranked.rows)
    note = f"{' and '.join(tied)} tie within {percent(band.median)}, the median held-out error"
    assert [each for each in ranked.notes if each.startswith(note)]
    bounds = split_cases(asked, known, split="auto", chips=16, calibration="vllm", bound=True)
    assert not [each for each in bounds.notes if " tie within " in each]


@pytest.mark.parametrize("split", ["tp2", "tp1-dp8"])
def test_the_largest_batch_of_requests_keeps_the_limit_and_the_next_does_not(split, capsys):
    """A token of requests also waits for prompts: its time is that of the row, not of a step."""
    asked = ["explain", "h100", "llama-3.1-8b", "isl=1k", "osl=256", split, "--json"]

    def tpot_s(*words):
        (row,) = json.loads(said(capsys, *asked, *words))["rows"]
        return row["B"], row["tpot_basis_s"]

    batch, time_s = tpot_s("within", "20ms")
    assert time_s <= 0.02 < tpot_s(f"B={batch + 1}")[1]


def test_a_limit_that_one_request_a_replica_does_not_meet_is_refused(capsys):
    message = refused(capsys, "explain", "h100", "llama-3.1-8b", "isl=8k", "osl=8", "within", "9ms")
    assert "which one request a replica does not meet" in message
