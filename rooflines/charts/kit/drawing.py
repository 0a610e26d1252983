"""Parts of every chart: parameters, filters, labels with a halo, logarithmic axes, and assembly.

A chart is layers of marks plus what `assemble` adds: parameters, title, subtitle and dimensions.
Encodings are objects such as `alt.Text("text:N")`: Altair takes 2 ms to read the string alone.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, cast

from rooflines.basics.errors import check_known, placed
from rooflines.basics.lazy import alt, pl
from rooflines.charts.kit.chip_colours import chip_order
from rooflines.charts.kit.text import chip_label
from rooflines.charts.kit.themes import Margins, sizes_of
from rooflines.charts.kit.titles import titles

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.charts.claims import Finding

FEW_TICKS = 2
"""Ticks of an axis that are too few [1]."""

SHORT_LABEL = (
    "datum.value > 0 && datum.value < 1 ? format(datum.value, '~g') : format(datum.value, '~s')"
)
SI_LABEL = f"replace({SHORT_LABEL}, regexp('([kMGTPE])$'), ' $1')"
BINARY_LABEL = (
    "datum.value >= 1024 && datum.value % 1024 == 0 "
    "? format(datum.value / 1024, ',d') + 'k' : format(datum.value, ',d')"
)
TIME_LABEL = (
    "datum.value == 0 ? '0' : datum.value >= 1 ? format(datum.value, '~r') + ' s'"
    " : datum.value >= 1e-3 ? format(datum.value * 1e3, '~r') + ' ms'"
    " : datum.value >= 1e-6 ? format(datum.value * 1e6, '~r') + ' µs'"
    " : format(datum.value * 1e9, '~r') + ' ns'"
)
COUNT_LABEL = "datum.value >= 1000000 ? format(datum.value, '~s') : format(datum.value, ',d')"

NAMES = {"chip": "Chip", "dtypes": "Data types", "basis": "Numbers", "sweep": "Sweep"}
"""Labels of the selectors that several charts have."""


class Choice:
    """A parameter that the reader sets: one of several options, with a selector on the page.

    Args:
        name: The parameter's name; those of `NAMES` mean the same in every chart.
        options: Its values; the first is shown first.
        title: The selector's label.
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
        self.title = title or NAMES.get(name, name)

    def parameter(self) -> alt.Parameter:
        """The Vega parameter, bound to a selector."""
        bind = alt.binding_select(options=self.options, labels=self.labels, name=f"{self.title} ")
        return alt.param(name=self.name, value=self.value, bind=bind)


def starting(choices: Sequence[Choice], first: Mapping[str, Any] | None) -> list[Choice]:
    """Set what choices show first.

    Args:
        choices: What the reader can choose.
        first: Values by the names of choices; the other choices keep their first option.

    Raises:
        RooflinesError: A choice or option does not exist.
    """
    options = {choice.name: choice for choice in choices}
    with placed("first"):
        check_known(list(first or {}), options, "nothing to choose in this chart")
        for name, value in (first or {}).items():
            with placed(name):
                check_known([value], options[name].options, "not among what this chart shows")
            options[name].value = value
    return list(choices)


def data(frame: pl.DataFrame) -> pl.DataFrame:
    """A frame for Altair: categories as text, floats to seven significant digits."""
    names = [
        name
        for name, dtype in frame.schema.items()
        if dtype == pl.Categorical or isinstance(dtype, pl.Enum)
    ]
    return frame.with_columns(pl.col(names).cast(pl.String)).with_columns(
        pl.selectors.float().round_sig_figs(7)
    )


def chosen(*names: str) -> str:
    """A filter expression: rows whose columns equal the parameters of the same names."""
    return " && ".join(f"datum.{name} == {name}" for name in names)


def haloed(chart: alt.Chart, style: str, **mark: Any) -> list[alt.Chart]:  # noqa: ANN401, handed on to Altair
    """Text with a halo: two layers, since a stroke drawn over the fill would cover the letters."""
    return [chart.mark_text(style=[style, "halo"], **mark), chart.mark_text(style=style, **mark)]


def zoom(*axes: Literal["x", "y"]) -> alt.Parameter:
    """Zooming by Shift and the wheel, and panning; pictures drop it: it would clip every layer."""
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
    """Layers of labels at the places of `place.placed`.

    Args:
        frame: Labels, with the columns of `place.placed` and `text`.
        style: The text's style.
        where: A filter expression for the reader's choice.
        halo: Whether the text has a halo.
        clip: Whether it is clipped at the plot's edge; by default only in charts with a zoom.
        angle: The text's angle, as an expression [degree].
        encoding: x, y and further channels.
    """
    shown = "(narrow ? datum.on_narrow : datum.on)" + (f" && {where}" if where else "")
    base = (
        alt.Chart(data(frame)).transform_filter(shown).encode(text=alt.Text("text:N"), **encoding)
    )
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
    """Ticks of a logarithmic axis: powers of ten, or more per decade where those are too few."""
    ticks = decades(low, high)
    for digits in ((1, 2, 5), range(1, 10), [d / 4 for d in range(4, 40)]):
        if len(ticks) > FEW_TICKS:
            break
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        every = [digit * 10.0**power for power in powers for digit in digits]
        ticks = [tick for tick in every if low <= tick <= high]
    return ticks


def powers_of_two(low: float, high: float, most: int = 12) -> list[int]:
    """Powers of two in a range; every n-th of them where there are more than `most`."""
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
    """Scale and axis with ticks at powers of ten, or at the values."""
    axis = alt.Axis(values=list(values) or decades(low, high), labelExpr=label, title=title)
    return {"scale": alt.Scale(type="log", domain=[low, high], nice=False), "axis": axis}


def log_scale(low: str, high: str) -> alt.Scale:
    """A logarithmic scale whose ends follow the reader's choice: they are expressions."""
    ends = alt.expr(low), alt.expr(high)
    return alt.Scale(type="log", domainMin=ends[0], domainMax=ends[1], nice=False)


def binary_axis(
    low: float, high: float, title: str, *, grid: bool = False, label: str = COUNT_LABEL
) -> dict[str, Any]:
    """Scale and axis with ticks at powers of two."""
    axis = alt.Axis(values=powers_of_two(low, high), labelExpr=label, title=title, grid=grid)
    return {
        "scale": alt.Scale(type="log", base=2, domain=[low, high], nice=False),
        "axis": axis,
    }


def si_axis(title: str) -> alt.Axis:
    """A linear axis from zero in SI units."""
    return alt.Axis(labelExpr=SI_LABEL, title=title, tickCount=5)


def chip_scale(frame: pl.DataFrame) -> alt.Scale:
    """The colour of every chip, in lines and areas.

    Args:
        frame: Rows with `chip` and `vendor`.
    """
    vendors = dict(frame.select("chip", "vendor").unique(maintain_order=True).iter_rows())
    return alt.Scale(domain=chip_order(vendors), range="category")


def lettered(colors: alt.Scale) -> alt.Fill:
    """The colour of a chip in text, of which some are darker than in lines."""
    scale = alt.Scale(domain=colors.domain, range="diverging")
    return alt.Fill("chip:N", legend=None, scale=scale)


def assemble(
    layers: Sequence[alt.Chart | alt.LayerChart],
    findings: Mapping[str, Finding],
    choices: Sequence[Choice],
    margins: Margins,
    parameters: Sequence[Any] = (),
) -> alt.LayerChart:
    """A chart of layers, with parameters, a title and subtitle that follow them, and its sizes.

    Its description, which screen readers say, has those of what it shows first.

    Args:
        layers: The chart's marks.
        findings: What is said, by the chosen values joined by `|`; by "" without choices.
        choices: What the reader can choose.
        margins: Room around the plot.
        parameters: Further parameters.
    """
    sizes = sizes_of(margins)
    headings = titles(findings, [choice.name for choice in choices], margins)
    subtitle = alt.Chart(pl.DataFrame({"subtitle": [""]})).mark_text(
        style="subtitle",
        text=alt.expr("narrow ? '' : subline"),
        x=0,
        y=alt.expr("em * -4.6"),
        align="left",
        baseline="top",
        clip=False,
    )
    web = sizes["web"]
    first = findings.get("|".join(str(choice.value) for choice in choices))
    layout = [alt.param(name="em", value=web["em"]), alt.param(name="narrow", value=False)]
    # The properties first: setting them on a chart copies it.
    chart = alt.layer(
        *layers,
        subtitle,
        title=alt.TitleParams(text=alt.expr("headline")),
        description=f"{first.title}. {first.subtitle}" if first else alt.Undefined,
        autosize="none",
        padding=web["padding"],
        width=web["width"],
        height=web["height"],
        usermeta={
            "looks": sizes,
            "choices": {choice.name: choice.labels for choice in choices},
            "claims": {key: finding.claim for key, finding in findings.items() if finding.claim},
        },
    )
    every = [*layout, *(choice.parameter() for choice in choices), *headings, *parameters]
    return _with_parameters(cast("alt.LayerChart", chart), every)


def _with_parameters(chart: alt.LayerChart, parameters: Sequence[Any]) -> alt.LayerChart:
    """A chart with parameters; dictionaries become their values last, as Altair copies all."""
    values = {}
    for each in parameters:
        if isinstance(each.param.value, dict):
            values[each.name], each.param.value = each.param.value, {}
    added = chart.add_params(*parameters)
    own: Any = added.params
    for each in own:
        if each.name in values:
            each.value = values[each.name]
    return added
