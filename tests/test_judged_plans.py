"""Choices among deployments by measured runs: reach by hand, Little's law, tables of two pools."""

import json

import pytest
from catalogues import shipped
from command_line import refused, said

from rooflines.fits.timing_tables import read_timings
from rooflines.measured.join import join_timings
from rooflines.measured.judged_plans import (
    LIMITS_S,
    MeasuredDeployment,
    Planned,
    above_bound,
    choice_errors,
    measured_deployments,
    plan_choices,
)
from rooflines.serving.servers import ESTIMATE_KEY, LOWER_KEY, SERIAL_KEY

IN_SAMPLE = False
GROUP = ("m", "c", "e", "bf16", "bf16", 1024, 1024)

HEAD = "model,chip,software,tp,input_tokens,output_tokens,concurrency,ttft_s,tpot_s"
RUNS = [
    f"llama-3.1-8b,h200-sxm,vllm,{tp},1024,1024,{users},0.1,{tpot}"
    for tp, users, tpot in (
        *((1, 1, 0.005), (1, 16, 0.008), (1, 64, 0.016)),
        *((2, 1, 0.004), (2, 16, 0.006), (2, 64, 0.009)),
    )
]

POOLS_HEAD = (
    "model,chip,engine,input_tokens,output_tokens,concurrency,prefill_servers,prefill_tp,"
    "prefill_attention_dp,prefill_moe_tp,prefill_moe_ep,decode_servers,decode_tp,"
    "decode_attention_dp,decode_moe_tp,decode_moe_ep,ttft_s,tpot_s"
)
POOLS = [
    f"llama-3.1-8b,h200-sxm,vllm,1024,1024,{users},{prefill},1,1,1,1,{decode},1,1,1,1,0.2,{tpot}"
    for users, prefill, decode, tpot in (
        *((8, 1, 1, 0.008), (64, 1, 1, 0.012)),
        *((8, 1, 2, 0.007), (64, 1, 2, 0.010)),
    )
]


def written(folder, head, rows):
    path = folder / "runs.csv"
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return str(path)


def deployments(path):
    return measured_deployments(join_timings(read_timings(path), shipped()).frame, shipped())


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    return deployments(written(tmp_path_factory.mktemp("mixed"), HEAD, RUNS))


@pytest.fixture(scope="module")
def pools(tmp_path_factory):
    return deployments(written(tmp_path_factory.mktemp("pools"), POOLS_HEAD, POOLS))


def run(split, chips, measured, planned):
    by_basis = dict.fromkeys((LOWER_KEY, SERIAL_KEY, ESTIMATE_KEY), Planned(*planned))
    return MeasuredDeployment(GROUP, "mixed", split, chips, IN_SAMPLE, Planned(*measured), by_basis)


def test_reach_is_of_the_best_run_with_the_chosen_split():
    """Within 20 ms the estimate takes `b` at 110; measured, `a` has 100 and `b` 60 within it."""
    runs = [
        run("a", 1, (0.018, 100), (0.018, 90)),
        run("a", 1, (0.010, 50), (0.010, 45)),
        run("a", 1, (0.040, 150), (0.040, 140)),
        run("b", 2, (0.022, 80), (0.019, 110)),
        run("b", 2, (0.012, 60), (0.012, 60)),
        run("b", 2, (0.008, 40), (0.008, 40)),
    ]
    choices = plan_choices(runs)
    first = choices.filter(by=ESTIMATE_KEY, tpot_limit_s=0.02).row(0, named=True)
    assert (first["chosen"], first["best"], first["kept"]) == ("b", "a", False)
    assert first["reach"] == pytest.approx(0.6)
    assert first["reach_ties"] == pytest.approx(0.6)  # 90 * 1.1 is below 110
    assert first["tpot_ratio"] == pytest.approx(0.019 / 0.022)
    assert first["output_ratio"] == pytest.approx(110 / 80)
    rules = dict(choices.filter(tpot_limit_s=0.02).select("by", "reach").iter_rows())
    assert rules["a split at random"] == pytest.approx((1 + 0.6) / 2)
    assert (rules["the fewest chips"], rules["the most chips"]) == (1, pytest.approx(0.6))
    last = choices.filter(by=ESTIMATE_KEY, tpot_limit_s=0.05).row(0, named=True)
    assert (last["chosen"], last["reach"], last["kept"]) == ("a", 1, True)
    (summary,) = choice_errors(choices.filter(by=ESTIMATE_KEY)).to_dicts()
    assert summary["choices"] == len(LIMITS_S)
    assert summary["kept_share"] == 0.75
    assert plan_choices(runs[:5]).is_empty()


def test_a_run_that_keeps_a_limit_is_reached_by_ties():
    runs = [
        run(name, 1, (0.01, rate), (0.01, plan))
        for name, rate, plan in (("a", 100, 90), ("b", 60, 100), ("c", 80, 60))
    ] * 2
    (first, *_) = plan_choices(runs).filter(by=ESTIMATE_KEY).to_dicts()
    assert (first["chosen"], first["reach"], first["reach_ties"]) == ("b", 0.6, 1)


def test_runs_are_planned_with_their_requests_in_flight(mixed):
    """Output tokens/s are concurrency * OSL / (TTFT + OSL * TPOT) on every basis, by Little."""
    assert {one.split for one in mixed} == {"tp1-dp1-ep1", "tp2-dp1-ep1"}
    assert all(one.in_sample for one in mixed)  # no run of another model is there
    for one, line in zip(mixed, RUNS, strict=True):
        users = int(line.split(",")[6])
        assert one.planned[LOWER_KEY].tpot_s <= one.planned[SERIAL_KEY].tpot_s
        assert one.planned[LOWER_KEY].tpot_s <= one.planned[ESTIMATE_KEY].tpot_s
        for planned in (one.measured, *one.planned.values()):
            assert planned.output_per_chip * one.chips <= users / planned.tpot_s
            assert planned.output_per_chip * one.chips > 0.8 * users / planned.tpot_s
    assert above_bound(mixed) == 0


def test_a_run_above_the_bound_is_counted(mixed):
    first = mixed[0]
    faster = Planned(first.measured.tpot_s, 1e9)
    assert above_bound([first._replace(measured=faster), *mixed[1:]]) == 1


def test_two_pools_are_planned_with_all_requests(pools):
    assert {(one.split, one.chips) for one in pools} == {
        ("1P tp1-dp1 + 1D tp1-dp1-ep1", 2),
        ("1P tp1-dp1 + 2D tp1-dp1-ep1", 3),
    }
    for one, line in zip(pools, POOLS, strict=True):
        users = int(line.split(",")[5])
        for planned in one.planned.values():
            in_decode = planned.output_per_chip * one.chips * planned.tpot_s
            assert in_decode <= users * (1 + 1e-9)
        assert one.planned[LOWER_KEY].output_per_chip >= one.planned[ESTIMATE_KEY].output_per_chip
    few, many = (one.planned[ESTIMATE_KEY] for one in (pools[0], pools[2]))
    assert many.tpot_s < few.tpot_s  # half of the sequences on each of two servers


def test_a_prefill_server_with_the_split_of_a_decode_server_plans_apart(tmp_path):
    """Rows whose prefill server another row has for decode, in either order."""
    fields = "llama-3.1-8b,h200-sxm,vllm,1024,1024,64,1,{},1,1,1,1,{},1,1,1,0.2,0.01"
    rows = [fields.format(1, 2), fields.format(2, 1)]

    def planned(lines, name):
        path = tmp_path / f"{name}.csv"
        path.write_text("\n".join([POOLS_HEAD, *lines]) + "\n", encoding="utf-8")
        return {one.split: one.planned for one in deployments(str(path))}

    apart = planned(rows[:1], "first") | planned(rows[1:], "second")
    assert planned(rows, "both") == apart
    assert planned(rows[::-1], "reversed") == apart


def test_a_table_of_two_pools_is_joined_by_decode_server(tmp_path, capsys):
    path = written(tmp_path, POOLS_HEAD, POOLS)
    rows = json.loads(said(capsys, "measured", "join", path, "--json"))
    decoding = 819 * 0.010
    assert rows[3]["B"] == int(64 / 2 * decoding / (0.2 + decoding))
    assert rows[3]["prompts_estimate_s"] is None


def test_the_judge_prints_choices(tmp_path, capsys):
    path = written(tmp_path, HEAD, RUNS)
    text = said(capsys, "measured", "judge", path)
    assert "Choices of a deployment within TPOT of 20, 30, 50, 100 ms" in text
    assert "by step fits that have seen the model" in text
    assert "0 of 6 runs above the bound in output tokens/s/chip" in text
    listed = said(capsys, "measured", "judge", path, "--choices")
    assert "tp1-dp1-ep1" in listed
    judged = json.loads(said(capsys, "measured", "judge", path, "--json"))
    rows = {row["by"]: row for row in judged["choices"]}
    assert rows["bound"]["choices"] == len(LIMITS_S)
    assert 0 < rows["a split at random"]["reach"] <= 1
    assert "two lists" in refused(capsys, "measured", "judge", path, "--choices", "--wrong")
