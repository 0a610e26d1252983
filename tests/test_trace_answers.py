"""A trace laid on its bound: parts that close, verdicts, outliers, table and command."""

import json

import polars as pl
import pytest
from traced import event, kernel, launch, matmul, operator, step, write_trace

from rooflines.cli.main import run
from rooflines.dictionary.columns import TRACE_CALLS
from rooflines.traces.call_frames import call_frame, group_frame, outliers
from rooflines.traces.laid_traces import lay_trace
from rooflines.traces.rank_waits import compare_ranks
from rooflines.traces.trace_changes import change_frame, change_text
from rooflines.traces.trace_screen import MAX_LINES, MAX_WIDTH, percent_text, trace_text

BOUND_S = 2 * (64 * 4096 + 4096 * 4096 + 64 * 4096) / 3.35e12
"""Bytes of x, w and out of 64x4096x4096 in bf16 over the memory rate of an H100."""


def eager_step():
    """Matmuls of 20 us with one of 200, an all-reduce, and an operator without a rule."""
    events = [step("ProfilerStep#1", 0.0, 2000.0)]
    for n in range(10):
        length = 200.0 if n == 6 else 20.0
        events += matmul(n, 30.0 * n, 300.0 * n + 40, length)
    events += [
        operator("mystery::op", 400.0, 10.0, [[8, 8]]),
        launch(50, 402.0),
        kernel("mystery_kernel", 50, 3200.0, 4.0),
        kernel("ncclDevKernel_AllReduce", 51, 3300.0, 25.0, stream=20),
        launch(51, 420.0),
        launch(52, 430.0, name="cudaMemcpyAsync"),
        event("gpu_memcpy", "Memcpy HtoD", 3400.0, 8.0, bytes=64000, correlation=52, device=0),
    ]
    return events


@pytest.fixture(scope="module")
def eager(tmp_path_factory):
    path = tmp_path_factory.mktemp("traces") / "eager.json.gz"
    return write_trace(path, eager_step())


def test_parts_are_those_planted(eager):
    laid = lay_trace(eager)
    total = laid.total
    copy_s = 64000 / 64e9
    assert laid.chip.chip == "h100-sxm"
    assert total.at_bound_ns == round((10 * BOUND_S + copy_s) * 1e9)
    assert total.above_ns == 9 * 20_000 + 200_000 + 8_000 - total.at_bound_ns
    assert total.no_bound_ns == 4_000
    assert total.communication_ns == 25_000
    assert total.before_ns == 0
    assert total.total_ns == 3_408_000 - 40_000


def test_a_ratio_is_said_from_85_percent_on(eager, tmp_path):
    laid = lay_trace(eager)
    assert laid.ratio == pytest.approx(388 / (laid.lower_s * 1e6))
    assert f"kernels take {laid.ratio:.2f} times their bound" in trace_text(laid)
    events = [*matmul(1, 0.0, 40.0, 20.0), operator("mystery::op", 100.0, 9.0, [[4]])]
    events += [launch(2, 102.0), kernel("mystery", 2, 150.0, 4.0)]
    little = lay_trace(write_trace(tmp_path / "little.json", events))
    assert little.covered() == pytest.approx(20 / 24)
    assert little.ratio is None
    text = trace_text(little)
    assert "83 % of the busy time has a bound, too little for a verdict: record shapes" in text
    assert "times their bound" not in text


def test_a_percentage_is_never_rounded_up_to_a_limit():
    assert [percent_text(share) for share in (0.8499, 0.85, 0.999, 1.0)] == [
        "84 %",
        "85 %",
        "99 %",
        "100 %",
    ]


def test_an_outlier_is_named_with_the_median(eager):
    laid = lay_trace(eager)
    ((bounded, middle_s, count),) = outliers(laid)
    assert bounded.call.kernel_ns == 200_000
    assert (middle_s, count) == (20e-6, 10)
    assert "mm 64x4096 4096x4096 took 200 µs, the median of 10 is 20 µs" in trace_text(laid)


def test_what_came_before_the_trace_is_in_no_verdict_and_no_group(tmp_path):
    events = [kernel("early_gemm", None, 0.0, 500.0), *matmul(1, 500.0, 540.0, 20.0)]
    laid = lay_trace(write_trace(tmp_path / "before.json", events))
    assert laid.total.before_ns == 500_000
    assert laid.covered() == 1.0
    assert laid.ratio == pytest.approx(20e-6 / BOUND_S)
    groups = group_frame(call_frame(laid))
    assert groups["op"].to_list() == ["aten::mm"]


def test_a_graphs_kernels_are_rows_of_their_own_without_a_bound(tmp_path):
    events = [
        operator("aten::mm", 0.0, 20.0, [[64, 4096], [4096, 4096]]),
        launch(1, 2.0, 10.0, name="cudaGraphLaunch"),
        kernel("gemm", 1, 20.0, 5.0),
        kernel("gemm", 1, 26.0, 5.0),
    ]
    laid = lay_trace(write_trace(tmp_path / "graph.json", events))
    assert [(one.call.origin, one.times, one.call.name) for one in laid.calls] == [
        ("graph", None, "gemm"),
        ("graph", None, "gemm"),
    ]


def test_without_a_chip_the_time_adds_up_and_a_line_says_how_to_name_it(eager, tmp_path):
    devices = ({"id": 0, "name": "ARTEMIS"},)
    laid = lay_trace(write_trace(tmp_path / "mtia.json", eager_step(), devices=devices))
    assert laid.chip.chip is None
    assert laid.total.total_ns == lay_trace(eager).total.total_ns
    assert laid.total.at_bound_ns == laid.total.above_ns == 0
    text = trace_text(laid)
    assert "device ARTEMIS is no chip in the catalogue; name it with --chip" in text


def test_the_table_has_the_dictionarys_columns_and_sums_to_the_span(eager):
    laid = lay_trace(eager)
    frame = call_frame(laid)
    assert frame.columns == [column.name for column in TRACE_CALLS]
    nullable = {column.name for column in TRACE_CALLS if column.null}
    assert {name for name in frame.columns if frame[name].null_count()} <= nullable
    parts = ("seconds", "idle_host_s", "idle_call_s", "idle_device_s")
    assert sum(frame[name].sum() for name in parts) == pytest.approx(laid.span_s, abs=1e-12)
    groups = group_frame(frame)
    assert groups["calls"].sum() == frame.height
    assert groups["seconds"].sum() == pytest.approx(frame["seconds"].sum())


def one_step(number, begin):
    """A step of matmuls, the third slow, that begins at a time [us]."""
    events = [step(f"ProfilerStep#{number}", begin, 500.0)]
    for n, length in enumerate((20.0, 20.0, 60.0, 20.0)):
        place = begin + 100 * n
        events += matmul(10 * number + n, place + 5, place + 30, length)
    return events


def test_a_trace_cut_at_a_step_has_the_rows_of_the_whole(tmp_path):
    steps = [one_step(1, 0.0), one_step(2, 700.0)]
    texts = {"whole": [*steps[0], *steps[1]], "first": steps[0], "second": steps[1]}
    frames = {
        name: call_frame(lay_trace(write_trace(tmp_path / f"{name}.json", events)))
        for name, events in texts.items()
    }
    idle = ["idle_host_s", "idle_call_s", "idle_device_s"]
    part = pl.concat([frames["first"], frames["second"]]).drop("trace", "step", "start_s", *idle)
    assert part.equals(frames["whole"].drop("trace", "step", "start_s", *idle))
    assert frames["whole"]["step"].to_list() == [0] * 4 + [1] * 4
    gap_s = 700e-6 - (300e-6 + 20e-6)  # from the end of the fourth kernel to the fifth
    idle_s = {
        name: frame.select(pl.sum_horizontal(idle)).to_series() for name, frame in frames.items()
    }
    apart = pl.concat([idle_s["first"], idle_s["second"]])
    assert (idle_s["whole"] - apart).to_list() == pytest.approx([0.0] * 4 + [gap_s] + [0.0] * 3)


def test_a_screen_has_at_most_40_lines_of_130_characters(tmp_path):
    events = []
    for n in range(60):
        sizes = ((64 + n, 4096), (4096, 8192 + n))
        events += matmul(n, 1000.0 * n, 1000.0 * n + 40, 1.0 + n, sizes)
    text = trace_text(lay_trace(write_trace(tmp_path / "many.json", events)), ["b200", "mi355x"])
    lines = text.splitlines()
    assert len(lines) <= MAX_LINES
    assert max(map(len, lines)) <= MAX_WIDTH
    assert "52 others" in text
    assert "b200" in lines[-1]


def gemm(begin, length, *, at=1.0, call=2.0, number=1):
    """A matmul 64 x 4096 x 4096 of an H100, with its launch."""
    return [
        operator("aten::mm", at, call + 2, [[64, 4096], [4096, 4096]]),
        launch(number, at + 1, call),
        kernel("nvjet_gemm", number, begin, length),
    ]


FIRST = gemm(10.0, 12.0)


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([*FIRST, *gemm(99.0, 12.0, at=95.0, number=2)], "% of the time the device waits for"),
        ([*FIRST, *gemm(99.0, 12.0, at=15.0, call=80.0, number=2)], "launches: 74 µs (73 %) pass"),
        ([*FIRST, *gemm(99.0, 12.0, at=8.0, number=2)], "queues: 77 µs (76 %) between"),
        (
            [*FIRST, launch(2, 8.0), kernel("nccl", 2, 30.0, 90.0)],
            "communication: 90 µs (81 %) that",
        ),
        (gemm(10.0, 112.0), " (90 %) above the bound mm 64x4096 4096x4096 has"),
        (FIRST, "kernels run near their bound"),
    ],
)
def test_what_to_do_next_is_what_shortens_the_longest_part(events, said, tmp_path):
    text = trace_text(lay_trace(write_trace(tmp_path / "one.json", events)))
    (line,) = [line for line in text.splitlines() if line.startswith("next ")]
    assert said in line


def test_a_filtered_sample_beats_its_bound_and_says_so(tmp_path):
    text = trace_text(lay_trace(write_trace(tmp_path / "sample.json", gemm(10.0, 0.5))))
    assert "faster    1 call below their bound: 1 unexplained" in text


def test_nothing_is_said_where_little_has_a_bound(tmp_path):
    events = [*FIRST, launch(9, 8.0), kernel("mystery", 9, 22.0, 500.0)]
    text = trace_text(lay_trace(write_trace(tmp_path / "one.json", events)))
    assert "next " not in text
    assert "too little for a verdict" in text


def test_another_chips_bounds_are_those_of_its_rates(eager):
    laid = lay_trace(eager)
    lowers = [one.lower_s for one in laid.on("h200-sxm") if one.call.name == "aten::mm"]
    assert lowers == pytest.approx([BOUND_S * 3.35 / 4.8] * 10)


# ------------------------------------------------------------ ranks and changes


def all_reduces(device, waits, *, late=0.0, kernel_us=50.0, elements=4096):
    """Matmul and all-reduce of a rank, once a wait; a late rank's host launches later."""
    events, at = [], 0.0
    message = {
        "Collective name": "allreduce",
        "dtype": "BFloat16",
        "In msg nelems": elements,
        "Out msg nelems": elements,
        "Group size": 2,
        "Process Group Name": "0",
    }
    for number, wait in enumerate(waits):
        one, two = 10 * device + 100 * number + 1, 10 * device + 100 * number + 2
        at += late
        events += matmul(one, at, at + 10, kernel_us, tid=device, device=device)
        events.append(operator("record_param_comms", at + 20, 5.0, tid=device, **message))
        events.append(launch(two, at + 21, tid=device))
        begin = at + 10 + kernel_us
        place = {"stream": 20, "device": device}
        events.append(kernel("ncclDevKernel_AllReduce", two, begin, wait, **place))
        at = begin + wait
    return events


def test_the_rank_that_waits_least_comes_last_and_a_slow_host_is_why(tmp_path):
    events = [*all_reduces(0, [100.0, 100.0]), *all_reduces(1, [20.0, 21.0], late=80.0)]
    laid = lay_trace(write_trace(tmp_path / "ranks.json", events))
    comparison = compare_ranks([laid])
    waits = {rank.rank: rank.waiting_ns for rank in comparison.ranks}
    assert waits == {"0": 159_000, "1": 0}
    assert {rank.transfer_ns for rank in comparison.ranks} == {41_000}
    first, second, third = comparison.sentences()
    assert first.startswith("rank 1 comes last: the others wait 159 µs for it on average")
    assert "a slow host, not a slow device" in second
    assert third.startswith("2 transfers take at most 41 µs, their bound")
    assert "ranks     rank 1 comes last" in trace_text(laid, (), [first, second])


def test_a_rank_with_longer_kernels_is_told_from_one_with_a_slow_host(tmp_path):
    slow = all_reduces(1, [20.0, 20.0], kernel_us=130.0)
    files = [
        write_trace(tmp_path / f"{number}.json", events)
        for number, events in enumerate((all_reduces(0, [100.0, 100.0]), slow))
    ]
    sentences = [*compare_ranks([lay_trace(file) for file in files]).sentences()]
    assert sentences[0].startswith("rank 1.json device 1 comes last")
    assert "more work, or a slow device" in sentences[1]


@pytest.mark.parametrize(
    ("waits", "elements", "said"),
    [
        ([5.0], 4096, "group 0 is not matched: 0 has 2, 1 has 1 collectives"),
        ([5.0, 5.0], 4095, "2 collectives of other kind or size are left out"),
    ],
)
def test_collectives_that_do_not_match_are_said(waits, elements, said, tmp_path):
    events = [*all_reduces(0, [9.0, 9.0]), *all_reduces(1, waits, elements=elements)]
    comparison = compare_ranks([lay_trace(write_trace(tmp_path / "odd.json", events))])
    assert [*comparison.sentences()] == [said]
    assert comparison.last is None


def test_a_change_is_told_by_parts_and_groups_whose_sums_close(eager, tmp_path):
    faster = [one for one in eager_step() if one["args"].get("correlation") != 50]
    after = lay_trace(write_trace(tmp_path / "after.json", faster))
    before = lay_trace(eager)
    frame = change_frame(before, after)
    assert frame["op"][0] == "mystery::op"
    assert frame.row(0, named=True)["change_s"] == pytest.approx(-4e-6)
    busy_s = (after.busy_ns - before.busy_ns) / 1e9
    assert frame["change_s"].sum() == pytest.approx(busy_s)
    text = change_text(before, after)
    assert "eager.json.gz -> after.json" in text
    assert max(map(len, text.splitlines())) <= MAX_WIDTH


# ------------------------------------------------------------ the command


def typed(capsys, *words):
    status = run(["measured", "trace", *map(str, words)])
    return status, *capsys.readouterr()


def test_the_command_prints_a_screen_a_file(eager, capsys):
    status, out, err = typed(capsys, eager, eager, "--on", "b200")
    assert (status, err) == (0, "")
    assert out.count("the span: the sum of the lines above") == 2
    assert "b200" in out


def test_two_files_are_compared_on_one_screen(eager, capsys):
    status, out, _ = typed(capsys, eager, eager, "--compare")
    assert status == 0
    assert "what changed most" in out
    assert "busy time: the sum" in out


def test_json_has_whole_nanoseconds_that_add_up(eager, capsys):
    _, out, _ = typed(capsys, eager, "--json", "--on", "b200")
    (record,) = json.loads(out)
    assert sum(record["parts"].values()) == record["span_ns"] == 3_368_000
    assert record["groups"][0]["op"] == "aten::mm"
    assert record["on"]["b200"] > 0


def test_a_parquet_file_has_all_calls_and_is_not_overwritten(eager, tmp_path, capsys):
    out = tmp_path / "calls.parquet"
    assert typed(capsys, eager, "--out", out)[0] == 0
    assert pl.read_parquet(out).height == len(lay_trace(eager).calls)
    status, _, err = typed(capsys, eager, "--out", out)
    assert status == 1
    assert "exists already" in err
    assert typed(capsys, eager, "--out", out, "--force")[0] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["{text}"], "text.json is no JSON of a trace: it begins with 'hello'"),
        (["{host}"], "host.json has 1 events and none of a device: record CUDA activities"),
        (["no.json"], "no.json does not exist"),
        (["{eager}", "--chip", "h1000"], "--chip is 'h1000', which is no chip"),
        (["{eager}", "--on", "mi355y"], "close to it: mi355x"),
        (["{eager}", "--out", "x.csv"], "end the name in .parquet"),
        (["{eager}", "--compare"], "needs two files, and gets 1 file"),
        (["{eager}", "--model", "nosuch"], "'nosuch', which is no model"),
        (["{eager}", "--model", "qwen3-8b"], "names no tokens of its steps"),
        (["{eager}", "--capture", "gone.json"], "gone.json does not exist"),
    ],
)
def test_a_mistake_is_one_line_and_exit_status_1(words, said, eager, tmp_path, capsys):
    files = {"eager": eager, "text": tmp_path / "text.json", "host": tmp_path / "host.json"}
    files["text"].write_text("hello")
    write_trace(files["host"], [operator("aten::mm", 0.0, 1.0)])
    status, out, err = typed(capsys, *(word.format(**files) for word in words))
    assert (status, out) == (1, "")
    assert len(err.splitlines()) == 1
    assert said in err
