"""Work of copies without an operator, and of operations that XLA's compiler counted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rooflines.traces.trace_records import OperatorCost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflines.traces.trace_records import Activity, CompilerWork

HOST_COPY = "host copy"

HOST_DIRECTIONS = re.compile(r"HtoD|DtoH|Host ?-> ?Device|Device ?-> ?Host", re.IGNORECASE)
"""Copies between host and device, in their direction or name."""

XLA_SHAPE = re.compile(r"\(?(\w+)\[")

XLA_FORMATS = {
    "bf16": "bf16",
    "f16": "fp16",
    "f32": "fp32",
    "f64": "fp64",
    "s8": "int8",
    "f8e4m3fn": "fp8",
    "f8e5m2": "fp8",
}
"""Number format by XLA's name in a shape."""


def copy_cost(activities: Sequence[Activity]) -> OperatorCost | None:
    """Work of copies and memsets; None: others are among the activities.

    Copies between host and device take the host link; others read and write the memory once,
    memsets write it once.

    Args:
        activities: What one call launched.
    """
    if any(activity.kind not in ("copy", "set") for activity in activities):
        return None
    copied = sum(activity.copied_bytes for activity in activities if activity.kind == "copy")
    if any(crosses_host(activity) for activity in activities):
        return OperatorCost(HOST_COPY, host_bytes=float(copied))
    filled = sum(activity.copied_bytes for activity in activities if activity.kind == "set")
    return OperatorCost("copy", memory_bytes=float(2 * copied + filled))


def crosses_host(activity: Activity) -> bool:
    """True for a copy between host and device."""
    direction = activity.copy_kind or activity.name
    return activity.kind == "copy" and bool(HOST_DIRECTIONS.search(direction))


def compiled_cost(work: CompilerWork) -> OperatorCost | None:
    """Work as the compiler counted it, assumed: its bytes need not reach the main memory.

    Args:
        work: The counts.

    Returns:
        None: it counted nothing.
    """
    if not work.flops and not work.memory_bytes:
        return None
    match = XLA_SHAPE.match(work.shape)
    compute = XLA_FORMATS.get(match[1] if match else "", "bf16")
    return OperatorCost(work.category or "xla", work.flops, compute, work.memory_bytes, exact=False)
