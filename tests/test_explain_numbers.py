"""The numbers of `rooflines.explain` and `explain_model` are those of the tables of a config."""

import json
import math
import re
from itertools import accumulate
from typing import Any

import polars as pl
import pytest
from case_files import case
from command_line import said
from explained import FOLDER, OWN, as_config
from hf_configs import config_of
from pages import words_of
from serving_tables import model_sweep
from shown import unexplained
from small_config import matmul

import rooflines
from rooflines.answers.claims import MIN_FACTOR
from rooflines.answers.question import QuestionCatalogues
from rooflines.basics.text import seconds
from rooflines.evaluation.row_frames import KernelTable, StepTable
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.hardware.timing_errors import measured_quantiles
from rooflines.solvers.plateau import PLATEAU_SHARE
from rooflines.solvers.threshold_frames import sweep_thresholds

EXAMPLE = ("h100-sxm", "128x8192x8192", "bf16")
QUESTIONS = case("explained/questions")


def own_chips():
    return rooflines.load_config(FOLDER / "own.yaml").chips


def check_uses(found):
    """Work over a rate is the time of each resource, as in the row; every number has a source."""
    row = found["row"]
    for use in found["resources"]:
        assert use["work"] == row[use["column"]]
        assert use["time_s"] == row[f"t_{use['resource']}_s"]
        assert use["time_s"] >= use["work"] / use["per_s"] * (1 - 1e-12)
    assert all(number["source"] for number in found["numbers"])
    used = {number["path"].rpartition(".")[0] for number in found["numbers"]}
    networks = row["network"].split("+") if row["network_bytes"] else []
    assert {f"networks.{name}" for name in networks} | {f"memory.{row['memory']}"} <= used
    return used


BAND_SHARE = 0.8
"""Share of measurements between p10 and p90 [1]."""


def summed(found):
    """Further numbers in a text: sums over groups, counts of equal ones, required rates."""
    row = found["row"]
    if terms := found.get("terms"):
        yield sum(each["count"] * each["collectives_estimate_s"] for each in terms)
        untimed = (each for each in terms if "untimed" in (each["calibration"] or ""))
        yield sum(each["count"] * each["t_estimate_s"] for each in untimed) / row["t_estimate_s"]
    for parts, column in (("groups", "t_serial_s"), ("terms", "t_estimate_s")):
        times = sorted(each["count"] * (each[column] or 0) for each in found.get(parts, ()))
        sums = [*times, *accumulate(times)]
        yield [sums, [each / (row[column] or 1) for each in sums], [*range(len(times))]]
    if row.get("t_estimate_p10_s") is not None:
        yield BAND_SHARE
    if "t_serial_s" in row:
        for suffix in ("", "_serial", "_estimate"):
            yield (row[f"tokens_per_s{suffix}"] or 0) / row["B"]
        yield 2 * row["B"]
    if waiting := found.get("waiting"):
        yield [int(number) for number in re.findall(r"\d+", waiting["in_flight"])]
    if row.get("price_date"):
        yield int(row["price_date"][:4])
    if "utilization" in row:
        slower = row["t_lower_s"] / found["time_s"]
        yield [row["utilization"] * slower, row["attained_flops_per_s"] * slower]
    if after := found.get("next_token"):
        yield [1 / time for time in after if time]
    yield [MIN_FACTOR, PLATEAU_SHARE, [*range(len(found["dtypes"]) + 1)]]
    per_s = {used["resource"]: used["per_s"] for used in found["resources"]}
    for change in found["required_rates"]:
        resource = change["rate"].removesuffix("_rate").replace("peak", "math")
        for number in (change["factor"], (change["factor"] or 0) * per_s.get(resource, 0)):
            digit = 10.0 ** (math.floor(math.log10(number)) - 3) if number else 1.0
            yield [of((number or 0) / digit) * digit for of in (math.floor, math.ceil)]


def without_labels(answer, found):
    """The text of an answer without the capacities as they are printed, which are no numbers."""
    text = str(answer)
    for label in {number["label"] for number in found["numbers"] if number["label"]}:
        assert f"(label {label}" in text.replace("\n", " ")
        text = text.replace(f"(label {label}", "")
    return text


@pytest.mark.parametrize("name", QUESTIONS["operations"])
def test_every_number_is_one_of_the_tables(name):
    asked = dict(QUESTIONS["operations"][name])
    question = [asked.pop(key) for key in ("chip", "sizes", "dtypes")]
    answer = rooflines.explain(*question, **asked, config=QuestionCatalogues(own_chips()))
    found = json.loads(json.dumps(answer.to_dict(), allow_nan=False))
    form = as_config(question[0], answer.sizes, question[2], asked)
    config = rooflines.load_config(form)
    row = rooflines.rows(config, "explain").collect().row(0, named=True)
    assert found["row"] == row
    assert found["thresholds"] == rooflines.thresholds(config, "explain").to_dicts()
    assert unexplained(without_labels(answer, found), [found, *summed(found)]) == []
    used = check_uses(found)
    assert any(path.startswith(f"units.{row['unit']}.") for path in used)
    for use in found["resources"]:
        assert use["intensity"] == row.get(f"{use['resource']}_intensity")
        assert use["time_s"] == pytest.approx(max(use["work"] / use["per_s"], use["latency_s"]))
    for change in found["required_rates"]:
        form["sweeps"]["explain"]["thresholds"] = [change["rate"]]
        solved, *_ = rooflines.thresholds(rooflines.load_config(form), "explain").to_dicts()
        factor = solved["critical_exact"]
        assert change["factor"] == (factor and pytest.approx(factor, rel=1e-14))
        assert change["limit"] == solved["limit"]
    listed = rooflines.chips(config).filter(chip=question[0])
    known = {path: rest for path, *rest in listed.select("path", "value", "source").rows()}
    for number in found["numbers"]:
        if number["path"] in known:
            assert [number["value"], number["source"]] == known[number["path"]]


def test_the_other_dtypes_are_those_of_the_unit():
    sweep = matmul(grid={"B": 128, "D": 8192, "F": 8192})
    sweep["dtypes"] = list(dtype_entries().combinations)
    rows = rooflines.rows(rooflines.load_config({"sweeps": {"all": sweep}}), "all").collect()
    expected = rows.filter(pl.col("dtypes") != "bf16").sort("t_lower_s")
    answer = rooflines.explain(*EXAMPLE)
    for name in ("dtypes", "bound", "t_lower_s"):
        assert [other[name] for other in answer.dtypes] == expected[name].to_list()


def test_how_far_timings_are_is_that_of_the_same_case():
    answer = rooflines.explain(*EXAMPLE)
    rows = measured_quantiles().filter(
        subject="matmul", chip="h100-sxm", dtypes="bf16", over="bound"
    )
    long = rows.filter(length="long").sort("n").row(-1, named=True)
    assert answer.measured == {name: long[name] for name in ("software", "n", "p10", "p50", "p90")}
    short = rooflines.explain("h100-sxm", "128x1024x1024", "bf16").measured
    assert short is not None
    assert short["p50"] > long["p50"]
    split = rooflines.explain(*EXAMPLE, shards=8, sharding="column")
    assert split.measured is None
    assert "on 8 chips" in str(split)
    assert "nvlink" not in str(split), "it moves no byte"
    assert rooflines.explain("h100-sxm", "128x8192x8192", "w4a16").measured is None


@pytest.mark.parametrize("name", QUESTIONS["limited"])
def test_a_hair_above_the_limit_no_size_attains_it_and_a_hair_below_one_does(name):
    asked = dict(QUESTIONS["limited"][name])
    question = [asked.pop(key) for key in ("chip", "sizes", "dtypes")]
    answer = rooflines.explain(*question, **asked, config=QuestionCatalogues(own_chips()))
    config = as_config(question[0], answer.sizes, question[2], {"shards": 1, **asked})
    assert answer.limit_shares
    for axis, share in answer.limit_shares.items():
        around = {"thresholds": [axis], "shares": [share * (1 + 1e-9), share * (1 - 1e-9)]}
        sweep = {"explain": {**config["sweeps"]["explain"], **around}}
        solved = rooflines.thresholds(rooflines.load_config({**config, "sweeps": sweep}))
        above, below = solved["outcome"]
        assert above == "never"
        assert below in {"found", "always"}


def test_a_limit_of_exactly_the_peak_is_never_reached():
    even = {
        "units": {"matrix": {"int8": {"flops_per_s": 4e12, "source": "made up"}}},
        "memory": {"hbm": {"bytes_per_s": 1e12, "source": "made up"}},
    }
    chips = rooflines.load_config({"chips": {"even": even}}, needs_sweeps=False).chips
    answer = rooflines.explain("even", "9x4x4", "int8", config=QuestionCatalogues(chips))
    assert answer.limit_shares == {"B": 1.0}
    assert "B  never  memory intensity tends to 4 FLOP/B, but stays below" in str(answer)


def test_an_estimate_names_its_software_and_its_band():
    question = ("h100-sxm", "128x8192x8192")
    answer = rooflines.explain(*question, "bf16", calibration=["sglang-block", "trtllm"])
    row = answer.row
    assert answer.softwares == ["trtllm"]
    assert row["t_estimate_p10_s"] < row["t_estimate_s"] < row["t_estimate_p90_s"]
    screen = " ".join(str(answer).split())
    assert "calibrated to trtllm on h100-sxm in bf16" in screen
    with pytest.raises(rooflines.RooflinesError, match="without a calibration of h100-sxm in int8"):
        rooflines.explain(*question, "int8", calibration="trtllm")


def sweep_of(chip, model, **keys):
    form = {"models": [model], "chips": [chip], "thresholds": ["B", "S", "chips"], **keys}
    return model_sweep(form, OWN)


WITH_CACHE = {
    "fp8 kv=fp8": dict.fromkeys(("weights", "cache", "compute", "attention"), "fp8")
    | dict.fromkeys(("head", "activations"), "bf16")
}
"""Dtypes with a narrow KV cache, by their name in answers."""


@pytest.mark.parametrize("name", QUESTIONS["models"])
def test_every_number_of_a_model_is_one_of_the_tables(name):
    keys = dict(QUESTIONS["models"][name])
    answer = rooflines.explain_model(**keys, config=QuestionCatalogues(own_chips()))
    found = json.loads(json.dumps(answer.to_dict(), allow_nan=False))
    chip, model = keys.pop("chip"), keys.pop("model")
    keys |= {"grid": {size: keys.pop(size) for size in "BST" if size in keys}}
    keys |= {"dtypes": [keys.get("dtypes", "bf16")]}
    keys["splits"] = [keys.pop("split", {})]
    sweep = sweep_of(chip, model, **keys)
    row = StepTable(sweep).frame().collect().row(0, named=True)
    assert found["row"] == row
    assert found["thresholds"] == sweep_thresholds(sweep).to_dicts()
    kernels = KernelTable(sweep).frame().collect()
    names = kernels.columns[kernels.columns.index("group") :]
    groups = [{name: each[name] for name in names} for each in found["groups"]]
    assert unexplained(without_labels(answer, found), [found, *summed(found)]) == []
    engine = pl.col("group").cast(pl.String).str.starts_with("engine-")
    assert groups == kernels.filter(~engine).select(names).to_dicts()
    terms = sum(each["count"] * each["t_estimate_s"] for each in found["terms"])
    assert terms == pytest.approx(row["t_estimate_s"] or 0, rel=1e-12)
    texts = [(each["calibration"] or "").removeprefix("untimed, by ") for each in found["terms"]]
    fits = {name for text in texts for name in text.split(" + ")}
    assert fits - {""} == found["fits"].keys()
    assert sum(each["time_s"] for each in found["products"]) == pytest.approx(row["t_math_s"])
    assert sum(each["flops"] for each in found["products"]) == pytest.approx(row["flops"])
    for other in found["dtypes"]:
        again = sweep_of(
            chip, model, **{**keys, "dtypes": [WITH_CACHE.get(other["dtypes"], other["dtypes"])]}
        )
        (bound_s,) = StepTable(again).frame().collect()["t_lower_s"]
        assert other["t_lower_s"] == pytest.approx(bound_s, rel=1e-14)
    times = [other["t_lower_s"] for other in found["dtypes"]]
    assert times == sorted(times)
    used = check_uses(found)
    assert {f"units.matrix.{each['compute']}" for each in found["products"]} <= used
    assert ("power" in used) == (row["j_per_token"] is not None)
    assert any(path.startswith("prices") for path in used) == (row["usd_per_mtok"] is not None)


def test_a_known_model_on_eight_chips_has_the_numbers_worked_by_hand():
    """Llama 3.1 70B in bf16: 1.02706e13 FLOP, 1.39e11 bytes of weights and 1.718e11 of caches."""
    answer = rooflines.explain_model("h100-sxm", "llama-3.1-70b", B=64, S=8192, split={"tp": 8})
    row = answer.row
    assert 8 * row["flops"] == pytest.approx(1.02706e13, rel=1e-5)
    assert 8 * row["memory_bytes"] == 139_003_428_864 + 171_798_691_840
    assert row["t_lower_s"] == pytest.approx(11.5971e-3, rel=1e-5)
    assert row["tokens_per_s_per_chip"] == pytest.approx(689.8, rel=1e-4)
    assert row["max_B"] == 200
    assert answer.experts is None
    by_axis = {each["axis"]: each for each in answer.thresholds}
    assert by_axis["B"]["outcome"] == "never"
    assert by_axis["S"]["critical"] == 1476
    assert by_axis["chips"]["critical"] == 4
    cache_s = 163_840 * 2 * 8192 / 8 / 3.35e12
    math_s = (2 * 69_501_714_432 + 2_621_440 * 8192) / 8 / 989e12
    assert answer.per_sequence_s["memory"] == pytest.approx(cache_s)
    assert answer.per_sequence_s["compute"] == pytest.approx(math_s, rel=1e-3)
    page = words_of("serve.md")
    for text in (
        "at least 11.6 ms, and 11.7 ms serialized",
        "Up to 200 sequences fit.",
        "a large one only up to 1,476 tokens",
    ):
        assert text in page


@pytest.mark.parametrize(("rate", "path", "question"), QUESTIONS["rates"])
def test_the_rate_that_is_told_makes_a_model_compute_bound(rate, path, question):
    answer = rooflines.explain_model("h100-sxm", **question)
    factors: dict[str, Any] = {change.rate: change.factor for change in answer.required_rates}
    kind, name, number = path.split(".")
    now = getattr(getattr(chip_entries()["h100-sxm"], kind)[name], number)
    own = {"changed": {"base": "h100-sxm", path: now * factors[rate], "source": "made up"}}
    chips = rooflines.load_config({"chips": own}, needs_sweeps=False).chips
    row = rooflines.explain_model("changed", **question, config=QuestionCatalogues(chips)).row
    assert row[f"t_{rate.removesuffix('_rate')}_s"] == pytest.approx(row["t_math_s"], rel=1e-12)
    if rate == "memory_rate":
        assert factors["peak"] == pytest.approx(1 / factors["memory_rate"])


def test_the_page_has_the_thresholds_by_estimate():
    page = words_of("serve.md")
    calibration = page.partition("--calibration ")[2].partition(" ")[0].split(",")
    question: dict[str, Any] = {"B": 64, "S": 1024, "split": "tp=8", "calibration": calibration}
    answer = rooflines.explain_model("h100-sxm", "llama-3.1-70b", **question)
    batch, context, _ = answer.thresholds
    assert f"at 1,024 tokens B = {batch['plateau_estimate']:,}," in page
    assert f"for large batches S = {context['plateau_estimate']:,}." in page


def test_an_estimate_says_which_kernels_have_no_timings():
    asked: dict[str, Any] = {"B": 64, "S": 1024, "calibration": ["trtllm"]}
    for phase in ("decode", "prefill"):
        question = {**asked, "dtypes": "fp8", "phase": phase}
        mixture = rooflines.explain_model("h100-sxm", "mixtral-8x7b", split="tp=2", **question)
        by = {each["group"]: each["calibration"] for each in mixture.to_dict()["terms"]}
        names = ("experts", "qkv", "attention")
        assert {by[name].split()[0] for name in names} == {"trtllm"}
        latent = rooflines.explain_model(
            "h100-sxm", "deepseek-v3", split="tp=8", **{**question, "S": 65536}
        )
        by = {each["group"]: each["calibration"] for each in latent.to_dict()["terms"]}
        assert by["attention"].startswith("untimed, by trtllm bf16")
        assert "% from kernels without timings" in " ".join(str(latent).split())
    assert "without timings" not in str(
        rooflines.explain_model("h100-sxm", "llama-3.1-8b", split="tp=2", **asked)
    )


def test_an_estimate_of_a_model_names_its_software():
    asked: dict[str, Any] = {"B": 64, "S": 8192, "split": "tp=8"}
    softwares = ["sglang", "trtllm", "nccl"]
    answer = rooflines.explain_model("h100-sxm", "llama-3.1-70b", calibration=softwares, **asked)
    assert answer.softwares == ["sglang"]
    assert "calibrated to sglang" in str(answer)
    unfitted: dict[str, Any] = {"B": 1, "S": 1, "dtypes": "int8", "calibration": "trtllm"}
    with pytest.raises(rooflines.RooflinesError, match="without a calibration of tpu-v5e in int8"):
        rooflines.explain_model("tpu-v5e", "llama-3.1-8b", **unfitted)
    with pytest.raises(rooflines.RooflinesError, match=r"'trtlm'(.|\n)*close to it: trtllm"):
        rooflines.explain_model("h100-sxm", "llama-3.1-8b", calibration="trtlm", **asked)


@pytest.mark.parametrize(("chip", "model", "label"), QUESTIONS["published"])
def test_a_model_is_asked_for_in_the_dtypes_that_it_is_published_in(chip, model, label):
    question: dict[str, Any] = {"B": 8, "S": 64, "split": "tp=8"}
    answer = rooflines.explain_model(chip, model, **question)
    assert (answer.row["dtypes"], answer.published) == (label, None)
    other = rooflines.explain_model(chip, model, dtypes="int8", **question)
    assert (other.published is None) == (label == "bf16")
    said = "; published in" in " ".join(str(other).split())
    assert said == (label != "bf16" and bool(other.row["fits"]))


def test_a_class_of_tensors_in_two_formats_has_the_bytes_of_its_file(tmp_path):
    path = tmp_path / "config.json"
    left_out = {"quant_method": "fp8", "modules_to_not_convert": ["self_attn", "lm_head"]}
    form = config_of("llama-3.1-8b", torch_dtype="bfloat16", quantization_config=left_out)
    path.write_text(json.dumps(form), encoding="utf-8")
    answer = rooflines.explain_model("h100-sxm", str(path), B=8, S=1024)
    model = rooflines.models.from_hf(path)
    assert answer.row["weights_footprint_bytes"] == model.weights_bytes()
    assert answer.row["dtypes"].startswith("fp8+bf16,")
    assert "weights are 81% fp8 and 19% bf16, on average 9.54 bit" in str(answer)
    assert answer.measured is None


@pytest.mark.parametrize(
    ("asked", "time", "suffix"),
    [
        ({}, "t_estimate_s", "_estimate"),
        ({"calibration": None}, "t_serial_s", "_serial"),
        ({"bound": True}, "t_lower_s", ""),
    ],
)
def test_times_rates_and_costs_of_a_screen_are_of_one_basis(asked, time, suffix):
    answer = rooflines.explain_model(
        "h100-sxm", "llama-3.1-70b", B=64, S=8192, dtypes="bf16", split="tp8", **asked
    )
    screen, row = re.sub(r"\s+", " ", str(answer)), answer.row
    assert answer.to_dict()["time_s"] == row[time]
    assert f"{seconds(row[time])} a token (TPOT)" in screen
    assert f"at least {seconds(row['t_lower_s'])}" in screen
    per_user = re.search(r"([0-9.]+) tokens/s/user, ([0-9,]+) tokens/s/chip", screen)
    assert per_user is not None
    assert float(per_user[1]) == pytest.approx(1 / row[time], abs=0.05)
    assert float(per_user[2].replace(",", "")) == pytest.approx(8 / row[time], abs=0.5)
    cost, energy = re.search(r"\$([0-9.]+)/Mtok", screen), re.search(r"([0-9.]+) J/token", screen)
    assert cost is not None
    assert energy is not None
    assert float(cost[1]) == pytest.approx(row[f"usd_per_mtok{suffix}"], abs=0.005)
    assert float(energy[1]) == pytest.approx(row[f"j_per_token{suffix}"], abs=0.005)


@pytest.mark.parametrize(
    ("calibration", "title"),
    [
        ([], "tokens/s/chip (estimate)"),
        (["--calibration", "none"], "tokens/s/chip (serialized)"),
        (["--bound"], "tokens/s/chip (at least)"),
    ],
)
def test_the_rate_of_every_split_is_headed_by_its_time(calibration, title, capsys):
    asked = ["h100", "llama-3.1-70b", "B=64", "S=8k", "--split", "auto", "--chips", "8"]
    assert title in said(capsys, "explain", *asked, *calibration)


@pytest.mark.parametrize(
    "asked",
    [
        {"split": "tp8"},
        {"split": "tp4", "network": "infiniband"},
        {"split": "tp16", "network": ["nvlink", "infiniband"]},
        {"split": "tp8", "calibration": None},
        {"split": "tp8", "bound": True},
    ],
)
def test_a_lever_is_the_answer_to_its_own_question(asked):
    """Its network is said, and its time is that of the step on the same basis."""
    step: dict[str, Any] = {"B": 64, "S": 8192, "dtypes": "bf16", **asked}
    answer = rooflines.explain_model("h100-sxm", "llama-3.1-70b", **step)
    kinds = {lever.kind for lever in answer.levers}
    assert {"dtypes", "split", "draft"} <= kinds
    for lever in answer.levers:
        changes: dict[str, dict[str, Any]] = {
            "dtypes": {"dtypes": lever.change},
            "batch": {"B": 128},
            "split": {"split": lever.change},
            "chip": {},
            "draft": {"T": 4},
        }
        changed = changes[lever.kind]
        if lever.network is not None:
            changed["network"] = lever.network.split("+")
        chip = lever.change if lever.kind == "chip" else "h100-sxm"
        alone = rooflines.explain_model(chip, "llama-3.1-70b", **{**step, **changed})
        assert lever.time_s == pytest.approx(alone.time_s, rel=1e-12)
        assert lever.bound_s == pytest.approx(alone.bound_s, rel=1e-12)
        assert alone.row["fits"] is not False
        if lever.usd_per_mtok is not None:
            assert lever.usd_per_mtok == pytest.approx(alone.rate("usd_per_mtok"), rel=1e-12)
        if lever.kind in ("split", "chip") and lever.network != answer.row["network"]:
            assert f"over {lever.network}" in " ".join(str(answer).split())


def test_a_mean_over_routings_is_called_a_mean_beside_the_bound_of_any():
    question: dict[str, Any] = {"B": 16, "S": 4096, "dtypes": "fp8", "split": "tp=2"}
    mean, same = (
        rooflines.explain_model("h200", "mixtral-8x7b", routing=routing, **question)
        for routing in ("uniform", "same")
    )
    assert mean.any_routing
    assert mean.first_token
    assert mean.any_routing.step == same.row["t_lower_s"] < mean.row["t_lower_s"]
    assert mean.any_routing.first_token == mean.first_token.lower  # compute-bound under any
    text = " ".join(str(mean).split())
    times = [seconds(time) for time in (mean.row["t_lower_s"], mean.any_routing.step)]
    assert f"at the mean of uniform routing {times[0]}" in text
    assert f"at least {times[1]} whatever the routing" in text
    assert f"at least {times[0]}" not in text
    assert same.any_routing is None
    assert f"at least {seconds(same.row['t_lower_s'])}" in " ".join(str(same).split())


def test_a_model_without_experts_has_no_mean():
    answer = rooflines.explain_model("h200", "llama-3.1-8b", B=16, S=4096, dtypes="bf16")
    assert answer.any_routing is None
    assert "mean" not in str(answer)
