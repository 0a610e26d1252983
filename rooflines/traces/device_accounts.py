"""Time of a device: each nanosecond of its span has one owner, and the owners add up.

Busy time belongs to one activity: kernels before collectives before copies and memsets, among
equals the one that began first. Idle time belongs to the activity that ends it, in three parts:
its launch was not called, the call was running, it was queued. A queued part above 1 ms is a break.

    span = busy + not launched + in the call + queued + break
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rooflines.traces.trace_records import Activity, ActivityKind, Trace

PRECEDENCE: dict[ActivityKind, int] = {"kernel": 0, "collective": 1, "copy": 2, "set": 2}
"""Order in which activities that run at once own their time; the least first [1]."""

BREAK_NS = 1_000_000
"""Queued time above which a device did what is not in the file [ns]."""


@dataclass(slots=True)
class DeviceAccount:
    """A device's time, in whole ns.

    Attributes:
        device: The device.
        begin_ns: Begin of its first activity [ns].
        end_ns: End of its last activity [ns].
        busy_ns: Union of its activities [ns].
        total_ns: Sum of their durations, at least the union [ns].
        kernels_ns: Busy time that kernels own [ns].
        collectives_ns: Busy time with a collective and no kernel: exposed communication [ns].
        copies_ns: Busy time that copies and memsets own [ns].
        not_launched_ns: Idle, the host had not called the launch [ns].
        in_call_ns: Idle, the launch call was running [ns].
        queued_ns: Idle, launched and not begun, at most `BREAK_NS` at a time [ns].
        break_ns: Idle, launched and not begun for longer [ns].
    """

    device: str
    begin_ns: int
    end_ns: int
    busy_ns: int = 0
    total_ns: int = 0
    kernels_ns: int = 0
    collectives_ns: int = 0
    copies_ns: int = 0
    not_launched_ns: int = 0
    in_call_ns: int = 0
    queued_ns: int = 0
    break_ns: int = 0

    @property
    def span_ns(self) -> int:
        """From the first begin to the last end [ns]."""
        return self.end_ns - self.begin_ns

    @property
    def idle_ns(self) -> int:
        """Not launched, in the call, queued and break [ns]."""
        return self.not_launched_ns + self.in_call_ns + self.queued_ns + self.break_ns

    def check(self, activities: Sequence[Activity]) -> None:
        """Assert the identity of time, and busy time against an independent union.

        Raises:
            AssertionError: A nanosecond has no owner, or two.
        """
        owned = sum(activity.owned_ns for activity in activities)
        union = union_ns((activity.begin_ns, activity.end_ns) for activity in activities)
        if not (
            self.span_ns == self.busy_ns + self.idle_ns
            and self.busy_ns == owned == union
            and self.busy_ns == self.kernels_ns + self.collectives_ns + self.copies_ns
        ):
            raise AssertionError(f"time of device {self.device} does not add up: {self}")


def device_accounts(trace: Trace) -> list[DeviceAccount]:
    """Accounts by device; owners and idle parts are set on activities.

    Args:
        trace: Its activities have their launches.
    """
    by_device: dict[str, list[Activity]] = defaultdict(list)
    for activity in trace.activities:
        by_device[activity.device].append(activity)
    return [device_account(activities) for activities in by_device.values()]


def activity_order(activity: Activity) -> tuple[int, int, int, str, str]:
    """Activity order that does not depend on the file's."""
    precedence = PRECEDENCE[activity.kind]
    correlation = str(activity.correlation)
    return activity.begin_ns, activity.end_ns, precedence, activity.stream, correlation


def owner_intervals(
    ordered: Sequence[Activity],
) -> Iterator[tuple[int, int, Activity | None, Activity | None]]:
    """Intervals between begins and ends, each with its owner or with the activity that ends a gap.

    Args:
        ordered: A device's activities, by `activity_order`.

    Yields:
        Begin and end [ns], the owner if any activity runs, else the activity that begins next.
    """
    edges = sorted({edge for activity in ordered for edge in (activity.begin_ns, activity.end_ns)})
    running: list[tuple[int, int, int]] = []
    begun = 0
    for left, right in pairwise(edges):
        while begun < len(ordered) and ordered[begun].begin_ns <= left:
            entry = (PRECEDENCE[ordered[begun].kind], ordered[begun].begin_ns, begun)
            heapq.heappush(running, entry)
            begun += 1
        # Ended activities deeper in the heap leave when they come to its top.
        while running and ordered[running[0][2]].end_ns <= left:
            heapq.heappop(running)
        if running:
            yield left, right, ordered[running[0][2]], None
        else:
            yield left, right, None, ordered[begun]


def gap_parts(activity: Activity, left: int, right: int) -> tuple[int, int, int]:
    """Parts of a gap that an activity ends: not launched, in the call, queued [ns].

    Args:
        activity: The activity; a late launch is cut at its begin.
        left: Begin of the gap [ns].
        right: End of the gap [ns].
    """
    gap = right - left
    if activity.launch is None:
        return 0, 0, gap
    late = min(max(activity.launch.begin_ns - left, 0), gap)
    called = min(max(activity.launch.end_ns - left, 0), gap) - late
    return late, called, gap - late - called


def device_account(activities: Iterable[Activity]) -> DeviceAccount:
    """A device's account.

    Args:
        activities: Its activities; their owned and idle parts are set.
    """
    ordered = sorted(activities, key=activity_order)
    last_ns = max(activity.end_ns for activity in ordered)
    account = DeviceAccount(ordered[0].device, ordered[0].begin_ns, last_ns)
    for left, right, owner, following in owner_intervals(ordered):
        if owner is not None:
            owner.owned_ns += right - left
        elif following is not None:
            _charge_gap(account, following, left, right)
    for activity in ordered:
        account.total_ns += activity.duration_ns
        account.busy_ns += activity.owned_ns
        if activity.kind == "kernel":
            account.kernels_ns += activity.owned_ns
        elif activity.kind == "collective":
            account.collectives_ns += activity.owned_ns
        else:
            account.copies_ns += activity.owned_ns
    account.check(ordered)
    return account


def _charge_gap(account: DeviceAccount, activity: Activity, left: int, right: int) -> None:
    """Charge idle time to the activity that ends it."""
    late, called, queued = gap_parts(activity, left, right)
    activity.idle_host_ns, activity.idle_call_ns, activity.idle_device_ns = late, called, queued
    account.not_launched_ns += late
    account.in_call_ns += called
    if queued > BREAK_NS:
        account.break_ns += queued
    else:
        account.queued_ns += queued


def union_ns(intervals: Iterable[tuple[int, int]]) -> int:
    """Length that intervals cover [ns]."""
    covered, reached = 0, None
    for begin, end in sorted(intervals):
        if reached is None or begin > reached:
            covered, reached = covered + end - begin, end
        elif end > reached:
            covered, reached = covered + end - reached, end
    return covered
