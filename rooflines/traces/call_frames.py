"""Tables: a row a call; groups with one operator and shape; outliers."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

import polars as pl

from rooflines.dictionary.columns import TRACE_CALLS
from rooflines.traces.span_parts import NS_PER_S
from rooflines.traces.trace_calls import kernel_label

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rooflines.traces.laid_traces import LaidTrace
    from rooflines.traces.span_parts import BoundedCall
    from rooflines.traces.trace_timings import LibraryTime

LAYER = "layer "
"""Begin of the shape of a model's group."""

COMMUNICATION_KIND, OTHER_KIND = "communication", "other"
"""Kinds of calls without a cost."""

COLLECTIVE_KINDS = ("collective", COMMUNICATION_KIND)
"""Kinds of collectives, with a cost and without; their time has the waiting for other ranks."""

MIN_GROUP = 5
"""Calls of a group in which a call can be an outlier [1]."""

OUTLIER_RATIO = 3.0
"""Time over the median from which on a call is an outlier [1]."""

OUTLIER_SHARE = 0.001
"""Share of the busy time that an outlier takes beyond the median, at least [1]."""

PART_ROWS = 1 << 13
"""Rows that are Python objects at a time [1]."""

INTEGERS = ("step", "launches")
"""Columns of whole numbers."""


def call_frame(laid: LaidTrace, calls: Sequence[BoundedCall] | None = None) -> pl.DataFrame:
    """Call table, by begin, with the columns in `TRACE_CALLS`.

    The sums of `seconds` and of the columns `idle_*` add up to the span.

    Args:
        laid: The trace.
        calls: Its calls with other bounds; None: those on its chip.
    """
    shown = sorted(laid.calls if calls is None else calls, key=_begin)
    first_ns = min(account.begin_ns for account in laid.accounts)
    times = laid.library_times if calls is None else {}
    schema: dict[str, Any] = {
        column.name: pl.String
        if not column.unit
        else pl.Int64
        if column.name in INTEGERS
        else pl.Float64
        for column in TRACE_CALLS
    }
    name = laid.name
    parts = [pl.DataFrame(schema=schema)]
    for start in range(0, len(shown), PART_ROWS):
        rows = [
            _row(bounded, name, first_ns, times.get(id(bounded.call)))
            for bounded in shown[start : start + PART_ROWS]
        ]
        columns = {column: [row[column] for row in rows] for column in schema}
        parts.append(pl.DataFrame(columns, schema=schema))
    return pl.concat(parts)


def _begin(bounded: BoundedCall) -> tuple[int, str, str]:
    """Begin of a call, device and name: an order that does not depend on the file's."""
    activities = bounded.call.activities
    begin_ns = min(activity.begin_ns for activity in activities)
    return begin_ns, activities[0].device, bounded.call.name


def _row(
    bounded: BoundedCall, name: str, first_ns: int, library: LibraryTime | None
) -> dict[str, Any]:
    """Row for a call."""
    call, cost, times = bounded.call, bounded.call.cost, bounded.times
    activities = call.activities
    lower_s = bounded.lower_s
    network_bytes = None if times is None else times.network_bytes
    is_sent = cost is not None and cost.collective is not None
    no_cost_kind = COMMUNICATION_KIND if bounded.is_communication else OTHER_KIND
    return {
        "trace": name,
        "op": call.name,
        "kind": no_cost_kind if cost is None else cost.kind,
        "shape": call.shape,
        "kernel": kernel_label(activities[0].name),
        "step": call.step,
        "device": activities[0].device,
        "launches": len(activities),
        "start_s": (min(activity.begin_ns for activity in activities) - first_ns) / NS_PER_S,
        "seconds": bounded.seconds,
        "kernel_s": call.kernel_ns / NS_PER_S,
        "idle_host_s": sum(activity.idle_host_ns for activity in activities) / NS_PER_S,
        "idle_call_s": sum(activity.idle_call_ns for activity in activities) / NS_PER_S,
        "idle_device_s": sum(activity.idle_device_ns for activity in activities) / NS_PER_S,
        "flops": None if cost is None else float(cost.flops),
        "memory_bytes": float(cost.memory_bytes)
        if cost is not None and not is_sent and not cost.host_bytes
        else None,
        "network_bytes": network_bytes,
        "compute": None if cost is None else cost.compute,
        "sure": None if cost is None else "exact" if cost.exact else "assumed",
        "t_math_s": None if times is None else times.math,
        "t_memory_s": None if times is None else times.memory,
        "t_network_s": None if times is None else times.network,
        "t_lower_s": lower_s,
        "t_estimate_s": None if library is None else library.seconds,
        "bound": None if times is None else times.bound,
        "headroom_s": None if lower_s is None else max(bounded.seconds - lower_s, 0.0),
        "below": bounded.below,
        "why": bounded.why or None,
        "origin": call.origin,
    }


def group_frame(calls: pl.DataFrame) -> pl.DataFrame:
    """Call groups, those that lose most first: by headroom, without a bound by their time.

    Args:
        calls: Call table; those before the trace began are left out.
    """
    is_layer = pl.col("shape").str.starts_with(LAYER)
    has_bound = pl.col("t_lower_s").is_not_null()
    return (
        calls.lazy()  # copies the columns that are used, and no others
        .filter(pl.col("origin") != "before")
        .with_columns(shape=pl.when(is_layer).then(pl.lit("")).otherwise("shape"))
        .group_by("op", "shape", "kind")
        .agg(
            pl.len().alias("calls"),
            pl.col("seconds").sum(),
            pl.col("t_lower_s").sum(),
            has_bound.all().alias("is_bounded"),
            pl.col("bound").drop_nulls().mode().sort().first(),
            pl.col("headroom_s").sum(),
            (pl.col("sure") == "assumed").any().fill_null(value=False).alias("is_assumed"),
        )
        .with_columns(loses_s=pl.when("is_bounded").then("headroom_s").otherwise("seconds"))
        .sort(["loses_s", "op", "shape", "kind"], descending=[True, False, False, False])
        .collect()
    )


def outliers(laid: LaidTrace) -> list[tuple[BoundedCall, float, int]]:
    """Calls that take far longer than others of their operator, shape and kernel, worst first.

    Collectives wait for other ranks, and copies for hosts: they are no outliers.

    Args:
        laid: The trace.

    Returns:
        Each call with the median of its group [s], and the group's calls [1].
    """
    groups: dict[tuple[str, str, str], list[BoundedCall]] = {}
    for bounded in laid.inside:
        if not bounded.is_communication and bounded.call.kernel_ns:
            groups.setdefault(_group_key(bounded), []).append(bounded)
    floor_ns = OUTLIER_SHARE * laid.busy_ns
    listed = []
    for members in groups.values():
        if len(members) >= MIN_GROUP:
            middle_ns = median(bounded.call.kernel_ns for bounded in members)
            listed += [
                (bounded, middle_ns / NS_PER_S, len(members))
                for bounded in members
                if bounded.call.kernel_ns > OUTLIER_RATIO * middle_ns
                and bounded.call.kernel_ns - middle_ns > floor_ns
            ]
    return sorted(listed, key=lambda outlier: outlier[1] - outlier[0].call.kernel_ns / NS_PER_S)


def _group_key(bounded: BoundedCall) -> tuple[str, str, str]:
    """Operator, shape and first kernel; a model's layers are alike."""
    call = bounded.call
    is_layer = call.shape.startswith(LAYER)
    kernel = "" if is_layer else kernel_label(call.activities[0].name)
    return call.name, "" if is_layer else call.shape, kernel


def faster_counts(calls: Iterable[BoundedCall]) -> dict[str, int]:
    """Calls faster than their bound, by reason [1]."""
    counts: dict[str, int] = {}
    for bounded in calls:
        if bounded.below is not None:
            counts[bounded.below] = counts.get(bounded.below, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
