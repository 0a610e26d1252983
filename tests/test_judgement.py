"""The commands `measured join` and `measured judge`: numbers by hand, files, what is refused."""

import json

import polars as pl
import pytest
from catalogues import NOMINAL, shipped
from command_line import refused, said
from timed_sets import BF16, HEAD

from benchmarks.calibration import pair_row
from rooflines.fits.calibration_files import shipped_calibrations
from rooflines.fits.timings import Timings
from rooflines.measured.catalogues import WEIGHT_FORMATS, compute_of
from rooflines.measured.join import join_timings
from rooflines.measured.judgement import ordering, pairs_of, per_token_and_chip, wrong_pairs

RUNS = "model,chip,software,tp,input_tokens,output_tokens,concurrency,ttft_s,tpot_s"


def written(folder, *rows, head=HEAD):
    path = folder / "timings.csv"
    path.write_text("\n".join([head.rstrip(), *rows]) + "\n", encoding="utf-8")
    return str(path)


def three_chips(folder):
    """8192 x 8192 at B = 4096: H200 is as fast as H100, and A100 is timed faster than it can be."""
    times = {"h100-sxm": 8e-4, "h200-sxm": 7.9e-4, "a100-sxm-80gb": 5e-4}
    return written(folder, *(f"{chip},{BF16},4096,8192,8192,{s}" for chip, s in times.items()))


def test_pairs_are_counted_by_their_order():
    times = pl.DataFrame(
        {
            "chip": ["a", "b", "c", "a"],
            "software": ["x", "x", "x", "y"],
            "B": [1, 1, 1, 2],
            "seconds": [1.0, 1.2, 2.0, 9.0],
            "t_lower_s": [0.3, 0.2, 0.1, 0.1],
            "t_estimate_s": [1.0, 1.1, 1.05, 5.0],
        }
    )
    pairs = pairs_of(times)
    assert pairs.select("one", "other").rows() == [("a", "b"), ("a", "c"), ("b", "c")]
    (chips,) = ordering(pairs).to_dicts()
    assert pair_row(chips)[:2] == (f"wrong pairs of {chips['subject']}", "steps")
    assert chips == {
        "subject": "chips",
        "pairs": 3,
        "apart": 2,  # 2 and 1.67 times; 1.2 times is not
        "bound_right": 0,
        "estimate_right": 0.5,
        "bound_tau": -1,
        "estimate_tau": pytest.approx(1 / 3),
    }
    assert wrong_pairs(pairs).select("one", "other").rows() == [("b", "c")]
    cases = [
        ("splits", "8/1/8/1", "8/1/1/8", 1.3, "experts split by width or by expert"),
        ("splits", "4/1/4/1", "2/2/1/4", 1.3, "one by dp and by expert"),
        ("splits", "4/1/4/1", "8/1/8/1", 1.15, "a tie by estimate, within 15 %"),
        ("engines", "vllm", "sglang", 1.16, "more than 15 % apart"),
        ("concurrency", "8", "16", 1.01, "measured, more requests make a token slower"),
    ]
    for subject, one, other, estimate, reason in cases:
        columns = {"subject": [subject], "one": [one], "other": [other]}
        pair = pl.DataFrame({**columns, "measured": [0.5], "bound": [1.0], "estimate": [estimate]})
        assert wrong_pairs(pair)["reason"][0].startswith(reason)


def test_estimates_that_are_equal_but_for_rounding_order_nothing():
    times = pl.DataFrame(
        {
            "chip": ["a", "b"],
            "B": [1, 1],
            "seconds": [1.0, 2.0],
            "t_lower_s": [0.1 + 0.2, 0.3],
            "t_estimate_s": [1.0, 1.0],
        }
    )
    (row,) = ordering(pairs_of(times)).to_dicts()
    assert (row["bound_right"], row["estimate_right"], row["estimate_tau"]) == (0, 0, 0)


def test_each_time_of_a_served_run_is_of_a_token_of_its_own_batch():
    times = {key: [12.0] for key in ("seconds", "t_lower_s", "t_estimate_s")}
    run = {**times, "chips": [5], "mean_B": [2.0], "B": [3], "estimate_B": [4]}
    found = per_token_and_chip(pl.DataFrame(run))
    assert found.select(*times).row(0) == (30, 20, 15)


def test_served_runs_are_compared_by_the_time_of_a_token_on_a_chip():
    """Four chips halve the time of a token: per chip and token they take twice as long."""
    names = RUNS.split(",")
    rows = [
        ("llama-3.1-8b", "h100-sxm", "trtllm", tp, 1024, 1024, 1, 0.1, tpot)
        for tp, tpot in ((1, 0.02), (4, 0.01))
    ]
    frame = pl.DataFrame(rows, schema=names, orient="row")
    found = join_timings(Timings("t", frame), shipped()).frame
    (pair,) = pairs_of(found).to_dicts()
    one, four = (819 * tpot / (0.1 + 819 * tpot) for tpot in (0.02, 0.01))  # in decode
    assert pair["subject"] == "splits"
    assert pair["measured"] == pytest.approx((0.02 / one) / (0.01 * 4 / four))
    estimates = found["t_estimate_s"].to_list()
    assert pair["estimate"] == pytest.approx(estimates[0] / (4 * estimates[1]), rel=1e-8)


def test_judge_writes_errors_and_pairs(tmp_path, capsys):
    table = three_chips(tmp_path)
    found = json.loads(said(capsys, "measured", "judge", table, "--json"))
    assert found["whole"]["n"] == 3
    bound = 2 * 4096 * 8192 * 8192 / 989e12
    (h100,) = (
        row for row in found["errors"] if (row["chip"], row["region"]) == ("h100-sxm", "all")
    )
    assert h100["bare_median"] == pytest.approx(1 - bound / 8e-4)
    out = said(capsys, "measured", "judge", table, "--csv")
    assert out.splitlines()[0].startswith("set,model,chip,software")
    assert "no pair is ranked wrongly" in said(capsys, "measured", "judge", table, "--wrong")


def test_errors_at_models_left_out_stand_before_those_in_sample(tmp_path, capsys):
    """By chip and engine of the runs, from the fits; the file of runs says nothing of them."""
    runs = [f"llama-3.1-8b,h200-sxm,{one},1,1024,1024,8,0.1,0.01" for one in ("vllm", "sglang")]
    table = written(tmp_path, *runs, head=RUNS)
    steps = shipped_calibrations().steps
    found = json.loads(said(capsys, "measured", "judge", table, "--json"))
    rows = {row["subject"]: row for row in found["held_out"]}
    assert list(rows) == ["all", "h200-sxm sglang", "h200-sxm vllm"]
    for key, row in rows.items():
        fit = steps[key.replace(" ", "/")]["decode"]
        assert fit.held_out is not None
        assert fit.fitted is not None
        assert (row["n"], row["median"], row["p90"]) == (
            *(fit.held_out.n, fit.held_out.median, fit.held_out.p90),
        )
        assert fit.held_out.median > fit.fitted.median
        assert (row["low"], row["high"]) == fit.bands["step"]
        assert (row["low_experts"], row["high_experts"]) == fit.bands["step-experts"]
    printed = said(capsys, "measured", "judge", table)
    held_out, in_sample = printed.index("Held out: "), printed.index("In-sample (split fit): ")
    error = printed.index(f"{rows['all']['median']:.1%}")
    assert held_out < error < in_sample < printed.index("llama-3.1-8b h200-sxm vl")


def test_timings_that_no_fit_of_steps_estimates_have_no_errors_held_out(tmp_path, capsys):
    for table in (
        three_chips(tmp_path),
        written(tmp_path, "llama-3.1-8b,h200-sxm,mine,1,1024,1024,8,0.1,0.01", head=RUNS),
    ):
        assert json.loads(said(capsys, "measured", "judge", table, "--json"))["held_out"] == []
        assert "In sample" not in said(capsys, "measured", "judge", table)


def test_errors_by_model_chip_engine_and_source_say_what_no_fit_has_seen(tmp_path, capsys):
    """phi-4 is in no fit, and B300 has no runs at all."""
    rows = [
        f"{model},{chip},vllm,1,1024,1024,{n},0.1,{tpot},{lab}"
        for model, chip, n, tpot, lab in (
            ("llama-3.1-70b", "b200", 8, 0.04, "one lab"),
            ("llama-3.1-70b", "b200", 16, 0.06, "one lab"),
            ("llama-3.1-8b", "h200-sxm", 8, 0.01, "one lab"),
            ("phi-4", "b300", 8, 0.02, "another"),
        )
    ]
    table = written(tmp_path, *rows, head=f"{RUNS},source")
    judged = json.loads(said(capsys, "measured", "judge", table, "--json"))
    errors = {(row["subject"], row["name"]): row for row in judged["grouped"]}
    joined = json.loads(said(capsys, "measured", "join", table, "--json"))
    steps = shipped_calibrations().steps
    outside = [
        row["model"] not in steps[key]["decode"].models
        if (key := f"{row['chip']}/vllm") in steps
        else True
        for row in joined
    ]
    assert 0 < sum(outside) < len(outside)
    assert errors["fit", "outside the fit"]["n"] == sum(outside)
    assert errors["fit", "outside the fit"]["outside"] == sum(outside)
    assert errors["fit", "in the fit"]["outside"] == 0
    assert errors["engine", "vllm"]["n"] == len(joined)
    (of_phi,) = (row for row in joined if row["model"] == "phi-4")
    error = abs(of_phi["t_estimate_s"] / of_phi["seconds"] - 1)
    for group in (("model", "phi-4"), ("chip", "b300"), ("source", "another")):
        assert errors[group]["median"] == pytest.approx(error)
        assert errors[group]["ratio"] == pytest.approx(of_phi["seconds"] / of_phi["t_estimate_s"])
        inside = of_phi["t_estimate_p10_s"] <= of_phi["seconds"] <= of_phi["t_estimate_p90_s"]
        assert errors[group]["coverage"] == inside
    printed = said(capsys, "measured", "judge", table)
    assert "By what runs share; outside the fit: models that their step fit has" in printed
    assert f"{error:.1%}" in printed


def test_join_writes_each_timing(tmp_path, capsys):
    table, out_file = three_chips(tmp_path), tmp_path / "joined.parquet"
    said(capsys, "measured", "join", table, "-o", str(out_file))
    stored = pl.read_parquet(out_file)
    assert stored["ratio_lower"][0] == pytest.approx(8e-4 / (2 * 4096 * 8192 * 8192 / 989e12))
    assert stored["reason"].to_list() == [None, None, "unexplained"]
    as_csv = tmp_path / "joined.csv"
    said(capsys, "measured", "join", table, "-o", str(as_csv), "--where", "chip=h100-sxm")
    assert pl.read_csv(as_csv)["chip"].to_list() == ["h100-sxm"]


def test_join_names_the_ten_largest_groups_without_an_estimate(tmp_path, capsys):
    rows = [
        f"h100-sxm,engine-{group},bf16,bf16,bf16,bf16,{4096 + of},8192,8192,8e-4"
        for group in range(1, 13)
        for of in range(group)
    ]
    lines = said(capsys, "measured", "join", written(tmp_path, *rows)).splitlines()
    named = [line.split() for line in lines if " without " in line and "engine-" in line]
    assert [int(words[0]) for words in named] == [*range(12, 2, -1)]
    assert "  and 2 smaller groups without one" in lines


def test_other_calibrations_win(tmp_path, capsys):
    fit = {**NOMINAL, "overhead_s": 1, "bands": {"compute": [0.5, 2]}}
    mine = tmp_path / "mine.yaml"
    mine.write_text(json.dumps({"calibrations": {"h100-sxm/trtllm": {"bf16": fit}}}))
    words = ("join", three_chips(tmp_path), "--calibrations", str(mine), "--json")
    rows = json.loads(said(capsys, "measured", *words))
    assert rows[0]["t_estimate_s"] == pytest.approx(1, rel=1e-2)
    assert rows[1]["t_estimate_s"] < 1e-2


def test_the_software_of_a_source_counts_where_none_is_given(tmp_path, capsys):
    head = HEAD.replace("software", "source")
    row = "h100-sxm,collection/trtllm/1.2,bf16,bf16,bf16,bf16,4096,8192,8192,8e-4"
    table = written(tmp_path, row, head=head)
    (found,) = json.loads(said(capsys, "measured", "join", table, "--json"))
    assert (found["software"], found["calibration"]) == ("trtllm", "h100-sxm/trtllm")
    table = written(tmp_path, row, row.replace("collection/trtllm/1.2", "me"), head=head)
    found = json.loads(said(capsys, "measured", "join", table, "--json"))
    assert [one["software"] for one in found] == [None, None]


FORMATS = "linear,experts"


@pytest.mark.parametrize(
    ("name", "chip", "compute"),
    [
        ("int4_wo", "h100-sxm", "bf16"),
        ("mxfp4", "b200", "mxfp4"),
        ("mxfp4", "h200-sxm", "fp8"),
    ],
)
def test_narrow_formats_of_weights_are_read_and_computed_as_the_chip_can(
    name, chip, compute, tmp_path, capsys
):
    """The bound of weights alone: a quarter of those in bf16, and a little for the scales."""
    runs = [
        f"llama-3.1-8b,{chip},vllm,1,1024,1024,1,0.1,0.02,{one},{one}" for one in ("bf16", name)
    ]
    table = written(tmp_path, *runs, head=f"{RUNS},{FORMATS}")
    wide, narrow = json.loads(said(capsys, "measured", "join", table, "--json"))
    assert compute_of(WEIGHT_FORMATS[name], shipped().chips[chip]) == compute
    assert 0.25 < narrow["t_lower_s"] / wide["t_lower_s"] < 0.5


def test_another_format_of_weights_is_refused_with_those_that_are_read(tmp_path, capsys):
    run = "llama-3.1-8b,h100-sxm,vllm,1,1024,1024,1,0.1,0.02,int5_wo,int5_wo"
    refusal = refused(capsys, "measured", "join", written(tmp_path, run, head=f"{RUNS},{FORMATS}"))
    for name in ("int5_wo", "mxfp4", "int4_wo"):
        assert name in refusal
