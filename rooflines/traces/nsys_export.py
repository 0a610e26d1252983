"""Traces in SQLite, as `nsys export --type sqlite` writes them; times are nanoseconds."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rooflines.traces.chrome_events import refusal
from rooflines.traces.chrome_traces import is_collective, recorded_number
from rooflines.traces.trace_records import (
    NO_ARGUMENTS,
    Activity,
    Annotation,
    Arguments,
    HostLaunch,
    Operator,
    Trace,
    TracedDevice,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
COPIES = "CUPTI_ACTIVITY_KIND_MEMCPY"
SETS = "CUPTI_ACTIVITY_KIND_MEMSET"
CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
RANGES = "NVTX_EVENTS"
DEVICES = "TARGET_INFO_GPU"
TEXTS = "StringIds"
"""Tables; all but the first may lack."""

COPY_KINDS = {1: "HtoD", 2: "DtoH", 8: "DtoD", 10: "PtoP"}
"""Directions by copyKind."""

OPERATOR = re.compile(r"([\w:]+), (?:seq = \d+, )?op_id = \d+")
"""Range that PyTorch's emit_nvtx writes for an operator."""

SIZES = re.compile(r", sizes = (\[.*\])")
"""Dims of the operator's arguments in that range."""

PROCESS_UNIT = 0x1000000
"""Threads in a global id that one process can have [1]."""


def read_nsys(path: str) -> Trace:
    """Read a trace from Nsight Systems' SQLite.

    Args:
        path: The file.

    Raises:
        RooflinesError: It is damaged, or has no kernels.
    """
    try:
        address = f"{Path(path).absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True)) as database:
            return _NsysExport(path, database).trace()
    except sqlite3.DatabaseError as error:
        fix = "export it again: nsys export --type sqlite FILE.nsys-rep"
        raise refusal(path, f"is a damaged SQLite file ({error})", fix) from None


class _NsysExport:
    """An exported report."""

    def __init__(self, path: str, database: sqlite3.Connection) -> None:
        self.path, self.database = path, database
        names = database.execute("select name from sqlite_master where type = 'table'")
        self.tables = {name for (name,) in names}
        if KERNELS not in self.tables:
            fix = "record CUDA, nsys profile --trace cuda,nvtx, and export that report"
            problem = f"has no table {KERNELS}: it is no export of a GPU trace"
            raise refusal(path, problem, fix)
        self.texts: dict[Any, str] = dict(self.rows(TEXTS, "id", "value"))
        self.arguments: dict[str, Arguments] = {}

    def rows(self, table: str, *columns: str) -> Iterator[tuple[Any, ...]]:
        """Table rows; a column that it lacks is null."""
        if table not in self.tables:
            return
        present = {row[1] for row in self.database.execute(f'pragma table_info("{table}")')}
        selected = ", ".join(f'"{name}"' if name in present else "null" for name in columns)
        yield from self.database.execute(f'select {selected} from "{table}"')  # noqa: S608, fixed

    def trace(self) -> Trace:
        """Records."""
        trace = Trace(self.path)
        self._activities(trace)
        columns = ("start", "end", "globalTid", "correlationId", "nameId")
        for begin, end, thread, correlation, name in self.rows(CALLS, *columns):
            if isinstance(begin, int) and isinstance(end, int) and end >= begin:
                call = HostLaunch(self.texts.get(name, ""), _thread(thread), begin, end)
                call.correlation = _key(thread, correlation)
                trace.launches.append(call)
        self._ranges(trace)
        fields = ("name", "computeMajor", "computeMinor", "smCount", "totalMemory")
        trace.devices = [
            TracedDevice(str(name or ""), major, minor, processors, memory)
            for name, major, minor, processors, memory in self.rows(DEVICES, *fields)
        ]
        on_host = len(trace.launches) + len(trace.operators) + len(trace.annotations)
        trace.events = len(trace.activities) + on_host
        return trace

    def _activities(self, trace: Trace) -> None:
        """Add kernels, copies and memsets."""
        timeless = 0
        place = ("start", "end", "deviceId", "streamId", "correlationId", "globalPid")
        for *times, long_name, short_name in self.rows(
            KERNELS, *place, "demangledName", "shortName"
        ):
            name = self.texts.get(long_name) or self.texts.get(short_name) or ""
            activity = _activity(name, times)
            timeless += activity is None
            if activity is not None:
                activity.kind = "collective" if is_collective(name) else "kernel"
                trace.activities.append(activity)
        for *times, size, direction in self.rows(COPIES, *place, "bytes", "copyKind"):
            word = COPY_KINDS.get(direction, str(direction))
            activity = _activity(f"Memcpy {word}", times)
            timeless += activity is None
            if activity is not None:
                activity.kind, activity.copy_kind = "copy", word
                activity.copied_bytes = recorded_number(size)
                trace.activities.append(activity)
        for *times, size in self.rows(SETS, *place, "bytes"):
            activity = _activity("Memset", times)
            timeless += activity is None
            if activity is not None:
                activity.kind, activity.copied_bytes = "set", recorded_number(size)
                trace.activities.append(activity)
        if timeless:
            trace.notes.append(f"{timeless} events of devices without a time are left out")

    def _ranges(self, trace: Trace) -> None:
        """Add NVTX ranges: operators with sizes, and annotations."""
        columns = ("start", "end", "globalTid", "text", "textId")
        for begin, end, thread, text, text_id in self.rows(RANGES, *columns):
            name = text or self.texts.get(text_id)
            if not name or not isinstance(begin, int) or not isinstance(end, int) or end < begin:
                continue
            match = OPERATOR.match(name)
            if match is None:
                trace.annotations.append(Annotation(name, _thread(thread), begin, end))
                continue
            operator = Operator(match[1], _thread(thread), begin, end)
            sizes = SIZES.search(name)
            operator.arguments = self._dims(sizes[1] if sizes else None)
            trace.operators.append(operator)

    def _dims(self, text: str | None) -> Arguments:
        """Operator arguments from sizes."""
        if text is None:
            return NO_ARGUMENTS
        if text not in self.arguments:
            try:
                dims = json.loads(text)
            except ValueError:
                dims = ()
            self.arguments[text] = Arguments(dims) if isinstance(dims, list) else NO_ARGUMENTS
        return self.arguments[text]


def _activity(name: str, times: list[Any]) -> Activity | None:
    """Activity with its place; None: without a time."""
    begin, end, device, stream, correlation, process = times
    if not (isinstance(begin, int) and isinstance(end, int) and end >= begin):
        return None
    activity = Activity(name, "kernel", str(device), str(stream), begin, end)
    activity.correlation = _key(process, correlation)
    return activity


def _thread(identifier: object) -> tuple[str, str]:
    """Process and thread by global id."""
    if not isinstance(identifier, int):
        return "", str(identifier)
    return str(identifier // PROCESS_UNIT), str(identifier % PROCESS_UNIT)


def _key(identifier: object, correlation: int | None) -> int | str | None:
    """Correlation number, with the process where ids have one: processes count alike."""
    if correlation is None or not isinstance(identifier, int) or identifier < PROCESS_UNIT:
        return correlation
    return f"{identifier // PROCESS_UNIT % PROCESS_UNIT} {correlation}"
