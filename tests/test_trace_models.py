"""Kernels of a trace laid on a model's layers, captures of graphs, and matmuls as timings."""

import json

import polars as pl
import pytest
from traced import event, kernel, launch, matmul, write_trace

from rooflines.answers.explain import explain_model
from rooflines.basics.errors import RooflinesError
from rooflines.cli.main import run
from rooflines.fits.calibration_files import shipped_calibrations
from rooflines.fits.timing_tables import read_timings
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.measured.catalogues import Catalogues
from rooflines.models.library import load
from rooflines.traces.bound_times import TraceRates
from rooflines.traces.call_frames import call_frame
from rooflines.traces.captures import captured_graphs, join_capture
from rooflines.traces.kernel_names import kernel_kind
from rooflines.traces.laid_traces import lay_trace
from rooflines.traces.model_calls import SeenSizes, auto_model, model_calls
from rooflines.traces.model_estimates import step_times
from rooflines.traces.model_layers import fitted_groups, lay_step
from rooflines.traces.model_step import KEYS, QUERIES, ModelStep, step_sums
from rooflines.traces.trace_records import (
    Activity,
    Annotation,
    Arguments,
    Call,
    HostLaunch,
    Operator,
    OperatorCost,
    StepTokens,
    TokenSums,
    Trace,
)
from rooflines.traces.trace_timings import library_split, library_times, matmul_timings
from rooflines.traces.unfused_attention import unfused_attention

THREAD = ("1", "1")
DECODE = StepTokens(decodes=TokenSums(32, 32, 32_785, 32, 32_785))
STEP = "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk32785sqsq32sqsk32785)"

NORM, MATMUL, ATTENTION = "rmsnorm_kernel", "Cijk_Alik_Bljk_BBS", "paged_attention_ll4mi"
LAYER = (
    *(NORM, MATMUL, NORM, NORM, "rotary_embedding", "reshape_and_cache", ATTENTION),
    *("paged_attention_ll4mi_reduce", MATMUL, NORM, MATMUL, "act_and_mul_kernel", MATMUL),
)
HEAD = (NORM, MATMUL)


def rates():
    return TraceRates("mi300x", chip_entries()["mi300x"])


def step_of(name="qwen3-8b", tokens=DECODE, tp=1, chip="mi300x"):
    sums = step_sums(tokens)
    assert sums
    return ModelStep(load(name), sums, tp, chip_entries()[chip])


def kernels(names, duration_ns=200_000):
    """Kernels one after another, all in step 0."""
    return [
        Activity(name, "kernel", "0", "7", place * duration_ns, (place + 1) * duration_ns, step=0)
        for place, name in enumerate(names)
    ]


def traced(activities, step=STEP):
    """Trace in which all activities are one step, and their calls without costs."""
    trace = Trace("x.json", activities, steps=[Annotation(step, THREAD, 0, 10**9)])
    return trace, [Call(a.name, "", [a], why="graph", origin="graph") for a in activities]


# ------------------------------------------------------------ names


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ncclDevKernel_AllReduce_Sum_bf16", "collective"),
        ("paged_attention_ll4mi_reduce_kernel<Fp8KVCacheDataType>", "attention part"),
        ("void flash::flash_fwd_kernel<128>", "attention"),
        ("_matmul_ogs_NNT_bf16xbf16xmxfp4", "experts"),
        ("Cijk_Alik_Bljk_BBS_BH_PostGSU4", "matmul part"),
        ("nvjet_tst_128x8_64x12", "matmul"),
        ("rms_norm_kernel", "norm"),
        ("Memcpy DtoD", "copy"),
        ("some_kernel", "other"),
    ],
)
def test_a_name_tells_the_kind_of_a_kernel(name, kind):
    assert kernel_kind(name) == kind


# ------------------------------------------------------------ a model's step


def test_groups_of_a_step_have_the_sums_of_its_sequences():
    costs, seconds = step_of().group_costs(), rates().seconds
    assert costs["attention"].flops * 36 == 19_337_379_840
    assert costs["attention"].memory_bytes * 36 == 4_853_219_328
    assert costs["gate-up"].flops * 36 == 231_928_233_984
    micros = {"gate-up": 1374.624, "attention": 915.702, "down": 690.873, "qkv": 346.327}
    for group, expected in micros.items():
        assert 36e6 * seconds(costs[group]).lower == pytest.approx(expected, rel=1e-6)
    assert 1e6 * seconds(costs["unembed"]).lower == pytest.approx(236.726, rel=1e-5)


def test_groups_of_a_step_add_up_to_the_serial_time_of_explain(capsys):
    same_lengths = StepTokens(decodes=TokenSums(32, 32, 32_768, 32, 32_768))
    step = step_of(tokens=same_lengths)
    costs, seconds = step.group_costs(), rates().seconds
    total_s = sum(group.count * seconds(costs[group.name]).lower for group in step.groups)
    assert run(["explain", "mi300x", "qwen3-8b", "B=32", "S=1024", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)["row"]
    assert total_s == pytest.approx(row["t_serial_s"], rel=1e-4)


def test_norms_of_queries_and_keys_have_their_width():
    step = step_of()
    norms = (step.norm_cost(), step.norm_cost(QUERIES), step.norm_cost(KEYS))
    assert [norm.memory_bytes for norm in norms] == [532_480, 524_544, 131_328]


def test_windows_bound_what_attention_reads():
    long = StepTokens(decodes=TokenSums(2, 2, 20_000, 2, 20_000))
    costs = step_of("gpt-oss-20b", long).group_costs()
    full, window = costs["attention"], costs["attention-window"]
    assert window.flops == full.flops * 2 * 128 / 20_000
    assert (full.exact, window.exact, costs["experts"].exact) == (True, False, False)


def test_chips_that_share_a_layer_share_its_work():
    whole, part = step_of().group_costs(), step_of(tp=2).group_costs()
    assert part["down"].flops == whole["down"].flops / 2
    with pytest.raises(RooflinesError, match="does not divide"):
        step_of(tp=5)


def test_the_compute_dtype_is_that_of_the_package_on_the_chip():
    prompt = StepTokens(prompts=TokenSums(1, 888, 888, 788_544, 788_544))
    on_fp8 = step_of("deepseek-v3", prompt, chip="h100-sxm").group_costs()["experts"]
    without = step_of("deepseek-v3", prompt, chip="a100-sxm-40gb").group_costs()["experts"]
    assert (on_fp8.compute, without.compute) == ("fp8", "bf16")


def test_context_stands_in_for_what_an_annotation_lacks():
    bare = StepTokens(decodes=TokenSums(4, 4))
    assert step_sums(bare) is None
    assert step_sums(None, 100) is None
    decodes = step_sums(bare, 100)
    assert decodes
    assert decodes[:4] == (4, 4, 400, 400)
    prompt = StepTokens(prompts=TokenSums(1, 559))
    prompts = step_sums(prompt, 559)
    assert prompts
    assert prompts.pairs == 559 * 560 / 2


# ------------------------------------------------------------ layers


def test_kernels_are_laid_on_layers_by_their_order():
    laid = lay_step(kernels([*LAYER * 36, *HEAD]), step_of())
    assert (laid.layers, laid.fitting, dict(laid.reasons)) == (36, 36, {})
    groups = {(row.layer, row.group) for row in laid.rows if row.cost and row.cost.flops}
    names = ("qkv", "attention", "o", "gate-up", "down")
    assert groups == {(n, g) for n in range(36) for g in names} | {(35, "unembed")}
    attention = next(row for row in laid.rows if row.group == "attention")
    assert [a.name for a in attention.activities] == [ATTENTION, "paged_attention_ll4mi_reduce"]
    assert sum(len(row.activities) for row in laid.rows) == 36 * len(LAYER) + 2
    seconds = sum(rates().seconds(row.cost).lower for row in laid.rows if row.cost)
    assert seconds == pytest.approx(3.830e-3, rel=1e-3)


def test_another_model_is_refused_with_numbers():
    step = kernels([*LAYER * 36, *HEAD])
    with pytest.raises(RooflinesError, match=r"36 attention kernels .* 32 layers"):
        lay_step(step, step_of("llama-3.1-8b"))
    with pytest.raises(RooflinesError, match="24 layers"):
        lay_step(step, step_of("gpt-oss-20b"))
    with pytest.raises(RooflinesError, match=r"fits 0 of 36 layers: 4 matmuls where"):
        lay_step(step, step_of("gpt-oss-120b"))
    with pytest.raises(RooflinesError, match="no attention kernels"):
        lay_step(kernels([MATMUL]), step_of())


def test_a_layer_with_other_matmuls_stays_without_a_bound():
    odd = [*LAYER[:-1], MATMUL, MATMUL, MATMUL]
    laid = lay_step(kernels([*LAYER * 35, *odd, *HEAD]), step_of())
    assert laid.fitting == 35
    (reason,) = laid.reasons
    assert reason == "6 matmuls where o, gate-up, down, unembed are expected"


def test_matmuls_may_run_apart():
    o, gate_up, qkv = groups = [(0, "o"), (0, "gate-up"), (1, "qkv")]
    assert fitted_groups([[qkv]], 1) == [qkv]
    assert fitted_groups([groups], 4) == [o, gate_up, gate_up, qkv]
    assert fitted_groups([groups], 6) == [o, *[gate_up] * 2, *[qkv] * 3]
    assert fitted_groups([[o, (0, "down")]], 3) is None
    assert fitted_groups([[o, (0, "shared")]], 1) == [o]
    dense, routed = [o, (0, "gate-up")], [o, (0, "router"), (0, "x")]
    assert fitted_groups([dense, routed], 3) == routed


def test_every_kernel_is_in_one_call_of_the_model():
    activities = kernels([*LAYER * 36, *HEAD, "some_kernel"])
    trace, calls = traced(activities)
    with_model, match = model_calls(trace, calls, "qwen3-8b", rates())
    assert sorted(id(a) for call in with_model for a in call.activities) == sorted(
        map(id, activities)
    )
    assert match.notes == ["qwen3-8b: the matmuls of 36 of 36 layers fit"]
    assert {call.why for call in with_model if call.cost is None} == {"outside the model"}


def test_work_by_shapes_counts_and_is_compared():
    trace, calls = traced(kernels([*LAYER * 36, *HEAD]))
    expected = step_of().group_costs()["qkv"].flops
    for call, ratio in zip([c for c in calls if c.name == MATMUL][::4], (1, 2), strict=False):
        call.cost = OperatorCost("matmul", expected * ratio, "bf16", 1.0)
    with_model, match = model_calls(trace, calls, "qwen3-8b", rates())
    assert (match.agreeing, match.differing) == (1, [("qkv", 2.0)])
    assert "agree on the FLOP of 1 matmuls of 2; qkv has 2 times" in " ".join(match.notes)
    assert sum(call.origin in {"launch", "graph"} for call in with_model) == 2


def test_a_model_whose_matmuls_beat_their_bound_is_refused():
    trace, calls = traced(kernels([*LAYER * 36, *HEAD], duration_ns=2_000))
    with pytest.raises(RooflinesError, match=r"qwen3-8b is too large: 145 of its 145 matmuls"):
        model_calls(trace, calls, "qwen3-8b", rates())


def test_a_trace_without_tokens_asks_for_the_context():
    trace, calls = traced(kernels([*LAYER * 36, *HEAD]), step="decode[bs=32 tok=32]")
    with pytest.raises(RooflinesError, match="no context of its steps"):
        model_calls(trace, calls, "qwen3-8b", rates())
    _, match = model_calls(trace, calls, "qwen3-8b", rates(), context=1024)
    assert match.fitting == 36


def test_a_model_that_is_laid_on_no_step_says_why():
    for names, step, message in (
        ([MATMUL], STEP, "no step that names its tokens has attention kernels"),
        (LAYER, "ProfilerStep#1", "names no tokens of its steps"),
    ):
        trace, calls = traced(kernels(names), step=step)
        with pytest.raises(RooflinesError, match=message):
            model_calls(trace, calls, "qwen3-8b", rates())


def test_shapes_that_are_a_share_of_the_model_name_the_chips():
    trace, calls = traced(kernels([*LAYER * 36, *HEAD]))
    flops = step_of().group_costs()["qkv"].flops
    for call in [call for call in calls if call.name == MATMUL][:-1:4]:
        call.cost = OperatorCost("matmul", flops / 8, "bf16", 1.0)
    _, match = model_calls(trace, calls, "qwen3-8b", rates())
    note = match.notes[1]
    assert note.endswith(
        "0 matmuls of 36; qkv has 0.125 times the model's (shapes count): give --tp 8"
    )
    match.differing.append(("o", 0.3))
    assert match.shards is None


def test_auto_takes_the_only_model_that_fits():
    assert auto_model(SeenSizes(24, 201_088, 2880)) == "gpt-oss-20b"
    assert auto_model(SeenSizes(36, 151_936, 4096)) == "qwen3-8b"
    for sizes, message in (
        (SeenSizes(36, None, None), "no vocabulary"),
        (SeenSizes(0, 151_936, None), "no attention kernels"),
        (SeenSizes(36, 151_936, None), "qwen3-4b, qwen3-8b all fit"),
        (SeenSizes(35, 151_936, None), "no model of the catalogue fits"),
    ):
        with pytest.raises(RooflinesError, match=message):
            auto_model(sizes)


# ------------------------------------------------------------ captures


def captured(names, *, with_kernels=True):
    """Trace of a graph's capture: an operator around each launch."""
    capture = Trace("capture.json")
    calls = ["cudaStreamBeginCapture", *names, "cudaStreamEndCapture"]
    for place, name in enumerate(calls):
        is_launch = 0 < place < len(calls) - 1
        shapes = Arguments([[place, 8]], ["float"])
        operator = Operator(f"op {place - 1}", THREAD, 10 * place, 10 * place + 9, None, shapes)
        launch = HostLaunch(
            "hipLaunchKernel" if is_launch else name, THREAD, 10 * place + 1, 10 * place + 2
        )
        launch.kernel = name if is_launch and with_kernels else None
        capture.operators.append(operator)
        capture.launches.append(launch)
    return capture


def replayed(names):
    """Trace with one replay of a graph."""
    launch = HostLaunch("hipGraphLaunch", THREAD, 0, 5)
    activities = kernels(names)
    for activity in activities:
        activity.launch = launch
    return Trace("run.json", activities, [launch])


@pytest.mark.parametrize("with_kernels", [True, False])
def test_a_capture_gives_replayed_kernels_their_operators(with_kernels):
    names = [NORM, MATMUL, ATTENTION]
    trace, capture = replayed(names), captured(names, with_kernels=with_kernels)
    assert [len(graph) for graph in captured_graphs(capture)] == [3]
    match = join_capture(trace, capture)
    assert match == (3, 3, 1.0)
    assert [a.operator.name for a in trace.activities] == ["op 0", "op 1", "op 2"]


def test_a_capture_of_other_kernels_joins_only_equal_names():
    trace = replayed([NORM, MATMUL, "new_kernel", ATTENTION])
    match = join_capture(trace, captured([NORM, MATMUL, ATTENTION]))
    assert (match.matched, match.total) == (3, 4)
    assert trace.activities[2].operator is None
    assert match.note == "the capture has 3 of 4 kernels of graphs, 86% of the names equal"
    assert [activity.captured for activity in trace.activities] == [True, True, False, True]
    refused = (
        (replayed([NORM, MATMUL]), "graphs of 1 launches, and none of the 2 kernels"),
        (Trace("eager.json", kernels([NORM])), "the trace replays no graph"),
    )
    for other, message in refused:
        with pytest.raises(RooflinesError, match=message):
            join_capture(other, captured([NORM], with_kernels=False))


# ------------------------------------------------------------ timings


def matmul_call(seconds, sizes=(8944, 1024, 2816), dtype="BFloat16", batch=1):
    names = dict(zip("BDF", sizes, strict=True))
    flops = 2.0 * sizes[0] * sizes[1] * sizes[2]
    cost = OperatorCost(
        "matmul",
        flops,
        "bf16",
        2.0 * (sizes[0] * sizes[1] + sizes[1] * sizes[2] + sizes[0] * sizes[2]),
        sizes={**names, "batch": batch},
        dtypes=dict.fromkeys(("x", "w", "out"), dtype),
    )
    duration_ns = round(seconds * 1e9)
    kernel = Activity("gemm", "kernel", "0", "7", 0, duration_ns, owned_ns=duration_ns)
    return Call("aten::mm", "", [kernel], None, cost)


def test_matmuls_go_out_as_timings():
    calls = [matmul_call(84.5e-6), matmul_call(1e-4, batch=2), matmul_call(1e-4, dtype="int")]
    frame = matmul_timings(calls, "h100-sxm", "x.json")
    (row,) = frame.rows(named=True)
    assert row == {
        "source": "x.json",
        "chip": "h100-sxm",
        "software": "torch",
        **dict.fromkeys(("dtype_x", "dtype_w", "dtype_out", "compute"), "bf16"),
        "B": 8944,
        "D": 1024,
        "F": 2816,
        "seconds": 84.5e-6,
    }


def test_time_above_the_bound_is_what_a_library_needs_and_what_a_run_adds():
    chip = TraceRates("h100-sxm", chip_entries()["h100-sxm"])
    calls = [matmul_call(84.5e-6), matmul_call(300e-6)]
    catalogues = Catalogues(chip_entries(), dtype_entries(), shipped_calibrations())
    times = library_times(calls, chip, catalogues)
    assert {time.calibration for time in times.values()} == {"h100-sxm/torch"}
    seconds = chip.seconds(calls[0].cost)
    assert seconds
    lower = seconds.lower
    estimate = times[id(calls[1])].seconds
    assert lower < estimate < 100e-6
    split = library_split(calls, chip, times)
    assert split
    assert split.library_s + split.run_s == pytest.approx(384.5e-6 - 2 * lower)
    assert split.run_s >= 300e-6 - estimate - 1e-12
    assert split.share == pytest.approx(1)
    assert library_times([], chip, catalogues) == {}
    assert library_split(calls, chip, {}) is None


def test_the_command_writes_timings_that_are_read_again(tmp_path, capsys):
    path = write_trace(tmp_path / "eager.json", matmul(1, 0.0, 40.0, 40.0))
    out = tmp_path / "matmuls.parquet"
    assert run(["measured", "trace", path, "--timings", str(out)]) == 0
    assert "library   1 matmul, " in capsys.readouterr().out
    timed = read_timings(out)
    assert timed.frame.select("B", "D", "F", "seconds").rows() == [(64, 4096, 4096, 40e-6)]
    (call,) = call_frame(lay_trace(path)).rows(named=True)
    assert call["t_lower_s"] < call["t_estimate_s"] < 40e-6
    for words, message in (
        (["--timings", "x.txt"], "end the name in .parquet or .csv"),
        (["--timings", str(tmp_path / "x.csv")], ""),
    ):
        status = run(["measured", "trace", path, *words])
        assert (status, message in capsys.readouterr().err) == (int(bool(message)), True)


# ------------------------------------------------------------ attention as several kernels


def attention_calls(*, scores=(2, 128, 128), begin_ns=0):
    """A product, a scaling, a softmax and a product on one thread, 10 us each."""
    batch, rows, columns = scores
    values = {"B": rows, "D": columns, "F": 64, "batch": batch}
    product = {"B": 128, "D": 64, "F": 128, "batch": 2}
    n = 2 * 128 * 128
    parts = (
        (
            "aten::bmm",
            OperatorCost("matmul", 2.0 * n * 64, "bf16", 1e5, sizes=product),
            [2, 128, 64],
        ),
        ("aten::mul", OperatorCost("elementwise", memory_bytes=4.0 * n), [2, 128, 128]),
        ("aten::_softmax", OperatorCost("softmax", memory_bytes=4.0 * n), [2, 128, 128]),
        (
            "aten::bmm",
            OperatorCost("matmul", 2.0 * n * 64, "bf16", 1e5, sizes=values),
            [2, 128, 128],
        ),
    )
    calls = []
    for place, (name, cost, dims) in enumerate(parts):
        begin = begin_ns + 100 * place
        operator = Operator(
            name, THREAD, begin, begin + 50, None, Arguments([dims], ["c10::BFloat16"])
        )
        kernel = Activity(name, "kernel", "0", "7", begin, begin + 10_000, owned_ns=10_000)
        calls.append(Call(name, "", [kernel], operator, cost))
    return calls


def test_attention_in_several_kernels_has_a_bound_as_one():
    chip, calls = rates(), attention_calls()
    (attention,) = unfused_attention(reversed(calls), chip)
    assert attention.seconds == pytest.approx(40e-6)
    assert attention.apart_s == pytest.approx(sum(chip.seconds(c.cost).lower for c in calls))
    assert attention.fused_s == pytest.approx(4 * 2 * 2 * 128 * 64 / 5.3e12)


def test_a_softmax_over_other_scores_is_no_attention():
    assert unfused_attention(attention_calls(scores=(2, 128, 64)), rates()) == []
    assert unfused_attention(attention_calls()[1:], rates()) == []


# ------------------------------------------------------------ estimates of groups


def test_groups_of_a_decode_step_have_the_estimate_of_explain():
    sums = step_sums(DECODE)
    assert sums
    times = step_times(load("qwen3-8b"), "h100-sxm", 1, sums)
    answer = explain_model("h100-sxm", "qwen3-8b", B=32, S=1025)
    terms = {term["group"]: term["t_estimate_s"] for term in answer.terms}
    assert {"attention", "qkv", "o", "gate-up", "down", "unembed"} <= times.keys()
    assert {name: times[name].seconds for name in times} == {name: terms[name] for name in times}
    assert times["attention"].calibration == "h100-sxm/vllm"


def test_collectives_are_no_part_of_a_groups_estimate():
    sums = step_sums(DECODE)
    assert sums
    times = step_times(load("qwen3-8b"), "h100-sxm", 2, sums)
    answer = explain_model("h100-sxm", "qwen3-8b", B=32, S=1025, split="tp2")
    (term,) = (term for term in answer.terms if term["group"] == "o")
    assert term["collectives_estimate_s"] > 0
    assert times["o"].seconds == term["t_estimate_s"] - term["collectives_estimate_s"]


def test_experts_beyond_the_timed_sizes_have_no_estimate():
    prompt = step_sums(StepTokens(TokenSums(1, 888, 888, 888**2, 888**2), TokenSums(0, 0, 0, 0, 0)))
    assert prompt
    times = step_times(load("gpt-oss-120b"), "b200", 8, prompt)
    answer = explain_model("b200", "gpt-oss-120b", B=1, S=888, split="tp8", phase="prefill")
    beyond = {term["group"] for term in answer.terms if term["estimate_extrapolated"]}
    assert {"experts", "attention", "qkv"} <= beyond
    assert {"qkv", "o"} <= times.keys()
    assert not {"experts", "attention", "attention-window"} & times.keys()


def test_steps_that_mix_prompts_and_decodes_have_no_estimate():
    mixed = step_sums(
        StepTokens(TokenSums(1, 512, 512, 512**2, 512**2), TokenSums(8, 8, 8000, 8, 8000))
    )
    assert mixed
    assert step_times(load("qwen3-8b"), "h100-sxm", 1, mixed) == {}


def test_time_above_the_bound_of_a_graph_splits_by_its_models_estimate(tmp_path):
    events = [launch(1, 50.0, name="cudaGraphLaunch")]
    for place, name in enumerate([*LAYER * 36, *HEAD]):
        events.append(kernel(name, 1, 100.0 + 1000.0 * place, 1000.0))
    events.append(event("user_annotation", STEP, 0.0, 1000.0 * len(events)))
    laid = lay_trace(write_trace(tmp_path / "graph.json", events), model="qwen3-8b")
    split = laid.library
    assert split is not None
    assert split.kinds == ("attention", "matmul")
    assert split.calls == 36 * 5 + 1
    calls = call_frame(laid).filter(pl.col("t_estimate_s").is_not_null())
    assert set(calls["op"]) == {"attention", "qkv", "o", "gate-up", "down", "unembed"}
    above_s = (calls["seconds"] - calls["t_lower_s"]).sum()
    assert split.library_s + split.run_s == pytest.approx(above_s)
