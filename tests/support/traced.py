"""Small traces in the layouts of profilers, with times that a test knows."""

import gzip
import json
import sqlite3

H100 = {
    "id": 0,
    "name": "NVIDIA H100 80GB HBM3",
    "totalGlobalMem": 85018279936,
    "computeMajor": 9,
    "computeMinor": 0,
    "numSms": 132,
}

BF16 = "c10::BFloat16"


def event(cat, name, ts, dur, *, pid=1, tid=1, **args):  # noqa: PLR0913, the fields
    """An event of Chrome's format; times in us."""
    fields = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur}
    return fields | {"args": args}


def operator(name, ts, dur, dims=None, *, tid=1, external=None, types=None, **args):  # noqa: PLR0913, the fields
    if dims is not None:
        kinds = types or [BF16 if size else "Scalar" for size in dims]
        args |= {"Input Dims": dims, "Input type": kinds}
        args |= {"Concrete Inputs": ["" if size else "1" for size in dims]}
    if external is not None:
        args["External id"] = external
    return event("cpu_op", name, ts, dur, tid=tid, **args)


def launch(correlation, ts, dur=2.0, *, tid=1, name="cudaLaunchKernel", **args):
    return event("cuda_runtime", name, ts, dur, tid=tid, correlation=correlation, **args)


def kernel(name, correlation, ts, dur, *, stream=7, device=0, **args):  # noqa: PLR0913, the fields
    args |= {} if correlation is None else {"correlation": correlation}
    args |= {"device": device, "stream": stream}
    return event("kernel", name, ts, dur, pid=device, tid=stream, **args)


def matmul(correlation, at, begin, dur, dims=((64, 4096), (4096, 4096)), *, tid=1, **place):  # noqa: PLR0913
    """aten::linear around aten::mm, its launch, and its kernel."""
    sizes = [list(size) for size in dims]
    return [
        operator("aten::linear", at, 12.0, sizes, tid=tid),
        operator("aten::mm", at + 1, 10.0, sizes, tid=tid),
        launch(correlation, at + 3, tid=tid),
        kernel("nvjet_gemm", correlation, begin, dur, **place),
    ]


def step(name, ts, dur):
    return event("user_annotation", name, ts, dur)


def kineto(events, head):
    """Text in Kineto's layout."""
    texts = []
    for fields in events:
        names = ", ".join(f'"{key}": {json.dumps(fields[key])}' for key in ("ph", "cat", "name"))
        place = ", ".join(f'"{key}": {json.dumps(fields[key])}' for key in ("pid", "tid"))
        times = f'"ts": {fields["ts"]}, "dur": {fields["dur"]}'
        args = json.dumps(fields["args"])[1:-1]
        texts.append(
            f'  {{\n    {names}, {place},\n    {times},\n    "args": {{\n      {args}\n    }}\n  }}'
        )
    top = json.dumps(head)[1:-1]
    body = ",\n".join(texts)
    return f'{{\n  {top},\n  "traceEvents": [\n{body}\n  ],\n  "traceName": "x"\n}}\n'


LAYOUTS = {
    "plain": lambda events, head: json.dumps({**head, "traceEvents": events}),
    "compact": lambda events, head: json.dumps(
        {"traceEvents": events, **head}, separators=(",", ":")
    ),
    "indented": lambda events, head: json.dumps({**head, "traceEvents": events}, indent=4),
    "list": lambda events, _: json.dumps(events),
    "kineto": kineto,
}
"""Texts of a file, by layout."""


def trace_text(events, layout="plain", devices=(H100,), **head):
    return LAYOUTS[layout](events, {"deviceProperties": [*devices], **head})


def write_trace(path, events, layout="plain", devices=(H100,), **head):
    """Write a file, packed where its name ends in .gz; return its path as text."""
    content = trace_text(events, layout, devices, **head).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return str(path)


NSYS = """
create table StringIds (id integer primary key, value text);
create table CUPTI_ACTIVITY_KIND_KERNEL (start integer, end integer, deviceId integer,
    streamId integer, correlationId integer, globalPid integer, demangledName integer,
    shortName integer);
create table CUPTI_ACTIVITY_KIND_MEMCPY (start integer, end integer, deviceId integer,
    streamId integer, correlationId integer, globalPid integer, bytes integer, copyKind integer);
create table CUPTI_ACTIVITY_KIND_RUNTIME (start integer, end integer, globalTid integer,
    correlationId integer, nameId integer);
create table NVTX_EVENTS (start integer, end integer, globalTid integer, text text, textId integer);
create table TARGET_INFO_GPU (id integer, name text, totalMemory integer, smCount integer,
    computeMajor integer, computeMinor integer);
"""


def write_nsys(path, rows):
    """Write an export of Nsight Systems: rows by table, in the order of its columns."""
    database = sqlite3.connect(path)
    database.executescript(NSYS)
    for table, entries in rows.items():
        for entry in entries:
            marks = ", ".join("?" for _ in entry)
            database.execute(f"insert into {table} values ({marks})", entry)  # noqa: S608
    database.commit()
    database.close()
    return str(path)
