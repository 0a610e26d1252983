"""Trace pictures: span parts, groups that lose most, and a step as a timeline."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from rooflines.answers.claims import Sentence
from rooflines.basics.lazy import pl
from rooflines.basics.text import counted, seconds, significant
from rooflines.charts.kit import layers as kit
from rooflines.charts.kit.chart_text import width_em
from rooflines.charts.kit.themes import Margins
from rooflines.charts.views import View
from rooflines.traces.call_frames import COLLECTIVE_KINDS, LAYER, call_frame, group_frame
from rooflines.traces.device_accounts import BREAK_NS, activity_order, gap_parts, owner_intervals
from rooflines.traces.span_parts import NS_PER_S, BoundedCall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rooflines.charts.kit.layers import Layer
    from rooflines.traces.laid_traces import LaidTrace
    from rooflines.traces.trace_records import Activity

PARTS: Mapping[str, tuple[str, str]] = {
    "at_bound_ns": ("at the bound", "trace-bound"),
    "above_ns": ("above the bound", "trace-above"),
    "no_bound_ns": ("without a bound", "trace-none"),
    "before_ns": ("before the trace", "trace-before"),
    "communication_ns": ("communication", "trace-communication"),
    "not_launched_ns": ("host had not launched", "trace-host"),
    "in_call_ns": ("launch was running", "trace-call"),
    "queued_ns": ("queued", "trace-queued"),
}
"""Span parts from the left, with words and mark styles."""

AT_BOUND, ABOVE, NO_BOUND, BEFORE, COMMUNICATION, NOT_LAUNCHED, IN_CALL, QUEUED = PARTS

MAX_GROUPS = 12
"""Groups drawn [1]."""

BINS = 400
"""Timeline bins [1]."""

HALF_BAR = 0.36
"""Half a bar's height [rows]."""

HEADROOM = 1.02
"""Right edge over the longest bar [1]."""

BAR_TYPES: Mapping[str, Any] = {
    "row": int,
    **dict.fromkeys(("low", "high"), float),
    "part": str,
    **dict.fromkeys(("start", "end"), float),
}
TEXT_TYPES: Mapping[str, Any] = {"row": int, "end": float, "text": str}
"""Columns of bars and of the texts beside them."""

MARGINS, NAME_ROOM = Margins(left=15.0, right=9.0), 14.4
TIMELINE_MARGINS = Margins(left=4.0, right=2.0)


def parts_view(laid: LaidTrace) -> View:
    """Span parts, each bar beginning where the one above it ends; without breaks.

    Args:
        laid: The trace.
    """
    total = laid.total
    whole_ns = total.total_ns - total.break_ns
    rows: list[dict[str, Any]] = []
    start_ns = 0
    for part, (words, _) in PARTS.items():
        part_ns = getattr(total, part)
        if part_ns:
            row = {"part": part, "name": words, "row": len(rows), "ns": part_ns}
            rows.append({**row, "start_ns": start_ns, "share": part_ns / max(whole_ns, 1)})
            start_ns += part_ns
    bars = pl.DataFrame(rows).with_columns(
        start=pl.col("start_ns") / NS_PER_S,
        end=(pl.col("start_ns") + pl.col("ns")) / NS_PER_S,
        low=pl.col("row") - HALF_BAR,
        high=pl.col("row") + HALF_BAR,
        text=pl.Series([f"{seconds(r['ns'] / NS_PER_S)}, {r['share']:.1%}" for r in rows]),
    )
    title = _largest_part({row["part"]: row["ns"] for row in rows})
    top = whole_ns / NS_PER_S
    return View(
        Sentence(text=title, rows=rows),
        _subtitle(laid),
        [*_bar_layers(bars["part"].to_list(), "bars"), _texts("bars", "end")],
        {"bars": bars.select("part", "name", "start", "end", "low", "high", "row", "text")},
        MARGINS,
        bars,
        kit.bar_params([row["name"] for row in rows], NAME_ROOM, top * HEADROOM),
    )


def _largest_part(amounts_ns: Mapping[str, float]) -> str:
    """Sentence on the largest part, and its share.

    Args:
        amounts_ns: Time by part [ns].
    """
    part = max(amounts_ns, key=amounts_ns.__getitem__)
    whole_ns = sum(amounts_ns.values())
    words = {
        AT_BOUND: "kernels at their bound",
        ABOVE: "kernels above their bound",
        NO_BOUND: "kernels without a bound",
        BEFORE: "kernels launched before the trace began",
        COMMUNICATION: "communication with no kernel beside it",
        NOT_LAUNCHED: "idle: the host had not launched",
        IN_CALL: "idle: the launch was running",
        QUEUED: "queued",
    }
    share = amounts_ns[part] / whole_ns
    return f"{share:.0%} of {seconds(whole_ns / NS_PER_S)} is {words[part]}"


def groups_view(laid: LaidTrace) -> View:
    """Groups that lose most: bars are their time, with the bound inside.

    Args:
        laid: The trace.
    """
    groups = group_frame(call_frame(laid)).head(MAX_GROUPS)
    rows = groups.to_dicts()
    bars: list[dict[str, Any]] = []
    texts = []
    for index, row in enumerate(rows):
        edges = {"row": index, "low": index - HALF_BAR, "high": index + HALF_BAR}
        time_s = row["seconds"]
        ratio = ""
        if row["kind"] in COLLECTIVE_KINDS:
            bars.append({**edges, "part": COMMUNICATION, "start": 0.0, "end": time_s})
        elif row["is_bounded"]:
            lower_s = min(row["t_lower_s"], time_s)
            bars += [
                {**edges, "part": AT_BOUND, "start": 0.0, "end": lower_s},
                {**edges, "part": ABOVE, "start": lower_s, "end": time_s},
            ]
            ratio = f", {significant(time_s / row['t_lower_s'], 3)} ×" if row["t_lower_s"] else ""
        else:
            bars.append({**edges, "part": NO_BOUND, "start": 0.0, "end": time_s})
        texts.append({"row": index, "end": time_s, "text": f"{seconds(time_s)}{ratio}"})
    names = [f"{row['op'].rpartition('::')[2]} {row['shape']}".strip() for row in rows]
    bar_frame = pl.DataFrame(bars, schema=BAR_TYPES).with_columns(
        name=pl.col("part").replace_strict({part: words for part, (words, _) in PARTS.items()})
    )
    parts = list(dict.fromkeys(bar_frame["part"]))
    top = max((row["seconds"] for row in rows), default=laid.span_s)
    lost = [row["loses_s"] for row in rows if row["kind"] not in COLLECTIVE_KINDS]
    title = "No kernel was launched in the trace"
    if rows:
        is_sent = rows[0]["kind"] in COLLECTIVE_KINDS
        verb, time_s = ("takes", rows[0]["seconds"]) if is_sent else ("loses", lost[0])
        title = f"{names[0]} {verb} {seconds(time_s)}"
        if len(rows) > 1 and lost:
            title += f", {counted(len(lost), 'group')} {'lose ' if is_sent else ''}"
            title += seconds(sum(lost))
    return View(
        Sentence(text=title, rows=rows),
        _subtitle(laid),
        [*_bar_layers(parts, "bars"), _texts("texts", "end"), *_legend(parts)],
        {"bars": bar_frame, "texts": pl.DataFrame(texts, schema=TEXT_TYPES)},
        MARGINS,
        groups,
        kit.bar_params(names, NAME_ROOM, top * HEADROOM),
        tuple(names[:1]),
    )


def timeline_view(laid: LaidTrace) -> View:
    """One device's step over time: what each moment went into, without breaks.

    The first step's first device, or the first device's span where steps are not marked. A moment
    is a bin; the heights of its parts add up to one.

    Args:
        laid: The trace.
    """
    activities = _step_activities(laid)
    pieces = [*_pieces(activities, _calls_by_activity(laid))]
    whole_ns = max(sum(length for length, _, _ in pieces), 1)
    bins, layers = _binned(pieces, whole_ns)
    rows: list[dict[str, Any]] = []
    for index, amounts in enumerate(bins):
        low = 0.0
        for part in PARTS:
            if share := amounts.get(part, 0.0) / (whole_ns / BINS):
                edges = {"start": index / BINS, "end": (index + 1) / BINS}
                high = min(low + share, 1.0)
                rows.append({"part": part, **edges, "low": low, "high": high})
                low = high
    frame = pl.DataFrame(rows).with_columns(
        (pl.col("start", "end") * (whole_ns / NS_PER_S)),
        name=pl.col("part").replace_strict({part: words for part, (words, _) in PARTS.items()}),
    )
    parts = [part for part in PARTS if part in {*frame["part"]}]
    first, last = (place / NS_PER_S for place in (0, whole_ns))
    ticks = pl.DataFrame(
        [{"start": place / NS_PER_S, "text": name} for name, place in layers.items()],
        schema={"start": pl.Float64, "text": pl.String},
    )
    title = _largest_part({part: sum(amounts.get(part, 0.0) for amounts in bins) for part in parts})
    tick = {
        "x": kit.quantitative_channel("start"),
        "tooltip": kit.tips(text="layer"),
    }
    return View(
        Sentence(text=title, rows=rows),
        _subtitle(laid, one_device=True),
        [
            *_bar_layers(parts, "bins", down=_share_axis(), style=()),
            kit.layer("layers", "rule", "context", {**tick, "y": _top(0.0), "y2": _top(-0.5)}),
            *_legend(parts),
        ],
        {"bins": frame, "layers": ticks},
        TIMELINE_MARGINS,
        frame,
        {
            "plane": {
                "x": [first, last],
                "y": [0.0, 1.0],
                "across": kit.even_ticks(last, 8),
                "up": [0.0, 0.5, 1.0],
            }
        },
    )


def _top(ems: float) -> Layer:
    """Place above the plot's top edge [em]."""
    return {"value": kit.expr(f"em * {ems}")}


def _share_axis() -> Layer:
    """Vertical axis: share within a moment."""
    return kit.axis("y", None, "format(datum.value, '.0%')")


def _step_activities(laid: LaidTrace) -> list[Activity]:
    """Activities of the first device, in its first step that has any."""
    device = laid.accounts[0].device
    activities = [activity for activity in laid.trace.activities if activity.device == device]
    steps = sorted({activity.step for activity in activities if activity.step >= 0})
    if steps:
        activities = [activity for activity in activities if activity.step == steps[0]]
    return sorted(activities, key=activity_order)


def _calls_by_activity(laid: LaidTrace) -> dict[int, BoundedCall]:
    """Calls by their activities' `id`."""
    return {id(activity): bounded for bounded in laid.calls for activity in bounded.call.activities}


def _pieces(
    activities: Sequence[Activity], calls: Mapping[int, BoundedCall]
) -> Iterator[tuple[int, Mapping[str, float], str]]:
    """Time pieces in order: length [ns], part shares [1], and the call's shape."""
    for left, right, owner, following in owner_intervals(activities):
        if owner is not None:
            bounded = calls[id(owner)]
            yield right - left, _shares(bounded), bounded.call.shape
        elif following is not None:
            gaps = gap_parts(following, left, right)
            for part, length in zip((NOT_LAUNCHED, IN_CALL, QUEUED), gaps, strict=True):
                if length and not (part == QUEUED and length > BREAK_NS):
                    yield length, {part: 1.0}, ""


def _shares(bounded: BoundedCall) -> Mapping[str, float]:
    """A call's shares: at its bound and above it, or one part that it is whole [1]."""
    if bounded.is_before:
        return {BEFORE: 1.0}
    if bounded.is_communication:
        return {COMMUNICATION: 1.0}
    if bounded.lower_s is None:
        return {NO_BOUND: 1.0}
    at_bound = min(1.0, bounded.lower_s / bounded.seconds) if bounded.call.owned_ns else 1.0
    return {AT_BOUND: at_bound, ABOVE: 1.0 - at_bound}


def _binned(
    pieces: Sequence[tuple[int, Mapping[str, float], str]], whole_ns: int
) -> tuple[list[dict[str, float]], dict[str, int]]:
    """Amounts by bin and part [ns], and where a model's layers begin [ns]."""
    bins: list[dict[str, float]] = [defaultdict(float) for _ in range(BINS)]
    layers: dict[str, int] = {}
    begin = 0
    for length, shares, shape in pieces:
        if shape.startswith(LAYER):
            layers.setdefault(shape, begin)
        end = begin + length
        for index in range(begin * BINS // whole_ns, min(end * BINS // whole_ns + 1, BINS)):
            left = max(begin, index * whole_ns / BINS)
            right = min(end, (index + 1) * whole_ns / BINS)
            if right > left:
                for part, share in shares.items():
                    bins[index][part] += (right - left) * share
        begin = end
    return bins, layers


def _bar_layers(
    parts: Sequence[str], data: str, down: Layer | None = None, style: Sequence[str] = ("bar",)
) -> list[Layer]:
    """Bars, a layer per part in its style."""
    across, names = kit.bar_axes(None, kit.TIME_LABEL)
    encoding = {
        "x": kit.quantitative_channel("start", **across),
        "x2": {"field": "end"},
        "y": kit.quantitative_channel("low", **(names if down is None else down)),
        "y2": {"field": "high"},
        "tooltip": kit.tips(name="part"),
    }
    return [
        kit.layer(data, "rect", [*style, PARTS[part][1]], encoding, where=f"datum.part == '{part}'")
        for part in parts
    ]


def _texts(data: str, end: str) -> Layer:
    """Texts at bars' right ends."""
    across, names = kit.bar_axes(None, kit.TIME_LABEL)
    encoding = {
        "x": kit.quantitative_channel(end, **across),
        "y": kit.quantitative_channel("row", **names),
        "text": kit.nominal_channel("text"),
    }
    return kit.layer(data, "text", "label", encoding, **kit.RIGHT_OF_BAR)


def _legend(parts: Sequence[str]) -> list[Layer]:
    """Part names above the plot, each after a square in its colour."""
    layers = []
    place = 0.0
    for part in parts:
        words, style = PARTS[part]
        for text, styles, begin in (("■", ["value", style], 0.0), (words, "label", 1.15)):
            mark = {"type": "text", "style": styles, "align": "left", "clip": False, "text": text}
            at = {"x": kit.expr(f"em * {place + begin:.2f}"), "y": kit.expr("em * -1.35")}
            layers.append({"data": {"values": [{}]}, "mark": {**mark, **at}})
        place += width_em(words) + 2.1
    return layers


def _subtitle(laid: LaidTrace, *, one_device: bool = False) -> str:
    """Subtitle: file, chip, devices, steps, breaks."""
    parts = [laid.name, laid.chip.chip or "no chip"]
    if len(laid.accounts) > 1:
        parts.append("first device" if one_device else counted(len(laid.accounts), "device"))
    if laid.trace.steps:
        parts.append("first step" if one_device else counted(len(laid.trace.steps), "step"))
    text = f"{', '.join(parts)}."
    break_ns = laid.total.break_ns
    if break_ns and one_device:
        text += " Without breaks."
    elif break_ns:
        text += f" Without breaks of {seconds(break_ns / NS_PER_S)}."
    return text


PICTURES: Mapping[str, Callable[[LaidTrace], View]] = {
    "parts": parts_view,
    "groups": groups_view,
    "timeline": timeline_view,
}
"""Pictures by name."""
