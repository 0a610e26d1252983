"""Cases of both kinds: an operation is one kernel, a step is a list of kernels with counts."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from serving_sweeps import model_sweep

import rooflines
from rooflines.model import resources
from rooflines.model.resources import RESOURCES, Resource, memory_rate
from rooflines.models.groups import StepExtents, work
from rooflines.sweep.cases import Case

SWEEP = {
    "operation": "matmul",
    "grid": {"B": 64, "D": 4096, "F": 8192},
    "dtypes": ["bf16", "fp8"],
    "chips": ["tpu-v5e", "h100-sxm"],
    "sharding": ["none", "contracting/all-reduce"],
    "shards": [1, 4, 64],
}
STEP = {
    "models": ["deepseek-v3", "gpt-oss-120b"],
    "phase": ["decode", "prefill"],
    "grid": {"B": [8, 64], "S": [100, 4096]},
    "dtypes": ["fp8"],
    "chips": ["h200-sxm"],
    "splits": [{"tp": 8}, {"tp": 2, "dp": 4, "ep": 8}],
}
OPERATION = rooflines.load_config({"sweeps": {"one": SWEEP}}).sweep("one")
STEPS = model_sweep(STEP)


def test_places_have_the_variants_that_they_support():
    (v5e, h100), skipped = OPERATION.supported
    assert [(case.dtypes, case.variant.sharding, case.variant.axes) for case in v5e.cases] == [
        ("bf16", "none", (1,)),
        *(("bf16", "contracting/all-reduce", (chips,)) for chips in (1, 4)),
    ]
    assert {case.shards for case in h100.cases} == {1, 4}
    assert sum(each.rows for each in skipped) + v5e.rows + h100.rows == 2 * 2 * 4
    assert {str(each.reason) for each in skipped} == {
        "no fp8 peak of its matrix unit",
        "16 chips at most on one ici",
        "8 chips at most on one nvlink",
    }


def test_an_operation_is_one_kernel():
    case = OPERATION.blocks[1].cases[2]
    ((count, kernel),) = case.parts
    assert (count, kernel.name, case.shards) == (1, "matmul", 4)
    sizes = {"B": 64, "D": 4096, "F": 8192}
    assert case.work("flops").at(sizes) == Fraction(2 * 64 * 4096 * 8192, 4)
    sent = case.work("network_bytes")
    assert sent.at(sizes) == Fraction(2 * 3, 4) * 2 * 64 * 8192
    assert case.times.by["network"].pieces[0][0].terms is sent.terms
    assert case.estimate is None


def test_a_step_is_a_list_of_kernels_with_counts():
    for block in STEPS.blocks:
        case = block.cases[0]
        step = case.step(64, 4096)
        flops = case.work("flops").at(StepExtents(step)) * case.split.chips
        assert flops == work(case.model.groups(case.phase), "flops", step)
        assert case.kernels[0].name == "embed"


@pytest.mark.parametrize("name", [resource.work for resource in RESOURCES])
def test_times_are_sums_over_kernels(name):
    for case in (*OPERATION.blocks[0].cases, *(block.cases[0] for block in STEPS.blocks)):
        at = {"B": 64, "D": 4096, "F": 8192}
        extents = StepExtents(case.step(64, 4096)) if hasattr(case, "step") else at
        (bound,) = (each.bound for each in RESOURCES if each.work == name)
        summed = sum(
            kernel.count * times.by[bound].at(extents)
            for kernel, times in zip(case.kernels, case.kernel_times, strict=True)
        )
        whole = case.times.by[bound].at(extents)
        assert whole <= summed if bound == "network" else whole == summed


def test_one_more_resource_is_in_both_kinds(monkeypatch):
    cache = Resource(
        "cache",
        "traffic_bytes",
        "cache",
        memory_rate,
        lambda kernel: kernel.work("memory_bytes") * 3,
    )
    monkeypatch.setattr(resources, "RESOURCES", (*RESOURCES, cache))
    cases: list[Case] = [OPERATION.blocks[0].cases[0], STEPS.blocks[0].cases[0]]
    for case in map(replace, cases):
        assert list(case.times.by) == ["compute", "memory", "network", "cache"]
        ((memory,),), ((traffic,),) = (case.times.by[each].pieces for each in ("memory", "cache"))
        assert traffic.coefficients == (memory * 3).coefficients
