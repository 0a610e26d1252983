"""A profiler's trace: its readers, the identity of time, launches and operators."""

import gzip
import json
import random
import sqlite3

import pytest
from traced import (
    H100,
    LAYOUTS,
    event,
    kernel,
    launch,
    matmul,
    operator,
    step,
    trace_text,
    write_nsys,
    write_trace,
)

from rooflines.basics.errors import RooflinesError
from rooflines.traces import chrome_events
from rooflines.traces.device_accounts import device_accounts, union_ns
from rooflines.traces.host_tree import ancestors, attribute
from rooflines.traces.operator_columns import OperatorColumns
from rooflines.traces.step_annotations import mark_steps, step_tokens, traced_step_title
from rooflines.traces.trace_files import check_activities, read_trace
from rooflines.traces.trace_records import (
    NO_ARGUMENTS,
    Activity,
    HostLaunch,
    Operator,
    TokenSums,
    Trace,
    TracedDevice,
)
from rooflines.traces.traced_chips import traced_chip

T1, T2 = ("1", "1"), ("1", "2")


def laid(path):
    """Trace with launches and steps, and its accounts by device."""
    trace = read_trace(str(path))
    attribute(trace)
    mark_steps(trace)
    return trace, {account.device: account for account in device_accounts(trace)}


def random_events(draw, steps=3):
    """Matmuls, sums, collectives and copies on several streams and threads, with gaps."""
    events, correlation, at, free = [], 0, 1000.0, 900.0
    for index in range(steps):
        begin = at
        for _ in range(draw.randint(3, 8)):
            correlation += 1
            tid, stream = draw.choice((1, 2)), draw.choice((7, 7, 9, 20))
            name, cat = draw.choice(
                (("gemm", "kernel"), ("ncclDevKernel", "kernel"), ("Memcpy HtoD", "gpu_memcpy"))
            )
            dims = [[draw.choice((64, 1000)), 128], [128, draw.choice((64, 256))]]
            events.append(operator("aten::linear", at, 20.0, dims, tid=tid))
            events.append(operator("aten::mm", at + 1, 15.0, dims, tid=tid))
            events.append(launch(correlation, at + 3, draw.choice((2.0, 4.5)), tid=tid))
            start = (free if stream == 7 else at + 2) + draw.choice((0.0, 0.5, 7.25, 1500.0))
            length = draw.choice((0.001, 3.5, 40.0, 123.456))
            args = {"correlation": correlation, "device": 0, "stream": stream, "bytes": 4096}
            events.append(event(cat, name, start, length, pid=0, tid=stream, **args))
            free = max(free, start + length)
            at += 25 + draw.choice((0, 0, 60))
        events.append(step(f"ProfilerStep#{index}", begin - 0.5, at - begin))
    return events


def rows(trace):
    """Facts on each activity, in an order that does not depend on the file."""
    return sorted(
        (
            *(activity.name, activity.stream, activity.begin_ns, activity.end_ns, activity.step),
            *(activity.owned_ns, activity.idle_host_ns, activity.idle_call_ns),
            *(activity.idle_device_ns, [event.name for event in ancestors(activity.operator)]),
        )
        for activity in trace.activities
    )


# ------------------------------------------------------------ laws


@pytest.mark.parametrize("seed", range(6))
def test_random_traces_close_in_every_layout_and_order(seed, tmp_path):
    draw = random.Random(seed)
    events = random_events(draw)
    tables = []
    for layout in LAYOUTS:
        draw.shuffle(events)
        suffix = draw.choice((".json", ".json.gz"))
        trace, accounts = laid(write_trace(tmp_path / f"{layout}{suffix}", events, layout))
        account = accounts["0"]
        intervals = [(activity.begin_ns, activity.end_ns) for activity in trace.activities]
        assert account.busy_ns == union_ns(intervals) <= account.total_ns
        assert account.span_ns == account.busy_ns + account.idle_ns
        assert account.idle_ns == sum(
            activity.idle_host_ns + activity.idle_call_ns + activity.idle_device_ns
            for activity in trace.activities
        )
        tables.append(rows(trace))
    assert len(tables) == len(LAYOUTS)
    assert all(table == tables[0] for table in tables)


def test_planted_gaps_come_back_by_their_kind(tmp_path):
    events = [
        launch(1, 0.0, 4.0),
        kernel("first", 1, 5.0, 10.0),  # ends at 15
        launch(2, 40.0, 6.0),  # 25 us late, 6 us in the call
        kernel("second", 2, 53.5, 10.0),  # 7.5 us queued; ends at 63.5
        launch(3, 20.0, 2.0),
        kernel("third", 3, 2063.5, 1.0),  # 2 ms after its launch: a break
        kernel("fourth", 3, 2065.0, 1.0),  # half a us queued
    ]
    _, accounts = laid(write_trace(tmp_path / "gaps.json", events))
    account = accounts["0"]
    assert account.not_launched_ns == 25_000
    assert account.in_call_ns == 6_000
    assert account.queued_ns == 7_500 + 500
    assert account.break_ns == 2_000_000
    assert account.busy_ns == 22_000
    assert account.span_ns == 2_061_000


def test_a_launch_after_its_kernel_began_leaves_no_negative_idle_time(tmp_path):
    events = [
        kernel("first", None, 0.0, 10.0),
        launch(2, 16.0, 9.0),
        kernel("second", 2, 15.0, 5.0),
    ]
    trace, accounts = laid(write_trace(tmp_path / "late.json", events))
    assert accounts["0"].not_launched_ns == 5_000
    assert accounts["0"].in_call_ns == accounts["0"].queued_ns == 0
    assert min(activity.idle_call_ns for activity in trace.activities) == 0


def test_a_kernel_may_begin_before_its_launch_call_has_ended(tmp_path):
    events = [
        kernel("first", None, 0.0, 10.0),
        launch(2, 12.0, 9.0),
        kernel("second", 2, 15.0, 5.0),
    ]
    _, accounts = laid(write_trace(tmp_path / "running.json", events))
    account = accounts["0"]
    assert (account.not_launched_ns, account.in_call_ns, account.queued_ns) == (2_000, 3_000, 0)


def test_overlapping_time_has_one_owner_kernels_first(tmp_path):
    events = [
        kernel("ncclDevKernel_AllReduce", None, 0.0, 100.0, stream=20),
        kernel("gemm", None, 10.0, 30.0),
        kernel("gemm", None, 30.0, 20.0),  # overlaps the one before on its stream
        event("gpu_memcpy", "Memcpy HtoD", 90.0, 30.0, device=0, stream=21, bytes=64),
    ]
    _, accounts = laid(write_trace(tmp_path / "overlap.json", events))
    account = accounts["0"]
    assert account.busy_ns == 120_000 < account.total_ns == 180_000
    assert account.kernels_ns == 40_000
    assert account.collectives_ns == 60_000
    assert account.copies_ns == 20_000


def test_two_devices_have_an_account_each(tmp_path):
    events = [kernel("gemm", None, 0.0, 10.0), kernel("gemm", None, 5.0, 20.0, device=1)]
    _, accounts = laid(write_trace(tmp_path / "two.json", events))
    assert {device: account.span_ns for device, account in accounts.items()} == {
        "0": 10_000,
        "1": 20_000,
    }


def test_times_are_whole_nanoseconds_where_floats_are_coarse(tmp_path):
    begin = 1695835535123456  # us since 1970, where a float's steps are a quarter of a us
    events = [kernel("a", None, begin, 7), kernel("b", None, begin + 7, 0.001)]
    trace, accounts = laid(write_trace(tmp_path / "old.json", events))
    assert accounts["0"].busy_ns == accounts["0"].span_ns == 7_001
    assert trace.activities[0].begin_ns == begin * 1000


# ------------------------------------------------------------ launches, operators, steps


def test_a_kernel_is_of_the_operator_around_its_launch_not_of_one_beside_it(tmp_path):
    events = [*matmul(1, 0.0, 500.0, 5.0), operator("aten::add", 498.0, 10.0, [[4], [4]])]
    trace, _ = laid(write_trace(tmp_path / "late.json", events))
    (activity,) = trace.activities
    assert [event.name for event in ancestors(activity.operator)] == ["aten::mm", "aten::linear"]
    assert activity.operator.arguments.input_dims == [[64, 4096], [4096, 4096]]
    assert activity.operator.arguments is activity.operator.parent.arguments


def test_threads_nest_apart_and_overlap_is_no_parent(tmp_path):
    events = [
        operator("forward", 0.0, 100.0),
        operator("backward", 10.0, 20.0, tid=2),
        launch(1, 12.0, tid=2),
        kernel("gemm", 1, 30.0, 5.0),
        operator("aten::crossing", 90.0, 20.0),
        launch(2, 105.0),
        kernel("gemm", 2, 120.0, 5.0),
    ]
    trace, _ = laid(write_trace(tmp_path / "threads.json", events))
    names = [[event.name for event in ancestors(one.operator)] for one in trace.activities]
    assert names == [["backward"], ["aten::crossing"]]


@pytest.mark.parametrize("seed", range(20))
def test_operators_around_no_launch_change_no_parent(seed):
    draw = random.Random(seed)
    columns, trace, whole = OperatorColumns(), Trace("x"), Trace("x")
    for place in range(60):
        thread, begin_ns, length_ns = draw.choice((T1, T2)), draw.randint(0, 50), draw.randint(0, 9)
        fields = (f"op {place}", thread, begin_ns, begin_ns + length_ns)
        if place % 4:
            columns.add(*fields, NO_ARGUMENTS, place)
            whole.operators.append(Operator(*fields, external=place))
        else:
            for one in (trace, whole):
                one.launches.append(HostLaunch(*fields, correlation=place))
    for one in (trace, whole):
        for number in range(60):
            one.activities.append(Activity("k", "kernel", "0", "7", 0, 1, number, external=number))
    trace.activities, unnamed = trace.activities[:-8], trace.activities[-8:]
    trace.operators += columns.used(trace.launches, trace.activities)
    for one in (trace, whole):
        attribute(one)
    for ours, theirs in zip(trace.activities, whole.activities, strict=False):
        names = ([event.name for event in ancestors(a.operator)] for a in (ours, theirs))
        assert next(names) == next(names)
    left_out = {event.name for event in whole.operators} - {event.name for event in trace.operators}
    assert left_out <= {f"op {activity.external}" for activity in unnamed}


def test_a_file_leaves_out_operators_around_no_launch(tmp_path):
    events = [*matmul(1, 0.0, 20.0, 5.0), operator("aten::empty", 100.0, 5.0, [[8]])]
    trace = read_trace(write_trace(tmp_path / "host.json", events))
    assert [event.name for event in trace.operators] == ["aten::linear", "aten::mm"]
    assert trace.events == len(events)


def test_numbers_that_repeat_mean_the_last_launch_before_the_kernels_end(tmp_path):
    events = [
        operator("first", 0.0, 10.0),
        launch(5, 2.0),
        operator("second", 50.0, 10.0),
        launch(5, 52.0),
        kernel("gemm", 5, 20.0, 5.0),
        kernel("gemm", 5, 70.0, 5.0),
    ]
    trace, _ = laid(write_trace(tmp_path / "again.json", events))
    assert [activity.operator.name for activity in trace.activities] == ["first", "second"]


def test_an_external_id_tells_the_operator_where_no_launch_is_recorded(tmp_path):
    events = [
        operator("aten::mm", 0.0, 5.0, [[2, 2], [2, 2]], external=9),
        kernel("gemm", 1, 20.0, 5.0, **{"External id": 9}),
        kernel("gemm", 2, 30.0, 5.0, **{"External id": 0}),
        launch(7, 40.0),
    ]
    trace, _ = laid(write_trace(tmp_path / "external.json", events))
    operators = [activity.operator for activity in trace.activities]
    assert operators[0].name == "aten::mm"
    assert operators[1] is None
    assert [activity.launch for activity in trace.activities] == [None, None]


def test_a_step_is_that_in_which_the_launch_began(tmp_path):
    events = [
        step("Iteration 1", 0.0, 5.0),  # of a later pattern: no step beside ProfilerStep
        step("ProfilerStep#4", 0.0, 50.0),
        step("ProfilerStep#5", 50.0, 50.0),
        *matmul(1, 10.0, 80.0, 5.0),
        *matmul(2, 60.0, 90.0, 5.0),
        kernel("early", None, 0.0, 5.0),
    ]
    trace, _ = laid(write_trace(tmp_path / "steps.json", events))
    assert [activity.step for activity in trace.activities] == [0, 1, -1]
    assert [note.name for note in trace.steps] == ["ProfilerStep#4", "ProfilerStep#5"]


@pytest.mark.parametrize(
    ("name", "prompts", "decodes", "title"),
    [
        (
            "execute_40_context_1(sq8sk8sqsq64sqsk64)_generation_32(sq32sk32785sqsq32sqsk32785)",
            TokenSums(1, 8, 8, 64, 64),
            TokenSums(32, 32, 32785, 32, 32785),
            "prefill, 1 sequence, 8 tokens; decode, 32 sequences, 32,785 tokens of context",
        ),
        (
            "execute_888_context_1(888_788544)_generation_0(0_0)",
            TokenSums(1, 888, 888, 788544, 788544),
            TokenSums(),
            "prefill, 1 sequence, 888 tokens",
        ),
        ("decode[bs=32 tok=32]", TokenSums(), TokenSums(32, 32), "decode, 32 sequences"),
        (
            "prefill[bs=2 toks=300]",
            TokenSums(2, 300),
            TokenSums(),
            "prefill, 2 sequences, 300 tokens",
        ),
    ],
)
def test_tokens_of_a_step_are_read_from_its_annotation(name, prompts, decodes, title):
    tokens = step_tokens(name)
    assert tokens
    assert (tokens.prompts, tokens.decodes) == (prompts, decodes)
    assert traced_step_title(name) == title


def test_another_annotation_names_no_tokens():
    assert step_tokens("ProfilerStep#3") is None
    assert traced_step_title("ProfilerStep#3") == "ProfilerStep#3"


# ------------------------------------------------------------ files


def test_what_nothing_reads_is_passed_over(tmp_path):
    events = [
        event("python_function", "f", 0.0, 5.0),
        event("overhead", "o", 0.0, 5.0),
        {"ph": "s", "id": 1, "pid": 1, "tid": 1, "ts": 0, "cat": "ac2g", "name": "ac2g"},
        {"ph": "i", "s": "t", "name": "Iteration", "pid": 1, "tid": 1, "ts": 3},
        event("gpu_user_annotation", "ProfilerStep#1", 0.0, 5.0),
        kernel("gemm", None, 1.0, 2.0),
        "text",
        None,
    ]
    trace = read_trace(write_trace(tmp_path / "many.json", events))
    assert [activity.name for activity in trace.activities] == ["gemm"]
    assert not trace.operators
    assert not trace.annotations
    assert len(trace.device_annotations) == 1


@pytest.mark.parametrize("layout", LAYOUTS)
def test_pieces_of_any_size_give_the_events_of_the_whole(layout, tmp_path, monkeypatch):
    events = [one for n in range(30) for one in matmul(n, 30.0 * n, 30.0 * n + 20, 5.0)]
    nested = operator("aten::cat", 9999.0, 5.0, [[[2, 2], [3, 3]], []], note=[{"a": "},{"}, {}])
    path = write_trace(tmp_path / "pieces.json", [*events, nested, *events], layout)
    whole_rows = rows(laid(path)[0])
    monkeypatch.setattr(chrome_events, "PIECE_BYTES", 700)
    monkeypatch.setattr(chrome_events, "READ_BYTES", 333)
    trace = laid(path)[0]
    assert rows(trace) == whole_rows
    assert trace.events == len(events) * 2 + 1


def test_texts_beyond_ascii_survive_both_ways_of_reading(tmp_path, monkeypatch):
    events = [kernel("grüße_日本", None, 1.0, 2.0), kernel('\u00b5s \\ "{', None, 4.0, 2.0)]
    path = write_trace(tmp_path / "a.json", events)
    raw = tmp_path / "raw.json"
    raw.write_text(json.dumps({"traceEvents": events}, ensure_ascii=False), encoding="utf-8")
    names = [one["name"] for one in events]
    for file in (path, str(raw)):
        assert [activity.name for activity in read_trace(file).activities] == names
    monkeypatch.setattr(chrome_events, "MAX_TRIALS", 0)
    for file in (path, str(raw)):
        assert [activity.name for activity in read_trace(file).activities] == names


def test_a_mark_a_wrong_ending_and_several_gzip_members_are_read(tmp_path):
    events = [kernel("gemm", None, float(n), 0.5) for n in range(40)]
    content = trace_text(events).encode()
    middle = len(content) // 2
    variants = {
        "mark.json": b"\xef\xbb\xbf" + content,
        "packed.json": gzip.compress(content),
        "plain.json.gz": content,
        "members.gz": gzip.compress(content[:middle]) + gzip.compress(content[middle:]),
        "trace": content,
    }
    for name, data in variants.items():
        (tmp_path / name).write_bytes(data)
        assert len(read_trace(str(tmp_path / name)).activities) == 40, name


@pytest.mark.parametrize("packed", [False, True])
def test_a_cut_file_is_read_as_far_as_it_goes(packed, tmp_path):
    draw = random.Random(3)
    events = [kernel(f"gemm_{draw.random()}", None, 10.0 * n, draw.random() * 9) for n in range(60)]
    content = trace_text(events, "kineto").encode()
    data = gzip.compress(content) if packed else content
    path = tmp_path / "cut.json"
    path.write_bytes(data[: len(data) * 2 // 3])
    trace, accounts = laid(path)
    assert 10 < len(trace.activities) < 55
    assert trace.notes == [
        f"the file ends within an event: {len(trace.activities)} whole events read"
    ]
    assert accounts["0"].span_ns > 0


@pytest.mark.parametrize(
    ("ts", "dur"),
    [('"soon"', "1"), ("NaN", "1"), ("5", "-3"), ("1e300", "1"), ("[]", "1"), ("5", '"a"')],
)
def test_a_device_event_without_a_time_is_left_out_and_counted(ts, dur, tmp_path):
    good = json.dumps(kernel("gemm", None, 1.0, 2.0))
    bad = f'{{"ph": "X", "cat": "kernel", "name": "x", "ts": {ts}, "dur": {dur}, "args": {{}}}}'
    path = tmp_path / "odd.json"
    path.write_text(f'{{"traceEvents": [{good}, {bad}, {bad}]}}')
    trace = read_trace(str(path))
    assert len(trace.activities) == 1
    assert trace.notes == ["2 events of devices without a time are left out"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.json", b"", "is no JSON of a trace: it is empty"),
        ("text.json", b"hello\nworld", "is no JSON of a trace: it begins with 'hello\\nworld'"),
        ("binary.json", b"\x00\x01\xff", "is no JSON of a trace: it begins with"),
        ("config.json", b'{"a": 1}', "has no events under traceEvents, but 'a'"),
        ("object.json", b"{}", "has no events under traceEvents."),
        ("list.json", b"[]", "has no events under traceEvents."),
        ("none.json", b'{"traceEvents": []}', "has no events under traceEvents"),
        ("deep.json", b'{"a": ' + b"[" * 100_000, "nests deeper than a trace does"),
        ("deep2.json", b'{"traceEvents": ' + b"[" * 100_000, "nests deeper than a trace does"),
        ("rocprof.json", b'{"rocprofiler-sdk-tool": []}', "is the JSON of rocprofv3"),
        ("a.nsys-rep", b"x", "is a report of Nsight Systems"),
        ("a.xplane.pb", b"x", "is a protobuf of XProf"),
        ("a.ncu-rep", b"x", "is a report of Nsight Compute"),
        ("a.zip", b"PK\x03\x04", "is a zip archive"),
        ("a.zst", b"\x28\xb5\x2f\xfd", "is packed by zstd"),
        ("a.csv", b"a,b\n1,2\n", "is no CSV of kernels with their times"),
        ("a.sqlite", b"SQLite format 3\0" + b"x" * 400, "is a damaged SQLite file ("),
    ],
)
def test_another_file_is_refused_in_words(name, content, said, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(RooflinesError) as caught:
        check_activities(read_trace(str(tmp_path / name)))
    assert said in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / name))


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    for path, said in ((tmp_path / "no.json", "does not exist"), (tmp_path, "is a directory")):
        with pytest.raises(RooflinesError, match=said):
            read_trace(str(path))


def test_events_without_a_device_are_refused_with_their_number(tmp_path):
    path = write_trace(tmp_path / "host.json", [operator("aten::mm", 0.0, 5.0)] * 3)
    with pytest.raises(RooflinesError, match="has 3 events and none of a device"):
        check_activities(read_trace(path))


def test_too_large_a_value_and_too_many_events_are_refused(tmp_path, monkeypatch):
    path = write_trace(tmp_path / "many.json", [kernel("gemm", None, 1.0, 1.0)] * 9)
    with pytest.raises(RooflinesError, match="has more than 8 events"):
        read_trace(path, 8)
    monkeypatch.setattr(chrome_events, "PIECE_BYTES", 100)
    monkeypatch.setattr(chrome_events, "READ_BYTES", 100)
    monkeypatch.setattr(chrome_events, "MAX_VALUE_BYTES", 5000)
    long = tmp_path / "long.json"
    long.write_text('{"a": "' + "x" * 20_000)
    with pytest.raises(RooflinesError, match="has a value of more than 64 MiB"):
        read_trace(str(long))


def test_an_export_of_nsys_has_launches_operators_and_a_chip(tmp_path):
    first, second = 77 << 24, 78 << 24
    mm = "aten::mm, seq = 12, op_id = 7, sizes = [[8, 16], [16, 4]]"
    path = write_nsys(
        tmp_path / "report.sqlite",
        {
            "StringIds": [(1, "gemm<float>"), (2, "cudaLaunchKernel_v7000"), (3, mm)],
            "CUPTI_ACTIVITY_KIND_KERNEL": [
                (2000, 3000, 0, 7, 5, first, 1, 1),
                (2500, 3500, 1, 7, 5, second, 1, 1),  # the same number in another process
            ],
            "CUPTI_ACTIVITY_KIND_MEMCPY": [(4000, 5000, 0, 7, 6, first, 4096, 1)],
            "CUPTI_ACTIVITY_KIND_RUNTIME": [
                (1000, 1500, first + 1, 5, 2),
                (1100, 1600, second + 1, 5, 2),
            ],
            "NVTX_EVENTS": [
                (900, 1700, first + 1, None, 3),
                (800, 1800, first + 1, "step 1", None),
                (900, 1700, second + 1, "loss", None),
            ],
            "TARGET_INFO_GPU": [(0, "NVIDIA H100 80GB HBM3", 85018279936, 132, 9, 0)],
        },
    )
    trace, accounts = laid(path)
    gemm, other, copy = trace.activities
    assert gemm.operator.name == "aten::mm"
    assert gemm.operator.arguments.input_dims == [[8, 16], [16, 4]]
    assert gemm.operator.parent.name == "step 1"
    assert other.operator.name == "loss"
    assert (copy.kind, copy.copy_kind, copy.copied_bytes) == ("copy", "HtoD", 4096)
    assert accounts["0"].queued_ns == 1000
    assert [activity.step for activity in trace.activities] == [0, 0, -1]
    assert traced_chip(trace.devices).chip == "h100-sxm"


def test_an_export_without_kernels_is_refused(tmp_path):
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("create table a (b)")
    with pytest.raises(RooflinesError, match="has no table CUPTI_ACTIVITY_KIND_KERNEL"):
        read_trace(str(path))


def test_csv_of_both_profilers_is_read(tmp_path):
    nsys = tmp_path / "nsys.csv"
    nsys.write_text(
        "Processing [a.sqlite]\n\nStart (ns),Duration (ns),CorrId,Bytes (MB),Device,Strm,Name\n"
        '100,30,11,,NVIDIA H100 80GB HBM3 (0),7,"void f<int, 4>(int*)"\n'
        "170,500,13,0.004,NVIDIA H100 80GB HBM3 (0),7,[CUDA memcpy HtoD]\n"
    )
    trace, accounts = laid(nsys)
    assert [activity.kind for activity in trace.activities] == ["kernel", "copy"]
    assert trace.activities[1].copied_bytes == 4000
    assert traced_chip(trace.devices).chip == "h100-sxm"
    (account,) = accounts.values()
    assert (account.busy_ns, account.queued_ns) == (530, 40)
    rocm = tmp_path / "rocm.csv"
    rocm.write_text(
        '"Kind","Agent_Id","Queue_Id","Kernel_Name","Correlation_Id","Start_Timestamp",'
        '"End_Timestamp"\n"KERNEL_DISPATCH","Agent 2",1,"gemm",1,1000,4565\n'
        '"KERNEL_DISPATCH","Agent 2",1,"gemm",2,x,4565\n'
    )
    trace, accounts = laid(rocm)
    assert accounts["Agent 2"].busy_ns == 3565
    assert trace.notes == ["1 events of devices without a time are left out"]


def test_operations_of_xla_are_activities_but_not_those_that_contain_others(tmp_path):
    def label(kind, tid, name):
        return {"ph": "M", "name": kind, "pid": 3, "tid": tid, "args": {"name": name}}

    def operation(tid, name, ts, dur, **args):
        return {"ph": "X", "name": name, "pid": 3, "tid": tid, "ts": ts, "dur": dur, "args": args}

    work = {"hlo_category": "convolution fusion", "model_flops": "64", "bytes_accessed": 32}
    events = [
        operation(1, "fusion.1", 10.0, 5.0, **work, shape_with_layout="bf16[8,8]{1,0}"),
        operation(1, "while.1", 0.0, 50.0, hlo_category="while"),
        operation(1, "all-reduce.2", 20.0, 5.0, hlo_category="all-reduce"),
        operation(2, "step 1", 0.0, 50.0, group_id=1),
        operation(9, "host", 0.0, 50.0, a=1) | {"pid": 4},
        label("process_name", 0, "/device:TPU:0"),
        label("thread_name", 1, "XLA Ops"),
        label("thread_name", 2, "Steps"),
    ]
    trace, accounts = laid(write_trace(tmp_path / "xprof.json", events, devices=()))
    kinds = {activity.name: activity.kind for activity in trace.activities}
    assert kinds == {"fusion.1": "kernel", "all-reduce.2": "collective"}
    compiled = trace.activities[0].compiled
    assert (compiled.flops, compiled.memory_bytes) == (64, 32)
    assert accounts["/device:TPU:0"].busy_ns == 10_000


@pytest.mark.parametrize(
    ("device", "chip"),
    [
        (TracedDevice(str(H100["name"])), "h100-sxm"),
        (TracedDevice("NVIDIA A100-PG509-200"), "a100-sxm-40gb"),
        (TracedDevice("AMD Instinct MI300X VF"), "mi300x"),
        (TracedDevice("", 9, 4, 304, 205822885888.0), "mi300x"),
        (TracedDevice("", 9, 4, 304, 274877906944.0), "mi325x"),
        (TracedDevice("", 9, 0, 132, 85e9), None),
        (TracedDevice("ARTEMIS"), None),
        (TracedDevice("AMD Radeon Graphics", 9, 0, 104, 68702699520.0), None),
    ],
)
def test_a_device_is_told_by_its_name_else_by_its_numbers(device, chip):
    assert traced_chip([device]).chip == chip
    assert traced_chip([TracedDevice(), device]).chip == chip
