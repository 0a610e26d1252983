"""Screen: where the time went as sums that close, and what may be said."""

from __future__ import annotations

from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING, Any

import polars as pl

from rooflines.basics.text import counted, seconds, significant
from rooflines.traces.call_frames import (
    COLLECTIVE_KINDS,
    call_frame,
    faster_counts,
    group_frame,
    outliers,
)
from rooflines.traces.laid_traces import GIVEN, MIN_COVERED
from rooflines.traces.span_parts import NS_PER_S, inside_bounds_s
from rooflines.traces.step_annotations import traced_step_title

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.traces.laid_traces import LaidTrace

MAX_WIDTH = 130
"""Characters of a line [1]."""

MAX_LINES = 40
"""Lines of a screen [1]."""

MAX_GROUPS = 8
"""Groups that are listed [1]."""

MAX_OUTLIERS = 3
"""Outliers that are named [1]."""

BAR_LENGTH = 28
"""Characters of a bar that is the whole [1]."""

MIN_PART = 0.0005
"""Share of the span below which a part has no line [1]."""

LABEL_LENGTH = 34
"""Characters of a group's label [1]."""

SHORT_S = 1e-5
"""Time of a launch below which a kernel is short [s]."""

NOTED_SHARE = 0.1
"""Share of the time from which on short kernels and the host are noted [1]."""

PART_WORDS = {
    "at_bound_ns": "kernels at their bound, least time at peak rates",
    "above_ns": "kernels above their bound",
    "no_bound_ns": "kernels without a bound",
    "before_ns": "kernels launched before the trace began, in no verdict",
    "communication_ns": "communication with no kernel beside it",
    "not_launched_ns": "idle: the host had not launched the next kernel",
    "in_call_ns": "idle: the launch was running",
    "queued_ns": "queued: launched, and not begun",
}
"""Parts of a span in words, in order."""

ADVICE = {
    "above_ns": "",
    "communication_ns": "communication: {time} that no kernel hides: overlap it, or send less",
    "not_launched_ns": "",
    "in_call_ns": "launches: {time} pass in launch calls: graphs or fewer kernels shorten that",
    "queued_ns": "queues: {time} between launch and begin: other streams, events, or a busy chip",
}
"""Advice by the part of the span that is longest and can shrink."""

BREAK = "break: over 1 ms without a kernel of this file, as in a profiler's pause; in no share"
SUM = "the span: the sum of the lines above"
SMALL = "others, below 0.05 % each"

RANKS = "ranks     {}"
"""Line on ranks."""

HEADINGS = ("what loses most", "calls", "measured", "bound", "x", "by", "would save")
WAITS = "has waits"
"""In place of what a collective would save: its time has the waiting for other ranks."""

NEAR_BOUND = 1.25
"""Time over bound up to which kernels are near their bound [1]."""

TABLE = "{:<34}{:>7} {:>10} {:>9} {:>6}  {:<11}{:>10}"


def percent_text(share: float) -> str:
    """Whole per cent, rounded down below a whole: 84.9 % is no 85 %."""
    return f"{floor(share * 100 + 1e-9)} %"


def trace_text(
    laid: LaidTrace,
    other_chips: Sequence[str] = (),
    rank_lines: Sequence[str] = (),
    calls: pl.DataFrame | None = None,
) -> str:
    """Answer to where the time went, at most 40 lines by 130 characters.

    Args:
        laid: The trace.
        other_chips: Chips whose bounds are shown beside.
        rank_lines: Sentences on the trace's ranks.
        calls: Table of its calls; None: computed here.
    """
    frame = call_frame(laid) if calls is None else calls
    groups = group_frame(frame)
    head = [_title(laid), _verdict(laid), "", *_parts(laid), "", *_groups(groups)]
    notes = [*map(RANKS.format, rank_lines), *_notes(laid, frame, groups, other_chips)]
    room = MAX_LINES - len(head) - 1
    if len(notes) > room:
        left = len(notes) - room + 1
        notes = [*notes[: room - 1], f"... and {counted(left, 'more note')}: --json has all"]
    lines = [*head, "", *notes] if notes else head
    return "\n".join(_cut(line) for line in lines)


def _cut(line: str) -> str:
    return line if len(line) <= MAX_WIDTH else f"{line[: MAX_WIDTH - 2]}.."


def _title(laid: LaidTrace) -> str:
    """File, chip, steps."""
    chip = laid.chip.chip or "no chip"
    parts = [laid.name, chip]
    if len(laid.accounts) > 1:
        parts.append(f"{counted(len(laid.accounts), 'device')}, added up")
    steps = laid.trace.steps
    if len(steps) == 1:
        parts.append(traced_step_title(steps[0].name))
    elif steps:
        parts.append(f"{counted(len(steps), 'step')}, {traced_step_title(steps[0].name)} first")
    return " · ".join(parts)


def _verdict(laid: LaidTrace) -> str:
    """Time, busy time, share with a bound, and the ratio where enough has one."""
    total = laid.total
    whole_ns = total.total_ns - total.break_ns
    without = " without breaks" if total.break_ns else ""
    busy = laid.busy_ns / max(whole_ns, 1)
    time = f"{seconds(whole_ns / NS_PER_S)}{without}, busy {seconds(laid.busy_ns / NS_PER_S)}"
    return f"{time} ({busy * 100:.1f} %). {_covered(laid)}"


def _covered(laid: LaidTrace) -> str:
    """Share of the busy time with a bound, and what follows."""
    covered = laid.covered()
    if laid.rates is None:
        reason = laid.chip.source
        return f"No kernel has a bound: {reason}; name it with --chip."
    if covered is None:
        return "All kernels were launched before the trace began: there is no verdict."
    share = f"{percent_text(covered)} of the busy time has a bound"
    if covered < MIN_COVERED:
        fix = "record shapes, or give --model or --capture"
        return f"{share}, too little for a verdict: {fix}."
    ratio = laid.ratio
    if ratio is None:
        return f"{share}."
    return f"{share}: kernels take {ratio:.2f} times their bound, {seconds(laid.lower_s)}."


def _parts(laid: LaidTrace) -> Iterator[str]:
    """Span parts as bars, and their sum."""
    total = laid.total
    whole_ns = max(total.total_ns - total.break_ns, 1)
    small_ns = 0
    for name, words in PART_WORDS.items():
        part_ns = getattr(total, name)
        share = part_ns / whole_ns
        if share < MIN_PART:
            small_ns += part_ns
            continue
        bar = "█" * round(BAR_LENGTH * share) or "▏"
        time = seconds(part_ns / NS_PER_S)
        yield f"  {time:>9} {share * 100:5.1f} %  {bar:<{BAR_LENGTH}}  {words}"
    if small_ns:
        yield f"  {seconds(small_ns / NS_PER_S):>9}{'':{BAR_LENGTH + 12}}{SMALL}"
    if total.break_ns:
        yield f"  {seconds(total.break_ns / NS_PER_S):>9}{'':{BAR_LENGTH + 12}}{BREAK}"
    yield f"  {seconds(total.total_ns / NS_PER_S):>9}{'':{BAR_LENGTH + 12}}{SUM}"


def _label(row: Mapping[str, Any]) -> str:
    """Group in a column's width."""
    label = f"{row['op'].rpartition('::')[2]} {row['shape']}".strip()
    return label if len(label) < LABEL_LENGTH else f"{label[: LABEL_LENGTH - 3]}.."


def _groups(groups: pl.DataFrame) -> Iterator[str]:
    """Groups that lose most, and the others as one line."""
    yield TABLE.format(*HEADINGS)
    for row in groups.head(MAX_GROUPS).iter_rows(named=True):
        cells = [_label(row), f"{row['calls']:,}", seconds(row["seconds"])]
        if row["is_bounded"] and row["t_lower_s"]:
            mark = "*" if row["is_assumed"] else ""
            ratio = significant(row["seconds"] / row["t_lower_s"], 3)
            cells += [seconds(row["t_lower_s"]), ratio, f"{row['bound']}{mark}"]
            is_waiting = row["kind"] in COLLECTIVE_KINDS
            cells += [WAITS if is_waiting else seconds(row["headroom_s"])]
        else:
            cells += ["-", "", "", "-"]
        yield TABLE.format(*cells).rstrip()
    rest = groups.slice(MAX_GROUPS)
    if rest.height:
        rest_calls, measured_s = f"{rest['calls'].sum():,}", seconds(float(rest["seconds"].sum()))
        lower_s = seconds(float(rest["t_lower_s"].sum()))
        saved_s = seconds(float(rest["headroom_s"].sum()))
        label = counted(rest.height, "other")
        yield TABLE.format(label, rest_calls, measured_s, lower_s, "", "", saved_s).rstrip()


def _notes(
    laid: LaidTrace, frame: pl.DataFrame, groups: pl.DataFrame, other_chips: Sequence[str]
) -> Iterator[str]:
    """Notes below the table, advice first."""
    yield from _advice(laid, groups)
    if laid.chip.chip and laid.chip.source != GIVEN and "without a name" in laid.chip.source:
        yield f"chip      {laid.chip.chip} is taken from {laid.chip.source}; another with --chip"
    if groups.head(MAX_GROUPS)["is_assumed"].any():
        yield (
            "*         assumed work: even routing, fused kernels' arguments once, "
            "contexts in the annotation, a compiler's counts"
        )
    if groups.head(MAX_GROUPS)["kind"].is_in(COLLECTIVE_KINDS).any():
        yield f"{WAITS} collectives also wait for other ranks, so what they would save is unknown"
    yield from _outlier_lines(laid)
    yield from _unfused(laid)
    yield from _short(laid, frame)
    yield from _library(laid)
    if counts := faster_counts(laid.inside):
        listed = ", ".join(f"{count} {reason}" for reason, count in counts.items())
        yield f"faster    {counted(sum(counts.values()), 'call')} below their bound: {listed}"
    yield from (f"model     {line}" for line in laid.lines)
    yield from (f"file      {line}" for line in laid.trace.notes)
    yield from _other_chips(laid, other_chips)


def _advice(laid: LaidTrace, groups: pl.DataFrame) -> Iterator[str]:
    """Advice by the longest part that can shrink; on the host too, where it takes long."""
    total = laid.total
    whole_ns = max(total.total_ns - total.break_ns, 1)
    host = total.not_launched_ns / whole_ns
    waiting = (
        f"{percent_text(host)} of the time the device waits for the host: graphs or compilation "
        "shorten that, faster kernels do not"
    )
    longest = max(ADVICE, key=lambda part: getattr(total, part))
    part_ns = getattr(total, longest)
    share = part_ns / whole_ns
    time = f"{seconds(part_ns / NS_PER_S)} ({percent_text(share)})"
    if longest == "not_launched_ns":
        yield f"next      {waiting}"
        return
    if longest == "above_ns" and laid.ratio is not None and laid.ratio > NEAR_BOUND:
        lossy = groups.filter(pl.col("is_bounded") & ~pl.col("kind").is_in(COLLECTIVE_KINDS))
        row = lossy.row(0, named=True)
        saved = percent_text(row["headroom_s"] * NS_PER_S / whole_ns)
        yield (
            f"next      kernels: of {time} above the bound {_label(row)} has "
            f"{seconds(row['headroom_s'])}; at its bound the time would be {saved} shorter"
        )
    elif share > NOTED_SHARE and longest != "above_ns":
        yield f"next      {ADVICE[longest].format(time=time)}"
    elif laid.ratio is not None and laid.ratio <= NEAR_BOUND:
        yield "next      kernels run near their bound: fewer bytes or FLOP, or another chip (--on)"
    if host > NOTED_SHARE:
        yield f"host      {waiting}"


def _outlier_lines(laid: LaidTrace) -> Iterator[str]:
    """Outliers by name."""
    listed = outliers(laid)
    for bounded, middle_s, count in listed[:MAX_OUTLIERS]:
        call = bounded.call
        name = " ".join([call.name.rpartition("::")[2], call.shape]).strip()
        place = f" in step {call.step}" if len(laid.trace.steps) > 1 and call.step >= 0 else ""
        time = seconds(call.kernel_ns / NS_PER_S)
        yield f"outlier   {name}{place} took {time}, the median of {count:,} is {seconds(middle_s)}"
    if len(listed) > MAX_OUTLIERS:
        more = listed[MAX_OUTLIERS:]
        extra_s = sum(bounded.call.kernel_ns / NS_PER_S - middle for bounded, middle, _ in more)
        calls = counted(len(more), "more call")
        yield f"outlier   {calls} above three times their median, {seconds(extra_s)} together"


def _unfused(laid: LaidTrace) -> Iterator[str]:
    """Attention as several kernels, with its bound as one."""
    if laid.unfused:
        sums = (sum(part) for part in zip(*(parts[1:] for parts in laid.unfused), strict=True))
        time_s, apart_s, fused_s = map(seconds, sums)
        yield (
            f"fuse      {counted(len(laid.unfused), 'attention')} in three kernels or more: "
            f"{time_s}, bound {apart_s} as they are, {fused_s} as one kernel"
        )


def _library(laid: LaidTrace) -> Iterator[str]:
    """Time above the bound: what a good library needs, and what this run adds."""
    split = laid.library
    if split is not None:
        above = seconds(split.library_s + split.run_s)
        subject = counted(split.calls, "matmul")
        if split.kinds != ("matmul",):
            subject = f"{counted(split.calls, 'call')} ({', '.join(split.kinds)})"
        yield (
            f"library   {subject}, {above} above their bound: a good "
            f"library needs {seconds(split.library_s)} of it, this run adds {seconds(split.run_s)} "
            f"({', '.join(split.calibrations)})"
        )


def _short(laid: LaidTrace, frame: pl.DataFrame) -> Iterator[str]:
    """Short kernels, where they take much busy time."""
    short = (
        frame.lazy()
        .filter(
            pl.col("kernel_s") / pl.col("launches") < SHORT_S,
            pl.col("t_lower_s").is_not_null(),
            pl.col("origin") != "before",
        )
        .select("seconds", "t_lower_s", "launches")
        .collect()
    )
    time_s = float(short["seconds"].sum())
    if time_s > NOTED_SHARE * laid.busy_ns / NS_PER_S:
        lower_s = float(short["t_lower_s"].sum())
        count = f"{short['launches'].sum():,} kernels"
        yield (
            f"short     {count} below 10 µs take {seconds(time_s)}, their bound is "
            f"{seconds(lower_s)}: fuse them, since a launch alone takes that long"
        )


def _other_chips(laid: LaidTrace, other_chips: Sequence[str]) -> Iterator[str]:
    """The same calls' bounds on other chips."""
    if not other_chips:
        return
    parts = [f"{laid.chip.chip} {seconds(inside_bounds_s(laid.calls))}"] if laid.rates else []
    for chip in other_chips:
        calls = laid.on(chip)
        lost_ns = sum(
            before.call.owned_ns
            for before, after in zip(laid.calls, calls, strict=True)
            if before.times is not None and after.times is None
        )
        lost = Fraction(lost_ns, max(laid.busy_ns, 1))
        without = f" (without {percent_text(float(lost))} of the time)" if lost > MIN_PART else ""
        parts.append(f"{chip} {seconds(inside_bounds_s(calls))}{without}")
    yield f"on        the same calls' bounds: {', '.join(parts)}; no forecasts"
