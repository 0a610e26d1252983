"""Runs of served models under `measurements:`: bounds by hand, errors, and what is refused."""

import copy
import json
from fractions import Fraction

import polars as pl
import pytest
from case_files import case
from catalogues import NOMINAL
from command_line import refused, said
from polars.testing import assert_frame_equal

import rooflines
from rooflines import RooflinesError
from rooflines.fits.calibration_files import shipped_calibrations
from rooflines.fits.layouts import SAME_RUN
from rooflines.fits.timing_tables import read_timings
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.hardware.entries import Chip
from rooflines.measured.served import missing_step_reason
from rooflines.measured.timing_sets import measured_set_of

HEAD = "model,chip,software,linear,experts,tp,input_tokens,output_tokens,concurrency,ttft_s,tpot_s"
LLAMA = "llama-3.1-70b,h200-sxm,vllm,fp8,fp8"
HALF = 0.5 * 819 * 0.02
"""A time to the first token that is half of the time of an answer of 819 tokens [s]."""

RUNS = (
    f"{LLAMA},1,1024,1024,8,{HALF},0.02",
    f"{LLAMA},4,1024,1024,1,99,0.02",
    f"{LLAMA},1,1024,1024,500,0.01,0.02",
    "llama-3.1-70b,a100-sxm-80gb,vllm,fp8,fp8,4,1024,1024,8,0.1,0.02",
    "llama-3.1-8b,h200-sxm,sglang,,,1,1024,1024,1,99,0.01",
)
"""Five of eight requests in decode; one on four chips; caches beyond the memory; a chip without the
dtype; bf16."""

READ, READ_8B = 69_501_714_432, 7_504_658_432
"""Weights that a step of Llama 3.1 70B and 8B reads [1]."""

CACHED, CACHED_8B = 163_840, 65_536
"""Their cache elements per token of context [1]."""

RATE = Fraction("4.8e12")
"""The bandwidth of an H200 [byte/s]."""


def config(folder, *runs, head=HEAD, **more):
    (folder / "runs.csv").write_text("\n".join([head, *runs]) + "\n", encoding="utf-8")
    sets = {"runs": {"file": str(folder / "runs.csv")}}
    return rooflines.load_config({"measurements": sets, **more})


def nominal(folder, key):
    """The path of a file with a fit at the nominal rates in fp8, of a chip and software."""
    path = folder / "fits.yaml"
    path.write_text(json.dumps({"calibrations": {key: {"fp8": NOMINAL}}}))
    return str(path)


def test_runs_have_the_bound_of_their_step(tmp_path):
    found = rooflines.measurements(config(tmp_path, *RUNS), "runs")
    assert found.select("B", "S", "shards", "dtypes").rows() == [
        (5, 1229, 1, "fp8"),
        (1, 1229, 4, "fp8"),
        (1, 1229, 1, "bf16"),
    ]
    one = Fraction(READ + 5 * CACHED * 1229) / RATE
    four = Fraction(READ + CACHED * 1229) / RATE / 4
    small = Fraction(2 * READ_8B + CACHED_8B * 1229) / RATE
    bounds = [float(one), float(four), float(small)]
    assert found["t_lower_s"].to_list() == pytest.approx(bounds, rel=1e-12)
    assert found["ratio_lower"][0] == pytest.approx(0.02 / float(one), rel=1e-12)
    assert found["tokens_per_s_per_chip"][0] == pytest.approx(8 / 1.5 / 0.02)
    pairs = 819 * 820 // 2
    flops = 2 * 819 * (READ - 128_256 * 8192) + 2 * 128_256 * 8192 + 80 * 4 * 8192 * pairs
    assert found["ttft_lower_s"][0] == pytest.approx(flops / 1.979e15, rel=1e-12)
    assert set(found["bound"]) == {"memory"}
    assert found["region"].to_list() == ["B 1 to 16"] * 3
    assert found["reason"].null_count() == found.height


def test_runs_without_a_row_have_a_reason(tmp_path):
    one = config(tmp_path, *RUNS).measurement("runs")
    counted = [(row["chip"], row["lacks"], row["reason"]) for row in one.skipped(one.join())]
    assert counted == [
        ("a100-sxm-80gb", "row", "no fp8 peak of its matrix unit"),
        ("h200-sxm", "row", "weights and caches that do not fit its chips"),
    ]


def test_the_estimate_of_a_run_is_that_of_a_sweep_of_requests(tmp_path):
    waiting = 0.5 * 1024 * 0.02
    sweep = {
        "models": ["llama-3.1-70b"],
        "chips": ["h200-sxm"],
        "grid": {"B": [17]},
        "requests": [{"input": 1024, "output": 1024}],
        "dtypes": [
            {
                **dict.fromkeys(("weights", "experts", "cache", "compute"), "fp8"),
                **dict.fromkeys(("activations", "attention"), "bf16"),
            }
        ],
        "splits": [{"tp": 2}],
        "calibration": ["vllm", "nccl"],
    }
    line = f"{LLAMA},2,1024,1024,25,{waiting},0.02"
    both = config(tmp_path, line, **{"model-sweeps": {"steps": sweep}, "charts": []})
    (run,) = rooflines.measurements(both, "runs").to_dicts()
    assert (run["estimate_B"], run["estimate_split"]) == (17, "tp2")
    assert run["B"] == 25 * 819 // (512 + 819)
    (row,) = rooflines.rows(both, "steps").collect().to_dicts()
    for name in ("t_estimate_s", "prefill_estimate_s", "prompts_estimate_s", "t_estimate_p90_s"):
        assert run[name] == row[name]
    step = shipped_calibrations().steps["h200-sxm/vllm"]["decode"]
    prompts = step.prompts * row["prefill_estimate_s"] * 17 / 1024
    assert run["prompts_estimate_s"] == pytest.approx(prompts)
    assert run["t_estimate_s"] > prompts + 80 * step.layer_s + 17 * step.sequence_s
    low, high = step.bands["step"]
    assert run["t_estimate_p10_s"] == pytest.approx(low * run["t_estimate_s"])
    assert run["t_estimate_p90_s"] == pytest.approx(high * run["t_estimate_s"])
    assert run["ratio_estimate"] == 0.02 / run["t_estimate_s"]
    assert run["calibration"] == "h200-sxm/vllm"
    assert run["estimate_lacks"] is None


@pytest.mark.parametrize("case", case("served-splits"), ids=lambda case: str(case["columns"]))
def test_an_estimate_has_the_split_of_the_run(case, tmp_path):
    split, lacks = case.get("split"), case.get("lacks")
    head = f"{HEAD.replace('tp,', '', 1)},tp,attention_dp,moe_tp,moe_ep"
    run = f"{case.get('model', 'deepseek-v3')},{case.get('chip', 'h200-sxm')},sglang,fp8,fp8"
    line = f"{run},1024,1024,16,1,0.05,{case['columns']}"
    more = {
        "chips": {"partly": {"base": "h200-sxm", "source": "a guess"}},
        "calibrations": [nominal(tmp_path, "partly/mine")],
    }
    one = config(tmp_path, line, head=head, **more).measurement("runs")
    found = one.join()
    (row,) = found.frame.to_dicts()
    assert (row["estimate_split"], row["estimate_lacks"]) == (split, lacks)
    values = ("t_estimate_s", "ratio_estimate", "calibration", "estimate_B")
    assert {row[name] is None for name in values} == {lacks is not None}
    assert row["t_lower_s"] > 0
    counted = [(each["lacks"], each["reason"], each["timings"]) for each in one.skipped(found)]
    assert counted == ([("estimate", lacks, 1)] if lacks else [])


def test_the_calibration_of_a_config_counts_first(tmp_path):
    run = f"{LLAMA},1,1024,1024,8,1,0.02"
    mine = config(tmp_path, run, calibrations=[nominal(tmp_path, "h200-sxm/vllm")])
    own, shipped = (
        rooflines.measurements(of, "runs").to_dicts()[0] for of in (mine, config(tmp_path, run))
    )
    assert own["calibration"] == shipped["calibration"] == "h200-sxm/vllm"
    assert own["t_lower_s"] < own["t_estimate_s"] < shipped["t_estimate_s"]
    form = {dtype: {"math": 0.5, "memory": 0.5} for dtype in ("fp8", "bf16")}
    slow = {
        "base": "mi300x",
        "calibration": form,
        "source": "a guess",
        "efficiency": {"memory": 0.5},
    }
    runs = config(tmp_path, run.replace("h200-sxm", "slow"), chips={"slow": slow})
    (row,) = rooflines.measurements(runs, "runs").to_dicts()
    assert row["calibration"] == "slow"
    assert row["t_estimate_s"] > 2 * row["t_lower_s"]


@pytest.mark.parametrize(("chips", "typed"), [((8,), "tp=8 (chips is 8)"), ((4, 8), "a column tp")])
def test_runs_with_chips_alone_are_asked_for_their_parallelism(tmp_path, capsys, chips, typed):
    head = "model,chip,software,chips,input_tokens,output_tokens,concurrency,ttft_s,tpot_s"
    runs = [f"llama-3.1-70b,h200-sxm,vllm,{number},1024,1024,8,0.1,0.02" for number in chips]
    file = tmp_path / "runs.csv"
    file.write_text("\n".join([head, *runs]) + "\n", encoding="utf-8")
    assert f"add {typed}" in refused(capsys, "measured", "join", str(file))
    alike = said(capsys, "measured", "join", str(file), "--where", "tp=8", "--where", "linear=fp8")
    assert "shards=8" in alike
    assert " 0 below the bound" in alike


def test_a_chip_without_a_capacity_has_no_row():
    plain = copy.deepcopy(chip_entries()["h200-sxm"].plain)
    assert missing_step_reason(Chip.model_validate(plain), "fp8_block") is None
    del plain["memory"]["hbm"]["capacity_bytes"]
    reason = missing_step_reason(Chip.model_validate(plain), "fp8_block")
    assert reason == "no published capacity of memory level hbm"


def test_the_summary_has_a_row_for_each_model_and_format(tmp_path):
    every = rooflines.measured_summary(config(tmp_path, *RUNS)).filter(region="all")
    found = every.filter(pl.col("shards").is_null())
    assert found.select("model", "software", "dtypes", "split", "n").rows() == [
        ("llama-3.1-70b", "vllm", "fp8", "fit", 2),
        ("llama-3.1-8b", "sglang", "bf16", "fit", 1),
    ]
    runs = rooflines.measurements(config(tmp_path, *RUNS), "runs")
    for ratio in ("ratio_lower", "ratio_estimate"):
        assert found[f"{ratio}_median"][0] == pytest.approx(runs[ratio][:2].mean())
    first = every.filter(model="llama-3.1-70b")
    assert first.select("shards", "n").rows() == [(None, 2), (1, 1), (4, 1)]
    assert first["ratio_lower_median"].to_list()[1:] == runs["ratio_lower"].to_list()[:2]


def test_a_run_below_the_bound_is_unexplained(tmp_path):
    """70 GB at 4.8 TB/s take 14.5 ms."""
    found = rooflines.measurements(config(tmp_path, f"{LLAMA},1,1024,1024,1,1,0.012"), "runs")
    assert found["reason"].to_list() == ["unexplained"]


def test_the_recipe_has_the_shapes_of_the_models(tmp_path):
    one = config(tmp_path, *RUNS).measurement("runs")
    recipe = json.loads(json.dumps(one.recipe()))
    assert_frame_equal(measured_set_of(recipe).join().frame, one.join().frame)
    assert list(recipe["models"]) == ["llama-3.1-70b", "llama-3.1-8b"]
    assert recipe["models"]["llama-3.1-8b"]["shape"]["layers"] == 32
    assert "Llama-3.1-8B" in recipe["models"]["llama-3.1-8b"]["source"]


def test_a_public_layout_is_read_without_copies(tmp_path):
    names = "linear,experts,tp,attention_dp,moe_tp,moe_ep,concurrency,batch"
    path = tmp_path / "sample.csv"
    same = "llama-3.1-70b,h200-sxm,trtllm,1024,1024,0.1,0.02"
    lines = (f"{same},,,2,2,1,1,,8", f"{same},,,1,0,1,1,8,8", f"{same}1,,,16,0,1,1,8,8")
    path.write_text("\n".join([",".join(SAME_RUN) + "," + names, *lines]) + "\n")
    timings = read_timings(path)
    assert timings.frame.select("software", "tp", "concurrency").rows() == [("trtllm", 1, 8)]
    assert list(timings.left_out.values()) == [1, 1]
    path.write_text("\n".join([",".join(SAME_RUN) + "," + names, lines[0]]) + "\n")
    assert read_timings(path).frame["concurrency"].to_list() == [16]


def test_prompts_of_other_servers_are_not_between_tokens(tmp_path):
    runs = (f"{LLAMA},4,8192,1024,64,1,0.02,{apart}" for apart in (0, 1))
    found = rooflines.measurements(config(tmp_path, *runs, head=f"{HEAD},disaggregated"), "runs")
    (mixed, prompts), (alone, none) = found.select("t_estimate_s", "prompts_estimate_s").rows()
    assert none is None
    assert alone == pytest.approx(mixed - prompts, rel=1e-12)
    high = found["t_estimate_p90_s"] / found["t_estimate_s"]
    assert high[1] == pytest.approx(high[0], rel=1e-12)


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ("llama-3.1-70,h200-sxm,vllm,fp8,fp8,1,1024,1024,8,1,0.02", "which is no model"),
        ("llama-3.1-70b,h200,vllm,fp8,fp8,1,1024,1024,8,1,0.02", "which is no chip"),
        ("llama-3.1-70b,h200-sxm,vllm,int1,fp8,1,1024,1024,8,1,0.02", "no format of weights"),
        (f"{LLAMA},2x,1024,1024,8,1,0.02", "of at least zero, the first in row 1: '2x'"),
        (f"{LLAMA},1,1024,1024,8,1,20", "and likely ttft_s, is 1.35e+03 times the bound"),
        (f"{LLAMA},1,1024,1024,500,0.01,0.02", "has no timing that the model has a row for"),
    ],
)
def test_wrong_runs_are_refused(run, message, tmp_path):
    with pytest.raises(RooflinesError) as refusal:
        rooflines.measurements(config(tmp_path, run), "runs")
    assert message in str(refusal.value)
    assert str(refusal.value).count("fix: ") == 1


@pytest.mark.parametrize(("slip", "factor"), [(1e3, "1e-3"), (1e-3, "1e3")])
def test_times_in_other_units_are_refused(slip, factor, tmp_path):
    loads = ((1, 0.09, 0.018), (4, 0.15, 0.02), (16, 0.4, 0.024), (64, 1.2, 0.04))
    runs = [f"{LLAMA},1,1024,1024,{n},{slip * a},{slip * b}" for n, a, b in loads]
    with pytest.raises(RooflinesError) as refusal:
        rooflines.measurements(config(tmp_path, *runs), "runs")
    message = str(refusal.value)
    assert "tpot_s of h200-sxm, and likely ttft_s, is" in message
    assert f"fix: write seconds: times {factor}" in message


def test_runs_are_not_calibrated(tmp_path, capsys):
    config(tmp_path, *RUNS)
    words = ("calibrate", str(tmp_path / "runs.csv"), "--chip", "h200-sxm", "--software", "vllm")
    assert "has runs of served models, which are not fitted" in refused(capsys, *words)
