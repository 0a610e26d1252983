"""Least work of a profiler's operators, and the least time of that work on a chip."""

import random
from fractions import Fraction
from typing import Any

import pytest

from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.kinds.formulas import taps
from rooflines.traces.bound_times import (
    ARGUMENT_TWICE,
    ASSUMED,
    FEWER_PRODUCTS,
    IN_CACHE,
    IN_SWITCH,
    PARTLY_IN_CACHE,
    UNEXPLAINED,
    TraceRates,
    faster_reason,
)
from rooflines.traces.collective_rules import collective_cost, custom_all_reduce_cost
from rooflines.traces.convolutions import pairs_inside
from rooflines.traces.copy_rules import compiled_cost, copy_cost
from rooflines.traces.engine_attention import engine_attention_cost
from rooflines.traces.operator_rules import (
    RULES,
    RULES_WITHOUT_PLACES,
    has_rule,
    operator_cost,
    operator_table,
)
from rooflines.traces.trace_records import (
    Activity,
    Arguments,
    CompilerWork,
    Message,
    OperatorCost,
    StepTokens,
    TokenSums,
)

BF16, FP32, INDEX = "c10::BFloat16", "float", "long int"


def arguments(*tensors, values=(), strides=(), dtype=BF16):
    """Arguments of tensors of one dtype; a pair is dims and their dtype."""
    typed = [pair if pair and isinstance(pair[0], list) else (pair, dtype) for pair in tensors]
    names = [name if dims else "Scalar" for dims, name in typed]
    return Arguments([dims for dims, _ in typed], names, strides, values)


def cost_of(name, *tensors, kernels=(), **more):
    return operator_cost(name, arguments(*tensors, **more), kernels)


def rates_of(chip):
    return TraceRates(chip, chip_entries()[chip])


WORKED = {
    "mm": (("aten::mm", [16, 512], [512, 64]), 1_048_576, 2 * (16 * 512 + 512 * 64 + 16 * 64)),
    "addmm": (("aten::addmm", [512], [141, 512], [512, 512]), 73_924_608, 814_080),
    "bmm": (("aten::bmm", [3, 4, 5], [3, 5, 7]), 840, 2 * (60 + 105 + 84)),
    "linear": (("aten::linear", [2, 8, 16], [32, 16], [32]), 16_384, 2 * (256 + 512 + 32 + 512)),
    "layer norm": (("aten::layer_norm", [1, 141, 512], [], [512], [512]), 0, 290_816),
    "mean": (("aten::mean", ([16, 559, 1024], FP32)), 0, 36_670_400),
    "add of a number": (("aten::add", ([16, 559], INDEX), []), 0, 2 * 16 * 559 * 8),
    "comparison": (("aten::eq", ([64], FP32), ([64], FP32)), 0, 64 * 9),
    "in place": (("aten::relu_", [64, 64]), 0, 4 * 64 * 64),
    "promoted": (("aten::mul", [8, 64], ([8, 64], FP32)), 0, 512 * 10),
    "broadcast": (("aten::add", [8, 64], [64]), 0, 2 * (512 + 64 + 512)),
    "copy to another dtype": (("aten::copy_", ([8, 64], FP32), [8, 64]), 0, 512 * 6),
    "gated": (("_C::silu_and_mul", [32, 64], [32, 128]), 0, 2 * (32 * 64 + 32 * 128)),
    "rotary": (("_C::rotary_embedding", ([32], INDEX), [32, 4096], [32, 1024]), 0, 655_360),
    "residual norm": (("_C::fused_add_rms_norm", [32, 64], [32, 64], [64]), 0, 4 * 4096 + 128),
}
VALUES = {"mean": ["", "[-1]"]}


@pytest.mark.parametrize("name", WORKED)
def test_an_operator_has_the_least_work(name):
    (operator, *tensors), flops, memory_bytes = WORKED[name]
    cost = cost_of(operator, *tensors, values=VALUES.get(name, ()))
    assert (cost.flops, cost.memory_bytes, cost.exact) == (flops, memory_bytes, True)


def test_padding_of_a_convolution_costs_nothing():
    values = ["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"]
    cost = cost_of("aten::convolution", [10, 64, 56, 56], [64, 64, 3, 3], values=values)
    assert cost.flops == 2_257_387_520 == 2 * 10 * 64 * 64 * 166**2
    both = ["", "", "", "", *values[3:], "[True, True, False]"]
    grad = cost_of(
        "aten::convolution_backward",
        [10, 64, 56, 56],
        [10, 64, 56, 56],
        [64, 64, 3, 3],
        values=both,
    )
    assert grad.flops == 2 * cost.flops


def test_pairs_of_positions_agree_with_the_kind_and_with_counting():
    seed = random.Random(7)
    for _ in range(200):
        size, kernel, stride = seed.randint(1, 12), seed.randint(1, 5), seed.randint(1, 3)
        padding, dilation = seed.randint(0, 3), seed.randint(1, 3)
        outputs = (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
        if outputs < 1:
            continue
        counted = sum(
            0 <= out * stride - padding + place * dilation < size
            for out in range(outputs)
            for place in range(kernel)
        )
        assert pairs_inside(size, outputs, kernel, stride, padding, dilation) == counted
        if dilation == 1:
            assert counted == taps(size, kernel, stride, padding)


def test_causal_attention_counts_pairs_up_to_the_diagonal():
    name, heads = "aten::_scaled_dot_product_flash_attention", [16, 16, 559, 64]
    causal, full = (
        cost_of(name, heads, heads, heads, values=["", "", "", "0.", flag]).flops
        for flag in ("True", "False")
    )
    assert causal == 10_257_694_720 == 4 * 64 * 16 * 16 * 156_520
    assert full == 4 * 64 * 16 * 16 * 559**2


def test_attention_backward_reads_no_scores():
    heads, values = [2, 4, 64, 32], [""] * 11 + ["False"]
    name = "aten::_scaled_dot_product_flash_attention_backward"
    cost = cost_of(name, *[heads] * 5, values=values)
    assert cost.flops == 2 * (3 * 32 + 2 * 32) * 2 * 4 * 64 * 64
    assert cost.memory_bytes == 2 * 2 * (2 * 4 * 64 * 32) * 4


def test_a_window_of_attention_bounds_its_pairs():
    heads, values = [1, 256, 2, 64], ["", "", "", "0.", "0.1", "True", "31", "0"]
    cost = cost_of("flash_attn::_flash_attn_forward", heads, heads, heads, values=values)
    assert cost.flops == 4 * 64 * 2 * (32 * 33 // 2 + (256 - 32) * 32)


def test_expanded_tensors_are_stored_once():
    whole = cost_of("aten::add", [64, 128], [64, 128])
    expanded = cost_of("aten::add", [64, 128], [64, 128], strides=[[128, 1], [0, 1]])
    assert whole.memory_bytes - expanded.memory_bytes == 2 * 63 * 128


@pytest.mark.parametrize(
    ("kernel", "compute"),
    [
        ("sm80_xmma_gemm_tf32f32_tn", "tf32"),
        ("ampere_sgemm_128x64_tn", "fp32 vector"),
        ("Cijk_Alik_Bljk_S_B_Bias", "tf32"),
        ("Cijk_Alik_Bljk_SB_MT64", "fp32 vector"),
        ("some_gemm", "fp32"),
    ],
)
def test_the_kernel_tells_the_unit_of_fp32_products(kernel, compute):
    cost = cost_of("aten::mm", [8, 8], [8, 8], dtype=FP32, kernels=[kernel])
    assert cost.compute == compute


def test_the_kernel_tells_the_dtype_of_lists():
    tensors = Arguments([[[4, 8], [16]], []], ["TensorList", "Scalar"], (), ())
    name = "aten::_foreach_add_"
    cost = operator_cost(name, tensors, ["multi<c10::BFloat16>"])
    assert cost
    assert cost.memory_bytes == 2 * 2 * 48
    assert operator_cost(name, tensors) is None


def test_operators_without_a_rule_or_shapes_have_no_cost():
    assert cost_of("aten::index", [8, 8]) is None
    assert operator_cost("aten::mm", Arguments()) is None
    assert operator_cost("aten::mm", Arguments([[8]], [BF16])) is None
    assert not has_rule("aten::index")


def test_arguments_that_are_not_as_an_operator_has_them_give_no_error():
    seed = random.Random(11)
    dims: list[Any] = [
        [],
        [0],
        [8],
        [8, 8],
        [[4], [4, 4]],
        [[[2]]],
        "8",
        None,
        7,
        [None, 3],
        ["a"],
        [-1, 4],
    ]
    types = (BF16, "float", "Scalar", "TensorList", "", "unknown", "c10::Float4_e2m1fn_x2")
    texts = ("", "[1, 2]", "[-9]", "True", "None", "1e9", "[", "x", "-3", "0")
    tokens = StepTokens(decodes=TokenSums(4, 4, 400, 4, 400))
    for name in [*operator_table(), "aten::_foreach_add_", "triton_red_fused_0"]:
        for _ in range(6):
            count = seed.randint(0, 8)
            recorded = Arguments(
                seed.choices(dims, k=count),
                seed.choices(types, k=count),
                seed.choices(((), [1], [0, 1]), k=count),
                seed.choices(texts, k=count),
            )
            for cost in (
                operator_cost(name, recorded, ["k<float>"]),
                engine_attention_cost(name, recorded, tokens),
                custom_all_reduce_cost(f"{name}::all_reduce", recorded, 8),
            ):
                assert cost is None or cost.kind


def test_each_operator_has_one_rule_that_is_there():
    table = operator_table()
    rules = {*RULES, *RULES_WITHOUT_PLACES, "engine-attention"}
    assert {rule for rule, _ in table.values()} == rules - {"foreach", "triton"}
    assert len(table) > 280


def test_routed_experts_read_those_that_tokens_choose():
    experts = ([[8, 64], BF16], [[4, 64, 64], BF16], [[4, 64, 32], BF16], [[8, 2], FP32])
    cost = cost_of("vllm::outplace_fused_experts", *experts, ([8, 2], "int"))
    touched = 4 * (1 - Fraction(1, 2) ** 8)
    assert cost.flops == 2 * 8 * 2 * 3 * 64 * 32
    assert cost.memory_bytes == 2 * (touched * 3 * 64 * 32 + 2 * 8 * 64)
    assert not cost.exact


def test_an_engines_attention_takes_its_contexts_from_the_step():
    tokens = StepTokens(decodes=TokenSums(32, 32, 32_785, 32, 32_785))
    cache = [835_874, 1, 8, 128]
    recorded = arguments([32, 8, 128], [32, 8, 128], [32, 32, 128], cache)
    name = "sglang_profiler::attention_paged_attention_ragged"
    cost = engine_attention_cost(name, recorded, tokens)
    assert cost
    assert cost.flops == 537_149_440
    assert cost.memory_bytes == 134_811_648
    assert not cost.exact
    assert engine_attention_cost(name, recorded, StepTokens()) is None
    assert engine_attention_cost("aten::mm", recorded, tokens) is None


# ------------------------------------------------------------ collectives and copies


def test_a_collective_takes_the_bytes_that_a_rank_must_send():
    count = 27_291_648 // 2
    cost = collective_cost(Message("allreduce", "BFloat16", count, count, 4))
    seconds = rates_of("mi300x").seconds(cost)
    assert seconds.network == pytest.approx(2 * 0.75 * 27_291_648 / (3 * 64e9))
    assert seconds.network == pytest.approx(213.2e-6, rel=1e-3)
    assert seconds.network_bytes == 1.5 * 27_291_648
    gathered = collective_cost(Message("_allgather_base", "Float", 100, 400, 4))
    assert gathered
    assert (gathered.collective, gathered.payload_bytes) == ("all-gather", 1600)


@pytest.mark.parametrize(
    ("name", "given", "gotten", "kind", "payload"),
    [
        ("gather", 100, 400, "gather", 1600),
        ("gather", 100, 0, "send", 400),
        ("scatter", 0, 100, "send", 400),
        ("recv", 100, 100, "send", 400),
        ("broadcast", 100, 100, "broadcast", 400),
        ("reduce_scatter_tensor_coalesced", 400, 100, "reduce-scatter", 1600),
    ],
)
def test_a_rooted_collective_is_bound_by_what_this_rank_moves(name, given, gotten, kind, payload):
    cost = collective_cost(Message(name, "Float", given, gotten, 4))
    assert cost
    assert (cost.collective, cost.payload_bytes) == (kind, payload)


def test_barriers_and_collectives_without_sizes_have_no_cost():
    for message in (
        Message("barrier", "Float", 1, 1, 8),
        Message("allreduce", "", 8, 8, 8),
        Message("allreduce", "Float", 0, 0, 8),
        Message("allreduce", "Float", 8, 8, 1),
    ):
        assert collective_cost(message) is None


def test_an_engines_all_reduce_takes_the_ranks_of_the_job():
    recorded = arguments([888, 2880])
    cost = custom_all_reduce_cost("vllm::all_reduce", recorded, 8)
    assert cost
    assert (cost.payload_bytes, cost.ranks, cost.exact) == (2 * 888 * 2880, 8, False)
    assert custom_all_reduce_cost("vllm::all_reduce", recorded, None) is None
    assert custom_all_reduce_cost("aten::mm", recorded, 8) is None


def activity(kind, direction="", copied_bytes=64):
    return Activity("Memcpy", kind, "0", "7", 0, 10, copied_bytes=copied_bytes, copy_kind=direction)


def test_copies_take_the_host_link_or_the_memory():
    host = copy_cost([activity("copy", "HtoD"), activity("set")])
    inside = copy_cost([activity("copy", "DtoD"), activity("set")])
    assert host
    assert inside
    assert (host.kind, host.host_bytes, host.memory_bytes) == ("host copy", 64, 0)
    assert inside.memory_bytes == 3 * 64
    assert copy_cost([activity("copy"), activity("kernel")]) is None
    assert rates_of("h100-sxm").seconds(host).bound == "host link"


def test_the_compilers_counts_are_assumed():
    cost = compiled_cost(CompilerWork("convolution fusion", 100.0, 20.0, "f32[8,128]{1,0}"))
    assert cost
    assert (cost.flops, cost.compute, cost.memory_bytes, cost.exact) == (100, "fp32", 20, False)
    assert compiled_cost(CompilerWork("copy", 0.0, 0.0)) is None


# ------------------------------------------------------------ bounds


def test_the_longest_resource_is_the_bound():
    rates = rates_of("mi300x")
    seconds = rates.seconds(OperatorCost("matmul", 1.3074e15, "bf16", 5.3e12))
    assert seconds.math == pytest.approx(1.0, rel=1e-3)
    assert seconds.memory == pytest.approx(1.0)
    assert seconds.lower == max(seconds.math, seconds.memory)
    assert seconds.upper == seconds.math + seconds.memory


def test_a_chip_without_the_dtype_or_network_gives_no_bound():
    rates = rates_of("v100-sxm2-32gb")
    missing_dtype = OperatorCost("matmul", 1e9, "bf16", 1e6)
    assert rates.seconds(missing_dtype) is None
    assert "bf16" in rates.missing_reason(missing_dtype)
    far = OperatorCost("collective", collective="all-reduce", payload_bytes=1e6, ranks=4096)
    assert rates.seconds(far) is None
    assert "4096" in rates.missing_reason(far)
    assert not rates.missing_reason(OperatorCost("copy", memory_bytes=1.0))


def test_fp32_products_take_the_unit_that_ran_them():
    peaks = rates_of("h100-sxm").peaks
    assert peaks["fp32"] == peaks["tf32"] > peaks["fp32 vector"]


def share_of(bound, chip, cost):
    """Reason at a share of the bound."""
    rates = rates_of(chip)
    return faster_reason(cost, rates, bound * rates.seconds(cost).lower)


def test_a_call_is_served_from_a_cache_only_at_its_rate():
    copied = OperatorCost("copy", memory_bytes=54.95e6)
    rates = rates_of("mi300x")
    assert faster_reason(copied, rates, 10.142e-6) == IN_CACHE
    assert faster_reason(copied, rates, 10.4e-6) is None
    assert faster_reason(copied, rates, 1e-6) == UNEXPLAINED
    summed = OperatorCost("reduction", memory_bytes=32e6)
    assert faster_reason(summed, rates_of("a100-sxm-40gb"), 1e-6) == UNEXPLAINED


def test_a_call_below_its_bound_says_why():
    chip, large = "mi300x", 300e6
    assert share_of(0.9, chip, OperatorCost("x", memory_bytes=large, exact=False)) == ASSUMED
    assert share_of(0.9, chip, OperatorCost("copy", memory_bytes=large)) == PARTLY_IN_CACHE
    products = OperatorCost("convolution", 1e15, "bf16", large)
    assert share_of(0.9, chip, products) == FEWER_PRODUCTS
    assert share_of(0.9, chip, OperatorCost("matmul", 1e15, "bf16", large)) == UNEXPLAINED
    twice = OperatorCost("elementwise", memory_bytes=8e9, repeated_bytes=4e9)
    assert share_of(0.9, chip, twice) == ARGUMENT_TWICE
    assert share_of(0.4, chip, twice) == UNEXPLAINED


def test_an_all_reduce_in_the_switch_sends_the_payload_once_at_least():
    cost = OperatorCost("collective", collective="all-reduce", payload_bytes=1e9, ranks=8)
    assert share_of(0.9, "h100-sxm", cost) == IN_SWITCH
    assert share_of(0.5, "h100-sxm", cost) == UNEXPLAINED
    assert share_of(0.9, "mi300x", cost) == UNEXPLAINED
