"""Ranges of a size in which a lever pays, a bar for each chip and time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.answers.claims import Sentence
from rooflines.basics.errors import RooflinesError
from rooflines.basics.lazy import pl
from rooflines.basics.text import counted, significant
from rooflines.charts.kit import layers as kit
from rooflines.charts.kit.chart_text import chip_label
from rooflines.charts.kit.themes import Margins
from rooflines.charts.views import View
from rooflines.dictionary.columns import ALWAYS, CONTEXT, FROM, NEVER
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.solvers.payoffs import ESTIMATED_TIME, LOWER_TIME

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.charts.kit.layers import Layer
    from rooflines.hardware.entries import Chip

MARGINS, NAME_ROOM = Margins(left=15.0, right=16.5), 14.4

HALF_BAR = 0.3
"""Half of a bar's height [rows]."""

AROUND = 4.0
"""Factor by which the axis extends beyond the thresholds [1]."""

MAX_BARS = 12
"""Bars in a chart, at most [1]."""

DEFAULT_SPAN = (2.0**7, 2.0**17)
"""Sizes that are shown where a lever pays always or never [1]."""


BEYOND = "beyond the context"
"""Text where a lever pays from a size on that is longer than the model's context."""


class RangeText(NamedTuple):
    """Texts about a lever that pays in a range.

    Attributes:
        claim: What pays, in a title.
        size: Title of the horizontal axis.
    """

    claim: str
    size: str


RANGES: Mapping[str, RangeText] = {
    "S_pull": RangeText("Pulling a KV cache pays", "Tokens of the prefix"),
    "S_offload": RangeText("Offloading {} is free", "Context S (tokens)"),
    "X_offload": RangeText("Offloading {} is free", "Tokens of a chip and step"),
}
"""Levers whose thresholds are along no size of a grid."""

OFFLOADED = {
    "inputs": "layer inputs",
    "saved": "saved tensors",
    "states": "the optimizer",
}
"""Names of what goes off the chip."""

Row = dict[str, Any]


def range_view(
    thresholds: pl.DataFrame,
    axis: str,
    *,
    chips: Mapping[str, Chip] | None = None,
    title: str | None = None,
) -> View:
    """Draw where a lever pays, a bar for each chip and time; arguments as in `charts.levers`."""
    rows = thresholds.filter(axis=axis)
    if rows.is_empty():
        problem = f"has no {axis}: the lever has no link on these chips"
        raise RooflinesError("thresholds", problem, "set `levers:`, or choose other chips")
    for name in ("model", "dtypes", "split", "offload"):
        if name in rows.columns and rows[name].n_unique() > 1:
            values = " and ".join(map(str, rows[name].unique(maintain_order=True).head(2)))
            problem = f"has several {name}, such as {values}"
            raise RooflinesError("thresholds", problem, f"keep one, as by .filter({name}=..)")
    bars = [*_bars(rows.to_dicts())][:MAX_BARS]
    entries = chip_entries() if chips is None else chips
    names = list(dict.fromkeys(bar["chip"] for bar in bars))
    vendors = {name: entries[name].vendor if name in entries else None for name in names}
    low, high = _span(bars)
    data = pl.DataFrame(
        [part for index, bar in enumerate(bars) for part in _parts(bar, index, low, high)],
        schema={
            "chip": pl.String,
            **dict.fromkeys(("start", "end", "low", "high"), pl.Float64),
            "pays": pl.String,
        },
    )
    texts = pl.DataFrame(
        [{"chip": bar["chip"], "row": index, "text": _text(bar)} for index, bar in enumerate(bars)],
        schema={"chip": pl.String, "row": pl.Int64, "text": pl.String},
    )
    return View(
        _claim(bars, axis, title),
        _subtitle(rows.row(0, named=True), bars),
        _layers(axis, vendors),
        {"bars": data, "texts": texts},
        MARGINS,
        rows,
        {
            **kit.bar_params([_name(bar, bars) for bar in bars], NAME_ROOM, high),
            **_plane(len(bars), low, high),
        },
        tuple(names),
    )


def _bars(rows: Sequence[Row]) -> Iterator[Row]:
    """Bars: rows of a chip, offload and time together."""
    ends: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        key = row["chip"], row.get("offload"), row["time"], row.get("slowdown")
        ends.setdefault(key, []).append(row)
    for (chip, offload, time, slowdown), parts in ends.items():
        bar = {"chip": chip, "offload": offload, "time": time, "slowdown": slowdown}
        yield {**bar, "ends": parts}


def _span(bars: Sequence[Row]) -> tuple[float, float]:
    """Sizes at the left and right edge [1]."""
    ends = [end for bar in bars for end in bar["ends"] if end["critical"] is not None]
    turns = [end["critical"] for end in ends if end.get("limit") != CONTEXT]
    if not turns:
        return DEFAULT_SPAN
    return max(min(turns) / AROUND, 1.0), max(turns) * AROUND


def _parts(bar: Row, index: int, low: float, high: float) -> Iterator[Row]:
    """Ranges in which a lever pays, from edge to edge."""
    outcome = bar["ends"][0]["outcome"]
    spans = [(low, high)] if outcome == ALWAYS else []
    if outcome not in (ALWAYS, NEVER):
        start = low
        within = [end for end in bar["ends"] if end.get("limit") != CONTEXT]
        for end in within:
            if end["side"] == FROM:
                start = float(end["critical"])
            else:
                spans.append((start, float(end["critical"])))
        if within and within[-1]["side"] == FROM:
            spans.append((start, high))
    for start, last in spans:
        yield {
            "chip": bar["chip"],
            "start": start,
            "end": last,
            "low": index - HALF_BAR,
            "high": index + HALF_BAR,
            "pays": _text(bar),
        }


def _text(bar: Row) -> str:
    """Ends in words: `from 52,253`, `always`, `up to 197 and from 52,253`."""
    outcome = bar["ends"][0]["outcome"]
    if outcome in (ALWAYS, NEVER):
        return str(outcome)
    texts = [
        f"{'from' if end['side'] == FROM else 'up to'} {end['critical']:,}"
        for end in bar["ends"]
        if end.get("limit") != CONTEXT
    ]
    return " and ".join(texts) or BEYOND


def _name(bar: Row, bars: Sequence[Row]) -> str:
    """Row name: chip and time, where they differ."""
    parts = [chip_label(bar["chip"])] if len({row["chip"] for row in bars}) > 1 else []
    parts += [_time(bar)] if len({row["time"] for row in bars}) > 1 else []
    return ", ".join(parts) or chip_label(bar["chip"])


def _time(bar: Row) -> str:
    """Time that a bar is by, in words."""
    return "bound" if bar["time"] == LOWER_TIME else "estimate"


def _plane(count: int, low: float, high: float) -> dict[str, Any]:
    """Edges and ticks: sizes at powers of two, rows down."""
    return {
        "plane": {
            "x": [low, high],
            "y": [count - 0.5, -0.5],
            "across": kit.powers_of_two(low, high, 6),
            "up": list(range(count)),
        }
    }


def _layers(axis: str, vendors: Mapping[str, str | None]) -> list[Layer]:
    """Layers: bars where the lever pays, and their ends in words right of the plot."""
    x = kit.quantitative_channel("start", **kit.log_axis("x", RANGES[axis].size, kit.COUNT_LABEL))
    _, down = kit.bar_axes(None, kit.COUNT_LABEL)
    bar = {
        "x": x,
        "x2": {"field": "end"},
        "y": kit.quantitative_channel("low", **down),
        "y2": {"field": "high"},
        "color": kit.chip_colour(vendors),
        "tooltip": kit.tips(chip="chip", pays="pays"),
    }
    text = {
        "x": {"value": kit.expr("width")},
        "y": kit.quantitative_channel("row", **down),
        "fill": kit.chip_colour(vendors, letters=True),
        "text": kit.nominal_channel("text"),
    }
    return [
        kit.layer("bars", "rect", "bar", bar, clip=True),
        kit.layer("texts", "text", "value", text, **kit.RIGHT_OF_BAR),
    ]


def _claim(bars: Sequence[Row], axis: str, title: str | None) -> Sentence:
    """Least size from which on the lever pays, by the estimate where every chip has one."""
    leading = _leading(bars)
    claim = RANGES[axis].claim.format(OFFLOADED.get(str(leading[0]["offload"]), ""))
    ends = [bar["ends"][-1] for bar in leading]
    turns = [end["critical"] for end in ends if end["side"] == FROM and end.get("limit") != CONTEXT]
    outcomes = {end["outcome"] for end in ends}
    if outcomes == {ALWAYS}:
        text = f"{claim} at every size"
    elif outcomes == {NEVER}:
        text = f"{claim} at no size"
    elif turns and ALWAYS not in outcomes:
        earliest = " at best" if len({*turns}) > 1 or len(turns) < len(leading) else ""
        text = f"{claim} from {significant(min(turns))} tokens{earliest}"
    else:
        always = sum(end["outcome"] == ALWAYS for end in ends)
        text = f"{claim} at every size on {always} of {counted(len(leading), 'chip')}"
    rows = [{"chip": chip} for chip in dict.fromkeys(bar["chip"] for bar in leading)]
    return Sentence(text=title or text, rows=rows, every=[row["chip"] for row in rows])


def _leading(bars: Sequence[Row]) -> list[Row]:
    """Bars by the estimate where every chip has one, else by the bound."""
    estimated = [bar for bar in bars if bar["time"] == ESTIMATED_TIME]
    chips = {bar["chip"] for bar in bars}
    return (
        estimated
        if {bar["chip"] for bar in estimated} == chips
        else [bar for bar in bars if bar["time"] == LOWER_TIME]
    )


def _subtitle(row: Row, bars: Sequence[Row]) -> str:
    """Subtitle: model, dtypes, split, and factors of estimates over bounds."""
    setting = [chip_label(str(row["model"])), str(row["dtypes"]), str(row["split"])]
    if len({bar["chip"] for bar in bars}) == 1:
        setting.insert(1, chip_label(bars[0]["chip"]))
    factors = sorted({bar["slowdown"] for bar in bars if bar["slowdown"]})
    text = f"{', '.join(setting)}."
    if factors:
        span = " to ".join(dict.fromkeys(significant(end) for end in (factors[0], factors[-1])))
        text += f" Estimate: {span} × the bound."
    text += " Bars: where it pays."
    if len({bar["time"] for bar in bars}) > 1:
        text += f" Title: by the {_time(_leading(bars)[0])}."
    if any(end.get("limit") == CONTEXT for bar in bars for end in bar["ends"]):
        text += " Beyond the model's context: left out."
    return text
