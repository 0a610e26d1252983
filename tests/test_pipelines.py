"""Pipelines in serving: stages of whole layers, micro-batches, thresholds; wide expert groups."""

from fractions import Fraction

import pytest
from serving_tables import model_sweep

from rooflines.evaluation.row_frames import StepTable
from rooflines.models.groups import groups_of
from rooflines.models.library import load, model_entries
from rooflines.models.memory import kv_cache_elements, weights_on_chip
from rooflines.models.parameter_counts import parameters_of
from rooflines.models.split import Split
from rooflines.models.stages import spread_kinds, stage_layers, stage_shapes
from rooflines.solvers.threshold_frames import sweep_thresholds
from rooflines.sweep.exact_times import exact_step_seconds
from rooflines.sweep.prompt_times import prompt_seconds, prompts_seconds
from rooflines.theory.network import Link, stage_sends, strided_route
from rooflines.theory.routing import rank_hit_probability

LLAMA = "llama-3.1-70b"


def sweep(splits, grid, **keys):
    """A sweep of Llama 3.1 70B on H100 over NVLink and InfiniBand."""
    form = {"models": [LLAMA], "chips": ["h100-sxm"], "dtypes": ["bf16"], "splits": splits}
    return model_sweep({**form, "network": [["nvlink", "infiniband"]], "grid": grid, **keys})


def rows(table):
    """Rows of a sweep."""
    return StepTable(table).frame().collect().to_dicts()


def test_layers_differ_by_one_and_both_ends_have_the_fewer():
    assert stage_layers(80, 3) == (27, 27, 26)
    assert stage_layers(61, 8) == (7, 8, 8, 8, 8, 8, 7, 7)
    assert spread_kinds({"full": 2, "window": 4}).count("window") == 4


@pytest.mark.parametrize("name", sorted(model_entries()))
def test_stages_make_up_the_model(name):
    shape, stages = load(name).shape, 7
    parts = stage_shapes(shape, stages)
    assert sum(count for _, count in parts) == stages
    total = sum(count * parameters_of(stage).total for stage, count in parts)
    assert total == parameters_of(shape).total + shape.tied * shape.table
    elements = sum(count * kv_cache_elements(stage, 9000) for stage, count in parts)
    assert elements == kv_cache_elements(shape, 9000)
    for phase in ("decode", "prefill"):
        groups = {group.name: group.count for group in groups_of(shape, phase)}
        summed = dict.fromkeys(groups, 0)
        for stage, count in parts:
            for group in groups_of(stage, phase):
                summed[group.name] += count * group.count
        assert summed == groups


def test_a_hop_inside_a_node_uses_its_network():
    inner, outer = (
        Link(Fraction(4), "switch", domain=8, hop_latency_s=Fraction(1)),
        Link(Fraction(1), "switch", hop_latency_s=Fraction(3)),
    )
    assert stage_sends(strided_route((inner, outer), 4, 4)) == (2, 1)
    assert stage_sends(strided_route((inner, outer), 2, 8)) == (0, 1)
    assert stage_sends(strided_route((inner, outer), 2, 4)) == (1, 0)


def test_a_token_takes_every_stage_and_a_stage_every_micro_batch():
    table = sweep([{"tp": 8}, {"tp": 8, "pp": 2}], {"B": [1, 32, 64], "S": [8704]})
    alone, pipelined = table.cases
    one, two = (exact_step_seconds(case, case.step(1, 8704)) for case in (alone, pipelined))
    hop_s = 8192 * 2 / 8 / 5e10 + 2.7e-6
    assert two.lower == pytest.approx(one.lower + hop_s, rel=1e-12)
    assert two.serial == pytest.approx(one.serial + hop_s, rel=1e-12)
    half = exact_step_seconds(alone, alone.step(32, 8704))
    whole = exact_step_seconds(pipelined, pipelined.step(64, 8704))
    assert whole.lower >= half.lower  # never more tokens/s than two servers of tp8
    stages = [
        exact_step_seconds(stage, alone.step(32, 8704)).lower
        for stage, _ in pipelined.pipeline.stages
    ]
    hops = 32 * 8192 * 2 / 8 / 5e10 + 2.7e-6
    assert whole.lower == pytest.approx(max(sum(stages) + hops, 2 * max(stages)), rel=1e-12)


def test_memory_is_of_the_fullest_stage():
    (row,) = rows(sweep([{"tp": 8, "pp": 4}], {"B": [64], "S": [8704]}))
    layer = 8192 * (8192 + 2 * 1024) + 8192 * 8192 + 3 * 8192 * 28672 + 2 * 8192
    table = 128256 * 8192
    caches = 64 * 20 * 2 * 8 * 128 * 8704 * 2 / 8
    last = 20 * layer + table + 8192
    assert row["weights_footprint_bytes"] == pytest.approx(last * 2 / 8, rel=1e-12)
    assert row["footprint_bytes"] == pytest.approx(last * 2 / 8 + caches, rel=1e-12)
    capacity = row["footprint_bytes"] + (row["max_B"] - 64) * caches / 64
    assert capacity <= 85.02e9 < capacity + caches / 64


SPLITS = [{"tp": 8, "pp": 2}, {"tp": 2, "pp": 3, "dp": 1}, {"pp": 7}]


def test_rows_are_the_exact_steps():
    grid = {"B": [1, 3, 65], "S": [1, 1400]}
    phases = ["decode", "prefill"]
    table = sweep(SPLITS, grid, phase=phases, calibration=["vllm"])
    cases = {(case.split.name, case.phase): case for case in table.cases}
    found = rows(table)
    assert len(found) == 36
    for row in found:
        case = cases[row["split"], row["phase"]]
        exact = exact_step_seconds(case, case.step(row["B"], row["S"]))
        names = ("t_lower_s", "t_serial_s", "t_estimate_s")
        assert exact == pytest.approx([row[name] for name in names], rel=1e-12)
        assert row["t_estimate_p10_s"] is None  # no published run has stages
        assert row["t_lower_s"] <= row["t_serial_s"] <= row["t_upper_s"] * (1 + 1e-12)


def test_requests_are_means_over_steps():
    table = sweep([{"tp": 8, "pp": 2}], {"B": [65]}, requests=[{"input": 500, "output": 4}])
    (row,), (case,) = rows(table), table.cases
    steps = [exact_step_seconds(case, case.step(65, size)) for size in range(501, 505)]
    assert row["tpot_s"] == pytest.approx(sum(step.lower for step in steps) / 4, rel=1e-12)
    assert row["tpot_serial_s"] == pytest.approx(sum(step.serial for step in steps) / 4, rel=1e-12)
    stages = [case.prefill.pipeline.stages[index][0] for index in range(2)]
    prompt = [exact_step_seconds(stage, stage.step(1, 500)).lower for stage in stages]
    assert row["ttft_s"] == pytest.approx(max(prompt) + 2.7e-6, rel=1e-9)


@pytest.mark.parametrize("time", ["t_lower_s", "t_serial_s", "t_estimate_s"])
def test_the_largest_batch_in_time_and_the_critical_one_are_exact(time):
    targets = {"t_step_s": [0.007, 0.03], "time": time}
    keys = {"thresholds": ["B"], "targets": targets, "calibration": ["vllm"]}
    table = sweep([{"tp": 8}, *SPLITS], {"B": [64], "S": [512]}, **keys)
    cases = {case.split.name: case for case in table.cases}
    field = {"t_lower_s": "lower", "t_serial_s": "serial", "t_estimate_s": "estimate"}[time]

    def seconds(case, batch):
        return getattr(exact_step_seconds(case, case.step(batch, 512)), field)

    solutions = sweep_thresholds(table).to_dicts()
    assert len(solutions) == 8
    for row in solutions:
        case, last = cases[row["split"]], row["max_B_latency"]
        assert seconds(case, last + 1) > row["target_s"]
        assert not last or seconds(case, last) <= row["target_s"]
    pairs = {row["split"]: row["critical"] for row in solutions}
    assert pairs["tp8-pp2"] in (2 * pairs["tp8"], 2 * pairs["tp8"] - 1)
    edge = {"B": sorted({pairs["tp8-pp2"], pairs["tp8-pp2"] - 1}), "S": [512]}
    assert [row["bound"] for row in rows(sweep([{"tp": 8, "pp": 2}], edge))] == [
        "memory",
        "compute",
    ]


def test_experts_in_groups_are_read_as_those_over_all_chips():
    form = {"models": ["deepseek-v3"], "chips": ["h100-sxm"], "dtypes": ["fp8"]}
    splits = [{"tp": 8, "ep": 8}, {"tp": 8, "ep": 4}]
    table = model_sweep({**form, "splits": splits, "grid": {"B": [64], "S": [512]}})
    over_all, in_groups = rows(table)
    for name in ("flops", "weight_bytes", "weights_footprint_bytes"):
        assert in_groups[name] == over_all[name]
    # more chips need a token: one of its experts is in a group of two chips
    assert in_groups["network_bytes"] >= over_all["network_bytes"]


def test_experts_that_chips_cannot_share_evenly_fill_whole_slots():
    split = Split.model_validate({"dp": 72, "ep": 72})
    shape = load("deepseek-v3").shape
    split.check(shape)
    bits = dict.fromkeys(("weights", "experts", "head", "lm_head", "rest", "cache"), Fraction(8))
    held = weights_on_chip(shape, bits, split)
    fewer = weights_on_chip(shape, bits, Split.model_validate({"dp": 64, "ep": 64}))
    assert held == fewer  # ceil(256 / 72) = 256 / 64
    even = rank_hit_probability(256, 8, 64)
    assert rank_hit_probability(256, 8, 72) < even
    uneven = 1 - rank_hit_probability(5, 1, 2)
    assert uneven == Fraction(1, 2)


def test_a_prompt_on_one_replica_passes_stages_no_slower_than_with_one_on_each():
    keys = {"models": ["qwen3-30b-a3b"], "requests": [{"input": 4096, "output": 64}]}
    table = sweep([{"tp": 1, "dp": 4, "ep": 4, "pp": 2}], {"B": 8}, **keys)
    (case,) = (case for case in table.cases if case.phase == "decode")
    request = table.config.requests[0]
    alone, together = prompt_seconds(case, request), prompts_seconds(case, request)
    stages = [prompt_seconds(stage, request) for stage, _ in case.prefill.pipeline.stages]
    assert alone.lower < together.lower
    assert alone.serial < together.serial
    latency = float(case.prefill.pipeline.latency_s)
    assert alone.lower == pytest.approx(max(stage.lower for stage in stages) + latency, rel=1e-12)
    assert rows(table)[0]["ttft_s"] == pytest.approx(alone.lower, rel=1e-12)
