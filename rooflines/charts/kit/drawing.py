"""What all charts are put together from: parameters, filters, text with a halo, axes of decades and of powers of two, and the frame."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, cast

from rooflines.basics.errors import check_known, placed
from rooflines.charts.kit.lazy import alt, pl
from rooflines.charts.kit.place import LAYOUTS, places_of
from rooflines.charts.kit.text import chip_label, shorten, wrapped
from rooflines.charts.kit.themes import CHIP_SLOTS, SIZES, SLOTS_OF, Margins, plot_size, sizes_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "LAYOUTS",
    "SHORT_LABEL",
    "Choice",
    "assemble",
    "binary_axis",
    "chosen",
    "data",
    "decades",
    "finding_key",
    "haloed",
    "log_axis",
    "palette_of",
    "placed_text",
    "places_of",
    "powers_of_two",
    "si_axis",
    "starting",
    "ticks_between",
    "zoom",
]


BASE_TWO = 2
FEW_TICKS = 2

LONGEST_TITLE, LONGEST_SUBTITLE = 34.0, 56.0
"""Widths of the title and of a line below it, in their own size [em]."""

SI_LABEL = "replace(format(datum.value, '~s'), regexp('([kMGTPE])$'), ' $1')"
SHORT_LABEL = "format(datum.value, '~s')"
BINARY_LABEL = "datum.value >= 1024 && datum.value % 1024 == 0 ? format(datum.value / 1024, ',d') + 'k' : format(datum.value, ',d')"
COUNT_LABEL = "datum.value >= 1000000 ? format(datum.value, '~s') : format(datum.value, ',d')"


class Choice:
    """A parameter that a reader sets: a Vega parameter with a list of options, and a selector where the page offers one.

    Args:
        name: Of the parameter: `chip` and `dtypes` mean the same in every chart.
        options: Its values.
        title: What the selector is called.
    """

    def __init__(self, name: str, options: Sequence[Any], title: str = "") -> None:
        self.name, self.options = name, list(options)
        self.value: Any = self.options[0]
        self.labels = [
            chip_label(option)
            if name == "chip"
            else option
            if isinstance(option, str)
            else f"{option:,}"
            for option in options
        ]
        self.title = title or {"chip": "Chip", "dtypes": "Data types"}.get(name, name)

    def parameter(self) -> alt.Parameter:
        """The Vega parameter, bound to a selector."""
        bind = alt.binding_select(options=self.options, labels=self.labels, name=f"{self.title} ")
        return alt.param(name=self.name, value=self.value, bind=bind)


def starting(choices: Sequence[Choice], first: Mapping[str, Any] | None) -> list[Choice]:
    """The choices with what is shown first.

    Raises:
        RooflinesError: There is no such choice, or it does not have that option.
    """
    options = {choice.name: choice for choice in choices}
    with placed("first"):
        check_known(list(first or {}), options, "nothing to choose in this chart")
        for name, wanted in (first or {}).items():
            with placed(name):
                check_known([wanted], options[name].options, "not among what this chart shows")
            options[name].value = wanted
    return list(choices)


def data(frame: pl.DataFrame) -> pl.DataFrame:
    """A frame as Altair takes it: names as text, numbers to six significant digits but whole ones whole."""
    names = [
        name
        for name, dtype in frame.schema.items()
        if dtype == pl.Categorical or isinstance(dtype, pl.Enum)
    ]
    return frame.with_columns(pl.col(names).cast(pl.String)).with_columns(
        pl.selectors.float().round_sig_figs(7)
    )


def chosen(*names: str) -> str:
    """A filter: rows of what the reader chose, by parameters and columns of the same names."""
    return " && ".join(f"datum.{name} == {name}" for name in names)


def finding_key(names: Sequence[str]) -> str:
    """The expression that looks up what is said of the present choice."""
    return " + '|' + ".join(names)


def haloed(chart: alt.Chart, style: str, **mark: Any) -> list[alt.Chart]:  # noqa: ANN401, handed on to Altair
    """Text with a halo: two layers, because a stroke painted over a fill eats the letters."""
    return [chart.mark_text(style=[style, "halo"], **mark), chart.mark_text(style=style, **mark)]


def zoom(*axes: Literal["x", "y"]) -> alt.Parameter:
    """Zooming with the wheel and the shift key held, and moving about; not in pictures, where it would clip every layer at a cost."""
    return alt.selection_interval(
        name="zoom", bind="scales", encodings=list(axes), zoom="wheel![event.shiftKey]"
    )


def placed_text(  # noqa: PLR0913, all but the first two have a default
    frame: pl.DataFrame,
    style: str,
    where: str = "",
    *,
    halo: bool = True,
    clip: bool | None = None,
    angle: str = "0",
    **encoding: Any,  # noqa: ANN401, handed on to Altair
) -> list[alt.Chart]:  # fmt: skip
    """Labels at the places of `places_of`, as layers.

    Args:
        frame: With the columns of `places_of` and `text`.
        style: The text's style.
        where: A filter on what the reader chose.
        halo: Whether the text has a halo.
        clip: Whether it ends where the plot ends; only of charts that one can zoom into by default.
        angle: By how much it is turned, an expression [degree].
        encoding: x, y and more.
    """
    shown = "(narrow ? datum.on_narrow : datum.on)" + (f" && {where}" if where else "")
    base = alt.Chart(data(frame)).transform_filter(shown).encode(text="text:N", **encoding)
    offsets: dict[str, Any] = {
        "dx": alt.expr("em * (narrow ? datum.dx_narrow : datum.dx)"),
        "dy": alt.expr("em * (narrow ? datum.dy_narrow : datum.dy)"),
        "align": alt.expr("narrow ? datum.align_narrow : datum.align"),
        "angle": alt.expr(angle),
    }
    if clip is not None:
        offsets["clip"] = clip
    return haloed(base, style, **offsets) if halo else [base.mark_text(style=style, **offsets)]


def decades(low: float, high: float) -> list[float]:
    """The powers of ten in a range."""
    return [
        10.0**power
        for power in range(
            math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1
        )
    ]


def ticks_between(low: float, high: float) -> list[float]:
    """Ticks of a logarithmic axis: powers of ten, or 1, 2 and 5 of every decade, or every digit, where that gives too few."""
    found = decades(low, high)
    for digits in ((1, 2, 5), range(1, 10), [d / 4 for d in range(4, 40)]):
        if len(found) > FEW_TICKS:
            break
        found = [
            digit * 10.0**power
            for power in range(-3, 16)
            for digit in digits
            if low <= digit * 10.0**power <= high
        ]
    return found


def powers_of_two(low: float, high: float, most: int = 12) -> list[int]:
    """Powers of two in a range, every second or fourth of them where they are many."""
    first, last = math.ceil(math.log2(low) - 1e-9), math.floor(math.log2(high) + 1e-9)
    step = max(1, -(-(last - first + 1) // most))
    return (
        [2**power for power in range(last, first - 1, -step)][::-1]
        if first >= 0
        else [2**p for p in range(0, last + 1, step)]
    )


def log_axis(
    low: float, high: float, title: str, label: str = SI_LABEL, values: Sequence[float] = ()
) -> dict[str, Any]:
    """Scale and axis of decades, or of given values."""
    axis = alt.Axis(values=list(values) or decades(low, high), labelExpr=label, title=title)
    return {"scale": alt.Scale(type="log", domain=[low, high], nice=False), "axis": axis}


def binary_axis(
    low: float, high: float, title: str, *, grid: bool = False, label: str = COUNT_LABEL
) -> dict[str, Any]:
    """Scale and axis of powers of two."""
    axis = alt.Axis(values=powers_of_two(low, high), labelExpr=label, title=title, grid=grid)
    return {
        "scale": alt.Scale(type="log", base=BASE_TWO, domain=[low, high], nice=False),
        "axis": axis,
    }


def si_axis(title: str) -> alt.Axis:
    """A linear axis from zero in SI units."""
    return alt.Axis(labelExpr=SI_LABEL, title=title, tickCount=5)


def palette_of(frame: pl.DataFrame, palette: Mapping[str, str] | None = None) -> alt.Scale:
    """The colour of every chip: the same in all charts that share a palette; a vendor's chips look alike.

    Args:
        frame: With `chip` and `vendor`.
        palette: The vendors of all chips that have colours; those of the frame by default.
    """
    vendors = dict(frame.select("chip", "vendor").unique(maintain_order=True).iter_rows()) | dict(
        palette or {}
    )
    slots: list[str] = [f"\u200b{slot}" for slot in range(CHIP_SLOTS)]
    free = list(range(CHIP_SLOTS))
    names = sorted(vendors)
    for chip in names:
        wanted = [slot for slot in SLOTS_OF.get(vendors[chip], SLOTS_OF[""]) if slot in free]
        if not free:
            break
        slot = wanted[0] if wanted else free[-1]
        slots[slot] = chip
        free.remove(slot)
    return alt.Scale(
        domain=[*slots, *(chip for chip in names if chip not in slots)], range="category"
    )


def assemble(
    layers: Sequence[alt.Chart | alt.LayerChart],
    findings: Mapping[str, tuple[str, str]],
    choices: Sequence[Choice],
    margins: Margins,
    parameters: Sequence[Any] = (),
) -> alt.LayerChart:
    """Layers as a chart: with the reader's choices, title and subtitle that follow them, and the numbers every look needs.

    Args:
        layers: The chart's marks.
        findings: Title and subtitle by the values chosen, joined by `|`; the key is empty where there is nothing to choose.
        choices: What the reader can choose.
        margins: Room around the plot.
        parameters: Further parameters.
    """
    room = sum(plot_size(SIZES["slide"], margins)[:1]) + margins.right - 1.5
    said = {
        key: {
            "title": shorten(title, min(LONGEST_TITLE, room / 1.6), bold=True),
            "subtitle": wrapped(subtitle, min(LONGEST_SUBTITLE, room)),
        }
        for key, (title, subtitle) in findings.items()
    }
    sizes = sizes_of(margins)
    names = [choice.name for choice in choices]
    nothing = (
        "{title: 'No numbers for this choice', subtitle: ['Choose another chip or data type.']}"
    )
    found = f"(findings[{finding_key(names)}] || {nothing})" if names else "findings['']"
    said_now = [
        alt.param(name="findings", value=said),
        alt.param(name="headline", expr=f"{found}.title"),
        alt.param(name="subline", expr=f"{found}.subtitle"),
    ]
    below = alt.Chart(pl.DataFrame({"subtitle": [""]})).mark_text(
        style="subtitle",
        text=alt.expr("narrow ? '' : subline"),
        x=0,
        y=alt.expr("em * -4.6"),
        align="left",
        baseline="top",
        clip=False,
    )
    known = [alt.param(name="em", value=sizes["web"]["em"]), alt.param(name="narrow", value=False)]
    chart = (
        alt.layer(*layers, below)
        .add_params(*known, *(choice.parameter() for choice in choices), *said_now, *parameters)
        .properties(
            title=alt.TitleParams(text=alt.expr("headline")),
            autosize="none",
            padding=sizes["web"]["padding"],
            width=sizes["web"]["width"],
            height=sizes["web"]["height"],
            usermeta={
                "looks": sizes,
                "choices": {choice.name: choice.labels for choice in choices},
            },
        )
    )
    return cast("alt.LayerChart", chart)
