"""Traces in Chrome's JSON: PyTorch's profiler with CUDA, ROCm and MTIA; XProf.

A time becomes whole nanoseconds when its event is read: begin = round(1000 ts), end = begin +
round(1000 dur). Microseconds as floats would not do: near 1.7e15 us they have steps of 250 ns.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from rooflines.traces.chrome_events import (
    MAX_EVENTS,
    PROFILER_FIX,
    ChromeEvent,
    ChromeFile,
    refusal,
)
from rooflines.traces.operator_columns import OperatorColumns
from rooflines.traces.trace_records import (
    NO_ARGUMENTS,
    Activity,
    ActivityKind,
    Annotation,
    Arguments,
    CompilerWork,
    HostLaunch,
    Message,
    Trace,
    TracedDevice,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

ACTIVITIES: Mapping[str, ActivityKind] = {
    "kernel": "kernel",
    "concurrent_kernel": "kernel",
    "gpu_memcpy": "copy",
    "memcpy": "copy",
    "gpu_memset": "set",
    "memset": "set",
    "mtia_ccp_events": "kernel",
}
LAUNCHES = frozenset(
    {
        *("cuda_runtime", "cuda_driver", "runtime", "driver", "hip_runtime", "xpu_runtime"),
        *("mtia_runtime", "privateuse1_runtime", "privateuse1_driver"),
    }
)
OPERATORS = frozenset({"cpu_op", "operator"})
ANNOTATIONS = frozenset({"user_annotation", "python annotation"})
DEVICE_ANNOTATION = "gpu_user_annotation"
"""Categories of events, in lower case."""

COLLECTIVE = re.compile(
    r"nccl|rccl|multimem|one_shot|two_shot|cross_device_reduce|all_?reduce|all_?gather|"
    r"reduce_?scatter|all_?to_?all|sendrecv|deep_ep|nvshmem|symm_mem|quickreduce",
    re.IGNORECASE,
)
"""Names of kernels that are collectives."""

NAME_CHARACTERS = 200
"""Characters at a kernel name's start that tell its kind [1]."""

NS_PER_US = 1000

MAX_US = 4e15
"""Microseconds above which a number is no time [us]; sums of two have 63 bits as ns."""

MAX_ID = 1 << 63
"""Number from which on none is an External id [1]."""

RAW = msgspec.Raw(b"")


class ActivityArgs(
    msgspec.Struct,
    gc=False,
    rename={
        "external": "External id",
        "old_external": "external id",
        "copied": "bytes",
        "copy_kind": "kind",
        "collective": "Collective name",
        "in_elements": "In msg nelems",
        "out_elements": "Out msg nelems",
        "ranks": "Group size",
        "group": "Process Group Name",
    },
):
    """Device event fields."""

    device: int | str | float | None = None
    stream: int | str | float | None = None
    correlation: int | str | float | None = None
    external: int | str | float | None = None
    old_external: int | str | float | None = None
    copied: int | float | str | None = None
    copy_kind: str | int | float | None = None
    collective: str | None = None
    dtype: str | None = None
    in_elements: int | float | str | None = None
    out_elements: int | float | str | None = None
    ranks: int | float | str | None = None
    group: str | int | float | None = None


class LaunchArgs(msgspec.Struct, gc=False):
    """Launch fields."""

    correlation: int | str | float | None = None
    kernel: str | None = None


class OperatorArgs(
    msgspec.Struct,
    gc=False,
    rename={
        "dims": "Input Dims",
        "old_dims": "Input dims",
        "types": "Input type",
        "strides": "Input Strides",
        "concrete": "Concrete Inputs",
        "external": "External id",
        "old_external": "external id",
        "collective": "Collective name",
        "in_elements": "In msg nelems",
        "out_elements": "Out msg nelems",
        "ranks": "Group size",
        "group": "Process Group Name",
    },
):
    """Fields of an operator; those that are alike in many operators stay JSON text."""

    dims: msgspec.Raw = RAW
    old_dims: msgspec.Raw = RAW
    types: msgspec.Raw = RAW
    strides: msgspec.Raw = RAW
    concrete: msgspec.Raw = RAW
    external: int | str | float | None = None
    old_external: int | str | float | None = None
    collective: str | None = None
    dtype: str | None = None
    in_elements: int | float | str | None = None
    out_elements: int | float | str | None = None
    ranks: int | float | str | None = None
    group: str | int | float | None = None


class CompiledArgs(msgspec.Struct, gc=False):
    """XLA operation fields."""

    hlo_category: str | int | None = None
    model_flops: int | float | str | None = None
    flops: int | float | str | None = None
    bytes_accessed: int | float | str | None = None
    shape_with_layout: str | int | None = None
    correlation_id: int | str | float | None = None


ACTIVITY_ARGS = msgspec.json.Decoder(ActivityArgs)
LAUNCH_ARGS = msgspec.json.Decoder(LaunchArgs)
OPERATOR_ARGS = msgspec.json.Decoder(OperatorArgs)
COMPILED_ARGS = msgspec.json.Decoder(CompiledArgs)

CONTAINERS = frozenset({"while", "conditional", "call"})
"""Categories of XLA operations that contain others."""

XLA_COLLECTIVE = re.compile(r"all-|collective|reduce-scatter|permute")


def read_chrome(path: str, max_events: int = MAX_EVENTS) -> Trace:
    """Read a trace in Chrome's JSON, plain or gzip.

    Args:
        path: The file.
        max_events: Events above which it is refused [1].

    Raises:
        RooflinesError: It is no trace.
        OSError: It cannot be read.
    """
    file = ChromeFile(path)
    reader = EventReader(path)
    trace = reader.trace
    for events in file.batches():
        trace.events += len(events)
        if trace.events > max_events:
            raise refusal(path, f"has more than {max_events:,} events", "record fewer steps")
        for event in events:
            reader.add(event)
    if not file.has_events or not (trace.events or file.cut):
        raise _no_events(path, file.meta)
    reader.finish()
    if reader.timeless:
        noun = "event" if reader.timeless == 1 else "events"
        trace.notes.append(f"{reader.timeless} {noun} of devices without a time are left out")
    if file.cut:
        trace.notes.append(f"{file.cut}: {trace.events:,} whole events read")
    devices = file.meta.get("deviceProperties")
    trace.devices = [
        _device(device)
        for device in (devices if isinstance(devices, list) else ())
        if isinstance(device, dict)
    ]
    job = file.meta.get("distributedInfo")
    world = job.get("world_size") if isinstance(job, dict) else None
    trace.world_size = world if isinstance(world, int) else None
    return trace


def _no_events(path: str, meta: Mapping[str, Any]) -> Exception:
    """Error about JSON without events."""
    if "rocprofiler-sdk-tool" in meta:
        fix = "give its CSV, rocprofv3 --kernel-trace --output-format csv"
        return refusal(path, "is the JSON of rocprofv3", fix)
    keys = ", ".join(repr(key) for key in [*meta][:4] if key != "traceEvents")
    but = f", but {keys}" if keys else ""
    return refusal(path, f"has no events under traceEvents{but}", PROFILER_FIX)


def _device(fields: Mapping[str, Any]) -> TracedDevice:
    """Device as deviceProperties has it."""
    numbers = [fields.get(key) for key in ("computeMajor", "computeMinor", "numSms")]
    major, minor, processors = (n if isinstance(n, int) else None for n in numbers)
    memory = fields.get("totalGlobalMem")
    size = float(memory) if isinstance(memory, int | float) else None
    return TracedDevice(str(fields.get("name") or ""), major, minor, processors, size)


def recorded_number(value: object) -> int:
    """Number that a file has as a number or as text; 0: none."""
    try:
        return int(float(value))  # type: ignore[arg-type]  # what else it is, is no number
    except (TypeError, ValueError, OverflowError):
        return 0


def external_id(value: object) -> int | None:
    """External id; None: none, 0, which profilers write for none, or one above 63 bits."""
    number = recorded_number(value)
    return number if number and abs(number) < MAX_ID else None


def is_collective(name: str) -> bool:
    """True for a collective's kernel name."""
    return COLLECTIVE.search(name[:NAME_CHARACTERS]) is not None


class EventReader:
    """Reader from events to trace records.

    Attributes:
        trace: The trace so far.
        timeless: Device events that have no time, and are left out [1].
    """

    def __init__(self, path: str) -> None:
        self.trace = Trace(path)
        self.timeless = 0
        self._arguments: dict[tuple[object, ...], Arguments] = {}
        self._names: dict[str, str] = {}
        self._threads: dict[tuple[object, object], tuple[str, str]] = {}
        self._collectives: dict[str, bool] = {}
        self._labels: dict[tuple[str, object, object], str] = {}
        self._unlabelled: list[ChromeEvent] = []
        self._operators = OperatorColumns()

    def add(self, event: ChromeEvent) -> None:
        """Add an event."""
        if event.ph == "M":
            self._label(event)
        if event.ph != "X":
            return
        category = event.cat
        if not category:
            self._add_unlabelled(event)
            return
        if category not in CATEGORIES:
            category = category.lower()
            if category not in CATEGORIES:
                return
        kind = ACTIVITIES.get(category)
        times = _times(event)
        if times is None:
            self.timeless += kind is not None
            return
        name = str(event.name)
        name = self._names.setdefault(name, name)
        if kind is not None:
            self._activity(event, name, kind, *times)
        else:
            self._host_event(event, name, category, *times)

    def _add_unlabelled(self, event: ChromeEvent) -> None:
        """Add an event without a category now, or at the end where its thread has no name yet."""
        process = ("process_name", event.pid, None) in self._labels
        if process and ("thread_name", event.pid, event.tid) in self._labels:
            self._compiled(event)
        elif event.args:
            self._unlabelled.append(event)

    def _host_event(
        self, event: ChromeEvent, name: str, category: str, begin_ns: int, end_ns: int
    ) -> None:
        """Add a host thread's event."""
        thread = self._thread(event)
        if category in LAUNCHES:
            fields = _decoded(LAUNCH_ARGS, event.args)
            if fields is not None and fields.correlation is not None:
                launch = HostLaunch(name, thread, begin_ns, end_ns)
                launch.correlation = _number(fields.correlation)
                if fields.kernel is not None:
                    launch.kernel = self._names.setdefault(fields.kernel, fields.kernel)
                self.trace.launches.append(launch)
        elif category in OPERATORS:
            self._operators.add(name, thread, begin_ns, end_ns, *self._operator_fields(event))
        elif category in ANNOTATIONS:
            self.trace.annotations.append(Annotation(name, thread, begin_ns, end_ns))
        else:
            self.trace.device_annotations.append(Annotation(name, thread, begin_ns, end_ns))

    def finish(self) -> None:
        """Add operators, and events without a category, which names of threads tell: XProf's."""
        for event in self._unlabelled:
            self._compiled(event)
        self._unlabelled.clear()
        trace = self.trace
        trace.operators += self._operators.used(trace.launches, trace.activities)
        self._operators = OperatorColumns()

    def _thread(self, event: ChromeEvent) -> tuple[str, str]:
        key = (event.pid, event.tid)
        thread = self._threads.get(key)
        if thread is None:
            thread = self._threads[key] = (str(event.pid), str(event.tid))
        return thread

    def _text(self, value: object) -> str:
        text = str(value)
        return self._names.setdefault(text, text)

    def _activity(
        self, event: ChromeEvent, name: str, kind: ActivityKind, begin_ns: int, end_ns: int
    ) -> None:
        """Add a device's event."""
        fields = _decoded(ACTIVITY_ARGS, event.args) or NO_ACTIVITY_ARGS
        if kind == "kernel":
            collective = self._collectives.get(name)
            if collective is None:
                collective = self._collectives[name] = is_collective(name)
            kind = "collective" if collective else kind
        device = event.pid if fields.device is None else fields.device
        stream = event.tid if fields.stream is None else fields.stream
        activity = Activity(name, kind, self._text(device), self._text(stream), begin_ns, end_ns)
        activity.correlation = _number(fields.correlation)
        external = fields.old_external if fields.external is None else fields.external
        activity.external = external_id(external)
        if fields.copied is not None:
            activity.copied_bytes = recorded_number(fields.copied)
        if fields.copy_kind is not None:
            activity.copy_kind = self._text(fields.copy_kind)
        if fields.collective is not None:
            activity.message = _message(fields)
        self.trace.activities.append(activity)

    def _operator_fields(self, event: ChromeEvent) -> tuple[Arguments, int | None]:
        """Arguments and External id of an operator."""
        fields = _decoded(OPERATOR_ARGS, event.args)
        if fields is None:
            return NO_ARGUMENTS, None
        external = fields.old_external if fields.external is None else fields.external
        number = external_id(external)
        shapes = bytes(fields.dims or fields.old_dims)
        if not shapes and fields.collective is None:
            return NO_ARGUMENTS, number
        parts = (shapes, bytes(fields.types), bytes(fields.strides), bytes(fields.concrete))
        message = _message(fields) if fields.collective is not None else None
        key = (*parts, message)
        arguments = self._arguments.get(key)
        if arguments is None:
            dims, types, strides, concrete = map(_list, parts)
            arguments = Arguments(dims, types, strides, concrete, message)
            self._arguments[key] = arguments
        return arguments, number

    def _label(self, event: ChromeEvent) -> None:
        """Note a process or thread name."""
        if event.name in {"process_name", "thread_name"}:
            fields = _decoded(LABEL_ARGS, event.args)
            label = str(fields.name) if fields is not None and fields.name is not None else ""
            tid = event.tid if event.name == "thread_name" else None
            self._labels[str(event.name), event.pid, tid] = label

    def _compiled(self, event: ChromeEvent) -> None:
        """Add an XLA operation, by its process and thread names."""
        device = self._labels.get(("process_name", event.pid, None), "")
        line = self._labels.get(("thread_name", event.pid, event.tid), "")
        if not device.startswith("/device:"):
            return
        times = _times(event)
        if times is None:
            self.timeless += 1
            return
        begin_ns, end_ns = times
        name = self._text(event.name)
        if line in {"Steps", "XLA Modules"}:
            note = Annotation(name, (device, line), begin_ns, end_ns)
            self.trace.device_annotations.append(note)
            return
        fields = _decoded(COMPILED_ARGS, event.args) or CompiledArgs()
        category = str(fields.hlo_category or "")
        if not (line.startswith("Stream") or (line == "XLA Ops" and category not in CONTAINERS)):
            return
        kind: ActivityKind = "kernel"
        if is_collective(name) or XLA_COLLECTIVE.search(f"{category} {name}"):
            kind = "collective"
        activity = Activity(name, kind, self._text(device), self._text(line), begin_ns, end_ns)
        activity.correlation = _number(fields.correlation_id)
        flops = recorded_number(
            fields.model_flops if fields.model_flops is not None else fields.flops
        )
        moved = recorded_number(fields.bytes_accessed)
        if flops or moved or category:
            shape = str(fields.shape_with_layout or "")
            activity.compiled = CompilerWork(category, float(flops), float(moved), shape)
        self.trace.activities.append(activity)


class LabelArgs(msgspec.Struct, gc=False):
    """Process or thread name."""

    name: str | int | float | None = None


LABEL_ARGS = msgspec.json.Decoder(LabelArgs)
NO_ACTIVITY_ARGS = ActivityArgs()
CATEGORIES = LAUNCHES | OPERATORS | ANNOTATIONS | {DEVICE_ANNOTATION, *ACTIVITIES}
"""Categories that are read."""


def _times(event: ChromeEvent) -> tuple[int, int] | None:
    """Begin and end [ns]; None: no numbers, or none that a profiler writes."""
    begin, length = event.ts, event.dur or 0
    if begin is None or not (-MAX_US < begin < MAX_US and 0 <= length < MAX_US):
        return None
    begin_ns = round(begin * NS_PER_US)
    return begin_ns, begin_ns + round(length * NS_PER_US)


Fields = TypeVar("Fields")


def _decoded(decoder: msgspec.json.Decoder[Fields], text: msgspec.Raw) -> Fields | None:
    """Fields of an event; None: without any, or of other types than a profiler's."""
    if not text:
        return None
    try:
        return decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _number(value: str | float | None) -> int | str | None:
    """Correlation number; whole numbers as text are numbers."""
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value)
    return int(value) if value.isdecimal() else value


def _list(text: bytes) -> Any:  # noqa: ANN401, what the profiler wrote
    """List in a field that is JSON text; empty: none."""
    value = msgspec.json.decode(text) if text else ()
    return value if isinstance(value, list) else ()


def _message(fields: ActivityArgs | OperatorArgs) -> Message:
    """Collective in a kernel or record_param_comms."""
    return Message(
        collective=str(fields.collective),
        dtype=str(fields.dtype or ""),
        in_elements=recorded_number(fields.in_elements),
        out_elements=recorded_number(fields.out_elements),
        ranks=recorded_number(fields.ranks),
        group=str(fields.group if fields.group is not None else ""),
    )
