"""The end of a run: what is there, what was skipped and why, and three findings."""

from __future__ import annotations

import csv
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rooflines.basics.text import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.run.plan import Plan

__all__ = ["ending", "findings", "skipped_reasons"]

MOST_REASONS = 3
"""At most this many reasons are named; skipped.csv has all [1]."""


def ending(plan: Plan, results: str | Path) -> str:
    """What a run made, what it skipped, what it found, and what to open, in a few lines.

    Args:
        plan: The plan of the run.
        results: The folder of results, all of them made.

    Returns:
        Lines of text; those whose file cannot be read are left out.
    """
    results = Path(results)
    rows = counted(sum(part.rows for part in plan.parts), "row")
    files = counted(len(plan.parts), "part")
    charts = sum(1 for _ in (results / "charts").glob("*/*.parquet"))
    lists = ["thresholds.csv", *plan.model_thresholds()[-1:], *plan.measured_summaries()[:1]]
    made = [f"{rows} in {files}", *lists, counted(charts, "chart")]
    lines = [f"In {results}: {', '.join(made)}"]
    with suppress(OSError, ValueError, KeyError):
        lines += skipped_reasons(_read(results / "skipped.csv"))
    with suppress(OSError, ValueError, KeyError):
        lines += findings(_read(results / "summary.csv"))
    lines.append(f"Open {results / 'bundle' / 'index.html'}; in numbers: {results / 'summary.csv'}")
    return "\n".join(lines)


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def skipped_reasons(rows: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """One line on the rows of skipped.csv: how many rows were left out, and the main reasons."""
    by_reason: dict[str, int] = {}
    for row in rows:
        by_reason[row["reason"]] = by_reason.get(row["reason"], 0) + int(row["rows"])
    if by_reason:
        ordered = sorted(by_reason.items(), key=lambda item: (-item[1], item[0]))
        named = [f"{reason} ({count:,})" for reason, count in ordered[:MOST_REASONS]]
        more = len(ordered) - len(named)
        named += [f"{counted(more, 'more reason')} in skipped.csv"] if more else []
        yield f"Skipped {counted(sum(by_reason.values()), 'row')}: {'; '.join(named)}"


def findings(rows: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """What the summary says: the share of compute-bound rows, the least size, and what never is.

    Args:
        rows: The rows of summary.csv.
    """
    bounded = [row for row in rows if row["compute_bound"]]
    if total := sum(int(row["rows"]) for row in bounded):
        share = sum(int(row["rows"]) * float(row["compute_bound"]) for row in bounded) / total
        by_bound: dict[str, int] = {}
        for row in bounded:
            by_bound[row["bottleneck"]] = by_bound.get(row["bottleneck"], 0) + 1
        most = max(by_bound, key=lambda bound: by_bound[bound])
        yield (
            f"Compute-bound: {100 * share:.0f} % of the rows; most often the bottleneck: {most} "
            f"({by_bound[most]:,} of {counted(len(bounded), 'line')} of summary.csv)"
        )
    solved = [row for row in rows if row["critical_least"]]
    if solved:
        least = min(solved, key=lambda row: int(row["critical_least"]))
        yield (
            f"Compute-bound at the smallest size: {least['axis']} = "
            f"{int(least['critical_least']):,} on {least['chip']} with {least['dtypes']} "
            f"{_split(least)}in {least['sweep']}"
        )
    asked = [row for row in rows if row["never"]]
    if asked:
        never = sum(float(row["never"]) == 1 for row in asked)
        yield (
            f"Compute-bound at no size of the axis solved for: {never:,} of "
            f"{counted(len(asked), 'line')} of summary.csv"
        )


def _split(row: Mapping[str, str]) -> str:
    """How a row is split over chips, in words before others."""
    return "" if row["sharding"] == "none" else f"over {row['shards']} chips ({row['sharding']}) "
