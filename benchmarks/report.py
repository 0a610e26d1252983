"""The report of the benchmarks: tables in Markdown, and goals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Lines = list[str]


@dataclass(frozen=True)
class Goal:
    """A goal and the measured value.

    Attributes:
        what: What is measured, with its unit.
        wanted: The goal.
        found: What was measured.
        most: Whether the goal is the most that it may be; else it is the least.
        limit: What stands in the way where it is not reached.
    """

    what: str
    wanted: float
    found: float
    most: bool = False
    limit: str = ""

    @property
    def reached(self) -> bool:
        """Whether the goal is reached."""
        return self.found <= self.wanted if self.most else self.found >= self.wanted


class Section(NamedTuple):
    """A section of the report.

    Attributes:
        lines: Its tables, in Markdown.
        goals: Its goals, in order.
    """

    lines: Lines
    goals: Sequence[Goal] = ()


def table(
    title: str, head: Sequence[str], rows: Iterable[Sequence[object]], note: str = ""
) -> Lines:
    """A table in Markdown; it is also printed."""
    lines = [
        f"## {title}",
        "",
        *([note, ""] if note else []),
        f"| {' | '.join(head)} |",
        f"|{' --- |' * len(head)}",
    ]
    lines += [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows]
    print("\n".join([*lines, ""]), flush=True)
    return [*lines, ""]


def goals(found: Iterable[Goal]) -> Lines:
    """The goals as a table."""
    body = [
        (
            goal.what,
            f"{'at most' if goal.most else 'at least'} {goal.wanted:g}",
            f"{goal.found:.3g}",
            *_verdict(goal),
        )
        for goal in found
    ]
    return table("Goals", ("what", "goal", "measured", "reached", "what stands in the way"), body)


def _verdict(goal: Goal) -> tuple[str, str]:
    return ("yes", "") if goal.reached else ("no", goal.limit)


def million(rows: float, seconds: float) -> str:
    """Million rows per second, to two decimals."""
    return f"{rows / seconds / 1e6:.2f}"
