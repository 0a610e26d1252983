"""From an activity to its operator: correlation, launch call, innermost operator on its thread.

Overlap in time decides nothing: kernels begin after their operator has ended.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING

from rooflines.traces.trace_records import HostEvent, HostLaunch, Operator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflines.traces.trace_records import Activity, Annotation, Trace

GRAPH_LAUNCH = re.compile(r"(cuda|hip)GraphLaunch|cuGraphLaunch", re.IGNORECASE)
"""Launch calls that submit a whole graph, whose kernels have no operator."""


def nest(trace: Trace) -> None:
    """Set each host event's parent: the innermost operator or annotation that contains it.

    Nesting is per thread: backward runs on a second one. An event that overlaps without being
    contained is no child.

    Args:
        trace: Its host events are changed.
    """
    threads: dict[tuple[str, str], list[HostEvent]] = defaultdict(list)
    for event in chain[HostEvent](trace.annotations, trace.operators, trace.launches):
        threads[event.thread].append(event)
    for events in threads.values():
        _nest_thread(events)


def _nest_thread(events: list[HostEvent]) -> None:
    """Set parents on one thread."""
    # By begin, the longer first, launches last; stable sorts from the least key to the greatest.
    events.sort(key=lambda event: (isinstance(event, HostLaunch), -event.end_ns))
    events.sort(key=attrgetter("begin_ns"))
    opened: list[Operator | Annotation] = []
    for event in events:
        begin, end = event.begin_ns, event.end_ns
        while opened and opened[-1].end_ns < begin:
            opened.pop()
        if isinstance(event, HostLaunch):
            event.parent = opened[-1] if opened else None
            continue
        depth = len(opened)
        while depth and opened[depth - 1].end_ns < end:
            depth -= 1
        event.parent = opened[depth - 1] if depth else None
        opened.append(event)  # type: ignore[arg-type]  # no launch


def attribute(trace: Trace) -> None:
    """Set the launch and operator of each activity, and the parents of host events.

    Numbers repeat in merged files and on some devices: of several launches with a number, the last
    that began before the activity's end counts. Without a launch, the External id tells.

    Args:
        trace: Changed.
    """
    nest(trace)
    launches: dict[object, HostLaunch] = {}
    repeated: dict[object, list[HostLaunch]] = {}
    for submitted in sorted(trace.launches, key=attrgetter("begin_ns")):
        first = launches.setdefault(submitted.correlation, submitted)
        if first is not submitted:
            repeated.setdefault(submitted.correlation, [first]).append(submitted)
    without_launch = []
    for activity in trace.activities:
        number = activity.correlation
        launch = None if number is None else launches.get(number)
        if launch is not None:
            if number in repeated:
                launch = _last_before(repeated[number], activity)
            activity.launch = launch
            activity.operator = launch.parent
        elif activity.external is not None:
            without_launch.append(activity)
    wanted = {activity.external for activity in without_launch}
    externals = {
        operator.external: operator for operator in trace.operators if operator.external in wanted
    }
    for activity in without_launch:
        activity.operator = externals.get(activity.external)


def _last_before(candidates: list[HostLaunch], activity: Activity) -> HostLaunch:
    """Last launch that began before an activity's end; the last one if none did."""
    before = [launch for launch in candidates if launch.begin_ns <= activity.end_ns]
    return (before or candidates)[-1]


def ancestors(event: Operator | Annotation | None) -> Iterator[Operator | Annotation]:
    """A host event and those around it, innermost first."""
    while event is not None:
        yield event
        event = event.parent


def forget_unused(trace: Trace) -> None:
    """Drop operators around no launch, most of a file's: their memory serves what follows.

    Args:
        trace: Changed; its activities have their operators.
    """
    used: dict[int, Operator] = {}
    for activity in trace.activities:
        for event in ancestors(activity.operator):
            if id(event) in used:
                break
            if isinstance(event, Operator):
                used[id(event)] = event
    trace.operators = [*used.values()]


def is_graph_launch(launch: HostLaunch | None) -> bool:
    """Check that a launch submits a whole graph."""
    return launch is not None and GRAPH_LAUNCH.search(launch.name) is not None
