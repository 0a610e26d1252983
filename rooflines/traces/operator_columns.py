"""Operators in columns while a file is read: most are around no launch, and become no records."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict
from typing import TYPE_CHECKING

from rooflines.traces.trace_records import Operator

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rooflines.traces.trace_records import Activity, Arguments, HostLaunch


class OperatorColumns:
    """Operators in the order of a file, some 48 bytes each."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._threads: list[tuple[str, str]] = []
        self._arguments: list[Arguments] = []
        self._begins_ns = array("q")
        self._ends_ns = array("q")
        self._externals = array("q")

    def add(  # noqa: PLR0913, PLR0917, the fields of a record
        self,
        name: str,
        thread: tuple[str, str],
        begin_ns: int,
        end_ns: int,
        arguments: Arguments,
        external: int | None,
    ) -> None:
        """Add an operator.

        Args:
            name: As recorded.
            thread: Process and thread.
            begin_ns: Begin [ns].
            end_ns: End [ns].
            arguments: Dims, types, strides and values.
            external: External id; None: not recorded.
        """
        self._names.append(name)
        self._threads.append(thread)
        self._arguments.append(arguments)
        self._begins_ns.append(begin_ns)
        self._ends_ns.append(end_ns)
        self._externals.append(external or 0)

    def used(
        self, launches: Iterable[HostLaunch], activities: Iterable[Activity]
    ) -> Iterator[Operator]:
        """Operators around a launch, or around an operator that an activity without a launch names.

        One that is left out contains none of these on its thread, so it is no parent of one that
        stays: nesting is the same without it.

        Args:
            launches: All launches in the file.
            activities: All activities in the file.
        """
        points: dict[tuple[str, str], list[int]] = defaultdict(list)
        numbers: set[object] = set()
        for launch in launches:
            points[launch.thread].append(launch.begin_ns)
            numbers.add(launch.correlation)
        named = {a.external for a in activities if a.correlation not in numbers} - {None}
        if named:
            for thread, begin_ns, external in zip(
                self._threads, self._begins_ns, self._externals, strict=True
            ):
                if external and external in named:
                    points[thread].append(begin_ns)
        for thread_points in points.values():
            thread_points.sort()
        for name, thread, arguments, begin_ns, end_ns, external in zip(
            *(self._names, self._threads, self._arguments),
            *(self._begins_ns, self._ends_ns, self._externals),
            strict=True,
        ):
            thread_points = points.get(thread, NONE)
            place = bisect_left(thread_points, begin_ns)
            if place < len(thread_points) and thread_points[place] <= end_ns:
                operator = Operator(name, thread, begin_ns, end_ns)
                operator.arguments, operator.external = arguments, external or None
                yield operator


NONE: list[int] = []
