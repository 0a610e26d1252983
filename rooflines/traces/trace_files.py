"""Profilers' files: the first bytes tell the reader, then the name's end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError
from rooflines.basics.file_kinds import SQLITE
from rooflines.traces.chrome_events import MAX_EVENTS, refusal
from rooflines.traces.chrome_traces import read_chrome
from rooflines.traces.kernel_csv import read_kernel_csv
from rooflines.traces.nsys_export import read_nsys

if TYPE_CHECKING:
    from rooflines.traces.trace_records import Trace

HEAD_BYTES = 64
"""Bytes that tell the kind of file [byte]."""

UNREAD_STARTS = {
    b"PK\x03\x04": ("is a zip archive", "unpack it"),
    b"\x28\xb5\x2f\xfd": ("is packed by zstd", "unpack it"),
}
UNREAD_ENDS = {
    ".xplane.pb": ("is a protobuf of XProf", "give the trace.json.gz that lies beside it"),
    ".nsys-rep": ("is a report of Nsight Systems", "export it: nsys export --type sqlite FILE"),
    ".ncu-rep": (
        "is a report of Nsight Compute, which has no timeline",
        "give a trace of the PyTorch profiler or of Nsight Systems",
    ),
}
"""Files that are not read: what they are, and what to do, by first bytes and by ends of names."""

RECORD_DEVICES = "record CUDA activities, activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"


def read_trace(path: str, max_events: int = MAX_EVENTS) -> Trace:
    """Read a trace.

    Args:
        path: The file.
        max_events: Events above which it is refused [1].

    Raises:
        RooflinesError: It is missing, or no trace with device events.
    """
    try:
        with Path(path).open("rb") as file:
            head = file.read(HEAD_BYTES)
        trace = _read(path, head, max_events)
    except FileNotFoundError:
        raise refusal(path, "does not exist", "give the path of a file that does") from None
    except IsADirectoryError:
        raise refusal(path, "is a directory", "give the path of a file") from None
    except (OSError, ValueError) as error:
        if isinstance(error, RooflinesError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise refusal(path, f"cannot be read: {reason}", "make it readable") from None
    return trace


def check_activities(trace: Trace) -> None:
    """Refuse a trace without device events.

    Raises:
        RooflinesError: It has none.
    """
    if not trace.activities:
        cut = f" ({'; '.join(trace.notes)})" if trace.notes else ""
        problem = f"has {trace.events:,} events and none of a device{cut}"
        raise refusal(trace.file, problem, RECORD_DEVICES)


def _read(path: str, head: bytes, max_events: int) -> Trace:
    """Trace by the reader that first bytes and name tell."""
    if head.startswith(SQLITE[:-1]):
        return read_nsys(path)
    unread = (
        *(words for start, words in UNREAD_STARTS.items() if head.startswith(start)),
        *(words for end, words in UNREAD_ENDS.items() if path.endswith(end)),
    )
    if unread:
        raise refusal(path, *unread[0])
    begins = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if path.lower().endswith(".csv") and begins not in {b"{", b"["}:
        return read_kernel_csv(path)
    return read_chrome(path, max_events)
