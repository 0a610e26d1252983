"""Cases of both kinds: an operation is one kernel, a step is a list of kernels with counts."""

from __future__ import annotations

from fractions import Fraction

import pytest
from serving_sweeps import model_sweep

import rooflines
from rooflines.model.resources import RESOURCES
from rooflines.models.groups import StepExtents, work

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
