"""Synthetic steps of models with dense, routed and shared layers, MLA and windows: recovered.

A step is written as a graph's kernels, as engines name and order them. Each group of a layer runs
at a planted multiple of its bound, gaps are planted between kernels, and the answer has both back.
"""

import random
from collections import Counter

import pytest
from traced import event, kernel, launch, write_trace

from rooflines.basics.errors import RooflinesError
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.models.library import load
from rooflines.traces.bound_times import TraceRates
from rooflines.traces.kernel_names import kernel_kind
from rooflines.traces.laid_traces import lay_trace
from rooflines.traces.model_step import KEYS, QUERIES, ModelStep, step_sums
from rooflines.traces.step_annotations import step_tokens

CHIP = "h200-sxm"
DECODE = "execute_64_context_0(sq0sk0sqsq0sqsk0)_generation_64(sq64sk131072sqsq64sqsk131072)"
PREFILL = (
    "execute_4096_context_2(sq4096sk4096sqsq8388608sqsk8388608)_generation_0(sq0sk0sqsq0sqsk0)"
)

NORM, ROTARY = "fused_add_rms_norm_kernel", "rotary_embedding_kernel"
MATMUL, BATCHED = "nvjet_tst_128x8_64x12", "bmm_cutlass_gemm"
ACTIVATION, ROUTING = "act_and_mul_kernel", "grouped_topk_kernel"
EXPERTS, SUM = "fused_moe_kernel", "moe_sum_kernel"

QKV = [(NORM, None), (MATMUL, "qkv"), (ROTARY, None), ("reshape_and_cache_flash", None)]
APART = [(NORM, None), *[(MATMUL, "qkv")] * 3, (ROTARY, None), ("store_kv_cache", None)]
FLASH = [("flash_fwd_splitkv_kernel", "attention"), ("flash_fwd_splitkv_combine", "attention")]
MLA_DOWN = [(NORM, None), (MATMUL, "qkv-down"), (NORM, None), (MATMUL, "q-up")]
MLA_DECODE = [
    *[*MLA_DOWN, (BATCHED, "kv-up"), (NORM, None), (ROTARY, None)],
    *[("concat_and_cache_mla_kernel", None), ("flash_fwd_splitkv_mla_kernel", "attention")],
    *[("flash_fwd_mla_combine_kernel", "attention"), (BATCHED, "kv-up"), (MATMUL, "o")],
]
MLA_PREFILL = [
    *[*MLA_DOWN, (NORM, None), (ROTARY, None), ("concat_and_cache_mla_kernel", None)],
    *[(MATMUL, "kv-up"), ("concat_mla_k_kernel", None), ("flash_fwd_kernel", "attention")],
    (MATMUL, "o"),
]
DENSE = [(NORM, None), (MATMUL, "gate-up"), (ACTIVATION, None), (MATMUL, "down")]
GATE_APART = [(NORM, None), *[(MATMUL, "gate-up")] * 2, (ACTIVATION, None), (MATMUL, "down")]
ROUTER = [(MATMUL, "router"), (ROUTING, None)]
ROUTED = [(EXPERTS, "experts"), (ACTIVATION, None), (EXPERTS, "experts"), (SUM, "experts")]
SHARED = [(MATMUL, "shared"), (ACTIVATION, None), (MATMUL, "shared")]
HEAD = [(NORM, None), (MATMUL, "unembed")]

MOE_ORDERS = {
    "shared first": [*SHARED, *ROUTER, *ROUTED],
    "router first": [*ROUTER, *SHARED, *ROUTED],
    "shared last": [*ROUTER, *ROUTED, *SHARED],
}
"""Orders of vLLM's DeepSeek, its Llama 4, and of transformers."""


def windowed(pattern, name):
    """Attention of a layer, with a window in those that the pattern names."""
    return [(FLASH[0][0], name if pattern else "attention")]


def layers_of(model, order="shared first", phase="decode"):
    """Kernels of each layer, as (kernel, group), written by hand for each model."""
    moe = [(NORM, None), *MOE_ORDERS[order]]
    mla = MLA_DECODE if phase == "decode" else MLA_PREFILL
    gqa = [*QKV, *FLASH, (MATMUL, "o")]
    if model == "deepseek-v3":
        return [[*mla, *(DENSE if layer < 3 else moe)] for layer in range(61)]
    if model == "kimi-k2":
        return [[*mla, *(DENSE if layer < 1 else moe)] for layer in range(61)]
    if model == "glm-4.5":
        return [[*gqa, *(GATE_APART if layer < 3 else moe)] for layer in range(92)]
    if model == "llama-4-maverick":
        return [
            [
                *QKV,
                *windowed((layer + 1) % 4, "attention-chunk"),
                *[(MATMUL, "o"), *(moe if layer % 2 else DENSE)],
            ]
            for layer in range(48)
        ]
    if model == "gpt-oss-20b":
        part = [(MATMUL, "o"), (NORM, None), *ROUTER, *ROUTED]
        names = [windowed(layer % 2 == 0, "attention-window") for layer in range(24)]
        return [[*QKV, *name, *part] for name in names]
    return [[*APART, *FLASH, (MATMUL, "o"), *GATE_APART] for _ in range(load(model).shape.layers)]


def planted(draw, model, layers, step=DECODE, tp=8):
    """Events of a step in a graph; time by group [ns], bound by group [s], idle time [ns]."""
    sums = step_sums(step_tokens(step))
    assert sums
    rates = TraceRates(CHIP, chip_entries()[CHIP])
    costs = ModelStep(load(model), sums, tp, chip_entries()[CHIP]).group_costs()
    times_of = {name: rates.seconds(cost) for name, cost in costs.items()}
    bounds = {name: seconds.lower for name, seconds in times_of.items() if seconds}
    # Full layers run longer than sliding-window layers: anchors are told apart by their time.
    factors = {name: draw.uniform(1.3, 3.0) for name in costs}
    factors |= {name: 1.2 for name in costs if name.startswith("attention-")}
    times, idle_ns, at_ns, events = dict[str, int](), 0, 100_000, []
    events += [
        launch(1, 5.0, 20.0, name="cudaGraphLaunch"),
        event("user_annotation", step, 0.0, 60),
    ]
    runs_of = []
    for number, names in enumerate(layers):
        whole = [*names, *(HEAD if number + 1 == len(layers) else [])]
        runs = Counter(group for _, group in whole)
        runs_of.append(runs)
        for name, group in whole:
            duration_ns = draw.randrange(1000, 3000)
            if group is not None:
                duration_ns = round(1e9 * bounds[group] * factors[group] / runs[group])
                times[group] = times.get(group, 0) + duration_ns
            gap_ns = draw.choice((0, 0, 300, 1250)) if len(events) > 2 else 0
            idle_ns += gap_ns
            at_ns += gap_ns
            events.append(kernel(name, 1, at_ns / 1000, duration_ns / 1000))
            at_ns += duration_ns
    counts = {name: sum(name in runs for runs in runs_of) for name in times}
    lower_s = {name: counts[name] * bounds[name] for name in times}
    return events, times, lower_s, idle_ns


def recovered(path, model, tp=8):
    """Answer, with [time, bound, headroom] of each group in s."""
    laid = lay_trace(path, CHIP, model=model, tp=tp)
    groups: dict[str, list[float]] = {}
    for bounded in laid.calls:
        lower_s = bounded.lower_s or 0.0
        sums = groups.setdefault(bounded.call.name, [0.0, 0.0, 0.0])
        for place, part_s in enumerate((bounded.seconds, lower_s, bounded.seconds - lower_s)):
            sums[place] += part_s
    return laid, groups


def check(path, model, layers, planted_sums):
    times, lower_s, idle_ns = planted_sums
    laid, groups = recovered(path, model)
    note = f"{model}: the matmuls of {len(layers)} of {len(layers)} layers fit"
    assert laid.match.notes == [note]
    for name, time_ns in times.items():
        headroom_s = time_ns / 1e9 - lower_s[name]
        expected = [time_ns / 1e9, lower_s[name], headroom_s]
        assert groups[name] == pytest.approx(expected, rel=1e-6), name
    total = laid.total
    assert total.queued_ns == idle_ns
    assert (total.not_launched_ns, total.in_call_ns, total.break_ns) == (0, 0, 0)
    assert total.total_ns == laid.busy_ns + idle_ns
    return laid


@pytest.mark.parametrize(
    ("model", "order"),
    [
        *((model, order) for model in ("deepseek-v3", "llama-4-maverick") for order in MOE_ORDERS),
        *(("kimi-k2", "router first"), ("glm-4.5", "shared first")),
        *(("gpt-oss-20b", "router first"), ("qwen3-8b", "router first")),
    ],
)
def test_planted_times_and_gaps_of_a_models_groups_come_back(model, order, tmp_path):
    draw = random.Random(f"{model}{order}")
    layers = layers_of(model, order)
    events, *sums = planted(draw, model, layers)
    check(write_trace(tmp_path / "step.json", events), model, layers, sums)


def test_prompts_of_mla_are_expanded(tmp_path):
    layers = layers_of("deepseek-v3", phase="prefill")
    events, *sums = planted(random.Random(1), "deepseek-v3", layers, PREFILL)
    check(write_trace(tmp_path / "step.json", events), "deepseek-v3", layers, sums)


def test_experts_with_unknown_names_leave_the_matmuls_their_layers(tmp_path):
    layers = [
        [("some_kernel", None) if group == "experts" else (name, group) for name, group in layer]
        for layer in layers_of("llama-4-maverick")
    ]
    events, *sums = planted(random.Random(2), "llama-4-maverick", layers)
    laid = check(write_trace(tmp_path / "step.json", events), "llama-4-maverick", layers, sums)
    assert not any(bounded.call.name == "experts" for bounded in laid.calls)


@pytest.mark.parametrize(
    ("ran", "given", "said"),
    [
        ("kimi-k2", "deepseek-v3", "60 of 61 layers have experts, and 58 of deepseek-v3's"),
        ("deepseek-v3", "kimi-k2", "58 of 61 layers have experts, and 60 of kimi-k2's"),
        ("llama-4-maverick", "llama-4-scout", "24 of 48 layers have experts, and 48 of"),
        ("llama-4-maverick", "qwen3-30b-a3b", "fits 23 of 48 layers: 4 matmuls where o, router"),
        ("deepseek-v3", "glm-4.5", "61 attention kernels are no multiple of glm-4.5's 92 layers"),
    ],
)
def test_a_model_with_other_layers_is_refused(ran, given, said, tmp_path):
    events, *_ = planted(random.Random(3), ran, layers_of(ran))
    with pytest.raises(RooflinesError, match=said):
        lay_trace(write_trace(tmp_path / "step.json", events), CHIP, model=given)


def step_of(model, tokens=DECODE, tp=1):
    sums = step_sums(step_tokens(tokens))
    assert sums
    return ModelStep(load(model), sums, tp, chip_entries()[CHIP])


def test_small_kernels_of_mla_have_the_latents_widths():
    step = step_of("deepseek-v3", tp=8)
    norms = (step.norm_cost(), step.norm_cost(QUERIES), step.norm_cost(KEYS))
    assert [norm.memory_bytes for norm in norms] == [
        (2 * 64 * width + width) * 2 for width in (7168, 1536, 512)
    ]
    assert step.norm_cost(QUERIES, KEYS).memory_bytes == (2 * 64 + 1) * 2048 * 2
    small = step.small_costs()
    assert small["cache write"].memory_bytes == 2 * 64 * (512 + 64) * 2
    assert small["rotary"].memory_bytes == 2 * 64 * (128 / 8 + 1) * 64 * 2


def test_an_activation_has_the_width_of_the_mlp_before_it():
    step = step_of("deepseek-v3", tp=8)
    widths = {"gate-up": 18_432, "shared": 2048, "experts": 8 * 2048}
    for group, width in widths.items():
        cost = step.activation_cost(group)
        assert cost
        assert cost.memory_bytes == 3 * 64 * width / 8 * 2
    assert step_of("mixtral-8x7b").activation_cost("") is None


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("void vllm::concat_and_cache_mla_kernel<bf16>", "cache write"),
        ("set_mla_kv_buffer_kernel", "cache write"),
        ("get_mla_metadata_kernel", "other"),
        ("concat_mla_k_kernel", "copy"),
        ("flash_fwd_splitkv_mla_kernel<Flash_fwd_kernel_traits_mla>", "attention"),
        ("flash_fwd_mla_combine_kernel", "attention part"),
        ("_fwd_grouped_kernel_stage1", "attention"),
        ("_fwd_kernel_stage2", "attention part"),
        ("cutlass::fmha::kernel::Sm100FmhaMlaKernelTma", "attention"),
        ("kn_mla_reduce_v1", "attention part"),
    ],
)
def test_kernels_beside_mla_are_no_attention(name, kind):
    assert kernel_kind(name) == kind
