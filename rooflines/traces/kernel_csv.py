"""CSV of kernels with their times: `nsys stats -r cuda_gpu_trace`, `rocprofv3 --kernel-trace`.

They have no launches and no operators.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rooflines.traces.chrome_events import refusal
from rooflines.traces.chrome_traces import is_collective
from rooflines.traces.trace_records import Activity, ActivityKind, Trace, TracedDevice

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class KernelColumns(NamedTuple):
    """Columns of a tool's table.

    Attributes:
        name: Kernel name.
        begin: Begin [ns].
        last: End, or duration [ns].
        has_durations: Whether `last` is a duration.
        device: Device.
        stream: Stream or queue.
        correlation: Correlation number.
    """

    name: str
    begin: str
    last: str
    has_durations: bool
    device: str
    stream: str
    correlation: str


TOOLS = (
    KernelColumns(
        *("Kernel_Name", "Start_Timestamp", "End_Timestamp"),
        False,  # noqa: FBT003, has_durations
        *("Agent_Id", "Queue_Id", "Correlation_Id"),
    ),
    KernelColumns(
        *("Name", "Start (ns)", "Duration (ns)"),
        True,  # noqa: FBT003, has_durations
        *("Device", "Strm", "CorrId"),
    ),
)
"""Tables of rocprofv3 and Nsight Systems."""

SIZES = {"Bytes (byte)": 1, "Bytes (KB)": 1e3, "Bytes (MB)": 1e6, "Bytes (GB)": 1e9}
"""Bytes in the unit of a column with copied bytes [byte]."""

NUMBERED = re.compile(r" \(\d+\)$")
"""Number behind a device's name."""


def read_kernel_csv(path: str) -> Trace:
    """Read kernels from a CSV file.

    Args:
        path: The file; lines above the line of column names are passed over.

    Raises:
        RooflinesError: It has no kernels with their times.
    """
    trace, timeless = Trace(path), 0
    with Path(path).open(newline="", encoding="utf-8-sig", errors="replace") as file:
        rows = csv.reader(line.replace("\0", "") for line in file)
        try:
            tool, names = _head(path, rows)
            for cells in rows:
                if len(cells) == len(names):
                    activity = _activity(tool, dict(zip(names, cells, strict=True)))
                    timeless += activity is None
                    trace.activities += [activity] if activity else []
        except csv.Error:
            raise _no_kernels(path) from None
    if tool.has_durations and trace.activities:
        device = NUMBERED.sub("", trace.activities[0].device)
        trace.devices.append(TracedDevice(device))
    trace.events = len(trace.activities) + timeless
    if timeless:
        trace.notes.append(f"{timeless} events of devices without a time are left out")
    return trace


def _no_kernels(path: str) -> Exception:
    fix = "give that of nsys stats -r cuda_gpu_trace -f csv, or of rocprofv3 --kernel-trace"
    return refusal(path, "is no CSV of kernels with their times", fix)


def _head(path: str, rows: Iterator[list[str]]) -> tuple[KernelColumns, list[str]]:
    """Tool and column names, by the line that has them."""
    for cells in rows:
        for tool in TOOLS:
            if {tool.name, tool.begin, tool.last} <= {*cells}:
                return tool, cells
    raise _no_kernels(path)


def _activity(tool: KernelColumns, row: Mapping[str, str]) -> Activity | None:
    """Activity of a row; None: without a time."""
    try:
        begin, last = int(row[tool.begin]), int(row[tool.last])
    except ValueError:
        return None
    end = begin + last if tool.has_durations else last
    if end < begin:
        return None
    name = row[tool.name]
    lower = name.lower()
    kind: ActivityKind = "collective" if is_collective(name) else "kernel"
    if "memcpy" in lower:
        kind = "copy"
    elif "memset" in lower:
        kind = "set"
    device, stream = row.get(tool.device, ""), row.get(tool.stream, "")
    activity = Activity(name, kind, device, stream, begin, end)
    activity.correlation = row.get(tool.correlation)
    for column, unit in SIZES.items():
        try:
            activity.copied_bytes = round(float(row.get(column) or 0) * unit)
        except ValueError:
            continue
        if activity.copied_bytes:
            break
    if kind == "copy":
        activity.copy_kind = name
    return activity
