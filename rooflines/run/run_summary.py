"""The end of a run: what is there, what was skipped and why, and what was found.

A finding is a sentence with its rows, and is said if it keeps the rules of all sentences.
"""

from __future__ import annotations

import csv
from contextlib import suppress
from pathlib import Path
from statistics import mode
from typing import TYPE_CHECKING

from rooflines.answers.claims import Sentence, broken
from rooflines.basics.text import counted
from rooflines.results.folders import (
    MEASURED_SUMMARIES,
    MODEL_THRESHOLDS_FILE,
    SUMMARY_FILE,
    TABLES_FOLDER,
    THRESHOLDS_FILE,
    TRACES_FOLDER,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.run.outputs import Plan

MAX_REASONS = 3
"""At most this many reasons are named; skipped.csv has all [1]."""


def final_lines(plan: Plan, results: str | Path) -> str:
    """Last lines in a run: files made, rows skipped, statements, and the page to open.

    Args:
        plan: The run's plan.
        results: The results folder, complete.

    Returns:
        Lines of text; those whose file cannot be read are left out.
    """
    results = Path(results)
    rows = sum(part.rows for part in plan.parts)
    tables = [f"{counted(rows, 'row')} in {counted(len(plan.parts), 'part')}"] if rows else []
    charts = sum(1 for _ in (results / "charts").glob("*/*.parquet"))
    named = plan.by_path
    thresholds = [THRESHOLDS_FILE] if plan.parts_in(TABLES_FOLDER) else []
    thresholds += [MODEL_THRESHOLDS_FILE] if MODEL_THRESHOLDS_FILE in named else []
    measured = [name for name in MEASURED_SUMMARIES[:1] if name in named]
    traces = len(plan.paths(TRACES_FOLDER))
    laid = [counted(traces, "trace")] if traces else []
    counts = [*tables, *thresholds, *measured, *laid, counted(charts, "chart")]
    lines = [f"In {results}: {', '.join(counts)}"]
    with suppress(OSError, ValueError, KeyError):
        lines += skipped_reasons(_read(results / "skipped.csv"))
    with suppress(OSError, ValueError, KeyError):
        statements = findings(_read(results / SUMMARY_FILE)) if thresholds else ()
        lines += [statement.text for statement in statements if not broken(statement)]
    numbers = [SUMMARY_FILE] * bool(thresholds) + measured
    listed = ", ".join(str(results / name) for name in numbers)
    site = f"Open {results / 'bundle' / 'index.html'}"
    lines.append(f"{site}; in numbers: {listed}" if listed else site)
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
        named = [f"{reason} ({count:,})" for reason, count in ordered[:MAX_REASONS]]
        more = len(ordered) - len(named)
        named += [f"{counted(more, 'more reason')} in skipped.csv"] if more else []
        yield f"Skipped {counted(sum(by_reason.values()), 'row')}: {'; '.join(named)}"


def findings(rows: Sequence[Mapping[str, str]]) -> Iterator[Sentence]:
    """Share of compute-bound rows, and the most frequent bottleneck.

    Args:
        rows: The rows of summary.csv.
    """
    bounded = [row for row in rows if row["compute_bound"]]
    if total := sum(int(row["rows"]) for row in bounded):
        share = sum(int(row["rows"]) * float(row["compute_bound"]) for row in bounded) / total
        bounds = [row["bottleneck"] for row in bounded]
        most = mode(bounds)
        limited = [{"bound": bound} for bound in bounds if bound == most]
        yield Sentence(
            f"Compute-bound: {100 * share:.0f} % of the rows; most often the bottleneck: {most} "
            f"({len(limited):,} of {counted(len(bounds), 'line')} of {SUMMARY_FILE})",
            rows=limited,
            blames=most,
        )
