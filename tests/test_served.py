"""No public measurement of serving is below the least time of a step.

The measurements are not part of the repository: `ROOFLINES_PUBLIC_DATA` names their folder.
"""

from fractions import Fraction

import polars as pl
import pytest
from served import DATA, compared, served_csv
from served_estimates import Steps, fitted, judged, steps_of

import rooflines

HEAD = (
    "model,checkpoint,chip,engine,engine_version,precision,linear,experts,tp,pp,attention_dp,"
    "moe_tp,moe_ep,input_tokens,output_tokens,concurrency,batch,ttft_s,tpot_s,id\n"
)
LLAMA = (
    "llama-3.1-70b,,h200-sxm,trtllm,,fp8,fp8,fp8,{tp},1,1,{tp},1,1024,1024,{c},{c},{ttft},{tpot},"
)

READ = 69_501_714_432
"""Weights that a step of Llama 3.1 70B reads [1]."""

CACHED = 163_840
"""Its cache elements per token of context [1]."""


def made_up(folder, *rows):
    """Return runs that were never measured, compared."""
    path = folder / "served.csv"
    path.write_text(HEAD + "".join(f"{row}{number}\n" for number, row in enumerate(rows)))
    return compared(path)


def llama(tp, concurrency, ttft, tpot):
    """Return the row of a run of Llama 3.1 70B in fp8 on H200, without its id."""
    return LLAMA.format(tp=tp, c=concurrency, ttft=ttft, tpot=tpot)


def test_the_bounds_of_a_run_are_those_worked_out_by_hand(tmp_path):
    row = made_up(tmp_path, llama(1, 8, 0.5 * 819 * 0.02, 0.02)).row(0, named=True)
    assert (row["B"], row["S"], row["chips"], row["fits"]) == (5, 819 + 410, 1, True)
    assert row["tokens_per_s_per_chip"] == pytest.approx(8 / 1.5 / 0.02)
    step = Fraction(READ + 5 * CACHED * 1229) / Fraction("4.8e12")
    assert row["tpot_bound_s"] == pytest.approx(float(step), rel=1e-12)
    pairs = 819 * 820 // 2
    flops = 2 * 819 * (READ - 128_256 * 8192) + 2 * 128_256 * 8192 + 80 * 4 * 8192 * pairs
    reading = flops / 1.979e15
    assert row["ttft_bound_s"] == pytest.approx(reading, rel=1e-12)
    assert row["prompts_s"] == pytest.approx(reading * 5 / 819, rel=1e-12)
    assert row["experts_s"] == 0


def test_more_chips_share_the_work_and_a_lone_sequence_counts_as_one(tmp_path):
    frame = made_up(tmp_path, llama(1, 1, 99, 0.02), llama(4, 1, 99, 0.02))
    one, four = frame["tpot_bound_s"]
    assert frame["B"].to_list() == [1, 1]
    assert four == pytest.approx(one / 4, rel=1e-12)


def test_runs_are_left_out_with_a_reason(tmp_path):
    rows = (llama(1, 500, 0.01, 0.02), llama(16, 4, 0.1, 0.02), *[llama(1, 4, 0.1, 0.02)] * 2)
    frame = made_up(tmp_path, *rows).sort("id")
    why = [reason and reason.split()[0] for reason in frame["left_out"]]
    assert why == ["weights", "more", None, "the"]


NUMBERS = {"math": 0.4, "memory": 0.6, "network": 0.3, "overhead_s": 2e-5}


def test_the_estimate_of_a_run_is_that_of_explain(tmp_path):
    steps = steps_of(made_up(tmp_path, llama(2, 24, 0.5 * 1024 * 0.02, 0.02)))
    (run,) = steps.runs.to_dicts()
    assert (run["B"], run["S"], run["tp"], run["dp"], run["ep"]) == (16, 1024 + 512, 2, 1, 1)
    formats = {"weights": "fp8", "cache": "fp8", "activations": "bf16", "compute": "fp8"}
    row = rooflines.explain_model(
        "h200-sxm",
        "llama-3.1-70b",
        B=16,
        S=1536,
        dtypes={**formats, "attention": "bf16"},
        split="tp=2",
        calibration=["trtllm", "nccl"],
    ).row
    assert run["t_estimate_s"] == row["t_estimate_s"]
    assert run["t_lower_s"] == row["t_lower_s"]
    sums = steps.kernels.select(pl.col("math", "memory", "network") * pl.col("count")).sum()
    moved = row["t_memory_s"] + row["t_activation_s"]
    assert sums.row(0) == pytest.approx((row["t_math_s"], moved, row["t_network_s"]))


def test_a_fit_recovers_the_numbers_of_made_up_runs(tmp_path):
    sizes = [(tp, clients) for tp in (1, 2, 4, 8) for clients in (1, 4, 16, 64, 256, 1024)]
    runs = made_up(tmp_path, *(llama(tp, clients, 1e-9, 1.0) for tp, clients in sizes))
    steps = steps_of(runs)
    pieces = (pl.col(name) / NUMBERS[name] for name in ("math", "memory", "network"))
    seconds = pl.max_horizontal(*pieces) + NUMBERS["overhead_s"]
    sums = steps.kernels.group_by("run").agg(tpot_s=(pl.col("count") * seconds).sum())
    known = Steps(steps.runs.drop("tpot_s").join(sums, on="run"), steps.kernels)
    halves = known.runs.select("tp", "judged").unique()
    assert len(halves) == known.runs["tp"].n_unique() == 2 * halves["judged"].sum()
    numbers, _ = fitted(known)
    assert numbers["memory"] == pytest.approx(NUMBERS["memory"], rel=0.01)
    assert numbers["overhead_s"] == pytest.approx(NUMBERS["overhead_s"], rel=0.05)
    found = judged(known, numbers)
    assert found["t_fitted_s"].to_list() == pytest.approx(found["tpot_s"].to_list(), rel=0.02)


@pytest.fixture(scope="module")
def measured():
    path = served_csv()
    if path is None:
        pytest.skip(f"no public measurements: {DATA} names no folder")
    return compared(path)


def test_no_measurement_is_below_the_bound(measured):
    fit = measured.filter("fits")
    below = fit.filter(
        (pl.col("tpot_s") < pl.col("tpot_bound_s")) | (pl.col("ttft_s") < pl.col("ttft_bound_s"))
    )
    assert below["id"].to_list() == []
    assert len(fit) >= 2416
