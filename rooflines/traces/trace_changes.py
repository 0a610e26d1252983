"""Two traces side by side, before and after a change: parts and groups that changed, with sums."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.text import counted, seconds
from rooflines.traces.call_frames import call_frame
from rooflines.traces.span_parts import NS_PER_S
from rooflines.traces.trace_screen import BREAK, PART_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflines.traces.laid_traces import LaidTrace

GROUP_KEYS = ("op", "shape")

CHANGE_COLUMNS = (*GROUP_KEYS, "calls_before", "calls_after", "before_s", "after_s", "change_s")
CHANGE_ORDER = (pl.col("change_s").abs(), *GROUP_KEYS)
"""Columns of a comparison, and its order: the largest change first."""

SHOWN_GROUPS = 12
"""Groups that are listed [1]."""

LABEL_LENGTH_CHANGED = 50
"""Characters of a group's label [1]."""

CHANGE_TABLE = "{:<52}{:>7}{:>7} {:>10} {:>10} {:>11}"


def change_frame(before: LaidTrace, after: LaidTrace) -> pl.DataFrame:
    """Groups in both traces, those that changed most first.

    The sums of `change_s` over groups and idle time add up to the change of the span.

    Args:
        before: The first trace.
        after: The second trace.

    Returns:
        `op`, `shape`; calls and owned time in both, 0 where a group lacks [1, s]; and
        `change_s`, after less before [s].
    """
    return _grouped_changes(call_frame(before), call_frame(after))


def _grouped_changes(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    """Groups in two call tables, as `change_frame` has them."""
    sides = [
        calls.group_by(*GROUP_KEYS).agg(
            pl.len().cast(pl.Int64).alias(f"calls_{side}"), pl.col("seconds").sum().alias(side)
        )
        for calls, side in ((before, "before_s"), (after, "after_s"))
    ]
    first, second = sides
    return (
        first.join(second, on=GROUP_KEYS, how="full", coalesce=True)
        .with_columns(pl.selectors.numeric().fill_null(0))
        .with_columns(change_s=pl.col("after_s") - pl.col("before_s"))
        .rename({"calls_before_s": "calls_before", "calls_after_s": "calls_after"})
        .select(*CHANGE_COLUMNS)
        .sort(*CHANGE_ORDER, descending=[True, False, False])
    )


IDLE = {
    "idle_host_s": "idle: the host had not launched the next kernel",
    "idle_call_s": "idle: the launch was running",
    "idle_device_s": "idle: queued, or a break",
}
"""Idle times of calls, as rows beside the groups."""


def table_changes(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    """Groups and idle times in two call tables, those that changed most first.

    The sums of `before_s`, `after_s` and `change_s` are both spans and their change.

    Args:
        before: The first call table.
        after: The second call table.

    Returns:
        `op`, `shape`, `calls_before`, `calls_after` [1], `before_s`, `after_s` and `change_s` [s].
    """
    idle_rows = [
        {
            "op": words,
            "shape": "",
            "calls_before": 0,
            "calls_after": 0,
            "before_s": before[column].sum(),
            "after_s": after[column].sum(),
        }
        for column, words in IDLE.items()
    ]
    groups = _grouped_changes(before, after)
    idle = pl.DataFrame(idle_rows, schema={**groups.schema}).with_columns(
        change_s=pl.col("after_s") - pl.col("before_s")
    )
    return pl.concat([groups, idle]).sort(*CHANGE_ORDER, descending=[True, False, False])


def change_text(before: LaidTrace, after: LaidTrace) -> str:
    """Screen of a change: parts of the span, then groups, both with their sums.

    Args:
        before: The first trace.
        after: The second trace.
    """
    frame = change_frame(before, after)
    title = f"{before.name} -> {after.name}"
    chips = {before.chip.chip or "no chip": None, after.chip.chip or "no chip": None}
    lines = [f"{title} · {' -> '.join(chips)}", "", *_part_lines(before, after)]
    lines += ["", *_group_lines(frame)]
    return "\n".join(lines)


def _signed(change_s: float) -> str:
    """Change with its sign."""
    return f"{'-' if change_s < 0 else '+'}{seconds(abs(change_s))}" if change_s else "0 s"


def _part_lines(before: LaidTrace, after: LaidTrace) -> Iterator[str]:
    """Parts of both spans; their changes add up to the span's."""
    first, second = asdict(before.total), asdict(after.total)
    words = {**PART_WORDS, "break_ns": BREAK}
    yield CHANGE_TABLE.format("part of the span", "", "", "before", "after", "change")
    for name, text in words.items():
        if first[name] or second[name]:
            yield _line(text, "", "", first[name] / NS_PER_S, second[name] / NS_PER_S)
    spans_s = before.span_s, after.span_s
    yield _line("the span: the sum of the lines above", "", "", *spans_s)


def _line(label: str, calls: str, more_calls: str, before_s: float, after_s: float) -> str:
    """Line of both times and their difference."""
    text = label if len(label) <= LABEL_LENGTH_CHANGED else f"{label[: LABEL_LENGTH_CHANGED - 2]}.."
    times = seconds(before_s), seconds(after_s), _signed(after_s - before_s)
    return CHANGE_TABLE.format(text, calls, more_calls, *times)


def _group_lines(frame: pl.DataFrame) -> Iterator[str]:
    """Groups that changed most, the others, and the sum: the change of the busy time."""
    heads = ("what changed most", "calls", "calls", "before", "after", "change")
    yield CHANGE_TABLE.format(*heads)
    for row in frame.head(SHOWN_GROUPS).iter_rows(named=True):
        label = f"{row['op'].rpartition('::')[2]} {row['shape']}".strip()
        calls = f"{row['calls_before']:,}", f"{row['calls_after']:,}"
        yield _line(label, *calls, row["before_s"], row["after_s"])
    rest = frame.slice(SHOWN_GROUPS)
    for label, part in ((counted(rest.height, "other"), rest), ("busy time: the sum", frame)):
        if part.height:
            calls = f"{part['calls_before'].sum():,}", f"{part['calls_after'].sum():,}"
            times = float(part["before_s"].sum()), float(part["after_s"].sum())
            yield _line(label, *calls, *times)
