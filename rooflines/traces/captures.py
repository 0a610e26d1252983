"""Operators for a replayed graph's kernels, from a trace with the graph's capture.

A graph's kernels have only the launch of the whole graph. The capture has the same launches in the
same order, with operators and shapes around them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from difflib import SequenceMatcher
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.errors import RooflinesError
from rooflines.traces.host_tree import is_graph_launch, nest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rooflines.traces.trace_records import Activity, HostLaunch, Trace

BEGIN_CAPTURE, END_CAPTURE = re.compile("StreamBeginCapture"), re.compile("StreamEndCapture")
"""Calls around the launches of one graph."""

SUBMITS = re.compile(
    "Launch(Cooperative)?Kernel|ModuleLaunch|LaunchKernelEx|Memcpy.*Async|Memset.*Async|"
    "MemcpyAsync|MemsetAsync",
    re.IGNORECASE,
)
"""Calls that put an activity into a graph."""

COPIES = re.compile("memcpy|copyBuffer", re.IGNORECASE)
FILLS = re.compile("memset|fillBuffer", re.IGNORECASE)

MAX_LENGTH_GAP = 64
"""Difference in launches up to which two sequences are compared one by one [1]."""


class CaptureMatch(NamedTuple):
    """Result from joining a capture.

    Attributes:
        matched: Graph kernels that got an operator [1].
        total: Graph kernels [1].
        equal_share: Least share with equal names over the graphs [1].
    """

    matched: int
    total: int
    equal_share: float

    @property
    def note(self) -> str:
        """Sentence on what was joined."""
        names = "" if self.equal_share == 1 else f", {self.equal_share:.0%} of the names equal"
        return f"the capture has {self.matched:,} of {self.total:,} kernels of graphs{names}"


def captured_graphs(capture: Trace) -> list[list[HostLaunch]]:
    """Launches of each captured graph, in order.

    Without a recorded begin, all launches whose correlation has no activity are one graph.

    Args:
        capture: The capture.
    """
    launches = sorted(capture.launches, key=attrgetter("begin_ns"))
    graphs: list[list[HostLaunch]] = []
    current: list[HostLaunch] | None = None
    for launch in launches:
        if BEGIN_CAPTURE.search(launch.name):
            current = []
        elif END_CAPTURE.search(launch.name):
            graphs += [current] if current else []
            current = None
        elif current is not None and SUBMITS.search(launch.name):
            current.append(launch)
    if graphs:
        return graphs
    correlations = {activity.correlation for activity in capture.activities}
    launches = [launch for launch in launches if launch.correlation not in correlations]
    return [[launch for launch in launches if SUBMITS.search(launch.name)]]


def join_capture(trace: Trace, capture: Trace) -> CaptureMatch:
    """Set the operators for graphs' kernels from a capture.

    A captured operator serves every replay: its calls differ by the graph launch.

    Args:
        trace: Its activities are changed; they have their launches.
        capture: The capture.

    Raises:
        RooflinesError: The trace replays no graph, or the capture has none of its kernels.
    """
    nest(capture)
    graphs = captured_graphs(capture)
    words = [[_word(launch.kernel or launch.name) for launch in graph] for graph in graphs]
    is_named = any(launch.kernel for graph in graphs for launch in graph)
    matched = total = 0
    equal_share = 1.0
    for activities in _replays(trace):
        names = [_activity_word(activity) for activity in activities]
        total += len(names)
        if is_named:
            index = _closest(words, names)
            pairs, share = _equal_places(words[index], names)
            equal_share = min(equal_share, share)
        else:
            lengths = [len(graph) for graph in graphs]
            index = lengths.index(len(names)) if len(names) in lengths else -1
            pairs = [(place, place) for place in range(len(names))] if index >= 0 else []
        for place, captured in pairs:
            activities[place].operator = graphs[index][captured].parent
            activities[place].captured = True
            matched += 1
    if not total:
        raise RooflinesError(
            "--capture", "is of no use: the trace replays no graph", "leave it out"
        )
    if not matched:
        counts = " or ".join(dict.fromkeys(f"{len(graph):,}" for graph in graphs if graph))
        launches = f"graphs of {counts} launches" if counts else "no launches"
        problem = f"has {launches}, and none of the {total:,} kernels of the trace's graphs"
        raise RooflinesError("--capture", problem, "give the capture of this run and batch size")
    return CaptureMatch(matched, total, equal_share)


def _word(name: str) -> str:
    """Name to compare: copies and memsets have other names in launches."""
    if COPIES.search(name):
        return "copy"
    return "set" if FILLS.search(name) else name


def _activity_word(activity: Activity) -> str:
    is_kernel = activity.kind in ("kernel", "collective")
    return _word(activity.name) if is_kernel else activity.kind


def _replays(trace: Trace) -> Iterator[list[Activity]]:
    """Activities in each graph launch, in the order in which they began."""
    replays: dict[int, list[Activity]] = defaultdict(list)
    launches: dict[int, HostLaunch] = {}
    for activity in trace.activities:
        if activity.launch is not None and is_graph_launch(activity.launch):
            replays[id(activity.launch)].append(activity)
            launches[id(activity.launch)] = activity.launch
    for key in sorted(launches, key=lambda key: launches[key].begin_ns):
        yield sorted(replays[key], key=attrgetter("begin_ns"))


def _closest(words: Sequence[Sequence[str]], names: Sequence[str]) -> int:
    """Index for the captured graph with the most equal names in equal order."""

    def likeness(index: int) -> tuple[bool, float]:
        graph = words[index]
        if graph == names:
            return True, 1.0
        if abs(len(graph) - len(names)) >= MAX_LENGTH_GAP:
            return False, 0.0
        return False, SequenceMatcher(None, graph, names, autojunk=False).ratio()

    return max(range(len(words)), key=likeness)


def _equal_places(
    graph: Sequence[str], names: Sequence[str]
) -> tuple[list[tuple[int, int]], float]:
    """Places (kernel, captured launch) with equal names, and the share of equal names."""
    if graph == names:
        return [(place, place) for place in range(len(names))], 1.0
    matcher = SequenceMatcher(None, graph, names, autojunk=False)
    places = [
        (block.b + step, block.a + step)
        for block in matcher.get_matching_blocks()
        for step in range(block.size)
    ]
    return places, matcher.ratio()
